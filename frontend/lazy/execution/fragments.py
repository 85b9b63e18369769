"""What steps of plans are made into, kept for the next plan in which a step finds its operands lying the same way."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import NamedTuple

import numpy as np

from smelt.backends.strided import Laid
from smelt.ir.aval import Aval
from smelt.ir.strided_layout import StridedLayout
from smelt.runtime import Buffer, Executable, LruCache

from .strided import Kernel


class Placed(NamedTuple):
    """An array of a plan: the number of its memory, its type, and where it lies."""

    memory: int
    aval: Aval
    place: StridedLayout

    @property
    def is_whole(self) -> bool:
        return self.place.is_whole(self.aval.shape)

    def laid(self, full: bool) -> Laid:
        return Laid(self.place, full)


class Table:
    """The numbers that a kernel for all sizes is told.

    Attributes:
        numbers: on the host. buffer: on the device, as soon as a plan is ready to run.
    """

    __slots__ = ("buffer", "numbers")

    def __init__(self, numbers: np.ndarray):
        self.numbers = numbers
        self.buffer: Buffer | None = None


class Launch(NamedTuple):
    """A step of a plan.

    Attributes:
        program: what runs; a kernel for all sizes may be there only when the plan runs.
        table: of a kernel for all sizes; None: it is a program, which makes its results.
        read, written: numbers of memories.
    """

    program: Executable | Kernel
    table: Table | None
    read: tuple[int, ...]
    written: tuple[int, ...]


class Fragment:
    """A part of a plan. Memories are counted from those of its operands on.

    Attributes:
        launches: in order. memories: the types of those that it makes.
        constants: which of them hold what. results: where these are.
        without_sizes: whether an op runs as a kernel for all sizes. plans: how many it is part of.
    """

    __slots__ = ("constants", "launches", "memories", "plans", "results", "without_sizes")

    def __init__(
        self, launches: Sequence[Launch], memories: Sequence[Aval], constants: dict[int, Buffer],
        results: Sequence[Placed], without_sizes: bool,
    ):  # fmt: skip
        self.launches, self.memories, self.constants, self.results = launches, memories, constants, results
        self.without_sizes, self.plans = without_sizes, 0

    @property
    def nbytes(self) -> int:
        constants = sum([b.aval.nbytes for b in self.constants.values()])
        return 1_000 + 500 * len(self.launches) + 300 * len(self.results) + constants


class Recorder(NamedTuple):
    """Numbers of memories, as a fragment counts them: those of its operands first."""

    operands: tuple[int, ...]
    first: int  #: number of the first memory that is made

    def number(self, memory: int) -> int:
        return memory - self.first + len(self.operands) if memory >= self.first else self.operands.index(memory)

    def launch(self, step: Launch) -> Launch:
        read, written = (tuple(map(self.number, numbers)) for numbers in (step.read, step.written))
        return step._replace(read=read, written=written)


def key_of(what: Hashable, read: Sequence[Placed], memories: Sequence[Aval]) -> Hashable:
    """What the fragment of a step is found by: how its operands lie, and which of them share their memory."""
    numbers = [x.memory for x in read]
    lie = [(x.aval.shape, x.aval.dtype, x.place, memories[x.memory].shape) for x in read]
    return what, *lie, *map(numbers.index, numbers)


#: By `key_of`.
fragments = LruCache(weigh=lambda fragment: fragment.nbytes)
#: Small constants on devices, by their type and bytes.
constants = LruCache(weigh=lambda buffer: 500 + buffer.aval.nbytes)
