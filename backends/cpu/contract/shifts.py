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


def unshifted(k: CpuKernel, x: Scalar) -> tuple[Scalar, int]:
    """A vector of float32, and 0; or one that is so many powers of two larger, and takes no shift to make."""
    kind = k.type(dtypes.uint32)
    masked = made_from(x.mlir, "arith.uitofp", kind)
    shifted = None if masked is None else made_from(masked, "arith.andi", kind)
    word = None if shifted is None else made_from(shifted, "arith.shrui", kind)
    if x.dtype is not dtypes.float32 or word is None:
        return x, 0
    mask, places = _number(masked), _number(shifted)
    if not mask or not places or mask.bit_length() > DIGITS or mask.bit_length() + places > WORD:
        return x, 0
    raw = Scalar(k, word, dtypes.uint32)
    return k.convert(raw & (mask << places), dtypes.float32), places


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
