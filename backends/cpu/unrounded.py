"""Values that need no rounding to bfloat16: elements of such arrays, negated, chosen, compared for the larger one.

Rounding is seven integer operations here, more than what it takes to negate a number or to choose one. What such
operations make of numbers of 8 bits has 8 bits, so that the upper half of a float32 is all of it.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from smelt.ir import mlir

#: Operations that give one of their operands, or its integral part or size, and which operands those are.
_MOVES = {
    "arith.negf": (0,), "math.absf": (0,), "math.copysign": (0,), "arith.select": (1, 2), "arith.maximumf": (0, 1),
    "arith.minimumf": (0, 1), "arith.maxnumf": (0, 1), "arith.minnumf": (0, 1), "math.floor": (0,), "math.ceil": (0,),
    "math.trunc": (0,), "math.roundeven": (0,),
}  # fmt: skip
#: Operations that give bits of their last two operands.
_BITS = ("arith.andi", "arith.ori", "arith.select")
#: How many operations are looked at, one behind the other; digits of a float16 that a bfloat16 has not; bits of zero.
MOST, LONGER, WORD = 16, 3, 64


def is_read(x: Any) -> bool:
    """Whether a value is as it is in memory."""
    return not isinstance(x.owner, mlir.ir.Block) and x.owner.operation.name == "arith.extf"


def is_unrounded(x: Any) -> bool:
    """Whether a float32 is known to be a bfloat16."""
    stack, seen = [x], set[Any]()
    while stack:
        value = stack.pop()
        if value in seen:
            continue
        seen.add(value)
        owner = value.owner
        if len(seen) > MOST or isinstance(owner, mlir.ir.Block):
            return False
        operation = owner.operation
        if operation.name in _MOVES:
            stack += [operation.operands[i] for i in _MOVES[operation.name]]
        elif operation.name == "arith.extf":
            if not _is_narrow(operation.operands[0]):
                return False
        elif operation.name != "arith.constant" or not _is_short(operation.attributes["value"]):
            return False
    return True


def _is_narrow(x: Any) -> bool:
    """Whether what becomes a float32 is a bfloat16, or a float16 whose last digits are known to be zeros."""
    if "bf16" in str(x.type):
        return True
    if "f16" not in str(x.type) or isinstance(x.owner, mlir.ir.Block) or x.owner.operation.name != "arith.bitcast":
        return False
    return _zeros(x.owner.operation.operands[0]) >= LONGER


def _zeros(x: Any, most: int = MOST) -> int:
    """How many of the last bits of an integer are known to be zeros."""
    if isinstance(x.owner, mlir.ir.Block) or not most:
        return 0
    operation = x.owner.operation
    if operation.name == "arith.constant":
        value = operation.attributes["value"]
        is_dense = isinstance(value, mlir.ir.DenseElementsAttr)
        if not is_dense and not isinstance(value, mlir.ir.IntegerAttr):
            return 0
        bits = int(np.bitwise_or.reduce(np.asarray(value), axis=None)) if is_dense else value.value
        return (bits & -bits).bit_length() - 1 if bits else WORD
    if operation.name in ("arith.trunci", "arith.extui", "arith.extsi"):
        return _zeros(operation.operands[0], most - 1)
    found = [_zeros(v, most - 1) for v in list(operation.operands)[-2:]] if operation.name in _BITS else [0]
    return max(found) if operation.name == "arith.andi" else min(found)


def _is_short(attribute: Any) -> bool:
    if not isinstance(attribute, mlir.ir.FloatAttr):
        return False
    return not int(np.float32(attribute.value).view(np.uint32)) & 0xFFFF
