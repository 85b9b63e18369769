"""Elements added around an array."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from smelt.ir import dtypes
from smelt.ir.dtypes import DType
from smelt.ir.errors import ArgumentTypeError, AttributeValueError, ShapeError, at_user_line, shown
from smelt.ir.symbolic import index

from ..lazy.arguments import is_list, listed, word
from ..lazy.arrays import (
    ArrayLike,
    StreamOrDevice,
    array,
    as_array,
    broadcast_shapes,
    broadcast_to_shape,
    convert,
    wrap,
)
from ..lazy.core import remembered
from ..lazy.movement import checked_shape, iota, joined, one_axis, padded, piece, reversed_along, to_shape
from ..lazy.streams import check_stream
from .moments import mean, median
from .reductions import max as largest
from .reductions import min as smallest
from .rounding import floor, round

__all__ = ["pad"]

_STATISTICS: dict[str, Callable[..., array]] = {"maximum": largest, "mean": mean, "median": median, "minimum": smallest}


@remembered
def pad(
    a: ArrayLike,
    pad_width: int | Sequence[Any] | Mapping[int, Any],
    mode: str = "constant",
    constant_values: ArrayLike = 0,
    *,
    end_values: ArrayLike | None = None,
    stat_length: int | Sequence[Any] | None = None,
    reflect_type: str = "even",
    stream: StreamOrDevice = None,
) -> array:
    """Elements added before and behind along each axis.

    Axes are padded in their order: the corners are those that the later axes add.

    Args:
        pad_width: one int for all sides, a pair (before, behind) for all axes, or a pair for each axis; or a dict
            of an int or a pair for some axes.
        mode: "constant" or "empty", which adds zeros; "edge" repeats the outermost element; "reflect" and "symmetric"
            mirror, without and with the outermost element, "wrap" begins again at the other end; again and again
            where a side is wider than the axis; "linear_ramp" goes from the outermost element to end_values;
            "maximum", "mean", "median" and "minimum" repeat that of the elements along the axis.
        constant_values: what "constant" adds: a scalar, a pair (before, behind) for all axes, or a pair for each axis.
        end_values: the outermost elements in mode "linear_ramp", given in the same ways; 0 if left out.
        stat_length: of how many elements next to the padding a statistic is, given as the widths are; all if left out.
        reflect_type: "odd" for mirror images of "reflect" and "symmetric" through the outermost element: twice that,
            less the image.

    Raises:
        ShapeError: widths or values that do not fit the axes, or widths that are negative; another mode than "constant"
            for an empty axis.
        AttributeValueError: another mode. ArgumentTypeError: arguments of another mode.

    >>> import smelt
    >>> smelt.pad(smelt.array([1, 2]), (1, 2))
    array([0, 1, 2, 0, 0], dtype=int32)
    >>> smelt.pad(smelt.array([2.0, 4.0]), 2, "linear_ramp")
    array([0, 1, 2, 4, 2, 0], dtype=float32)
    """
    check_stream(stream)
    x = as_array(a)
    widths = _pad_widths(x, pad_width)
    word("pad", "mode", mode, "constant", "edge", "empty", "linear_ramp", *_STATISTICS, "reflect", "symmetric", "wrap")
    word("pad", "reflect_type", reflect_type, "even", "odd")
    _belongs("end_values", end_values is not None, mode, "linear_ramp")
    _belongs("stat_length", stat_length is not None, mode, *_STATISTICS)
    _belongs("reflect_type", reflect_type == "odd", mode, "reflect", "symmetric")
    if mode in ("constant", "empty"):
        return _pad_constant(x, widths, constant_values if mode == "constant" else 0)
    ends = None
    if mode == "linear_ramp":
        ends = _values("end_values", 0 if end_values is None else end_values, x, _ramp_dtype(x))
    lengths = _pairs("stat_length", x, stat_length, 1) if stat_length is not None else [(None, None)] * x.ndim
    for axis, (low, high) in enumerate(widths):
        if low or high:
            if not x.shape[axis]:
                raise ShapeError(at_user_line(f'smelt.pad: mode "{mode}" needs elements on axis {axis}; a {x.aval}'))
            if ends is not None:
                x = _pad_ramps(x, axis, low, high, _of_axis(ends, axis))
            elif mode in _STATISTICS:
                x = _pad_statistics(x, axis, low, high, mode, lengths[axis])
            elif reflect_type == "odd":
                x = _pad_odd(x, axis, low, high, mode)
            else:
                x = _pad_axis(x, axis, low, high, mode)
    return wrap(x._ref) if x is a else x


def _belongs(what: str, given: bool, mode: str, *modes: str) -> None:
    if given and mode not in modes:
        message = f'smelt.pad: mode "{mode}" takes no {what}, which belongs to {", ".join(modes)}'
        raise ArgumentTypeError(at_user_line(message))


def _pad_constant(x: array, widths: list[tuple[int, int]], constant_values: ArrayLike) -> array:
    values = _values("constant_values", constant_values, x, x.dtype)
    if values.size == 1:
        return padded(x, to_shape(values, ()), [w[0] for w in widths], [w[1] for w in widths])
    for axis, sides in enumerate(widths):
        for side, value in enumerate(_of_axis(values, axis)):
            low, high = [0] * x.ndim, [0] * x.ndim
            (high if side else low)[axis] = sides[side]
            x = padded(x, value, low, high)
    return x


def _values(what: str, given: ArrayLike, x: array, dtype: DType) -> array:
    """One value, or one for each side of each axis."""
    values = convert(given if isinstance(given, array) else as_array(given, dtype), dtype)
    if values.size != 1:
        try:
            fits = values.ndim <= 2 and broadcast_shapes("pad", values.shape, (x.ndim, 2)) == (x.ndim, 2)
        except ShapeError:
            fits = False
        if not fits:
            rule = "must be a scalar, a pair, or a pair for each axis"
            raise ShapeError(at_user_line(f"smelt.pad: {what} {rule}, is {values.aval} for a {x.aval}"))
        values = broadcast_to_shape(values, (x.ndim, 2))
    return values


def _of_axis(values: array, axis: int) -> list[array]:
    """The scalars before and behind an axis."""
    if values.size == 1:
        return [to_shape(values, ())] * 2
    row = piece(values, 0, axis, axis + 1)
    return [to_shape(piece(row, 1, side, side + 1), ()) for side in (0, 1)]


def _ramp_dtype(x: array) -> DType:
    return x.dtype if x.dtype.is_inexact else dtypes.float64


def _pad_ramps(x: array, axis: int, low: int, high: int, ends: list[array]) -> array:
    """Integers in float64, rounded down."""
    dtype = _ramp_dtype(x)
    line = [1] * x.ndim
    d, parts = x.shape[axis], [x]
    for side, (width, end) in enumerate(zip((low, high), ends)):
        if width:
            edge, last = convert(piece(x, axis, (d - 1) * side, (d - 1) * side + 1), dtype), end
            line[axis] = width
            ramp = convert(to_shape(iota((width,), 0), tuple(line)), dtype) * ((edge - last) / width) + last
            if x.dtype.is_integer:  # modulo 2ⁿ, as ends out of range are
                ramp = convert(floor(ramp), dtypes.int64 if x.dtype.size < 8 else x.dtype)
            ramp = convert(ramp, x.dtype)
            parts.insert(len(parts) if side else 0, reversed_along(ramp, (axis,)) if side else ramp)
    return joined(parts, axis)


def _pad_statistics(
    x: array, axis: int, low: int, high: int, mode: str, lengths: tuple[int | None, int | None]
) -> array:
    d, parts = x.shape[axis], [x]
    for side, (width, length) in enumerate(zip((low, high), lengths)):
        if width:
            count = d if length is None else min(length, d)
            some = piece(x, axis, d - count, d) if side else piece(x, axis, 0, count)
            whole = some.dtype.is_integer and mode in ("mean", "median")
            found = _STATISTICS[mode](convert(some, dtypes.float64) if whole else some, axis=axis, keepdims=True)
            found = convert(round(found) if whole else found, x.dtype)
            shape = (*x.shape[:axis], width, *x.shape[axis + 1 :])
            parts.insert(len(parts) if side else 0, broadcast_to_shape(found, shape))
    return joined(parts, axis)


def _pad_odd(x: array, axis: int, low: int, high: int, mode: str) -> array:
    """By whole images as long as there are some, as the edge of one is again a place to mirror at."""
    skip = 1 if mode == "reflect" else 0
    period = x.shape[axis] - skip
    if not period:
        return _pad_axis(x, axis, low, high, "edge")
    while low or high:
        most = (x.shape[axis] - skip) // period * period
        before, behind, d = min(low, most), min(high, most), x.shape[axis]
        parts = [x]
        if before:
            image = reversed_along(piece(x, axis, skip, skip + before), (axis,))
            parts.insert(0, convert(2 * piece(x, axis, 0, 1) - image, x.dtype))
        if behind:
            image = reversed_along(piece(x, axis, d - skip - behind, d - skip), (axis,))
            parts.append(convert(2 * piece(x, axis, d - 1, d) - image, x.dtype))
        x, low, high = joined(parts, axis), low - before, high - behind
    return x


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


class _PairsError(Exception):
    """Pairs in another form than one of those that `pad` takes."""


def _pad_widths(x: array, given: Any) -> list[tuple[int, int]]:
    """A pair of widths for each axis."""
    if isinstance(given, dict):
        found = [(0, 0)] * x.ndim
        for key, width in given.items():
            found[one_axis("pad", key, x.shape)] = _pairs("pad_width", x, [width] if is_list(width) else width, 0)[0]
    else:
        found = _pairs("pad_width", x, given, 0)
    checked_shape("pad", tuple([d + low + high for d, (low, high) in zip(x.shape, found)]))
    return found


def _pairs(what: str, x: array, given: Any, least: int) -> list[tuple[int, int]]:
    """A pair of integers for each axis."""
    message = f"{what} must be an int, a pair, or a pair for each axis"
    if isinstance(given, (np.ndarray, array)):
        if given.size > max(2 * x.ndim, 2):
            raise ShapeError(at_user_line(f"smelt.pad: {message}; got an array of shape {given.shape} for a {x.aval}"))
        given = given.tolist()
    if isinstance(given, (tuple, list)):
        given = listed("pad", what, given)
        given = [listed("pad", what, w) if isinstance(w, (tuple, list)) else w for w in given]
    try:
        if not isinstance(given, (tuple, list)):
            found = [(index(given),) * 2] * x.ndim
        elif all(not isinstance(w, (tuple, list)) for w in given):
            pair = [index(w) for w in given]
            if len(pair) not in (1, 2) and (pair or x.ndim):
                raise _PairsError
            found = [(pair[0], pair[-1])] * x.ndim if pair else []
        else:
            pairs = [[index(w) for w in (p if isinstance(p, (tuple, list)) else (p,))] for p in given]
            if any(len(p) not in (1, 2) for p in pairs) or len(pairs) not in (1, x.ndim):
                raise _PairsError
            found = [(p[0], p[-1]) for p in (pairs if len(pairs) == x.ndim else pairs * x.ndim)]
    except (TypeError, _PairsError):
        raise ShapeError(at_user_line(f"smelt.pad: {message}; got {shown(given)} for a {x.aval}")) from None
    if any(w < least for pair in found for w in pair):
        rule = "must be positive" if least else "must not be negative"
        error = AttributeValueError if least else ShapeError
        raise error(at_user_line(f"smelt.pad: {what} {rule}, is {shown(given)}"))
    return found
