"""Products of matrices that are chosen by indices, as in mixtures of experts."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

from smelt.ir.errors import DTypeError, IndexOutOfRangeError, ShapeError, at_user_line

from ..lazy.arrays import ArrayLike, StreamOrDevice, array, as_array, broadcast_shapes
from ..lazy.core import remembered
from ..lazy.streams import check_stream
from .index_functions import take
from .known_indices import outside, refuse
from .linear import matmul
from .shaping import reshape

__all__ = ["gather_mm"]


def check_chosen(name: str, place: int) -> Callable[[tuple, dict[str, Any]], None]:
    """The check of products of chosen matrices: of arguments from number `place` on, those of each operand.

    Arguments that do not fit are left to the function.
    """

    def check(args: tuple, named: dict[str, Any]) -> None:
        for i, which in enumerate(("lhs_indices", "rhs_indices")):
            at = args[place + i] if len(args) > place + i else named.get(which)
            x = args[i] if len(args) > i else None
            if isinstance(at, array) and isinstance(x, array) and at.aval.dtype.is_integer:
                count = math.prod(x.aval.shape[:-2])
                if count and (bad := outside(at, count, -count)) is not None:
                    refuse(f"smelt.{name}: {which} has {bad}, of {count} matrices; {x.aval}")

    return check


@partial(remembered, check=check_chosen("gather_mm", 2))
def gather_mm(
    a: ArrayLike,
    b: ArrayLike,
    /,
    lhs_indices: ArrayLike | None = None,
    rhs_indices: ArrayLike | None = None,
    *,
    sorted_indices: bool = False,
    stream: StreamOrDevice = None,
) -> array:
    """``a.reshape(-1, m, k)[lhs_indices] @ b.reshape(-1, k, n)[rhs_indices]``.

    Args:
        a: [..., m, k]. b: [..., k, n]. lhs_indices, rhs_indices: integers that count the matrices of `a` and of
            `b`; they broadcast against each other. None takes the matrices as they stand.
        sorted_indices: accepted for MLX's sake. On the CPU neighbours that choose the same matrix are multiplied
            together in any case.

    Returns:
        [indices..., m, n], in the common dtype.

    Raises:
        ShapeError: `a` or `b` is no stack of matrices, or shapes do not fit. DTypeError: indices that are no integers.
        IndexOutOfRangeError: there is no matrix to choose, or not the one of an index that is there.

    >>> import smelt
    >>> experts = smelt.array([[[1.0], [1.0]], [[10.0], [10.0]]])
    >>> smelt.gather_mm(smelt.array([[[1.0, 2.0]]]), experts, rhs_indices=smelt.array([1, 0]))
    array([[[30]],
           [[3]]], dtype=float32)
    """
    check_stream(stream)
    return chosen_products("gather_mm", as_array(a), as_array(b), lhs_indices, rhs_indices)


def chosen_products(
    name: str, x: array, y: array, lhs_indices: ArrayLike | None, rhs_indices: ArrayLike | None = None
) -> array:  # fmt: skip
    """`gather_mm` for the function `name`, whose arguments it checks."""
    left, right = chosen(name, "lhs_indices", x, lhs_indices), chosen(name, "rhs_indices", y, rhs_indices)
    if x.shape[-1] != y.shape[-2]:
        message = f"the left matrices need as many columns as the right ones have rows; {x.aval} times {y.aval}"
        raise ShapeError(at_user_line(f"smelt.{name}: {message}"))
    broadcast_shapes(name, left.shape[:-2], right.shape[:-2])
    return matmul(left, right)


def chosen(name: str, which: str, x: array, indices: ArrayLike | None) -> array:
    """The matrices of `x` that are chosen; all of them by None. `name`, `which`: of the function and its argument."""
    if x.ndim < 2:
        raise ShapeError(at_user_line(f"smelt.{name}: needs matrices, got {x.aval}"))
    if indices is None:
        return x
    at = as_array(indices)
    if not at.dtype.is_integer:
        raise DTypeError(at_user_line(f"smelt.{name}: {which} must be integers, are {at.aval}"))
    count = math.prod(x.shape[:-2])
    if at.size and not count:
        raise IndexOutOfRangeError(at_user_line(f"smelt.{name}: {which} choose from no matrices; {x.aval}"))
    return take(reshape(x, (count, *x.shape[-2:])), at, 0)
