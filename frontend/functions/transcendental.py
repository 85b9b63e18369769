"""Exponentials, logarithms, trigonometric and hyperbolic functions under MLX's names."""

from __future__ import annotations

import math

from smelt.ir.op import registry as ops

from ..lazy.arrays import ArrayLike, StreamOrDevice, array, emit_elementwise
from ..lazy.core import remembered, remembered_op
from ..lazy.operands import apply_binary, apply_floating, as_floating, constant
from ..lazy.streams import check_stream

__all__ = [
    "acos", "acosh", "arccos", "arccosh", "arcsin", "arcsinh", "arctan", "arctan2", "arctanh", "asin", "asinh",
    "atan", "atan2", "atanh", "cbrt", "cos", "cosh", "degrees", "erf", "erfc", "erfinv", "exp", "expm1", "log", "log1p",
    "log2", "log10", "radians", "sigmoid", "sin", "sinh", "tan", "tanh",
]  # fmt: skip

_EXP, _EXPM1 = ops["exp"], ops["expm1"]
_LOG, _LOG2, _LOG10, _LOG1P = ops["log"], ops["log2"], ops["log10"], ops["log1p"]
_SIN, _COS, _TAN = ops["sin"], ops["cos"], ops["tan"]
_ARCSIN, _ARCCOS, _ARCTAN, _ARCTAN2 = ops["arcsin"], ops["arccos"], ops["arctan"], ops["arctan2"]
_SINH, _COSH, _TANH = ops["sinh"], ops["cosh"], ops["tanh"]
_ARCSINH, _ARCCOSH, _ARCTANH = ops["arcsinh"], ops["arccosh"], ops["arctanh"]
_ERF, _ERFC, _ERFINV, _SIGMOID = ops["erf"], ops["erfc"], ops["erfinv"], ops["sigmoid"]
_CBRT, _MUL = ops["cbrt"], ops["mul"]


@remembered_op
def exp(a: ArrayLike, /, *, stream: StreamOrDevice = None) -> array:
    """Exponential, eᵃ.

    >>> import smelt
    >>> smelt.exp(smelt.array([0, 1]))
    array([1, 2.71828], dtype=float32)
    """
    check_stream(stream)
    return apply_floating(_EXP, a)


@remembered_op
def expm1(a: ArrayLike, /, *, stream: StreamOrDevice = None) -> array:
    """eᵃ - 1, accurate around 0.

    >>> import smelt
    >>> smelt.expm1(smelt.array([0, 1e-8]))
    array([0, 1e-08], dtype=float32)
    """
    check_stream(stream)
    return apply_floating(_EXPM1, a)


@remembered_op
def cbrt(a: ArrayLike, /, *, stream: StreamOrDevice = None) -> array:
    """The real cube root, that of negative numbers too. Integers give float32. Its derivative at 0 is infinite.

    Raises:
        DTypeError: complex numbers.

    >>> import smelt
    >>> smelt.cbrt(smelt.array([27.0, -8.0]))
    array([3, -2], dtype=float32)
    """
    check_stream(stream)
    return apply_floating(_CBRT, a)


@remembered_op
def log(a: ArrayLike, /, *, stream: StreamOrDevice = None) -> array:
    """Natural logarithm; -inf at 0, NaN below.

    >>> import smelt
    >>> smelt.log(smelt.array([1, 0]))
    array([0, -inf], dtype=float32)
    """
    check_stream(stream)
    return apply_floating(_LOG, a)


@remembered_op
def log2(a: ArrayLike, /, *, stream: StreamOrDevice = None) -> array:
    """Logarithm to base 2.

    >>> import smelt
    >>> smelt.log2(smelt.array([8, 0.5]))
    array([3, -1], dtype=float32)
    """
    check_stream(stream)
    return apply_floating(_LOG2, a)


@remembered_op
def log10(a: ArrayLike, /, *, stream: StreamOrDevice = None) -> array:
    """Logarithm to base 10.

    >>> import smelt
    >>> smelt.log10(smelt.array([1000, 0.1]))
    array([3, -1], dtype=float32)
    """
    check_stream(stream)
    return apply_floating(_LOG10, a)


