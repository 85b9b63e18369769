"""Lines of few rows: of an array of a million by sixteen, reduced along the long axis.

A line of sixteen rows is a vector or less, and its accumulators wait for each other. So several steps of the loop over
the rows run as one line, side by side as they lie in memory, with accumulators of their own; these are combined in the
end, in a fixed order.
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
from smelt.ir.index import Atom, linearize, names_of
from smelt.ir.scalar import INDEX, Scalar, compute_dtype
from smelt.passes.kernels.analysis import is_row_reduction

from .kernel import CpuKernel, Memory
from .loops import reduce_loops
from .rows import LINE, RowKernel

#: Lines of more rows fill vectors.
NARROW = 16
#: So many full lines a line of rows has to read: with fewer, to make ready and combine what each has takes longer than
#: the steps (in windows of 2 x 2 by 8 channels 23 times as long).
LONG = 256
#: Lanes of a vector: what is shorter is taken together in shorter lines, too, of at least so many elements. A row has
#: a few of them, or two at least; one where each step makes results, too.
LANES, SHORTEST, FEW_LINES = 16, 32, 4


def is_narrow(plan: Plan, lane: Fused) -> bool:
    """Whether several steps of each loop over rows are to be one line, and may be."""
    inner = {name for variables in plan.spaces.values() for name, _ in variables}
    if not 0 < lane.extent <= NARROW or steps_beside(plan, lane) < 2:
        return False
    if not all(plan.space_of[op.results[0]] for op in plan.reductions):
        return False
    if any(op.op.kind == "arg_reduction" for op in plan.reductions):
        return False
    steps = [_steps(v, at, lane, inner) for v, at in plan.loads]
    return any(lane.extent in s for s in steps) and all(lane.extent in s for s in steps if s)


def steps_beside(plan: Plan, lane: Fused) -> int:
    """How many steps of a loop over rows are one line."""
    long = max(plan.spaces, key=math.prod, default=())
    if math.prod(long) * lane.extent >= LONG * LINE:
        return LINE // lane.extent
    if lane.extent >= LANES or not long:
        return 1
    steps = fuse_variables(plan.spaces[long], plan.uses)[-1].extent
    whole = LANES // math.gcd(lane.extent, LANES)  # so many steps are whole vectors
    least = -(-SHORTEST // (whole * lane.extent)) * whole
    found = max(least, min(LINE // lane.extent, steps // FEW_LINES) // whole * whole)
    if found <= steps and 2 * found <= math.prod(long):
        return found
    is_reduced = all((v.owner is not None and is_row_reduction(v.owner)) or not plan.space_of[v]
                     for v in plan.body.returns)  # fmt: skip
    return 1 if is_reduced else steps // whole * whole or steps


def _steps(v: Value, at: Coordinates, lane: Fused, inner: set[Any]) -> set[int]:
    """How far what is read along a line is from the same in the next step of each loop over the rows; as far as the
    line is long: it follows its end."""
    along = {a.args[0]: c for a, c in linearize(at, v.shape).terms if a.kind == "var"}
    name, _ = lane.variables[-1]
    return {c for n, c in along.items() if n in inner} if along.get(name) == 1 else set()


class NarrowRowKernel(RowKernel):
    """Builds the loops of lines that are not divided, several steps at a time."""

    def __init__(self, k: CpuKernel, plan: Plan, outputs: list[Memory], lane: Fused | None, width: int):
        super().__init__(k, plan, outputs, lane, width)
        assert lane is not None
        self.beside = steps_beside(plan, lane)  #: steps in a line
        self._offset: Scalar | None = None
        inner = {name for variables in plan.spaces.values() for name, _ in variables}
        places: dict[Value, list[Coordinates]] = {}
        for v, at in plan.loads:
            places.setdefault(v, []).append(at)
        #: operands that are the same in each step, and that may be read before a condition of one holds
        self.same = [
            (v, at[0]) for v, at in places.items()
            if len(at) == 1 and not v.dtype.is_complex and _moves(v, at[0], lane) and always_inside(v, at[0])
            and inner.isdisjoint(names_of([linearize(at[0], v.shape)]))
        ]  # fmt: skip

    def lane_offset(self) -> Scalar:
        return super().lane_offset() if self._offset is None else self._offset

    def accumulate_line(self, space, accumulators: Sequence[Accumulator], outputs=(), bounds: Any = None) -> None:
        k, lane, loops = self.k, self.lane, self.loops[space]
        assert lane is not None
        flat = Fused([*loops[-1].variables, *lane.variables])
        whole = self.beside * lane.extent
        bounds, zero = dict(bounds or {}), k.const(0, INDEX)
        low, high = bounds.pop(len(loops) - 1, None) or (zero, k.const(loops[-1].extent, INDEX))

        def line(start: Scalar, count: Scalar) -> None:
            def one(at: Scalar) -> None:
                self._offset = at
                with k.at_position(flat, start + at):
                    self.advance(accumulators)
                    self._store_full(outputs)
                self._offset = None

            k.loop(None, zero, count, one)

        def body(_: list[Scalar]) -> list[Scalar]:
            first, last, size = low * lane.extent, high * lane.extent, k.const(whole, INDEX)
            rest = first + k.op("arith.divui", [last - first, size], INDEX) * whole
            k.loop(None, first, rest, lambda start: line(start, size), step=whole)
            line(rest, last - rest)
            return []

        self._lay_out()
        self.start_lines(accumulators)
        reduce_loops(k, loops[:-1], body, [], bounds)
        for a in accumulators:
            self._combine(a)

    def start_lines(self, accumulators: Sequence[Accumulator]) -> None:
        if not accumulators:
            return
        k, lane = self.k, self.lane
        assert lane is not None

        def one(at: Scalar) -> None:
            for a in accumulators:
                for memory, x in zip(self.lines[a.result], a.start(k)):
                    k.write(x, memory, at)

        self._each(self.beside, one)

    def _keep_line(self, value: Value, place: Coordinates) -> None:
        k, memory = self.k, self.k.scratch(LINE, compute_dtype(value.dtype))
        self.each_lane(lambda: k.write(k.value(value, place), memory, self.lane_offset()))
        self._repeat(memory)
        k.provided[value] = functools.partial(self._read_line, memory)

    def _lay_out(self) -> None:
        """Operands that are the same in each step, as often as there are steps in a line."""
        for v, place in self.same:
            if v not in self.k.provided:
                self._keep_line(v, place)

    def _each(self, steps: int, body: Callable[[Scalar], None]) -> None:
        """Go through the first steps of a line."""
        k, lane = self.k, self.lane
        assert lane is not None
        k.loop(None, k.const(0, INDEX), k.const(steps * lane.extent, INDEX), body)

    def _repeat(self, memory: Memory) -> None:
        """The first step, in all others: twice as many each time."""
        k, lane, done = self.k, self.lane, 1
        assert lane is not None
        while done < self.beside:
            far, more = done * lane.extent, min(done, self.beside - done)
            self._each(more, lambda at, far=far: k.write(k.read(memory, at), memory, at + far))  # type: ignore[misc]
            done += more

    def _combine(self, a: Accumulator) -> None:
        """What the steps of a line have accumulated, into one, which all of them get: half of them with the others."""
        k, lane, lines, left = self.k, self.lane, self.lines[a.result], self.beside
        assert lane is not None
        while left > 1:
            half = left // 2
            left -= half
            far = left * lane.extent

            def merge(at: Scalar, far: int = far) -> None:
                states = ([k.read(m, place) for m in lines] for place in (at, at + far))
                for memory, x in zip(lines, a.merge(k, *states)):
                    k.write(x, memory, at)

            self._each(half, merge)
        for memory in lines:
            self._repeat(memory)


def _moves(v: Value, at: Coordinates, lane: Fused) -> bool:
    name, extent = lane.variables[-1]
    return linearize(at, v.shape).coefficient(Atom("var", (name,), 0, extent - 1)) != 0
