"""Samples of integers and bools, and random orders."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from smelt.ir import dtypes
from smelt.ir.dtypes import DType
from smelt.ir.errors import AttributeValueError, DTypeError, ShapeError, at_user_line, shown
from smelt.ir.op import registry as ops

from ..functions.reductions import reshape_to
from ..lazy.arguments import dtype_of
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
)
from ..lazy.movement import one_axis
from ..lazy.streams import check_stream
from .continuous import gumbel
from .keys import WORD, checked_key
from .sampling import apply, check_fits, computed_in, random_bits, shape_of, uniform_unit


def bits(
    shape: Sequence[int] = (), width: int = 4, key: array | None = None, stream: StreamOrDevice = None
) -> array:
    """Uniformly random unsigned integers of `width` bytes: 1, 2, 4 or 8.

    >>> import smelt
    >>> smelt.random.bits((2, 3), width=1, key=smelt.random.key(0)).dtype
    smelt.uint8
    """
    check_stream(stream)
    found = shape_of("bits", shape)
    if not isinstance(width, int) or width not in (1, 2, 4, 8):
        raise AttributeValueError(
            at_user_line(f"smelt.random.bits: width must be 1, 2, 4 or 8 bytes, is {shown(width)}")
        )
    return random_bits(checked_key("bits", key), found, 8 * width)


def randint(
    low: ArrayLike,
    high: ArrayLike,
    shape: Sequence[int] = (),
    dtype: DType | None = dtypes.int32,
    key: array | None = None,
    stream: StreamOrDevice = None,
) -> array:
    """Uniformly distributed integers in [low, high); `low` where that is empty.

    No result's probability is off by more than 2⁻⁶⁴, whatever the range.

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
    wide = dtypes.uint64 if target.kind in "ub" else dtypes.int64
    wide_extent = True
    if isinstance(low, int) and isinstance(high, int):
        wide_extent = target.size == 8
        lo, extent = _modulo(low), _modulo(high - low if high > low else 1)
        full = high - low == 2**64
    else:
        start, stop = _bound(low, wide), _bound(high, wide)
        check_fits("randint", shape, low=start, high=stop)
        start, stop = broadcast_to_shape(start, shape), broadcast_to_shape(stop, shape)
        lo = convert(start, dtypes.uint64)
        extent = apply("sub", convert(stop, dtypes.uint64), lo)
        extent = apply("select", apply("less", start, stop), extent, 1)
        full = False
    word = random_bits(checked_key("randint", key), shape, 64)
    lo, extent = broadcast_to_shape(lo, shape), broadcast_to_shape(extent, shape)
    offset = word if full else _scaled(word, extent, wide_extent)
    return convert(apply("add", lo, offset), target)


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


def _scaled(word: array, extent: array, wide: bool) -> array:
    """⌊word · extent / 2⁶⁴⌋ of uint64, by products of 32-bit halves; `wide`: the extent may exceed 2³²."""

    def high(x: array) -> array:
        return apply("right_shift", x, 32)

    def low(x: array) -> array:
        return apply("bitwise_and", x, WORD)

    w1, w0, e0 = high(word), low(word), low(extent) if wide else extent
    lower = high(apply("mul", w0, e0))
    middle = apply("add", apply("mul", w1, e0), lower)
    if not wide:
        return high(middle)
    e1 = high(extent)
    other = apply("add", apply("mul", w0, e1), low(middle))
    return apply("add", apply("add", apply("mul", w1, e1), high(middle)), high(other))


def bernoulli(
    p: ArrayLike = 0.5,
    shape: Sequence[int] | None = None,
    key: array | None = None,
    stream: StreamOrDevice = None,
) -> array:
    """True with probability p, as bool.

    Args:
        p: a number, or a floating array that broadcasts to `shape`.
        shape: of the result; that of `p` by default. key: None draws one from the global state.

    >>> import smelt
    >>> smelt.random.bernoulli(smelt.array([0.0, 1.0]))
    array([False,  True], dtype=bool)
    """
    check_stream(stream)
    x = scalar_array(float(p), dtypes.float32) if isinstance(p, (int, float)) else as_array(p)
    if not x.dtype.is_float:
        raise DTypeError(at_user_line(f"smelt.random.bernoulli: p is {x.aval}, must be floating"))
    x = convert(x, computed_in(x.dtype))
    shape = x.shape if shape is None else shape_of("bernoulli", shape)
    check_fits("bernoulli", shape, p=x)
    return apply("less", uniform_unit(checked_key("bernoulli", key), shape, x.dtype), broadcast_to_shape(x, shape))


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

    Raises:
        AttributeValueError: both `shape` and `num_samples`. ShapeError: an axis or shape that does not fit.

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
    axis = one_axis("random.categorical", axis, x.ndim)
    rest = x.shape[:axis] + x.shape[axis + 1 :]
    if not x.shape[axis]:
        raise ShapeError(at_user_line(f"smelt.random.categorical: no categories along axis {axis} of {x.shape}"))
    if num_samples is not None:
        x = reshape_to(x, (*x.shape, 1))
        found = (*rest, *shape_of("categorical", num_samples))
    else:
        found = rest if shape is None else shape_of("categorical", shape)
        if broadcast_shapes("random.categorical", found, rest) != found:
            raise ShapeError(
                at_user_line(f"smelt.random.categorical: {rest} (logits without axis) must broadcast to {found}")
            )
    place = axis + len(found) - x.ndim + 1
    full = (*found[:place], x.shape[axis], *found[place:])
    noise = gumbel(full, x.dtype, key)
    return emit(ops["argmax"], (apply("add", noise, x),), {"axis": place})


def permutation(
    x: int | array, axis: int = 0, key: array | None = None, stream: StreamOrDevice = None
) -> array:
    """A random order: of 0, …, x - 1 as uint32 for an int, else of the array's parts along an axis.

    >>> import smelt
    >>> smelt.sum(smelt.random.permutation(5))
    array(10, dtype=uint32)
    """
    check_stream(stream)
    if isinstance(x, int):
        (n,) = shape_of("permutation", x)
        return emit(ops["argsort"], (random_bits(checked_key("permutation", key), (n,), 64),), {"axis": 0})
    source = as_array(x)
    axis = one_axis("random.permutation", axis, source.ndim)
    n = source.shape[axis]
    if not source.size:
        return source
    order = permutation(n, key=key)
    sizes = tuple(1 if i == axis else d for i, d in enumerate(source.shape))
    parts = emit(ops["gather"], (source, order), {"axes": (axis,), "slice_sizes": sizes})
    rows = reshape_to(parts, (n, *source.shape[:axis], *source.shape[axis + 1 :]))
    back = (*range(1, axis + 1), 0, *range(axis + 1, source.ndim))
    return rows if axis == 0 else emit(ops["transpose"], (rows,), {"permutation": back})
