"""Eigenvalues, singular values and what is made of them, by LAPACK.

Where eigenvalues or singular values are equal but for rounding, no single vectors belong to them: the derivatives of
vectors leave out how those turn into each other, so what does not depend on their choice is right.

Derivatives: Giles (2008) for eigh and svd; Golub and Pereyra, "The differentiation of pseudo-inverses" (1973).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import dtypes, lapack, small_matrices, triangular_forms
from ..aval import Aval
from ..dtypes import DType
from ..kinds import silent
from ..library import Library
from ..locks import unforked
from ..op import Bool, Cotangents, Flags, Float, NotDifferentiable, Operand, Tangents, Values, only
from .matrices import (
    FIELDS,
    adjoint,
    adjoint_of,
    columns,
    conjugated,
    diagonal,
    field,
    hermitian,
    inverse_differences,
    matmul,
    of_finite,
    real_part,
    rows,
    transposed,
)

if TYPE_CHECKING:
    from ..builder import Builder, Value

Property = tuple[str, np.ndarray, np.ndarray]


def _symmetric(a: np.ndarray) -> np.ndarray:
    """Hermitian matrices of which the lower triangle is given."""
    below = np.tril(a, -1)
    with np.errstate(all="ignore"):
        return below + adjoint_of(below) + np.tril(np.triu(a)).real


def _of_lower(function: Callable[[np.ndarray], Any], a: np.ndarray) -> Any:
    """Results of a library that refuses NaN and infinities, for Hermitian matrices of which the lower triangle alone
    counts."""
    return function(a) if np.isfinite(a).all() else of_finite(function, _symmetric(a))


def _phases(v: np.ndarray) -> np.ndarray:
    """By what complex columns are divided so that the largest element of each is real: no choice is left open."""
    m, n = v.shape[-2:]
    if not m:
        return np.ones((*v.shape[:-2], 1, n), v.dtype)
    columns = v.swapaxes(-1, -2).reshape(-1, m)
    largest = columns[np.arange(len(columns)), np.argmax(columns.real * columns.real + columns.imag * columns.imag, 1)]
    size = np.abs(largest)
    if not size.all() or np.isnan(size).any():
        known = size > 0
        largest, size = np.where(known, largest, 1), np.where(known, size, 1)
    found: np.ndarray = (largest / size).astype(v.dtype, copy=False).reshape(*v.shape[:-2], 1, n)
    return found


def _turn(b: Builder, v: Value, moved: Value) -> Value:
    """By how much columns turn that move as `moved` says; subtracted, largest elements stay real (see `_phases`)."""
    down = v.ndim - 2
    real, imag = b.real(v), b.imag(v)
    at = b.argmax(real * real + imag * imag, axis=down)
    place = b.iota(shape=v.shape, axis=down, dtype=at.dtype)
    largest = b.convert_to(b.equal(place, _across(b, at, v.shape)), real.dtype)
    return b.reduce_sum(largest * b.imag(moved), axes=(down,)) / b.reduce_sum(largest * real, axes=(down,))


def _turned_back(b: Builder, v: Value, moved: Value, turn: Value) -> Value:
    return moved - v * _across(b, b.complex(b.zeros_like(turn), turn), v.shape)


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

    The lower triangle alone is read; the derivative is that of the lower triangle. Of complex numbers matrices are
    Hermitian, and the largest element of each vector is real.

    ``%0:2 = "smelt.eigh"(%a) : (tensor<3x3xf32>) -> (tensor<3xf32>, tensor<3x3xf32>)``
    """

    a: Operand
    core = "(n,n)->(n),(n,n)"
    accepts = FIELDS

    def result_dtypes(self, operand: DType) -> Sequence[DType]:
        return [operand.real, operand]

    @unforked
    def host(self, a: np.ndarray) -> tuple[np.ndarray, ...]:
        found = small_matrices.eigh(a)
        if found is not None:
            return found
        w, v = _of_lower(lambda a: lapack.eigh(a) or tuple(np.linalg.eigh(a)), a)
        return w, v / _phases(v) if v.dtype.kind == "c" else v

    def properties(self, operands: Sequence[np.ndarray], results: Sequence[np.ndarray]) -> Iterator[Property]:
        (a,), (w, v) = operands, results
        square = adjoint_of(v) @ v
        yield "Vᴴ·V = 1", square, np.broadcast_to(np.eye(v.shape[-1]), square.shape)
        yield "A·V = V·diag(w)", _symmetric(a) @ v, v * w[..., None, :]
        yield "the eigenvalues ascend", w, np.sort(w, -1)

    def sample(self, rng: np.random.Generator, a: Aval, **_: Any) -> Sequence[np.ndarray]:
        return [_spread(rng, a)]

    def jvp(self, b: Builder, primals: Values, tangents: Tangents, results: Values) -> Tangents:
        """With M = Vᴴ Ȧ V: ẇ is its diagonal, and V̇ = V·(M[i, j] / (w[j] - w[i])), but for what turns vectors."""
        (w, v), t = results, only(tangents)
        turned = matmul(b, adjoint(b, v), matmul(b, hermitian(b, t), v))
        moved = matmul(b, v, b.convert_to(inverse_differences(b, w), v.dtype) * turned)
        if v.dtype.is_complex and v.shape[-1]:
            moved = _turned_back(b, v, moved, _turn(b, v, moved))
        return [diagonal(b, real_part(b, turned)), moved]


