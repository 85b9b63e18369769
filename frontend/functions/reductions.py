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
    AttributeValueError,
    AxisError,
    DTypeError,
    ShapeError,
    at_user_line,
    shown,
)
from smelt.ir.op import registry as ops
from smelt.ir.symbolic import index

from ..lazy.arguments import dtype_of, listed, no_out, number
from ..lazy.arrays import (
    ArrayLike,
    StreamOrDevice,
    array,
    as_array,
    broadcast_to_shape,
    convert,
    emit,
    emit_elementwise,
    wrap,
)
from ..lazy.core import remembered
from ..lazy.movement import counting
from ..lazy.operands import as_floating, constant
from ..lazy.streams import check_stream
from .arithmetic import sqrt
from .complex_numbers import imag, real

__all__ = [
    "all", "any", "argmax", "argmin", "count_nonzero", "max", "mean", "median", "min", "minmax", "prod", "std",
    "sum", "var",
]  # fmt: skip

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
    found = emit(ops[op_name], (x,), {"axes": axes}) if axes else wrap(x._ref)
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
    stream: StreamOrDevice = None,
) -> array:
    """Sum over axes. Bools and small signed integers give int32, small unsigned ones uint32.

    2**31 bools or more give int64, as `count_nonzero` does; sums of integers wrap.

    Args:
        axis: an int, several, or None for all. keepdims: whether these axes stay, with one element.
        dtype: to compute in, and of the result, instead of these; the sum of bools as such is whether any is true.
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
    return reduce_axes("reduce_any" if target is dtypes.bool_ else "reduce_sum", convert(x, target), axes, keepdims)


@remembered
def prod(
    a: ArrayLike,
    /,
    axis: Axis = None,
    keepdims: bool = False,
    *,
    dtype: DType | None = None,
    out: None = None,
    stream: StreamOrDevice = None,
) -> array:
    """Product over axes. Bools and small signed integers give int32, small unsigned ones uint32.

    Args:
        axis: an int, several, or None for all. keepdims: whether these axes stay, with one element.
        dtype: to compute in, and of the result, instead of these; the product of bools as such is whether all are true.
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
    return reduce_axes("reduce_all" if target is dtypes.bool_ else "reduce_prod", convert(x, target), axes, keepdims)


@remembered
def max(
    a: ArrayLike, /, axis: Axis = None, keepdims: bool = False, *, out: None = None, stream: StreamOrDevice = None
) -> array:
    """Largest element over axes; NaN if there is one. Equal largest elements share the derivative.

    Args:
        axis: an int, several, or None for all. keepdims: whether these axes stay, with one element.
        out: None; NumPy's functions pass it.

    Raises:
        ShapeError: a reduced axis is empty.

    >>> import smelt
    >>> smelt.max(smelt.array([[1, 5], [3, 4]]), axis=1)
    array([5, 4], dtype=int32)
    """
    check_stream(stream)
    no_out("max", out)
    x = as_array(a)
    return extremum_of("max", "reduce_max", x, normalize_axes("max", x, axis), keepdims)


@remembered
def min(
    a: ArrayLike, /, axis: Axis = None, keepdims: bool = False, *, out: None = None, stream: StreamOrDevice = None
) -> array:
    """Smallest element over axes; NaN if there is one. Equal smallest elements share the derivative.

    Args:
        axis: an int, several, or None for all. keepdims: whether these axes stay, with one element.
        out: None; NumPy's functions pass it.

    Raises:
        ShapeError: a reduced axis is empty.

    >>> import smelt
    >>> smelt.min(smelt.array([[1, 5], [3, 4]]), axis=1)
    array([1, 3], dtype=int32)
    """
    check_stream(stream)
    no_out("min", out)
    x = as_array(a)
    return extremum_of("min", "reduce_min", x, normalize_axes("min", x, axis), keepdims)


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
    a: ArrayLike, /, axis: Axis = None, keepdims: bool = False, *, out: None = None, stream: StreamOrDevice = None
) -> array:
    """Whether all elements over axes are true (not zero), as bool.

    Args:
        axis: an int, several, or None for all. keepdims: whether these axes stay, with one element.
        out: None; NumPy's functions pass it.

    >>> import smelt
    >>> smelt.all(smelt.array([[1, 0], [3, 4]]), axis=1)
    array([False,  True], dtype=bool)
    """
    check_stream(stream)
    no_out("all", out)
    x = as_array(a)
    return reduce_axes("reduce_all", convert(x, dtypes.bool_), normalize_axes("all", x, axis), keepdims)


