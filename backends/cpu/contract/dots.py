"""Contractions with few rows whose operands lie along the depth: vectors run along it, and are added up at the end.

A matrix of weights that a single vector is multiplied with is read once, in the order in which it lies.
"""

from __future__ import annotations

import functools
from collections.abc import Callable

from smelt.backends.contraction import Product
from smelt.ir.scalar import INDEX, Scalar

from ..kernel import KernelModule, Memory
from ..schedules import ScheduledKernel
from .blocks import Blocks, Bounds
from .tiles import Sides, Source, Tile, TiledKernel, has_wide_registers, lanes_of, up_to

#: With more rows than this, columns are better transposed into tiles.
FEW_ROWS = 8
#: Less depth than so many vectors is not worth adding up their lanes.
LEAST_VECTORS = 4
#: Columns of a block, and bytes of its depth in a tile.
BLOCK_COLUMNS, DEPTH_BYTES = 8, 2048
#: Bytes of the depth of a block whose columns are read where they lie.
SOURCE_BYTES = 16 * 1024


def suits_dots(sides: Sides) -> bool:
    """Whether a product has few rows, and vectors should run along its depth."""
    return sides.rows.extent <= FEW_ROWS and runs_along_depth(sides)


def runs_along_depth(sides: Sides) -> bool:
    """Whether vectors along the depth of a product are read where they lie."""
    product = sides.product
    if not product.rules.multiplies:
        return False
    lanes = lanes_of(product.dtype)
    if product.depth.extent < LEAST_VECTORS * lanes:
        return False
    return 2 * sides.columns.extent < lanes or sides.columns_along_depth is True


def build_dots(module: KernelModule, name: str, product: Product) -> ScheduledKernel:
    """The kernel of a product with few rows."""
    return _Dots(module, name, product).build()


class _Dots(TiledKernel):
    def __init__(self, module: KernelModule, name: str, product: Product):
        super().__init__(module, name, product)
        k, sides = self.k, self.sides
        most = 4 if has_wide_registers() else 2
        self.height, self.width = min(most, sides.rows.extent), min(most, sides.columns.extent)
        self.rows = Blocks.plan(sides.merged(sides.rows), FEW_ROWS, self.height)
        self.columns = Blocks.plan(sides.merged(sides.columns), BLOCK_COLUMNS, self.width)
        columns, depth = sides.merged(sides.columns), sides.merged(product.depth)
        self.source = Source.of(k, sides.column_operand, columns, depth, self.dtype)
        room = DEPTH_BYTES if self.source is None else SOURCE_BYTES
        self.depth = Blocks.plan(depth, room // self.dtype.size, self.lanes)
        tall, wide = up_to(self.rows.capacity, self.height), up_to(self.columns.capacity, self.width)
        self.make_sums(tall, wide)
        left, right = sides.rows_along_depth is not False, sides.columns_along_depth is not False
        self.a = Tile(k, sides.row_operand, self.rows, tall, self.depth, True, left)
        if self.source is None:
            self.b = Tile(k, sides.column_operand, self.columns, wide, self.depth, True, right)
        self.tall, self.wide = tall, wide

    def fill_sums(self, rows: Bounds, columns: Bounds) -> None:
        k, zero = self.k, self.k.const(0, INDEX)
        tall, wide = self.rows.elements(rows), self.columns.elements(columns)
        self.start_sums(k.const(self.tall, INDEX))

        def block(depth: Bounds) -> None:
            steps = self.depth.elements(depth)
            self.a.fill(rows, depth)
            self._clear_lines(self.a, tall, self.tall, steps)
            self._clear_end(self.a, self.tall, steps)
            if self.source is None:
                self.b.fill(columns, depth)
                self._clear_lines(self.b, wide, self.wide, steps)
                self._clear_end(self.b, self.wide, steps)
            else:  # where the block begins
                self._at = self.columns.first(k, columns), self.depth.first(k, depth)

            def row(r: Scalar) -> None:
                k.loop(None, zero, wide, lambda c: self.inner(r, c, steps), step=self.width)

            k.loop(None, zero, tall, row, step=self.height)

        self.depth.run(k, block)

    def _clear_lines(self, tile: Tile, count: Scalar, end: int, steps: Scalar) -> None:
        """Zeros for lines that nobody wants: what happens to lie there may be slow to multiply."""
        k, zero = self.k, self.k.const(0, INDEX)
        blocks = tile.free
        if blocks.capacity == end and blocks.are_whole:
            return
        nothing = k.const(0, tile.memory.aval.dtype)

        def line(i: Scalar) -> None:
            k.loop(None, zero, steps, lambda d: k.write(nothing, tile.memory, tile.offset(i, d)))

        k.loop(None, count, k.const(end, INDEX), line)

    def _clear_end(self, tile: Tile, positions: int, steps: Scalar) -> None:
        """Zeros from the end of the depth to that of its last vector, which add nothing."""
        k, zero, lanes = self.k, self.k.const(0, INDEX), self.lanes
        nothing = k.const(0, self.dtype)
        end = k.op("arith.divui", [steps + (lanes - 1), k.const(lanes, INDEX)], INDEX) * lanes

        def line(i: Scalar) -> None:
            k.loop(None, steps, end, lambda d: k.write(nothing, tile.memory, tile.offset(i, d)))

        k.loop(None, zero, k.const(positions, INDEX), line)

    def inner(self, r: Scalar, c: Scalar, steps: Scalar) -> None:
        """Add the products of a few rows with a few columns over the depth of the tiles."""
        k, zero = self.k, self.k.const(0, INDEX)
        pairs = [(i, j) for i in range(self.height) for j in range(self.width)]
        row = self.a.offset(r, zero)
        if self.source is None:
            first = self.b.offset(c, zero)
            memory, lines = self.b.memory, [first + j * self.b.strides[0] for j in range(self.width)]
        else:
            memory, lines = self.source.memory, self.source.lines(self._at[0] + c, self.width, self._at[1])
        with k.vectors(self.lanes):

            def step(load: Callable[[Memory, Scalar], Scalar], d: Scalar, *sums: Scalar) -> list[Scalar]:
                left = [load(self.a.memory, row + d + i * self.a.strides[0]) for i in range(self.height)]
                right = [load(memory, at + d) for at in lines]
                return [self.sides.accumulate(k, s, left[i], right[j]) for s, (i, j) in zip(sums, pairs)]

            ends = self.source is not None and self.sides.product.depth.extent % self.lanes != 0
            whole = k.op("arith.divui", [steps, k.const(self.lanes, INDEX)], INDEX) * self.lanes if ends else steps
            vectors = functools.partial(step, k.load_vector)
            sums = k.for_(zero, whole, vectors, [k.const(0, self.dtype)] * len(pairs), self.lanes)
            if ends:  # behind the last column there may be no memory
                sums = step(lambda memory, at: k.load_some(memory, at, steps - whole), whole, *sums)
        for (i, j), x in zip(pairs, sums):
            place = (r + i) * self.pitch + c + j
            k.write(k.read(self.sums, place) + k.add_lanes(x), self.sums, place)
