"""Reductions and running sums that leave NaN out, under NumPy's names."""

from __future__ import annotations

import math
from functools import partial

from smelt.ir.dtypes import DType

from ..lazy.arguments import no_out
from ..lazy.arrays import ArrayLike, StreamOrDevice, array, as_array, convert
from ..lazy.core import remembered
from ..lazy.operands import constant
from ..lazy.streams import check_stream
from .complex_numbers import imag, real
from .logic import isnan, logical_not, where
from .moments import center_of, correction_of, root_of_squares
from .quantiles import quantiles
from .reductions import Axis, compared, extremum_of, floating_in, initial_of, normalize_axes, only, widened
from .reductions import argmax as argmax_of
from .reductions import argmin as argmin_of
from .reductions import prod as prod_of
from .reductions import sum as sum_of
from .sorting import cumprod, cumsum
from .weights import quantiles_checked

__all__ = [
    "nanargmax", "nanargmin", "nancumprod", "nancumsum", "nanmax", "nanmean", "nanmedian", "nanmin", "nanpercentile",
    "nanprod", "nanquantile", "nanstd", "nansum", "nanvar",
]  # fmt: skip


def _without(x: array, value: complex) -> array:
    """x with a number in place of each NaN."""
    return where(isnan(x), constant(value, x.dtype, x.shape), x) if x.dtype.is_inexact else x


@remembered
def nansum(
    a: ArrayLike, /, axis: Axis = None, dtype: DType | None = None, keepdims: bool = False, *,
    initial: ArrayLike | None = None, where: ArrayLike | None = None, stream: StreamOrDevice = None,
) -> array:  # fmt: skip
    """Sum over axes of what is no NaN; of nothing it is 0. Small integers widen as in `smelt.sum`.

    Args:
        axis: an int, several, or None for all. keepdims: whether these axes stay, with one element.
        dtype: to compute in, and of the result. initial, where: as of `smelt.sum`.

    >>> import smelt
    >>> smelt.nansum(smelt.array([1.0, float("nan"), 2.0]))
    array(3, dtype=float32)
    """
    check_stream(stream)
    x = only("nansum", _without(as_array(a), 0), where, 0)
    return sum_of(x, axis, keepdims, dtype=dtype, initial=initial)


@remembered
def nanprod(
    a: ArrayLike, /, axis: Axis = None, dtype: DType | None = None, keepdims: bool = False, *,
    initial: ArrayLike | None = None, where: ArrayLike | None = None, stream: StreamOrDevice = None,
) -> array:  # fmt: skip
    """Product over axes of what is no NaN; of nothing it is 1. Small integers widen as in `smelt.prod`.

    Args:
        axis: an int, several, or None for all. keepdims: whether these axes stay, with one element.
        dtype: to compute in, and of the result. initial, where: as of `smelt.prod`.

    >>> import smelt
    >>> smelt.nanprod(smelt.array([2.0, float("nan"), 3.0]))
    array(6, dtype=float32)
    """
    check_stream(stream)
    x = only("nanprod", _without(as_array(a), 1), where, 1)
    return prod_of(x, axis, keepdims, dtype=dtype, initial=initial)


def _extremum(
    name: str, a: ArrayLike, axis: Axis, keepdims: bool, initial: ArrayLike | None, where_: ArrayLike | None
) -> array:
    x = as_array(a)
    axes = normalize_axes(name, x, axis)
    which, least = ("max", -math.inf) if name == "nanmax" else ("min", math.inf)
    neutral = complex(least, least) if x.dtype.is_complex else least
    clean = _without(x, neutral)
    if initial is None and where_ is None:
        found = extremum_of(name, f"reduce_{which}", clean, axes, keepdims)
        empty = isnan(x).all(axes, keepdims)
    else:
        start = None if initial is None else initial_of(name, initial, x.dtype)
        first = None if start is None else _without(start, neutral)
        found = compared(name, which, clean, axes, keepdims, first, where_)
        empty = only(name, isnan(x), where_, True).all(axes, keepdims) & isnan(0 if start is None else start)
    return where(empty, constant(math.nan, x.dtype, found.shape), found) if x.dtype.is_inexact else found


@remembered
def nanmax(
    a: ArrayLike, /, axis: Axis = None, keepdims: bool = False, *, initial: ArrayLike | None = None,
    where: ArrayLike | None = None, stream: StreamOrDevice = None,
) -> array:  # fmt: skip
    """Largest element over axes that is no NaN; NaN where all are.

    Args:
        axis: an int, several, or None for all. keepdims: whether these axes stay, with one element.
        initial, where: as of `smelt.max`.

    Raises:
        ShapeError: a reduced axis is empty, and there is no `initial`.

    >>> import smelt
    >>> smelt.nanmax(smelt.array([1.0, float("nan"), 2.0]))
    array(2, dtype=float32)
    """
    check_stream(stream)
    return _extremum("nanmax", a, axis, keepdims, initial, where)


