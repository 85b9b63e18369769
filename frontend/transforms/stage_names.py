"""What a stage of compilation says to somebody who asks it for a name that a later stage has.

``smelt.compile(f)`` has no ``view``: the program has it, ``smelt.compile(f).trace(*args).lower().compile().view``.
"""

from __future__ import annotations

from smelt.ir.errors import MissingNameError, at_user_line

from ..lacking import missing_member

__all__: list[str] = []

#: What leads from a compiled function to each of the stages that follow.
_STEPS = ("trace(*args)", "lower()", "compile()")


def explain_stages(*stages: type) -> None:
    """Let the classes of the stages behind a compiled function, in order, say what a name that they lack is."""
    _stages.extend(stages)
    for stage in stages:
        explain_names(stage)


def explain_names(stage: type) -> None:
    """Give a class a ``__getattr__``, hidden from type checkers, that tells where the name is."""
    setattr(stage, "__getattr__", _missing)  # noqa: B010


_stages: list[type] = []


def _missing(self: object, name: str) -> object:
    if name.startswith("_"):
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
    first = _stages.index(type(self)) + 1 if type(self) in _stages else 0
    for n in range(first, len(_stages)):
        if hasattr(_stages[n], name):
            path = ".".join(["", *_STEPS[first : n + 1], name])
            said = f"{type(self).__name__} has no attribute {name!r}; a later stage has: {path}"
            raise MissingNameError(at_user_line(said))
    raise missing_member(name, self, "smelt.compile")
