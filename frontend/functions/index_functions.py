"""Indexing by functions: take and put along an axis, windows at places known at run time."""

from __future__ import annotations

import builtins
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from smelt.ir import dtypes
from smelt.ir.errors import ArgumentTypeError, AttributeValueError, DTypeError, ShapeError, at_user_line, shown
from smelt.ir.op import registry as ops

from ..lazy.arguments import word
from ..lazy.arrays import ArrayLike, StreamOrDevice, array, as_array, broadcast_to_shape, convert, emit, wrap
from ..lazy.core import remembered
from ..lazy.movement import clamped, filled, for_gather, iota, many_axes, one_axis, shape_tuple, sliced, to_shape
from ..lazy.streams import check_stream
from .arithmetic import clip, remainder
from .at import ArrayAt
from .indexing import check_not_empty, getitem, holds_array, host_array, in_range, of_one_dtype, wrapped_once
from .known_indices import check_along
from .updating import fitted, value_for

__all__ = [
    "put_along_axis",
    "slice",
    "slice_update",
    "take",
    "take_along_axis",
]


def _index_array(name: str, indices: ArrayLike) -> Any:
    """Indices as a smelt array, or as a NumPy array if their values are known."""
    if isinstance(indices, (int, list, tuple, np.ndarray, np.generic, range)) and not (
        isinstance(indices, (list, tuple)) and holds_array(indices)
    ):
        found: Any = host_array(indices)
        if not found.size and not isinstance(indices, np.ndarray):
            found = found.astype(np.int32)
        integers = found.dtype.kind in "iu"
    else:
        found = as_array(indices)
        integers = found.dtype.is_integer
    if not integers:
        raise DTypeError(at_user_line(f"smelt.{name}: indices must be integers, are {found.dtype}"))
    return found


_check_taken = check_along("take", None, 2)


def _check_take(args: tuple, named: dict[str, Any]) -> None:
    mode = named.get("mode", "raise")
    if isinstance(mode, str) and mode == "raise":
        _check_taken(args, named)


@partial(remembered, check=_check_take)
def take(
    a: ArrayLike, /, indices: int | ArrayLike, axis: int | None = None, *, mode: str = "raise",
    fill_value: bool | int | float | complex | None = None, stream: StreamOrDevice = None,
) -> array:  # fmt: skip
    """Elements of an axis (of the flattened array if None) at given indices.

    The result's shape is that of `a` with the axis replaced by the shape of `indices`.

    Args:
        mode: what an index out of range is: an error ("raise"), the nearest one ("clip": negative ones are 0), or
            counted on from the other end ("wrap"), or `fill_value` is read in its place ("fill").
        fill_value: a number, for "fill"; by default NaN, the least signed or the greatest unsigned integer, True.

    Raises:
        IndexOutOfRangeError: an index that is known is out of range, and `mode` is "raise". AttributeValueError: a mode
            that is none, a `fill_value` for another mode. ArgumentTypeError: a `fill_value` that is no number.

    >>> import smelt
    >>> smelt.take(smelt.array([[1, 2], [3, 4]]), smelt.array([1, 0]), axis=1)
    array([[2, 1],
           [4, 3]], dtype=int32)
    """
    check_stream(stream)
    x = as_array(a)
    if axis is None:
        x, axis = to_shape(x, (x.size,)), 0
    axis = one_axis("take", axis, x.shape)
    index = indices if type(indices) is int else _index_array("take", indices)
    way = word("take", "mode", mode, "raise", "clip", "wrap", "fill")
    if fill_value is not None and way != "fill":
        raise AttributeValueError(at_user_line(f'smelt.take: fill_value={shown(fill_value)} is for mode="fill"'))
    if way == "fill":
        if fill_value is not None and not isinstance(fill_value, (bool, int, float, complex, np.generic)):
            raise ArgumentTypeError(at_user_line(f"smelt.take: fill_value must be a number, is {shown(fill_value)}"))
        return ArrayAt(x, ((*[builtins.slice(None)] * axis, index),)).get(mode="fill", fill_value=fill_value)
    if way != "raise":
        index = _within(way, as_array(index), x, axis)
    return getitem(x, (*[builtins.slice(None)] * axis, index))


