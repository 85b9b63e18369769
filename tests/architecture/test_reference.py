"""The reference of functions: every public name says what it is, with an example, and all of it becomes pages."""

from __future__ import annotations

import inspect
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import smelt

from .reference import Documented, documented, modules, public

MODULES = sorted(modules())


#: What a docstring lacks, by rule.
RULES: dict[str, Callable[[Documented], object]] = {
    "it names every parameter": lambda d: d.untold,
    "its Args: are parameters": lambda d: d.stale,
    "it names the errors that the body raises": lambda d: d.untold_errors,
    "it says which things are returned": lambda d: d.returns_untold,
    "it is there, with an example (run by test_documents.py)": lambda d: not d.has_example,
}


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("module", MODULES)
def test_docstrings(module: str, rule: str) -> None:
    lacking = {d.path: RULES[rule](d) for d in documented(module)}
    assert not {path: what for path, what in lacking.items() if what}, f"of the docstring of each public name: {rule}"


def _points(x: int, scale: float = 1.0) -> int:
    """As of `smelt.linalg.svdvals`.

    Args:
        factor: there is none.
    """
    raise ValueError(scale)


def test_the_rules_find_what_is_missing() -> None:
    found = Documented("points", _points)
    assert found.untold == ["scale"] and found.stale == ["factor"] and found.untold_errors == ["ValueError"]
    assert ">>> " in found.whole_text and not found.has_example, "that is of the function at which it points"


def test_methods_have_examples() -> None:
    names = [name for name in dir(smelt.array) if name[0] != "_" and callable(getattr(smelt.array, name, None))]
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
