"""Where the operands of attention lie, as a library takes them: arrays of batches, heads, positions and features.

Heads of queries that share one of keys are an axis of their own, and one axis together with the latter where they have
one stride.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

from smelt.backends.contraction import Variables, only_moves
from smelt.backends.lowering import Fused, fuse_variables
from smelt.ir.aval import Aval
from smelt.ir.builder import OpView, Value
from smelt.ir.index import Coordinates, Index, linearize, names_of
from smelt.ir.ops.conversion import Convert
from smelt.passes.kernels.analysis import operand_reads
from smelt.passes.kernels.attention_masks import constant_of

from ...library import Tensor


def number_and(operands: Sequence[Value]) -> tuple[float | None, Value]:
    """The number among two factors, and the other one."""
    x, y = operands
    number = constant_of(y)
    return (number, x) if number is not None else (constant_of(x), y)


def moved_or_rounded(op: OpView, place: Coordinates) -> tuple[Value, Coordinates] | None:
    """What an op moves, or rounds or widens, and from where."""
    if len(op.operands) != 1:
        return None
    rounds = isinstance(op.op, Convert) and op.operands[0].dtype.is_float and op.results[0].dtype.is_float
    return operand_reads(op, place)[0] if rounds or only_moves(op) else None


@dataclass(frozen=True)
class Lying:
    """Where an operand lies.

    Attributes:
        value, offset: in memory, or to be written there, and the offset of its element.
        aval: what lies there.
        scale: what it is to be multiplied by.
    """

    value: Value
    offset: Index
    aval: Aval
    scale: float = 1.0


def lying_of(value: Value, place: Coordinates) -> Lying:
    """Where an operand of the scores lies, or what of it must be written to memory first."""
    scale, last = 1.0, (value, place)
    while (op := value.owner) is not None:
        if op.op.formula == "x * y":
            number, other = number_and(op.operands)
            if number is None:
                break
            [place] = [at for v, at in operand_reads(op, place) if v == other]
            scale, value, last = scale * number, other, (other, place)
        elif only_moves(op):
            [(value, place)] = operand_reads(op, place)
        else:
            break
    if value.owner is not None and value.aval.size > last[0].aval.size:  # of which only a part is used
        value, place = last
    return Lying(value, linearize(place, value.shape), value.aval, scale)


@dataclass(frozen=True)
class Heads:
    """Heads of keys, and of queries that share one of them, as one axis."""

    keys: Fused
    shared: Fused

    @property
    def extent(self) -> int:
        return self.keys.extent * self.shared.extent

    def stride(self, offset: Index) -> int:
        return _stride(offset, self.keys if self.shared.extent == 1 else self.shared)

    def fit(self, *offsets: Index) -> bool:
        """Whether all of them lie with one stride."""
        if 1 in (self.keys.extent, self.shared.extent):
            return True
        times = self.shared.extent
        return all(_stride(x, self.keys) == times * _stride(x, self.shared) for x in offsets)


def _stride(offset: Index, loop: Fused) -> int:
    """How far neighbours along a loop lie from each other."""
    steps = {atom.args[0]: n for atom, n in offset.terms}
    return steps.get(loop.variables[-1][0], 0) if loop.variables else 0


Form: TypeAlias = tuple[Fused, Heads, Fused, Fused]


@dataclass(frozen=True)
class Axes:
    """The axes of attention, each along one stride."""

    batch: Fused
    heads: Heads
    queries: Fused
    keys: Fused
    features: Fused  #: of queries and keys
    columns: Fused  #: features of values

    @classmethod
    def of(
        cls, batch: Fused, rows: Fused, keys: Fused, features: Fused, columns: Fused, offsets: Sequence[Index],
        bound: Index | None,
    ) -> Axes | None:  # fmt: skip
        """None where that cannot be.

        Args:
            rows: of queries, and of heads that share keys.
            offsets: where elements lie, as sums of multiples of variables.
            bound: what is not negative where a key is seen, if not all are.
        """
        one, every = Fused([]), rows.variables
        batches = fuse_variables(batch.variables, offsets)
        if bound is not None:  # of one position, and the rest are heads
            position = [v for v in every if v[0] in names_of([bound])]
            if len(position) != 1 or every[-1] != position[0] or bound != _causal(position, keys.variables):
                return None
            places, groups = [Fused(position)], fuse_variables(every[:-1], offsets)
        else:
            places = fuse_variables(every, offsets)
            places, groups = places[-1:], places[:-1]
        others = [fuse_variables(x.variables, offsets) for x in (keys, features, columns)]
        if len(batches) > 2 or len(groups) > 1 or len(places) != 1 or any(len(x) != 1 for x in others):
            return None
        missing = [one] * (2 - len(batches))
        outer, of_keys = [*batches, *missing] if groups else [*missing, *batches]
        return cls(outer, Heads(of_keys, groups[0] if groups else one), places[0], *(x for (x,) in others))

    @property
    def of_queries(self) -> Form:
        """The axes of queries."""
        return self.batch, self.heads, self.queries, self.features

    @property
    def of_keys(self) -> Form:
        """Those of keys."""
        return self.batch, self._own, self.keys, self.features

    @property
    def of_values(self) -> Form:
        """Those of values."""
        return self.batch, self._own, self.keys, self.columns

    @property
    def of_results(self) -> Form:
        """Those of the result."""
        return self.batch, self.heads, self.queries, self.columns

    @property
    def of_scores(self) -> Form:
        """Those of scores."""
        return self.batch, self.heads, self.queries, self.keys

    @property
    def of_rows(self) -> Form:
        """Those of a number of each query."""
        return self.batch, self.heads, self.queries, Fused([])

    @property
    def _own(self) -> Heads:
        return Heads(self.heads.keys, Fused([]))


def _causal(position: Variables, keys: Variables) -> Index | None:
    """What is not negative where the query at a position sees the keys up to it; None of keys along several axes."""
    return Index.variable(*position[0]) - Index.variable(*keys[0]) if len(keys) == 1 else None


def tensor(buffer: int, x: Lying, form: Form, is_bias: bool = False) -> Tensor:
    """An array of four axes; of a bias, those along which all elements are one have one."""
    batch, heads, rows, columns = form
    shape = [batch.extent, heads.extent, rows.extent, columns.extent]
    strides = [_stride(x.offset, batch), heads.stride(x.offset), _stride(x.offset, rows), _stride(x.offset, columns)]
    if is_bias:
        shape = [n if stride else 1 for n, stride in zip(shape, strides)]
    reach = 1 + sum((n - 1) * stride for n, stride in zip(shape, strides))
    strides = [stride if n > 1 else reach for n, stride in zip(shape, strides)]
    return Tensor(buffer, x.aval.dtype.name, x.offset.const, tuple(shape), tuple(strides))
