"""Softmax, norms of layers, groups and batches, dropout."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import smelt
from smelt import array

from ..graph import Node, converted, rule


@rule("aten._softmax", "aten.softmax", "aten._safe_softmax")
def _softmax(n: Node, x: array, dim: int, *_: Any) -> array:
    x = converted(x, n.dtype)
    if n.op.startswith("aten._safe"):
        hidden = smelt.max(x, dim, True) == -smelt.inf
        return smelt.where(hidden, 0, smelt.softmax(smelt.where(hidden, 0, x), dim))
    return smelt.softmax(x, dim) if x.ndim else smelt.ones_like(x)


@rule("aten._log_softmax", "aten.log_softmax")
def _log_softmax(n: Node, x: array, dim: int, *_: Any) -> array:
    return smelt.nn.log_softmax(converted(x, n.dtype), dim)


def _wide(x: array) -> array:
    """Moments are computed in float32 at least."""
    return x.astype(smelt.float32) if x.dtype.size < 4 else x


def _normalized(x: array, axes: Sequence[int], eps: float) -> tuple[array, array, array, array]:
    """With mean 0 and variance 1 over axes, which are kept: that, the mean, the variance, its root's reciprocal."""
    x = _wide(x)
    mean = smelt.mean(x, axes, True)
    centred = x - mean
    variance = smelt.mean(centred * centred, axes, True)
    scale = smelt.rsqrt(variance + eps)
    return centred * scale, mean, variance, scale


def _scaled(x: array, weight: array | None, bias: array | None) -> array:
    x = x if weight is None else x * weight
    return x if bias is None else x + bias


@rule("aten.native_layer_norm")
def layer_norm(n: Node, x: array, shape: Sequence[int], weight: array | None, bias: array | None, eps: float) -> Any:
    found, mean, _, scale = _normalized(x, tuple(range(x.ndim - len(shape), x.ndim)), eps)
    return [_scaled(found, weight, bias), mean, scale]


@rule("aten.rms_norm", "aten._fused_rms_norm")
def _rms_norm(n: Node, x: array, shape: Sequence[int], weight: array | None, eps: float | None) -> Any:
    wide = _wide(x)
    eps = float(smelt.finfo(x.dtype).eps) if eps is None else eps
    scale = smelt.rsqrt(smelt.mean(wide * wide, tuple(range(x.ndim - len(shape), x.ndim)), True) + eps)
    found = _scaled((wide * scale).astype(x.dtype), weight, None)
    return [found, scale] if "_fused" in n.op else found


@rule("aten.native_group_norm")
def group_norm(n: Node, x: array, weight: array | None, bias: array | None, size: int, channels: int, rest: int,
                groups: int, eps: float) -> Any:  # fmt: skip
    found, mean, _, scale = _normalized(x.reshape(size, groups, channels // groups * rest), (2,), eps)
    weight, bias = _by_channel(x, weight), _by_channel(x, bias)
    return [_scaled(found.reshape(x.shape), weight, bias), mean[..., 0], scale[..., 0]]


def _by_channel(x: array, values: Any) -> Any:
    """Numbers, one for each channel, which are axis 1; None stays None."""
    return None if values is None else values.reshape(-1, *(1,) * (x.ndim - 2))


@rule("aten._native_batch_norm_legit_no_training")
def _batch_norm(n: Node, x: array, weight: array | None, bias: array | None, mean: array, variance: array,
                momentum: float, eps: float) -> Any:  # fmt: skip
    scale = smelt.rsqrt(_wide(variance) + eps)
    found = (x - _by_channel(x, mean)) * _by_channel(x, scale)
    return [_scaled(found, _by_channel(x, weight), _by_channel(x, bias)), *(smelt.zeros((0,)) for _ in range(2))]


@rule("aten._native_batch_norm_legit_functional", "aten._native_batch_norm_legit", "aten.native_batch_norm")
def _training_batch_norm(n: Node, x: array, weight: array | None, bias: array | None, *rest: Any) -> Any:
    """With the moments of the batch, and where there are any, the next running ones."""
    if n.op.endswith(".no_stats"):
        (training, momentum, eps), running = rest, None
    else:
        running, (training, momentum, eps) = rest[:2], rest[2:]
    if not training and running is not None:
        found = _batch_norm(n, x, weight, bias, *running, momentum, eps)
        return [*found, *running] if "functional" in n.op else found
    axes = tuple(a for a in range(x.ndim) if a != 1)
    found, mean, variance, scale = _normalized(x, axes, eps)
    result = [_scaled(found, _by_channel(x, weight), _by_channel(x, bias)), mean.reshape(-1), scale.reshape(-1)]
    if running is None or "functional" not in n.op:
        return result
    count = x.size // x.shape[1]
    unbiased = variance.reshape(-1) * (count / max(1, count - 1))
    moments = zip(running, (mean.reshape(-1), unbiased))
    return [*result, *((1 - momentum) * old + momentum * new.astype(old.dtype) for old, new in moments)]


@rule("aten.native_dropout")
def _dropout(n: Node, x: array, p: float, train: bool | None) -> Any:
    if train is False:
        return [x, smelt.ones(x.shape, smelt.bool_)]
    kept = smelt.random.bernoulli(1 - p, x.shape)
    return [dropped(x, kept, p), kept]


def dropped(x: array, kept: array, p: float) -> array:
    """Elements that are kept, with a probability of 1 - p, divided by it; zeros for the others."""
    return smelt.where(kept, x / (1 - p) if p < 1 else 0, 0)


@rule("aten.dropout", "aten.feature_dropout", "aten.alpha_dropout")
def _plain_dropout(n: Node, x: array, p: float, train: bool) -> array:
    if not train:
        return x
    shape = (*x.shape[:2], *(1,) * (x.ndim - 2)) if "feature" in n.op else x.shape
    kept = smelt.broadcast_to(smelt.random.bernoulli(1 - p, shape), x.shape)
    if "alpha" not in n.op:
        return dropped(x, kept, p)
    # Of scaled exponential units: mean and variance stay.
    low = -1.7580993408473766
    a = ((1 - p) * (1 + p * low**2)) ** -0.5 if p < 1 else 0.0
    return a * smelt.where(kept, x, low) - a * low * p
