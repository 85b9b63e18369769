"""Pad-products: products of 16 bits with odd rows are made wider, and what follows works on the wide rows.

Before, where 997 is no multiple of 8::

    %x = "smelt.dot_general"(%a, %b) ... -> tensor<256x997xbf16>
    %m = "smelt.reduce_max"(%x) {axes = array<i64: 1>} ...
    %e = "smelt.exp"(%x - %m)
    %s = "smelt.reduce_sum"(%e) {axes = array<i64: 1>} ...
    %d = "smelt.dot_general"(%e, %c) ...                    // sums over the 997

After::

    %w = "smelt.dot_general"(%a, "smelt.pad"(%b)) ... -> tensor<256x1000xbf16>
    %x = "smelt.select"(%column < 997, %w, -inf)
    %m = "smelt.reduce_max"(%x) {axes = array<i64: 1>} ...
    %e = "smelt.exp"(%x - %m)                               // 0 behind the 997th
    %s = "smelt.reduce_sum"(%e) {axes = array<i64: 1>} ...
    %d = "smelt.dot_general"(%e, "smelt.pad"(%c)) ...

Libraries of matrix products want rows of 16 bytes, and kernels read such rows 16 bytes at a time. So the operand that
is read often is copied, which is the smaller one, and neither the product nor its cotangent is. Columns behind the last
are whatever counts for nothing where they are summed, or the largest is looked for; whoever else reads a wide array
reads its first columns alone.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from typing import Any

import numpy as np

from smelt.ir import dtypes
from smelt.ir.builder import Builder, Function, OpView, Value, read_function
from smelt.ir.index import names_of, variables
from smelt.ir.kinds import Elementwise, Reduction
from smelt.ir.ops.compare import Select
from smelt.ir.ops.contract import DotGeneral
from smelt.ir.ops.movement import Broadcast, Iota

from ..extract import reassemble
from ..registry import Pass, register_pass
from ..rewrite import unplaced_functions
from .attention_masks import constant_of
from .contraction_places import depth_of, operand_accesses

#: Ops that are made anew for wide rows, at most, for one that reads them.
_MOST_OPS = 32


@register_pass("pad-products")
@dataclass(frozen=True)
class PadProductsPass(Pass):
    """Make products of 16 bits wider whose rows are no multiples of 16 bytes.

    Attributes:
        line: elements of which rows are multiples then.
        work: multiplications of a product at least. reuse: how often an operand is read that is copied.
    """

    line: int = 8
    work: int = 1 << 28
    reuse: int = 256

    def run(self, module: Any, statistics: Counter) -> None:
        for operation in unplaced_functions(module):
            function = read_function(operation)
            plan = _Plan(self, function)
            if plan.seeds:
                reassemble(module, function, [(op,) for op in function.ops], _Rewrite(plan, function).emit)
                statistics["products"] += plan.seeds


def _loops(op: OpView) -> tuple[dict[str, int], dict[str, int]]:
    """Of each operand of a product: the loops that move along its axes, i0, i1, ... of the result, k0, ... of sums.

    Axes of one element have none.
    """
    accesses = operand_accesses(op, variables(op.results[0].shape), variables(depth_of(op), "k"))
    lhs, rhs = ({name: axis for axis, i in enumerate(x.place) for name in names_of([i])} for x in accesses)
    return lhs, rhs


def _free_axes(op: OpView) -> list[tuple[int, int]]:
    """Of each axis of a product's result: the operand that it comes from, and the axis there; (-1, 0) for batches."""
    loops, found = _loops(op), []
    for name in (f"i{axis}" for axis in range(op.results[0].ndim)):
        sides = [side for side in (0, 1) if name in loops[side]]
        found.append((sides[0], loops[sides[0]][name]) if len(sides) == 1 else (-1, 0))
    return found


def _partner(op: OpView, side: int, axis: int) -> int | None:
    """The axis of the other operand with which a product sums over an axis of one; None if it does not."""
    loops = _loops(op)
    return next((loops[1 - side][k] for k, i in loops[side].items() if i == axis and k.startswith("k")), None)


