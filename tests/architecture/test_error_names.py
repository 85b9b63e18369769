"""What smelt raises can be caught by a name of `smelt.errors`."""

from __future__ import annotations

import ast
import builtins

import pytest

import smelt

from .sources import ROOMS, python_files

#: What a command of tools raises it prints.
LIBRARY = [room for room in ROOMS if room != "tools"]


def _bases() -> dict[str, list[str]]:
    """Names of bases, by the names of classes."""
    return {
        node.name: [b.id for b in node.bases if isinstance(b, ast.Name)]
        for path in python_files(*LIBRARY)
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.ClassDef)
    }


def test_all_errors_have_a_public_name() -> None:
    bases, named = _bases(), set(smelt.errors.__all__) - {"SmeltError"}

    def among(name: str, wanted: set[str]) -> bool:
        return name in wanted or any(among(base, wanted) for base in bases.get(name, []))

    ours = {name for name in bases if among(name, {"SmeltError"}) and name[0] != "_"} - {"SmeltError"}
    internal = {name for name in ours if among(name, {"InternalError"})}
    assert named <= ours and len(ours) > 40 and len(internal) > 5
    assert not {name for name in ours - internal if not among(name, named)}
    assert not internal & named


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
