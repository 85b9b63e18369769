"""Scans along a contiguous axis: a team of threads scans a row, or a chunk of one (see `team`)."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from smelt.backends.memory import Memory
from smelt.ir.index import linearize
from smelt.ir.scalar import INDEX, Scalar, compute_dtype

from ...kernel import GpuModule
from ..maps import bind_loops
from ..parts import Part, evaluate_vector, plus, power_of_two, split, times, vector_width, when_all
from ..schedule import ScheduledKernel, ScratchPlan
from .scanning import Pieces, Scan, chunks_of, scan_kernels
from .team import Team

#: Neighbours that one thread of a team takes at a time.
ITEMS = 8
#: With fewer rows than this, rows are cut in chunks, so that there are about `PIECES` of them.
FEW_ROWS = 128
PIECES = 1024
#: The least length of a chunk of a row.
ROW_CHUNK = 8192


@dataclass(frozen=True)
class TeamShape:
    """How many threads scan a row, how many neighbours each takes, and how many of those as one vector."""

    threads: int
    items: int
    width: int


def build_rows(module: GpuModule, scan: Scan, scratch: ScratchPlan) -> list[ScheduledKernel]:
    """The kernels of a scan along rows."""
    simd = module.gpu.simd
    items = min(ITEMS, power_of_two(-(-scan.length // simd)))
    team = power_of_two(-(-scan.length // items))
    team = simd if team <= 2 * simd else min(team, module.gpu.threads)
    shape = TeamShape(team, items, min(items, vector_width(scan.op.results[0], scan.place, scan.along)))
    wanted = -(-PIECES // scan.rows) if scan.rows < FEW_ROWS and scan.is_divisible(module.gpu) else 1
    pieces = Pieces(*chunks_of(scan.length, wanted, ROW_CHUNK, team * items))
    return scan_kernels(
        module, scan, scratch, pieces, lambda part, *more: _RowKernel(part, scan, shape, *more).build(), _totals_kernel
    )


class _RowKernel:
    """A kernel that scans rows or their chunks, a team to each.

    Args:
        out: where the result goes; without it the total of each chunk goes to `totals`.
        totals: what comes before each chunk. pieces: the chunks; None for whole rows.

    Attributes:
        exact: whether all tiles of a team are full.
        staged: items come and go by way of threadgroup memory.
        valid: whether the team has a piece of its own; None: it always has.
    """

    def __init__(
        self, part: Part, scan: Scan, shape: TeamShape, out: Memory | None, totals: Memory | None,
        pieces: Pieces | None,
    ):  # fmt: skip
        self.part, self.k, self.scan, self.shape = part, part.k, scan, shape
        self.out, self.totals, self.pieces = out, totals, pieces
        k, attrs, tile = part.k, scan.op.attrs, shape.threads * shape.items
        self.exact, self.reverse = scan.length % tile == 0, attrs["reverse"]
        held = tile * compute_dtype(scan.x.dtype).size
        self.staged = shape.width == 1 < shape.items and held <= k.gpu.threadgroup_bytes // 2
        self.valid: Scalar | None = None
        self.team = Team(
            k, functools.partial(scan.combine, k), scan.identity(k), shape.items, shape.threads, attrs["inclusive"],
            self.staged,
        )  # fmt: skip

    def build(self) -> ScheduledKernel:
        scan, chunks = self.scan, self.pieces.chunks if self.pieces else 1
        groups, threads = self.team.spread(scan.rows * chunks, functools.partial(self._piece, chunks))
        held = scan.rows * chunks * compute_dtype(scan.x.dtype).size if self.totals else 0
        read, written = (0, held) if self.out is None else (held, scan.x.aval.nbytes)
        return self.part.finish("scan", groups, threads, read, written, scan.flops)

    def _piece(self, chunks: int, piece: Scalar, valid: Scalar | None) -> None:
        """Scan one row, or one of its chunks."""
        k, scan, out, totals = self.k, self.scan, self.out, self.totals
        self.valid = valid
        row, chunk = split(k, piece, chunks, "row", "chunk", scan.rows > 1)
        bind_loops(k, scan.before, 1, row)
        start = k.const(0, INDEX)
        last: Scalar | int = scan.length
        if self.pieces is not None:
            start = chunk * self.pieces.size
            last = k.op("arith.minui", [start + self.pieces.size, k.const(scan.length, INDEX)], INDEX)
        carry = scan.identity(k)
        if out is not None and totals is not None:
            carry = k.read(totals, piece)
        total = self.team.scan(start, last, carry, self._fill, self._drain if out is not None else None)
        if out is None and totals is not None:
            when_all(k, [self.team.member.eq(0), valid], lambda: k.write(total, totals, piece))

    # Items: from memory to the team's line, and back

    def _fill(self, slot: Scalar) -> None:
        k, scan, team = self.k, self.scan, self.team
        if self.staged:
            team.arrive(self._load_one)
            return
        if not self.exact:
            k.unrolled(self.shape.items, lambda j: k.write(scan.identity(k), team.line, j))

        def load(q: Scalar, at: Scalar) -> None:
            def element(j: Scalar) -> None:
                k.write(k.value(scan.x, scan.place), team.line, self._item(q, j))

            evaluate_vector(k, scan.along, at, self.shape.width, self.part.loads, element)

        self._blocks(slot, load, [])

    def _drain(self, slot: Scalar, prefix: Scalar) -> None:
        k, scan, team = self.k, self.scan, self.team
        if self.staged:
            team.leave(lambda j: scan.combine(k, prefix, k.read(team.line, j)), self._store_one)
            return
        self._blocks(slot, functools.partial(self._store, prefix), [self.valid])

    def _blocks(self, slot: Scalar, body: Callable[[Scalar, Scalar], None], guards: Sequence[Scalar | None]) -> None:
        """Run ``body(q, position)`` for each vector of a thread's items that lies in the row."""
        k, width = self.k, self.shape.width

        def block(q: Scalar) -> None:
            at = plus(slot, times(q, width))
            inside = None if self.exact else k.below(at, self.scan.length)
            when_all(k, [*guards, inside], lambda: body(q, self._position(at)))

        k.unrolled(self.shape.items // width, block)

    def _store(self, prefix: Scalar, q: Scalar, at: Scalar) -> None:
        """Store the vector number `q` of a thread's items at a position."""
        k, scan, width = self.k, self.scan, self.shape.width
        assert self.out is not None

        def element(j: Scalar) -> Scalar:
            return scan.combine(k, prefix, k.read(self.team.line, self._item(q, j)))

        with k.at_position(scan.along, at):
            offset = k.index(linearize(scan.place, scan.x.shape))
        if width == 1:
            k.write(element(k.const(0, INDEX)), self.out, offset)
            return
        dtype = scan.x.dtype
        (vector,) = k.unrolled(width, lambda j, v: [k.insert(element(j), v, j, dtype)], [k.empty_vector(dtype, width)])
        k.store_vector(vector, self.out, offset)

    def _load_one(self, at: Scalar) -> Scalar:
        k, scan = self.k, self.scan
        inside = None if self.exact else k.below(at, scan.length)
        if inside is not None:
            at = k.op("arith.minui", [at, k.const(scan.length - 1, INDEX)], INDEX)
        with k.at_position(scan.along, self._position(at)):
            x = k.value(scan.x, scan.place)
        return x if inside is None else k.select(inside, x, scan.identity(k))

    def _store_one(self, at: Scalar, x: Scalar) -> None:
        k, scan, out = self.k, self.scan, self.out
        assert out is not None

        def write() -> None:
            with k.at_position(scan.along, self._position(at)):
                k.store(x, out, scan.place)

        when_all(k, [None if self.exact else k.below(at, scan.length), self.valid], write)

    def _position(self, slot: Scalar) -> Scalar:
        """Where along the row the vector lies that is scanned as number `slot`."""
        return (self.scan.length - self.shape.width) - slot if self.reverse else slot

    def _item(self, q: Scalar, j: Scalar) -> Scalar:
        """Which item of a thread is element `j` of its vector number `q`."""
        width = self.shape.width
        return plus(times(q, width), (width - 1) - j if self.reverse else j)


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
            when_all(k, [k.below(slot, chunks), valid], lambda: k.write(prefix, totals, total_at(slot)))

        def total_at(slot: Scalar) -> Scalar:
            return plus(times(row, chunks), slot)

        workers.scan(first, chunks, scan.identity(k), fill, drain)

    groups, threads = workers.spread(scan.rows, each)
    nbytes = totals.aval.nbytes
    return part.finish("scan", groups, threads, nbytes, nbytes, totals.aval.size * max(scan.op.op.flops, 1.0))
