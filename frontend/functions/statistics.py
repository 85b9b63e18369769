"""Counts and correlations, under NumPy's names."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

from smelt.ir import dtypes
from smelt.ir.dtypes import DType
from smelt.ir.errors import AttributeValueError, DTypeError, ShapeError, at_user_line
from smelt.ir.keywords import explain_keywords
from smelt.ir.op import registry as ops

from ..lazy.arguments import dtype_of, integer
from ..lazy.arrays import (
    ArrayLike,
    StreamOrDevice,
    array,
    as_array,
    broadcast_to_shape,
    convert,
    emit_elementwise,
    meeting,
)
from ..lazy.core import remembered
from ..lazy.movement import counting, filled, to_shape
from ..lazy.operands import arrays_of, as_floating
from ..lazy.streams import check_stream
from .arithmetic import clip, sqrt
from .bins import MOST_BINS, check_order, counted, order_checked, require_real
from .complex_numbers import conjugate, imag, real
from .diagonals import diagonal
from .joining import concatenate
from .linear import matmul
from .logic import logical_and, where
from .moments import mean as mean_of
from .reductions import Axis, floating_in, normalize_axes, widened
from .reductions import max as largest
from .reductions import min as smallest
from .reductions import sum as total
from .searching import host_values
from .shaping import matrix_transpose
from .sorting import searchsorted
from .weights import not_negative, weights_of

__all__ = ["average", "bincount", "corrcoef", "cov", "digitize", "ptp"]

# Counts


@partial(remembered, check=order_checked("digitize", descending=True))
def digitize(x: ArrayLike, bins: ArrayLike, right: bool = False, *, stream: StreamOrDevice = None) -> array:
    """In which bin each element lies, int32: i where ``bins[i - 1] <= x < bins[i]``, 0 before all, their number behind.

    Args:
        x: any shape. bins: a vector, ascending or descending; NaN comes after all numbers.
        right: whether the bins contain their right end instead of the left one.

    Raises:
        ShapeError: bins are no vector. AttributeValueError: a list of bins that neither ascend nor descend.
        DTypeError: complex numbers.

    >>> import smelt
    >>> smelt.digitize(smelt.array([0.5, 1.0, 9.0]), smelt.array([0.0, 1.0, 2.0]))
    array([1, 2, 3], dtype=int32)
    """
    check_stream(stream)
    values, edges = arrays_of(x, bins)
    require_real("digitize", values, edges)
    if edges.ndim != 1:
        raise ShapeError(at_user_line(f"smelt.digitize: bins must be a vector, are {edges.aval}"))
    check_order("digitize", bins, descending=True)
    up = convert(searchsorted(edges, values, "left" if right else "right"), dtypes.int32)
    if edges.size < 2:
        return up
    down = edges.size - convert(searchsorted(edges[::-1], values, "left" if right else "right"), dtypes.int32)
    first, last = edges[0], edges[-1]
    return where((first <= last) | ((first == first) & (last != last)), up, down)


def bincount(
    x: ArrayLike,
    /,
    weights: ArrayLike | None = None,
    minlength: int = 0,
    *,
    length: int | None = None,
    stream: StreamOrDevice = None,
) -> array:
    """How often each of 0, 1, 2, … occurs, int32; or the sums of `weights` there, in their dtype.

    Without `length` this evaluates `x`.

    Args:
        x: a vector of integers, not negative.
        weights: of the shape of x.
        minlength: the least size of the result, which else ends with the greatest element.
        length: the size of the result; greater and negative elements do not count.

    Raises:
        ShapeError: x is no vector, or of another shape than weights. DTypeError: x is not of integers.
        AttributeValueError: a negative element. TraceError: no `length` inside `smelt.compile` or `smelt.vmap`.

    >>> import smelt
    >>> smelt.bincount(smelt.array([0, 2, 2]))
    array([1, 0, 2], dtype=int32)
    """
    check_stream(stream)
    values = as_array(x)
    if not values.dtype.is_integer and values.dtype is not dtypes.bool_ and values.size:
        raise DTypeError(at_user_line(f"smelt.bincount: x must be of integers, is {values.aval}"))
    heavy = filled(values.shape, 1, counting(values.size)) if weights is None else as_array(weights)
    if heavy.dtype is dtypes.bool_:
        heavy = convert(heavy, counting(heavy.size))
    if values.ndim != 1 or heavy.shape != values.shape:
        message = f"smelt.bincount: x and weights must be vectors of one size, are {values.aval} and {heavy.aval}"
        raise ShapeError(at_user_line(message))
    least = integer("bincount", "minlength", minlength, 0)
    if length is None:
        host = host_values("bincount", values, "give length=")
        if host.size and host.min() < 0:
            raise AttributeValueError(at_user_line(f"smelt.bincount: x has the negative element {host.min()}"))
        size = max(int(host.max()) + 1 if host.size else 0, least)
    else:
        size = max(integer("bincount", "length", length, 0), least)
    if size > MOST_BINS:
        raise AttributeValueError(at_user_line(f"smelt.bincount: {size} bins are too many"))
    if not size or not values.size:
        return filled((size,), 0, heavy.dtype)
    kind = values.dtype
    wide = dtypes.uint64 if kind is dtypes.uint64 else dtypes.int64 if kind.size >= 4 else dtypes.int32
    places = convert(values, wide)
    valid = logical_and(places >= 0, places < size)
    return counted(convert(where(valid, places, 0), dtypes.int32), valid, heavy, size)


# Means and correlations


@remembered
def average(
    a: ArrayLike,
    /,
    axis: Axis = None,
    weights: ArrayLike | None = None,
    returned: bool = False,
    *,
    keepdims: bool = False,
    stream: StreamOrDevice = None,
) -> array | tuple[array, array]:
    """The mean over axes, where each element counts as much as its weight. Integers give float32.

    Args:
        axis: an int, several, or None for all. keepdims: whether these axes stay, with one element.
        weights: of the shape of a, or an array of the extents of `axis`, in its order.
        returned: whether to return the sum of the weights too.

    Returns:
        The mean; with `returned` ``(mean, sum of the weights)``. NaN where the weights sum to 0.

    Raises:
        ShapeError: weights of another shape.

    >>> import smelt
    >>> smelt.average(smelt.array([1.0, 2.0]), weights=smelt.array([3.0, 1.0]))
    array(1.25, dtype=float32)
    """
    check_stream(stream)
    x, *given = (as_floating(v) for v in arrays_of(a, *([] if weights is None else [weights])))
    axes = normalize_axes("average", x, axis)
    if not given:
        found = mean_of(x, axes, keepdims)
        count = float(math.prod(x.shape[i] for i in axes))
        return (found, filled(found.shape, count, found.dtype)) if returned else found
    heavy = weights_of("average", x, given[0], axis)
    sums = total(heavy, axes, keepdims)
    found = total(x * heavy, axes, keepdims) / sums
    return (found, broadcast_to_shape(sums, found.shape)) if returned else found


def _axes_of(shape: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(i for i, _ in enumerate(shape))  # `range` is an argument's name here


@remembered
def ptp(a: ArrayLike, /, axis: Axis = None, keepdims: bool = False, *, stream: StreamOrDevice = None) -> array:
    """The greatest element less the least one, over axes.

    Args:
        axis: an int, several, or None for all. keepdims: whether these axes stay, with one element.

    Raises:
        ShapeError: no elements. DTypeError: complex numbers.

    >>> import smelt
    >>> smelt.ptp(smelt.array([3, 1, 7]))
    array(6, dtype=int32)
    """
    check_stream(stream)
    x = as_array(a)
    require_real("ptp", x)
    return largest(x, axis, keepdims) - smallest(x, axis, keepdims)


def _observations(
    name: str, m: ArrayLike, y: ArrayLike | None, rowvar: bool, dtype: DType | None
) -> tuple[array, DType]:
    """A row a variable, in float32, float64 or complex; and the dtype of the result."""

    def rows(a: ArrayLike) -> array:
        x = widened(floating_in(name, a, dtype))
        if x.ndim > 2:
            raise ShapeError(at_user_line(f"smelt.{name}: takes vectors and matrices, got {x.aval}"))
        if x.ndim < 2:
            return to_shape(x, (1, x.size))
        return x if rowvar else matrix_transpose(x)

    given = [m] if y is None else [m, y]
    x, *more = (rows(v) for v in (arrays_of(*given) if dtype is None else given))
    kind = x.dtype if dtype is None else dtype_of(name, dtype)
    if not more:
        return x, kind
    other = more[0]
    if other.shape[1] != x.shape[1]:
        raise ShapeError(at_user_line(f"smelt.{name}: {x.shape[1]} and {other.shape[1]} observations"))
    x = concatenate([x, other], 0)
    return x, x.dtype if dtype is None else kind


def _frequencies(name: str, what: str, weights: ArrayLike, count: int, dtype: DType) -> array:
    found = as_array(weights)
    if found.shape != (count,) or found.dtype.is_complex:
        message = f"smelt.{name}: {what} must be a number for each of {count} observations, is {found.aval}"
        raise ShapeError(at_user_line(message))
    if what == "fweights" and found.dtype.kind not in "biu":
        raise DTypeError(at_user_line(f"smelt.{name}: fweights count observations: integers, not {found.aval}"))
    return meeting(weights, found, dtype)


@partial(remembered, check=not_negative("cov", fweights=5, aweights=6))
def cov(
    m: ArrayLike,
    /,
    y: ArrayLike | None = None,
    rowvar: bool = True,
    bias: bool = False,
    ddof: int | None = None,
    fweights: ArrayLike | None = None,
    aweights: ArrayLike | None = None,
    *,
    dtype: DType | None = None,
    stream: StreamOrDevice = None,
) -> array:
    """The covariance of variables, each of which is a row (with ``rowvar=False`` a column). Integers give float32.

    Args:
        m: a vector or matrix. y: more variables.
        bias: whether to divide by the number n of observations instead of n - 1.
        ddof: to divide by n - ddof.
        fweights: how often each observation was made, integers. aweights: how much each counts.
        dtype: to compute in, and of the result; by default that of the variables, float32 at least.

    Returns:
        A matrix, in which the diagonal are the variances; a scalar for one variable.

    Raises:
        ShapeError: more axes, other numbers of observations or weights.
        DTypeError: fweights that are no integers, a `dtype` that is not floating or complex.
        AttributeValueError: a weight that is known is negative.

    >>> import smelt
    >>> smelt.cov(smelt.array([[0.0, 1.0, 2.0], [2.0, 1.0, 0.0]]))
    array([[1, -1],
           [-1, 1]], dtype=float32)
    """
    check_stream(stream)
    x, kind = _observations("cov", m, y, rowvar, dtype)
    less = (0 if bias else 1) if ddof is None else integer("cov", "ddof", ddof)
    real_dtype = x.dtype.real
    real_dtype = dtypes.float64 if x.dtype.size == 16 else real_dtype
    count = x.shape[1]
    often, much = (
        None if w is None else _frequencies("cov", what, w, count, real_dtype)
        for what, w in (("fweights", fweights), ("aweights", aweights))
    )
    weights = much if often is None else often if much is None else often * much
    if weights is None:
        factor: Any = float(max(count - less, 0))
        deviation = products = x - mean_of(x, 1, True)
    else:
        sums = total(weights)
        center = matmul(x, to_shape(convert(weights, x.dtype), (count, 1))) / sums
        deviation = x - center
        products = deviation * weights
        factor = sums - (less if much is None else less * total(weights * much) / sums)
        factor = where(factor > 0, factor, 0.0)
    found = convert(matmul(products, conjugate(matrix_transpose(deviation))) / factor, kind)
    return to_shape(found, ()) if found.size == 1 else found


@remembered
def corrcoef(
    x: ArrayLike, /, y: ArrayLike | None = None, rowvar: bool = True, *, dtype: DType | None = None,
    stream: StreamOrDevice = None,
) -> array:  # fmt: skip
    """The correlation coefficients of variables: `cov` divided by the standard deviations, within -1 and 1.

    Args:
        x, y, rowvar: the variables, as of `cov`. dtype: to compute in, and of the result.

    Returns:
        A matrix, n by n for n variables; a scalar for one.

    >>> import smelt
    >>> smelt.corrcoef(smelt.array([[0.0, 1.0, 2.0], [4.0, 2.0, 0.0]]))
    array([[1, -1],
           [-1, 1]], dtype=float32)
    """
    check_stream(stream)
    found = cov(x, y, rowvar, dtype=dtype)
    if not found.ndim:
        return found / found
    deviation = sqrt(real(diagonal(found)))
    found = found / to_shape(deviation, (deviation.size, 1)) / deviation
    if found.dtype.is_complex:
        return emit_elementwise(ops["complex"], *(clip(part(found), -1.0, 1.0) for part in (real, imag)))
    return clip(found, -1.0, 1.0)


explain_keywords(globals())
