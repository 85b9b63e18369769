"""Which functions of the compiler were called, for tests that ask whether a schedule was taken."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest


def calls_of(
    monkeypatch: pytest.MonkeyPatch, owner: Any, name: str, note: Callable[[tuple[Any, ...], Any], Any]
) -> list[Any]:
    """A list that grows with each call of a function, which does what it did.

    Args:
        owner: the module or class that callers find it in.
        note: what is appended, of the call's arguments and its result.
    """
    found: list[Any] = []
    original = getattr(owner, name)

    def noted(*arguments: Any) -> Any:
        result = original(*arguments)
        found.append(note(arguments, result))
        return result

    monkeypatch.setattr(owner, name, noted)
    return found
