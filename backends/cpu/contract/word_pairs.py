"""Packed numbers and elements of bfloat16 in pairs: two products, and their sum, by one instruction of AVX-512.

Numbers of up to five bits, and floats of four, are exact in bfloat16. Where one lies 16 bits behind another in its
word, one shift brings both to where an instruction looks them up, each in its half, and what it finds is a pair::

    word >> 4 p:    ....  ....  ....  code p + 4  |  ....  ....  ....  code p

The sums are float32's: products of bfloat16 are exact in it. But the instruction takes subnormal numbers for zero.
Where no element but zero is less than `LEAST`, products are multiples of a number that is not subnormal, so no sum of
them is, either; rows with less are to be multiplied otherwise.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from smelt.backends.contraction import Product
from smelt.ir import dtypes, mlir
from smelt.ir.scalar import INDEX, Scalar

from ..kernel import CpuKernel, Memory
from .depth_lanes import DepthLanes
from .factors import Factors
from .pairs import has_bfloat16_pairs, multiply_pairs
from .shifts import part_of
from .tables import called, held
from .tiles import Sides

#: A word, the place of a number in it, and what is looked up for that number.
Code = tuple[Scalar, int, np.ndarray]
#: Lanes of a register, entries of a table in one, and the bits of the halves of a word.
LANES, ENTRIES, HALF = 16, 32, 16
#: An element may be so small, and the entries of a table in absolute value, but for zero: their products are then
#: multiples of 2**-124 at least, by the seven digits that each has behind the first.
LEAST, LEAST_ENTRY = 2.0**-102, 2.0**-8
_LEAST_BITS = int(np.float32(LEAST).view(np.uint32)) - 1


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
        half: pairs of vectors that a vector of words gives.
        least: the least bits of an absolute value of the rows, less one, a lane each.
    """

    k: CpuKernel
    factors: Factors
    word: Memory
    half: int
    least: Memory

    @staticmethod
    def of(k: CpuKernel, product: Product, sides: Sides, cut: DepthLanes, factors: Factors) -> WordPairs | None:
        """None where elements are no pairs for what is known before anything is emitted."""
        if not suits_word_pairs(product, sides, cut):
            return None
        word = k.memory[sides.column_operand.largest[0]]
        return WordPairs(k, factors, word, cut.vectors // 2, k.scratch(LANES, dtypes.uint32))

    def code(self) -> Code | None:
        """Where the loops stand: the word, the place of the number in it, and what is looked up for the number."""
        k = self.k
        for table in self.factors.tables:
            code = k.value(table.code, table.place)
            part = part_of(k, code.mlir) if code.dtype is dtypes.uint32 else None
            if part is None or ENTRIES % (part[2] + 1) or not self._is_word(part[0].mlir):
                continue
            entries = table.entries[: part[2] + 1].astype(np.float32)
            sizes = np.abs(entries[entries != 0])
            is_exact = np.isfinite(entries).all() and not (entries.view(np.uint32) & 0xFFFF).any()
            if is_exact and (sizes >= LEAST_ENTRY).all():
                return part[0], part[1], np.resize(entries, ENTRIES)
        return None

    def _is_word(self, x: Any) -> bool:
        """Whether a vector is read from what is packed, where it is the same for all elements of a word."""
        owner = x.owner
        if isinstance(owner, mlir.ir.Block) or owner.operation.name != "vector.load":
            return False
        return bool(owner.operation.operands[0] == self.word.memref)

    def suits(self, codes: Sequence[Code | None]) -> bool:
        """Whether numbers lie beside each other so, of all elements of a word."""
        found = [c for c in codes if c is not None]
        return len(found) == len(codes) == 2 * self.half and all(
            high[1] == low[1] + HALF and low[1] < HALF and np.array_equal(low[2], high[2])
            for low, high in zip(found, found[self.half :])
        )

    def column(self) -> Scalar:
        """The pairs of a column where the loops stand."""
        k, found = self.k, self.code()
        assert found is not None
        word, place, entries = found
        ir = mlir.ir
        kind = ir.VectorType.get([ENTRIES], ir.IntegerType.get_signless(HALF, k.context), loc=k.location)
        table = held(k, (entries.view(np.uint32) >> HALF).astype(np.uint16), kind)
        at = k.emit("vector.bitcast", [word >> place if place else word], [kind]).result
        return k.bits(called(k, "permvar.hi.512", kind, table, at), dtypes.uint32)

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
        pairs = [(low >> HALF) | (high & 0xFFFF0000) for low, high in zip(words, words[self.half :])]
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
