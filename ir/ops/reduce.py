"""Reductions over any set of axes."""

from __future__ import annotations

import functools
import math
from typing import TYPE_CHECKING

import numpy as np

from .. import dtypes, halves
from ..aval import Aval
from ..dtypes import DType
from ..errors import ShapeError
from ..host_loops import loops
from ..kinds import ArgReduction, Reduction, restore_axes, silent
from ..op import (
    Avals,
    Cotangents,
    Flags,
    HostCall,
    Int,
    Ints,
    NotDifferentiable,
    Tangents,
    Values,
    only,
)
from ..scalar import Scalar, ScalarBuilder
from ..short_axes import by_groups, groups_of_axes, reduced

if TYPE_CHECKING:
    from ..builder import Builder, Value


#: Elements from which on sums are worth a loop of their own, and the most columns of those down.
_LEAST, _COLUMNS = 2048, 512
#: Numbers that are added one after the other, at most.
_IN_ORDER = 512
#: Types that have such loops, by their characters, and what `row_sums.c` calls them.
_SUMMED = {**dict.fromkeys("iIlLqQ", 0), **dict.fromkeys("fd", 1), **dict.fromkeys("FD", 2)}


def _folded(ufunc: np.ufunc, x: np.ndarray, axes: Ints, dtype: np.dtype) -> np.ndarray:
    """``ufunc.reduce`` of `np.add`, which takes as long for a row of two elements as for one of thirty, and adds eight
    numbers at a time to those before; or of `np.multiply`, whose products each wait for the one before."""
    if x.size >= _LEAST and len(groups := groups_of_axes(x, axes)) > 1:
        return by_groups(lambda x, axes: _folded(ufunc, x, axes, dtype), x, groups)
    if x.size >= _LEAST and loops.row_sums is not None and x.dtype == dtype:
        found = _row_sums(x, axes, ufunc is np.multiply)
        if found is not None:
            return found
    return ufunc.reduce(x, axes, dtype)


