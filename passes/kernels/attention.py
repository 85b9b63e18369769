"""Attention: two contractions with a softmax in between, as one kernel in which the scores are never in memory.

Recognized from plain ops, whatever functions made them::

    %s = "smelt.dot_general"(%q, %k) ...        // scores
    %x = ...                                    // elementwise ops on them: scale, mask
    %m = "smelt.reduce_max"(%x) ...
    %e = "smelt.exp"(%x - %m)
    %t = "smelt.reduce_sum"(%e) ...
    %w = %e / %t                                // weights
    %o = "smelt.dot_general"(%w, %v) ...

`fuse` outlines these into a function with the attribute ``smelt.fusion = "attention"``. A kernel goes through the keys
in tiles. Per row it keeps the largest element so far, the sum of exponentials and the sums of the second contraction,
and scales these down where a larger element comes.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from smelt.ir.builder import Function, OpView, Value
from smelt.ir.index import Access, Index, variables
from smelt.ir.kinds import Elementwise
from smelt.ir.ops.conversion import Convert

from .analysis import Coordinates, collect_reads, is_pointwise, plain_variable, reduced_axes
from .contraction_places import depth_of, inverse_place, is_contraction, operand_accesses, rules_of
from .operands import behind_movement

#: Fewer rows or keys than these are left to other kernels.
FEWEST_ROWS, FEWEST_KEYS = 16, 16
#: With fewer rows in all, few threadgroups would go through many keys one after the other.
ENOUGH_ROWS, FEW_KEYS = 4096, 512


@dataclass(frozen=True)
class Softmax:
    """What lies between the two contractions.

    Attributes:
        scores: the first contraction. logits: what is made of its result, of which the softmax is taken.
        maximum, exponentials, total: the ops of the softmax.
        product: the second contraction. side: which of its operands the weights are.
    """

    scores: OpView
    logits: Value
    maximum: OpView
    exponentials: OpView
    total: OpView
    product: OpView
    side: int


#: Between scores and weights that are looked at: masks and biases take a handful.
MOST_VALUES = 512


@dataclass(frozen=True)
class AttentionPlan:
    """Where a function that is one kernel of attention reads.

    Attributes:
        at: a variable c0, c1, ... for each axis of the second contraction's result.
        key: the variable of the keys. depth: those that the first contraction sums over.
        logits_place: where the logits are read. scores: accesses of the first contraction's operands.
        side: which of these is the queries. values: the access of the second contraction's other operand.
        output: where the element of every output is that is computed from the result at `at`.
        of_row: where maximum and total are read. rows: outputs made of these alone, and where they are.
    """

    softmax: Softmax
    at: Coordinates
    key: Index
    depth: Coordinates
    logits_place: Coordinates
    scores: tuple[Access, ...]
    side: int
    values: Access
    output: Coordinates
    of_row: dict[OpView, Coordinates]
    rows: tuple[tuple[Value, Coordinates], ...] = ()


def behind_conversion(v: Value) -> Value:
    """The value whose elements these are, perhaps in other places and of another floating-point dtype."""
    while v.owner is not None and is_pointwise(v.owner) and len(v.owner.operands) == 1:
        widens = isinstance(v.owner.op, Convert) and v.owner.operands[0].dtype.is_float and v.dtype.is_float
        if v.owner.op.flops and not widens:
            break
        v = v.owner.operands[0]
    return v


def softmax_before(product: OpView) -> Softmax | None:
    """The softmax whose weights a contraction multiplies, with the contraction that made its scores."""
    if not is_contraction(product) or len(product.operands) != 2:
        return None
    found = (_softmax_of(product, side) for side in (0, 1))
    return next((softmax for softmax in found if softmax is not None), None)


def _softmax_of(product: OpView, side: int) -> Softmax | None:
    quotient = behind_conversion(product.operands[side]).owner
    if quotient is None or quotient.op.formula != "x / y":
        return None
    exponentials, total = behind_movement(quotient.operands[0]).owner, behind_conversion(quotient.operands[1]).owner
    if exponentials is None or exponentials.op.formula != "exp(x)" or total is None or total.op.formula != "sum(x)":
        return None
    difference, summed = exponentials.operands[0].owner, behind_movement(total.operands[0])
    if difference is None or difference.op.formula != "x - y" or summed is not exponentials.results[0]:
        return None
    logits, maximum = behind_movement(difference.operands[0]), behind_conversion(difference.operands[1]).owner
    if maximum is None or maximum.op.formula != "max(x)" or behind_movement(maximum.operands[0]) is not logits:
        return None
    scores = _only_contraction(logits)
    return None if scores is None else Softmax(scores, logits, maximum, exponentials, total, product, side)


def _only_contraction(v: Value) -> OpView | None:
    """The one contraction from which elementwise ops make a value; None where there is none, or anything else is, or
    it takes more of them than any kernel has."""
    found: dict[OpView, None] = {}
    seen, pending = {v}, [v]
    while pending:
        owner = pending.pop().owner
        if owner is not None and is_contraction(owner):
            found[owner] = None
            if len(found) > 1:
                return None
        elif len(seen) > MOST_VALUES:
            return None
        elif owner is not None and is_pointwise(owner):
            pending += [x for x in owner.operands if x not in seen]
            seen.update(owner.operands)
    return next(iter(found), None)


# In a function that is one kernel


def attention_plan(body: Function) -> AttentionPlan | str:
    """How a function is one kernel of attention; or why it is none."""
    contractions = [op for op in body.ops if is_contraction(op)]
    if len(contractions) != 2:
        return f"it has {len(contractions)} contractions, and not two"
    product = contractions[1]
    softmax = softmax_before(product)
    if softmax is None or softmax.scores is not contractions[0]:
        return "no softmax of the first contraction's result stands between the two"
    inside = {softmax.scores, softmax.maximum, softmax.total, product}
    for op in body.ops:
        if op not in inside and not is_pointwise(op):
            return f"smelt.{op.name} does not compute elements one by one"
    return _places(body, softmax)


def _places(body: Function, softmax: Softmax) -> AttentionPlan | str:
    value = softmax.product.results[0]
    plan = softmax_places(body.ops, softmax)
    if isinstance(plan, str):
        return plan
    known = of_rows(body.ops, softmax)
    rows = tuple((v, plan.of_row[known[v]]) for v in body.returns if v in known)
    others = [v for v in body.returns if v not in known]
    if not others or any(v.shape != others[0].shape for v in others):
        return "the shapes of its results differ"
    loops = variables(others[0].shape)
    inner = {softmax.scores.results[0], softmax.maximum.results[0], softmax.total.results[0]}
    reads = collect_reads(body.ops, [(v, loops) for v in others])
    output = None
    if len(reads.get(value, ())) == 1:
        output = inverse_place(next(iter(reads[value])), value.shape, loops)
    if output is None or inner & set(reads):
        return f"it does not read every element of smelt.{softmax.product.name}'s {value.aval} once"
    return replace(plan, output=output, rows=rows)


def of_rows(ops: Sequence[OpView], softmax: Softmax) -> dict[Value, OpView]:
    """What elementwise ops make of a row's maximum and total alone, these too, and of which of the two."""
    found = {op.results[0]: op for op in (softmax.maximum, softmax.total)}
    constants: set[Value] = set()
    for op in ops:
        if not is_pointwise(op):
            continue
        if all(v in constants for v in op.operands):
            constants.update(op.results)
        elif isinstance(op.op, Elementwise) and all(v in constants or v in found for v in op.operands):
            found[op.results[0]] = next(found[v] for v in op.operands if v in found)
    return found


