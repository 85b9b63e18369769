"""How long each pass takes on large random graphs: ``python -m benchmarks.pass_times [--ops N,…] [graph …]``.

Prints, for each graph, the processor's seconds that each pass of the pipeline of a device (``--device``) takes for ten
thousand ops: of its longest run where it runs repeatedly, by the ops of the module before or after it. They are equal
for any number of ops where a pass is linear: ``--ops 5000,10000`` prints a row for each. A name with ``grad:`` or
``vmap:`` in front is the graph's gradient, or the graph on eight of all inputs.
"""

from __future__ import annotations

import argparse
import gc
import random
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import smelt
from smelt.ir import collector

Function = Callable[..., Any]
UNARY = (smelt.tanh, smelt.sin, smelt.abs, smelt.negative, smelt.square)
BINARY = (smelt.add, smelt.subtract, smelt.multiply, smelt.maximum)


def _graph(count: int, window: int, other: Callable[[random.Random, Any], Any] | None = None, share: float = 0.0,
           results: int = 8, binary: float = 0.6) -> Function:  # fmt: skip
    """Random arithmetic of square matrices.

    Args:
        window: ops read one of the last so many values.
        other: makes a value of another in place of arithmetic, in `share` of all cases.
        results: of the graph, beside all that nothing else reads.
    """

    def f(*arrays: Any) -> Any:
        choose, values = random.Random(count), list(arrays)
        unread = dict.fromkeys(range(len(values)))
        while len(values) < count:
            i, j = (choose.randrange(max(0, len(values) - window), len(values)) for _ in range(2))
            x, y, kind = values[i], values[j], choose.random()
            unread.pop(i, None)
            if other is not None and kind < share:
                made = other(choose, x)
            elif kind < share + (1 - share) * binary:
                made = choose.choice(BINARY)(x, y)
                unread.pop(j, None)
            else:
                made = choose.choice(UNARY)(x)
            unread[len(values)] = None
            values.append(made)
        return [values[i] for i in dict.fromkeys([*unread, *choose.choices(range(len(values)), k=results)])]

    return f


def _reduction(choose: random.Random, x: Any) -> Any:
    by = choose.choice((smelt.sum, smelt.max, smelt.mean))
    return smelt.broadcast_to(by(x, axis=choose.randrange(2), keepdims=True), x.shape)


def _movement(choose: random.Random, x: Any) -> Any:
    kind, half = choose.randrange(5), len(x) // 2
    if kind == 0:
        return smelt.transpose(x)
    if kind == 1:
        return smelt.reshape(smelt.reshape(x, (2, half, len(x))).transpose(1, 0, 2), x.shape)
    if kind == 2:
        return x[::-1]
    if kind == 3:
        return smelt.pad(x[1:-1, 1:], [(1, 1), (0, 1)])
    return smelt.concatenate([x[half:], x[:half]])


def _product(choose: random.Random, x: Any) -> Any:
    return smelt.tanh(x @ x) if choose.random() < 0.7 else smelt.softmax(x, axis=-1)


def _function(choose: random.Random, x: Any) -> Any:
    """Two ops of each row: a function of its own, which is batched and inlined."""
    by, factor = choose.choice(UNARY), choose.random()
    return smelt.vmap(lambda row: by(row) * factor)(x)


def _loop(choose: random.Random, x: Any) -> Any:
    """A scan of two ops a step, or one of two branches."""
    by, factor = choose.choice(UNARY), choose.random()
    if choose.random() < 0.5:
        return smelt.scan(lambda carry, row: (by(carry) + row, carry * factor), x[0], x)[1]
    return smelt.cond(x[0, 0] > 0, lambda y: by(y) * factor, lambda y: y + factor, x)


