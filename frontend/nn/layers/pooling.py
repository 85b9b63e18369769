"""Pooling: the largest element, or the mean, of windows along spatial axes; channels are the last axis."""

from __future__ import annotations

import functools
import itertools
import math
from typing import Any

import smelt
from smelt import array
from smelt.ir.errors import ShapeError, at_user_line

from .base import Module
from .windows import each

__all__ = ["AvgPool1d", "AvgPool2d", "AvgPool3d", "MaxPool1d", "MaxPool2d", "MaxPool3d"]


#: Elements of the largest windows, of those that overlap, whose ties share the derivative; of larger ones one has it.
SHARED = 128


def _least(dtype: smelt.Dtype) -> float:
    """What no element is less than."""
    if smelt.issubdtype(dtype, smelt.inexact):
        return -math.inf
    return smelt.iinfo(dtype).min if smelt.issubdtype(dtype, smelt.integer) else 0


class _Pool(Module):
    """What the kinds share: windows along an axis after the other."""

    _spatial: int
    _mean: bool

    def __init__(self, kernel_size: Any, stride: Any = None, padding: Any = 0):
        super().__init__()
        name, n = type(self).__name__, self._spatial
        self._kernel_size = each(name, "kernel_size", kernel_size, n, 1)
        self._stride = each(name, "stride", kernel_size if stride is None else stride, n, 1)
        self._padding = each(name, "padding", 0 if padding is None else padding, n, 0)

    def _extra_repr(self) -> str:
        return f"kernel_size={self._kernel_size}, stride={self._stride}, padding={self._padding}"

    def __call__(self, x: array) -> array:
        name, n = type(self).__name__, self._spatial
        if x.ndim != n + 2:
            raise ShapeError(at_user_line(f"smelt.nn.{name}: needs {n + 2} axes, [batch, …, channels]; x {x.aval}"))
        if any(self._padding):
            least = 0 if self._mean else _least(x.dtype)
            sides = [(0, 0), *((p, p) for p in self._padding), (0, 0)]
            x = smelt.pad(x, sides, constant_values=least)
        for axis, window in enumerate(self._kernel_size, 1):
            if x.shape[axis] < window:
                raise ShapeError(
                    at_user_line(
                        f"smelt.nn.{name}: a window of {window} does not fit on axis {axis}, padding included; "
                        f"x {x.aval}"
                    )
                )
        sizes = list(enumerate(zip(self._kernel_size, self._stride), 1))
        if all(stride == window or x.shape[axis] < window + stride for axis, (window, stride) in sizes):
            found = self._side_by_side(x)
        elif self._mean or math.prod(self._kernel_size) > SHARED or not smelt.issubdtype(x.dtype, smelt.floating):
            found = self._overlapping(x)
        else:
            found = self._sharing()(x)
        return found / math.prod(self._kernel_size) if self._mean else found

    def _side_by_side(self, x: array) -> array:
        """The sums, or largest elements, of windows that share no elements."""
        counts = [(n - w) // s + 1 for n, w, s in zip(x.shape[1:], self._kernel_size, self._stride)]
        x = _cut(x, {axis: slice(0, c * w) for axis, (c, w) in enumerate(zip(counts, self._kernel_size), 1)})
        split = itertools.chain.from_iterable(zip(counts, self._kernel_size))
        axes = tuple(range(2, 2 * len(counts) + 1, 2))
        x = x.reshape(x.shape[0], *split, x.shape[-1])
        return smelt.sum(x, axis=axes) if self._mean else smelt.max(x, axis=axes)

    def _slices(self, x: array) -> list[list[tuple[int, slice]]]:
        """For each axis of the windows: the axis, and where the elements at one place of all windows stand."""
        found = []
        for axis, (window, stride) in enumerate(zip(self._kernel_size, self._stride), 1):
            stop = (x.shape[axis] - window) // stride * stride + 1
            found.append([(axis, slice(i, i + stop, stride)) for i in range(window)])
        return found

    def _overlapping(self, x: array) -> array:
        """The same of any windows: along an axis after the other."""
        for slices in self._slices(x):
            parts = [_cut(x, dict([part])) for part in slices]
            x = functools.reduce(smelt.add if self._mean else smelt.maximum, parts)
        return x

    def _sharing(self) -> Any:
        """`_overlapping`, where all of a window that are the largest share its derivative, as in MLX."""
        found = smelt.custom_function(self._overlapping)

        def places(x: array) -> list[dict[int, slice]]:
            return [dict(choice) for choice in itertools.product(*self._slices(x))]

        def share(x: array, y: array) -> tuple[list[array], array]:
            """Which elements are the largest of their windows, and how many a window has."""
            chosen = [_cut(x, place) == y for place in places(x)]
            return chosen, functools.reduce(smelt.add, [c.astype(x.dtype) for c in chosen])

        def pushed(x: array, tangent: array) -> array:
            chosen, count = share(x, found(x))
            parts = [smelt.where(c, _cut(tangent, place), 0) for c, place in zip(chosen, places(x))]
            return functools.reduce(smelt.add, parts) / count

        def pulled(x: array, cotangent: array, y: array) -> array:
            chosen, count = share(x, y)

            def spread(t: array) -> array:  # is linear
                parts = [smelt.where(c, _cut(t, place), 0) for c, place in zip(chosen, places(x))]
                return functools.reduce(smelt.add, parts)

            return smelt.vjp(spread, [x], [cotangent / count])[1][0]

        return found.jvp(pushed).vjp(pulled)


def _cut(x: array, parts: dict[int, slice]) -> array:
    """The part of an array."""
    return x[tuple(parts.get(axis, slice(None)) for axis in range(x.ndim))]


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
