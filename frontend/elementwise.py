"""Elementwise functions under MLX's names.

Operands are arrays or what `smelt.array` takes. Two operands meet in their common dtype (Python scalars
are weak: they take the array's dtype unless their kind is higher) and broadcast to a common shape.
Floating-point functions of integers and bools are computed in float32. Every function raises
ShapeError for shapes that do not broadcast and DTypeError for dtypes that it does not take, when it is
called; `stream` is accepted for MLX's sake and ignored.
"""

from __future__ import annotations

import builtins
import math
from typing import Any

import numpy as np

from smelt.ir import dtypes
from smelt.ir.dtypes import DType
from smelt.ir.errors import DTypeError, at_user_line
from smelt.ir.op import Op
from smelt.ir.op import registry as ops
from smelt.ir.ops.reduce import highest, lowest

from .arrays import (
    ArrayLike,
    Scalar,
    array,
    as_array,
    broadcast_shapes,
    broadcast_to_shape,
    convert,
    emit,
    emit_elementwise,
    promote_operands,
    scalar_array,
)

__all__ = [
    "abs", "acos", "acosh", "add", "arccos", "arccosh", "arcsin", "arcsinh", "arctan", "arctan2", "arctanh",
    "asin", "asinh", "atan", "atan2", "atanh", "ceil", "clip", "conj", "conjugate", "cos", "cosh", "degrees",
    "divide", "divmod", "erf", "erfinv", "exp", "expm1", "floor", "floor_divide", "imag", "log", "log1p",
    "log2", "log10", "maximum", "minimum", "multiply", "nan_to_num", "negative", "positive", "pow", "power",
    "radians", "real", "reciprocal", "remainder", "round", "rsqrt", "sigmoid", "sign", "sin", "sinh", "sqrt",
    "square", "stop_gradient", "subtract", "tan", "tanh", "trunc",
]  # fmt: skip

StreamOrDevice = Any  #: accepted for MLX's sake and ignored: arrays run on the default device

# Shared helpers


def _unary(op: Op, a: ArrayLike) -> array:
    return emit_elementwise(op, a if type(a) is array else as_array(a))


def _floating(op: Op, a: ArrayLike) -> array:
    """`op` of an array; integers and bools are converted to float32 first."""
    return emit_elementwise(op, as_floating(a))


def _rounding(op: Op, a: ArrayLike) -> array:
    """`op` of floats; integers and bools are returned as they are."""
    x = as_array(a)
    return emit_elementwise(op, x) if x.dtype.is_inexact else x


def _binary(name: str, op: Op, a: ArrayLike, b: ArrayLike, floating: bool = False) -> array:
    x, y = promote_operands(name, a, b, floating)
    return emit_elementwise(op, x, y)


def as_floating(a: ArrayLike) -> array:
    """`a` as an array; float32 where it is an integer or a bool."""
    x = a if type(a) is array else as_array(a)
    dtype = x.dtype
    return x if dtype.kind in "fc" else convert(x, dtypes.float32)


def constant(value: Scalar, dtype: DType, shape: tuple[int, ...] = ()) -> array:
    """An array of one value that is part of the program: for numbers of the library, not the user's."""
    return broadcast_to_shape(emit(ops["constant"], (), {"value": value, "dtype": dtype}), shape)


def promote_all(name: str, *operands: ArrayLike) -> list[array]:
    """Operands in their common dtype and shape; Python scalars are weak where any is an array."""
    strong = [x if type(x) is array else as_array(x) for x in operands if not _is_scalar(x)]
    weak = [x for x in operands if _is_scalar(x)]
    common = [x.dtype for x in strong] or [dtypes.of_scalar(x) for x in weak]
    dtype = common[0]
    for other in common[1:]:
        dtype = dtypes.promote(dtype, other)
    if strong:
        for scalar in weak:
            dtype = dtypes.promote_scalar(dtype, scalar)
    arrays = iter(strong)
    found = [scalar_array(x, dtype) if _is_scalar(x) else convert(next(arrays), dtype) for x in operands]
    shape = broadcast_shapes(name, *(x.shape for x in found))
    return [broadcast_to_shape(x, shape) for x in found]


def _is_scalar(x: ArrayLike) -> bool:
    return isinstance(x, (bool, int, float, complex))


