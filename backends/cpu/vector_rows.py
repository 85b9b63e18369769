"""Kernels whose rows are a few vectors each: what the lanes of a row hold is put together for many rows at once.

A loop over twenty elements that lie beside each other is unrolled before anybody makes vectors of it, and one that
does have vectors spends most of its time on putting their lanes together, row by row. So each row becomes one vector of
partial results, straight away, and as many rows as a vector has lanes are put together in one go: two vectors of two
rows become one with half as many lanes for either, and so on, until each lane is a row::

    for row in 16 rows:  part[row] = x[row, 0:16] + (x[row, 8:24], but for the lanes that were there before)
    sum[16 rows] = pairs of pairs of pairs of pairs of part[16 rows]

What follows from the numbers of a row is computed for all of a block's rows in one loop, and what has as many elements
as the rows in vectors once more.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext

import numpy as np

from smelt.backends.accumulate import Accumulator
from smelt.backends.lowering import Fused, divide, fuse_variables
from smelt.backends.plan import Plan, always_inside, make_plan
from smelt.backends.recompute import Kept, cost_of, is_reduced, values_to_keep
from smelt.ir import mlir
from smelt.ir.builder import Function, Value
from smelt.ir.errors import KernelError
from smelt.ir.index import Index, linearize, names_of
from smelt.ir.kinds import Reduction
from smelt.ir.scalar import INDEX, Scalar, compute_dtype
from smelt.passes.kernels.analysis import reduced_axes

from .kernel import CpuKernel, KernelModule, Memory
from .loops import Split
from .panels import stages_of
from .rows import SCRATCH_BYTES, RowKernel, is_line
from .schedules import ScheduledKernel, start_kernel
from .streaming import LINE_BYTES, copy_out, follows, is_large, prefetch
from .vectors import Lane

#: Elements of a row, at least and at most: LLVM reads shorter ones side by side by itself, and puts the lanes of longer
#: ones together in little time.
SHORTEST, LONGEST = 8, 255
#: The same, at most, where LLVM's loops over longer rows are as quick: of bools; of numbers of 4 bytes or more whose
#: sums take a few additions for an element, and with results that are as long as the rows; and of such numbers that
#: come from memory and are read more than once, for which small blocks are needed.
LONGEST_BOOLS, LONGEST_CHEAP, LONGEST_RESULTS, LONGEST_LARGE = 54, 54, 32, 64
#: Additions for an element that are few, and with such results, for which numbers of rows are divided.
CHEAP, CHEAP_RESULTS = 4.0, 8.0
#: Lanes of a vector, at most.
LANES = 64
#: Numbers that are computed at once where there are enough; what others may do that are computed for nothing.
WIDTH, IDLE, RESULTS = 16, 6.0, 2
#: Elements of a block, and how many rows it has at most.
BLOCK, MOST_ROWS = 1024, 128
#: Additions of straight code for a row, at most, each counted as often as vectors are computed.
MOST_INSTRUCTIONS = 512
#: Rows of more vectors are gone over one by one.
MOST_UNROLLED = 2
#: Arrays of fewer elements are not worth more code.
FEWEST = 1 << 14


def build_vector_rows(
    module: KernelModule, name: str, body: Function, kept_axes: Sequence[Sequence[int]], idle: float | None = None
) -> ScheduledKernel | None:
    """The kernel of a row fusion, if its rows are a few vectors each.

    Args:
        idle: additions that lanes without an element of their own may do, for each element; `IDLE`.
    """
    plan = make_plan(body, kept_axes)
    loops = fuse_variables(plan.kept_variables, plan.uses)
    spaces = {space for _, space, _ in stages_of(plan)}
    if not loops or len(spaces) != 1 or is_line(plan):
        return None
    inner = fuse_variables(plan.spaces[next(iter(spaces))], plan.uses)
    if len(inner) != 1 or not SHORTEST <= inner[0].extent <= LONGEST:
        return None
    length, lane, outer = inner[0].extent, loops[-1], loops[:-1]
    lanes = _lanes(plan, length)
    rows = max(lanes, min(MOST_ROWS, BLOCK // length) // lanes * lanes)
    if lane.extent < rows or length * math.prod(loop.extent for loop in loops) < FEWEST:
        return None
    if not _is_suitable(plan, inner[0], lanes, IDLE if idle is None else idle):
        return None

    k, outputs, lo, hi = start_kernel(module, name, body)
    count = -(-lane.extent // rows)
    try:
        block = _Block(k, plan, outputs, lane, inner[0], rows, lanes)

        def unit(i: Scalar) -> None:
            rest, at = divide(k, i, count, bool(outer))
            for number, loop in reversed(list(enumerate(outer))):
                rest, position = divide(k, rest, loop.extent, number > 0)
                k.bind(loop, position)
            first = k.op("arith.minui", [at * rows, k.const(lane.extent - rows, INDEX)], INDEX)
            block.emit(first, first + rows)

        k.loop(None, lo, hi, unit)
        k.emit("func.return", [], [])
        k.entry.owner.verify()
    except (KernelError, mlir.ir.MLIRError):  # something is computed one by one
        module.drop(name)
        return None
    units = count * math.prod(loop.extent for loop in outer)
    return ScheduledKernel(name, body, Split(units), [*body.arguments, *body.returns])


def _lanes(plan: Plan, length: int) -> int:
    """Lanes of vectors: no more than a row has elements, nor than a register holds of what is computed."""
    computed = [v for v in plan.body.arguments if v.ndim] + [op.results[0] for op in plan.body.ops]
    widest = max(compute_dtype(v.dtype).size for v in computed)
    return min(LANES, LINE_BYTES // widest, 1 << (length.bit_length() - 1))


def _is_suitable(plan: Plan, inner: Fused, lanes: int, idle: float) -> bool:
    """Whether all that lies along the rows follows each other there, there is little code, and few lanes idle."""
    body, follow = plan.body, []
    if any(v.dtype.is_complex for v in (*body.arguments, *(v for op in body.ops for v in op.results))):
        return False
    full = [(v, plan.places[v]) for v in body.returns if plan.space_of.get(v) and not is_reduced(v)]
    for v, at in (*plan.loads, *full):
        if names_of(at).isdisjoint(inner.names):
            continue
        index = linearize(at, v.shape)
        if not always_inside(v, at) or not follows(index, inner):
            return False
        follow.append(v)
    roots = [op.operands[0] for op in plan.reductions] + [v for v, _ in full]
    vectors, work = -(-inner.extent // lanes), sum(cost_of(v) + 1 for v in roots)
    if inner.extent > _longest(plan, min(v.dtype.size for v in follow) if follow else 0, work, bool(full)):
        return False
    few = (vectors * WIDTH / inner.extent - 1) * work <= (RESULTS * idle if full else idle)
    return bool(follow) and few and vectors * work <= MOST_INSTRUCTIONS


def _longest(plan: Plan, size: int, work: float, returns_rows: bool) -> int:
    """Elements of a row, at most, whose narrowest have `size` bytes."""
    if all(op.results[0].dtype.kind == "b" for op in plan.reductions):
        return LONGEST_BOOLS
    if size < 4:
        return LONGEST
    sums = not any(op.op.kind == "arg_reduction" or op.op.idempotent for op in plan.reductions)
    if sums and work <= (CHEAP_RESULTS if returns_rows else CHEAP):
        return LONGEST_RESULTS if returns_rows else LONGEST_CHEAP
    large = any(is_large(v.aval) for v, _ in plan.loads)
    return LONGEST_LARGE if large and len(stages_of(plan)) > 1 else LONGEST


class _Block(RowKernel):
    """Builds the loops over a block of rows.

    Args:
        rows: how many.
        lanes: of the vectors of a row.
    """

    def __init__(
        self, k: CpuKernel, plan: Plan, outputs: list[Memory], lane: Fused, inner: Fused, rows: int, lanes: int
    ):  # fmt: skip
        self.rows, self.inner, self.lanes, self.length = lane, inner, lanes, inner.extent
        self.count = rows
        super().__init__(k, plan, outputs, None, rows)
        self.reads = [
            read for read in self._reads_of_next_row()
            if is_large(read.memory.aval) and follows(linearize(read.place, read.memory.aval.shape), inner)
        ]  # fmt: skip
        #: partial results of as many rows as there are lanes, and results of all rows
        self.parts = {a.result: [k.scratch(lanes * lanes, dtype) for dtype in a.state] for a in self.accumulators}
        self.found = {a.result: k.scratch(rows, a.state[-1]) for a in self.accumulators}
        streamed = [m for v, m in self.full if self._streams(v, m)]
        #: results that go past the caches: at once where each vector is a line of memory, others by way of L1
        self.past = {id(m) for m in streamed if lanes * m.aval.dtype.size == LINE_BYTES and not inner.extent % lanes}
        self.plain = {id(m): k.scratch(rows * inner.extent, m.aval.dtype) for m in streamed if id(m) not in self.past}

    def _keep_expensive(self) -> list[tuple[Kept, Memory]]:
        found, room = [], SCRATCH_BYTES
        for kept in values_to_keep(self.plan.body.ops, stages_of(self.plan)):
            dtype = compute_dtype(kept.value.dtype)
            size = self.count * self.length
            if size * dtype.size <= room:
                room -= size * dtype.size
                found.append((kept, self.k.scratch(size, dtype)))
        return found

    def each_lane(self, body: Callable[[], None]) -> None:
        assert self.first is not None and self.last is not None
        self.k.loop(self.rows, self.first, self.last, lambda at: body())

    def lane_offset(self) -> Scalar:
        assert self.first is not None
        return self.k.loops[self.rows.names[0]][1] - self.first

    def emit(self, first: Scalar | None = None, last: Scalar | None = None) -> None:
        """The rows first … last of a block."""
        k = self.k
        self.first, self.last = first, last
        for stage, _, accumulators, outputs in self.stages():
            self.stage = stage
            self._keep_values_of_rows(accumulators, outputs)
            self._vector_stage(accumulators, outputs)
            for a in accumulators:
                k.provided[a.result] = functools.partial(self._read_line, self.found[a.result])
            for v, memory in outputs:
                if id(memory) in self.plain:
                    self._copy_out(v, memory)
        self.emit_kept()

    def _vector_stage(self, accumulators: Sequence[Accumulator], outputs: Sequence[tuple[Value, Memory]]) -> None:
        k, lanes, first = self.k, self.lanes, self.first
        assert first is not None

        def alone() -> None:
            self._row(self.lane_offset(), accumulators, outputs)

        if not accumulators:
            with self._loop():
                self.each_lane(alone)
            return

        def group(offset: Scalar) -> None:
            start = first + offset

            def row(at: Scalar) -> None:
                states = self._row(at - first, accumulators, outputs)
                with k.vectors(lanes):
                    for a, state in zip(accumulators, states):
                        for memory, x in zip(self.parts[a.result], state):
                            self._store(x, memory, (at - start) * lanes)

            with self._loop():
                k.loop(self.rows, start, start + lanes, row)
            with k.vectors(lanes):
                for a in accumulators:
                    self._store(self._across(a)[-1], self.found[a.result], offset)

        k.loop(None, k.const(0, INDEX), k.const(self.count, INDEX), group, step=lanes)

    def _loop(self) -> AbstractContextManager[None]:
        """Of a loop over rows: it is rolled where each of them takes some vectors."""
        return self.k.rolled() if self.length > MOST_UNROLLED * self.lanes else nullcontext()

    def _row(
        self, number: Scalar, accumulators: Sequence[Accumulator], outputs: Sequence[tuple[Value, Memory]]
    ) -> list[list[Scalar]]:
        """Results of a row of the block, and the states of its accumulators, lane by lane."""
        k, lanes, length = self.k, self.lanes, self.length
        states: list[list[Scalar]] = []
        if self.stage and self.stage == self.stages()[-1][0]:
            self._fetch_next_block()
        for at in range(0, length, lanes):
            if not accumulators:  # what is left may be written in a narrower vector
                lanes = min(lanes, 1 << (length - at - 1).bit_length())
            start = min(at, length - lanes)
            flat = start + np.arange(lanes)
            along = {
                name: Lane(flat // self.inner.strides[name] % extent, 0) for name, extent in self.inner.variables
            }
            with k.at_position(self.inner, k.const(0, INDEX)), k.along(along):
                place = number * length + start
                self._exchange_vector(place)
                states = [self._step(a, state, flat >= at) for a, state in zip(accumulators, states or self._none())]
                for v, memory in outputs:
                    x = k.value(v, self.plan.places[v])
                    plain = self.plain.get(id(memory))
                    if plain is not None:
                        self._store(x, plain, place)
                    else:
                        offset = k.index(linearize(self.plan.places[v], memory.aval.shape)) + start
                        self._store(x, memory, offset, id(memory) in self.past)
        return states

    def _fetch_next_block(self) -> None:
        """Ask for the row of the next block that is where this one is in its own."""
        k = self.k
        with k.at_position(self.inner, k.const(0, INDEX)):
            for read in self.reads:
                offset = k.index(linearize(read.place, read.memory.aval.shape))
                prefetch(k, read.memory, offset, self.count * (read.ahead or 0), self.length)

    def _none(self) -> list[list[Scalar]]:
        return [[]] * len(self.accumulators)

    def _step(self, a: Accumulator, state: Sequence[Scalar], new: np.ndarray) -> list[Scalar]:
        """The state of lanes after elements of which those are `new` that no vector before had."""
        k = self.k
        if not state and a.is_arg:
            axis = reduced_axes(a.op)[0]
            return [k.value(a.op.operands[0], a.place), k.index(a.place[axis], a.state[-1])]
        state = state or a.start(k)
        if a.is_arg or a.op.op.idempotent or new.all():
            return a.step(k, state)
        (nothing,), x = a.start(k), k.value(a.op.operands[0], a.place)
        mask = np.where(new, 0, self.lanes) + np.arange(self.lanes)
        chosen = Scalar(k, k.shuffled(x.mlir, nothing.mlir, mask.tolist()), x.dtype)
        return [a.op.rules(Reduction).combine(k, state[0], chosen)]

    def _across(self, a: Accumulator) -> list[Scalar]:
        """The states of as many rows as there are lanes, a lane each."""
        k, lanes = self.k, self.lanes
        states = [[self._load(m, k.const(i * lanes, INDEX)) for m in self.parts[a.result]] for i in range(lanes)]
        side = lanes // 2
        while side:
            one = [p if not p & side else lanes + p - side for p in range(lanes)]
            other = [p + side if not p & side else lanes + p for p in range(lanes)]
            pairs = zip(states[:side], states[side:])
            states = [
                a.merge_unordered(k, *([self._chosen(x, y, which) for x, y in zip(*pair)] for which in (one, other)))
                for pair in pairs
            ]
            side //= 2
        return states[0]

    def _chosen(self, x: Scalar, y: Scalar, which: Sequence[int]) -> Scalar:
        return Scalar(self.k, self.k.shuffled(x.mlir, y.mlir, which), x.dtype)

    def _store(self, x: Scalar, memory: Memory, offset: Scalar, past: bool = False) -> None:
        self.k.store_stored(self.k.to_storage(x, memory.aval.dtype), memory, offset, past)

    def _load(self, memory: Memory, offset: Scalar) -> Scalar:
        k, dtype = self.k, memory.aval.dtype
        return k.from_storage(k.load_stored(memory, offset, k.shaped(k.storage(dtype))), dtype)

    def _exchange_vector(self, place: Scalar) -> None:
        """Write what this stage computes for later ones, read what earlier ones computed."""
        k = self.k
        for kept, memory in self.scratch:
            if self.stage == kept.first:
                self._store(k.value(kept.value, kept.place), memory, place)
            elif self.stage > kept.first:
                k.scopes[-1][kept.value, kept.place] = self._load(memory, place)

    # Results that are large leave past the caches

    def _streams(self, v: Value, memory: Memory) -> bool:
        lanes, index = LINE_BYTES // memory.aval.dtype.size, self._start_index(v)
        inside = {*self.rows.names, *self.inner.names}
        starts = [index.const, self.count * self.length, self.rows.extent * self.length]
        starts += [coefficient for atom, coefficient in index.terms if atom.args[0] not in inside]
        pitch = index.step(self.rows.names[-1])
        return is_large(memory.aval) and pitch == self.length and not any(start % lanes for start in starts)

    def _start_index(self, v: Value) -> Index:
        return linearize(self.plan.places[v], v.shape)

    def _copy_out(self, v: Value, memory: Memory) -> None:
        k = self.k
        assert self.first is not None
        with k.at_position(self.rows, self.first), k.at_position(self.inner, k.const(0, INDEX)):
            start = k.index(self._start_index(v))
        copy_out(k, self.plain[id(memory)], memory, start, self.count * self.length)
