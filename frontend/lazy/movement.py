"""Checks of axes and shapes, and short forms of the ops that move elements: what array functions are made of."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from smelt.ir import dtypes
from smelt.ir.dtypes import DType
from smelt.ir.errors import ArgumentTypeError, AxisError, OutOfMemoryError, ShapeError, at_user_line, shown
from smelt.ir.op import registry as ops
from smelt.ir.settings import settings
from smelt.ir.symbolic import index

from . import arrays
from .arguments import MOST, entries, listed
from .arrays import array, broadcast_to_shape, emit, emit_elementwise, wrap

Axes = int | Sequence[int]


# Checks of axes and shapes

#: Of shapes, and of other lists of an int for each axis: what nobody means, and what takes long to look at.
MOST_ENTRIES = 1 << 16


def one_axis(name: str, axis: int, shape: Sequence[int] | int) -> int:
    """`axis` of an array of a shape, or of so many dimensions, counted from the front. The error names the function."""
    ndim = shape if isinstance(shape, int) else len(shape)
    try:
        found = index(axis)
    except TypeError:
        hint = "; several arrays are one list" if hasattr(type(axis), "aval") else ""
        message = f"smelt.{name}: an axis is an int, got {type(axis).__name__}{hint}"
        raise ArgumentTypeError(at_user_line(message)) from None
    if not -ndim <= found < ndim:
        raise AxisError(at_user_line(f"smelt.{name}: axis {shown(found)} out of range for {_said(shape)}"))
    return found % ndim


def _said(shape: Sequence[int] | int) -> str:
    if isinstance(shape, int):
        return f"{shape} dimension{'s' if shape != 1 else ''}"
    return f"shape {tuple(shape)}"


def many_axes(name: str, axes: Axes | None, shape: Sequence[int] | int) -> tuple[int, ...]:
    """Axes counted from the front, without repetition; None is all of them."""
    if axes is None:
        return tuple(range(shape if isinstance(shape, int) else len(shape)))
    given = listed(name, "axis", axes) if isinstance(axes, (tuple, list, range)) else (axes,)
    found = tuple([one_axis(name, a, shape) for a in given])
    if len(set(found)) != len(found):
        raise ShapeError(at_user_line(f"smelt.{name}: axes {given} repeat an axis"))
    return found


def counting(most: int) -> DType:
    """The dtype of numbers of elements, and of their places, where there are so many: int32 where that holds them."""
    return dtypes.int32 if most < 2**31 else dtypes.int64


#: What can be iterated over, but is no list of ints: characters, bytes, keys, elements in no order.
_NO_LISTS = (str, bytes, bytearray, memoryview, dict, set, frozenset)


def shape_tuple(name: str, shape: Axes, what: str = "a shape consists") -> tuple[int, ...]:
    """A shape, or `what` else is given as an int or a sequence of ints."""
    if isinstance(shape, (tuple, list, range)) and _is_long(shape):
        raise ShapeError(at_user_line(f"smelt.{name}: {what} of {MOST_ENTRIES:,} ints at most, got {shown(shape)}"))
    try:
        is_one = _is_one(shape) or isinstance(shape, _NO_LISTS)
        return tuple([index(d) for d in ((shape,) if is_one else entries(shape))])
    except TypeError:
        raise ArgumentTypeError(at_user_line(f"smelt.{name}: {what} of ints, got {shown(shape)}")) from None


def _is_one(shape: Any) -> bool:
    try:
        return not isinstance(shape, Iterable) or getattr(shape, "ndim", None) == 0
    except ValueError:  # a memoryview that is released
        return False


def _is_long(listed: Sequence[Any]) -> bool:
    try:
        return len(listed) > MOST_ENTRIES
    except OverflowError:  # of a range
        return True


def checked_shape(name: str, shape: Axes) -> tuple[int, ...]:
    """`shape_tuple` for a shape to be made: no extent is negative, and the elements can be counted."""
    found = shape_tuple(name, shape)
    if any(d < 0 for d in found):
        raise ShapeError(at_user_line(f"smelt.{name}: shape {shown(found)} has a negative extent"))
    if not _is_addressable(found):
        message = f"smelt.{name}: shape {shown(found)} has more elements than can be addressed"
        raise OutOfMemoryError(at_user_line(message))
    return found


def _is_addressable(shape: tuple[int, ...]) -> bool:
    size = 1
    for extent in shape:
        size *= max(extent, 1)
        if size > MOST:
            return False
    return True


# Short forms of ops


def to_shape(x: array, shape: tuple[int, ...]) -> array:
    """The elements in another shape of the same size."""
    return wrap(x._ref) if x.aval.shape == shape else emit(ops["reshape"], (x,), {"shape": shape})


def permuted(x: array, permutation: tuple[int, ...]) -> array:
    """Axis i of the result is axis permutation[i] of x."""
    if permutation == tuple(range(x.ndim)):
        return wrap(x._ref)
    return emit(ops["transpose"], (x,), {"permutation": permutation})


def reversed_along(x: array, axes: tuple[int, ...]) -> array:
    return emit(ops["reverse"], (x,), {"axes": axes}) if axes else wrap(x._ref)


def sliced(x: array, start: Sequence[int], stop: Sequence[int], stride: Sequence[int] | None = None) -> array:
    """start:stop:stride along each axis; strides are positive."""
    start, stop = tuple(start), tuple(stop)
    stride = (1,) * len(start) if stride is None else tuple(stride)
    if stop == x.aval.shape and not any(start) and all(s == 1 for s in stride):
        return wrap(x._ref)
    return emit(ops["slice"], (x,), {"start": start, "stop": stop, "stride": stride})


def piece(x: array, axis: int, start: int, stop: int, stride: int = 1) -> array:
    """start:stop:stride along one axis."""
    shape = x.aval.shape
    low, high, step = [0] * len(shape), list(shape), [1] * len(shape)
    low[axis], high[axis], step[axis] = start, stop, stride
    return sliced(x, low, high, step)


def filled(shape: tuple[int, ...], value: Any, dtype: DType) -> array:
    """An array of one Python scalar."""
    return arrays.spread_scalar(value, dtype, shape)


def padded(
    x: array, value: array, low: Sequence[int], high: Sequence[int], interior: Sequence[int] | None = None
) -> array:
    """x with elements of the scalar `value` around and between its elements."""
    if not (any(low) or any(high) or (interior and any(interior))):
        return wrap(x._ref)
    interior = (0,) * x.ndim if interior is None else tuple(interior)
    return emit(ops["pad"], (x, value), {"low": tuple(low), "high": tuple(high), "interior": interior})


def iota(shape: tuple[int, ...], axis: int, dtype: DType | None = None) -> array:
    """The index along an axis, by default as int32; int64 where that is too small for any of the axes."""
    if dtype is None:
        dtype = dtypes.int64 if any(d >= 2**31 for d in shape) else dtypes.int32
    return emit(ops["iota"], (), {"shape": shape, "axis": axis, "dtype": dtype})


def select(condition: array, x: array, y: array) -> array:
    """x where the condition holds, else y; all of one shape."""
    return emit_elementwise(ops["select"], condition, x, y)


def broadcast_together(name: str, xs: Sequence[array]) -> tuple[array, ...]:
    """`broadcast_arrays` with errors that name another function."""
    shape = arrays.broadcast_shapes(name, *[x.shape for x in xs])
    return tuple([broadcast_to_shape(x, shape) for x in xs])


def joined(xs: list[array], axis: int) -> array:
    """Concatenation as a balanced tree: the op takes two, and a chain would copy n²/2 elements."""
    while len(xs) > 1:
        pairs = [emit(ops["concatenate"], xs[i : i + 2], {"axis": axis}) for i in range(0, len(xs) - 1, 2)]
        xs = pairs + xs[len(pairs) * 2 :]
    return xs[0]


def clamped(index: array, high: int) -> array:
    """Indices brought between 0 and `high`, which may be more than their dtype holds."""
    high = min(high, int(np.iinfo(index.dtype.numpy).max))
    low = emit_elementwise(ops["maximum"], index, filled(index.shape, 0, index.dtype))
    return emit_elementwise(ops["minimum"], low, filled(index.shape, high, index.dtype))


def for_gather(index: array, high: int) -> array:
    """Indices that may lie outside 0 … `high` on purpose: gather clamps them, but checked kernels refuse them."""
    return clamped(index, high) if settings.check else index
