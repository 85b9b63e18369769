"""The loops of kernels with reductions along axes of one row, with maps between.

Where the innermost axis is kept, a line of neighbouring rows runs together, and the accumulators are a line in L1.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from smelt.backends.accumulate import Accumulator
from smelt.backends.lowering import Coordinates, Fused, always, fuse_variables
from smelt.backends.plan import Plan, is_static
from smelt.backends.recompute import Kept, cost_of, values_of_rows, values_to_keep
from smelt.ir import dtypes
from smelt.ir.builder import Value
from smelt.ir.index import Atom, Index, linearize
from smelt.ir.scalar import INDEX, Scalar, compute_dtype
from smelt.passes.kernels.analysis import collect_reads, is_row_reduction, reduced_axes

from . import extremum_blocks
from .hasty import is_nest
from .kernel import CpuKernel, Memory
from .long_sums import by_parts, is_long_sum
from .loops import reduce_loops
from .streaming import (
    STEPS_AHEAD,
    Read,
    emit_line,
    far_apart,
    fetch_line,
    follows,
    is_large,
    is_worth_streaming,
    prefetch,
)  # fmt: skip

#: Neighbouring rows that run together when the innermost axis is kept, of elements of 4 bytes or more; the fewest,
#: where there are not enough lines for threads. Of narrower ones there are more: pieces of memory are as long.
LINE, FEWEST = 512, 128
#: Lines of so many rows, and bytes, are vectors. LLVM unrolls loops over them before it makes vectors, then makes none.
VECTORS, VECTOR_BYTES = (4, 8, 16), 64
#: Memory on the stack for values that several loops over a row need.
SCRATCH_BYTES = 128 * 1024
#: Steps at which a line is accumulated at a time, at most, and additions that these may take.
MOST_STEPS, STEPS_COST = 8, 32
#: Rows of fewer elements are straight code, and so are longer ones that take no more additions; in several loops, if
#: the innermost has fewer steps. LLVM makes vectors of some rows then: those that are left over add up in the same
#: order, so that it does not matter where the share of a thread begins.
STRAIGHT, STRAIGHT_WORK, NESTED_WORK, NESTED_STEPS = 8, 36.0, 64.0, 16
#: Complex rows of more bytes, and at most as many elements, stay loops: LLVM makes no vectors of pairs in straight
#: code.
PAIR_BYTES, MOST_PAIRS = 32, 64
#: Other rows with at most so many steps in the innermost loop stay loops: LLVM might unroll them, and make vectors of
#: some rows, which add up in another order than those that are left over. Of a nest the innermost may be unrolled.
MOST_UNROLLED = 64
#: A row of at most so many bytes is read twice from the cache; pieces of its last loop, between which the next row is
#: fetched.
ROW_BYTES, PIECE = 256 * 1024, 512

#: Bytes of what is read for all rows of a loop that may be gone over more than once, by whole lines of memory.
NEAR_BYTES = 4 << 20


class RowKernel:
    """Builds the loops of one row, or of a line of rows, of a `row` fusion."""

    def __init__(self, k: CpuKernel, plan: Plan, outputs: list[Memory], lane: Fused | None, width: int = LINE):
        self.width = width  #: of a line
        self.room = max(LINE, width)  #: elements for which there is memory in a line
        self.k, self.plan, self.outputs, self.lane = k, plan, outputs, lane
        self.accumulators = [Accumulator(op, plan.places[op.results[0]]) for op in plan.reductions]
        self.loops = {space: fuse_variables(names, plan.uses) for space, names in plan.spaces.items()}
        body = plan.body
        self.full = [
            (v, m) for v, m in zip(body.returns, outputs)
            if not (v.owner and is_row_reduction(v.owner)) and plan.space_of[v]
        ]  # fmt: skip
        taken = {id(m) for _, m in self.full}
        self.kept = [(v, m) for v, m in zip(body.returns, outputs) if id(m) not in taken]
        self.lines: dict[Value, list[Memory]] = {}
        self._room = SCRATCH_BYTES  #: left for lines of values
        self.scratch = self._keep_expensive() if lane is None else []
        self.stage = 0
        self._by_steps = False  #: whether positions of extrema are those of the first of the steps taken at a time
        self.fetches = True  #: whether lines are read from memory, and not from a cache
        self.first: Scalar | None = None
        self.last: Scalar | None = None

    # What happens in which loop

    def stages(self) -> list[tuple[int, tuple[int, ...], list[Accumulator], list[tuple[Value, Memory]]]]:
        """(stage, inner extents, reductions, full outputs), in order."""
        plan = self.plan
        found: dict[tuple[int, tuple[int, ...]], Any] = {}
        for a in self.accumulators:
            key = self.stage_of(a.result), plan.space_of[a.result]
            found.setdefault(key, ([], []))[0].append(a)
        for v, m in self.full:
            key = plan.stage[v], plan.space_of[v]
            found.setdefault(key, ([], []))[1].append((v, m))
        return [(*key, *found[key]) for key in sorted(found)]

    @property
    def goes_once(self) -> bool:
        """Whether one loop goes over a row, and reads all there is to read."""
        return len(self.stages()) == 1 and not self.full

    def widen(self, nbytes: int) -> int:
        """Make room for as many lines beside each other as have accumulators of so many bytes; how many these are."""
        states = sum(dtype.size for a in self.accumulators for dtype in a.state)
        lines = max(1, nbytes // (self.width * states))
        self.room = max(self.room, lines * self.width)
        return lines

    def stage_of(self, v: Value) -> int:
        """Which loop computes a reduction."""
        return self.plan.stage[v]

    def _keep_expensive(self) -> list[tuple[Kept, Memory]]:
        """Memory in L1 for values that several loops over the row need."""
        stages = []
        for number, space, accumulators, outputs in self.stages():
            roots = [(a.op.operands[0], a.place) for a in accumulators]
            stages.append((number, space, roots + [(v, self.plan.places[v]) for v, _ in outputs]))
        found, room = [], SCRATCH_BYTES
        for kept in values_to_keep(self.plan.body.ops, stages):
            size = math.prod(kept.space)
            dtype = compute_dtype(kept.value.dtype)
            if size * dtype.size <= room:
                room -= size * dtype.size
                found.append((kept, self.k.scratch(size, dtype)))
        return found

    def _exchange(self, space: tuple[int, ...]) -> None:
        """Write what this stage computes for later ones, read what earlier ones computed."""
        k = self.k
        for kept, memory in self.scratch:
            if kept.space != space or self.stage < kept.first:
                continue
            names = self.plan.spaces[space]
            offset = k.index(linearize([Index.variable(n, e) for n, e in names], space))
            if self.stage == kept.first:
                k.write(k.value(kept.value, kept.place), memory, offset)
            else:
                k.scopes[-1][kept.value, kept.place] = k.read(memory, offset)

    def emit(self, first: Scalar | None = None, last: Scalar | None = None) -> None:
        """The row at the current kept position, or the rows first … last of the lane loop."""
        self.first, self.last = first, last
        self.make_lines(self.accumulators)
        for stage, space, accumulators, outputs in self.stages():
            self.stage = stage
            if self.lane is None:
                self._row_stage(space, accumulators, outputs)
            else:
                self._line_stage(space, accumulators, outputs)
        self.emit_kept()

    def make_lines(self, accumulators: Sequence[Accumulator]) -> None:
        """Accumulators in memory, where rows run as a line."""
        for a in accumulators if self.lane is not None else ():
            lines = self.lines.setdefault(a.result, [])
            lines += [self.k.scratch(self.room, dtype) for dtype in a.state[len(lines) :]]

    def emit_kept(self) -> None:
        if self.kept:
            self.each_lane(self._store_all_kept)

    def _store_all_kept(self) -> None:
        for v, memory in self.kept:
            at = tuple(self.plan.kept) if v.owner and is_row_reduction(v.owner) else self.plan.places[v]
            self.k.store(self.k.value(v, at), memory, at)

    def _store_full(self, outputs: Sequence[tuple[Value, Memory]]) -> None:
        for v, memory in outputs:
            self.k.store(self.k.value(v, self.plan.places[v]), memory, self.plan.places[v])

    # A row: accumulators are carried in registers

    def accumulate_row(
        self, space: tuple[int, ...], accumulators: Sequence[Accumulator],
        outputs: Sequence[tuple[Value, Memory]] = (), bounds: Any = None, chunks: int = 1,
    ) -> list[list[Scalar]]:  # fmt: skip
        """Run the inner loops of one stage, or those of one of several chunks; the final states."""
        k, loops = self.k, self.loops.get(space, [])
        carries = [a.start(k)[0] for a in accumulators]

        def body(state: list[Scalar]) -> list[Scalar]:
            self._exchange(space)
            after = [a.extreme(k, s) if a.is_arg else a.step(k, [s])[0] for a, s in zip(accumulators, state)]
            self._store_full(outputs)
            return after

        exchanges = bool(outputs or self.scratch)
        length = 0 if exchanges else extremum_blocks.block_length(accumulators, loops)
        if length:
            whole = (bounds or {}).get(0) or self.whole(loops[0])
            return extremum_blocks.find_in_row(k, loops[0], accumulators, length, *whole)
        ahead = [] if bounds or outputs else self._next_row(space)
        if ahead:
            final = _in_pieces(k, loops[0], body, carries, ahead)
        elif is_long_sum(accumulators, loops, chunks):
            final = by_parts(k, loops, body, accumulators, bounds or {})
        else:
            with nullcontext() if bounds else self._of_short_row(loops, accumulators):
                final = reduce_loops(k, loops, body, carries, bounds)
        searches = [(a, best) for a, best in zip(accumulators, final) if a.is_arg]

        def search(state: list[Scalar]) -> list[Scalar]:
            return [a.first_at(k, best, at) for (a, best), at in zip(searches, state)]

        found: list[Scalar] = []
        if searches:
            nowhere = k.const(0xFFFFFFFF, dtypes.uint32)
            found = reduce_loops(k, loops, search, [nowhere] * len(searches), bounds)
        at = {a.result: i for (a, _), i in zip(searches, found)}
        return [[best, at[a.result]] if a.is_arg else [best] for a, best in zip(accumulators, final)]

    def _of_short_row(
        self, loops: Sequence[Fused], accumulators: Sequence[Accumulator]
    ) -> AbstractContextManager[None]:
        """How the loops over a row are emitted that LLVM might unroll."""
        length = math.prod(loop.extent for loop in loops)
        pair = max((a.state[0].size for a in accumulators if a.state[0].is_complex), default=0)
        if length <= MOST_PAIRS and length * pair > PAIR_BYTES:
            return self.k.rolled()
        work = length * sum(cost_of(a.op.operands[0]) + 1 for a in accumulators)
        is_short_nest = len(loops) > 1 and work <= NESTED_WORK and loops[-1].extent < NESTED_STEPS
        is_straight = length < STRAIGHT or is_short_nest or (len(loops) == 1 and work <= STRAIGHT_WORK)
        if is_straight:
            return self.k.in_order()
        if not loops or loops[-1].extent > MOST_UNROLLED:
            return nullcontext()
        return self.k.whole() if len(loops) == 1 else self.k.whole(is_nest)

    def _row_stage(self, space, accumulators, outputs) -> None:
        loops = self.loops.get(space, [])
        if not accumulators and len(loops) == 1:
            self._write_row(space, loops[0], outputs)
            return
        for a, state in zip(accumulators, self.accumulate_row(space, accumulators, outputs)):
            done = a.finish(state)
            self.k.provided[a.result] = always(done)

    def _write_row(self, space, loop: Fused, outputs: Sequence[tuple[Value, Memory]]) -> None:
        """A stage that makes outputs as long as the row, and nothing else."""
        k = self.k

        def element() -> list[Scalar]:
            self._exchange(space)
            return [k.value(v, self.plan.places[v]) for v, _ in outputs]

        targets = [(memory, self.plan.places[v]) for v, memory in outputs]
        emit_line(k, loop, *self.whole(loop), targets, element, self._reads_of_next_row())  # while this one is written

    def _reads_of_next_row(self) -> list[Read]:
        if not self.plan.kept_variables:
            return []
        name, extent = self.plan.kept_variables[-1]
        row = Atom("var", (name,), 0, extent - 1)
        found = [Read(self.k.memory[v], at, linearize(at, v.shape).coefficient(row)) for v, at in self.plan.loads]
        return [read for read in found if read.ahead is not None and read.ahead > 0]

    def _next_row(self, space: tuple[int, ...]) -> list[Read]:
        """What the next row reads from memory, if this is a later loop over a row that stays in cache meanwhile."""
        loops, stages = self.loops.get(space, []), self.stages()
        if len(loops) != 1 or loops[0].extent < 2 * PIECE or self.stage != stages[-1][0] or self.stage == stages[0][0]:
            return []
        found = [
            read for read in self._reads_of_next_row()
            if is_large(read.memory.aval) and is_static(read.place)
            and follows(linearize(read.place, read.memory.aval.shape), loops[0])
        ]  # fmt: skip
        row = loops[0].extent * sum(read.memory.aval.dtype.size for read in found)
        return found if row <= ROW_BYTES else []

    # A line of rows: accumulators are kept in memory

    def each_lane(self, body: Any) -> None:
        if self.lane is None or self.first is None or self.last is None:
            body()
        else:
            self.k.expect(self.width)
            with self.k.whole() if self._is_vector(self.lane) else nullcontext():
                self.k.loop(self.lane, self.first, self.last, lambda at: body())

    def _is_vector(self, lane: Fused) -> bool:
        """Whether a line is a vector, and nothing is searched for in it, which takes longer then."""
        size = max((dtype.size for a in self.accumulators for dtype in a.state), default=0)
        is_short = lane.extent in VECTORS and lane.extent * size <= VECTOR_BYTES
        return is_short and not any(a.is_arg for a in self.accumulators)

    def lane_offset(self) -> Scalar:
        """The position in the line."""
        assert self.lane is not None and self.first is not None
        return self.k.loops[self.lane.names[0]][1] - self.first

    def accumulate_line(self, space, accumulators: Sequence[Accumulator], outputs=(), bounds: Any = None) -> None:
        loops = self.loops.get(space, [])
        outer, steps = loops[:-1], loops[-1] if loops else None

        def body(_: list[Scalar]) -> list[Scalar]:
            if steps is None:
                self._one_step(space, accumulators, outputs)
                return []
            low, high = (bounds or {}).get(len(outer)) or self.whole(steps)
            if outputs:
                self.k.loop(steps, low, high, lambda _: self._one_step(space, accumulators, outputs))
            elif not outer and self._goes_by_steps(steps, accumulators):
                self._find_extrema(steps, low, high, accumulators)
            else:
                self.accumulate_steps(steps, low, high, accumulators)
            return []

        self.start_lines(accumulators)
        reduce_loops(self.k, outer, body, [], bounds)

    def _goes_by_steps(self, steps: Fused, accumulators: Sequence[Accumulator]) -> bool:
        """Whether positions of extrema are found by the steps that are taken at a time."""
        if self.k.hasty or steps.extent < extremum_blocks.FEWEST_STEPS:
            return False
        several = self.steps_at_once(accumulators) >= extremum_blocks.FEWEST_AT_ONCE
        return several and extremum_blocks.are_narrow_extrema(accumulators)

    def _find_extrema(self, steps: Fused, low: Scalar, high: Scalar, accumulators: Sequence[Accumulator]) -> None:
        """Extrema with the steps in which they changed last, then where they are in these."""
        count = self.steps_at_once(accumulators)
        self._by_steps = True
        self.accumulate_steps(steps, low, high, accumulators)
        self._by_steps = False

        def find() -> None:
            states = zip(accumulators, self.read_lines(accumulators))
            found = [extremum_blocks.find_in_steps(self.k, a, state, steps, count, high) for a, state in states]
            self.write_lines(accumulators, found)

        self.each_lane(find)

    def whole(self, loop: Fused) -> tuple[Scalar, Scalar]:
        """From where to where a loop goes."""
        return self.k.const(0, INDEX), self.k.const(loop.extent, INDEX)

    def _one_step(self, space, accumulators: Sequence[Accumulator], outputs) -> None:
        """The line where the innermost loop stands."""
        k, lane = self.k, self.lane
        loops = self.loops.get(space, [])
        fetched = self._fetched(accumulators, outputs, loops[-1] if loops else None)
        targets = [(m, self.plan.places[v]) for v, m in outputs]

        def element() -> list[Scalar]:
            return [k.value(v, self.plan.places[v]) for v, _ in outputs]

        def advance() -> None:
            self.advance(accumulators)
            self._store_full(outputs)

        if lane is None or self.first is None or self.last is None:
            self.each_lane(advance)
        elif accumulators:
            fetch_line(k, lane, self.first, fetched, self.width)
            self.each_lane(advance)
        else:
            past = not targets or is_worth_streaming(lane, targets, min(self.room, lane.extent))
            emit_line(k, lane, self.first, self.last, targets, element, fetched, self.width, past=past)

    def accumulate_steps(self, steps: Fused, low: Scalar, high: Scalar, accumulators: Sequence[Accumulator]) -> None:
        """Take steps of the innermost loop into the lines of accumulators, several at a time, the rest one by one."""
        k, count = self.k, 1 if self.k.hasty else self.steps_at_once(accumulators)

        fetched = self._fetched(accumulators, (), steps, count) if count > 1 and self.fetches else []

        def several(at: Scalar, many: int) -> None:
            positions = [at + i if i else at for i in range(many)]
            self.before_steps(steps, positions, fetched if many == count else ())
            self.each_lane(lambda: self.advance(accumulators, steps, positions))

        rest = low
        if count > 1:
            rest = low + k.op("arith.divui", [high - low, k.const(count, INDEX)], INDEX) * count
            if k.breaks is not None:
                k.expect(max(1, steps.extent // count // k.breaks.parts))
            k.loop(None, low, rest, lambda at: several(at, count), step=count)
        k.loop(None, rest, high, lambda at: several(at, 1))

    def steps_at_once(self, accumulators: Sequence[Accumulator]) -> int:
        """At how many steps a line is accumulated at a time: fewer where each takes much code."""
        cost = sum(cost_of(a.op.operands[0]) for a in accumulators) + len(accumulators)
        return max(1, min(MOST_STEPS, int(STEPS_COST / cost)))

    def before_steps(self, steps: Fused, positions: Sequence[Scalar], fetched: Sequence[Read]) -> None:
        """What comes before a line at some positions: `fetched` is fetched for the next ones."""
        assert self.lane is not None and self.first is not None
        for position in positions if fetched else ():
            with self.k.at_position(steps, position):
                fetch_line(self.k, self.lane, self.first, fetched, self.width)

    def advance(
        self, accumulators: Sequence[Accumulator], steps: Fused | None = None, positions: Sequence[Scalar] = ()
    ) -> None:
        """Take the element at the current lane, or those at some positions of a loop, into the lines of accumulators,
        which are read and written once."""
        k = self.k
        states = self.read_lines(accumulators)
        if steps is None:
            states = [a.step(k, state) for a, state in zip(accumulators, states)]
        elif self._by_steps:
            states = [
                extremum_blocks.take_steps(k, a, state, steps, positions) for a, state in zip(accumulators, states)
            ]
            positions = ()
        for position in positions:
            with self.at_step(steps, position):
                states = [a.step(k, state) for a, state in zip(accumulators, states)]
        self.write_lines(accumulators, states)

    def read_lines(self, accumulators: Sequence[Accumulator]) -> list[list[Scalar]]:
        """The states of the row at the current lane."""
        at = self.lane_offset()
        return [[self.k.read(memory, at) for memory in self.lines[a.result]] for a in accumulators]

    def write_lines(self, accumulators: Sequence[Accumulator], states: Sequence[Sequence[Scalar]]) -> None:
        at = self.lane_offset()
        for a, state in zip(accumulators, states):
            for memory, x in zip(self.lines[a.result], state):
                self.k.write(x, memory, at)

    def at_step(self, steps: Fused | None, position: Scalar) -> AbstractContextManager[None]:
        """Let the innermost loop stand at a position for a while."""
        assert steps is not None
        return self.k.at_position(steps, position)

    def start_lines(self, accumulators: Sequence[Accumulator]) -> None:
        """Accumulators as they are before the first element."""

        def start() -> None:
            for a in accumulators:
                for memory, x in zip(self.lines[a.result], a.start(self.k)):
                    self.k.write(x, memory, self.lane_offset())

        if accumulators:
            self.each_lane(start)

    def _fetched(
        self, accumulators: Sequence[Accumulator], outputs: Sequence[tuple[Value, Memory]], steps: Fused | None,
        ahead: int = STEPS_AHEAD,
    ) -> list[Read]:  # fmt: skip
        """What a stage reads that lies along the line and far apart from step to step, some steps ahead."""
        if self.lane is None or steps is None or not steps.variables:
            return []
        roots = [(a.op.operands[0], a.place) for a in accumulators] + [(v, self.plan.places[v]) for v, _ in outputs]
        reads = collect_reads(
            self.plan.body.ops, roots, stop=lambda v: v.owner is not None and is_row_reduction(v.owner)
        )
        return far_apart(self.k, reads, self.lane, steps, self.width, ahead)

    def _line_stage(self, space, accumulators, outputs) -> None:
        self._keep_values_of_rows(accumulators, outputs)
        self.accumulate_line(space, accumulators, outputs)
        self.provide(accumulators)

    def _keep_values_of_rows(self, accumulators: Sequence[Accumulator], outputs) -> None:
        """Compute what a stage needs of each row of the line, once."""
        roots = [(a.op.operands[0], a.place) for a in accumulators] + [(v, self.plan.places[v]) for v, _ in outputs]
        for value, place in values_of_rows(self.plan, roots, self.k.provided):
            room = self.room * compute_dtype(value.dtype).size
            if room <= self._room:
                self._room -= room
                self._keep_line(value, place)

    def provide(self, accumulators: Sequence[Accumulator]) -> None:
        """Results lie in the lines of their accumulators."""
        for a in accumulators:
            self.k.provided[a.result] = functools.partial(self._read_line, self.lines[a.result][-1])

    def _keep_line(self, value: Value, place: Coordinates) -> None:
        """Compute a value of each row of the line, once."""
        k, memory = self.k, self.k.scratch(self.room, compute_dtype(value.dtype))
        self.each_lane(lambda: k.write(k.value(value, place), memory, self.lane_offset()))
        k.provided[value] = functools.partial(self._read_line, memory)

    def _read_line(self, memory: Memory, place: Coordinates) -> Scalar:
        return self.k.read(memory, self.lane_offset())


def _in_pieces(
    k: CpuKernel, loop: Fused, body: Callable[[list[Scalar]], list[Scalar]], carries: Sequence[Scalar],
    ahead: Sequence[Read],
) -> list[Scalar]:  # fmt: skip
    """A loop over a row that is in cache, and fetches what the next one reads."""
    end = k.const(loop.extent, INDEX)

    def piece(first: Scalar, *carried: Scalar) -> list[Scalar]:
        with k.at_position(loop, first):
            for read in ahead:
                now = k.index(linearize(read.place, read.memory.aval.shape))
                prefetch(k, read.memory, now, read.ahead or 0, PIECE)
        last = k.op("arith.minui", [first + PIECE, end], INDEX)
        return k.loop(loop, first, last, lambda at, *inner: body(list(inner)), carried)

    return k.loop(None, k.const(0, INDEX), end, piece, carries, step=PIECE)


def is_near(plan: Plan, loops: Sequence[Fused]) -> bool:
    """Whether what is read for all rows of the last of several loops over rows stays in a cache."""
    outer = math.prod(loop.extent for loop in loops[:-1])
    return outer > 1 and sum({v: v.aval.nbytes for v, _ in plan.loads}.values()) <= outer * NEAR_BYTES


def is_line(plan: Plan) -> bool:
    """Whether the innermost axis of the reduced arrays is kept."""
    op = max(plan.reductions, key=lambda op: op.operands[0].aval.size)
    shape, gone = op.operands[0].shape, reduced_axes(op)
    real = [a for a in range(len(shape)) if shape[a] != 1]
    return bool(real) and real[-1] not in gone


def line_width(loops: Sequence[Fused], size: int = 4) -> int:
    """Rows in one line whose narrowest elements have `size` bytes: enough lines for threads, if that leaves them wide
    enough."""
    last, outer = loops[-1].extent, math.prod(loop.extent for loop in loops[:-1])
    wanted, times = -(-last * outer // 16 // 64) * 64, max(1, 4 // size)
    return min(LINE * times, last, max(FEWEST * times, wanted))


def narrowest(loads: Iterable[tuple[Value, Coordinates]], lane: Fused) -> int:
    """Bytes of the narrowest elements that are read along a line."""
    return min((v.dtype.size for v, at in loads if follows(linearize(at, v.shape), lane)), default=4)
