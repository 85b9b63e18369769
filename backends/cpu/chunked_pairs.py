"""What pairs of reductions (`MergingPair`) carry from one chunk of a row to the next, where chunks stay in cache.

A chunk is gone over for the first reduction, then for the second with a center that the first gave for the chunk alone.
That takes less arithmetic than merging element by element, and a sum of squares loses nothing where the mean is large.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

from smelt.backends.lowering import FusionKernel
from smelt.backends.merged import MergingPair, ShiftedExponentials, SquaredDistances
from smelt.ir.dtypes import DType
from smelt.ir.kinds import Reduction
from smelt.ir.scalar import Scalar


@dataclass
class ChunkedPair(ABC):
    """A pair, chunk by chunk.

    Attributes:
        parts: how many numbers are carried from chunk to chunk.
        sums: how many a chunk's second loop carries.
    """

    pair: MergingPair
    parts = 2
    sums = 1

    @property
    def dtype(self) -> DType:
        """Of all that is carried."""
        return self.pair.dtype

    def start(self, k: FusionKernel) -> list[Scalar]:
        """What is carried before the first chunk."""
        return [k.const(0.0, self.dtype)] * self.parts

    def add_first(self, k: FusionKernel, total: Scalar) -> Scalar:
        """What is known of the first one's result in the chunk, with the element at the current position."""
        return self.pair.first.rules(Reduction).combine(k, total, self._element(k))

    def add_in_register(self, k: FusionKernel, total: Scalar) -> Scalar:
        """The same for a row, whose lanes are put together in the end: `settled` follows."""
        return self.add_first(k, total)

    def settled(self, k: FusionKernel, first: Scalar) -> Scalar:
        """What `add_in_register` has left."""
        return first

    @abstractmethod
    def center(self, k: FusionKernel, first: Scalar, count: Scalar) -> Scalar:
        """What is subtracted from the `count` elements of the chunk whose first result is `first`."""

    @abstractmethod
    def add_second(self, k: FusionKernel, sums: Sequence[Scalar], center: Scalar) -> list[Scalar]:
        """The sums of the chunk with the element at the current position."""

    @abstractmethod
    def merge(
        self, k: FusionKernel, carried: Sequence[Scalar], first: Scalar, center: Scalar, sums: Sequence[Scalar],
        count: Scalar,
    ) -> list[Scalar]:  # fmt: skip
        """What is carried after the chunk."""

    @abstractmethod
    def of_first(self, k: FusionKernel, carried: Sequence[Scalar]) -> Scalar:
        """The first one's result."""

    @abstractmethod
    def of_second(self, k: FusionKernel, carried: Sequence[Scalar]) -> Scalar:
        """The second one's, which may ask for what the first one has given."""

    def _add(self, k: FusionKernel, total: Scalar, x: Scalar) -> Scalar:
        """A sum in any order, as the second one's is."""
        return self.pair.op.rules(Reduction).combine(k, total, x)

    def _element(self, k: FusionKernel) -> Scalar:
        return k.value(self.pair.x, self.pair.place)


@dataclass
class ChunkedExponentials(ChunkedPair):
    """The maximum and the sum of exponentials."""

    pair: ShiftedExponentials

    def start(self, k: FusionKernel) -> list[Scalar]:
        return self.pair.start(k)

    def add_first(self, k: FusionKernel, total: Scalar) -> Scalar:
        x = self._element(k)
        return k.select(x > total, x, total)  # one instruction where lanes are rows; a NaN is in the sum

    def add_in_register(self, k: FusionKernel, total: Scalar) -> Scalar:
        flags = k.attr("#arith.fastmath<nnan,nsz>")  # one instruction; any number will do where the sum is NaN
        return k.op("arith.maxnumf", [total, self._element(k)], self.dtype, fastmath=flags)

    def settled(self, k: FusionKernel, first: Scalar) -> Scalar:
        return Scalar(k, k.emit("llvm.freeze", [first], [first.mlir.type]).results[0], first.dtype)

    def center(self, k: FusionKernel, first: Scalar, count: Scalar) -> Scalar:
        return self.pair.center(k, first)

    def add_second(self, k: FusionKernel, sums: Sequence[Scalar], center: Scalar) -> list[Scalar]:
        return [self._add(k, sums[0], self.pair.weight(k, self._element(k) - center))]

    def merge(
        self, k: FusionKernel, carried: Sequence[Scalar], first: Scalar, center: Scalar, sums: Sequence[Scalar],
        count: Scalar,
    ) -> list[Scalar]:  # fmt: skip
        return self.pair.merge(k, carried, [first, *sums])

    def of_first(self, k: FusionKernel, carried: Sequence[Scalar]) -> Scalar:
        return self.pair.of_first(k, carried)

    def of_second(self, k: FusionKernel, carried: Sequence[Scalar]) -> Scalar:
        return self.pair.of_second(k, carried)


@dataclass
class ChunkedDistances(ChunkedPair):
    """The sum and the squared distances from the mean.

    Carried are the sum, the first chunk's center, how far the mean is from it, the squares, and how many elements there
    were: distances of means are small numbers where the means themselves are large. The second sum of a chunk is that
    of the distances: what its center, a rounded number, is off.
    """

    pair: SquaredDistances
    parts = 5
    sums = 2

    def center(self, k: FusionKernel, first: Scalar, count: Scalar) -> Scalar:
        return first * (1.0 / count)

    def add_second(self, k: FusionKernel, sums: Sequence[Scalar], center: Scalar) -> list[Scalar]:
        squares, distances = sums
        distance = self._element(k) - center
        return [self._add(k, squares, distance * distance), self._add(k, distances, distance)]

    def merge(
        self, k: FusionKernel, carried: Sequence[Scalar], first: Scalar, center: Scalar, sums: Sequence[Scalar],
        count: Scalar,
    ) -> list[Scalar]:  # fmt: skip
        total, origin, mean, squares, before = carried
        origin = k.select(before.eq(0.0), center, origin)
        off = sums[1] * (1.0 / count)
        own = sums[0] - sums[1] * off
        own = k.select(own < 0.0, 0.0, own)
        apart = ((center - origin) + off) - mean
        both = before + count
        part = apart * (count / both)
        return [total + first, origin, mean + part, squares + own + apart * part * before, both]

    def of_first(self, k: FusionKernel, carried: Sequence[Scalar]) -> Scalar:
        return carried[0]

    def of_second(self, k: FusionKernel, carried: Sequence[Scalar]) -> Scalar:
        _, origin, mean, squares, count = carried
        apart = (origin - k.value(self.pair.shift, self.pair.place)) + mean
        return squares + (apart * count) * apart


#: How each kind of pair is carried.
CHUNKED: dict[type[MergingPair], type[ChunkedPair]] = {
    ShiftedExponentials: ChunkedExponentials,
    SquaredDistances: ChunkedDistances,
}


def chunked(pair: MergingPair) -> ChunkedPair:
    """How a pair is carried from chunk to chunk."""
    return CHUNKED[type(pair)](pair)
