"""Scans along the axis that lies along memory, in vectors.

An element of a scan waits for the one before it, so a row alone leaves most of the processor idle. Where there are as
many rows as a vector has lanes, squares of their elements are transposed in registers: a lane is a row, and each row
is scanned in order. With fewer rows the elements of one vector are combined with those one, two, four, ... before them,
if an op says that this gives the same (`Cumulative.regroups`). Totals with more digits than the elements have are then
those of chunks, which themselves are scanned from nothing: conversions of each element would take longer than the scan.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from smelt.backends.lowering import Fused
from smelt.backends.plan import is_static
from smelt.backends.scan_scatter import ScanPlan
from smelt.ir.builder import Value
from smelt.ir.index import linearize
from smelt.ir.ops.scan_sort import Cumulative
from smelt.ir.scalar import INDEX, Scalar, compute_dtype
from smelt.passes.kernels.analysis import collect_reads

from .kernel import CpuKernel, Memory
from .streaming import emit_line, follows, is_large, prefetch

#: Puts what came before a chunk to a result within it.
Before = Callable[[Scalar], Scalar]
#: Elements of a row that are computed, scanned and stored at a time.
CHUNK = 64
#: Length of a line of them: no power of two, so that the rows of a square do not collide in L1.
PITCH = CHUNK + 16
#: Elements of a row that is scanned alone.
LONG = 512
#: Lanes of a vector, at most.
MOST_LANES = 16
#: How many chunks ahead operands are fetched.
AHEAD = 4


def lanes_of(x: Value) -> int:
    """Lanes of a vector of a scan's elements; 0 where there are none."""
    dtype = compute_dtype(x.dtype)
    return 0 if dtype.kind in "bc" else min(MOST_LANES, 64 // dtype.size)


class RowScan:
    """The loops over rows of a scan.

    Args:
        rows: the loop over rows that lie beside each other; None: there is one row.
    """

    def __init__(self, k: CpuKernel, plan: ScanPlan, out: Memory, rows: Fused | None):
        self.k, self.plan, self.out, self.rows = k, plan, out, rows
        self.op, self.steps = plan.op.rules(Cumulative), plan.along
        self.inclusive: bool = plan.op.attrs["inclusive"]
        self.lanes, self.dtype = lanes_of(plan.x), compute_dtype(plan.x.dtype)
        self.total = compute_dtype(self.op.total_dtype(plan.x.dtype))
        #: whether a chunk is scanned from nothing
        self.by_chunks = self.total is not self.dtype and self.op.regroups
        #: dtype of what a chunk has come to
        self.within = self.dtype if self.by_chunks else self.total

    def beside(self, first: Scalar, last: Scalar) -> None:
        """As many rows as a vector has lanes, from `first` on; beyond the last row it once more."""
        k, lanes, rows = self.k, self.lanes, self.rows
        assert rows is not None
        lines = k.scratch(lanes * PITCH, self.dtype)

        def each(row: Callable[[Scalar], None]) -> None:
            def one(r: Scalar) -> None:
                with k.at_position(rows, k.op("arith.minui", [first + r, last - 1], INDEX)):
                    row(r * PITCH)

            k.loop(None, k.const(0, INDEX), k.const(lanes, INDEX), one)

        def square(before: Before, at: Scalar, total: Scalar) -> list[Scalar]:
            places = [at + r * PITCH for r in range(lanes)]
            found = []
            for x in k.transposed([k.load_vector(lines, place) for place in places]):
                after = self.op.combine(k, total, k.convert(x, self.within))
                found.append(before(after if self.inclusive else total))
                total = after
            for place, x in zip(places, k.transposed(found)):
                k.store_vector(x, lines, place)
            return [total]

        self._chunks(CHUNK, square, lambda part: each(lambda line: part(lines, line)))

    def alone(self) -> None:
        """The row where the loops stand."""
        k, lanes = self.k, self.lanes
        line = k.scratch(LONG, self.dtype)

        def vector(before: Before, at: Scalar, total: Scalar) -> list[Scalar]:
            start, x, step = self.plan.identity(k), k.load_vector(line, at), 1
            while step < lanes:
                x = self.op.combine(k, k.shifted(x, start, step), x)
                step *= 2
            after = self.op.combine(k, total, k.convert(x, self.within))
            k.store_vector(before(after if self.inclusive else k.shifted(after, total, 1)), line, at)
            return [k.last_lane(after)]

        self._chunks(LONG, vector, lambda part: part(line, k.const(0, INDEX)))

    def _chunks(
        self, size: int, scan: Callable[[Before, Scalar, Scalar], list[Scalar]],
        each: Callable[[Callable[[Memory, Scalar], None]], None],
    ) -> None:  # fmt: skip
        """Go through the row by `size` elements.

        Args:
            scan: of what lies in L1, a vector's step along the row, given what puts chunks before this one to a result,
                where it is, and what came before; what it leaves.
            each: calls a function with each line in L1 and where in it the row begins.
        """
        k, zero, count = self.k, self.k.const(0, INDEX), self.k.const(self.plan.length, INDEX)

        def chunk(at: Scalar, total: Scalar) -> list[Scalar]:
            with k.vectors(0):
                end = k.op("arith.minui", [at + size, count], INDEX)
                each(lambda lines, line: self._read(lines, line, at, end, size))
            before = self._before(total)
            start = self.plan.identity(k, self.within) if self.by_chunks else total
            left = k.loop(None, zero, end - at, lambda *of: scan(before, *of), [start], step=self.lanes)
            with k.vectors(0):
                each(lambda lines, line: self._write(lines, line, at, end))
            return [self.op.combine(k, total, k.convert(left[0], self.total))] if self.by_chunks else left

        with k.vectors(self.lanes):
            k.loop(None, zero, count, chunk, [self.plan.identity(k, self.total)], step=size)

    def _before(self, total: Scalar) -> Before:
        """Puts the total of the chunks before to what an element of this one has come to."""
        k = self.k
        if not self.by_chunks:
            return lambda x: k.convert(x, self.dtype)
        high = k.convert(total, self.dtype)
        rest = k.convert(total - k.convert(high, self.total), self.dtype)
        # Nothing, not a positive zero, where there is no rest; infinities less infinities are no rest.
        is_rest = ((rest > 0) & (rest < math.inf)) | ((rest < 0) & (rest > -math.inf))
        low = k.select(is_rest, rest, self.plan.identity(k))
        return lambda x: self.op.combine(k, high, self.op.combine(k, low, x))

    def _read(self, lines: Memory, line: Scalar, first: Scalar, last: Scalar, chunk: int) -> None:
        """Compute the elements first … last of a row, and fetch for later ones what they are computed from."""
        k, x, place = self.k, self.plan.x, self.plan.place
        with k.at_position(self.steps, first):
            for v, places in collect_reads(self.plan.body.ops[:-1], [(x, place)]).items():
                for at in places:
                    known = v.owner is None and is_large(v.aval) and is_static(at)
                    if known and follows(linearize(at, v.shape), self.steps):
                        prefetch(k, k.memory[v], k.index(linearize(at, v.shape)), AHEAD * chunk, chunk)
        k.loop(self.steps, first, last, lambda i: k.write(k.value(x, place), lines, line + (i - first)))

    def _write(self, lines: Memory, line: Scalar, first: Scalar, last: Scalar) -> None:
        """Store what was made of the elements first … last."""
        k, out, place = self.k, self.out, self.plan.place

        def element() -> list[Scalar]:
            return [k.read(lines, line + (k.loops[self.steps.names[0]][1] - first))]

        emit_line(k, self.steps, first, last, [(out, place)], element)
