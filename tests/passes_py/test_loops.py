"""Scans that become kernels, among random ones: the interpreter says the same before and after."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import numpy as np

import smelt
from smelt.backends.metal.program import PIPELINE
from smelt.ir import text
from smelt.ir.interpreter import Interpreter
from smelt.passes import Pipeline

SHAPES = ((6, 5), (1,), (4, 6, 5), (4, 5), (6, 1))


def program(rng: random.Random) -> Any:
    """A function of two carries, xs of two shapes and a constant: scans whose steps are random ops, some inside of
    others, some of one body."""
    ops = [(rng.randrange(8), [rng.random() for _ in range(3)]) for _ in range(rng.randint(1, 5))]
    returned, reverse, shape_of_all = [rng.random() for _ in range(3)], rng.random() < 0.3, rng.random()

    def step(carry: Any, x: Any, w: Any) -> Any:
        big, one = carry
        values = [big, x[0] + w, w * big] if shape_of_all < 0.7 else [big, big * one]
        for what, at in ops:
            a, b = (values[int(i * len(values))] for i in at[:2])
            if what == 0:
                found = a[::-1] if at[2] < 0.3 else a * 0.5
            elif what == 1:
                found = smelt.where(a > b, a, b * one)
            elif what == 2:
                found = smelt.sin(a) + one
            elif what == 3:
                found = a + x[1]
            elif what == 4:
                found = smelt.mean(a, axis=0) + b if at[2] < 0.3 else a - b
            elif what == 5:
                found = smelt.reshape(smelt.reshape(a, (30,)) + 1, (6, 5))
            elif what == 6:
                found = a + smelt.take(w, smelt.arange(6) * 0, 0)
            else:
                found = smelt.broadcast_to(a[:1], (6, 5)) if at[2] < 0.2 else smelt.maximum(a, b)
            values.append(found)
        last, y, z = (values[int(i * len(values))] for i in returned)
        return (last, one * 0.5 + 1), (y[None], z if returned[0] < 0.5 else one)

    def function(big: Any, one: Any, xs: Any, rows: Any, w: Any) -> Any:
        def scan(big: Any, one: Any) -> Any:
            return smelt.scan(lambda c, x: step(c, x, w), (big, one), (xs, rows), reverse=reverse)

        (last, number), found = scan(big, one)
        if shape_of_all > 0.5:
            return found, scan(last, number)
        return found, smelt.scan(lambda c, x: (c + scan(c, number)[0][0].sum() * x.sum(), x), last, xs)

    return function


def test_random_programs() -> None:
    count: Counter[str] = Counter()
    for seed in range(30):
        draw = np.random.default_rng(seed)
        arrays = [draw.standard_normal(s).astype(np.float32) * np.float32(0.5) for s in SHAPES]
        shapes = [smelt.ShapeDtype(x.shape, smelt.float32) for x in arrays]
        module = smelt.compile(program(random.Random(seed))).trace(*shapes).lower().module
        wanted = Interpreter(module)("main", arrays)
        Pipeline.parse(PIPELINE).run(module)
        text.verify(module)
        made = text.to_text(module)
        count["kernels"] += made.count('smelt.fusion = "loop"')
        count["loops"] += made.count("scf.for") - made.count('smelt.fusion = "loop"')
        for found, want in zip(Interpreter(module)("main", arrays), wanted):
            np.testing.assert_allclose(found, want, rtol=1e-4, atol=1e-4)
    assert count["kernels"] > 20 and count["loops"] > 10, count
