"""Complex numbers are ordered as NumPy orders them: by the real part, then by the imaginary one, NaN last."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import smelt

NAN, INF = float("nan"), float("inf")
SPECIAL = np.array(
    [0, 1 + 2j, 1 - 2j, complex(1, NAN), complex(3, NAN), complex(NAN, 1), complex(NAN, -1), complex(NAN, NAN),
     -1, complex(-INF, 0), complex(INF, -INF), complex(-INF, INF), complex(0.0, -0.0), complex(-0.0, 0.0)],
    np.complex64,
)  # fmt: skip


@pytest.fixture(params=["eager", "cpu", "metal:sim"])
def way(request: pytest.FixtureRequest) -> Iterator[Callable[[Callable[..., Any]], Callable[..., Any]]]:
    """Evaluated op by op, compiled for the CPU, and by the text for Metal."""
    with np.errstate(all="ignore"):
        if request.param == "eager":
            yield lambda f: f
        else:
            with smelt.stream(request.param):
                yield smelt.compile


def few_values(shape: tuple[int, ...], seed: int = 1) -> np.ndarray:
    """Many equal elements, so that ties decide."""
    rng = np.random.default_rng(seed)
    return (rng.integers(-3, 4, shape) + 1j * rng.integers(-3, 4, shape)).astype(np.complex64)


@pytest.mark.parametrize("name", ["less", "less_equal", "greater", "greater_equal", "maximum", "minimum"])
def test_pairs_of_special_values(way: Callable[..., Any], name: str) -> None:
    x, y = np.meshgrid(SPECIAL, SPECIAL)
    found = np.array(way(lambda x, y: getattr(smelt, name)(x, y))(smelt.array(x), smelt.array(y)))
    np.testing.assert_array_equal(found, getattr(np, name)(x, y))


def test_sorting_puts_nan_where_numpy_does(way: Callable[..., Any]) -> None:
    x = np.random.default_rng(0).permutation(np.concatenate([SPECIAL] * 3))
    np.testing.assert_array_equal(np.array(way(smelt.sort)(smelt.array(x))), np.sort(x))
    np.testing.assert_array_equal(np.array(way(smelt.argsort)(smelt.array(x))), np.argsort(x, kind="stable"))
    for side in ("left", "right"):
        found = way(lambda x, v, side=side: smelt.searchsorted(smelt.sort(x), v, side=side))
        want = np.searchsorted(np.sort(x), SPECIAL, side)  # type: ignore[call-overload]
        np.testing.assert_array_equal(np.array(found(smelt.array(x), smelt.array(SPECIAL))), want)


@pytest.mark.parametrize("axis", [0, 1, None])
@pytest.mark.parametrize("name", ["max", "min", "argmax", "argmin", "median"])
def test_reductions(way: Callable[..., Any], name: str, axis: int | None) -> None:
    x = few_values((7, 1300))
    found = np.array(way(lambda x: getattr(smelt, name)(x, axis=axis))(smelt.array(x)))
    np.testing.assert_array_equal(found, getattr(np, name)(x, axis=axis))


@pytest.mark.parametrize("name", ["max", "argmax", "min", "argmin"])
def test_reductions_with_nan(way: Callable[..., Any], name: str) -> None:
    x = np.repeat(few_values((1, 700)), 4, 0)
    for row, at in enumerate((5, 400, 699)):
        x[row, at] = complex(1, NAN) if row % 2 else complex(NAN, 1)
    found = np.array(way(lambda x: getattr(smelt, name)(x, axis=1))(smelt.array(x)))
    np.testing.assert_array_equal(found, getattr(np, name)(x, axis=1))


def test_sorting_and_running_extrema(way: Callable[..., Any]) -> None:
    x = few_values((5, 3000))
    for axis in (0, 1):
        np.testing.assert_array_equal(
            np.array(way(lambda x, a=axis: smelt.sort(x, a))(smelt.array(x))), np.sort(x, axis)
        )
    for name, ufunc in (("cummax", np.maximum), ("cummin", np.minimum)):
        found = np.array(way(lambda x, name=name: getattr(smelt, name)(x, axis=1))(smelt.array(x)))
        np.testing.assert_array_equal(found, ufunc.accumulate(x, 1))
    np.testing.assert_array_equal(
        np.array(way(lambda x: smelt.topk(x, 9, axis=1))(smelt.array(x))), np.sort(x, 1)[:, -9:]
    )
    want = np.clip(x, np.complex64(-1 + 1j), np.complex64(2 - 1j))
    np.testing.assert_array_equal(np.array(way(lambda x: smelt.clip(x, -1 + 1j, 2 - 1j))(smelt.array(x))), want)
    found = way(lambda x: smelt.unique(x, 60, fill_value=9))(smelt.array(x))
    np.testing.assert_array_equal(np.array(found)[:49], np.unique(x))


def test_sums_of_exponentials(way: Callable[..., Any]) -> None:
    rng = np.random.default_rng(2)
    x = (rng.normal(size=(3, 50)) * 20 + 1j * rng.normal(size=(3, 50))).astype(np.complex64)
    x[0, :3], x[1, 7] = -INF, complex(-INF, 3)
    wide = x.astype(np.complex128)
    total = np.exp(wide).sum(1)
    a = smelt.array(x)
    # Logarithms differ by multiples of 2πi: what they are logarithms of is compared.
    found = np.array(way(lambda x: smelt.logsumexp(x, axis=1))(a)).astype(np.complex128)
    np.testing.assert_allclose(np.exp(found), total, rtol=2e-4)
    running = np.array(way(lambda x: smelt.logcumsumexp(x, axis=1))(a)).astype(np.complex128)
    np.testing.assert_allclose(np.exp(running), np.exp(wide).cumsum(1), rtol=3e-4)
    assert np.isneginf(running[0, :3].real).all()
    pair = np.array(way(smelt.logaddexp)(a[:, :25], a[:, 25:])).astype(np.complex128)
    np.testing.assert_allclose(np.exp(pair), np.exp(wide[:, :25]) + np.exp(wide[:, 25:]), rtol=3e-4)


def test_derivatives_are_those_of_the_chosen_elements() -> None:
    x = smelt.array(np.array([1 + 2j, 3 - 1j, 3 + 1j], np.complex64))
    weights = smelt.array(np.array([1, 2j, 3], np.complex64))
    found = smelt.jvp(lambda x: [smelt.max(x), smelt.sort(-x), smelt.cummax(x)], [x], [weights])[1]
    np.testing.assert_array_equal(np.array(found[0]), 3)
    np.testing.assert_array_equal(np.array(found[1]), [-3, -2j, -1])
    np.testing.assert_array_equal(np.array(found[2]), [1, 2j, 3])
    gradient = smelt.grad(lambda x: smelt.real(smelt.logsumexp(x)))(x)
    want = np.conj(np.exp(np.array(x)) / np.exp(np.array(x)).sum())
    np.testing.assert_allclose(np.array(gradient), want, rtol=1e-5)
