"""The plan of a fusion's loops: index variables, where values are read, in which loop each is computed.

No target's: schedules of all backends start from it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from smelt.ir.builder import Function, OpView, Value
from smelt.ir.index import Atom, Index, linearize
from smelt.passes.kernels.analysis import is_row_reduction, operand_reads, reduced_axes

from .lowering import Coordinates, Fused


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


def make_plan(body: Function, kept_axes: Sequence[Sequence[int]] | None) -> Plan:
    """Variables for a fusion; `kept_axes`: for each output, which of its axes are the kept ones."""
    first = body.returns[0]
    if kept_axes is None:
        kept_axes = [tuple(range(v.ndim)) for v in body.returns]
    kept_shape = [1 if a < 0 else first.shape[a] for a in kept_axes[0]]
    kept_variables = [(f"o{i}", extent) for i, extent in enumerate(kept_shape)]
    kept = [Index.variable(name, extent) for name, extent in kept_variables]
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
