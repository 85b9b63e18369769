"""Symmetric eigenproblems.

What lies below the diagonal lies above that of the transposed matrix, whose eigenvectors are the same. The CPU is asked
where a matrix is not finite, as the op knows what that means.
"""

from __future__ import annotations

import ctypes
from ctypes import c_int64, c_size_t, c_void_p

from smelt.backends.gpu.library import LibraryCall

from .. import driver
from .library import Library
from .plan import UPPER, Places, Plan, PlanOfMany, PlanOfOne

#: Matrices of one call of ``XsyevBatched``, which refuses more than some 32 thousand.
_MOST_AT_ONCE = 16384


class _Symmetric(Plan):
    """Vectors come to lie where the matrices were: in the result, or in the workspace where nobody wants them."""

    dtypes = ("float32", "float64")
    is_checked = True

    def _reserve_matrices(self, matrices: int) -> None:
        self._has_vectors = len(self.call.results) == 2
        self._matrices = 0 if self._has_vectors else self.reserve(matrices * self.nbytes)

    def _start(self, at: Places, matrix: int, matrices: int, stream: c_void_p | None) -> int:
        """Let matrices lie where their vectors will; where that is."""
        found = at.results[1] + matrix * self.nbytes if self._has_vectors else at.workspace + self._matrices
        driver.copy(found, at.operands[0] + matrix * self.nbytes, matrices * self.nbytes, stream)
        return found

    def _arguments(self, a: c_void_p | None = None, w: c_void_p | None = None) -> tuple[object, ...]:
        n = c_int64(self.n)
        return int(self._has_vectors), UPPER, n, self.type, a, n, self.type, w, self.type


class Eigh(_Symmetric, PlanOfOne):
    """Eigenvalues by ``Xsyevd``."""

    def prepare(self) -> None:
        self._reserve_matrices(1)
        self.size("Xsyevd", *self._arguments())

    def compute(self, at: Places, stream: c_void_p | None) -> None:
        for i in range(self.count):
            a, w = self._start(at, i, 1, stream), at.results[0] + i * self.n * self.element
            self.do("Xsyevd", *self._arguments(c_void_p(a), c_void_p(w)), *self.area(at, i))


class EighOfMany(_Symmetric, PlanOfMany):
    """Eigenvalues by ``XsyevBatched``, which libraries have from CUDA 12.6 on. The older ``syevjBatched`` was seen to
    give the diagonal of a matrix for its eigenvalues."""

    @classmethod
    def takes(cls, library: Library, call: LibraryCall) -> bool:
        return super().takes(library, call) and library.has("cusolverDnXsyevBatched")

    def prepare(self) -> None:
        self._reserve_matrices(self.count)
        device, host = c_size_t(), c_size_t()
        area = length = 0
        for matrices in {min(self.count, _MOST_AT_ONCE), self.count % _MOST_AT_ONCE or self.count}:
            sizes = ctypes.byref(device), ctypes.byref(host), c_int64(min(matrices, _MOST_AT_ONCE))
            self.do("XsyevBatched_bufferSize", *self._arguments(), *sizes)
            area, length = max(area, device.value), max(length, host.value)
        self._work, self._work_bytes = self.reserve(area), c_size_t(area)
        self._host, self._host_bytes = ctypes.create_string_buffer(max(length, 1)), c_size_t(length)

    def compute(self, at: Places, stream: c_void_p | None) -> None:
        start = self._start(at, 0, self.count, stream)
        work = c_void_p(at.workspace + self._work), self._work_bytes, self._host, self._host_bytes
        for i in range(0, self.count, _MOST_AT_ONCE):
            a, w = start + i * self.nbytes, at.results[0] + i * self.n * self.element
            matrices = c_int64(min(_MOST_AT_ONCE, self.count - i))
            self.do("XsyevBatched", *self._arguments(c_void_p(a), c_void_p(w)), *work, self.info(at, i), matrices)
