"""LU factors, and solutions, inverses and determinants by them.

Of the transposed matrix, which is what lies by rows: solutions ask for the transposed of that again, its inverse is the
transposed of the inverse, and its determinant is the same. Factors that a user sees are those of columns.
"""

from __future__ import annotations

import ctypes
from ctypes import c_int64, c_void_p
from typing import Any

from smelt.backends.gpu.library import LibraryCall

from .. import driver
from .library import Library
from .plan import AS_IT_IS, TRANSPOSED, Addresses, Places, Plan, PlanOfMany, PlanOfOne, joined_columns

#: Rows of which ``matinvBatched`` knows no more.
_INVERSE_ROWS = 32
#: Elements of a matrix of which functions without an X in their names know no more.
_MOST_ELEMENTS = (1 << 31) - 1


class _Solver(PlanOfOne):
    """Factors by ``Xgetrf`` of a copy of each matrix, and what ``Xgetrs`` makes of columns that lie in the result."""

    needs_blas = False
    transposed = AS_IT_IS

    def _columns(self) -> int:
        """How many columns a result has."""
        raise NotImplementedError

    def _right(self, at: Places) -> tuple[int, int]:
        """Where the columns lie of the first matrix, and bytes to those of the next."""
        raise NotImplementedError

    def prepare(self) -> None:
        self._factors, self._pivots = self.reserve(self.nbytes), self.reserve(8 * self.n)
        self._unused = self.reserve(4)
        self._each = self._columns() * self.n * self.element
        self.size("Xgetrf", *self._arguments())

    def _arguments(self, a: c_void_p | None = None, pivots: c_void_p | None = None) -> tuple[object, ...]:
        n = c_int64(self.n)
        return n, n, self.type, a, n, *([] if a is None else [pivots]), self.type

    def compute(self, at: Places, stream: c_void_p | None) -> None:
        factors, pivots = (c_void_p(at.workspace + x) for x in (self._factors, self._pivots))
        right, step = self._right(at)
        n, k = c_int64(self.n), c_int64(self._columns())
        for i in range(self.count):
            driver.copy(at.workspace + self._factors, at.operands[0] + i * self.nbytes, self.nbytes, stream)
            x = at.results[0] + i * self._each
            driver.copy(x, right + i * step, self._each, stream)
            self.do("Xgetrf", *self._arguments(factors, pivots), *self.area(at, i))
            # The last argument is a number that says nothing: whose arguments are wrong.
            unused = c_void_p(at.workspace + self._unused)
            self.do("Xgetrs", self.transposed, n, k, self.type, factors, n, pivots, self.type, c_void_p(x), n, unused)


class Solve(_Solver):
    """Solutions, a matrix at a time."""

    transposed = TRANSPOSED

    def _columns(self) -> int:
        return joined_columns(self.call)

    def _right(self, at: Places) -> tuple[int, int]:
        return at.operands[1], self._each


class Inverse(_Solver):
    """Inverses, a matrix at a time: what solves for the columns of 1."""

    def _columns(self) -> int:
        return self.n

    def _right(self, at: Places) -> tuple[int, int]:
        return at.beside[0], 0


class _Many(PlanOfMany):
    """Factors by ``getrfBatched``."""

    needs_blas = True

    def _factor(self, matrices: c_void_p, pivots: int, info: c_void_p) -> None:
        self._blas("getrfBatched", self.n, matrices, self.n, c_void_p(pivots), info, self.count)

    def _blas(self, name: str, *arguments: object) -> None:
        self.blas.call(f"cublas{self.letter}{name}", self.blas.handle, *arguments)


class SolveOfMany(_Many):
    """Solutions by ``getrsBatched``."""

    def prepare(self) -> None:
        self._factors, self._pivots = self.reserve(self.count * self.nbytes), self.reserve(4 * self.count * self.n)
        self._columns = joined_columns(self.call)
        self._each = self._columns * self.n * self.element
        self._addresses = Addresses(self.count, [self.nbytes, self._each])

    def compute(self, at: Places, stream: c_void_p | None) -> None:
        factors, pivots, (x,) = at.workspace + self._factors, at.workspace + self._pivots, at.results
        driver.copy(factors, at.operands[0], self.count * self.nbytes, stream)
        driver.copy(x, at.operands[1], self.count * self._each, stream)
        matrices, columns = self._addresses.of(factors, x)
        self._factor(matrices, pivots, self.info(at))
        whose = ctypes.c_int()  # arguments are wrong: a number of the host
        self._blas(
            "getrsBatched", TRANSPOSED, self.n, self._columns, matrices, self.n, c_void_p(pivots), columns, self.n,
            ctypes.byref(whose), self.count,
        )  # fmt: skip


