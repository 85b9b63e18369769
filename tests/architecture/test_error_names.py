"""What smelt raises can be caught by a name of `smelt.errors`."""

from __future__ import annotations

import ast
import builtins
from pathlib import Path

import pytest

import smelt

ROOT = Path(smelt.__file__).resolve().parents[1]
ROOMS = ("ir", "passes", "backends", "runtime", "frontend", "tools")
#: Caught where they are raised, or of commands.
INSIDE = {
    "PlainError", "NeedsModule", "Unreadable", "TooLongError", "Undeclared", "NoInteger", "DescriptionError",
    "ObjectError", "RelocationError", "UsageError", "Finding",
}  # fmt: skip


def _classes() -> dict[str, list[str]]:
    """Names of bases, by the names of classes."""
    found = {}
    for path in (p for room in ROOMS for p in (ROOT / room).rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ClassDef):
                found[node.name] = [b.id for b in node.bases if isinstance(b, ast.Name)]
    return found


def test_all_errors_have_a_public_name() -> None:
    classes, named = _classes(), set(smelt.errors.__all__) - {"SmeltError"}

    def among(name: str, wanted: set[str]) -> bool:
        return name in wanted or any(among(base, wanted) for base in classes.get(name, []))

    ours = {name for name in classes if among(name, {"SmeltError"}) and name[0] != "_"} - {"SmeltError"}
    assert named <= ours and len(ours) > 40
    assert not {name for name in ours - INSIDE if not among(name, named)}
    assert (ours - named) >= INSIDE


def test_the_names() -> None:
    for name in smelt.errors.__all__:
        error = getattr(smelt.errors, name)
        assert issubclass(error, smelt.SmeltError) and error.__doc__, name
        if error is not smelt.SmeltError:
            builtin = [c for c in error.__mro__ if getattr(builtins, c.__name__, None) is c]
            assert builtin[0] not in (Exception, BaseException, object), name
    with pytest.raises(AttributeError, match="smelt has no 'FileFormatError'; errors are in"):
        smelt.FileFormatError  # noqa: B018
    with pytest.raises(AttributeError, match=r"smelt\.errors\.LibraryError"):
        smelt.LinAlgError  # noqa: B018
