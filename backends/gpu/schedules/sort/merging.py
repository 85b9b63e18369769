"""Stable sorting of long rows by merging: sorted tiles in threadgroup memory, then runs over device memory.

Each thread sorts a few neighbours in registers. Then runs are merged, and each thread makes a few neighbours of the
result: where these begin in either run (the co-ranks) it finds by bisection, from there on it goes along both. Runs
longer than a tile are merged tile by tile, each from the parts of the two runs that it is made of::

    sort_blocks   x → runs of 4096
    sort_merge    runs of 4096 → runs of 8192, ...

Of equal keys those of the first run come first, so that no position is needed to keep their order.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from smelt.backends.memory import Memory
from smelt.ir import dtypes
from smelt.ir.aval import Aval
from smelt.ir.dtypes import DType
from smelt.ir.scalar import INDEX, Scalar

from ...devices import Gpu
from ...kernel import GpuKernel, GpuModule
from ..parts import each_group, plus, power_of_two, split, times
from ..schedule import ScheduledKernel, ScratchPlan
from .sorting import Buffers, Layout, Pair, Sorted, comes_before, last_key

#: Neighbours of one thread: of keys that are small and alone, and else.
MANY_ITEMS, ITEMS = 16, 8
#: After so many places of threadgroup memory one is left out: neighbours of threads are in different banks then.
BANKS = 32


@dataclass(frozen=True)
class TileShape:
    """A tile of threadgroup memory: threads, and the neighbours that each has."""

    threads: int
    items: int

    @property
    def size(self) -> int:
        return self.threads * self.items

    @classmethod
    def of(cls, gpu: Gpu, length: int, nbytes: int) -> TileShape:
        """For rows of `length` elements of `nbytes`, the order included."""
        items = MANY_ITEMS if nbytes <= 4 else ITEMS
        while items * gpu.threads * nbytes * (BANKS + 1) // BANKS > gpu.threadgroup_bytes:
            items //= 2
        return cls(min(gpu.threads, max(gpu.simd, power_of_two(length) // items)), items)


class Tile:
    """Keys in threadgroup memory, and where they came from, in a kernel under construction."""

    def __init__(self, k: GpuKernel, dtype: DType, tagged: bool, shape: TileShape):
        self.k, self.shape, self.dtype = k, shape, dtype
        room = shape.size + shape.size // BANKS
        self.keys = k.shared(room, dtype, stored=True, name="tile_keys")
        self.tags = k.shared(room, dtypes.uint32, name="tile_order") if tagged else None
        with k.named("own_keys"):
            self.own = k.thread_array(shape.items, dtype)
        with k.named("own_order"):
            self.own_tags = k.thread_array(shape.items, dtypes.uint32) if tagged else None
        self.first = times(k.thread(), shape.items)

    def _place(self, at: Scalar) -> Scalar:
        k = self.k
        return at + k.op("arith.divui", [at, k.const(BANKS, INDEX)], INDEX)

    def key(self, at: Scalar) -> Scalar:
        return self.k.read(self.keys, self._place(at))

    def tag(self, at: Scalar) -> Scalar:
        assert self.tags is not None
        return self.k.read(self.tags, self._place(at))

    def put(self, at: Scalar, key: Scalar, tag: Scalar | None) -> None:
        k, place = self.k, self._place(at)
        k.write(key, self.keys, place)
        if self.tags is not None and tag is not None:
            k.write(tag, self.tags, place)

    def each_slot(self, body: Callable[[Scalar], None]) -> None:
        """Run ``body(slot)`` for all places, neighbouring threads at neighbouring ones."""
        k, shape = self.k, self.shape
        k.unrolled(shape.items, lambda j: body(plus(times(j, shape.threads), k.thread())))

    def fetch(self) -> None:
        """Each thread's neighbours into registers."""
        k = self.k

        def one(j: Scalar) -> None:
            k.write(self.key(self.first + j), self.own, j)
            if self.own_tags is not None:
                k.write(self.tag(self.first + j), self.own_tags, j)

        k.unrolled(self.shape.items, one)

    def spill(self) -> None:
        """And back."""
        k = self.k

        def one(j: Scalar) -> None:
            tag = None if self.own_tags is None else k.read(self.own_tags, j)
            self.put(self.first + j, k.read(self.own, j), tag)

        k.unrolled(self.shape.items, one)

    def sort_own(self) -> None:
        """Sort each thread's neighbours: of every second pair, then of the others, in turns."""
        k, items = self.k, self.shape.items

        def turn(n: Scalar) -> None:
            for odd in (0, 1):

                def compare(j: Scalar, odd: int = odd) -> None:
                    low = times(j, 2) + odd if odd else times(j, 2)
                    high = low + 1
                    x, y = k.read(self.own, low), k.read(self.own, high)
                    swap = comes_before(k, y, x)
                    k.write(k.select(swap, y, x), self.own, low)
                    k.write(k.select(swap, x, y), self.own, high)
                    if self.own_tags is not None:
                        a, b = k.read(self.own_tags, low), k.read(self.own_tags, high)
                        k.write(k.select(swap, b, a), self.own_tags, low)
                        k.write(k.select(swap, a, b), self.own_tags, high)

                if items // 2 - odd:
                    k.unrolled(items // 2 - odd, compare)

        k.unrolled(items // 2, turn)

    def merge(self, first_a: Scalar, count_a: Scalar, first_b: Scalar, count_b: Scalar, at: Scalar) -> None:
        """Into registers: the elements from `at` on of two runs merged."""
        k, items, last = self.k, self.shape.items, self.k.const(self.shape.size - 1, INDEX)

        def key(slot: Scalar) -> Scalar:
            return self.key(k.op("arith.minui", [slot, last], INDEX))  # what is behind a run is not looked at

        low = k.select(k.below(count_b, at), at - count_b, k.const(0, INDEX))
        (i,) = bisect(
            k, [(low, k.op("arith.minui", [at, count_a], INDEX))],
            lambda _, mid: ~comes_before(k, key(first_b + (at - 1 - mid)), key(first_a + mid)),
        )  # fmt: skip
        j = at - i
        first_x, first_y = key(first_a + i), key(first_b + j)

        def one(o: Scalar, *raw: Any) -> list[Scalar]:
            i, j = (Scalar(k, r, INDEX) for r in raw[:2])
            x, y = (Scalar(k, r, z.dtype) for r, z in zip(raw[2:], (first_x, first_y)))
            second = k.logical_and(
                k.below(j, count_b), k.logical_or(~k.below(i, count_a), comes_before(k, y, x))
            )
            k.write(k.select(second, y, x), self.own, o)
            own = k.select(second, first_b + j, first_a + i)
            if self.own_tags is not None:
                k.write(self.tag(k.op("arith.minui", [own, last], INDEX)), self.own_tags, o)
            following = key(own + 1)
            return [
                k.select(second, i, i + 1), k.select(second, j + 1, j),
                k.select(second, x, following), k.select(second, following, y),
            ]  # fmt: skip

        k.unrolled(items, one, [i.mlir, j.mlir, first_x.mlir, first_y.mlir])


def bisect(
    k: GpuKernel, ranges: Sequence[tuple[Scalar, Scalar]], goes_on: Callable[[int, Scalar], Scalar]
) -> list[Scalar]:
    """For each range low … high, the first place for which ``goes_on(n, place)`` does not hold; all at once."""

    def open_(bounds: Sequence[Scalar]) -> list[Scalar]:
        return [k.below(low, high) for low, high in zip(bounds[::2], bounds[1::2])]

    def condition(*bounds: Scalar) -> Scalar:
        found, *rest = open_(bounds)
        for more in rest:
            found = k.logical_or(found, more)
        return found

    def body(*bounds: Scalar) -> list[Scalar]:
        after = []
        for n, is_open in enumerate(open_(bounds)):
            low, high = bounds[2 * n : 2 * n + 2]
            mid = k.op("arith.divui", [low + high, k.const(2, INDEX)], INDEX)
            later = goes_on(n, mid)
            if len(ranges) > 1:
                later = k.logical_and(later, is_open)
            after += [k.select(later, mid + 1, low), k.select(later, high, mid)]
        return after

    names = [f"{name}{n or ''}" for n in range(len(ranges)) for name in ("low", "high")]
    return k.while_(condition, body, [x for pair in ranges for x in pair], names)[::2]


def merge_steps(module: GpuModule, what: Sorted, scratch: ScratchPlan) -> list[ScheduledKernel]:
    """The kernels that sort rows."""
    layout, dtype = what.layout, what.dtype
    shape = TileShape.of(module.gpu, layout.length, what.nbytes)
    runs: list[int] = []
    width = shape.size
    while width < layout.length:
        runs.append(width)
        width *= 2

    def between() -> Pair:
        order = scratch.take(Aval((layout.size,), dtypes.uint32)) if what.order_out is not None else None
        return Pair(scratch.take(Aval((layout.size,), dtype)), order)

    rooms = [between() for _ in range(min(2, len(runs)))]
    flat = Layout(layout.rows, layout.length)
    targets = [(rooms[i % 2], flat) for i in range(len(runs))] + [(Pair(what.keys_out, what.order_out), layout)]
    steps = [_tiles_kernel(module, what, shape, *targets[0])]
    for i, width in enumerate(runs):
        steps.append(_merge_kernel(module, what, shape, width, targets[i][0], flat, *targets[i + 1]))
    return steps


def _tiles_kernel(module: GpuModule, what: Sorted, shape: TileShape, target: Pair, out: Layout) -> ScheduledKernel:
    """Sort each tile of each row."""
    layout, dtype, size = what.layout, what.dtype, shape.size
    buffers = Buffers(module, what, "_blocks", [("keys", what.keys), *target.buffers("out_")])
    k = buffers.k
    tile = Tile(k, dtype, target.order is not None, shape)
    tiles = -(-layout.length // size)
    blocks = layout.rows * tiles
    groups = max(1, min(k.gpu.groups, blocks))

    def each(at: Scalar) -> None:
        row, run = split(k, at, tiles, "row", "run", layout.rows > 1)
        with k.named("start"):
            start = times(run, size)

        def inside(i: Scalar) -> Scalar:
            return k.below(i, layout.length)

        def load(slot: Scalar) -> None:
            i = plus(start, slot)
            key = k.if_(
                inside(i), lambda: k.read(buffers.memory["keys"], layout.offset(k, row, i)),
                lambda: last_key(k, dtype), dtype,
            )  # fmt: skip
            tile.put(slot, key, k.convert(i, dtypes.uint32) if tile.tags is not None else None)

        tile.each_slot(load)
        k.barrier()
        tile.fetch()
        tile.sort_own()
        tile.spill()
        k.barrier()

        def double(n: Scalar) -> None:
            with k.named("width"):
                width = k.const(shape.items, INDEX) << n
            with k.named("within"):
                within = tile.first & (width * 2 - 1)
            with k.named("pair"):
                pair = tile.first - within
            tile.merge(pair, width, pair + width, width, within)
            k.barrier()
            tile.spill()
            k.barrier()

        k.for_(k.const(0, INDEX), k.const(shape.threads.bit_length() - 1, INDEX), double)
        _store(k, buffers, tile, lambda slot: inside(plus(start, slot)), lambda s: out.offset(k, row, plus(start, s)))
        if groups < blocks:
            k.barrier()  # before the tile is filled again

    each_group(k, blocks, groups, each)
    steps = shape.items + size.bit_length()
    return buffers.finish("sort", groups, shape.threads, layout.size * steps)


def _store(
    k: GpuKernel, buffers: Buffers, tile: Tile, inside: Callable[[Scalar], Scalar], offset: Callable[[Scalar], Scalar]
) -> None:
    """Write what is in the tile."""

    def store(slot: Scalar) -> None:
        def put() -> None:
            at = offset(slot)
            buffers.write("out_keys", tile.key(slot), at)
            if tile.tags is not None:
                buffers.write("out_order", tile.tag(slot), at)

        k.when(inside(slot), put)

    tile.each_slot(store)


class _Shares(NamedTuple):
    """What a tile has of each of two runs: where that begins in the source, how much is of the first and of both."""

    from_a: Scalar
    from_b: Scalar
    taken_a: Scalar
    taken: Scalar


def _shares(
    k: GpuKernel, keys: Memory, flat: Layout, row: Scalar, start: Scalar, width: int, size: int, end: Scalar
) -> _Shares:
    """The shares of the `size` elements from `start` on; found by bisection. `end`: the last element of the source."""
    n = flat.length

    def least(x: Scalar, y: Scalar) -> Scalar:
        return k.op("arith.minui", [x, y], INDEX)

    with k.named("within"):
        within = start & (2 * width - 1)
    pair, limit = start - within, k.const(n, INDEX)
    with k.named("count_a"):
        count_a = least(limit - pair, k.const(width, INDEX))
    with k.named("count"):
        count = least(limit - pair, k.const(2 * width, INDEX))
    count_b = count - count_a
    with k.named("first_a"):
        first_a = plus(times(row, n), pair)
    first_b = first_a + count_a
    ends = [within, least(within + size, count)]

    def goes_on(which: int, mid: Scalar) -> Scalar:
        """Whether the element `mid` of the first run comes before the other's last."""
        x = k.read(keys, least(first_a + mid, end))
        return ~comes_before(k, k.read(keys, least(first_b + (ends[which] - 1 - mid), end)), x)

    zero = k.const(0, INDEX)
    ranges = [(k.select(k.below(count_b, x), x - count_b, zero), least(x, count_a)) for x in ends]
    from_a, to_a = bisect(k, ranges, goes_on)
    taken_a, taken = to_a - from_a, ends[1] - ends[0]
    return _Shares(first_a + from_a, first_b + (within - from_a), taken_a, taken)


def _merge_kernel(
    module: GpuModule, what: Sorted, shape: TileShape, width: int, source: Pair, flat: Layout, target: Pair,
    out: Layout,
) -> ScheduledKernel:  # fmt: skip
    """Merge neighbouring runs of `width`, a threadgroup to each tile of the result."""
    n, size = flat.length, shape.size
    buffers = Buffers(module, what, "_merge", [*source.buffers(""), *target.buffers("out_")])
    k, keys, order = buffers.k, buffers.memory["keys"], buffers.memory.get("order")
    tile = Tile(k, what.dtype, order is not None, shape)
    tiles = -(-n // size)
    blocks = flat.rows * tiles
    groups = max(1, min(k.gpu.groups, blocks))
    end = k.const(flat.size - 1, INDEX)

    def each(at: Scalar) -> None:
        row, number = split(k, at, tiles, "row", "tile", flat.rows > 1)
        with k.named("start"):
            start = times(number, size)
        from_a, from_b, taken_a, taken = _shares(k, keys, flat, row, start, width, size, end)

        def load(slot: Scalar) -> None:
            def fetch() -> None:
                place = k.select(k.below(slot, taken_a), from_a + slot, from_b + slot - taken_a)
                tile.put(slot, k.read(keys, place), None if order is None else k.read(order, place))

            k.when(k.below(slot, taken), fetch)

        tile.each_slot(load)
        k.barrier()
        begin = k.op("arith.minui", [tile.first, taken], INDEX)
        tile.merge(k.const(0, INDEX), taken_a, taken_a, taken - taken_a, begin)
        k.barrier()
        tile.spill()
        k.barrier()
        _store(
            k, buffers, tile, lambda slot: k.below(slot, taken), lambda slot: out.offset(k, row, plus(start, slot))
        )
        if groups < blocks:
            k.barrier()  # before the tile is filled again

    each_group(k, blocks, groups, each)
    return buffers.finish("sort", groups, shape.threads, flat.size * 2)
