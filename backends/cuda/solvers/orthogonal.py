"""QR factors. R is what the first call leaves of a matrix above its diagonal, Q the product of what lies below."""

from __future__ import annotations

import ctypes
from ctypes import c_int64, c_void_p

from .. import driver
from .plan import Places, PlanOfOne


class Qr(PlanOfOne):
    """Factors by ``Xgeqrf``, and ``orgqr``.

    Of many small matrices cuBLAS knows R and the reflections (``geqrfBatched``), but not their product: kernels would
    have to make Q of them, as A·R⁻¹ is not orthogonal where A is nearly singular.
    """

    can_fail = False

    def _arguments(self, a: c_void_p | None = None, turns: c_void_p | None = None) -> tuple[object, ...]:
        m, n = c_int64(self.m), c_int64(self.n)
        return m, n, self.type, a, m, self.type, turns, self.type

    def _products(self, q: c_void_p | None = None, turns: c_void_p | None = None) -> tuple[object, ...]:
        k = min(self.m, self.n)
        return self.library.handle, self.m, k, k, q, self.m, turns

    def prepare(self) -> None:
        self._name = f"cusolverDn{self.letter}{'ungqr' if self.letter == 'C' else 'orgqr'}"
        self.size("Xgeqrf", *self._arguments())
        length = ctypes.c_int()
        self.library.call(f"{self._name}_bufferSize", *self._products(), ctypes.byref(length))
        self._length, self._work = length.value, self.reserve(length.value * self.element)
        self._turns = self.reserve(min(self.m, self.n) * self.element)

    def compute(self, at: Places, stream: c_void_p | None) -> None:
        turns, work = (c_void_p(at.workspace + x) for x in (self._turns, self._work))
        of_q = self.m * min(self.m, self.n) * self.element
        driver.copy(at.results[1], at.operands[0], self.count * self.nbytes, stream)
        for i in range(self.count):
            q, r = at.results[0] + i * of_q, at.results[1] + i * self.nbytes
            self.do("Xgeqrf", *self._arguments(c_void_p(r), turns), *self.area(at, i))
            driver.copy(q, r, of_q, stream)
            self.library.call(self._name, *self._products(c_void_p(q), turns), work, self._length, self.info(at, i))
