"""Eigenvalues, singular values and what is made of them, by LAPACK.

Where eigenvalues or singular values are equal but for rounding, no single vectors belong to them: the derivatives of
vectors leave out how those turn into each other, so what does not depend on their choice is right.

Derivatives: Giles (2008) for eigh and svd; Golub and Pereyra, "The differentiation of pseudo-inverses" (1973).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import dtypes
from ..aval import Aval
from ..dtypes import DType
from ..kinds import Library
from ..locks import unforked
from ..op import Bool, Float, Operand, Tangents, Values, only
from .matrices import (
    columns,
    diagonal,
    field,
    inverse_differences,
    lower,
    matmul,
    of_finite,
    rows,
    transposed,
)

if TYPE_CHECKING:
    from ..builder import Builder, Value

Property = tuple[str, np.ndarray, np.ndarray]


def _symmetric(a: np.ndarray) -> np.ndarray:
    return np.tril(a) + np.swapaxes(np.tril(a, -1), -1, -2)


def _spread(rng: np.random.Generator, a: Aval) -> np.ndarray:
    """Random matrices whose eigenvalues and singular values are far from each other, and from zero."""
    m, n = a.shape[-2:]
    values = np.diag(np.arange(1.0, max(m, n) + 1))[:m, :n]
    return (0.3 * field(rng, a) + values).astype(a.dtype.numpy)


def _ordered(rng: np.random.Generator, a: Aval) -> np.ndarray:
    """Random matrices of whose eigenvalues small changes do not change the order, which is as LAPACK finds them."""
    n = a.shape[-1]
    values = np.diag(10 * np.arange(1.0, n + 1)) + np.diag(np.full(max(n - 1, 0), 4.0), -1)[:n, :n]
    return (0.1 * field(rng, a) + values).astype(a.dtype.numpy)


class Eigh(Library, name="eigh"):
    """Eigenvalues, in ascending order, and orthonormal eigenvectors of symmetric matrices: A·V = V·diag(w).

    The lower triangle alone is read; the derivative is that of the lower triangle.

    ``%0:2 = "smelt.eigh"(%a) : (tensor<3x3xf32>) -> (tensor<3xf32>, tensor<3x3xf32>)``
    """

    a: Operand
    core = "(n,n)->(n),(n,n)"

    @unforked
    def host(self, a: np.ndarray) -> tuple[np.ndarray, ...]:
        return of_finite(lambda a: tuple(np.linalg.eigh(a)), a)

    def properties(self, operands: Sequence[np.ndarray], results: Sequence[np.ndarray]) -> Iterator[Property]:
        (a,), (w, v) = operands, results
        square = np.swapaxes(v, -1, -2) @ v
        yield "Vᵀ·V = 1", square, np.broadcast_to(np.eye(v.shape[-1]), square.shape)
        yield "A·V = V·diag(w)", _symmetric(a) @ v, v * w[..., None, :]
        yield "the eigenvalues ascend", w, np.sort(w, -1)

    def sample(self, rng: np.random.Generator, a: Aval, **_: Any) -> Sequence[np.ndarray]:
        return [_spread(rng, a)]

    def jvp(self, b: Builder, primals: Values, tangents: Tangents, results: Values) -> Tangents:
        """With M = Vᵀ Ȧ V: ẇ is its diagonal, and V̇ = V·(M[i, j] / (w[j] - w[i]))."""
        (w, v), t = results, only(tangents)
        change = lower(b, t) + transposed(b, lower(b, t, below=1))
        turned = matmul(b, transposed(b, v), matmul(b, change, v))
        return [diagonal(b, turned), matmul(b, v, inverse_differences(b, w) * turned)]


class Eigvalsh(Library, name="eigvalsh"):
    """Eigenvalues of symmetric matrices, in ascending order; the lower triangle alone is read.

    ``%0 = "smelt.eigvalsh"(%a) : (tensor<3x3xf32>) -> tensor<3xf32>``
    """

    a: Operand
    core = "(n,n)->(n)"

    @unforked
    def host(self, a: np.ndarray) -> np.ndarray:
        return of_finite(np.linalg.eigvalsh, a)

    @unforked
    def reference(self, a: np.ndarray) -> np.ndarray:
        """As eigenvalues of a matrix of any kind."""
        return of_finite(lambda a: np.sort(np.linalg.eigvals(_symmetric(a)).real, -1).astype(a.dtype), a)

    def sample(self, rng: np.random.Generator, a: Aval, **_: Any) -> Sequence[np.ndarray]:
        return [_spread(rng, a)]

    def jvp(self, b: Builder, primals: Values, tangents: Tangents, results: Values) -> Tangents:
        """The diagonal of Vᵀ Ȧ V."""
        (a,), t = primals, only(tangents)
        _, v = b.eigh(a)
        change = lower(b, t) + transposed(b, lower(b, t, below=1))
        return [b.reduce_sum(v * matmul(b, change, v), axes=(a.ndim - 2,))]


class Svd(Library, name="svd"):
    """Singular values, in descending order, and vectors: A = U·diag(s)·Vᵀ. The last result is Vᵀ.

    U has k = min(m, n) columns and Vᵀ as many rows; if `full`, both are square, and the vectors that A does not
    determine are moved by the derivative as little as possible.

    ``%0:3 = "smelt.svd"(%a) {full = false} : (tensor<4x3xf32>) -> (tensor<4x3xf32>, tensor<3xf32>, tensor<3x3xf32>)``
    """

    a: Operand
    full: Bool = False
    core = "(m,n)->(m,p),(k),(q,n)"

    def extents(self, dims: dict[str, int], *, full: Bool) -> dict[str, int]:
        m, n = dims["m"], dims["n"]
        k = min(m, n)
        return {"k": k, "p": m if full else k, "q": n if full else k}

    @unforked
    def host(self, a: np.ndarray, *, full: Bool) -> tuple[np.ndarray, ...]:
        return of_finite(lambda a: tuple(np.linalg.svd(a, full_matrices=full)), a)

    def properties(
        self, operands: Sequence[np.ndarray], results: Sequence[np.ndarray], *, full: Bool
    ) -> Iterator[Property]:
        (a,), (u, s, vt) = operands, results
        k = s.shape[-1]
        for name, square in (("Uᵀ·U = 1", np.swapaxes(u, -1, -2) @ u), ("Vᵀ·V = 1", vt @ np.swapaxes(vt, -1, -2))):
            yield name, square, np.broadcast_to(np.eye(square.shape[-1]), square.shape)
        yield "U·diag(s)·Vᵀ = A", (u[..., :k] * s[..., None, :]) @ vt[..., :k, :], a
        yield "the singular values descend", s, np.sort(np.abs(s), -1)[..., ::-1]

    def sample(self, rng: np.random.Generator, a: Aval, **_: Any) -> Sequence[np.ndarray]:
        return [_spread(rng, a)]

    def jvp(self, b: Builder, primals: Values, tangents: Tangents, results: Values, *, full: Bool) -> Tangents:
        """With P = Uᵀ Ȧ V: ṡ is its diagonal, and U̇ and V̇ by Giles, section 3.2."""
        t, (u_all, s, vt_all) = only(tangents), results
        m, n, k = t.shape[-2], t.shape[-1], s.shape[-1]
        u, vt = columns(b, u_all, 0, k), rows(b, vt_all, 0, k)
        ut, v = transposed(b, u), transposed(b, vt)
        left, right = matmul(b, ut, t), matmul(b, t, v)  # Uᵀ Ȧ, Ȧ V
        p = matmul(b, left, v)
        q = transposed(b, p)
        across = b.broadcast_to(b.reshape_to(s, (*s.shape[:-1], 1, k)), p.shape)
        down = b.broadcast_to(b.reshape_to(s, (*s.shape, 1)), p.shape)
        total = down + across
        zero = b.equal(total, b.zeros_like(total))
        inverse = inverse_differences(b, s) / b.select(zero, b.full(p.shape, 1, s.dtype), total)
        du = matmul(b, u, inverse * (p * across + down * q))
        dv = matmul(b, v, inverse * (down * p + q * across))
        if m > k:
            du = du + (right - matmul(b, u, p)) * _reciprocal(b, s, right.shape)
        if n > k:
            moved = transposed(b, left)
            dv = dv + (moved - matmul(b, v, q)) * _reciprocal(b, s, moved.shape)
        if full:
            du, dv = _completed(b, u_all, u, du), _completed(b, transposed(b, vt_all), v, dv)
        return [du, diagonal(b, p), transposed(b, dv)]


def _reciprocal(b: Builder, s: Value, shape: tuple[int, ...]) -> Value:
    """1 / s for each column of matrices, and zero for zeros."""
    s = b.broadcast_to(b.reshape_to(s, (*s.shape[:-1], 1, s.shape[-1])), shape)
    zero, one = b.equal(s, b.zeros_like(s)), b.full(shape, 1, s.dtype)
    return b.select(zero, b.zeros_like(s), one / b.select(zero, one, s))


def _completed(b: Builder, whole: Value, first: Value, change: Value) -> Value:
    """The change of an orthogonal matrix, given that of its first columns: that of the others lies in these."""
    m, k = first.shape[-2:]
    if m == k:
        return change
    others = columns(b, whole, k, m)
    moved = -matmul(b, first, matmul(b, transposed(b, change), others))
    return b.concatenate(change, moved, axis=change.ndim - 1)


class SingularValues(Library, name="singular_values"):
    """Singular values of matrices, in descending order.

    ``%0 = "smelt.singular_values"(%a) : (tensor<4x3xf32>) -> tensor<3xf32>``
    """

    a: Operand
    core = "(m,n)->(k)"

    def extents(self, dims: dict[str, int]) -> dict[str, int]:
        return {"k": min(dims["m"], dims["n"])}

    @unforked
    def host(self, a: np.ndarray) -> np.ndarray:
        return of_finite(lambda a: np.linalg.svd(a, compute_uv=False), a)

    @unforked
    def reference(self, a: np.ndarray) -> np.ndarray:
        """The largest eigenvalues of [[0, A], [Aᵀ, 0]] (Jordan and Wielandt)."""
        m, n = a.shape[-2:]
        block = np.zeros((*a.shape[:-2], m + n, m + n), a.dtype)
        block[..., m:, :m] = np.swapaxes(a, -1, -2)
        values = of_finite(lambda a: np.linalg.eigvalsh(a), block)[..., ::-1]
        return np.maximum(values[..., : min(m, n)], 0)

    def sample(self, rng: np.random.Generator, a: Aval, **_: Any) -> Sequence[np.ndarray]:
        return [_spread(rng, a)]

    def jvp(self, b: Builder, primals: Values, tangents: Tangents, results: Values) -> Tangents:
        """The diagonal of Uᵀ Ȧ V."""
        (a,), t = primals, only(tangents)
        u, _, vt = b.svd(a, full=False)
        return [b.reduce_sum(matmul(b, transposed(b, u), t) * vt, axes=(a.ndim - 1,))]


class Pinv(Library, name="pinv"):
    """The pseudoinverse of matrices, where singular values up to `rtol` times the largest one count as zero.

    The derivative is that among matrices of the same rank.

    ``%0 = "smelt.pinv"(%a) {rtol = 1.0e-6 : f64} : (tensor<4x3xf32>) -> tensor<3x4xf32>``
    """

    a: Operand
    rtol: Float
    core = "(m,n)->(n,m)"

    @unforked
    def host(self, a: np.ndarray, *, rtol: Float) -> np.ndarray:
        return of_finite(lambda a: np.linalg.pinv(a, np.asarray(rtol, a.dtype)), a)

    def properties(
        self, operands: Sequence[np.ndarray], results: Sequence[np.ndarray], *, rtol: Float
    ) -> Iterator[Property]:
        """Those of Moore and Penrose."""
        (a,), (x,) = operands, results
        yield "A·X·A = A", a @ x @ a, a
        yield "X·A·X = X", x @ a @ x, x
        for name, square in (("A·X is symmetric", a @ x), ("X·A is symmetric", x @ a)):
            yield name, square, np.swapaxes(square, -1, -2)

    def sample(self, rng: np.random.Generator, a: Aval, **_: Any) -> Sequence[np.ndarray]:
        return [_spread(rng, a)]

    def jvp(self, b: Builder, primals: Values, tangents: Tangents, results: Values, *, rtol: Float) -> Tangents:
        """-X Ȧ X + X Xᵀ Ȧᵀ (1 - A·X) + (1 - X·A) Ȧᵀ Xᵀ X."""
        (a,), (x,), t = primals, results, only(tangents)
        xt, tt = transposed(b, x), transposed(b, t)
        found = -matmul(b, matmul(b, x, t), x)
        left = matmul(b, matmul(b, x, xt), tt)
        right = matmul(b, matmul(b, tt, xt), x)
        found = found + left - matmul(b, matmul(b, left, a), x)
        return [found + right - matmul(b, x, matmul(b, a, right))]


class Eig(Library, name="eig"):
    """Eigenvalues and eigenvectors of square matrices of any kind: A·V = V·diag(w), all of them complex.

    Vectors have the length 1, and their largest element is real. Derivatives need eigenvalues that are not repeated.

    ``%0:2 = "smelt.eig"(%a) : (tensor<3x3xf32>) -> (tensor<3xcomplex<f32>>, tensor<3x3xcomplex<f32>>)``
    """

    a: Operand
    core = "(n,n)->(n),(n,n)"
    accepts = (dtypes.float32, dtypes.complex64)

    def result_dtypes(self, operand: DType) -> Sequence[DType]:
        return [dtypes.complex64, dtypes.complex64]

    @unforked
    def host(self, a: np.ndarray) -> tuple[np.ndarray, ...]:
        return of_finite(lambda a: tuple(x.astype(np.complex64) for x in np.linalg.eig(a)), a)

    def properties(self, operands: Sequence[np.ndarray], results: Sequence[np.ndarray]) -> Iterator[Property]:
        (a,), (w, v) = operands, results
        yield "A·V = V·diag(w)", a @ v, v * w[..., None, :]
        yield "vectors have the length 1", np.linalg.norm(v, axis=-2), np.ones(w.shape)

    def sample(self, rng: np.random.Generator, a: Aval, **_: Any) -> Sequence[np.ndarray]:
        return [_ordered(rng, a)]

    def jvp(self, b: Builder, primals: Values, tangents: Tangents, results: Values) -> Tangents:
        """With M = V⁻¹ Ȧ V: ẇ is its diagonal, V̇ = V·(M[i, j] / (w[j] - w[i])) but for what keeps the vectors' form."""
        t, (w, v) = b.convert_to(only(tangents), dtypes.complex64), results
        turned = b.solve(v, matmul(b, t, v))
        if not w.shape[-1]:
            return [diagonal(b, turned), turned]
        moved = matmul(b, v, inverse_differences(b, w) * turned)
        down = v.ndim - 2
        real, imag = b.real(v), b.imag(v)
        size = real * real + imag * imag
        at = b.argmax(size, axis=down)
        place = b.iota(shape=v.shape, axis=down, dtype=at.dtype)
        largest = b.convert_to(b.equal(place, _across(b, at, v.shape)), dtypes.float32)
        longer = b.reduce_sum(real * b.real(moved) + imag * b.imag(moved), axes=(down,))
        turn = b.reduce_sum(largest * b.imag(moved), axes=(down,)) / b.reduce_sum(largest * real, axes=(down,))
        return [diagonal(b, turned), moved - v * _across(b, b.complex(longer, turn), v.shape)]


