"""Reading and writing at places that are known only at run time: gather and scatter."""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import dtypes
from ..aval import Aval
from ..dtypes import DType
from ..errors import AttributeValueError, DTypeError, IndexOutOfRangeError, NotDifferentiableError
from ..index import Coordinates
from ..kinds import Fetch, Fusible, align_batch, batch_size, silent
from ..op import (
    Avals,
    Batched,
    Cotangents,
    Dims,
    Flags,
    HostCall,
    Ints,
    Op,
    Operand,
    Operands,
    Str,
    Tangents,
    Values,
    only,
    require,
    require_axes,
    require_dtype,
    shifted,
)
from ..scalar import Scalar, ScalarBuilder
from .host_indexing import are_rows, rows, with_rows, write_rows

if TYPE_CHECKING:
    from ..builder import Builder, Value


class Gather(Fusible, name="gather"):
    """Windows of x at places given by index tensors, one for each axis in `axes`.

    result[i…, s…] = x[s + start(i)], where start is 0 along the other axes and
    clamp(indices[j][i], 0, extent - size) along axes[j]: a window never leaves x.

    ``%0 = "smelt.gather"(%x, %i) {axes = array<i64: 0>, slice_sizes = array<i64: 1, 3>} : (tensor<5x3xf32>, tensor<4xi32>) -> tensor<4x1x3xf32>``
    """

    kind = "gather"
    x: Operand
    indices: Operands
    axes: Ints
    slice_sizes: Ints
    sizes = ("slice_sizes",)
    linearity = "jointly"
    linear_operands = (0,)
    flops = 2.0

    def infer(self, x: Aval, *indices: Aval, axes: Ints, slice_sizes: Ints) -> Aval:
        shape = _check_indices(x, indices, axes)
        same = len(slice_sizes) == x.ndim
        require(same, f"slice_sizes {slice_sizes} needs one entry an axis", AttributeValueError)
        fits = all(0 <= s <= d for s, d in zip(slice_sizes, x.shape))
        require(fits, f"slice_sizes {slice_sizes} do not fit into shape {x.shape}", AttributeValueError)
        return x.with_shape((*shape, *slice_sizes))

    def reference(self, x: np.ndarray, *indices: np.ndarray, axes: Ints, slice_sizes: Ints) -> np.ndarray:
        shape = indices[0].shape if indices else ()
        rest = [a for a in range(x.ndim) if a not in axes]
        single = all(s == (1 if a in axes else d) for a, (s, d) in enumerate(zip(slice_sizes, x.shape)))
        if single and axes and x.size and x.flags.c_contiguous:
            found = _taken(x, [_clip(i, x.shape[a] - 1) for i, a in zip(indices, axes)], axes)
            if found is not None:
                return found.reshape(*shape, *slice_sizes)
        # Indexed axes in front: NumPy then looks up only those and copies the rest in runs.
        x = x[tuple(slice(None) if a in axes else slice(s) for a, s in enumerate(slice_sizes))]
        where = []
        for j, a in enumerate(axes):
            start = _clip(indices[j], x.shape[a] - slice_sizes[a])
            window = [-1 if i == j else 1 for i in range(len(axes))]
            where.append(start.reshape(*shape, *[1] * len(axes)) + np.arange(slice_sizes[a]).reshape(window))
        windows = x.transpose(*axes, *rest)[tuple(where)]
        order = np.argsort([*axes, *rest])
        return windows.transpose(*range(len(shape)), *(len(shape) + order))

    def host_call(self, operands: Avals, result: Aval, *, axes: Ints, slice_sizes: Ints) -> HostCall | None:
        x, *indices = operands
        if not are_rows(x, indices, axes, slice_sizes):
            return None
        return HostCall(rows, (tuple(x.shape[: len(axes)]), tuple(result.shape)))

    def check(self, x: np.ndarray, *indices: np.ndarray, axes: Ints, slice_sizes: Ints) -> None:
        _require_inside(self, indices, axes, [x.shape[a] - slice_sizes[a] for a in axes])

    def transpose(
        self, b: Builder, cotangents: Cotangents, operands: Values, linear: Flags, *, axes: Ints, slice_sizes: Ints
    ) -> Cotangents:
        ct, (x, *indices) = only(cotangents), operands
        # A scatter drops what a gather clamps, so the clamping has to be said here.
        clamped = [_clamp(b, i, x.shape[a] - slice_sizes[a]) for i, a in zip(indices, axes)]
        return [b.scatter(b.zeros(x.aval), ct, *clamped, axes=axes, mode="add"), *(None for _ in indices)]

    def batch(self, b: Builder, operands: Values, dims: Dims, *, axes: Ints, slice_sizes: Ints) -> Batched:
        (x, *indices), (dim, *index_dims) = operands, dims
        if all(d is None for d in index_dims):  # the batch axis of x is one more axis taken whole
            dim = only(dims)
            attrs = {
                "axes": shifted(axes, dim),
                "slice_sizes": (*slice_sizes[:dim], x.shape[dim], *slice_sizes[dim:]),
            }
            lead = indices[0].ndim if indices else 0
            return b.emit(self, operands, attrs), [lead + dim]
        indices = align_batch(b, indices, index_dims)
        if dim is None:
            return b.emit(self, [x, *indices], {"axes": axes, "slice_sizes": slice_sizes}), [0]
        indices = _with_iota(b, indices)
        attrs = {
            "axes": (dim, *shifted(axes, dim)),
            "slice_sizes": (*slice_sizes[:dim], 1, *slice_sizes[dim:]),
        }
        (found,) = b.emit(self, [x, *indices], attrs)
        return [b.reshape_to(found, (*indices[0].shape, *slice_sizes))], [0]

    def element(
        self, k: ScalarBuilder, index: Coordinates, fetch: Fetch, operands: Avals, result: Aval,
        *, axes: Ints, slice_sizes: Ints,
    ) -> Scalar:  # fmt: skip
        lead = result.ndim - len(slice_sizes)
        source = list(index[lead:])
        for j, a in enumerate(axes):
            high = operands[0].shape[a] - slice_sizes[a]
            if high or k.checks_indices:
                source[a] = source[a] + k.dynamic(fetch(1 + j, index[:lead]), 0, high)
        return fetch(0, tuple(source))


