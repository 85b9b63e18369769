"""What a reduction carries on a GPU: states that may be combined in any order.

Neighbouring threads take neighbouring elements, so partial results interleave. Sums and extrema do not
mind; the first of several extrema is found by comparing positions.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from smelt.backends.accumulate import Accumulator
from smelt.backends.lowering import Coordinates, FusionKernel
from smelt.backends.plan import Plan
from smelt.ir import dtypes
from smelt.ir.builder import Value
from smelt.ir.dtypes import DType
from smelt.ir.kinds import ArgReduction
from smelt.ir.ops.reduce import highest, lowest
from smelt.ir.scalar import Scalar
from smelt.passes.kernels.analysis import reduced_axes

#: The position of no element.
NOWHERE = 0xFFFFFFFF


class RowState(Accumulator):
    """A reduction whose partial results may be of any elements."""

    def start(self, k: FusionKernel) -> list[Scalar]:
        if not self.is_arg:
            return super().start(k)
        dtype = self.op.operands[0].dtype
        worst = lowest(dtype) if self.op.rules(ArgReduction).largest else highest(dtype)
        return [k.const(worst, dtype), k.const(NOWHERE, dtypes.uint32)]

    @property
    def results(self) -> list[Value]:
        """What it gives."""
        return [self.result]

    @property
    def root(self) -> tuple[Value, Coordinates]:
        """What it goes over, at the current position."""
        return self.op.operands[0], self.place

    @property
    def roots(self) -> list[tuple[Value, Coordinates]]:
        """All that it goes over."""
        return [self.root]

    def partial(self, k: FusionKernel, v: Value, state: Sequence[Scalar]) -> Scalar:
        """One of its results."""
        return self.finish(state)

    @property
    def looks_ahead(self) -> bool:
        """Whether a thread's next elements are gone over twice: by `look`, and after `turn` by `add`."""
        return False

    def of_thread(self, together: int) -> RowState:
        """The same reduction as one thread carries it through its elements, `together` of which it has at a time."""
        found = _SKIPPING_NAN.get(self.op.op.extremum)
        return ThreadExtremum(self.op, self.place, found) if found and self.state[0].kind == "f" else self

    def look(self, k: FusionKernel, state: Sequence[Scalar]) -> list[Scalar]:
        """The state that knows of the element at the current position, which is yet to come."""
        return list(state)

    def turn(self, k: FusionKernel, state: Sequence[Scalar]) -> list[Scalar]:
        """The state that is ready for all elements that it knows of."""
        return list(state)

    def add(self, k: FusionKernel, state: Sequence[Scalar]) -> list[Scalar]:
        """The state after the element at the current position, of which it knew."""
        return self.step(k, state)

    def end(self, k: FusionKernel, state: Sequence[Scalar]) -> list[Scalar]:
        """From what a thread carried: a state that can be merged with others."""
        return list(state)

    def step(self, k: FusionKernel, state: Sequence[Scalar]) -> list[Scalar]:
        if not self.is_arg:
            return super().step(k, state)
        x = k.value(self.op.operands[0], self.place)
        return self.merge(k, state, [x, k.index(self.place[reduced_axes(self.op)[0]], dtypes.uint32)])

    def merge(self, k: FusionKernel, state: Sequence[Scalar], later: Sequence[Scalar]) -> list[Scalar]:
        if not self.is_arg:
            return super().merge(k, state, later)
        (best, at), (x, i) = state, later
        wins, tie = self._better(k, x, best), x.eq(best)
        if x.dtype.is_inexact:  # a NaN wins, the first of several
            unordered, known = k.isnan(x), k.isnan(best)
            wins = k.logical_and(k.logical_or(wins, unordered), ~known)
            tie = k.logical_or(tie, k.logical_and(unordered, known))
        wins = k.logical_or(wins, k.logical_and(tie, i < at))
        return [k.select(wins, x, best), k.select(wins, i, at)]

    def _better(self, k: FusionKernel, x: Scalar, best: Scalar) -> Scalar:
        op = self.op.rules(ArgReduction)
        if x.dtype.kind != "b":
            return op.better(x, best)
        return k.logical_and(x, ~best) if op.largest else k.logical_and(~x, best)


#: By extremum: the op that skips NaN.
_SKIPPING_NAN = {"max": "arith.maxnumf", "min": "arith.minnumf"}


@dataclass
class ThreadExtremum(RowState):
    """The extremum of numbers, and whether there was a NaN: cheaper than an extremum that is NaN from then on."""

    skipping: str

    @property
    def state(self) -> list[DType]:
        return [*super().state, dtypes.bool_]

    def start(self, k: FusionKernel) -> list[Scalar]:
        return [*super().start(k), k.const(False, dtypes.bool_)]

    def step(self, k: FusionKernel, state: Sequence[Scalar]) -> list[Scalar]:
        best, unordered = state
        x = k.value(self.op.operands[0], self.place)
        return [k.op(self.skipping, [best, x], best.dtype), k.logical_or(unordered, k.isnan(x))]

    def end(self, k: FusionKernel, state: Sequence[Scalar]) -> list[Scalar]:
        best, unordered = state
        return [k.select(unordered, float("nan"), best)]


def row_states(plan: Plan) -> list[RowState]:
    """One for each reduction of a fusion."""
    return [RowState(op, plan.places[op.results[0]]) for op in plan.reductions]


def deal(states: Sequence[RowState], scalars: Sequence[Scalar]) -> list[list[Scalar]]:
    """The carried scalars, reduction by reduction."""
    rest = iter(scalars)
    return [[next(rest) for _ in s.state] for s in states]
