"""Running sums, products and extrema along an axis; sorting."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from .. import dtypes, elementary, halves
from ..aval import Aval
from ..dtypes import DType
from ..errors import RuleError
from ..kinds import silent
from ..op import (
    Batched,
    Bool,
    Cotangents,
    Dims,
    Flags,
    Int,
    NotDifferentiable,
    Op,
    Operand,
    Tangents,
    Values,
    only,
    require_axes,
    require_dtype,
    require_positions,
)
from ..running import running
from ..sorting import order_along, sorted_along
from .indexing import take_along
from .reduce import highest, lowest

if TYPE_CHECKING:
    from ..builder import Builder, Value
    from ..scalar import Scalar, ScalarBuilder


#: Dtypes with twice the digits.
_TWICE = {dtypes.float32: dtypes.float64, dtypes.complex64: dtypes.complex128}


class AlongAxis(Op):
    """An op that works on the lines of its operand along an axis, and whose results have the operand's shape."""

    def batch(self, b: Builder, operands: Values, dims: Dims, *, axis: Int, **attrs: Any) -> Batched:
        dim = only(dims)
        return b.emit(self, operands, {"axis": axis + (axis >= dim), **attrs}), [dim]


class Cumulative(AlongAxis):
    """result[i] combines x[0], …, x[i] along an axis; only those before i when not `inclusive`.

    With `reverse` it combines x[i], x[i + 1], … instead. Half precision accumulates in float32.
    Subclasses state `identity` and ``combine(k, a, b)``, which is applied in order.
    """

    kind = "scan"
    rule_flops = 8.0  # each element waits for the one before it
    x: Operand
    axis: Int
    reverse: Bool = False
    inclusive: Bool = True
    accepts: ClassVar[Sequence[DType]] = dtypes.NUMERIC
    #: Whether neighbours may be combined with each other before what stands in front of them: not where that may
    #: overflow although the whole does not.
    regroups: ClassVar[bool] = True
    #: Whether each step rounds what the elements before have come to, which many steps leave few digits of.
    rounds: ClassVar[bool] = False

    def infer(self, x: Aval, *, axis: Int, reverse: Bool, inclusive: Bool) -> Aval:
        require_dtype(x, self.accepts)
        require_axes((axis,), x.ndim, "axis")
        return x

    @silent
    def reference(self, x: np.ndarray, *, axis: Int, reverse: Bool, inclusive: Bool) -> np.ndarray:
        wide = halves.widened(x)
        wide = np.flip(wide, axis) if reverse else wide
        if not inclusive and x.shape[axis]:
            first = [slice(None)] * x.ndim
            first[axis] = slice(0, 1)
            start = np.full_like(wide[tuple(first)], self.identity(dtypes.of(x.dtype)))
            first[axis] = slice(0, -1)
            wide = np.concatenate([start, wide[tuple(first)]], axis)
        out = halves.rounded(self.accumulate(wide, axis), x.dtype)
        return np.flip(out, axis) if reverse else out

    def accumulate(self, x: np.ndarray, axis: int) -> np.ndarray:
        """The inclusive forward scan of a NumPy array."""
        raise RuleError(f"smelt.{self.name} does not state the rule accumulate")

    def identity(self, dtype: DType) -> float | complex:
        """The Python scalar before all elements: what it combines with stays, but for a zero's sign."""
        raise RuleError(f"smelt.{self.name} does not state the rule identity")

    def neutral(self, dtype: DType) -> float | complex | None:
        """What leaves elements as they are, signs of zeros and infinities too; None: nothing does."""
        return self.identity(dtype)

    def total_dtype(self, dtype: DType) -> DType:
        """The dtype in which targets that have it keep what elements of a dtype have come to."""
        return _TWICE.get(dtype, dtype) if self.rounds else dtype

    def combine(self, k: ScalarBuilder, a: Scalar, b: Scalar) -> Scalar:
        """What came before (a) with the next element or partial result (b); associative."""
        raise RuleError(f"smelt.{self.name} does not state the rule combine")


