"""The reference of functions: every public name says what it is, with an example, and all of it becomes pages."""

from __future__ import annotations

import importlib
import inspect
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import smelt

MODULES = (
    "smelt", "smelt.fft", "smelt.linalg", "smelt.random", "smelt.fast", "smelt.metal", "smelt.cuda", "smelt.utils",
    "smelt.nn", "smelt.nn.losses", "smelt.nn.init", "smelt.optimizers", "smelt.distributed",
)  # fmt: skip


def public(module: str) -> Iterator[tuple[str, Any]]:
    found = importlib.import_module(module)
    for name in found.__all__:
        value = getattr(found, name)
        if value is not Any and (inspect.isfunction(value) or inspect.isclass(value)):
            yield name, value


@pytest.mark.parametrize("module", MODULES)
def test_every_name_has_an_example(module: str) -> None:
    """They are run by test_documents.py."""
    missing = [name for name, value in public(module) if ">>> " not in (inspect.getdoc(value) or "")]
    assert not missing, f"docstrings of {module} without an example"


def test_methods_have_examples() -> None:
    names = [name for name in dir(smelt.array) if name[0] != "_" and callable(getattr(smelt.array, name))]
    assert not [name for name in names if ">>> " not in (inspect.getdoc(getattr(smelt.array, name)) or "")]


def test_pages(tmp_path: Path) -> None:
    """What `make docs` does, on parts."""
    pytest.importorskip("pdoc")
    modules = ["smelt.linalg", "smelt.fft"]
    command = [sys.executable, "-m", "pdoc", "--docformat", "google", "--output-directory", str(tmp_path), *modules]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    for module in modules:
        text = (tmp_path / f"{module.replace('.', '/')}.html").read_text(encoding="utf-8")
        assert all(f'id="{name}"' in text for name, _ in public(module))
