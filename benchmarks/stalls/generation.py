"""Generating tokens one by one, with caches of keys and values."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from .models import attention, feed_forward, heads, joined, layer_norm, transformer
from .program import Run, program

LAYERS, WIDTH, HEADS, VOCABULARY, TOKENS = 2, 128, 4, 256, 200
NOT_ASSIGNABLE = {"jax": "arrays cannot be assigned to"}

#: Takes a layer's cache, the place of the token, its keys and values; gives the cache and what to attend to.
Cached = Callable[[Any, Any, int, Any, Any], tuple[Any, Any, Any, Any]]


def _generate(mx: Any, run: Run, empty: Callable[[], Any], cached: Cached) -> Iterator[Any]:
    p = transformer(mx, LAYERS, WIDTH, VOCABULARY, TOKENS)
    caches = [empty() for _ in range(LAYERS)]
    token = mx.array([[1]])
    total = mx.zeros(())
    for n in range(run.steps):
        x = p["embed"][token] + p["places"][n]
        for i, block in enumerate(p["blocks"]):
            y = layer_norm(mx, x, block["norm1"])
            q, k, v = (heads(y @ block[name], HEADS) for name in "qkv")
            caches[i], k, v, mask = cached(mx, caches[i], n, k, v)
            x = x + joined(attention(mx, q, k, v, mask)) @ block["o"]
            x = x + feed_forward(mx, block, x)
        logits = layer_norm(mx, x, p["norm"]) @ p["head"]
        token = mx.argmax(logits, axis=-1)
        total = total + mx.logsumexp(logits, axis=-1)[0, 0]
        mx.eval(token, caches)
        yield total


def _concatenated(mx: Any, cache: Any, n: int, k: Any, v: Any) -> tuple[Any, Any, Any, Any]:
    if cache is not None:
        k, v = mx.concatenate([cache[0], k], axis=2), mx.concatenate([cache[1], v], axis=2)
    return (k, v), k, v, None


def _zeros(mx: Any) -> Callable[[], Any]:
    shape = (1, HEADS, TOKENS, WIDTH // HEADS)
    return lambda: (mx.zeros(shape), mx.zeros(shape))


def _viewed(mx: Any, cache: Any, n: int, k: Any, v: Any) -> tuple[Any, Any, Any, Any]:
    cache[0][:, :, n : n + 1] = k
    cache[1][:, :, n : n + 1] = v
    return cache, cache[0][:, :, : n + 1], cache[1][:, :, : n + 1], None


def _masked(mx: Any, cache: Any, n: int, k: Any, v: Any) -> tuple[Any, Any, Any, Any]:
    cache[0][:, :, n : n + 1] = k
    cache[1][:, :, n : n + 1] = v
    return cache, cache[0], cache[1], mx.arange(TOKENS) <= n


@program("tokens-concatenated", TOKENS, of="token")
def tokens_concatenated(mx: Any, run: Run) -> Iterator[Any]:
    """200 tokens, 2 layers of 128, cache growing by concatenation"""
    yield from _generate(mx, run, lambda: None, _concatenated)


@program("tokens-viewed", TOKENS, of="token", absent=NOT_ASSIGNABLE)
def tokens_viewed(mx: Any, run: Run) -> Iterator[Any]:
    """200 tokens, 2 layers of 128, preallocated cache with a growing view"""
    yield from _generate(mx, run, _zeros(mx), _viewed)


@program("tokens-masked", TOKENS, of="token", absent=NOT_ASSIGNABLE)
def tokens_masked(mx: Any, run: Run) -> Iterator[Any]:
    """200 tokens, 2 layers of 128, fixed cache and mask, uncompiled"""
    yield from _generate(mx, run, _zeros(mx), _masked)