class CumSum(Cumulative, name="cumsum"):
    """Running sum along an axis: result[i] = Σ_{j≤i} x[j]. Integers wrap.

    ``%0 = "smelt.cumsum"(%x) {axis = 1 : i64, reverse = false, inclusive = true} : (tensor<4x8xf32>) -> tensor<4x8xf32>``
    """

    linearity = "jointly"
    rounds = True

    def accumulate(self, x: np.ndarray, axis: Int) -> np.ndarray:
        return running(np.add, x, axis)

    def transpose(
        self, b: Builder, cotangents: Cotangents, operands: Values, linear: Flags,
        *, axis: Int, reverse: Bool, inclusive: Bool,
    ) -> Cotangents:  # fmt: skip
        return [b.cumsum(only(cotangents), axis=axis, reverse=not reverse, inclusive=inclusive)]

    def identity(self, dtype: DType) -> float:
        return 0

    def neutral(self, dtype: DType) -> float | complex:
        return {"f": -0.0, "c": complex(-0.0, -0.0)}.get(dtype.kind, 0)

    def combine(self, k: ScalarBuilder, x: Scalar, y: Scalar) -> Scalar:
        return k.add(x, y)


class CumProd(Cumulative, name="cumprod"):
    """Running product along an axis: result[i] = Π_{j≤i} x[j]. Integers wrap.

    ``%0 = "smelt.cumprod"(%x) {axis = 1 : i64, reverse = false, inclusive = true} : (tensor<4x8xf32>) -> tensor<4x8xf32>``
    """

    regroups = False  # 0 · (1e30 · 1e30) is no number
    rounds = True

    def accumulate(self, x: np.ndarray, axis: Int) -> np.ndarray:
        return running(np.multiply, x, axis)

    def jvp(
        self, b: Builder, primals: Values, tangents: Tangents, results: Values,
        *, axis: Int, reverse: Bool, inclusive: Bool,
    ) -> Tangents:  # fmt: skip
        """ẏ[i] = x[i]·ẏ[i-1] + y[i-1]·ẋ[i]: no division, so exact at zeros."""
        (x,), t = primals, only(tangents)
        if not x.shape[axis]:
            return [None]
        x, t = _widen(b, x), _widen(b, t)
        before = b.cumprod(x, axis=axis, reverse=reverse, inclusive=False)
        found = _recurrence(b, x, before * t, axis, reverse)
        return [_finish(b, found, primals[0].dtype, axis, reverse, inclusive)]

    def identity(self, dtype: DType) -> float:
        return 1

    def neutral(self, dtype: DType) -> float | None:
        return None if dtype.is_complex else 1

    def combine(self, k: ScalarBuilder, x: Scalar, y: Scalar) -> Scalar:
        return k.mul(x, y)


class _CumExtremum(Cumulative):
    """Running maximum or minimum. Of equal elements the latest has the derivative."""

    accepts = dtypes.ALL

    def jvp(
        self, b: Builder, primals: Values, tangents: Tangents, results: Values,
        *, axis: Int, reverse: Bool, inclusive: Bool,
    ) -> Tangents:  # fmt: skip
        (x,), t, (y,) = primals, only(tangents), results
        if not x.shape[axis]:
            return [None]
        if not inclusive:
            y = b.emit(self, [x], {"axis": axis, "reverse": reverse, "inclusive": True})[0]
        # The place of the current extremum: the last one seen at which x equals it.
        place = b.iota(shape=x.shape, axis=axis, dtype=dtypes.int32)
        nowhere = b.full(x.shape, x.shape[axis] - 1 if reverse else 0, dtypes.int32)
        place = b.select(b.equal(x, y), place, nowhere)
        latest = b.cummin if reverse else b.cummax
        place = latest(place, axis=axis, reverse=reverse)
        return [_finish(b, take_along(b, t, place, axis), x.dtype, axis, reverse, inclusive)]


class CumMax(_CumExtremum, name="cummax"):
    """Running maximum along an axis: result[i] = max_{j≤i} x[j]; NaN from the first NaN on.

    Of equal elements the latest has the derivative.

    ``%0 = "smelt.cummax"(%x) {axis = 1 : i64, reverse = false, inclusive = true} : (tensor<4x8xf32>) -> tensor<4x8xf32>``
    """

    def accumulate(self, x: np.ndarray, axis: Int) -> np.ndarray:
        return running(np.maximum, x, axis)

    def identity(self, dtype: DType) -> float | complex:
        return lowest(dtype)

    def combine(self, k: ScalarBuilder, x: Scalar, y: Scalar) -> Scalar:
        return k.maximum(x, y)


