"""A small encoder and decoder of classes that hold arrays, as a library of modules has them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from .models import attention, gelu, generator, heads, joined, layer_norm, matrix
from .program import Run, program

WIDTH, HEADS = 32, 4


class Linear:
    def __init__(self, mx: Any, rng: np.random.Generator, inputs: int, outputs: int):
        self.weight, self.bias = matrix(mx, rng, inputs, outputs), mx.zeros((outputs,))

    def __call__(self, x: Any) -> Any:
        return x @ self.weight + self.bias


class Norm:
    def __init__(self, mx: Any):
        self.mx, self.weight = mx, mx.array(np.ones(WIDTH, np.float32))

    def __call__(self, x: Any) -> Any:
        return layer_norm(self.mx, x, self.weight)


class Attention:
    def __init__(self, mx: Any, rng: np.random.Generator):
        self.mx = mx
        self.query, self.key, self.value, self.out = (Linear(mx, rng, WIDTH, WIDTH) for _ in range(4))

    def __call__(self, x: Any, memory: Any, mask: Any = None) -> Any:
        q, k, v = heads(self.query(x), HEADS), heads(self.key(memory), HEADS), heads(self.value(memory), HEADS)
        return self.out(joined(attention(self.mx, q, k, v, mask)))


class Layer:
    """Of the encoder; of the decoder, where there is a memory to attend to."""

    def __init__(self, mx: Any, rng: np.random.Generator, decoder: bool):
        self.mx = mx
        self.attention, self.norm = Attention(mx, rng), Norm(mx)
        self.cross, self.cross_norm = (Attention(mx, rng), Norm(mx)) if decoder else (None, None)
        self.up, self.down, self.last_norm = Linear(mx, rng, WIDTH, 128), Linear(mx, rng, 128, WIDTH), Norm(mx)

    def __call__(self, x: Any, memory: Any = None, mask: Any = None) -> Any:
        y = self.norm(x)
        x = x + self.attention(y, y, mask)
        if self.cross is not None and self.cross_norm is not None:
            x = x + self.cross(self.cross_norm(x), memory)
        return x + self.down(gelu(self.mx, self.up(self.last_norm(x))))


@program("modules", 5, of="evaluation")
def modules(mx: Any, run: Run) -> Iterator[Any]:
    """transformer of classes, 2+2 layers of 32, 5 evaluations"""
    rng = generator()
    encoder = [Layer(mx, rng, False) for _ in range(2)]
    decoder = [Layer(mx, rng, True) for _ in range(2)]
    norm = Norm(mx)
    source = mx.array(rng.standard_normal((8, 12, WIDTH)).astype(np.float32))
    target = mx.array(rng.standard_normal((8, 10, WIDTH)).astype(np.float32))
    place = mx.arange(10)
    for _ in range(run.steps):
        memory, x = source, target
        for layer in encoder:
            memory = layer(memory)
        for layer in decoder:
            x = layer(x, memory, place[:, None] >= place)
        result = mx.sum(mx.abs(norm(x)))
        mx.eval(result)
        yield result
