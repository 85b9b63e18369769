"""Keys as words of bits and their digits; how a threadgroup orders a tile of words by one digit after the other.

Each lane votes on each bit of its digit, which tells it the lanes of its simdgroup with the same digit. So a simdgroup
gives its words their ranks among equal digits, row by row of lanes, and counts digits as it goes (the ranking of words
by votes: Ashkiani et al., GPU Multisplit, 2016). A thread to each digit adds up the counts of simdgroups; where digits
begin, ranks become places. Equal digits keep their order, so digits may follow each other from the lowest on.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from dataclasses import dataclass

from smelt.backends.memory import Memory
from smelt.ir import dtypes
from smelt.ir.dtypes import DType
from smelt.ir.scalar import INDEX, Scalar

from ...kernel import GpuKernel
from ..parts import combined_up_to, plus, split, times

#: Bits of a digit, at most: so many that a threadgroup has a thread for each digit.
DIGIT_BITS = 8
#: Words of a thread, at most.
ITEMS = 16
U32 = dtypes.uint32


@dataclass(frozen=True)
class Digits:
    """How keys of a dtype are cut into digits.

    Attributes:
        bits: those of a key that tell it from others, from the lowest on.
    """

    dtype: DType
    bits: int

    @staticmethod
    def of(dtype: DType, bits: int | None = None) -> Digits | None:
        """Those of a dtype, of which integers differ in `bits` bits alone; None where keys are not words."""
        if dtype.kind == "c" or dtype.size > U32.size:
            return None
        return Digits(dtype, bits or (1 if dtype.kind == "b" else dtype.bits))

    @property
    def count(self) -> int:
        return -(-self.bits // DIGIT_BITS)

    @property
    def width(self) -> int:
        """Bits of each."""
        return -(-self.bits // self.count)

    def word(self, k: GpuKernel, key: Scalar) -> Scalar:
        """The bits of a key."""
        if self.dtype.kind == "b":
            return k.convert(key, U32)
        if not self.dtype.is_float:
            return k.convert(k.bitcast(key, self._unsigned), U32)
        raw = k.emit("arith.bitcast", [k.to_storage(key, self.dtype)], [k.type(self._unsigned)]).result
        return k.convert(Scalar(k, raw, self._unsigned), U32)

    def write(self, k: GpuKernel, word: Scalar, memory: Memory, offset: Scalar) -> None:
        """The key of these bits, to where keys are."""
        if self.dtype.kind == "b":
            k.write(word.ne(0), memory, offset)
            return
        bits = k.convert(word, self._unsigned)
        raw = k.emit("arith.bitcast", [bits], [k.storage(self.dtype)]).result if self.dtype.is_float else bits
        k.emit("memref.store", [raw, memory.memref, offset], [])

    @property
    def _unsigned(self) -> DType:
        return next(d for d in dtypes.UNSIGNED if d.size == self.dtype.size)

    def order(self, k: GpuKernel, word: Scalar) -> Scalar:
        """Bits that are as far apart as their keys are in order: NaN last, and zeros of both signs the same."""
        if self.dtype.kind in "bu":
            return word
        bits = self.dtype.bits
        sign = k.const(1 << (bits - 1), U32)
        if self.dtype.kind == "i":
            return word ^ sign
        size = word & (sign - 1)
        infinity = k.const(((1 << self.dtype.exponent_bits) - 1) << (self.dtype.digits - 1), U32)
        negative = k.logical_and((word & sign).ne(0), size.ne(0))
        ordered = k.select(negative, sign - size, sign + size)
        return k.select(size > infinity, k.const((1 << bits) - 1, U32), ordered)

    def at(self, k: GpuKernel, word: Scalar, shift: Scalar) -> Scalar:
        """The digit of a word that begins at bit `shift`, as an index."""
        return k.convert((self.order(k, word) >> shift) & ((1 << self.width) - 1), INDEX)


class RadixTile:
    """A tile of words in the registers of a threadgroup, and where they came from, in a kernel under construction.

    A thread to each digit. Words of a simdgroup are neighbours: its lanes have the first of them, and so on.
    """

    threads = 1 << DIGIT_BITS

    def __init__(self, k: GpuKernel, digits: Digits, items: int, tagged: bool):
        self.k, self.digits, self.items = k, digits, items
        self.simdgroups = self.threads // k.gpu.simd
        self._room = k.shared(self.size, U32, name="tile")
        self._counts = k.shared(self.simdgroups * self.threads, U32, name="counts")
        self._totals = k.shared(self.simdgroups, U32, name="totals")
        with k.named("word"):
            self.words = k.thread_array(items, U32)
        with k.named("place"):
            self._places = k.thread_array(items, U32)
        with k.named("order"):
            self.tags = k.thread_array(items, U32) if tagged else None
        self._own_counts = times(k.simdgroup(), self.threads)
        self._first = times(k.simdgroup(), k.gpu.simd * items)

    @property
    def size(self) -> int:
        return self.threads * self.items

    def each(self, body: Callable[[Scalar, Scalar], None]) -> None:
        """Run ``body(j, place)`` for all words of a thread and their places in the tile."""
        k = self.k
        k.unrolled(self.items, lambda j: body(j, self._first + plus(times(j, k.gpu.simd), k.lane())))

    def digit(self, j: Scalar, shift: Scalar) -> Scalar:
        return self.digits.at(self.k, self.k.read(self.words, j), shift)

    def rank(self, shift: Scalar) -> tuple[Scalar, Scalar]:
        """Find the places of words in the order of their digits at bit `shift`; of each thread's digit, how many words
        have it, and how many have those before."""
        k, simd = self.k, self.k.gpu.simd
        zero, one = k.const(0, U32), k.const(1, U32)
        for i in range(self.threads // simd):
            k.write(zero, self._counts, self._own_counts + i * simd + k.lane())
        k.simdgroup_barrier()
        with k.named("lanes_before"):
            lanes_before = (one << k.convert(k.lane(), U32)) - 1

        def one_row(j: Scalar, _: Scalar) -> None:
            digit = self.digit(j, shift)
            peers, count = self._with_same(digit), self._own_counts + digit
            with k.named("earlier"):
                earlier = k.math("ctpop", peers & lanes_before)
            with k.named("found"):
                found = k.read(self._counts, count)
            k.write(found + earlier, self._places, j)
            k.simdgroup_barrier()
            k.when(earlier.eq(0), lambda: k.write(found + k.math("ctpop", peers), self._counts, count))
            k.simdgroup_barrier()

        self.each(one_row)
        k.barrier()
        rows = [plus(k.thread(), k.const(s * self.threads, INDEX)) for s in range(self.simdgroups)]
        counts = [k.read(self._counts, row) for row in rows]
        total = counts[0]
        for more in counts[1:]:
            total = total + more
        start = at = sum_before(k, total, self._totals, self.threads)
        for row, count in zip(rows, counts):
            k.write(at, self._counts, row)
            at = at + count
        k.barrier()

        def place(j: Scalar, _: Scalar) -> None:
            start = k.read(self._counts, self._own_counts + self.digit(j, shift))
            k.write(start + k.read(self._places, j), self._places, j)

        self.each(place)
        return total, start

    def _with_same(self, digit: Scalar) -> Scalar:
        """The lanes of the simdgroup that have this digit, as bits."""
        k = self.k
        bits, peers = k.convert(digit, U32), None
        for b in range(self.digits.width):
            own = (bits >> b) & 1
            vote = k.ballot(own.ne(0))
            same = vote ^ (own - 1)
            peers = same if peers is None else peers & same
        assert peers is not None
        return peers

    def move(self) -> None:
        """Words, and where they came from, to their places."""
        k = self.k
        for array in [self.words] if self.tags is None else [self.words, self.tags]:
            if array is self.tags:
                k.barrier()  # before the words are overwritten

            def put(j: Scalar, _: Scalar, array: Memory = array) -> None:
                k.write(k.read(array, j), self._room, k.convert(k.read(self._places, j), INDEX))

            def take(j: Scalar, place: Scalar, array: Memory = array) -> None:
                k.write(k.read(self._room, place), array, j)

            self.each(put)
            k.barrier()
            self.each(take)


def sum_before(k: GpuKernel, x: Scalar, totals: Memory, team: int, teams: int = 1) -> Scalar:
    """The sum of x of all threads before this one in its team of so many; `totals`: room for one of each simdgroup."""
    simd, zero = k.gpu.simd, k.const(0, x.dtype)
    upto = combined_up_to(k, x, operator.add)
    k.when(k.lane().eq(simd - 1), lambda: k.write(upto, totals, k.simdgroup()))
    k.barrier()
    count = team // simd
    number, own = split(k, k.simdgroup(), count, "team", "simdgroup_of_team", teams > 1)
    found = upto - x
    for s in range(count - 1):
        at = k.const(s, INDEX)
        total = k.read(totals, plus(times(number, count), at))
        found = found + k.select(k.below(at, own), total, zero)
    return found
