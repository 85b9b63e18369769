"""Attention: scores, their softmax and the weighted sum of values in tiles that stay in the caches of a core.

::

    for keys of a tile:
        scores = queries · keys; logits = what the body makes of them
        largest' = max(largest, max(logits)); weights = exp(logits - largest')
        total = total * exp(largest - largest') + Σ weights
        sums = sums * exp(largest - largest') + weights · values
    result = sums / total

Keys that a mask of positions hides from every row of a block are left out, but those of the first tile.

Rows of queries run in parallel. The tiles, and so the bits, depend on shapes alone.
"""

from __future__ import annotations

import math

from smelt.backends.attention import Attention, analyse_attention
from smelt.backends.lowering import Fused, always, divide, fuse_variables
from smelt.ir import dtypes
from smelt.ir.builder import Function
from smelt.ir.index import Index, linearize
from smelt.ir.kinds import Elementwise
from smelt.ir.scalar import INDEX, Scalar
from smelt.passes.kernels.analysis import collect_reads

from ..kernel import KernelModule, Memory
from ..loops import Split
from ..schedules import ScheduledKernel, start_kernel
from .blocks import Blocks, Bounds
from .panels import ENOUGH_BLOCKS
from .tiles import Tile, has_wide_registers, lanes_of, pitch_of, rows_of, store_outputs, up_to

#: Rows of queries of a block, at most and at least, and their bytes. With the tiles they lie on the stack, in 200 kB at
#: most: threads may have as little as 256. (Tiles of four times the size, 370 kB in all, were a tenth quicker.)
MOST_ROWS, LEAST_ROWS, ROWS_BYTES = 64, 32, 32 * 1024
#: Keys of a tile at most, and bytes of a tile of keys.
MOST_KEYS, TILE_BYTES = 64, 16 * 1024


def build_attention(module: KernelModule, name: str, body: Function) -> ScheduledKernel:
    """The kernel of a body that is attention."""
    return _Attention(module, name, analyse_attention(body)).build()


def _uses(attention: Attention) -> list[Index]:
    """Every index expression that the kernel computes from its loops."""
    product, numbers = attention.product, list[Index]()
    operands = (attention.queries, attention.keys, attention.values)
    roots = [(attention.softmax.logits, attention.place), *product.outputs]
    roots += [(operand.value, operand.access.place) for operand in operands]
    computed = (attention.scores, product.result)
    reads = collect_reads(product.body.ops, roots, numbers, stop=lambda v: v in computed)
    uses = [linearize(at, v.shape) for v in product.body.arguments for at in reads.get(v, ())]
    return [*uses, *(linearize(at, v.shape) for v, at in product.outputs), *numbers]