class Eigvalsh(Library, name="eigvalsh"):
    """Eigenvalues of symmetric or Hermitian matrices, in ascending order; the lower triangle alone is read.

    ``%0 = "smelt.eigvalsh"(%a) : (tensor<3x3xf32>) -> tensor<3xf32>``
    """

    primitive = "Eigh"
    a: Operand
    core = "(n,n)->(n)"
    accepts = FIELDS

    def result_dtypes(self, operand: DType) -> Sequence[DType]:
        return [operand.real]

    @unforked
    def host(self, a: np.ndarray) -> np.ndarray:
        small = small_matrices.eigh(a)
        if small is not None:
            return small[0]

        def values(a: np.ndarray) -> np.ndarray:
            found = lapack.eigh(a, vectors=False)
            return np.linalg.eigvalsh(a) if found is None else found[0]

        return _of_lower(values, a)

    @unforked
    def reference(self, a: np.ndarray) -> np.ndarray:
        """As eigenvalues of a matrix of any kind."""
        return of_finite(lambda a: np.sort(np.linalg.eigvals(a).real, -1).astype(a.real.dtype), _symmetric(a))

    def sample(self, rng: np.random.Generator, a: Aval, **_: Any) -> Sequence[np.ndarray]:
        return [_spread(rng, a)]

    def jvp(self, b: Builder, primals: Values, tangents: Tangents, results: Values) -> Tangents:
        """The diagonal of Vᴴ Ȧ V."""
        (a,), t = primals, only(tangents)
        _, v = b.eigh(a)
        moved = conjugated(b, v) * matmul(b, hermitian(b, t), v)
        return [b.reduce_sum(real_part(b, moved), axes=(a.ndim - 2,))]