@remembered
def nanmin(
    a: ArrayLike, /, axis: Axis = None, keepdims: bool = False, *, initial: ArrayLike | None = None,
    where: ArrayLike | None = None, stream: StreamOrDevice = None,
) -> array:  # fmt: skip
    """Smallest element over axes that is no NaN; NaN where all are.

    Args:
        axis: an int, several, or None for all. keepdims: whether these axes stay, with one element.
        initial, where: as of `smelt.min`.

    Raises:
        ShapeError: a reduced axis is empty, and there is no `initial`.

    >>> import smelt
    >>> smelt.nanmin(smelt.array([1.0, float("nan"), 2.0]))
    array(1, dtype=float32)
    """
    check_stream(stream)
    return _extremum("nanmin", a, axis, keepdims, initial, where)


@remembered
def nanargmax(
    a: ArrayLike, /, axis: int | None = None, keepdims: bool = False, *, stream: StreamOrDevice = None
) -> array:
    """Index of the largest element along an axis that is no NaN, uint32; 0 where all are (an error in NumPy).

    Args:
        axis: None for the index into the flattened array. keepdims: whether the axis stays, with one element.

    >>> import smelt
    >>> smelt.nanargmax(smelt.array([1.0, float("nan"), 2.0]))
    array(2, dtype=uint32)
    """
    check_stream(stream)
    return argmax_of(_without(as_array(a), -math.inf), axis, keepdims)


@remembered
def nanargmin(
    a: ArrayLike, /, axis: int | None = None, keepdims: bool = False, *, stream: StreamOrDevice = None
) -> array:
    """Index of the smallest element along an axis that is no NaN, uint32; 0 where all are (an error in NumPy).

    Args:
        axis: None for the index into the flattened array. keepdims: whether the axis stays, with one element.

    >>> import smelt
    >>> smelt.nanargmin(smelt.array([3.0, float("nan"), 2.0]))
    array(2, dtype=uint32)
    """
    check_stream(stream)
    return argmin_of(_without(as_array(a), math.inf), axis, keepdims)


def _counts(x: array, axes: tuple[int, ...], dtype: DType) -> array:
    return convert(sum_of(logical_not(isnan(x)), axes, True), dtype)


def _computed_in(name: str, a: ArrayLike, dtype: DType | None, where: ArrayLike | None) -> tuple[array, DType]:
    """What is computed with, with a NaN for what `where` leaves out; and the dtype of the result."""
    x = floating_in(name, a, dtype)
    return only(name, widened(x), where, math.nan), x.dtype


@remembered
def nanmean(
    a: ArrayLike, /, axis: Axis = None, dtype: DType | None = None, keepdims: bool = False, *,
    where: ArrayLike | None = None, stream: StreamOrDevice = None,
) -> array:  # fmt: skip
    """Mean over axes of what is no NaN; NaN of nothing. Integers give float32.

    Args:
        axis: an int, several, or None for all. keepdims: whether these axes stay, with one element.
        dtype: to compute in, and of the result. where: bools that broadcast to a: which elements count.

    Raises:
        DTypeError: a `dtype` that is not floating or complex.

    >>> import smelt
    >>> smelt.nanmean(smelt.array([1.0, float("nan"), 2.0]))
    array(1.5, dtype=float32)
    """
    check_stream(stream)
    x, kind = _computed_in("nanmean", a, dtype, where)
    axes = normalize_axes("nanmean", x, axis)
    found = sum_of(_without(x, 0), axes, True) / _counts(x, axes, x.dtype)
    return convert(found if keepdims else found.squeeze(axes), kind)


def _variance(
    name: str, a: ArrayLike, axis: Axis, dtype: DType | None, less: float, mean: ArrayLike | None,
    where_: ArrayLike | None,
) -> tuple[array, DType]:  # fmt: skip
    """With the reduced axes, of one element; real."""
    x, kind = _computed_in(name, a, dtype, where_)
    axes = normalize_axes(name, x, axis)
    count = _counts(x, axes, x.dtype)
    deviation = x - (sum_of(_without(x, 0), axes, True) / count if mean is None else center_of(name, mean, x))
    # By the NaNs of x: those of an infinity less an infinite mean are the answer.
    deviation = where(isnan(x), constant(0, x.dtype, x.shape), deviation)
    if x.dtype.is_complex:
        count = real(count)
        squares = real(deviation) * real(deviation) + imag(deviation) * imag(deviation)
        kind = squares.dtype
    else:
        squares = deviation * deviation
    divisor = count - less
    nan = constant(math.nan, divisor.dtype, divisor.shape)
    return sum_of(squares, axes, True) / where(divisor > 0, divisor, nan), kind


@remembered
def nanvar(
    a: ArrayLike, /, axis: Axis = None, dtype: DType | None = None, keepdims: bool = False, *, ddof: float = 0,
    correction: float | None = None, mean: ArrayLike | None = None, where: ArrayLike | None = None,
    stream: StreamOrDevice = None,
) -> array:  # fmt: skip
    """Variance over axes of what is no NaN, divided by the count less `ddof`; NaN where that is not positive.

    Args:
        axis: an int, several, or None for all. keepdims: whether these axes stay, with one element.
        dtype: to compute in, and of the result.
        ddof, correction, mean, where: as of `smelt.var`.

    Raises:
        DTypeError: a `dtype` that is not floating or complex.

    >>> import smelt
    >>> smelt.nanvar(smelt.array([1.0, float("nan"), 3.0]))
    array(1, dtype=float32)
    """
    check_stream(stream)
    found, kind = _variance("nanvar", a, axis, dtype, correction_of("nanvar", ddof, correction), mean, where)
    return convert(found if keepdims else found.squeeze(normalize_axes("nanvar", as_array(a), axis)), kind)


