"""Arithmetic of complex numbers with constants, and with what was added before: NumPy's zeros, rounding, infinities."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import smelt
from smelt.ir.settings import override

FORMULAS: dict[str, Callable[[Any, Any], Any]] = {
    "x + 0": lambda x, y: x + 0, "0 + x": lambda x, y: 0 + x, "x - 0": lambda x, y: x - 0, "0 - x": lambda x, y: 0 - x,
    "x - -0": lambda x, y: x - (-0.0), "x * 1": lambda x, y: x * 1, "1 * x": lambda x, y: 1 * x,
    "x * 0": lambda x, y: x * 0, "x * 1j": lambda x, y: x * 1j, "x * -1": lambda x, y: x * -1,
    "x + 1 - 1": lambda x, y: (x + 1) - 1, "x - 1 + 1": lambda x, y: (x - 1) + 1, "x + y - y": lambda x, y: (x + y) - y,
    "x - y + y": lambda x, y: (x - y) + y, "x - x": lambda x, y: x - x, "x + -x": lambda x, y: x + -x,
    "real part of x + 0": lambda x, y: (x + 0).real, "sum of one": lambda x, y: x.reshape(-1, 1).sum(axis=1),
}  # fmt: skip
PARTS = [0.0, -0.0, 1.0, -2.5, 1e-12, 3e9, np.inf, -np.inf, np.nan]


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
@pytest.mark.parametrize("name", FORMULAS)
def test_values_are_numpys(name: str, dtype: str) -> None:
    x = np.array([complex(a, b) for a in PARTS for b in PARTS], dtype)
    y = x[::-1].copy()
    with np.errstate(all="ignore"):
        wanted = np.asarray(FORMULAS[name](x, y)).astype(dtype)
    arrays = [smelt.array(v, getattr(smelt, dtype)) for v in (x, y)]
    for tier in ("ops", "program"):
        with override(tier=tier):
            found = np.asarray(smelt.compile(lambda x, y: FORMULAS[name](x, y))(*arrays))
        found = found.astype(dtype)
        for got, want in ((found.real, wanted.real), (found.imag, wanted.imag)):
            np.testing.assert_array_equal(got, want)
            number = ~np.isnan(want)
            np.testing.assert_array_equal(np.signbit(got[number]), np.signbit(want[number]))
