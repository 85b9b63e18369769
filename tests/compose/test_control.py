"""Random programs with branches and loops give what the same steps in Python give, however they are transformed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

import smelt
from smelt.ir.settings import override

from ..examples import examples
from .test_programs import _close, common

#: Functions of a vector and another, smooth and tame.
LEAVES: dict[str, Callable] = {
    "tanh": lambda v, w: smelt.tanh(v * w),
    "sin": lambda v, w: smelt.sin(v) + 0.3 * w,
    "mix": lambda v, w: 0.5 * v - 0.25 * w * w,
    "dot": lambda v, w: v * smelt.tanh((v * w).sum()),
    "shift": lambda v, w: smelt.concatenate([v[1:], w[:1]]) * 0.7,
    "cumsum": lambda v, w: smelt.cumsum(v * 0.3) + w * 0.1,
}


@dataclass
class Block:
    """A function (v, w) → v made of leaves and control flow.

    `kind`: a name of LEAVES, or seq, cond, switch, fori, scan, while, map. `blocks`: the parts.
    """

    kind: str
    blocks: list[Block] = field(default_factory=list)
    size: int = 0

    def run(self, v: Any, w: Any, flow: Any) -> Any:
        if self.kind in LEAVES:
            return LEAVES[self.kind](v, w)
        parts = [lambda v, w, b=b: b.run(v, w, flow) for b in self.blocks]
        if self.kind == "seq":
            for part in parts:
                v = part(v, w)
            return v
        return getattr(flow, self.kind)(parts, self.size, v, w)

    @property
    def kinds(self) -> set[str]:
        return {self.kind}.union(*(b.kinds for b in self.blocks))


class Structured:
    """Control flow by smelt's functions."""

    @staticmethod
    def cond(parts, size, v, w):
        return smelt.cond(v.sum() > 0.1 * size, lambda v: parts[0](v, w), lambda v: parts[1](v, w), v)

    @staticmethod
    def switch(parts, size, v, w):
        index = (w[0] * 3).astype(smelt.int32) + 1
        return smelt.switch(index, parts, v, w)

    @staticmethod
    def fori(parts, size, v, w):
        return smelt.fori_loop(0, size, lambda i, v: parts[0](v, w + 0.125 * i), v)

    @staticmethod
    def scan(parts, size, v, w):
        xs = smelt.stack([w * (0.5 + i) for i in range(size)]) if size else smelt.zeros((0, w.size), dtype=w.dtype)
        options = {"reverse": size % 2 == 1, "checkpoint": size > 2}
        v, ys = smelt.scan(lambda v, x: (parts[0](v, x), (v * x).sum()), v, xs, **options)
        return v + ys.sum() * 0.1

    @staticmethod
    def map(parts, size, v, w):
        return smelt.map(lambda x: parts[0](v * x, w), w).mean(axis=0)

    @staticmethod
    def loop(parts, size, v, w):
        start = (v, smelt.array(0, smelt.int32))
        body = lambda c: (parts[0](c[0], w), c[1] + 1)  # noqa: E731
        return smelt.while_loop(lambda c: (c[1] < size) & (c[0][0] < 0.8), body, start)[0]


class Unrolled:
    """The same by Python, on values that are there."""

    @staticmethod
    def cond(parts, size, v, w):
        return parts[0](v, w) if v.sum() > 0.1 * size else parts[1](v, w)

    @staticmethod
    def switch(parts, size, v, w):
        return parts[min(max(int((w[0] * 3).item()) + 1, 0), len(parts) - 1)](v, w)

    @staticmethod
    def fori(parts, size, v, w):
        for i in range(size):
            v = parts[0](v, w + 0.125 * i)
        return v

    @staticmethod
    def scan(parts, size, v, w):
        total = 0.0
        for i in reversed(range(size)) if size % 2 else range(size):
            x = w * (0.5 + i)
            v, total = parts[0](v, x), total + (v * x).sum()
        return v + total * 0.1

    @staticmethod
    def map(parts, size, v, w):
        return smelt.stack([parts[0](v * w[i], w) for i in range(w.size)]).mean(axis=0)

    @staticmethod
    def loop(parts, size, v, w):
        n = 0
        while n < size and (v[0] < 0.8).item():
            v, n = parts[0](v, w), n + 1
        return v


