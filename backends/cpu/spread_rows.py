"""Rows whose elements lie apart, in pieces between which others' lie: groups of channels, reduced over all places.

One row after the other reads a few elements out of each line of memory, and comes back to that line for the next row.
So neighbouring rows run together along what lies beside each other, each element of a piece with an accumulator of its
own; these are combined in the end, in a fixed order::

    for places: for rows, channels: sums[rows, channels] += x[places, rows, channels]
    for rows: sum[rows] = Σ sums[rows, channels]

What is the same in all of a row's places is laid out for each of its channels.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

from smelt.backends.accumulate import Accumulator
from smelt.backends.lowering import Coordinates, Fused, fuse_variables
from smelt.backends.plan import Plan, always_inside
from smelt.ir.builder import Value
from smelt.ir.index import linearize, names_of
from smelt.ir.scalar import INDEX, Scalar, compute_dtype
from smelt.passes.kernels.analysis import is_row_reduction

from .kernel import CpuKernel, Memory
from .loops import reduce_loops
from .rows import LINE, RowKernel, is_line
from .streaming import follows

#: Elements of a piece, at most: longer ones fill vectors by themselves. Pieces of a row, at least: to combine what each
#: element has takes as long as some steps.
LONGEST, FEWEST = 128, 8
#: Bytes of the elements of a tile that are gone over more than once, which stay in a cache; elements of a line, then.
NEAR_BYTES, NARROWEST = 512 << 10, 128
#: Tiles, where there are rows enough: for threads.
TILES = 16


def rows_together(plan: Plan, loops: Sequence[Fused]) -> int:
    """How many rows are to run together along what lies beside each other; none where they had better not."""
    spaces = [space for space in plan.spaces if space]
    if is_line(plan) or not loops or len(spaces) != 1:
        return 0
    (space,) = spaces
    inner = fuse_variables(plan.spaces[space], plan.uses)
    if len(inner) < 2 or not 1 < inner[-1].extent <= LONGEST or loops[-1].extent < 2:
        return 0
    pieces = math.prod(space) // inner[-1].extent
    if pieces < FEWEST or not _is_beside(plan, loops[-1], inner):
        return 0
    several = len({plan.stage[v] for v in plan.space_of if plan.space_of[v]}) > 1
    size = max(v.dtype.size for v, _ in plan.loads)
    line = max(NARROWEST, min(LINE, NEAR_BYTES // (pieces * size))) if several else LINE
    units = math.prod(loop.extent for loop in loops)
    rows = min(line // inner[-1].extent, max(-(-NARROWEST // inner[-1].extent), units // TILES))
    return max(1, min(loops[-1].extent, rows))


def _is_beside(plan: Plan, lane: Fused, inner: Sequence[Fused]) -> bool:
    """Whether all that is read and written lies beside each other along neighbouring rows, or can be laid out so."""
    if any(op.op.kind == "arg_reduction" for op in plan.reductions):
        return False
    if any(v.dtype.is_complex for op in plan.body.ops for v in (*op.operands, *op.results)):
        return False
    if any(not plan.space_of[op.results[0]] for op in plan.reductions):
        return False
    flat = Fused([*lane.variables, *inner[-1].variables])
    full = [
        (v, plan.places[v]) for v in plan.body.returns
        if plan.space_of[v] and not (v.owner and is_row_reduction(v.owner))
    ]  # fmt: skip
    laid = dict(_same(plan, lane, inner))
    moving = [(v, at) for v, at in plan.loads if not names_of([linearize(at, v.shape)]).isdisjoint(flat.names)]
    reads = [(v, at) for v, at in moving if v not in laid]
    return bool(reads) and all(follows(linearize(at, v.shape), flat) for v, at in (*reads, *full))


def _same(plan: Plan, lane: Fused, inner: Sequence[Fused]) -> list[tuple[Value, Coordinates]]:
    """Operands that are the same in all of a row's pieces, and may be read before a condition of one holds."""
    places: dict[Value, list[Coordinates]] = {}
    for v, at in plan.loads:
        places.setdefault(v, []).append(at)
    apart = {name for loop in inner[:-1] for name in loop.names}
    found = []
    for v, several in places.items():
        names = names_of([linearize(several[0], v.shape)])
        moves = not names.isdisjoint((*lane.names, *inner[-1].names))
        if len(several) == 1 and moves and names.isdisjoint(apart) and always_inside(v, several[0]):
            found.append((v, several[0]))
    return found


