"""Derivatives where a formula could lose them: at 0, at infinities, at whole numbers, where a quotient is rounded."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import mpmath as mp
import numpy as np
import pytest

import smelt
from smelt.ir.settings import settings

INF, NAN = np.inf, np.nan
#: What is smooth, its meaning, and points at which an expression by |x|, tan or x·f(x) would break.
SMOOTH: dict[str, tuple[Callable[[Any], Any], list[float]]] = {
    "erfc": (mp.erfc, [0.0, 1e-38, -1e-8, 0.001, 0.499, -0.5, 0.501, 3.0]),
    "erfcx": (lambda x: mp.exp(x * x) * mp.erfc(x), [0.0, 1e-38, -1e-8, 0.001, 0.499, -0.5, 0.501, 3.0]),
    "ndtr": (mp.ncdf, [0.0, 1e-38, -1e-8, 0.001, 0.5, -3.0]),
    "logit": (lambda x: mp.log(x / (1 - x)), [0.001, 0.2, 0.25, 0.5, 0.75, 0.999]),
    "lgamma": (lambda x: mp.log(abs(mp.gamma(x))), [0.25, 0.5, 1.0, 2.0, 7.0, -0.25, -0.5, -1.5, -6.5]),
    "digamma": (mp.digamma, [0.25, 0.5, 1.0, 2.0, 6.5, -0.25, -0.5, -1.5, -6.5]),
    "i0": (lambda x: mp.besseli(0, x), [0.0, 1e-38, -1e-8, 0.001, 0.499, -0.5, 0.501, 3.0]),
    "i1": (lambda x: mp.besseli(1, x), [0.0, 1e-38, -1e-8, 0.001, 0.499, -0.5, 0.501, 3.0]),
}


@pytest.mark.parametrize(("dtype", "tolerance"), [(smelt.float32, 2e-5), (smelt.float64, 2e-12)], ids=str)
@pytest.mark.parametrize("name", SMOOTH)
def test_smooth_functions(name: str, dtype: smelt.Dtype, tolerance: float) -> None:
    """Two derivatives, both ways."""
    truth, points = SMOOTH[name]
    f = getattr(smelt, name)
    x = smelt.array(points, dtype)
    places = np.asarray(x).astype(np.float64)
    slope = smelt.grad(lambda x: f(x).sum())
    for order, found in ((1, slope(x)), (1, smelt.jvp(f, [x], [smelt.ones_like(x)])[1][0]), (2, along(slope, x))):
        with mp.workdps(60):
            want = np.array([float(mp.diff(truth, mp.mpf(float(v)), order)) for v in places])
        np.testing.assert_allclose(np.asarray(found), want, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("device", ["ops", "cpu", "metal:sim"])
def test_second_derivatives_next_to_zero(device: str) -> None:
    """They are multiples of x there, and no differences of what is about 1."""
    settings.tier = "ops" if device == "ops" else "program"
    points = np.array([1e-3, 1e-5, 1e-10, 1e-30, -1e-30, -1e-10, -1e-5, -1e-3])
    with smelt.stream("cpu" if device == "ops" else device):
        x = smelt.array(points)
        for f, factor in ((smelt.arcsin, 1), (smelt.arccos, -1), (smelt.arctanh, 2)):
            slope = smelt.grad(lambda x, f=f: f(x).sum())
            for second in (smelt.grad(lambda x, slope=slope: slope(x).sum()), lambda x, slope=slope: along(slope, x)):
                np.testing.assert_allclose(np.asarray(smelt.compile(second)(x)), factor * points, 1e-5)


@pytest.mark.parametrize("device", ["ops", "cpu", "metal:sim"])
def test_what_overflows_has_derivatives_that_do(device: str) -> None:
    """Not NaN, nor those of a number at which the formula ends. The signs of value, slope and second derivative."""
    settings.tier = "ops" if device == "ops" else "program"
    with smelt.stream("cpu" if device == "ops" else device):
        for f, points, signs in (
            (smelt.erfcx, [-9.4, -9.5, -12.0, -700.0, -3e38, -INF], [1, -1, 1]),
            (smelt.i0, [91.95, 92.5, 1000.0, 3e38, INF], [1, 1, 1]),
            (smelt.i0, [-91.95, -92.5, -1000.0, -3e38, -INF], [1, -1, 1]),
            (smelt.i1, [91.95, 92.5, 1000.0, 3e38, INF], [1, 1, 1]),
            (smelt.i1, [-91.95, -92.5, -1000.0, -3e38, -INF], [-1, 1, -1]),
        ):
            x = smelt.array(points)
            slope = smelt.grad(lambda x, f=f: f(x).sum())
            second = smelt.grad(lambda x, slope=slope: slope(x).sum())
            for function, sign in zip((f, slope, second), signs):
                np.testing.assert_array_equal(np.asarray(smelt.compile(function)(x)), sign * np.full(len(points), INF))
                np.testing.assert_array_equal(np.asarray(along(f, x)), signs[1] * np.full(len(points), INF))
        end = smelt.array([INF])
        assert smelt.grad(lambda x: smelt.lgamma(x).sum())(end).item() == INF


def along(f: Callable[[smelt.array], smelt.array], x: smelt.array) -> smelt.array:
    return smelt.jvp(f, [x], [smelt.ones_like(x)])[1][0]


def slopes(f: Callable[..., smelt.array], *xs: Any) -> list[np.ndarray]:
    """The derivatives of an elementwise function with respect to each operand: backwards, and the same forwards."""
    arrays = [smelt.array(np.asarray(x, np.float32)) for x in xs]
    slope = [smelt.grad(lambda *xs: f(*xs).sum(), argnums=i) for i in range(len(xs))]
    found = [np.asarray(g(*arrays)) for g in slope]
    compiled = smelt.compile(lambda *xs: [g(*xs) for g in slope])(*arrays)
    for i, back in enumerate(found):
        np.testing.assert_allclose(np.asarray(compiled[i]), back, rtol=1e-6)
        others = lambda x, i=i: f(*arrays[:i], x, *arrays[i + 1 :])  # noqa: E731
        np.testing.assert_allclose(np.asarray(along(others, arrays[i])), back, rtol=1e-6)
    return found


def test_angles_at_infinity() -> None:
    """A point at infinity does not turn when it is moved."""
    ends = [-INF, -2.0, -0.0, 0.0, 3.0, INF]
    y, x = (v.ravel() for v in np.meshgrid(ends, ends))
    far = np.isinf(y) | np.isinf(x)
    for found in slopes(smelt.arctan2, y, x):
        assert np.all(found[far] == 0) and np.all(np.isfinite(found))
    for found in slopes(smelt.arctan2, [NAN, INF, NAN], [1.0, NAN, INF]):
        assert np.all(np.isnan(found))


def test_remainders_whose_quotient_is_rounded() -> None:
    """r = x - n·y, so the derivative with respect to y is -n, with the n that belongs to r."""
    x = np.array([0.5, -0.5, 0.5, -0.5, 1e-45, -1e-45, -1e-38, 0.7, 7.0, -7.0, np.nextafter(np.float32(3), 0)])
    y = np.array([INF, INF, -INF, -INF, -2.0, 2.0, 3e38, 0.1, 4.0, 4.0, 1.0])
    by_x, by_y = slopes(smelt.remainder, x, y)
    assert np.all(by_x == 1)
    x32, y32 = x.astype(np.float32), y.astype(np.float32)
    np.testing.assert_array_equal(by_y, -np.floor_divide(x32, y32))
    ones = smelt.ones_like(smelt.array(y32))
    second = smelt.jvp(lambda y: along(lambda y: smelt.remainder(smelt.array(x32), y), y), [smelt.array(y32)], [ones])
    assert np.all(np.asarray(second[1][0]) == 0)


def test_fractions_of_whole_numbers() -> None:
    (found,) = slopes(lambda x: smelt.modf(x)[0], [-2.0, -1.5, -1.0, -0.0, 0.0, 1.0, 1.5])
    assert np.all(found == 1)
    parts = smelt.modf(smelt.array([-2.0, -0.0, 0.0, 2.0]))[0].tolist()
    assert [str(v) for v in parts] == ["-0.0", "-0.0", "0.0", "0.0"]


def test_poles() -> None:
    """What is infinite on both sides of a pole has a slope that is, or none: not a finite one."""
    (found,) = slopes(smelt.logit, [0.0, 1.0])
    assert np.all(found == INF)
    (found,) = slopes(smelt.digamma, [0.0, -0.0])
    assert np.all(found == INF)
    for f in (smelt.lgamma, smelt.digamma):
        x = smelt.array([-1.0, -2.0, -8.0, -1e30])
        assert not np.any(np.isfinite(np.asarray(smelt.grad(lambda x, f=f: f(x).sum())(x))))
    small = np.asarray(smelt.lgamma(smelt.array([-1e-38, -1e-30])))
    np.testing.assert_allclose(small, [87.498238, 69.077553], rtol=1e-6)
    assert np.all(np.asarray(smelt.lgamma(smelt.array([-1.0, -2e10, -8.5e37, -INF]))) == INF)


def test_running_sums_of_exponentials_beside_an_infinity() -> None:
    """What is beside an infinity counts nothing, and several of these share what is before and after them."""
    for row, want in (
        ([INF, 1.0, 2.0, 3.0], [4, 0, 0, 0]),
        ([0.0, INF, 0.0, INF], [1, 2.5, 0, 0.5]),
        ([-INF, INF, INF, 1.0], [0, 2, 1, 0]),
        ([-INF, -INF, -INF, -INF], [0, 0, 0, 0]),
    ):
        x = smelt.array(row)
        slope = smelt.grad(lambda x: smelt.logcumsumexp(x).sum())
        np.testing.assert_array_equal(np.asarray(slope(x)), want)
        np.testing.assert_array_equal(np.asarray(smelt.compile(slope)(x)), want)


def _slope(function: Callable[..., Any], x: float, dtype: Any) -> float:
    return float(smelt.grad(function)(smelt.array(x, dtype)))


@pytest.mark.parametrize("dtype", [smelt.float32, smelt.float64], ids=str)
@pytest.mark.parametrize("name", ["expm1", "elu", "celu"])
def test_slopes_of_exponentials_far_below_zero(name: str, dtype: Any) -> None:
    """Of a result of -1 nothing says how near it is."""
    function = getattr(smelt, name, None) or getattr(smelt.nn, name)
    for x in (-3.0, -20.0, -60.0):
        assert _slope(function, x, dtype) == pytest.approx(math.exp(x), rel=4 * float(smelt.finfo(dtype).eps))


def test_the_slope_of_ei_is_finite_where_ei_is() -> None:
    for x in (80.0, 88.75, 89.8, 92.0):
        assert _slope(smelt.expi, x, smelt.float32) == pytest.approx(math.exp(x) / x, rel=1e-5)
    assert _slope(smelt.expi, 120.0, smelt.float32) == math.inf


#: What grows faster than an exponential, with its slope, near the ends of float32 and of float64.
GROWING: dict[str, tuple[Callable[[Any], Any], Callable[[Any], Any], list[float], list[float]]] = {
    "i0": (smelt.i0, lambda x: mp.besseli(1, x), [8.5, 60.0, 88.75, -90.0, 91.0], [600.0, 712.0, -713.0]),
    "i1": (smelt.i1, lambda x: mp.besseli(0, x) - mp.besseli(1, x) / x, [8.5, 88.75, -90.0, 91.0], [712.0, -713.0]),
    "gamma": (
        smelt.gamma, lambda x: mp.gamma(x) * mp.digamma(x), [15.5, 26.5, 27.5, 30.25, 33.0, -3.5], [120.5, 160.25, -9.5]
    ),
    "factorial": (
        smelt.factorial, lambda x: mp.gamma(x + 1) * mp.digamma(x + 1), [25.5, 27.0, 30.25, 33.0], [119.5, 160.0]
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", GROWING)
def test_slopes_near_the_largest_numbers(name: str) -> None:
    """They are finite, though cotangents of small factors would not be; in halves, too."""
    f, slope, single, double = GROWING[name]
    for dtype, points in ((smelt.float32, single), (smelt.float64, double), (smelt.bfloat16, single)):
        x = smelt.array(points, smelt.float64).astype(dtype)
        want = [float(slope(mp.mpf(v))) for v in x.astype(smelt.float64).tolist()]
        found = np.asarray(smelt.grad(lambda x: f(x).sum())(x).astype(smelt.float64))
        tolerance = 0.005 if dtype is smelt.bfloat16 else 200 * float(smelt.finfo(dtype).eps)
        np.testing.assert_allclose(found, want, rtol=tolerance)


@pytest.mark.parametrize("dtype", [smelt.float32, smelt.float64], ids=str)
def test_gamma_functions_that_vanish_have_no_slope(dtype: Any) -> None:
    x = smelt.array([-34.5, -35.5, -60.25, -171.5, -396.5, -3571.25][0 if dtype is smelt.float32 else 3 :], dtype)
    assert smelt.abs(smelt.gamma(x)).max().item() < 1e-37
    assert smelt.abs(smelt.grad(lambda x: smelt.gamma(x).sum())(x)).max().item() < 1e-36


@pytest.mark.parametrize("dtype", [smelt.float32, smelt.float64], ids=str)
def test_slopes_at_the_ends_of_special_functions(dtype: Any) -> None:
    """Where a formula has products of 0 and infinity: infinite gamma functions, ζ of what is 1, Eₙ at 0."""
    for f in (smelt.gamma, smelt.factorial):
        assert [_slope(f, x, dtype) for x in (300.0, 1e30, INF)] == [INF] * 3
    assert [_slope(smelt.zeta, x, dtype) for x in (4e3, 1e5, 1e17, 1e30)] == [0] * 4
    for n in (3, 4, 7, 50):
        slope = smelt.grad(lambda x, n=n: smelt.expn(n, x))
        assert _slope(lambda x, n=n: smelt.expn(n, x), 0.0, dtype) == pytest.approx(-1 / (n - 2), rel=1e-6)
        if n > 3:
            assert _slope(slope, 0.0, dtype) == pytest.approx(1 / (n - 3), rel=1e-6)


@pytest.mark.parametrize("dtype", [smelt.float32, smelt.float64], ids=str)
def test_relative_entropy_of_nearly_equal_numbers(dtype: Any) -> None:
    """x·log(x/y) by the difference, where the quotient has few digits beside 1, against mpmath; slopes are finite."""
    rng, eps = np.random.default_rng(0), float(smelt.finfo(dtype).eps)
    x = rng.uniform(0.01, 10, 200).astype(dtype.numpy)
    y = (x * (1 + rng.choice([-1, 1], 200) * 10.0 ** rng.uniform(math.log10(eps), -0.1, 200))).astype(dtype.numpy)
    found = np.array(smelt.rel_entr(smelt.array(x, dtype), smelt.array(y, dtype)))
    with mp.workdps(40):
        wanted = [mp.mpf(float(a)) * mp.log(mp.mpf(float(a)) / mp.mpf(float(b))) for a, b in zip(x, y)]
        assert all(abs(f - w) <= 6 * eps * abs(w) for f, w in zip(map(float, found), wanted))
    far = smelt.array([1e25, 1e-30], smelt.float32), smelt.array([1e-12, 1e8], smelt.float32)
    slopes = smelt.grad(lambda x, y: smelt.rel_entr(x, y).sum(), argnums=(0, 1))(*far)
    np.testing.assert_allclose(np.array(slopes[0]), [math.log(1e37) + 1, math.log(1e-38) + 1], rtol=1e-5)
    np.testing.assert_allclose(np.array(slopes[1]), [-1e37, -1e-38], rtol=1e-5)
