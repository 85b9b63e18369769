"""Singular values and vectors.

Of the transposed matrix, whose factors change places, or of what has been laid out. The CPU is asked where a matrix is
not finite, as the op knows what that means, and where iterations do not converge.
"""

from __future__ import annotations

import ctypes
import sys
from ctypes import c_int64, c_void_p
from typing import Any

import numpy as np

from smelt.backends.gpu.library import LibraryCall
from smelt.backends.gpu.schedules.factorizations import by_jacobi

from .. import driver
from .library import Library
from .plan import Places, Plan, PlanOfMany, PlanOfOne

#: How often Jacobi's method goes over all pairs of columns before it gives up. It converges quadratically, after some
#: ten times: what it is stopped by is its tolerance.
_MOST_SWEEPS = 400


class _SingularValues(Plan):
    dtypes = ("float32", "float64")
    is_checked = True

    @property
    def _has_vectors(self) -> bool:
        return len(self.call.results) == 3

    @property
    def _full(self) -> bool:
        return bool(dict(self.call.attributes).get("full", False))

    @property
    def _is_turned(self) -> bool:
        """Whether matrices have been laid out by columns: the library knows them as they are."""
        return 0 in self.call.laid_of


class Svd(_SingularValues, PlanOfOne):
    """By QR iterations, of matrices that are no wider than high. (``gesvdj`` takes a third of the time, but was seen to
    be off by 3e-4 of float32's matrices of 512 rows.)"""

    scale = 4  # of 512 rows it takes as long as LAPACK on sixteen cores

    @classmethod
    def takes(cls, library: Library, call: LibraryCall) -> bool:
        """Vectors that are expected as Jacobi's method has them are not its."""
        has_others = len(call.results) == 3 and by_jacobi(call.operands[0])
        return super().takes(library, call) and not has_others

    def _arguments(
        self, a: c_void_p | None = None, s: c_void_p | None = None, left: c_void_p | None = None,
        right: c_void_p | None = None,
    ) -> tuple[object, ...]:  # fmt: skip
        m, n = (c_int64(x) for x in sorted((self.m, self.n), reverse=True))
        job, kind = ctypes.c_char(b"N" if not self._has_vectors else b"A" if self._full else b"S"), self.type
        return job, job, m, n, kind, a, m, kind, s, kind, left, m, kind, right, n, kind

    def prepare(self) -> None:
        self._copy = self.reserve(self.nbytes)
        self.size("Xgesvd", *self._arguments())

    def compute(self, at: Places, stream: c_void_p | None) -> None:
        copy, steps = at.workspace + self._copy, [x.aval.nbytes // self.count for x in self.call.results]
        for i in range(self.count):
            driver.copy(copy, at.operands[0] + i * self.nbytes, self.nbytes, stream)
            found = [c_void_p(start + i * step) for start, step in zip(at.results, steps)]
            if self._has_vectors:
                u, s, vt = found
                found = [s, u, vt] if self._is_turned else [s, vt, u]
            self.do("Xgesvd", *self._arguments(c_void_p(copy), *found), *self.area(at, i))


class SvdOfManySmall(_SingularValues, PlanOfMany):
    """By ``gesvdjBatched``, which finds all vectors, wanted or not."""

    @classmethod
    def takes(cls, library: Library, call: LibraryCall) -> bool:
        return super().takes(library, call) and by_jacobi(call.operands[0])

    def prepare(self) -> None:
        self._options = c_void_p()
        self.library.call("cusolverDnCreateGesvdjInfo", ctypes.byref(self._options))
        exact = float(np.finfo(self.call.operands[0].dtype).eps)
        self.library.call("cusolverDnXgesvdjSetTolerance", self._options, ctypes.c_double(exact))
        self.library.call("cusolverDnXgesvdjSetMaxSweeps", self._options, _MOST_SWEEPS)
        self._rows, self._columns = (self.m, self.n) if self._is_turned else (self.n, self.m)
        self._copy = self.reserve(self.count * self.nbytes)
        self._left = self.reserve(self.count * self._rows**2 * self.element)
        self._right = self.reserve(self.count * self._columns**2 * self.element)
        length = ctypes.c_int()
        self._call("_bufferSize", None, None, None, None, ctypes.byref(length))
        self._length, self._work = length.value, self.reserve(length.value * self.element)

    def __del__(self, is_finalizing: Any = sys.is_finalizing) -> None:
        if not is_finalizing() and getattr(self, "_options", None) and not driver.is_forked():
            self.library.status("cusolverDnDestroyGesvdjInfo", self._options)

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
