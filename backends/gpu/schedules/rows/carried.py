"""What a thread carries of its rows' reductions through loops: scalars, or arrays where it has several rows.

Functions take and give what the loops have to carry: the states' scalars one after the other, or nothing.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Literal

from smelt.backends.lowering import Coordinates
from smelt.backends.memory import Memory
from smelt.ir.builder import Value
from smelt.ir.scalar import Scalar

from .combine import short_name
from .states import RowState, deal

if TYPE_CHECKING:
    from .kernel import RowKernel

#: What a state does with an element, by the name of its method.
Step = Literal["step", "look", "add"]


class Carried(ABC):
    """See the module."""

    def __init__(self, row: RowKernel):
        self.row, self.k = row, row.k

    @abstractmethod
    def start(self, states: Sequence[RowState]) -> list[Scalar]:
        """States before the first element."""

    @abstractmethod
    def advance(
        self, states: Sequence[RowState], carried: Sequence[Scalar], condition: Scalar | None, how: Step = "step"
    ) -> list[Scalar]:
        """States after the element at the current place, if the condition holds."""

    @abstractmethod
    def turn(self, states: Sequence[RowState], carried: Sequence[Scalar]) -> list[Scalar]:
        """States that are ready for the elements that they have looked at."""

    @abstractmethod
    def end(self, states: Sequence[RowState], own: Sequence[RowState], carried: Sequence[Scalar]) -> list[Scalar]:
        """From what a thread carried as `own`: states that can be merged with others."""

    @abstractmethod
    def provide(self, states: Sequence[RowState], carried: Sequence[Scalar]) -> None:
        """Let the results of finished reductions be read."""

    @abstractmethod
    def of_row(self, states: Sequence[RowState], carried: Sequence[Scalar], j: Scalar | None) -> Sequence[Scalar]:
        """The states' numbers of the thread's j-th row."""

    @abstractmethod
    def recall(self, states: Sequence[RowState], source: Sequence[Memory], row: Scalar) -> None:
        """Let results be read of states that lie in memory, for the thread's rows from `row` on."""

    def arrays(self, states: Sequence[RowState]) -> list[list[Memory]] | None:
        """Where the states are, if in arrays."""
        return None

    def _advanced(
        self, s: RowState, before: Sequence[Scalar], condition: Scalar | None, how: Step
    ) -> list[Scalar]:  # fmt: skip
        after: list[Scalar] = getattr(s, how)(self.k, before)
        if condition is None or s.is_arg:
            return after
        return [x if x is y else self.k.select(condition, x, y) for x, y in zip(after, before)]


class InScalars(Carried):
    """Of one row."""

    def start(self, states: Sequence[RowState]) -> list[Scalar]:
        return [x for s in states for x in s.start(self.k)]

    def advance(
        self, states: Sequence[RowState], carried: Sequence[Scalar], condition: Scalar | None, how: Step = "step"
    ) -> list[Scalar]:
        return [x for s, own in zip(states, deal(states, carried)) for x in self._advanced(s, own, condition, how)]

    def turn(self, states: Sequence[RowState], carried: Sequence[Scalar]) -> list[Scalar]:
        return [x for s, own in zip(states, deal(states, carried)) for x in s.turn(self.k, own)]

    def end(self, states: Sequence[RowState], own: Sequence[RowState], carried: Sequence[Scalar]) -> list[Scalar]:
        return [x for s, each in zip(own, deal(own, carried)) for x in s.end(self.k, each)] if carried else []

    def provide(self, states: Sequence[RowState], carried: Sequence[Scalar]) -> None:
        for s, own in zip(states, deal(states, carried)):
            for v in s.results:
                self.k.provided[v] = self._reader(s, v, own)

    def _reader(self, s: RowState, v: Value, own: Sequence[Scalar]) -> Callable[[Coordinates], Scalar]:
        return lambda place: s.partial(self.k, v, own)

    def of_row(self, states: Sequence[RowState], carried: Sequence[Scalar], j: Scalar | None) -> Sequence[Scalar]:
        return carried

    def recall(self, states: Sequence[RowState], source: Sequence[Memory], row: Scalar) -> None:
        self.provide(states, [self.k.read(memory, row) for memory in source])


