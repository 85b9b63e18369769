"""Patterns on ops that move elements: reshapes, transposes, broadcasts, slices, padding."""

from __future__ import annotations

from collections.abc import Sequence

from smelt.ir.builder import OpView, Value

from ..rewrites import Attr, Rules, Term, canonical, computed, condition, ops
from .patterns import (
    PatternBuilder,
    Site,
    adds_unit_axes,
    aligned,
    pattern,
    same_number,
    scalar_of,
)


def _stretched(view: OpView) -> tuple[tuple[int, ...], tuple[bool, ...]]:
    """Of a broadcast: its operand's shape with leading ones, and which axes it repeats."""
    shape = view.results[0].shape
    source = aligned(view.operands[0].shape, len(shape))
    return source, tuple(s != d for s, d in zip(source, shape))


# Movement of one number repeated


@pattern("reshape", "transpose", "slice", "reverse")
def movement_of_one_number(b: PatternBuilder, at: Site) -> Value | None:
    """reshape(broadcast(scalar)) → broadcast(scalar), and likewise for transposes, slices, reverses."""
    x = at.operands[0]
    if x.ndim == 0:
        return b.broadcast_to(x, at.shape)
    spread = x.defined_by("broadcast")
    if spread is None or spread.operands[0].ndim:
        return None
    return b.broadcast_to(spread.operands[0], at.shape)


# Reshape


@canonical.rewrite
def reshape_to_same(x: Term) -> Rules:
    """reshape(x) to the shape of x → x."""
    return ops.reshape(x) >> x


@canonical.rewrite
def reshape_of_reshape(x: Term, s: Attr) -> Rules:
    """reshape(reshape(x)) → reshape(x)."""
    return ops.reshape(ops.reshape(x), shape=s) >> ops.reshape(x, shape=s)


@pattern("reshape")
def reshape_before_broadcast(b: PatternBuilder, at: Site) -> Value | None:
    """reshape(broadcast(x)) → broadcast(reshape(x)), where the reshape only moves axes of size one."""
    spread = at.operands[0].defined_by("broadcast")
    if spread is None or not adds_unit_axes(at.operands[0].shape, at.shape):
        return None
    source, _ = _stretched(spread)
    kept = iter([s for s, d in zip(source, at.operands[0].shape) if d != 1])
    before = tuple(1 if d == 1 else next(kept) for d in at.shape)
    return b.broadcast_to(b.reshape_to(spread.operands[0], before), at.shape)


# Transpose


@condition
def in_order(p: tuple[int, ...]) -> bool:
    return p == tuple(range(len(p)))


