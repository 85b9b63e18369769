"""Factors of batches of small matrices by smelt's own loops in C (`frontend/lazy/small_matrices.c`).

LAPACK takes one matrix after the other, and for eight rows most of its time is calls. The loops take sixteen matrices
at a time, each in its own place of a vector. Functions return None where LAPACK is to do it: for larger or few
matrices, other numbers, and where a matrix has no such factor, so that the error is LAPACK's.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from .host_memory import empty

#: Rows of the largest matrices that are taken.
MOST = 16
#: Matrices from which on it pays.
FEW = 4
_CHOLESKY, _SOLVE, _EIGH = range(3)

_loops: list[Callable[..., bool]] = []


def use_loop(loop: Callable[..., bool]) -> None:
    """Have batches factored by a function like `small_matrices` of `small_matrices.c`."""
    _loops[:] = [loop]


def _fits(a: np.ndarray, few: int = FEW) -> bool:
    n = a.shape[-1]
    return bool(_loops) and a.dtype.char in "fd" and 0 < n <= MOST and math.prod(a.shape[:-2]) >= few


def _run(what: int, k: int, a: np.ndarray, b: np.ndarray, out: np.ndarray, more: np.ndarray) -> bool:
    return _loops[0](what, a.dtype.char == "d", a.shape[-1], k, np.ascontiguousarray(a), b, out, more)


def cholesky(a: np.ndarray) -> np.ndarray | None:
    """Lower triangular factors."""
    if not _fits(a):
        return None
    out = empty(a.shape, a.dtype)
    return out if _run(_CHOLESKY, 1, a, out[:0], out, out[:0].copy()) else None


def inv(a: np.ndarray) -> np.ndarray | None:
    """Inverses."""
    if not _fits(a):
        return None
    out = empty(a.shape, a.dtype)
    return out if _run(_SOLVE, a.shape[-1], a, out[:0], out, out[:0].copy()) else None


def solve(a: np.ndarray, b: np.ndarray) -> np.ndarray | None:
    """x with a·x = b, whose batch axes are the same."""
    if not _fits(a) or a.shape[:-2] != b.shape[:-2] or not 0 < b.shape[-1] <= MOST or a.dtype != b.dtype:
        return None
    out = empty(b.shape, b.dtype)
    return out if _run(_SOLVE, b.shape[-1], a, np.ascontiguousarray(b), out, out[:0].copy()) else None


def eigh(a: np.ndarray) -> tuple[np.ndarray, np.ndarray] | None:
    """Eigenvalues and eigenvectors of the lower triangles; of one matrix too: LAPACK's vectors may point elsewhere."""
    if not _fits(a, few=1):
        return None
    values, vectors = empty(a.shape[:-1], a.dtype), empty(a.shape, a.dtype)
    return (values, vectors) if _run(_EIGH, 1, a, vectors[:0], values, vectors) else None
