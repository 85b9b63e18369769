"""Generating tokens one by one, with caches of keys and values."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from .models import attention, feed_forward, heads, joined, layer_norm, matrix, transformer
from .program import Run, program


class Sizes(NamedTuple):
    """Of a decoder."""

    layers: int
    width: int
    heads: int
    vocabulary: int
    tokens: int  #: that it has places for

    def parameters(self, mx: Any, matrix: Callable[..., Any]) -> dict[str, Any]:
        return transformer(mx, self.layers, self.width, self.vocabulary, self.tokens, matrix)


SMALL = Sizes(2, 128, 4, 256, 200)
NOT_ASSIGNABLE = {"jax": "arrays cannot be assigned to"}

#: Takes a layer's cache, the place of the token, its keys and values; gives the cache and what to attend to.
Cached = Callable[[Any, Any, int, Any, Any], tuple[Any, Any, Any, Any]]


def generate(
    mx: Any, run: Run, empty: Callable[[], Any], cached: Cached, sizes: Sizes = SMALL, make: Callable[..., Any] = matrix
) -> Iterator[Any]:
    """Yields the sum of logsumexp of the logits so far, after each token."""
    p = sizes.parameters(mx, make)
    caches = [empty() for _ in range(sizes.layers)]
    token = mx.array([[1]])
    total = mx.zeros(())
    for n in range(run.steps):
        x = p["embed"][token] + p["places"][n]
        for i, block in enumerate(p["blocks"]):
            y = layer_norm(mx, x, block["norm1"])
            q, k, v = (heads(y @ block[name], sizes.heads) for name in "qkv")
            caches[i], k, v, mask = cached(mx, caches[i], n, k, v)
            x = x + joined(attention(mx, q, k, v, mask)) @ block["o"]
            x = x + feed_forward(mx, block, x)
        logits = layer_norm(mx, x, p["norm"]) @ p["head"]
        token = mx.argmax(logits, axis=-1)
        total = total + mx.logsumexp(logits, axis=-1)[0, 0]
        mx.eval(token, caches)
        yield total


def concatenated(mx: Any, cache: Any, n: int, k: Any, v: Any) -> tuple[Any, Any, Any, Any]:
    if cache is not None:
        k, v = mx.concatenate([cache[0], k], axis=2), mx.concatenate([cache[1], v], axis=2)
    return (k, v), k, v, None


def zeros(mx: Any, sizes: Sizes = SMALL) -> Callable[[], Any]:
    """Makes preallocated caches of a layer."""
    shape = (1, sizes.heads, sizes.tokens, sizes.width // sizes.heads)
    return lambda: (mx.zeros(shape), mx.zeros(shape))


def viewed(mx: Any, cache: Any, n: int, k: Any, v: Any) -> tuple[Any, Any, Any, Any]:
    cache[0][:, :, n : n + 1] = k
    cache[1][:, :, n : n + 1] = v
    return cache, cache[0][:, :, : n + 1], cache[1][:, :, : n + 1], None


def _masked(mx: Any, cache: Any, n: int, k: Any, v: Any) -> tuple[Any, Any, Any, Any]:
    cache[0][:, :, n : n + 1] = k
    cache[1][:, :, n : n + 1] = v
    return cache, cache[0], cache[1], mx.arange(SMALL.tokens) <= n


@program("tokens-concatenated", SMALL.tokens, of="token")
def tokens_concatenated(mx: Any, run: Run) -> Iterator[Any]:
    """200 tokens, 2 layers of 128, cache growing by concatenation"""
    yield from generate(mx, run, lambda: None, concatenated)


@program("tokens-viewed", SMALL.tokens, of="token", absent=NOT_ASSIGNABLE)
def tokens_viewed(mx: Any, run: Run) -> Iterator[Any]:
    """200 tokens, 2 layers of 128, preallocated cache with a growing view"""
    yield from generate(mx, run, zeros(mx), viewed)


@program("tokens-masked", SMALL.tokens, of="token", absent=NOT_ASSIGNABLE)
def tokens_masked(mx: Any, run: Run) -> Iterator[Any]:
    """200 tokens, 2 layers of 128, fixed cache and mask, uncompiled"""
    yield from generate(mx, run, zeros(mx), _masked)
