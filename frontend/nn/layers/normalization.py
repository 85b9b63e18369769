"""Normalizations: features of mean 0 and variance 1, over different axes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import smelt
from smelt import array
from smelt.ir.errors import AttributeValueError, ShapeError, at_user_line

from ...lazy.arguments import integer
from .base import Module

__all__ = ["BatchNorm", "GroupNorm", "InstanceNorm", "LayerNorm", "RMSNorm"]


class LayerNorm(Module):
    """(x - mean(x)) / √(var(x) + eps) · weight + bias, over the last axis.

    Args:
        dims: its extent. eps: keeps constant rows finite. affine: whether there is a weight.
        bias: whether there is a bias, if there is a weight.

    Attributes:
        weight: [dims], ones at first. bias: [dims], zeros at first.

    >>> import smelt
    >>> smelt.nn.LayerNorm(2, eps=0.0)(smelt.array([1.0, 3.0]))
    array([-1, 1], dtype=float32)
    """

    def __init__(self, dims: int, eps: float = 1e-5, affine: bool = True, bias: bool = True):
        super().__init__()
        if affine:
            self.weight = smelt.ones((dims,))
            if bias:
                self.bias = smelt.zeros((dims,))
        self.eps = eps
        self.dims = dims

    def _extra_repr(self) -> str:
        return f"{self.dims}, eps={self.eps}, affine={'weight' in self}"

    def __call__(self, x: array) -> array:
        return smelt.fast.layer_norm(x, self.get("weight"), self.get("bias"), self.eps)


class RMSNorm(Module):
    """x / √(mean(x²) + eps) · weight, over the last axis.

    Args:
        dims: its extent. eps: keeps rows of zeros finite.

    Attributes:
        weight: [dims], ones at first.

    >>> import smelt
    >>> smelt.nn.RMSNorm(2, eps=0.0)(smelt.array([3.0, 4.0]))
    array([0.848528, 1.13137], dtype=float32)
    """

    def __init__(self, dims: int, eps: float = 1e-5):
        super().__init__()
        self.weight = smelt.ones((dims,))
        self.eps = eps

    def _extra_repr(self) -> str:
        return f"{self.weight.shape[0]}, eps={self.eps}"

    def __call__(self, x: array) -> array:
        return smelt.fast.rms_norm(x, self["weight"], self.eps)


def _wide(x: array) -> array:
    """x, of half precision in float32: squares of a few hundred are beyond float16."""
    return x.astype(smelt.result_type(x, smelt.float32))


def _normalized(x: array, axes: tuple[int, ...], eps: float) -> array:
    x = _wide(x)
    mean = smelt.mean(x, axis=axes, keepdims=True)
    variance = smelt.var(x, axis=axes, keepdims=True)
    return (x - mean) * smelt.rsqrt(variance + eps)


def _scaled(layer: Module, found: array, *made_of: array) -> array:
    """What was normalized, with weight and bias, rounded once, to the dtype of what it is made of."""
    if "weight" in layer:
        made_of = (*made_of, layer["weight"], layer["bias"])
        found = layer["weight"] * found + layer["bias"]
    dtype = smelt.result_type(*made_of)
    return found.astype(dtype) if dtype.is_inexact else found


def _check_channels(layer: Module, x: array) -> None:
    """Parameters of a layer, and what it has been trained on, are for the channels of x, or broadcast to them."""
    for name in ("weight", "running_mean"):
        if name in layer and 1 != layer[name].shape[-1] != x.shape[-1] != 1:
            message = f"smelt.nn.{type(layer).__name__}: x has {x.shape[-1]} channels, {name} {layer[name].shape[-1]}"
            raise ShapeError(at_user_line(f"{message}; x {x.aval}, {name} {layer[name].aval}"))


class InstanceNorm(Module):
    """Of each example each channel by itself: (x - mean(x)) / √(var(x) + eps), over all axes but the first and last.

    Args:
        dims: the number of channels. eps: keeps constant channels finite.
        affine: whether a weight and a bias follow, as in `LayerNorm`.

    Attributes:
        weight: [dims], ones at first. bias: [dims], zeros at first.

    Raises:
        ShapeError: when called with an array of less than three axes.

    >>> import smelt
    >>> smelt.nn.InstanceNorm(1, eps=0.0)(smelt.array([[[1.0], [3.0]]])).tolist()
    [[[-1.0], [1.0]]]
    """

    def __init__(self, dims: int, eps: float = 1e-5, affine: bool = False):
        super().__init__()
        if affine:
            self.weight = smelt.ones((dims,))
            self.bias = smelt.zeros((dims,))
        self.dims = dims
        self.eps = eps

    def _extra_repr(self) -> str:
        return f"{self.dims}, eps={self.eps}, affine={'weight' in self}"

    def __call__(self, x: array) -> array:
        if x.ndim < 3:
            raise ShapeError(
                at_user_line(f"smelt.nn.InstanceNorm: needs axes [batch, …, channels], at least three; x {x.aval}")
            )
        _check_channels(self, x)
        return _scaled(self, _normalized(x, tuple(range(1, x.ndim - 1)), self.eps), x)


class GroupNorm(Module):
    """Of each example groups of channels: (x - mean(x)) / √(var(x) + eps), over all axes but the first and a group.

    Args:
        num_groups: how many there are. dims: the number of channels. eps: keeps constant groups finite.
        affine: whether a weight and a bias follow, as in `LayerNorm`.
        pytorch_compatible: groups are neighbouring channels; else those that leave the same remainder when they are
            divided by `num_groups`.

    Attributes:
        weight: [dims], ones at first. bias: [dims], zeros at first.

    Raises:
        AttributeValueError: `dims` channels are not `num_groups` equal groups; when called with such channels,
        ShapeError.

    >>> import smelt
    >>> smelt.nn.GroupNorm(2, 4)(smelt.ones((5, 3, 3, 4))).shape
    (5, 3, 3, 4)
    """

    def __init__(
        self, num_groups: int, dims: int, eps: float = 1e-5, affine: bool = True, pytorch_compatible: bool = False
    ):
        super().__init__()
        integer("nn.GroupNorm", "num_groups", num_groups, 1)
        if dims % num_groups:
            message = f"{dims} channels are not {num_groups} equal groups"
            raise AttributeValueError(at_user_line(f"smelt.nn.GroupNorm: {message}"))
        if affine:
            self.bias = smelt.zeros((dims,))
            self.weight = smelt.ones((dims,))
        self.num_groups = num_groups
        self.dims = dims
        self.eps = eps
        self.pytorch_compatible = pytorch_compatible

    def _extra_repr(self) -> str:
        return (
            f"{self.num_groups}, {self.dims}, eps={self.eps}, affine={'weight' in self}, "
            f"pytorch_compatible={self.pytorch_compatible}"
        )

    def __call__(self, x: array) -> array:
        groups = self.num_groups
        if x.ndim < 2 or x.shape[-1] % groups:
            raise ShapeError(
                at_user_line(
                    f"smelt.nn.GroupNorm: needs axes [batch, …, channels], with channels in {groups} equal groups; "
                    f"x {x.aval}"
                )
            )
        _check_channels(self, x)
        each = x.shape[-1] // groups
        places = math.prod(x.shape[1:-1])
        if self.pytorch_compatible:
            rows, axes = x.reshape(x.shape[0], places, groups, each), (1, 3)
        else:
            rows, axes = x.reshape(x.shape[0], places, each, groups), (1, 2)
        return _scaled(self, _normalized(rows, axes, self.eps).reshape(x.shape), x)


class BatchNorm(Module):
    """Each channel of a batch: (x - mean(x)) / √(var(x) + eps) · weight + bias, over all axes but the last.

    In training mean and variance are those of the batch, and move running ones; else the running ones are taken.

    Args:
        num_features: the number of channels. eps: keeps constant channels finite.
        momentum: how far the running mean and variance move towards those of a batch.
        affine: whether there are weight and bias. track_running_stats: whether there are running ones.

    Attributes:
        weight: [num_features], ones at first. bias: [num_features], zeros at first.
        running_mean, running_var: [num_features]; never trained. The latter takes in variances of batches times
            n / (n - 1), for n examples.

    Raises:
        ShapeError: when called with an array that has not two to four axes, or in training with one value a channel,
            which has no variance.

    >>> import smelt
    >>> layer = smelt.nn.BatchNorm(1, eps=0.0)
    >>> layer(smelt.array([[1.0], [3.0]])).tolist(), layer.running_mean.item()
    ([[-1.0], [1.0]], 0.20000000298023224)
    """

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
    ):
        super().__init__()
        self.num_features = num_features
        self.eps = eps
        self.momentum = momentum
        self.track_running_stats = track_running_stats
        if affine:
            self.weight = smelt.ones((num_features,))
            self.bias = smelt.zeros((num_features,))
        if track_running_stats:
            self.running_mean = smelt.zeros((num_features,))
            self.running_var = smelt.ones((num_features,))
            self._freeze_running()

    def _freeze_running(self) -> None:
        self.freeze(keys=["running_mean", "running_var"], recurse=False)

    def unfreeze(self, *, recurse: bool = True, keys: str | Sequence[str] | None = None, strict: bool = False) -> Any:
        """As of any module, but the running mean and variance stay frozen.

        Args:
            recurse, keys, strict: as of `Module.freeze`.
        """
        super().unfreeze(recurse=recurse, keys=keys, strict=strict)
        self._freeze_running()
        return self

    def _extra_repr(self) -> str:
        return (
            f"{self.num_features}, eps={self.eps}, momentum={self.momentum}, affine={'weight' in self}, "
            f"track_running_stats={self.track_running_stats}"
        )

    def __call__(self, x: array) -> array:
        if not 2 <= x.ndim <= 4:
            raise ShapeError(at_user_line(f"smelt.nn.BatchNorm: needs two to four axes; x {x.aval}"))
        _check_channels(self, x)
        count = x.size // max(1, x.shape[-1])
        if self.training and count == 1:
            message = "smelt.nn.BatchNorm: training needs more than one value of each channel, or eval()"
            raise ShapeError(at_user_line(f"{message}; x {x.aval}"))
        if self.training or not self.track_running_stats:
            axes = tuple(range(x.ndim - 1))
            mean, variance = smelt.mean(_wide(x), axis=axes), smelt.var(_wide(x), axis=axes)
            if self.training and self.track_running_stats:
                self._move(mean, variance, count)
            return _scaled(self, (_wide(x) - mean) * smelt.rsqrt(variance + self.eps), x)
        mean, variance = self.running_mean, self.running_var
        return _scaled(self, (_wide(x) - mean) * smelt.rsqrt(_wide(variance) + self.eps), x, mean, variance)

    def _move(self, mean: array, variance: array, n: int) -> None:
        mu = self.momentum
        variance = variance * (n / max(1, n - 1))
        for name, moved in (("running_mean", mean), ("running_var", variance)):
            self[name] = ((1 - mu) * self[name] + mu * moved).astype(self[name].dtype)
