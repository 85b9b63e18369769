"""Polynomials by linear algebra: roots, and fits by least squares. See `functions.polynomials`."""

from __future__ import annotations

import math
from typing import Literal, overload

import numpy as np

from smelt.ir import dtypes
from smelt.ir.errors import ArgumentTypeError, AttributeValueError, ShapeError, at_user_line, shown

from ..functions.arithmetic import abs as absolute
from ..functions.arithmetic import sqrt
from ..functions.creation import eye
from ..functions.dtypes import finfo
from ..functions.linear import matmul
from ..functions.logic import where
from ..functions.polynomials import numbers_of, products, vander, vector_of
from ..lazy.arguments import integer, number
from ..lazy.arrays import ArrayLike, StreamOrDevice, array, as_array, broadcast_to_shape, convert
from ..lazy.core import remembered
from ..lazy.movement import filled, joined, piece, to_shape
from ..lazy.operands import as_floating, exact_arrays
from ..lazy.streams import check_stream
from .factors import adjoint
from .spectra import eigvals, lstsq
from .systems import inv

__all__ = ["poly", "polyfit", "roots"]


@remembered
def poly(seq_of_zeros: ArrayLike, /, *, stream: StreamOrDevice = None) -> array:
    """The coefficients of the polynomial with these roots, of which the first is 1; or a matrix's characteristic one.

    Complex where the roots are, as those of a matrix: real parts of it are not taken, as their values are not known.

    Raises:
        ShapeError: neither a vector nor a square matrix.

    >>> import smelt
    >>> smelt.poly(smelt.array([1.0, 2.0]))
    array([1, -3, 2], dtype=float32)
    """
    check_stream(stream)
    given = numbers_of(as_array(seq_of_zeros))
    if given.ndim == 2:
        given = eigvals(as_floating(given))
    if given.ndim != 1:
        raise ShapeError(at_user_line(f"smelt.poly: a vector of roots or a square matrix is needed, is {given.aval}"))
    dtype = dtypes.to_float(given.dtype)
    given, n = to_shape(convert(given, dtype), (given.size, 1)), given.size
    count = 1 << max(n - 1, 0).bit_length()
    ones = [filled((k, 1), 1, dtype) for k in (n, count - n)]
    # Factors z - r, and others that are 1, multiplied in pairs.
    found = joined([joined([ones[0], -given], 1), joined([filled((count - n, 1), 0, dtype), ones[1]], 1)], 0)
    while found.shape[0] > 1:
        half = found.shape[0] // 2
        found = products(piece(found, 0, 0, half), piece(found, 0, half, 2 * half))
    return piece(to_shape(found, (count + 1,)), 0, count - n, count + 1)


@remembered
def roots(p: ArrayLike, /, *, stream: StreamOrDevice = None) -> array:
    """The roots of a polynomial, complex: the eigenvalues of its companion matrix.

    Args:
        p: n + 1 coefficients. The first must not be 0, for its value is not looked at; zeros at the end are roots.

    Raises:
        ShapeError: coefficients that are no vector. When it is evaluated, LibraryError: the first coefficient is 0.

    >>> import smelt
    >>> smelt.sort(smelt.real(smelt.roots(smelt.array([1.0, -3.0, 2.0]))))
    array([1, 2], dtype=float32)
    """
    check_stream(stream)
    series = vector_of("roots", p)
    dtype = dtypes.to_float(series.dtype)
    dtype = dtypes.float32 if dtype.size == 2 else dtype
    series, n = convert(series, dtype), max(series.shape[0] - 1, 0)
    if n == 0:
        return filled((0,), 0, dtypes.complex128 if dtype in (dtypes.float64, dtypes.complex128) else dtypes.complex64)
    row = to_shape(-piece(series, 0, 1, n + 1) / piece(series, 0, 0, 1), (1, n))
    return eigvals(joined([row, eye(n - 1, n, dtype=dtype)], 0))


