"""Samples of integers and bools, and random orders."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from smelt.ir import dtypes
from smelt.ir.dtypes import DType
from smelt.ir.errors import AttributeValueError, DTypeError, ShapeError, at_user_line, shown
from smelt.ir.keywords import explain_keywords
from smelt.ir.op import registry as ops

from ..functions.reductions import reshape_to
from ..lazy.arguments import dtype_of, integer, is_integer, number
from ..lazy.arrays import (
    ArrayLike,
    StreamOrDevice,
    array,
    as_array,
    broadcast_shapes,
    broadcast_to_shape,
    convert,
    emit,
    scalar_array,
    wrap,
)
from ..lazy.core import remembered
from ..lazy.movement import one_axis
from ..lazy.operands import constant
from ..lazy.streams import check_stream
from .continuous import standard_gumbel
from .keys import checked_key
from .sampling import (
    apply,
    check_fits,
    computed_in,
    parameter,
    parts_of_sum,
    random_bits,
    shape_of,
    uniform_between,
    uniform_unit,
)


def bits(
    shape: Sequence[int] = (), width: int = 4, key: array | None = None, stream: StreamOrDevice = None
) -> array:
    """Uniformly random unsigned integers of `width` bytes: 1, 2, 4 or 8.

    Args:
        shape: of the result. width: in bytes.
        key: as of `uniform`.

    Returns:
        uint8, uint16, uint32 or uint64.

    Raises:
        AttributeValueError: another width.

    >>> import smelt
    >>> smelt.random.bits((2, 3), width=1, key=smelt.random.key(0)).dtype
    smelt.uint8
    """
    check_stream(stream)
    found = shape_of("bits", shape)
    if not is_integer(width) or width not in (1, 2, 4, 8):
        raise AttributeValueError(
            at_user_line(f"smelt.random.bits: width must be 1, 2, 4 or 8 bytes, is {shown(width)}")
        )
    return random_bits(checked_key("bits", key), found, 8 * int(width))


def randint(
    low: ArrayLike,
    high: ArrayLike,
    shape: Sequence[int] = (),
    dtype: DType | None = dtypes.int32,
    key: array | None = None,
    stream: StreamOrDevice = None,
) -> array:
    """Uniformly distributed integers in [low, high); `low` where that is empty.

    They are drawn from 2³² multiples of (high - low) / 2³², in float32: of more than 2²⁴ integers only some occur. See
    `bits` for numbers all of whose bits are random.

    Args:
        low, high: integers, or arrays that broadcast to `shape`.
        dtype: an integer dtype or bool; int32 by default. key: None draws one from the global state.

    Raises:
        AttributeValueError: Python integers that the dtype cannot hold. DTypeError: a floating dtype.

    >>> import smelt
    >>> x = smelt.random.randint(0, 6, (1000,), key=smelt.random.key(0))
    >>> smelt.minmax(x)
    (array(0, dtype=int32), array(5, dtype=int32))
    """
    check_stream(stream)
    target = dtype_of("random.randint", dtype, dtypes.int32)
    if target.is_inexact:
        raise DTypeError(
            at_user_line(f"smelt.random.randint: dtype must be an integer dtype or bool, is {target.name}")
        )
    shape = shape_of("randint", shape)
    for what, value, slack in (("low", low, 0), ("high", high, 1)):
        _check_bound(what, value, slack, target)
    start, stop = (parameter("randint", what, x, dtypes.float32) for what, x in (("low", low), ("high", high)))
    check_fits("randint", shape, low=start, high=stop)
    key = checked_key("randint", key)
    if _is_exact(low) and _is_exact(high):
        return _drawn(key, start, stop, shape, target)
    unit = uniform_unit(key, shape, dtypes.float32)
    drawn = _between(unit, start, stop)
    wide = dtypes.uint64 if target.kind in "ub" else dtypes.int64
    least, end = (broadcast_to_shape(_bound(x, wide), shape) for x in (low, high))
    drawn = apply("maximum", apply("minimum", convert(drawn, wide), apply("sub", end, 1)), least)
    if isinstance(low, int) and isinstance(high, int):
        drawn = _drawn_far(unit, least, end) if _is_far(low, high, high - low, max(abs(low), abs(high))) else drawn
    else:
        far = apply("maximum", *(convert(apply("abs", x), dtypes.uint64) for x in (least, end)))
        drawn = apply("select", _is_far(least, end, _extent(least, end), far), _drawn_far(unit, least, end), drawn)
    return convert(drawn, target)


def _between(unit: array, low: array, high: array) -> array:
    """Integers between bounds of float32, computed in that."""
    drawn = apply("floor", uniform_between(unit, low, high, dtypes.float32))
    return apply("maximum", apply("minimum", drawn, apply("sub", high, 1)), low)


@remembered
def _drawn(key: array, low: array, high: array, shape: tuple[int, ...], target: DType) -> array:
    return convert(_between(uniform_unit(key, shape, dtypes.float32), low, high), target)


def _is_far(low: Any, high: Any, extent: Any, largest: Any) -> Any:
    """Whether bounds, `largest` by size, are beyond what float32 tells apart, and close; of integers or arrays."""
    return (low < high) & (extent < largest >> 1) & (largest > 2**24)


def _extent(low: array, high: array) -> array:
    return convert(apply("sub", high, low), dtypes.uint64)


def _drawn_far(unit: array, low: array, high: array) -> array:
    """`low` and an offset, so that float32 has to hold only the latter."""
    extent = _extent(low, high)
    offset = convert(apply("floor", apply("mul", unit, convert(extent, dtypes.float32))), dtypes.uint64)
    offset = apply("minimum", offset, apply("sub", extent, 1))
    return apply("add", low, convert(offset, low.dtype))


def _is_exact(value: ArrayLike) -> bool:
    """Whether float32 has all integers up to a bound, or it is none of integers."""
    if isinstance(value, int):
        return abs(value) <= 2**24
    dtype = as_array(value).dtype
    return dtype.is_float or dtype.size < 4


def _check_bound(what: str, value: ArrayLike, slack: int, dtype: DType) -> None:
    if not isinstance(value, int):
        return
    least, most = (0, 1) if dtype is dtypes.bool_ else (int(v) for v in _limits(dtype))
    if not least <= value <= most + slack:
        raise AttributeValueError(
            at_user_line(f"smelt.random.randint: {what} {shown(value)} is out of bounds for {dtype.name}")
        )


def _limits(dtype: DType) -> tuple[int, int]:
    info = np.iinfo(dtype.numpy)
    return info.min, info.max


def _bound(value: ArrayLike, wide: DType) -> array:
    return convert(_modulo(value) if isinstance(value, int) else as_array(value), wide)


def _modulo(value: int) -> array:
    """Modulo 2⁶⁴, in which bounds and extents are computed."""
    return scalar_array(value % 2**64, dtypes.uint64)


def bernoulli(
    p: ArrayLike = 0.5,
    shape: Sequence[int] | None = None,
    key: array | None = None,
    stream: StreamOrDevice = None,
) -> array:
    """True with probability p, as bool.

    Args:
        p: a floating-point number, or a floating array that broadcasts to `shape`.
        shape: of the result; that of `p` by default. key: None draws one from the global state.

    Raises:
        DTypeError: p is of no floating dtype.

    >>> import smelt
    >>> smelt.random.bernoulli(smelt.array([0.0, 1.0]))
    array([False,  True], dtype=bool)
    """
    check_stream(stream)
    if isinstance(p, float):
        x = scalar_array(number("random.bernoulli", "p", p), dtypes.float32)
    else:
        x = as_array(p)
    if not x.dtype.is_float:
        raise DTypeError(at_user_line(f"smelt.random.bernoulli: p is {x.aval}, must be floating"))
    x = convert(x, computed_in(x.dtype))
    shape = x.shape if shape is None else shape_of("bernoulli", shape)
    check_fits("bernoulli", shape, p=x)
    return _occurs(checked_key("bernoulli", key), x, shape)


@remembered
def _occurs(key: array, x: array, shape: tuple[int, ...]) -> array:
    """True with probability x, of float32 or float64."""
    if x.dtype is dtypes.float64:
        return apply("less", uniform_unit(key, shape, x.dtype), x)
    limit = convert(apply("ceil", apply("mul", x, 2.0**32)), dtypes.uint32)
    return apply("logical_or", apply("less", random_bits(key, shape, 32), limit), apply("greater_equal", x, 1))


def categorical(
    logits: array,
    axis: int = -1,
    shape: Sequence[int] | None = None,
    num_samples: int | None = None,
    key: array | None = None,
    stream: StreamOrDevice = None,
) -> array:
    """Indices along an axis, drawn with probabilities softmax(logits), as uint32.

    Args:
        logits: unnormalized log-probabilities; -inf never occurs.
        axis: of the categories.
        shape: of the result; that of logits without the axis must broadcast to it, and is the default.
        num_samples: draws for each distribution, along a new last axis. Excludes `shape`.
        key: as of `uniform`.

    Raises:
        AttributeValueError: both `shape` and `num_samples`. ShapeError: an axis or shape that does not fit.
        DTypeError: complex logits.

    >>> import smelt
    >>> smelt.random.categorical(smelt.array([[0.0, -float("inf")], [-float("inf"), 0.0]]))
    array([0, 1], dtype=uint32)
    """
    check_stream(stream)
    x = as_array(logits)
    if x.dtype.is_complex:
        raise DTypeError(at_user_line(f"smelt.random.categorical: logits are {x.aval}, must be real"))
    x = convert(x, x.dtype if x.dtype is dtypes.float64 else dtypes.float32)
    if shape is not None and num_samples is not None:
        raise AttributeValueError(at_user_line("smelt.random.categorical: shape and num_samples exclude each other"))
    axis = one_axis("random.categorical", axis, x.shape)
    rest = x.shape[:axis] + x.shape[axis + 1 :]
    if not x.shape[axis]:
        raise ShapeError(at_user_line(f"smelt.random.categorical: no categories along axis {axis} of {x.shape}"))
    if num_samples is not None:
        x = reshape_to(x, (*x.shape, 1))
        found = (*rest, integer("random.categorical", "num_samples", num_samples, 0))
    else:
        found = rest if shape is None else shape_of("categorical", shape)
        if broadcast_shapes("random.categorical", found, rest) != found:
            raise ShapeError(
                at_user_line(f"smelt.random.categorical: {rest} (logits without axis) must broadcast to {found}")
            )
    if found and math.prod(rest) == 1:
        return _inverted(reshape_to(x, (x.size,)), found, checked_key("categorical", key))
    place = axis + len(found) - x.ndim + 1
    full = (*found[:place], x.shape[axis], *found[place:])
    return _largest(checked_key("categorical", key), x, full, place)


@remembered
def _largest(key: array, logits: array, shape: tuple[int, ...], axis: int) -> array:
    """Where logits, with noise of a shape, are largest along an axis."""
    return emit(ops["argmax"], (apply("add", standard_gumbel(key, shape, logits.dtype), logits),), {"axis": axis})


@remembered
def _inverted(logits: array, shape: tuple[int, ...], key: array) -> array:
    """Samples of one distribution: the categories whose weights' parts of their sum numbers in [0, 1) fall into."""
    largest = emit(ops["reduce_max"], (logits,), {"axes": (0,)})
    weights = apply("exp", apply("sub", logits, largest))
    weights = apply("select", apply("equal", logits, largest), constant(1, logits.dtype, logits.shape), weights)
    return parts_of_sum(weights, uniform_unit(key, shape, logits.dtype))


