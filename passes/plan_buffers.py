"""Plan-buffers: every intermediate of @main gets a place in one arena before the program runs.

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
"""

from __future__ import annotations

from bisect import insort
from collections import Counter
from dataclasses import dataclass
from typing import Any

from smelt.ir import mlir
from smelt.ir.builder import Function, OpView, Value, functions, read_function
from smelt.ir.dialect import context

from .fusion_analysis import is_row_reduction
from .registry import Pass, register_pass

ALIGNMENT = 64


@register_pass("plan-buffers")
@dataclass(frozen=True)
class PlanBuffersPass(Pass):
    """Offsets of intermediates in one arena."""

    def run(self, module: Any, statistics: Counter) -> None:
        found = functions(module)
        if "main" not in found:
            return
        main = read_function(found["main"])
        total = plan(main, found)
        statistics["arena bytes"] += total
        ir = mlir.ir
        i64 = ir.IntegerType.get_signless(64, context())
        main.mlir.attributes["smelt.arena_bytes"] = ir.IntegerAttr.get(i64, total)


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


def plan(main: Function, found: dict[str, Any]) -> int:
    """Write the offsets onto the ops of `main`; the size of the arena."""
    last: dict[Value, int] = {}
    for i, op in enumerate(main.ops):
        for v in op.operands:
            last[origin(v)] = i
    kept = {origin(v) for v in main.returns}
    arena = Arena()
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
        op.mlir.attributes["smelt.offset"] = mlir.ir.DenseI64ArrayAttr.get(offsets, context())
        scratch = scratch_bytes(op, found)
        if scratch:
            offset = arena.allocate(scratch)
            op.mlir.attributes["smelt.scratch"] = mlir.ir.DenseI64ArrayAttr.get([offset], context())
            arena.release(offset, scratch)
        for offset, size in dying.pop(i, ()):
            arena.release(offset, size)
    return arena.end


def scratch_bytes(op: OpView, found: dict[str, Any]) -> int:
    """What a kernel keeps between its steps: partial results of a split reduction."""
    if op.op.kind != "call" or "smelt.chunks" not in found[op.attrs["callee"]].attributes:
        return 0
    body = found[op.attrs["callee"]]
    chunks = int(mlir.ir.IntegerAttr(body.attributes["smelt.chunks"]).value)
    total = 0
    for inner in read_function(body).ops:
        if is_row_reduction(inner):
            size = max(1, inner.results[0].aval.size) * chunks
            total += 2 * (-(-size * 8 // ALIGNMENT) * ALIGNMENT)
    return total
