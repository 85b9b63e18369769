"""Where in a model a call stands: errors inside of layers name the path of the layer."""

from __future__ import annotations

from collections import deque
from types import CodeType, FrameType
from typing import Any

from smelt.ir import errors

from .base import Module

__all__: list[str] = []


def path_within(root: Module, wanted: Module) -> str | None:
    """The path of a module inside of another one: the first that is found, "" for itself; None if it is not there."""
    pending: deque[tuple[str, Any]] = deque([("", root)])
    seen: set[int] = set()
    while pending:
        path, value = pending.popleft()
        if value is wanted:
            return path
        if id(value) in seen or not isinstance(value, (dict, list, tuple)):
            continue
        seen.add(id(value))
        entries = value.items() if isinstance(value, dict) else enumerate(value)
        pending += [(f"{path}.{key}" if path else str(key), below) for key, below in entries]
    return None


def _is_method(code: CodeType) -> bool:
    """Whether a class's body has a function. To look at locals of other frames would keep what these have: Python's
    copies of them live as long as the frames (before 3.13)."""
    owner = getattr(code, "co_qualname", "").rpartition(".")[0]  # since 3.11
    named = code.co_varnames[:1] == ("self",)
    return code.co_argcount > 0 and (named or (owner != "" and not owner.endswith("<locals>")))


def place_of(frame: FrameType | None) -> str:
    """The path of the module whose method a frame, or what called it, runs, from the outermost one that holds it.

    A module that none holds, such as one that is being made of another, counts as part of the method that called it.
    """
    running: list[Module] = []
    while frame is not None:
        if _is_method(frame.f_code):  # its module is its first argument, whatever that is called
            module = frame.f_locals.get(frame.f_code.co_varnames[0])
            if isinstance(module, Module) and not any(module is known for known in running):
                running.append(module)
        frame = frame.f_back
    for at, module in enumerate(running):
        for root in reversed(running[at + 1 :]):
            if path := path_within(root, module):
                return f"{type(root).__name__}.{path} ({type(module).__name__})"
    return ""


errors.places_in_programs.append(place_of)
