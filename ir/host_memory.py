"""Memory of arrays that libraries on the host fill: fresh pages cost as much as a transform or small factorizations."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .host_loops import loops

#: Bytes from which on a copy of what lies in another order is a call of the core.
LEAST = 1 << 13

_make: list[Callable[[tuple[int, ...], np.dtype[Any]], np.ndarray]] = [np.empty]


def use_memory(make: Callable[[tuple[int, ...], np.dtype[Any]], np.ndarray]) -> None:
    """Have arrays made by a function like ``numpy.empty``, which gives memory that was used before."""
    _make[0] = make


def empty(shape: Sequence[int], dtype: Any) -> np.ndarray:
    """An uninitialized array.

    Raises:
        MemoryError: there is no memory for it.
    """
    return _make[0](tuple(shape), np.dtype(dtype))


def contiguous(x: np.ndarray) -> np.ndarray:
    """``np.ascontiguousarray`` that leaves arrays without axes as they are, and is quick for turned and reversed axes.

    Raises:
        MemoryError: there is no memory for it.

    >>> contiguous(np.arange(6).reshape(2, 3).T).ravel()
    array([0, 3, 1, 4, 2, 5])
    """
    if x.flags.c_contiguous:
        return x
    if loops.arrange is None or x.nbytes < LEAST or _lies_in_rows(x):
        return np.ascontiguousarray(x)
    found = empty(x.shape, x.dtype)
    arrange(x, found)
    return found


def arrange(x: np.ndarray, out: np.ndarray) -> None:
    """Copy an array of turned or reversed axes to one that lies row by row elsewhere."""
    if loops.arrange is None:
        np.copyto(out, x)
    else:
        loops.arrange(*[a.view(np.uint16) if a.dtype.kind == "V" else a for a in (x, out)])  # no buffer is of bfloat16


def _lies_in_rows(x: np.ndarray) -> bool:
    """Whether elements beside each other in the result lie next to each other in memory, too, in the same order."""
    step = x.strides[-1]
    return step >= 0 and all(abs(s) >= step for s, n in zip(x.strides, x.shape) if n > 1 and s)