@remembered
def nanstd(
    a: ArrayLike, /, axis: Axis = None, dtype: DType | None = None, keepdims: bool = False, *, ddof: float = 0,
    correction: float | None = None, mean: ArrayLike | None = None, where: ArrayLike | None = None,
    stream: StreamOrDevice = None,
) -> array:  # fmt: skip
    """Standard deviation over axes of what is no NaN: the square root of `nanvar`.

    Args:
        axis, dtype, keepdims, ddof, correction, mean, where: as of `nanvar`.

    >>> import smelt
    >>> smelt.nanstd(smelt.array([1.0, float("nan"), 3.0]))
    array(1, dtype=float32)
    """
    check_stream(stream)
    found, kind = _variance("nanstd", a, axis, dtype, correction_of("nanstd", ddof, correction), mean, where)
    found = root_of_squares(found)
    return convert(found if keepdims else found.squeeze(normalize_axes("nanstd", as_array(a), axis)), kind)


@partial(remembered, check=quantiles_checked("nanquantile", 1))
def nanquantile(
    a: ArrayLike, /, q: ArrayLike, axis: Axis = None, *, method: str = "linear", keepdims: bool = False,
    weights: ArrayLike | None = None, stream: StreamOrDevice = None,
) -> array:  # fmt: skip
    """`smelt.quantile` of what is no NaN; NaN of nothing.

    Args:
        q, axis, method, keepdims, weights: as of `quantile`.

    >>> import smelt
    >>> smelt.nanquantile(smelt.array([1.0, float("nan"), 3.0]), 0.5)
    array(2, dtype=float32)
    """
    check_stream(stream)
    return quantiles("nanquantile", a, q, 1.0, axis, method, keepdims, weights, skip_nan=True)


@partial(remembered, check=quantiles_checked("nanpercentile", 100))
def nanpercentile(
    a: ArrayLike, /, q: ArrayLike, axis: Axis = None, *, method: str = "linear", keepdims: bool = False,
    weights: ArrayLike | None = None, stream: StreamOrDevice = None,
) -> array:  # fmt: skip
    """`smelt.percentile` of what is no NaN; NaN of nothing.

    Args:
        q: from 0 to 100. axis, method, keepdims, weights: as of `quantile`.

    >>> import smelt
    >>> smelt.nanpercentile(smelt.array([1.0, float("nan"), 3.0]), 50)
    array(2, dtype=float32)
    """
    check_stream(stream)
    return quantiles("nanpercentile", a, q, 100.0, axis, method, keepdims, weights, skip_nan=True)


@remembered
def nanmedian(a: ArrayLike, /, axis: Axis = None, keepdims: bool = False, *, stream: StreamOrDevice = None) -> array:
    """Median over axes of what is no NaN; NaN of nothing.

    Args:
        axis: an int, several, or None for all. keepdims: whether these axes stay, with one element.

    >>> import smelt
    >>> smelt.nanmedian(smelt.array([1.0, float("nan"), 3.0, 9.0]))
    array(3, dtype=float32)
    """
    check_stream(stream)
    return quantiles("nanmedian", a, 0.5, 1.0, axis, "linear", keepdims, skip_nan=True, means=True)


@remembered
def nancumsum(
    a: ArrayLike, /, axis: int | None = None, *, dtype: DType | None = None, out: None = None,
    stream: StreamOrDevice = None,
) -> array:  # fmt: skip
    """Running sum along an axis (of the flattened array if None), in which NaN counts as 0.

    Args:
        dtype: to sum in, by default the array's, as in `smelt.cumsum`. out: None; NumPy's functions pass it.

    >>> import smelt
    >>> smelt.nancumsum(smelt.array([1.0, float("nan"), 3.0]))
    array([1, 1, 4], dtype=float32)
    """
    check_stream(stream)
    no_out("nancumsum", out)
    return cumsum(_without(as_array(a), 0), axis, dtype=dtype)


@remembered
def nancumprod(
    a: ArrayLike, /, axis: int | None = None, *, dtype: DType | None = None, out: None = None,
    stream: StreamOrDevice = None,
) -> array:  # fmt: skip
    """Running product along an axis (of the flattened array if None), in which NaN counts as 1.

    Args:
        dtype: to multiply in, by default the array's. out: None; NumPy's functions pass it.

    >>> import smelt
    >>> smelt.nancumprod(smelt.array([2.0, float("nan"), 3.0]))
    array([2, 2, 6], dtype=float32)
    """
    check_stream(stream)
    no_out("nancumprod", out)
    return cumprod(_without(as_array(a), 1), axis, dtype=dtype)
