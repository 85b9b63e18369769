"""Writing parts of arrays: ``x[...] = v``, ``x.at[...].add(v)``.

By the same plans as reading (`indexing`): slices become movement, index arrays scatter; a boolean mask
that is assigned to becomes a selection and is never evaluated.
"""

from __future__ import annotations

import builtins
import math
from collections.abc import Callable, Collection, Sequence
from typing import Any, cast

import numpy as np

from smelt.ir import dtypes
from smelt.ir.aval import Aval
from smelt.ir.errors import IndexShapeError, ShapeError, at_user_line, called
from smelt.ir.op import registry as ops
from smelt.ir.ops.indexing import Scatter
from smelt.ir.settings import settings
from smelt.runtime import Buffer, Executable, default_device

from ..lazy.arrays import (
    ArrayLike,
    array,
    as_array,
    broadcast_to_shape,
    check_update,
    convert,
    emit,
    emit_elementwise,
    from_host,
    scalar_array,
    wrap,
)
from ..lazy.calls import NotedCall
from ..lazy.core import COMPILED, remembered_numbers
from ..lazy.evaluate import evaluate
from ..lazy.exports import write_in_place
from ..lazy.graph import GIVEN, LEAF, Node, state
from ..lazy.movement import counting, filled, for_gather, padded, permuted, reversed_along, select, sliced, to_shape
from ..lazy.signatures import Index
from .indexing import Plan, entries_of, holds_array, of_one_dtype, plan_of, read
from .known_indices import check_index

__all__: list[str] = []


def setitem(x: array, index: Index, value: ArrayLike, /) -> None:
    """``x[index] = value``: this handle then stands for the changed array; the value is cast to its dtype.

    Raises:
        ShapeError: a value that cannot be broadcast to the shape of ``x[index]``.
        IndexOutOfRangeError: as in `getitem`. Arrays that are not computed yet write nothing where they are out of
            range.
        TraceError: an array from outside, in a branch or in the body of a loop.
    """
    check_update(x)
    index = entries_of(index)
    check_index(x, index)
    if not _overwritten(x, index, value):
        x._ref = updated(x, index, value, "set")._ref


_SCATTER = cast(Scatter, ops["scatter"])
#: What a scatter takes besides its first operand: updates, axes, and an index array for each of these.
Scattered = tuple[array, tuple[int, ...], Sequence[array]]
#: Bytes of an array from which on a copy takes longer than to find out that none is needed,
WORTH = 512 << 10
#: and from which on a value that has not been computed yet is, so that none is.
LARGE = 4 << 20
#: and from which on an update that is to be evaluated later is a step of its own, which need not copy.
NOTED = 1 << 20
#: Entries of an index that are no arrays; bools are masks.
_PLAIN = (int, np.integer, builtins.slice, type(Ellipsis), type(None))


def _overwritten(x: array, index: Any, value: ArrayLike) -> bool:
    """Write to parts of a large evaluated array where it lies, if nobody else can see that."""
    if type(x) is not array or state.compiling or state.recording or state.traced:
        return False
    node, i = x._ref
    nbytes = node.avals[i].nbytes
    if node.op is not LEAF or nbytes < WORTH or not (_is_plain(index) or (_is_of_places(index) and not settings.check)):
        return False
    del node  # nothing but the array refers to it
    if nbytes < LARGE and not all(map(_is_known, (value, *(index if type(index) is tuple else (index,))))):
        return False
    plan = plan_of(x, index)
    shape, extents = plan.shape, plan.extents
    if 0 in shape or (plan.lead is None and tuple(extents) == x.aval.shape):
        return False
    new = value_for(x, value)
    fitting = fitted(new, shape)  # or an error
    if plan.lead is None:
        write = _written_slice(plan, new, shape, extents)
    else:
        write = _written_places(*_scattering(x, plan, fitting))
    del new, fitting  # perhaps made from the array
    return write_in_place(x, write)


def _is_known(x: Any) -> bool:
    return not isinstance(x, array) or x._ref[0].values is not None


