"""Sums and the like over axes, running ones along an axis."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import smelt
from smelt import array

from ..graph import Node, converted, rule


def _axes(x: array, dim: Any) -> tuple[int, ...]:
    """Of none and of an empty list all."""
    if dim is None or (isinstance(dim, Sequence) and not dim):
        return tuple(range(x.ndim))
    given = (dim,) if isinstance(dim, int) else tuple(dim)
    return tuple(d % x.ndim for d in given) if x.ndim else ()


def _split(options: Sequence[Any]) -> tuple[Any, bool]:
    """The axes and whether they are kept; those overloads that have neither take all."""
    dim = next((o for o in options if isinstance(o, (int, list, tuple)) and not isinstance(o, bool)), None)
    return dim, next((o for o in options if isinstance(o, bool)), False)


@rule("aten.sum", "aten.mean", "aten.prod", "aten.nansum")
def _sum(n: Node, x: array, *options: Any) -> array:
    dim, keep = _split(options)
    name, x, axes = n.op.split(".")[1], converted(x, n.dtype), _axes(x, dim)
    if name == "nansum":
        return smelt.sum(smelt.where(smelt.isnan(x), 0, x), axes, keep)
    function = {"sum": smelt.sum, "mean": smelt.mean, "prod": smelt.prod}[name]
    return function(x, axes, keep)


@rule("aten.amax", "aten.amin", "aten.any", "aten.all", "aten.logsumexp")
def _amax(n: Node, x: array, *options: Any) -> array:
    dim, keep = _split(options)
    name = n.op.split(".")[1]
    axes = _axes(x, dim)
    if name in ("any", "all"):
        return getattr(smelt, name)(converted(x, smelt.bool_), axes, keep)
    if name == "logsumexp":
        return smelt.logsumexp(converted(x, n.dtype), axes, keep)
    return (smelt.max if name == "amax" else smelt.min)(x, axes, keep)


@rule("aten.argmax", "aten.argmin")
def _argmax(n: Node, x: array, dim: int | None = None, keep: bool = False) -> array:
    function = smelt.argmax if "argmax" in n.op else smelt.argmin
    if dim is None:
        return function(x.reshape(-1)).reshape((1,) * x.ndim if keep else ())
    return function(x, dim, keep) if x.ndim else smelt.zeros((), smelt.int64)


@rule("aten.max", "aten.min")
def _max(n: Node, x: array, *options: Any) -> Any:
    """Over all axes; or along one, with the place."""
    most = n.op.startswith("aten.max")
    if not options:
        return (smelt.max if most else smelt.min)(x)
    if isinstance(options[0], array):
        return (smelt.maximum if most else smelt.minimum)(x, options[0])
    return along(x, (smelt.argmax if most else smelt.argmin), *options)


def along(x: array, find: Any, dim: int, keep: bool = False) -> list[array]:
    """The elements at the places that `find` finds along an axis, and these."""
    if not x.ndim:
        return [x, smelt.zeros((), smelt.int64)]
    at = find(x, dim, True)
    found = smelt.take_along_axis(x, at, dim)
    return [found, at] if keep else [smelt.squeeze(found, dim), smelt.squeeze(at, dim)]


@rule("aten.var", "aten.var_mean", "aten.std", "aten.std_mean")
def _var(n: Node, x: array, *options: Any) -> Any:
    """Overloads state a correction, or whether it is 1."""
    name = n.op.split(".")[1]
    if n.op.endswith(".correction"):
        dim, correction, keep = options
        correction = 1 if correction is None else correction
    elif n.op.endswith(".dim"):
        dim, unbiased, keep = options
        correction = int(unbiased)
    else:
        dim, correction, keep = None, int(options[0]), False
    axes = _axes(x, dim)
    count = math.prod(x.shape[a] for a in axes)
    spread = smelt.abs(x - smelt.mean(x, axes, True))
    found = smelt.sum(spread * spread, axes, keep) / max(0, count - correction)
    found = smelt.sqrt(found) if name.startswith("std") else found
    return [found, smelt.mean(x, axes, keep)] if name.endswith("mean") else found


@rule("aten.cumsum", "aten.cumprod", "aten.logcumsumexp")
def _cumsum(n: Node, x: array, dim: int, dtype: Any = None) -> array:
    if not x.ndim:
        return converted(x, n.dtype)
    return getattr(smelt, n.op.split(".")[1])(converted(x, n.dtype), axis=dim)


@rule("aten.cummax", "aten.cummin")
def _cummax(n: Node, x: array, dim: int) -> Any:
    """With the last place that has the value."""
    if not x.ndim:
        return [x, smelt.zeros((), smelt.int64)]
    found = (smelt.cummax if "cummax" in n.op else smelt.cummin)(x, axis=dim)
    place = smelt.arange(x.shape[dim]).reshape(-1, *(1,) * (x.ndim - 1 - dim % x.ndim))
    hits = smelt.where((x == found) | (smelt.isnan(x) if x.dtype.is_inexact else False), place, 0)
    return [found, smelt.cummax(hits, axis=dim)]


@rule("aten.linalg_vector_norm")
def _vector_norm(n: Node, x: array, order: float, dim: Any, keep: bool, dtype: Any) -> array:
    x = smelt.abs(x)
    axes = _axes(x, dim)
    x = converted(x, n.dtype)
    if order == math.inf:
        return smelt.max(x, axes, keep)
    if order == -math.inf:
        return smelt.min(x, axes, keep)
    if order == 0:
        return smelt.sum(x != 0, axes, keep)
    if order == 2:
        return smelt.sqrt(smelt.sum(x * x, axes, keep))
    return smelt.sum(x**order, axes, keep) ** (1 / order)


@rule("aten.bincount")
def _bincount(n: Node, x: array, weights: array | None, least: int) -> array:
    return smelt.bincount(x, weights, least)


@rule("aten.histc")
def _histc(n: Node, x: array, bins: int, low: float, high: float) -> array:
    if low == high:
        low, high = float(smelt.min(x)), float(smelt.max(x))
        low, high = (low - 1, high + 1) if low == high else (low, high)
    return smelt.histogram(x.reshape(-1), bins, (low, high))[0]
