"""Contractions with few rows whose columns lie beside each other: lines of sums stay in L1, and what the columns are
made of is read once, in the order in which it lies.

::

    for depth, a few steps at once:
        for c in columns of the block:
            for i in rows: for the steps d:
                sum[i, c] = accumulate(sum[i, c], a[i, d], b[d, c])
"""

from __future__ import annotations

from smelt.backends.contraction import Product
from smelt.backends.lowering import Fused
from smelt.backends.plan import is_static
from smelt.ir.index import linearize
from smelt.ir.scalar import INDEX, Scalar

from ..kernel import KernelModule
from ..schedules import ScheduledKernel
from ..streaming import follows, is_large, prefetch
from .blocks import Blocks, Bounds
from .elements import is_strided, unrolled
from .tiles import Sides, TiledKernel, lanes_of, step_of

#: With more rows than this a block of the columns is worth a copy in the order in which it is multiplied.
FEW_ROWS = 16
#: Fewer columns than so many vectors are no line, of several rows: tiles do with fewer loads.
LEAST_VECTORS = 4
#: Bytes of a block's sums, and columns of a block: at most, and as few as there may be for more blocks.
SUMS_BYTES, MOST_COLUMNS, LEAST_COLUMNS = 16 * 1024, 1024, 256
#: Bytes of the sums of neighbouring blocks that one thread makes together.
TOGETHER_BYTES = 64 * 1024
#: Enough blocks of the result for any number of threads that is likely.
ENOUGH_BLOCKS = 16
#: Products of a row that are added with their sum in a register, and those that have sums of their own.
STEPS, BLOCK_STEPS = 4, 128
#: Those of a single row with columns of half precision: a step reads less, and its sums as often.
HALF_STEPS = 8
#: How many steps ahead large operands are fetched.
AHEAD = 8


def suits_lines(sides: Sides) -> bool:
    """Whether a product has few rows, and lines of columns."""
    columns, operand, lanes = sides.merged(sides.columns), sides.column_operand, lanes_of(sides.product.dtype)
    least = lanes // 2 if sides.rows.extent == len(columns) == 1 else LEAST_VECTORS * lanes
    # Several loops of columns, as where the result lies in another order, are for tiles, which one row does not fill.
    return bool(
        sides.rows.extent <= FEW_ROWS
        and (len(columns) == 1 or (columns and sides.rows.extent == 1))
        and columns[-1].extent >= least
        and not operand.access.guards
        and not is_strided(operand, columns)
    )


def build_lines(module: KernelModule, name: str, product: Product) -> ScheduledKernel:
    """The kernel of a product with few rows; see `suits_lines`."""
    return _Lines(module, name, product).build()


