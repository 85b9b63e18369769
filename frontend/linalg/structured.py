"""Matrices made of others, condition numbers, and systems whose unknowns are tensors."""

from __future__ import annotations

import math

from smelt.ir import dtypes
from smelt.ir.errors import ArgumentTypeError, ShapeError, at_user_line, shown

from ..functions.arithmetic import divide, multiply
from ..functions.index_functions import take
from ..functions.logic import isnan, where
from ..functions.reductions import max as largest
from ..functions.reductions import min as smallest
from ..lazy.arguments import integer
from ..lazy.arrays import ArrayLike, StreamOrDevice, array, as_array, convert
from ..lazy.core import remembered
from ..lazy.movement import Axes, filled, iota, joined, many_axes, permuted, to_shape
from ..lazy.operands import constant
from ..lazy.streams import check_stream
from .factors import cholesky
from .norms import Order, matrix_norm, order_of
from .spectra import svdvals
from .systems import inv, solve

__all__ = ["block_diag", "cho_factor", "cond", "tensorinv", "tensorsolve", "toeplitz"]


@remembered
def cond(x: ArrayLike, p: Order = None, *, stream: StreamOrDevice = None) -> array:
    """The condition numbers of matrices: how much a system with them enlarges relative errors.

    Args:
        x: shape (…, m, n), float32, float64 or complex.
        p: the order of the norm, of square matrices as in `matrix_norm`: ‖x‖·‖x⁻¹‖. None and 2: the greatest singular
            value divided by the least one, -2 the least by the greatest.

    Returns:
        An array of shape (…), real; infinite where singular values are divided by 0.

    Raises:
        ShapeError: no matrices, or no square ones. AttributeValueError: another order. When it is evaluated,
        LibraryError: an inverse that does not exist.

    >>> import smelt
    >>> smelt.linalg.cond(smelt.array([[2.0, 0.0], [0.0, 0.5]]))
    array(4, dtype=float32)
    """
    check_stream(stream)
    given, order = as_array(x), order_of("linalg.cond", p)
    if not all(given.shape[-2:]):
        raise ShapeError(at_user_line(f"smelt.linalg.cond: matrices without elements; x {given.aval}"))
    if order is None or (not isinstance(order, str) and abs(order) == 2):
        values = svdvals(given)
        high, low = largest(values, -1), smallest(values, -1)
        above, below = (low, high) if order == -2 else (high, low)
        nothing = below == 0
        infinity = constant(math.inf, high.dtype, high.shape)
        return where(isnan(high), high, where(nothing, infinity, divide(above, where(nothing, 1, below))))
    return multiply(matrix_norm(given, ord=order), matrix_norm(inv(given), ord=order))


@remembered
def cho_factor(a: ArrayLike, lower: bool = False, *, stream: StreamOrDevice = None) -> tuple[array, bool]:
    """The Cholesky factor and whether it is lower triangular: what `cho_solve` takes. See `cholesky`.

    >>> import smelt
    >>> factor = smelt.linalg.cho_factor(smelt.array([[4.0, 2.0], [2.0, 5.0]]))
    >>> smelt.linalg.cho_solve(factor, smelt.array([6.0, 7.0]))
    array([1, 1], dtype=float32)
    """
    check_stream(stream)
    return cholesky(a, upper=not lower), bool(lower)


@remembered
def block_diag(*arrays: ArrayLike, stream: StreamOrDevice = None) -> array:
    """Matrices along the diagonal of one, in their common dtype, with zeros around them; a vector is a row.

    Raises:
        ShapeError: more than two axes. ArgumentTypeError: no matrices.

    >>> import smelt
    >>> smelt.linalg.block_diag(smelt.array([[1, 2]]), smelt.array([[3]]))
    array([[1, 2, 0],
           [0, 0, 3]], dtype=int32)
    """
    check_stream(stream)
    xs = [as_array(a) for a in arrays]
    if not xs:
        raise ArgumentTypeError(at_user_line("smelt.linalg.block_diag: needs at least one matrix"))
    dtype = xs[0].dtype
    for x in xs:
        dtype = dtypes.promote(dtype, x.dtype)
        if x.ndim > 2:
            raise ShapeError(at_user_line(f"smelt.linalg.block_diag: takes matrices, got {x.aval}"))
    xs = [convert(to_shape(x, (1,) * (2 - x.ndim) + x.shape), dtype) for x in xs]
    width, left, rows = sum(x.shape[1] for x in xs), 0, []
    for x in xs:
        height, own = x.shape
        sides = [filled((height, left), 0, dtype), x, filled((height, width - left - own), 0, dtype)]
        rows.append(joined(sides, 1))
        left += own
    return joined(rows, 0)


