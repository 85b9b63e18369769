"""Shapes, and what moves elements without looking at them."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

import smelt
from smelt import array
from smelt.ir import dtypes

from ...translating import Refused
from ..graph import Node, rule
from .elementwise import dtype_of


def integers(values: Any) -> array:
    return smelt.array(np.asarray(values, np.int64), smelt.int64)


@rule("Constant")
def _constant(n: Node) -> Any:
    for name, kind in (("value_int", smelt.int64), ("value_ints", smelt.int64), ("value_float", smelt.float32),
                       ("value_floats", smelt.float32)):  # fmt: skip
        if n.attr(name) is not None:
            return smelt.array(n.attr(name), kind)
    found = n.attr("value")
    if isinstance(found, array):
        return found
    raise Refused("holds texts, sparse elements, or elements of a type for which smelt has no dtype")


@rule("ConstantOfShape")
def _constant_of_shape(n: Node) -> array:
    value = n.attr("value")
    shape = tuple(int(d) for d in n.known(0))
    return smelt.zeros(shape) if value is None else smelt.broadcast_to(value.reshape(()), shape)


@rule("Shape")
def _shape(n: Node) -> array:
    return integers(n.x.shape[slice(n.attr("start", 0), n.attr("end"))])


@rule("Size")
def _size(n: Node) -> array:
    return integers(n.x.size)


@rule("Reshape")
def _reshape(n: Node) -> array:
    shape = [int(d) for d in n.known(1)]
    if not n.attr("allowzero", 0):
        shape = [n.x.shape[i] if d == 0 else d for i, d in enumerate(shape)]
    return smelt.reshape(n.x, shape)


@rule("Flatten")
def _flatten(n: Node) -> array:
    axis = n.attr("axis", 1)
    axis += n.x.ndim if axis < 0 else 0
    return smelt.reshape(n.x, (math.prod(n.x.shape[:axis]), math.prod(n.x.shape[axis:])))


@rule("Transpose")
def _transpose(n: Node) -> array:
    return smelt.transpose(n.x, n.attr("perm"))


@rule("Squeeze")
def _squeeze(n: Node) -> array:
    return smelt.squeeze(n.x, n.ints("axes", 1))


@rule("Unsqueeze")
def _unsqueeze(n: Node) -> array:
    return smelt.expand_dims(n.x, n.ints("axes", 1, ()) or ())


@rule("Expand")
def _expand(n: Node) -> array:
    shape = np.broadcast_shapes(n.x.shape, tuple(int(d) for d in n.known(1)))
    return smelt.broadcast_to(n.x, shape)


@rule("Tile")
def _tile(n: Node) -> array:
    return smelt.tile(n.x, tuple(int(d) for d in n.known(1)))


@rule("Concat")
def _concat(n: Node) -> array:
    return smelt.concatenate(n.inputs, axis=n.attr("axis"))


def split_sizes(n: Node, extent: int) -> list[int]:
    sizes = n.ints("split", 1)
    if sizes is not None:
        return list(sizes)
    count = n.attr("num_outputs", n.outputs)
    each = -(-extent // count)
    return [max(0, min(each, extent - i * each)) for i in range(count)]


@rule("Split")
def _split(n: Node) -> tuple[array, ...]:
    axis = n.attr("axis", 0)
    sizes = split_sizes(n, n.x.shape[axis])
    return tuple(smelt.split(n.x, [int(i) for i in np.cumsum(sizes)[:-1]], axis=axis))


@rule("Slice")
def _slice(n: Node) -> array:
    x = n.x
    starts, ends = n.ints("starts", 1, ()), n.ints("ends", 2, ())
    assert starts is not None and ends is not None
    axes = n.ints("axes", 3) or tuple(range(len(starts)))
    steps = n.ints("steps", 4) or (1,) * len(starts)
    index = [slice(None)] * x.ndim
    for start, end, axis, step in zip(starts, ends, axes, steps):
        extent = x.shape[axis]
        # Places before the first element are the first one going up; going down they end the slice.
        if step > 0:
            start, end = (max(0, p + extent) if p < 0 else min(p, extent) for p in (start, end))
            index[axis] = slice(start, end, step)
        else:
            start = min(start, extent - 1) if start >= 0 else max(start + extent, -1)
            end = min(end, extent - 1) if end >= 0 else max(end + extent, -1)
            index[axis] = slice(0, 0) if start < 0 else slice(start, None if end < 0 else end, step)
    return x[tuple(index)]


_MODES = {"constant": "constant", "edge": "edge", "reflect": "reflect", "wrap": "wrap"}


@rule("Pad")
def _pad(n: Node) -> array:
    """Negative widths take elements away."""
    x = n.x
    widths = n.ints("pads", 1, ())
    assert widths is not None
    axes = [int(a) % x.ndim for a in n.known(3)] if n[3] is not None else list(range(x.ndim))
    low, high = [0] * x.ndim, [0] * x.ndim
    for i, axis in enumerate(axes):
        low[axis], high[axis] = widths[i], widths[i + len(axes)]
    value = n.attr("value", n[2])
    mode = n.text("mode", "constant")
    inside = tuple(slice(max(0, -a), d - max(0, -b)) for a, b, d in zip(low, high, x.shape))
    grown = [(max(0, a), max(0, b)) for a, b in zip(low, high)]
    x = x[inside]
    if mode == "constant":
        filled = 0 if value is None else value
        return smelt.pad(x, grown, constant_values=filled.astype(x.dtype) if isinstance(filled, array) else filled)
    for axis, (before, after) in enumerate(grown):
        if before or after:
            x = smelt.take(x, smelt.array(_places(x.shape[axis], before, after, mode), smelt.int32), axis)
    return x


def _places(extent: int, before: int, after: int, mode: str) -> np.ndarray:
    """Which element stands where along an axis that grows."""
    if mode not in _MODES:
        raise Refused(f"has mode {mode!r}; there are {', '.join(_MODES)}")
    return np.pad(np.arange(extent), (before, after), mode=mode)  # type: ignore[call-overload]


@rule("CenterCropPad")
def _center_crop_pad(n: Node) -> array:
    x, sizes = n.x, [int(d) for d in n.known(1)]
    for axis, size in zip(n.attr("axes") or range(x.ndim), sizes):
        extent = x.shape[axis]
        if size < extent:
            start = (extent - size) // 2
            x = smelt.take(x, smelt.arange(start, start + size), axis)
        elif size > extent:
            before = (size - extent) // 2
            widths = [(0, 0)] * x.ndim
            widths[axis] = (before, size - extent - before)
            x = smelt.pad(x, widths)
    return x


@rule("DepthToSpace")
def _depth_to_space(n: Node) -> array:
    x, b = n.x, n.attr("blocksize")
    size, c, h, w = x.shape
    if n.text("mode", "DCR") == "DCR":
        x = smelt.transpose(smelt.reshape(x, (size, b, b, c // (b * b), h, w)), (0, 3, 4, 1, 5, 2))
    else:
        x = smelt.transpose(smelt.reshape(x, (size, c // (b * b), b, b, h, w)), (0, 1, 4, 2, 5, 3))
    return smelt.reshape(x, (size, c // (b * b), h * b, w * b))


@rule("SpaceToDepth")
def _space_to_depth(n: Node) -> array:
    x, b = n.x, n.attr("blocksize")
    size, c, h, w = x.shape
    order = (0, 3, 5, 1, 2, 4) if n.text("mode", "DCR") == "DCR" else (0, 1, 3, 5, 2, 4)
    x = smelt.transpose(smelt.reshape(x, (size, c, h // b, b, w // b, b)), order)
    return smelt.reshape(x, (size, c * b * b, h // b, w // b))


@rule("Range")
def _range(n: Node) -> array:
    start, limit, step = (n.known(i).reshape(-1)[0] for i in range(3))
    count = max(0, math.ceil((float(limit) - float(start)) / float(step)))
    return n.x.reshape(()) + smelt.arange(count).astype(n.x.dtype) * n[2].reshape(())


@rule("EyeLike")
def _eye_like(n: Node) -> array:
    code = n.attr("dtype")
    rows, columns = n.x.shape
    return smelt.eye(rows, columns, n.attr("k", 0), dtype=n.x.dtype if code is None else dtype_of(code))


@rule("Trilu")
def _trilu(n: Node) -> array:
    k = int(n.known(1).reshape(())) if n[1] is not None else 0
    x = n.x
    if x.dtype is dtypes.bool_:
        mask = smelt.tri(x.shape[-2], x.shape[-1], k - 1 if n.attr("upper", 1) else k) != 0
        return smelt.logical_and(x, smelt.logical_not(mask) if n.attr("upper", 1) else mask)
    return smelt.triu(x, k) if n.attr("upper", 1) else smelt.tril(x, k)


@rule("Dropout")
def _dropout(n: Node) -> Any:
    """The input, but in training."""
    training = n[2] is not None and bool(n.known(2))
    ratio = n.attr("ratio", 0.5) if n[1] is None else float(n.known(1))
    keep = smelt.ones(n.x.shape, smelt.bool_)
    if not training or ratio == 0:
        return n.x, keep
    key = smelt.random.key(n.attr("seed")) if n.attr("seed") is not None else None
    keep = smelt.random.bernoulli(1 - ratio, n.x.shape, key)
    return smelt.where(keep, n.x / (1 - ratio), 0).astype(n.x.dtype), keep


@rule("ReverseSequence")
def _reverse_sequence(n: Node) -> array:
    """The first elements of each sequence in reverse order, as many as it has."""
    time, batch = n.attr("time_axis", 0), n.attr("batch_axis", 1)
    x = smelt.moveaxis(n.x, (time, batch), (0, 1))
    at = smelt.arange(x.shape[0])[:, None]
    lengths = n[1].astype(smelt.int32)[None]
    place = smelt.where(at < lengths, lengths - 1 - at, at)
    place = smelt.broadcast_to(place.reshape(*place.shape, *(1,) * (x.ndim - 2)), x.shape)
    return smelt.moveaxis(smelt.take_along_axis(x, place, 0), (0, 1), (time, batch))


@rule("Col2Im")
def _col2im(n: Node) -> array:
    """Columns of blocks added where they lie in the picture."""
    picture, block = [int(d) for d in n.known(1)], [int(d) for d in n.known(2)]
    rank = len(picture)
    strides, dilations = n.attr("strides") or [1] * rank, n.attr("dilations") or [1] * rank
    pads = n.attr("pads") or [0] * (2 * rank)
    grown = [p + pads[i] + pads[i + rank] for i, p in enumerate(picture)]
    places = np.zeros((1, 1), np.int64)
    for size, kernel, stride, dilation in zip(grown, block, strides, dilations):
        count = (size - (kernel - 1) * dilation - 1) // stride + 1
        along = np.arange(kernel)[:, None] * dilation + np.arange(count)[None] * stride
        places = places[:, None, :, None] * size + along[None, :, None, :]
        places = places.reshape(places.shape[0] * kernel, -1)
    batch, channels = n.x.shape[0], n.x.shape[1] // math.prod(block)
    columns = n.x.reshape(batch * channels, places.size)
    flat = smelt.zeros((batch * channels, math.prod(grown)), n.x.dtype)
    found = flat.at[:, smelt.array(places.reshape(-1), smelt.int32)].add(columns)
    found = found.reshape(batch, channels, *grown)
    inside = (slice(None), slice(None), *(slice(pads[i], pads[i] + p) for i, p in enumerate(picture)))
    return found[inside]
