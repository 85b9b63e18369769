"""Rows whose operands simdgroups keep in registers, while they go through what they sum over in tiles.

A threadgroup has a tile of rows, some strips of matrices each simdgroup. While these multiply the tiles that are in
threadgroup memory, the next ones are on their way from device memory. What they make of them is staged in threadgroup
memory, and goes from there through the rest of the body to the outputs.
"""

from __future__ import annotations

import itertools
import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from smelt.backends.contraction import Operand
from smelt.backends.lowering import Fused
from smelt.backends.memory import Memory
from smelt.ir import dtypes, mlir
from smelt.ir.dtypes import DType
from smelt.ir.scalar import INDEX, Scalar, compute_dtype

from ...devices import Gpu
from ...kernel import GpuKernel
from ..parts import power_of_two, split, times
from .epilogue import Epilogue
from .key_range import KeyRange
from .positions import summed, where, within
from .row_lanes import EXCHANGED, RowLanes, Shuffled, ThroughMemory
from .simd_matrices import MATRIX, OWN, STRIPS, Matrices
from .tiles import Tile

SIMDGROUPS = 4
#: Strips of matrices that a simdgroup has where there are rows for it and registers: each tile is read for all.
MANY_STRIPS = 2 * STRIPS
#: What a step sums over, where there is room for it.
TILE = 32
#: Features of rows that are brought to threadgroup memory at once, at most.
SOME_FEATURES = 64
#: Elements of a line of a tile, at least.
SHORTEST = 16
#: Columns of the result that are stored at once.
SOME_COLUMNS = 64
#: Bytes that keep lines of threadgroup memory in different banks.
PADDING_BYTES = 16


def line_of(n: int) -> int:
    """So many elements or more, which threads of a threadgroup bring to threadgroup memory line by line."""
    return max(SHORTEST, power_of_two(n))


