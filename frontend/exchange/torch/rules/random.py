"""Random numbers, which are those of `smelt.random`."""

from __future__ import annotations

from typing import Any

import smelt
from smelt import array

from ..graph import Node, converted, rule


@rule("aten.rand", "aten.rand_like", "aten.uniform")
def _rand(n: Node, like: Any, *limits: Any) -> array:
    shape = _shape(like)
    low, high = (limits[0], limits[1]) if n.op.startswith("aten.uniform") else (0.0, 1.0)
    return smelt.random.uniform(low, high, shape, n.dtype)


@rule("aten.randn", "aten.randn_like", "aten.normal_functional")
def _randn(n: Node, like: Any, *moments: Any) -> array:
    shape = _shape(like)
    mean, deviation = (moments[0], moments[1]) if "functional" in n.op else (0.0, 1.0)
    return smelt.random.normal(shape, n.dtype) * deviation + mean


@rule("aten.normal")
def _normal(n: Node, mean: Any, deviation: Any, *rest: Any) -> array:
    return smelt.random.normal(tuple(n.fakes[0].shape), n.dtype) * deviation + mean


def _shape(like: Any) -> tuple[int, ...]:
    return like.shape if isinstance(like, array) else tuple(like)


@rule("aten.randint", "aten.randint_like")
def _randint(n: Node, *given: Any) -> array:
    """Overloads state the upper bound alone, or both."""
    if "like" in n.op:
        like, *bounds = given
        low, high = bounds[:2] if n.op.endswith(".low_dtype") else (0, bounds[0])
    elif n.op.rpartition(".")[2].startswith("low"):
        low, high, like = given[:3]
    else:
        (high, like), low = given[:2], 0
    kind = n.dtype if n.dtype.kind in "iu" else smelt.int32
    return smelt.random.randint(low, high, _shape(like), kind)


@rule("aten.bernoulli")
def _bernoulli(n: Node, x: array, *p: Any) -> array:
    """Of probabilities of its own, or of one for all."""
    given = next((v for v in p if isinstance(v, (int, float, array))), x)
    return smelt.random.bernoulli(given, x.shape)


@rule("aten.randperm")
def _randperm(n: Node, count: int, *_: Any) -> array:
    return smelt.random.permutation(count)


@rule("aten.exponential")
def _exponential(n: Node, x: array, rate: float, *_: Any) -> array:
    return -smelt.log1p(-smelt.random.uniform(0.0, 1.0, x.shape)) / rate


@rule("aten.multinomial")
def _multinomial(n: Node, weights: array, count: int, replacement: bool, *_: Any) -> array:
    logits = smelt.log(converted(weights, smelt.float32))
    if replacement:
        found = smelt.random.categorical(logits[..., None, :], -1, (*weights.shape[:-1], count))
        return found
    noise = smelt.random.gumbel(weights.shape)
    at = smelt.argsort(logits + noise, -1, descending=True)
    return at[..., :count]


@rule("aten.poisson")
def _poisson(n: Node, x: array, *_: Any) -> array:
    return smelt.random.poisson(x)


