"""Kernels whose elements depend on each other in order: `scan` and `scatter`."""

from __future__ import annotations

from dataclasses import replace

from smelt.backends.lowering import Fused, fuse_variables
from smelt.backends.scan_scatter import ScanPlan, Scattering, reads_of
from smelt.ir import dtypes
from smelt.ir.builder import Function, Value
from smelt.ir.index import linearize, variables
from smelt.ir.ops.scan_sort import Cumulative
from smelt.ir.scalar import INDEX, Scalar, compute_dtype
from smelt.passes.kernels.analysis import collect_reads

from . import usual
from .kernel import CpuKernel, KernelModule, Memory
from .loops import Nest, Split, emit_nest, inner_loops
from .rows import line_width
from .scan_rows import RowScan, lanes_of
from .schedules import ScheduledKernel, start_kernel
from .streaming import can_stream, emit_line, far_apart, is_aligned, is_worth_streaming

#: Elements of a scanned row that are computed together, in a loop that LLVM vectorizes, before they are summed.
CHUNK = 512
#: Bytes of the sums of neighbouring rows: whole lines of memory come and go quicker than pieces of lines that lie far
#: apart, each of which has elements before and behind those that leave past the caches. Half of a first cache.
WIDE_BYTES = 16 << 10
#: Pieces of such a line, at least, that leaves past the caches wherever it begins: scanned ones are in less of a hurry.
FEWEST_PIECES = 32
#: Rows that are scanned side by side.
BESIDE = 4


