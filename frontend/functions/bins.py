"""Bins of one width, whose elements find them by arithmetic."""

from __future__ import annotations

from typing import Any

import numpy as np

from smelt.ir import dtypes

from ..lazy.arrays import array, convert
from .arithmetic import clip
from .logic import logical_and
from .rounding import floor

#: So many bins at most: the arithmetic is off by one then, and no more.
MOST = 1 << 16


def are_even(x: array, bins: Any, limits: Any) -> bool:
    """Whether bins are of one width that is known, and much more than the rounding of their edges."""
    if isinstance(bins, (array, np.ndarray, list, tuple)) or limits is None or int(bins) > MOST:
        return False
    first, last = map(float, limits)
    precision = float(np.finfo(x.dtype.numpy).eps) * max(abs(first), abs(last))
    return 16 * precision * int(bins) < last - first < float(np.finfo(x.dtype.numpy).max)


def place_of_even(x: array, edges: array) -> array:
    """The bin of each element between the edges, if these are evenly spaced: computed, and put right by its edges."""
    last = edges.size - 2
    place = clip(floor((x - edges[0]) * ((last + 1) / (edges[-1] - edges[0]))), 0, last)
    place = convert(place, dtypes.int32)
    place = place - convert(x < edges[place], dtypes.int32)
    return place + convert(logical_and(x >= edges[place + 1], place < last), dtypes.int32)
