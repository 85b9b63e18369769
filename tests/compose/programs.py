"""Random programs over smelt's array functions, for comparing ways to run them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from hypothesis import strategies as st

import smelt

MAX_SIZE = 64

UNARY: dict[str, Callable] = {
    "tanh": lambda x: smelt.tanh(x),
    "sin": lambda x: smelt.sin(x),
    "exp": lambda x: smelt.exp(smelt.minimum(x, 2.0)),
    "sigmoid": lambda x: smelt.sigmoid(x),
    "erf": lambda x: smelt.erf(x),
    "log1p": lambda x: smelt.log1p(x * x),
    "sqrt": lambda x: smelt.sqrt(x * x + 0.5),
    "cube": lambda x: x**3 * 0.1,
    "neg": lambda x: -x,
    "reciprocal": lambda x: 1.0 / (x * x + 1.0),
    "scale": lambda x: 0.5 * x - 1.0,
    "clip": lambda x: smelt.clip(x, -1.5, 1.5),
    "softmax": lambda x: smelt.softmax(x, axis=-1) if x.ndim else x,
    "cumsum": lambda x: smelt.cumsum(x, axis=0) * 0.3 if x.ndim else x,
    "sort": lambda x: smelt.sort(x, axis=-1) if x.ndim else x,
    "center": lambda x: x - smelt.mean(x),
    "stop": lambda x: x * smelt.stop_gradient(smelt.cos(x)),
}

BINARY: dict[str, Callable] = {
    "add": lambda x, y: x + y,
    "sub": lambda x, y: x - y,
    "mul": lambda x, y: x * y,
    "div": lambda x, y: x / (y * y + 1.0),
    "maximum": lambda x, y: smelt.maximum(x, y),
    "where": lambda x, y: smelt.where(x > y, x, 0.5 * y),
}

REDUCE: dict[str, Callable] = {
    "sum": lambda x, a, k: smelt.sum(x, axis=a, keepdims=k),
    "mean": lambda x, a, k: smelt.mean(x, axis=a, keepdims=k),
    "max": lambda x, a, k: smelt.max(x, axis=a, keepdims=k),
    "prod": lambda x, a, k: smelt.prod(smelt.tanh(x) + 1.0, axis=a, keepdims=k),
    "logsumexp": lambda x, a, k: smelt.logsumexp(x, axis=a, keepdims=k),
    "var": lambda x, a, k: smelt.var(x, axis=a, keepdims=k),
}


@dataclass
class Program:
    """Straight-line code: each step appends an array; the result combines the last ones."""

    shapes: list[tuple[int, ...]]
    steps: list[tuple[str, Callable[[list], Any]]] = field(default_factory=list)

    def __call__(self, *arguments: Any) -> Any:
        values = list(arguments)
        for _, step in self.steps:
            values.append(step(values))
        total = values[-1].sum()
        for v in values[-3:-1]:
            total = total + (v * v).mean()
        return total

    def all_values(self, *arguments: Any) -> list:
        values = list(arguments)
        for _, step in self.steps:
            values.append(step(values))
        return values[len(arguments) :]

    def __repr__(self) -> str:
        lines = [f"  v{i} = {t}" for i, (t, _) in enumerate(self.steps, len(self.shapes))]
        return "\n".join([f"arguments {self.shapes}", *lines])


def _broadcasts(a: tuple[int, ...], b: tuple[int, ...]) -> bool:
    try:
        return int(np.prod(np.broadcast_shapes(a, b))) <= MAX_SIZE * 4
    except ValueError:
        return False


@st.composite
def programs(draw: Any, max_steps: int = 10) -> Program:
    """A program and the shapes of its arguments."""
    shapes = draw(st.lists(st.lists(st.integers(1, 4), max_size=3).map(tuple), min_size=1, max_size=3))
    program = Program(list(shapes))
    known = list(shapes)
    for _ in range(draw(st.integers(1, max_steps))):
        i = draw(st.integers(0, len(known) - 1))
        shape = known[i]
        choice = draw(st.sampled_from(("unary", "unary", "binary", "binary", "reduce", "move", "move", "matmul")))
        if choice == "binary":
            partners = [j for j, s in enumerate(known) if _broadcasts(shape, s)]
            j = draw(st.sampled_from(partners))
            name = draw(st.sampled_from(sorted(BINARY)))
            _append(program, known, f"{name}(v{i}, v{j})", lambda v, n=name, i=i, j=j: BINARY[n](v[i], v[j]),
                    tuple(np.broadcast_shapes(shape, known[j])))  # fmt: skip
        elif choice == "reduce" and shape:
            axis = draw(st.integers(0, len(shape) - 1))
            keep = draw(st.booleans())
            name = draw(st.sampled_from(sorted(REDUCE)))
            out = tuple(1 if a == axis else d for a, d in enumerate(shape) if keep or a != axis)
            _append(program, known, f"{name}(v{i}, {axis}, {keep})",
                    lambda v, n=name, i=i, a=axis, k=keep: REDUCE[n](v[i], a, k), out)  # fmt: skip
        elif choice == "move" and shape:
            _movement(draw, program, known, i)
        elif choice == "matmul" and len(shape) == 2:
            _append(program, known, f"matmul(v{i}, v{i}ᵀ)", lambda v, i=i: v[i] @ v[i].T, (shape[0], shape[0]))
        else:
            name = draw(st.sampled_from(sorted(UNARY)))
            _append(program, known, f"{name}(v{i})", lambda v, n=name, i=i: UNARY[n](v[i]), shape)
    return program


def _movement(draw: Any, program: Program, known: list, i: int) -> None:
    shape = known[i]
    kind = draw(st.sampled_from(("transpose", "flatten", "slice", "flip", "pad", "concat", "index", "take", "expand")))
    axis = draw(st.integers(0, len(shape) - 1))
    if kind == "transpose":
        perm = draw(st.permutations(range(len(shape))))
        _append(program, known, f"transpose(v{i}, {perm})", lambda v: smelt.transpose(v[i], perm),
                tuple(shape[p] for p in perm))  # fmt: skip
    elif kind == "flatten":
        _append(program, known, f"flatten(v{i})", lambda v: v[i].reshape(-1), (int(np.prod(shape)),))
    elif kind == "slice":
        start = draw(st.integers(0, shape[axis] - 1))
        step = draw(st.sampled_from((1, 2, -1)))
        picked = slice(start, None, step)
        index = tuple(picked if a == axis else slice(None) for a in range(len(shape)))
        out = tuple(len(range(*s.indices(d))) for s, d in zip(index, shape))
        _append(program, known, f"v{i}[{index}]", lambda v: v[i][index], out)
    elif kind == "flip":
        index = tuple(slice(None, None, -1) if a == axis else slice(None) for a in range(len(shape)))
        _append(program, known, f"v{i}[{index}]", lambda v: v[i][index], shape)
    elif kind == "pad":
        widths = [(1, 2) if a == axis else (0, 0) for a in range(len(shape))]
        out = tuple(d + 3 if a == axis else d for a, d in enumerate(shape))
        if np.prod(out) <= MAX_SIZE:
            _append(program, known, f"pad(v{i}, {widths})", lambda v: smelt.pad(v[i], widths, constant_values=0.5), out)
    elif kind == "concat":
        out = tuple(2 * d if a == axis else d for a, d in enumerate(shape))
        if np.prod(out) <= MAX_SIZE:
            _append(program, known, f"concatenate([v{i}, 2 v{i}], {axis})",
                    lambda v: smelt.concatenate([v[i], 2.0 * v[i]], axis=axis), out)  # fmt: skip
    elif kind == "index":
        at = draw(st.integers(-shape[axis], shape[axis] - 1))
        index = tuple(at if a == axis else slice(None) for a in range(len(shape)))
        _append(program, known, f"v{i}[{index}]", lambda v: v[i][index],
                tuple(d for a, d in enumerate(shape) if a != axis))  # fmt: skip
    elif kind == "take":
        indices = draw(st.lists(st.integers(0, shape[axis] - 1), min_size=1, max_size=4))
        out = tuple(len(indices) if a == axis else d for a, d in enumerate(shape))
        _append(program, known, f"take(v{i}, {indices}, {axis})",
                lambda v: smelt.take(v[i], smelt.array(indices), axis=axis), out)  # fmt: skip
    else:
        _append(program, known, f"expand_dims(v{i}, {axis})", lambda v: smelt.expand_dims(v[i], axis),
                (*shape[:axis], 1, *shape[axis:]))  # fmt: skip


def _append(program: Program, known: list, text: str, step: Callable, shape: tuple[int, ...]) -> None:
    program.steps.append((text, step))
    known.append(tuple(int(d) for d in shape))


def arguments_for(program: Program, seed: int, dtype: Any) -> list[np.ndarray]:
    """Arguments without ties, so that sort, max and clip are smooth there."""
    rng = np.random.default_rng(seed)
    return [np.asarray(rng.uniform(-1.3, 1.3, s)).astype(dtype) for s in program.shapes]
