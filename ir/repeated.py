"""`numpy.broadcast_to` in a quarter of its time: programs that run op by op call it often."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np


def repeated(x: np.ndarray, shape: Sequence[int]) -> np.ndarray:
    """``np.broadcast_to(x, shape)``: a view that cannot be written to.

    Raises:
        ValueError: the shapes do not fit.

    >>> repeated(np.array([1, 2]), (3, 2)).strides
    (0, 8)
    """
    old = x.shape
    lead = len(shape) - len(old)
    if lead >= 0 and x.flags.c_contiguous and x.size:
        strides = [0] * lead
        for d, n, step in zip(old, shape[lead:], x.strides):
            if d == n:
                strides.append(step)
            elif d == 1:
                strides.append(0)
            else:
                return np.broadcast_to(x, shape)  # says what is wrong
        try:
            found: np.ndarray = np.ndarray(shape, x.dtype, x, 0, strides)
        except (TypeError, ValueError, BufferError):  # no buffer is of bfloat16
            return np.broadcast_to(x, shape)
        found.flags.writeable = False
        return found
    return np.broadcast_to(x, shape)