class _Attention:
    def __init__(self, module: KernelModule, name: str, attention: Attention):
        self.name, self.attention, self.product = name, attention, attention.product
        product = self.product
        self.k, self.outputs, self._lo, self._hi = start_kernel(module, name, product.body)
        self.dtype, self.lanes = dtypes.float32, lanes_of(dtypes.float32)
        uses = _uses(attention)

        def merged(group: Fused) -> list[Fused]:
            return fuse_variables(group.variables, uses)

        self.batch, features = merged(product.batch), merged(attention.features)
        self.height = rows_of(product.rows.extent)
        self.vectors = 2 if has_wide_registers() else 1
        self.width = self.lanes * self.vectors
        widest = max(attention.features.extent, product.columns.extent)
        size = min(MOST_ROWS, ROWS_BYTES // 4 // widest)
        while True:
            self.rows = Blocks.plan(merged(product.rows), max(self.height, size), self.height)
            if size <= LEAST_ROWS or self.units >= ENOUGH_BLOCKS:
                break
            size //= 2
        most = max(self.width, min(MOST_KEYS, TILE_BYTES // 4 // widest) // self.width * self.width)
        self.keys = Blocks.plan([product.depth], most, self.width)
        self.features = Blocks.plan(features, attention.features.extent)
        self.columns = Blocks.plan(merged(product.columns), product.columns.extent)
        self._make_tiles()

    def _make_tiles(self) -> None:
        k, attention, product = self.k, self.attention, self.product
        tall, keys = up_to(self.rows.capacity, self.height), up_to(self.keys.capacity, self.width)
        columns = up_to(self.columns.capacity, self.width)
        along = attention.queries.lies_along(attention.features, product.rows) is not False
        self.a = Tile(k, attention.queries, self.rows, tall, self.features, along, along)
        along = attention.keys.lies_along(attention.features, product.depth) is True
        self.b = Tile(k, attention.keys, self.keys, keys, self.features, False, along)
        along = attention.values.lies_along(product.depth, product.columns) is True
        self.c = Tile(k, attention.values, self.columns, columns, self.keys, False, along)
        self.score_pitch, self.sum_pitch = pitch_of(keys, self.dtype), pitch_of(columns, self.dtype)
        self.scores = k.scratch(tall * self.score_pitch, self.dtype)
        self.sums = k.scratch(tall * self.sum_pitch, self.dtype)
        self.largest, self.totals = (k.scratch(tall, self.dtype) for _ in range(2))
        self.tall, self.wide = tall, columns

    @property
    def units(self) -> int:
        """Blocks of rows, of all batches."""
        return math.prod(loop.extent for loop in self.batch) * self.rows.count

    def build(self) -> ScheduledKernel:
        """Emit the kernel."""
        k, body = self.k, self.product.body
        k.loop(None, self._lo, self._hi, self._unit)
        k.emit("func.return", [], [])
        return ScheduledKernel(self.name, body, Split(self.units), [*body.arguments, *body.returns])

    def _unit(self, at: Scalar) -> None:
        k = self.k
        at, row = divide(k, at, self.rows.count, bool(self.batch))
        for i, loop in reversed(list(enumerate(self.batch))):
            at, position = divide(k, at, loop.extent, i > 0)
            k.bind(loop, position)
        rows = self.rows.enter(k, row)
        whole = {blocks: blocks.enter(k, k.const(0, INDEX)) for blocks in (self.features, self.columns)}
        self.a.fill(rows, whole[self.features])
        self._rows(rows, whole)
        self.rows.each(k, rows, lambda r: self._finish(r, whole[self.columns]))

    def _rows(self, rows: Bounds, whole: dict[Blocks, Bounds]) -> None:
        """The sums of a block of rows."""
        k = self.k
        zero, nothing = k.const(0, INDEX), k.const(0, self.dtype)
        tall = self.rows.elements(rows)
        k.loop(None, zero, tall * self.sum_pitch, lambda i: k.write(nothing, self.sums, i))
        k.loop(None, zero, tall, lambda i: k.write(k.const(-math.inf, self.dtype), self.largest, i))
        k.loop(None, zero, tall, lambda i: k.write(nothing, self.totals, i))

        def tile(keys: Bounds) -> None:
            count = self.keys.elements(keys)
            self.b.fill(keys, whole[self.features])
            features = k.const(self.attention.features.extent, INDEX)
            scores = self.scores, self.score_pitch
            self._multiply(self.a.memory, self.a.strides, self.b, scores, tall, count, features)
            self.rows.each(k, rows, lambda r: self._softmax(r, keys))
            self.c.fill(whole[self.columns], keys)
            lines, columns = (self.score_pitch, 1), k.const(self.wide, INDEX)
            self._multiply(self.scores, lines, self.c, (self.sums, self.sum_pitch), tall, columns, count, True)

        self.keys.run(k, tile, self._seen(rows))

    def _seen(self, rows: Bounds) -> Bounds | None:
        """From which tile of keys to which key some row of a block sees any; None: all."""
        k, extent, word = self.k, self.product.depth.extent, dtypes.int64
        if self.keys.count == 1 or not self.attention.bounds:
            return None
        zero = k.const(0, INDEX)
        first, end = k.const(0, word), k.const(extent, word)
        for bound in self.attention.bounds:
            (sign,) = (c for a, c in bound.terms if a.args == ("k0",))
            rest = Index(bound.const, [(a, c) for a, c in bound.terms if a.args != ("k0",)])
            most, shift = k.scratch(1, word), max(0, -rest.lo)
            k.write(k.const(0, word), most, zero)

            def look(_: Scalar, rest: Index = rest + shift, most: Memory = most) -> None:
                k.write(k.maximum(k.read(most, zero), k.index(rest, word)), most, zero)

            self.rows.each(k, rows, look)
            found = k.read(most, zero) - shift
            if sign < 0:  # keys up to this one are seen
                end = k.minimum(end, k.maximum(found + 1, k.const(0, word)))
            else:  # keys from here on are
                first = k.maximum(first, k.minimum(-found, k.const(extent, word)))
        first, end = (k.op("arith.index_cast", [x], INDEX) for x in (first, end))
        step = k.const(self.keys.step, INDEX)
        return k.op("arith.muli", [k.op("arith.divui", [first, step], INDEX), step], INDEX), end

    def _span(self, keys: Bounds) -> Bounds:
        """The keys of a tile."""
        k = self.k
        whole = k.const(0, INDEX), k.const(self.product.depth.extent, INDEX)
        return keys if self.keys.stepped.variables else whole

    def _multiply(
        self, left: Memory, strides: tuple[int, int], right: Tile, result: tuple[Memory, int],
        rows: Scalar, columns: Scalar, steps: Scalar, add: bool = False,
    ) -> None:  # fmt: skip
        """result = left · right, or added to it, a few rows and vectors at a time in registers."""
        k, lanes, zero, (memory, pitch) = self.k, self.lanes, self.k.const(0, INDEX), result

        def inner(r: Scalar, c: Scalar) -> None:
            at = r * pitch + c
            places = [at + (i * pitch + j * lanes) for i in range(self.height) for j in range(self.vectors)]
            with k.vectors(lanes):
                start = [k.load_vector(memory, place) if add else k.const(0, self.dtype) for place in places]

                def step(d: Scalar, *sums: Scalar) -> list[Scalar]:
                    line = d * right.strides[1] + c
                    vectors = [k.load_vector(right.memory, line + j * lanes) for j in range(self.vectors)]
                    found = []
                    for i in range(self.height):
                        with k.vectors(0):
                            x = k.read(left, (r + i) * strides[0] + d * strides[1])
                        x = k.spread(x)
                        for j, y in enumerate(vectors):
                            found.append(self.product.rules.accumulate(k, sums[i * self.vectors + j], x, y))
                    return found

                for x, place in zip(k.for_(zero, steps, step, start), places):
                    k.store_vector(x, memory, place)

        def panel(c: Scalar) -> None:
            k.loop(None, zero, rows, lambda r: inner(r, c), step=self.height)

        k.loop(None, zero, columns, panel, step=self.width)

    def _softmax(self, row: Scalar, keys: Bounds) -> None:
        """Scores of a tile's row into weights; what came before is scaled to their largest."""
        k, softmax, loop = self.k, self.attention.softmax, self.product.depth
        first, last = self._span(keys)
        line, lowest = row * self.score_pitch, k.const(-math.inf, self.dtype)
        exp = self._exp

        def logit(i: Scalar, largest: Scalar) -> list[Scalar]:
            at = line + (i - first)
            score = k.read(self.scores, at)
            k.provided[self.attention.scores] = always(score)
            x = k.value(softmax.logits, self.attention.place)
            k.write(x, self.scores, at)
            return [k.maximum(largest, x)]

        (found,) = k.loop(loop, first, last, logit, [lowest])
        before = k.read(self.largest, row)
        largest = k.maximum(before, found)
        base = k.select(largest.eq(-math.inf), k.const(0, self.dtype), largest)  # of keys that are all masked

        def weight(i: Scalar, total: Scalar) -> list[Scalar]:
            at = line + (i - first)
            x = exp(k.read(self.scores, at) - base)
            k.write(x, self.scores, at)
            return [k.add_reassociating(total, x)]

        (total,) = k.loop(None, first, last, weight, [k.const(0, self.dtype)])
        scale = exp(before - base)
        k.write(k.read(self.totals, row) * scale + total, self.totals, row)
        k.write(largest, self.largest, row)
        if self.keys.count > 1:
            sums = row * self.sum_pitch

            def rescale(i: Scalar) -> None:
                k.write(k.read(self.sums, sums + i) * scale, self.sums, sums + i)

            k.loop(None, k.const(0, INDEX), k.const(self.wide, INDEX), rescale)

    def _exp(self, x: Scalar) -> Scalar:
        op = self.attention.softmax.exponentials
        self.k.source_dtype = self.k.digits(op)
        return op.rules(Elementwise).lower(self.k, x)

    def _finish(self, row: Scalar, columns: Bounds) -> None:
        k = self.k
        total = k.read(self.totals, row)

        def element(c: Scalar) -> None:
            store_outputs(k, self.product, self.outputs, lambda: k.read(self.sums, row * self.sum_pitch + c) / total)

        self.columns.each(k, columns, element)
