"""Contractions in which every element of a batch has few numbers of its own: depthwise convolutions, and their like.

What lies next to each other in memory is the batch: the channels. So neighbouring threads have neighbouring channels,
several each, and a threadgroup keeps the numbers that all positions of its channels are multiplied with in threadgroup
memory. A thread makes several positions at once, which share them, and what their windows overlap in.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial
from typing import Any

from smelt.backends.contraction import Operand, Product, lies_closer
from smelt.backends.lowering import Fused
from smelt.ir.index import linearize
from smelt.ir.scalar import INDEX, Scalar

from ...devices import Gpu
from ...kernel import GpuKernel, GpuModule
from ..parts import split, times
from ..schedule import ScheduledKernel, ScratchPlan
from .epilogue import Epilogue
from .positions import summed, where, within
from .sums import Sums
from .windows import innermost, steps_of_windows

#: Numbers of a channel, at most, and positions and channels, at least.
MOST_TAPS, LEAST_POSITIONS, LEAST_CHANNELS = 128, 16, 8
#: Threads of a threadgroup, and how many of them have channels next to each other, at most.
THREADS, MOST_ACROSS = 256, 32
#: Positions that a thread makes at once, at most; so often one after the other, where threadgroups are enough.
AT_ONCE, MOST_STEPS, ENOUGH_GROUPS = 4, 8, 1024
#: Multiplications of a thread that are written out.
UNROLLED = 64


def suits_depthwise(product: Product) -> bool:
    """Whether results of different channels lie closer in memory than those of different positions."""
    positions = _positions(product)
    return (
        min(product.rows.extent, product.columns.extent) == 1
        and 1 < product.depth.extent <= MOST_TAPS
        and positions.extent >= LEAST_POSITIONS
        and product.batch.extent >= LEAST_CHANNELS
        and all(lies_closer(linearize(at, v.shape), product.batch, positions) for v, at in product.outputs)
    )


def _positions(product: Product) -> Fused:
    return product.rows if product.columns.extent == 1 else product.columns


@dataclass(frozen=True)
class _Shape:
    """How work is divided.

    Attributes:
        width: channels of a thread, which are read and written together. across, down: threads of a threadgroup along
            channels and positions. blocks, chunks: threadgroups along them.
        at_once: positions that a thread makes at once; steps: how often.
        overlap: how far the windows of neighbouring positions, and neighbours in a window, are from each other, if the
            positions of a thread read the same elements.
    """

    width: int
    across: int
    down: int
    at_once: int
    steps: int
    blocks: int
    chunks: int
    overlap: tuple[int, int] | None

    @classmethod
    def of(cls, gpu: Gpu, product: Product, image: Operand) -> _Shape:
        channels, positions, taps = product.batch.extent, _positions(product).extent, product.depth.extent
        is_vector = product.rules.multiplies and product.dtype.kind == "f" and product.dtype.size <= 4
        width = product.width(product.batch) if is_vector else 1
        vectors = channels // width
        room = gpu.threadgroup_bytes // (max(product.dtype.size, 4) * taps * width)
        most = min(MOST_ACROSS, room)
        blocks = -(-vectors // most)
        across = -(-vectors // blocks)
        down = THREADS // across
        position, tap = innermost(_positions(product)), innermost(product.depth)
        overlap = steps_of_windows(image, position[0], tap[0])
        line = position[1] if overlap else positions
        at_once = math.gcd(line, AT_ONCE)
        if at_once == 1:
            overlap = None
            at_once = next(n for n in (AT_ONCE, AT_ONCE // 2, 1) if positions >= 64 * n or n == 1)
        tiles = -(-positions // (down * at_once))
        steps = max(1, min(MOST_STEPS, tiles * blocks // ENOUGH_GROUPS))
        return cls(width, across, down, at_once, steps, blocks, -(-tiles // steps), overlap)


def build_depthwise(module: GpuModule, product: Product, scratch: ScratchPlan) -> list[ScheduledKernel]:
    """One kernel. `scratch` is not needed."""
    image, taps = product.lhs, product.rhs
    if product.columns.extent > 1:
        image, taps = taps, image
    shape, epilogue = _Shape.of(module.gpu, product, image), Epilogue(module, product)
    k = epilogue.k
    k.bind(product.columns if product.columns.extent == 1 else product.rows, k.const(0, INDEX))
    _Depthwise(k, product, epilogue, shape, image, taps).build()
    return epilogue.finish("contract-depthwise", shape.blocks * shape.chunks, THREADS)


class _Depthwise:
    """Emits the kernel."""

    def __init__(
        self, k: GpuKernel, product: Product, epilogue: Epilogue, shape: _Shape, image: Operand, taps: Operand
    ):
        self.k, self.product, self.epilogue, self.shape = k, product, epilogue, shape
        self.image, self.taps, self.positions = image, taps, _positions(product)
        self.sums = Sums(k, product, shape.width)

    def build(self) -> None:
        k, shape = self.k, self.shape
        chunk, block = split(k, k.group(), shape.blocks, "chunk", "block", shape.chunks > 1)
        down, across = split(k, k.thread(), shape.across, "down", "across")
        with k.named("channel"):
            first = times(block, shape.across * shape.width)
            channel = summed(k, first, times(across, shape.width))
        self._keep_taps(first)
        k.barrier()
        with k.named("position"):
            begin = summed(k, times(chunk, shape.steps * shape.down * shape.at_once), times(down, shape.at_once))

        def step(i: Scalar) -> None:
            with k.named("position"):
                position = summed(k, begin, times(i, shape.down * shape.at_once))
            self._positions_from(position, channel, times(across, shape.width))

        def steps() -> None:
            if shape.steps == 1:
                step(k.const(0, INDEX))
            else:
                k.for_(k.const(0, INDEX), k.const(shape.steps, INDEX), step)

        idle = shape.across * shape.down < THREADS
        ragged = self.product.batch.extent % (shape.across * shape.width) != 0
        limits = [(down, shape.down, idle), (channel, self.product.batch.extent, ragged)]
        where(k, within(k, limits), steps)

    def _keep_taps(self, first: Scalar) -> None:
        """The numbers of the threadgroup's channels to threadgroup memory, channels next to each other."""
        k, product, depth = self.k, self.product, self.product.depth
        self.length = self.shape.across * self.shape.width
        self.kept = k.shared(self.length * depth.extent, self.sums.held, name="taps")

        def keep(at: Scalar) -> None:
            tap, channel = split(k, at, self.length, "tap", "own_channel")

            def read() -> None:
                with k.at_position(product.batch, summed(k, first, channel)), k.at_position(depth, tap):
                    k.write(self.taps.read(k), self.kept, at)

            ragged = product.batch.extent % self.length != 0
            where(k, within(k, [(summed(k, first, channel), product.batch.extent, ragged)]), read)

        k.for_(k.thread(), k.const(self.length * depth.extent, INDEX), keep, step=THREADS)

    def _positions_from(self, first: Scalar, channel: Scalar, kept: Scalar) -> None:
        """The results at a thread's next positions."""
        k, product, shape = self.k, self.product, self.shape
        extent, ragged = self.positions.extent, self.positions.extent % (shape.steps * shape.down * shape.at_once) != 0
        with k.named("position"):
            places = [summed(k, first, i) for i in range(shape.at_once)]
        read = places
        if ragged:  # positions beyond the last ones are read as these, and not stored
            last = [extent - shape.at_once + i if shape.overlap else extent - 1 for i in range(shape.at_once)]
            read = [k.op("arith.minui", [at, k.const(n, INDEX)], INDEX) for at, n in zip(places, last)]
        line = innermost(product.depth)[1] if shape.overlap else 1

        def step(i: Scalar, *totals: Any) -> list[Any]:
            found, windows = list(totals), dict[int, Any]()
            for j in range(line):
                tap = summed(k, times(i, line), j)
                number = self._kept(summed(k, times(tap, self.length), kept))
                for n, at in enumerate(read):
                    there = n * shape.overlap[0] + j * shape.overlap[1] if shape.overlap else n
                    if there not in windows:
                        with k.at_position(self.positions, at), k.at_position(product.depth, tap):
                            windows[there] = self.sums.gather(self.image, product.batch, channel)
                    found[n] = self.sums.add(found[n], *self._in_order(windows[there], number))
            return found

        taps = product.depth.extent
        totals = k.counted(
            taps // line, step, [self.sums.zero()] * shape.at_once, unroll=taps * shape.at_once <= UNROLLED,
            carried="sum",
        )  # fmt: skip
        for at, total in zip(places, totals):
            where(k, within(k, [(at, extent, ragged)]), partial(self._store, at, channel, total))

    def _in_order(self, x: Any, number: Any) -> tuple[Any, Any]:
        """Both operands, the left one first."""
        return (x, number) if self.image is self.product.lhs else (number, x)

    def _kept(self, at: Scalar) -> Any:
        k = self.k
        return k.load_vector(self.kept, at, self.shape.width) if self.shape.width > 1 else k.read(self.kept, at).mlir

    def _store(self, at: Scalar, channel: Scalar, total: Any) -> None:
        k, batch = self.k, self.product.batch
        with k.at_position(self.positions, at):
            if self.shape.width > 1:
                self.epilogue.vector(batch, channel, total)
            else:
                with k.at_position(batch, channel):
                    self.epilogue.element(self.sums.element(total, 0))
