"""Pooling: the largest element, or the mean, of windows along spatial axes; channels are the last axis."""

from __future__ import annotations

import functools
import math
from typing import Any

import smelt
from smelt import array
from smelt.ir.errors import AttributeValueError, ShapeError, at_user_line

from .base import Module
from .windows import each

__all__ = ["AvgPool1d", "AvgPool2d", "AvgPool3d", "MaxPool1d", "MaxPool2d", "MaxPool3d"]


class _Pool(Module):
    """What the kinds share: windows along an axis after the other."""

    _spatial: int
    _mean: bool

    def __init__(self, kernel_size: Any, stride: Any = None, padding: Any = 0):
        super().__init__()
        name, n = type(self).__name__, self._spatial
        self._kernel_size = each(name, "kernel_size", kernel_size, n)
        self._stride = each(name, "stride", kernel_size if stride is None else stride, n)
        self._padding = each(name, "padding", 0 if padding is None else padding, n)
        for what, values, least in (("kernel_size", self._kernel_size, 1), ("stride", self._stride, 1),
                                    ("padding", self._padding, 0)):  # fmt: skip
            if min(values) < least:
                raise AttributeValueError(
                    at_user_line(f"smelt.nn.{name}: {what} must be at least {least}, is {min(values)}")
                )

    def _extra_repr(self) -> str:
        return f"kernel_size={self._kernel_size}, stride={self._stride}, padding={self._padding}"

    def __call__(self, x: array) -> array:
        name, n = type(self).__name__, self._spatial
        if x.ndim != n + 2:
            raise ShapeError(at_user_line(f"smelt.nn.{name}: needs {n + 2} axes, [batch, …, channels]; x {x.aval}"))
        if any(self._padding):
            least = -math.inf if smelt.issubdtype(x.dtype, smelt.floating) else smelt.iinfo(x.dtype).min
            sides = [(0, 0), *((p, p) for p in self._padding), (0, 0)]
            x = smelt.pad(x, sides, constant_values=0 if self._mean else least)
        for axis, (window, stride) in enumerate(zip(self._kernel_size, self._stride), 1):
            if x.shape[axis] < window:
                raise ShapeError(
                    at_user_line(
                        f"smelt.nn.{name}: a window of {window} does not fit on axis {axis}, padding included; "
                        f"x {x.aval}"
                    )
                )
            x = self._along(x, axis, window, stride)
        return x / math.prod(self._kernel_size) if self._mean else x

    def _along(self, x: array, axis: int, window: int, stride: int) -> array:
        """The sums, or largest elements, of windows along one axis."""
        count = (x.shape[axis] - window) // stride + 1

        def at(x: array, part: slice) -> array:
            places = (*(slice(None),) * axis, part)
            return x[places]

        if stride == window or count == 1:  # windows side by side
            x = at(x, slice(0, count * window))
            x = x.reshape(*x.shape[:axis], count, window, *x.shape[axis + 1 :])
            return smelt.sum(x, axis=axis + 1) if self._mean else smelt.max(x, axis=axis + 1)
        parts = [at(x, slice(i, i + stride * (count - 1) + 1, stride)) for i in range(window)]
        return functools.reduce(smelt.add if self._mean else smelt.maximum, parts)


class MaxPool1d(_Pool):
    """The largest elements of windows along one axis, [batch, length, channels].

    Args:
        kernel_size: the length of the window. stride: how far it moves, its length by default. padding: how many
            elements that are less than all others stand before and behind.

    Raises:
        ShapeError: when called with other axes, or where the window does not fit. ArgumentTypeError: an option that
            is no int. AttributeValueError: one that is too small.

    >>> import smelt
    >>> smelt.nn.MaxPool1d(2)(smelt.array([[[1.0], [3.0], [2.0], [0.0]]])).tolist()
    [[[3.0], [2.0]]]
    """

    _spatial, _mean = 1, False

    def __init__(
        self,
        kernel_size: int | tuple[int],
        stride: int | tuple[int] | None = None,
        padding: int | tuple[int] = 0,
    ):
        super().__init__(kernel_size, stride, padding)


class AvgPool1d(_Pool):
    """The means of windows along one axis, [batch, length, channels]; see `MaxPool1d`. The padding is zeros, which
    count.

    >>> import smelt
    >>> smelt.nn.AvgPool1d(2)(smelt.array([[[1.0], [3.0], [2.0], [0.0]]])).tolist()
    [[[2.0], [1.0]]]
    """

    _spatial, _mean = 1, True

    def __init__(
        self,
        kernel_size: int | tuple[int],
        stride: int | tuple[int] | None = None,
        padding: int | tuple[int] = 0,
    ):
        super().__init__(kernel_size, stride, padding)


class MaxPool2d(_Pool):
    """The largest elements of windows of pictures, [batch, height, width, channels]; see `MaxPool1d`, with ints or
    pairs as options.

    >>> import smelt
    >>> smelt.nn.MaxPool2d(3, stride=2, padding=1)(smelt.ones((1, 8, 8, 2))).shape
    (1, 4, 4, 2)
    """

    _spatial, _mean = 2, False

    def __init__(
        self,
        kernel_size: int | tuple[int, int],
        stride: int | tuple[int, int] | None = None,
        padding: int | tuple[int, int] | None = 0,
    ):
        super().__init__(kernel_size, stride, padding)


class AvgPool2d(_Pool):
    """The means of windows of pictures, [batch, height, width, channels]; see `AvgPool1d`, with ints or pairs as
    options.

    >>> import smelt
    >>> smelt.nn.AvgPool2d(2)(smelt.ones((1, 8, 6, 2))).shape
    (1, 4, 3, 2)
    """

    _spatial, _mean = 2, True

    def __init__(
        self,
        kernel_size: int | tuple[int, int],
        stride: int | tuple[int, int] | None = None,
        padding: int | tuple[int, int] | None = 0,
    ):
        super().__init__(kernel_size, stride, padding)


class MaxPool3d(_Pool):
    """The largest elements of windows of volumes, [batch, depth, height, width, channels]; see `MaxPool1d`, with ints
    or triples as options.

    >>> import smelt
    >>> smelt.nn.MaxPool3d(2)(smelt.ones((1, 4, 4, 4, 2))).shape
    (1, 2, 2, 2, 2)
    """

    _spatial, _mean = 3, False

    def __init__(
        self,
        kernel_size: int | tuple[int, int, int],
        stride: int | tuple[int, int, int] | None = None,
        padding: int | tuple[int, int, int] | None = 0,
    ):
        super().__init__(kernel_size, stride, padding)


class AvgPool3d(_Pool):
    """The means of windows of volumes, [batch, depth, height, width, channels]; see `AvgPool1d`, with ints or triples
    as options.

    >>> import smelt
    >>> smelt.nn.AvgPool3d((1, 2, 2))(smelt.ones((1, 4, 4, 4, 2))).shape
    (1, 4, 2, 2, 2)
    """

    _spatial, _mean = 3, True

    def __init__(
        self,
        kernel_size: int | tuple[int, int, int],
        stride: int | tuple[int, int, int] | None = None,
        padding: int | tuple[int, int, int] | None = 0,
    ):
        super().__init__(kernel_size, stride, padding)
