"""The parts of floating-point numbers: signs, exponents, neighbours; and what takes care of their range."""

from __future__ import annotations

import math

from smelt.ir import dtypes
from smelt.ir.dtypes import DType
from smelt.ir.errors import DTypeError, at_user_line
from smelt.ir.op import registry as ops

from ..lazy.arrays import (
    ArrayLike,
    StreamOrDevice,
    array,
    as_array,
    broadcast_shapes,
    broadcast_to_shape,
    convert,
    emit,
    emit_elementwise,
    promote_operands,
)
from ..lazy.core import remembered, remembered_numbers
from ..lazy.movement import filled, select
from ..lazy.operands import as_floating, constant
from ..lazy.streams import check_stream
from .arithmetic import abs as absolute
from .arithmetic import add, maximum, minimum, multiply, negative, subtract
from .logic import equal, greater, isfinite, isinf, isnan, less, logical_or
from .moments import root_of_squares
from .reductions import widened

__all__ = ["copysign", "frexp", "hypot", "ldexp", "nextafter", "signbit"]

_UNSIGNED = {d.size: d for d in dtypes.UNSIGNED}
#: Bits of the fraction, and the exponent's bias.
_FRACTION = {dtypes.float16: 10, dtypes.bfloat16: 7, dtypes.float32: 23, dtypes.float64: 52}
_BIAS = {dtypes.float16: 15, dtypes.bfloat16: 127, dtypes.float32: 127, dtypes.float64: 1023}


def _bits(x: array) -> array:
    return emit(ops["bitcast"], (x,), {"dtype": _UNSIGNED[x.dtype.size]})


def _number(bits: array, dtype: DType) -> array:
    return emit(ops["bitcast"], (bits,), {"dtype": dtype})


def _real(name: str, *xs: array) -> None:
    for x in xs:
        if x.dtype.is_complex:
            raise DTypeError(at_user_line(f"smelt.{name}: complex numbers have no sign; a {x.aval}"))


@remembered
def signbit(x: ArrayLike, /, *, stream: StreamOrDevice = None) -> array:
    """Whether the sign is minus, as bool: also that of -0.0 and of NaN.

    Raises:
        DTypeError: complex numbers.

    >>> import smelt
    >>> smelt.signbit(smelt.array([-0.0, 0.0, -3.0]))
    array([ True, False,  True], dtype=bool)
    """
    check_stream(stream)
    given = as_array(x)
    _real("signbit", given)
    if not given.dtype.is_float:
        signed = given.dtype.kind == "i"
        return less(given, 0) if signed else filled(given.shape, False, dtypes.bool_)
    bits = _bits(given)
    return greater(bits, constant((1 << given.dtype.bits - 1) - 1, bits.dtype, bits.shape))


@remembered_numbers
def copysign(x1: ArrayLike, x2: ArrayLike, /, *, stream: StreamOrDevice = None) -> array:
    """x1 with the sign of x2; that of a NaN and of zero counts. Integers give float32.

    >>> import smelt
    >>> smelt.copysign(smelt.array([1.0, -2.0]), smelt.array([-0.0, 3.0]))
    array([-1, 2], dtype=float32)
    """
    check_stream(stream)
    x, y = promote_operands("copysign", x1, x2, floating=True)
    _real("copysign", x)
    size = absolute(x)
    return select(signbit(y), negative(size), size)


@remembered_numbers
def nextafter(x1: ArrayLike, x2: ArrayLike, /, *, stream: StreamOrDevice = None) -> array:
    """The number next to x1 in the direction of x2; x2 where both are equal. Integers give float32.

    The derivative by x1 is 1, as that of rounding to a narrower dtype is, and by x2 it is 0.

    >>> import smelt
    >>> smelt.nextafter(smelt.array(1.0), 2.0) == 1 + smelt.finfo(smelt.float32).eps
    array(True, dtype=bool)
    """
    check_stream(stream)
    x, y = promote_operands("nextafter", x1, x2, floating=True)
    _real("nextafter", x)
    bits = _bits(x)
    one = constant(1, bits.dtype, bits.shape)
    away = equal(greater(y, x), greater(x, 0))  # from zero
    near = select(away, add(bits, one), subtract(bits, one))
    least = select(signbit(y), constant((1 << x.dtype.bits - 1) + 1, bits.dtype, bits.shape), one)
    found = _number(select(equal(x, 0), least, near), x.dtype)
    found = select(equal(x, y), y, found)
    found = select(logical_or(isnan(x), isnan(y)), constant(math.nan, x.dtype, x.shape), found)
    moved = subtract(emit_elementwise(ops["stop_gradient"], x), x)
    moved = select(isfinite(x), moved, constant(0, x.dtype, x.shape))
    return subtract(emit_elementwise(ops["stop_gradient"], found), moved)  # less 0, which keeps the sign of a zero


