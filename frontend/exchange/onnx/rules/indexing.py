"""Places in arrays: gathers, scatters, orders, and results whose shape depends on values."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

import smelt
from smelt import array

from ...translating import Refused
from ..graph import Node, rule


def positive(indices: array, extent: int) -> array:
    """Places counted from the start, where negative ones count from the end."""
    return smelt.where(indices < 0, indices + extent, indices) if indices.dtype.kind == "i" else indices


@rule("Gather")
def _gather(n: Node) -> array:
    axis = n.attr("axis", 0)
    return smelt.take(n.x, positive(n[1], n.x.shape[axis]), axis)


@rule("ArrayFeatureExtractor", domain="ai.onnx.ml")
def _feature_extractor(n: Node) -> array:
    return smelt.take(n.x, n[1].reshape(-1), n.x.ndim - 1)


@rule("GatherElements")
def _gather_elements(n: Node) -> array:
    """Other axes of the indices may be shorter than the array's."""
    axis = n.attr("axis", 0) % n.x.ndim
    indices = positive(n[1], n.x.shape[axis])
    inside = tuple(slice(None) if a == axis else slice(d) for a, d in enumerate(indices.shape))
    return smelt.take_along_axis(n.x[inside], indices, axis)


@rule("GatherND")
def _gather_nd(n: Node) -> array:
    x, indices, batch = n[0], n[1], n.attr("batch_dims", 0)
    return x[_coordinates(indices, x.shape, batch)]


def _coordinates(indices: array, shape: tuple[int, ...], batch: int = 0) -> tuple[array, ...]:
    """One array of places for each axis that the last axis of `indices` counts, after the axes of the batch."""
    lead = indices.shape[:-1]
    found = []
    for axis in range(batch):
        at = smelt.arange(shape[axis]).reshape(-1, *(1,) * (len(lead) - axis - 1))
        found.append(smelt.broadcast_to(at, lead).astype(indices.dtype))
    found += [positive(indices[..., i], shape[batch + i]) for i in range(indices.shape[-1])]
    return tuple(found)


#: Methods of `x.at[...]` by the names of reductions.
_METHODS = {"add": "add", "mul": "multiply", "max": "maximum", "min": "minimum"}


def _scattered(x: array, where: tuple[array, ...], updates: array, reduction: str) -> array:
    if reduction == "none":
        return _set(x, where, updates)
    method = _METHODS.get(reduction)
    if method is None:
        raise Refused(f"has reduction {reduction!r}; there are none, {', '.join(_METHODS)}")
    found: Callable[[array], array] = getattr(x.at[where], method)
    return found(updates)


def _set(x: array, where: tuple[array, ...], updates: array) -> array:
    found = smelt.array(x)
    found[where] = updates
    return found


@rule("ScatterElements", "Scatter")
def _scatter_elements(n: Node) -> array:
    x, indices, updates = n.inputs[:3]
    axis = n.attr("axis", 0) % x.ndim
    where = []
    for a, extent in enumerate(indices.shape):
        if a == axis:
            where.append(positive(indices, x.shape[axis]))
        else:
            at = smelt.arange(extent).reshape(*(-1 if b == a else 1 for b in range(x.ndim)))
            where.append(smelt.broadcast_to(at, indices.shape).astype(indices.dtype))
    return _scattered(x, tuple(where), updates, n.text("reduction", "none"))


@rule("ScatterND")
def _scatter_nd(n: Node) -> array:
    x, indices, updates = n.inputs[:3]
    return _scattered(x, _coordinates(indices, x.shape), updates, n.text("reduction", "none"))


@rule("TensorScatter")
def _tensor_scatter(n: Node) -> array:
    """Updates of a cache, for each batch from a place on."""
    x, update = n[0], n[1]
    axis = n.attr("axis", -2) % x.ndim
    start = smelt.zeros((x.shape[0],), smelt.int64) if n[2] is None else n[2]
    along = smelt.arange(update.shape[axis]).reshape(*(-1 if a == axis else 1 for a in range(x.ndim)))
    place = along + start.reshape(-1, *(1,) * (x.ndim - 1))
    if n.text("mode", "linear") == "circular":
        place = smelt.remainder(place, x.shape[axis])
    return smelt.put_along_axis(x, smelt.broadcast_to(place, update.shape), update, axis)


@rule("ArgMax", "ArgMin")
def _arg_extremum(n: Node) -> array:
    axis, keep = n.attr("axis", 0), bool(n.attr("keepdims", 1))
    find = smelt.argmax if n.op == "ArgMax" else smelt.argmin
    x = n.x
    if n.attr("select_last_index", 0):
        found = x.shape[axis] - 1 - find(smelt.flip(x, axis), axis, keep).astype(smelt.int64)
    else:
        found = find(x, axis, keep)
    return found.astype(smelt.int64)


