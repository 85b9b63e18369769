"""What tests of layers and losses share: values against formulas, gradients against differences."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from typing import Any

import numpy as np

import smelt

#: By dtype: how far results may be from those of float64, relative to the largest.
TOLERANCE = {"float32": 5e-6, "float16": 5e-3, "bfloat16": 4e-2}


def rng_of(*what: Any) -> np.random.Generator:
    return np.random.default_rng(zlib.crc32(repr(what).encode()))


def host(x: smelt.array) -> np.ndarray:
    return np.asarray(x.astype(smelt.float32 if x.dtype is smelt.bfloat16 else x.dtype)).astype(np.float64)


def close(found: smelt.array, wanted: np.ndarray, dtype: str) -> None:
    assert found.shape == wanted.shape
    tolerance = TOLERANCE[dtype]
    largest = max(1.0, np.abs(wanted).max(initial=0.0))
    np.testing.assert_allclose(host(found), wanted, tolerance, tolerance * largest)


def check_gradient(function: Callable[..., smelt.array], *arrays: np.ndarray) -> None:
    """The gradient of Σ c · function(...) in float64 beside differences, along random directions."""
    rng = rng_of([x.shape for x in arrays])
    given = [smelt.array(x, smelt.float64) for x in arrays]
    weights = smelt.array(rng.standard_normal(function(*given).shape), smelt.float64)

    def total(*xs: smelt.array) -> smelt.array:
        return (function(*xs) * weights).sum()

    gradients = smelt.grad(total, tuple(range(len(given))))(*given)
    gradients = gradients if isinstance(gradients, tuple) else (gradients,)
    for i, gradient in enumerate(gradients):
        direction = rng.standard_normal(given[i].shape)
        ends = []
        for step in (1e-5, -1e-5):
            moved = [*given]
            moved[i] = smelt.array(arrays[i] + step * direction, smelt.float64)
            ends.append(total(*moved).item())
        slope = (ends[0] - ends[1]) / 2e-5
        found = float((np.asarray(gradient) * direction).sum())
        np.testing.assert_allclose(found, slope, 1e-4, 1e-6, err_msg=f"argument {i}")
