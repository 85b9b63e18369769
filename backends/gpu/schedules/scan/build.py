"""The `scan` schedule: running sums and the like along one axis.

Where the scanned axis is contiguous, the threads of a team scan a row together (`team`). Else lines of threads scan
neighbouring columns (`columns`). Few long rows or columns are cut in chunks: their totals, a scan of the totals, and
the chunks with what comes before::

    fused_cumsum_totals   totals[row, chunk] = the chunk combined
    fused_cumsum_before   totals[row, chunk] = the chunks before it combined
    fused_cumsum          each chunk scanned, from totals[row, chunk] on

So an element is read twice and written once. To read it once, threadgroups would have to wait for what those before
them have found (decoupled look-back); Metal does not promise that a threadgroup goes on while another one waits.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from smelt.backends.memory import Memory
from smelt.ir.builder import Function
from smelt.ir.index import linearize
from smelt.ir.scalar import INDEX, Scalar, compute_dtype

from ...kernel import GpuModule
from ..maps import bind_loops
from ..parts import Part, evaluate_vector, plus, power_of_two, split, times, vector_width
from ..schedule import ScheduledKernel, ScratchPlan
from .columns import build_columns
from .scanning import Pieces, Scan, chunks_of, scan_kernels
from .short import short_kernel
from .team import Team

#: Rows up to this length are scanned by one thread.
SHORT = 16
#: Neighbours that one thread of a team takes at a time.
ITEMS = 8
#: With fewer rows than this, rows are cut in chunks, so that there are about `PIECES` of them.
FEW_ROWS = 128
PIECES = 1024
#: The least length of a chunk of a row.
ROW_CHUNK = 8192


def build_scan(module: GpuModule, body: Function, scratch: ScratchPlan) -> list[ScheduledKernel]:
    """The kernels of a fusion that ends in a scan."""
    scan: Scan = Scan.of(body)
    if not scan.x.aval.size:
        return []
    if scan.length <= SHORT:
        return [short_kernel(module, scan)]
    return (build_columns if scan.after else _rows)(module, scan, scratch)


# Rows: teams of threads


@dataclass(frozen=True)
class TeamShape:
    """How many threads scan a row, how many neighbours each takes, and how many of those as one vector."""

    threads: int
    items: int
    width: int


def _rows(module: GpuModule, scan: Scan, scratch: ScratchPlan) -> list[ScheduledKernel]:
    simd = module.gpu.simd
    items = min(ITEMS, power_of_two(-(-scan.length // simd)))
    team = power_of_two(-(-scan.length // items))
    team = simd if team <= 2 * simd else min(team, module.gpu.threads)
    shape = TeamShape(team, items, min(items, vector_width(scan.op.results[0], scan.place, scan.along)))
    wanted = -(-PIECES // scan.rows) if scan.rows < FEW_ROWS and scan.is_divisible(module.gpu) else 1
    pieces = Pieces(*chunks_of(scan.length, wanted, ROW_CHUNK, team * items))
    return scan_kernels(
        module, scan, scratch, pieces, lambda part, *more: _row_kernel(part, scan, shape, *more), _totals_kernel
    )


def _row_kernel(
    part: Part, scan: Scan, shape: TeamShape, out: Memory | None, totals: Memory | None, pieces: Pieces | None
) -> ScheduledKernel:
    """Scan rows or their chunks, a team to each; without `out`, write the total of each."""
    k, n, attrs = part.k, scan.length, scan.op.attrs
    team, items, width = shape.threads, shape.items, shape.width
    chunks = pieces.chunks if pieces else 1
    count, reverse = scan.rows * chunks, attrs["reverse"]
    staged = width == 1 < items and team * items * compute_dtype(scan.x.dtype).size <= k.gpu.threadgroup_bytes // 2
    workers = Team(k, functools.partial(scan.combine, k), scan.identity(k), items, team, attrs["inclusive"], staged)

    def position(slot: Scalar) -> Scalar:
        return (n - width) - slot if reverse else slot

    def item(q: Scalar, j: Scalar) -> Scalar:
        return plus(times(q, width), (width - 1) - j if reverse else j)

    def each(piece: Scalar, valid: Scalar | None) -> None:
        row, chunk = split(k, piece, chunks, "row", "chunk", scan.rows > 1)
        bind_loops(k, scan.before, 1, row)
        start = k.const(0, INDEX)
        last: Scalar | int = n
        if pieces is not None:
            start = chunk * pieces.size
            last = k.op("arith.minui", [start + pieces.size, k.const(n, INDEX)], INDEX)
        exact = n % (team * items) == 0

        def blocks(slot: Scalar, body: Callable[[Scalar, Scalar], None], guards: Sequence[Scalar]) -> None:
            def block(q: Scalar) -> None:
                at = plus(slot, times(q, width))
                conditions = [*guards] if exact else [*guards, k.below(at, n)]
                if not conditions:
                    body(q, position(at))
                    return
                k.when(functools.reduce(k.logical_and, conditions), lambda: body(q, position(at)))

            k.unrolled(items // width, block)

        def load_one(at: Scalar) -> Scalar:
            inside = None if exact else k.below(at, n)
            if inside is not None:
                at = k.op("arith.minui", [at, k.const(n - 1, INDEX)], INDEX)
            with k.at_position(scan.along, position(at)):
                x = k.value(scan.x, scan.place)
            return x if inside is None else k.select(inside, x, scan.identity(k))

        def store_one(at: Scalar, x: Scalar) -> None:
            assert out is not None
            conditions = [c for c in (None if exact else k.below(at, n), valid) if c is not None]

            def write() -> None:
                with k.at_position(scan.along, position(at)):
                    k.store(x, out, scan.place)

            k.when(functools.reduce(k.logical_and, conditions), write) if conditions else write()

        def fill(slot: Scalar) -> None:
            if staged:
                workers.arrive(load_one)
                return
            if not exact:
                k.unrolled(items, lambda j: k.write(scan.identity(k), workers.line, j))

            def load(q: Scalar, at: Scalar) -> None:
                def element(j: Scalar) -> None:
                    k.write(k.value(scan.x, scan.place), workers.line, item(q, j))

                evaluate_vector(k, scan.along, at, width, part.loads, element)

            blocks(slot, load, [])

        def drain(slot: Scalar, prefix: Scalar) -> None:
            assert out is not None
            if staged:
                workers.leave(lambda j: scan.combine(k, prefix, k.read(workers.line, j)), store_one)
                return
            blocks(slot, functools.partial(store, out, prefix), [] if valid is None else [valid])

        def store(out: Memory, prefix: Scalar, q: Scalar, at: Scalar) -> None:
            def element(j: Scalar) -> Scalar:
                return scan.combine(k, prefix, k.read(workers.line, item(q, j)))

            with k.at_position(scan.along, at):
                offset = k.index(linearize(scan.place, scan.x.shape))
            if width == 1:
                k.write(element(k.const(0, INDEX)), out, offset)
                return
            dtype = scan.x.dtype
            (vector,) = k.unrolled(
                width, lambda j, v: [k.insert(element(j), v, j, dtype)], [k.empty_vector(dtype, width)]
            )
            k.store_vector(vector, out, offset)

        carry = scan.identity(k)
        if out is not None and totals is not None:
            carry = k.read(totals, piece)
        total = workers.scan(start, last, carry, fill, drain if out is not None else None)
        if out is None and totals is not None:
            mine = workers.member.eq(0)
            k.when(mine if valid is None else k.logical_and(mine, valid), lambda: k.write(total, totals, piece))

    groups, threads = workers.spread(count, each)
    held = count * compute_dtype(scan.x.dtype).size if totals else 0
    if out is None:
        return part.finish("scan", groups, threads, 0, held, scan.flops)
    return part.finish("scan", groups, threads, held, scan.x.aval.nbytes, scan.flops)


def _totals_kernel(part: Part, scan: Scan, chunks: int) -> ScheduledKernel:
    """What comes before each chunk of a row, in the place of the chunk's total."""
    k, (totals,) = part.k, part.extra
    team = min(max(k.gpu.simd, power_of_two(chunks)), k.gpu.threads)
    workers = Team(k, functools.partial(scan.combine, k), scan.identity(k), 1, team, inclusive=False)
    first = k.const(0, INDEX)

    def each(row: Scalar, valid: Scalar | None) -> None:
        def fill(slot: Scalar) -> None:
            k.write(scan.identity(k), workers.line, first)
            k.when(k.below(slot, chunks), lambda: k.write(k.read(totals, total_at(slot)), workers.line, first))

        def drain(slot: Scalar, prefix: Scalar) -> None:
            inside = k.below(slot, chunks)
            if valid is not None:
                inside = k.logical_and(inside, valid)
            k.when(inside, lambda: k.write(prefix, totals, total_at(slot)))

        def total_at(slot: Scalar) -> Scalar:
            return plus(times(row, chunks), slot)

        workers.scan(first, chunks, scan.identity(k), fill, drain)

    groups, threads = workers.spread(scan.rows, each)
    nbytes = totals.aval.nbytes
    return part.finish("scan", groups, threads, nbytes, nbytes, totals.aval.size * max(scan.op.op.flops, 1.0))
