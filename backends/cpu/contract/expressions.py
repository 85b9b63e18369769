"""Products of few rows with columns that are computed, as from packed weights: what lies along the depth is read where
it is, in vectors, and the columns' elements never leave the registers.

::

    for depth, a vector of words at once:
        for p in elements of a word:
            for c in columns:
                y = element p of the words of column c
                for r in rows: sum[r, c] = accumulate(sum[r, c], row[r, p], y)

What all elements of a word have in common, as a scale, comes once behind them; see `factors`.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import TypeVar

from smelt.backends.contraction import Product
from smelt.backends.lowering import Fused
from smelt.backends.plan import is_static
from smelt.ir.index import linearize
from smelt.ir.scalar import INDEX, Scalar, compute_dtype
from smelt.passes.kernels.analysis import collect_reads

from ..kernel import KernelModule
from ..schedules import ScheduledKernel
from ..streaming import prefetch_line
from .blocks import Blocks, Bounds
from .depth_lanes import DepthLanes
from .factors import Factors, is_not_finite
from .grouped import Grouped, GroupedOffsets
from .octets import provide_octets
from .tiles import LINE_BYTES, Sides, TiledKernel, can_emit, has_wide_registers, lanes_of, pitch_of, step_of
from .word_pairs import Code, WordPairs, suits_word_pairs

Result = TypeVar("Result")

#: Rows of a block. Several blocks unpack numbers in words anew, which takes less than to bring them into a tile; with
#: more rows than this a tile is better: where registers are wide and hold the sums of many rows, or are not.
FEW_ROWS, MOST_ROWS, MOST_ROWS_NARROW = 8, 64, 16
#: Of more rows at once, sums fill the registers, and none are left for those of single words.
FACTORED_ROWS = 4
#: Columns of a block, at most and at least, and as many blocks as any number of threads is likely to want.
MOST_COLUMNS, LEAST_COLUMNS, ENOUGH_BLOCKS = 64, 8, 32
#: Bytes of a block's rows: on the stack, and in L2.
ROWS_BYTES = 128 * 1024
#: Fewer bytes stay in L1. More may be there or not: of many matrices one after the other, none is.
FETCHED_BYTES = 1 << 16
#: Bytes of columns between those that are multiplied and those that are asked for, at least: short columns are
#: multiplied before the next ones are there.
AHEAD_BYTES = 8192


def suits_expressions(sides: Sides) -> bool:
    """Whether a product's rows are few, and its columns computed from what vectors can be read of.
    """
    product, operand = sides.product, sides.column_operand
    plain = operand.source is not None and operand.source[0].dtype is compute_dtype(product.dtype)
    most = MOST_ROWS if has_wide_registers() else MOST_ROWS_NARROW
    if plain or sides.rows.extent > most or operand.access.guards or not sides.merged(sides.columns):
        return False
    cut = DepthLanes.of(operand, product.depth, lanes_of(product.dtype))
    if cut is None or (sides.rows.extent > FEW_ROWS and cut.vectors == 1):
        return False
    return can_emit(lambda module: _Expressions(module, "trial", product).trial())


def build_expressions(module: KernelModule, name: str, product: Product) -> ScheduledKernel:
    """The kernel of a product with few rows and computed columns; see `suits_expressions`."""
    return _Expressions(module, name, product, _is_paired(product)).build()


def _is_paired(product: Product) -> bool:
    """Whether numbers of words are multiplied in pairs."""
    sides, found = Sides.of(product), list[bool]()
    cut = DepthLanes.of(sides.column_operand, product.depth, lanes_of(product.dtype))
    if cut is None or not suits_word_pairs(product, sides, cut):
        return False
    can_emit(lambda module: found.append(_Expressions(module, "trial", product, True).trial()))
    return found == [True]


def _at_once(rows: int, columns: int, paired: bool) -> tuple[int, int]:
    """Rows and columns whose sums are in registers."""
    most = 4 if has_wide_registers() else 2
    tallest = FACTORED_ROWS if paired else 2 * most
    height = -(-rows // -(-rows // tallest))  # of about the same size
    return height, min(most, max(1, most * most // height), columns)


class _Expressions(TiledKernel):
    def __init__(self, module: KernelModule, name: str, product: Product, paired: bool = False):
        super().__init__(module, name, product)
        k, sides = self.k, self.sides
        depth = DepthLanes.of(sides.column_operand, product.depth, self.lanes)
        assert depth is not None
        self.cut = depth
        provide_octets(k, product, sides.column_operand)
        self.height, self.width = _at_once(sides.rows.extent, sides.columns.extent, paired)
        self.rows = Blocks.plan(sides.merged(sides.rows), FEW_ROWS, self.height)
        *outer, self.column = sides.merged(sides.columns)
        self.batch += outer  # as of experts, each with its own columns
        columns = min(MOST_COLUMNS, max(LEAST_COLUMNS, self.column.extent // ENOUGH_BLOCKS))
        self.columns = Blocks.plan([self.column], columns, self.width)
        tall = -(-self.rows.capacity // self.height) * self.height
        self.make_sums(tall, self.columns.capacity + self.width)
        # The depth in blocks: each position of the loops takes so many elements of a row.
        loops = [loop for loop, _ in depth.loops]
        step = depth.loops[-1][1] if loops else 1
        each = depth.count * depth.vectors // step
        dtype = compute_dtype(sides.row_operand.dtype)
        self.depth = Blocks.plan(loops, max(1, ROWS_BYTES // (each * dtype.size * tall)), step)
        self.line = pitch_of(self.depth.capacity * each, dtype)
        self.a = k.scratch(tall * self.line, dtype)
        self.stage = k.scratch(depth.count * depth.vectors, dtype)
        self.deals = depth.vectors & (depth.vectors - 1) == 0
        self.shifts = [0] * depth.vectors
        self.keeps_rows = self.depth.count == 1
        self.tall = tall
        few = depth.vectors > 1 and self.height <= FACTORED_ROWS
        self.factors = Factors.of(product, sides.column_operand, depth.inside) if few else None
        self.pairs: WordPairs | None = None
        if paired and self.factors is not None:
            self.pairs = WordPairs.of(k, product, sides, depth, self.factors)
        self.grouped: Grouped | None = None
        self.offsets: GroupedOffsets | None = None
        if self.factors is not None and self.depth.count == 1:
            self.offsets = GroupedOffsets.of(k, product, self.factors, depth, tall)
            has_offset = self.factors.has_offset and self.offsets is None
            self.grouped = Grouped.of(k, product, self.factors, depth, self.width, has_offset)
        if self.factors is not None and self.factors.has_offset:  # sums of a row's elements that meet one word
            self.met = k.scratch(tall * self.line // depth.vectors + self.lanes, dtype)

    def trial(self) -> bool:
        """One vector of a column, wherever it is; whether its elements are multiplied in pairs."""
        self._find_shifts()
        self.k.emit("func.return", [], [])
        return self.pairs is not None

    def _find_shifts(self) -> None:
        """By which powers of two the elements of a word are too large; nothing is made of what is computed for that."""
        k, zero = self.k, self.k.const(0, INDEX)
        for loop in (*self.batch, self.column, *(loop for loop, _ in self.cut.loops)):
            k.bind(loop, zero)
        if (pairs := self.pairs) is not None:
            codes = list[Code | None]()
            self.cut.each_inside(k, lambda n: codes.append(self._of_column(zero, pairs.code)))
            self.pairs = pairs.planned(codes)
        self.shifts = [0] * self.cut.vectors
        if self.pairs is None:
            self.shifts.clear()
            self.cut.each_inside(k, lambda n: self.shifts.append(self._column(zero)[1]))

    def each_unit(self) -> None:
        k = self.k
        if self.factors is not None:
            k.scopes.append({})
            self._find_shifts()
            k.scopes.pop()
        super().each_unit()

    def fill_sums(self, rows: Bounds, columns: Bounds) -> None:
        k, tall = self.k, self.k.const(self.tall, INDEX)
        self._multiply(rows, columns)
        if self.factors is None:
            return

        def again() -> None:
            saved = self.factors, self.pairs, self.keeps_rows
            self.factors, self.pairs, self.keeps_rows = None, None, False
            with k.rolled():
                self._multiply(rows, columns)
                self.factors, self.pairs, self.keeps_rows = saved
                if self.keeps_rows:
                    self.fill_rows(rows)

        unusable = is_not_finite(k, self.sums, tall * self.pitch, self.lanes)
        k.when(unusable if self.pairs is None else unusable | self.pairs.has_small(), again)

    def _multiply(self, rows: Bounds, columns: Bounds) -> None:
        k, zero = self.k, self.k.const(0, INDEX)
        self.start_sums(k.const(self.tall, INDEX))
        if self.pairs is not None and not self.keeps_rows:
            self.pairs.start()

        def block(depth: Bounds) -> None:
            if not self.keeps_rows:
                self._fill(rows, depth)
            first, tall = self.columns.first(k, columns), self.rows.elements(rows)
            last = first + self.columns.elements(columns)

            def row(r: Scalar) -> None:
                k.loop(None, first, last, lambda c: self._add(r, c, first, depth), step=self.width)

            k.loop(None, zero, tall, row, step=self.height)

        self.depth.run(k, block)

    def fill_rows(self, rows: Bounds) -> None:
        if self.pairs is not None:
            self.pairs.start()
        self._fill(rows, self.depth.whole(self.k))

    def _fill(self, rows: Bounds, depth: Bounds) -> None:
        """A block of the rows in the order in which it is multiplied."""
        k = self.k
        if self.tall > self.rows.capacity:  # rows that nobody wants: what happens to lie there may be slow to multiply
            nothing, end = k.const(0, self.a.aval.dtype), k.const(self.tall * self.line, INDEX)
            k.loop(None, k.const(self.rows.capacity * self.line, INDEX), end, lambda i: k.write(nothing, self.a, i))
        self.rows.each(k, rows, lambda r: self._fill_row(r, depth))

    def _fill_row(self, row: Scalar, depth: Bounds) -> None:
        k, line = self.k, row * self.line

        def words(at: Scalar, carried: Sequence[Scalar]) -> Sequence[Scalar]:
            parts = self._arranged(line + at)
            if self.factors is not None and self.factors.has_offset:
                with k.vectors(self.cut.count):
                    met = functools.reduce(k.add, parts)
                    if self.offsets is None and self._most_shift:
                        met = met * 2.0**self._most_shift
                    k.store_vector(met, self.met, self._word(line + at))
            return []

        self._walk(depth, words, [])
        if self.offsets is not None and self.factors is not None:
            self.offsets.add_up(row, self.met, self._word(line))

    def _arranged(self, at: Scalar) -> list[Scalar]:
        """Write what a row has for a vector of words to a place in its line, and return it as vectors."""
        k, cut, row = self.k, self.cut, self.sides.row_operand
        places = [k.const(n * cut.count, INDEX) for n in range(cut.vectors)]
        cut.each_element(k, lambda n: k.write(row.read(k), self.stage, n), by_word=self.deals)
        with k.vectors(cut.count):
            parts = [k.load_vector(self.stage, place) for place in places]
            parts = k.dealt(parts) if self.deals else parts
            for n, x in enumerate(parts if self.pairs is None else self.pairs.row(parts)):
                less = self._most_shift - self.shifts[n] if self.factors is not None else 0
                k.store_vector(x * 2.0**less if less else x, self.a, at + places[n])
        return parts

    @property
    def _most_shift(self) -> int:
        return max(self.shifts, default=0)

    def _word(self, at: Scalar) -> Scalar:
        """The place of a word of those whose elements are at a place in a line."""
        return self.k.op("arith.divui", [at, self.k.const(self.cut.vectors, INDEX)], INDEX)

    def _walk(
        self, depth: Bounds, body: Callable[[Scalar, Sequence[Scalar]], Sequence[Scalar]], carries: Sequence[Scalar]
    ) -> Sequence[Scalar]:  # fmt: skip
        """Go over a block of the depth, a vector of words at a time, with the place in a line of what belongs to it."""
        k, steps = self.k, {id(loop): step for loop, step in self.cut.loops}
        length = self.cut.count * self.cut.vectors
        loops = [self.depth.stepped, *self.depth.inner] if self.depth.stepped.variables else list(self.depth.inner)

        def level(i: int, carried: Sequence[Scalar]) -> Sequence[Scalar]:
            if i == len(loops):
                at, *rest = carried
                return [at + length, *body(at, rest)]
            loop = loops[i]
            whole = loop is not self.depth.stepped
            low, high = (k.const(0, INDEX), k.const(loop.extent, INDEX)) if whole else depth
            return k.loop(loop, low, high, lambda _, *inner: level(i + 1, inner), carried, steps[id(loop)])

        return level(0, [k.const(0, INDEX), *carries])[1:]

    def _add(self, r: Scalar, c: Scalar, first: Scalar, depth: Bounds) -> None:
        """Add the products of a few rows with a few columns over a block of the depth."""
        k = self.k
        pairs = [(i, j) for i in range(self.height) for j in range(self.width)]
        last = k.const(self.column.extent - 1, INDEX)
        columns = [k.op("arith.minui", [c + j, last], INDEX) for j in range(self.width)]

        def words(at: Scalar, before: Sequence[Scalar]) -> Sequence[Scalar]:
            self._fetch(columns)
            with k.vectors(self.cut.count):
                sums = list(before) if self.factors is None else [k.const(0, self.dtype)] * len(pairs)

            def element(n: int) -> None:
                place = n if self.pairs is None else self.pairs.place_of(n)
                if place is None:
                    return
                here = at + place * self.cut.count
                if self.pairs is None:
                    right = [self._column(j)[0] for j in columns]
                else:
                    column = functools.partial(self.pairs.column, place)
                    right = [self._of_column(j, column) for j in columns]
                multiply = functools.partial(self.sides.accumulate, k) if self.pairs is None else self.pairs.accumulate
                with k.vectors(self.cut.count):
                    left = [k.load_vector(self.a, (r + i) * self.line + here) for i in range(self.height)]
                    for p, (i, j) in enumerate(pairs):
                        sums[p] = multiply(sums[p], left[i], right[j])

            self.cut.each_inside(k, element)
            return sums if self.factors is None else self._with_factors(self.factors, r, columns, at, sums, before)

        self._fetch_shared(columns)
        if self.factors is not None and self.grouped is not None:
            self.grouped.fill(self.column, columns)
        with k.vectors(self.cut.count):
            start = [k.const(0, self.dtype)] * len(pairs)
            sums = self._walk(depth, words, start)
        offsets = self.offsets if self.factors is not None else None
        added = offsets.products(r, self.height, self.column, columns) if offsets is not None else []
        beside = bool(added) and offsets is not None and offsets.lanes == self.cut.count
        for p, ((i, j), x) in enumerate(zip(pairs, sums)):
            place = (r + i) * self.pitch + (c - first) + j
            with k.vectors(self.cut.count):
                if self.factors is not None and self._most_shift:
                    x = x * 2.0**-self._most_shift
                if beside:
                    x = x + added[p]
            total = k.add_lanes(x)
            total = total + k.add_lanes(added[p]) if added and not beside else total
            k.write(k.read(self.sums, place) + total, self.sums, place)

    def _fetch(self, columns: Sequence[Scalar]) -> None:
        """Ask for what the next columns are made of where these are: of several lines that are read at once, the
        hardware foresees none. L1 has no room for them beside these."""
        k = self.k
        value, place = self.sides.column_operand.largest
        index = linearize(place, value.shape)
        step = step_of(index, self.column)
        if step <= 0 or value.owner is not None or value.aval.nbytes < FETCHED_BYTES or not is_static(place):
            return
        line = LINE_BYTES // value.dtype.size
        lines = -(-step * self.cut.count * self.cut.vectors // (self.product.depth.extent * line))
        self.cut.start_inside(k)
        for j in columns:
            with k.at_position(self.column, j), self.cut.vector(k):
                first = k.index(index) + self._ahead * step
                for n in range(max(1, lines)):
                    prefetch_line(k, k.memory[value], first + n * line, soon=False)

    @property
    def _ahead(self) -> int:
        """How many columns ahead memory is asked for what they are made of."""
        value, place = self.sides.column_operand.largest
        size = self.width * step_of(linearize(place, value.shape), self.column) * value.dtype.size
        return self.width * max(1, -(-AHEAD_BYTES // max(1, size)))

    def _fetch_shared(self, columns: Sequence[Scalar]) -> None:
        """Ask for what the words of the next columns have in common, too: short lines of other arrays, which come from
        memory one by one otherwise."""
        k, depth = self.k, self.product.depth
        if self.factors is None:
            return
        reads = collect_reads(self.product.body.ops, self.factors.shared)
        self.cut.start(k)
        for value in self.product.body.arguments:
            for place in reads.get(value, ()):
                index, line = linearize(place, value.shape), LINE_BYTES // value.dtype.size
                step = step_of(index, self.column)
                if step <= 0 or value.aval.nbytes < FETCHED_BYTES or not is_static(place):
                    continue
                span = 1 + sum(step_of(index, Fused([v])) * (v[1] - 1) for v in depth.variables)
                ask = functools.partial(prefetch_line, k, k.memory[value], soon=False)
                for j in columns:
                    with k.at_position(self.column, j):
                        first = k.index(index) + self._ahead * step
                    k.loop(None, first, first + span, lambda i, ask=ask: ask(i), step=line)

    def _with_factors(
        self, factors: Factors, r: Scalar, columns: Sequence[Scalar], at: Scalar, sums: Sequence[Scalar],
        before: Sequence[Scalar],
    ) -> Sequence[Scalar]:  # fmt: skip
        """The sums before and those of a vector of words by what these have in common, too large by a power of two."""
        k, found = self.k, list(before)
        gains, offsets, has_offset = [], [], factors.has_offset and self.offsets is None
        if self.grouped is not None:
            gains = [self.grouped.read(self.grouped.gains, j) for j in range(self.width)]
            if self.grouped.offsets is not None:
                offsets = [self.grouped.read(self.grouped.offsets, j) for j in range(self.width)]
        self.cut.start_inside(k)
        for j in columns if self.grouped is None else ():
            with k.at_position(self.column, j), self.cut.vector(k):
                gains.append(factors.gain(k))
                if has_offset:
                    offsets.append(factors.offset(k))
        with k.vectors(self.cut.count):
            for p, x in enumerate(sums):
                found[p] = k.fma(x, gains[p % self.width], found[p])
            for i in range(self.height if has_offset else 0):
                met = k.load_vector(self.met, self._word((r + i) * self.line + at))
                for p, offset in enumerate(offsets, i * self.width):
                    found[p] = k.fma(met, offset, found[p])
        return found

    def _column(self, at: Scalar) -> tuple[Scalar, int]:
        """A vector of elements of a column, or of what differs in them and by which power of two it is too large."""
        k, operand, factors = self.k, self.sides.column_operand, self.factors
        if factors is not None:
            return self._of_column(at, lambda: factors.core(k))
        return self._of_column(at, lambda: (k.value(operand.value, operand.access.place), 0))

    def _of_column(self, at: Scalar, what: Callable[[], Result]) -> Result:
        """What is computed where the loops stand, in a column, of as many lanes as words."""
        with self.k.at_position(self.column, at), self.cut.vector(self.k):
            return what()
