"""Contractions by simdgroup matrices: tiles of the result, in registers as 8 by 8 matrices.

A threadgroup makes one tile of the result in steps along the contracted axes. While it multiplies one
pair of operand tiles in threadgroup memory, the next pair is on its way from device memory: into
registers first, then into the other half of threadgroup memory. Sums are float32. At the end they go
through threadgroup memory, because only there it is known which element is where, and from there
through the rest of the body to the outputs.
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
from .tiles import Tile, either

#: Rows and columns of a simdgroup matrix.
MATRIX = 8
#: Simdgroups of a threadgroup, down and across its tile.
DOWN, ACROSS = 2, 2
#: A tile has at least so many rows and columns.
SMALLEST = 32
#: Tiles are made smaller until there are so many threadgroups.
GROUPS = 64
#: Where threadgroups share the depth, each makes at least so many steps.
LEAST_STEPS = 16
#: Bytes that keep lines of threadgroup memory in different banks.
PADDING_BYTES = 16


def tile_size(gpu: Gpu, product: Product) -> tuple[int, int, int]:
    """Rows and columns of the tile that one threadgroup makes, and the depth of a step."""
    m, n, depth = gpu.tile
    rows, columns = product.rows.extent, product.columns.extent
    while m > SMALLEST and rows <= m // 2:
        m //= 2
    while n > SMALLEST and columns <= n // 2:
        n //= 2
    while max(m, n) > SMALLEST and -(-rows // m) * -(-columns // n) * product.batch.extent < GROUPS:
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
        self.threads = DOWN * ACROSS * gpu.simd
        self.tiles_down = -(-product.rows.extent // self.m)
        self.tiles_across = -(-product.columns.extent // self.n)
        self.groups = self.tiles_down * self.tiles_across * product.batch.extent
        self.down, self.across = self.m // DOWN // MATRIX, self.n // ACROSS // MATRIX
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
        self.simd_row, simd_column = split(k, k.simdgroup(), ACROSS, "", "")
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
        # The matrix type of kernel IR has float32 and float16.
        held = product.dtype if product.dtype is dtypes.float16 else compute_dtype(product.dtype)
        padding = PADDING_BYTES // held.size
        depth, threads = (product.depth, self.depth), self.threads
        self.lhs = Tile(k, "lhs", product.lhs, (product.rows, self.m), depth, threads, "depth", padding)
        self.rhs = Tile(k, "rhs", product.rhs, (product.columns, self.n), depth, threads, "free", padding)
        self.half = self.lhs.elements + self.rhs.elements
        self.stage_pitch = self.n + PADDING_BYTES // 4
        operands = self.half * (2 if self.several else 1)
        self.passes = 1 if held is dtypes.float32 else DOWN
        stage = self.m // self.passes * self.stage_pitch
        if self.passes == 1:
            memory = self.stage = k.shared(max(operands, stage), held, name="tiles")
        else:
            memory = k.shared(operands, held, stored=True, name="tiles")
            self.stage = k.shared(stage, dtypes.float32, name="stage")
        self.lhs.place(memory)
        self.rhs.place(memory, self.lhs.elements)

    def _corners(self) -> list[tuple[Tile, Scalar]]:
        return [(self.lhs, self.row), (self.rhs, self.column)]

    def _fetch(self, depth: Scalar, half: Scalar | None) -> list[Any]:
        """The tiles at `depth`: vectors are left in registers, single elements go to threadgroup memory."""
        for tile, first in self._corners():
            if not tile.vectors:
                tile.copy(first, depth, half)
        return [x for tile, first in self._corners() for x in tile.fetch(first, depth)]

    def _put(self, vectors: Sequence[Any], half: Scalar | None) -> None:
        self.lhs.put(vectors[: self.lhs.vectors], half)
        self.rhs.put(vectors[self.lhs.vectors :], half)

    def _bring(self, depth: Scalar, half: Scalar | None) -> None:
        self._put(self._fetch(depth, half), half)
        self.k.barrier()

    # Products

    def _step(self, step: Scalar, *sums: Any) -> list[Any]:
        """Multiply one half of threadgroup memory; fill the other one meanwhile."""
        k = self.k
        with k.named("next"):
            following = step + 1
        with k.named("this_half"):
            this = (step & 1) * self.half
        with k.named("other_half"):
            other = (following & 1) * self.half
        with k.named("depth"):
            depth = summed(k, self.first, following * self.depth)
        more = k.below(following, self.steps)
        vectors: list[Any] = []
        count = self.lhs.vectors + self.rhs.vectors
        if count:
            held = self.lhs.memory.aval.dtype
            zeros = [k.empty_vector(held, 4)] * count
            with k.named("next_values"):
                vectors = either(k, more, lambda: self._fetch(depth, other), zeros)
        else:
            k.when(more, lambda: self._fetch(depth, other))
        found = self._multiply(this, sums)
        self._put(vectors, other)
        k.barrier()
        return found

    def _multiply(self, half: Scalar | None, sums: Sequence[Any]) -> list[Any]:
        """Add the products of the tiles in one half of threadgroup memory."""
        def slice_of_depth(j: Scalar, *sums: Any) -> list[Any]:
            with self.k.named("inner"):
                at = j * MATRIX
            with self.k.named("left"):
                left = [self._matrix(self.lhs, "AOp", self.first_row, i, at, half) for i in range(self.down)]
            with self.k.named("right"):
                right = [self._matrix(self.rhs, "BOp", self.first_column, i, at, half) for i in range(self.across)]
            pairs = [(x, y) for x in left for y in right]
            return [
                self.k.emit("gpu.subgroup_mma_compute", [x, y, total], [total.type]).result
                for (x, y), total in zip(pairs, sums)
            ]

        return self.k.counted(self.depth // MATRIX, slice_of_depth, sums, unroll=True, carried="sum")

    def _matrix(self, tile: Tile, kind: str, free: Scalar, i: int, depth: Scalar, half: Scalar | None) -> Any:
        """One operand matrix, the i-th of those that the simdgroup has side by side."""
        k, ctx = self.k, self.k.context
        element = tile.memory.aval.dtype.mlir
        offset = tile.at(tile.offset(summed(k, free, i * MATRIX), depth), half)
        attrs = {"leadDimension": mlir.ir.IntegerAttr.get(mlir.ir.IndexType.get(ctx), tile.pitch)}
        if tile.along_depth != (kind == "AOp"):
            attrs["transpose"] = mlir.ir.UnitAttr.get(ctx)
        matrix = mlir.ir.Type.parse(f'!gpu.mma_matrix<{MATRIX}x{MATRIX}x{element}, "{kind}">', ctx)
        return k.emit("gpu.subgroup_mma_load_matrix", [tile.memory.memref, offset], [matrix], **attrs).result

    # Outputs

    def _store(self, sums: Sequence[Any]) -> None:
        """Sums through the rest of the body to the outputs; half of the tile's rows at a time if need be."""
        k = self.k

        def stage(first_row: Scalar) -> None:
            lead = mlir.ir.IntegerAttr.get(mlir.ir.IndexType.get(k.context), self.stage_pitch)
            places = [(i * MATRIX, j * MATRIX) for i in range(self.down) for j in range(self.across)]
            for total, (down, across) in zip(sums, places):
                line = times(summed(k, first_row, down), self.stage_pitch)
                operands = [total, self.stage.memref, summed(k, line, self.first_column, across)]
                k.emit("gpu.subgroup_mma_store_matrix", operands, [], leadDimension=lead)

        if self.passes == 1:
            stage(self.first_row)
            k.barrier()
            self._outputs(self.row, self.m)
            return

        def half(n: Scalar) -> None:
            k.when(self.simd_row.eq(n), lambda: stage(k.const(0, INDEX)))
            k.barrier()
            self._outputs(summed(k, self.row, n * (self.m // self.passes)), self.m // self.passes)
            k.barrier()

        k.counted(self.passes, half)

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
            ])  # fmt: skip
            at = summed(k, times(staged, self.stage_pitch), place)
            where(k, inside, lambda: self._neighbours(at, row, column, width))

        if rows > lines:
            k.counted(rows // lines, one)
        else:
            one(k.const(0, INDEX))

    def _neighbours(self, at: Scalar, row: Scalar, column: Scalar, width: int) -> None:
        k, product = self.k, self.product
        with k.at_position(product.rows, row):
            if width > 1:
                with k.named("sums"):
                    totals = k.load_vector(self.stage, at, width)
                self.epilogue.vector(product.columns, column, totals)
            else:
                with k.named("sum"):
                    total = k.read(self.stage, at)
                with k.at_position(product.columns, column):
                    self.epilogue.element(total)
