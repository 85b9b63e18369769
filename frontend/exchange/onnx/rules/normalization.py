"""Normalizations."""

from __future__ import annotations

from typing import Any

import smelt
from smelt import array

from ..graph import Node, rule


def _channels(v: array, rank: int) -> array:
    """A vector along axis 1."""
    return v.reshape(1, -1, *(1,) * (rank - 2))


@rule("BatchNormalization")
def _batch_normalization(n: Node) -> Any:
    x, scale, bias, mean, var = n.inputs[:5]
    epsilon, rank = n.attr("epsilon", 1e-5), n.x.ndim
    if not n.attr("training_mode", 0):
        factor = scale.astype(smelt.float32) / smelt.sqrt(var.astype(smelt.float32) + epsilon)
        found = (x - _channels(mean, rank)) * _channels(factor, rank) + _channels(bias, rank)
        return found.astype(x.dtype)
    axes = (0, *range(2, rank))
    own_mean, own_var = smelt.mean(x, axes), smelt.var(x, axes)
    found = (x - _channels(own_mean, rank)) / smelt.sqrt(_channels(own_var, rank) + epsilon)
    found = found * _channels(scale, rank) + _channels(bias, rank)
    m = n.attr("momentum", 0.9)
    running = (mean * m + own_mean * (1 - m), var * m + own_var * (1 - m))
    return (found.astype(x.dtype), *(r.astype(mean.dtype) for r in running))


@rule("InstanceNormalization")
def _instance_normalization(n: Node) -> array:
    x, rank = n.x, n.x.ndim
    axes = tuple(range(2, rank))
    found = (x - smelt.mean(x, axes, True)) * smelt.rsqrt(smelt.var(x, axes, True) + n.attr("epsilon", 1e-5))
    return found * _channels(n[1], rank) + _channels(n[2], rank)


def _wide(n: Node, x: array) -> array:
    """In the dtype in which the statistics are computed."""
    return x.astype(smelt.float32) if n.attr("stash_type", 1) == 1 and x.dtype.size < 4 else x


@rule("LayerNormalization")
def _layer_normalization(n: Node) -> Any:
    x = _wide(n, n.x)
    axis = n.attr("axis", -1) % x.ndim
    axes = tuple(range(axis, x.ndim))
    mean = smelt.mean(x, axes, True)
    centred = x - mean
    inverse = smelt.rsqrt(smelt.mean(centred * centred, axes, True) + n.attr("epsilon", 1e-5))
    found = (centred * inverse).astype(n.x.dtype) * n[1]
    found = found if n[2] is None else found + n[2]
    return (found, mean, inverse)[: n.outputs] if n.outputs > 1 else found


@rule("RMSNormalization", "SimplifiedLayerNormalization")
def _rms_normalization(n: Node) -> array:
    x = _wide(n, n.x)
    axes = tuple(range(n.attr("axis", -1) % x.ndim, x.ndim))
    found = x * smelt.rsqrt(smelt.mean(x * x, axes, True) + n.attr("epsilon", 1e-5))
    return found.astype(n.x.dtype) * n[1]


@rule("GroupNormalization")
def _group_normalization(n: Node) -> array:
    """Scale and bias are of the channels, before version 21 of the groups."""
    x, groups = _wide(n, n.x), n.attr("num_groups")
    size, channels = x.shape[:2]
    parts = x.reshape(size, groups, -1)
    found = (parts - smelt.mean(parts, 2, True)) * smelt.rsqrt(smelt.var(parts, 2, True) + n.attr("epsilon", 1e-5))
    found = found.reshape(*x.shape).astype(n.x.dtype)
    scale, bias = n[1], n[2]
    if scale.shape[0] != channels:
        scale, bias = (smelt.repeat(v, channels // groups, 0) for v in (scale, bias))
    return found * _channels(scale, x.ndim) + _channels(bias, x.ndim)


@rule("MeanVarianceNormalization")
def _mean_variance(n: Node) -> array:
    axes = tuple(n.attr("axes", (0, 2, 3)))
    x = n.x
    return (x - smelt.mean(x, axes, True)) / (smelt.sqrt(smelt.var(x, axes, True)) + 1e-9)


@rule("LRN")
def _local_response(n: Node) -> array:
    """Divided by a power of the sum of squares of channels nearby."""
    x, size = n.x, n.attr("size")
    widths = [(0, 0)] * x.ndim
    widths[1] = ((size - 1) // 2, size // 2)
    squares = smelt.pad(x * x, widths)
    total = squares[:, : x.shape[1]]
    for k in range(1, size):
        total = total + squares[:, k : k + x.shape[1]]
    return x / (n.attr("bias", 1.0) + n.attr("alpha", 1e-4) / size * total) ** n.attr("beta", 0.75)
