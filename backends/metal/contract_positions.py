"""Arithmetic on positions in the contraction kernels."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from typing import Any

from smelt.backends.lowering import Fused
from smelt.ir.scalar import INDEX, Scalar

from .kernel import MetalKernel


def split(k: MetalKernel, x: Scalar, n: int, quotient: str, rest: str, more: bool = True) -> tuple[Scalar, Scalar]:
    """``divmod(x, n)``, and what the text calls the two; `more`: whether the quotient can be other than zero."""
    if n == 1:
        return x, k.const(0, INDEX)
    if not more:
        return k.const(0, INDEX), x
    found = []
    for op, name in (("arith.divui", quotient), ("arith.remui", rest)):
        with k.named(name) if name else nullcontext():
            found.append(k.op(op, [x, k.const(n, INDEX)], INDEX))
    return found[0], found[1]


def plus(k: MetalKernel, *parts: Scalar | int | None) -> Scalar:
    """The sum of positions; parts that are zero leave no trace."""
    zero = k.const(0, INDEX)
    found: Scalar | None = None
    for part in parts:
        if part is not None and part is not zero and part != 0:
            part = k.const(part, INDEX) if isinstance(part, int) else part
            found = part if found is None else found + part
    return zero if found is None else found


def times(k: MetalKernel, x: Scalar, n: int) -> Scalar:
    """``x * n``, likewise."""
    return x if n == 1 or x is k.const(0, INDEX) else x * n


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
    return plus(k, times(k, high, height), low), column
