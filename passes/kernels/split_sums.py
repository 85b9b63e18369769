"""Split sums: a sum that waits for another one is made of sums that do not.

Before, the sum of a gradient that needs the result of another sum over the same elements, so that these are read once
more (layer norm's and batch norm's gradients)::

    %s = "smelt.reduce_sum"(%p) {axes = array<i64: 1>}
    %c = "smelt.broadcast"(%s')                              made from %s alone
    %0 = "smelt.mul"(%c, %b)
    %1 = "smelt.add"(%a, %0)
    %2 = "smelt.reduce_sum"(%1) {axes = array<i64: 1>}

After: Σ(a + c·b) = Σa + c·Σb, and all three sums go over their elements together::

    %s = "smelt.reduce_sum"(%p) {axes = array<i64: 1>}
    %0 = "smelt.reduce_sum"(%a) {axes = array<i64: 1>}
    %1 = "smelt.reduce_sum"(%b) {axes = array<i64: 1>}
    %2 = "smelt.mul"(%s', %1)
    %3 = "smelt.add"(%0, %2)

Factors that are the same along the axes come out of products, and sums of the same products are made once. A
difference from such a number, x - c, stays what it is: its elements are much smaller than x where c is the mean.
Sums count as reassociable (see `canonicalize`); of 16 bits they are left alone, since each result would be rounded.
What lies in memory anyway, since a result or a kernel of its own reads it, is not looked through.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from smelt.ir import mlir
from smelt.ir.builder import Builder, Function, OpView, Value, read_function

from ..registry import Pass, register_pass
from ..rewrite import contains, names_of_formula, unplaced_functions
from ..simplify.patterns import aligned
from .analysis import is_pointwise, is_row_reduction, reduced_axes


@register_pass("split-sums")
@dataclass(frozen=True)
class SplitSumsPass(Pass):
    """Let no sum wait for another one over the same elements where algebra can part them.

    Attributes:
        terms: a sum becomes so many at most.
    """

    terms: int = 6

    def run(self, module: Any, statistics: Counter) -> None:
        sums_of = names_of_formula("sum(x)")
        for operation in unplaced_functions(module):
            if not contains(operation, *sums_of):
                continue
            function = read_function(operation)
            sums = [op for op in function.ops if op.op.formula == "sum(x)" and _can_split(op)]
            if len(sums) > 1:
                statistics["sums split"] += _Splitting(function, sums, self.terms).run()


#: Sums of these are split.
_WIDE = ("float32", "float64")
#: Factors of a product that are told from each other: a power by repeated squaring has more of them than any memory.
_MOST_FACTORS = 64
#: What goes over the same elements, and along the same axes.
_Key = tuple[tuple[Value, ...], tuple[int, ...]]


@dataclass
class _Term:
    """One summand: a product of elements, and of numbers that are the same along the reduced axes."""

    negative: bool = False
    factors: tuple[Value, ...] = ()
    numbers: tuple[Value, ...] = ()
    divisors: tuple[Value, ...] = ()

    def times(self, other: _Term) -> _Term:
        return _Term(
            self.negative != other.negative, self.factors + other.factors, self.numbers + other.numbers,
            self.divisors + other.divisors,
        )  # fmt: skip


@dataclass
class _Splitting:
    """The sums of one function."""

    function: Function
    sums: Sequence[OpView]
    most: int
    position: dict[Value, int] = field(default_factory=dict)  #: a number for each value, in order
    stored: set[Value] = field(default_factory=set)  #: in memory anyway
    near: dict[Value, int] = field(default_factory=dict)  #: the reductions behind a value, of pointwise ops: bits
    reductions: list[OpView] = field(default_factory=list)
    made: dict[_Key, Value] = field(default_factory=dict)
    instead: dict[Value, Value] = field(default_factory=dict)  #: of a sum that was split

    def run(self) -> int:
        """How many sums were rewritten."""
        self._look()
        terms = {op: found for op in self.sums if (found := self._terms(op.operands[0], op.attrs["axes"]))}
        waiting = {op for op, found in terms.items() if self._waits(op, found)}
        readers = Counter(key for op, found in terms.items() for key in {self._key(op, term) for term in found})
        count = 0
        for op, found in terms.items():
            if op in waiting or all(readers[self._key(op, term)] > 1 for term in found):
                self._split(op, found)
                count += 1
        return count

    def _look(self) -> None:
        self.stored.update(self.function.returns)
        for at, v in enumerate(self.function.arguments):
            self.position[v] = at
        for op in self.function.ops:
            pointwise, known = is_pointwise(op), 0
            if is_row_reduction(op):
                known = 1 << len(self.reductions)
                self.reductions.append(op)
            elif pointwise:
                for v in op.operands:
                    known |= self.near.get(v, 0)
            else:
                self.stored.update(op.operands)
            for v in op.results:
                self.position[v] = len(self.position)
                self.near[v] = known

    def _terms(self, v: Value, axes: Sequence[int]) -> list[_Term]:
        """The summands of an element of `v`; none where there are too many, or one is no product of elements."""
        pending, found = [(v, _Term())], []
        while pending:
            v, outer = pending.pop()
            op = None if v in self.stored else v.owner
            if op is not None and _adds(op) and not any(_spread(x, axes) for x in op.operands):
                x, y = op.operands
                pending += [(y, outer.times(_Term(op.op.formula == "x - y"))), (x, outer)]
            else:
                product = self._product(v, axes)
                if len(product.factors) == 1 and product.factors[0] is not v:
                    (inner,), product.factors = product.factors, ()
                    pending.append((inner, outer.times(product)))
                elif product.factors:
                    found.append(outer.times(product))
                else:
                    return []
            if len(pending) + len(found) > self.most:
                return []
        return found

    def _product(self, v: Value, axes: Sequence[int]) -> _Term:
        """`v` as a product; one of too many factors is its only one."""
        whole, pending, found = v, [(v, False)], _Term()
        while pending:
            if len(pending) + len(found.factors) + len(found.numbers) + len(found.divisors) > _MOST_FACTORS:
                return _Term(factors=(whole,))
            v, below = pending.pop()
            op = None if v in self.stored else v.owner
            if _spread(v, axes):
                found = found.times(_Term(divisors=(v,)) if below else _Term(numbers=(v,)))
            elif op is not None and op.op.formula == "x * y":
                pending += [(x, False) for x in reversed(op.operands)]
            elif op is not None and op.op.formula == "x / y" and _spread(op.operands[1], axes):
                pending += [(op.operands[1], True), (op.operands[0], False)]
            elif op is not None and op.op.formula == "-x":
                found = found.times(_Term(True))
                pending.append((op.operands[0], False))
            else:
                found = found.times(_Term(factors=(v,)))
        found.factors = tuple(sorted(found.factors, key=self.position.__getitem__))
        return found

    def _waits(self, op: OpView, terms: Sequence[_Term]) -> bool:
        """Whether the numbers need a reduction over the same elements that no factor needs."""
        numbers = factors = 0
        for term in terms:
            for v in (*term.numbers, *term.divisors):
                numbers |= self.near.get(v, 0)
            for v in term.factors:
                factors |= self.near.get(v, 0)
        late, shape, axes = numbers & ~factors, op.operands[0].shape, op.attrs["axes"]
        while late:
            first = late & -late
            other = self.reductions[first.bit_length() - 1]
            if other.operands[0].shape == shape and reduced_axes(other) == axes:
                return True
            late ^= first
        return False

    def _key(self, op: OpView, term: _Term) -> _Key:
        return term.factors, tuple(op.attrs["axes"])

    def _split(self, op: OpView, terms: Sequence[_Term]) -> None:
        b = Builder(mlir.ir.InsertionPoint(op.mlir), op.location)
        total: Value | None = None
        for term in terms:
            x = self._sum(b, op, term)
            for v in term.numbers:
                x = b.mul(x, self._along(b, v, op))
            for v in term.divisors:
                x = b.div(x, self._along(b, v, op))
            if total is not None:
                total = b.sub(total, x) if term.negative else b.add(total, x)
            else:
                total = b.neg(x) if term.negative else x
        assert total is not None
        self.instead[op.results[0]] = total
        op.results[0].mlir.replace_all_uses_with(total.mlir)
        op.mlir.erase()

    def _sum(self, b: Builder, op: OpView, term: _Term) -> Value:
        key = self._key(op, term)
        if key not in self.made:
            product, *others = (self.instead.get(v, v) for v in term.factors)
            for v in others:
                product = b.mul(product, v)
            self.made[key] = b.reduce_sum(product, axes=op.attrs["axes"])
        return self.made[key]

    def _along(self, b: Builder, v: Value, op: OpView) -> Value:
        """What `v` repeats, for each of a sum's results."""
        assert v.owner is not None
        (x,), axes = v.owner.operands, op.attrs["axes"]
        source = aligned(x.shape, v.ndim)
        x = b.reshape_to(self.instead.get(x, x), [d for a, d in enumerate(source) if a not in axes])
        return b.broadcast_to(x, op.results[0].shape)


def _can_split(op: OpView) -> bool:
    """Whether a sum may be split: it is wide, and has elements (the mean of none is NaN, and so is 0 times it)."""
    return op.results[0].dtype.name in _WIDE and op.operands[0].aval.size > 0


def _adds(op: OpView) -> bool:
    return op.op.formula in ("x + y", "x - y")


def _spread(v: Value, axes: Sequence[int]) -> bool:
    """Whether a value is the same all along the axes."""
    spread = v.defined_by("broadcast")
    if spread is None:
        return False
    source = aligned(spread.operands[0].shape, v.ndim)
    return all(source[a] == 1 for a in axes)
