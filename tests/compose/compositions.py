"""Random nests of transformations: functions (v, w) → v made of leaves, of each other, and of their derivatives.

A nest can be carried out in two ways that should agree: `Direct` calls smelt's transformations, `Plain` says what
they mean with the fewest others: loops for batches, forward mode for gradients, nothing for `compile`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from hypothesis import strategies as st

import smelt

#: Functions of two arrays of one shape, of any rank; smooth but for kinks that random points miss.
LEAVES: dict[str, Callable[[Any, Any], Any]] = {
    "tanh": lambda v, w: smelt.tanh(v * w + 0.1),
    "sin": lambda v, w: smelt.sin(v) + 0.3 * w,
    "mix": lambda v, w: 0.5 * v - 0.25 * w * w,
    "dot": lambda v, w: v * smelt.tanh((v * w).sum()),
    "square": lambda v, w: (v * v - 0.5) * smelt.sigmoid(w),
    "where": lambda v, w: smelt.where(v > w, v * w, 0.5 * w - v),
    "maximum": lambda v, w: smelt.maximum(v * 0.8, w) + smelt.minimum(v, 0.3) * 0.2,
    "clip": lambda v, w: smelt.clip(v, -0.7, 0.6) * w + 0.1 * v,
    "stop": lambda v, w: v * smelt.stop_gradient(smelt.cos(w)) + 0.1 * w,
    "power": lambda v, w: (v * v + 0.5) ** 1.5 * 0.3 + (w * w + 0.2) ** v,
    "steps": lambda v, w: v + 0.1 * smelt.floor(w * 3.0) * v,
}

#: The same for arrays that have an axis.
AXIS_LEAVES: dict[str, Callable[[Any, Any], Any]] = {
    "softmax": lambda v, w: smelt.softmax(v + w, axis=-1) * 2.0 - 0.5,
    "logsumexp": lambda v, w: v - 0.5 * smelt.logsumexp(v * w, axis=0, keepdims=True),
    "cumsum": lambda v, w: smelt.cumsum(v * 0.3, axis=-1) + w * 0.1,
    "cumprod": lambda v, w: smelt.cumprod(1.0 + 0.3 * v, axis=0, reverse=True) * w,
    "cummax": lambda v, w: smelt.cummax(v, axis=0) * 0.5 + w * v,
    "sort": lambda v, w: smelt.sort(v, axis=-1) * w,
    "argsort": lambda v, w: smelt.take_along_axis(v, smelt.argsort(w, axis=0), axis=0) + 0.2 * v,
    "roll": lambda v, w: smelt.concatenate([v[1:], w[:1]], axis=0) * 0.7,
    "flip": lambda v, w: v[::-1] * 0.9 + 0.1 * w,
    "gather": lambda v, w: smelt.take(v, smelt.argsort(-w.reshape(-1)) % v.shape[0], axis=0)[: v.shape[0]] * 0.6 + w,
    "max": lambda v, w: v - 0.5 * smelt.max(v * w, axis=-1, keepdims=True),
    "prod": lambda v, w: v * smelt.prod(0.5 + 0.4 * w, axis=0, keepdims=True) + 0.1 * w,
    "matmul": lambda v, w: smelt.tensordot(v, w, [[0], [0]]).mean() * v + 0.1 * w,
    "norm": lambda v, w: v / smelt.sqrt((v * v).sum(axis=-1, keepdims=True) + 0.3) + 0.2 * w,
    "add at": lambda v, w: v.at[smelt.array([0, -1, 0])].add(0.2 * w[:1]),
    "multiply at": lambda v, w: v.at[smelt.array([-1])].multiply(w[:1]),
    "maximum at": lambda v, w: v.at[0].maximum(w[-1]) * 0.9,
    "set": lambda v, w: _set(v, w),
    "pad": lambda v, w: smelt.pad(v, [(1, 0)] + [(0, 0)] * (v.ndim - 1))[: v.shape[0]] + w * 0.4,
    "var": lambda v, w: v * smelt.var(w, axis=0, keepdims=True) + 0.3 * w,
}

#: Leaves through other dtypes: they are as precise as these.
COARSE: dict[str, Callable[[Any, Any], Any]] = {
    "single": lambda v, w: smelt.sin(v.astype(smelt.float32)).astype(v.dtype) + w,
    "half": lambda v, w: v + 0.1 * smelt.tanh(w.astype(smelt.float16)).astype(v.dtype),
    "bfloat": lambda v, w: v - 0.1 * (v.astype(smelt.bfloat16) * 2).astype(v.dtype),
    "integer": lambda v, w: v + 0.1 * (w * 4).astype(smelt.int32).astype(v.dtype),
    "complex": lambda v, w: smelt.real(smelt.exp(1j * v) * smelt.sin(w + 0.5j)).astype(v.dtype) * 0.3,
    "modulus": lambda v, w: smelt.abs(v.astype(smelt.complex64) + 1j * w).astype(v.dtype),
}

#: Parts of a nest that hold others.
WRAPPERS = ("grad", "grad w", "value_and_grad", "jvp", "vjp", "hvp", "linearize", "checkpoint", "compile", "vmap")


def _set(v: Any, w: Any) -> Any:
    v = v * 1.0
    v[0] = w[-1] * 0.5
    v[-1] += 0.3 * w[0]
    return v


@dataclass
class Nest:
    """A function (v, w) → v. `kind`: the name of a leaf, "seq", or one of WRAPPERS around `parts`.

    `axes`: of "vmap", where the mapped axis stands in v, in w (None: not mapped), and in the result.
    """

    kind: str
    parts: list[Nest] = field(default_factory=list)
    axes: tuple[int, int | None, int] | None = None

    def run(self, v: Any, w: Any, way: Any) -> Any:
        for leaves in (LEAVES, AXIS_LEAVES, COARSE):
            if self.kind in leaves:
                return leaves[self.kind](v, w)
        if self.kind == "seq":
            for part in self.parts:
                v = part.run(v, w, way)
            return v
        body = lambda v, w: self.parts[0].run(v, w, way)  # noqa: E731
        if self.kind == "vmap":
            assert self.axes is not None
            return _map(way.vmap, body, self.axes, v, w)
        return getattr(way, self.kind.replace(" ", "_"))(body, v, w)

    @property
    def size(self) -> int:
        return 1 + sum(p.size for p in self.parts)

    @property
    def depth(self) -> int:
        return (self.kind in WRAPPERS) + max((p.depth for p in self.parts), default=0)


def _map(vmap: Callable, body: Callable, axes: tuple[int, int | None, int], v: Any, w: Any) -> Any:
    """`body` over an axis of v: elements of v lie along axes[0], of w along axes[1], of the result along axes[2]."""
    given, of_w, out = axes
    w = w[(slice(None),) * given + (0,)] if of_w is None else smelt.moveaxis(w, given, of_w)
    return smelt.moveaxis(vmap(body, v, w, given, of_w, out), out, given)


def _score(body: Callable) -> Callable:
    """A scalar of a function, which weighs the elements of the result differently."""

    def score(v: Any, w: Any) -> Any:
        y = body(v, w)
        return (smelt.sin(y) * smelt.arange(1.0, y.size + 1.0, dtype=y.dtype).reshape(y.shape)).sum() / y.size

    return score


def _tame(x: Any) -> Any:
    return smelt.tanh(x)


class Direct:
    """Transformations by smelt's functions."""

    @staticmethod
    def grad(body: Callable, v: Any, w: Any) -> Any:
        return _tame(smelt.grad(_score(body))(v, w))

    @staticmethod
    def grad_w(body: Callable, v: Any, w: Any) -> Any:
        return _tame(smelt.grad(_score(body), argnums=1)(v, w))

    @staticmethod
    def value_and_grad(body: Callable, v: Any, w: Any) -> Any:
        value, (to_v, to_w) = smelt.value_and_grad(_score(body), argnums=(0, 1))(v, w)
        return _tame(value * to_v - to_w)

    @staticmethod
    def jvp(body: Callable, v: Any, w: Any) -> Any:
        (y,), (t,) = smelt.jvp(body, [v, w], [w, v])
        return _tame(y + t)

    @staticmethod
    def vjp(body: Callable, v: Any, w: Any) -> Any:
        (y,), (to_v, to_w) = smelt.vjp(body, [v, w], [v + w])
        return _tame(y + to_v - 0.5 * to_w)

    @staticmethod
    def hvp(body: Callable, v: Any, w: Any) -> Any:
        return _tame(smelt.jvp(smelt.grad(lambda v: _score(body)(v, w)), [v], [w])[1][0])

    @staticmethod
    def linearize(body: Callable, v: Any, w: Any) -> Any:
        y, push = smelt.linearize(lambda v: body(v, w), v)
        return _tame(y + push(w) - push(v * w))

    @staticmethod
    def checkpoint(body: Callable, v: Any, w: Any) -> Any:
        return smelt.checkpoint(body)(v, w)

    @staticmethod
    def compile(body: Callable, v: Any, w: Any) -> Any:
        return smelt.compile(body)(v, w)

    @staticmethod
    def vmap(body: Callable, v: Any, w: Any, given: int, of_w: int | None, out: int) -> Any:
        return smelt.vmap(body, in_axes=(given, of_w), out_axes=out)(v, w)


