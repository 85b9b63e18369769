"""Samples by trials that may be refused, without a loop: a sample is the first of some trials that is not.

Of many samples only those whose trial was refused are tried again: they are put beside each other, in a vector that
is long enough but for a chance that nobody meets. So a sample takes little more than one trial.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ..functions.arithmetic import maximum, minimum
from ..functions.index_functions import take, take_along_axis
from ..functions.logic import logical_not, where
from ..functions.ranges import arange
from ..functions.reductions import argmax
from ..functions.sorting import cumsum, searchsorted
from ..lazy.arrays import array, convert
from ..lazy.movement import counting
from .keys import split

__all__: list[str] = []

#: From so many samples on, those whose trial was refused are tried again alone; how often that is done.
MANY, ROUNDS = 4096, 3

#: Of keys, a number of trials, a number of samples and what picks the parameters of these: the trials of each, and
#: which are taken; trials lie along the first axis.
Draw = Callable[[Sequence[array], int, int, Callable[[array], array]], tuple[array, array]]


def first_taken(
    keys: Sequence[array], trials: int, count: int, share: int, draw: Draw, rounds: int = ROUNDS,
    pick: Callable[[array], array] = lambda x: x,
) -> array:  # fmt: skip
    """The first trial of each sample that is not refused; the first one where all are.

    Args:
        share: of a hundred trials, so many are refused at most: nine standard deviations, for `MANY` samples, above
            the mean.
    """
    if count < MANY or not rounds:
        found, taken = draw(keys, trials, count, pick)
        return take_along_axis(found, argmax(taken, axis=0, keepdims=True), axis=0)[0]
    now, later = zip(*(split(key) for key in keys))
    (found,), (taken,) = draw(now, 1, count, pick)
    room, kind = count * share // 100, counting(count)
    seen = cumsum(convert(logical_not(taken), kind))
    places = minimum(searchsorted(seen, arange(1, room + 1, dtype=kind)), count - 1)
    again = first_taken(later, trials - 1, room, share, draw, rounds - 1, lambda x: take(pick(x), places))
    return where(taken, found, take(again, minimum(maximum(seen - 1, 0), room - 1)))