def build_scan(module: KernelModule, name: str, body: Function) -> ScheduledKernel:
    """A running sum or the like along one axis. Rows run in parallel, a row in order."""
    plan: ScanPlan = ScanPlan.of(body, reversed_place=True)
    x, loops, length = plan.x, [*plan.before, *plan.after], plan.length
    lanes = bool(plan.after)
    vector = 0 if lanes or length == 1 else lanes_of(x)
    k, (out,), lo, hi = start_kernel(module, name, body)
    scan = Scan(k, plan, out)
    regroups = plan.op.rules(Cumulative).regroups and 1 < vector <= length
    wide = 0 < vector <= min(length, loops[-1].extent if loops else 0) and not (regroups and _stay_apart(plan, out))
    alone = not wide and regroups
    #: rows that are not computed before they are summed run side by side: a sum waits for the last one of its row alone
    beside = not (lanes or wide or alone or _is_computed(body)) and bool(loops) and length != 1
    tile = line_width(loops, x.dtype.size) if lanes else vector if wide else BESIDE if beside else None
    nest = Nest.plan(loops, lanes or beside or wide, tile)
    if lanes and nest.tiles > 1:
        nest = replace(nest, together=max(1, WIDE_BYTES // (nest.tile * scan.total.size)))
    in_rows = RowScan(k, plan, out, loops[-1] if loops else None)

    def row(first: Scalar | None = None, last: Scalar | None = None) -> None:
        if first is None or last is None:
            if alone:
                in_rows.alone()
            else:
                scan.row()
        elif wide:
            k.loop(None, first, last, lambda at: in_rows.beside(at, last), step=vector)
        elif beside:
            k.loop(None, first, last, lambda at: scan.rows_beside(loops[-1], at, last), step=BESIDE)
        else:
            scan.line(loops[-1], first, last, min(nest.tile * nest.together, loops[-1].extent))

    if x.aval.size:
        emit_nest(k, nest, lo, hi, row)
    k.emit("func.return", [], [])
    return ScheduledKernel(name, body, nest.split, [*body.arguments, *body.returns])


def _stay_apart(plan: ScanPlan, out: Memory) -> bool:
    """Whether rows take less one by one than side by side, where they are turned: that takes as much for an element of
    one byte as of four, and of pieces so short none is whole where rows begin anywhere in a line of memory."""
    target = [(out, plan.place)]
    return plan.x.dtype.size < 4 or (can_stream(plan.along, target) and not is_aligned(plan.along, target))


def _is_computed(body: Function) -> bool:
    """Whether what a scan or a scatter reads takes arithmetic."""
    return any(op.op.flops for op in body.ops[:-1])


class Scan:
    """The loops of a scan, element by element: over a row, over rows side by side, over a line of rows."""

    def __init__(self, k: CpuKernel, plan: ScanPlan, out: Memory):
        self.k, self.plan, self.out = k, plan, out
        self.op, self.inclusive = plan.op.rules(Cumulative), plan.op.attrs["inclusive"]
        self.steps = plan.along if plan.length != 1 else None
        self.dtype = compute_dtype(plan.x.dtype)
        self.total = compute_dtype(self.op.total_dtype(plan.x.dtype))
        self.start = plan.identity(k, self.total)
        self.zero, self.count = k.const(0, INDEX), k.const(plan.length, INDEX)

    def _advance(self, total: Scalar, element: Scalar | None = None) -> Scalar:
        """Store the result where the loops stand; what it has come to then."""
        k, x, place = self.k, self.plan.x, self.plan.place
        after = self._combine(total, k.value(x, place) if element is None else element)
        k.store(k.convert(after if self.inclusive else total, self.dtype), self.out, place)
        return after

    def _combine(self, total: Scalar, element: Scalar) -> Scalar:
        element = self.k.convert(element, self.total)
        if not self.plan.peels:
            return self.op.combine(self.k, total, element)
        if self.steps is None:
            return element
        is_first = self.k.loops[self.steps.names[0]][1].eq(0)
        return self.k.select(is_first, element, self.op.combine(self.k, total, element))

    def row(self) -> None:
        """The row where the loops stand."""
        if self.steps is None:
            self._advance(self.start)
        elif _is_computed(self.plan.body):
            self._computed_row(self.steps)
        else:
            self.k.loop(self.steps, self.zero, self.count, lambda i, total: [self._advance(total)], [self.start])

    def _computed_row(self, steps: Fused) -> None:
        """A chunk of elements is computed, then summed."""
        k, x, place = self.k, self.plan.x, self.plan.place
        line = k.scratch(CHUNK, self.dtype)

        def chunk(first: Scalar, total: Scalar) -> list[Scalar]:
            last = k.op("arith.minui", [first + CHUNK, self.count], INDEX)
            k.loop(steps, first, last, lambda i: k.write(k.value(x, place), line, i - first))
            return k.loop(steps, first, last, lambda i, t: [self._advance(t, k.read(line, i - first))], [total])

        k.loop(None, self.zero, self.count, chunk, [self.start], step=CHUNK)

    def rows_beside(self, rows: Fused, first: Scalar, last: Scalar) -> None:
        """Some rows from `first` on; beyond the last row it once more."""
        k = self.k

        def advance_all(*totals: Scalar) -> list[Scalar]:
            found = []
            for j, total in enumerate(totals):
                at = k.op("arith.minui", [first + j, last - 1], INDEX)
                with k.at_position(rows, at):
                    found.append(self._advance(total))
            return found

        k.loop(self.steps, self.zero, self.count, lambda i, *totals: advance_all(*totals), [self.start] * BESIDE)

    def line(self, lane: Fused, first: Scalar, last: Scalar, width: int) -> None:
        """Neighbouring rows, whose sums are a line in L1."""
        k, plan, out, steps = self.k, self.plan, self.out, self.steps
        x, place = plan.x, plan.place
        sums = k.scratch(width, self.total)
        # What is tried may run again, and a sum may not: elements with a quicker way are computed before.
        before = k.scratch(width, self.dtype) if usual.is_tried(k) else None

        def offset() -> Scalar:
            return k.loops[lane.names[0]][1] - first

        def element() -> list[Scalar]:
            total = k.read(sums, offset())
            after = self._combine(total, k.value(x, place) if before is None else k.read(before, offset()))
            k.write(after, sums, offset())
            return [k.convert(after if self.inclusive else total, self.dtype)]

        def compute(at: Scalar) -> None:
            assert before is not None
            with k.at_position(lane, first + at):
                k.write(k.value(x, place), before, at)

        def step(*waits: Scalar) -> list[Scalar]:
            left = [usual.fill(k, last - first, compute, *waits)] if waits else []
            emit_line(k, lane, first, last, [(out, place)], element, fetched, width, tried=False, past=past)
            return left

        past = is_worth_streaming(lane, [(out, place)], width, FEWEST_PIECES)
        reads = collect_reads(plan.body.ops[:-1], [(x, place)])
        fetched = [] if steps is None else far_apart(k, reads, lane, steps, width)
        k.loop(lane, first, last, lambda i: k.write(self.start, sums, offset()))
        waits = [] if before is None else [self.zero]
        if steps is None:
            step(*waits)
        else:
            k.loop(steps, self.zero, self.count, lambda i, *waits: step(*waits), waits)


def build_scatter(module: KernelModule, name: str, body: Function) -> list[ScheduledKernel]:
    """A copy of x, then the updates in order; in parallel only along an axis that no index moves."""
    op = body.returns[0].owner
    assert op is not None
    what = Scattering(body, op, variables(op.operands[1].shape, "u"))
    copy = _build_copy(module, name + "_copy", body, what.x)
    k, (out,), lo, hi = start_kernel(module, name, body)
    updates = Updates(k, what, out)
    if what.updates.aval.size and what.x.aval.size:
        updates.emit(lo, hi)
    k.emit("func.return", [], [])
    return [copy, ScheduledKernel(name, body, updates.split, [*body.arguments, *body.returns])]


def _build_copy(module: KernelModule, name: str, body: Function, x: Value) -> ScheduledKernel:
    """What a scatter updates, as it was."""
    k, (out,), lo, hi = start_kernel(module, name, body)
    place = variables(x.shape, "o")
    _, uses = reads_of(body, [(x, place)])
    nest = Nest.plan(fuse_variables([(f"o{a}", d) for a, d in enumerate(x.shape)], uses), lanes=True)

    def line(first: Scalar | None = None, last: Scalar | None = None) -> None:
        if first is None or last is None:
            k.store(k.value(x, place), out, place)
        else:
            k.loop(nest.loops[-1], first, last, lambda at: k.store(k.value(x, place), out, place))

    if x.aval.size:
        emit_nest(k, nest, lo, hi, line)
    k.emit("func.return", [], [])
    # Where it is an argument that nothing else reads, what is updated may be the argument itself.
    readers = [v for op in body.ops for v in op.operands if v == x]
    in_place = [(body.arguments.index(x), 0)] if x in body.arguments and len(readers) == 1 else []
    return ScheduledKernel(name, body, nest.split, [*body.arguments, *body.returns], copies=True, in_place=in_place)


class Updates:
    """The loops over the updates of a scatter.

    Where single elements are updated by what is computed, that is done for some at a time, in a loop that LLVM
    vectorizes: in the loop that updates, each store may be what the next one reads.
    """

    def __init__(self, k: CpuKernel, what: Scattering, out: Memory):
        self.k, self.what, self.out = k, what, out
        shape, x = what.updates.shape, what.x
        #: along the last axis, which no index moves
        self.parallel = x.ndim > 0 and x.ndim - 1 not in what.op.attrs["axes"] and shape[-1] > 1
        self.split = Split(shape[-1], 16) if self.parallel else Split(1)

    def emit(self, lo: Scalar, hi: Scalar) -> None:
        k, what = self.k, self.what
        single = what.updates.aval.size == what.count > CHUNK
        if self.parallel:
            self._each(0, (lo, hi))
        elif single and _is_computed(what.body) and k.checks is None:
            k.loop(None, lo, hi, lambda i: self._in_chunks())
        else:
            k.loop(None, lo, hi, lambda i: self._each(0, None))

    def _each(self, axis: int, bounds: tuple[Scalar, Scalar] | None) -> None:
        """The loops over the axes of the updates from `axis` on; `bounds`: of the last one, if not all of it."""
        k, shape = self.k, self.what.updates.shape
        if axis == len(shape):
            self._update()
            return
        loops = fuse_variables([(f"u{axis}", shape[axis])], [])
        if not loops:
            self._each(axis + 1, bounds)
            return
        whole = k.const(0, INDEX), k.const(shape[axis], INDEX)
        low, high = bounds if bounds is not None and axis == len(shape) - 1 else whole
        k.loop(loops[0], low, high, lambda i: self._each(axis + 1, bounds))

    def _update(self) -> None:
        """The element of the updates where the loops stand."""
        k, what = self.k, self.what
        inside, target = what.target_place(k)
        k.when(inside, lambda: self._put(k.index(linearize(target, what.x.shape)), k.value(what.updates, what.at)))

    def _put(self, offset: Scalar, new: Scalar) -> None:
        k, what, out = self.k, self.what, self.out
        k.write(new if what.mode == "set" else what.combine(k, k.read(out, offset), new), out, offset)

    def _in_chunks(self) -> None:
        """Single elements: places and values of some, then these updates."""
        k, what = self.k, self.what
        shape = what.updates.shape
        _, uses = reads_of(what.body, what.reads)
        *outer, line = fuse_variables([(f"u{a}", d) for a, d in enumerate(shape)], uses)
        number = dtypes.int32 if what.x.aval.size < 1 << 31 else dtypes.int64
        places, values = k.scratch(CHUNK, number), k.scratch(CHUNK, compute_dtype(what.updates.dtype))
        zero, count = k.const(0, INDEX), k.const(line.extent, INDEX)

        def find(i: Scalar) -> None:
            inside, target = what.target_place(k)
            offset = k.index(linearize(target, what.x.shape), number)
            k.write(k.select(inside, offset, k.const(-1, number)), places, i)
            k.write(k.value(what.updates, what.at), values, i)

        def put(i: Scalar) -> None:
            place = k.read(places, i)
            k.when(place >= 0, lambda: self._put(k.convert(place, INDEX), k.read(values, i)))

        def chunk(first: Scalar) -> None:
            last = k.op("arith.minui", [first + CHUNK, count], INDEX)
            k.loop(line, first, last, lambda i: find(i - first))
            k.loop(None, zero, last - first, put)

        inner_loops(k, outer, lambda: k.loop(None, zero, count, chunk, step=CHUNK))
