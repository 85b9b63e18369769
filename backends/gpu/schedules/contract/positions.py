"""Arithmetic on positions in the contraction kernels."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
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


def sums_of_lanes(k: GpuKernel, xs: Sequence[Scalar]) -> Scalar:
    """Sums over the lanes of a simdgroup: in lane i that of ``xs[i]``, where there is one.

    Numbers of 32 bits are exchanged so that each lane goes on with half of them: n - 1 exchanges in place of n log n.
    """
    first = xs[0]
    if len(xs) == 1 or not first.dtype.is_float or first.dtype.size != 4:
        sums = [over_lanes(k, x) for x in xs]
        for i, x in enumerate(sums[1:], 1):
            sums[0] = k.select(k.lane().eq(i), x, sums[0])
        return sums[0]
    lane, distance, zero = k.lane(), 1, k.const(0, first.dtype)
    found = list(xs)
    while distance < k.gpu.simd:
        if len(found) > 1:
            odd = (lane & distance).eq(distance)
            found += [zero] * (len(found) % 2)
            pairs = list(zip(found[::2], found[1::2]))
            found = [k.select(odd, y, x) + k.shuffle(k.select(odd, x, y), distance) for x, y in pairs]
        else:
            found = [found[0] + k.shuffle(found[0], distance)]
        distance *= 2
    return found[0]


def each_of(k: GpuKernel, loop: Fused) -> Iterator[Scalar]:
    """The positions of a short loop, which stands there meanwhile."""
    for i in range(loop.extent):
        position = k.const(i, INDEX)
        with k.at_position(loop, position):
            yield position


def added(k: GpuKernel, memory: Memory, count: int, first: Scalar | None = None, step: int = 1) -> Scalar:
    """The sum of `count` elements of a memory, from `first` on, so far from each other."""
    total = k.read(memory, summed(k, first))
    for i in range(1, count):
        total = total + k.read(memory, summed(k, first, i * step))
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
