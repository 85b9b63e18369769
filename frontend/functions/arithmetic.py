"""Arithmetic under MLX's names; `operands` says how dtypes and shapes meet."""

from __future__ import annotations

import math
from typing import Any

from smelt.ir import dtypes
from smelt.ir.errors import AttributeValueError, DTypeError, at_user_line
from smelt.ir.op import registry as ops
from smelt.ir.ops.reduce import highest, lowest

from ..lazy.arrays import (
    ArrayLike,
    StreamOrDevice,
    array,
    as_array,
    convert,
    emit,
    emit_elementwise,
    promote_operands,
    wrap,
)
from ..lazy.core import remembered, remembered_floats, remembered_op
from ..lazy.movement import select
from ..lazy.operands import apply_binary, apply_floating, apply_unary, as_floating, constant, is_scalar, promote_all
from ..lazy.streams import check_stream

__all__ = [
    "abs", "add", "clip", "divide", "divmod", "floor_divide", "maximum", "minimum", "multiply", "negative",
    "positive", "pow", "power", "reciprocal", "remainder", "rsqrt", "sign", "sqrt", "square", "subtract",
]  # fmt: skip

_ADD, _SUB, _MUL, _DIV = ops["add"], ops["sub"], ops["mul"], ops["div"]
_FLOOR_DIVIDE, _REMAINDER = ops["floor_divide"], ops["remainder"]
_MAXIMUM, _MINIMUM, _CLAMP = ops["maximum"], ops["minimum"], ops["clamp"]
_NEG, _ABS, _SIGN = ops["neg"], ops["abs"], ops["sign"]
_AND, _OR, _NOT, _XOR = ops["logical_and"], ops["logical_or"], ops["logical_not"], ops["not_equal"]


@remembered_op
def add(a: ArrayLike, b: ArrayLike, stream: StreamOrDevice = None) -> array:
    """Sum, a + b. For bools, logical or.

    >>> import smelt
    >>> smelt.add(smelt.array([1.0, 2.0]), 1)
    array([2, 3], dtype=float32)
    """
    check_stream(stream)
    x, y = promote_operands("add", a, b)
    return emit_elementwise(_ADD, x, y)


@remembered_op
def subtract(a: ArrayLike, b: ArrayLike, stream: StreamOrDevice = None) -> array:
    """Difference, a - b. Unsigned integers wrap; of bools, whether they differ.

    >>> import smelt
    >>> smelt.subtract(smelt.array([1, 2]), smelt.array(5))
    array([-4, -3], dtype=int32)
    """
    check_stream(stream)
    x, y = promote_operands("subtract", a, b)
    return emit_elementwise(_XOR if x.dtype is dtypes.bool_ else _SUB, x, y)


@remembered_op
def multiply(a: ArrayLike, b: ArrayLike, stream: StreamOrDevice = None) -> array:
    """Product, a · b. For bools, logical and.

    >>> import smelt
    >>> smelt.multiply(smelt.array([1, 2]), 0.5)
    array([0.5, 1], dtype=float32)
    """
    check_stream(stream)
    x, y = promote_operands("multiply", a, b)
    return emit_elementwise(_MUL, x, y)


@remembered_op
def divide(a: ArrayLike, b: ArrayLike, stream: StreamOrDevice = None) -> array:
    """Quotient, a / b. Integers are divided as float32.

    >>> import smelt
    >>> smelt.divide(smelt.array([1, 2]), 4)
    array([0.25, 0.5], dtype=float32)
    """
    check_stream(stream)
    return apply_binary("divide", _DIV, a, b, floating=True)


