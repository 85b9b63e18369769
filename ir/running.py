"""Running sums, products and extrema of arrays of NumPy's, which goes along rows one by one: a loop of the core, where
there is one, goes along several."""

from __future__ import annotations

import math

import numpy as np

from .host_loops import loops
from .host_memory import contiguous, empty

#: Functions of which `running.c` has loops, and types, by their characters, with what it calls them.
RUNNING: dict[np.ufunc, int] = {np.add: 0, np.multiply: 1, np.minimum: 2, np.maximum: 3}
KINDS = {"i": 0, "f": 2, "d": 3, **{c: 0 if np.dtype(c).itemsize == 4 else 1 for c in "lq"}}
#: In what sums and products are kept: each step would round them.
TOTALS = {"f": np.dtype(np.float64), "F": np.dtype(np.complex128)}
#: Elements from which on that is called.
LEAST = 512
#: Rows that a loop goes along together; and elements from which on NumPy is as quick along a row of integers, whose
#: numbers do not wait for each other.
TOGETHER, LONG = 8, 128


def running(ufunc: np.ufunc, x: np.ndarray, axis: int) -> np.ndarray:
    """``ufunc.accumulate(x, axis)`` in the dtype of x; sums and products with `TOTALS`, rounded once each."""
    kind = KINDS.get(x.dtype.char)
    if kind is None or loops.running is None or x.size < LEAST or not x.dtype.isnative or _suits_numpy(ufunc, x, axis):
        total = TOTALS.get(x.dtype.char, x.dtype) if ufunc in (np.add, np.multiply) else x.dtype
        found: np.ndarray = ufunc.accumulate(x, axis, dtype=total.type)
        return found.astype(x.dtype.type, copy=False)
    x = contiguous(x)
    out = empty(x.shape, x.dtype)
    loops.running(x, out, RUNNING[ufunc], kind, x.shape[axis], math.prod(x.shape[axis + 1 :]))
    return out


def _suits_numpy(ufunc: np.ufunc, x: np.ndarray, axis: int) -> bool:
    if x.dtype.kind != "i" or x.shape[axis] < LONG or x.strides[axis] != x.itemsize:
        return False
    return ufunc is np.add or (ufunc is np.multiply and x.size < TOGETHER * x.shape[axis])