def _written_slice(
    plan: Plan, new: array, shape: tuple[int, ...], extents: Sequence[int]
) -> Callable[[np.ndarray], None]:  # fmt: skip
    """What writes `new` to a slice, of the shape of a result and of extents of each axis. NumPy repeats it."""
    elements = new._host()
    if elements.shape != shape:
        elements = np.broadcast_to(elements.reshape(elements.shape[max(elements.ndim - len(shape), 0) :]), shape)
    elements = elements.reshape(extents)
    elements = np.flip(elements, tuple(plan.flipped)) if plan.flipped else elements
    places = tuple(map(builtins.slice, plan.start, plan.stop, plan.stride))

    def write(memory: np.ndarray) -> None:
        memory[places] = elements

    return write


def _written_places(new: array, axes: tuple[int, ...], indices: Sequence[array]) -> Callable[[np.ndarray], None]:
    """What writes `new` to the places of a scatter."""
    evaluate([x._ref for x in (new, *indices)])
    elements, *places = [x._host() for x in (new, *indices)]
    return lambda memory: _SCATTER.write(memory, elements, *places, axes=axes, mode="set")


def _is_plain(index: Any) -> bool:
    """Whether an index consists of integers and slices, without arrays and masks."""
    entries = index if type(index) is tuple else (index,)
    return all(isinstance(e, _PLAIN) and not isinstance(e, bool) for e in entries)


def _is_of_places(index: Any) -> bool:
    """Whether an index consists of these and of arrays of integers."""
    entries = index if type(index) is tuple else (index,)
    return all(
        (isinstance(e, _PLAIN) and not isinstance(e, bool))
        or (isinstance(e, array) and e.aval.dtype.is_integer)
        or (type(e) is np.ndarray and e.dtype.kind in "iu")
        or (type(e) is list and e and all(type(i) is int for i in e))
        for e in entries
    )


def value_for(x: array, value: ArrayLike) -> array:
    return convert(as_array(value, x.dtype), x.dtype)


def fitted(value: array, shape: tuple[int, ...]) -> array:
    """The value broadcast to what it is assigned to. NumPy also drops leading axes of one element."""
    have = value.aval.shape
    extra = len(have) - len(shape)
    if extra > 0 and all(d == 1 for d in have[:extra]):
        value, have = to_shape(value, have[extra:]), have[extra:]
    lead = len(shape) - len(have)
    if lead < 0 or any(d not in (1, s) for d, s in zip(have, shape[lead:])):
        raise ShapeError(
            at_user_line(f"{called()}: a value of shape {value.shape} does not fit into x[index] of shape {shape}")
        )
    return broadcast_to_shape(value, shape)


_COMBINE = {"add": "add", "mul": "mul", "max": "maximum", "min": "minimum"}


def _combined(old: array, new: array, mode: str) -> array:
    return new if mode == "set" else emit_elementwise(ops[_COMBINE[mode]], old, new)


def updated(x: array, index: Any, value: ArrayLike, mode: str) -> array:
    """x with `value` written to, or combined with, its elements at `index`."""
    node = x._ref[0]
    found = None
    if state.compiling:
        if node.attrs is GIVEN:
            found = _written_into(x, index, value, mode)
    elif _can_be_noted(x) and (_is_plain(index) or _is_of_places(index)):
        found = _noted(x, index, value, mode)
    return _updated(x, (index,), value, mode) if found is None else found  # as a tuple the index is no operand


@remembered_numbers
def _updated(x: array, indices: tuple[Any], value: ArrayLike, mode: str) -> array:
    (index,) = indices
    value = value_for(x, value)
    found = _only_mask(x, index)
    if found is not None:
        return _masked_update(x, *found, value, mode)
    plan = plan_of(x, index)
    new = fitted(value, plan.shape)
    if plan.lead is not None and not plan.indices and math.prod(plan.lead) == 1:  # x[:, True]
        plan.lead, new = None, to_shape(new, plan.rest)
    if plan.lead is None:
        if mode != "set":
            new = _combined(read(x, plan), new, mode)
        return _written(x, plan, new)
    if not x.size or 0 in plan.shape:
        return wrap(x._ref)
    return _scattered(x, plan, new, mode)


