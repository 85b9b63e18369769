"""Patterns on reductions: merging them, and moving them before what only repeats or moves elements."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any

from smelt.ir.builder import Value
from smelt.ir.dtypes import DType
from smelt.ir.op import Op

from .patterns import PatternBuilder, Site, adds_unit_axes, aligned, pattern, scalar_of


@pattern(kind="reduction")
def reduce_over_nothing(b: PatternBuilder, at: Site) -> Value | None:
    """reduce(x) over no axes → x."""
    return at.operands[0] if not at.attrs["axes"] and at.operands[0].aval == at.aval else None


@pattern(kind="reduction")
def reduce_over_unit_axes(b: PatternBuilder, at: Site) -> Value | None:
    """reduce(x) over axes of size one → reshape(x)."""
    x, axes = at.operands[0], at.attrs["axes"]
    units = [a for a in axes if x.shape[a] == 1]
    if not units or x.dtype is not at.aval.dtype:
        return None
    x = b.reshape_to(x, [d for a, d in enumerate(x.shape) if a not in units])
    left = tuple(a - sum(u < a for u in units) for a in axes if a not in units)
    return b.emit(at.op, (x,), {**at.attrs, "axes": left})[0] if left else x


@pattern(kind="reduction")
def reduce_of_reduce(b: PatternBuilder, at: Site) -> Value | None:
    """reduce(reduce(x)) of the same kind → reduce(x) over the axes of both."""
    inner = at.operands[0].defined_by(at.op.name)
    if inner is None or inner.results[0].dtype is not inner.operands[0].dtype:
        return None
    first = inner.attrs["axes"]
    kept = [a for a in range(inner.operands[0].ndim) if a not in first]
    axes = tuple(sorted((*first, *(kept[a] for a in at.attrs["axes"]))))
    return b.emit(at.op, inner.operands, {**at.attrs, "axes": axes})[0]


@pattern(kind="reduction")
def reduce_of_transpose(b: PatternBuilder, at: Site) -> Value | None:
    """reduce(transpose(x)) → transpose(reduce(x)), which moves fewer elements or none."""
    inner = at.operands[0].defined_by("transpose")
    if inner is None:
        return None
    permutation, axes = inner.attrs["permutation"], at.attrs["axes"]
    source = tuple(sorted(permutation[a] for a in axes))
    (reduced,) = b.emit(at.op, inner.operands, {**at.attrs, "axes": source})
    return _transposed(b, reduced, [p for a, p in enumerate(permutation) if a not in axes])


@pattern(kind="arg_reduction")
def place_in_transpose(b: PatternBuilder, at: Site) -> Value | None:
    """argmax(transpose(x)) → transpose(argmax(x)): the places along an axis are the same by its other number."""
    inner = at.operands[0].defined_by("transpose")
    if inner is None:
        return None
    permutation, axis = inner.attrs["permutation"], at.attrs["axis"]
    (found,) = b.emit(at.op, inner.operands, {"axis": permutation[axis]})
    return _transposed(b, found, [p for a, p in enumerate(permutation) if a != axis])


def _transposed(b: PatternBuilder, x: Value, order: Sequence[int]) -> Value:
    """A value whose axes stand for some of an operand's, in the order of these."""
    ranks = sorted(order)
    return b.transpose(x, permutation=tuple(ranks.index(p) for p in order)) if order else x


#: Elementwise ops between transposes and a reduction, at most.
_BETWEEN = 8


@pattern(kind="reduction")
@pattern(kind="arg_reduction")
def reduce_of_transposed_operands(b: PatternBuilder, at: Site) -> Value | None:
    """reduce(f(transpose(x), transpose(y))) → reduce(transpose(f(x, y))), if nothing else reads what is between."""
    permutations: set[tuple[int, ...]] = set()
    between: list[Value] = []
    waiting = [at.operands[0]]
    while waiting:
        x = waiting.pop()
        if (made := x.defined_by("transpose")) is not None:
            permutations.add(made.attrs["permutation"])
        elif scalar_of(x) is None:
            if x.owner is None or x.owner.op.kind != "elementwise" or not _is_read_once(x):
                return None
            between.append(x)
            waiting += x.owner.operands
        if len(permutations) > 1 or len(between) > _BETWEEN:
            return None
    if not between or not permutations:
        return None
    (permutation,) = permutations
    turned = b.transpose(_before(b, at.operands[0], permutation), permutation=permutation)
    return b.emit(at.op, (turned,), at.attrs)[0]


