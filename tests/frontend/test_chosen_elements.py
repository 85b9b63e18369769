"""Reductions of the elements that `where` chooses, from an `initial` number on, about a known `mean`; against NumPy."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import smelt
from smelt.ir.errors import ArgumentTypeError, DTypeError, ShapeError
from tests.frontend.checks import check_gradient, exact

rng = np.random.default_rng(5)
#: All reductions that NumPy gives `where`.
NAMES = [
    "all", "any", "max", "mean", "min", "prod", "std", "sum", "var",
    *("nanmax", "nanmean", "nanmin", "nanprod", "nanstd", "nansum", "nanvar"),
]  # fmt: skip
AXES = [((6,), None), ((4, 5), 0), ((4, 5), -1), ((2, 3, 4), (0, 2)), ((2, 3, 4), None), ((0, 3), 0), ((3, 0), 0)]


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        yield


def takes(name: str, keyword: str) -> bool:
    return keyword in inspect.signature(getattr(smelt, name)).parameters


def operand(shape: tuple[int, ...], dtype: str, nans: bool) -> np.ndarray:
    x = rng.standard_normal(shape).astype(dtype) if dtype != "int32" else rng.integers(-3, 4, shape).astype(dtype)
    if dtype == "complex128":
        x = x + 1j * rng.standard_normal(shape)
    if nans and dtype != "int32":
        x.reshape(-1)[::3] = np.nan
    return x


def variants(name: str, x: np.ndarray, axis: Any) -> Iterator[dict[str, Any]]:
    masks = [rng.random(x.shape) < 0.6, rng.random(x.shape[-1:]) < 0.6, np.zeros((), bool), True]
    starts: list[dict[str, Any]] = [{}, {"initial": 2}] if takes(name, "initial") else [{}]
    means = [{}, {"mean": np.full_like(np.sum(x, axis, keepdims=True), 0.25)}] if takes(name, "mean") else [{}]
    for start in starts:
        for mean in means:
            if x.size or start or ("max" not in name and "min" not in name):
                yield start | mean
            for mask in masks:
                if start or ("max" not in name and "min" not in name):
                    yield start | mean | {"where": mask}


@pytest.mark.parametrize("dtype", ["float64", "float32", "int32", "complex128"])
@pytest.mark.parametrize("name", NAMES)
def test_chosen_elements(name: str, dtype: str) -> None:
    if dtype == "complex128" and ("max" in name or "min" in name):
        return
    ours, theirs = getattr(smelt, name), getattr(np, name)
    rtol = 1e-12 if dtype in ("float64", "complex128") else 1e-5
    for shape, axis in AXES:
        x = operand(shape, dtype, "nan" in name)
        choices = [*variants(name, x, axis)]
        given = [{k: exact(v) if isinstance(v, np.ndarray) else v for k, v in options.items()} for options in choices]

        def results(x: smelt.array, given: list[dict[str, Any]], keepdims: bool, axis: Any = axis) -> list[smelt.array]:
            return [ours(x, axis=axis, keepdims=keepdims, **options) for options in given]

        for keepdims in (False, True):
            expected = [theirs(x, axis=axis, keepdims=keepdims, **options) for options in choices]
            for f in (results, smelt.compile(results)) if keepdims and shape == (4, 5) else (results,):
                for found, wanted, options in zip(f(exact(x), given, keepdims), expected, choices, strict=True):
                    assert found.shape == np.shape(wanted)
                    np.testing.assert_allclose(np.asarray(found), wanted, rtol=rtol, atol=rtol, err_msg=str(options))


def test_numpy_and_methods_hand_them_on() -> None:
    x, mask = smelt.array([1.0, 5.0, 3.0]), smelt.array([True, False, True])
    assert np.sum(x, where=mask, initial=1.0) == 5 and np.max(x, where=mask, initial=0) == 3
    host = np.asarray(x)
    assert np.sum(host, where=mask) == 4 and np.mean(host, where=mask) == 2
    assert np.max(host, initial=smelt.array(9)) == 9
    np.testing.assert_array_equal(np.add(host, 1, where=mask, out=np.zeros(3, "f")), [2, 0, 4])
    np.testing.assert_array_equal(np.negative(x, where=mask, out=np.ones(3, "f")), [-1, 1, -3])
    for ufunc in (np.add, np.multiply, np.maximum, np.minimum, np.logical_and, np.logical_or, np.hypot):
        for m in (mask, np.asarray(mask)):
            start: dict[str, Any] = {} if ufunc in (np.logical_and, np.logical_or) else {"initial": 2.0}
            expected = ufunc.reduce(host, where=np.asarray(mask), **start)
            found = ufunc.reduce(x, where=m, **start)
            assert float(found) == expected and isinstance(found, smelt.array) == (ufunc is not np.hypot)
            assert float(ufunc.reduce(host, where=m, **start)) == expected
    assert np.logical_or.reduce(x, initial=False)
    assert np.mean(x, where=mask) == 2 and np.std(x, mean=smelt.array([3.0]), where=mask) == np.sqrt(2)
    for name in ("sum", "prod", "max", "min", "mean", "std", "var", "all", "any"):
        options = {"where": mask} | ({"initial": 1} if takes(name, "initial") else {})
        assert getattr(x, name)(**options).item() == getattr(smelt, name)(x, **options).item()


@pytest.mark.parametrize("name", [name for name in NAMES if name not in ("all", "any")])
def test_derivatives_pass_over_what_is_left_out(name: str) -> None:
    x, mask = rng.standard_normal((3, 4)), exact(rng.random((3, 4)) < 0.7)
    options: dict[str, Any] = {"where": mask, "axis": 1} | ({"initial": -0.5} if takes(name, "initial") else {})
    check_gradient(lambda x: getattr(smelt, name)(x, **options), x)
    bad = np.where(np.asarray(mask), x, np.nan)
    gradient = smelt.grad(lambda x: getattr(smelt, name)(x, **options).sum())(exact(bad))
    wanted = smelt.grad(lambda x: getattr(smelt, name)(x, **options).sum())(exact(x))
    np.testing.assert_array_equal(np.asarray(gradient), np.asarray(wanted))
    if takes(name, "initial"):
        check_gradient(lambda v: getattr(smelt, name)(exact(x), initial=v[0], where=mask), np.array([3.0]))
    rows = smelt.vmap(lambda x, m: getattr(smelt, name)(x, **(options | {"where": m, "axis": 0})))(exact(x), mask)
    np.testing.assert_allclose(np.asarray(rows), np.asarray(getattr(smelt, name)(exact(x), **options)), rtol=1e-12)


@pytest.mark.parametrize("name", NAMES)
def test_what_does_not_fit(name: str) -> None:
    function, x = getattr(smelt, name), smelt.array([[1.0, 2.0], [3.0, 4.0]])
    start: dict[str, Any] = {"initial": 0.0} if takes(name, "initial") else {}
    with pytest.raises(DTypeError, match=rf"smelt.{name}: where must be of bools"):
        function(x, where=smelt.array([1.0, 0.0]), **start)
    with pytest.raises(ShapeError, match=r"where .* does not broadcast"):
        function(x, where=smelt.ones((3, 2, 2)) > 0, **start)
    with pytest.raises(ShapeError):
        function(x, where=smelt.array([True] * 3), **start)
    if "max" in name or "min" in name:
        with pytest.raises(ArgumentTypeError, match=rf"smelt.{name}: .*initial="):
            function(x, where=x > 1)
    if start:
        with pytest.raises(ShapeError, match="initial must be a number"):
            function(x, initial=smelt.array([1.0, 2.0]))
        for i in (1j, smelt.array(1j)):
            with pytest.raises(DTypeError, match="complex"):
                function(x, initial=i)
    if takes(name, "mean"):
        with pytest.raises(ShapeError, match="keepdims=True"):
            function(x, axis=1, mean=smelt.ones((2, 2, 2)))
        for mean in (1j, smelt.array([1j])):
            with pytest.raises(DTypeError, match="complex"):
                function(x, mean=mean)


@pytest.mark.parametrize("name", ["nanmax", "nanmin"])
def test_an_initial_that_is_nan_is_left_out_too(name: str) -> None:
    nan = float("nan")
    for x in ([1.0, nan, 3.0], [nan, nan, nan]):
        for initial in (nan, 2.0, -np.inf, np.inf):
            for mask in (None, [True, True, False], [False] * 3):
                where = {} if mask is None else {"where": np.array(mask)}
                expected = getattr(np, name)(np.array(x), initial=initial, **where)
                found = getattr(smelt, name)(smelt.array(x), initial=initial, **where)
                np.testing.assert_array_equal(found.item(), expected)
