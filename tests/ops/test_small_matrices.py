"""The loops in C that factor batches of small matrices, against what factors are: products, in float64."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import smelt
from smelt.ir import small_matrices
from smelt.ir.errors import LibraryError
from smelt.ir.host_loops import loops
from smelt.ir.op import get
from smelt.lazy import core

pytestmark = pytest.mark.skipif(core.native is None, reason="there is no core in C")
rng = np.random.default_rng(9)
KINDS = [np.float32, np.float64]


@pytest.fixture(autouse=True)
def vectors(vector_bytes: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loops, "vector_bytes", vector_bytes)


def batches(dtype: Any, most: int = small_matrices.MOST) -> Iterator[tuple[int, int, np.ndarray, float]]:
    """Sizes, random matrices, and what errors are allowed, for matrices that are not nearly singular."""
    for n in (n for n in (*range(1, 10), 12, 15, 16, 17, 25, 32, 33, 64) if n <= most):
        for count in (4, 15, 16, 17, 40):
            yield n, count, rng.standard_normal((count, n, n)).astype(dtype), 200 * n * float(np.finfo(dtype).eps)


def near(found: np.ndarray, expected: np.ndarray, error: float) -> None:
    scale = max(1.0, float(np.abs(expected).max()))
    np.testing.assert_allclose(found, expected, rtol=0, atol=error * scale)


@pytest.mark.parametrize("dtype", KINDS)
def test_cholesky(dtype: Any) -> None:
    for n, _, x, error in batches(dtype, small_matrices.MOST_ROOTED):
        a = (x @ x.swapaxes(1, 2) + np.eye(n)).astype(dtype)
        hidden = a + np.triu(np.full((n, n), np.nan, dtype), 1)  # the other triangle is not looked at
        found = small_matrices.cholesky(hidden)
        assert found is not None and found.dtype == dtype
        wide = found.astype(np.float64)
        np.testing.assert_array_equal(wide, np.tril(wide))
        near(wide @ wide.swapaxes(1, 2), a, error)


@pytest.mark.parametrize("dtype", KINDS)
def test_solutions_and_inverses(dtype: Any) -> None:
    for n, count, x, error in batches(dtype):
        a = (x / 4 + 2 * np.eye(n)[rng.permutation(n)]).astype(dtype)
        wide = a.astype(np.float64)
        for k in (1, 3, 16):
            b = rng.standard_normal((count, n, k)).astype(dtype)
            found = small_matrices.solve(a, b)
            assert found is not None and found.dtype == dtype
            near(wide @ found, b, error * float(np.abs(found).max() + 1) * 4)
        found = small_matrices.inv(a)
        assert found is not None
        near(wide @ found, np.broadcast_to(np.eye(n), a.shape), error * float(np.abs(found).max() + 1) * 4)


@pytest.mark.parametrize("upper", [False, True])
@pytest.mark.parametrize("dtype", KINDS)
def test_triangular_systems(dtype: Any, upper: bool) -> None:
    for n, count, x, error in batches(dtype):
        triangle = np.triu(np.ones((n, n), bool)) if upper else np.tri(n, dtype=bool)
        a = (x / 4 + 2 * np.eye(n)).astype(dtype)
        hidden = np.where(triangle, a, np.nan).astype(dtype)  # the other triangle is not looked at
        for k in (1, 3, 16):
            b = rng.standard_normal((count, n, k)).astype(dtype)
            for some in (slice(None), slice(1 if n <= small_matrices.ALONE else 4)):
                found = small_matrices.solve_triangular(hidden[some], b[some], upper)
                assert found is not None and found.dtype == dtype
                wide = np.where(triangle, a[some].astype(np.float64), 0)
                near(wide @ found, b[some], error * float(np.abs(found).max() + 1) * 4)
    assert small_matrices.solve_triangular(hidden, b[:1], upper) is None


@pytest.mark.parametrize("dtype", KINDS)
def test_lu_factors(dtype: Any) -> None:
    for a, error in rectangles(dtype):
        a[1] = 0
        a[2] = 1
        a[3, 0] = 0  # rows are exchanged
        for some in (a, a[: 1 if max(a.shape[1:]) <= small_matrices.ALONE else 4]):
            found = get("lu").host(some)
            small = small_matrices.lu(some)
            assert small is not None
            for one, other in zip(found, small):
                np.testing.assert_array_equal(one, other)
            for name, got, want in get("lu").properties([some], found):
                np.testing.assert_allclose(got, want, rtol=0, atol=error, err_msg=name)
    a[2, 0, 0] = np.nan
    assert small_matrices.lu(a) is None


@pytest.mark.parametrize("dtype", KINDS)
def test_eigenvalues(dtype: Any) -> None:
    for n, count, x, error in batches(dtype, small_matrices.MOST_ROTATED):
        a = ((x + x.swapaxes(1, 2)) * dtype(10.0) ** rng.integers(-3, 4, (count, 1, 1))).astype(dtype)
        a[1] = 0
        a[2] = np.eye(n) * 3  # all values are the same
        a[3] = np.outer(x[0, 0], x[0, 0])  # all but one are 0
        found = small_matrices.eigh(np.where(np.tri(n, dtype=bool), a, np.nan).astype(dtype))
        assert found is not None
        values, vectors = (v.astype(np.float64) for v in found)
        assert (np.diff(values) >= 0).all()
        near(vectors.swapaxes(1, 2) @ vectors, np.broadcast_to(np.eye(n), a.shape), error)
        scale = np.abs(a).max((1, 2), keepdims=True) + (np.abs(a).max((1, 2), keepdims=True) == 0)
        near((a @ vectors - vectors * values[:, None]) / scale, np.zeros(a.shape), error)
        expected = np.linalg.eigvalsh(a.astype(np.float64))
        near(values / scale[..., 0], expected / scale[..., 0], error)


def rectangles(dtype: Any, most: int = small_matrices.MOST) -> Iterator[tuple[np.ndarray, float]]:
    """Random matrices of any shape, and what errors are allowed."""
    small = ((1, 1), (2, 2), (3, 5), (5, 3), (1, 7), (7, 1), (8, 8), (16, 9), (9, 16), (16, 16))
    for m, n in (*small, *(((17, 17), (32, 20), (20, 32), (32, 32)) if most > 16 else ())):
        for count in (5, 16, 37):
            yield rng.standard_normal((count, m, n)).astype(dtype), 200 * max(m, n) * float(np.finfo(dtype).eps)


@pytest.mark.parametrize("dtype", KINDS)
def test_determinants(dtype: Any) -> None:
    for _, count, a, error in batches(dtype):
        if count == 4:  # one of each kind below, and others
            continue
        a = a + 2 * np.eye(a.shape[-1], dtype=dtype)[::-1]
        a[1] = 0
        a[2] = np.nan
        a[3] = np.ones_like(a[3])
        found = small_matrices.det(a)
        assert found is not None and found.dtype == dtype
        expected = np.linalg.det(a.astype(np.float64))
        scale = np.abs(a).astype(np.float64).sum(-1).prod(-1)
        near((found / np.where(scale > 0, scale, 1))[4:], (expected / np.where(scale > 0, scale, 1))[4:], error)
        assert found[1] == 0 and np.isnan(found[2])
        assert found[3] == (1 if a.shape[-1] == 1 else 0)
    two = np.array([[[3, 5], [1.5, 2.5]], [[1 + 2**-23, 1], [1, 1 - 2**-23]]] * 20, np.float32)
    assert small_matrices.det(two).tolist() == [0, -(2.0**-46)] * 20  # rounded once
    wide = np.broadcast_to(np.diag([1e30, 1e30, 1e-30, 1e-30]), (5, 4, 4)).astype(np.float32)
    np.testing.assert_allclose(small_matrices.det(wide), np.ones(5), rtol=1e-5)


@pytest.mark.parametrize("dtype", KINDS)
def test_orthogonal_and_triangular_factors(dtype: Any) -> None:
    for a, error in rectangles(dtype):
        a[1] = 0
        a[2] = 1
        a[3, 1:, 0] = 0  # nothing to reflect
        found = small_matrices.qr(a)
        assert found is not None
        q, r = (x.astype(np.float64) for x in found)
        near(q @ r, a, error)
        near(q.swapaxes(1, 2) @ q, np.broadcast_to(np.eye(q.shape[-1]), (len(q), *[q.shape[-1]] * 2)), error)
        np.testing.assert_array_equal(r, np.triu(r))
        expected = np.linalg.qr(a[4:].astype(np.float64))  # with the same signs
        for x, y in zip((q[4:], r[4:]), expected):
            near(x, y, 1e3 * error)


@pytest.mark.parametrize("dtype", KINDS)
def test_singular_values(dtype: Any) -> None:
    for a, error in rectangles(dtype, small_matrices.MOST_ROTATED):
        a *= (10.0 ** rng.integers(-5, 6, (len(a), 1, 1))).astype(dtype)
        a[0] = 0
        a[1] = 1  # of rank 1
        a[2] = np.eye(*a.shape[1:])
        found = small_matrices.svd(a, False)
        assert found is not None
        u, s, vt = (x.astype(np.float64) for x in found)
        expected = np.linalg.svd(a.astype(np.float64), compute_uv=False)
        size = np.where(expected[:, :1] > 0, expected[:, :1], 1)
        near(s / size, expected / size, error)
        assert (np.diff(s) <= 0).all()
        near((u * s[:, None]) @ vt / size[..., None], a / size[..., None], error)
        for x in (u.swapaxes(1, 2) @ u, vt @ vt.swapaxes(1, 2)):
            near(x, np.broadcast_to(np.eye(s.shape[-1]), x.shape), error)
        alone = small_matrices.svd(a[3:4], False)  # whatever stands beside it
        assert alone is not None
        for x, y in zip(found, alone):
            np.testing.assert_array_equal(x[3], y[0])
        a[0], a[1] = np.nan, np.inf
        broken = small_matrices.svd(a, False)
        assert broken is not None
        for x, y in zip(found, broken):
            assert np.isnan(y[:2]).all()
            np.testing.assert_array_equal(x[2:], y[2:])


def test_what_has_no_factor_is_lapacks() -> None:
    regular = np.broadcast_to(np.eye(3, dtype=np.float32), (20, 3, 3))
    for bad in (0.0, np.nan, np.inf):
        a = regular.copy()
        a[18, 1, 1] = bad
        assert small_matrices.cholesky(a) is None and small_matrices.inv(a) is None
        assert small_matrices.solve(a, a) is None
        assert bad == 0 or small_matrices.eigh(a) is None
    singular = regular.copy()
    singular[7] = 1
    for name, rule in (("inv", "is singular"), ("cholesky", "is not positive definite")):
        with pytest.raises(LibraryError, match=rule):
            smelt.eval(getattr(smelt.linalg, name)(smelt.array(singular)))
    huge = np.full((4, 2, 2), 1e30, np.float32)
    huge[:, 0, 1] = huge[:, 1, 0] = 5e29
    assert small_matrices.eigh(huge) is None
    np.testing.assert_allclose(np.asarray(smelt.linalg.eigh(smelt.array(huge))[0]), [[5e29, 1.5e30]] * 4, rtol=1e-5)
    for other in (regular[:2], regular.astype(np.complex64), np.ones((9, 33, 33), np.float32), np.ones((9, 0, 0))):
        assert small_matrices.cholesky(other) is None


#: Functions of matrices, and the power of a factor of the matrix that is one of the result.
SCALED: dict[str, tuple[Any, float]] = {
    "eigvalsh": (smelt.linalg.eigvalsh, 1),
    "eigh": (lambda x: smelt.linalg.eigh(x)[0], 1),
    "svdvals": (smelt.linalg.svdvals, 1),
    "svd": (lambda x: smelt.linalg.svd(x)[1], 1),
    "qr": (lambda x: smelt.linalg.qr(x)[1], 1),
    "lu": (lambda x: smelt.linalg.lu(x)[2], 1),
    "cholesky": (smelt.linalg.cholesky, 0.5),
    "inv": (smelt.linalg.inv, -1),
    "pinv": (smelt.linalg.pinv, -1),
}


@pytest.mark.parametrize("name", SCALED)
@pytest.mark.parametrize("dtype", KINDS)
def test_numbers_of_any_size(dtype: Any, name: str) -> None:
    """What is found for a matrix times a power of two, be its squares zero or infinite, is that of the matrix."""
    function, power = SCALED[name]
    kind = getattr(smelt, np.dtype(dtype).name)
    for n in (1, 2, 3, 5, 9, 20):
        for count in (1, 6, 20):
            x = rng.standard_normal((count, n, n))
            x = (x @ x.swapaxes(1, 2) + np.eye(n)).astype(dtype)
            expected = np.asarray(function(smelt.array(x, dtype=kind)))
            for exponent in (-110, -80, -66, 66, 100) if dtype == np.float32 else (-900, -600, -340, 340, 900):
                found = np.asarray(function(smelt.array(np.ldexp(x, exponent), dtype=kind)))
                found = np.ldexp(found, -int(exponent * power))
                scale = np.abs(expected).max()
                np.testing.assert_allclose(found / scale, expected / scale, rtol=0, atol=300 * np.finfo(dtype).eps)


@pytest.mark.parametrize("dtype", KINDS)
def test_columns_of_any_size(dtype: Any) -> None:
    """Vectors are orthonormal where some columns, or what is left of them, are so small that their squares are zero."""
    exponents = (-40, -62, -66, -80, -120) if dtype == np.float32 else (-300, -480, -530, -900)
    kind, eps = getattr(smelt, np.dtype(dtype).name), float(np.finfo(dtype).eps)
    for n in (2, 3, 5, 12, 16):
        for exponent in exponents:
            small = np.ldexp(np.ones(n), np.linspace(0, exponent, n).astype(int))
            for scaled in (small, small[:, None], np.where(np.arange(n) % 2, 1, small[-1])):
                a = (rng.standard_normal((8, n, n)) * scaled).astype(dtype)
                x = smelt.array(a, dtype=kind)
                q, r = map(np.asarray, smelt.linalg.qr(x))
                u, _, vt = map(np.asarray, smelt.linalg.svd(x))
                v = np.asarray(smelt.linalg.eigh(x)[1])
                for vectors in (q, u, vt, v):
                    near(vectors.swapaxes(1, 2) @ vectors, np.broadcast_to(np.eye(n), a.shape), 100 * n * eps)
                sizes = np.abs(a).max(1, keepdims=True)
                near((q.astype(float) @ r) / sizes, a / sizes, 100 * n * eps)


def test_arrays_that_do_not_fit_are_refused() -> None:
    a = np.broadcast_to(np.eye(3), (5, 3, 3)).copy()
    good = (16, 0, True, 3, 1, a, a[:0], a.copy(), a[:0].copy())
    assert core.native.small_matrices(*good)
    for place, value in {0: 48, 1: 9, 3: 33, 4: 0, 5: a[:4], 7: a[:4].copy()}.items():
        with pytest.raises((ValueError, TypeError)):
            core.native.small_matrices(*good[:place], value, *good[place + 1 :])
    with pytest.raises(ValueError):
        core.native.small_matrices(16, 1, True, 3, 2, a, a[:0], a.copy(), a[:0].copy())
    with pytest.raises(ValueError):
        core.native.small_matrices(16, 4, True, 3, 1, a, a[:0], np.empty((5, 3)), a[:4].copy())
    for what, rows, columns, sizes in (
        (2, 3, 3, (45, 0)),  # no right-hand sides
        (5, 3, 1, (6, 0)),
        (6, 3, 1, (6, 0)),
        (7, 3, 3, (45, 44)),
        (7, 5, 3, (75, 45)),
        (8, 3, 3, (15, 89)),
        (9, 3, 3, (45, 29)),
    ):
        with pytest.raises(ValueError):
            core.native.small_matrices(16, what, True, rows, columns, a, a[:0], *map(np.empty, sizes))
    with pytest.raises(ValueError):  # more columns than rows
        core.native.small_matrices(16, 7, True, 1, 3, a, a[:0], np.empty(45), np.empty(180))


def by_series(a: np.ndarray) -> np.ndarray:
    """Exponentials of matrices by their power series after halvings, in the widest numbers there are."""
    x = a.astype(np.clongdouble)
    halvings = max(0, int(np.ceil(np.log2(max(np.abs(x).sum(-2).max(), 1)))) + 2)
    x = x / np.longdouble(2) ** halvings
    found = term = np.broadcast_to(np.eye(a.shape[-1], dtype=x.dtype), x.shape)
    for k in range(1, 24):
        term = term @ x / k
        found = found + term
    for _ in range(halvings):
        found = found @ found
    return found


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.complex64, np.complex128])
def test_exponentials(dtype: Any) -> None:
    """Of matrices that need no halving, as many as their norm says, or far fewer; in batches with others."""
    eps = float(np.finfo(dtype).eps)
    for n in (1, 2, 3, 5, 8, 11, 16):
        made = []
        for scale in (0.01, 1.0, 8.0):
            x = rng.standard_normal((2, n, n)) * scale / n
            made += [*x, *(x + scale * np.eye(n))]
        made += [*np.triu(rng.standard_normal((2, n, n)) * 10, 1), np.zeros((n, n)), np.eye(n) * -50]
        a = np.array(made)
        if np.dtype(dtype).kind == "c":
            a = a + 1j * rng.permutation(a, axis=0) * 0.5
        a = a.astype(dtype)
        expected = by_series(a)
        for given in (a, a[::-1], a[:1], a[-3:]):
            found = get("expm").host(given)
            assert found.dtype == dtype
            wanted = expected[[next(i for i in range(len(a)) if np.array_equal(a[i], x)) for x in given]]
            sizes = np.abs(wanted).max((-1, -2)) * np.maximum(1, np.abs(given).sum(-2).max(-1).clip(0, 50))
            errors = np.abs(found - wanted).max((-1, -2)) / sizes
            assert errors.max() < (2 * eps if eps > 1e-10 else 100 * eps), (n, errors)


def test_exponentials_that_are_not_finite() -> None:
    a = np.array([np.eye(2), [[np.nan, 0], [0, 0]], np.eye(2) * 1e5, [[np.inf, 0], [0, 0]], np.eye(2) * -1e9])
    for dtype in (np.float32, np.float64):
        found = get("expm").host(a.astype(dtype))
        np.testing.assert_allclose(found[0], np.e * np.eye(2), rtol=1e-6)
        assert np.isnan(found[1]).all() and np.isnan(found[3]).all() and not np.isfinite(found[2]).all()
        np.testing.assert_array_equal(found[4], 0)
