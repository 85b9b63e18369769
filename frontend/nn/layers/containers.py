"""Modules that call others, and one that makes vectors of pictures for those."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, overload

import smelt
from smelt import array
from smelt.ir.errors import TreeError, at_user_line

from ...transforms.recording import check_function
from .base import Module

__all__ = ["Flatten", "Sequential"]


class Sequential(Module):
    """Modules and functions, one after the other.

    Args:
        modules: called in this order, each with the result of the one before.

    Raises:
        TreeError: what is no module or function, or the class of one.

    Attributes:
        layers: the list of them.

    >>> import smelt
    >>> smelt.nn.Sequential(smelt.exp, smelt.nn.Tanh())(smelt.array([0.0, 100.0]))
    array([0.761594, 1], dtype=float32)
    """

    def __init__(self, *modules: Callable[[Any], Any]):
        super().__init__()
        for i, module in enumerate(modules):
            check_function(module, f"smelt.nn.Sequential: modules[{i}]")
            if isinstance(module, type) and issubclass(module, Module):
                rule = f"modules[{i}] is the class {module.__name__}; make a module of it: {module.__name__}(…)"
                raise TreeError(at_user_line(f"smelt.nn.Sequential: {rule}"))
        self.layers = list(modules)

    @overload
    def __call__(self, x: array) -> array: ...

    @overload
    def __call__(self, x: Any) -> Any: ...

    def __call__(self, x: Any) -> Any:
        for layer in self.layers:
            x = layer(x)
        return x


class Flatten(Module):
    """Several axes as one: all but the first by default. See `smelt.flatten`.

    >>> import smelt
    >>> smelt.nn.Flatten()(smelt.ones((2, 4, 4, 3))).shape
    (2, 48)
    """

    def __init__(self, start_axis: int = 1, end_axis: int = -1):
        super().__init__()
        self.start_axis = start_axis
        self.end_axis = end_axis

    def _extra_repr(self) -> str:
        return f"start_axis={self.start_axis}, end_axis={self.end_axis}"

    def __call__(self, x: array) -> array:
        return smelt.flatten(x, self.start_axis, self.end_axis)
