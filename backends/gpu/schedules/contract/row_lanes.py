"""What lanes of a simdgroup know of rows of its matrices, and how they tell each other."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any

from smelt.backends.memory import Memory
from smelt.ir import dtypes
from smelt.ir.scalar import INDEX, Scalar

from ..parts import split, times
from .positions import summed
from .simd_matrices import MATRIX, OWN, STRIPS, Matrices

#: Elements of three matrices for each of the strips: what lanes of a simdgroup tell each other.
EXCHANGED = 3 * STRIPS * MATRIX * MATRIX

Combine = Callable[[Scalar, Scalar], Scalar]


class RowLanes(ABC):
    """Rows of a simdgroup's strips of matrices, as its lanes see them.

    Attributes:
        kept: of how many rows a lane keeps what is known of them; other lanes keep the same of these rows.
    """

    kept: int

    def __init__(self, matrices: Matrices):
        self.k, self.matrices = matrices.k, matrices

    @abstractmethod
    def of_rows(self, elements: Sequence[Sequence[Scalar]], combine: Combine) -> list[Scalar]:
        """What `combine` makes of each row that a lane keeps something of, from its own elements of each strip."""

    @abstractmethod
    def beside(self, **known: Sequence[Scalar]) -> list[list[Any]]:
        """Matrices, one for each strip, whose rows have equal elements: what is known of the row, by its name."""

    @abstractmethod
    def rows(self) -> tuple[list[Scalar], Scalar]:
        """The rows that a lane keeps something of, in the simdgroup's strips; whether it is the first that does."""

    @abstractmethod
    def positions(self) -> tuple[list[Scalar], list[Scalar]]:
        """Row and column in a matrix of each of a lane's own elements."""


class ThroughMemory(RowLanes):
    """Where it is not specified which lane holds which element: by matrices in threadgroup memory, for two strips.

    A lane keeps what is known of the row of which it has half when a pair of matrices lies there.

    Args:
        memory: of the threadgroup. first: where the simdgroup's own part of it begins, `EXCHANGED` elements or more.
    """

    kept = 1

    def __init__(self, matrices: Matrices, memory: Memory, first: Scalar):
        super().__init__(matrices)
        self.memory, self.first = memory, first
        with self.k.named("own_place"):  # each lane writes half a row of a matrix
            self.place = summed(self.k, first, times(self.k.lane(), MATRIX // 2))

    def _tell(self, which: int, four: Sequence[Scalar]) -> None:
        """Half a row of each lane into a pair of matrices in the simdgroup's own memory."""
        k = self.k
        vector = k.empty_vector(dtypes.float32, len(four))
        for i, x in enumerate(four):
            vector = k.insert(x, vector, k.const(i, INDEX), dtypes.float32)
        k.store_vector(vector, self.memory, summed(k, self.place, which * STRIPS * MATRIX * MATRIX))

    def _told(self, which: int) -> list[Any]:
        """A pair of matrices from there."""
        first = which * STRIPS * MATRIX * MATRIX
        places = [summed(self.k, self.first, first + i * MATRIX * MATRIX) for i in range(STRIPS)]
        return [self.matrices.load(self.memory.memref, at, "COp", MATRIX, False) for at in places]

    def of_rows(self, elements: Sequence[Sequence[Scalar]], combine: Combine) -> list[Scalar]:
        k = self.k
        for i, matrix in enumerate([self.matrices.made(x, "COp", dtypes.float32) for x in elements]):
            self.matrices.keep(matrix, self.memory.memref, summed(k, self.first, i * MATRIX * MATRIX), MATRIX)
        k.simdgroup_barrier()
        with k.named("row_values"):
            vector = k.load_vector(self.memory, self.place, MATRIX // 2)
        found = [k.extract(vector, k.const(i, INDEX), dtypes.float32) for i in range(MATRIX // 2)]
        while len(found) > 1:
            found = [combine(x, y) for x, y in zip(found[::2], found[1::2])]
        return [combine(found[0], k.shuffle(found[0], 1))]

    def beside(self, **known: Sequence[Scalar]) -> list[list[Any]]:
        for which, (x,) in enumerate(known.values(), 1):
            self._tell(which, [x] * (MATRIX // 2))
        self.k.simdgroup_barrier()
        found = []
        for which, name in enumerate(known, 1):
            with self.k.named(name):
                found.append(self._told(which))
        return found

    def rows(self) -> tuple[list[Scalar], Scalar]:
        line, half = split(self.k, self.k.lane(), 2, "", "")
        return [line], half.eq(0)

    def positions(self) -> tuple[list[Scalar], list[Scalar]]:
        k, four = self.k, MATRIX // 2
        line, half = split(k, k.lane(), 2, "", "")
        numbers = [line & (MATRIX - 1)] * four, [half * four + i for i in range(four)]
        for at, given in enumerate(numbers):
            self._tell(at, [k.convert(k.convert(x, dtypes.int32), dtypes.float32) for x in given])
        k.simdgroup_barrier()
        of_rows, of_columns = self._told(0)[0], self._told(1)[0]
        with k.named("own_row"):
            rows = [self._position(of_rows, i) for i in range(OWN)]
        with k.named("own_column"):
            columns = [self._position(of_columns, i) for i in range(OWN)]
        k.simdgroup_barrier()
        return rows, columns

    def _position(self, matrix: Any, i: int) -> Scalar:
        k = self.k
        return k.convert(k.convert(self.matrices.element(matrix, i), dtypes.int32), INDEX)


class Shuffled(RowLanes):
    """Where it is known which lane holds which element: by shuffles.

    A lane keeps what is known of the rows of its own elements, one in each strip.

    Args:
        fragment: where a lane's elements begin, by the bits of its number (`Gpu.fragment`). strips: how many there are.
    """

    def __init__(self, matrices: Matrices, fragment: Sequence[tuple[int, int]], strips: int):
        super().__init__(matrices)
        self.fragment, self.kept = fragment, strips

    def of_rows(self, elements: Sequence[Sequence[Scalar]], combine: Combine) -> list[Scalar]:
        found = []
        for x, *others in elements:
            for other in others:
                x = combine(x, other)
            for bit, (row, _) in enumerate(self.fragment):
                if not row:
                    x = combine(x, self.k.shuffle(x, 1 << bit))
            found.append(x)
        return found

    def beside(self, **known: Sequence[Scalar]) -> list[list[Any]]:
        found = []
        for name, rows in known.items():
            with self.k.named(name):
                found.append([self.matrices.made([x] * OWN, "COp", dtypes.float32) for x in rows])
        return found

    def rows(self) -> tuple[list[Scalar], Scalar]:
        rows, columns = self.positions()
        return [summed(self.k, rows[0], i * MATRIX) for i in range(self.kept)], columns[0].eq(0)

    def positions(self) -> tuple[list[Scalar], list[Scalar]]:
        k, lane = self.k, self.k.lane()
        ways = []
        for along, name in enumerate(("own_row", "own_column")):
            with k.named(name):
                bits = [times(split(k, lane, 1 << bit, "", "")[0] & 1, steps[along])
                        for bit, steps in enumerate(self.fragment) if steps[along]]  # fmt: skip
                ways.append(summed(k, *bits))
        row, column = ways
        return [row] * OWN, [summed(k, column, i) for i in range(OWN)]
