"""How many bytes a kernel moves between memory and the caches: an estimate from its loops.

The least possible is every distinct operand read once and every result written once. What a schedule
really moves can differ:

- of an operand, only the elements that the loops address are read, however many places read them;
- a row that is gone from the cache when a later loop over it starts is read again: once for every
  stage, and once more to find where an extremum is; reductions that merge are one stage;
- an element at an index known at run time is fetched by itself, with the line around it unless the
  loop runs along that line, if its array does not fit the cache;
- a scatter copies its operand, then reads and writes what it updates;
- partial results of a reduction in chunks are written and read.

Library kernels and host steps are taken to move the least. Lines read before they are overwritten,
and elements that are skipped within a line, are not counted.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from smelt.backends.plan import Plan, make_plan
from smelt.ir.builder import Function, OpView, Value
from smelt.ir.index import Index, variables
from smelt.passes.kernels.analysis import Coordinates, collect_reads, is_row_reduction, reduced_axes
from smelt.passes.kernels.cost import least_bytes
from smelt.passes.kernels.groups import innermost_axis

from .merged_rows import Merging
from .rows import LINE

#: What a thread reads again within this many bytes comes from its cache.
CACHE_BYTES = 1 << 20
#: What memory hands over at once.
LINE_BYTES = 64

Root = tuple[Value, Coordinates]


def moved_bytes(body: Function, schedule: str, kept_axes: Sequence[Sequence[int]] | None, chunks: int) -> int:
    """What the kernel of a fusion moves with its schedule."""
    written = least_bytes(body.returns)
    if schedule in ("contract", "attention"):  # blocks of its operands stay in the caches
        return written + least_bytes(body.arguments)
    if schedule in ("scan", "scatter"):
        (op,) = (v.owner for v in body.returns[:1])
        assert op is not None
        roots = [(op.operands[0], variables(op.operands[0].shape, "o"))]
        if schedule == "scatter":
            _, updates, *indices = op.operands
            at = variables(updates.shape, "u")
            roots += [(updates, at), *((i, at[: i.ndim]) for i in indices)]
            written += 2 * updates.aval.nbytes
        loops = max(math.prod(v.shape) for v, _ in roots)
        return written + sum(_read_once(v, places, loops) for v, places in _arguments(body, [roots]))
    plan = make_plan(body, kept_axes)
    merging = Merging.of(body, kept_axes) if schedule == "row" and kept_axes is not None else None
    stages = _stages(plan, merging.stage if merging is not None else {})
    loops = math.prod(extent for _, extent in plan.kept_variables)
    loops *= max((math.prod(space) for space in plan.spaces), default=1)
    if _row_bytes(plan, stages) // chunks <= CACHE_BYTES:
        stages = [[root for roots in stages for root in roots]]
    partial = sum(op.results[0].aval.nbytes for op in plan.reductions) * 2 * chunks if chunks > 1 else 0
    read = sum(_read_once(v, places, loops) for stage in stages for v, places in _arguments(body, [stage]))
    return written + partial + read


def _stages(plan: Plan, merged: Mapping[Value, int]) -> list[list[Root]]:
    """What each loop over a row computes, `merged` reductions in that of others; the second loop of argmax and argmin
    is one of its own."""
    found: dict[tuple[int, int], list[Root]] = {}
    for op in plan.reductions:
        v = op.results[0]
        root = (op.operands[0], plan.places[v])
        found.setdefault((merged.get(v, plan.stage[v]), 0), []).append(root)
        if op.op.kind == "arg_reduction" and not _is_line(op):
            found.setdefault((plan.stage[v], 1), []).append(root)
    for v in plan.body.returns:
        if v.owner is None or not is_row_reduction(v.owner):
            found.setdefault((plan.stage[v], 0), []).append((v, plan.places[v]))
    return [found[key] for key in sorted(found)]


def _is_line(op: OpView) -> bool:
    """Whether neighbouring rows run together."""
    last = innermost_axis(op.operands[0].shape)
    return last is not None and last not in reduced_axes(op)


def _arguments(body: Function, stages: Sequence[Sequence[Root]]) -> list[tuple[Value, list[Coordinates]]]:
    """The arguments that some stages read, and where."""
    roots = [root for stage in stages for root in stage]
    reads = collect_reads(body.ops, roots, stop=lambda v: v.owner is not None and is_row_reduction(v.owner))
    return [(v, list(reads[v])) for v in body.arguments if v in reads]


def _row_bytes(plan: Plan, stages: Sequence[Sequence[Root]]) -> int:
    """What one row reads (of rows that run together: all of them)."""
    kept = {name for name, _ in plan.kept_variables}
    lanes = LINE if any(_is_line(op) for op in plan.reductions) else 1
    total = 0
    for v, places in _arguments(plan.body, stages):
        elements = sum(_extent(p, kept) for p in places)
        total += min(v.aval.nbytes, elements * lanes * v.dtype.size)
    return total


def _read_once(v: Value, places: Sequence[Coordinates], loops: int) -> int:
    """What reading `v` at `places` moves when nothing is read twice."""
    static, gathered = 0, 0
    for place in places:
        if any(a.kind == "dynamic" for i in place for a in i.atoms()):
            along = bool(place) and _runs_along(place[-1])
            gathered += loops * (v.dtype.size if along else max(v.dtype.size, LINE_BYTES))
        else:
            static += _extent(place, set()) * v.dtype.size
    if v.aval.nbytes <= CACHE_BYTES:
        gathered = min(gathered, v.aval.nbytes)
    return max(min(static, v.aval.nbytes), gathered)


def _runs_along(index: Index) -> bool:
    return any(atom.kind == "var" and abs(c) == 1 for atom, c in index.terms)


def _extent(place: Coordinates, without: set[Any]) -> int:
    """How many positions the loop variables in `place` have, other than `without`."""
    used = {a for i in place for a in i.atoms() if a.kind == "var" and a.args[0] not in without}
    return math.prod(a.hi + 1 for a in used)
