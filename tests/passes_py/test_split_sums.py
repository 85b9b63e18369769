"""Sums that waited for others: what gradients of norms read, and that their values stay."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import smelt
from smelt.ir import text
from smelt.ir.builder import functions, read_function
from smelt.passes import Pipeline


def normalized(x: Any, axes: tuple[int, ...]) -> Any:
    apart = x - smelt.mean(x, axis=axes, keepdims=True)
    return apart * smelt.rsqrt(smelt.mean(apart * apart, axis=axes, keepdims=True) + 1e-3)


def layer_norm(x: Any, scale: Any, offset: Any) -> Any:
    return normalized(x, (-1,)) * scale + offset


def batch_norm(x: Any, scale: Any, offset: Any) -> Any:
    return normalized(x, tuple(range(x.ndim - 1))) * scale + offset


def gradients(norm: Callable[..., Any]) -> Callable[..., Any]:
    def pulled(x: Any, scale: Any, offset: Any, ct: Any) -> Any:
        return smelt.vjp(norm, [x, scale, offset], [ct])[1]

    return pulled


def softmax_gradient(x: Any, ct: Any) -> Any:
    return smelt.vjp(lambda x: smelt.softmax(x, axis=-1), [x], [ct])[1][0]


def wide(norm: Callable[..., Any], x: Any, scale: Any, offset: Any, ct: Any) -> list[Any]:
    """The gradients in float64."""
    axes = (-1,) if norm is layer_norm else tuple(range(x.ndim - 1))
    x, scale, ct = (np.asarray(v, np.float64) for v in (x, scale, ct))
    apart = x - x.mean(axes, keepdims=True)
    inverse = 1 / np.sqrt((apart * apart).mean(axes, keepdims=True) + 1e-3)
    unit, scaled, others = apart * inverse, ct * scale, tuple(range(x.ndim - 1))
    inner = scaled - scaled.mean(axes, keepdims=True) - unit * (scaled * unit).mean(axes, keepdims=True)
    return [inner * inverse, (ct * unit).sum(others), ct.sum(others)]


def operands(shape: tuple[int, ...], about: float = 0.0) -> list[Any]:
    rng = np.random.default_rng(0)
    x, ct = (rng.standard_normal(shape).astype(np.float32) for _ in range(2))
    scale, offset = (rng.standard_normal(shape[-1:]).astype(np.float32) for _ in range(2))
    return [x + np.float32(about), scale, offset, ct]


def sums_in(module: Any) -> list[Any]:
    return [op for op in read_function(functions(module)["main"]).ops if op.name == "reduce_sum"]


def depth(module: Any) -> int:
    """How many sums wait for each other, one after the other."""
    level: dict[Any, int] = {}
    for op in read_function(functions(module)["main"]).ops:
        before = max((level.get(v, 0) for v in op.operands), default=0)
        for v in op.results:
            level[v] = before + (op.name == "reduce_sum")
    return max(level.values())


def simplified(function: Callable[..., Any], *arguments: Any, more: str = "") -> Any:
    module = text.parse(text.to_text(smelt.compile(function).trace(*arguments).lower().module))
    Pipeline.parse(f"fixpoint(inline,batch,jvp,linearize,transpose),canonicalize,cse,dce{more}").run(module)
    return module


@pytest.mark.parametrize("norm", [layer_norm, batch_norm])
def test_no_sum_of_a_gradient_waits_for_another(norm: Callable[..., Any]) -> None:
    """Mean, then variance and all sums of the gradient."""
    avals = [smelt.ShapeDtype(np.shape(x), smelt.float32) for x in operands((8, 6))]

    def gradient(*arrays: Any) -> Any:
        return gradients(norm)(*arrays)[0]

    before, after = simplified(gradient, *avals), simplified(gradient, *avals, more=",split-sums,dce")
    assert (depth(before), depth(after)) == (3, 2)
    assert len(sums_in(after)) <= len(sums_in(before)) + 1


def test_kernels_of_a_gradient_of_batch_norm() -> None:
    """The elements are read for the statistics, for all sums, and for the result."""
    avals = [smelt.ShapeDtype(np.shape(x), smelt.float32) for x in operands((4096, 64))]
    made = smelt.compile(gradients(batch_norm)).trace(*avals).lower().to_metal("nvidia")
    large = 4096 * 64 * 4
    assert sum(k.bytes_read // large for k in made.kernels) <= 6


@pytest.mark.parametrize("device", ["cpu", "metal:sim"])
@pytest.mark.parametrize("about", [0.0, 300.0])
@pytest.mark.parametrize("norm", [layer_norm, batch_norm])
def test_gradients_of_norms(norm: Callable[..., Any], about: float, device: str) -> None:
    arrays = operands((70, 5, 12), about)
    with smelt.stream(device):
        found = [np.array(x) for x in smelt.compile(gradients(norm))(*map(smelt.array, arrays))]
    for x, want in zip(found, wide(norm, *arrays)):
        np.testing.assert_allclose(x, want, rtol=0, atol=(1e-4 if about else 3e-6) * np.abs(want).max())


@pytest.mark.parametrize("device", ["cpu", "metal:sim"])
def test_what_is_no_number_stays_in_its_row(device: str) -> None:
    x, scale, offset, ct = operands((6, 33))
    x[1, 5], x[2, 7], ct[3, 2], ct[4, 8] = np.nan, np.inf, np.nan, -np.inf
    with smelt.stream(device):
        arrays = [smelt.array(v) for v in (x, scale, offset, ct)]
        found = np.array(smelt.compile(gradients(layer_norm))(*arrays)[0])
        soft = np.array(smelt.compile(softmax_gradient)(arrays[0], arrays[3]))
    want = wide(layer_norm, x[[0, 5]], scale, offset, ct[[0, 5]])[0]
    np.testing.assert_allclose(found[[0, 5]], want, rtol=0, atol=1e-5)
    assert not np.isfinite(found[1:5]).any() and np.isfinite(soft[[0, 5]]).all()
    assert np.isnan(soft[1:5]).any(1).all()


@pytest.mark.parametrize("shape", [(0, 3), (3, 1), (1, 1)])
@pytest.mark.parametrize("device", ["cpu", "metal:sim"])
def test_least_sizes(shape: tuple[int, ...], device: str) -> None:
    arrays = operands(shape)
    with smelt.stream(device):
        found = [np.array(x) for x in smelt.compile(gradients(layer_norm))(*map(smelt.array, arrays))]
    for x, want in zip(found, wide(layer_norm, *arrays)):
        np.testing.assert_allclose(x, want, atol=1e-6)


@pytest.mark.parametrize("shape", [(0,), (3, 0), (0, 2)])
@pytest.mark.parametrize("device", ["cpu", "metal:sim"])
def test_sums_of_nothing(shape: tuple[int, ...], device: str) -> None:
    """The mean of no elements is NaN, but no sum of no elements is."""

    def found(x: Any, y: Any) -> list[Any]:
        mean = smelt.mean(x, keepdims=True)
        return [(x + y * mean).sum(), (y * (x * mean - y)).sum(), smelt.var(x * mean - y), (x * mean).sum(0)]

    with smelt.stream(device):
        total, products, variance, columns = smelt.compile(found)(smelt.zeros(shape), smelt.ones(shape))
    assert total.item() == products.item() == 0 and np.isnan(variance.item())
    np.testing.assert_array_equal(np.array(columns), np.zeros(shape[1:], np.float32))


def test_what_lies_in_memory_is_read_as_it_is() -> None:
    """A softmax that is a result: its gradient reads it and makes no exponentials."""

    def kept(x: Any, ct: Any) -> Any:
        y = smelt.softmax(x, axis=-1)
        return y, (y * ct).sum(-1)

    avals = [smelt.ShapeDtype((4, 8), smelt.float32)] * 2
    before, after = simplified(kept, *avals), simplified(kept, *avals, more=",split-sums,dce")
    assert text.to_text(before) == text.to_text(after)
