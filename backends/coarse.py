"""Which float32 values of a kernel need no more than the digits of half precision: what they lead to is rounded to it.

Elementary functions of half precision are shorter. What multiplies, divides, negates or moves such a value has its
relative error, and so has a sum of exponentials, none of which is negative::

    %e = "smelt.exp"(%d)                      // coarse
    %t = "smelt.reduce_sum"(%e) ...
    %w = %e / %t
    %r = "smelt.convert"(%w) {dtype = bf16}

Any other sum may cancel. Errors of factors add up, so a product of more than `MOST` such functions, as e·e·e is, has
them with all digits.
"""

from __future__ import annotations

from smelt.ir import dtypes
from smelt.ir.builder import Function, OpView, Value
from smelt.ir.dtypes import DType
from smelt.ir.ops.conversion import Convert
from smelt.passes.kernels.analysis import is_moved

_SCALES = ("x * y", "x / y", "-x")
#: Functions with the digits of half precision whose product has these digits, too.
MOST = 2


def coarse_values(body: Function) -> dict[Value, DType]:
    """By value, the narrowest dtype of half precision to which all is rounded that is made of it."""
    readers: dict[Value, list[OpView]] = {}
    for op in body.ops:
        for v in op.operands:
            readers.setdefault(v, []).append(op)
    exact = set(body.returns)
    while True:
        found = dict[Value, DType]()
        for op in reversed(body.ops):
            for v in op.results:
                if v.dtype is not dtypes.float32 or v in exact or v not in readers:
                    continue
                needed = {_needed(reader, v, found) for reader in readers[v]}
                if None not in needed:
                    found[v] = dtypes.float16 if dtypes.float16 in needed else dtypes.bfloat16
        counts = _counts(body, found)
        many = {v for v, count in counts.items() if count > MOST}
        if not many:
            return found
        exact |= many


def _counts(body: Function, found: dict[Value, DType]) -> dict[Value, int]:
    """How many errors of functions each coarse value has: as many as the functions that it is a product of."""
    counts: dict[Value, int] = {}
    for op in body.ops:
        for v in op.results:
            if v in found:
                passes_on = op.op.formula in _SCALES or op.op.formula == "sum(x)" or is_moved(op)
                counts[v] = sum(counts.get(x, 0) for x in op.operands) if passes_on else 1
    return counts


def _needed(reader: OpView, v: Value, found: dict[Value, DType]) -> DType | None:
    """The dtype of half precision whose digits a reader needs of a value; None where it needs more."""
    (result, *others) = reader.results
    if others:
        return None
    if isinstance(reader.op, Convert):
        return result.dtype if result.dtype.is_float and result.dtype.size == 2 else None
    is_sum = reader.op.formula == "sum(x)" and v.owner is not None and v.owner.op.formula == "exp(x)"
    if is_sum or reader.op.formula in _SCALES or is_moved(reader):
        return found.get(result)
    return None
