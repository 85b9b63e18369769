"""Rounding, and finite numbers in place of NaN and inf."""

from __future__ import annotations

import builtins
import math

import numpy as np

from smelt.ir import dtypes
from smelt.ir.dtypes import DType
from smelt.ir.errors import AttributeValueError, ShapeError, at_user_line
from smelt.ir.op import Op
from smelt.ir.op import registry as ops

from ..lazy.arguments import integer, is_list, no_out, number
from ..lazy.arrays import (
    ArrayLike,
    StreamOrDevice,
    array,
    as_array,
    broadcast_shapes,
    broadcast_to_shape,
    convert,
    emit_elementwise,
    scalar_array,
    wrap,
)
from ..lazy.core import remembered
from ..lazy.operands import constant
from ..lazy.streams import check_stream
from .complex_numbers import imag, real

__all__ = ["ceil", "floor", "nan_to_num", "round", "trunc"]

_FLOOR, _CEIL, _TRUNC, _ROUND = ops["floor"], ops["ceil"], ops["trunc"], ops["round"]
_MUL, _DIV, _NEG, _COMPLEX, _SELECT = ops["mul"], ops["div"], ops["neg"], ops["complex"], ops["select"]


def _rounding(op: Op, a: ArrayLike) -> array:
    """`op` of floats; integers and bools are returned as they are."""
    x = as_array(a)
    return emit_elementwise(op, x) if x.dtype.is_inexact else wrap(x._ref)


@remembered
def floor(a: ArrayLike, /, *, stream: StreamOrDevice = None) -> array:
    """Largest integer not above a, in its dtype. Integers are returned as they are.

    >>> import smelt
    >>> smelt.floor(smelt.array([1.5, -1.5]))
    array([1, -2], dtype=float32)
    """
    check_stream(stream)
    return _rounding(_FLOOR, a)


@remembered
def ceil(a: ArrayLike, /, *, stream: StreamOrDevice = None) -> array:
    """Smallest integer not below a, in its dtype. Integers are returned as they are.

    >>> import smelt
    >>> smelt.ceil(smelt.array([1.5, -1.5]))
    array([2, -1], dtype=float32)
    """
    check_stream(stream)
    return _rounding(_CEIL, a)


@remembered
def trunc(a: ArrayLike, /, *, stream: StreamOrDevice = None) -> array:
    """a without its fraction, in its dtype. Integers are returned as they are.

    >>> import smelt
    >>> smelt.trunc(smelt.array([1.5, -1.5]))
    array([1, -1], dtype=float32)
    """
    check_stream(stream)
    return _rounding(_TRUNC, a)


@remembered
def round(a: ArrayLike, /, decimals: int = 0, stream: StreamOrDevice = None, *, out: None = None) -> array:
    """a rounded to `decimals` places after the point, ties to even; negative: to tens, hundreds, …

    Complex numbers are rounded part by part. Ties of floats are those of a · 10^decimals in float32, of float64 in
    float64, as in NumPy; numbers that have no such places are returned as they are. Integers become multiples that
    their dtype has: 127 of int8 is 120.

    Args:
        out: None; NumPy's functions pass it.

    Raises:
        ArgumentTypeError: `decimals` is no int. AttributeValueError: it is beyond ±308.

    >>> import smelt
    >>> smelt.round(smelt.array([1.25, 2.5]), 1)
    array([1.2, 2.5], dtype=float32)
    """
    check_stream(stream)
    no_out("round", out)
    x, decimals = as_array(a), integer("round", "decimals", decimals)
    if builtins.abs(decimals) > 308:
        raise AttributeValueError(at_user_line(f"smelt.round: decimals must lie within ±308, is {decimals}"))
    dtype = x.dtype
    if dtype.is_complex:
        parts = (round(part, decimals) for part in (real(x), imag(x)))
        return emit_elementwise(_COMPLEX, *parts)
    if not dtype.is_float and decimals >= 0:
        return wrap(x._ref)
    if decimals == 0:
        return emit_elementwise(_ROUND, x)
    if not dtype.is_float:
        return _to_multiples(x, -decimals)
    # In a type that has the power of ten.
    is_wide = dtype is dtypes.float64 or 10.0 ** builtins.abs(decimals) > largest_finite(dtypes.float32)
    return convert(_to_places(convert(x, dtypes.float64 if is_wide else dtypes.float32), decimals), dtype)


