"""The loops of a kernel with reductions, for one team of threads.

A thread takes several items of the row at once: first it loads all of them, then it computes. Where it can
hold its part of the row, later stages find it in registers; otherwise they go over the row again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from smelt.backends.lowering import Coordinates, Fused, divide
from smelt.backends.memory import Memory
from smelt.backends.plan import Plan
from smelt.ir.builder import Value
from smelt.ir.index import linearize
from smelt.ir.scalar import INDEX, Scalar

from ...kernel import GpuKernel, depends_on, vector_offset
from ..maps import bind_loops
from ..schedule import argument_name
from .carried import Carried, InArrays, InScalars
from .combine import Combiner, name_carried, thread_name
from .shape import Space, Team
from .stages import Read, Stage, is_row_output, result_place
from .states import RowState
from .tile import Tile

Target = tuple[Value, Memory, Coordinates]

#: With so many elements of a thread, a cheaper state in its loops pays.
SEVERAL = 4


class RowKernel:
    """Builds the code of one kernel.

    Args:
        kept: loops over the rows; columns are neighbours along the last.
        width: neighbouring columns that a thread takes.
        outputs: where results are stored.
        registers: loads that stay in registers once they were read.
    """

    def __init__(
        self, k: GpuKernel, plan: Plan, team: Team, kept: Sequence[Fused], spaces: dict[tuple[int, ...], Space],
        width: int = 1, outputs: dict[Value, Memory] | None = None, registers: set[Read] | None = None,
    ):  # fmt: skip
        self.k, self.plan, self.team, self.kept = k, plan, team, kept
        self.spaces, self.width = spaces, width
        self.outputs, self.registers = outputs or {}, registers or set()
        self.wide = team.columns and width > 1  #: a thread has several rows, and states are arrays
        self.valid: Scalar | None = None  #: whether the thread's row exists, where that is not certain
        self.looped = False
        self.line, self.member = self._places()
        self.combiner = Combiner(k, team, self.line, self.member, width)
        self.first: Scalar | None = None
        self.own_row: Scalar | None = None  #: which of a thread's neighbouring elements is at hand
        self.arrays: dict[Any, Memory] = {}
        self.held: dict[Read, Memory] = {}  #: the loads that are in registers now
        self.carried: Carried = InArrays(self) if self.wide else InScalars(self)

    def _places(self) -> tuple[Scalar, Scalar]:
        """The thread's place in its team, and the team's in the threadgroup."""
        k, team = self.k, self.team
        thread, zero = k.thread(), k.const(0, INDEX)
        if team.lines == team.threads:
            return thread, zero
        if team.lines == 1:
            return zero, thread
        size = k.const(team.across if team.columns else team.lines, INDEX)
        with k.named("line"):
            line = k.op("arith.divui" if team.columns else "arith.remui", [thread, size], INDEX)
        with k.named("member"):
            return line, k.op("arith.remui" if team.columns else "arith.divui", [thread, size], INDEX)

    # Rows

    def for_rows(
        self, rows: int, chunks: int, each: Callable[[Scalar, Scalar], None], backwards: bool = False
    ) -> int:
        """Run ``each(row, chunk)`` with the loops over rows at the team's place; the number of threadgroups."""
        k, teams = self.k, self.team.rows
        count = rows // self.width
        blocks = -(-count // teams)
        groups = max(1, min(k.gpu.groups, blocks * chunks))
        self.looped = groups < blocks * chunks

        def block(at: Scalar) -> None:
            if backwards:
                at = (blocks * chunks - 1) - at
            if self.team.columns:  # neighbouring threadgroups read what lies next to each other
                chunk, at = divide(k, at, blocks, chunks > 1)
            else:
                at, chunk = divide(k, at, chunks, blocks > 1)
            with k.named("row"):
                row = self.member if blocks == 1 else at * teams + self.member if teams > 1 else at
                if count % teams:
                    with k.named("valid"):
                        self.valid = k.below(row, count)
                    row = k.op("arith.minui", [row, k.const(count - 1, INDEX)], INDEX)
            self._bind_row(row)
            each(row * self.width if self.width > 1 else row, chunk)
            if self.looped:
                self.combiner.end()

        if self.looped:
            k.loop(None, k.group(), k.const(blocks * chunks, INDEX), block, step=groups)
        else:
            block(k.group())
        return groups

    def _bind_row(self, row: Scalar) -> None:
        k, kept = self.k, self.kept
        if not kept:
            return
        last = kept[-1]
        at = bind_loops(k, kept[:-1], last.extent // self.width, row)
        self.first = at * self.width if self.width > 1 else at
        if not self.wide:
            k.bind(last, self.first)

    # Small pieces

    def repeat(
        self, count: int, body: Callable[..., Sequence[Any] | None], carries: Sequence[Any] = (), name: str = ""
    ) -> list[Any]:
        """``body(j, *carries)`` for each j below `count`, unrolled; j is None where there is only one.

        `name` is what the carries are called in the text.
        """
        k = self.k
        if count == 1:
            k.scopes.append({})
            try:
                return list(body(None, *carries) or ())
            finally:
                k.scopes.pop()
        dtypes = [c.dtype if isinstance(c, Scalar) else None for c in carries]

        def wrapped(raw: Sequence[Any]) -> list[Any]:
            return [Scalar(k, x, d) if d is not None else x for x, d in zip(raw, dtypes)]

        raw = [c.mlir if isinstance(c, Scalar) else c for c in carries]
        found = wrapped(k.unrolled(count, lambda j, *inner: body(j, *wrapped(inner)), raw))
        name_carried(k, found, name)
        return found

    def both(self, *conditions: Scalar | None) -> Scalar | None:
        """All of the conditions that there are."""
        found: Scalar | None = None
        for c in conditions:
            if c is not None:
                found = c if found is None else self.k.logical_and(found, c)
        return found

    def guard(self, condition: Scalar | None, body: Callable[[], Any]) -> None:
        if condition is None:
            body()
        else:
            self.k.when(condition, body)

    def is_first_line(self) -> Scalar | None:
        return self.line.eq(0) if self.team.lines > 1 else None

    def array(self, key: Any, size: int, v: Value) -> Memory:
        if key not in self.arrays:
            name = (argument_name(v) if v.owner is None else v.owner.name) or "values"
            with self.k.named(f"{name}_{self.combiner.whole}"):
                self.arrays[key] = self.k.thread_array(size, v.dtype)
        return self.arrays[key]

    @contextmanager
    def at(self, lane: Fused | None, first: Scalar | None, j: Scalar | None, width: int) -> Iterator[None]:
        """Stand at element j of an item that begins at `first`."""
        k, saved = self.k, self.own_row
        self.own_row = j
        if lane is not None and width > 1 and first is not None:
            with k.at_position(lane, first if j is None else first + j):
                yield
        else:
            k.scopes.append({})
            yield
            k.scopes.pop()
        self.own_row = saved

    @property
    def zero(self) -> Scalar:
        return self.k.const(0, INDEX)

    # Stages

    def run(self, stage: Stage) -> None:
        """One stage over the whole row; its results can be read afterwards."""
        self.carried.provide(stage.states, self.combined(stage, self.accumulate(stage)))

    def combined(self, stage: Stage, carried: list[Scalar]) -> list[Scalar]:
        """The states of all lines of the team as one."""
        if not stage.space or not stage.states or not self.spaces[stage.space].extent:
            return carried
        return self.combiner.combine(stage.states, carried, self.carried.arrays(stage.states), self.repeat)

    def accumulate(
        self, stage: Stage, tiles: tuple[Scalar, Scalar] | None = None, ragged: Scalar | None = None
    ) -> list[Scalar]:
        """The loops of a stage; this thread's states.

        Args:
            tiles: the first and the one behind the last, if not all.
            ragged: whether this thread sees to what is left behind the last vector.
        """
        self._fix(stage)
        if not stage.space:
            return self._single(stage, self.carried.start(stage.states))
        space = self.spaces[stage.space]
        if not space.extent:
            return self.carried.start(stage.states)
        several = space.values * space.tiles >= SEVERAL
        together = space.count * (1 if self.wide else space.width)
        own = [s.of_thread(together) for s in stage.states] if several else stage.states
        states = self.carried.start(own)
        if space.tiles == 1 and tiles is None:
            states = Tile(self, stage, space, None, own).run(states)
        elif space.tiles:
            lower, upper = tiles or (self.zero, self.k.const(space.tiles, INDEX))

            def tile(at: Scalar, *carried: Scalar) -> list[Scalar]:
                return Tile(self, stage, space, at, own).run(carried)

            states = self.k.loop(None, lower, upper, tile, states)
            name_carried(self.k, states, thread_name(stage.states))
        states = self._ragged(stage, own, space, states, ragged)
        return self.carried.end(stage.states, own, states)

    def _single(self, stage: Stage, states: list[Scalar]) -> list[Scalar]:
        """A row of one element: every thread has it."""
        lane = self.kept[-1] if self.wide else None

        def element(j: Scalar | None, *carried: Scalar) -> list[Scalar]:
            with self.at(lane, self.first, j, self.width):
                self.recall_fixed(stage)
                return self.carried.advance(stage.states, carried, None)

        return self.repeat(self.width if self.wide else 1, element, states)

    def _ragged(
        self, stage: Stage, own: Sequence[RowState], space: Space, states: list[Scalar], condition: Scalar | None
    ) -> list[Scalar]:
        rest = space.extent - space.items * space.width
        if self.team.columns or not rest:
            return states
        k, lane = self.k, space.loops[-1]
        inside = self.both(k.below(self.line, rest), condition)
        at = k.op("arith.minui", [self.line, k.const(rest - 1, INDEX)], INDEX) + space.items * space.width
        targets = [(v, self.outputs[v], self.plan.places[v]) for v in stage.outputs]

        def element(j: Scalar | None, carried: Sequence[Scalar]) -> list[Scalar]:
            return self.carried.advance(own, carried, inside)

        with k.at_position(lane, at):
            self.recall_fixed(stage)
            return self.item(None, None, 1, targets, self.both(inside, self.valid), element, states)

    def _fix(self, stage: Stage) -> None:
        """Compute what the loops of a stage do not change."""
        k = self.k
        varying = []
        for v, at in stage.fixed:
            if self.wide and depends_on(at, self.kept[-1]):
                if ("fixed", v, at) not in self.arrays:
                    varying.append((v, at, self.array(("fixed", v, at), self.width, v)))
            else:
                k.value(v, at)

        def write(j: Scalar | None) -> None:
            with self.at(self.kept[-1], self.first, j, self.width):
                for v, at, memory in varying:
                    k.write(k.value(v, at), memory, j or self.zero)

        if varying:
            self.repeat(self.width, write)
            for _, _, memory in varying:
                k.will_not_change(memory)

    def recall_fixed(self, stage: Stage) -> None:
        k = self.k
        for v, at in stage.fixed:
            memory = self.arrays.get(("fixed", v, at))
            if memory is not None:
                k.scopes[-1][v, at] = k.read(memory, self.own_row or self.zero)

    def store_results(self) -> None:
        """Write the outputs that have one element for each row."""
        found = [v for v in self.outputs if not is_row_output(self.plan, v)]
        targets = [(v, self.outputs[v], result_place(self.plan, v)) for v in found]
        lane = self.kept[-1] if self.wide else None
        condition = self.both(self.is_first_line(), self.valid)
        if targets:
            self.item(lane, self.first, self.width, targets, condition, lambda j, carried: [])

    def save(
        self, states: Sequence[RowState], carried: Sequence[Scalar], to: Sequence[Memory], row: Scalar,
        offset: Callable[[Scalar], Scalar],
    ) -> None:  # fmt: skip
        """Write the states of rows from `row` on to memory, where ``offset(row)`` says."""
        k = self.k

        def write(j: Scalar | None) -> None:
            at = offset(row if j is None else row + j)
            for x, memory in zip(self.carried.of_row(states, carried, j), to):
                k.write(x, memory, at)

        self.guard(self.both(self.is_first_line(), self.valid), lambda: self.repeat(self.width, write))

    # Elements

    def item(
        self, lane: Fused | None, first: Scalar | None, width: int, targets: Sequence[Target],
        condition: Scalar | None, element: Callable[[Scalar | None, Sequence[Scalar]], list[Scalar]],
        carried: Sequence[Scalar] = (), name: str = "",
    ) -> list[Scalar]:  # fmt: skip
        """Run ``element(j, carried)`` for the elements of one item, then store the targets' values."""
        k = self.k
        together = [
            (v, m, at) for v, m, at in targets
            if width > 1 and lane is not None and v.dtype.kind != "c"
            and vector_offset(linearize(at, v.shape), lane, width)
        ]  # fmt: skip
        alone = [t for t in targets if t not in together]

        def each(j: Scalar | None, *state: Any) -> list[Any]:
            with self.at(lane, first, j, width):
                after = element(j, state[: len(carried)])
                vectors = [
                    k.insert(k.value(v, at), vector, j or self.zero, v.dtype)
                    for (v, _, at), vector in zip(together, state[len(carried) :])
                ]
                if alone:
                    values = [k.value(v, at) for v, _, at in alone]

                    def store_alone() -> None:
                        for x, (_, m, at) in zip(values, alone):
                            k.store(x, m, at)

                    self.guard(condition, store_alone)
            return [*after, *vectors]

        empty = [k.empty_vector(v.dtype, width) for v, _, _ in together]
        results = self.repeat(width, each, [*carried, *empty], "" if together else name)
        vectors = results[len(carried) :]

        def store() -> None:
            assert lane is not None and first is not None
            with k.at_position(lane, first):
                for (v, m, at), vector in zip(together, vectors):
                    k.store_vector(vector, m, k.index(linearize(at, v.shape)))

        if together:
            self.guard(condition, store)
        return results[: len(carried)]
