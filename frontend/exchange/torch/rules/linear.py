"""Products of matrices, attention."""

from __future__ import annotations

import math
from typing import Any

import smelt
from smelt import array

from ..graph import Node, converted, rule
from .normalization import dropped


@rule("aten.mm", "aten.bmm", "aten.matmul", "aten.mv", "aten.dot")
def _product(n: Node, x: array, y: array) -> array:
    return smelt.matmul(x, y)


@rule("aten.addmm", "aten.baddbmm", "aten.addmv", "aten.addbmm")
def _addmm(n: Node, c: array, x: array, y: array, beta: Any = 1, alpha: Any = 1) -> array:
    found = smelt.matmul(x, y)
    found = smelt.sum(found, 0) if n.op.startswith("aten.addbmm") else found
    found = found if alpha == 1 else found * alpha
    return found if beta == 0 else found + (c if beta == 1 else c * beta)


@rule("aten._grouped_mm", "transformers.grouped_mm_fallback")
def _grouped(n: Node, x: array, y: array, ends: array | None = None, bias: None = None, dtype: Any = None) -> array:
    """Products of a mixture's experts. `ends` says up to which row of x, column of y, or, of two matrices, step of the
    sum each group goes; what lies behind the last one is 0."""
    if ends is None:
        found = smelt.matmul(x, y)
    elif x.ndim == 2 and y.ndim == 3:
        found = _by_expert(x, y, ends)
    elif x.ndim == 3:
        found = smelt.swapaxes(_by_expert(smelt.swapaxes(y, 0, 1), smelt.swapaxes(x, 1, 2), ends), 0, 1)
    else:
        inside = _groups(ends, x.shape[1]) == smelt.arange(ends.shape[0])[:, None]
        found = smelt.matmul(smelt.where(inside[:, None, :], x, 0), y)
    return converted(found, n.dtype)


def _groups(ends: array, count: int) -> array:
    """The group of each of so many rows."""
    return smelt.searchsorted(ends, smelt.arange(count).astype(ends.dtype), "right")


def _by_expert(x: array, experts: array, ends: array) -> array:
    """Each row of x with the matrix of its group."""
    group, last = _groups(ends, x.shape[0]), experts.shape[0] - 1
    chosen = smelt.minimum(group, last)
    found = smelt.gather_mm(x[:, None, :], experts, rhs_indices=chosen, sorted_indices=True)[:, 0, :]
    return smelt.where((group <= last)[:, None], found, 0)


@rule("aten.linear")
def _linear(n: Node, x: array, w: array, b: array | None) -> array:
    found = smelt.matmul(x, smelt.transpose(w))
    return found if b is None else found + b


@rule("aten.einsum")
def _einsum(n: Node, equation: str, operands: list[array], path: Any = None) -> array:
    return smelt.einsum(equation.replace(" ", ""), *operands)


@rule("aten._trilinear")
def _trilinear(n: Node, x: array, w: array, y: array, for_x: list[int], for_w: list[int], for_y: list[int],
               summed: list[int], unrolled: int = 1) -> array:  # fmt: skip
    """The product of three arrays, each with axes of extent 1 put in, summed over axes."""
    x, w, y = (smelt.expand_dims(v, tuple(axes)) for v, axes in ((x, for_x), (w, for_w), (y, for_y)))
    return smelt.sum(x * w * y, tuple(summed))


@rule("aten.scaled_dot_product_attention")
def _attention(n: Node, q: array, k: array, v: array, mask: array | None, dropout: float, causal: bool,
               scale: float | None, gqa: bool) -> array:  # fmt: skip
    """The first query sees the first key where it is causal, whatever the numbers of both. A query that sees nothing
    gives 0."""
    scale = 1 / math.sqrt(q.shape[-1]) if scale is None else scale
    if causal:
        mask = smelt.tri(q.shape[-2], k.shape[-2], dtype=smelt.bool_)
    if q.ndim == 4 and k.ndim == 4 and not dropout and (mask is None or causal):
        same = q.shape[-2] == k.shape[-2]
        return smelt.fast.scaled_dot_product_attention(q, k, v, scale=scale, mask="causal" if causal and same else mask)
    if gqa:
        k, v = (smelt.repeat(x, q.shape[-3] // x.shape[-3], axis=-3) for x in (k, v))
    kind = smelt.float64 if q.dtype is smelt.float64 else smelt.float32
    scores = smelt.matmul(q.astype(kind) * scale, smelt.swapaxes(k.astype(kind), -1, -2))
    if mask is None:
        weights = smelt.softmax(scores, -1)
    else:
        scores = smelt.where(mask, scores, -smelt.inf) if mask.dtype is smelt.bool_ else scores + mask
        hidden = smelt.max(scores, -1, True) == -smelt.inf
        weights = smelt.where(hidden, 0, smelt.softmax(smelt.where(hidden, 0, scores), -1))
    if dropout:
        weights = dropped(weights, smelt.random.bernoulli(1 - dropout, weights.shape), dropout)
    return smelt.matmul(weights.astype(v.dtype), v)


@rule("aten._cdist_forward", "aten.cdist")
def _cdist(n: Node, x: array, y: array, p: float = 2.0, *_: Any) -> array:
    return _norm(smelt.expand_dims(x, -2) - smelt.expand_dims(y, -3), p)


@rule("aten._pdist_forward")
def _pdist(n: Node, x: array, p: float) -> array:
    i, j = smelt.triu_indices(x.shape[0], 1)
    return _norm(x[i] - x[j], p)


def _norm(difference: array, p: float) -> array:
    """Over the last axis, with derivative 0 at 0."""
    size = smelt.abs(difference)
    if p == math.inf:
        return smelt.max(size, -1)
    if p == 0:
        return smelt.sum((size != 0).astype(size.dtype), -1)
    if p == 1:
        return smelt.sum(size, -1)
    total = smelt.sum(size**p, -1)
    return smelt.where(total == 0, 0, smelt.where(total == 0, 1, total) ** (1 / p))
