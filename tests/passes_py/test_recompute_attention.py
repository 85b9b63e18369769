"""Weights computed anew for the gradient of attention: values before and after, and what is left as it is."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import smelt
from smelt.backends.gpu.pipeline import gpu_pipeline
from smelt.backends.pipelines import SIMPLIFY
from smelt.ir import text
from smelt.ir.interpreter import Interpreter
from smelt.passes import Pipeline


def scaled(mask: str | None = None, groups: int = 2) -> Callable[..., Any]:
    def function(q: Any, k: Any, v: Any, *given: Any) -> Any:
        k, v = k[:, :groups], v[:, :groups]
        return smelt.fast.scaled_dot_product_attention(q, k, v, scale=0.3, mask=given[0] if given else mask)

    return function


def plain(q: Any, k: Any, v: Any, w: Any = None) -> Any:
    return smelt.softmax(q @ smelt.swapaxes(k, -1, -2), axis=-1) @ v


def by_hand(q: Any, k: Any, v: Any) -> Any:
    scores = q @ smelt.swapaxes(k, -1, -2)
    found = smelt.exp(scores - smelt.max(scores, axis=-1, keepdims=True))
    return found / smelt.sum(found, axis=-1, keepdims=True) @ v


def capped(q: Any, k: Any, v: Any) -> Any:
    return smelt.softmax(smelt.tanh(q @ smelt.swapaxes(k, -1, -2) / 5) * 5, axis=-1) @ v


def heads_last(q: Any, k: Any, v: Any) -> Any:
    return smelt.swapaxes(plain(q, k, v), 1, 2).reshape(2, 20, 64)


def twice(q: Any, k: Any, v: Any) -> Any:
    return plain(plain(q, k, v), k, v)


def other_scores(q: Any, k: Any, v: Any) -> Any:
    scores = q @ smelt.swapaxes(k, -1, -2)
    return smelt.softmax(scores, axis=-1) @ v + smelt.sum(scores * scores, axis=-1, keepdims=True)


def other_weights(q: Any, k: Any, v: Any) -> Any:
    weights = smelt.softmax(q @ smelt.swapaxes(k, -1, -2), axis=-1)
    return weights @ v + smelt.sum(weights * weights, axis=-1, keepdims=True)


def other_values(q: Any, k: Any, v: Any) -> Any:
    weights = smelt.softmax(q @ smelt.swapaxes(k, -1, -2), axis=-1)
    return weights @ v + weights @ smelt.sin(v)


FOUND = {"scaled": scaled(), "causal": scaled("causal"), "one group": scaled(groups=1), "plain": plain,
         "by hand": by_hand, "capped": capped, "heads last": heads_last}  # fmt: skip
LEFT = {"other scores": other_scores, "other weights": other_weights, "other values": other_values}


def rewritten(function: Callable[..., Any], dtype: str) -> int:
    """How many gradients are; values are the same before and after."""

    def loss(*arrays: Any) -> Any:
        return smelt.sum(smelt.sin(function(*arrays).astype(smelt.float32)))

    rng = np.random.default_rng(0)
    shapes = [(2, 2, 20, 32), (2, 2, 24, 32), (2, 2, 24, 32)]
    arrays = [np.array(smelt.array(rng.standard_normal(s, np.float32)).astype(getattr(smelt, dtype))) for s in shapes]
    types = [smelt.ShapeDtype(s, dtype) for s in shapes]
    module = smelt.compile(smelt.value_and_grad(loss, argnums=(0, 1, 2))).trace(*types).lower().module
    Pipeline.parse(SIMPLIFY).run(module)
    before, count = Interpreter(module)("main", arrays), text.to_text(module).count('"smelt.exp"')
    Pipeline.parse("recompute-attention").run(module)
    text.verify(module)
    bound = 2e-5 if dtype == "float32" else 3e-2
    for x, y in zip(Interpreter(module)("main", arrays), before):
        x, y = (np.asarray(z).astype(np.float64) for z in (x, y))
        np.testing.assert_allclose(x, y, atol=bound * np.abs(y).max())
    return text.to_text(module).count('"smelt.exp"') - count


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("name", FOUND)
def test_what_is_rewritten(name: str, dtype: str) -> None:
    assert rewritten(FOUND[name], dtype) == 1


def test_several() -> None:
    assert rewritten(twice, "float32") == 2


@pytest.mark.parametrize("name", LEFT)
def test_what_is_left(name: str) -> None:
    assert rewritten(LEFT[name], "float32") == 0


def test_numbers_of_32_bits_on_nvidia() -> None:
    """Their products are left to a library there, and what is of 16 bits is not."""
    for dtype, chains in (("float32", 0), ("bfloat16", 2)):
        types = [smelt.ShapeDtype((1, 1, 20, 16), dtype)] * 3
        loss = smelt.value_and_grad(lambda *x: smelt.sum(plain(*x).astype(smelt.float32) ** 2), argnums=(0, 1, 2))
        module = smelt.compile(loss).trace(*types).lower().module
        Pipeline.parse(gpu_pipeline(("complex128",), half_gradients=True)).run(module)
        assert text.to_text(module).count('smelt.fusion = "chain"') == chains