class Svd(Library, name="svd"):
    """Singular values, in descending order, and vectors: A = U·diag(s)·Vᴴ. The last result is Vᴴ.

    U has k = min(m, n) columns and Vᴴ as many rows; if `full`, both are square, and the vectors that A does not
    determine are moved by the derivative as little as possible. Of complex numbers the largest element of each column
    of U, and of the columns of V beyond k, is real.

    ``%0:3 = "smelt.svd"(%a) {full = false} : (tensor<4x3xf32>) -> (tensor<4x3xf32>, tensor<3xf32>, tensor<3x3xf32>)``
    """

    primitive = "SVD"
    a: Operand
    full: Bool = False
    core = "(m,n)->(m,p),(k),(q,n)"
    accepts = FIELDS
    shared_seconds = 1e-7

    def extents(self, dims: dict[str, int], *, full: Bool) -> dict[str, int]:
        m, n = dims["m"], dims["n"]
        k = min(m, n)
        return {"k": k, "p": m if full else k, "q": n if full else k}

    def result_dtypes(self, operand: DType, *, full: Bool) -> Sequence[DType]:
        return [operand, operand.real, operand]

    @unforked
    def host(self, a: np.ndarray, *, full: Bool) -> tuple[np.ndarray, ...]:
        found = small_matrices.svd(a, full)
        if found is not None:
            return found
        u, s, vh = of_finite(lambda a: lapack.svd(a, full) or tuple(np.linalg.svd(a, full_matrices=full)), a)
        if a.dtype.kind == "c":
            k, of_u, of_v = s.shape[-1], _phases(u), _phases(adjoint_of(vh))
            of_v[..., :k] = of_u[..., :k]
            u, vh = u / of_u, vh * np.swapaxes(of_v, -1, -2)
        return u, s, vh

    def properties(
        self, operands: Sequence[np.ndarray], results: Sequence[np.ndarray], *, full: Bool
    ) -> Iterator[Property]:
        (a,), (u, s, vt) = operands, results
        k = s.shape[-1]
        for name, square in (("Uᴴ·U = 1", adjoint_of(u) @ u), ("Vᴴ·V = 1", vt @ adjoint_of(vt))):
            yield name, square, np.broadcast_to(np.eye(square.shape[-1]), square.shape)
        yield "U·diag(s)·Vᴴ = A", (u[..., :k] * s[..., None, :]) @ vt[..., :k, :], a
        yield "the singular values descend", s, np.sort(np.abs(s), -1)[..., ::-1]

    def sample(self, rng: np.random.Generator, a: Aval, **_: Any) -> Sequence[np.ndarray]:
        return [_spread(rng, a)]

    def jvp(self, b: Builder, primals: Values, tangents: Tangents, results: Values, *, full: Bool) -> Tangents:
        """With P = Uᴴ Ȧ V: ṡ is its diagonal, and U̇ and V̇ by Giles, section 3.2, but for what turns both."""
        t, (u_all, s, vt_all) = only(tangents), results
        m, n, k = t.shape[-2], t.shape[-1], s.shape[-1]
        u, vt = columns(b, u_all, 0, k), rows(b, vt_all, 0, k)
        uh, v = adjoint(b, u), adjoint(b, vt)
        left, right = matmul(b, uh, t), matmul(b, t, v)  # Uᴴ Ȧ, Ȧ V
        p = matmul(b, left, v)
        q = adjoint(b, p)
        across = b.broadcast_to(b.reshape_to(s, (*s.shape[:-1], 1, k)), p.shape)
        down = b.broadcast_to(b.reshape_to(s, (*s.shape, 1)), p.shape)
        total = down + across
        zero = b.equal(total, b.zeros_like(total))
        inverse = inverse_differences(b, s) / b.select(zero, b.full(p.shape, 1, s.dtype), total)
        inverse, across, down = (b.convert_to(x, p.dtype) for x in (inverse, across, down))
        du = matmul(b, u, inverse * (p * across + down * q))
        dv = matmul(b, v, inverse * (down * p + q * across))
        if m > k:
            du = du + (right - matmul(b, u, p)) * _reciprocal(b, s, right.shape, t.dtype)
        if n > k:
            moved = adjoint(b, left)
            dv = dv + (moved - matmul(b, v, q)) * _reciprocal(b, s, moved.shape, t.dtype)
        v_all = adjoint(b, vt_all) if full else v
        if t.dtype.is_complex and k:
            turn = b.complex(b.full(s.shape, 0, s.dtype), b.imag(diagonal(b, p)))
            du = du + u * _across(b, turn, u.shape) * _reciprocal(b, s, u.shape, u.dtype)
        if full:
            du, dv = _completed(b, u_all, u, du), _completed(b, v_all, v, dv)
        if t.dtype.is_complex and k:
            of_u = _turn(b, u_all, du)
            of_v = columns(b, of_u, 0, k)
            if v_all.shape[-1] > k:
                others = [columns(b, x, k, v_all.shape[-1]) for x in (v_all, dv)]
                of_v = b.concatenate(of_v, _turn(b, *others), axis=of_v.ndim - 1)
            du, dv = _turned_back(b, u_all, du, of_u), _turned_back(b, v_all, dv, of_v)
        return [du, diagonal(b, real_part(b, p)), adjoint(b, dv)]


def _reciprocal(b: Builder, s: Value, shape: tuple[int, ...], dtype: DType) -> Value:
    """1 / s for each column of matrices, and zero for zeros."""
    s = b.broadcast_to(b.reshape_to(s, (*s.shape[:-1], 1, s.shape[-1])), shape)
    zero, one = b.equal(s, b.zeros_like(s)), b.full(shape, 1, s.dtype)
    return b.convert_to(b.select(zero, b.zeros_like(s), one / b.select(zero, one, s)), dtype)


