"""Dependence inside of a function: which ops depend on given values.

Derivatives ask which ops depend on a tangent, batching which depend on the batch, and loops which change from step to
step.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from smelt.ir.builder import OpView, Value

#: Which results of an op depend on the sources, given which of its operands do.
Through = Callable[[OpView, "list[bool]"], Sequence[bool]]


class Split(NamedTuple):
    """The ops of a function, in order, by whether an operand depends on the sources.

    Attributes:
        values: the values that depend on them, themselves included.
        before: the ops that run without them.
        after: the others.
    """

    values: set[Value]
    before: list[OpView]
    after: list[OpView]


def split(
    ops: Iterable[OpView], sources: Iterable[Value], through: Through | None = None, effects: bool = False
) -> Split:
    """Split ops by dependence on `sources`.

    Args:
        through: which results depend on the sources; without it, all of an op with an operand that does.
        effects: whether an op with effects counts as one of the sources.
    """
    found = Split(set(sources), [], [])
    for op in ops:
        flags = [v in found.values for v in op.operands]
        if effects and not op.op.pure:
            found.values.update(op.results)
            found.after.append(op)
        elif not any(flags):
            found.before.append(op)
        else:
            found.after.append(op)
            kept = [True] * len(op.results) if through is None else through(op, flags)
            found.values.update(r for r, flag in zip(op.results, kept) if flag)
    return found


def cone(returns: Iterable[Value], stop: Iterable[Value] = ()) -> set[Value]:
    """All values that `returns` are computed from, themselves included, looking no further than `stop`."""
    ends = set(stop)
    seen: set[Value] = set()
    pending = list(returns)
    while pending:
        value = pending.pop()
        if value in seen:
            continue
        seen.add(value)
        if value.owner is not None and value not in ends:
            pending += value.owner.operands
    return seen


def dependence(values: Iterable[Value], sources: Iterable[Value]) -> dict[Value, bool]:
    """Whether each of `values`, and of those that they are computed from, depends on any of `sources`.

    For a function that is still being written, whose ops are known by its values alone.
    """
    known = dict.fromkeys(sources, True)
    pending = list(values)
    while pending:
        value = pending[-1]
        operands = value.owner.operands if value.owner is not None else ()
        unknown = [] if value in known else [v for v in operands if v not in known]
        if unknown:
            pending += unknown
            continue
        pending.pop()
        if value not in known:
            known[value] = any(known[v] for v in operands)
    return known


def closed(flags: Sequence[bool], after: Callable[[list[bool]], Sequence[bool]]) -> list[bool]:
    """The least flags that include `flags` and what `after` makes of them: of the carries of a loop, whose body
    says which of them depend on something after a step."""
    known = list(flags)
    while True:
        grown = [a or b for a, b in zip(known, after(known))]
        if grown == known:
            return known
        known = grown
