"""Plan-buffers: every intermediate gets a place in one arena before the program runs.

Before::

    %0 = func.call @fused_exp(%x) : (tensor<4x8xf32>) -> tensor<4x8xf32>
    %1 = "smelt.dot_general"(%0, %y) ...
    return %1

After (results that are returned have buffers of their own)::

    func.func @main(...) attributes {smelt.arena_bytes = 128 : i64} {
      %0 = func.call @fused_exp(%x) {smelt.offset = array<i64: 0>} ...
      %1 = "smelt.dot_general"(%0, %y) {smelt.offset = array<i64: -1>} ...

Offsets are multiples of 64 bytes; space is used again as soon as nothing reads it any more. A
reshape lies where its operand lies (-2). Kernels that need scratch between their steps get it
under ``smelt.scratch``.

The functions that control flow runs are planned in the same way, each in an arena of its own. A
control op has in its caller's arena, under ``smelt.scratch``, room for the arena of what it runs
and for its own memory, laid out by `workspace`.
"""

from __future__ import annotations

from bisect import insort
from collections import Counter
from dataclasses import dataclass
from typing import Any

from smelt.ir import mlir
from smelt.ir.aval import MAX_BYTES
from smelt.ir.builder import Function, OpView, Value, functions, read_function
from smelt.ir.context import parse_aval
from smelt.ir.control import SCAN, WHILE, callees, layout
from smelt.ir.dialect import context
from smelt.ir.errors import IRError, OutOfMemoryError, at_user_line

from ..registry import Pass, register_pass
from ..rewrite import ARENA_BYTES
from .analysis import is_row_reduction

ALIGNMENT = 64
#: Kernels may write arrays of this size in whole aligned lines, wherever they lie in a stacked array.
LARGE = 1 << 20


@register_pass("plan-buffers")
@dataclass(frozen=True)
class PlanBuffersPass(Pass):
    """Offsets of intermediates in one arena."""

    def run(self, module: Any, statistics: Counter) -> None:
        found = functions(module)
        if "main" in found:
            planning = _Planning(found)
            planning.plan("main")
            statistics["functions planned"] += len(planning.changed)
            statistics["arena bytes"] += arena_bytes(found["main"]) if planning.changed else 0


class _Planning:
    """The plans of the functions of a module, as far as control flow of ``@main`` runs them.

    Attributes:
        changed: functions that had no plan, or another one.
    """

    def __init__(self, found: dict[str, Any]):
        self.found = found
        self.planned: set[str] = set()
        self.changed: set[str] = set()

    def plan(self, name: str) -> None:
        """Plan a function, after those that its control flow runs."""
        self.planned.add(name)
        function = read_function(self.found[name])
        for op in function.ops:
            if op.op.kind == "control":
                for callee in callees(op):
                    if callee not in self.planned:
                        self.plan(callee)
        total, is_new = plan(function, self.found)
        values = [*function.arguments, *(v for op in function.ops for v in op.results)]
        if max([total, *(v.aval.nbytes for v in values)]) >= MAX_BYTES:
            largest = max(values, key=lambda v: v.aval.nbytes)
            raise OutOfMemoryError(f"more memory than can be addressed is planned for @{name}: {largest.aval}, …")
        i64 = mlir.ir.IntegerType.get_signless(64, context())
        if _note(self.found[name], ARENA_BYTES, mlir.ir.IntegerAttr.get(i64, total)) or is_new:
            self.changed.add(name)


def _note(operation: Any, name: str, attribute: Any) -> bool:
    """Let an operation have an attribute, or none (None); whether it had another one, or none."""
    attributes = operation.attributes
    if name in attributes:
        if attribute is None:
            del attributes[name]
            return True
        if attributes[name] == attribute:
            return False
    elif attribute is None:
        return False
    attributes[name] = attribute
    return True


def arena_bytes(operation: Any) -> int:
    """The size of a planned function's arena."""
    return int(mlir.ir.IntegerAttr(operation.attributes[ARENA_BYTES]).value)


