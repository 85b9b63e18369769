"""Contractions that sum over most of what they read: gradients of depthwise convolutions in their kernels.

What lies next to each other in memory is the batch, the channels, and each has a few results, the taps. So neighbouring
threads have neighbouring channels, several each, and go along lines of positions. A thread adds up several taps, and
reads once what their windows at neighbouring positions have in common. A threadgroup adds up what its threads have, and
a second kernel what the threadgroups have, always in the same order.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from smelt.backends.contraction import Operand, Product
from smelt.backends.lowering import Fused
from smelt.ir.scalar import INDEX, Scalar

from ...devices import Gpu
from ...kernel import GpuKernel, GpuModule
from ..parts import split, times
from ..schedule import ScheduledKernel, ScratchPlan
from .epilogue import Epilogue
from .positions import summed, where, within
from .split import Shares
from .sums import Sums
from .windows import steps_of_windows

#: Taps of a channel, at most, and channels and positions, at least.
MOST_TAPS, LEAST_CHANNELS, LEAST_POSITIONS = 128, 8, 64
#: Threads of a threadgroup, and how many of them have channels next to each other, at most.
THREADS, MOST_ACROSS = 256, 32
#: Numbers that a thread has in registers, at most; and positions that it sees to at once.
MOST_VALUES, MOST_AT_ONCE = 80, 8
#: Bytes that a thread should read at once.
GOOD_BYTES = 8
#: Threads and threadgroups that are enough, and positions of a line that are worth a thread.
ENOUGH_THREADS, ENOUGH_GROUPS, LEAST_OWN = 131072, 1024, 32
#: So many results lie next to each other in a share.
MANY_RESULTS = 256
#: Threadgroup memory that threads exchange sums in.
EXCHANGED_BYTES = 16384


def suits_taps(product: Product) -> bool:
    """Whether few results of each channel are summed over positions, and channels lie closest in both operands."""
    taps = _taps(product)
    return (
        product.rules.multiplies
        and min(product.rows.extent, product.columns.extent) == 1
        and taps.extent <= MOST_TAPS
        and taps.extent < product.depth.extent >= LEAST_POSITIONS
        and product.batch.extent >= LEAST_CHANNELS
        and all(_is_close(x, product) for x in (product.lhs, product.rhs))
    )


def _taps(product: Product) -> Fused:
    return product.rows if product.columns.extent == 1 else product.columns


def _is_close(operand: Operand, product: Product) -> bool:
    """Whether an operand has channels next to each other, and positions further apart."""
    if not operand.loads:
        return False
    steps = [operand.stride(Fused([v])) for v in product.depth.variables if v[1] > 1]
    return operand.stride(product.batch) < min(steps)


@dataclass(frozen=True)
class _Tile:
    """What a thread sees to at once, of `width` channels.

    Attributes:
        length: taps next to each other; own: so many such pieces.
        at_once: positions next to each other.
    """

    width: int
    length: int
    own: int
    at_once: int

    def values(self, overlap: tuple[int, int] | None) -> int:
        """Numbers in registers."""
        window = self._window(overlap) if overlap else self.at_once
        return self.width * (self.own * self.length + window + self.at_once)

    def cost(self, overlap: tuple[int, int] | None, size: int) -> float:
        """Bytes to be read for a multiplication, or that could be read meanwhile."""
        reads = self.own * self._window(overlap) + self.at_once
        bytes_read = max(GOOD_BYTES, self.width * size)
        return reads * bytes_read / (self.own * self.length * self.at_once * self.width)

    def _window(self, overlap: tuple[int, int] | None) -> int:
        """Elements that the windows of a piece have."""
        if overlap is None:
            return self.length * self.at_once
        a, b = overlap
        return len({a * i + b * j for i in range(self.at_once) for j in range(self.length)})


@dataclass(frozen=True)
class _Shape:
    """How work is divided.

    Attributes:
        tile: of a thread. position: the loop whose neighbours lie closest; others: all that is summed over beside it.
        tap: the innermost loop over taps; outer: the others.
        overlap: see `steps_of_windows`.
        across, parts, lines: threads of a threadgroup along channels, pieces of taps, and positions.
        blocks: threadgroups along channels.
        segments, segment: in which lines of positions are cut, and positions of one.
        steps: so many segments a thread sees to. chunks: threadgroups that share the positions.
    """

    tile: _Tile
    position: tuple[str, int]
    others: Fused
    tap: Fused
    outer: Fused
    overlap: tuple[int, int] | None
    across: int
    parts: int
    lines: int
    blocks: int
    segments: int
    segment: int
    steps: int
    chunks: int

    @property
    def pieces(self) -> int:
        """Pieces of all taps."""
        return self.outer.extent * (self.tap.extent // self.tile.length)

    @property
    def items(self) -> int:
        return self.others.extent * self.segments

    @classmethod
    def of(cls, gpu: Gpu, product: Product, image: Operand, other: Operand) -> _Shape:
        channels, taps = product.batch.extent, [v for v in _taps(product).variables if v[1] > 1]
        loops = sorted((v for v in product.depth.variables if v[1] > 1), key=lambda v: -other.stride(Fused([v])))
        *others, position = loops
        *outer, tap = taps or [("", 1)]
        overlap = steps_of_windows(image, position[0], tap[0]) if taps else None
        tile = _best_tile(product, overlap, position[1], tap[1], Fused(outer).extent)
        vectors = channels // tile.width
        blocks = -(-vectors // MOST_ACROSS)
        across = -(-vectors // blocks)
        pieces = Fused(outer).extent * (tap[1] // tile.length)
        parts = -(-pieces // tile.own)
        lines = max(1, THREADS // (across * parts))
        wanted = ENOUGH_THREADS // (across * blocks * parts * Fused(others).extent)
        segments = max(1, min(wanted, position[1] // max(LEAST_OWN, tile.at_once)))
        segment = -(-position[1] // (segments * tile.at_once)) * tile.at_once
        segments = -(-position[1] // segment)
        tiles = -(-Fused(others).extent * segments // lines)
        steps = -(-tiles * blocks // ENOUGH_GROUPS)
        return cls(
            tile, position, Fused(others), Fused([tap] if taps else []), Fused(outer), overlap, across, parts, lines,
            blocks, segments, segment, steps, -(-tiles // steps),
        )  # fmt: skip


def _best_tile(product: Product, overlap: tuple[int, int] | None, positions: int, taps: int, outer: int) -> _Tile:
    """What a thread does best at once.

    Args:
        positions: next to each other. taps: of the innermost loop; outer: of the others.
    """
    size = min((x.dtype.size for x, _ in (*product.lhs.loads, *product.rhs.loads)), default=4)
    found: list[tuple[float, int, _Tile]] = []
    widths, lengths = _widths(product), [n for n in range(1, taps + 1) if taps % n == 0]
    for width in widths:
        vectors = product.batch.extent // width
        across = -(-vectors // -(-vectors // MOST_ACROSS))
        for length in lengths:
            pieces = outer * (taps // length)
            for own in range(1, pieces + 1):
                parts = -(-pieces // own)
                if parts * across > THREADS:
                    continue
                alone = _Tile(width, length, own, 1).cost(overlap, size)
                for at_once in range(1, min(MOST_AT_ONCE, positions) + 1):
                    tile = _Tile(width, length, own, at_once)
                    values, rest = tile.values(overlap), positions % at_once
                    cost = ((positions - rest) * tile.cost(overlap, size) + rest * alone) / positions
                    if values <= MOST_VALUES:
                        found.append((cost * parts * own / pieces, values, tile))
    return min(found, key=lambda x: x[:2])[2]


def _widths(product: Product) -> list[int]:
    """Of how many channels vectors may be."""
    if product.dtype.kind != "f" or product.dtype.size > 4:
        return [1]
    lying = [x for x in (product.lhs, product.rhs) if x.source is not None]
    return [n for n in (4, 2) if lying and all(x.along(product.batch, n) for x in lying)] + [1]


def build_taps(module: GpuModule, product: Product, scratch: ScratchPlan) -> list[ScheduledKernel]:
    """One kernel, or two where threadgroups share the positions."""
    image, other = product.lhs, product.rhs
    if product.columns.extent > 1:
        image, other = other, image
    shape = _Shape.of(module.gpu, product, image, other)
    if shape.chunks == 1:
        epilogue = Epilogue(module, product)
    else:
        epilogue = Shares(module, product, shape.chunks, scratch, many=MANY_RESULTS)
    k = epilogue.k
    for loop in (product.rows, product.columns, product.depth):  # axes of one element
        k.bind(Fused([v for v in loop.variables if v[1] == 1]), k.const(0, INDEX))
    threads = -(-shape.across * shape.parts * shape.lines // k.gpu.simd) * k.gpu.simd
    _Taps(k, product, epilogue, shape, image, other, threads).build()
    return epilogue.finish("contract-taps", shape.blocks * shape.chunks, threads)


class _Taps:
    """Emits the kernel."""

    def __init__(
        self, k: GpuKernel, product: Product, epilogue: Epilogue, shape: _Shape, image: Operand, other: Operand,
        threads: int,
    ):  # fmt: skip
        self.k, self.product, self.epilogue, self.shape, self.tile = k, product, epilogue, shape, shape.tile
        self.image, self.other, self.threads = image, other, threads
        self.position = Fused([shape.position])
        self.sums = Sums(k, product, shape.tile.width)

    def build(self) -> None:
        k, shape, tile = self.k, self.shape, self.tile
        chunk, block = split(k, k.group(), shape.blocks, "chunk", "block", shape.chunks > 1)
        if isinstance(self.epilogue, Shares):
            self.epilogue.number = chunk
        rest, across = split(k, k.thread(), shape.across, "rest", "across", self.threads > shape.across)
        line, part = split(k, rest, shape.parts, "line", "part", self.threads > shape.across * shape.parts)
        self.first_channel = times(block, shape.across * tile.width)
        with k.named("channel"):
            channel = self.channel = summed(k, self.first_channel, times(across, tile.width))
        if self._is_ragged:  # threads beyond the last channels read these, and do not store
            with k.named("channel"):
                self.channel = self._at_most(channel, self.product.batch.extent - tile.width)
        with k.named("piece"):
            self.piece = times(part, tile.own)
        totals = self._over_positions(chunk, line)
        if shape.lines == 1:
            self._store_own(totals, channel)
        else:
            self._exchange(totals)

    @property
    def _is_ragged(self) -> bool:
        return self.product.batch.extent % (self.shape.across * self.tile.width) != 0

    def _at_most(self, x: Scalar, n: int) -> Scalar:
        return self.k.op("arith.minui", [x, self.k.const(n, INDEX)], INDEX)

    # Sums of a thread

    def _over_positions(self, chunk: Scalar, line: Scalar) -> list[Any]:
        """The sums over all positions that a thread sees to, piece by piece of its taps."""
        k, shape = self.k, self.shape
        together = shape.lines * shape.steps
        with k.named("item"):
            begin = times(chunk, together)
            first = summed(k, begin, line)
        with k.named("end"):
            end = summed(k, begin, together)
            if shape.items % together:
                end = self._at_most(end, shape.items)
        if self.threads > shape.across * shape.parts * shape.lines:  # the last threads have no positions
            with k.named("item"):
                first = k.select(k.below(line, shape.lines), first, end)
        totals = [self.sums.zero()] * (self.tile.own * self.tile.length)
        return k.counted(end, self._segment, totals, first=first, step=shape.lines, carried="sum")

    def _segment(self, item: Scalar, *totals: Any) -> Sequence[Any]:
        """A thread's sums with what a segment of a line adds to them."""
        k, shape, at_once = self.k, self.shape, self.tile.at_once
        extent = shape.position[1]
        segment, other = split(k, item, shape.others.extent, "segment", "other", shape.segments > 1)
        first, end = times(segment, shape.segment), k.const(extent, INDEX)
        if shape.segments > 1:
            with k.named("end"):
                end = self._at_most(first + shape.segment, extent)
        whole = end
        if extent % at_once:  # the last positions of a line are seen to one by one
            with k.named("whole"):
                whole = end - k.op("arith.remui", [end - first, k.const(at_once, INDEX)], INDEX)
        found: Sequence[Any] = totals
        with k.at_position(shape.others, other):
            for begin, stop, count in ((first, whole, at_once), (whole, end, 1)):
                if begin is not end:
                    found = k.counted(
                        stop, lambda at, *own, n=count: self._positions_from(at, n, own), found, first=begin,
                        step=count, carried="sum",
                    )  # fmt: skip
        return found

    def _positions_from(self, first: Scalar, count: int, totals: Sequence[Any]) -> list[Any]:
        """A thread's sums with what `count` positions add to them."""
        k, batch, tile, overlap = self.k, self.product.batch, self.tile, self.shape.overlap
        with k.named("position"):
            places = [summed(k, first, i) for i in range(count)]
        others, found = [], list(totals)
        for at in places:
            with k.at_position(self.position, at):
                others.append(self.sums.gather(self.other, batch, self.channel))
        for piece in range(tile.own):
            windows: dict[tuple[int, ...], Any] = {}
            for j in range(tile.length):
                with self._tap(piece, j):
                    for i, at in enumerate(places):
                        there = (i * overlap[0] + j * overlap[1],) if overlap else (i, j)
                        if there not in windows:
                            with k.at_position(self.position, at):
                                windows[there] = self.sums.gather(self.image, batch, self.channel)
                        n = piece * tile.length + j
                        found[n] = self.sums.add(found[n], *self._in_order(windows[there], others[i]))
        return found

    @contextmanager
    def _tap(self, piece: int, j: int) -> Iterator[None]:
        """The loops over taps stand at one of the thread's."""
        with self._at_tap(summed(self.k, self.piece, piece), self.k.const(j, INDEX), guarded=True):
            yield

    @contextmanager
    def _at_tap(self, piece: Scalar, j: Scalar, guarded: bool = False) -> Iterator[None]:
        """The loops over taps stand at one of a piece's; guarded: of the last piece where there is no other."""
        k, shape = self.k, self.shape
        if guarded and shape.pieces % self.tile.own:
            piece = self._at_most(piece, shape.pieces - 1)
        outer, inner = split(k, piece, shape.tap.extent // self.tile.length, "", "", shape.outer.extent > 1)
        with k.at_position(shape.outer, outer), k.at_position(shape.tap, summed(k, times(inner, self.tile.length), j)):
            yield

    def _in_order(self, x: Any, number: Any) -> tuple[Any, Any]:
        """Both operands, the left one first."""
        return (x, number) if self.image is self.product.lhs else (number, x)

    # Sums of a threadgroup

    def _store_own(self, totals: Sequence[Any], channel: Scalar) -> None:
        """What each thread has is all there is."""
        k, tile, shape = self.k, self.tile, self.shape
        idle = self.threads > shape.across * shape.parts
        limits = [(channel, self.product.batch.extent, self._is_ragged), (k.thread(), shape.across * shape.parts, idle)]

        def store() -> None:
            for n, total in enumerate(totals):
                piece, j = divmod(n, tile.length)
                for i in range(tile.width):
                    x = self.sums.element(total, i)
                    self._store(x, summed(k, self.piece, piece), k.const(j, INDEX), summed(k, channel, i))

        where(k, within(k, limits), store)

    def _exchange(self, totals: Sequence[Any]) -> None:
        """Adds up what the lines of a threadgroup have, of as many taps at a time as threadgroup memory holds."""
        k, shape, tile, held = self.k, self.shape, self.tile, self.sums.held
        each = shape.across * shape.parts * tile.width  # sums of a tap in a line
        own, bytes_each = len(totals), each * shape.lines * held.size
        rounds = -(-own // max(1, EXCHANGED_BYTES // bytes_each))
        most = -(-own // rounds)
        memory = k.shared(most * each * shape.lines, self.product.dtype, name="sums")
        idle = self.threads > shape.across * shape.parts * shape.lines
        has_sums = within(k, [(k.thread(), shape.across * shape.parts * shape.lines, idle)])
        for first in range(0, own, most):
            some = totals[first : first + most]
            if first:
                k.barrier()

            def put(some: Sequence[Any] = some) -> None:
                for n, total in enumerate(some):
                    at = summed(k, times(k.thread(), tile.width), n * each * shape.lines)
                    if tile.width > 1:
                        k.store_vector(total, memory, at)
                    else:
                        k.write(self.sums.element(total, 0), memory, at)

            where(k, has_sums, put)
            k.barrier()

            def add_up(i: Scalar, first: int = first, some: Sequence[Any] = some) -> None:
                n, place = split(k, i, each, "tap", "place", len(some) > 1)

                def add(other: Scalar, total: Scalar) -> list[Scalar]:
                    return [total + k.read(memory, summed(k, times(n, each * shape.lines), times(other, each), place))]

                zero = k.const(0, INDEX)
                [total] = k.for_(zero, k.const(shape.lines, INDEX), add, [k.const(0, held)])
                part, channel = split(k, place, shape.across * tile.width, "part", "channel", shape.parts > 1)
                piece, j = split(k, summed(k, n, first), tile.length, "piece", "", tile.own > 1)
                piece = summed(k, times(part, tile.own), piece)
                self._store(total, piece, j, summed(k, self.first_channel, channel))

            k.for_(k.thread(), k.const(len(some) * each, INDEX), add_up, step=self.threads)

    def _store(self, total: Scalar, piece: Scalar, j: Scalar, channel: Scalar) -> None:
        shape = self.shape
        limits = [
            (piece, shape.pieces, shape.pieces % self.tile.own != 0),
            (channel, self.product.batch.extent, self._is_ragged),
        ]

        def store() -> None:
            with self._at_tap(piece, j), self.k.at_position(self.product.batch, channel):
                self.epilogue.element(total)

        where(self.k, within(self.k, limits), store)
