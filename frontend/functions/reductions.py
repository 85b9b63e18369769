"""Reductions over axes under MLX's names.

`axis` is an int, a sequence of ints, or None for all axes; negative axes count from the end. With
`keepdims` the reduced axes stay, of size one. ShapeError names an axis out of range or repeated.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from smelt.ir import dtypes
from smelt.ir.dtypes import DType
from smelt.ir.errors import (
    ArgumentTypeError,
    AxisError,
    DTypeError,
    ShapeError,
    at_user_line,
    shown,
)
from smelt.ir.op import registry as ops
from smelt.ir.symbolic import index

from ..lazy.arguments import dtype_of, listed, no_out
from ..lazy.arrays import (
    ArrayLike,
    StreamOrDevice,
    array,
    as_array,
    broadcast_shapes,
    broadcast_to_shape,
    convert,
    emit,
    emit_elementwise,
    wrap,
)
from ..lazy.core import remembered
from ..lazy.movement import counting
from ..lazy.operands import Scalar, as_floating, constant, is_scalar
from ..lazy.streams import check_stream
from .arithmetic import add, multiply

__all__ = ["all", "any", "argmax", "argmin", "count_nonzero", "max", "min", "minmax", "prod", "sum"]

Axis = int | Sequence[int] | None


def normalize_axes(name: str, x: array, axis: Axis) -> tuple[int, ...]:
    """The axes as sorted, non-negative, distinct ints."""
    ndim = x.ndim
    if axis is None:
        return tuple(range(ndim))
    given: tuple[Any, ...] = listed(name, "axis", axis) if isinstance(axis, (tuple, list)) else (axis,)
    found = set()
    for a in given:
        try:
            i = index(a)
        except TypeError:
            raise ArgumentTypeError(
                at_user_line(f"smelt.{name}: axis must be an int, a sequence of ints or None, is {shown(axis)}")
            ) from None
        if not -ndim <= i < ndim:
            raise AxisError(at_user_line(f"smelt.{name}: axis {shown(i)} out of range for shape {x.shape}"))
        found.add(i % ndim)
    if len(found) != len(given):
        raise ShapeError(at_user_line(f"smelt.{name}: axis {axis} names an axis of shape {x.shape} twice"))
    return tuple(sorted(found))


def kept_shape(shape: tuple[int, ...], axes: tuple[int, ...]) -> tuple[int, ...]:
    """The shape with size one in place of the axes."""
    return tuple([1 if i in axes else d for i, d in enumerate(shape)])


def reshape_to(x: array, shape: tuple[int, ...]) -> array:
    return wrap(x._ref) if x.shape == shape else emit(ops["reshape"], (x,), {"shape": shape})


def reduce_axes(op_name: str, x: array, axes: tuple[int, ...], keepdims: bool) -> array:
    """A reduction op over normalized axes."""
    found = emit(ops[op_name], (x,), {"axes": axes})
    return reshape_to(found, kept_shape(x.shape, axes)) if keepdims else found


def accumulated(dtype: DType) -> DType:
    """The dtype of sums and products: small integers and bools widen to 32 bits."""
    if dtype.kind in "bi":
        return dtypes.int32 if dtype.size <= 4 else dtype
    if dtype.kind == "u":
        return dtypes.uint32 if dtype.size <= 4 else dtype
    return dtype


def _counts(x: array, axes: tuple[int, ...]) -> DType:
    """The dtype of numbers of elements over axes."""
    return counting(math.prod(x.shape[a] for a in axes))


@remembered
def sum(
    a: ArrayLike,
    /,
    axis: Axis = None,
    keepdims: bool = False,
    *,
    dtype: DType | None = None,
    out: None = None,
    initial: ArrayLike | None = None,
    where: ArrayLike | None = None,
    stream: StreamOrDevice = None,
) -> array:
    """Sum over axes. Bools and small signed integers give int32, small unsigned ones uint32.

    2**31 bools or more give int64, as `count_nonzero` does; sums of integers wrap.

    Args:
        axis: an int, several, or None for all. keepdims: whether these axes stay, with one element.
        dtype: to compute in, and of the result, instead of these; the sum of bools as such is whether any is true.
        initial: what is added to the sum. where: bools that broadcast to a: which elements count.
        out: None; NumPy's functions pass it.

    >>> import smelt
    >>> smelt.sum(smelt.array([[1, 2], [3, 4]]), axis=0)
    array([4, 6], dtype=int32)
    """
    check_stream(stream)
    no_out("sum", out)
    x = as_array(a)
    axes = normalize_axes("sum", x, axis)
    default = _counts(x, axes) if x.dtype is dtypes.bool_ else accumulated(x.dtype)
    target = dtype_of("sum", dtype, default)
    x = only("sum", convert(x, target), where, 0)
    found = reduce_axes("reduce_any" if target is dtypes.bool_ else "reduce_sum", x, axes, keepdims)
    return found if initial is None else add(found, initial_of("sum", initial, found.dtype))


@remembered
def prod(
    a: ArrayLike,
    /,
    axis: Axis = None,
    keepdims: bool = False,
    *,
    dtype: DType | None = None,
    out: None = None,
    initial: ArrayLike | None = None,
    where: ArrayLike | None = None,
    stream: StreamOrDevice = None,
) -> array:
    """Product over axes. Bools and small signed integers give int32, small unsigned ones uint32.

    Args:
        axis: an int, several, or None for all. keepdims: whether these axes stay, with one element.
        dtype: to compute in, and of the result, instead of these; the product of bools as such is whether all are true.
        initial: a factor of the product. where: bools that broadcast to a: which elements count.
        out: None; NumPy's functions pass it.

    >>> import smelt
    >>> smelt.prod(smelt.array([[1, 2], [3, 4]]), axis=1)
    array([ 2, 12], dtype=int32)
    """
    check_stream(stream)
    no_out("prod", out)
    x = as_array(a)
    axes = normalize_axes("prod", x, axis)
    target = dtype_of("prod", dtype, accumulated(x.dtype))
    x = only("prod", convert(x, target), where, 1)
    found = reduce_axes("reduce_all" if target is dtypes.bool_ else "reduce_prod", x, axes, keepdims)
    return found if initial is None else multiply(found, initial_of("prod", initial, found.dtype))


@remembered
def max(
    a: ArrayLike,
    /,
    axis: Axis = None,
    keepdims: bool = False,
    *,
    out: None = None,
    initial: ArrayLike | None = None,
    where: ArrayLike | None = None,
    stream: StreamOrDevice = None,
) -> array:
    """Largest element over axes; NaN if there is one. Equal largest elements share the derivative.

    Args:
        axis: an int, several, or None for all. keepdims: whether these axes stay, with one element.
        initial: a number with which all are compared, too: the result where there are no others.
        where: bools that broadcast to a: which elements count; it needs an `initial`.
        out: None; NumPy's functions pass it.

    Raises:
        ShapeError: a reduced axis is empty, and there is no `initial`.

    >>> import smelt
    >>> smelt.max(smelt.array([[1, 5], [3, 4]]), axis=1)
    array([5, 4], dtype=int32)
    """
    check_stream(stream)
    no_out("max", out)
    x = as_array(a)
    axes = normalize_axes("max", x, axis)
    if initial is None and where is None:
        return extremum_of("max", "reduce_max", x, axes, keepdims)
    return compared("max", "max", x, axes, keepdims, initial, where)


@remembered
def min(
    a: ArrayLike,
    /,
    axis: Axis = None,
    keepdims: bool = False,
    *,
    out: None = None,
    initial: ArrayLike | None = None,
    where: ArrayLike | None = None,
    stream: StreamOrDevice = None,
) -> array:
    """Smallest element over axes; NaN if there is one. Equal smallest elements share the derivative.

    Args:
        axis: an int, several, or None for all. keepdims: whether these axes stay, with one element.
        initial: a number with which all are compared, too: the result where there are no others.
        where: bools that broadcast to a: which elements count; it needs an `initial`.
        out: None; NumPy's functions pass it.

    Raises:
        ShapeError: a reduced axis is empty, and there is no `initial`.

    >>> import smelt
    >>> smelt.min(smelt.array([[1, 5], [3, 4]]), axis=1)
    array([1, 3], dtype=int32)
    """
    check_stream(stream)
    no_out("min", out)
    x = as_array(a)
    axes = normalize_axes("min", x, axis)
    if initial is None and where is None:
        return extremum_of("min", "reduce_min", x, axes, keepdims)
    return compared("min", "min", x, axes, keepdims, initial, where)


def only(name: str, x: array, where: ArrayLike | None, neutral: Scalar | array) -> array:
    """x with something that does not count in place of what `where` leaves out."""
    if where is None:
        return x
    other = neutral if isinstance(neutral, array) else constant(neutral, x.dtype)
    return emit_elementwise(ops["select"], mask_of(name, where, x), x, broadcast_to_shape(other, x.shape))


def mask_of(name: str, where: ArrayLike, x: array) -> array:
    """Bools in the shape of x, which they broadcast to."""
    mask = as_array(where)
    if mask.dtype is not dtypes.bool_:
        raise DTypeError(at_user_line(f"smelt.{name}: where must be of bools, is {mask.aval}"))
    if broadcast_shapes(name, mask.shape, x.shape) != x.shape:
        raise ShapeError(at_user_line(f"smelt.{name}: where {mask.aval} does not broadcast to {x.aval}"))
    return broadcast_to_shape(mask, x.shape)


def initial_of(name: str, initial: ArrayLike, dtype: DType) -> array:
    """What a reduction in a dtype starts with, a number."""
    value = as_array(initial, dtype if is_scalar(initial) else None)
    if value.ndim:
        raise ShapeError(at_user_line(f"smelt.{name}: initial must be a number, is {value.aval}"))
    if value.dtype.is_complex and not dtype.is_complex:
        raise DTypeError(at_user_line(f"smelt.{name}: initial is complex, the result {dtype}; take its .real"))
    return convert(value, dtype)


def compared(
    name: str, which: str, x: array, axes: tuple[int, ...], keepdims: bool, initial: ArrayLike | None,
    where: ArrayLike | None,
) -> array:  # fmt: skip
    """The extremum, "max" or "min", of a number and of what counts."""
    if initial is None:
        raise ArgumentTypeError(at_user_line(f"smelt.{name}: where needs initial=, the result where no element counts"))
    shape = tuple(d for i, d in enumerate(kept_shape(x.shape, axes)) if keepdims or i not in axes)
    value = initial_of(name, initial, x.dtype)
    if 0 in [x.shape[i] for i in axes]:
        return broadcast_to_shape(value, shape)
    found = reduce_axes(f"reduce_{which}", only(name, x, where, value), axes, keepdims)
    return emit_elementwise(ops[f"{which}imum"], found, broadcast_to_shape(value, shape))


@remembered
def minmax(
    a: ArrayLike, /, axis: Axis = None, keepdims: bool = False, *, stream: StreamOrDevice = None
) -> tuple[array, array]:
    """``(min(a), max(a))`` over axes.

    Args:
        axis: an int, several, or None for all. keepdims: whether these axes stay, with one element.

    Returns:
        Two arrays of the dtype of `a`, without the reduced axes unless `keepdims`.

    Raises:
        ShapeError: a reduced axis is empty.

    >>> import smelt
    >>> smelt.minmax(smelt.array([3, 1, 2]))
    (array(1, dtype=int32), array(3, dtype=int32))
    """
    check_stream(stream)
    x = as_array(a)
    axes = normalize_axes("minmax", x, axis)
    return (
        extremum_of("minmax", "reduce_min", x, axes, keepdims),
        extremum_of("minmax", "reduce_max", x, axes, keepdims),
    )


def extremum_of(name: str, op_name: str, x: array, axes: tuple[int, ...], keepdims: bool) -> array:
    if 0 in [x.shape[i] for i in axes]:
        raise ShapeError(at_user_line(f"smelt.{name}: no elements along axis {axes} of shape {x.shape}"))
    return reduce_axes(op_name, x, axes, keepdims)


@remembered
def all(
    a: ArrayLike,
    /,
    axis: Axis = None,
    keepdims: bool = False,
    *,
    out: None = None,
    where: ArrayLike | None = None,
    stream: StreamOrDevice = None,
) -> array:
    """Whether all elements over axes are true (not zero), as bool.

    Args:
        axis: an int, several, or None for all. keepdims: whether these axes stay, with one element.
        where: bools that broadcast to a: which elements count. out: None; NumPy's functions pass it.

    >>> import smelt
    >>> smelt.all(smelt.array([[1, 0], [3, 4]]), axis=1)
    array([False,  True], dtype=bool)
    """
    check_stream(stream)
    no_out("all", out)
    x = as_array(a)
    x = only("all", convert(x, dtypes.bool_), where, True)
    return reduce_axes("reduce_all", x, normalize_axes("all", x, axis), keepdims)


@remembered
def any(
    a: ArrayLike,
    /,
    axis: Axis = None,
    keepdims: bool = False,
    *,
    out: None = None,
    where: ArrayLike | None = None,
    stream: StreamOrDevice = None,
) -> array:
    """Whether any element over axes is true (not zero), as bool.

    Args:
        axis: an int, several, or None for all. keepdims: whether these axes stay, with one element.
        where: bools that broadcast to a: which elements count. out: None; NumPy's functions pass it.

    >>> import smelt
    >>> smelt.any(smelt.array([[1, 0], [0, 0]]), axis=1)
    array([ True, False], dtype=bool)
    """
    check_stream(stream)
    no_out("any", out)
    x = as_array(a)
    x = only("any", convert(x, dtypes.bool_), where, False)
    return reduce_axes("reduce_any", x, normalize_axes("any", x, axis), keepdims)


@remembered
def count_nonzero(
    a: ArrayLike, /, axis: Axis = None, keepdims: bool = False, *, stream: StreamOrDevice = None
) -> array:
    """Number of elements over axes that are not zero, as int32; as int64 where 2**31 elements are counted.

    Args:
        axis: an int, several, or None for all. keepdims: whether these axes stay, with one element.

    >>> import smelt
    >>> smelt.count_nonzero(smelt.array([[1, 0], [3, 4]]), axis=1)
    array([1, 2], dtype=int32)
    """
    check_stream(stream)
    x = as_array(a)
    axes = normalize_axes("count_nonzero", x, axis)
    return reduce_axes("reduce_sum", convert(convert(x, dtypes.bool_), _counts(x, axes)), axes, keepdims)


@remembered
def argmax(
    a: ArrayLike, /, axis: int | None = None, keepdims: bool = False, *, out: None = None, stream: StreamOrDevice = None
) -> array:
    """Index of the largest element along an axis, as uint32: the first of several; a NaN wins.

    Args:
        axis: None for the index into the flattened array.
        keepdims: whether the axis stays, with one element; without one: all axes. out: None; NumPy's functions pass it.

    Raises:
        ShapeError: the axis is empty or out of range.

    >>> import smelt
    >>> smelt.argmax(smelt.array([[1, 5], [3, 3]]), axis=1)
    array([1, 0], dtype=uint32)
    """
    check_stream(stream)
    no_out("argmax", out)
    return _arg_extremum("argmax", a, axis, keepdims)


@remembered
def argmin(
    a: ArrayLike, /, axis: int | None = None, keepdims: bool = False, *, out: None = None, stream: StreamOrDevice = None
) -> array:
    """Index of the smallest element along an axis, as uint32: the first of several; a NaN wins.

    Args:
        axis: None for the index into the flattened array.
        keepdims: whether the axis stays, with one element; without one: all axes. out: None; NumPy's functions pass it.

    Raises:
        ShapeError: the axis is empty or out of range.

    >>> import smelt
    >>> smelt.argmin(smelt.array([[1, 5], [3, 3]]), axis=1)
    array([0, 0], dtype=uint32)
    """
    check_stream(stream)
    no_out("argmin", out)
    return _arg_extremum("argmin", a, axis, keepdims)


def _arg_extremum(name: str, a: ArrayLike, axis: int | None, keepdims: bool) -> array:
    x = as_array(a)
    if isinstance(axis, (tuple, list)):
        raise ArgumentTypeError(at_user_line(f"smelt.{name}: axis must be an int or None, is {shown(axis)}"))
    axes = normalize_axes(name, x, axis)
    if 0 in [x.shape[i] for i in axes]:
        raise ShapeError(at_user_line(f"smelt.{name}: no elements along axis {axes} of shape {x.shape}"))
    shape = x.shape
    if axis is None:
        x, at = reshape_to(x, (x.size,)), 0
    else:
        (at,) = axes
    found = emit(ops[name], (x,), {"axis": at})
    return reshape_to(found, kept_shape(shape, axes)) if keepdims else found


def widened(x: array) -> array:
    """`x` in float32 where it is of half precision."""
    return convert(x, dtypes.float32) if x.dtype.size == 2 and x.dtype.is_float else x


def floating_in(name: str, a: ArrayLike, dtype: DType | None) -> array:
    """`a` in a dtype to compute in."""
    if dtype is None:
        return as_floating(a)
    target = dtype_of(name, dtype)
    if not target.is_inexact:
        raise DTypeError(at_user_line(f"smelt.{name}: dtype must be of floats or complex numbers, is {target.name}"))
    return convert(as_array(a), target)
