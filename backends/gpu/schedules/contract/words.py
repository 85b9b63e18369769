"""Products of one or a few vectors with a matrix of packed numbers, several in a word along the contracted axes.

A thread reads words, some neighbours at once, and multiplies every number in them with its element of the vectors; a
simdgroup reads whole lines of the matrix and adds up across its lanes. What a group of numbers shares, as a scale, is
read once for all words of a step.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

from smelt.backends.contraction import VECTOR, VECTOR_BYTES, Operand, Product, is_vector
from smelt.backends.lowering import Fused
from smelt.backends.plan import always_inside
from smelt.ir.index import linearize, names_of
from smelt.ir.scalar import INDEX, Scalar, compute_dtype

from ...kernel import GpuKernel, GpuModule
from ..parts import split, times
from ..schedule import ScheduledKernel, ScratchPlan
from .positions import over_lanes, summed, where, within
from .split import epilogue_of
from .tiles import neighbours

#: Vectors, at most.
FEW = 8
#: Simdgroups of a threadgroup, and lines of the matrix that one of them takes at once, which share what it reads of the
#: vectors; and as many simdgroups as there should be before they do.
SIMDGROUPS, LINES, ENOUGH = 8, 4, 2048
#: Numbers in the words of a step, at most, and elements of vectors that a thread holds.
MOST_INSIDE, HELD = 32, 64
#: Sums of a thread, at most.
SUMS = 16
#: Where threadgroups share the depth, each makes so many steps at least.
LEAST_STEPS = 8


def suits_words(product: Product) -> bool:
    """Whether one side of a product has few lines, and the other's elements lie several in a word along the depth."""
    if product.dtype.kind == "c" or min(product.rows.extent, product.columns.extent) > FEW:
        return False
    matrix, _, loop, _ = _sides(product)
    if matrix.source is not None or not matrix.loads or not matrix.lies_along(product.depth, loop):
        return False
    outer, inside = matrix.words(product.depth)
    return bool(outer) and 1 < math.prod(extent for _, extent in inside) <= MOST_INSIDE


def build_words(module: GpuModule, product: Product, scratch: ScratchPlan) -> list[ScheduledKernel]:
    """The kernels of a product with packed numbers; see `suits_words`."""
    return _Words(module, product, scratch).build()


def _sides(product: Product) -> tuple[Operand, Operand, Fused, Fused]:
    """The matrix, the vectors, the loop over lines of the matrix, the one over vectors."""
    if product.rows.extent <= product.columns.extent:
        return product.rhs, product.lhs, product.columns, product.rows
    return product.lhs, product.rhs, product.rows, product.columns