def rounded_up(n: int, unit: int) -> int:
    return -(-n // unit) * unit


def held_as(dtype: DType) -> DType:
    """As what threadgroup memory and matrices hold an operand."""
    return dtype if dtype.size == 2 else compute_dtype(dtype)


def slice_of(dtype: DType) -> int:
    """Of how many elements products are made one after the other."""
    return MATRIX if held_as(dtype).size == 4 else 2 * MATRIX


class Half:
    """Threadgroup memory of one operand's tile, along what is summed and features: once, or twice."""

    def __init__(self, tile: Tile, twice: bool, least: int, name: str):
        k, held = tile.k, held_as(tile.operand.dtype)
        self.tile = tile
        self.memory = k.shared(max(tile.elements * (2 if twice else 1), least), held, stored=held.size == 2, name=name)
        tile.place(self.memory)
        self.matrices = self.memory.memref
        if held is dtypes.bfloat16:  # which upstream's type of matrices lacks: they stand as float16
            kind = mlir.ir.MemRefType(self.memory.memref.type)
            half = mlir.ir.F16Type.get(k.context)
            as_half = mlir.ir.MemRefType.get(kind.shape, half, memory_space=kind.memory_space, loc=k.location)
            self.matrices = k.emit("builtin.unrealized_conversion_cast", [self.memory.memref], [as_half]).result


class RowTiles(ABC):
    """A kernel that goes through tiles of what rows sum over.

    Attributes:
        strips: of matrices that a simdgroup has. m: rows of a threadgroup. n: what a step sums over, of `extent`.
        twice: whether threadgroup memory has room for the next step's tiles.
        in_turn: whether each of two tiles is on its way while the other is multiplied.
        halves: the tiles. seen: which of them, where they are those of several heads; `end` counts them then.
        row, simd_row: where a threadgroup begins, and in it a simdgroup.
    """

    k: GpuKernel
    matrices: Matrices
    lanes: RowLanes
    halves: list[Half]
    seen: KeyRange
    row: Scalar
    simd_row: Scalar

    def _share_rows(self, gpu: Gpu, rows: int, strips: int, columns: int) -> None:
        """How many rows threadgroups have, of which results have at most so many columns."""
        self.strips = strips
        self.rows_of_simdgroup, count = strips * MATRIX, SIMDGROUPS
        while count > 1 and rows <= (count // 2) * self.rows_of_simdgroup:
            count //= 2
        self.simdgroups, self.m, self.threads = count, count * self.rows_of_simdgroup, count * gpu.simd
        self.some_columns = min(columns, SOME_COLUMNS)
        self.stage_pitch = self.some_columns + PADDING_BYTES // 4
        #: elements of a simdgroup's own threadgroup memory
        self.area = max(MATRIX * self.stage_pitch, EXCHANGED if gpu.fragment is None else 0)

    def _share_depth(
        self, gpu: Gpu, extent: int, least: int, lines: Sequence[tuple[int, DType]], most: int = TILE,
        in_turn: bool = False,
    ) -> int:  # fmt: skip
        """How much a step sums over, whose tiles have lines of such lengths; the bytes that are left."""

        def room(n: int) -> int:
            return sum(rounded_up(n * (length + PADDING_BYTES // d.size) * d.size, 16) for length, d in lines)

        free = gpu.threadgroup_bytes - self.simdgroups * self.area * 4
        self.n, self.extent = most, extent
        while self.n > least and (room(self.n) > free or extent <= self.n // 2):
            self.n //= 2
        self.steps = -(-extent // self.n)
        fit = 2 * room(self.n) <= free
        self.in_turn = in_turn and self.steps > 1 and not (fit and self.n <= TILE)
        self.twice = self.steps > 1 and not self.in_turn and fit
        return free - room(self.n) * (2 if self.twice else 1)

    def _some_features(self, held: DType, line: int, left: int) -> int:
        """How many features of rows there is room for at once, where tiles of such lines come to lie later; sets how
        many elements that takes."""
        padding = PADDING_BYTES // held.size
        own = self.n * (line + padding) * (2 if self.twice else 1)
        found = min(line, SOME_FEATURES)
        while found > SHORTEST and self.m * (found + padding) > own + left // held.size:
            found //= 2
        self.least = self.m * (found + padding)
        return found

    def _half(self, name: str, operand: Operand, depth: Fused, features: Fused, line: int, least: int = 0) -> Half:
        """Memory of the tile of an operand, of `least` elements or more; a line of it has so many features."""
        padding = PADDING_BYTES // held_as(operand.dtype).size
        tile = Tile(
            self.k, name, operand, (depth, self.n), (features, line), self.threads, "depth", padding,
            held_as(operand.dtype),
        )  # fmt: skip
        return Half(tile, self.twice, least, name)

    def _place_own(self) -> None:
        """Threadgroup memory of simdgroups, and which elements of a matrix a lane has."""
        k = self.k
        self.own: Memory = k.shared(self.simdgroups * self.area, dtypes.float32, name="own")
        with k.named("own_first"):
            self.own_first = times(k.simdgroup(), self.area)
        fragment = k.gpu.fragment
        self.lanes = (
            ThroughMemory(self.matrices, self.own, self.own_first) if fragment is None
            else Shuffled(self.matrices, fragment, self.strips)
        )  # fmt: skip
        self.is_ragged = self.extent % self.n != 0

    # Matrices

    def _pairs(self) -> list[range]:
        """The strips, as tensor cores take them."""
        return [range(i, i + STRIPS) for i in range(0, self.strips, STRIPS)]

    def _of_rows(
        self, names: tuple[str, str], operand: Operand, rows: Fused, features: Fused, some: int, half: Half
    ) -> dict[tuple[int, int], Any]:
        """The matrices of an operand of the simdgroup's rows, by their places along the features and the rows.

        Args:
            names: of the operand, and of a matrix. some: features at once, in the memory of `half`.
        """
        k, count = self.k, rounded_up(features.extent, slice_of(operand.dtype))
        held = held_as(operand.dtype)
        tile = Tile(
            k, names[0], operand, (rows, self.m), (features, some), self.threads, "depth", PADDING_BYTES // held.size,
            held,
        )  # fmt: skip
        tile.place(half.memory)
        found = {}
        for first in range(0, count, some):
            depth = k.const(first, INDEX)
            if tile.vectors:
                tile.put(tile.fetch(self.row, depth), None)
            else:
                tile.copy(self.row, depth, None)
            k.barrier()
            along = min(some, count - first) // MATRIX
            for j in range(0, along, 2):  # pairs as tensor cores take them, one after the other
                for pair in self._pairs():
                    for n, i in itertools.product(range(j, min(j + 2, along)), pair):
                        at = tile.at(
                            tile.offset(summed(k, self.simd_row, i * MATRIX), k.const(n * MATRIX, INDEX)), None
                        )
                        with k.named(names[1]):
                            found[first // MATRIX + n, i] = self.matrices.load(
                                half.matrices, at, "AOp", tile.pitch, not tile.along_depth
                            )
            k.barrier()
        return found

    def _of_tile(self, half: Half, over: int, feature: int, summed_over: bool, other: Scalar | None) -> Any:
        """A matrix on the right: whether what steps sum over is its depth, or features are."""
        tile, k = half.tile, self.k
        at = tile.at(tile.offset(k.const(over * MATRIX, INDEX), k.const(feature * MATRIX, INDEX)), other)
        return self.matrices.load(half.matrices, at, "BOp", tile.pitch, tile.along_depth != summed_over)

    def _products(
        self, name: str, left: dict[tuple[int, int], Any], half: Half, features: Fused, step: Scalar | None
    ) -> dict[tuple[int, int], Any]:
        """Of matrices of rows and a tile, as matrices by strips and places along the tile."""
        k, other = self.k, self._half_of(half, step)
        zero = self.matrices.filled(k.const(0.0, dtypes.float32), "COp", dtypes.float32)
        found: dict[tuple[int, int], Any] = {}
        size = slice_of(half.tile.operand.dtype)
        across, deep = self.n // MATRIX, size // MATRIX
        for n in range(0, rounded_up(features.extent, size) // MATRIX, deep):
            with k.named(name):
                right = {
                    (j, d): self._of_tile(half, j, n + d, False, other) for j in range(across) for d in range(deep)
                }
            for j, pair in itertools.product(range(across), self._pairs()):
                for d, i in itertools.product(range(deep), pair):
                    operands = [left[n + d, i], right[j, d], found.get((i, j), zero)]
                    with k.named("score"):
                        found[i, j] = k.emit("gpu.subgroup_mma_compute", operands, [zero.type]).result
        return found

    def _add(
        self, name: str, weights: dict[tuple[int, int, int], Scalar], dtype: DType, half: Half, sums: Sequence[Any],
        step: Scalar | None,
    ) -> list[Any]:  # fmt: skip
        """Sums with the products of weights, a lane's own elements of matrices of `dtype`, and a tile."""
        k, other, found = self.k, self._half_of(half, step), list(sums)
        across, deep = len(sums) // self.strips, slice_of(half.tile.operand.dtype) // MATRIX
        for n in range(0, self.n // MATRIX, deep):
            with k.named("weight"):
                left = {
                    (d, i): self.matrices.made([weights[i, n + d, e] for e in range(OWN)], "AOp", dtype)
                    for d in range(deep)
                    for i in range(self.strips)
                }
            with k.named(name):
                right = {(j, d): self._of_tile(half, n + d, j, True, other) for j in range(across) for d in range(deep)}
            for j, pair in itertools.product(range(across), self._pairs()):
                for d, i in itertools.product(range(deep), pair):
                    at = i * across + j
                    operands = [left[d, i], right[j, d], found[at]]
                    found[at] = k.emit("gpu.subgroup_mma_compute", operands, [found[at].type]).result
        return found

    # Steps

    @abstractmethod
    def _attend(self, first: Scalar, step: Scalar | None, state: Sequence[Any]) -> list[Any]:
        """What follows from one step, whose tiles begin at `first`."""

    def _all_steps(self, seen: KeyRange, state: Sequence[Any]) -> list[Any]:
        """What is left of the state behind the steps through the tiles that are seen."""
        k = self.k
        if self.steps == 1:
            self._bring(k.const(0, INDEX), None, self.halves)
            return self._attend(k.const(0, INDEX), None, state)
        self.seen = KeyRange()
        first, end = seen.first, seen.end
        begin = None if first is None else k.op("arith.minui", [first, self._last()], INDEX)
        brought = k.const(0, INDEX) if begin is None else times(begin, self.n)
        if seen.heads > 1:
            with k.named("tiles"):
                end = k.const(seen.tiles, INDEX) if end is None else end
                count = end if first is None else k.op("arith.maxui", [end, first], INDEX) - first
                self.seen = replace(seen, end=count)
                first, begin, end = None, None, count * seen.heads
        halves = self.halves[:1] if self.in_turn else self.halves
        self._bring(brought, begin, halves)
        step = self._step_in_turn if self.in_turn else self._step
        return k.counted(self.steps if end is None else end, lambda i, *state: step(i, state), state, first=first)

    def _key(self, step: Scalar) -> Scalar:
        """Where a step's tile begins."""
        k, seen = self.k, self.seen
        if seen.heads == 1 or seen.end is None:
            return step * self.n
        with k.named("tile"):
            head = k.op("arith.divui", [step, seen.end], INDEX)
            tile = head * seen.tiles + (step - head * seen.end)
            return (tile if seen.first is None else tile + seen.first) * self.n

    def _bring(self, first: Scalar, step: Scalar | None, halves: Sequence[Half]) -> None:
        for half in halves:
            other = self._half_of(half, step)
            half.tile.put(self._begin(half, first, other), other)
        self.k.barrier()

    def _begin(self, half: Half, first: Scalar, other: Scalar | None) -> list[Any]:
        """Begins to bring a tile to threadgroup memory that nobody reads; what is to be put there later."""
        tile, zero = half.tile, self.k.const(0, INDEX)
        if tile.vectors and not self._is_direct(half):
            return tile.fetch(first, zero)
        (tile.bring if tile.vectors else tile.copy)(first, zero, other)
        return []

    def _is_direct(self, half: Half) -> bool:
        """Whether a tile's vectors go to threadgroup memory by themselves, while others are multiplied."""
        return self.k.gpu.copies_itself and (self.twice or self.in_turn) and half.tile.is_plain

    def _half_of(self, half: Half, step: Scalar | None) -> Scalar | None:
        return None if step is None or not self.twice else (step & 1) * half.tile.elements

    def _next_key(self, step: Scalar) -> tuple[Scalar, Scalar]:
        """The next step, and where it begins: of the last one the same tile once more, rather than a condition."""
        k, seen = self.k, self.seen
        with k.named("next"):
            following = step + 1
        with k.named("next_key"):
            last = self._last() if seen.heads == 1 or seen.end is None else seen.end * seen.heads - 1
            return following, self._key(k.op("arith.minui", [following, last], INDEX))

    def _step(self, step: Scalar, state: Sequence[Any]) -> list[Any]:
        """One step; the next one's tiles are on their way meanwhile."""
        k, zero = self.k, self.k.const(0, INDEX)
        following, key = self._next_key(step)
        fetched = [
            self._begin(half, key, self._half_of(half, following)) if half.tile.vectors else [] for half in self.halves
        ]

        def copy() -> None:
            for half in self.halves:
                if not half.tile.vectors:
                    half.tile.copy(key, zero, self._half_of(half, following))

        alone = any(not half.tile.vectors for half in self.halves)
        more = k.below(following, self.steps) if alone else None
        if more is not None and self.twice:
            k.when(more, copy)
        found = self._attend(self._key(step), step, state)
        if not self.twice:
            k.barrier()
            if more is not None:
                k.when(more, copy)
        for half, vectors in zip(self.halves, fetched):
            half.tile.put(vectors, self._half_of(half, following))
        k.barrier()
        return found

    def _step_in_turn(self, step: Scalar, state: Sequence[Any]) -> list[Any]:
        """One step: its second tile is on its way while the first is multiplied, then the next one's first."""
        self.brought = self._begin(self.halves[1], self._key(step), None)
        found = self._attend(self._key(step), step, state)
        self.halves[0].tile.put(self.brought, None)
        self.k.barrier()
        return found

    def _turn(self, step: Scalar | None) -> None:
        """Behind what a step does with the first tile, and before what it does with the second."""
        if not self.in_turn or step is None:
            return
        self.halves[1].tile.put(self.brought, None)
        self.k.barrier()
        _, key = self._next_key(step)
        self.brought = self._begin(self.halves[0], key, None)

    def _last(self) -> Scalar:
        return self.k.const(self.steps - 1, INDEX)

    # Results

    def _store(self, done: Sequence[Any], columns: int, epilogue: Epilogue) -> None:
        """Matrices, by strips and columns, through the rest of the body to the outputs."""
        k, across = self.k, columns // MATRIX
        for i in range(self.strips):
            for first in range(0, across, self.some_columns // MATRIX):
                count = min(self.some_columns // MATRIX, across - first)
                k.simdgroup_barrier()
                for j in range(count):
                    at = summed(k, self.own_first, j * MATRIX)
                    self.matrices.keep(done[i * across + first + j], self.own.memref, at, self.stage_pitch)
                k.simdgroup_barrier()
                self._outputs(epilogue, i * MATRIX, first * MATRIX, count * MATRIX)

    def _outputs(self, epilogue: Epilogue, first_row: int, first_column: int, columns: int) -> None:
        """Outputs of the staged rows of a simdgroup, neighbouring lanes on neighbouring columns."""
        k, product, simd = self.k, epilogue.product, self.k.gpu.simd
        width = epilogue.width(product.columns)
        per_line = columns // width
        items = MATRIX * per_line

        def one(i: Scalar) -> None:
            item = summed(k, k.lane(), times(i, simd))
            line, place = split(k, item, per_line, "", "")
            place = times(place, width)
            with k.named("out_row"):
                row = summed(k, self.row, self.simd_row, first_row, line)
            with k.named("out_column"):
                column = summed(k, place, first_column)
            inside = within(k, [
                (row, product.rows.extent, product.rows.extent % self.m != 0),
                (column, product.columns.extent, first_column + columns > product.columns.extent),
                (item, items, items % simd != 0),
            ])  # fmt: skip
            at = summed(k, self.own_first, times(line, self.stage_pitch), place)
            where(k, inside, lambda: epilogue.held(self.own, at, row, column, width))

        count = math.ceil(items / simd)
        if count > 1:
            k.counted(count, one)
        else:
            one(k.const(0, INDEX))
