"""Reductions, and what divides by them."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import smelt
from smelt import array

from ..graph import RULES, Node, rule

_REDUCTIONS: dict[str, Callable[..., array]] = {
    "ReduceSum": smelt.sum, "ReduceProd": smelt.prod, "ReduceMean": smelt.mean,
    "ReduceL1": lambda x, axes, keep: smelt.sum(smelt.abs(x), axes, keep),
    "ReduceL2": lambda x, axes, keep: smelt.sqrt(smelt.sum(x * x, axes, keep)).astype(x.dtype),
    "ReduceSumSquare": lambda x, axes, keep: smelt.sum(x * x, axes, keep),
    "ReduceLogSum": lambda x, axes, keep: smelt.log(smelt.sum(x, axes, keep)),
    "ReduceLogSumExp": lambda x, axes, keep: (
        smelt.logsumexp(x, axes, keep) if x.size else smelt.log(smelt.sum(x, axes, keep))
    ),
    "ReduceMax": lambda x, axes, keep: extremum(x, axes, keep, True),
    "ReduceMin": lambda x, axes, keep: extremum(x, axes, keep, False),
}  # fmt: skip


def extremum(x: array, axes: tuple[int, ...] | None, keep: bool, largest: bool) -> array:
    """Of no elements it is the neutral element."""
    if x.dtype is smelt.bool_:
        return (smelt.any if largest else smelt.all)(x, axes, keep)
    over = range(x.ndim) if axes is None else axes
    if any(x.shape[a] == 0 for a in over):
        info: Any = None if x.dtype.is_inexact else smelt.iinfo(x.dtype)
        neutral = (-math.inf if largest else math.inf) if info is None else info.min if largest else info.max
        return smelt.full_like(smelt.sum(x, axes, keep), neutral).astype(x.dtype)
    return (smelt.max if largest else smelt.min)(x, axes, keep)


def _reduced(function: Callable[..., array]) -> Callable[[Node], array]:
    def found(n: Node) -> array:
        axes = n.ints("axes", 1)
        if not axes:
            if n.attr("noop_with_empty_axes", 0):
                axes = ()  # of each element alone
            else:
                axes = None
        x = n.x
        if axes == () and n.op in ("ReduceSum", "ReduceProd", "ReduceMean", "ReduceMax", "ReduceMin"):
            return x
        if axes == ():
            return function(x[..., None], (x.ndim,), False).astype(x.dtype)
        return function(x, axes, bool(n.attr("keepdims", 1))).astype(x.dtype)

    return found


for _name, _function in _REDUCTIONS.items():
    RULES["", _name] = _reduced(_function)


@rule("Softmax", "LogSoftmax")
def _softmax(n: Node) -> array:
    """Of all axes from one on as one, before version 13."""
    x = n.x
    axis = n.attr("axis", -1 if n.version >= 13 else 1) % max(x.ndim, 1)
    flat = x if n.version >= 13 else x.reshape(math.prod(x.shape[:axis]), -1)
    along = axis if n.version >= 13 else 1
    found = (smelt.softmax if n.op == "Softmax" else smelt.nn.log_softmax)(flat, along)
    return found.reshape(*x.shape)


@rule("LpNormalization")
def _lp_normalization(n: Node) -> array:
    """0 where all elements are."""
    axis, x = n.attr("axis", -1), n.x
    if n.attr("p", 2) == 1:
        size = smelt.sum(smelt.abs(x), axis, True)
    else:
        size = smelt.sqrt(smelt.sum(x * x, axis, True))
    return smelt.where(size == 0, 0, x / smelt.where(size == 0, 1, size)).astype(x.dtype)


@rule("NegativeLogLikelihoodLoss")
def _nll(n: Node) -> array:
    return _likelihood(n, n[0], n[1], n[2])


@rule("SoftmaxCrossEntropyLoss")
def _cross_entropy(n: Node) -> Any:
    logs = smelt.nn.log_softmax(n[0], 1)
    found = _likelihood(n, logs, n[1], n[2])
    return (found, logs) if n.outputs > 1 else found


def _likelihood(n: Node, logs: array, target: array, weight: array | None) -> array:
    """-log p of the classes, weighted; classes of `ignore_index` count nothing."""
    ignored = n.attr("ignore_index")
    kept = smelt.ones(target.shape, smelt.bool_) if ignored is None else target != ignored
    safe = smelt.where(kept, target, 0)
    chosen = smelt.take_along_axis(logs, smelt.expand_dims(safe, 1), 1).squeeze(1)
    weights = smelt.ones(target.shape, logs.dtype) if weight is None else smelt.take(weight, safe, 0)
    weights = smelt.where(kept, weights, 0)
    losses = -chosen * weights
    reduction = n.text("reduction", "mean")
    if reduction == "none":
        return losses
    return smelt.sum(losses) / smelt.sum(weights) if reduction == "mean" else smelt.sum(losses)
