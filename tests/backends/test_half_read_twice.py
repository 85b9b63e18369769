"""A value of 16 bits that two kernels read is the same in both: the one that computes it rounds it, too."""

from __future__ import annotations

import numpy as np
import pytest

import smelt
from smelt.ir.settings import settings


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_the_loss_of_logits_in_half_precision(dtype: str) -> None:
    """It was the logarithm of a sum over logits that were not rounded, less one that was: up to half a step of these
    beside the truth, and negative where a label is certain."""
    settings.tier = "program"
    half, rng = getattr(smelt, dtype), np.random.default_rng(0)
    z = smelt.array(8 * rng.standard_normal((20, 5)), smelt.float32).astype(half)
    b = smelt.array(rng.standard_normal(5), smelt.float32).astype(half)
    labels = smelt.argmax(z + b, axis=1)

    def losses(z: smelt.array, b: smelt.array) -> smelt.array:
        return smelt.nn.losses.cross_entropy((z + b).astype(smelt.float32), labels)

    def with_gradients(z: smelt.array, b: smelt.array) -> list[smelt.array]:
        (found,), gradients = smelt.vjp(losses, [z, b], [smelt.ones(20)])
        return [found, *gradients]

    found = np.asarray(smelt.compile(with_gradients)(z, b)[0])
    rounded = np.asarray((z + b).astype(smelt.float32)).astype(np.float64)
    exact = sum(np.asarray(x.astype(smelt.float32)).astype(np.float64) for x in (z, b))
    assert any(  # every kernel reads them rounded, or computes them anew
        np.allclose(found, np.log(np.exp(logits).sum(1)) - logits.max(1), 1e-5, 1e-6) for logits in (rounded, exact)
    )


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_what_a_kernel_returns_and_reads(dtype: str) -> None:
    settings.tier = "program"
    half, rng = getattr(smelt, dtype), np.random.default_rng(1)
    x, y = (smelt.array(rng.standard_normal((64, 33)), smelt.float32).astype(half) for _ in range(2))

    def both(x: smelt.array, y: smelt.array) -> tuple[smelt.array, smelt.array]:
        total = x + y
        wide = total.astype(smelt.float32)
        return total, wide - wide.mean(axis=1, keepdims=True)

    total, centred = smelt.compile(both)(x, y)
    wide = np.asarray(total.astype(smelt.float32)).astype(np.float64)
    np.testing.assert_allclose(np.asarray(centred), wide - wide.mean(1, keepdims=True), 1e-5, 1e-6)


@pytest.mark.parametrize("device", ["cpu", "metal:sim"])
@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_what_an_elementary_function_gives(dtype: str, device: str) -> None:
    """Functions that are calls in the texts of GPUs, and quotients, are rounded as others are."""
    settings.tier = "program"
    half = getattr(smelt, dtype)
    x = smelt.array(np.random.default_rng(1).standard_normal((64, 33)), smelt.float32).astype(half)

    def both(x: smelt.array) -> tuple[smelt.array, ...]:
        values = smelt.exp(x), x / 3, smelt.tanh(x)
        return *values, *(v.astype(smelt.float32) * 1.0 for v in values)

    with smelt.stream(device):
        found = [np.asarray(v.astype(smelt.float32)) for v in smelt.compile(both)(x)]
    for stored, read in zip(found[:3], found[3:]):
        np.testing.assert_array_equal(stored, read)


def extremes(x: smelt.array, y: smelt.array) -> smelt.array:
    """Extrema of what is computed, whose gradients ask where they lie: in other kernels than those that find them."""
    z = smelt.sqrt(x * x + y * y + 0.1)
    centred = z - smelt.max(z, axis=-1, keepdims=True)
    highest = smelt.max(smelt.max(x * y, axis=0) * smelt.max(x + y, axis=0) * smelt.max(x * y + x))
    return (centred * smelt.sum(centred) * 0.05 * centred).sum() + highest + smelt.linalg.vector_norm(x * y, ord=np.inf)


@pytest.mark.parametrize("tier", ["ops", "strided", "program"])
@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_where_an_extremum_lies(dtype: str, tier: str) -> None:
    """A kernel that computed the elements anew found none that was the maximum in memory, which had been rounded: the
    derivative was lost, or NaN as it was shared by nobody."""
    settings.tier, settings.small_work = tier, 0
    half, rng = getattr(smelt, dtype), np.random.default_rng(363)
    x, y = (smelt.array(rng.standard_normal((64, 9)), smelt.float32).astype(half) for _ in range(2))
    slope = smelt.grad(extremes, argnums=(0, 1))
    for want, found in zip(slope(*(v.astype(smelt.float32) for v in (x, y))), smelt.compile(slope)(x, y)):
        scale = float(smelt.abs(want).max())
        far = smelt.abs(found.astype(smelt.float32) - want) > 0.02 * scale
        assert int(far.sum()) <= 4  # elements that are equal once they are rounded share what is one's
        sums = float(found.astype(smelt.float32).sum()), float(want.sum())
        assert abs(sums[0] - sums[1]) <= 0.02 * scale * 24
