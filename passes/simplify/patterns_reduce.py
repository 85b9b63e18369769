"""Patterns on reductions: merging them, and moving them before what only repeats or moves elements."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any

from smelt.ir.builder import OpView, Value
from smelt.ir.dtypes import DType
from smelt.ir.kinds import Reduction
from smelt.ir.op import Op
from smelt.ir.op import registry as ops
from smelt.ir.ops.movement import reshape_groups

from .patterns import PatternBuilder, Site, adds_unit_axes, aligned, pattern, scalar_of


@pattern(kind="reduction")
def reduce_over_nothing(b: PatternBuilder, at: Site) -> Value | None:
    """reduce(x) over no axes → x; a sum of floats → x + 0."""
    alone = not at.attrs["axes"] and at.operands[0].aval == at.aval
    return _alone(b, at, at.operands[0]) if alone else None


@pattern(kind="reduction")
def reduce_over_unit_axes(b: PatternBuilder, at: Site) -> Value | None:
    """reduce(x) over axes of size one → reshape(x); a sum of floats over no others → reshape(x) + 0."""
    x, axes = at.operands[0], at.attrs["axes"]
    units = [a for a in axes if x.shape[a] == 1]
    if not units or x.dtype is not at.aval.dtype:
        return None
    x = b.reshape_to(x, [d for a, d in enumerate(x.shape) if a not in units])
    left = tuple(a - sum(u < a for u in units) for a in axes if a not in units)
    return b.emit(at.op, (x,), {**at.attrs, "axes": left})[0] if left else _alone(b, at, x)


def _alone(b: PatternBuilder, at: Site, x: Value) -> Value:
    assert isinstance(at.op, Reduction)
    return at.op.of_one(b, x)


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
    found, _ = _views_below(at.operands[0], "transpose")
    permutations = {made.attrs["permutation"] for made in found}
    if len(permutations) != 1 or at.operands[0].defined_by("transpose"):
        return None
    (permutation,) = permutations
    shape = found[0].operands[0].shape
    turned = b.transpose(_before(b, at.operands[0], "transpose", shape), permutation=permutation)
    return b.emit(at.op, (turned,), at.attrs)[0]


@pattern(kind="reduction")
def reduce_of_merged_axes(b: PatternBuilder, at: Site) -> Value | None:
    """reduce(f(reshape(x))) over an axis that a reshape made of several of x → reduce(f(x)) over these.

    Where x is a transpose or a broadcast, or made of one: places along merged axes are quotients, and no lines of
    memory.
    """
    x = at.operands[0]
    found, between = _views_below(x, "reshape")
    same = len({made.operands[0].shape for made in found}) == 1
    if not same or not any(_is_spread(made.operands[0]) for made in found) or _are_elements(found, between):
        return None
    shape, axes, merges = found[0].operands[0].shape, set[int](), False
    for before, after in reshape_groups(shape, x.shape):
        summed = [a for a in after if a in at.attrs["axes"]]
        if summed and any(x.shape[a] != 1 for a in after if a not in summed):
            return None
        axes.update(before if summed else ())
        # Axes of one element are no reason: `reduce_over_unit_axes` would bring the reshape back.
        merges |= bool(summed) and sum(shape[a] != 1 for a in before) > sum(x.shape[a] != 1 for a in after)
    if not merges:
        return None
    (reduced,) = b.emit(at.op, (_before(b, x, "reshape", shape),), {**at.attrs, "axes": tuple(sorted(axes))})
    return b.reshape_to(reduced, at.shape)


def _is_spread(x: Value) -> bool:
    """Whether x is no array in memory, but repeats or moves one, or is computed of such."""
    if x.owner is None or x.owner.op.kind not in ("elementwise", "movement"):
        return False
    sources = x.owner.operands if x.owner.op.kind == "elementwise" else [x]
    return any(v.defined_by("transpose") or (v.defined_by("broadcast") and scalar_of(v) is None) for v in sources)


def _are_elements(views: Sequence[OpView], between: Sequence[Value]) -> bool:
    """Whether elementwise ops read views besides those of `between`: they would not go along the same axes."""
    inside = [v.mlir.owner for v in between]
    readers = [use.owner for view in views for use in view.results[0].mlir.uses]
    return any(ops[reader.name.partition(".")[2]].kind == "elementwise" for reader in readers
               if reader.name.startswith("smelt.") and reader not in inside)  # fmt: skip


def _views_below(x: Value, name: str) -> tuple[list[OpView], list[Value]]:
    """The transposes or reshapes that x is made of by a few elementwise ops which nothing else reads, and what these
    ops make; none where it is made of other values, too, but for numbers."""
    found: list[OpView] = []
    between: list[Value] = []
    waiting = [x]
    while waiting:
        x = waiting.pop()
        if (made := x.defined_by(name)) is not None:
            found.append(made)
        elif scalar_of(x) is None:
            if x.owner is None or x.owner.op.kind != "elementwise" or not _is_read_once(x):
                return [], []
            between.append(x)
            waiting += x.owner.operands
        if len(between) > _BETWEEN:
            return [], []
    return found, between


def _is_read_once(x: Value) -> bool:
    return len(list(itertools.islice(x.mlir.uses, 2))) < 2


def _before(b: PatternBuilder, x: Value, name: str, shape: tuple[int, ...]) -> Value:
    """What x is made of before its operands, transposes or reshapes of arrays of a shape, are moved."""
    made = x.defined_by(name)
    if made is not None:
        return made.operands[0]
    value = scalar_of(x)
    if value is not None:
        return b.splat(value, x.aval.with_shape(shape))
    assert x.owner is not None
    return b.emit(x.owner.op, [_before(b, v, name, shape) for v in x.owner.operands], x.owner.attrs)[0]


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
    if at.op.repeated and count != 1:
        small = small * count if at.op.repeated == "multiple" else b.integer_power(small, exponent=count)
    # What is left of reduced repeated axes are ones; the others are repeated again.
    left = [a for a in range(len(shape)) if a not in inside]
    ones = tuple(d for a, d in zip(left, kept) if a not in axes)
    return b.broadcast_to(b.reshape_to(small, ones), at.shape)


def _may_repeat(op: Op, count: int, x: Value) -> bool:
    """Whether reducing `count` times the same value has an exact shorter form."""
    if count == 1 or op.idempotent:
        return True
    if op.repeated == "multiple":
        return _exact_multiple(count, scalar_of(x), x.dtype)
    return op.repeated == "power" and x.dtype.is_integer


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
