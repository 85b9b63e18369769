"""Polynomials, by their coefficients with the highest power first, under NumPy's names."""

from __future__ import annotations

import numpy as np

from smelt.ir import dtypes
from smelt.ir.errors import AttributeValueError, ShapeError, at_user_line

from ..lazy.arguments import integer
from ..lazy.arrays import ArrayLike, StreamOrDevice, array, as_array, broadcast_shapes, broadcast_to_shape, convert
from ..lazy.core import remembered
from ..lazy.movement import checked_shape, filled, joined, piece, reversed_along, to_shape
from ..lazy.operands import arrays_of, exact_arrays
from ..lazy.streams import check_stream
from .reductions import widened
from .sorting import cumprod

__all__ = ["polyder", "polyint", "polymul", "polyval", "vander"]


#: Of a polynomial that is evaluated: each is a step of the graph.
MOST_COEFFICIENTS = 1 << 20


def numbers_of(x: array) -> array:
    """Bools as integers."""
    return convert(x, dtypes.int32) if x.dtype is dtypes.bool_ else x


@remembered
def polyval(p: ArrayLike, x: ArrayLike, /, *, stream: StreamOrDevice = None) -> array:
    """The polynomial p[0]·xⁿ⁻¹ + … + p[n - 1] at x, by Horner's rule, in the common dtype.

    Args:
        p: n coefficients along axis 0; the axes behind that broadcast with x.

    Raises:
        ShapeError: coefficients that are a scalar, or more than 2**20.

    >>> import smelt
    >>> smelt.polyval(smelt.array([1.0, 0.0, -1.0]), smelt.array([2.0, 3.0]))
    array([3, 8], dtype=float32)
    """
    check_stream(stream)
    series, at = map(numbers_of, arrays_of(p, x))
    if not series.ndim:
        raise ShapeError(at_user_line(f"smelt.polyval: the coefficients must have an axis, are {series.aval}"))
    if series.shape[0] > MOST_COEFFICIENTS:
        message = f"smelt.polyval: {series.shape[0]:,} coefficients are more than {MOST_COEFFICIENTS:,}, one step each"
        raise ShapeError(at_user_line(message))
    dtype = dtypes.promote(series.dtype, at.dtype)
    series, at = widened(convert(series, dtype)), widened(convert(at, dtype))
    shape = broadcast_shapes("polyval", series.shape[1:], at.shape)
    at = broadcast_to_shape(at, shape)
    found = filled(shape, 0, at.dtype)
    for k in range(series.shape[0]):
        term = to_shape(piece(series, 0, k, k + 1), series.shape[1:])
        found = found * at + broadcast_to_shape(term, shape)
    return convert(found, dtype)


@remembered
def vander(x: ArrayLike, N: int | None = None, increasing: bool = False, *, stream: StreamOrDevice = None) -> array:
    """Vandermonde's matrix: the columns are powers of a vector, the highest first.

    Args:
        x: shape (…, n). N: how many columns, n by default. increasing: whether the lowest power comes first.

    Returns:
        An array of shape (…, n, N).

    Raises:
        ShapeError: a scalar. AttributeValueError: a negative N.

    >>> import smelt
    >>> smelt.vander(smelt.array([2, 3]), 3)
    array([[4, 2, 1],
           [9, 3, 1]], dtype=int32)
    """
    check_stream(stream)
    base = numbers_of(as_array(x))
    if not base.ndim:
        raise ShapeError(at_user_line(f"smelt.vander: x must have an axis, is {base.aval}"))
    count = base.shape[-1] if N is None else integer("vander", "N", N, 0)
    checked_shape("vander", (*base.shape, count))
    if not count:
        return filled((*base.shape, 0), 0, base.dtype)
    ones = filled((*base.shape, 1), 1, base.dtype)
    repeated = broadcast_to_shape(to_shape(base, (*base.shape, 1)), (*base.shape, count - 1))
    found = cumprod(joined([ones, repeated], base.ndim), axis=base.ndim)
    return found if increasing else reversed_along(found, (base.ndim,))


@remembered
def polyder(p: ArrayLike, m: int = 1, *, stream: StreamOrDevice = None) -> array:
    """The coefficients of a polynomial's m-th derivative; none where nothing is left.

    Args:
        p: n coefficients along axis 0.

    Raises:
        ShapeError: coefficients that are a scalar. AttributeValueError: a negative m.

    >>> import smelt
    >>> smelt.polyder(smelt.array([1.0, 2.0, 3.0]))
    array([2, 2], dtype=float32)
    """
    check_stream(stream)
    found = _coefficients("polyder", p)
    for _ in range(min(integer("polyder", "m", m, 0), found.shape[0])):
        n = found.shape[0] - 1
        found = piece(found, 0, 0, n) * _along_first(np.arange(n, 0, -1), found)
    return to_shape(found, found.shape)


