"""Whether a BLAS multiplies right on this processor, and what to load it for if it does not.

A BLAS chooses its kernels by the processor. One that is new to it, or emulated, may get kernels that give wrong
products: OpenBLAS's for SME did on emulated aarch64. Products of small integers are exact, in any order, so a handful
of them tells.
"""

from __future__ import annotations

import ctypes
import itertools
import os
import platform
from collections.abc import Callable
from typing import Any

import numpy as np

#: What `OPENBLAS_CORETYPE` calls the processors that every one of the machine's kind is at least, by machine.
PLAIN_CORES = {"x86_64": "PRESCOTT", "amd64": "PRESCOTT", "aarch64": "ARMV8", "arm64": "ARMV8"}
#: Rows, columns, depth: more than a vector, no multiple of one.
SHAPES = ((35, 21, 19), (3, 40, 1))
_NUMBERS = {"s": np.float32, "d": np.float64, "c": np.complex64, "z": np.complex128}


def wrong_products(address: Callable[[str], int]) -> list[str]:
    """Names of the functions that give a wrong product: of ``sgemm``, ``dgemm``, ``cgemm``, ``sgemv``, ``ssyrk``, ...

    Args:
        address: where a function is, by its name without the library's own prefix and suffix.
    """
    rng = np.random.default_rng(0)
    wrong = []
    for letter, number in _NUMBERS.items():
        gemm, gemv = _gemm(address(letter + "gemm"), number), _gemv(address(letter + "gemv"), number)
        syrk = _syrk(address(letter + "syrk"), number)
        good_gemm = good_gemv = good_syrk = True
        for m, n, k in SHAPES:
            # NumPy's products of integers use no BLAS.
            a, b = (_integers(rng, letter in "cz", shape) for shape in ((m, k), (k, n)))
            c, v = _product(a, b), _product(a, b[:, :, :1])
            for left, right in itertools.product((False, True), repeat=2):
                good_gemm &= np.array_equal(gemm(a, b, left, right), c)
            good_gemv &= all(np.array_equal(gemv(a, b[:, :, 0], left), v[:, 0]) for left in (False, True))
            own = np.triu(_product(a, a.swapaxes(1, 2)))
            good_syrk &= all(np.array_equal(syrk(a, turned), own) for turned in (False, True))
        found = {"gemm": good_gemm, "gemv": good_gemv, "syrk": good_syrk}
        wrong += [letter + name for name, good in found.items() if not good]
    return wrong


def plain_core() -> str | None:
    """A kind of processor whose kernels run everywhere, in OpenBLAS's words; None if the user has chosen one, or for
    machines not known."""
    return None if os.environ.get("OPENBLAS_CORETYPE") else PLAIN_CORES.get(platform.machine().lower())


def _integers(rng: np.random.Generator, is_complex: bool, shape: tuple[int, ...]) -> np.ndarray:
    """Integers, or for complex numbers pairs of them: [2, rows, columns]."""
    return rng.integers(-4, 5, (2 if is_complex else 1, *shape))


def _product(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    if len(a) == 1:
        return a[0] @ b[0]
    return (a[0] @ b[0] - a[1] @ b[1]) + 1j * (a[0] @ b[1] + a[1] @ b[0])


def _numbers(x: np.ndarray, number: Any) -> np.ndarray:
    return np.ascontiguousarray(x[0] + 1j * x[1] if len(x) == 2 else x[0], dtype=number)


_PLAIN, _TRANSPOSED, _ROW_MAJOR, _UPPER = 111, 112, 101, 121
_INT, _LONG, _POINTER = ctypes.c_int, ctypes.c_int64, ctypes.c_void_p


def _factors(number: Any) -> tuple[Any, Any, Any, Any]:
    """The type of alpha and beta, one, zero, and what must live as long as these are used."""
    if issubclass(number, np.complexfloating):
        held = np.array([1, 0], number)
        return _POINTER, held.ctypes.data, held.ctypes.data + held.itemsize, held
    return (ctypes.c_float if number is np.float32 else ctypes.c_double), 1.0, 0.0, None


def _gemm(address: int, number: Any) -> Callable[[np.ndarray, np.ndarray, bool, bool], np.ndarray]:
    factor, one, zero, _held = _factors(number)
    call = ctypes.CFUNCTYPE(
        None, _INT, _INT, _INT, _LONG, _LONG, _LONG, factor, _POINTER, _LONG, _POINTER, _LONG, factor, _POINTER, _LONG
    )(address)

    def gemm(a: np.ndarray, b: np.ndarray, left: bool, right: bool) -> np.ndarray:
        (m, k), n = a.shape[1:], b.shape[2]
        x, y = _numbers(a, number), _numbers(b, number)
        x, y = np.ascontiguousarray(x.T) if left else x, np.ascontiguousarray(y.T) if right else y
        c = np.full((m, n), np.nan, number)
        flags = [_TRANSPOSED if t else _PLAIN for t in (left, right)]
        places = x.ctypes.data, x.shape[1], y.ctypes.data, y.shape[1]
        call(_ROW_MAJOR, *flags, m, n, k, one, *places, zero, c.ctypes.data, n)
        return c

    gemm.__dict__["held"] = _held
    return gemm


def _gemv(address: int, number: Any) -> Callable[[np.ndarray, np.ndarray, bool], np.ndarray]:
    factor, one, zero, _held = _factors(number)
    call = ctypes.CFUNCTYPE(
        None, _INT, _INT, _LONG, _LONG, factor, _POINTER, _LONG, _POINTER, _LONG, factor, _POINTER, _LONG
    )(address)

    def gemv(a: np.ndarray, b: np.ndarray, left: bool) -> np.ndarray:
        x, y = _numbers(a, number), _numbers(b[:, :, None], number)
        x = np.ascontiguousarray(x.T) if left else x
        c = np.full(a.shape[1], np.nan, number)
        flag = _TRANSPOSED if left else _PLAIN
        call(_ROW_MAJOR, flag, *x.shape, one, x.ctypes.data, x.shape[1], y.ctypes.data, 1, zero, c.ctypes.data, 1)
        return c

    gemv.__dict__["held"] = _held
    return gemv


def _syrk(address: int, number: Any) -> Callable[[np.ndarray, bool], np.ndarray]:
    factor, one, zero, _held = _factors(number)
    call = ctypes.CFUNCTYPE(
        None, _INT, _INT, _INT, _LONG, _LONG, factor, _POINTER, _LONG, factor, _POINTER, _LONG
    )(address)  # fmt: skip

    def syrk(a: np.ndarray, turned: bool) -> np.ndarray:
        """The upper triangle of a·aᵀ, of a or of aᵀ as it lies."""
        n, k = a.shape[1:]
        x = _numbers(a.swapaxes(1, 2) if turned else a, number)
        c = np.zeros((n, n), number)
        flag = _TRANSPOSED if turned else _PLAIN
        call(_ROW_MAJOR, _UPPER, flag, n, k, one, x.ctypes.data, x.shape[1], zero, c.ctypes.data, n)
        return c

    syrk.__dict__["held"] = _held
    return syrk
