"""Triangular systems by cuBLAS.

By rows, x with A·x = b is to it x with xᵀ·Aᵀ = bᵀ, and a lower matrix is an upper one. Where one matrix is on the left
of a whole batch, columns have been laid out one behind the other, and are solved for with its transposed.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from ctypes import c_void_p

from .. import driver
from .plan import AS_IT_IS, TRANSPOSED, UPPER, Addresses, Places, Plan, PlanOfMany, PlanOfOne, joined_columns, number

#: cublasSideMode_t, cublasFillMode_t and cublasDiagType_t.
_LEFT, _RIGHT, _LOWER, _ANY_DIAGONAL = 0, 1, 0, 0


class _Substitution(Plan):
    """The arguments of both ways. Zeros on a diagonal have been counted before."""

    can_fail = False
    is_checked = True
    needs_blas = True

    def prepare(self) -> None:
        call = self.call
        self._columns = joined_columns(call)
        self._each = self._columns * self.n * self.element
        self._addresses = Addresses(self.count, [self.nbytes, self._each])

    def compute(self, at: Places, stream: c_void_p | None) -> None:
        (a, b), (x,) = at.operands, at.results
        driver.copy(x, b, self.count * self._each, stream)
        self._substitute(a, x)

    def _substitute(self, a: int, x: int) -> None:
        """Solve for what is to become the solution."""
        raise NotImplementedError

    def _arguments(self, a: c_void_p, x: c_void_p) -> Sequence[object]:
        n, k = self.n, self._columns
        is_upper = dict(self.call.attributes)["upper"]
        uplo, one = _LOWER if is_upper else UPPER, number(self.call.operands[0].dtype, 1)
        one_left, batch = (math.prod(x.shape[:-2]) for x in (self.call.operands[0], self.call.results[0]))
        if k == 1 or one_left == 1 < batch:
            return _LEFT, uplo, TRANSPOSED, _ANY_DIAGONAL, n, k, one, a, n, x, n
        return _RIGHT, uplo, AS_IT_IS, _ANY_DIAGONAL, k, n, one, a, n, x, k


class SolveTriangular(_Substitution, PlanOfOne):
    """Solutions by ``trsm``."""

    def _substitute(self, a: int, x: int) -> None:
        for i in range(self.count):
            places = c_void_p(a + i * self.nbytes), c_void_p(x + i * self._each)
            self.blas.call(f"cublas{self.letter}trsm_v2", self.blas.handle, *self._arguments(*places))


class SolveTriangularOfMany(_Substitution, PlanOfMany):
    """Solutions by ``trsmBatched``."""

    def _substitute(self, a: int, x: int) -> None:
        arguments = self._arguments(*self._addresses.of(a, x))
        self.blas.call(f"cublas{self.letter}trsmBatched", self.blas.handle, *arguments, self.count)


