"""Shapes and layouts: functions whose results hold their operands' elements at other places."""

from __future__ import annotations

import builtins
import itertools
import math
import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from smelt.ir import dtypes
from smelt.ir.dtypes import DType
from smelt.ir.errors import AttributeValueError, DTypeError, IndexOutOfRangeError, ShapeError, at_user_line
from smelt.ir.op import registry as ops

from . import arrays
from .arrays import (
    ArrayLike,
    array,
    as_array,
    broadcast_to_shape,
    convert,
    emit,
    emit_elementwise,
    scalar_array,
)

__all__ = [
    "as_strided",
    "astype",
    "atleast_1d",
    "atleast_2d",
    "atleast_3d",
    "broadcast_arrays",
    "broadcast_shapes",
    "broadcast_to",
    "concat",
    "concatenate",
    "contiguous",
    "diag",
    "diagonal",
    "expand_dims",
    "flatten",
    "flip",
    "matrix_transpose",
    "meshgrid",
    "moveaxis",
    "pad",
    "permute_dims",
    "repeat",
    "reshape",
    "roll",
    "split",
    "squeeze",
    "stack",
    "swapaxes",
    "tile",
    "trace",
    "transpose",
    "tril",
    "triu",
    "unflatten",
    "unstack",
    "view",
]

StreamOrDevice = Any  #: accepted for MLX's sake and ignored: arrays run on the default device
Axes = int | Sequence[int]


# Checks of axes and shapes


def one_axis(name: str, axis: int, ndim: int) -> int:
    """`axis` counted from the front. The error names the function."""
    try:
        found = operator.index(axis)
    except TypeError:
        raise TypeError(at_user_line(f"smelt.{name}: an axis is an int, got {type(axis).__name__}")) from None
    if not -ndim <= found < ndim:
        raise ShapeError(at_user_line(f"smelt.{name}: axis {found} out of range for {ndim} dimensions"))
    return found % ndim


def many_axes(name: str, axes: Axes | None, ndim: int) -> tuple[int, ...]:
    """Axes counted from the front, without repetition; None is all of them."""
    if axes is None:
        return tuple(range(ndim))
    listed = axes if isinstance(axes, (tuple, list)) else (axes,)
    found = tuple(one_axis(name, a, ndim) for a in listed)
    if len(set(found)) != len(found):
        raise ShapeError(at_user_line(f"smelt.{name}: axes {tuple(listed)} repeat an axis"))
    return found


def shape_tuple(name: str, shape: Axes) -> tuple[int, ...]:
    """A shape given as an int or a sequence of ints."""
    try:
        listed = (operator.index(shape),) if not isinstance(shape, (tuple, list)) else shape  # type: ignore[arg-type]
    except TypeError:
        listed = tuple(shape)  # type: ignore[arg-type]
    try:
        return tuple([operator.index(d) for d in listed])
    except TypeError:
        raise TypeError(at_user_line(f"smelt.{name}: a shape consists of ints, got {shape!r}")) from None


def checked_shape(name: str, shape: Axes) -> tuple[int, ...]:
    """`shape_tuple` for a shape to be made: no extent is negative."""
    found = shape_tuple(name, shape)
    if any(d < 0 for d in found):
        raise ShapeError(at_user_line(f"smelt.{name}: shape {found} has a negative extent"))
    return found


# Plumbing that other modules use too


def to_shape(x: array, shape: tuple[int, ...]) -> array:
    """The elements in another shape of the same size."""
    return x if x.aval.shape == shape else emit(ops["reshape"], (x,), {"shape": shape})


def permuted(x: array, permutation: tuple[int, ...]) -> array:
    """Axis i of the result is axis permutation[i] of x."""
    if permutation == tuple(range(x.ndim)):
        return x
    return emit(ops["transpose"], (x,), {"permutation": permutation})


def sliced(x: array, start: Sequence[int], stop: Sequence[int], stride: Sequence[int] | None = None) -> array:
    """start:stop:stride along each axis; strides are positive."""
    start, stop = tuple(start), tuple(stop)
    stride = (1,) * len(start) if stride is None else tuple(stride)
    if stop == x.aval.shape and not any(start) and all(s == 1 for s in stride):
        return x
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
        return x
    interior = (0,) * x.ndim if interior is None else tuple(interior)
    return emit(ops["pad"], (x, value), {"low": tuple(low), "high": tuple(high), "interior": interior})


def iota(shape: tuple[int, ...], axis: int, dtype: DType | None = None) -> array:
    """The index along an axis, by default as int32 (int64 where that is too small)."""
    if dtype is None:
        dtype = dtypes.int32 if shape[axis] < 2**31 else dtypes.int64
    return emit(ops["iota"], (), {"shape": shape, "axis": axis, "dtype": dtype})


def select(condition: array, x: array, y: array) -> array:
    """x where the condition holds, else y; all of one shape."""
    return emit_elementwise(ops["select"], condition, x, y)


