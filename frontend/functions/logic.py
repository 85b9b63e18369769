"""Comparisons, logic, bits, tests for special values, and choice."""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from typing import overload

from smelt.ir import dtypes
from smelt.ir.dtypes import DType
from smelt.ir.errors import ArgumentTypeError, DTypeError, at_user_line
from smelt.ir.op import Op
from smelt.ir.op import registry as ops

from ..lazy.arguments import is_list, number
from ..lazy.arrays import (
    ArrayLike,
    StreamOrDevice,
    array,
    as_array,
    broadcast_shapes,
    broadcast_to_shape,
    convert,
    emit_elementwise,
    meeting,
    promote_operands,
    scalar_array,
)
from ..lazy.core import remembered, remembered_floats, remembered_op
from ..lazy.movement import broadcast_together
from ..lazy.operands import constant
from ..lazy.streams import check_stream
from . import reductions
from .searching import nonzero

__all__ = [
    "allclose", "array_equal", "bitwise_and", "bitwise_invert", "bitwise_left_shift", "bitwise_or",
    "bitwise_right_shift", "bitwise_xor", "equal", "greater", "greater_equal", "isclose", "isfinite", "isinf",
    "isnan", "isneginf", "isposinf", "left_shift", "less", "less_equal", "logical_and", "logical_not",
    "logical_or", "logical_xor", "not_equal", "right_shift", "where",
]  # fmt: skip

_EQUAL, _NOT_EQUAL = ops["equal"], ops["not_equal"]
_LESS, _LESS_EQUAL = ops["less"], ops["less_equal"]
_GREATER, _GREATER_EQUAL = ops["greater"], ops["greater_equal"]
_OPERATORS = {
    "equal": "eq", "not_equal": "ne", "less": "lt", "less_equal": "le", "greater": "gt", "greater_equal": "ge",
}  # fmt: skip
_AND, _OR, _NOT = ops["logical_and"], ops["logical_or"], ops["logical_not"]


def _compared(name: str, op: Op, a: ArrayLike, b: ArrayLike) -> array:
    if type(b) is int and type(a) is array and _is_beyond(b, a):
        return constant(getattr(operator, _OPERATORS[name])(0, b), dtypes.bool_, a.shape)
    if type(a) is int and type(b) is array and _is_beyond(a, b):
        return constant(getattr(operator, _OPERATORS[name])(a, 0), dtypes.bool_, b.shape)
    return _binary(name, op, a, b)


def _binary(name: str, op: Op, a: ArrayLike, b: ArrayLike) -> array:
    x, y = promote_operands(name, a, b)
    return emit_elementwise(op, x, y)


def _is_beyond(value: int, x: array) -> bool:
    """Whether the integers among which a number meets an array are all less, or all greater."""
    return x.dtype.kind in "biu" and not dtypes.promote_scalar(x.dtype, value).holds(value)


# Comparisons


@remembered_op
def equal(a: ArrayLike, b: ArrayLike, stream: StreamOrDevice = None) -> array:
    """Whether equal, as bool. NaN equals nothing.

    Args:
        a, b: arrays that broadcast against each other, compared in their common dtype; integers of Python that it
            cannot hold as well.

    >>> import smelt
    >>> smelt.equal(smelt.array([1, 2]), 2)
    array([False,  True], dtype=bool)
    """
    check_stream(stream)
    return _compared("equal", _EQUAL, a, b)


@remembered_op
def not_equal(a: ArrayLike, b: ArrayLike, stream: StreamOrDevice = None) -> array:
    """Whether different, as bool. NaN differs from everything.

    Args:
        a, b: arrays that broadcast against each other, compared in their common dtype.

    >>> import smelt
    >>> smelt.not_equal(smelt.array([1, 2]), 2)
    array([ True, False], dtype=bool)
    """
    check_stream(stream)
    return _compared("not_equal", _NOT_EQUAL, a, b)


