"""Products of bfloat16 by the instruction of AVX-512 that adds two products of them to a float32 in each lane.

Tiles hold two steps of the depth beside each other, the bits of both in a word; a depth that is odd ends with a zero.
The instruction takes subnormal operands for zero. They are rare, so tiles are looked through, and what one with such
elements gives is computed in float32.
"""

from __future__ import annotations

from smelt.backends.contraction import Operand, Product
from smelt.ir import dtypes, mlir
from smelt.ir.aval import Aval
from smelt.ir.scalar import INDEX, Scalar

from ..kernel import CpuKernel, Memory
from ..processor import flags
from .blocks import Blocks, Bounds
from .tiles import Tile, up_to

#: Less depth, and fewer rows, are not worth tiles of pairs; of what is computed there must be more rows.
SHORTEST_DEPTH, FEWEST_ROWS, COMPUTED_ROWS = 8, 4, 32
#: Elements of two lines that take turns at once, and the side of the squares of words that are turned.
LANES, SQUARE = 32, 16
#: Bits of absolute values, less one: those below are subnormal, and zero is above.
_SUBNORMALS = 0x7F


def has_bfloat16_pairs() -> bool:
    """Whether the processor multiplies pairs of bfloat16."""
    return {"avx512f", "avx512bw", "avx512vl", "avx512_bf16"} <= flags()


def suits_pairs(product: Product) -> bool:
    """Whether both operands are of bfloat16, or such arrays as float32, and sums of products are wanted."""
    both = product.lhs, product.rhs
    computed = any(o.source is None for o in both)
    return (
        has_bfloat16_pairs() and product.rules.multiplies and product.depth.extent >= SHORTEST_DEPTH
        and min(product.rows.extent, product.columns.extent) >= (COMPUTED_ROWS if computed else FEWEST_ROWS)
        and all((o.source[0] if o.source is not None else o).dtype is dtypes.bfloat16 for o in both)
    )  # fmt: skip


def multiply_pairs(k: CpuKernel, total: Scalar, x: Scalar, y: Scalar) -> Scalar:
    """A vector of sums, each with two products more, of words from `PairTile`."""
    ir = mlir.ir
    lanes = total.mlir.type.shape[0]
    kind = ir.VectorType.get([2 * lanes], ir.BF16Type.get(k.context), loc=k.location)
    pairs = [k.emit("vector.bitcast", [v], [kind]).result for v in (x, y)]
    k.context.get_dialect_descriptor("llvm")  # loads it
    found = k.emit(
        "llvm.call_intrinsic", [total, *pairs], [total.mlir.type],
        intrin=ir.StringAttr.get(f"llvm.x86.avx512bf16.dpbf16ps.{32 * lanes}", k.context),
        op_bundle_sizes=ir.DenseI32ArrayAttr.get([], k.context),
        operandSegmentSizes=ir.DenseI32ArrayAttr.get([3, 0], k.context),
    )  # fmt: skip
    return Scalar(k, found.result, total.dtype)


def multiply_in_float32(k: CpuKernel, total: Scalar, x: Scalar, y: Scalar) -> Scalar:
    """The same by float32's own instructions, which take subnormal elements for what they are."""

    def both(word: Scalar) -> tuple[Scalar, Scalar]:
        return k.bitcast(word & 0xFFFF0000, dtypes.float32), k.bitcast(word << 16, dtypes.float32)

    for a, b in zip(both(x), both(y)):
        total = k.fma(a, b, total)
    return total


