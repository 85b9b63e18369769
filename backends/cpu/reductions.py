"""Kernels with reductions: `row` and `split`.

`row`: reductions along axes of one row with maps between. `split`: few large rows, in chunks first, then combined.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace

from smelt.backends.accumulate import Accumulator
from smelt.backends.lowering import Fused, always, fuse_variables
from smelt.backends.plan import Plan, make_plan
from smelt.ir.aval import Aval
from smelt.ir.builder import Function
from smelt.ir.index import Index, linearize
from smelt.ir.scalar import INDEX, Scalar

from .followed_rows import ROWS, FollowedRowKernel, is_followed
from .kernel import CpuKernel, KernelModule, Memory
from .loops import Nest, emit_nest
from .narrow_lines import NarrowRowKernel, is_narrow
from .rows import FEWEST, LINE, RowKernel, is_line, is_near, line_width, narrowest
from .schedules import ScheduledKernel, start_kernel
from .spread_rows import SpreadRowKernel, rows_together

#: How many chunks of a line are combined at a time.
CHUNKS_AT_ONCE = 8

#: Bytes of the accumulators of a line that is read once: whole lines of memory, one after the other, come quicker than
#: pieces of lines that lie far apart. Half of a first cache.
WIDE_BYTES = 16 << 10

#: Makes what builds the loops of one row, or of a line of rows of some width.
RowBuilder = Callable[[CpuKernel, Plan, list[Memory], "Fused | None", int], RowKernel]


def build_row(module: KernelModule, name: str, body: Function, kept_axes: Sequence[Sequence[int]]) -> ScheduledKernel:
    """Reductions along rows with maps between them."""
    plan = make_plan(body, kept_axes)
    loops = fuse_variables(plan.kept_variables, plan.uses)
    # a loop alone is divided among threads
    narrow = is_line(plan) and len(loops) > 1 and is_narrow(plan, loops[-1])
    if together := rows_together(plan, loops):
        return emit_rows(module, name, plan, SpreadRowKernel, together)
    if not is_line(plan) and is_followed(plan, loops):
        return emit_rows(module, name, plan, FollowedRowKernel, ROWS)
    return emit_rows(module, name, plan, NarrowRowKernel if narrow else RowKernel)


def emit_rows(module: KernelModule, name: str, plan: Plan, kind: RowBuilder, together: int = 0) -> ScheduledKernel:
    """A kernel with a loop over rows, or over lines of them where they lie beside each other, or `together` anyway."""
    loops, body = fuse_variables(plan.kept_variables, plan.uses), plan.body
    lanes = (is_line(plan) or together > 0) and bool(loops)
    tile = together or line_width(loops, narrowest(plan.loads, loops[-1])) if lanes else None
    nest = Nest.plan(loops, lanes, tile)
    k, outputs, lo, hi = start_kernel(module, name, body)
    row = kind(k, plan, outputs, loops[-1] if lanes else None, nest.tile)
    if kind is RowKernel and lanes and (row.goes_once or is_near(plan, loops)):
        nest = replace(nest, together=row.widen(WIDE_BYTES))
    if all(loop.extent for loop in loops):
        emit_nest(k, nest, lo, hi, row.emit)
    k.emit("func.return", [], [])
    return ScheduledKernel(name, body, nest.split, [*body.arguments, *body.returns])


def build_split(
    module: KernelModule, name: str, body: Function, kept_axes: Sequence[Sequence[int]], chunks: int
) -> list[ScheduledKernel]:
    """Few large rows: partial results of chunks in one kernel, their combination in another."""
    plan = make_plan(body, kept_axes)
    loops = fuse_variables(plan.kept_variables, plan.uses)
    lanes = is_line(plan) and bool(loops)
    rows = math.prod(loop.extent for loop in loops)
    space = plan.space_of[plan.reductions[0].results[0]]
    chunk = Fused([("chunk", chunks)])
    tile = min(LINE * max(1, 4 // narrowest(plan.loads, loops[-1])), loops[-1].extent) if lanes else None
    accumulators = [Accumulator(op, plan.places[op.results[0]]) for op in plan.reductions]
    partial: list[tuple[int, Aval]] = []
    offset = 0
    for a in accumulators:
        for aval in a.partial_avals(chunks * rows):
            partial.append((offset, aval))
            offset += -(-aval.nbytes // 64) * 64

    avals = [aval for _, aval in partial]
    k, memories, lo, hi = start_kernel(module, name + "_chunks", body, avals)
    if k.breaks is not None:
        k.breaks.parts = chunks
    kind = NarrowRowKernel if lanes and is_narrow(plan, loops[-1]) else RowKernel
    row = kind(k, plan, [], loops[-1] if lanes else None, tile or 1)
    inner = row.loops[space]
    widest = max(range(len(inner)), key=lambda i: inner[i].extent)
    row_index = linearize([Index.variable(n, e) for n, e in plan.kept_variables], [e for _, e in plan.kept_variables])
    nest = Nest.plan([chunk, *loops], lanes, tile)

    def emit(first: Scalar | None = None, last: Scalar | None = None) -> None:
        row.first, row.last = first, last
        at = k.loops["chunk"][1]
        extent = inner[widest].extent
        low = k.op("arith.divui", [at * extent, k.const(chunks, INDEX)], INDEX)
        high = k.op("arith.divui", [(at + 1) * extent, k.const(chunks, INDEX)], INDEX)
        bounds = {widest: (low, high)}

        def save(states: list[list[Scalar]]) -> None:
            where = at * rows + k.index(row_index)
            for memory, x in zip(memories, (s for state in states for s in state)):
                k.write(x, memory, where)

        if not lanes:
            save(row.accumulate_row(space, row.accumulators, bounds=bounds, chunks=chunks))
            return
        row.make_lines(row.accumulators)
        row.accumulate_line(space, row.accumulators, bounds=bounds)
        row.each_lane(
            lambda: save([[k.read(m, row.lane_offset()) for m in row.lines[a.result]] for a in row.accumulators])
        )

    emit_nest(k, nest, lo, hi, emit)
    k.emit("func.return", [], [])
    first = ScheduledKernel(name + "_chunks", body, nest.split, [*body.arguments, *partial])
    return [first, _build_combine(module, name, body, plan, loops, partial, chunks)]


def _build_combine(module, name, body, plan: Plan, loops, partial, chunks: int) -> ScheduledKernel:
    """Partial results into results, and what depends on them."""
    avals = [aval for _, aval in partial]
    rows = math.prod(loop.extent for loop in loops)
    k, memories, lo, hi = start_kernel(module, name, body, [*avals, *(v.aval for v in body.returns)])
    outputs = memories[len(avals) :]
    tile = line_width(loops, min(aval.dtype.size for aval in avals)) if loops else 1
    lane = loops[-1] if tile >= FEWEST else None
    row = RowKernel(k, plan, outputs, lane, tile)
    row_index = linearize([Index.variable(n, e) for n, e in plan.kept_variables], [e for _, e in plan.kept_variables])
    nest = Nest.plan(loops, lanes=False)

    def states(chunk: Scalar) -> list[list[Scalar]]:
        rest = iter(memories)
        where = chunk * rows + k.index(row_index)
        return [[k.read(next(rest), where) for _ in a.state] for a in row.accumulators]

    def emit() -> None:
        start = [s for state in states(k.const(0, INDEX)) for s in state]

        def step(i: Scalar, *state: Scalar) -> list[Scalar]:
            dealt = _deal(row.accumulators, state)
            return [s for (a, own), new in zip(dealt, states(i)) for s in a.merge(k, own, new)]

        with k.in_order():  # however many rows are a thread's
            final = k.for_(k.const(1, INDEX), k.const(chunks, INDEX), step, start)
        for a, own in _deal(row.accumulators, final):
            done = a.finish(own)
            k.provided[a.result] = always(done)
        row.emit_kept()

    def line(first: Scalar, last: Scalar) -> None:
        """The same for rows that lie beside each other, in vectors."""
        row.first, row.last = first, last
        row.make_lines(row.accumulators)

        def merged(chunk: Scalar, many: int, found: list[list[Scalar]]) -> None:
            for i in range(many):
                found = [a.merge(k, own, new) for a, own, new in zip(row.accumulators, found, states(chunk + i))]
            row.write_lines(row.accumulators, found)

        def loop(low: Scalar, high: Scalar, many: int) -> None:
            def step(at: Scalar) -> None:
                row.each_lane(lambda: merged(at, many, row.read_lines(row.accumulators)))

            k.loop(None, low, high, step, step=many)

        row.each_lane(lambda: row.write_lines(row.accumulators, states(k.const(0, INDEX))))
        one, several, end = (k.const(n, INDEX) for n in (1, chunks - (chunks - 1) % CHUNKS_AT_ONCE, chunks))
        loop(one, several, CHUNKS_AT_ONCE)
        loop(several, end, 1)
        row.provide(row.accumulators)
        row.emit_kept()

    if lane is not None:
        nest = Nest.plan(loops, lanes=True, tile=tile)
    emit_nest(k, nest, lo, hi, emit if lane is None else line)
    k.emit("func.return", [], [])
    return ScheduledKernel(name, body, nest.split, [*body.arguments, *partial, *body.returns])


def _deal(accumulators: Sequence[Accumulator], state: Sequence[Scalar]) -> list[tuple[Accumulator, list[Scalar]]]:
    """Each accumulator with its part of the carried scalars."""
    rest = iter(state)
    return [(a, [next(rest) for _ in a.state]) for a in accumulators]
