"""What counts have in common; bins of one width, whose elements find them by arithmetic."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from smelt.ir import dtypes
from smelt.ir.errors import AttributeValueError, DTypeError, at_user_line, shown

from ..lazy.arrays import array, convert
from ..lazy.movement import filled
from .arithmetic import clip
from .indexing import holds_array, host_array
from .known_indices import known_elements
from .logic import logical_and, where
from .rounding import floor

#: Bins that a function makes at most.
MOST_BINS = 1 << 28
#: Bins of one width that are found by arithmetic, at most: it is off by one then, and no more.
MOST_EVEN = 1 << 16


def require_real(name: str, *xs: array) -> None:
    """Raise DTypeError for complex numbers."""
    for x in xs:
        if x.dtype.is_complex:
            raise DTypeError(at_user_line(f"smelt.{name}: complex numbers are not counted or ordered here; a {x.aval}"))


def check_order(name: str, bins: Any, *, descending: bool = False) -> None:
    """Raise AttributeValueError for edges, known here, that do not ascend or, if they may, descend."""
    if isinstance(bins, (list, tuple)) and holds_array(bins):
        return
    edges = known_elements(bins) if isinstance(bins, array) else host_array(bins)
    if edges is None or edges.ndim != 1 or edges.dtype.kind not in "biuf" or not (edges[:-1] > edges[1:]).any():
        return
    if not descending or (edges[:-1] < edges[1:]).any():
        rule = "must ascend or descend" if descending else "must ascend"
        raise AttributeValueError(at_user_line(f"smelt.{name}: edges of bins {rule}, are {shown(bins)}"))


def order_checked(name: str, *, descending: bool = False) -> Callable[[tuple, dict[str, Any]], None]:
    """The check of a function whose second argument are edges, or a sequence of the edges along each axis, for those
    that are arrays: a function that is remembered does not see their elements. Others are left to the function."""

    def check(args: tuple, named: dict[str, Any]) -> None:
        bins = args[1] if len(args) > 1 else named.get("bins")
        for edges in bins if isinstance(bins, (list, tuple)) else (bins,):
            if isinstance(edges, array):
                check_order(name, edges, descending=descending)

    return check


def counted(places: array, valid: array, weights: array, size: int) -> array:
    """The sums of the weights at each of `size` places."""
    zero = filled(weights.shape, 0, weights.dtype)
    return filled((size,), 0, weights.dtype).at[where(valid, places, 0)].add(where(valid, weights, zero))


def are_even(x: array, bins: Any, limits: Any) -> bool:
    """Whether bins are of one width that is known, and much more than the rounding of their edges."""
    if isinstance(bins, (array, np.ndarray, list, tuple)) or limits is None or int(bins) > MOST_EVEN:
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
