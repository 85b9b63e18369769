"""Windows over the axes of space, as ONNX and PyTorch define them: the channels are axis 1, the axes of space come
after it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import smelt
from smelt import array

from .translating import Refused

Sizes = Sequence[int]


def _last(x: array) -> array:
    """With the channels as the last axis."""
    return smelt.moveaxis(x, 1, -1)


def convolved(x: array, w: array, bias: array | None, strides: Sizes, low: Sizes, high: Sizes, dilations: Sizes,
              groups: int) -> array:  # fmt: skip
    """A convolution; a kernel is [out, in / groups, space].

    Args:
        low, high: how many zeros stand before and behind each axis of space.
    """
    found = smelt.conv_general(
        _last(x), _last(w), stride=strides, padding=(low, high), kernel_dilation=dilations, groups=groups
    )
    found = smelt.moveaxis(found, -1, 1)
    return found if bias is None else found + bias.reshape(1, -1, *(1,) * (x.ndim - 2))


def transposed(x: array, w: array, bias: array | None, strides: Sizes, low: Sizes, high: Sizes, dilations: Sizes,
               groups: int) -> array:  # fmt: skip
    """The derivative of a convolution: elements put apart by the strides meet the kernel turned round.

    Args:
        w: [in, out / groups, space].
        low, high: how many elements of the full result are left out at both ends; negative ones add zeros.
    """
    kernel, inputs = w.shape[2:], w.shape[0] // groups
    reach = [(k - 1) * d + 1 for k, d in zip(kernel, dilations)]
    # to [out, in / groups, space]
    parts = w.reshape(groups, inputs, *w.shape[1:])
    parts = smelt.swapaxes(parts, 1, 2).reshape(groups * w.shape[1], inputs, *kernel)
    edge = ([r - 1 - a for r, a in zip(reach, low)], [r - 1 - a for r, a in zip(reach, high)])
    grown, cropped = (
        [[max(0, e) for e in side] for side in edge], [[max(0, -e) for e in side] for side in edge],
    )  # fmt: skip
    found = smelt.conv_general(
        _last(x), _last(parts), padding=(grown[0], grown[1]), kernel_dilation=dilations, input_dilation=strides,
        groups=groups, flip=True,
    )  # fmt: skip
    inside = (slice(None), *(slice(a, d - b) for a, b, d in zip(cropped[0], cropped[1], found.shape[1:-1])))
    found = smelt.moveaxis(found[inside], -1, 1)
    return found if bias is None else found + bias.reshape(1, -1, *(1,) * (x.ndim - 2))


class Windows:
    """Windows that move over an array: where they lie, and how many elements of the array each meets.

    Args:
        sizes: of the axes of space. low, high: the padding before and behind each.
        ceil: whether a window may reach beyond the padding behind.

    Raises:
        Refused: there is no room for a window.
    """

    def __init__(
        self, sizes: Sizes, kernel: Sizes, strides: Sizes, low: Sizes, high: Sizes, dilations: Sizes, ceil: bool
    ):
        self.sizes, self.kernel, self.strides, self.dilations = sizes, list(kernel), strides, dilations
        self.low, self.high = low, high
        self.counts, self.grown = [], []
        for d, k, s, r, a, b in zip(sizes, self.kernel, strides, dilations, low, high):
            room = d + a + b - ((k - 1) * r + 1)
            count = (-(-room // s) if ceil else room // s) + 1
            if ceil and (count - 1) * s >= d + a:
                count -= 1  # a window that starts in the padding after the array
            if count < 1:
                reach = f"{k}" + f" with a dilation of {r}" * (r != 1)
                raise Refused(f"has a window of {reach} over an axis of {d}, which has {d + a + b} with its padding")
            self.counts.append(count)
            self.grown.append((a, max(b, (count - 1) * s + (k - 1) * r + 1 - d - a)))

    def padded(self, x: array, value: float | int) -> array:
        return smelt.pad(x, [(0, 0), (0, 0), *self.grown], constant_values=value)

    def taps(self, x: array, axis: int) -> list[array]:
        """The elements of the windows along one axis of space, one array a place in the window."""
        found = []
        for k in range(self.kernel[axis]):
            start = k * self.dilations[axis]
            stop = start + (self.counts[axis] - 1) * self.strides[axis] + 1
            index = [slice(None)] * x.ndim
            index[axis + 2] = slice(start, stop, self.strides[axis])
            found.append(x[tuple(index)])
        return found

    def folded(self, x: array, fold: Callable[[array, array], array]) -> array:
        """The elements of each window of a padded array, folded."""
        for axis in range(len(self.kernel)):
            first, *rest = self.taps(x, axis)
            for tap in rest:
                first = fold(first, tap)
            x = first
        return x

    def elements(self, with_padding: bool) -> np.ndarray:
        """How many elements a window meets, padding included or not."""
        total = np.ones(())
        for d, a, b, (_, after), k, s, r, count in zip(
            self.sizes, self.low, self.high, self.grown, self.kernel, self.strides, self.dilations, self.counts
        ):
            line = np.zeros(d + a + max(after, b))
            line[0 if with_padding else a : a + d + (b if with_padding else 0)] = 1
            starts = np.arange(count) * s
            total = total[..., None] * line[starts[:, None] + np.arange(k) * r].sum(-1)
        return total

    def largest(self, x: array, place: array) -> tuple[array, array]:
        """The largest element of each window, and its place.

        Args:
            place: what says where an element of the array stands; of its shape, or one that broadcasts to it.
        """
        pairs = [(self.padded(x, lowest(x)), self.padded(place, 0))]
        for axis in range(len(self.kernel)):
            pairs = [pair for v, p in pairs for pair in zip(self.taps(v, axis), self.taps(p, axis))]
        return larger(pairs)


def larger(pairs: Sequence[tuple[array, array]]) -> tuple[array, array]:
    """Of arrays and their elements' places the largest elements, the first of several, and their places."""
    best, at = pairs[0]
    for value, where in pairs[1:]:
        better = value > best
        if value.dtype.is_inexact:
            better = better | (smelt.isnan(value) & ~smelt.isnan(best))
        best, at = smelt.where(better, value, best), smelt.where(better, where, at)
    return best, at


def lowest(x: array) -> Any:
    """A number that no element is less than."""
    return -smelt.inf if x.dtype.is_inexact else int(smelt.iinfo(x.dtype).min)
