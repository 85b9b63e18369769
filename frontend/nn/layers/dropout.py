"""Dropout: in training, zeros in place of random elements or channels."""

from __future__ import annotations

from typing import Any

import smelt
from smelt import array
from smelt.ir.errors import AttributeValueError, ShapeError, at_user_line, shown

from .base import Module

__all__ = ["Dropout", "Dropout2d", "Dropout3d"]


class _Dropout(Module):
    """What the kinds share. Numbers come from the global state of `smelt.random`: a compiled function captures it."""

    #: How many axes before the last one are zero together.
    _shared = 0

    def __init__(self, p: Any = 0.5):
        super().__init__()
        # Chances that were computed, by smelt or by NumPy, count by their values.
        chance = p.item() if getattr(p, "ndim", None) == 0 else p
        if isinstance(chance, bool) or not isinstance(chance, (int, float)) or not 0 <= chance < 1:
            raise AttributeValueError(
                at_user_line(f"smelt.nn.{type(self).__name__}: p must be at least 0 and less than 1, is {shown(p)}")
            )
        self._p = float(chance)

    def _extra_repr(self) -> str:
        return f"p={self._p}"

    def __call__(self, x: array) -> array:
        if not self.training or not self._p:
            return x
        keep = 1 - self._p
        return smelt.where(smelt.random.bernoulli(keep, self._shape(x)), x * (1 / keep), 0)

    def _shape(self, x: array) -> tuple[int, ...]:
        n = self._shared
        if not n:
            return x.shape
        if x.ndim not in (n + 1, n + 2):
            raise ShapeError(
                at_user_line(f"smelt.nn.{type(self).__name__}: needs {n + 1} axes, or one for a batch too; x {x.aval}")
            )
        return (*x.shape[: -n - 1], *(1,) * n, x.shape[-1])


class Dropout(_Dropout):
    """In training, each element becomes zero with probability `p`, and others are divided by 1 - p.

    Under `smelt.compile`, capture `smelt.random.state`, or each call repeats the same numbers.

    Raises:
        AttributeValueError: `p` is less than 0, or not less than 1.

    >>> import smelt
    >>> smelt.nn.Dropout(0.0)(smelt.array([1.0, 2.0]))
    array([1, 2], dtype=float32)
    """


class Dropout2d(_Dropout):
    """`Dropout` of whole channels of pictures, [batch, height, width, channels] or without the batch.

    Raises:
        AttributeValueError: `p` is less than 0, or not less than 1. ShapeError: other axes.

    >>> import smelt
    >>> smelt.nn.Dropout2d()(smelt.ones((2, 3, 3, 4))).sum(axis=(1, 2)).shape
    (2, 4)
    """

    _shared = 2


class Dropout3d(_Dropout):
    """`Dropout` of whole channels of volumes, [batch, depth, height, width, channels] or without the batch.

    Raises:
        AttributeValueError: `p` is less than 0, or not less than 1. ShapeError: other axes.

    >>> import smelt
    >>> smelt.nn.Dropout3d().eval()(smelt.ones((2, 3, 3, 3, 4))).shape
    (2, 3, 3, 3, 4)
    """

    _shared = 3
