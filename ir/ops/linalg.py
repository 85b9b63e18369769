"""Linear algebra by LAPACK: factorizations and solutions of matrices on the last two axes.

Derivatives: Giles, "Collected matrix derivative results for forward and reverse mode algorithmic
differentiation" (2008); Murray, "Differentiation of the Cholesky decomposition" (2016); Walter and
Lehmann, "Algorithmic differentiation of linear algebra functions" (2012), for QR. The rules are
forward mode; reverse mode is their transpose.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import lapack, small_matrices
from ..aval import Aval, broadcast_shapes
from ..errors import LibraryError
from ..kinds import silent
from ..library import Library
from ..locks import unforked
from ..op import Bool, Cotangents, Flags, Operand, Tangents, Values, only
from .matrices import (
    FIELDS,
    adjoint,
    adjoint_of,
    columns,
    field,
    hermitian,
    lower,
    matmul,
    one_by_one,
    transposed,
    upper_part,
    where_place,
    which,
)

if TYPE_CHECKING:
    from ..builder import Builder

#: Rows of a triangular matrix that are solved for together: by elimination, of n³ steps, while the rest is n².
BLOCK = 64


class SolveTriangular(Library, name="solve_triangular"):
    """x with A·x = b for a triangular matrix A: lower, or `upper`. The other triangle is not looked at.

    ``%0 = "smelt.solve_triangular"(%a, %b) {upper = false} : (tensor<3x3xf32>, tensor<3x2xf32>) -> tensor<3x2xf32>``
    """

    a: Operand
    b: Operand
    upper: Bool = False
    core = "(n,n),(n,k)->(n,k)"
    accepts = FIELDS
    linearity = "each"
    linear_operands = (1,)

    @unforked
    def host(self, a: np.ndarray, b: np.ndarray, *, upper: Bool) -> np.ndarray:
        _require_no_zeros(a)
        found = small_matrices.solve_triangular(a, b, upper)
        if found is None:
            found = lapack.solve_triangular(a, b, upper)
        if found is not None:
            return found
        n = a.shape[-1]
        x = np.empty((*broadcast_shapes(a.shape[:-2], b.shape[:-2]), *b.shape[-2:]), b.dtype)
        starts = range(0, n, BLOCK)
        for start in reversed(starts) if upper else starts:  # products of matrices, but for the diagonal
            rows = slice(start, min(start + BLOCK, n))
            known = slice(rows.stop, n) if upper else slice(0, start)
            rest = b[..., rows, :] - a[..., rows, known] @ x[..., known, :]
            x[..., rows, :] = _substituted(a[..., rows, rows], rest, upper)
        return x

    def on_addresses(self, a: Aval, b: Aval, *, upper: Bool) -> lapack.OnAddresses | None:
        return lapack.solving_triangular(a, b, upper)

    @silent
    def reference(self, a: np.ndarray, b: np.ndarray, *, upper: Bool) -> np.ndarray:
        """Substitution, row by row."""
        _require_no_zeros(a)
        n = a.shape[-1]
        x = np.zeros((*broadcast_shapes(a.shape[:-2], b.shape[:-2]), *b.shape[-2:]), b.dtype)
        for i in reversed(range(n)) if upper else range(n):
            known = slice(i + 1, n) if upper else slice(0, i)
            rest = b[..., i, :] - np.einsum("...j,...jk->...k", a[..., i, known], x[..., known, :])
            x[..., i, :] = rest / a[..., i, i, None]
        return x

    def sample(self, rng: np.random.Generator, a: Aval, b: Aval, **_: Any) -> Sequence[np.ndarray]:
        n = a.shape[-1]
        matrix = field(rng, a) / 2 + np.eye(n) * rng.choice([-2.0, 2.0], (*a.shape[:-1], 1))
        return matrix.astype(a.dtype.numpy), field(rng, b)

    def jvp(self, b: Builder, primals: Values, tangents: Tangents, results: Values, *, upper: Bool) -> Tangents:
        """ẋ = A⁻¹ (ḃ - Ȧ·x), with the triangle of Ȧ."""
        (a, _), (ta, tb), (x,) = primals, tangents, results
        right = None if tb is None else b.broadcast_to(tb, x.shape)
        if ta is not None:
            moved = matmul(b, upper_part(b, ta) if upper else lower(b, ta), x)
            right = -moved if right is None else right - moved
        return [None if right is None else b.solve_triangular(a, right, upper=upper)]

    def transpose(
        self, b: Builder, cotangents: Cotangents, operands: Values, linear: Flags, *, upper: Bool
    ) -> Cotangents:
        a, right = operands
        found = b.solve_triangular(transposed(b, a), only(cotangents), upper=not upper)
        return [None, b.sum_to(found, right.shape)]


class Cholesky(Library, name="cholesky"):
    """Lower triangular L with L·Lᵀ = A for a symmetric positive definite A, whose lower triangle alone is read.

    Of complex numbers L·Lᴴ = A, and A is Hermitian.

    The derivative is that of the lower triangle; a matrix with NaN or infinities has some in its factor.

    ``%0 = "smelt.cholesky"(%a) : (tensor<3x3xf32>) -> tensor<3x3xf32>``
    """

    a: Operand
    core = "(n,n)->(n,n)"
    accepts = FIELDS

    @unforked
    def host(self, a: np.ndarray) -> np.ndarray:
        found = small_matrices.cholesky(a)
        if found is None:
            found = lapack.cholesky(a)
        if found is not None:
            return found
        try:
            return np.linalg.cholesky(a)
        except np.linalg.LinAlgError:  # of some matrix; and one LAPACK raises for NaN, another does not
            return one_by_one(np.linalg.cholesky, "is not positive definite", np.tril(a))

    def on_addresses(self, a: Aval) -> lapack.OnAddresses | None:
        return lapack.factoring(a)

    @silent
    def reference(self, a: np.ndarray) -> np.ndarray:
        """Column by column: L[j,j]² = A[j,j] - Σₖ L[j,k]², and what is below follows from L[j,j]."""
        found, finite = np.zeros_like(a), np.isfinite(np.tril(a)).all((-1, -2))
        for j in range(a.shape[-1]):
            row = found[..., j, :j]
            pivot = a[..., j, j].real - (row * row.conj()).real.sum(-1)
            bad = finite & (pivot <= 0)
            if np.any(bad):
                raise LibraryError(f"{which(bad)} is not positive definite")
            below = a[..., j:, j] - np.einsum("...ik,...k->...i", found[..., j:, :j], row.conj())
            root = np.sqrt(pivot)
            found[..., j:, j] = below / root[..., None]
            found[..., j, j] = root
        return found

    def sample(self, rng: np.random.Generator, a: Aval, **_: Any) -> Sequence[np.ndarray]:
        x = field(rng, a)
        return [(x @ adjoint_of(x) + np.eye(a.shape[-1])).astype(a.dtype.numpy)]

    def jvp(self, b: Builder, primals: Values, tangents: Tangents, results: Values) -> Tangents:
        """L̇ = L·Φ(L⁻¹ Ȧ L⁻ᴴ), where Φ takes the lower triangle and half of the diagonal (Murray, eq. 8)."""
        (factor,), t = results, only(tangents)
        half = b.solve_triangular(factor, hermitian(b, t))
        whole = b.solve_triangular(factor, adjoint(b, half))
        return [matmul(b, factor, (lower(b, whole) + lower(b, whole, below=1)) * 0.5)]


class Qr(Library, name="qr"):
    """A = Q·R with orthonormal columns of Q (m × k) and R upper triangular (k × n), k = min(m, n).

    The derivative needs the first k columns of A to be linearly independent.

    ``%0:2 = "smelt.qr"(%a) : (tensor<4x3xf32>) -> (tensor<4x3xf32>, tensor<3x3xf32>)``
    """

    primitive = "QRF"
    a: Operand
    core = "(m,n)->(m,k),(k,n)"
    accepts = FIELDS
    shared_seconds = 3e-8

    def extents(self, dims: dict[str, int]) -> dict[str, int]:
        return {"k": min(dims["m"], dims["n"])}

    @silent
    @unforked
    def host(self, a: np.ndarray) -> tuple[np.ndarray, ...]:
        found = small_matrices.qr(a)
        if found is None:
            found = lapack.qr(a)
        return tuple(np.linalg.qr(a)) if found is None else found

    def properties(
        self, operands: Sequence[np.ndarray], results: Sequence[np.ndarray]
    ) -> Iterator[tuple[str, np.ndarray, np.ndarray]]:
        (a,), (q, r) = operands, results
        square = adjoint_of(q) @ q
        yield "Qᴴ·Q = 1", square, np.broadcast_to(np.eye(q.shape[-1]), square.shape)
        yield "Q·R = A", q @ r, a
        yield "R is upper triangular", r, np.triu(r)
        pivots = np.diagonal(r, axis1=-2, axis2=-1)
        yield "the diagonal of R is real", pivots, pivots.real

    def sample(self, rng: np.random.Generator, a: Aval, **_: Any) -> Sequence[np.ndarray]:
        m, n = a.shape[-2:]
        return [(field(rng, a) + 2 * np.eye(m, n)).astype(a.dtype.numpy)]

    def jvp(self, b: Builder, primals: Values, tangents: Tangents, results: Values) -> Tangents:
        """With B = Qᴴ Ȧ R⁻¹ and its lower triangle W: Q̇ = Ȧ R⁻¹ - Q·(B - W + Wᴴ) and Ṙ = (B - W + Wᴴ)·R.

        The diagonal of R is real, so of that of B the imaginary part turns Q alone. Of a wide matrix that is said of
        its first m columns, and the others of R are Qᴴ A.
        """
        (a,), t, (q, r) = primals, only(tangents), results
        m, n = a.shape[-2:]
        first = columns(b, r, 0, m) if m < n else r
        moved = columns(b, t, 0, m) if m < n else t
        solved = transposed(b, b.solve_triangular(transposed(b, first), transposed(b, moved)))  # Ȧ R⁻¹
        across = adjoint(b, q)
        turned = matmul(b, across, solved)
        below = lower(b, turned, below=1)
        upper = turned - below + adjoint(b, below)
        if a.dtype.is_complex:
            turn = b.complex(b.zeros_like(b.imag(turned)), b.imag(turned))
            upper = upper - where_place(b, turn, lambda row, column: b.equal(row, column))
        dq = solved - matmul(b, q, upper)
        dr = matmul(b, upper, first)
        if m < n:
            rest = matmul(b, adjoint(b, dq), columns(b, a, m, n))
            dr = b.concatenate(dr, rest + matmul(b, across, columns(b, t, m, n)), axis=a.ndim - 1)
        return [dq, dr]


def _require_no_zeros(a: np.ndarray) -> None:
    """A triangular matrix is singular where its diagonal has a zero."""
    diagonals = a.diagonal(0, -2, -1)
    if not diagonals.all():
        zeros = np.any(diagonals == 0, axis=-1)
        raise LibraryError(f"{which(zeros)} is singular: its diagonal has a zero")


def _substituted(a: np.ndarray, b: np.ndarray, upper: bool) -> np.ndarray:
    """x with a·x = b for a triangular matrix.

    Elimination of an upper triangular matrix exchanges no rows and subtracts nothing: what is left of `solve` is the
    substitution. A lower one is an upper one read backwards.
    """
    back = slice(None, None, 1 if upper else -1)
    a, b = np.triu(a[..., back, back]), b[..., back, :]
    try:
        found = np.linalg.solve(a, b)
    except np.linalg.LinAlgError:
        found = one_by_one(np.linalg.solve, "is singular", a, b)
    return found[..., back, :]
