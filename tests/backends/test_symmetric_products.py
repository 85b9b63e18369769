"""Products of a matrix with its own transpose: the upper triangle is computed, and copied."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import smelt
from smelt.backends.cpu import blas, products
from smelt.ir.settings import override

if blas.library() is None:
    pytest.skip("there is no BLAS", allow_module_level=True)

#: Enough work for the library.
SHAPES = ((160, 70), (70, 161), (90, 257))
DTYPES = ("float32", "float64", "complex64", "complex128")


def own_product(x: Any) -> Any:
    return x.T @ x, x @ x.T


def drawn(shape: tuple[int, ...], dtype: str) -> np.ndarray:
    rng = np.random.default_rng(0)
    x = rng.standard_normal(shape)
    return (x + 1j * rng.standard_normal(shape) if "complex" in dtype else x).astype(dtype)


def compiled(x: np.ndarray) -> tuple[list[np.ndarray], str]:
    with override(tier="program", small_work=0):
        y = smelt.array(x, dtype=getattr(smelt, str(x.dtype)))
        f = smelt.compile(lambda x: own_product(x))
        return [np.asarray(r) for r in f(y)], f.trace(y).lower().compile().as_text("kernel")


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", SHAPES)
def test_both_products_are_symmetric(shape: tuple[int, int], dtype: str, monkeypatch: pytest.MonkeyPatch) -> None:
    x = drawn(shape, dtype)
    monkeypatch.setattr(products, "processors", lambda: 3)
    found, text = compiled(x)
    assert "syrk" in text
    for got, want in zip(found, own_product(x)):
        np.testing.assert_array_equal(got, got.T)
        np.testing.assert_allclose(got, want, rtol=0, atol=np.abs(want).max() * (1e-5 if x.itemsize < 16 else 1e-13))


def test_what_is_not_finite_stays_in_its_row_and_column() -> None:
    x = drawn((400, 40), "float32")
    x[3, 5], x[7, 9] = np.nan, np.inf
    (found, _), _ = compiled(x)
    bad = np.zeros((40, 40), bool)
    bad[[5, 9]] = bad[:, [5, 9]] = True
    np.testing.assert_array_equal(~np.isfinite(found), bad)


def test_other_products_are_whole() -> None:
    x = smelt.array(drawn((100, 100), "float32"))
    with override(tier="program", small_work=0):
        for f in (lambda x: x @ x, lambda x: x @ (x + 1).T):
            assert "syrk" not in smelt.compile(f).trace(x).lower().compile().as_text("kernel")


def test_accesses_are_checked() -> None:
    x = drawn((400, 40), "float32")
    with override(check=True):
        (found, _), _ = compiled(x)
    np.testing.assert_allclose(found, x.T @ x, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("parts", (1, 2, 5))
def test_parts_are_all_rows(parts: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(products, "processors", lambda: parts)
    x = drawn((80, 150), "float32")
    (found, _), _ = compiled(x)
    np.testing.assert_allclose(found, x.T @ x, rtol=1e-4, atol=1e-4)
