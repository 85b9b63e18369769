"""Chains: products of elements that elementwise ops make of other products, as one kernel; these are never in memory.

What the gradient of attention consists of, once `recompute-attention` has been there::

    %s = "smelt.dot_general"(%q, %k) ...            // scores
    %p = "smelt.dot_general"(%do, %v) ...           // cotangents of the weights
    %ds = ...                                       // elementwise ops on both, and on numbers of rows
    %dk = "smelt.dot_general"(%ds, %q) ...

One kernel has all products that are summed over the same axes: that of keys and values sums over queries, that of
queries over keys. `fuse` outlines these with the attribute ``smelt.fusion = "chain"``. A kernel has a tile of the
results' rows, and goes through what is summed in tiles.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from smelt.ir.builder import Function, OpView, Value
from smelt.ir.index import Access, Coordinates, Index, names_of, variables

from .analysis import collect_reads, is_pointwise
from .contraction_places import depth_of, inverse_place, is_contraction, operand_accesses, rules_of, substitute


@dataclass(frozen=True)
class Score:
    """A contraction whose results are in no memory.

    Attributes:
        place: where its results are read. features: what it sums over.
        side: which of its operands has the chain's rows; accesses: of both.
    """

    op: OpView
    place: Coordinates
    features: Coordinates
    side: int
    accesses: tuple[Access, ...]


@dataclass(frozen=True)
class End:
    """A contraction of what is made of scores.

    Attributes:
        at: of its result. place: of what is made of scores, which is its operand `side`. access: of the other one.
    """

    op: OpView
    at: Coordinates
    place: Coordinates
    side: int
    access: Access


@dataclass(frozen=True)
class ChainPlan:
    """Where a function that is one kernel of a chain reads.

    All places are in variables c0, c1, ... of the first score's axes, and f0, ... of features.

    Attributes:
        batch, rows, depth: the former, by whom they belong to: all operands; those of rows; those that are summed.
        outputs: of each end, and where its element is.
    """

    scores: tuple[Score, ...]
    ends: tuple[End, ...]
    batch: tuple[tuple[str, int], ...]
    rows: tuple[tuple[str, int], ...]
    depth: tuple[tuple[str, int], ...]
    outputs: tuple[tuple[Value, Coordinates], ...] = ()


def chain_plan(body: Function) -> ChainPlan | str:
    """How a function is one kernel of a chain; or why it is none."""
    contractions = [op for op in body.ops if is_contraction(op)]
    for op in body.ops:
        if not is_contraction(op) and not is_pointwise(op):
            return f"smelt.{op.name} does not compute elements one by one"
    behind: set[Value] = set()
    ends = []
    for op in body.ops:
        if behind.intersection(op.operands):
            if is_contraction(op):
                ends.append(op)
            else:
                behind.update(op.results)
        elif is_contraction(op):
            behind.update(op.results)
    plan = chain_places(body.ops, [op for op in contractions if op not in ends], ends)
    if isinstance(plan, str):
        return plan
    outputs: dict[OpView, tuple[Value, Coordinates]] = {}
    for v in body.returns:
        loops = variables(v.shape, "i")
        reads = collect_reads(body.ops, [(v, loops)])
        read = [end for end in plan.ends if end.op.results[0] in reads]
        if len(read) != 1 or any(s.op.results[0] in reads for s in plan.scores) or read[0].op in outputs:
            return "each of its results must be made of one contraction"
        (end,) = read
        value = end.op.results[0]
        place = None
        if len(reads[value]) == 1:
            place = inverse_place(next(iter(reads[value])), value.shape, loops)
        if place is None:
            return f"it does not read every element of smelt.{end.op.name}'s {value.aval} once"
        at = {f"c{i}": index for i, index in enumerate(end.at)}
        outputs[end.op] = v, tuple(substitute(i, at) for i in place)
    if len(outputs) != len(plan.ends):
        return "one of its contractions is not used"
    return ChainPlan(
        plan.scores, plan.ends, plan.batch, plan.rows, plan.depth, tuple(outputs[end.op] for end in plan.ends)
    )


def chain_places(ops: Sequence[OpView], scores: Sequence[OpView], ends: Sequence[OpView]) -> ChainPlan | str:
    """Where contractions and those of what is made of them read, as far as these ops say; or why they are no chain."""
    if not scores or not ends:
        return "no contraction is made of another one's result"
    if any(not (v.dtype.is_float and v.dtype.size <= 4) or not v.aval.size or not rules_of(op).multiplies
           for op in (*scores, *ends) for v in (*op.operands, *op.results)):  # fmt: skip
        return "its contractions must multiply numbers of at most 32 bits, and some"
    first = scores[0].results[0]
    found = []
    depths = set()
    roots = []
    for op in ends:
        end = _end(ops, first, op)
        if isinstance(end, str):
            return end
        found.append(end[0])
        depths.add(end[1])
        roots.append((op.operands[end[0].side], end[0].place))
    if len(depths) != 1:
        return "its contractions sum over different axes"
    (depth,) = depths
    reads = collect_reads(ops, roots)
    beside = names_of([i for end in found for i in end.access.place])
    made = []
    for op in scores:
        places = reads.get(op.results[0], {})
        features = variables(depth_of(op), "f")
        if len(places) != 1:
            return "the results of a contraction are read at several places, or none"
        place = next(iter(places))
        accesses = operand_accesses(op, place, features)
        of_depth = [bool(names_of(access.place) & depth) for access in accesses]
        if of_depth.count(True) != 1 or any(access.guards for access in accesses):
            return "not just one operand of a contraction lies along what is summed"
        made.append(Score(op, place, features, of_depth.index(False), accesses))
        beside |= names_of(accesses[of_depth.index(True)].place)
    extents = [(f"c{i}", n) for i, n in enumerate(first.shape) if n > 1]
    rows = tuple(v for v in extents if v[0] not in beside | depth)
    batch = tuple(v for v in extents if v[0] in beside - depth)
    if not rows:
        return "it has no rows"
    return ChainPlan(tuple(made), tuple(found), batch, rows, tuple(v for v in extents if v[0] in depth))


def _end(ops: Sequence[OpView], first: Value, op: OpView) -> tuple[End, frozenset[str]] | str:
    """Where the last contraction of a chain reads, and what it sums over."""
    result = op.results[0]
    at, depth = variables(result.shape, "e"), variables(depth_of(op), "k")
    accesses = operand_accesses(op, at, depth)
    if len(op.operands) != 2 or any(access.guards for access in accesses):
        return "an operand of a contraction is padded"
    reads = [collect_reads(ops, [(v, access.place)]).get(first, {}) for v, access in zip(op.operands, accesses)]
    side = 0 if reads[0] else 1
    if len(reads[side]) != 1 or reads[1 - side]:
        return "not just one operand of a contraction is made of another one's result"
    place = next(iter(reads[side]))
    used = names_of(place)
    loops = [i for i in (*at, *depth) if not names_of([i]) - used]
    inverse = inverse_place(place, first.shape, tuple(loops))
    if inverse is None or any(names_of([i]) - used for i in depth):
        return "the results of a contraction are not read once each"
    by = dict(zip([_name(i) for i in loops], inverse))
    columns = 0
    for i, n in zip(at, result.shape):
        if names_of([i]) - used:
            by[_name(i)] = Index.variable(f"f{columns}", n)
            columns += 1
    if not columns:
        return "a contraction has no columns"
    at, depth = (tuple(substitute(i, by) for i in place) for place in (at, depth))
    accesses = operand_accesses(op, at, depth)
    return End(op, at, accesses[side].place, side, accesses[1 - side]), frozenset(names_of(depth))


def _name(index: Index) -> str:
    """The variable that an index is; nothing where it is none."""
    return next(iter(names_of([index])), "")
