"""Reading and writing parts of arrays: ``x[...]``, ``x[...] = v``, ``x.at[...].add(v)``, take, put.

An index is first resolved into a plan (`_Plan`): a slice of each axis, which is known when the
function is called, and index arrays for some axes. Slices become movement, index arrays gather and
scatter; a boolean mask that is assigned to becomes a selection and is never evaluated.
"""

from __future__ import annotations

import builtins
import math
import operator
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from smelt.ir import dtypes
from smelt.ir.aval import Aval
from smelt.ir.errors import DTypeError, IndexOutOfRangeError, ShapeError, TraceError, at_user_line
from smelt.ir.op import registry as ops
from smelt.runtime import Buffer

from .arrays import (
    ArrayLike,
    array,
    as_array,
    broadcast_to_shape,
    convert,
    emit,
    emit_elementwise,
    from_host,
    scalar_array,
    wrap,
)
from .graph import LEAF, leaf, state
from .shaping import (
    StreamOrDevice,
    broadcast_together,
    filled,
    iota,
    many_axes,
    one_axis,
    padded,
    permuted,
    reversed_along,
    select,
    shape_tuple,
    sliced,
    to_shape,
)

__all__ = [
    "put_along_axis",
    "slice",
    "slice_update",
    "take",
    "take_along_axis",
]

#: Parts of evaluated arrays up to this size are copied at once instead of keeping the whole alive.
COPIED_BYTES = 4096


# From what the user wrote to a plan


