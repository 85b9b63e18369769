"""The error function and its inverse in NumPy, beside mpmath."""

from __future__ import annotations

import subprocess
import sys

import mpmath
import numpy as np
import pytest

from smelt.ir.error_functions import erf_array, erfinv_array

RNG = np.random.default_rng(0)
TINY = 10.0 ** RNG.uniform(-300, -1, 100)
POINTS = {
    erf_array: np.concatenate([RNG.uniform(-1.2, 1.2, 300), RNG.uniform(-7, 7, 300), TINY, [0.0, 1.0, -1.0, 30.0]]),
    erfinv_array: np.concatenate([RNG.uniform(-1, 1, 300), 1 - TINY[TINY > 1e-16], TINY, [0.5, -0.5, 1 - 2.0**-53]]),
}
EXACT = {erf_array: mpmath.erf, erfinv_array: mpmath.erfinv}


@pytest.mark.parametrize("function", POINTS)
@pytest.mark.parametrize(("dtype", "ulp"), [(np.float64, 3.0), (np.float32, 0.51)])
def test_values_are_exact_to_the_last_places(function, dtype, ulp: float) -> None:
    with mpmath.workdps(40):
        x = POINTS[function].astype(dtype)
        x = x[np.abs(x) < 1] if function is erfinv_array else x
        x = x[(x == 0) | (np.abs(x) > np.finfo(dtype).tiny)]
        have = function(x)
        assert have.dtype == dtype
        for at, value in zip(x.tolist(), have):
            want = EXACT[function](mpmath.mpf(at))
            assert abs(mpmath.mpf(float(value)) - want) <= ulp * float(np.spacing(np.abs(dtype(want)))), at


def test_the_ends() -> None:
    with np.errstate(all="ignore"):
        found = erf_array(np.array([np.inf, -np.inf, 1e200, -0.0, np.nan]))
        np.testing.assert_array_equal(found, [1, -1, 1, -0.0, np.nan])
        assert np.signbit(found[3])
        for dtype in (np.float64, np.float32):
            found = erfinv_array(np.array([1, -1, 1.5, np.nan, -0.0], dtype))
            np.testing.assert_array_equal(found, [np.inf, -np.inf, np.nan, np.nan, -0.0])
            assert np.signbit(found[4])
    for shape in ((), (0, 3), (2, 0), (3, 4)):
        for dtype in (np.float64, np.float32):
            assert erf_array(np.zeros(shape, dtype)).shape == erfinv_array(np.zeros(shape, dtype)).shape == shape


def test_the_inverse_for_float32_is_that_for_float64() -> None:
    """Also next to 1 and where the polynomials meet, element by element too."""
    near = np.float32(1) - np.float32(2.0**-24) * np.arange(1, 3000, dtype=np.float32)
    meet = np.float32(np.sqrt(1 - np.exp(-5))) + np.float32(2.0**-23) * np.arange(-200, 200, dtype=np.float32)
    x = np.concatenate([near, meet, -near, np.linspace(-0.999, 0.999, 5001, dtype=np.float32)]).astype(np.float32)
    have, exact = erfinv_array(x), erfinv_array(x.astype(np.float64))
    assert have.dtype == np.float32
    assert np.max(np.abs(have - exact) / np.spacing(np.abs(exact).astype(np.float32))) < 0.51
    assert [float(erfinv_array(v)) for v in x[::97]] == have[::97].tolist()


def test_a_part_of_an_array_has_the_values_of_the_whole() -> None:
    """Some ways are left out where no element takes them."""
    x = np.linspace(-3, 3, 101)
    whole = erf_array(x)
    np.testing.assert_array_equal(whole, np.concatenate([erf_array(x[i : i + 1]) for i in range(len(x))]))


def test_scipy_is_not_loaded() -> None:
    code = """
import sys, smelt
smelt.eval(smelt.erf(smelt.ones(3)), smelt.random.normal((5,)))
print([name for name in sys.modules if name.partition(".")[0] == "scipy"])
"""
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"