@rule("TopK")
def _top_k(n: Node) -> tuple[array, ...]:
    x, axis = n.x, n.attr("axis", -1)
    k = int(n.known(1).reshape(-1)[0])
    order = smelt.argsort(x, axis, descending=bool(n.attr("largest", 1)), stable=True)
    index = [slice(None)] * x.ndim
    index[axis] = slice(k)
    order = order[tuple(index)]
    return smelt.take_along_axis(x, order, axis), order.astype(smelt.int64)


@rule("CumSum", "CumProd")
def _cumulative(n: Node) -> array:
    axis = int(n.known(1).reshape(()))
    function = smelt.cumsum if n.op == "CumSum" else smelt.cumprod
    found = function(n.x, axis, reverse=bool(n.attr("reverse", 0)), inclusive=not n.attr("exclusive", 0))
    return found.astype(n.x.dtype)


@rule("OneHot")
def _one_hot(n: Node) -> array:
    depth = int(n.known(1).reshape(-1)[0])
    off, on = n[2][0], n[2][1]
    indices = n.x if n.x.dtype.kind in "iu" else n.x.astype(smelt.int64)
    indices = positive(indices, depth)
    axis = n.attr("axis", -1)
    axis += n.x.ndim + 1 if axis < 0 else 0
    shape = [1] * (n.x.ndim + 1)
    shape[axis] = depth
    hit = smelt.expand_dims(indices, axis) == smelt.arange(depth).astype(indices.dtype).reshape(*shape)
    return smelt.where(hit, on, off)


@rule("Hardmax")
def _hardmax(n: Node) -> array:
    axis = n.attr("axis", -1 if n.version >= 13 else 1)
    x = n.x
    if n.version < 13:
        flat = x.reshape(int(np.prod(x.shape[: axis % x.ndim], dtype=int)), -1)
        return _first_largest(flat, 1).reshape(*x.shape)
    return _first_largest(x, axis)


def _first_largest(x: array, axis: int) -> array:
    at = smelt.arange(x.shape[axis]).reshape(*(-1 if a == axis % x.ndim else 1 for a in range(x.ndim)))
    return (at == smelt.argmax(x, axis, True).astype(at.dtype)).astype(x.dtype)


@rule("NonZero")
def _non_zero(n: Node) -> array:
    found = np.array(np.nonzero(n.known(0)), np.int64)
    return smelt.array(found.reshape(max(n.x.ndim, 1), -1), smelt.int64)


@rule("Compress")
def _compress(n: Node) -> array:
    axis = n.attr("axis")
    x = n.x.reshape(-1) if axis is None else n.x
    at = np.nonzero(n.known(1))[0]
    return smelt.take(x, smelt.array(at, smelt.int64), 0 if axis is None else axis)


@rule("Unique")
def _unique(n: Node) -> tuple[array, ...]:
    """On the host: the shape depends on the values."""
    axis, x = n.attr("axis"), n.known(0)
    _, first, inverse, counts = np.unique(x, True, True, True, axis=axis)
    order = np.arange(len(first)) if n.attr("sorted", 1) else np.argsort(first, kind="stable")
    rank = np.empty_like(order)
    rank[order] = np.arange(len(order))
    source = n.x.reshape(-1) if axis is None else n.x
    values = smelt.take(source, smelt.array(first[order], smelt.int64), 0 if axis is None else axis)
    found = (first[order], rank[inverse.reshape(-1)], counts[order])
    return (values, *(smelt.array(a, smelt.int64) for a in found))


@rule("NonMaxSuppression")
def _non_max_suppression(n: Node) -> array:
    """On the host: boxes of a class by score, without those that overlap a better one too much."""
    boxes, scores = n.known(0), n.known(1)
    most = int(n.known(2).reshape(-1)[0]) if n[2] is not None else 0
    overlap = float(n.known(3).reshape(-1)[0]) if n[3] is not None else 0.0
    least = float(n.known(4).reshape(-1)[0]) if n[4] is not None else -np.inf
    if n.attr("center_point_box", 0):
        middle, half = boxes[..., :2], boxes[..., 2:] / 2
        boxes = np.concatenate([middle - half, middle + half], -1)
    low, high = np.minimum(boxes[..., :2], boxes[..., 2:]), np.maximum(boxes[..., :2], boxes[..., 2:])
    area = np.prod(high - low, -1)
    found: list[tuple[int, int, int]] = []
    for b, c in np.ndindex(scores.shape[:2]):
        kept: list[int] = []
        for i in np.argsort(-scores[b, c], kind="stable"):
            if len(kept) >= most or scores[b, c, i] <= least:
                break
            both = np.prod(
                np.maximum(0, np.minimum(high[b, kept], high[b, i]) - np.maximum(low[b, kept], low[b, i])), -1
            )
            if not np.any(both > overlap * (area[b, kept] + area[b, i] - both)):
                kept.append(int(i))
        found += [(b, c, i) for i in kept]
    return smelt.array(np.array(found, np.int64).reshape(-1, 3), smelt.int64)
