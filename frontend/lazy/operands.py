"""Operands of elementwise functions: arrays in their common dtype and shape.

Operands are arrays or what `smelt.array` takes. Two operands meet in their common dtype (numbers of Python, and NumPy's
scalars, are weak: they take the array's dtype unless their kind is higher) and broadcast to a common shape.
Floating-point functions of integers and bools are computed in float32. Every function raises
ShapeError for shapes that do not broadcast and DTypeError for dtypes that it does not take, when it is
called; `stream` is accepted for MLX's sake: it is checked, and then ignored.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import TypeGuard

import numpy as np

from smelt.ir import dtypes
from smelt.ir.dtypes import DType
from smelt.ir.op import Op
from smelt.ir.op import registry as ops

from .arrays import (
    ArrayLike,
    Scalar,
    array,
    as_array,
    broadcast_shapes,
    broadcast_to_shape,
    convert,
    emit,
    emit_elementwise,
    is_rounded,
    meeting,
    promote_operands,
    scalar_array,
)
from .weak import is_number, weakened


def apply_unary(op: Op, a: ArrayLike) -> array:
    return emit_elementwise(op, a if type(a) is array else as_array(a))


def apply_floating(op: Op, a: ArrayLike) -> array:
    """`op` of an array; integers and bools are converted to float32 first."""
    return emit_elementwise(op, as_floating(a))


def apply_binary(name: str, op: Op, a: ArrayLike, b: ArrayLike, floating: bool = False) -> array:
    x, y = promote_operands(name, a, b, floating)
    return emit_elementwise(op, x, y)


def as_floating(a: ArrayLike) -> array:
    """`a` as an array; float32 where it is an integer or a bool."""
    x = a if type(a) is array else as_array(a)
    dtype = x.dtype
    return x if dtype.kind in "fc" else convert(x, dtypes.float32)


def constant(value: Scalar, dtype: DType, shape: tuple[int, ...] = ()) -> array:
    """An array of one value that is part of the program: for numbers of the library, not the user's."""
    return broadcast_to_shape(emit(ops["constant"], (), {"value": value, "dtype": dtype}), shape)


def promote_all(name: str, *operands: ArrayLike) -> list[array]:
    """Operands in their common dtype and shape; Python's and NumPy's numbers are weak where any is an array."""
    if any(isinstance(x, np.generic) for x in operands):
        operands = _weakened(*operands)
    strong = [x if type(x) is array else as_array(x) for x in operands if not is_scalar(x)]
    weak = [x for x in operands if is_scalar(x)]
    common = [x.dtype for x in strong] or [dtypes.of_scalar(x) for x in weak]
    dtype = common[0]
    for other in common[1:]:
        dtype = dtypes.promote(dtype, other)
    if strong:
        for scalar in weak:
            dtype = dtypes.promote_scalar(dtype, scalar)
    arrays = iter(strong)
    found = [scalar_array(x, dtype) if is_scalar(x) else meeting(x, next(arrays), dtype) for x in operands]
    shape = broadcast_shapes(name, *(x.shape for x in found))
    return [broadcast_to_shape(x, shape) for x in found]


def exact_arrays(operands: Sequence[ArrayLike]) -> list[array]:
    """Operands as arrays of their own dtypes, but for those that would be rounded where another is of float64."""
    found = [as_array(x) for x in operands]
    dtype = functools.reduce(dtypes.promote, [x.dtype for x in found])
    return [meeting(v, x, dtype) if is_rounded(v, dtype) else x for v, x in zip(operands, found)]


def arrays_of(*operands: ArrayLike) -> list[array]:
    """Operands as arrays of their own shapes. Numbers beside arrays are weak: exact in the dtype that both have.

    So are floats in lists and NumPy's arrays, if that is float64 or complex128.
    """
    if any(isinstance(x, np.generic) for x in operands):
        operands = _weakened(*operands)
    given = [x if is_scalar(x) or type(x) is array else as_array(x) for x in operands]
    met = [x.dtype for x in given if isinstance(x, array)]
    if not met:
        return [as_array(x) for x in given]
    dtype = functools.reduce(dtypes.promote, met)
    found: list[array] = []
    for operand, x in zip(operands, given):
        if not isinstance(x, array):
            found.append(scalar_array(x, dtypes.promote_scalar(dtype, x)))
        elif x.dtype.is_inexact and is_rounded(operand, dtype):
            found.append(meeting(operand, x, dtype))
        else:
            found.append(x)
    return found


def _weakened(*operands: ArrayLike) -> tuple[ArrayLike, ...]:
    """`operands` with NumPy's numbers as Python's, if there is an array that they meet."""
    arrays = [x if is_number(x) else as_array(x) for x in operands]
    met = [x.dtype for x in arrays if isinstance(x, array)]
    if not met:
        return operands
    dtype = functools.reduce(dtypes.promote, met)
    return tuple([weakened(x, dtype) if isinstance(x, np.generic) else x for x in arrays])


def is_scalar(x: object) -> TypeGuard[Scalar]:
    return isinstance(x, (bool, int, float, complex))
