"""Fourier transforms of the rows of arrays by smelt's own loops in C (`native/fourier.c`), and their plans.

Transforms of up to SHORT elements are made of many rows at once, longer ones as columns and rows of a matrix (Bailey's
four steps). A length with a prime factor above 13 is a convolution by transforms of a length that has none: of n - 1
elements for a prime n where that will do (Rader's), else of some 2n (Bluestein's). Without the loops, and for
most odd numbers of real elements, pocketfft computes, which NumPy has.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from . import host_threads
from .host_loops import loops
from .host_memory import contiguous, empty

#: Elements of a transform that is made in one piece.
SHORT = 256
#: Elements of a transform of columns that is made in one piece.
TALL = 2048
#: Seconds for each element, about.
SECONDS = 4e-9
#: Elements of the longest transforms whose tables are kept.
KEPT = 1 << 20
#: Odd numbers of real elements are transformed as complex ones: so many at least, of float64 up to so long ones.
FEW, ODD = 1000, 9
COMPLEX, FROM_REAL, TO_REAL = range(3)
_RADICES = (8, 4, 2, 3, 5, 7, 11, 13)


class Plan(NamedTuple):
    """The tables of `fourier.c`: of columns, of rows (none for a short one), and what turns between them."""

    first: tuple[int, ...]
    first_turns: np.ndarray
    second: tuple[int, ...]
    second_turns: np.ndarray
    starts: np.ndarray
    rest: np.ndarray


def turns(k: np.ndarray, n: int) -> np.ndarray:
    """e^(-2πik/n), to the last bits: angles are taken from the nearest quarter of a turn."""
    quarter = (8 * (k % n) + n) // (2 * n)
    angle = (4 * (k % n) - quarter * n) * (math.pi / 2 / n)
    found = np.cos(angle) - 1j * np.sin(angle)
    return found * np.array([1, -1j, -1, 1j, 1])[quarter]


def radices(n: int) -> tuple[int, ...] | None:
    """The passes of a transform; None if there are none for a prime factor."""
    found = []
    for r in _RADICES:
        while n % r == 0:
            found.append(r)
            n //= r
    return tuple(found) if n == 1 else None


def _numbers(table: np.ndarray, dtype: Any) -> np.ndarray:
    """The parts of complex numbers, one after the other."""
    return np.ascontiguousarray(table, np.complex128).view(np.float64).astype(dtype).ravel()


def _passes(n: int, dtype: Any) -> tuple[tuple[int, ...], np.ndarray]:
    tables, chosen = [np.zeros(0, np.complex128)], radices(n) or ()
    for r in chosen:
        if r in (5, 7, 11, 13):
            tables.append(turns(np.arange(r), r))
        tables.append(turns(np.outer(np.arange(n // r), np.arange(1, r)), n).ravel())
        n //= r
    return chosen, _numbers(np.concatenate(tables), dtype)


def _divided(n: int, lanes: int) -> tuple[int, int]:
    """Columns and rows of n: nearly as many of either, that fill vectors."""

    def cost(a: int) -> float:
        b = n // a
        waste = (-b % lanes / b + 1) + (-a % lanes / a + 1)
        return waste * (1 + 0.05 * abs(math.log2(a / b)))

    divisors = [a for a in range(2, math.isqrt(n) + 1) if n % a == 0]
    return min(((a, n // a) for d in divisors for a in (d, n // d)), key=lambda pair: cost(pair[0]))


def _plan(n: int, wide: bool) -> Plan:
    dtype, lanes = (np.float64, 8) if wide else (np.float32, 16)  # of the largest vectors: results are the same in all
    a, b = (n, 1) if n <= SHORT else _divided(n, lanes)
    none = np.zeros(0, dtype)
    if b == 1:
        return Plan(*_passes(a, dtype), (), none, none, none)
    k, blocks = np.arange(a), -(-b // lanes)
    rest = turns(np.outer(k, np.arange(lanes)), n)
    return Plan(
        *_passes(a, dtype), *_passes(b, dtype), _numbers(turns(np.outer(k, np.arange(blocks) * lanes), n), dtype),
        np.stack([rest.real, rest.imag], 1).astype(dtype).ravel(),
    )  # fmt: skip


def _one_piece(n: int, wide: bool) -> tuple[tuple[int, ...], np.ndarray]:
    return _passes(n, np.float64 if wide else np.float32)


def _halves(n: int, wide: bool) -> np.ndarray:
    """e^(-2πik/2n) for the first half of n + 1 coefficients of 2·n real numbers."""
    return _numbers(turns(np.arange(n // 2 + 1), 2 * n), np.float64 if wide else np.float32)


#: What a pass takes for each element, by its radix, relative to that of 8.
_PASSES = {8: 1.0, 4: 0.75, 2: 0.5, 3: 0.75, 5: 1.2}


def _work(n: int) -> float:
    """What a transform of n elements takes; infinite if it has other passes than these."""
    factors = radices(n)
    return n * sum(_PASSES.get(r, math.inf) for r in factors) if factors is not None else math.inf


def _chirp(n: int, wide: bool) -> tuple[np.ndarray, np.ndarray]:
    """e^(-πik²/n), and the transform of its inverse wrapped around a length of small factors, over that length."""
    kind = np.complex128 if wide else np.complex64
    length = min(range(2 * n - 1, 4 * n), key=_work)
    chirp = turns(np.arange(n) ** 2 % (2 * n), 2 * n)
    around = np.zeros(length, np.complex128)
    around[:n] = chirp.conj()
    around[length - n + 1 :] = around[n - 1 : 0 : -1]
    return chirp.astype(kind), (np.fft.fft(around) / length).astype(kind)


def _powers(n: int) -> np.ndarray | None:
    """The powers modulo n of a number that has all but 0 among them, from 1 on; None where n is no prime, or n - 1 has
    other factors than `radices`."""
    factors = radices(n - 1)
    if factors is None or not all(n % d for d in range(2, math.isqrt(n) + 1)):
        return None
    primes = {p for p in (2, 3, 5, 7, 11, 13) if (n - 1) % p == 0}
    root = next(g for g in range(2, n) if all(pow(g, (n - 1) // p, n) != 1 for p in primes))
    found = np.ones(n - 1, np.int64)
    for size in (1 << i for i in range((n - 2).bit_length())):  # twice as many powers a step
        more = found[size : 2 * size]
        more[...] = found[: len(more)] * pow(root, size, n) % n
    return found


def _rader_tables(n: int, wide: bool) -> tuple[np.ndarray, np.ndarray, np.ndarray] | None:
    """Which elements are convolved with e^(-2πi/gᵠn), the transform of that over its length, and which results are the
    transform's but the first; see `_powers`."""
    powers = _powers(n)
    if powers is None:
        return None
    back = np.roll(powers[::-1], 1)  # of g's inverse
    places = np.zeros(n, np.intp)
    places[back] = np.arange(n - 1)
    table = np.fft.fft(turns(back, n)) / (n - 1)
    return powers.astype(np.intp), table.astype(np.complex128 if wide else np.complex64), places