class _Words:
    def __init__(self, module: GpuModule, product: Product, scratch: ScratchPlan):
        self.product, gpu = product, module.gpu
        self.matrix, self.vectors, self.lines, self.few = _sides(product)
        outer, inside = self.matrix.words(product.depth)
        self.words, self.inside = Fused(outer), Fused(inside)
        self.together = self._together(Fused(outer[-1:]))
        self.innermost = {outer[-1][0]} if self.together > 1 else set[str]()
        lines, batches = self.lines.extent, product.batch.extent
        self.results = min(LINES, lines, max(1, SUMS // self.few.extent))
        enough = min(gpu.groups, ENOUGH)
        while self.results > 1 and lines * batches < enough * self.results:
            self.results //= 2
        self.per_group = self.results * SIMDGROUPS
        self.blocks = -(-lines // self.per_group)
        self.groups = self.blocks * batches
        unit = gpu.simd * self.together * self.inside.extent
        self.epilogue = epilogue_of(module, product, self.groups, unit, LEAST_STEPS * unit, scratch)
        self.k: GpuKernel = self.epilogue.k
        self.held = compute_dtype(product.dtype)

    def _together(self, innermost: Fused) -> int:
        """How many words a thread reads at once."""
        value, place = self.matrix.largest
        offset, width = linearize(place, value.shape), VECTOR_BYTES // value.dtype.size
        if not always_inside(value, place):
            return 1
        while width > 1:
            held = width * self.inside.extent
            if held <= MOST_INSIDE and held * self.few.extent <= HELD and is_vector(value, offset, innermost, width):
                return width
            width //= 2
        return 1

    def build(self) -> list[ScheduledKernel]:
        k, product, lines, results = self.k, self.product, self.lines.extent, self.results
        each, simd = self.inside.extent, k.gpu.simd
        group, begin, end = self.epilogue.share(k.group(), self.groups)
        batch, block = split(k, group, self.blocks, "batch", "", product.batch.extent > 1)
        k.bind(product.batch, batch)
        with k.named("line"):
            first = summed(k, times(block, self.per_group), times(k.simdgroup(), results))
            at = [summed(k, first, r) for r in range(results)]
            ragged = lines % self.per_group != 0
            if ragged:  # beyond the last one that one is read, and not stored
                at = [k.op("arith.minui", [line, k.const(lines - 1, INDEX)], INDEX) for line in at]
        with k.named("word"):
            start = summed(k, self._in_words(begin, each), times(k.lane(), self.together))
            stop = end // each if isinstance(end, int) else self._in_words(end, each)
        zeros = [k.const(0, self.held).mlir] * (results * self.few.extent)

        def add(word: Scalar, *sums: Any) -> list[Any]:
            return self._step(word, at, sums)

        totals = k.counted(stop, add, zeros, first=start, step=simd * self.together, carried="sum")
        found = [over_lanes(k, Scalar(k, total, self.held)) for total in totals]
        self._store(found, first, ragged)
        return self.epilogue.finish("contract-words", self.groups * self.epilogue.shares, simd * SIMDGROUPS)

    def _in_words(self, position: Scalar, each: int) -> Scalar:
        k = self.k
        nothing = position is k.const(0, INDEX)
        return position if nothing else k.op("arith.divui", [position, k.const(each, INDEX)], INDEX)

    def _step(self, word: Scalar, lines: list[Scalar], sums: tuple[Any, ...]) -> list[Any]:
        """Add the products of some words of each line with the vectors."""
        k, totals, vectors = self.k, list(sums), self.few.extent
        places = [summed(k, word, u) for u in range(self.together)]
        elements = [self._elements(place) for place in places]
        for n, line in enumerate(lines):
            with k.at_position(self.lines, line), k.at_position(self.words, word):
                together = self._read_together()
                for u, place in enumerate(places):
                    with self._at_word(place, together, u):
                        for p in range(self.inside.extent):
                            with self._inside(p):
                                y = self.matrix.read(k)
                            for i in range(vectors):
                                s = n * vectors + i
                                pair = (elements[u][i][p], y)
                                x, y_ = pair if self.matrix is self.product.rhs else pair[::-1]
                                total = Scalar(k, totals[s], self.held)
                                totals[s] = self.product.rules.accumulate(k, total, x, y_).mlir
        return totals

    def _elements(self, word: Scalar) -> list[list[Scalar]]:
        """Of each vector, those that are multiplied with the numbers in a word."""
        k, found = self.k, list[list[Scalar]]()
        width = VECTOR if self.product.dtype.kind == "f" and self.vectors.along(self.inside, VECTOR) else 1
        for i in range(self.few.extent):
            row: list[Scalar] = []
            with k.at_position(self.few, k.const(i, INDEX)), k.at_position(self.words, word):
                for p in range(0, self.inside.extent, width):
                    with self._inside(p):
                        if width == 1:
                            row.append(self.vectors.read(k))
                            continue
                        several = neighbours(k, self.vectors, width, self.held)
                        row += [k.extract(several, k.const(j, INDEX), self.held) for j in range(width)]
            found.append(row)
        return found

    def _read_together(self) -> Any:
        """The words of a line that are read at once; and what all of their numbers share."""
        k, own = self.k, self.innermost | set(self.inside.names)
        self._read_of(own)
        if self.together == 1:
            return None
        value, place = self.matrix.largest
        return k.load_vector(k.memory[value], k.index(linearize(place, value.shape)), self.together)

    def _read_of(self, without: set[str]) -> None:
        for v, place in self.matrix.loads:
            if always_inside(v, place) and names_of(place).isdisjoint(without) and (v, place) != self.matrix.largest:
                self.k.value(v, place)

    @contextmanager
    def _at_word(self, word: Scalar, together: Any, number: int) -> Iterator[None]:
        """Let the loops stand at a word, which may be one of those read together."""
        k = self.k
        key = self.matrix.largest
        with k.at_position(self.words, word):
            if together is not None:
                k.scopes[-1][key] = k.extract(together, k.const(number, INDEX), key[0].dtype)
            else:
                self._read_of(set(self.inside.names))
            yield

    @contextmanager
    def _inside(self, number: int) -> Iterator[None]:
        """Let the loops stand at a number in a word."""
        k, rest = self.k, number
        with ExitStack() as stack:
            for variable in reversed(self.inside.variables):
                rest, at = divmod(rest, variable[1])
                stack.enter_context(k.at_position(Fused([variable]), k.const(at, INDEX)))
            yield

    def _store(self, found: list[Scalar], first: Scalar, ragged: bool) -> None:
        """Lanes take a line of results each."""
        k, lane, vectors = self.k, self.k.lane(), self.few.extent
        with k.named("line"):
            line = summed(k, first, lane)

        def store() -> None:
            with k.at_position(self.lines, line):
                for i in range(vectors):
                    mine = found[i]
                    for r in range(1, self.results):
                        mine = k.select(lane.eq(r), found[r * vectors + i], mine)
                    with k.at_position(self.few, k.const(i, INDEX)):
                        self.epilogue.element(mine)

        where(k, within(k, [(lane, self.results, True), (line, self.lines.extent, ragged)]), store)
