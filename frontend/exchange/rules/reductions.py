"""Reductions by regions: those of one op are smelt's, arg-reductions and others fold halves."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from smelt.ir import dtypes
from smelt.ir.op import registry as ops

from ...lazy.arrays import array, broadcast_to_shape, emit
from ..reading import Call, Region, rule
from .shapes import joined, permuted, reshaped

#: Reductions whose region applies one op, for numbers and for truth values.
_NUMBERS = {
    "stablehlo.add": "reduce_sum", "stablehlo.multiply": "reduce_prod", "stablehlo.maximum": "reduce_max",
    "stablehlo.minimum": "reduce_min",
}  # fmt: skip
_TRUTH = {
    "stablehlo.or": "reduce_any", "stablehlo.and": "reduce_all", "stablehlo.add": "reduce_any",
    "stablehlo.maximum": "reduce_any", "stablehlo.multiply": "reduce_all", "stablehlo.minimum": "reduce_all",
}  # fmt: skip
#: The op of two elements that a region of one op applies.
_COMBINE = {
    "stablehlo.add": "add", "stablehlo.multiply": "mul", "stablehlo.maximum": "maximum",
    "stablehlo.minimum": "minimum",
}  # fmt: skip

Fold = Callable[[Sequence[array], Sequence[array]], list[array]]


def folding(region: Region) -> Fold:
    """The region of a reduction, applied element by element to two lists of arrays of one shape."""
    return lambda some, more: region.over(*some, *more)


@rule("stablehlo.reduce")
def _reduce(call: Call) -> list[array]:
    count = len(call.operands) // 2
    xs, starts = call.operands[:count], call.operands[count:]
    axes = tuple(sorted(call.ints("dimensions")))
    (region,) = call.regions
    single = region.single()
    if count == 1 and single is not None:
        known = (_TRUTH if xs[0].dtype is dtypes.bool_ else _NUMBERS).get(single)
        if known is not None:
            (x,), (start,) = xs, starts
            if not axes:
                return region.over(broadcast_to_shape(start, x.shape), x)
            if all(x.shape[a] for a in axes) or known not in ("reduce_max", "reduce_min"):
                found = emit(ops[known], (x,), {"axes": axes})
                if _is_identity(start, known):
                    return [found]
                return region.over(broadcast_to_shape(start, found.shape), found)
    return fold_axes(xs, starts, axes, folding(region))


def _is_identity(start: array, reduction: str) -> bool:
    """Whether the initial value is known to change nothing."""
    node, _ = start._ref
    while node.op.name in ("broadcast", "reshape", "convert") and node.inputs:
        node = node.inputs[0][0]
    if node.op.name != "constant":
        return False
    value, dtype = node.attrs["value"], start.dtype
    if dtype.is_integer and reduction in ("reduce_max", "reduce_min"):
        top = (1 << (dtype.bits - (dtype.kind == "i"))) - 1
        bottom = -(top + 1) if dtype.kind == "i" else 0
        return bool(value == (bottom if reduction == "reduce_max" else top))
    identity = {
        "reduce_sum": 0, "reduce_prod": 1, "reduce_max": float("-inf"), "reduce_min": float("inf"),
        "reduce_any": False, "reduce_all": True,
    }  # fmt: skip
    return bool(value == identity[reduction])


def fold_axes(xs: Sequence[array], starts: Sequence[array], axes: Sequence[int], fold: Fold) -> list[array]:
    """Any reduction that is associative: the axes as one in front, whose halves meet until one element is left."""
    rest = [a for a in range(xs[0].ndim) if a not in axes]
    kept = tuple(xs[0].shape[a] for a in rest)
    count = math.prod(xs[0].shape[a] for a in axes)
    first = [broadcast_to_shape(start, kept) for start in starts]
    if not count:
        return first
    return fold(first, fold_first([reshaped(permuted(x, (*axes, *rest)), (count, *kept)) for x in xs], fold))


def fold_first(xs: list[array], fold: Fold) -> list[array]:
    """The fold of all elements along axis 0, of which there is at least one; neighbours meet, so order is kept."""
    while xs[0].shape[0] > 1:
        n = xs[0].shape[0]
        even = [_every(x, 0, n - n % 2) for x in xs]
        odd = [_every(x, 1, n - n % 2) for x in xs]
        met = fold(even, odd)
        xs = [joined([m, _range(x, n - 1, n)], 0) if n % 2 else m for m, x in zip(met, xs)]
    return [reshaped(x, x.shape[1:]) for x in xs]


def _every(x: array, first: int, stop: int) -> array:
    """Every second element along axis 0."""
    none = (0,) * (x.ndim - 1)
    attrs = {"start": (first, *none), "stop": (stop, *x.shape[1:]), "stride": (2, *(1,) * (x.ndim - 1))}
    return emit(ops["slice"], (x,), attrs)


def _range(x: array, first: int, stop: int) -> array:
    none = (0,) * (x.ndim - 1)
    attrs = {"start": (first, *none), "stop": (stop, *x.shape[1:]), "stride": (1,) * x.ndim}
    return emit(ops["slice"], (x,), attrs)


def combining(region: Region) -> str | None:
    """The op of the dialect that a region of one op applies to two numbers."""
    return _COMBINE.get(region.single() or "")
