"""Products of a matrix with a few vectors at once, as generation has them, on the simulator."""

from __future__ import annotations

from typing import Any

import pytest

import smelt
from smelt.backends.gpu.program import DeviceSegment
from smelt.backends.metal.simulator import Options

from . import harness
from .test_contract import ORDERS, gelu, of

PRODUCTS = {
    "lines": (lambda x, w: x @ w.T, (2, 200), (520, 200)),
    "three vectors": (lambda x, w: x @ w.T, (3, 96), (70, 96)),
    "four vectors": (lambda x, w: x @ w.T, (4, 128), (1030, 128)),
    "columns": (lambda x, w: x @ w, (4, 130), (130, 72)),
    "odd columns": (lambda x, w: x @ w, (3, 67), (67, 65)),
    "matrix before": (lambda x, w: w @ x.T, (4, 96), (100, 96)),
    "vectors by columns": (lambda x, w: w @ x, (96, 4), (100, 96)),
    "odd depth": (lambda x, w: x @ w.T, (4, 77), (66, 77)),
    "few lines of many": (lambda x, w: x @ w.T, (4, 1500), (80, 1500)),
    "shared lines": (lambda x, w: x @ w.T, (2, 9000), (72, 9000)),
    "shared columns": (lambda x, w: x @ w, (2, 9000), (9000, 72)),
    "batch": (lambda x, w: x @ w.swapaxes(1, 2), (3, 4, 64), (3, 80, 64)),
    "batch of columns": (lambda x, w: x @ w, (3, 4, 80), (3, 80, 64)),
    "more behind it": (lambda x, w: gelu(x @ w.T) + 1, (4, 64), (70, 64)),
    "vectors computed": (lambda x, w: (x * 2) @ w.T, (4, 64), (70, 64)),
}


def schedules(function: Any, *arguments: Any) -> list[str]:
    """Check values in every order of threads; the kernels' schedules."""
    for options in (None, *(Options(order=order, poison=True, guard=True) for order in ORDERS)):
        program = harness.check(function, *arguments, tolerance=2e-4, options=options)
    (segment,) = program.segments
    assert isinstance(segment, DeviceSegment)
    return [kernel.schedule.split()[0] for kernel in segment.manifest.kernels]


@pytest.mark.parametrize("dtype", ("float32", "bfloat16"))
@pytest.mark.parametrize("name", PRODUCTS)
def test_values(name: str, dtype: str) -> None:
    function, vectors, matrix = PRODUCTS[name]
    assert "contract-vector" in schedules(function, of(*vectors, dtype=dtype), of(*matrix, dtype=dtype))


@pytest.mark.parametrize("dtype", ("float16", "int32", "int64", "uint8", "complex64"))
@pytest.mark.parametrize("name", ("four vectors", "odd columns"))
def test_dtypes(name: str, dtype: str) -> None:
    function, vectors, matrix = PRODUCTS[name]
    assert "contract-vector" in schedules(function, of(*vectors, dtype=dtype), of(*matrix, dtype=dtype))


def test_eight_vectors_of_float32() -> None:
    assert schedules(lambda x, w: x @ w.T, of(8, 128), of(96, 128)) == ["contract-vector"]


def test_queries_that_share_keys() -> None:
    """A step of generation: the queries of a group of heads are multiplied with what is read of its keys once."""

    def step(q: Any, k: Any, v: Any) -> Any:
        return smelt.fast.scaled_dot_product_attention(q, k, v, scale=0.125)

    keys = of(1, 2, 160, 64, dtype="bfloat16")
    found = schedules(step, of(1, 8, 1, 64, dtype="bfloat16"), keys, keys)
    assert found.count("contract-vector") == 2