def softmax_places(ops: Sequence[OpView], softmax: Softmax) -> AttentionPlan | str:
    """Where a softmax between two contractions reads, as far as these ops say; or why they are no attention."""
    product, value = softmax.product, softmax.product.results[0]
    if not (value.aval.size and softmax.scores.results[0].aval.size):
        return "it has nothing to compute"
    if any(not (v.dtype.is_float and v.dtype.size <= 4) or not rules_of(op).multiplies
           for op in (softmax.scores, product) for v in (*op.operands, *op.results)):  # fmt: skip
        return "its contractions must multiply numbers of at most 32 bits"
    extents = depth_of(product)
    if len(extents) != 1:
        return "the second contraction sums over more than the keys"
    at, key = variables(value.shape, "c"), Index.variable("k0", extents[0])
    accesses = operand_accesses(product, at, (key,))
    if any(access.guards for access in accesses):
        return "an operand of the second contraction is padded"
    reads = collect_reads(ops, [(product.operands[softmax.side], accesses[softmax.side].place)])
    reason = _reduces_keys(ops, softmax, reads, key)
    if reason:
        return reason
    of_row = {op: next(iter(reads[op.results[0]])) for op in (softmax.maximum, softmax.total)}
    logits_place = next(iter(reads[softmax.logits]))
    there = collect_reads(ops, [(softmax.logits, logits_place)]).get(softmax.scores.results[0], {})
    if len(there) != 1:
        return "the scores are read at several places"
    depth = variables(depth_of(softmax.scores), "d")
    scores = operand_accesses(softmax.scores, next(iter(there)), depth)
    if any(access.guards for access in scores):
        return "an operand of the first contraction is padded"
    variable = plain_variable(key)
    of_keys = [any(variable in i.atoms() for i in access.place) for access in scores]
    if of_keys.count(True) != 1:
        return "not just one operand of the first contraction has keys"
    return AttentionPlan(
        softmax, at, key, depth, logits_place, scores, of_keys.index(False), accesses[1 - softmax.side], at, of_row
    )


