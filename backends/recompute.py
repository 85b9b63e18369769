"""Which values of a row kernel are worth keeping from one loop over the row to the next."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from smelt.ir.builder import OpView, Value
from smelt.passes.kernels.analysis import (
    Coordinates,
    collect_reads,
    is_pointwise,
    is_row_reduction,
    operand_reads,
    plain_variable,
)

from .plan import Plan, always_inside

#: Additions above which a value is kept rather than computed again.
EXPENSIVE = 8.0
#: Additions above which a value of a row is computed once, and not for each element of the row.
ONCE = 2.0


@dataclass(frozen=True)
class Kept:
    """A value computed by stage `first` and read again by later stages with the same inner loops."""

    value: Value
    place: Coordinates
    space: tuple[int, ...]
    first: int


def values_to_keep(
    ops: Sequence[OpView], stages: Sequence[tuple[int, tuple[int, ...], Sequence[tuple[Value, Coordinates]]]]
) -> list[Kept]:
    """`stages`: number, inner extents, and what the stage computes, in order."""
    found: dict[tuple[Value, Coordinates], Kept] = {}
    for n, (_, space, roots) in enumerate(stages):
        before = [
            (number, collect_reads(ops, earlier_roots, stop=is_reduced))
            for number, inner, earlier_roots in stages[:n]
            if inner == space
        ]
        if not before:
            continue
        seen = set(roots)
        pending = list(roots)
        while pending:
            value, place = pending.pop()
            op = value.owner
            if op is None or not is_pointwise(op) or (value, place) in found:
                continue
            first = next((number for number, reads in before if place in reads.get(value, ())), None)
            if first is not None:
                if always_inside(value, place) and _cost(op) >= EXPENSIVE:
                    found[value, place] = Kept(value, place, space, first)
                continue
            for read in operand_reads(op, place):
                if read not in seen:
                    seen.add(read)
                    pending.append(read)
    return list(found.values())


def values_of_rows(
    plan: Plan, roots: Sequence[tuple[Value, Coordinates]], known: Collection[Value]
) -> list[tuple[Value, Coordinates]]:
    """What computing `roots` reads once a row, and takes arithmetic that is not `known` already."""
    everything = [(v, plan.places.get(v, tuple(plan.kept))) for v in plan.body.returns]
    everything += [(op.operands[0], plan.places[op.results[0]]) for op in plan.reductions]
    places = collect_reads(plan.body.ops, everything)
    kept = {name for name, _ in plan.kept_variables}

    def is_row(place: Coordinates) -> bool:
        variables = [plain_variable(i) for i in place if not i.is_constant]
        return all(v is not None and v.args[0] in kept for v in variables)

    found: dict[tuple[Value, Coordinates], None] = {}
    pending, seen = list(roots), set(roots)
    while pending:
        value, place = pending.pop()
        op = value.owner
        if op is None or value in known or not is_pointwise(op):
            continue
        if is_row(place) and len(places[value]) == 1 and _cost(op) >= ONCE:
            found[value, place] = None
            continue
        for read in operand_reads(op, place):
            if read not in seen:
                seen.add(read)
                pending.append(read)
    return list(found)


def is_reduced(v: Value) -> bool:
    """Whether a value is the result of a reduction of rows."""
    return v.owner is not None and is_row_reduction(v.owner)


def cost_of(v: Value) -> float:
    """Additions to compute a value from memory and from reductions."""
    return 0.0 if v.owner is None or is_row_reduction(v.owner) else _cost(v.owner)


def _cost(op: OpView) -> float:
    """Additions to compute the op's result from memory and from reductions."""
    total, seen, pending = 0.0, {op}, [op]
    while pending:
        op = pending.pop()
        total += op.op.flops
        for v in op.operands:
            made = v.owner
            if made is not None and made not in seen and is_pointwise(made):
                seen.add(made)
                pending.append(made)
    return total