# Arithmetic

_ADD, _SUB, _MUL, _DIV = ops["add"], ops["sub"], ops["mul"], ops["div"]
_FLOOR_DIVIDE, _REMAINDER = ops["floor_divide"], ops["remainder"]
_MAXIMUM, _MINIMUM, _CLAMP = ops["maximum"], ops["minimum"], ops["clamp"]
_NEG, _ABS, _SIGN = ops["neg"], ops["abs"], ops["sign"]


def add(a: ArrayLike, b: ArrayLike, stream: StreamOrDevice = None) -> array:
    """Sum, a + b. For bools, logical or.

    >>> import smelt
    >>> smelt.add(smelt.array([1.0, 2.0]), 1)
    array([2, 3], dtype=float32)
    """
    x, y = promote_operands("add", a, b)
    return emit_elementwise(_ADD, x, y)


def subtract(a: ArrayLike, b: ArrayLike, stream: StreamOrDevice = None) -> array:
    """Difference, a - b. Unsigned integers wrap; bools raise DTypeError.

    >>> import smelt
    >>> smelt.subtract(smelt.array([1, 2]), smelt.array(5))
    array([-4, -3], dtype=int32)
    """
    x, y = promote_operands("subtract", a, b)
    return emit_elementwise(_SUB, x, y)


def multiply(a: ArrayLike, b: ArrayLike, stream: StreamOrDevice = None) -> array:
    """Product, a · b. For bools, logical and.

    >>> import smelt
    >>> smelt.multiply(smelt.array([1, 2]), 0.5)
    array([0.5, 1], dtype=float32)
    """
    x, y = promote_operands("multiply", a, b)
    return emit_elementwise(_MUL, x, y)


def divide(a: ArrayLike, b: ArrayLike, stream: StreamOrDevice = None) -> array:
    """Quotient, a / b. Integers are divided as float32.

    >>> import smelt
    >>> smelt.divide(smelt.array([1, 2]), 4)
    array([0.25, 0.5], dtype=float32)
    """
    return _binary("divide", _DIV, a, b, floating=True)


def floor_divide(a: ArrayLike, b: ArrayLike, stream: StreamOrDevice = None) -> array:
    """Quotient rounded towards minus infinity, ⌊a / b⌋. An integer divided by zero gives 0.

    >>> import smelt
    >>> smelt.floor_divide(smelt.array([7, -7]), 2)
    array([ 3, -4], dtype=int32)
    """
    return _binary("floor_divide", _FLOOR_DIVIDE, a, b)


def remainder(a: ArrayLike, b: ArrayLike, stream: StreamOrDevice = None) -> array:
    """Remainder with the sign of the divisor, a - b·⌊a / b⌋. An integer modulo zero gives 0.

    >>> import smelt
    >>> smelt.remainder(smelt.array([7, -7]), 4)
    array([3, 1], dtype=int32)
    """
    return _binary("remainder", _REMAINDER, a, b)


def divmod(a: ArrayLike, b: ArrayLike, stream: StreamOrDevice = None) -> tuple[array, array]:
    """``(floor_divide(a, b), remainder(a, b))``.

    >>> import smelt
    >>> smelt.divmod(smelt.array([7, -7]), 4)
    (array([ 1, -2], dtype=int32), array([3, 1], dtype=int32))
    """
    x, y = promote_operands("divmod", a, b)
    return emit_elementwise(_FLOOR_DIVIDE, x, y), emit_elementwise(_REMAINDER, x, y)


def maximum(a: ArrayLike, b: ArrayLike, /, *, stream: StreamOrDevice = None) -> array:
    """The larger of a and b; NaN if either is NaN. Equal operands share the derivative.

    >>> import smelt
    >>> smelt.maximum(smelt.array([-1.0, 2.0]), 0)
    array([0, 2], dtype=float32)
    """
    return _binary("maximum", _MAXIMUM, a, b)


def minimum(a: ArrayLike, b: ArrayLike, /, *, stream: StreamOrDevice = None) -> array:
    """The smaller of a and b; NaN if either is NaN. Equal operands share the derivative.

    >>> import smelt
    >>> smelt.minimum(smelt.array([-1.0, 2.0]), 0)
    array([-1, 0], dtype=float32)
    """
    return _binary("minimum", _MINIMUM, a, b)