class InverseOfMany(_Many):
    """Inverses by ``matinvBatched``, or by ``getriBatched`` of factors."""

    def prepare(self) -> None:
        self._is_small = self.n <= _INVERSE_ROWS
        self._addresses = Addresses(self.count, [self.nbytes] * 2)
        if not self._is_small:
            self._factors, self._pivots = self.reserve(self.count * self.nbytes), self.reserve(4 * self.count * self.n)
            self._singular = self.reserve(4 * self.count)

    def compute(self, at: Places, stream: c_void_p | None) -> None:
        n = self.n
        if self._is_small:
            matrices, inverses = self._addresses.of(at.operands[0], at.results[0])
            self._blas("matinvBatched", n, matrices, n, inverses, n, self.info(at), self.count)
            return
        factors, pivots = at.workspace + self._factors, at.workspace + self._pivots
        driver.copy(factors, at.operands[0], self.count * self.nbytes, stream)
        matrices, inverses = self._addresses.of(factors, at.results[0])
        self._factor(matrices, pivots, self.info(at))
        again = c_void_p(at.workspace + self._singular)  # what has been said already
        self._blas("getriBatched", n, matrices, n, c_void_p(pivots), inverses, n, again, self.count)


class _Seen(Plan):
    """Factors that are a result, or of which kernels make one: singular matrices have some, too."""

    can_fail = False

    def _start(self, at: Places, stream: c_void_p | None) -> None:
        """Let what is to be factored lie where the factors will."""
        driver.copy(at.results[0], at.operands[0], self.count * self.nbytes, stream)


class Factors(_Seen, PlanOfOne):
    """Factors by ``getrf``, and numbers of rows that were exchanged."""

    @classmethod
    def takes(cls, library: Library, call: LibraryCall) -> bool:
        m, n = call.operands[0].shape[-2:]
        return super().takes(library, call) and m * n <= _MOST_ELEMENTS

    def _shape(self) -> tuple[int, int]:
        """Rows and columns, as the library sees them."""
        return self.n, self.m

    def prepare(self) -> None:
        length, (m, n) = ctypes.c_int(), self._shape()
        self._call("getrf_bufferSize", m, n, None, m, ctypes.byref(length))
        self._work = self.reserve(length.value * self.element)

    def compute(self, at: Places, stream: c_void_p | None) -> None:
        self._start(at, stream)
        (m, n), k = self._shape(), min(self.m, self.n)
        for i in range(self.count):
            a, pivots = c_void_p(at.results[0] + i * self.nbytes), c_void_p(at.results[1] + 4 * i * k)
            self._call("getrf", m, n, a, m, c_void_p(at.workspace + self._work), pivots, self.info(at, i))

    def _call(self, name: str, *arguments: object) -> None:
        self.library.call(f"cusolverDn{self.letter}{name}", self.library.handle, *arguments)


class FactorsOfMany(_Seen, _Many):
    """Factors by ``getrfBatched``, and numbers of rows that were exchanged."""

    def prepare(self) -> None:
        self._addresses = Addresses(self.count, [self.nbytes])

    def compute(self, at: Places, stream: c_void_p | None) -> None:
        self._start(at, stream)
        self._factor(self._addresses.of(at.results[0])[0], at.results[1], self.info(at))


class Lu(Factors):
    """Factors of columns; the rows' numbers are exchanged as the rows were, by ``laswp``."""

    def _shape(self) -> tuple[int, int]:
        return self.m, self.n

    def compute(self, at: Places, stream: c_void_p | None) -> None:
        super().compute(at, stream)
        m, k = self.m, min(self.m, self.n)
        _, numbers = at.beside
        driver.copy(at.results[2], numbers, 4 * self.count * m, stream)
        for i in range(self.count):
            order, pivots = c_void_p(at.results[2] + 4 * i * m), c_void_p(at.results[1] + 4 * i * k)
            self.library.call("cusolverDnSlaswp", self.library.handle, 1, order, m, 1, k, pivots, 1)


class LuOfMany(FactorsOfMany):
    """Factors of columns; the rows' numbers are exchanged as the rows were by solving for them with a matrix 1."""

    @classmethod
    def takes(cls, library: Library, call: LibraryCall) -> bool:
        m, n = call.operands[0].shape[-2:]
        return super().takes(library, call) and m == n

    def prepare(self) -> None:
        super().prepare()
        self._orders = Addresses(self.count, [0, 4 * self.n])

    def compute(self, at: Places, stream: c_void_p | None) -> None:
        super().compute(at, stream)
        n, (one, numbers) = self.n, at.beside
        driver.copy(at.results[2], numbers, 4 * self.count * n, stream)
        ones, orders = self._orders.of(one, at.results[2])
        whose: Any = ctypes.byref(ctypes.c_int())
        self.blas.call(
            "cublasSgetrsBatched", self.blas.handle, AS_IT_IS, n, 1, ones, n, c_void_p(at.results[1]), orders, n, whose,
            self.count,
        )  # fmt: skip
