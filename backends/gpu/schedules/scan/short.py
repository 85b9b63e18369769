"""Scans of a few elements: each thread has one.

Rows of a few neighbours are read and written by way of threadgroup memory, so that neighbouring threads have
neighbouring elements there, too.
"""

from __future__ import annotations

from smelt.ir.scalar import INDEX, Scalar, compute_dtype

from ...kernel import GpuModule
from ..maps import bind_loops
from ..parts import Part, each_group, plus, split, start_part, times
from ..schedule import ScheduledKernel, threads_for
from .scanning import Scan


def short_kernel(module: GpuModule, scan: Scan) -> ScheduledKernel:
    """A scan of a few elements."""
    out = scan.body.returns[0]
    part = start_part(module, scan.body, "", [(scan.x, scan.place)], [("out", out)])
    threads, groups = threads_for(part.k, scan.rows)
    if scan.after or scan.length == 1:
        _columns(part, scan, threads, groups)
    else:
        threads, groups = _rows(part, scan, threads)
    return part.finish("scan", groups, threads, 0, scan.x.aval.nbytes, scan.flops)


def _columns(part: Part, scan: Scan, threads: int, groups: int) -> None:
    """Where neighbouring scans have neighbouring elements."""
    k, (memory,), n, attrs = part.k, part.extra, scan.length, scan.op.attrs

    def column(at: Scalar) -> None:
        bind_loops(k, [*scan.before, *scan.after], 1, at)

        def step(slot: Scalar, total: Scalar) -> list[Scalar]:
            with k.at_position(scan.along, (n - 1) - slot if attrs["reverse"] else slot):
                after = scan.combine(k, total, k.value(scan.x, scan.place))
                k.store(after if attrs["inclusive"] else total, memory, scan.place)
            return [after]

        k.for_(k.const(0, INDEX), k.const(n, INDEX), step, [scan.identity(k)])

    k.grid_stride(None, scan.rows, threads, groups, column)


def _rows(part: Part, scan: Scan, threads: int) -> tuple[int, int]:
    """Where a scan has neighbouring elements; threads and threadgroups."""
    k, (memory,), n, attrs = part.k, part.extra, scan.length, scan.op.attrs
    stride = n | 1  # the threads' elements are in different banks
    size = stride * compute_dtype(scan.x.dtype).size
    while threads > k.gpu.simd and threads * size > k.gpu.threadgroup_bytes:
        threads //= 2
    blocks = -(-scan.rows // threads)
    groups = max(1, min(k.gpu.groups, blocks))
    tile, thread = k.shared(threads * stride, scan.x.dtype, name="tile"), k.thread()

    def place(block: Scalar, j: Scalar) -> tuple[Scalar, Scalar, Scalar]:
        """Of an element that a thread moves: its row, where in that, and where in the tile."""
        own, along = split(k, plus(times(j, threads), thread), n, "", "")
        return plus(times(block, threads), own), along, plus(times(own, stride), along)

    def load(block: Scalar, j: Scalar) -> None:
        row, along, at = place(block, j)
        if scan.rows % threads:
            row = k.op("arith.minui", [row, k.const(scan.rows - 1, INDEX)], INDEX)
        bind_loops(k, scan.before, 1, row)
        with k.at_position(scan.along, along):
            k.write(k.value(scan.x, scan.place), tile, at)

    def store(block: Scalar, j: Scalar) -> None:
        row, along, at = place(block, j)

        def write() -> None:
            bind_loops(k, scan.before, 1, row)
            with k.at_position(scan.along, along):
                k.store(k.read(tile, at), memory, scan.place)

        if scan.rows % threads:
            k.when(k.below(row, scan.rows), write)
        else:
            write()

    def step(slot: Scalar, total: Scalar) -> list[Scalar]:
        at = plus(times(thread, stride), (n - 1) - slot if attrs["reverse"] else slot)
        after = scan.combine(k, total, k.read(tile, at))
        k.write(after if attrs["inclusive"] else total, tile, at)
        return [after]

    def block(at: Scalar) -> None:
        k.unrolled(n, lambda j: load(at, j))
        k.barrier()
        k.for_(k.const(0, INDEX), k.const(n, INDEX), step, [scan.identity(k)])
        k.barrier()
        k.unrolled(n, lambda j: store(at, j))
        if groups < blocks:
            k.barrier()

    each_group(k, blocks, groups, block)
    return threads, groups
