"""Fourier transforms."""

from __future__ import annotations

import math

import smelt
from smelt import array

from ..graph import Node, rule


def _scale(normalization: int, count: int) -> float:
    """PyTorch's three: none, by the root, by the number of elements."""
    return (1.0, count**-0.5, 1 / count)[normalization]


def _scaled(x: array, factor: float) -> array:
    return x if factor == 1 else x * factor


@rule("aten._fft_r2c")
def _forward_real(n: Node, x: array, dims: list[int], normalization: int, onesided: bool) -> array:
    factor = _scale(normalization, math.prod(x.shape[d] for d in dims))
    return _scaled((smelt.fft.rfftn if onesided else smelt.fft.fftn)(x, axes=tuple(dims)), factor)


@rule("aten._fft_c2c")
def _complex(n: Node, x: array, dims: list[int], normalization: int, forward: bool) -> array:
    count = math.prod(x.shape[d] for d in dims)
    if not dims:
        return x
    if forward:
        return _scaled(smelt.fft.fftn(x, axes=tuple(dims)), _scale(normalization, count))
    return _scaled(smelt.fft.ifftn(x, axes=tuple(dims)), count * _scale(normalization, count))


@rule("aten._fft_c2r")
def _backward_real(n: Node, x: array, dims: list[int], normalization: int, last: int) -> array:
    sizes = [*(x.shape[d] for d in dims[:-1]), last]
    count = math.prod(sizes)
    return _scaled(smelt.fft.irfftn(x, s=sizes, axes=tuple(dims)), count * _scale(normalization, count))
