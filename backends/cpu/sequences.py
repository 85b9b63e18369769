"""Kernels whose elements depend on each other in order: `scan` and `scatter`."""

from __future__ import annotations

from typing import Any

from smelt.backends.lowering import fuse_variables
from smelt.backends.sequences import ScanPlan, Scattering, reads_of
from smelt.ir import dtypes
from smelt.ir.builder import Function
from smelt.ir.index import Index, linearize, variables
from smelt.ir.ops.scan_sort import Cumulative
from smelt.ir.scalar import INDEX, Scalar, compute_dtype
from smelt.passes.kernels.analysis import collect_reads

from .kernel import KernelModule
from .loops import Nest, Split, emit_nest
from .rows import LINE, line_width
from .scan_rows import RowScan, lanes_of
from .schedules import ScheduledKernel, start_kernel
from .streaming import can_stream, emit_streaming, far_apart, fetch_line

#: Elements of a scanned row that are computed together, in a loop that LLVM vectorizes, before they are summed.
CHUNK = 512
#: Rows that are scanned side by side.
BESIDE = 4


def build_scan(module: KernelModule, name: str, body: Function) -> ScheduledKernel:
    """A running sum or the like along one axis. Rows run in parallel, a row in order."""
    plan: ScanPlan = ScanPlan.of(body, reversed_place=True)
    op = plan.op.rules(Cumulative)
    x, attrs, where = plan.x, plan.op.attrs, plan.place
    steps = plan.along if plan.length != 1 else None
    loops = [*plan.before, *plan.after]
    lanes = bool(plan.after)
    vector = 0 if lanes or steps is None else lanes_of(x)
    wide = 0 < vector <= min(plan.length, loops[-1].extent if loops else 0)
    alone = not wide and op.regroups and 0 < vector <= plan.length and vector > 1
    #: rows that are not computed before they are summed run side by side: a sum waits for the last one of its row alone
    plain = not any(inner.op.flops for inner in body.ops[:-1])
    beside = not lanes and bool(loops) and steps is not None and plain and not wide and not alone
    tile = line_width(loops) if lanes else vector if wide else BESIDE if beside else None
    nest = Nest.plan(loops, lanes or beside or wide, tile)
    k, (out,), lo, hi = start_kernel(module, name, body)
    in_rows = RowScan(k, plan, out, loops[-1] if loops else None)
    start = plan.identity(k)
    zero, count = k.const(0, INDEX), k.const(plan.length, INDEX)

    def advance(total: Scalar, element: Scalar | None = None) -> Scalar:
        after_ = op.combine(k, total, k.value(x, where) if element is None else element)
        k.store(after_ if attrs["inclusive"] else total, out, where)
        return after_

    def chunks() -> None:
        line = k.scratch(CHUNK, compute_dtype(x.dtype))

        def chunk(first: Scalar, total: Scalar) -> list[Scalar]:
            last = k.op("arith.minui", [first + CHUNK, count], INDEX)
            k.loop(steps, first, last, lambda i: k.write(k.value(x, where), line, i - first))
            return k.loop(steps, first, last, lambda i, t: [advance(t, k.read(line, i - first))], [total])

        k.loop(None, zero, count, chunk, [start], step=CHUNK)

    def rows(first: Scalar, last: Scalar) -> None:
        def advance_all(*totals: Scalar) -> list[Scalar]:
            found = []
            for j, total in enumerate(totals):
                at = k.op("arith.minui", [first + j, last - 1], INDEX)  # beyond the last row it once more
                with k.at_position(loops[-1], at):
                    found.append(advance(total))
            return found

        k.loop(steps, zero, count, lambda i, *totals: advance_all(*totals), [start] * BESIDE)

    def row(first: Any = None, last: Any = None) -> None:
        if wide:
            k.loop(None, first, last, lambda at: in_rows.beside(at, last), step=vector)
            return
        if alone:
            in_rows.alone()
            return
        if beside:
            k.loop(None, first, last, lambda at: rows(at, last), step=BESIDE)
            return
        if not lanes:
            if steps is None:
                advance(start)
            elif any(inner.op.flops for inner in body.ops[:-1]):
                chunks()
            else:
                k.loop(steps, zero, count, lambda i, total: [advance(total)], [start])
            return
        line = k.scratch(LINE, compute_dtype(x.dtype))
        lane = loops[-1]

        def offset() -> Scalar:
            return k.loops[lane.names[0]][1] - first

        k.loop(lane, first, last, lambda i: k.write(start, line, offset()))

        reads = collect_reads(body.ops[:-1], [(x, where)])
        fetched = [] if steps is None else far_apart(k, reads, lane, steps, nest.tile)

        def element() -> list[Scalar]:
            total = k.read(line, offset())
            sum_ = op.combine(k, total, k.value(x, where))
            k.write(sum_, line, offset())
            return [sum_ if attrs["inclusive"] else total]

        def step() -> None:
            if can_stream(lane, [(out, where)]):
                emit_streaming(k, lane, first, last, [(out, where)], element, fetched)
                return
            fetch_line(k, lane, first, fetched, nest.tile)
            k.loop(lane, first, last, lambda i: k.store(element()[0], out, where))

        if steps is None:
            step()
        else:
            k.loop(steps, zero, count, lambda i: step())

    if x.aval.size:
        emit_nest(k, nest, lo, hi, row)
    k.emit("func.return", [], [])
    return ScheduledKernel(name, body, nest.split, [*body.arguments, *body.returns])


