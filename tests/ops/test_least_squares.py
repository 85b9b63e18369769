"""Least squares by LAPACK's factors: all shapes and dtypes, and matrices that are left to singular values."""

from __future__ import annotations

import numpy as np
import pytest

from smelt.ir import lapack

pytestmark = pytest.mark.host("about LAPACK")

SHAPES = [((1000, 3), 2), ((3, 1000), 1), ((40, 40), 3), ((5, 2, 30, 7), 2), ((2, 7, 30), 2), ((1, 1), 1), ((50, 1), 1),
          ((1, 50), 4), ((300, 40), 1), ((2, 90, 170), 3)]  # fmt: skip


def numbers(rng: np.random.Generator, shape: tuple[int, ...], dtype: str) -> np.ndarray:
    x = rng.standard_normal(shape)
    return (x + 1j * rng.standard_normal(shape) if dtype.startswith("c") else x).astype(dtype)


@pytest.fixture(params=["as it pays", "by reflectors", "by gels"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.param != "as it pays":
        limit = 0 if request.param == "by reflectors" else 1 << 40
        monkeypatch.setattr(lapack, "OF_REFLECTORS", limit)
        monkeypatch.setattr(lapack, "MOST_OF_GELS", limit)


@pytest.mark.usefixtures("way")
@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128"])
@pytest.mark.parametrize("shape,columns", SHAPES)
def test_solutions(shape: tuple[int, ...], columns: int, dtype: str) -> None:
    rng = np.random.default_rng(0)
    a, b = numbers(rng, shape, dtype), numbers(rng, (*shape[:-1], columns), dtype)
    given = a.copy(), b.copy()
    found = lapack.least_squares(a, b, 1e-7)
    if found is None and lapack._lapack(a, 1) is None:
        pytest.skip("NumPy has another LAPACK")
    wide = "complex128" if dtype.startswith("c") else "float64"
    want = np.linalg.pinv(a.astype(wide)) @ b.astype(wide)
    single = dtype in ("float32", "complex64")
    assert found is not None and found.dtype == a.dtype
    np.testing.assert_allclose(found, want, rtol=0, atol=(2e-3 if single else 1e-10) * np.abs(want).max())
    assert (a == given[0]).all() and (b == given[1]).all()


@pytest.mark.usefixtures("way")
@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64"])
def test_what_is_left_to_singular_values(dtype: str) -> None:
    rng = np.random.default_rng(0)
    a, b = numbers(rng, (60, 4), dtype), numbers(rng, (60, 1), dtype)
    rank = a.copy()
    rank[:, 3] = rank[:, 1]
    limits = np.finfo(dtype)
    infinite = a.copy()
    infinite[3, 2] = np.inf
    for matrix in (rank, np.zeros_like(a), infinite, a * np.nan, a * (limits.max / 8), a * limits.tiny):
        assert lapack.least_squares(matrix, b, 1e-6) is None
        assert lapack.least_squares(matrix.T, b[:4], 1e-6) is None
    assert lapack.least_squares(a, b * (limits.max / 8), 1e-6) is None
    zero = lapack.least_squares(a, 0 * b, 1e-6)
    assert zero is None or not zero.any()