def permutation(
    x: int | array, axis: int = 0, key: array | None = None, stream: StreamOrDevice = None
) -> array:
    """A random order: of 0, …, x - 1 as uint32 for an int, else of the array's parts along an axis.

    Args:
        axis: whose parts change places. key: as of `uniform`.

    >>> import smelt
    >>> smelt.sum(smelt.random.permutation(5))
    array(10, dtype=uint32)
    """
    check_stream(stream)
    if is_integer(x):
        (n,) = shape_of("permutation", x)
        return _order(checked_key("permutation", key), n)
    source = as_array(x)
    axis = one_axis("random.permutation", axis, source.shape)
    n = source.shape[axis]
    if not source.size:
        return wrap(source._ref)
    return _reordered(source, _order(checked_key("permutation", key), n), axis)


@remembered
def _order(key: array, n: int) -> array:
    return emit(ops["argsort"], (random_bits(key, (n,), 32),), {"axis": 0})


@remembered
def _reordered(source: array, order: array, axis: int) -> array:
    """The parts of an array along an axis in an order."""
    n = order.size
    sizes = tuple(1 if i == axis else d for i, d in enumerate(source.shape))
    parts = emit(ops["gather"], (source, order), {"axes": (axis,), "slice_sizes": sizes})
    rows = reshape_to(parts, (n, *source.shape[:axis], *source.shape[axis + 1 :]))
    back = (*range(1, axis + 1), 0, *range(axis + 1, source.ndim))
    return rows if axis == 0 else emit(ops["transpose"], (rows,), {"permutation": back})


explain_keywords(globals(), "bernoulli bits categorical permutation randint")