def build_scatter(module: KernelModule, name: str, body: Function) -> list[ScheduledKernel]:
    """A copy of x, then the updates in order; in parallel only along an axis that no index moves.

    Where single elements are updated by what is computed, that is done for some at a time, in a loop that LLVM
    vectorizes: in the loop that updates, each store may be what the next one reads.
    """
    op = body.returns[0].owner
    assert op is not None
    what = Scattering(body, op, variables(op.operands[1].shape, "u"))
    x, updates = what.x, what.updates
    operands = [*body.arguments, *body.returns]
    k, (out,), lo, hi = start_kernel(module, name + "_copy", body)
    place = variables(x.shape, "o")
    nest = _copy_nest(body, x, place)

    def line(first: Any = None, last: Any = None) -> None:
        if nest.lanes:
            k.loop(nest.loops[-1], first, last, lambda at: k.store(k.value(x, place), out, place))
        else:
            k.store(k.value(x, place), out, place)

    if x.aval.size:
        emit_nest(k, nest, lo, hi, line)
    k.emit("func.return", [], [])
    copy = ScheduledKernel(name + "_copy", body, nest.split, operands, copies=True)

    k, (out,), lo, hi = start_kernel(module, name, body)
    shape = updates.shape
    free = x.ndim - 1
    parallel = x.ndim > 0 and free not in op.attrs["axes"] and shape[-1] > 1
    split = Split(shape[-1], 16) if parallel else Split(1)

    def update() -> None:
        inside, target = what.target_place(k)

        def apply() -> None:
            new = k.value(updates, what.at)
            if what.mode != "set":
                offset = k.index(linearize(target, x.shape))
                new = what.combine(k, k.read(out, offset), new)
            k.store(new, out, target)

        k.when(inside, apply)

    def nested(axis: int) -> None:
        if axis == len(shape):
            update()
            return
        bounds = (k.const(0, INDEX), k.const(shape[axis], INDEX))
        if axis == len(shape) - 1 and parallel:
            bounds = (lo, hi)
        loops = fuse_variables([(f"u{axis}", shape[axis])], [])
        if not loops:
            nested(axis + 1)
            return
        k.loop(loops[0], *bounds, lambda i: nested(axis + 1))

    def chunks() -> None:
        _, uses = reads_of(body, what.reads)
        loops = fuse_variables([(f"u{a}", d) for a, d in enumerate(shape)], uses)
        line = loops[-1]
        number = dtypes.int32 if x.aval.size < 1 << 31 else dtypes.int64
        places, values = k.scratch(CHUNK, number), k.scratch(CHUNK, compute_dtype(updates.dtype))
        zero, count = k.const(0, INDEX), k.const(line.extent, INDEX)

        def find(i: Scalar) -> None:
            inside, target = what.target_place(k)
            offset = k.index(linearize(target, x.shape), number)
            k.write(k.select(inside, offset, k.const(-1, number)), places, i)
            k.write(k.value(updates, what.at), values, i)

        def put(i: Scalar) -> None:
            place = k.read(places, i)

            def apply() -> None:
                offset, new = k.convert(place, INDEX), k.read(values, i)
                k.write(new if what.mode == "set" else what.combine(k, k.read(out, offset), new), out, offset)

            k.when(place >= 0, apply)

        def chunk(first: Scalar) -> None:
            last = k.op("arith.minui", [first + CHUNK, count], INDEX)
            k.loop(line, first, last, lambda i: find(i - first))
            k.loop(None, zero, last - first, put)

        def level(axis: int) -> None:
            if axis == len(loops) - 1:
                k.loop(None, zero, count, chunk, step=CHUNK)
                return
            k.loop(loops[axis], zero, k.const(loops[axis].extent, INDEX), lambda i: level(axis + 1))

        level(0)

    computed = any(inner.op.flops for inner in body.ops[:-1])  #: places or values
    apart = computed and updates.aval.size == what.count > CHUNK and k.checks is None
    if updates.aval.size and x.aval.size:
        if parallel:
            nested(0)
        elif apart:
            k.loop(None, lo, hi, lambda i: chunks())
        else:
            k.loop(None, lo, hi, lambda i: nested(0))
    k.emit("func.return", [], [])
    return [copy, ScheduledKernel(name, body, split, operands)]


def _copy_nest(body: Function, x: Any, place: tuple[Index, ...]) -> Nest:
    _, uses = reads_of(body, [(x, place)])
    return Nest.plan(fuse_variables([(f"o{a}", d) for a, d in enumerate(x.shape)], uses), lanes=True)
