"""Reductions of which one needs the other's result, in one loop: their states merge.

The sum of exp(x - m) with m the maximum of x (softmax, log-softmax, cross entropy), and the sum of (x - c)² with c
from the sum of x (variance, norms), are recognized in a fusion's body, whatever functions made it. A row that does
not stay in registers is then read once for both.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from smelt.backends.lowering import Coordinates, FusionKernel
from smelt.backends.plan import Plan
from smelt.ir import dtypes
from smelt.ir.builder import OpView, Value
from smelt.ir.dtypes import DType
from smelt.ir.index import Index
from smelt.ir.ops.transcendental import Exp
from smelt.ir.scalar import Scalar, compute_dtype
from smelt.passes.kernels.analysis import collect_reads, is_row_reduction

from ...kernel import GpuKernel
from .states import RowState


def merged_states(plan: Plan) -> list[MergedState]:
    """The pairs of a fusion that can be carried together, by the second of them."""
    found = (_merged(plan, op) for op in plan.reductions if op.name == "reduce_sum")
    return [state for state in found if state is not None]


def _merged(plan: Plan, op: OpView) -> MergedState | None:
    term = _widened(op.operands[0]).owner
    if term is None or compute_dtype(op.operands[0].dtype) is not dtypes.float32:
        return None
    kind: type[MergedState]
    if isinstance(term.op, Exp):
        kind = ShiftedExponentials
    elif term.name == "mul" and term.operands[0] is term.operands[1]:
        kind = SquaredDistances
    else:
        return None
    difference = term.operands[0].owner
    if difference is None or difference.name != "sub":
        return None
    x, shift = difference.operands
    first = _only_reduction(plan, shift, plan.places[op.results[0]])
    if first is None or first.name != kind.first_name or _widened(first.operands[0]) is not _widened(x):
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
    used = {a.args[0] for place in (*reads[reduced[0]], tuple(numbers)) for i in place for a in i.atoms()
            if a.kind == "var"}  # fmt: skip
    return None if used & inner else reduced[0].owner


@dataclass
class MergedState(RowState):
    """Two reductions of which the second needs the first one's result.

    Attributes:
        op: the second.
        first: of the same elements.
        x: what both go over.
        shift: made from the first one's result, and subtracted from the elements.
    """

    first: OpView
    x: Value
    shift: Value
    first_name = ""  #: the op of the first

    @property
    def results(self) -> list[Value]:
        return [self.first.results[0], self.op.results[0]]

    @property
    def root(self) -> tuple[Value, Coordinates]:
        return self.x, self.place

    def of_thread(self) -> RowState:
        return self

    def partial(self, k: FusionKernel, v: Value, state: Sequence[Scalar]) -> Scalar:
        return self.of_first(k, state) if v is self.first.results[0] else self.of_second(k, state)

    def of_first(self, k: FusionKernel, state: Sequence[Scalar]) -> Scalar:
        """The first one's result."""
        raise NotImplementedError

    def of_second(self, k: FusionKernel, state: Sequence[Scalar]) -> Scalar:
        """The second one's result."""
        raise NotImplementedError


