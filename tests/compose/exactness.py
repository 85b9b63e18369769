"""What is known of the values of a program: which are the same to the bit in every right implementation.

Sums may be taken in any order and functions such as exp may be off by an ulp, so two right implementations differ,
and an op that jumps (a comparison, floor, argmax) could turn that into different elements. Here each value has a
grade, and an op takes only operands of grades that leave its result comparable:

- INTEGRAL: integers small enough that sums and products of them are exact in any order; infinities and NaN may
  be among them;
- EXACT: any numbers, the same bits in every implementation;
- ROUNDED: correct up to `eps`; no op that jumps may read them.

An op that no rule below names reads EXACT operands and gives ROUNDED results, so new ops need no entry here.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import IntEnum
from typing import Any

import numpy as np

from smelt.ir import dtypes
from smelt.ir.aval import Aval
from smelt.ir.dtypes import DType
from smelt.ir.kinds import Contraction
from smelt.ir.op import Op


class Grade(IntEnum):
    ROUNDED = 0
    EXACT = 1
    INTEGRAL = 2


@dataclass(frozen=True)
class Known:
    """What is known of a value.

    Attributes:
        bound: no finite element is larger.
        special: infinities and NaN may be among the elements.
        signed: the sign of zeros is determined; of complex numbers: none lies on an axis, where branches are cut.
        eps: how far ROUNDED elements may be off, relative to what they were computed from.
    """

    grade: Grade = Grade.INTEGRAL
    bound: float = 1.0
    special: bool = False
    signed: bool = True
    eps: float = 0.0

    @property
    def exact(self) -> bool:
        return self.grade is not Grade.ROUNDED


#: Relative errors that are never exceeded by what is right: wrong elements are far off.
_EPS = {dtypes.float16: 2e-2, dtypes.bfloat16: 1e-1, dtypes.float64: 1e-9, dtypes.complex128: 1e-9}
#: Integers up to these are exact, and sums of them too.
_INTEGERS = {dtypes.float16: 2**11, dtypes.bfloat16: 2**8, dtypes.float64: 2**53, dtypes.complex128: 2**53}


def eps_of(dtype: DType) -> float:
    return _EPS.get(dtype, 1e-3)


def integers_below(dtype: DType) -> float:
    """Up to where integers of a dtype are exact."""
    if dtype.kind == "b":
        return 1.0
    return float(np.iinfo(dtype.numpy).max) if dtype.is_integer else float(_INTEGERS.get(dtype, 2**22))


#: Elements of the result are elements of the operands.
_MOVES = ("select", "gather", "barrier", "stop_gradient", "maximum", "minimum", "clamp", "sort", "cummax", "cummin")
#: Of those, where the sign of a zero may be that of either operand.
_EITHER_ZERO = ("maximum", "minimum", "clamp", "sort", "cummax", "cummin", "reduce_max", "reduce_min", "scatter")
_ADDS = ("add", "sub", "reduce_sum", "cumsum")
_MULTIPLIES = ("mul", "reduce_prod", "cumprod")
_JUMPS_TO_INTEGERS = ("floor", "ceil", "trunc", "round", "sign", "floor_divide", "remainder")
#: Arguments of functions such as sin: beyond, errors of the argument's last bit show.
_MOST_ARGUMENT = 1e4


def known_result(op: Op, operands: Sequence[Known], avals: Sequence[Aval], attrs: dict, out: Aval) -> Known | None:
    """What is known of an op's result; None where the op must not read such operands."""
    if not operands:  # iota, small constants
        bound = float(max(out.shape, default=1) + 4)
        if bound > integers_below(out.dtype) and out.dtype.is_inexact:
            return None
        value = attrs.get("value", 0) if op.kind == "constant" else 0
        if out.dtype.is_inexact and not (math.isfinite(value) and value == int(value)):
            return Known(Grade.EXACT, bound, special=not math.isfinite(value))
        return Known(bound=min(bound, _bits(out.dtype).bound))
    if out.dtype.kind == "c" or any(a.dtype.kind == "c" for a in avals):
        return _of_complex(op, operands, avals, attrs, out)
    if op.kind == "movement" or op.name in (*_MOVES, "reduce_max", "reduce_min"):
        found = _merged(operands[:1] if op.name == "gather" else operands[op.name == "select" :])
        if _starts_from_identity(op, avals, attrs):
            found = replace(found, bound=max(found.bound, integers_below(out.dtype)), special=out.dtype.is_float)
        return replace(found, signed=False) if op.name in _EITHER_ZERO else found
    if op.name == "scatter":
        return _of_scatter(operands, avals, attrs, out)
    if op.name == "convert":
        return _of_convert(operands[0], avals[0].dtype, out.dtype)
    if op.name == "bitcast":
        if not operands[0].exact or not operands[0].signed or operands[0].special:
            return None  # which NaN it is, is not determined
        return _bits(out.dtype)
    if not out.dtype.is_float or not any(a.dtype.is_float for a in avals):
        return _of_integers(op, operands, avals, attrs, out)
    if op.name in ("neg", "abs"):
        return operands[0]
    if op.name in _ADDS:
        bound = sum(k.bound for k in operands) * _count(op, avals, attrs)
        return replace(_arithmetic(operands, bound, out), signed=False)
    if op.name in _MULTIPLIES:
        bound = math.prod(k.bound for k in operands)
        if op.name != "mul":
            count = _count(op, avals, attrs)
            if not operands[0].exact or (count > 8 and bound > 1):
                return None
            bound = max(1.0, bound) ** count
        return _arithmetic(operands, bound, out)
    if op.kind == "contraction":
        depth = _depth(op, avals, attrs)
        if any(k.special for k in operands) or not all(k.exact for k in operands):
            return None
        return replace(_arithmetic(operands, math.prod(k.bound for k in operands) * depth, out), signed=False)
    return _of_function(op, operands, attrs, out)


