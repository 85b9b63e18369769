"""Elements at places, and writes to these."""

from __future__ import annotations

from typing import Any

import smelt
from smelt import array

from ...translating import Refused
from ...windows import lowest
from ..graph import Node, converted, rule


@rule("aten.index")
def _index(n: Node, x: array, indices: list[array | None]) -> array:
    return x[tuple(slice(None) if i is None else i for i in indices)]


@rule("aten.index_put")
def _index_put(n: Node, x: array, indices: list[array | None], values: array, accumulate: bool) -> array:
    place = x.at[tuple(slice(None) if i is None else i for i in indices)]
    return place.add(values) if accumulate else place.set(values)


@rule("aten.index_select")
def _index_select(n: Node, x: array, dim: int, index: array) -> array:
    return smelt.take(x, index.reshape(-1), axis=dim) if x.ndim else x


@rule("aten.embedding")
def _embedding(n: Node, weight: array, indices: array, *_: Any) -> array:
    return smelt.take(weight, indices, axis=0)


@rule("aten.embedding_dense_backward")
def _embedding_backward(n: Node, g: array, indices: array, count: int, padding: int, by_frequency: bool) -> array:
    if by_frequency:
        raise Refused("scaled by frequency is not translated")
    rows = g.reshape(-1, g.shape[-1])
    at = indices.reshape(-1)
    rows = smelt.where((at == padding)[:, None], 0, rows)
    return smelt.zeros((count, g.shape[-1]), g.dtype).at[at].add(rows)


@rule("aten._embedding_bag", "aten._embedding_bag_forward_only")
def _embedding_bag(n: Node, weight: array, indices: array, offsets: array, by_frequency: bool, mode: int, sparse: bool,
                   scales: array | None, last: bool, padding: int) -> list[array]:  # fmt: skip
    """Sums (mode 0), means (1) or maxima (2) of the rows of each bag; bags begin at `offsets`."""
    starts = offsets[:-1] if last else offsets
    count, bags = indices.shape[0], starts.shape[0]
    bag = smelt.searchsorted(starts, smelt.arange(count).astype(starts.dtype), "right") - 1
    rows = smelt.take(weight, indices, axis=0)
    rows = rows if scales is None else rows * scales[:, None]
    here = (indices != padding)[:, None]
    sizes = smelt.zeros((bags,), smelt.int64).at[bag].add(here[:, 0].astype(smelt.int64))
    zero = smelt.zeros((bags, weight.shape[1]), weight.dtype)
    if mode == 2:
        most = smelt.full_like(zero, -smelt.inf).at[bag].maximum(smelt.where(here, rows, -smelt.inf))
        found = smelt.where(sizes[:, None] > 0, most, 0)
    else:
        found = zero.at[bag].add(smelt.where(here, rows, 0))
        found = found / smelt.maximum(sizes, 1)[:, None].astype(found.dtype) if mode == 1 else found
    places = [smelt.zeros(tuple(f.shape), smelt.int64) for f in n.fakes[1:]]
    return [found, *places]  # the others are for the derivative, which is not made from these here


@rule("aten.gather")
def _gather(n: Node, x: array, dim: int, index: array, *_: Any) -> array:
    """The index may be shorter than the array along the other axes."""
    if not x.ndim or not index.size:
        return smelt.broadcast_to(x, index.shape) if index.size else smelt.zeros(index.shape, x.dtype)
    dim = dim % x.ndim
    part = tuple(slice(None) if a == dim else slice(d) for a, d in enumerate(index.shape))
    return smelt.take_along_axis(x[part], index, dim)


def _place(x: array, dim: int, index: array) -> Any:
    """Where an index along one axis points."""
    dim = dim % x.ndim
    lines = [smelt.arange(d).reshape(-1, *(1,) * (x.ndim - 1 - a)) for a, d in enumerate(index.shape)]
    lines[dim] = index
    return x.at[tuple(lines)]


def _source(x: array, index: array, source: Any) -> array:
    """What is written, of the shape of the index."""
    if isinstance(source, array) and source.ndim:
        return converted(source[tuple(slice(d) for d in index.shape)], x.dtype)
    return smelt.broadcast_to(smelt.array(source).astype(x.dtype), index.shape)


_MODES = {"add": "sum", "multiply": "prod"}


@rule("aten.scatter", "aten.scatter_add", "aten.scatter_reduce")
def _scatter(n: Node, x: array, dim: int, index: array, source: Any, reduce: str = "", with_self: bool = True) -> array:
    if not index.size:
        return x
    if not x.ndim:
        found = _scatter(n, x.reshape(1), 0, index.reshape(1), smelt.array(source).reshape(1), reduce, with_self)
        return found.reshape(())
    place, values = _place(x, dim, index), _source(x, index, source)
    mode = "sum" if n.op.startswith("aten.scatter_add") else _MODES.get(reduce, reduce)
    if not mode:
        return place.set(values)
    if not with_self:
        neutral = {"sum": 0, "mean": 0, "prod": 1, "amax": lowest(x), "amin": -lowest(x) - (not x.dtype.is_inexact)}
        x = place.set(neutral[mode])
        place = _place(x, dim, index)
    if mode == "mean":
        count = _place(smelt.zeros(x.shape, smelt.int32), dim, index).add(1) + with_self
        total = place.add(values)
        count = smelt.maximum(count, 1)
        return total / count.astype(x.dtype) if x.dtype.is_inexact else smelt.floor_divide(total, count.astype(x.dtype))
    return {"sum": place.add, "prod": place.multiply, "amax": place.maximum, "amin": place.minimum}[mode](values)


@rule("aten.masked_scatter")
def _masked_scatter(n: Node, x: array, mask: array, source: array) -> array:
    """The elements of the source, in order, where the mask holds."""
    mask = smelt.broadcast_to(mask, x.shape)
    flat = mask.reshape(-1)
    at = smelt.maximum(smelt.cumsum(flat.astype(smelt.int32)) - 1, 0)
    return smelt.where(mask, smelt.take(source.reshape(-1), at, axis=0).reshape(x.shape), x)


@rule("aten.masked_select")
def _masked_select(n: Node, x: array, mask: array) -> array:
    x, mask = smelt.broadcast_arrays(x, mask)
    return x[mask]


@rule("aten.nonzero")
def _nonzero(n: Node, x: array) -> array:
    return smelt.argwhere(x)


@rule("aten._local_scalar_dense", "aten.item")
def _item(n: Node, x: array) -> Any:
    return x.item()
