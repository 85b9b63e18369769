"""Which ops become one kernel: ops join groups from the results backwards, then equal loops merge.

What can join is determined here, within the limits of the pass; a heuristic decides whether it does (see `heuristics`).
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from smelt.ir.builder import Function, OpView, Value

from .analysis import is_pointwise, is_row_reduction
from .contraction_places import is_contraction
from .groups import FEW_ROWS, Group, parallel_rows, sibling_key
from .heuristics import Answers, Candidate, Reason, Way, fewest_bytes
from .reachability import Reachability

_FACTOR = Reason("factor", "a contraction multiplies it, and reads each of its elements many times")
_CYCLE = Reason("cycle", "what else reads it comes before the kernel")
_OTHER_LOOPS = Reason("loops", "the kernel does not read each element of it once, where its own loops are")
_MUST_EXIST = Reason("exists", "it is in memory anyway: a result, or what a library reads")
_ONCE = Reason("once", "several kernels read it, and what combines elements is computed once")
_STARTS = Reason("starts", "its loops are its own: it is the first op of a kernel")
_NEEDED = Reason("needed", "one needs what the other makes, by more than each row hands over, or by way of a third")
_FAR = Reason("far", "more than a thousand kernels stand between them")
_TINY = Reason("tiny", "ops on so few elements are kernels of their own, most of them equal")

#: How many times the ops that a kernel may have it has with movement and constants, at most.
FREE = 4


class Grouping:
    """The groups of one function.

    Args:
        max_ops: of one group, but for movement and constants (see `FREE`).
        contractions: those that are kernels, rather than a library's work.
        max_buffers: arrays that one group reads and writes; 0 for any number.
        apart: ops on values of at most so many elements are groups of their own, with the movement in front of them.
        spread: values that make no siblings of those who read them: then more groups are equal.
        moved: movement that is a group of its own, for that reason, too.
        may_join: says whether what could join does.
        explains: whether answers are kept, for remarks.
        shared_rows, flops_per_byte: as of `fuse`.
        expressions: values that contractions compute while they read them.
    """

    def __init__(
        self, function: Function, max_ops: int, contractions: Collection[OpView] = (), max_buffers: int = 0,
        apart: int = 0, spread: Collection[Value] = (), may_join: Answers = fewest_bytes, explains: bool = False,
        shared_rows: bool = False, flops_per_byte: float = 0.0, expressions: Collection[Value] = (),
        moved: Collection[OpView] = (),
    ):  # fmt: skip
        self.function, self.max_ops, self.may_join = function, max_ops, may_join
        self.explains, self.shared_rows, self.flops_per_byte = explains, shared_rows, flops_per_byte
        #: why an op, or another group, did not join a group
        self.refusals: dict[tuple[OpView | Group, Group], dict[Way, Reason]] | None = {} if explains else None
        self.merged: dict[Group, Group] = {}  #: groups that are part of another now
        self.contractions, self.max_buffers, self.apart = contractions, max_buffers, apart
        self.spread, self.moved = spread, moved
        self.weightless = weightless_values(function) if max_buffers else set()
        self.expressions = expressions
        self.position = {op: i for i, op in enumerate(function.ops)}
        self.groups: list[Group] = []
        self.readers: dict[Value, dict[Group, None]] = {}
        self.others: dict[Value, list[OpView]] = {}  #: ops outside of groups that read a value
        self.stays: list[OpView] = []
        self.reach = Reachability()  #: of groups and ops outside of them
        self.returned = set(function.returns)

    def run(self) -> None:
        for op in reversed(self.function.ops):
            self._visit(op)
        self._merge_siblings()
        for group in self.groups:
            group.finish(self.position)

    # One op

    def _visit(self, op: OpView) -> None:
        if op.op.pure and not any(self._is_read(v) for v in op.results):
            return
        pointwise = is_pointwise(op)
        groupable = (
            pointwise or is_row_reduction(op) or op.op.kind in ("scan", "scatter") or op in self.contractions
        )
        if not groupable or len(op.results) != 1:
            self._leave(op)
            return
        value = op.results[0]
        readers = list(self.readers.get(value, ()))
        external = value in self.returned or bool(self.others.get(value))
        if op in self.moved:
            self._note_all(op, readers, "movement", _TINY)
            self._start(op)
        elif pointwise and op.op.flops == 0:
            self._visit_free(op, readers, external)
        elif self.apart and elements(op) <= self.apart:
            self._note_all(op, readers, "inside", _TINY)
            self._start(op)
        elif not pointwise:
            self._visit_heavy(op, readers, external)
        else:
            self._visit_pointwise(op, readers, external)

    def _is_read(self, v: Value) -> bool:
        return v in self.returned or bool(self.readers.get(v)) or bool(self.others.get(v))

    def _leave(self, op: OpView) -> None:
        self.stays.append(op)
        self.reach.add(op, self._next(op))
        for v in op.operands:
            self.others.setdefault(v, []).append(op)

    def _start(self, op: OpView) -> Group:
        group = Group(op, self.shared_rows, self.flops_per_byte)
        self.groups.append(group)
        self.reach.add(group, self._next(group))
        self._note_reads(group)
        return group

    def _note_reads(self, group: Group) -> None:
        for v in group.reads:
            self.readers.setdefault(v, {})[group] = None

    def _join(self, op: OpView, group: Group) -> None:
        group.add(op)
        for v in op.operands:
            if v in group.reads:
                self.readers.setdefault(v, {})[group] = None
        self.readers[op.results[0]].pop(group, None)

    def _refused(self, group: Group, candidate: Candidate) -> Reason | None:
        """Why the op does not join the group in the candidate's way; None: it does."""
        op, value = candidate.op, candidate.op.results[0]
        if value in self.weightless:
            return None
        if self._is_full(group, candidate.way):
            return Reason("max-ops", "the kernel has {ops} ops, of {most}", ops=len(group.ops), most=self.max_ops)
        if not candidate.computed and not group.admits(op):
            return _FACTOR
        if self.max_buffers:
            arrays = group.arrays([op], self.weightless) + (candidate.way == "output")
            if arrays > self.max_buffers:
                return Reason("max-buffers", "the kernel would read and write {arrays} arrays, of {most}",
                              arrays=arrays, most=self.max_buffers)  # fmt: skip
        return self.may_join(group, candidate)

    def _is_full(self, group: Group, way: Way) -> bool:
        """Whether a kernel has as many ops as it may: movement, which in memory may be larger than all that is read,
        does not count up to `FREE` times as many."""
        if len(group.ops) < self.max_ops:
            return False
        if len(group.ops) >= FREE * self.max_ops:
            return True
        return way != "movement" and sum(op.op.flops > 0 for op in group.ops) >= self.max_ops

    def _visit_free(self, op: OpView, readers: list[Group], external: bool) -> None:
        value = op.results[0]
        candidate = Candidate(op, "movement", readers, None, value in self.expressions)
        for group in readers:
            reason = self._refused(group, candidate)
            if reason is None:
                self._join(op, group)
            else:
                self._note(op, group, "movement", reason)
        if external or self.readers.get(value):
            if op.op.is_view:
                self._leave(op)
            else:
                self._start(op)

    def _visit_pointwise(self, op: OpView, readers: list[Group], external: bool) -> None:
        way: Way = "inside" if len(readers) == 1 else "again"
        if external or not readers:
            self._note_all(op, readers, way, _MUST_EXIST)
        elif self._all_take(Candidate(op, way, readers, None, op.results[0] in self.expressions)):
            for group in readers:
                self._join(op, group)
            return
        if not self._join_as_output(op, readers):
            self._start(op)

    def _all_take(self, candidate: Candidate) -> bool:
        """Whether all kernels that read what the op makes compute it."""
        for group in candidate.readers:
            reason = self._refused(group, candidate)
            if reason is not None:
                self._note_all(candidate.op, candidate.readers, candidate.way, reason)
                return False
        return True

    def _join_as_output(self, op: OpView, readers: list[Group]) -> bool:
        """Let one reader also write the value for the others."""
        value = op.results[0]
        candidate = Candidate(op, "output", readers, None, value in self.expressions)
        for group in readers:
            place = group.place_as_output(value)
            rest: list[Any] = [g for g in readers if g is not group] + self.others.get(value, [])
            reason: Reason | None = None
            if place is None:
                reason = _OTHER_LOOPS
            elif any(self.reach.leads(item, group) for item in rest):
                reason = _CYCLE
            elif not is_pointwise(op):
                reason = group.refuses(op)
            reason = reason or self._refused(group, candidate)
            if reason is not None:
                self._note(op, group, "output", reason)
                continue
            assert place is not None
            self._join(op, group)
            group.add_output(value, place)
            self.reach.connect(group, rest)
            return True
        return False

    def _visit_heavy(self, op: OpView, readers: list[Group], external: bool) -> None:
        if (is_row_reduction(op) or is_contraction(op)) and readers:
            group = readers[0]
            if external or len(readers) > 1:
                self._note_all(op, readers, "inside", _MUST_EXIST if external else _ONCE)
                if self._join_as_output(op, readers):
                    return
            else:
                candidate = Candidate(op, "inside", readers, None, op.results[0] in self.expressions)
                reason = group.refuses(op) or self._refused(group, candidate)
                if reason is None:
                    self._join(op, group)
                    return
                self._note(op, group, "inside", reason)
        else:
            self._note_all(op, readers, "inside", _STARTS)
        self._start(op)

    # Why not

    def _note(self, op: OpView | Group, group: Group, way: Way, reason: Reason) -> None:
        if self.refusals is not None:
            self.refusals.setdefault((op, group), {})[way] = reason

    def _note_all(self, op: OpView, groups: Sequence[Group], way: Way, reason: Reason) -> None:
        if self.refusals is not None:
            for group in groups:
                self._note(op, group, way, reason)

    # Order

    def _next(self, item: Any) -> list[Any]:
        """The groups and ops that read what `item` writes."""
        values = item.outputs if isinstance(item, Group) else item.results
        found: list[Any] = []
        for v in values:
            found += self.readers.get(v, ())
            found += self.others.get(v, ())
        return found

    def schedule(self) -> list[Any]:
        """Groups and remaining ops, each after what it reads."""
        items: list[Any] = [*self.groups, *self.stays]
        maker: dict[Value, Any] = {}
        rank: dict[Any, int] = {}
        for item in items:
            for v in item.outputs if isinstance(item, Group) else item.results:
                maker[v] = item
            rank[item] = self.position[item.primary if isinstance(item, Group) else item]
        order: list[Any] = []
        state: dict[Any, int] = {}
        needs: dict[Any, list[Any]] = {}
        for item in items:
            inputs = item.inputs if isinstance(item, Group) else item.operands
            needs[item] = [p for p in dict.fromkeys(maker[v] for v in inputs if v in maker) if p is not item]
        for root in sorted(items, key=rank.__getitem__):
            stack = [root]
            while stack:
                item = stack[-1]
                if state.get(item) == 2:
                    stack.pop()
                    continue
                pending = [p for p in needs[item] if state.get(p) != 2]
                if not pending or state.get(item) == 1:
                    assert not pending, "fusion made a cycle"
                    state[item] = 2
                    order.append(item)
                    stack.pop()
                else:
                    state[item] = 1
                    stack += pending
        return order

    # Siblings

    def _merge_siblings(self) -> None:
        """Kernels with the same loops that read the same array become one kernel."""
        by_input: dict[Any, list[Group]] = {}
        for group in self.groups:
            key, size = sibling_key(group), group.elements
            if key is None or size <= self.apart:
                continue
            for v in group.reads:
                if v.aval.size * 2 >= size and v.aval.size > 1 and v not in self.spread:
                    by_input.setdefault((key, v), []).append(group)
        gone: set[Group] = set()
        for candidates in by_input.values():
            if len(candidates) > 16:
                candidates = candidates[:16]
            for i, first in enumerate(candidates):
                for second in candidates[i + 1 :]:
                    if first in gone or second in gone or first is second:
                        continue
                    into, other = first, second
                    reason = self._clash(into, other)
                    if reason is _NEEDED:
                        into, other = second, first
                        reason = self._clash(into, other)
                    reason = reason or self.may_join(first, Candidate(second.primary, "sibling", (), second))
                    if reason is None:
                        gone.add(other)
                        self._merge(into, other)
                        self.reach.merge(into, other)
                    else:
                        self._note(second, first, "sibling", reason)
        self.groups = [g for g in self.groups if g not in gone]

    def _clash(self, first: Group, second: Group) -> Reason | None:
        """Why second cannot become part of first: it needs first by more than what each row can hand over, or they are
        too large together."""
        if len(first.ops) + len(second.ops) > self.max_ops:
            return Reason("max-ops", "the two have {ops} ops, of {most}", ops=len(first.ops) + len(second.ops),
                          most=self.max_ops)  # fmt: skip
        if not self.reach.in_one_part(first, second):
            return _FAR
        if self.reach.leads(second, first):
            return _NEEDED
        if self.reach.leads(first, second) and not self._hands_over(first, second):
            return _NEEDED
        if self.max_buffers:
            arrays = first.arrays(list(second.ops), self.weightless) + len(second.outputs)
            if arrays > self.max_buffers:
                return Reason("max-buffers", "they would read and write {arrays} arrays, of {most}", arrays=arrays,
                              most=self.max_buffers)  # fmt: skip
        return None

    def _hands_over(self, first: Group, second: Group) -> bool:
        """Whether all that second needs of first is read row by row, where first computes it."""
        if first.schedule != "row":
            return False
        if not self.shared_rows and parallel_rows(first.reductions()[0]) < FEW_ROWS:
            return False
        for v, place in zip(first.outputs, first.output_places):
            if v in second.reads and list(second.reads[v]) != [place]:
                return False
        indirect = [item for item in self._next(first) if item is not second]
        return not any(self.reach.leads(item, second) for item in indirect)

    def _merge(self, first: Group, second: Group) -> None:
        """Make second part of first."""
        self.merged[second] = first
        first.ops.update(second.ops)
        first.reduced.update(second.reduced)
        for v, places in second.reads.items():
            first.reads.setdefault(v, {}).update(places)
            self.readers[v].pop(second, None)
            self.readers[v][first] = None
        first.feeds |= second.feeds
        for v in first.outputs:
            self.readers.get(v, {}).pop(first, None)
        kept = [(v, p) for v, p in zip(first.outputs, first.output_places) if self._is_read(v)] + list(
            zip(second.outputs, second.output_places)
        )
        first.outputs, first.output_places = [v for v, _ in kept], [p for _, p in kept]


def elements(op: OpView) -> int:
    """Elements of the largest array that an op reads or writes."""
    return max(v.aval.size for v in (*op.operands, *op.results))


def spread_values(function: Function) -> set[Value]:
    """Values that are single numbers, repeated and moved."""
    found: set[Value] = set()
    for op in function.ops:
        if op.op.flops == 0 and is_pointwise(op) and all(v in found or v.aval.size == 1 for v in op.operands):
            found.update(op.results)
    return found


def weightless_values(function: Function) -> set[Value]:
    """Values that are made of constants and positions without arithmetic, such as a broadcast number."""
    found: set[Value] = set()
    for op in function.ops:
        if is_pointwise(op) and op.op.flops == 0 and all(v in found for v in op.operands):
            found.update(op.results)
    return found