class Arena:
    """First-fit allocation over known lifetimes."""

    def __init__(self) -> None:
        self.free: list[tuple[int, int]] = []  #: (offset, size), sorted and merged
        self.end = 0

    def allocate(self, size: int) -> int:
        size = -(-max(size, 1) // ALIGNMENT) * ALIGNMENT
        best = min((s for s in self.free if s[1] >= size), key=lambda s: s[1], default=None)
        if best is not None:
            self.free.remove(best)
            offset, have = best
            if have > size:
                insort(self.free, (offset + size, have - size))
            return offset
        if self.free and sum(self.free[-1]) == self.end:  # grow the last hole
            offset, _ = self.free.pop()
        else:
            offset = self.end
        self.end = offset + size
        return offset

    def release(self, offset: int, size: int) -> None:
        size = -(-max(size, 1) // ALIGNMENT) * ALIGNMENT
        merged: list[tuple[int, int]] = []
        for at, have in sorted([*self.free, (offset, size)]):
            if merged and sum(merged[-1]) == at:
                merged[-1] = (merged[-1][0], merged[-1][1] + have)
            else:
                merged.append((at, have))
        self.free = merged


def is_view(op: OpView) -> bool:
    """Whether the op's result is its operand's memory."""
    return op.op.is_view


def origin(v: Value) -> Value:
    """The value in whose memory `v` lies."""
    while v.owner is not None and is_view(v.owner):
        v = v.owner.operands[0]
    return v


def plan(main: Function, found: dict[str, Any]) -> tuple[int, bool]:
    """Write the offsets onto the ops of `main`, whose callees are planned; the size of the arena, and whether any
    offset is another one than before."""
    last: dict[Value, int] = {}
    for i, op in enumerate(main.ops):
        for v in op.operands:
            last[origin(v)] = i
    kept = {origin(v) for v in main.returns}
    arena, changed = Arena(), False
    dying: dict[int, list[tuple[int, int]]] = {}
    for i, op in enumerate(main.ops):
        offsets = []
        for v in op.results:
            if is_view(op):
                offsets.append(-2)
            elif v in kept:
                offsets.append(-1)
            else:
                offset = arena.allocate(v.aval.nbytes)
                offsets.append(offset)
                dying.setdefault(max(last.get(v, i), i), []).append((offset, v.aval.nbytes))
        changed |= _note(op.mlir, "smelt.offset", mlir.ir.DenseI64ArrayAttr.get(offsets, context()))
        scratch, place = scratch_bytes(op, found), None
        if scratch:
            offset = arena.allocate(scratch)
            place = mlir.ir.DenseI64ArrayAttr.get([offset], context())
            arena.release(offset, scratch)
        changed |= _note(op.mlir, "smelt.scratch", place)
        for offset, size in dying.pop(i, ()):
            arena.release(offset, size)
    return arena.end, changed


def scratch_bytes(op: OpView, found: dict[str, Any]) -> int:
    """What an op needs while it runs: partial results of a split reduction, the memory of a loop."""
    if op.op.kind == "control":
        return workspace(op, found).size
    if op.op.kind != "call" or "smelt.chunks" not in found[op.attrs["callee"]].attributes:
        return 0
    body = found[op.attrs["callee"]]
    chunks = int(mlir.ir.IntegerAttr(body.attributes["smelt.chunks"]).value)
    total = 0
    for inner in read_function(body).ops:
        if is_row_reduction(inner):
            count, held = max(1, inner.results[0].aval.size) * chunks, max(8, inner.operands[0].dtype.size)
            total += 2 * (-(-count * held // ALIGNMENT) * ALIGNMENT)  # what was found so far, and where
    return total


@dataclass(frozen=True)
class Workspace:
    """The memory of a control op: offsets into its scratch.

    Attributes:
        arena: of the arena of the functions that it runs, of which one runs at a time.
        carries: of the second buffer of each carry; None for one that the loop never changes. A loop
            reads a carry in one buffer and writes it in the other; the first is the result's.
        flag: of what the condition of a while says.
        elements: of the element of each stacked result that cannot be written in its place; else None.
        size: of all.
    """

    arena: int
    carries: tuple[int | None, ...]
    flag: int
    elements: tuple[int | None, ...]
    size: int


def workspace(op: OpView, found: dict[str, Any]) -> Workspace:
    """The layout of a control op's scratch; what it runs is planned."""
    end = 0

    def take(size: int) -> int:
        nonlocal end
        offset, end = end, end + -(-max(size, 1) // ALIGNMENT) * ALIGNMENT
        return offset

    arena = take(max(arena_bytes(found[name]) for name in callees(op)))
    carries: list[int | None] = []
    elements: list[int | None] = []
    state = layout(op.op, op.attrs, len(op.operands)).carries
    if op.op is WHILE or op.op is SCAN:
        operation = found[op.attrs["body"]]
        if state:
            body = read_function(operation)
            for argument, v in zip(body.arguments[state.start : state.stop], body.returns):
                carries.append(None if origin(v) is argument else take(v.aval.nbytes))
        results = mlir.ir.FunctionType(mlir.ir.TypeAttr(operation.attributes["function_type"]).value).results
        for nbytes in [parse_aval(kind).nbytes for kind in results[len(state) :]]:
            aligned = nbytes < LARGE or nbytes % ALIGNMENT == 0
            elements.append(None if aligned else take(nbytes))
    flag = take(1) if op.op is WHILE else 0
    return Workspace(arena, tuple(carries), flag, tuple(elements), end)


def offsets_of(op: OpView) -> list[int]:
    """Where the results of a planned op lie: offsets in the arena, -1: a returned value, -2: its operand."""
    try:
        return list(mlir.ir.DenseI64ArrayAttr(op.mlir.attributes["smelt.offset"]))
    except KeyError:
        message = f"smelt.{op.name} was not planned: a pipeline for this device ends with plan-buffers"
        raise IRError(at_user_line(message)) from None


def scratch_of(op: OpView) -> int:
    """Where the scratch of a planned op lies in the arena."""
    attributes = op.mlir.attributes
    return mlir.ir.DenseI64ArrayAttr(attributes["smelt.scratch"])[0] if "smelt.scratch" in attributes else 0
