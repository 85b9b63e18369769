"""Draws graphs in which a pattern may match: few ops, constants, parts that meet, axes as long as each other."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from smelt.ir import dtypes
from smelt.ir.aval import Aval
from smelt.ir.dtypes import DType
from smelt.ir.op import Op, registry

from .drawing import OPS, Draw, accepted, finished
from .graphs import Graph, without_dead


class DrawAlike(Draw):
    """Draws graphs of few ops on small arrays whose axes are as long as each other, so that attributes meet."""

    SHAPES = ((3, 3), (3, 3), (2, 2), (2, 2, 2), (3, 3, 3), (4,), (6,), (3, 1, 3), (1, 4), (), (0, 3), (2, 3))
    NUMBERS = (0, 0, 1, 1, 2, 3, 4, 5)

    def some_shape(self, most: int) -> tuple[int, ...]:
        return self.r.choice(self.SHAPES)

    def __init__(self, seed: int, ops: Sequence[Op], inside: bool = False):
        self.ops = ops
        super().__init__(seed, inside)
        self.fills = self.r.choice((0.0, 0.05, 0.4))  #: how often operands are one number

    def some_op(self, among: Sequence[Op]) -> Op:
        return self.r.choice(among)

    def some_dtype(self) -> DType:
        """Mostly one that some of the ops take."""
        takes = accepted(self.r.choice(self.ops))
        if takes and self.r.random() < 0.6:
            return self.r.choice(takes)
        return self.r.choice((dtypes.float32, dtypes.int32, dtypes.bool_, dtypes.bool_, *dtypes.ALL))

    def pick(self, fits: Callable[[Aval], bool] | None = None) -> int:
        found = self.filled(self.shape, self.dtype) if self.r.random() < self.fills / 3 else None
        return super().pick(fits) if found is None else found

    def extent(self, most: int) -> int:
        return self.r.choice((0, 1, 2, 3, 3))

    def related_shape(self) -> tuple[int, ...]:
        return self.shape if self.r.random() < 0.7 else super().related_shape()

    def other(self, aval: Aval, style: str | None = None) -> int:
        """Often one number everywhere."""
        found = self.filled(aval.shape, aval.dtype) if self.r.random() < self.fills else None
        return super().other(aval, style) if found is None else found

    def filled(self, shape: tuple[int, ...], dtype: DType) -> int | None:
        value: Any = self.r.choice(self.NUMBERS)
        if dtype.is_float:
            value = self.r.choice((float(value), float(value), -float(value), self.r.choice((0.5, math.inf, math.nan))))
        elif dtype.kind == "b":
            value = bool(value)
        elif dtype.kind == "i" and self.r.random() < 0.3:
            value = -value
        found = self.step(registry["constant"], [], {"value": value, "dtype": dtype})
        return self.step(registry["broadcast"], [found], {"shape": shape}) if found is not None and shape else found

    def _constant(self, op: Op) -> None:
        self.filled(self.shape, self.r.choice((self.dtype, self.aval(self.pick()).dtype, dtypes.bool_)))

    def _reshape(self, op: Op) -> None:
        """Often two axes beside each other as one."""
        i = self.pick()
        shape = self.aval(i).shape
        if len(shape) < 2 or self.r.random() < 0.5:
            return super()._reshape(op)
        axis = self.r.randrange(len(shape) - 1)
        self.step(op, [i], {"shape": (*shape[:axis], shape[axis] * shape[axis + 1], *shape[axis + 2 :])})
        return None

    def _slice(self, op: Op) -> None:
        """Often all but the ends of axes, or a part of one axis."""
        i = self.pick()
        shape = self.aval(i).shape
        kind = self.r.randrange(3)
        if kind == 0:
            return super()._slice(op)
        start, stop, stride = [0] * len(shape), list(shape), [1] * len(shape)
        for axis, d in enumerate(shape):
            if kind == 1 or axis == self.r.randrange(len(shape)):
                start[axis] = min(d, self.r.choice((0, 1, 1, 2)))
                stop[axis] = max(start[axis], d - self.r.choice((0, 1, 1, 2)))
                stride[axis] = self.r.choice((1, 1, 2))
        self.step(op, [i], {"start": tuple(start), "stop": tuple(stop), "stride": tuple(stride)})
        return None

    def _pad(self, op: Op) -> None:
        i = self.pick()
        value = self.other(Aval((), self.aval(i).dtype), "small")
        low, high = (tuple(self.r.choice((0, 1, 1, 2)) for _ in self.aval(i).shape) for _ in range(2))
        self.step(op, [i, value], {"low": low, "high": high, "interior": (0,) * len(low)})

    def _concatenate(self, op: Op) -> None:
        """Often of two parts of one value that meet, or nearly do."""
        i = self.pick(lambda a: a.ndim > 0)
        shape = self.aval(i).shape
        if not shape or self.r.random() < 0.4:
            return super()._concatenate(op)
        axis = self.r.randrange(len(shape))
        extent, stride = shape[axis], self.r.choice((1, 2))
        first = self.r.randint(0, min(1, extent))
        seam = min(extent, first + self.r.randint(1, 4))
        parts = []
        for a, z in ((first, seam), (seam, extent)):
            start, stop = [0] * len(shape), list(shape)
            start[axis], stop[axis] = a, z
            strides = tuple(stride if n == axis else 1 for n in range(len(shape)))
            attrs = {"start": tuple(start), "stop": tuple(stop), "stride": strides}
            parts.append(self.step(registry["slice"], [i], attrs))
        self.step(op, [p for p in parts if p is not None], {"axis": axis})
        return None


def graph_of(seed: int, roots: Sequence[Op], others: Sequence[Op]) -> Graph:
    """A graph of a few of `others` below one of `roots`, which may be below itself."""
    draw = DrawAlike(seed, [*others, *roots])
    roots = [draw.r.choice(roots)]
    others = [*others, roots[0]]
    for _ in range(draw.r.randint(1, 4)):
        draw.op(others)
    for _ in range(3):
        before = len(draw.graph.steps)
        draw.op(roots)
        if len(draw.graph.steps) > before and draw.graph.steps[-1].op in roots:
            break
    draw.graph.returns = [len(draw.graph.steps) - 1]
    return without_dead(draw.graph)


def graph_alike(seed: int, inside: bool = False) -> Graph:
    """A graph of any ops, some of them in most of its places."""
    draw = DrawAlike(seed, OPS, inside)
    favourites = draw.r.sample(OPS, 4)
    for _ in range(draw.r.randint(4, 12)):
        draw.op(favourites if draw.r.random() < 0.6 else OPS)
    return finished(draw)
