"""Elementwise functions of arrays with short last axes go column by column: NumPy's values, to the bit."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import smelt
from smelt.ir import short_axes
from smelt.ir.aval import Aval
from smelt.ir.dtypes import float32
from smelt.ir.host_loops import loops
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
    return [u for u in dict.fromkeys(found.values()) if isinstance(u, np.ufunc) and u.nin == 2]


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

    def arctan2(*shape: int) -> bool:
        aval = Aval(shape, float32)
        return short_axes.by_columns(np.arctan2, [aval] * 2, aval) is not np.arctan2

    assert arctan2(5000, 2)
    assert arctan2(50, 100, 4)
    assert not any([arctan2(5000, 1), arctan2(5000, 5), arctan2(100, 2), arctan2(5000)])
    assert taken(5000, 2)
    assert not any([taken(5000, 1), taken(5000), taken(5000, 2, count=1), taken(100, 8)])
    if loops.short_rows is not None:
        assert taken(5000, 5) and taken(500, 10, 8) and taken(128, 256)


#: Broadcast in all places, of one row, of one element, of one with gaps.
BROADCAST = [
    *SHAPES,
    ((500, 1, 8), (1, 10, 8)),
    ((500, 1, 8), (10, 8)),
    ((5, 1, 60, 1, 7), (1, 4, 60, 3, 1)),
    ((5, 40, 17), (40, 1)),
    ((5, 40, 17), (5, 1, 1)),
    ((1, 300, 33), (300, 1)),
    ((200, 64), (200, 1)),
    ((200, 256), (256,)),
    ((200, 1), (1, 9)),
]


def _lying(shape: tuple[int, ...], dtype: str, rng: np.random.Generator) -> list[np.ndarray]:
    """Arrays of a shape that lie in different ways, of all kinds of numbers."""
    found = rng.uniform(-9, 9, [2 * n for n in shape]).astype(dtype)
    found[rng.uniform(size=found.shape) < 0.1] = 0.0
    found[rng.uniform(size=found.shape) < 0.1] = -np.inf
    found[rng.uniform(size=found.shape) < 0.1] = -0.0
    halves = tuple(slice(n) for n in shape)
    plain = found[halves].copy()
    return [
        plain,
        found[halves],
        found[tuple(slice(0, 2 * n, 2) for n in shape)],
        plain[::-1] if shape else plain,
        np.asfortranarray(plain),
        np.broadcast_to(plain[:1], shape) if shape else plain,
    ]


@pytest.mark.parametrize("ufunc", short_axes.LOOPS, ids=lambda u: u.__name__)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_loops_of_rows_are_numpys(ufunc: np.ufunc, dtype: str) -> None:
    rng = np.random.default_rng(1)
    for a, b in BROADCAST:
        for first, second in ((a, b), (b, a)):
            for x in _lying(first, dtype, rng):
                for y in _lying(second, dtype, rng)[:: 1 if x.flags.c_contiguous else 2]:
                    with np.errstate(all="ignore"):
                        found, want = short_axes._by_rows(ufunc, short_axes.LOOPS[ufunc], x, y), ufunc(x, y)
                    np.testing.assert_array_equal(found, want, strict=True)
                    assert (np.signbit(found) == np.signbit(want))[~np.isnan(want)].all()
                    turned = short_axes._is_turned(x) or short_axes._is_turned(y)  # which is put in order first
                    assert turned or found.strides == want.strides, "sums of it are rounded in another order"


@pytest.mark.skipif(loops.short_rows is None, reason="the core is not built")
def test_loops_of_rows_refuse_what_does_not_fit() -> None:
    run, out = loops.short_rows, np.zeros((4, 8), np.float32)
    assert run is not None
    x, y = np.ones((4, 8), np.float32), np.ones((4, 1), np.float32)
    assert run(0, x, y, out) and (out == 2).all()
    wrong = [(9, x, y), (-1, x, y), (0, x[:3], y), (0, x, y.astype(np.float64)), (0, x[None], y), (0, x[:, ::2], y)]
    assert not any(run(number, a, b, out) for number, a, b in wrong)
    assert not run(0, x[:, ::-1], y, out) and not run(0, y, y, out) and (out == 2).all()
    with pytest.raises((BufferError, ValueError)):
        run(0, x, y, out.T)
    out.flags.writeable = False
    with pytest.raises((BufferError, ValueError)):
        run(0, x, y, out)


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


REDUCED = [
    *[((700, n), (1,)) for n in (1, 2, 3, 8, 15, 16, 17)],
    *[((3000, k), (0,)) for k in (1, 2, 3, 8, 31, 64, 65)],
    *[((41, n, k), (1,)) for n in (2, 3, 50) for k in (2, 7, 33)],
    ((20, 30, 2, 3), (2, 3)),
    ((20, 30, 2, 3), (1, 2)),
    ((20, 30, 2, 3), (1, 3)),
    ((20, 30, 2, 3), (0, 1)),
    ((40, 60), ()),
    ((40, 60), (0, 1)),
    ((3000, 0), (0,)),
    ((5, 3), (0,)),
]


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "int8", "uint32", "int64", "bool", "complex64"])
@pytest.mark.parametrize("ufunc", [np.maximum, np.minimum, np.logical_or, np.logical_and], ids=lambda u: u.__name__)
def test_reductions_in_any_order_are_numpys(ufunc: np.ufunc, dtype: str) -> None:
    """But for the sign of zeros, and the bits of NaNs."""
    rng = np.random.default_rng(0)
    special = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0])
    for shape, axes in REDUCED:
        x = rng.uniform(0, 100, shape)
        with_special = np.where(rng.random(shape) < 0.05, special[rng.integers(0, 5, shape)], x - 50)
        with np.errstate(all="ignore"):
            kinds = [x.astype(dtype), (x < 3).astype(dtype), np.ones(shape[::-1], dtype).T]
            kinds += [with_special.astype(dtype)] if dtype.startswith("float") else []
            for given in kinds:
                before = given.copy()
                found, want = short_axes.reduced(ufunc, given, axes), ufunc.reduce(given, axes)
                np.testing.assert_array_equal(found, want, strict=True)
                np.testing.assert_array_equal(given, before)
                assert not np.shares_memory(found, given)


@pytest.mark.parametrize("tier", ["ops", "strided", "program"])
def test_extrema_of_short_rows_each_way(tier: str) -> None:
    x = np.random.default_rng(0).normal(size=(900, 3, 6)).astype(np.float32)
    x[5, 1, 2] = np.nan
    with override(tier=tier):
        y = smelt.array(x)
        for found, want in ((y.max(-1), x.max(-1)), (y.min(1), x.min(1)), ((y > 2).any(0), (x > 2).any(0))):
            np.testing.assert_array_equal(np.array(found), want)


@pytest.mark.parametrize("dtype", ["float32", "complex128", "bool", "int8"])
def test_rows_beside_columns(dtype: str) -> None:
    """Operands that lie in columns beside those in rows are put in order; others go to NumPy as they are."""
    rng = np.random.default_rng(0)
    x = rng.integers(0, 2 if dtype == "bool" else 100, (200, 300)).astype(dtype)
    y = rng.integers(0, 2 if dtype == "bool" else 100, (300, 200)).astype(dtype)
    cube = rng.integers(0, 2, (3, 150, 160)).astype(dtype)
    assert short_axes._is_turned(y.T) and short_axes._is_turned(cube.swapaxes(1, 2))
    for other in (x, y.T[:, :5], np.broadcast_to(y[0], (300, 200)).T, x[::2], np.broadcast_to(x[0, 0], (200, 300))):
        assert not short_axes._is_turned(other)
    for ufunc in (np.equal, np.multiply, np.maximum):
        for operands in (
            (x, y.T), (y.T, x), (y.T, y.T), (x[0], y.T), (y.T, x[:1]), (x, y.T[::-1]), (x, np.asarray(x[0, 0])),
            (cube, cube.swapaxes(1, 2)[:, :150, :1]), (cube[:, :, :150], cube[:, :, :150].swapaxes(1, 2)),
            (np.ascontiguousarray(cube[:, :150, :150]), cube[:, :, :150].swapaxes(1, 2)),
        ):  # fmt: skip
            np.testing.assert_array_equal(short_axes._in_rows(ufunc, *operands), ufunc(*operands), strict=True)
    turned = smelt.array(x[:, :200])
    np.testing.assert_array_equal(np.asarray(turned == turned.T), x[:, :200] == x[:, :200].T)
