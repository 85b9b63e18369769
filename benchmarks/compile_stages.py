"""Where the time of a compile goes: ``python -m benchmarks.compile_stages [program …]``.

Prints, for each program, the processor's seconds of every stage: recording, building the module, each pass, the
kernels, their lowering to the LLVM dialect, and LLVM itself. Seconds of this process alone, so that what else the
machine does hardly shows; the least of several compiles.
"""

from __future__ import annotations

import argparse
import gc
import math
import random
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import pairwise
from typing import Any
from unittest import mock

import numpy as np

import smelt
from smelt.backends.cpu import CPU
from smelt.ir.settings import override
from smelt.runtime import compile as runtime

#: What is asked for when no program is named.
USUAL = "gelu softmax mlp-step attention transformer-step ops-250 ops-1000"
#: Stages in the order of the table; passes stand where they run.
BEFORE, AFTER = ("record", "build"), ("kernels", "lower", "llvm")
Made = tuple[Callable[..., Any], Sequence[np.ndarray]]


def _normal(*shape: int) -> np.ndarray:
    return np.random.default_rng(0).standard_normal(shape, np.float32)


def gelu() -> Made:
    """GELU of a matrix: one kernel."""
    return lambda x: x * (1 + smelt.erf(x * math.sqrt(0.5))) / 2, [_normal(1000, 100)]


def exp(*shape: int) -> Made:
    """Exponentials of an array, of 3×4 elements if no shape is given."""
    return smelt.exp, [_normal(*(shape or (3, 4)))]


def lgamma(*shape: int) -> Made:
    """Logarithms of Γ of an array, of 3×4 elements if no shape is given."""
    return smelt.lgamma, [_normal(*(shape or (3, 4)))]


def softmax(rows: int = 256, columns: int = 100) -> Made:
    """Softmax of rows from primitives: one kernel."""

    def f(x: Any) -> Any:
        e = smelt.exp(x - smelt.max(x, axis=-1, keepdims=True))
        return e / smelt.sum(e, axis=-1, keepdims=True)

    return f, [_normal(rows, columns)]


def attention(batch: int = 4, heads: int = 4, length: int = 48, width: int = 32) -> Made:
    """Attention from primitives."""

    def f(q: Any, k: Any, v: Any) -> Any:
        scores = (q @ k.transpose(0, 1, 3, 2)) * width**-0.5
        return smelt.softmax(scores, axis=-1) @ v

    return f, [_normal(batch, heads, length, width)] * 3


def _adam(loss: Callable[..., Any], count: int) -> Callable[..., Any]:
    """One step of Adam on the first `count` arguments; then come means and squares of each, and the loss's rest."""

    def step(*arrays: Any) -> Any:
        weights, means, squares = (list(arrays[i * count : (i + 1) * count]) for i in range(3))
        value, gradients = smelt.value_and_grad(lambda w: loss(w, *arrays[3 * count :]))(weights)
        found = [value]
        for w, m, s, g in zip(weights, means, squares, gradients):
            m, s = 0.9 * m + 0.1 * g, 0.999 * s + 0.001 * g * g
            found += [w - 1e-3 * m / (smelt.sqrt(s) + 1e-8), m, s]
        return found

    return step


def _cross_entropy(scores: Any, labels: Any) -> Any:
    chosen = smelt.take_along_axis(scores, labels[..., None], axis=-1)[..., 0]
    return smelt.mean(smelt.logsumexp(scores, axis=-1) - chosen)


def mlp_step() -> Made:
    """A training step (Adam) of a perceptron with two hidden layers of 128."""
    sizes = (64, 128, 128, 10)
    weights = [a for n, m in pairwise(sizes) for a in (_normal(n, m), _normal(m))]

    def loss(w: Any, x: Any, labels: Any) -> Any:
        for i in range(0, len(w) - 2, 2):
            x = smelt.maximum(x @ w[i] + w[i + 1], 0)
        return _cross_entropy(x @ w[-2] + w[-1], labels)

    rest = [_normal(64, 64), np.zeros(64, np.int32)]
    return _adam(loss, len(weights)), [*weights, *weights, *weights, *rest]