def clip(
    a: ArrayLike, /, a_min: ArrayLike | None, a_max: ArrayLike | None, *, stream: StreamOrDevice = None
) -> array:
    """a limited to [a_min, a_max]: min(max(a, a_min), a_max). At a limit the derivative goes to a.

    Args:
        a_min, a_max: numbers, or arrays that broadcast with `a`. One of them may be None: no bound.

    Raises:
        ValueError: both bounds are None.

    >>> import smelt
    >>> smelt.clip(smelt.array([-2.0, 0.5, 2.0]), -1, 1)
    array([-1, 0.5, 1], dtype=float32)
    """
    if a_min is None and a_max is None:
        raise ValueError(at_user_line("smelt.clip: at most one of a_min and a_max may be None"))
    if a_min is None:
        x, high = promote_all("clip", a, a_max)
        low = None
    elif a_max is None:
        x, low = promote_all("clip", a, a_min)
        high = None
    else:
        x, low, high = promote_all("clip", a, a_min, a_max)
    dtype = x.dtype
    if dtype not in dtypes.REAL:
        raise DTypeError(at_user_line(f"smelt.clip: a is {x.aval}, must be of integers or floats"))
    low = constant(lowest(dtype), dtype, x.shape) if low is None else low
    high = constant(highest(dtype), dtype, x.shape) if high is None else high
    return emit_elementwise(_CLAMP, low, x, high)


def negative(a: ArrayLike, /, *, stream: StreamOrDevice = None) -> array:
    """-a. Unsigned integers wrap; bools raise DTypeError (use `logical_not`).

    >>> import smelt
    >>> smelt.negative(smelt.array([1, -2]))
    array([-1,  2], dtype=int32)
    """
    return _unary(_NEG, a)


def positive(a: ArrayLike, /, *, stream: StreamOrDevice = None) -> array:
    """a itself.

    >>> import smelt
    >>> smelt.positive(smelt.array([1, -2]))
    array([ 1, -2], dtype=int32)
    """
    return as_array(a)


def abs(a: ArrayLike, /, *, stream: StreamOrDevice = None) -> array:
    """Absolute value, |a|; of complex numbers the modulus, as float32.

    >>> import smelt
    >>> smelt.abs(smelt.array([-1.5, 2.0]))
    array([1.5, 2], dtype=float32)
    """
    x = as_array(a)
    return x if x.dtype.kind in "bu" else emit_elementwise(_ABS, x)


def sign(a: ArrayLike, /, *, stream: StreamOrDevice = None) -> array:
    """-1, 0 or 1 by the sign of a; NaN for NaN. Of complex numbers a / |a|, and 0 for 0.

    >>> import smelt
    >>> smelt.sign(smelt.array([-3, 0, 5]))
    array([-1,  0,  1], dtype=int32)
    """
    x = as_array(a)
    if x.dtype.kind == "b":
        return x
    if not x.dtype.is_complex:
        return emit_elementwise(_SIGN, x)
    modulus = emit_elementwise(_ABS, x)
    zero = emit_elementwise(ops["equal"], modulus, constant(0, modulus.dtype, x.shape))
    safe = emit_elementwise(ops["select"], zero, constant(1, modulus.dtype, x.shape), modulus)
    return emit_elementwise(_DIV, x, convert(safe, x.dtype))


def square(a: ArrayLike, /, *, stream: StreamOrDevice = None) -> array:
    """a².

    >>> import smelt
    >>> smelt.square(smelt.array([1.5, -2.0]))
    array([2.25, 4], dtype=float32)
    """
    x = as_array(a)
    return emit_elementwise(_MUL, x, x)


_SQRT, _RSQRT = ops["sqrt"], ops["rsqrt"]


def sqrt(a: ArrayLike, /, *, stream: StreamOrDevice = None) -> array:
    """Square root; NaN below zero.

    >>> import smelt
    >>> smelt.sqrt(smelt.array([4, 9]))
    array([2, 3], dtype=float32)
    """
    return _floating(_SQRT, a)


