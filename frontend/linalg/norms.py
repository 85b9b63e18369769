"""Norms of vectors and matrices."""

from __future__ import annotations

import math

import numpy as np

from smelt.ir.errors import AttributeValueError, ShapeError, at_user_line, shown

from ..functions.arithmetic import abs as absolute
from ..functions.arithmetic import divide, multiply, power, sqrt
from ..functions.complex_numbers import imag, real
from ..functions.logic import equal, logical_and, not_equal, where
from ..functions.reductions import any as exists
from ..functions.reductions import max as largest
from ..functions.reductions import min as smallest
from ..functions.reductions import sum as total
from ..functions.reductions import widened
from ..lazy.arguments import number
from ..lazy.arrays import ArrayLike, StreamOrDevice, array, convert
from ..lazy.core import remembered
from ..lazy.movement import Axes, many_axes, permuted, shape_tuple, to_shape
from ..lazy.operands import as_floating
from ..lazy.streams import check_stream
from .spectra import svdvals

__all__ = ["matrix_norm", "norm", "vector_norm"]

Order = int | float | str | None


def _squares(x: array) -> array:
    if x.dtype.is_complex:
        return multiply(real(x), real(x)) + multiply(imag(x), imag(x))
    return multiply(x, x)


def _root(sums: array, p: float) -> array:
    """The p-th root of sums of powers, whose derivative is zero where these are: those of the powers are, too."""
    zero = equal(sums, 0)
    positive = where(zero, 1, sums)
    return where(zero, sums, sqrt(positive) if p == 2 else power(positive, 1 / p))


def order_of(name: str, order: Order) -> Order:
    """The order of a norm, as a number or a word.

    Raises:
        AttributeValueError: it is neither.
    """
    if order is None or isinstance(order, str):
        return order
    if isinstance(order, (int, float, np.integer, np.floating)) and not isinstance(order, bool) and order == order:
        return number(name, "the order", order)
    message = f"smelt.{name}: the order of a norm must be a number or a word, is {shown(order)}"
    raise AttributeValueError(at_user_line(message))


def _of_vectors(name: str, x: array, axes: tuple[int, ...], keepdims: bool, order: Order) -> array:
    if order is None or order == 2:
        return _euclidean(x, axes, keepdims)
    if isinstance(order, str):
        message = f"smelt.{name}: the order of a norm of vectors must be a number, is {shown(order)}"
        raise AttributeValueError(at_user_line(message))
    if order == 0:
        return total(convert(not_equal(x, 0), x.dtype.real), axes, keepdims)
    size = absolute(x)
    if math.isinf(order):
        return _largest(size, axes, keepdims) if order > 0 else smallest(size, axes, keepdims)
    if order == 1:
        return total(size, axes, keepdims)
    wide = widened(size)
    if order > 1:
        return convert(_root(total(power(wide, float(order)), axes, keepdims), order), size.dtype)
    # The slope at an element of 0 is infinite on both sides; it counts as that of |x| there.
    zero = equal(wide, 0)
    powers = power(where(zero, 1, wide), float(order))
    if order > 0:
        return convert(_root(total(where(zero, 0, powers), axes, keepdims), order), size.dtype)
    found = divide(1.0, power(total(powers, axes, keepdims), -1 / order))
    nothing = logical_and(exists(zero, axes, keepdims), equal(found, found))
    return convert(where(nothing, 0, found), size.dtype)


def _euclidean(x: array, axes: tuple[int, ...], keepdims: bool) -> array:
    return convert(_root(total(_squares(widened(x)), axes, keepdims), 2), x.dtype.real)


def _largest(sizes: array, axes: tuple[int, ...], keepdims: bool = False) -> array:
    """The largest size; of none it is 0."""
    some = all(sizes.shape[i] for i in axes)
    return largest(sizes, axes, keepdims) if some else total(sizes, axes, keepdims)


def _of_matrices(name: str, x: array, axes: tuple[int, ...], keepdims: bool, order: Order) -> array:
    rows, columns = axes
    if order is None or order in ("fro", "f"):
        return _euclidean(x, axes, keepdims)
    if order == "nuc" or order in (2, -2):
        last = (*(i for i in range(x.ndim) if i not in axes), rows, columns)
        s = svdvals(permuted(x, last))
        found = total(s, -1) if order == "nuc" else _largest(s, (-1,)) if order == 2 else smallest(s, -1)
        kept = tuple(1 if i in axes else d for i, d in enumerate(x.shape))
        return to_shape(found, kept) if keepdims else found
    if not isinstance(order, str) and order in (1, -1, math.inf, -math.inf):
        first, second = (rows, columns) if abs(order) == 1 else (columns, rows)
        sums = total(absolute(x), first, True)
        found = _largest(sums, (second,), True) if order > 0 else smallest(sums, second, True)
        return found if keepdims else to_shape(found, tuple(d for i, d in enumerate(x.shape) if i not in axes))
    known = '"fro", "nuc", 1, -1, 2, -2, inf or -inf'
    message = f"smelt.{name}: the order of a norm of matrices must be {known}, is {shown(order)}"
    raise AttributeValueError(at_user_line(message))


