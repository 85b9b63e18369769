"""Attention by simdgroup matrices: scores and weights are in registers, a tile of keys at a time.

A threadgroup has a tile of rows, 16 of them each simdgroup, whose queries stay in registers. It goes through the keys
in steps: while it multiplies the keys and values that are in threadgroup memory, the next are on their way. Of each row
it keeps the largest logit so far and the sum of exponentials; where a larger one comes, all sums are scaled down. For
operands of 16 bits that waits until a much larger one comes, on GPUs whose lanes know what they hold.
What is summed of the values is divided at the end: values that exceed float32 if as many as there are keys are added
give infinity. Where positions decide which keys a row sees, tiles that are hidden from all rows of a threadgroup are
skipped (`key_range`).

What is known of a row (its maximum, how it is scaled) lanes tell each other as matrices whose rows have equal elements:
then every lane has it beside its own elements of the scores (`row_lanes`). Positions of elements, which masks need, are
found in the same way.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import Any

from smelt.backends.attention import Attention, analyse_attention
from smelt.backends.lowering import always
from smelt.ir import dtypes
from smelt.ir.builder import Function
from smelt.ir.kinds import Elementwise
from smelt.ir.scalar import INDEX, Scalar

from ...devices import Gpu
from ...kernel import GpuModule
from ..parts import split, times
from ..schedule import ScheduledKernel, ScratchPlan
from .epilogue import Epilogue
from .key_range import KeyRange, hides_later, key_range
from .library_attention import build_library_attention
from .positions import summed, where
from .row_tiles import MANY_STRIPS, SIMDGROUPS, TILE, RowTiles, held_as, line_of, rounded_up, slice_of
from .simd_matrices import MATRIX, OWN, STRIPS, Matrices
from .tiles import either

#: The most features and columns for which there are registers.
FEW_FEATURES = 64
#: Neighbours of such a float32 differ by 64: exponentials of differences are 0 or 1, to whatever base. The product with
#: log2(e) is rounded, and beyond would be too far from the exact one.
COARSE = 2.0**29
#: So far above what they are shifted by logits of 16-bit operands may lie, before sums are scaled anew: their weights,
#: up to e to that, are as exact. (So does FlashAttention-4.)
SLACK = 8.0


def build_attention(module: GpuModule, body: Function, scratch: ScratchPlan) -> list[ScheduledKernel]:
    """The kernel of a body that is attention, or the steps around that of a library."""
    attention = analyse_attention(body)
    found = build_library_attention(module, attention, scratch)
    return AttentionKernel(module, attention).emit() if found is None else found


class AttentionKernel(RowTiles):
    """The kernel of one attention."""

    def __init__(self, module: GpuModule, attention: Attention):
        self.attention, self.product = attention, attention.product
        gpu, product = module.gpu, attention.product
        self.columns = rounded_up(product.columns.extent, MATRIX)
        self._share_rows(gpu, product.rows.extent, self._strips(gpu), self.columns)
        self.tiles = -(-product.rows.extent // self.m)
        self.groups = self.tiles * product.batch.extent
        keys, values = attention.keys.dtype, attention.values.dtype
        self.lines = [line_of(rounded_up(attention.features.extent, slice_of(keys))), line_of(self.columns)]
        sizes = [(self.lines[0], held_as(keys)), (self.lines[1], held_as(values))]
        most = 2 * TILE if self.strips == MANY_STRIPS else TILE
        left = self._share_depth(gpu, product.depth.extent, slice_of(values), sizes, most, gpu.copies_itself)
        self.some_features = self._some_features(held_as(keys), self.lines[0], left)
        #: whether rows keep what they are shifted by while their logits are not much larger
        self.is_lazy = self.steps > 1 and gpu.fragment is not None and product.lhs.dtype.size == 2
        self.epilogue = Epilogue(module, product)
        self.k = self.epilogue.k
        self.matrices = Matrices(self.k)

    def _strips(self, gpu: Gpu) -> int:
        """How many strips of matrices a simdgroup has."""
        attention, product = self.attention, self.product
        is_small = max(attention.features.extent, product.columns.extent) <= FEW_FEATURES
        are_half = all(x.dtype.size == 2 for x in (attention.queries, attention.keys, attention.values))
        groups = product.batch.extent * -(-product.rows.extent // (SIMDGROUPS * MANY_STRIPS * MATRIX))
        return MANY_STRIPS if gpu.fragment and is_small and are_half and groups >= 2 * gpu.tiles else STRIPS

    # Positions

    def emit(self) -> list[ScheduledKernel]:
        """All of it; the step that runs it."""
        k, product = self.k, self.product
        batch, tile = split(k, k.group(), self.tiles, "batch", "tile", product.batch.extent > 1)
        k.bind(product.batch, batch)
        if self.tiles > 1 and self.steps > 1 and hides_later(self.attention.bounds, product.depth.names[0]):
            with k.named("tile"):  # those that take longest begin first
                tile = k.const(self.tiles - 1, INDEX) - tile
        with k.named("row"):
            self.row = times(tile, self.m)
        self.simd_row = times(k.simdgroup(), self.rows_of_simdgroup)
        self._place()
        attention = self.attention
        self.queries = self._of_rows(
            ("queries", "query"), attention.queries, product.rows, attention.features, self.some_features, self.keys
        )
        zero, ends = k.const(0.0, dtypes.float32), k.const(float("-inf"), dtypes.float32)
        outs = self.columns // MATRIX * self.strips
        maxima = self.lanes.kept * (2 if self.is_lazy and attention.row_outputs else 1)
        numbers = [*[zero] * (self.strips * OWN), *[ends] * maxima]
        carried = [*(x.mlir for x in numbers), *[self.matrices.filled(zero, "COp", dtypes.float32)] * outs]
        seen = KeyRange()
        if self.steps > 1:
            seen = key_range(k, attention.bounds, product.rows, product.depth, self.row, self.m, self.n)
        self._finish_rows(*self._parts(self._all_steps(seen, carried)))
        return self.epilogue.finish("attention", self.groups, self.threads)

    def _parts(self, state: Sequence[Any]) -> tuple[list[Scalar], list[Scalar], list[Scalar], list[Any]]:
        """What goes from one tile of keys to the next: the rows' totals, what they are shifted by, where that is kept
        the largest logits of a lane's own, and the sums of values."""
        kept, count = self.lanes.kept, len(state) - self.columns // MATRIX * self.strips
        numbers = [Scalar(self.k, x, dtypes.float32) for x in state[:count]]
        first = self.strips * OWN
        return numbers[:first], numbers[first : first + kept], numbers[first + kept :], list(state[count:])

    def _place(self) -> None:
        """Threadgroup memory, and which elements of a matrix a lane has."""
        attention, depth, columns = self.attention, self.product.depth, self.product.columns
        self.keys = self._half("keys", attention.keys, depth, attention.features, self.lines[0], self.least)
        self.values = self._half("values", attention.values, depth, columns, self.lines[1])
        self.halves = [self.keys, self.values]
        self._place_own()
        if attention.is_placed or self.is_ragged:
            self.own_rows, self.own_columns = self.lanes.positions()

    # One tile of keys

    def _attend(self, first: Scalar, step: Scalar | None, state: Sequence[Any]) -> list[Any]:
        k = self.k
        totals, best, largest, sums = self._parts(state)
        scores = self._products("key", self.queries, self.keys, self.attention.features, step)
        self._turn(step)
        logits = self._logits(scores, first)
        highest = [
            [self._largest([logits[i, j][e] for j in range(self.n // MATRIX)]) for e in range(OWN)]
            for i in range(self.strips)
        ]  # fmt: skip
        if self.is_lazy:
            own = [self._largest(x) for x in highest]
            largest = [self._larger(x, y) for x, y in zip(largest, own)]
            best, totals, sums = self._shifted_where_higher(best, own, totals, sums)
            (shifts,) = self.lanes.beside(shifts=self._finite(best))
        else:
            best, totals, sums, shifts = self._shifted(best, highest, totals, sums)
        weights = {}
        for i in range(self.strips):
            for e in range(OWN):
                with k.named("shift"):
                    shift = self._exponent(self.matrices.element(shifts[i], e))
                found = [self._exp(logits[i, j][e], *shift) for j in range(self.n // MATRIX)]
                with k.named("total"):
                    for x in found:
                        totals[i * OWN + e] = totals[i * OWN + e] + x
                weights.update({(i, j, e): x for j, x in enumerate(found)})
        sums = self._add("value", weights, held_as(self.product.lhs.dtype), self.values, sums, step)
        return [*(x.mlir for x in (*totals, *best, *largest)), *sums]

    def _finite(self, best: Sequence[Scalar]) -> list[Scalar]:
        """What logits are shifted by: of a row in which everything is -infinity so far nothing is to be scaled."""
        with self.k.named("shift"):
            return [self.k.select(x.eq(float("-inf")), 0.0, x) for x in best]

    def _shifted(
        self, best: Sequence[Scalar], highest: Sequence[Sequence[Scalar]], totals: Sequence[Scalar], sums: Sequence[Any]
    ) -> tuple[list[Scalar], list[Scalar], list[Any], list[Any]]:
        """Rows that are shifted by their largest logits so far: by what, what is summed already, and the shifts."""
        k, across = self.k, self.columns // MATRIX
        with k.named("best"):
            now = [self._larger(x, y) for x, y in zip(best, self.lanes.of_rows(highest, self._larger))]
        shift = self._finite(now)
        with k.named("scale"):
            scale = [self._exp(x, *self._exponent(y)) for x, y in zip(best, shift)]
        scales, shifts = self.lanes.beside(scales=scale, shifts=shift)
        with k.named("total"):
            totals = [x * self.matrices.element(scales[n // OWN], n % OWN) for n, x in enumerate(totals)]
        return now, totals, [self.matrices.both("mulf", x, scales[n // across]) for n, x in enumerate(sums)], shifts

    def _shifted_where_higher(
        self, best: Sequence[Scalar], own: Sequence[Scalar], totals: Sequence[Scalar], sums: Sequence[Any]
    ) -> tuple[list[Scalar], list[Scalar], list[Any]]:
        """The same, where one of a simdgroup's logits is much larger than what its row is shifted by."""
        k, count = self.k, len(best)
        with k.named("higher"):
            higher = [x > y + SLACK for x, y in zip(own, best)]
            found = k.ballot(functools.reduce(k.logical_or, higher)).ne(0)

        def shifted() -> list[Any]:
            now, total, scaled, _ = self._shifted(best, [[x] for x in own], totals, sums)
            return [*(x.mlir for x in (*now, *total)), *scaled]

        numbers = len(best) + len(totals)
        state = either(k, found, shifted, [*(x.mlir for x in (*best, *totals)), *sums])
        scalars = [Scalar(k, x, dtypes.float32) for x in state[:numbers]]
        return scalars[:count], scalars[count:], state[numbers:]

    def _larger(self, x: Scalar, y: Scalar) -> Scalar:
        return self.k.op("arith.maxnumf", [x, y], dtypes.float32)

    def _largest(self, xs: Sequence[Scalar]) -> Scalar:
        found = list(xs)
        while len(found) > 1:
            found = [self._larger(*pair) if len(pair) == 2 else pair[0]
                     for pair in (found[i : i + 2] for i in range(0, len(found), 2))]  # fmt: skip
        return found[0]

    def _exponent(self, shift: Scalar) -> tuple[Scalar, Scalar | None]:
        """What is subtracted from a row's logits, and by what they are multiplied before, where `_exp` wants that."""
        if self.product.lhs.dtype.size == 4:
            return shift, None
        k = self.k
        with k.named("slope"):
            slope = k.select(k.math("absf", shift) < COARSE, k.const(math.log2(math.e), dtypes.float32), 1.0)
        return shift * slope, slope

    def _exp(self, x: Scalar, shift: Scalar, slope: Scalar | None) -> Scalar:
        """The exponential of a logit less the row's shift, as exact as the weights are."""
        k = self.k
        if slope is None:
            rules = self.attention.softmax.exponentials.rules(Elementwise)
            return k.elementary(rules, [x - shift], [x.dtype], x.dtype)
        exponent = k.op("math.fma", [x, slope, -shift], dtypes.float32)
        return k.fast_exp2(exponent)

    def _logits(self, scores: dict[tuple[int, int], Any], key: Scalar) -> dict[tuple[int, int], list[Scalar]]:
        """What the body makes of the scores, by matrix and a lane's own elements; -infinity where no key is."""
        k, attention, product = self.k, self.attention, self.product
        found: dict[tuple[int, int], list[Scalar]] = {}
        for (i, j), matrix in scores.items():
            for e in range(OWN):
                score = self.matrices.element(matrix, e)
                k.provided[attention.scores] = always(score)
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

    def _finish_rows(
        self, totals: Sequence[Scalar], best: Sequence[Scalar], largest: Sequence[Scalar], sums: Sequence[Any]
    ) -> None:
        """Sums over the rows' totals to the outputs, and what is known of the rows."""
        k, across = self.k, self.columns // MATRIX
        parts = [totals[i * OWN : (i + 1) * OWN] for i in range(self.strips)]
        with k.named("total"):
            total = self.lanes.of_rows(parts, lambda x, y: x + y)
        if self.attention.row_outputs and self.is_lazy:
            highest = self.lanes.of_rows([[x] for x in largest], self._larger)
            scale = [self._exp(x, *self._exponent(y)) for x, y in zip(best, self._finite(highest))]
            self._store_rows(highest, [x * y for x, y in zip(total, scale)])
        elif self.attention.row_outputs:
            self._store_rows(best, total)
        how = "divf"
        if self.product.lhs.dtype.size == 2:  # a division for each row is as exact as the weights are
            how, total = "mulf", [1.0 / x for x in total]
        (divisors,) = self.lanes.beside(totals=total)
        done = [self.matrices.both(how, x, divisors[n // across]) for n, x in enumerate(sums)]
        self._store(done, self.columns, self.epilogue)

    def _store_rows(self, best: Sequence[Scalar], totals: Sequence[Scalar]) -> None:
        """What the body makes of the maximum and the total of each row."""
        k, attention, rows = self.k, self.attention, self.product.rows
        places = dict(attention.row_outputs)
        own, is_first = self.lanes.rows()
        for i, largest, total in zip(own, best, totals):
            with k.named("own_row"):
                row = summed(k, self.row, self.simd_row, i)
            is_row = is_first
            if rows.extent % self.m:
                is_row = k.logical_and(is_first, k.below(row, rows.extent))

            def store(row: Scalar = row, largest: Scalar = largest, total: Scalar = total) -> None:
                k.provided[attention.softmax.maximum.results[0]] = always(largest)
                k.provided[attention.softmax.total.results[0]] = always(total)
                with k.at_position(rows, row):
                    for v, memory in zip(self.product.body.returns, self.epilogue.memories):
                        if v in places:
                            k.store(k.value(v, places[v]), memory, places[v])

            where(k, is_row, store)