def rsqrt(a: ArrayLike, /, *, stream: StreamOrDevice = None) -> array:
    """1 / √a; inf at zero, NaN below.

    >>> import smelt
    >>> smelt.rsqrt(smelt.array([4.0, 16.0]))
    array([0.5, 0.25], dtype=float32)
    """
    return _floating(_RSQRT, a)


def reciprocal(a: ArrayLike, /, *, stream: StreamOrDevice = None) -> array:
    """1 / a.

    >>> import smelt
    >>> smelt.reciprocal(smelt.array([2, 4]))
    array([0.5, 0.25], dtype=float32)
    """
    x = as_floating(a)
    return emit_elementwise(_DIV, constant(1, x.dtype, x.shape), x)


_POWER, _INTEGER_POWER = ops["power"], ops["integer_power"]
#: Python exponents up to this are multiplied out: more costs accuracy that `power` has.
_MAX_EXPONENT = 8


def power(a: ArrayLike, b: ArrayLike, /, *, stream: StreamOrDevice = None) -> array:
    """a raised to b. Small Python integers and ±0.5 as exponents become products and square roots.

    Negative powers of integers are 0, but of 1 and -1; 0⁰ is 1.

    >>> import smelt
    >>> smelt.power(smelt.array([2.0, 3.0]), 2)
    array([4, 9], dtype=float32)
    """
    if type(b) in (int, float) and not _is_scalar(a):
        x = as_array(a)
        found = _constant_power(convert(x, dtypes.promote_scalar(x.dtype, b)), b)
        if found is not None:
            return found
    return _binary("power", _POWER, a, b)


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
        return x
    if n == 2:
        return emit_elementwise(_MUL, x, x)
    return emit(_INTEGER_POWER, (x,), {"exponent": n})


# Rounding

_FLOOR, _CEIL, _TRUNC, _ROUND = ops["floor"], ops["ceil"], ops["trunc"], ops["round"]


def floor(a: ArrayLike, /, *, stream: StreamOrDevice = None) -> array:
    """Largest integer not above a, in its dtype. Integers are returned as they are.

    >>> import smelt
    >>> smelt.floor(smelt.array([1.5, -1.5]))
    array([1, -2], dtype=float32)
    """
    return _rounding(_FLOOR, a)


def ceil(a: ArrayLike, /, *, stream: StreamOrDevice = None) -> array:
    """Smallest integer not below a, in its dtype. Integers are returned as they are.

    >>> import smelt
    >>> smelt.ceil(smelt.array([1.5, -1.5]))
    array([2, -1], dtype=float32)
    """
    return _rounding(_CEIL, a)


def trunc(a: ArrayLike, /, *, stream: StreamOrDevice = None) -> array:
    """a without its fraction, in its dtype. Integers are returned as they are.

    >>> import smelt
    >>> smelt.trunc(smelt.array([1.5, -1.5]))
    array([1, -1], dtype=float32)
    """
    return _rounding(_TRUNC, a)


def round(a: ArrayLike, /, decimals: int = 0, stream: StreamOrDevice = None) -> array:
    """a rounded to `decimals` places after the point, ties to even; negative: to tens, hundreds, …

    Complex numbers are rounded part by part.

    >>> import smelt
    >>> smelt.round(smelt.array([1.25, 2.5]), 1)
    array([1.2, 2.5], dtype=float32)
    """
    x = as_array(a)
    dtype = x.dtype
    if dtype.is_complex:
        parts = (round(part, decimals) for part in (real(x), imag(x)))
        return emit_elementwise(ops["complex"], *parts)
    if not dtype.is_float and decimals >= 0:
        return x
    if decimals == 0:
        return emit_elementwise(_ROUND, x)
    # In a type that holds the scaled number: float16 overflows, and float32 has no int32 beyond 2^24.
    x = convert(x, dtypes.float32 if dtype.size <= 2 or dtype is dtypes.float32 else dtypes.float64)
    scale = constant(10.0 ** builtins.abs(decimals), x.dtype, x.shape)
    up, down = (_MUL, _DIV) if decimals > 0 else (_DIV, _MUL)
    rounded = emit_elementwise(_ROUND, emit_elementwise(up, x, scale))
    return convert(emit_elementwise(down, rounded, scale), dtype)


# Exponentials, logarithms, trigonometric and hyperbolic functions