@computed
def composed(p: tuple[int, ...], q: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(p[axis] for axis in q)


@canonical.rewrite
def transpose_by_identity(x: Term, p: Attr) -> Rules:
    """transpose(x) with the axes in order → x."""
    return (ops.transpose(x, permutation=p) >> x).when(in_order(p))


@canonical.rewrite
def transpose_of_transpose(x: Term, p: Attr, q: Attr) -> Rules:
    """transpose(transpose(x, p), q) → transpose(x, p∘q)."""
    twice = ops.transpose(ops.transpose(x, permutation=p), permutation=q)
    return twice >> ops.transpose(x, permutation=composed(p, q))


@pattern("transpose")
def transpose_of_unit_axes(b: PatternBuilder, at: Site) -> Value | None:
    """transpose(x) that moves only axes of size one → reshape(x)."""
    x = at.operands[0]
    moved = [p for p in at.attrs["permutation"] if x.shape[p] != 1]
    return b.reshape_to(x, at.shape) if moved == sorted(moved) else None


@pattern("transpose")
def transpose_before_broadcast(b: PatternBuilder, at: Site) -> Value | None:
    """transpose(broadcast(x)) → broadcast(transpose(x))."""
    spread = at.operands[0].defined_by("broadcast")
    if spread is None:
        return None
    source, stretched = _stretched(spread)
    if not any(stretched):
        return None
    x = b.reshape_to(spread.operands[0], source)
    return b.broadcast_to(b.transpose(x, permutation=at.attrs["permutation"]), at.shape)


# Broadcast


@canonical.rewrite
def broadcast_to_same(x: Term) -> Rules:
    """broadcast(x) to the shape of x → x."""
    return ops.broadcast(x) >> x


@canonical.rewrite
def broadcast_of_broadcast(x: Term, s: Attr) -> Rules:
    """broadcast(broadcast(x)) → broadcast(x)."""
    return ops.broadcast(ops.broadcast(x), shape=s) >> ops.broadcast(x, shape=s)


@pattern("broadcast")
def broadcast_of_unit_axes(b: PatternBuilder, at: Site) -> Value | None:
    """broadcast(reshape(x)) → broadcast(x), where the reshape only adds leading axes of size one."""
    inner = at.operands[0].defined_by("reshape")
    if inner is None:
        return None
    x, between = inner.operands[0], at.operands[0].shape
    return b.broadcast_to(x, at.shape) if _only_leads(x.shape, between) else None


@pattern("broadcast")
def broadcast_that_repeats_nothing(b: PatternBuilder, at: Site) -> Value | None:
    """broadcast(x) that only adds leading axes of size one → reshape(x)."""
    x = at.operands[0]
    return b.reshape_to(x, at.shape) if x.ndim and _only_leads(x.shape, at.shape) else None


def _only_leads(before: Sequence[int], after: Sequence[int]) -> bool:
    return len(after) >= len(before) and tuple(after) == aligned(before, len(after))


# Slice


@canonical.rewrite
def slice_of_everything(x: Term) -> Rules:
    """slice(x) of all elements → x."""
    return ops.slice(x) >> x


@pattern("slice")
def slice_of_slice(b: PatternBuilder, at: Site) -> Value | None:
    """slice(slice(x)) → slice(x)."""
    inner = at.operands[0].defined_by("slice")
    if inner is None:
        return None
    start, stop, stride = [], [], []
    for i, count in enumerate(at.shape):
        first, step = inner.attrs["start"][i], inner.attrs["stride"][i]
        begin, both = first + at.attrs["start"][i] * step, step * at.attrs["stride"][i]
        end = begin + (count - 1) * both + 1 if count else begin
        if begin > inner.operands[0].shape[i]:  # an empty slice past the end
            begin = end = 0
        start.append(begin)
        stop.append(end)
        stride.append(both)
    attrs = {"start": tuple(start), "stop": tuple(stop), "stride": tuple(stride)}
    return b.emit(at.op, inner.operands, attrs)[0]


@pattern("slice")
def slice_before_broadcast(b: PatternBuilder, at: Site) -> Value | None:
    """slice(broadcast(x)) → broadcast(slice(x))."""
    spread = at.operands[0].defined_by("broadcast")
    if spread is None:
        return None
    source, stretched = _stretched(spread)
    if not any(stretched) or 0 in at.shape:
        return None
    attrs = {}
    for name, whole in (("start", (0,) * len(source)), ("stop", source), ("stride", (1,) * len(source))):
        attrs[name] = tuple(w if s else v for w, s, v in zip(whole, stretched, at.attrs[name]))
    x = b.reshape_to(spread.operands[0], source)
    return b.broadcast_to(b.emit(at.op, (x,), attrs)[0], at.shape)


@pattern("slice")
def slice_of_concatenate(b: PatternBuilder, at: Site) -> Value | None:
    """slice(concatenate(x, y)) that lies in one of the two → slice of that one."""
    joined = at.operands[0].defined_by("concatenate")
    if joined is None or 0 in at.shape:
        return None
    axis, (x, y) = joined.attrs["axis"], joined.operands
    seam, start, stop = x.shape[axis], list(at.attrs["start"]), list(at.attrs["stop"])
    if stop[axis] <= seam:
        source = x
    elif start[axis] >= seam:
        source = y
        start[axis] -= seam
        stop[axis] -= seam
    else:
        return None
    attrs = {"start": tuple(start), "stop": tuple(stop), "stride": at.attrs["stride"]}
    return b.emit(at.op, (source,), attrs)[0]


@pattern("slice")
def slice_of_pad(b: PatternBuilder, at: Site) -> Value | None:
    """slice(pad(x)) that sees no padding → slice(x)."""
    padded = at.operands[0].defined_by("pad")
    if padded is None or any(padded.attrs["interior"]) or 0 in at.shape:
        return None
    x, low = padded.operands[0], padded.attrs["low"]
    start = tuple(a - lo for a, lo in zip(at.attrs["start"], low))
    stop = tuple(a + (n - 1) * s + 1 for a, n, s in zip(start, at.shape, at.attrs["stride"]))
    if any(a < 0 for a in start) or any(z > d for z, d in zip(stop, x.shape)):
        return None
    return b.emit(at.op, (x,), {"start": start, "stop": stop, "stride": at.attrs["stride"]})[0]


# Reverse


@pattern("reverse")
def reverse_of_short_axes(b: PatternBuilder, at: Site) -> Value | None:
    """reverse(x) along axes of at most one element → x."""
    x, axes = at.operands[0], at.attrs["axes"]
    long = tuple(a for a in axes if x.shape[a] > 1)
    if not long:
        return x
    return b.emit(at.op, (x,), {"axes": long})[0] if len(long) < len(axes) else None


@computed
def in_one(a: tuple[int, ...], b: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(sorted({*a} ^ {*b}))


@canonical.rewrite
def reverse_of_reverse(x: Term, a: Attr, b: Attr) -> Rules:
    """reverse(reverse(x, a), b) → reverse(x, axes in one of a and b)."""
    return ops.reverse(ops.reverse(x, axes=a), axes=b) >> ops.reverse(x, axes=in_one(a, b))


@pattern("reverse")
def reverse_of_broadcast(b: PatternBuilder, at: Site) -> Value | None:
    """reverse(broadcast(x)) along repeated axes → broadcast(x)."""
    spread = at.operands[0].defined_by("broadcast")
    if spread is None:
        return None
    _, stretched = _stretched(spread)
    axes = tuple(a for a in at.attrs["axes"] if not stretched[a])
    return b.emit(at.op, at.operands, {"axes": axes})[0] if len(axes) < len(at.attrs["axes"]) else None


# Pad


#: Padding that changes no type: of none, and between the elements of axes that have one.
_NO_PADDING = [
    {"x": shape, "c": (), "low": (0,) * len(shape), "high": (0,) * len(shape), "interior": interior}
    for shape, interior in (((), ()), ((5,), (0,)), ((2, 3), (0, 0)), ((0, 3), (0, 0)), ((1, 4), (2, 0)))
]


@canonical.rewrite(examples=_NO_PADDING)
def pad_by_nothing(x: Term, c: Term) -> Rules:
    """pad(x) by no elements → x."""
    return ops.pad(x, c) >> x


@pattern("pad")
def pad_of_its_value(b: PatternBuilder, at: Site) -> Value | None:
    """pad(broadcast(c), c) → broadcast(c), and padding of what is empty → broadcast(c)."""
    x, value = at.operands
    if x.aval.size == 0:
        return b.broadcast_to(value, at.shape)
    spread = x.defined_by("broadcast")
    filler = spread.operands[0] if spread else x
    return b.broadcast_to(value, at.shape) if filler.ndim == 0 and same_number(filler, value) else None


@pattern("pad")
def pad_of_pad(b: PatternBuilder, at: Site) -> Value | None:
    """pad(pad(x, c), c) → pad(x, c), both around the elements."""
    inner = at.operands[0].defined_by("pad")
    if inner is None or not same_number(inner.operands[1], at.operands[1]):
        return None
    if any(inner.attrs["interior"]) or any(at.attrs["interior"]):
        return None
    attrs = {"interior": at.attrs["interior"]}
    for side in ("low", "high"):
        attrs[side] = tuple(p + q for p, q in zip(inner.attrs[side], at.attrs[side]))
    return b.emit(at.op, (inner.operands[0], at.operands[1]), attrs)[0]


# Concatenate


@pattern("concatenate")
def concatenate_with_empty(b: PatternBuilder, at: Site) -> Value | None:
    """concatenate(x, empty) → x, and concatenate(empty, x) → x."""
    x, y = at.operands
    if x.shape[at.attrs["axis"]] == 0:
        return y
    return x if y.shape[at.attrs["axis"]] == 0 else None


@pattern("concatenate")
def concatenate_equal_numbers(b: PatternBuilder, at: Site) -> Value | None:
    """concatenate(broadcast(c), broadcast(c)) → broadcast(c)."""
    x, y = at.operands
    c = scalar_of(x)
    return b.splat(c, at.aval) if c is not None and same_number(x, y) else None


@pattern("concatenate")
def concatenate_adjacent_slices(b: PatternBuilder, at: Site) -> Value | None:
    """concatenate(x[a:b], x[b:c]) → x[a:c]."""
    left, right = (x.defined_by("slice") for x in at.operands)
    if left is None or right is None or left.operands[0] is not right.operands[0]:
        return None
    axis, p, q = at.attrs["axis"], left.attrs, right.attrs
    if p["stride"] != q["stride"] or 0 in at.operands[0].shape or 0 in at.operands[1].shape:
        return None
    for i, count in enumerate(at.operands[0].shape):
        after = p["start"][i] + (count * p["stride"][i] if i == axis else 0)
        if q["start"][i] != after:
            return None
    stop = tuple(q["stop"][i] if i == axis else p["stop"][i] for i in range(len(p["stop"])))
    return b.emit(left.op, left.operands, {"start": p["start"], "stop": stop, "stride": p["stride"]})[0]
