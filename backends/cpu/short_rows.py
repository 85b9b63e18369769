"""Kernels whose rows are short and lie one behind the other: a lane of a vector is a row.

A loop over eight or sixteen elements that lie beside each other leaves most of a vector's work to putting its lanes
together. So a block of rows is turned in L1, square by square in registers; its columns then run as those of a panel do
(`panels`), and what has as many elements as the rows is turned back before it leaves.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from smelt.backends.lowering import Coordinates, Fused, divide, fuse_variables
from smelt.backends.plan import Plan, always_inside, make_plan
from smelt.backends.recompute import cost_of, is_reduced, values_to_keep
from smelt.ir import dtypes
from smelt.ir.builder import Function, Value
from smelt.ir.dtypes import DType
from smelt.ir.index import Index, linearize
from smelt.ir.scalar import INDEX, Scalar, compute_dtype

from .followed_rows import is_followed
from .kernel import CpuKernel, KernelModule, Memory, as_bytes
from .loops import Split
from .panels import Panel, PanelKernel, stages_of
from .rows import is_line
from .schedules import ScheduledKernel, start_kernel
from .streaming import LINE_BYTES, copy_out, follows, is_large

#: LLVM reads as many rows side by side by itself where they are shorter than the shortest, and a number of each is
#: left; it does not where they are written, too. Longer ones fill vectors. To turn results back costs as much as to
#: turn operands.
SHORTEST, SHORTEST_RESULTS, LONGEST, LONGEST_RESULTS = 7, 2, 54, 32
#: The same for rows of which a few numbers are left for expensive functions.
LONGEST_FOLLOWED = 32
#: The same for rows of which nothing is read.
LONGEST_COMPUTED = 1024
#: Of shorter ones LLVM makes no vectors where a whole row takes so many additions; slow ones where rows have gaps
#: between them, from so many elements on.
MOST_STRAIGHT, SHORTEST_APART = 75.0, 4
#: Elements of a block, and how many rows it has at least.
BLOCK, FEWEST_ROWS = 1024, 64
#: Lanes of a vector, at most.
LANES = 16
#: Arrays of fewer elements are not worth more code.
FEWEST = 1 << 14


@dataclass(frozen=True)
class Turned:
    """An operand or a result whose rows lie one behind the other.

    Attributes:
        place: where it is read or written.
        pitch: from one row to the next, in elements.
    """

    value: Value
    place: Coordinates
    pitch: int

    @property
    def held(self) -> DType:
        """As what its elements are turned."""
        dtype = compute_dtype(self.value.dtype)
        return dtypes.uint8 if dtype.kind == "b" else dtype


def build_short_rows(
    module: KernelModule, name: str, body: Function, kept_axes: Sequence[Sequence[int]]
) -> ScheduledKernel | None:
    """The kernel of a row fusion, if its rows are short and follow each other."""
    plan = make_plan(body, kept_axes)
    loops = fuse_variables(plan.kept_variables, plan.uses)
    spaces = {space for _, space, _ in stages_of(plan)}
    if not loops or len(spaces) != 1 or is_line(plan):
        return None
    inner = fuse_variables(plan.spaces[next(iter(spaces))], plan.uses)
    if len(inner) != 1 or inner[0].extent < SHORTEST_RESULTS:
        return None
    lane, outer, length = loops[-1], loops[:-1], inner[0].extent
    rows = max(FEWEST_ROWS, BLOCK // length // LANES * LANES)
    if lane.extent < rows or length * math.prod(loop.extent for loop in loops) < FEWEST:
        return None
    returned = [(v, plan.places[v]) for v in body.returns if plan.space_of.get(v) and not is_reduced(v)]
    operands, results = (_turned(found, lane, inner[0]) for found in (plan.loads, returned))
    if operands is None or results is None or not _is_suitable(plan, loops, length, operands, results):
        return None

    k, outputs, lo, hi = start_kernel(module, name, body)
    block = _Block(k, plan, outputs, lane, inner[0], rows, operands, results)
    count = -(-lane.extent // rows)

    def unit(i: Scalar) -> None:
        rest, at = divide(k, i, count, bool(outer))
        for number, loop in reversed(list(enumerate(outer))):
            rest, position = divide(k, rest, loop.extent, number > 0)
            k.bind(loop, position)
        block.run(k.op("arith.minui", [at * rows, k.const(lane.extent - rows, INDEX)], INDEX))

    k.loop(None, lo, hi, unit)
    k.emit("func.return", [], [])
    units = count * math.prod(loop.extent for loop in outer)
    return ScheduledKernel(name, body, Split(units), [*body.arguments, *body.returns])


def _is_suitable(
    plan: Plan, loops: Sequence[Fused], length: int, operands: Sequence[Turned], results: Sequence[Turned]
) -> bool:  # fmt: skip
    """Whether rows of a length are to be lanes, with what is then to be turned."""
    if not operands:  # nothing lies along the rows: what they add up is computed
        return not results and SHORTEST <= length <= LONGEST_COMPUTED
    if length > LONGEST_FOLLOWED and is_followed(plan, loops):
        return False
    if results:
        return SHORTEST_RESULTS <= length <= LONGEST_RESULTS
    work = length * sum(cost_of(op.operands[0]) + 1 for op in plan.reductions)
    is_apart = length >= SHORTEST_APART and any(t.pitch != length for t in operands)
    return length <= LONGEST and (length >= SHORTEST or is_apart or work >= MOST_STRAIGHT)


def _turned(accesses: Sequence[tuple[Value, Coordinates]], lane: Fused, inner: Fused) -> list[Turned] | None:
    """Those accesses whose rows are to be turned; None where some are in an order that does not suit."""
    found = []
    for v, at in accesses:
        index = linearize(at, v.shape)
        pitch = _step(index, lane)
        if not pitch or not _step(index, inner) or follows(index, lane):
            continue
        if pitch < 0 or v.dtype.is_complex or not always_inside(v, at) or not follows(index, inner):
            return None
        found.append(Turned(v, at, pitch))
    return found


def _step(index: Index, loop: Fused) -> int:
    """How far an address moves in a step of a loop; 0 where that is not always as far."""
    return index.step(loop.names[-1]) or 0


class _Block(PanelKernel):
    """Turns a block of rows, runs the loops over its columns, and turns back."""

    def __init__(
        self, k: CpuKernel, plan: Plan, outputs: list[Memory], lane: Fused, inner: Fused, rows: int,
        operands: Sequence[Turned], results: Sequence[Turned],
    ):  # fmt: skip
        self.inner, self.length = inner, inner.extent
        self.lanes = min(LANES, 1 << (self.length - 1).bit_length())
        size = max(self.length, self.lanes) * rows
        stages = stages_of(plan)
        last = stages[-1][0]
        panels = [Panel(t.value, t.place, -1, last) for t in operands]
        panels += [Panel(v.value, v.place, v.first, last) for v in values_to_keep(plan.body.ops, stages)]
        memories = [k.scratch(size, compute_dtype(p.value.dtype)) for p in panels]
        super().__init__(k, plan, outputs, lane, rows, list(zip(panels, memories)))
        self.base = k.const(0, INDEX)
        self.operands = list(zip(operands, memories))
        self.results = {t.value: (t, k.scratch(size, compute_dtype(t.value.dtype))) for t in results}
        #: rows as they lie in memory, by what is held; squares of the last ones reach beyond it
        self.plain = {t.held: k.scratch(size + self.lanes, t.held) for t in (*operands, *results)}

    def run(self, first: Scalar) -> None:
        """The rows from `first` on."""
        for t, columns in self.operands:
            plain = self.plain[t.held]
            self._read_plain(t, plain, first)
            self._turn(plain, as_bytes(columns), back=False)
        self.emit(first, first + self.width)
        for (t, columns), memory in ((self.results[v], m) for v, m in self.full if v in self.results):
            plain = self.plain[t.held]
            self._turn(as_bytes(columns), plain, back=True)
            self._write_plain(t, plain, memory, first)

    def _store_full(self, outputs: Sequence[tuple[Value, Memory]]) -> None:
        k = self.k
        for v, memory in outputs:
            if v in self.results:
                t, columns = self.results[v]
                at = k.loops[self.inner.names[0]][1] * self.width + self.lane_offset()
                k.write(k.value(v, t.place), columns, at)
            else:
                super()._store_full([(v, memory)])

    def _turn(self, source: Memory, target: Memory, back: bool) -> None:
        """From rows to columns, or `back`."""
        k, lanes, length = self.k, self.lanes, self.length

        def square(row: Scalar, column: Scalar) -> None:
            beside = [(row + i) * length + column for i in range(lanes)]
            across = [(column + i) * self.width + row for i in range(lanes)]
            read, written = (across, beside) if back else (beside, across[:length])
            with k.vectors(lanes):
                for x, at in zip(k.transposed([k.load_vector(source, at) for at in read]), written):
                    k.store_vector(x, target, at)

        def squares(row: Scalar) -> None:
            end = k.const(max(length - lanes, 0) + 1, INDEX)
            k.loop(None, k.const(0, INDEX), end, lambda column: square(row, column), step=lanes)
            if length > lanes and length % lanes:
                square(row, k.const(length - lanes, INDEX))

        k.loop(None, k.const(0, INDEX), k.const(self.width, INDEX), squares, step=lanes)

    def _read_plain(self, t: Turned, plain: Memory, first: Scalar) -> None:
        k, start, memory = self.k, self._start(t, first), as_bytes(self.k.memory[t.value])
        self._each_element(t, lambda at, there: k.write(k.read(memory, start + there), plain, at))

    def _write_plain(self, t: Turned, plain: Memory, memory: Memory, first: Scalar) -> None:
        k, start, memory = self.k, self._start(t, first), as_bytes(memory)
        if not self._can_stream(t):
            self._each_element(t, lambda at, there: k.write(k.read(plain, at), memory, start + there))
            return
        if memory.aval.dtype is not plain.aval.dtype:
            rounded, wide = k.scratch(self.width * self.length, memory.aval.dtype), plain
            self._each_element(t, lambda at, there: k.write(k.read(wide, at), rounded, at))
            plain = rounded
        copy_out(k, plain, memory, start, self.width * self.length)

    def _start(self, t: Turned, first: Scalar) -> Scalar:
        """Where the first of the rows begins."""
        k = self.k
        assert self.lane is not None
        with k.at_position(self.lane, first), k.at_position(self.inner, k.const(0, INDEX)):
            return k.index(linearize(t.place, t.value.shape))

    def _each_element(self, t: Turned, body: Callable[[Scalar, Scalar], None]) -> None:
        """Go through a block, with the place among its elements, and the one in memory, from where it starts."""
        k, zero, length = self.k, self.k.const(0, INDEX), self.length
        if t.pitch == length:
            k.loop(None, zero, k.const(self.width * length, INDEX), lambda i: body(i, i))
            return

        def row(r: Scalar) -> None:
            k.loop(None, zero, k.const(length, INDEX), lambda i: body(r * length + i, r * t.pitch + i))

        k.loop(None, zero, k.const(self.width, INDEX), row)

    def _can_stream(self, t: Turned) -> bool:
        """Whether a result leaves past the caches: it is large, and each block begins with a line of memory."""
        assert self.lane is not None
        lanes, index = LINE_BYTES // t.value.dtype.size, linearize(t.place, t.value.shape)
        inside = {*self.lane.names, *self.inner.names}
        starts = [index.const, self.width * t.pitch, self.lane.extent * t.pitch]
        starts += [coefficient for atom, coefficient in index.terms if atom.args[0] not in inside]
        return is_large(t.value.aval) and t.pitch == self.length and not any(start % lanes for start in starts)
