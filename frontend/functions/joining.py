"""Joining, cutting, repeating and rolling arrays."""

from __future__ import annotations

import builtins
import itertools
from collections.abc import Callable, Sequence
from typing import Any, TypeGuard

import numpy as np

from smelt.ir import dtypes
from smelt.ir.dtypes import DType
from smelt.ir.errors import (
    AttributeValueError,
    DTypeError,
    OutOfMemoryError,
    ShapeError,
    SmeltError,
    at_user_line,
    shown,
)
from smelt.ir.keywords import explain_keywords

from ..lazy.arguments import dtype_of, integer, listed
from ..lazy.arrays import ArrayLike, StreamOrDevice, array, as_array, broadcast_to_shape, convert, meeting, wrap
from ..lazy.core import remembered
from ..lazy.movement import Axes, checked_shape, iota, joined, one_axis, piece, shape_tuple, to_shape
from ..lazy.streams import check_stream
from .arithmetic import maximum, minimum
from .indexing import getitem
from .searching import host_values
from .sorting import cumsum, searchsorted

__all__ = [
    "concat",
    "concatenate",
    "repeat",
    "roll",
    "split",
    "stack",
    "tile",
    "unstack",
]

#: Pieces that an array falls into at most; handles on so many take a gigabyte or two.
MOST_PIECES = 1 << 22


def _arrays(name: str, values: Any, wanted: Any = None) -> list[array]:
    """A sequence of arrays (or one array, over its first axis) in the wanted dtype, or in their common one."""
    if isinstance(values, array):
        values = list(unstack(values)) if values.ndim else [values]
    if isinstance(values, (list, tuple)):
        values = listed(name, "the arrays", values)
    if not isinstance(values, (list, tuple)) or not values:
        what = "an empty sequence" if isinstance(values, (list, tuple)) else type(values).__name__
        raise ShapeError(at_user_line(f"smelt.{name}: needs a list of at least one array, got {what}"))
    if wanted is not None:
        dtype = dtype_of(name, wanted)
        return [convert(as_array(v, dtype), dtype) for v in values]
    found = [as_array(v) for v in values]
    dtype = found[0].dtype
    for x in found[1:]:
        dtype = dtypes.promote(dtype, x.dtype)
    return [meeting(v, x, dtype) for v, x in zip(values, found)]


#: Longer lists are joined in parts of so many arrays: what is remembered is that of lists of one length, and a list
#: that grows in a loop has many.
_PART = 16


def _in_parts(join: Callable[..., array], arrays: Any, axis: int | None) -> array | None:
    """A long list of arrays of one dtype, joined by `join` in parts and these by `concatenate`; None for another list,
    or where that is refused: the error is that of the whole list."""
    if type(arrays) not in (list, tuple) or len(arrays) <= _PART or set(map(type, arrays)) != {array}:
        return None
    if len({x.aval.dtype for x in arrays}) > 1:
        return None
    try:
        return concatenate([join(arrays[i : i + _PART], axis) for i in range(0, len(arrays), _PART)], axis)
    except SmeltError:
        return None


def concatenate(
    arrays: Sequence[ArrayLike], axis: int | None = 0, *, dtype: DType | None = None, stream: StreamOrDevice = None
) -> array:
    """Arrays one after the other along an axis, in their common dtype; flattened when `axis` is None.

    Args:
        arrays: one at least, of any dtypes. axis: counts from the end where negative. dtype: of the result.

    Raises:
        ShapeError: shapes that differ on another axis.

    >>> import smelt
    >>> smelt.concatenate([smelt.array([1, 2]), smelt.array([3])])
    array([1, 2, 3], dtype=int32)
    """
    check_stream(stream)
    if dtype is not None:
        arrays = _arrays("concatenate", arrays, dtype)
    found = _in_parts(_concatenated, arrays, axis)
    return _concatenated(arrays, axis) if found is None else found


