"""How long each pass takes on large random graphs: ``python -m benchmarks.pass_times [--ops N,…] [graph …]``.

Prints, for each graph, the processor's seconds that each pass of the pipeline of a device (``--device``) takes for ten
thousand ops: of its longest run where it runs repeatedly, by the ops of the module before or after it. They are equal
for any number of ops where a pass is linear: ``--ops 5000,10000`` prints a row for each. So are those of what stands
before and after the passes: tracing, building, verifying and printing the module and reading it back, the costs of the
program, remarks (of `fuse`, which then runs with them), and the short form. `all` is what all passes take together, in
seconds.

A name with ``grad:``, ``jvp:`` or ``vmap:`` in front is the graph's gradient or derivative, or the graph on eight of
all inputs.
"""

from __future__ import annotations

import argparse
import gc
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

import smelt
from smelt.ir import collector, text

from .large_graphs import GRAPHS, Function

WAYS = ("grad", "vmap", "jvp")


def function_of(name: str, count: int, size: int) -> tuple[Function, list[Any]]:
    """A graph by its name, and arguments."""
    *ways, plain = name.split(":")
    function: Function = GRAPHS[plain](count)
    given = count // 2 if plain == "arguments" else 4
    arrays = [np.random.default_rng(i % 4).standard_normal((size, size), np.float32) for i in range(given)]
    for way in reversed(ways):
        if way == "grad":
            function = _gradient(function, given)
        elif way == "jvp":
            function = _derivative(function)
        elif way == "vmap":
            function = smelt.vmap(function)
            arrays = [np.broadcast_to(x, (8, *x.shape)).copy() for x in arrays]
        else:
            raise SystemExit(f"{name!r}: in front of a graph stands one of {', '.join(f'{w}:' for w in WAYS)}")
    return function, [smelt.array(x) for x in arrays]


def _gradient(function: Function, count: int) -> Function:
    def total(*args: Any) -> Any:
        return sum(smelt.sum(y) for y in _leaves(function(*args)))

    return smelt.grad(total, argnums=tuple(range(count)))


def _derivative(function: Function) -> Function:
    return lambda *args: smelt.jvp(lambda *a: _leaves(function(*a)), args, args)


def _leaves(results: Any) -> list[Any]:
    return list(results) if isinstance(results, (list, tuple)) else [results]


class Times(dict[str, tuple[float, int]]):
    """The longest run of each stage: the processor's seconds, and the ops of the module."""

    @contextmanager
    def of(self, stage: str, ops: Callable[[], int]) -> Iterator[None]:
        start = time.process_time()
        yield
        self.longest(stage, time.process_time() - start, ops())

    def longest(self, stage: str, seconds: float, ops: int) -> None:
        self[stage] = max(self.get(stage, (0.0, 0)), (seconds, ops))


def timed(name: str, count: int, size: int, device: str) -> Times:
    """The times of all stages of a graph."""
    from smelt.ir.short import to_short_text
    from smelt.passes.driver import Instrumentation
    from smelt.passes.kernels.cost import program_cost
    from smelt.passes.remarks import collected

    found = Times()
    started, ops, total = 0.0, 0, 0.0

    def before(record: Any, module: Any) -> None:
        nonlocal started, ops
        ops = _count(module)
        started = time.process_time()

    def after(record: Any, module: Any) -> None:
        nonlocal total
        took = time.process_time() - started
        total += took
        found.longest(record.name, took, max(ops, _count(module)))

    pipeline = smelt.default_pipeline(device)
    function, arrays = function_of(name, count, size)
    module: Any = None

    def size_of() -> int:
        return _count(module)

    with collector.paused():
        with found.of("trace", size_of):
            trace = smelt.compile(function).trace(*arrays)
            module = trace.lower().module
        with found.of("build", size_of):
            module = trace.lower().module
        with found.of("verify", size_of):
            text.verify(module)
        with found.of("print", size_of):
            written = text.to_text(module)
        with found.of("parse", size_of):
            text.parse(written)
        with found.of("short", size_of):
            to_short_text(module)
        pipeline.run(module, Instrumentation(before_pass=before, on_pass=after))
        with found.of("cost", size_of):
            program_cost(module)
        with collected():
            other = text.parse(written)
            remarked = Times()

            def noted(record: Any, module: Any) -> None:
                remarked.longest(record.name, time.process_time() - started, max(ops, _count(module)))

            pipeline.run(other, Instrumentation(before_pass=before, on_pass=noted))
        found["remarks"] = remarked["fuse"]
    found["all"] = total, 10_000
    return found


def _count(module: Any) -> int:
    """The ops of a module's functions."""
    return sum(len(b.operations) for f in module.body.operations for r in f.regions for b in r.blocks)


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.pass_times", description=__doc__.splitlines()[0])
    usual = [*GRAPHS, *(f"{way}:{g}" for way in WAYS for g in ("random", "reductions", "movement", "indexing"))]
    parser.add_argument("graphs", nargs="*", metavar="graph", default=usual, help=f"default: {' '.join(usual)}")
    parser.add_argument("--ops", default="10000", help="how many, with commas in between (default: %(default)s)")
    parser.add_argument("--size", type=int, default=64, help="rows of a matrix (default: %(default)s)")
    parser.add_argument("--device", default="cpu", help="whose pipeline (default: %(default)s)")
    parser.add_argument("--times", type=int, default=2, help="runs of each (default: %(default)s)")
    options = parser.parse_args(argv)
    if unknown := [g for g in options.graphs if g.split(":")[-1] not in GRAPHS]:
        raise SystemExit(f"there is no graph {unknown[0]!r}; there are {', '.join(GRAPHS)}")
    timed("random", 50, options.size, options.device)  # loads what there is to load
    columns: list[str] = []
    for name in options.graphs:
        for count in map(int, options.ops.split(",")):
            best: dict[str, tuple[float, int]] = {}
            for _ in range(options.times):
                gc.collect()
                for key, value in timed(name, count, options.size, options.device).items():
                    best[key] = min(best.get(key, value), value)
            if not columns:
                columns = list(best)
                print(f"| graph | ops | most ops | {' | '.join(columns)} |\n| --- |{' ---: |' * (len(columns) + 2)}")
            cells = [f"{t / max(n, 1) * 1e4:.2f}" for t, n in (best.get(c, (0.0, 0)) for c in columns)]
            most = max(n for c, (_, n) in best.items() if c != "all")
            print(f"| {name} | {count:,} | {most:,} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
