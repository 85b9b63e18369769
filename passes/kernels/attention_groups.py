"""What joins the kernels of attention and of its gradient, in a function that is to be fused."""

from __future__ import annotations

import heapq
from collections.abc import Collection, Sequence

from smelt.ir.builder import Function, OpView, Value
from smelt.ir.index import variables

from ..extract import inputs_of
from .analysis import collect_reads, is_pointwise, users_of
from .attention import ENOUGH_ROWS, AttentionPlan, Softmax, of_rows, pays, softmax_before, softmax_places
from .attention_chains import chain_places
from .contraction_places import inverse_place, is_contraction

#: Additions an element may cost that is computed again for each score, such as a mask's.
MOST_FLOPS = 4.0
MOST_FLOPS_IN_ALL = 16.0
#: Ops on the result that join.
MOST_FOLLOWING = 16


class AttentionGroup:
    """The ops of a function that one kernel computes.

    Attributes:
        kind: of the schedule, which is part of its name.
        own: those that depend on the scores. rows: outputs that are numbers of rows.
    """

    def __init__(
        self, kind: str, primary: OpView, ops: Sequence[OpView], outputs: Sequence[Value], own: set[OpView],
        rows: Sequence[Value] = (),
    ):  # fmt: skip
        self.kind, self.primary, self.ops, self.own = kind, primary, list(ops), own
        self.outputs, self.rows = [*outputs, *rows], tuple(rows)

    @property
    def inputs(self) -> list[Value]:
        """Values computed elsewhere, in a stable order."""
        return inputs_of(self.ops)

    @property
    def ordered_ops(self) -> list[OpView]:
        return self.ops

    def name(self) -> str:
        return f"fused_{self.kind}"

    def attributes(self) -> dict[str, str]:
        return {"fusion": f'"{self.kind}"'}


