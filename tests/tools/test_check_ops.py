"""``smelt-opt --check-ops``: a wrong rule of an op is found, by what is about that rule."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from smelt.ir.op import registry
from smelt.tools import opt

PLANTED = Path(__file__).parent / "planted_ops.py"

#: By op, the checks that fail, and what one of them says.
EXPECTED: dict[str, tuple[set[str], str]] = {
    "planted_none": (set(), ""),
    "planted_power": ({"derivative"}, "tangent by operands [0]: 4 of 4 elements differ"),
    "planted_sign": ({"derivative"}, "3 of 4 elements differ"),
    "planted_kernel": ({"kernels"}, "elements differ"),
    "planted_raises": ({"derivative", "transpose", "second derivative"}, "IndexError: list index out of range; at "),
    "planted_lacks": (set(), "no derivative: state jvp, transpose or not_differentiable"),
    "planted_widens": ({"kernels"}, "reference gives float64[4], infer says f32[4]"),
    "planted_second": ({"derivative"}, "tangent by operands [1]"),
    "planted_shear": ({"transpose"}, "backward beside forward"),
    "planted_sizes": ({"kernels"}, "planted_sizes-f32[4,7]"),
    "planted_steps": ({"kernels"}, "planted_steps-f32[4,8]-by=2: "),
    "planted_back": ({"transpose"}, "planted_back-f64[4,8]-by=2: "),
    "planted_batch": ({"batch"}, "a batch with axes"),
    "planted_largest": ({"kernels"}, "elements differ"),
    "planted_hartley": ({"kernels"}, "planted_hartley-f32[8]: cpu: "),
    "planted_nowhere": ({"derivative", "transpose", "second derivative"}, "state `sample`"),
    "planted_somewhere": (set(), ""),
}


def checked(*names: str, folder: Path = PLANTED.parent) -> tuple[int, dict[str, str]]:
    """The exit code, and what is said of each op, by a process of its own."""
    command = [sys.executable, "-m", "smelt.tools.opt", f"--check-ops={','.join(names)}"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=folder, timeout=300)
    assert "Traceback" not in done.stderr, done.stderr
    said = re.split(r"^(\w+): ", done.stdout, flags=re.MULTILINE)[1:]
    return done.returncode, dict(zip(said[::2], said[1::2])) or {"": done.stderr}


@pytest.fixture(scope="module")
def planted() -> dict[str, str]:
    code, said = checked(str(PLANTED))
    assert code == 1 and set(said) == set(EXPECTED)
    return said


@pytest.mark.parametrize("name", EXPECTED)
def test_each_fault_is_found(name: str, planted: dict[str, str]) -> None:
    fails, words = EXPECTED[name]
    found = re.findall(r"^  ([a-z ]+): ", planted[name], re.MULTILINE)
    assert set(found) == fails and words in planted[name], planted[name]


def test_ops_are_named_or_of_a_module() -> None:
    code, said = checked("smelt.exp", "add", "planted_ops")
    assert code == 1 and set(said) == {"exp", "add", *EXPECTED}
    code, said = checked("exp", "smelt.abs")
    assert code == 0 and said["exp"].strip() == "text, kernels, derivative, transpose, second derivative, batch"
    assert not any(name.startswith("planted") for name in registry)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("nonsense", "nonsense cannot be imported: ModuleNotFoundError"), ("none.py", "none.py: there is no such file"),
        ("json", "'json' is no op, and a module that defines none"),
        ("ends.py", "ends.py cannot be imported: SystemExit: os._exit(0)"),
    ],
)  # fmt: skip
def test_names_of_nothing(name: str, words: str, tmp_path: Path) -> None:
    (tmp_path / "ends.py").write_text("import os\nos._exit(0)\n")
    code, said = checked(name, folder=tmp_path)
    assert code == 1 and words in said[""], said


def test_it_goes_with_no_other_answer(capsys: pytest.CaptureFixture[str]) -> None:
    assert opt.main(["--check-ops=exp", "--list-ops"], isolate=False) == 1
    assert "--check-ops" in capsys.readouterr().err
