"""Maps whose innermost loop is short, for what they read lies in different orders: a bias added to rows of 16, say.

Most operands and the results go on from one of these loops to the next. So they run as one long loop, by blocks; the
operands that do not are laid out in L1 as if they did, those that are the same for all blocks once.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from smelt.backends.lowering import Coordinates, Fused
from smelt.backends.plan import Plan, always_inside
from smelt.ir.builder import Value
from smelt.ir.index import Index, linearize
from smelt.ir.scalar import INDEX, Scalar, compute_dtype

from .donations import in_place
from .kernel import CpuKernel, KernelModule, Memory
from .loops import Nest, emit_nest
from .schedules import ScheduledKernel, start_kernel
from .streaming import Read, emit_line, follows

#: Longer loops fill vectors by themselves; of shorter ones LLVM runs several side by side.
SHORTEST, LONGEST = 8, 32
#: Elements of a block, and the multiple of rows that it has: each block begins with a line of memory.
BLOCK, ROWS = 2048, 64
#: Lanes of a vector of what is the same along a row.
LANES = 16
#: Operands that are laid out, at most.
LAID_OUT = 4
#: Arrays of fewer elements are not worth more code.
FEWEST = 1 << 14


def build_short_map(module: KernelModule, name: str, plan: Plan, loops: Sequence[Fused]) -> ScheduledKernel | None:
    """The kernel of a map, if its innermost loop is short and what hinders a longer one are some operands."""
    if len(loops) < 2 or not SHORTEST <= loops[-1].extent <= LONGEST:
        return None
    rows, inner, body = loops[-2], loops[-1], plan.body
    tile = max(1, BLOCK // inner.extent // ROWS) * ROWS * inner.extent
    flat = Fused([*rows.variables, *inner.variables])
    if flat.extent < 2 * tile or math.prod(loop.extent for loop in loops) < FEWEST:
        return None
    found = _in_other_order(plan, rows, inner)
    if not found or not all(follows(linearize(plan.places[v], v.shape), flat) for v in body.returns):
        return None
    nest = Nest.plan([*loops[:-2], flat], lanes=True, tile=tile)
    k, outputs, lo, hi = start_kernel(module, name, body)
    memories = {(v, at): k.scratch(tile + LANES, compute_dtype(v.dtype)) for v, at in found}
    laid_out = _LaidOut(k, rows, inner, memories)
    same = [(v, at) for v, at in found if not any(_moves(v, at, loop) for loop in loops[:-1])]
    for v, at in same:
        laid_out.fill(v, at, k.const(0, INDEX), k.const(tile // inner.extent, INDEX))
    targets = [(memory, plan.places[v]) for v, memory in zip(body.returns, outputs)]
    reads = [Read(k.memory[v], at) for v, at in plan.loads if (v, at) not in memories]

    def block(first: Scalar, last: Scalar) -> None:
        for v, at in found:
            if (v, at) not in same:
                length = k.const(inner.extent, INDEX)
                laid_out.fill(v, at, *(k.op("arith.divui", [bound, length], INDEX) for bound in (first, last)))

        def values() -> list[Scalar]:
            there = k.loops[flat.names[0]][1] - first
            for key, memory in memories.items():
                k.scopes[-1][key] = k.read(memory, there)
            return [k.value(v, plan.places[v]) for v in body.returns]

        emit_line(k, flat, first, last, targets, values, reads)

    emit_nest(k, nest, lo, hi, block)
    k.emit("func.return", [], [])
    return ScheduledKernel(name, body, nest.split, [*body.arguments, *body.returns], in_place=in_place(plan))


@dataclass(frozen=True)
class _LaidOut:
    """Operands as the loop over both goes: by value and place, memory for a block of each."""

    k: CpuKernel
    rows: Fused
    inner: Fused
    memories: dict[tuple[Value, Coordinates], Memory]

    def fill(self, v: Value, at: Coordinates, first: Scalar, last: Scalar) -> None:
        """Lay out an operand's elements of the rows first … last."""
        k, inner, memory = self.k, self.inner, self.memories[v, at]
        zero, end = k.const(0, INDEX), k.const(inner.extent, INDEX)

        def element(row: Scalar, j: Scalar) -> None:
            k.write(k.load(v, at), memory, row + j)

        def repeat(row: Scalar) -> None:
            """One element for the row, by vectors: what the last of them has too much the next row overwrites."""
            x = k.load(v, at)
            with k.vectors(LANES):
                everywhere = k.spread(x)
                k.loop(None, zero, end, lambda j: k.store_vector(everywhere, memory, row + j), step=LANES)

        def line(i: Scalar) -> None:
            row = (i - first) * inner.extent
            if _moves(v, at, inner) or v.dtype.kind == "b":
                k.loop(inner, zero, end, lambda j: element(row, j))
            else:
                k.bind(inner, zero)
                repeat(row)

        k.loop(self.rows, first, last, line)


def _in_other_order(plan: Plan, rows: Fused, inner: Fused) -> list[tuple[Value, Coordinates]]:
    """What is read elsewhere than one loop over both would go; nothing where it cannot be laid out, or more is.

    Numbers that are computed from loop variables have to be linear.
    """
    found: list[tuple[Value, Coordinates]] = []
    linear: set[Index] = set()
    for v, at in plan.loads:
        index = linearize(at, v.shape)
        if not _goes_on(index, rows, inner):
            if v.dtype.is_complex or not always_inside(v, at):
                return []
            found.append((v, at))
            linear.add(index)
    if len(found) > LAID_OUT or not all(use in linear or _goes_on(use, rows, inner) for use in plan.uses):
        return []
    return found


def _goes_on(index: Index, rows: Fused, inner: Fused) -> bool:
    """Whether an index continues from the end of the inner loop in the next row."""
    if any(atom.kind != "var" for atom in index.atoms()):
        return False
    (r, _), (i, _) = rows.variables[-1], inner.variables[-1]
    step = index.step(i)
    return step is not None and index.step(r) == step * inner.extent


def _moves(v: Value, at: Coordinates, loop: Fused) -> bool:
    """Whether what is read is not the same at all positions of a loop."""
    return any(linearize(at, v.shape).step(name) != 0 for name in loop.names)
