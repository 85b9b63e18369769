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
    "two vectors": (lambda x, w: x @ w.T, (2, 300), (520, 300)),
    "three vectors": (lambda x, w: x @ w.T, (3, 260), (70, 260)),
    "four vectors": (lambda x, w: x @ w.T, (4, 256), (1030, 256)),
    "eight vectors": (lambda x, w: x @ w.T, (8, 256), (96, 256)),
    "columns": (lambda x, w: x @ w, (4, 258), (258, 72)),
    "odd columns": (lambda x, w: x @ w, (3, 267), (267, 65)),
    "matrix before": (lambda x, w: w @ x.T, (4, 256), (100, 256)),
    "vectors by columns": (lambda x, w: w @ x, (256, 4), (100, 256)),
    "odd depth": (lambda x, w: x @ w.T, (4, 277), (66, 277)),
    "few lines of many": (lambda x, w: x @ w.T, (4, 1500), (80, 1500)),
    "shared lines": (lambda x, w: x @ w.T, (2, 9000), (72, 9000)),
    "shared columns": (lambda x, w: x @ w, (2, 9000), (9000, 72)),
    "batch": (lambda x, w: x @ w.swapaxes(1, 2), (3, 4, 256), (3, 80, 256)),
    "batch of columns": (lambda x, w: x @ w, (3, 4, 280), (3, 280, 64)),
    "more behind it": (lambda x, w: gelu(x @ w.T) + 1, (4, 264), (70, 264)),
    "vectors computed": (lambda x, w: (x * 2) @ w.T, (4, 264), (70, 264)),
}


def schedules(function: Any, *arguments: Any) -> list[str]:
    """Check values in every order of threads; the kernels' schedules."""
    for options in (None, *(Options(order=order, poison=True, guard=True) for order in ORDERS)):
        program = harness.check(function, *arguments, tolerance=2e-4, options=options)
    (segment,) = program.segments
    assert isinstance(segment, DeviceSegment)
    return [kernel.schedule.split()[0] for kernel in segment.manifest.kernels]


@pytest.mark.parametrize("name", PRODUCTS)
def test_values(name: str) -> None:
    function, vectors, matrix = PRODUCTS[name]
    assert "contract-vector" in schedules(function, of(*vectors), of(*matrix))


@pytest.mark.parametrize("dtype", ("float16", "bfloat16"))
def test_more_than_two_vectors_of_halves_are_matrices(dtype: str) -> None:
    def product(x: Any, w: Any) -> Any:
        return x @ w.T

    assert schedules(product, of(2, 300, dtype=dtype), of(70, 300, dtype=dtype)) == ["contract-vector"]
    assert "contract-vector" not in schedules(product, of(3, 300, dtype=dtype), of(70, 300, dtype=dtype))


@pytest.mark.parametrize("dtype", ("int32", "int64", "uint8", "complex64"))
@pytest.mark.parametrize("name", ("four vectors", "odd columns"))
def test_dtypes(name: str, dtype: str) -> None:
    function, vectors, matrix = PRODUCTS[name]
    assert "contract-vector" in schedules(function, of(*vectors, dtype=dtype), of(*matrix, dtype=dtype))


def test_queries_that_share_keys() -> None:
    """A step of generation: the queries of a group of heads are multiplied with what is read of its keys once."""

    def step(q: Any, k: Any, v: Any) -> Any:
        return smelt.fast.scaled_dot_product_attention(q, k, v, scale=0.125)

    keys = of(1, 2, 288, 64)
    found = schedules(step, of(1, 8, 1, 64), keys, keys)
    assert found.count("contract-vector") == 1  # with the values: there is little to add up for a key
