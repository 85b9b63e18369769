"""Stable sorting of rows by the digits of their keys, from the lowest on.

A row that fits in a tile is sorted by one threadgroup. Longer ones are cut in chunks, several tiles each, and every
digit takes three kernels::

    sort_count     how often each digit is in each chunk
    sort_starts    where the words of a chunk with a digit begin in the sorted row
    sort_digits    tiles in the order of their digits, from which words go to their places, neighbours side by side
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from smelt.ir.aval import Aval
from smelt.ir.scalar import INDEX, Scalar

from ...devices import Gpu
from ...kernel import GpuKernel, GpuModule
from ..parts import each_group, plus, split, times
from ..schedule import ScheduledKernel, Scratch, ScratchPlan
from .radix import ITEMS, U32, Digits, RadixTile, sum_before
from .sorting import Buffer, Buffers, Layout, Pair, Sorted, last_key

#: Chunks of all rows for each tile of products that fills the GPU.
CHUNKS = 8
#: Counts that a thread has on their way at once.
COUNTS = 8
#: Threads to a digit that add up counts of a row.
PARTS = 4


def sort_tiles(module: GpuModule, what: Sorted, digits: Digits, target: Pair, out: Layout) -> ScheduledKernel:
    """Sort rows that fit in a tile, a threadgroup to each."""
    layout = what.layout
    buffers = Buffers(module, what, "_tiles", [("keys", what.keys), *target.buffers("out_")])
    k = buffers.k
    items = -(-layout.length // RadixTile.threads)
    tile = RadixTile(k, digits, items, target.order is not None)
    groups = max(1, min(k.gpu.groups, layout.rows))

    def each(row: Scalar) -> None:
        _load(k, tile, buffers, layout, row, k.const(0, INDEX), first=True)

        def one_digit(n: Scalar) -> None:
            tile.rank(k.convert(n * digits.width, U32))
            tile.move()

        k.for_(k.const(0, INDEX), k.const(digits.count, INDEX), one_digit)

        def store(j: Scalar, place: Scalar) -> None:
            def put() -> None:
                _write(k, tile, buffers, j, out.offset(k, row, place))

            k.when(k.below(place, layout.length), put)

        tile.each(store)

    each_group(k, layout.rows, groups, each)
    return buffers.finish("sort", groups, tile.threads, layout.size * digits.count * digits.width)


def _load(
    k: GpuKernel, tile: RadixTile, buffers: Buffers, layout: Layout, row: Scalar, start: Scalar, first: bool
) -> None:
    """Words of a row from `start` on; behind its end come keys that are before no other.

    Where they came from is their place in the row at `first`, later what the buffer says.
    """

    def one(j: Scalar, place: Scalar) -> None:
        at = plus(start, place)

        def key() -> Scalar:
            return tile.digits.word(k, k.read(buffers.memory["keys"], layout.offset(k, row, at)))

        inside = k.below(at, layout.length)
        last = tile.digits.word(k, last_key(k, tile.digits.dtype))
        k.write(k.if_(inside, key, lambda: last, U32), tile.words, j)
        if tile.tags is None:
            return
        if first:
            k.write(k.convert(at, U32), tile.tags, j)
        else:
            order = buffers.memory["order"]
            found = k.if_(inside, lambda: k.read(order, layout.offset(k, row, at)), lambda: k.const(0, U32), U32)
            k.write(found, tile.tags, j)

    tile.each(one)


def _write(k: GpuKernel, tile: RadixTile, buffers: Buffers, j: Scalar, offset: Scalar) -> None:
    """One word of a thread, and where it came from, where such are wanted."""
    if "out_keys" in buffers.memory:
        tile.digits.write(k, k.read(tile.words, j), buffers.memory["out_keys"], offset)
    if tile.tags is not None:
        buffers.write("out_order", k.read(tile.tags, j), offset)


@dataclass(frozen=True)
class _Chunks:
    """How rows are cut: `count` for each, of `tiles` tiles; each has a count for every digit."""

    rows: int
    count: int
    tiles: int

    @staticmethod
    def of(gpu: Gpu, layout: Layout) -> _Chunks:
        tiles = -(-layout.length // (ITEMS * RadixTile.threads))
        count = min(tiles, max(1, CHUNKS * gpu.tiles // layout.rows))
        each = -(-tiles // count)
        return _Chunks(layout.rows, -(-tiles // each), each)

    @property
    def size(self) -> int:
        """Words of a chunk."""
        return self.tiles * ITEMS * RadixTile.threads

    @property
    def all(self) -> int:
        return self.rows * self.count


def digit_steps(module: GpuModule, what: Sorted, digits: Digits, scratch: ScratchPlan) -> list[ScheduledKernel]:
    """The kernels that sort rows longer than a tile."""
    layout, tagged = what.layout, what.order_out is not None
    flat = Layout(layout.rows, layout.length)
    chunks = _Chunks.of(module.gpu, layout)
    counts = Aval((chunks.all * RadixTile.threads,), U32)
    found, starts = scratch.take(counts), scratch.take(counts)

    def between() -> tuple[Scratch, Scratch | None]:
        order = scratch.take(Aval((layout.size,), U32)) if tagged else None
        return scratch.take(Aval((layout.size,), what.dtype)), order

    rooms = [between() for _ in range(min(2, digits.count - 1))]
    steps = []
    keys: Buffer = what.keys
    order: Buffer | None = None
    lies = layout
    for n in range(digits.count):
        last = n == digits.count - 1
        target, out = (Pair(what.keys_out, what.order_out), layout) if last else (Pair(*rooms[n % 2]), flat)
        steps += [
            _count_kernel(module, what, digits, n, chunks, keys, lies, found),
            _starts_kernel(module, what, chunks, found, starts),
            _digit_kernel(module, what, digits, n, chunks, Pair(keys, order), lies, starts, target, out),
        ]
        if not last:
            (keys, order), lies = rooms[n % 2], flat
    return steps


def _count_kernel(
    module: GpuModule, what: Sorted, digits: Digits, n: int, chunks: _Chunks, keys: Buffer, layout: Layout,
    found: Scratch,
) -> ScheduledKernel:  # fmt: skip
    """How often each digit is in each chunk."""
    buffers = Buffers(module, what, "_count", [("keys", keys), ("out_counts", found)])
    k = buffers.k
    threads, simdgroups = RadixTile.threads, RadixTile.threads // k.gpu.simd
    counts = k.shared(simdgroups * threads, U32, name="counts")
    zero, one = k.const(0, U32), k.const(1, U32)
    own = times(k.simdgroup(), threads)

    def each(at: Scalar) -> None:
        row, chunk = split(k, at, chunks.count, "row", "chunk", chunks.rows > 1)
        rows = [plus(k.thread(), k.const(s * threads, INDEX)) for s in range(simdgroups)]
        for place in rows:
            k.write(zero, counts, place)
        k.barrier()
        start = times(chunk, chunks.size)

        def tile(t: Scalar) -> None:
            first = plus(start, times(t, ITEMS * threads)) + k.thread()

            def word(j: Scalar) -> None:
                i = plus(times(j, threads), first)

                def count() -> None:
                    word = digits.word(k, k.read(buffers.memory["keys"], layout.offset(k, row, i)))
                    digit = digits.at(k, word, k.const(n * digits.width, U32))
                    k.atomic("add", one, counts, own + digit)

                k.when(k.below(i, layout.length), count)

            k.unrolled(ITEMS, word)

        k.for_(k.const(0, INDEX), k.const(chunks.tiles, INDEX), tile)
        k.barrier()
        total = k.read(counts, rows[0])
        for place in rows[1:]:
            total = total + k.read(counts, place)
        buffers.write("out_counts", total, times(at, threads) + k.thread())

    groups = max(1, min(k.gpu.groups, chunks.all))
    each_group(k, chunks.all, groups, each)
    return buffers.finish("sort", groups, threads, layout.size)


def _starts_kernel(
    module: GpuModule, what: Sorted, chunks: _Chunks, found: Scratch, starts: Scratch
) -> ScheduledKernel:
    """Where the words of a chunk with a digit begin: behind those of lower digits, and those of chunks before."""
    buffers = Buffers(module, what, "_starts", [("counts", found), ("out_starts", starts)])
    k, memory = buffers.k, buffers.memory
    threads, zero = RadixTile.threads, k.const(0, U32)
    parts = PARTS if chunks.count > PARTS * COUNTS else 1
    each_part = -(-chunks.count // parts)
    sums = k.shared(parts * threads, U32, name="sums")
    totals = k.shared(parts * threads // k.gpu.simd, U32, name="totals")

    def each(row: Scalar) -> None:
        part, digit = split(k, k.thread(), threads, "part", "digit", parts > 1)
        first = times(part, each_part)
        end = k.op("arith.minui", [first + each_part, k.const(chunks.count, INDEX)], INDEX)

        def count(c: Scalar) -> tuple[Scalar, Scalar, Scalar]:
            """Of a chunk: whether there is one, where its count is, and the count."""
            inside = k.below(c, end)
            place = times(plus(times(row, chunks.count), c), threads) + digit
            return inside, place, k.if_(inside, lambda: k.read(memory["counts"], place), lambda: zero, U32)

        def add(c: Scalar, total: Scalar) -> list[Scalar]:
            for _, _, more in [count(c + j) for j in range(COUNTS)]:
                total = total + more
            return [total]

        (own,) = k.for_(first, end, add, [zero], step=COUNTS)
        k.write(own, sums, k.thread())
        k.barrier()
        total, before = zero, zero
        for p in range(parts):
            at = k.const(p, INDEX)
            one = k.read(sums, plus(times(at, threads), digit))
            total = total + one
            before = before + k.select(k.below(at, part), one, zero)
        start = sum_before(k, total, totals, threads, parts) + before

        def put(c: Scalar, start: Scalar) -> list[Scalar]:
            for inside, place, more in [count(c + j) for j in range(COUNTS)]:
                k.when(inside, partial(k.write, start, memory["out_starts"], place))
                start = start + more
            return [start]

        k.for_(first, end, put, [start], step=COUNTS)
        if groups < chunks.rows:
            k.barrier()  # before threadgroup memory is filled again

    groups = max(1, min(k.gpu.groups, chunks.rows))
    each_group(k, chunks.rows, groups, each)
    return buffers.finish("sort", groups, parts * threads, 2 * chunks.all * threads)


def _digit_kernel(
    module: GpuModule, what: Sorted, digits: Digits, n: int, chunks: _Chunks, source: Pair, layout: Layout,
    starts: Scratch, target: Pair, out: Layout,
) -> ScheduledKernel:  # fmt: skip
    """Words, tile by tile in the order of one digit, to their places in the row."""
    named = [*source.buffers(""), ("starts", starts), *target.buffers("out_")]
    buffers = Buffers(module, what, "_digits", named)
    k = buffers.k
    tile = RadixTile(k, digits, ITEMS, target.order is not None)
    from_tile = k.shared(tile.threads, U32, name="from_tile")
    shift = k.const(n * digits.width, U32)

    def each(at: Scalar) -> None:
        row, chunk = split(k, at, chunks.count, "row", "chunk", chunks.rows > 1)

        def one(t: Scalar, start: Scalar) -> list[Scalar]:
            first = plus(times(chunk, chunks.size), times(t, tile.size))
            _load(k, tile, buffers, layout, row, first, n == 0)
            total, in_tile = tile.rank(shift)
            k.write(start - in_tile, from_tile, k.thread())
            tile.move()

            def store(j: Scalar, place: Scalar) -> None:
                def put() -> None:
                    to = k.read(from_tile, tile.digit(j, shift)) + k.convert(place, U32)
                    _write(k, tile, buffers, j, out.offset(k, row, k.convert(to, INDEX)))

                k.when(k.below(plus(first, place), layout.length), put)

            tile.each(store)
            return [start + total]

        begin = k.read(buffers.memory["starts"], plus(times(at, tile.threads), k.thread()))
        k.for_(k.const(0, INDEX), k.const(chunks.tiles, INDEX), one, [begin])

    groups = max(1, min(k.gpu.groups, chunks.all))
    each_group(k, chunks.all, groups, each)
    return buffers.finish("sort", groups, tile.threads, layout.size * digits.width)
