"""Convolutions and pooling: the channels are axis 1, the axes of space come after it."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

import smelt
from smelt import array

from ...translating import Refused
from ...windows import Windows, convolved, lowest, transposed
from ..graph import Node, rule


def padding(n: Node, sizes: Sequence[int], kernel: Sequence[int], strides: Sequence[int], dilations: Sequence[int]):
    """Padding before and after each axis: as given, or so that there is a window for each stride."""
    auto, rank = n.text("auto_pad", "NOTSET"), len(kernel)
    if auto in ("NOTSET", ""):
        pads = n.attr("pads") or [0] * (2 * rank)
        return list(pads[:rank]), list(pads[rank:])
    if auto == "VALID":
        return [0] * rank, [0] * rank
    if auto not in ("SAME_UPPER", "SAME_LOWER"):
        raise Refused(f"has auto_pad {auto!r}; there are NOTSET, VALID, SAME_UPPER, SAME_LOWER")
    total = [
        max(0, (-(-d // s) - 1) * s + (k - 1) * r + 1 - d) for d, k, s, r in zip(sizes, kernel, strides, dilations)
    ]
    less = [t // 2 for t in total]
    more = [t - a for t, a in zip(total, less)]
    return (less, more) if auto == "SAME_UPPER" else (more, less)


def _steps(n: Node, rank: int) -> tuple[list[int], list[int]]:
    return list(n.attr("strides") or [1] * rank), list(n.attr("dilations") or [1] * rank)


def convolution(n: Node, x: array, w: array, bias: array | None = None) -> array:
    strides, dilations = _steps(n, x.ndim - 2)
    low, high = padding(n, x.shape[2:], w.shape[2:], strides, dilations)
    return convolved(x, w, bias, strides, low, high, dilations, n.attr("group", 1))


@rule("Conv")
def _conv(n: Node) -> array:
    return convolution(n, n[0], n[1], n[2])


@rule("ConvTranspose")
def _conv_transpose(n: Node) -> array:
    x, w = n[0], n[1]
    rank = x.ndim - 2
    strides, dilations = _steps(n, rank)
    extra = n.attr("output_padding") or [0] * rank
    full = [(d - 1) * s + (k - 1) * r + 1 for d, s, k, r in zip(x.shape[2:], strides, w.shape[2:], dilations)]
    wanted = n.attr("output_shape")
    auto = n.text("auto_pad", "NOTSET")
    if wanted is None and auto in ("SAME_UPPER", "SAME_LOWER"):
        wanted = [d * s for d, s in zip(x.shape[2:], strides)]
    if wanted is not None:
        total = [max(0, f + e - o) for f, e, o in zip(full, extra, wanted[-rank:])]
        low = [t // 2 if auto == "SAME_UPPER" else t - t // 2 for t in total]
        high = [f - o - a for f, o, a in zip(full, wanted[-rank:], low)]
    else:
        pads = n.attr("pads") or [0] * (2 * rank)
        low, high = list(pads[:rank]), [p - e for p, e in zip(pads[rank:], extra)]
    return transposed(x, w, n[2], strides, low, high, dilations, n.attr("group", 1))


def pooling(n: Node) -> Windows:
    """The windows of a node."""
    sizes, kernel = n.x.shape[2:], list(n.attr("kernel_shape"))
    strides, dilations = _steps(n, len(kernel))
    low, high = padding(n, sizes, kernel, strides, dilations)
    return Windows(sizes, kernel, strides, low, high, dilations, bool(n.attr("ceil_mode", 0)))


@rule("AveragePool")
def _average_pool(n: Node) -> array:
    pool = pooling(n)
    x = n.x
    total = pool.folded(pool.padded(x, 0), smelt.add)
    counts = pool.elements(bool(n.attr("count_include_pad", 0)))
    return total / smelt.array(np.maximum(counts, 1).astype(np.float32)).astype(x.dtype)


@rule("LpPool")
def _lp_pool(n: Node) -> array:
    pool, p = pooling(n), n.attr("p", 2)
    powers = smelt.abs(n.x) ** p
    return pool.folded(pool.padded(powers, 0), smelt.add) ** (1 / p)


@rule("MaxPool")
def _max_pool(n: Node) -> Any:
    pool, x = pooling(n), n.x
    if n.outputs < 2:
        return pool.folded(pool.padded(x, lowest(x)), smelt.maximum)
    order = x.shape[2:] if not n.attr("storage_order", 0) else x.shape[2:][::-1]
    place = smelt.arange(math.prod(order)).astype(smelt.int64).reshape(*order)
    place = smelt.transpose(place) if n.attr("storage_order", 0) else place
    lead = smelt.arange(x.shape[0] * x.shape[1]).astype(smelt.int64).reshape(*x.shape[:2], *(1,) * len(order))
    return pool.largest(x, place + lead * math.prod(order))


@rule("MaxUnpool")
def _max_unpool(n: Node) -> array:
    x, at = n[0], n[1]
    kernel = n.attr("kernel_shape")
    rank = len(kernel)
    strides, pads = n.attr("strides") or [1] * rank, n.attr("pads") or [0] * (2 * rank)
    natural = [
        (d - 1) * s + k - pads[i] - pads[i + rank] for i, (d, s, k) in enumerate(zip(x.shape[2:], strides, kernel))
    ]
    shape = [*x.shape[:2], *natural]
    flat = smelt.zeros((math.prod(shape),), x.dtype).at[at.reshape(-1)].add(x.reshape(-1)).reshape(*shape)
    if n[2] is None:
        return flat
    return smelt.pad(flat, [(0, int(d) - e) for d, e in zip(n.known(2), shape)])


@rule("GlobalAveragePool")
def _global_average(n: Node) -> array:
    return smelt.mean(n.x, tuple(range(2, n.x.ndim)), True)


@rule("GlobalMaxPool")
def _global_max(n: Node) -> array:
    return smelt.max(n.x, tuple(range(2, n.x.ndim)), True)


@rule("GlobalLpPool")
def _global_lp(n: Node) -> array:
    p = n.attr("p", 2)
    return smelt.sum(smelt.abs(n.x) ** p, tuple(range(2, n.x.ndim)), True) ** (1 / p)


@rule("DeformConv")
def _deform_conv(n: Node) -> array:
    """Each element of the kernel meets the picture at a place of its own, between four elements."""
    x, w, offset, bias, mask = n[0], n[1], n[2], n[3], n[4]
    if x.ndim != 4:
        raise Refused(f"of {x.ndim - 2} axes of space is not translated; of two it is")
    (strides, dilations), groups, own = _steps(n, 2), n.attr("group", 1), n.attr("offset_group", 1)
    low, high = padding(n, x.shape[2:], w.shape[2:], strides, dilations)
    size, channels, height, width = x.shape
    kh, kw = w.shape[2:]
    rows, columns = offset.shape[2:]
    offset = offset.reshape(size, own, kh, kw, 2, rows, columns)
    _ = high
    taps = []
    for i, j in itertools.product(range(kh), range(kw)):
        at_y = smelt.arange(rows)[:, None] * strides[0] - low[0] + i * dilations[0] + offset[:, :, i, j, 0]
        at_x = smelt.arange(columns)[None] * strides[1] - low[1] + j * dilations[1] + offset[:, :, i, j, 1]
        parts = x.reshape(size, own, channels // own, height * width)
        tap = _between(parts, at_y[:, :, None], at_x[:, :, None], height, width)
        if mask is not None:
            tap = tap * mask.reshape(size, own, kh, kw, rows, columns)[:, :, i, j][:, :, None]
        taps.append(tap.reshape(size, groups, channels // groups, rows, columns))
    stacked = smelt.stack(taps, 3)
    weights = w.reshape(groups, w.shape[0] // groups, w.shape[1], kh * kw)
    found = smelt.einsum("ngckyx,gock->ngoyx", stacked, weights).reshape(size, w.shape[0], rows, columns)
    return found if bias is None else found + bias.reshape(1, -1, 1, 1)


def _between(parts: array, y: array, x: array, height: int, width: int) -> array:
    """Bilinear, 0 outside; the last axis of `parts` is the picture."""
    y0, x0 = smelt.floor(y), smelt.floor(x)
    total: Any = 0
    for dy, dx in itertools.product((0, 1), (0, 1)):
        yy, xx = y0 + dy, x0 + dx
        weight = (1 - smelt.abs(y - yy)) * (1 - smelt.abs(x - xx))
        inside = (yy >= 0) & (yy < height) & (xx >= 0) & (xx < width)
        place = smelt.clip(yy, 0, height - 1) * width + smelt.clip(xx, 0, width - 1)
        flat = place.astype(smelt.int32).reshape(*place.shape[:3], -1)
        flat = smelt.broadcast_to(flat, (*parts.shape[:3], flat.shape[-1]))
        values = smelt.take_along_axis(parts, flat, 3).reshape(*parts.shape[:3], *place.shape[3:])
        total = total + smelt.where(inside, weight, 0) * values
    return total
