"""Random graphs of ops on arrays of awkward shapes, through fusion and kernels.

Elements are small whole numbers and special values, so that what kernels compute in another order is the same.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from smelt.ir import dtypes
from smelt.ir.aval import Aval
from smelt.ir.builder import Value

#: Extents of axes, the likelier ones several times.
EXTENTS = (0, 1, 1, 2, 3, 4, 4, 5, 7, 8, 16, 16, 33, 64)
#: No value of a graph is larger.
MOST = 40_000
#: Values above this are brought back into it, so that sums of whole numbers stay exact.
BOUND = 8.0

Step = Callable[[Any, list[Value]], Value]


@dataclass
class Graph:
    """A function of arrays for `modules.module_of`: its parameters, steps in words, and which values it returns."""

    avals: list[Aval]
    steps: list[tuple[str, Step]]
    returns: list[int]

    def __call__(self, b: Any, *arguments: Value) -> list[Value]:
        values = list(arguments)
        for _, step in self.steps:
            values.append(step(b, values))
        return [values[i] for i in self.returns]

    def __str__(self) -> str:
        lines = [f"v{i}: {a}" for i, a in enumerate(self.avals)]
        lines += [f"v{i} = {words}" for i, (words, _) in enumerate(self.steps, len(self.avals))]
        return "\n".join([*lines, f"return {', '.join(f'v{i}' for i in self.returns)}"])


class Together:
    """Several graphs as one function: programs are compiled together, and share nothing."""

    def __init__(self, graphs: Sequence[Graph]):
        self.graphs = graphs
        self.avals = [a for g in graphs for a in g.avals]

    def __call__(self, b: Any, *arguments: Value) -> list[Value]:
        rest = iter(arguments)
        return [v for g in self.graphs for v in g(b, *itertools.islice(rest, len(g.avals)))]

    def __str__(self) -> str:
        return "\n\n".join(map(str, self.graphs))


def made(seeds: Sequence[int], most: int = MOST) -> tuple[Together, list[np.ndarray]]:
    """The graphs of some seeds as one function, and operands for them."""
    graphs = [Maker(seed, most).make() for seed in seeds]
    return Together(graphs), [x for g, seed in zip(graphs, seeds) for x in operands_of(g, seed)]


class Maker:
    """Makes one graph from a seed."""

    def __init__(self, seed: int, most: int = MOST):
        self.random = random.Random(seed)
        self.most = most
        self.avals: list[Aval] = []  #: of all values so far
        self.steps: list[tuple[str, Step]] = []

    def make(self) -> Graph:
        r = self.random
        arguments = [Aval(self.shape(), dtypes.float32)]
        for _ in range(r.randint(0, 2)):
            shape = list(r.choice(arguments).shape)
            if shape and r.random() < 0.5:
                shape[r.randrange(len(shape))] = r.choice((1, r.choice(EXTENTS)))
            arguments.append(Aval(tuple(shape), dtypes.float32) if _size(shape) <= self.most else arguments[0])
        self.avals = list(arguments)
        for _ in range(r.randint(2, 9)):
            self.step()
        made = range(len(arguments), len(self.avals))
        some = r.choice((0, 1, 3, len(made)))  # what is returned beside what it is read by
        returns = sorted({len(self.avals) - 1, *r.sample(made, min(len(made), some))})
        return Graph(arguments, self.steps, returns)

    def shape(self) -> tuple[int, ...]:
        r = self.random
        while True:
            shape = tuple(r.choice(EXTENTS) for _ in range(r.choice((1, 2, 2, 3, 3, 4))))
            if r.random() < 0.04:
                shape = (r.choice((3, 20, 2000)), r.choice((1, 5, 2000)))
            if _size(shape) <= self.most:
                return shape

    def add(self, words: str, shape: Sequence[int], step: Step) -> None:
        if _size(shape) <= self.most and len(shape) <= 6:
            self.avals.append(Aval(tuple(shape), dtypes.float32))
            self.steps.append((words, step))

    def pick(self) -> int:
        """A value, most likely the newest."""
        n = len(self.avals)
        return n - 1 if self.random.random() < 0.5 else self.random.randrange(n)

    def step(self) -> None:
        kinds = (
            self.unary, self.unary, self.binary, self.binary, self.reduce, self.reduce, self.reduce, self.back,
            self.back, self.pad, self.concatenate, self.slice, self.reverse, self.transpose, self.reshape,
            self.broadcast, self.scan, self.sort, self.gather, self.scatter, self.product, self.beside, self.beside,
        )  # fmt: skip
        self.random.choice(kinds)()

    def beside(self) -> None:
        """An elementwise op, a change of extents, and a reduction of that: what fusion may return together."""
        self.unary()
        self.random.choice((self.pad, self.concatenate, self.slice, self.transpose, self.reverse, self.broadcast))()
        self.reduce()
        if self.random.random() < 0.5:
            self.back()

    def unary(self) -> None:
        i = self.pick()
        name = self.random.choice(("neg", "abs", "double", "clamp", "square", "sign", "relu"))

        def step(b: Any, v: list[Value]) -> Value:
            x = v[i]
            if name == "double":
                return x + x
            if name == "square":
                return _bounded(b, x * x)
            if name == "clamp":
                return _bounded(b, x)
            if name == "relu":
                return b.maximum(x, b.zeros_like(x))
            return getattr(b, name)(x)

        self.add(f"{name}(v{i})", self.avals[i].shape, step)

    def binary(self) -> None:
        i = self.pick()
        others = [j for j, a in enumerate(self.avals) if a.shape == self.avals[i].shape]
        j = self.random.choice(others)
        name = self.random.choice(("add", "sub", "mul", "maximum", "minimum", "select"))

        def step(b: Any, v: list[Value]) -> Value:
            if name == "select":
                return b.select(b.less(v[i], v[j]), v[i], v[j])
            return _bounded(b, getattr(b, name)(v[i], v[j]))

        self.add(f"{name}(v{i}, v{j})", self.avals[i].shape, step)

    def reduce(self) -> None:
        i = self.pick()
        shape = self.avals[i].shape
        axes = tuple(sorted(self.random.sample(range(len(shape)), self.random.randint(0, len(shape)))))
        name = self.random.choice(("reduce_sum", "reduce_sum", "reduce_max", "reduce_min", "argmax", "argmin"))
        if name.startswith("arg"):
            axes = axes[:1]
        if not axes or (name != "reduce_sum" and any(shape[a] == 0 for a in axes)):
            return
        keep = self.random.random() < 0.3

        def step(b: Any, v: list[Value]) -> Value:
            if name.startswith("arg"):
                found = b.convert_to(getattr(b, name)(v[i], axis=axes[0]), dtypes.float32)
            else:
                found = getattr(b, name)(v[i], axes=axes)
            found = _bounded(b, found)
            return b.reshape_to(found, tuple(1 if a in axes else d for a, d in enumerate(shape))) if keep else found

        out = tuple(1 if a in axes else d for a, d in enumerate(shape) if keep or a not in axes)
        self.add(f"{name}(v{i}, {axes}{', keep' if keep else ''})", out, step)

    def back(self) -> None:
        """A value of fewer axes beside a larger one, as after a reduction."""
        i, j = self.pick(), self.pick()
        x, y = self.avals[i].shape, self.avals[j].shape
        if len(x) > len(y):
            i, j, x, y = j, i, y, x
        left = list(range(len(y)))
        places = []
        for d in x:  # the first axes that fit, in order
            fit = [a for a in left if y[a] == d or d == 1]
            if not fit:
                return
            places.append(self.random.choice(fit[:2]))
            left = [a for a in left if a > places[-1]]
        ones = [1] * len(y)
        for a, d in zip(places, x):
            ones[a] = d
        name = self.random.choice(("add", "sub", "mul", "maximum"))

        def step(b: Any, v: list[Value]) -> Value:
            wide = b.broadcast_to(b.reshape_to(v[i], tuple(ones)), y)
            return _bounded(b, getattr(b, name)(v[j], wide))

        self.add(f"{name}(v{j}, v{i} along {places})", y, step)

    def pad(self) -> None:
        i = self.pick()
        shape = self.avals[i].shape
        if not shape:
            return
        r, n = self.random, len(shape)
        low, high, interior = ([0] * n for _ in range(3))
        axis = r.randrange(n)
        low[axis], high[axis], interior[axis] = r.choice((0, 1, 3)), r.choice((0, 1, 20)), r.choice((0, 0, 0, 1))
        out = [max(0, d + (d - 1) * k if d else 0) + p + q for d, p, q, k in zip(shape, low, high, interior)]

        def step(b: Any, v: list[Value]) -> Value:
            return b.pad(v[i], b.full((), -1.0, dtypes.float32), low=low, high=high, interior=interior)

        self.add(f"pad(v{i}, {low}, {high}, {interior})", out, step)

    def concatenate(self) -> None:
        i = self.pick()
        shape = self.avals[i].shape
        if not shape:
            return
        axis = self.random.randrange(len(shape))
        rest = [d for a, d in enumerate(shape) if a != axis]
        others = [
            j for j, a in enumerate(self.avals)
            if a.ndim == len(shape) and [d for k, d in enumerate(a.shape) if k != axis] == rest
        ]  # fmt: skip
        chosen = [i, self.random.choice(others)]
        out = list(shape)
        out[axis] = sum(self.avals[j].shape[axis] for j in chosen)
        words = f"concatenate({', '.join(f'v{j}' for j in chosen)}, {axis})"
        self.add(words, out, lambda b, v: b.concatenate(*(v[j] for j in chosen), axis=axis))

    def slice(self) -> None:
        i = self.pick()
        shape = self.avals[i].shape
        if not shape:
            return
        r = self.random
        start, stop, stride = [0] * len(shape), list(shape), [1] * len(shape)
        axis = r.randrange(len(shape))
        start[axis] = r.randint(0, shape[axis])
        stop[axis] = r.randint(start[axis], shape[axis])
        stride[axis] = r.choice((1, 1, 2, 3))
        out = [len(range(a, z, s)) for a, z, s in zip(start, stop, stride)]
        words = f"v{i}[{', '.join(f'{a}:{z}:{s}' for a, z, s in zip(start, stop, stride))}]"
        self.add(words, out, lambda b, v: b.slice(v[i], start=start, stop=stop, stride=stride))

    def reverse(self) -> None:
        i = self.pick()
        n = self.avals[i].ndim
        axes = tuple(sorted(self.random.sample(range(n), self.random.randint(0, n))))
        self.add(f"reverse(v{i}, {axes})", self.avals[i].shape, lambda b, v: b.reverse(v[i], axes=axes))

    def transpose(self) -> None:
        i = self.pick()
        shape = self.avals[i].shape
        order = tuple(self.random.sample(range(len(shape)), len(shape)))
        out = [shape[a] for a in order]
        self.add(f"transpose(v{i}, {order})", out, lambda b, v: b.transpose(v[i], permutation=order))

    def reshape(self) -> None:
        i = self.pick()
        shape = list(self.avals[i].shape)
        for _ in range(self.random.randint(1, 3)):
            at = self.random.randrange(len(shape) + 1)
            if self.random.random() < 0.3:
                shape.insert(at, 1)
            elif at + 1 < len(shape):  # two axes become one
                shape[at : at + 2] = [shape[at] * shape[at + 1]]
            elif at < len(shape) and shape[at] > 1:  # one becomes two
                factors = [d for d in range(2, min(shape[at], 9)) if shape[at] % d == 0]
                if factors:
                    d = self.random.choice(factors)
                    shape[at : at + 1] = [d, shape[at] // d]
        self.add(f"reshape(v{i}, {shape})", shape, lambda b, v: b.reshape_to(v[i], tuple(shape)))

    def broadcast(self) -> None:
        i = self.pick()
        shape = [self.random.choice((d, d, 5)) if d == 1 else d for d in self.avals[i].shape]
        if self.random.random() < 0.6:
            shape.insert(0, self.random.choice(EXTENTS))
        self.add(f"broadcast(v{i}, {shape})", shape, lambda b, v: b.broadcast_to(v[i], tuple(shape)))

    def scan(self) -> None:
        i = self.pick()
        if not self.avals[i].ndim:
            return
        r = self.random
        axis, name = r.randrange(self.avals[i].ndim), r.choice(("cumsum", "cummax", "cummin"))
        attrs: dict[str, Any] = {"axis": axis, "reverse": r.random() < 0.4}
        if name == "cumsum":
            attrs["inclusive"] = r.random() < 0.6
        words = f"{name}(v{i}, {attrs})"
        self.add(words, self.avals[i].shape, lambda b, v: _bounded(b, getattr(b, name)(v[i], **attrs)))

    def sort(self) -> None:
        i = self.pick()
        if self.avals[i].ndim:
            axis = self.random.randrange(self.avals[i].ndim)
            self.add(f"sort(v{i}, {axis})", self.avals[i].shape, lambda b, v: b.sort(v[i], axis=axis))

    def indices(self, count: int, high: int) -> np.ndarray:
        return np.array([self.random.randint(0, max(high, 0)) for _ in range(count)], np.int32)

    def gather(self) -> None:
        i = self.pick()
        shape = self.avals[i].shape
        if not shape:
            return
        axis = self.random.randrange(len(shape))
        if not shape[axis]:
            return
        size = self.random.randint(1, min(2, shape[axis]))
        at = self.indices(self.random.choice((1, 2, 5)), shape[axis] - size)
        sizes = tuple(size if a == axis else d for a, d in enumerate(shape))

        def step(b: Any, v: list[Value]) -> Value:
            return b.gather(v[i], b.literal(at), axes=(axis,), slice_sizes=sizes)

        self.add(f"gather(v{i}, {at.tolist()}, {axis}, {size})", (len(at), *sizes), step)

    def scatter(self) -> None:
        i = self.pick()
        shape = self.avals[i].shape
        if not shape:
            return
        axis = self.random.randrange(len(shape))
        if not shape[axis]:
            return
        at = self.indices(self.random.choice((1, 3)), shape[axis] - 1)
        mode = self.random.choice(("set", "add", "max"))
        window = tuple(1 if a == axis else d for a, d in enumerate(shape))

        def step(b: Any, v: list[Value]) -> Value:
            first = b.slice(v[i], start=(0,) * len(shape), stop=window, stride=(1,) * len(shape))
            updates = b.broadcast_to(first + first, (len(at), *window))
            return _bounded(b, b.scatter(v[i], updates, b.literal(at), axes=(axis,), mode=mode))

        self.add(f"scatter(v{i}, {at.tolist()}, {axis}, {mode})", shape, step)

    def product(self) -> None:
        i = self.pick()
        shape = self.avals[i].shape
        if len(shape) != 2:
            return
        others = [j for j, a in enumerate(self.avals) if a.ndim == 2 and a.shape[1] == shape[1]]
        j = self.random.choice(others)

        def step(b: Any, v: list[Value]) -> Value:
            x, y = (_bounded(b, w) for w in (v[i], v[j]))
            found = b.dot_general(x, y, lhs_contracting=(1,), rhs_contracting=(1,), lhs_batch=(), rhs_batch=())
            return _bounded(b, found)

        self.add(f"product(v{i}, v{j})", (shape[0], self.avals[j].shape[0]), step)


def _bounded(b: Any, x: Value) -> Value:
    low, high = (b.full(x.shape, s * BOUND, dtypes.float32) for s in (-1, 1))
    return b.minimum(b.maximum(x, low), high)


def _size(shape: Sequence[int]) -> int:
    return int(np.prod([max(d, 1) for d in shape], initial=1))


def operands_of(graph: Graph, seed: int) -> list[np.ndarray]:
    """Whole numbers with ties and both zeros; sometimes NaN and infinities too."""
    rng = np.random.default_rng(seed)
    special = rng.choice(["none", "none", "nan", "infinite"])
    found = []
    for aval in graph.avals:
        x = rng.integers(-3, 4, aval.shape).astype(np.float32)
        x = np.where(rng.random(aval.shape) < 0.1, np.float32(-0.0), x)
        if special != "none":
            values = [np.nan] if special == "nan" else [np.inf, -np.inf]
            x = np.where(rng.random(aval.shape) < 0.02, rng.choice(values, aval.shape), x)
        found.append(np.asarray(x, np.float32).reshape(aval.shape))
    return found
