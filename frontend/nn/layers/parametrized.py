"""Layers whose weight is computed from others at each call: directions and lengths, or divided by its largest singular
value."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import smelt
from smelt import array
from smelt.ir.errors import AttributeValueError, at_user_line, shown

from .base import Module

__all__ = ["SpectralNorm", "WeightNorm"]


class _Parametrized(Module):
    """Calls a layer with another weight than it holds."""

    def __init__(self, layer: Module, name: str):
        super().__init__()
        if not isinstance(layer, Module) or not isinstance(layer.get(name), array):
            raise AttributeValueError(
                at_user_line(
                    f"smelt.nn.{type(self).__name__}: needs a layer with a parameter {shown(name)}, got {shown(layer)}"
                )
            )
        self.layer = layer
        self.name = name

    def _extra_repr(self) -> str:
        return repr(self.name)

    def _called_with(self, weight: array, args: Any, kwargs: Any) -> Any:
        layer: Any = self.layer
        held = layer[self.name]
        layer[self.name] = weight
        try:
            return layer(*args, **kwargs)
        finally:
            layer[self.name] = held


class WeightNorm(_Parametrized):
    """A layer with the weight scale · v / |v|, where v is what the layer holds (Salimans and Kingma, 2016).

    Args:
        layer: a module with a weight. name: of that. axis: the norms are those of what stands along all other axes:
            of each output, by default.

    Attributes:
        layer: the module, whose weight is v. scale: the lengths; those of the weight at first, which is so unchanged.

    Raises:
        AttributeValueError: no such weight.

    >>> import smelt
    >>> layer = smelt.nn.Linear(2, 3)
    >>> x = smelt.ones((1, 2))
    >>> normed = smelt.nn.WeightNorm(layer)
    >>> smelt.allclose(normed(x), layer(x)).item(), sorted(normed.parameters())
    (True, ['layer', 'scale'])
    """

    def __init__(self, layer: Module, name: str = "weight", axis: int = 0):
        super().__init__(layer, name)
        self.axis = axis
        self.scale = self._norms(layer[name])

    def _norms(self, weight: array) -> array:
        axes = tuple(i for i in range(weight.ndim) if i != self.axis % weight.ndim)
        return smelt.sqrt(smelt.sum(smelt.square(weight), axis=axes, keepdims=True))

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        v = self["layer"][self.name]
        return self._called_with(v * (self["scale"] / self._norms(v)), args, kwargs)


class SpectralNorm(_Parametrized):
    """A layer with its weight divided by the largest singular value (Miyato et al., 2018).

    The weight is a matrix whose rows are its first axis. In training each call makes `steps` steps of power iteration.

    Args:
        layer: a module with a weight. name: of that. steps, eps: of the iteration; eps keeps weights of 0 finite.

    Attributes:
        layer: the module. left, right: the singular vectors so far; never trained, but saved with the parameters.

    Raises:
        AttributeValueError: no such weight.

    >>> import smelt
    >>> normed = smelt.nn.SpectralNorm(smelt.nn.Linear(2, 2, bias=False))
    >>> normed.layer.weight = smelt.array([[3.0, 0.0], [0.0, 1.0]])
    >>> for _ in range(20):
    ...     y = normed(smelt.array([[3.0, 3.0]]))
    >>> y
    array([[3, 1]], dtype=float32)
    """

    def __init__(self, layer: Module, name: str = "weight", steps: int = 1, eps: float = 1e-12):
        super().__init__(layer, name)
        self.steps = steps
        self.eps = eps
        matrix = self._matrix()
        self.left, self.right = (self._unit(smelt.random.normal((n,), matrix.dtype)) for n in matrix.shape)
        self._iterate(matrix, 15)
        self._freeze_vectors()

    def _matrix(self) -> array:
        weight = self["layer"][self.name]
        return weight.reshape(weight.shape[0], math.prod(weight.shape[1:]))

    def _unit(self, x: array) -> array:
        return x / smelt.maximum(smelt.sqrt(smelt.sum(smelt.square(x))), self.eps)

    def _iterate(self, matrix: array, steps: int) -> None:
        matrix = smelt.stop_gradient(matrix)
        for _ in range(steps):
            self.right = self._unit(self.left @ matrix)
            self.left = self._unit(matrix @ self.right)

    def _freeze_vectors(self) -> None:
        self.freeze(keys=["left", "right"], recurse=False)

    def unfreeze(
        self, *, recurse: bool = True, keys: str | Sequence[str] | None = None, strict: bool = False
    ) -> Any:
        """As of any module, but the singular vectors stay frozen.

        Args:
            recurse, keys, strict: as of `Module.freeze`.
        """
        super().unfreeze(recurse=recurse, keys=keys, strict=strict)
        self._freeze_vectors()
        return self

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        matrix = self._matrix()
        if self.training:
            self._iterate(matrix, self.steps)
        largest = self.left @ matrix @ self.right
        return self._called_with(self["layer"][self.name] / smelt.maximum(largest, self.eps), args, kwargs)
