"""Contractions that sum over most of what they read: gradients of depthwise convolutions in their kernels.

What lies next to each other in memory are the channels, and each has a few results, the taps. So neighbouring threads
have neighbouring channels, several each, and go along lines of positions. A thread adds up several taps, and reads once
what their windows at neighbouring positions have in common. Where channels come in small groups, a thread does that for
each output of its group. A threadgroup adds up what its threads have, and
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
#: Outputs of a group, at most.
MOST_OUTPUTS = 8
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


@dataclass(frozen=True)
class _Loops:
    """A product whose results are taps of channels.

    Attributes:
        image, other: the operands; the image is read in windows, or at least by more loops.
        channels: that lie next to each other in the image; inner: those of a group, if that has several.
        taps, outputs: each channel's results.
    """

    image: Operand
    other: Operand
    channels: Fused
    inner: Fused
    taps: Fused
    outputs: Fused

    @classmethod
    def of(cls, product: Product) -> _Loops | None:
        """None where an operand has nothing in memory, or the outputs are many."""
        image, taps, other, outputs = product.lhs, product.rows, product.rhs, product.columns
        if outputs.extent > taps.extent:
            image, taps, other, outputs = other, outputs, image, taps
        if outputs.extent > MOST_OUTPUTS or not image.loads or not other.loads:
            return None
        channels, rest = product.batch.variables, taps.variables
        close = [v for v in rest if v[1] > 1 and image.stride(Fused([v])) < image.stride(product.batch)]
        if close:  # of a group: they come after it
            is_next = image.stride(product.batch) == close[0][1] * image.stride(Fused(close))
            if len(close) > 1 or not is_next:
                return None
            channels, rest = [*channels, *close], [v for v in rest if v not in close]
        return cls(image, other, Fused(channels), Fused(close), Fused(rest), outputs)

    @property
    def is_grouped(self) -> bool:
        """Whether a channel meets several outputs, or an output several channels."""
        return self.outputs.extent > 1 or self.inner.extent > 1


def suits_taps(product: Product) -> bool:
    """Whether few results of each channel are summed over positions, and channels lie closest in both operands."""
    loops = _Loops.of(product) if product.rules.multiplies else None
    return (
        loops is not None
        and 0 < loops.taps.extent <= MOST_TAPS
        and loops.taps.extent * loops.outputs.extent < product.depth.extent >= LEAST_POSITIONS
        and loops.channels.extent >= LEAST_CHANNELS
        and product.batch.extent > 1
        and (not loops.is_grouped or _has_windows(product, loops))
        and _is_close(loops.image, loops.channels, product)
        and _is_close(loops.other, product.batch, product)
    )


def _has_windows(product: Product, loops: _Loops) -> bool:
    """Whether taps of groups read the same elements: else products of matrices are as good."""
    taps = [v for v in loops.taps.variables if v[1] > 1]
    return bool(taps) and steps_of_windows(loops.image, _in_order(product, loops.other)[-1][0], taps[-1][0]) is not None


def _in_order(product: Product, operand: Operand) -> list[tuple[str, int]]:
    """The loops that are summed over, that of neighbouring positions last."""
    return sorted((v for v in product.depth.variables if v[1] > 1), key=lambda v: -operand.stride(Fused([v])))


def _is_close(operand: Operand, channels: Fused, product: Product) -> bool:
    """Whether an operand has channels next to each other, and positions further apart."""
    return operand.stride(channels) < min(operand.stride(Fused([v])) for v in _in_order(product, operand))


@dataclass(frozen=True)
class _Tile:
    """What a thread sees to at once, of `width` channels.

    Attributes:
        length: taps next to each other; own: so many such pieces.
        at_once: positions next to each other.
        outputs: of each channel.
    """

    width: int
    length: int
    own: int
    at_once: int
    outputs: int

    def values(self, overlap: tuple[int, int] | None) -> int:
        """Numbers in registers."""
        window = self._window(overlap) if overlap else self.at_once
        return self.width * (self.own * self.length * self.outputs + window + self.at_once * self.outputs)

    def cost(self, overlap: tuple[int, int] | None, size: int) -> float:
        """Bytes to be read for a multiplication, or that could be read meanwhile."""
        reads = self.own * self._window(overlap) + self.at_once * self.outputs
        bytes_read = max(GOOD_BYTES, self.width * size)
        return reads * bytes_read / (self.own * self.length * self.at_once * self.width * self.outputs)

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
    def of(cls, gpu: Gpu, product: Product, loops: _Loops) -> _Shape:
        taps = [v for v in loops.taps.variables if v[1] > 1]
        *others, position = _in_order(product, loops.other)
        *outer, tap = taps or [("", 1)]
        overlap = steps_of_windows(loops.image, position[0], tap[0]) if taps else None
        tile = _best_tile(product, loops, overlap, position[1], tap[1], Fused(outer).extent)
        vectors = loops.channels.extent // tile.width
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


def _best_tile(
    product: Product, loops: _Loops, overlap: tuple[int, int] | None, positions: int, taps: int, outer: int
) -> _Tile:  # fmt: skip
    """What a thread does best at once.

    Args:
        positions: next to each other. taps: of the innermost loop; outer: of the others.
    """
    size = min((x.dtype.size for x, _ in (*product.lhs.loads, *product.rhs.loads)), default=4)
    found: list[tuple[float, int, _Tile]] = []
    widths, lengths = _widths(product, loops), [n for n in range(1, taps + 1) if taps % n == 0]
    outputs = loops.outputs.extent
    for width in widths:
        vectors = loops.channels.extent // width
        across = -(-vectors // -(-vectors // MOST_ACROSS))
        for length in lengths:
            pieces = outer * (taps // length)
            for own in range(1, pieces + 1):
                parts = -(-pieces // own)
                if parts * across > THREADS:
                    continue
                alone = _Tile(width, length, own, 1, outputs).cost(overlap, size)
                for at_once in range(1, min(MOST_AT_ONCE, positions) + 1):
                    tile = _Tile(width, length, own, at_once, outputs)
                    values, rest = tile.values(overlap), positions % at_once
                    cost = ((positions - rest) * tile.cost(overlap, size) + rest * alone) / positions
                    if values <= MOST_VALUES:
                        found.append((cost * parts * own / pieces, values, tile))
    return min(found, key=lambda x: x[:2])[2]


def _widths(product: Product, loops: _Loops) -> list[int]:
    """Of how many channels vectors may be."""
    if product.dtype.kind != "f" or product.dtype.size > 4:
        return [1]
    lying = [x for x in (loops.image, loops.other) if x.source is not None]
    widths = [4, 2]
    if loops.is_grouped:  # one number of the other operand meets all of a vector
        lying = [x for x in lying if x is loops.image]
        widths = [n for n in widths if loops.inner.extent % n == 0]
    return [n for n in widths if lying and all(x.along(loops.channels, n) for x in lying)] + [1]


def build_taps(module: GpuModule, product: Product, scratch: ScratchPlan) -> list[ScheduledKernel]:
    """One kernel, or two where threadgroups share the positions."""
    loops = _Loops.of(product)
    assert loops is not None
    shape = _Shape.of(module.gpu, product, loops)
    if shape.chunks == 1:
        epilogue = Epilogue(module, product)
    else:
        epilogue = Shares(module, product, shape.chunks, scratch, many=MANY_RESULTS)
    k = epilogue.k
    for loop in (product.rows, product.columns, product.depth):  # axes of one element
        k.bind(Fused([v for v in loop.variables if v[1] == 1]), k.const(0, INDEX))
    threads = -(-shape.across * shape.parts * shape.lines // k.gpu.simd) * k.gpu.simd
    _Taps(k, product, loops, epilogue, shape, threads).build()
    return epilogue.finish("contract-taps", shape.blocks * shape.chunks, threads)


class _Taps:
    """Emits the kernel."""

    def __init__(
        self, k: GpuKernel, product: Product, loops: _Loops, epilogue: Epilogue, shape: _Shape, threads: int
    ):  # fmt: skip
        self.k, self.product, self.epilogue, self.shape, self.tile = k, product, epilogue, shape, shape.tile
        self.loops, self.threads = loops, threads
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
                self.channel = self._at_most(channel, self.loops.channels.extent - tile.width)
        with k.named("piece"):
            self.piece = times(part, tile.own)
        totals = self._over_positions(chunk, line)
        if shape.lines == 1:
            self._store_own(totals, channel)
        else:
            self._exchange(totals)

    @property
    def _is_ragged(self) -> bool:
        return self.loops.channels.extent % (self.shape.across * self.tile.width) != 0

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
        totals = [self.sums.zero()] * (self.tile.own * self.tile.length * self.tile.outputs)
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
        k, loops, tile, overlap = self.k, self.loops, self.tile, self.shape.overlap
        with k.named("position"):
            places = [summed(k, first, i) for i in range(count)]
        found = list(totals)
        others = [self._others(at) for at in places]
        for piece in range(tile.own):
            windows: dict[tuple[int, ...], Any] = {}
            for j in range(tile.length):
                with self._tap(piece, j):
                    for i, at in enumerate(places):
                        there = (i * overlap[0] + j * overlap[1],) if overlap else (i, j)
                        if there not in windows:
                            with k.at_position(self.position, at):
                                windows[there] = self.sums.gather(loops.image, loops.channels, self.channel)
                        n = (piece * tile.length + j) * tile.outputs
                        for o, number in enumerate(others[i], n):
                            found[o] = self.sums.add(found[o], *self._in_order(windows[there], number))
        return found

    def _others(self, position: Scalar) -> list[Any]:
        """What the image meets at a position, of each output."""
        k, loops, found = self.k, self.loops, list[Any]()
        if not loops.is_grouped:
            with k.at_position(self.position, position):
                return [self.sums.gather(loops.other, loops.channels, self.channel)]
        is_float = self.product.dtype.kind == "f"
        width = next((n for n in (4, 2) if is_float and loops.other.along(loops.outputs, n)), 1)
        together = Sums(k, self.product, width)
        with k.at_position(self.position, position), k.at_position(loops.channels, self.channel):
            for first in range(0, self.tile.outputs, width):
                some = together.gather(loops.other, loops.outputs, k.const(first, INDEX))
                found += [self._repeated(together.element(some, i)) for i in range(width)]
        return found

    def _repeated(self, x: Scalar) -> Any:
        """A number that all of a vector are multiplied with."""
        if self.tile.width == 1:
            return x.mlir
        return self.k.emit("vector.broadcast", [x], [self.k.vector_type(self.sums.held, self.tile.width)]).result

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
        return (x, number) if self.loops.image is self.product.lhs else (number, x)

    # Sums of a threadgroup

    def _store_own(self, totals: Sequence[Any], channel: Scalar) -> None:
        """What each thread has is all there is."""
        k, tile, shape = self.k, self.tile, self.shape
        idle = self.threads > shape.across * shape.parts
        channels = self.loops.channels.extent
        limits = [(channel, channels, self._is_ragged), (k.thread(), shape.across * shape.parts, idle)]

        def store() -> None:
            for n, total in enumerate(totals):
                tap, o = divmod(n, tile.outputs)
                piece, j = divmod(tap, tile.length)
                for i in range(tile.width):
                    place = summed(k, self.piece, piece), k.const(j, INDEX), k.const(o, INDEX), summed(k, channel, i)
                    self._store(self.sums.element(total, i), *place)

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
                n, place = split(k, i, each, "sum", "place", len(some) > 1)

                def add(other: Scalar, total: Scalar) -> list[Scalar]:
                    return [total + k.read(memory, summed(k, times(n, each * shape.lines), times(other, each), place))]

                zero = k.const(0, INDEX)
                [total] = k.for_(zero, k.const(shape.lines, INDEX), add, [k.const(0, held)])
                part, channel = split(k, place, shape.across * tile.width, "part", "channel", shape.parts > 1)
                tap, o = split(k, summed(k, n, first), tile.outputs, "tap", "output", tile.own * tile.length > 1)
                piece, j = split(k, tap, tile.length, "piece", "", tile.own > 1)
                piece = summed(k, times(part, tile.own), piece)
                self._store(total, piece, j, o, summed(k, self.first_channel, channel))

            k.for_(k.thread(), k.const(len(some) * each, INDEX), add_up, step=self.threads)

    def _store(self, total: Scalar, piece: Scalar, j: Scalar, output: Scalar, channel: Scalar) -> None:
        k, shape, loops = self.k, self.shape, self.loops
        limits = [
            (piece, shape.pieces, shape.pieces % self.tile.own != 0),
            (channel, loops.channels.extent, self._is_ragged),
        ]

        def store() -> None:
            with self._at_tap(piece, j), k.at_position(loops.outputs, output), k.at_position(loops.channels, channel):
                self.epilogue.element(total)

        where(k, within(k, limits), store)