@remembered_op
def floor_divide(a: ArrayLike, b: ArrayLike, stream: StreamOrDevice = None) -> array:
    """Quotient rounded towards minus infinity, ⌊a / b⌋. An integer divided by zero gives 0. For bools, logical and.

    Of floats it is the exact quotient that is rounded, as in NumPy, so that it goes with `remainder`: 1 // 0.1 is 9,
    where MLX, which rounds the quotient before, says 10. As in MLX, -3 // inf is -0, where Python and NumPy say -1.

    >>> import smelt
    >>> smelt.floor_divide(smelt.array([7, -7]), 2)
    array([ 3, -4], dtype=int32)
    """
    check_stream(stream)
    return _quotient(*promote_operands("floor_divide", a, b))


def _quotient(x: array, y: array) -> array:
    return emit_elementwise(_AND if x.dtype is dtypes.bool_ else _FLOOR_DIVIDE, x, y)


def _remainder(x: array, y: array) -> array:
    """Of bools, as of integers: True where True is divided by False."""
    if x.dtype is dtypes.bool_:
        return emit_elementwise(_AND, x, emit_elementwise(_NOT, y))
    return emit_elementwise(_REMAINDER, x, y)


@remembered_op
def remainder(a: ArrayLike, b: ArrayLike, stream: StreamOrDevice = None) -> array:
    """Remainder with the sign of the divisor, a - b·⌊a / b⌋. An integer modulo zero gives 0.

    For bools, a and not b, as in MLX.

    >>> import smelt
    >>> smelt.remainder(smelt.array([7, -7]), 4)
    array([3, 1], dtype=int32)
    """
    check_stream(stream)
    return _remainder(*promote_operands("remainder", a, b))


@remembered
def divmod(a: ArrayLike, b: ArrayLike, stream: StreamOrDevice = None) -> tuple[array, array]:
    """``(floor_divide(a, b), remainder(a, b))``.

    Returns:
        Two arrays of their common shape and dtype: the floored quotients and the remainders, which have the sign of b.

    >>> import smelt
    >>> smelt.divmod(smelt.array([7, -7]), 4)
    (array([ 1, -2], dtype=int32), array([3, 1], dtype=int32))
    """
    check_stream(stream)
    x, y = promote_operands("divmod", a, b)
    return _quotient(x, y), _remainder(x, y)


@remembered_op
def maximum(a: ArrayLike, b: ArrayLike, /, *, stream: StreamOrDevice = None) -> array:
    """The larger of a and b; NaN if either is NaN. The derivative of equal operands is that of b, as in MLX.

    >>> import smelt
    >>> smelt.maximum(smelt.array([-1.0, 2.0]), 0)
    array([0, 2], dtype=float32)
    """
    check_stream(stream)
    return apply_binary("maximum", _MAXIMUM, a, b)


@remembered_op
def minimum(a: ArrayLike, b: ArrayLike, /, *, stream: StreamOrDevice = None) -> array:
    """The smaller of a and b; NaN if either is NaN. The derivative of equal operands is that of b, as in MLX.

    >>> import smelt
    >>> smelt.minimum(smelt.array([-1.0, 2.0]), 0)
    array([-1, 0], dtype=float32)
    """
    check_stream(stream)
    return apply_binary("minimum", _MINIMUM, a, b)


@remembered_floats
def clip(
    a: ArrayLike,
    /,
    a_min: ArrayLike | None = None,
    a_max: ArrayLike | None = None,
    *,
    min: ArrayLike | None = None,
    max: ArrayLike | None = None,
    stream: StreamOrDevice = None,
) -> array:
    """a limited to [a_min, a_max]: min(max(a, a_min), a_max). At a limit the derivative is the limit's, as in MLX.

    Args:
        a_min, a_max: numbers, or arrays that broadcast with `a`. None is no bound; without any `a` is what it was.
        min, max: the same by the names that the array API standard has for them.

    Raises:
        AttributeValueError: a bound by both of its names. DTypeError: `a` is of bools or complex.

    >>> import smelt
    >>> smelt.clip(smelt.array([-2.0, 0.5, 2.0]), -1, 1)
    array([-1, 0.5, 1], dtype=float32)
    """
    check_stream(stream)
    if (a_min is not None and min is not None) or (a_max is not None and max is not None):
        raise AttributeValueError(at_user_line("smelt.clip: a_min and min, as a_max and max, are one bound; give one"))
    a_min, a_max = min if a_min is None else a_min, max if a_max is None else a_max
    if a_min is None and a_max is None:
        return wrap(as_array(a)._ref)
    if a_min is None:
        assert a_max is not None
        x, high = promote_all("clip", a, a_max)
        low = None
    elif a_max is None:
        x, low = promote_all("clip", a, a_min)
        high = None
    else:
        x, low, high = promote_all("clip", a, a_min, a_max)
    dtype = x.dtype
    if dtype is dtypes.bool_:
        raise DTypeError(at_user_line(f"smelt.clip: a is {x.aval}, must be of numbers"))
    low = constant(lowest(dtype), dtype, x.shape) if low is None else low
    high = constant(highest(dtype), dtype, x.shape) if high is None else high
    return emit_elementwise(_CLAMP, low, x, high)