def _completed(b: Builder, whole: Value, first: Value, change: Value) -> Value:
    """The change of an orthogonal matrix, given that of its first columns: that of the others lies in these."""
    m, k = first.shape[-2:]
    if m == k:
        return change
    others = columns(b, whole, k, m)
    moved = -matmul(b, first, matmul(b, adjoint(b, change), others))
    return b.concatenate(change, moved, axis=change.ndim - 1)


class SingularValues(Library, name="singular_values"):
    """Singular values of matrices, in descending order.

    ``%0 = "smelt.singular_values"(%a) : (tensor<4x3xf32>) -> tensor<3xf32>``
    """

    primitive = "SVD"
    a: Operand
    core = "(m,n)->(k)"
    accepts = FIELDS

    def extents(self, dims: dict[str, int]) -> dict[str, int]:
        return {"k": min(dims["m"], dims["n"])}

    def result_dtypes(self, operand: DType) -> Sequence[DType]:
        return [operand.real]

    @unforked
    def host(self, a: np.ndarray) -> np.ndarray:
        small = small_matrices.svd(a, full=False)
        if small is not None:
            return small[1]

        def values(a: np.ndarray) -> np.ndarray:
            found = lapack.svd(a, full=False, vectors=False)
            return np.linalg.svd(a, compute_uv=False) if found is None else found[1]

        return of_finite(values, a)

    @unforked
    def reference(self, a: np.ndarray) -> np.ndarray:
        """The largest eigenvalues of [[0, A], [Aᴴ, 0]] (Jordan and Wielandt)."""
        m, n = a.shape[-2:]
        block = np.zeros((*a.shape[:-2], m + n, m + n), a.dtype)
        block[..., m:, :m] = adjoint_of(a)
        values = of_finite(lambda a: np.linalg.eigvalsh(a), block)[..., ::-1]
        return np.maximum(values[..., : min(m, n)], 0)

    def sample(self, rng: np.random.Generator, a: Aval, **_: Any) -> Sequence[np.ndarray]:
        return [_spread(rng, a)]

    def jvp(self, b: Builder, primals: Values, tangents: Tangents, results: Values) -> Tangents:
        """The diagonal of Uᴴ Ȧ V."""
        (a,), t = primals, only(tangents)
        u, _, vt = b.svd(a, full=False)
        moved = matmul(b, adjoint(b, u), t) * conjugated(b, vt)
        return [b.reduce_sum(real_part(b, moved), axes=(a.ndim - 1,))]


class Pinv(Library, name="pinv"):
    """The pseudoinverse of matrices, where singular values up to `rtol` times the largest one count as zero.

    The derivative is that among matrices of the same rank.

    ``%0 = "smelt.pinv"(%a) {rtol = 1.0e-6 : f64} : (tensor<4x3xf32>) -> tensor<3x4xf32>``
    """

    a: Operand
    rtol: Float
    core = "(m,n)->(n,m)"
    accepts = FIELDS

    @unforked
    def host(self, a: np.ndarray, *, rtol: Float) -> np.ndarray:
        return of_finite(lambda a: _pseudoinverse(a, rtol), a)

    def properties(
        self, operands: Sequence[np.ndarray], results: Sequence[np.ndarray], *, rtol: Float
    ) -> Iterator[Property]:
        """Those of Moore and Penrose."""
        (a,), (x,) = operands, results
        spectrum = np.linalg.svd(a, compute_uv=False)
        if (spectrum > rtol * spectrum.max(axis=-1, keepdims=True, initial=0)).all():  # else some of A is cut off
            yield "A·X·A = A", a @ x @ a, a
        yield "X·A·X = X", x @ a @ x, x
        for name, square in (("A·X is Hermitian", a @ x), ("X·A is Hermitian", x @ a)):
            yield name, square, adjoint_of(square)

    def sample(self, rng: np.random.Generator, a: Aval, **_: Any) -> Sequence[np.ndarray]:
        return [_spread(rng, a)]

    def jvp(self, b: Builder, primals: Values, tangents: Tangents, results: Values, *, rtol: Float) -> Tangents:
        """-X Ȧ X + X Xᴴ Ȧᴴ (1 - A·X) + (1 - X·A) Ȧᴴ Xᴴ X."""
        (a,), (x,), t = primals, results, only(tangents)
        xt, tt = adjoint(b, x), adjoint(b, t)
        found = -matmul(b, matmul(b, x, t), x)
        left = matmul(b, matmul(b, x, xt), tt)
        right = matmul(b, matmul(b, tt, xt), x)
        found = found + left - matmul(b, matmul(b, left, a), x)
        return [found + right - matmul(b, x, matmul(b, a, right))]