#: By how many elements a transform has at most, how many tables of such are kept.
_SIZES = ((1 << 12, 32), (KEPT, 4))
_MAKERS: tuple[Callable[[int, bool], Any], ...] = (_plan, _halves, _chirp, _rader_tables, _one_piece)
_kept = {make: [(most, functools.lru_cache(count)(make)) for most, count in _SIZES] for make in _MAKERS}


def _table(make: Callable[[int, bool], Any], n: int, wide: bool) -> Any:
    """What `make` gives, which is kept unless it is large."""
    return next((cached for most, cached in _kept[make] if n <= most), make)(n, wide)


def plan(n: int, wide: bool) -> Plan:
    """The plan of n complex numbers, whose prime factors are up to 13; of float64 if `wide`."""
    found: Plan = _table(_plan, n, wide)
    return found


def _run(x: np.ndarray, out: np.ndarray, n: int, kind: int, inverse: bool, scale: float) -> np.ndarray:
    """The transforms of the rows of x, in `out`; n counts complex numbers."""
    wide = x.dtype.char in "Dd"
    halves = _table(_halves, n, wide) if kind else np.zeros(0)
    assert loops.fourier is not None
    loops.fourier(x, out, loops.vector_bytes, wide, kind, inverse, scale, *plan(n, wide), halves)
    return out


def _complex(x: np.ndarray, inverse: bool, scale: float, out: np.ndarray) -> np.ndarray:
    """Of contiguous complex rows."""
    n = x.shape[-1]
    if radices(n) is not None:
        return _run(x, out, n, COMPLEX, inverse, scale)
    tables = _table(_rader_tables, n, x.dtype.char == "D")
    return _bluestein(x, inverse, scale, out) if tables is None else _rader(x, inverse, scale, out, *tables)


#: Elements of rows that are transformed together, so that they stay in the cache.
_TOGETHER = 1 << 17


