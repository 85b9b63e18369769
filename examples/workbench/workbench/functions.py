"""What users of the package call."""

from __future__ import annotations

from collections.abc import Callable

import smelt
from smelt.ir.op import registry
from smelt.lazy.arrays import as_array, emit_elementwise
from smelt.transforms.own import apply_transform

from . import ops, transforms  # noqa: F401  (define the ops)


def softsign(x: smelt.array) -> smelt.array:
    """x / (1 + |x|), as one op with all transformations."""
    return emit_elementwise(registry["workbench_softsign"], as_array(x))


def iterate(fun: Callable[[smelt.array], smelt.array], x: smelt.array, times: int) -> smelt.array:
    """fun(fun(…fun(x))), as one op of a function, which becomes a loop; fun may use arrays from outside."""
    x = as_array(x)
    (found,) = apply_transform("workbench_iterate", fun, [x], [x], times=times)
    return found