def _arrays(name: str, values: Any) -> list[array]:
    """A sequence of arrays (or one array, over its first axis) in their common dtype."""
    if isinstance(values, array):
        values = list(unstack(values)) if values.ndim else [values]
    if not isinstance(values, (list, tuple)) or not values:
        what = "an empty sequence" if isinstance(values, (list, tuple)) else type(values).__name__
        raise ShapeError(at_user_line(f"smelt.{name}: needs a list of at least one array, got {what}"))
    found = [as_array(v) for v in values]
    dtype = found[0].dtype
    for x in found[1:]:
        dtype = dtypes.promote(dtype, x.dtype)
    return [convert(x, dtype) for x in found]


def _joined(xs: list[array], axis: int) -> array:
    """Concatenation as a balanced tree: the op takes two, and a chain would copy n²/2 elements."""
    while len(xs) > 1:
        pairs = [emit(ops["concatenate"], xs[i : i + 2], {"axis": axis}) for i in range(0, len(xs) - 1, 2)]
        xs = pairs + xs[len(pairs) * 2 :]
    return xs[0]


# Shape alone


def reshape(a: ArrayLike, /, shape: Axes, *, stream: StreamOrDevice = None) -> array:
    """The elements in row-major order in another shape; one extent may be -1 and is worked out.

    Raises:
        ShapeError: the sizes differ.

    >>> import smelt
    >>> smelt.reshape(smelt.arange(6), (2, -1))
    array([[0, 1, 2],
           [3, 4, 5]], dtype=int32)
    """
    x = as_array(a)
    return to_shape(x, _resolved("reshape", x.size, x.shape, shape_tuple("reshape", shape)))


