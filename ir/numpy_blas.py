"""Matrix products and factorizations by NumPy: small ones on the calling thread alone.

NumPy's BLAS shares a product with threads of its own as soon as it has a few hundred thousand multiplications, and
these wait for each other, and for the next product, in loops. Where other processes use the cores a product of some
microseconds then takes as long as the system lets those run: milliseconds. So the library is told to use one thread
while it computes a small product.
"""

from __future__ import annotations

import ctypes
import functools
import sys
from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

import numpy as np

from .locks import gate

#: OpenBLAS uses one thread for products of up to so many multiplications by itself.
ALONE = 1 << 18
#: Products of up to so many are computed by one thread: some hundred microseconds, of which threads save a part.
SMALL = 1 << 24
#: Rows and columns of matrices that are factored by one thread. LAPACK's steps are many small products: up to here two
#: threads save little, and burn several times the time in waiting for each other.
FACTORED_ALONE = 640

R = TypeVar("R")


class _Threads(NamedTuple):
    """How many threads the library uses: asked for and set, for the whole process."""

    get: Callable[[], int]
    set: Callable[[int], None]


#: What names of OpenBLAS have before and after them, and whether its integers are of 64 bits.
_NAMES = (("scipy_", "64_", True), ("", "64_", True), ("scipy_", "", False), ("", "", False))


def _file() -> str:
    """A library in which names are looked up, as in what it was linked with."""
    core = sys.modules.get("numpy._core._multiarray_umath") or sys.modules.get("numpy.core._multiarray_umath")
    return getattr(core, "__file__", None) or ""


@functools.cache
def threads() -> _Threads | None:
    """The number of threads of NumPy's OpenBLAS; None where NumPy has another library."""
    try:
        handle = ctypes.PyDLL(_file())
    except OSError:
        return None
    for prefix, suffix, _ in _NAMES:
        get = getattr(handle, f"{prefix}openblas_get_num_threads{suffix}", None)
        put = getattr(handle, f"{prefix}openblas_set_num_threads{suffix}", None)
        if get is not None and put is not None:
            get.argtypes, get.restype, put.argtypes, put.restype = (), ctypes.c_int, (ctypes.c_int,), None
            return _Threads(get, put)
    return None


#: Rows from which on LAPACK is called directly: NumPy's functions copy matrices to columns in strides, so that det and
#: solve of 512 rows took three times as long as the factorization. Of smaller ones the calls cost more.
DIRECT = 48


@functools.cache
def lapack_function(name: str) -> tuple[Callable[..., Any], type[np.signedinteger[Any]]] | None:
    """A function of LAPACK, and its integers; None where NumPy has another library than OpenBLAS."""
    if threads() is None:
        return None
    handle = ctypes.CDLL(_file())  # which lets other threads run
    for prefix, suffix, wide in _NAMES:
        found = getattr(handle, f"{prefix}{name}_{suffix}", None)
        if found is not None:
            found.restype = None
            return found, np.int64 if wide else np.int32
    return None


class Factors:
    """LU factors of real matrices (count × m × n), whose elements stand by columns in `matrices` (count × n × m).

    Attributes:
        pivots: from 1 on. singular: whether a matrix has a zero on the diagonal of U.
    """

    def __init__(self, matrices: np.ndarray, kind: type[np.signedinteger[Any]], getrf: Callable[..., Any]) -> None:
        count, n, m = matrices.shape
        self.matrices, self.singular, self._kind = matrices, False, kind
        self.pivots, info = np.empty((count, min(m, n)), kind), np.zeros(1, kind)
        rows, cols, leading = self._numbers(m, n, max(m, 1))
        for x, pivots in zip(matrices, self.pivots):
            getrf(rows, cols, address(x), leading, address(pivots), address(info))
            self.singular |= bool(info[0] > 0)

    def _numbers(self, *values: int) -> list[ctypes.c_void_p]:
        """Addresses of numbers, which are held."""
        self._held = np.array(values, self._kind)
        return [address(self._held[i:]) for i in range(len(values))]

    def logarithms(self) -> tuple[np.ndarray, np.ndarray]:
        """The signs of the determinants of square matrices, and the logarithms of their sizes in float64."""
        diagonal = np.diagonal(self.matrices, 0, -2, -1)
        turns = (self.pivots != np.arange(1, diagonal.shape[-1] + 1)).sum(-1)
        sign = np.where(turns % 2, -1, 1) * np.sign(diagonal).prod(-1)
        return sign, np.log(np.abs(diagonal).astype(np.float64)).sum(-1)

    def determinants(self) -> np.ndarray:
        """Those of square matrices, in float64: products of fractions, and sums of exponents."""
        sign, _ = self.logarithms()
        fraction, exponent = np.frexp(np.abs(np.diagonal(self.matrices, 0, -2, -1)).astype(np.float64))
        found, power = sign.astype(np.float64), exponent.sum(-1)
        for i in range(0, fraction.shape[-1], 512):
            found, more = np.frexp(found * fraction[..., i : i + 512].prod(-1))
            power = power + more
        return np.ldexp(found, np.clip(power, -5000, 5000).astype(np.int32))

    def solved(self, transposed: bool, which: np.ndarray, b: np.ndarray) -> np.ndarray | None:
        """What solves A·x = b (Aᵀ·x = b if `transposed`) for each of b (count × k × n), by the matrices at `which`."""
        found = lapack_function({"f": "sgetrs", "d": "dgetrs"}[b.dtype.char])
        if found is None:
            return None
        info, word = np.zeros(1, self._kind), ctypes.c_char_p(b"T" if transposed else b"N")
        n, k = self._numbers(b.shape[2], b.shape[1])
        x = np.array(b, order="C")
        for i, part in zip(which, x):
            found[0](word, n, k, address(self.matrices[i]), n, address(self.pivots[i]), address(part), n, address(info))
        return x


