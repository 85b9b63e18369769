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
#: How many operations are looked at.
MOST = 16


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
            if "bf16" not in str(operation.operands[0].type):
                return False
        elif operation.name != "arith.constant" or not _is_short(operation.attributes["value"]):
            return False
    return True


def _is_short(attribute: Any) -> bool:
    if not isinstance(attribute, mlir.ir.FloatAttr):
        return False
    return not int(np.float32(attribute.value).view(np.uint32)) & 0xFFFF
