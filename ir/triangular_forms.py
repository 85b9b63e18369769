"""Functions of square matrices by their Schur form A = U·T·Uᴴ, whose T is upper triangular; all in complex128.

Sources: Björck and Hammarling, "A Schur method for the square root of a matrix" (1983); Higham, "Functions of
Matrices" (2008), chapters 6 and 11; Bartels and Stewart, "Solution of the matrix equation AX + XB = C" (1972).
"""

from __future__ import annotations

import numpy as np

from . import lapack
from .errors import LibraryError

#: Up to which distance from 1, and with how many nodes, log(1 + x) = ∫ x / (1 + t·x) dt is exact to float64 by the
#: quadrature of Gauss and Legendre.
NEAR, NODES = 0.25, 7
#: No matrix needs more square roots to come near to 1: the largest numbers are 2¹⁰²⁴.
MOST_ROOTS = 64
#: Steps for one eigenvalue; two or three are usual.
MOST_STEPS = 300


def schur(a: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """T and U of one finite matrix."""
    a = a.astype(np.complex128)
    found = lapack.schur(a)
    return _iterated(a) if found is None else found


def schur_forms(a: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """T and U of each finite matrix in the dtype that it has: T of a real one has blocks of two rows on its diagonal,
    for eigenvalues that are conjugates of each other."""
    t, u = np.empty_like(a), np.empty_like(a)
    for at in np.ndindex(a.shape[:-2]):
        t[at], u[at] = lapack.schur(a[at]) or _deflated(a[at])
    return t, u


def _deflated(a: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """By an eigenvector after the other, of a real matrix also by two at once: for libraries that have nothing else."""
    is_complex, n, at = a.dtype.kind == "c", len(a), 0
    t = a.astype(np.complex128 if is_complex else np.float64)
    u = np.eye(n, dtype=t.dtype)
    while at < n:
        values, vectors = np.linalg.eig(t[at:, at:])
        first = vectors[:, :1]
        if not is_complex:
            first = first.real if values[0].imag == 0 else np.hstack([first.real, first.imag])
        q, _ = np.linalg.qr(first, mode="complete")
        t[at:] = q.conj().T @ t[at:]
        t[:, at:], u[:, at:] = t[:, at:] @ q, u[:, at:] @ q
        below, at = at, at + first.shape[1]
        t[at:, below:at] = 0
    return t.astype(a.dtype), u.astype(a.dtype)


def _iterated(a: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The QR algorithm with Wilkinson's shifts: for libraries that have no other."""
    t, u = a.copy(), np.eye(len(a), dtype=a.dtype)
    end, steps, eps = len(a), 0, np.finfo(a.dtype).eps
    while end > 1:
        below = np.abs(np.diagonal(t, -1)[: end - 1])
        small = below <= eps * (np.abs(np.diagonal(t)[: end - 1]) + np.abs(np.diagonal(t)[1:end]))
        # A row of the block that is split off is zero left of its diagonal, not only beside it.
        last = np.abs(t[end - 1, : end - 1]).max() <= eps * max(np.abs(t[:end, :end]).max(), np.finfo(float).tiny)
        if last and small[-1]:
            t[end - 1, : end - 1] = 0
            end, steps = end - 1, 0
            continue
        if steps == MOST_STEPS:
            raise LibraryError("eigenvalues were not found")
        steps += 1
        shift = _shift(t[end - 2 : end, end - 2 : end]) if steps % 11 else below[-1] + t[end - 1, end - 1]
        q, r = np.linalg.qr(t[:end, :end] - shift * np.eye(end))
        t[:end, :end] = r @ q + shift * np.eye(end)
        t[:end, end:] = q.conj().T @ t[:end, end:]
        u[:, :end] = u[:, :end] @ q
    return np.triu(t), u


def _shift(block: np.ndarray) -> complex:
    """The eigenvalue of a 2 × 2 matrix that is nearer to its last element."""
    values = np.linalg.eigvals(block)
    return complex(values[np.argmin(np.abs(values - block[1, 1]))])


def root(t: np.ndarray) -> np.ndarray:
    """The principal square root of an upper triangular matrix; NaN or infinities where there is none."""
    n, out = len(t), np.zeros_like(t)
    diagonal = np.sqrt(np.diagonal(t))
    for j in range(n):
        out[j, j] = diagonal[j]
        for i in range(j - 1, -1, -1):
            rest = t[i, j] - out[i, i + 1 : j] @ out[i + 1 : j, j]
            # Where both eigenvalues are zero a rest of zero leaves the element free.
            out[i, j] = rest / (diagonal[i] + diagonal[j]) if rest else 0
    return out


def logarithm(t: np.ndarray) -> np.ndarray:
    """The principal logarithm of an upper triangular matrix: by square roots, until a quadrature converges."""
    one, near, roots = np.eye(len(t)), t, 0
    while np.abs(near - one).sum(0).max(initial=0) > NEAR and roots < MOST_ROOTS:
        near, roots = root(near), roots + 1
    if not np.isfinite(near).all():
        return near
    found = np.triu(integral_of_logarithm(near - one, NODES)) * 2.0**roots
    np.fill_diagonal(found, np.log(np.diagonal(t)))  # without the cancellation of near - 1
    return found


def integral_of_logarithm(change: np.ndarray, count: int) -> np.ndarray:
    """log(1 + X) = ∫ X·(1 + t·X)⁻¹ dt over [0, 1], by so many nodes."""
    one, found = np.eye(change.shape[-1]), np.zeros_like(change)
    for x, weight in zip(*np.polynomial.legendre.leggauss(count)):
        found += weight / 2 * np.linalg.solve(one + (x + 1) / 2 * change, change)
    return found


def sylvester(a: np.ndarray, b: np.ndarray, q: np.ndarray) -> np.ndarray:
    """X with A·X + X·B = Q; NaN or infinities where there is none."""
    (s, u), (t, v) = schur(a), schur(b)
    right = u.conj().T @ q @ v
    found, one = np.zeros_like(right), np.eye(len(a))
    for k in range(len(b)):
        rest = right[:, k] - found[:, :k] @ t[:k, k]
        found[:, k] = _substituted(s + t[k, k] * one, rest)
    return u @ found @ v.conj().T


def _substituted(t: np.ndarray, x: np.ndarray) -> np.ndarray:
    """The solution of an upper triangular system, from below."""
    out = x.copy()
    for i in range(len(t) - 1, -1, -1):
        out[i] /= t[i, i]
        out[:i] -= t[:i, i] * out[i]
    return out
