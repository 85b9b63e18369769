"""Chains by simdgroup matrices: what stands between two contractions is in registers, a tile at a time.

As in `attention`, a threadgroup has a tile of rows whose operands stay in registers, and goes through what is summed in
steps. In each it makes the scores, of these the weights by the elementwise ops of the body, and adds the products of
weights and tiles. Several contractions share scores, weights and tiles: those of keys and values read queries and
cotangents twice, once for scores and once for sums. What is read of arguments for each row stays in registers too.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from smelt.backends.chains import Chain, ChainScore, Load, analyse_chain
from smelt.backends.contraction import Operand
from smelt.backends.lowering import Coordinates, Fused, always
from smelt.ir import dtypes
from smelt.ir.builder import Function, Value
from smelt.ir.dtypes import DType
from smelt.ir.index import names_of
from smelt.ir.scalar import INDEX, Scalar

from ...devices import Gpu
from ...kernel import GpuModule
from ..parts import split, times
from ..schedule import ScheduledKernel
from .epilogue import Epilogue
from .key_range import KeyRange, hides_later, key_range
from .positions import summed
from .row_tiles import MANY_STRIPS, SIMDGROUPS, TILE, RowTiles, held_as, line_of, rounded_up, slice_of
from .simd_matrices import MATRIX, OWN, STRIPS, Matrices

#: Elements that each row of many strips may have (sums, operands of 16 bits by two, scores): lanes keep as many.
REGISTERS = 224


def build_chain(module: GpuModule, body: Function) -> list[ScheduledKernel]:
    """The kernel of a body that is a chain."""
    return ChainKernel(module, analyse_chain(body)).emit()


class ChainKernel(RowTiles):
    """The kernel of one chain."""

    def __init__(self, module: GpuModule, chain: Chain):
        self.chain, gpu = chain, module.gpu
        self.columns = [rounded_up(end.product.columns.extent, MATRIX) for end in chain.ends]
        strips, most = self._strips(gpu)
        self._share_rows(gpu, chain.rows.extent, strips, max(self.columns))
        self.tiles = -(-chain.rows.extent // self.m)
        self.groups = self.tiles * chain.batch.extent
        #: operands along what is summed, each once, with their features
        self.operands: list[tuple[Operand, Fused]] = []
        self.of_scores = [self._number(score.right, score.features) for score in chain.scores]
        self.of_ends = [self._number(end.product.rhs, end.product.columns) for end in chain.ends]
        self.lines = [line_of(rounded_up(f.extent, slice_of(x.dtype))) for x, f in self.operands]
        sizes = [(line, held_as(x.dtype)) for line, (x, _) in zip(self.lines, self.operands)]
        least = max(slice_of(end.product.rhs.dtype) for end in chain.ends)
        left = self._share_depth(gpu, chain.depth.extent, least, sizes, most)
        #: by the type of rows' operands the tile in whose memory they come, one after the other
        self.hosts: dict[DType, int] = {}
        for n in self.of_scores:
            self.hosts.setdefault(sizes[n][1], n)
        self.some_features, self.least_of = {}, {}
        for held, n in self.hosts.items():  # the first may take what is left
            self.some_features[held] = self._some_features(held, self.lines[n], left)
            self.least_of[n] = self.least
            left = 0
        first = Epilogue(module, chain.ends[0].product)
        self.epilogues = [first, *(Epilogue(module, end.product, first) for end in chain.ends[1:])]
        self.k = first.k
        self.matrices = Matrices(self.k)

    def _strips(self, gpu: Gpu) -> tuple[int, int]:
        """How many strips of matrices a simdgroup has, and how much a step sums over, at most."""
        chain = self.chain
        scores = [score.left for score in chain.scores] + [score.right for score in chain.scores]
        are_half = all(x.dtype.size == 2 for x in (*scores, *(end.product.rhs for end in chain.ends)))
        groups = chain.batch.extent * -(-chain.rows.extent // (SIMDGROUPS * MANY_STRIPS * MATRIX))
        # where positions hide tiles, few rows leave more of them out
        if gpu.fragment and are_half and groups >= 2 * gpu.tiles and not chain.bounds:
            kept = sum(self.columns) + sum(rounded_up(score.features.extent, MATRIX) for score in chain.scores) // 2
            for n in (TILE, TILE // 2):
                if kept + n * len(chain.scores) <= REGISTERS:
                    return MANY_STRIPS, n
        return STRIPS, TILE

    def _number(self, operand: Operand, features: Fused) -> int:
        """The place of an operand among those that are different."""
        for i, (other, others) in enumerate(self.operands):
            same = operand.source is not None and operand.source == other.source
            if same and features.variables == others.variables and operand.dtype is other.dtype:
                return i
        self.operands.append((operand, features))
        return len(self.operands) - 1

    def emit(self) -> list[ScheduledKernel]:
        """All of it; the step that runs it."""
        k, chain = self.k, self.chain
        batch, tile = split(k, k.group(), self.tiles, "batch", "tile", chain.batch.extent > 1)
        k.bind(chain.batch, batch)
        several = self.tiles > 1 and self.steps > 1
        if several and chain.bounds and hides_later(chain.bounds, chain.depth.names[-1]):
            with k.named("tile"):  # those that take longest begin first
                tile = k.const(self.tiles - 1, INDEX) - tile
        with k.named("row"):
            self.row = times(tile, self.m)
        self.simd_row = times(k.simdgroup(), self.rows_of_simdgroup)
        self.halves = [
            self._half(f"tile{i}", x, chain.depth, features, self.lines[i], self.least_of.get(i, 0))
            for i, (x, features) in enumerate(self.operands)
        ]
        self._place_own()
        self.own_rows, self.own_columns = self.lanes.positions()
        self.left = [
            self._left(f"rows{i}", score, self.lines[n])
            for i, (score, n) in enumerate(zip(chain.scores, self.of_scores))
        ]
        self._read_rows()
        zero = self.matrices.filled(k.const(0.0, dtypes.float32), "COp", dtypes.float32)
        seen = KeyRange()
        if self.steps > 1 and chain.bounds:
            seen = key_range(k, chain.bounds, chain.rows, chain.depth, self.row, self.m, self.n)
        sums = self._all_steps(seen, [zero] * (sum(self.columns) // MATRIX * self.strips))
        for part, columns, epilogue in zip(self._parts(sums), self.columns, self.epilogues):
            self._store(part, columns, epilogue)
        return self.epilogues[0].finish("chain", self.groups, self.threads)

    def _parts(self, sums: Sequence[Any]) -> list[list[Any]]:
        """Sums of each contraction."""
        found, first = [], 0
        for columns in self.columns:
            count = columns // MATRIX * self.strips
            found.append(list(sums[first : first + count]))
            first += count
        return found

    def _left(self, name: str, score: ChainScore, line: int) -> dict[tuple[int, int], Any]:
        """The matrices of the rows' operand of a score, whose features fit in such lines."""
        held = held_as(score.right.dtype)
        some, host = min(self.some_features[held], line), self.halves[self.hosts[held]]
        return self._of_rows((name, "left"), score.left, self.chain.rows, score.features, some, host)

    # What is read for rows, and for what is summed

    def _loads(self, loop: Fused, other: Fused) -> list[Load]:
        """Those that depend on one loop, and not on another."""
        return [(v, at) for v, at in self.chain.loads
                if names_of(at) & set(loop.names) and not names_of(at) & set(other.names)]  # fmt: skip

    def _read_rows(self) -> None:
        """What is read for each row, by strips and a lane's own elements."""
        k, rows = self.k, self.chain.rows
        loads = self._loads(rows, self.chain.depth)
        self.of_rows: dict[tuple[int, int], dict[Load, Scalar]] = {}
        self.row_at: dict[tuple[int, int], Scalar] = {}
        for i in range(self.strips):
            for e, own in enumerate(self.own_rows):
                if e and own is self.own_rows[0]:
                    self.row_at[i, e], self.of_rows[i, e] = self.row_at[i, 0], self.of_rows[i, 0]
                    continue
                with k.named("own_row"):
                    at = summed(k, self.row, self.simd_row, i * MATRIX, own)
                    if rows.extent % self.m:
                        at = k.op("arith.minui", [at, k.const(rows.extent - 1, INDEX)], INDEX)
                self.row_at[i, e] = at
                with k.at_position(rows, at):
                    self.of_rows[i, e] = {load: k.value(*load) for load in loads}

    def _read_depth(self, first: Scalar) -> dict[tuple[int, int], tuple[Scalar, Scalar | None, dict[Load, Scalar]]]:
        """Where a lane's own elements stand along a step; whether that is inside; and what is read there."""
        k, depth = self.k, self.chain.depth
        loads = self._loads(depth, self.chain.rows)
        found = {}
        for j in range(self.n // MATRIX):
            for e, own in enumerate(self.own_columns):
                with k.named("own_column"):
                    at = summed(k, first, j * MATRIX, own)
                    inside = k.below(at, depth.extent) if self.is_ragged else None
                    if self.is_ragged:
                        at = k.op("arith.minui", [at, k.const(depth.extent - 1, INDEX)], INDEX)
                with k.at_position(depth, at):
                    found[j, e] = at, inside, {load: k.value(*load) for load in loads}
        return found

    # One step

    def _attend(self, first: Scalar, step: Scalar | None, state: Sequence[Any]) -> list[Any]:
        k, chain = self.k, self.chain
        of_depth = self._read_depth(first)
        scores = [
            self._products("right", self.left[n], self.halves[self.of_scores[n]], score.features, step)
            for n, score in enumerate(chain.scores)
        ]  # fmt: skip
        weights: list[dict[tuple[int, int, int], Scalar]] = [{} for _ in chain.ends]
        for i in range(self.strips):
            for j in range(self.n // MATRIX):
                for e in range(OWN):
                    at, inside, read = of_depth[j, e]
                    elements = [self.matrices.element(matrices[i, j], e) for matrices in scores]
                    found = self._weights(elements, self.row_at[i, e], at, {**self.of_rows[i, e], **read})
                    for own, x in zip(weights, found):
                        own[i, j, e] = x if inside is None else k.select(inside, x, 0.0)
        return [
            x
            for end, own, number, part in zip(chain.ends, weights, self.of_ends, self._parts(state))
            for x in self._add("right", own, held_as(end.weights.dtype), self.halves[number], part, step)
        ]

    def _weights(self, scores: Sequence[Scalar], row: Scalar, at: Scalar, read: dict[Load, Scalar]) -> list[Scalar]:
        """What the body makes of elements of the scores, for each contraction."""
        k, chain = self.k, self.chain
        with k.at_position(chain.rows, row), k.at_position(chain.depth, at):
            k.scopes[-1].update(read)
            for score, x in zip(chain.scores, scores):
                k.provided[score.value] = always(x)
            if all(end.weights.dtype.size == 2 for end in chain.ends):
                for op in chain.exponentials:
                    k.provided[op.results[0]] = self._fast_exponential(op.operands[0])
            return [k.value(end.weights, end.place) for end in chain.ends]

    def _fast_exponential(self, x: Value) -> Callable[[Coordinates], Scalar]:
        return lambda place: self.k.fast_exp2(self.k.value(x, place) * math.log2(math.e))
