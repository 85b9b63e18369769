"""Pooling into a given number of windows, whatever the extents; channels are the last axis."""

from __future__ import annotations

from typing import Any

import numpy as np

import smelt
from smelt import array
from smelt.ir.errors import ArgumentTypeError, ShapeError, at_user_line, shown

from .base import Module

__all__ = [
    "AdaptiveAvgPool1d", "AdaptiveAvgPool2d", "AdaptiveAvgPool3d", "AdaptiveMaxPool1d", "AdaptiveMaxPool2d",
    "AdaptiveMaxPool3d",
]  # fmt: skip


def _windows(extent: int, count: int) -> tuple[np.ndarray, np.ndarray]:
    """For each of `count` windows, as even as can be, the places in it and how much each counts for the mean.

    Windows are as long as the longest: the last place of a shorter one is repeated, and counts nothing.
    """
    starts = np.arange(count) * extent // count
    ends = -(-(np.arange(count) + 1) * extent // count)
    lengths = (ends - starts)[:, None]
    steps = np.arange(lengths.max())
    places = np.minimum(starts[:, None] + steps, ends[:, None] - 1)
    return places.astype(np.int32), (steps < lengths) / lengths


def pooled(x: array, axis: int, count: int, mean: bool) -> array:
    """The means, or largest elements, of `count` windows along an axis."""
    before, extent, behind = x.shape[:axis], x.shape[axis], x.shape[axis + 1 :]
    pool = smelt.sum if mean else smelt.max
    if extent % count == 0:
        x = pool(x.reshape(*before, count, extent // count, *behind), axis=axis + 1)
        return x / (extent // count) if mean else x
    places, weights = _windows(extent, count)
    x = smelt.take(x, smelt.array(places.reshape(-1)), axis=axis).reshape(*before, *places.shape, *behind)
    if mean:
        dtype = x.dtype if smelt.issubdtype(x.dtype, smelt.floating) else smelt.float32
        x = x * smelt.array(weights, dtype).reshape(*weights.shape, *(1,) * len(behind))
    return pool(x, axis=axis + 1)


class _AdaptivePool(Module):
    """What the kinds share: windows along an axis after the other."""

    _spatial: int
    _mean: bool

    def __init__(self, output_size: Any):
        super().__init__()
        n = self._spatial
        sizes = tuple(output_size) if isinstance(output_size, (tuple, list)) else (output_size,) * n
        sizes = tuple(int(s) if isinstance(s, np.integer) else s for s in sizes)
        if len(sizes) != n or not all(s is None or (type(s) is int and s > 0) for s in sizes):
            rule = "a positive int or None" + f", or {n} of them" * (n > 1)
            raise ArgumentTypeError(
                at_user_line(f"smelt.nn.{type(self).__name__}: output_size must be {rule}, is {shown(output_size)}")
            )
        self._output_size = sizes

    def _extra_repr(self) -> str:
        return f"output_size={self._output_size}"

    def __call__(self, x: array) -> array:
        n = self._spatial
        if x.ndim != n + 2 or 0 in x.shape[1:-1]:
            raise ShapeError(
                at_user_line(
                    f"smelt.nn.{type(self).__name__}: needs {n + 2} axes, [batch, …, channels], and something to pool; "
                    f"x {x.aval}"
                )
            )
        for axis, count in enumerate(self._output_size, 1):
            if count is not None:
                x = pooled(x, axis, count, self._mean)
        return x


class AdaptiveAvgPool1d(_AdaptivePool):
    """The means of `output_size` windows along one axis, [batch, length, channels].

    Window i of n reaches from ⌊i · length / n⌋ to ⌈(i + 1) · length / n⌉: windows overlap where n does not divide the
    length.

    Args:
        output_size: how many windows; None leaves the axis as it is.

    Raises:
        ArgumentTypeError: no positive int. ShapeError: when called with other axes, or an empty one.

    >>> import smelt
    >>> smelt.nn.AdaptiveAvgPool1d(2)(smelt.array([[[1.0], [2.0], [3.0]]])).tolist()
    [[[1.5], [2.5]]]
    """

    _spatial, _mean = 1, True


class AdaptiveMaxPool1d(_AdaptivePool):
    """The largest elements of `output_size` windows along one axis; see `AdaptiveAvgPool1d`.

    >>> import smelt
    >>> smelt.nn.AdaptiveMaxPool1d(2)(smelt.array([[[1.0], [2.0], [3.0]]])).tolist()
    [[[2.0], [3.0]]]
    """

    _spatial, _mean = 1, False


class AdaptiveAvgPool2d(_AdaptivePool):
    """The means of windows of pictures, [batch, height, width, channels]; see `AdaptiveAvgPool1d`, with one size or a
    pair.

    >>> import smelt
    >>> smelt.nn.AdaptiveAvgPool2d((3, None))(smelt.ones((1, 8, 5, 2))).shape
    (1, 3, 5, 2)
    """

    _spatial, _mean = 2, True


class AdaptiveMaxPool2d(_AdaptivePool):
    """The largest elements of windows of pictures, [batch, height, width, channels]; see `AdaptiveAvgPool1d`, with one
    size or a pair.

    >>> import smelt
    >>> smelt.nn.AdaptiveMaxPool2d(3)(smelt.ones((1, 8, 5, 2))).shape
    (1, 3, 3, 2)
    """

    _spatial, _mean = 2, False


class AdaptiveAvgPool3d(_AdaptivePool):
    """The means of windows of volumes, [batch, depth, height, width, channels]; see `AdaptiveAvgPool1d`, with one size
    or three.

    >>> import smelt
    >>> smelt.nn.AdaptiveAvgPool3d(1)(smelt.ones((1, 4, 5, 6, 2))).shape
    (1, 1, 1, 1, 2)
    """

    _spatial, _mean = 3, True


class AdaptiveMaxPool3d(_AdaptivePool):
    """The largest elements of windows of volumes, [batch, depth, height, width, channels]; see `AdaptiveAvgPool1d`,
    with one size or three.

    >>> import smelt
    >>> smelt.nn.AdaptiveMaxPool3d(2)(smelt.ones((1, 4, 5, 6, 2))).shape
    (1, 2, 2, 2, 2)
    """

    _spatial, _mean = 3, False
