"""Gather and scatter of whole rows, ready to be called (see `Op.host_call`): what looking up labels, embeddings and
their gradients come to."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..aval import Aval
from ..host_loops import loops
from ..op import Avals, Ints

#: Places up to which one call of NumPy that takes them all is quicker than several that take an axis each.
FEW = 4096


def are_rows(x: Aval, indices: Avals, axes: Ints, window: Sequence[Any]) -> bool:
    """Whether a window is one place along the first axes, which have the indices, and all along the others."""
    lead = len(axes)
    return (
        0 < lead == len(indices)
        and tuple(axes) == tuple(range(lead))
        and all(s == 1 for s in window[:lead])
        and tuple(window[lead:]) == tuple(x.shape[lead:])
        and not any(d == 0 for d in (*x.shape, *indices[0].shape))
        and all(i.dtype.numpy != np.uint64 for i in indices)
    )


def rows(x: np.ndarray, *given: Any) -> np.ndarray:
    """`Gather.reference` of rows. `given`: the indices, the extents that they look into, the shape of the result."""
    *indices, extents, shape = given
    if len(indices) == 1:
        return x.take(indices[0], 0, mode="clip").reshape(shape)
    if indices[0].size <= FEW and x.flags.c_contiguous:
        places = np.ravel_multi_index(tuple(indices), extents, mode="clip")
        return x.reshape(math.prod(extents), -1).take(places, 0).reshape(shape)
    places = [np.minimum(np.maximum(i, 0, dtype=np.int64), d - 1) for i, d in zip(indices, extents)]
    if not x.flags.c_contiguous:
        return x[tuple(places)].reshape(shape)
    return x.reshape(math.prod(extents), -1).take(_flat(places, extents), 0).reshape(shape)


def with_rows(combine: np.ufunc | None, x: np.ndarray, updates: np.ndarray, *given: Any) -> np.ndarray:
    """`Scatter.reference` of rows. `combine`: None replaces. `given`: the indices, the extents that they look into."""
    out = np.array(x, order="C")
    write_rows(combine, out, updates, *given)
    return out


def write_rows(combine: np.ufunc | None, out: np.ndarray, updates: np.ndarray, *given: Any) -> None:
    """`with_rows` in the memory of x, which lies in row-major order."""
    *indices, extents = given
    if not updates.size:
        return
    width = math.prod(out.shape[len(extents) :])
    # NumPy replaces single elements as well.
    if loops.write_rows is not None and (width > 1 if combine is None else _is_combined(out.dtype)):
        flat, lying = np.ascontiguousarray(_numbers(indices, extents)), np.ascontiguousarray(updates)
        loops.write_rows(_bytes(out), _bytes(lying), flat, width, out.dtype.kind, out.itemsize, _MODES[combine])
        return
    places, inside = [], None
    for i, d in zip(indices, extents):
        place = i.astype(np.int64, copy=False)
        if place.size and (place.min() < 0 or place.max() >= d):  # those are dropped
            fits = (place >= 0) & (place < d)
            inside = fits if inside is None else inside & fits
        places.append(place)
    flat = _flat(places, extents).reshape(-1)
    values = updates.reshape(flat.size, width)
    if inside is not None:
        flat, values = flat[inside.reshape(-1)], values[inside.reshape(-1)]
    if width > 1:
        flat = ((flat * width)[:, None] + np.arange(width)).reshape(-1)
    if combine is None:
        out.reshape(-1)[flat] = values.reshape(-1)
    else:
        combine.at(out.reshape(-1), flat, values.reshape(-1))


#: What `write_rows` of the core calls what is done with elements.
_MODES: dict[np.ufunc | None, int] = {None: 0, np.add: 1, np.multiply: 2, np.maximum: 3, np.minimum: 4}


def _is_combined(dtype: np.dtype) -> bool:
    """Whether the core combines elements of a type."""
    return dtype.kind in "iu" or dtype.char in "fd"


def _bytes(x: np.ndarray) -> np.ndarray:
    """The memory of a contiguous array; some dtypes have no buffer of their own."""
    return x.reshape(-1).view(np.uint8)


def _numbers(indices: Sequence[np.ndarray], extents: Sequence[int]) -> np.ndarray:
    """Row-major numbers of places; no place has -1."""
    if len(indices) > 1 and indices[0].size <= FEW:
        with contextlib.suppress(ValueError):  # some are no places
            return np.ravel_multi_index([i.reshape(-1) for i in indices], extents)
    places = [i.astype(np.int64, copy=False).reshape(-1) for i in indices]
    if len(places) == 1:
        return places[0]
    inside = np.logical_and.reduce([(place >= 0) & (place < d) for place, d in zip(places, extents)])
    return np.where(inside, _flat(places, extents), -1)


def _flat(places: Sequence[np.ndarray], extents: Sequence[int]) -> np.ndarray:
    """Row-major numbers of places."""
    found = places[0]
    for place, extent in zip(places[1:], extents[1:]):
        found = found * extent + place
    return found
