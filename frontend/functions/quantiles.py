"""Quantiles, under NumPy's names."""

from __future__ import annotations

import math
from functools import partial

import numpy as np

from smelt.ir import dtypes
from smelt.ir.errors import ArgumentTypeError, AttributeValueError, DTypeError, ShapeError, at_user_line, shown

from ..lazy.arguments import word
from ..lazy.arrays import ArrayLike, StreamOrDevice, array, as_array, broadcast_to_shape, convert, from_host
from ..lazy.core import remembered
from ..lazy.movement import counting, filled, permuted, piece, to_shape
from ..lazy.operands import as_floating
from ..lazy.streams import check_stream
from .arithmetic import clip, maximum
from .index_functions import take_along_axis
from .indexing import holds_array, host_array
from .logic import isnan, where
from .reductions import Axis, kept_shape, normalize_axes, widened
from .reductions import sum as total
from .rounding import floor
from .sorting import argsort, cumsum
from .sorting import sort as in_order
from .weights import quantiles_checked, weights_of

__all__ = ["percentile", "quantile"]

#: Methods of quantiles: where the first and last element lie (alpha, beta); or how the place is rounded.
_METHODS = {
    "linear": (1.0, 1.0), "lower": (1.0, 1.0), "higher": (1.0, 1.0), "midpoint": (1.0, 1.0), "nearest": (1.0, 1.0),
    "interpolated_inverted_cdf": (0.0, 1.0), "hazen": (0.5, 0.5), "weibull": (0.0, 0.0),
    "median_unbiased": (1 / 3, 1 / 3), "normal_unbiased": (3 / 8, 3 / 8),
    "inverted_cdf": (0.0, 1.0), "averaged_inverted_cdf": (0.0, 1.0), "closest_observation": (-0.5, 1.5),
}  # fmt: skip


def _real(name: str, x: array) -> None:
    if x.dtype.is_complex:
        raise DTypeError(at_user_line(f"smelt.{name}: complex numbers are not counted or ordered here; a {x.aval}"))


@partial(remembered, check=quantiles_checked("quantile", 1))
def quantile(
    a: ArrayLike,
    /,
    q: ArrayLike,
    axis: Axis = None,
    *,
    method: str = "linear",
    keepdims: bool = False,
    weights: ArrayLike | None = None,
    stream: StreamOrDevice = None,
) -> array:
    """The elements below which lies a part q of all, over axes; between two elements by `method`. NaN if there is one.

    Args:
        a: not complex; integers give float32.
        q: from 0 to 1, any shape: its axes come first in the result.
        method: NumPy's "linear", "lower", "higher", "midpoint", "nearest", "interpolated_inverted_cdf", "hazen",
            "weibull", "median_unbiased", "normal_unbiased", "inverted_cdf", "averaged_inverted_cdf" or
            "closest_observation".
        axis: an int, several, or None for all. keepdims: whether these axes stay, with one element.
        weights: how much each element counts, not negative, for the method "inverted_cdf"; of the shape of a, or of the
            extents of `axis`, in its order. NaN where one is negative or NaN, or their sum is 0 or infinite.

    Raises:
        ShapeError: no elements, weights of another shape.
        AttributeValueError: a q that is known is out of range, a weight that is known is negative, another method.

    >>> import smelt
    >>> smelt.quantile(smelt.array([1.0, 2.0, 3.0, 4.0]), 0.5)
    array(2.5, dtype=float32)
    """
    check_stream(stream)
    return quantiles("quantile", a, q, 1.0, axis, method, keepdims, weights)


@partial(remembered, check=quantiles_checked("percentile", 100))
def percentile(
    a: ArrayLike,
    /,
    q: ArrayLike,
    axis: Axis = None,
    *,
    method: str = "linear",
    keepdims: bool = False,
    weights: ArrayLike | None = None,
    stream: StreamOrDevice = None,
) -> array:
    """`quantile` with q from 0 to 100.

    Args:
        q, axis, method, keepdims, weights: as of `quantile`.

    >>> import smelt
    >>> smelt.percentile(smelt.array([1.0, 2.0, 3.0, 4.0]), [0, 50, 100])
    array([1, 2.5, 4], dtype=float32)
    """
    check_stream(stream)
    return quantiles("percentile", a, q, 100.0, axis, method, keepdims, weights)


