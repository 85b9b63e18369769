"""Arithmetic on positions in the contraction kernels."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from smelt.backends.lowering import Fused
from smelt.ir.scalar import INDEX, Scalar

from ..kernel import MetalKernel
from .parts import split, times


def summed(k: MetalKernel, *parts: Scalar | int | None) -> Scalar:
    """The sum of positions; parts that are zero leave no trace."""
    zero = k.const(0, INDEX)
    found: Scalar | None = None
    for part in parts:
        if part is not None and part is not zero and part != 0:
            part = k.const(part, INDEX) if isinstance(part, int) else part
            found = part if found is None else found + part
    return zero if found is None else found


def within(k: MetalKernel, limits: Sequence[tuple[Scalar, int, bool]]) -> Scalar | None:
    """Whether positions are below their limits; None where nothing can be outside.

    Each limit is a position, what it must be below, and whether it could be otherwise.
    """
    condition: Scalar | None = None
    for position, limit, ragged in limits:
        if ragged:
            below = k.below(position, limit)
            condition = below if condition is None else k.logical_and(condition, below)
    return condition


def where(k: MetalKernel, condition: Scalar | None, body: Callable[[], Any]) -> None:
    """Run `body` under a condition, if there is one."""
    if condition is None:
        body()
    else:
        k.when(condition, body)


def tile_order(k: MetalKernel, batch: Fused, down: int, across: int) -> tuple[Scalar, Scalar]:
    """Which tile the threadgroup makes: its row and column of tiles; binds `batch`.

    Threadgroups that run at the same time should share operands: blocks of tiles, down first.
    """
    height = next(n for n in (8, 4, 2, 1) if down % n == 0)
    rest, low = split(k, k.group(), height, "", "", down * across * batch.extent > height)
    rest, column = split(k, rest, across, "", "", (down // height) * batch.extent > 1)
    batches, high = split(k, rest, down // height, "batch", "", batch.extent > 1)
    k.bind(batch, batches)
    return summed(k, times(high, height), low), column
