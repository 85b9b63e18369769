"""Windows that move over an array: reductions of each, and the derivative of pooling."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

from smelt.ir import dtypes
from smelt.ir.op import registry as ops

from ...functions.logic import where
from ...lazy.arrays import array, broadcast_to_shape, emit
from ...lazy.operands import constant
from ..reading import Call, rule
from ..translating import Refused
from .elementwise import apply
from .reductions import Fold, folding
from .shapes import padded, reshaped


def _slice(x: array, axis: int, start: int, count: int, stride: int) -> array:
    """`count` elements along an axis, `stride` apart."""
    starts, stops, strides = [0] * x.ndim, list(x.shape), [1] * x.ndim
    starts[axis], strides[axis] = start, stride
    stops[axis] = start + (count - 1) * stride + 1 if count else start
    return emit(ops["slice"], (x,), {"start": tuple(starts), "stop": tuple(stops), "stride": tuple(strides)})


def _along(xs: list[array], axis: int, size: int, stride: int, dilation: int, fold: Fold) -> list[array]:
    """Windows of `size` elements, `dilation` apart, folded: of powers of two first, which then make up the others."""
    extent = xs[0].shape[axis]
    reach = (size - 1) * dilation + 1
    count = max(0, (extent - reach) // stride + 1)
    if size == 1:
        return [_slice(x, axis, 0, count, stride) for x in xs]
    if size <= 4:
        taps = [[_slice(x, axis, k * dilation, count, stride) for x in xs] for k in range(size)]
        total = taps[0]
        for tap in taps[1:]:
            total = fold(total, tap)
        return total
    parts: list[list[array]] = []
    width, at, power = size, 0, xs
    step = 1
    while width:
        if width & 1:
            parts.append([_slice(x, axis, at * dilation, count, stride) for x in power])
            at += step
        width >>= 1
        if width:
            longer = power[0].shape[axis] - step * dilation
            power = fold(
                [_slice(x, axis, 0, longer, 1) for x in power],
                [_slice(x, axis, step * dilation, longer, 1) for x in power],
            )
            step *= 2
    total = parts[0]
    for part in parts[1:]:
        total = fold(total, part)
    return total


@rule("stablehlo.reduce_window")
def _reduce_window(call: Call) -> list[array]:
    count = len(call.operands) // 2
    xs, starts = call.operands[:count], call.operands[count:]
    rank = xs[0].ndim
    ones = (1,) * rank
    sizes, strides = call.ints("window_dimensions"), call.ints("window_strides", ones)
    base, dilation = call.ints("base_dilations", ones), call.ints("window_dilations", ones)
    padding = call.ints("padding", (0,) * (2 * rank))
    (region,) = call.regions
    fold = folding(region)
    interior = tuple(b - 1 for b in base)
    guarded = region.single() is None and (any(padding) or any(interior))
    if guarded:
        xs, starts = [*xs, constant(True, dtypes.bool_, xs[0].shape)], [*starts, constant(False, dtypes.bool_)]
        fold = _of_those_inside(fold)
    found = [padded(x, start, padding[::2], padding[1::2], interior) for x, start in zip(xs, starts)]
    for axis in range(rank):
        if sizes[axis] > 1 or strides[axis] > 1:
            found = _along(found, axis, sizes[axis], strides[axis], dilation[axis], fold)
    if any(padding) or any(interior):
        return found[:count]  # the initial value is in it already, wherever a window has met padding; it is neutral
    shape = found[0].shape
    return fold([broadcast_to_shape(s, shape) for s in starts], found)


def _of_those_inside(fold: Fold) -> Fold:
    """A fold of elements with whether they are any, for initial values that only the start of a fold takes: JAX's
    complex logsumexp begins with an infinity, and two of these make NaN."""

    def guarded(first: Sequence[array], second: Sequence[array]) -> list[array]:
        *xs, some = first
        *ys, more = second
        both = apply("logical_and", some, more)
        chosen = [where(both, z, where(some, x, y)) for x, y, z in zip(xs, ys, fold(xs, ys))]
        return [*chosen, apply("logical_or", some, more)]

    return guarded


@rule("stablehlo.select_and_scatter")
def _select_and_scatter(call: Call) -> array:
    """Each window chooses one of its elements, where the source's element is added."""
    x, source, start = call.operands
    ones = (1,) * x.ndim
    sizes, strides = call.ints("window_dimensions", ones), call.ints("window_strides", ones)
    padding = call.ints("padding", (0,) * (2 * x.ndim))
    select, scatter = call.regions
    mode = {"stablehlo.add": "add", "stablehlo.multiply": "mul", "stablehlo.maximum": "max",
            "stablehlo.minimum": "min"}.get(scatter.single() or "")  # fmt: skip
    if mode is None:
        raise Refused("scatters by a function that is no sum, product, maximum or minimum")
    index = reshaped(emit(ops["iota"], (), {"shape": (x.size,), "axis": 0, "dtype": dtypes.int32}), x.shape)
    outside = constant(-1, dtypes.int32)
    none = (0,) * x.ndim
    values = padded(x, start, padding[::2], padding[1::2], none)
    places = padded(index, outside, padding[::2], padding[1::2], none)
    chosen = at = None
    for tap in itertools.product(*map(range, sizes)):
        value, place = _taps(values, tap, source.shape, strides), _taps(places, tap, source.shape, strides)
        if chosen is None or at is None:
            chosen, at = value, place
            continue
        (keeps,) = select.over(chosen, value)
        none_yet = apply("less", at, constant(0, dtypes.int32, at.shape))
        new_inside = apply("greater_equal", place, constant(0, dtypes.int32, at.shape))
        keeps = apply("logical_or", keeps, apply("logical_not", new_inside))
        keeps = apply("logical_and", keeps, apply("logical_not", apply("logical_and", none_yet, new_inside)))
        chosen, at = where(keeps, chosen, value), where(keeps, at, place)
    if at is None:
        return broadcast_to_shape(start, x.shape)
    flat = broadcast_to_shape(start, (x.size,))
    count = math.prod(source.shape)
    updates, rows = reshaped(source, (count, 1)), reshaped(at, (count,))
    return reshaped(emit(ops["scatter"], (flat, updates, rows), {"axes": (0,), "mode": mode}), x.shape)


def _taps(x: array, tap: Sequence[int], shape: Sequence[int], strides: Sequence[int]) -> array:
    """The element of each window at one place in it."""
    for axis in range(x.ndim):
        x = _slice(x, axis, tap[axis], shape[axis], strides[axis])
    return x
