"""What kernels with tiles share: which operand gives the rows, blocks of the result, blocks of operands in the caches.

A tile holds a block of an operand converted to the dtype of the sums (float32 for half precision), in the order in
which it is multiplied. So an operand may lie in any order, be padded, or be an expression: it is computed block by
block, and its array never exists. The sums of a block of the result lie in a tile too, where what follows the
contraction reads them. Every sum is made by one thread, in an order that its shape alone decides: bits depend
neither on threads nor on the machine, but for products of bfloat16 where that adds two at once (`pairs`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace

import numpy as np

from smelt.backends.contraction import Operand, Product
from smelt.backends.lowering import Fused, divide, fuse_variables
from smelt.ir import dtypes, mlir
from smelt.ir.dtypes import DType
from smelt.ir.errors import KernelError
from smelt.ir.index import Access, Atom, Guard, Index, linearize, names_of
from smelt.ir.scalar import INDEX, Scalar, compute_dtype
from smelt.passes.kernels.analysis import collect_reads

from ..kernel import CpuKernel, KernelModule, Memory
from ..loops import Split
from ..schedules import ScheduledKernel, start_kernel
from .blocks import Blocks, Bounds

#: Bytes of a vector of sums.
VECTOR_BYTES = 64
LINE_BYTES = 64
#: Depth of a product that is short; how many rows take there as long as to turn columns that lie along it.
SHALLOW, TURNED = 256, 6


def lanes_of(dtype: DType) -> int:
    """Elements of a vector of sums."""
    return min(32, VECTOR_BYTES // compute_dtype(dtype).size)


def has_feature(name: str) -> bool:
    """Whether the processor has what NumPy calls so."""
    core = getattr(np, "_core", None) or np.core
    return bool(getattr(core._multiarray_umath, "__cpu_features__", {}).get(name))


def has_wide_registers() -> bool:
    """Whether a register holds a whole vector of sums, as with AVX-512. What fits into registers is made of fewer
    sums where it does not; each is the same."""
    return has_feature("AVX512F")


def rows_of(extent: int) -> int:
    """Rows of the inner kernel: as many as there are, or those that leave least over."""
    most = 8 if has_wide_registers() else 6
    return max(1, extent) if extent <= most else min(range(most, 3, -1), key=lambda n: -extent % n)


def up_to(n: int, multiple: int) -> int:
    """The next multiple from n on."""
    return -(-n // multiple) * multiple


def pitch_of(length: int, dtype: DType) -> int:
    """The length of a line in memory: an odd number of cache lines, so that neighbours do not collide in L1."""
    lanes = LINE_BYTES // dtype.size
    return (-(-length // lanes) | 1) * lanes


def addresses(product: Product) -> list[Index]:
    """Every index expression that a kernel computes from its loops."""
    operands = (product.lhs, product.rhs)
    roots = [*product.outputs, *((operand.value, operand.access.place) for operand in operands)]
    numbers: list[Index] = []
    reads = collect_reads(product.body.ops, roots, numbers, stop=lambda v: v is product.result)
    uses = [linearize(at, v.shape) for v in product.body.arguments for at in reads.get(v, ())]
    uses += [linearize(at, v.shape) for v, at in product.outputs]
    uses += [guard.index for operand in operands for guard in operand.access.guards]
    return [*uses, *numbers]


def runs_along(index: Index, loops: Sequence[Fused]) -> bool:
    """Whether an offset moves by one with the innermost of some loops."""
    if not loops or not loops[-1].variables:
        return False
    name, extent = loops[-1].variables[-1]
    return index.coefficient(Atom("var", (name,), 0, extent - 1)) == 1


def can_emit(trial: Callable[[KernelModule], object]) -> bool:
    """Whether a part of a kernel can be made: it is, for nobody, since some ops cannot be computed in vectors."""
    module = KernelModule()
    try:
        trial(module)
        module.mlir.operation.verify()
    except (KernelError, mlir.ir.MLIRError):
        return False
    return True


def store_outputs(k: CpuKernel, product: Product, outputs: Sequence[Memory], total: Callable[[], Scalar]) -> None:
    """The outputs where the loops stand, from the contraction's sum there."""
    k.provided[product.result] = lambda place: total()
    values = [k.value(v, at) for v, at in product.outputs]
    for x, memory, (_, at) in zip(values, outputs, product.outputs):
        k.store(x, memory, at)