class Plain:
    """The same with forward mode and loops alone."""

    @staticmethod
    def _push(f: Callable, v: Any, w: Any, tv: Any, tw: Any) -> tuple[Any, Any]:
        (y,), (t,) = smelt.jvp(f, [v, w], [tv, tw])
        return y, t

    @staticmethod
    def _pull(f: Callable, v: Any, w: Any, to_v: bool, y: Any = 1.0) -> Any:
        """ȳ·J with respect to v or w, an element at a time: a directional derivative for each."""
        x = v if to_v else w
        zero = smelt.zeros_like(x)
        slopes = []
        for i in range(x.size):
            e = smelt.array(np.eye(1, x.size, i).reshape(x.shape), x.dtype)
            slopes.append((Plain._push(f, v, w, *((e, zero) if to_v else (zero, e)))[1] * y).sum())
        return smelt.stack(slopes).reshape(x.shape)

    @staticmethod
    def grad(body: Callable, v: Any, w: Any) -> Any:
        return _tame(Plain._pull(_score(body), v, w, True))

    @staticmethod
    def grad_w(body: Callable, v: Any, w: Any) -> Any:
        return _tame(Plain._pull(_score(body), v, w, False))

    @staticmethod
    def value_and_grad(body: Callable, v: Any, w: Any) -> Any:
        f = _score(body)
        return _tame(f(v, w) * Plain._pull(f, v, w, True) - Plain._pull(f, v, w, False))

    @staticmethod
    def jvp(body: Callable, v: Any, w: Any) -> Any:
        """J·ẋ is linear in ẋ: of two halves."""
        y, t = Plain._push(body, v, w, 0.5 * w, 0.5 * v)
        return _tame(y + 2.0 * t)

    @staticmethod
    def vjp(body: Callable, v: Any, w: Any) -> Any:
        to_v, to_w = (Plain._pull(body, v, w, which, v + w) for which in (True, False))
        return _tame(body(v, w) + to_v - 0.5 * to_w)

    @staticmethod
    def hvp(body: Callable, v: Any, w: Any) -> Any:
        """The Hessian times w as the slope of the gradient by forward mode."""
        gradient = lambda v, u: Plain._pull(lambda v, _: _score(body)(v, w), v, u, True)  # noqa: E731
        return _tame(Plain._push(gradient, v, w, w, smelt.zeros_like(w))[1])

    @staticmethod
    def linearize(body: Callable, v: Any, w: Any) -> Any:
        y, t = Plain._push(lambda v, _: body(v, w), v, w, w - v * w, smelt.zeros_like(w))
        return _tame(y + t)

    @staticmethod
    def checkpoint(body: Callable, v: Any, w: Any) -> Any:
        return body(v, w)

    @staticmethod
    def compile(body: Callable, v: Any, w: Any) -> Any:
        return body(v, w)

    @staticmethod
    def vmap(body: Callable, v: Any, w: Any, given: int, of_w: int | None, out: int) -> Any:
        def element(x: Any, axis: int | None, i: int) -> Any:
            return x if axis is None else x[(slice(None),) * axis + (i,)]

        rows = [body(element(v, given, i), element(w, of_w, i)) for i in range(v.shape[given])]
        return smelt.stack(rows, axis=out)


