"""What the loops over a row compute, in order, and what each of them reads.

A stage is one loop over the row: reductions that need only earlier ones, and outputs as long as the row.
What several stages read can stay in registers; what no loop changes is computed before it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from smelt.backends.lowering import Coordinates
from smelt.backends.plan import Plan
from smelt.backends.recompute import Kept, is_reduced, values_to_keep
from smelt.ir.builder import Value
from smelt.ir.index import names_of
from smelt.ir.scalar import compute_dtype
from smelt.passes.kernels.analysis import is_pointwise, operand_reads

from .merged import MergedState
from .states import RowState, row_states

Read = tuple[Value, Coordinates]


@dataclass
class Stage:
    """One loop over the row.

    Attributes:
        space: extents of its inner variables.
        loads: elements of arguments that the loop reads at addresses known in advance.
        other_loads: those that it reads where it needs them.
        uses: values that an earlier stage computed and kept.
        makes: values to keep for later stages.
        fixed: values that the loop does not change.
    """

    number: int
    space: tuple[int, ...]
    states: list[RowState]
    outputs: list[Value]
    roots: list[Read]
    loads: list[Read] = field(default_factory=list)
    other_loads: list[Read] = field(default_factory=list)
    uses: list[Kept] = field(default_factory=list)
    makes: list[Kept] = field(default_factory=list)
    fixed: list[Read] = field(default_factory=list)


def is_row_output(plan: Plan, v: Value) -> bool:
    """Whether an output has an element for each element of the row."""
    return not is_reduced(v) and bool(plan.space_of[v])


def result_place(plan: Plan, v: Value) -> Coordinates:
    """Where an output with one element for each row lies."""
    return tuple(plan.kept) if is_reduced(v) else plan.places[v]


def find_stages(plan: Plan, merged: Sequence[MergedState] = ()) -> list[Stage]:
    """The stages of a fusion, without what they read; `merged`: reductions that one stage computes together."""
    found: dict[tuple[int, tuple[int, ...]], Stage] = {}

    def stage(v: Value) -> Stage:
        key = plan.stage[v], plan.space_of[v]
        return found.setdefault(key, Stage(*key, [], [], []))

    together = {v for state in merged for v in state.results}
    for state in [*(s for s in row_states(plan) if s.result not in together), *merged]:
        each = stage(state.results[0])
        each.states.append(state)
        each.roots += state.roots
    for v in plan.body.returns:
        if is_row_output(plan, v):
            each = stage(v)
            each.outputs.append(v)
            each.roots.append((v, plan.places[v]))
    return [found[key] for key in sorted(found)]


def find_reads(plan: Plan, stages: Sequence[Stage], keep: bool) -> None:
    """Fill in what each stage reads; `keep`: costly values that several stages need are computed once."""
    kept: dict[Read, Kept] = {}
    if keep:
        described = [(s.number, s.space, s.roots) for s in stages]
        kept = {(x.value, x.place): x for x in values_to_keep(plan.body.ops, described)}
    for stage in stages:
        stage.loads, stage.other_loads, stage.uses, stage.fixed = [], [], [], []
        stage.makes = [x for x in kept.values() if (x.first, x.space) == (stage.number, stage.space)]
        _find_reads(plan, stage, kept)


def _find_reads(plan: Plan, stage: Stage, kept: dict[Read, Kept]) -> None:
    inner = {name for name, _ in plan.spaces.get(stage.space, ())}
    pending = list(reversed(stage.roots))
    seen = set(pending)
    while pending:
        v, at = read = pending.pop()
        known = kept.get(read)
        if known is not None and known.space == stage.space and known.first < stage.number:
            stage.uses.append(known)
            continue
        if is_reduced(v):
            if inner.isdisjoint(names_of(at)):
                stage.fixed.append(read)
            continue
        kinds = {a.kind for i in at for a in i.atoms()}
        inside = all(i.lo >= 0 and i.hi < d for i, d in zip(at, v.shape)) and "dynamic" not in kinds
        op = v.owner
        if inner.isdisjoint(names_of(at)) and "dynamic" not in kinds:
            if inside and (op is None or is_pointwise(op)):
                stage.fixed.append(read)
                continue
        if op is None:
            (stage.loads if inside else stage.other_loads).append(read)
            continue
        for new in reversed(operand_reads(op, at)):
            if new not in seen:
                seen.add(new)
                pending.append(new)


def kept_in_registers(stages: Sequence[Stage], room: dict[tuple[int, ...], int], limit: int) -> set[Any]:
    """Which loads stay in registers after the first stage that reads them.

    Args:
        room: extents of inner variables → values of one array that a thread holds; none where it holds only
            part of the row at a time.
        limit: values that a thread holds of all arrays.
    """
    chosen: set[Read] = set()
    for space, values in room.items():
        own = [s for s in stages if s.space == space]
        several = [r for s in own for r in s.loads if sum(r in t.loads for t in own) > 1]
        for read in sorted(dict.fromkeys(several), key=lambda r: -r[0].aval.nbytes):
            if _most_held(own, chosen | {read}) * values <= limit:
                chosen.add(read)
    return chosen


def _most_held(stages: Sequence[Stage], loads: set[Read]) -> int:
    """Arrays of the row that are in registers at the same time, in words an element."""
    most = 0
    for n, stage in enumerate(stages):
        words = ending = 0
        for read in loads:
            using = [i for i, s in enumerate(stages) if read in s.loads]
            if using and using[0] <= n <= using[-1]:
                words += _words(read[0])
                ending += _words(read[0]) if using[-1] == n else 0
        starting = 0
        for x in (x for s in stages for x in s.makes):
            using = [i for i, s in enumerate(stages) if x in s.uses]
            if x in stage.makes:
                starting += _words(x.value)  # takes the place of what is read for the last time
            elif using and x.first < stage.number and n <= using[-1]:
                words += _words(x.value)
                ending += _words(x.value) if using[-1] == n else 0
        most = max(most, words + max(0, starting - ending))
    return most


def most_held(stages: Sequence[Stage]) -> int:
    """Arrays that are in registers at the same time if nothing is read twice, at most in one space."""
    most = 0
    for space in {s.space for s in stages}:
        own = [s for s in stages if s.space == space]
        several = {r for s in own for r in s.loads if sum(r in t.loads for t in own) > 1}
        most = max(most, _most_held(own, several))
    return most


def _words(v: Value) -> int:
    return 2 if compute_dtype(v.dtype).size == 8 else 1
