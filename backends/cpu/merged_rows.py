"""Rows with reductions of which one needs the other's result, read from memory once for both.

A row, or a line of rows, is gone over in chunks that stay in cache: first for the one reduction, then for the other
with what the first gave for the chunk alone. Their state is merged with that of the chunks before (`MergingPair`).
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from smelt.backends.accumulate import Accumulator
from smelt.backends.lowering import Fused, FusionKernel, always, fuse_variables
from smelt.backends.merged import MergingPair, ShiftedExponentials, merging_pairs
from smelt.backends.plan import Plan, make_plan
from smelt.ir import dtypes
from smelt.ir.builder import Function, Value
from smelt.ir.dtypes import DType
from smelt.ir.scalar import INDEX, Scalar
from smelt.passes.kernels.analysis import collect_reads, is_row_reduction

from .chunked_pairs import ChunkedPair, chunked
from .kernel import CpuKernel, KernelModule, Memory
from .loops import reduce_loops
from .reductions import emit_rows
from .rows import RowKernel, is_line, line_width, narrowest
from .schedules import ScheduledKernel

#: What a row, or a line of rows, reads within this many bytes stays in cache anyway.
NEAR_BYTES = 512 << 10
#: Bytes of a chunk, and how many steps it has at least where rows run as a line: merging takes as long as a few steps.
CHUNK_BYTES, FEWEST_STEPS = 32 << 10, 16
#: Rows of fewer elements are not worth what it takes to merge exponentials, which need no more digits than their sum.
LONG = 512


@dataclass(frozen=True)
class Merging:
    """A fusion some of whose reductions merge.

    Attributes:
        chunk: how many steps of the innermost loop are gone over twice.
    """

    plan: Plan
    pairs: Sequence[MergingPair]
    chunk: int

    @classmethod
    def of(cls, body: Function, kept_axes: Sequence[Sequence[int]]) -> Merging | None:
        """What merges, where rows are too long to stay in cache until they are read again."""
        plan = make_plan(body, kept_axes)
        pairs = merging_pairs(plan, (dtypes.float32, dtypes.float64))
        if not pairs or any(op.op.kind == "arg_reduction" for op in plan.reductions):
            return None
        reads = collect_reads(body.ops, [(pair.x, pair.place) for pair in pairs])
        step = sum(v.dtype.size for v in reads if v.owner is None and v.ndim)
        loops, fewest = fuse_variables(plan.kept_variables, plan.uses), 1
        if is_line(plan) and loops:
            step, fewest = step * line_width(loops, narrowest(plan.loads, loops[-1])), FEWEST_STEPS
        longest = max(math.prod(plan.space_of[pair.op.results[0]]) for pair in pairs)
        merging = cls(plan, pairs, max(fewest, CHUNK_BYTES // step))
        return merging if step * longest > NEAR_BYTES or merging._saves_work(longest) else None

    def _saves_work(self, longest: int) -> bool:
        """Whether a pair takes less arithmetic than its reductions one by one, wherever rows lie."""
        exponentials = all(isinstance(pair, ShiftedExponentials) for pair in self.pairs)
        return exponentials and longest >= LONG and self.is_reduced and not is_line(self.plan)

    @property
    def stage(self) -> dict[Value, int]:
        """Which loop computes the second reductions: that of the first ones."""
        return {pair.op.results[0]: self.plan.stage[pair.first.results[0]] for pair in self.pairs}

    @property
    def is_reduced(self) -> bool:
        """Whether all results have an element for each row."""
        returned = (v for v in self.plan.body.returns if not (v.owner and is_row_reduction(v.owner)))
        return not any(self.plan.space_of[v] for v in returned)

    def build(self, module: KernelModule, name: str) -> ScheduledKernel:
        def kind(k: CpuKernel, plan: Plan, outputs: list[Memory], lane: Fused | None, width: int) -> RowKernel:
            return MergedRowKernel(k, self, outputs, lane, width)

        return emit_rows(module, name, self.plan, kind)


@dataclass
class First(Accumulator):
    """The first reduction of a pair, over a chunk of a line."""

    pair: ChunkedPair

    def step(self, k: FusionKernel, state: Sequence[Scalar]) -> list[Scalar]:
        return [self.pair.add_first(k, state[0])]


@dataclass
class RowFirst(First):
    """The same over a chunk of a row."""

    def step(self, k: FusionKernel, state: Sequence[Scalar]) -> list[Scalar]:
        return [self.pair.add_in_register(k, state[0])]


@dataclass
class Second(Accumulator):
    """The second one of a pair, over a chunk.

    Attributes:
        center: what is subtracted from the chunk's elements.
    """

    pair: ChunkedPair
    center: Callable[[], Scalar]

    @property
    def state(self) -> list[DType]:
        return [self.pair.dtype] * self.pair.sums

    def start(self, k: FusionKernel) -> list[Scalar]:
        return [k.const(0.0, self.pair.dtype)] * self.pair.sums

    def step(self, k: FusionKernel, state: Sequence[Scalar]) -> list[Scalar]:
        return self.pair.add_second(k, state, self.center())


class MergedRowKernel(RowKernel):
    """Builds the loops of one row, or of a line of rows, in chunks where reductions merge."""

    def __init__(self, k: CpuKernel, merging: Merging, outputs: list[Memory], lane: Fused | None, width: int):
        self.chunk = merging.chunk
        self.pairs = {p.op.results[0]: chunked(p) for p in merging.pairs}
        self._merged_at = merging.stage
        super().__init__(k, merging.plan, outputs, lane, width)

    def stage_of(self, v: Value) -> int:
        return self._merged_at.get(v, super().stage_of(v))

    def _keep_expensive(self) -> list:
        return []  # rows are too long

    def _pairs_of(
        self, accumulators: Sequence[Accumulator]
    ) -> tuple[list[ChunkedPair], list[Accumulator], list[Accumulator]]:
        """The pairs of a stage, their first reductions, and those that are in no pair."""
        known = {a.result: a for a in accumulators}
        pairs = [pair for v, pair in self.pairs.items() if v in known]
        firsts = {pair.pair.first: known[pair.pair.results[0]] for pair in pairs}
        paired = {v for each in pairs for v in each.pair.results}
        return pairs, list(firsts.values()), [a for a in accumulators if a.result not in paired]

    @staticmethod
    def _pair_with(pairs: Sequence[ChunkedPair], first: Accumulator) -> ChunkedPair:
        return next(pair for pair in pairs if pair.pair.results[0] == first.result)

    def _end_of_chunk(self, at: Scalar, steps: Fused) -> Scalar:
        return self.k.op("arith.minui", [at + self.chunk, self.k.const(steps.extent, INDEX)], INDEX)

    def _second(self, pair: ChunkedPair, center: Callable[[], Scalar]) -> Second:
        return Second(pair.pair.op, pair.pair.place, pair, center)

    # A row: states are carried in registers

    def _row_stage(self, space, accumulators, outputs) -> None:
        pairs, firsts, others = self._pairs_of(accumulators)
        if not pairs:
            super()._row_stage(space, accumulators, outputs)
            return
        firsts = [RowFirst(a.op, a.place, self._pair_with(pairs, a)) for a in firsts]
        k, (*outer, steps) = self.k, self.loops[space]

        def chunk(at: Scalar, *carried: Scalar) -> list[Scalar]:
            last, rest = self._end_of_chunk(at, steps), iter(carried)
            before = [[next(rest) for _ in range(pair.parts)] for pair in pairs]
            start = [*(a.start(k) for a in firsts), *([x] for x in rest)]
            found = self._run(steps, at, last, [*firsts, *others], start)
            first_of = {a.result: x for a, [x] in zip(firsts, found)}
            own = [pair.settled(k, first_of[pair.pair.results[0]]) for pair in pairs]
            counts = [k.convert(last - at, pair.dtype) for pair in pairs]
            centers = [pair.center(k, x, count) for pair, x, count in zip(pairs, own, counts)]
            seconds = [self._second(pair, functools.partial(_same, x)) for pair, x in zip(pairs, centers)]
            sums = self._run(steps, at, last, seconds, [a.start(k) for a in seconds])
            after = [
                x for pair, *rest in zip(pairs, before, own, centers, sums, counts) for x in pair.merge(k, *rest)
            ]
            return [*after, *(x for [x] in found[len(firsts) :])]

        def row(state: list[Scalar]) -> list[Scalar]:
            return k.loop(None, *self.whole(steps), chunk, state, step=self.chunk)

        start = [x for pair in pairs for x in pair.start(k)] + [x for a in others for x in a.start(k)]
        rest = iter(reduce_loops(k, outer, row, start))
        for pair in pairs:
            self._results(pair, [next(rest) for _ in range(pair.parts)])
        for a in others:
            k.provided[a.result] = always(a.finish([next(rest)]))

    def _run(
        self, steps: Fused, first: Scalar, last: Scalar, accumulators: Sequence[Accumulator],
        states: Sequence[Sequence[Scalar]],
    ) -> list[list[Scalar]]:  # fmt: skip
        """The states of accumulators after a chunk of a row."""
        k = self.k

        def deal(carried: Sequence[Scalar]) -> list[list[Scalar]]:
            rest = iter(carried)
            return [[next(rest) for _ in a.state] for a in accumulators]

        def step(_: Scalar, *carried: Scalar) -> list[Scalar]:
            return [x for a, state in zip(accumulators, deal(carried)) for x in a.step(k, state)]

        return deal(k.loop(steps, first, last, step, [x for state in states for x in state]))

    def _results(self, pair: ChunkedPair, carried: Sequence[Scalar]) -> list[Scalar]:
        """Those of a pair, provided to what needs them."""
        found = []
        for v, result in zip(pair.pair.results, (pair.of_first, pair.of_second)):
            x = result(self.k, carried)
            self.k.provided[v] = always(x)
            found.append(x)
        return found

    # A line of rows: states are kept in memory

    def _line_stage(self, space, accumulators, outputs) -> None:
        pairs, firsts, others = self._pairs_of(accumulators)
        if not pairs:
            super()._line_stage(space, accumulators, outputs)
            return
        firsts = [First(a.op, a.place, self._pair_with(pairs, a)) for a in firsts]
        self._keep_values_of_rows([*firsts, *others], ())
        k, (*outer, steps) = self.k, self.loops[space]
        carried = [(pair, [k.scratch(self.room, pair.dtype) for _ in range(pair.parts)]) for pair in pairs]
        centers = [(pair, k.scratch(self.room, pair.dtype)) for pair in pairs]
        seconds = [self._second(pair, functools.partial(self._read_lane, memory)) for pair, memory in centers]
        self.make_lines(seconds)

        def chunk(at: Scalar) -> None:
            last = self._end_of_chunk(at, steps)

            def center() -> None:
                for pair, memory in centers:
                    first = self._read_lane(self.lines[pair.pair.results[0]][0])
                    self._write_lane([memory], [pair.center(k, first, k.convert(last - at, pair.dtype))])

            def merge() -> None:
                for (pair, memories), (_, memory) in zip(carried, centers):
                    (first, *_), sums = ([self._read_lane(m) for m in self.lines[v]] for v in pair.pair.results)
                    before = [self._read_lane(m) for m in memories]
                    count = k.convert(last - at, pair.dtype)
                    self._write_lane(memories, pair.merge(k, before, first, self._read_lane(memory), sums, count))

            self.start_lines([*firsts, *seconds])
            self.accumulate_steps(steps, at, last, [*firsts, *others])
            self.each_lane(center)
            self.fetches = False
            self.accumulate_steps(steps, at, last, seconds)
            self.fetches = True
            self.each_lane(merge)

        def line(_: list[Scalar]) -> list[Scalar]:
            k.loop(None, *self.whole(steps), chunk, step=self.chunk)
            return []

        def start() -> None:
            for pair, memories in carried:
                self._write_lane(memories, pair.start(k))

        def finish() -> None:
            for pair, memories in carried:
                found = self._results(pair, [self._read_lane(m) for m in memories])
                for v, x in zip(pair.pair.results, found):
                    self._write_lane(self.lines[v][-1:], [x])

        self.start_lines(others)
        self.each_lane(start)
        reduce_loops(k, outer, line, [])
        self.each_lane(finish)
        self.provide(accumulators)

    def _read_lane(self, memory: Memory) -> Scalar:
        return self.k.read(memory, self.lane_offset())

    def _write_lane(self, memories: Sequence[Memory], scalars: Sequence[Scalar]) -> None:
        for memory, x in zip(memories, scalars):
            self.k.write(x, memory, self.lane_offset())


def _same(x: Scalar) -> Scalar:
    return x
