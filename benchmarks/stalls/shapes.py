"""One function at many shapes, and many small functions."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from .models import attention, gelu, generator, layer_norm
from .program import Run, program


@program("attention", 96, of="shape")
def attention_shapes(mx: Any, run: Run) -> Iterator[Any]:
    """attention, 4 heads of 32, at 96 different lengths"""
    rng = generator()
    longest = rng.standard_normal((3, 1, 4, 1000, 32)).astype(np.float32)
    for i in range(run.steps):
        length = 128 + 8 * (i * 37 % 96)
        q, k, v = (mx.array(x) for x in longest[:, :, :, :length])
        result = mx.mean(mx.abs(attention(mx, q, k, v)))
        mx.eval(result)
        yield result


def _function(mx: Any) -> Callable[[Any, Any], Any]:
    """Several ops, two of them reductions."""

    def function(x: Any, weight: Any) -> Any:
        return mx.sum(gelu(mx, layer_norm(mx, x, weight)), axis=0)

    return function


def _shapes(mx: Any, run: Run, function: Callable[[Any, Any], Any]) -> Iterator[Any]:
    rng = generator()
    data = rng.standard_normal(1000 * 40).astype(np.float32)
    for i in range(run.steps):
        rows, columns = 100 + i, 8 + i % 31
        x = mx.array(data[: rows % 977 * columns].reshape(-1, columns))
        result = function(x, mx.array(np.ones(columns, np.float32)))
        mx.eval(result)
        yield mx.sum(result) if i + 1 == run.steps else result


@program("shapes-lazy", 1000, of="shape")
def shapes_lazy(mx: Any, run: Run) -> Iterator[Any]:
    """a function of ten ops at a thousand shapes, lazy"""
    yield from _shapes(mx, run, _function(mx))


@program("shapes-compiled", 1000, of="shape", absent={"torch": "eager"})
def shapes_compiled(mx: Any, run: Run) -> Iterator[Any]:
    """a function of ten ops at a thousand shapes, compiled"""
    yield from _shapes(mx, run, mx.compile(_function(mx)))


@program("shapes-shapeless", 1000, of="shape", absent={"torch": "eager", "jax": "has no such option"})
def shapes_shapeless(mx: Any, run: Run) -> Iterator[Any]:
    """a function of ten ops at a thousand shapes, compiled with shapeless=True"""
    yield from _shapes(mx, run, mx.compile(_function(mx), shapeless=True))


@program("notebook", 100, of="expression")
def notebook(mx: Any, run: Run) -> Iterator[Any]:
    """a hundred different small expressions, the value of each asked for"""
    rng = generator()
    arrays = [mx.array(rng.standard_normal((200, 50)).astype(np.float32)) for _ in range(3)]
    square = mx.array(rng.standard_normal((50, 50)).astype(np.float32))
    for _ in range(run.steps):
        x = arrays[rng.integers(3)]
        for _ in range(rng.integers(2, 9)):
            x = _changed(mx, int(rng.integers(14)), x, arrays[rng.integers(3)], square)
        yield float(mx.mean(mx.abs(x)))


def _changed(mx: Any, choice: int, x: Any, y: Any, square: Any) -> Any:
    """What somebody may try next."""
    changes = (
        lambda: mx.exp(-mx.abs(x)),
        lambda: mx.sin(x) * 2,
        lambda: x - mx.mean(x, axis=0),
        lambda: x / (1 + mx.abs(y)),
        lambda: mx.where(y > 0, x, 0.5 * x),
        lambda: mx.softmax(x, axis=-1),
        lambda: mx.tanh(x @ square),
        lambda: mx.maximum(x, y),
        lambda: mx.sort(x, axis=0),
        lambda: mx.cumsum(x, axis=1) / 50,
        lambda: mx.concatenate([x[:100], y[100:]], axis=0),
        lambda: x * mx.sqrt(mx.sum(y * y, axis=1, keepdims=True))[:, :1] / 7,
        lambda: mx.log(1 + x * x) + mx.cos(y),
        lambda: (x - mx.mean(x)) * 0.1 + y,
    )
    return changes[choice % len(changes)]()
