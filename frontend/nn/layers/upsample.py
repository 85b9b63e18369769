"""Pictures, and arrays of other spatial axes, with more elements, or less."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any, Literal

import numpy as np

import smelt
from smelt import array
from smelt.ir.errors import AttributeValueError, ShapeError, at_user_line, shown

from .base import Module

__all__ = ["Upsample", "upsample_cubic", "upsample_linear", "upsample_nearest"]


def _nearest(extent: int, scale: float) -> np.ndarray:
    """For each element of the result the one that is taken."""
    count = int(scale * extent)
    if scale < 1:
        places = np.arange(count) * extent // count
    else:  # a division of integers: ties are ties
        places = np.round(((2 * np.arange(count) + 1) * extent - count) / (2 * count))
    return np.clip(places, 0, extent - 1).astype(np.int32)


def _triangle(x: np.ndarray) -> np.ndarray:
    return np.maximum(0, 1 - np.abs(x))


def _cubic(x: np.ndarray, a: float) -> np.ndarray:
    """Keys's kernel, with slope `a` at distance 1."""
    x = np.abs(x)
    near = ((a + 2) * x - (a + 3)) * x * x + 1
    far = a * (((x - 5) * x + 8) * x - 4)
    return np.where(x < 1, near, np.where(x < 2, far, 0.0))


def _taps(
    extent: int, scale: float, cubic: bool, align_corners: bool, antialias: bool
) -> tuple[np.ndarray, np.ndarray]:
    """For each element of the result which elements of an axis it is made of, and how much of each."""
    count = int(scale * extent)
    if align_corners:
        places = np.arange(count) * ((extent - 1) / max(1, count - 1))
    else:
        places = (np.arange(count) - (count - 1) / 2) / scale + (extent - 1) / 2
    kernel: Callable[[np.ndarray], np.ndarray] = _triangle
    reach = 1.0
    if cubic:
        kernel, reach = functools.partial(_cubic, a=-0.5 if antialias else -0.75), 2.0
    wide = max(1.0, 1 / scale) if antialias else 1.0
    first = np.floor(places - reach * wide).astype(int) + 1
    taps = first[:, None] + np.arange(math.ceil(2 * reach * wide))
    weights = kernel((taps - places[:, None]) / wide)
    if antialias:  # what lies outside does not count
        weights = np.where((taps >= 0) & (taps < extent), weights, 0)
        weights = weights / weights.sum(1, keepdims=True)
    return np.clip(taps, 0, extent - 1).astype(np.int32), weights


def _scaled(x: array, factors: Sequence[float], mode: str, align_corners: bool, antialias: bool) -> array:
    """Spatial axes, the second and so on, with as many times as many elements."""
    for axis, scale in enumerate(factors, 1):
        extent = x.shape[axis]
        if mode == "nearest":
            if scale == int(scale):
                x = smelt.repeat(x, int(scale), axis=axis)
            else:
                x = smelt.take(x, smelt.array(_nearest(extent, scale)), axis=axis)
            continue
        taps, weights = _taps(extent, scale, mode == "cubic", align_corners, antialias)
        dtype = x.dtype if smelt.issubdtype(x.dtype, smelt.floating) else smelt.float32
        shape = (-1, *(1,) * (x.ndim - axis - 1))
        used = [i for i in range(taps.shape[1]) if weights[:, i].any()] or [0]  # of no elements none counts
        parts = [
            smelt.take(x, smelt.array(taps[:, i]), axis=axis) * smelt.array(weights[:, i], dtype).reshape(shape)
            for i in used
        ]
        x = functools.reduce(smelt.add, parts)
    return x


def upsample_nearest(x: array, scale_factor: Any) -> array:
    """`Upsample` with ``mode="nearest"`` as a function.

    >>> import smelt
    >>> smelt.nn.layers.upsample.upsample_nearest(smelt.array([[[1.0], [2.0]]]), 2).reshape(-1).tolist()
    [1.0, 1.0, 2.0, 2.0]
    """
    return Upsample(scale_factor)(x)


