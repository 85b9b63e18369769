"""Places known at run time: slices, gathers and scatters of all dimension numbers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from smelt.ir import dtypes, stablehlo
from smelt.ir.op import registry as ops

from ...lazy.arrays import array, convert, emit
from ...transforms.control import scan
from ..reading import Call, Region, rule
from .elementwise import apply, full_like
from .shapes import permuted, reshaped


@rule("stablehlo.dynamic_slice")
def _dynamic_slice(call: Call) -> array:
    x, starts, sizes = call.x, call.operands[1:], call.ints("slice_sizes")
    axes = tuple(a for a, (size, extent) in enumerate(zip(sizes, x.shape)) if size < extent)
    if not axes:
        return x
    return emit(ops["gather"], (x, *_alike([starts[a] for a in axes])), {"axes": axes, "slice_sizes": sizes})


def _alike(starts: Sequence[array]) -> list[array]:
    """Indices of one dtype, in which small sums do not wrap."""
    kinds = {x.dtype for x in starts}
    kind = starts[0].dtype if len(kinds) == 1 and starts[0].dtype.size >= 4 else dtypes.int64
    return [convert(x, kind) for x in starts]


@rule("stablehlo.dynamic_update_slice")
def _dynamic_update_slice(call: Call) -> array:
    """A scatter; the window is moved inside, which a scatter would not do."""
    x, update, *starts = call.operands
    axes = tuple(a for a, (size, extent) in enumerate(zip(update.shape, x.shape)) if size < extent)
    if not axes:
        return update
    inside = []
    for a, start in zip(axes, _alike([starts[a] for a in axes])):
        inside.append(apply("clamp", full_like(start, 0), start, full_like(start, x.shape[a] - update.shape[a])))
    return emit(ops["scatter"], (x, update, *inside), {"axes": axes, "mode": "set"})


def _index_parts(indices: array, vector: int, count: int) -> tuple[list[array], tuple[int, ...]]:
    """The tensors of indices of each axis, and the shape that they share."""
    if vector == indices.ndim:
        return [indices], indices.shape
    shape = (*indices.shape[:vector], *indices.shape[vector + 1 :])
    parts = []
    for i in range(count):
        start, stop = [0] * indices.ndim, list(indices.shape)
        start[vector], stop[vector] = i, i + 1
        attrs = {"start": tuple(start), "stop": tuple(stop), "stride": (1,) * indices.ndim}
        parts.append(reshaped(emit(ops["slice"], (indices,), attrs), shape))
    return parts, shape


def _with_batch(parts: list[array], shape: tuple[int, ...], dims: Sequence[int], vector: int, kind: Any) -> list[array]:
    """The indices, and one that counts for each axis of the batch."""
    found = [convert(p, kind) for p in parts]
    for d in dims:
        axis = d - (d > vector)
        found.append(emit(ops["iota"], (), {"shape": shape, "axis": axis, "dtype": kind}))
    return found


def _index_dtype(indices: array) -> Any:
    return indices.dtype if indices.dtype.size >= 4 else dtypes.int32


@rule("stablehlo.gather")
def _gather(call: Call) -> array:
    x, indices = call.operands
    n = stablehlo.bindings().GatherDimensionNumbers(call.attribute("dimension_numbers"))
    sizes = call.ints("slice_sizes")
    parts, shape = _index_parts(indices, n.index_vector_dim, len(n.start_index_map))
    where = _with_batch(parts, shape, n.start_indices_batching_dims, n.index_vector_dim, _index_dtype(indices))
    axes = (*n.start_index_map, *n.operand_batching_dims)
    found = emit(ops["gather"], (x, *where), {"axes": axes, "slice_sizes": sizes})
    dropped = {*n.collapsed_slice_dims, *n.operand_batching_dims}
    window = tuple(s for a, s in enumerate(sizes) if a not in dropped)
    found = reshaped(found, (*shape, *window))
    lead, offsets = iter(range(len(shape))), sorted(n.offset_dims)
    place = {axis: len(shape) + i for i, axis in enumerate(offsets)}
    return permuted(found, tuple(place[a] if a in place else next(lead) for a in range(found.ndim)))


def _mode(region: Region, is_bool: bool) -> str | None:
    if region.is_choice() == 1:
        return "set"
    modes = {
        "stablehlo.add": "add",
        "stablehlo.multiply": "mul",
        "stablehlo.maximum": "max",
        "stablehlo.minimum": "min",
    }
    if is_bool:
        modes.update({"stablehlo.or": "add", "stablehlo.and": "mul"})
    return modes.get(region.single() or "")


@rule("stablehlo.scatter")
def _scatter(call: Call) -> list[array]:
    count = (len(call.operands) - 1) // 2
    xs, indices, updates = call.operands[:count], call.operands[count], call.operands[count + 1 :]
    n = stablehlo.bindings().ScatterDimensionNumbers(call.attribute("scatter_dimension_numbers"))
    x = xs[0]
    parts, shape = _index_parts(indices, n.index_vector_dim, len(n.scattered_dims_to_operand_dims))
    where = _with_batch(parts, shape, n.scatter_indices_batching_dims, n.index_vector_dim, _index_dtype(indices))
    axes = (*n.scattered_dims_to_operand_dims, *n.input_batching_dims)
    windows = sorted(n.update_window_dims)
    dropped = {*n.inserted_window_dims, *n.input_batching_dims}
    order = (*(a for a in range(updates[0].ndim) if a not in windows), *windows)
    extents = iter(updates[0].shape[a] for a in windows)
    window = tuple(1 if a in dropped else next(extents) for a in range(x.ndim))
    updates = [reshaped(permuted(u, order), (*shape, *window)) for u in updates]
    (region,) = call.regions
    mode = _mode(region, x.dtype is dtypes.bool_) if count == 1 else None
    if mode is not None:
        return [emit(ops["scatter"], (x, updates[0], *where), {"axes": axes, "mode": mode})]
    return _one_by_one(xs, updates, where, axes, window, region)


def _one_by_one(
    xs: Sequence[array], updates: Sequence[array], where: Sequence[array], axes: tuple[int, ...],
    window: tuple[int, ...], region: Region,
) -> list[array]:  # fmt: skip
    """A scatter by any function: a loop over the updates."""
    shape = where[0].shape if where else ()
    count = 1
    for d in shape:
        count *= d
    rows = [reshaped(u, (count, *window)) for u in updates]
    places = [reshaped(i, (count,)) for i in where]

    def step(carry: list[array], item: list[array]) -> tuple[list[array], None]:
        news, at = item[: len(carry)], item[len(carry) :]
        attrs = {"axes": axes, "slice_sizes": window}
        olds = [emit(ops["gather"], (x, *at), attrs) for x in carry]
        found = region.over(*olds, *news)
        return [emit(ops["scatter"], (x, y, *at), {"axes": axes, "mode": "set"}) for x, y in zip(carry, found)], None

    last, _ = scan(step, list(xs), [*rows, *places], length=count)
    return list(last)