@dataclass(frozen=True)
class Sides:
    """Which operand gives the rows of an inner kernel, and which its columns, along which it is wide."""

    product: Product
    swapped: bool

    @staticmethod
    def of(product: Product) -> Sides:
        """The sides with which inner kernels make fewest sums that nobody wants, and outputs lie along columns."""
        value, place = product.outputs[0]
        out = linearize(place, value.shape)
        both = [Sides(product, swapped) for swapped in (False, True)]
        return min(both, key=lambda s: (s._is_narrow(), s._padded(), not runs_along(out, s.merged(s.columns))))

    @property
    def row_operand(self) -> Operand:
        return self.product.rhs if self.swapped else self.product.lhs

    @property
    def column_operand(self) -> Operand:
        return self.product.lhs if self.swapped else self.product.rhs

    @property
    def rows(self) -> Fused:
        return self.product.columns if self.swapped else self.product.rows

    @property
    def columns(self) -> Fused:
        return self.product.rows if self.swapped else self.product.columns

    def merged(self, group: Fused) -> list[Fused]:
        """A group's loops: as few as walk through the arrays in even steps."""
        return fuse_variables(group.variables, addresses(self.product))

    @property
    def rows_along_depth(self) -> bool | None:
        """Whether rows lie along the depth in memory; None if it does not matter."""
        return self.row_operand.lies_along(self.product.depth, self.rows)

    @property
    def columns_along_depth(self) -> bool | None:
        """Whether columns lie along the depth in memory; None if it does not matter."""
        return self.column_operand.lies_along(self.product.depth, self.columns)

    def accumulate(self, k: CpuKernel, total: Scalar, x: Scalar, y: Scalar) -> Scalar:
        """A step of a sum, with an element of a row and one of a column."""
        return self.product.rules.accumulate(k, total, *((y, x) if self.swapped else (x, y)))

    @property
    def lanes(self) -> int:
        """Of a vector of columns: half as many as there may be where that is enough."""
        lanes = lanes_of(self.product.dtype)
        return lanes // 2 if self._is_shallow() and lanes < 4 * self.columns.extent <= 2 * lanes else lanes

    def _is_narrow(self) -> bool:
        """Whether a short sum has too few columns for vectors."""
        return self._is_shallow() and 2 * self.columns.extent < self.lanes

    def _is_shallow(self) -> bool:
        """Whether sums of numbers in memory are so short that to put together vectors along them takes longer than they
        do."""
        dtype, sources = self.product.dtype, (self.row_operand.source, self.column_operand.source)
        if dtype not in (dtypes.float32, dtypes.float64) or self.product.depth.extent > SHALLOW:
            return False
        return all(source is not None and source[0].dtype is dtype for source in sources)

    def _padded(self) -> int:
        """Products that are made, and what it takes to turn columns."""
        rows, columns = self.rows.extent, self.columns.extent
        turned = TURNED if self._is_shallow() and self.columns_along_depth else 0
        return (up_to(rows, rows_of(rows)) + turned) * up_to(columns, self.lanes)


