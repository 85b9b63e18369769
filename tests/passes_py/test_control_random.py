"""Derivatives of random programs of nested branches and scans."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence

import numpy as np
import pytest

from smelt.ir.builder import Builder, Value

from .control_programs import SCALAR, VECTOR, Program, check, f64, i32

Emit = Callable[..., list[Value]]


class Writer:
    """Writes a function of vectors; `depth` bounds how deeply control flow nests."""

    def __init__(self, seed: int, depth: int = 2):
        self.random, self.depth, self.program = random.Random(seed), depth, Program()

    def plain(self, b: Builder, values: Sequence[Value]) -> Value:
        x, y = (self.random.choice(values) for _ in range(2))
        rules: list[Callable[[], Value]] = [
            lambda: b.sin(x),
            lambda: x * y,
            lambda: b.tanh(x) + y,
            lambda: b.cos(x * y),
            lambda: b.floor(x * 3) * 0.2,
            lambda: b.full((3,), 0.7, f64),
        ]
        return self.random.choice(rules)()

    def block(self, b: Builder, values: Sequence[Value], count: int) -> list[Value]:
        found = list(values)
        for _ in range(count):
            found.append(self.plain(b, found))
            if self.depth and self.random.random() < 0.35:
                self.depth -= 1
                found += self.control(b, found)
                self.depth += 1
        return found

    def function(self, outs: int) -> Emit:
        def emit(b: Builder, *values: Value) -> list[Value]:
            found = self.block(b, values or [b.full((3,), 0.3, f64)], self.random.randint(1, 3))
            return [self.random.choice(found) for _ in range(outs)]

        return emit

    def control(self, b: Builder, values: Sequence[Value]) -> list[Value]:
        pick, p = self.random.choice, self.program
        kind = pick(["scan", "scan", "cond", "switch"])
        operands = [pick(values) for _ in range(self.random.randint(0 if kind == "scan" else 1, 3))]
        outs = self.random.randint(1, 2)
        if kind == "cond":
            index = b.less(b.reduce_sum(pick(values), axes=(0,)), b.full(SCALAR.shape, 0.1, f64))
            return list(p.cond(b, index, [self.function(outs) for _ in range(2)], operands))
        if kind == "switch":
            index = b.full((), self.random.randrange(3), i32)
            return list(p.cond(b, index, [self.function(outs) for _ in range(3)], operands))
        carry = [pick(values) for _ in range(self.random.randint(0, 2))]
        weights = b.literal(np.arange(1.0, 13.0).reshape(4, 3) / 12)
        xs = [b.broadcast_to(pick(values), (4, 3)) * weights for _ in range(self.random.randint(0, 2))]
        found = p.scan(
            b, self.function(len(carry) + outs), operands, carry, xs, length=4 if xs else pick([0, 3]),
            reverse=pick([False, True]), checkpoint=self.random.random() < 0.3,
        )  # fmt: skip
        return [v if v.aval == VECTOR else b.reduce_sum(v, axes=(0,)) for v in found]

    def main(self, b: Builder, *values: Value) -> list[Value]:
        found = self.block(b, values, 4)
        for _ in range(2):
            found += self.control(b, found)
        found = self.block(b, found, 2)
        return [found[-1], self.random.choice(found)]


@pytest.mark.parametrize("seed", range(12))
def test_random_programs(seed: int) -> None:
    writer = Writer(seed)
    name = writer.program.function("f", [VECTOR, VECTOR], writer.main, public=True)
    rng = np.random.default_rng(seed)
    check(
        writer.program.module, name, [rng.uniform(-1, 1, 3) for _ in range(2)],
        order=2 if seed % 4 == 0 else 1, step=1e-5,
    )  # fmt: skip
