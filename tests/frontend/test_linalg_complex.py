"""`smelt.linalg` of complex matrices: factors and spectra against NumPy, and what is independent of phases."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import smelt

L = smelt.linalg
DTYPES = (np.complex64,)
each_dtype = pytest.mark.parametrize("dtype", DTYPES, ids=lambda d: d.__name__)
SHAPES = ((3, 3), (4, 2), (2, 4), (1, 1), (0, 0), (0, 3, 3), (2, 5, 4, 3), (2, 3, 4), (30, 20))


def numbers(shape: tuple[int, ...], dtype: Any, seed: int = 3) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return np.asarray(rng.standard_normal(shape) + 1j * rng.standard_normal(shape)).astype(dtype)


def adjoint(x: np.ndarray) -> np.ndarray:
    return np.swapaxes(x, -1, -2).conj()


def close(found: Any, want: Any, dtype: Any) -> None:
    bound = 2e-4 if dtype is np.complex64 else 1e-11
    np.testing.assert_allclose(np.asarray(found), want, rtol=bound, atol=bound)


@each_dtype
@pytest.mark.parametrize("compiled", [False, True])
def test_hermitian_matrices(dtype: Any, compiled: bool) -> None:
    way = smelt.compile if compiled else lambda f: f
    for shape in ((3, 3), (1, 1), (0, 0), (0, 2, 2), (2, 5, 4, 4), (40, 40)):
        a = numbers(shape, dtype)
        for triangle in ("L", "U"):
            part = np.tril(a, -1) if triangle == "L" else adjoint(np.triu(a, 1))
            whole = part + adjoint(part) + np.tril(np.triu(a)).real
            w, v = way(lambda a, t=triangle: L.eigh(a, t))(smelt.array(a))
            assert w.dtype == smelt.array(a).real.dtype and v.dtype == smelt.array(a).dtype
            close(w, np.linalg.eigvalsh(whole), dtype)
            close(way(lambda a, t=triangle: L.eigvalsh(a, t))(smelt.array(a)), np.linalg.eigvalsh(whole), dtype)
            v = np.asarray(v)
            close(v * np.asarray(w)[..., None, :], whole @ v, dtype)
            if shape[-1]:
                largest = np.take_along_axis(v, np.abs(v).argmax(-2)[..., None, :], -2)
                close(largest.imag, np.zeros(largest.shape), dtype)
        positive = a @ adjoint(a) + np.eye(shape[-1])
        factor = way(L.cholesky)(smelt.array(positive.astype(dtype)))
        close(factor, np.linalg.cholesky(positive.astype(dtype)), dtype)
        close(L.cholesky(smelt.array(positive.astype(dtype)), upper=True), adjoint(np.asarray(factor)), dtype)


@each_dtype
def test_oblong_matrices(dtype: Any) -> None:
    for shape in SHAPES:
        a, m, n = numbers(shape, dtype), *shape[-2:]
        k = min(m, n)
        x = smelt.array(a)
        q, r = (np.asarray(v) for v in L.qr(x))
        close(q @ r, a, dtype)
        close(adjoint(q) @ q, np.broadcast_to(np.eye(k), (*shape[:-2], k, k)), dtype)
        want = np.linalg.svd(a, compute_uv=False)
        close(L.svdvals(x), want, dtype)
        for full in (True, False):
            u, s, vh = (np.asarray(v) for v in L.svd(x, full_matrices=full))
            assert u.shape[-2:] == (m, m if full else k) and vh.shape[-2:] == (n if full else k, n)
            close(s, want, dtype)
            close((u[..., :k] * s[..., None, :]) @ vh[..., :k, :], a, dtype)
            for square in (adjoint(u) @ u, vh @ adjoint(vh)):
                close(square, np.broadcast_to(np.eye(square.shape[-1]), square.shape), dtype)
        if k:
            close(L.pinv(x), np.linalg.pinv(a), dtype)
            assert np.array_equal(L.matrix_rank(x), np.linalg.matrix_rank(a))
            close(L.matrix_norm(x, ord="nuc"), want.sum(-1), dtype)
            close(L.matrix_norm(x, ord=2), want.max(-1), dtype)
    a, b = numbers((5, 3), dtype), numbers((5, 2), dtype, 4)
    found, left, rank, s = L.lstsq(smelt.array(a), smelt.array(b))
    want = np.linalg.lstsq(a, b, rcond=None)
    close(found, want[0], dtype)
    close(left, want[1], dtype)
    assert rank.item() == want[2]
    close(s, want[3], dtype)


def _span(v: smelt.array) -> smelt.array:
    return smelt.abs(v) * smelt.array(np.arange(1, 1 + v.shape[-1]), v.real.dtype)


FUNCTIONS: dict[str, Callable[[smelt.array], smelt.array]] = {
    "cholesky": lambda a: L.cholesky(a @ smelt.conj(a.T) + smelt.eye(3)),
    "qr": lambda a: smelt.abs(L.qr(a)[0]) + L.qr(a)[1],
    "eigh": lambda a: _span(L.eigh(a)[1]) + L.eigh(a)[0],
    "eigvalsh": lambda a: L.eigvalsh(a, "U"),
    "svd": lambda a: L.svd(a)[0] @ L.svd(a)[2],
    "vectors": lambda a: _span(L.svd(a)[0]) + L.svd(a)[0],
    "svdvals": L.svdvals,
    "pinv": L.pinv,
    "lstsq": lambda a: L.lstsq(a[:, :2], smelt.sin(a))[0],
    "residuals": lambda a: L.lstsq(a[:, :2], smelt.sin(a))[1],
    "nuclear norm": lambda a: L.norm(a, "nuc"),
}


@each_dtype
@pytest.mark.parametrize("name", FUNCTIONS)
def test_derivatives(name: str, dtype: Any) -> None:
    """Forward against central differences, and reverse against forward: Re Σ conj(cotangent) · tangent is the same."""
    f = FUNCTIONS[name]
    x = numbers((3, 3), dtype) + np.diag([1, 4, 9]).astype(dtype)
    t = numbers((3, 3), dtype, 5)
    h = 1e-2 if dtype is np.complex64 else 1e-5
    near = {i: np.asarray(f(smelt.array(x + np.asarray(i * h * t, dtype)))).astype(complex) for i in (-2, -1, 1, 2)}
    want = (8 * (near[1] - near[-1]) - (near[2] - near[-2])) / (12 * h)
    _, (found,) = smelt.jvp(f, [smelt.array(x)], [smelt.array(t)])
    bound = 3e-3 if dtype is np.complex64 else 1e-7
    scale = max(1.0, np.abs(want).max())
    np.testing.assert_allclose(np.asarray(found), want, rtol=0, atol=bound * scale)
    outs = f(smelt.array(x))
    c = numbers(outs.shape, dtype, 6)
    c = c if outs.dtype.name.startswith("complex") else c.real
    for way in (lambda g: g, smelt.compile):
        _, (pulled,) = way(lambda x, c: smelt.vjp(f, [x], [c]))(smelt.array(x), smelt.array(c))
        left, right = (np.conj(c) * np.asarray(found)).sum().real, (np.conj(np.asarray(pulled)) * t).sum().real
        np.testing.assert_allclose(left, right, rtol=10 * bound, atol=bound * scale)


@each_dtype
def test_batches_are_loops(dtype: Any) -> None:
    many = numbers((4, 3, 3), dtype) + np.diag([1, 4, 9]).astype(dtype)
    for f in FUNCTIONS.values():
        want = np.stack([np.asarray(f(smelt.array(one))) for one in many])
        close(smelt.vmap(f)(smelt.array(many)), want, dtype)


@each_dtype
def test_wrong_matrices_are_errors(dtype: Any) -> None:
    a = -np.eye(2, dtype=dtype)
    with pytest.raises(np.linalg.LinAlgError, match=r"smelt\.cholesky: the matrix is not positive definite"):
        smelt.eval(L.cholesky(smelt.array(a)))
    bad = np.full((2, 2), np.nan, dtype)
    for found in (L.cholesky(smelt.array(bad)), *L.eigh(smelt.array(bad)), *L.svd(smelt.array(bad))):
        assert np.isnan(np.asarray(found)).any()