@remembered
def _concatenated(arrays: Sequence[ArrayLike], axis: int | None) -> array:
    xs = _arrays("concatenate", arrays)
    if axis is None:
        return joined([to_shape(x, (x.size,)) for x in xs], 0)
    along = one_axis("concatenate", axis, xs[0].shape)
    rest = [(len(x.shape), *x.shape[:along], *x.shape[along + 1 :]) for x in xs]
    if any(other != rest[0] for other in rest):
        shapes = ", ".join(str(x.shape) for x in xs)
        raise ShapeError(at_user_line(f"smelt.concatenate: shapes must agree on all axes but {along}: {shapes}"))
    return joined(xs, along)


concat = concatenate


def stack(
    arrays: Sequence[ArrayLike], axis: int | None = 0, *, dtype: DType | None = None, stream: StreamOrDevice = None
) -> array:
    """Arrays of one shape along a new axis.

    Args:
        arrays: one at least, of any dtypes. axis: its place in the result, 0 if None. dtype: of the result.

    Raises:
        ShapeError: arrays of several shapes.

    >>> import smelt
    >>> smelt.stack([smelt.array([1, 2]), smelt.array([3, 4])], axis=1)
    array([[1, 3],
           [2, 4]], dtype=int32)
    """
    check_stream(stream)
    axis = 0 if axis is None else axis
    if dtype is not None:
        arrays = _arrays("stack", arrays, dtype)
    found = _in_parts(_stacked, arrays, axis)
    return _stacked(arrays, axis) if found is None else found


@remembered
def _stacked(arrays: Sequence[ArrayLike], axis: int) -> array:
    xs = _arrays("stack", arrays)
    shape = xs[0].shape
    if any(x.shape != shape for x in xs):
        shapes = ", ".join(str(x.shape) for x in xs)
        raise ShapeError(at_user_line(f"smelt.stack: arrays must have the same shape: {shapes}"))
    along = one_axis("stack", axis, len(shape) + 1)
    return joined([to_shape(x, (*shape[:along], 1, *shape[along:])) for x in xs], along)


def are_cuts(x: int | Sequence[int]) -> TypeGuard[Sequence[int]]:
    """Whether x says where to split, not into how many pieces."""
    return isinstance(x, (list, tuple, range)) or (isinstance(x, (array, np.ndarray)) and x.ndim > 0)


def check_pieces(name: str, count: int, x: array) -> None:
    """Raise ShapeError where an array should fall into more pieces than a list of handles is good for."""
    if count > MOST_PIECES:
        raise ShapeError(at_user_line(f"smelt.{name}: {count} pieces of {x.aval}; {MOST_PIECES} is the most"))


@remembered
def split(
    a: ArrayLike, /, indices_or_sections: int | Sequence[int], axis: int = 0, *, stream: StreamOrDevice = None
) -> list[array]:
    """Pieces along an axis: so many of equal size, or cut at the given indices.

    Args:
        indices_or_sections: an int for so many pieces, or the indices at which pieces begin. axis: the one to cut.

    Raises:
        ShapeError: the axis does not divide into that many equal pieces, or they are more than 2**22.

    >>> import smelt
    >>> smelt.split(smelt.array([1, 2, 3, 4]), [1, 3])
    [array([1], dtype=int32), array([2, 3], dtype=int32), array([4], dtype=int32)]
    """
    check_stream(stream)
    x = as_array(a)
    axis = one_axis("split", axis, x.shape)
    d = x.shape[axis]
    if are_cuts(indices_or_sections):
        cuts = [integer("split", "an index", i) for i in listed("split", "the indices", indices_or_sections)]
        points = [0, *(min(max(i + d if i < 0 else i, 0), d) for i in cuts), d]
        return [piece(x, axis, p, max(p, q)) for p, q in itertools.pairwise(points)]
    count = integer("split", "the number of pieces", indices_or_sections)
    if count < 1 or d % count:
        raise ShapeError(at_user_line(f"smelt.split: {d} elements do not divide into {count} equal pieces; a {x.aval}"))
    check_pieces("split", count, x)
    step = d // count
    return [piece(x, axis, i * step, (i + 1) * step) for i in range(count)]


