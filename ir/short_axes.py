"""Elementwise functions of NumPy on arrays whose last axis is short and repeats itself differently in each of them.

``p[:, None] - p`` of points of a plane has rows of two elements, and NumPy begins anew with each row. Column by column
it begins as often as a row has elements.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .aval import Aval

#: Elements of a result from which on that is looked at, and of a row at most.
LEAST, MOST = 8192, 4


def by_columns(ufunc: Callable[..., Any], operands: Sequence[Aval], result: Aval) -> Callable[..., Any]:
    """What to call for `ufunc` on operands and a result of these types, which may have symbols: it gives the bits of
    `ufunc`."""
    if len(operands) < 2 or not isinstance(ufunc, np.ufunc) or result.ndim < 2:
        return ufunc
    size, short = result.size, result.shape[-1]
    if (type(size) is int and size < LEAST) or type(short) is not int or not 1 < short <= MOST:
        return ufunc
    return functools.partial(_by_columns, ufunc)


def _by_columns(ufunc: np.ufunc, *operands: np.ndarray) -> np.ndarray:
    shape = np.broadcast_shapes(*[x.shape for x in operands])
    if math.prod(shape) < LEAST or all(_goes_on(x, shape) for x in operands) or not all(map(_is_in_order, operands)):
        found: np.ndarray = ufunc(*operands)
        return found
    columns = [[x if x.ndim == 0 else x[..., k if x.shape[-1] > 1 else 0] for x in operands] for k in range(shape[-1])]
    first = ufunc(*columns[0])
    out = np.empty(shape, first.dtype)
    out[..., 0] = first
    for k in range(1, shape[-1]):
        ufunc(*columns[k], out=out[..., k])
    return out


def _is_in_order(x: np.ndarray) -> bool:
    """Whether an operand lies in the order of its axes. NumPy lets a result lie as its operands do, and sums of it are
    rounded in the order in which it lies."""
    steps = [step for step, n in zip(x.strides, x.shape) if n > 1 and step]
    return all(step > 0 for step in steps) and steps == sorted(steps, reverse=True)


def _goes_on(x: np.ndarray, shape: tuple[int, ...]) -> bool:
    """Whether rows of an operand follow each other in memory as elements of a row do, so that NumPy takes several as
    one."""
    if x.size == 1:
        return True
    return x.shape[-2:] == shape[-2:] and x.strides[-2] == x.shape[-1] * x.strides[-1]
