"""Integers at the ends of their ranges: the same on every device, and as NumPy has it; floats that no integer holds."""

from __future__ import annotations

import numpy as np
import pytest

import smelt
from smelt.ir.settings import override

from ..devices import with_kernels

DTYPES = ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]
BINARY = ["add", "subtract", "multiply", "floor_divide", "remainder", "fmod", "left_shift", "right_shift", "maximum",
          "minimum", "gcd", "lcm", "power"]  # fmt: skip
UNARY = ["abs", "negative", "sign", "square", "bitwise_invert"]
FLOATS = [0.5, -0.5, -0.99, 127.0, 128.0, 255.0, 256.0, -129.0, 32768.0, 65536.0, -32769.0, 2.0**31, 2.0**31 - 129,
          -(2.0**31) - 300, 2.0**32, 2.0**63, -(2.0**63) - 4096, 2.0**64, 1e20, -1e20, np.inf, -np.inf,
          np.nan]  # fmt: skip


def ends(dtype: str) -> np.ndarray:
    info = np.iinfo(dtype)
    least = [-1, -2, -7, -info.bits] if info.min else []
    found = [0, 1, 2, 3, 7, info.max, info.max - 1, info.max // 2, info.min, info.min + 1, info.bits - 1, info.bits]
    return np.array([np.array(v).astype(dtype) for v in (*found, *least)])


def expected(name: str, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    with np.errstate(all="ignore"):
        if name != "power":
            return getattr(np, name)(x, y)
        found = np.power(x, np.where(y < 0, 0, y).astype(x.dtype))  # NumPy has no negative powers of integers
        inverse = np.where(x == 1, 1, np.where(x == x.dtype.type(0) - 1, np.where(y & 1, x, 1), 0))
        return np.where(y < 0, inverse, found).astype(x.dtype)


def all_of(x: smelt.array, y: smelt.array) -> list[smelt.array]:
    return [*(getattr(smelt, name)(x, y) for name in BINARY), *(getattr(smelt, name)(x) for name in UNARY)]


@pytest.mark.parametrize("way", ["eager", *(device.name for device in with_kernels())])
@pytest.mark.parametrize("dtype", DTYPES)
def test_ends_of_integers(dtype: str, way: str) -> None:
    x, y = (v.ravel() for v in np.meshgrid(ends(dtype), ends(dtype)))
    if way == "eager":
        found = all_of(smelt.array(x), smelt.array(y))
    else:
        with smelt.stream(way), override(tier="program", small_work=0):
            found = smelt.compile(all_of)(smelt.array(x), smelt.array(y))
    for name, have in zip([*BINARY, *UNARY], found):
        with np.errstate(all="ignore"):
            numpy_name = "invert" if name == "bitwise_invert" else name
            want = expected(name, x, y) if name in BINARY else getattr(np, numpy_name)(x)
        np.testing.assert_array_equal(np.asarray(have), want, err_msg=name)
        assert np.asarray(have).dtype == dtype


@pytest.mark.parametrize("source", ["float32", "float64", "float16", "bfloat16"])
def test_floats_that_no_integer_holds(source: str) -> None:
    """They become the nearest integer, NaN 0, on every device."""
    x = smelt.array(np.array(FLOATS), getattr(smelt, source))
    exact = np.asarray(x.astype(smelt.float64))

    def all_dtypes(x: smelt.array) -> list[smelt.array]:
        return [x.astype(getattr(smelt, name)) for name in DTYPES]

    ways = [all_dtypes(x)]
    for device in with_kernels():
        with smelt.stream(device.name), override(tier="program", small_work=0):
            ways.append(smelt.compile(all_dtypes)(x))
    for found in ways:
        for name, have in zip(DTYPES, found):
            info = np.iinfo(name)
            near = [0 if np.isnan(v) else min(max(v, -(2.0**65)), 2.0**65) for v in exact]
            whole = [min(max(int(v), int(info.min)), int(info.max)) for v in near]
            assert np.asarray(have).tolist() == whole, (source, name)