class Tile:
    """Room for a block of an operand, in lines along one of its two groups of loops.

    Args:
        free: the operand's own loops; so many of their positions have room.
        along_depth: whether lines run along the depth.
        read_along_depth: whether the operand is read in that order. If its lines run across, blocks of it are
            transposed in registers.
        dtype: as what elements are held, if not as what they are computed in.
        kept: how many blocks have room, one behind the other.

    Attributes:
        strides: in memory, along the free loops and along the depth.
    """

    def __init__(
        self, k: CpuKernel, operand: Operand, free: Blocks, positions: int, depth: Blocks, along_depth: bool,
        read_along_depth: bool, dtype: DType | None = None, kept: int = 1,
    ):  # fmt: skip
        self.k, self.operand, self.free, self.depth = k, operand, free, depth
        self.read_along_depth = read_along_depth
        dtype = dtype or compute_dtype(operand.dtype)
        self.lanes = lanes_of(dtype)
        self.steps, positions = up_to(depth.capacity, self.lanes), up_to(positions, self.lanes)
        self.memory, self.strides = self._room(positions, dtype, along_depth, kept)
        self._size = self.memory.aval.size // kept
        self._first = k.const(0, INDEX)
        #: What is read where all guards hold, as in the middle of an image: longer runs lie beside each other there.
        self.inside = replace(operand, access=Access(operand.access.place))
        #: Along what the operand is read; and the same in as few loops as arrays take without guards.
        self.along = depth if read_along_depth else free
        uses = [linearize(at, v.shape) for v, at in operand.loads]
        inner = [v for loop in self.along.inner for v in loop.variables]
        self.runs = replace(self.along, inner=tuple(fuse_variables(inner, uses)))
        self.staged: tuple[Memory, tuple[int, int]] | None = None
        if read_along_depth and not along_depth and depth.capacity >= self.lanes:
            self.staged = self._room(positions, dtype, True)

    def _room(
        self, positions: int, dtype: DType, along_depth: bool, kept: int = 1
    ) -> tuple[Memory, tuple[int, int]]:  # fmt: skip
        lines, length = (positions, self.steps) if along_depth else (self.steps, positions)
        pitch = pitch_of(length, dtype)
        return self.k.scratch(kept * lines * pitch, dtype), (pitch, 1) if along_depth else (1, pitch)

    def use(self, block: Scalar) -> None:
        """Go on with the room of a block."""
        self._first = block * self._size

    def offset(self, free: Scalar, depth: Scalar) -> Scalar:
        """Where in the tile an element is."""
        return self._first + free * self.strides[0] + depth * self.strides[1]

    def fill(self, free: Bounds, depth: Bounds) -> None:
        """Compute the block of the operand between two positions of its loops, in the order in which it lies."""
        k = self.k
        memory, strides = self.staged or (self.memory, self.strides)
        start = k.const(0, INDEX) if self.staged is not None else self._first

        def element(i: Scalar, j: Scalar, operand: Operand) -> None:
            k.write(operand.read(k), memory, start + i * strides[0] + j * strides[1])

        along, bounds = self.along, depth if self.read_along_depth else free

        def read(i: Scalar, blocks: Blocks, bounds: Bounds, operand: Operand) -> None:
            blocks.each(k, bounds, lambda j: element(*((i, j) if self.read_along_depth else (j, i)), operand))

        def line(i: Scalar) -> None:
            read(i, along, bounds, self.operand)

        def whole_line(i: Scalar) -> None:
            read(i, self.runs, bounds, self.inside)

        def either(i: Scalar) -> None:
            is_whole = holds_along(k, self.operand.access.guards, along.variables)
            k.when(is_whole, lambda: whole_line(i))
            k.when(~is_whole, lambda: line(i))

        others, their_bounds = (self.free, free) if self.read_along_depth else (self.depth, depth)
        is_guarded = k.checks is None and may_hold_along(self.operand.access.guards, along.variables)
        others.each(k, their_bounds, either if is_guarded else line)
        if self.staged is not None:
            self._transpose(*self.staged, self.free.elements(free), self.depth.elements(depth))

    def _transpose(self, source: Memory, strides: tuple[int, int], positions: Scalar, steps: Scalar) -> None:
        """Lines along the depth into lines across it, a square of as many as a vector has lanes at a time."""
        k, lanes, zero = self.k, self.lanes, self.k.const(0, INDEX)

        def square(i: Scalar, j: Scalar) -> None:
            at, to = i * strides[0] + j, self.offset(i, j)
            with k.vectors(lanes):
                lines = [k.load_vector(source, at + n * strides[0]) for n in range(lanes)]
                for n, x in enumerate(k.transposed(lines)):
                    k.store_vector(x, self.memory, to + n * self.strides[1])

        def line(i: Scalar) -> None:
            k.loop(None, zero, steps, lambda j: square(i, j), step=lanes)

        k.loop(None, zero, positions, line, step=lanes)


