"""Arrays turned, grown, cut and put together, and the indices of their parts, under NumPy's names."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from smelt.ir import dtypes
from smelt.ir.dtypes import DType
from smelt.ir.errors import (
    ArgumentTypeError,
    AttributeValueError,
    DTypeError,
    IndexOutOfRangeError,
    ShapeError,
    at_user_line,
    shown,
)
from smelt.ir.keywords import explain_keywords

from ..lazy.arguments import dtype_of, integer
from ..lazy.arrays import ArrayLike, StreamOrDevice, array, as_array, broadcast_to_shape, convert, from_host
from ..lazy.core import remembered
from ..lazy.explained import explained
from ..lazy.movement import (
    Axes,
    checked_shape,
    filled,
    iota,
    joined,
    many_axes,
    one_axis,
    permuted,
    piece,
    reversed_along,
    select,
    to_shape,
)
from ..lazy.operands import arrays_of
from ..lazy.streams import check_stream
from .diagonals import diagonal_offset
from .index_functions import take
from .indexing import bounds_of, host_array
from .joining import concatenate
from .searching import host_values
from .sorting import diff

__all__ = [
    "append", "block", "delete", "diag_indices", "ediff1d", "fill_diagonal", "fliplr", "flipud", "indices", "insert",
    "resize", "rot90", "tril_indices", "triu_indices",
]  # fmt: skip


# Turned


@remembered
def rot90(m: ArrayLike, k: int = 1, axes: tuple[int, int] = (0, 1), *, stream: StreamOrDevice = None) -> array:
    """Turned by k right angles in the plane of two axes, from the first one towards the second one.

    Raises:
        ShapeError: no two different axes.

    >>> import smelt
    >>> smelt.rot90(smelt.array([[1, 2], [3, 4]]))
    array([[2, 4],
           [1, 3]], dtype=int32)
    """
    check_stream(stream)
    x, turns = as_array(m), integer("rot90", "k", k) % 4
    plane = many_axes("rot90", axes, x.shape) if x.ndim > 1 else ()
    if len(plane) != 2:
        raise ShapeError(at_user_line(f"smelt.rot90: needs a plane of two axes, got {shown(axes)}; m {x.aval}"))
    first, second = plane
    order = list(range(x.ndim))
    order[first], order[second] = second, first
    if turns == 2:
        return reversed_along(x, plane)
    if turns == 1:
        return permuted(reversed_along(x, (second,)), tuple(order))
    return reversed_along(permuted(x, tuple(order)), (second,)) if turns else to_shape(x, x.shape)


@remembered
def flipud(m: ArrayLike, /, *, stream: StreamOrDevice = None) -> array:
    """The order of rows reversed, that is of axis 0.

    Raises:
        ShapeError: a scalar.

    >>> import smelt
    >>> smelt.flipud(smelt.array([[1, 2], [3, 4]]))
    array([[3, 4],
           [1, 2]], dtype=int32)
    """
    check_stream(stream)
    x = as_array(m)
    return reversed_along(x, (one_axis("flipud", 0, x.shape),))


@remembered
def fliplr(m: ArrayLike, /, *, stream: StreamOrDevice = None) -> array:
    """The order of columns reversed, that is of axis 1.

    Raises:
        ShapeError: less than two axes.

    >>> import smelt
    >>> smelt.fliplr(smelt.array([[1, 2], [3, 4]]))
    array([[2, 1],
           [4, 3]], dtype=int32)
    """
    check_stream(stream)
    x = as_array(m)
    return reversed_along(x, (one_axis("fliplr", 1, x.shape),))


# Grown and cut


@remembered
def append(arr: ArrayLike, values: ArrayLike, axis: int | None = None, *, stream: StreamOrDevice = None) -> array:
    """`values` behind an array along an axis, in the common dtype; without an axis both are flattened.

    Raises:
        ShapeError: shapes that differ on another axis.

    >>> import smelt
    >>> smelt.append(smelt.array([1, 2]), 3)
    array([1, 2, 3], dtype=int32)
    """
    check_stream(stream)
    x, more = arrays_of(arr, values)
    if axis is None:
        x, more = to_shape(x, (x.size,)), to_shape(more, (more.size,))
    return concatenate([x, more], axis=0 if axis is None else axis)


def _positions(name: str, obj: Any, size: int, past: int) -> np.ndarray:
    """Positions from 0 to size - 1 + past, of an int, a slice or integers whose values are known."""
    if isinstance(obj, slice):
        return np.arange(*bounds_of(obj, size))
    if isinstance(obj, array):
        given = np.asarray(host_values(name, obj, "give integers"))
    else:
        given = host_array([obj] if isinstance(obj, (int, np.integer)) else obj)
    if given.dtype == bool:
        if given.ndim != 1 or not size <= given.size <= size + past:
            raise ShapeError(at_user_line(f"smelt.{name}: a mask of shape {given.shape} for an axis of {size}"))
        return np.flatnonzero(given)
    if (given.size or given.ndim > 1) and given.dtype.kind not in "iu":
        raise ArgumentTypeError(at_user_line(f"smelt.{name}: obj must be integers or a slice, is {shown(obj)}"))
    found = (given if given.size else np.zeros(0)).astype(np.int64).reshape(-1)
    for place in found:
        if not -size <= place < size + past:
            message = f"smelt.{name}: index {place} is out of range for an axis of {size} elements"
            raise IndexOutOfRangeError(at_user_line(message))
    return np.where(found < 0, found + size, found)


def _along(name: str, arr: ArrayLike, axis: int | None) -> tuple[array, int]:
    x = as_array(arr)
    if axis is None:
        return to_shape(x, (x.size,)), 0
    return x, one_axis(name, axis, x.shape)


#: Elements from which on few pieces are copied, not each element by its place, and how many are few. For smaller arrays
#: other positions had better be no other program.
_LARGE, _FEW_PIECES = 1 << 14, 16


def _picked(parts: Sequence[array], source: np.ndarray, axis: int) -> array:
    """Elements along an axis of arrays that follow each other, by their positions."""
    ends = np.cumsum([x.shape[axis] for x in parts])
    whose = np.searchsorted(ends, source, side="right")
    begins = np.flatnonzero((np.diff(source, prepend=-2) != 1) | (np.diff(whose, prepend=-1) != 0))
    if not 0 < begins.size <= _FEW_PIECES or sum(x.size for x in parts) < _LARGE:
        kind = np.int32 if ends[-1] < 2**31 else np.int64
        return take(joined(list(parts), axis), source.astype(kind), axis=axis)
    pieces = []
    for begin, end in zip(begins.tolist(), [*begins[1:].tolist(), source.size]):
        x = parts[whose[begin]]
        first = int(source[begin] - ends[whose[begin]]) + x.shape[axis]
        pieces.append(piece(x, axis, first, first + end - begin))
    return joined(pieces, axis)


@explained
def delete(
    arr: ArrayLike,
    obj: int | slice | Sequence[int] | ArrayLike,
    axis: int | None = None,
    *,
    stream: StreamOrDevice = None,
) -> array:
    """An axis without the elements at the given positions; without an axis the array is flattened.

    Args:
        obj: an int, a slice, integers or a mask. Those of an array are looked at: that evaluates it.

    Raises:
        IndexOutOfRangeError: a position outside. TraceError: positions that are traced.

    >>> import smelt
    >>> smelt.delete(smelt.array([1, 2, 3, 4]), [0, 2])
    array([2, 4], dtype=int32)
    """
    check_stream(stream)
    x, place = _along("delete", arr, axis)
    size = x.shape[place]
    kept = np.ones(size, bool)
    kept[_positions("delete", obj, size, 0)] = False
    return _picked([x], np.flatnonzero(kept), place)


@explained
def insert(
    arr: ArrayLike,
    obj: int | slice | Sequence[int] | ArrayLike,
    values: ArrayLike,
    axis: int | None = None,
    *,
    stream: StreamOrDevice = None,
) -> array:
    """An axis with `values` before the given positions; without an axis the array is flattened.

    Args:
        obj: an int, or an array or list of one, before which all values stand; or a slice, integers or a mask, one
            for each value. Those of an array are looked at: that evaluates it.
        values: converted to the dtype of the array; they broadcast.

    Raises:
        IndexOutOfRangeError: a position outside. ShapeError: values that do not fit. TraceError: positions that are
        traced.

    >>> import smelt
    >>> smelt.insert(smelt.array([1, 2, 3]), 1, 9)
    array([1, 9, 2, 3], dtype=int32)
    """
    check_stream(stream)
    x, place = _along("insert", arr, axis)
    size = x.shape[place]
    places = _positions("insert", obj, size, 1)
    new = convert(as_array(values, x.dtype), x.dtype)
    new = to_shape(new, (1,) * (x.ndim - new.ndim) + new.shape)
    if new.ndim > x.ndim:
        raise ShapeError(at_user_line(f"smelt.insert: values {new.aval} have more axes than {x.aval}"))
    if places.size == 1:
        if isinstance(obj, (int, np.integer)) or getattr(obj, "ndim", None) == 0:
            order = list(range(1, x.ndim))
            new = permuted(new, (*order[:place], 0, *order[place:]))  # the first axis counts what is inserted
        places = np.repeat(places, new.shape[place])
    count = places.size
    shape = tuple(count if i == place else d for i, d in enumerate(x.shape))
    if any(have not in (1, want) for have, want in zip(new.shape, shape)):
        message = f"smelt.insert: values {new.aval} at {count} positions of axis {place}; arr {x.aval}"
        raise ShapeError(at_user_line(message))
    ranks = np.argsort(places, kind="stable")
    source = np.full(size + count, -1, np.int64)
    targets = places.copy()
    targets[ranks] += np.arange(count)
    source[targets] = size + np.arange(count)
    source[source < 0] = np.arange(size)
    return _picked([x, broadcast_to_shape(new, shape)], source, place)


@remembered
def resize(a: ArrayLike, new_shape: Axes, *, stream: StreamOrDevice = None) -> array:
    """The flattened elements in another shape, from the start again where they do not suffice; zeros of no elements.

    Args:
        new_shape: an int or a sequence of ints.

    Raises:
        ShapeError: a negative extent.

    >>> import smelt
    >>> smelt.resize(smelt.array([1, 2, 3]), (2, 2))
    array([[1, 2],
           [3, 1]], dtype=int32)
    """
    check_stream(stream)
    x, shape = as_array(a), checked_shape("resize", new_shape)
    size = math.prod(shape)
    if not x.size or not size:
        return filled(shape, 0, x.dtype)
    times = -(-size // x.size)
    repeated = broadcast_to_shape(to_shape(x, (1, x.size)), (times, x.size))
    return to_shape(piece(to_shape(repeated, (times * x.size,)), 0, 0, size), shape)


@remembered
def block(arrays: Any, *, stream: StreamOrDevice = None) -> array:
    """One array of nested lists of blocks: the innermost lists are joined along the last axis, those around them along
    the axis before, and so on.

    Raises:
        ShapeError: lists of different depth, empty lists, blocks that do not fit.

    >>> import smelt
    >>> a = smelt.array([[1]])
    >>> smelt.block([[a, a * 2], [a * 3, a * 4]])
    array([[1, 2],
           [3, 4]], dtype=int32)
    """
    check_stream(stream)
    levels = 0
    level = arrays
    while isinstance(level, (list, tuple)) and levels < 64:
        if not level:
            raise ShapeError(at_user_line("smelt.block: an empty list"))
        level, levels = level[0], levels + 1
    parts: list[array] = []
    _blocks(arrays, levels, parts)
    ndim = max(levels, *(x.ndim for x in parts))
    return _joined(arrays, levels, ndim)


def _blocks(given: Any, depth: int, found: list[array]) -> None:
    if isinstance(given, (list, tuple)) != (depth > 0) or (depth and not given):
        raise ShapeError(at_user_line("smelt.block: lists of different depth"))
    if not depth:
        found.append(as_array(given))
        return
    for part in given:
        _blocks(part, depth - 1, found)


def _joined(given: Any, depth: int, ndim: int) -> array:
    if not depth:
        x = as_array(given)
        return to_shape(x, (1,) * (ndim - x.ndim) + x.shape)
    return concatenate([_joined(part, depth - 1, ndim) for part in given], axis=ndim - depth)


@remembered
def ediff1d(
    ary: ArrayLike,
    to_end: ArrayLike | None = None,
    to_begin: ArrayLike | None = None,
    *,
    stream: StreamOrDevice = None,
) -> array:
    """The differences of neighbours in the flattened array; with `to_begin` before and `to_end` behind them.

    Raises:
        DTypeError: `to_begin` or `to_end` of a kind that the dtype of the array does not hold, as floats for integers.

    >>> import smelt
    >>> smelt.ediff1d(smelt.array([1, 4, 9]), to_begin=0)
    array([0, 3, 5], dtype=int32)
    """
    check_stream(stream)
    x = as_array(ary)
    found = [diff(to_shape(x, (x.size,)))]
    if to_begin is not None:
        found.insert(0, _ends("to_begin", to_begin, x))
    if to_end is not None:
        found.append(_ends("to_end", to_end, x))
    return joined([convert(to_shape(v, (v.size,)), x.dtype) for v in found], 0)


def _ends(what: str, given: ArrayLike, x: array) -> array:
    found = arrays_of(given, x)[0]
    if found.size and dtypes.promote(found.dtype, x.dtype).kind != x.dtype.kind:
        raise DTypeError(at_user_line(f"smelt.ediff1d: {what} {found.aval} beside differences of {x.aval}"))
    return found


@remembered
def fill_diagonal(a: ArrayLike, val: ArrayLike, wrap: bool = False, *, stream: StreamOrDevice = None) -> array:
    """With `val` on the main diagonal, as a new array (NumPy's function writes into `a`).

    Args:
        a: at least two axes; more than two of one size. val: a number, or elements that are used in turn.
        wrap: whether the diagonal of a tall matrix begins again below.

    Raises:
        ShapeError: less than two axes, axes of different size, no elements in `val`.

    >>> import smelt
    >>> smelt.fill_diagonal(smelt.zeros((2, 2)), 5)
    array([[5, 0],
           [0, 5]], dtype=float32)
    """
    check_stream(stream)
    x = as_array(a)
    new = convert(as_array(val, x.dtype), x.dtype)
    if x.ndim < 2 or (x.ndim > 2 and any(d != x.shape[0] for d in x.shape)) or not new.size:
        message = f"smelt.fill_diagonal: needs axes of one size, and values; a {x.aval}, val {new.aval}"
        raise ShapeError(at_user_line(message))
    if not x.size:
        return to_shape(x, x.shape)
    width = x.shape[-1]
    step = 1 + sum(width**i for i in range(1, x.ndim))
    end = x.size if x.ndim > 2 or wrap else min(width * width, x.size)
    count = -(-end // step)
    place = iota((x.size,), 0)
    on = (place % step == 0) & (place < end)
    turns = -(-count // new.size)
    values = to_shape(broadcast_to_shape(to_shape(new, (1, new.size)), (turns, new.size)), (turns * new.size,))
    # Each value, and the elements up to the next one
    values = broadcast_to_shape(to_shape(piece(values, 0, 0, count), (count, 1)), (count, step))
    values = to_shape(values, (count * step,))
    if values.size < x.size:
        values = joined([values, filled((x.size - values.size,), 0, x.dtype)], 0)
    values = to_shape(piece(values, 0, 0, x.size), x.shape)
    return select(to_shape(on, x.shape), values, x)


# Indices


@remembered
def indices(
    dimensions: Axes, dtype: DType | None = None, sparse: bool = False, *, stream: StreamOrDevice = None
) -> array | tuple[array, ...]:
    """For each axis of a shape the indices along it.

    Args:
        dimensions: the shape. dtype: int32 by default.
        sparse: whether each has one element on the other axes.

    Returns:
        An array of shape (len(dimensions), *dimensions); if sparse a tuple of arrays that broadcast.

    >>> import smelt
    >>> smelt.indices((2, 2)).tolist()
    [[[0, 0], [1, 1]], [[0, 1], [0, 1]]]
    """
    check_stream(stream)
    shape, target = checked_shape("indices", dimensions), dtype_of("indices", dtype, dtypes.int32)
    kind = dtypes.int64 if any(d >= 2**31 for d in shape) else dtypes.int32
    thin = [tuple(d if i == j else 1 for j, d in enumerate(shape)) for i in range(len(shape))]
    if sparse:
        return tuple(convert(iota(s, i, kind), target) for i, s in enumerate(thin))
    checked_shape("indices", (len(shape), *shape))
    if not shape:
        return filled((0,), 0, target)
    return joined([to_shape(convert(iota(shape, i, kind), target), (1, *shape)) for i in range(len(shape))], 0)


#: Indices that a function makes at most.
_MOST = 1 << 28


def _triangle(name: str, make: Any, n: int, k: int, m: int | None) -> tuple[array, array]:
    rows = integer(name, "n", n, 0)
    columns = rows if m is None else integer(name, "m", m, 0)
    if rows * columns > _MOST:
        raise AttributeValueError(at_user_line(f"smelt.{name}: {rows} x {columns} are too many"))
    found = make(rows, diagonal_offset(name, k, rows, columns), columns)
    return from_host(found[0].astype(np.int32)), from_host(found[1].astype(np.int32))


def tril_indices(n: int, k: int = 0, m: int | None = None, *, stream: StreamOrDevice = None) -> tuple[array, array]:
    """Rows and columns, int32, of what lies on and below the k-th diagonal of n rows and m columns (n by default).

    Raises:
        AttributeValueError: negative numbers, or more than 2²⁸ elements.

    >>> import smelt
    >>> smelt.tril_indices(2)
    (array([0, 1, 1], dtype=int32), array([0, 0, 1], dtype=int32))
    """
    check_stream(stream)
    return _triangle("tril_indices", np.tril_indices, n, k, m)


def triu_indices(n: int, k: int = 0, m: int | None = None, *, stream: StreamOrDevice = None) -> tuple[array, array]:
    """Rows and columns, int32, of what lies on and above the k-th diagonal of n rows and m columns (n by default).

    Raises:
        AttributeValueError: negative numbers, or more than 2²⁸ elements.

    >>> import smelt
    >>> smelt.triu_indices(2)
    (array([0, 0, 1], dtype=int32), array([0, 1, 1], dtype=int32))
    """
    check_stream(stream)
    return _triangle("triu_indices", np.triu_indices, n, k, m)


@remembered
def diag_indices(n: int, ndim: int = 2, *, stream: StreamOrDevice = None) -> tuple[array, ...]:
    """The indices, int32, of the main diagonal of an array with `ndim` axes of n elements.

    Raises:
        AttributeValueError: more than 64 axes.

    >>> import smelt
    >>> smelt.diag_indices(2)
    (array([0, 1], dtype=int32), array([0, 1], dtype=int32))
    """
    check_stream(stream)
    count, axes = integer("diag_indices", "n", n, 0), integer("diag_indices", "ndim", ndim, 0)
    if axes > 64:
        raise AttributeValueError(at_user_line(f"smelt.diag_indices: an array has 64 axes at most, not {shown(axes)}"))
    checked_shape("diag_indices", (count,))
    return (iota((count,), 0),) * axes


explain_keywords(globals())