@remembered_op
def log1p(a: ArrayLike, /, *, stream: StreamOrDevice = None) -> array:
    """log(1 + a), accurate around 0.

    >>> import smelt
    >>> smelt.log1p(smelt.array([0, 1e-8]))
    array([0, 1e-08], dtype=float32)
    """
    check_stream(stream)
    return apply_floating(_LOG1P, a)


@remembered_op
def sigmoid(a: ArrayLike, /, *, stream: StreamOrDevice = None) -> array:
    """Logistic function, 1 / (1 + e⁻ᵃ).

    >>> import smelt
    >>> smelt.sigmoid(smelt.array([0, -1000]))
    array([0.5, 0], dtype=float32)
    """
    check_stream(stream)
    return apply_floating(_SIGMOID, a)


@remembered_op
def sin(a: ArrayLike, /, *, stream: StreamOrDevice = None) -> array:
    """Sine of an angle in radians.

    >>> import smelt
    >>> smelt.sin(smelt.array([0, 1]))
    array([0, 0.841471], dtype=float32)
    """
    check_stream(stream)
    return apply_floating(_SIN, a)


@remembered_op
def cos(a: ArrayLike, /, *, stream: StreamOrDevice = None) -> array:
    """Cosine of an angle in radians.

    >>> import smelt
    >>> smelt.cos(smelt.array([0, 1]))
    array([1, 0.540302], dtype=float32)
    """
    check_stream(stream)
    return apply_floating(_COS, a)


@remembered_op
def tan(a: ArrayLike, /, *, stream: StreamOrDevice = None) -> array:
    """Tangent of an angle in radians.

    >>> import smelt
    >>> smelt.tan(smelt.array([0, 1]))
    array([0, 1.55741], dtype=float32)
    """
    check_stream(stream)
    return apply_floating(_TAN, a)


@remembered_op
def arcsin(a: ArrayLike, /, *, stream: StreamOrDevice = None) -> array:
    """Inverse sine, in [-π/2, π/2]; NaN where |a| > 1.

    >>> import smelt
    >>> smelt.arcsin(smelt.array([0, 1]))
    array([0, 1.5708], dtype=float32)
    """
    check_stream(stream)
    return apply_floating(_ARCSIN, a)


@remembered_op
def arccos(a: ArrayLike, /, *, stream: StreamOrDevice = None) -> array:
    """Inverse cosine, in [0, π]; NaN where |a| > 1.

    >>> import smelt
    >>> smelt.arccos(smelt.array([1, 0]))
    array([0, 1.5708], dtype=float32)
    """
    check_stream(stream)
    return apply_floating(_ARCCOS, a)


@remembered_op
def arctan(a: ArrayLike, /, *, stream: StreamOrDevice = None) -> array:
    """Inverse tangent, in [-π/2, π/2].

    >>> import smelt
    >>> smelt.arctan(smelt.array([0, 1]))
    array([0, 0.785398], dtype=float32)
    """
    check_stream(stream)
    return apply_floating(_ARCTAN, a)


@remembered_op
def arctan2(a: ArrayLike, b: ArrayLike, /, *, stream: StreamOrDevice = None) -> array:
    """The angle of the point with ordinate a and abscissa b, in [-π, π].

    >>> import smelt
    >>> smelt.arctan2(smelt.array([1.0, -1.0]), -1)
    array([2.35619, -2.35619], dtype=float32)
    """
    check_stream(stream)
    return apply_binary("arctan2", _ARCTAN2, a, b, floating=True)


@remembered_op
def sinh(a: ArrayLike, /, *, stream: StreamOrDevice = None) -> array:
    """Hyperbolic sine.

    >>> import smelt
    >>> smelt.sinh(smelt.array([0, 1]))
    array([0, 1.1752], dtype=float32)
    """
    check_stream(stream)
    return apply_floating(_SINH, a)