def _written(x: array, plan: Plan, new: array) -> array:
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


def _written_into(x: array, index: Any, value: ArrayLike, mode: str) -> array | None:
    """`updated` of an argument that a compiled function is given for good: as a scatter of one window, which writes
    into the argument's memory and leaves the rest. None where that is no window."""
    window = _window(x, plan_of(x, index), value) if _is_plain(index) else None
    if window is None:
        return None
    new, axes, starts = window
    return emit(ops["scatter"], (x, new, *starts), {"axes": axes, "mode": mode})


def _window(x: array, plan: Plan, value: ArrayLike) -> Scattered | None:
    """What a scatter into a slice of x takes; None where that is no window."""
    extents, shape = tuple(plan.extents), x.aval.shape
    if plan.lead is not None or extents == shape or 0 in extents or any(s != 1 for s in plan.stride):
        return None
    new = fitted(value_for(x, value), plan.shape)
    new = reversed_along(to_shape(new, extents), tuple(plan.flipped))
    axes = tuple([a for a, d in enumerate(shape) if extents[a] != d])
    return new, axes, [scalar_array(plan.start[a], counting(shape[a])) for a in axes]


class _Update(Executable):
    """A scatter into a large array: in its memory, where nobody else wants that.

    Args:
        avals: of the operands of the scatter.
    """

    donatable = frozenset((0,))

    def __init__(self, avals: Sequence[Aval], axes: tuple[int, ...], mode: str):
        super().__init__(list(avals), [avals[0]])
        self._attrs: dict[str, Any] = {"axes": axes, "mode": mode}

    def run(self, inputs: Sequence[Buffer]) -> list[Buffer]:
        made = Buffer.empty(self.results[0])
        made.array[...] = inputs[0].array
        return self.run_donated([made, *inputs[1:]], (0,))

    def run_donated(self, inputs: Sequence[Buffer], donated: Collection[int]) -> list[Buffer]:
        if not donated:
            return self.run(inputs)
        _SCATTER.write(*[buffer.array for buffer in inputs], **self._attrs)
        return [inputs[0]]


def _can_be_noted(x: array) -> bool:
    """Whether x is large and has a value in the host's memory, or is such an update of what has, outside of all
    traces."""
    node, i = x._ref
    if node.avals[i].nbytes < NOTED or state.recording or state.traced or settings.check:
        return False
    if node.op is LEAF:
        known = node.values is not None and node.values[i].home is None
    else:
        known = node.op is COMPILED and isinstance(node.attrs["call"].program, _Update)
    return known and default_device().tiers and default_device().is_host


def _noted(x: array, index: Any, value: ArrayLike, mode: str) -> array | None:
    """`updated` of a large array as a step of its own: it copies nothing if nobody else wants x when it runs."""
    plan = plan_of(x, index)
    if 0 in plan.shape:
        return None
    if plan.lead is None:
        found = _window(x, plan, value)
    else:
        found = _scattering(x, plan, fitted(value_for(x, value), plan.shape))
    if found is None:
        return None
    new, axes, indices = found
    operands = (x, new, *of_one_dtype(indices))
    program = _Update([a.aval for a in operands], axes, mode)
    refs = tuple([a._ref for a in operands])
    return wrap((Node(COMPILED, {"call": NotedCall(program.run, program)}, refs, (x.aval,)), 0))


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


def _scattered(x: array, plan: Plan, new: array, mode: str) -> array:
    """x with `new` at places given by index arrays, and within slices of the other axes."""
    if 0 in x.aval.shape:
        return wrap(x._ref)
    new, axes, indices = _scattering(x, plan, new)
    return emit(ops["scatter"], (x, new, *of_one_dtype(indices)), {"axes": axes, "mode": mode})


def _scattering(x: array, plan: Plan, new: array) -> Scattered:
    """What a scatter into x takes: the updates, axes, and an index array for each of these."""
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
    for a, d in enumerate(x.aval.shape):
        if a in indices or extents[a] == d:
            continue
        if plan.stride[a] == 1:  # a window that starts at the slice's start
            indices[a] = filled(lead, plan.start[a], counting(d))
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
    return new, tuple(indices), list(indices.values())


