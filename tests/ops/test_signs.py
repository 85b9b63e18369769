"""Signs on the host, whose floats have a loop of their own: NumPy's, in every layout."""

from __future__ import annotations

import numpy as np
import pytest

import smelt
from smelt.ir.settings import override


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "int32", "int8", "uint8", "bfloat16"])
@pytest.mark.parametrize("size", [3, 4099])
def test_signs_are_those_of_numpy(dtype: str, size: int) -> None:
    rng = np.random.default_rng(0)
    kind = getattr(smelt, dtype)
    values = np.abs(rng.integers(-3, 4, (size, 3))) if dtype == "uint8" else rng.integers(-3, 4, (size, 3))
    host = values.astype(np.float64)
    if "float" in dtype:
        host[0], host[1] = (np.nan, np.inf, -np.inf), (-0.0, 1e-30, -1e-30)
    x = smelt.array(host.astype(np.float32), smelt.float32).astype(kind)
    exactly = np.asarray(x.astype(smelt.float64))
    with override(tier="ops"):
        for found, expected in (
            (smelt.sign(x), np.sign(exactly)),
            (smelt.sign(x.T), np.sign(exactly.T)),
            (smelt.sign(x[::-1, 1:]), np.sign(exactly[::-1, 1:])),
            (smelt.sign(x[0:0]), np.sign(exactly[0:0])),
        ):
            assert found.dtype is kind
            got = np.asarray(found.astype(smelt.float64))
            np.testing.assert_array_equal(got, expected)
            assert not np.signbit(got[got == 0]).any()