def _is_read_once(x: Value) -> bool:
    return len(list(itertools.islice(x.mlir.uses, 2))) < 2


def _before(b: PatternBuilder, x: Value, permutation: tuple[int, ...]) -> Value:
    """What x is made of before its operands are transposed."""
    made = x.defined_by("transpose")
    if made is not None:
        return made.operands[0]
    value = scalar_of(x)
    if value is not None:
        shape = [0] * x.ndim
        for axis, source in enumerate(permutation):
            shape[source] = x.shape[axis]
        return b.splat(value, x.aval.with_shape(shape))
    assert x.owner is not None
    return b.emit(x.owner.op, [_before(b, v, permutation) for v in x.owner.operands], x.owner.attrs)[0]


@pattern(kind="reduction")
def reduce_of_unit_reshape(b: PatternBuilder, at: Site) -> Value | None:
    """reduce(reshape(x)) → reshape(reduce(x)), where the reshape only moves axes of size one."""
    inner = at.operands[0].defined_by("reshape")
    if inner is None:
        return None
    x, between = inner.operands[0], at.operands[0].shape
    if not adds_unit_axes(x.shape, between):
        return None
    places = iter([a for a, d in enumerate(x.shape) if d != 1])
    source = {a: next(places) for a, d in enumerate(between) if d != 1}
    axes = tuple(source[a] for a in at.attrs["axes"] if a in source)
    (reduced,) = b.emit(at.op, (x,), {**at.attrs, "axes": axes})
    return b.reshape_to(reduced, at.shape)


@pattern(kind="reduction")
def reduce_before_broadcast(b: PatternBuilder, at: Site) -> Value | None:
    """reduce(broadcast(x)) → broadcast(reduce(x)); n equal summands become a factor n."""
    spread = at.operands[0].defined_by("broadcast")
    if spread is None or at.operands[0].aval.size == 0 or at.op.num_results != 1:
        return None
    x, shape, axes = spread.operands[0], at.operands[0].shape, at.attrs["axes"]
    source = aligned(x.shape, len(shape))
    repeated = [a for a in range(len(shape)) if source[a] != shape[a]]
    count = math.prod(shape[a] for a in repeated if a in axes)
    if not repeated or not _may_repeat(at.op, count, x):
        return None
    inside = tuple(a for a in axes if a not in repeated)
    kept = [1 if a in repeated else d for a, d in enumerate(source) if a not in inside]
    x = b.reshape_to(x, source)
    (small,) = b.emit(at.op, (x,), {**at.attrs, "axes": inside})
    if at.op.name == "reduce_sum" and count != 1:
        small = small * count
    elif at.op.name == "reduce_prod" and count != 1:
        small = b.integer_power(small, exponent=count)
    # What is left of reduced repeated axes are ones; the others are repeated again.
    left = [a for a in range(len(shape)) if a not in inside]
    ones = tuple(d for a, d in zip(left, kept) if a not in axes)
    return b.broadcast_to(b.reshape_to(small, ones), at.shape)


def _may_repeat(op: Op, count: int, x: Value) -> bool:
    """Whether reducing `count` times the same value has an exact shorter form."""
    if count == 1 or op.idempotent:
        return True
    if op.name == "reduce_sum":
        return _exact_multiple(count, scalar_of(x), x.dtype)
    return op.name == "reduce_prod" and x.dtype.is_integer


def _exact_multiple(count: int, number: Any, dtype: DType) -> bool:
    """Whether x · count rounds like any order of adding x `count` times."""
    if dtype.is_integer:
        return True
    if dtype.is_complex:
        return False
    limit = 1 << dtype.digits
    if count & (count - 1) == 0 and count <= 1 << 15:
        return True
    if isinstance(number, complex) or number is None or number != number or abs(number) > limit:
        return False
    return number == int(number) and abs(number) * count <= limit and count <= limit


@pattern("argmax", "argmin")
def arg_of_one_element(b: PatternBuilder, at: Site) -> Value | None:
    """argmax(x) along an axis of size one → 0."""
    return b.splat(0, at.aval) if at.operands[0].shape[at.attrs["axis"]] == 1 else None
