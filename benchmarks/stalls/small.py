"""What an op and a call cost, and what a compile does."""

from __future__ import annotations

import contextlib
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import numpy as np

from .models import gelu, generator, layer_norm
from .program import Run, program

OPS, CALLS = 1000, 300


def _ten(mx: Any) -> Any:
    return mx.array(generator().standard_normal(10).astype(np.float32))


def _chain(x: Any) -> Any:
    for _ in range(OPS // 2):
        x = x * 0.5
        x = x + 1.0
    return x


@program("op-recorded", 20, of="1000 ops", count=20 * OPS, unit="µs", absent={"torch": "eager", "jax": "eager"},
         tolerance=None)  # fmt: skip
def op_recorded(mx: Any, run: Run) -> Iterator[Any]:
    """one lazy op on 10 elements: recorded"""
    x = _ten(mx)
    for _ in range(run.steps):
        _chain(x)
        yield None


@program("op-evaluated", 20, of="1000 ops", count=20 * OPS, unit="µs")
def op_evaluated(mx: Any, run: Run) -> Iterator[Any]:
    """one lazy op on 10 elements: recorded and evaluated, 1000 in one eval"""
    x = _ten(mx)
    for _ in range(run.steps):
        y = _chain(x)
        mx.eval(y)
        yield y[0]


@program("op-at-once", 20, of="1000 ops", count=20 * OPS, unit="µs")
def op_at_once(mx: Any, run: Run) -> Iterator[Any]:
    """one lazy op on 10 elements: recorded and evaluated, each for itself"""
    x = _ten(mx)
    for _ in range(run.steps):
        y = x
        for _ in range(OPS // 2):
            y = y * 0.5
            mx.eval(y)
            y = y + 1.0
            mx.eval(y)
        yield y[0]


EAGER = {"torch": "eager"}


@program("call", 20, of="1000 calls", count=20_000, unit="µs", absent=EAGER)
def call(mx: Any, run: Run) -> Iterator[Any]:
    """call of a small compiled function (GELU, 10 elements), evaluated"""
    x = _ten(mx)
    f = mx.compile(lambda x: gelu(mx, x))
    for _ in range(run.steps):
        for _ in range(1000):
            y = f(x)
            mx.eval(y)
        yield y[0]


@program("first-call", 1, of="call", unit="ms", absent=EAGER)
def first_call(mx: Any, run: Run) -> Iterator[Any]:
    """first compiled call after the import (GELU, 1000×100); warm: the same once more, compiled anew"""
    x = mx.array(generator().standard_normal((1000, 100)).astype(np.float32))
    y = mx.compile(lambda x: gelu(mx, x) / (2 + run.again))(x)
    mx.eval(y)
    yield y[0, 0] * (2 + run.again)


def _program(mx: Any, x: Any) -> Any:
    for _ in range(4):
        x = gelu(mx, layer_norm(mx, x, 1.0)) + x
    return x


def _calls(mx: Any, run: Run) -> Iterator[Any]:
    x = mx.array(generator().standard_normal((400, 250)).astype(np.float32))
    f = mx.compile(lambda x: _program(mx, x))
    for _ in range(run.steps):
        y = f(x)
        mx.eval(y)
        yield y[0, 0]


@program("calls-quiet", CALLS, of="call", count=CALLS, unit="ms", absent=EAGER)
def calls_quiet(mx: Any, run: Run) -> Iterator[Any]:
    """compiled small program (four layer norms and GELUs, 400×250), 300 calls"""
    yield from _calls(mx, run)


@program("calls-busy", CALLS, of="call", count=CALLS, unit="ms", absent=EAGER, starts_others=True)
def calls_busy(mx: Any, run: Run) -> Iterator[Any]:
    """the same while another process uses a core"""
    other = subprocess.Popen([sys.executable, "-c", "while True: pass"])
    try:
        yield from _calls(mx, run)
    finally:
        other.kill()
        other.wait()


@contextlib.contextmanager
def _deeper_stack() -> Iterator[None]:
    """Frameworks that recurse over a graph need more of the stack than a default allows."""
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(100_000)
    try:
        yield
    finally:
        sys.setrecursionlimit(limit)


def _random_graph(mx: Any, run: Run, ops: int) -> Iterator[Any]:
    """A function of random small ops, each on results of others; another one in a second run."""
    rng = np.random.default_rng(run.again)
    choices = rng.integers(0, 6, ops)
    places = rng.random((ops, 2))
    x = mx.array(generator().standard_normal((64, 64)).astype(np.float32))
    changes = (
        lambda y, z: (y + z) * 0.5,
        lambda y, z: y * z,
        lambda y, z: mx.sin(y),
        lambda y, z: mx.tanh(y - z),
        lambda y, z: y - mx.mean(z, axis=1, keepdims=True),
        mx.maximum,
    )

    def function(x: Any) -> Any:
        values = [x, mx.sin(x)]
        for choice, (a, b) in zip(choices, places):
            near = values[-24:]
            y, z = near[int(a * len(near))], near[int(b * len(near))]
            values.append(changes[choice](y, z))
        return sum(values[-8:])

    with _deeper_stack():
        for _ in range(run.steps):
            y = mx.compile(function)(x)
            mx.eval(y)
            yield mx.mean(mx.abs(y))


@program("graph-1000", 1, of="compile", absent=EAGER)
def graph_1000(mx: Any, run: Run) -> Iterator[Any]:
    """compile and first call of a random graph of 1,000 ops; warm: of another one"""
    yield from _random_graph(mx, run, 1000)


@program("graph-4000", 1, of="compile", absent=EAGER)
def graph_4000(mx: Any, run: Run) -> Iterator[Any]:
    """compile and first call of a random graph of 4,000 ops; warm: of another one"""
    yield from _random_graph(mx, run, 4000)
