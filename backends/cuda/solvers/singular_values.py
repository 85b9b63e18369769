"""Singular values and vectors.

Of the transposed matrix, whose factors change places: the columns of its left one are the rows of Vᵀ, and those of its
right one are those of U. The CPU is asked where a matrix is not finite, as the op knows what that means.
"""

from __future__ import annotations

import ctypes
from ctypes import c_int64, c_void_p

from smelt.backends.gpu.library import LibraryCall

from .. import driver
from .library import Library
from .plan import Places, Plan, PlanOfMany, PlanOfOne

#: Rows and columns of which ``gesvdjBatched`` knows no more.
_MOST_ROWS = 32


class _Jacobi(Plan):
    """By Jacobi's method, to the last bits: what does not converge is the CPU's."""

    dtypes = ("float32", "float64")
    is_checked = True

    def _reserve_options(self) -> None:
        self._full = bool(dict(self.call.attributes).get("full", False))
        self._has_vectors = len(self.call.results) == 3
        self._options = c_void_p()
        self.library.call("cusolverDnCreateGesvdjInfo", ctypes.byref(self._options))


class Svd(_Jacobi, PlanOfOne):
    """Values and vectors by ``gesvdj``, which takes a third of the time of ``gesvd``."""

    scale = 2

    def prepare(self) -> None:
        self._reserve_options()
        self._copy, length = self.reserve(self.nbytes), ctypes.c_int()
        self._call("gesvdj_bufferSize", None, None, None, None, ctypes.byref(length))
        self._length, self._work = length.value, self.reserve(length.value * self.element)

    def compute(self, at: Places, stream: c_void_p | None) -> None:
        m, n, k = self.m, self.n, min(self.m, self.n)
        copy, work = at.workspace + self._copy, c_void_p(at.workspace + self._work)
        each = [x * self.element for x in (m * (m if self._full else k), k, n * (n if self._full else k))]
        for i in range(self.count):
            driver.copy(copy, at.operands[0] + i * self.nbytes, self.nbytes, stream)
            u, s, vt = (c_void_p(start + i * step) for start, step in zip(at.results, each))
            self._call("gesvdj", c_void_p(copy), s, vt, u, work, self._length, self.info(at, i))

    def _call(
        self, name: str, a: c_void_p | None, s: c_void_p | None, left: c_void_p | None, right: c_void_p | None,
        *arguments: object,
    ) -> None:  # fmt: skip
        m, n = self.m, self.n
        self.library.call(
            f"cusolverDn{self.letter}{name}", self.library.handle, 1, int(not self._full), n, m, a, n, s, left, n,
            right, m, *arguments, self._options,
        )  # fmt: skip


class SvdOfManySmall(_Jacobi, PlanOfMany):
    """Values and vectors of small matrices by ``gesvdjBatched``, which finds all vectors, wanted or not."""

    @classmethod
    def takes(cls, library: Library, call: LibraryCall) -> bool:
        return super().takes(library, call) and max(call.operands[0].shape[-2:]) <= _MOST_ROWS

    def prepare(self) -> None:
        self._reserve_options()
        # What has been laid out for singular values is the transposed matrix.
        is_turned = 0 in self.call.laid_of
        self._rows, self._columns = (self.m, self.n) if is_turned else (self.n, self.m)
        self._copy = self.reserve(self.count * self.nbytes)
        self._left = self.reserve(self.count * self._rows**2 * self.element)
        self._right = self.reserve(self.count * self._columns**2 * self.element)
        length = ctypes.c_int()
        self._call("_bufferSize", None, None, None, None, ctypes.byref(length))
        self._length, self._work = length.value, self.reserve(length.value * self.element)

    def compute(self, at: Places, stream: c_void_p | None) -> None:
        copy, left, right, work = (at.workspace + x for x in (self._copy, self._left, self._right, self._work))
        driver.copy(copy, at.operands[0], self.count * self.nbytes, stream)
        s = at.results[1 if self._has_vectors else 0]
        found = (c_void_p(x) for x in (copy, s, left, right))
        self._call("", *found, c_void_p(work), self._length, self.info(at))
        if self._has_vectors:
            u, _, vt = at.results
            self._take(vt, left, self._rows, stream)
            self._take(u, right, self._columns, stream)

    def _take(self, target: int, source: int, rows: int, stream: c_void_p | None) -> None:
        """The columns that are wanted of square matrices: the first ones, one behind the other."""
        wanted = rows if self._full else min(self.m, self.n)
        step = rows * self.element
        driver.copy_rows(target, wanted * step, source, rows * step, wanted * step, self.count, stream)

    def _call(
        self, suffix: str, a: c_void_p | None, s: c_void_p | None, left: c_void_p | None, right: c_void_p | None,
        *arguments: object,
    ) -> None:  # fmt: skip
        m, n = self._rows, self._columns
        self.library.call(
            f"cusolverDn{self.letter}gesvdjBatched{suffix}", self.library.handle, int(self._has_vectors), m, n, a, m, s,
            left, m, right, n, *arguments, self._options, self.count,
        )  # fmt: skip


class SingularValues(PlanOfOne):
    """Values alone, by ``Xgesvd``, of matrices that are no wider than high."""

    dtypes = ("float32", "float64")
    is_checked = True
    scale = 4  # of 512 rows it takes as long as LAPACK on sixteen cores

    def _arguments(self, a: c_void_p | None = None, s: c_void_p | None = None) -> tuple[object, ...]:
        m, n = (c_int64(x) for x in sorted((self.m, self.n), reverse=True))
        none, kind = ctypes.c_char(b"N"), self.type
        return none, none, m, n, kind, a, m, kind, s, kind, None, m, kind, None, n, kind

    def prepare(self) -> None:
        self._copy = self.reserve(self.nbytes)
        self.size("Xgesvd", *self._arguments())

    def compute(self, at: Places, stream: c_void_p | None) -> None:
        copy = at.workspace + self._copy
        for i in range(self.count):
            driver.copy(copy, at.operands[0] + i * self.nbytes, self.nbytes, stream)
            s = c_void_p(at.results[0] + i * min(self.m, self.n) * self.element)
            self.do("Xgesvd", *self._arguments(c_void_p(copy), s), *self.area(at, i))