def upsample_linear(x: array, scale_factor: Any, align_corners: bool = False, antialias: bool = False) -> array:
    """`Upsample` with ``mode="linear"`` as a function.

    >>> import smelt
    >>> smelt.nn.layers.upsample.upsample_linear(smelt.array([[[1.0], [2.0]]]), 2).reshape(-1).tolist()
    [1.0, 1.25, 1.75, 2.0]
    """
    return Upsample(scale_factor, "linear", align_corners, antialias)(x)


def upsample_cubic(x: array, scale_factor: Any, align_corners: bool = False, antialias: bool = False) -> array:
    """`Upsample` with ``mode="cubic"`` as a function.

    >>> import smelt
    >>> smelt.nn.layers.upsample.upsample_cubic(smelt.ones((1, 2, 1)), 2).reshape(-1).tolist()
    [1.0, 1.0, 1.0, 1.0]
    """
    return Upsample(scale_factor, "cubic", align_corners, antialias)(x)


class Upsample(Module):
    """Spatial axes with `scale_factor` times as many elements, [batch, …, channels].

    Args:
        scale_factor: for all spatial axes, or for each.
        mode: ``"nearest"``: each element is one of the argument. ``"linear"``, ``"cubic"``: a mean of the two, or
            four, that are near along each axis.
        align_corners: the first and last elements of the result are those of the argument.
        antialias: where there are less elements than before, each is a mean of more.

    Returns:
        An array of the dtype of the argument; of integers as float32, but as they are with ``"nearest"``.

    Raises:
        AttributeValueError: another mode; `antialias` with `align_corners`. ShapeError: when called with less than
            three axes, or with not as many spatial axes as there are factors.

    >>> import smelt
    >>> smelt.nn.Upsample(2)(smelt.array([[[1.0], [2.0]]])).reshape(-1).tolist()
    [1.0, 1.0, 2.0, 2.0]
    >>> smelt.nn.Upsample(2, mode="linear")(smelt.array([[[1.0], [2.0]]])).reshape(-1).tolist()
    [1.0, 1.25, 1.75, 2.0]
    """

    def __init__(
        self,
        scale_factor: float | tuple[float, ...],
        mode: Literal["nearest", "linear", "cubic"] = "nearest",
        align_corners: bool = False,
        antialias: bool = False,
    ):
        super().__init__()
        if mode not in ("nearest", "linear", "cubic"):
            raise AttributeValueError(
                at_user_line(f"smelt.nn.Upsample: mode must be nearest, linear or cubic, is {shown(mode)}")
            )
        if antialias and align_corners:
            raise AttributeValueError(at_user_line("smelt.nn.Upsample: antialias does not go with align_corners"))
        single = not isinstance(scale_factor, (list, tuple))
        # Factors that were computed, by smelt or by NumPy, count by their values.
        given: Any = [scale_factor] if single else scale_factor
        scales: list[Any] = [s.item() if getattr(s, "ndim", None) == 0 else s for s in given]
        if not all(isinstance(s, (int, float)) and 0 < s < math.inf for s in scales):
            raise AttributeValueError(
                at_user_line(f"smelt.nn.Upsample: scale_factor must be positive, is {shown(scale_factor)}")
            )
        self.scale_factor: Any = float(scales[0]) if single else tuple(map(float, scales))
        self.mode = mode
        self.align_corners = align_corners
        self.antialias = antialias

    def _extra_repr(self) -> str:
        return f"scale_factor={self.scale_factor}, mode={self.mode!r}, align_corners={self.align_corners}"

    def __call__(self, x: array) -> array:
        axes = x.ndim - 2
        if axes < 1:
            raise ShapeError(
                at_user_line(f"smelt.nn.Upsample: needs axes [batch, …, channels], at least three; x {x.aval}")
            )
        factors = self.scale_factor if isinstance(self.scale_factor, tuple) else (self.scale_factor,) * axes
        if len(factors) != axes:
            raise ShapeError(
                at_user_line(
                    f"smelt.nn.Upsample: {len(factors)} factors for {axes} spatial axes; x {x.aval}, scale_factor "
                    f"{self.scale_factor}"
                )
            )
        return _scaled(x, factors, self.mode, self.align_corners, self.antialias)
