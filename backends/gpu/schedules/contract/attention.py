"""Attention by simdgroup matrices: scores and weights are in registers, a tile of keys at a time.

A threadgroup has a tile of rows, 16 of them each simdgroup, whose queries stay in registers. It goes through the keys
in steps: while it multiplies the keys and values that are in threadgroup memory, the next are on their way. Of each row
it keeps the largest logit so far and the sum of exponentials; where a larger one comes, all sums are scaled down.
What is summed of the values is divided at the end: values that exceed float32 if as many as there are keys are added
give infinity. Where positions decide which keys a row sees, tiles that are hidden from all rows of a threadgroup are
skipped (`key_range`).

What is known of a row (its maximum, how it is scaled) lanes tell each other as matrices whose rows have equal elements:
then every lane has it beside its own elements of the scores (`row_lanes`). Positions of elements, which masks need, are
found in the same way.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any

from smelt.backends.attention import Attention, analyse_attention
from smelt.ir import dtypes, mlir
from smelt.ir.builder import Function
from smelt.ir.dtypes import DType
from smelt.ir.kinds import Elementwise
from smelt.ir.scalar import INDEX, Scalar, compute_dtype

from ...devices import Gpu
from ...kernel import GpuModule
from ..parts import power_of_two, split, times
from ..schedule import ScheduledKernel
from .epilogue import Epilogue
from .key_range import hides_later_keys, key_range
from .positions import summed, where, within
from .row_lanes import EXCHANGED, RowLanes, Shuffled, ThroughMemory
from .simd_matrices import MATRIX, OWN, STRIPS, Matrices
from .tiles import Tile

#: Strips of matrices that a simdgroup has where there are rows for it and registers: each tile of keys is read for all.
MANY_STRIPS = 2 * STRIPS
#: The most features and columns for which there are registers.
FEW_FEATURES = 64
SIMDGROUPS = 4
#: Keys of a step, where there is room for them.
KEYS = 32
#: Features of the queries that are brought to threadgroup memory at once, at most.
SOME_FEATURES = 64
#: Elements of a line of a tile, at least.
SHORTEST = 16
#: Columns of the result that are stored at once.
SOME_COLUMNS = 64
#: Bytes that keep lines of threadgroup memory in different banks.
PADDING_BYTES = 16


def build_attention(module: GpuModule, body: Function) -> list[ScheduledKernel]:
    """The kernel of a body that is attention."""
    return AttentionKernel(module, analyse_attention(body)).emit()


def _line(n: int) -> int:
    """So many elements or more, which threads of a threadgroup bring to threadgroup memory line by line."""
    return max(SHORTEST, power_of_two(n))


def _up(n: int, unit: int) -> int:
    return -(-n // unit) * unit


def _held(dtype: DType) -> DType:
    """As what threadgroup memory and matrices hold an operand."""
    return dtype if dtype.size == 2 else compute_dtype(dtype)


class _Half:
    """Threadgroup memory of one operand's tile: once, or twice."""

    def __init__(self, tile: Tile, twice: bool, least: int, name: str):
        k, held = tile.k, _held(tile.operand.dtype)
        self.tile = tile
        self.memory = k.shared(max(tile.elements * (2 if twice else 1), least), held, stored=held.size == 2, name=name)
        tile.place(self.memory)
        self.matrices = self.memory.memref
        if held is dtypes.bfloat16:  # which upstream's type of matrices lacks: they stand as float16
            kind = mlir.ir.MemRefType(self.memory.memref.type)
            half = mlir.ir.F16Type.get(k.context)
            as_half = mlir.ir.MemRefType.get(kind.shape, half, memory_space=kind.memory_space, loc=k.location)
            self.matrices = k.emit("builtin.unrealized_conversion_cast", [self.memory.memref], [as_half]).result


