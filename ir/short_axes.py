"""Functions of NumPy on arrays with short rows, with each of which it begins anew.

``p[:, None] - p`` of points of a plane has rows of two elements. Sums, differences, products and quotients of such are
loops of the core; others go column by column: so they begin as often as a row has elements. So do reductions whose
order does not matter; those of many rows of few elements to one go by halves.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from . import dtypes, halves
from .aval import Aval
from .host_loops import loops
from .host_memory import contiguous

#: Elements of a result from which on that is looked at, and of a row at most.
LEAST, MOST = 8192, 4
#: Elements of a row from which on operands that lie in columns are copied.
LEAST_TURNED = 128
#: The same for reductions: elements of the operand, those of a row, and bytes of the columns of many rows.
LEAST_REDUCED, MOST_REDUCED, MOST_BYTES = 2048, 16, 256

#: Numbers, in `short_rows.c`, of functions that have a loop for broadcast rows; rows of a result from which on that is
#: called, and elements of a row at most: longer ones NumPy takes as quickly.
LOOPS: dict[Callable[..., Any], int] = {np.add: 0, np.subtract: 1, np.multiply: 2, np.true_divide: 3}
LEAST_ROWS, MOST_ROW = 128, 256
#: Types of which `row_extrema.c` finds extrema, by their characters, with what it calls them; the most bytes of a row
#: of the last axis; and whether a function gives the largest ones, of numbers and of truth values.
EXTREMA = {"?": 0, "B": 0, "i": 1, "f": 3, "d": 4, **{c: 1 if np.dtype(c).itemsize == 4 else 2 for c in "lq"}}
MOST_LINE = 1 << 12
LARGEST: dict[np.ufunc, bool] = {np.maximum: True, np.minimum: False}
TRUE: dict[np.ufunc, bool] = {np.logical_or: True, np.logical_and: False}

#: Elements of a row of the last axes, at most, of which other axes are reduced first.
MOST_GROUPED = 512

#: Those of a result of shifts by short rows, and of a row at most: see `shift_words` in `elements.c`.
LEAST_SHIFTED, MOST_SHIFTS = 512, 32


def by_columns(ufunc: Callable[..., Any], operands: Sequence[Aval], result: Aval) -> Callable[..., Any]:
    """What to call for `ufunc` on operands and a result of these types, which may have symbols: it gives the bits of
    `ufunc`. Of short rows that goes column by column, of long ones it sees whether operands lie in columns."""
    if len(operands) < 2 or not isinstance(ufunc, np.ufunc) or result.ndim < 2:
        return ufunc
    size, short = result.size, result.shape[-1]
    number = LOOPS.get(ufunc)
    if number is not None and loops.short_rows is not None and result.dtype in (dtypes.float32, dtypes.float64):
        is_long = type(short) is int and not 1 < short <= MOST_ROW
        if not is_long and not (type(size) is int and type(short) is int and size < short * LEAST_ROWS):
            return functools.partial(_by_rows, ufunc, number)
    if (type(size) is int and size < LEAST) or type(short) is not int or short <= 1 or MOST < short < LEAST_TURNED:
        return ufunc
    return functools.partial(_by_columns if short <= MOST else _in_rows, ufunc)


def _in_rows(ufunc: np.ufunc, *operands: np.ndarray) -> np.ndarray:
    """`ufunc` of operands of which some lie in rows, and others in columns: NumPy takes each element of these from
    another line of memory, a copy in order takes many of each."""
    found: np.ndarray
    for x in operands:
        if x.size >= LEAST and not x.flags.c_contiguous:
            break
    else:  # nothing to put in order, as most often
        found = ufunc(*operands)
        return found
    if any(x.flags.c_contiguous for x in operands if x.ndim):
        operands = tuple([contiguous(x) if _is_turned(x) else x for x in operands])
    found = ufunc(*operands)
    return found


def _is_turned(x: np.ndarray) -> bool:
    """Whether an array of many long rows lies in columns, each element of its own."""
    if x.ndim < 2 or x.shape[-1] < LEAST_TURNED or x.size < LEAST:
        return False
    steps = [step for step, n in zip(x.strides, x.shape) if n > 1]
    return steps[-1] > x.itemsize * LEAST_TURNED and x.itemsize in steps and 0 not in steps


def _by_rows(ufunc: np.ufunc, number: int, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    if x.shape != y.shape and x.ndim and y.ndim and x.dtype is y.dtype and loops.short_rows is not None:
        shape = np.broadcast(x, y).shape
        if 1 < shape[-1] <= MOST_ROW and math.prod(shape[:-1]) >= LEAST_ROWS:
            out = np.empty(shape, x.dtype)
            if loops.short_rows(number, x, y, out):
                return out
    return _in_rows(ufunc, x, y)


def _by_columns(ufunc: np.ufunc, *operands: np.ndarray) -> np.ndarray:
    shape = np.broadcast_shapes(*[x.shape for x in operands])
    if math.prod(shape) < LEAST or all(_goes_on(x, shape) for x in operands) or not all(map(_is_in_order, operands)):
        found: np.ndarray = ufunc(*operands)
        return found
    columns = [[x if x.ndim == 0 else x[..., k if x.shape[-1] > 1 else 0] for x in operands] for k in range(shape[-1])]
    first = ufunc(*columns[0])
    out = np.empty(shape, first.dtype)
    out[..., 0] = first
    for k in range(1, shape[-1]):
        ufunc(*columns[k], out=out[..., k])
    return out


def _is_in_order(x: np.ndarray) -> bool:
    """Whether an operand lies in the order of its axes. NumPy lets a result lie as its operands do, and sums of it are
    rounded in the order in which it lies."""
    steps = [step for step, n in zip(x.strides, x.shape) if n > 1 and step]
    return all(step > 0 for step in steps) and steps == sorted(steps, reverse=True)


def _goes_on(x: np.ndarray, shape: tuple[int, ...]) -> bool:
    """Whether rows of an operand follow each other in memory as elements of a row do, so that NumPy takes several as
    one."""
    if x.size == 1:
        return True
    return x.shape[-2:] == shape[-2:] and x.strides[-2] == x.shape[-1] * x.strides[-1]


def shifted(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """``np.right_shift(x, y)``; where each word is shifted by all numbers of one short row, as where packed numbers are
    taken out of words, by a loop over words."""
    found: np.ndarray
    if loops.shift_words is not None and x.size and y.size and x.ndim and y.ndim and x.dtype == y.dtype == np.uint32:
        repeats_words = x.shape[-1] == 1 or not x.strides[-1]
        row = y if y.ndim == 1 else None if any(_moves(y, y.ndim - 1)) else y[(0,) * (y.ndim - 1)]
        if repeats_words and row is not None and 1 < len(row) <= MOST_SHIFTS:
            shape, words = np.broadcast(x, y).shape, x[..., 0]
            if words.shape != shape[:-1]:
                words = np.broadcast_to(words, shape[:-1])
            found = np.empty(shape, np.uint32)
            loops.shift_words(np.ascontiguousarray(words), np.ascontiguousarray(row), found)
            return found
    found = np.right_shift(x, y)
    return found


def _moves(x: np.ndarray, axes: int) -> Iterator[bool]:
    """Whether the elements of an array differ along each of its first axes."""
    return (n > 1 and step != 0 for n, step in zip(x.shape[:axes], x.strides))


def reduced(ufunc: np.ufunc, x: np.ndarray, axes: tuple[int, ...]) -> np.ndarray:
    """``ufunc.reduce(x, axes)`` of a function that takes elements in any order, as extrema do: of two zeros it may give
    the other one."""
    if x.size < LEAST_REDUCED:
        return np.asarray(ufunc.reduce(x, axes))
    if halves.is_half(x.dtype):
        wide: np.ndarray = np.asarray(reduced(ufunc, halves.widened(x), axes))
        return wide if wide.dtype == np.bool_ else halves.rounded(wide, x.dtype)
    if len(groups := groups_of_axes(x, axes)) > 1:
        return by_groups(functools.partial(reduced, ufunc), x, groups)
    if loops.row_extrema is not None:
        found = _row_extrema(ufunc, x, axes)
        if found is not None:
            return found
    first, end = min(axes, default=0), max(axes, default=-1) + 1
    is_plain = x.dtype.kind in "biuf" and x.flags.c_contiguous
    if end - first == len(axes) and is_plain:
        n, columns = math.prod(x.shape[first:end]), math.prod(x.shape[end:])
        if columns == 1 and 1 < n <= MOST_REDUCED:
            return _along(ufunc, x.reshape(*x.shape[:first], *x.shape[end:], n))
        if columns > 1 and n > 1 and columns * x.itemsize <= MOST_BYTES:
            return _down(ufunc, x.reshape(-1, n, columns)).reshape(*x.shape[:first], *x.shape[end:])
    return np.asarray(ufunc.reduce(x, axes))


def groups_of_axes(x: np.ndarray, axes: tuple[int, ...]) -> list[tuple[int, ...]]:
    """Axes as groups of adjacent ones, which NumPy reduces sooner one after the other, from the first on: of axes with
    others between them it goes along the last ones, row by row. All together where such rows are long."""
    ordered = sorted(axes)
    ends = [i for i in range(1, len(ordered)) if ordered[i] != ordered[i - 1] + 1]
    groups = [tuple(ordered[i:j]) for i, j in zip([0, *ends], [*ends, len(ordered)])]
    if len(groups) < 2 or not x.flags.c_contiguous:
        return [axes]
    last = groups[-1]
    return [axes] if last[-1] == x.ndim - 1 and math.prod(x.shape[last[0] :]) > MOST_GROUPED else groups


def by_groups(function: Callable[..., np.ndarray], x: np.ndarray, groups: list[tuple[int, ...]]) -> np.ndarray:
    """``function(x, axes)`` of one group after the other."""
    gone = 0
    for group in groups:
        x = function(x, tuple(a - gone for a in group))
        gone += len(group)
    return x


def _row_extrema(ufunc: np.ufunc, x: np.ndarray, axes: tuple[int, ...]) -> np.ndarray | None:
    """What `ufunc` makes of rows, or of rows before an axis of not too many elements; None without a loop for it."""
    if not x.flags.c_contiguous and x.flags.f_contiguous:
        found = _row_extrema(ufunc, x.T, tuple(x.ndim - 1 - a for a in axes))
        return None if found is None else found.T
    kind, largest = EXTREMA.get(x.dtype.char), (LARGEST | TRUE if x.dtype.char == "?" else LARGEST).get(ufunc)
    first, end = min(axes, default=0), max(axes, default=-1) + 1
    n, columns = math.prod(x.shape[first:end]), math.prod(x.shape[end:])
    fits = n > 1 and 0 < columns * x.itemsize <= MOST_LINE and (columns > 1 or (n > MOST_REDUCED and kind != 0))
    # NumPy has such loops for rows of bytes.
    if not fits or kind is None or end - first != len(axes) or largest is None:
        return None
    if not (x.flags.c_contiguous and x.flags.aligned and x.dtype.isnative):
        return None
    found = np.empty(x.shape[:first] + x.shape[end:], x.dtype)
    loops.row_extrema(x, found, kind, n, columns, largest)  # type: ignore[misc]
    return found


def _along(ufunc: np.ufunc, x: np.ndarray) -> np.ndarray:
    found: np.ndarray = ufunc(x[..., 0], x[..., 1])
    for k in range(2, x.shape[-1]):
        ufunc(found, x[..., k], out=found)
    return found


def _down(ufunc: np.ufunc, x: np.ndarray) -> np.ndarray:
    """The middle axis, halved until one element of it is left."""
    while (n := x.shape[1]) > 1:
        half = n // 2
        found = ufunc(x[:, :half], x[:, half : 2 * half])
        if n % 2:
            ufunc(found[:, 0], x[:, -1], out=found[:, 0])
        x = found
    return x
