"""Ops whose result holds the operand's elements at other places."""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import dtypes
from ..aval import Aval
from ..dtypes import DType
from ..errors import AttributeValueError, DTypeError, RuleError, ShapeError
from ..index import Coordinates, Index, Piece, delinearize, linearize
from ..kinds import Fetch, Fusible, Movement, Nullary, align_batch
from ..op import (
    Avals,
    Batched,
    Cotangents,
    Dims,
    Element,
    Flags,
    HostCall,
    Int,
    Ints,
    Operand,
    Values,
    only,
    require,
    require_axes,
    require_dtype,
)
from ..repeated import repeated
from ..scalar import Scalar, ScalarBuilder

if TYPE_CHECKING:
    from ..builder import Builder


class Reshape(Movement, name="reshape"):
    """The same elements, in row-major order, in another shape.

    ``%0 = "smelt.reshape"(%x) {shape = array<i64: 2, 6>} : (tensor<3x4xf32>) -> tensor<2x6xf32>``
    """

    x: Operand
    shape: Ints
    sizes = ("shape",)
    is_view = True
    linearity = "jointly"

    def infer(self, x: Aval, *, shape: Ints) -> Aval:
        require(all(d >= 0 for d in shape), f"shape {shape} has a negative extent", AttributeValueError)
        size = math.prod(shape)
        require(size == x.size, f"cannot reshape {x.size} elements to {shape}, which holds {size}")
        return x.with_shape(shape)

    def reference(self, x: np.ndarray, *, shape: Ints) -> np.ndarray:
        return np.reshape(x, shape)

    def short(self, texts: Sequence[str], operands: Avals, *, shape: Ints) -> str | None:
        index = unit_axes(operands[0].shape, shape)
        return None if index is None else texts[0] + index

    def host_call(self, operands: Avals, result: Aval, *, shape: Ints) -> HostCall | None:
        return HostCall(np.ndarray.reshape, (shape,))

    def transpose(
        self, b: Builder, cotangents: Cotangents, operands: Values, linear: Flags, *, shape: Ints
    ) -> Cotangents:
        return [b.reshape_to(only(cotangents), operands[0].shape)]

    def batch(self, b: Builder, operands: Values, dims: Dims, *, shape: Ints) -> Batched:
        x = b.move_axis(operands[0], only(dims), 0)
        return [b.reshape_to(x, (x.shape[0], *shape))], [0]

    def map_index(self, index: Coordinates, operand: Aval, result: Aval, *, shape: Ints) -> Coordinates:
        source: list[Index] = []
        for out_axes, in_axes in reshape_groups(result.shape, operand.shape):
            offset = linearize([index[a] for a in out_axes], [result.shape[a] for a in out_axes])
            source += delinearize(offset, [operand.shape[a] for a in in_axes])
        return tuple(source)


def reshape_groups(a: tuple[int, ...], b: tuple[int, ...]) -> list[tuple[list[int], list[int]]]:
    """Pair up the smallest runs of axes of `a` and `b` with the same number of elements."""
    groups: list[tuple[list[int], list[int]]] = []
    i = j = 0
    if 0 in a:
        return [(list(range(len(a))), list(range(len(b))))]
    while i < len(a) or j < len(b):
        left, right, p, q = [], [], 1, 1
        if i < len(a):
            left.append(i)
            p *= a[i]
            i += 1
        if j < len(b) and (p != 1 or not left):
            right.append(j)
            q *= b[j]
            j += 1
        while p != q:
            if p < q:
                left.append(i)
                p *= a[i]
                i += 1
            else:
                right.append(j)
                q *= b[j]
                j += 1
        groups.append((left, right))
    return groups


