"""Products of few rows with columns that lie beside each other inside of words, as of packed weights that are not
transposed: words are read where they are, in vectors, and each gives several vectors of columns, whose sums stay in L1.

::

    for depth, a few steps at once:
        for columns of the block, a vector of words at once:
            for p in elements of a word:
                for i in rows: for the steps d:
                    sum[i, p] = accumulate(sum[i, p], a[i, d], element p of the words at d)

What all elements of a word have in common, as a scale, is multiplied with a[i, d]; see `factors`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from smelt.backends.contraction import Product
from smelt.backends.lowering import Fused
from smelt.backends.plan import is_static
from smelt.ir.index import linearize
from smelt.ir.scalar import INDEX, Scalar

from ..kernel import KernelModule
from ..schedules import ScheduledKernel
from ..streaming import prefetch_line
from .blocks import Blocks, Bounds
from .depth_lanes import DepthLanes
from .elements import unrolled
from .expressions import FETCHED_BYTES
from .factors import Factors, is_not_finite
from .lines import LinesKernel
from .octets import provide_octets
from .tiles import Sides, can_emit, lanes_of, step_of, store_outputs

#: Rows of a block: sums of more leave little of L1 to columns. With more in all, these are better computed into a tile.
BLOCK_ROWS, FEW_ROWS = 4, 32
#: Rows of several loops, which are no blocks.
FEW_NESTED_ROWS = 8
#: Bytes of a block's sums, and vectors of words of a block, at least; as many blocks as any number of threads wants.
SUMS_BYTES, LEAST_WORDS, ENOUGH_BLOCKS = 16 * 1024, 2, 16
#: Steps of the depth that are made at once, and those that have sums of their own.
STEPS, BLOCK_STEPS = 4, 128


def suits_packed_lines(sides: Sides) -> bool:
    """Whether a product has few rows, and columns that vectors of words give."""
    product, operand = sides.product, sides.column_operand
    most = FEW_ROWS if len(sides.merged(sides.rows)) < 2 else FEW_NESTED_ROWS
    if sides.rows.extent > most or operand.access.guards or not operand.loads or not sides.columns.variables:
        return False
    lanes = DepthLanes.of(operand, sides.columns, lanes_of(product.dtype))
    if lanes is None or lanes.vectors < 2 or operand.lies_along(product.depth, sides.columns) is not False:
        return False
    return can_emit(lambda module: _PackedLines(module, "trial", product).trial())


def build_packed_lines(module: KernelModule, name: str, product: Product) -> ScheduledKernel:
    """The kernel of a product with few rows; see `suits_packed_lines`."""
    return _PackedLines(module, name, product).build()


class _PackedLines(LinesKernel):
    def __init__(self, module: KernelModule, name: str, product: Product):
        super().__init__(module, name, product)
        k, sides = self.k, self.sides
        cut = DepthLanes.of(sides.column_operand, sides.columns, self.lanes)
        assert cut is not None
        provide_octets(k, product, sides.column_operand)
        self.cut, self.each_row = cut, sides.merged(sides.rows)
        nested = len(self.each_row) > 1
        self.rows = Blocks.whole_of(self.each_row) if nested else Blocks.plan(self.each_row, BLOCK_ROWS)
        self.tall = max(1, self.rows.capacity)
        loops, step = [loop for loop, _ in cut.loops], cut.loops[-1][1] if cut.loops else 1
        self.each = cut.count * cut.vectors  # columns of a vector of words
        most = max(1, SUMS_BYTES // (self.each * self.tall * self.dtype.size))
        while True:
            self.columns = Blocks.plan(loops, most * step, step)
            if self.units >= ENOUGH_BLOCKS or most <= LEAST_WORDS:
                break
            most //= 2
        words = -(-self.columns.capacity // step)
        self.take_together(words * self.each * self.tall * self.dtype.size)
        self.words = words * self.together
        self.steps = sides.merged(product.depth)
        self.factors = Factors.of(product, sides.column_operand, cut.inside)
        self.shifts = [0] * cut.vectors
        self.make_sums(self.tall, self.words * self.each)
        self.part = k.scratch(self.tall * self.pitch, self.dtype)
        self.shared = k.scratch(self.tall * self.words * cut.count, self.dtype)

    def trial(self) -> None:
        """One vector of columns, wherever it is."""
        k, zero = self.k, self.k.const(0, INDEX)
        for loop in (*self.batch, *self.steps, *(loop for loop, _ in self.cut.loops)):
            k.bind(loop, zero)
        self.cut.each_inside(k, lambda n: self._columns())
        k.emit("func.return", [], [])

    def fill_sums(self, rows: Bounds, columns: Bounds) -> None:
        k = self.k
        self._first_row = self.rows.first(k, rows)
        self._multiply(columns)
        if self.factors is None:
            return

        def again() -> None:
            saved, self.factors = self.factors, None
            with k.rolled():
                self._multiply(columns)
            self.factors = saved

        k.when(is_not_finite(k, self.sums, k.const(self.tall * self.pitch, INDEX), self.lanes), again)

    def _multiply(self, columns: Bounds) -> None:
        k, zero = self.k, self.k.const(0, INDEX)
        self.start_sums(k.const(self.tall, INDEX))

        def level(loops: Sequence[Fused]) -> None:
            if len(loops) > 1:
                k.loop(loops[0], zero, k.const(loops[0].extent, INDEX), lambda _: level(loops[1:]))
                return
            inner = loops[0] if loops else Fused([])
            blocks = Blocks.plan([inner], BLOCK_STEPS, STEPS)
            blocks.run(k, lambda steps: block(inner, blocks.first(k, steps), blocks.elements(steps)))

        def block(inner: Fused, first: Scalar, count: Scalar) -> None:
            """Some steps by themselves: sums of sums round less often than one long sum."""
            nothing = k.const(0, self.dtype)
            for memory in (self.part, self.shared):
                size = k.const(memory.aval.size, INDEX)
                k.loop(None, zero, size, lambda i, memory=memory: k.write(nothing, memory, i))
            whole = first + k.op("arith.divui", [count, k.const(STEPS, INDEX)], INDEX) * STEPS
            k.loop(None, first, whole, lambda d: self._add(inner, d, STEPS, columns), step=STEPS)
            k.loop(None, whole, first + count, lambda d: self._add(inner, d, 1, columns))
            self._add_part()

        level(self.steps)

    def _add(self, depth: Fused, first: Scalar, count: int, columns: Bounds) -> None:
        """Add the products of some steps of the depth's innermost loop."""
        k = self.k
        places = [first + d for d in range(count)]
        left: list[list[Scalar]] = []
        for place in places:
            with k.at_position(depth, place):
                left.append(self._row_elements())
        with k.vectors(self.cut.count):
            spread = [[k.spread(x) for x in row] for row in left]

        def words(number: Scalar) -> None:
            if count == STEPS:
                self._fetch(depth, places)
            xs = self._with_factors(depth, places, number, spread)

            def element(n: int) -> None:
                right = []
                for place in places:
                    with k.at_position(depth, place):
                        column, self.shifts[n] = self._columns()
                        right.append(column)
                with k.vectors(self.cut.count):
                    for i in range(self.tall):
                        at = number * self.each + (n * self.cut.count) + i * self.pitch
                        total = k.load_vector(self.part, at)
                        for x, y in zip(xs, right):
                            total = self.sides.accumulate(k, total, x[i], y)
                        k.store_vector(total, self.part, at)

            self.cut.each_inside(k, element)

        self._each_words(columns, words)

    def _row_elements(self) -> list[Scalar]:
        """The elements of a block's rows where the loops of the depth stand; the last row's for rows beyond it."""
        k, found = self.k, list[Scalar]()
        if self.rows.count == 1:
            unrolled(k, self.each_row, lambda: found.append(self.sides.row_operand.read(k)))
            return found
        [loop], last = self.each_row, k.const(self.sides.rows.extent - 1, INDEX)
        for i in range(self.tall):
            at = self._first_row + i
            with k.at_position(loop, at if self.rows.are_whole else k.op("arith.minui", [at, last], INDEX)):
                found.append(self.sides.row_operand.read(k))
        return found

    def _fetch(self, depth: Fused, places: Sequence[Scalar]) -> None:
        """Ask for what the next steps of the depth are made of here."""
        k = self.k
        value, place = self.sides.column_operand.largest
        index = linearize(place, value.shape)
        ahead = STEPS * step_of(index, depth)
        if ahead > 0 and value.owner is None and value.aval.nbytes >= FETCHED_BYTES and is_static(place):
            self.cut.start_inside(k)
            for d in places:
                with k.at_position(depth, d), self.cut.vector(k):
                    prefetch_line(k, k.memory[value], k.index(index) + ahead, soon=False)

    def _with_factors(
        self, depth: Fused, places: Sequence[Scalar], number: Scalar, left: list[list[Scalar]]
    ) -> list[list[Scalar]]:  # fmt: skip
        """Elements of rows by what the elements of words have in common; what is added to these is summed up."""
        k, factors, found = self.k, self.factors, []
        if factors is None:
            return left
        self.cut.start_inside(k)
        offsets = []
        for place, row in zip(places, left):
            with k.at_position(depth, place), self.cut.vector(k):
                gain = factors.gain(k)
                found.append([x * gain for x in row])
                if factors.has_offset:
                    offsets.append(factors.offset(k))
        with k.vectors(self.cut.count):
            for i in range(self.tall if offsets else 0):
                at = (number + i * self.words) * self.cut.count
                total = k.load_vector(self.shared, at)
                for offset, row in zip(offsets, left):
                    total = k.fma(row[i], offset, total)
                k.store_vector(total, self.shared, at)
        return found

    def _add_part(self) -> None:
        """Add what some steps of the depth gave to the sums."""
        k, zero = self.k, self.k.const(0, INDEX)
        shared = self.factors is not None and self.factors.has_offset

        def words(number: Scalar) -> None:
            with k.vectors(self.cut.count):
                for i in range(self.tall):
                    common = k.load_vector(self.shared, (number + i * self.words) * self.cut.count) if shared else None
                    for n in range(self.cut.vectors):
                        at = number * self.each + (n * self.cut.count) + i * self.pitch
                        x = k.load_vector(self.part, at)
                        x = x * 2.0**-self.shifts[n] if self.shifts[n] else x
                        x = x if common is None else x + common
                        k.store_vector(k.load_vector(self.sums, at) + x, self.sums, at)

        k.loop(None, zero, k.const(self.words, INDEX), words)

    def _each_words(self, columns: Bounds, body: Callable[[Scalar], None]) -> None:
        """Run `body` at every vector of words of a block, with its number there."""
        k, steps = self.k, {id(loop): step for loop, step in self.cut.loops}
        loops = self.columns.loops

        def level(i: int, number: Scalar) -> None:
            if i == len(loops):
                body(number)
                return
            loop, step = loops[i], steps[id(loops[i])]
            whole = loop is not self.columns.stepped
            low, high = (k.const(0, INDEX), k.const(loop.extent, INDEX)) if whole else columns

            def vector(at: Scalar) -> None:
                here = k.op("arith.divui", [at - low, k.const(step, INDEX)], INDEX)
                level(i + 1, number * -(-loop.extent // step) + here)

            k.loop(loop, low, high, vector, step=step)

        level(0, k.const(0, INDEX))

    def _columns(self) -> tuple[Scalar, int]:
        """A vector of elements of columns, or of what differs in them and by which power of two it is too large."""
        k, operand = self.k, self.sides.column_operand
        with self.cut.vector(k):
            return self.factors.core(k) if self.factors else (k.value(operand.value, operand.access.place), 0)

    def finish(self, rows: Bounds, columns: Bounds) -> None:
        k = self.k

        def element(number: Scalar, n: Scalar, i: Scalar) -> None:
            at = i * self.pitch + number * self.each + n
            store_outputs(k, self.product, self.outputs, lambda: k.read(self.sums, at))

        def words(number: Scalar) -> None:
            self.rows.each(k, rows, lambda i: self.cut.each_element(k, lambda n: element(number, n, i)))

        self._each_words(columns, words)
