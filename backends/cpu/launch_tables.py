"""Launches read from a table: many launches of few kernels are one loop over numbers, with a branch for each kernel.

LLVM takes longer for a call that is written out than the call of a small kernel takes; a row of a table costs nothing.
A row is the number of its branch and the offsets of its operands in the arena. Launches share a branch where they
call one kernel with the same arguments and results of the program, if any. In a *wide* function, which has many
arguments and results, a row says of each operand in which of these, or the arena, it lies: launches share a branch
where they call one kernel. So one step over hundreds of arrays is one kernel and a table.

A team runs a table together. Each member takes its part of every launch, the first member another one each time, for
of small launches there is one part. They wait for each other only where a launch touches what one since the last wait
has written, or writes what one has read.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from smelt.backends.bodies import Slot
from smelt.backends.memory import Memory
from smelt.ir import dtypes, mlir
from smelt.ir.aval import Aval
from smelt.ir.builder import Value
from smelt.ir.dialect import context
from smelt.ir.scalar import INDEX, Scalar

from .kernel import CpuKernel
from .loops import share
from .planner import PlannedOp, operands_of
from .schedules import ScheduledKernel

#: Fewer launches are written out.
FEWEST = 64
#: Launches for each branch, on average, from which on a table is less work.
REPEATED = 2

Slots = dict[Value, Slot]


class Launch(NamedTuple):
    """A call of a kernel for its whole range.

    Attributes:
        operands: where each lies. touched: the same with their bytes, and whether they are written.
        grain: members of a team take multiples of it.
        wide: see above.
        branch: equal for launches that differ only in offsets.
    """

    step: ScheduledKernel
    operands: list[Slot]
    touched: list[tuple[Slot, int, bool]]
    grain: int
    wide: bool
    branch: Any

    def numbers(self, arena: int) -> list[int]:
        """What a row says of it. `arena`: the arena's number among the addresses of a wide function."""
        if not self.wide:
            return [*(offset for where, offset in self.operands if where == "arena"), *self.step.numbers]
        places = [(at, 0) if where == "table" else (arena, at) for where, at in self.operands]
        numbers = [number for place in places for number in place]
        return [self.step.split.extent, self.grain, *numbers, *self.step.numbers]


class Team(NamedTuple):
    """The members of a team that run a table together.

    Attributes:
        members, me: how many they are, and which of them this one is.
        wait: emits that they wait for each other.
        shared: the arguments in whose memory results may lie, by slots.
    """

    members: Scalar
    me: Scalar
    wait: Callable[[], None]
    shared: Mapping[Slot, Collection[Slot]]


def waits(launches: Sequence[Launch], shared: Mapping[Slot, Collection[Slot]]) -> list[bool]:
    """Whether members wait for each other in front of each launch."""
    found: list[bool] = []
    arrays: dict[Slot, bool] = {}  # of the program, since the last wait, and whether they were written
    parts: list[tuple[int, int, bool]] = []  # the same of the arena
    for launch in launches:
        mine: dict[Slot, bool] = {}
        own: list[tuple[int, int, bool]] = []
        for slot, nbytes, written in launch.touched:
            if slot[0] == "arena":
                own.append((slot[1], slot[1] + nbytes, written))
                continue
            for place in (slot, *(shared.get(slot, ()) if written else ())):
                mine[place] = written or mine.get(place, False)
        meets = any(place in arrays and (written or arrays[place]) for place, written in mine.items()) or any(
            first < end and start < last and (written or writes)
            for first, last, written in own
            for start, end, writes in parts
        )
        if meets:
            arrays, parts = {}, []
        for place, written in mine.items():
            arrays[place] = written or arrays.get(place, False)
        parts += own
        found.append(meets)
    return found


