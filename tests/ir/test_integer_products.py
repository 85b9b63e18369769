"""Products of integers by a BLAS, which has none: NumPy's, to the bit."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import smelt
from smelt.ir import numpy_blas
from smelt.ir.settings import override

DTYPES = ["bool", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"]
SHAPES = [
    ((40, 50), (50, 60)), ((3, 20, 30), (3, 30, 40)), ((30, 200), (1, 200, 30)), ((4, 5000), (5000, 4)),
    ((3, 9), (9, 3)),
]  # fmt: skip


def extreme(shape: tuple[int, ...], dtype: str) -> np.ndarray:
    rng = np.random.default_rng(0)
    if dtype == "bool":
        return rng.random(shape) < 0.05
    info = np.iinfo(dtype)
    x = rng.integers(info.min, info.max, shape, dtype, endpoint=True)
    return np.where(rng.random(shape) < 0.3, rng.choice(np.array([info.min, info.max], dtype), shape), x)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shapes", SHAPES, ids=str)
def test_products_are_numpys(shapes: Any, dtype: str) -> None:
    x, y = (extreme(shape, dtype) for shape in shapes)
    for a, b in ((x, y), (np.ascontiguousarray(x.swapaxes(-1, -2)).swapaxes(-1, -2), y[..., ::-1])):
        np.testing.assert_array_equal(numpy_blas.matmul(a, b), np.matmul(a, b), strict=True)


def test_the_largest_sums_are_exact() -> None:
    """Of the greatest depth, and of numbers that are as far from zero as they can be."""
    deep = numpy_blas._DEPTH // 2
    for low, high in ((-(2**31), -1), (-1, -1), (2**31 - 1, -(2**31))):
        x, y = np.full((4, deep), low, np.int32), np.full((deep, 4), high, np.int32)
        assert numpy_blas._of_integers(x, y)[0, 0] == np.int64((low * high * deep + 2**31) % 2**32 - 2**31)


def test_what_is_no_product_of_two_matrices_is_numpys() -> None:
    x = np.arange(4000, dtype=np.int16).reshape(20, 200)
    for y in (x[0], x.T[:, :1], x.T[:, :0]):
        np.testing.assert_array_equal(numpy_blas.matmul(x, y), np.matmul(x, y), strict=True)


@pytest.mark.parametrize("dtype", ["bool", "int8", "int32"])
def test_lazily(dtype: str) -> None:
    x, y = extreme((40, 50), dtype), extreme((50, 60), dtype)
    with override(tier="ops"):
        found = smelt.array(x) @ smelt.array(y)
        np.testing.assert_array_equal(np.asarray(found), x @ y, strict=True)