class _Plan:
    """Which values of a function become wide, along which axis.

    Attributes:
        axis: of values that become wide. summed: those over whose columns products sum.
        seeds: how many products are made wider.
    """

    def __init__(self, options: PadProductsPass, function: Function):
        self.options, self.axis, self.seeds = options, dict[Value, int](), 0
        self.summed: set[Value] = set()
        self.stretched: dict[tuple[Value, int], bool] = {}
        for op in function.ops:
            if len(op.results) != 1:
                continue
            if isinstance(op.op, DotGeneral):
                self.summed.update(v for v in op.operands if self.is_summed(op, v))
            result, wide = op.results[0], {self.axis[v] for v in op.operands if v in self.axis}
            if isinstance(op.op, DotGeneral):
                axis = self._of_product(op)
                if axis is not None:
                    self.axis[result] = axis
                    self.seeds += 1
            elif wide and isinstance(op.op, Elementwise) and len(wide) == 1:
                (axis,) = wide
                if all(self.axis.get(v) == axis or self.can_stretch(v, axis) for v in op.operands):
                    self.axis[result] = axis

    def _of_product(self, op: OpView) -> int | None:
        """The axis of a product's result along which it is made wider."""
        (result,), reuse = op.results, self.options.reuse
        if any(v.dtype.size != 2 or not v.dtype.is_float for v in (*op.operands, result)):
            return None
        if result.aval.size * math.prod(depth_of(op)) < self.options.work:
            return None
        for axis, (side, of_operand) in enumerate(_free_axes(op)):
            extent, operands = result.shape[axis], op.operands
            if side < 0 or extent % self.options.line == 0 or operands[1 - side] in self.axis:
                continue
            if operands[side] in self.axis:
                if self.axis[operands[side]] == of_operand:
                    return axis
            elif axis == result.ndim - 1 and min(extent, result.aval.size // extent) >= reuse:
                return axis
        return None

    def is_summed(self, op: OpView, v: Value) -> bool:
        """Whether a product sums over a wide value's columns, so that the other operand had better be copied."""
        if v not in self.axis or any(x in self.axis for x in op.operands if x != v):
            return False
        summed = _partner(op, op.operands.index(v), self.axis[v]) is not None
        return summed and v.aval.size >= self.options.reuse * v.shape[self.axis[v]]

    def can_stretch(self, v: Value, axis: int, left: int = _MOST_OPS) -> bool:
        """Whether a value is as quickly made with a longer axis."""
        key = v, axis
        if key not in self.stretched:
            op, found = v.owner, False
            if op is not None and isinstance(op.op, Broadcast):
                before = op.operands[0]
                at = axis - (v.ndim - before.ndim)
                found = at < 0 or before.shape[at] == 1
            elif op is not None and isinstance(op.op, Elementwise):
                found = left > 0 and all(self.can_stretch(x, axis, left // 2) for x in op.operands)
            elif op is not None:
                found = isinstance(op.op, Iota)
            self.stretched[key] = found
        return self.stretched[key]


class _Rewrite:
    """A function with wide products.

    Attributes:
        wide: wide values, by those that they stand for.
        behind: the number that all columns are that were added to them, where that is known.
    """

    def __init__(self, plan: _Plan, function: Function):
        self.plan, self.function = plan, function
        self.wide: dict[Value, Value] = {}
        self.behind: dict[Value, float] = {}
        self.made: dict[tuple[Value, object], Value] = {}  #: padded, stretched and masked values

    def emit(self, b: Builder, item: tuple[OpView], env: dict[Value, Value]) -> None:
        (op,) = item
        with b.at(op.location):
            if len(op.results) == 1 and op.results[0] in self.plan.axis:
                self._widen(b, op, env)
                return
            operands = self._summed(b, op, env)
            if operands is None:
                operands = [self._first(b, v, env) for v in op.operands]
            env.update(zip(op.results, b.clone(op, operands)))

    def _length(self, n: int) -> int:
        line = self.plan.options.line
        return -(-n // line) * line

    def _widen(self, b: Builder, op: OpView, env: dict[Value, Value]) -> None:
        """The op with a wide result."""
        (result,) = op.results
        axis = self.plan.axis[result]
        if isinstance(op.op, DotGeneral):
            side, of_operand = _free_axes(op)[axis]
            v = op.operands[side]
            made = self.wide[v] if v in self.wide else self._padded(b, v, of_operand, env)
            operands = [made if i == side else self._first(b, x, env) for i, x in enumerate(op.operands)]
        else:
            operands = [self.wide[v] if v in self.wide else self._stretched(b, v, axis, env) for v in op.operands]
            number = self._number_behind(op)
            if number is not None:
                self.behind[result] = number
        (self.wide[result],) = b.emit(op.op, operands, op.attrs)
        if result in self.plan.summed:  # once for all who read it
            self.wide[result] = self._masked(b, result, 0.0)
        if result in self.function.returns:
            self._first(b, result, env)

    def _number_behind(self, op: OpView) -> float | None:
        """What an elementwise op makes of what is behind its operands' columns, where that is one number."""
        numbers = [self.behind[v] if v in self.behind else constant_of(v) for v in op.operands]
        if op.op.formula == "x - y" and numbers[0] == float("-inf") and _is_largest_of(op.operands[1], op.operands[0]):
            return numbers[0]  # where the largest is infinite, so is the row's sum without it, or NaN
        given = [np.full((), x, v.dtype.numpy) for x, v in zip(numbers, op.operands) if x is not None]
        if len(given) < len(numbers):
            return None
        with np.errstate(all="ignore"):
            return float(np.asarray(op.op.reference(*given, **op.attrs)))

    def _summed(self, b: Builder, op: OpView, env: dict[Value, Value]) -> list[Value] | None:
        """Operands of an op that goes over the columns, with columns that count for nothing; None for other ops."""
        wide = [v for v in op.operands if v in self.wide]
        if not wide:
            return None
        axis = self.plan.axis[wide[0]]
        if isinstance(op.op, Reduction) and wide[0].dtype.is_float:
            number = float(op.op.identity(wide[0].dtype).real)
            return [self._masked(b, wide[0], number)] if axis in op.attrs["axes"] else None
        if not isinstance(op.op, DotGeneral) or not self.plan.is_summed(op, wide[0]):
            return None
        side = op.operands.index(wide[0])
        partner = _partner(op, side, axis)
        assert partner is not None
        other = self._padded(b, op.operands[1 - side], partner, env)
        found = [self._masked(b, wide[0], 0.0), other]
        return found if side == 0 else found[::-1]

    # Values

    def _first(self, b: Builder, v: Value, env: dict[Value, Value]) -> Value:
        """A value as it was."""
        if v not in env:
            env[v] = b.slice(self.wide[v], start=(0,) * v.ndim, stop=v.shape, stride=(1,) * v.ndim)
        return env[v]

    def _padded(self, b: Builder, v: Value, axis: int, env: dict[Value, Value]) -> Value:
        """A value with zeros behind it along an axis."""
        key = v, ("padded", axis)
        if key not in self.made:
            n, none = v.shape[axis], (0,) * v.ndim
            high = tuple(self._length(n) - n if i == axis else 0 for i in range(v.ndim))
            self.made[key] = b.pad(self._first(b, v, env), b.full((), 0, v.dtype), low=none, high=high, interior=none)
        return self.made[key]

    def _stretched(self, b: Builder, v: Value, axis: int, env: dict[Value, Value]) -> Value:
        """A value that can be made with a longer axis."""
        key, op = (v, ("stretched", axis)), v.owner
        assert op is not None
        if key not in self.made:
            shape = tuple(self._length(n) if i == axis else n for i, n in enumerate(v.shape))
            if isinstance(op.op, Broadcast):
                self.made[key] = b.broadcast_to(self._first(b, op.operands[0], env), shape)
            elif isinstance(op.op, Iota):
                self.made[key] = b.iota(shape=shape, axis=op.attrs["axis"], dtype=v.dtype)
            else:
                stretched = [self._stretched(b, x, axis, env) for x in op.operands]
                (self.made[key],) = b.emit(op.op, stretched, op.attrs)
        return self.made[key]

    def _masked(self, b: Builder, v: Value, number: float) -> Value:
        """A wide value with a number behind its columns, which is known from then on if nothing was before."""
        key = v, ("masked", number)
        if self.behind.get(v) == number:
            return self.wide[v]
        if key not in self.made:
            x, axis = self.wide[v], self.plan.axis[v]
            column = b.iota(shape=x.shape, axis=axis, dtype=dtypes.int32)
            inside = b.less(column, b.full(x.shape, v.shape[axis], dtypes.int32))
            self.made[key] = b.select(inside, x, b.full(x.shape, number, v.dtype))
        if v not in self.behind:
            self.wide[v], self.behind[v] = self.made[key], number
        return self.made[key]


def _is_largest_of(v: Value, x: Value) -> bool:
    """Whether a value is the largest of rows of another one, or a number in its place, moved."""
    owner = v.owner
    while owner is not None and owner.op.formula != "max(x)":
        if isinstance(owner.op, Select):
            rest = [y for y in owner.operands[1:] if constant_of(y) is None]
            owner = rest[0].owner if len(rest) == 1 else None
        elif owner.op.kind == "movement" and len(owner.operands) == 1:
            owner = owner.operands[0].owner
        else:
            owner = None
    return owner is not None and owner.operands[0] == x
