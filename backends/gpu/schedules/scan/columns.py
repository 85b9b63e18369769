"""Scans along an axis that is not contiguous: neighbouring threads have neighbouring columns.

The lines of a threadgroup share the columns: each thread scans a few neighbours of its column, then the totals of the
lines meet in threadgroup memory. A column is a sequence of such tiles, with a carry from one to the next, so that it is
read and written once; where columns are few, their chunks are.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass

from smelt.backends.memory import Memory
from smelt.ir.scalar import INDEX, Scalar, compute_dtype

from ...devices import Gpu
from ...kernel import GpuKernel, GpuModule
from ..maps import bind_loops
from ..parts import Part, each_group, plus, power_of_two, split, times, when_all
from ..schedule import ScheduledKernel, ScratchPlan
from .scanning import Pieces, Scan, chunks_of, scan_kernels
from .team import Team

#: Bytes of neighbouring columns that a thread has loads of on their way, and its elements at most.
BYTES, MOST_ITEMS = 32, 16
#: Bytes next to each other that make a good memory access.
LINE_BYTES = 64
#: With fewer threadgroups than this columns are narrowed, with fewer than that they are cut, in so many.
MANY_GROUPS, ENOUGH_GROUPS, MOST_GROUPS = 512, 256, 1024
#: Tiles of a chunk, at least.
TILES = 2


@dataclass(frozen=True)
class ColumnShape:
    """How a threadgroup lies over columns: threads across them and down, and the neighbours that each takes."""

    across: int
    lines: int
    items: int

    @property
    def threads(self) -> int:
        return self.across * self.lines

    @property
    def tile(self) -> int:
        return self.lines * self.items

    @classmethod
    def of(cls, gpu: Gpu, columns: int, length: int, size: int) -> ColumnShape:
        """For columns of `length` elements of `size` bytes."""
        items = max(1, min(MOST_ITEMS, BYTES // size))
        across = min(gpu.simd, power_of_two(columns))
        while -(-columns // across) < MANY_GROUPS and across * size > LINE_BYTES:
            across //= 2
        lines = min(gpu.threads // across, power_of_two(-(-length // items)))
        return cls(across, max(lines, gpu.simd // across), items)


class ColumnTeam(Team):
    """The threads of neighbouring columns, in a kernel under construction."""

    def __init__(
        self, k: GpuKernel, combine: Callable[[Scalar, Scalar], Scalar], identity: Scalar, shape: ColumnShape,
        inclusive: bool,
    ):  # fmt: skip
        self.k, self.combine, self.identity = k, combine, identity
        self.items, self.size, self.inclusive, self.shape = shape.items, shape.lines, inclusive, shape
        with k.named("line"):
            self.line = k.thread_array(shape.items, identity.dtype)
        self.totals = k.shared(shape.threads, identity.dtype, name="parts") if shape.lines > 1 else None
        self.member, self.column = split(k, k.thread(), shape.across, "member", "column")

    def over(self, columns: int, chunks: int, each: Callable[[Scalar, Scalar, Scalar | None], None]) -> int:
        """Run ``each(column, chunk, valid)`` for all chunks of all columns; threadgroups."""
        k, across = self.k, self.shape.across
        blocks = -(-columns // across)
        groups = max(1, min(k.gpu.groups, blocks * chunks))

        def block(at: Scalar) -> None:
            chunk, first = split(k, at, blocks, "chunk", "block", chunks > 1)
            column = plus(times(first, across), self.column)
            valid = None
            if columns % across:
                valid = k.below(column, columns)
                column = k.op("arith.minui", [column, k.const(columns - 1, INDEX)], INDEX)
            each(column, chunk, valid)

        each_group(k, blocks * chunks, groups, block)
        return groups

    def _exchange(self, through: Scalar) -> tuple[Scalar, Scalar]:
        k, totals, across, dtype = self.k, self.totals, self.shape.across, self.identity.dtype
        if totals is None:
            return self.identity, through
        k.barrier()  # the tile before has been read
        k.write(through, totals, k.thread())
        k.barrier()

        def line(s: Scalar, earlier: object, all_: object) -> list[Scalar]:
            earlier_, total = Scalar(k, earlier, dtype), k.read(totals, plus(times(s, across), self.column))
            found = k.select(k.below(s, self.member), self.combine(earlier_, total), earlier_)
            return [found, self.combine(Scalar(k, all_, dtype), total)]

        start = self.identity.mlir
        earlier, all_ = k.unrolled(self.shape.lines, line, [start, start])
        return Scalar(k, earlier, dtype), Scalar(k, all_, dtype)


def build_columns(module: GpuModule, scan: Scan, scratch: ScratchPlan) -> list[ScheduledKernel]:
    """The kernels of a scan along columns."""
    gpu = module.gpu
    shape = ColumnShape.of(gpu, scan.rows, scan.length, scan.body.returns[0].dtype.size)
    blocks = -(-scan.rows // shape.across)
    wanted = MOST_GROUPS // blocks if blocks < ENOUGH_GROUPS and scan.is_divisible(gpu) else 1
    pieces = Pieces(*chunks_of(scan.length, wanted, TILES * shape.tile, shape.tile))
    return scan_kernels(
        module, scan, scratch, pieces, lambda part, *more: _column_kernel(part, scan, shape, *more), _before_kernel
    )


def _column_kernel(
    part: Part, scan: Scan, shape: ColumnShape, out: Memory | None, totals: Memory | None, pieces: Pieces | None
) -> ScheduledKernel:
    """Scan columns or their chunks; without `out`, write the total of each."""
    k, n, reverse = part.k, scan.length, scan.op.attrs["reverse"]
    chunks, size = (pieces.chunks, pieces.size) if pieces else (1, n)
    team = ColumnTeam(k, functools.partial(scan.combine, k), scan.identity(k), shape, scan.op.attrs["inclusive"])
    exact = n % shape.tile == 0

    def each(column: Scalar, chunk: Scalar, valid: Scalar | None) -> None:
        bind_loops(k, [*scan.before, *scan.after], 1, column)
        start, last = k.const(0, INDEX), k.const(n, INDEX)
        if pieces is not None:
            start = chunk * size
            last = k.op("arith.minui", [start + size, k.const(n, INDEX)], INDEX)

        def value(slot: Scalar) -> Scalar:
            with k.at_position(scan.along, (n - 1) - slot if reverse else slot):
                return k.value(scan.x, scan.place)

        def fill(first: Scalar) -> None:
            def load(j: Scalar) -> None:
                slot = plus(first, j)
                if exact:
                    k.write(value(slot), team.line, j)
                else:
                    x = k.if_(k.below(slot, n), lambda: value(slot), lambda: scan.identity(k), team.identity.dtype)
                    k.write(x, team.line, j)

            k.unrolled(shape.items, load)

        def drain(first: Scalar, prefix: Scalar) -> None:
            assert out is not None

            def store(j: Scalar) -> None:
                slot = plus(first, j)

                def put() -> None:
                    after = scan.combine(k, prefix, k.read(team.line, j))
                    with k.at_position(scan.along, (n - 1) - slot if reverse else slot):
                        k.store(after, out, scan.place)

                when_all(k, [None if exact else k.below(slot, n), valid], put)

            k.unrolled(shape.items, store)

        piece = plus(times(chunk, scan.rows), column)
        carry = k.read(totals, piece) if out is not None and totals is not None else scan.identity(k)
        total = team.scan(start, last, carry, fill, drain if out is not None else None)
        if out is None and totals is not None:
            when_all(k, [team.member.eq(0), valid], lambda: k.write(total, totals, piece))

    groups = team.over(scan.rows, chunks, each)
    held = scan.rows * chunks * compute_dtype(scan.x.dtype).size if totals else 0
    if out is None:
        return part.finish("scan columns", groups, shape.threads, 0, held, scan.flops)
    return part.finish("scan columns", groups, shape.threads, held, scan.x.aval.nbytes, scan.flops)


def _before_kernel(part: Part, scan: Scan, chunks: int) -> ScheduledKernel:
    """What comes before each chunk of a column, in the place of the chunk's total."""
    k, (totals,) = part.k, part.extra
    shape = ColumnShape.of(k.gpu, scan.rows, chunks, totals.aval.dtype.size)
    team = ColumnTeam(k, functools.partial(scan.combine, k), scan.identity(k), shape, inclusive=False)

    def each(column: Scalar, _: Scalar, valid: Scalar | None) -> None:
        def place(slot: Scalar) -> Scalar:
            return plus(times(slot, scan.rows), column)

        def fill(first: Scalar) -> None:
            def load(j: Scalar) -> None:
                slot = plus(first, j)
                inside = k.below(slot, chunks)
                x = k.if_(
                    inside, lambda: k.read(totals, place(slot)), lambda: scan.identity(k), team.identity.dtype
                )
                k.write(x, team.line, j)

            k.unrolled(shape.items, load)

        def drain(first: Scalar, prefix: Scalar) -> None:
            def store(j: Scalar) -> None:
                slot = plus(first, j)

                def put() -> None:
                    k.write(scan.combine(k, prefix, k.read(team.line, j)), totals, place(slot))

                when_all(k, [k.below(slot, chunks), valid], put)

            k.unrolled(shape.items, store)

        team.scan(k.const(0, INDEX), chunks, scan.identity(k), fill, drain)

    groups = team.over(scan.rows, 1, each)
    nbytes = totals.aval.nbytes
    flops = totals.aval.size * max(scan.op.op.flops, 1.0)
    return part.finish("scan columns", groups, shape.threads, nbytes, nbytes, flops)
