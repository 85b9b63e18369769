"""Ops of another package: typed, they are what both checkers accept; lines that say so are refused."""

from __future__ import annotations

import numpy as np

from smelt.ir import dtypes
from smelt.ir.aval import Aval
from smelt.ir.builder import Builder
from smelt.ir.dtypes import DType
from smelt.ir.index import Access, Coordinates
from smelt.ir.kinds import Contraction, Elementwise, Movement, Reduction, silent
from smelt.ir.op import Batched, Cotangents, Dims, Flags, Int, Ints, Operand, Tangents, Values, only, require
from smelt.ir.scalar import Scalar, ScalarBuilder


class Scaled(Elementwise, name="acme_scaled"):
    """x / (1 + |x|), times a number.

    ``%0 = "smelt.acme_scaled"(%x) {by = 2 : i64} : (tensor<4xf32>) -> tensor<4xf32>``
    """

    x: Operand
    by: Int = 1
    accepts = dtypes.FLOATS

    @silent
    def reference(self, x: np.ndarray, *, by: Int) -> np.ndarray:
        return np.asarray(by * x / (1 + np.abs(x)))

    def jvp(self, b: Builder, primals: Values, tangents: Tangents, results: Values, *, by: Int) -> Tangents:
        scale = b.abs(primals[0]) + 1
        tangents[0] * by  # refused
        return [only(tangents) * by / (scale * scale)]

    def lower(self, k: ScalarBuilder, x: Scalar, *, by: Int) -> Scalar:
        k.load(x)  # refused
        k.fma(x, x)  # refused
        return by * x / (k.math("absf", x) + 1)


class Largest(Reduction, name="acme_largest"):
    """The largest of the elements along some axes.

    ``%0 = "smelt.acme_largest"(%x) {axes = array<i64: 0>} : (tensor<4xf32>) -> tensor<f32>``
    """

    def reference(self, x: np.ndarray, *, axes: Ints) -> np.ndarray:
        return np.asarray(np.max(x, axes))

    def identity(self, dtype: DType) -> float:
        return -float("inf")

    def combine(self, k: ScalarBuilder, a: Scalar, b: Scalar) -> Scalar:
        return k.maximum(a, b)

    def result_dtype(self, operand: DType) -> str:  # refused
        return "f32"


class Turned(Movement, name="acme_turned"):
    """The elements of a line in the opposite order.

    ``%0 = "smelt.acme_turned"(%x) : (tensor<4xf32>) -> tensor<4xf32>``
    """

    x: Operand
    linearity = "jointly"

    def infer(self, x: Aval) -> Aval:
        require(x.ndim == 1, "x must be a line")
        return x

    def reference(self, x: np.ndarray) -> np.ndarray:
        return x[::-1]

    def transpose(self, b: Builder, cotangents: Cotangents, operands: Values, linear: Flags) -> Cotangents:
        return [b.acme_turned(only(cotangents))]

    def batch(self, b: Builder, operands: Values, dims: Dims) -> Batched:
        b.move_axis(operands[0], dims[0], 0)  # refused
        x = b.move_axis(operands[0], only(dims), 0)
        return [b.reverse(x, axes=(1,))], [0]

    def map_index(self, index: Coordinates, operand: Aval, result: Aval) -> Coordinates:
        return (operand.shape[0] - 1 - index[0],)


class Inner(Contraction, name="acme_inner"):
    """The product of two lines.

    ``%0 = "smelt.acme_inner"(%x, %y) : (tensor<4xf32>, tensor<4xf32>) -> tensor<f32>``
    """

    x: Operand
    y: Operand

    def infer(self, x: Aval, y: Aval) -> Aval:
        require(x.ndim == 1 and x.shape == y.shape, "x and y must be lines of one length")
        return x.with_shape(())

    def depth(self, x: Aval, y: Aval) -> tuple[int, ...]:
        return x.shape

    def operand_indices(self, place: Coordinates, depth: Coordinates, x: Aval, y: Aval) -> tuple[Access, ...]:
        return Access(depth), Access(depth)

    def matmul_form(self, x: Aval, y: Aval) -> int:  # refused
        return 1
