"""Functions that were planned: what they consist of, and where their values lie."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from smelt.ir.builder import Function, OpView, Value
from smelt.passes.plan_buffers import offsets_of, origin


@dataclass
class Piece:
    """One op of a function and how it runs.

    Attributes:
        kind: "kernel", "control", or a backend's own.
        steps: of a kernel: the backend's launches, in order.
        bodies: the functions that a control op runs.
    """

    op: OpView
    kind: str
    steps: list[Any] = field(default_factory=list)
    bodies: tuple[Body[Any], ...] = ()

    def body(self, name: str) -> Body[Any]:
        """One of `bodies`, by the function's name."""
        return next(body for body in self.bodies if body.function.name == name)


P = TypeVar("P", bound=Piece)


@dataclass
class Body(Generic[P]):
    """A function that was planned, and its pieces in order."""

    function: Function
    pieces: list[P]

    def aliases(self) -> dict[int, int | tuple[str, int]]:
        """Results that are an argument's memory (its number), or another result's ("result", its number)."""
        return aliases_of(self.function.arguments, self.function.returns)

    def slots(self) -> dict[Value, tuple[str, int]]:
        """Where each value lies: ("table", entry: arguments, then results) or ("arena", offset)."""
        n, aliases = len(self.function.arguments), self.aliases()
        returned = {origin(v): i for i, v in enumerate(self.function.returns) if i not in aliases}
        slots = {v: ("table", i) for i, v in enumerate(self.function.arguments)}
        for op in self.function.ops:
            for v, offset in zip(op.results, offsets_of(op)):
                if offset == -2:
                    slots[v] = slots[origin(v)]
                else:
                    slots[v] = ("table", n + returned[v]) if offset == -1 else ("arena", offset)
        return slots


def aliases_of(arguments: Sequence[Value], returns: Sequence[Value]) -> dict[int, int | tuple[str, int]]:
    """See `Body.aliases`."""
    numbers = {v: i for i, v in enumerate(arguments)}
    seen: dict[Value, int] = {}
    found: dict[int, int | tuple[str, int]] = {}
    for i, v in enumerate(returns):
        source = origin(v)
        if source in numbers:
            found[i] = numbers[source]
        elif source in seen:
            found[i] = ("result", seen[source])
        else:
            seen[source] = i
    return found
