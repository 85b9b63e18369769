"""What is known of kernels for all sizes when they are made: texts that are part of their names."""

from __future__ import annotations

from typing import NamedTuple

from smelt.ir import dtypes
from smelt.ir.aval import Aval

#: Threadgroups that elements or rows are spread over, at most.
GROUPS = 1024
#: Threads of a threadgroup, at most, but where lanes have rows.
MOST_THREADS = 256
#: Elements that indices of 32 bits reach, and the last step through a grid goes beyond the end.
NARROW = 2**31 - GROUPS * MOST_THREADS
#: As many elements as the type of a buffer says; the table knows better.
MANY = {32: 1 << 30, 64: 1 << 40}


class GroupLayout(NamedTuple):
    """What is known of the operands of a group of ops when its kernel is made.

    Attributes:
        letters: of operands, then of results, how each lies in a row.
        gathered: how many of the last operands are indices, which shift the first one.
        loops: how many there are over rows.
        threads: of a threadgroup.
        bits: of indices.
        across: whether neighbouring lanes have neighbouring rows, which lie side by side; else they share a row.
    """

    letters: str
    gathered: int
    loops: int
    threads: int
    bits: int
    across: bool

    def __str__(self) -> str:
        return f"{self.letters} {self.gathered} {self.loops} {self.threads} {self.bits} {self.across:d}"

    @classmethod
    def read(cls, text: str) -> GroupLayout:
        letters, *numbers, across = text.split(" ")
        return cls(letters, *map(int, numbers), across == "1")  # type: ignore[call-arg, arg-type]

    @property
    def table(self) -> Aval:
        """The type of the table."""
        size = self.loops + 1 + (self.loops + 2) * len(self.letters) + 2 * self.gathered
        return _table(size, self.bits)


class ScatterLayout(NamedTuple):
    """What is known of a scatter when its kernel is made: see `smelt.backends.gpu.strided_scatter`.

    Attributes:
        mode: of the scatter. indices: how many there are. loops: over the elements of a window.
        threads: of a threadgroup; where there are few, each owns places, else the group does.
        bits: of indices.
    """

    mode: str
    indices: int
    loops: int
    threads: int
    bits: int

    def __str__(self) -> str:
        return f"{SCATTER} {self.mode} {self.indices} {self.loops} {self.threads} {self.bits}"

    @classmethod
    def read(cls, text: str) -> ScatterLayout:
        _, mode, *numbers = text.split(" ")
        return cls(mode, *map(int, numbers))

    @property
    def table(self) -> Aval:
        """The type of the table."""
        return _table(3 + 2 * self.loops + 2 * self.indices, self.bits)


#: The first word of the layout of a scatter.
SCATTER = "scatter"


def _table(size: int, bits: int) -> Aval:
    return Aval((size,), dtypes.int32 if bits == 32 else dtypes.int64)
