"""What a call or an operation costs when there is almost nothing to compute."""

from __future__ import annotations

import math

import numpy as np

from ..workload import Workload

CALLS = 1000
OPS = 1000


class _Small(Workload):
    unit = "µs"
    count = CALLS
    least_bytes = 0

    def arrays(self, rng):
        return [rng.standard_normal(10, np.float32)]


class SmallCall(_Small, name="small-call"):
    """call of a compiled GELU on 10 elements, result awaited"""

    def expected(self, x):
        return np.array([v * (1 + math.erf(v * math.sqrt(0.5))) / 2 for v in x])

    def smelt(self, smelt):
        f = smelt.compile(lambda x: x * (1 + smelt.erf(x * math.sqrt(0.5))) / 2)
        return repeated(f, smelt.eval)

    def mlx(self, mx):
        return repeated(mx.compile(lambda x: x * (1 + mx.erf(x * math.sqrt(0.5))) / 2), mx.eval)

    def torch_compile(self, torch):
        return repeated(torch.compile(lambda x: x * (1 + torch.erf(x * math.sqrt(0.5))) / 2))

    def jax(self, jax):
        f = jax.jit(lambda x: x * (1 + jax.scipy.special.erf(x * math.sqrt(0.5))) / 2)
        return repeated(f, lambda y: y.block_until_ready())


def repeated(function, wait=None):
    """`function` called CALLS times, each result awaited."""

    def run(x):
        for _ in range(CALLS):
            y = function(x)
            if wait is not None:
                wait(y)
        return y

    return run


def chain(x):
    """OPS operations, each on the result of the one before."""
    for _ in range(OPS // 2):
        x = x * 0.5
        x = x + 1.0
    return x


class LazyBuild(_Small, name="lazy-build"):
    """one lazy operation: recording it, 10 elements"""

    count = OPS

    def expected(self, x):
        return chain(x)

    def smelt(self, smelt):
        return chain

    def mlx(self, mx):
        return chain


class LazyEval(LazyBuild, name="lazy-eval"):
    """one lazy operation: recording and evaluating it, 10 elements"""

    def smelt(self, smelt):
        return lambda x: waited(smelt, chain(x))

    def mlx(self, mx):
        return lambda x: waited(mx, chain(x))


def waited(module, x):
    module.eval(x)
    return x


ROWS = 64


class RowWritten(Workload, name="row-written"):
    """a row of 4096×4096 f32 written (x[i] = v), and evaluated"""

    unit = "µs"
    count = ROWS
    table = "library"

    def arrays(self, rng):
        return [rng.standard_normal((4096, 4096), np.float32), np.arange(4096, dtype=np.float32)]

    def expected(self, x, row):
        return np.concatenate([np.broadcast_to(row, (ROWS, 4096)), x[ROWS:]])

    def smelt(self, smelt):
        return written(smelt.eval)

    def mlx(self, mx):
        return written(mx.eval)

    def torch(self, torch):
        return written(lambda x: None)


def written(wait):
    """Writes to a copy that is made when it is first asked for."""
    own = []

    def run(x, row):
        if not own:
            own.append(x + 0)
        y = own.pop()
        for i in range(ROWS):
            y[i] = row
            wait(y)
        own.append(y)
        return y

    return run
