"""Polynomials, by their coefficients with the highest power first, under NumPy's names."""

from __future__ import annotations

from smelt.ir import dtypes
from smelt.ir.errors import ShapeError, at_user_line

from ..lazy.arguments import integer
from ..lazy.arrays import ArrayLike, StreamOrDevice, array, as_array, broadcast_shapes, broadcast_to_shape, convert
from ..lazy.core import remembered
from ..lazy.movement import checked_shape, filled, joined, piece, reversed_along, to_shape
from ..lazy.streams import check_stream
from .sorting import cumprod

__all__ = ["polyval", "vander"]


def _numbers(x: array) -> array:
    return convert(x, dtypes.int32) if x.dtype is dtypes.bool_ else x


@remembered
def polyval(p: ArrayLike, x: ArrayLike, /, *, stream: StreamOrDevice = None) -> array:
    """The polynomial p[0]·xⁿ⁻¹ + … + p[n - 1] at x, by Horner's rule, in the common dtype.

    Args:
        p: n coefficients along axis 0; the axes behind that broadcast with x.

    Raises:
        ShapeError: coefficients that are a scalar.

    >>> import smelt
    >>> smelt.polyval(smelt.array([1.0, 0.0, -1.0]), smelt.array([2.0, 3.0]))
    array([3, 8], dtype=float32)
    """
    check_stream(stream)
    series, at = _numbers(as_array(p)), _numbers(as_array(x))
    if not series.ndim:
        raise ShapeError(at_user_line(f"smelt.polyval: the coefficients must have an axis, are {series.aval}"))
    dtype = dtypes.promote(series.dtype, at.dtype)
    series, at = convert(series, dtype), convert(at, dtype)
    shape = broadcast_shapes("polyval", series.shape[1:], at.shape)
    at = broadcast_to_shape(at, shape)
    found = filled(shape, 0, dtype)
    for k in range(series.shape[0]):
        term = to_shape(piece(series, 0, k, k + 1), series.shape[1:])
        found = found * at + broadcast_to_shape(term, shape)
    return found


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
    base = _numbers(as_array(x))
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