@remembered_op
def less(a: ArrayLike, b: ArrayLike, stream: StreamOrDevice = None) -> array:
    """Whether a < b, as bool. False where either is NaN.

    >>> import smelt
    >>> smelt.less(smelt.array([1, 2]), 2)
    array([ True, False], dtype=bool)
    """
    check_stream(stream)
    return _compared("less", _LESS, a, b)


@remembered_op
def less_equal(a: ArrayLike, b: ArrayLike, stream: StreamOrDevice = None) -> array:
    """Whether a ≤ b, as bool. False where either is NaN.

    >>> import smelt
    >>> smelt.less_equal(smelt.array([2, 3]), 2)
    array([ True, False], dtype=bool)
    """
    check_stream(stream)
    return _compared("less_equal", _LESS_EQUAL, a, b)


@remembered_op
def greater(a: ArrayLike, b: ArrayLike, stream: StreamOrDevice = None) -> array:
    """Whether a > b, as bool. False where either is NaN.

    >>> import smelt
    >>> smelt.greater(smelt.array([2, 3]), 2)
    array([False,  True], dtype=bool)
    """
    check_stream(stream)
    return _compared("greater", _GREATER, a, b)


@remembered_op
def greater_equal(a: ArrayLike, b: ArrayLike, stream: StreamOrDevice = None) -> array:
    """Whether a ≥ b, as bool. False where either is NaN.

    >>> import smelt
    >>> smelt.greater_equal(smelt.array([1, 2]), 2)
    array([False,  True], dtype=bool)
    """
    check_stream(stream)
    return _compared("greater_equal", _GREATER_EQUAL, a, b)


# Logic on truth values: an element is true unless it is zero


def _logical(name: str, op: Op, a: ArrayLike, b: ArrayLike) -> array:
    x, y = convert(as_array(a), dtypes.bool_), convert(as_array(b), dtypes.bool_)
    shape = broadcast_shapes(name, x.shape, y.shape)
    return emit_elementwise(op, broadcast_to_shape(x, shape), broadcast_to_shape(y, shape))


@remembered
def logical_and(a: ArrayLike, b: ArrayLike, /, *, stream: StreamOrDevice = None) -> array:
    """Whether both are true, as bool.

    Args:
        a, b: arrays that broadcast against each other; what is not zero is true.

    >>> import smelt
    >>> smelt.logical_and(smelt.array([0, 1]), smelt.array([2.0, 3.0]))
    array([False,  True], dtype=bool)
    """
    check_stream(stream)
    return _logical("logical_and", _AND, a, b)


@remembered
def logical_or(a: ArrayLike, b: ArrayLike, /, *, stream: StreamOrDevice = None) -> array:
    """Whether either is true, as bool.

    Args:
        a, b: arrays that broadcast against each other; what is not zero is true.

    >>> import smelt
    >>> smelt.logical_or(smelt.array([0, 1]), False)
    array([False,  True], dtype=bool)
    """
    check_stream(stream)
    return _logical("logical_or", _OR, a, b)


@remembered
def logical_xor(a: ArrayLike, b: ArrayLike, /, *, stream: StreamOrDevice = None) -> array:
    """Whether exactly one is true, as bool.

    Args:
        a, b: arrays that broadcast against each other; what is not zero is true.

    >>> import smelt
    >>> smelt.logical_xor(smelt.array([0, 1]), True)
    array([ True, False], dtype=bool)
    """
    check_stream(stream)
    return _logical("logical_xor", _NOT_EQUAL, a, b)


@remembered_op
def logical_not(a: ArrayLike, /, *, stream: StreamOrDevice = None) -> array:
    """Whether not true, as bool.

    >>> import smelt
    >>> smelt.logical_not(smelt.array([0.0, 1.5]))
    array([ True, False], dtype=bool)
    """
    check_stream(stream)
    return emit_elementwise(_NOT, convert(as_array(a), dtypes.bool_))


# Bits of integers and bools; floats raise DTypeError


