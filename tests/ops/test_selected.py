"""`select` on the host has a loop without branches, whose elements are those of NumPy's `where`."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import smelt
from smelt.ir import dtypes
from smelt.ir.host_loops import loops
from smelt.ir.ops import compare
from smelt.ir.settings import override

pytestmark = pytest.mark.host("about NumPy's where")

DTYPES = ["bool", "int8", "float16", "float32", "int64", "complex64", "complex128"]


@pytest.mark.parametrize("dtype", DTYPES)
def test_elements_are_those_of_where(dtype: str) -> None:
    rng = np.random.default_rng(0)
    shape = (70, 61)
    full = [(rng.standard_normal(s) * 9).astype(dtype) for s in (shape, shape, shape[::-1], (140, 61))]
    masks = [rng.random(s) < 0.5 for s in (shape, shape[::-1], (70, 122), (61,))]
    conditions = masks[0], masks[1].T, masks[2][:, ::2], masks[3]
    operands = full[0], full[2].T, full[3][::-2], full[1][:, :1], full[1][0], full[1][3, 4], full[1][3:4, 4:5]
    for condition, x, y in itertools.product(conditions, operands, operands):
        found = compare._selected(condition, np.asarray(x), np.asarray(y))
        np.testing.assert_array_equal(found, np.where(condition, x, y), strict=True)


def test_what_is_not_chosen_does_not_matter() -> None:
    x = np.tile(np.array([np.nan, np.inf, -0.0, 1], np.float32), 1000)
    with override(tier="ops"):
        y = smelt.array(x)
        found = np.asarray(smelt.where(smelt.isnan(y), 0.0, y)), np.asarray(smelt.where(y.astype(smelt.bool_), y, -0.0))
    np.testing.assert_array_equal(found[0], np.where(np.isnan(x), 0, x))
    np.testing.assert_array_equal(np.signbit(found[0]), np.signbit(np.where(np.isnan(x), np.float32(0), x)))
    np.testing.assert_array_equal(found[1], np.where(x, x, np.float32(-0.0)))


def test_bfloat16_and_edges() -> None:
    x = np.arange(4000).astype(dtypes.bfloat16.numpy)
    found = compare._selected(np.arange(4000) % 3 == 0, x, x[:1])
    assert found.dtype == x.dtype
    np.testing.assert_array_equal(found.astype(np.float32)[[0, 3, 4]], [0, 3, 0])
    empty = np.zeros((0, 4), np.float32)
    assert compare._selected(empty.astype(bool), empty, empty[:1].sum()).shape == (0, 4)


@pytest.mark.skipif(loops.select is None, reason="no core in C")
def test_what_does_not_fit_is_refused() -> None:
    x = np.ones(100, np.float32)
    assert loops.select is not None
    for condition, a, b, out in (
        (x[:99] > 0, x, x, x.copy()), (x > 0, x[:99], x, x.copy()), (x > 0, x, x[:50], x.copy()),
        (x > 0, x.astype(np.float64), x, x.copy()), (x > 0, x, x, np.zeros(50)), (x, x, x, x.copy()),
    ):  # fmt: skip
        with pytest.raises(ValueError, match="select takes"):
            loops.select(condition, a, b, out)