class PairTile:
    """Room for a block of an operand of bfloat16, two steps of the depth in a word.

    Args:
        along_depth: whether the operand's lines run along the depth.
        across: whether lines of words have to run along the free loops, as those of columns do.

    Attributes:
        memory, strides: the words; along the free loops and along pairs of steps.
    """

    def __init__(
        self, k: CpuKernel, operand: Operand, free: Blocks, positions: int, depth: Blocks, along_depth: bool,
        across: bool,
    ):  # fmt: skip
        self.k, self.along_depth, self.turned = k, along_depth, along_depth and across
        self.tile = Tile(k, operand, free, positions, depth, along_depth, along_depth, dtypes.bfloat16)
        self.pitch = max(self.tile.strides)
        self.least = k.scratch(1, dtypes.uint16)
        words = self._words(self.tile.memory)
        if not along_depth:
            size = up_to(depth.capacity, 2) * self.pitch
            self.beside = k.scratch(size, dtypes.uint16)
            self.memory, self.strides = self._words(self.beside), (1, self.pitch)
        elif not across:
            self.memory, self.strides = words, (self.pitch // 2, 1)
        else:
            self.lines, wide = words, up_to(positions, SQUARE)
            self.memory = k.scratch(up_to(depth.capacity, 2 * SQUARE) // 2 * wide, dtypes.uint32)
            self.strides = (1, wide)

    def _words(self, memory: Memory) -> Memory:
        """The same memory, two elements in a word."""
        k = self.k
        aval = Aval((memory.aval.size // 2,), dtypes.uint32)
        address = k.emit("memref.extract_aligned_pointer_as_index", [memory.memref], [k.type(INDEX)]).result
        return Memory(k.at_address(k.convert(Scalar(k, address, INDEX), dtypes.int64), k.buffer_type(aval)), aval)

    def offset(self, free: Scalar, pair: Scalar) -> Scalar:
        """Where a word is."""
        return free * self.strides[0] + pair * self.strides[1]

    def has_subnormals(self) -> Scalar:
        """Whether the instruction would take elements of the block for zero."""
        return self.k.read(self.least, self.k.const(0, INDEX)) < self.k.const(_SUBNORMALS, dtypes.uint16)

    def fill(self, free: Bounds, depth: Bounds) -> None:
        """Compute the block of the operand between two positions of its loops, and make pairs of it."""
        k, tile = self.k, self.tile
        positions, steps = tile.free.elements(free), tile.depth.elements(depth)
        tile.fill(free, depth)
        zero, nothing = k.const(0, INDEX), k.const(0.0, dtypes.float32)

        def end(i: Scalar) -> None:
            k.write(nothing, tile.memory, tile.offset(i, steps))

        k.when((steps & 1).ne(0), lambda: k.loop(None, zero, positions, end))
        pairs = k.op("arith.divui", [steps + 1, k.const(2, INDEX)], INDEX)
        self._look_through(*((positions, steps) if self.along_depth else (steps, positions)))
        if not self.along_depth:
            k.loop(None, zero, pairs, lambda d: self._interleave(d, positions))
        elif self.turned:
            self._turn(positions, pairs)

    def _look_through(self, lines: Scalar, length: Scalar) -> None:
        """Find the least absolute value but zero, as bits less one."""
        k, zero = self.k, self.k.const(0, INDEX)
        bits = Memory(self.tile.memory.memref, Aval(self.tile.memory.aval.shape, dtypes.uint16))

        def element(i: Scalar, j: Scalar, least: Scalar) -> list[Scalar]:
            found = (k.read(bits, i * self.pitch + j) & 0x7FFF) - 1
            return [k.op("arith.minui", [least, found], dtypes.uint16)]

        def line(i: Scalar, least: Scalar) -> list[Scalar]:
            return k.for_(zero, length, lambda j, found: element(i, j, found), [least])

        most = k.const(0xFFFF, dtypes.uint16)
        k.write(k.for_(zero, lines, line, [most])[0], self.least, zero)

    def _interleave(self, pair: Scalar, positions: Scalar) -> None:
        """Two lines of the depth, their elements in turn."""
        k = self.k
        in_turn = [p // 2 + p % 2 * LANES for p in range(2 * LANES)]

        def vector(c: Scalar) -> None:
            at = pair * (2 * self.pitch) + c
            with k.vectors(LANES):
                lines = [k.load_bits(self.tile.memory, at + n * self.pitch).mlir for n in (0, 1)]
                for n in (0, 1):
                    both = k.shuffled(lines[0], lines[1], in_turn[n * LANES : (n + 1) * LANES])
                    k.store_stored(both, self.beside, at + c + n * LANES)

        k.loop(None, k.const(0, INDEX), positions, vector, step=LANES)

    def _turn(self, positions: Scalar, pairs: Scalar) -> None:
        """Lines along the depth into lines across it, a square at a time."""
        k, zero = self.k, self.k.const(0, INDEX)

        def square(i: Scalar, j: Scalar) -> None:
            at = i * (self.pitch // 2) + j
            with k.vectors(SQUARE):
                lines = [k.load_vector(self.lines, at + n * (self.pitch // 2)) for n in range(SQUARE)]
                for n, x in enumerate(k.transposed(lines)):
                    k.store_vector(x, self.memory, self.offset(i, j + n))

        k.loop(None, zero, positions, lambda i: k.loop(None, zero, pairs, lambda j: square(i, j), step=SQUARE),
               step=SQUARE)  # fmt: skip
