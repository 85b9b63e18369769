"""What a branch reads that not all elements of a batch take.

Every element computes every branch, and results are chosen afterwards. What a branch computes for an element that does
not take it is dropped, but its derivative is zero times what the rules of its ops give, which is NaN where that is
infinite. So, where a derivative is taken, these elements read what the first one reads that does take the branch: then
each derivative is as finite as that of an element which counts. Before, %rows being true for those that take it::

    %r = call @branch_batch(%x)

After::

    %taken = call @branch_rows(%rows, %x)
    %r = call @branch_batch(%taken)

@branch_rows returns its operands, and its rules say what is true of its derivatives: it is gone, without a trace, where
none is taken. What all elements share passes no derivative on where no element takes the branch.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from smelt.ir.builder import Builder, Value, functions

from ...rewrite import has_rules
from ...rules import Dims, Values
from ..custom_rules import JVP, PRIMAL, set_rule

if TYPE_CHECKING:
    from ..batch import Batching


def of_rows(t: Batching, b: Builder, branch: str, rows: Value, values: Values, dims: Dims) -> list[Value]:
    """The operands of a branch that the elements of the batch in `rows` take; no others pass derivatives on."""
    inexact = [x.dtype.is_inexact for x in values]
    if not t.size or not any(inexact):
        return list(values)
    avals = [v.aval for v in (rows, *values)]
    key = (branch, *avals, *dims)
    name = t.build(branch, f"{branch}_rows", ("rows", *key), avals, avals[1:], lambda _, given: given[1:])
    made = functions(t.module)[name]
    if not has_rules(made):

        def pushed(to: Builder, given: list[Value]) -> Sequence[Value]:
            tangents, places = given[len(avals) :], [d for d, flag in zip(dims, inexact) if flag]
            return _chosen(to, given[0], tangents, [to.zeros_like(t) for t in tangents], places)

        def taken(to: Builder, given: list[Value]) -> Sequence[Value]:
            return read_by_rows(to, given[0], given[1:], dims)

        tangents = [a for a, flag in zip(avals[1:], inexact) if flag]
        jvp = t.build(branch, f"{name}_jvp", ("rows jvp", *key), [*avals, *tangents], tangents, pushed)
        set_rule(made, JVP, jvp)
        set_rule(made, PRIMAL, t.build(branch, f"{name}_taken", ("rows taken", *key), avals, avals[1:], taken))
    return list(b.call(name, [rows, *values], avals[1:]))


def read_by_rows(b: Builder, rows: Value, values: Values, dims: Dims) -> list[Value]:
    """The values; those of the first element in `rows`, without derivatives, for elements that are not among them."""
    first = b.argmax(rows, axis=0)
    others = []
    for x, dim in zip(values, dims):
        if dim is not None:
            window = tuple(1 if i == dim else d for i, d in enumerate(x.shape))
            x = b.broadcast_to(b.gather(x, first, axes=(dim,), slice_sizes=window), x.shape)
        others.append(b.stop_gradient(x) if x.dtype.is_inexact else x)
    return _chosen(b, rows, values, others, dims)


def _chosen(b: Builder, rows: Value, values: Values, others: Values, dims: Dims) -> list[Value]:
    """The values for the elements of the batch in `rows`, `others` for the rest; what all share, where there is one."""
    found = []
    for x, other, dim in zip(values, others, dims):
        if dim is None:
            condition = b.reduce_any(rows, axes=(0,))
        else:
            condition = b.reshape_to(rows, tuple(d if i == dim else 1 for i, d in enumerate(x.shape)))
        found.append(b.select(b.broadcast_to(condition, x.shape), x, other))
    return found
