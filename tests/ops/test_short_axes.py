"""Elementwise functions of arrays with short last axes go column by column: NumPy's values, to the bit."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import smelt
from smelt.ir import short_axes
from smelt.ir.aval import Aval
from smelt.ir.dtypes import float32
from smelt.ir.op import registry
from smelt.ir.settings import override

pytestmark = pytest.mark.host("about NumPy's functions")

#: Of two operands that are as one with the first, or are not.
SHAPES = [
    ((90, 60, 2), (60, 2)),
    ((90, 1, 3), (60, 3)),
    ((90, 60, 3), (90, 60, 1)),
    ((3000, 4), (4,)),
    ((3000, 1), (4,)),
    ((3000, 3), (3000, 3)),
    ((3000, 3), ()),
    ((3000, 3), (1, 1)),
    ((2, 3), (3,)),
    ((0, 3), (3,)),
    ((4, 3000), (4, 1)),
]


def ufuncs() -> list[np.ufunc]:
    found = {op.name: vars(op).get("ufunc") for op in map(type, registry.values())}
    return list({u for u in found.values() if isinstance(u, np.ufunc) and u.nin == 2})


@pytest.mark.parametrize("ufunc", ufuncs(), ids=lambda u: u.__name__)
def test_they_are_numpys(ufunc: np.ufunc) -> None:
    rng = np.random.default_rng(0)
    dtype = "float32" if {"ff->f", "ff->?"}.intersection(ufunc.types) else "int32"
    for a, b in SHAPES:
        for x, y in ((a, b), (b, a)):
            operands = [rng.uniform(1, 9, shape).astype(dtype) for shape in (x, y)]
            with np.errstate(all="ignore"):
                found = short_axes._by_columns(ufunc, *operands)
                np.testing.assert_array_equal(found, ufunc(*operands), strict=True)
            strided = [np.asfortranarray(operands[0]), operands[1]]
            found, want = short_axes._by_columns(ufunc, *strided), ufunc(*strided)
            np.testing.assert_array_equal(found, want, strict=True)
            assert found.strides == want.strides, "sums of it are rounded in another order"


def test_only_what_gains_is_taken() -> None:
    def taken(*shape: int, count: int = 2) -> bool:
        aval = Aval(shape, float32)
        return short_axes.by_columns(np.add, [aval] * count, aval) is not np.add

    assert taken(5000, 2)
    assert taken(50, 100, 4)
    assert not any([taken(5000, 1), taken(5000, 5), taken(100, 2), taken(5000), taken(5000, 2, count=1)])


@pytest.mark.parametrize("tier", ["ops", "strided", "program"])
def test_each_way_gives_them(tier: str) -> None:
    rng = np.random.default_rng(0)
    points = rng.uniform(-1, 1, (110, 3)).astype(np.float32)
    weights = rng.uniform(1, 2, (110, 110)).astype(np.float32)
    with override(tier=tier):
        x: Any = smelt.array(points)
        between = x[:, None] - x
        found = np.asarray(smelt.where(between > 0.5, between / smelt.array(weights)[..., None], between * 2))
    plain = points[:, None] - points
    wanted = np.where(plain > 0.5, plain / weights[..., None], plain * 2)
    np.testing.assert_allclose(found, wanted, rtol=1e-6)
