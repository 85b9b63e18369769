"""Factors and solutions. A matrix that has none is an error here, so counts of failures are 0."""

from __future__ import annotations

from typing import Any

import smelt
from smelt import array, linalg

from ...translating import Refused
from ..graph import Node, rule


def _fine(x: array) -> array:
    """That nothing failed, for each matrix."""
    return smelt.zeros(x.shape[:-2], smelt.int32)


def _transposed(x: array) -> array:
    return smelt.swapaxes(x, -1, -2)


def _adjoint(x: array) -> array:
    return smelt.conj(_transposed(x)) if x.dtype.is_complex else _transposed(x)


@rule("aten.linalg_cholesky_ex", "aten.cholesky")
def _cholesky(n: Node, x: array, upper: bool = False, *_: Any) -> Any:
    found = linalg.cholesky(x, upper)
    return [found, _fine(x)] if "_ex" in n.op else found


@rule("aten.linalg_inv_ex")
def _inv(n: Node, x: array, check: bool) -> list[array]:
    return [linalg.inv(x), _fine(x)]


@rule("aten._linalg_svd")
def _svd(n: Node, x: array, full: bool, vectors: bool, driver: Any) -> list[array]:
    if not vectors:
        empty = smelt.zeros((0,), x.dtype)
        return [empty, linalg.svdvals(x), empty]
    return list(linalg.svd(x, full_matrices=full))


@rule("aten._linalg_eigh")
def _eigh(n: Node, x: array, triangle: str, vectors: bool) -> list[array]:
    if not vectors:
        return [linalg.eigvalsh(x, triangle), smelt.zeros((0,), x.dtype)]
    return list(linalg.eigh(x, triangle))


@rule("aten.linalg_eig")
def _eig(n: Node, x: array) -> list[array]:
    return list(linalg.eig(x))


@rule("aten.linalg_eigvals", "aten._linalg_eigvals")
def _eigvals(n: Node, x: array) -> array:
    return linalg.eigvals(x)


@rule("aten.linalg_qr")
def _qr(n: Node, x: array, mode: str) -> list[array]:
    q, r = linalg.qr(x, mode="reduced" if mode == "r" else mode)
    return [smelt.zeros((0,), x.dtype), r] if mode == "r" else [q, r]


def _pivoted(name: str, pivot: bool) -> None:
    if not pivot:
        raise Refused("without exchanges of rows is not translated")


@rule("aten.linalg_lu")
def _lu(n: Node, x: array, pivot: bool) -> list[array]:
    _pivoted(n.op, pivot)
    rows, low, high = linalg.lu(x)
    order = smelt.arange(x.shape[-2])
    exchange = (rows[..., None, :] == order[:, None]).astype(x.dtype)
    return [_transposed(exchange), low, high]


@rule("aten.linalg_lu_factor_ex")
def _lu_factor(n: Node, x: array, pivot: bool, check: bool) -> list[array]:
    """Pivots count from 1."""
    _pivoted(n.op, pivot)
    factors, pivots = linalg.lu_factor(x)
    return [factors, pivots.astype(smelt.int32) + 1, _fine(x)]


@rule("aten.lu_unpack")
def _lu_unpack(n: Node, factors: array, pivots: array, data: bool, exchanges: bool) -> list[array]:
    """The exchanges as a matrix, and both triangles."""
    rows, columns = factors.shape[-2:]
    least = min(rows, columns)
    low = smelt.tril(factors[..., :, :least], -1) + smelt.eye(rows, least, dtype=factors.dtype)
    order = smelt.broadcast_to(smelt.arange(rows).astype(smelt.int32), (*pivots.shape[:-1], rows))
    places = smelt.arange(rows)
    for k in range(pivots.shape[-1]):
        other = pivots[..., k : k + 1].astype(smelt.int32) - 1
        mine, theirs = order[..., k : k + 1], smelt.take_along_axis(order, other, -1)
        order = smelt.where(places == other, mine, order)
        order = smelt.where(places == k, theirs, order)
    exchange = (order[..., None, :] == smelt.arange(rows)[:, None]).astype(factors.dtype)
    return [exchange, low, smelt.triu(factors[..., :least, :])]


@rule("aten.linalg_lu_solve")
def _lu_solve(n: Node, factors: array, pivots: array, b: array, left: bool, adjoint: bool) -> array:
    given = (factors, pivots - 1)
    if left:
        return linalg.lu_solve(given, b, 2 if adjoint else 0)
    # X·A = B is Aᵀ·Xᵀ = Bᵀ.
    if adjoint and factors.dtype.is_complex:
        return smelt.conj(_transposed(linalg.lu_solve(given, smelt.conj(_transposed(b)), 0)))
    return _transposed(linalg.lu_solve(given, _transposed(b), 0 if adjoint else 1))


