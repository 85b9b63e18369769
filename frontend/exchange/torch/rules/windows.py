"""Convolutions, pooling, and their derivatives: the channels are axis 1, the axes of space come after it.

One picture of a batch may come without its axis: PyTorch's functions for pooling take such.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

import smelt
from smelt import array

from ....nn.layers.adaptive_pooling import pooled
from ...windows import Windows, convolved, larger, lowest, transposed
from ..graph import Node, rule


def _each(value: Any, rank: int, default: Sequence[int] = ()) -> list[int]:
    """One number an axis: of a list of one that, of an empty one the default."""
    given = [value] if isinstance(value, int) else list(value)
    return given * rank if len(given) == 1 else given or list(default)


@rule("aten.convolution")
def convolution(n: Node, x: array, w: array, bias: array | None, stride: Any, padding: Any, dilation: Any,
                reversed_: bool, extra: Any, groups: int) -> array:  # fmt: skip
    rank = w.ndim - 2
    stride, padding, dilation = _each(stride, rank), _each(padding, rank), _each(dilation, rank)
    if not reversed_:
        return convolved(x, w, bias, stride, padding, padding, dilation, groups)
    high = [p - e for p, e in zip(padding, _each(extra, rank))]
    return transposed(x, w, bias, stride, padding, high, dilation, groups)


@rule("aten.convolution_backward")
def _convolution_backward(n: Node, g: array, x: array, w: array, bias: Any, *options: Any) -> list[array | None]:
    *rest, wanted = options
    zero = None if not wanted[2] else smelt.zeros(w.shape[1] * rest[-1] if rest[3] else w.shape[0], w.dtype)
    given = [v for v in (x, w, zero) if v is not None]
    _, found = smelt.vjp(lambda *a: convolution(n, a[0], a[1], a[2] if len(a) > 2 else None, *rest), given, [g])
    return [v if use else None for v, use in zip([*found, None][:3], wanted)]


def _pool(x: array, kernel: Any, stride: Any, padding: Any, dilation: Any, ceil: bool, rank: int) -> Windows:
    kernel, padding = _each(kernel, rank), _each(padding, rank)
    sizes = x.shape[x.ndim - rank :]
    return Windows(sizes, kernel, _each(stride, rank, kernel), padding, padding, _each(dilation, rank), ceil)


def _batched(x: array, rank: int) -> array:
    """With axes for the batch and the channels."""
    return x.reshape(*(1,) * (rank + 2 - x.ndim), *x.shape)


def _rank(n: Node) -> int:
    """The axes of space of a pooling, whose number stands in its name."""
    return int(n.op.split("pool")[1][0])


@rule("aten.avg_pool1d", "aten.avg_pool2d", "aten.avg_pool3d")
def _average_pool(n: Node, x: array, kernel: Any, stride: Any, padding: Any, ceil: bool, with_padding: bool,
                  divisor: int | None = None) -> array:  # fmt: skip
    rank = _rank(n)
    pool = _pool(x, kernel, stride, padding, 1, ceil, rank)
    total = pool.folded(pool.padded(_batched(x, rank), 0), smelt.add)
    counts = np.maximum(pool.elements(with_padding), 1) if divisor is None else np.float32(divisor)
    found = total / smelt.array(counts.astype(np.float32)).astype(x.dtype)
    return found.reshape(*x.shape[: x.ndim - rank], *found.shape[2:])


@rule("aten.max_pool2d_with_indices", "aten.max_pool3d_with_indices")
def _max_pool(n: Node, x: array, kernel: Any, stride: Any, padding: Any, dilation: Any, ceil: bool) -> list[array]:
    rank = _rank(n)
    pool, lead = _pool(x, kernel, stride, padding, dilation, ceil, rank), x.shape[: x.ndim - rank]
    batch = _batched(x, rank)
    if not any(user.args[1] == 1 for user in n.node.users):  # nobody reads the places
        found = pool.folded(pool.padded(batch, lowest(x)), smelt.maximum)
        return [found.reshape(*lead, *found.shape[2:]), smelt.zeros((*lead, *found.shape[2:]), smelt.int64)]
    place = smelt.arange(math.prod(pool.sizes)).astype(smelt.int64).reshape(1, 1, *pool.sizes)
    return [v.reshape(*lead, *v.shape[2:]) for v in _spread(*pool.largest(batch, place))]


def _spread(best: array, at: array) -> tuple[array, array]:
    return best, smelt.broadcast_to(at, best.shape)


@rule("aten.max_pool2d_with_indices_backward", "aten.max_pool3d_with_indices_backward")
def _max_pool_backward(n: Node, g: array, x: array, *options: Any) -> array:
    """To the places that were the largest."""
    at, rank = options[-1], _rank(n)
    lead = x.shape[: x.ndim - rank]
    planes = smelt.zeros((math.prod(lead), math.prod(x.shape[x.ndim - rank :])), g.dtype)
    rows = smelt.arange(planes.shape[0])[:, None]
    count = planes.shape[0]
    return planes.at[rows, at.reshape(count, -1)].add(g.reshape(count, -1)).reshape(x.shape)


@rule("aten._adaptive_avg_pool2d", "aten._adaptive_avg_pool3d", "aten.adaptive_avg_pool1d")
def adaptive_average(n: Node, x: array, sizes: list[int]) -> array:
    """Windows that part an axis as evenly as integers can."""
    for axis, size in enumerate(sizes, x.ndim - len(sizes)):
        x = pooled(x, axis, size, mean=True) if size else x[(slice(None),) * axis + (slice(0),)]
    return x


@rule("aten.adaptive_max_pool2d", "aten.adaptive_max_pool3d")
def _adaptive_max(n: Node, x: array, sizes: list[int]) -> list[array]:
    """The largest element of each such window, and its place in the plane."""
    rank = len(sizes)
    extents = x.shape[x.ndim - rank :]
    place = smelt.arange(math.prod(extents)).astype(smelt.int64).reshape(extents)
    best, at = _spread(x, place)
    for axis, size in zip(range(x.ndim - rank, x.ndim), sizes):
        extent = x.shape[axis]
        starts = np.arange(size) * extent // size
        stops = -(-np.arange(1, size + 1) * extent // size)
        taps = []
        for k in range(int((stops - starts).max(initial=0))):
            index = smelt.array(np.minimum(starts + k, stops - 1).astype(np.int32))
            taps.append((smelt.take(best, index, axis=axis), smelt.take(at, index, axis=axis)))
        best, at = larger(taps)
    return [best, at]


@rule("aten._adaptive_avg_pool2d_backward")
def _adaptive_backward(n: Node, g: array, x: array) -> array:
    sizes = list(g.shape[-2:])
    return smelt.vjp(lambda x: adaptive_average(n, x, sizes), [x], [g])[1][0]


@rule("aten.avg_pool2d_backward", "aten.avg_pool3d_backward")
def _average_backward(n: Node, g: array, x: array, *options: Any) -> array:
    return smelt.vjp(lambda x: _average_pool(n, x, *options), [x], [g])[1][0]


@rule("aten.col2im")
def _col2im(n: Node, x: array, sizes: list[int], kernel: list[int], dilation: Any, padding: Any, stride: Any) -> array:
    """The sum of windows where they overlap: the derivative of taking them."""
    batch = x if x.ndim == 3 else x[None]
    pool = _pool(smelt.zeros(sizes), kernel, stride, padding, dilation, False, 2)
    channels = batch.shape[1] // math.prod(kernel)

    def taken(y: array) -> array:
        rows = [tap for part in pool.taps(pool.padded(y, 0), 0) for tap in pool.taps(part, 1)]
        return smelt.stack(rows, 2).reshape(batch.shape)

    zero = smelt.zeros((batch.shape[0], channels, *sizes), x.dtype)
    found = smelt.vjp(taken, [zero], [batch])[1][0]
    return found if x.ndim == 3 else found[0]