@remembered
def toeplitz(c: ArrayLike, r: ArrayLike | None = None, *, stream: StreamOrDevice = None) -> array:
    """The matrix with the first column c and the first row r, whose diagonals are constant.

    Args:
        c: a vector, the first column.
        r: the first row, whose first element is not read; by default c (conjugated if complex).

    Raises:
        ShapeError: no vectors.

    >>> import smelt
    >>> smelt.linalg.toeplitz(smelt.array([1, 2, 3]), smelt.array([1, 8]))
    array([[1, 8],
           [2, 1],
           [3, 2]], dtype=int32)
    """
    check_stream(stream)
    column = as_array(c)
    row = column.conj() if r is None else as_array(r)
    if column.ndim != 1 or row.ndim != 1:
        raise ShapeError(at_user_line(f"smelt.linalg.toeplitz: takes vectors; c {column.aval}, r {row.aval}"))
    dtype = dtypes.promote(column.dtype, row.dtype)
    m, n = column.size, row.size
    if not m or not n:
        return filled((m, n), 0, dtype)
    both = joined([convert(column, dtype)[::-1], convert(row, dtype)[1:]], 0)
    return take(both, (m - 1) - iota((m, n), 0) + iota((m, n), 1), axis=0)


@remembered
def tensorsolve(a: ArrayLike, b: ArrayLike, axes: Axes | None = None, *, stream: StreamOrDevice = None) -> array:
    """The x with ``tensordot(a, x, x.ndim) == b``.

    Args:
        a: of shape b.shape + x.shape, with as many elements in both. axes: moved to the end of a before.

    Raises:
        ShapeError: shapes that do not fit. When it is evaluated, LibraryError: a singular system.

    >>> import smelt
    >>> a = smelt.eye(6).reshape(2, 3, 6)
    >>> smelt.linalg.tensorsolve(a, smelt.ones((2, 3)))
    array([1, 1, 1, 1, 1, 1], dtype=float32)
    """
    check_stream(stream)
    x, y = as_array(a), as_array(b)
    if axes is not None:
        last = many_axes("linalg.tensorsolve", axes, x.shape)
        x = permuted(x, (*(i for i in range(x.ndim) if i not in last), *last))
    shape = x.shape[y.ndim :]
    size = math.prod(shape)
    if x.ndim < y.ndim or math.prod(x.shape[: y.ndim]) != size or y.size != size:
        message = f"smelt.linalg.tensorsolve: a must have b's elements squared; a {x.aval}, b {y.aval}"
        raise ShapeError(at_user_line(message))
    return to_shape(solve(to_shape(x, (size, size)), to_shape(y, (size,))), shape)


@remembered
def tensorinv(a: ArrayLike, ind: int = 2, *, stream: StreamOrDevice = None) -> array:
    """The inverse with respect to ``tensordot(a, b, ind)``, of shape a.shape[ind:] + a.shape[:ind].

    Args:
        ind: how many axes stand for rows; they have as many elements as the others.

    Raises:
        ShapeError: axes that do not fit. When it is evaluated, LibraryError: a singular system.

    >>> import smelt
    >>> smelt.linalg.tensorinv(smelt.eye(6).reshape(2, 3, 6)).shape
    (6, 2, 3)
    """
    check_stream(stream)
    x, count = as_array(a), integer("linalg.tensorinv", "ind", ind, 1)
    rows, columns = x.shape[:count], x.shape[count:]
    size = math.prod(rows)
    if size != math.prod(columns):
        message = f"smelt.linalg.tensorinv: {shown(rows)} and {shown(columns)} must have as many elements; a {x.aval}"
        raise ShapeError(at_user_line(message))
    return to_shape(inv(to_shape(x, (size, size))), (*columns, *rows))