def _starts_from_identity(op: Op, avals: Sequence[Aval], attrs: dict) -> bool:
    """Whether a result may be the largest or smallest number, because nothing was compared yet."""
    if op.kind == "reduction":
        return not math.prod(avals[0].shape[a] for a in attrs["axes"])
    return op.kind == "scan" and not attrs["inclusive"]


def _of_function(op: Op, operands: Sequence[Known], attrs: dict, out: Aval) -> Known | None:
    rounds = op.name in _JUMPS_TO_INTEGERS and len(operands) == 1  # a zero to a zero, whatever its sign
    if not all(k.exact and k.bound <= _MOST_ARGUMENT and (k.signed or rounds) for k in operands):
        return None
    top = max(k.bound for k in operands)
    special = any(k.special for k in operands)
    if op.name in _JUMPS_TO_INTEGERS:
        if len(operands) > 1 and not all(k.grade is Grade.INTEGRAL for k in operands):
            return None  # the quotient of two reals may round to an integer that it does not reach
        return Known(Grade.INTEGRAL, top + 1, special or len(operands) > 1, signed=False)
    if op.name == "integer_power" and 0 <= attrs["exponent"] <= 4 and operands[0].grade is Grade.INTEGRAL:
        bound = max(1.0, operands[0].bound) ** attrs["exponent"]
        if bound <= integers_below(out.dtype):
            return Known(Grade.INTEGRAL, bound, special, signed=False)
    return Known(Grade.ROUNDED, math.inf, True, signed=False, eps=eps_of(out.dtype))


def _merged(operands: Sequence[Known]) -> Known:
    return Known(
        Grade(min(k.grade for k in operands)), max(k.bound for k in operands), any(k.special for k in operands),
        all(k.signed for k in operands), max(k.eps for k in operands),
    )  # fmt: skip


def _arithmetic(operands: Sequence[Known], bound: float, out: Aval) -> Known:
    found = replace(_merged(operands), bound=bound)
    if found.grade is Grade.INTEGRAL and bound <= integers_below(out.dtype):
        return found
    return replace(found, grade=Grade.ROUNDED, bound=math.inf, eps=max(found.eps, eps_of(out.dtype)))


def _count(op: Op, avals: Sequence[Aval], attrs: dict) -> int:
    """How many elements meet in one of the result."""
    if op.kind == "reduction":
        return math.prod(avals[0].shape[a] for a in attrs["axes"])
    return avals[0].shape[attrs["axis"]] if op.kind == "scan" else 1


def _depth(op: Op, avals: Sequence[Aval], attrs: dict) -> int:
    """How many products a contraction sums."""
    return math.prod(op.depth(*avals, **attrs)) if isinstance(op, Contraction) else 1


