"""Reductions of which one needs the other's result: their states merge, so that what both go over is read once.

The sum of exp(x - m) with m the maximum of x (softmax, log-softmax, cross entropy), and the sum of (x - c)² with c
from the sum of x (variance, norms), are recognized in a fusion's body, whatever functions made it; sums of r·(x - c),
which gradients of norms need, go along with the latter. No target's: schedules of all backends ask for them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np

from smelt.ir import dtypes
from smelt.ir.builder import OpView, Value
from smelt.ir.dtypes import DType
from smelt.ir.index import Index, names_of
from smelt.ir.ops.exponential import Exp
from smelt.ir.scalar import Scalar, compute_dtype
from smelt.passes.kernels.analysis import collect_reads, is_row_reduction

from .lowering import Coordinates, FusionKernel
from .plan import Plan


def merging_pairs(plan: Plan, held: Collection[DType] = (dtypes.float32,)) -> list[MergingPair]:
    """The pairs of a fusion that can be carried together, by the second of them.

    Args:
        held: the dtypes in which their states may be.
    """
    found = (_pair(plan, op, held) for op in plan.reductions if op.op.formula == "sum(x)")
    return [pair for pair in found if pair is not None]


def _pair(plan: Plan, op: OpView, held: Collection[DType]) -> MergingPair | None:
    term = _widened(op.operands[0]).owner
    if term is None or compute_dtype(op.operands[0].dtype) not in held:
        return None
    kind: type[MergingPair]
    if term.op.formula == "exp(x)":
        kind = ShiftedExponentials
    elif term.op.formula == "x * y" and term.operands[0] is term.operands[1]:
        kind = SquaredDistances
    else:
        return None
    difference = term.operands[0].owner
    if difference is None or difference.op.formula != "x - y":
        return None
    x, shift = difference.operands
    first = _only_reduction(plan, shift, plan.places[op.results[0]])
    if first is None or first.op.formula != kind.first_formula or _widened(first.operands[0]) is not _widened(x):
        return None
    if plan.places[first.results[0]] != plan.places[op.results[0]]:
        return None
    return kind(op, plan.places[op.results[0]], first, x, shift)


def _widened(v: Value) -> Value:
    """What is converted to the dtype in which kernels hold it anyway."""
    while v.owner is not None and v.owner.name == "convert" and v.dtype is compute_dtype(v.owner.operands[0].dtype):
        v = v.owner.operands[0]
    return v


def _only_reduction(plan: Plan, v: Value, at: Coordinates) -> OpView | None:
    """The reduction from which alone an element of `v` is made, the same one for a whole row; None if there is more."""
    numbers: list[Index] = []
    reads = collect_reads(
        plan.body.ops, [(v, at)], numbers, lambda u: u.owner is not None and is_row_reduction(u.owner)
    )
    reduced = [u for u in reads if u.owner is not None and is_row_reduction(u.owner)]
    if len(reduced) != 1 or any(u.owner is None for u in reads):
        return None
    inner = {name for name, _ in plan.spaces.get(plan.space_of[reduced[0]], ())}
    used = names_of(i for place in (*reads[reduced[0]], numbers) for i in place)
    return None if used & inner else reduced[0].owner


@dataclass
class MergingPair(ABC):
    """Two reductions, the second of which needs the first one's result.

    Attributes:
        op: the second.
        place: where both read their elements.
        first: of the same elements.
        x: what both go over.
        shift: made from the first one's result, and subtracted from the elements.
    """

    op: OpView
    place: Coordinates
    first: OpView
    x: Value
    shift: Value
    first_formula = ""  #: of the first

    @property
    def results(self) -> list[Value]:
        return [self.first.results[0], self.op.results[0]]

    @property
    def dtype(self) -> DType:
        """In which the state is held."""
        return compute_dtype(self.op.operands[0].dtype)

    @property
    @abstractmethod
    def state(self) -> list[DType]:
        """The dtypes of the state's parts."""

    @abstractmethod
    def start(self, k: FusionKernel) -> list[Scalar]:
        """The state before the first element."""

    @abstractmethod
    def step(self, k: FusionKernel, state: Sequence[Scalar]) -> list[Scalar]:
        """The state after the element at the current position."""

    @abstractmethod
    def merge(self, k: FusionKernel, state: Sequence[Scalar], later: Sequence[Scalar]) -> list[Scalar]:
        """The state of the elements of two."""

    @abstractmethod
    def of_first(self, k: FusionKernel, state: Sequence[Scalar]) -> Scalar:
        """The first one's result."""

    @abstractmethod
    def of_second(self, k: FusionKernel, state: Sequence[Scalar]) -> Scalar:
        """The second one's result."""


