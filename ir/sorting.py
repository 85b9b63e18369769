"""Sorting and ordering lines of an array by NumPy, in blocks that stay in the caches, whatever axis they lie along."""

from __future__ import annotations

import functools
import math
import time
from collections.abc import Callable, Iterator

import numpy as np

from . import dtypes
from .host_loops import loops
from .host_threads import share

#: What sorting takes, about, for each element.
SECONDS = 2e-8
#: Elements of a block, where lines are not longer, and the bytes of its columns that lie beside each other, at least.
BLOCK, LINE_BYTES = 1 << 16, 64
#: Elements of columns that are turned at a time.
TOGETHER = 32
#: Shorter rows are compared: each digit of 8 bits has a table of 256 counts. NumPy sorts in vectors, which on some
#: processors takes less up to here, on others up to a sixteenth of it; so do positions of shorter rows, of numbers of
#: so many bytes.
LONG, _LONG_ORDER = 1 << 14, {2: 1024, 4: 512, 8: 128}
#: Positions in rows of numbers of 8 bytes, of so many elements, are found by comparing each with all, in vectors.
_SHORT_ORDER = range(6, 129)
#: Rows of so few elements are sorted many at a time, each step of a network comparing two columns of them; of so few
#: integers with positions in them; and how many rows are worth a call of NumPy's for each step.
NETWORK, _NETWORK_ORDER, FEWEST = 12, 6, 1024
#: Shorter rows of 8 bits, and of 16, are compared: counting goes over all values that there are.
COUNTED_BYTES, COUNTED_PAIRS = 64, 512
#: Elements of arrays that NumPy sorts, or orders, in less time than it takes to look how that is best done.
SMALL, SMALL_ORDER = 2048, 1024


def sorted_along(x: np.ndarray, axis: int) -> np.ndarray:
    """Elements in ascending order, NaN last, equal zeros in their order."""
    # Two zeros may differ, and NumPy does not keep their order.
    if _is_small(x, SMALL) and (x.dtype.kind != "f" or np.count_nonzero(x) >= x.size - 1):
        return np.sort(x, axis)
    return _by_blocks(x, axis, x.dtype, _sorted_halves if _is_half(x.dtype) else _sorted)


def order_along(x: np.ndarray, axis: int) -> np.ndarray:
    """The indices that sort them, equal elements in their order."""
    if _is_small(x, SMALL_ORDER):
        return np.argsort(x, axis, "stable").astype(np.uint32)
    return _by_blocks(x, axis, np.dtype(np.uint32), _order)


def _is_small(x: np.ndarray, most: int) -> bool:
    return 0 < x.size <= most and not _is_half(x.dtype)


def _by_blocks(
    x: np.ndarray, axis: int, dtype: np.dtype, of_rows: Callable[[np.ndarray], np.ndarray]
) -> np.ndarray:  # fmt: skip
    """``of_rows(rows)``, an array of the same shape, of all lines along an axis."""
    length, behind = x.shape[axis], math.prod(x.shape[axis + 1 :])
    if not x.size:
        return np.empty(x.shape, dtype)
    if behind == 1 and x.size <= BLOCK:
        return of_rows(x.reshape(-1, length)).reshape(x.shape)
    lines = np.ascontiguousarray(x).reshape(-1, length, behind)
    found = np.empty(lines.shape, dtype)
    blocks = list(_blocks(lines.shape, x.dtype.itemsize))

    def run(part: slice) -> None:
        for block in blocks[part]:
            rows = _turned(lines[block])
            found[block] = of_rows(rows.reshape(-1, length)).reshape(rows.shape).swapaxes(1, 2)

    share(len(blocks), x.size * SECONDS, run)
    return found.reshape(x.shape)