class AttentionGroups:
    """The kernels of attention in a function, in an order with all other ops that are still needed.

    Args:
        kernels: contractions that are kernels.
        most_features, least_work, enough_rows: see `pays`. most_ops, most_arrays: of a kernel; 0 arrays: any number.
        chains: whether there are kernels of its gradient, which need numbers of rows.
    """

    def __init__(
        self, function: Function, kernels: set[OpView], most_features: int, most_ops: int, most_arrays: int,
        least_work: int = 0, chains: bool = False, enough_rows: int = ENOUGH_ROWS,
    ):  # fmt: skip
        self.function, self.kernels, self.chains = function, kernels, chains
        self.most_ops, self.most_arrays = most_ops, most_arrays
        self.position = {op: i for i, op in enumerate(function.ops)}
        self.users = users_of(function)
        self.groups: list[AttentionGroup] = []
        self.taken: set[OpView] = set()  #: ops that depend on the scores of a group, of which nothing else may be part
        for op in function.ops:
            softmax = softmax_before(op) if op in kernels else None
            if softmax is None or softmax.scores not in kernels:
                continue
            if not pays(softmax, most_features, least_work, enough_rows):
                continue
            group = self._group(softmax)
            if group is not None and self._take(group) and group.rows:
                self._take_gradient(group)

    def _take(self, group: AttentionGroup) -> bool:
        """Let a group be a kernel, if it can be one."""
        if len(group.ops) > self.most_ops or self._reaches_itself(group):
            return False
        if self.most_arrays and len(group.inputs) + len(group.outputs) > self.most_arrays:
            return False
        self.groups.append(group)
        self.taken |= group.own
        return True

    def _reaches_itself(self, group: AttentionGroup) -> bool:
        """Whether something outside is made of what a group returns, perhaps by other groups, and read by it."""
        inside, behind = set(group.ops), set(group.outputs)
        first = min(self.position[v.owner] for v in group.outputs if v.owner is not None)
        last = max(self.position[op] for other in (*self.groups, group) for op in other.ops)
        count = 0
        while len(behind) > count:
            count = len(behind)
            for op in self.function.ops[first : last + 1]:
                if op not in inside and behind.intersection(op.operands):
                    behind.update(op.results)
            for other in self.groups:
                if behind.intersection(other.inputs):
                    behind.update(other.outputs)
                    first = min(first, *(self.position[v.owner] for v in other.outputs if v.owner is not None))
        return bool(behind.intersection(group.inputs))

    # Attention

    def _group(self, softmax: Softmax) -> AttentionGroup | None:
        """All ops from the scores to the product, and elementwise ops on its result; None if others read these."""
        found = self._dependent(softmax)
        if found is None:
            return None
        own, rows = found
        plan = softmax_places(self.function.ops, softmax)
        if isinstance(plan, str) or own & self.taken:
            return None
        cheap = self._cheap(own, *_read_by(plan))
        followers, output = self._followed(softmax.product.results[0], self._first_of(rows, own))
        beside, computed = self._beside(followers, own)
        inside = own | cheap | set(followers) | beside
        own |= computed.union(followers)
        return AttentionGroup(
            "attention", softmax.product, sorted(inside, key=self.position.__getitem__), [output], own, rows
        )

    def _dependent(self, softmax: Softmax) -> tuple[set[OpView], list[Value]] | None:
        """The ops that depend on the scores, up to the product, and numbers of rows that others read; None if one of
        the others is read elsewhere."""
        found, made = {softmax.scores}, {softmax.scores.results[0]}
        first, last = self.position[softmax.scores], self.position[softmax.product]
        between = self.function.ops[first + 1 : last + 1]
        for op in between:
            if made.intersection(op.operands):
                if op is not softmax.product and not is_pointwise(op) and op not in (softmax.maximum, softmax.total):
                    return None
                found.add(op)
                made.update(op.results)
        if softmax.product not in found:
            return None
        known = of_rows(between, softmax) if self.chains else {}
        own, rows = softmax.product.results[0], []
        for op in (softmax.scores, *between):
            for v in op.results if op in found else ():
                if v is not own and any(user not in found for user in self.users.get(v, ())):
                    if v not in known:
                        return None
                    rows.append(v)
        return found, rows

    def _first_of(self, values: Sequence[Value], own: set[OpView]) -> int:
        """Where something outside first reads one of these values."""
        users = [u for v in values for u in self.users.get(v, ()) if u is not None and u not in own]
        return min((self.position[u] for u in users), default=len(self.function.ops))

    def _cheap(self, inside: set[OpView], of_queries: set[Value], multiplied: set[Value]) -> set[OpView]:
        """Ops that make operands of those inside, and cost less there than being read: constants, positions, moves.

        What makes operands `of_queries` alone is computed there, too, since they are read once; those that are
        `multiplied` are moved only.
        """
        found, flops = set[OpView](), 0.0
        last = max(self.position[op] for op in inside)
        for op in reversed(self.function.ops[:last]):
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

    def _followed(self, value: Value, end: int) -> tuple[list[OpView], Value]:
        """The elementwise ops before `end` on a value that nothing else reads, and what they make of it."""
        found: list[OpView] = []
        count, output = 0, value  # views at the end cost nothing where they stand
        while len(found) < MOST_FOLLOWING:
            users = self.users.get(value, [])
            user = users[0] if len(users) == 1 else None
            if user is None or user in self.taken or not is_pointwise(user) or self.position[user] >= end:
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

    # Its gradient

    def _take_gradient(self, group: AttentionGroup) -> None:
        """Let what is made of numbers of a group's rows, up to contractions, be kernels."""
        inside, behind = set(group.ops), set(group.rows)
        ends = []
        for op in self.function.ops:
            if op in inside or op in self.taken or not behind.intersection(op.operands):
                continue
            if is_contraction(op):
                ends.append(op)
            elif is_pointwise(op):
                behind.update(op.results)
        chains: list[list[OpView]] = []
        for op in ends:
            for others in chains:
                if self._is_chain([*others, op], behind):
                    others.append(op)
                    break
            else:
                if self._is_chain([op], behind):
                    chains.append([op])
        for found in chains:
            any(self._take(self._chain(found, behind, follow)) for follow in (True, False))

    def _scores(self, ends: Collection[OpView], behind: set[Value]) -> tuple[set[OpView], list[OpView]]:
        """The elementwise ops that make operands `behind` of contractions from others, and these others."""
        found: set[OpView] = set()
        contractions: list[OpView] = []
        wanted: dict[Value, int] = {v: v.aval.size for op in ends for v in op.operands if v in behind}
        for op in reversed(self.function.ops[: max(self.position[op] for op in ends)]):
            size = wanted.get(op.results[0], 0) if op.results else 0
            if not size or op.results[0].aval.size != size or op in self.taken:
                continue
            if is_contraction(op):
                contractions.append(op)
            elif is_pointwise(op):
                found.add(op)
                wanted.update(dict.fromkeys(op.operands, size))
        contractions = contractions[::-1]
        made = {v for op in contractions for v in op.results}
        own = set()
        for op in self.function.ops:
            if op in found and made.intersection(op.operands):
                own.add(op)
                made.update(op.results)
        return own, contractions

    def _is_chain(self, ends: Sequence[OpView], behind: set[Value]) -> bool:
        """Whether one kernel can have these contractions."""
        own, scores = self._scores(ends, behind)
        if any(op not in self.kernels for op in (*ends, *scores)):
            return False
        return not isinstance(chain_places([op for op in self.function.ops if op in own], scores, ends), str)

    def _chain(self, ends: Sequence[OpView], behind: set[Value], follow: bool) -> AttentionGroup:
        """The kernel of contractions; `follow`: with elementwise ops on each one's result."""
        own, scores = self._scores(ends, behind)
        own |= {*scores, *ends}
        inside = own | self._cheap(own, set(), {v for op in (*scores, *ends) for v in op.operands})
        taken, outputs = set(ends), []
        for op in ends:
            followers, output = self._followed(op.results[0], len(self.function.ops) if follow else 0)
            beside, computed = self._beside(followers, own)
            if taken.intersection(followers) or _contractions(output, {*inside, *followers, *beside}) != {op}:
                outputs.append(op.results[0])  # what is made of several results is no output of one
                continue
            inside |= {*followers, *beside}
            taken |= computed.union(followers)
            outputs.append(output)
        if any(_contractions(v, inside) != {op} for v, op in zip(outputs, ends)):  # what follows one is beside another
            return self._chain(ends, behind, follow=False)
        return AttentionGroup("chain", ends[0], sorted(inside, key=self.position.__getitem__), outputs, taken)

    # All of them

    def schedule(self) -> list[OpView | AttentionGroup]:
        """Groups, and the other ops that somebody still needs: each behind what it reads, else as they stood."""
        last = {max(group.ops, key=self.position.__getitem__): group for group in self.groups}
        own = {op for group in self.groups for op in group.ops}
        made = {v for group in self.groups for v in group.outputs}
        needed = set(self.function.returns)
        found: list[OpView | AttentionGroup] = []
        for op in reversed(self.function.ops):
            if op in last:
                found.append(last[op])
                needed.update(last[op].inputs)
            elif op not in own or any(v in needed and v not in made for v in op.results):
                found.append(op)
                needed.update(op.operands)
        return self._ordered(found[::-1])

    def _ordered(self, items: Sequence[OpView | AttentionGroup]) -> list[OpView | AttentionGroup]:
        """Items, each behind those that make what it reads, else as they stand."""
        maker = {v: i for i, item in enumerate(items)
                 for v in (item.outputs if isinstance(item, AttentionGroup) else item.results)}  # fmt: skip
        readers: list[list[int]] = [[] for _ in items]
        missing = []
        for i, item in enumerate(items):
            read = item.inputs if isinstance(item, AttentionGroup) else item.operands
            before = {maker[v] for v in read if v in maker}
            missing.append(len(before))
            for j in before:
                readers[j].append(i)
        ready = [i for i, n in enumerate(missing) if not n]
        found = []
        while ready:
            i = heapq.heappop(ready)
            found.append(items[i])
            for j in readers[i]:
                missing[j] -= 1
                if not missing[j]:
                    heapq.heappush(ready, j)
        return found


def _read_by(plan: AttentionPlan) -> tuple[set[Value], set[Value]]:
    """What attention reads once, its queries, and what it reads for each tile of rows."""
    softmax = plan.softmax
    multiplied = {softmax.scores.operands[1 - plan.side], softmax.product.operands[1 - softmax.side]}
    return {softmax.scores.operands[plan.side]} - multiplied, multiplied


def _contractions(value: Value, inside: set[OpView]) -> set[OpView]:
    """The contractions of some ops of which elementwise ones among these make a value."""
    found: set[OpView] = set()
    pending, seen = [value], {value}
    while pending:
        owner = pending.pop().owner
        if owner is None or owner not in inside:
            continue
        if is_contraction(owner):
            found.add(owner)
        else:
            pending += [v for v in owner.operands if v not in seen]
            seen.update(owner.operands)
    return found
