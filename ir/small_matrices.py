"""Factors of batches of small matrices by smelt's own loops in C (`native/small_matrices.c`).

LAPACK takes one matrix after the other, and for eight rows most of its time is calls. The loops take several matrices
at a time, each in its own place of a vector. Functions return None where LAPACK is to do it: for larger or few
matrices, other numbers, and where a matrix has no such factor, so that the error is LAPACK's.
"""

from __future__ import annotations

import math

import numpy as np

from .host_loops import loops
from .host_memory import empty

#: Rows of the largest matrices that are taken, for Cholesky's factors, and for exponentials, eigenvalues or singular
#: values: these are by Jacobi's rotations, which take more work.
MOST, MOST_ROOTED, MOST_ROTATED = 32, 64, 16
#: Matrices from which on it pays; one does as well where functions say so, of so many rows at most.
FEW, ALONE = 4, 16
_CHOLESKY, _SOLVE, _LOWER, _UPPER, _EIGH, _DET, _EXPM, _QR, _SVD, _LU = range(10)


def _fits(a: np.ndarray, few: int = FEW, most: int = MOST) -> bool:
    least, largest = min(a.shape[-2:]), max(a.shape[-2:])
    few = few if largest <= ALONE else FEW
    fits = a.dtype.char in "fd" and least > 0 and largest <= most and math.prod(a.shape[:-2]) >= few
    return fits and loops.small_matrices is not None


def _run(what: int, k: int, a: np.ndarray, b: np.ndarray, out: np.ndarray, more: np.ndarray) -> bool:
    run, wide = loops.small_matrices, a.dtype.char == "d"
    assert run is not None
    return run(loops.vector_bytes, what, wide, a.shape[-2], k, np.ascontiguousarray(a), b, out, more)


def cholesky(a: np.ndarray) -> np.ndarray | None:
    """Lower triangular factors."""
    if not _fits(a, most=MOST_ROOTED):
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


def solve_triangular(a: np.ndarray, b: np.ndarray, upper: bool) -> np.ndarray | None:
    """x with a·x = b for triangular matrices without zeros on their diagonals, of one too; batch axes are the same."""
    fits = _fits(a, few=1) and a.shape[:-2] == b.shape[:-2] and 0 < b.shape[-1] <= MOST and a.dtype == b.dtype
    if not fits:
        return None
    out = empty(b.shape, b.dtype)
    what = _UPPER if upper else _LOWER
    return out if _run(what, b.shape[-1], a, np.ascontiguousarray(b), out, out[:0].copy()) else None


def lu(a: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray] | None:
    """LU factors in one matrix, the rows that were exchanged, and their order, of one matrix too."""
    if not _fits(a, few=1):
        return None
    *lead, m, n = a.shape
    most = math.prod(lead) * min(m, n)
    out, places = empty(a.shape, a.dtype), empty((most + math.prod(lead) * m,), a.dtype)
    if not _run(_LU, n, a, out[:0], out, places):
        return None
    rows = places.astype(np.uint32)
    return out, rows[:most].reshape(*lead, min(m, n)), rows[most:].reshape(*lead, m)


def eigh(a: np.ndarray) -> tuple[np.ndarray, np.ndarray] | None:
    """Eigenvalues and eigenvectors of the lower triangles; of one matrix too: LAPACK's vectors may point elsewhere."""
    if not _fits(a, few=1, most=MOST_ROTATED):
        return None
    values, vectors = empty(a.shape[:-1], a.dtype), empty(a.shape, a.dtype)
    return (values, vectors) if _run(_EIGH, 1, a, vectors[:0], values, vectors) else None


def det(a: np.ndarray) -> np.ndarray | None:
    """Determinants; LAPACK's of singular matrices."""
    if not _fits(a):
        return None
    out, none = empty(a.shape[:-2], a.dtype), np.empty(0, a.dtype)
    if not _run(_DET, 1, a, none, out, none.copy()):
        return None
    with np.errstate(all="ignore"):
        if np.isnan(np.vdot(out, out)):
            left = np.isnan(out)
            out[left] = np.linalg.det(a[left])
    return out


def expm(a: np.ndarray, rough: bool) -> np.ndarray | None:
    """Exponentials, of one matrix too; unless they may be `rough` in some last digits, only of matrices that are not
    halved more often than they need, for each squaring loses some. The first number is NaN of those that are left."""
    if not _fits(a, few=1, most=MOST_ROTATED):
        return None
    out = empty(a.shape, a.dtype)
    return out if _run(_EXPM, 1 + rough, a, out[:0], out, out[:0].copy()) else None


def qr(a: np.ndarray) -> tuple[np.ndarray, np.ndarray] | None:
    """Q and R, of one matrix too."""
    if not _fits(a, few=1):
        return None
    *lead, m, n = a.shape
    q, r = empty((*lead, m, min(m, n)), a.dtype), empty((*lead, min(m, n), n), a.dtype)
    return (q, r) if _run(_QR, n, a, q[:0], q, r) else None


def has_svd(a: np.ndarray) -> bool:
    """Whether `svd` is for such matrices."""
    return _fits(a, few=1, most=MOST_ROTATED)


def svd(a: np.ndarray, full: bool) -> tuple[np.ndarray, np.ndarray, np.ndarray] | None:
    """U, singular values and Vᵀ, of one matrix too: LAPACK's, of those not of full rank, may point elsewhere."""
    *lead, m, n = a.shape
    if not has_svd(a) or (full and m != n):
        return None
    if m < n:  # of the transposed matrix
        found = svd(a.swapaxes(-1, -2), full)
        return None if found is None else (found[2].swapaxes(-1, -2), found[1], found[0].swapaxes(-1, -2))
    values, most = empty((*lead, n), a.dtype), math.prod(lead) * m * n
    vectors = empty((math.prod(lead) * (m + n) * n,), a.dtype)
    if not _run(_SVD, n, a, vectors[:0], values, vectors):
        return None
    u, vt = vectors[:most].reshape(a.shape), vectors[most:].reshape(*lead, n, n)
    left = np.isnan(values[..., 0])
    if left.any():
        rest = a[left]
        finite = np.isfinite(rest).all((-1, -2))
        found = np.linalg.svd(np.where(finite[:, None, None], rest, 0), full_matrices=False)
        for whole, part in zip((u, values, vt), found):
            part[~finite] = np.nan
            whole[left] = part
    return u, values, vt
