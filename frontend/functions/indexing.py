"""Reading parts of arrays: ``x[...]``.

An index is first resolved into a plan (`Plan`): a slice of each axis, which is known when the
function is called, and index arrays for some axes. Slices become movement, index arrays gather.
`updating` writes by the same plans.
"""

from __future__ import annotations

import builtins
import math
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from smelt.ir import dtypes
from smelt.ir.aval import Aval
from smelt.ir.dtypes import DType
from smelt.ir.errors import (
    ArgumentTypeError,
    AttributeValueError,
    DTypeError,
    IndexOutOfRangeError,
    IndexShapeError,
    ShapeError,
    SmeltError,
    TraceError,
    at_user_line,
    public_call,
    shown,
)
from smelt.ir.op import registry as ops
from smelt.ir.symbolic import Symbol, index, slice_indices
from smelt.runtime import Buffer

from ..lazy.arguments import listed
from ..lazy.arrays import array, as_array, broadcast_to_shape, convert, emit, emit_elementwise, from_host, wrap
from ..lazy.core import remembered
from ..lazy.graph import LEAF, leaf
from ..lazy.host import plain
from ..lazy.movement import broadcast_together, filled, permuted, reversed_along, select, sliced, to_shape
from ..lazy.signatures import Index
from .known_indices import check_index, out_of_range

__all__: list[str] = []

#: Parts of evaluated arrays up to this size are copied at once instead of keeping the whole alive.
COPIED_BYTES = 4096


# From what the user wrote to a plan


class Plan:
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
_BASIC_TYPES = frozenset(_BASIC)
_REMEMBERED = _BASIC_TYPES | {array}


def plan_of(x: array, index: Any) -> Plan:
    """Resolve an index. Raises IndexOutOfRangeError, IndexShapeError, DTypeError, TraceError."""
    shape = x.aval.shape
    entries, used = _entries(x, index)
    plan = Plan(shape)
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
        elif kind is int or kind is Symbol:
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
                found.append((axis, in_range(e.checked(axis, x) if kind is _Places else e, axis, x)))
                axis += 1
    if has_array:
        try:
            together = broadcast_together("index", [i for _, i in found])
        except ShapeError:
            shapes = " and ".join(str(i.shape) for _, i in found)
            raise IndexShapeError(
                at_user_line(f"smelt: index arrays of shapes {shapes} cannot be broadcast together")
            ) from None
        plan.lead = together[0].shape
        plan.indices = {a: i for (a, _), i in zip(found, together) if a >= 0}
        # NumPy's rule: index arrays and ints next to each other stay where they are, else they come first.
        adjacent = advanced[-1] - advanced[0] + 1 == len(advanced)
        plan.place = places[0] if adjacent else 0
    return plan


def entries_of(index: Any) -> Any:
    """An index; a tuple of another class, such as a named one, as a tuple."""
    return listed("array", "an index", index) if isinstance(index, tuple) and type(index) is not tuple else index


def _entries(x: array, index: Any) -> tuple[list[Any], int]:
    """The entries of an index with one ellipsis among them, masks as integers; and how many axes they take."""
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
        raise IndexOutOfRangeError(at_user_line("smelt: an index has at most one ellipsis"))
    if used > x.aval.ndim:
        raise IndexOutOfRangeError(at_user_line(f"smelt: {used} indices for an array of {x.aval.ndim} axes, {x.aval}"))
    if not ellipses:
        entries.append(Ellipsis)
    return entries, used


def bounds_of(e: builtins.slice, extent: int) -> tuple[int, int, int]:
    """Start, stop and step of a slice along an axis.

    Raises:
        AttributeValueError: its step is zero. ArgumentTypeError: it does not consist of ints.
    """
    try:
        return slice_indices(e, extent)
    except (SmeltError, MemoryError):  # also of an array that has no value, or is no index
        raise
    except ValueError as error:
        raise AttributeValueError(at_user_line(f"smelt: {error}")) from None
    except Exception:  # also what a class raises that fails to say which one
        raise ArgumentTypeError(at_user_line(f"smelt: slices consist of ints, got {shown(e)}")) from None