class SpreadRowKernel(RowKernel):
    """Builds the loops of neighbouring rows, along what lies beside each other."""

    def __init__(self, k: CpuKernel, plan: Plan, outputs: list[Memory], lane: Fused | None, width: int):
        super().__init__(k, plan, outputs, lane, width)
        assert lane is not None
        (inner,) = filter(None, self.loops.values())
        self.inner = inner[-1]  #: a row's elements that lie beside each other
        self.room = width * self.inner.extent
        self.fetches = False
        self.same = _same(plan, lane, inner)
        self._offset: Scalar | None = None
        self._by_row = False

    def each_lane(self, body: Callable[[], Any]) -> None:
        """Run `body` for all elements that lie beside each other, or once for each row where rows are stored."""
        if self._by_row:
            super().each_lane(body)
            return
        k, lane, first, last = self.k, self.lane, self.first, self.last
        assert lane is not None and first is not None and last is not None
        flat, piece = Fused([*lane.variables, *self.inner.variables]), self.inner.extent
        start = first * piece

        def one(at: Scalar) -> None:
            self._offset = at
            with k.at_position(flat, start + at):
                body()
            self._offset = None

        k.expect(self.room)
        k.loop(None, k.const(0, INDEX), (last - first) * piece, one)

    def lane_offset(self) -> Scalar:
        return super().lane_offset() * self.inner.extent if self._offset is None else self._offset

    def emit_kept(self) -> None:
        self._by_row = True
        super().emit_kept()
        self._by_row = False

    def accumulate_line(self, space, accumulators: Sequence[Accumulator], outputs=(), bounds: Any = None) -> None:
        k = self.k
        *outer, steps, _ = self.loops[space]

        def body(_: list[Scalar]) -> list[Scalar]:
            if outputs:
                k.loop(steps, *self.whole(steps), lambda _: self.each_lane(element))
            else:
                self.accumulate_steps(steps, *self.whole(steps), accumulators)
            return []

        def element() -> None:
            self.advance(accumulators)
            self._store_full(outputs)

        for v, place in self.same:
            if v not in k.provided:
                self._keep_line(v, place)
        self.start_lines(accumulators)
        reduce_loops(k, outer, body, [], bounds)
        for a in accumulators:
            self._combine(a)

    def _combine(self, a: Accumulator) -> None:
        """What the elements of a row's piece have accumulated, into one, which all of them get."""
        k, lines, piece = self.k, self.lines[a.result], self.inner.extent
        assert self.first is not None and self.last is not None
        one, end = k.const(1, INDEX), k.const(piece, INDEX)

        def row(number: Scalar) -> None:
            start = number * piece

            def step(at: Scalar, *state: Scalar) -> list[Scalar]:
                return a.merge(k, list(state), [k.read(m, start + at) for m in lines])

            found = k.loop(None, one, end, step, [k.read(m, start) for m in lines])

            def spread(at: Scalar) -> None:
                for memory, x in zip(lines, found):
                    k.write(x, memory, start + at)

            k.loop(None, k.const(0, INDEX), end, spread)

        k.loop(None, k.const(0, INDEX), self.last - self.first, row)

    def _keep_line(self, value: Value, place: Coordinates) -> None:
        k, memory = self.k, self.k.scratch(self.room, compute_dtype(value.dtype))
        self.each_lane(lambda: k.write(k.value(value, place), memory, self.lane_offset()))
        k.provided[value] = functools.partial(self._read_line, memory)