_MOST_INTEGRALS = 1000


@remembered
def polyint(p: ArrayLike, m: int = 1, k: ArrayLike = 0, *, stream: StreamOrDevice = None) -> array:
    """The coefficients of a polynomial's m-th integral, in a floating dtype.

    Args:
        p: n coefficients along axis 0.
        k: the constants of integration, the first one's first; or one for all.

    Raises:
        ShapeError: coefficients that are a scalar, or constants that are neither one nor m. AttributeValueError: a
        negative m, or one above 1,000.

    >>> import smelt
    >>> smelt.polyint(smelt.array([2.0, 2.0]), k=3)
    array([1, 2, 3], dtype=float32)
    """
    check_stream(stream)
    found, count = _coefficients("polyint", p), integer("polyint", "m", m, 0)
    if count > _MOST_INTEGRALS:
        message = f"smelt.polyint: m must be at most {_MOST_INTEGRALS}, is {count}"
        raise AttributeValueError(at_user_line(message))
    constants = as_array(k)
    dtype = dtypes.to_float(dtypes.promote(found.dtype, constants.dtype) if constants.ndim else found.dtype)
    found, constants = convert(found, dtype), convert(constants, dtype)
    if constants.ndim > 1 or (constants.ndim and constants.shape[0] not in (1, count)):
        raise ShapeError(at_user_line(f"smelt.polyint: k must be one constant or {count}, is {constants.aval}"))
    for i in range(count):
        n = found.shape[0]
        shape = (1, *found.shape[1:])
        own = constants if constants.size == 1 else piece(constants, 0, i, i + 1)
        own = broadcast_to_shape(to_shape(own, (1,) * len(shape)), shape)
        found = joined([found / _along_first(np.arange(n, 0, -1), found), own], 0)
    return found


@remembered
def polymul(a1: ArrayLike, a2: ArrayLike, /, *, stream: StreamOrDevice = None) -> array:
    """The coefficients of the product of two polynomials.

    Args:
        a1, a2: vectors, the highest power first.

    Returns:
        A vector of n1 + n2 - 1 coefficients for n1 and n2 of the two.

    Raises:
        ShapeError: coefficients that are no vectors.

    >>> import smelt
    >>> smelt.polymul(smelt.array([1.0, 1.0]), smelt.array([1.0, -1.0]))
    array([1, 0, -1], dtype=float32)
    """
    check_stream(stream)
    xs = [vector_of("polymul", x) for x in exact_arrays([a1, a2])]
    dtype = dtypes.promote(xs[0].dtype, xs[1].dtype)
    a, b = (convert(x, dtype) for x in xs)
    if not a.size or not b.size:
        return filled((0,), 0, dtype)
    return products(a, b)


def products(a: array, b: array) -> array:
    """The products of polynomials, whose coefficients stand along the last axis, (…, n) and (…, m), none empty."""
    *lead, n = a.shape
    m = b.shape[-1]
    rows = to_shape(a, (*lead, n, 1)) * to_shape(b, (*lead, 1, m))
    # Rows of n + m columns, read as such of one column less, are shifted by one each.
    wide = joined([rows, filled((*lead, n, n), 0, a.dtype)], len(lead) + 1)
    flat = piece(to_shape(wide, (*lead, n * (n + m))), len(lead), 0, n * (n + m - 1))
    return convert(to_shape(flat, (*lead, n, n + m - 1)).sum(-2), a.dtype)


def _coefficients(name: str, p: ArrayLike) -> array:
    found = numbers_of(as_array(p))
    if not found.ndim:
        raise ShapeError(at_user_line(f"smelt.{name}: the coefficients must have an axis, are {found.aval}"))
    return found


def vector_of(name: str, x: ArrayLike) -> array:
    """x as a vector of numbers. Raises ShapeError where it is none."""
    found = numbers_of(as_array(x))
    if found.ndim != 1:
        raise ShapeError(at_user_line(f"smelt.{name}: a vector is needed, is {found.aval}"))
    return found


def _along_first(values: np.ndarray, like: array) -> array:
    """Numbers along the first axis of an array, in its dtype."""
    dtype = like.dtype
    return convert(as_array(values.reshape(-1, *(1,) * (like.ndim - 1)).astype(np.int32)), dtype)
