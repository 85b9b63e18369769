"""Contractions as outer products: a few rows times a few vectors of columns, summed in registers over the depth.

::

    for depth of the tiles:
        for i in rows: for j in vectors:
            sum[i, j] = accumulate(sum[i, j], broadcast(a[i, depth]), b[depth, j])

Where the processor multiplies pairs of bfloat16, a step of the depth is two (see `pairs`).
"""

from __future__ import annotations

import functools
import itertools
import math
import sys
from collections.abc import Callable, Sequence

from smelt.backends.contraction import Operand, Product
from smelt.backends.lowering import Fused
from smelt.ir.host_threads import processors
from smelt.ir.scalar import INDEX, Scalar

from ..kernel import KernelModule, Memory
from ..schedules import ScheduledKernel
from ..streaming import LINE_BYTES, is_large, prefetch_line
from .blocks import Blocks, Bounds
from .pairs import PairTile, multiply_in_float32, multiply_pairs, suits_pairs
from .tiles import Sides, Source, Tile, TiledKernel, has_wide_registers, pitch_of, rows_of, up_to

#: Rows of a block of the result, bytes of its columns, and of both together: its sums lie in a cache.
BLOCK_ROWS, COLUMN_BYTES, BLOCK_BYTES = 192, 2048, 192 * 1024
#: Bytes of the depth in a tile; and of columns whose tile may be so much deeper as they are fewer.
DEPTH_BYTES, FEW_COLUMNS = 768, 512
#: Bytes of columns that are brought into their order once for all blocks of rows, in blocks of the depth. Threads of
#: macOS's pool have little room on their stacks.
KEPT_BYTES = (256 if sys.platform == "darwin" else 1024) * 1024
#: Enough blocks of the result for any number of threads that is likely.
ENOUGH_BLOCKS = 16
#: Into how many parts rows or columns are cut where there are fewer blocks.
CUTS = (1, 2, 4)
#: How many multiplications take as long as to bring an element into a tile, which a cache behind the first one holds:
#: one that lies in memory; one that is computed, or read where guards hold.
COPIED, MADE = 16, 24

#: Of a sum, and an element or a pair of each side: the sum with their product.
Accumulate = Callable[[Scalar, Scalar, Scalar], Scalar]


def build_panels(module: KernelModule, name: str, product: Product) -> ScheduledKernel:
    """The kernel of a product that is wide enough for vectors."""
    return _Panels(module, name, product).build()


