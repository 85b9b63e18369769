"""Reductions of which one needs the other's result, in one loop.

A row that does not stay in registers is then read once for both.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from smelt.backends.lowering import Coordinates, FusionKernel
from smelt.backends.merged import MergingPair, SquaredDistances, at_least_one, merging_pairs
from smelt.backends.plan import Plan
from smelt.ir.builder import Value
from smelt.ir.dtypes import DType
from smelt.ir.scalar import Scalar

from .states import RowState


def merged_states(plan: Plan) -> list[MergedState]:
    """The pairs of a fusion that can be carried together, by the second of them."""
    return [MergedState(pair.op, pair.place, pair) for pair in merging_pairs(plan)]


@dataclass
class MergedState(RowState):
    """Two reductions whose states merge; `op` is the second."""

    pair: MergingPair

    @property
    def results(self) -> list[Value]:
        return self.pair.results

    @property
    def root(self) -> tuple[Value, Coordinates]:
        return self.pair.x, self.place

    @property
    def state(self) -> list[DType]:
        return self.pair.state

    def of_thread(self) -> RowState:
        return ThreadDistances(self.op, self.place, self.pair) if isinstance(self.pair, SquaredDistances) else self

    def start(self, k: FusionKernel) -> list[Scalar]:
        return self.pair.start(k)

    def step(self, k: FusionKernel, state: Sequence[Scalar]) -> list[Scalar]:
        return self.pair.step(k, state)

    def merge(self, k: FusionKernel, state: Sequence[Scalar], later: Sequence[Scalar]) -> list[Scalar]:
        return self.pair.merge(k, state, later)

    def partial(self, k: FusionKernel, v: Value, state: Sequence[Scalar]) -> Scalar:
        return self.pair.of_first(k, state) if v is self.pair.first.results[0] else self.pair.of_second(k, state)


@dataclass
class ThreadDistances(MergedState):
    """The sum, the first element, sums of the distances from it and of their squares, and how many there were.

    No step divides. What `end` subtracts is at most as many times the squared distances from the mean as there are
    elements, since the first one is among them: no digits are lost to a reference that is far away.
    """

    def of_thread(self) -> RowState:
        return self

    @property
    def state(self) -> list[DType]:
        return [self.pair.dtype] * 5

    def start(self, k: FusionKernel) -> list[Scalar]:
        return [k.const(0.0, self.pair.dtype)] * 5

    def step(self, k: FusionKernel, state: Sequence[Scalar]) -> list[Scalar]:
        total, first, distances, squares, count = state
        x = k.value(self.pair.x, self.place)
        first = k.select(count.eq(0.0), x, first)
        distance = x - first
        return [total + x, first, distances + distance, squares + distance * distance, count + 1.0]

    def end(self, k: FusionKernel, state: Sequence[Scalar]) -> list[Scalar]:
        total, _, distances, squares, count = state
        left = squares - distances / at_least_one(k, count) * distances
        return [total, k.select(left < 0.0, 0.0, left), count]