def transformer_step(layers: int = 2, width: int = 128, heads: int = 4, length: int = 32, batch: int = 8) -> Made:
    """A training step (Adam) of a transformer: layers of 128, four heads, a vocabulary of 256."""
    vocabulary = 256
    shapes: list[tuple[int, ...]] = [(vocabulary, width), (length, width)]
    for _ in range(layers):
        shapes += [(width,), (width,), (width, 3 * width), (width, width)]
        shapes += [(width,), (width,), (width, 4 * width), (4 * width,), (4 * width, width), (width,)]
    weights = [_normal(*shape) * np.float32(0.02) for shape in shapes]

    def norm(x: Any, scale: Any, shift: Any) -> Any:
        centered = x - smelt.mean(x, axis=-1, keepdims=True)
        variance = smelt.mean(centered * centered, axis=-1, keepdims=True)
        return centered * smelt.rsqrt(variance + 1e-5) * scale + shift

    def attend(x: Any, project: Any, out: Any) -> Any:
        shape = (batch, length, heads, width // heads)
        q, k, v = (smelt.transpose(y.reshape(shape), (0, 2, 1, 3)) for y in smelt.split(x @ project, 3, axis=-1))
        scores = (q @ smelt.transpose(k, (0, 1, 3, 2))) * (width // heads) ** -0.5
        mask = smelt.arange(length)[:, None] < smelt.arange(length)[None, :]
        mixed = smelt.softmax(smelt.where(mask, -1e9, scores), axis=-1) @ v
        return smelt.transpose(mixed, (0, 2, 1, 3)).reshape(batch, length, width) @ out

    def loss(w: Any, tokens: Any, labels: Any) -> Any:
        x = w[0][tokens] + w[1]
        for at in range(2, len(w), 10):
            scale, shift, project, out, scale2, shift2, up, bias, down, bias2 = w[at : at + 10]
            x = x + attend(norm(x, scale, shift), project, out)
            hidden = norm(x, scale2, shift2) @ up + bias
            x = x + (hidden * smelt.sigmoid(1.702 * hidden)) @ down + bias2
        return _cross_entropy(x @ w[0].T, labels)

    tokens = np.arange(batch * length, dtype=np.int32).reshape(batch, length) % vocabulary
    return _adam(loss, len(weights)), [*weights, *weights, *weights, tokens, tokens]


def ops(count: int, size: int = 8) -> Made:
    """A random graph of small ops: arithmetic, reductions, broadcasts, transposes and products of 8×8 matrices."""

    def f(*arrays: Any) -> Any:
        choose = random.Random(count)
        values = list(arrays)
        unary = (smelt.tanh, smelt.sin, smelt.abs, smelt.negative, smelt.square)
        binary = (smelt.add, smelt.subtract, smelt.multiply, smelt.maximum)
        unread = dict.fromkeys(range(len(values)))
        while len(values) < count:
            recent = list(unread)[:20] if choose.random() < 0.5 else range(max(0, len(values) - 50), len(values))
            i, j = choose.choice(recent), choose.randrange(max(0, len(values) - 50), len(values))
            x, y, kind = values[i], values[j], choose.random()
            if kind < 0.35:
                made = choose.choice(unary)(x)
            elif kind < 0.8:
                made = choose.choice(binary)(x, y)
                unread.pop(j, None)
            elif kind < 0.87:
                made = smelt.broadcast_to(smelt.mean(x, axis=choose.randrange(2), keepdims=True), (size, size))
            elif kind < 0.92:
                made = smelt.softmax(x, axis=-1)
            elif kind < 0.97:
                made = smelt.transpose(x)
            else:
                made = smelt.tanh(x @ y)
                unread.pop(j, None)
            unread.pop(i, None)
            unread[len(values)] = None
            values.append(made)
        return [values[i] for i in unread]

    return f, [_normal(size, size) * np.float32(0.1 * i + 0.1) for i in range(4)]


def elementwise(count: int, outputs: int = 8) -> Made:
    """Arithmetic on vectors of ten elements, with several results."""

    def f(*arrays: Any) -> Any:
        choose, values = random.Random(count), list(arrays)
        while len(values) < count:
            x, y = (values[choose.randrange(max(0, len(values) - 30), len(values))] for _ in range(2))
            values.append(choose.choice((smelt.add, smelt.subtract, smelt.multiply, smelt.maximum))(x, y))
        return values[-outputs:]

    return f, [_normal(10)] * 4


def outputs(count: int) -> Made:
    """As many results, each of two ops on one array."""
    return lambda x: [smelt.sin(x * float(i)) for i in range(count)], [_normal(10)]


PROGRAMS: dict[str, Callable[..., Made]] = {
    "gelu": gelu, "exp": exp, "lgamma": lgamma, "softmax": softmax, "attention": attention, "mlp-step": mlp_step,
    "transformer-step": transformer_step, "ops": ops, "elementwise": elementwise, "outputs": outputs,
}  # fmt: skip


def program(name: str) -> Made:
    """A program by its name; numbers behind it are its arguments, as in ``ops-1000``."""
    found = next((p for p in sorted(PROGRAMS, key=len, reverse=True) if name == p or name.startswith(p + "-")), None)
    numbers = name[len(found or "") :].split("-")[1:]
    if found is None or not all(n.isdigit() for n in numbers):
        raise SystemExit(f"there is no program {name!r}; there are {', '.join(PROGRAMS)}, with sizes behind: ops-1000")
    return PROGRAMS[found](*map(int, numbers))


class Clock:
    """Adds up the processor's seconds by stage; a stage within another does not count for that."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self._open: list[float] = []  #: what inner stages of each open one took

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        self._open.append(0.0)
        start = time.process_time()
        try:
            yield
        finally:
            took = time.process_time() - start
            inner = self._open.pop()
            if self._open:
                self._open[-1] += took
            self.seconds[name] = self.seconds.get(name, 0.0) + took - inner

    def timed(self, name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def run(*args: Any, **kwargs: Any) -> Any:
            with self.stage(name):
                return function(*args, **kwargs)

        return run


def compiled(made: Made) -> tuple[Clock, int]:
    """The seconds of one compile by stage, and how many kernels came out."""
    from smelt.backends.cpu import jit, parts
    from smelt.passes import driver

    function, host = made
    arrays = [smelt.array(x) for x in host]
    clock = Clock()
    one = driver._Run.one

    def pass_(self: Any, item: Any) -> bool:
        with clock.stage(item.name):
            return one(self, item)

    gc.collect()
    with clock.stage("record"):
        trace = smelt.compile(function).trace(*arrays)
    with clock.stage("build"):
        lowered = trace.lower()
    with (
        mock.patch.object(driver._Run, "one", pass_),
        mock.patch.object(jit, "lower", clock.timed("lower", jit.lower)),
        mock.patch.object(jit, "compile_module", clock.timed("llvm", jit.compile_module)),
        mock.patch.object(jit, "object_of", clock.timed("llvm", jit.object_of)),
        mock.patch.object(parts, "object_of", clock.timed("llvm", parts.object_of)),
        override(cache=False),
        clock.stage("kernels"),
    ):
        executable = runtime.compile_module(lowered.module, CPU)
    return clock, len(executable.kernels)


def row(name: str, times: int) -> tuple[dict[str, float], int]:
    """The compile that took least of several."""
    made, best, kernels = program(name), Clock(), 0
    for i in range(times):
        clock, kernels = compiled(made)
        if not i or sum(clock.seconds.values()) < sum(best.seconds.values()):
            best = clock
    return best.seconds, kernels


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.compile_stages", description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="program", help=f"by default {USUAL}; also {', '.join(PROGRAMS)}")
    parser.add_argument("--times", type=int, default=3, help="compiles of each (default: %(default)s)")
    options = parser.parse_args(argv)
    compiled(program("gelu"))  # what only the first compile of a process does
    found = {name: row(name, options.times) for name in options.names or USUAL.split()}
    stages = dict.fromkeys(BEFORE) | {s: None for r, _ in found.values() for s in r if s not in BEFORE + AFTER}
    columns = ["program", "kernels", *stages, *AFTER, "all, ms"]
    print(f"| {' | '.join(columns)} |\n| --- |{' ---: |' * (len(columns) - 1)}")
    for name, (seconds, kernels) in found.items():
        times = [seconds.get(s, 0.0) * 1e3 for s in [*stages, *AFTER]]
        cells = [f"{t:.0f}" if t >= 99 else f"{t:.1f}" for t in [*times, sum(times)]]
        print(f"| {name} | {kernels} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
