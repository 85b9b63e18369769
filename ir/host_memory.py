"""Memory of arrays that libraries on the host fill: fresh pages cost as much as a transform or small factorizations."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

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