@rule("aten._linalg_det")
def _det(n: Node, x: array) -> list[array]:
    return [linalg.det(x), *_factors(x)]


@rule("aten._linalg_slogdet")
def _slogdet(n: Node, x: array) -> list[array]:
    return [*linalg.slogdet(x), *_factors(x)]


def _factors(x: array) -> tuple[array, array]:
    factors, pivots = linalg.lu_factor(x)
    return factors, pivots.astype(smelt.int32) + 1


@rule("aten._linalg_solve_ex")
def _solve(n: Node, a: array, b: array, left: bool, check: bool) -> list[array]:
    one = b.ndim == 1 or (b.ndim == a.ndim - 1 and b.shape == a.shape[:-1])
    b = b[..., None] if one else b
    found = linalg.solve(a, b) if left else _transposed(linalg.solve(_transposed(a), _transposed(b)))
    return [found[..., 0] if one else found, *_factors(a), _fine(a)]


@rule("aten.linalg_solve_triangular")
def _solve_triangular(n: Node, a: array, b: array, upper: bool, left: bool, unit: bool) -> array:
    if unit:
        one = smelt.eye(a.shape[-1], dtype=a.dtype)
        a = smelt.where(one != 0, one, a)
    if left:
        return linalg.solve_triangular(a, b, upper=upper)
    return _transposed(linalg.solve_triangular(_transposed(a), _transposed(b), upper=not upper))


@rule("aten.triangular_solve")
def _triangular_solve(n: Node, b: array, a: array, upper: bool, turned: bool, unit: bool) -> list[array]:
    matrix, upper = (_transposed(a), not upper) if turned else (a, upper)
    return [_solve_triangular(n, matrix, b, upper, True, unit), a]


@rule("aten.cholesky_solve")
def _cholesky_solve(n: Node, b: array, factor: array, upper: bool) -> array:
    return linalg.cho_solve((factor, not upper), b)


@rule("aten.cholesky_inverse")
def _cholesky_inverse(n: Node, factor: array, upper: bool) -> array:
    one = smelt.broadcast_to(smelt.eye(factor.shape[-1], dtype=factor.dtype), factor.shape)
    return linalg.cho_solve((factor, not upper), one)


@rule("aten.linalg_matrix_exp")
def _expm(n: Node, x: array) -> array:
    return linalg.expm(x)


@rule("aten.linalg_pinv")
def _pinv(n: Node, x: array, *options: Any) -> array:
    """Overloads state a relative tolerance, or an absolute and a relative one, which may be arrays."""
    *tolerances, hermitian = options
    absolute, relative = tolerances if len(tolerances) == 2 else (None, *tolerances)
    if hermitian:  # only what is on and below the diagonal is read
        x = smelt.tril(x) + _adjoint(smelt.tril(x, -1))
    if absolute is None and (relative is None or isinstance(relative, float)):
        return linalg.pinv(x, rtol=relative)
    u, s, v = linalg.svd(x, full_matrices=False)
    if relative is None:
        relative = max(x.shape[-2:]) * float(smelt.finfo(s.dtype).eps)
    largest = smelt.max(s, -1) if s.shape[-1] else smelt.zeros(s.shape[:-1], s.dtype)
    least = smelt.maximum(0.0 if absolute is None else absolute, relative * largest)
    kept = s > smelt.expand_dims(smelt.broadcast_to(least, s.shape[:-1]), -1)
    inverse = smelt.where(kept, 1 / smelt.where(kept, s, 1), 0)
    return _adjoint(v) @ (smelt.expand_dims(inverse, -1) * _adjoint(u))


@rule("aten.linalg_lstsq")
def _lstsq(n: Node, a: array, b: array, rcond: float | None, driver: Any) -> list[Any]:
    found = linalg.lstsq(a, b, rcond)
    return list(found)


@rule("aten.linalg_householder_product")
def _householder(n: Node, x: array, scales: array) -> array:
    """The product of reflectors 1 - t·v·vᴴ, whose vectors are the columns below the diagonal."""
    rows, columns = x.shape[-2:]
    found = smelt.broadcast_to(smelt.eye(rows, columns, dtype=x.dtype), x.shape)
    for k in range(scales.shape[-1] - 1, -1, -1):
        below = smelt.where(smelt.arange(rows) > k, x[..., k], 0)
        v = smelt.where(smelt.arange(rows) == k, 1, below)[..., None]
        found = found - scales[..., k, None, None] * (v @ (_adjoint(v) @ found))
    return found