@remembered
def norm(
    a: ArrayLike, /, ord: Order = None, axis: Axes | None = None, keepdims: bool = False,
    *, stream: StreamOrDevice = None,
) -> array:  # fmt: skip
    """A norm of vectors, or of matrices.

    Args:
        a: an array of any dtype; integers and bools count as float32.
        ord: None is the root of the sum of squares. Of vectors: inf and -inf, the largest and the smallest absolute
            value; 0, the number of elements that are not zero; p, the p-th root of the sum of the p-th powers of
            absolute values. Of matrices: "fro" is None; "nuc", the sum of the singular values; 2 and -2, the largest
            and the smallest of them; 1 and -1, of the sums of absolute values of columns; inf and -inf, of rows.
        axis: an axis of vectors, or two of matrices; None is the one or the two that there are, or without `ord` all
            of them, as one vector.
        keepdims: whether these axes stay, with one element.

    Returns:
        A real number for each vector or matrix. Where a root is zero its derivative counts as zero.

    Raises:
        ShapeError: axes that there are not, or more than two. AttributeValueError: another order. DTypeError: singular
        values of another dtype than float32 and float64.

    >>> import smelt
    >>> smelt.linalg.norm(smelt.array([[3.0, 4.0], [0.0, 0.0]]), axis=1)
    array([5, 0], dtype=float32)
    """
    check_stream(stream)
    x, name = as_floating(a), "linalg.norm"
    ord = order_of(name, ord)
    if axis is None and ord is None:
        return _of_vectors(name, x, tuple(range(x.ndim)), bool(keepdims), None)
    axes = many_axes(name, None if axis is None else shape_tuple(name, axis, "axes consist"), x.shape)
    if len(axes) not in (1, 2):
        rule = f"one axis of vectors or two of matrices are needed, not {len(axes)}"
        raise ShapeError(at_user_line(f"smelt.{name}: {rule}; a {x.aval}"))
    return (_of_vectors if len(axes) == 1 else _of_matrices)(name, x, axes, bool(keepdims), ord)


@remembered
def vector_norm(
    x: ArrayLike, /, *, axis: Axes | None = None, ord: int | float = 2, keepdims: bool = False,
    stream: StreamOrDevice = None,
) -> array:  # fmt: skip
    """A norm of vectors, each of which may take several axes.

    Args:
        x: an array of any dtype; integers and bools count as float32.
        axis: the axes of a vector; None is all of them.
        ord: inf and -inf, the largest and the smallest absolute value; 0, the number of elements that are not zero;
            p, the p-th root of the sum of the p-th powers of absolute values.
        keepdims: whether these axes stay, with one element.

    Returns:
        A real number for each vector. Where a root is zero its derivative counts as zero.

    Raises:
        ShapeError: axes that there are not, or that repeat. AttributeValueError: another order.

    >>> import smelt
    >>> smelt.linalg.vector_norm(smelt.array([[3.0, 4.0], [0.0, 0.0]]), ord=1)
    array(7, dtype=float32)
    """
    check_stream(stream)
    a, name = as_floating(x), "linalg.vector_norm"
    order = order_of(name, ord)
    axes = many_axes(name, None if axis is None else shape_tuple(name, axis, "axes consist"), a.shape)
    return _of_vectors(name, a, axes, bool(keepdims), order)


@remembered
def matrix_norm(
    x: ArrayLike, /, *, keepdims: bool = False, ord: int | float | str | None = "fro", stream: StreamOrDevice = None
) -> array:
    """A norm of matrices, which stand on the last two axes.

    Args:
        x: an array of any dtype; integers and bools count as float32.
        keepdims: whether the two axes stay, with one element.
        ord: "fro", the root of the sum of squares; "nuc", the sum of the singular values; 2 and -2, the largest and
            the smallest of them; 1 and -1, of the sums of absolute values of columns; inf and -inf, of rows.

    Returns:
        A real number for each matrix. Where a root is zero its derivative counts as zero.

    Raises:
        ShapeError: no matrices. AttributeValueError: another order. DTypeError: singular values of another dtype than
        float32 and float64.

    >>> import smelt
    >>> smelt.linalg.matrix_norm(smelt.array([[3.0, 4.0], [0.0, 1.0]]), ord=1)
    array(5, dtype=float32)
    """
    check_stream(stream)
    a, name = as_floating(x), "linalg.matrix_norm"
    order = order_of(name, ord)
    if a.ndim < 2:
        raise ShapeError(at_user_line(f"smelt.{name}: needs matrices; x {a.aval}"))
    return _of_matrices(name, a, (a.ndim - 2, a.ndim - 1), bool(keepdims), order)
