"""Patterns on scatters: where each row gets one element, all can be written at once."""

from __future__ import annotations

from smelt.ir import dtypes
from smelt.ir.builder import Value

from .patterns import PatternBuilder, Site, pattern, scalar_of


@pattern("scatter")
def scatter_of_one_a_row(b: PatternBuilder, at: Site) -> Value | None:
    """scatter(number, u, own place, index), one update a row of one number → select(place = index, u, number).

    So the gradient of one element of each row, as cross entropy takes, is computed where it is read.
    """
    (x, updates, *indices), axes, mode = at.operands, at.attrs["axes"], at.attrs["mode"]
    if b.keep_gradients or scalar_of(x) is None or mode not in ("add", "set") or not x.aval.size:
        return None
    if x.dtype is dtypes.bool_ or not indices or axes != tuple(range(x.ndim)):
        return None
    if updates.shape != (*indices[0].shape, *[1] * x.ndim):
        return None
    chosen = [a for a, index in enumerate(indices) if not _is_own_place(index, a, x.shape[a])]
    if len(chosen) != 1 or updates.aval.size * x.shape[chosen[0]] != x.aval.size:
        return None
    (axis,), index = chosen, indices[chosen[0]]
    own = tuple(1 if a == axis else d for a, d in enumerate(x.shape))
    if index.shape != own and x.ndim > 1:
        return None
    if not index.dtype.holds(x.shape[axis] - 1):  # its own numbers do not count that far
        index = b.convert_to(index, dtypes.int64)
    places = b.iota(shape=x.shape, axis=axis, dtype=index.dtype)
    update = b.broadcast_to(b.reshape_to(updates, own), x.shape)
    is_there = b.equal(places, b.broadcast_to(b.reshape_to(index, own), x.shape))
    return b.select(is_there, x + update if mode == "add" else update, x)


def _is_own_place(index: Value, axis: int, extent: int) -> bool:
    """Whether an array of indices counts along an axis of its own, from its start to its end."""
    count = index.defined_by("iota")
    return count is not None and count.attrs["axis"] == axis and index.ndim > axis and index.shape[axis] == extent
