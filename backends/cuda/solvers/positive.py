"""Cholesky factors. The rows of L are the columns of the upper factor of the transposed matrix."""

from __future__ import annotations

from ctypes import c_int64, c_void_p

from .. import driver
from .plan import UPPER, Addresses, Places, PlanOfMany, PlanOfOne


class Cholesky(PlanOfOne):
    """Factors by ``Xpotrf``."""

    def _arguments(self, a: c_void_p | None = None) -> tuple[object, ...]:
        n = c_int64(self.n)
        return UPPER, n, self.type, a, n, self.type

    def prepare(self) -> None:
        self.size("Xpotrf", *self._arguments())

    def compute(self, at: Places, stream: c_void_p | None) -> None:
        driver.copy(at.results[0], at.operands[0], self.count * self.nbytes, stream)
        for i in range(self.count):
            self.do("Xpotrf", *self._arguments(c_void_p(at.results[0] + i * self.nbytes)), *self.area(at, i))


class CholeskyOfMany(PlanOfMany):
    """Factors by ``potrfBatched``, which is the faster way for few large matrices, too."""

    rows = 512

    def prepare(self) -> None:
        self._addresses = Addresses(self.count, [self.nbytes])

    def compute(self, at: Places, stream: c_void_p | None) -> None:
        driver.copy(at.results[0], at.operands[0], self.count * self.nbytes, stream)
        (matrices,) = self._addresses.of(at.results[0])
        self.library.call(
            f"cusolverDn{self.letter}potrfBatched", self.library.handle, UPPER, self.n, matrices, self.n, self.info(at),
            self.count,
        )  # fmt: skip
