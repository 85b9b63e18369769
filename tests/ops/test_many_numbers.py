"""Sums and running sums of very many numbers have the digits of their dtype in every way to run them.

Added up one by one, a hundred thousand float32 leave three digits. All numbers are near each other, so that each
rounding of a naive sum goes the same way.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import smelt
from smelt.ir.settings import override

WAYS = ("ops", "strided", "program")
in_float64 = pytest.mark.host("about totals in float64; those of a GPU's scans are of the dtype")
MANY = 100_003
#: Shapes, and the axes that are reduced: rows, columns of few and many, axes between others, all.
REDUCED: list[tuple[tuple[int, ...], tuple[int, ...]]] = [
    ((MANY,), (0,)), ((2, MANY), (1,)), ((MANY, 2), (0,)), ((MANY, 9), (0,)), ((2, MANY, 3), (1,)),
    ((2, MANY, 3), (0, 1)), ((MANY, 2, 3), (0, 2)), ((2048, 600), (0,)), ((300, 300, 5), (0, 1)),
]  # fmt: skip
#: By name: the function, the same in NumPy, and how many units of the last place it may be off.
REDUCTIONS: dict[str, tuple[Callable[..., smelt.array], Callable[..., np.ndarray], float]] = {
    "sum": (smelt.sum, np.sum, 16),
    "mean": (smelt.mean, np.mean, 16),
    "var": (smelt.var, np.var, 40),
    "std": (smelt.std, np.std, 40),
    "norm": (lambda x, axis: smelt.sqrt(smelt.sum(x * x, axis)), lambda x, axis: np.sqrt((x * x).sum(axis)), 16),
    "logsumexp": (smelt.logsumexp, lambda x, axis: np.log(np.exp(x).sum(axis)), 16),
}
SCANNED = [((MANY,), 0), ((2, MANY), 1), ((20, 8000), 1), ((8000, 5), 0), ((8000, 40), 0), ((3, 8000, 4), 1)]


def numbers(shape: tuple[int, ...], low: float, high: float, dtype: str = "float32") -> np.ndarray:
    x = np.random.default_rng(0).uniform(low, high, shape)
    return (x + 1j * x[::-1] if dtype == "complex64" else x).astype(dtype)


def units(found: smelt.array, want: np.ndarray) -> float:
    """The largest error, in units of the last place of float32."""
    return float(np.max(np.abs(np.asarray(found) - want) / np.abs(want))) / float(np.finfo(np.float32).eps)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", REDUCTIONS)
def test_reductions(name: str, way: str) -> None:
    function, numpys, most = REDUCTIONS[name]
    given = [(numbers(shape, 1, 1.01), axes) for shape, axes in REDUCED]
    with override(tier=way, small_work=0):
        found = [function(smelt.array(x), axes) for x, axes in given]
        smelt.eval(found)
    for (x, axes), f in zip(given, found):
        error = units(f, numpys(x.astype(np.float64), axes))
        assert error < most, f"{name} of {x.shape} over {axes}: {error}"


@pytest.mark.parametrize("order", ["C", "F", "reversed"])
@pytest.mark.parametrize("dtype", ["float32", "complex64"])
def test_sums_in_any_order_of_memory(dtype: str, order: str) -> None:
    from smelt.ir.ops import reduce

    for shape, axes in REDUCED:
        x = np.asfortranarray(numbers(shape, 1, 1.01, dtype)) if order == "F" else numbers(shape, 1, 1.01, dtype)
        x = x[::-1] if order == "reversed" else x
        found = reduce._added(x, axes, x.dtype)
        want = x.astype(np.complex128 if dtype == "complex64" else np.float64).sum(axes)
        assert found.dtype == x.dtype and found.shape == want.shape
        assert units(found, want) < 8, f"{shape} over {axes}"


@in_float64
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", ["cumsum", "cumprod"])
@pytest.mark.parametrize("dtype", ["float32", "complex64"])
def test_scans(dtype: str, name: str, way: str) -> None:
    low, high = (1.0, 1.01) if name == "cumsum" else (0.9999, 1.0001)
    given = [(numbers(shape, low, high, dtype), axis) for shape, axis in SCANNED]
    if name == "cumprod" and dtype == "complex64":
        given = [(x / np.abs(x), axis) for x, axis in given]
    kinds = [(False, True), (True, False)]
    with override(tier=way, small_work=0):
        found = [
            getattr(smelt, name)(smelt.array(x), axis, reverse=reverse, inclusive=inclusive)
            for x, axis in given for reverse, inclusive in kinds
        ]  # fmt: skip
        smelt.eval(found)
    results = iter(found)
    for x, axis in given:
        wide = x.astype(np.complex128 if dtype == "complex64" else np.float64)
        for reverse, inclusive in kinds:
            along = np.flip(wide, axis) if reverse else wide
            want = getattr(np, name)(along, axis)
            if not inclusive:
                first = np.zeros_like if name == "cumsum" else np.ones_like
                head = np.take(want, [0], axis)
                want = np.concatenate([first(head), np.delete(want, -1, axis)], axis)
            want = np.flip(want, axis) if reverse else want
            f = np.asarray(next(results))
            error = np.abs(f - want).max() / 1.2e-7 / np.abs(want).max()
            assert error < 8, f"{name} of {x.shape} along {axis}, {reverse=}, {inclusive=}: {error}"


@in_float64
@pytest.mark.parametrize("way", WAYS)
def test_what_is_left_of_large_numbers(way: str) -> None:
    """A running sum that comes back to little has digits left, some less where some hundred elements are added up in
    float32; infinities, NaN and zeros of both signs stay what they are."""
    x = np.concatenate([np.full(5000, 1e6), np.full(5000, -1e6), np.full(3000, 0.125)]).astype(np.float32)
    x[7], x[5007] = 0.375, -0.25
    rows = np.stack([x] * 20)
    zeros = -np.zeros((20, 3000), np.float32)
    special = np.ones((20, 3000), np.float32)
    special[:, 1000], special[3, 2000] = np.inf, -np.inf
    with override(tier=way, small_work=0):
        found = [smelt.cumsum(smelt.array(v), axis) for v, axis in (
            (x, 0), (rows, 1), (rows.T, 0), (zeros, 1), (zeros[0], 0), (special, 1), (special.T, 0), (special[0], 0)
        )]  # fmt: skip
        smelt.eval(found)
    line, by_rows, by_columns, no_rows, nothing, infinite, infinite_columns, infinite_line = map(np.asarray, found)
    want = np.cumsum(x.astype(np.float64))
    for f in (line, *by_rows, *by_columns.T):
        np.testing.assert_allclose(f, want, rtol=3e-7, atol=1e6 * 512 * 1.2e-7)
    assert np.signbit(no_rows).all() and np.signbit(nothing).all()
    with np.errstate(invalid="ignore"):
        want = np.cumsum(special.astype(np.float64), 1).astype(np.float32)
    for f in (infinite, infinite_columns.T):
        np.testing.assert_array_equal(f, want)
    np.testing.assert_array_equal(infinite_line, want[0])
