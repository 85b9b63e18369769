"""The gradient of a softmax between two contractions, recognized from plain ops: see `recompute_attention`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import permutations

from smelt.ir.builder import Function, OpView, Value
from smelt.ir.index import Atom, Coordinates, Index, linearize, variables
from smelt.ir.ops.conversion import Convert

from .analysis import collect_reads, is_moved, is_pointwise, operand_reads, plain_variable, reduced_axes
from .attention import AttentionPlan, Softmax, behind_conversion, pays, softmax_before, softmax_places
from .contraction_places import depth_of, is_contraction, operand_accesses, rules_of


@dataclass(eq=False)
class Gradient:
    """The gradient of one softmax between two contractions.

    Attributes:
        own: ops that depend on the scores, up to the product. again: those of them that are computed anew.
        cotangent: of the weights. logits_cotangent: the op that makes that of the logits.
        same: ops whose results equal it, and what of them is one. given: the cotangent of the product's result.
        turned: its axes in the order of that result's. columns: the axis of features there.
        moves: what moves the product's result. users: ops that read what is computed anew.
    """

    softmax: Softmax
    own: set[OpView]
    again: list[OpView]
    cotangent: Value
    logits_cotangent: OpView
    same: dict[OpView, Value]
    given: Value
    turned: tuple[int, ...]
    columns: int
    moves: list[OpView] = field(default_factory=list)
    users: list[OpView] = field(default_factory=list)

    @property
    def is_half(self) -> bool:
        """Whether contractions multiply operands of 16 bits."""
        both = (self.softmax.scores, self.softmax.product)
        return all(v.dtype.size == 2 for op in both for v in op.operands)

    @property
    def weights(self) -> OpView:
        """The op that divides the exponentials."""
        exponentials = self.softmax.exponentials.results[0]
        return next(op for op in self.again if op.op.formula == "x / y" and op.operands[0] is exponentials)

    @property
    def moved(self) -> Value:
        """The product's result behind what moves it."""
        return self.moves[-1].results[0] if self.moves else self.softmax.product.results[0]


def gradients_of(function: Function, features: int) -> list[Gradient]:
    """Those in a function, one of each softmax, as far as their own ops show.

    Args:
        features: the most of a query and of a value.
    """
    softmaxes = softmaxes_of(function, features)
    if not softmaxes:
        return []
    found = [g for op in function.ops if (g := _gradient(function, op, softmaxes)) is not None]
    return list({g.softmax.exponentials: g for g in found}.values())


def softmaxes_of(function: Function, features: int) -> dict[OpView, tuple[Softmax, AttentionPlan]]:
    """The softmaxes that stand between two contractions, by the ops of their exponentials."""
    found: dict[OpView, tuple[Softmax, AttentionPlan]] = {}
    for op in function.ops:
        softmax = softmax_before(op)
        if softmax is not None and pays(softmax, features):
            plan = softmax_places(function.ops, softmax)
            if not isinstance(plan, str):
                found[softmax.exponentials] = softmax, plan
    return found


def logits_of(softmax: Softmax) -> Value:
    """The logits in the shape in which exponentials are taken of them."""
    difference = softmax.exponentials.operands[0].owner
    assert difference is not None
    return difference.operands[0]


def _gradient(
    function: Function, op: OpView, softmaxes: dict[OpView, tuple[Softmax, AttentionPlan]]
) -> Gradient | None:
    """What is known of a gradient if an op makes the cotangent of a softmax's logits."""
    for exponentials, cotangent, total, reduction in parts_of(op):
        if exponentials in softmaxes:
            softmax, plan = softmaxes[exponentials]
            if total is softmax.total.results[0]:
                found = _of_parts(function, softmax, plan, op, cotangent, reduction)
                if found is not None:
                    return found
    return None


def parts_of(op: OpView) -> Iterator[tuple[OpView, Value, Value, OpView]]:
    """What an op multiplies if it makes the cotangent of a softmax's logits: the op of the exponentials, the cotangent
    of the weights, the exponentials' total, and the reduction of both."""
    if op.op.formula != "x * y":
        return
    for difference, exponentials in permutations(op.operands):
        made, added = exponentials.owner, difference.owner
        if made is None or made.op.formula != "exp(x)" or added is None or added.op.formula != "x + y":
            continue
        for quotient, mean in permutations(added.operands):
            reduction = behind_conversion(mean).owner
            if quotient.owner is not None and quotient.owner.op.formula == "x / y" and reduction is not None:
                cotangent, divisor = quotient.owner.operands
                yield made, cotangent, behind_conversion(divisor), reduction


