"""Scans and scatters of a fusion: operands, loops, where updates go.

No target's: schedules of all backends start from it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from smelt.ir.builder import Function, OpView, Value
from smelt.ir.dtypes import DType
from smelt.ir.index import Index, linearize, variables
from smelt.ir.ops.indexing import Scatter
from smelt.ir.ops.scan_sort import Cumulative
from smelt.ir.scalar import Scalar
from smelt.passes.kernels.analysis import collect_reads

from .lowering import Coordinates, Fused, FusionKernel, fuse_variables

#: Where each value is read.
Reads = dict[Value, dict[Coordinates, None]]


def reads_of(body: Function, roots: Sequence[tuple[Value, Coordinates]]) -> tuple[Reads, list[Index]]:
    """All that computing `roots` reads, and every index that becomes a number."""
    uses: list[Index] = [linearize(at, v.shape) for v, at in roots]
    reads = collect_reads(body.ops, roots, uses)
    uses += [linearize(at, v.shape) for v in body.arguments for at in reads.get(v, ())]
    return reads, uses


@dataclass
class ScanPlan:
    """A scan of a fusion, and its loop variables.

    Attributes:
        place: of an element of x, and of the result, in the order of the scan.
        before, after: loops over the axes outside the scanned one, and inside it.
        along: the scanned axis.
    """

    body: Function
    op: OpView
    place: Coordinates
    before: list[Fused]
    along: Fused
    after: list[Fused]

    @classmethod
    def of(cls, body: Function, reversed_place: bool = False) -> Any:
        """The plan of a fusion that ends in a scan; with `reversed_place`, `place` turns a reverse scan around."""
        op = body.returns[0].owner
        assert op is not None
        shape, axis = op.operands[0].shape, op.attrs["axis"]
        place = list(variables(shape, "o"))
        if reversed_place and op.attrs["reverse"]:
            place[axis] = (shape[axis] - 1) - place[axis]
        _, uses = reads_of(body, [(op.operands[0], tuple(place))])
        kept = [(a, (f"o{a}", d)) for a, d in enumerate(shape) if a != axis and d != 1]
        # Axes on both sides of the scanned one are not neighbours, so they must not merge.
        before = fuse_variables([v for a, v in kept if a < axis], uses)
        after = fuse_variables([v for a, v in kept if a > axis], uses)
        return cls(body, op, tuple(place), before, Fused([(f"o{axis}", shape[axis])]), after)

    @property
    def x(self) -> Value:
        return self.op.operands[0]

    @property
    def length(self) -> int:
        return self.along.extent

    @property
    def rows(self) -> int:
        """How many scans there are: the product of all other axes."""
        return math.prod(loop.extent for loop in (*self.before, *self.after))

    @property
    def peels(self) -> bool:
        """Whether the first element must not be combined with anything, as nothing leaves it as it is."""
        return self.op.attrs["inclusive"] and self.op.rules(Cumulative).neutral(self.x.dtype) is None

    def identity(self, k: FusionKernel, total: DType | None = None) -> Scalar:
        """What a scan begins with, and what stands for elements that there are not; of a dtype of its own if given."""
        op, dtype = self.op.rules(Cumulative), self.x.dtype
        neutral = op.neutral(dtype) if self.op.attrs["inclusive"] else None
        return k.const(op.identity(dtype) if neutral is None else neutral, total or dtype)


@dataclass
class Scattering:
    """A scatter of a fusion.

    Attributes:
        at: of an element of updates: its update, then its place in the window.
    """

    body: Function
    op: OpView
    at: Coordinates

    @property
    def x(self) -> Value:
        return self.op.operands[0]

    @property
    def updates(self) -> Value:
        return self.op.operands[1]

    @property
    def out(self) -> Value:
        return self.body.returns[0]

    @property
    def mode(self) -> str:
        return self.op.attrs["mode"]

    @property
    def lead(self) -> int:
        """How many axes count updates."""
        return self.updates.ndim - self.x.ndim

    @property
    def count(self) -> int:
        """How many updates there are."""
        return math.prod(self.updates.shape[: self.lead])

    @property
    def window(self) -> tuple[int, ...]:
        return self.updates.shape[self.lead :]

    @property
    def moved(self) -> int:
        """Elements of a window along the axes that are indexed."""
        return math.prod(self.window[a] for a in self.op.attrs["axes"])

    @property
    def reads(self) -> list[tuple[Value, Coordinates]]:
        """What placing and reading an element of updates takes."""
        return [(self.updates, self.at), *self.index_reads]

    @property
    def index_reads(self) -> list[tuple[Value, Coordinates]]:
        return [(v, self.at[: v.ndim]) for v in self.op.operands[2:]]

    def target_place(self, k: FusionKernel, at: Coordinates | None = None) -> tuple[Scalar, Coordinates]:
        """Whether the element of updates at the current position stays, and its place in the result."""
        operands = self.op.operands

        def fetch(i: int, there: Sequence[Index]) -> Scalar:
            return k.value(operands[i], tuple(there))

        return self.op.rules(Scatter).place(k, at or self.at, fetch, [v.aval for v in operands], **self.op.attrs)

    def combine(self, k: FusionKernel, old: Scalar, new: Scalar) -> Scalar:
        return self.op.rules(Scatter).combine(k, old, new, mode=self.mode)