class Scatter(Op, name="scatter"):
    """x with windows of updates written, added, ... at places given by index tensors.

    result[s + start(i)] = f(x[s + start(i)], updates[i…, s…]) for i in row-major order, where start is
    indices[j][i] along axes[j] and 0 along the others; a window that would leave x is dropped. f by
    `mode`: "set" (the last one wins), "add" (bool: or), "mul" (bool: and), "max", "min" (both with NaN
    if either is NaN; elements that tie share the derivative equally).

    Derivatives are exact to any order, but for "mul" where several updates meet in one element: there
    second derivatives miss what flows through updates that are exactly zero.

    ``%0 = "smelt.scatter"(%x, %u, %i) {axes = array<i64: 0>, mode = "add"} : (tensor<5x3xf32>, tensor<4x1x3xf32>, tensor<4xi32>) -> tensor<5x3xf32>``
    """

    kind = "scatter"
    x: Operand
    updates: Operand
    indices: Operands
    axes: Ints
    mode: Str
    flops = 2.0

    def infer(self, x: Aval, updates: Aval, *indices: Aval, axes: Ints, mode: Str) -> Aval:
        require(mode in _MODES, f'mode "{mode}" must be one of {", ".join(_MODES)}', AttributeValueError)
        require(updates.dtype is x.dtype, "updates must have the dtype of x", DTypeError)
        shape = _check_indices(x, indices, axes)
        lead = len(shape)
        fits = updates.ndim == lead + x.ndim and updates.shape[:lead] == shape
        fits = fits and all(s <= d for s, d in zip(updates.shape[lead:], x.shape))
        require(fits, f"updates must have shape {shape} and then a window that fits into {x.shape}")
        return x

    @silent
    def reference(self, x: np.ndarray, updates: np.ndarray, *indices: np.ndarray, axes: Ints, mode: Str) -> np.ndarray:
        out = np.array(x, order="C")
        _write_windows(out, updates, indices, axes, mode)
        return out

    @silent
    def write(self, out: np.ndarray, updates: np.ndarray, *indices: np.ndarray, axes: Ints, mode: Str) -> None:
        """`reference` in the memory of x, which lies in row-major order."""
        lead = updates.ndim - out.ndim
        window = updates.shape[lead:]
        if not lead:
            _write_window(out, updates, indices, axes, mode)
            return
        x, *places = [Aval(a.shape, dtypes.of(a.dtype)) for a in (out, *indices)]
        if are_rows(x, places, axes, window):
            write_rows(_COMBINE.get(mode), out, updates, *indices, out.shape[: len(axes)])
        else:
            _write_windows(out, updates, indices, axes, mode)

    def host_call(self, operands: Avals, result: Aval, *, axes: Ints, mode: Str) -> HostCall | None:
        x, updates, *indices = operands
        if updates.ndim == x.ndim:  # one window
            return HostCall(_with_window, (axes, mode))
        if not are_rows(x, indices, axes, updates.shape[updates.ndim - x.ndim :]):
            return None
        return HostCall(_WITH_ROWS[mode], (tuple(x.shape[: len(axes)]),))

    def check(self, x: np.ndarray, updates: np.ndarray, *indices: np.ndarray, axes: Ints, mode: Str) -> None:
        lead = updates.ndim - x.ndim
        _require_inside(self, indices, axes, [x.shape[a] - updates.shape[lead + a] for a in axes])

    def jvp(
        self, b: Builder, primals: Values, tangents: Tangents, results: Values, *, axes: Ints, mode: Str
    ) -> Tangents:
        (x, updates, *indices), (tx, tu, *_), (y,) = primals, tangents, results
        if tx is None and tu is None:
            return [None]

        def scatter(into: Value, what: Value, mode: str) -> Value:
            return b.scatter(into, what, *indices, axes=axes, mode=mode)

        def gather(source: Value) -> Value:
            size = updates.shape[updates.ndim - x.ndim :]
            return b.gather(source, *indices, axes=axes, slice_sizes=size)

        zeros = b.zeros_like(x)
        if mode == "add" and tu is None:
            return [tx]
        if mode in ("add", "set"):
            tx = zeros if tx is None else tx
            return [scatter(tx, b.zeros_like(updates) if tu is None else tu, mode)]
        if mode == "mul":
            total: Value | None = None
            if tx is not None:
                total = tx * scatter(b.full(x.shape, 1, x.dtype), updates, "mul")
            if tu is not None:
                # The product of all but one update, exact at zeros: with no zero among them it is
                # product / update; with one, only that one's is not zero.
                zero = b.equal(updates, b.zeros_like(updates))
                nonzero = b.select(zero, b.full(updates.shape, 1, x.dtype), updates)
                product = gather(scatter(x, nonzero, "mul"))
                ones = b.convert_to(zero, dtypes.int32)
                others = gather(scatter(b.full(x.shape, 0, dtypes.int32), ones, "add")) - ones
                alone = b.equal(others, b.zeros_like(others))
                without = b.select(alone, product / nonzero, b.zeros_like(updates))
                total = b.add_any(total, scatter(zeros, tu * without, "add"))
            return [total]
        won = b.convert_to(b.equal(updates, gather(y)), x.dtype)
        kept = b.convert_to(b.equal(x, y), x.dtype)
        count = scatter(kept, won, "add")
        shared = zeros if tx is None else tx * kept
        if tu is not None:
            shared = scatter(shared, tu * won, "add")
        return [shared / count]

    def transpose(
        self, b: Builder, cotangents: Cotangents, operands: Values, linear: Flags, *, axes: Ints, mode: Str
    ) -> Cotangents:
        """Of "add" and "set": the updates' cotangent is gathered where their windows went."""
        ct, (x, updates, *indices) = only(cotangents), operands
        if mode not in ("add", "set"):
            raise NotDifferentiableError(f'smelt.scatter in mode "{mode}" is not linear')
        to_x = to_updates = None
        if linear[0]:
            to_x = ct
            if mode == "set":
                to_x = b.scatter(ct, b.zeros(updates.aval), *indices, axes=axes, mode="set")
        if linear[1]:
            lead = updates.ndim - x.ndim
            shape, window = updates.shape[:lead], updates.shape[lead:]
            found = b.gather(ct, *indices, axes=axes, slice_sizes=window)
            effective = None  # which updates reached the result
            count = math.prod(shape)
            if mode == "set" and count > 1:
                kind = _index_dtype(dtypes.int32, count)
                ids = b.iota(shape=(count,), axis=0, dtype=kind)
                ids = b.broadcast_to(b.reshape_to(ids, (*shape, *[1] * x.ndim)), updates.shape)
                last = b.scatter(b.full(x.shape, -1, kind), ids, *indices, axes=axes, mode="set")
                effective = b.equal(b.gather(last, *indices, axes=axes, slice_sizes=window), ids)
            else:
                inside = _all_inside(b, indices, [x.shape[a] - window[a] for a in axes])
                if inside is not None:
                    inside = b.reshape_to(inside, (*shape, *[1] * x.ndim))
                    effective = b.broadcast_to(inside, updates.shape)
            to_updates = found if effective is None else b.select(effective, found, b.zeros_like(found))
        return [to_x, to_updates, *(None for _ in indices)]

    def batch(self, b: Builder, operands: Values, dims: Dims, *, axes: Ints, mode: Str) -> Batched:
        (x, updates, *indices), (dim, update_dim, *index_dims) = operands, dims
        size, lead = batch_size(operands, dims), updates.ndim - (update_dim is not None) - _rank(x, dim)
        if dim is None:
            x, dim = b.broadcast_to(x, (size, *x.shape)), 0
        if update_dim is None:
            updates, update_dim = b.broadcast_to(updates, (size, *updates.shape)), 0
        if all(d is None for d in index_dims):  # one more window axis, as wide as x
            updates = b.move_axis(updates, update_dim, lead + dim)
            attrs = {"axes": shifted(axes, dim), "mode": mode}
            return b.emit(self, [x, updates, *indices], attrs), [dim]
        indices = align_batch(b, indices, index_dims)
        updates = b.move_axis(updates, update_dim, 0)
        at = 1 + lead + dim
        updates = b.reshape_to(updates, (*updates.shape[:at], 1, *updates.shape[at:]))
        indices = _with_iota(b, indices)
        attrs = {"axes": (dim, *shifted(axes, dim)), "mode": mode}
        return b.emit(self, [x, updates, *indices], attrs), [dim]

    # Lowering: copy x, then for each element of updates in order, `combine` at its `place`.

    def place(
        self, k: ScalarBuilder, index: Coordinates, fetch: Fetch, operands: Avals, *, axes: Ints, mode: Str
    ) -> tuple[Scalar, Coordinates]:
        """Where the element of updates at `index` goes: whether inside x, and its index there."""
        x, updates = operands[:2]
        lead = updates.ndim - x.ndim
        target, inside = list(index[lead:]), k.const(True, dtypes.bool_)
        for j, a in enumerate(axes):
            start, high = fetch(2 + j, index[:lead]), x.shape[a] - updates.shape[lead + a]
            if start.dtype.kind == "i":
                inside = k.logical_and(inside, start >= 0)
            if high < np.iinfo(start.dtype.numpy).max:
                inside = k.logical_and(inside, start <= high)
            target[a] = target[a] + k.dynamic(start, 0, high)
        return inside, tuple(target)

    def combine(self, k: ScalarBuilder, old: Scalar, new: Scalar, *, mode: Str) -> Scalar:
        """The element after one more update."""
        is_bool = old.dtype.kind == "b"
        if mode == "set":
            return new
        if mode == "add":
            return old | new if is_bool else old + new
        if mode == "mul":
            return old & new if is_bool else old * new
        if mode == "max":
            return old | new if is_bool else k.maximum(old, new)
        return old & new if is_bool else k.minimum(old, new)


