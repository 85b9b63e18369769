"""Running sums, products and extrema have loops of their own, which give what NumPy gives."""

from __future__ import annotations

import numpy as np
import pytest

import smelt
from smelt.ir import running as rules
from smelt.ir.host_loops import loops
from tests.frontend.checks import exact

pytestmark = pytest.mark.host("about NumPy's running results")

SHAPES = [
    ((600,), 0), ((1, 600), 1), ((7, 100), 1), ((8, 100), 1), ((9, 100), 1), ((25, 100), 1), ((100, 25), 0),
    ((600, 1), 1), ((600, 1), 0), ((1, 600), 0), ((3, 40, 5), 1), ((3, 40, 5), 2), ((3, 40, 5), 0), ((2, 3, 4, 50), 2),
    ((700, 2), 0), ((0, 600), 1), ((600, 0), 0), ((5, 3), 1),
]  # fmt: skip


@pytest.mark.parametrize("dtype", ["int32", "int64", "uint8", "uint32", "float16", "float32", "float64", "complex64"])
@pytest.mark.parametrize("function", rules.RUNNING, ids=lambda f: f.__name__)
def test_they_are_numpys(function: np.ufunc, dtype: str) -> None:
    rng = np.random.default_rng(0)
    for shape, axis in SHAPES:
        x = (rng.standard_normal(shape) * 3 if dtype[0] in "fc" else rng.integers(0, 9**9, shape)).astype(dtype)
        if dtype[0] == "f" and x.size > 100:
            x.reshape(-1)[rng.integers(0, x.size, 2)] = np.nan
            x.reshape(-1)[rng.integers(0, x.size, 2)] = np.inf
            x.reshape(-1)[rng.integers(0, x.size, 2)] = 0
        with np.errstate(all="ignore"):
            for given in (x, np.asfortranarray(x), x[::-1], x.astype(x.dtype.newbyteorder())):
                found, total = rules.running(function, given, axis), x.dtype
                if function in (np.add, np.multiply):
                    total = rules.TOTALS.get(x.dtype.char, total)
                want = function.accumulate(given, axis, dtype=total.type).astype(x.dtype)
                assert found.shape == want.shape and found.dtype == want.dtype
                np.testing.assert_array_equal(found, want, err_msg=f"{function} {shape} {axis}")


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("function", rules.RUNNING, ids=lambda f: f.__name__)
def test_zeros_have_numpys_signs(function: np.ufunc, dtype: str) -> None:
    rng = np.random.default_rng(0)
    for shape, axis in SHAPES:
        x = rng.choice([0.0, -0.0], shape).astype(dtype)
        for given in (x, x.T.copy().T, np.flip(x)):
            found, want = rules.running(function, given, axis), function.accumulate(given, axis)
            np.testing.assert_array_equal(np.signbit(found), np.signbit(want), err_msg=f"{function} {shape} {axis}")


@pytest.mark.parametrize("name", ["cumsum", "cumprod", "cummax", "cummin"])
@pytest.mark.parametrize("dtype", ["int32", "float32", "float64"])
def test_from_either_end(name: str, dtype: str) -> None:
    x = np.random.default_rng(1).integers(1, 4, (40, 30)).astype(dtype)
    theirs = {"cumsum": np.add, "cumprod": np.multiply, "cummax": np.maximum, "cummin": np.minimum}[name].accumulate
    with smelt.stream("cpu"):
        for axis in (0, 1):
            found = getattr(smelt, name)(exact(x), axis=axis, reverse=True)
            want = np.flip(theirs(np.flip(x, axis), axis, dtype=dtype), axis)
            np.testing.assert_array_equal(np.asarray(found), want)
            before = getattr(smelt, name)(exact(x), axis=axis, inclusive=False)
            kept = theirs(x, axis, dtype=dtype)
            np.testing.assert_array_equal(np.moveaxis(np.asarray(before), axis, 0)[1:], np.moveaxis(kept, axis, 0)[:-1])


@pytest.mark.skipif(loops.running is None, reason="no core in C")
def test_what_does_not_fit_is_refused() -> None:
    assert loops.running is not None
    x, out = np.ones((4, 6), np.float32), np.empty((4, 6), np.float32)
    for which, kind, n, columns in (
        (0, 2, 5, 1), (0, 2, 0, 1), (0, 2, 6, 0), (0, 3, 6, 1), (0, 4, 6, 1), (0, -1, 6, 1), (4, 2, 6, 1),
        (-1, 2, 6, 1), (0, 2, 1 << 62, 4), (0, 2, 6, 1 << 62), (0, 2, 4, 4),
    ):  # fmt: skip
        with pytest.raises(ValueError, match="running takes"):
            loops.running(x, out, which, kind, n, columns)
    with pytest.raises(ValueError, match="running takes"):
        loops.running(x, out[:3], 0, 2, 6, 1)


@pytest.mark.parametrize("given", ["bool", "int8", "float32", "complex64"])
def test_in_the_dtype_that_is_asked_for(given: str) -> None:
    host = np.array([[0, 2, 5, 1], [0, 0, 3, 0]]).astype(given)
    for name in ("cumsum", "cumprod", "nancumsum", "nancumprod", "cumulative_sum", "cumulative_prod"):
        for dtype in ("bool", "uint8", "int8", "int32", "int64", "float32", "float64", "complex64"):
            if given == "complex64" and dtype != given:
                continue  # NumPy warns: the imaginary part is lost
            asked = getattr(smelt, "bool_" if dtype == "bool" else dtype)
            found = getattr(smelt, name)(exact(host), axis=1, dtype=asked)
            wanted = getattr(np, name)(host, axis=1, dtype=dtype)
            np.testing.assert_array_equal(np.array(found), wanted, strict=True)