def _bits(dtype: DType) -> Known:
    if dtype.is_float:
        return Known(Grade.EXACT, math.inf, special=True)
    return Known(Grade.INTEGRAL, integers_below(dtype) + 1)


def _of_integers(op: Op, operands: Sequence[Known], avals: Sequence[Aval], attrs: dict, out: Aval) -> Known | None:
    """Integers wrap; comparisons, searches and bits want operands without doubt."""
    if not all(k.exact for k in operands):
        return None
    return _bits(out.dtype)


def _of_scatter(operands: Sequence[Known], avals: Sequence[Aval], attrs: dict, out: Aval) -> Known | None:
    x, updates = operands[:2]
    if out.dtype.is_integer or out.dtype.kind == "b":
        return _bits(out.dtype)
    if attrs["mode"] in ("set", "max", "min"):
        return replace(_merged((x, updates)), signed=attrs["mode"] == "set" and x.signed and updates.signed)
    count = max(1, avals[1].size)
    if attrs["mode"] == "add":
        return replace(_arithmetic((x, updates), x.bound + updates.bound * count, out), signed=False)
    if (count > 8 and updates.bound > 1) or not (x.exact and updates.exact):
        return None
    return replace(_arithmetic((x, updates), x.bound * max(1.0, updates.bound) ** count, out), signed=False)


def _of_convert(x: Known, source: DType, target: DType) -> Known | None:
    if target.kind == "b" or target.is_integer:
        if not x.exact:
            return None
        return replace(x, special=False, signed=True, bound=min(_bits(target).bound, x.bound + 1), grade=Grade.INTEGRAL)
    if x.grade is Grade.INTEGRAL and x.bound <= integers_below(target):
        return x
    wide = source.is_float and source.size < target.size
    if x.exact and (wide or (target.size >= 4 and source is not dtypes.float64)):
        return replace(x, grade=Grade.EXACT)
    return replace(x, grade=Grade.ROUNDED, bound=math.inf, special=True, eps=max(x.eps, eps_of(target)))


def _of_complex(op: Op, operands: Sequence[Known], avals: Sequence[Aval], attrs: dict, out: Aval) -> Known | None:
    """Complex arithmetic of small integers is exact; infinities and branch cuts are others' tests."""
    if any(k.special for k in operands):
        return None
    if op.kind in ("movement", "gather") or op.name in ("select", "stop_gradient", "neg"):
        return _merged(operands)
    if op.name in ("real", "imag", "complex"):
        return replace(_merged(operands), signed=False)
    if op.name == "scatter" and attrs["mode"] != "set":
        return None
    if op.name == "convert" and out.dtype.is_complex:
        found = _of_convert(operands[0], avals[0].dtype, dtypes.float32)
        return None if found is None or found.special else replace(found, signed=False)
    if op.name in _ADDS or op.name == "scatter":
        bound = sum(k.bound for k in operands[:2]) * _count(op, avals, attrs)
        return replace(_arithmetic(operands[:2], bound, out), signed=False)
    if op.name == "mul" or op.kind == "contraction":
        depth = _depth(op, avals, attrs)
        if not all(k.exact for k in operands):
            return None
        bound = 2 * math.prod(k.bound for k in operands) * max(depth, 1)
        return replace(_arithmetic(operands, bound, out), signed=False)
    if op.name in ("equal", "not_equal"):
        return _bits(out.dtype) if all(k.exact for k in operands) else None
    if op.kind not in ("elementwise", "library") or not all(k.exact and k.signed and k.bound <= 4 for k in operands):
        return None
    return Known(Grade.ROUNDED, math.inf, False, signed=False, eps=1e-3)


def scale_of(op: Op, operands: Sequence[float], avals: Sequence[Aval], attrs: dict, out: Any) -> float:
    """The magnitude to which errors of a ROUNDED result are relative, from that of its operands."""
    flat = np.abs(np.asarray(out, dtype=complex)).reshape(-1)
    flat = flat[np.isfinite(flat)]
    own = float(flat.max()) if flat.size else 0.0
    if not operands:
        return own
    if op.name == "mul" or op.kind == "contraction":
        depth = _depth(op, avals, attrs)
        return max(own, math.prod(operands) * math.sqrt(depth))
    count = _count(op, avals, attrs) if op.kind in ("reduction", "scan") else 1
    return max(own, sum(operands) * math.sqrt(max(count, 1)))
