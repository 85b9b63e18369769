"""Convolutions of each channel by itself whose windows are large and few: one sum for each window.

Gradients of depthwise convolutions in their kernels are such: their taps are the places here.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Mapping
from typing import Any

from . import dtypes
from .aval import Aval
from .builder import Builder, Value


def few_windows(x: Aval, w: Aval, result: Aval, attrs: Mapping[str, Any]) -> int | None:
    """How many windows there are of a convolution that `by_windows` can do; None of others.

    That has one example and one output for each group, and elements of a window are neighbours of an input that is
    padded, not cut or spread. Each sum has more terms than there are sums.
    """
    groups, places = attrs["feature_groups"], math.prod(result.shape[1:-1])
    is_plain = all(n == 1 for n in attrs["input_dilation"]) and min(attrs["padding_low"], default=0) >= 0
    is_few = 0 < places < math.prod(w.shape[1:])
    is_apart = x.shape[0] == 1 < groups == w.shape[0] and w.shape[-1] > 0
    return places if is_plain and is_few and is_apart else None


def by_windows(b: Builder, x: Value, w: Value, result: Aval, attrs: Mapping[str, Any]) -> Value:
    """The result of a convolution as a sum for each of its places."""
    groups, last = attrs["feature_groups"], x.ndim
    spatial = tuple(range(1, x.ndim - 1))
    wide = dtypes.float32 if x.dtype.is_float and x.dtype.size == 2 else x.dtype
    # All but the group is summed: it comes last, as it did where these are what a gradient makes of an image.
    x = b.transpose(b.reshape_to(x, (*x.shape[:-1], groups, w.shape[-1])), permutation=(last, *spatial, last - 1, 0))
    x = b.convert_to(b.reshape_to(x, x.shape[:-1]), wide)
    w = b.convert_to(b.transpose(w, permutation=(last - 1, *spatial, 0)), wide)
    low, high = ((0, *(max(0, n) for n in attrs[f"padding_{side}"]), 0) for side in ("low", "high"))
    x = b.pad(x, b.full((), 0, wide), low=low, high=high, interior=(0,) * x.ndim)
    sums = []
    for place in itertools.product(*map(range, result.shape[1:-1])):
        start = (0, *(i * stride for i, stride in zip(place, attrs["window_strides"])), 0)
        apart = (1, *attrs["kernel_dilation"], 1)
        stop = tuple(at + (n - 1) * step + 1 for at, n, step in zip(start, w.shape, apart))
        seen = b.slice(x, start=start, stop=stop, stride=apart)
        sums.append(b.reshape_to(b.reduce_sum(seen * w, axes=tuple(range(x.ndim - 1))), (groups, 1)))
    found = functools.reduce(lambda some, more: b.concatenate(some, more, axis=1), sums)
    found = b.reshape_to(found, (groups, *result.shape[1:-1], 1))
    found = b.transpose(found, permutation=(last - 1, *spatial, 0))
    return b.convert_to(found, result.dtype)
