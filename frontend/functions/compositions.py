"""Functions made of other ops, so that fusion makes one kernel of them and derivatives come for free."""

from __future__ import annotations

import math
from typing import Literal, overload

from smelt.ir.op import registry as ops

from ..lazy.arrays import (
    ArrayLike,
    StreamOrDevice,
    array,
    broadcast_to_shape,
    convert,
    emit_elementwise,
    promote_operands,
    wrap,
)
from ..lazy.core import remembered, remembered_numbers
from ..lazy.operands import as_floating, constant
from ..lazy.streams import check_stream
from .arithmetic import sign as sign_of
from .complex_numbers import real
from .reductions import Axis, extremum_of, kept_shape, normalize_axes, only, reduce_axes, reshape_to, widened

__all__ = ["logaddexp", "logsumexp", "softmax"]


@remembered
def softmax(
    a: ArrayLike, /, axis: Axis = None, *, precise: bool = False, stream: StreamOrDevice = None
) -> array:
    """exp(a) / Σ exp(a) over axes, without overflow. Half precision is computed in float32; integers give float32.

    Args:
        axis: where the result sums to one; None for all axes.
        precise: accepted for MLX's sake and ignored.

    >>> import smelt
    >>> smelt.softmax(smelt.array([1000.0, 1000.0]))
    array([0.5, 0.5], dtype=float32)
    """
    check_stream(stream)
    x = as_floating(a)
    axes = normalize_axes("softmax", x, axis)
    if not x.size:
        return wrap(x._ref)
    dtype = x.dtype
    x = widened(x)
    top = extremum_of("softmax", "reduce_max", x, axes, True)
    top = broadcast_to_shape(emit_elementwise(ops["stop_gradient"], top), x.shape)
    powers = emit_elementwise(ops["exp"], emit_elementwise(ops["sub"], x, top))
    total = broadcast_to_shape(reduce_axes("reduce_sum", powers, axes, True), x.shape)
    return convert(emit_elementwise(ops["div"], powers, total), dtype)


