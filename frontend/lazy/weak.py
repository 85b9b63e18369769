"""Numbers beside arrays: they are weak, so that the array's dtype is that of the result unless their kind is higher."""

from __future__ import annotations

from typing import Any

import numpy as np

from smelt.ir import dtypes
from smelt.ir.dtypes import DType
from smelt.ir.errors import AttributeValueError, DTypeError, at_user_line, shown
from smelt.ir.symbolic import Symbol

SCALARS = frozenset((bool, int, float, complex))


def weak_dtype(dtype: DType, scalar: Any, floating: bool) -> DType:
    """The dtype in which an array meets a Python scalar."""
    if dtype.kind == "f" and type(scalar) is not complex:
        return dtype
    dtype = dtypes.promote_scalar(dtype, scalar)
    return dtypes.to_float(dtype) if floating else dtype


def is_number(x: object) -> bool:
    """Whether `x` is a number of Python or NumPy."""
    return isinstance(x, (bool, int, float, complex, np.generic))


def exact_number(x: Any) -> Any:
    """Of a number of a class derived from Python's the number that it is, whatever its methods say."""
    if type(x) in SCALARS:  # a bool among them
        return x
    kind = next((kind for kind in (int, float, complex) if issubclass(type(x), kind)), None)
    return x if kind is None else kind.__pos__(x)


def weakened(x: np.generic, dtype: DType) -> Any:
    """A number of NumPy beside an array of `dtype`: the Python number that it is, which is weak, as in MLX.

    An integer that is out of bounds there stays what it is, and so does what Python has no number for.
    """
    value = x.item()
    if type(value) is int:
        least = _least_and_greatest(dtypes.promote_scalar(dtype, value))
        return value if least is None or least[0] <= value <= least[1] else x
    return value if type(value) in SCALARS else x


def _least_and_greatest(dtype: DType) -> tuple[int, int] | None:
    if dtype.kind not in "iu":
        return None
    limits = np.iinfo(dtype.numpy)
    return int(limits.min), int(limits.max)


def fitting(value: Any, dtype: DType) -> Any:
    """A number for a constant of a dtype: integers that neither NumPy nor MLIR has are floats.

    A weak integer takes the dtype of the array that it meets; wrapped around it would be another number.
    """
    is_symbol = type(value) is Symbol  # what is asked of it becomes a guard
    if (type(value) is int or (is_symbol and isinstance(value, int))) and not dtype.holds(value):
        raise AttributeValueError(
            at_user_line(
                f"smelt: the number {shown(value)} is out of bounds for {dtype.name}, the dtype of the array that it "
                "meets; convert that array first, e.g. with .astype(smelt.int64)"
            )
        )
    if isinstance(value, int) and (dtype.is_float or dtype.is_complex) and not (is_symbol and value < 1 << 63):
        try:
            as_float = float(value)
        except OverflowError:
            message = f"smelt: the number {shown(value)} is too large for {dtype.name}"
            raise AttributeValueError(at_user_line(message)) from None
        return value if is_symbol or -(1 << 63) <= value < 1 << 64 else as_float
    if type(value) is complex and not dtype.is_complex:
        raise DTypeError(at_user_line(f"smelt: the number {value} is complex, {dtype.name} is real; take its .real"))
    return value
