"""Threads that scan a row together: a simdgroup, or a whole threadgroup.

Each thread scans a few neighbours by itself, then simdgroups scan the totals of their threads by
shuffles, then the totals of simdgroups meet in threadgroup memory. A row is a sequence of such tiles,
with a carry from one to the next.
"""

from __future__ import annotations

from collections.abc import Callable

from smelt.ir.scalar import INDEX, Scalar

from ...kernel import GpuKernel
from ..parts import combined_up_to, each_group, plus, times


class Team:
    """The threads of one row, in a kernel under construction.

    Args:
        combine: what came before with what comes next; associative.
        identity: leaves what it is combined with as it is.
        items: neighbours that one thread takes.
        size: threads, a power of two, at least a simdgroup.
        inclusive: an element counts at its own place.
        staged: items come and go by way of threadgroup memory (`arrive`, `leave`), where vectors do not fit.

    Attributes:
        line: the items of a thread; a tile's scan reads and replaces them.
        member: the thread's position in its team.
    """

    def __init__(
        self,
        k: GpuKernel,
        combine: Callable[[Scalar, Scalar], Scalar],
        identity: Scalar,
        items: int,
        size: int,
        inclusive: bool,
        staged: bool = False,
    ):
        self.k, self.combine, self.identity = k, combine, identity
        self.items, self.size, self.inclusive = items, size, inclusive
        self.simdgroups = size // k.gpu.simd
        with k.named("line"):
            self.line = k.thread_array(items, identity.dtype)
        self.totals = k.shared(self.simdgroups, identity.dtype, name="parts") if self.simdgroups > 1 else None
        self.member = k.thread() if self.totals else k.lane()
        self._base = self._teams_tile = k.const(0, INDEX)
        if staged:
            tile = items * size
            own = tile + tile // k.gpu.simd  # threads that are so far apart have other banks
            teams = 1 if self.totals else k.gpu.threads // size
            self._tile_memory = k.shared(teams * own, identity.dtype, name="tile")
            self._teams_tile = times(k.simdgroup(), own) if teams > 1 else self._teams_tile

    def spread(self, rows: int, each: Callable[[Scalar, Scalar | None], None]) -> tuple[int, int]:
        """Run ``each(row, valid)`` for all rows; threadgroups and their threads.

        `valid` says whether the team has a row of its own; where not, it goes through the steps of the
        last row and must not write.
        """
        k = self.k
        if self.totals is not None:
            groups = max(1, min(k.gpu.groups, rows))
            each_group(k, rows, groups, lambda row: each(row, None))
            return groups, self.size
        teams = min(k.gpu.threads // self.size, rows)
        blocks = -(-rows // teams)
        groups = max(1, min(k.gpu.groups, blocks))

        def block(at: Scalar) -> None:
            with k.named("row"):
                row = plus(times(at, teams), k.simdgroup()) if teams > 1 else at
                if rows % teams:
                    own = k.op("arith.minui", [row, k.const(rows - 1, INDEX)], INDEX)
            each(*((own, k.below(row, rows)) if rows % teams else (row, None)))

        each_group(k, blocks, groups, block)
        return groups, teams * self.size

    def scan(
        self,
        start: Scalar,
        last: Scalar | int,
        carry: Scalar,
        fill: Callable[[Scalar], None],
        drain: Callable[[Scalar, Scalar], None] | None,
    ) -> Scalar:
        """Scan the elements start … last - 1 of a row, from `carry` on; all of them combined.

        ``fill(first)`` puts the elements from `first` on into `line`, the identity where there are none;
        ``drain(first, before)`` combines `before` with `line` and stores.
        """
        k, step = self.k, self.items * self.size
        last = last if isinstance(last, Scalar) else k.const(last, INDEX)

        def tile(base: Scalar, carried: Scalar) -> list[Scalar]:
            self._base = base
            with k.named("first"):
                first = plus(base, times(self.member, self.items))
            fill(first)
            before, total = self._tile()
            if drain is not None:
                with k.named("before"):
                    before = self.combine(carried, before)
                drain(first, before)
            return [self.combine(carried, total)]

        (total,) = k.for_(start, last, tile, [carry], step=step)
        return total

    # Items by way of threadgroup memory: neighbouring threads load and store neighbours

    def arrive(self, load: Callable[[Scalar], Scalar]) -> None:
        """``load(at)`` of the elements of the current tile into `line`."""
        k = self.k
        self._meet()  # the tile before has left

        def put(j: Scalar) -> None:
            at = self._beside(j)
            k.write(load(plus(self._base, at)), self._tile_memory, self._place(at))

        k.unrolled(self.items, put)
        self._meet()
        k.unrolled(self.items, lambda j: k.write(k.read(self._tile_memory, self._own(j)), self.line, j))

    def leave(self, element: Callable[[Scalar], Scalar], store: Callable[[Scalar, Scalar], None]) -> None:
        """``element(j)`` of each item to where ``store(at, value)`` puts the elements of the current tile."""
        k = self.k
        k.unrolled(self.items, lambda j: k.write(element(j), self._tile_memory, self._own(j)))
        self._meet()

        def take(j: Scalar) -> None:
            at = self._beside(j)
            store(plus(self._base, at), k.read(self._tile_memory, self._place(at)))

        k.unrolled(self.items, take)

    def _meet(self) -> None:
        if self.totals is None:
            self.k.simdgroup_barrier()
        else:
            self.k.barrier()

    def _beside(self, j: Scalar) -> Scalar:
        """Which element of a tile a thread moves: next to those of its neighbours."""
        return plus(times(j, self.size), self.member)

    def _own(self, j: Scalar) -> Scalar:
        """Where an item of a thread's own lies."""
        return self._place(plus(times(self.member, self.items), j))

    def _place(self, at: Scalar) -> Scalar:
        k = self.k
        return plus(self._teams_tile, at + k.op("arith.divui", [at, k.const(k.gpu.simd, INDEX)], INDEX))

    def _tile(self) -> tuple[Scalar, Scalar]:
        """Scan `line`; what the threads before have, and what all have."""
        k, combine, dtype = self.k, self.combine, self.identity.dtype

        def item(j: Scalar, raw: object) -> list[Scalar]:
            total = Scalar(k, raw, dtype)
            after = combine(total, k.read(self.line, j))
            k.write(after if self.inclusive else total, self.line, j)
            return [after]

        (raw,) = k.unrolled(self.items, item, [self.identity.mlir])
        return self._exchange(Scalar(k, raw, dtype))

    def _exchange(self, through: Scalar) -> tuple[Scalar, Scalar]:
        """What the threads before have, and what all have, from the total of each thread's items."""
        k = self.k
        through = combined_up_to(k, through, self.combine)
        before = k.select(k.lane().eq(0), self.identity, k.shuffle(through, 1, "up"))
        if self.totals is None:
            return before, self._from_last(through)
        return self._across(before, through)

    def _from_last(self, through: Scalar) -> Scalar:
        """What the last lane has."""
        return self.k.shuffle(through, self.k.gpu.simd - 1, "idx")

    def _across(self, before: Scalar, through: Scalar) -> tuple[Scalar, Scalar]:
        """The same for the threadgroup from what simdgroups have."""
        k, totals = self.k, self.totals
        assert totals is not None
        mine = k.simdgroup()
        k.barrier()  # the tile before has been read
        k.when(k.lane().eq(k.gpu.simd - 1), lambda: k.write(through, totals, mine))
        k.barrier()
        dtype = self.identity.dtype

        def simdgroup(s: Scalar, earlier: object, all_: object) -> list[Scalar]:
            earlier_, total = Scalar(k, earlier, dtype), k.read(totals, s)
            found = k.select(k.below(s, mine), self.combine(earlier_, total), earlier_)
            return [found, self.combine(Scalar(k, all_, dtype), total)]

        start = self.identity.mlir
        earlier, all_ = k.unrolled(self.simdgroups, simdgroup, [start, start])
        return self.combine(Scalar(k, earlier, dtype), before), Scalar(k, all_, dtype)
