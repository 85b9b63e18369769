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
from .plan import JACOBI_ROWS, UPPER, Places, Plan, PlanOfMany, PlanOfOne


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
    """Eigenvalues by ``XsyevBatched``, which libraries have from CUDA 12.6 on."""

    @classmethod
    def takes(cls, library: Library, call: LibraryCall) -> bool:
        return super().takes(library, call) and library.has("cusolverDnXsyevBatched")

    def prepare(self) -> None:
        self._reserve_matrices(self.count)
        device, host = c_size_t(), c_size_t()
        sizes = ctypes.byref(device), ctypes.byref(host), c_int64(self.count)
        self._call("XsyevBatched_bufferSize", *self._arguments(), *sizes)
        self._work, self._work_bytes = self.reserve(device.value), device
        self._host, self._host_bytes = ctypes.create_string_buffer(max(host.value, 1)), host

    def compute(self, at: Places, stream: c_void_p | None) -> None:
        a = self._start(at, 0, self.count, stream)
        work = c_void_p(at.workspace + self._work), self._work_bytes, self._host, self._host_bytes
        arguments = self._arguments(c_void_p(a), c_void_p(at.results[0]))
        self._call("XsyevBatched", *arguments, *work, self.info(at), c_int64(self.count))

    def _call(self, name: str, *arguments: object) -> None:
        self.library.call(f"cusolverDn{name}", self.library.handle, self.library.options, *arguments)


class EighOfManySmall(_Symmetric, PlanOfMany):
    """Eigenvalues of small matrices by Jacobi's method, as older libraries have it."""

    @classmethod
    def takes(cls, library: Library, call: LibraryCall) -> bool:
        return super().takes(library, call) and call.operands[0].shape[-1] <= JACOBI_ROWS

    def prepare(self) -> None:
        self._reserve_matrices(self.count)
        self._options, length = c_void_p(), ctypes.c_int()
        self.library.call("cusolverDnCreateSyevjInfo", ctypes.byref(self._options))
        self._call("_bufferSize", None, None, ctypes.byref(length))
        self._length, self._work = length.value, self.reserve(length.value * self.element)

    def compute(self, at: Places, stream: c_void_p | None) -> None:
        a, work = self._start(at, 0, self.count, stream), c_void_p(at.workspace + self._work)
        self._call("", c_void_p(a), c_void_p(at.results[0]), work, self._length, self.info(at))

    def _call(self, suffix: str, a: c_void_p | None, w: c_void_p | None, *arguments: object) -> None:
        self.library.call(
            f"cusolverDn{self.letter}syevjBatched{suffix}", self.library.handle, int(self._has_vectors), UPPER, self.n,
            a, self.n, w, *arguments, self._options, self.count,
        )  # fmt: skip
