"""One result from the partial results of a team of threads.

Lanes of a simdgroup combine by shuffles; simdgroups meet in threadgroup memory, with one barrier.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from smelt.backends.memory import Memory
from smelt.ir import mlir
from smelt.ir.dtypes import DType
from smelt.ir.scalar import INDEX, Scalar

from ...kernel import GpuKernel
from .shape import Team
from .states import RowState, deal

#: Reductions for which it does not matter if a lane counts twice, as Metal's functions of a simdgroup.
EXTREMA = {"max": "maximumf", "min": "minimumf"}
#: Scalars that simdgroups exchange at a time.
BATCH = 16


def name_carried(k: GpuKernel, carried: Sequence[Scalar], name: str) -> None:
    """Call what a loop carries `name` in the text."""
    if carried and name:
        loop = carried[0].mlir.owner
        loop.location = mlir.ir.Location.name(name, loop.location, context=k.context)


def short_name(states: Sequence[RowState]) -> str:
    """``sum`` for a reduce_sum that is alone, else nothing."""
    return states[0].op.name.removeprefix("reduce_") if len(states) == 1 and not states[0].is_arg else ""


def thread_name(states: Sequence[RowState]) -> str:
    """What one thread's part of a reduction is called."""
    name = short_name(states)
    return f"thread_{name}" if name else ""


