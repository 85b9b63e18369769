"""What samplers share: checks of their arguments, and uniform samples."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from smelt.ir import dtypes
from smelt.ir.dtypes import DType
from smelt.ir.errors import AttributeValueError, DTypeError, ShapeError, at_user_line, shown
from smelt.ir.op import registry as ops

from ..functions.logic import where
from ..functions.sorting import cumsum, searchsorted
from ..lazy.arguments import dtype_of
from ..lazy.arrays import (
    ArrayLike,
    Scalar,
    array,
    as_array,
    broadcast_shapes,
    broadcast_to_shape,
    convert,
    emit,
    emit_elementwise,
    scalar_array,
)
from ..lazy.core import remembered
from ..lazy.host import holds_arrays
from ..lazy.movement import Axes, checked_shape
from ..lazy.operands import constant
from ..lazy.weak import exact_number

# Arguments


def shape_of(name: str, shape: Axes) -> tuple[int, ...]:
    return checked_shape(f"random.{name}", shape)


def float_dtype(name: str, dtype: Any, allowed: Sequence[DType] = dtypes.FLOATS) -> DType:
    found = dtype_of(f"random.{name}", dtype, dtypes.float32)
    if found not in allowed:
        listed = ", ".join(d.name for d in allowed)
        raise DTypeError(at_user_line(f"smelt.random.{name}: dtype must be one of {listed}, is {found.name}"))
    return found


def parameter(name: str, what: str, value: ArrayLike, dtype: DType) -> array:
    """A parameter of a distribution in the dtype that samples are computed in."""
    x = scalar_array(value, dtype) if isinstance(value, (bool, int, float)) else as_array(value)
    if x.dtype.is_complex and not dtype.is_complex:
        raise DTypeError(at_user_line(f"smelt.random.{name}: {what} is {x.aval}, must be real"))
    return convert(x, dtype)


#: What parameters must be, by their names; those that a distribution has by MLX's name and rules are not among them.
RANGES = {
    **dict.fromkeys(("a", "b", "df", "dfnum", "dfden", "alpha"), "above 0"),
    **dict.fromkeys(("scale", "sigma", "lam", "n", "pvals"), "at least 0"),
    "p": "from 0 to 1",
}
_OUTSIDE = {
    "above 0": lambda x: x <= 0,
    "at least 0": lambda x: x < 0,
    "from 0 to 1": lambda x: (x < 0) | (x > 1),
}  # of numbers, NumPy's arrays and smelt's


def known_values(value: ArrayLike) -> Any:
    """A number, or NumPy's array of them, where the call has it; None of smelt's arrays, which may have none yet."""
    if isinstance(value, (bool, int, float, complex)):
        return exact_number(value)
    x = as_array(value)
    return None if holds_arrays(value) else x._host()


def check_range(name: str, what: str, known: Any, rule: str) -> None:
    """`known_values` of a parameter must be in its range. NaN passes, and gives NaN.

    Raises:
        AttributeValueError: a number outside of it.
    """
    if known is None or np.iscomplexobj(known):  # complex numbers are refused by their dtype
        return
    outside = _OUTSIDE[rule](known)
    if np.any(outside):
        found = np.asarray(known)[outside].item(0)
        raise AttributeValueError(at_user_line(f"smelt.random.{name}: {what} must be {rule}, is {shown(found)}"))


def _in_range(name: str, what: str, value: ArrayLike, dtype: DType) -> array:
    """A parameter; of arrays, whose numbers may not be known yet, NaN in place of those that it must not be."""
    x, rule = parameter(name, what, value, dtype), RANGES.get(what)
    if rule is None:
        return x
    known = known_values(value)
    if known is None:
        return where(_OUTSIDE[rule](x), math.nan, x)
    check_range(name, what, known, rule)
    return x


def check_fits(name: str, shape: tuple[int, ...], **parameters: array) -> None:
    """The parameters must broadcast to the shape of the result."""
    if broadcast_shapes(f"random.{name}", shape, *[x.shape for x in parameters.values()]) != shape:
        listed = ", ".join(f"{k} {x.aval}" for k, x in parameters.items())
        raise ShapeError(at_user_line(f"smelt.random.{name}: {listed} must broadcast to shape {shape}"))


def parameters(
    name: str, shape: Sequence[int] | None, dtype: DType, **given: ArrayLike
) -> tuple[list[array], tuple[int, ...]]:
    """The parameters of a distribution in a dtype, broadcast to the shape of the samples; and that shape, which is by
    default that of the parameters together.

    Raises:
        AttributeValueError: a known number that the distribution does not take; of arrays such ones become NaN.
    """
    found = {what: _in_range(name, what, value, dtype) for what, value in given.items()}
    if shape is None:
        whole = broadcast_shapes(f"random.{name}", *(x.shape for x in found.values()))
    else:
        whole = shape_of(name, shape)
        check_fits(name, whole, **found)
    return [broadcast_to_shape(x, whole) for x in found.values()], whole


def computed_in(dtype: DType) -> DType:
    """Samples of half precision are computed in float32."""
    return dtypes.float32 if dtype.size == 2 else dtype


def float_parameters(
    name: str, dtype: DType | None, shape: Sequence[int] | None, **given: ArrayLike
) -> tuple[DType, list[array], tuple[int, ...]]:
    """The dtype of samples; `parameters` in the dtype that they are computed in; the shape."""
    target = float_dtype(name, dtype)
    found, whole = parameters(name, shape, computed_in(target), **given)
    return target, found, whole


# Short forms for what samplers are made of: scalars in them are part of the program.


@remembered
def apply(op_name: str, x: array, *rest: array | Scalar) -> array:
    """An elementwise op of x and others, broadcast to its shape."""
    dtype = next((y.dtype for y in rest if isinstance(y, array)), x.dtype)
    others = [y if isinstance(y, array) else constant(y, dtype) for y in rest]
    return emit_elementwise(ops[op_name], x, *[broadcast_to_shape(y, x.shape) for y in others])


@remembered
def random_bits(key: array, shape: tuple[int, ...], width: int) -> array:
    return emit(ops["random_bits"], (key,), {"shape": shape, "width": width})


#: Bits of the significands.
_DIGITS = {dtypes.float16: 11, dtypes.bfloat16: 8, dtypes.float32: 24, dtypes.float64: 53}


def rounded(x: array, target: DType) -> array:
    """Rounded to a dtype, in the dtype that its samples are computed in."""
    return x if x.dtype is target else convert(convert(x, target), x.dtype)


@remembered
def uniform_unit(key: array, shape: tuple[int, ...], target: DType) -> array:
    """Uniform in [0, 1), in the dtype that samples of `target` are computed in: words as fractions, rounded to
    `target`, the number below 1 in place of 1. Of float64, multiples of 2⁻⁵³."""
    digits = _DIGITS[target]
    if target is dtypes.float64:
        return apply("mul", convert(apply("right_shift", random_bits(key, shape, 64), 11), target), 0.5**digits)
    unit = apply("mul", convert(random_bits(key, shape, 32), dtypes.float32), 0.5**32)
    return apply("minimum", rounded(unit, target), 1 - 0.5**digits)


def uniform_between(unit: array, low: array, high: array, target: DType) -> array:
    """From [0, 1) to where `low` and `high`, which broadcast to it, are; each step rounded to `target`."""
    ends = broadcast_shapes("random.uniform", low.shape, high.shape)
    extent = rounded(apply("sub", broadcast_to_shape(high, ends), low), target)
    return rounded(apply("add", rounded(apply("mul", unit, extent), target), low), target)


@remembered
def uniform_open(key: array, shape: tuple[int, ...], dtype: DType) -> array:
    """Uniform in (-1, 1): of float32 in steps as in [0, 1), from the number above -1 on; of float64 odd multiples of
    2⁻⁵³."""
    if dtype is not dtypes.float64:
        return apply("add", apply("mul", uniform_unit(key, shape, dtype), 2), 0.5**24 - 1)
    words = convert(apply("right_shift", random_bits(key, shape, 64), 11), dtypes.int64)
    odd = apply("sub", apply("add", words, words), 2**53 - 1)
    return apply("mul", convert(odd, dtype), 0.5**53)


@remembered
def normal_unit(key: array, shape: tuple[int, ...], dtype: DType) -> array:
    """Normal with mean 0 and variance 1."""
    return apply("mul", apply("erfinv", uniform_open(key, shape, dtype)), 2.0**0.5)


@remembered
def exponential(key: array, shape: tuple[int, ...], dtype: DType) -> array:
    """Exponential with mean 1: -log1p(-u) for u in (0, 1), fine where u is small."""
    width, digits = 8 * dtype.size, _DIGITS[dtype]
    words = convert(random_bits(key, shape, width), dtype)
    u = apply("mul", apply("add", words, 0.5), 0.5**width)
    u = apply("minimum", u, 1 - 0.5**digits)
    return apply("neg", apply("log1p", apply("neg", u)))


def parts_of_sum(weights: array, unit: array) -> array:
    """Which of the parts that weights within 0 and 1 make of their sum the numbers of [0, 1) fall into.

    The weights become whole numbers: their sums are the same in whatever order a device adds them up, while those of
    100,000 floating-point weights differ by as much as the weights.
    """
    size = weights.size
    sums = cumsum(convert(apply("mul", weights, 2.0 ** (62 - size.bit_length())), dtypes.uint64))
    place = convert(apply("mul", unit, convert(sums[-1], unit.dtype)), dtypes.uint64)
    place = apply("minimum", place, apply("sub", sums[-1], 1))  # the product may have been rounded up
    return apply("minimum", searchsorted(sums, place, side="right"), size - 1)
