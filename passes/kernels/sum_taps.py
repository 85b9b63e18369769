"""Sum-taps: convolutions of each channel by itself whose windows are large and few become sums, one for each window.

Before, the gradient in a kernel of three taps with one channel a group, whose places are the kernel here::

    %0 = "smelt.conv_general"(%x, %ct) {feature_groups = 8, ...} : (tensor<1x34x16xf32>, tensor<8x32x2xf32>)
           -> tensor<1x3x8xf32>

After, for each of the three::

    %s = "smelt.slice"(%x') {start = array<i64: 0, 1, 0>, ...} -> tensor<2x32x8xf32>
    %m = "smelt.mul"(%s, %ct')
    %1 = "smelt.reduce_sum"(%m) {axes = array<i64: 0, 1>} -> tensor<8xf32>

The sums go over their elements together, channels next to each other, where a contraction goes through one window
after the other. It is for devices whose contractions do not do better by themselves, as those of GPUs do, and the
CPU's of floats in many channels.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

from smelt.ir import mlir
from smelt.ir.builder import Builder, OpView, read_function
from smelt.ir.convolution_windows import by_windows, few_windows
from smelt.ir.ops.convolution import ConvGeneral

from ..registry import Pass, register_pass
from ..rewrite import contains, unplaced_functions


@register_pass("sum-taps")
@dataclass(frozen=True)
class SumTapsPass(Pass):
    """Make sums of convolutions that have few places, and one kernel for each channel.

    Attributes:
        most: places at most, of which each is a sum of its own.
        channels: from so many on convolutions of floats stay what they are; 0: none do.
    """

    most: int = 49
    channels: int = 0

    def run(self, module: Any, statistics: Counter) -> None:
        for operation in unplaced_functions(module):
            if not contains(operation, "smelt.conv_general"):
                continue
            for op in read_function(operation).ops:
                if isinstance(op.op, ConvGeneral) and self._suits(op):
                    b = Builder(mlir.ir.InsertionPoint(op.mlir), op.location)
                    x, w = op.operands
                    found = by_windows(b, x, w, op.results[0].aval, op.attrs)
                    op.results[0].mlir.replace_all_uses_with(found.mlir)
                    op.mlir.erase()
                    statistics["convolutions"] += 1

    def _suits(self, op: OpView) -> bool:
        x, w = op.operands
        if 0 < self.channels <= w.shape[0] and x.dtype.kind == "f":
            return False
        windows = few_windows(x.aval, w.aval, op.results[0].aval, op.attrs)
        return windows is not None and windows <= self.most