def _within(mode: str, index: array, x: array, axis: int) -> array:
    """Indices made to lie in an axis of x."""
    extent = x.shape[axis]
    if not extent and index.size:
        raise ShapeError(at_user_line(f"smelt.take: axis {axis} of {x.aval} has no elements"))
    if index.dtype.size < 4:
        index = convert(index, dtypes.int32)
    return clip(index, 0, extent - 1) if mode == "clip" else remainder(index, extent)


def _along(name: str, a: ArrayLike, indices: ArrayLike, axis: int | None) -> tuple[array, array, int]:
    """The array, in-range indices, and the axis: all axes but that one broadcast."""
    x, index = as_array(a), _index_array(name, indices)
    if axis is None:
        x, axis = to_shape(x, (x.size,)), 0
        index = index.reshape(-1) if isinstance(index, np.ndarray) else to_shape(index, (index.size,))
    axis = one_axis(name, axis, x.shape)
    if index.ndim != x.ndim:
        raise ShapeError(at_user_line(f"smelt.{name}: indices have {index.ndim} axes; a {x.aval}"))
    for i, (d, n) in enumerate(zip(x.shape, index.shape)):
        if i != axis and d != n and 1 not in (d, n):
            raise ShapeError(
                at_user_line(f"smelt.{name}: indices of shape {tuple(index.shape)} do not fit on axis {i}; a {x.aval}")
            )
    return x, in_range(index, axis, x), axis


def _grid(index: array, axis: int) -> list[array]:
    """Index arrays for all axes: `index` for one, the element's own place for the others."""
    return of_one_dtype(index if i == axis else iota(index.shape, i) for i in range(index.ndim))


@partial(remembered, check=check_along("take_along_axis", -1, 2))
def take_along_axis(
    a: ArrayLike, /, indices: ArrayLike, axis: int | None = -1, *, stream: StreamOrDevice = None
) -> array:
    """One element for each entry of `indices`: result[…, i, …] = a[…, indices[…, i, …], …].

    Without `axis` both are flattened. The other axes are broadcast.

    >>> import smelt
    >>> smelt.take_along_axis(smelt.array([[1, 2], [3, 4]]), smelt.array([[1], [0]]), axis=1)
    array([[2],
           [3]], dtype=int32)
    """
    check_stream(stream)
    x, index, axis = _along("take_along_axis", a, indices, axis)
    common = [max(d, n) if d and n else 0 for d, n in zip(x.shape, index.shape)]
    at, of = list(common), list(common)
    at[axis], of[axis] = index.shape[axis], x.shape[axis]
    index, x = broadcast_to_shape(index, tuple(at)), broadcast_to_shape(x, tuple(of))
    if not index.size:
        return filled(index.shape, 0, x.dtype)
    check_not_empty(x, (axis,))
    attrs = {"axes": tuple(range(x.ndim)), "slice_sizes": (1,) * x.ndim}
    return to_shape(emit(ops["gather"], (x, *_grid(index, axis)), attrs), index.shape)


@partial(remembered, check=check_along("put_along_axis", None, 3))
def put_along_axis(
    a: ArrayLike,
    /,
    indices: ArrayLike,
    values: ArrayLike,
    axis: int | None = None,
    *,
    stream: StreamOrDevice = None,
) -> array:
    """A copy with one element written for each entry of `indices`; see `take_along_axis`.

    Without `axis` the flattened array is written to. `values` are broadcast to the indices.

    >>> import smelt
    >>> smelt.put_along_axis(smelt.array([[1, 2], [3, 4]]), smelt.array([[1], [0]]), 9, axis=1)
    array([[1, 9],
           [9, 4]], dtype=int32)
    """
    check_stream(stream)
    whole = as_array(a)
    new = value_for(whole, values)
    x, index, along = _along("put_along_axis", whole, indices, axis)
    shape = tuple(n if i == along else d for i, (d, n) in enumerate(zip(x.shape, index.shape)))
    index = broadcast_to_shape(index, shape) if index.size else index
    if axis is None and new.ndim > 1:
        new = to_shape(new, (new.size,))
    new = fitted(new, index.shape)
    if not index.size or not x.size:
        return wrap(whole._ref)
    new = to_shape(new, (*index.shape, *[1] * x.ndim))
    attrs = {"axes": tuple(range(x.ndim)), "mode": "set"}
    return to_shape(emit(ops["scatter"], (x, new, *_grid(index, along)), attrs), whole.shape)