@dataclass
class ShiftedExponentials(MergingPair):
    """The maximum m so far, and the sum of exp(x - m): what was summed before a larger element is scaled down.

    Equal infinities count as equal, so no difference is NaN but that of a NaN, and the sum is NaN if and only if an
    element is.
    """

    first_formula = "max(x)"

    @property
    def state(self) -> list[DType]:
        return [self.dtype, self.dtype]

    def start(self, k: FusionKernel) -> list[Scalar]:
        return [k.const(float("-inf"), self.dtype), k.const(0.0, self.dtype)]

    def step(self, k: FusionKernel, state: Sequence[Scalar]) -> list[Scalar]:
        return self.merge(k, state, [k.value(self.x, self.place), k.const(1.0, self.dtype)])

    def merge(self, k: FusionKernel, state: Sequence[Scalar], later: Sequence[Scalar]) -> list[Scalar]:
        (best, total), (x, added) = state, later
        distance = k.select(x.eq(best), 0.0, -k.math("absf", x - best))
        scale = self.weight(k, distance)
        one = added is k.const(1.0, self.dtype)
        before = total * scale + added
        after = total + (scale if one else added * scale)
        return [k.op("arith.maxnumf", [best, x], self.dtype), k.select(x > best, before, after)]

    def center(self, k: FusionKernel, best: Scalar) -> Scalar:
        """What several elements, none above `best`, have subtracted at once: an infinity less itself would be NaN."""
        most = float(np.finfo(self.dtype.numpy).max)
        return k.select(best > most, most, k.select(best < -most, -most, best))

    def of_first(self, k: FusionKernel, state: Sequence[Scalar]) -> Scalar:
        best, total = state
        return k.select(k.isnan(total), float("nan"), best)

    def of_second(self, k: FusionKernel, state: Sequence[Scalar]) -> Scalar:
        best, total = state
        distance, rules = best - k.value(self.shift, self.place), self.term.rules(Exp)
        return total * k.elementary(rules, [distance], [k.digits(self.term)], self.term.results[0].dtype)

    @property
    def term(self) -> OpView:
        """The exponential that is summed."""
        term = _widened(self.op.operands[0]).owner
        assert term is not None
        return term

    def weight(self, k: FusionKernel, distance: Scalar) -> Scalar:
        """The exponential of an element's distance from one that is not smaller."""
        return k.exp_nonpositive(distance, k.digits(self.term))


def at_least_one(k: FusionKernel, x: Scalar) -> Scalar:
    """A count to divide by."""
    return k.op("arith.maxnumf", [x, k.const(1.0, x.dtype)], x.dtype)