GRAPHS: dict[str, Callable[[int], Function]] = {
    "random": lambda n: _graph(n, 50),
    "deep": lambda n: _graph(n, 2),
    "chain": lambda n: _graph(n, 1, binary=0.0),
    "wide": lambda n: _graph(n, 2000),
    "anywhere": lambda n: _graph(n, n),
    "outputs": lambda n: _graph(n, 50, results=n // 4),
    "reductions": lambda n: _graph(n, 50, _reduction, 0.3),
    "movement": lambda n: _graph(n, 50, _movement, 0.4),
    "products": lambda n: _graph(n, 50, _product, 0.2),
    "functions": lambda n: _graph(n // 4, 50, _function, 1.0),
    "loops": lambda n: _graph(n // 4, 50, _loop, 0.2),
}


def lowered(name: str, count: int, size: int) -> Any:
    """The module of a graph, before any pass."""
    *ways, plain = name.split(":")
    function: Function = GRAPHS[plain](count)
    arrays = [np.random.default_rng(i).standard_normal((size, size), np.float32) for i in range(4)]
    for way in reversed(ways):
        if way == "grad":
            function = _gradient(function)
        elif way == "vmap":
            function = smelt.vmap(function)
            arrays = [np.broadcast_to(x, (8, *x.shape)).copy() for x in arrays]
        else:
            raise SystemExit(f"{name!r}: in front of a graph stands grad: or vmap:")
    return smelt.compile(function).trace(*map(smelt.array, arrays)).lower().module


def _gradient(function: Function) -> Function:
    return smelt.grad(lambda *args: sum(smelt.sum(y) for y in function(*args)), argnums=(0, 1, 2, 3))


def timed(module: Any, device: str) -> dict[str, tuple[float, int]]:
    """The longest run of each pass: the processor's seconds, and the ops of the module, before it or after it, if they
    are more then. The module is consumed."""
    from smelt.passes.driver import Instrumentation

    found: dict[str, tuple[float, int]] = {}
    started, ops = 0.0, 0

    def before(record: Any, module: Any) -> None:
        nonlocal started, ops
        ops = _count(module)
        started = time.process_time()

    def after(record: Any, module: Any) -> None:
        took = time.process_time() - started
        found[record.name] = max(found.get(record.name, (0.0, 0)), (took, max(ops, _count(module))))

    with collector.paused():
        smelt.default_pipeline(device).run(module, Instrumentation(before_pass=before, on_pass=after))
    return found


def _count(module: Any) -> int:
    """The ops of a module's functions."""
    return sum(len(b.operations) for f in module.body.operations for r in f.regions for b in r.blocks)


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.pass_times", description=__doc__.splitlines()[0])
    usual = [*GRAPHS, *(f"{way}:{g}" for way in ("grad", "vmap") for g in ("random", "reductions", "movement"))]
    parser.add_argument("graphs", nargs="*", metavar="graph", default=usual, help=f"default: {' '.join(usual)}")
    parser.add_argument("--ops", default="10000", help="how many, with commas in between (default: %(default)s)")
    parser.add_argument("--size", type=int, default=64, help="rows of a matrix (default: %(default)s)")
    parser.add_argument("--device", default="cpu", help="whose pipeline (default: %(default)s)")
    parser.add_argument("--times", type=int, default=2, help="runs of each (default: %(default)s)")
    options = parser.parse_args(argv)
    if unknown := [g for g in options.graphs if g.split(":")[-1] not in GRAPHS]:
        raise SystemExit(f"there is no graph {unknown[0]!r}; there are {', '.join(GRAPHS)}")
    timed(lowered("random", 50, options.size), options.device)  # loads what there is to load
    columns: list[str] = []
    for name in options.graphs:
        for count in map(int, options.ops.split(",")):
            best: dict[str, tuple[float, int]] = {}
            for _ in range(options.times):
                gc.collect()
                for key, value in timed(lowered(name, count, options.size), options.device).items():
                    best[key] = min(best.get(key, value), value)
            if not columns:
                columns = list(best)
                print(f"| graph | ops | most ops | {' | '.join(columns)} |\n| --- |{' ---: |' * (len(columns) + 2)}")
            cells = [f"{t / max(n, 1) * 1e4:.2f}" for t, n in (best.get(c, (0.0, 0)) for c in columns)]
            most = max(n for _, n in best.values())
            print(f"| {name} | {count:,} | {most:,} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
