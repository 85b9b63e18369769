"""Derivatives that stand in a program: those of the forward ops' rules."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import smelt
from smelt import array

from ..graph import Node, rule
from .normalization import group_norm, layer_norm


def _derivatives(
    forward: Callable[..., Any], given: Sequence[array | None], g: array, wanted: Sequence[bool]
) -> list[Any]:
    """By those of `given` that are wanted and there."""
    here = [x for x in given if x is not None]

    def f(*arrays: array) -> array:
        rest = iter(arrays)
        return forward(*[None if x is None else next(rest) for x in given])[0]

    found = iter(smelt.vjp(f, here, [g])[1])
    all_of_them = [None if x is None else next(found) for x in given]
    return [d if use else None for d, use in zip(all_of_them, wanted)]


@rule("aten.native_layer_norm_backward")
def _layer_norm_backward(n: Node, g: array, x: array, shape: Sequence[int], mean: array, scale: array,
                         weight: array | None, bias: array | None, wanted: Sequence[bool]) -> list[Any]:  # fmt: skip
    eps = smelt.stop_gradient(_eps(x, shape, scale))
    return _derivatives(lambda x, w, b: layer_norm(n, x, shape, w, b, eps), (x, weight, bias), g, wanted)


def _eps(x: array, shape: Sequence[int], scale: array) -> Any:
    """What was added to the variance, which the op does not say: scale⁻² - variance."""
    axes = tuple(range(x.ndim - len(shape), x.ndim))
    return scale**-2 - smelt.var(x, axes, True)


@rule("aten.native_group_norm_backward")
def _group_norm_backward(n: Node, g: array, x: array, mean: array, scale: array, weight: array | None, size: int,
                         channels: int, rest: int, groups: int, wanted: Sequence[bool]) -> list[Any]:  # fmt: skip
    lines = x.reshape(size, groups, channels // groups * rest)
    eps = smelt.stop_gradient(scale.reshape(size, groups, 1) ** -2 - smelt.var(lines, 2, True))
    bias = smelt.zeros((channels,), x.dtype)
    forward = lambda x, w, b: group_norm(n, x, w, b, size, channels, rest, groups, eps)  # noqa: E731
    return _derivatives(forward, (x, weight, bias), g, wanted)