class CumMin(_CumExtremum, name="cummin"):
    """Running minimum along an axis: result[i] = min_{j≤i} x[j]; NaN from the first NaN on.

    Of equal elements the latest has the derivative.

    ``%0 = "smelt.cummin"(%x) {axis = 1 : i64, reverse = false, inclusive = true} : (tensor<4x8xf32>) -> tensor<4x8xf32>``
    """

    def accumulate(self, x: np.ndarray, axis: Int) -> np.ndarray:
        return running(np.minimum, x, axis)

    def identity(self, dtype: DType) -> float | complex:
        return highest(dtype)

    def combine(self, k: ScalarBuilder, x: Scalar, y: Scalar) -> Scalar:
        return k.minimum(x, y)


class LogCumSumExp(Cumulative, name="logcumsumexp"):
    """Logarithm of the running sum of exponentials: result[i] = log Σ_{j≤i} exp(x[j]), without overflow.

    ``%0 = "smelt.logcumsumexp"(%x) {axis = 1 : i64, reverse = false, inclusive = true} : (tensor<4x8xf32>) -> tensor<4x8xf32>``
    """

    primitive = "CumLogAddExp"
    accepts = dtypes.INEXACT
    flops = 30.0
    rule_flops = 50.0

    def accumulate(self, x: np.ndarray, axis: Int) -> np.ndarray:
        if x.dtype.kind != "c":
            return np.logaddexp.accumulate(x, axis)
        steps = np.moveaxis(x, axis, 0).astype(np.complex128)
        return np.moveaxis(np.array([*itertools.accumulate(steps, _add_exponentials)]).reshape(steps.shape), 0, axis)

    def jvp(
        self, b: Builder, primals: Values, tangents: Tangents, results: Values,
        *, axis: Int, reverse: Bool, inclusive: Bool,
    ) -> Tangents:  # fmt: skip
        """ẏ[i] = Σ_{j≤i} exp(x[j] - m[i])·ẋ[j] / Σ_{j≤i} exp(x[j] - m[i]) with m[i] = max_{j≤i} Re x[j].

        Not exp(x[j] - y[i]): the result's rounding, which grows with its size, would be in each weight.
        """
        (x,), t = primals, only(tangents)
        if not x.shape[axis]:
            return [None]
        x, t = _widen(b, x), _widen(b, t)
        size = b.stop_gradient(b.real(x) if x.dtype.is_complex else x)  # the quotient is the same for any m
        top = b.cummax(size, axis=axis, reverse=reverse)
        # Where nothing but -inf has been seen, x - m would be NaN: there the weights are 0.
        finite = b.select(b.equal(top, b.full(top.shape, -math.inf, top.dtype)), b.zeros_like(top), top)
        before = _shifted(b, top, 1, -math.inf, axis, reverse)
        kept = b.convert_to(b.exp(_less(b, before, finite)), x.dtype)
        weight = b.exp(_less(b, x, b.convert_to(finite, x.dtype)))
        total = _recurrence(b, kept, weight, axis, reverse)
        empty = b.equal(total, b.zeros_like(total))
        total = b.select(empty, b.full(total.shape, 1, total.dtype), total)
        found = _recurrence(b, kept, weight * t, axis, reverse) / total
        return [_finish(b, found, primals[0].dtype, axis, reverse, inclusive)]

    def identity(self, dtype: DType) -> float:
        return -math.inf

    def neutral(self, dtype: DType) -> float | complex | None:
        return None if dtype.is_complex else self.identity(dtype)

    def combine(self, k: ScalarBuilder, x: Scalar, y: Scalar) -> Scalar:
        if x.dtype.kind == "c":
            first = x >= y
            high, low = k.select(first, x, y), k.select(first, y, x)
            # e^low vanishes beside e^high, or e^high is infinite
            alone = k.logical_or(k.real(low).eq(-math.inf), k.real(high).eq(math.inf))
            gap = k.select(alone, 0, low - high)
            rest = elementary.complex_log1p(k, elementary.complex_exp(k, gap))
            return k.select(alone, high, high + rest)
        same = x.eq(y)  # equal infinities have no difference
        gap = k.select(same, 0, k.math("absf", x - y))
        return k.maximum(x, y) + elementary.log1p(k, elementary.exp(k, -gap))


