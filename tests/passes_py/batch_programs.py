"""Programs of nested control flow, made by hand or at random, and their batches against a loop."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import smelt.ir.ops  # noqa: F401  (fills the registry)
from smelt.ir import dtypes, mlir, text
from smelt.ir.aval import Aval
from smelt.ir.builder import Builder, functions, new_function, read_function
from smelt.ir.control import COND, SCAN, WHILE
from smelt.ir.dialect import context
from smelt.ir.interpreter import Interpreter
from smelt.ir.op import registry
from smelt.passes import Pipeline

EXPAND = "fixpoint(inline,batch,jvp,linearize,transpose)"
I, B = Aval((), dtypes.int32), Aval((), dtypes.bool_)
S, V = Aval((), dtypes.float64), Aval((3,), dtypes.float64)

Steps = Sequence[tuple[str, dict[str, Any]]]


class Program:
    """A module written function by function."""

    def __init__(self):
        self.module = mlir.ir.Module.create(mlir.ir.Location.unknown(context()))
        self._last: tuple[str, str, Any] | None = None

    def alone(self, steps: Steps) -> Any:
        """`under`, found again when the last call was for the same."""
        key = text.to_text(self.module), repr(steps)
        if self._last is None or self._last[:2] != key:
            self._last = (*key, self.under(steps))
        return self._last[2]

    def define(self, name: str, arguments: Sequence[Aval], results: Sequence[Aval], body: Callable) -> str:
        _, values, b = new_function(self.module, name, list(arguments), list(results))
        b.return_(body(b, *values))
        return name

    def under(self, steps: Steps, verify: bool = True) -> Any:
        """A module whose @main is @f under transformations, innermost first; expanded."""
        module = text.parse(text.to_text(self.module))
        f = read_function(functions(module)["f"])
        signature = [a.aval for a in f.arguments], [r.aval for r in f.returns]
        outer = signature
        for name, attrs in steps:
            outer = registry[name].signature(*outer, **attrs)  # type: ignore[attr-defined]
        _, values, b = new_function(module, "main", *outer, public=True)
        value = b.function("f", *signature)
        for name, attrs in steps:
            value = b.transform(registry[name], value, attrs)
        b.return_(b.apply(value, values))
        Pipeline.parse(EXPAND).run(module)
        if verify:
            module.operation.verify()
            assert text.to_text(text.parse(text.to_text(module))) == text.to_text(module)
        return module


class Bounded(Interpreter):
    """An interpreter that gives up on loops that do not end."""

    calls = 0

    def __call__(self, name, arguments):
        self.calls += 1
        assert self.calls < 20_000, "the program does not terminate"
        return super().__call__(name, arguments)


def batch(size: int, in_axes: Sequence[int], out_axes: Sequence[int]) -> tuple[str, dict[str, Any]]:
    return "batch", {"size": size, "in_axes": tuple(in_axes), "out_axes": tuple(out_axes)}


def at(x: np.ndarray, axis: int, i: int) -> np.ndarray:
    return x if axis < 0 else np.asarray(np.take(x, i, axis))


def check(p: Program, arrays: Sequence[np.ndarray], in_axes, outs: int, out_axis: int = 0, steps: Steps = ()) -> Any:
    """@f, after `steps`, batched over `in_axes` of the arrays, against a loop. The batched module."""
    (size,) = {x.shape[a] for x, a in zip(arrays, in_axes) if a >= 0}
    out_axes = (out_axis,) * outs
    module = p.under([*steps, batch(size, in_axes, out_axes)])
    found = Bounded(module)("main", arrays)
    one = Bounded(p.alone(steps))
    rows = [one("main", [at(x, a, i) for x, a in zip(arrays, in_axes)]) for i in range(size)]
    for j, result in enumerate(found):
        want = np.stack([row[j] for row in rows], out_axis) if rows else result
        np.testing.assert_allclose(result, want, rtol=1e-12, atol=1e-12)
    return module


def over(
    p: Program, slices: Sequence[Callable[[int], np.ndarray]], outs: int, size: int = 3, out_axis: int = 0
) -> None:
    """Every choice of which arguments are batched, along the first axis and along the last."""
    for chosen in itertools.product((-1, 0, 1), repeat=len(slices)):
        if all(c < 0 for c in chosen):
            continue
        arrays, axes = [], []
        for make, c in zip(slices, chosen):
            rows = [make(i) for i in range(size if c >= 0 else 1)]
            axis = -1 if c < 0 else 0 if c == 0 else rows[0].ndim
            arrays.append(rows[0] if c < 0 else np.stack(rows, axis))
            axes.append(axis)
        check(p, arrays, axes, outs, out_axis)


def names_of(module: Any, name: str = "main") -> list[str]:
    return [op.op.name for op in read_function(functions(module)[name]).ops]


class Nest:
    """A random program of nested control flow. All its functions map (i32, f64[3], f64) to the same."""

    STATE = (I, V, S)

    def __init__(self, seed: int, depth: int = 3):
        self.r, self.p, self.count = random.Random(seed), Program(), 0
        top = self.function(depth)
        self.p.define("f", self.STATE, self.STATE, lambda b, *a: b.call(top, a, self.STATE))

    def fresh(self, stem: str) -> str:
        self.count += 1
        return f"{stem}{self.count}"

    def function(self, depth: int) -> str:
        kinds = [self.cond, self.switch, self.loop, self.scan] if depth else [self.plain]
        parts = [self.r.choice(kinds)(depth) for _ in range(self.r.randint(1, 2))]
        parts.append(self.plain(0))

        def body(b: Builder, *state):
            for part in parts:
                state = part(b, *state)
            return state

        return self.p.define(self.fresh("g"), self.STATE, self.STATE, body)

    def plain(self, depth: int) -> Callable:
        choice = self.r.randrange(5)

        def part(b: Builder, i, v, s):
            if choice == 0:
                i = b.remainder(i * 3 + 1, b.full((), 7, dtypes.int32))
            if choice == 1:
                v = b.tanh(v + b.broadcast_to(s, (3,)))
            if choice == 2:
                s = b.sin(b.reduce_sum(v, axes=(0,)) + s)
            if choice == 3:
                v = b.reverse(v, axes=(0,)) * 0.9 + b.broadcast_to(b.convert(i, dtype=dtypes.float64), (3,)) * 0.1
            if choice == 4:
                s = b.convert(i, dtype=dtypes.float64) * 0.3 + b.cos(s)
            return i, v, s

        return part

    def cond(self, depth: int) -> Callable:
        names = tuple(self.function(depth - 1) for _ in range(2))
        on_i = self.r.random() < 0.5

        def part(b: Builder, i, v, s):
            index = b.less(i, b.full((), 3, dtypes.int32)) if on_i else b.less(s, b.zeros(S))
            return b.control(COND, [index, i, v, s], {"branches": names}, self.STATE)

        return part

    def switch(self, depth: int) -> Callable:
        names = tuple(self.function(depth - 1) for _ in range(3))
        return lambda b, i, v, s: b.control(COND, [i, i, v, s], {"branches": names}, self.STATE)

    def loop(self, depth: int) -> Callable:
        child, fixed = self.function(depth - 1), self.r.random() < 0.5
        go, step = self.fresh("go"), self.fresh("step")
        inside = [I, I, *self.STATE]
        self.p.define(go, inside, [B], lambda b, limit, n, *state: [b.less(n, limit)])
        self.p.define(step, inside, inside[1:], lambda b, limit, n, *state: [n + 1, *b.call(child, state, self.STATE)])
        attrs = {"cond": go, "body": step, "constants": 1}

        def part(b: Builder, i, v, s):
            limit = b.full((), 2, dtypes.int32) if fixed else b.remainder(i, b.full((), 4, dtypes.int32))
            return b.control(WHILE, [limit, b.zeros(I), i, v, s], attrs, inside[1:])[1:]

        return part

    def scan(self, depth: int) -> Callable:
        child, body, reverse = self.function(depth - 1), self.fresh("body"), self.r.random() < 0.5
        constant = self.r.random() < 0.5  # s is a constant or carried

        def step(b: Builder, first, second, v, x):
            i, s = (second, first) if constant else (first, second)
            i, new, t = b.call(child, [i, v + x, s], self.STATE)
            state = [i, new] if constant else [i, t, new]
            return [*state, b.reduce_sum(new, axes=(0,)) * t]

        order = [S, I, V, V] if constant else [I, S, V, V]
        carries = [I, V] if constant else [I, S, V]
        self.p.define(body, order, [*carries, S], step)
        attrs = {
            "body": body, "constants": int(constant), "carries": len(carries), "length": 2, "reverse": reverse,
        }  # fmt: skip

        def part(b: Builder, i, v, s):
            xs = b.broadcast_to(v, (2, 3)) * 0.5
            operands = [s, i, v, xs] if constant else [i, s, v, xs]
            out = b.control(SCAN, operands, attrs, [*carries, Aval((2,), dtypes.float64)])
            total = b.sin(b.reduce_sum(out[-1], axes=(0,)))
            return (out[0], out[1], total) if constant else (out[0], out[2], out[1] + total)

        return part


def state(rng: np.random.Generator, shape: tuple[int, ...], axes: Sequence[bool]) -> list[np.ndarray]:
    """Random arguments of a Nest, batched in front by `shape` where `axes` says so."""
    lead = [shape if a else () for a in axes]
    return [
        np.asarray(rng.integers(-1, 6, lead[0]), np.int32),
        rng.uniform(-1, 1, (*lead[1], 3)),
        np.asarray(rng.uniform(-1, 1, lead[2])),
    ]