def _set_slice(plan: Plan, axis: int, e: builtins.slice, extent: int) -> None:
    if e.start is None and e.stop is None and e.step is None:
        return
    start, stop, step = bounds_of(e, extent)
    count = max(-((start - stop) // step), 0) if step > 0 else max(-((stop - start) // -step), 0)
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
        raise out_of_range(i, axis, x)
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
        return [_Places(i, d) for i, d in zip(true_places(host), host.shape)]


class _Places:
    """Where a mask is True along one of its axes, which must be as long as the array's."""

    def __init__(self, index: np.ndarray, extent: int):
        self.index, self.extent = index, extent

    def checked(self, axis: int, x: array) -> np.ndarray:
        if x.shape[axis] != self.extent:
            raise IndexShapeError(
                at_user_line(f"smelt: the mask has {self.extent} elements where axis {axis} of {x.aval} lies")
            )
        return self.index


def true_places(mask: np.ndarray) -> tuple[np.ndarray, ...]:
    """``np.nonzero(mask)``, which is quick for vectors alone.

    >>> true_places(np.array([[False, True], [True, False]]))
    (array([0, 1]), array([1, 0]))
    """
    if mask.ndim < 2:
        return mask.nonzero()
    places, flat = [], np.flatnonzero(mask)
    for extent in reversed(mask.shape[1:]):
        above = flat // max(extent, 1)
        places.append(flat - above * extent)
        flat = above
    return (flat, *reversed(places))


def _masked(x: array, mask: array | np.ndarray) -> array | None:
    """``x[mask]`` of a mask of several axes: of the leading axes as one. None where it does not fit."""
    shape, is_mask = x.shape, (mask.dtype is dtypes.bool_ if isinstance(mask, array) else mask.dtype == np.bool_)
    if not is_mask or not 1 < mask.ndim <= len(shape) or shape[: mask.ndim] != mask.shape:
        return None
    y = to_shape(x, (math.prod(mask.shape), *shape[mask.ndim :]))
    return read(y, plan_of(y, np.flatnonzero(_mask_values(mask))))


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
        return e if type(e) is Symbol else int(e)
    if isinstance(e, (list, tuple, np.ndarray, range)):
        if isinstance(e, (list, tuple)) and holds_array(e):
            return _entry(x, as_array(e))
        host = host_array(e)
        if host.size == 0 and not isinstance(e, np.ndarray):
            host = host.astype(np.int32)
        if host.dtype == np.bool_:
            return _checked_mask(x, host)
        if host.dtype.kind not in "iu":
            raise DTypeError(at_user_line(f"smelt: an array of integers or bools is an index, got {host.dtype}"))
        return host
    if hasattr(e, "__index__"):
        try:
            return index(e)
        except (TraceError, MemoryError):
            raise
        except Exception:
            message = f"smelt: an index, but {type(e).__name__} does not say which integer it is"
            raise ArgumentTypeError(at_user_line(message)) from None
    if hasattr(e, "__array__"):
        return _entry(x, host_array(e))
    raise ArgumentTypeError(
        at_user_line(
            "smelt: an index consists of ints, slices, None, ... and arrays or lists of ints or bools, "
            f"got {type(e).__name__}"
        )
    )


def index_entry(x: array, e: Any) -> Any:
    """`_entry` of what is neither a slice nor None nor an ellipsis. A mask is what `mask_of` knows."""
    return e if type(e) is int else _entry(x, e)


def mask_of(e: Any) -> Any:
    """The mask that an entry of an index is, a bool for a scalar one; None for others."""
    return bool(e.n) if type(e) is _Count else e.mask if type(e) is _Mask else None


def host_array(values: Any) -> np.ndarray:
    """Nested lists of an index as NumPy sees them."""
    who = f"smelt.{name}" if (name := public_call()) else "smelt: an index"
    try:
        return np.asarray(plain(values))
    except (SmeltError, MemoryError):
        raise
    except ValueError:
        if not issubclass(type(values), (list, tuple)):
            raise DTypeError(at_user_line(f"{who}: {shown(values)} gives no elements")) from None
        raise ShapeError(at_user_line(f"{who}: uneven or too deep lists, {shown(values)}")) from None
    except Exception as error:  # of a class that is asked for its elements
        message = f"{who}: {type(values).__name__} gives no elements: {type(error).__name__}"
        raise ArgumentTypeError(at_user_line(message)) from error


def holds_array(values: Any, depth: int = 64) -> bool:
    if depth == 0:  # deeper than any index; `host_array` says so
        return False
    held = values if type(values) in (list, tuple) else listed("array", "a list", values)
    return any(isinstance(v, array) or (isinstance(v, (list, tuple)) and holds_array(v, depth - 1)) for v in held)


def _checked_mask(x: array, mask: Any) -> _Mask:
    if mask.ndim > x.ndim:
        raise IndexShapeError(at_user_line(f"smelt: a mask of shape {mask.shape} for an array {x.aval}"))
    return _Mask(mask)


def in_range(index: Any, axis: int, x: array) -> array:
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


def of_one_dtype(indices: Iterable[array]) -> list[array]:
    """Index arrays in a dtype that holds all of them: gather and scatter take only one."""
    found = list(indices)
    kinds = {x.dtype for x in found}
    if len(kinds) < 2:
        return found
    narrow = all((d.kind == "i" and d.size <= 4) or d.size < 4 for d in kinds)
    return [convert(x, dtypes.int32 if narrow else dtypes.int64) for x in found]


# Reading


def getitem(x: array, index: Index, /) -> array:
    """``x[index]`` by NumPy's rules; negative indices count from the end.

    Raises:
        IndexOutOfRangeError: an int outside of its axis, also in a list or an array whose values are there. Those of
            arrays that are not computed yet read the nearest element.
        IndexShapeError: a mask that does not fit, or arrays of indices that cannot be broadcast together.
        TraceError: a mask inside `compile` or `vmap`.
    """
    if type(index) in (list, np.ndarray) and x.ndim:  # its values are known now, and no part of a recipe
        known = _entry(x, index)
        if type(known) is np.ndarray:
            index = in_range(known, 0, x)
    elif isinstance(index, tuple):
        index = entries_of(index)
    check_index(x, index)
    if isinstance(index, (array, np.ndarray)) and (found := _masked(x, index)) is not None:
        return found
    node, i = x._ref
    if node.op is not LEAF or node.values is None or _is_elsewhere(node.values[i]):
        return _lazy_getitem(x, index)
    entries = index if type(index) is tuple else (index,)
    if _BASIC_TYPES.issuperset(map(type, entries)):
        try:  # NumPy's rules, by NumPy; what it refuses, the plan refuses with our words
            host = node.values[i].array[entries if Ellipsis in entries else (*entries, ...)]
            found = _kept_or_copied(host, host.shape, x.dtype)
        except MemoryError:
            raise
        except Exception:
            found = None
        if found is not None:
            return found
        return read(x, plan_of(x, index))
    if _REMEMBERED.issuperset(map(type, entries)):
        return _lazy_getitem(x, index)
    return read(x, plan_of(x, index))


@remembered
def _lazy_getitem(x: array, index: Index) -> array:
    return read(x, plan_of(x, index))


def read(x: array, plan: Plan) -> array:
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
            check_not_empty(y, axes)
        if 0 in plan.lead:
            return filled(plan.shape, 0, x.dtype)
        y = emit(ops["gather"], (y, *of_one_dtype(plan.indices.values())), {"axes": axes, "slice_sizes": sizes})
    else:
        y = broadcast_to_shape(y, (*plan.lead, *y.aval.shape))
    return _place_lead(to_shape(y, (*plan.lead, *plan.rest)), len(plan.lead), plan.place)


def check_not_empty(y: array, axes: Sequence[int]) -> None:
    for a in axes:
        if not y.shape[a]:
            raise IndexOutOfRangeError(at_user_line(f"smelt: nothing to take from axis {a} of {y.aval}"))


def _place_lead(y: array, n: int, place: int) -> array:
    """The first `n` axes moved behind the next `place` ones."""
    if not place or not n:
        return y
    return permuted(y, (*range(n, n + place), *range(n), *range(n + place, y.ndim)))


def _part_of_value(x: array, plan: Plan) -> array | None:
    """A slice of an evaluated array without an op: the same memory if contiguous, or a small copy.

    Batches ``x[i : i + n]`` of a data set then neither copy nor compile anything.
    """
    node, i = x._ref
    if node.op is not LEAF or node.values is None or _is_elsewhere(node.values[i]):
        return None
    host = node.values[i].array[tuple([builtins.slice(*t) for t in zip(plan.start, plan.stop, plan.stride)])]
    if plan.flipped:
        host = np.flip(host, tuple(plan.flipped))
    return _kept_or_copied(host, plan.rest, x.dtype)


def _is_elsewhere(value: Buffer) -> bool:
    """Whether it lies on a device alone: a part of it does not bring all of it to the host."""
    return value.home is not None and not value.is_on_host


def _kept_or_copied(host: np.ndarray, shape: tuple[int, ...], dtype: DType) -> array | None:
    """A part of a value as a value of this shape: the same memory if contiguous, or a small copy; else None."""
    if not host.flags.c_contiguous or host.nbytes <= COPIED_BYTES:
        if host.nbytes > COPIED_BYTES:
            return None
        host = np.array(host, order="C")
    return wrap((leaf(Buffer(Aval(shape, dtype), host.reshape(shape))), 0))