@remembered_op
def negative(a: ArrayLike, /, *, stream: StreamOrDevice = None) -> array:
    """-a. Unsigned integers wrap; bools raise DTypeError (use `logical_not`).

    >>> import smelt
    >>> smelt.negative(smelt.array([1, -2]))
    array([-1,  2], dtype=int32)
    """
    check_stream(stream)
    return apply_unary(_NEG, a)


@remembered
def positive(a: ArrayLike, /, *, stream: StreamOrDevice = None) -> array:
    """a as it is.

    >>> import smelt
    >>> smelt.positive(smelt.array([1, -2]))
    array([ 1, -2], dtype=int32)
    """
    check_stream(stream)
    return wrap(as_array(a)._ref)


@remembered_op
def abs(a: ArrayLike, /, *, stream: StreamOrDevice = None) -> array:
    """Absolute value, |a|; of complex numbers the modulus, as float32.

    >>> import smelt
    >>> smelt.abs(smelt.array([-1.5, 2.0]))
    array([1.5, 2], dtype=float32)
    """
    check_stream(stream)
    x = as_array(a)
    return wrap(x._ref) if x.dtype.kind in "bu" else emit_elementwise(_ABS, x)


@remembered
def sign(a: ArrayLike, /, *, stream: StreamOrDevice = None) -> array:
    """-1, 0 or 1 by the sign of a; NaN for NaN. Of complex numbers a / |a|, and 0 for 0.

    Where one part of a complex number is infinite it is all that counts, as in NumPy; where both are, NaN.

    >>> import smelt
    >>> smelt.sign(smelt.array([-3, 0, 5]))
    array([-1,  0,  1], dtype=int32)
    """
    check_stream(stream)
    x = as_array(a)
    if x.dtype.kind == "b":
        return wrap(x._ref)
    if not x.dtype.is_complex:
        return emit_elementwise(_SIGN, x)
    x = _of_usual_size(x)
    modulus = emit_elementwise(_ABS, x)
    zero = emit_elementwise(ops["equal"], modulus, constant(0, modulus.dtype, x.shape))
    safe = emit_elementwise(ops["select"], zero, constant(1, modulus.dtype, x.shape), modulus)
    return emit_elementwise(_DIV, x, convert(safe, x.dtype))


def _of_usual_size(z: array) -> array:
    """Complex numbers of the same directions whose moduli neither overflow nor lose digits; 0 stays 0."""
    parts = [emit_elementwise(ops[name], z) for name in ("real", "imag")]
    sizes = [emit_elementwise(_ABS, part) for part in parts]
    largest = emit_elementwise(_MAXIMUM, *sizes)

    def number(value: float) -> array:
        return constant(value, largest.dtype, z.shape)

    small = select(emit_elementwise(ops["greater"], largest, number(0)), number(2.0**64), number(1))
    factor = select(emit_elementwise(ops["greater"], largest, number(1)), number(0.25), small)
    infinite = emit_elementwise(ops["equal"], largest, number(math.inf))
    alone = emit_elementwise(_AND, infinite, emit_elementwise(_XOR, *sizes))
    scaled = []
    for part, size in zip(parts, sizes):
        axis = select(emit_elementwise(ops["equal"], size, largest), emit_elementwise(_SIGN, part), number(0))
        scaled.append(select(alone, axis, emit_elementwise(_MUL, part, factor)))
    return emit_elementwise(ops["complex"], *scaled)