def unit_axes(old: Sequence[int], new: Sequence[int]) -> str | None:
    """An index that gives an array of shape `old` the shape `new`, by axes of one element alone; None: there is none.

    >>> unit_axes((8,), (8, 1)), unit_axes((1, 8), (8,)), unit_axes((8,), (2, 4))
    ('[:, None]', '[0]', None)
    """
    parts: list[str] = []
    had, wanted = list(old), list(new)
    while had or wanted:
        if had and wanted and had[0] == wanted[0] and (had[0] != 1 or len(had) == len(wanted)):
            parts.append(":")
            had, wanted = had[1:], wanted[1:]
        elif wanted and wanted[0] == 1:
            parts.append("None")
            wanted = wanted[1:]
        elif had and had[0] == 1:
            parts.append("0")
            had = had[1:]
        else:
            return None
    while parts and parts[-1] == ":":
        parts.pop()
    return f"[{', '.join(parts)}]"


class Transpose(Movement, name="transpose"):
    """Permuted axes: axis i of the result is axis permutation[i] of x.

    ``%0 = "smelt.transpose"(%x) {permutation = array<i64: 1, 0>} : (tensor<2x3xf32>) -> tensor<3x2xf32>``
    """

    x: Operand
    permutation: Ints
    linearity = "jointly"

    def infer(self, x: Aval, *, permutation: Ints) -> Aval:
        require_axes(permutation, x.ndim, "permutation")
        require(len(permutation) == x.ndim, f"permutation {permutation} must name all {x.ndim} axes")
        return x.with_shape(x.shape[p] for p in permutation)

    def reference(self, x: np.ndarray, *, permutation: Ints) -> np.ndarray:
        return np.transpose(x, permutation)

    def short(self, texts: Sequence[str], operands: Avals, *, permutation: Ints) -> str | None:
        return f"{texts[0]}.T" if permutation == (1, 0) else None

    def host_call(self, operands: Avals, result: Aval, *, permutation: Ints) -> HostCall | None:
        return HostCall(np.ndarray.transpose, (permutation,))

    def transpose(
        self, b: Builder, cotangents: Cotangents, operands: Values, linear: Flags, *, permutation: Ints
    ) -> Cotangents:
        inverse = tuple(int(i) for i in np.argsort(permutation))
        return [b.transpose(only(cotangents), permutation=inverse)]

    def batch(self, b: Builder, operands: Values, dims: Dims, *, permutation: Ints) -> Batched:
        x, dim = operands[0], only(dims)
        rest = [a for a in range(x.ndim) if a != dim]
        return [b.transpose(x, permutation=(dim, *(rest[p] for p in permutation)))], [0]

    def map_index(self, index: Coordinates, operand: Aval, result: Aval, *, permutation: Ints) -> Coordinates:
        source = [Index(0)] * len(permutation)
        for i, p in zip(index, permutation):
            source[p] = i
        return tuple(source)


class Broadcast(Movement, name="broadcast"):
    """x stretched to a shape by NumPy's rule: new leading axes, and axes of size one repeated.

    ``%0 = "smelt.broadcast"(%x) {shape = array<i64: 2, 3>} : (tensor<3xf32>) -> tensor<2x3xf32>``
    """

    x: Operand
    shape: Ints
    sizes = ("shape",)
    stays_symbolic = True
    linearity = "jointly"

    def infer(self, x: Aval, *, shape: Ints) -> Aval:
        lead = len(shape) - x.ndim
        fits = lead >= 0 and all(d in (1, s) for d, s in zip(x.shape, shape[lead:]))
        if not fits or not all(d >= 0 for d in shape):
            raise ShapeError(f"cannot broadcast shape {x.shape} to {shape}")
        return x.with_shape(shape)

    def reference(self, x: np.ndarray, *, shape: Ints) -> np.ndarray:
        return repeated(x, shape)

    def host_call(self, operands: Avals, result: Aval, *, shape: Ints) -> HostCall | None:
        return HostCall(repeated, (shape,), repeats=True)

    def transpose(
        self, b: Builder, cotangents: Cotangents, operands: Values, linear: Flags, *, shape: Ints
    ) -> Cotangents:
        return [b.sum_to(only(cotangents), operands[0].shape)]

    def batch(self, b: Builder, operands: Values, dims: Dims, *, shape: Ints) -> Batched:
        x = b.move_axis(operands[0], only(dims), 0)
        ones = (1,) * (len(shape) - x.ndim + 1)
        x = b.reshape_to(x, (x.shape[0], *ones, *x.shape[1:]))
        return [b.broadcast_to(x, (x.shape[0], *shape))], [0]

    def map_index(self, index: Coordinates, operand: Aval, result: Aval, *, shape: Ints) -> Coordinates:
        lead = len(shape) - operand.ndim
        return tuple(Index(0) if d == 1 else i for d, i in zip(operand.shape, index[lead:]))


