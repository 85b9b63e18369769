"""Functions of matrices: the exponential, by Padé approximants and squaring (Higham, "The scaling and squaring method",
2005; Al-Mohy and Higham, "A new scaling and squaring algorithm", 2009), the square root and the logarithm by Schur forms,
and their derivatives.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import small_matrices, triangular_forms
from ..aval import Aval, broadcast_shapes
from ..errors import LibraryError
from ..kinds import silent
from ..library import Library
from ..locks import unforked
from ..op import Cotangents, Flags, Operand, Tangents, Values, only
from .matrices import FIELDS, columns, field, matmul, of_finite, rows, transposed, which

if TYPE_CHECKING:
    from ..builder import Builder, Value

#: Coefficients of the approximant of degree 13, and up to which norm it has the precision of float64.
PADE = (
    64764752532480000, 32382376266240000, 7771770303897600, 1187353796428800, 129060195264000, 10559470521600,
    670442572800, 33522128640, 1323241920, 40840800, 960960, 16380, 182, 1,
)  # fmt: skip
NORM = 5.371920351148152
#: Numbers of matrices that are approximated together, so that they stay in a cache.
TOGETHER = 1 << 14
#: What it leaves out begins with this multiple of the 27th power.
LEFT_OUT = 1 / (math.comb(26, 13) * math.factorial(27))


class Expm(Library, name="expm"):
    """The exponential of square matrices: Σₖ Aᵏ / k!. It is computed in float64, or complex128.

    ``%0 = "smelt.expm"(%a) : (tensor<3x3xf32>) -> tensor<3x3xf32>``
    """

    a: Operand
    core = "(n,n)->(n,n)"
    accepts = FIELDS

    @silent
    @unforked
    def host(self, a: np.ndarray) -> np.ndarray:
        return of_finite(lambda a: _exponential(_wide(a), a.dtype.char in "fF").astype(a.dtype), a)

    @silent
    @unforked
    def reference(self, a: np.ndarray) -> np.ndarray:
        return of_finite(lambda a: _taylor(_wide(a), np.zeros_like(_wide(a)))[0].astype(a.dtype), a)

    def sample(self, rng: np.random.Generator, a: Aval, **_: Any) -> Sequence[np.ndarray]:
        return [field(rng, a)]

    def jvp(self, b: Builder, primals: Values, tangents: Tangents, results: Values) -> Tangents:
        return [b.expm_frechet(primals[0], only(tangents))]


class Frechet(Library):
    """The derivative of a function f of matrices at A along E, which is linear in E.

    It is the upper right block of f([[A, E], [0, A]]).
    """

    a: Operand
    e: Operand
    core = "(n,n),(n,n)->(n,n)"
    accepts = FIELDS
    linearity = "each"
    linear_operands = (1,)

    def sample(self, rng: np.random.Generator, a: Aval, e: Aval, **_: Any) -> Sequence[np.ndarray]:
        return field(rng, a), field(rng, e)

    def jvp(self, b: Builder, primals: Values, tangents: Tangents, results: Values) -> Tangents:
        """Along Ȧ: the upper right block of the derivative for [[A, E], [0, A]] along [[Ȧ, 0], [0, Ȧ]]."""
        (a, e), (ta, te), (found,) = primals, tangents, results
        along = getattr(b, self.name)
        total = None if te is None else along(a, te)
        if ta is not None:
            n = a.shape[-1]
            shape = (*found.shape[:-2], n, n)
            a, e, ta = (b.broadcast_to(x, shape) for x in (a, e, ta))
            zeros = b.zeros_like(a)
            block = along(_blocks(b, a, e, zeros, a), _blocks(b, ta, zeros, zeros, ta))
            total = b.add_any(total, columns(b, rows(b, block, 0, n), n, 2 * n))
        return [total]

    def transpose(self, b: Builder, cotangents: Cotangents, operands: Values, linear: Flags) -> Cotangents:
        a, e = operands
        return [None, b.sum_to(getattr(b, self.name)(transposed(b, a), only(cotangents)), e.shape)]


class ExpmFrechet(Frechet, name="expm_frechet"):
    """The derivative of the exponential of A along E: Σₖ Σᵢ Aⁱ E Aᵏ⁻¹⁻ⁱ / k!.

    ``%0 = "smelt.expm_frechet"(%a, %e) : (tensor<3x3xf32>, tensor<3x3xf32>) -> tensor<3x3xf32>``
    """

    @silent
    @unforked
    def host(self, a: np.ndarray, e: np.ndarray) -> np.ndarray:
        n, both, single = a.shape[-1], _beside(a, e), a.dtype.char in "fF"
        return of_finite(lambda both: _along(_wide(both[..., :n]), _wide(both[..., n:]), single).astype(a.dtype), both)

    @silent
    @unforked
    def reference(self, a: np.ndarray, e: np.ndarray) -> np.ndarray:
        n, both = a.shape[-1], _beside(a, e)
        return of_finite(lambda both: _taylor(_wide(both[..., :n]), _wide(both[..., n:]))[1].astype(a.dtype), both)


class Sylvester(Library, name="sylvester"):
    """X with A·X + X·B = Q. No eigenvalue of A may be that of -B.

    ``%0 = "smelt.sylvester"(%a, %b, %q) : (tensor<3x3xf32>, tensor<2x2xf32>, tensor<3x2xf32>) -> tensor<3x2xf32>``
    """

    a: Operand
    b: Operand
    q: Operand
    core = "(m,m),(n,n),(m,n)->(m,n)"
    accepts = FIELDS
    linearity = "each"
    linear_operands = (2,)

    @silent
    @unforked
    def host(self, a: np.ndarray, b: np.ndarray, q: np.ndarray) -> np.ndarray:
        return _by_matrix(triangular_forms.sylvester, "has an eigenvalue that is one of -b", a, b, q)

    @silent
    def reference(self, a: np.ndarray, b: np.ndarray, q: np.ndarray) -> np.ndarray:
        """As a system of m·n equations."""

        def solved(a: np.ndarray, b: np.ndarray, q: np.ndarray) -> np.ndarray:
            m, n = q.shape
            system = np.kron(a, np.eye(n)) + np.kron(np.eye(m), b.T)
            return np.linalg.solve(system, q.reshape(m * n, 1)).reshape(m, n)

        return _by_matrix(solved, "has an eigenvalue that is one of -b", a, b, q)

    def sample(self, rng: np.random.Generator, a: Aval, b: Aval, q: Aval, **_: Any) -> Sequence[np.ndarray]:
        return _near_one(rng, a), _near_one(rng, b), field(rng, q)

    def jvp(self, b: Builder, primals: Values, tangents: Tangents, results: Values) -> Tangents:
        """A·Ẋ + Ẋ·B = Q̇ - Ȧ·X - X·Ḃ."""
        (left, right, _), (ta, tb, tq), (x,) = primals, tangents, results
        total = None if tq is None else b.broadcast_to(tq, x.shape)
        if ta is not None:
            total = b.add_any(total, -matmul(b, ta, x))
        if tb is not None:
            total = b.add_any(total, -matmul(b, x, tb))
        return [None if total is None else b.sylvester(left, right, total)]

    def transpose(self, b: Builder, cotangents: Cotangents, operands: Values, linear: Flags) -> Cotangents:
        left, right, q = operands
        found = b.sylvester(transposed(b, left), transposed(b, right), only(cotangents))
        return [None, None, b.sum_to(found, q.shape)]


class Sqrtm(Library, name="sqrtm"):
    """The principal square root of square matrices: X·X = A, without eigenvalues in the left half plane.

    It is computed in complex128. Real matrices with negative eigenvalues have none of real numbers.

    ``%0 = "smelt.sqrtm"(%a) : (tensor<3x3xf32>) -> tensor<3x3xf32>``
    """

    a: Operand
    core = "(n,n)->(n,n)"
    accepts = FIELDS

    @silent
    @unforked
    def host(self, a: np.ndarray) -> np.ndarray:
        return _by_matrix(_through(triangular_forms.root), "has no square root", a)

    @silent
    def reference(self, a: np.ndarray) -> np.ndarray:
        """The iteration of Denman and Beavers."""

        def iterated(a: np.ndarray) -> np.ndarray:
            x, y = a, np.eye(len(a), dtype=a.dtype)
            for _ in range(40):
                x, y = (x + np.linalg.inv(y)) / 2, (y + np.linalg.inv(x)) / 2
            return x

        return _by_matrix(iterated, "has no square root", a)

    def sample(self, rng: np.random.Generator, a: Aval, **_: Any) -> Sequence[np.ndarray]:
        return [_near_one(rng, a)]

    def jvp(self, b: Builder, primals: Values, tangents: Tangents, results: Values) -> Tangents:
        """X·Ẋ + Ẋ·X = Ȧ."""
        return [b.sylvester(results[0], results[0], only(tangents))]


class Logm(Library, name="logm"):
    """The principal logarithm of square matrices: exp(X) = A, with imaginary parts of eigenvalues in (-π, π).

    It is computed in complex128. Real matrices with negative eigenvalues have none of real numbers.

    ``%0 = "smelt.logm"(%a) : (tensor<3x3xf32>) -> tensor<3x3xf32>``
    """

    a: Operand
    core = "(n,n)->(n,n)"
    accepts = FIELDS

    @silent
    @unforked
    def host(self, a: np.ndarray) -> np.ndarray:
        return _by_matrix(_logarithm, "has no logarithm", a)

    @silent
    def reference(self, a: np.ndarray) -> np.ndarray:
        """The integral ∫ (A - 1)·(1 + t·(A - 1))⁻¹ dt, for matrices near to 1."""
        return _by_matrix(_integrated, "has no logarithm", a)

    def sample(self, rng: np.random.Generator, a: Aval, **_: Any) -> Sequence[np.ndarray]:
        return [_near_one(rng, a)]

    def jvp(self, b: Builder, primals: Values, tangents: Tangents, results: Values) -> Tangents:
        return [b.logm_frechet(primals[0], only(tangents))]


class LogmFrechet(Frechet, name="logm_frechet"):
    """The derivative of the logarithm of A along E: ∫ (1 + t·(A - 1))⁻¹ E (1 + t·(A - 1))⁻¹ dt.

    ``%0 = "smelt.logm_frechet"(%a, %e) : (tensor<3x3xf32>, tensor<3x3xf32>) -> tensor<3x3xf32>``
    """

    @silent
    @unforked
    def host(self, a: np.ndarray, e: np.ndarray) -> np.ndarray:
        return _by_matrix(lambda a, e: _of_block(_logarithm, a, e), "has no logarithm", a, e)

    @silent
    def reference(self, a: np.ndarray, e: np.ndarray) -> np.ndarray:
        return _by_matrix(lambda a, e: _of_block(_integrated, a, e), "has no logarithm", a, e)

    def sample(self, rng: np.random.Generator, a: Aval, e: Aval, **_: Any) -> Sequence[np.ndarray]:
        return _near_one(rng, a), field(rng, e)


def _near_one(rng: np.random.Generator, a: Aval) -> np.ndarray:
    """Random matrices without eigenvalues near zero or in the left half plane."""
    n = a.shape[-1]
    return (np.eye(n) + field(rng, a) / (2 * max(n, 1))).astype(a.dtype.numpy)


def _beside(a: np.ndarray, e: np.ndarray) -> np.ndarray:
    """[A, E], in the shape of a batch of both."""
    n = a.shape[-1]
    both = np.zeros((*broadcast_shapes(a.shape[:-2], e.shape[:-2]), n, 2 * n), a.dtype)
    both[..., :n], both[..., n:] = a, e
    return both


def _blocks(b: Builder, x: Value, y: Value, z: Value, w: Value) -> Value:
    """[[x, y], [z, w]]."""
    last = x.ndim - 1
    upper, under = b.concatenate(x, y, axis=last), b.concatenate(z, w, axis=last)
    return b.concatenate(upper, under, axis=last - 1)


def _wide(a: np.ndarray) -> np.ndarray:
    return a.astype(np.complex128 if a.dtype.kind == "c" else np.float64)


def _norm(a: np.ndarray) -> np.ndarray:
    """The largest sum of absolute values of a column."""
    return np.abs(a).sum(-2).max(-1, initial=0)


def _halvings(a: np.ndarray, norm: float) -> np.ndarray:
    """How often matrices are to be halved until their norm is at most `norm`; infinite results need no more."""
    return np.ceil(np.log2(np.clip(_norm(a) / norm, 1, 2.0**64))).astype(np.int64)


def _fewer(powers: Sequence[np.ndarray], halvings: np.ndarray) -> np.ndarray:
    """Of the halvings that make a norm small, those that matter: each one more is a squaring, which loses digits.

    Powers of a matrix, the first, second, fourth and sixth, are often far smaller than those of its norm; only they
    count for the approximant, together with how much larger than them the powers of the absolute values are, by which
    it is rounded.
    """
    a, _, a4, a6 = powers
    roots = [_norm(x) ** (1 / k) for k, x in ((4, a4), (6, a6), (8, a4 @ a4), (10, a4 @ a6))]
    size = np.minimum.reduce([np.maximum(x, y) for x, y in itertools.pairwise(roots)])
    few = np.clip(halvings + np.ceil(np.log2(size / NORM)), 0, halvings)
    if (few == halvings).all():
        return halvings
    sizes = np.ones((*a.shape[:-2], 1, a.shape[-1]))
    for _ in range(27):
        sizes = sizes @ np.abs(a)
    left_out = np.log2(LEFT_OUT * sizes.max((-2, -1)) / _norm(a)) + 26 * (halvings - few)
    more = np.maximum(np.ceil((left_out + 53) / 26), 0)
    return np.fmin(few + more, halvings).astype(np.int64)


def _exponential(a: np.ndarray, single: bool) -> np.ndarray:
    """Of float64 or complex128; if `single`, with the precision of float32 at least."""
    found = _small_exponential(a, single)
    if found is not None:
        rest = np.isnan(found[..., 0, 0])
        if rest.any():
            found[rest] = _in_turn(a[rest])
        return found
    return _in_turn(a)


def _in_turn(a: np.ndarray) -> np.ndarray:
    n = a.shape[-1]
    each, together = a.reshape(math.prod(a.shape[:-2]), n, n), max(1, TOGETHER // max(n * n, 1))
    if len(each) <= together:
        return _approximated(a)
    found = np.empty_like(each)
    for start in range(0, len(each), together):
        part = slice(start, start + together)
        found[part] = _approximated(each[part])
    return found.reshape(a.shape)


def _small_exponential(a: np.ndarray, single: bool) -> np.ndarray | None:
    if a.dtype.kind != "c":
        return small_matrices.expm(a, single)
    n = a.shape[-1]
    if not 0 < 2 * n <= small_matrices.MOST_ROTATED:
        return None
    both = np.empty((*a.shape[:-2], 2 * n, 2 * n))  # what complex numbers do to their parts
    both[..., :n, :n] = both[..., n:, n:] = a.real
    both[..., n:, :n] = a.imag
    np.negative(a.imag, out=both[..., :n, n:])
    parts = small_matrices.expm(both, single)
    if parts is None:
        return None
    found = np.empty_like(a)
    found.real, found.imag = parts[..., :n, :n], parts[..., n:, :n]
    return found


def _approximated(a: np.ndarray) -> np.ndarray:
    one, halvings = np.eye(a.shape[-1]), _halvings(a, NORM)
    squarings = halvings.max(initial=0)
    if squarings:
        a = a / (2.0**halvings)[..., None, None]
    a2 = a @ a
    a4 = a2 @ a2
    a6 = a4 @ a2
    if squarings:
        fewer = _fewer((a, a2, a4, a6), halvings)
        larger = halvings - fewer
        if larger.any():  # powers of two, by which products are exact
            scale = (2.0**larger)[..., None, None]
            square = scale * scale
            a, a2, a4, a6 = a * scale, a2 * square, a4 * (square * square), a6 * (square * square * square)
        halvings, squarings = fewer, fewer.max()
    c = PADE
    odd = a @ (a6 @ (c[13] * a6 + c[11] * a4 + c[9] * a2) + c[7] * a6 + c[5] * a4 + c[3] * a2 + c[1] * one)
    even = a6 @ (c[12] * a6 + c[10] * a4 + c[8] * a2) + c[6] * a6 + c[4] * a4 + c[2] * a2 + c[0] * one
    found = np.linalg.solve(even - odd, even + odd)
    for i in range(squarings):
        more = i < halvings
        found = found @ found if more.all() else np.where(more[..., None, None], found @ found, found)
    return found


def _along(a: np.ndarray, e: np.ndarray, single: bool) -> np.ndarray:
    """The derivative along e, whose norm has no influence on the precision."""
    n, size = a.shape[-1], _norm(e)[..., None, None]
    size = np.where(size == 0, 1, size)
    block = np.zeros((*a.shape[:-2], 2 * n, 2 * n), a.dtype)
    block[..., :n, :n] = block[..., n:, n:] = a
    block[..., :n, n:] = e / size
    return _exponential(block, single)[..., :n, n:] * size


def _taylor(a: np.ndarray, e: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The exponential and its derivative by their power series, near zero, and squaring."""
    halvings = _halvings(a, 0.5)
    scale = (2.0 ** -halvings.astype(np.float64))[..., None, None]
    a, e = a * scale, e * scale
    term = np.broadcast_to(np.eye(a.shape[-1], dtype=a.dtype), a.shape)
    found, change, total = term.copy(), np.zeros_like(a), np.zeros_like(a)
    for k in range(1, 25):
        change, term = (a @ change + e @ term) / k, a @ term / k
        found, total = found + term, total + change
    for i in range(halvings.max(initial=0)):
        more = (i < halvings)[..., None, None]
        found, total = np.where(more, found @ found, found), np.where(more, found @ total + total @ found, total)
    return found, total


