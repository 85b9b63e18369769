"""Sorts by comparators: keys are found in them where there are such, else elements are compared pair by pair."""

from __future__ import annotations

from typing import Any, NamedTuple

from smelt.ir import dtypes
from smelt.ir.op import registry as ops

from ...functions.index_functions import take_along_axis
from ...functions.logic import where
from ...lazy.arrays import array, convert, emit
from ..reading import Call, Region, owner_of, rule
from ..translating import Refused
from .elementwise import apply, full_like, total_order
from .shapes import joined


class Key(NamedTuple):
    """One key of an order: a value of the region of its first elements, how it is compared, and whether descending."""

    value: Any
    kind: str
    descending: bool


class _Comparator:
    """Reads the region of a sort as an order by keys, one after the other."""

    def __init__(self, region: Region):
        arguments = list(region.block.arguments)
        self.first, self.second = arguments[::2], arguments[1::2]
        self.pairs = dict(zip(self.first, self.second))
        self.returned = region.returned[0]

    def keys(self) -> list[Key] | None:
        return self._order(self.returned)

    def _order(self, value: Any) -> list[Key] | None:
        op = owner_of(value)
        if op is None:
            return None
        if op.name == "stablehlo.compare":
            key = self._compared(op)
            return None if key is None else [key]
        operands = list(op.operands)
        if op.name == "stablehlo.or":  # before, or equal and then by what follows
            for before, also in (operands, operands[::-1]):
                found = self._first_of(before, also)
                if found:
                    return found
        if op.name == "stablehlo.select":  # equal ? what follows : before
            condition, then, other = operands
            head = self._order(other)
            rest = self._order(then)
            if head and rest and len(head) == 1 and self._is_tie(condition, head[0]):
                return [*head, *rest]
        return None

    def _first_of(self, before: Any, also: Any) -> list[Key] | None:
        head = self._order(before)
        op = owner_of(also)
        if not head or len(head) != 1 or op is None or op.name != "stablehlo.and":
            return None
        for tie, rest in (list(op.operands), list(op.operands)[::-1]):
            if self._is_tie(tie, head[0]):
                found = self._order(rest)
                return None if found is None else [*head, *found]
        return None

    def _is_tie(self, value: Any, key: Key) -> bool:
        op = owner_of(value)
        if op is None or op.name != "stablehlo.compare" or _word(op, "comparison_direction") != "EQ":
            return False
        a, b = op.operands
        return (a == key.value and self._mirrors(a, b)) or (b == key.value and self._mirrors(b, a))

    def _compared(self, op: Any) -> Key | None:
        direction, kind = _word(op, "comparison_direction"), _word(op, "compare_type")
        if direction not in ("LT", "GT"):
            return None
        a, b = op.operands
        if self._mirrors(a, b):
            return Key(a, kind, direction == "GT")
        if self._mirrors(b, a):
            return Key(b, kind, direction == "LT")
        return None

    def _mirrors(self, a: Any, b: Any) -> bool:
        """Whether b is of the second elements what a is of the first."""
        pending, seen = [(a, b)], 0
        while pending:
            seen += 1
            if seen > 200:
                return False
            a, b = pending.pop()
            x, y = owner_of(a), owner_of(b)
            if x is None or y is None:
                if x is not y or (a in self.pairs and self.pairs[a] != b) or (a not in self.pairs and a != b):
                    return False
                continue
            if x == y:
                if a != b or any(v in self.pairs or v in self.second for v in x.operands):
                    return False
                continue
            same = x.name == y.name and str(x.attributes) == str(y.attributes) and not len(x.regions)
            if not same or len(x.operands) != len(y.operands) or len(x.results) != 1:
                return False
            pending += zip(x.operands, y.operands)
        return True


def _word(op: Any, name: str) -> str:
    return str(op.attributes[name]).rstrip(">").rpartition(" ")[2] if name in op.attributes else ""


def _sortable(x: array, key: Key) -> array:
    """Something whose ascending order is that of the key, equal where the key is."""
    if key.kind == "TOTALORDER" and x.dtype.is_float:
        x = total_order(x)
    if not key.descending:
        return x
    if x.dtype is dtypes.bool_:
        return apply("logical_not", x)
    return apply("bitwise_invert", x) if x.dtype.is_integer else apply("neg", x)


