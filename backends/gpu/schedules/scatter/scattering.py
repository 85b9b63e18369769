"""A scatter: its operands, where updates go, and how they are combined."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from smelt.backends.lowering import Fused, Place
from smelt.ir.builder import Function, OpView, Value
from smelt.ir.dtypes import DType
from smelt.ir.index import Index, linearize
from smelt.ir.scalar import Scalar

from ...kernel import GpuKernel
from ..parts import Part
from ..schedule import Step


@dataclass
class Scattering:
    """A scatter of a fusion."""

    body: Function
    op: OpView
    at: Place  #: of an element of updates: its update, then its place in the window

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

    def axes(self, chosen: Sequence[int]) -> Fused:
        """One loop over some axes of updates."""
        return Fused([(f"u{a}", self.updates.shape[a]) for a in chosen if self.updates.shape[a] != 1])

    @property
    def reads(self) -> list[tuple[Value, Place]]:
        """What placing and reading an element of updates takes."""
        return [(self.updates, self.at), *self.index_reads]

    @property
    def index_reads(self) -> list[tuple[Value, Place]]:
        return [(v, self.at[: v.ndim]) for v in self.op.operands[2:]]

    def target(self, k: GpuKernel, at: Place | None = None) -> tuple[Scalar, Scalar]:
        """Whether the element of updates at the current position stays, and its offset in the result."""
        op: Any = self.op.op
        avals = [v.aval for v in self.op.operands]
        operands = self.op.operands

        def fetch(i: int, there: Sequence[Index]) -> Scalar:
            return k.value(operands[i], tuple(there))

        with k.named("inside"):
            inside, target = op.place(k, at or self.at, fetch, avals, **self.op.attrs)
        with k.named("target"):
            return inside, k.index(linearize(target, self.x.shape))

    def combine(self, k: GpuKernel, old: Scalar, new: Scalar) -> Scalar:
        op: Any = self.op.op
        return op.combine(k, old, new, mode=self.mode)

    def finish(self, part: Part, schedule: str, groups: int, threads: int, held: int = 0) -> Step:
        """Close a kernel that applies updates; `held` bytes are read from scratch."""
        old = 0 if self.mode == "set" else self.updates.aval.nbytes
        flops = self.op.op.flops * self.updates.aval.size
        return part.finish(schedule, groups, threads, old + held, self.updates.aval.nbytes, flops)


def dropped(k: GpuKernel, dtype: DType) -> Scalar:
    """The target of what is dropped: it sorts behind all others."""
    return k.const(2**dtype.bits - 1, dtype)