def _pseudoinverse(a: np.ndarray, rtol: float) -> np.ndarray:
    u, s, vh = small_matrices.svd(a, False) or lapack.svd(a, False) or np.linalg.svd(a, full_matrices=False)
    kept = s > rtol * s.max(-1, keepdims=True, initial=0)
    inverse = np.where(kept, 1 / np.where(kept, s, 1), 0).astype(s.dtype)
    return np.matmul(adjoint_of(vh) * inverse[..., None, :], adjoint_of(u))


class LeastSquares(Library, name="least_squares"):
    """X for which A·X - B is smallest, and of these the shortest: the pseudoinverse of A, times B.

    Singular values up to `rtol` times the largest one count as zero. The derivative is that among matrices of the same
    rank.

    ``%0 = "smelt.least_squares"(%a, %b) {rtol = 1.0e-6 : f64} : (tensor<4x3xf32>, tensor<4x2xf32>) -> tensor<3x2xf32>``
    """

    a: Operand
    b: Operand
    rtol: Float
    core = "(m,n),(m,k)->(n,k)"
    accepts = FIELDS
    linearity = "each"
    linear_operands = (1,)

    @unforked
    @silent
    def host(self, a: np.ndarray, b: np.ndarray, *, rtol: Float) -> np.ndarray:
        found = None if small_matrices.has_svd(a) else lapack.least_squares(a, b, rtol)
        return np.matmul(of_finite(lambda a: _pseudoinverse(a, rtol), a), b) if found is None else found

    @silent
    def reference(self, a: np.ndarray, b: np.ndarray, *, rtol: Float) -> np.ndarray:
        """By NumPy, in float64."""
        wide = np.complex128 if a.dtype.kind == "c" else np.float64
        found = of_finite(lambda a: np.linalg.pinv(a, rtol), a.astype(wide)) @ b
        return found.astype(a.dtype)

    def sample(self, rng: np.random.Generator, a: Aval, b: Aval, **_: Any) -> Sequence[np.ndarray]:
        return _spread(rng, a), field(rng, b)

    def jvp(self, b: Builder, primals: Values, tangents: Tangents, results: Values, *, rtol: Float) -> Tangents:
        """With P = A⁺: P·(Ḃ - Ȧ·X) + P Pᴴ Ȧᴴ (B - A·X) + (1 - P·A) Ȧᴴ Pᴴ X."""
        (a, right), (ta, tb), (x,) = primals, tangents, results
        m = a.shape[-2]
        moved = None if tb is None else b.broadcast_to(tb, (*x.shape[:-2], m, x.shape[-1]))
        if ta is None:
            return [None if moved is None else b.least_squares(a, moved, rtol=rtol)]
        less = matmul(b, ta, x)
        found = b.least_squares(a, -less if moved is None else moved - less, rtol=rtol)
        across, turned = adjoint(b, a), adjoint(b, ta)
        product = matmul(b, a, x)
        rest = b.broadcast_to(right, product.shape) - product
        found = found + b.least_squares(a, b.least_squares(across, matmul(b, turned, rest), rtol=rtol), rtol=rtol)
        beside = matmul(b, turned, b.least_squares(across, x, rtol=rtol))
        return [found + beside - b.least_squares(a, matmul(b, a, beside), rtol=rtol)]

    def transpose(
        self, b: Builder, cotangents: Cotangents, operands: Values, linear: Flags, *, rtol: Float
    ) -> Cotangents:
        a, right = operands
        return [None, b.sum_to(b.least_squares(transposed(b, a), only(cotangents), rtol=rtol), right.shape)]


