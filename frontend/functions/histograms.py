"""Histograms over several variables, under NumPy's names."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from smelt.ir import dtypes
from smelt.ir.errors import ArgumentTypeError, AttributeValueError, ShapeError, at_user_line, shown
from smelt.ir.flags import flags_checked

from ..lazy.arguments import is_integer, is_list
from ..lazy.arrays import ArrayLike, StreamOrDevice, array, as_array, convert
from ..lazy.core import remembered
from ..lazy.movement import counting, filled, piece, to_shape
from ..lazy.streams import check_stream
from .joining import stack
from .logic import logical_and, where
from .reductions import sum as total
from .sorting import searchsorted
from .statistics import _MOST, _counted, _edges, _floats, _real

__all__ = ["histogram2d", "histogramdd"]


def _each(what: str, given: Any, count: int) -> list[Any]:
    """An entry for each variable, of one for all or a sequence of them."""
    if given is None or is_integer(given):
        return [given] * count
    if not is_list(given) or len(given) != count:
        message = f"smelt.histogramdd: {what} needs an entry for each of {count} variables, is {shown(given)}"
        raise ArgumentTypeError(at_user_line(message))
    return list(given)


@remembered
def _histogram(sample: ArrayLike, bins: Any, limits: Any, weights: ArrayLike | None, density: bool) -> list[array]:
    x = as_array(sample)
    _real("histogramdd", x)
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
        if math.prod(e.size - 1 for e in edges) > _MOST:
            raise AttributeValueError(at_user_line(f"smelt.histogramdd: {shown(bins)} bins are too many"))
        count = found.size - 1
        one = convert(searchsorted(found, values, "right"), dtypes.int32) - 1
        one = where(values == found[-1], count - 1, one)
        inside = logical_and(values >= found[0], values <= found[-1])
        valid = logical_and(valid, inside)
        place = place * count + where(inside, one, 0)
    counts = tuple(e.size - 1 for e in edges)
    if rows:
        hist = to_shape(_counted(place, valid, heavy, math.prod(counts)), counts)
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
        sample: shape (n, d): n points of d variables, not complex.
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
    hist, *edges = _histogram(sample, bins, range, weights, bool(density))
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
    if isinstance(of_both, array) or (is_list(of_both) and len(of_both) > 2):
        of_both = [of_both, of_both]  # the edges
    hist, edges = histogramdd(points, of_both, range, density, weights)
    return hist, edges[0], edges[1]
