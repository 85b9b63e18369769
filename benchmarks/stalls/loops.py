"""Loops of Python that make another graph in each step: lists that grow, numbers and indices that change."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from .generation import NOT_ASSIGNABLE
from .models import generator, matrix
from .program import Run, program


def _random(mx: Any, rng: np.random.Generator, *shape: int) -> Any:
    return mx.array(rng.standard_normal(shape).astype(np.float32))


@program("list-growing", 150)
def list_growing(mx: Any, run: Run) -> Iterator[Any]:
    """150 steps that append to a list of arrays and take the mean of them all, concatenated"""
    x, found = _random(mx, generator(), 4, 8), []
    for i in range(run.steps):
        found.append(mx.tanh(x + 0.1 * i))
        mean = mx.mean(mx.concatenate(found, axis=0))
        mx.eval(mean)
        yield mean


@program("assigned", 8, of="50 assignments", absent=NOT_ASSIGNABLE)
def assigned(mx: Any, run: Run) -> Iterator[Any]:
    """x[i] = 0.9 * x[i - 1] + i for i up to 400, evaluated every 50 steps"""
    x = mx.zeros((400,))
    for i in range(1, 50 * run.steps):
        x[i] = x[i - 1] * 0.9 + i
        if i % 50 == 49:
            mx.eval(x)
            yield x[i]


@program("numbers-changing", 400)
def numbers_changing(mx: Any, run: Run) -> Iterator[Any]:
    """400 steps on 50 elements with Python numbers that are others in each"""
    x = _random(mx, generator(), 50)
    for i in range(run.steps):
        x = x * (1 - 0.01 / (i + 1)) + i * 1e-3
        x = mx.where(x > 0.1 * i, x * 0.5, x)
        mx.eval(x)
        yield mx.sum(x)


@program("particles", 60)
def particles(mx: Any, run: Run) -> Iterator[Any]:
    """60 steps of 200 particles of a plane that attract each other"""
    p, v = _random(mx, generator(), 200, 2), mx.zeros((200, 2))
    for _ in range(run.steps):
        between = p[:, None] - p
        squares = (between * between).sum(-1) + 0.1
        v = v - 0.001 * (between / (squares * mx.sqrt(squares))[..., None]).sum(1)
        p = p + 0.001 * v
        mx.eval(p, v)
        yield mx.sum(p)


@program("rnn", 24)
def rnn(mx: Any, run: Run) -> Iterator[Any]:
    """gradients of an RNN of 32 by a loop of Python, 24 steps of 12 lengths"""
    rng = generator()
    parameters = [matrix(mx, rng, 32, 32), matrix(mx, rng, 32, 32), mx.zeros((32,))]

    def loss(p: Any, xs: Any) -> Any:
        h = mx.zeros((4, 32))
        for i in range(xs.shape[0]):
            h = mx.tanh(xs[i] @ p[0] + h @ p[1] + p[2])
        return mx.mean(h * h)

    step = mx.value_and_grad(loss)
    for i in range(run.steps):
        value, gradients = step(parameters, _random(mx, rng, 10 + i % 12, 4, 32))
        parameters = [p - 0.1 * g for p, g in zip(parameters, gradients)]
        mx.eval(value, parameters)
        yield value


@program("metrics", 100)
def metrics(mx: Any, run: Run) -> Iterator[Any]:
    """100 steps of a linear classifier, every tenth followed by its accuracy on sets of other sizes"""
    rng = generator()
    weights, x = matrix(mx, rng, 20, 5), _random(mx, rng, 64, 20)
    labels = mx.array(rng.integers(0, 5, 64).astype(np.int32))

    def loss(w: Any, x: Any, labels: Any) -> Any:
        logits = x @ w
        return mx.mean(mx.logsumexp(logits, axis=-1) - mx.take_along_axis(logits, labels[:, None], axis=-1)[:, 0])

    step = mx.value_and_grad(loss)
    for i in range(run.steps):
        value, gradient = step(weights, x, labels)
        weights = weights - 0.1 * gradient
        mx.eval(weights)
        if i % 10 == 9:
            n = 30 + i % 7
            right = mx.argmax(x[:n] @ weights, axis=-1) == labels[:n]
            value = mx.mean(right * 1.0)
            mx.eval(value)
        yield value
