"""What chains of attention's gradient are made of: factors of weights, and where the arrays lie that they read.

A side is a chain whose rows are queries, or keys. Its weights are products of exponentials of logits, of numbers of
rows, and of what is subtracted from other scores (see `library_gradient`).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace

from smelt.backends.chains import Chain, ChainEnd, ChainScore
from smelt.ir.builder import OpView, Value
from smelt.ir.index import Coordinates, Index, linearize
from smelt.ir.ops.compare import Select
from smelt.passes.kernels.analysis import operand_reads
from smelt.passes.kernels.attention_masks import constant_of, seen_where

from .attention_operands import Lying, lying_of, moved_or_rounded
from .library_attention import Logits, logits_of


@dataclass(frozen=True)
class Factors:
    """What the weights of an end are made of.

    Attributes:
        numbers: of rows: what the logits are shifted by, and a factor of the exponentials.
        difference: what is subtracted from the cotangents of weights, and where it is read, if these are a factor.
        scale: the product of all constants.
        other: the other operand of the end. end: it.
    """

    numbers: tuple[Lying, Lying]
    difference: tuple[Value, Coordinates] | None
    scale: float
    other: Lying
    end: ChainEnd


@dataclass(frozen=True)
class Side:
    """A chain, as a side of a gradient.

    Attributes:
        call: of the body, what runs it.
        outer: by argument, and by result, the value of the body.
        scores, inner: the contractions of queries and keys, and of cotangents and values.
        logits: what exponentials are taken of.
        operands: queries and keys, cotangents and values.
    """

    call: OpView
    chain: Chain
    outer: Mapping[Value, Value]
    scores: ChainScore
    inner: ChainScore
    logits: Logits
    operands: tuple[Lying, ...]

    @classmethod
    def of(cls, op: OpView, chain: Chain) -> Side | None:
        """None where it is none."""
        outer = dict(zip((*chain.body.arguments, *chain.body.returns), (*op.operands, *op.results)))
        is_of_queries = len(chain.ends) == 1
        keys = chain.depth if is_of_queries else chain.rows
        if len(chain.scores) != 2 or len(chain.exponentials) != 1 or len(keys.variables) != 1:
            return None
        (key,) = Index.variable(*keys.variables[0]).atoms()
        places = [at for end in chain.ends for v, at in Leaves(end.weights, end.place).found
                  if v.owner is chain.exponentials[0]]  # fmt: skip
        difference = chain.exponentials[0].operands[0].owner
        if difference is None or difference.op.formula != "x - y" or not places:
            return None
        value, at = operand_reads(difference, places[0])[0]
        both = [(logits_of(score.value, value, at, key), score) for score in chain.scores]
        (logits, scores), (_, inner) = sorted(both, key=lambda found: found[0] is None)
        if logits is None or logits.bias is not None:
            return None
        sides = [(x.left, x.right) if is_of_queries else (x.right, x.left) for x in (scores, inner)]
        operands = [_outer(outer, lying_of(x.value, x.access.place)) for pair in sides for x in pair]
        given = tuple(x for x in operands if x is not None)
        return cls(op, chain, outer, scores, inner, logits, given) if len(given) == 4 else None

    def factors(self, end: ChainEnd) -> Factors | None:
        """What the weights of an end are made of; None where that is something else."""
        leaves = Leaves(end.weights, end.place)
        scale, numbers = leaves.scale, list[tuple[Value, Coordinates]]()
        shifts, differences = list[tuple[Value, Coordinates]](), list[tuple[Value, Coordinates]]()
        if not all(bound is not None and bound == self.logits.bound for bound in leaves.bounds):
            return None
        for value, place in leaves.found:
            op = value.owner
            if op is None:
                numbers.append((value, place))
            elif op is self.chain.exponentials[0]:
                assert op.operands[0].owner is not None  # see `of`
                shifts.append(source(*operand_reads(op.operands[0].owner, place)[1]))
            elif op.op.formula == "x - y" and source(*operand_reads(op, place)[0])[0] == self.inner.value:
                differences.append(source(*operand_reads(op, place)[1]))
            else:
                return None
        every = [*shifts, *numbers, *differences]
        if len(shifts) != 1 or len(numbers) != 1 or len(differences) > 1 or any(v not in self.outer for v, _ in every):
            return None
        rhs = end.product.rhs
        other = _outer(self.outer, lying_of(rhs.value, rhs.access.place))
        if other is None:
            return None
        shift, number = (Lying(self.outer[v], linearize(at, v.shape), v.aval) for v, at in (*shifts, *numbers))
        difference = next(((self.outer[v], at) for v, at in differences), None)
        return Factors((shift, number), difference, scale, other, end)


class Leaves:
    """The factors of a product, and where they are read, through what moves and rounds them; as far as what is known.

    Attributes:
        found: those that are no constants. scale: the product of those that are.
        bounds: what is not negative where zeros do not stand in place of a factor; None of what is not known.
    """

    def __init__(self, value: Value, place: Coordinates, known: Collection[Value] = ()):
        self._known = known
        self.found: list[tuple[Value, Coordinates]] = []
        self.scale = 1.0
        self.bounds: list[Index | None] = []
        self._visit(value, place)

    def _visit(self, value: Value, place: Coordinates) -> None:
        value, place = source(value, place, self._known)
        number, op = constant_of(value), value.owner
        if value in self._known:
            self.found.append((value, place))
        elif number is not None:
            self.scale *= number
        elif op is not None and op.op.formula == "x * y":
            for v, at in operand_reads(op, place):
                self._visit(v, at)
        elif op is not None and isinstance(op.op, Select) and 0 in (zeros := [constant_of(v) for v in op.operands[1:]]):
            shown = zeros.index(0) == 1
            (condition, at), *both = operand_reads(op, place)
            seen = seen_where(condition, at, shown)
            self.bounds.append(seen.bounds[0] if seen.is_all and len(seen.bounds) == 1 else None)
            self._visit(*both[0 if shown else 1])
        else:
            self.found.append((value, place))


def source(value: Value, place: Coordinates, known: Collection[Value] = ()) -> tuple[Value, Coordinates]:
    """What is moved, rounded and widened to be a value, and from where; as far as to what is known."""
    while value.owner is not None and value not in known and (onwards := moved_or_rounded(value.owner, place)):
        value, place = onwards
    return value, place


def _outer(outer: Mapping[Value, Value], x: Lying) -> Lying | None:
    """The same of the body around; None of what is computed inside."""
    return replace(x, value=outer[x.value]) if x.value in outer else None
