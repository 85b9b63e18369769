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

With `vectors`, a product of a large matrix that lies in memory with a vector, along which its last axes are summed::

    %0 = "smelt.dot_general"(%x, %v) {lhs_contracting = array<i64: 1>, rhs_contracting = array<i64: 0>, ...}
           : (tensor<100000x16xf32>, tensor<16xf32>) -> tensor<100000xf32>

becomes a sum of products, which several rows may fill a vector of, or several threads::

    %b = "smelt.broadcast"(%v') {shape = array<i64: 100000, 16>}
    %m = "smelt.mul"(%x, %b)
    %0 = "smelt.reduce_sum"(%m) {axes = array<i64: 1>}
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from smelt.ir import mlir
from smelt.ir.builder import Builder, OpView, Value, read_function
from smelt.ir.convolution_windows import by_windows, few_windows
from smelt.ir.ops.contract import DotGeneral
from smelt.ir.ops.convolution import ConvGeneral
from smelt.ir.ops.movement import Reshape

from ..registry import Pass, register_pass
from ..rewrite import contains, unplaced_functions

#: Types whose products are rounded as they are in contractions.
_SUMMED = ("float32", "float64")


@register_pass("sum-taps")
@dataclass(frozen=True)
class SumTapsPass(Pass):
    """Make sums of convolutions that have few places, and one kernel for each channel.

    Attributes:
        most: places at most, of which each is a sum of its own.
        channels: from so many on convolutions of floats stay what they are; 0: none do.
        vectors: the elements of a matrix from which on its product with a vector is a sum; 0: none is.
    """

    most: int = 49
    channels: int = 0
    vectors: int = 0

    def run(self, module: Any, statistics: Counter) -> None:
        for operation in unplaced_functions(module):
            if not contains(operation, f"smelt.{ConvGeneral.name}") and not (self.vectors and _has_vectors(operation)):
                continue
            for op in read_function(operation).ops:
                b = Builder(mlir.ir.InsertionPoint(op.mlir), op.location)
                if isinstance(op.op, ConvGeneral) and self._suits(op):
                    x, w = op.operands
                    found, what = by_windows(b, x, w, op.results[0].aval, op.attrs), "convolutions"
                elif isinstance(op.op, DotGeneral) and (sides := self._with_vector(op)):
                    found, what = _sum_of_products(b, *sides), "products with a vector"
                else:
                    continue
                op.results[0].mlir.replace_all_uses_with(found.mlir)
                op.mlir.erase()
                statistics[what] += 1

    def _with_vector(self, op: OpView) -> tuple[Value, Value, Sequence[int]] | None:
        """The matrix, the vector and how many axes are summed, where a product is to be a sum."""
        assert isinstance(op.op, DotGeneral)
        summed = op.op.summed(**op.attrs) if self.vectors and op.operands[0].dtype.name in _SUMMED else None
        if not summed or not summed[0]:
            return None
        for one in range(2):
            matrix, vector = op.operands[one], op.operands[1 - one]
            first = matrix.ndim - vector.ndim
            pairs = zip(summed[one], summed[1 - one])
            along = vector.ndim == len(summed[one]) and all(a == first + b for a, b in pairs)
            if along and matrix.aval.size >= self.vectors and not _is_computed(matrix):
                return matrix, vector, tuple(range(first, matrix.ndim))
        return None

    def _suits(self, op: OpView) -> bool:
        x, w = op.operands
        if 0 < self.channels <= w.shape[0] and x.dtype.kind == "f":
            return False
        windows = few_windows(x.aval, w.aval, op.results[0].aval, op.attrs)
        return windows is not None and windows <= self.most


def _has_vectors(function: Any) -> bool:
    """Whether an operand of a product may be a vector, by the numbers of axes: reading a function takes longer."""
    product = f"smelt.{DotGeneral.name}"
    for block in function.regions[0].blocks:
        for item in block.operations:
            if item.operation.name == product:
                lhs, rhs, result = (mlir.ir.ShapedType(v.type).rank for v in (*item.operands, item.results[0]))
                if abs(lhs - rhs) == result:
                    return True
    return False


def _is_computed(x: Value) -> bool:
    """Whether a kernel may compute the elements where it reads them: contractions do so in an order of their own."""
    while x.owner is not None and isinstance(x.owner.op, Reshape):
        x = x.owner.operands[0]
    return x.owner is not None and x.owner.op.kind in ("elementwise", "movement")


def _sum_of_products(b: Builder, matrix: Value, vector: Value, axes: Sequence[int]) -> Value:
    shape = (*(1 for _ in range(matrix.ndim - vector.ndim)), *vector.shape)
    return b.reduce_sum(b.mul(matrix, b.broadcast_to(b.reshape_to(vector, shape), matrix.shape)), axes=tuple(axes))
