"""Made-up arguments for programs, of several kinds, each of which reveals other faults."""

from __future__ import annotations

import sys
from collections.abc import Sequence

import numpy as np

from smelt.ir import dtypes
from smelt.ir.aval import Aval
from smelt.ir.errors import OutOfMemoryError

#: The kinds of inputs; of each some are made.
KINDS = ("random", "small", "positive", "mixed", "special", "one-NaN", "one-special")
#: Those for programs that sum, in which infinities and NaN of all arrays would meet everywhere.
FOR_SUMS = ("random", "small", "positive", "mixed", "one-NaN", "one-special")
#: Those for other programs.
FOR_ELEMENTS = ("random", "small", "positive", "mixed", "special")
#: The size of numbers whose squares are less than what programs add to keep a divisor from zero.
TINY = 1e-4
#: How many elements show what special numbers do when they meet, and how many times as many inputs are made for it.
_ENOUGH, _MOST_TURNS = 256, 8
#: How many numbers are drawn at least for arrays that are pieces of them.
_LEAST_DRAWN = 1 << 16
#: Zeros, what is no number, ties of rounding, and numbers between; the extremes of each dtype are special, too.
SPECIAL = (0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, 0.5, 3.0, -2.5)


def turns_of(avals: Sequence[Aval], kind: str, count: int) -> int:
    """How many inputs of a kind: more than `count` where arrays are too small for special values to meet."""
    if kind != "special":
        return count
    return count * max(1, min(_MOST_TURNS, _ENOUGH // max(1, min((a.size for a in avals), default=1))))


def inputs_of(
    avals: Sequence[Aval], kind: str, turn: int, rng: np.random.Generator, drawn: Drawn | None = None
) -> list[np.ndarray]:
    """An array of each type. "mixed" are "random", half of the arrays scaled to tiny numbers, others each turn.
    "one-NaN" and "one-special" are "random" but for one element of one array: in whatever order a program sums, what
    depends on that is NaN, or infinite.

    Args:
        drawn: numbers of before, of which arrays are made; else all are new.
    """
    plain = "random" if kind in ("mixed", "one-NaN", "one-special") else kind
    arrays = [drawn.array(aval, plain, rng) if drawn else _drawn(aval, plain, rng) for aval in avals]
    inexact = [i for i, x in enumerate(arrays) if x.size and avals[i].dtype.is_inexact]
    if kind == "mixed":
        for at, i in enumerate(inexact):
            if (at >> turn // 2) & 1 == turn % 2:
                arrays[i] = (arrays[i] * TINY).astype(arrays[i].dtype)
    if kind.startswith("one-") and inexact:
        i = inexact[rng.integers(len(inexact))]
        x = arrays[i] = arrays[i].copy() if drawn else arrays[i]
        x[tuple(rng.integers(n) for n in x.shape)] = np.nan if kind == "one-NaN" else rng.choice(np.array(SPECIAL))
    return arrays


class Drawn:
    """Numbers of each kind and dtype, drawn once for many small programs: an array is a piece of them, from a place
    found by chance."""

    def __init__(self) -> None:
        self._numbers: dict[tuple[dtypes.DType, str], np.ndarray] = {}

    def array(self, aval: Aval, kind: str, rng: np.random.Generator) -> np.ndarray:
        """An array of a type, to be read."""
        numbers = self._numbers.get((aval.dtype, kind))
        if numbers is None or numbers.size < 2 * aval.size:
            numbers = _drawn(Aval((max(_LEAST_DRAWN, 3 * aval.size),), aval.dtype), kind, rng)
            numbers.flags.writeable = False
            self._numbers[aval.dtype, kind] = numbers
        at = rng.integers(numbers.size - aval.size + 1)
        return numbers[at : at + aval.size].reshape(aval.shape)


def _drawn(aval: Aval, kind: str, rng: np.random.Generator) -> np.ndarray:
    """An array of a type: normal numbers, small integers, numbers from ¼ to 1, or special values.

    Raises:
        OutOfMemoryError: no memory is that large, of which NumPy has a ValueError.
    """
    dtype = aval.dtype
    if aval.size > sys.maxsize // 16:
        raise OutOfMemoryError(f"numbers for an argument {aval} are more than memory can hold")
    if dtype.kind == "b":
        return rng.integers(0, 2, aval.shape).astype(bool)
    if dtype.is_integer and kind == "special":
        return rng.choice(extreme_integers(dtype), aval.shape)
    if dtype.is_integer:
        low = 0 if kind in ("random", "positive") or dtype.kind == "u" else -3
        return rng.integers(low, 4, aval.shape).astype(dtype.numpy)
    if not dtype.is_complex:
        return _floats(dtype, kind, aval.shape, rng)
    values = np.empty(aval.shape, dtype.numpy)
    part = dtypes.of(values.real.dtype)
    values.real, values.imag = _floats(part, kind, aval.shape, rng), _floats(part, kind, aval.shape, rng)
    return values


def _floats(dtype: dtypes.DType, kind: str, shape: tuple[int, ...], rng: np.random.Generator) -> np.ndarray:
    if kind == "random":
        return np.asarray(rng.standard_normal(shape)).astype(dtype.numpy)
    if kind == "small":
        return rng.integers(-3, 4, shape).astype(dtype.numpy)
    if kind == "positive":
        return np.asarray(rng.uniform(0.25, 1.0, shape)).astype(dtype.numpy)
    return rng.choice(extremes(dtype, rng), shape)


def extremes(dtype: dtypes.DType, rng: np.random.Generator) -> np.ndarray:
    """Special numbers of a dtype: `SPECIAL`, the largest, the least, those below the least, and some of any size."""
    import ml_dtypes  # knows bfloat16, too

    info = ml_dtypes.finfo(dtype.numpy)
    edges = [info.max, info.tiny, info.smallest_subnormal, 3 * info.smallest_subnormal, 0.49999997]
    with np.errstate(all="ignore"):
        sizes = 2.0 ** rng.uniform(np.log2(float(info.tiny)), np.log2(float(info.max)), 12)
        found = [*SPECIAL, *map(float, edges), *(-float(e) for e in edges), *(sizes * rng.choice([-1, 1], sizes.shape))]
        return np.array(found).astype(dtype.numpy)


def extreme_integers(dtype: dtypes.DType) -> np.ndarray:
    """Zero, small ones, those about the number of bits, and the ends of the range."""
    info = np.iinfo(dtype.numpy)
    bits = 8 * dtype.numpy.itemsize
    near = [n for n in (-bits, -7, -2, -1, 0, 1, 2, 3, 7, bits - 1, bits) if info.min <= n <= info.max]
    return np.array([*near, info.min, info.min + 1, info.max - 1, info.max], dtype.numpy)
