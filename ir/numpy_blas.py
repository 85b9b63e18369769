"""NumPy's BLAS: matrix products, small ones on the calling thread alone, and LAPACK's functions by name.

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
