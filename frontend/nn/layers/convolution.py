"""Convolutions of sequences, pictures and volumes, whose channels are the last axis."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import smelt
from smelt import array
from smelt.ir.errors import AttributeValueError, at_user_line

from ...lazy.arguments import integer
from .base import Module
from .windows import as_attribute, each

__all__ = ["Conv1d", "Conv2d", "Conv3d"]


class _Convolution(Module):
    """What the kinds share."""

    _spatial: int
    _function: Callable[..., array]

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Any,
        stride: Any = 1,
        padding: Any = 0,
        dilation: Any = 1,
        groups: int = 1,
        bias: bool = True,
    ):
        super().__init__()
        name, n = type(self).__name__, self._spatial
        integer(f"nn.{name}", "in_channels", in_channels, 1)
        integer(f"nn.{name}", "groups", groups, 1)
        if in_channels % groups or out_channels % groups:
            raise AttributeValueError(
                at_user_line(
                    f"smelt.nn.{name}: channels must be {groups} equal groups; {in_channels} come in, {out_channels} "
                    "go out"
                )
            )
        extents = each(name, "kernel_size", kernel_size, n, 1)
        self.stride = as_attribute(each(name, "stride", stride, n, 1))
        self.padding = as_attribute(each(name, "padding", padding, n))
        self.dilation = as_attribute(each(name, "dilation", dilation, n, 1), dilation)
        self.groups = groups
        bound = 1 / math.sqrt(in_channels // groups * math.prod(extents))
        self.weight = smelt.random.uniform(-bound, bound, (out_channels, *extents, in_channels // groups))
        if bias:
            self.bias = smelt.zeros((out_channels,))

    def _extra_repr(self) -> str:
        options = [("kernel_size", as_attribute(self.weight.shape[1:-1]))]
        options += [(what, getattr(self, what)) for what in ("stride", "padding", "dilation")]
        listed = ", ".join(f"{what}={v}" for what, v in options)
        if self._spatial < 3 or self.groups > 1:  # MLX's Conv3d has no groups
            listed += f", groups={self.groups}"
        inputs, outputs = self.weight.shape[-1] * self.groups, self.weight.shape[0]
        return f"{inputs}, {outputs}, {listed}, bias={'bias' in self}"

    def __call__(self, x: array) -> array:
        found = type(self)._function(x, self.weight, self.stride, self.padding, self.dilation, self.groups)
        return found + self.bias if "bias" in self else found


class Conv1d(_Convolution):
    """The convolution along one axis: see `smelt.conv1d`.

    Args:
        in_channels, out_channels: the extents of the last axes of the argument, [batch, length, in_channels], and of
            the result.
        kernel_size: the length of the window. stride: how far it moves. padding: how many zeros stand before and
            behind. dilation: how far apart the elements of the window are.
        groups: the i-th part of the output channels sees only the i-th part of the input channels.
        bias: whether there is one.

    Attributes:
        weight: [out_channels, kernel_size, in_channels / groups]; uniform between ±1/√n at first, for n
            elements of the argument that one of the result depends on. bias: [out_channels], zeros at first.

    Raises:
        AttributeValueError: channels that are not `groups` equal groups, a window, step or dilation below 1.
        ArgumentTypeError: an option that is no int.

    >>> import smelt
    >>> smelt.nn.Conv1d(2, 4, kernel_size=3, padding=1)(smelt.ones((5, 8, 2))).shape
    (5, 8, 4)
    """

    _spatial, _function = 1, staticmethod(smelt.conv1d)

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: int,
        stride: int = 1,
        padding: int = 0,
        dilation: int = 1,
        groups: int = 1,
        bias: bool = True,
    ):
        super().__init__(in_channels, out_channels, kernel_size, stride, padding, dilation, groups, bias)


class Conv2d(_Convolution):
    """The convolution of pictures, [batch, height, width, in_channels]; options are those of `Conv1d`, ints or pairs.

    Attributes:
        weight: [out_channels, height and width of the window, in_channels / groups]; uniform between
            ±1/√n at first, for n as in `Conv1d`. bias: [out_channels], zeros at first.

    Raises:
        AttributeValueError: channels that are not `groups` equal groups. ArgumentTypeError: an option that is neither
            an int nor a pair of these.

    >>> import smelt
    >>> smelt.nn.Conv2d(3, 4, kernel_size=(3, 5), stride=2)(smelt.ones((2, 9, 9, 3))).shape
    (2, 4, 3, 4)
    """

    _spatial, _function = 2, staticmethod(smelt.conv2d)

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: int | tuple[int, int],
        stride: int | tuple[int, int] = 1,
        padding: int | tuple[int, int] = 0,
        dilation: int | tuple[int, int] = 1,
        groups: int = 1,
        bias: bool = True,
    ):
        super().__init__(in_channels, out_channels, kernel_size, stride, padding, dilation, groups, bias)


class Conv3d(_Convolution):
    """The convolution of volumes, [batch, depth, height, width, in_channels]; see `Conv2d`. MLX's has no groups.

    >>> import smelt
    >>> smelt.nn.Conv3d(1, 2, kernel_size=2)(smelt.ones((1, 3, 4, 5, 1))).shape
    (1, 2, 3, 4, 2)
    """

    _spatial, _function = 3, staticmethod(smelt.conv3d)

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: int | tuple[int, int, int],
        stride: int | tuple[int, int, int] = 1,
        padding: int | tuple[int, int, int] = 0,
        dilation: int | tuple[int, int, int] = 1,
        bias: bool = True,
        *,
        groups: int = 1,
    ):
        super().__init__(in_channels, out_channels, kernel_size, stride, padding, dilation, groups, bias)