@remembered_op
def cosh(a: ArrayLike, /, *, stream: StreamOrDevice = None) -> array:
    """Hyperbolic cosine.

    >>> import smelt
    >>> smelt.cosh(smelt.array([0, 1]))
    array([1, 1.54308], dtype=float32)
    """
    check_stream(stream)
    return apply_floating(_COSH, a)


@remembered_op
def tanh(a: ArrayLike, /, *, stream: StreamOrDevice = None) -> array:
    """Hyperbolic tangent.

    >>> import smelt
    >>> smelt.tanh(smelt.array([0, 1]))
    array([0, 0.761594], dtype=float32)
    """
    check_stream(stream)
    return apply_floating(_TANH, a)


@remembered_op
def arcsinh(a: ArrayLike, /, *, stream: StreamOrDevice = None) -> array:
    """Inverse hyperbolic sine.

    >>> import smelt
    >>> smelt.arcsinh(smelt.array([0, 1]))
    array([0, 0.881374], dtype=float32)
    """
    check_stream(stream)
    return apply_floating(_ARCSINH, a)


@remembered_op
def arccosh(a: ArrayLike, /, *, stream: StreamOrDevice = None) -> array:
    """Inverse hyperbolic cosine; NaN below 1.

    >>> import smelt
    >>> smelt.arccosh(smelt.array([1, 2]))
    array([0, 1.31696], dtype=float32)
    """
    check_stream(stream)
    return apply_floating(_ARCCOSH, a)


@remembered_op
def arctanh(a: ArrayLike, /, *, stream: StreamOrDevice = None) -> array:
    """Inverse hyperbolic tangent; ±inf at ±1, NaN where |a| > 1.

    >>> import smelt
    >>> smelt.arctanh(smelt.array([0, 0.5]))
    array([0, 0.549306], dtype=float32)
    """
    check_stream(stream)
    return apply_floating(_ARCTANH, a)


@remembered_op
def erf(a: ArrayLike, /, *, stream: StreamOrDevice = None) -> array:
    """Error function, 2/√π · ∫₀ᵃ exp(-t²) dt.

    >>> import smelt
    >>> smelt.erf(smelt.array([0, 1]))
    array([0, 0.842701], dtype=float32)
    """
    check_stream(stream)
    return apply_floating(_ERF, a)


@remembered_op
def erfc(a: ArrayLike, /, *, stream: StreamOrDevice = None) -> array:
    """The complementary error function 1 - erf(a), precise where it is small.

    >>> import smelt
    >>> smelt.erfc(smelt.array([0.0, 1.0, 9.0]))
    array([1, 0.157299, 4.13703e-37], dtype=float32)
    """
    check_stream(stream)
    return apply_floating(_ERFC, a)


@remembered_op
def erfinv(a: ArrayLike, /, *, stream: StreamOrDevice = None) -> array:
    """Inverse of the error function; ±inf at ±1, NaN where |a| > 1.

    >>> import smelt
    >>> smelt.erfinv(smelt.array([0, 0.5]))
    array([0, 0.476936], dtype=float32)
    """
    check_stream(stream)
    return apply_floating(_ERFINV, a)


acos, acosh, asin, asinh = arccos, arccosh, arcsin, arcsinh
atan, atan2, atanh = arctan, arctan2, arctanh


@remembered
def degrees(a: ArrayLike, /, *, stream: StreamOrDevice = None) -> array:
    """An angle in radians as degrees.

    >>> import smelt
    >>> smelt.degrees(smelt.array([0, 3.1415927]))
    array([0, 180], dtype=float32)
    """
    check_stream(stream)
    x = as_floating(a)
    return emit_elementwise(_MUL, x, constant(180 / math.pi, x.dtype, x.shape))


@remembered
def radians(a: ArrayLike, /, *, stream: StreamOrDevice = None) -> array:
    """An angle in degrees as radians.

    >>> import smelt
    >>> smelt.radians(smelt.array([0, 180]))
    array([0, 3.14159], dtype=float32)
    """
    check_stream(stream)
    x = as_floating(a)
    return emit_elementwise(_MUL, x, constant(math.pi / 180, x.dtype, x.shape))
