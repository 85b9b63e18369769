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
from smelt.ir.ops.conversion import Convert
from smelt.ir.ops.transcendental import Exp

from .analysis import Coordinates, collect_reads, is_pointwise, plain_variable, reduced_axes
from .contraction_places import depth_of, inverse_place, is_contraction, operand_accesses, rules_of

#: Fewer rows or keys than these are left to other kernels.
FEWEST_ROWS, FEWEST_KEYS = 16, 16
#: With fewer rows in all, few threadgroups would go through many keys one after the other.
ENOUGH_ROWS, FEW_KEYS = 4096, 512
#: Additions an element may cost that is computed again for each score, such as a mask's.
MOST_FLOPS = 4.0
MOST_FLOPS_IN_ALL = 16.0
#: Ops on the result that join.
MOST_FOLLOWING = 16


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


def _moved(v: Value) -> Value:
    """The value whose elements these are, in other places."""
    while v.owner is not None and is_pointwise(v.owner) and len(v.owner.operands) == 1 and not v.owner.op.flops:
        if isinstance(v.owner.op, Convert):
            break
        v = v.owner.operands[0]
    return v


def _behind(v: Value) -> Value:
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
    quotient = _behind(product.operands[side]).owner
    if quotient is None or quotient.name != "div":
        return None
    exponentials, total = _moved(quotient.operands[0]).owner, _behind(quotient.operands[1]).owner
    if exponentials is None or not isinstance(exponentials.op, Exp) or total is None or total.name != "reduce_sum":
        return None
    difference = exponentials.operands[0].owner
    if difference is None or difference.name != "sub" or _moved(total.operands[0]) is not exponentials.results[0]:
        return None
    logits, maximum = _moved(difference.operands[0]), _behind(difference.operands[1]).owner
    if maximum is None or maximum.name != "reduce_max" or _moved(maximum.operands[0]) is not logits:
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
    loops, value = variables(body.returns[0].shape), softmax.product.results[0]
    if any(v.shape != body.returns[0].shape for v in body.returns):
        return "the shapes of its results differ"
    plan = softmax_places(body.ops, softmax)
    if isinstance(plan, str):
        return plan
    inner = {softmax.scores.results[0], softmax.maximum.results[0], softmax.total.results[0]}
    reads = collect_reads(body.ops, [(v, loops) for v in body.returns])
    output = None
    if len(reads.get(value, ())) == 1:
        output = inverse_place(next(iter(reads[value])), value.shape, loops)
    if output is None or inner & set(reads):
        return f"it does not read every element of smelt.{softmax.product.name}'s {value.aval} once"
    return replace(plan, output=output)


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
        softmax, at, key, depth, logits_place, scores, of_keys.index(False), accesses[1 - softmax.side], at
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