SHAPES = ((), (3,), (2, 3), (3, 1), (2, 2, 2))


@st.composite
def nests(draw: Any, ndim: int, depth: int, coarse: bool = False, of: tuple[str, ...] = WRAPPERS) -> Nest:
    """A nest for arrays of `ndim` axes, at most `depth` transformations deep."""
    leaves = sorted(LEAVES) + (sorted(AXIS_LEAVES) if ndim else []) + (sorted(COARSE) if coarse else [])
    kinds = [k for k in of if k != "vmap"] + ["vmap"] * (3 if ndim and "vmap" in of else 0)
    if depth <= 0:
        return Nest(draw(st.sampled_from(leaves)))
    parts = [Nest(draw(st.sampled_from(leaves))) for _ in range(draw(st.integers(0, 2)))]
    kind = draw(st.sampled_from(kinds))
    inner = draw(nests(ndim - (kind == "vmap"), draw(st.integers(0, depth - 1)), coarse, of))
    axes = None
    if kind == "vmap":
        axis = st.integers(0, ndim - 1)
        axes = (draw(axis), draw(st.none() | axis), draw(axis))
    parts.insert(draw(st.integers(0, len(parts))), Nest(kind, [inner], axes))
    return parts[0] if len(parts) == 1 else Nest("seq", parts)


@st.composite
def nested_programs(draw: Any, depth: int, coarse: bool = False, of: tuple[str, ...] = WRAPPERS,
                    largest: int = 8) -> tuple[Nest, tuple[int, ...]]:  # fmt: skip
    """A nest and the shape of its arguments."""
    shape = draw(st.sampled_from([s for s in SHAPES if int(np.prod(s)) <= largest]))
    return draw(nests(len(shape), depth, coarse, of)), shape


def operands(shape: tuple[int, ...], seed: int, dtype: Any = np.float64) -> list[Any]:
    """v and w, in general position."""
    rng = np.random.default_rng(seed)
    return [smelt.array(np.asarray(rng.uniform(-1.1, 1.1, shape)), dtype) for _ in range(2)]