_EXP, _EXPM1 = ops["exp"], ops["expm1"]
_LOG, _LOG2, _LOG10, _LOG1P = ops["log"], ops["log2"], ops["log10"], ops["log1p"]
_SIN, _COS, _TAN = ops["sin"], ops["cos"], ops["tan"]
_ARCSIN, _ARCCOS, _ARCTAN, _ARCTAN2 = ops["arcsin"], ops["arccos"], ops["arctan"], ops["arctan2"]
_SINH, _COSH, _TANH = ops["sinh"], ops["cosh"], ops["tanh"]
_ARCSINH, _ARCCOSH, _ARCTANH = ops["arcsinh"], ops["arccosh"], ops["arctanh"]
_ERF, _ERFINV, _SIGMOID = ops["erf"], ops["erfinv"], ops["sigmoid"]


def exp(a: ArrayLike, /, *, stream: StreamOrDevice = None) -> array:
    """Exponential, eᵃ.

    >>> import smelt
    >>> smelt.exp(smelt.array([0, 1]))
    array([1, 2.71828], dtype=float32)
    """
    return _floating(_EXP, a)


def expm1(a: ArrayLike, /, *, stream: StreamOrDevice = None) -> array:
    """eᵃ - 1, accurate around 0.

    >>> import smelt
    >>> smelt.expm1(smelt.array([0, 1e-8]))
    array([0, 1e-08], dtype=float32)
    """
    return _floating(_EXPM1, a)


def log(a: ArrayLike, /, *, stream: StreamOrDevice = None) -> array:
    """Natural logarithm; -inf at 0, NaN below.

    >>> import smelt
    >>> smelt.log(smelt.array([1, 0]))
    array([0, -inf], dtype=float32)
    """
    return _floating(_LOG, a)


def log2(a: ArrayLike, /, *, stream: StreamOrDevice = None) -> array:
    """Logarithm to base 2.

    >>> import smelt
    >>> smelt.log2(smelt.array([8, 0.5]))
    array([3, -1], dtype=float32)
    """
    return _floating(_LOG2, a)


def log10(a: ArrayLike, /, *, stream: StreamOrDevice = None) -> array:
    """Logarithm to base 10.

    >>> import smelt
    >>> smelt.log10(smelt.array([1000, 0.1]))
    array([3, -1], dtype=float32)
    """
    return _floating(_LOG10, a)


def log1p(a: ArrayLike, /, *, stream: StreamOrDevice = None) -> array:
    """log(1 + a), accurate around 0.

    >>> import smelt
    >>> smelt.log1p(smelt.array([0, 1e-8]))
    array([0, 1e-08], dtype=float32)
    """
    return _floating(_LOG1P, a)


def sigmoid(a: ArrayLike, /, *, stream: StreamOrDevice = None) -> array:
    """Logistic function, 1 / (1 + e⁻ᵃ).

    >>> import smelt
    >>> smelt.sigmoid(smelt.array([0, -1000]))
    array([0.5, 0], dtype=float32)
    """
    return _floating(_SIGMOID, a)


def sin(a: ArrayLike, /, *, stream: StreamOrDevice = None) -> array:
    """Sine of an angle in radians.

    >>> import smelt
    >>> smelt.sin(smelt.array([0, 1]))
    array([0, 0.841471], dtype=float32)
    """
    return _floating(_SIN, a)


def cos(a: ArrayLike, /, *, stream: StreamOrDevice = None) -> array:
    """Cosine of an angle in radians.

    >>> import smelt
    >>> smelt.cos(smelt.array([0, 1]))
    array([1, 0.540302], dtype=float32)
    """
    return _floating(_COS, a)


def tan(a: ArrayLike, /, *, stream: StreamOrDevice = None) -> array:
    """Tangent of an angle in radians.

    >>> import smelt
    >>> smelt.tan(smelt.array([0, 1]))
    array([0, 1.55741], dtype=float32)
    """
    return _floating(_TAN, a)


def arcsin(a: ArrayLike, /, *, stream: StreamOrDevice = None) -> array:
    """Inverse sine, in [-π/2, π/2]; NaN where |a| > 1.

    >>> import smelt
    >>> smelt.arcsin(smelt.array([0, 1]))
    array([0, 1.5708], dtype=float32)
    """
    return _floating(_ARCSIN, a)


