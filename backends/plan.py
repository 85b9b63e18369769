"""The plan of a fusion's loops: index variables, where values are read, in which loop each is computed.

No target's: schedules of all backends start from it.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from smelt.ir.builder import Function, OpView, Value
from smelt.ir.index import Atom, Index, linearize
from smelt.ir.kinds import Fusible
from smelt.passes.kernels.analysis import collect_reads, is_row_reduction, operand_reads, plain_variable, reduced_axes

from .lowering import Coordinates, Fused

#: A map is divided into so many parts at most, none of which has fewer elements than this beside each other.
PARTS, NARROW = 8, 16
#: The same where so many ops choose between parts, each of which is a branch in the others; and along one axis alone.
NESTED, NESTED_PARTS, JOINED_PARTS = 3, 9, 32
#: Elements of a part around a border, a multiple of them: lines of memory of any dtype, so that parts can be streamed.
AROUND = 64


@dataclass
class Plan:
    """A fusion body with its index variables."""

    body: Function
    kept: list[Index]
    kept_variables: list[tuple[Any, int]]
    places: dict[Value, Coordinates]  #: of outputs and of reductions' operands (by the reduction's result)
    spaces: dict[tuple[int, ...], list[tuple[Any, int]]]  #: inner extents → variables
    space_of: dict[Value, tuple[int, ...]]  #: of outputs and reductions
    stage: dict[Value, int]  #: of reductions: which loop computes them; of outputs: the earliest
    uses: list[Index] = field(default_factory=list)
    loads: list[tuple[Value, Coordinates]] = field(default_factory=list)

    @property
    def reductions(self) -> list[OpView]:
        return [op for op in self.body.ops if is_row_reduction(op)]


def make_plan(
    body: Function, kept_axes: Sequence[Sequence[int]] | None, part: Sequence[tuple[int, int]] | None = None
) -> Plan:
    """Variables for a fusion. What chooses a schedule, the schedule, and estimates ask for the same: it is made once.

    Args:
        kept_axes: for each output, which of its axes are the kept ones.
        part: of each kept axis, from where to where the loops go, if not over all of it.
    """
    first = body.returns[0]
    if kept_axes is None:
        kept_axes = [tuple(range(v.ndim)) for v in body.returns]
    kept_shape = [1 if a < 0 else first.shape[a] for a in kept_axes[0]]
    bounds = [(0, extent) for extent in kept_shape] if part is None else part
    key = "plan", tuple(map(tuple, kept_axes)), tuple(map(tuple, bounds))
    if key not in body.derived:
        body.derived[key] = _plan(body, kept_axes, bounds)
    found: Plan = body.derived[key]
    return found


def _plan(body: Function, kept_axes: Sequence[Sequence[int]], bounds: Sequence[tuple[int, int]]) -> Plan:
    kept_variables = [(f"o{i}", stop - start) for i, (start, stop) in enumerate(bounds)]
    kept = [Index.variable(name, extent) + start for (name, extent), (start, _) in zip(kept_variables, bounds)]
    plan = Plan(body, kept, kept_variables, {}, {}, {}, {})

    def inner(extents: tuple[int, ...]) -> list[Index]:
        if extents not in plan.spaces:
            tag = "x".join(map(str, extents))
            plan.spaces[extents] = [(f"r{i}_{tag}", extent) for i, extent in enumerate(extents)]
        return [Index.variable(name, extent) for name, extent in plan.spaces[extents]]

    def place(value: Value, shape: Sequence[int], axes: Sequence[int]) -> None:
        """`axes[i]` of `shape` runs over kept position i; the other axes are inner."""
        extents = tuple(d for a, d in enumerate(shape) if a not in axes and d != 1)
        rest = iter(inner(extents))
        at = dict(zip(axes, kept))
        plan.places[value] = tuple(
            at[a] if a in at else next(rest) if d != 1 else Index(0) for a, d in enumerate(shape)
        )
        plan.space_of[value] = extents

    for v, axes in zip(body.returns, kept_axes):
        if v.owner is None or not is_row_reduction(v.owner):
            place(v, v.shape, axes)
    depth: dict[Value, int] = {}
    for op in body.ops:
        level = max((depth.get(v, 0) for v in op.operands), default=0)
        if is_row_reduction(op):
            shape, gone = op.operands[0].shape, reduced_axes(op)
            place(op.results[0], shape, [a for a in range(len(shape)) if a not in gone])
            plan.stage[op.results[0]] = level
            level += 1
        depth[op.results[0]] = level
    for v in body.returns:
        plan.stage.setdefault(v, depth.get(v, 0))
    _collect_uses(plan)
    return plan


def _collect_uses(plan: Plan) -> None:
    """Every address and number that the kernel computes from its loop variables."""
    reads: dict[Value, dict[Coordinates, None]] = {}
    numbers: list[Index] = []
    for v in plan.body.returns:
        if v.owner is None or not is_row_reduction(v.owner):
            reads.setdefault(v, {})[plan.places[v]] = None
            numbers.append(linearize(plan.places[v], v.shape))
        else:
            reads.setdefault(v, {})[tuple(plan.kept)] = None
            numbers.append(linearize(plan.kept, v.shape))
    for op in reversed(plan.body.ops):
        v = op.results[0]
        if v not in reads:
            continue
        if is_row_reduction(op):
            reads.setdefault(op.operands[0], {})[plan.places[v]] = None
        else:
            for at in reads[v]:
                for operand, there in operand_reads(op, at, numbers):
                    reads.setdefault(operand, {})[there] = None
    for v in plan.body.arguments:
        plan.loads += [(v, at) for at in reads.get(v, ())]
        numbers += [linearize(at, v.shape) for at in reads.get(v, ())]
    plan.uses = numbers


def parts_of(body: Function) -> list[list[tuple[int, int]]]:
    """A map in parts in each of which all elements are computed in one way (see `Fusible.borders`): ranges of the axes,
    of each those that the ranges of the axes before it have. A border that would make a narrow part has a part around
    it, whose elements ask which way is theirs. It stays whole where the parts would be many, and along its first axes
    where choices are nested."""
    shape = body.returns[0].shape
    whole = [(0, extent) for extent in shape]
    cuts, choosing = cuts_of(body)
    long = max((a for a, extent in enumerate(shape) if extent > 1), default=0)
    if any(len(at) > 2 for at in cuts[long:]) and all(len(_widened(at)) == 2 for at in cuts[long:]):
        return [whole]
    found = list(_divided(body, whole, 0, long))
    most = PARTS
    if choosing >= NESTED:
        along = sum(len(_widened(at) if a >= long else at) > 2 for a, at in enumerate(cuts))
        most = NESTED_PARTS if along > 1 else JOINED_PARTS
        for axis in range(len(shape)):
            if len(found) > most:
                found = list(_divided(body, whole, axis + 1, long))
    return found if len(found) <= most else [whole]


def _divided(
    body: Function, part: list[tuple[int, int]], axis: int, long: int
) -> Iterator[list[tuple[int, int]]]:  # fmt: skip
    """A part of a map, divided along its axes from `axis` on; from `long` on without narrow ranges."""
    if axis == len(part):
        yield part
        return
    at = _cuts_of(body, part)[0][axis]
    for bounds in itertools.pairwise(sorted(_widened(at) if axis >= long else at)):
        yield from _divided(body, [*part[:axis], bounds, *part[axis + 1 :]], axis + 1, long)


def cuts_of(body: Function) -> tuple[list[set[int]], int]:
    """Of each axis of a map, where elements on both sides are computed in different ways, and its ends; and how many
    ops choose between these."""
    if "cuts" not in body.derived:
        body.derived["cuts"] = _cuts_of(body, [(0, extent) for extent in body.returns[0].shape])
    found: tuple[list[set[int]], int] = body.derived["cuts"]
    return found


def _cuts_of(body: Function, part: Sequence[tuple[int, int]]) -> tuple[list[set[int]], int]:
    """The same of a part of it."""
    plan = make_plan(body, None, part)
    axes = {name: axis for axis, (name, _) in enumerate(plan.kept_variables)}
    reads = collect_reads(body.ops, [(v, plan.places[v]) for v in body.returns])
    cuts: list[set[int]] = [{start, stop} for start, stop in part]
    choosing = set[OpView]()
    for op in body.ops:
        if not isinstance(op.op, Fusible):
            continue
        avals = [v.aval for v in op.operands]
        for place in reads.get(op.results[0], ()):
            for index, border in op.rules(Fusible).borders(place, avals, **op.attrs):
                variable = plain_variable(index - index.const)
                at = border - index.const
                if variable is not None and 0 < at <= variable.hi:
                    axis = axes[variable.args[0]]
                    cuts[axis].add(part[axis][0] + at)
                    choosing.add(op)
    return cuts, len(choosing)


def _widened(cuts: set[int]) -> set[int]:
    """Cuts of an axis without narrow ranges between them: `cuts` themselves, or the multiples of AROUND around each."""
    extent = max(cuts)
    if all(stop - start >= NARROW for start, stop in itertools.pairwise(sorted(cuts))):
        return cuts
    last = (extent - NARROW) // AROUND * AROUND
    inner = cuts - {0, extent}
    around = {min(at - at % AROUND, last) for at in inner} | {at + -at % AROUND for at in inner}
    return {0, extent} | {at for at in around if 0 < at <= last}


def is_static(place: Coordinates) -> bool:
    """Whether an access is where loop counters alone say, so that it can be made before its element is computed.

    A place computed from an array of indices can only be evaluated with the op that reads there.
    """
    return not any(atom.kind == "dynamic" for i in place for atom in i.atoms())


def always_inside(v: Value, place: Coordinates) -> bool:
    """Whether an access is inside its array wherever the loops stand, so that no condition has to hold first."""
    return is_static(place) and all(i.lo >= 0 and i.hi < extent for i, extent in zip(place, v.shape))


def crossing_loop(loops: Sequence[Fused], uses: Sequence[Index]) -> int | None:
    """The loop along which some access is contiguous that is strided in the innermost loop."""
    if len(loops) < 2 or loops[-1].extent < 8:
        return None

    for use in uses:
        for i, loop in enumerate(loops[:-1]):
            if loop.extent >= 8 and crosses(use, loop, loops[-1]):
                return i
    return None


def crosses(use: Index, rows: Fused, columns: Fused) -> bool:
    """Whether an access is contiguous along `rows` and strided along `columns`."""

    def coefficient(loop: Fused) -> int:
        name, extent = loop.variables[-1]
        return abs(use.coefficient(Atom("var", (name,), 0, extent - 1)))

    return coefficient(rows) == 1 and coefficient(columns) >= 16
