"""Kernels with reductions: fusions that the fuse pass marks `row` or `split`.

Each row belongs to a team of threads, which reads it once if its registers can hold it. Few rows, or few columns, of
many elements are shared by threadgroups (see `split`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from smelt.backends.lowering import fuse_variables
from smelt.backends.plan import Plan, make_plan
from smelt.ir.builder import Function
from smelt.ir.dtypes import DType
from smelt.ir.scalar import Scalar

from ...devices import Gpu
from ...kernel import GpuModule
from ..schedule import (
    ScheduledKernel,
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
    Layout,
    column_team,
    inner_loops,
    is_columns,
    lane_width,
    row_team,
    space_of,
)
from .split import Split, may_split
from .stages import Read, Stage, find_reads, find_stages, kept_in_registers, most_held


def build_row(
    module: GpuModule, body: Function, kept: Sequence[Sequence[int]], scratch: ScratchPlan
) -> list[ScheduledKernel]:
    """Reductions along rows, with maps between them: one kernel, or several where rows are few and long."""
    plan = make_plan(body, kept)
    if not any(v.aval.size for v in body.returns):
        return []
    merged = merged_states(plan)
    choices = [find_stages(plan), find_stages(plan, merged)] if merged else [find_stages(plan)]
    stages = choices[-1]
    if may_split(stages):
        layout = _layout(module.gpu, plan, stages, held=0, ragged=True)
        split = Split.of(module, plan, stages, layout, scratch)
        if split is not None:
            return split.build()
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
        size = max((v.dtype.size for v, _ in plan.loads), default=4)
        team = row_team(gpu, rows, extents.get(longest, 1) // own, own, held, size)
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