class AttentionKernel:
    """The kernel of one attention."""

    def __init__(self, module: GpuModule, attention: Attention):
        self.attention, self.product = attention, attention.product
        gpu, product = module.gpu, attention.product
        self.strips = self._strips(gpu)
        rows, count = self.strips * MATRIX, SIMDGROUPS
        while count > 1 and product.rows.extent <= (count // 2) * rows:
            count //= 2
        self.rows_of_simdgroup, self.simdgroups, self.m, self.threads = rows, count, count * rows, count * gpu.simd
        self.tiles = -(-product.rows.extent // self.m)
        self.groups = self.tiles * product.batch.extent
        of_keys, of_values = _held(attention.keys.dtype), _held(attention.values.dtype)
        self.slice_of_keys, self.slice_of_values = (MATRIX if d.size == 4 else 2 * MATRIX for d in (of_keys, of_values))
        self.features = _up(attention.features.extent, self.slice_of_keys)
        self.columns = _up(product.columns.extent, MATRIX)
        self.line_of_keys, self.line_of_values = (_line(n) for n in (self.features, self.columns))
        self.some_columns = min(self.columns, SOME_COLUMNS)
        self.stage_pitch = self.some_columns + PADDING_BYTES // 4
        #: elements of a simdgroup's own threadgroup memory
        self.area = max(MATRIX * self.stage_pitch, EXCHANGED if gpu.fragment is None else 0)

        def room(n: int) -> int:
            """Bytes of the tiles of so many keys."""
            return sum(_up(n * (length + PADDING_BYTES // d.size) * d.size, 16)
                       for length, d in ((self.line_of_keys, of_keys), (self.line_of_values, of_values)))  # fmt: skip

        free = gpu.threadgroup_bytes - count * self.area * 4
        self.n = KEYS
        while self.n > self.slice_of_values and (room(self.n) > free or product.depth.extent <= self.n // 2):
            self.n //= 2
        self.steps = -(-product.depth.extent // self.n)
        self.twice = self.steps > 1 and 2 * room(self.n) <= free
        self.some_features = self._some_features(of_keys, free - room(self.n) * (2 if self.twice else 1))
        self.epilogue = Epilogue(module, product)
        self.k = self.epilogue.k
        self.matrices = Matrices(self.k)
        self.width = self.epilogue.width(product.columns)

    def _strips(self, gpu: Gpu) -> int:
        """How many strips of matrices a simdgroup has."""
        attention, product = self.attention, self.product
        is_small = max(attention.features.extent, product.columns.extent) <= FEW_FEATURES
        are_half = all(x.dtype.size == 2 for x in (attention.queries, attention.keys, attention.values))
        groups = product.batch.extent * -(-product.rows.extent // (SIMDGROUPS * MANY_STRIPS * MATRIX))
        return MANY_STRIPS if gpu.fragment and is_small and are_half and groups >= 2 * gpu.tiles else STRIPS

    def _some_features(self, held: DType, left: int) -> int:
        """How many features of the queries there is room for at once, where the keys' tiles come to lie later."""
        padding = PADDING_BYTES // held.size
        own = self.n * (self.line_of_keys + padding) * (2 if self.twice else 1)
        found = min(self.line_of_keys, SOME_FEATURES)
        while found > SHORTEST and self.m * (found + padding) > own + left // held.size:
            found //= 2
        self.least = self.m * (found + padding)
        return found

    # Positions

    def emit(self) -> list[ScheduledKernel]:
        """All of it; the step that runs it."""
        k, product = self.k, self.product
        batch, tile = split(k, k.group(), self.tiles, "batch", "tile", product.batch.extent > 1)
        k.bind(product.batch, batch)
        if self.tiles > 1 and self.steps > 1 and hides_later_keys(self.attention):
            with k.named("tile"):  # those that take longest begin first
                tile = k.const(self.tiles - 1, INDEX) - tile
        with k.named("row"):
            self.row = times(tile, self.m)
        self.simd_row = times(k.simdgroup(), self.rows_of_simdgroup)
        self._place()
        queries = self._queries()
        zero, ends = k.const(0.0, dtypes.float32), k.const(float("-inf"), dtypes.float32)
        outs = self.columns // MATRIX * self.strips
        numbers = [*[ends] * self.lanes.kept, *[zero] * (self.strips * OWN)]
        carried = [*(x.mlir for x in numbers), *[self.matrices.filled(zero, "COp", dtypes.float32)] * outs]
        if self.steps > 1:
            seen = key_range(k, self.attention, self.row, self.m, self.n)
            begin = None if seen.first is None else k.op("arith.minui", [seen.first, self._last()], INDEX)
            self._bring(k.const(0, INDEX) if begin is None else times(begin, self.n), begin)
            found = k.counted(
                self.steps if seen.end is None else seen.end,
                lambda step, *state: self._step(step, queries, state), carried, first=seen.first,
            )  # fmt: skip
        else:
            self._bring(k.const(0, INDEX), None)
            found = self._attend(k.const(0, INDEX), None, queries, carried)
        _, totals, sums = self._parts(found)
        self._store(totals, sums)
        return self._finish()

    def _parts(self, state: Sequence[Any]) -> tuple[list[Scalar], list[Scalar], list[Any]]:
        """What goes from one tile of keys to the next: the rows' maxima, their totals, and the sums of values."""
        kept = self.lanes.kept
        numbers = [Scalar(self.k, x, dtypes.float32) for x in state[: kept + self.strips * OWN]]
        return numbers[:kept], numbers[kept:], list(state[kept + self.strips * OWN :])

    def _place(self) -> None:
        """Threadgroup memory, and which elements of a matrix a lane has."""
        k, attention, product = self.k, self.attention, self.product

        def tile(name: str, operand: Any, free: Any, depth: Any, lines: str) -> Tile:
            held = _held(operand.dtype)
            return Tile(k, name, operand, free, depth, self.threads, lines, PADDING_BYTES // held.size, held)

        keys = (product.depth, self.n)
        keyed = tile("keys", attention.keys, keys, (attention.features, self.line_of_keys), "depth")
        self.keys = _Half(keyed, self.twice, self.least, "keys")
        values = tile("values", attention.values, (product.columns, self.line_of_values), keys, "free")
        self.values = _Half(values, self.twice, 0, "values")
        self.own = k.shared(self.simdgroups * self.area, dtypes.float32, name="own")
        with k.named("own_first"):
            self.own_first = times(k.simdgroup(), self.area)
        fragment = k.gpu.fragment
        self.lanes: RowLanes = (
            ThroughMemory(self.matrices, self.own, self.own_first) if fragment is None
            else Shuffled(self.matrices, fragment, self.strips)
        )  # fmt: skip
        self.is_ragged = product.depth.extent % self.n != 0
        if self.attention.is_placed or self.is_ragged:
            self.own_rows, self.own_columns = self.lanes.positions()

    # Matrices

    def _of_tile(self, half: _Half, use: str, free: Scalar, depth: Scalar, other: Scalar | None) -> Any:
        tile = half.tile
        at = tile.at(tile.offset(free, depth), other)
        return self.matrices.load(half.matrices, at, use, tile.pitch, tile.along_depth != (use == "AOp"))

    def _pairs(self) -> list[range]:
        """The strips, as tensor cores take them."""
        return [range(i, i + STRIPS) for i in range(0, self.strips, STRIPS)]

    # Operands

    def _queries(self) -> dict[tuple[int, int], Any]:
        """The matrices of the simdgroup's rows, by their places along the features and the rows."""
        k, attention, held = self.k, self.attention, _held(self.attention.queries.dtype)
        tile = Tile(
            k, "queries", attention.queries, (self.product.rows, self.m), (attention.features, self.some_features),
            self.threads, "depth", PADDING_BYTES // held.size, held,
        )  # fmt: skip
        tile.place(self.keys.memory)
        found = {}
        for first in range(0, self.features, self.some_features):
            depth = k.const(first, INDEX)
            if tile.vectors:
                tile.put(tile.fetch(self.row, depth), None)
            else:
                tile.copy(self.row, depth, None)
            k.barrier()
            along = min(self.some_features, self.features - first) // MATRIX
            for j in range(0, along, 2):  # pairs as tensor cores take them, one after the other
                for pair in self._pairs():
                    for n, i in itertools.product(range(j, min(j + 2, along)), pair):
                        at = tile.at(
                            tile.offset(summed(k, self.simd_row, i * MATRIX), k.const(n * MATRIX, INDEX)), None
                        )
                        with k.named("query"):
                            found[first // MATRIX + n, i] = self.matrices.load(
                                self.keys.matrices, at, "AOp", tile.pitch, not tile.along_depth
                            )
            k.barrier()
        return found

    def _tiles(self) -> list[tuple[_Half, Callable[[Scalar], tuple[Scalar, Scalar]]]]:
        """Tiles, and where one begins by the first key: along its free loop and along its depth."""
        zero = self.k.const(0, INDEX)
        return [(self.keys, lambda key: (key, zero)), (self.values, lambda key: (zero, key))]

    def _bring(self, key: Scalar, step: Scalar | None) -> None:
        for half, begin in self._tiles():
            other = self._half_of(half, step)
            if half.tile.vectors:
                half.tile.put(half.tile.fetch(*begin(key)), other)
            else:
                half.tile.copy(*begin(key), other)
        self.k.barrier()

    def _half_of(self, half: _Half, step: Scalar | None) -> Scalar | None:
        return None if step is None or not self.twice else (step & 1) * half.tile.elements

    def _step(self, step: Scalar, queries: dict[tuple[int, int], Any], state: Sequence[Any]) -> list[Any]:
        """One tile of keys; the next one is on its way meanwhile."""
        k = self.k
        with k.named("next"):
            following = step + 1
        with k.named("next_key"):  # of the last step the same tile once more, rather than a condition
            key = k.op("arith.minui", [following, self._last()], INDEX) * self.n
        fetched = [half.tile.fetch(*begin(key)) for half, begin in self._tiles()]

        def copy() -> None:
            for half, begin in self._tiles():
                if not half.tile.vectors:
                    half.tile.copy(*begin(key), self._half_of(half, following))

        alone = any(not half.tile.vectors for half, _ in self._tiles())
        more = k.below(following, self.steps) if alone else None
        if more is not None and self.twice:
            k.when(more, copy)
        found = self._attend(step * self.n, step, queries, state)
        if not self.twice:
            k.barrier()
            if more is not None:
                k.when(more, copy)
        for (half, _), vectors in zip(self._tiles(), fetched):
            half.tile.put(vectors, self._half_of(half, following))
        k.barrier()
        return found

    def _last(self) -> Scalar:
        return self.k.const(self.steps - 1, INDEX)

    # One tile of keys

    def _attend(
        self, key: Scalar, step: Scalar | None, queries: dict[tuple[int, int], Any], state: Sequence[Any]
    ) -> list[Any]:
        k = self.k
        best, totals, sums = self._parts(state)
        logits = self._logits(self._products(step, queries), key)
        highest = [
            [self._largest([logits[i, j][e] for j in range(self.n // MATRIX)]) for e in range(OWN)]
            for i in range(self.strips)
        ]  # fmt: skip
        with k.named("best"):
            now = [self._larger(x, y) for x, y in zip(best, self.lanes.of_rows(highest, self._larger))]
        with k.named("shift"):  # of a row in which everything is -infinity so far nothing is to be scaled
            shift = [k.select(x.eq(float("-inf")), 0.0, x) for x in now]
        with k.named("scale"):
            scale = [self._exp(x - y) for x, y in zip(best, shift)]
        scales, shifts = self.lanes.beside(scales=scale, shifts=shift)
        weights = {}
        for i in range(self.strips):
            for e in range(OWN):
                with k.named("shift"):
                    by = self.matrices.element(shifts[i], e)
                found = [self._exp(logits[i, j][e] - by) for j in range(self.n // MATRIX)]
                total = totals[i * OWN + e] * self.matrices.element(scales[i], e)
                with k.named("total"):
                    for x in found:
                        total = total + x
                totals[i * OWN + e] = total
                weights.update({(i, j, e): x for j, x in enumerate(found)})
        across = self.columns // MATRIX
        sums = [self.matrices.both("mulf", x, scales[n // across]) for n, x in enumerate(sums)]
        sums = self._add(step, weights, sums)
        return [*(x.mlir for x in (*now, *totals)), *sums]

    def _larger(self, x: Scalar, y: Scalar) -> Scalar:
        return self.k.op("arith.maxnumf", [x, y], dtypes.float32)

    def _largest(self, xs: Sequence[Scalar]) -> Scalar:
        found = list(xs)
        while len(found) > 1:
            found = [self._larger(*pair) if len(pair) == 2 else pair[0]
                     for pair in (found[i : i + 2] for i in range(0, len(found), 2))]  # fmt: skip
        return found[0]

    def _exp(self, x: Scalar) -> Scalar:
        """The exponential, as exact as the weights are."""
        k = self.k
        if self._weights_dtype().size == 2:
            return k.op("math.exp2", [x * math.log2(math.e)], dtypes.float32, fastmath=k.attr("#arith.fastmath<afn>"))
        return k.elementary(self.attention.softmax.exponentials.rules(Elementwise), [x], [x.dtype], x.dtype)

    def _weights_dtype(self) -> DType:
        return _held(self.product.lhs.dtype)

    def _products(self, step: Scalar | None, queries: dict[tuple[int, int], Any]) -> dict[tuple[int, int], Any]:
        """The scores of a tile, as matrices."""
        k, half = self.k, self._half_of(self.keys, step)
        zero = self.matrices.filled(k.const(0.0, dtypes.float32), "COp", dtypes.float32)
        found: dict[tuple[int, int], Any] = {}
        deep = self.slice_of_keys // MATRIX
        for n in range(0, self.features // MATRIX, deep):
            with k.named("key"):
                right = {
                    (j, d): self._of_tile(
                        self.keys, "BOp", k.const(j * MATRIX, INDEX), k.const((n + d) * MATRIX, INDEX), half
                    )
                    for j in range(self.n // MATRIX)
                    for d in range(deep)
                }
            for j, pair in itertools.product(range(self.n // MATRIX), self._pairs()):
                for d, i in itertools.product(range(deep), pair):
                    operands = [queries[n + d, i], right[j, d], found.get((i, j), zero)]
                    with k.named("score"):
                        found[i, j] = k.emit("gpu.subgroup_mma_compute", operands, [zero.type]).result
        return found

    def _add(self, step: Scalar | None, weights: dict[tuple[int, int, int], Scalar], sums: list[Any]) -> list[Any]:
        """Add the products of weights and values."""
        k, half, dtype = self.k, self._half_of(self.values, step), self._weights_dtype()
        across, deep = self.columns // MATRIX, self.slice_of_values // MATRIX
        for n in range(0, self.n // MATRIX, deep):
            with k.named("weight"):
                left = {
                    (d, i): self.matrices.made([weights[i, n + d, e] for e in range(OWN)], "AOp", dtype)
                    for d in range(deep)
                    for i in range(self.strips)
                }
            with k.named("value"):
                right = {
                    (j, d): self._of_tile(
                        self.values, "BOp", k.const(j * MATRIX, INDEX), k.const((n + d) * MATRIX, INDEX), half
                    )
                    for j in range(across)
                    for d in range(deep)
                }
            for j, pair in itertools.product(range(across), self._pairs()):
                for d, i in itertools.product(range(deep), pair):
                    at = i * across + j
                    operands = [left[d, i], right[j, d], sums[at]]
                    sums[at] = k.emit("gpu.subgroup_mma_compute", operands, [sums[at].type]).result
        return sums

    def _logits(self, scores: dict[tuple[int, int], Any], key: Scalar) -> dict[tuple[int, int], list[Scalar]]:
        """What the body makes of the scores, by matrix and a lane's own elements; -infinity where no key is."""
        k, attention, product = self.k, self.attention, self.product
        found: dict[tuple[int, int], list[Scalar]] = {}
        for (i, j), matrix in scores.items():
            for e in range(OWN):
                score = self.matrices.element(matrix, e)
                k.provided[attention.scores] = lambda place, score=score: score  # type: ignore[misc]
                if not (attention.is_placed or self.is_ragged):
                    with k.at_position(product.rows, k.const(0, INDEX)), k.at_position(product.depth, key):
                        x = k.value(attention.softmax.logits, attention.place)
                    found.setdefault((i, j), []).append(x)
                    continue
                row = summed(k, self.row, self.simd_row, i * MATRIX, self.own_rows[e])
                at = summed(k, key, j * MATRIX, self.own_columns[e])
                inside = k.below(at, product.depth.extent) if self.is_ragged else None
                if product.rows.extent % self.m:
                    row = k.op("arith.minui", [row, k.const(product.rows.extent - 1, INDEX)], INDEX)
                if self.is_ragged:
                    at = k.op("arith.minui", [at, k.const(product.depth.extent - 1, INDEX)], INDEX)
                with k.at_position(product.rows, row), k.at_position(product.depth, at):
                    x = k.value(attention.softmax.logits, attention.place)
                found.setdefault((i, j), []).append(x if inside is None else k.select(inside, x, float("-inf")))
        return found

    # Results

    def _store(self, totals: Sequence[Scalar], sums: Sequence[Any]) -> None:
        """Sums over the rows' totals through the rest of the body to the outputs."""
        k, across = self.k, self.columns // MATRIX
        parts = [totals[i * OWN : (i + 1) * OWN] for i in range(self.strips)]
        with k.named("total"):
            total = self.lanes.of_rows(parts, lambda x, y: x + y)
        (divisors,) = self.lanes.beside(totals=total)
        done = [self.matrices.both("divf", x, divisors[n // across]) for n, x in enumerate(sums)]
        for i in range(self.strips):
            for first in range(0, across, self.some_columns // MATRIX):
                count = min(self.some_columns // MATRIX, across - first)
                k.simdgroup_barrier()
                for j in range(count):
                    at = summed(k, self.own_first, j * MATRIX)
                    self.matrices.keep(done[i * across + first + j], self.own.memref, at, self.stage_pitch)
                k.simdgroup_barrier()
                self._outputs(i * MATRIX, first * MATRIX, count * MATRIX)

    def _outputs(self, first_row: int, first_column: int, columns: int) -> None:
        """Outputs of the staged rows of a simdgroup, neighbouring lanes on neighbouring columns."""
        k, product, simd = self.k, self.product, self.k.gpu.simd
        width = self.width
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
            where(k, inside, lambda: self.epilogue.held(self.own, at, row, column, width))

        count = math.ceil(items / simd)
        if count > 1:
            k.counted(count, one)
        else:
            one(k.const(0, INDEX))

    def _finish(self) -> list[ScheduledKernel]:
        return self.epilogue.finish("attention", self.groups, self.threads)
