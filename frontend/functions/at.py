"""``x.at[index]``: updates that return a new array, and what happens to indices that are out of range."""

from __future__ import annotations

import builtins
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from smelt.ir import dtypes
from smelt.ir.dtypes import DType
from smelt.ir.errors import DTypeError, IndexOutOfRangeError, at_user_line
from smelt.ir.keywords import explain_methods
from smelt.ir.op import registry as ops

from ..lazy.arguments import word
from ..lazy.arrays import ArrayLike, array, broadcast_to_shape, convert, emit_elementwise, from_host, wrap
from ..lazy.movement import filled, select, to_shape
from ..lazy.signatures import Index
from .indexing import entries_of, index_entry, mask_of, plan_of, read, wrapped_once
from .known_indices import check_index
from .updating import updated, value_for

__all__: list[str] = []

_MODES = ("drop", "fill", "clip", "promise_in_bounds")


def _within(x: array, index: Any, mode: str) -> tuple[Any, list[array], bool]:
    """The index with integers out of range treated by `mode`, and for "fill" which entries of index arrays are in
    range; and whether one of them indexes an axis without elements."""
    entries = list(index) if type(index) is tuple else [index]
    entries = [e if e is None or e is Ellipsis or type(e) is builtins.slice else index_entry(x, e) for e in entries]
    axes = [_axes(e) for e in entries]
    found: list[array] = []
    is_empty, axis = False, 0
    for position, (e, count) in enumerate(zip(entries, axes)):
        if e is Ellipsis:
            axis += max(x.ndim - sum(axes), 0)
        elif isinstance(e, (int, np.ndarray, array)) and axis < x.ndim:
            entries[position], inside = _entry_within(e, x.aval.shape[axis], mode)
            is_empty = is_empty or not x.aval.shape[axis]
            found += [] if inside is None else [inside]
        elif (mask := mask_of(e)) is not None:
            entries[position] = mask
        axis += count
    return tuple(entries), found, is_empty


def _axes(e: Any) -> int:
    """How many axes an entry of an index takes."""
    if e is None or e is Ellipsis:
        return 0
    mask = mask_of(e)
    return 1 if mask is None else mask.ndim if hasattr(mask, "ndim") else 0


def _entry_within(e: Any, extent: int, mode: str) -> tuple[Any, array | None]:
    if isinstance(e, int):
        if -extent <= e < extent:
            return e, None
        if mode == "clip":
            return (0 if e < 0 else max(extent - 1, 0)), None
        e = np.asarray(-extent - 1 if e < 0 else extent)
    if isinstance(e, np.ndarray):
        if e.dtype.kind == "u":
            e = np.minimum(e.astype(np.uint64), np.uint64(extent))
        e = np.clip(e.astype(np.int64), -extent - 1, extent)
        e = from_host(e.astype(np.int32 if extent < 2**31 - 1 else np.int64))
    if e.dtype.kind == "u":
        if e.dtype.holds(extent):
            e = emit_elementwise(ops["minimum"], e, filled(e.shape, extent, e.dtype))
        e = convert(e, dtypes.int32 if e.dtype.size < 4 else dtypes.int64)
    if mode == "drop":
        return e, None
    e = wrapped_once(e, extent)
    low, high = filled(e.shape, 0, e.dtype), filled(e.shape, max(extent - 1, 0), e.dtype)
    inside = None
    if mode == "fill":
        above = emit_elementwise(ops["greater_equal"], e, low)
        inside = emit_elementwise(ops["logical_and"], above, emit_elementwise(ops["less_equal"], e, high))
    return emit_elementwise(ops["maximum"], emit_elementwise(ops["minimum"], e, high), low), inside


def _fill(dtype: DType) -> Any:
    """What stands for elements that are not there."""
    if dtype.is_inexact:
        return math.nan
    if dtype is dtypes.bool_:
        return True
    limits = np.iinfo(dtype.numpy)
    return int(limits.min if dtype.kind == "i" else limits.max)