def parts(
    planned_ops: Sequence[PlannedOp], slots: Slots, most: int, wide: bool = False
) -> Iterator[tuple[Sequence[PlannedOp], list[Launch] | None]]:
    """Planned ops in parts that are functions of machine code, and the launches of those that a table serves.

    `most`: the launches, or the branches, of one function. `wide`: whether these functions are.
    """
    if any(planned.kind != "kernel" for planned in planned_ops):
        yield from written_out(planned_ops, most)
        return
    first, launches, branches = 0, list[Launch](), set[Any]()

    def close(end: int) -> Iterator[tuple[Sequence[PlannedOp], list[Launch] | None]]:
        if len(launches) >= max(FEWEST, REPEATED * len(branches)):
            yield planned_ops[first:end], launches
        else:
            yield from written_out(planned_ops[first:end], most)

    for i, planned in enumerate(planned_ops):
        own = _launches(planned, slots, wide)
        more = {launch.branch for launch in own} - branches
        if len(branches) + len(more) > most:
            yield from close(i)
            first, launches, branches = i, [], set()
            more = {launch.branch for launch in own}
        launches += own
        branches |= more
    yield from close(len(planned_ops))


def written_out(planned_ops: Sequence[PlannedOp], most: int) -> Iterator[tuple[Sequence[PlannedOp], None]]:
    """Planned ops in parts, all of them calls, of `most` calls or of one op."""
    first = calls = 0
    for i, planned in enumerate(planned_ops):
        own = _calls(planned)
        if calls and calls + own > most:
            yield planned_ops[first:i], None
            first, calls = i, 0
        calls += own
    if calls:
        yield planned_ops[first:], None


def _calls(planned: PlannedOp) -> int:
    """How many calls are written out for an op: of what loops and branches run, too, where that is no function."""
    bodies = [body for body in planned.bodies if not body.is_shared]
    return 1 + sum(_calls(inner) for body in bodies for inner in body.planned_ops)


def _launches(planned: PlannedOp, slots: Slots, wide: bool) -> list[Launch]:
    found = []
    for step in planned.steps:
        result = planned.op.results[0]
        if step.copies and any(slots[v] is slots[result] for v in planned.op.operands):
            continue  # what it would copy is there already
        operands: list[Slot] = []
        touched: list[tuple[Slot, int, bool]] = []
        outer: list[Slot | None] = []
        for x, aval in operands_of(planned, step):
            slot: Slot = slots[x] if isinstance(x, Value) else ("arena", x)
            operands.append(slot)
            outer.append(slot if slot[0] == "table" else None)
            touched.append((slot, aval.nbytes, not isinstance(x, Value) or x in planned.op.results))
        grain = max(step.split.extent, 1) if planned.solo else step.split.grain
        branch = step.function if wide else (step.function, step.split.extent, grain, *outer)
        found.append(Launch(step, operands, touched, grain, wide, branch))
    return found


def emit_table(
    k: CpuKernel, launches: Sequence[Launch], table: Sequence[Any], arena: Any, team: Team | None = None
) -> None:
    """Run launches in order, by the calling thread or by a team.

    Args:
        table: the memrefs of the program's arguments and results; of a wide function that of all addresses.
        arena: the memref of its arena.
    """
    _Table(k, launches, table, arena, team).emit()