class Eig(Library, name="eig"):
    """Eigenvalues and eigenvectors of square matrices of any kind: A·V = V·diag(w), all of them complex.

    Vectors have the length 1, and their largest element is real. Derivatives need eigenvalues that are not repeated.

    ``%0:2 = "smelt.eig"(%a) : (tensor<3x3xf32>) -> (tensor<3xcomplex<f32>>, tensor<3x3xcomplex<f32>>)``
    """

    a: Operand
    core = "(n,n)->(n),(n,n)"
    accepts = FIELDS

    def result_dtypes(self, operand: DType) -> Sequence[DType]:
        return [operand.complex] * 2

    @unforked
    def host(self, a: np.ndarray) -> tuple[np.ndarray, ...]:
        return of_finite(lambda a: tuple(x.astype(dtypes.of(a.dtype).complex.numpy) for x in np.linalg.eig(a)), a)

    def properties(self, operands: Sequence[np.ndarray], results: Sequence[np.ndarray]) -> Iterator[Property]:
        (a,), (w, v) = operands, results
        yield "A·V = V·diag(w)", a @ v, v * w[..., None, :]
        yield "vectors have the length 1", np.linalg.norm(v, axis=-2), np.ones(w.shape)

    def sample(self, rng: np.random.Generator, a: Aval, **_: Any) -> Sequence[np.ndarray]:
        return [_ordered(rng, a)]

    def jvp(self, b: Builder, primals: Values, tangents: Tangents, results: Values) -> Tangents:
        """With M = V⁻¹ Ȧ V: ẇ is its diagonal, V̇ = V·(M[i, j] / (w[j] - w[i])) but for what keeps the vectors' form."""
        t, (w, v) = b.convert_to(only(tangents), only(tangents).dtype.complex), results
        turned = b.solve(v, matmul(b, t, v))
        if not w.shape[-1]:
            return [diagonal(b, turned), turned]
        moved = matmul(b, v, inverse_differences(b, w) * turned)
        real, imag = b.real(v), b.imag(v)
        longer = b.reduce_sum(real * b.real(moved) + imag * b.imag(moved), axes=(v.ndim - 2,))
        return [diagonal(b, turned), moved - v * _across(b, b.complex(longer, _turn(b, v, moved)), v.shape)]


def _across(b: Builder, x: Value, shape: tuple[int, ...]) -> Value:
    """A number for each column of matrices."""
    return b.broadcast_to(b.reshape_to(x, (*x.shape[:-1], 1, x.shape[-1])), shape)


class Eigvals(Library, name="eigvals"):
    """Eigenvalues of square matrices of any kind, all of them complex.

    ``%0 = "smelt.eigvals"(%a) : (tensor<3x3xf32>) -> tensor<3xcomplex<f32>>``
    """

    primitive = "Eig"
    a: Operand
    core = "(n,n)->(n)"
    accepts = FIELDS

    def result_dtypes(self, operand: DType) -> Sequence[DType]:
        return [operand.complex]

    @unforked
    def host(self, a: np.ndarray) -> np.ndarray:
        return of_finite(lambda a: np.linalg.eigvals(a).astype(dtypes.of(a.dtype).complex.numpy), a)

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
        return [diagonal(b, b.solve(v, matmul(b, b.convert_to(only(tangents), only(tangents).dtype.complex), v)))]


class Schur(Library, name="schur"):
    """Schur form A = U·T·Uᴴ: U is unitary, T upper triangular, of real matrices with blocks of two rows for pairs of
    eigenvalues that are conjugates of each other.

    ``%0:2 = "smelt.schur"(%a) : (tensor<3x3xf32>) -> (tensor<3x3xf32>, tensor<3x3xf32>)``
    """

    a: Operand
    core = "(n,n)->(n,n),(n,n)"
    accepts = FIELDS
    not_differentiable = NotDifferentiable("the eigenvalues may stand in any order on the diagonal of a Schur form")

    @unforked
    def host(self, a: np.ndarray) -> tuple[np.ndarray, ...]:
        return of_finite(triangular_forms.schur_forms, a)

    def properties(self, operands: Sequence[np.ndarray], results: Sequence[np.ndarray]) -> Iterator[Property]:
        (a,), (t, u) = operands, results
        yield "U·T·Uᴴ = A", u @ t @ adjoint_of(u), a
        yield "U is unitary", u @ adjoint_of(u), np.broadcast_to(np.eye(a.shape[-1], dtype=a.dtype), a.shape)
        below = 0 if a.dtype.kind == "c" else -1
        yield "T is triangular", np.triu(t, below), t