def blocks(loops: bool = True) -> Any:
    """Blocks up to three levels deep; without `loops`, none whose number of steps is unknown."""
    leaf = st.sampled_from(sorted(LEAVES)).map(Block)

    def grow(inner: Any) -> Any:
        size = st.integers(0, 4)
        kinds = ["fori", "scan", "map"] + ["loop"] * loops
        return st.one_of(
            st.builds(lambda b: Block("seq", b), st.lists(inner, min_size=1, max_size=3)),
            st.builds(lambda a, b, n: Block("cond", [a, b], n), inner, inner, size),
            st.builds(lambda b: Block("switch", b), st.lists(inner, min_size=2, max_size=3)),
            st.builds(lambda kind, b, n: Block(kind, [b], n), st.sampled_from(kinds), inner, size),
        )

    return grow(grow(leaf) | leaf)


def _arguments(seed: int) -> list:
    rng = np.random.default_rng(seed)
    return [smelt.array(rng.uniform(-1, 1, 3), smelt.float64) for _ in range(2)]


@settings(max_examples=examples(24), **common)
@given(blocks(), st.integers(0, 5))
def test_values_agree_with_python(block, seed):
    v, w = _arguments(seed)
    want = block.run(v, w, Unrolled)
    f = lambda v, w: block.run(v, w, Structured)  # noqa: E731
    _close(f(v, w), want, str(block))
    _close(smelt.compile(f)(v, w), want, f"{block}\ncompiled")
    with override(device="reference"):
        _close(smelt.compile(f)(v, w), want, f"{block}\nreference")


@settings(max_examples=examples(15), **common)
@given(blocks(loops=False), st.integers(0, 5))
def test_gradients_agree_with_python(block, seed):
    v, w = _arguments(seed)
    weights = smelt.array([1.0, -2.0, 0.5], smelt.float64)
    loss = lambda flow: lambda v, w: (block.run(v, w, flow) * weights).sum()  # noqa: E731
    want = smelt.grad(loss(Unrolled), argnums=(0, 1))(v, w)
    found = smelt.grad(loss(Structured), argnums=(0, 1))(v, w)
    compiled = smelt.compile(smelt.grad(loss(Structured), argnums=(0, 1)))(v, w)
    with override(device="reference"):
        reference = smelt.compile(smelt.grad(loss(Structured), argnums=(0, 1)))(v, w)
    for a, b, c, d in zip(found, compiled, reference, want):
        _close(a, d, f"{block}\ngradient", 1e-8)
        _close(b, d, f"{block}\ncompiled gradient", 1e-8)
        _close(c, d, f"{block}\nreference gradient", 1e-8)


@settings(max_examples=examples(8), **common)
@given(blocks(), st.integers(0, 5))
def test_tangents_agree_with_python(block, seed):
    v, w = _arguments(seed)
    tangents = _arguments(seed + 100)
    run = lambda flow: lambda v, w: block.run(v, w, flow)  # noqa: E731
    want = smelt.jvp(run(Unrolled), [v, w], tangents)[1][0]
    _close(smelt.jvp(run(Structured), [v, w], tangents)[1][0], want, str(block), 1e-8)


@settings(max_examples=examples(9), **common)
@given(blocks(), st.integers(0, 5), st.sampled_from([(0, 0), (0, None), (None, 0)]))
def test_batches_agree_with_a_loop(block, seed, axes):
    rows = [_arguments(seed + 10 * i) for i in range(3)]
    rows = [[rows[0][k] if a is None else row[k] for k, a in enumerate(axes)] for row in rows]
    given = [rows[0][k] if a is None else smelt.stack([row[k] for row in rows]) for k, a in enumerate(axes)]
    want = smelt.stack([block.run(*row, Unrolled) for row in rows])
    f = smelt.vmap(lambda v, w: block.run(v, w, Structured), in_axes=axes)
    _close(f(*given), want, str(block))
    _close(smelt.compile(f)(*given), want, f"{block}\ncompiled")


@settings(max_examples=examples(8), **common)
@given(blocks(loops=False), st.integers(0, 3))
def test_batches_of_gradients_and_second_derivatives(block, seed):
    rows = [_arguments(seed + 10 * i) for i in range(2)]
    given = [smelt.stack(column) for column in zip(*rows)]
    loss = lambda flow: lambda v, w: (block.run(v, w, flow) ** 2).sum()  # noqa: E731
    found = smelt.compile(smelt.vmap(smelt.grad(loss(Structured), argnums=(0, 1))))(*given)
    want = [smelt.grad(loss(Unrolled), argnums=(0, 1))(*row) for row in rows]
    for a, column in zip(found, zip(*want)):
        _close(a, smelt.stack(column), f"{block}\nvmap of grad", 1e-8)
    v, w = rows[0]
    second = lambda flow: lambda v: (smelt.grad(loss(flow))(v, w) ** 2).sum()  # noqa: E731
    _close(smelt.grad(second(Structured))(v), smelt.grad(second(Unrolled))(v), f"{block}\nsecond", 1e-7)