def quantiles(
    name: str, a: ArrayLike, q: ArrayLike, most: float, axis: Axis, method: str, keepdims: bool,
    weights: ArrayLike | None = None, skip_nan: bool = False, means: bool = False,
) -> array:  # fmt: skip
    """Quantiles of a over axes; `skip_nan`: of what is no NaN; `means`: the mean of two between which they lie."""
    x = as_floating(a)
    _real(name, x)
    dtype, axes = x.dtype, normalize_axes(name, x, axis)
    word(name, "method", method, *_METHODS)
    part = _parts(name, q, most)
    n = math.prod(x.shape[i] for i in axes)
    if not n and not skip_nan:
        raise ShapeError(at_user_line(f"smelt.{name}: no elements along axis {axes} of shape {x.shape}"))
    kept = tuple(i for i in range(x.ndim) if i not in axes)
    rest = tuple(x.shape[i] for i in kept)
    ordered = widened(to_shape(permuted(x, kept + axes), (*rest, n)))
    out = (*part.shape, *(kept_shape(x.shape, axes) if keepdims else rest))
    if not n or not math.prod(out):
        return filled(out, math.nan, dtype)
    if weights is not None:
        if method != "inverted_cdf":
            message = f"smelt.{name}: weights need the method 'inverted_cdf', which gives an element, not {method!r}"
            raise AttributeValueError(at_user_line(message))
        heavy = weights_of(name, x, as_array(weights), axis)
        _real(name, heavy)
        found = _weighted(part, ordered, to_shape(permuted(heavy, kept + axes), (*rest, n)), skip_nan)
        return convert(to_shape(permuted(found, (len(rest), *range(len(rest)))), out), dtype)
    ordered = in_order(ordered, -1)
    some = (*rest, part.size)
    if skip_nan:
        number_of = to_shape(total(ordered == ordered, -1), (*rest, 1))
        place = _place(part, convert(maximum(number_of, 1), part.dtype), method)
    else:
        place = _place(part, as_array(float(n), part.dtype), method)
    place = broadcast_to_shape(place, some)
    low = floor(place)
    above = broadcast_to_shape(convert(place - low, ordered.dtype), some)
    first = convert(low, counting(n))
    second = where(above > 0, first + 1, first)
    before, behind = (take_along_axis(ordered, clip(i, 0, n - 1), -1) for i in (first, second))
    difference = behind - before
    if means:
        found = before * 0.5 + behind * 0.5
    else:
        found = where(above < 0.5, before + difference * above, behind - difference * (1 - above))
    found = where(above == 0, before, found)
    if not skip_nan:
        last = piece(ordered, ordered.ndim - 1, n - 1, n)  # a NaN is sorted last
        found = where(isnan(last), last, found)
    found = permuted(found, (len(rest), *range(len(rest))))
    return convert(to_shape(found, out), dtype)


def _weighted(part: array, x: array, weights: array, skip_nan: bool) -> array:
    """Along the last axis of x: the first element up to which lie such parts of all weights."""
    order = argsort(x, -1)
    x, weights = take_along_axis(x, order, -1), take_along_axis(convert(weights, dtypes.float64), order, -1)
    if skip_nan:
        weights = where(isnan(x), 0.0, weights)
    below = cumsum(where(weights >= 0, weights, math.nan), -1)
    whole = piece(below, below.ndim - 1, x.shape[-1] - 1, x.shape[-1])
    below = to_shape(below / whole, (*x.shape[:-1], 1, x.shape[-1]))
    before = (below < to_shape(part, (part.size, 1))) | (below == 0)
    found = take_along_axis(x, clip(total(before, -1), 0, x.shape[-1] - 1), -1)
    last = piece(x, x.ndim - 1, x.shape[-1] - 1, x.shape[-1])
    known = (whole > 0) & (whole < math.inf)
    return where(known if skip_nan else known & ~isnan(last), found, math.nan)


def _parts(name: str, q: ArrayLike, most: float) -> array:
    """q as a part of one, in float64 where it is known."""
    if isinstance(q, array) or (isinstance(q, (list, tuple)) and holds_array(q)):
        q = as_array(q)
        _real(name, q)
        found = widened(as_floating(q))
        return found if most == 1 else found / most
    host = host_array(q) if isinstance(q, (list, tuple, np.ndarray, int, float)) else as_array(q)._host()
    if host.dtype.kind not in "biuf":
        raise ArgumentTypeError(at_user_line(f"smelt.{name}: q must be numbers, is {shown(q)}"))
    host = host.astype(np.float64) / most
    if host.size and not (host.min() >= 0 and host.max() <= 1):
        raise AttributeValueError(at_user_line(f"smelt.{name}: q must lie within 0 and {most:g}, is {shown(q)}"))
    return from_host(host, dtypes.float64)


def _place(part: array, n: array, method: str) -> array:
    """Where among n elements in order the quantiles lie."""
    part = to_shape(part, (part.size,))
    alpha, beta = _METHODS[method]
    place = part * (n - 1) if alpha == beta == 1 else n * part + (alpha + part * (1 - alpha - beta)) - 1
    if method in ("inverted_cdf", "averaged_inverted_cdf", "closest_observation"):
        low = floor(place)
        is_low = place == low
        if method == "closest_observation":  # the even one, counted from 1
            is_low = is_low & (low - 2 * floor(low / 2) == 1)
        place = where(is_low, low + 0.5 if method == "averaged_inverted_cdf" else low, low + 1)
    place = maximum(where(place > n - 1, n - 1, place), 0)
    low = floor(place)
    if method == "lower":
        return low
    if method == "higher":
        return where(place > low, low + 1, low)
    if method == "midpoint":
        return where(place > low, low + 0.5, low)
    if method == "nearest":  # ties to even
        up = (place - low > 0.5) | ((place - low == 0.5) & (low - 2 * floor(low / 2) == 1))
        return where(up, low + 1, low)
    return place
