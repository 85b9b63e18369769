"""Sorts, and elements by their rank."""

from __future__ import annotations

from typing import Any

import smelt
from smelt import array

from ..graph import Node, rule


@rule("aten.sort", "aten.argsort", "aten.msort")
def _sort(n: Node, x: array, *options: Any) -> Any:
    """Stable, which PyTorch promises only where it is asked."""
    if n.op.startswith("aten.msort"):
        return smelt.sort(x, 0)
    if n.op.endswith(".stable"):
        _, dim, descending = options
    else:
        dim, descending = options
    if not x.ndim:
        found, at = x, smelt.zeros((), smelt.int64)
    else:
        at = smelt.argsort(x, dim, descending=descending)
        found = smelt.take_along_axis(x, at, dim)
    return at if n.op.startswith("aten.argsort") else [found, at]


@rule("aten.topk")
def _topk(n: Node, x: array, k: int, dim: int, largest: bool, ordered: bool) -> list[array]:
    if not x.ndim:
        return [x, smelt.zeros((), smelt.int64)]
    at = smelt.argsort(x, dim, descending=largest)
    at = at[(slice(None),) * (dim % x.ndim) + (slice(k),)]
    return [smelt.take_along_axis(x, at, dim), at]


def ranked(x: array, rank: Any, dim: int, keep: bool) -> list[array]:
    """The elements of a rank along an axis, and their places."""
    if not x.ndim:
        return [x, smelt.zeros((), smelt.int64)]
    at = smelt.take_along_axis(smelt.argsort(x, dim), rank(x), dim)
    found = smelt.take_along_axis(x, at, dim)
    return [found, at] if keep else [smelt.squeeze(found, dim), smelt.squeeze(at, dim)]


def _rank(dim: int, count: Any) -> Any:
    def rank(x: array) -> array:
        shape = [1 if a == dim % x.ndim else d for a, d in enumerate(x.shape)]
        return smelt.broadcast_to(smelt.array(count(x)).astype(smelt.int32), shape)

    return rank


@rule("aten.kthvalue")
def _kthvalue(n: Node, x: array, k: int, dim: int, keep: bool) -> list[array]:
    return ranked(x, _rank(dim, lambda x: k - 1), dim, keep)


@rule("aten.median", "aten.nanmedian")
def _median(n: Node, x: array, dim: int | None = None, keep: bool = False) -> Any:
    """The lower of two middle ones; NaN of lines that have one, or what is left without them."""
    if dim is None:
        return _middle(n, x.reshape(-1), 0, keep)[0]
    return _middle(n, x, dim, keep)


def _middle(n: Node, x: array, dim: int, keep: bool) -> list[array]:
    if not x.ndim:
        return [x, smelt.zeros((), smelt.int64)]

    def rank(x: array) -> array:
        odd = smelt.sum(smelt.isnan(x), dim, True) if x.dtype.is_inexact else smelt.zeros((), smelt.int32)
        length = x.shape[dim]
        if n.op.startswith("aten.median"):
            middle = smelt.where(odd > 0, length - odd, (length - 1) // 2)
        else:
            middle = smelt.maximum(length - odd - 1, 0) // 2
        shape = [1 if a == dim % x.ndim else d for a, d in enumerate(x.shape)]
        return smelt.broadcast_to(middle.astype(smelt.int32), shape)

    return ranked(x, rank, dim, keep)


@rule("aten.mode")
def _mode(n: Node, x: array, dim: int, keep: bool) -> list[array]:
    """The most frequent element, of several the smallest; the last place that has it."""
    line = smelt.moveaxis(x, dim, -1)
    ordered = smelt.sort(line, -1)
    place = smelt.broadcast_to(smelt.arange(line.shape[-1]), line.shape)
    same = smelt.pad(ordered[..., 1:] == ordered[..., :-1], [(0, 0)] * (line.ndim - 1) + [(1, 0)])
    since = place - smelt.cummax(smelt.where(same, 0, place), axis=-1)  # how many equal ones stand before each
    best = smelt.take_along_axis(ordered, smelt.argmax(since, -1, True), -1)
    at = smelt.max(smelt.where(line == best, place, -1), -1, True)
    found = [smelt.moveaxis(v, -1, dim) for v in (best, at)]
    return found if keep else [smelt.squeeze(v, dim) for v in found]


@rule("aten._unique2")
def _unique(n: Node, x: array, ordered: bool = True, inverse: bool = False, counts: bool = False) -> list[array]:
    found = smelt.unique_all(x)
    empty = smelt.zeros((0,), smelt.int64)
    return [found[0], found[2] if inverse else empty, found[3] if counts else empty]


