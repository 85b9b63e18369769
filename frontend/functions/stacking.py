"""Arrays put together and cut along certain axes, and indices of flattened arrays, under NumPy's names."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from smelt.ir import dtypes
from smelt.ir.dtypes import DType
from smelt.ir.errors import ArgumentTypeError, IndexOutOfRangeError, ShapeError, at_user_line, shown
from smelt.ir.keywords import explain_keywords

from ..lazy.arguments import integer, listed, word
from ..lazy.arrays import ArrayLike, StreamOrDevice, array, as_array, convert
from ..lazy.core import remembered
from ..lazy.movement import Axes, checked_shape, one_axis, piece, shape_tuple, to_shape
from ..lazy.operands import exact_arrays
from ..lazy.streams import check_stream
from .arithmetic import add, clip, floor_divide, multiply, remainder
from .indexing import holds_array, host_array
from .joining import are_cuts, check_pieces, concatenate, split, unstack
from .known_indices import outside, refuse

__all__ = [
    "array_split", "column_stack", "dsplit", "dstack", "hsplit", "hstack", "ravel", "ravel_multi_index",
    "unravel_index", "vsplit", "vstack",
]  # fmt: skip


def _several(name: str, arrays: Sequence[ArrayLike]) -> list[array]:
    if isinstance(arrays, (array, np.ndarray)):
        found = as_array(arrays)
        arrays = list(unstack(found)) if found.ndim else found
    if isinstance(arrays, (list, tuple)):
        arrays = listed(name, "the arrays", arrays)
    if not isinstance(arrays, (list, tuple)) or not arrays:
        message = f"smelt.{name}: needs a list of at least one array, got {shown(arrays)}"
        raise ArgumentTypeError(at_user_line(message))
    return exact_arrays(arrays)


def _with_axes(x: array, count: int) -> array:
    """x with new axes in front, so that it has `count` at least."""
    return to_shape(x, (1,) * (count - x.ndim) + x.shape)


@remembered
def vstack(
    arrays: Sequence[ArrayLike], /, *, dtype: DType | None = None, stream: StreamOrDevice = None
) -> array:
    """Arrays below each other, along axis 0; a vector is a row.

    Args:
        dtype: of the result; by default that of the arrays together.

    Raises:
        ShapeError: shapes that differ on another axis.

    >>> import smelt
    >>> smelt.vstack([smelt.array([1, 2]), smelt.array([[3, 4]])])
    array([[1, 2],
           [3, 4]], dtype=int32)
    """
    check_stream(stream)
    return concatenate([_with_axes(x, 2) for x in _several("vstack", arrays)], 0, dtype=dtype)


@remembered
def hstack(
    arrays: Sequence[ArrayLike], /, *, dtype: DType | None = None, stream: StreamOrDevice = None
) -> array:
    """Arrays beside each other: along axis 1, vectors along axis 0.

    Args:
        dtype: of the result; by default that of the arrays together.

    Raises:
        ShapeError: shapes that differ on another axis.

    >>> import smelt
    >>> smelt.hstack([smelt.array([1, 2]), smelt.array([3])])
    array([1, 2, 3], dtype=int32)
    """
    check_stream(stream)
    found = [_with_axes(x, 1) for x in _several("hstack", arrays)]
    return concatenate(found, 0 if found[0].ndim == 1 else 1, dtype=dtype)


@remembered
def dstack(arrays: Sequence[ArrayLike], /, *, stream: StreamOrDevice = None) -> array:
    """Arrays behind each other, along axis 2; vectors and matrices get one.

    Raises:
        ShapeError: shapes that differ on another axis.

    >>> import smelt
    >>> smelt.dstack([smelt.array([1, 2]), smelt.array([3, 4])]).shape
    (1, 2, 2)
    """
    check_stream(stream)
    found = [_with_axes(x, min(x.ndim + 1, 2)) if x.ndim < 2 else x for x in _several("dstack", arrays)]
    found = [_with_axes(x, 2) for x in found]
    return concatenate([to_shape(x, (*x.shape, 1)) if x.ndim == 2 else x for x in found], 2)


@remembered
def column_stack(arrays: Sequence[ArrayLike], /, *, stream: StreamOrDevice = None) -> array:
    """Vectors as the columns of a matrix, and matrices beside each other.

    Raises:
        ShapeError: different numbers of rows.

    >>> import smelt
    >>> smelt.column_stack([smelt.array([1, 2]), smelt.array([3, 4])])
    array([[1, 3],
           [2, 4]], dtype=int32)
    """
    check_stream(stream)
    found = _several("column_stack", arrays)
    return concatenate([x if x.ndim > 1 else to_shape(x, (x.size, 1)) for x in found], 1)


@remembered
def array_split(
    a: ArrayLike, /, indices_or_sections: int | Sequence[int], axis: int = 0, *, stream: StreamOrDevice = None
) -> list[array]:
    """Pieces along an axis, as `smelt.split`, but sizes may differ by one: the first pieces are the longer ones.

    Args:
        indices_or_sections, axis: as of `split`.

    Raises:
        ShapeError: there are more than 2**22. AttributeValueError: there are none.

    >>> import smelt
    >>> smelt.array_split(smelt.arange(5), 2)
    [array([0, 1, 2], dtype=int32), array([3, 4], dtype=int32)]
    """
    check_stream(stream)
    x = as_array(a)
    if are_cuts(indices_or_sections):
        return split(x, list(indices_or_sections), axis)
    axis = one_axis("array_split", axis, x.shape)
    count = integer("array_split", "indices_or_sections", indices_or_sections, 1)
    check_pieces("array_split", count, x)
    least, longer = divmod(x.shape[axis], count)
    ends = [i * least + min(i, longer) for i in range(count + 1)]
    return [piece(x, axis, start, stop) for start, stop in itertools.pairwise(ends)]


def _split_along(name: str, a: ArrayLike, indices_or_sections: int | Sequence[int], axis: int) -> list[array]:
    x = as_array(a)
    if x.ndim <= axis:
        axes = f"{axis + 1} axes" if axis else "an axis"
        raise ShapeError(at_user_line(f"smelt.{name}: needs {axes} at least; a {x.aval}"))
    return split(x, indices_or_sections, axis)


@remembered
def vsplit(a: ArrayLike, /, indices_or_sections: int | Sequence[int], *, stream: StreamOrDevice = None) -> list[array]:
    """`smelt.split` along axis 0 of an array of two axes at least.

    Args:
        indices_or_sections: as of `split`.

    Raises:
        ShapeError: too few axes, or pieces that are not equal.

    >>> import smelt
    >>> [part.shape for part in smelt.vsplit(smelt.ones((4, 3)), 2)]
    [(2, 3), (2, 3)]
    """
    check_stream(stream)
    _split_along("vsplit", a, 1, 1)
    return _split_along("vsplit", a, indices_or_sections, 0)


@remembered
def hsplit(a: ArrayLike, /, indices_or_sections: int | Sequence[int], *, stream: StreamOrDevice = None) -> list[array]:
    """`smelt.split` along axis 1, of a vector along axis 0.

    Args:
        indices_or_sections: as of `split`.

    Raises:
        ShapeError: too few axes, or pieces that are not equal.

    >>> import smelt
    >>> [part.shape for part in smelt.hsplit(smelt.ones((3, 4)), [1])]
    [(3, 1), (3, 3)]
    """
    check_stream(stream)
    return _split_along("hsplit", a, indices_or_sections, 0 if as_array(a).ndim <= 1 else 1)


@remembered
def dsplit(a: ArrayLike, /, indices_or_sections: int | Sequence[int], *, stream: StreamOrDevice = None) -> list[array]:
    """`smelt.split` along axis 2.

    Args:
        indices_or_sections: as of `split`.

    Raises:
        ShapeError: too few axes, or pieces that are not equal.

    >>> import smelt
    >>> [part.shape for part in smelt.dsplit(smelt.ones((1, 2, 4)), 2)]
    [(1, 2, 2), (1, 2, 2)]
    """
    check_stream(stream)
    return _split_along("dsplit", a, indices_or_sections, 2)


@remembered
def ravel(a: ArrayLike, /, *, stream: StreamOrDevice = None) -> array:
    """The elements as a vector, in row-major order.

    >>> import smelt
    >>> smelt.ravel(smelt.array([[1, 2], [3, 4]]))
    array([1, 2, 3, 4], dtype=int32)
    """
    check_stream(stream)
    x = as_array(a)
    return to_shape(x, (x.size,))


def _integers(name: str, a: ArrayLike) -> array:
    x = as_array(a)
    if not x.dtype.is_integer:
        raise ArgumentTypeError(at_user_line(f"smelt.{name}: indices must be integers, are {x.aval}"))
    return x


def _positions(name: str, a: ArrayLike, extents: Sequence[int]) -> array:
    """Integers in a dtype that holds every position in an array of this shape."""
    x = _integers(name, a)
    if x.dtype.size < 4:
        x = convert(x, dtypes.int32)
    most = int(np.iinfo(x.dtype.numpy).max)
    return convert(x, dtypes.int64) if any(n > most for n in (math.prod(extents), *extents)) else x


def _in_range(name: str, given: Any, extent: int, what: str) -> None:
    """Check indices whose values are known: numbers, lists, arrays that are computed."""
    if isinstance(given, array) and (bad := outside(given, extent, 0)) is not None:
        refuse(f"smelt.{name}: {bad} is not within {what}")
    if isinstance(given, (int, list, tuple, np.ndarray)) and not holds_array([given]):
        host = host_array(given)
        if host.size and not (host.min() >= 0 and host.max() < extent):
            raise IndexOutOfRangeError(at_user_line(f"smelt.{name}: {shown(given)} is not within {what}"))


def unravel_index(
    indices: ArrayLike, shape: Axes, order: str = "C", *, stream: StreamOrDevice = None
) -> tuple[array, ...]:
    """The indices along each axis of the elements with certain indices in the flattened array.

    Args:
        indices: integers of any shape, not negative.
        shape: of the array.
        order: "C", or "F" for indices in an array of which the first axis runs fastest.

    Returns:
        An array of the shape of `indices` for each axis: int32, or what else holds indices of that dtype and array.

    Raises:
        IndexOutOfRangeError: an index that is known is out of range. ArgumentTypeError: no integers.
        AttributeValueError: another order.

    >>> import smelt
    >>> smelt.unravel_index(smelt.array([0, 5]), (2, 3))
    (array([0, 1], dtype=int32), array([0, 2], dtype=int32))
    """
    check_stream(stream)
    extents = checked_shape("unravel_index", shape)
    x = _positions("unravel_index", indices, extents)
    _in_range("unravel_index", indices, math.prod(extents), f"an array of shape {extents}")
    last_first = word("unravel_index", "order", order, "C", "F") == "C"
    found: list[array] = []
    for extent in reversed(extents) if last_first else extents:
        step = as_array(max(extent, 1), x.dtype)
        found.append(remainder(x, step))
        x = floor_divide(x, step)
    return tuple(reversed(found) if last_first else found)


def ravel_multi_index(
    multi_index: Sequence[ArrayLike],
    dims: Axes,
    mode: str | Sequence[str] = "raise",
    order: str = "C",
    *,
    stream: StreamOrDevice = None,
) -> array:
    """The indices in the flattened array of the elements with certain indices along each axis.

    Args:
        multi_index: integers for each axis; they broadcast.
        dims: the shape of the array.
        mode: of indices out of range: "raise", or "clip" for the nearest end, or "wrap" for the remainder; or one of
            these for each axis.
        order: "C", or "F" for indices in an array of which the first axis runs fastest.

    Raises:
        IndexOutOfRangeError: an index that is known is out of range. ArgumentTypeError: no integers.
        ShapeError: another number of axes. AttributeValueError: another mode or order.

    >>> import smelt
    >>> smelt.ravel_multi_index((smelt.array([0, 1]), smelt.array([0, 2])), (2, 3))
    array([0, 5], dtype=int32)
    """
    check_stream(stream)
    extents = shape_tuple("ravel_multi_index", dims)
    given = list(multi_index) if isinstance(multi_index, (list, tuple)) else _several("ravel_multi_index", multi_index)
    if len(given) != len(extents) or not extents:
        message = f"smelt.ravel_multi_index: indices along {len(given)} axes of an array of shape {extents}"
        raise ShapeError(at_user_line(message))
    modes = list(mode) if isinstance(mode, (list, tuple)) else [mode] * len(extents)
    if len(modes) != len(extents):
        message = f"smelt.ravel_multi_index: {len(modes)} modes for {len(extents)} axes, {shown(mode)}"
        raise ShapeError(at_user_line(message))
    found: array | None = None
    along = list(zip(given, extents, modes))
    for index, extent, kind in along if word("ravel_multi_index", "order", order, "C", "F") == "C" else along[::-1]:
        x = _positions("ravel_multi_index", index, extents)
        if word("ravel_multi_index", "mode", kind, "raise", "clip", "wrap") == "raise":
            _in_range("ravel_multi_index", index, extent, f"an axis of {extent} elements")
        elif not extent and x.size:
            raise IndexOutOfRangeError(at_user_line("smelt.ravel_multi_index: an axis of 0 elements has no index"))
        else:
            x = remainder(x, max(extent, 1)) if kind == "wrap" else clip(x, 0, max(extent - 1, 0))
        found = x if found is None else add(multiply(found, extent), x)
    assert found is not None
    return found


explain_keywords(globals())
