"""Arrays of half precision on the host: in float32, where NumPy converts each element by itself, and computes with it.

What NumPy and ml_dtypes compute of half precision they compute in float32, and round once: so do these, to their bits.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from . import dtypes
from .host_loops import loops
from .host_memory import contiguous, empty

#: Elements from which on a conversion is a call of the core.
LEAST = 512


def is_half(dtype: np.dtype[Any]) -> bool:
    """Whether it is float16 or bfloat16."""
    return dtype.itemsize == 2 and dtypes.of(dtype).is_float


def convert(x: np.ndarray, dtype: np.dtype[Any]) -> np.ndarray:
    """``x.astype(dtype)``, which is quick between half precision and float32.

    >>> convert(np.array([1.5, 1e-8, 2.0]), np.dtype(np.float16))
    array([1.5, 0. , 2. ], dtype=float16)
    """
    wide, half = (x.dtype, dtype) if x.dtype.itemsize == 4 else (dtype, x.dtype)
    run = loops.convert_halves
    if run is None or x.size < LEAST or wide != np.float32 or not is_half(half) or not half.isnative:
        return x.astype(dtype)
    repeats = [step == 0 and n > 1 for step, n in zip(x.strides, x.shape)]
    if any(repeats):  # elements that are repeated are converted once
        once = x[tuple(slice(1 if again else None) for again in repeats)]
        return np.broadcast_to(convert(once, dtype), x.shape)
    found, is_brain = empty(x.shape, dtype), half != np.float16
    x = contiguous(x)
    given, made = [a.view(np.uint16) if is_brain and a.dtype.itemsize == 2 else a for a in (x, found)]
    run(given, made, is_brain)
    return found


def widened(x: np.ndarray) -> np.ndarray:
    """Half precision in float32; other arrays as they are."""
    return convert(x, np.dtype(np.float32)) if is_half(x.dtype) else x


def rounded(x: np.ndarray, dtype: np.dtype[Any]) -> np.ndarray:
    """An array in a dtype, itself where it has that."""
    return x if x.dtype == dtype else convert(x, dtype)


def in_float32(function: Callable[..., Any], *xs: np.ndarray) -> np.ndarray:
    """`function` of arrays, in float32 where they are of half precision, rounded to their dtype."""
    return rounded(np.asarray(function(*map(widened, xs))), xs[0].dtype)


def by_float32(ufunc: Callable[..., Any], *xs: np.ndarray) -> np.ndarray:
    """A function of NumPy of arrays of half precision, whose result is of their dtype or a truth value."""
    if max(x.size for x in xs) < LEAST:
        return ufunc(*xs)  # type: ignore[no-any-return]
    found = np.asarray(ufunc(*map(widened, xs)))
    return found if found.dtype == np.bool_ else convert(found, xs[0].dtype)
