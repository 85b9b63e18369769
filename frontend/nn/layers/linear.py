"""Affine maps of the last axis."""

from __future__ import annotations

import math
from typing import Any

import smelt
from smelt import array
from smelt.ir.errors import ShapeError, at_user_line

from ...lazy.arguments import integer
from .base import Module
from .quantized import QQLinear, QuantizedLinear

__all__ = ["Bilinear", "Identity", "Linear"]


class Identity(Module):
    """Its argument, whatever it is made with.

    Args:
        args, kwargs: whatever; they are ignored.

    >>> import smelt
    >>> smelt.nn.Identity("anything")(smelt.array([1.0]))
    array([1], dtype=float32)
    """

    def __init__(self, *args: Any, **kwargs: Any):
        super().__init__()

    def __call__(self, x: array) -> array:
        return x


class Linear(Module):
    """x · weightᵀ + bias.

    Args:
        input_dims: the extent of the last axis of the argument. output_dims: that of the result.
        bias: whether there is one.

    Attributes:
        weight: [output_dims, input_dims]. bias: [output_dims]. Both are uniform between ±1/√input_dims at first.

    Raises:
        ShapeError: when called with another extent.

    >>> import smelt
    >>> smelt.nn.Linear(2, 3)(smelt.ones((5, 2))).shape
    (5, 3)
    """

    def __init__(self, input_dims: int, output_dims: int, bias: bool = True):
        super().__init__()
        bound = 1 / math.sqrt(input_dims) if input_dims else 0.0
        self.weight = smelt.random.uniform(-bound, bound, (output_dims, input_dims))
        if bias:
            self.bias = smelt.random.uniform(-bound, bound, (output_dims,))

    def _extra_repr(self) -> str:
        outputs, inputs = self.weight.shape
        return f"input_dims={inputs}, output_dims={outputs}, bias={'bias' in self}"

    def __call__(self, x: array) -> array:
        if "bias" in self:
            return smelt.addmm(self["bias"], x, self["weight"].T)
        return x @ self["weight"].T

    def to_quantized(
        self, group_size: int | None = None, bits: int | None = None, mode: str = "affine", quantize_input: bool = False
    ) -> Module:
        """The same with its weight packed (`QuantizedLinear`), or with its argument quantized, too (`QQLinear`).

        Args:
            group_size, bits, mode: as of `smelt.quantize`. quantize_input: whether the argument is, too.

        >>> import smelt
        >>> smelt.nn.Linear(64, 2).to_quantized(32, 8)
        QuantizedLinear(input_dims=64, output_dims=2, bias=True, group_size=32, bits=8, mode=affine)
        """
        kind = QQLinear if quantize_input else QuantizedLinear
        return kind.from_linear(self, group_size, bits, mode)


class Bilinear(Module):
    """Result k is x1 · weight[k] · x2 + bias[k].

    Args:
        input1_dims, input2_dims: the extents of the last axes of the arguments. output_dims: that of the result.
        bias: whether there is one.

    Attributes:
        weight: [output_dims, input2_dims, input1_dims]. bias: [output_dims]. Both are uniform between
            ±1/√input1_dims at first.

    Raises:
        ShapeError: when called with vectors of other extents, or not as many of one as of the other.

    >>> import smelt
    >>> smelt.nn.Bilinear(2, 3, 4)(smelt.ones((5, 2)), smelt.ones((5, 3))).shape
    (5, 4)
    """

    def __init__(self, input1_dims: int, input2_dims: int, output_dims: int, bias: bool = True):
        super().__init__()
        bound = 1 / math.sqrt(integer("nn.Bilinear", "input1_dims", input1_dims, 1))
        self.weight = smelt.random.uniform(-bound, bound, (output_dims, input2_dims, input1_dims))
        if bias:
            self.bias = smelt.random.uniform(-bound, bound, (output_dims,))

    def _extra_repr(self) -> str:
        outputs, second, first = self.weight.shape
        return f"input1_dims={first}, input2_dims={second}, output_dims={outputs}, bias={'bias' in self}"

    def __call__(self, x1: array, x2: array) -> array:
        outputs, second, first = self.weight.shape
        batch = x1.shape[:-1]
        count = math.prod(batch)
        if (x1.shape[-1:], x2.shape[-1:]) != ((first,), (second,)) or math.prod(x2.shape[:-1]) not in (1, count):
            message = f"smelt.nn.Bilinear: needs equally many vectors of {first} and of {second} elements"
            raise ShapeError(at_user_line(f"{message}; x1 {x1.aval}, x2 {x2.aval}"))
        rows = x1.reshape(-1, first) @ self.weight.reshape(outputs * second, first).T
        found = rows.reshape(-1, outputs, second) @ x2.reshape(-1, second, 1)
        found = found.reshape(*batch, outputs)
        return found + self.bias if "bias" in self else found
