"""Networks of the programs, written out: parameters are nested dicts and lists of arrays."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np


def generator() -> np.random.Generator:
    """The same numbers in every framework."""
    return np.random.default_rng(0)


def matrix(mx: Any, rng: np.random.Generator, rows: int, columns: int) -> Any:
    """A random matrix that keeps the size of what is multiplied with it."""
    return mx.array((rng.standard_normal((rows, columns)) / math.sqrt(rows)).astype(np.float32))


def tree_map(f: Callable[..., Any], *trees: Any) -> Any:
    """`f` on the leaves of trees of one structure."""
    first = trees[0]
    if isinstance(first, dict):
        return {key: tree_map(f, *(t[key] for t in trees)) for key in first}
    if isinstance(first, list):
        return [tree_map(f, *parts) for parts in zip(*trees)]
    return f(*trees)


def cross_entropy(mx: Any, logits: Any, labels: Any) -> Any:
    """The mean over all but the last axis."""
    chosen = mx.take_along_axis(logits, labels[..., None], axis=-1)[..., 0]
    return mx.mean(mx.logsumexp(logits, axis=-1) - chosen)


def layer_norm(mx: Any, x: Any, weight: Any) -> Any:
    centered = x - mx.mean(x, axis=-1, keepdims=True)
    return centered * mx.rsqrt(mx.mean(centered * centered, axis=-1, keepdims=True) + 1e-5) * weight


def gelu(mx: Any, x: Any) -> Any:
    return x * (1 + mx.erf(x * math.sqrt(0.5))) / 2


def mlp(mx: Any, sizes: Sequence[int]) -> list[dict[str, Any]]:
    """Parameters of a network of dense layers."""
    rng = generator()
    return [{"w": matrix(mx, rng, n, m), "b": mx.zeros((m,))} for n, m in itertools.pairwise(sizes)]


def mlp_loss(mx: Any, layers: list[dict[str, Any]], x: Any, labels: Any) -> Any:
    for layer in layers[:-1]:
        x = mx.maximum(x @ layer["w"] + layer["b"], 0.0)
    return cross_entropy(mx, x @ layers[-1]["w"] + layers[-1]["b"], labels)


def large_matrix(mx: Any, rng: np.random.Generator, rows: int, columns: int) -> Any:
    """The same of few random numbers, again and again: they take longer to draw than a step."""
    period = rng.standard_normal(10_007) / math.sqrt(rows)
    return mx.array(np.resize(period.astype(np.float32), (rows, columns)))


def transformer(
    mx: Any, layers: int, width: int, vocabulary: int, length: int, matrix: Callable[..., Any] = matrix
) -> dict[str, Any]:
    """Parameters of a decoder."""
    rng = generator()
    sizes = {"q": (width, width), "k": (width, width), "v": (width, width), "o": (width, width)}
    sizes |= {"up": (width, 4 * width), "down": (4 * width, width)}
    blocks = []
    for _ in range(layers):
        block = {name: matrix(mx, rng, *size) for name, size in sizes.items()}
        block |= {name: mx.array(np.ones(width, np.float32)) for name in ("norm1", "norm2")}
        blocks.append(block)
    return {
        "embed": matrix(mx, rng, vocabulary, width), "places": matrix(mx, rng, length, width), "blocks": blocks,
        "norm": mx.array(np.ones(width, np.float32)), "head": matrix(mx, rng, width, vocabulary),
    }  # fmt: skip


def heads(x: Any, count: int) -> Any:
    """[batch, length, width] as [batch, head, length, width of a head]."""
    batch, length, width = x.shape
    return x.reshape(batch, length, count, width // count).swapaxes(1, 2)


def joined(x: Any) -> Any:
    batch, count, length, width = x.shape
    return x.swapaxes(1, 2).reshape(batch, length, count * width)


def attention(mx: Any, q: Any, k: Any, v: Any, mask: Any = None) -> Any:
    scores = q @ k.swapaxes(-1, -2) / math.sqrt(q.shape[-1])
    if mask is not None:
        scores = mx.where(mask, scores, -1e9)
    return mx.softmax(scores, axis=-1) @ v


def feed_forward(mx: Any, block: dict[str, Any], x: Any) -> Any:
    return gelu(mx, layer_norm(mx, x, block["norm2"]) @ block["up"]) @ block["down"]


def transformer_logits(mx: Any, p: dict[str, Any], tokens: Any, count: int = 4) -> Any:
    """[batch, length] tokens as [batch, length, vocabulary], with so many heads."""
    length = tokens.shape[1]
    x = p["embed"][tokens] + p["places"][:length]
    place = mx.arange(length)
    mask = place[:, None] >= place
    for block in p["blocks"]:
        y = layer_norm(mx, x, block["norm1"])
        q, k, v = (heads(y @ block[name], count) for name in "qkv")
        x = x + joined(attention(mx, q, k, v, mask)) @ block["o"]
        x = x + feed_forward(mx, block, x)
    return layer_norm(mx, x, p["norm"]) @ p["head"]


def transformer_loss(mx: Any, p: dict[str, Any], tokens: Any, labels: Any, count: int = 4) -> Any:
    """The loss of predicting `labels`; [batch, length] both."""
    return cross_entropy(mx, transformer_logits(mx, p, tokens, count), labels)


def sgd(mx: Any, parameters: Any, gradients: Any, rate: float) -> Any:
    return tree_map(lambda p, g: p - rate * g, parameters, gradients)


class Adam:
    """Adam, written out; its state is made in the first step."""

    def __init__(self, mx: Any, rate: float):
        self.mx, self.rate = mx, rate
        self.step = 0
        self.mean: Any = None
        self.square: Any = None

    def update(self, parameters: Any, gradients: Any) -> Any:
        mx = self.mx
        if self.mean is None:
            self.mean = tree_map(mx.zeros_like, parameters)
            self.square = tree_map(mx.zeros_like, parameters)
        self.step += 1
        self.mean = tree_map(lambda m, g: 0.9 * m + 0.1 * g, self.mean, gradients)
        self.square = tree_map(lambda s, g: 0.999 * s + 0.001 * g * g, self.square, gradients)
        a, b = 1 - 0.9**self.step, 1 - 0.999**self.step
        return tree_map(
            lambda p, m, s: p - self.rate * (m / a) / (mx.sqrt(s / b) + 1e-8), parameters, self.mean, self.square
        )
