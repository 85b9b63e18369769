"""Sum-taps: convolutions of each channel by itself whose windows are large and few become sums, one for each window.

Before, the gradient in a kernel of three taps with one channel a group, whose places are the kernel here::

    %0 = "smelt.conv_general"(%x, %ct) {feature_groups = 8, ...} : (tensor<1x34x16xf32>, tensor<8x32x2xf32>)
           -> tensor<1x3x8xf32>

After, for each of the three::

    %s = "smelt.slice"(%x') {start = array<i64: 0, 1, 0>, ...} -> tensor<2x32x8xf32>
    %m = "smelt.mul"(%s, %ct')
    %1 = "smelt.reduce_sum"(%m) {axes = array<i64: 0, 1>} -> tensor<8xf32>

The sums go over their elements together, channels next to each other, where a contraction goes through one window
after the other. It is for devices whose contractions do not do better by themselves, as those of GPUs do.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections import Counter
from dataclasses import dataclass
from typing import Any

from smelt.ir import dtypes, mlir
from smelt.ir.builder import Builder, OpView, Value, read_function
from smelt.ir.ops.convolution import ConvGeneral

from ..registry import Pass, register_pass
from ..rewrite import unplaced_functions


@register_pass("sum-taps")
@dataclass(frozen=True)
class SumTapsPass(Pass):
    """Make sums of convolutions that have few places, and one kernel for each channel.

    Attributes:
        most: places at most, of which each is a sum of its own.
    """

    most: int = 49

    def run(self, module: Any, statistics: Counter) -> None:
        for operation in unplaced_functions(module):
            for op in read_function(operation).ops:
                if isinstance(op.op, ConvGeneral) and self._suits(op):
                    found = _sums(Builder(mlir.ir.InsertionPoint(op.mlir), op.location), op)
                    op.results[0].mlir.replace_all_uses_with(found.mlir)
                    op.mlir.erase()
                    statistics["convolutions"] += 1

    def _suits(self, op: OpView) -> bool:
        (x, w), attrs, result = op.operands, op.attrs, op.results[0]
        groups, places = attrs["feature_groups"], math.prod(result.shape[1:-1])
        is_plain = all(n == 1 for n in attrs["input_dilation"]) and min(attrs["padding_low"], default=0) >= 0
        few = 0 < places <= self.most and places < math.prod(w.shape[1:-1])
        return few and is_plain and x.shape[0] == 1 < groups == w.shape[0] and w.shape[-1] > 0


def _sums(b: Builder, op: OpView) -> Value:
    """The result of a convolution as a sum for each of its places."""
    (x, w), attrs, result = op.operands, op.attrs, op.results[0]
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
