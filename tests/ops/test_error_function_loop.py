"""The loop in C that computes erf has the bits of NumPy's operations."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from smelt.ir import error_functions, host_loops
from smelt.lazy import core

pytestmark = pytest.mark.skipif(core.native is None, reason="there is no core in C")


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize("scale", [1e-3, 0.4, 1.0, 3.0, 30.0])
@pytest.mark.parametrize("shape", [(), (0,), (1,), (255,), (256,), (257,), (1000,), (13, 29), (2, 3, 700)])
def test_bits(dtype: Any, scale: float, shape: tuple[int, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    x = np.asarray(np.random.default_rng(1).standard_normal(shape) * scale).astype(dtype)
    if x.size > 8:
        x.flat[:8] = [np.inf, -np.inf, np.nan, -0.0, 1.0, -1.0, 7.0, 1 - 2**-11]
    for y in (x, x.T, x[::2] if x.ndim else x):
        with np.errstate(all="ignore"):
            found = np.asarray(error_functions.erf_array(y))
            with monkeypatch.context() as patch:
                patch.setattr(host_loops.loops, "erf", None)
                want = np.asarray(error_functions.erf_array(y))
        assert (found.shape, found.dtype) == (want.shape, want.dtype)
        assert np.array_equal(np.isnan(found), np.isnan(want))
        assert found[~np.isnan(found)].tobytes() == want[~np.isnan(want)].tobytes()


def test_arrays_that_do_not_fit_are_refused() -> None:
    with pytest.raises(ValueError):
        core.native.erf_of(np.zeros(3), np.zeros(4))
    with pytest.raises((BufferError, ValueError, TypeError)):
        core.native.erf_of(b"12345678", np.zeros(1))
