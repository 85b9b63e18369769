"""Chains in which each step uses the last one twice: LLVM's vectorizer follows every path through them."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest

import smelt
from smelt.backends.cpu import kernel
from smelt.ir.settings import override

PROGRAM = """
import faulthandler, sys
import smelt
from smelt.ir.settings import settings
faulthandler.dump_traceback_later(100, exit=True)
settings.tier, settings.small_work = "program", 0
steps = {
    "square": lambda x: x * x,
    "growth": lambda x: x + x * 2,
    "logistic": lambda x: x * (1 - x),
    "xor": lambda x: (x + 1) ^ (x - 1) if smelt.issubdtype(x.dtype, smelt.integer) else (x + 1) * (x - 1),
    "where": lambda x: smelt.where(x < 3, x, x + 1),
    "maximum": lambda x: smelt.maximum(x, x * 3),
    "power": lambda x: x ** smelt.abs(x),
    "converted": lambda x: x + x.astype(smelt.int16).astype(x.dtype),
    "rotated": lambda x: ((x << 3) | (x >> 5)) + x * x if smelt.issubdtype(x.dtype, smelt.integer) else x * x + x,
    "divided": lambda x: x / (x + 1) if not smelt.issubdtype(x.dtype, smelt.integer) else x // (x + 1),
}
ends = {
    "min": lambda x: smelt.minimum(x, 5),
    "where": lambda x: smelt.where(x < 3, x, 2),
    "sum": lambda x: x.sum(-1),
    "both": lambda x: (x.max(-1), x < 3),
    "narrow": lambda x: x.astype(smelt.int8),
}
kinds = [(smelt.int32, smelt.int64), (smelt.int8, smelt.int32), (smelt.int32, smelt.float32),
         (smelt.bfloat16, smelt.bfloat16), (smelt.float16, smelt.float32), (smelt.uint32, smelt.uint64)]
step = steps[sys.argv[1]]
def chain(start, end, x):
    x = x.astype(start)
    for _ in range(2 if sys.argv[1] == 'power' else 36):
        x = step(x)
    return end(x)
for turn, (stored, start) in enumerate(kinds):
    x = (smelt.arange(3 * 37).reshape(3, 37) % 5).astype(stored)
    f = smelt.compile(lambda x: [chain(start, end, x) for end in ends.values()])
    for end in list(ends.values())[turn % 5 :: 5]:
        smelt.eval(smelt.compile(lambda x: chain(start, end, x))(x))
    smelt.eval(f(x))
print("ended")
"""


@pytest.mark.parametrize(
    "step", ["square", "growth", "logistic", "xor", "where", "maximum", "power", "converted", "rotated", "divided"]
)
def test_chains_end(step: str) -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM, step], capture_output=True, text=True, timeout=120)
    assert done.stdout == "ended\n", done.stderr[-2000:]


@pytest.mark.parametrize(
    "function",
    [lambda x: smelt.sin(smelt.sin(x)), lambda x: smelt.cos(smelt.sin(x) + 1), lambda x: (x**0.3 + 1) ** 0.7],
    ids=["sines", "cosine", "powers"],
)
def test_functions_of_functions_are_vectorized(function: Callable[[Any], Any], monkeypatch: pytest.MonkeyPatch) -> None:
    are_vectorized(lambda: function(smelt.ones((1000,))), monkeypatch)


def are_vectorized(function: Callable[[], Any], monkeypatch: pytest.MonkeyPatch) -> None:
    found: list[bool] = []
    is_tangled = kernel.is_tangled
    monkeypatch.setattr(kernel, "is_tangled", lambda loop: found.append(is_tangled(loop)) or found[-1])
    with override(cache=False):
        smelt.eval(smelt.compile(function)())
    assert found and not any(found)


SHAPE = (30, 101)
DRAWS: dict[str, Callable[[Any], Any]] = {
    **{f"bits of {n} bytes": lambda key, n=n: smelt.random.bits(SHAPE, n, key) for n in (1, 2, 4, 8)},
    "bits of even rows": lambda key: smelt.random.bits((32, 128), key=key),
    "uniform": lambda key: smelt.random.uniform(-1, 2, SHAPE, key=key),
    "normal": lambda key: smelt.random.normal(SHAPE, key=key),
    "normal float64": lambda key: smelt.random.normal(SHAPE, smelt.float64, key=key),
    "normal bfloat16": lambda key: smelt.random.normal(SHAPE, smelt.bfloat16, key=key),
    "bernoulli": lambda key: smelt.random.bernoulli(0.3, SHAPE, key),
    "randint": lambda key: smelt.random.randint(0, 9, SHAPE, key=key),
    "gumbel": lambda key: smelt.random.gumbel(SHAPE, key=key),
    "laplace": lambda key: smelt.random.laplace(SHAPE, key=key),
    "truncated": lambda key: smelt.random.truncated_normal(-1, 1, SHAPE, key=key),
    "split": lambda key: smelt.random.split(key, 1000),
}


@pytest.mark.parametrize("name", DRAWS)
def test_random_numbers_are_vectorized(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Twenty rounds in which each word is used several times, but is rotated each time."""
    key = smelt.random.key(3)
    are_vectorized(lambda: DRAWS[name](key), monkeypatch)
