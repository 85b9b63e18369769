"""Large random graphs, of which `benchmarks.pass_times` times the passes."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import numpy as np

import smelt

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


def _indexing(choose: random.Random, x: Any) -> Any:
    """Reads and writes where an index says, sorts, and running sums."""
    n, kind = len(x), choose.randrange(6)
    at = smelt.array(np.array([choose.randrange(n) for _ in range(n)], np.int32))
    if kind == 0:
        return smelt.take(x, at, axis=choose.randrange(2))
    if kind == 1:
        return x.at[at].add(x)
    if kind == 2:
        return smelt.sort(x, axis=choose.randrange(2))
    if kind == 3:
        return smelt.cumsum(x, axis=choose.randrange(2))
    if kind == 4:
        return smelt.take_along_axis(x, smelt.argsort(x, axis=1), axis=1)
    return smelt.where(x > 0, smelt.cummax(x, axis=0), smelt.minimum(x, at))


def _update(choose: random.Random, x: Any) -> Any:
    """Parts of an array written anew."""
    start, kind = choose.randrange(len(x) // 2), choose.randrange(3)
    if kind == 0:
        return x.at[start : start + 3].add(x[:3])
    if kind == 1:
        x = +x
        x[:, start] = x[start]
        return x
    return smelt.slice_update(x, x[:2, :2], smelt.array([start, 0]), (0, 1))


def _vectors(count: int) -> Function:
    """A chain of values of each row, a part of which matrices and their sums read."""

    def f(x: Any, *_: Any) -> Any:
        choose, row, sums = random.Random(count), smelt.sum(x, axis=1, keepdims=True), []
        for i in range(count // 4):
            row, x = choose.choice(UNARY)(row + 0.1), smelt.tanh(x)
            if i % 5 == 0:
                sums.append(smelt.sum(x * row, axis=i % 2))
        return sums

    return f


def _number(choose: random.Random, x: Any) -> Any:
    """Arithmetic with an array of its own, or with a number."""
    if choose.random() < 0.5:
        return x * smelt.array(np.full(x.shape, choose.random(), np.float32))
    return x + choose.random()


def _many_readers(count: int) -> Function:
    """One value with `count` readers, half of which make kernels of their own."""

    def f(x: Any, *_: Any) -> Any:
        made = smelt.tanh(x @ x)
        left = [(made * i if i % 2 else smelt.sum(made - i, axis=0)) for i in range(count // 2)]
        while len(left) > 1:
            left = [a + b for a, b in zip(left[::2], left[1::2])] + left[len(left) // 2 * 2 :]
        return left[0]

    return f


def _many_operands(count: int, at_once: int = 1000) -> Function:
    """Ops that read a third of a thousand values each."""

    def f(x: Any, *others: Any) -> Any:
        parts = []
        for start in range(0, count, at_once):
            some = range(min(at_once, count - start) // 3)
            rows = [BINARY[i % 4](x, others[i % len(others)])[i % len(x)] * float(i) for i in some]
            parts.append(smelt.stack(rows) if start // at_once % 2 else smelt.concatenate(rows))
            x = smelt.tanh(x + smelt.sum(parts[-1]))
        return parts

    return f


def _carried(count: int, values: int = 500) -> Function:
    """Loops that carry five hundred values each."""

    def f(x: Any, *_: Any) -> Any:
        carried = [x + float(i) for i in range(values)]
        for _ in range(max(1, count // (4 * values))):
            carried = smelt.scan(lambda c, row: ([a * row + b for a, b in zip(c, [*c[1:], c[0]])], row), carried, x)[0]
        return carried

    return f


def _many_arguments(count: int) -> Function:
    """Half as many arguments as ops."""

    def f(*arrays: Any) -> Any:
        return [smelt.tanh(a) * b for a, b in zip(arrays, [*arrays[1:], arrays[0]])]

    return f


def _nested(count: int, apply: Callable[[Function], Function]) -> Function:
    """Functions that run another one twice, and that two more: as many functions as ops in a row."""

    def f(x: Any, *_: Any) -> Any:
        run: Function = smelt.tanh
        for depth in range(max(1, count.bit_length() - 2)):
            run = apply(lambda y, inner=run, number=float(depth): inner(inner(y) * number))
        return run(x)

    return f


def _loop_of(body: Function) -> Function:
    return lambda x: smelt.scan(lambda c, _: (body(c), None), x, None, length=3)[0]


def _branch_of(body: Function) -> Function:
    return lambda x: smelt.cond(x[0, 0] > 0, body, smelt.negative, x)


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
    "indexing": lambda n: _graph(n // 3, 50, _indexing, 0.5),
    "updates": lambda n: _graph(n // 2, 50, _update, 0.5),
    "vectors": _vectors,
    "constants": lambda n: _graph(n, 50, _number, 0.7),
    "readers": _many_readers,
    "operands": _many_operands,
    "arguments": _many_arguments,
    "carried": _carried,
    "nested-compiled": lambda n: _nested(n, smelt.compile),
    "nested-checkpoint": lambda n: _nested(n, smelt.checkpoint),
    "nested-loops": lambda n: _nested(n, _loop_of),
    "nested-branches": lambda n: _nested(n, _branch_of),
}
