"""Reductions of which one needs the other's result, in one loop.

A row that does not stay in registers is then read once for both.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from smelt.backends.lowering import Coordinates, FusionKernel
from smelt.backends.merged import (
    Deviations,
    MergingPair,
    ShiftedExponentials,
    SquaredDistances,
    at_least_one,
    deviations_of,
    merging_pairs,
)
from smelt.backends.plan import Plan
from smelt.ir.builder import Value
from smelt.ir.dtypes import DType
from smelt.ir.scalar import Scalar

from .states import RowState

#: With so many elements at a time, looking at them first pays.
SEVERAL = 4


def merged_states(plan: Plan) -> list[MergedState]:
    """The pairs of a fusion that can be carried together, by the second of them."""
    taken: set[Value] = set()
    found = []
    for pair in merging_pairs(plan):
        others = [x for x in deviations_of(plan, pair) if x.op.results[0] not in taken]
        taken.update(x.op.results[0] for x in others)
        found.append(MergedState(pair.op, pair.place, pair, others))
    return found


@dataclass
class MergedState(RowState):
    """Two reductions whose states merge; `op` is the second. `others` go along with them."""

    pair: MergingPair
    others: Sequence[Deviations] = ()

    @property
    def results(self) -> list[Value]:
        return [*self.pair.results, *(x.op.results[0] for x in self.others)]

    @property
    def root(self) -> tuple[Value, Coordinates]:
        return self.pair.x, self.place

    @property
    def roots(self) -> list[tuple[Value, Coordinates]]:
        return [self.root, *((x.factor, self.place) for x in self.others if x.factor is not None)]

    @property
    def state(self) -> list[DType]:
        return [*self.pair.state, *[self.pair.dtype] * sum(x.parts for x in self.others)]

    def of_thread(self, together: int) -> RowState:
        if isinstance(self.pair, SquaredDistances):
            return ThreadDistances(self.op, self.place, self.pair, self.others)
        if isinstance(self.pair, ShiftedExponentials) and together >= SEVERAL:
            return ThreadExponentials(self.op, self.place, self.pair)
        return self

    def start(self, k: FusionKernel) -> list[Scalar]:
        zeros = [k.const(0.0, self.pair.dtype)] * sum(x.parts for x in self.others)
        return [*self.pair.start(k), *zeros]

    def step(self, k: FusionKernel, state: Sequence[Scalar]) -> list[Scalar]:
        assert not self.others, "squared distances are carried as `ThreadDistances`"
        return self.pair.step(k, state)

    def merge(self, k: FusionKernel, state: Sequence[Scalar], later: Sequence[Scalar]) -> list[Scalar]:
        own = len(self.pair.state)
        found = self.pair.merge(k, state[:own], later[:own])
        for x, at in self._dealt():
            found += x.merge(k, state[at], later[at], state[:own], later[:own])
        return found

    def partial(self, k: FusionKernel, v: Value, state: Sequence[Scalar]) -> Scalar:
        own = state[: len(self.pair.state)]
        for x, at in self._dealt():
            if v is x.op.results[0]:
                return x.of(k, state[at], own, k.value(self.pair.shift, self.place))
        return self.pair.of_first(k, own) if v is self.pair.first.results[0] else self.pair.of_second(k, own)

    def _dealt(self) -> list[tuple[Deviations, slice]]:
        """Where in the state each of the others has its numbers."""
        found, at = [], len(self.pair.state)
        for x in self.others:
            found.append((x, slice(at, at + x.parts)))
            at += x.parts
        return found


@dataclass
class ThreadDistances(MergedState):
    """The sum, the first element, sums of the distances from it and of their squares, and how many there were; of each
    of the others the sum of its factors, and of their products with the distances.

    No step divides. What `end` subtracts is at most as many times the squared distances from the mean as there are
    elements, since the first one is among them: no digits are lost to a reference that is far away.
    """

    def of_thread(self, together: int) -> RowState:
        return self

    @property
    def state(self) -> list[DType]:
        return [self.pair.dtype] * (5 + sum(x.parts for x in self.others))

    def start(self, k: FusionKernel) -> list[Scalar]:
        return [k.const(0.0, self.pair.dtype)] * len(self.state)

    def step(self, k: FusionKernel, state: Sequence[Scalar]) -> list[Scalar]:
        total, first, distances, squares, count, *rest = state
        x = k.value(self.pair.x, self.place)
        first = k.select(count.eq(0.0), x, first)
        distance = x - first
        found = [total + x, first, distances + distance, squares + distance * distance, count + 1.0]
        factors = [each.factor for each in self.others if each.factor is not None]
        for factor, weight, products in zip(factors, rest[::2], rest[1::2]):
            r = k.value(factor, self.place)
            found += [weight + r, products + r * distance]
        return found

    def end(self, k: FusionKernel, state: Sequence[Scalar]) -> list[Scalar]:
        total, _, distances, squares, count, *rest = state
        mean = distances / at_least_one(k, count)
        left = squares - mean * distances
        found = [total, k.select(left < 0.0, 0.0, left), count]
        for weight, products in zip(rest[::2], rest[1::2]):
            found += [weight, products - weight * mean]
        return found


@dataclass
class ThreadExponentials(MergedState):
    """What is subtracted from the elements, the sum of their exponentials, and the largest element.

    What was summed is scaled down once for several elements, when the largest of them is known; of each of these there
    is but one exponential, which waits for no other.
    """

    pair: ShiftedExponentials

    @property
    def looks_ahead(self) -> bool:
        return True

    def of_thread(self, together: int) -> RowState:
        return self

    @property
    def state(self) -> list[DType]:
        return [self.pair.dtype] * 3

    def start(self, k: FusionKernel) -> list[Scalar]:
        best, total = self.pair.start(k)
        return [k.const(float(np.finfo(best.dtype.numpy).min), best.dtype), total, best]

    def look(self, k: FusionKernel, state: Sequence[Scalar]) -> list[Scalar]:
        center, total, best = state
        return [center, total, k.op("arith.maxnumf", [best, k.value(self.pair.x, self.place)], best.dtype)]

    def turn(self, k: FusionKernel, state: Sequence[Scalar]) -> list[Scalar]:
        before, total, best = state
        center = self.pair.center(k, best)
        return [center, total * self.pair.weight(k, before - center), best]

    def add(self, k: FusionKernel, state: Sequence[Scalar]) -> list[Scalar]:
        center, total, best = state
        return [center, total + self.pair.weight(k, k.value(self.pair.x, self.place) - center), best]

    def step(self, k: FusionKernel, state: Sequence[Scalar]) -> list[Scalar]:
        return self.add(k, self.turn(k, self.look(k, state)))

    def end(self, k: FusionKernel, state: Sequence[Scalar]) -> list[Scalar]:
        _, total, best = state
        return [best, total]