def pays(softmax: Softmax, most_features: int, least_work: int = 0) -> bool:
    """Whether one kernel had better compute both contractions.

    Args:
        most_features: what a query and a value may have at most.
        least_work: multiplications of the first contraction.
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
    return rows // batches >= FEWEST_ROWS and (rows >= ENOUGH_ROWS or keys[0] <= FEW_KEYS)


class AttentionGroup:
    """The ops of a function that one kernel of attention computes; `own`: those that depend on the scores."""

    def __init__(self, softmax: Softmax, ops: Sequence[OpView], output: Value, own: set[OpView]):
        self.softmax, self.ops, self.primary, self.own = softmax, list(ops), softmax.product, own
        self.outputs = [output]

    def inputs(self, position: dict[OpView, int]) -> list[Value]:
        """Values computed elsewhere, in a stable order."""
        made = {r for op in self.ops for r in op.results}
        return list(dict.fromkeys(v for op in self.ops for v in op.operands if v not in made))

    def ordered_ops(self) -> list[OpView]:
        return self.ops

    def name(self) -> str:
        return "fused_attention"

    def attributes(self) -> dict[str, str]:
        return {"fusion": '"attention"'}


class AttentionGroups:
    """The kernels of attention in a function, in an order with all other ops that are still needed.

    Args:
        kernels: contractions that are kernels.
        most_features, least_work: see `pays`. most_ops, most_arrays: of a kernel; 0 arrays: any number.
    """

    def __init__(
        self, function: Function, kernels: set[OpView], most_features: int, most_ops: int, most_arrays: int,
        least_work: int = 0,
    ):  # fmt: skip
        self.function, self.kernels = function, kernels
        self.position = {op: i for i, op in enumerate(function.ops)}
        self.users: dict[Value, list[OpView | None]] = {}  #: None stands for the caller
        for op in function.ops:
            for v in op.operands:
                self.users.setdefault(v, []).append(op)
        for v in function.returns:
            self.users.setdefault(v, []).append(None)
        self.groups: list[AttentionGroup] = []
        self.taken: set[OpView] = set()  #: ops that depend on the scores of a group, of which nothing else may be part
        for op in function.ops:
            softmax = softmax_before(op) if op in kernels else None
            if softmax is None or softmax.scores not in kernels or not pays(softmax, most_features, least_work):
                continue
            group = self._group(softmax)
            if group is None or len(group.ops) > most_ops:
                continue
            if not most_arrays or len(group.inputs(self.position)) + 1 <= most_arrays:
                self.groups.append(group)
                self.taken |= group.own

    def _group(self, softmax: Softmax) -> AttentionGroup | None:
        """All ops from the scores to the product, and elementwise ops on its result; None if others read these."""
        own = self._dependent(softmax)
        plan = softmax_places(self.function.ops, softmax) if own is not None else ""
        if own is None or isinstance(plan, str) or own & self.taken:
            return None
        cheap = self._cheap(plan, own)
        followers, output = self._followed(softmax.product.results[0])
        beside, computed = self._beside(followers, own)
        inside = own | cheap | set(followers) | beside
        own |= computed.union(followers)
        return AttentionGroup(softmax, sorted(inside, key=self.position.__getitem__), output, own)

    def _dependent(self, softmax: Softmax) -> set[OpView] | None:
        """The ops that depend on the scores, up to the product; None if one of them is read elsewhere."""
        found, made = {softmax.scores}, {softmax.scores.results[0]}
        first, last = self.position[softmax.scores], self.position[softmax.product]
        for op in self.function.ops[first + 1 : last + 1]:
            if made.intersection(op.operands):
                if op is not softmax.product and not is_pointwise(op) and op not in (softmax.maximum, softmax.total):
                    return None
                found.add(op)
                made.update(op.results)
        if softmax.product not in found:
            return None
        own = softmax.product.results[0]
        return None if any(user not in found for v in made if v is not own for user in self.users.get(v, ())) else found

    def _cheap(self, plan: AttentionPlan, inside: set[OpView]) -> set[OpView]:
        """Ops that make operands of those inside, and cost less there than being read: constants, positions, moves.

        Queries are read once, so what makes them alone is computed there, too.
        """
        softmax, found, flops = plan.softmax, set[OpView](), 0.0
        queries = softmax.scores.operands[plan.side]
        multiplied = {softmax.scores.operands[1 - plan.side], softmax.product.operands[1 - softmax.side]}
        of_queries = {queries} - multiplied
        for op in reversed(self.function.ops[: self.position[softmax.product]]):
            users = self.users.get(op.results[0], ()) if len(op.results) == 1 else ()
            if op in inside or op in self.taken or not is_pointwise(op):
                continue
            if not any(user in inside or user in found for user in users):
                continue
            value, alone = op.results[0], all(user in inside or user in found for user in users)
            moves = op.op.kind == "movement" and len(op.operands) == 1
            if value in multiplied:
                joins = moves
            else:
                joins = not op.op.flops or (
                    alone and op.op.flops <= MOST_FLOPS and (value in of_queries or flops < MOST_FLOPS_IN_ALL)
                )
            if joins:
                found.add(op)
                flops += 0.0 if value in of_queries else op.op.flops
                for into in (multiplied, of_queries):
                    if value in into:
                        into.update(op.operands)
        return found

    def _followed(self, value: Value) -> tuple[list[OpView], Value]:
        """The elementwise ops on a value that nothing else reads, and what they make of it."""
        found: list[OpView] = []
        count, output = 0, value  # views at the end cost nothing where they stand
        while len(found) < MOST_FOLLOWING:
            users = self.users.get(value, [])
            user = users[0] if len(users) == 1 else None
            if user is None or user in self.taken or not is_pointwise(user):
                break
            made, loops = user.results[0], variables(user.results[0].shape)
            places = list(collect_reads([user], [(made, loops)]).get(value, {}))
            if made.aval.size != value.aval.size or len(places) != 1:
                break
            if inverse_place(places[0], value.shape, loops) is None:
                break
            found.append(user)
            value = made
            if not user.op.is_view:
                count, output = len(found), value
        return found[:count], output

    def _beside(self, followers: Sequence[OpView], own: set[OpView]) -> tuple[set[OpView], set[OpView]]:
        """Elementwise ops that make what followers read, for these alone or for nothing; of them, those into which
        values enter that other ops compute."""
        found: set[OpView] = set()
        end = max((self.position[op] for op in followers), default=0)
        for op in reversed(self.function.ops[:end]):
            if op in own or op in followers or op in self.taken or not is_pointwise(op) or len(op.results) != 1:
                continue
            inside = [user in found or user in followers for user in self.users.get(op.results[0], ())]
            if any(inside) and (all(inside) or not op.op.flops):
                found.add(op)
        plain: set[OpView] = set()
        for op in sorted(found, key=self.position.__getitem__):
            if all(v.owner is None or v.owner in plain for v in op.operands):
                plain.add(op)
        return found, found - plain

    def schedule(self) -> list[OpView | AttentionGroup]:
        """Groups, each where its last op stood, and the other ops that somebody still needs."""
        last = {max(group.ops, key=self.position.__getitem__): group for group in self.groups}
        own = {op for group in self.groups for op in group.ops}
        needed = set(self.function.returns)
        found: list[OpView | AttentionGroup] = []
        for op in reversed(self.function.ops):
            if op in last:
                found.append(last[op])
                needed.update(last[op].inputs(self.position))
            elif op not in own or needed.intersection(op.results):
                found.append(op)
                needed.update(op.operands)
        return found[::-1]
