"""Products with operands that are computed as they are read: one kernel, and no memory for the operand."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import smelt
from smelt.ir import text
from smelt.runtime import Buffer, compile_module
from smelt.runtime.device import Device

from ..devices import with_kernels

DEVICES = with_kernels()
OUTPUTS, INPUTS, GROUP = 96, 256, 64


def dequantized(words: Any, scales: Any, biases: Any) -> Any:
    """Weights from words of eight numbers of four bits, with a scale and a bias for each group of 64."""
    numbers = (words[..., None] >> smelt.arange(0, 32, 4, dtype=smelt.uint32)) & 15
    numbers = numbers.reshape(OUTPUTS, INPUTS // GROUP, GROUP).astype(scales.dtype)
    return (numbers * scales[..., None] + biases[..., None]).reshape(OUTPUTS, INPUTS)


def packed(rng: np.random.Generator, dtype: Any) -> tuple[list[np.ndarray], np.ndarray]:
    """Words, scales and biases; and the weights that they stand for."""
    numbers = rng.integers(0, 16, (OUTPUTS, INPUTS))
    words = np.zeros((OUTPUTS, INPUTS // 8), np.uint32)
    for i in range(8):
        words |= numbers[:, i::8].astype(np.uint32) << np.uint32(4 * i)
    scales, biases = (rng.integers(-4, 5, (OUTPUTS, INPUTS // GROUP)).astype(dtype) / 8 for _ in range(2))
    weights = numbers.reshape(OUTPUTS, -1, GROUP) * scales[..., None] + biases[..., None]
    return [words, scales, biases], weights.reshape(OUTPUTS, INPUTS).astype(np.float64)


def program(function: Callable[..., Any], device: Device, *arguments: np.ndarray) -> Any:
    """The function as a program of a device."""
    return compile_module(text.parse(smelt.make_ir(function)(*map(smelt.array, arguments))), device)


def run(found: Any, *arguments: np.ndarray) -> list[np.ndarray]:
    return [b.array for b in found.run([Buffer.of(x, a) for x, a in zip(arguments, found.arguments)])]


@pytest.mark.parametrize("device", DEVICES, ids=lambda d: d.name)
@pytest.mark.parametrize("dtype", [np.float32, np.float16])
@pytest.mark.parametrize("rows", [1, 3, 64])
def test_dequantize_and_multiply_is_one_kernel(device: Device, dtype: Any, rows: int) -> None:
    rng = np.random.default_rng(0)
    parts, weights = packed(rng, dtype)
    x = (rng.integers(-4, 5, (rows, INPUTS)) / 4).astype(dtype)
    found = program(lambda x, *w: x @ dequantized(*w).T, device, x, *parts)
    assert len(found.kernels) == 1
    assert found.arena_bytes < OUTPUTS * INPUTS * np.dtype(dtype).itemsize // 2
    (y,) = run(found, x, *parts)
    np.testing.assert_allclose(y.astype(np.float64), x.astype(np.float64) @ weights.T, rtol=2e-3, atol=2e-2)


@pytest.mark.parametrize("device", DEVICES, ids=lambda d: d.name)
def test_its_gradient_reads_the_words_again(device: Device) -> None:
    rng = np.random.default_rng(1)
    parts, weights = packed(rng, np.float32)
    x = rng.standard_normal((8, INPUTS)).astype(np.float32)

    def loss(x: Any, *w: Any) -> Any:
        y = x @ dequantized(*w).T
        return (y * y).sum()

    found = program(smelt.grad(loss), device, x, *parts)
    assert found.arena_bytes < weights.size
    (gradient,) = run(found, x, *parts)
    want = 2 * (x @ weights.T) @ weights
    np.testing.assert_allclose(gradient, want, rtol=1e-4, atol=1e-4 * np.abs(want).max())


F, H, B, I = np.float32, np.float16, np.int8, np.int32
CASES: dict[str, tuple[Callable[..., Any], list[tuple[tuple[int, ...], Any]]]] = {
    "cast": (lambda x, w: x @ w.astype(smelt.float32), [((40, 64), F), ((64, 48), B)]),
    "both casts": (lambda x, w: x.astype(smelt.float32) @ w.astype(smelt.float32).T, [((40, 64), H), ((48, 64), H)]),
    "scaled columns": (lambda x, w, s: x @ (w.astype(smelt.float32) * s), [((5, 64), F), ((64, 48), B), ((48,), F)]),
    "rows looked up": (lambda x, t, i: x @ smelt.take(t, i, 0).T, [((6, 64), F), ((80, 64), F), ((48,), I)]),
    "experts looked up": (
        lambda x, t, i: x[:, None] @ smelt.take(t, i, 0), [((9, 32), F), ((5, 32, 24), F), ((9,), I)]
    ),
    "outer sum": (lambda x, a, b: x @ (a[:, None] + b), [((6, 64), F), ((64,), F), ((48,), F)]),
    "convolution": (
        lambda x, w: smelt.conv1d(x.astype(smelt.float32), w.astype(smelt.float32), padding=1),
        [((2, 30, 16), B), ((24, 3, 16), B)],
    ),
}  # fmt: skip


@pytest.mark.parametrize("device", DEVICES, ids=lambda d: d.name)
@pytest.mark.parametrize("case", CASES)
def test_operands_of_fewer_bytes_are_computed(device: Device, case: str) -> None:
    function, arguments = CASES[case]
    rng = np.random.default_rng(2)
    arrays = [rng.integers(0, 5, shape).astype(dtype) for shape, dtype in arguments]
    found = program(function, device, *arrays)
    assert len(found.kernels) == 1 and found.arena_bytes == 0
    (y,) = run(found, *arrays)
    (want,) = run(program(function, smelt.reference, *arrays), *arrays)
    np.testing.assert_array_equal(y, want)


@pytest.mark.parametrize("device", DEVICES, ids=lambda d: d.name)
@pytest.mark.parametrize(
    "function",
    [
        lambda x, w: x @ smelt.exp(w),  # as many bytes as it is made from
        lambda x, w: x @ smelt.tanh(smelt.sin(w.astype(smelt.float16).astype(smelt.float32))),
        lambda x, w: (x @ w.astype(smelt.float16).astype(smelt.float32), w.astype(smelt.float16).astype(smelt.float32)),
    ],
)
def test_other_operands_lie_in_memory(device: Device, function: Callable[..., Any]) -> None:
    x, w = np.ones((40, 64), np.float32), np.ones((64, 48), np.float32)
    assert len(program(function, device, x, w).kernels) > 1
