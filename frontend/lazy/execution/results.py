"""Results of NumPy as values."""

from __future__ import annotations

import numpy as np

from smelt.backends.buffer import memories
from smelt.ir.aval import Aval
from smelt.runtime import Buffer

from ..graph import LEAF, Ref, leaf

#: A part of an array is copied where the array is larger than twice the part and so many bytes.
_SLACK = 1 << 16


def as_buffer(x: np.ndarray, aval: Aval) -> Buffer:
    """The result of an op as a value. It may share memory with other arrays, for no array changes; a small part of a
    large array is copied, so that it does not keep the whole."""
    base = x.base
    whole = isinstance(base, np.ndarray) and _is_small_part(x.nbytes, base.nbytes)
    return Buffer.of(x.copy() if whole else x, aval)


def apart(ref: Ref) -> Ref:
    """The same array, in memory of its own where it is a small part of a large one.

    Who asks for a copy of a slice wants the large one to go.
    """
    node, i = ref
    if node.op is not LEAF or node.values is None:  # what is not computed yet will not keep it
        return ref
    buffer = node.values[i]
    if buffer.home is not None or not buffer.is_on_host:
        return ref
    base = buffer.array.base  # nearly always none, or one as large
    if not isinstance(base, np.ndarray) or not _is_small_part(buffer.aval.nbytes, base.nbytes):
        return ref
    if not any(_is_small_part(buffer.aval.nbytes, nbytes) for _, nbytes in memories([buffer])):
        return ref
    return leaf(Buffer.of(buffer.array.copy(), buffer.aval)), 0


def _is_small_part(nbytes: int, whole: int) -> bool:
    return whole > 2 * nbytes + _SLACK
