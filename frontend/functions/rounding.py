"""Rounding, and finite numbers in place of NaN and inf."""

from __future__ import annotations

import builtins
import math

import numpy as np

from smelt.ir import dtypes
from smelt.ir.dtypes import DType
from smelt.ir.errors import AttributeValueError, at_user_line
from smelt.ir.op import Op
from smelt.ir.op import registry as ops

from ..lazy.arguments import integer, no_out, number
from ..lazy.arrays import (
    ArrayLike,
    StreamOrDevice,
    array,
    as_array,
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
_MUL, _DIV, _NEG, _COMPLEX = ops["mul"], ops["div"], ops["neg"], ops["complex"]


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

    Complex numbers are rounded part by part.

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
    # In a type that holds the scaled number: float16 overflows, and float32 has no int32 beyond 2^24.
    x = convert(x, dtypes.float32 if dtype.size <= 2 or dtype is dtypes.float32 else dtypes.float64)
    scale = constant(10.0 ** builtins.abs(decimals), x.dtype, x.shape)
    up, down = (_MUL, _DIV) if decimals > 0 else (_DIV, _MUL)
    rounded = emit_elementwise(_ROUND, emit_elementwise(up, x, scale))
    return convert(emit_elementwise(down, rounded, scale), dtype)


@remembered
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
    check_stream(stream)
    x = as_array(a)
    if x.dtype.is_complex:
        parts = (nan_to_num(part, nan, posinf, neginf) for part in (real(x), imag(x)))
        return emit_elementwise(_COMPLEX, *parts)
    if not x.dtype.is_float:
        return wrap(x._ref)
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
        replacement = broadcast_to_shape(scalar_array(number("nan_to_num", "a replacement", value), dtype), shape)
        found = emit_elementwise(select, test, replacement, found)
    return found


def largest_finite(dtype: DType) -> float:
    """The largest finite number of a floating dtype."""
    if dtype is dtypes.bfloat16:
        import ml_dtypes

        return float(ml_dtypes.finfo(dtype.numpy).max)
    return float(np.finfo(dtype.numpy).max)