@remembered_op
def square(a: ArrayLike, /, *, stream: StreamOrDevice = None) -> array:
    """a².

    >>> import smelt
    >>> smelt.square(smelt.array([1.5, -2.0]))
    array([2.25, 4], dtype=float32)
    """
    check_stream(stream)
    x = as_array(a)
    return emit_elementwise(_MUL, x, x)


_SQRT, _RSQRT = ops["sqrt"], ops["rsqrt"]


@remembered_op
def sqrt(a: ArrayLike, /, *, stream: StreamOrDevice = None) -> array:
    """Square root; NaN below zero.

    >>> import smelt
    >>> smelt.sqrt(smelt.array([4, 9]))
    array([2, 3], dtype=float32)
    """
    check_stream(stream)
    return apply_floating(_SQRT, a)


@remembered_op
def rsqrt(a: ArrayLike, /, *, stream: StreamOrDevice = None) -> array:
    """1 / √a; inf at zero, NaN below.

    >>> import smelt
    >>> smelt.rsqrt(smelt.array([4.0, 16.0]))
    array([0.5, 0.25], dtype=float32)
    """
    check_stream(stream)
    return apply_floating(_RSQRT, a)


@remembered
def reciprocal(a: ArrayLike, /, *, stream: StreamOrDevice = None) -> array:
    """1 / a.

    >>> import smelt
    >>> smelt.reciprocal(smelt.array([2, 4]))
    array([0.5, 0.25], dtype=float32)
    """
    check_stream(stream)
    x = as_floating(a)
    return emit_elementwise(_DIV, constant(1, x.dtype, x.shape), x)


_POWER, _INTEGER_POWER = ops["power"], ops["integer_power"]
#: Python exponents up to this are multiplied out: more costs accuracy that `power` has.
_MAX_EXPONENT = 8


@remembered
def power(a: ArrayLike, b: ArrayLike, /, *, stream: StreamOrDevice = None) -> array:
    """a raised to b. Small Python integers and ±0.5 as exponents become products and square roots.

    Negative powers of integers are 0, but of 1 and -1; 0⁰ is 1. For bools, a or not b.

    >>> import smelt
    >>> smelt.power(smelt.array([2.0, 3.0]), 2)
    array([4, 9], dtype=float32)
    """
    check_stream(stream)
    exponent: Any = b
    if type(b) in (int, float) and not is_scalar(a):
        x = as_array(a)
        found = _constant_power(convert(x, dtypes.promote_scalar(x.dtype, exponent)), exponent)
        if found is not None:
            return found
    x, y = promote_operands("power", a, b)
    if x.dtype is dtypes.bool_:
        return emit_elementwise(_OR, x, emit_elementwise(_NOT, y))
    return emit_elementwise(_POWER, x, y)


def _constant_power(x: array, exponent: int | float) -> array | None:
    """x raised to a Python number that has a cheap form, else None."""
    if x.dtype.is_inexact and exponent == 0.5:
        return emit_elementwise(_SQRT, x)
    if x.dtype.is_inexact and exponent == -0.5:
        return emit_elementwise(_RSQRT, x)
    if not (float(exponent).is_integer() if type(exponent) is float else True):
        return None
    n = int(exponent)
    if not (0 if x.dtype.is_integer else -_MAX_EXPONENT) <= n <= _MAX_EXPONENT:
        return None
    if n == 1:
        return wrap(x._ref)
    if n == 2:
        return emit_elementwise(_MUL, x, x)
    return emit(_INTEGER_POWER, (x,), {"exponent": n})


pow = power
