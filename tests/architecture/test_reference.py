"""The reference of functions: every public name says what it is, with an example, and all of it becomes pages."""

from __future__ import annotations

import ast
import importlib
import inspect
import subprocess
import sys
import textwrap
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


def _raised(function: Any) -> set[str]:
    """The errors that the body of a function raises, by name."""
    tree = ast.parse(textwrap.dedent(inspect.getsource(inspect.unwrap(function))))
    calls = [node.exc for node in ast.walk(tree) if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call)]
    return {c.func.id for c in calls if isinstance(c.func, ast.Name) and c.func.id.endswith("Error")}


@pytest.mark.parametrize("module", MODULES)
def test_every_function_says_what_it_raises(module: str) -> None:
    functions = [(name, value) for name, value in public(module) if inspect.isfunction(value)]
    untold = {name: [e for e in _raised(value) if e not in (inspect.getdoc(value) or "")] for name, value in functions}
    assert not {name: errors for name, errors in untold.items() if errors}


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
