"""`smelt.ShapeDtype`: an array's type in place of the array."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from smelt.ir.errors import ShapeError, at_user_line

from .arguments import aval_of, dtype_of
from .build import MOST_ELEMENTS
from .movement import shape_tuple


class ShapeDtype:
    """An argument by its type alone, for `CompiledFunction.trace`.

    Args:
        shape: an int or a sequence of ints. dtype: one of smelt's, or its name.

    Raises:
        ShapeError: a negative extent, or more elements than an array can have.

    >>> import smelt
    >>> smelt.ShapeDtype((2, 3), smelt.float32)
    ShapeDtype(f32[2,3])
    """

    def __init__(self, shape: Sequence[int], dtype: Any):
        self.aval = aval_of("ShapeDtype", shape_tuple("ShapeDtype", shape), dtype_of("ShapeDtype", dtype))
        if any(d < 0 for d in self.aval.shape) or math.prod(max(d, 1) for d in self.aval.shape) >= MOST_ELEMENTS:
            raise ShapeError(at_user_line(f"smelt.ShapeDtype: {self.aval} is no shape that an array can have"))

    def __repr__(self) -> str:
        return f"ShapeDtype({self.aval})"
