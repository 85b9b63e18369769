"""Modules that call others."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .base import Module

__all__ = ["Sequential"]


class Sequential(Module):
    """Modules and functions, one after the other.

    Attributes:
        layers: the list of them.

    >>> import smelt
    >>> smelt.nn.Sequential(smelt.exp, smelt.nn.Tanh())(smelt.array([0.0, 100.0]))
    array([0.761594, 1], dtype=float32)
    """

    def __init__(self, *modules: Callable[[Any], Any]):
        super().__init__()
        self.layers = list(modules)

    def __call__(self, x: Any) -> Any:
        for layer in self.layers:
            x = layer(x)
        return x