@remembered_numbers
def hypot(x1: ArrayLike, x2: ArrayLike, /, *, stream: StreamOrDevice = None) -> array:
    """√(x1² + x2²) without overflow; infinite where one is infinite. Integers give float32.

    The derivative is x1 / hypot and x2 / hypot, and 0 where both are 0.

    Raises:
        DTypeError: complex numbers.

    >>> import smelt
    >>> smelt.hypot(smelt.array([3.0, 3e30]), smelt.array([4.0, 4e30]))
    array([5, 5e+30], dtype=float32)
    """
    check_stream(stream)
    x, y = promote_operands("hypot", x1, x2, floating=True)
    _real("hypot", x)
    dtype = x.dtype
    x, y = widened(x), widened(y)
    high, shrink, low, stretch = (500, 530, -400, -700) if x.dtype is dtypes.float64 else (60, 68, -40, -96)
    top = emit_elementwise(ops["stop_gradient"], maximum(absolute(x), absolute(y)))
    # Powers of two, by which numbers are multiplied exactly, for what would overflow or vanish as a square.
    shrunk, stretched = greater(top, 2.0**high), less(top, 2.0**low)

    def power(sign: int) -> array:
        one, many, few = (constant(2.0**n, x.dtype, x.shape) for n in (0, sign * shrink, sign * stretch))
        return select(shrunk, many, select(stretched, few, one))

    infinite = logical_or(isinf(x), isinf(y))
    zero = constant(0.0, x.dtype, x.shape)
    x, y = (multiply(select(infinite, zero, v), power(-1)) for v in (x, y))
    found = multiply(root_of_squares(add(multiply(x, x), multiply(y, y))), power(1))
    return convert(select(infinite, constant(math.inf, x.dtype, x.shape), found), dtype)


def _power_of_two(exponent: array, dtype: DType) -> array:
    """2 to the exponent, which lies in the range of normal numbers."""
    bits = _UNSIGNED[dtype.size]
    biased = convert(add(exponent, constant(_BIAS[dtype], exponent.dtype, exponent.shape)), bits)
    shift = constant(_FRACTION[dtype], bits, biased.shape)
    return _number(emit_elementwise(ops["left_shift"], biased, shift), dtype)


def _scaled(x: array, exponent: array) -> array:
    """x · 2ⁿ, rounded once. x is float32 or float64, n int32."""
    low, high = (constant(v, exponent.dtype, exponent.shape) for v in (1 - _BIAS[x.dtype], _BIAS[x.dtype]))
    factors, rest = [], exponent
    for _ in range(3):  # from the least to the greatest finite number
        step = maximum(minimum(rest, high), low)
        factors.append(_power_of_two(step, x.dtype))
        rest = subtract(rest, step)
    for factor in reversed(factors):  # what may lose bits comes last
        x = multiply(x, emit_elementwise(ops["stop_gradient"], factor))
    return x


@remembered
def ldexp(x1: ArrayLike, x2: ArrayLike, /, *, stream: StreamOrDevice = None) -> array:
    """x1 · 2 to the power of x2, rounded once. Integers x1 give float32.

    Args:
        x1: not complex. x2: integers; they broadcast.

    Raises:
        DTypeError: other dtypes.

    >>> import smelt
    >>> smelt.ldexp(smelt.array([1.0, 0.75]), smelt.array([3, 2]))
    array([8, 3], dtype=float32)
    """
    check_stream(stream)
    x, n = as_floating(x1), as_array(x2)
    _real("ldexp", x)
    if not n.dtype.is_integer:
        raise DTypeError(at_user_line(f"smelt.ldexp: the exponents must be integers, are {n.aval}"))
    shape, dtype = broadcast_shapes("ldexp", x.shape, n.shape), x.dtype
    x, n = broadcast_to_shape(widened(x), shape), broadcast_to_shape(n, shape)
    if n.dtype.size > 2:
        most = constant(1 << 14, n.dtype, shape)
        n = minimum(n, most)
        n = n if n.dtype.kind == "u" else maximum(n, negative(most))
    return convert(_scaled(x, convert(n, dtypes.int32)), dtype)


@remembered
def frexp(x: ArrayLike, /, *, stream: StreamOrDevice = None) -> tuple[array, array]:
    """``(m, n)`` with x = m · 2ⁿ and 0.5 ≤ |m| < 1; of zero, infinities and NaN themselves and 0.

    Args:
        x: not complex; integers give float32.

    Returns:
        m in the dtype of x, n as int32.

    >>> import smelt
    >>> smelt.frexp(smelt.array([8.0, -3.0, 0.0]))
    (array([0.5, -0.75, 0], dtype=float32), array([4, 2, 0], dtype=int32))
    """
    check_stream(stream)
    given = as_floating(x)
    _real("frexp", given)
    wide = widened(given)
    dtype, shape = wide.dtype, wide.shape
    fraction, bias = _FRACTION[dtype], _BIAS[dtype]
    size = emit_elementwise(ops["stop_gradient"], absolute(wide))
    subnormal = less(size, 2.0 ** (1 - bias))
    size = select(subnormal, multiply(size, constant(2.0 ** (fraction + 1), dtype, shape)), size)
    bits = _bits(size)
    raised = emit_elementwise(ops["right_shift"], bits, constant(fraction, bits.dtype, shape))
    exponent = subtract(convert(raised, dtypes.int32), constant(bias - 1, dtypes.int32, shape))
    lowered = subtract(exponent, constant(fraction + 1, dtypes.int32, shape))
    exponent = select(subnormal, lowered, exponent)
    special = logical_or(equal(size, 0), greater(raised, constant(2 * bias, raised.dtype, shape)))
    exponent = select(special, constant(0, dtypes.int32, shape), exponent)
    return convert(_scaled(wide, negative(exponent)), given.dtype), exponent
