"""Contractions by simdgroup matrices: tiles of the result, in registers as 8 by 8 matrices.

A threadgroup makes one tile of the result in steps along the contracted axes. While it multiplies one
pair of operand tiles in threadgroup memory, the next pair is on its way from device memory: into
registers first, then into the other half of threadgroup memory, or, where there is no room for two halves,
into the same place. Sums are float32. At the end they go through threadgroup memory, because only there
it is known which element is where, and from there through the rest of the body to the outputs.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from smelt.backends.contraction import Product
from smelt.ir import dtypes, mlir
from smelt.ir.scalar import INDEX, Scalar, compute_dtype

from ...devices import Gpu
from ...kernel import GpuModule
from ..parts import split, times
from ..schedule import ScheduledKernel, ScratchPlan
from .positions import steps_between, summed, tile_order, where, within
from .split import epilogue_of
from .tiles import Tile

#: Rows and columns of a simdgroup matrix.
MATRIX = 8
#: A tile has at least so many rows and columns.
SMALLEST = 32
#: Where threadgroups share the depth, each makes at least so many steps.
LEAST_STEPS = 16
#: Depth of the products that are made one after the other: a tensor core of an NVIDIA GPU takes pairs of such pairs.
SLICE = 16
#: Bytes that keep lines of threadgroup memory in different banks.
PADDING_BYTES = 16


def tile_size(gpu: Gpu, product: Product) -> tuple[int, int, int]:
    """Rows and columns of the tile that one threadgroup makes, and the depth of a step."""
    m, n, depth = gpu.half_tile if product.lhs.dtype.size == 2 else gpu.tile
    rows, columns = product.rows.extent, product.columns.extent
    while m > SMALLEST and rows <= m // 2:
        m //= 2
    while n > SMALLEST and columns <= n // 2:
        n //= 2
    while max(m, n) > SMALLEST and -(-rows // m) * -(-columns // n) * product.batch.extent < gpu.tiles:
        m, n = (m // 2, n) if m >= n else (m, n // 2)
    return m, n, depth


def build_matrices(module: GpuModule, product: Product, scratch: ScratchPlan) -> list[ScheduledKernel]:
    kernel = Matrices(module, product, scratch)
    kernel.emit()
    return kernel.epilogue.finish("contract", kernel.groups * kernel.epilogue.shares, kernel.threads)


class Matrices:
    """The kernel of a product in simdgroup matrices."""

    def __init__(self, module: GpuModule, product: Product, scratch: ScratchPlan):
        gpu = module.gpu
        self.product = product
        self.m, self.n, self.depth = tile_size(gpu, product)
        down, across = gpu.half_simdgroups if product.lhs.dtype.size == 2 else gpu.simdgroups
        self.simdgroups_down = down = min(down, self.m // SMALLEST * 2)
        self.simdgroups_across = across = min(across, self.n // SMALLEST * 2)
        self.threads = down * across * gpu.simd
        self.tiles_down = -(-product.rows.extent // self.m)
        self.tiles_across = -(-product.columns.extent // self.n)
        self.groups = self.tiles_down * self.tiles_across * product.batch.extent
        self.down, self.across = self.m // down // MATRIX, self.n // across // MATRIX
        self.epilogue = epilogue_of(module, product, self.groups, self.depth, LEAST_STEPS * self.depth, scratch)
        self.k = self.epilogue.k
        self.several = self.epilogue.positions > self.depth  #: whether a threadgroup makes several steps

    def emit(self) -> None:
        k, product = self.k, self.product
        group, self.first, end = self.epilogue.share(k.group(), self.groups)
        row, column = tile_order(k, group, product.batch, self.tiles_down, self.tiles_across)
        with k.named("row"):
            self.row = times(row, self.m)
        with k.named("column"):
            self.column = times(column, self.n)
        self.simd_row, simd_column = split(k, k.simdgroup(), self.simdgroups_across, "", "")
        with k.named("simd_row"):
            self.first_row = self.simd_row * (self.down * MATRIX)
        with k.named("simd_column"):
            self.first_column = simd_column * (self.across * MATRIX)
        self._place_tiles()
        zero = k.const(0.0, dtypes.float32)
        kind = mlir.ir.Type.parse(f'!gpu.mma_matrix<{MATRIX}x{MATRIX}xf32, "COp">', k.context)
        sums = [
            k.emit("gpu.subgroup_mma_constant_matrix", [zero], [kind]).result
            for _ in range(self.down * self.across)
        ]  # fmt: skip
        self._bring(self.first, None)
        if self.several:
            self.steps = steps_between(k, self.first, end, self.depth)
            sums = k.counted(self.steps, self._step, sums, carried="sum")
        else:
            sums = self._multiply(None, sums)
            k.barrier()
        self._store(sums)

    # Operands

    def _place_tiles(self) -> None:
        """Threadgroup memory: two halves of both operands' tiles, and a stage for the sums."""
        k, product = self.k, self.product
        given = product.lhs.dtype
        held = given if given.size == 2 else compute_dtype(given)
        padding = PADDING_BYTES // held.size
        depth, threads = (product.depth, self.depth), self.threads
        self.lhs = Tile(k, "lhs", product.lhs, (product.rows, self.m), depth, threads, "depth", padding, held)
        self.rhs = Tile(k, "rhs", product.rhs, (product.columns, self.n), depth, threads, "free", padding, held)
        self.half = self.lhs.elements + self.rhs.elements
        self.stage_pitch = self.n + PADDING_BYTES // 4
        line = MATRIX * self.stage_pitch * 4  # of matrices
        room = k.gpu.threadgroup_bytes - line
        #: Whether threadgroup memory has room for the next step's tiles; else they wait in registers.
        self.twice = self.several and 2 * self.half * held.size <= room
        operands = self.half * (2 if self.twice else 1)
        if held is dtypes.float32:
            self.lines = self.down
            memory = self.stage = k.shared(max(operands, self.m * self.stage_pitch), held, name="tiles")
        else:
            fitting = (k.gpu.threadgroup_bytes - operands * held.size) // line
            self.lines = max(n for n in range(1, self.down + 1) if self.down % n == 0 and n <= fitting)
            memory = k.shared(operands, held, stored=True, name="tiles")
            self.stage = k.shared(self.lines * line // 4, dtypes.float32, name="stage")
        self.lhs.place(memory)
        self.rhs.place(memory, self.lhs.elements)
        self.matrices = memory.memref
        if held is dtypes.bfloat16:  # which upstream's type of matrices lacks: they stand as float16
            kind = mlir.ir.MemRefType(memory.memref.type)
            half = mlir.ir.F16Type.get(k.context)
            as_half = mlir.ir.MemRefType.get(kind.shape, half, memory_space=kind.memory_space, loc=k.location)
            self.matrices = k.emit("builtin.unrealized_conversion_cast", [memory.memref], [as_half]).result

    def _corners(self) -> list[tuple[Tile, Scalar]]:
        return [(self.lhs, self.row), (self.rhs, self.column)]

    def _fetch(self, depth: Scalar) -> list[Any]:
        """The vectors of the tiles at `depth`, in registers."""
        return [x for tile, first in self._corners() for x in tile.fetch(first, depth)]

    def _copy(self, depth: Scalar, half: Scalar | None) -> None:
        """The tiles at `depth` that are read element by element, to threadgroup memory."""
        for tile, first in self._corners():
            if not tile.vectors:
                tile.copy(first, depth, half)

    def _put(self, vectors: Sequence[Any], half: Scalar | None) -> None:
        self.lhs.put(vectors[: self.lhs.vectors], half)
        self.rhs.put(vectors[self.lhs.vectors :], half)

    def _bring(self, depth: Scalar, half: Scalar | None) -> None:
        self._copy(depth, half)
        self._put(self._fetch(depth), half)
        self.k.barrier()

    # Products

    def _step(self, step: Scalar, *sums: Any) -> list[Any]:
        """Multiply one half of threadgroup memory; fill the other one meanwhile."""
        k = self.k
        with k.named("next"):
            following = step + 1
        this: Scalar | None = None
        other: Scalar | None = None
        if self.twice:
            with k.named("this_half"):
                this = (step & 1) * self.half
            with k.named("other_half"):
                other = (following & 1) * self.half
        last = k.const(self.steps, INDEX) - 1 if isinstance(self.steps, int) else self.steps - 1
        with k.named("depth"):  # of the last step the same tiles once more, rather than a condition
            depth = summed(k, self.first, k.op("arith.minui", [following, last], INDEX) * self.depth)
        alone = [tile for tile, _ in self._corners() if not tile.vectors]
        more = k.below(following, self.steps) if alone else None
        vectors = self._fetch(depth)
        if more is not None and self.twice:
            k.when(more, lambda: self._copy(depth, other))
        found = self._multiply(this, sums)
        if not self.twice:
            k.barrier()
            if more is not None:
                k.when(more, lambda: self._copy(depth, None))
        self._put(vectors, other)
        k.barrier()
        return found

    def _multiply(self, half: Scalar | None, sums: Sequence[Any]) -> list[Any]:
        """Add the products of the tiles in one half of threadgroup memory."""
        k, across = self.k, range(self.across)
        pairs = [range(first, min(first + 2, self.down)) for first in range(0, self.down, 2)]
        deep = range(self._slice() // MATRIX)

        def slice_of_depth(j: Scalar, *sums: Any) -> list[Any]:
            with k.named("inner"):
                at = j * (len(deep) * MATRIX)
            # Two left matrices, and those of the depths after them: what a tensor core takes, next to each other.
            order = [(n, i) for pair in pairs for n in deep for i in pair]
            with k.named("left"):
                left = {(n, i): self._matrix(self.lhs, "AOp", self.first_row, i, at, n, half) for n, i in order}
            order = [(n, i) for i in across for n in deep]
            with k.named("right"):
                right = {(n, i): self._matrix(self.rhs, "BOp", self.first_column, i, at, n, half) for n, i in order}
            found = list(sums)
            for pair, (n, column) in ((pair, at) for pair in pairs for at in order):
                for row in pair:
                    total = row * self.across + column
                    operands = [left[n, row], right[n, column], found[total]]
                    found[total] = k.emit("gpu.subgroup_mma_compute", operands, [sums[total].type]).result
            return found

        return k.counted(self.depth // self._slice(), slice_of_depth, sums, unroll=True, carried="sum")

    def _slice(self) -> int:
        return MATRIX if self.lhs.memory.aval.dtype is dtypes.float32 else SLICE

    def _matrix(
        self, tile: Tile, kind: str, free: Scalar, i: int, depth: Scalar, n: int, half: Scalar | None
    ) -> Any:
        """One operand matrix: the i-th of those that the simdgroup has side by side, the n-th from a depth on."""
        k, ctx = self.k, self.k.context
        element = mlir.ir.MemRefType(self.matrices.type).element_type
        offset = tile.at(tile.offset(free, depth, (i * MATRIX, n * MATRIX)), half)
        attrs = {"leadDimension": mlir.ir.IntegerAttr.get(mlir.ir.IndexType.get(ctx), tile.pitch)}
        if tile.along_depth != (kind == "AOp"):
            attrs["transpose"] = mlir.ir.UnitAttr.get(ctx)
        matrix = mlir.ir.Type.parse(f'!gpu.mma_matrix<{MATRIX}x{MATRIX}x{element}, "{kind}">', ctx)
        return k.emit("gpu.subgroup_mma_load_matrix", [self.matrices, offset], [matrix], **attrs).result

    # Outputs

    def _store(self, sums: Sequence[Any]) -> None:
        """Sums through the rest of the body to the outputs; half of the tile's rows at a time if need be."""
        k = self.k

        def stage(first_row: Scalar, lines: range) -> None:
            lead = mlir.ir.IntegerAttr.get(mlir.ir.IndexType.get(k.context), self.stage_pitch)
            for i, j in ((i, j) for i in lines for j in range(self.across)):
                line = times(summed(k, first_row, (i - lines[0]) * MATRIX), self.stage_pitch)
                total, at = sums[i * self.across + j], summed(k, line, self.first_column, j * MATRIX)
                operands = [total, self.stage.memref, at]
                k.emit("gpu.subgroup_mma_store_matrix", operands, [], leadDimension=lead)

        if self.stage is self.lhs.memory:
            stage(self.first_row, range(self.down))
            k.barrier()
            self._outputs(self.row, self.m)
            return

        for first in range(0, self.down, self.lines):

            def part(n: Scalar, lines: range = range(first, first + self.lines)) -> None:
                k.when(self.simd_row.eq(n), lambda: stage(k.const(0, INDEX), lines))
                k.barrier()
                row = summed(k, self.row, n * (self.down * MATRIX), lines[0] * MATRIX)
                self._outputs(row, self.lines * MATRIX)
                k.barrier()

            k.counted(self.simdgroups_down, part)

    def _outputs(self, first_row: Scalar, rows: int) -> None:
        """Outputs of the staged rows, neighbouring threads on neighbouring columns."""
        k, product = self.k, self.product
        width = self.epilogue.width(product.columns)
        line, place = split(k, k.thread(), self.n // width, "", "")
        place = times(place, width)
        with k.named("out_column"):
            column = summed(k, self.column, place)
        lines = self.threads * width // self.n

        def one(i: Scalar) -> None:
            with k.named("line"):
                staged = summed(k, line, times(i, lines))
            with k.named("out_row"):
                row = summed(k, first_row, staged)
            inside = within(k, [
                (row, product.rows.extent, product.rows.extent % self.m != 0),
                (column, product.columns.extent, product.columns.extent % self.n != 0),
                (line, rows, rows < lines),
            ])  # fmt: skip
            at = summed(k, times(staged, self.stage_pitch), place)
            where(k, inside, lambda: self.epilogue.held(self.stage, at, row, column, width))

        if rows > lines:
            k.counted(rows // lines, one)
        else:
            one(k.const(0, INDEX))