@remembered
def bitwise_and(a: ArrayLike, b: ArrayLike, stream: StreamOrDevice = None) -> array:
    """The bits set in both.

    Args:
        a, b: integers or bools that broadcast against each other.

    Raises:
        DTypeError: other dtypes.

    >>> import smelt
    >>> smelt.bitwise_and(smelt.array([6, 5]), 3)
    array([2, 1], dtype=int32)
    """
    check_stream(stream)
    return _binary("bitwise_and", ops["bitwise_and"], a, b)


@remembered
def bitwise_or(a: ArrayLike, b: ArrayLike, stream: StreamOrDevice = None) -> array:
    """The bits set in either.

    Args:
        a, b: integers or bools that broadcast against each other.

    Raises:
        DTypeError: other dtypes.

    >>> import smelt
    >>> smelt.bitwise_or(smelt.array([6, 5]), 3)
    array([7, 7], dtype=int32)
    """
    check_stream(stream)
    return _binary("bitwise_or", ops["bitwise_or"], a, b)


@remembered
def bitwise_xor(a: ArrayLike, b: ArrayLike, stream: StreamOrDevice = None) -> array:
    """The bits set in exactly one.

    Args:
        a, b: integers or bools that broadcast against each other.

    Raises:
        DTypeError: other dtypes.

    >>> import smelt
    >>> smelt.bitwise_xor(smelt.array([6, 5]), 3)
    array([5, 6], dtype=int32)
    """
    check_stream(stream)
    return _binary("bitwise_xor", ops["bitwise_xor"], a, b)


@remembered_op
def bitwise_invert(a: ArrayLike, stream: StreamOrDevice = None) -> array:
    """All bits flipped. For bools, logical not.

    >>> import smelt
    >>> smelt.bitwise_invert(smelt.array([0, 5]))
    array([-1, -6], dtype=int32)
    """
    check_stream(stream)
    return emit_elementwise(ops["bitwise_invert"], as_array(a))


@remembered
def left_shift(a: ArrayLike, b: ArrayLike, stream: StreamOrDevice = None) -> array:
    """a · 2ᵇ, wrapped; 0 where b is negative or not below the number of bits. Bools become uint8.

    >>> import smelt
    >>> smelt.left_shift(smelt.array([1, 3]), 2)
    array([ 4, 12], dtype=int32)
    """
    check_stream(stream)
    return _shift("left_shift", a, b)


@remembered
def right_shift(a: ArrayLike, b: ArrayLike, stream: StreamOrDevice = None) -> array:
    """⌊a / 2ᵇ⌋; only the sign is left where b is negative or not below the number of bits.

    >>> import smelt
    >>> smelt.right_shift(smelt.array([5, -5]), 1)
    array([ 2, -3], dtype=int32)
    """
    check_stream(stream)
    return _shift("right_shift", a, b)


def _shift(name: str, a: ArrayLike, b: ArrayLike) -> array:
    x, y = promote_operands(name, a, b)
    if x.dtype is dtypes.bool_:
        x, y = convert(x, dtypes.uint8), convert(y, dtypes.uint8)
    return emit_elementwise(ops[name], x, y)


bitwise_left_shift, bitwise_right_shift = left_shift, right_shift


# Special values


@remembered_op
def isnan(a: ArrayLike, stream: StreamOrDevice = None) -> array:
    """Whether NaN (of complex numbers: in either part), as bool.

    >>> import smelt
    >>> smelt.isnan(smelt.array([float("nan"), 1.0]))
    array([ True, False], dtype=bool)
    """
    check_stream(stream)
    x = as_array(a)
    if not x.dtype.is_inexact:
        return constant(False, dtypes.bool_, x.shape)
    return emit_elementwise(_NOT_EQUAL, x, x)


@remembered
def isinf(a: ArrayLike, stream: StreamOrDevice = None) -> array:
    """Whether inf or -inf (of complex numbers: in either part), as bool.

    >>> import smelt
    >>> smelt.isinf(smelt.array([float("-inf"), 1.0]))
    array([ True, False], dtype=bool)
    """
    check_stream(stream)
    x = as_array(a)
    if x.dtype.is_complex:
        return _either_part(isinf, _OR, x)
    if not x.dtype.is_float:
        return constant(False, dtypes.bool_, x.shape)
    return emit_elementwise(_EQUAL, emit_elementwise(ops["abs"], x), constant(math.inf, x.dtype, x.shape))


