"""Accumulators: what a reduction carries through its loops."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from smelt.ir import dtypes
from smelt.ir.aval import Aval
from smelt.ir.builder import OpView, Value
from smelt.ir.dtypes import DType
from smelt.ir.index import Index
from smelt.ir.kinds import ArgReduction, Reduction
from smelt.ir.scalar import Scalar, compute_dtype
from smelt.passes.kernels.analysis import reduced_axes

from .lowering import Coordinates, FusionKernel


@dataclass
class Accumulator:
    """A reduction in the making. Its state is one scalar, or (best, index) for argmax and argmin."""

    op: OpView
    place: Coordinates  #: where its operand is read

    @property
    def result(self) -> Value:
        return self.op.results[0]

    @property
    def is_arg(self) -> bool:
        return self.op.op.kind == "arg_reduction"

    @property
    def state(self) -> list[DType]:
        """The dtypes in which the state is held."""
        held = compute_dtype(self.op.operands[0].dtype)
        return [held, dtypes.uint32] if self.is_arg else [held]

    def start(self, k: FusionKernel) -> list[Scalar]:
        """The state before the first element."""
        x = self.op.operands[0]
        if self.is_arg:
            axis = self.op.attrs["axis"]
            first = (*self.place[:axis], Index(0), *self.place[axis + 1 :])
            return [k.value(x, first), k.const(0, dtypes.uint32)]
        return [k.const(self.op.rules(Reduction).identity(x.dtype), x.dtype)]

    def step(self, k: FusionKernel, state: Sequence[Scalar]) -> list[Scalar]:
        """The state after the element at the current index."""
        x = k.value(self.op.operands[0], self.place)
        if self.is_arg:
            i = k.index(self.place[reduced_axes(self.op)[0]], dtypes.uint32)
            return self._seen(k, state, [x, i])
        return [self.op.rules(Reduction).combine(k, state[0], x)]

    def extreme(self, k: FusionKernel, best: Scalar) -> Scalar:
        """argmax and argmin in two loops, first: the extremum (NaN if there is one)."""
        x = k.value(self.op.operands[0], self.place)
        largest = self.op.rules(ArgReduction).largest
        if x.dtype.kind == "b":
            return best | x if largest else best & x
        return k.maximum(best, x) if largest else k.minimum(best, x)

    def first_at(self, k: FusionKernel, best: Scalar, at: Scalar) -> Scalar:
        """argmax and argmin in two loops, second: the least index at which the extremum is."""
        hit = self.is_at(k, best)
        i = k.index(self.place[reduced_axes(self.op)[0]], dtypes.uint32)
        return k.op("arith.minui", [at, k.select(hit, i, k.const(0xFFFFFFFF, dtypes.uint32))], dtypes.uint32)

    def is_at(self, k: FusionKernel, best: Scalar) -> Scalar:
        """Whether the element at the current index is the extremum."""
        x = k.value(self.op.operands[0], self.place)
        hit = x.eq(best)
        return k.logical_or(hit, k.isnan(x)) if x.dtype.is_inexact else hit

    def merge(self, k: FusionKernel, state: Sequence[Scalar], later: Sequence[Scalar]) -> list[Scalar]:
        """Two partial results into one; `later` is of later elements."""
        if self.is_arg:
            return self._seen(k, state, later)
        return [self.op.rules(Reduction).combine(k, state[0], later[0])]

    def merge_unordered(
        self, k: FusionKernel, state: Sequence[Scalar], other: Sequence[Scalar]
    ) -> list[Scalar]:
        """Two partial results into one, of elements in any order."""
        if not self.is_arg:
            return self.merge(k, state, other)
        (best, at), (x, i) = state, other
        before = at <= i
        earlier = [k.select(before, best, x), k.select(before, at, i)]
        return self._seen(k, earlier, [k.select(before, x, best), k.select(before, i, at)])

    def _seen(self, k: FusionKernel, state: Sequence[Scalar], later: Sequence[Scalar]) -> list[Scalar]:
        (best, at), (x, i) = state, later
        return list(self.op.rules(ArgReduction).step(k, best, at, x, i))

    def finish(self, state: Sequence[Scalar]) -> Scalar:
        return state[-1]

    def partial_avals(self, size: int) -> list[Aval]:
        """Memory for `size` states."""
        return [Aval((size,), dtype) for dtype in self.state]