def _only_mask(x: array, index: Any) -> tuple[array, int] | None:
    """The mask and its first axis, where full slices are all else that the index consists of."""
    entries = list(index) if type(index) is tuple else [index]
    full = builtins.slice(None)
    masks = [i for i, e in enumerate(entries) if not (e is Ellipsis or (type(e) is builtins.slice and e == full))]
    if len(masks) != 1 or len(entries) > 2 + x.ndim:
        return None
    (place,) = masks
    mask = entries[place]
    if isinstance(mask, (list, np.ndarray)) and not _list_of_bools(mask):
        return None
    if isinstance(mask, (bool, np.bool_, list, np.ndarray)):
        mask = from_host(np.asarray(mask, np.bool_))
    if not isinstance(mask, array) or mask.dtype is not dtypes.bool_:
        return None
    dots = [i for i, e in enumerate(entries) if e is Ellipsis]
    used = len(entries) - 1 - len(dots) + mask.ndim
    if len(dots) > 1 or (used > x.ndim and not (place == 0 and mask.ndim)):
        return None
    axis = place if not dots or dots[0] > place else x.ndim - mask.ndim - (len(entries) - 1 - place)
    if used > x.ndim or mask.shape != x.shape[axis : axis + mask.ndim]:
        where = f" from axis {axis} on" if axis else ""
        raise IndexShapeError(at_user_line(f"smelt: a mask of shape {mask.shape} for an array {x.aval}{where}"))
    return mask, axis


def _list_of_bools(values: Any) -> bool:
    if isinstance(values, np.ndarray):
        return values.dtype == np.bool_
    try:
        return bool(values) and not holds_array(values) and np.asarray(values).dtype == np.bool_
    except ValueError:  # ragged, or without end: what takes them as integers says so
        return False


def _masked_update(x: array, mask: array, axis: int, value: array, mode: str) -> array:
    """Where the mask of axes from `axis` on holds. A value for each True element is dealt out in row-major order."""
    shape, last = x.aval.shape, axis + mask.ndim
    lead, rest = shape[:axis], shape[last:]
    have = value.aval.shape
    while len(have) > len(rest) and have[0] == 1:
        have = have[1:]
    value = to_shape(value, have)
    before = len(have) - len(rest) - 1  # axes of the value for those of x before the mask
    if before < 0 or have[before] == 1:
        if before >= 0:
            value = to_shape(value, (*have[:before], *[1] * mask.ndim, *have[before + 1 :]))
        new = broadcast_to_shape(fitted(value, (*lead, *[1] * mask.ndim, *rest)), shape)
    else:
        if before > axis:
            message = f"a value of shape {value.shape} does not fit into x[mask] of shape {_listed(lead, rest)}"
            raise ShapeError(at_user_line(f"smelt: {message}"))
        count = have[before]
        value = fitted(value, (*lead, count, *rest))
        if not state.compiling:
            wanted = int(np.count_nonzero(mask._host()))
            if wanted != count:
                raise ShapeError(
                    at_user_line(f"smelt: a value of shape {value.shape} for {wanted} elements where the mask is True")
                )
        if not count or not x.size:
            return wrap(x._ref)
        flat = convert(to_shape(mask, (mask.size,)), counting(mask.size))
        place = emit(ops["cumsum"], (flat,), {"axis": 0, "reverse": False, "inclusive": False})
        place = for_gather(place, count - 1)
        dealt = emit(ops["gather"], (value, place), {"axes": (axis,), "slice_sizes": (*lead, 1, *rest)})
        n = len(shape) - mask.ndim + 2  # the mask's elements, the axes before, one element, the axes behind
        new = to_shape(permuted(dealt, (*range(1, axis + 1), 0, *range(axis + 1, n))), shape)
    there = broadcast_to_shape(to_shape(mask, (*mask.shape, *[1] * len(rest))), shape)
    return select(there, _combined(x, new, mode), x)


def _listed(lead: tuple[int, ...], rest: tuple[int, ...]) -> str:
    return "(" + ", ".join([*map(str, lead), "n", *map(str, rest)]) + ")"
