"""Which float32 values of a kernel need the digits of half precision alone."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import smelt
from smelt.backends.coarse import coarse_values
from smelt.ir import dtypes
from smelt.ir.aval import Aval
from smelt.ir.builder import functions, read_function
from smelt.ir.dtypes import DType
from smelt.ir.settings import override

from .modules import module_of

X = Aval((4, 8), dtypes.bfloat16)


def _softmax(b: Any, x: Any) -> list[Any]:
    e = b.exp(b.convert(x, dtype=dtypes.float32))
    total = b.broadcast_to(b.reshape_to(b.reduce_sum(e, axes=(1,)), (4, 1)), (4, 8))
    return [b.convert(e / total, dtype=dtypes.bfloat16)]


def _sigmoid(b: Any, x: Any) -> list[Any]:
    wide = b.convert(x, dtype=dtypes.float32)
    return [b.convert(b.sigmoid(wide) * wide, dtype=dtypes.float16)]


def _cancels(b: Any, x: Any) -> list[Any]:
    wide = b.convert(x, dtype=dtypes.float32)
    return [b.convert(b.erf(wide) + b.full((4, 8), 1.0, dtypes.float32), dtype=dtypes.bfloat16)]


def _sums_of_signs(b: Any, x: Any) -> list[Any]:
    return [b.convert(b.reduce_sum(b.tanh(b.convert(x, dtype=dtypes.float32)), axes=(1,)), dtype=dtypes.bfloat16)]


def _returned(b: Any, x: Any) -> list[Any]:
    e = b.exp(b.convert(x, dtype=dtypes.float32))
    return [b.convert(e, dtype=dtypes.bfloat16), e]


def _of_both(b: Any, x: Any) -> list[Any]:
    e = b.exp(b.convert(x, dtype=dtypes.float32))
    return [b.convert(e, dtype=dtypes.bfloat16), b.convert(e, dtype=dtypes.float16)]


def _product(*functions: str) -> Callable[..., list[Any]]:
    def product(b: Any, x: Any) -> list[Any]:
        wide = b.convert(x, dtype=dtypes.float32)
        found = b.exp(wide)
        for name in functions:
            found = found * (found if name == "itself" else getattr(b, name)(wide))
        return [b.convert(found, dtype=dtypes.bfloat16)]

    return product


def _of_a_product_and_alone(b: Any, x: Any) -> list[Any]:
    """An exponential that is also a factor of a product of many."""
    wide = b.convert(x, dtype=dtypes.float32)
    e = b.exp(wide)
    return [b.convert(v, dtype=dtypes.bfloat16) for v in (e, e * b.sigmoid(wide) * b.tanh(wide))]


@pytest.mark.parametrize(
    ("function", "name", "wanted"),
    [
        (_softmax, "exp", dtypes.bfloat16), (_sigmoid, "sigmoid", dtypes.float16), (_cancels, "erf", None),
        (_sums_of_signs, "tanh", None), (_returned, "exp", None), (_of_both, "exp", dtypes.float16),
        (_product("itself"), "exp", dtypes.bfloat16), (_product("sigmoid"), "exp", dtypes.bfloat16),
        (_product("itself", "itself"), "exp", None), (_product("sigmoid", "tanh"), "exp", None),
        (_product("sigmoid", "tanh"), "tanh", None), (_of_a_product_and_alone, "exp", None),
    ],
)  # fmt: skip
def test_which_are(function: Callable[..., Any], name: str, wanted: DType | None) -> None:
    main = read_function(functions(module_of([X], function))["main"])
    found = coarse_values(main)
    (value,) = (op.results[0] for op in main.ops if op.name == name)
    assert found.get(value) is wanted


@pytest.mark.parametrize("dtype", [smelt.float16, smelt.bfloat16], ids=str)
def test_a_sum_that_cancels_is_exact(dtype: Any) -> None:
    """1 + erf(x) of negative x, of which the error function of half precision has few digits."""
    x = smelt.array(np.linspace(-3.5, 0, 4096, dtype=np.float32)).astype(dtype)

    def function(x: Any) -> Any:
        return (1 + smelt.erf(x.astype(smelt.float32))).astype(dtype)

    wanted = np.array(1 + smelt.erf(x.astype(smelt.float64)))
    found = np.array(smelt.compile(function)(x).astype(smelt.float64))
    np.testing.assert_allclose(found, wanted, rtol=2.0**-8 if dtype is smelt.bfloat16 else 2.0**-10, atol=2e-7)


@pytest.mark.parametrize("dtype", [smelt.float16, smelt.bfloat16], ids=str)
@pytest.mark.parametrize(
    ("function", "name"),
    [
        (lambda x: smelt.softmax(x, axis=-1), "exp"), (smelt.nn.gelu_approx, "sigmoid"), (smelt.nn.silu, "sigmoid"),
    ],
    ids=["softmax", "gelu_approx", "silu"],
)  # fmt: skip
def test_kernels_of_gpus_call_them_too(function: Callable[..., Any], name: str, dtype: Any) -> None:
    """The functions of half precision; and a row is divided by its sum once."""
    text = smelt.compile(function).trace(smelt.zeros((64, 128)).astype(dtype)).lower().to_metal().as_text("msl")
    found = re.findall(rf"static inline float {name}_(\w+)\(", text)
    assert found == [dtype.mlir]
    assert name != "exp" or "reciprocal" in text


@pytest.mark.parametrize("function", [lambda x: smelt.floor(x * 3), lambda x: smelt.remainder(x * 3, 0.7)])
def test_what_jumps_is_of_the_float32_value(function: Callable[..., Any]) -> None:
    """Though its result is rounded to half precision."""
    x = smelt.array(np.linspace(-3.5, 3.5, 4097, dtype=np.float32))
    with override(device="reference"):
        wanted = np.array(function(x).astype(smelt.bfloat16).astype(smelt.float32))
    for device in ("cpu", "metal:sim"):
        with override(device=device, small_work=0, tier="program"):
            found = smelt.compile(lambda x: function(x).astype(smelt.bfloat16))(x)
            np.testing.assert_array_equal(np.array(found.astype(smelt.float32)), wanted)


@pytest.mark.parametrize("dtype", [smelt.float16, smelt.bfloat16], ids=str)
def test_a_product_of_many_functions_is_as_exact_as_its_rounding(dtype: Any) -> None:
    x = np.linspace(-1, 1, 4096, dtype=np.float32)

    def function(x: Any) -> Any:
        e = smelt.exp(x)
        for _ in range(3):
            e = e * e
        return e.astype(dtype)

    found = np.array(smelt.compile(function)(smelt.array(x)).astype(smelt.float64))
    half_unit = 2.0**-8 if dtype is smelt.bfloat16 else 2.0**-11
    np.testing.assert_allclose(found, np.exp(8 * x.astype(np.float64)), rtol=1.05 * half_unit)
