"""The catalogue of planted faults fits the code as it is."""

from __future__ import annotations

import ast
import subprocess
import sys

import pytest

from .catalogue import FAULTS, ROOT, Fault, planted


@pytest.mark.parametrize("fault", FAULTS, ids=[f.name for f in FAULTS])
def test_fault_can_be_planted(fault: Fault):
    for edit in fault.edits:
        text = (ROOT / edit.file).read_text(encoding="utf-8")
        changed = planted(text, edit)
        assert changed != text
        if edit.file.endswith(".py"):
            assert ast.dump(ast.parse(changed)) != ast.dump(ast.parse(text)), "a fault changes what the code does"
            command = [sys.executable, "-m", "ruff", "check", "-q", "--select=F821", "--stdin-filename", edit.file, "-"]
            names = subprocess.run(command, cwd=ROOT, input=changed, capture_output=True, text=True)
            assert names.returncode == 0, f"any test would notice this one: {names.stdout}"
    for test in fault.tests:
        path = ROOT / test.split("::")[0]
        assert path.is_file() or any(path.rglob("test_*.py")), f"no tests in {test}"


def test_catalogue_is_broad():
    assert len(FAULTS) >= 40
    assert len({f.name for f in FAULTS}) == len(FAULTS)
    rooms = {edit.file.split("/")[0] for f in FAULTS for edit in f.edits}
    assert {"ir", "passes", "backends", "runtime", "frontend"} <= rooms
