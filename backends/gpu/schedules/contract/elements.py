"""Contractions of any dtype and size: one thread to one element of the result."""

from __future__ import annotations

import math
from typing import Any

from smelt.backends.contraction import Product
from smelt.ir.scalar import INDEX, Scalar, compute_dtype

from ...kernel import GpuKernel, GpuModule
from ..maps import bind_loops
from ..parts import split, times
from ..schedule import ScheduledKernel, ScratchPlan, threads_for
from .positions import steps_between, summed, tile_order, where, within
from .split import epilogue_of
from .tiles import Tile

#: Up to this depth a thread makes as many neighbours as it can store at once.
SHALLOW = 8
#: Rows, columns and depth of a tile in threadgroup memory.
BLOCK = 16
#: Where threads or threadgroups share the depth, each has at least so much of it.
LEAST_DEPTH = 256


def build_elements(module: GpuModule, product: Product, scratch: ScratchPlan) -> list[ScheduledKernel]:
    """Each thread reads its operands' elements from device memory."""
    columns, depth = product.columns, product.depth
    width = product.width(columns) if depth.extent <= SHALLOW else 1
    total = product.result.aval.size // width
    busy = max(1, -(-total // module.gpu.threads))
    epilogue = epilogue_of(module, product, busy, 1, LEAST_DEPTH, scratch)
    k = epilogue.k
    threads, groups = threads_for(k, total * epilogue.shares)

    loops = [loop for loop in (product.batch, product.rows) if loop.extent > 1]

    def item(i: Scalar) -> None:
        i, first, end = epilogue.share(i, total)
        inner = bind_loops(k, loops, columns.extent // width, i)
        epilogue.neighbours(columns, times(inner, width), width, lambda j: _sum(k, product, first, end))

    if total:
        k.grid_stride(None, total * epilogue.shares, threads, groups, item)
    return epilogue.finish("contract-elements", groups, threads)


def _sum(k: GpuKernel, product: Product, first: Scalar, end: Scalar | int) -> Scalar:
    """The contraction's result at the position of the kernel's loops, of contracted positions from first to end."""
    held = compute_dtype(product.dtype)
    zero = k.const(0, held)
    if not product.depth.extent:
        return zero

    def pair() -> tuple[Scalar, Scalar]:
        return product.lhs.read(k), product.rhs.read(k)

    def step(position: Scalar, total: Scalar) -> list[Scalar]:
        return [product.rules.accumulate(k, total, *pair())]

    if product.depth.extent == 1 and product.rules.multiplies:
        with k.at_position(product.depth, k.const(0, INDEX)):
            return k.mul(*pair())
    end = end if isinstance(end, Scalar) else k.const(end, INDEX)
    return k.loop(product.depth, first, end, step, [zero])[0]


def build_blocks(module: GpuModule, product: Product, scratch: ScratchPlan) -> list[ScheduledKernel]:
    """Threadgroups make square tiles, and read what their threads share into threadgroup memory."""
    rows, columns, depth = product.rows, product.columns, product.depth
    held = compute_dtype(product.dtype)
    threads = BLOCK * BLOCK
    down, across = -(-rows.extent // BLOCK), -(-columns.extent // BLOCK)
    groups = math.prod((down, across, product.batch.extent))
    epilogue = epilogue_of(module, product, groups, BLOCK, LEAST_DEPTH, scratch)
    k = epilogue.k
    group, begin, end = epilogue.share(k.group(), groups)
    row, column = tile_order(k, group, product.batch, down, across)
    with k.named("row"):
        row = times(row, BLOCK)
    with k.named("column"):
        column = times(column, BLOCK)
    lhs = Tile(k, "lhs", product.lhs, (rows, BLOCK), (depth, BLOCK), threads, "depth", 1, product.dtype)
    rhs = Tile(k, "rhs", product.rhs, (columns, BLOCK), (depth, BLOCK), threads, "free", 1, product.dtype)
    for tile in (lhs, rhs):
        tile.place(k.shared(tile.elements, product.dtype, name=f"{tile.name}_tile"))
    thread_row, thread_column = split(k, k.thread(), BLOCK, "own_row", "own_column")

    def step(n: Scalar, total: Any) -> list[Any]:
        with k.named("depth"):
            depth_first = summed(k, begin, n * BLOCK)
        lhs.copy(row, depth_first, None)
        rhs.copy(column, depth_first, None)
        k.barrier()

        def multiply(j: Scalar, so_far: Any) -> list[Any]:
            x = k.read(lhs.memory, lhs.offset(thread_row, j))
            y = k.read(rhs.memory, rhs.offset(thread_column, j))
            return [product.rules.accumulate(k, Scalar(k, so_far, held), x, y).mlir]

        found = k.counted(BLOCK, multiply, [total], unroll=True, carried="sum")
        k.barrier()
        return found

    steps = steps_between(k, begin, end, BLOCK)
    [total] = k.counted(steps, step, [k.const(0, held).mlir], carried="sum")
    with k.named("out_row"):
        row = summed(k, row, thread_row)
    with k.named("out_column"):
        column = summed(k, column, thread_column)

    def store() -> None:
        with k.at_position(rows, row), k.at_position(columns, column):
            epilogue.element(Scalar(k, total, held))

    inside = [(row, rows.extent, rows.extent % BLOCK != 0), (column, columns.extent, columns.extent % BLOCK != 0)]
    where(k, within(k, inside), store)
    return epilogue.finish("contract-blocks", groups * epilogue.shares, threads)
