"""Half precision on the host goes through float32 in vectors: to the bits of NumPy's and ml_dtypes' own functions."""

from __future__ import annotations

import numpy as np
import pytest

import smelt
from smelt.ir import dtypes, halves
from smelt.ir.host_loops import loops

pytestmark = pytest.mark.host("about NumPy's half precision")

HALVES = pytest.mark.parametrize("dtype", [dtypes.float16, dtypes.bfloat16], ids=str)
ALL = np.arange(1 << 16, dtype=np.uint16)
WIDE = np.dtype(np.float32)


def bits(x: np.ndarray) -> np.ndarray:
    return x.view(f"u{x.dtype.itemsize}")


@HALVES
def test_conversions_have_the_same_bits(dtype: dtypes.DType) -> None:
    every = ALL.view(dtype.numpy)
    np.testing.assert_array_equal(bits(halves.convert(every, WIDE)), bits(every.astype(WIDE)))
    rng = np.random.default_rng(0)
    # Each number, what is next to it, halfway to the next one, and any bits.
    steps = np.array([0, 1, 0xFFF, 0x1000, 0x1001, 0x7FFF, 0x8000, 0x8001], np.uint32)
    near = [bits(every.astype(WIDE)) + step for step in steps]
    for words in (*near, rng.integers(0, 1 << 32, 1 << 18, dtype=np.uint32)):
        x = words.view(WIDE)
        with np.errstate(all="ignore"):
            np.testing.assert_array_equal(bits(halves.convert(x, dtype.numpy)), bits(x.astype(dtype.numpy)))


@HALVES
def test_strides_and_sizes(dtype: dtypes.DType) -> None:
    x = np.random.default_rng(0).standard_normal((40, 60)).astype(dtype.numpy)
    repeated = np.broadcast_to(x[:, None, :1], (40, 50, 60))
    for given in (x, x.T, x[::-1, ::3], x[:0], x[0, 0], repeated, np.broadcast_to(x[:1, 0], (3000,)), x[:, None]):
        found = halves.convert(np.asarray(given), WIDE)
        np.testing.assert_array_equal(found, np.asarray(given).astype(WIDE), strict=True)
        np.testing.assert_array_equal(halves.convert(found, dtype.numpy), given, strict=True)


def test_the_other_byte_order() -> None:
    x = np.linspace(-3, 3, 2000)
    for given, wanted in (("<f4", ">f2"), (">f2", "<f4"), (">f4", "<f2"), ("<f2", ">f4")):
        a, dtype = x.astype(given), np.dtype(wanted)
        np.testing.assert_array_equal(halves.convert(a, dtype), a.astype(dtype), strict=True)
    half = x.astype(">f2")
    np.testing.assert_array_equal(np.array(smelt.array(half, smelt.float32)), half.astype(np.float32), strict=True)


@HALVES
def test_functions_have_the_same_bits(dtype: dtypes.DType) -> None:
    rng = np.random.default_rng(0)
    x, y = (rng.permutation(ALL).view(dtype.numpy) for _ in range(2))
    with np.errstate(all="ignore"):
        for ufunc in (np.add, np.subtract, np.multiply, np.divide, np.maximum, np.less, np.equal):
            found, want = halves.by_float32(ufunc, x, y), ufunc(x, y)
            np.testing.assert_array_equal(found.astype(WIDE), want.astype(WIDE))
            assert found.dtype == want.dtype
        for one in (np.sqrt, np.negative, np.abs, np.floor):
            np.testing.assert_array_equal(halves.by_float32(one, x).astype(WIDE), one(x).astype(WIDE))


@HALVES
def test_reductions(dtype: dtypes.DType) -> None:
    host = np.random.default_rng(0).standard_normal((30, 100)).astype(dtype.numpy)
    host[3, 7], host[4, 8] = np.nan, np.inf
    x, wide = smelt.array(host), host.astype(WIDE)
    for name, function in (("max", np.max), ("min", np.min), ("argmax", np.argmax), ("sum", np.sum)):
        for axis in (0, 1, None):
            found = np.asarray(getattr(smelt, name)(x, axis=axis)).astype(np.float64)
            np.testing.assert_allclose(found, function(wide, axis=axis), rtol=2e-2, atol=1e-2)


@pytest.mark.skipif(loops.convert_halves is None, reason="no core in C")
def test_what_does_not_fit_is_refused() -> None:
    assert loops.convert_halves is not None
    for x, out in ((np.ones(4, np.float16), np.ones(3, WIDE)), (np.ones(4, np.float64), np.ones(4, WIDE)),
                   (np.ones(4, np.float16), np.ones(4, np.float16))):  # fmt: skip
        with pytest.raises(ValueError, match="two bytes"):
            loops.convert_halves(x, out, False)
