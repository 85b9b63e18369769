"""Elementary functions of complex numbers at all pairs of zeros, infinities, NaN and some numbers: as C99 has it."""

from __future__ import annotations

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
        right = same(found.real, want.real, told) & same(found.imag, want.imag, told)
    wrong = [f"{z}: {f}, not {w}" for z, f, w in zip(Z[~right], found[~right], want[~right])]
    assert not wrong, f"{name}: " + "; ".join(wrong)