class _Table:
    """The rows of launches, and the loop over them.

    Attributes:
        branches: of each the number, and a launch of those that share it.
        width: of a row: the number of its branch, twice, and whether a team waits in front of it; then its numbers.
        end: the arena's number among the addresses of a wide function.
        stops: of each launch, whether a team waits in front of it.
        look_up: a number of the rows, by its place.
    """

    def __init__(
        self, k: CpuKernel, launches: Sequence[Launch], table: Sequence[Any], arena: Any, team: Team | None
    ):
        self.k, self.launches, self.table, self.arena, self.team = k, launches, table, arena, team
        self.branches: dict[Any, tuple[int, Launch]] = {}
        self.end = table[0].type.shape[0] - 1 if launches[0].wide else 0
        rows = [(self.branches.setdefault(x.branch, (len(self.branches), x))[0], x.numbers(self.end)) for x in launches]
        self.width = 1 + max(len(numbers) for _, numbers in rows)
        self.stops = [False] * len(launches) if team is None else waits(launches, team.shared)
        self.look_up = self._constant(rows)
        self.members = k.const(1, INDEX) if team is None else team.members

    def _constant(self, rows: Sequence[tuple[int, list[int]]]) -> Callable[[Scalar], Scalar]:
        found = np.zeros((len(rows), self.width), np.int64)
        for row, (number, numbers), stop in zip(found, rows, self.stops):
            row[: 1 + len(numbers)] = [2 * number + stop, *numbers]
        dtype = dtypes.int32 if found.max() <= np.iinfo(np.int32).max else dtypes.int64
        return self.k.global_constant(found.astype(dtype.numpy), dtype)

    def emit(self) -> None:
        self.k.loop(None, self.k.const(0, INDEX), self.k.const(len(self.launches), INDEX), self._row)

    def _row(self, i: Scalar) -> None:
        k, team = self.k, self.team
        start = i * self.width
        first = k.convert(self.look_up(start), INDEX)
        if team is not None and any(self.stops):
            k.when((first & 1).eq(k.const(1, INDEX)), team.wait)
        number, operands = first >> 1, {} if self.launches[0].wide else self._views(start)
        me = k.const(0, INDEX) if team is None else k.op("arith.remui", [team.me + i, team.members], INDEX)
        others = mlir.ir.DenseI64ArrayAttr.get(list(range(1, len(self.branches))), context())
        operation = k.emit("scf.index_switch", [number], [], regions=len(self.branches), cases=others)
        for region, (_, launch) in zip(operation.regions, self.branches.values()):
            with k.inside(mlir.ir.Block.create_at_start(region, [])):
                if launch.wide:
                    self._call_wide(launch, start, me)
                else:
                    self._call(launch, operands, start, me)
                k.emit("scf.yield", [], [])

    def _placed(self, launch: Launch) -> Iterator[tuple[int | None, Any, Any]]:
        """Of each operand its column in the table, if it lies in the arena, its type, and else its memref."""
        column = 0
        for (where, at), kind in zip(launch.operands, self.k.module.parameters[launch.step.function]):
            column += where == "arena"
            yield (column, kind, None) if where == "arena" else (None, kind, self.table[at])

    def _views(self, start: Scalar) -> dict[tuple[int, Any], Any]:
        """What branches find in the arena, by column and type: written once, in front of all of them."""
        placed = [place for _, launch in self.branches.values() for place in self._placed(launch)]
        wanted = dict.fromkeys((c, kind) for c, kind, _ in placed if c is not None)
        offsets = {column: self._number(start, column, INDEX) for column in range(1, self.width)}
        return {(c, kind): self.k.emit("memref.view", [self.arena, offsets[c]], [kind]).result for c, kind in wanted}

    def _number(self, start: Scalar, column: int, kind: Any) -> Scalar:
        """What stands in a column of the row that begins at `start`."""
        return self.k.convert(self.look_up(start + column), kind)

    def _told(self, launch: Launch, start: Scalar) -> list[Scalar]:
        last = 1 + len(launch.numbers(self.end))
        columns = range(last - len(launch.step.numbers), last)
        return [self._number(start, column, dtypes.int64) for column in columns]

    def _call(self, launch: Launch, operands: dict[tuple[int, Any], Any], start: Scalar, me: Scalar) -> None:
        memrefs = [operands[c, kind] if c is not None else own for c, kind, own in self._placed(launch)]
        range_ = share(self.k, me, self.members, launch.step.split.extent, launch.grain)
        self.k.call(launch.step.function, memrefs, *range_, *self._told(launch, start))

    def _call_wide(self, launch: Launch, start: Scalar, me: Scalar) -> None:
        k = self.k
        addresses, memrefs = Memory(self.table[0], Aval((self.end + 1,), dtypes.int64)), []
        for i, kind in zip(range(len(launch.operands)), k.module.parameters[launch.step.function]):
            first = k.read(addresses, self._number(start, 3 + 2 * i, INDEX))
            memrefs.append(k.at_address(first + self._number(start, 4 + 2 * i, dtypes.int64), kind))
        extent, grain = (self._number(start, i, INDEX) for i in (1, 2))
        k.call(launch.step.function, memrefs, *share(k, me, self.members, extent, grain), *self._told(launch, start))
