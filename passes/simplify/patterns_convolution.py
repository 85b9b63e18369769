"""Patterns on convolutions: no products with the zeros that stand between the elements of an input."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from functools import reduce

from smelt.ir.builder import Value
from smelt.ir.ops.convolution import ConvGeneral

from .patterns import PatternBuilder, Site, pattern

#: Multiplications from which on it pays to have a kernel for each phase, and channels of which each sums the products.
WORK, CHANNELS = 1 << 22, 8


@pattern("conv_general")
def conv_of_spread_input(b: PatternBuilder, at: Site) -> Value | None:
    """conv(x spread by e, w) → every e-th element of the result by a conv(x, every e-th tap of w) of its own.

    Where elements of the result meet elements of the input, and where zeros, depends on their place modulo e alone.
    """
    (x, w), attrs = at.operands, at.attrs
    apart = attrs["input_dilation"]
    plain = all(n == 1 for n in (*attrs["window_strides"], *attrs["kernel_dilation"]))
    rules = ConvGeneral()
    if not plain or all(e == 1 for e in apart) or w.shape[-1] < CHANNELS or not at.aval.size or not x.aval.size:
        return None
    if rules.work(x.aval, w.aval, **attrs) < WORK:
        return None
    extents = at.shape[1:-1]
    parts = {phase: _phase(b, at, phase) for phase in itertools.product(*map(range, apart))}
    found = _interleaved(b, parts, apart)
    none = (0,) * x.ndim
    return b.slice(found, start=none, stop=(x.shape[0], *extents, w.shape[0]), stride=(1,) * x.ndim)


def _phase(b: PatternBuilder, at: Site, phase: Sequence[int]) -> Value:
    """The elements of the result at phase + e·m along each axis; as many of each phase."""
    (x, w), attrs = at.operands, at.attrs
    first, low, high, sizes = [], [], [], []
    for r, e, extent, taps, before, size in zip(
        phase, attrs["input_dilation"], x.shape[1:-1], w.shape[1:-1], attrs["padding_low"], at.shape[1:-1]
    ):
        tap = (before - r) % e  # r + tap - before is a multiple of e: the place of an element
        count, kept = -(-size // e), -(-(taps - tap) // e)
        first.append(tap)
        sizes.append(count)
        low.append((before - r - tap) // e)
        high.append(count + kept - 1 - extent - low[-1])
    if any(tap >= taps for tap, taps in zip(first, w.shape[1:-1])):
        return b.full((x.shape[0], *sizes, w.shape[0]), 0, at.aval.dtype)
    steps = (1, *attrs["input_dilation"], 1)
    kernel = b.slice(w, start=(0, *first, 0), stop=w.shape, stride=steps)
    ones = (1,) * len(phase)
    (found,) = b.emit(
        at.op, (x, kernel),
        {**attrs, "padding_low": tuple(low), "padding_high": tuple(high), "input_dilation": ones},
    )  # fmt: skip
    return found


def _interleaved(b: PatternBuilder, parts: dict[tuple[int, ...], Value], apart: Sequence[int]) -> Value:
    """The phases in turn along each axis, the last one first."""
    for axis in reversed(range(1, len(apart) + 1)):
        e = apart[axis - 1]
        joined: dict[tuple[int, ...], Value] = {}
        for phase in itertools.product(*map(range, apart[: axis - 1])):
            places = [(*phase, r) for r in range(e)]
            rows = [parts[place] for place in places]
            shape = rows[0].shape
            rows = [b.reshape_to(x, (*shape[: axis + 1], 1, *shape[axis + 1 :])) for x in rows]
            row = reduce(lambda some, more: b.concatenate(some, more, axis=axis + 1), rows)
            joined[phase] = b.reshape_to(row, (*shape[:axis], shape[axis] * e, *shape[axis + 1 :]))
        parts = joined
    return parts[()]