@overload
def logsumexp(
    a: ArrayLike, /, axis: Axis = None, keepdims: bool = False, *, b: ArrayLike | None = None,
    where: ArrayLike | None = None, return_sign: Literal[False] = False, stream: StreamOrDevice = None,
) -> array: ...  # fmt: skip
@overload
def logsumexp(
    a: ArrayLike, /, axis: Axis = None, keepdims: bool = False, *, b: ArrayLike | None = None,
    where: ArrayLike | None = None, return_sign: bool = False, stream: StreamOrDevice = None,
) -> array | tuple[array, array]: ...  # fmt: skip
@remembered
def logsumexp(
    a: ArrayLike, /, axis: Axis = None, keepdims: bool = False, *, b: ArrayLike | None = None,
    where: ArrayLike | None = None, return_sign: bool = False, stream: StreamOrDevice = None,
) -> array | tuple[array, array]:  # fmt: skip
    """log Σ exp(a) over axes, without overflow; -inf where all elements are. Integers give float32.

    Of complex numbers it is the largest one, and what is added to that: not always the principal logarithm.

    Args:
        axis: an int, several, or None for all. keepdims: whether these axes stay, with one element.
        b: factors of the powers, which broadcast with a: log Σ b exp(a), NaN of a negative sum.
        where: bools that broadcast to a: which elements count.
        return_sign: the logarithm of the absolute value of the sum, and beside it the sum's sign: 1, -1 or 0, of
            complex numbers one of absolute value 1.

    Returns:
        The logarithm; a tuple ``(logarithm, sign)`` with `return_sign`.

    Raises:
        ShapeError: a reduced axis is empty.

    >>> import smelt
    >>> smelt.logsumexp(smelt.array([1000.0, 1000.0]))
    array(1000.69, dtype=float32)
    >>> smelt.logsumexp(smelt.array([1000.0, 1001.0]), b=[1.0, -1.0], return_sign=True)
    (array(1000.54, dtype=float32), array(-1, dtype=float32))
    """
    check_stream(stream)
    x, *factors = [as_floating(a)] if b is None else promote_operands("logsumexp", a, b, floating=True)
    axes = normalize_axes("logsumexp", x, axis)
    dtype = x.dtype
    x = only("logsumexp", widened(x), where, -math.inf)
    lowest = constant(-math.inf, x.dtype, x.shape)
    counted = x
    if factors:
        factor = only("logsumexp", convert(factors[0], x.dtype), where, 1)
        left_out = emit_elementwise(ops["equal"], factor, constant(0, x.dtype, x.shape))
        counted = emit_elementwise(ops["select"], left_out, lowest, x)
    top = extremum_of("logsumexp", "reduce_max", counted, axes, True)
    # The shift: the maximum, but 0 where it is infinite or NaN, which must not cancel.
    size = emit_elementwise(ops["abs"], top)
    infinity = constant(math.inf, size.dtype, top.shape)
    finite = emit_elementwise(ops["less"], size, infinity)
    top = emit_elementwise(ops["select"], finite, top, constant(0, x.dtype, top.shape))
    top = emit_elementwise(ops["stop_gradient"], top)
    if return_sign and x.dtype.is_complex:  # a shift that turns would turn the sign
        top = convert(real(top), x.dtype)
    exponents = emit_elementwise(ops["sub"], x, broadcast_to_shape(top, x.shape))
    if factors:  # a power of which nothing is taken is not infinite: it is the derivative by its factor
        fits = emit_elementwise(ops["less"], exponents, constant(80, x.dtype, x.shape))
        infinite = emit_elementwise(ops["logical_and"], left_out, emit_elementwise(ops["logical_not"], fits))
        exponents = emit_elementwise(ops["select"], infinite, lowest, exponents)
    powers = emit_elementwise(ops["exp"], exponents)
    if factors:
        powers = emit_elementwise(ops["mul"], powers, factor)
    total = reduce_axes("reduce_sum", powers, axes, True)
    if return_sign:
        sign = convert(sign_of(total), dtype)
        total, top = emit_elementwise(ops["abs"], total), real(top)
        dtype = dtype.real
    # Where all are -inf the sum is 0: its logarithm, but not the derivative of that, which would be 0 · ∞.
    empty = emit_elementwise(ops["equal"], total, constant(0, total.dtype, total.shape))
    total = emit_elementwise(ops["select"], empty, constant(1, total.dtype, total.shape), total)
    lowest = constant(-math.inf, total.dtype, total.shape)
    total = emit_elementwise(ops["select"], empty, lowest, emit_elementwise(ops["log"], total))
    found = emit_elementwise(ops["add"], total, top)
    shape = kept_shape(x.shape, axes) if keepdims else tuple(d for i, d in enumerate(x.shape) if i not in axes)
    found = reshape_to(convert(found, dtype), shape)
    return (found, reshape_to(sign, shape)) if return_sign else found


@remembered_numbers
def logaddexp(a: ArrayLike, b: ArrayLike, /, *, stream: StreamOrDevice = None) -> array:
    """log(exp(a) + exp(b)), without overflow; -inf where both are. Integers give float32.

    Of complex numbers it is the larger one, and what is added to that: not always the principal logarithm.

    >>> import smelt
    >>> smelt.logaddexp(smelt.array([0.0, 1000.0]), 0.0)
    array([0.693147, 1000], dtype=float32)
    """
    check_stream(stream)
    x, y = promote_operands("logaddexp", a, b, floating=True)
    dtype = x.dtype
    x, y = widened(x), widened(y)
    # high + log1p(exp(low - high)) is smooth whichever operand is called high, so that all derivatives are right
    # also where both are equal; those of maximum and abs would not be.
    order = emit_elementwise(ops["greater_equal"], x, y)
    high, low = emit_elementwise(ops["select"], order, x, y), emit_elementwise(ops["select"], order, y, x)
    # Equal infinities have no difference, nor has that a derivative.
    size = emit_elementwise(ops["abs"], x)
    infinite = emit_elementwise(ops["equal"], size, constant(math.inf, size.dtype, x.shape))
    same = emit_elementwise(ops["logical_and"], emit_elementwise(ops["equal"], x, y), infinite)
    zero = constant(0, x.dtype, x.shape)
    parts = [emit_elementwise(ops["select"], same, zero, part) for part in (low, high)]
    rest = emit_elementwise(ops["log1p"], emit_elementwise(ops["exp"], emit_elementwise(ops["sub"], *parts)))
    if not x.dtype.is_complex:  # equal ones share the derivative
        half = constant(0.5, x.dtype, x.shape)
        halves = [emit_elementwise(ops["mul"], part, half) for part in (x, y)]
        high = emit_elementwise(ops["select"], same, emit_elementwise(ops["add"], *halves), high)
    return convert(emit_elementwise(ops["add"], high, rest), dtype)


