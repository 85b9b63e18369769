"""Means and variances over axes, and the median.

Half precision is computed in float32: sums of many elements exceed float16, and a kernel has the wide accumulator
anyway.
"""

from __future__ import annotations

import math

from smelt.ir import dtypes
from smelt.ir.dtypes import DType
from smelt.ir.errors import AttributeValueError, DTypeError, ShapeError, at_user_line, shown
from smelt.ir.op import registry as ops

from ..lazy.arguments import no_out, number
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
)
from ..lazy.core import remembered
from ..lazy.operands import as_floating, constant
from ..lazy.streams import check_stream
from .arithmetic import sqrt
from .complex_numbers import imag, real
from .reductions import Axis, floating_in, kept_shape, mask_of, normalize_axes, only, reduce_axes, reshape_to, widened

__all__ = ["mean", "median", "std", "var"]


def correction_of(name: str, ddof: float, correction: float | None) -> float:
    less = number(name, "ddof", ddof)
    if correction is None:
        return less
    if less:
        message = f"smelt.{name}: ddof={less} and correction={shown(correction)} are two names of one; give one"
        raise AttributeValueError(at_user_line(message))
    return number(name, "correction", correction)


def _mean(x: array, axes: tuple[int, ...], keepdims: bool, mask: array | None = None, less: float = 0) -> array:
    """Sum over count (`less` fewer, but not below zero), of zeros where the mask is false."""
    total = reduce_axes("reduce_sum", x, axes, keepdims)
    if mask is not None:
        counted = reduce_axes("reduce_sum", convert(mask, dtypes.promote(x.dtype.real, dtypes.float32)), axes, keepdims)
        counted = emit_elementwise(ops["sub"], counted, constant(less * 1.0, counted.dtype, counted.shape))
        counted = emit_elementwise(ops["maximum"], counted, constant(0, counted.dtype, counted.shape))
        return emit_elementwise(ops["div"], total, convert(counted, total.dtype))
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
    where: ArrayLike | None = None,
    stream: StreamOrDevice = None,
) -> array:
    """Arithmetic mean over axes. Integers and bools give float32; of no elements it is NaN.

    Args:
        axis: an int, several, or None for all. keepdims: whether these axes stay, with one element.
        dtype: to compute in, and of the result. out: None; NumPy's functions pass it.
        where: bools that broadcast to a: which elements count; of none it is NaN.

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
    mask = None if where is None else mask_of("mean", where, x)
    return convert(_mean(only("mean", widened(x), mask, 0), axes, keepdims, mask), x.dtype)


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
    mean: ArrayLike | None = None,
    out: None = None,
    where: ArrayLike | None = None,
    stream: StreamOrDevice = None,
) -> array:
    """Variance over axes: the mean of squared deviations from the mean. Integers give float32.

    Args:
        axis: an int, several, or None for all. keepdims: whether these axes stay, with one element.
        ddof: the sum is divided by ``n - ddof``; 1 for the unbiased estimate.
        correction: the array API's name for `ddof`.
        mean: the mean, where it is known, of the shape that it has with ``keepdims=True``.
        where: bools that broadcast to a: which elements count.
        dtype: to compute in, and of the result. out: None; NumPy's functions pass it.

    >>> import smelt
    >>> smelt.var(smelt.array([1.0, 2.0, 3.0, 4.0]))
    array(1.25, dtype=float32)
    """
    check_stream(stream)
    no_out("var", out)
    x = floating_in("var", a, dtype)
    found = _variance("var", x, axis, keepdims, correction_of("var", ddof, correction), mean, where)
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
    mean: ArrayLike | None = None,
    out: None = None,
    where: ArrayLike | None = None,
    stream: StreamOrDevice = None,
) -> array:
    """Standard deviation over axes: the square root of `var`. Its derivative is 0 where all elements are equal.

    Args:
        axis: an int, several, or None for all. keepdims: whether these axes stay, with one element.
        ddof, correction, mean, where, dtype, out: as of `var`.

    >>> import smelt
    >>> smelt.std(smelt.array([1.0, 3.0]))
    array(1, dtype=float32)
    """
    check_stream(stream)
    no_out("std", out)
    x = floating_in("std", a, dtype)
    found = root_of_squares(_variance("std", x, axis, keepdims, correction_of("std", ddof, correction), mean, where))
    return found if x.dtype.is_complex else convert(found, x.dtype)


def root_of_squares(x: array) -> array:
    """√x for a sum of squares: at 0, where all squares vanish, its derivative counts as 0 (and not as ∞ · 0)."""
    zero = constant(0, x.dtype, x.shape)
    vanishes = emit_elementwise(ops["equal"], x, zero)
    root = sqrt(emit_elementwise(ops["select"], vanishes, constant(1, x.dtype, x.shape), x))
    return emit_elementwise(ops["select"], vanishes, zero, root)


def center_of(name: str, mean: ArrayLike, x: array) -> array:
    """The mean that a user knows, in the shape and dtype of x."""
    found = as_array(mean)
    if found.dtype.is_complex and not x.dtype.is_complex:
        raise DTypeError(at_user_line(f"smelt.{name}: mean {found.aval} is complex, a real: {x.aval}"))
    found = convert(found, x.dtype)
    if broadcast_shapes(name, found.shape, x.shape) != x.shape:
        message = f"smelt.{name}: mean {found.aval} does not broadcast to {x.aval}; take it with keepdims=True"
        raise ShapeError(at_user_line(message))
    return broadcast_to_shape(found, x.shape)


def _variance(
    name: str, x: array, axis: Axis, keepdims: bool, less: float, center: ArrayLike | None, where: ArrayLike | None
) -> array:
    """In float32 where x is of half precision; real where it is complex."""
    axes = normalize_axes(name, x, axis)
    mask = None if where is None else mask_of(name, where, x)
    x = only(name, widened(x), mask, 0)
    middle = broadcast_to_shape(_mean(x, axes, True, mask), x.shape) if center is None else center_of(name, center, x)
    deviation = only(name, emit_elementwise(ops["sub"], x, middle), mask, 0)
    parts = (real(deviation), imag(deviation)) if x.dtype.is_complex else (deviation,)
    squares = [emit_elementwise(ops["mul"], part, part) for part in parts]
    square = emit_elementwise(ops["add"], *squares) if len(squares) == 2 else squares[0]
    return _mean(square, axes, keepdims, mask, less)


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
