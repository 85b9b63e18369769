"""Ten thousand calls with sizes that change, in every way: right, a handful of compiles, memory and caches bounded."""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import smelt
import smelt.nn as nn
import smelt.optimizers as optimizers
from smelt.ir.settings import override
from smelt.transforms.versions import MAX_VERSIONS

CALLS = 10_000
#: Compiles of a family of calls: its first program, kernels for all sizes, and those of the calls with small sizes.
HANDFUL = 8
#: What a process may grow by after a tenth of the calls, in bytes.
GROWTH = 40_000_000


def _normalized(x: Any, w: Any) -> Any:
    y = (x - x.mean(axis=-1, keepdims=True)) * smelt.rsqrt(x.var(axis=-1, keepdims=True) + 1e-5) * w
    return (y * smelt.sigmoid(y)).sum(axis=0)


def _truth(x: np.ndarray, w: np.ndarray) -> np.ndarray:
    x = x.astype(np.float64)
    y = (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 1e-5) * w
    return (y / (1 + np.exp(-y))).sum(0)


def _attention(x: Any, w: Any) -> Any:
    return smelt.softmax(x @ x.T / x.shape[1] ** 0.5, axis=-1) @ (x * w)


def _attention_truth(x: np.ndarray, w: np.ndarray) -> np.ndarray:
    x = x.astype(np.float64)
    scores = x @ x.T / x.shape[1] ** 0.5
    scores = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return scores / scores.sum(axis=-1, keepdims=True) @ (x * w)


def _sizes(count: int) -> Iterator[tuple[int, int]]:
    for i in range(count):
        yield 2 + i % 199, 2 + i * 7 % 53


def _resident() -> int:
    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGESIZE")


WAYS: dict[str, Callable[[], Any]] = {
    "lazy": lambda: _normalized,
    "lazy attention": lambda: _attention,
    "compiled attention": lambda: smelt.compile(_attention),
    "compile": lambda: smelt.compile(_normalized),
    "shapeless": lambda: smelt.compile(_normalized, shapeless=True),
    "gradient": lambda: lambda x, w: smelt.grad(lambda w: (_normalized(x, w) ** 2).mean())(w),
    "compiled gradient": lambda: smelt.compile(lambda x, w: smelt.grad(lambda w: (_normalized(x, w) ** 2).mean())(w)),
}


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="memory of a process as Linux tells it")
@pytest.mark.parametrize("way", WAYS)
def test_sizes_that_change_all_the_time(way: str, campaign: Any) -> None:
    function = WAYS[way]()
    data = np.random.default_rng(0).standard_normal(220 * 60).astype(np.float32)
    count = campaign.amount(CALLS)
    weights = np.linspace(0.5, 1.5, 60, dtype=np.float32)
    resident = 0
    with warnings.catch_warnings(), override(tier="auto"), smelt.explain() as told:
        warnings.simplefilter("ignore")
        for i, (rows, columns) in enumerate(_sizes(count)):
            x, w = data[: rows * columns].reshape(rows, columns), weights[:columns]
            found = np.array(function(smelt.array(x), smelt.array(w)))
            if i % 50 == 0 and "gradient" not in way:
                truth = _attention_truth if "attention" in way else _truth
                np.testing.assert_allclose(found, truth(x, w), rtol=2e-3, atol=2e-3)
            elif i % 50 == 0:
                assert found.shape == (columns,)
                assert np.isfinite(found).all()
            if i == count // 10:
                resident = _resident()
    assert told.count <= HANDFUL, told
    assert _resident() - resident < GROWTH
    if isinstance(function, type(smelt.compile(abs))):
        assert len(function._store.entries) <= MAX_VERSIONS
        assert function._store.traces <= 40  # where sizes are equal, or small, other families begin
    campaign.ran("calls with changing sizes", count)


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="memory of a process as Linux tells it")
@pytest.mark.parametrize("way", ["lazy", "compile"])
def test_steps_of_training_with_batches_of_all_sizes(way: str, campaign: Any) -> None:
    model = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 4))
    optimizer = optimizers.Adam(1e-3)
    state = [model.state, optimizer.state]
    gradients = nn.value_and_grad(model, lambda m, x, y: nn.losses.cross_entropy(m(x), y).mean())

    def step(x: Any, y: Any) -> Any:
        loss, g = gradients(model, x, y)
        optimizer.update(model, g)
        return loss

    def lazy(x: Any, y: Any) -> Any:
        loss = step(x, y)
        smelt.eval(loss, model.state, optimizer.state)
        return loss

    run = lazy if way == "lazy" else smelt.compile(step, inputs=state, outputs=state)
    rng = np.random.default_rng(0)
    count = campaign.amount(CALLS // 5)
    resident, losses = 0, []
    with warnings.catch_warnings(), override(tier="auto"), smelt.explain() as told:
        warnings.simplefilter("ignore")
        for i in range(count):
            n = 5 + i * 7 % 401
            x = rng.standard_normal((n, 16)).astype(np.float32)
            y = (x[:, :4]).argmax(axis=1)
            losses.append(run(smelt.array(x), smelt.array(y)).item())
            if i == count // 10:
                resident = _resident()
    assert told.count <= HANDFUL, told
    assert _resident() - resident < GROWTH
    assert np.isfinite(losses).all()
    assert count < 1000 or np.mean(losses[-100:]) < 0.5 * np.mean(losses[:100])
    campaign.ran("steps with changing batches", count)
