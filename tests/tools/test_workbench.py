"""The package in examples/workbench: installed without a network, it is listed, used and tested as its README says."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

PROGRAM = """
import numpy as np
import smelt
from workbench import softsign

x = smelt.array([-3.0, 0.0, 1.0])
print(softsign(x).tolist(), smelt.grad(lambda x: softsign(x).sum())(x).tolist())
print(smelt.vmap(softsign)(smelt.array([[1.0, -1.0]])).tolist())


def f(x):
    return smelt.exp(softsign(x) / 3.0)


plain, changed = smelt.compile(f), smelt.compile(f, pipeline="before:fuse=workbench-reciprocal,workbench-census")
np.testing.assert_allclose(np.array(changed(x)), np.array(plain(x)), rtol=1e-6)
for compiled in plain, changed:
    program = compiled.trace(x).lower().compile("before:fuse=workbench-reciprocal" if compiled is changed else None)
    print("div" in program.as_text("plan-buffers"))
"""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder into which the package is installed; its sources lie beside it."""
    folder = tmp_path_factory.mktemp("workbench")
    shutil.copytree(ROOT / "examples" / "workbench", folder / "source", ignore=shutil.ignore_patterns("__pycache__"))
    install = ["-m", "pip", "install", "--no-index", "--no-build-isolation", "--no-deps", "--target", folder / "site"]
    done = subprocess.run(
        [sys.executable, *install, folder / "source"], capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return folder / "site"


def run(site: Path, *command: str | Path, **variables: str) -> subprocess.CompletedProcess[str]:
    paths = [str(site), *filter(None, [os.environ.get("PYTHONPATH")])]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(paths), "SMELT_CACHE": "0"} | variables
    return subprocess.run(
        [sys.executable, *command], capture_output=True, text=True, timeout=300, cwd=site, env=environment
    )


def test_its_lit_tests(site: Path) -> None:
    done = run(site, "-c", "from lit.main import main; main()", "-v", "-j1", site.parent / "source" / "tests")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Passed: 5" in done.stdout


def test_it_is_listed_and_its_rewrites_keep_what_they_promise(site: Path) -> None:
    done = run(site, "-m", "smelt.tools.opt", "--list-passes")
    for line in ("--workbench-reciprocal\n", "--workbench-census\n", "    smallest=1e-30\n"):
        assert line in done.stdout, done.stdout + done.stderr
    assert "warning" not in done.stderr
    assert "workbench_softsign elementwise" in " ".join(run(site, "-m", "smelt.tools.opt", "--list-ops").stdout.split())
    done = run(site, "-m", "smelt.tools.opt", "--check-rewrites=workbench")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "recognize-softsign: exact" in done.stdout and "factor: within" in done.stdout


def test_rules_of_its_ops_agree(site: Path) -> None:
    done = run(site, "-m", "smelt.tools.opt", "--check-ops=workbench.ops")
    assert done.returncode == 0, done.stdout + done.stderr
    said = "workbench_softsign: text, kernels, derivative, transpose, second derivative, batch\n"
    assert done.stdout == f"{said}workbench_iterate: not checked: it transforms functions, and means what it states\n"


def test_it_is_used_in_a_function(site: Path) -> None:
    done = run(site, "-c", PROGRAM)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == ["[-0.75, 0.0, 0.5] [0.0625, 1.0, 0.25]", "[[0.5, -0.5]]", "True", "False"]


FUNCTIONS = """
import numpy as np
import smelt
from workbench import iterate

a, x = smelt.array([1.0, 2.0]), smelt.array([0.5, 1.5])


def looped(x):
    return iterate(lambda y: smelt.sin(y) * a, x, 3)


def written(x):
    for _ in range(3):
        x = smelt.sin(x) * a
    return x


def slope(f):
    return smelt.grad(lambda x: f(x).sum())


ways = (lambda f: f, slope, lambda f: slope(slope(f)), lambda f: lambda x: smelt.vmap(slope(f))(smelt.stack([x, -x])),
        lambda f: smelt.compile(slope(f)), lambda f: slope(lambda x: smelt.vmap(f)(smelt.stack([x, -x]))),
        lambda f: smelt.compile(lambda x: smelt.jvp(f, [x], [x])[1][0]))
for device in ("cpu", "reference", "workbench", "metal:sim"):
    with smelt.stream(device):
        for way in ways:
            np.testing.assert_allclose(np.array(way(looped)(x)), np.array(way(written)(x)), rtol=1e-5)
for wrong in (lambda y: y[0], lambda y: smelt.zeros(3)):
    try:
        iterate(wrong, x, 2)
    except smelt.SmeltError as error:
        print(error)
smelt.export_function("f.smelt", looped, x)
np.testing.assert_allclose(np.array(smelt.import_function("f.smelt")(x)[0]), np.array(written(x)), rtol=1e-6)
print(smelt.make_ir(looped)(x))
"""


def test_an_op_of_functions(site: Path) -> None:
    """It is transformed like any other, on each device; its text is read where the package is not imported."""
    done = run(site, "-c", FUNCTIONS)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("f must return arrays of the types that it takes first") == 2
    text = done.stdout[done.stdout.index("module") :]
    assert '"smelt.workbench_iterate"' in text
    (site / "f.mlir").write_text(text)
    done = run(site, "-m", "smelt.tools.opt", "f.mlir", "--inline", "--short")
    assert done.returncode == 0 and "scan(" in done.stdout, done.stdout + done.stderr


def test_its_device(site: Path) -> None:
    """It is found by its name, without an import."""
    program = "import smelt\nf = smelt.compile(smelt.grad(lambda x: (x * x + x).sum()))\n"
    program += "print(smelt.default_device(), f(smelt.arange(4.0)).tolist())\n"
    program += "from workbench.device import Counting\nprint(Counting.operations > 0)\n"
    done = run(site, "-c", program, SMELT_DEVICE="workbench", SMELT_SMALL_WORK="0")
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-2:] == ["Device(workbench, 0) [1.0, 3.0, 5.0, 7.0]", "True"]


def test_it_is_used_in_all_programs(site: Path) -> None:
    program = "import smelt\nc = smelt.compile(lambda x: smelt.exp(x) / 3)\nx = smelt.ones(4)\n"
    program += "print(c(x).tolist()[0])\nprint('mul' in c.trace(x).lower().compile().as_text('plan-buffers'))\n"
    done = run(site, "-c", program, SMELT_PIPELINE="before:fuse=workbench-reciprocal,rewrite{set=workbench}")
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[1] == "True"
    done = run(site, "-c", program, SMELT_PIPELINE="before:fuse=workbench-reciprocol")
    assert done.returncode and "unknown pass 'workbench-reciprocol'" in done.stderr, done.stderr
