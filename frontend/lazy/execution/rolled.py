"""Loops that were written out: equal steps, one after the other, become one loop.

    h = tanh(h @ w + x)           h = scan(lambda h: tanh(h @ w + x), h, length=1000)
    h = tanh(h @ w + x)     →
    ...

A thousand steps of a loop in Python are recorded as a thousand times the same nodes. What compiles them takes as long
as for one. Steps are equal where their ops, attributes and types are, what they read from outside is the same for all,
and everything else that they read comes from the step itself, or from as many steps before.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from smelt.ir.control import SCAN
from smelt.ir.op import Ints, registry
from smelt.runtime import LruCache

from ..core import NO_ATTRS, PARAMETER, leaf
from ..graph import GraphFunction, Node, RecordedNode, Ref, inputs_of, step_key, structure_key
from .kin import Kin, kin_of
from .results import as_buffer
from .tiers import count
from .windows import is_window, move, stacked

#: Nodes that a loop must save to be worth it: what is shorter is fused across its steps.
LEAST = 128
#: Ops of a loop's body, at least: several steps are one of the loop, so that these are fused.
BODY = 32
#: Steps, at least; periods that are tried.
STEPS, TRIED = 4, 8
#: Values that differ from step to step become a list if each has so many bytes at most.
SMALL = 1 << 16
_REPEATED = b"\x01" * LEAST
#: A step reads values of so many steps before, at most.
MOST_BACK = 4


def rolled(
    body: Sequence[RecordedNode], outputs: Sequence[Ref], by_value: bool = False
) -> tuple[Sequence[RecordedNode], list[Ref]]:
    """A function's nodes and outputs, with loops in place of repetitions.

    Args:
        by_value: whether inputs that share their memory are one. The result then holds for these values alone.
    """
    found = rolled_with_key(body, outputs, by_value)
    return found.body, found.outputs


class Rolled(NamedTuple):
    """A function with loops in place of repetitions.

    Attributes:
        structure: its `structure_key`, where that came out on the way.
        kin: what is known of those that differ from it in sizes alone, before there were loops, where that was asked.
    """

    body: Sequence[RecordedNode]
    outputs: list[Ref]
    structure: Any = None
    kin: Kin | None = None


def rolled_with_key(body: Sequence[RecordedNode], outputs: Sequence[Ref], by_value: bool = False) -> Rolled:
    """`rolled`, and what was found out on the way."""
    results, nodes = list(outputs), len(body)
    if nodes < LEAST:
        return Rolled(body, results)
    if nodes > MOST_KEPT:
        return Rolled(*_search(body, results, by_value, [])[:2])
    structure, values = _key(body, results, by_value)
    try:
        known = searched.get((structure, values, by_value))
    except TypeError:  # sizes that are symbols have no hash
        return Rolled(body, results)
    if known is not None:
        for steps in known.steps:
            found = _Repetitions(body, results, by_value).rolled(steps)
            if found is None:
                break
            body, results = found
    else:
        kin = kin_of(structure)
        like = values, by_value
        body, results, made, periods = _search(body, results, by_value, kin.periods.get(like, []))
        kin.repeats(like, periods)
        known = _Found(made, kin, nodes)
        searched.put((structure, values, by_value), known)
    return Rolled(body, results, None if known.steps else structure, known.kin)


def _search(
    body: Sequence[RecordedNode], outputs: list[Ref], by_value: bool, expected: Sequence[int | None]
) -> tuple[Sequence[RecordedNode], list[Ref], list[_Steps], list[int | None]]:
    """A function with loops, its repetitions, and the periods of all that repeats itself; None stands for the end.

    Args:
        expected: the periods in a function of other sizes.
    """
    made: list[_Steps] = []
    periods: list[int | None] = []
    while len(body) >= LEAST:
        hint = expected[len(made)] if len(made) < len(expected) else 0
        repetitions = _Repetitions(body, outputs, by_value)
        steps = None if hint is None else repetitions.steps(hint)
        periods.append(None if steps is None else repetitions.period)
        found = None if steps is None else repetitions.rolled(steps)
        if steps is None or found is None:
            break
        made.append(steps)
        body, outputs = found
    return body, outputs, made, periods


class _Found(NamedTuple):
    """The repetitions of a function, one after the other, and what is known of those of other sizes."""

    steps: list[_Steps]
    kin: Kin
    nodes: int


#: Those that were found: looking takes longer than to run what is small. Of longer functions nothing is kept.
searched = LruCache(weigh=lambda found: 300 * found.nodes)
MOST_KEPT = 10_000


def _key(body: Sequence[RecordedNode], outputs: Sequence[Ref], by_value: bool) -> tuple[Any, tuple[int, ...]]:
    """What the repetitions of a function depend on: its structure, and which inputs are one value."""
    inputs = inputs_of(body, outputs)
    same: dict[int, int] = {}
    values: list[int] = []
    if by_value:
        values = [-1 if n.values is None else same.setdefault(id(n.values[i]), len(same)) for n, i in inputs]
    return structure_key(inputs, body, outputs), tuple(values)


class _Value(NamedTuple):
    """A result of a node of a step.

    Attributes:
        at: which node of the step.
        result: which of its results.
        back: in which step: this one (0), or so many before.
    """

    at: int
    result: int
    back: int


class _Steps(NamedTuple):
    """A repetition: `times` steps of `period` nodes from `start` on."""

    start: int
    period: int
    times: int

    @property
    def end(self) -> int:
        return self.start + self.period * self.times

    def saved(self) -> int:
        return self.period * (self.times - 1)


class _Repetitions:
    """The nodes of a function, by what they compute and read."""

    def __init__(self, body: Sequence[RecordedNode], outputs: list[Ref], by_value: bool):
        self.body, self.outputs, self.by_value = body, outputs, by_value
        self.place = {step.node: i for i, step in enumerate(body)}
        #: Where each operand is computed: the place of a node, or -1 for what comes from outside.
        self.read = [[self.place.get(node, -1) for node, _ in step.inputs] for step in body]
        self._kinds: np.ndarray | None = None
        self.period = 0  #: of the repetition that was found, before several steps of it were one

    @property
    def kinds(self) -> np.ndarray:
        """Numbers: equal for nodes that may be one in different steps, in order of appearance. Repetitions that are
        known need none."""
        if self._kinds is None:
            numbers: dict[Any, int] = {}
            # Nodes of one recipe have the same attributes and types, as objects: few have to be looked at.
            known: dict[tuple[Any, ...], int] = {}
            found = []
            for step in self.body:
                place = step.where if step.op.tells_line else None
                same = id(step.op), id(step.attrs), id(step.avals), len(step.inputs), place
                number = known.get(same)
                if number is None:
                    number = known[same] = numbers.setdefault(_kind(step), len(numbers))
                found.append(number)
            self._kinds = np.array(found, np.int64)
        return self._kinds

    def steps(self, hint: int = 0) -> _Steps | None:
        """The longest repetition; None where there is none.

        Args:
            hint: its period, if that is likely to be this; others are tried where nothing repeats itself so.
        """
        best = _Steps(0, 1, 0)
        if hint and hint * STEPS <= len(self.body):
            best = self._steps(hint, best)
        if best.saved() < LEAST:
            for period in self._periods():
                best = self._steps(period, best)
        if best.saved() < LEAST:
            return None
        self.period = best.period
        best = self._with_first(best)
        ops = count(self.body[best.start : best.start + best.period])
        period = best.period * -(-BODY // ops)
        return best._replace(period=period, times=best.times * best.period // period)

    def rolled(self, steps: _Steps) -> tuple[list[RecordedNode], list[Ref]] | None:
        """The function with a repetition as a loop; None where it cannot be one."""
        return _Loop(self, steps).made()

    def _periods(self) -> Iterator[int]:
        """Distances between equal nodes, the most frequent first; those of rare nodes besides, which are few a step."""
        kinds = self.kinds
        places = np.argsort(kinds, kind="stable")  # those of one kind beside each other, in order
        sorted_kinds = kinds[places]
        lags, of_kinds = [], []
        for lag in (1, 2, 3):
            same = sorted_kinds[lag:] == sorted_kinds[:-lag]
            lags.append((places[lag:] - places[:-lag])[same])
            of_kinds.append(sorted_kinds[lag:][same])
        distances = np.concatenate(lags)[np.argsort(np.concatenate(of_kinds), kind="stable")]
        tried = _most_frequent(distances, TRIED)
        times = np.bincount(kinds)
        ends = np.cumsum(times)
        rare = np.flatnonzero(times >= STEPS)
        for kind in rare[np.argsort(times[rare], kind="stable")][:TRIED]:
            tried += _most_frequent(np.diff(places[ends[kind] - times[kind] : ends[kind]]), 1)
        yield from (p for p in dict.fromkeys(tried) if p * STEPS <= len(self.body))

    def _steps(self, period: int, best: _Steps) -> _Steps:
        """The longest repetition with that period, if it is longer than `best` and saves enough."""
        for start, end in self._runs(period):
            i = start
            # What is left of the run must be enough; nodes of other kinds repeat nothing.
            while i < end and (longest := (end - start) // period * period) >= LEAST and longest > best.saved():
                last = self._repeats(i, period, start)
                if last == -2:
                    best = max(best, _Steps(start, period, (i - start) // period + 1), key=_Steps.saved)
                    start = i + 1
                else:
                    start = max(start, last + 1)
                i += 1
            if i == end > start:
                best = max(best, _Steps(start, period, (end - start) // period + 1), key=_Steps.saved)
        return best

    def _runs(self, period: int) -> list[tuple[int, int]]:
        """Where enough nodes in a row are of the kind of those a period later: from the first up to the last."""
        same = self.kinds[:-period] == self.kinds[period:]
        if _REPEATED not in same.tobytes():
            return []
        edges = np.flatnonzero(np.diff(same, prepend=False, append=False)).tolist()
        return [(start, end) for start, end in zip(edges[::2], edges[1::2]) if end - start >= LEAST]

    def _repeats(self, i: int, period: int, start: int) -> int:
        """Whether a node does what the one of its kind a period later does: -2 if not, else the last node that both
        read as one. The steps before begin at `start`."""
        if not self._moves_on(i, period, i - period >= start):
            return -2
        last = -1
        for a, b, x, y in self.operands(i, i + period):
            if a == b:
                last = max(last, a)
            if not (self._is_invariant(a, b, x, y) or _is_shifted(a, b, x, y, period) or self._is_listed(a, b, x, y)):
                return -2
        return last

    def move(self, i: int, j: int) -> Ints | None:
        """How much further the second of two nodes of a kind reads, if it is a slice."""
        return move(self.body[i], self.body[j]) if is_window(self.body[i]) else None

    def _moves_on(self, i: int, period: int, compares: bool) -> bool:
        """Whether a node a period later reads as much further in the same array as this one did, if it is a slice."""
        moved = self.move(i, i + period)
        if compares and is_window(self.body[i]) and self.move(i - period, i) != moved:
            return False
        return moved is None or all(self._is_invariant(*operand) for operand in self.operands(i, i + period))

    def operands(self, i: int, j: int) -> Iterator[tuple[int, int, Ref, Ref]]:
        """The operands of two nodes of a kind, side by side: where they are computed, and what they are."""
        return zip(self.read[i], self.read[j], self.body[i].inputs, self.body[j].inputs)

    def _is_invariant(self, a: int, b: int, x: Ref, y: Ref) -> bool:
        return a == b and (x == y or (a == -1 and self.is_same(x, y)))

    def _is_listed(self, a: int, b: int, x: Ref, y: Ref) -> bool:
        """Whether both are small values that the host has, a list of which the loop may read."""
        if not (self.by_value and a == b == -1) or not (_is_on_host(x) and _is_on_host(y)):
            return False
        left, right = x[0].avals[x[1]], y[0].avals[y[1]]
        return left == right and left.nbytes <= SMALL

    def is_same(self, x: Ref, y: Ref) -> bool:
        """Whether both are one value. Numbers of Python have nodes of their own, and share their memory."""
        if x == y or not self.by_value:
            return x == y
        (left, i), (right, j) = x, y
        return left.values is not None and right.values is not None and left.values[i] is right.values[j]

    def _with_first(self, steps: _Steps) -> _Steps:
        """With the step before, which reads from elsewhere what the others read from the step before them."""
        start, period = steps.start, steps.period
        first = start - period
        if first < 0 or not np.array_equal(self.kinds[first:start], self.kinds[start : start + period]):
            return steps
        for i in range(first, start):
            if not self._moves_on(i + period, period, True):
                return steps
            for a, b, x, y in self.operands(i, i + period):
                if a < first and first <= b < start:
                    fits = x[0].avals[x[1]] == y[0].avals[y[1]]
                else:
                    fits = _is_shifted(a, b, x, y, period) or self._is_listed(a, b, x, y)
                    fits = fits or (a < first and self._is_invariant(a, b, x, y))
                if not fits:
                    return steps
        return _Steps(first, period, steps.times + 1)


class _Loop:
    """A loop in the making.

    Attributes:
        constants: what all steps read, with the parameter of the body.
        carries: what a step reads of steps before, with the parameter; `initial`: what the first step reads for it.
        before: places of nodes of the first step that compute the same in all.
        xs: places of slices of the first step that move on, with the parameter; `moves`: by how much.
    """

    def __init__(self, function: _Repetitions, steps: _Steps):
        self.function, self.steps = function, steps
        self.constants: dict[Ref, Node] = {}
        self.carries: dict[_Value, Node] = {}
        self.initial: dict[_Value, Ref] = {}
        self.fits = steps.times >= 2
        body, first = function.body, range(steps.start, steps.start + steps.period) if self.fits else ()
        self.xs: dict[int, Node] = {}
        self.moves: dict[int, Ints] = {}
        for i in first:
            if moved := function.move(i, i + steps.period):
                self.moves[i] = moved
                self.xs[i] = _parameter((body[i].node, 0))
        #: Operands that are other values in each step: with the parameter.
        self.lists: dict[tuple[int, int], Node] = {}
        for i in first:
            for at, (a, b, x, _) in enumerate(function.operands(i, i + steps.period)):
                if a == b == -1 and not all(function.is_same(x, y) for y in self._each(i, at)):
                    self.lists[i, at] = _parameter(x)
        self.before: set[int] = set()
        for i in first:
            if self._is_for_all(i):
                self.before.add(i)
        self.body = [self._inner(i) for i in first if i not in self.xs]
        for value in list(self.carries):
            for back in range(1, value.back):
                self._carry(value._replace(back=back), None)
        self.where = body[steps.start].where

    def made(self) -> tuple[list[RecordedNode], list[Ref]] | None:
        """The function with the loop; None where it cannot be, or is not worth it."""
        body, outputs = self.function.body, self.function.outputs
        if not self.fits or (self.lists and not self.carries):  # steps on values of their own need no order: no loop
            return None
        self._leave_the_last()
        start, _, times = self.steps
        if self.steps.saved() < LEAST:
            return None
        wanted = [value for value, _ in self._wanted()]
        kept = Counter(v._replace(back=0) for v in dict.fromkeys(wanted) if v not in self.carries)
        if any(2 * several < times for several in kept.values()):  # all steps' values would be kept for a few
            return None
        carries = list(self.carries)
        results = [self._next(value) for value in carries]
        constants = list(self.constants)
        results += [(body[start + at].node, result) for at, result, _ in kept]
        inner = (*self.constants.values(), *self.carries.values(), *self.xs.values(), *self.lists.values())
        parameters = [(node, 0) for node in inner]
        step = GraphFunction("step", parameters, (), self.body, results)
        attrs = {
            "body": step, "constants": len(constants), "carries": len(carries), "length": times, "reverse": False,
        }  # fmt: skip
        ys = [(node, r) for node, r in results[len(carries) :]]
        avals = [node.avals[0] for node in self.carries.values()]
        avals += [(a := node.avals[r]).with_shape((times, *a.shape)) for node, r in ys]
        windows = [stacked(body[i], moved, times) for i, moved in self.moves.items()]
        if not all(windows):
            return None
        xs = [(steps[-1].node, 0) for steps in windows if steps]
        xs += [(_listed(self._each(i, at)), 0) for i, at in self.lists]
        operands = (*constants, *(self.initial[value] for value in carries), *xs)
        loop = Node(SCAN, attrs, operands, tuple(avals))
        renamed = self._for_all()
        made = self._before(renamed.values())
        made += [body[i] for i in sorted({i for i, _ in self._read_later() if self._in_first(i) in self.xs})]
        made += [step for steps in windows if steps for step in steps]
        made.append(RecordedNode(loop, SCAN, attrs, operands, tuple(avals), self.where))
        for value, ref in self._wanted():
            if value in self.carries:
                renamed[ref] = (loop, carries.index(value))
            elif ref not in renamed:
                y = ys.index((body[start + value.at].node, value.result))
                made += self._element((loop, len(carries) + y), times - value.back)
                renamed[ref] = (made[-1].node, 0)
        rest = [
            step._replace(inputs=tuple([renamed.get(r, r) for r in step.inputs])) for step in body[self.steps.end :]
        ]
        return [*body[:start], *made, *rest], [renamed.get(r, r) for r in outputs]

    def _is_for_all(self, i: int) -> bool:
        """Whether a node of the first step depends on nothing that steps change."""
        function = self.function
        if i in self.xs or not function.body[i].op.pure:
            return False
        return all(
            a in self.before or (a == b and a < self.steps.start and (i, at) not in self.lists)
            for at, (a, b, _, _) in enumerate(function.operands(i, i + self.steps.period))
        )

    def _each(self, i: int, at: int) -> list[Ref]:
        """An operand of a node of the first step, in each."""
        return [self.function.body[j].inputs[at] for j in range(i, self.steps.end, self.steps.period)]

    def _read_later(self) -> Iterator[tuple[int, Ref]]:
        """What is read after the loop of its nodes: their places, and what is read."""
        function, end = self.function, self.steps.end
        for refs in (*(step.inputs for step in function.body[end:]), function.outputs):
            for ref in refs:
                place = function.place.get(ref[0], -1)
                if self.steps.start <= place < end:
                    yield place, ref

    def _in_first(self, place: int) -> int:
        """The place in the first step of a node of any."""
        return self.steps.start + (place - self.steps.start) % self.steps.period

    def _for_all(self) -> dict[Ref, Ref]:
        """What is read after the loop, and is the same in all steps: as what the first step computes."""
        found: dict[Ref, Ref] = {}
        for place, ref in self._read_later():
            first = self._in_first(place)
            if first in self.before:
                found[ref] = (self.function.body[first].node, ref[1])
        return found

    def _before(self, refs: Iterable[Ref]) -> list[RecordedNode]:
        """The nodes of the first step that compute this, in order."""
        function, wanted = self.function, {self.function.place[node] for node, _ in refs}
        for i in range(self.steps.start + self.steps.period - 1, self.steps.start - 1, -1):
            if i in wanted:
                wanted.update(a for a in function.read[i] if a >= self.steps.start)
        return [function.body[i] for i in sorted(wanted)]

    def _inner(self, i: int) -> RecordedNode:
        """A node of the first step as one of the loop's body."""
        function, (start, period, _) = self.function, self.steps
        step, found = function.body[i], []
        for a, b, x, y in function.operands(i, i + period):
            if start <= a:
                found.append((self.xs[a], 0) if a in self.xs else x)
            elif (i, len(found)) in self.lists:
                found.append((self.lists[i, len(found)], 0))
            elif a == b:
                found.append((self.constants.setdefault(x, _parameter(x)), 0))
            else:
                place = b - start
                found.append((self._carry(_Value(place % period, y[1], 1 - place // period), x), 0))
        return step._replace(inputs=tuple(found))

    def _carry(self, value: _Value, ref: Ref | None) -> Node:
        """The parameter for a value of an earlier step, which is `ref` for the first; None: as the nodes say."""
        body, (start, period, _) = self.function.body, self.steps
        if ref is None:
            ref = (body[max(start + value.at - value.back * period, 0)].node, value.result)
        first = self.initial.setdefault(value, ref)
        if value.back > MOST_BACK or not self.function.is_same(first, ref):
            self.fits = False
        known = self.carries.get(value)
        if known is None:
            known = self.carries[value] = _parameter((body[start + value.at].node, value.result))
        return known

    def _next(self, value: _Value) -> Ref:
        """What the next step reads for a carry."""
        if value.back == 1:
            place = self.steps.start + value.at
            return (self.xs[place], 0) if place in self.xs else (self.function.body[place].node, value.result)
        return self.carries[value._replace(back=value.back - 1)], 0

    def _wanted(self) -> Iterator[tuple[_Value, Ref]]:
        """The values of steps that are read after the loop; `back` counts from its end."""
        start, period, times = self.steps
        for place, ref in self._read_later():
            step, at = divmod(place - start, period)
            if start + at not in self.before and start + at not in self.xs:
                yield _Value(at, ref[1], times - step), ref

    def _leave_the_last(self) -> None:
        """Leave the last step out where only it has values that are read later and are no carries: else all steps'
        would be stacked for one."""
        others = [value for value, _ in self._wanted() if value not in self.carries]
        if others and all(value.back == 1 for value in others):
            self.steps = self.steps._replace(times=self.steps.times - 1)

    def _element(self, ref: Ref, i: int) -> Iterator[RecordedNode]:
        """Nodes for an element of what is stacked."""
        aval = ref[0].avals[ref[1]]
        shape = aval.shape[1:]
        attrs = {"start": (i, *[0] * len(shape)), "stop": (i + 1, *shape), "stride": (1,) * aval.ndim}
        part = aval.with_shape((1, *shape))
        for name, given, result in (("slice", attrs, part), ("reshape", {"shape": shape}, aval.with_shape(shape))):
            node = Node(registry[name], given, (ref,), (result,))
            yield RecordedNode(node, registry[name], given, (ref,), (result,), self.where)
            ref = (node, 0)


def _most_frequent(distances: np.ndarray, most: int) -> list[int]:
    """The most frequent ones, those that come first before others."""
    found, first, times = np.unique(distances, return_index=True, return_counts=True)
    return found[np.lexsort((first, -times))[:most]].tolist()


def _parameter(ref: Ref) -> Node:
    return Node(PARAMETER, NO_ATTRS, (), (ref[0].avals[ref[1]],))


def _is_on_host(ref: Ref) -> bool:
    node, i = ref
    return node.values is not None and node.values[i].is_on_host


def _listed(refs: Sequence[Ref]) -> Node:
    """Values one after the other, along axis 0."""
    arrays = [node.values[i].array for node, i in refs if node.values is not None]
    aval = refs[0][0].avals[refs[0][1]]
    return leaf(as_buffer(np.stack(arrays), aval.with_shape((len(arrays), *aval.shape))))


def _kind(step: RecordedNode) -> Any:
    what = (step.op.name, step.attrs["stride"]) if is_window(step) else step_key(step)
    return what, step.avals, len(step.inputs)


def _is_shifted(a: int, b: int, x: Ref, y: Ref, period: int) -> bool:
    return a >= 0 and b - a == period and x[1] == y[1]
