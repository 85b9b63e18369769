"""Arithmetic on positions in the contraction kernels."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from smelt.backends.lowering import Fused
from smelt.backends.memory import Memory
from smelt.ir.index import Index
from smelt.ir.scalar import INDEX, Scalar

from ...kernel import GpuKernel
from ..parts import split, times


def summed(k: GpuKernel, *parts: Scalar | int | None) -> Scalar:
    """The sum of positions; parts that are zero leave no trace."""
    zero = k.const(0, INDEX)
    found: Scalar | None = None
    for part in parts:
        if part is not None and part is not zero and part != 0:
            part = k.const(part, INDEX) if isinstance(part, int) else part
            found = part if found is None else found + part
    return zero if found is None else found


def steps_between(k: GpuKernel, first: Scalar, end: Scalar | int, size: int) -> Scalar | int:
    """How many steps of `size` there are from `first`, which is 0 if `end` is known, to `end`."""
    if isinstance(end, int):
        return -(-end // size)
    with k.named("steps"):
        return k.op("arith.divui", [end - first + (size - 1), k.const(size, INDEX)], INDEX)


def over_lanes(k: GpuKernel, x: Scalar) -> Scalar:
    """The sum over the lanes of a simdgroup, in every lane."""
    if x.dtype.kind == "c":
        return k.complex(over_lanes(k, k.real(x)), over_lanes(k, k.imag(x)))
    return k.op("gpu.subgroup_reduce", [x], x.dtype, op=k.attr("#gpu<all_reduce_op add>"), uniform=k.attr("unit"))


def added(k: GpuKernel, memory: Memory, count: int) -> Scalar:
    """The sum of the first elements of a memory."""
    total = k.read(memory, k.const(0, INDEX))
    for i in range(1, count):
        total = total + k.read(memory, k.const(i, INDEX))
    return total


def within(k: GpuKernel, limits: Sequence[tuple[Scalar, int, bool]]) -> Scalar | None:
    """Whether positions are below their limits; None where nothing can be outside.

    Each limit is a position, what it must be below, and whether it could be otherwise.
    """
    condition: Scalar | None = None
    for position, limit, ragged in limits:
        if ragged:
            below = k.below(position, limit)
            condition = below if condition is None else k.logical_and(condition, below)
    return condition


def where(k: GpuKernel, condition: Scalar | None, body: Callable[[], Any]) -> None:
    """Run `body` under a condition, if there is one."""
    if condition is None:
        body()
    else:
        k.when(condition, body)


def linear(loop: Fused) -> Index:
    """Where a loop stands, as one number."""
    return sum((Index.variable(name, n) * loop.strides[name] for name, n in loop.variables), Index(0))


def tile_order(k: GpuKernel, group: Scalar, batch: Fused, down: int, across: int) -> tuple[Scalar, Scalar]:
    """Which tile a threadgroup makes, by its number: its row and column of tiles; binds `batch`.

    Threadgroups that run at the same time should share operands: blocks of tiles, down first.
    """
    height = next(n for n in (8, 4, 2, 1) if down % n == 0)
    rest, low = split(k, group, height, "", "", down * across * batch.extent > height)
    rest, column = split(k, rest, across, "", "", (down // height) * batch.extent > 1)
    batches, high = split(k, rest, down // height, "batch", "", batch.extent > 1)
    k.bind(batch, batches)
    return summed(k, times(high, height), low), column
