"""The exponential of matrices, by Padé approximants and squaring (Higham, "The scaling and squaring method", 2005)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..aval import Aval
from ..kinds import Library, silent
from ..locks import unforked
from ..op import Cotangents, Flags, Operand, Tangents, Values, only
from .matrices import FIELDS, columns, field, of_finite, rows, transposed

if TYPE_CHECKING:
    from ..builder import Builder, Value

#: Coefficients of the approximant of degree 13, and up to which norm it has the precision of float64.
PADE = (
    64764752532480000, 32382376266240000, 7771770303897600, 1187353796428800, 129060195264000, 10559470521600,
    670442572800, 33522128640, 1323241920, 40840800, 960960, 16380, 182, 1,
)  # fmt: skip
NORM = 5.371920351148152


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
        return of_finite(lambda a: _exponential(_wide(a)).astype(a.dtype), a)

    @silent
    @unforked
    def reference(self, a: np.ndarray) -> np.ndarray:
        return of_finite(lambda a: _taylor(_wide(a), np.zeros_like(_wide(a)))[0].astype(a.dtype), a)

    def sample(self, rng: np.random.Generator, a: Aval, **_: Any) -> Sequence[np.ndarray]:
        return [field(rng, a)]

    def jvp(self, b: Builder, primals: Values, tangents: Tangents, results: Values) -> Tangents:
        return [b.expm_frechet(primals[0], only(tangents))]


class ExpmFrechet(Library, name="expm_frechet"):
    """The derivative of the exponential of A along E: Σₖ Σᵢ Aⁱ E Aᵏ⁻¹⁻ⁱ / k!.

    It is the upper right block of the exponential of [[A, E], [0, A]].

    ``%0 = "smelt.expm_frechet"(%a, %e) : (tensor<3x3xf32>, tensor<3x3xf32>) -> tensor<3x3xf32>``
    """

    a: Operand
    e: Operand
    core = "(n,n),(n,n)->(n,n)"
    accepts = FIELDS
    linearity = "each"
    linear_operands = (1,)

    @silent
    @unforked
    def host(self, a: np.ndarray, e: np.ndarray) -> np.ndarray:
        n = a.shape[-1]
        batch = np.broadcast_shapes(a.shape[:-2], e.shape[:-2])
        both = np.zeros((*batch, n, 2 * n), a.dtype)
        both[..., :n], both[..., n:] = a, e
        return of_finite(lambda both: _along(_wide(both[..., :n]), _wide(both[..., n:])).astype(a.dtype), both)

    @silent
    @unforked
    def reference(self, a: np.ndarray, e: np.ndarray) -> np.ndarray:
        n = a.shape[-1]
        batch = np.broadcast_shapes(a.shape[:-2], e.shape[:-2])
        both = np.zeros((*batch, n, 2 * n), a.dtype)
        both[..., :n], both[..., n:] = a, e
        return of_finite(lambda both: _taylor(_wide(both[..., :n]), _wide(both[..., n:]))[1].astype(a.dtype), both)

    def sample(self, rng: np.random.Generator, a: Aval, e: Aval, **_: Any) -> Sequence[np.ndarray]:
        return field(rng, a), field(rng, e)

    def jvp(self, b: Builder, primals: Values, tangents: Tangents, results: Values) -> Tangents:
        """Along Ȧ: the upper right block of the derivative for [[A, E], [0, A]] along [[Ȧ, 0], [0, Ȧ]]."""
        (a, e), (ta, te), (found,) = primals, tangents, results
        total = None if te is None else b.expm_frechet(a, te)
        if ta is not None:
            n = a.shape[-1]
            shape = (*found.shape[:-2], n, n)
            a, e, ta = (b.broadcast_to(x, shape) for x in (a, e, ta))
            zeros = b.zeros_like(a)
            block = b.expm_frechet(_blocks(b, a, e, zeros, a), _blocks(b, ta, zeros, zeros, ta))
            total = b.add_any(total, columns(b, rows(b, block, 0, n), n, 2 * n))
        return [total]

    def transpose(self, b: Builder, cotangents: Cotangents, operands: Values, linear: Flags) -> Cotangents:
        a, e = operands
        return [None, b.sum_to(b.expm_frechet(transposed(b, a), only(cotangents)), e.shape)]


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


def _exponential(a: np.ndarray) -> np.ndarray:
    one, halvings = np.eye(a.shape[-1]), _halvings(a, NORM)
    a = a / (2.0**halvings)[..., None, None]
    c, a2 = PADE, a @ a
    a4 = a2 @ a2
    a6 = a4 @ a2
    odd = a @ (a6 @ (c[13] * a6 + c[11] * a4 + c[9] * a2) + c[7] * a6 + c[5] * a4 + c[3] * a2 + c[1] * one)
    even = a6 @ (c[12] * a6 + c[10] * a4 + c[8] * a2) + c[6] * a6 + c[4] * a4 + c[2] * a2 + c[0] * one
    found = np.linalg.solve(even - odd, even + odd)
    for i in range(halvings.max(initial=0)):
        found = np.where((i < halvings)[..., None, None], found @ found, found)
    return found


def _along(a: np.ndarray, e: np.ndarray) -> np.ndarray:
    """The derivative along e, whose norm has no influence on the precision."""
    n, size = a.shape[-1], _norm(e)[..., None, None]
    size = np.where(size == 0, 1, size)
    block = np.zeros((*a.shape[:-2], 2 * n, 2 * n), a.dtype)
    block[..., :n, :n] = block[..., n:, n:] = a
    block[..., :n, n:] = e / size
    return _exponential(block)[..., :n, n:] * size


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
