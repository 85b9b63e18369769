"""What training keeps of rows between forward and backward: exponentials are computed again rather than kept."""

from __future__ import annotations

import numpy as np
import pytest

import smelt as sm


def lost(logits: sm.array, labels: sm.array) -> tuple[sm.array, sm.array]:
    return sm.value_and_grad(lambda x: sm.fast.cross_entropy(x, labels).mean())(logits)


def attended(q: sm.array, k: sm.array, v: sm.array, w: sm.array) -> tuple[sm.array, list[sm.array]]:
    def loss(q: sm.array, k: sm.array, v: sm.array) -> sm.array:
        found = sm.fast.scaled_dot_product_attention(q, k, v, scale=0.25, mask="causal")
        return sm.square((found @ w).astype(sm.float32)).sum()

    return sm.value_and_grad(loss, argnums=(0, 1, 2))(q, k, v)


def program(function, *arguments):
    return sm.compile(function).trace(*arguments).lower().to_metal("nvidia")


@pytest.mark.parametrize("dtype", [sm.bfloat16, sm.float32])
def test_a_loss_keeps_nothing_as_large_as_its_logits(dtype: sm.Dtype) -> None:
    logits = sm.ShapeDtype((512, 1000), dtype)
    made = program(lost, logits, sm.ShapeDtype((512,), sm.int32))
    assert made.arena_bytes < 512 * 1000 * 2
    assert not {"scatter", "sort"} & {k.schedule for k in made.kernels}


def test_attention_keeps_numbers_of_rows() -> None:
    heads = sm.ShapeDtype((2, 4, 256, 16), sm.bfloat16)
    made = program(attended, heads, heads, heads, sm.ShapeDtype((16, 16), sm.bfloat16))
    scores = 2 * 4 * 256 * 256
    assert made.arena_bytes < scores
    assert [k.schedule for k in made.kernels].count("chain") == 2
    assert max(k.bytes_read for k in made.kernels) < scores


def test_attention_of_many_features_keeps_weights_in_16_bits() -> None:
    """Its scores are in 32 bits: they are written once and read twice, and all else of that size is of 16."""
    heads = sm.ShapeDtype((2, 4, 256, 144), sm.bfloat16)
    made = program(attended, heads, heads, heads, sm.ShapeDtype((144, 16), sm.bfloat16))
    scores = 2 * 4 * 256 * 256 * 2
    assert "chain" not in [k.schedule for k in made.kernels]
    rows = [k for k in made.kernels if k.schedule == "row" and k.bytes_read >= scores]
    assert len(rows) == 2 and sum(k.bytes_read + k.bytes_written for k in rows) < 7.2 * scores


def test_values() -> None:
    rng = np.random.default_rng(0)
    logits, labels = rng.standard_normal((7, 33), np.float32), rng.integers(-33, 33, 7).astype(np.int32)
    heads = [rng.standard_normal((1, 2, 5, 4), np.float32) for _ in range(3)]
    weight = rng.standard_normal((4, 4), np.float32)
    found = {}
    for device in ("metal:sim", "reference"):
        with sm.stream(device):
            loss, gradient = sm.compile(lost)(sm.array(logits), sm.array(labels))
            value, gradients = sm.compile(attended)(*map(sm.array, heads), sm.array(weight))
            found[device] = [np.array(x) for x in (loss, gradient, value, *gradients)]
    for x, y in zip(*found.values()):
        np.testing.assert_allclose(x, y, rtol=2e-5, atol=2e-6)