@dataclass(frozen=True)
class Source:
    """An operand that is read where it lies: lines `pitch` elements apart, one element after the other in depth.

    Attributes:
        free: the operand's own loop.
    """

    k: CpuKernel
    memory: Memory
    index: Index
    free: Fused
    depth: Fused
    pitch: int

    @staticmethod
    def of(
        k: CpuKernel, operand: Operand, free: Sequence[Fused], depth: Sequence[Fused], dtype: DType
    ) -> Source | None:  # fmt: skip
        """An operand of sums of a dtype; None where it does not lie so."""
        if operand.source is None or operand.access.guards or k.checks is not None or len(free) != 1 or len(depth) != 1:
            return None
        value, index = operand.source
        if value.dtype is not dtype or any(atom.kind != "var" for atom in index.atoms()):
            return None
        pitch, step = (step_of(index, loop) for loop in (free[0], depth[0]))
        return Source(k, k.memory[value], index, free[0], depth[0], pitch) if pitch and step == 1 else None

    def lines(self, first: Scalar, count: int, depth: Scalar) -> list[Scalar]:
        """The offsets of `count` lines at a place of the depth; past the last line, that of the last line again."""
        k = self.k
        with k.at_position(self.free, k.const(0, INDEX)), k.at_position(self.depth, depth):
            base = k.index(self.index)
        last = k.const(self.free.extent - 1, INDEX)
        return [base + k.op("arith.minui", [first + i, last], INDEX) * self.pitch for i in range(count)]


def step_of(index: Index, loop: Fused) -> int:
    """How far an index moves with each step of a loop; 0 where that is not always as far."""
    steps = {(index.step(name) or 0) / loop.strides[name] for name, extent in loop.variables if extent > 1}
    step = next(iter(steps)) if len(steps) == 1 else 0
    return int(step) if step == int(step) else 0


def may_hold_along(guards: Sequence[Guard], variables: Sequence[tuple[str, int]]) -> bool:
    """Whether there are guards that may hold at once for all positions of some variables: none of them leaves more
    positions of its axis than that has."""
    extents = dict(variables)

    def span(index: Index) -> int:
        return sum(abs(step) * (extents.get(a.args[0], 1) - 1) for a, step in index.terms if a.kind == "var")

    return bool(guards) and all(span(guard.index) < guard.extent for guard in guards)


def holds_along(k: CpuKernel, guards: Sequence[Guard], variables: Sequence[tuple[str, int]]) -> Scalar:
    """Whether guards hold where the loops stand for all positions of some variables: where their indices are least and
    largest, unless these are no sums of the variables."""
    names = {name for name, _ in variables}
    found = k.const(True, dtypes.bool_)
    for guard in guards:
        steps = {a.args[0]: step for a, step in guard.index.terms if a.kind == "var" and a.args[0] in names}
        nested = [Index(0, [(a, 1)]) for a, _ in guard.index.terms if a.kind != "var"]
        if not names.isdisjoint(names_of(nested)):
            return k.const(False, dtypes.bool_)
        for is_end in (False, True):
            with ExitStack() as stack:
                for name, extent in variables:
                    if name in steps:
                        place = extent - 1 if (steps[name] > 0) == is_end else 0
                        stack.enter_context(k.at_position(Fused([(name, extent)]), k.const(place, INDEX)))
                at = k.index(guard.index)
            found = k.logical_and(found, at < guard.extent if is_end else at >= 0)
    return found


