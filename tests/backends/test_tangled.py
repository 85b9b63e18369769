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
    for end in list(ends.values())[turn % 2 :: 2]:
        smelt.eval(smelt.compile(lambda x: chain(start, end, x))(x))
    smelt.eval(f(x))
print("ended")
"""


@pytest.mark.parametrize(
    "step", ["square", "growth", "logistic", "xor", "where", "maximum", "power", "converted", "divided"]
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
    found: list[bool] = []
    is_tangled = kernel.is_tangled
    monkeypatch.setattr(kernel, "is_tangled", lambda loop: found.append(is_tangled(loop)) or found[-1])
    with override(cache=False):
        smelt.eval(smelt.compile(function)(smelt.ones((1000,))))
    assert found and not any(found)
