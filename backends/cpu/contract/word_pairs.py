"""Packed numbers and elements of bfloat16 in pairs: two products, and their sum, by one instruction of AVX-512.

Numbers of up to eight bits are exact in bfloat16, and so are floats of four and eight. Where one lies 16 bits behind
another in its word, one shift brings both to where an instruction looks them up, each in its half, and what it finds is
a pair::

    word >> 4 p:    ....  ....  ....  code p + 4  |  ....  ....  ....  code p

Wherever else two lie in a word, another instruction takes bytes from any of its bits. What is looked up for whole bytes
are the two bytes of each entry.

The sums are float32's: products of bfloat16 are exact in it. But the instruction takes subnormal numbers for zero.
Where no element but zero is less than `LEAST`, products are multiples of a number that is not subnormal, so no sum of
them is, either; rows with less are to be multiplied otherwise.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from smelt.backends.contraction import Product
from smelt.ir import dtypes, mlir
from smelt.ir.scalar import INDEX, Scalar

from ..kernel import CpuKernel, Memory
from .depth_lanes import DepthLanes
from .factors import Factors
from .pairs import has_bfloat16_pairs, multiply_pairs
from .shifts import part_of
from .tables import Table, called, held
from .tiles import Sides, has_feature

#: Lanes of a register, bytes of one, and the bits of the halves of a word, of bytes, and of what bytes are taken from.
LANES, REGISTER, HALF, BYTE, REACH = 16, 64, 16, 8, 64
#: Entries of a table in a register, and in two.
ENTRIES, MOST_ENTRIES = 32, 64
#: An element may be so small, and the entries of a table in absolute value, but for zero: their products are then
#: multiples of 2**-124 at least, by the seven digits that each has behind the first.
LEAST, LEAST_ENTRY = 2.0**-93, 2.0**-17
_LEAST_BITS = int(np.float32(LEAST).view(np.uint32)) - 1
#: Ops through which two vectors are compared.
MOST_OPS = 256


class Code(NamedTuple):
    """A number of a word: the word, the place of the number in it, and what is looked up for it."""

    word: Scalar
    place: int
    mask: int
    table: Table

    def entries(self) -> np.ndarray:
        """What there is for each number."""
        return self.table.entries[: self.mask + 1].astype(np.float32)

    def is_beside(self, other: Code) -> bool:
        """Whether a number lies in the same word, and the same is looked up for it."""
        return self.table is other.table and self.mask == other.mask and is_same(self.word.mlir, other.word.mlir)

    def can_look_up(self, place: int) -> bool:
        """Whether this number and that at another place of its word can be looked up at once."""
        is_behind = place == self.place + HALF
        if self.mask >= MOST_ENTRIES:
            return is_behind and self.table.has_halves(self.mask, self.place)
        return is_behind or (place + self.mask.bit_length() <= 2 * HALF and has_feature("AVX512VBMI"))


class Pair(NamedTuple):
    """Two elements of a word that are multiplied at once, by their numbers, and where the second lies."""

    first: int
    second: int
    place: int


def suits_word_pairs(product: Product, sides: Sides, cut: DepthLanes) -> bool:
    """Whether rows are arrays of bfloat16, and words may give pairs."""
    source = sides.row_operand.source
    return (
        has_bfloat16_pairs() and cut.count == LANES and cut.vectors % 2 == 0 and source is not None
        and source[0].dtype is dtypes.bfloat16 and product.dtype.size <= 4
    )  # fmt: skip


@dataclass
class WordPairs:
    """Rows whose elements are arranged in pairs, and the numbers that they meet.

    Attributes:
        least: the least bits of an absolute value of the rows, less one, a lane each.
        pairs: in the order in which they lie.
    """

    k: CpuKernel
    factors: Factors
    least: Memory
    pairs: tuple[Pair, ...] = ()

    @staticmethod
    def of(k: CpuKernel, product: Product, sides: Sides, cut: DepthLanes, factors: Factors) -> WordPairs | None:
        """None where elements are no pairs for what is known before anything is emitted."""
        if not suits_word_pairs(product, sides, cut):
            return None
        return WordPairs(k, factors, k.scratch(LANES, dtypes.uint32))

    def code(self) -> Code | None:
        """The number where the loops stand."""
        k = self.k
        for table in self.factors.tables:
            x = k.value(table.code, table.place)
            part = part_of(k, x.mlir) if x.dtype is dtypes.uint32 else None
            if part is None or (part[2] + 1) & part[2]:
                continue
            code = Code(*part, table)
            entries = code.entries()
            entries = entries[np.isfinite(entries)]  # what meets others is not finite, and multiplied otherwise
            sizes = np.abs(entries[entries != 0])
            if not (entries.view(np.uint32) & 0xFFFF).any() and (sizes >= LEAST_ENTRY).all():
                return code
        return None

    def planned(self, codes: Sequence[Code | None]) -> WordPairs | None:
        """With the pairs that all elements of a word make; None where they make none."""
        by_word: list[list[tuple[int, Code]]] = []
        for n, code in enumerate(codes):
            if code is None:
                return None
            others = next((members for members in by_word if code.is_beside(members[0][1])), None)
            if others is None:
                by_word.append([(n, code)])
            else:
                others.append((n, code))
        pairs = list[Pair]()
        for members in by_word:
            members.sort(key=lambda member: member[1].place)
            half = len(members) // 2
            for (n, low), (m, high) in zip(members, members[half:]):
                pairs.append(Pair(n, m, high.place))
                if len(members) % 2 or not low.can_look_up(high.place):
                    return None
        return replace(self, pairs=tuple(pairs))

    def place_of(self, n: int) -> int | None:
        """Where the pair lies whose first element is element `n` of a word; None where there is none."""
        return next((i for i, pair in enumerate(self.pairs) if pair.first == n), None)

    def column(self, place: int) -> Scalar:
        """The elements of a column that are a pair, where the loops stand at the first one."""
        k, code = self.k, self.code()
        assert code is not None
        if code.mask >= MOST_ENTRIES:
            return code.table.halves_of(k, code.word, code.place)
        ir = mlir.ir
        kind = ir.VectorType.get([ENTRIES], ir.IntegerType.get_signless(HALF, k.context), loc=k.location)
        at = k.emit("vector.bitcast", [_halves(k, code, self.pairs[place].place)], [kind]).result
        entries = np.resize(code.entries(), max(ENTRIES, code.mask + 1))
        parts = np.split((entries.view(np.uint32) >> HALF).astype(np.uint16), entries.size // ENTRIES)
        first, *second = (held(k, part, kind) for part in parts)
        name = "avx512.vpermi2var.hi.512" if second else "avx512.permvar.hi.512"
        found = called(k, name, kind, first, at, *second)
        return k.bits(found, dtypes.uint32)

    def row(self, parts: Sequence[Scalar]) -> list[Scalar]:
        """The pairs of what a row has for a vector of words, as they are stored; the least of all is kept."""
        k = self.k
        with k.vectors(0):
            zero = k.const(0, INDEX)
        words = [k.bits(x.mlir, dtypes.uint32) for x in parts]
        least = k.load_vector(self.least, zero)
        for w in words:
            least = k.op("arith.minui", [least, (w & 0x7FFFFFFF) - 1], dtypes.uint32)
        k.store_vector(least, self.least, zero)
        pairs = [(words[p.first] >> HALF) | (words[p.second] & 0xFFFF0000) for p in self.pairs]
        return [k.bits(x.mlir, dtypes.float32) for x in pairs]

    def start(self) -> None:
        """Forget the rows before."""
        k, zero = self.k, self.k.const(0, INDEX)
        with k.vectors(LANES):
            k.store_vector(k.const(0xFFFFFFFF, dtypes.uint32), self.least, zero)

    def has_small(self) -> Scalar:
        """Whether an element of the rows is less than may be multiplied so."""
        k = self.k
        found = [k.read(self.least, k.const(i, INDEX)) for i in range(LANES)]
        least = found[0]
        for x in found[1:]:
            least = k.op("arith.minui", [least, x], dtypes.uint32)
        return least < k.const(_LEAST_BITS, dtypes.uint32)

    def accumulate(self, total: Scalar, x: Scalar, y: Scalar) -> Scalar:
        """The sums with two products more."""
        return multiply_pairs(self.k, total, x, y)


def _halves(k: CpuKernel, code: Code, place: int) -> Any:
    """A vector of words in whose halves a number ends, and the one at a place behind it."""
    if place == code.place + HALF:
        return (code.word >> code.place if code.place else code.word).mlir
    ir = mlir.ir
    kind = ir.VectorType.get([REGISTER], ir.IntegerType.get_signless(BYTE, k.context), loc=k.location)
    # Eight bits from any of 64 on, which are two words. What is behind a number is not looked at.
    starts = np.resize([[code.place, 0, place, 0], [code.place + 32, 0, place + 32, 0]], REGISTER)
    words = k.emit("vector.bitcast", [code.word.mlir], [kind]).result
    control = held(k, (starts % REACH).astype(np.uint8), kind)
    return called(k, "avx512.pmultishift.qb.512", kind, control, words)


def is_same(x: Any, y: Any, steps: Iterator[int] | None = None) -> bool:
    """Whether two values are the same for what makes them: the same ops of the same values, and loads of the same
    places of arrays, in which nothing is written meanwhile."""
    if x == y:
        return True
    steps = iter(range(MOST_OPS)) if steps is None else steps
    if isinstance(x.owner, mlir.ir.Block) or isinstance(y.owner, mlir.ir.Block) or next(steps, None) is None:
        return False
    first, second = x.owner.operation, y.owner.operation
    return bool(
        first.name == second.name and x.type == y.type and len(first.regions) == 0 and len(first.results) == 1
        and dict(first.attributes.items()) == dict(second.attributes.items())
        and len(first.operands) == len(second.operands)
    ) and all(is_same(a, b, steps) for a, b in zip(first.operands, second.operands))  # fmt: skip
