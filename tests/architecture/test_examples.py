"""The examples run, and the demo keeps its promises."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest

from .documents import shell
from .sources import ROOT

SMALL = sorted(path for path in (ROOT / "examples").glob("*.py") if path.name != "digits.py")


@pytest.mark.parametrize("path", SMALL, ids=lambda p: p.name)
def test_example_runs(path) -> None:
    done = subprocess.run([sys.executable, path], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert done.stdout


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
