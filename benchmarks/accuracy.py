"""Measures the errors and the speed of the elementary functions; writes ``docs/accuracy.md``.

    python benchmarks/accuracy.py            # about two minutes
    python benchmarks/accuracy.py --print    # to the terminal instead

The compiled functions and the truth to compare with come from ``tests/ops/test_elementary.py``.
"""

from __future__ import annotations

import runpy
import sys
import time
from pathlib import Path

import numpy as np

from smelt.ir import dtypes

ROOT = Path(__file__).parents[1]
STRIDE = 61  #: every how-manyth float32 is tried
CHUNK = 1 << 22

HEAD = """# Accuracy of the elementary functions

The largest error found, in units of the last place of the result, and the time of one element on one
thread (in cache, 512-bit vectors, one core of the machine that made this table). float32 functions of
one argument are measured on every {stride}st bit pattern and on special points, the others on {count}
points: special values and their neighbours, random bit patterns, moderate numbers, numbers near
multiples of π/2. float32 is compared with float64, float64 with long double and, where the error is
largest, with mpmath. Special values (NaN, ±∞, ±0), subnormal numbers in and out, and huge arguments are
included; a wrong one would count as infinite. float16 and bfloat16 are computed in float32 and rounded.

Made by `python benchmarks/accuracy.py`. The tests hold every function to 4 ulp.

| function | float32, ulp | float64, ulp | float32, ns | float64, ns |
|---|---|---|---|---|
"""
COMPLEX = """
Complex functions, on {count} points: the largest |error| / |result| (`power`: divided by 1 + |w·log z|).

| function | complex64 | complex128 |
|---|---|---|
"""


def every_float32(tests: dict, name: str) -> float:
    """The largest error over every STRIDEth bit pattern."""
    run, worst = tests["compiled"]()[name, dtypes.float32], 0.0
    for start in range(0, 1 << 32, CHUNK * STRIDE):
        stop = min(start + CHUNK * STRIDE, 1 << 32)
        x = np.arange(start, stop, STRIDE, dtype=np.uint64).astype(np.uint32).view(np.float32)
        with np.errstate(all="ignore"):
            error = tests["ulps"](run(x), tests["wide"](name, x))
        worst = max(worst, float(error.max()))
    return worst


def nanoseconds(tests: dict, name: str, dtype: dtypes.DType) -> float:
    """The time of one element: the best of some runs over an array that fits the cache."""
    count = 1 << 17
    xs = [np.random.default_rng(i).uniform(0.01, 0.99, count).astype(dtype.numpy) for i in range(2)]
    xs = xs if name in tests["BINARY"] else xs[:1]
    if name == "arccosh":
        xs[0] += 1
    out, run, best = np.empty_like(xs[0]), tests["compiled"]()[name, dtype], np.inf
    for _ in range(20):
        start = time.perf_counter()
        run(*xs, out=out)
        best = min(best, time.perf_counter() - start)
    return best / count * 1e9


def table(count: int = 400_000) -> str:
    tests = runpy.run_path(str(ROOT / "tests/ops/test_elementary.py"))
    text = HEAD.format(stride=STRIDE, count=f"{count:,}")
    for name in (*tests["UNARY"], *tests["BINARY"]):
        single = tests["measure"](name, dtypes.float32, count)[0]
        if name in tests["UNARY"]:
            single = max(single, every_float32(tests, name))
        double = tests["measure"](name, dtypes.float64, count)[0]
        times = [nanoseconds(tests, name, d) for d in (dtypes.float32, dtypes.float64)]
        text += f"| {name} | {single:.2f} | {double:.2f} | {times[0]:.2f} | {times[1]:.2f} |\n"
    text += COMPLEX.format(count=f"{count:,}")
    for name in tests["COMPLEX"]:
        errors = [tests["measure_complex"](name, d, count)[0] for d in (dtypes.complex64, dtypes.complex128)]
        text += f"| {name.removeprefix('complex_')} | {errors[0]:.1e} | {errors[1]:.1e} |\n"
    return text


if __name__ == "__main__":
    if "--print" in sys.argv:
        print(table())
    else:
        document = ROOT / "docs/accuracy.md"
        # What stands behind this table is made by another command.
        _, heading, rest = document.read_text(encoding="utf-8").partition("\n## Special functions")
        document.write_text(table() + heading + rest, encoding="utf-8")
