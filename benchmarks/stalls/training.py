"""Training by plain lazy steps: gradients, an update written out, `eval` once a step."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from .models import Adam, generator, mlp, mlp_loss, sgd, transformer, transformer_loss
from .program import Run, program

VOCABULARY, LENGTH = 256, 32


def _varying(step: int, least: int, most: int) -> int:
    """Sizes between two bounds that do not come again soon."""
    return least + step * 7 % (most - least)


def _mlp(mx: Any, run: Run, batch: Callable[[int], int]) -> Iterator[Any]:
    rng = generator()
    layers = mlp(mx, (64, 64, 64, 10))
    step = mx.value_and_grad(lambda p, x, y: mlp_loss(mx, p, x, y))
    for i in range(run.steps):
        n = batch(i)
        x = mx.array(rng.standard_normal((n, 64)).astype(np.float32))
        y = mx.array(rng.integers(0, 10, n).astype(np.int32))
        loss, gradients = step(layers, x, y)
        layers = sgd(mx, layers, gradients, 0.05)
        mx.eval(loss, layers)
        yield loss


@program("mlp-varying", 40)
def mlp_varying(mx: Any, run: Run) -> Iterator[Any]:
    """MLP of 64, lazy step, 40 steps, batch size changes each step"""
    yield from _mlp(mx, run, lambda i: _varying(i, 17, 64))


@program("mlp-fixed", 40)
def mlp_fixed(mx: Any, run: Run) -> Iterator[Any]:
    """MLP of 64, lazy step, 40 steps, fixed sizes"""
    yield from _mlp(mx, run, lambda i: 64)


def _transformer(mx: Any, run: Run, batch: Callable[[int], int]) -> Iterator[Any]:
    rng = generator()
    parameters = transformer(mx, 2, 128, VOCABULARY, LENGTH)
    optimizer = Adam(mx, 1e-3)
    step = mx.value_and_grad(lambda p, x, y: transformer_loss(mx, p, x, y))
    for i in range(run.steps):
        tokens = rng.integers(0, VOCABULARY, (batch(i), LENGTH + 1)).astype(np.int32)
        loss, gradients = step(parameters, mx.array(tokens[:, :-1]), mx.array(tokens[:, 1:]))
        parameters = optimizer.update(parameters, gradients)
        mx.eval(loss, parameters, optimizer.mean, optimizer.square)
        yield loss


@program("transformer-varying", 20)
def transformer_varying(mx: Any, run: Run) -> Iterator[Any]:
    """transformer 2×128, lazy step with Adam, 20 steps, batch size changes each step"""
    yield from _transformer(mx, run, lambda i: _varying(i, 4, 33))


@program("transformer-first", 2)
def transformer_first(mx: Any, run: Run) -> Iterator[Any]:
    """transformer 2×128, lazy step with Adam, fixed sizes: the first two steps"""
    yield from _transformer(mx, run, lambda i: 16)


@program("transformer-fixed", 20)
def transformer_fixed(mx: Any, run: Run) -> Iterator[Any]:
    """transformer 2×128, lazy step with Adam, fixed sizes: 20 steps"""
    yield from _transformer(mx, run, lambda i: 16)


@program("logistic", 1, of="training")
def logistic(mx: Any, run: Run) -> Iterator[Any]:
    """200 steps of logistic regression without eval in the loop, then one value"""
    rng = generator()
    true = rng.standard_normal(100).astype(np.float32)
    data = rng.standard_normal((1000, 100)).astype(np.float32)
    x, y = mx.array(data), mx.array((data @ true > 0).astype(np.float32))
    gradient = mx.grad(lambda w: mx.mean(mx.log(1 + mx.exp(-mx.abs(x @ w))) + mx.maximum(x @ w, 0.0) - y * (x @ w)))
    for _ in range(run.steps):
        w = mx.array(1e-2 * rng.standard_normal(100).astype(np.float32))
        for _ in range(200):
            w = w - 0.1 * gradient(w)
        loss = mx.mean(((x @ w > 0) == (y > 0.5)) * 1.0)
        mx.eval(loss)
        yield loss