#: How an element changes; "set" replaces it.
_COMBINE: dict[str, np.ufunc] = {"add": np.add, "mul": np.multiply, "max": np.maximum, "min": np.minimum}
_MODES = ("set", *_COMBINE)
_WITH_ROWS = {mode: functools.partial(with_rows, _COMBINE.get(mode)) for mode in _MODES}


def _with_window(x: np.ndarray, updates: np.ndarray, *given: Any) -> np.ndarray:
    """`Scatter.reference` of one window. `given`: index arrays, `axes` and `mode`."""
    *indices, axes, mode = given
    out = np.array(x, order="C")
    _write_window(out, updates, indices, axes, mode)
    return out


def _write_window(out: np.ndarray, updates: np.ndarray, indices: Sequence[np.ndarray], axes: Ints, mode: Str) -> None:
    """The same in the memory of x: a slice of it."""
    starts = dict(zip(axes, map(int, indices)))
    window = updates.shape
    if all(0 <= start <= out.shape[a] - window[a] for a, start in starts.items()):
        part = out[tuple([slice(starts.get(a, 0), starts.get(a, 0) + d) for a, d in enumerate(window)])]
        part[...] = updates if mode == "set" else _COMBINE[mode](part, updates)


def _write_windows(
    out: np.ndarray, updates: np.ndarray, indices: Sequence[np.ndarray], axes: Ints, mode: Str
) -> None:
    """`Scatter.reference` in the memory of x, which lies in row-major order."""
    lead = updates.ndim - out.ndim
    shape, window = updates.shape[:lead], updates.shape[lead:]
    valid = np.ones(shape, bool)
    offset = np.zeros(updates.shape, np.int64)  # row-major, of each element of updates
    stride = 1
    for a in reversed(range(out.ndim)):
        line = np.arange(window[a]).reshape([-1 if i == a else 1 for i in range(out.ndim)])
        if a in axes:
            start, high = indices[axes.index(a)], out.shape[a] - window[a]
            valid &= (start >= 0) & (start <= high)
            line = _clip(start, high).reshape(*shape, *[1] * out.ndim) + line
        offset += line * stride
        stride *= out.shape[a]
    flat, at, values = out.reshape(-1), offset[valid].reshape(-1), updates[valid].reshape(-1)
    if mode == "set":
        flat[at] = values
    else:
        _COMBINE[mode].at(flat, at, values)