def _starts(name: str, x: array, start_indices: ArrayLike, axes: Sequence[int]) -> tuple[tuple[int, ...], list[array]]:
    along = many_axes(name, shape_tuple(name, axes, "axes consist"), x.shape)
    starts = as_array(start_indices)
    if not starts.dtype.is_integer or starts.ndim > 1 or starts.size != len(along):
        raise ShapeError(
            at_user_line(f"smelt.{name}: start_indices must be one integer for each of axes {along}, is {starts.aval}")
        )
    flat = to_shape(starts, (starts.size,))
    return along, [wrapped_once(flat[i], x.shape[a]) for i, a in enumerate(along)]


@remembered
def slice(
    a: ArrayLike,
    start_indices: ArrayLike,
    axes: Sequence[int],
    slice_size: Sequence[int],
    *,
    stream: StreamOrDevice = None,
) -> array:
    """A window of the given size that starts at indices known only at run time.

    Args:
        start_indices: one integer for each axis in `axes`; the other axes start at 0. A window that
            would leave the array is moved inside.
        axes: those that are cut. slice_size: the extent of the window on each axis of `a`.

    Raises:
        ShapeError: the window is larger than the array.

    >>> import smelt
    >>> smelt.slice(smelt.arange(5), smelt.array([2]), (0,), (2,))
    array([2, 3], dtype=int32)
    """
    check_stream(stream)
    x = as_array(a)
    along, starts = _starts("slice", x, start_indices, axes)
    sizes = shape_tuple("slice", slice_size, "sizes consist")
    if len(sizes) != x.ndim or any(not 0 <= s <= d for s, d in zip(sizes, x.shape)):
        raise ShapeError(at_user_line(f"smelt.slice: slice_size {sizes} does not fit into a {x.aval}"))
    if not along:
        return sliced(x, [0] * x.ndim, sizes)
    starts = [for_gather(s, x.shape[axis] - sizes[axis]) for s, axis in zip(starts, along)]
    return emit(ops["gather"], (x, *starts), {"axes": along, "slice_sizes": sizes})


@remembered
def slice_update(
    a: ArrayLike,
    update: ArrayLike,
    start_indices: ArrayLike,
    axes: Sequence[int],
    *,
    stream: StreamOrDevice = None,
) -> array:
    """A copy with a window overwritten that starts at indices known only at run time; see `slice`.

    The window has the shape of `update`, and the whole extent of axes of `a` that `update` has not.

    Raises:
        ShapeError: the window is larger than the array.

    >>> import smelt
    >>> smelt.slice_update(smelt.zeros(4), smelt.ones(2), smelt.array([1]), (0,))
    array([0, 1, 1, 0], dtype=float32)
    """
    check_stream(stream)
    x = as_array(a)
    new = value_for(x, update)
    along, starts = _starts("slice_update", x, start_indices, axes)
    shape = x.shape[: max(x.ndim - new.ndim, 0)] + new.shape
    if len(shape) != x.ndim or any(s > d for s, d in zip(shape, x.shape)):
        raise ShapeError(at_user_line(f"smelt.slice_update: update {new.aval} does not fit into a {x.aval}"))
    if not new.size:
        return wrap(x._ref)
    limits = [x.shape[a] - shape[a] for a in along]
    inside = [clamped(s, high) for s, high in zip(starts, limits)]
    return emit(ops["scatter"], (x, broadcast_to_shape(new, shape), *inside), {"axes": along, "mode": "set"})
