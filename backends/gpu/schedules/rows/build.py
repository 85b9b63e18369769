"""Kernels with reductions: fusions that the fuse pass marks `row` or `split`.

Each row belongs to a team of threads, which reads it once if its registers can hold it. Where there are few
rows, or few columns, of many elements, threadgroups reduce chunks in one kernel, and a second kernel combines
their results and computes what depends on them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from smelt.backends.lowering import Fused, fuse_variables
from smelt.backends.plan import Plan, make_plan
from smelt.ir.aval import Aval
from smelt.ir.builder import Function
from smelt.ir.dtypes import DType
from smelt.ir.scalar import INDEX, Scalar

from ...devices import Gpu
from ...kernel import GpuModule
from ..parts import start_part
from ..schedule import (
    ScheduledKernel,
    Scratch,
    ScratchPlan,
    body_flops,
    bytes_read,
    bytes_written,
    source_lines,
    start_kernel,
)
from .kernel import RowKernel
from .merged import merged_states
from .shape import (
    ENOUGH_GROUPS,
    MOST_GROUPS,
    Space,
    Team,
    column_team,
    inner_loops,
    is_columns,
    lane_width,
    power_of_two,
    row_team,
    space_of,
)
from .stages import Read, Stage, find_reads, find_stages, kept_in_registers, most_held, result_place
from .states import deal

#: Tiles that one threadgroup does by itself, and those that make a chunk worth a threadgroup of its own.
TILES = 8
TILES_PER_CHUNK = 2


@dataclass
class Layout:
    """How the threads of a kernel share its rows.

    Attributes:
        spaces: inner extents → how a team goes over them.
        rows: of the fusion; width: neighbouring rows of one thread.
    """

    team: Team
    kept: list[Fused]
    spaces: dict[tuple[int, ...], Space]
    rows: int
    width: int

    @property
    def groups(self) -> int:
        """Threadgroups that have a row."""
        return -(-(self.rows // self.width) // self.team.rows)


def build_row(
    module: GpuModule, body: Function, kept: Sequence[Sequence[int]], scratch: ScratchPlan
) -> list[ScheduledKernel]:
    """Reductions along rows, with maps between them: one kernel, or two where rows are few and long."""
    plan = make_plan(body, kept)
    if not any(v.aval.size for v in body.returns):
        return []
    merged = merged_states(plan)
    choices = [find_stages(plan), find_stages(plan, merged)] if merged else [find_stages(plan)]
    for stages in choices:
        if _can_split(module.gpu, plan, stages):
            (stage,) = stages
            find_reads(plan, stages, keep=False)
            layout = _layout(module.gpu, plan, stages, held=0, ragged=True)
            chunks = _chunks(module.gpu, layout, layout.spaces[stage.space])
            if chunks > 1:
                return _build_chunks(module, plan, stage, layout, chunks, scratch)
    for stages in choices:
        for keep in (True, False):
            find_reads(plan, stages, keep)
            layout = _layout(module.gpu, plan, stages, most_held(stages))
            if all(layout.spaces[s.space].tiles <= 1 for s in stages if s.makes):
                break
        registers = _registers(module.gpu, stages, layout)
        if not _bytes_read_again(plan, stages, registers):
            break
    return [_build_rows(module, plan, stages, layout, registers)]


def _layout(gpu: Gpu, plan: Plan, stages: Sequence[Stage], held: int, ragged: bool = False) -> Layout:
    """Args: held: arrays that are to stay in registers; ragged: the kernel is made of chunks."""
    kept = fuse_variables(plan.kept_variables, plan.uses)
    loops = inner_loops(plan)
    extents = {s: math.prod(f.extent for f in each) for s, each in loops.items()}
    rows = math.prod(loop.extent for loop in kept)
    longest = max(extents, key=lambda s: extents[s], default=())
    width = 1
    if is_columns(plan, kept, loops):
        width = lane_width(plan, kept[-1])
        widths = dict.fromkeys(loops, width)
        size = min((v.dtype.size for v, _ in plan.loads), default=4)
        items = extents.get(longest, 1)
        team = column_team(gpu, rows // width, items, width, held, size, _state_bytes(stages), not ragged)
    else:
        widths = {s: lane_width(plan, each[-1], ragged and len(each) == 1) if each else 1 for s, each in loops.items()}
        own = widths.get(longest, 1)
        team = row_team(gpu, rows, extents.get(longest, 1) // own, own, held)
        if ragged:
            team = replace(team, lines=gpu.threads, threads=gpu.threads)
    spaces = {s: space_of(team, each, widths[s], held, gpu.row_values) for s, each in loops.items() if s}
    return Layout(team, kept, spaces, rows, width)


def _state_bytes(stages: Sequence[Stage]) -> int:
    """Threadgroup memory for the partial results of one row."""
    found: dict[int, dict[tuple[int, DType], None]] = {}
    for stage in stages:
        own = found.setdefault(stage.number, {})
        for dtype in (dtype for state in stage.states for dtype in state.state):
            own[len(own), dtype] = None
    return sum(dtype.size for _, dtype in {key: None for own in found.values() for key in own})


# Whole rows


def _registers(gpu: Gpu, stages: Sequence[Stage], layout: Layout) -> set[Read]:
    """Which loads stay in registers."""
    across = layout.width if layout.team.columns else 1
    room = {s: x.values * across for s, x in layout.spaces.items() if x.tiles == 1}
    return kept_in_registers(stages, room, gpu.row_values)


def _build_rows(
    module: GpuModule, plan: Plan, stages: Sequence[Stage], layout: Layout, registers: set[Read]
) -> ScheduledKernel:
    body, team = plan.body, layout.team
    k, _, memories = start_kernel(module, body)
    outputs = dict(zip(body.returns, memories))
    row = RowKernel(k, plan, team, layout.kept, layout.spaces, layout.width, outputs, registers)

    def each(at: Scalar, chunk: Scalar) -> None:
        for stage in stages:
            row.run(stage)
        row.store_results()

    groups = row.for_rows(layout.rows, 1, each) if layout.rows else 1
    read = bytes_read(plan) + _bytes_read_again(plan, stages, registers)
    schedule = "column" if team.columns else "row"
    written, flops = bytes_written(body), body_flops(body)
    k.finish(schedule, (groups, 1, 1), (team.threads, 1, 1), read, written, flops, source_lines(body.ops))
    return ScheduledKernel(k.name, [*body.arguments, *body.returns])


def _bytes_read_again(plan: Plan, stages: Sequence[Stage], registers: set[Read]) -> int:
    """What stages read that earlier ones had read and could not hold."""
    again: int = 0
    seen: set[Read] = set()
    for stage in stages:
        loads = [r for r in stage.loads if r in seen and r not in registers]
        again += bytes_read(replace(plan, loads=loads))
        seen.update(stage.loads)
    return again


# Chunks of rows


def _can_split(gpu: Gpu, plan: Plan, stages: Sequence[Stage]) -> bool:
    """Whether all depends on one loop over the row, and what follows has one element for each row."""
    if len(stages) != 1 or stages[0].outputs or not math.prod(stages[0].space) or not stages[0].space:
        return False
    partials = sum(len(s.state) for s in stages[0].states)
    return len(plan.body.arguments) + partials + len(plan.body.returns) <= gpu.max_buffers


def _chunks(gpu: Gpu, layout: Layout, space: Space) -> int:
    """In how many chunks to reduce each row, so that all of the GPU has work."""
    if not layout.rows or layout.groups >= ENOUGH_GROUPS or space.tiles <= TILES:
        return 1
    wanted = min(gpu.groups, MOST_GROUPS) // layout.groups
    tiles = -(-space.tiles // max(1, min(wanted, space.tiles // TILES_PER_CHUNK)))
    return -(-space.tiles // tiles)


def _build_chunks(
    module: GpuModule, plan: Plan, stage: Stage, layout: Layout, chunks: int, scratch: ScratchPlan
) -> list[ScheduledKernel]:
    """Partial results of chunks in one kernel, results in the next."""
    team, space, rows = layout.team, layout.spaces[stage.space], layout.rows
    avals = [aval for s in stage.states for aval in s.partial_avals(chunks * rows)]
    partials = [(f"partial{i}" if i else "partial", scratch.take(a)) for i, a in enumerate(avals)]
    part = start_part(module, plan.body, "_chunks", stage.roots, partials)
    k, tiles = part.k, -(-space.tiles // chunks)
    row = RowKernel(k, plan, team, layout.kept, layout.spaces, layout.width)

    def each(at: Scalar, chunk: Scalar) -> None:
        first = chunk * tiles
        last = first + tiles
        if space.tiles % tiles:
            last = k.op("arith.minui", [last, k.const(space.tiles, INDEX)], INDEX)
        ragged = chunk.eq(chunks - 1)
        carried = row.combined(stage, row.accumulate(stage, (first, last), ragged))
        row.save(stage.states, carried, part.extra, at, lambda r: _partial_offset(r, chunk, rows, chunks, module.gpu))

    groups = row.for_rows(rows, chunks, each)
    written = sum(aval.nbytes for aval in avals)
    schedule = "column chunks" if team.columns else "row chunks"
    first = part.finish(schedule, groups, team.threads, 0, written, body_flops(plan.body))
    return [first, _build_combine(module, plan, stage, layout, chunks, partials, avals)]


def _partial_offset(row: Scalar, chunk: Scalar, rows: int, chunks: int, gpu: Gpu) -> Scalar:
    """Where partial results lie: neighbouring threads of the second kernel read neighbours."""
    return chunk * rows + row if rows >= gpu.simd else row * chunks + chunk


def _build_combine(
    module: GpuModule, plan: Plan, stage: Stage, layout: Layout, chunks: int,
    partials: Sequence[tuple[str, Scratch]], avals: Sequence[Aval],
) -> ScheduledKernel:  # fmt: skip
    """Partial results into results, and what depends on them."""
    gpu, body, rows = module.gpu, plan.body, layout.rows
    if rows >= gpu.simd:
        lines = min(power_of_two(chunks), gpu.threads // gpu.simd)
        team = Team(lines, gpu.simd, lines * gpu.simd, True)
    else:
        lines = min(power_of_two(chunks), gpu.row_threads)
        team = Team(lines, 1, max(lines, gpu.simd), False)
    places = [(v, result_place(plan, v)) for v in body.returns]
    outs = [("out" if len(body.returns) == 1 else f"out{i}", v) for i, v in enumerate(body.returns)]
    part = start_part(module, body, "", places, [*partials, *outs])
    k = part.k
    memories = part.extra[: len(avals)]
    outputs = dict(zip(body.returns, part.extra[len(avals) :]))
    row = RowKernel(k, plan, team, layout.kept, {}, 1, outputs)

    def each(at: Scalar, _: Scalar) -> None:
        def step(chunk: Scalar, *own: Scalar) -> list[Scalar]:
            where = _partial_offset(at, chunk, rows, chunks, gpu)
            new = deal(stage.states, [k.read(m, where) for m in memories])
            return [x for s, a, b in zip(stage.states, deal(stage.states, own), new) for x in s.merge(k, a, b)]

        found = k.for_(row.line, k.const(chunks, INDEX), step, row.start(stage.states), step=lines)
        row.provide(stage.states, row.combiner.combine(stage.states, found, None, row.repeat))
        row.store_results()

    groups = row.for_rows(rows, 1, each)
    read = sum(aval.nbytes for aval in avals)
    return part.finish("combine", groups, team.threads, read, bytes_written(body), chunks * rows)
