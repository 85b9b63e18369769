"""Elements added around an array."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from smelt.ir.errors import ShapeError, at_user_line, shown
from smelt.ir.symbolic import index

from ..lazy.arguments import listed, word
from ..lazy.arrays import ArrayLike, StreamOrDevice, array, as_array, broadcast_to_shape, convert, wrap
from ..lazy.core import remembered
from ..lazy.movement import checked_shape, joined, padded, piece, reversed_along, to_shape
from ..lazy.streams import check_stream

__all__ = ["pad"]


@remembered
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
            and with the outermost element, "wrap" begins again at the other end; again and again where a side is
            wider than the axis.
        constant_values: the scalar to add in mode "constant".

    Raises:
        ShapeError: widths that do not fit the axes or are negative; another mode than "constant" for an empty axis.
        AttributeValueError: another mode.

    >>> import smelt
    >>> smelt.pad(smelt.array([1, 2]), (1, 2))
    array([0, 1, 2, 0, 0], dtype=int32)
    """
    check_stream(stream)
    x = as_array(a)
    widths = _pad_widths(x, pad_width)
    word("pad", "mode", mode, "constant", "edge", "reflect", "symmetric", "wrap")
    if mode == "constant":
        value = constant_values if isinstance(constant_values, array) else as_array(constant_values, x.dtype)
        if value.size != 1:
            raise ShapeError(at_user_line(f"smelt.pad: constant_values must be a scalar, is {value.aval}"))
        return padded(x, to_shape(convert(value, x.dtype), ()), [w[0] for w in widths], [w[1] for w in widths])
    for axis, (low, high) in enumerate(widths):
        if low or high:
            if not x.shape[axis]:
                raise ShapeError(at_user_line(f'smelt.pad: mode "{mode}" needs elements on axis {axis}; a {x.aval}'))
            x = _pad_axis(x, axis, low, high, mode)
    return wrap(x._ref) if x is a else x


def _pad_axis(x: array, axis: int, low: int, high: int, mode: str) -> array:
    d = x.shape[axis]
    if mode == "edge":
        shape = list(x.shape)
        parts = []
        for width, at in ((low, 0), (high, d - 1)):
            shape[axis] = width
            parts.append([broadcast_to_shape(piece(x, axis, at, at + 1), tuple(shape))] if width else [])
        return joined([*parts[0], x, *parts[1]], axis)
    if mode == "wrap":
        if max(low, high) > d:
            return _pad_periodically(x, x, axis, low, high)
        front = [piece(x, axis, d - low, d)] if low else []
        return joined([*front, x, *([piece(x, axis, 0, high)] if high else [])], axis)
    skip = 1 if mode == "reflect" and d > 1 else 0
    if max(low, high) > d - skip:  # x and its image, again and again
        period = joined([x, reversed_along(piece(x, axis, skip, d - skip), (axis,))], axis) if d > 1 else x
        return _pad_periodically(x, period, axis, low, high)
    front = [reversed_along(piece(x, axis, skip, skip + low), (axis,))] if low else []
    back = [reversed_along(piece(x, axis, d - skip - high, d - skip), (axis,))] if high else []
    return joined([*front, x, *back], axis)


def _pad_periodically(x: array, period: array, axis: int, low: int, high: int) -> array:
    """A period that begins with x, again and again. A vector may be shorter than its padding."""
    d, size = x.shape[axis], period.shape[axis]
    before = -(-low // size) * size  # whole periods
    count = (before + d + high + size - 1) // size
    left, right = x.shape[:axis], x.shape[axis + 1 :]
    repeated = broadcast_to_shape(to_shape(period, (*left, 1, size, *right)), (*left, count, size, *right))
    return piece(to_shape(repeated, (*left, count * size, *right)), axis, before - low, before + d + high)


class _PaddingError(Exception):
    """Widths in another form than one of those that `pad` takes."""


def _pad_widths(x: array, given: Any) -> list[tuple[int, int]]:
    """A pair of widths for each axis."""
    message = "pad_width must be an int, a pair, or a pair for each axis"
    if isinstance(given, (np.ndarray, array)):
        if given.size > max(2 * x.ndim, 2):
            raise ShapeError(at_user_line(f"smelt.pad: {message}; got an array of shape {given.shape} for a {x.aval}"))
        given = given.tolist()
    if isinstance(given, (tuple, list)):
        given = listed("pad", "widths", given)
        given = [listed("pad", "widths", w) if isinstance(w, (tuple, list)) else w for w in given]
    try:
        if not isinstance(given, (tuple, list)):
            found = [(index(given),) * 2] * x.ndim
        elif all(not isinstance(w, (tuple, list)) for w in given):
            pair = [index(w) for w in given]
            if len(pair) not in (1, 2) and (pair or x.ndim):
                raise _PaddingError
            found = [(pair[0], pair[-1])] * x.ndim if pair else []
        else:
            pairs = [[index(w) for w in (p if isinstance(p, (tuple, list)) else (p,))] for p in given]
            if any(len(p) not in (1, 2) for p in pairs) or len(pairs) not in (1, x.ndim):
                raise _PaddingError
            found = [(p[0], p[-1]) for p in (pairs if len(pairs) == x.ndim else pairs * x.ndim)]
    except (TypeError, _PaddingError):
        raise ShapeError(at_user_line(f"smelt.pad: {message}; got {shown(given)} for a {x.aval}")) from None
    if any(w < 0 for pair in found for w in pair):
        raise ShapeError(at_user_line(f"smelt.pad: pad_width must not be negative, is {shown(given)}"))
    checked_shape("pad", tuple([d + low + high for d, (low, high) in zip(x.shape, found)]))
    return found
