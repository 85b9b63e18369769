"""The items of a row that a thread takes in one go: loads first, then what is computed from them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from smelt.backends.memory import Memory
from smelt.ir.index import linearize
from smelt.ir.scalar import INDEX, Scalar

from ...kernel import depends_on, vector_offset
from ..maps import bind_loops
from .combine import thread_name
from .shape import VALUES, Space
from .stages import Read, Stage
from .states import RowState

if TYPE_CHECKING:
    from .carried import Step
    from .kernel import RowKernel


class Tile:
    """A stage's work on one tile of a row.

    Items come in groups: what only this stage reads is loaded group by group, so that it does not crowd out
    what stays in registers.

    Args:
        at: which tile; None where there is one.
        states: the stage's reductions, as a thread carries them.
    """

    def __init__(self, row: RowKernel, stage: Stage, space: Space, at: Scalar | None, states: Sequence[RowState]):
        self.row, self.k, self.stage, self.space, self.at = row, row.k, stage, space, at
        self.states = states
        self.lane = row.kept[-1] if row.wide else space.loops[-1]
        self.width = row.width if row.wide else space.width
        fresh = [r for r in stage.loads if r not in row.held]
        self.staying = [r for r in fresh if r in row.registers]
        self.passing = [r for r in fresh if r not in row.registers]
        self.group = self._group_size()
        self.looks_ahead = any(s.looks_ahead for s in states)

    def _group_size(self) -> int:
        count = self.space.count
        held = len(self.passing) < len(self.stage.loads) or self.stage.uses or self.stage.makes
        if not self.passing or not held:
            return count
        most = max(1, VALUES // (self.width * len(self.passing)))
        return max(n for n in range(1, count + 1) if count % n == 0 and n <= most)

    def run(self, states: Sequence[Scalar]) -> list[Scalar]:
        """Load and compute; the states afterwards."""
        row, space = self.row, self.space
        if self.staying:
            memories = self._arrays(self.staying, space.count)
            self._load(memories, space.count, lambda i: i)
            row.held.update(memories)
        passing = self._arrays(self.passing, self.group)
        name = thread_name(self.stage.states)

        def group(g: Scalar | None, *carried: Scalar) -> list[Scalar]:
            if passing:
                self._load(passing, self.group, lambda i: self._number(g, i))
            if not self.looks_ahead:
                return row.repeat(self.group, lambda i, *inner: self._item(g, i, passing, inner), carried, name)
            seen = row.repeat(self.group, lambda i, *inner: self._look(g, i, passing, inner), carried)
            seen = row.carried.turn(self.states, seen)
            return row.repeat(self.group, lambda i, *inner: self._item(g, i, passing, inner, "add"), seen, name)

        return row.repeat(space.count // self.group, group, states, name)

    # Positions

    def _number(self, g: Scalar | None, i: Scalar | None) -> Scalar | None:
        """Which of a thread's items; None for the only one."""
        if g is None or i is None:
            return i or g
        return g * self.group + i

    def _bind(self, number: Scalar | None) -> tuple[Scalar | None, Scalar | None]:
        """Bind the inner loops to a thread's item; where its elements begin, and whether it exists."""
        k, row, space, lines = self.k, self.row, self.space, self.row.team.lines
        at = row.line if number is None else number * lines + row.line
        if self.at is not None:
            at = self.at * (space.count * lines) + at
        inside = None
        if space.items % (space.count * lines):
            with k.named("inside"):
                inside = k.below(at, space.items)
            at = k.op("arith.minui", [at, k.const(space.items - 1, INDEX)], INDEX)
        last = space.loops[-1]
        if row.team.columns:
            k.bind(last, bind_loops(k, space.loops[:-1], last.extent, at))
            return row.first, inside
        inner = bind_loops(k, space.loops[:-1], last.extent // space.width, at)
        first = inner * space.width if space.width > 1 else inner
        if space.width == 1:
            k.bind(last, first)
        return first, inside

    def _slot(self, read: Read, i: Scalar | None, j: Scalar | None) -> Scalar:
        """Where an element is in a thread's array: one for each item, if the item's elements share it."""
        if j is None or not depends_on(read[1], self.lane):
            return i or self.row.zero
        return j if i is None else i * self.width + j

    def _arrays(self, reads: Sequence[Read], count: int) -> dict[Read, Memory]:
        """Registers for `count` items."""
        sizes = {r: count * (self.width if depends_on(r[1], self.lane) else 1) for r in reads}
        return {r: self.row.array((r, n), n, r[0]) for r, n in sizes.items()}

    # Loads

    def _load(self, memories: dict[Read, Memory], count: int, number: Callable[[Scalar | None], Scalar | None]) -> None:
        """Read what `count` items need into registers; ``number(i)`` is the place of item i in the tile."""
        k, row, lane, width = self.k, self.row, self.lane, self.width
        offsets = {(v, at): linearize(at, v.shape) for v, at in memories}
        together = [r for r in memories if r[0].dtype.kind != "c" and vector_offset(offsets[r], lane, width)]
        together = together if width > 1 else []
        single = [r for r in memories if r not in together and (width == 1 or not depends_on(r[1], lane))]
        alone = [r for r in memories if r not in together and r not in single]

        def load(i: Scalar | None) -> None:
            first, _ = self._bind(number(i))
            with row.at(lane, first, None, width):
                vectors = [k.load_vector(k.memory[r[0]], k.index(offsets[r]), width) for r in together]
                for r in single:
                    k.write(k.load(*r), memories[r], i or row.zero)

            def unpack(j: Scalar | None) -> None:
                for r, vector in zip(together, vectors):
                    k.write(k.extract(vector, j or row.zero, r[0].dtype), memories[r], self._slot(r, i, j))
                with row.at(lane, first, j, width):
                    for r in alone:
                        k.write(k.load(*r), memories[r], self._slot(r, i, j))

            if together or alone:
                row.repeat(width, unpack)

        row.repeat(count, load)

    # What is computed

    def _item(
        self, g: Scalar | None, i: Scalar | None, passing: dict[Read, Memory], carried: Sequence[Scalar],
        how: Step = "step",
    ) -> list[Scalar]:  # fmt: skip
        """Take an item; the states afterwards."""
        k, row, stage = self.k, self.row, self.stage
        number = self._number(g, i)
        first, inside = self._bind(number)
        targets = [(v, row.outputs[v], row.plan.places[v]) for v in stage.outputs]

        def element(j: Scalar | None, state: Sequence[Scalar]) -> list[Scalar]:
            whole = self._stand(number, i, j, passing)
            for kept in stage.makes:
                memory = row.array(("kept", kept), self.space.count * self.width, kept.value)
                k.write(k.value(kept.value, kept.place), memory, whole or row.zero)
            return row.carried.advance(self.states, state, inside, how)

        condition = row.both(inside, row.valid) if targets else None
        return row.item(self.lane, first, self.width, targets, condition, element, carried, thread_name(stage.states))

    def _look(
        self, g: Scalar | None, i: Scalar | None, passing: dict[Read, Memory], carried: Sequence[Scalar]
    ) -> list[Scalar]:
        """Look at an item that is to be taken later, or at the last one; the states afterwards."""
        number = self._number(g, i)
        first, _ = self._bind(number)

        def element(j: Scalar | None, state: Sequence[Scalar]) -> list[Scalar]:
            self._stand(number, i, j, passing)
            return self.row.carried.advance(self.states, state, None, "look")

        return self.row.item(self.lane, first, self.width, [], None, element, carried)

    def _stand(
        self, number: Scalar | None, i: Scalar | None, j: Scalar | None, passing: dict[Read, Memory]
    ) -> Scalar | None:
        """Provide what is known of element j of an item, the i-th of a group; its place among the thread's elements."""
        k, row, stage = self.k, self.row, self.stage
        for r in stage.loads:
            memory, own = (passing[r], i) if r in passing else (row.held[r], number)
            k.scopes[-1][r] = k.read(memory, self._slot(r, own, j))
        whole = j if number is None else number if j is None else number * self.width + j
        for kept in stage.uses:
            k.scopes[-1][kept.value, kept.place] = k.read(row.arrays["kept", kept], whole or row.zero)
        row.recall_fixed(stage)
        return whole