def plan_blocks(
    sides: Sides, rows: Sequence[Fused], columns: Sequence[Fused], height: int, width: int, wide: int, batch: int
) -> tuple[Blocks, Blocks]:
    """Blocks of rows and of columns, in as few parts as keep all processors busy.

    Each block of rows fills the columns' tile once more, and the other way round: what takes longer to fill is cut.

    Args:
        height, width: of the inner kernel.
        wide: how many columns a block has at most.
        batch: how many products there are.
    """
    across = _cuts(columns, min(sides.columns.extent, wide), width)
    down = _cuts(rows, min(sides.rows.extent, BLOCK_ROWS), height)
    if batch * down[0].count * across[0].count >= ENOUGH_BLOCKS:
        return down[0], across[0]
    effort = [_effort(operand) for operand in (sides.row_operand, sides.column_operand)]

    def duration(r: Blocks, c: Blocks) -> float:
        """Of the processor that has most to do, for each step of the depth; what all do counts, as others wait."""
        multiply = up_to(r.capacity, height) * up_to(c.capacity, width)
        block, blocks = multiply + effort[0] * r.capacity + effort[1] * c.capacity, batch * r.count * c.count
        return block * (-(-blocks // processors()) + blocks / processors() / 4)

    return min(itertools.product(down, across), key=lambda pair: duration(*pair))


def _cuts(loops: Sequence[Fused], most: int, multiple: int) -> list[Blocks]:
    """Loops in blocks of at most `most` positions, or of parts of these; the first are the largest."""
    found = [Blocks.plan(loops, max(multiple, most // parts), multiple) for parts in CUTS]
    inside = math.prod(loop.extent for loop in found[-1].inner)  # a part that takes one step more is smaller than two
    return found + [Blocks.plan(loops, min(most, most // parts + inside - 1), multiple) for parts in CUTS[1:]]


def _effort(operand: Operand) -> int:
    return COPIED if operand.source is not None and not operand.access.guards else MADE


class _Panels(TiledKernel):
    def __init__(self, module: KernelModule, name: str, product: Product):
        super().__init__(module, name, product)
        k, sides, size = self.k, self.sides, self.dtype.size
        self.lanes = sides.lanes
        rows, columns = sides.merged(sides.rows), sides.merged(sides.columns)
        self.height = rows_of(sides.rows.extent)
        self.vectors = 2 if has_wide_registers() and sides.columns.extent > self.lanes else 1
        self.width = self.lanes * self.vectors
        self.in_pairs = k.checks is None and suits_pairs(product)
        wide = min(COLUMN_BYTES, BLOCK_BYTES // min(sides.rows.extent, BLOCK_ROWS)) // size
        batch = math.prod(loop.extent for loop in self.batch)
        self.rows, self.columns = plan_blocks(sides, rows, columns, self.height, self.width, wide, batch)
        tall, wide = up_to(self.rows.capacity, self.height), up_to(self.columns.capacity, self.width)
        depth = sides.merged(product.depth)
        once = self.columns.count == 1 and wide == self.width
        self.source = Source.of(k, sides.row_operand, rows, depth, self.dtype) if once else None
        size = 2 if self.in_pairs else size
        few = not self.batch and self.columns.count == 1 and product.depth.extent * size <= DEPTH_BYTES
        fits = product.depth.extent * pitch_of(wide, self.dtype) * size <= KEPT_BYTES
        keeps = not self.batch and self.columns.count == 1 and self.rows.count > 1 and fits and not self.in_pairs
        # A block of columns that are to be turned has room of its own, unless it is made once.
        room = DEPTH_BYTES // 2 if sides.columns_along_depth and not few and not keeps else DEPTH_BYTES
        if self.source is not None:
            room *= FEW_COLUMNS // self.dtype.size // wide
        self.depth = Blocks.plan(depth, room // size, self.lanes)
        #: Whether all blocks are made with the same columns, as those of a layer of few weights.
        self.same_columns = keeps or (not self.batch and self.columns.count == self.depth.count == 1)
        self.make_sums(tall, wide)
        left, right = sides.rows_along_depth is not False, sides.columns_along_depth is True
        self.a: Tile | PairTile
        self.b: Tile | PairTile
        if self.in_pairs:
            self.a = PairTile(k, sides.row_operand, self.rows, tall, self.depth, left, across=False)
            self.b = PairTile(k, sides.column_operand, self.columns, wide, self.depth, right, across=True)
        else:
            if self.source is None:
                self.a = Tile(k, sides.row_operand, self.rows, tall, self.depth, left, left)
            kept = self.depth.count if self.same_columns else 1
            self.b = Tile(k, sides.column_operand, self.columns, wide, self.depth, False, right, None, kept)

    def each_unit(self) -> None:
        k = self.k

        def block(depth: Bounds, number: Scalar) -> None:
            if isinstance(self.b, Tile):
                self.b.use(number)
            self.b.fill(self.columns.enter(k, k.const(0, INDEX)), depth)

        if self.same_columns:
            self.depth.run_numbered(k, block)
        super().each_unit()

    def _lines(self, r: Scalar) -> tuple[Memory, list[Scalar], int]:
        """Where a few rows begin, and how far their elements lie apart."""
        if self.source is not None:
            return self.source.memory, self.source.lines(self._at[0] + r, self.height, self._at[1]), 1
        first = self.a.offset(r, self.k.const(0, INDEX))
        return self.a.memory, [first + i * self.a.strides[0] for i in range(self.height)], self.a.strides[1]

    def fill_sums(self, rows: Bounds, columns: Bounds) -> None:
        k = self.k
        tall, wide = self.rows.elements(rows), self.columns.elements(columns)
        once = self.depth.count == 1
        if not once:
            self.start_sums(tall)

        def block(depth: Bounds, number: Scalar) -> None:
            if self.same_columns and isinstance(self.b, Tile):
                self.b.use(number)
            if self.source is None:
                self.a.fill(rows, depth)
            else:  # where the block begins
                self._at = self.rows.first(k, rows), self.depth.first(k, depth)
            if not self.same_columns:
                self.b.fill(columns, depth)
            self._multiply(tall, wide, self.depth.elements(depth), once)

        self.depth.run_numbered(k, block)

    def _multiply(self, tall: Scalar, wide: Scalar, steps: Scalar, once: bool) -> None:
        """Add the products of the tiles to the sums."""
        k, zero = self.k, self.k.const(0, INDEX)

        def panels(steps: Scalar, accumulate: Accumulate) -> None:
            def panel(c: Scalar) -> None:
                k.loop(None, zero, tall, lambda r: self.inner(r, c, steps, once, accumulate), step=self.height)

            k.loop(None, zero, wide, panel, step=self.width)

        if not self.in_pairs:
            panels(steps, functools.partial(self.sides.accumulate, k))
            return
        assert isinstance(self.a, PairTile) and isinstance(self.b, PairTile)
        pairs = k.op("arith.divui", [steps + 1, k.const(2, INDEX)], INDEX)
        rare = k.logical_or(self.a.has_subnormals(), self.b.has_subnormals())
        k.when(~rare, lambda: panels(pairs, functools.partial(multiply_pairs, k)))
        k.when(rare, lambda: panels(pairs, functools.partial(multiply_in_float32, k)))

    def inner(self, r: Scalar, c: Scalar, steps: Scalar, once: bool, accumulate: Accumulate) -> None:
        """The sums of a few rows and vectors over the depth of the tiles."""
        k, lanes, zero = self.k, self.lanes, self.k.const(0, INDEX)
        at = r * self.pitch + c
        places = [at + (i * self.pitch + j * lanes) for i in range(self.height) for j in range(self.vectors)]
        memory, lines, apart = self._lines(r)
        if self.source is not None:
            self._fetch(self.source, r)
        column = self.b.offset(c, zero)
        with k.vectors(lanes):
            start = [k.const(0, self.dtype) if once else k.load_vector(self.sums, place) for place in places]

            def step(d: Scalar, *sums: Scalar) -> list[Scalar]:
                line = column + d * self.b.strides[1]
                right = [k.load_vector(self.b.memory, line + j * lanes) for j in range(self.vectors)]
                left = [self._spread(memory, at + d * apart) for at in lines]
                pairs = [(x, y) for x in left for y in right]
                return [accumulate(total, x, y) for total, (x, y) in zip(sums, pairs)]

            for x, place in zip(k.for_(zero, steps, step, start), places):
                k.store_vector(x, self.sums, place)

    def _fetch(self, source: Source, r: Scalar) -> None:
        """Ask for the next rows of a large array that are read where they lie: the hardware does not foresee these."""
        k, line = self.k, LINE_BYTES // self.dtype.size
        if not is_large(source.memory.aval) or self.depth.count > 1 or source.pitch != source.depth.extent:
            return
        first = source.lines(self._at[0] + r + self.height, 1, self._at[1])[0]
        count = k.const(self.height * source.depth.extent, INDEX)
        k.loop(None, k.const(0, INDEX), count, lambda j: prefetch_line(k, source.memory, first + j), step=line)

    def _spread(self, memory: Memory, offset: Scalar) -> Scalar:
        """An element of a row in all lanes."""
        k = self.k
        with k.vectors(0):
            x = k.read(memory, offset)
        return k.spread(x)