def address(x: np.ndarray) -> ctypes.c_void_p:
    return ctypes.c_void_p(x.ctypes.data)


def factors(a: np.ndarray, transposed: bool = False) -> Factors | None:
    """LU factors of real matrices (count × m × n), or, `transposed`, of what they are by columns, which needs no
    rearrangement; None: there is no LAPACK here."""
    found = lapack_function({"f": "sgetrf", "d": "dgetrf"}[a.dtype.char]) if a.dtype.char in "fd" else None
    if found is None:
        return None
    getrf, kind = found
    return Factors(np.array(a if transposed else a.swapaxes(1, 2), order="C"), kind, getrf)


def lu(a: np.ndarray) -> tuple[np.ndarray, np.ndarray] | None:
    """LU factors of real matrices (count × m × n) in one array, and pivots from 0 on; None: there is no LAPACK here."""
    found = factors(a)
    return None if found is None else (found.matrices.swapaxes(1, 2), (found.pivots - 1).astype(np.uint32))


def _large(a: np.ndarray) -> Factors | None:
    """Factors of the transposes of square matrices, if calling LAPACK directly pays.

    They serve as well: the solution of (Aᵀ)ᵀ·x = b is that of A·x = b.
    """
    n = a.shape[-1]
    return factors(a.reshape(-1, n, n), True) if n >= DIRECT and a.size else None


def solve(a: np.ndarray, b: np.ndarray) -> np.ndarray | None:
    """``np.linalg.solve`` of large real matrices (…, n, n) and (…, n, k); None: NumPy's serves, also to tell errors."""
    known = _large(a) if a.dtype == b.dtype else None
    if known is None or known.singular:
        return None
    lead = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    own = np.arange(len(known.matrices)).reshape(a.shape[:-2])
    which = np.broadcast_to(own, lead).reshape(-1)
    right = np.broadcast_to(b.swapaxes(-1, -2), (*lead, b.shape[-1], b.shape[-2]))
    found = known.solved(True, which, right.reshape(-1, *right.shape[-2:]))
    return None if found is None else found.reshape(right.shape).swapaxes(-1, -2)


def inv(a: np.ndarray) -> np.ndarray | None:
    """``np.linalg.inv`` of large real matrices; None: NumPy's serves, also to tell errors."""
    known, found = _large(a), lapack_function({"f": "sgetri", "d": "dgetri"}.get(a.dtype.char, "none"))
    if known is None or known.singular or found is None:
        return None
    getri, kind = found
    n, info = a.shape[-1], np.zeros(1, kind)
    room, sizes = np.empty(64 * n, a.dtype), np.array([n, 64 * n], kind)
    for x, pivots in zip(known.matrices, known.pivots):
        order, more = address(sizes), address(sizes[1:])
        getri(order, address(x), order, address(pivots), address(room), more, address(info))
    return known.matrices.reshape(a.shape)


def det(a: np.ndarray) -> np.ndarray | None:
    """``np.linalg.det`` of large real matrices; None: NumPy's serves."""
    known = _large(a)
    return None if known is None else known.determinants().astype(a.dtype).reshape(a.shape[:-2])


def slogdet(a: np.ndarray) -> tuple[np.ndarray, np.ndarray] | None:
    """``np.linalg.slogdet`` of large real matrices; None: NumPy's serves."""
    known = _large(a)
    if known is None:
        return None
    sign, log = known.logarithms()
    return sign.astype(a.dtype).reshape(a.shape[:-2]), log.astype(a.dtype).reshape(a.shape[:-2])


def matmul(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """``np.matmul(x, y)`` of matrices and vectors. Forks wait for its end (see `locks.unforked`)."""
    with gate.lock:
        # Of a vector y it is more than there are; `_matmul` looks closer.
        return np.matmul(x, y) if x.size * y.shape[-1] <= ALONE else _matmul(x, y)


def _matmul(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """``np.matmul(x, y)``; where that is small, by one thread.

    Where the user changes the number of the library's threads during a small product, which number stays is a matter
    of chance. Threads of smelt do not disturb each other: who finds one thread changes nothing.
    """
    small = x.dtype.kind in "fc" and x.size * (y.shape[-1] if y.ndim > 1 else 1) <= SMALL
    return alone(lambda: np.matmul(x, y)) if small else np.matmul(x, y)


def alone(call: Callable[[], R]) -> R:
    """What `call` returns, while the library uses one thread."""
    library = threads()
    number = library.get() if library is not None else 1
    if library is None or number == 1:
        return call()
    try:
        library.set(1)
        return call()
    finally:
        library.set(number)  # the first call from here on: Ctrl-C cannot come before it
