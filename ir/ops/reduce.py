"""Reductions over any set of axes."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from .. import dtypes
from ..aval import Aval
from ..dtypes import DType
from ..errors import ShapeError
from ..kinds import Fusible, Reduction, restore_axes, silent
from ..op import (
    Batched,
    Cotangents,
    Dims,
    Flags,
    Int,
    Ints,
    NotDifferentiable,
    Operand,
    Tangents,
    Values,
    only,
    require,
    require_axes,
    require_dtype,
)
from ..scalar import Scalar, ScalarBuilder

if TYPE_CHECKING:
    from ..builder import Builder, Value


def _wide(x: np.ndarray) -> np.ndarray:
    """Half precision is accumulated in float32, as kernels do."""
    return x.astype(np.float32) if dtypes.of(x.dtype).is_float and x.dtype.itemsize == 2 else x


class ReduceSum(Reduction, name="reduce_sum"):
    """Sum over axes. Half precision accumulates in float32.

    ``%0 = "smelt.reduce_sum"(%x) {axes = array<i64: 1>} : (tensor<4x8xf32>) -> tensor<4xf32>``
    """

    linearity = "jointly"

    @silent
    def reference(self, x: np.ndarray, *, axes: Ints) -> np.ndarray:
        return np.sum(_wide(x), axis=axes, dtype=_wide(x).dtype).astype(x.dtype)

    def transpose(
        self, b: Builder, cotangents: Cotangents, operands: Values, linear: Flags, *, axes: Ints
    ) -> Cotangents:
        return [restore_axes(b, only(cotangents), operands[0].shape, axes)]

    def identity(self, dtype: DType) -> float:
        return 0

    def combine(self, k: ScalarBuilder, x: Scalar, y: Scalar) -> Scalar:
        return k.add_reassociating(x, y)


class ReduceProd(Reduction, name="reduce_prod"):
    """Product over axes.

    ``%0 = "smelt.reduce_prod"(%x) {axes = array<i64: 1>} : (tensor<4x8xf32>) -> tensor<4xf32>``
    """

    @silent
    def reference(self, x: np.ndarray, *, axes: Ints) -> np.ndarray:
        return np.prod(_wide(x), axis=axes, dtype=_wide(x).dtype).astype(x.dtype)

    def jvp(self, b: Builder, primals: Values, tangents: Tangents, results: Values, *, axes: Ints) -> Tangents:
        """Σ tᵢ · Π_{j≠i} xⱼ, the products without x_i by exclusive scans from both sides: exact at zeros."""
        (x,), t = primals, only(tangents)
        kept = [a for a in range(x.ndim) if a not in axes]
        order = (*kept, *axes)
        shape = (*(x.shape[a] for a in kept), math.prod(x.shape[a] for a in axes))
        x = b.reshape_to(b.transpose(x, permutation=order), shape)
        t = b.reshape_to(b.transpose(t, permutation=order), shape)
        last = len(shape) - 1
        if shape[last] == 0:
            return [None]
        ones = b.full((*shape[:-1], 1), 1, x.dtype)

        def without_last(y: Value) -> Value:
            stop = (*y.shape[:-1], y.shape[-1] - 1)
            return b.slice(y, start=(0,) * y.ndim, stop=stop, stride=(1,) * y.ndim)

        before = without_last(b.concatenate(ones, b.cumprod(x, axis=last), axis=last))
        flipped = b.reverse(x, axes=(last,))
        after = b.reverse(
            without_last(b.concatenate(ones, b.cumprod(flipped, axis=last), axis=last)), axes=(last,)
        )
        return [b.reduce_sum(t * (before * after), axes=(last,))]

    def identity(self, dtype: DType) -> float:
        return 1

    def combine(self, k: ScalarBuilder, x: Scalar, y: Scalar) -> Scalar:
        return k.mul_reassociating(x, y)


class _Extremum(Reduction):
    """Maximum or minimum: NaN if there is one; ties share the derivative equally."""

    accepts = (dtypes.bool_, *dtypes.REAL)
    idempotent = True

    def infer(self, x: Aval, *, axes: Ints) -> Aval:
        result = super().infer(x, axes=axes)
        if any(x.shape[a] == 0 for a in axes):
            raise ShapeError(f"an empty axis has no extremum; shape {x.shape}, axes {axes}")
        return result

    def jvp(self, b: Builder, primals: Values, tangents: Tangents, results: Values, *, axes: Ints) -> Tangents:
        (x,), t, (y,) = primals, only(tangents), results
        chosen = b.convert_to(b.equal(x, restore_axes(b, y, x.shape, axes)), x.dtype)
        count = b.reduce_sum(chosen, axes=axes)
        return [b.reduce_sum(t * chosen, axes=axes) / count]


class ReduceMax(_Extremum, name="reduce_max"):
    """Maximum over axes. Ties share the derivative equally.

    ``%0 = "smelt.reduce_max"(%x) {axes = array<i64: 1>} : (tensor<4x8xf32>) -> tensor<4xf32>``
    """

    extremum = "max"

    @silent
    def reference(self, x: np.ndarray, *, axes: Ints) -> np.ndarray:
        return np.max(x, axis=axes)

    def identity(self, dtype: DType) -> float:
        return lowest(dtype)

    def combine(self, k: ScalarBuilder, x: Scalar, y: Scalar) -> Scalar:
        return x | y if x.dtype.kind == "b" else k.maximum(x, y)


class ReduceMin(_Extremum, name="reduce_min"):
    """Minimum over axes. Ties share the derivative equally.

    ``%0 = "smelt.reduce_min"(%x) {axes = array<i64: 1>} : (tensor<4x8xf32>) -> tensor<4xf32>``
    """

    extremum = "min"

    @silent
    def reference(self, x: np.ndarray, *, axes: Ints) -> np.ndarray:
        return np.min(x, axis=axes)

    def identity(self, dtype: DType) -> float:
        return highest(dtype)

    def combine(self, k: ScalarBuilder, x: Scalar, y: Scalar) -> Scalar:
        return x & y if x.dtype.kind == "b" else k.minimum(x, y)


def lowest(dtype: DType) -> float | int | bool:
    """The value below all others: -inf, the least integer, or False."""
    if dtype.is_float:
        return -math.inf
    return False if dtype is dtypes.bool_ else int(np.iinfo(dtype.numpy).min)


def highest(dtype: DType) -> float | int | bool:
    """The value above all others: inf, the largest integer, or True."""
    if dtype.is_float:
        return math.inf
    return True if dtype is dtypes.bool_ else int(np.iinfo(dtype.numpy).max)


class ReduceAll(Reduction, name="reduce_all"):
    """Whether all elements are true.

    ``%0 = "smelt.reduce_all"(%x) {axes = array<i64: 1>} : (tensor<4x8xi1>) -> tensor<4xi1>``
    """

    accepts = (dtypes.bool_,)
    idempotent = True
    not_differentiable = NotDifferentiable("the result is a truth value")

    def reference(self, x: np.ndarray, *, axes: Ints) -> np.ndarray:
        return np.all(x, axis=axes)

    def identity(self, dtype: DType) -> float:
        return True

    def combine(self, k: ScalarBuilder, x: Scalar, y: Scalar) -> Scalar:
        return x & y


class ReduceAny(Reduction, name="reduce_any"):
    """Whether any element is true.

    ``%0 = "smelt.reduce_any"(%x) {axes = array<i64: 1>} : (tensor<4x8xi1>) -> tensor<4xi1>``
    """

    accepts = (dtypes.bool_,)
    idempotent = True
    not_differentiable = NotDifferentiable("the result is a truth value")

    def reference(self, x: np.ndarray, *, axes: Ints) -> np.ndarray:
        return np.any(x, axis=axes)

    def identity(self, dtype: DType) -> float:
        return False

    def combine(self, k: ScalarBuilder, x: Scalar, y: Scalar) -> Scalar:
        return x | y


class _ArgReduction(Fusible):
    """Index of an extremum along one axis, as uint32: the first of several; a NaN wins."""

    kind = "arg_reduction"
    x: Operand
    axis: Int
    accepts = (dtypes.bool_, *dtypes.REAL)
    not_differentiable = NotDifferentiable("the result is an index")
    gives_positions = True
    flops = 4.0

    def infer(self, x: Aval, *, axis: Int) -> Aval:
        require_dtype(x, self.accepts)
        require_axes((axis,), x.ndim, "axis")
        require(x.shape[axis] > 0, f"an empty axis has no extremum; axis {axis}")
        return Aval((*x.shape[:axis], *x.shape[axis + 1 :]), dtypes.uint32)

    def batch(self, b: Builder, operands: Values, dims: Dims, *, axis: Int) -> Batched:
        x = b.move_axis(operands[0], only(dims), 0)
        return b.emit(self, [x], {"axis": axis + 1}), [0]

    def better(self, k: ScalarBuilder, x: Scalar, best: Scalar) -> Scalar:
        """Whether x takes the place of the best so far (NaN handled by the caller)."""
        raise NotImplementedError

    def lower(self, k: ScalarBuilder, best: Scalar, at: Scalar, x: Scalar, i: Scalar) -> tuple[Scalar, Scalar]:
        """One step: (best value, its index) after seeing x at index i."""
        wins = self.better(k, x, best)
        if x.dtype.kind == "f":
            wins = k.logical_or(wins, k.isnan(x))
            wins = k.logical_and(wins, ~k.isnan(best))
        return k.select(wins, x, best), k.select(wins, i, at)


class ArgMax(_ArgReduction, name="argmax"):
    """Index of the largest element along an axis; the first of several.

    ``%0 = "smelt.argmax"(%x) {axis = 1 : i64} : (tensor<4x8xf32>) -> tensor<4xui32>``
    """

    @silent
    def reference(self, x: np.ndarray, *, axis: Int) -> np.ndarray:
        return np.argmax(x, axis=axis).astype(np.uint32)

    def better(self, k: ScalarBuilder, x: Scalar, best: Scalar) -> Scalar:
        return x > best


class ArgMin(_ArgReduction, name="argmin"):
    """Index of the smallest element along an axis; the first of several.

    ``%0 = "smelt.argmin"(%x) {axis = 1 : i64} : (tensor<4x8xf32>) -> tensor<4xui32>``
    """

    @silent
    def reference(self, x: np.ndarray, *, axis: Int) -> np.ndarray:
        return np.argmin(x, axis=axis).astype(np.uint32)

    def better(self, k: ScalarBuilder, x: Scalar, best: Scalar) -> Scalar:
        return x < best
