"""Shapes, parts, joins; new arrays."""

from __future__ import annotations

import math
from typing import Any

import smelt
from smelt import array

from ...translating import Refused
from ..graph import Node, converted, dtype_of, rule


@rule("aten.view", "aten.reshape", "aten._unsafe_view", "aten.view_copy", "aten._reshape_copy")
def _view(n: Node, x: array, shape: Any) -> array:
    if not isinstance(shape, (list, tuple)):
        return smelt.view(x, dtype_of(shape))  # the bits in another dtype
    if -1 in shape and not x.size:
        known = math.prod(d for d in shape if d != -1)
        shape = [x.size // known if d == -1 else d for d in shape]
    return smelt.reshape(x, tuple(shape))


@rule("aten.view.dtype")
def _view_dtype(n: Node, x: array, dtype: Any) -> array:
    return smelt.view(x, dtype_of(dtype))


@rule("aten.permute", "aten.permute_copy")
def _permute(n: Node, x: array, dims: list[int]) -> array:
    return smelt.transpose(x, tuple(dims)) if dims else x


@rule("aten.transpose", "aten.transpose_copy")
def _transpose(n: Node, x: array, a: int, b: int) -> array:
    return smelt.swapaxes(x, a, b) if x.ndim else x


@rule("aten.t", "aten.t_copy")
def _t(n: Node, x: array) -> array:
    return smelt.transpose(x)


@rule("aten.expand", "aten.expand_copy")
def _expand(n: Node, x: array, shape: list[int], implicit: bool = False) -> array:
    lead = len(shape) - x.ndim
    return smelt.broadcast_to(x, tuple(x.shape[i - lead] if d == -1 else d for i, d in enumerate(shape)))


@rule("aten.squeeze", "aten.squeeze_copy")
def _squeeze(n: Node, x: array, dims: Any = None) -> array:
    """Axes of other extents than 1 stay."""
    given = range(x.ndim) if dims is None else [dims] if isinstance(dims, int) else dims
    axes = tuple({d % x.ndim for d in given if x.ndim and x.shape[d] == 1})
    return smelt.squeeze(x, axes) if axes else x


@rule("aten.unsqueeze", "aten.unsqueeze_copy")
def _unsqueeze(n: Node, x: array, dim: int) -> array:
    return smelt.expand_dims(x, dim)


@rule("aten.cat", "aten.concat")
def _cat(n: Node, arrays: list[array], dim: int = 0) -> array:
    """Empty lines count as nothing, whatever the others' rank."""
    kept = [converted(x, n.dtype) for x in arrays if x.shape != (0,) or all(y.shape == (0,) for y in arrays)]
    return smelt.concatenate(kept, dim)


@rule("aten.stack")
def _stack(n: Node, arrays: list[array], dim: int) -> array:
    return smelt.stack([converted(x, n.dtype) for x in arrays], dim)


@rule("aten.split_with_sizes", "aten.split_with_sizes_copy")
def _split(n: Node, x: array, sizes: list[int], dim: int) -> list[array]:
    places = [sum(sizes[:i]) for i in range(1, len(sizes))]
    return list(smelt.split(x, places, dim)) if places else [x]


@rule("aten.unbind", "aten.unbind_copy")
def _unbind(n: Node, x: array, dim: int) -> list[array]:
    return list(smelt.unstack(x, axis=dim))


def part(x: array, dim: int, start: Any, end: Any, step: int) -> tuple[slice, ...]:
    """The index of a slice along one axis."""
    index = [slice(None)] * x.ndim
    index[dim % x.ndim] = slice(start, end, step)
    return tuple(index)


@rule("aten.slice", "aten.slice_copy")
def _slice(n: Node, x: array, dim: int, start: Any, end: Any, step: int) -> array:
    return x[part(x, dim, start, end, step)]


@rule("aten.select", "aten.select_copy")
def _select(n: Node, x: array, dim: int, index: int) -> array:
    return x[(slice(None),) * (dim % x.ndim) + (index,)]


@rule("aten.slice_scatter")
def _slice_scatter(n: Node, x: array, source: array, dim: int, start: Any, end: Any, step: int) -> array:
    return x.at[part(x, dim, start, end, step)].set(converted(source, x.dtype))


@rule("aten.select_scatter")
def _select_scatter(n: Node, x: array, source: array, dim: int, index: int) -> array:
    return x.at[(slice(None),) * (dim % x.ndim) + (index,)].set(converted(source, x.dtype))


@rule("aten.diagonal_scatter")
def _diagonal_scatter(n: Node, x: array, source: array, offset: int, a: int, b: int) -> array:
    a, b = a % x.ndim, b % x.ndim
    count = source.shape[-1]
    rows, columns = smelt.arange(count) + max(0, -offset), smelt.arange(count) + max(0, offset)
    turned = smelt.moveaxis(x, (a, b), (0, 1))
    written = turned.at[rows, columns].set(smelt.moveaxis(converted(source, x.dtype), -1, 0))
    return smelt.moveaxis(written, (0, 1), (a, b))


@rule("aten.diagonal", "aten.diagonal_copy")
def _diagonal(n: Node, x: array, offset: int, a: int, b: int) -> array:
    return smelt.diagonal(x, offset, a, b)


@rule("aten.flip")
def _flip(n: Node, x: array, dims: list[int]) -> array:
    return smelt.flip(x, tuple(dims)) if dims else x


@rule("aten.roll")
def _roll(n: Node, x: array, shifts: list[int], dims: list[int]) -> array:
    return smelt.roll(x, tuple(shifts), tuple(dims)) if dims else smelt.roll(x, shifts[0])


@rule("aten.repeat")
def _repeat(n: Node, x: array, repeats: list[int]) -> array:
    return smelt.tile(x, tuple(repeats))


@rule("aten.unfold", "aten.unfold_copy")
def _unfold(n: Node, x: array, dim: int, size: int, step: int) -> array:
    """Windows along an axis; the places in them are the last axis."""
    if not x.ndim:
        return x.reshape(1)[:size]
    dim = dim % x.ndim
    starts = smelt.arange(0, x.shape[dim] - size + 1, step)
    at = starts[:, None] + smelt.arange(size)
    return smelt.moveaxis(smelt.take(x, at, axis=dim), dim + 1, -1)


@rule("aten.as_strided", "aten.as_strided_copy")
def _as_strided(n: Node, x: array, size: list[int], stride: list[int], offset: int | None) -> array:
    if not n.given(0).is_contiguous() or n.given(0).storage_offset():
        raise Refused("of what does not lie in one piece is not translated: arrays have no strides")
    return smelt.as_strided(x, tuple(size), tuple(stride), offset or 0)


@rule("aten.constant_pad_nd")
def _constant_pad(n: Node, x: array, widths: list[int], value: Any) -> array:
    """Pairs from the last axis on; negative ones cut."""
    given = [(widths[i], widths[i + 1]) for i in range(len(widths) - 2, -1, -2)]
    pairs = [(0, 0)] * (x.ndim - len(given)) + given
    cut = tuple(slice(max(0, -a), d - max(0, -b)) for (a, b), d in zip(pairs, x.shape))
    return smelt.pad(x[cut], [(max(0, a), max(0, b)) for a, b in pairs], constant_values=value)


@rule("aten.tril", "aten.triu")
def _triangle(n: Node, x: array, k: int) -> array:
    return (smelt.tril if "tril" in n.op else smelt.triu)(x, k)


# New arrays


@rule("aten.full", "aten.full_like", "aten.new_full")
def _full(n: Node, like: Any, *rest: Any) -> array:
    value = rest[1] if n.op.startswith("aten.new_full") else rest[0]
    shape = rest[0] if n.op.startswith("aten.new_full") else like.shape if isinstance(like, array) else like
    return smelt.full(tuple(shape), value, n.dtype)


@rule("aten.zeros", "aten.ones", "aten.empty", "aten.empty_strided", "aten.new_empty", "aten.new_zeros",
      "aten.new_ones", "aten.zeros_like", "aten.ones_like", "aten.empty_like", "aten.empty_permuted")  # fmt: skip
def _zeros(n: Node, like: Any, *rest: Any) -> array:
    """Memory that nothing has written to is zero here."""
    shape = rest[0] if n.op.startswith("aten.new_") else like.shape if isinstance(like, array) else like
    return (smelt.ones if "ones" in n.op else smelt.zeros)(tuple(shape), n.dtype)


@rule("aten.scalar_tensor")
def _scalar_tensor(n: Node, value: Any, *_: Any) -> array:
    return converted(value, n.dtype) if isinstance(value, array) else smelt.array(value, n.dtype)


@rule("aten.arange")
def _arange(n: Node, *bounds: Any) -> array:
    count = {"default": 1, "start": 2, "start_step": 3}[n.op.rpartition(".")[2]]
    start, stop, step = ((0, bounds[0], 1), (*bounds[:2], 1), bounds[:3])[count - 1]
    return smelt.arange(start, stop, step, dtype=n.dtype)


@rule("aten.linspace")
def _linspace(n: Node, start: Any, end: Any, steps: int, *_: Any) -> array:
    return smelt.linspace(start, end, steps, dtype=n.dtype)


@rule("aten.eye")
def _eye(n: Node, rows: int, *rest: Any) -> array:
    return smelt.eye(rows, rest[0] if n.op.endswith(".m") else rows, dtype=n.dtype)