@remembered
def any(
    a: ArrayLike, /, axis: Axis = None, keepdims: bool = False, *, out: None = None, stream: StreamOrDevice = None
) -> array:
    """Whether any element over axes is true (not zero), as bool.

    Args:
        axis: an int, several, or None for all. keepdims: whether these axes stay, with one element.
        out: None; NumPy's functions pass it.

    >>> import smelt
    >>> smelt.any(smelt.array([[1, 0], [0, 0]]), axis=1)
    array([ True, False], dtype=bool)
    """
    check_stream(stream)
    no_out("any", out)
    x = as_array(a)
    return reduce_axes("reduce_any", convert(x, dtypes.bool_), normalize_axes("any", x, axis), keepdims)


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


# Moments. Half precision is computed in float32: sums of many elements exceed float16, and a kernel
# has the wide accumulator anyway.


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


def correction_of(name: str, ddof: float, correction: float | None) -> float:
    less = number(name, "ddof", ddof)
    if correction is None:
        return less
    if less:
        message = f"smelt.{name}: ddof={less} and correction={shown(correction)} are two names of one; give one"
        raise AttributeValueError(at_user_line(message))
    return number(name, "correction", correction)


def _mean(x: array, axes: tuple[int, ...], keepdims: bool, less: float = 0) -> array:
    """Sum over count (`less` fewer, but not below zero)."""
    total = reduce_axes("reduce_sum", x, axes, keepdims)
    count = math.prod(x.shape[i] for i in axes) - less
    return emit_elementwise(ops["div"], total, constant((count if count > 0 else 0) * 1.0, x.dtype, total.shape))


@remembered
def mean(
    a: ArrayLike,
    /,
    axis: Axis = None,
    keepdims: bool = False,
    *,
    dtype: DType | None = None,
    out: None = None,
    stream: StreamOrDevice = None,
) -> array:
    """Arithmetic mean over axes. Integers and bools give float32; of no elements it is NaN.

    Args:
        axis: an int, several, or None for all. keepdims: whether these axes stay, with one element.
        dtype: to compute in, and of the result. out: None; NumPy's functions pass it.

    Raises:
        DTypeError: a `dtype` that is not floating or complex.

    >>> import smelt
    >>> smelt.mean(smelt.array([[1, 2], [3, 4]]), axis=1)
    array([1.5, 3.5], dtype=float32)
    """
    check_stream(stream)
    no_out("mean", out)
    x = floating_in("mean", a, dtype)
    axes = normalize_axes("mean", x, axis)
    return convert(_mean(widened(x), axes, keepdims), x.dtype)


@remembered
def var(
    a: ArrayLike,
    /,
    axis: Axis = None,
    keepdims: bool = False,
    ddof: float = 0,
    *,
    correction: float | None = None,
    dtype: DType | None = None,
    out: None = None,
    stream: StreamOrDevice = None,
) -> array:
    """Variance over axes: the mean of squared deviations from the mean. Integers give float32.

    Args:
        axis: an int, several, or None for all. keepdims: whether these axes stay, with one element.
        ddof: the sum is divided by ``n - ddof``; 1 for the unbiased estimate.
        correction: the array API's name for `ddof`.
        dtype: to compute in, and of the result. out: None; NumPy's functions pass it.

    >>> import smelt
    >>> smelt.var(smelt.array([1.0, 2.0, 3.0, 4.0]))
    array(1.25, dtype=float32)
    """
    check_stream(stream)
    no_out("var", out)
    x = floating_in("var", a, dtype)
    found = _variance(x, normalize_axes("var", x, axis), keepdims, correction_of("var", ddof, correction))
    return found if x.dtype.is_complex else convert(found, x.dtype)