@dataclass
class ShiftedExponentials(MergedState):
    """The maximum m so far, and the sum of exp(x - m): what was summed before a larger element is scaled down.

    Equal infinities count as equal, so no difference is NaN but that of a NaN, and the sum is NaN if and only if an
    element is.
    """

    first_name = "reduce_max"

    @property
    def state(self) -> list[DType]:
        return [dtypes.float32, dtypes.float32]

    def start(self, k: FusionKernel) -> list[Scalar]:
        return [k.const(float("-inf"), dtypes.float32), k.const(0.0, dtypes.float32)]

    def step(self, k: FusionKernel, state: Sequence[Scalar]) -> list[Scalar]:
        return self.merge(k, state, [k.value(self.x, self.place), k.const(1.0, dtypes.float32)])

    def merge(self, k: FusionKernel, state: Sequence[Scalar], later: Sequence[Scalar]) -> list[Scalar]:
        (best, total), (x, added) = state, later
        distance = k.select(x.eq(best), 0.0, -k.math("absf", x - best))
        scale = self._exp(k, distance)
        one = added is k.const(1.0, dtypes.float32)
        before = total * scale + added
        after = total + (scale if one else added * scale)
        return [k.op("arith.maxnumf", [best, x], dtypes.float32), k.select(x > best, before, after)]

    def of_first(self, k: FusionKernel, state: Sequence[Scalar]) -> Scalar:
        best, total = state
        return k.select(k.isnan(total), float("nan"), best)

    def of_second(self, k: FusionKernel, state: Sequence[Scalar]) -> Scalar:
        best, total = state
        return total * self._exp(k, best - k.value(self.shift, self.place))

    def _exp(self, k: FusionKernel, x: Scalar) -> Scalar:
        term = _widened(self.op.operands[0]).owner
        assert isinstance(k, GpuKernel) and term is not None
        return k.elementary(term.rules(Exp), [x], [dtypes.float32], dtypes.float32)


def _at_least_one(k: FusionKernel, x: Scalar) -> Scalar:
    return k.op("arith.maxnumf", [x, k.const(1.0, x.dtype)], x.dtype)


@dataclass
class SquaredDistances(MergedState):
    """The sum, the squared distances from the mean, and how many there were."""

    first_name = "reduce_sum"

    def of_thread(self) -> RowState:
        return ThreadDistances(self.op, self.place, self.first, self.x, self.shift)

    @property
    def state(self) -> list[DType]:
        return [dtypes.float32] * 3

    def start(self, k: FusionKernel) -> list[Scalar]:
        return [k.const(0.0, dtypes.float32)] * 3

    def step(self, k: FusionKernel, state: Sequence[Scalar]) -> list[Scalar]:
        total, squares, count = state
        x = k.value(self.x, self.place)
        apart = count * x - total  # from the mean so far, times the count; 0 for the first
        both = count + 1.0
        return [total + x, squares + (apart * (1.0 / _at_least_one(k, count * both))) * apart, both]

    def merge(self, k: FusionKernel, state: Sequence[Scalar], later: Sequence[Scalar]) -> list[Scalar]:
        (total, squares, count), (total2, squares2, count2) = state, later
        apart = total2 / _at_least_one(k, count2) - total / _at_least_one(k, count)
        both = count + count2
        weight = count * (count2 / _at_least_one(k, both))
        return [total + total2, squares + squares2 + (apart * weight) * apart, both]

    def of_first(self, k: FusionKernel, state: Sequence[Scalar]) -> Scalar:
        return state[0]

    def of_second(self, k: FusionKernel, state: Sequence[Scalar]) -> Scalar:
        total, squares, count = state
        apart = total / _at_least_one(k, count) - k.value(self.shift, self.place)
        return squares + (apart * count) * apart


@dataclass
class ThreadDistances(SquaredDistances):
    """The sum, the first element, sums of the distances from it and of their squares, and how many there were.

    No step divides. What `end` subtracts is at most as many times the squared distances from the mean as there are
    elements, since the first one is among them: no digits are lost to a reference that is far away.
    """

    def of_thread(self) -> RowState:
        return self

    @property
    def state(self) -> list[DType]:
        return [dtypes.float32] * 5

    def start(self, k: FusionKernel) -> list[Scalar]:
        return [k.const(0.0, dtypes.float32)] * 5

    def step(self, k: FusionKernel, state: Sequence[Scalar]) -> list[Scalar]:
        total, first, distances, squares, count = state
        x = k.value(self.x, self.place)
        first = k.select(count.eq(0.0), x, first)
        distance = x - first
        return [total + x, first, distances + distance, squares + distance * distance, count + 1.0]

    def end(self, k: FusionKernel, state: Sequence[Scalar]) -> list[Scalar]:
        total, _, distances, squares, count = state
        left = squares - distances / _at_least_one(k, count) * distances
        return [total, k.select(left < 0.0, 0.0, left), count]
