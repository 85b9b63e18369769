"""Weights of elements, for functions that let some count more than others."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from smelt.ir.errors import AttributeValueError, ShapeError, at_user_line, shown

from ..lazy.arrays import array, broadcast_to_shape
from ..lazy.movement import Axes, many_axes, permuted, to_shape
from .indexing import holds_array, host_array
from .known_indices import known_elements

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


def not_negative(name: str, **places: int | None) -> Callable[[tuple, dict[str, Any]], None]:
    """The check of a function for weights of these names, and places among its arguments, of which none is negative.

    Those whose elements are not known here pass.
    """

    def check(args: tuple, named: dict[str, Any]) -> None:
        for word, place in places.items():
            weights = named.get(word) if place is None or len(args) <= place else args[place]
            if weights is None or (isinstance(weights, (list, tuple)) and holds_array(weights)):
                continue
            if isinstance(weights, array):
                host = None if weights.dtype.is_complex else known_elements(weights)
            else:
                host = host_array(weights)
                host = host if host.dtype.kind in "if" else None
            if host is not None and (host < 0).any():
                message = f"smelt.{name}: {word} must not be negative, are {shown(weights)}"
                raise AttributeValueError(at_user_line(message))

    return check


def quantiles_checked(name: str, most: float) -> Callable[[tuple, dict[str, Any]], None]:
    """The check of a function of an array, of parts q up to `most`, and of weights."""
    weights = not_negative(name, weights=None)

    def check(args: tuple, named: dict[str, Any]) -> None:
        weights(args, named)
        q = args[1] if len(args) > 1 else named.get("q")
        host = known_elements(q) if isinstance(q, array) and not q.dtype.is_complex else None
        if host is not None and host.size and not (host.min() >= 0 and host.max() <= most):
            raise AttributeValueError(at_user_line(f"smelt.{name}: q must lie within 0 and {most:g}, is {shown(q)}"))

    return check
