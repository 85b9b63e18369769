"""Deep products with few results: threadgroups share the contracted axes.

One kernel adds up shares of the contracted positions, and a second one adds up the shares, in their order, and
computes what follows the contraction.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from smelt.backends.contraction import VECTOR, Product
from smelt.backends.lowering import Fused, always
from smelt.backends.memory import Memory
from smelt.ir.aval import Aval
from smelt.ir.index import Index
from smelt.ir.scalar import INDEX, Scalar, compute_dtype

from ...devices import Gpu
from ...kernel import GpuKernel, GpuModule
from ..maps import bind_loops
from ..parts import split, start_part, times
from ..rows.shape import ENOUGH_GROUPS, MOST_GROUPS
from ..schedule import ScheduledKernel, ScratchPlan, body_flops, bytes_written, threads_for
from .epilogue import Epilogue
from .positions import added, linear, over_lanes, summed, where, within

#: Products of fewer multiplications are not worth a second kernel.
LEAST_SIZE = 1 << 18
#: The shares' bytes, written and read, are at most this part of those of the operands.
MOST_BYTES = 1 / 4
#: With so many results a thread each is enough for adding up shares, if these are few.
ENOUGH_RESULTS, MOST_RESULTS, FEW_SHARES = 4096, 65536, 32
#: A simdgroup adds up so many shares; more are left to a threadgroup.
SHARES_OF_SIMDGROUP = 256
SIMDGROUPS = 8


def epilogue_of(
    module: GpuModule, product: Product, groups: int, unit: int, least: int, scratch: ScratchPlan
) -> Epilogue:
    """What follows a contraction: in its kernel, or in a second one.

    Args:
        groups: threadgroups, if they do not share the depth.
        unit: a share is a multiple of so many contracted positions; least: and not less than these.
    """
    count = _shares(module.gpu, product, groups, least)
    if count < 2:
        return Epilogue(module, product)
    size = -(-product.depth.extent // (count * unit)) * unit
    return Shares(module, product, -(-product.depth.extent // size), scratch, size)


def _shares(gpu: Gpu, product: Product, groups: int, least: int) -> int:
    if product.size < LEAST_SIZE or groups >= ENOUGH_GROUPS:
        return 1
    most = MOST_GROUPS if product.result.aval.size >= ENOUGH_RESULTS else 2 * MOST_GROUPS
    wanted = min(gpu.groups, most) // groups
    depth, held = product.depth.extent, compute_dtype(product.dtype).size
    read = depth * (product.rows.extent + product.columns.extent) * product.batch.extent * product.dtype.size
    afford = int(MOST_BYTES * read / (2 * held * product.result.aval.size))
    return min(wanted, depth // least, afford)


class Shares(Epilogue):
    """Stores sums over shares of the contracted positions; another kernel adds them up.

    Args:
        count: of shares.
        size: contracted positions of a share, where `share` is asked which; the last may have fewer.
        many: from so many results on those of a share lie next to each other.

    Attributes:
        number: of the share that is stored.
    """

    number: Scalar

    def __init__(
        self, module: GpuModule, product: Product, count: int, scratch: ScratchPlan, size: int = 0,
        many: int = ENOUGH_RESULTS,
    ):  # fmt: skip
        self.module, self.product, self.positions, self.shares = module, product, size, count
        self.results = product.result.aval.size
        self.by_result = self.results < many  #: a result's shares lie next to each other
        self.scratch = scratch.take(Aval((self.shares * self.results,), compute_dtype(product.dtype)))
        roots = [(x.value, x.access.place) for x in (product.lhs, product.rhs)]
        self.part = start_part(module, product.body, "_shares", roots, [("shares", self.scratch)])
        self.k, (self.memory,) = self.part.k, self.part.extra

    def share(self, group: Scalar, groups: int) -> tuple[Scalar, Scalar, Scalar | int]:
        k, extent = self.k, self.product.depth.extent
        self.number, rest = split(k, group, groups, "share", "")
        with k.named("first"):
            first = self.number * self.positions
        with k.named("end"):
            end = first + self.positions
            if extent % self.positions:
                end = k.op("arith.minui", [end, k.const(extent, INDEX)], INDEX)
        return rest, first, end

    def width(self, loop: Fused) -> int:
        return 1 if self.by_result or self.product.columns.extent % VECTOR or self.results % VECTOR else VECTOR

    def element(self, total: Scalar) -> None:
        self.k.write(total, self.memory, self._offset())

    def neighbours(self, loop: Fused, first: Scalar, width: int, totals: Callable[[Scalar], Scalar]) -> None:
        assert width == 1, "only shallow products store several results of a thread"
        with self.k.at_position(loop, first):
            self.element(totals(self.k.const(0, INDEX)))

    def vector(self, loop: Fused, first: Scalar, totals: Any) -> None:
        with self.k.at_position(loop, first):
            self.k.store_vector(totals, self.memory, self._offset())

    def _offset(self) -> Scalar:
        place = self.k.index(_place(self.product))
        if self.by_result:
            return summed(self.k, times(place, self.shares), self.number)
        return summed(self.k, times(self.number, self.results), place)

    def finish(self, schedule: str, groups: int, threads: int) -> list[ScheduledKernel]:
        written = self.scratch.aval.nbytes
        first = self.part.finish(f"{schedule} shares", groups, threads, 0, written, 2 * self.product.size)
        return [first, self._combine()]

    # The second kernel

    def _combine(self) -> ScheduledKernel:
        body, product = self.product.body, self.product
        outs: list[tuple[str, Any]] = [("out" if len(body.returns) == 1 else f"out{i}", v) for i, v in
                                       enumerate(body.returns)]  # fmt: skip
        part = start_part(self.module, body, "", product.outputs, [("shares", self.scratch), *outs])
        k, (shares, *memories) = part.k, part.extra

        def store(at: Scalar, total: Scalar) -> None:
            inner = bind_loops(k, [product.batch, product.rows], product.columns.extent, at)
            k.bind(product.columns, inner)
            k.provided[product.result] = always(total)
            values = [k.value(v, place) for v, place in product.outputs]
            for x, memory, (_, place) in zip(values, memories, product.outputs):
                k.store(x, memory, place)

        groups, threads = self._add_up(k, shares, store)
        flops = body_flops(body) + (self.shares - 2) * self.results
        return part.finish("combine", groups, threads, self.scratch.aval.nbytes, bytes_written(body), flops)

    def _add_up(
        self, k: GpuKernel, shares: Memory, store: Callable[[Scalar, Scalar], None]
    ) -> tuple[int, int]:  # fmt: skip
        """Run ``store(i, total)`` for each result; threadgroups and threads."""
        simd = k.gpu.simd
        if not self.by_result:
            if self.results < MOST_RESULTS and self.shares > FEW_SHARES:
                return self._add_up_across(k, shares, store)
            threads, groups = threads_for(k, self.results)

            def alone(at: Scalar) -> None:
                store(at, self._sum(k, shares, at, k.const(0, INDEX), self.shares * self.results, self.results))

            k.grid_stride(None, self.results, threads, groups, alone)
            return groups, threads
        whole = self.shares > SHARES_OF_SIMDGROUP
        per_group = 1 if whole else min(SIMDGROUPS, self.results)
        groups = -(-self.results // per_group)
        threads = simd * (SIMDGROUPS if whole else per_group)
        member, step = (k.thread(), threads) if whole else (k.lane(), simd)
        stores = member.eq(0)
        with k.named("result"):
            at = k.group() if whole else summed(k, times(k.group(), per_group), k.simdgroup())
            if self.results % per_group:  # simdgroups beyond the last result read it, and do not store
                stores = k.logical_and(stores, k.below(at, self.results))
                at = k.op("arith.minui", [at, k.const(self.results - 1, INDEX)], INDEX)
        begin = times(at, self.shares)
        total = over_lanes(k, self._sum(k, shares, begin, member, self.shares, step))
        if whole:
            parts = k.shared(SIMDGROUPS, total.dtype, name="parts")
            k.when(k.lane().eq(0), lambda: k.write(total, parts, k.simdgroup()))
            k.barrier()

        def finish() -> None:
            store(at, added(k, parts, SIMDGROUPS) if whole else total)

        k.when(stores, finish)
        return groups, threads

    def _add_up_across(
        self, k: GpuKernel, shares: Memory, store: Callable[[Scalar, Scalar], None]
    ) -> tuple[int, int]:  # fmt: skip
        """Lanes take neighbouring results, and simdgroups take turns with the shares."""
        simd, last = k.gpu.simd, self.results - 1
        with k.named("result"):
            result = at = summed(k, times(k.group(), simd), k.lane())
        ragged = self.results % simd != 0
        if ragged:
            at = k.op("arith.minui", [at, k.const(last, INDEX)], INDEX)
        first = k.simdgroup() * self.results
        total = self._sum(k, shares, at, first, self.shares * self.results, SIMDGROUPS * self.results)
        parts = k.shared(SIMDGROUPS * simd, total.dtype, name="parts")
        k.write(total, parts, k.thread())
        k.barrier()
        limits = [(k.simdgroup(), 1, True), (result, self.results, ragged)]
        where(k, within(k, limits), lambda: store(result, added(k, parts, SIMDGROUPS, k.lane(), simd)))
        return -(-self.results // simd), SIMDGROUPS * simd

    def _sum(self, k: GpuKernel, shares: Memory, begin: Scalar, first: Scalar, stop: int, step: int) -> Scalar:
        """The sum of what stands at begin + first, begin + first + step, ..."""

        def add(i: Scalar, total: Scalar) -> list[Scalar]:
            return [total + k.read(shares, summed(k, begin, i))]

        return k.for_(first, k.const(stop, INDEX), add, [k.const(0, shares.aval.dtype)], step)[0]


def _place(product: Product) -> Index:
    """The number of a result at the position of the loops."""
    columns, rows = product.columns.extent, product.rows.extent
    return (linear(product.batch) * rows + linear(product.rows)) * columns + linear(product.columns)
