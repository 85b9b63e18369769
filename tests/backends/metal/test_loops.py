"""Scans of elementwise ops as one kernel: values in race mode, and which loops stay loops."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import smelt
from smelt.backends.gpu.program import DeviceSegment
from smelt.backends.metal.check import check as strict
from smelt.backends.metal.simulator import Options
from smelt.ir import dtypes, text
from smelt.passes import Pipeline, remarks

from . import harness
from .test_contract import ORDERS, of

METAL = [d for d in dtypes.ALL if d.real is not dtypes.float64]


def right(function: Callable[..., Any], *shapes: Any, loops: int = 1, tolerance: float = 2e-5) -> Any:
    """So many kernels are loops; the text is strict Metal; values are right whatever the order of threads."""
    graph = harness.graph_of(function, *shapes)
    program = harness.program_of(graph)
    assert [k.schedule for k in program.kernels].count("loop") == loops
    operands = [harness.sample(a, seed=i) for i, a in enumerate(program.arguments)]
    wanted = harness.expected(graph, operands)
    for segment in program.segments:
        assert isinstance(segment, DeviceSegment) and not strict(segment.text)
    for options in (Options(order=order, poison=True, guard=True) for order in ORDERS):
        harness.close(harness.run(program, operands, options), wanted, program, tolerance)
    return program


def recurrence(c: Any, xs: Any, w: Any) -> Any:
    """Counters beside arrays, a constant that is read elsewhere than where a carry is, results of both kinds."""

    def step(carry: Any, x: Any) -> Any:
        h, i = carry
        h = smelt.tanh(h * w[::-1] + x + i * 0.25)
        return (h, i + 1), (h[None] * 2, i)

    return smelt.scan(step, (c, smelt.array(0, smelt.int32)), xs)


@pytest.mark.parametrize("length", [1, 2, 37])
@pytest.mark.parametrize("size", [1, 33, 300])
def test_sizes(length: int, size: int) -> None:
    shape = of(length, size)
    if size == 300:
        right(lambda c, xs, w: recurrence(c, xs, w)[0], of(size), shape, of(size))  # the ys are not wanted
    else:
        right(recurrence, of(size), shape, of(size))


def test_layouts() -> None:
    """Elements of the xs and constants are read where they lie: transposed, looked up, repeated."""

    def steps(c: Any, xs: Any, w: Any, at: Any) -> Any:
        return smelt.scan(lambda c, x: (c * 0.5 + x.T + w, smelt.where(c > x[0, 0], c, w[at])), c, xs)

    right(steps, of(6, 5), of(7, 5, 6), of(6, 5), of(6, dtype="int32"))
    right(lambda c, xs: smelt.scan(lambda c, x: (c + x, c), c, xs, reverse=True), of(3, 2, 5), of(4, 3, 2, 5))
    right(lambda c, xs: smelt.scan(lambda c, x: (c * 2 - x, None), c, xs)[0], of(9), of(6))


def test_what_each_step_needs_alike_is_computed_once() -> None:
    shapes = of(9), of(6, 9), of(9)
    program = right(lambda c, xs, w: smelt.scan(lambda c, x: (c * smelt.sigmoid(w) + x, c), c, xs), *shapes)
    text = program.as_text("msl")
    assert 0 < text.index("sigmoid_f32(w") < text.index("for (uint")


def test_carries_that_are_permuted_repeated_or_unchanged() -> None:
    def steps(a: Any, b: Any, c: Any, xs: Any) -> Any:
        return smelt.scan(lambda s, x: ((s[1], s[0], s[2], s[0]), (s[2], x)), (a, b, c, c), xs)

    right(steps, of(7), of(7), of(7), of(5, 7))


@pytest.mark.parametrize("dtype", METAL, ids=lambda d: d.name)
def test_every_dtype(dtype: Any) -> None:
    """Carries are rounded at each step, as those that lie in memory."""

    def step(c: Any, x: Any) -> Any:
        if dtype is dtypes.bool_:
            return c ^ x, c & x
        if dtype.kind in "iu":
            return c * 3 + x, c // 2 - x
        return c * smelt.array(0.7, dtype) + x, c - x * smelt.array(0.3, dtype)

    x = of(9, 40, dtype=str(dtype.name) if dtype is not dtypes.bool_ else "bool_")
    c = of(40, dtype=str(dtype.name) if dtype is not dtypes.bool_ else "bool_")
    right(lambda c, xs: smelt.scan(step, c, xs), c, x, tolerance=2e-2 if dtype.size == 2 else 2e-5)


def test_what_is_not_finite() -> None:
    graph = harness.graph_of(lambda c, xs: smelt.scan(lambda c, x: (c * x, c + x), c, xs), of(8), of(6, 8))
    program = harness.program_of(graph)
    c, xs = (harness.sample(a, seed=i) for i, a in enumerate(program.arguments))
    xs[2, :4], c[4], c[5], xs[3, 5] = [np.nan, np.inf, -np.inf, -0.0], -0.0, np.inf, 0.0
    with np.errstate(invalid="ignore"):
        for found, wanted in zip(harness.run(program, [c, xs]), harness.expected(graph, [c, xs])):
            np.testing.assert_array_equal(found, wanted)
            np.testing.assert_array_equal(np.signbit(found[found == 0]), np.signbit(wanted[wanted == 0]))


def test_inside_of_other_loops() -> None:
    def outer(c: Any, xs: Any) -> Any:
        def step(c: Any, x: Any) -> Any:
            c, y = smelt.scan(lambda c, x: (c * 0.5 + x, c), c, x)
            return c + c.sum(), y

        return smelt.scan(step, c, xs)

    program = harness.program_of(harness.graph_of(outer, of(5), of(3, 4, 5)))
    assert "loop" in [k.schedule for k in program.kernels]
    shapes = of(5), of(3, 4, 5)
    right(lambda c, xs: smelt.cond(c.sum() > 0, lambda: outer(c, xs), lambda: outer(-c, xs)), *shapes, loops=2)


def test_several_loops() -> None:
    """Equal bodies are one function; a loop without steps is none."""

    def several(c: Any, xs: Any) -> Any:
        step = lambda c, x: (c * 0.5 + x, c)  # noqa: E731
        first, ys = smelt.scan(step, c, xs)
        return smelt.scan(step, first, ys[::-1]), smelt.scan(step, c, xs[:0]), smelt.scan(step, c[:0], xs[:, :0])

    right(several, of(6), of(5, 6), loops=2)


STAY: dict[str, Callable[..., Any]] = {
    "sum": lambda c, x: (c + x.sum(), c),
    "product": lambda c, x: (smelt.tanh(c @ smelt.ones((6, 6)) + x), c),
    "moved carry": lambda c, x: (c[::-1] + x, c),
    "moved result": lambda c, x: (c + x, c[::-1]),
    "repeated carry": lambda c, x: (c + x, smelt.broadcast_to(c[:1], (6,))),
    "shapes": lambda c, x: (c + x, smelt.concatenate([c, x])),
    "sort": lambda c, x: (c + smelt.sort(x), c),
}


@pytest.mark.parametrize("name", STAY)
def test_loops_that_stay(name: str) -> None:
    def function(c: Any, xs: Any) -> Any:
        return smelt.scan(STAY[name], c, xs)

    module = text.parse(harness.graph_of(function, of(6), of(4, 6)))
    with remarks.collected() as found:
        Pipeline.parse(harness.metal.PIPELINE).run(module)
    (said,) = (r for r in found if r.pass_name == "loops")
    assert said.kind == "missed" and said.text.startswith("a scan of 4 steps is no kernel: ")
    right(function, of(6), of(4, 6), loops=0)


def test_long_loops_stay() -> None:
    graph = harness.graph_of(lambda c: smelt.fori_loop(0, 10**8, lambda i, c: c * 0.5, c), of(4))
    assert "loop" not in [k.schedule for k in harness.program_of(graph).kernels]


def test_gradients() -> None:
    """Loops forwards and backwards."""

    def loss(c: Any, xs: Any) -> Any:
        last, ys = smelt.scan(lambda c, x: (smelt.sin(c) * x + c, c * x), c, xs)
        return last.sum() + (ys * ys).sum()

    right(smelt.grad(loss, argnums=(0, 1)), of(6), of(5, 6), loops=2)
    right(smelt.vmap(lambda c, xs: smelt.scan(lambda c, x: (c * 0.5 + x, c), c, xs), in_axes=(0, 1)), of(3), of(5, 3))
