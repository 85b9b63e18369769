"""Launches read from a table: many launches of few kernels are one loop over numbers, with a branch for each kernel.

LLVM takes longer for a call that is written out than the call of a small kernel takes; a row of a table costs nothing.
A row is the number of its branch and the offsets of its operands in the arena. Launches share a branch where they
call one kernel with the same arguments and results of the program, if any. In a *wide* function, which has many
arguments and results, a row says of each operand in which of these, or the arena, it lies: launches share a branch
where they call one kernel. So one step over hundreds of arrays is one kernel and a table.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
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
from .planner import PlannedOp, operands_of
from .schedules import ScheduledKernel

#: Fewer launches are written out.
FEWEST = 64
#: Launches for each branch, on average, from which on a table is less work.
REPEATED = 2

Slots = dict[Value, Slot]


class Launch(NamedTuple):
    """A call of a kernel for its whole range, with where each operand lies. `wide`: see above."""

    step: ScheduledKernel
    operands: list[Slot]
    wide: bool = False

    @property
    def branch(self) -> Any:
        """Equal for launches that differ only in offsets."""
        if self.wide:
            return self.step.function
        outer = tuple(slot if slot[0] == "table" else None for slot in self.operands)
        return self.step.function, self.step.split.extent, outer

    def numbers(self, arena: int) -> list[int]:
        """What a row says of it. `arena`: the arena's number among the addresses of a wide function."""
        if not self.wide:
            return [offset for where, offset in self.operands if where == "arena"]
        places = [(at, 0) if where == "table" else (arena, at) for where, at in self.operands]
        return [self.step.split.extent, *(number for place in places for number in place)]


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
        if len(branches.union(launch.branch for launch in own)) > most:
            yield from close(i)
            first, launches, branches = i, [], set()
        launches += own
        branches.update(launch.branch for launch in own)
    yield from close(len(planned_ops))


def written_out(planned_ops: Sequence[PlannedOp], most: int) -> Iterator[tuple[Sequence[PlannedOp], None]]:
    """Planned ops in parts, all of them calls."""
    for first in range(0, len(planned_ops), most):
        yield planned_ops[first : first + most], None


def _launches(planned: PlannedOp, slots: Slots, wide: bool) -> list[Launch]:
    found = []
    for step in planned.steps:
        result = planned.op.results[0]
        if step.copies and any(slots[v] is slots[result] for v in planned.op.operands):
            continue  # what it would copy is there already
        values = [x for x, _ in operands_of(planned, step)]
        found.append(Launch(step, [slots[x] if isinstance(x, Value) else ("arena", x) for x in values], wide))
    return found


def emit_table(k: CpuKernel, launches: Sequence[Launch], table: Sequence[Any], arena: Any) -> None:
    """Run launches in order.

    Args:
        table: the memrefs of the program's arguments and results; of a wide function that of all addresses.
        arena: the memref of its arena.
    """
    branches: dict[Any, tuple[int, Launch]] = {}
    end = table[0].type.shape[0] - 1 if launches[0].wide else 0
    numbered = [(branches.setdefault(x.branch, (len(branches), x))[0], x.numbers(end)) for x in launches]
    width = 1 + max(len(numbers) for _, numbers in numbered)
    rows = np.zeros((len(launches), width), np.int64)
    for row, (number, numbers) in zip(rows, numbered):
        row[: 1 + len(numbers)] = [number, *numbers]
    dtype = dtypes.int32 if rows.max() <= np.iinfo(np.int32).max else dtypes.int64
    look_up = k.global_constant(rows.astype(dtype.numpy), dtype)
    others = mlir.ir.DenseI64ArrayAttr.get(list(range(1, len(branches))), context())

    def run(i: Scalar) -> None:
        start = i * width
        number, operands = k.convert(look_up(start), INDEX), {} if launches[0].wide else views(start)
        operation = k.emit("scf.index_switch", [number], [], regions=len(branches), cases=others)
        for region, (_, launch) in zip(operation.regions, branches.values()):
            with k.inside(mlir.ir.Block.create_at_start(region, [])):
                if launch.wide:
                    call_wide(launch, start)
                else:
                    call(launch, operands)
                k.emit("scf.yield", [], [])

    def placed(launch: Launch) -> Iterator[tuple[int | None, Any, Any]]:
        """Of each operand its column in the table, if it lies in the arena, its type, and else its memref."""
        column = 0
        for (where, at), kind in zip(launch.operands, k.module.parameters[launch.step.function]):
            column += where == "arena"
            yield (column, kind, None) if where == "arena" else (None, kind, table[at])

    def views(start: Scalar) -> dict[tuple[int, Any], Any]:
        """What branches find in the arena, by column and type: written once, in front of all of them."""
        wanted = dict.fromkeys((c, kind) for _, x in branches.values() for c, kind, _ in placed(x) if c is not None)
        offsets = {column: k.convert(look_up(start + column), INDEX) for column in range(1, width)}
        return {(c, kind): k.emit("memref.view", [arena, offsets[c]], [kind]).result for c, kind in wanted}

    def call(launch: Launch, operands: dict[tuple[int, Any], Any]) -> None:
        memrefs = [operands[c, kind] if c is not None else own for c, kind, own in placed(launch)]
        k.call(launch.step.function, memrefs, k.const(0, INDEX), k.const(launch.step.split.extent, INDEX))

    def call_wide(launch: Launch, start: Scalar) -> None:
        addresses, memrefs = Memory(table[0], Aval((end + 1,), dtypes.int64)), []
        for i, kind in zip(range(len(launch.operands)), k.module.parameters[launch.step.function]):
            first = k.read(addresses, k.convert(look_up(start + (2 + 2 * i)), INDEX))
            memrefs.append(k.at_address(first + k.convert(look_up(start + (3 + 2 * i)), dtypes.int64), kind))
        extent = k.convert(look_up(start + 1), INDEX)
        k.call(launch.step.function, memrefs, k.const(0, INDEX), extent)

    k.loop(None, k.const(0, INDEX), k.const(len(launches), INDEX), run)