def arccos(a: ArrayLike, /, *, stream: StreamOrDevice = None) -> array:
    """Inverse cosine, in [0, π]; NaN where |a| > 1.

    >>> import smelt
    >>> smelt.arccos(smelt.array([1, 0]))
    array([0, 1.5708], dtype=float32)
    """
    return _floating(_ARCCOS, a)


def arctan(a: ArrayLike, /, *, stream: StreamOrDevice = None) -> array:
    """Inverse tangent, in [-π/2, π/2].

    >>> import smelt
    >>> smelt.arctan(smelt.array([0, 1]))
    array([0, 0.785398], dtype=float32)
    """
    return _floating(_ARCTAN, a)


def arctan2(a: ArrayLike, b: ArrayLike, /, *, stream: StreamOrDevice = None) -> array:
    """The angle of the point with ordinate a and abscissa b, in [-π, π].

    >>> import smelt
    >>> smelt.arctan2(smelt.array([1.0, -1.0]), -1)
    array([2.35619, -2.35619], dtype=float32)
    """
    return _binary("arctan2", _ARCTAN2, a, b, floating=True)


def sinh(a: ArrayLike, /, *, stream: StreamOrDevice = None) -> array:
    """Hyperbolic sine.

    >>> import smelt
    >>> smelt.sinh(smelt.array([0, 1]))
    array([0, 1.1752], dtype=float32)
    """
    return _floating(_SINH, a)


def cosh(a: ArrayLike, /, *, stream: StreamOrDevice = None) -> array:
    """Hyperbolic cosine.

    >>> import smelt
    >>> smelt.cosh(smelt.array([0, 1]))
    array([1, 1.54308], dtype=float32)
    """
    return _floating(_COSH, a)


def tanh(a: ArrayLike, /, *, stream: StreamOrDevice = None) -> array:
    """Hyperbolic tangent.

    >>> import smelt
    >>> smelt.tanh(smelt.array([0, 1]))
    array([0, 0.761594], dtype=float32)
    """
    return _floating(_TANH, a)


def arcsinh(a: ArrayLike, /, *, stream: StreamOrDevice = None) -> array:
    """Inverse hyperbolic sine.

    >>> import smelt
    >>> smelt.arcsinh(smelt.array([0, 1]))
    array([0, 0.881374], dtype=float32)
    """
    return _floating(_ARCSINH, a)


def arccosh(a: ArrayLike, /, *, stream: StreamOrDevice = None) -> array:
    """Inverse hyperbolic cosine; NaN below 1.

    >>> import smelt
    >>> smelt.arccosh(smelt.array([1, 2]))
    array([0, 1.31696], dtype=float32)
    """
    return _floating(_ARCCOSH, a)


def arctanh(a: ArrayLike, /, *, stream: StreamOrDevice = None) -> array:
    """Inverse hyperbolic tangent; ±inf at ±1, NaN where |a| > 1.

    >>> import smelt
    >>> smelt.arctanh(smelt.array([0, 0.5]))
    array([0, 0.549306], dtype=float32)
    """
    return _floating(_ARCTANH, a)


def erf(a: ArrayLike, /, *, stream: StreamOrDevice = None) -> array:
    """Error function, 2/√π · ∫₀ᵃ exp(-t²) dt.

    >>> import smelt
    >>> smelt.erf(smelt.array([0, 1]))
    array([0, 0.842701], dtype=float32)
    """
    return _floating(_ERF, a)


def erfinv(a: ArrayLike, /, *, stream: StreamOrDevice = None) -> array:
    """Inverse of the error function; ±inf at ±1, NaN where |a| > 1.

    >>> import smelt
    >>> smelt.erfinv(smelt.array([0, 0.5]))
    array([0, 0.476936], dtype=float32)
    """
    return _floating(_ERFINV, a)


acos, acosh, asin, asinh = arccos, arccosh, arcsin, arcsinh
atan, atan2, atanh, pow = arctan, arctan2, arctanh, power


def degrees(a: ArrayLike, /, *, stream: StreamOrDevice = None) -> array:
    """An angle in radians as degrees.

    >>> import smelt
    >>> smelt.degrees(smelt.array([0, 3.1415927]))
    array([0, 180], dtype=float32)
    """
    x = as_floating(a)
    return emit_elementwise(_MUL, x, constant(180 / math.pi, x.dtype, x.shape))