def _added(x: np.ndarray, axes: Ints, dtype: np.dtype) -> np.ndarray:
    """Sums; where very many numbers would be added one after the other, as down columns, of sums of blocks: a sum loses
    digits with each number that is added to it."""
    if x.size < _LEAST or dtype.kind not in "fc":
        return _folded(np.add, x, axes, dtype)
    if len(groups := groups_of_axes(x, axes)) > 1:
        return by_groups(lambda x, axes: _added(x, axes, dtype), x, groups)
    along = _in_order(x, axes)
    if along is None:
        return _folded(np.add, x, axes, dtype)
    n = x.shape[along]
    if n < _IN_ORDER:  # several axes make up many
        return _added(_folded(np.add, x, (along,), dtype), tuple(a - (a > along) for a in axes if a != along), dtype)
    # What is cut off must not lie between the blocks in memory.
    size = math.isqrt(n) if math.prod(x.shape[:along]) == 1 else _size_of_blocks(n)
    cut, rest = np.split(x, [n - n % size], along)
    blocks = np.ascontiguousarray(cut) if x.flags.c_contiguous else cut
    blocks = blocks.reshape(*x.shape[:along], n // size, size, *x.shape[along + 1 :])
    behind = [a + (a > along) for a in axes if a != along]
    parts = _folded(np.add, blocks, (*behind, along + 1), dtype)
    found = _folded(np.add, parts, (along - sum(a < along for a in axes),), dtype)
    return found + _folded(np.add, rest, axes, dtype) if n % size else found


@functools.lru_cache
def _size_of_blocks(n: int) -> int:
    """About as many elements as there are blocks of them, without a rest if that can be."""
    root = math.isqrt(n)
    return next((size for size in range(root, root // 8, -1) if n % size == 0), root)


def _in_order(x: np.ndarray, axes: Ints) -> int | None:
    """The axis along which many numbers would be added one after the other; None where NumPy goes by halves."""
    inner = min((a for a in range(x.ndim) if x.shape[a] > 1), key=lambda a: abs(x.strides[a]), default=None)
    outer = [a for a in axes if a != inner]
    if math.prod(x.shape[a] for a in outer) < _IN_ORDER or (x.flags.c_contiguous and _is_last(axes, x.ndim)):
        return None
    return max(outer, key=x.shape.__getitem__)


def _is_last(axes: Ints, ndim: int) -> bool:
    """Whether these are the last axes, which are one in memory."""
    return sorted(axes) == list(range(ndim - len(axes), ndim))


def _row_sums(x: np.ndarray, axes: Ints, product: bool = False) -> np.ndarray | None:
    """Sums, or products, of rows, or of rows before an axis of not too many elements; None where it is neither."""
    if not x.flags.c_contiguous and x.flags.f_contiguous:
        found = _row_sums(x.T, tuple(x.ndim - 1 - a for a in axes), product)
        return None if found is None else found.T
    first, end = min(axes, default=0), max(axes, default=-1) + 1
    n, columns = math.prod(x.shape[first:end]), math.prod(x.shape[end:])
    fits = 0 < columns <= _COLUMNS and n * columns > 1 and end - first == len(axes) and x.flags.c_contiguous
    if not fits or x.dtype.char not in _SUMMED or not (x.flags.aligned and x.dtype.isnative):
        return None
    if product and x.dtype.kind == "c":
        return None
    found = np.empty(x.shape[:first] + x.shape[end:], x.dtype)
    loops.row_sums(x, found, _SUMMED[x.dtype.char], n, columns, product)  # type: ignore[misc]
    return found


_multiplied = functools.partial(_folded, np.multiply)


class ReduceSum(Reduction, name="reduce_sum"):
    """Sum over axes. Half precision accumulates in float32.

    ``%0 = "smelt.reduce_sum"(%x) {axes = array<i64: 1>} : (tensor<4x8xf32>) -> tensor<4xf32>``
    """

    primitive = "Sum"
    formula = "sum(x)"
    repeated = "multiple"
    linearity = "jointly"

    @silent
    def reference(self, x: np.ndarray, *, axes: Ints) -> np.ndarray:
        wide = halves.widened(x)
        return halves.rounded(np.asarray(_added(wide, axes, wide.dtype)), x.dtype)

    def host_call(self, operands: Avals, result: Aval, *, axes: Ints) -> HostCall | None:
        if result.dtype.is_float and result.dtype.size == 2:
            return None
        size = operands[0].size
        is_small = type(size) is int and size < _LEAST
        return HostCall(np.add.reduce if is_small else _added, (axes, result.dtype.numpy))

    def transpose(
        self, b: Builder, cotangents: Cotangents, operands: Values, linear: Flags, *, axes: Ints
    ) -> Cotangents:
        return [restore_axes(b, only(cotangents), operands[0].shape, axes)]

    def identity(self, dtype: DType) -> float:
        return 0

    def combine(self, k: ScalarBuilder, x: Scalar, y: Scalar) -> Scalar:
        return k.add_reassociating(x, y)

    def of_one(self, b: Builder, x: Value) -> Value:
        return x + 0 if x.dtype.is_inexact else x  # -0 becomes 0


class ReduceProd(Reduction, name="reduce_prod"):
    """Product over axes.

    ``%0 = "smelt.reduce_prod"(%x) {axes = array<i64: 1>} : (tensor<4x8xf32>) -> tensor<4xf32>``
    """

    primitive = "Prod"
    repeated = "power"
    rule_flops = 2.0  # one after the other

    @silent
    def reference(self, x: np.ndarray, *, axes: Ints) -> np.ndarray:
        wide = halves.widened(x)
        return halves.rounded(np.asarray(_multiplied(wide, axes, wide.dtype)), x.dtype)

    def host_call(self, operands: Avals, result: Aval, *, axes: Ints) -> HostCall | None:
        if result.dtype.is_float and result.dtype.size == 2:
            return None
        return HostCall(_multiplied, (axes, result.dtype.numpy))

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

    def of_one(self, b: Builder, x: Value) -> Value:
        return x * 1 if x.dtype.is_complex else x  # 1 · x has other zeros, and NaN beside infinities


_max, _min = functools.partial(reduced, np.maximum), functools.partial(reduced, np.minimum)
_all, _any = functools.partial(reduced, np.logical_and), functools.partial(reduced, np.logical_or)


class _Extremum(Reduction):
    """Maximum or minimum: NaN if there is one; ties share the derivative equally."""

    accepts = dtypes.ALL
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

    primitive = "Max"
    formula = "max(x)"
    extremum = "max"

    @silent
    def reference(self, x: np.ndarray, *, axes: Ints) -> np.ndarray:
        return _max(x, axes)

    def host_call(self, operands: Avals, result: Aval, *, axes: Ints) -> HostCall | None:
        return HostCall(_max, (axes,))

    def identity(self, dtype: DType) -> float | complex:
        return lowest(dtype)

    def combine(self, k: ScalarBuilder, x: Scalar, y: Scalar) -> Scalar:
        return k.maximum(x, y)


class ReduceMin(_Extremum, name="reduce_min"):
    """Minimum over axes. Ties share the derivative equally.

    ``%0 = "smelt.reduce_min"(%x) {axes = array<i64: 1>} : (tensor<4x8xf32>) -> tensor<4xf32>``
    """

    primitive = "Min"
    extremum = "min"

    @silent
    def reference(self, x: np.ndarray, *, axes: Ints) -> np.ndarray:
        return _min(x, axes)

    def host_call(self, operands: Avals, result: Aval, *, axes: Ints) -> HostCall | None:
        return HostCall(_min, (axes,))

    def identity(self, dtype: DType) -> float | complex:
        return highest(dtype)

    def combine(self, k: ScalarBuilder, x: Scalar, y: Scalar) -> Scalar:
        return k.minimum(x, y)


def lowest(dtype: DType) -> float | complex:
    """The value below all others: -inf (in both parts of a complex number), the least integer, or False."""
    if dtype.is_inexact:
        return complex(-math.inf, -math.inf) if dtype.is_complex else -math.inf
    return False if dtype is dtypes.bool_ else int(np.iinfo(dtype.numpy).min)


def highest(dtype: DType) -> float | complex:
    """The value above all others: inf (in both parts of a complex number), the largest integer, or True."""
    if dtype.is_inexact:
        return complex(math.inf, math.inf) if dtype.is_complex else math.inf
    return True if dtype is dtypes.bool_ else int(np.iinfo(dtype.numpy).max)


class ReduceAll(Reduction, name="reduce_all"):
    """Whether all elements are true.

    ``%0 = "smelt.reduce_all"(%x) {axes = array<i64: 1>} : (tensor<4x8xi1>) -> tensor<4xi1>``
    """

    primitive = "And"
    accepts = (dtypes.bool_,)
    idempotent = True
    not_differentiable = NotDifferentiable("the result is a truth value")

    def reference(self, x: np.ndarray, *, axes: Ints) -> np.ndarray:
        return _all(x, axes)

    def host_call(self, operands: Avals, result: Aval, *, axes: Ints) -> HostCall | None:
        return HostCall(_all, (axes,))

    def identity(self, dtype: DType) -> float:
        return True

    def combine(self, k: ScalarBuilder, x: Scalar, y: Scalar) -> Scalar:
        return x & y


class ReduceAny(Reduction, name="reduce_any"):
    """Whether any element is true.

    ``%0 = "smelt.reduce_any"(%x) {axes = array<i64: 1>} : (tensor<4x8xi1>) -> tensor<4xi1>``
    """

    primitive = "Or"
    accepts = (dtypes.bool_,)
    idempotent = True
    not_differentiable = NotDifferentiable("the result is a truth value")

    def reference(self, x: np.ndarray, *, axes: Ints) -> np.ndarray:
        return _any(x, axes)

    def host_call(self, operands: Avals, result: Aval, *, axes: Ints) -> HostCall | None:
        return HostCall(_any, (axes,))

    def identity(self, dtype: DType) -> float:
        return False

    def combine(self, k: ScalarBuilder, x: Scalar, y: Scalar) -> Scalar:
        return x | y


def _first_largest(x: np.ndarray, axis: int) -> np.ndarray:
    return np.asarray(x.argmax(axis)).astype(np.uint32)


def _first_least(x: np.ndarray, axis: int) -> np.ndarray:
    return np.asarray(x.argmin(axis)).astype(np.uint32)


class ArgMax(ArgReduction, name="argmax"):
    """Index of the largest element along an axis; the first of several.

    ``%0 = "smelt.argmax"(%x) {axis = 1 : i64} : (tensor<4x8xf32>) -> tensor<4xui32>``
    """

    primitive = "ArgReduce"
    largest = True

    @silent
    def reference(self, x: np.ndarray, *, axis: Int) -> np.ndarray:
        return np.argmax(halves.widened(x), axis=axis).astype(np.uint32)

    def host_call(self, operands: Avals, result: Aval, *, axis: Int) -> HostCall | None:
        return None if halves.is_half(operands[0].dtype.numpy) else HostCall(_first_largest, (axis,))


class ArgMin(ArgReduction, name="argmin"):
    """Index of the smallest element along an axis; the first of several.

    ``%0 = "smelt.argmin"(%x) {axis = 1 : i64} : (tensor<4x8xf32>) -> tensor<4xui32>``
    """

    primitive = "ArgReduce"
    largest = False

    @silent
    def reference(self, x: np.ndarray, *, axis: Int) -> np.ndarray:
        return np.argmin(halves.widened(x), axis=axis).astype(np.uint32)

    def host_call(self, operands: Avals, result: Aval, *, axis: Int) -> HostCall | None:
        return None if halves.is_half(operands[0].dtype.numpy) else HostCall(_first_least, (axis,))
