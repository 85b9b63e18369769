"""Results of NumPy as values."""

from __future__ import annotations

import numpy as np

from smelt.ir.aval import Aval
from smelt.runtime import Buffer

#: A part of an array is copied where the array is larger than twice the part and so many bytes.
_SLACK = 1 << 16


def as_buffer(x: np.ndarray, aval: Aval) -> Buffer:
    """The result of an op as a value. It may share memory with other arrays, for no array changes; a small part of a
    large array is copied, so that it does not keep the whole."""
    base = x.base
    whole = isinstance(base, np.ndarray) and base.nbytes > 2 * x.nbytes + _SLACK
    return Buffer.of(x.copy() if whole else x, aval)