@remembered
def unstack(x: ArrayLike, /, *, axis: int = 0, stream: StreamOrDevice = None) -> tuple[array, ...]:
    """The subarrays along an axis, without it.

    Raises:
        ShapeError: there are more than 2**22.

    >>> import smelt
    >>> smelt.unstack(smelt.array([[1, 2], [3, 4]]))
    (array([1, 2], dtype=int32), array([3, 4], dtype=int32))
    """
    check_stream(stream)
    x = as_array(x)
    axis = one_axis("unstack", axis, x.shape)
    check_pieces("unstack", x.shape[axis], x)
    rest = (*x.shape[:axis], *x.shape[axis + 1 :])
    return tuple([to_shape(piece(x, axis, i, i + 1), rest) for i in range(x.shape[axis])])


@remembered
def tile(a: ArrayLike, reps: Axes, /, *, stream: StreamOrDevice = None) -> array:
    """The whole array repeated `reps` times along each axis; missing axes are added in front.

    Raises:
        AttributeValueError: a negative number of times.

    >>> import smelt
    >>> smelt.tile(smelt.array([1, 2]), 2)
    array([1, 2, 1, 2], dtype=int32)
    """
    check_stream(stream)
    x, times = as_array(a), shape_tuple("tile", reps, "reps consists")
    if any(n < 0 for n in times):
        raise AttributeValueError(at_user_line(f"smelt.tile: reps must not be negative, is {shown(reps)}; a {x.aval}"))
    ndim = max(x.ndim, len(times))
    times = (1,) * (ndim - len(times)) + times
    shape = (1,) * (ndim - x.ndim) + x.shape
    spread = checked_shape("tile", [d for r, s in zip(times, shape) for d in ((r, s) if r != 1 else (s,))])
    kept = tuple(d for r, s in zip(times, shape) for d in ((1, s) if r != 1 else (s,)))
    whole = checked_shape("tile", tuple([r * s for r, s in zip(times, shape)]))
    return to_shape(broadcast_to_shape(to_shape(x, kept), spread), whole)


@remembered
def repeat(
    array: ArrayLike, repeats: int | ArrayLike, axis: int | None = None, *, total_repeat_length: int | None = None,
    stream: StreamOrDevice = None,
) -> array:  # fmt: skip
    """Each element repeated along an axis; without `axis`, of the flattened array.

    Args:
        repeats: how often; or integers, one for each element along the axis. These are evaluated, for the shape of the
            result depends on them; `array` is not, and derivatives pass.
        total_repeat_length: the extent of the result along the axis, with which `repeats` are not evaluated: what goes
            beyond it is left out, the last element fills what is missing, and negative ones count as 0.

    Raises:
        ShapeError: not as many integers as elements, or no element that could fill a length. AttributeValueError: a
            negative one. TraceError: `repeats` is an array that is not known, inside `smelt.compile` or `smelt.vmap`.
            Neither of these with a `total_repeat_length`.

    >>> import smelt
    >>> smelt.repeat(smelt.array([1, 2]), 2)
    array([1, 1, 2, 2], dtype=int32)
    >>> smelt.repeat(smelt.array([1, 2]), smelt.array([3, 1]))
    array([1, 1, 1, 2], dtype=int32)
    """
    check_stream(stream)
    x = as_array(array)
    if axis is None:
        x, axis = to_shape(x, (x.size,)), 0
    axis = one_axis("repeat", axis, x.shape)
    before, d, after = x.shape[:axis], x.shape[axis], x.shape[axis + 1 :]
    if total_repeat_length is not None:
        return getitem(x, (*[slice(None)] * axis, _places_of_length(repeats, d, total_repeat_length)))
    if isinstance(repeats, (list, tuple)) or getattr(repeats, "ndim", None):
        places: Any = _repeated_places(repeats, d)
        return getitem(x, (*[slice(None)] * axis, places))
    count = integer("repeat", "repeats", repeats)
    if count < 0:
        raise AttributeValueError(
            at_user_line(f"smelt.repeat: repeats must not be negative, is {shown(count)}; array {x.aval}")
        )
    shape = checked_shape("repeat", (*before, d * count, *after))
    return to_shape(broadcast_to_shape(to_shape(x, (*before, d, 1, *after)), (*before, d, count, *after)), shape)