@remembered
def isfinite(a: ArrayLike, stream: StreamOrDevice = None) -> array:
    """Whether neither infinite nor NaN (of complex numbers: in both parts), as bool.

    >>> import smelt
    >>> smelt.isfinite(smelt.array([float("inf"), float("nan"), 1.0]))
    array([False, False,  True], dtype=bool)
    """
    check_stream(stream)
    x = as_array(a)
    if x.dtype.is_complex:
        return _either_part(isfinite, _AND, x)
    if not x.dtype.is_float:
        return constant(True, dtypes.bool_, x.shape)
    return emit_elementwise(_LESS, emit_elementwise(ops["abs"], x), constant(math.inf, x.dtype, x.shape))


@remembered
def isposinf(a: ArrayLike, stream: StreamOrDevice = None) -> array:
    """Whether inf, as bool.

    >>> import smelt
    >>> smelt.isposinf(smelt.array([float("inf"), float("-inf")]))
    array([ True, False], dtype=bool)
    """
    check_stream(stream)
    return _is_value(a, math.inf)


@remembered
def isneginf(a: ArrayLike, stream: StreamOrDevice = None) -> array:
    """Whether -inf, as bool.

    >>> import smelt
    >>> smelt.isneginf(smelt.array([float("inf"), float("-inf")]))
    array([False,  True], dtype=bool)
    """
    check_stream(stream)
    return _is_value(a, -math.inf)


def _is_value(a: ArrayLike, value: float) -> array:
    x = as_array(a)
    if not x.dtype.is_inexact:
        return constant(False, dtypes.bool_, x.shape)
    return emit_elementwise(_EQUAL, x, constant(value, x.dtype, x.shape))


def _either_part(test, combine: Op, x: array) -> array:
    return emit_elementwise(combine, *(test(emit_elementwise(ops[part], x)) for part in ("real", "imag")))


# Equality of arrays


def _tolerance(what: str, given: ArrayLike, dtype: DType) -> array:
    """Python's numbers, or others for each element."""
    if not is_list(given) and not (isinstance(given, array) and given.ndim):
        return scalar_array(number("isclose", what, given), dtype)
    found = as_array(given, dtype)
    if found.dtype.is_complex:
        raise DTypeError(at_user_line(f"smelt.isclose: {what} must hold real numbers, is {found.aval}"))
    return convert(found, dtype)


@remembered
def isclose(
    a: ArrayLike,
    b: ArrayLike,
    /,
    rtol: ArrayLike = 1e-05,
    atol: ArrayLike = 1e-08,
    *,
    equal_nan: bool = False,
    stream: StreamOrDevice = None,
) -> array:
    """Whether |a - b| ≤ atol + rtol·|b|, as bool. Infinities are close to themselves only.

    Integers are compared as float32. NaN is close to nothing, or to NaN if `equal_nan`. Tolerances may be arrays, which
    broadcast with the others.

    >>> import smelt
    >>> smelt.isclose(smelt.array([1.0, 2.0]), smelt.array([1.000001, 2.1]))
    array([ True, False], dtype=bool)
    """
    check_stream(stream)
    x, y = promote_operands("isclose", a, b, floating=True)
    if x.dtype.size == 2:
        x, y = convert(x, dtypes.float32), convert(y, dtypes.float32)
    size = emit_elementwise(ops["abs"], y)
    gap = emit_elementwise(ops["abs"], emit_elementwise(ops["sub"], x, y))
    relative, absolute = (_tolerance(what, v, size.dtype) for what, v in (("rtol", rtol), ("atol", atol)))
    x, y, size, gap, relative, absolute = broadcast_together("isclose", [x, y, size, gap, relative, absolute])
    bound = emit_elementwise(ops["add"], absolute, emit_elementwise(ops["mul"], relative, size))
    finite = emit_elementwise(_AND, isfinite(x), isfinite(y))
    near = emit_elementwise(_AND, emit_elementwise(_LESS_EQUAL, gap, bound), finite)
    found = emit_elementwise(_OR, near, emit_elementwise(_EQUAL, x, y))
    if equal_nan:
        found = emit_elementwise(_OR, found, emit_elementwise(_AND, isnan(x), isnan(y)))
    return found


