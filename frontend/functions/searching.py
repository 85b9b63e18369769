"""Where elements are: functions whose results have as many elements as values decide.

Without `size` they evaluate their argument at once, so they are errors inside `smelt.compile` and `smelt.vmap`, where
there are no values. With `size` the shape of the result is known, and nothing is evaluated.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from smelt.ir import dtypes
from smelt.ir.errors import AttributeValueError, IndexOutOfRangeError, ShapeError, TraceError, at_user_line
from smelt.ir.keywords import explain_keywords
from smelt.ir.op import registry as ops

from ..lazy.arguments import integer
from ..lazy.arrays import (
    ArrayLike,
    HostArray,
    StreamOrDevice,
    array,
    as_array,
    convert,
    emit,
    emit_elementwise,
    from_host,
    wrap,
)
from ..lazy.movement import counting, filled, iota, joined, one_axis, select, to_shape
from ..lazy.streams import check_stream
from .indexing import getitem, true_places
from .sorting import searchsorted

__all__ = ["argwhere", "compress", "extract", "flatnonzero", "nonzero"]


def host_values(name: str, x: array, instead: str) -> HostArray:
    """The elements, evaluated. `instead` tells what to write where they are not known."""
    try:
        return x._host()
    except TraceError:
        message = f"smelt.{name}: the shape of the result depends on the elements of {x.aval}, which are not known "
        raise TraceError(at_user_line(f"{message}inside smelt.compile and smelt.vmap; {instead}")) from None


def first_places(mask: array, size: int) -> tuple[array, array]:
    """Where a vector of bools is True, the first `size` of these places, and which of the `size` there are."""
    kind = counting(mask.size)
    if not mask.size or not size:
        return filled((size,), 0, kind), filled((size,), False, dtypes.bool_)
    seen = emit(ops["cumsum"], (convert(mask, kind),), {"axis": 0, "reverse": False, "inclusive": True})
    wanted = emit_elementwise(ops["add"], iota((size,), 0, kind), filled((size,), 1, kind))
    places = convert(searchsorted(seen, wanted), kind)
    return places, emit_elementwise(ops["less"], places, filled((size,), mask.size, kind))


def _fills(name: str, fill_value: int | Sequence[int], ndim: int) -> list[int]:
    given = list(fill_value) if isinstance(fill_value, (tuple, list)) else [fill_value] * ndim
    if len(given) != ndim:
        raise AttributeValueError(at_user_line(f"smelt.{name}: {len(given)} values in fill_value for {ndim} axes"))
    return [integer(name, "fill_value", v) for v in given]


def _places(name: str, x: array, size: int | None, fill_value: int | Sequence[int], instead: str = "") -> list[array]:
    """One vector for each axis of x: where its elements are not zero, in row-major order."""
    mask, kind = convert(x, dtypes.bool_), counting(x.size)
    fills = _fills(name, fill_value, x.ndim)
    if size is None:
        instead = instead or "give size=, or use smelt.where(a, x, other)"
        found = true_places(host_values(name, mask, instead))
        return [from_host(i.astype(kind.numpy)) for i in found]
    count = integer(name, "size", size, 0)
    flat, there = first_places(to_shape(mask, (x.size,)), count)
    results: list[array] = []
    for extent, fill in zip(reversed(x.shape), reversed(fills)):
        step = filled((count,), max(extent, 1), kind)
        along = emit_elementwise(ops["remainder"], flat, step)
        results.insert(0, select(there, along, filled((count,), fill, kind)))
        flat = emit_elementwise(ops["floor_divide"], flat, step)
    return results


def nonzero(
    a: ArrayLike, /, *, size: int | None = None, fill_value: int | Sequence[int] = 0, stream: StreamOrDevice = None
) -> tuple[array, ...]:
    """Where the elements are not zero: for each axis the indices along it, int32, in row-major order.

    Without `size` this evaluates `a`.

    Args:
        a: any dtype, at least one axis.
        size: the number of elements that are told: further ones are left out, missing ones are filled up.
        fill_value: what to fill up with, or one of these for each axis.

    Returns:
        One vector an axis; int64 where `a` has 2³¹ elements or more.

    Raises:
        ShapeError: a scalar. TraceError: no `size` inside `smelt.compile` or `smelt.vmap`.

    >>> import smelt
    >>> smelt.nonzero(smelt.array([[0, 5], [7, 0]]))
    (array([0, 1], dtype=int32), array([1, 0], dtype=int32))
    """
    check_stream(stream)
    x = as_array(a)
    if not x.ndim:
        raise ShapeError(at_user_line(f"smelt.nonzero: a scalar has no indices; a {x.aval}"))
    return tuple(_places("nonzero", x, size, fill_value))


def flatnonzero(
    a: ArrayLike, /, *, size: int | None = None, fill_value: int = 0, stream: StreamOrDevice = None
) -> array:
    """Where the elements of the flattened array are not zero; see `nonzero`.

    >>> import smelt
    >>> smelt.flatnonzero(smelt.array([[0, 5], [7, 0]]))
    array([1, 2], dtype=int32)
    """
    check_stream(stream)
    x = as_array(a)
    return _places("flatnonzero", to_shape(x, (x.size,)), size, fill_value)[0]


def argwhere(
    a: ArrayLike, /, *, size: int | None = None, fill_value: int | Sequence[int] = 0, stream: StreamOrDevice = None
) -> array:
    """The indices of each element that is not zero, a row an element; see `nonzero`.

    >>> import smelt
    >>> smelt.argwhere(smelt.array([[0, 5], [7, 0]]))
    array([[0, 1],
           [1, 0]], dtype=int32)
    """
    check_stream(stream)
    x = as_array(a)
    if not x.ndim:
        rows = _places("argwhere", to_shape(x, (1,)), size, 0)[0].size
        return filled((rows, 0), 0, dtypes.int32)
    found = _places("argwhere", x, size, fill_value)
    return joined([to_shape(i, (i.size, 1)) for i in found], 1)


def compress(
    condition: ArrayLike,
    a: ArrayLike,
    /,
    axis: int | None = None,
    *,
    size: int | None = None,
    fill_value: ArrayLike = 0,
    stream: StreamOrDevice = None,
) -> array:
    """The slices along an axis (the elements of the flattened array if None) at which the condition holds.

    Without `size` this evaluates `condition`, not `a`: derivatives pass.

    Args:
        condition: a vector; one shorter than the axis leaves out the rest.
        size: the number of slices of the result: further ones are left out, missing ones are filled up.
        fill_value: a scalar to fill up with.

    Raises:
        IndexOutOfRangeError: the condition holds beyond the end of the axis. ShapeError: it is no vector.
        TraceError: no `size` inside `smelt.compile` or `smelt.vmap`.

    >>> import smelt
    >>> smelt.compress([False, True], smelt.array([[1, 2], [3, 4]]), axis=0)
    array([[3, 4]], dtype=int32)
    """
    check_stream(stream)
    return _compressed("compress", as_array(condition), as_array(a), axis, size, fill_value)


def _compressed(
    name: str, condition: array, x: array, axis: int | None, size: int | None, fill_value: ArrayLike
) -> array:
    if axis is None:
        x, axis = to_shape(x, (x.size,)), 0
    axis = one_axis(name, axis, x.shape)
    if condition.ndim != 1:
        raise ShapeError(at_user_line(f"smelt.{name}: the condition must be a vector, is {condition.aval}"))
    fill = convert(as_array(fill_value, x.dtype), x.dtype)
    if fill.ndim:
        raise ShapeError(at_user_line(f"smelt.{name}: fill_value must be a scalar, is {fill.aval}"))
    before: Any = (slice(None),) * axis
    if size is None:
        instead = "give size=, or use smelt.where(condition, x, other)"
        (known,) = np.nonzero(host_values(name, convert(condition, dtypes.bool_), instead))
        if known.size and known[-1] >= x.shape[axis]:
            message = f"smelt.{name}: the condition holds at {known[-1]}, axis {axis} of {x.aval} ends before"
            raise IndexOutOfRangeError(at_user_line(message))
        return getitem(x, (*before, known))
    count = integer(name, "size", size, 0)
    shape = (*x.shape[:axis], count, *x.shape[axis + 1 :])
    used = min(condition.size, x.shape[axis])
    places, there = first_places(convert(condition, dtypes.bool_)[:used], count)
    if not used or not count:
        return wrap(emit(ops["broadcast"], (fill,), {"shape": shape})._ref)
    kept = getitem(x, (*before, select(there, places, filled((count,), 0, places.dtype))))
    there = to_shape(there, (*[1] * axis, count, *[1] * (x.ndim - axis - 1)))
    there, spread = (emit(ops["broadcast"], (v,), {"shape": shape}) for v in (there, fill))
    return select(there, kept, spread)


def extract(
    condition: ArrayLike,
    a: ArrayLike,
    /,
    *,
    size: int | None = None,
    fill_value: ArrayLike = 0,
    stream: StreamOrDevice = None,
) -> array:
    """The elements of the flattened array at which the flattened condition holds; see `compress`.

    >>> import smelt
    >>> x = smelt.array([[1, 2], [3, 4]])
    >>> smelt.extract(x > 2, x)
    array([3, 4], dtype=int32)
    """
    check_stream(stream)
    test = as_array(condition)
    return _compressed("extract", to_shape(test, (test.size,)), as_array(a), None, size, fill_value)


explain_keywords(globals())