def take_along(b: Builder, x: Value, index: Value, axis: int) -> Value:
    """result[…, i, …] = x[…, index[…, i, …], …]: one index into `axis` for each element."""
    if not index.aval.size:  # not even one element to take from
        return b.zeros(x.aval.with_shape(index.shape))
    dtype = _index_dtype(index.dtype, max(index.shape))
    index = b.convert_to(index, dtype)
    indices = [index if a == axis else b.iota(shape=index.shape, axis=a, dtype=dtype) for a in range(x.ndim)]
    found = b.gather(x, *indices, axes=tuple(range(x.ndim)), slice_sizes=(1,) * x.ndim)
    return b.reshape_to(found, index.shape)


def _check_indices(x: Aval, indices: Sequence[Aval], axes: Ints) -> tuple[int, ...]:
    """The shape that all index tensors have."""
    require_axes(axes, x.ndim)
    require(len(indices) == len(axes), f"needs one index tensor an axis in axes {axes}")
    for index in indices:
        require_dtype(index, dtypes.INTEGERS, "an index tensor")
        require(index.shape == indices[0].shape, "index tensors must have the same shape")
        require(index.dtype is indices[0].dtype, "index tensors must have the same dtype", DTypeError)
    return indices[0].shape if indices else ()


def _taken(x: np.ndarray, starts: Sequence[np.ndarray], axes: Ints) -> np.ndarray | None:
    """Single elements along `axes` of a contiguous array, all of it along the others, by NumPy's `take`: it is quicker
    than indexing. None where it does not serve."""
    lead = len(axes)
    if sorted(axes) == list(range(lead)):  # rows, each found by one number
        flat = sum(start * math.prod(x.shape[a + 1 : lead]) for start, a in zip(starts, axes))
        return x.reshape(math.prod(x.shape[:lead]), -1).take(flat, 0, mode="clip")
    if lead > 1:
        return None
    (start,), (axis,) = starts, axes
    found = x.take(start, axis, mode="clip")
    return found.transpose(*range(axis, axis + start.ndim), *range(axis), *range(axis + start.ndim, found.ndim))