@overload
def polyfit(
    x: ArrayLike, y: ArrayLike, deg: int, w: ArrayLike | None = None, *, rcond: float | None = None,
    full: Literal[False] = False, cov: Literal[False] = False, stream: StreamOrDevice = None,
) -> array: ...  # fmt: skip
@overload
def polyfit(
    x: ArrayLike, y: ArrayLike, deg: int, w: ArrayLike | None = None, *, rcond: float | None = None,
    full: bool = False, cov: bool | str = False, stream: StreamOrDevice = None,
) -> array | tuple[array, ...]: ...  # fmt: skip
@remembered
def polyfit(
    x: ArrayLike, y: ArrayLike, deg: int, w: ArrayLike | None = None, *, rcond: float | None = None,
    full: bool = False, cov: bool | str = False, stream: StreamOrDevice = None,
) -> array | tuple[array, ...]:  # fmt: skip
    """The coefficients of the polynomial of degree `deg` that is nearest to points, by least squares.

    Args:
        x: shape (m,). y: shape (m,), or (m, k) for k fits at a time.
        w: weights of the points' distances, shape (m,).
        rcond: up to which part of the largest singular value the others count as zero; by default m times the distance
            of 1 to the next number of the dtype.
        full: whether the sums of squares that are left, shape (1,) or (k,), the rank, the singular values and rcond
            follow.
        cov: whether the coefficients' covariances follow, shape (deg + 1, deg + 1) or (deg + 1, deg + 1, k), scaled so
            that the distances have the variance that they have; "unscaled" if the weights are 1 / σ of known σ.

    Returns:
        deg + 1 coefficients, the highest power first; shape (deg + 1,) or (deg + 1, k). With `full` a tuple of these
        and four more, with `cov` a pair.

    Raises:
        ShapeError: shapes that do not fit, or no points. AttributeValueError: a negative degree, another `cov`, or not
        more points than coefficients to scale covariances by. ArgumentTypeError: both `full` and `cov`.

    >>> import smelt
    >>> x = smelt.array([0.0, 1.0, 2.0])
    >>> smelt.round(smelt.polyfit(x, 3 * x + 1, 1), 4)
    array([3, 1], dtype=float32)
    """
    check_stream(stream)
    at, to, *more = exact_arrays([x, y] if w is None else [x, y, w])
    at, to = vector_of("polyfit", at), numbers_of(to)
    count = integer("polyfit", "deg", deg, 0) + 1
    if not at.size or to.ndim not in (1, 2) or to.shape[0] != at.shape[0]:
        message = f"smelt.polyfit: x must be some points and y values at them; {at.aval}, {to.aval}"
        raise ShapeError(at_user_line(message))
    weights = vector_of("polyfit", more[0]) if more else None
    if weights is not None and weights.shape != at.shape:
        raise ShapeError(at_user_line(f"smelt.polyfit: w must have a weight for each of x; {weights.aval}, {at.aval}"))
    dtype = dtypes.to_float(dtypes.promote(at.dtype, to.dtype))
    dtype = dtypes.float32 if dtype.size == 2 else dtype
    scaled = _is_scaled(cov, full, at.shape[0] - count)
    if rcond is not None and math.isnan(number("polyfit", "rcond", rcond)):
        raise AttributeValueError(at_user_line("smelt.polyfit: rcond must be a number, is NaN"))
    tolerance = at.shape[0] * float(finfo(dtype.real).eps) if rcond is None else number("polyfit", "rcond", rcond)
    left, right = vander(convert(at, dtype), count), convert(to, dtype)
    if weights is not None:
        each = convert(weights, dtype)
        left = left * to_shape(each, (*each.shape, 1))
        right = right * to_shape(each, (*each.shape, *(1,) * (right.ndim - 1)))
    size = sqrt((absolute(left) ** 2).sum(0))  # columns of one length: powers of large numbers are large
    size = where(size == 0, 1, size)
    found, rest, rank, values = lstsq(left / size, right, tolerance)
    found = found / to_shape(size, (count, *(1,) * (right.ndim - 1)))
    if full:
        return found, to_shape(rest, right.shape[1:] or (1,)), rank, values, as_array(tolerance, dtype.real)
    if scaled is None:
        return found
    lines = left / size
    covariances = inv(matmul(adjoint(lines), lines)) / (to_shape(size, (count, 1)) * size)
    if right.ndim > 1:
        covariances = broadcast_to_shape(to_shape(covariances, (count, count, 1)), (count, count, right.shape[1]))
    return found, covariances * (rest / (at.shape[0] - count)) if scaled else covariances


def _is_scaled(cov: bool | str, full: bool, free: int) -> bool | None:
    """Whether covariances are scaled by what is left; None if they are not asked for."""
    if not (cov == "unscaled" if isinstance(cov, str) else isinstance(cov, (bool, np.bool_))):
        message = f'smelt.polyfit: cov must be a bool or "unscaled", is {shown(cov)}'
        raise AttributeValueError(at_user_line(message))
    if not isinstance(cov, str) and not cov:
        return None
    if full:
        raise ArgumentTypeError(at_user_line("smelt.polyfit: full and cov exclude each other"))
    if cov == "unscaled":
        return False
    if free <= 0:
        message = "smelt.polyfit: covariances are scaled by what is left of more points than coefficients"
        raise AttributeValueError(at_user_line(f'{message}; cov="unscaled" needs no more'))
    return True