@remembered
def allclose(
    a: ArrayLike,
    b: ArrayLike,
    /,
    rtol: ArrayLike = 1e-05,
    atol: ArrayLike = 1e-08,
    *,
    equal_nan: bool = False,
    stream: StreamOrDevice = None,
) -> array:
    """Whether all elements are close, as a bool scalar; see `isclose`.

    >>> import smelt
    >>> smelt.allclose(smelt.array([1.0, 2.0]), smelt.array([1.000001, 2.1]))
    array(False, dtype=bool)
    """
    check_stream(stream)
    return reductions.all(isclose(a, b, rtol, atol, equal_nan=equal_nan))


@remembered
def array_equal(a: ArrayLike, b: ArrayLike, equal_nan: bool = False, stream: StreamOrDevice = None) -> array:
    """Whether a and b have the same shape and elements, as a bool scalar. Dtypes may differ.

    Args:
        equal_nan: whether a NaN equals a NaN.

    >>> import smelt
    >>> smelt.array_equal(smelt.array([1, 2]), smelt.array([1.0, 2.0]))
    array(True, dtype=bool)
    """
    check_stream(stream)
    x, y = as_array(a), as_array(b)
    if x.shape != y.shape:
        return constant(False, dtypes.bool_)
    common = dtypes.promote(x.dtype, y.dtype)
    x, y = meeting(a, x, common), meeting(b, y, common)
    same = emit_elementwise(_EQUAL, x, y)
    if equal_nan and x.dtype.is_inexact:
        same = emit_elementwise(_OR, same, emit_elementwise(_AND, isnan(x), isnan(y)))
    return reductions.all(same)


# Choice


@overload
def where(condition: ArrayLike, x: ArrayLike, y: ArrayLike, /, *, stream: StreamOrDevice = None) -> array: ...


@overload
def where(
    condition: ArrayLike, /, *, size: int | None = None, fill_value: int | Sequence[int] = 0,
    stream: StreamOrDevice = None,
) -> tuple[array, ...]: ...  # fmt: skip


@remembered_floats
def where(
    condition: ArrayLike, x: ArrayLike | None = None, y: ArrayLike | None = None, /, *, size: int | None = None,
    fill_value: int | Sequence[int] = 0, stream: StreamOrDevice = None,
) -> array | tuple[array, ...]:  # fmt: skip
    """x where the condition is true (not zero), else y. The three broadcast; x and y promote.

    Without x and y: where the condition is true, as `smelt.nonzero`, which evaluates it.

    Args:
        size, fill_value: without x and y, as of `smelt.nonzero`.

    Raises:
        ArgumentTypeError: one of x and y without the other, `size` beside them.

    >>> import smelt
    >>> smelt.where(smelt.array([True, False]), smelt.array([1, 2]), 0.5)
    array([1, 0.5], dtype=float32)
    """
    check_stream(stream)
    test = convert(as_array(condition), dtypes.bool_)
    if x is None or y is None:
        if x is not None or y is not None:
            raise ArgumentTypeError(at_user_line("smelt.where: takes the condition alone, or both x and y"))
        return nonzero(test, size=size, fill_value=fill_value)
    if size is not None:
        raise ArgumentTypeError(at_user_line("smelt.where: size is a number of indices, of a condition alone"))
    a, b = promote_operands("where", x, y)
    if test.shape != a.shape:
        shape = broadcast_shapes("where", test.shape, a.shape)
        test, a, b = (broadcast_to_shape(v, shape) for v in (test, a, b))
    return emit_elementwise(ops["select"], test, a, b)
