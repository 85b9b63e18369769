"""Elementary functions of complex numbers at all pairs of zeros, infinities, NaN and some numbers: as C99 has it."""

from __future__ import annotations

from typing import Any

import mpmath as mp
import numpy as np
import pytest

import smelt

from ..devices import with_kernels

PARTS = [0.0, -0.0, 1.0, -1.0, 0.5, 3.0, -3.0, np.inf, -np.inf, np.nan]
Z = np.array([complex(x, y) for x in PARTS for y in PARTS])
NAMES = [
    "exp", "expm1", "log", "log1p", "log2", "log10", "sqrt", "sin", "cos", "tan", "sinh", "cosh", "tanh",
    "arcsin", "arccos", "arctan", "arcsinh", "arccosh", "arctanh", "abs", "square",
]  # fmt: skip
#: Functions of which C leaves open the sign of zeros and infinities beside a NaN, or where both parts are infinite.
OPEN = ("sin", "cos", "tan", "sinh", "cosh", "tanh")
#: Functions of which C leaves open the signs of some of them where an operand's part is a NaN.
OPEN_OF_NAN = ("arcsin", "arccos", "arctan", "arcsinh", "arctanh")


def expected(name: str) -> np.ndarray:
    if name == "expm1":  # NumPy's own has NaN for infinite results
        finite = np.isfinite(Z.real) & np.isfinite(Z.imag)
        return np.where(finite, np.expm1(Z), np.exp(Z) - 1)
    return getattr(np, name)(Z)


def same(found: np.ndarray, want: np.ndarray, signs: np.ndarray) -> np.ndarray:
    """Equal but for rounding, also in sign where that is told."""
    tolerance = {"rtol": 1e-5, "atol": 1e-7} if found.dtype == np.float32 else {"rtol": 1e-14, "atol": 1e-15}
    both = np.isnan(found) & np.isnan(want)
    close = np.isclose(found, want, **tolerance) & ((found == 0) == (want == 0))
    open_ = (found == want) | (np.isinf(found) & np.isinf(want))
    return both | np.where(signs, (close | (found == want)) & (np.signbit(found) == np.signbit(want)), close | open_)


@pytest.mark.parametrize("way", ["eager", *(device.name for device in with_kernels())])
@pytest.mark.parametrize("dtype", [smelt.complex64, smelt.complex128], ids=lambda d: d.name)
@pytest.mark.parametrize("name", NAMES)
def test_all_pairs(name: str, dtype: smelt.Dtype, way: str) -> None:
    with np.errstate(all="ignore"):
        want = expected(name)
        if way == "eager":
            found = np.asarray(getattr(smelt, name)(smelt.array(Z, dtype)))
        else:
            with smelt.stream(way):
                found = np.asarray(smelt.compile(getattr(smelt, name))(smelt.array(Z, dtype)))
        beside = np.isnan(want.real) | np.isnan(want.imag) | (np.isinf(Z.real) & np.isinf(Z.imag))
        told = ~beside if name in OPEN else np.ones(Z.shape, bool)
        if name in OPEN_OF_NAN:
            told = ~(np.isnan(Z.real) | np.isnan(Z.imag))
        right = same(found.real, want.real, told) & same(found.imag, want.imag, told)
    wrong = [f"{z}: {f}, not {w}" for z, f, w in zip(Z[~right], found[~right], want[~right])]
    assert not wrong, f"{name}: " + "; ".join(wrong)


def rounded(f: Any, z: np.ndarray) -> np.ndarray:
    """`f` of complex numbers, each part to the nearest number of its dtype; infinities where it is too large."""
    with mp.workdps(40), np.errstate(all="ignore"):
        exact = [f(mp.mpc(v.real, v.imag)) for v in z.astype(np.complex128)]
        return np.array([complex(float(w.real), float(w.imag)) for w in map(mp.mpc, exact)]).astype(z.dtype)


@pytest.mark.parametrize("way", ["eager", *(device.name for device in with_kernels())])
@pytest.mark.parametrize("dtype", [smelt.complex64, smelt.complex128], ids=lambda d: d.name)
@pytest.mark.parametrize("name", ["exp", "sinh", "cosh", "sin", "cos"])
def test_growth_that_a_small_sine_holds_back(name: str, dtype: smelt.Dtype, way: str) -> None:
    """e^x is infinite, and a part of the result is not."""
    large = [-95.0, 80.0, 90.0, 100.0, 127.0] if dtype is smelt.complex64 else [-715.0, 650.0, 712.0, 750.0, 1050.0]
    z = np.array([complex(x, y) for x in large for y in (0.0, -0.0, 1e-16, 1e-6, -0.01, 0.5, 2.0, 3.5)])
    z = (z * 1j if name in ("sin", "cos") else z).astype(np.complex64 if dtype is smelt.complex64 else np.complex128)
    if way == "eager":
        found = np.asarray(getattr(smelt, name)(smelt.array(z, dtype)))
    else:
        with smelt.stream(way):
            found = np.asarray(smelt.compile(getattr(smelt, name))(smelt.array(z, dtype)))
    want = rounded(getattr(mp, name), z)
    for part in ("real", "imag"):
        a, b = getattr(found, part), getattr(want, part)
        close = {"rtol": 2e-6, "atol": 1e-38} if dtype is smelt.complex64 else {"rtol": 1e-13, "atol": 1e-308}
        np.testing.assert_allclose(a, b, **close, err_msg=str(z))


@pytest.mark.parametrize("way", ["eager", *(device.name for device in with_kernels())])
@pytest.mark.parametrize("dtype", [smelt.complex64, smelt.complex128], ids=lambda d: d.name)
def test_the_largest_numbers_and_those_beside_nan(dtype: smelt.Dtype, way: str) -> None:
    most = float(smelt.finfo(dtype).max)
    z = smelt.array([complex(x, y) for x in (most, -most, most / 2) for y in (most, -most / 2)], dtype)
    wild = smelt.array([complex(np.nan, 1e25), complex(np.nan, 1.0), complex(1e25, np.nan)], dtype)
    with smelt.stream("cpu" if way == "eager" else way):
        for name, exact in (("arcsin", mp.asin), ("arccos", mp.acos), ("arcsinh", mp.asinh), ("arccosh", mp.acosh)):
            f = getattr(smelt, name)
            found = np.asarray(f(z) if way == "eager" else smelt.compile(f)(z))
            np.testing.assert_allclose(found, rounded(exact, np.asarray(z)), rtol=1e-6)
        for f in (smelt.arctan, smelt.arctanh):
            found = np.asarray(f(wild) if way == "eager" else smelt.compile(f)(wild))
            assert np.all(np.isnan(found.imag) | np.isnan(found.real))
        turned = smelt.array([complex(3.5, 0.0), complex(3.5, -0.0), complex(-3.5, 0.0)], dtype)
        found = np.asarray(smelt.cos(turned) if way == "eager" else smelt.compile(smelt.cos)(turned))
        assert np.signbit(found.imag).tolist() == [False, True, True]  # -sin x · sinh y, and sin 3.5 < 0
