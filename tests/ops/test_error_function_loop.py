"""The loops in C that compute erf and its inverse have the bits of NumPy's operations."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from smelt.ir import error_functions, host_loops
from smelt.lazy import core

pytestmark = pytest.mark.skipif(core.native is None, reason="there is no core in C")


@pytest.mark.parametrize("name", ["erf_array", "erfinv_array"])
@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize("scale", [1e-3, 0.4, 1.0, 3.0, 30.0])
@pytest.mark.parametrize("shape", [(), (0,), (1,), (255,), (256,), (257,), (1000,), (13, 29), (2, 3, 700)])
def test_bits(name: str, dtype: Any, scale: float, shape: tuple[int, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    x = np.asarray(np.random.default_rng(1).standard_normal(shape) * scale).astype(dtype)
    if x.size > 8:
        x.flat[:8] = [np.inf, -np.inf, np.nan, -0.0, 1.0, -1.0, 7.0, 1 - 2**-11]
    elif x.size:
        x.flat[-1] = 0.999999
    function = getattr(error_functions, name)
    for y in (x, x.T, x[::2] if x.ndim else x):
        with np.errstate(all="ignore"):
            found = np.asarray(function(y))
            with monkeypatch.context() as patch:
                for loop in ("erf", "erf_single", "erfinv_single"):
                    patch.setattr(host_loops.loops, loop, None)
                want = np.asarray(function(y))
        assert (found.shape, found.dtype) == (want.shape, want.dtype)
        assert np.array_equal(np.isnan(found), np.isnan(want))
        assert found[~np.isnan(found)].tobytes() == want[~np.isnan(want)].tobytes()


def test_arrays_that_do_not_fit_are_refused() -> None:
    with pytest.raises(ValueError):
        core.native.erf_of(np.zeros(3), np.zeros(4))
    with pytest.raises((BufferError, ValueError, TypeError)):
        core.native.erf_of(b"12345678", np.zeros(1))
    with pytest.raises(ValueError):
        core.native.erf_of_single(np.zeros(3, np.float32), np.zeros(4, np.float32))
    with pytest.raises((BufferError, ValueError, TypeError)):
        core.native.erf_of_single(np.zeros(2, np.float32), b"12345678")
    one, two = np.zeros(1, np.float32), np.zeros(2, np.float32)
    for given in ((two, np.zeros(1), two), (two, two, two), (two, np.zeros(2), one), (two, np.zeros(2), b"12345678")):
        with pytest.raises((BufferError, ValueError, TypeError)):
            core.native.erfinv_of_single(*given)


def test_single_precision_is_rounded_once_as_good_as() -> None:
    x = np.concatenate([np.linspace(-5, 5, 20_001), np.logspace(-36, 1, 5_001)]).astype(np.float32)
    exact = np.array([math.erf(v) for v in x.tolist()])
    unit = np.spacing(np.abs(exact).astype(np.float32)).astype(np.float64)
    assert np.max(np.abs(error_functions.erf_array(x) - exact) / np.where(unit > 0, unit, 1)) < 0.51
