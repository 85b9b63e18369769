"""NumPy's BLAS: matrix products, by the calling thread and by threads of smelt's, and LAPACK's functions by name.

NumPy's BLAS shares a product with threads of its own as soon as it has a few hundred thousand multiplications, and
these wait for each other, and for the next product, in loops that last for tens of milliseconds. Meanwhile kernels find
no free core, and where other processes use the cores a product of some microseconds takes as long as the system lets
those run. So the library is told to use one thread, and large products are cut into parts, whose threads sleep when
they are done (`host_threads`).
"""

from __future__ import annotations

import ctypes
import functools
import itertools
import math
import sys
from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

import numpy as np

from .host_threads import WORTH, share
from .locks import gate

#: OpenBLAS uses one thread for products of up to so many multiplications by itself.
ALONE = 1 << 18
#: Seconds that a thread takes for a multiplication of float32, about, of numbers of more bytes in proportion; and to
#: read a byte.
MULTIPLICATION, BYTE = 3e-11, 1e-10
#: Parts of a product, at most; their rows and columns are multiples of a number, for the library's kernels.
PARTS, BLOCK = 16, 64
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
    if x.dtype.kind in "biu" and _is_worth(x, y):
        return _of_integers(x, y)
    with gate.lock:
        # Of a vector y it is more than there are; `_matmul` looks closer.
        return np.matmul(x, y) if x.size * y.shape[-1] <= ALONE else _matmul(x, y)


def _matmul(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """``np.matmul(x, y)``; of floats and complex numbers by threads of smelt's, as many as the work is worth.

    Where the user changes the number of the library's threads meanwhile, which number stays is a matter of chance.
    Threads of smelt do not disturb each other: who finds one thread changes nothing.
    """
    if x.dtype.kind not in "fc" or x.dtype.itemsize < 4 or threads() is None:
        return np.matmul(x, y)
    return alone(lambda: _shared(x, y))


def _shared(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """``np.matmul(x, y)``, whose matrices, if there are many, or else rows or columns are divided among threads."""
    if x.ndim == 1 or y.ndim == 1:
        if x.ndim == y.ndim:
            return np.matmul(x, y)
        return _shared(x[None], y)[..., 0, :] if x.ndim == 1 else _shared(x, y[:, None])[..., 0]
    batch = np.broadcast_shapes(x.shape[:-2], y.shape[:-2]) if max(x.ndim, y.ndim) > 2 else ()
    shape = (*batch, x.shape[-2], y.shape[-1])
    multiplying = math.prod(shape) * x.shape[-1] * MULTIPLICATION * (x.dtype.itemsize / 4)
    seconds = max(multiplying, (x.nbytes + y.nbytes) * BYTE)
    parts = min(PARTS, int(seconds / WORTH))
    if parts < 2:
        return np.matmul(x, y)
    out = np.empty(shape, np.result_type(x, y))
    axis = next((a for a, n in enumerate(batch) if n >= parts), None)
    if axis is not None:
        lhs, rhs = (np.broadcast_to(a, (*batch, *a.shape[-2:])) for a in (x, y))
        before = (slice(None),) * axis

        def matrices(at: slice) -> None:
            some = (*before, at)
            np.matmul(lhs[some], rhs[some], out=out[some])

        share(batch[axis], seconds, matrices)
    else:
        cells = list(itertools.product(*_grid(x.shape[-2], y.shape[-1], parts)))

        def rectangles(at: slice) -> None:
            for rows, columns in cells[at]:
                np.matmul(x[..., rows, :], y[..., columns], out=out[..., rows, columns])

        share(len(cells), seconds, rectangles)
    return out


def _grid(rows: int, columns: int, parts: int) -> tuple[list[slice], list[slice]]:
    """Ranges of rows and of columns that cut a matrix into about `parts` nearly square parts. They depend on nothing
    else, so that products have the same bits with any number of threads."""
    down, across = 1, 1
    while down * across < parts and max(rows / down, columns / across) >= 2 * BLOCK:
        if rows / down >= columns / across:
            down *= 2
        else:
            across *= 2
    return _ranges(rows, down), _ranges(columns, across)


def _ranges(extent: int, count: int) -> list[slice]:
    bounds = [extent * i // count // BLOCK * BLOCK for i in range(count)]
    return [slice(*ends) for ends in itertools.pairwise([*bounds, extent])]


#: Multiplications from which on products of integers of up to 16 and of 32 bits are made of products of floats, the
#: depth up to which these are exact, rows and columns that they have at least, and elements at most.
_WORTH, _DEPTH, _SIDE, _ELEMENTS = {1: 1 << 13, 2: 1 << 13, 4: 1 << 16}, 1 << 20, 4, 1 << 22


def _is_worth(x: np.ndarray, y: np.ndarray) -> bool:
    least = _WORTH.get(x.dtype.itemsize)
    if least is None or x.dtype != y.dtype or x.ndim < 2 or y.ndim < 2:
        return False
    short = min(x.shape[-2], y.shape[-1]) < _SIDE or x.shape[-1] > _DEPTH
    return not short and x.size * y.shape[-1] >= least and x.size + y.size <= _ELEMENTS


def _of_integers(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Products of matrices of integers, which wrap, or of bools, by its products of float64: exact below 2⁵³.

    Of 32 bits it takes those of their halves, x₀·y₀ + 2¹⁶·(x₁·y₀ + x₀·y₁).
    """
    if x.dtype.itemsize <= 2:
        found = matmul(x.astype(np.float64), y.astype(np.float64))
        return found > 0 if x.dtype.kind == "b" else found.astype(np.int64).astype(x.dtype)
    (x0, x1), (y0, y1) = [((z & 0xFFFF).astype(np.float64), (z >> 16).astype(np.float64)) for z in (x, y)]
    whole, middle = (z.astype(np.int64) for z in (matmul(x0, y0), matmul(x1, y0) + matmul(x0, y1)))
    whole += middle << 16
    return whole.astype(x.dtype)


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
