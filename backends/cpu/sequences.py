"""Kernels whose elements depend on each other in order: `scan` and `scatter`."""

from __future__ import annotations

from typing import Any

from smelt.backends.lowering import fuse_variables
from smelt.ir.builder import Function
from smelt.ir.index import Index, linearize, variables
from smelt.ir.scalar import INDEX, Scalar, compute_dtype
from smelt.passes.kernels.analysis import collect_reads

from .kernel import KernelModule
from .loops import Nest, Split, emit_nest
from .rows import LINE, line_width
from .schedules import Step, start_kernel

#: Elements of a scanned row that are computed together, in a loop that LLVM vectorizes, before they are summed.
CHUNK = 512


def build_scan(module: KernelModule, name: str, body: Function) -> Step:
    """A running sum or the like along one axis. Rows run in parallel, a row in order."""
    op: Any = body.returns[0].owner
    x, attrs = op.operands[0], op.attrs
    axis, shape = attrs["axis"], x.shape
    place = list(variables(shape, "o"))
    at = place[axis]
    place[axis] = (shape[axis] - 1) - at if attrs["reverse"] else at
    where = tuple(place)
    numbers: list[Index] = []
    reads = collect_reads(body.ops[:-1], [(x, where)], numbers)
    uses = [linearize(p, v.shape) for v in body.arguments for p in reads.get(v, ())]
    uses += [*numbers, linearize(where, shape)]
    kept = [(f"o{a}", d) for a, d in enumerate(shape) if a != axis and d != 1]
    (steps,) = fuse_variables([(f"o{axis}", shape[axis])], uses) or (None,)
    # Axes on both sides of the scanned one are not neighbours, so they must not merge.
    before = fuse_variables([v for v in kept if int(v[0][1:]) < axis], uses)
    after = fuse_variables([v for v in kept if int(v[0][1:]) > axis], uses)
    loops = [*before, *after]
    lanes = bool(after)
    nest = Nest.plan(loops, lanes, line_width(loops) if lanes else None)
    k, (out,), lo, hi = start_kernel(module, name, body)
    start = k.const(op.op.identity(x.dtype), x.dtype)
    zero, count = k.const(0, INDEX), k.const(shape[axis], INDEX)

    def advance(total: Scalar, element: Scalar | None = None) -> Scalar:
        after_ = op.op.combine(k, total, k.value(x, where) if element is None else element)
        k.store(after_ if attrs["inclusive"] else total, out, where)
        return after_

    def chunks() -> None:
        line = k.scratch(CHUNK, compute_dtype(x.dtype))

        def chunk(first: Scalar, total: Scalar) -> list[Scalar]:
            last = k.op("arith.minui", [first + CHUNK, count], INDEX)
            k.loop(steps, first, last, lambda i: k.write(k.value(x, where), line, i - first))
            return k.loop(steps, first, last, lambda i, t: [advance(t, k.read(line, i - first))], [total])

        k.loop(None, zero, count, chunk, [start], step=CHUNK)

    def row(first: Any = None, last: Any = None) -> None:
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

        def step() -> None:
            k.loop(lane, first, last, lambda i: k.write(advance(k.read(line, offset())), line, offset()))

        if steps is None:
            step()
        else:
            k.loop(steps, zero, count, lambda i: step())

    if x.aval.size:
        emit_nest(k, nest, lo, hi, row)
    k.emit("func.return", [], [])
    return Step(name, body, nest.split, [*body.arguments, *body.returns])


def build_scatter(module: KernelModule, name: str, body: Function) -> list[Step]:
    """A copy of x, then the updates in order; in parallel only along an axis that no index moves."""
    op: Any = body.returns[0].owner
    x, updates = op.operands[:2]
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
    copy = Step(name + "_copy", body, nest.split, operands, copies=True)

    k, (out,), lo, hi = start_kernel(module, name, body)
    shape = updates.shape
    free = x.ndim - 1
    parallel = x.ndim > 0 and free not in op.attrs["axes"] and shape[-1] > 1
    split = Split(shape[-1], 16) if parallel else Split(1)
    at = variables(shape, "u")
    avals = [v.aval for v in op.operands]

    def update() -> None:
        inside, target = op.op.place(k, at, lambda i, there: k.value(op.operands[i], tuple(there)), avals, **op.attrs)

        def apply() -> None:
            new = k.value(updates, at)
            if op.attrs["mode"] != "set":
                offset = k.index(linearize(target, x.shape))
                new = op.op.combine(k, k.read(out, offset), new, mode=op.attrs["mode"])
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

    if updates.aval.size and x.aval.size:
        if parallel:
            nested(0)
        else:
            k.loop(None, lo, hi, lambda i: nested(0))
    k.emit("func.return", [], [])
    return [copy, Step(name, body, split, operands)]


def _copy_nest(body: Function, x: Any, place: tuple[Index, ...]) -> Nest:
    numbers: list[Index] = []
    reads = collect_reads(body.ops[:-1], [(x, place)], numbers)
    uses = [linearize(p, v.shape) for v in body.arguments for p in reads.get(v, ())]
    uses += [*numbers, linearize(place, x.shape)]
    return Nest.plan(fuse_variables([(f"o{a}", d) for a, d in enumerate(x.shape)], uses), lanes=True)
