"""Scatters for all sizes: windows of updates, one after the other, each into the place that indices give.

Windows extend along no indexed axis, so two of them have the same place or none in common. Each place has an owner: a
thread where windows are short, else a threadgroup, whose threads share the elements of a window. An owner looks at all
updates in order and applies its own, so no two threads write to one element, and the result is that of the order.

The table has the number of windows and of the elements of each; the extents of the loops over these, and how far their
neighbours lie apart in the result; the greatest number that divides all places; and for each index the largest one and
how far neighbours along its axis lie apart.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import cast

import numpy as np

from smelt.ir import dtypes
from smelt.ir.aval import Aval
from smelt.ir.builder import Function
from smelt.ir.op import get
from smelt.ir.ops.indexing import Scatter
from smelt.ir.scalar import INDEX, Scalar

from ..strided import DeviceBinding, collapsed
from .devices import METAL
from .kernel import GpuKernel, GpuModule
from .schedules.schedule import argument_name, source_lines
from .strided_layouts import MANY, MOST_THREADS, NARROW, ScatterLayout

#: Elements of a window from which on a threadgroup owns it; threads of one where threads do.
LONG, FEW_THREADS = 32, 32
#: Buffers beside the indices: the table, the updates and the result.
OTHERS = 3
#: Threadgroups.
OWNERS = 512


def bind_scatter(
    mode: str, count: int, window: tuple[int, ...], strides: tuple[int, ...], places: Sequence[tuple[int, int]]
) -> DeviceBinding | None:
    """See `smelt.backends.strided.StridedKernels.scatter`."""
    loops = collapsed(window, 0, [strides])
    if loops is None or len(places) + OTHERS > METAL.max_buffers:
        return None
    size = math.prod(window)
    numbers = [count, size, *(extent for extent, _ in loops), *(step for _, (step,) in loops)]
    numbers.append(math.gcd(*(step for _, step in places)) or 1)
    for most, step in places:
        numbers += [most, step]
    reach = sum([most * step for most, step in places]) + sum([(n - 1) * step for n, (step,) in loops])
    bits = 32 if max(reach, count * size) < NARROW else 64
    threads = MOST_THREADS if size >= LONG else FEW_THREADS
    layout = ScatterLayout(mode, len(places), len(loops), threads, bits)
    return DeviceBinding(str(layout), np.array(numbers, layout.table.dtype.numpy))


def build_scatter(module: GpuModule, body: Function, layout: ScatterLayout) -> tuple[GpuKernel, Aval, list[Aval]]:
    """The kernel of a module whose ``@main`` takes updates and indices: over the table, these, and a result that has
    the old elements already; and the types of all."""
    avals = [Aval((MANY[layout.bits],), v.dtype) for v in (*body.arguments, *body.returns)]
    names = ["table", *map(argument_name, body.arguments), "out"]
    k, (table, updates, *indices, out) = module.start(
        "scatter", [layout.table, *avals], names, body.mlir.location, body
    )

    def numbers(first: int, count: int, name: str) -> list[Scalar]:
        with k.named(name):
            return [k.convert(k.read(table, k.const(first + i, INDEX)), INDEX) for i in range(count)]

    loops = layout.loops
    count, size = numbers(0, 2, "count")
    extents, strides = numbers(2, loops, "extent"), numbers(2 + loops, loops, "stride")
    unit, *limits = numbers(2 + 2 * loops, 1 + 2 * layout.indices, "limit")
    is_long, groups = layout.threads > FEW_THREADS, min(module.gpu.groups, OWNERS)
    zero = k.const(0, INDEX)
    me = k.group() if is_long else k.grid_position()
    owners = k.const(groups if is_long else groups * layout.threads, INDEX)
    first, step = (k.thread(), layout.threads) if is_long else (zero, 1)

    def of_update(n: Scalar) -> None:
        inside, base = [], zero
        for memory, most, apart in zip(indices, limits[::2], limits[1::2]):
            at = k.convert(k.read(memory, n), dtypes.int64)
            inside.append(k.logical_and(at >= 0, at <= k.convert(most, dtypes.int64)))
            base = base + k.convert(k.select(inside[-1], at, k.const(0, dtypes.int64)), INDEX) * apart
        owner = k.op("arith.remui", [k.op("arith.divui", [base, unit], INDEX), owners], INDEX)
        k.when(functools.reduce(k.logical_and, inside, owner.eq(me)), functools.partial(of_window, n, base))

    def of_window(n: Scalar, base: Scalar) -> None:
        k.for_(first, size, functools.partial(of_element, n * size, base), step=step)

    def of_element(start: Scalar, base: Scalar, i: Scalar) -> None:
        target, rest = base, i
        for extent, stride in reversed(list(zip(extents[1:], strides[1:]))):
            rest, position = (k.op(f"arith.{name}", [rest, extent], INDEX) for name in ("divui", "remui"))
            target = target + position * stride
        target = target + rest * strides[0]
        old, new = k.read(out, target), k.read(updates, start + i)
        k.write(cast(Scatter, get("scatter")).combine(k, old, new, mode=layout.mode), out, target)

    k.for_(zero, count, of_update)
    k.finish("scatter", (groups, 1, 1), (layout.threads, 1, 1), 0, 0, 0, source_lines(body.ops))
    return k, layout.table, avals
