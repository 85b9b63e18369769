"""LAPACK called directly, against what factors are, in float64, and against NumPy's functions."""

from __future__ import annotations

import tracemalloc
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import smelt
from smelt.ir import lapack, numpy_blas
from smelt.ir.errors import LibraryError
from smelt.ir.op import get

pytestmark = pytest.mark.skipif(
    numpy_blas.lapack_function("spotrf") is None, reason="NumPy has another library than OpenBLAS"
)
KINDS = [np.float32, np.float64, np.complex64, np.complex128]
SHAPES = [(2, 70, 64), (1, 1, 65, 80)]
WORTH = {name: getattr(lapack, name) for name in dir(lapack) if name.startswith("OF_")}


@pytest.fixture(autouse=True)
def small_and_alone(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Matrices of some tens of rows, and no threads of the library, which wait for each other in loops."""
    monkeypatch.setattr(lapack, "FEW", 64)
    for name in WORTH:
        monkeypatch.setattr(lapack, name, (0, 0))
    threads = numpy_blas.threads()
    assert threads is not None
    before = threads.get()
    threads.set(1)
    yield
    threads.set(before)


def random(shape: tuple[int, ...], dtype: Any) -> np.ndarray:
    rng = np.random.default_rng(5)
    x = rng.standard_normal(shape)
    return (x + 1j * rng.standard_normal(shape) if np.dtype(dtype).kind == "c" else x).astype(dtype)


def near(found: np.ndarray, expected: np.ndarray, dtype: Any) -> None:
    error = 500 * float(np.finfo(dtype).eps) * max(1.0, float(np.abs(expected).max()))
    np.testing.assert_allclose(found, np.broadcast_to(expected, found.shape), rtol=0, atol=error)


def adjoint(x: np.ndarray) -> np.ndarray:
    return x.swapaxes(-1, -2).conj()


def wide(x: np.ndarray) -> np.ndarray:
    return x.astype(np.complex128 if x.dtype.kind == "c" else np.float64)


def orders(x: np.ndarray) -> list[np.ndarray]:
    """The same numbers in memory by rows, by columns, and with gaps."""
    apart = np.zeros((*x.shape[:-1], 2 * x.shape[-1]), x.dtype)[..., ::2]
    apart[...] = x
    return [x, np.ascontiguousarray(x.swapaxes(-1, -2)).swapaxes(-1, -2), apart]


@pytest.mark.parametrize("dtype", KINDS)
@pytest.mark.parametrize("shape", SHAPES)
def test_qr(shape: tuple[int, ...], dtype: Any) -> None:
    for a in orders(random(shape, dtype)):
        found = lapack.qr(a)
        assert found is not None
        q, r = found
        assert q.dtype == r.dtype == dtype
        near(wide(q) @ r, a, dtype)
        near(adjoint(wide(q)) @ q, np.eye(q.shape[-1]), dtype)
        np.testing.assert_array_equal(r, np.triu(r))


@pytest.mark.parametrize("dtype", KINDS)
@pytest.mark.parametrize("shape", SHAPES)
def test_svd(shape: tuple[int, ...], dtype: Any) -> None:
    for a in orders(random(shape, dtype)):
        known = np.linalg.svd(wide(a), compute_uv=False)
        for full in (False, True):
            found = lapack.svd(a, full)
            assert found is not None
            u, s, vt = found
            k = s.shape[-1]
            assert [x.shape for x in found] == [x.shape for x in np.linalg.svd(a, full_matrices=full)]
            near((wide(u)[..., :k] * s[..., None, :]) @ vt[..., :k, :], a, dtype)
            near(adjoint(wide(u)) @ u, np.eye(u.shape[-1]), dtype)
            near(wide(vt) @ adjoint(vt), np.eye(vt.shape[-2]), dtype)
            near(s, known, dtype)
            assert s.dtype == np.zeros(0, dtype).real.dtype
        values = lapack.svd(a, full=False, vectors=False)
        assert values is not None
        near(values[1], known, dtype)


@pytest.mark.parametrize("dtype", KINDS)
@pytest.mark.parametrize("lead", [(), (2,), (1, 2)])
def test_symmetric_matrices(lead: tuple[int, ...], dtype: Any) -> None:
    n = 66
    x = wide(random((*lead, n, n), dtype))
    a = (x @ adjoint(x) / n + np.eye(n)).astype(dtype)
    hidden = np.where(np.tri(n, dtype=bool), a, np.nan).astype(dtype)  # the other triangle is not looked at
    for b in orders(hidden):
        factor = lapack.cholesky(b)
        assert factor is not None and factor.dtype == dtype
        np.testing.assert_array_equal(factor, np.tril(factor))
        near(wide(factor) @ adjoint(factor), a, dtype)
        found, values = lapack.eigh(b), lapack.eigh(b, vectors=False)
        assert found is not None and values is not None
        w, v = found
        near(wide(a) @ v, v * w[..., None, :], dtype)
        near(adjoint(wide(v)) @ v, np.eye(n), dtype)
        near(w, np.linalg.eigvalsh(wide(a)), dtype)
        near(values[0], w, dtype)


@pytest.mark.parametrize("dtype", KINDS)
@pytest.mark.parametrize("upper", [False, True])
@pytest.mark.parametrize(
    ("left", "right"),
    [((70, 70), (70, 1)), ((2, 1, 64, 64), (3, 64, 5)), ((65, 65), (2, 65, 70)), ((3, 64, 64), (64, 0))],
)
def test_triangular_systems(left: Any, right: Any, upper: bool, dtype: Any) -> None:
    n = left[-1]
    a, b = random(left, dtype) / n + 2 * np.eye(n), random(right, dtype)
    triangle = (np.triu if upper else np.tril)(a)
    mask = np.tri(n, dtype=bool)
    hidden = np.where(mask.T if upper else mask, a, np.nan).astype(dtype)
    for x, y in zip(orders(hidden), orders(b)):
        found = lapack.solve_triangular(x, y, upper)
        if not b.size:
            assert found is None
            continue
        assert found is not None and found.dtype == dtype
        near(found, np.linalg.solve(wide(triangle.astype(dtype)), np.broadcast_to(wide(b), found.shape)), dtype)


@pytest.mark.parametrize("count", [1, 2])
def test_a_transposed_triangle_is_read_where_it_lies(count: int) -> None:
    n = 256
    a, b = np.eye(n, dtype=np.float32), np.ones((n, count), np.float32)
    for matrix in (a, a.T):
        lapack.solve_triangular(matrix, b, upper=True)
        tracemalloc.start()
        lapack.solve_triangular(matrix, b, upper=True)
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert peak < a.nbytes / 4


def test_what_has_no_factors_is_numpys() -> None:
    a = np.broadcast_to(np.eye(66, dtype=np.float32), (3, 66, 66)).copy()
    a[1, 7, 7] = -1
    assert lapack.cholesky(a) is None
    with pytest.raises(LibraryError, match="matrix 1 of the batch is not positive definite"):
        smelt.eval(smelt.linalg.cholesky(smelt.array(a)))
    a[1, 7, 7] = np.nan
    for function in (smelt.linalg.cholesky, smelt.linalg.eigvalsh, smelt.linalg.svdvals):
        found = np.asarray(function(smelt.array(a)))
        assert np.isnan(found[1]).any() and not np.isnan(found[[0, 2]]).any()
    for other in (a[..., :5], a.astype(np.float16), a[:0], a[0, :, :0]):
        assert lapack.qr(other) is None
    a[1, 7, 7] = 0
    with pytest.raises(LibraryError, match="matrix 1 of the batch is singular"):
        smelt.eval(smelt.linalg.solve_triangular(smelt.array(a), smelt.ones((3, 66, 1))))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(
    ("shape", "more"), [((48, 48), ()), ((3, 50, 50), (3,)), ((2, 1, 64, 64), (1, 3)), ((1, 49, 49), (5,))]
)
def test_large_systems(shape, more, dtype):
    """LAPACK, called directly, gives what NumPy's functions give."""
    rng = np.random.default_rng(3)
    a, b = (rng.standard_normal(s).astype(dtype) for s in (shape, (*more, shape[-1], 5)))
    close = {"rtol": 2e-3, "atol": 2e-3} if dtype is np.float32 else {"rtol": 1e-9, "atol": 1e-10}
    found = lapack.solve(a, b)
    np.testing.assert_allclose(found, np.linalg.solve(a, b), **close)
    assert found.dtype == dtype
    np.testing.assert_allclose(lapack.inv(a), np.linalg.inv(a), **close)
    np.testing.assert_allclose(lapack.det(a), np.linalg.det(a), rtol=1e-3 if dtype is np.float32 else 1e-9)
    for have, want in zip(lapack.slogdet(a), np.linalg.slogdet(a)):
        np.testing.assert_allclose(have, want, rtol=1e-4)
        assert have.dtype == dtype


@pytest.mark.filterwarnings("ignore")
def test_large_singular_systems():
    a = np.ones((2, 64, 64))
    assert lapack.solve(a, a) is None and lapack.inv(a) is None
    assert not lapack.det(a).any()
    sign, log = lapack.slogdet(a)
    assert not sign.any() and (log == -np.inf).all()
    assert np.isnan(lapack.det(a * np.nan)).all()
    wide = np.eye(600, dtype=np.float32) * np.repeat(np.float32([1e30, 1e-30]), 300)
    np.testing.assert_allclose(lapack.det(wide[None]), 1, rtol=1e-3)  # no product of all is in range
    with pytest.raises(smelt.SmeltError, match="is singular"):
        smelt.eval(smelt.linalg.solve(smelt.ones((64, 64)), smelt.ones(64)))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_one_small_matrix_is_numpys(dtype: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A call from here costs more than such a factor; many of them are worth it."""
    for name, worth in WORTH.items():
        monkeypatch.setattr(lapack, name, worth)
    a = np.eye(66, dtype=dtype)
    many = np.broadcast_to(a, (100, 66, 66))
    assert lapack.cholesky(a) is None and lapack.det(a) is None and lapack.qr(a[:40, :40]) is None
    for function in (lapack.cholesky, lapack.det, lapack.inv, lapack.qr, lapack.eigh):
        assert function(many) is not None


def test_work_space_is_asked_for_once() -> None:
    a = random((67, 71), np.float32)
    assert lapack.qr(a) is not None
    before = dict(lapack._rooms)
    assert before and lapack.qr(random((5, 67, 71), np.float32)) is not None and lapack._rooms == before


@pytest.mark.parametrize("dtype", KINDS)
@pytest.mark.parametrize("shape", [(1, 1), (3, 3), (5, 8), (8, 5), (16, 16), (33, 33), (40, 30)])
@pytest.mark.parametrize("count", [1, 3, 300])
def test_factors_with_exchanges(shape: tuple[int, int], count: int, dtype: Any) -> None:
    """However they are computed, of few matrices or many: no factor of a row is larger than pivots allow."""
    a = random((count, *shape), dtype)
    a[0] = 0
    factors, pivots, order = get("lu").host(a)
    k = min(shape)
    left, right = np.tril(wide(factors[..., :k]), -1), np.triu(wide(factors[..., :k, :]))
    assert np.abs(left).max() < 1.5
    near((left + np.eye(shape[0], k)) @ right, np.take_along_axis(a, order[..., None].astype(np.intp), 1), dtype)
    expected = np.tile(np.arange(shape[0]), (count, 1))
    for i in range(k):
        for one, p in zip(expected, pivots[:, i]):
            one[[i, p]] = one[[p, i]]
    np.testing.assert_array_equal(order, expected)