class TiledKernel:
    """A kernel that makes a block of the result at a time. Subclasses say how large blocks are, and what fills `sums`.

    Attributes:
        batch, rows, columns, depth: the loops; all but the batch's in blocks.
        sums: the tile of a block's sums, in lines along columns of length `pitch`.
        keeps_rows: whether `fill_rows` is to run before blocks of other rows than those before.
    """

    keeps_rows = False
    rows: Blocks
    columns: Blocks
    depth: Blocks
    sums: Memory

    def __init__(self, module: KernelModule, name: str, product: Product):
        self.name, self.product, self.sides = name, product, Sides.of(product)
        self.k, self.outputs, self._lo, self._hi = start_kernel(module, name, product.body)
        self.dtype = compute_dtype(product.dtype)
        self.lanes = lanes_of(product.dtype)
        self.batch = self.sides.merged(product.batch)

    @property
    def units(self) -> int:
        """Blocks of the result, of all batches."""
        return math.prod(loop.extent for loop in self.batch) * self.rows.count * self.columns.count

    def make_sums(self, tall: int, wide: int) -> None:
        """Room for the sums of a block."""
        self.pitch = pitch_of(wide, self.dtype)
        self.sums = self.k.scratch(tall * self.pitch, self.dtype)

    def fill_sums(self, rows: Bounds, columns: Bounds) -> None:
        """Compute the sums of a block."""
        raise NotImplementedError

    def build(self) -> ScheduledKernel:
        """Emit the kernel."""
        k, body = self.k, self.product.body
        if self.product.result.aval.size:
            self.each_unit()
        k.emit("func.return", [], [])
        return ScheduledKernel(self.name, body, Split(self.units), [*body.arguments, *body.returns])

    def each_unit(self) -> None:
        """One block of the result after the other."""
        self.k.loop(None, self._lo, self._hi, self._unit)

    def _unit(self, at: Scalar) -> None:
        k, unit = self.k, at
        at, column = divide(k, at, self.columns.count, True)
        at, row = divide(k, at, self.rows.count, bool(self.batch))
        for i, loop in reversed(list(enumerate(self.batch))):
            at, position = divide(k, at, loop.extent, i > 0)
            k.bind(loop, position)
        rows, columns = self.rows.enter(k, row), self.columns.enter(k, column)
        if self.keeps_rows:
            others = k.logical_or(unit.eq(self._lo), column.eq(k.const(0, INDEX)))
            k.when(others, lambda: self.fill_rows(rows))
        self.fill_sums(rows, columns)
        self.finish(rows, columns)

    def fill_rows(self, rows: Bounds) -> None:
        """Compute what is kept of a block's rows for all of their columns."""
        raise NotImplementedError

    def start_sums(self, tall: Scalar) -> None:
        """Sums of nothing, in `tall` lines."""
        k, start = self.k, self.k.const(0, self.dtype)
        k.loop(None, k.const(0, INDEX), tall * self.pitch, lambda i: k.write(start, self.sums, i))

    def finish(self, rows: Bounds, columns: Bounds) -> None:
        """The outputs of a block from its sums, in the order in which the first of them lies."""
        k = self.k
        value, place = self.product.outputs[0]
        out = linearize(place, value.shape)

        def element(r: Scalar, c: Scalar) -> None:
            store_outputs(k, self.product, self.outputs, lambda: k.read(self.sums, r * self.pitch + c))

        if runs_along(out, self.rows.loops) and not runs_along(out, self.columns.loops):
            self.columns.each(k, columns, lambda c: self.rows.each(k, rows, lambda r: element(r, c)))
        else:
            self.rows.each(k, rows, lambda r: self.columns.each(k, columns, lambda c: element(r, c)))
