"""The `scatter` schedule: a copy of x, then the updates, with the result that applying them in order has.

Threads meet where several updates have one target, so there are six ways, the first that fits:

- one update: all targets are distinct;
- an operation whose order does not matter: atomics on 32-bit integers, plain writes of truth values;
- few updates: a thread applies all of them in order to the elements it owns;
- many updates of few targets: each thread has elements of its own for all targets (see `private`);
- many floats to be added: as integers, by atomics, whose order does not matter (see `exact`);
- else the updates are sorted by their target, and each run of equal targets is applied (see `runs`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from smelt.backends.lowering import Fused, fuse_variables
from smelt.backends.memory import Memory
from smelt.ir import dtypes
from smelt.ir.aval import Aval
from smelt.ir.builder import Function
from smelt.ir.index import Index, linearize, variables
from smelt.ir.scalar import INDEX, Scalar

from ...kernel import ATOMICS, GpuKernel, GpuModule
from ..maps import bind_loops
from ..parts import evaluate_vector, start_part, vector_width
from ..schedule import ScheduledKernel, Scratch, ScratchPlan, source_lines, threads_for
from ..sort.build import sort_steps
from ..sort.sorting import Layout, Sorted
from .exact import apply_exact, suits_exact
from .private import PrivateShape, apply_private
from .runs import apply_runs
from .scattering import Scattering, dropped

#: So many updates are applied by one thread in order.
FEW = 32
#: Buffers that the kernel which applies sorted updates has beside the arguments of a fusion.
OWN_BUFFERS = 3


def build_scatter(module: GpuModule, body: Function, scratch: ScratchPlan) -> list[ScheduledKernel]:
    """The kernels of a fusion that ends in a scatter."""
    op = body.returns[0].owner
    assert op is not None
    what = Scattering(body, op, variables(op.operands[1].shape, "u"))
    if not what.x.aval.size:
        return []
    steps = [_copy(module, what)]
    if not what.updates.aval.size:
        return steps
    if what.count == 1 or (what.x.dtype.kind == "b" and what.mode != "set"):
        return [*steps, _apply_each(module, what)]
    if what.x.dtype.size == 4 and (what.mode, what.x.dtype.kind) in ATOMICS:
        return [*steps, _apply_each(module, what)]
    if what.count * what.moved <= FEW or len(body.arguments) + OWN_BUFFERS > module.gpu.max_buffers:
        return [*steps, _apply_in_order(module, what)]
    private = PrivateShape.of(module.gpu, what)
    if private is not None:
        return [*steps, *apply_private(module, what, private, scratch)]
    if suits_exact(what):
        return [*steps, *apply_exact(module, what, scratch)]
    return [*steps, *_apply_sorted(module, what, scratch)]


def _copy(module: GpuModule, what: Scattering) -> ScheduledKernel:
    """x where nothing is scattered."""
    x, place = what.x, variables(what.x.shape, "o")
    part = start_part(module, what.body, "_copy", [(x, place)], [("out", what.out)])
    k, (out,) = part.k, part.extra
    loops = fuse_variables([(f"o{a}", d) for a, d in enumerate(x.shape) if d != 1], part.uses)
    lane = loops[-1] if loops else Fused([])
    width = vector_width(what.out, place, lane) if loops else 1
    total = x.aval.size // width
    threads, groups = threads_for(k, total)

    def item(i: Scalar) -> None:
        inner = bind_loops(k, loops[:-1], lane.extent // width, i)
        if width == 1:
            k.bind(lane, inner)
            k.store(k.value(x, place), out, place)
            return
        first = inner * width

        def element(j: Scalar, vector: Any) -> list[Any]:
            return [k.insert(k.value(x, place), vector, j, x.dtype)]

        (vector,) = evaluate_vector(k, lane, first, width, part.loads, element, [k.empty_vector(x.dtype, width)])
        with k.at_position(lane, first):
            k.store_vector(vector, out, k.index(linearize(place, x.shape)))

    k.grid_stride(None, total, threads, groups, item)
    flops = sum(op.op.flops * op.results[0].aval.size for op in what.body.ops[:-1])
    return replace(part.finish("map", groups, threads, 0, x.aval.nbytes, flops), copies=True)


def _apply_each(module: GpuModule, what: Scattering) -> ScheduledKernel:
    """All elements of updates at once: their targets are distinct, or the order does not matter."""
    part = start_part(module, what.body, "", what.reads, [("out", what.out)])
    k, (out,) = part.k, part.extra
    loops = fuse_variables([(f"u{a}", d) for a, d in enumerate(what.updates.shape) if d != 1], part.uses)
    size = what.updates.aval.size
    threads, groups = threads_for(k, size)

    def element(i: Scalar) -> None:
        bind_loops(k, loops, 1, i)
        inside, target = what.target(k)
        k.when(inside, lambda: apply(target))

    def apply(target: Scalar) -> None:
        new = k.value(what.updates, what.at)
        if what.count == 1:
            k.write(new if what.mode == "set" else what.combine(k, k.read(out, target), new), out, target)
        elif new.dtype.kind == "b":  # all threads that write to one element write the same
            decides = what.mode in ("add", "max")
            then = k.const(decides, dtypes.bool_)
            k.when(new if decides else ~new, lambda: k.write(then, out, target))
        else:
            k.atomic(what.mode, new, out, target)

    k.grid_stride(None, size, threads, groups, element)
    return what.finish(part, "scatter", groups, threads)


def _apply_in_order(module: GpuModule, what: Scattering) -> ScheduledKernel:
    """A thread for each element of a window along the axes that are not indexed; it applies all updates."""
    part = start_part(module, what.body, "", what.reads, [("out", what.out)])
    k, (out,) = part.k, part.extra
    axes = what.op.attrs["axes"]
    updates = what.axes(range(what.lead))
    moved = what.axes([what.lead + a for a in axes])
    own = what.axes([what.lead + a for a in range(what.x.ndim) if a not in axes])
    threads, groups = threads_for(k, own.extent)

    def column(i: Scalar) -> None:
        k.bind(own, i)
        over(updates, lambda: over(moved, element))

    def over(loop: Fused, body: Callable[[], None]) -> None:
        if loop.extent == 1:
            body()
        else:
            k.loop(loop, k.const(0, INDEX), k.const(loop.extent, INDEX), lambda _: body())

    def element() -> None:
        inside, target = what.target(k)
        k.when(inside, lambda: _apply_one(k, what, out, target))

    k.grid_stride(None, own.extent, threads, groups, column)
    return what.finish(part, "scatter", groups, threads)


def _apply_one(k: GpuKernel, what: Scattering, out: Memory, target: Scalar) -> None:
    """Apply the element of updates at the current position."""
    new = k.value(what.updates, what.at)
    k.write(new if what.mode == "set" else what.combine(k, k.read(out, target), new), out, target)


# By sorting


def _apply_sorted(module: GpuModule, what: Scattering, scratch: ScratchPlan) -> list[ScheduledKernel]:
    """Targets of all updates, sorted; then each run of equal ones in order.

    Windows that do not extend along the indexed axes are either the same or apart: then whole windows are
    sorted, and all their elements applied at once. Else elements are sorted.
    """
    whole = what.moved == 1
    items = what.count if whole else what.updates.aval.size
    dtype = dtypes.uint32 if what.x.aval.size < 2**32 - 1 else dtypes.uint64
    targets, keys = (scratch.take(Aval((items,), dtype)) for _ in range(2))
    order = scratch.take(Aval((items,), dtypes.uint32))
    axes = range(what.lead) if whole else range(what.updates.ndim)
    body = what.body
    sorting = Sorted(
        f"{body.name}_sort", body.mlir.location, source_lines(body.ops), targets, Layout(1, items), keys, order,
        what.x.aval.size.bit_length(),  # and of what is dropped, which has all bits set
    )
    return [
        _targets(module, what, what.axes(axes), whole, targets),
        *sort_steps(module, sorting, scratch),
        *apply_runs(module, what, what.axes(axes), whole, keys, order, scratch),
    ]


def _targets(module: GpuModule, what: Scattering, items: Fused, whole: bool, targets: Scratch) -> ScheduledKernel:
    """Where each update goes: the offset of its window, or of each of its elements."""
    part = start_part(module, what.body, "_targets", what.index_reads, [("targets", targets)])
    k, (memory,) = part.k, part.extra
    dtype = memory.aval.dtype
    at = (*what.at[: what.lead], *(Index(0),) * what.x.ndim) if whole else what.at
    threads, groups = threads_for(k, items.extent)

    def item(i: Scalar) -> None:
        k.bind(items, i)
        inside, target = what.target(k, at)
        k.write(k.select(inside, k.convert(target, dtype), dropped(k, dtype)), memory, i)

    k.grid_stride(None, items.extent, threads, groups, item)
    return part.finish("scatter", groups, threads, 0, memory.aval.nbytes, 0)
