"""Planned functions: the steps that they consist of, and where their values lie."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from smelt.ir import mlir
from smelt.ir.builder import Function, OpView, Value, read_function
from smelt.passes.kernels.plan_buffers import offsets_of, origin


@dataclass
class PlannedOp:
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


P = TypeVar("P", bound=PlannedOp)

#: What several loops and branches run is a function of its own where it has more ops than this, or control flow inside:
#: else functions that each run the next one twice would be written out, twice as often at each level.
FEW_OPS = 8
#: A function takes no more arrays than this: code for the places of each takes long to compile.
MOST_ARRAYS = 64

#: Where a value lies: ("table", entry: arguments, then results) or ("arena", offset).
Slot = tuple[str, int]


@dataclass
class Body(Generic[P]):
    """A function that was planned, and its planned ops in order. `places`: how many loops and branches run it."""

    function: Function
    planned_ops: list[P]
    places: int = 0

    @property
    def is_shared(self) -> bool:
        """Whether what it does is a function of the program, which is called wherever it runs."""
        arrays = len(self.function.arguments) + len(self.function.returns)
        if self.places < 2 or arrays > MOST_ARRAYS:
            return False
        return len(self.planned_ops) > FEW_OPS or any(p.kind == "control" for p in self.planned_ops)

    def aliases(self) -> dict[int, int | tuple[str, int]]:
        """Results that are an argument's memory (its number), or another result's ("result", its number)."""
        return aliases_of(self.function.arguments, self.function.returns)

    def slots(self) -> dict[Value, Slot]:
        """Where each value lies."""
        n, aliases = len(self.function.arguments), self.aliases()
        returned = {origin(v): i for i, v in enumerate(self.function.returns) if i not in aliases}
        slots: dict[Value, Slot] = {v: ("table", i) for i, v in enumerate(self.function.arguments)}
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


def carries_in_place(body: Body[Any], found: dict[str, Any], constants: int, carries: int) -> list[int]:
    """The carries of a loop that can stay in one buffer: its body scatters into them, and else does not read them.

    Args:
        body: of the loop; it takes constants, carries, and elements.
        found: the functions of the module.
    """
    arguments = body.function.arguments[constants : constants + carries]
    pairs = zip(arguments, body.function.returns)
    return [i for i, (argument, v) in enumerate(pairs) if _is_updated_in_place(body.function, found, argument, v)]


def _is_updated_in_place(function: Function, found: dict[str, Any], argument: Value, returned: Value) -> bool:
    op = returned.owner
    if op is None or op.op.kind != "call" or argument in function.returns:
        return False
    operation = found[op.attrs["callee"]]
    if "smelt.fusion" not in operation.attributes:
        return False
    if mlir.ir.StringAttr(operation.attributes["smelt.fusion"]).value != "scatter":
        return False
    readers = [v for other in function.ops for v in other.operands if v == argument]
    fusion = read_function(operation)
    scatter = fusion.returns[0].owner
    if len(readers) != 1 or argument not in op.operands or scatter is None:
        return False
    target = fusion.arguments[op.operands.index(argument)]
    inside = [v for other in fusion.ops for v in other.operands if v == target]
    return len(fusion.returns) == 1 and len(inside) == 1 and scatter.operands[0] == target
