"""Draws graphs of every op of the registry from a seed alone.

An op that has no method of its own here gets operands of one shape, of dtypes that its `infer` takes, and attributes
by their names and types: a new elementwise op, reduction or scan needs no entry.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
import math
import random
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import smelt.ir.ops  # noqa: F401  (fills the registry)
from smelt.ir import dtypes
from smelt.ir.attributes import LITERAL_DTYPES
from smelt.ir.aval import Aval
from smelt.ir.dtypes import DType
from smelt.ir.errors import SmeltError
from smelt.ir.library import Library
from smelt.ir.op import Op, registry
from smelt.ir.ops.fft import SCALES
from smelt.ir.ops.indexing import _MODES

from .exactness import Grade, Known, known_result
from .graphs import Graph, Step, without_dead

#: A step of a graph has one result.
OPS = [op for op in registry.values() if op.kind != "transform" and op.num_results == 1]
#: How often kinds are drawn; others (also kinds that are new) as often as "opaque".
WEIGHTS = {
    "elementwise": 25, "movement": 10, "reduction": 6, "arg_reduction": 2, "scan": 2, "gather": 2, "scatter": 2,
    "contraction": 1, "sort": 1, "library": 3, "random": 1, "constant": 1, "literal": 1, "opaque": 1,
}  # fmt: skip
DTYPES = (dtypes.float32,) * 5 + dtypes.ALL
#: Elements of arrays: how often, and at most how many.
SIZES = ((6, 64), (3, 2000), (1, 100_000))


#: Values of attributes with which `infer` tells which dtypes an op takes.
TRIED = {
    "axes": [(0,)], "axis": [0], "exponent": [2], "reverse": [False], "inclusive": [True], "dtype": dtypes.ALL,
}  # fmt: skip


@functools.cache
def accepted(op: Op) -> tuple[DType, ...]:
    """The dtypes that an elementwise op, a reduction or the like takes as its last operand; others: none."""
    if not op.attrs.keys() <= TRIED.keys():
        return ()
    some = [dict(zip(op.attrs, each)) for each in itertools.product(*(TRIED[a] for a in op.attrs))]
    return tuple(d for d in dtypes.ALL if any(_accepts(op, d, attrs) for attrs in some))


def _accepts(op: Op, dtype: DType, attrs: dict[str, Any]) -> bool:
    try:
        op.infer(*_operand_avals(op, Aval((3,), dtype)), **attrs)
    except SmeltError:
        return False
    return True


def _operand_avals(op: Op, aval: Aval) -> list[Aval]:
    """Operands of one shape and dtype, but for a condition."""
    return [aval.with_dtype(dtypes.bool_) if n == "condition" else aval for n in op.operand_names]


class _TooLargeError(Exception):
    """An argument would have many times the elements of the graph's other values."""