def _reduces_keys(
    ops: Sequence[OpView], softmax: Softmax, reads: dict[Value, dict[Coordinates, None]], key: Index
) -> str:
    """Why the softmax is not one over the keys; nothing where it is."""
    variable = plain_variable(key)
    if variable is None:
        return "there is one key"
    for op, value in ((softmax.maximum, softmax.logits), (softmax.total, softmax.exponentials.results[0])):
        axes, rows = reduced_axes(op), list(reads.get(op.results[0], {}))
        if len(axes) != 1 or len(rows) != 1 or len(reads.get(value, {})) != 1:
            return f"smelt.{op.name} does not reduce the keys alone"
        (axis,), (row,), x = axes, rows, op.operands[0]
        if x.shape[axis] != key.hi + 1 or any(variable in i.atoms() for i in row):
            return f"smelt.{op.name} does not reduce every key"
        place = (*row[:axis], key, *row[axis:])
        if collect_reads(ops, [(x, place)], stop=lambda v, value=value: v is value).get(value) != reads[value]:  # type: ignore[misc]
            return f"smelt.{op.name} is read elsewhere than in its own row"
    return ""


# In a function that is to be fused


def pays(softmax: Softmax, most_features: int, least_work: int = 0, enough_rows: int = ENOUGH_ROWS) -> bool:
    """Whether one kernel had better compute both contractions.

    Args:
        most_features: what a query and a value may have at most.
        least_work: multiplications of the first contraction.
        enough_rows: with fewer, in all, there may be few keys alone.
    """
    product, scores = softmax.product, softmax.scores
    if scores.results[0].aval.size * math.prod(depth_of(scores)) < least_work:
        return False
    weights, keys = product.operands[softmax.side].aval, depth_of(product)
    if len(keys) != 1 or keys[0] < FEWEST_KEYS or not product.results[0].aval.size:
        return False
    rows = weights.size // keys[0]
    groups = product.operands[1 - softmax.side].aval
    features = product.results[0].aval.size // max(rows, 1)
    if features > most_features or math.prod(depth_of(scores)) > most_features or features < 1:
        return False
    batches = max(1, groups.size // (keys[0] * features))
    return rows // batches >= FEWEST_ROWS and (rows >= enough_rows or keys[0] <= FEW_KEYS)
