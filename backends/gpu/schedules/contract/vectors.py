"""Products of a matrix with one or a few vectors: what they cost is reading the matrix once, in order.

Where the matrix is contiguous along the contracted axes, a simdgroup reads whole lines of it and adds
up across its lanes. Where it is contiguous along the result, neighbouring threads make neighbouring
results, and the simdgroups of a threadgroup share the contracted axes.
"""

from __future__ import annotations

from typing import Any

from smelt.backends.contraction import VECTOR, Operand, Product
from smelt.backends.lowering import Fused
from smelt.ir.scalar import INDEX, Scalar

from ...devices import Gpu
from ...kernel import GpuKernel, GpuModule
from ..parts import split, times
from ..rows.shape import MOST_GROUPS
from ..schedule import ScheduledKernel, ScratchPlan
from .epilogue import Epilogue
from .positions import added, each_of, summed, sums_of_lanes, where, within
from .split import epilogue_of
from .sums import Sums

#: Simdgroups of a threadgroup.
SIMDGROUPS = 8
#: Lines that one simdgroup takes at once, where there are many; they share what it reads of the vectors.
RESULTS = 4
#: Vectors, at most, of 16 bits (more are matrices' work) and of others; and what is worth it for more than one: lines
#: of the matrix, and positions that are contracted.
FEW_HALVES, FEW, ENOUGH_LINES, ENOUGH_DEPTH = 2, 8, 64, 256
#: Elements of sums that a thread has.
HELD = 64
#: So many results are enough for one simdgroup each; fewer share out a deep product among simdgroups.
ENOUGH = 512
DEEP = 1024
#: Where threadgroups share the depth, each makes so many steps, or its simdgroups take so many lines, at least.
LEAST_STEPS = 8
LEAST_LINES = 32


def suits_vectors(product: Product) -> bool:
    """Whether one side has so few rows or columns that each number of the other is multiplied a few times."""
    few, lines = sorted((product.rows.extent, product.columns.extent))
    if few == 1:
        return True
    is_worth_it = lines >= ENOUGH_LINES and product.depth.extent >= ENOUGH_DEPTH
    return is_worth_it and few <= (FEW_HALVES if product.lhs.dtype.size == 2 else FEW)


def build_vectors(module: GpuModule, product: Product, scratch: ScratchPlan) -> list[ScheduledKernel]:
    """A product of which one side is one or a few vectors: lhs has few rows, or rhs few columns."""
    matrix, loop, vectors, few = product.lhs, product.rows, product.rhs, product.columns
    if few.extent > loop.extent:
        matrix, loop, vectors, few = vectors, few, matrix, loop
    along = matrix.along(product.depth) or (matrix.source is None and matrix.lies_along(product.depth, loop))
    shape = (Along if along else Across)(module.gpu, product, matrix, loop, few)
    epilogue = epilogue_of(module, product, shape.groups, shape.unit, shape.least, scratch)
    threads = shape.build(epilogue.k, product, epilogue, matrix, vectors)
    return epilogue.finish("contract-vector", shape.groups * epilogue.shares, threads)