def radians(a: ArrayLike, /, *, stream: StreamOrDevice = None) -> array:
    """An angle in degrees as radians.

    >>> import smelt
    >>> smelt.radians(smelt.array([0, 180]))
    array([0, 3.14159], dtype=float32)
    """
    x = as_floating(a)
    return emit_elementwise(_MUL, x, constant(math.pi / 180, x.dtype, x.shape))


# Complex numbers, special values, derivatives

_REAL, _IMAG, _COMPLEX = ops["real"], ops["imag"], ops["complex"]


def real(a: ArrayLike, /, *, stream: StreamOrDevice = None) -> array:
    """Real part: float32 of complex numbers; other arrays are returned as they are.

    >>> import smelt
    >>> smelt.real(smelt.array([1 + 2j]))
    array([1], dtype=float32)
    """
    x = as_array(a)
    return emit_elementwise(_REAL, x) if x.dtype.is_complex else x


def imag(a: ArrayLike, /, *, stream: StreamOrDevice = None) -> array:
    """Imaginary part: float32 of complex numbers; zeros for other arrays.

    >>> import smelt
    >>> smelt.imag(smelt.array([1 + 2j]))
    array([2], dtype=float32)
    """
    x = as_array(a)
    return emit_elementwise(_IMAG, x) if x.dtype.is_complex else constant(0, x.dtype, x.shape)


def conjugate(a: ArrayLike, *, stream: StreamOrDevice = None) -> array:
    """Complex conjugate; other arrays are returned as they are.

    >>> import smelt
    >>> smelt.conjugate(smelt.array([1 + 2j]))
    array([1-2j], dtype=complex64)
    """
    x = as_array(a)
    if not x.dtype.is_complex:
        return x
    flipped = emit_elementwise(_NEG, emit_elementwise(_IMAG, x))
    return emit_elementwise(_COMPLEX, emit_elementwise(_REAL, x), flipped)


conj = conjugate


def nan_to_num(
    a: ArrayLike,
    nan: float = 0,
    posinf: float | None = None,
    neginf: float | None = None,
    *,
    stream: StreamOrDevice = None,
) -> array:
    """a with NaN, inf and -inf replaced. Integers and bools are returned as they are.

    Args:
        nan: in place of NaN.
        posinf, neginf: in place of inf and -inf; by default the largest and least finite number.

    >>> import smelt
    >>> smelt.nan_to_num(smelt.array([float("nan"), float("-inf"), 1.0]), neginf=-5)
    array([0, -5, 1], dtype=float32)
    """
    x = as_array(a)
    if x.dtype.is_complex:
        parts = (nan_to_num(part, nan, posinf, neginf) for part in (real(x), imag(x)))
        return emit_elementwise(_COMPLEX, *parts)
    if not x.dtype.is_float:
        return x
    dtype, shape = x.dtype, x.shape
    largest = largest_finite(dtype)
    select, equal = ops["select"], ops["equal"]
    infinity = constant(math.inf, dtype, shape)
    found = x
    for test, value in (
        (emit_elementwise(ops["not_equal"], x, x), nan),
        (emit_elementwise(equal, x, infinity), largest if posinf is None else posinf),
        (emit_elementwise(equal, x, emit_elementwise(_NEG, infinity)), -largest if neginf is None else neginf),
    ):
        replacement = broadcast_to_shape(scalar_array(value, dtype), shape)
        found = emit_elementwise(select, test, replacement, found)
    return found


def largest_finite(dtype: DType) -> float:
    """The largest finite number of a floating dtype."""
    if dtype is dtypes.bfloat16:
        import ml_dtypes

        return float(ml_dtypes.finfo(dtype.numpy).max)
    return float(np.finfo(dtype.numpy).max)


def stop_gradient(a: ArrayLike, /, *, stream: StreamOrDevice = None) -> array:
    """a itself, whose derivative is zero.

    >>> import smelt
    >>> smelt.grad(lambda x: x * smelt.stop_gradient(x))(smelt.array(3.0))
    array(3, dtype=float32)
    """
    return _unary(ops["stop_gradient"], a)