class Slice(Movement, name="slice"):
    """The elements start, start + stride, ... below stop along each axis. Strides are positive.

    ``%0 = "smelt.slice"(%x) {start = array<i64: 1>, stop = array<i64: 7>, stride = array<i64: 2>} : (tensor<8xf32>) -> tensor<3xf32>``
    """

    x: Operand
    start: Ints
    stop: Ints
    stride: Ints
    sizes = ("start", "stop")
    linearity = "jointly"

    def infer(self, x: Aval, *, start: Ints, stop: Ints, stride: Ints) -> Aval:
        same = len(start) == len(stop) == len(stride) == x.ndim
        require(same, "start, stop and stride need one entry an axis", AttributeValueError)
        shape = []
        for axis, (a, z, s, d) in enumerate(zip(start, stop, stride, x.shape)):
            if not (0 <= a <= d and a <= z <= d and s >= 1):
                raise AttributeValueError(f"axis {axis}: {a}:{z}:{s} does not lie within 0:{d}")
            shape.append(-(-(z - a) // s))
        return x.with_shape(shape)

    def reference(self, x: np.ndarray, *, start: Ints, stop: Ints, stride: Ints) -> np.ndarray:
        return x[tuple(slice(*t) for t in zip(start, stop, stride))]

    def short(self, texts: Sequence[str], operands: Avals, *, start: Ints, stop: Ints, stride: Ints) -> str | None:
        parts = []
        for a, z, s, d in zip(start, stop, stride, operands[0].shape):
            parts.append(f"{a or ''}:{'' if z == d else z}{f':{s}' if s != 1 else ''}")
        while len(parts) > 1 and parts[-1] == ":":
            parts.pop()
        return f"{texts[0]}[{', '.join(parts)}]"

    def host_call(
        self, operands: Avals, result: Aval, *, start: Ints, stop: Ints, stride: Ints
    ) -> HostCall | None:
        # With an ellipsis it is an array, also where no axis is left.
        return HostCall(operator.getitem, ((*(slice(*t) for t in zip(start, stop, stride)), ...),))

    def transpose(
        self, b: Builder, cotangents: Cotangents, operands: Values, linear: Flags,
        *, start: Ints, stop: Ints, stride: Ints,
    ) -> Cotangents:  # fmt: skip
        ct, x = only(cotangents), operands[0]
        high = []
        for a, s, d, n in zip(start, stride, x.shape, ct.shape):
            high.append(d - a - (n + (n - 1) * (s - 1) if n else 0))
        interior = tuple(s - 1 for s in stride)
        return [b.pad(ct, b.full((), 0, ct.dtype), low=start, high=tuple(high), interior=interior)]

    def batch(self, b: Builder, operands: Values, dims: Dims, *, start: Ints, stop: Ints, stride: Ints) -> Batched:
        x = b.move_axis(operands[0], only(dims), 0)
        attrs = {"start": (0, *start), "stop": (x.shape[0], *stop), "stride": (1, *stride)}
        return b.emit(self, [x], attrs), [0]

    def map_index(
        self, index: Coordinates, operand: Aval, result: Aval, *, start: Ints, stop: Ints, stride: Ints
    ) -> Coordinates:
        return tuple(i * s + a for i, a, s in zip(index, start, stride))


class Reverse(Movement, name="reverse"):
    """The order of elements reversed along some axes.

    ``%0 = "smelt.reverse"(%x) {axes = array<i64: 0>} : (tensor<4xf32>) -> tensor<4xf32>``
    """

    x: Operand
    axes: Ints
    linearity = "jointly"

    def infer(self, x: Aval, *, axes: Ints) -> Aval:
        require_axes(axes, x.ndim)
        return x

    def reference(self, x: np.ndarray, *, axes: Ints) -> np.ndarray:
        return np.flip(x, axes)

    def transpose(
        self, b: Builder, cotangents: Cotangents, operands: Values, linear: Flags, *, axes: Ints
    ) -> Cotangents:
        return [b.reverse(only(cotangents), axes=axes)]

    def batch(self, b: Builder, operands: Values, dims: Dims, *, axes: Ints) -> Batched:
        x = b.move_axis(operands[0], only(dims), 0)
        return [b.reverse(x, axes=tuple(a + 1 for a in axes))], [0]

    def map_index(self, index: Coordinates, operand: Aval, result: Aval, *, axes: Ints) -> Coordinates:
        return tuple(
            (d - 1) - i if a in axes else i for a, (i, d) in enumerate(zip(index, operand.shape))
        )


class Assembly(Fusible):
    """The result is put together from the operands: elements of each lie at places of their own."""

    kind = "movement"
    flops = 0.0
    linearity = "jointly"

    def pieces(self, operands: Avals, *_: Any, **attrs: Any) -> Sequence[Piece]:
        """What it consists of, in order."""
        raise RuleError(f"smelt.{self.name} does not state the rule pieces")


class Pad(Assembly, name="pad"):
    """x with `low` and `high` elements of `value` around it and `interior` between its elements.

    ``%0 = "smelt.pad"(%x, %v) {low = array<i64: 1>, high = array<i64: 2>, interior = array<i64: 0>} : (tensor<4xf32>, tensor<f32>) -> tensor<7xf32>``
    """

    x: Operand
    value: Operand
    low: Ints
    high: Ints
    interior: Ints
    sizes = ("low", "high")

    def infer(self, x: Aval, value: Aval, *, low: Ints, high: Ints, interior: Ints) -> Aval:
        require(value.shape == (), "value must be a scalar")
        require(value.dtype is x.dtype, "value must have the dtype of x", DTypeError)
        same = len(low) == len(high) == len(interior) == x.ndim
        require(same, "low, high and interior need one entry an axis", AttributeValueError)
        ok = all(n >= 0 for n in (*low, *high, *interior))
        require(ok, "low, high and interior must not be negative", AttributeValueError)
        return x.with_shape(
            lo + hi + d + max(d - 1, 0) * mid for d, lo, hi, mid in zip(x.shape, low, high, interior)
        )

    def reference(self, x: np.ndarray, value: np.ndarray, *, low: Ints, high: Ints, interior: Ints) -> np.ndarray:
        shape = [
            lo + hi + d + max(d - 1, 0) * m for d, lo, hi, m in zip(x.shape, low, high, interior)
        ]
        return _padded(x, value, tuple(shape), _places(x.shape, low, interior))

    def pieces(self, operands: Avals, *, low: Ints, high: Ints, interior: Ints) -> Sequence[Piece]:
        return Piece(1, (0,) * len(low), (1,) * len(low)), Piece(0, low, tuple(n + 1 for n in interior))

    def host_call(
        self, operands: Avals, result: Aval, *, low: Ints, high: Ints, interior: Ints
    ) -> HostCall | None:
        return HostCall(_padded, (result.shape, _places(operands[0].shape, low, interior)))

    def transpose(
        self, b: Builder, cotangents: Cotangents, operands: Values, linear: Flags,
        *, low: Ints, high: Ints, interior: Ints,
    ) -> Cotangents:  # fmt: skip
        ct, x = only(cotangents), operands[0]
        stop = tuple(lo + (d + (d - 1) * m if d else 0) for lo, d, m in zip(low, x.shape, interior))
        inside = b.slice(ct, start=low, stop=stop, stride=tuple(m + 1 for m in interior))
        every = tuple(range(ct.ndim))
        outside = None
        if linear[1]:
            outside = b.reduce_sum(ct, axes=every) - b.reduce_sum(inside, axes=every)
        return [inside if linear[0] else None, outside]

    def batch(self, b: Builder, operands: Values, dims: Dims, *, low: Ints, high: Ints, interior: Ints) -> Batched:
        x, value = operands
        attrs = {"low": (0, *low), "high": (0, *high), "interior": (0, *interior)}
        if dims[1] is None:
            x = b.move_axis(x, only(dims), 0)
            return b.emit(self, [x, value], attrs), [0]
        x, value = align_batch(b, operands, dims)
        padded = b.emit(self, [x, b.full((), 0, x.dtype)], attrs)[0]
        inside = b.emit(self, [b.full(x.shape, True, dtypes.bool_), b.full((), False, dtypes.bool_)], attrs)[0]
        value = b.reshape_to(value, (value.shape[0],) + (1,) * (padded.ndim - 1))
        return [b.select(inside, padded, b.broadcast_to(value, padded.shape))], [0]

    def element(
        self, k: ScalarBuilder, index: Coordinates, fetch: Fetch, operands: Avals, result: Aval,
        *, low: Ints, high: Ints, interior: Ints,
    ) -> Scalar:  # fmt: skip
        source, conditions = [], []
        for i, lo, m, d in zip(index, low, interior, operands[0].shape):
            shifted = i - lo
            if shifted.hi < 0 or shifted.lo >= d + max(d - 1, 0) * m:
                return fetch(1, ())
            if shifted.lo < 0:
                conditions.append(k.index(shifted) >= 0)
            if m:
                conditions.append(k.index((shifted + (m + 1) * lo) % (m + 1)).eq(0))
                shifted = (shifted + (m + 1) * lo) // (m + 1) - lo
            if shifted.hi >= d:
                conditions.append(k.index(shifted) < d)
            source.append(shifted)
        if not conditions:
            return fetch(0, tuple(source))
        inside = functools.reduce(k.logical_and, conditions)
        return k.guarded(inside, lambda: fetch(0, tuple(source)), lambda: fetch(1, ()), result.dtype)

    def borders(
        self, index: Coordinates, operands: Avals, *, low: Ints, high: Ints, interior: Ints
    ) -> Sequence[tuple[Index, int]]:
        axes = list(zip(index, low, interior, operands[0].shape))
        if any(i.hi < lo or i.lo >= lo + d + max(d - 1, 0) * m for i, lo, m, d in axes):
            return []  # all of them are the value
        return [(i, at) for i, lo, m, d in axes if not m for at in (lo, lo + d) if i.lo < at <= i.hi]


def _places(shape: Sequence[int], low: Ints, interior: Ints) -> tuple[slice, ...]:
    """Where in the result of a `pad` the elements of its operand of this shape are."""
    return tuple([slice(lo, lo + d * (m + 1) - m if d else lo, m + 1) for lo, d, m in zip(low, shape, interior)])


def _padded(x: np.ndarray, value: np.ndarray, shape: tuple[int, ...], places: tuple[slice, ...]) -> np.ndarray:
    out = np.full(shape, value, x.dtype)
    out[places] = x
    return out


class Concatenate(Assembly, name="concatenate"):
    """x followed by y along one axis.

    ``%0 = "smelt.concatenate"(%x, %y) {axis = 0 : i64} : (tensor<2xf32>, tensor<3xf32>) -> tensor<5xf32>``
    """

    x: Operand
    y: Operand
    axis: Int

    def infer(self, x: Aval, y: Aval, *, axis: Int) -> Aval:
        require_axes((axis,), x.ndim, "axis")
        rest = [(*a.shape[:axis], *a.shape[axis + 1 :]) for a in (x, y)]
        require(x.ndim == y.ndim and rest[0] == rest[1], f"shapes must agree on all axes but {axis}")
        require(x.dtype is y.dtype, "operands must have the same dtype", DTypeError)
        return x.with_shape((*x.shape[:axis], x.shape[axis] + y.shape[axis], *x.shape[axis + 1 :]))

    def reference(self, x: np.ndarray, y: np.ndarray, *, axis: Int) -> np.ndarray:
        return np.concatenate([x, y], axis)

    def pieces(self, operands: Avals, *, axis: Int) -> Sequence[Piece]:
        ones = (1,) * operands[0].ndim
        second = tuple(operands[0].shape[axis] if a == axis else 0 for a in range(len(ones)))
        return Piece(0, (0,) * len(ones), ones), Piece(1, second, ones)

    def host_call(self, operands: Avals, result: Aval, *, axis: Int) -> HostCall | None:
        return HostCall(_concatenated, (axis,))

    def transpose(
        self, b: Builder, cotangents: Cotangents, operands: Values, linear: Flags, *, axis: Int
    ) -> Cotangents:
        ct, (x, _) = only(cotangents), operands
        ones, start, stop = (1,) * ct.ndim, [0] * ct.ndim, list(ct.shape)
        stop[axis] = start[axis] = x.shape[axis]
        return [
            b.slice(ct, start=(0,) * ct.ndim, stop=tuple(stop), stride=ones) if linear[0] else None,
            b.slice(ct, start=tuple(start), stop=ct.shape, stride=ones) if linear[1] else None,
        ]

    def batch(self, b: Builder, operands: Values, dims: Dims, *, axis: Int) -> Batched:
        return [b.concatenate(*align_batch(b, operands, dims), axis=axis + 1)], [0]

    def element(
        self, k: ScalarBuilder, index: Coordinates, fetch: Fetch, operands: Avals, result: Aval, *, axis: Int
    ) -> Scalar:
        end = operands[0].shape[axis]
        i = index[axis]
        after = (*index[:axis], i - end, *index[axis + 1 :])
        if i.hi < end:
            return fetch(0, index)
        if i.lo >= end:
            return fetch(1, after)
        return k.guarded(k.index(i) < end, lambda: fetch(0, index), lambda: fetch(1, after), result.dtype)

    def borders(self, index: Coordinates, operands: Avals, *, axis: Int) -> Sequence[tuple[Index, int]]:
        return [(index[axis], operands[0].shape[axis])]


def _concatenated(x: np.ndarray, y: np.ndarray, axis: int) -> np.ndarray:
    return np.concatenate((x, y), axis)


#: Of so many elements along its axis the result of `smelt.iota` is kept: masks and tables of small arrays are made of
#: it again and again.
MOST_KEPT_IOTA = 1024


def _iota(shape: tuple[int, ...], axis: int, dtype: DType) -> np.ndarray:
    """The index along an axis, as a view that cannot be written to."""
    line = np.arange(shape[axis]).astype(dtype.numpy)
    return repeated(line.reshape([-1 if a == axis else 1 for a in range(len(shape))]), shape)


_kept_iota = functools.lru_cache(256)(_iota)


class Iota(Nullary, name="iota"):
    """The index along an axis: result[i₀, i₁, ...] = i_axis.

    ``%0 = "smelt.iota"() {shape = array<i64: 4>, axis = 0 : i64, dtype = i32} : () -> tensor<4xi32>``
    """

    primitive = "Arange"
    kind = "movement"
    shape: Ints
    axis: Int
    dtype: Element
    sizes = ("shape",)
    gives_positions = True
    stays_symbolic = True

    def infer(self, *, shape: Ints, axis: Int, dtype: Element) -> Aval:
        require_axes((axis,), len(shape), "axis")
        require(all(d >= 0 for d in shape), f"shape {shape} has a negative extent", AttributeValueError)
        result = Aval(shape, dtype)
        require_dtype(result, dtypes.NUMERIC, "dtype")
        return result

    def reference(self, *, shape: Ints, axis: Int, dtype: Element) -> np.ndarray:
        if not all(shape):
            return np.empty(shape, dtype.numpy)
        return (_kept_iota if shape[axis] <= MOST_KEPT_IOTA else _iota)(shape, axis, dtype)

    def element(
        self, k: ScalarBuilder, index: Coordinates, fetch: Fetch, operands: Avals, result: Aval,
        *, shape: Ints, axis: Int, dtype: Element,
    ) -> Scalar:  # fmt: skip
        return k.convert(k.index(index[axis], dtypes.int64), dtype)
