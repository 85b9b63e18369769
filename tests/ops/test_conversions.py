"""Conversions that round: once, whatever kernels hold in between."""

from __future__ import annotations

import numpy as np

import smelt
from smelt.ir.settings import override


def test_float64_to_float16_is_rounded_once() -> None:
    """By way of float32, what is just above the middle of two would be rounded to the middle first."""
    rng = np.random.default_rng(0)
    middles = (1 + rng.integers(0, 2048, 400) / 2048) * 2.0 ** rng.integers(-26, 16, 400)
    special = [65520 - 1e-9, 65520, 2**-25, 2**-25 + 2**-60, 1e-300, -1e-300, 0.0, -0.0, np.inf, -np.inf, np.nan, 1e39]
    x = np.concatenate([special, middles, middles * (1 + 1e-12), middles * (1 - 1e-12), rng.standard_normal(400)])
    x = np.concatenate([x, -x])
    with np.errstate(over="ignore"):
        want = x.astype(np.float16)
    with override(tier="program", small_work=0):
        found = np.array(smelt.compile(lambda x: (x * 1).astype(smelt.float16))(smelt.array(x, smelt.float64)))
    np.testing.assert_array_equal(found, want)
    known = ~np.isnan(want)  # a GPU's NaN has no sign
    np.testing.assert_array_equal(np.signbit(found)[known], np.signbit(want)[known])
