"""Few rows, or few columns, of many elements: threadgroups share each of them, in several kernels.

A stage reduces chunks of rows in one kernel, and a second one combines what the chunks have. Later stages find the
results in memory; those that write arrays as long as the row do so chunk by chunk, too. Softmax of 16 long rows::

    fused_softmax_chunks   partial[row, chunk] = maximum and Σexp of the chunk
    fused_softmax_combine  state[row] = those of the row
    fused_softmax          out[row, chunk] from x[row, chunk] and state[row]
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

from smelt.backends.lowering import Coordinates
from smelt.backends.memory import Memory
from smelt.backends.plan import Plan
from smelt.backends.scan_scatter import reads_of
from smelt.ir.builder import Value
from smelt.ir.scalar import INDEX, Scalar

from ...devices import Gpu
from ...kernel import GpuModule
from ..parts import Part, power_of_two, start_part
from ..schedule import ScheduledKernel, Scratch, ScratchPlan, body_flops
from .kernel import RowKernel
from .shape import (
    ENOUGH_GROUPS,
    MANY_GROUPS,
    REDUCING_GROUPS,
    WRITING_GROUPS,
    Layout,
    Team,
)
from .stages import Stage, find_reads, is_row_output, result_place
from .states import deal

#: Tiles that one threadgroup does by itself, and those that make a chunk worth a threadgroup of its own.
TILES = 8
TILES_PER_CHUNK = 2
#: So few threadgroups that their arithmetic counts, too: additions for each element that take as long as reading it.
FEW_GROUPS, HEAVY = 16, 32

Roots = Sequence[tuple[Value, Coordinates]]


def may_split(stages: Sequence[Stage]) -> bool:
    """Whether every loop has elements to share."""
    return all(stage.space and math.prod(stage.space) for stage in stages)


@dataclass
class Split:
    """The kernels of one fusion.

    Attributes:
        stages: in order.
        layout: how threadgroups share chunks; the same for all stages.
        results: outputs with one element for each row, and where they lie.
        finished: states of earlier stages, one for each row.
    """

    module: GpuModule
    plan: Plan
    stages: Sequence[Stage]
    layout: Layout
    scratch: ScratchPlan
    finished: dict[int, list[Scratch]] = field(default_factory=dict)

    @classmethod
    def of(
        cls, module: GpuModule, plan: Plan, stages: Sequence[Stage], layout: Layout, scratch: ScratchPlan
    ) -> Split | None:
        """None where rows are enough, or too short, or where a kernel would have too many buffers."""
        gpu, alone = module.gpu, len(stages) == 1 and not stages[0].outputs
        most = ENOUGH_GROUPS if alone else MANY_GROUPS if layout.team.columns else ENOUGH_GROUPS // 2
        tiles: float = max(layout.spaces[s.space].tiles for s in stages)
        if layout.groups <= FEW_GROUPS:  # the rest of the GPU has nothing else to do
            elements = max(math.prod(s.space) for s in stages) * layout.rows
            tiles *= 1 + body_flops(plan.body) / (elements * HEAVY)
        if not layout.rows or layout.groups >= most or tiles <= (TILES if alone else gpu.own_tiles):
            return None
        find_reads(plan, stages, keep=False)
        split = cls(module, plan, stages, layout, scratch)
        if all(split.chunks(s) == 1 for s in stages) or not split._fits():
            return None
        return split

    def chunks(self, stage: Stage) -> int:
        """In how many chunks a stage cuts each row, so that all of the GPU has work."""
        space = self.layout.spaces[stage.space]
        most = REDUCING_GROUPS if stage.states else WRITING_GROUPS
        wanted = max(1, min(self.module.gpu.groups, most) // self.layout.groups)
        tiles = -(-space.tiles // max(1, min(wanted, space.tiles // TILES_PER_CHUNK)))
        return -(-space.tiles // tiles)

    @property
    def results(self) -> list[tuple[Value, Coordinates]]:
        found = [v for v in self.plan.body.returns if not is_row_output(self.plan, v)]
        return [(v, result_place(self.plan, v)) for v in found]

    def _fits(self) -> bool:
        """Whether no kernel has more buffers than there may be."""
        most = self.module.gpu.max_buffers
        states = [len(s.state) for stage in self.stages for s in stage.states]
        roots: list[Roots] = [self.results, *(s.roots for s in self.stages)]
        arguments = [sum(v.owner is None for v in reads_of(self.plan.body, each)[0]) for each in roots]
        return max(arguments) + 2 * sum(states) + len(self.plan.body.returns) <= most

    # The kernels

    def build(self) -> list[ScheduledKernel]:
        """The steps, in order."""
        steps: list[ScheduledKernel] = []
        last = max(i for i, s in enumerate(self.stages) if s.states)
        for i, stage in enumerate(self.stages):
            ends = i + 1 == len(self.stages)
            partials = self._chunk_kernel(steps, stage, "" if ends and not stage.states else "_chunks")
            if not stage.states:
                continue
            if self.chunks(stage) == 1 and not (i == last and self.results):
                self.finished[i] = partials  # one chunk is all of the row
            else:
                self._combine_kernel(steps, i, partials, "" if ends else "_combine", i == last)
        return steps

    def _needed(self, roots: Roots) -> list[int]:
        """The finished stages that computing `roots` takes."""
        reads, _ = reads_of(self.plan.body, roots)
        return [i for i in self.finished if any(v in reads for s in self.stages[i].states for v in s.results)]

    def _start(
        self, suffix: str, roots: Roots, extra: Sequence[tuple[str, Value | Scratch]]
    ) -> tuple[Part, list[Memory], dict[int, list[Memory]]]:
        """A kernel that reads finished states, too: its builder, `extra` buffers, states."""
        needed = self._needed(roots)
        given = [(i, x) for i in needed for x in self.finished[i]]
        names = [(f"state{n}" if n else "state", x) for n, (_, x) in enumerate(given)]
        part = start_part(self.module, self.plan.body, suffix, roots, [*names, *extra])
        states: dict[int, list[Memory]] = {i: [] for i in needed}
        for (i, _), memory in zip(given, part.extra):
            states[i].append(memory)
        return part, part.extra[len(given) :], states

    def _recall(self, row: RowKernel, states: dict[int, list[Memory]], at: Scalar) -> None:
        for i, memories in states.items():
            row.carried.recall(self.stages[i].states, memories, at)

    def _chunk_kernel(self, steps: list[ScheduledKernel], stage: Stage, suffix: str) -> list[Scratch]:
        """A stage over the chunks of all rows; where it leaves their states."""
        layout, chunks = self.layout, self.chunks(stage)
        team, space, rows = layout.team, layout.spaces[stage.space], layout.rows
        avals = [a for s in stage.states for a in s.partial_avals(chunks * rows)]
        partials = [self.scratch.take(a) for a in avals]
        extra: list[tuple[str, Value | Scratch]] = [(_numbered("partial", n), x) for n, x in enumerate(partials)]
        extra += [(_output_name(self.plan, v), v) for v in stage.outputs]
        part, memories, states = self._start(suffix, stage.roots, extra)
        k, tiles = part.k, -(-space.tiles // chunks)
        outputs = dict(zip(stage.outputs, memories[len(partials) :]))
        row = RowKernel(k, self.plan, team, layout.kept, layout.spaces, layout.width, outputs)

        def each(at: Scalar, chunk: Scalar) -> None:
            self._recall(row, states, at)
            first = chunk * tiles
            last = first + tiles
            if space.tiles % tiles:
                last = k.op("arith.minui", [last, k.const(space.tiles, INDEX)], INDEX)
            carried = row.combined(stage, row.accumulate(stage, (first, last), chunk.eq(chunks - 1)))
            if stage.states:
                row.save(stage.states, carried, memories, at, lambda r: _offset(r, chunk, rows, chunks, k.gpu))

        # What the last kernel read last may still be in a cache.
        groups = row.for_rows(rows, chunks, each, backwards=self.stages.index(stage) % 2 == 1)
        read = sum(x.aval.nbytes for i in states for x in self.finished[i])
        written = sum(x.nbytes for x in avals) + sum(v.aval.nbytes for v in stage.outputs)
        schedule = f"{'column' if team.columns else 'row'} chunks"
        flops = body_flops(self.plan.body) // len(self.stages)
        steps.append(part.finish(schedule, groups, team.threads, read, written, flops))
        return partials

    def _combine_kernel(
        self, steps: list[ScheduledKernel], i: int, partials: Sequence[Scratch], suffix: str, is_last: bool
    ) -> None:
        """What the chunks have into what the rows have; in the last one, what depends on that alone."""
        gpu, rows, stage = self.module.gpu, self.layout.rows, self.stages[i]
        chunks = self.chunks(stage)
        if rows >= gpu.simd:
            lines = min(power_of_two(chunks), gpu.threads // gpu.simd)
            team = Team(lines, gpu.simd, lines * gpu.simd, True)
        else:
            lines = min(power_of_two(chunks), gpu.row_threads)
            team = Team(lines, 1, max(lines, gpu.simd), False)
        results = self.results if is_last else []
        kept: list[Scratch] = []
        if i + 1 < len(self.stages):
            kept = [self.scratch.take(a) for s in stage.states for a in s.partial_avals(rows)]
        extra: list[tuple[str, Value | Scratch]] = [(_numbered("partial", n), x) for n, x in enumerate(partials)]
        extra += [(_numbered("left", n), x) for n, x in enumerate(kept)]
        extra += [(_output_name(self.plan, v), v) for v, _ in results]
        part, memories, states = self._start(suffix, results, extra)
        k, n = part.k, len(partials)
        outputs = dict(zip((v for v, _ in results), memories[n + len(kept) :]))
        row = RowKernel(k, self.plan, team, self.layout.kept, {}, 1, outputs)

        def each(at: Scalar, _: Scalar) -> None:
            def step(chunk: Scalar, *own: Scalar) -> list[Scalar]:
                where = _offset(at, chunk, rows, chunks, gpu)
                new = deal(stage.states, [k.read(m, where) for m in memories[:n]])
                return [x for s, a, b in zip(stage.states, deal(stage.states, own), new) for x in s.merge(k, a, b)]

            found = k.for_(row.line, k.const(chunks, INDEX), step, row.carried.start(stage.states), step=lines)
            carried = row.combiner.combine(stage.states, found, None, row.repeat)
            if kept:
                row.save(stage.states, carried, memories[n:], at, lambda r: r)
            self._recall(row, states, at)
            row.carried.provide(stage.states, carried)
            row.store_results()

        groups = row.for_rows(rows, 1, each)
        read = sum(x.aval.nbytes for x in [*partials, *(x for j in states for x in self.finished[j])])
        written = sum(x.aval.nbytes for x in kept) + sum(v.aval.nbytes for v, _ in results)
        steps.append(part.finish("combine", groups, team.threads, read, written, chunks * rows))
        self.finished[i] = kept


def _numbered(name: str, n: int) -> str:
    return f"{name}{n}" if n else name


def _output_name(plan: Plan, v: Value) -> str:
    returns = plan.body.returns
    return "out" if len(returns) == 1 else f"out{returns.index(v)}"


def _offset(row: Scalar, chunk: Scalar, rows: int, chunks: int, gpu: Gpu) -> Scalar:
    """Where partial results lie: neighbouring threads of the second kernel read neighbours."""
    return chunk * rows + row if rows >= gpu.simd else row * chunks + chunk