class InArrays(Carried):
    """Of several neighbouring rows, the one at hand being `RowKernel.own_row`."""

    def __init__(self, row: RowKernel):
        super().__init__(row)
        self._memories: dict[Value, list[Memory]] = {}

    def arrays(self, states: Sequence[RowState]) -> list[list[Memory]]:
        return [self._memories[s.result] for s in states]

    def _new(self, s: RowState, whose: str) -> list[Memory]:
        """New arrays for a state."""
        with self.k.named(f"{whose}_{short_name([s])}"):
            self._memories[s.result] = [self.k.thread_array(self.row.width, d) for d in s.state]
        return self._memories[s.result]

    def _read(self, memories: Iterable[Memory], j: Scalar | None) -> list[Scalar]:
        return [self.k.read(m, j or self.row.zero) for m in memories]

    def _write(
        self, memories: Sequence[Memory], after: Sequence[Scalar], j: Scalar | None, before: Sequence[Scalar] = ()
    ) -> None:
        """Put numbers there, but those that are there already."""
        for n, (memory, x) in enumerate(zip(memories, after)):
            if not before or x is not before[n]:
                self.k.write(x, memory, j or self.row.zero)

    def start(self, states: Sequence[RowState]) -> list[Scalar]:
        for s in states:
            self._new(s, "thread")

        def write(j: Scalar | None) -> None:
            for s in states:
                self._write(self._memories[s.result], s.start(self.k), j)

        self.row.repeat(self.row.width, write)
        return []

    def advance(
        self, states: Sequence[RowState], carried: Sequence[Scalar], condition: Scalar | None, how: Step = "step"
    ) -> list[Scalar]:
        j = self.row.own_row
        everyone = [self._read(self._memories[s.result], j) for s in states]
        for s, before in zip(states, everyone):
            self._write(self._memories[s.result], self._advanced(s, before, condition, how), j, before)
        return []

    def turn(self, states: Sequence[RowState], carried: Sequence[Scalar]) -> list[Scalar]:
        def write(j: Scalar | None) -> None:
            for s in states:
                if s.looks_ahead:
                    before = self._read(self._memories[s.result], j)
                    self._write(self._memories[s.result], s.turn(self.k, before), j, before)

        self.row.repeat(self.row.width, write)
        return []

    def end(self, states: Sequence[RowState], own: Sequence[RowState], carried: Sequence[Scalar]) -> list[Scalar]:
        changed = [(o, self._memories[o.result], self._new(s, "column")) for s, o in zip(states, own) if s is not o]

        def write(j: Scalar | None) -> None:
            for o, before, after in changed:
                self._write(after, o.end(self.k, self._read(before, j)), j)

        if changed:
            self.row.repeat(self.row.width, write)
        return []

    def provide(self, states: Sequence[RowState], carried: Sequence[Scalar]) -> None:
        for s in states:
            for v in s.results:
                self.k.provided[v] = self._reader(s, v)

    def _reader(self, s: RowState, v: Value) -> Callable[[Coordinates], Scalar]:
        return lambda place: s.partial(self.k, v, self._read(self._memories[s.result], self.row.own_row))

    def of_row(self, states: Sequence[RowState], carried: Sequence[Scalar], j: Scalar | None) -> Sequence[Scalar]:
        return self._read((m for s in states for m in self._memories[s.result]), j)

    def recall(self, states: Sequence[RowState], source: Sequence[Memory], row: Scalar) -> None:
        arrays = [m for s in states for m in self._new(s, "column")]

        def read(j: Scalar | None) -> None:
            self._write(arrays, [self.k.read(memory, row if j is None else row + j) for memory in source], j)

        self.row.repeat(self.row.width, read)
        self.provide(states, [])
