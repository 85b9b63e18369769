"""What joins a kernel of attention: random programs around several, interpreted before and after."""

from __future__ import annotations

import random
from typing import Any

import numpy as np

import smelt
from smelt.backends.metal.program import PIPELINE
from smelt.ir import text
from smelt.ir.interpreter import Interpreter
from smelt.passes import Pipeline
from smelt.passes.kernels.check import verify_fusions

SHAPE = (2, 20, 18)


def program(rng: random.Random) -> Any:
    """A function of three arrays of `SHAPE` and one of its last axis, with two or three attentions among other ops."""
    plan = [rng.randrange(9) for _ in range(rng.randint(4, 9))]
    plan[1:1] = [0, 0]
    picks = [[rng.random() for _ in range(4)] for _ in plan]

    def function(q: Any, k: Any, v: Any, w: Any) -> list[Any]:
        values = [q, k, v]
        for what, at in zip(plan, picks):
            x, y, z = (values[int(i * len(values))] for i in at[:3])
            if what < 3:
                scores = x @ smelt.swapaxes(y, -1, -2) * 0.1
                if at[3] < 0.4:
                    scores = smelt.where(smelt.expand_dims(smelt.arange(20), 1) >= smelt.arange(20), scores, -smelt.inf)
                found = smelt.softmax(scores, axis=-1) @ z
            elif what == 3:
                found = x * smelt.sigmoid(y)
            elif what == 4:
                found = smelt.tanh(x) + w
            elif what == 5:
                found = x[:, ::-1] + y
            elif what == 6:
                found = x - smelt.mean(x, axis=-1, keepdims=True)
            elif what == 7:
                found = smelt.reshape(smelt.reshape(x, (40, 18)) * 2, SHAPE)
            else:
                found = smelt.swapaxes(smelt.swapaxes(x, 0, 1) + 1, 0, 1)
            values.append(found)
        return [values[-1], *(v for v, at in zip(values[3:], picks) if at[3] > 0.8)]

    return function


def gradient(function: Any) -> Any:
    """The value of a sum over all results, and its gradient with respect to every argument."""

    def loss(*arrays: Any) -> Any:
        sums = [smelt.sum(smelt.sin(x)) for x in function(*arrays)]
        return sum(sums[1:], sums[0])

    return smelt.value_and_grad(loss, argnums=(0, 1, 2, 3))


def test_random_gradients() -> None:
    """Kernels of gradients read each other's results, and what is made of several of one."""
    counts = [0, 0]
    for seed in range(20):
        rng, draw = random.Random(seed), np.random.default_rng(seed)
        arrays = [draw.standard_normal(s).astype(np.float32) for s in (*[SHAPE] * 3, SHAPE[-1:])]
        shapes = [smelt.ShapeDtype(x.shape, smelt.float32) for x in arrays]
        module = smelt.compile(gradient(program(rng))).trace(*shapes).lower().module
        passes = Pipeline.parse(PIPELINE).items
        at = [str(item) for item in passes].index("select")
        Pipeline(passes[:at]).run(module)
        wanted = Interpreter(module)("main", arrays)
        Pipeline(passes[at + 1 :]).run(module)
        text.verify(module)
        verify_fusions(module)
        printed = text.to_text(module)
        counts = [n + printed.count(f'smelt.fusion = "{kind}"') for n, kind in zip(counts, ("attention", "chain"))]
        for found, want in zip(Interpreter(module)("main", arrays), wanted):
            np.testing.assert_allclose(found, want, rtol=1e-3, atol=2e-4 * max(1, np.abs(want).max()))
    assert counts[0] > 25 and counts[1] > 50


def test_random_programs() -> None:
    count = 0
    for seed in range(40):
        rng = random.Random(seed)
        draw = np.random.default_rng(seed)
        arrays = [draw.standard_normal(s).astype(np.float32) for s in (*[SHAPE] * 3, SHAPE[-1:])]
        shapes = [smelt.ShapeDtype(x.shape, smelt.float32) for x in arrays]
        module = smelt.compile(program(rng)).trace(*shapes).lower().module
        wanted = Interpreter(module)("main", arrays)
        Pipeline.parse(PIPELINE).run(module)
        text.verify(module)
        count += text.to_text(module).count('smelt.fusion = "attention"')
        for found, want in zip(Interpreter(module)("main", arrays), wanted):
            np.testing.assert_allclose(found, want, rtol=1e-4, atol=1e-5)
    assert count > 40
