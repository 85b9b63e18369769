"""How far the results of a program move when intermediate values are rounded differently.

A program that subtracts nearly equal numbers, divides by what should be zero, or compares what is nearly equal has
results that another order of a sum moves far, and rightly so. How far is measured as in Monte Carlo arithmetic (D. S.
Parker, "Monte Carlo Arithmetic: exploiting randomness in floating-point arithmetic", 1997): the program runs again and
again while arguments and the results of its ops are moved by a few units in the last place, up or down by chance.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from smelt.ir.builder import OpView
from smelt.ir.errors import InternalError, SmeltError
from smelt.ir.interpreter import Interpreter

#: How often a program runs at the most to find out how far its results move.
RUNS = 32
#: By how many units in the last place values are moved, in turn: larger steps find thresholds that are near.
STEPS = (1, 2, 4, 8)
#: How many times as far as one unit in the last place moves a result another rounding may move it.
MULTIPLE = 16
#: How many times as far as that where no digit is sure, so that a quarter of the runs move the number by half of its
#: size or more. One over what rounding leaves of zero is rarely, but then by far, larger than a few runs have shown.
UNSURE = 64
#: After so many runs it is known whether a digit is sure.
ENOUGH = 8
#: Of so many numbers without a sure digit one may be farther off still.
RARE = 500


class TooLongError(InternalError):
    """A program that takes many more ops on other values: a loop that ends at one value alone."""


class Nudged(Interpreter):
    """Runs a module with arguments and intermediate values moved by `step` units in the last place, up or down.

    Values whose last bits are zero stay: small integers, halves, and what is computed of them exactly. So programs keep
    their ties.
    """

    def __init__(self, module: Any, step: int, seed: int, most_ops: float = float("inf")):
        super().__init__(module)
        self._step, self._rng, self._left = step, np.random.default_rng(seed), most_ops

    def moved(self, x: np.ndarray) -> np.ndarray:
        """An array with other last bits."""
        return nudged(np.asarray(x), self._step, self._rng)

    def plain(self, op: OpView, operands: Sequence[np.ndarray]) -> Sequence[np.ndarray]:
        """The results of an op, moved if it does more than move its operands."""
        self._left -= 1
        if self._left < 0:
            raise TooLongError("the program does not end when its values are moved")
        results = super().plain(op, operands)
        return results if op.op.kind == "movement" else [self.moved(x) for x in results]


class Counted(Interpreter):
    """Runs a module, and counts the ops that it runs, at most `most_ops`, and the elements of their results."""

    def __init__(self, module: Any, most_ops: float = float("inf")):
        super().__init__(module)
        self.count, self.most_ops, self.elements = 0, most_ops, 0

    def plain(self, op: OpView, operands: Sequence[np.ndarray]) -> Sequence[np.ndarray]:
        """The results of an op."""
        self.count += 1
        if self.count > self.most_ops:
            raise TooLongError(f"the program runs more than {self.most_ops:g} ops")
        results = super().plain(op, operands)
        self.elements += sum(x.size for x in results)
        return results


def nudged(x: np.ndarray, step: int, rng: np.random.Generator) -> np.ndarray:
    """`x` with each number moved by `step` units in the last place, up or down, those of half precision by one.

    Integers, zeros, infinities and NaN stay, so do numbers whose last bits are zero: they are not rounded; and those
    that would be no numbers, or of another sign.

    >>> x = np.float32([1.5, 0.1])
    >>> abs(nudged(x, 2, np.random.default_rng(0)) - x)
    array([0.0000000e+00, 1.4901161e-08], dtype=float32)
    """
    if x.dtype.kind == "c":
        moved = x.copy()
        moved.real, moved.imag = nudged(x.real, step, rng), nudged(x.imag, step, rng)
        return moved
    if x.dtype.kind in "biu":
        return x
    bits = np.ascontiguousarray(x).view(f"i{x.dtype.itemsize}")
    half, one = x.dtype.itemsize == 2, bits.dtype.type
    drawn = np.frombuffer(rng.bytes(-(-bits.size // 8)), np.uint8)
    by = np.unpackbits(drawn, count=bits.size).reshape(bits.shape).astype(bits.dtype)
    by *= one(2 if half else 2 * step)
    by -= one(1 if half else step)
    by *= (bits & one(3 if half else 255)) != 0
    # All bits but the sign count sizes: beyond the least number lies another sign, beyond the largest infinity.
    size = bits & one(np.iinfo(bits.dtype).max)
    infinite = np.array(np.inf, x.dtype).view(bits.dtype)
    by *= size < infinite
    size += by
    by *= (size >= 0) & (size < infinite)
    return np.asarray(bits + by).view(x.dtype).reshape(x.shape)


class Movement:
    """How far each result of a module moves on certain inputs, as far as has been found out.

    Attributes:
        far: for each result an array of how far each element may move; of integers and booleans, 1 where they change.
        breaks: for each result where an element is a number in one run, and infinite or NaN in another.
        lost: for each result in how many runs an element moved by more than half of its size.
    """

    def __init__(self, module: Any, inputs: Sequence[np.ndarray], seed: int = 0):
        self._module, self._inputs, self._seed, self._runs = module, inputs, seed, 0
        counted = Counted(module)
        with np.errstate(all="ignore"):
            self._values = [np.asarray(x) for x in counted("main", inputs)]
        self._most_ops = 4 * counted.count + 1000
        self.far = [np.zeros(x.shape) for x in self._values]
        self.breaks = [np.zeros(x.shape, bool) for x in self._values]
        self.lost = [np.zeros(x.shape, np.int8) for x in self._values]

    def look(self) -> bool:
        """Run the program once more; whether there was a run left."""
        if self._runs == RUNS:
            return False
        step = STEPS[self._runs % len(STEPS)]
        run = Nudged(self._module, step, self._seed + self._runs, self._most_ops)
        self._runs += 1
        try:
            with np.errstate(all="ignore"):
                found = run("main", [run.moved(x) for x in self._inputs])
        except SmeltError:  # of a library, for which moved values are none that it takes; or it does not end
            return True
        for far, breaks, lost, before, after in zip(self.far, self.breaks, self.lost, self._values, found):
            apart, broken = distance(before, np.asarray(after))
            np.maximum(far, apart * (MULTIPLE / step), out=far)
            breaks |= broken
            with np.errstate(all="ignore"):
                lost += 2 * apart > np.maximum(np.abs(before), np.abs(after))
        return True

    def explains(self, number: int, before: np.ndarray, after: np.ndarray) -> np.ndarray:
        """Where a result, which was `before` and is `after`, has moved no farther than it may."""
        apart, broken = distance(before, after)
        far, breaks = self.far[number], self.breaks[number]
        if before.dtype.kind in "biu":
            return np.asarray(far > 0)
        unsure = (4 * self.lost[number] >= self._runs) & (self._runs >= ENOUGH)
        # Where a number moves, so does the sign of a zero.
        near = np.where(broken, breaks, (far > 0) & (apart <= np.where(unsure, UNSURE * far, far)))
        rest = unsure & ~near & ~broken
        return np.asarray(near | rest) if 0 < rest.sum() <= unsure.sum() // RARE else np.asarray(near)


def distance(p: np.ndarray, q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """How far elements lie apart, and where that is no number, since one is infinite or NaN and the other is not alike.

    >>> distance(np.float32([1, np.inf, np.nan]), np.float32([3, np.inf, 0]))
    (array([2., 0., 0.]), array([False, False,  True]))
    """
    if p.dtype.kind in "biu":
        return (p != q).astype(np.float64), np.zeros(p.shape, bool)
    wide = np.complex128 if p.dtype.kind == "c" else np.float64
    with np.errstate(all="ignore"):
        same = (p == q) | (np.isnan(p) & np.isnan(q))
        apart = np.where(same, 0.0, np.abs(p.astype(wide) - q.astype(wide)))
    broken = ~np.isfinite(apart)
    return np.where(broken, 0.0, apart), broken