def _counts(repeats: Any, extent: int) -> array:
    """How often elements are repeated: one integer, or one for each."""
    counts = as_array(repeats)
    if counts.size and not counts.dtype.is_integer:
        raise DTypeError(at_user_line(f"smelt.repeat: repeats must be integers, is {counts.aval}"))
    if counts.ndim != 1 or counts.size not in (1, extent):
        wanted = f"an int or {extent} integers"
        raise ShapeError(at_user_line(f"smelt.repeat: repeats must be {wanted}, one an element, is {counts.aval}"))
    return counts


def _places_of_length(repeats: Any, extent: int, length: int) -> array:
    """Where so many elements of the result lie along the axis: where the counts added up go beyond their places."""
    length = integer("repeat", "total_repeat_length", length, 0)
    counts = as_array(repeats)
    counts = _counts(counts if counts.ndim else to_shape(counts, (1,)), extent)
    if length and not extent:
        raise ShapeError(at_user_line(f"smelt.repeat: no element to repeat to a length of {length}"))
    wide = dtypes.uint64 if counts.dtype.kind == "u" else dtypes.int64
    counts = convert(minimum(maximum(convert(counts, wide), 0), length), dtypes.int64)  # sums of these do not overflow
    ends = cumsum(broadcast_to_shape(counts, (extent,)))
    return minimum(searchsorted(ends, iota((length,), 0), side="right"), builtins.max(extent - 1, 0))


def _repeated_places(repeats: Any, extent: int) -> np.ndarray:
    """Where the elements of the result lie along the axis."""
    counts = _counts(repeats, extent)
    known = host_values("repeat", counts, "give an int, or indices to smelt.take")
    if known.size and known.min() < 0:
        raise AttributeValueError(at_user_line(f"smelt.repeat: repeats must not be negative, one is {known.min()}"))
    total = builtins.sum(map(int, known.tolist())) * (extent if known.size == 1 else 1)
    checked_shape("repeat", total)
    try:
        return np.repeat(np.arange(extent), (known if known.size else np.zeros(0)).astype(np.int64))
    except (MemoryError, ValueError):
        raise OutOfMemoryError(at_user_line(f"smelt.repeat: no memory for {total} indices")) from None


@remembered
def roll(a: ArrayLike, /, shift: Axes, axis: Axes | None = None, *, stream: StreamOrDevice = None) -> array:
    """Elements moved by `shift` along an axis; those that leave enter at the other end.

    Without `axis` the flattened array is rolled and put back into its shape.

    Raises:
        ShapeError: not as many shifts as axes.

    >>> import smelt
    >>> smelt.roll(smelt.array([1, 2, 3]), 1)
    array([3, 1, 2], dtype=int32)
    """
    check_stream(stream)
    x, shifts = as_array(a), shape_tuple("roll", shift, "shifts consist")
    if axis is None:
        flat = to_shape(x, (x.size,))
        return to_shape(_rolled(flat, builtins.sum(shifts), 0), x.shape)
    given = listed("roll", "axis", axis) if isinstance(axis, (tuple, list)) else (axis,)
    axes = [one_axis("roll", i, x.shape) for i in given]
    if not shifts or (len(shifts) not in (1, len(axes)) and len(axes) != 1):
        raise ShapeError(at_user_line(f"smelt.roll: {len(shifts)} shifts for {len(axes)} axes"))
    count = max(len(axes), len(shifts)) if axes else 0
    for i in range(count):
        x = _rolled(x, shifts[i % len(shifts)], axes[i % len(axes)])
    return wrap(x._ref) if x is a else x


def _rolled(x: array, shift: int, axis: int) -> array:
    d = x.shape[axis]
    at = -shift % d if d else 0
    return joined([piece(x, axis, at, d), piece(x, axis, 0, at)], axis) if at else x


explain_keywords(globals())