class Draw:
    """Draws one graph; `inside`: no index is out of range."""

    def __init__(self, seed: int, inside: bool = False):
        self.inside = inside
        self.r = random.Random(seed)
        self.arrays = np.random.default_rng(seed)
        self.graph = Graph(seed)
        counts, sizes = zip(*SIZES)
        (self.most,) = self.r.choices(sizes, counts)
        self.special = self.r.random() < 0.4
        self.shape = self.some_shape(self.most)
        self.dtype = self.some_dtype()
        for _ in range(self.r.randint(1, 3)):
            self.argument(self.related_shape(), self.dtype if self.r.random() < 0.7 else self.r.choice(DTYPES))

    # Shapes and elements

    def some_dtype(self) -> DType:
        return self.r.choice(DTYPES)

    def extent(self, most: int) -> int:
        chance = self.r.random()
        if chance < 0.03:
            return 0
        if chance < 0.15 or most < 2:
            return 1
        return min(most, int(math.exp(self.r.uniform(math.log(2), math.log(most + 1)))))

    def some_shape(self, most: int) -> tuple[int, ...]:
        shape: list[int] = []
        for _ in range(self.r.choice((0, 1, 1, 1, 2, 2, 2, 2, 2, 2, 3, 3, 3, 4))):
            shape.append(self.extent(most // math.prod(d or 1 for d in shape)))
        self.r.shuffle(shape)
        return tuple(shape)

    def related_shape(self) -> tuple[int, ...]:
        """The graph's shape, or one that broadcasts to it or is a permutation of it."""
        kind, shape = self.r.randrange(6), self.shape
        if kind < 3:
            return shape
        if kind == 3:
            return tuple(1 if self.r.random() < 0.5 else d for d in shape)
        if kind == 4:
            return shape[self.r.randint(0, len(shape)) :]
        return tuple(self.r.sample(shape, len(shape)))

    def argument(self, shape: Sequence[int], dtype: DType, style: str | None = None) -> int:
        """A new argument; its number."""
        style = style or self.r.choice(("small", "small", "distinct", "real"))
        aval = Aval(tuple(shape), dtype)
        if aval.size > 4 * self.most + 64:
            raise _TooLargeError
        elements, known = self.elements(aval, style)
        self.graph.inputs.append(elements)
        self.graph.steps.append(Step(None, (), {}, aval, known))
        return len(self.graph.steps) - 1

    def elements(self, aval: Aval, style: str) -> tuple[np.ndarray, Known]:
        rng, size, dtype = self.arrays, aval.size, aval.dtype
        if dtype.kind == "b":
            return np.asarray(rng.random(aval.shape) < 0.5), Known()
        if dtype.is_integer:
            info = np.iinfo(dtype.numpy)
            low, high = (info.min, info.max) if style == "real" else (-4 if dtype.kind == "i" else 0, 5)
            x = rng.integers(low, high, aval.shape, dtype.numpy, endpoint=True)
            return np.asarray(x), Known(bound=float(max(abs(low), high)))
        real = style == "real"
        if real:
            x = rng.uniform(-1.5, 1.5, aval.shape)
        elif style == "distinct" and size <= 120:
            x = (rng.permutation(size) - size // 2).reshape(aval.shape).astype(float)
        else:
            x = rng.integers(-3, 4, aval.shape).astype(float)
        if dtype.is_complex:
            x = x + 1j * (rng.uniform(-1.5, 1.5, aval.shape) if real else rng.integers(-3, 4, aval.shape))
            return np.asarray(x).astype(dtype.numpy), Known(Grade.EXACT if real else Grade.INTEGRAL, 4.0, signed=real)
        x = np.asarray(x)
        if self.special:
            chosen = rng.choice([np.inf, -np.inf, np.nan, 0.0, -0.0], aval.shape)
            x = np.where(rng.random(aval.shape) < 0.2, chosen, x)
        bound = max(3.0, size / 2 + 1) if style == "distinct" and size <= 120 else 3.0
        return np.asarray(x.astype(dtype.numpy)), Known(Grade.EXACT if real else Grade.INTEGRAL, bound, self.special)

    # Values

    def aval(self, i: int) -> Aval:
        return self.graph.steps[i].aval

    def pick(self, fits: Callable[[Aval], bool] | None = None) -> int:
        """A value, one of the last ones more often; if some fit, mostly one of them."""
        numbers = list(range(len(self.graph.steps)))
        if fits is not None and self.r.random() < 0.9:
            numbers = [i for i in numbers if fits(self.aval(i))] or numbers
        return max(self.r.choice(numbers), self.r.choice(numbers)) if self.r.random() < 0.7 else self.r.choice(numbers)

    def step(self, op: Op, operands: Sequence[int], attrs: dict[str, Any]) -> int | None:
        """Append an op if it takes these operands and leaves something that can be compared; its number."""
        steps = self.graph.steps
        avals = [steps[i].aval for i in operands]
        try:
            (out,) = op.infer_checked(avals, attrs)
        except SmeltError:
            return None
        known = known_result(op, [steps[i].known for i in operands], avals, attrs, out)
        if known is None or out.size > 1.5 * self.most + 8:
            return None
        steps.append(Step(op, tuple(operands), attrs, out, known))
        return len(steps) - 1

    def fit(self, i: int, aval: Aval) -> int | None:
        """A value of this type made from another one by conversion and movement."""
        found: int | None = i
        if self.aval(i).dtype is not aval.dtype:
            found = self.step(registry["convert"], [i], {"dtype": aval.dtype})
        if found is None or self.aval(found).shape == aval.shape:
            return found
        same = self.aval(found).size == aval.size
        return self.step(registry["reshape" if same else "broadcast"], [found], {"shape": aval.shape})

    def other(self, aval: Aval, style: str | None = None) -> int:
        """A value of this type: made from one that is there, or a new argument."""
        same = self.r.random() < 0.8
        i = self.pick(lambda a: a == aval if same else a.dtype is aval.dtype and a.size <= aval.size)
        found = self.fit(i, aval) if self.aval(i).dtype is aval.dtype or self.r.random() < 0.3 else None
        return self.argument(aval.shape, aval.dtype, style) if found is None else found

    # Ops

    def op(self, among: Sequence[Op] = OPS) -> None:
        """Append one of these ops, if the operands that are drawn fit."""
        op = self.some_op(among)
        by_name = getattr(self, f"_{op.name}", None)
        with contextlib.suppress(_TooLargeError):
            if by_name is not None:
                by_name(op)
            elif isinstance(op, Library):
                self.library(op)
            else:
                self.plain(op)

    def some_op(self, among: Sequence[Op]) -> Op:
        kinds = sorted({op.kind for op in among})
        (kind,) = self.r.choices(kinds, [WEIGHTS.get(k, WEIGHTS["opaque"]) for k in kinds])
        return self.r.choice([op for op in among if op.kind == kind])

    def plain(self, op: Op) -> None:
        """An op whose operands have one shape, with attributes by their names and types."""
        takes = accepted(op)
        i = self.pick(lambda a: a.dtype in takes)
        if takes and self.aval(i).dtype not in takes:
            converted = self.step(registry["convert"], [i], {"dtype": self.r.choice(takes)})
            if converted is None:
                return
            i = converted
        wanted = _operand_avals(op, self.aval(i))
        operands = [self.other(a) for a in wanted[:-1]] + [i]
        if len(operands) == 2 and self.r.random() < 0.5:
            operands.reverse()
        attrs = {name: self.attribute(name, spec.type, self.aval(i)) for name, spec in op.attrs.items()}
        if op.name == "bitcast":
            attrs["dtype"] = self.r.choice([d for d in dtypes.ALL if d.size == self.aval(i).dtype.size])
        self.step(op, operands, attrs)

    def library(self, op: Library) -> None:
        """An op that is not defined everywhere, on new arguments for which it is; or on those of its dtypes."""
        extents = {name: self.extent(5) for core in op.core_operands for name in core}
        lead = self.some_shape(8)[:2]
        dtype = self.r.choice(op.accepts)
        avals = [Aval((*lead, *(extents[name] for name in core)), dtype) for core in op.core_operands]
        attrs = {name: self.attribute(name, spec.type, avals[0]) for name, spec in op.attrs.items()}
        if op.name == "irfft":
            attrs["n"] = max(1, 2 * extents["k"] - self.r.randint(1, 2))
        operands = [self.argument(a.shape, a.dtype, "real") for a in avals]
        self.graph.inputs[-len(avals) :] = op.sample(self.arrays, *avals, **attrs)
        for i in operands:
            self.graph.steps[i].known = Known(Grade.EXACT, 4.0)
        self.step(op, operands, attrs)

    def attribute(self, name: str, kind: str, aval: Aval) -> Any:
        r, ndim = self.r, aval.ndim
        if name == "axes":
            return tuple(sorted(r.sample(range(ndim), r.randint(0, ndim))))
        if kind == "Bool":
            return r.random() < 0.5
        if kind == "Element":
            return r.choice(dtypes.ALL)
        if name == "scale":
            return r.choice(list(SCALES))
        if name == "rtol":
            return 1e-5
        if kind == "Int":
            return r.randint(-2, 4) if name == "exponent" else r.randrange(max(1, ndim))
        raise NotImplementedError(f"no values for attributes {name}: {kind}; say how in graphs.py")

    def _constant(self, op: Op) -> None:
        dtype = self.r.choice(DTYPES)
        value = self.r.choice((0, 1, 2, 3) if not dtype.is_float else (0.0, -0.0, 1.0, -1.0, 2.0, 3.0))
        if not dtype.is_inexact:
            value = bool(value) if dtype.kind == "b" else int(value)
        found = self.step(op, [], {"value": value, "dtype": dtype})
        if found is not None:
            self.step(registry["broadcast"], [found], {"shape": self.related_shape()})

    def _literal(self, op: Op) -> None:
        shape = self.related_shape()
        if math.prod(shape) <= 64:
            elements, _ = self.elements(Aval(shape, self.r.choice(sorted(LITERAL_DTYPES, key=str))), "small")
            self.step(op, [], {"value": elements})

    def _iota(self, op: Op) -> None:
        shape = self.related_shape()
        attrs = {"shape": shape, "axis": self.r.randrange(max(1, len(shape))), "dtype": self.r.choice(dtypes.ALL)}
        self.step(op, [], attrs)

    def _reshape(self, op: Op) -> None:
        i = self.pick()
        shape, size = self.aval(i).shape, self.aval(i).size
        factors = [d for d in range(1, 10) if size and size % d == 0]
        first = self.r.choice(factors) if factors else 0
        second = self.r.choice([d for d in factors if size // first % d == 0]) if factors else 0
        split = (first, second, size // max(1, first * second))
        squeezed = tuple(d for d in shape if d != 1)
        choices = [(size,), split, squeezed, (1, *shape), (*shape, 1), (first, size // max(first, 1))]
        self.step(op, [i], {"shape": self.r.choice(choices)})

    def _transpose(self, op: Op) -> None:
        i = self.pick()
        ndim = self.aval(i).ndim
        self.step(op, [i], {"permutation": tuple(self.r.sample(range(ndim), ndim))})

    def _broadcast(self, op: Op) -> None:
        i = self.pick()
        shape = [self.extent(8) if d == 1 and self.r.random() < 0.7 else d for d in self.aval(i).shape]
        lead = [self.extent(8)] if self.r.random() < 0.4 else []
        self.step(op, [i], {"shape": (*lead, *shape)})

    def _slice(self, op: Op) -> None:
        i = self.pick()
        start, stop, stride = [], [], []
        for d in self.aval(i).shape:
            whole = self.r.random() < 0.4
            a = 0 if whole else self.r.randint(0, d)
            start.append(a)
            stop.append(d if whole or self.r.random() < 0.5 else self.r.randint(a, d))
            stride.append(self.r.choice((1, 1, 1, 2, 3, 7)))
        self.step(op, [i], {"start": tuple(start), "stop": tuple(stop), "stride": tuple(stride)})

    def _pad(self, op: Op) -> None:
        i = self.pick()
        value = self.other(Aval((), self.aval(i).dtype), "small")
        low, high, interior = (
            tuple(self.r.choice((0, 0, 0, 1, 2, most)) for _ in self.aval(i).shape) for most in (5, 240, 2)
        )
        plain = self.r.random() < 0.7
        self.step(op, [i, value], {"low": low, "high": high, "interior": tuple(0 for _ in low) if plain else interior})

    def _concatenate(self, op: Op) -> None:
        i = self.pick()
        shape = self.aval(i).shape
        axis = self.r.randrange(max(1, len(shape)))
        more = tuple(self.extent(2 * d + 1) if a == axis and self.r.random() < 0.6 else d for a, d in enumerate(shape))
        operands = [i, self.other(Aval(more, self.aval(i).dtype))]
        self.r.shuffle(operands)
        self.step(op, operands, {"axis": axis})

    def windows(self, shape: tuple[int, ...]) -> tuple[tuple[int, ...], list[int], tuple[int, ...]]:
        """Axes in which places are looked up, index arrays of one type, and sizes of windows."""
        axes = tuple(self.r.sample(range(len(shape)), self.r.randint(min(1, len(shape)), min(3, len(shape)))))
        if self.r.random() < 0.5:
            axes = tuple(sorted(axes))
        sizes = tuple(
            (1 if self.r.random() < 0.7 else self.r.randint(0, d)) if a in axes and d else d
            for a, d in enumerate(shape)
        )
        where = tuple(self.extent(6) for _ in range(self.r.choice((0, 1, 1, 1, 2))))
        dtype = self.r.choice((dtypes.int32, dtypes.int32, *dtypes.INTEGERS))
        if not self.inside:
            return axes, [self.other(Aval(where, dtype), "small") for _ in axes], sizes
        return axes, [self.indices(Aval(where, dtype), shape[a] - sizes[a]) for a in axes], sizes

    def indices(self, aval: Aval, high: int) -> int:
        """An argument whose elements lie within 0 … high."""
        found = self.argument(aval.shape, aval.dtype, "small")
        high = min(high, np.iinfo(aval.dtype.numpy).max)
        self.graph.inputs[-1] = np.asarray(self.arrays.integers(0, high, aval.shape, np.int64, True)).astype(
            aval.dtype.numpy
        )
        self.graph.steps[found].known = Known(bound=float(max(1, high)))
        return found

    def _gather(self, op: Op) -> None:
        i = self.pick()
        axes, indices, sizes = self.windows(self.aval(i).shape)
        self.step(op, [i, *indices], {"axes": axes, "slice_sizes": sizes})

    def _scatter(self, op: Op) -> None:
        i = self.pick()
        axes, indices, sizes = self.windows(self.aval(i).shape)
        where = self.aval(indices[0]).shape if indices else ()
        updates = self.other(Aval((*where, *sizes), self.aval(i).dtype))
        self.step(op, [i, updates, *indices], {"axes": axes, "mode": self.r.choice(list(_MODES))})

    def _dot_general(self, op: Op) -> None:
        i = self.pick()
        x = self.aval(i)
        axes = self.r.sample(range(x.ndim), x.ndim)
        contracting = tuple(axes[: self.r.randint(0, min(2, x.ndim))])
        batch = tuple(axes[len(contracting) :][: self.r.choice((0, 0, 1))])
        free = [self.extent(40) for _ in range(self.r.randint(0, 2))]
        shape = [x.shape[a] for a in (*batch, *contracting)] + free
        order = self.r.sample(range(len(shape)), len(shape))  # axis n of rhs is shape[order[n]]
        rhs = self.other(Aval(tuple(shape[n] for n in order), x.dtype))
        place = {n: axis for axis, n in enumerate(order)}
        there = [place[n] for n in range(len(batch) + len(contracting))]
        attrs = {
            "lhs_contracting": contracting, "rhs_contracting": tuple(there[len(batch) :]),
            "lhs_batch": batch, "rhs_batch": tuple(there[: len(batch)]),
        }  # fmt: skip
        self.step(op, [i, rhs], attrs)

    _wide_dot_general = _dot_general

    def _conv_general(self, op: Op) -> None:
        i = self.pick(lambda a: 2 <= a.ndim <= 4)
        x = self.aval(i)
        if x.ndim < 2:
            return
        groups = self.r.choice([d for d in (1, 1, 2, 3) if x.shape[-1] % d == 0])
        taps = [self.r.randint(1, 4) for _ in x.shape[1:-1]]
        w = self.other(Aval((groups * self.r.randint(0, 5), *taps, x.shape[-1] // groups), x.dtype), "small")
        sizes = [tuple(self.r.choice((1, 1, 2, 3)) for _ in taps) for _ in range(3)]
        sides = [tuple(self.r.choice((-1, 0, 0, 1, 2, 5)) for _ in taps) for _ in range(2)]
        attrs = {
            "window_strides": sizes[0], "kernel_dilation": sizes[1], "input_dilation": sizes[2],
            "padding_low": sides[0], "padding_high": sides[1], "feature_groups": groups,
        }  # fmt: skip
        self.step(op, [i, w], attrs)

    def _random_bits(self, op: Op) -> None:
        lead = (self.extent(3),) if self.r.random() < 0.2 else ()
        key = self.other(Aval((*lead, 2), dtypes.uint32), "real")
        self.step(op, [key], {"shape": self.related_shape(), "width": self.r.choice((8, 16, 32, 64))})


def graph(seed: int, least: int = 3, most: int = 10, inside: bool = False) -> Graph:
    """The graph of a seed, of about `least` to `most` drawn ops and of those that make their operands fit.

    Args:
        inside: no index is out of range, so that checked kernels raise nothing.
    """
    draw = Draw(seed, inside)
    for _ in range(draw.r.randint(least, most)):
        draw.op()
    return finished(draw)


def finished(draw: Draw) -> Graph:
    """What was drawn, with results: what nothing reads, and some other values."""
    steps = draw.graph.steps
    used = {i for s in steps for i in s.operands}
    ends = [i for i in range(len(steps)) if i not in used]
    results = draw.r.sample(range(len(steps)), min(len(steps), draw.r.randint(0, 3)))
    draw.graph.returns = [*ends[-4:], *results] or [len(steps) - 1]
    return without_dead(draw.graph)
