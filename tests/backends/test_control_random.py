"""Random nests of loops and branches on the CPU, against the interpreter."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from smelt.backends.cpu import threads
from smelt.ir import dtypes
from smelt.ir.aval import Aval

from .control_modules import Made
from .modules import random_array

COUNT, i32 = Aval((), dtypes.int32), dtypes.int32


class Nest:
    """Functions of two arrays and a number that return the same."""

    def __init__(self, seed: int, dtype: Any = dtypes.float64, sizes: Sequence[int] = (1, 6, 40_000)):
        self.rng = random.Random(seed)
        self.aval = Aval((self.rng.choice(sizes),), dtype)
        self.state = [self.aval, self.aval, COUNT]
        self.hosted = self.rng.random() < 0.4
        self.made, self.names = Made(), 0

    def function(self, depth: int) -> str:
        """A new function; its name."""
        ops = [self.step(depth) for _ in range(self.rng.randint(0, 3))]
        order = self.rng.choice([(0, 1), (1, 0), (0, 0), (1, 1)])

        def body(b: Any, x: Any, y: Any, n: Any) -> list[Any]:
            for op in ops:
                x, y, n = op(b, x, y, n)
            return [(x, y)[order[0]], (x, y)[order[1]], n]

        return self.define(self.state, body)

    def define(self, avals: list[Aval], body: Any) -> str:
        self.names += 1
        return self.made.define(f"f{self.names}", avals, body)

    def step(self, depth: int) -> Any:
        """A change of the three values."""
        kinds = ["swap", "mix", "wave", "count", "total"] + ["sort"] * self.hosted
        if depth:
            kinds += ["cond", "scan", "while"] * 3
        return getattr(self, self.rng.choice(kinds) + "_")(depth - 1)

    def swap_(self, depth: int) -> Any:
        return lambda b, x, y, n: (y, x, n)

    def mix_(self, depth: int) -> Any:
        return lambda b, x, y, n: (x * 0.5 + y * 0.25, x, n)

    def wave_(self, depth: int) -> Any:
        return lambda b, x, y, n: (b.sin(x + y), y, n)

    def count_(self, depth: int) -> Any:
        return lambda b, x, y, n: (x, y, b.remainder(n + 1, b.full((), 5, i32)))

    def total_(self, depth: int) -> Any:
        size = self.aval.size
        return lambda b, x, y, n: (x, b.broadcast_to(b.reduce_sum(y, axes=(0,)) * (1 / size), (size,)) + x, n)

    def sort_(self, depth: int) -> Any:
        return lambda b, x, y, n: (b.sort(x, axis=0), y, n)

    def cond_(self, depth: int) -> Any:
        branches = [self.function(depth) for _ in range(self.rng.randint(1, 4))]
        return lambda b, x, y, n: self.made.cond(b, n, [x, y, n], *branches)

    def scan_(self, depth: int) -> Any:
        inner, length = self.function(depth), self.rng.choice((0, 1, 2, 3, 4))
        reverse, size, extra = self.rng.random() < 0.5, self.aval.size, self.rng.random() < 0.5

        def body(b: Any, c: Any, x: Any, y: Any, n: Any, z: Any) -> list[Any]:
            x, y, n = b.call(inner, [x, y, n], self.state)
            return [x, y, n, x + z * c, z if extra else y]

        name = self.define([self.aval, *self.state, self.aval], body)

        def step(b: Any, x: Any, y: Any, n: Any) -> tuple[Any, ...]:
            rows = b.broadcast_to(b.reshape(b.cos(y), shape=(1, size)), (length, size))
            *_, last, k, ys, zs = self.made.scan(b, name, [y, x, y, n, rows], length, 1, 3, reverse)
            more = b.reduce_sum(ys, axes=(0,)) + b.reduce_sum(zs, axes=(0,)) * 0.5
            return b.sin(more), last, k

        return step

    def while_(self, depth: int) -> Any:
        inner = self.function(depth)
        trips = [COUNT, COUNT, *self.state]
        go = self.define(trips, lambda b, stop, i, *_: [b.less(i, stop)])
        body = self.define(
            trips, lambda b, stop, i, *state: [i + 1, *b.call(inner, state, self.state)]
        )

        def step(b: Any, x: Any, y: Any, n: Any) -> tuple[Any, ...]:
            return tuple(self.made.loop(b, go, body, [n, b.full((), 0, i32), x, y, n], 1)[1:])

        return step


    def main(self, steps: int = 3) -> None:
        """``@main`` runs steps and returns what each made."""
        inner = [self.step(2) for _ in range(steps)]

        def main(b: Any, x: Any, y: Any, n: Any) -> list[Any]:
            found = []
            for op in inner:
                x, y, n = op(b, x, y, n)
                found += [x, y, n]
            return found

        self.made.define("main", self.state, main)


@pytest.mark.parametrize("seed", range(16))
def test_random_nests(seed: int) -> None:
    nest = Nest(seed)
    nest.main()
    team = threads.PythonThreads() if seed % 3 == 2 else None
    x, y = random_array(nest.aval, seed), random_array(nest.aval, seed + 1)
    nest.made.check(*([x, y, np.array(n, np.int32)] for n in (0, 2, 4)), team=team, rtol=1e-6, atol=1e-8)