def _clip(start: np.ndarray, high: int) -> np.ndarray:
    """`start` within 0 … high, as int64 (uint64 beyond int64 included)."""
    if start.dtype == np.uint64:
        start = np.minimum(start, np.uint64(np.iinfo(np.int64).max))
    return np.clip(start.astype(np.int64), 0, max(high, 0))


def _require_inside(op: Op, indices: Sequence[np.ndarray], axes: Ints, highs: Sequence[int]) -> None:
    """Raise IndexOutOfRangeError for an index outside 0 … high of its axis."""
    for index, axis, high in zip(indices, axes, highs):
        outside = (index < 0) | (index > high)
        if outside.any():
            value = index[outside].flat[0]
            message = f"smelt.{op.name}: index {value} into axis {axis} lies outside 0 … {high} (SMELT_CHECK=1)"
            raise IndexOutOfRangeError(message)  # `run_op` adds the line


def _known_inside(index: Value, high: int) -> bool:
    """Whether `index` is seen to lie within 0 … high: batching and sorting make such indices."""
    made = index.defined_by("iota")
    return made is not None and made.attrs["shape"][made.attrs["axis"]] - 1 <= high


def _clamp(b: Builder, index: Value, high: int) -> Value:
    """`index` limited to 0 … high."""
    if _known_inside(index, high):
        return index
    if index.dtype.kind == "i":
        index = b.maximum(index, b.zeros_like(index))
    if high < np.iinfo(index.dtype.numpy).max:
        index = b.minimum(index, b.full(index.shape, high, index.dtype))
    return index


def _all_inside(b: Builder, indices: Values, highs: Sequence[int]) -> Value | None:
    """Where all indices lie within 0 … high; None where that is everywhere."""
    inside = None
    for index, high in zip(indices, highs):
        if _known_inside(index, high):
            continue
        ok = b.equal(index, _clamp(b, index, high))
        inside = ok if inside is None else b.logical_and(inside, ok)
    return inside


def _index_dtype(dtype: DType, extent: int) -> DType:
    """`dtype` if it holds the indices below `extent`, else a wider one: all indices of an op have one dtype."""
    if extent - 1 <= np.iinfo(dtype.numpy).max:
        return dtype
    return dtypes.int32 if extent <= 2**31 else dtypes.int64


def _with_iota(b: Builder, indices: Values) -> list[Value]:
    """Index tensors preceded by the index along their first axis."""
    shape = indices[0].shape
    dtype = _index_dtype(indices[0].dtype, shape[0])
    return [b.iota(shape=shape, axis=0, dtype=dtype), *(b.convert_to(i, dtype) for i in indices)]


def _rank(x: Value, dim: int | None) -> int:
    """The number of axes without the batch axis."""
    return x.ndim - (dim is not None)