def _of_parts(
    function: Function, softmax: Softmax, plan: AttentionPlan, op: OpView, cotangent: Value, reduction: OpView
) -> Gradient | None:
    """The gradient if its parts are read where they should be."""
    scores_of_cotangent = behind_conversion(cotangent).owner
    if scores_of_cotangent is None or not is_contraction(scores_of_cotangent) or reduction.op.formula != "sum(x)":
        return None
    if reduced_axes(reduction) != reduced_axes(softmax.total) or not _is_mean(reduction, softmax, scores_of_cotangent):
        return None
    if not _in_own_rows(function, softmax, op.results[0], reduction, scores_of_cotangent.results[0], cotangent):
        return None
    own = _between(function, softmax)
    layout = _layout(function, softmax, plan, scores_of_cotangent, cotangent)
    again = _recomputable(function, softmax, own)
    if layout is None or again is None:
        return None
    given, turned, columns = layout
    same = _equal_to(function, op, reduced_axes(softmax.total))
    return Gradient(softmax, own, again, cotangent, op, same, given, turned, columns)


def _in_own_rows(
    function: Function, softmax: Softmax, made: Value, reduction: OpView, scores: Value, cotangent: Value
) -> bool:
    """Whether what is made, what is reduced and exponentials read numbers of their own row, and one of the scores."""
    exponentials, maximum, total = (op.results[0] for op in (softmax.exponentials, softmax.maximum, softmax.total))
    (axis,) = reduced_axes(softmax.total)
    at = variables(exponentials.shape)
    row = (*at[:axis], *at[axis + 1 :])
    stops = {exponentials, total, reduction.results[0], scores}
    for value in (made, reduction.operands[0], exponentials):
        reads = collect_reads(function.ops, [(value, at)], stop=lambda v, value=value: v in stops and v is not value)  # type: ignore[misc]
        if any(linearize(p, maximum.shape) != linearize(row, total.shape) for p in reads.get(maximum, ())):
            return False
        for known, wanted in ((exponentials, at), (total, row), (reduction.results[0], row)):
            if any(p != wanted for p in reads.get(known, ())):
                return False
    of_scores = [collect_reads(function.ops, [(v, at)], stop=stops.__contains__).get(scores, {})
                 for v in (cotangent, reduction.operands[0])]  # fmt: skip
    return len(of_scores[0]) == 1 and of_scores[0] == of_scores[1]


def _is_mean(reduction: OpView, softmax: Softmax, scores: OpView) -> bool:
    """Whether what is reduced is -cotangents · exponentials / total²."""
    sign, above, below = 1, list[Value](), list[Value]()
    pending = [(reduction.operands[0], True)]
    while pending:
        v, is_above = pending.pop()
        v = behind_conversion(v)
        owner = v.owner
        if owner is None or owner is softmax.exponentials or len(above) + len(below) > 4:
            (above if is_above else below).append(v)
        elif owner.op.formula == "-x":
            sign = -sign
            pending.append((owner.operands[0], is_above))
        elif owner.op.formula == "x * y":
            pending += [(x, is_above) for x in owner.operands]
        elif owner.op.formula == "x / y":
            pending += [(owner.operands[0], is_above), (owner.operands[1], not is_above)]
        else:
            (above if is_above else below).append(v)
    wanted = {softmax.exponentials.results[0], scores.results[0]}
    return sign < 0 and len(above) == 2 and set(above) == wanted and below == [softmax.total.results[0]] * 2


def _between(function: Function, softmax: Softmax) -> set[OpView]:
    """The ops that depend on the scores and lead to the product."""
    found: set[OpView] = set()
    made = {softmax.scores.results[0]}
    for op in function.ops:
        if op is softmax.scores or made.intersection(op.operands):
            found.add(op)
            made.update(op.results)
    needed = set(softmax.product.operands)
    own = {softmax.product}
    for op in reversed(function.ops):
        if op in found and needed.intersection(op.results):
            own.add(op)
            needed.update(op.operands)
    return own


def _recomputable(function: Function, softmax: Softmax, own: set[OpView]) -> list[OpView] | None:
    """What makes the logits of operands, and the weights of the exponentials; None where that is not clear."""
    before = {logits_of(softmax)}
    behind: set[Value] = set()
    found: list[OpView] = []
    for op in reversed(function.ops):
        if op in own and before.intersection(op.results):
            found.append(op)
            before.update(v for v in op.operands if v.owner in own)
    found.reverse()
    for op in function.ops:
        if op not in own or op is softmax.product:
            continue
        if op.op.formula == "x / y" and op.operands[0] is softmax.exponentials.results[0] and not behind:
            if behind_conversion(op.operands[1]) is not softmax.total.results[0]:
                return None
        elif not behind.intersection(op.operands):
            continue
        found.append(op)
        behind.update(op.results)
    return found if behind and all(op is softmax.scores or is_pointwise(op) for op in found) else None


