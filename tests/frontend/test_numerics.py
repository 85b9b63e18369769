"""Interpolation, differences, points, stacking and flat indices, against NumPy."""

import itertools
from typing import Any

import numpy as np
import pytest

import smelt
from smelt.ir.errors import ArgumentTypeError, AttributeValueError, IndexOutOfRangeError, ShapeError
from tests.frontend.checks import check_gradient, exact, same

rng = np.random.default_rng(13)


@pytest.mark.parametrize("dtype, tolerance", [("float64", 1e-12), ("float32", 1e-5), ("int32", 1e-5)])
def test_interp(dtype: str, tolerance: float) -> None:
    for size in (1, 2, 7):
        points, values = np.sort(rng.integers(-9, 9, size)).astype(dtype), rng.integers(-5, 5, size).astype(dtype)
        points = np.unique(points)
        values = values[: points.size]
        x = np.concatenate([rng.integers(-12, 12, 9).astype(dtype), points]).reshape(1, -1)
        for left, right, period in ((None, None, None), (7.0, None, None), (None, -1.0, None), (None, None, 11)):
            expected = np.interp(x, points, values, left, right, period)
            found = smelt.interp(exact(x), exact(points), exact(values), left, right, period)
            same(found, expected.astype(np.asarray(found).dtype), rtol=tolerance, atol=tolerance)
    assert np.isnan(smelt.interp(smelt.array(np.nan), smelt.array([0.0, 1.0]), smelt.array([0.0, 1.0])).item())
    ends = smelt.array([-60000.0, 60000.0], smelt.float16)  # their difference is infinite as a half
    found = smelt.interp(smelt.array([0.0], smelt.float16), ends, ends)
    assert found.dtype == smelt.float16
    assert found.tolist() == [0.0]
    args = np.array([0.2, 1.7, 2.5]), np.array([0.0, 1.0, 2.2, 3.0]), np.array([1.0, -2.0, 4.0, 3.0])
    check_gradient(smelt.interp, *args)
    with pytest.raises(ShapeError, match="xp and fp"):
        smelt.interp(smelt.array(1.0), smelt.ones(3), smelt.ones(2))
    with pytest.raises(AttributeValueError, match="period"):
        smelt.interp(smelt.array(1.0), smelt.ones(2), smelt.ones(2), period=0)


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
def test_interp_between_infinite_values(dtype: str) -> None:
    x = np.array([0, 1, 2, 3, 4, 5, 6, np.inf, -np.inf])
    for points in ([1.0, 3, 5], [1.0, 3, np.inf], [-np.inf, 3, 5]):
        for values in itertools.product([0.5, np.inf, -np.inf, np.nan], repeat=3):
            fp = np.array(values, dtype)
            if dtype == "complex128":
                fp.imag[...] = [2.0, np.inf, 1.0]
            found = smelt.interp(exact(x), exact(np.array(points)), exact(fp))
            for part in (np.real, np.imag):  # NumPy does not compare complex infinities by parts
                np.testing.assert_allclose(part(np.array(found)), part(np.interp(x, points, fp)), 1e-12)


@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize("shape", [(3,), (7,), (4, 5), (3, 3, 4)], ids=str)
def test_gradient(shape: tuple[int, ...], order: Any) -> None:
    host = rng.standard_normal(shape)
    x = exact(host)
    places = [np.cumsum(rng.random(d) + 0.1) for d in shape]
    for given in ((), (0.5,), tuple(rng.random(len(shape)) + 0.5), tuple(places)):
        expected = np.gradient(host, *given, edge_order=order)
        found = smelt.gradient(x, *[exact(np.asarray(g)) for g in given], edge_order=order)
        for one, other in zip(*((v if isinstance(v, (list, tuple)) else [v]) for v in (found, expected))):
            same(one, other, rtol=1e-11, atol=1e-12)
    same(smelt.gradient(x, axis=-1, edge_order=order), np.gradient(host, axis=-1, edge_order=order), rtol=1e-12)
    check_gradient(lambda v: smelt.gradient(v, axis=0, edge_order=order), host)


def test_gradient_errors() -> None:
    with pytest.raises(ShapeError, match="at least"):
        smelt.gradient(smelt.ones(1))
    with pytest.raises(ShapeError, match="do not fit"):
        smelt.gradient(smelt.ones(4), smelt.ones(3))
    with pytest.raises(ArgumentTypeError, match="3 distances"):
        smelt.gradient(smelt.ones((3, 3)), 1, 2, 3)
    with pytest.raises(AttributeValueError, match="edge_order"):
        smelt.gradient(smelt.ones(4), edge_order=3)
    same(smelt.gradient(smelt.array([1, 2, 4])), np.gradient([1.0, 2, 4]).astype(np.float32))


@pytest.mark.parametrize("shape", [(5,), (3, 4), (0, 3), (2, 0), (1,)], ids=str)
def test_trapezoid(shape: tuple[int, ...]) -> None:
    integrate = getattr(np, "trapezoid", None) or np.trapz  # type: ignore[attr-defined]
    host, points = rng.standard_normal(shape), np.sort(rng.standard_normal(shape))
    for axis in range(-len(shape), len(shape)):
        for dx in (1.0, 0.3):
            expected = integrate(host, dx=dx, axis=axis)
            same(smelt.trapezoid(exact(host), dx=dx, axis=axis), expected, rtol=1e-12, atol=1e-14)
        for x in (points, np.arange(float(shape[axis]))):
            expected = integrate(host, x, axis=axis)
            same(smelt.trapezoid(exact(host), exact(x), axis=axis), expected, rtol=1e-11, atol=1e-13)
    with pytest.raises(ShapeError, match="does not fit"):
        smelt.trapezoid(smelt.ones((2, 3)), smelt.ones(2))