class Combiner:
    """Combines states within teams; every thread of a team gets the result.

    Args:
        line, member: the thread's place in its team, and the team's in the threadgroup.
        width: neighbouring rows of one thread.
    """

    def __init__(self, k: GpuKernel, team: Team, line: Scalar, member: Scalar, width: int):
        self.k, self.team, self.line, self.member, self.width = k, team, line, member, width
        simd = k.gpu.simd
        if team.columns:
            self.distances = [d for d in _powers(simd) if d >= team.across]
            self.parts = team.threads // max(team.across, simd)
        else:
            self.distances = [d for d in _powers(simd) if d < team.lines]
            self.parts = max(1, team.lines // simd)
        self.whole = "column" if team.columns else "row"  #: in names
        self._shared: dict[Any, Memory] = {}
        self._rounds = 0

    def end(self) -> None:
        """Before the next row: threadgroup memory may be written again."""
        if self._rounds and (self.team.columns or self._rounds % 2):
            self.k.barrier()
        self._rounds = 0

    def combine(
        self,
        states: Sequence[RowState],
        carried: list[Scalar],
        arrays: Sequence[Sequence[Memory]] | None,
        repeat: Callable[..., list[Any]],
    ) -> list[Scalar]:
        """Combined states: in `arrays` where a thread has several rows, else scalars."""
        k = self.k

        def within(j: Scalar | None, *own: Scalar) -> list[Scalar]:
            at = j or k.const(0, INDEX)
            found = self._shuffled(states, [k.read(m, at) for a in arrays for m in a] if arrays else own)
            if arrays:
                for m, x in zip((m for a in arrays for m in a), found):
                    k.write(x, m, at)
                return []
            return found

        width = self.width if arrays else 1
        if self.distances:
            carried = repeat(width, within, carried)
        if self.parts == 1:
            return carried
        if self.team.columns:
            return self._columns(states, carried, arrays, repeat)
        after: list[Scalar] = []
        dealt = deal(states, carried)
        while states:
            taken, size = 0, 0
            while taken < len(states) and (not taken or size + len(states[taken].state) <= BATCH):
                size += len(states[taken].state)
                taken += 1
            after += self._row(states[:taken], [x for own in dealt[:taken] for x in own])
            states, dealt = states[taken:], dealt[taken:]
        return after

    def _shuffled(
        self, states: Sequence[RowState], scalars: Sequence[Scalar], distances: Sequence[int] | None = None
    ) -> list[Scalar]:
        """States of lanes that are so far apart as one.

        Args:
            distances: those of the team's lanes if not given; else what is further apart has the same states.
        """
        k, after = self.k, []
        over = self.distances if distances is None else distances
        all_lanes = distances is not None or 1 << len(over) == k.gpu.simd
        for s, own in zip(states, deal(states, scalars)):
            if all_lanes and s.op.op.extremum and own[0].dtype.kind == "f":
                kind = k.attr(f"#gpu<all_reduce_op {EXTREMA[s.op.op.extremum]}>")
                with k.named(f"{self.whole}_{short_name([s])}"):
                    after.append(k.op("gpu.subgroup_reduce", own, own[0].dtype, op=kind, uniform=k.attr("unit")))
                continue
            if len(s.state) > 1:
                for distance in over:
                    own = s.merge(k, own, [k.shuffle(x, distance) for x in own])
                after += own
                continue
            with k.named(f"{self.whole}_{short_name([s])}"):
                after.append(self._call(s, own[0], over))
        return after

    def _call(self, s: RowState, x: Scalar, distances: Sequence[int]) -> Scalar:
        """A function of the module that combines what some lanes have."""
        k = self.k

        def define(inner: GpuKernel, own: Scalar) -> Scalar:
            for distance in distances:
                (own,) = s.merge(inner, [own], [inner.shuffle(own, distance)])
            return own

        name = f"simd_{s.op.name}_{x.dtype.mlir}".replace("<", "_").replace(">", "")
        if 2 * distances[0] < k.gpu.simd:
            name += f"_of_{2 * distances[0]}"
        if distances[-1] > 1:
            name += f"_by_{distances[-1]}"
        return k.call(("simd", s.op.name, x.dtype, *distances), name, [x], ["x"], x.dtype, define)

    def _memory(self, key: Any, size: int, dtype: DType) -> Memory:
        if (key, dtype) not in self._shared:
            self._shared[key, dtype] = self.k.shared(size, dtype)
        return self._shared[key, dtype]

    def _row(self, states: Sequence[RowState], own: Sequence[Scalar]) -> list[Scalar]:
        """Two memories take turns, so that one barrier is enough."""
        k = self.k
        turn = self._rounds % 2
        self._rounds += 1
        memories = [self._memory((turn, n), self.parts, x.dtype) for n, x in enumerate(own)]

        def write() -> None:
            for memory, x in zip(memories, own):
                k.write(x, memory, k.simdgroup())

        k.when(k.lane().eq(0), write)
        k.barrier()
        at = k.lane()
        if self.parts < k.gpu.simd:
            at = at & (self.parts - 1)
        found = [k.read(memory, at) for memory in memories]
        return self._shuffled(states, found, [d for d in _powers(k.gpu.simd) if d < self.parts])

    def _columns(
        self, states: Sequence[RowState], carried: list[Scalar], arrays: Any, repeat: Callable[..., list[Any]]
    ) -> list[Scalar]:
        k, team, parts = self.k, self.team, self.parts
        simd = k.gpu.simd
        if self._rounds:
            k.barrier()
        self._rounds += 1
        wide = team.across >= simd
        part = self.line if wide else k.simdgroup()
        width = self.width if arrays else 1
        dtypes = [d for s in states for d in s.state]
        memories = [self._memory(n, parts * team.across * width, d) for n, d in enumerate(dtypes)]
        offset = self._column_offset

        def write(j: Scalar | None) -> None:
            own = [k.read(m, j or k.const(0, INDEX)) for a in arrays for m in a] if arrays else carried
            for memory, x in zip(memories, own):
                k.write(x, memory, offset(j, part))

        if wide:
            repeat(width, write)
        else:
            k.when(k.below(k.lane(), team.across), lambda: repeat(width, write))
        k.barrier()

        def merge_own(j: Scalar) -> None:
            for m, x in zip(memories, self._merged_column(states, memories, j)):
                k.write(x, m, offset(j, k.const(0, INDEX)))

        shared = len(dtypes) > len(states)  # what merges at some cost is merged once, and then read by all lines
        if shared:
            k.loop(None, self.line, k.const(width, INDEX), merge_own, step=team.lines)
            k.barrier()

        def read(j: Scalar | None) -> list[Scalar]:
            found = self._first_of_column(memories, j) if shared else self._merged_column(states, memories, j)
            if not arrays:
                return found
            for m, x in zip((m for a in arrays for m in a), found):
                k.write(x, m, j or k.const(0, INDEX))
            return []

        if arrays:
            repeat(width, read)
            return []
        return read(None)

    def _column_offset(self, j: Scalar | None, which: Scalar) -> Scalar:
        """Where a part of a column lies: that of the thread's j-th, or of its only one."""
        row = which if j is None else j * self.parts + which
        return row * self.team.across + self.member

    def _first_of_column(self, memories: Sequence[Memory], j: Scalar | None) -> list[Scalar]:
        return [self.k.read(m, self._column_offset(j, self.k.const(0, INDEX))) for m in memories]

    def _merged_column(
        self, states: Sequence[RowState], memories: Sequence[Memory], j: Scalar | None
    ) -> list[Scalar]:
        """The states of all parts of a column, merged one after the other."""
        k = self.k

        def step(which: Scalar, *own: Scalar) -> list[Scalar]:
            new = deal(states, [k.read(m, self._column_offset(j, which)) for m in memories])
            return [x for s, a, b in zip(states, deal(states, own), new) for x in s.merge(k, a, b)]

        found = k.for_(k.const(1, INDEX), k.const(self.parts, INDEX), step, self._first_of_column(memories, j))
        name_carried(k, found, short_name(states) and f"{self.whole}_{short_name(states)}")
        return found


def _powers(limit: int) -> list[int]:
    """limit / 2 … 2, 1."""
    return [1 << n for n in reversed(range((limit - 1).bit_length()))]