def _to_places(x: array, decimals: int) -> array:
    """`round` of float32 or float64."""
    scale = constant(10.0 ** builtins.abs(decimals), x.dtype, x.shape)
    up, down = (_MUL, _DIV) if decimals > 0 else (_DIV, _MUL)
    scaled = emit_elementwise(up, x, scale)
    found = emit_elementwise(down, emit_elementwise(_ROUND, scaled), scale)
    whole = constant(2.0 ** (np.finfo(x.dtype.numpy).nmant + 1), x.dtype, x.shape)  # from here on nothing is rounded
    is_short = emit_elementwise(ops["less"], emit_elementwise(ops["abs"], scaled), whole)
    return emit_elementwise(_SELECT, is_short, found, emit_elementwise(ops["stop_gradient"], x))


def _to_multiples(x: array, places: int) -> array:
    """Integers as multiples of a power of ten."""
    limits = (0, 1) if x.dtype is dtypes.bool_ else (np.iinfo(x.dtype.numpy).min, np.iinfo(x.dtype.numpy).max)
    least, most, unit = int(limits[0]), int(limits[1]), 10**places
    if unit > most:
        return constant(0, x.dtype, x.shape)

    def number_of(value: int) -> array:
        return constant(value, x.dtype, x.shape)

    count = emit_elementwise(ops["floor_divide"], x, number_of(unit))
    rest, half = emit_elementwise(ops["remainder"], x, number_of(unit)), number_of(unit // 2)
    is_odd = emit_elementwise(ops["not_equal"], emit_elementwise(ops["bitwise_and"], count, number_of(1)), number_of(0))
    is_tie = emit_elementwise(ops["logical_and"], emit_elementwise(ops["equal"], rest, half), is_odd)
    is_more = emit_elementwise(ops["logical_or"], emit_elementwise(ops["greater"], rest, half), is_tie)
    count = emit_elementwise(ops["add"], count, convert(is_more, x.dtype))
    count = emit_elementwise(ops["maximum"], count, number_of(-(-least // unit)))
    count = emit_elementwise(ops["minimum"], count, number_of(most // unit))
    return emit_elementwise(_MUL, count, number_of(unit))


@remembered
def nan_to_num(
    a: ArrayLike,
    nan: ArrayLike = 0,
    posinf: ArrayLike | None = None,
    neginf: ArrayLike | None = None,
    *,
    stream: StreamOrDevice = None,
) -> array:
    """a with NaN, inf and -inf replaced. Integers and bools are returned as they are.

    Args:
        nan: in place of NaN.
        posinf, neginf: in place of inf and -inf; by default the largest and least finite number. All three may be
            arrays, which broadcast to the shape of a.

    >>> import smelt
    >>> smelt.nan_to_num(smelt.array([float("nan"), float("-inf"), 1.0]), neginf=-5)
    array([0, -5, 1], dtype=float32)
    """
    check_stream(stream)
    x = as_array(a)
    if x.dtype.is_complex:
        parts = (nan_to_num(part, nan, posinf, neginf) for part in (real(x), imag(x)))
        return emit_elementwise(_COMPLEX, *parts)
    if not x.dtype.is_float:
        return wrap(x._ref)
    dtype, shape = x.dtype, x.shape
    largest = largest_finite(dtype)
    equal = ops["equal"]
    infinity = constant(math.inf, dtype, shape)
    found = x
    for test, value in (
        (emit_elementwise(ops["not_equal"], x, x), nan),
        (emit_elementwise(equal, x, infinity), largest if posinf is None else posinf),
        (emit_elementwise(equal, x, emit_elementwise(_NEG, infinity)), -largest if neginf is None else neginf),
    ):
        replacement = broadcast_to_shape(_replacement(value, x), shape)
        found = emit_elementwise(_SELECT, test, replacement, found)
    return found


def _replacement(value: ArrayLike, x: array) -> array:
    if not is_list(value) and not (isinstance(value, array) and value.ndim):
        return scalar_array(number("nan_to_num", "a replacement", value), x.dtype)
    found = as_array(value, x.dtype)
    if found.dtype.is_complex or broadcast_shapes("nan_to_num", found.shape, x.shape) != x.shape:
        message = "smelt.nan_to_num: replacements must be real and broadcast to a"
        raise ShapeError(at_user_line(f"{message}; {found.aval}, a {x.aval}"))
    return convert(found, x.dtype)


def largest_finite(dtype: DType) -> float:
    """The largest finite number of a floating dtype."""
    if dtype is dtypes.bfloat16:
        import ml_dtypes

        return float(ml_dtypes.finfo(dtype.numpy).max)
    return float(np.finfo(dtype.numpy).max)