def _by_matrix(function: Callable[..., np.ndarray], rule: str, *arrays: np.ndarray) -> np.ndarray:
    """`function` of each matrix of a batch, in complex128; NaN where one is not finite.

    Of real matrices the result is real: what is left of an imaginary part by rounding is dropped.

    Raises:
        LibraryError: a matrix `rule`: the result is not finite, or real matrices have complex ones alone.
    """
    lead = broadcast_shapes(*(x.shape[:-2] for x in arrays))
    given = [np.broadcast_to(_wide(x).astype(np.complex128), (*lead, *x.shape[-2:])) for x in arrays]
    found: np.ndarray = np.full(given[-1].shape, np.nan, np.complex128)
    bad: np.ndarray = np.zeros(lead, bool)
    kind = arrays[0].dtype
    for at in np.ndindex(lead):
        matrices = [x[at] for x in given]
        if not all(np.isfinite(x).all() for x in matrices):
            continue
        try:
            found[at] = function(*matrices)
        except np.linalg.LinAlgError:
            bad[at] = True
        bad[at] |= not np.isfinite(found[at]).all()
    if bad.any():
        raise LibraryError(f"{which(bad)} {rule}")
    if kind.kind != "c":
        # Rounding turns eigenvalues of zero into such of ε, whose roots are √ε.
        most = np.abs(found).max((-1, -2), initial=0) * 10 * np.sqrt(found.shape[-1] * np.finfo(kind).eps)
        bad = np.abs(found.imag).max((-1, -2), initial=0) > most
        if bad.any():
            raise LibraryError(f"{which(bad)} {rule} of real numbers; convert it to complex numbers first")
        found = found.real
    return found.astype(kind)


def _through(function: Callable[[np.ndarray], np.ndarray]) -> Callable[[np.ndarray], np.ndarray]:
    """A function of matrices, by what it is of triangular ones."""

    def of_matrix(a: np.ndarray) -> np.ndarray:
        t, u = triangular_forms.schur(a)
        return u @ function(t) @ u.conj().T

    return of_matrix


_logarithm = _through(triangular_forms.logarithm)


def _integrated(a: np.ndarray) -> np.ndarray:
    return triangular_forms.integral_of_logarithm(a - np.eye(len(a)), 40)


def _of_block(function: Callable[[np.ndarray], np.ndarray], a: np.ndarray, e: np.ndarray) -> np.ndarray:
    """The derivative of a function along e, whose norm has no influence on the precision."""
    n, size = len(a), _norm(e) or 1.0
    return function(np.block([[a, e / size], [np.zeros_like(a), a]]))[:n, n:] * size