def _blocks(shape: tuple[int, ...], itemsize: int) -> Iterator[tuple[slice, slice, slice]]:
    """Some planes each, or some columns of a plane."""
    planes, length, columns = shape
    together = max(1, BLOCK // (length * columns))
    width = min(columns, max(LINE_BYTES // itemsize, BLOCK // length))
    for plane in range(0, planes, together):
        for column in range(0, columns, width):
            yield slice(plane, plane + together), slice(None), slice(column, column + width)


def _turned(planes: np.ndarray) -> np.ndarray:
    """Columns as rows, some elements of all columns at a time: NumPy would walk each column for itself."""
    count, length, columns = planes.shape
    if columns == 1:
        return planes.swapaxes(1, 2)
    found = np.empty((count, columns, length), planes.dtype)
    step = 1 if length <= TOGETHER else max(TOGETHER, 4096 // columns)
    for first in range(0, length, step):
        found[:, :, first : first + step] = planes[:, first : first + step].swapaxes(1, 2)
    return found


def _is_half(dtype: np.dtype) -> bool:
    """Whether elements are floats of 16 bits, which NumPy compares one by one, or not at all."""
    return dtype == np.float16 or dtype == dtypes.bfloat16.numpy


@functools.cache
def _compares_pairs() -> bool:
    """Whether NumPy sorts integers of 16 bits in vectors, which takes less than to count them."""
    core = getattr(getattr(np, "_core", None), "_multiarray_umath", None)
    return bool(getattr(core, "__cpu_features__", {}).get("AVX512_ICL"))


def _is_counted(rows: np.ndarray) -> bool:
    """Whether NumPy is to sort by counting, as it does integers of few bits where asked for a stable order."""
    if rows.dtype.kind not in "biu" or rows.dtype.itemsize > 2:
        return False
    if rows.dtype.itemsize == 1:
        return rows.shape[-1] >= COUNTED_BYTES
    return rows.shape[-1] >= COUNTED_PAIRS and not _compares_pairs()


@functools.cache
def _network(n: int) -> list[tuple[int, int]]:
    """Places to compare, one pair after the other: Batcher's odd-even merges."""
    pairs, p = [], 1
    while p < n:
        k = p
        while k:
            for j in range(k % p, n - k, 2 * k):
                for i in range(j, min(j + k, n - k)):
                    if i // (2 * p) == (i + k) // (2 * p):
                        pairs.append((i, i + k))
            k //= 2
        p *= 2
    return pairs


def _is_short(rows: np.ndarray, most: int) -> bool:
    return rows.shape[-1] <= most and rows.dtype.kind in "biuf" and len(rows) >= FEWEST


def _by_network(rows: np.ndarray) -> np.ndarray:
    """Sorted short rows; of zeros that differ any may come first, and NaN are one."""
    count, n = rows.shape
    columns = [*np.array(rows.T, order="C")]  # of our own: rows that lie as columns are the operand's memory
    # A minimum with NaN is NaN: others stand in their place, and they go where the largest are.
    unordered = np.isnan(columns) if rows.dtype.kind == "f" else None
    if unordered is not None and unordered.any():
        columns = [*np.where(unordered, np.inf, columns).astype(rows.dtype)]
    else:
        unordered = None
    spare = np.empty(count, rows.dtype)
    for i, j in _network(n):
        low, high = columns[i], columns[j]
        np.minimum(low, high, out=spare)
        np.maximum(low, high, out=high)
        columns[i], spare = spare, low
    found = np.empty(rows.shape, rows.dtype)
    for i, column in enumerate(columns):
        found[:, i] = column
    if unordered is not None:
        found[np.arange(n) >= n - unordered.sum(0)[:, None]] = np.nan
    return found


def _in_order(rows: np.ndarray) -> np.ndarray:
    """Rows of different integers, sorted; what is given may be overwritten."""
    if _is_short(rows, _NETWORK_ORDER):
        return _by_network(rows)
    rows.sort(-1)
    return rows


def _sorted(rows: np.ndarray) -> np.ndarray:
    found = _by_network(rows) if _is_short(rows, NETWORK) else None
    if found is None and rows.dtype.itemsize == 1 and not _is_counted(rows):  # NumPy's sort has no vectors of bytes
        wide = rows.astype(np.int16)
        wide.sort(-1)
        return wide.astype(rows.dtype)
    if found is None:
        found = _by_digits(rows, False)
    if found is None:
        found = rows.copy()
        found.sort(-1, "stable" if _is_counted(rows) else None)
    if rows.dtype.kind == "f" and _has_both_zeros(rows):
        found[found == 0] = rows[rows == 0]  # those of a row are neighbours, and in the order that they had
    return found


@functools.cache
def _digits_are_quicker() -> bool:
    """Whether rows of some thousand elements take less time by digits than in NumPy's vectors: both are tried."""
    assert loops.radix is not None
    row = np.random.default_rng(0).random((1, LONG // 4), np.float32)
    found = np.empty_like(row)
    digits: list[float] = []
    vectors: list[float] = []
    for _ in range(3):
        start = time.thread_time()
        loops.radix(2, 4, _infinity(row.dtype), row.size, False, row, found)
        middle = time.thread_time()
        row.copy().sort(-1)
        digits.append(middle - start)
        vectors.append(time.thread_time() - middle)
    return min(digits) < min(vectors)


def _infinity(dtype: np.dtype) -> int:
    """The bits of infinity, of floats."""
    return int(np.array(math.inf, dtype).view(f"u{dtype.itemsize}")) if dtype.kind == "f" else 0


def _by_digits(rows: np.ndarray, positions: bool) -> np.ndarray | None:
    """Sorted rows, or the positions of their elements in that order, where the loop in C is to do it: see `radix.c`."""
    sort, (kind, size), n = loops.radix, (rows.dtype.kind, rows.dtype.itemsize), rows.shape[-1]
    if sort is None or kind not in "iuf" or size == 1 or _is_half(rows.dtype):
        return None
    least = _LONG_ORDER[size] if positions else LONG
    if positions and size == 8 and n in _SHORT_ORDER:
        least = n
    if not positions and LONG // 16 <= n < LONG and _digits_are_quicker():
        least = n
    if not least <= n < 1 << 31:
        return None
    found = np.empty(rows.shape, np.uint32 if positions else rows.dtype)
    sort("uif".index(kind), size, _infinity(rows.dtype), n, positions, np.ascontiguousarray(rows), found)
    return found


def _has_both_zeros(x: np.ndarray) -> bool:
    """Whether there are 0 and -0, which are equal and not the same."""
    zeros = x == 0
    signs = np.signbit(x[zeros]) if zeros.any() else zeros[:0]
    return bool(signs.any() and not signs.all())


def _sorted_halves(rows: np.ndarray) -> np.ndarray:
    """Rows of floats of 16 bits."""
    bits = rows.view(np.int16)
    keys = _sorted(_half_keys(bits, rows.dtype))
    keys ^= _below_zero(keys)
    if (bits == np.int16(-0x8000)).any():
        keys[keys & 0x7FFF == 0] = bits[bits & 0x7FFF == 0]
    return keys.view(rows.dtype)


def _half_keys(bits: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """Integers in the order of floats of 16 bits; -0 is just below 0, and all NaN are one."""
    largest = np.array(math.inf, dtype).view(np.int16)
    keys = bits ^ _below_zero(bits)
    unordered = bits & 0x7FFF > largest
    if unordered.any():
        keys[unordered] = np.array(math.nan, dtype).view(np.int16) & 0x7FFF
    return keys


def _below_zero(x: np.ndarray) -> np.ndarray:
    """The bits that turn around the order of numbers below zero."""
    found = x >> 15
    found &= 0x7FFF
    return found


@np.errstate(invalid="ignore")  # of signalling NaNs
def _order(rows: np.ndarray) -> np.ndarray:
    """The indices that sort rows, equal elements in their order.

    Of up to 32 bits an element with its index behind it is an integer of twice as many, and all of these differ: NumPy
    sorts them several times as fast as it finds a stable order, where it does not count.
    """
    if _is_half(rows.dtype):
        bits = rows.view(np.int16)
        return _order(_half_keys(np.where(bits & 0x7FFF == 0, np.int16(0), bits), rows.dtype))
    found = _by_digits(rows, True)
    if found is not None:
        return found
    if _is_counted(rows):
        return np.argsort(rows, -1, "stable").astype(np.uint32)
    if rows.dtype.itemsize <= 2 and rows.dtype.kind in "biu" and rows.shape[-1] <= 1 << 16:
        narrow = rows.astype(np.int32 if rows.dtype.kind == "i" else np.uint32)
        narrow <<= 16
        narrow |= np.arange(rows.shape[-1], dtype=narrow.dtype)
        narrow = _in_order(narrow)
        narrow &= 0xFFFF
        return narrow.view(np.uint32)
    if rows.dtype.itemsize > 4 or rows.dtype.kind not in "bifu" or rows.shape[-1] > 1 << 31:
        return np.argsort(rows, -1, "stable").astype(np.uint32)
    if rows.dtype.kind == "f":
        positive = rows + np.float32(0)  # -0 becomes 0
        keys = positive.view(np.int32)
        keys = np.where(np.isnan(rows), np.int32(0x7FFFFFFF), keys ^ ((keys >> 31) & np.int32(0x7FFFFFFF)))
    elif rows.dtype == np.uint32:
        keys = (rows ^ np.uint32(1 << 31)).view(np.int32)
    else:
        keys = rows
    packed = keys.astype(np.int64) << 32
    packed |= np.arange(rows.shape[-1], dtype=np.int64)
    return _in_order(packed).astype(np.uint32)
