"""Shapes: the same elements along other axes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from smelt.ir.errors import ArgumentTypeError, AttributeValueError, ShapeError, at_user_line, shown
from smelt.ir.keywords import explain_keywords

from ..lazy import arrays
from ..lazy.arguments import integer, word
from ..lazy.arrays import ArrayLike, StreamOrDevice, array, as_array, broadcast_to_shape
from ..lazy.core import remembered
from ..lazy.movement import (
    Axes,
    broadcast_together,
    checked_shape,
    many_axes,
    one_axis,
    permuted,
    reversed_along,
    shape_tuple,
    to_shape,
)
from ..lazy.streams import check_stream

__all__ = [
    "atleast_1d",
    "atleast_2d",
    "atleast_3d",
    "broadcast_arrays",
    "broadcast_shapes",
    "broadcast_to",
    "expand_dims",
    "flatten",
    "flip",
    "matrix_transpose",
    "meshgrid",
    "moveaxis",
    "permute_dims",
    "reshape",
    "squeeze",
    "swapaxes",
    "transpose",
    "unflatten",
]

# Shape alone


@remembered
def reshape(a: ArrayLike, /, shape: Axes, *, copy: bool | None = None, stream: StreamOrDevice = None) -> array:
    """The elements in row-major order in another shape; one extent may be -1 and is worked out.

    `copy` is accepted for the array API's sake: arrays do not change, so nobody sees who shares memory.

    Raises:
        ShapeError: the sizes differ.

    >>> import smelt
    >>> smelt.reshape(smelt.arange(6), (2, -1))
    array([[0, 1, 2],
           [3, 4, 5]], dtype=int32)
    """
    check_stream(stream)
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


@remembered
def flatten(a: ArrayLike, /, start_axis: int = 0, end_axis: int = -1, *, stream: StreamOrDevice = None) -> array:
    """Axes start_axis … end_axis joined into one; a scalar becomes a vector of one element.

    Axes before the first and behind the last stand for these.

    Raises:
        ShapeError: `start_axis` lies behind `end_axis`.

    >>> import smelt
    >>> smelt.flatten(smelt.ones((2, 3, 4)), 1).shape
    (2, 12)
    """
    check_stream(stream)
    x = as_array(a)
    if not x.ndim:
        return to_shape(x, (1,))
    first, last = (
        i + x.ndim * (i < 0)
        for i in (integer("flatten", "start_axis", start_axis), integer("flatten", "end_axis", end_axis))
    )
    first, last = max(first, 0), min(last, x.ndim - 1)
    if first > last:
        raise ShapeError(at_user_line(f"smelt.flatten: start_axis {start_axis} lies behind end_axis {end_axis}"))
    shape = x.shape
    return to_shape(x, (*shape[:first], math.prod(shape[first : last + 1]), *shape[last + 1 :]))


@remembered
def unflatten(a: ArrayLike, /, axis: int, shape: Sequence[int], *, stream: StreamOrDevice = None) -> array:
    """One axis split into several; one of their extents may be -1.

    Args:
        axis: the one to split. shape: the extents that it becomes.

    Raises:
        ShapeError: their product is another extent.

    >>> import smelt
    >>> smelt.unflatten(smelt.ones((2, 12)), 1, (3, -1)).shape
    (2, 3, 4)
    """
    check_stream(stream)
    x = as_array(a)
    axis = one_axis("unflatten", axis, x.shape)
    d = x.shape[axis]
    split_into = _resolved("unflatten", d, (d,), shape_tuple("unflatten", shape))
    return to_shape(x, (*x.shape[:axis], *split_into, *x.shape[axis + 1 :]))


@remembered
def squeeze(a: ArrayLike, /, axis: Axes | None = None, *, stream: StreamOrDevice = None) -> array:
    """Without the given axes, which have one element; by default without all such axes.

    Raises:
        ShapeError: an axis with more or fewer elements than one.

    >>> import smelt
    >>> smelt.squeeze(smelt.ones((1, 3, 1))).shape
    (3,)
    """
    check_stream(stream)
    x = as_array(a)
    if axis is None:
        return to_shape(x, tuple(d for d in x.shape if d != 1))
    axes = many_axes("squeeze", axis, x.shape)
    for i in axes:
        if x.shape[i] != 1:
            raise ShapeError(at_user_line(f"smelt.squeeze: axis {i} has {x.shape[i]} elements; a {x.aval}"))
    return to_shape(x, tuple(d for i, d in enumerate(x.shape) if i not in axes))


@remembered
def expand_dims(a: ArrayLike, /, axis: Axes, *, stream: StreamOrDevice = None) -> array:
    """With new axes of one element at the given places of the result.

    Args:
        axis: an int, or several.

    Raises:
        ShapeError: a place that the result does not have, or one twice. ArgumentTypeError: no place.

    >>> import smelt
    >>> smelt.expand_dims(smelt.ones((2, 3)), (0, -1)).shape
    (1, 2, 3, 1)
    """
    check_stream(stream)
    x = as_array(a)
    if axis is None:
        raise ArgumentTypeError(at_user_line("smelt.expand_dims: needs the places of the new axes, got None"))
    count = len(axis) if isinstance(axis, (tuple, list)) else 1
    places = set(many_axes("expand_dims", axis, x.ndim + count))
    rest = iter(x.shape)
    return to_shape(x, tuple(1 if i in places else next(rest) for i in range(x.ndim + count)))


def _at_least(arys: Any, grow: Any) -> Any:
    found = [to_shape(x, grow(x.shape)) for x in map(as_array, arys)]
    return found[0] if len(found) == 1 else found


@remembered
def atleast_1d(*arys: ArrayLike, stream: StreamOrDevice = None) -> array | list[array]:
    """Each argument with at least one axis; a list when there are several arguments.

    >>> import smelt
    >>> smelt.atleast_1d(smelt.array(2.0)).shape
    (1,)
    """
    check_stream(stream)
    return _at_least(arys, lambda s: s or (1,))


@remembered
def atleast_2d(*arys: ArrayLike, stream: StreamOrDevice = None) -> array | list[array]:
    """Each argument with at least two axes: new ones in front.

    >>> import smelt
    >>> smelt.atleast_2d(smelt.ones(3)).shape
    (1, 3)
    """
    check_stream(stream)
    return _at_least(arys, lambda s: (1,) * (2 - len(s)) + s)


@remembered
def atleast_3d(*arys: ArrayLike, stream: StreamOrDevice = None) -> array | list[array]:
    """Each argument with at least three axes: a vector becomes (1, n, 1), a matrix (m, n, 1).

    >>> import smelt
    >>> smelt.atleast_3d(smelt.ones(3)).shape
    (1, 3, 1)
    """
    check_stream(stream)
    grown = {0: lambda s: (1, 1, 1), 1: lambda s: (1, *s, 1), 2: lambda s: (*s, 1)}
    return _at_least(arys, lambda s: grown.get(len(s), lambda s: s)(s))


# Order of axes


@remembered
def transpose(a: ArrayLike, /, axes: Sequence[int] | None = None, *, stream: StreamOrDevice = None) -> array:
    """Permuted axes: axis i of the result is axis axes[i]; by default in reversed order.

    Raises:
        ShapeError: not all axes are named.

    >>> import smelt
    >>> smelt.transpose(smelt.ones((2, 3, 4)), (0, 2, 1)).shape
    (2, 4, 3)
    """
    check_stream(stream)
    x = as_array(a)
    if axes is None:
        return permuted(x, tuple(range(x.ndim))[::-1])
    order = many_axes("transpose", axes, x.shape)
    if len(order) != x.ndim:
        hint = "; smelt.swapaxes exchanges two" if len(order) == 2 else ""
        message = f"smelt.transpose: axes {shown(axes)} must name all {x.ndim} axes; a {x.aval}{hint}"
        raise ShapeError(at_user_line(message))
    return permuted(x, order)


permute_dims = transpose


@remembered
def matrix_transpose(a: ArrayLike, /, *, stream: StreamOrDevice = None) -> array:
    """The last two axes exchanged.

    Raises:
        ShapeError: fewer than two axes.

    >>> import smelt
    >>> smelt.matrix_transpose(smelt.ones((5, 2, 3))).shape
    (5, 3, 2)
    """
    check_stream(stream)
    x = as_array(a)
    if x.ndim < 2:
        raise ShapeError(at_user_line(f"smelt.matrix_transpose: needs at least two axes; a {x.aval}"))
    return permuted(x, (*range(x.ndim - 2), x.ndim - 1, x.ndim - 2))


@remembered
def swapaxes(a: ArrayLike, /, axis1: int, axis2: int, *, stream: StreamOrDevice = None) -> array:
    """Two axes exchanged.

    Args:
        axis1, axis2: which ones; negative ones count from the end.

    >>> import smelt
    >>> smelt.swapaxes(smelt.ones((2, 3, 4)), 0, 2).shape
    (4, 3, 2)
    """
    check_stream(stream)
    x = as_array(a)
    i, j = one_axis("swapaxes", axis1, x.shape), one_axis("swapaxes", axis2, x.shape)
    order = list(range(x.ndim))
    order[i], order[j] = j, i
    return permuted(x, tuple(order))


@remembered
def moveaxis(a: ArrayLike, /, source: Axes, destination: Axes, *, stream: StreamOrDevice = None) -> array:
    """Axes moved from `source` to `destination`; the others keep their order.

    Raises:
        ShapeError: not as many destinations as sources. AxisError: there is no such axis.

    >>> import smelt
    >>> smelt.moveaxis(smelt.ones((2, 3, 4)), 0, -1).shape
    (3, 4, 2)
    """
    check_stream(stream)
    x = as_array(a)
    old, new = many_axes("moveaxis", source, x.shape), many_axes("moveaxis", destination, x.shape)
    if len(old) != len(new):
        raise ShapeError(at_user_line(f"smelt.moveaxis: {len(old)} source axes, {len(new)} destinations"))
    order = [i for i in range(x.ndim) if i not in old]
    for to, axis in sorted(zip(new, old)):
        order.insert(to, axis)
    return permuted(x, tuple(order))


@remembered
def flip(a: ArrayLike, /, axis: Axes | None = None, *, stream: StreamOrDevice = None) -> array:
    """The order of elements reversed along the given axes, by default along all.

    Args:
        axis: an int, several, or None for all.

    >>> import smelt
    >>> smelt.flip(smelt.array([1, 2, 3]))
    array([3, 2, 1], dtype=int32)
    """
    check_stream(stream)
    x = as_array(a)
    return reversed_along(x, many_axes("flip", axis, x.shape))


# Broadcasting


@remembered
def broadcast_to(a: ArrayLike, /, shape: Axes, *, stream: StreamOrDevice = None) -> array:
    """Stretched to a shape by NumPy's rule: new axes in front, axes of one element repeated.

    Raises:
        ShapeError: the array does not broadcast to it.

    >>> import smelt
    >>> smelt.broadcast_to(smelt.array([1, 2]), (2, 2))
    array([[1, 2],
           [1, 2]], dtype=int32)
    """
    check_stream(stream)
    x, shape = as_array(a), checked_shape("broadcast_to", shape)
    lead = len(shape) - x.ndim
    if lead < 0 or any(d not in (1, s) for d, s in zip(x.shape, shape[lead:])):
        raise ShapeError(at_user_line(f"smelt.broadcast_to: cannot broadcast shape {x.shape} to {shape}"))
    return broadcast_to_shape(x, shape)


def broadcast_shapes(*shapes: Axes) -> tuple[int, ...]:
    """The shape that all of these broadcast to.

    Raises:
        AttributeValueError: no shape is given. ShapeError: they do not broadcast, or an extent is negative.

    >>> import smelt
    >>> smelt.broadcast_shapes((3, 1), (4,))
    (3, 4)
    """
    if not shapes:
        raise AttributeValueError(at_user_line("smelt.broadcast_shapes: needs at least one shape"))
    return arrays.broadcast_shapes("broadcast_shapes", *[checked_shape("broadcast_shapes", s) for s in shapes])


@remembered
def broadcast_arrays(*arrays: ArrayLike, stream: StreamOrDevice = None) -> tuple[array, ...]:
    """The arrays stretched to their common shape.

    >>> import smelt
    >>> [x.shape for x in smelt.broadcast_arrays(smelt.ones((3, 1)), smelt.ones(4))]
    [(3, 4), (3, 4)]
    """
    check_stream(stream)
    return broadcast_together("broadcast_arrays", [as_array(x) for x in arrays])


@remembered
def meshgrid(
    *arrays: ArrayLike, sparse: bool | None = False, indexing: str | None = "xy", stream: StreamOrDevice = None
) -> tuple[array, ...]:
    """Coordinates of a grid from vectors of coordinates, one for each axis. Other arrays are flattened.

    Args:
        sparse: leave the axes on which a result does not depend at one element.
        indexing: "ij": the i-th vector belongs to axis i; "xy": the first two axes are exchanged.

    >>> import smelt
    >>> [g.shape for g in smelt.meshgrid(smelt.ones(2), smelt.ones(3), indexing="ij")]
    [(2, 3), (2, 3)]
    """
    check_stream(stream)
    word("meshgrid", "indexing", indexing, "xy", "ij")
    xs = [to_shape(x, (x.size,)) for x in map(as_array, arrays)]
    order = list(range(len(xs)))
    if indexing == "xy" and len(xs) > 1:
        order[:2] = [1, 0]
    found = [to_shape(x, tuple(x.size if i == a else 1 for i in range(len(xs)))) for x, a in zip(xs, order)]
    return tuple(found) if sparse else broadcast_together("meshgrid", found)


explain_keywords(globals())