def _resolved(name: str, size: int, old: tuple[int, ...], shape: tuple[int, ...]) -> tuple[int, ...]:
    """`shape` with its -1 replaced."""
    if -1 in shape:
        rest = math.prod(d for d in shape if d != -1)
        if shape.count(-1) > 1 or any(d < -1 for d in shape):
            raise ShapeError(at_user_line(f"smelt.{name}: only one extent of {shape} may be -1, and none below"))
        if not rest or size % rest:
            raise ShapeError(at_user_line(f"smelt.{name}: cannot fit {size} elements of shape {old} into {shape}"))
        return tuple(size // rest if d == -1 else d for d in shape)
    if math.prod(shape) != size or any(d < 0 for d in shape):
        held = f"which holds {math.prod(shape)}" if all(d >= 0 for d in shape) else "which has a negative extent"
        raise ShapeError(at_user_line(f"smelt.{name}: cannot fit {size} elements of shape {old} into {shape}, {held}"))
    return shape


def flatten(a: ArrayLike, /, start_axis: int = 0, end_axis: int = -1, *, stream: StreamOrDevice = None) -> array:
    """Axes start_axis … end_axis joined into one; a scalar becomes a vector of one element.

    >>> import smelt
    >>> smelt.flatten(smelt.ones((2, 3, 4)), 1).shape
    (2, 12)
    """
    x = as_array(a)
    if not x.ndim:
        one_axis("flatten", start_axis, 1), one_axis("flatten", end_axis, 1)
        return to_shape(x, (1,))
    first, last = one_axis("flatten", start_axis, x.ndim), one_axis("flatten", end_axis, x.ndim)
    if first > last:
        raise ShapeError(at_user_line(f"smelt.flatten: start_axis {start_axis} lies behind end_axis {end_axis}"))
    shape = x.shape
    return to_shape(x, (*shape[:first], math.prod(shape[first : last + 1]), *shape[last + 1 :]))


def unflatten(a: ArrayLike, /, axis: int, shape: Sequence[int], *, stream: StreamOrDevice = None) -> array:
    """One axis split into several; one of their extents may be -1.

    >>> import smelt
    >>> smelt.unflatten(smelt.ones((2, 12)), 1, (3, -1)).shape
    (2, 3, 4)
    """
    x = as_array(a)
    axis = one_axis("unflatten", axis, x.ndim)
    d = x.shape[axis]
    split_into = _resolved("unflatten", d, (d,), shape_tuple("unflatten", shape))
    return to_shape(x, (*x.shape[:axis], *split_into, *x.shape[axis + 1 :]))


def squeeze(a: ArrayLike, /, axis: Axes | None = None, *, stream: StreamOrDevice = None) -> array:
    """Without the given axes, which have one element; by default without all such axes.

    >>> import smelt
    >>> smelt.squeeze(smelt.ones((1, 3, 1))).shape
    (3,)
    """
    x = as_array(a)
    if axis is None:
        return to_shape(x, tuple(d for d in x.shape if d != 1))
    axes = many_axes("squeeze", axis, x.ndim)
    for i in axes:
        if x.shape[i] != 1:
            raise ShapeError(at_user_line(f"smelt.squeeze: axis {i} has {x.shape[i]} elements; a {x.aval}"))
    return to_shape(x, tuple(d for i, d in enumerate(x.shape) if i not in axes))


def expand_dims(a: ArrayLike, /, axis: Axes, *, stream: StreamOrDevice = None) -> array:
    """With new axes of one element at the given places of the result.

    >>> import smelt
    >>> smelt.expand_dims(smelt.ones((2, 3)), (0, -1)).shape
    (1, 2, 3, 1)
    """
    x = as_array(a)
    count = len(axis) if isinstance(axis, (tuple, list)) else 1
    axes = many_axes("expand_dims", axis, x.ndim + count)
    rest = iter(x.shape)
    return to_shape(x, tuple(1 if i in axes else next(rest) for i in range(x.ndim + count)))


def _at_least(name: str, arys: Any, grow: Any) -> Any:
    found = [to_shape(x, grow(x.shape)) for x in map(as_array, arys)]
    return found[0] if len(found) == 1 else found


def atleast_1d(*arys: ArrayLike, stream: StreamOrDevice = None) -> array | list[array]:
    """Each argument with at least one axis; a list when there are several arguments.

    >>> import smelt
    >>> smelt.atleast_1d(smelt.array(2.0)).shape
    (1,)
    """
    return _at_least("atleast_1d", arys, lambda s: s or (1,))


def atleast_2d(*arys: ArrayLike, stream: StreamOrDevice = None) -> array | list[array]:
    """Each argument with at least two axes: new ones in front.

    >>> import smelt
    >>> smelt.atleast_2d(smelt.ones(3)).shape
    (1, 3)
    """
    return _at_least("atleast_2d", arys, lambda s: (1,) * (2 - len(s)) + s)


def atleast_3d(*arys: ArrayLike, stream: StreamOrDevice = None) -> array | list[array]:
    """Each argument with at least three axes: a vector becomes (1, n, 1), a matrix (m, n, 1).

    >>> import smelt
    >>> smelt.atleast_3d(smelt.ones(3)).shape
    (1, 3, 1)
    """
    grown = {0: lambda s: (1, 1, 1), 1: lambda s: (1, *s, 1), 2: lambda s: (*s, 1)}
    return _at_least("atleast_3d", arys, lambda s: grown.get(len(s), lambda s: s)(s))


# Order of axes


def transpose(a: ArrayLike, /, axes: Sequence[int] | None = None, *, stream: StreamOrDevice = None) -> array:
    """Permuted axes: axis i of the result is axis axes[i]; by default in reversed order.

    >>> import smelt
    >>> smelt.transpose(smelt.ones((2, 3, 4)), (0, 2, 1)).shape
    (2, 4, 3)
    """
    x = as_array(a)
    if axes is None:
        return permuted(x, tuple(range(x.ndim))[::-1])
    order = many_axes("transpose", axes, x.ndim)
    if len(order) != x.ndim:
        raise ShapeError(at_user_line(f"smelt.transpose: axes {tuple(axes)} must name all {x.ndim} axes; a {x.aval}"))
    return permuted(x, order)


permute_dims = transpose


def matrix_transpose(a: ArrayLike, /, *, stream: StreamOrDevice = None) -> array:
    """The last two axes exchanged.

    >>> import smelt
    >>> smelt.matrix_transpose(smelt.ones((5, 2, 3))).shape
    (5, 3, 2)
    """
    x = as_array(a)
    if x.ndim < 2:
        raise ShapeError(at_user_line(f"smelt.matrix_transpose: needs at least two axes; a {x.aval}"))
    return permuted(x, (*range(x.ndim - 2), x.ndim - 1, x.ndim - 2))


def swapaxes(a: ArrayLike, /, axis1: int, axis2: int, *, stream: StreamOrDevice = None) -> array:
    """Two axes exchanged.

    >>> import smelt
    >>> smelt.swapaxes(smelt.ones((2, 3, 4)), 0, 2).shape
    (4, 3, 2)
    """
    x = as_array(a)
    i, j = one_axis("swapaxes", axis1, x.ndim), one_axis("swapaxes", axis2, x.ndim)
    order = list(range(x.ndim))
    order[i], order[j] = j, i
    return permuted(x, tuple(order))


def moveaxis(a: ArrayLike, /, source: Axes, destination: Axes, *, stream: StreamOrDevice = None) -> array:
    """Axes moved from `source` to `destination`; the others keep their order.

    >>> import smelt
    >>> smelt.moveaxis(smelt.ones((2, 3, 4)), 0, -1).shape
    (3, 4, 2)
    """
    x = as_array(a)
    old, new = many_axes("moveaxis", source, x.ndim), many_axes("moveaxis", destination, x.ndim)
    if len(old) != len(new):
        raise ShapeError(at_user_line(f"smelt.moveaxis: {len(old)} source axes, {len(new)} destinations"))
    order = [i for i in range(x.ndim) if i not in old]
    for to, axis in sorted(zip(new, old)):
        order.insert(to, axis)
    return permuted(x, tuple(order))


# Repetition


def broadcast_to(a: ArrayLike, /, shape: Axes, *, stream: StreamOrDevice = None) -> array:
    """Stretched to a shape by NumPy's rule: new axes in front, axes of one element repeated.

    >>> import smelt
    >>> smelt.broadcast_to(smelt.array([1, 2]), (2, 2))
    array([[1, 2],
           [1, 2]], dtype=int32)
    """
    x, shape = as_array(a), checked_shape("broadcast_to", shape)
    lead = len(shape) - x.ndim
    if lead < 0 or any(d not in (1, s) for d, s in zip(x.shape, shape[lead:])):
        raise ShapeError(at_user_line(f"smelt.broadcast_to: cannot broadcast shape {x.shape} to {shape}"))
    return broadcast_to_shape(x, shape)


def broadcast_shapes(*shapes: Axes) -> tuple[int, ...]:
    """The shape that all of these broadcast to.

    >>> import smelt
    >>> smelt.broadcast_shapes((3, 1), (4,))
    (3, 4)
    """
    return arrays.broadcast_shapes("broadcast_shapes", *[shape_tuple("broadcast_shapes", s) for s in shapes])


def broadcast_arrays(*arrays: ArrayLike, stream: StreamOrDevice = None) -> tuple[array, ...]:
    """The arrays stretched to their common shape.

    >>> import smelt
    >>> [x.shape for x in smelt.broadcast_arrays(smelt.ones((3, 1)), smelt.ones(4))]
    [(3, 4), (3, 4)]
    """
    return broadcast_together("broadcast_arrays", [as_array(x) for x in arrays])


def broadcast_together(name: str, xs: Sequence[array]) -> tuple[array, ...]:
    """`broadcast_arrays` with errors that name another function."""
    shape = arrays.broadcast_shapes(name, *[x.shape for x in xs])
    return tuple([broadcast_to_shape(x, shape) for x in xs])


def tile(a: ArrayLike, reps: Axes, /, *, stream: StreamOrDevice = None) -> array:
    """The whole array repeated `reps` times along each axis; missing axes are added in front.

    >>> import smelt
    >>> smelt.tile(smelt.array([1, 2]), 2)
    array([1, 2, 1, 2], dtype=int32)
    """
    x, times = as_array(a), checked_shape("tile", reps)
    ndim = max(x.ndim, len(times))
    times = (1,) * (ndim - len(times)) + times
    shape = (1,) * (ndim - x.ndim) + x.shape
    spread = tuple(d for r, s in zip(times, shape) for d in ((r, s) if r != 1 else (s,)))
    kept = tuple(d for r, s in zip(times, shape) for d in ((1, s) if r != 1 else (s,)))
    return to_shape(broadcast_to_shape(to_shape(x, kept), spread), tuple(r * s for r, s in zip(times, shape)))


def repeat(array: ArrayLike, repeats: int, axis: int | None = None, *, stream: StreamOrDevice = None) -> array:
    """Each element repeated along an axis; without `axis`, of the flattened array.

    >>> import smelt
    >>> smelt.repeat(smelt.array([1, 2]), 2)
    array([1, 1, 2, 2], dtype=int32)
    """
    x = as_array(array)
    (count,) = checked_shape("repeat", operator.index(repeats))
    if axis is None:
        x, axis = to_shape(x, (x.size,)), 0
    axis = one_axis("repeat", axis, x.ndim)
    before, d, after = x.shape[:axis], x.shape[axis], x.shape[axis + 1 :]
    spread = broadcast_to_shape(to_shape(x, (*before, d, 1, *after)), (*before, d, count, *after))
    return to_shape(spread, (*before, d * count, *after))


def meshgrid(
    *arrays: ArrayLike, sparse: bool | None = False, indexing: str | None = "xy", stream: StreamOrDevice = None
) -> tuple[array, ...]:
    """Coordinates of a grid from vectors of coordinates, one for each axis.

    Args:
        sparse: leave the axes on which a result does not depend at one element.
        indexing: "ij": the i-th vector belongs to axis i; "xy": the first two axes are exchanged.

    >>> import smelt
    >>> [g.shape for g in smelt.meshgrid(smelt.ones(2), smelt.ones(3), indexing="ij")]
    [(2, 3), (2, 3)]
    """
    if indexing not in ("xy", "ij"):
        raise AttributeValueError(at_user_line(f'smelt.meshgrid: indexing must be "xy" or "ij", is {indexing!r}'))
    given = [as_array(x) for x in arrays]
    for x in given:
        if x.ndim > 1:
            raise ShapeError(at_user_line(f"smelt.meshgrid: needs vectors, got {x.aval}"))
    xs = [to_shape(x, (x.size,)) for x in given]
    order = list(range(len(xs)))
    if indexing == "xy" and len(xs) > 1:
        order[:2] = [1, 0]
    found = [to_shape(x, tuple(x.size if i == a else 1 for i in range(len(xs)))) for x, a in zip(xs, order)]
    return tuple(found) if sparse else broadcast_together("meshgrid", found)


# Joining and cutting


def concatenate(arrays: Sequence[ArrayLike], axis: int | None = 0, *, stream: StreamOrDevice = None) -> array:
    """Arrays one after the other along an axis, in their common dtype; flattened when `axis` is None.

    Raises:
        ShapeError: shapes that differ on another axis.

    >>> import smelt
    >>> smelt.concatenate([smelt.array([1, 2]), smelt.array([3])])
    array([1, 2, 3], dtype=int32)
    """
    xs = _arrays("concatenate", arrays)
    if axis is None:
        return _joined([to_shape(x, (x.size,)) for x in xs], 0)
    along = one_axis("concatenate", axis, xs[0].ndim)
    rest = {(len(x.shape), *x.shape[:along], *x.shape[along + 1 :]) for x in xs}
    if len(rest) != 1:
        shapes = ", ".join(str(x.shape) for x in xs)
        raise ShapeError(at_user_line(f"smelt.concatenate: shapes must agree on all axes but {along}: {shapes}"))
    return _joined(xs, along)


concat = concatenate


def stack(arrays: Sequence[ArrayLike], axis: int | None = 0, *, stream: StreamOrDevice = None) -> array:
    """Arrays of one shape along a new axis.

    >>> import smelt
    >>> smelt.stack([smelt.array([1, 2]), smelt.array([3, 4])], axis=1)
    array([[1, 3],
           [2, 4]], dtype=int32)
    """
    xs = _arrays("stack", arrays)
    shape = xs[0].shape
    if any(x.shape != shape for x in xs):
        shapes = ", ".join(str(x.shape) for x in xs)
        raise ShapeError(at_user_line(f"smelt.stack: arrays must have the same shape: {shapes}"))
    along = one_axis("stack", 0 if axis is None else axis, len(shape) + 1)
    return _joined([to_shape(x, (*shape[:along], 1, *shape[along:])) for x in xs], along)


def split(
    a: ArrayLike, /, indices_or_sections: int | Sequence[int], axis: int = 0, *, stream: StreamOrDevice = None
) -> list[array]:
    """Pieces along an axis: so many of equal size, or cut at the given indices.

    Raises:
        ShapeError: the axis does not divide into that many equal pieces.

    >>> import smelt
    >>> smelt.split(smelt.array([1, 2, 3, 4]), [1, 3])
    [array([1], dtype=int32), array([2, 3], dtype=int32), array([4], dtype=int32)]
    """
    x = as_array(a)
    axis = one_axis("split", axis, x.ndim)
    d = x.shape[axis]
    if isinstance(indices_or_sections, (list, tuple, np.ndarray)) or getattr(indices_or_sections, "ndim", False):
        cuts = [operator.index(i) for i in indices_or_sections]  # type: ignore[union-attr]
        points = [0, *(min(max(i + d if i < 0 else i, 0), d) for i in cuts), d]
        return [piece(x, axis, p, max(p, q)) for p, q in itertools.pairwise(points)]
    count = operator.index(indices_or_sections)  # type: ignore[arg-type]
    if count < 1 or d % count:
        raise ShapeError(at_user_line(f"smelt.split: {d} elements do not divide into {count} equal pieces; a {x.aval}"))
    step = d // count
    return [piece(x, axis, i * step, (i + 1) * step) for i in range(count)]


def unstack(x: ArrayLike, /, *, axis: int = 0, stream: StreamOrDevice = None) -> tuple[array, ...]:
    """The subarrays along an axis, without it.

    >>> import smelt
    >>> smelt.unstack(smelt.array([[1, 2], [3, 4]]))
    (array([1, 2], dtype=int32), array([3, 4], dtype=int32))
    """
    x = as_array(x)
    axis = one_axis("unstack", axis, x.ndim)
    rest = (*x.shape[:axis], *x.shape[axis + 1 :])
    return tuple([to_shape(piece(x, axis, i, i + 1), rest) for i in range(x.shape[axis])])


def roll(
    a: ArrayLike, shift: Axes, axis: Axes | None = None, /, *, stream: StreamOrDevice = None
) -> array:
    """Elements moved by `shift` along an axis; those that leave enter at the other end.

    Without `axis` the flattened array is rolled and put back into its shape.

    >>> import smelt
    >>> smelt.roll(smelt.array([1, 2, 3]), 1)
    array([3, 1, 2], dtype=int32)
    """
    x, shifts = as_array(a), shape_tuple("roll", shift)
    if axis is None:
        flat = to_shape(x, (x.size,))
        return to_shape(_rolled(flat, builtins.sum(shifts), 0), x.shape)
    axes = [one_axis("roll", i, x.ndim) for i in (axis if isinstance(axis, (tuple, list)) else (axis,))]
    if len(shifts) not in (1, len(axes)) and len(axes) != 1:
        raise ShapeError(at_user_line(f"smelt.roll: {len(shifts)} shifts for {len(axes)} axes"))
    count = max(len(axes), len(shifts))
    for i in range(count):
        x = _rolled(x, shifts[i % len(shifts)], axes[i % len(axes)])
    return x


def _rolled(x: array, shift: int, axis: int) -> array:
    d = x.shape[axis]
    at = -shift % d if d else 0
    return _joined([piece(x, axis, at, d), piece(x, axis, 0, at)], axis) if at else x


def flip(a: ArrayLike, /, axis: Axes | None = None, *, stream: StreamOrDevice = None) -> array:
    """The order of elements reversed along the given axes, by default along all.

    >>> import smelt
    >>> smelt.flip(smelt.array([1, 2, 3]))
    array([3, 2, 1], dtype=int32)
    """
    x = as_array(a)
    return reversed_along(x, many_axes("flip", axis, x.ndim))


def reversed_along(x: array, axes: tuple[int, ...]) -> array:
    return emit(ops["reverse"], (x,), {"axes": axes}) if axes else x


def pad(
    a: ArrayLike,
    pad_width: int | Sequence[Any],
    mode: str = "constant",
    constant_values: ArrayLike = 0,
    *,
    stream: StreamOrDevice = None,
) -> array:
    """Elements added before and behind along each axis.

    Args:
        pad_width: one int for all sides, a pair (before, behind) for all axes, or a pair for each axis.
        mode: "constant"; "edge" repeats the outermost element; "reflect" and "symmetric" mirror, without
            and with the outermost element.
        constant_values: the scalar to add in mode "constant".

    >>> import smelt
    >>> smelt.pad(smelt.array([1, 2]), (1, 2))
    array([0, 1, 2, 0, 0], dtype=int32)
    """
    x = as_array(a)
    widths = _pad_widths(x, pad_width)
    if mode == "constant":
        value = constant_values if isinstance(constant_values, array) else as_array(constant_values, x.dtype)
        if value.size != 1:
            raise ShapeError(at_user_line(f"smelt.pad: constant_values must be a scalar, is {value.aval}"))
        return padded(x, to_shape(convert(value, x.dtype), ()), [w[0] for w in widths], [w[1] for w in widths])
    if mode not in ("edge", "reflect", "symmetric"):
        raise AttributeValueError(
            at_user_line(f'smelt.pad: mode must be "constant", "edge", "reflect" or "symmetric", is {mode!r}')
        )
    for axis, (low, high) in enumerate(widths):
        if low or high:
            if not x.shape[axis]:
                raise ShapeError(at_user_line(f'smelt.pad: mode "{mode}" needs elements on axis {axis}; a {x.aval}'))
            x = _pad_axis(x, axis, low, high, mode)
    return x


def _pad_axis(x: array, axis: int, low: int, high: int, mode: str) -> array:
    d = x.shape[axis]
    if mode == "edge":
        shape = list(x.shape)
        parts = []
        for width, at in ((low, 0), (high, d - 1)):
            shape[axis] = width
            parts.append([broadcast_to_shape(piece(x, axis, at, at + 1), tuple(shape))] if width else [])
        return _joined([*parts[0], x, *parts[1]], axis)
    skip = 1 if mode == "reflect" and d > 1 else 0
    while low or high:  # one mirror image a turn on each side; a vector may be shorter than its padding
        now_low, now_high, size = min(low, d - skip), min(high, d - skip), x.shape[axis]
        front = [reversed_along(piece(x, axis, skip, skip + now_low), (axis,))] if now_low else []
        end = size - skip
        back = [reversed_along(piece(x, axis, end - now_high, end), (axis,))] if now_high else []
        x = _joined([*front, x, *back], axis)
        low, high, d = low - now_low, high - now_high, x.shape[axis]
    return x


def _pad_widths(x: array, given: Any) -> list[tuple[int, int]]:
    """A pair of widths for each axis."""
    message = "pad_width must be an int, a pair, or a pair for each axis"
    if isinstance(given, (np.ndarray, array)):
        given = given.tolist()
    try:
        if not isinstance(given, (tuple, list)):
            found = [(operator.index(given),) * 2] * x.ndim
        elif all(not isinstance(w, (tuple, list)) for w in given):
            pair = [operator.index(w) for w in given]
            if len(pair) not in (1, 2):
                raise TypeError
            found = [(pair[0], pair[-1])] * x.ndim
        else:
            pairs = [[operator.index(w) for w in (p if isinstance(p, (tuple, list)) else (p,))] for p in given]
            if any(len(p) not in (1, 2) for p in pairs) or len(pairs) not in (1, x.ndim):
                raise TypeError
            found = [(p[0], p[-1]) for p in (pairs if len(pairs) == x.ndim else pairs * x.ndim)]
    except TypeError:
        raise ShapeError(at_user_line(f"smelt.pad: {message}; got {given!r} for a {x.aval}")) from None
    if any(w < 0 for pair in found for w in pair):
        raise ShapeError(at_user_line(f"smelt.pad: pad_width must not be negative, is {given!r}"))
    return found


# Diagonals and triangles


def diagonal(
    a: ArrayLike, offset: int = 0, axis1: int = 0, axis2: int = 1, stream: StreamOrDevice = None
) -> array:
    """The elements [i, i + offset] of two axes, as the last axis of the result.

    >>> import smelt
    >>> smelt.diagonal(smelt.array([[1, 2], [3, 4]]))
    array([1, 4], dtype=int32)
    """
    return diagonal_of("diagonal", as_array(a), offset, axis1, axis2)


def diagonal_of(name: str, x: array, offset: int, axis1: int, axis2: int) -> array:
    """`diagonal` with errors that name another function."""
    if x.ndim < 2:
        raise ShapeError(at_user_line(f"smelt.{name}: needs at least two axes; a {x.aval}"))
    i, j = many_axes(name, (axis1, axis2), x.ndim)
    x = permuted(x, (*(k for k in range(x.ndim) if k not in (i, j)), i, j))
    *lead, rows, columns = x.shape
    top, left = max(-offset, 0), max(offset, 0)
    n = max(min(rows - top, columns - left), 0)
    if not n:
        return filled((*lead, 0), 0, x.dtype)
    none = [0] * len(lead)
    square = sliced(x, [*none, top, left], [*lead, top + n, left + n])
    return piece(to_shape(square, (*lead, n * n)), len(lead), 0, n * n, n + 1)


def diag(a: ArrayLike, /, k: int = 0, *, stream: StreamOrDevice = None) -> array:
    """The k-th diagonal of a matrix, or a matrix with a vector as its k-th diagonal.

    >>> import smelt
    >>> smelt.diag(smelt.array([1, 2]), 1)
    array([[0, 1, 0],
           [0, 0, 2],
           [0, 0, 0]], dtype=int32)
    """
    x = as_array(a)
    if x.ndim == 2:
        return diagonal_of("diag", x, k, 0, 1)
    if x.ndim != 1:
        raise ShapeError(at_user_line(f"smelt.diag: needs a vector or a matrix; a {x.aval}"))
    n, zero = x.size, scalar_array(0, x.dtype)
    if not n:
        return filled((abs(k), abs(k)), 0, x.dtype)
    # n elements between the entries put them on the diagonal of an n-by-n matrix.
    square = to_shape(padded(x, zero, (0,), (0,), (n,)), (n, n))
    down, right = max(-k, 0), max(k, 0)
    return padded(square, zero, (down, right), (right, down))


def triangle_mask(rows: int, columns: int, k: int) -> array:
    """True on and below the k-th diagonal."""
    shape = (rows, columns)
    i, j = iota(shape, 0), iota(shape, 1)
    if k:
        i = emit_elementwise(ops["add"], i, filled(shape, int(k), i.dtype))
    return emit_elementwise(ops["greater_equal"], i, j)


def _triangle(name: str, x: ArrayLike, k: int, lower: bool) -> array:
    x = as_array(x)
    if x.ndim < 2:
        raise ShapeError(at_user_line(f"smelt.{name}: needs at least two axes; x {x.aval}"))
    rows, columns = x.shape[-2:]
    mask = broadcast_to_shape(triangle_mask(rows, columns, k if lower else k - 1), x.shape)
    zeros = filled(x.shape, 0, x.dtype)
    return select(mask, x, zeros) if lower else select(mask, zeros, x)


def tril(x: ArrayLike, k: int = 0, *, stream: StreamOrDevice = None) -> array:
    """Zero above the k-th diagonal of the last two axes.

    >>> import smelt
    >>> smelt.tril(smelt.array([[1, 2], [3, 4]]))
    array([[1, 0],
           [3, 4]], dtype=int32)
    """
    return _triangle("tril", x, k, lower=True)


def triu(x: ArrayLike, k: int = 0, *, stream: StreamOrDevice = None) -> array:
    """Zero below the k-th diagonal of the last two axes.

    >>> import smelt
    >>> smelt.triu(smelt.array([[1, 2], [3, 4]]))
    array([[1, 2],
           [0, 4]], dtype=int32)
    """
    return _triangle("triu", x, k, lower=False)


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
    """The sum of the elements [i, i + offset] of two axes, by default in the array's dtype (bool: int32).

    >>> import smelt
    >>> smelt.trace(smelt.array([[1, 2], [3, 4]]))
    array(5, dtype=int32)
    """
    x = as_array(a)
    target = dtypes.of(dtype) if dtype is not None else x.dtype
    if target is dtypes.bool_:
        target = dtypes.int32
    found = convert(diagonal_of("trace", x, offset, axis1, axis2), target)
    return emit(ops["reduce_sum"], (found,), {"axes": (found.ndim - 1,)})


# Dtypes and memory


def astype(a: ArrayLike, dtype: DType, /, *, stream: StreamOrDevice = None) -> array:
    """In another dtype. Floats to integers truncate and saturate, integers wrap, bool is a ≠ 0.

    >>> import smelt
    >>> smelt.astype(smelt.array([1.7, -1.7]), smelt.int32)
    array([ 1, -1], dtype=int32)
    """
    return convert(as_array(a), _dtype("astype", dtype))


def _dtype(name: str, dtype: Any) -> DType:
    try:
        return dtypes.of(dtype)
    except DTypeError as error:
        raise DTypeError(at_user_line(f"smelt.{name}: {error}")) from None


def contiguous(a: ArrayLike, /, allow_col_major: bool = False, *, stream: StreamOrDevice = None) -> array:
    """The same array: smelt's arrays are contiguous whenever they are in memory.

    >>> import smelt
    >>> smelt.contiguous(smelt.array([1]).T)
    array([1], dtype=int32)
    """
    return as_array(a)


def view(a: ArrayLike, dtype: DType, stream: StreamOrDevice = None) -> array:
    """The same bytes read as another dtype; the last axis shrinks or grows when its size differs.

    Raises:
        ShapeError: the last axis does not hold whole elements of the new dtype.

    >>> import smelt
    >>> smelt.view(smelt.array([1.0, 2.0]), smelt.int32)
    array([1065353216, 1073741824], dtype=int32)
    """
    x, target = as_array(a), _dtype("view", dtype)
    if x.dtype is target:
        return x
    if x.dtype.size != target.size and not x.ndim:
        raise ShapeError(at_user_line(f"smelt.view: a scalar {x.dtype.name} cannot be read as {target.name}"))
    if x.ndim and (x.shape[-1] * x.dtype.size) % target.size:
        raise ShapeError(
            at_user_line(f"smelt.view: the last axis of {x.aval} does not hold whole elements of {target.name}")
        )
    scalar = not x.ndim
    bits = _to_bits(to_shape(x, (1,)) if scalar else x)
    unit = 4 if target is dtypes.complex64 else target.size
    if bits.dtype.size != unit:
        bits = _resized_bits(bits, unit)
    if target is dtypes.complex64:
        last = bits.shape[-1]
        parts = [_from_bits(piece(bits, bits.ndim - 1, i, last, 2), dtypes.float32) for i in (0, 1)]
        found = emit_elementwise(ops["complex"], *parts)
    else:
        found = _from_bits(bits, target)
    return to_shape(found, ()) if scalar else found


_UNSIGNED = {d.size: d for d in dtypes.UNSIGNED}


def _from_bits(x: array, dtype: DType) -> array:
    """Bits held by an unsigned array as a dtype of the same size (not complex)."""
    if dtype is dtypes.bool_:
        return convert(x, dtype)
    return x if x.dtype is dtype else emit(ops["bitcast"], (x,), {"dtype": dtype})


def _to_bits(x: array) -> array:
    """x (not a scalar) as unsigned integers of its size; complex64 as pairs of uint32 along the last axis."""
    if x.dtype is dtypes.bool_:
        return convert(x, dtypes.uint8)
    if x.dtype is not dtypes.complex64:
        target = _UNSIGNED[x.dtype.size]
        return x if x.dtype is target else emit(ops["bitcast"], (x,), {"dtype": target})
    parts = [_to_bits(emit_elementwise(ops[part], x)) for part in ("real", "imag")]
    pairs = _joined([to_shape(p, (*x.shape, 1)) for p in parts], x.ndim)
    return to_shape(pairs, (*x.shape[:-1], x.shape[-1] * 2))


def _resized_bits(x: array, size: int) -> array:
    """Unsigned integers cut into smaller, or joined into larger ones; little-endian."""
    old, new = x.dtype, _UNSIGNED[size]
    wide = old if old.size > size else new
    parts = max(old.size, size) // min(old.size, size)
    shape = (*x.shape, parts) if old.size > size else (*x.shape[:-1], x.shape[-1] // parts, parts)
    shift = iota(shape, len(shape) - 1, wide)
    step = filled(shape, 8 * min(old.size, size), wide)
    shift = emit_elementwise(ops["mul"], shift, step)
    if old.size > size:
        spread = broadcast_to_shape(to_shape(x, (*x.shape, 1)), shape)
        low = convert(emit_elementwise(ops["right_shift"], spread, shift), new)
        return to_shape(low, (*x.shape[:-1], x.shape[-1] * parts))
    high = emit_elementwise(ops["left_shift"], convert(to_shape(x, shape), new), shift)
    return emit(ops["reduce_sum"], (high,), {"axes": (len(shape) - 1,)})


def as_strided(
    a: ArrayLike,
    /,
    shape: Sequence[int] | None = None,
    strides: Sequence[int] | None = None,
    offset: int = 0,
    *,
    stream: StreamOrDevice = None,
) -> array:
    """result[i, j, …] = a.flatten()[offset + i·strides[0] + j·strides[1] + …]; the result is a copy.

    Args:
        shape: of the result; by default that of `a`.
        strides: in elements; by default those of a contiguous array of `shape`.

    Raises:
        IndexOutOfRangeError: some element would lie outside of `a`.

    >>> import smelt
    >>> smelt.as_strided(smelt.arange(4), (3, 2), (1, 1))
    array([[0, 1],
           [1, 2],
           [2, 3]], dtype=int32)
    """
    x = as_array(a)
    out = x.shape if shape is None else checked_shape("as_strided", shape)
    if strides is None:
        steps = tuple(math.prod(out[i + 1 :]) for i in range(len(out)))
    else:
        steps = shape_tuple("as_strided", strides)
    if len(steps) != len(out):
        raise ShapeError(at_user_line(f"smelt.as_strided: {len(steps)} strides for {len(out)} axes"))
    if 0 in out:
        return broadcast_to_shape(filled((), 0, x.dtype), out)
    reach = [s * (d - 1) for s, d in zip(steps, out)]
    low = offset + builtins.sum(r for r in reach if r < 0)
    high = offset + builtins.sum(r for r in reach if r > 0)
    if low < 0 or high >= x.size:
        raise IndexOutOfRangeError(
            at_user_line(f"smelt.as_strided: elements {low} to {high} of {x.size} are asked for; a {x.aval}")
        )
    kind = dtypes.int32 if x.size < 2**31 else dtypes.int64
    index = filled(out, operator.index(offset), kind)
    for axis, step in enumerate(steps):
        if step and out[axis] > 1:
            term = emit_elementwise(ops["mul"], iota(out, axis, kind), filled(out, step, kind))
            index = emit_elementwise(ops["add"], index, term)
    flat = to_shape(x, (x.size,))
    found = emit(ops["gather"], (flat, index), {"axes": (0,), "slice_sizes": (1,)})
    return to_shape(found, out)

