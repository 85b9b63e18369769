"""Diagonals and triangles of matrices."""

from __future__ import annotations

from smelt.ir import dtypes
from smelt.ir.dtypes import DType
from smelt.ir.errors import ShapeError, at_user_line
from smelt.ir.op import registry as ops

from ..lazy.arguments import dtype_of, integer
from ..lazy.arrays import (
    ArrayLike,
    StreamOrDevice,
    array,
    as_array,
    broadcast_to_shape,
    convert,
    emit_elementwise,
    scalar_array,
)
from ..lazy.core import remembered
from ..lazy.movement import (
    checked_shape,
    counting,
    filled,
    iota,
    many_axes,
    padded,
    permuted,
    piece,
    select,
    sliced,
    to_shape,
)
from ..lazy.streams import check_stream
from .reductions import sum as total

__all__ = ["diag", "diagonal", "trace", "tril", "triu"]


@remembered
def diagonal(
    a: ArrayLike, offset: int = 0, axis1: int = 0, axis2: int = 1, stream: StreamOrDevice = None
) -> array:
    """The elements [i, i + offset] of two axes, as the last axis of the result.

    Args:
        axis1, axis2: the two axes; they are different ones.

    >>> import smelt
    >>> smelt.diagonal(smelt.array([[1, 2], [3, 4]]))
    array([1, 4], dtype=int32)
    """
    check_stream(stream)
    return diagonal_of("diagonal", as_array(a), offset, axis1, axis2)


def diagonal_of(name: str, x: array, offset: int, axis1: int, axis2: int) -> array:
    """`diagonal` with errors that name another function."""
    if x.ndim < 2:
        raise ShapeError(at_user_line(f"smelt.{name}: needs at least two axes; a {x.aval}"))
    i, j = many_axes(name, (axis1, axis2), x.shape)
    offset = integer(name, "offset", offset)
    x = permuted(x, (*(k for k in range(x.ndim) if k not in (i, j)), i, j))
    *lead, rows, columns = x.shape
    top, left = max(-offset, 0), max(offset, 0)
    n = max(min(rows - top, columns - left), 0)
    if not n:
        return filled((*lead, 0), 0, x.dtype)
    none = [0] * len(lead)
    square = sliced(x, [*none, top, left], [*lead, top + n, left + n])
    return piece(to_shape(square, (*lead, n * n)), len(lead), 0, n * n, n + 1)


@remembered
def diag(a: ArrayLike, /, k: int = 0, *, stream: StreamOrDevice = None) -> array:
    """The k-th diagonal of a matrix, or a matrix with a vector as its k-th diagonal.

    Raises:
        ShapeError: neither a vector nor a matrix.

    >>> import smelt
    >>> smelt.diag(smelt.array([1, 2]), 1)
    array([[0, 1, 0],
           [0, 0, 2],
           [0, 0, 0]], dtype=int32)
    """
    check_stream(stream)
    x, k = as_array(a), integer("diag", "k", k)
    if x.ndim == 2:
        return diagonal_of("diag", x, k, 0, 1)
    if x.ndim != 1:
        raise ShapeError(at_user_line(f"smelt.diag: needs a vector or a matrix; a {x.aval}"))
    n, zero = x.size, scalar_array(0, x.dtype)
    if not n:
        return filled(checked_shape("diag", (abs(k), abs(k))), 0, x.dtype)
    # n elements between the entries put them on the diagonal of an n-by-n matrix.
    square = to_shape(padded(x, zero, (0,), (0,), (n,)), (n, n))
    down, right = max(-k, 0), max(k, 0)
    checked_shape("diag", (n + abs(k), n + abs(k)))
    return padded(square, zero, (down, right), (right, down))


def diagonal_offset(name: str, k: int, rows: int, columns: int) -> int:
    """The number of a diagonal; the first one beyond the matrix stands for all that lie outside."""
    return max(min(integer(name, "k", k), columns + 1), -rows - 1)


def triangle_mask(rows: int, columns: int, k: int) -> array:
    """True on and below the k-th diagonal."""
    shape = (rows, columns)
    i, j = iota(shape, 0), iota(shape, 1)
    if k:
        i = emit_elementwise(ops["add"], i, filled(shape, k, i.dtype))
    return emit_elementwise(ops["greater_equal"], i, j)


def _triangle(name: str, x: ArrayLike, k: int, lower: bool) -> array:
    x = as_array(x)
    if x.ndim < 2:
        raise ShapeError(at_user_line(f"smelt.{name}: needs at least two axes; x {x.aval}"))
    rows, columns = x.shape[-2:]
    k = diagonal_offset(name, k, rows, columns)
    mask = broadcast_to_shape(triangle_mask(rows, columns, k if lower else k - 1), x.shape)
    zeros = filled(x.shape, 0, x.dtype)
    return select(mask, x, zeros) if lower else select(mask, zeros, x)


@remembered
def tril(x: ArrayLike, k: int = 0, *, stream: StreamOrDevice = None) -> array:
    """Zero above the k-th diagonal of the last two axes.

    >>> import smelt
    >>> smelt.tril(smelt.array([[1, 2], [3, 4]]))
    array([[1, 0],
           [3, 4]], dtype=int32)
    """
    check_stream(stream)
    return _triangle("tril", x, k, lower=True)


@remembered
def triu(x: ArrayLike, k: int = 0, *, stream: StreamOrDevice = None) -> array:
    """Zero below the k-th diagonal of the last two axes.

    >>> import smelt
    >>> smelt.triu(smelt.array([[1, 2], [3, 4]]))
    array([[1, 2],
           [0, 4]], dtype=int32)
    """
    check_stream(stream)
    return _triangle("triu", x, k, lower=False)


@remembered
def trace(
    a: ArrayLike,
    /,
    offset: int = 0,
    axis1: int = 0,
    axis2: int = 1,
    dtype: DType | None = None,
    *,
    stream: StreamOrDevice = None,
) -> array:
    """The sum of the elements [i, i + offset] of two axes, by default in the dtype of `sum`.

    Args:
        axis1, axis2: the two axes. dtype: to sum in, and of the result.

    >>> import smelt
    >>> smelt.trace(smelt.array([[1, 2], [3, 4]]))
    array(5, dtype=int32)
    """
    check_stream(stream)
    found = diagonal_of("trace", as_array(a), offset, axis1, axis2)
    if dtype is None:
        return total(found, -1)
    target = dtype_of("trace", dtype, found.dtype)
    if target is dtypes.bool_:
        target = counting(found.shape[-1])
    return convert(total(convert(found, target), -1), target)