@dataclass
class SquaredDistances(MergingPair):
    """The sum, the squared distances from the mean, and how many there were.

    Chan, Golub, LeVeque, "Updating formulae and a pairwise algorithm for computing sample variances", 1979.
    """

    first_formula = "sum(x)"

    @property
    def state(self) -> list[DType]:
        return [self.dtype] * 3

    def start(self, k: FusionKernel) -> list[Scalar]:
        return [k.const(0.0, self.dtype)] * 3

    def step(self, k: FusionKernel, state: Sequence[Scalar]) -> list[Scalar]:
        total, squares, count = state
        x = k.value(self.x, self.place)
        apart = count * x - total  # from the mean so far, times the count; 0 for the first
        both = count + 1.0
        return [total + x, squares + (apart * (1.0 / at_least_one(k, count * both))) * apart, both]

    def merge(self, k: FusionKernel, state: Sequence[Scalar], later: Sequence[Scalar]) -> list[Scalar]:
        (total, squares, count), (total2, squares2, count2) = state, later
        apart = total2 / at_least_one(k, count2) - total / at_least_one(k, count)
        both = count + count2
        weight = count * (count2 / at_least_one(k, both))
        return [total + total2, squares + squares2 + (apart * weight) * apart, both]

    def of_first(self, k: FusionKernel, state: Sequence[Scalar]) -> Scalar:
        return state[0]

    def of_second(self, k: FusionKernel, state: Sequence[Scalar]) -> Scalar:
        total, squares, count = state
        apart = total / at_least_one(k, count) - k.value(self.shift, self.place)
        return squares + (apart * count) * apart


@dataclass
class Deviations:
    """Σ r·(x - shift), or Σ(x - shift), which go along with the squared distances of x.

    What is carried is the sum of r and that of r·(x - mean); both merge as the pair's own state does.

    Attributes:
        op: the sum.
        factor: r; None for 1, where the mean alone says what the sum is.
    """

    op: OpView
    factor: Value | None

    @property
    def parts(self) -> int:
        """How many numbers it adds to the state."""
        return 0 if self.factor is None else 2

    def merge(
        self, k: FusionKernel, own: Sequence[Scalar], later: Sequence[Scalar], pair: Sequence[Scalar],
        pair_later: Sequence[Scalar],
    ) -> list[Scalar]:  # fmt: skip
        """Its part of the state of two; the states of the pair go along."""
        if self.factor is None:
            return []
        (weight, products), (weight2, products2) = own, later
        (total, _, count), (total2, _, count2) = pair, pair_later
        apart = total2 / at_least_one(k, count2) - total / at_least_one(k, count)
        both = at_least_one(k, count + count2)
        moved = apart * (weight2 * (count / both) - weight * (count2 / both))
        return [weight + weight2, products + products2 + moved]

    def of(self, k: FusionKernel, own: Sequence[Scalar], pair: Sequence[Scalar], shift: Scalar) -> Scalar:
        """The sum."""
        total, _, count = pair
        apart = total / at_least_one(k, count) - shift
        return apart * count if self.factor is None else own[1] + own[0] * apart


def deviations_of(plan: Plan, pair: MergingPair) -> list[Deviations]:
    """The sums of a fusion that are carried together with squared distances."""
    if not isinstance(pair, SquaredDistances):
        return []
    found = []
    for op in plan.reductions:
        place = plan.places[op.results[0]]
        if op.op.formula != "sum(x)" or op is pair.op or place != pair.place:
            continue
        term = op.operands[0]
        factors = term.owner.operands if term.owner is not None and term.owner.op.formula == "x * y" else (term,)
        if compute_dtype(term.dtype) is not pair.dtype or sum(_is_distance(v, pair) for v in factors) != 1:
            continue
        others = [v for v in factors if not _is_distance(v, pair)]
        if all(not _waits(plan, v, place) for v in others):
            found.append(Deviations(op, others[0] if others else None))
    return found


def _is_distance(v: Value, pair: MergingPair) -> bool:
    """Whether a value is that whose squares a pair sums."""
    return v.owner is not None and v.owner.op.formula == "x - y" and v.owner.operands == (pair.x, pair.shift)


def _waits(plan: Plan, v: Value, at: Coordinates) -> bool:
    """Whether an element of `v` needs a reduction of the fusion."""
    reads = collect_reads(plan.body.ops, [(v, at)], None, lambda u: u.owner is not None and is_row_reduction(u.owner))
    return any(u.owner is not None and is_row_reduction(u.owner) for u in reads)
