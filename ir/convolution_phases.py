"""Convolutions of inputs with zeros between their elements, without products with these.

Where elements of the result meet elements of the input, and where zeros, depends on their place modulo the distance of
the elements alone. So each of these *phases* of the result is a convolution of the input as it is, with every e-th tap.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from functools import reduce
from typing import TYPE_CHECKING, Any

from .aval import Aval

if TYPE_CHECKING:
    from .builder import Builder, Value
    from .op import Op


def has_phases(attrs: dict[str, Any]) -> bool:
    """Whether a `ConvGeneral` of these attributes has zeros in its input, and nothing else that moves places apart."""
    plain = all(n == 1 for n in (*attrs["window_strides"], *attrs["kernel_dilation"]))
    return plain and any(e > 1 for e in attrs["input_dilation"])


def by_phases(b: Builder, op: Op, x: Value, w: Value, result: Aval, attrs: dict[str, Any]) -> Value:
    """The result of a `ConvGeneral` that `has_phases`: they, in turn."""
    apart = attrs["input_dilation"]
    parts = {phase: _phase(b, op, x, w, result, attrs, phase) for phase in itertools.product(*map(range, apart))}
    none = (0,) * x.ndim
    stop = (x.shape[0], *result.shape[1:-1], w.shape[0])
    return b.slice(_interleaved(b, parts, apart), start=none, stop=stop, stride=(1,) * x.ndim)


def _phase(
    b: Builder, op: Op, x: Value, w: Value, result: Aval, attrs: dict[str, Any], phase: Sequence[int]
) -> Value:
    """The elements of the result at phase + e·m along each axis; as many of each phase."""
    first, low, high, sizes = [], [], [], []
    for r, e, extent, taps, before, size in zip(
        phase, attrs["input_dilation"], x.shape[1:-1], w.shape[1:-1], attrs["padding_low"], result.shape[1:-1]
    ):
        tap = (before - r) % e  # r + tap - before is a multiple of e: the place of an element
        count, kept = -(-size // e), -(-(taps - tap) // e)
        first.append(tap)
        sizes.append(count)
        low.append((before - r - tap) // e)
        high.append(count + kept - 1 - extent - low[-1])
    if any(tap >= taps for tap, taps in zip(first, w.shape[1:-1])):
        return b.full((x.shape[0], *sizes, w.shape[0]), 0, result.dtype)
    steps = (1, *attrs["input_dilation"], 1)
    kernel = b.slice(w, start=(0, *first, 0), stop=w.shape, stride=steps)
    ones = (1,) * len(phase)
    (found,) = b.emit(
        op, (x, kernel),
        {**attrs, "padding_low": tuple(low), "padding_high": tuple(high), "input_dilation": ones},
    )  # fmt: skip
    return found


def _interleaved(b: Builder, parts: dict[tuple[int, ...], Value], apart: Sequence[int]) -> Value:
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