def _add_exponentials(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """log(e^x + e^y) of complex numbers; not the principal value, but x or y and what is added to it."""
    high, low = np.where(x >= y, (x, y), (y, x))
    alone = (low.real == -math.inf) | (high.real == math.inf)
    return np.where(alone, high, high + np.log1p(np.exp(np.where(alone, 0, low - high))))


def _widen(b: Builder, x: Value) -> Value:
    return b.convert_to(x, dtypes.float32) if x.dtype.is_float and x.dtype.size == 2 else x


def _less(b: Builder, x: Value, top: Value) -> Value:
    """x - top; of real infinities 0: those that are the largest share the derivative, as equal numbers do."""
    if x.dtype.is_complex:
        return x - top
    infinite = b.equal(x, b.full(x.shape, math.inf, x.dtype))
    return b.select(infinite, b.zeros_like(x), x - top)


def _shifted(b: Builder, x: Value, distance: int, fill: float, axis: int, reverse: bool) -> Value:
    """x moved by `distance` in the direction of the scan; `fill` enters."""
    start, stop, none, pad = [0] * x.ndim, list(x.shape), (0,) * x.ndim, [0] * x.ndim
    pad[axis] = distance
    if reverse:
        start[axis] = distance
    else:
        stop[axis] -= distance
    kept = b.slice(x, start=tuple(start), stop=tuple(stop), stride=(1,) * x.ndim)
    low, high = (none, tuple(pad)) if reverse else (tuple(pad), none)
    return b.pad(kept, b.full((), fill, x.dtype), low=low, high=high, interior=none)


def _recurrence(b: Builder, a: Value, v: Value, axis: int, reverse: bool) -> Value:
    """h with h[i] = a[i]·h[i-1] + v[i], linear in v; by doubling, in log₂ n steps."""
    n, distance = v.shape[axis], 1
    while distance < n:
        v = v + a * _shifted(b, v, distance, 0, axis, reverse)
        if distance * 2 < n:
            a = a * _shifted(b, a, distance, 0, axis, reverse)
        distance *= 2
    return v


def _finish(b: Builder, tangent: Value, dtype: DType, axis: int, reverse: bool, inclusive: bool) -> Value:
    """From the tangent of the inclusive scan, in `dtype`; the identity that starts a scan has none."""
    if not inclusive:
        tangent = _shifted(b, tangent, 1, 0, axis, reverse)
    return b.convert_to(tangent, dtype)


class Sort(AlongAxis, name="sort"):
    """Elements along an axis in ascending order, NaN last.

    ``%0 = "smelt.sort"(%x) {axis = 1 : i64} : (tensor<4x8xf32>) -> tensor<4x8xf32>``
    """

    kind = "sort"
    x: Operand
    axis: Int
    accepts = dtypes.ALL
    flops = 30.0

    def infer(self, x: Aval, *, axis: Int) -> Aval:
        require_dtype(x, self.accepts)
        require_axes((axis,), x.ndim, "axis")
        return x

    def reference(self, x: np.ndarray, *, axis: Int) -> np.ndarray:
        return sorted_along(x, axis)

    def jvp(self, b: Builder, primals: Values, tangents: Tangents, results: Values, *, axis: Int) -> Tangents:
        return [take_along(b, only(tangents), b.argsort(primals[0], axis=axis), axis)]


class ArgSort(AlongAxis, name="argsort"):
    """Indices that sort x along an axis, as uint32: ascending, NaN last, equal elements in their order.

    ``%0 = "smelt.argsort"(%x) {axis = 1 : i64} : (tensor<4x8xf32>) -> tensor<4x8xui32>``
    """

    kind = "sort"
    x: Operand
    axis: Int
    accepts = dtypes.ALL
    not_differentiable = NotDifferentiable("the result is an index")
    gives_positions = True
    flops = 30.0

    def infer(self, x: Aval, *, axis: Int) -> Aval:
        require_dtype(x, self.accepts)
        require_axes((axis,), x.ndim, "axis")
        require_positions(x, axis)
        return Aval(x.shape, dtypes.uint32)

    def reference(self, x: np.ndarray, *, axis: Int) -> np.ndarray:
        return order_along(x, axis)
