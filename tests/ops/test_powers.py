"""Powers of integers, which wrap, with exponents beyond their dtype."""

from __future__ import annotations

import numpy as np
import pytest

import smelt
from smelt.ir import dtypes
from smelt.ir.aval import Aval
from smelt.ir.op import registry
from smelt.runtime import Buffer, compile_module

from ..devices import chosen_device
from .cases import Case, module_of_batch

EXPONENTS = (0, 1, 2, 7, 127, 128, 255, 256, 300, 667, 2**31, 2**32 + 3, 2**40 + 1)


def wrapped(x: np.ndarray, exponent: int) -> np.ndarray:
    """By Python's integers."""
    bits = 8 * x.dtype.itemsize
    found = [pow(int(v), exponent, 1 << bits) for v in x.reshape(-1)]
    return np.array(found, f"u{x.dtype.itemsize}").astype(x.dtype).reshape(x.shape)


@pytest.mark.parametrize("dtype", dtypes.INTEGERS, ids=lambda d: d.name)
def test_integer_powers(dtype):
    info = np.iinfo(dtype.numpy)
    x = np.array([0, 1, 2, 3, 5, 13, info.max, info.min, info.max - 2], dtype.numpy)
    op = registry["integer_power"]
    aval = Aval(x.shape, dtype)
    cases = [Case(op, (aval,), (("exponent", n),)) for n in EXPONENTS]
    program = compile_module(module_of_batch(cases), chosen_device())
    found = program.run([Buffer.of(x, aval) for _ in cases])
    for n, kernel in zip(EXPONENTS, found):
        want = wrapped(x, n)
        np.testing.assert_array_equal(op.reference(x, exponent=n), want, f"the reference of x^{n}")
        np.testing.assert_array_equal(kernel.array, want, f"a kernel of x^{n}")


@pytest.mark.parametrize("dtype", [smelt.int8, smelt.uint8, smelt.int16, smelt.int32], ids=lambda d: d.name)
@pytest.mark.parametrize("count", [100, 128, 255, 256, 667])
def test_products_of_one_number(dtype, count):
    """They become a power."""
    for number in (2, 3, 0, 1):
        found = smelt.compile(lambda n=number: smelt.prod(smelt.full((count,), n, dtype)))()
        assert found.item() == wrapped(np.array([number], found.dtype.numpy), count).item()


@pytest.mark.parametrize("dtype", [d for d in dtypes.ALL if d.is_float or d.is_complex], ids=lambda d: d.name)
def test_integer_powers_of_inexact_numbers(dtype):
    """Exponents of both signs, which derivatives of powers have."""
    x = np.array([0.5, -0.5, 1.0, -1.0, 2.0, -2.0, 0.25, -4.0]).astype(dtype.numpy)
    op, aval = registry["integer_power"], Aval(x.shape, dtype)
    exponents = range(-7, 8)
    cases = [Case(op, (aval,), (("exponent", n),)) for n in exponents]
    found = compile_module(module_of_batch(cases), chosen_device()).run([Buffer.of(x, aval) for _ in cases])
    for n, kernel in zip(exponents, found):
        want = np.array([complex(v) ** n if dtype.is_complex else float(v) ** n for v in x]).astype(dtype.numpy)
        np.testing.assert_array_equal(kernel.array, want, f"a kernel of x^{n}")


@pytest.mark.parametrize("device", ["cpu", "metal:sim"])
@pytest.mark.parametrize(("dtype", "exponents"), [("bfloat16", [512.0, 1e3, -256.0]), ("float16", [4096.0, -2048.0])])
def test_slopes_of_even_powers_are_odd(dtype: str, exponents: list[float], device: str) -> None:
    """y - 1 is no number of 16 bits there, and its neighbours are even."""
    with smelt.stream(device):
        y = smelt.array(exponents).astype(getattr(smelt, dtype))
        slope = smelt.grad(lambda x, y: smelt.power(x, y).sum())
        for f in (slope, smelt.compile(slope)):
            found = np.asarray(f(-smelt.ones_like(y), y).astype(smelt.float32))
            np.testing.assert_array_equal(found, -np.array(exponents))
