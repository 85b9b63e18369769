"""Systems of linear equations by LAPACK: solutions, inverses, determinants, LU factors.

Complex numbers too: all of it is differentiable in the complex sense, so nothing is conjugated, but for absolute values.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import dtypes, lapack, small_matrices
from ..aval import Aval
from ..dtypes import DType
from ..errors import LibraryError
from ..kinds import silent
from ..library import Library
from ..locks import unforked
from ..op import Cotangents, Flags, NotDifferentiable, Operand, Tangents, Values, only
from .matrices import (
    FIELDS,
    columns,
    field,
    like_matrix,
    lower,
    matmul,
    of_finite,
    one_by_one,
    rows,
    trace_of_product,
    transposed,
    upper_part,
    which,
)

if TYPE_CHECKING:
    from ..builder import Builder, Value

SINGULAR = "is singular"
#: Rows from which on LAPACK factors a matrix sooner than steps over all matrices of a batch at a time.
LAPACK_LU = 32
#: Matrices of fewer rows are factored by LAPACK where there are fewer than so many times their columns.
CALLED_LU = 8


def _regular(rng: np.random.Generator, a: Aval) -> np.ndarray:
    """Random matrices far from singular ones, whose determinants have both signs."""
    n = a.shape[-1]
    x = rng.uniform(-0.5, 0.5, a.shape) + 2 * np.eye(n)[rng.permutation(n)]
    if a.dtype.is_complex:
        x = x + 1j * rng.uniform(-0.5, 0.5, a.shape)
    return x.astype(a.dtype.numpy)


class Solve(Library, name="solve"):
    """x with A·x = b for square matrices A.

    ``%0 = "smelt.solve"(%a, %b) : (tensor<3x3xf32>, tensor<3x2xf32>) -> tensor<3x2xf32>``
    """

    a: Operand
    b: Operand
    core = "(n,n),(n,k)->(n,k)"
    accepts = FIELDS
    linearity = "each"
    linear_operands = (1,)

    @unforked
    def host(self, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        found = small_matrices.solve(a, b)
        if found is None:
            found = lapack.solve(a, b)
        if found is not None:
            return found
        try:
            return np.linalg.solve(a, b)
        except np.linalg.LinAlgError:
            return one_by_one(np.linalg.solve, SINGULAR, a, b)

    @silent
    def reference(self, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        """Elimination: what is left of b where A has become 1."""
        return _eliminated(a, b)[0]

    def sample(self, rng: np.random.Generator, a: Aval, b: Aval, **_: Any) -> Sequence[np.ndarray]:
        return _regular(rng, a), field(rng, b)

    def jvp(self, b: Builder, primals: Values, tangents: Tangents, results: Values) -> Tangents:
        """ẋ = A⁻¹ (ḃ - Ȧ·x)."""
        (a, _), (ta, tb), (x,) = primals, tangents, results
        right = None if tb is None else b.broadcast_to(tb, x.shape)
        if ta is not None:
            moved = matmul(b, ta, x)
            right = -moved if right is None else right - moved
        return [None if right is None else b.solve(a, right)]

    def transpose(self, b: Builder, cotangents: Cotangents, operands: Values, linear: Flags) -> Cotangents:
        a, right = operands
        return [None, b.sum_to(b.solve(transposed(b, a), only(cotangents)), right.shape)]


class Inv(Library, name="inv"):
    """The inverse of square matrices.

    ``%0 = "smelt.inv"(%a) : (tensor<3x3xf32>) -> tensor<3x3xf32>``
    """

    primitive = "Inverse"
    a: Operand
    core = "(n,n)->(n,n)"
    accepts = FIELDS

    @unforked
    def host(self, a: np.ndarray) -> np.ndarray:
        found = small_matrices.inv(a)
        if found is None:
            found = lapack.inv(a)
        if found is not None:
            return found
        try:
            return np.linalg.inv(a)
        except np.linalg.LinAlgError:
            return one_by_one(np.linalg.inv, SINGULAR, a)

    @silent
    def reference(self, a: np.ndarray) -> np.ndarray:
        return _eliminated(a, np.broadcast_to(np.eye(a.shape[-1], dtype=a.dtype), a.shape))[0]

    def sample(self, rng: np.random.Generator, a: Aval, **_: Any) -> Sequence[np.ndarray]:
        return [_regular(rng, a)]

    def jvp(self, b: Builder, primals: Values, tangents: Tangents, results: Values) -> Tangents:
        """-A⁻¹ Ȧ A⁻¹."""
        (x,), t = results, only(tangents)
        return [-matmul(b, matmul(b, x, t), x)]


class Det(Library, name="det"):
    """The determinant of square matrices. Its derivative is right for singular ones, too.

    ``%0 = "smelt.det"(%a) : (tensor<2x3x3xf32>) -> tensor<2xf32>``
    """

    a: Operand
    core = "(n,n)->()"
    accepts = FIELDS

    @silent
    @unforked
    def host(self, a: np.ndarray) -> np.ndarray:
        found = small_matrices.det(a)
        if found is None:
            found = lapack.det(a)
        return np.asarray(np.linalg.det(a), a.dtype) if found is None else found

    @silent
    def reference(self, a: np.ndarray) -> np.ndarray:
        return _pivots(a).prod(-1)

    def sample(self, rng: np.random.Generator, a: Aval, **_: Any) -> Sequence[np.ndarray]:
        return [_regular(rng, a)]

    def jvp(self, b: Builder, primals: Values, tangents: Tangents, results: Values) -> Tangents:
        """tr(adj(A)·Ȧ), by Jacobi."""
        return [trace_of_product(b, b.adjugate(primals[0]), only(tangents))]


class Adjugate(Library, name="adjugate"):
    """The transposed matrix of cofactors: adj(A)·A = det(A). Its own derivative needs regular matrices.

    ``%0 = "smelt.adjugate"(%a) : (tensor<3x3xf32>) -> tensor<3x3xf32>``
    """

    a: Operand
    core = "(n,n)->(n,n)"
    accepts = FIELDS

    @unforked
    def host(self, a: np.ndarray) -> np.ndarray:
        """Of A = U·S·Vᴴ: det(U)·det(Vᴴ)·V·adj(S)·Uᴴ, where adj(S) has products of all singular values but one."""
        return of_finite(_adjugate, a)

    @silent
    def reference(self, a: np.ndarray) -> np.ndarray:
        """Cofactors, each the determinant of what is left of the matrix without one row and column."""
        n, found = a.shape[-1], np.empty_like(a)
        for i in range(n):
            for j in range(n):
                minor = np.delete(np.delete(a, i, -2), j, -1)
                found[..., j, i] = (-1) ** (i + j) * _pivots(minor).prod(-1)
        return found

    def sample(self, rng: np.random.Generator, a: Aval, **_: Any) -> Sequence[np.ndarray]:
        return [_regular(rng, a)]

    def jvp(self, b: Builder, primals: Values, tangents: Tangents, results: Values) -> Tangents:
        """Of det(A)·A⁻¹: tr(adj(A)·Ȧ)·A⁻¹ - A⁻¹ Ȧ adj(A)."""
        (a,), t, (found,) = primals, only(tangents), results
        inverse = b.inv(a)
        scale = like_matrix(b, trace_of_product(b, found, t), a.shape)
        return [scale * inverse - matmul(b, matmul(b, inverse, t), found)]


class Slogdet(Library, name="slogdet"):
    """Sign and logarithm of the absolute value of the determinant; 0 and -∞ for singular matrices.

    The sign of a complex number z is z / |z|. The derivative needs regular matrices.

    ``%0:2 = "smelt.slogdet"(%a) : (tensor<2x3x3xf32>) -> (tensor<2xf32>, tensor<2xf32>)``
    """

    a: Operand
    core = "(n,n)->(),()"
    accepts = FIELDS

    def result_dtypes(self, operand: DType) -> Sequence[DType]:
        return [operand, operand.real]

    @silent
    @unforked
    def host(self, a: np.ndarray) -> tuple[np.ndarray, ...]:
        found = lapack.slogdet(a)
        if found is not None:
            return found
        sign, log = np.linalg.slogdet(a)
        return np.asarray(sign), np.asarray(log)

    @silent
    def reference(self, a: np.ndarray) -> tuple[np.ndarray, ...]:
        pivots = _pivots(a)
        size = np.abs(pivots)
        sign = np.where(size == 0, pivots, pivots / size).prod(-1)
        return sign.astype(a.dtype, copy=False), np.log(size).sum(-1)

    def sample(self, rng: np.random.Generator, a: Aval, **_: Any) -> Sequence[np.ndarray]:
        return [_regular(rng, a)]

    def jvp(self, b: Builder, primals: Values, tangents: Tangents, results: Values) -> Tangents:
        """The change of the logarithm is tr(A⁻¹ Ȧ); its imaginary part turns the sign."""
        (a,), t, (sign, _) = primals, only(tangents), results
        change = trace_of_product(b, b.inv(a), t)
        if not a.dtype.is_complex:
            return [None, change]
        turn = b.imag(change)
        return [sign * b.complex(b.zeros_like(turn), turn), b.real(change)]


class Lu(Library, name="lu"):
    """LU factors of matrices (m × n), with exchanges of rows: A[permutation] = L·U.

    Both factors are in one matrix: U on and above the diagonal, L below it, whose own diagonal is 1. In step i row i
    was exchanged with row pivots[i]. Of singular matrices U has zeros on its diagonal. The derivative needs the first
    min(m, n) columns of A to be linearly independent.

    ``%0:3 = "smelt.lu"(%a) : (tensor<3x3xf32>) -> (tensor<3x3xf32>, tensor<3xui32>, tensor<3xui32>)``
    """

    primitive = "LUF"
    a: Operand
    core = "(m,n)->(m,n),(k),(m)"
    accepts = FIELDS

    def extents(self, dims: dict[str, int]) -> dict[str, int]:
        return {"k": min(dims["m"], dims["n"])}

    def result_dtypes(self, operand: DType) -> Sequence[DType]:
        return [operand, dtypes.uint32, dtypes.uint32]

    @silent
    @unforked
    def host(self, a: np.ndarray) -> tuple[np.ndarray, ...]:
        small = small_matrices.lu(a)
        if small is not None:
            return small
        *lead, m, n = a.shape
        k = min(m, n)
        x = np.array(a.reshape(math.prod(lead), m, n), order="C")
        each = np.arange(len(x))
        pivots, order = np.empty((len(x), k), np.uint32), np.tile(np.arange(m, dtype=np.uint32), (len(x), 1))
        called = k >= LAPACK_LU or len(x) < CALLED_LU * k
        factored = lapack.lu(x) if called else None
        if factored is not None:
            x, pivots = factored
            for i, exchanged in enumerate(pivots.tolist()):
                rows_of = list(range(m))
                for j, p in enumerate(exchanged):
                    rows_of[j], rows_of[p] = rows_of[p], rows_of[j]
                order[i] = rows_of
            return np.ascontiguousarray(x).reshape(a.shape), pivots.reshape(*lead, k), order.reshape(*lead, m)
        for start in range(0, k, BLOCK):
            stop = min(start + BLOCK, k)
            for j in range(start, stop):
                p = np.argmax(np.abs(x[:, j:, j]), 1) + j
                pivots[:, j] = p
                x[each, j], x[each, p] = x[each, p], x[each, j]
                order[each, j], order[each, p] = order[each, p], order[each, j]
                pivot = x[:, j, j]
                x[:, j + 1 :, j] /= np.where(pivot == 0, np.ones((), x.dtype), pivot)[:, None]
                x[:, j + 1 :, j + 1 : stop] -= x[:, j + 1 :, j, None] * x[:, j, None, j + 1 : stop]
            for j in range(start, stop):
                x[:, j + 1 : stop, stop:] -= x[:, j + 1 : stop, j, None] * x[:, j, None, stop:]
            x[:, stop:, stop:] -= x[:, stop:, start:stop] @ x[:, start:stop, stop:]
        return x.reshape(a.shape), pivots.reshape(*lead, k), order.reshape(*lead, m)

    def properties(
        self, operands: Sequence[np.ndarray], results: Sequence[np.ndarray]
    ) -> Iterator[tuple[str, np.ndarray, np.ndarray]]:
        (a,), (x, pivots, order) = operands, results
        k = min(a.shape[-2:])
        left, right = np.tril(x[..., :k], -1) + np.eye(a.shape[-2], k), np.triu(x[..., :k, :])
        yield "A[permutation] = L·U", np.take_along_axis(a, order[..., None].astype(np.intp), -2), left @ right
        most = 2**0.5 if a.dtype.kind == "c" else 1  # libraries compare complex numbers by |re| + |im|
        yield "no element of L is larger than the pivot", np.maximum(np.abs(left), most), np.full(left.shape, most)
        exchanged = np.broadcast_to(np.arange(a.shape[-2], dtype=np.uint32), order.shape).copy()
        for at in np.ndindex(*a.shape[:-2]):
            for i, p in enumerate(pivots[at]):
                exchanged[at][[i, p]] = exchanged[at][[p, i]]
        yield "the pivots give the permutation", exchanged, order

    def sample(self, rng: np.random.Generator, a: Aval, **_: Any) -> Sequence[np.ndarray]:
        m, n = a.shape[-2:]
        largest = max(m, n)
        whole = 0.4 * field(rng, a) + 2 * np.eye(largest)[rng.permutation(largest)][:m, :n]
        head = np.eye(m, n)[rng.permutation(m)]  # so that the first columns are independent
        return [(whole + 3 * head).astype(a.dtype.numpy)]

    def jvp(self, b: Builder, primals: Values, tangents: Tangents, results: Values) -> Tangents:
        """With X = L⁻¹ Ȧ U⁻¹ of the first k rows and columns: L̇ = L·(X below the diagonal), U̇ = (X on and above)·U.

        What stands beside and below follows from Ȧ = L̇·U + L·U̇.
        """
        (a,), t, (x, _, order) = primals, only(tangents), results
        m, n = a.shape[-2:]
        k = min(m, n)
        moved = matmul(b, _permutation(b, order, a.dtype), t)
        square = rows(b, columns(b, x, 0, k), 0, k)
        below, right = lower(b, square, below=1), upper_part(b, square)
        left = below + _identity(b, square)
        solved = b.solve_triangular(left, rows(b, moved, 0, k))
        first = columns(b, solved, 0, k)
        change = transposed(b, b.solve_triangular(transposed(b, right), transposed(b, first)))
        strict, rest = lower(b, change, below=1), upper_part(b, change)
        found = matmul(b, left, strict) + matmul(b, rest, right)
        if m < n:
            beside = columns(b, solved, k, n) - matmul(b, strict, columns(b, x, k, n))
            found = b.concatenate(found, beside, axis=a.ndim - 1)
        if m > n:
            under = rows(b, moved, k, m) - matmul(b, rows(b, x, k, m), matmul(b, rest, right))
            under = transposed(b, b.solve_triangular(transposed(b, right), transposed(b, under)))
            found = b.concatenate(found, under, axis=a.ndim - 2)
        return [found, None, None]


class PermutationOfPivots(Library, name="permutation_of_pivots"):
    """The order of rows after row i has been exchanged with row pivots[i], for one i after the other.

    ``%0 = "smelt.permutation_of_pivots"(%p) : (tensor<2x3xui32>) -> tensor<2x3xui32>``
    """

    pivots: Operand
    core = "(n)->(n)"
    accepts = (dtypes.uint32, dtypes.int32)
    not_differentiable = NotDifferentiable("the result is an integer")

    def result_dtypes(self, operand: DType) -> Sequence[DType]:
        return [dtypes.uint32]

    def host(self, pivots: np.ndarray) -> np.ndarray:
        *lead, n = pivots.shape
        flat = pivots.reshape(math.prod(lead), n).astype(np.intp)
        if np.any((flat < 0) | (flat >= n)):
            raise LibraryError("a pivot is the number of no row")
        each, order = np.arange(len(flat)), np.tile(np.arange(n, dtype=np.uint32), (len(flat), 1))
        for i in range(n):
            p = flat[:, i]
            order[each, i], order[each, p] = order[each, p], order[each, i]
        return order.reshape(pivots.shape)

    def reference(self, pivots: np.ndarray) -> np.ndarray:
        """A product of matrices that exchange two rows."""
        n = pivots.shape[-1]
        order = np.broadcast_to(np.arange(n), pivots.shape)[..., None]
        for i in range(n):
            at, p = np.arange(n), pivots[..., i, None]
            swapped = np.where(at == i, p, np.where(at == p, i, at))
            order = np.einsum("...ij,...jk->...ik", np.eye(n, dtype=np.int64)[swapped.astype(np.intp)], order)
        return order[..., 0].astype(np.uint32)

    def sample(self, rng: np.random.Generator, pivots: Aval, **_: Any) -> Sequence[np.ndarray]:
        n = pivots.shape[-1]
        return [np.asarray(rng.integers(np.arange(n), n, pivots.shape)).astype(pivots.dtype.numpy)]


#: Columns of an LU factorization that are eliminated one by one; what is right of them follows by products.
BLOCK = 32


def _eliminated(a: np.ndarray, b: np.ndarray, singular: bool = False) -> tuple[np.ndarray, np.ndarray]:
    """A⁻¹·b and the pivots, whose product is det(A), by elimination with exchanges of rows (Gauß and Jordan).

    Raises:
        LibraryError: a finite matrix is singular, and not `singular`: then it is none.
    """
    batch = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    n, k = b.shape[-2:]
    x = np.concatenate([np.broadcast_to(m, (*batch, *m.shape[-2:])) for m in (a, b)], -1).reshape(
        math.prod(batch), n, n + k
    )
    finite, each, pivots = np.isfinite(x[..., :n]).all((-1, -2)), np.arange(len(x)), np.empty((len(x), n), x.dtype)
    for j in range(n):
        p = np.argmax(np.abs(x[:, j:, j]), 1) + j
        x[each, j], x[each, p] = x[each, p], x[each, j]
        pivot = x[:, j, j].copy()
        bad = finite & (pivot == 0)
        if np.any(bad) and not singular:
            raise LibraryError(f"{which(bad.reshape(batch))} {SINGULAR}")
        pivots[:, j] = np.where(p == j, pivot, -pivot)
        x[:, j] /= np.where(bad, 1, pivot)[:, None]
        others = x[:, :, j].copy()
        others[:, j] = 0
        x -= others[:, :, None] * x[:, j, None, :]
    return x[..., n:].reshape(*batch, n, k), pivots.reshape(*batch, n)


def _adjugate(a: np.ndarray) -> np.ndarray:
    u, s, vh = np.linalg.svd(a)
    others = np.where(np.eye(a.shape[-1], dtype=bool), np.ones((), s.dtype), s[..., None, :]).prod(-1)
    sign = (np.linalg.det(u) * np.linalg.det(vh))[..., None, None]
    right = np.swapaxes(u, -1, -2).conj()
    found = sign * (np.swapaxes(vh, -1, -2).conj() @ (others[..., :, None] * right))
    return found.astype(a.dtype, copy=False)


def _pivots(a: np.ndarray) -> np.ndarray:
    """Numbers whose product is the determinant."""
    return _eliminated(a, np.zeros((*a.shape[:-1], 0), a.dtype), singular=True)[1]


def _identity(b: Builder, x: Value) -> Value:
    """Ones on the diagonal, in the shape of x."""
    ones = b.full(x.shape, 1, x.dtype)
    return lower(b, upper_part(b, ones))


def _permutation(b: Builder, order: Value, dtype: DType) -> Value:
    """The matrix P with (P·A)[i] = A[order[i]]."""
    n = order.shape[-1]
    shape = (*order.shape, n)
    wanted = b.broadcast_to(b.reshape_to(order, (*order.shape, 1)), shape)
    place = b.iota(shape=shape, axis=len(shape) - 1, dtype=order.dtype)
    return b.convert_to(b.equal(wanted, place), dtype)