class ArrayAt:
    """``x.at``: updates that return a new array, in which all updates of a place count.

    Each takes `mode`, which says what becomes of integers in the index that are out of range, wherever they come from:
    "drop" or "fill": nothing is written there, and `get` reads `fill_value`; "clip": they stand for the nearest
    element; "promise_in_bounds": there are none. By default it is as in ``x[index]``.

    >>> import smelt
    >>> smelt.zeros(3).at[smelt.array([0, 0, 2])].add(1)
    array([2, 0, 1], dtype=float32)
    >>> smelt.zeros(3).at[[0, 7]].set(5, mode="drop")
    array([5, 0, 0], dtype=float32)
    """

    __slots__ = ("_array", "_index")

    def __init__(self, x: array, index: tuple[Index] | None = None):
        self._array, self._index = wrap(x._ref), index

    def __getitem__(self, index: Index) -> ArrayAt:
        return ArrayAt(self._array, (entries_of(index),))

    def _place(self, mode: str | None) -> Any:
        if self._index is None:
            raise IndexOutOfRangeError(at_user_line("smelt: x.at needs an index: x.at[index].add(value)"))
        index: Any = self._index[0]
        if mode is None:
            check_index(self._array, index)
        if mode is None or word("array.at", "mode", mode, *_MODES) == "promise_in_bounds":
            return index
        return _within(self._array, index, "drop" if mode == "fill" else mode)[0]

    def _update(self, value: ArrayLike, combine: str, mode: str | None) -> array:
        return updated(self._array, self._place(mode), value, combine)

    def get(self, *, mode: str | None = None, fill_value: bool | int | float | complex | None = None) -> array:
        """``x[index]``. With `fill_value` the mode is "fill".

        Args:
            fill_value: what is read where there is no element; by default NaN, the least signed or the greatest
                unsigned integer, True.

        >>> import smelt
        >>> smelt.array([1.0, 2.0]).at[[0, 5]].get(mode="fill")
        array([1, nan], dtype=float32)
        """
        if mode is None and fill_value is not None:
            mode = "fill"
        x, index = self._array, self._place(mode and "promise_in_bounds")
        if mode is None or word("array.at", "mode", mode, *_MODES) == "promise_in_bounds":
            return read(x, plan_of(x, index))
        index, inside, is_empty = _within(x, index, "clip" if mode == "clip" else "fill")
        plan = plan_of(x, index)
        if not inside:
            return read(x, plan)
        missing = filled(plan.shape, _fill(x.dtype) if fill_value is None else fill_value, x.dtype)
        if is_empty or plan.lead is None:
            return missing
        there = broadcast_to_shape(inside[0], plan.lead)
        for other in inside[1:]:
            there = emit_elementwise(ops["logical_and"], there, broadcast_to_shape(other, plan.lead))
        behind = len(plan.rest) - plan.place
        there = to_shape(there, (*[1] * plan.place, *plan.lead, *[1] * behind))
        return select(broadcast_to_shape(there, plan.shape), read(x, plan), missing)

    def set(self, value: ArrayLike, *, mode: str | None = None) -> array:
        """The array with `value` at the index.

        `mode`: see `ArrayAt`.
        """
        return self._update(value, "set", mode)

    def apply(self, function: Callable[[array], ArrayLike], *, mode: str | None = None) -> array:
        """The array with what `function` makes of its elements at the index, all at once.

        `mode`: see `ArrayAt`.
        """
        return self.set(function(self.get(mode=mode)), mode=mode)

    def add(self, value: ArrayLike, *, mode: str | None = None) -> array:
        """The array with `value` added at the index.

        `mode`: see `ArrayAt`.
        """
        return self._update(value, "add", mode)

    def subtract(self, value: ArrayLike, *, mode: str | None = None) -> array:
        """The array with `value` subtracted at the index.

        `mode`: see `ArrayAt`.
        """
        x = self._array
        return self._update(emit_elementwise(ops["neg"], _numeric(x, value, "subtract")), "add", mode)

    def multiply(self, value: ArrayLike, *, mode: str | None = None) -> array:
        """The array multiplied by `value` at the index.

        `mode`: see `ArrayAt`.
        """
        return self._update(value, "mul", mode)

    def divide(self, value: ArrayLike, *, mode: str | None = None) -> array:
        """The array divided by `value` at the index, which needs floating-point numbers.

        `mode`: see `ArrayAt`.

        Raises:
            DTypeError: an array of integers or bools.
        """
        x = self._array
        if not x.dtype.is_inexact:
            raise DTypeError(at_user_line(f"smelt: x.at[...].divide needs floating-point numbers, x is {x.aval}"))
        divisor = updated(filled(x.shape, 1, x.dtype), self._place(mode) if self._index else (), value, "mul")
        return emit_elementwise(ops["div"], x, divisor)

    def maximum(self, value: ArrayLike, *, mode: str | None = None) -> array:
        """The array with the larger of its elements and `value` at the index.

        `mode`: see `ArrayAt`.
        """
        return self._update(value, "max", mode)

    def minimum(self, value: ArrayLike, *, mode: str | None = None) -> array:
        """The array with the smaller of its elements and `value` at the index.

        `mode`: see `ArrayAt`.
        """
        return self._update(value, "min", mode)


def _numeric(x: array, value: ArrayLike, name: str) -> array:
    if x.dtype is dtypes.bool_:
        raise DTypeError(at_user_line(f"smelt: x.at[...].{name} needs numbers, x is {x.aval}"))
    return value_for(x, value)


explain_methods(ArrayAt)