class _Plan:
    """What an index means for an array of one shape.

    Attributes:
        start, stop, stride: a slice of each axis with positive strides; one element for ints.
        flipped: axes whose slice runs backwards.
        indices: an index array of the common shape `lead` for some axes, within range or negative
            entries already wrapped. Their axes are taken whole by the slice.
        lead: the shape of the index arrays.
        place: the axis of the result at which the axes of `lead` stand.
        kept: what else the result consists of: the array's axes, and -1 for new axes.
    """

    __slots__ = ("flipped", "indices", "kept", "lead", "place", "start", "stop", "stride")

    def __init__(self, shape: tuple[int, ...]):
        self.start = [0] * len(shape)
        self.stop = list(shape)
        self.stride = [1] * len(shape)
        self.flipped: list[int] = []
        self.indices: dict[int, array] = {}
        self.lead: tuple[int, ...] | None = None
        self.place = 0
        self.kept: list[int] = []

    @property
    def extents(self) -> list[int]:
        """Of each axis after slicing."""
        return [-(-(z - a) // s) for a, z, s in zip(self.start, self.stop, self.stride)]

    @property
    def rest(self) -> tuple[int, ...]:
        """The shape of the result without `lead`."""
        extents = self.extents
        return tuple([1 if a < 0 else extents[a] for a in self.kept])

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the result."""
        rest = self.rest
        return rest if self.lead is None else (*rest[: self.place], *self.lead, *rest[self.place :])


_BASIC = (int, builtins.slice, type(None), type(Ellipsis))


def _plan(x: array, index: Any) -> _Plan:
    """Resolve an index. Raises IndexOutOfRangeError, ShapeError, DTypeError, TraceError."""
    shape = x.aval.shape
    entries = list(index) if type(index) is tuple else [index]
    entries = [e if type(e) in _BASIC else _entry(x, e) for e in entries]
    if any(type(e) is _Mask for e in entries):
        entries = [part for e in entries for part in (e.indices() if type(e) is _Mask else (e,))]
    used = 0
    ellipses = 0
    for e in entries:
        used += not (e is None or e is Ellipsis or type(e) is _Count)
        ellipses += e is Ellipsis
    if ellipses > 1:
        raise IndexError(at_user_line("smelt: an index has at most one ellipsis"))
    if used > len(shape):
        raise IndexOutOfRangeError(at_user_line(f"smelt: {used} indices for an array of {len(shape)} axes, {x.aval}"))
    if not ellipses:
        entries.append(Ellipsis)
    plan = _Plan(shape)
    found: list[tuple[int, array]] = []
    advanced: list[int] = []  # positions of ints and arrays among the entries
    has_array = False
    axis = 0
    places: list[int] = []
    for position, e in enumerate(entries):
        kind = type(e)
        if e is Ellipsis:
            count = len(shape) - used
            plan.kept += range(axis, axis + count)
            axis += count
        elif e is None:
            plan.kept.append(-1)
        elif kind is builtins.slice:
            _set_slice(plan, axis, e, shape[axis])
            plan.kept.append(axis)
            axis += 1
        elif kind is int:
            i = _check_int(e, axis, x)
            plan.start[axis], plan.stop[axis] = i, i + 1
            advanced.append(position)
            places.append(len(plan.kept))
            axis += 1
        else:
            advanced.append(position)
            places.append(len(plan.kept))
            has_array = True
            if kind is _Count:
                found.append((-1, e.index()))
            else:
                found.append((axis, _in_range(e.checked(axis, x) if kind is _Places else e, axis, x)))
                axis += 1
    if has_array:
        try:
            together = broadcast_together("index", [i for _, i in found])
        except ShapeError:
            shapes = " and ".join(str(i.shape) for _, i in found)
            raise ShapeError(
                at_user_line(f"smelt: index arrays of shapes {shapes} cannot be broadcast together")
            ) from None
        plan.lead = together[0].shape
        plan.indices = {a: i for (a, _), i in zip(found, together) if a >= 0}
        # NumPy's rule: index arrays and ints next to each other stay where they are, else they come first.
        adjacent = advanced[-1] - advanced[0] + 1 == len(advanced)
        plan.place = places[0] if adjacent else 0
    return plan


def _set_slice(plan: _Plan, axis: int, e: builtins.slice, extent: int) -> None:
    if e.start is None and e.stop is None and e.step is None:
        return
    try:
        start, stop, step = e.indices(extent)
    except ValueError as error:
        raise ValueError(at_user_line(f"smelt: {error}")) from None
    except TypeError:
        raise TypeError(at_user_line(f"smelt: slices consist of ints, got {e}")) from None
    count = len(range(start, stop, step))
    if step < 0:
        plan.flipped.append(axis)
        start, step = start + (count - 1) * step, -step
    if not count:
        start = 0
    stop = start + (count - 1) * step + 1 if count else start
    plan.start[axis], plan.stop[axis], plan.stride[axis] = start, stop, step if count > 1 else 1


def _check_int(i: int, axis: int, x: array) -> int:
    d = x.aval.shape[axis]
    if not -d <= i < d:
        raise IndexOutOfRangeError(
            at_user_line(f"smelt: index {i} is out of range for axis {axis} with {d} elements; {x.aval}")
        )
    return i + d if i < 0 else i


class _Count:
    """A scalar True or False among the entries: a new axis of one element or none."""

    def __init__(self, n: int):
        self.n = n

    def index(self) -> array:
        return filled((self.n,), 0, dtypes.int32)


class _Mask:
    """A boolean array among the entries, which stands for the places where it is True."""

    def __init__(self, mask: Any):
        self.mask = mask

    def indices(self) -> Sequence[Any]:
        host = _mask_values(self.mask)
        if not host.ndim:
            return (_Count(int(host)),)
        return [_Places(i, d) for i, d in zip(np.nonzero(host), host.shape)]


class _Places:
    """Where a mask is True along one of its axes, which must be as long as the array's."""

    def __init__(self, index: np.ndarray, extent: int):
        self.index, self.extent = index, extent

    def checked(self, axis: int, x: array) -> np.ndarray:
        if x.shape[axis] != self.extent:
            raise ShapeError(
                at_user_line(f"smelt: the mask has {self.extent} elements where axis {axis} of {x.aval} lies")
            )
        return self.index


def _mask_values(mask: Any) -> np.ndarray:
    if not isinstance(mask, array):
        return mask
    try:
        return mask._host()
    except TraceError:
        raise TraceError(
            at_user_line(
                "x[mask] has as many elements as the mask has True ones, which is not known inside "
                "smelt.compile and smelt.vmap; use smelt.where(mask, x, other), or index outside"
            )
        ) from None


def _entry(x: array, e: Any) -> Any:
    """One entry of an index as an int, an array of integers (a NumPy one if its values are known), or a mask."""
    if isinstance(e, (bool, np.bool_)):
        return _Count(int(e))
    if isinstance(e, array):
        if e.dtype is dtypes.bool_:
            return _checked_mask(x, e)
        if not e.dtype.is_integer:
            raise DTypeError(at_user_line(f"smelt: an array of integers or bools is an index, got {e.aval}"))
        return e
    if isinstance(e, (np.integer, int)):
        return int(e)
    if isinstance(e, (list, tuple, np.ndarray, range)):
        if isinstance(e, (list, tuple)) and _holds_array(e):
            return _entry(x, as_array(e))
        host = np.asarray(e)
        if host.size == 0 and not isinstance(e, np.ndarray):
            host = host.astype(np.int32)
        if host.dtype == np.bool_:
            return _checked_mask(x, host)
        if host.dtype.kind not in "iu":
            raise DTypeError(at_user_line(f"smelt: an array of integers or bools is an index, got {host.dtype}"))
        return host
    if hasattr(e, "__index__"):
        return operator.index(e)
    if hasattr(e, "__array__"):
        return _entry(x, np.asarray(e))
    raise TypeError(
        at_user_line(
            "smelt: an index consists of ints, slices, None, ... and arrays or lists of ints or bools, "
            f"got {type(e).__name__}"
        )
    )


def _holds_array(values: Any) -> bool:
    return any(isinstance(v, array) or (isinstance(v, (list, tuple)) and _holds_array(v)) for v in values)


def _checked_mask(x: array, mask: Any) -> _Mask:
    if mask.ndim > x.ndim:
        raise ShapeError(at_user_line(f"smelt: a mask of shape {mask.shape} for an array {x.aval}"))
    return _Mask(mask)


def _in_range(index: Any, axis: int, x: array) -> array:
    """An index array with negative entries wrapped once. What is known now is checked now."""
    d = x.aval.shape[axis]
    if isinstance(index, np.ndarray):
        if index.size and not (-d <= int(index.min()) and int(index.max()) < d):
            bad = index[(index < -d) | (index >= d)].reshape(-1)[0]
            _check_int(int(bad), axis, x)
        wide = index.astype(np.int32 if d < 2**31 else np.int64)
        return from_host(np.where(wide < 0, wide + d, wide).astype(wide.dtype))
    return wrapped_once(index, d)


def wrapped_once(index: array, extent: int) -> array:
    """`index` with `extent` added to negative entries."""
    if index.dtype.kind == "u":
        return index
    if index.dtype.size < 4:
        index = convert(index, dtypes.int32)
    if extent >= 2**31:
        index = convert(index, dtypes.int64)
    zero, top = filled(index.shape, 0, index.dtype), filled(index.shape, extent, index.dtype)
    negative = emit_elementwise(ops["less"], index, zero)
    return select(negative, emit_elementwise(ops["add"], index, top), index)


# Reading


def getitem(x: array, index: Any) -> array:
    """``x[index]`` by NumPy's rules; negative indices count from the end.

    Raises:
        IndexOutOfRangeError: an int, or a list or NumPy array of ints, outside of its axis. Entries of
            smelt arrays are not known yet: those out of range read the nearest element.
        TraceError: a mask inside `compile` or `vmap`.
    """
    return _read(x, _plan(x, index))


def _read(x: array, plan: _Plan) -> array:
    if plan.lead is None:
        known = _part_of_value(x, plan)
        if known is not None:
            return known
    y = reversed_along(sliced(x, plan.start, plan.stop, plan.stride), tuple(plan.flipped))
    if plan.lead is None:
        return to_shape(y, plan.rest)
    if plan.indices:
        axes = tuple(plan.indices)
        sizes = tuple([1 if a in plan.indices else d for a, d in enumerate(y.aval.shape)])
        if not y.size and 0 not in plan.lead:
            _check_not_empty(y, axes)
        if 0 in plan.lead:
            return filled(plan.shape, 0, x.dtype)
        y = emit(ops["gather"], (y, *of_one_dtype(plan.indices.values())), {"axes": axes, "slice_sizes": sizes})
    else:
        y = broadcast_to_shape(y, (*plan.lead, *y.aval.shape))
    return _place_lead(to_shape(y, (*plan.lead, *plan.rest)), len(plan.lead), plan.place)


def _check_not_empty(y: array, axes: Sequence[int]) -> None:
    for a in axes:
        if not y.shape[a]:
            raise IndexOutOfRangeError(at_user_line(f"smelt: nothing to take from axis {a} of {y.aval}"))


def _place_lead(y: array, n: int, place: int) -> array:
    """The first `n` axes moved behind the next `place` ones."""
    if not place or not n:
        return y
    return permuted(y, (*range(n, n + place), *range(n), *range(n + place, y.ndim)))


def _part_of_value(x: array, plan: _Plan) -> array | None:
    """A slice of an evaluated array without an op: the same memory if contiguous, or a small copy.

    Batches ``x[i : i + n]`` of a data set then neither copy nor compile anything.
    """
    node, i = x._ref
    if node.op is not LEAF or node.values is None:
        return None
    host = node.values[i].array[tuple([builtins.slice(*t) for t in zip(plan.start, plan.stop, plan.stride)])]
    if plan.flipped:
        host = np.flip(host, tuple(plan.flipped))
    if not host.flags.c_contiguous or host.nbytes <= COPIED_BYTES:
        if host.nbytes > COPIED_BYTES:
            return None
        host = np.array(host, order="C")
    host = host.reshape(plan.rest)
    return wrap((leaf(Buffer(Aval(host.shape, x.dtype), host)), 0))


# Writing


def setitem(x: array, index: Any, value: ArrayLike) -> None:
    """``x[index] = value``: this handle then stands for the changed array; the value is cast to its dtype.

    Raises:
        ShapeError: a value that cannot be broadcast to the shape of ``x[index]``.
        IndexOutOfRangeError: as in `getitem`. Entries of smelt arrays that are out of range write nothing.
    """
    x._ref = updated(x, index, value, "set")._ref


def _value(x: array, value: ArrayLike) -> array:
    return convert(as_array(value, x.dtype), x.dtype)


def _fit(value: array, shape: tuple[int, ...]) -> array:
    """The value broadcast to what it is assigned to. NumPy also drops leading axes of one element."""
    have = value.aval.shape
    extra = len(have) - len(shape)
    if extra > 0 and all(d == 1 for d in have[:extra]):
        value, have = to_shape(value, have[extra:]), have[extra:]
    lead = len(shape) - len(have)
    if lead < 0 or any(d not in (1, s) for d, s in zip(have, shape[lead:])):
        raise ShapeError(
            at_user_line(f"smelt: a value of shape {value.shape} does not fit into x[index] of shape {shape}")
        )
    return broadcast_to_shape(value, shape)


_COMBINE = {"add": "add", "mul": "mul", "max": "maximum", "min": "minimum"}


def _combined(old: array, new: array, mode: str) -> array:
    return new if mode == "set" else emit_elementwise(ops[_COMBINE[mode]], old, new)


def updated(x: array, index: Any, value: ArrayLike, mode: str) -> array:
    """x with `value` written to, or combined with, its elements at `index`."""
    value = _value(x, value)
    mask = _only_mask(x, index)
    if mask is not None:
        return _masked_update(x, mask, value, mode)
    plan = _plan(x, index)
    new = _fit(value, plan.shape)
    if plan.lead is not None and not plan.indices and math.prod(plan.lead) == 1:  # x[:, True]
        plan.lead, new = None, to_shape(new, plan.rest)
    if plan.lead is None:
        if mode != "set":
            new = _combined(_read(x, plan), new, mode)
        return _written(x, plan, new)
    if not x.size or 0 in plan.shape:
        return wrap(x._ref)
    return _scattered(x, plan, new, mode)


def _written(x: array, plan: _Plan, new: array) -> array:
    """x with `new` in a slice."""
    extents = plan.extents
    new = reversed_along(to_shape(new, tuple(extents)), tuple(plan.flipped))
    shape = x.aval.shape
    if tuple(extents) == shape:
        return wrap(new._ref)
    if 0 in extents:
        return wrap(x._ref)
    high = [d - z for d, z in zip(shape, plan.stop)]
    if all(s == 1 for s in plan.stride):
        changed = [a for a in range(len(shape)) if extents[a] != shape[a]]
        if len(changed) == 1:  # a run of whole rows: what is before, the new ones, what is behind
            return _spliced(x, new, changed[0], plan.start[changed[0]], plan.stop[changed[0]])
    interior = [s - 1 for s in plan.stride]
    inside, outside = filled(tuple(extents), True, dtypes.bool_), scalar_array(False, dtypes.bool_)
    there = padded(inside, outside, plan.start, high, interior)
    spread = padded(new, scalar_array(0, x.dtype), plan.start, high, interior)
    return select(there, spread, x)


def _spliced(x: array, new: array, axis: int, start: int, stop: int) -> array:
    shape = x.aval.shape
    zero = [0] * len(shape)
    low, high = list(zero), list(shape)
    high[axis], low[axis] = start, stop
    parts = [new]
    if start:
        parts.insert(0, sliced(x, zero, high))
    if stop < shape[axis]:
        parts.append(sliced(x, low, shape))
    found = parts[0]
    for part in parts[1:]:
        found = emit(ops["concatenate"], (found, part), {"axis": axis})
    return found


def _scattered(x: array, plan: _Plan, new: array, mode: str) -> array:
    """x with `new` at places given by index arrays, and within slices of the other axes."""
    lead = plan.lead
    assert lead is not None
    n = len(lead)
    # The axes of the index arrays first, then one axis for each of x.
    back = (*range(plan.place, plan.place + n), *range(plan.place), *range(plan.place + n, new.ndim))
    new = permuted(new, back)
    extents = plan.extents
    window = [1 if a in plan.indices else d for a, d in enumerate(extents)]
    new = to_shape(new, (*lead, *window))
    new = reversed_along(new, tuple(n + a for a in plan.flipped))
    indices = dict(plan.indices)
    if 0 in x.aval.shape:
        return wrap(x._ref)
    for a, d in enumerate(x.aval.shape):
        if a in indices or extents[a] == d:
            continue
        if plan.stride[a] == 1:  # a window that starts at the slice's start
            indices[a] = filled(lead, plan.start[a], dtypes.int32 if d < 2**31 else dtypes.int64)
            continue
        # A strided slice is one more axis of index arrays.
        kind = np.int32 if d < 2**31 else np.int64
        line = from_host(np.arange(plan.start[a], plan.stop[a], plan.stride[a], dtype=kind))
        lead = (*lead, line.size)
        indices = {k: broadcast_to_shape(to_shape(i, (*i.shape, 1)), lead) for k, i in indices.items()}
        indices[a] = broadcast_to_shape(line, lead)
        order = [*range(n), n + a, *(k for k in range(n, new.ndim) if k != n + a)]
        new = permuted(new, tuple(order))
        n += 1
        new = to_shape(new, (*new.shape[: n + a], 1, *new.shape[n + a :]))
    axes = tuple(indices)
    return emit(ops["scatter"], (x, new, *of_one_dtype(indices.values())), {"axes": axes, "mode": mode})


def _only_mask(x: array, index: Any) -> array | None:
    """The mask if it is the whole index (full slices may follow), as an array."""
    if type(index) is tuple:
        whole = builtins.slice(None)
        rest = [e for e in index[1:] if not (e is Ellipsis or (type(e) is builtins.slice and e == whole))]
        if not index or rest or len(index) > 1 + x.ndim:
            return None
        index = index[0]
    if isinstance(index, (list, np.ndarray)) and not _list_of_bools(index):
        return None
    if isinstance(index, (bool, np.bool_, list, np.ndarray)):
        index = from_host(np.asarray(index, np.bool_))
    if not isinstance(index, array) or index.dtype is not dtypes.bool_:
        return None
    if index.ndim > x.ndim or any(m != d for m, d in zip(index.shape, x.shape)):
        raise ShapeError(at_user_line(f"smelt: a mask of shape {index.shape} for an array {x.aval}"))
    return index


def _list_of_bools(values: Any) -> bool:
    if isinstance(values, np.ndarray):
        return values.dtype == np.bool_
    return bool(values) and not _holds_array(values) and np.asarray(values).dtype == np.bool_


def _masked_update(x: array, mask: array, value: array, mode: str) -> array:
    """Where the mask holds. A value for each True element is dealt out in row-major order."""
    rest = x.aval.shape[mask.ndim :]
    have = value.aval.shape
    while len(have) > len(rest) and have[0] == 1:
        have = have[1:]
    if len(have) <= len(rest):
        new = broadcast_to_shape(_fit(to_shape(value, have), rest), x.aval.shape)
    else:
        if len(have) != len(rest) + 1:
            raise ShapeError(
                at_user_line(f"smelt: a value of shape {value.shape} does not fit into x[mask] of shape (n, *{rest})")
            )
        count = have[0]
        value = _fit(to_shape(value, have), (count, *rest))
        if not state.compiling:
            wanted = int(np.count_nonzero(mask._host()))
            if wanted != count:
                raise ShapeError(
                    at_user_line(f"smelt: a value of shape {value.shape} for {wanted} elements where the mask is True")
                )
        if not count:
            return wrap(x._ref)
        flat = convert(to_shape(mask, (mask.size,)), dtypes.int32 if mask.size < 2**31 else dtypes.int64)
        before = emit(ops["cumsum"], (flat,), {"axis": 0, "reverse": False, "inclusive": False})
        dealt = emit(ops["gather"], (value, before), {"axes": (0,), "slice_sizes": (1, *rest)})
        new = to_shape(dealt, x.aval.shape)
    there = broadcast_to_shape(to_shape(mask, (*mask.shape, *[1] * len(rest))), x.aval.shape)
    return select(there, _combined(x, new, mode), x)


class ArrayAt:
    """``x.at``: updates that return a new array, in which all updates of a place count.

    >>> import smelt
    >>> smelt.zeros(3).at[smelt.array([0, 0, 2])].add(1)
    array([2, 0, 1], dtype=float32)
    """

    __slots__ = ("_array", "_index")

    def __init__(self, x: array, index: Any = None):
        self._array, self._index = wrap(x._ref), index

    def __getitem__(self, index: Any) -> ArrayAt:
        return ArrayAt(self._array, (index,))

    def _update(self, value: ArrayLike, mode: str) -> array:
        if self._index is None:
            raise IndexError(at_user_line("smelt: x.at needs an index: x.at[index].add(value)"))
        return updated(self._array, self._index[0], value, mode)

    def add(self, value: ArrayLike) -> array:
        """The array with `value` added at the index."""
        return self._update(value, "add")

    def subtract(self, value: ArrayLike) -> array:
        """The array with `value` subtracted at the index."""
        x = self._array
        return self._update(emit_elementwise(ops["neg"], _numeric(x, value, "subtract")), "add")

    def multiply(self, value: ArrayLike) -> array:
        """The array multiplied by `value` at the index."""
        return self._update(value, "mul")

    def divide(self, value: ArrayLike) -> array:
        """The array divided by `value` at the index, which needs floating-point numbers."""
        x = self._array
        if not x.dtype.is_inexact:
            raise DTypeError(at_user_line(f"smelt: x.at[...].divide needs floating-point numbers, x is {x.aval}"))
        divisor = updated(filled(x.shape, 1, x.dtype), self._index[0] if self._index else (), value, "mul")
        return emit_elementwise(ops["div"], x, divisor)

    def maximum(self, value: ArrayLike) -> array:
        """The array with the larger of its elements and `value` at the index."""
        return self._update(value, "max")

    def minimum(self, value: ArrayLike) -> array:
        """The array with the smaller of its elements and `value` at the index."""
        return self._update(value, "min")


def _numeric(x: array, value: ArrayLike, name: str) -> array:
    if x.dtype is dtypes.bool_:
        raise DTypeError(at_user_line(f"smelt: x.at[...].{name} needs numbers, x is {x.aval}"))
    return _value(x, value)


# Functions


def _index_array(name: str, indices: ArrayLike) -> Any:
    """Indices as a smelt array, or as a NumPy array if their values are known."""
    if isinstance(indices, (list, tuple, np.ndarray, range)) and not (
        isinstance(indices, (list, tuple)) and _holds_array(indices)
    ):
        found: Any = np.asarray(indices)
        if not found.size and not isinstance(indices, np.ndarray):
            found = found.astype(np.int32)
        integers = found.dtype.kind in "iu"
    else:
        found = as_array(indices)
        integers = found.dtype.is_integer
    if not integers:
        raise DTypeError(at_user_line(f"smelt.{name}: indices must be integers, are {found.dtype}"))
    return found


def take(a: ArrayLike, /, indices: int | ArrayLike, axis: int | None = None, *, stream: StreamOrDevice = None) -> array:
    """Elements of an axis (of the flattened array if None) at given indices.

    The result's shape is that of `a` with the axis replaced by the shape of `indices`.

    >>> import smelt
    >>> smelt.take(smelt.array([[1, 2], [3, 4]]), smelt.array([1, 0]), axis=1)
    array([[2, 1],
           [4, 3]], dtype=int32)
    """
    x = as_array(a)
    if axis is None:
        x, axis = to_shape(x, (x.size,)), 0
    axis = one_axis("take", axis, x.ndim)
    index = indices if type(indices) is int else _index_array("take", indices)
    return getitem(x, (*[builtins.slice(None)] * axis, index))


def _along(name: str, a: ArrayLike, indices: ArrayLike, axis: int | None) -> tuple[array, array, int]:
    """The array, in-range indices, and the axis: all axes but that one broadcast."""
    x, index = as_array(a), _index_array(name, indices)
    if axis is None:
        x, axis = to_shape(x, (x.size,)), 0
        index = index.reshape(-1) if isinstance(index, np.ndarray) else to_shape(index, (index.size,))
    axis = one_axis(name, axis, x.ndim)
    if index.ndim != x.ndim:
        raise ShapeError(at_user_line(f"smelt.{name}: indices have {index.ndim} axes; a {x.aval}"))
    for i, (d, n) in enumerate(zip(x.shape, index.shape)):
        if i != axis and d != n and 1 not in (d, n):
            raise ShapeError(
                at_user_line(f"smelt.{name}: indices of shape {tuple(index.shape)} do not fit on axis {i}; a {x.aval}")
            )
    return x, _in_range(index, axis, x), axis


def of_one_dtype(indices: Iterable[array]) -> list[array]:
    """Index arrays in a dtype that holds all of them: gather and scatter take only one."""
    found = list(indices)
    kinds = {x.dtype for x in found}
    if len(kinds) < 2:
        return found
    narrow = all(d.kind == "i" and d.size <= 4 or d.size < 4 for d in kinds)
    return [convert(x, dtypes.int32 if narrow else dtypes.int64) for x in found]


def _grid(index: array, axis: int) -> list[array]:
    """Index arrays for all axes: `index` for one, the element's own place for the others."""
    return of_one_dtype(index if i == axis else iota(index.shape, i) for i in range(index.ndim))


def take_along_axis(
    a: ArrayLike, /, indices: ArrayLike, axis: int | None = -1, *, stream: StreamOrDevice = None
) -> array:
    """One element for each entry of `indices`: result[…, i, …] = a[…, indices[…, i, …], …].

    Without `axis` both are flattened. The other axes are broadcast.

    >>> import smelt
    >>> smelt.take_along_axis(smelt.array([[1, 2], [3, 4]]), smelt.array([[1], [0]]), axis=1)
    array([[2],
           [3]], dtype=int32)
    """
    x, index, axis = _along("take_along_axis", a, indices, axis)
    common = [max(d, n) if d and n else 0 for d, n in zip(x.shape, index.shape)]
    at, of = list(common), list(common)
    at[axis], of[axis] = index.shape[axis], x.shape[axis]
    index, x = broadcast_to_shape(index, tuple(at)), broadcast_to_shape(x, tuple(of))
    if not index.size:
        return filled(index.shape, 0, x.dtype)
    _check_not_empty(x, (axis,))
    attrs = {"axes": tuple(range(x.ndim)), "slice_sizes": (1,) * x.ndim}
    return to_shape(emit(ops["gather"], (x, *_grid(index, axis)), attrs), index.shape)


def put_along_axis(
    a: ArrayLike,
    /,
    indices: ArrayLike,
    values: ArrayLike,
    axis: int | None = None,
    *,
    stream: StreamOrDevice = None,
) -> array:
    """A copy with one element written for each entry of `indices`; see `take_along_axis`.

    Without `axis` the flattened array is written to. `values` are broadcast to the indices.

    >>> import smelt
    >>> smelt.put_along_axis(smelt.array([[1, 2], [3, 4]]), smelt.array([[1], [0]]), 9, axis=1)
    array([[1, 9],
           [9, 4]], dtype=int32)
    """
    whole = as_array(a)
    new = _value(whole, values)
    x, index, along = _along("put_along_axis", whole, indices, axis)
    shape = tuple(n if i == along else d for i, (d, n) in enumerate(zip(x.shape, index.shape)))
    index = broadcast_to_shape(index, shape) if index.size else index
    if axis is None and new.ndim > 1:
        new = to_shape(new, (new.size,))
    new = _fit(new, index.shape)
    if not index.size or not x.size:
        return wrap(whole._ref)
    new = to_shape(new, (*index.shape, *[1] * x.ndim))
    attrs = {"axes": tuple(range(x.ndim)), "mode": "set"}
    return to_shape(emit(ops["scatter"], (x, new, *_grid(index, along)), attrs), whole.shape)


def _starts(name: str, x: array, start_indices: ArrayLike, axes: Sequence[int]) -> tuple[tuple[int, ...], list[array]]:
    along = many_axes(name, tuple(axes), x.ndim)
    starts = as_array(start_indices)
    if not starts.dtype.is_integer or starts.ndim > 1 or starts.size != len(along):
        raise ShapeError(
            at_user_line(f"smelt.{name}: start_indices must be one integer for each of axes {along}, is {starts.aval}")
        )
    flat = to_shape(starts, (starts.size,))
    return along, [wrapped_once(flat[i], x.shape[a]) for i, a in enumerate(along)]


def slice(
    a: ArrayLike,
    start_indices: ArrayLike,
    axes: Sequence[int],
    slice_size: Sequence[int],
    *,
    stream: StreamOrDevice = None,
) -> array:
    """A window of the given size that starts at indices known only at run time.

    Args:
        start_indices: one integer for each axis in `axes`; the other axes start at 0. A window that
            would leave the array is moved inside.

    >>> import smelt
    >>> smelt.slice(smelt.arange(5), smelt.array([2]), (0,), (2,))
    array([2, 3], dtype=int32)
    """
    x = as_array(a)
    along, starts = _starts("slice", x, start_indices, axes)
    sizes = shape_tuple("slice", slice_size)
    if len(sizes) != x.ndim or any(not 0 <= s <= d for s, d in zip(sizes, x.shape)):
        raise ShapeError(at_user_line(f"smelt.slice: slice_size {sizes} does not fit into a {x.aval}"))
    if not along:
        return sliced(x, [0] * x.ndim, sizes)
    return emit(ops["gather"], (x, *starts), {"axes": along, "slice_sizes": sizes})


def slice_update(
    a: ArrayLike,
    update: ArrayLike,
    start_indices: ArrayLike,
    axes: Sequence[int],
    *,
    stream: StreamOrDevice = None,
) -> array:
    """A copy with a window overwritten that starts at indices known only at run time; see `slice`.

    >>> import smelt
    >>> smelt.slice_update(smelt.zeros(4), smelt.ones(2), smelt.array([1]), (0,))
    array([0, 1, 1, 0], dtype=float32)
    """
    x = as_array(a)
    new = _value(x, update)
    along, starts = _starts("slice_update", x, start_indices, axes)
    shape = (1,) * (x.ndim - new.ndim) + new.shape
    if len(shape) != x.ndim or any(s > d for s, d in zip(shape, x.shape)):
        raise ShapeError(at_user_line(f"smelt.slice_update: update {new.aval} does not fit into a {x.aval}"))
    if not new.size:
        return wrap(x._ref)
    limits = [x.shape[a] - shape[a] for a in along]
    inside = [_at_most(s, high) for s, high in zip(starts, limits)]
    return emit(ops["scatter"], (x, to_shape(new, shape), *inside), {"axes": along, "mode": "set"})


def _at_most(index: array, high: int) -> array:
    """A start that keeps the window inside: between 0 and `high`."""
    low = emit_elementwise(ops["maximum"], index, filled(index.shape, 0, index.dtype))
    return emit_elementwise(ops["minimum"], low, filled(index.shape, high, index.dtype))