def test_points() -> None:
    for endpoint, num in itertools.product((True, False), (0, 1, 5)):
        options = {"num": num, "endpoint": endpoint}
        same(smelt.logspace(0, 2, **options), np.logspace(0, 2, **options).astype(np.float32), rtol=1e-6)
        expected = np.logspace(0, 2, **options, base=2).astype(np.float32)
        same(smelt.logspace(0, 2, **options, base=2), expected, rtol=1e-6)
        same(smelt.geomspace(1, 64, **options, dtype=smelt.float64), np.geomspace(1, 64, **options), rtol=1e-14)
        same(smelt.geomspace(-1, -8, **options), np.geomspace(-1, -8, **options).astype(np.float32), rtol=1e-6)
    for wrong in ((0, 1), (-1, 1)):
        with pytest.raises(AttributeValueError, match="sign"):
            smelt.geomspace(*wrong)


@pytest.mark.parametrize("shape", [(8,), (3, 6), (0, 4), (2, 0)], ids=str)
def test_lexsort(shape: tuple[int, ...]) -> None:
    keys = [rng.integers(0, 3, shape).astype(np.int32) for _ in range(3)]
    for axis in range(-len(shape), len(shape)):
        expected = np.lexsort(keys, axis=axis).astype(np.uint32)
        same(smelt.lexsort([exact(k) for k in keys], axis=axis), expected)
        same(smelt.lexsort(exact(np.stack(keys)), axis=axis), expected)
    with pytest.raises(ShapeError, match="one shape"):
        smelt.lexsort([smelt.ones(2), smelt.ones(3)])


# Stacking and cutting


@pytest.mark.parametrize("name", ["vstack", "hstack", "dstack", "column_stack"])
def test_stacks(name: str) -> None:
    for shapes in (((3,), (3,)), ((2, 3), (2, 3)), ((2, 3, 4), (2, 3, 4)), ((1,), (1,)), ((0, 3), (0, 3)),
                   ((), ()), ((3,), (1, 3)), ((3,), (3, 2)), ((2, 2), (2, 5)), ((4, 2), (1, 2)),
                   ((2, 2), (2, 2, 3))):  # fmt: skip
        hosts = [rng.integers(0, 9, s).astype(np.int32) for s in shapes]
        try:
            expected = getattr(np, name)(hosts)
        except ValueError:
            with pytest.raises(ShapeError):
                getattr(smelt, name)([exact(h) for h in hosts])
            continue
        same(getattr(smelt, name)([exact(h) for h in hosts]), expected)
    host = rng.standard_normal((2, 3))
    check_gradient(lambda x: getattr(smelt, name)([x, x * 2]), host)
    with pytest.raises(ArgumentTypeError, match="at least one"):
        getattr(smelt, name)([])


def test_splits() -> None:
    host = np.arange(2 * 7 * 4).reshape(2, 7, 4).astype(np.int32)
    for axis, cut in itertools.product((0, 1, -1), (1, 3, 9, [1, 2], [0, 5])):
        expected = np.array_split(host, cut, axis)
        found = smelt.array_split(exact(host), cut, axis)
        assert len(found) == len(expected)
        for one, other in zip(found, expected):
            same(one, other)
    for name, cut in (("vsplit", 2), ("hsplit", 7), ("hsplit", [2, 3]), ("dsplit", 2)):
        for one, other in zip(getattr(smelt, name)(exact(host), cut), getattr(np, name)(host, cut)):
            same(one, other)
    same(smelt.hsplit(smelt.arange(4), 2)[1], np.array([2, 3], np.int32))
    for name in ("vsplit", "dsplit"):
        with pytest.raises(ShapeError, match="axes at least"):
            getattr(smelt, name)(smelt.arange(4), 2)


def test_flat_indices() -> None:
    host = rng.integers(0, 24, (3, 2)).astype(np.int32)
    for shape in ((24,), (4, 6), (2, 3, 4)):
        expected = np.unravel_index(host, shape)
        found = smelt.unravel_index(exact(host), shape)
        for one, other in zip(found, expected):
            same(one, other.astype(np.int32))
        same(smelt.ravel_multi_index(found, shape), host)
    same(smelt.unravel_index(smelt.array([250], smelt.uint8), (2, 300))[1], np.array([250], np.int32))
    same(smelt.ravel(exact(host)), host.ravel())
    for wrong in (lambda: smelt.unravel_index([24], (4, 6)), lambda: smelt.ravel_multi_index(([4], [0]), (4, 6))):
        with pytest.raises(IndexOutOfRangeError):
            wrong()
    with pytest.raises(ShapeError, match="1 axes"):
        smelt.ravel_multi_index(([4],), (4, 6))


@pytest.mark.parametrize(
    "name, axes, shape", [("vsplit", "2 axes", (3,)), ("hsplit", "an axis", ()), ("dsplit", "3 axes", (2, 2))]
)
def test_split_arrays_of_too_few_axes(name: str, axes: str, shape: tuple[int, ...]) -> None:
    with pytest.raises(ShapeError, match=f"smelt.{name}: needs {axes} at least"):
        getattr(smelt, name)(smelt.ones(shape), 1)
