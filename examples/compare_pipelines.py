"""What two pipelines make of one function: values, kernels, bytes, operations, times, and what differs in their texts.

    python examples/compare_pipelines.py examples/gelu.py:gelu 'f32[64,64]' --with 'without:canonicalize'

A pipeline is a whole one, or changes of the device's own; `--load` imports a file whose passes it names.
"""

from __future__ import annotations

import argparse
import difflib
import statistics
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

import smelt
from smelt.tools.dump import load, parse_argument
from smelt.tools.user_code import load_plugins
from smelt.utils import tree_flatten, tree_map


def filled(given: Any) -> Any:
    """Random numbers in place of the types of arrays, in a tree of arguments."""
    rng = np.random.default_rng(0)

    def array(x: Any) -> Any:
        aval = getattr(x, "aval", None)
        return x if aval is None else smelt.array((rng.random(aval.shape) + 0.5).astype(aval.dtype.numpy))

    return tree_map(array, given)


def milliseconds(function: Any, arguments: Sequence[Any], times: int) -> float:
    """The median of several calls, their results awaited."""
    smelt.eval(function(*arguments))
    taken = []
    for _ in range(times):
        start = time.perf_counter()
        smelt.eval(function(*arguments))
        taken.append(time.perf_counter() - start)
    return statistics.median(taken) * 1e3


def largest_difference(left: Any, right: Any) -> float:
    """Of the results of two programs, relative to the largest number of the first."""
    largest = 0.0
    for (_, x), (_, y) in zip(tree_flatten(left), tree_flatten(right)):
        a, b = np.asarray(x, np.complex128), np.asarray(y, np.complex128)
        largest = max(largest, float(np.max(np.abs(a - b), initial=0) / max(np.max(np.abs(a), initial=0), 1e-30)))
    return largest


def compare(function: Any, given: Sequence[Any], pipelines: Sequence[str | None], times: int) -> str:
    """A table of what the pipelines make of a function, and the difference of their last stages before code."""
    arguments = filled(list(given))
    lowered = smelt.compile(function).trace(*arguments).lower()
    lines = [f"{'':32} {'kernels':>8} {'bytes':>12} {'operations':>12} {'ms':>9}"]
    texts, results = [], []
    for pipeline in pipelines:
        program = lowered.compile(pipeline)
        cost, compiled = program.cost(), smelt.compile(function, pipeline=pipeline)
        taken = milliseconds(compiled, arguments, times)
        name = pipeline or "the device's own"
        lines.append(f"{name:32} {len(cost.steps):8} {cost.step_bytes:12,} {cost.operations:12,.0f} {taken:9.3f}")
        texts.append(program.as_text(short=True).splitlines())
        results.append(compiled(*arguments))
    lines.append(f"results differ by {largest_difference(*results):.1e} of the largest")
    names = [pipeline or "the device's own" for pipeline in pipelines]
    return "\n".join([*lines, *difflib.unified_diff(*texts, *names, lineterm="", n=1)])


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    gelu, unfused = f"{Path(__file__).with_name('gelu.py')}:gelu", "replace:fuse=fuse{max-ops=1}"
    parser.add_argument("target", nargs="?", default=gelu, metavar="MODULE:FUNCTION", help="default: examples/gelu.py")
    parser.add_argument("arguments", nargs="*", metavar="ARG", help="a type such as f32[4,8], or a number")
    parser.add_argument("--base", metavar="PIPELINE", help="default: the device's own")
    parser.add_argument("--with", dest="other", default=unfused, metavar="PIPELINE", help="default: %(default)s")
    parser.add_argument("--load", action="append", default=[], metavar="FILE", help="defines passes or rewrites")
    parser.add_argument("--times", type=int, default=20, help="calls that are timed (default: %(default)s)")
    options = parser.parse_args(argv)
    if options.times < 1:
        parser.error("--times must be 1 at least")
    if options.target == gelu and not options.arguments:
        options.arguments = ["f32[512,512]"]
    load_plugins(options.load)
    function = load(options.target)
    given = [parse_argument(text) for text in options.arguments]
    print(compare(getattr(function, "__wrapped__", function), given, [options.base, options.other], options.times))


if __name__ == "__main__":
    main()
