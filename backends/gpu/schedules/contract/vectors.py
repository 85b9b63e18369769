"""Matrix–vector products: what they cost is reading the matrix once, in order.

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
from .positions import added, over_lanes, summed, where, within
from .split import epilogue_of
from .sums import Sums

#: Simdgroups of a threadgroup.
SIMDGROUPS = 8
#: Results that one simdgroup makes at once, where there are many; they share what it reads of the vector.
RESULTS = 4
#: So many results are enough for one simdgroup each; fewer share out a deep product among simdgroups.
ENOUGH = 512
DEEP = 1024
#: Where threadgroups share the depth, each makes so many steps, or its simdgroups take so many lines, at least.
LEAST_STEPS = 8
LEAST_LINES = 32


def build_vectors(module: GpuModule, product: Product, scratch: ScratchPlan) -> list[ScheduledKernel]:
    """A product of which one side is a vector: lhs has one row, or rhs one column."""
    rows = product.columns.extent == 1
    matrix, vector = (product.lhs, product.rhs) if rows else (product.rhs, product.lhs)
    loop = product.rows if rows else product.columns
    along = matrix.along(product.depth) or (matrix.source is None and matrix.lies_along(product.depth, loop))
    shape = (Along if along else Across)(module.gpu, product, matrix, loop)
    epilogue = epilogue_of(module, product, shape.groups, shape.unit, shape.least, scratch)
    k = epilogue.k
    k.bind(product.columns if rows else product.rows, k.const(0, INDEX))
    threads = shape.build(k, product, epilogue, matrix, vector, loop)
    return epilogue.finish("contract-vector", shape.groups * epilogue.shares, threads)


class Along:
    """The matrix is contiguous along `depth`: simdgroups take lines of it.

    Attributes:
        width: elements that a thread reads at once; results: lines of a simdgroup.
        shared: the simdgroups of a threadgroup share a line.
        groups: threadgroups, if none share the depth; unit, least: how finely they may, and how far.
    """

    def __init__(self, gpu: Gpu, product: Product, matrix: Operand, loop: Fused):
        depth, lines, batches = product.depth.extent, loop.extent, product.batch.extent
        self.width = VECTOR if product.dtype.kind == "f" and matrix.along(product.depth, VECTOR) else 1
        self.shared = lines * batches < ENOUGH and depth >= DEEP
        self.results = 1 if self.shared else min(RESULTS, lines)
        enough = min(gpu.groups, MOST_GROUPS) * SIMDGROUPS
        while self.results > 1 and lines * batches < enough * self.results:
            self.results //= 2
        self.per_group = self.results if self.shared else self.results * SIMDGROUPS
        self.blocks = -(-lines // self.per_group)
        self.groups = self.blocks * batches
        self.unit = gpu.simd * self.width * (SIMDGROUPS if self.shared else 1)
        self.least = LEAST_STEPS * self.unit

    def build(
        self, k: GpuKernel, product: Product, epilogue: Epilogue, matrix: Operand, vector: Operand, loop: Fused
    ) -> int:
        """The kernel's code; threads of a threadgroup."""
        depth, simd = product.depth, k.gpu.simd
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
            x = sums.gather(vector, depth, position)
            found = []
            for line, total in zip(at, totals):
                with k.at_position(loop, line), k.at_position(depth, position):
                    found.append(sums.add(total, sums.load(matrix), x))
            return found

        zeros = [sums.zero()] * results
        begin = summed(k, begin, times(start_at, width))
        totals = k.counted(end, step, zeros, first=begin, step=stride * width, carried="sum")
        found = [over_lanes(k, sums.whole(total)) for total in totals]
        if shared:
            _store_shared(k, product, epilogue, found[0], loop, first)
            return simd * SIMDGROUPS
        mine = found[0]
        for r in range(1, results):
            mine = k.select(lane.eq(r), found[r], mine)
        with k.named("line"):
            line = summed(k, first, lane)

        def store() -> None:
            with k.at_position(loop, line):
                epilogue.element(mine)

        where(k, within(k, [(lane, results, True), (line, lines, ragged)]), store)
        return simd * SIMDGROUPS


def _store_shared(
    k: GpuKernel, product: Product, epilogue: Epilogue, found: Scalar, loop: Fused, line: Scalar
) -> None:
    """One result that the simdgroups of a threadgroup have parts of."""
    parts = k.shared(SIMDGROUPS, product.dtype, name="parts")
    k.when(k.lane().eq(0), lambda: k.write(found, parts, k.simdgroup()))
    k.barrier()

    def store() -> None:
        with k.at_position(loop, line):
            epilogue.element(added(k, parts, SIMDGROUPS))

    k.when(k.thread().eq(0), store)


class Across:
    """The matrix is contiguous along the result, or nowhere: lanes take neighbouring results.

    Attributes: as those of `Along`.
    """

    def __init__(self, gpu: Gpu, product: Product, matrix: Operand, loop: Fused):
        depth, batches = product.depth.extent, product.batch.extent
        self.width = VECTOR if product.dtype.kind == "f" and matrix.along(loop, VECTOR) else 1
        self.per_group = gpu.simd * self.width
        self.blocks = -(-loop.extent // self.per_group)
        self.groups = self.blocks * batches
        self.shallow = self.groups * self.per_group >= ENOUGH or depth < DEEP
        self.unit = SIMDGROUPS
        self.least = LEAST_LINES * self.unit

    def build(
        self, k: GpuKernel, product: Product, epilogue: Epilogue, matrix: Operand, vector: Operand, loop: Fused
    ) -> int:
        """The kernel's code; threads of a threadgroup."""
        depth, simd = product.depth, k.gpu.simd
        lines, width, per_group, blocks = loop.extent, self.width, self.per_group, self.blocks
        sums = Sums(k, product, width)
        few = self.shallow or epilogue.shares > 1
        simdgroups = SIMDGROUPS if few else k.gpu.max_threads // simd
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

        def step(position: Scalar, total: Any) -> list[Any]:
            with k.at_position(depth, position):
                x = sums.spread(vector)
                with k.at_position(loop, line):
                    return [sums.add(total, sums.load(matrix), x)]

        begin = summed(k, begin, k.simdgroup())
        [total] = k.counted(end, step, [sums.zero()], first=begin, step=simdgroups, carried="sum")
        parts = k.shared(simdgroups * per_group, product.dtype, name="parts")
        at = summed(k, times(k.simdgroup(), per_group), place)
        if width > 1:
            k.store_vector(total, parts, at)
        else:
            k.write(sums.element(total, 0), parts, at)
        k.barrier()
        thread = k.thread()
        with k.named("line"):
            mine = summed(k, first, thread)

        def store() -> None:
            def add(i: Scalar, so_far: Any) -> list[Any]:
                return [(Scalar(k, so_far, sums.held) + k.read(parts, i * per_group + thread)).mlir]

            [whole] = k.counted(simdgroups, add, [k.const(0, sums.held).mlir], carried="sum")
            with k.at_position(loop, mine):
                epilogue.element(Scalar(k, whole, sums.held))

        idle = simdgroups * simd > per_group and not (blocks == 1 and ragged)
        where(k, within(k, [(thread, per_group, idle), (mine, lines, ragged)]), store)
        return simdgroups * simd
