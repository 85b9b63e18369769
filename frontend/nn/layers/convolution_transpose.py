"""Transposed convolutions: the linear maps that carry gradients of convolutions back."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import smelt
from smelt import array

from ...lazy.arguments import integer
from .base import Module
from .windows import as_attribute, each

__all__ = ["ConvTranspose1d", "ConvTranspose2d", "ConvTranspose3d"]


class _ConvolutionTranspose(Module):
    """What the kinds share."""

    _spatial: int

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Any,
        stride: Any = 1,
        padding: Any = 0,
        dilation: Any = 1,
        output_padding: Any = 0,
        bias: bool = True,
    ):
        super().__init__()
        name, n = type(self).__name__, self._spatial
        integer(f"nn.{name}", "in_channels", in_channels, 1)
        extents = each(name, "kernel_size", kernel_size, n, 1)
        self.stride = as_attribute(each(name, "stride", stride, n, 1))
        self.padding = as_attribute(each(name, "padding", padding, n))
        self.dilation = as_attribute(each(name, "dilation", dilation, n, 1), dilation)
        self.output_padding = as_attribute(each(name, "output_padding", output_padding, n))
        bound = 1 / math.sqrt(in_channels * math.prod(extents))
        self.weight = smelt.random.uniform(-bound, bound, (out_channels, *extents, in_channels))
        if bias:
            self.bias = smelt.zeros((out_channels,))

    def _extra_repr(self) -> str:
        options = [("kernel_size", as_attribute(self.weight.shape[1:-1]))]
        options += [(what, getattr(self, what)) for what in ("stride", "padding", "dilation", "output_padding")]
        listed = ", ".join(f"{what}={v}" for what, v in options)
        return f"{self.weight.shape[-1]}, {self.weight.shape[0]}, {listed}, bias={'bias' in self}"

    @classmethod
    def _function(cls) -> Callable[..., array]:
        return (smelt.conv_transpose1d, smelt.conv_transpose2d, smelt.conv_transpose3d)[cls._spatial - 1]

    def __call__(self, x: array) -> array:
        found = self._function()(x, self.weight, self.stride, self.padding, self.dilation, self.output_padding)
        return found + self.bias if "bias" in self else found


class ConvTranspose1d(_ConvolutionTranspose):
    """The transposed convolution along one axis, [batch, length, in_channels].

    Args:
        in_channels, out_channels: the extents of the last axes of the argument and of the result.
        kernel_size, stride, padding, dilation: of the convolution whose gradient this is; see `Conv1d`.
        output_padding: how many elements of the result follow. bias: whether there is one.

    Attributes:
        weight: [out_channels, kernel_size, in_channels]; uniform between ±1/√(in_channels · kernel_size) at first.
            bias: [out_channels], zeros at first.

    Raises:
        ArgumentTypeError: an option that is no int.

    >>> import smelt
    >>> smelt.nn.ConvTranspose1d(2, 4, kernel_size=3, stride=2)(smelt.ones((5, 8, 2))).shape
    (5, 17, 4)
    """

    _spatial = 1

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: int,
        stride: int = 1,
        padding: int = 0,
        dilation: int = 1,
        output_padding: int = 0,
        bias: bool = True,
    ):
        super().__init__(in_channels, out_channels, kernel_size, stride, padding, dilation, output_padding, bias)


class ConvTranspose2d(_ConvolutionTranspose):
    """The transposed convolution of pictures, [batch, height, width, in_channels]; see `ConvTranspose1d`, with ints or
    pairs as options.

    >>> import smelt
    >>> smelt.nn.ConvTranspose2d(3, 4, 2, stride=2)(smelt.ones((2, 5, 6, 3))).shape
    (2, 10, 12, 4)
    """

    _spatial = 2

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: int | tuple[int, int],
        stride: int | tuple[int, int] = 1,
        padding: int | tuple[int, int] = 0,
        dilation: int | tuple[int, int] = 1,
        output_padding: int | tuple[int, int] = 0,
        bias: bool = True,
    ):
        super().__init__(in_channels, out_channels, kernel_size, stride, padding, dilation, output_padding, bias)


class ConvTranspose3d(_ConvolutionTranspose):
    """The transposed convolution of volumes, [batch, depth, height, width, in_channels]; see `ConvTranspose1d`, with
    ints or triples as options.

    >>> import smelt
    >>> smelt.nn.ConvTranspose3d(1, 2, 2)(smelt.ones((1, 2, 3, 4, 1))).shape
    (1, 3, 4, 5, 2)
    """

    _spatial = 3

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: int | tuple[int, int, int],
        stride: int | tuple[int, int, int] = 1,
        padding: int | tuple[int, int, int] = 0,
        dilation: int | tuple[int, int, int] = 1,
        output_padding: int | tuple[int, int, int] = 0,
        bias: bool = True,
    ):
        super().__init__(in_channels, out_channels, kernel_size, stride, padding, dilation, output_padding, bias)
