"""Pictures in other sizes and at other places."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np

import smelt
from smelt import array

from ...translating import Refused
from ..graph import Node, rule


class Sampling:
    """How `Resize` reads: which places of the source an axis of the result reads, and with what weights.

    Places and weights are known from the sizes alone, so they are constants of the program.
    """

    def __init__(self, n: Node, roi: np.ndarray | None):
        self.mode, self.places = n.text("mode", "nearest"), n.text("coordinate_transformation_mode", "half_pixel")
        self.nearest, self.cubic = n.text("nearest_mode", "round_prefer_floor"), n.attr("cubic_coeff_a", -0.75)
        self.exclude, self.antialias = n.attr("exclude_outside", 0), n.attr("antialias", 0)
        self.fill, self.roi = n.attr("extrapolation_value", 0.0), roi

    def coordinates(self, source: int, target: int, scale: float, axis: int, wanted: float) -> np.ndarray:
        """Where in the source each element of the result lies; `wanted` is its length before it was rounded."""
        at = np.arange(target, dtype=np.float64)
        if self.places == "asymmetric":
            return at / scale
        if self.places == "align_corners":
            return at * (source - 1) / (wanted - 1) if wanted != 1 else np.zeros(target)
        if self.places == "pytorch_half_pixel":
            return (at + 0.5) / scale - 0.5 if target > 1 else np.zeros(target)
        if self.places == "half_pixel":
            return (at + 0.5) / scale - 0.5
        if self.places == "half_pixel_symmetric":
            adjusted = target / wanted
            return source / 2 * (1 - adjusted) + (at + 0.5) / scale - 0.5
        if self.places == "tf_half_pixel_for_nn":
            return (at + 0.5) / scale
        if self.places == "tf_crop_and_resize" and self.roi is not None:
            start, end = self.roi[axis], self.roi[axis + len(self.roi) // 2]
            if target == 1:
                return np.full(1, 0.5 * (start + end) * (source - 1))
            return start * (source - 1) + at * (end - start) * (source - 1) / (target - 1)
        raise Refused(f"has coordinate_transformation_mode {self.places!r}, which is none of the standard's")

    def weights(
        self, source: int, target: int, scale: float, axis: int, wanted: float
    ) -> tuple[np.ndarray, np.ndarray]:
        """Places [target, taps] and weights alike."""
        at = self.coordinates(source, target, scale, axis, wanted)
        if self.mode == "nearest":
            kinds: dict[str, Any] = {
                "round_prefer_floor": lambda v: np.ceil(v - 0.5), "round_prefer_ceil": lambda v: np.floor(v + 0.5),
                "floor": np.floor, "ceil": np.ceil, "simple": np.ceil if scale < 1 else np.trunc,
            }  # fmt: skip
            if self.nearest not in kinds:
                raise Refused(f"has nearest_mode {self.nearest!r}; there are {', '.join(kinds)}")
            places, weights = kinds[self.nearest](at)[:, None], np.ones((target, 1))
        else:
            stretch = min(scale, 1.0) if self.antialias else 1.0
            reach = (1 if self.mode == "linear" else 2) / stretch
            taps = math.floor(2 * reach) + (2 if self.antialias else 0)
            first = np.floor(at) - (math.ceil(reach) - 1 if not self.antialias else math.floor(reach))
            places = first[:, None] + np.arange(taps)[None]
            distance = np.abs(places - at[:, None]) * stretch
            weights = np.maximum(0, 1 - distance) if self.mode == "linear" else self._cubic(distance)
        outside = (places < 0) | (places > source - 1)
        if self.exclude or self.antialias:
            weights = np.where(outside, 0, weights) if self.exclude else weights
        if self.mode != "nearest":
            weights = weights / weights.sum(1, keepdims=True)
        return np.clip(places, 0, source - 1).astype(np.int64), weights

    def _cubic(self, t: np.ndarray) -> np.ndarray:
        a = self.cubic
        near = ((a + 2) * t - (a + 3)) * t * t + 1
        far = ((a * t - 5 * a) * t + 8 * a) * t - 4 * a
        return np.where(t <= 1, near, np.where(t < 2, far, 0))


@rule("Resize", "Upsample")
def _resize(n: Node) -> array:
    x, rank = n.x, n.x.ndim
    old = n.op == "Upsample" or n.version < 11
    scales_at, sizes_at = (1, None) if old else (2, 3)
    axes = [int(a) % rank for a in n.attr("axes") or range(rank)]
    scales = n.known(scales_at) if n[scales_at] is not None and n[scales_at].size else n.attr("scales")
    sizes = n.known(sizes_at) if sizes_at is not None and n[sizes_at] is not None and n[sizes_at].size else None
    roi = n.known(1).astype(np.float64) if not old and n[1] is not None and n[1].size else None
    if roi is not None and len(roi) == 2 * rank and len(axes) < rank:
        roi = np.concatenate([roi[axes], roi[[a + rank for a in axes]]])
    sampling = Sampling(n, roi)
    if old:
        sampling.places, sampling.nearest = "asymmetric", "floor"
    if sampling.mode not in ("nearest", "linear", "cubic"):
        raise Refused(f"has mode {sampling.mode!r}; there are nearest, linear, cubic")
    if sizes is not None:
        factors = [float(s) / x.shape[a] for s, a in zip(sizes, axes)]
        targets = [int(s) for s in sizes]
        policy = n.text("keep_aspect_ratio_policy", "stretch")
        if policy != "stretch":
            one = (min if policy == "not_larger" else max)(factors)
            factors = [one] * len(axes)
            targets = [math.floor(one * x.shape[a] + 0.5) for a in axes]
        lengths = [float(t) for t in targets]
    else:
        factors = [float(s) for s in scales]
        lengths = [s * x.shape[a] for s, a in zip(factors, axes)]
        targets = [math.floor(v + (1e-6 if abs(v - round(v)) < 1e-6 else 0)) for v in lengths]
        if sampling.places == "tf_crop_and_resize" and roi is not None:
            spans = [roi[i + len(axes)] - roi[i] for i in range(len(axes))]
            targets = [math.floor(x.shape[a] * span * s) for a, span, s in zip(axes, spans, factors)]
    found = x
    for i, axis in enumerate(axes):
        if targets[i] == x.shape[axis] and factors[i] == 1 and roi is None:
            continue
        places, weights = sampling.weights(x.shape[axis], targets[i], factors[i], i, lengths[i])
        found = _weighted(found, axis, places, weights)
    if sampling.places == "tf_crop_and_resize":
        outside: np.ndarray = np.zeros((1,) * rank, bool)
        for i, axis in enumerate(axes):
            at = sampling.coordinates(x.shape[axis], targets[i], factors[i], i, lengths[i])
            shape = tuple(-1 if a == axis else 1 for a in range(rank))
            outside = outside | ((at < 0) | (at > x.shape[axis] - 1)).reshape(shape)
        found = smelt.where(smelt.array(np.broadcast_to(outside, found.shape).copy()), sampling.fill, found)
    return found.astype(x.dtype)


def _weighted(x: array, axis: int, places: np.ndarray, weights: np.ndarray) -> array:
    """Sums of elements along an axis, at places and with weights that are constants."""
    total: Any = None
    for tap in range(places.shape[1]):
        part = smelt.take(x, smelt.array(places[:, tap], smelt.int32), axis)
        if weights.shape[1] > 1:
            kind = x.dtype if x.dtype.is_inexact else smelt.float32
            shape = tuple(-1 if a == axis else 1 for a in range(x.ndim))
            part = part.astype(kind) * smelt.array(weights[:, tap].reshape(shape), kind)
        total = part if total is None else total + part
    return total


@rule("GridSample")
def _grid_sample(n: Node) -> array:
    """Elements at places that another array says, between -1 and 1 along each axis."""
    x, grid = n[0], n[1]
    mode = {"bilinear": "linear", "bicubic": "cubic"}.get(n.text("mode", "linear"), n.text("mode", "linear"))
    rank, sizes = x.ndim - 2, x.shape[2:]
    aligned, outside = n.attr("align_corners", 0), n.text("padding_mode", "zeros")
    at = []
    for i, d in enumerate(sizes):
        g = grid[..., rank - 1 - i]
        at.append((g + 1) / 2 * (d - 1) if aligned else ((g + 1) * d - 1) / 2)
    if mode == "nearest":
        at = [smelt.round(a) for a in at]
    if outside != "zeros" and mode != "cubic":
        at = [_inside(a, d, outside, aligned) for a, d in zip(at, sizes)]
    if mode == "nearest":
        at = [smelt.round(a) for a in at]
    starts = [smelt.floor(a) for a in at]
    taps = {"nearest": (0,), "linear": (0, 1), "cubic": (-1, 0, 1, 2)}[mode]
    size, channels = x.shape[:2]
    flat = x.reshape(size, channels, -1)
    total: Any = 0
    for offsets in itertools.product(taps, repeat=rank):
        weight: Any = 1
        place: Any = 0
        kept: Any = True
        for a, start, offset, d in zip(at, starts, offsets, sizes):
            p = start + offset
            if mode != "nearest":
                weight = weight * _kernel(smelt.abs(a - p), mode)
            if outside == "zeros":
                kept = smelt.logical_and(kept, smelt.logical_and(p >= 0, p <= d - 1))
            else:
                p = _inside(p, d, outside, aligned)
            place = place * d + smelt.clip(p, 0, d - 1)
        index = smelt.nan_to_num(place).astype(smelt.int32).reshape(size, 1, -1)
        index = smelt.broadcast_to(index, (size, channels, index.shape[2]))
        values = smelt.take_along_axis(flat, index, 2).reshape(size, channels, *grid.shape[1:-1])
        if outside == "zeros":
            values = smelt.where(smelt.expand_dims(kept, 1), values, 0)
        total = total + values * (smelt.expand_dims(weight, 1) if mode != "nearest" else 1)
    return total.astype(x.dtype)


def _kernel(t: array, mode: str) -> array:
    if mode == "linear":
        return smelt.maximum(0, 1 - t)
    a = -0.75
    near = ((a + 2) * t - (a + 3)) * t * t + 1
    far = ((a * t - 5 * a) * t + 8 * a) * t - 4 * a
    return smelt.where(t <= 1, near, far)


def _inside(p: array, d: int, how: str, aligned: int) -> array:
    """A place moved into the axis: to its end, or thrown back by it."""
    if how == "border":
        return smelt.clip(p, 0, d - 1)
    low, high = (0.0, float(d - 1)) if aligned else (-0.5, d - 0.5)
    span = high - low
    if span <= 0:
        return smelt.zeros_like(p)
    away = smelt.remainder(smelt.abs(p - low), 2 * span)
    return smelt.where(away > span, 2 * span - away, away) + low


@rule("RoiAlign")
def _roi_align(n: Node) -> array:
    """Means (or largest elements) of samples in a grid of boxes."""
    x, boxes, batch = n[0], n[1], n[2]
    rows, columns = n.attr("output_height", 1), n.attr("output_width", 1)
    ratio, scale, mode = n.attr("sampling_ratio", 0), n.attr("spatial_scale", 1.0), n.text("mode", "avg")
    half = n.text("coordinate_transformation_mode", "half_pixel" if n.version >= 16 else "output_half_pixel")
    shift = 0.5 if half == "half_pixel" else 0.0
    height, width = x.shape[2:]
    spans = n.known(1)
    results = []
    for i in range(boxes.shape[0]):
        x1, y1, x2, y2 = (float(v) * scale - shift for v in spans[i])
        w, h = x2 - x1, y2 - y1
        if shift == 0:
            w, h = max(w, 1.0), max(h, 1.0)
        gy = ratio or math.ceil(h / rows)
        gx = ratio or math.ceil(w / columns)
        ys = y1 + (np.arange(rows * gy) + 0.5) * h / (rows * gy)
        xs = x1 + (np.arange(columns * gx) + 0.5) * w / (columns * gx)
        picture = smelt.take(x, batch[i : i + 1].astype(smelt.int32), 0)[0]
        found = _sampled(picture, ys, xs, height, width, mode)
        found = found.reshape(x.shape[1], rows, gy, columns, gx)
        results.append((smelt.max if mode == "max" else smelt.mean)(found, (2, 4)))
    return smelt.stack(results).astype(x.dtype)


def _sampled(picture: array, ys: np.ndarray, xs: np.ndarray, height: int, width: int, mode: str) -> array:
    """Between elements; of the largest, each corner times its weight."""

    def corners(at: np.ndarray, extent: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        gone = (at < -1) | (at > extent)
        at = np.clip(at, 0, extent - 1)
        low = np.minimum(np.floor(at), extent - 1)
        high = np.minimum(low + 1, extent - 1)
        part = at - low
        return low.astype(int), high.astype(int), np.where(gone, 0, 1 - part), np.where(gone, 0, part)

    y0, y1, wy0, wy1 = corners(ys, height)
    x0, x1, wx0, wx1 = corners(xs, width)
    parts = []
    for (yy, wy), (xx, wx) in itertools.product(((y0, wy0), (y1, wy1)), ((x0, wx0), (x1, wx1))):
        rows = smelt.take(picture, smelt.array(yy, smelt.int32), 1)
        both = smelt.take(rows, smelt.array(xx, smelt.int32), 2)
        parts.append(both * smelt.array((wy[:, None] * wx[None]).astype(np.float32)))
    a, b, c, d = parts
    return smelt.maximum(smelt.maximum(a, b), smelt.maximum(c, d)) if mode == "max" else a + b + c + d