@remembered
def std(
    a: ArrayLike,
    /,
    axis: Axis = None,
    keepdims: bool = False,
    ddof: float = 0,
    *,
    correction: float | None = None,
    dtype: DType | None = None,
    out: None = None,
    stream: StreamOrDevice = None,
) -> array:
    """Standard deviation over axes: the square root of `var`. Its derivative is 0 where all elements are equal.

    Args:
        axis: an int, several, or None for all. keepdims: whether these axes stay, with one element.
        ddof, correction, dtype, out: as of `var`.

    >>> import smelt
    >>> smelt.std(smelt.array([1.0, 3.0]))
    array(1, dtype=float32)
    """
    check_stream(stream)
    no_out("std", out)
    x = floating_in("std", a, dtype)
    axes = normalize_axes("std", x, axis)
    found = root_of_squares(_variance(x, axes, keepdims, correction_of("std", ddof, correction)))
    return found if x.dtype.is_complex else convert(found, x.dtype)


def root_of_squares(x: array) -> array:
    """√x for a sum of squares: at 0, where all squares vanish, its derivative counts as 0 (and not as ∞ · 0)."""
    zero = constant(0, x.dtype, x.shape)
    vanishes = emit_elementwise(ops["equal"], x, zero)
    root = sqrt(emit_elementwise(ops["select"], vanishes, constant(1, x.dtype, x.shape), x))
    return emit_elementwise(ops["select"], vanishes, zero, root)


def _variance(x: array, axes: tuple[int, ...], keepdims: bool, less: float) -> array:
    """In float32 where x is of half precision; real where it is complex."""
    x = widened(x)
    center = broadcast_to_shape(_mean(x, axes, True), x.shape)
    deviation = emit_elementwise(ops["sub"], x, center)
    parts = (real(deviation), imag(deviation)) if x.dtype.is_complex else (deviation,)
    squares = [emit_elementwise(ops["mul"], part, part) for part in parts]
    square = emit_elementwise(ops["add"], *squares) if len(squares) == 2 else squares[0]
    return _mean(square, axes, keepdims, less=less)


@remembered
def median(a: ArrayLike, /, axis: Axis = None, keepdims: bool = False, *, stream: StreamOrDevice = None) -> array:
    """Middle element over axes, the mean of the middle two of an even number; NaN if there is a NaN.

    Integers and bools give float32.

    Args:
        axis: an int, several, or None for all. keepdims: whether these axes stay, with one element.

    Raises:
        ShapeError: there are no elements.

    >>> import smelt
    >>> smelt.median(smelt.array([[3, 1, 2], [9, 8, 4]]), axis=1)
    array([2, 8], dtype=float32)
    """
    check_stream(stream)
    x = as_floating(a)
    axes = normalize_axes("median", x, axis)
    n = math.prod(x.shape[i] for i in axes)
    if not n:
        raise ShapeError(at_user_line(f"smelt.median: no elements along axis {axes} of shape {x.shape}"))
    kept = tuple(i for i in range(x.ndim) if i not in axes)
    shape = tuple(x.shape[i] for i in kept)
    if x.ndim > 1:
        x = emit(ops["transpose"], (x,), {"permutation": kept + axes})
    x = emit(ops["sort"], (reshape_to(x, (*shape, n)),), {"axis": len(shape)})

    def element(i: int) -> array:
        start, stop = (*[0] * len(shape), i), (*shape, i + 1)
        found = emit(ops["slice"], (x,), {"start": start, "stop": stop, "stride": (1,) * x.ndim})
        return reshape_to(found, shape)

    found = element(n // 2)
    if n % 2 == 0:
        half = constant(0.5, x.dtype, shape)
        pair = (emit_elementwise(ops["mul"], v, half) for v in (element(n // 2 - 1), found))
        found = emit_elementwise(ops["add"], *pair)
    last = element(n - 1)  # a NaN is sorted last
    found = emit_elementwise(ops["select"], emit_elementwise(ops["equal"], last, last), found, last)
    if not keepdims:
        return found
    return reshape_to(found, kept_shape(as_array(a).shape, axes))