def _layout(
    function: Function, softmax: Softmax, plan: AttentionPlan, scores: OpView, cotangent: Value
) -> tuple[Value, tuple[int, ...], int] | None:
    """The cotangent of the product's result, how its axes lie in that, and the axis of the features there.

    None where the cotangents of the weights are not made of it and of the values that the product multiplies.
    """
    product, key = softmax.product, plain_variable(plan.key)
    weights = operand_accesses(product, plan.at, (plan.key,))[softmax.side].place
    places = collect_reads(function.ops, [(product.operands[softmax.side], weights)])[softmax.exponentials.results[0]]
    place = next(iter(places))
    reads = collect_reads(function.ops, [(cotangent, place)]).get(scores.results[0], {})
    depth = depth_of(scores)
    if len(reads) != 1 or len(depth) != 1 or key is None or not rules_of(scores).multiplies:
        return None
    d = variables(depth, "d")
    accesses = operand_accesses(scores, next(iter(reads)), d)
    of_keys = [any(key in i.atoms() for i in access.place) for access in accesses]
    if of_keys.count(True) != 1 or any(access.guards for access in accesses):
        return None
    side = of_keys.index(False)
    given, values = scores.operands[side], scores.operands[1 - side]
    names = [plain_variable(i) for i in plan.at]
    of_logits = {a for i in place for a in i.atoms()}
    columns = [i for i, a in enumerate(names) if a is not None and a not in of_logits]
    if len(columns) != 1 or product.results[0].shape[columns[0]] != depth[0] or depth[0] < 2:
        return None
    wanted = tuple(d[0] if i == columns[0] else at for i, at in enumerate(plan.at))
    turned = _turned(accesses[side].place, wanted)
    of_values = tuple(_with(i, names[columns[0]], d[0]) for i in plan.values.place)
    if turned is None or _origin(values, accesses[1 - side].place) != _origin(
        product.operands[1 - softmax.side], of_values
    ):
        return None
    # Rows of the logits must be those of the result, one after the other.
    (axis,) = reduced_axes(softmax.total)
    rows = [both for i, both in enumerate(zip(place, logits_of(softmax).shape)) if i != axis]
    own = [(at, n) for i, (at, n) in enumerate(zip(plan.at, product.results[0].shape)) if i != columns[0]]
    if _linear(rows) != _linear(own):
        return None
    return given, turned, columns[0]


def _linear(places: Iterable[tuple[Index, int]]) -> Index:
    total = Index(0)
    for index, extent in places:
        total = total * extent + index
    return total


def _turned(place: Coordinates, wanted: Coordinates) -> tuple[int, ...] | None:
    """The permutation of axes that brings an array which is read at `place` to where it is read at `wanted`."""
    if len(place) != len(wanted):
        return None
    free = list(range(len(place)))
    found = []
    for index in wanted:
        at = next((i for i in free if place[i] == index), None)
        if at is None:
            return None
        free.remove(at)
        found.append(at)
    return tuple(found)


def _with(index: Index, atom: Atom | None, other: Index) -> Index:
    """An index with another one in place of a variable that it is."""
    return other if plain_variable(index) == atom else index


def _origin(value: Value, place: Coordinates) -> tuple[Value, Coordinates]:
    """The value that movement took an element from, and where it was."""
    while value.owner is not None and value.owner.op.kind == "movement" and len(value.owner.operands) == 1:
        reads = operand_reads(value.owner, place)
        if len(reads) != 1:
            break
        [(value, place)] = reads
    return value, place


def _equal_to(function: Function, made: OpView, axes: tuple[int, ...]) -> dict[OpView, Value]:
    """Ops that add a multiple of the sum over `axes` of what an op made to it, or to one of them: that sum is 0."""
    same: dict[OpView, Value] = {}
    equal, zeros = {made.results[0]}, set[Value]()
    for op in function.ops:
        if len(op.results) != 1:
            continue
        result = op.results[0]
        inside = [v in zeros for v in op.operands]
        if op.op.formula == "sum(x)" and reduced_axes(op) == axes:
            x = op.operands[0]
            x = x.owner.operands[0] if x.owner is not None and x.owner.op.formula == "-x" else x
            if x in equal:
                zeros.add(result)
        elif not any(inside):
            continue
        elif op.op.formula in ("x + y", "x - y") and op.operands[0] in equal and inside[1]:
            same[op] = op.operands[0]
            equal.add(result)
        elif op.op.formula == "x + y" and op.operands[1] in equal and inside[0]:
            same[op] = op.operands[1]
            equal.add(result)
        elif op.op.formula == "x / y":
            if inside == [True, False]:
                zeros.add(result)
        elif op.op.formula in ("x * y", "-x") or isinstance(op.op, Convert) or is_moved(op):
            zeros.add(result)
    return same