def _across(b: Builder, x: Value, shape: tuple[int, ...]) -> Value:
    """A number for each column of matrices."""
    return b.broadcast_to(b.reshape_to(x, (*x.shape[:-1], 1, x.shape[-1])), shape)


class Eigvals(Library, name="eigvals"):
    """Eigenvalues of square matrices of any kind, all of them complex.

    ``%0 = "smelt.eigvals"(%a) : (tensor<3x3xf32>) -> tensor<3xcomplex<f32>>``
    """

    a: Operand
    core = "(n,n)->(n)"
    accepts = (dtypes.float32, dtypes.complex64)

    def result_dtypes(self, operand: DType) -> Sequence[DType]:
        return [dtypes.complex64]

    @unforked
    def host(self, a: np.ndarray) -> np.ndarray:
        return of_finite(lambda a: np.linalg.eigvals(a).astype(np.complex64), a)

    def properties(self, operands: Sequence[np.ndarray], results: Sequence[np.ndarray]) -> Iterator[Property]:
        """By Newton's identities, the sums of their first two powers say most of them."""
        (a,), (w,) = operands, results
        yield "their sum is the trace", w.sum(-1), np.trace(a, axis1=-2, axis2=-1)
        yield "that of their squares, too", (w * w).sum(-1), np.trace(a @ a, axis1=-2, axis2=-1)

    def sample(self, rng: np.random.Generator, a: Aval, **_: Any) -> Sequence[np.ndarray]:
        return [_ordered(rng, a)]

    def jvp(self, b: Builder, primals: Values, tangents: Tangents, results: Values) -> Tangents:
        """The diagonal of V⁻¹ Ȧ V."""
        _, v = b.eig(primals[0])
        return [diagonal(b, b.solve(v, matmul(b, b.convert_to(only(tangents), dtypes.complex64), v)))]
