"""Histograms over one variable and several, under NumPy's names."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from smelt.ir import dtypes
from smelt.ir.errors import ArgumentTypeError, AttributeValueError, ShapeError, at_user_line, shown
from smelt.ir.flags import flags_checked
from smelt.ir.keywords import explain_keywords

from ..lazy.arguments import integer, is_integer, is_list, number, word
from ..lazy.arrays import ArrayLike, StreamOrDevice, array, as_array, convert
from ..lazy.core import remembered
from ..lazy.movement import counting, filled, iota, permuted, piece, to_shape
from ..lazy.operands import as_floating
from ..lazy.streams import check_stream
from .bins import MOST_BINS, are_even, check_order, counted, order_checked, place_of_even, require_real
from .estimated_bins import RULES, estimated_bins
from .joining import concatenate, stack
from .logic import logical_and, where
from .reductions import max as largest
from .reductions import min as smallest
from .reductions import sum as total
from .reductions import widened
from .searching import host_values
from .sorting import searchsorted

__all__ = ["histogram", "histogram2d", "histogram_bin_edges", "histogramdd"]


class Histogram(NamedTuple):
    """What `histogram` returns."""

    hist: array
    bin_edges: array


def _edges(name: str, x: array, bins: Any, limits: Any) -> array:
    if not isinstance(bins, (array, np.ndarray, list, tuple)):
        count = integer(name, "bins", bins, 1)
        if count > MOST_BINS:
            raise AttributeValueError(at_user_line(f"smelt.{name}: {shown(bins)} bins are too many"))
        if limits is None and not x.size:
            limits = (0.0, 1.0)
        if limits is None:
            low, high = smallest(x), largest(x)
            flat = low == high
            low, high = where(flat, low - 0.5, low), where(flat, high + 0.5, high)
        else:
            low, high = (convert(as_array(v, x.dtype), x.dtype) for v in _ends(name, limits))
        steps = iota((count,), 0, x.dtype)
        return concatenate([steps * ((high - low) / count) + low, to_shape(high, (1,))])
    edges = as_array(bins)
    check_order(name, bins)
    if edges.ndim != 1 or edges.size < 2:
        raise ShapeError(at_user_line(f"smelt.{name}: bins must be a number or a vector of edges, are {edges.aval}"))
    require_real(name, edges)
    return convert(edges, dtypes.promote(x.dtype, dtypes.to_float(edges.dtype)))


def _ends(name: str, limits: Any) -> tuple[float, float]:
    """The first and last edge that are given."""
    if not is_list(limits) or len(limits) != 2:
        raise ArgumentTypeError(at_user_line(f"smelt.{name}: range must be a pair of numbers, is {shown(limits)}"))
    first, last = (number(name, "range", v) for v in limits)
    if not (math.isfinite(first) and math.isfinite(last) and first <= last):
        message = f"smelt.{name}: range must be finite and ascending, is {shown(limits)}"
        raise AttributeValueError(at_user_line(message))
    return (first, last) if first < last else (first - 0.5, last + 0.5)


def _number_of_bins(name: str, a: ArrayLike, bins: Any, limits: Any, weights: Any = None) -> Any:
    """`bins`, or their number if they are a word for how to find it."""
    if not isinstance(bins, str):
        return bins
    rule = word(name, "bins", bins, *RULES)
    if weights is not None:
        raise ArgumentTypeError(at_user_line(f'smelt.{name}: the number of bins, bins="{rule}", counts no weights'))
    x = as_array(a)
    require_real(name, x)
    ends = None if limits is None else _ends(name, limits)
    return estimated_bins(name, host_values(name, x, "give a number of bins").reshape(-1), rule, ends)


def _floats(name: str, a: ArrayLike) -> array:
    """The flattened array to count, in float32 or float64."""
    x = as_array(a)
    require_real(name, x)
    return widened(as_floating(to_shape(x, (x.size,))))


@partial(remembered, check=order_checked("histogram_bin_edges"))
def histogram_bin_edges(
    a: ArrayLike,
    /,
    bins: int | str | ArrayLike = 10,
    range: tuple[float, float] | None = None,
    *,
    stream: StreamOrDevice = None,
) -> array:
    """The edges of the bins of `histogram`.

    Args:
        bins, range: as of `histogram`.

    Returns:
        A vector of one edge more than there are bins.

    >>> import smelt
    >>> smelt.histogram_bin_edges(smelt.array([0.0, 4.0]), 2)
    array([0, 2, 4], dtype=float32)
    """
    check_stream(stream)
    bins = _number_of_bins("histogram_bin_edges", a, bins, range)
    return _edges("histogram_bin_edges", _floats("histogram_bin_edges", a), bins, range)


@partial(remembered, check=order_checked("histogram"))
def _histogram(a: ArrayLike, bins: Any, limits: Any, weights: ArrayLike | None, density: bool) -> list[array]:
    x = _floats("histogram", a)
    edges = _edges("histogram", x, bins, limits)
    count = edges.size - 1
    heavy = filled(x.shape, 1, counting(x.size)) if weights is None else as_array(weights)
    if heavy.dtype is dtypes.bool_:
        heavy = convert(heavy, counting(heavy.size))
    if heavy.size != x.size:
        raise ShapeError(at_user_line(f"smelt.histogram: weights {heavy.aval} for {x.size} elements"))
    heavy = to_shape(heavy, (x.size,))
    if x.size:
        valid = logical_and(x >= edges[0], x <= edges[-1])
        if are_even(x, bins, limits):
            place = place_of_even(where(valid, x, edges[0]), edges)
        else:
            place = convert(searchsorted(edges, x, "right"), dtypes.int32) - 1
            place = where(x == edges[-1], count - 1, place)
        hist = counted(place, valid, heavy, count)
    else:
        hist = filled((count,), 0, heavy.dtype)
    if density:
        shares = convert(hist, dtypes.promote(dtypes.to_float(hist.dtype), edges.dtype))
        hist = shares / (edges[1:] - edges[:-1]) / total(shares)
    return [hist, edges]


@flags_checked
def histogram(
    a: ArrayLike,
    /,
    bins: int | str | ArrayLike = 10,
    range: tuple[float, float] | None = None,
    density: bool = False,
    weights: ArrayLike | None = None,
    *,
    stream: StreamOrDevice = None,
) -> Histogram:
    """How many elements of the flattened array lie in each bin, and the edges of the bins.

    Bins contain their left end, the last one also its right end. NaN lies in none.

    Args:
        a: not complex; compared in float32, or in float64 where it is that.
        bins: how many of equal width, or their edges, ascending; or a rule for how many there are, "auto", "doane",
            "fd", "rice", "scott", "sqrt", "stone" or "sturges", which evaluates a.
        range: the first and last edge of bins of equal width; by default the least and greatest element.
        density: whether to divide by the number of elements and by the widths, so that the integral is 1.
        weights: what each element counts, of the shape of a.

    Returns:
        ``(hist, bin_edges)``: int32, or the dtype of the weights (of floats for a density); float32 or float64.
        Derivatives by the weights.

    Raises:
        ShapeError, AttributeValueError, ArgumentTypeError: bins, range or weights that are none.
        TraceError: a rule inside `smelt.compile` or `smelt.vmap`.

    >>> import smelt
    >>> smelt.histogram(smelt.array([1.0, 2.0, 1.0]), bins=2).hist
    array([2, 1], dtype=int32)
    """
    check_stream(stream)
    bins = _number_of_bins("histogram", a, bins, range, weights)
    return Histogram(*_histogram(a, bins, range, weights, bool(density)))


def _each(what: str, given: Any, count: int) -> list[Any]:
    """An entry for each variable, of one for all or a sequence of them."""
    if given is None or is_integer(given):
        return [given] * count
    if not is_list(given) or len(given) != count:
        message = f"smelt.histogramdd: {what} needs an entry for each of {count} variables, is {shown(given)}"
        raise ArgumentTypeError(at_user_line(message))
    return list(given)


@partial(remembered, check=order_checked("histogramdd"))
def _of_rows(sample: ArrayLike, bins: Any, limits: Any, weights: ArrayLike | None, density: bool) -> list[array]:
    x = as_array(sample)
    if is_list(sample) and x.ndim == 2:  # of variables
        x = permuted(x, (1, 0))
    if x.ndim == 1:
        x = to_shape(x, (x.size, 1))
    require_real("histogramdd", x)
    if x.ndim != 2 or not 0 < x.shape[1] <= 64:
        message = f"smelt.histogramdd: sample must be a matrix with a column for each of 1 to 64 variables, is {x.aval}"
        raise ShapeError(at_user_line(message))
    rows, variables = x.shape
    heavy = filled((rows,), 1, counting(rows)) if weights is None else as_array(weights)
    if heavy.shape != (rows,):
        raise ShapeError(at_user_line(f"smelt.histogramdd: weights {heavy.aval} for {rows} rows"))
    if heavy.dtype is dtypes.bool_:
        heavy = convert(heavy, counting(rows))
    edges: list[array] = []
    place, valid = filled((rows,), 0, dtypes.int32), filled((rows,), True, dtypes.bool_)
    for k, (some, limit) in enumerate(zip(_each("bins", bins, variables), _each("range", limits, variables))):
        values = _floats("histogramdd", piece(x, 1, k, k + 1))
        found = _edges("histogramdd", values, some, limit)
        edges.append(found)
        if math.prod(e.size - 1 for e in edges) > MOST_BINS:
            raise AttributeValueError(at_user_line(f"smelt.histogramdd: {shown(bins)} bins are too many"))
        count = found.size - 1
        one = convert(searchsorted(found, values, "right"), dtypes.int32) - 1
        one = where(values == found[-1], count - 1, one)
        inside = logical_and(values >= found[0], values <= found[-1])
        valid = logical_and(valid, inside)
        place = place * count + where(inside, one, 0)
    counts = tuple(e.size - 1 for e in edges)
    if rows:
        hist = to_shape(counted(place, valid, heavy, math.prod(counts)), counts)
    else:
        hist = filled(counts, 0, heavy.dtype)
    if density:
        shares = convert(hist, dtypes.promote(dtypes.to_float(hist.dtype), edges[0].dtype))
        hist = shares / total(shares)
        for k, found in enumerate(edges):
            hist = hist / to_shape(found[1:] - found[:-1], (counts[k], *[1] * (variables - k - 1)))
    return [hist, *edges]


@flags_checked
def histogramdd(
    sample: ArrayLike,
    /,
    bins: int | Sequence[int | ArrayLike] = 10,
    range: Sequence[tuple[float, float] | None] | None = None,
    density: bool = False,
    weights: ArrayLike | None = None,
    *,
    stream: StreamOrDevice = None,
) -> tuple[array, list[array]]:
    """How many rows lie in each bin of a grid; see `histogram`.

    Args:
        sample: shape (n, d): n points of d variables, not complex; shape (n,), of one; or a list of d vectors.
        bins: how many of equal width on each axis, or for each variable how many or their edges.
        range: for each variable the first and last edge, or None.
        density: whether to divide by the number of rows and the sizes of the bins.
        weights: what each row counts.

    Returns:
        ``(hist, edges)``: the counts on d axes, and for each variable its edges.

    Raises:
        ShapeError, AttributeValueError, ArgumentTypeError: a sample, bins, range or weights that are none.

    >>> import smelt
    >>> smelt.histogramdd(smelt.array([[0.0, 0.0], [1.0, 1.0], [0.9, 0.8]]), 2)[0]
    array([[1, 0],
           [0, 2]], dtype=int32)
    """
    check_stream(stream)
    hist, *edges = _of_rows(sample, bins, range, weights, bool(density))
    return hist, edges


@flags_checked
def histogram2d(
    x: ArrayLike,
    y: ArrayLike,
    /,
    bins: int | Sequence[int | ArrayLike] = 10,
    range: Sequence[tuple[float, float] | None] | None = None,
    density: bool = False,
    weights: ArrayLike | None = None,
    *,
    stream: StreamOrDevice = None,
) -> tuple[array, array, array]:
    """How many points (x, y) lie in each bin of a grid, and the edges along x and y; see `histogramdd`.

    Raises:
        ShapeError: x and y are no vectors of one size; and what `histogramdd` raises.

    >>> import smelt
    >>> smelt.histogram2d(smelt.array([0.0, 1.0]), smelt.array([0.0, 2.0]), 2)[0]
    array([[1, 0],
           [0, 1]], dtype=int32)
    """
    check_stream(stream)
    first, second = as_array(x), as_array(y)
    if first.ndim != 1 or first.shape != second.shape:
        message = f"smelt.histogram2d: x and y must be vectors of one size, are {first.aval} and {second.aval}"
        raise ShapeError(at_user_line(message))
    dtype = dtypes.promote(first.dtype, second.dtype)
    points = stack([convert(first, dtype), convert(second, dtype)], axis=1)
    of_both: Any = bins
    if isinstance(of_both, (array, np.ndarray)):
        edges = as_array(of_both)
        is_pair = edges.shape == (2,) and edges.dtype.is_integer  # of numbers of bins
        of_both = host_values("histogram2d", edges, "give a list of two ints").tolist() if is_pair else edges
    if isinstance(of_both, array) or (is_list(of_both) and len(of_both) > 2):
        of_both = [of_both, of_both]  # the edges
    hist, (rows, columns) = histogramdd(points, of_both, range, density, weights)
    return hist, rows, columns


explain_keywords(globals())
