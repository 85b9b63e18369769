"""Weights of elements, for functions that let some count more than others."""

from __future__ import annotations

from smelt.ir.errors import ShapeError, at_user_line

from ..lazy.arrays import array, broadcast_to_shape
from ..lazy.movement import Axes, many_axes, permuted, to_shape

__all__: list[str] = []


def weights_of(name: str, x: array, weights: array, axis: Axes | None) -> array:
    """Weights in the shape of x, that they have or that have the extents of `axis`, in its order."""
    if weights.shape == x.shape:
        return weights
    order = many_axes(name, axis, x.shape)
    if weights.shape != tuple(x.shape[i] for i in order):
        message = f"smelt.{name}: weights {weights.aval} do not fit to a {x.aval} on axis {axis}"
        raise ShapeError(at_user_line(message))
    weights = permuted(weights, tuple(sorted(range(weights.ndim), key=order.__getitem__)))
    weights = to_shape(weights, tuple(d if i in order else 1 for i, d in enumerate(x.shape)))
    return broadcast_to_shape(weights, x.shape)