@rule("stablehlo.sort")
def _sort(call: Call) -> list[array]:
    xs = call.operands
    axis = call.int("dimension", -1)
    axis += xs[0].ndim * (axis < 0)
    if xs[0].shape[axis] < 2 or not xs[0].size:
        return xs
    (region,) = call.regions
    comparator = _Comparator(region)
    keys = comparator.keys()
    if keys is None:
        return _by_comparisons(region, xs, axis)
    env = dict(call.env)
    env.update(zip(comparator.first, xs))
    env.update(zip(comparator.second, xs))
    region.reader.extend(region.block, env)
    order: array | None = None
    for key in reversed(keys):
        value = _sortable(env[key.value], key)
        value = value if value.shape == xs[0].shape else full_like(xs[0], 0)
        if order is None:
            order = emit(ops["argsort"], (value,), {"axis": axis})
        else:
            again = emit(ops["argsort"], (take_along_axis(value, order, axis),), {"axis": axis})
            order = take_along_axis(order, again, axis)
    assert order is not None
    return [take_along_axis(x, order, axis) for x in xs]


def _by_comparisons(region: Region, xs: list[array], axis: int) -> list[array]:
    """Any comparator: neighbours are exchanged where the second comes first, in as many rounds as there are elements
    (odd-even transposition, which is stable)."""
    n = xs[0].shape[axis]
    if n > 4096:
        raise Refused(f"has a comparator that is no order by keys; such sorts have at most 4096 elements, not {n}")
    for turn in range(n):
        first = turn % 2
        pairs = (n - first) // 2
        if not pairs:
            continue
        a = [_strided(x, axis, first, pairs) for x in xs]
        b = [_strided(x, axis, first + 1, pairs) for x in xs]
        mixed = [v for pair in zip(b, a) for v in pair]
        (swap,) = region.over(*mixed)
        xs = [_woven(x, axis, first, pairs, where(swap, q, p), where(swap, p, q)) for x, p, q in zip(xs, a, b)]
    return xs


def _strided(x: array, axis: int, start: int, count: int) -> array:
    starts, stops, strides = [0] * x.ndim, list(x.shape), [1] * x.ndim
    starts[axis], stops[axis], strides[axis] = start, start + 2 * count - 1, 2
    return emit(ops["slice"], (x,), {"start": tuple(starts), "stop": tuple(stops), "stride": tuple(strides)})


def _woven(x: array, axis: int, first: int, pairs: int, a: array, b: array) -> array:
    """x with its pairs from `first` on replaced."""
    shape = (*a.shape[: axis + 1], 1, *a.shape[axis + 1 :])
    stacked = joined([emit(ops["reshape"], (v,), {"shape": shape}) for v in (a, b)], axis + 1)
    flat = emit(ops["reshape"], (stacked,), {"shape": (*a.shape[:axis], 2 * pairs, *a.shape[axis + 1 :])})
    n = x.shape[axis]

    def part(start: int, stop: int) -> array:
        starts, stops = [0] * x.ndim, list(x.shape)
        starts[axis], stops[axis] = start, stop
        attrs = {"start": tuple(starts), "stop": tuple(stops), "stride": (1,) * x.ndim}
        return emit(ops["slice"], (x,), attrs)

    pieces = [flat]
    if first:
        pieces.insert(0, part(0, first))
    if first + 2 * pairs < n:
        pieces.append(part(first + 2 * pairs, n))
    return joined(pieces, axis)


@rule("chlo.top_k")
def _top_k(call: Call) -> list[array]:
    return top_k(call.x, call.int("k"))


def top_k(x: array, k: int) -> list[array]:
    """The k largest along the last axis, descending, and where they were; NaN counts as the largest."""
    key = apply("bitwise_invert", total_order(x) if x.dtype.is_float else x)
    order = emit(ops["argsort"], (key,), {"axis": x.ndim - 1})
    stop = (*x.shape[:-1], k)
    order = emit(ops["slice"], (order,), {"start": (0,) * x.ndim, "stop": stop, "stride": (1,) * x.ndim})
    return [take_along_axis(x, order, x.ndim - 1), convert(order, dtypes.int32)]