class LinesKernel(TiledKernel):
    """A kernel of few rows.

    Attributes:
        together: neighbouring blocks of columns that a thread takes at once: long pieces of the lines of memory are
            read faster than short ones.
    """

    together = 1

    def take_together(self, line: int) -> None:
        """Decide how many blocks are computed at once; `line`: bytes of sums of each."""
        alone = self.units == self.columns.count and not self.columns.outer
        self.together = max(1, min(self.units, TOGETHER_BYTES // line)) if alone else 1

    def each_unit(self) -> None:
        if self.together == 1:
            super().each_unit()
            return
        k, blocks = self.k, self.columns

        def some(at: Scalar) -> None:
            last = k.op("arith.minui", [at + self.together, self._hi], INDEX) * blocks.step
            last = k.op("arith.minui", [last, k.const(blocks.stepped.extent, INDEX)], INDEX)
            rows, columns = self.rows.enter(k, k.const(0, INDEX)), (at * blocks.step, last)
            self.fill_sums(rows, columns)
            self.finish(rows, columns)

        k.loop(None, self._lo, self._hi, some, step=self.together)


class _Lines(LinesKernel):
    def __init__(self, module: KernelModule, name: str, product: Product):
        super().__init__(module, name, product)
        tall, columns = self.sides.rows.extent, self.sides.merged(self.sides.columns)
        self.each_row = self.sides.merged(self.sides.rows)
        self.rows = Blocks.plan(self.each_row, max(tall, 1))
        wide = min(MOST_COLUMNS, SUMS_BYTES // (self.dtype.size * max(tall, 1)))
        while True:
            self.columns = Blocks.plan(columns, max(wide, LEAST_COLUMNS), self.lanes)
            if self.units >= ENOUGH_BLOCKS or wide <= LEAST_COLUMNS:
                break
            wide //= 2
        self.steps = self.sides.merged(product.depth)
        self.take_together(self.dtype.size * max(tall, 1) * self.columns.capacity)
        self.make_sums(tall, self.together * self.columns.capacity)
        is_long = product.depth.extent > BLOCK_STEPS <= 4 * self.steps[-1].extent
        source = self.sides.column_operand.source
        is_half = tall == 1 and source is not None and source[0].dtype.size == 2
        #: Steps that are added together.
        self.at_once = HALF_STEPS if is_half and product.depth.extent >= 2 * BLOCK_STEPS else STEPS
        self.adds = product.rules.multiplies and is_long
        self.part = self.k.scratch(max(tall, 1) * self.pitch, self.dtype) if self.adds else self.sums

    def fill_sums(self, rows: Bounds, columns: Bounds) -> None:
        k, zero = self.k, self.k.const(0, INDEX)
        self.start_sums(self.rows.elements(rows))

        def level(loops: list[Fused]) -> None:
            if len(loops) > 1:
                k.loop(loops[0], zero, k.const(loops[0].extent, INDEX), lambda _: level(loops[1:]))
                return
            inner = loops[0] if loops else Fused([])
            blocks = Blocks.plan([inner], BLOCK_STEPS, self.at_once)
            blocks.run(k, lambda steps: block(inner, blocks.first(k, steps), blocks.elements(steps)))

        def block(inner: Fused, first: Scalar, count: Scalar) -> None:
            """Some steps by themselves: sums of sums round less often than one long sum."""
            lines = self.rows.elements(rows) * self.pitch
            if self.adds:
                k.loop(None, zero, lines, lambda i: k.write(k.const(0, self.dtype), self.part, i))
            some = self.at_once
            whole = first + k.op("arith.divui", [count, k.const(some, INDEX)], INDEX) * some
            k.loop(None, first, whole, lambda d: self._add(inner, d, some, columns), step=some)
            k.loop(None, whole, first + count, lambda d: self._add(inner, d, 1, columns))
            if self.adds:
                k.loop(None, zero, lines, lambda i: k.write(k.read(self.sums, i) + k.read(self.part, i), self.sums, i))

        level(self.steps)

    def _add(self, depth: Fused, first: Scalar, count: int, columns: Bounds) -> None:
        """Add the products of some steps of the depth's innermost loop."""
        k, sides = self.k, self.sides
        places = [first + d for d in range(count)]
        left: list[list[Scalar]] = []
        for place in places:
            with k.at_position(depth, place):
                left.append([])
                unrolled(k, self.each_row, lambda: left[-1].append(sides.row_operand.read(k)))

        # Beside the products of one row the hardware keeps up, and only one row has several loops of columns.
        if count > 1 and len(left[0]) > 1:
            self._fetch(depth, places, columns)

        def column(c: Scalar) -> None:
            right = []
            for place in places:
                with k.at_position(depth, place):
                    right.append(sides.column_operand.read(k))
            for i in range(len(left[0])):
                at = c + i * self.pitch
                total = k.read(self.part, at)
                for row, y in zip(left, right):
                    total = sides.accumulate(k, total, row[i], y)
                k.write(total, self.part, at)

        self.columns.each(k, columns, column)

    def _fetch(self, depth: Fused, places: list[Scalar], columns: Bounds) -> None:
        """Ask for what later steps read of large arrays, which the hardware does not foresee."""
        k, count = self.k, self.columns.capacity
        loop = self.columns.loops[-1]
        for v, at in self.sides.column_operand.loads:
            index = linearize(at, v.shape)
            ahead = AHEAD * step_of(index, depth)
            known = v.owner is None and is_large(v.aval) and is_static(at)
            if not known or not ahead or not follows(index, loop):
                continue
            for place in places:
                with k.at_position(depth, place), k.at_position(loop, columns[0]):
                    prefetch(k, k.memory[v], k.index(index), ahead, count)
