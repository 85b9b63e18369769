"""The same memory seen otherwise: in another dtype, as other bits, with other strides."""

from __future__ import annotations

import builtins
import math
from collections.abc import Sequence

import numpy as np

from smelt.ir import dtypes
from smelt.ir.dtypes import DType
from smelt.ir.errors import ArgumentTypeError, DTypeError, IndexOutOfRangeError, ShapeError, at_user_line, shown
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
    emit,
    emit_elementwise,
    wrap,
)
from ..lazy.core import remembered
from ..lazy.execution.results import apart
from ..lazy.movement import checked_shape, counting, filled, iota, joined, piece, shape_tuple, to_shape
from ..lazy.streams import check_stream

__all__ = ["as_strided", "astype", "contiguous", "view"]


@remembered
def astype(
    a: ArrayLike,
    /,
    dtype: DType,
    stream: StreamOrDevice = None,
    *,
    copy: bool = True,
    device: StreamOrDevice = None,
) -> array:
    """In another dtype. Floats to integers truncate and saturate, integers wrap, bool is a ≠ 0.

    `copy` is accepted for the array API's sake: arrays do not change, so nobody sees who shares memory.

    Args:
        dtype: one of smelt's, or its name. device: as `stream`: it has to exist, and arrays are evaluated on the
            default device.

    >>> import smelt
    >>> smelt.astype(smelt.array([1.7, -1.7]), smelt.int32)
    array([ 1, -1], dtype=int32)
    """
    check_stream(stream)
    check_stream(device)
    return convert(as_array(a), dtype_of("astype", dtype))


def contiguous(a: ArrayLike, /, allow_col_major: bool = False, *, stream: StreamOrDevice = None) -> array:
    """The same array: smelt's arrays are contiguous whenever they are in memory. A slice of a large array, which shares
    its memory, is copied, so that the large one can go.

    Raises:
        ArgumentTypeError: `allow_col_major` is no bool.

    >>> import smelt
    >>> smelt.contiguous(smelt.array([1]).T)
    array([1], dtype=int32)
    """
    check_stream(stream)
    if not isinstance(allow_col_major, (bool, int, np.bool_)):
        raise ArgumentTypeError(
            at_user_line(f"smelt.contiguous: allow_col_major must be a bool, is {shown(allow_col_major)}")
        )
    return wrap(apart(as_array(a)._ref))


@remembered
def view(a: ArrayLike, dtype: DType, stream: StreamOrDevice = None) -> array:
    """The same bytes read as another dtype; the last axis shrinks or grows when its size differs.

    A bool is a byte, and keeps it: ``x.view(smelt.bool_)`` is True where the byte is not 0, and viewed as integers
    again gives the bytes of x.

    Raises:
        ShapeError: the last axis does not hold whole elements of the new dtype. DTypeError: `dtype` is none.

    >>> import smelt
    >>> smelt.view(smelt.array([1.0, 2.0]), smelt.int32)
    array([1065353216, 1073741824], dtype=int32)
    """
    if isinstance(dtype, int):
        raise DTypeError(at_user_line("smelt.view: reads the same bytes as another dtype; shapes are x.reshape(…)"))
    check_stream(stream)
    x, target = as_array(a), dtype_of("view", dtype)
    if x.dtype is target:
        return wrap(x._ref)
    if x.dtype.size != target.size and not x.ndim:
        raise ShapeError(at_user_line(f"smelt.view: a scalar {x.dtype.name} cannot be read as {target.name}"))
    if x.ndim and (x.shape[-1] * x.dtype.size) % target.size:
        raise ShapeError(
            at_user_line(f"smelt.view: the last axis of {x.aval} does not hold whole elements of {target.name}")
        )
    scalar = not x.ndim
    # A kernel that moves bools writes 0 and 1, so their bytes are read before, and made after, anything moves.
    bits = _to_bits(to_shape(x, (1,)) if scalar and x.dtype.is_complex else x)
    bits = to_shape(bits, (1,)) if scalar else bits
    unit = target.real.size
    if bits.dtype.size != unit:
        bits = _resized_bits(bits, unit)
    if target.is_complex:
        shape = (*bits.shape[:-1], bits.shape[-1] // 2)
        pairs = to_shape(bits, (*shape, 2))
        parts = [to_shape(piece(pairs, bits.ndim, i, i + 1), shape) for i in (0, 1)]
        found = emit_elementwise(ops["complex"], *(_from_bits(part, target.real) for part in parts))
        return to_shape(found, ()) if scalar else found
    return _from_bits(to_shape(bits, ()) if scalar else bits, target)


_UNSIGNED = {d.size: d for d in dtypes.UNSIGNED}


def _from_bits(x: array, dtype: DType) -> array:
    """Bits held by an unsigned array as a dtype of the same size (not complex)."""
    if dtype is dtypes.bool_:
        return emit(ops["byte_view"], (x,), {"dtype": dtype})
    return x if x.dtype is dtype else emit(ops["bitcast"], (x,), {"dtype": dtype})


def _to_bits(x: array) -> array:
    """x as unsigned integers of its size; complex numbers (not a scalar) as pairs along the last axis."""
    if x.dtype is dtypes.bool_:
        return emit(ops["byte_view"], (x,), {"dtype": dtypes.uint8})
    if not x.dtype.is_complex:
        target = _UNSIGNED[x.dtype.size]
        return x if x.dtype is target else emit(ops["bitcast"], (x,), {"dtype": target})
    parts = [_to_bits(emit_elementwise(ops[part], x)) for part in ("real", "imag")]
    pairs = joined([to_shape(p, (*x.shape, 1)) for p in parts], x.ndim)
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


@remembered
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
        IndexOutOfRangeError: some element would lie outside of `a`. ShapeError: not as many strides as axes.

    >>> import smelt
    >>> smelt.as_strided(smelt.arange(4), (3, 2), (1, 1))
    array([[0, 1],
           [1, 2],
           [2, 3]], dtype=int32)
    """
    check_stream(stream)
    x = as_array(a)
    out = x.shape if shape is None else checked_shape("as_strided", shape)
    if strides is None:
        steps = tuple(math.prod(out[i + 1 :]) for i in range(len(out)))
    else:
        steps = shape_tuple("as_strided", strides, "strides consist")
    if len(steps) != len(out):
        raise ShapeError(at_user_line(f"smelt.as_strided: {len(steps)} strides for {len(out)} axes"))
    if 0 in out:
        return broadcast_to_shape(filled((), 0, x.dtype), out)
    reach = [s * (d - 1) for s, d in zip(steps, out)]
    offset = integer("as_strided", "offset", offset)
    low = offset + builtins.sum(r for r in reach if r < 0)
    high = offset + builtins.sum(r for r in reach if r > 0)
    if low < 0 or high >= x.size:
        raise IndexOutOfRangeError(
            at_user_line(f"smelt.as_strided: elements {low} to {high} of {x.size} are asked for; a {x.aval}")
        )
    kind = counting(x.size)
    index = filled(out, offset, kind)
    for axis, step in enumerate(steps):
        if step and out[axis] > 1:
            term = emit_elementwise(ops["mul"], iota(out, axis, kind), filled(out, step, kind))
            index = emit_elementwise(ops["add"], index, term)
    flat = to_shape(x, (x.size,))
    found = emit(ops["gather"], (flat, index), {"axes": (0,), "slice_sizes": (1,)})
    return to_shape(found, out)


explain_keywords(globals())