class Along:
    """The matrix is contiguous along `depth`: simdgroups take lines of it.

    Attributes:
        loop: over lines of the matrix; few: over vectors.
        width: elements that a thread reads at once; results: lines of a simdgroup.
        shared: the simdgroups of a threadgroup share a line.
        groups: threadgroups, if none share the depth; unit, least: how finely they may, and how far.
    """

    def __init__(self, gpu: Gpu, product: Product, matrix: Operand, loop: Fused, few: Fused):
        self.loop, self.few = loop, few
        depth, lines, batches = product.depth.extent, loop.extent, product.batch.extent
        self.width = VECTOR if product.dtype.kind == "f" and matrix.along(product.depth, VECTOR) else 1
        self.shared = lines * batches < ENOUGH and depth >= DEEP
        self.results = 1 if self.shared else min(RESULTS, lines, HELD // (few.extent * self.width))
        enough = min(gpu.groups, MOST_GROUPS) * SIMDGROUPS
        while self.results > 1 and lines * batches < enough * self.results:
            self.results //= 2
        self.per_group = self.results if self.shared else self.results * SIMDGROUPS
        self.blocks = -(-lines // self.per_group)
        self.groups = self.blocks * batches
        self.unit = gpu.simd * self.width * (SIMDGROUPS if self.shared else 1)
        self.least = LEAST_STEPS * self.unit

    def build(
        self, k: GpuKernel, product: Product, epilogue: Epilogue, matrix: Operand, vectors: Operand
    ) -> int:
        """The kernel's code; threads of a threadgroup."""
        depth, loop, simd = product.depth, self.loop, k.gpu.simd
        lines, width, shared, results = loop.extent, self.width, self.shared, self.results
        sums = Sums(k, product, width)
        group, begin, end = epilogue.share(k.group(), self.groups)
        batch, block = split(k, group, self.blocks, "batch", "", product.batch.extent > 1)
        k.bind(product.batch, batch)
        with k.named("line"):
            first = times(block, self.per_group)
            if not shared:
                first = summed(k, first, times(k.simdgroup(), results))
        lane = k.lane()
        start_at, stride = (lane, simd) if not shared else (k.thread(), simd * SIMDGROUPS)
        ragged = lines % self.per_group != 0
        # Lines beyond the last one are read as the last one, and not stored.
        with k.named("line"):
            at = [summed(k, first, r) for r in range(results)]
            if ragged:
                at = [k.op("arith.minui", [line, k.const(lines - 1, INDEX)], INDEX) for line in at]

        def step(position: Scalar, *totals: Any) -> list[Any]:
            xs = [sums.gather(vectors, depth, position) for _ in each_of(k, self.few)]
            found, so_far = [], iter(totals)
            for line in at:
                with k.at_position(loop, line), k.at_position(depth, position):
                    number = sums.load(matrix)
                found += [sums.add(next(so_far), number, x) for x in xs]
            return found

        zeros = [sums.zero()] * (results * self.few.extent)
        begin = summed(k, begin, times(start_at, width))
        totals = k.counted(end, step, zeros, first=begin, step=stride * width, carried="sum")
        mine = sums_of_lanes(k, [sums.whole(total) for total in totals])
        if shared:
            self._store_shared(k, product, epilogue, mine, first)
            return simd * SIMDGROUPS
        own, vector = split(k, lane, self.few.extent, "own_line", "vector", results > 1)
        with k.named("line"):
            line = summed(k, first, own)

        def store() -> None:
            with k.at_position(loop, line), k.at_position(self.few, vector):
                epilogue.element(mine)

        where(k, within(k, [(lane, len(totals), True), (line, lines, ragged)]), store)
        return simd * SIMDGROUPS

    def _store_shared(self, k: GpuKernel, product: Product, epilogue: Epilogue, mine: Scalar, line: Scalar) -> None:
        """The results of one line that the simdgroups of a threadgroup have parts of, a vector's in each lane."""
        few = self.few.extent
        parts = k.shared(SIMDGROUPS * few, product.dtype, name="parts")
        at = summed(k, times(k.simdgroup(), few), k.lane() if few > 1 else None)
        k.when(k.below(k.lane(), few) if few > 1 else k.lane().eq(0), lambda: k.write(mine, parts, at))
        k.barrier()

        def store() -> None:
            vector = k.thread() if few > 1 else k.const(0, INDEX)
            with k.at_position(self.loop, line), k.at_position(self.few, vector):
                epilogue.element(added(k, parts, SIMDGROUPS, vector, few))

        k.when(k.below(k.thread(), few) if few > 1 else k.thread().eq(0), store)


class Across:
    """The matrix is contiguous along the result, or nowhere: lanes take neighbouring results.

    Attributes: as those of `Along`.
    """

    def __init__(self, gpu: Gpu, product: Product, matrix: Operand, loop: Fused, few: Fused):
        self.loop, self.few = loop, few
        depth, batches = product.depth.extent, product.batch.extent
        self.width = VECTOR if product.dtype.kind == "f" and matrix.along(loop, VECTOR) else 1
        self.per_group = gpu.simd * self.width
        self.blocks = -(-loop.extent // self.per_group)
        self.groups = self.blocks * batches
        self.shallow = self.groups * self.per_group >= ENOUGH or depth < DEEP
        self.unit = SIMDGROUPS
        self.least = LEAST_LINES * self.unit

    def build(
        self, k: GpuKernel, product: Product, epilogue: Epilogue, matrix: Operand, vectors: Operand
    ) -> int:
        """The kernel's code; threads of a threadgroup."""
        depth, loop, few, simd = product.depth, self.loop, self.few.extent, k.gpu.simd
        lines, width, per_group, blocks = loop.extent, self.width, self.per_group, self.blocks
        sums = Sums(k, product, width)
        is_wide = not self.shallow and epilogue.shares == 1 and few == 1
        simdgroups = k.gpu.max_threads // simd if is_wide else SIMDGROUPS
        group, begin, end = epilogue.share(k.group(), self.groups)
        batch, block = split(k, group, blocks, "batch", "", product.batch.extent > 1)
        k.bind(product.batch, batch)
        with k.named("place"):
            place = times(k.lane(), width)
        with k.named("line"):
            first = times(block, per_group)
            line = summed(k, first, place)
        ragged = lines % per_group != 0
        if ragged:  # lanes beyond the last results read the last ones, and do not store
            with k.named("line"):
                line = k.op("arith.minui", [line, k.const(lines - width, INDEX)], INDEX)

        def step(position: Scalar, *totals: Any) -> list[Any]:
            with k.at_position(depth, position):
                xs = [sums.spread(vectors) for _ in each_of(k, self.few)]
                with k.at_position(loop, line):
                    number = sums.load(matrix)
            return [sums.add(total, number, x) for total, x in zip(totals, xs)]

        begin = summed(k, begin, k.simdgroup())
        totals = k.counted(end, step, [sums.zero()] * few, first=begin, step=simdgroups, carried="sum")
        parts = k.shared(simdgroups * few * per_group, product.dtype, name="parts")
        for v, total in enumerate(totals):
            at = summed(k, times(k.simdgroup(), few * per_group), place, v * per_group)
            if width > 1:
                k.store_vector(total, parts, at)
            else:
                k.write(sums.element(total, 0), parts, at)
        k.barrier()
        thread = k.thread()
        with k.named("line"):
            mine = summed(k, first, thread)

        def store() -> None:
            for v, _ in enumerate(each_of(k, self.few)):

                def add(i: Scalar, so_far: Any, v: int = v) -> list[Any]:
                    at = summed(k, i * (few * per_group) + thread, v * per_group)
                    return [(Scalar(k, so_far, sums.held) + k.read(parts, at)).mlir]

                [whole] = k.counted(simdgroups, add, [k.const(0, sums.held).mlir], carried="sum")
                with k.at_position(loop, mine):
                    epilogue.element(Scalar(k, whole, sums.held))

        idle = simdgroups * simd > per_group and not (blocks == 1 and ragged)
        where(k, within(k, [(thread, per_group, idle), (mine, lines, ragged)]), store)
        return simdgroups * simd
