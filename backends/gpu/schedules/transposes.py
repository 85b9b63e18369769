"""The `transpose` schedule: maps in which one access runs along another loop than the innermost.

A threadgroup makes a block of both loops. What runs along the outer of the two is read block by block into
threadgroup memory, along its own direction, and taken out along the other. Where the block's mirror image
needs the same data (x + xᵀ), the two are neighbours in the grid, so that one finds the other's in the cache.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

from smelt.backends.lowering import Coordinates, Fused, divide
from smelt.backends.memory import Memory
from smelt.backends.plan import Plan, always_inside, crosses
from smelt.ir import dtypes
from smelt.ir.builder import Value
from smelt.ir.index import linearize
from smelt.ir.scalar import INDEX, Scalar, compute_dtype

from ..kernel import GpuKernel, GpuModule, vector_offset
from .parts import each_group, split
from .schedule import ScheduledKernel, body_flops, bytes_read, bytes_written, source_lines, start_kernel

#: Rows and columns of a block, where threadgroup memory has room; one column more keeps its columns in
#: different banks.
BLOCKS = (64, 32)
THREADS = 256
WIDTH = 4

Access = tuple[Value, Coordinates]


def build_blocks(module: GpuModule, plan: Plan, loops: Sequence[Fused], across: int) -> ScheduledKernel:
    """A map in blocks of the loops `across` and the last."""
    body = plan.body
    k, _, outputs = start_kernel(module, body)
    rows, columns = loops[across], loops[-1]
    outer = [*loops[:across], *loops[across + 1 : -1]]
    staged = [
        (v, at) for v, at in plan.loads if always_inside(v, at) and crosses(linearize(at, v.shape), rows, columns)
    ]
    block, staged = _fit(k, staged)
    kernel = _Blocks(k, plan, rows, columns, staged, outputs, block)
    height, width = -(-rows.extent // block), -(-columns.extent // block)
    mirrored = height == width and any(u is v for u, _ in staged for v, at in plan.loads if (u, at) not in staged)
    groups, at_block = _mirrored(k, height) if mirrored else _row_by_row(k, height, width)
    batches = math.prod(loop.extent for loop in outer)

    def make(at: Scalar) -> None:
        rest, at = divide(k, at, groups, bool(outer))
        for i, fused in reversed(list(enumerate(outer))):
            rest, position = divide(k, rest, fused.extent, i > 0)
            k.bind(fused, position)
        at_block(at, kernel.emit)

    count = min(k.gpu.groups, groups * batches)
    if all(v.aval.size for v in body.returns):
        each_group(k, groups * batches, count, make)
    k.finish(
        "transpose", (max(count, 1), 1, 1), (THREADS, 1, 1),
        bytes_read(plan), bytes_written(body), body_flops(body), source_lines(body.ops),
    )  # fmt: skip
    return ScheduledKernel(k.name, [*body.arguments, *body.returns])


def _fit(k: GpuKernel, staged: Sequence[Access]) -> tuple[int, list[Access]]:
    """The size of a block, and what of `staged` has room in threadgroup memory."""
    for block in BLOCKS:
        sizes = [block * (block + 1) * max(compute_dtype(v.dtype).size, 4) for v, _ in staged]
        if sum(sizes) <= k.gpu.threadgroup_bytes:
            return block, list(staged)
    return BLOCKS[-1], list(staged[: k.gpu.threadgroup_bytes // max(sizes)])


def _row_by_row(k: GpuKernel, height: int, width: int) -> tuple[int, Callable[..., None]]:
    def at_block(at: Scalar, then: Callable[..., None]) -> None:
        then(*divide(k, at, width))

    return height * width, at_block


def _mirrored(k: GpuKernel, n: int) -> tuple[int, Callable[..., None]]:
    """All blocks of a square of n × n, each followed by its mirror image; those on the diagonal once.

    Pairs (i, j) with j <= i are numbered in rows of n + 1, which hold rows r and n - 1 - r of the triangle
    together (of n even; else there is one row more).
    """
    even = n + n % 2

    def at_block(at: Scalar, then: Callable[..., None]) -> None:
        pair, second = split(k, at, 2, "pair", "second")
        r, c = split(k, pair, even + 1, "triangle_row", "triangle_column")
        upper = k.op("arith.cmpi", [c, r], dtypes.bool_, predicate=k.attr("7 : i64"))  # unsigned <=
        with k.named("block_row"):
            i = k.select(upper, r, k.const(even - 1, INDEX) - r)
        with k.named("block_column"):
            j = k.select(upper, c, c - r - 1)
        with k.named("mirrored"):
            swapped = second.eq(1)
        wanted = ~k.logical_and(swapped, i.eq(j))
        if even != n:
            wanted = k.logical_and(wanted, k.below(i, n))
        k.when(wanted, lambda: then(k.select(swapped, j, i), k.select(swapped, i, j)))

    return even * (even + 1), at_block


class _Blocks:
    """Emits one block."""

    def __init__(
        self, k: GpuKernel, plan: Plan, rows: Fused, columns: Fused,
        staged: Sequence[Access], outputs: Sequence[Memory], block: int,
    ):  # fmt: skip
        self.k, self.plan, self.rows, self.columns, self.block = k, plan, rows, columns, block
        self.tiles = [(v, at, k.shared(block * (block + 1), v.dtype, name=f"tile_{i}"))
                      for i, (v, at) in enumerate(staged)]  # fmt: skip
        self.targets = [(m, plan.places[v]) for v, m in zip(plan.body.returns, outputs)]
        direct = [(v, at) for v, at in plan.loads if (v, at) not in staged and always_inside(v, at)]
        self.direct = [x for x in direct if self._vectors([x], columns)]
        along = [(v, plan.places[v]) for v in plan.body.returns]
        self.vectors = self._vectors(along, columns) and self._vectors(staged, rows)

    def _vectors(self, accesses: Sequence[Access], loop: Fused) -> bool:
        """Whether all of them can be read or written WIDTH elements at a time along `loop`."""
        return loop.extent % WIDTH == 0 and all(
            v.dtype.kind != "c" and v.dtype.size <= 4 and vector_offset(linearize(at, v.shape), loop, WIDTH)
            for v, at in accesses
        )

    def emit(self, top: Scalar, left: Scalar) -> None:
        """The block in row `top` and column `left` of blocks."""
        k, width = self.k, WIDTH if self.vectors else 1
        with k.named("top"):
            self.top = top * self.block
        with k.named("left"):
            self.left = left * self.block
        across = self.block // width  # threads along a line of the block
        lines = THREADS // across
        line, place = split(k, k.thread(), across, "line", "place")
        with k.named("place"):
            place = place * width
        rounds = self.block // lines
        # What runs along the columns is fetched together with the tiles: more loads under way at once.
        self.held = [(v, at, k.thread_array(rounds * width, v.dtype)) for v, at in self.direct] if self.vectors else []
        if self.held:
            k.unrolled(rounds, lambda n: self._fetch(line + n * lines, place, n * width))
        if self.tiles:
            k.barrier()
            k.unrolled(rounds, lambda n: self._load(place, line + n * lines, width))
            k.barrier()
        k.unrolled(rounds, lambda n: self._store(line + n * lines, place, width, n * width))

    def _within(self, i: Scalar, j: Scalar, then: Callable[[Scalar, Scalar], Any]) -> None:
        """Run ``then(row, column)`` where row i and column j of the block are inside of the loops."""
        k, condition = self.k, None
        row, column = self.top + i, self.left + j
        if self.rows.extent % self.block:
            condition = k.below(row, self.rows.extent)
        if self.columns.extent % self.block:
            more = k.below(column, self.columns.extent)
            condition = more if condition is None else k.logical_and(condition, more)

        def run() -> None:
            then(row, column)

        run() if condition is None else k.when(condition, run)

    def _load(self, i: Scalar, j: Scalar, width: int) -> None:
        """Bring elements i … i + width - 1 of column j into the tiles."""
        k = self.k

        def copy(row: Scalar, column: Scalar) -> None:
            with k.at_position(self.rows, row), k.at_position(self.columns, column):
                for v, at, tile in self.tiles:
                    offset = j * (self.block + 1) + i
                    if width == 1:
                        k.write(k.load(v, at), tile, offset)
                        continue
                    vector = k.load_vector(k.memory[v], k.index(linearize(at, v.shape)), width)

                    k.unrolled(width, functools.partial(self._put, vector, v, tile, offset))

        self._within(i, j, copy)

    def _fetch(self, i: Scalar, j: Scalar, first: Scalar) -> None:
        """Hold elements j … j + WIDTH - 1 of row i of what runs along the columns."""
        k = self.k

        def copy(row: Scalar, column: Scalar) -> None:
            with k.at_position(self.rows, row), k.at_position(self.columns, column):
                for v, at, memory in self.held:
                    vector = k.load_vector(k.memory[v], k.index(linearize(at, v.shape)), WIDTH)
                    k.unrolled(WIDTH, functools.partial(self._put, vector, v, memory, first))

        self._within(i, j, copy)

    def _put(self, vector: Any, v: Value, tile: Memory, offset: Scalar, n: Scalar) -> None:
        self.k.write(self.k.extract(vector, n, v.dtype), tile, offset + n)

    def _store(self, i: Scalar, j: Scalar, width: int, first: Scalar) -> None:
        """Compute elements j … j + width - 1 of row i."""
        self._within(i, j, lambda row, column: self._compute(i, j, row, column, width, first))

    def _compute(self, i: Scalar, j: Scalar, row: Scalar, column: Scalar, width: int, first: Scalar) -> None:
        k = self.k

        def values(n: Scalar | None) -> list[Scalar]:
            at = j if n is None else j + n
            for v, place, tile in self.tiles:
                k.scopes[-1][v, place] = k.read(tile, at * (self.block + 1) + i)
            return [k.value(v, self.plan.places[v]) for v in self.plan.body.returns]

        with k.at_position(self.rows, row):
            if width == 1:
                with k.at_position(self.columns, column):
                    for x, (memory, at) in zip(values(None), self.targets):
                        k.store(x, memory, at)
                return
            with k.at_position(self.columns, column):
                offsets = [k.index(linearize(at, m.aval.shape)) for m, at in self.targets]

            def element(n: Scalar, *vectors: Any) -> list[Any]:
                with k.at_position(self.columns, column + n):
                    for v, at, memory in self.held:
                        k.scopes[-1][v, at] = k.read(memory, first + n)
                    found = values(n)
                    return [k.insert(x, y, n, m.aval.dtype) for x, y, (m, _) in zip(found, vectors, self.targets)]

            empty = [k.empty_vector(m.aval.dtype, width) for m, _ in self.targets]
            for vector, (memory, _), offset in zip(k.unrolled(width, element, empty), self.targets, offsets):
                k.store_vector(vector, memory, offset)