def _rader(
    x: np.ndarray, inverse: bool, scale: float, out: np.ndarray,
    order: np.ndarray, table: np.ndarray, places: np.ndarray,
) -> np.ndarray:  # fmt: skip
    """For indices that are powers of g modulo a prime, jk = g^(p - q): a convolution of the elements but the first."""
    n = x.shape[-1]
    rows, results = x.reshape(-1, n), out.reshape(-1, n)
    if inverse:  # the result at -k
        places = np.concatenate([places[:1], places[:0:-1]])
    step = max(1, _TOGETHER // n)
    for start in range(0, len(rows), step):
        with np.errstate(all="ignore"):  # of rows that are not finite
            part, to = rows[start : start + step], results[start : start + step]
            lines = part.take(order, 1, mode="clip")
            found = _run(lines, np.empty_like(lines), n - 1, COMPLEX, False, scale)
            first = part[:, 0] * scale
            total = first + found[:, 0]
            found *= table
            found[:, 0] += first  # to all results
            _run(found, lines, n - 1, COMPLEX, True, 1.0)
            lines.take(places, 1, out=to, mode="clip")
            to[:, 0] = total
    return out


def _bluestein(x: np.ndarray, inverse: bool, scale: float, out: np.ndarray) -> np.ndarray:
    """jk = (j² + k² - (j - k)²)/2: a transform is a convolution with a chirp, and that a product of transforms."""
    n = x.shape[-1]
    chirp, table = _table(_chirp, n, x.dtype.char == "D")
    length = len(table)
    rows = x.reshape(-1, n)
    results = out.reshape(-1, n)
    step = max(1, _TOGETHER // length)
    work = np.zeros((min(step, len(rows)), length), x.dtype)
    for start in range(0, len(rows), step):
        with np.errstate(all="ignore"):  # of rows that are not finite
            part = rows[start : start + step]
            lines = work[: len(part)]
            np.multiply(part.conj() if inverse else part, chirp, out=lines[:, :n])
            lines[:, n:] = 0
            found = _run(lines, np.empty_like(lines), length, COMPLEX, False, 1.0)
            found *= table
            _run(found, lines, length, COMPLEX, True, 1.0)
            to = results[start : start + step]
            np.multiply(lines[:, :n], chirp * scale if scale != 1 else chirp, out=to)
            if inverse:
                np.conjugate(to, out=to)
    return out


def _fits(n: int, x: np.ndarray) -> bool:
    return loops.fourier is not None and n > 1 and x.size > 0


def fft(x: np.ndarray, inverse: bool, scale: float, out: np.ndarray | None = None) -> np.ndarray | None:
    """The transforms of the last axis of complex numbers, times `scale`; None: there is nothing better than NumPy.

    Here and below a contiguous `out` takes the result.
    """
    if not _fits(x.shape[-1], x):
        return None
    x = contiguous(x)
    return _complex(x, inverse, scale, empty(x.shape, x.dtype) if out is None else out)


def fft_of_columns(x: np.ndarray, inverse: bool, scale: float) -> np.ndarray | None:
    """`fft` of an array whose last axis lies before others in memory, without a copy; the result lies as x does.

    None: x does not lie so, or rows are to be copied together.
    """
    n = x.shape[-1]
    if not _fits(n, x) or n > TALL or radices(n) is None:
        return None
    for place in reversed(range(x.ndim - 1)):
        lying = np.moveaxis(x, -1, place)
        if lying.flags.c_contiguous:
            break
    else:
        return None
    out, width, wide = empty(lying.shape, x.dtype), math.prod(lying.shape[place + 1 :]), x.dtype.char == "D"
    tables, blocks = _table(_one_piece, n, wide), -(-width // (loops.vector_bytes // (8 if wide else 4)))

    def transform(part: slice) -> None:
        assert loops.fourier_columns is not None
        ends = part.start, part.stop
        loops.fourier_columns(lying, out, loops.vector_bytes, wide, inverse, scale, *tables, width, *ends)

    host_threads.share(x.size // (n * width) * blocks, SECONDS * x.size, transform)
    return np.moveaxis(out, place, -1)


def rfft(x: np.ndarray, scale: float, out: np.ndarray | None = None) -> np.ndarray | None:
    """The coefficients of real numbers; None: there is nothing better than NumPy."""
    n, wide = x.shape[-1], x.dtype.char == "d"
    halved = n % 2 == 0 and radices(n // 2) is not None and _fits(n // 2, x)
    if halved:
        if out is None:
            out = empty((*x.shape[:-1], n // 2 + 1), np.complex128 if wide else np.complex64)
        return _run(contiguous(x), out, n // 2, FROM_REAL, False, scale)
    if n % 2 == 0 or x.size < FEW or not _fits(n, x):
        return None
    if wide and n > ODD if radices(n) is not None else n > KEPT or _table(_rader_tables, n, wide) is None:
        return None
    found = fft(x.astype(np.complex128 if wide else np.complex64), False, scale)
    assert found is not None
    if out is None:
        return contiguous(found[..., : n // 2 + 1])
    np.copyto(out, found[..., : n // 2 + 1])
    return out


def irfft(x: np.ndarray, n: int, scale: float, out: np.ndarray | None = None) -> np.ndarray | None:
    """n real numbers from their coefficients; None: there is nothing better than NumPy."""
    if n % 2 or radices(n // 2) is None or not _fits(n // 2, x):
        return None
    if out is None:
        out = empty((*x.shape[:-1], n), x.real.dtype)
    return _run(contiguous(x), out, n // 2, TO_REAL, True, scale)
