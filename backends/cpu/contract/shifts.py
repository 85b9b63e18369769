"""Numbers that lie between other bits of a word: as floats where they lie, times a power of two.

A number is shifted to the end of its word, the bits before it are masked, and what is left becomes a float. Without the
shift the float has another exponent, and the same digits: a sum of such products is worth as much less in the end.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from smelt.ir import dtypes, mlir
from smelt.ir.scalar import Scalar
from smelt.ir.scalar_emitter import made_from

from ..kernel import CpuKernel

#: Floats hold all integers of so many bits; conversions are of signed words.
DIGITS, WORD = 24, 32 - 1


def part_of(k: CpuKernel, x: Any) -> tuple[Scalar, int, int] | None:
    """Of a vector ``(word >> places) & mask``: the word, the places and the mask."""
    kind = k.type(dtypes.uint32)
    shifted = made_from(x, "arith.andi", kind)
    word = None if shifted is None else made_from(shifted, "arith.shrui", kind)
    if word is None:
        return None
    mask, places = _number(x), _number(shifted)
    return None if mask is None or places is None else (Scalar(k, word, dtypes.uint32), places, mask)


def unshifted(k: CpuKernel, x: Scalar) -> tuple[Scalar, int]:
    """A vector of float32, and 0; or one that is 2ⁿ times as large and needs no shift, and n."""
    masked = made_from(x.mlir, "arith.uitofp", k.type(dtypes.uint32))
    part = None if masked is None or x.dtype is not dtypes.float32 else part_of(k, masked)
    if part is None:
        return x, 0
    word, places, mask = part
    if not mask or not places or mask.bit_length() > DIGITS or mask.bit_length() + places > WORD:
        return x, 0
    return k.convert(word & (mask << places), dtypes.float32), places


def _number(x: Any) -> int | None:
    """The second operand of what made a vector, if it is one constant in all lanes."""
    constant = x.owner.operation.operands[1].owner
    if isinstance(constant, mlir.ir.Block) or constant.operation.name != "arith.constant":
        return None
    value = constant.operation.attributes["value"]
    if not isinstance(value, mlir.ir.DenseElementsAttr):
        return None
    numbers = np.array(value)
    return int(numbers.flat[0]) & 0xFFFFFFFF if (numbers == numbers.flat[0]).all() else None
