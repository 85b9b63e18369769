"""The gamma function itself, and what is made of it, as compositions: they have all derivatives."""

from __future__ import annotations

import math

from smelt.ir import dtypes
from smelt.ir.op import registry as ops

from ..lazy.arrays import ArrayLike, StreamOrDevice, array, emit
from ..lazy.core import remembered
from ..lazy.streams import check_stream
from .arithmetic import power
from .logic import isnan, logical_and, logical_or, where
from .probabilities import log_beta
from .rounding import floor, round
from .special_parts import computed, far_of, gamma_parts, overflowing, stirling_series
from .transcendental import exp, sin

__all__ = ["beta", "factorial", "gamma", "gammasgn"]

_ROOT_TAU = math.sqrt(2 * math.pi)


@remembered
def gamma(a: ArrayLike, /, *, stream: StreamOrDevice = None) -> array:
    """Γ(a), which continues the factorial: Γ(n + 1) = n!. ±inf at ±0, NaN at negative integers and at -inf.

    >>> import smelt
    >>> smelt.gamma(smelt.array([5.0, 0.5, -1.5]))
    array([24, 1.77245, 2.36327], dtype=float32)
    """
    check_stream(stream)
    return computed("gamma", _gamma, a)


def _gamma(x: array) -> array:
    """Below 0 by Γ(x)·Γ(1 - x) = π / sin πx, where 1 - x is not rounded: Γ(1 - x) = -x·Γ(-x)."""
    below, zero = logical_and(x < 0, x > -math.inf), x == 0
    size = where(below, -x, where(zero, 1.0, x))
    little = logical_and(below, size < 1)
    # What vanishes has no slope, and no infinite divisor, of which there would be no slope, either.
    vanished = logical_and(below, size > (170.0 if x.dtype is dtypes.float64 else 34.0))
    found = _of_positive(where(vanished, 1.0, where(little, size + 1, size)))
    part, turns = where(below, x - round(x), 0.5), where(below, round(x), 0.0)
    pole = part == 0
    sine = _parity(turns) * sin(math.pi * where(pole, 0.5, part))
    signed = sine * (where(below, where(little, 1, size), 1) * where(below, found, 1))
    mirrored = where(pole, math.nan, math.pi / signed)
    mirrored = mirrored * where(vanished, 0.0, 1.0)
    found = where(x == -math.inf, math.nan, found)
    return where(zero, 1 / where(zero, x, 1), where(below, mirrored, found))


def _parity(n: array) -> array:
    """1 for an even number, -1 for an odd one."""
    return 1 - 2 * (n - 2 * floor(n * 0.5))


def _of_positive(x: array) -> array:
    """Γ(x) of x > 0: a power in two halves, for that of x itself overflows before Γ(x) does."""
    start, end = far_of(x.dtype), 180.0 if x.dtype is dtypes.float64 else 40.0
    far, infinite = x >= start, x >= end
    near, factor, is_below = gamma_parts(where(far, 2.0, x), start)
    small = exp(near)
    small = where(is_below, small / factor, small * where(is_below, 1.0, factor))
    z = where(logical_and(far, x < end), x, start)
    half = power(z, z * 0.5 - 0.25)
    # A quotient, for exp(-z) has an infinite cotangent long before Γ(x) has an infinite slope.
    large = half * (_ROOT_TAU * half / exp(z)) * exp(stirling_series(z, start))
    found = where(far, large, small)
    # That of whole numbers is whole, where the error is less than a half, and has the derivative that it had.
    exact = logical_and(x == floor(x), found < (2.0**49 if x.dtype is dtypes.float64 else 2.0**20))
    rounded = emit(ops["stop_gradient"], (where(exact, round(found) - found, 0.0),))
    return where(isnan(x), x, where(infinite, overflowing(where(infinite, x, 0.0)), found + rounded))


@remembered
def gammasgn(a: ArrayLike, /, *, stream: StreamOrDevice = None) -> array:
    """The sign of Γ(a): 1 or -1; NaN where that has none, at negative integers and -inf.

    >>> import smelt
    >>> smelt.gammasgn(smelt.array([2.5, -0.5, -1.5, -1.0]))
    array([1, -1, 1, nan], dtype=float32)
    """
    check_stream(stream)
    return computed("gammasgn", _sign_of_gamma, a)


def _sign_of_gamma(x: array) -> array:
    low = floor(x)
    below = logical_and(x < 0, x > -math.inf)
    found = where(below, where(low == x, math.nan, _parity(where(below, low, 0.0))), 1.0)
    zero = x == 0
    found = where(zero, where(1 / where(zero, x, 1) < 0, -1.0, 1.0), found)
    return where(logical_or(isnan(x), x == -math.inf), math.nan, found)


@remembered
def factorial(n: ArrayLike, /, *, stream: StreamOrDevice = None) -> array:
    """n! = Γ(n + 1), also between the integers; 0 below 0, as in SciPy.

    Args:
        n: numbers; of integers the result is float32.

    >>> import smelt
    >>> smelt.factorial(smelt.array([0, 3, 5]))
    array([1, 6, 120], dtype=float32)
    """
    check_stream(stream)
    return computed("factorial", _factorial, n)


def _factorial(n: array) -> array:
    """By n·Γ(n) from 1 on, where n + 1 may be rounded."""
    below, little = n < 0, n < 1
    size = where(below, 0.0, n)
    return where(below, 0.0, where(little, 1.0, size) * _of_positive(where(little, size + 1, size)))


@remembered
def beta(a: ArrayLike, b: ArrayLike, /, *, stream: StreamOrDevice = None) -> array:
    """The beta function Γ(a)·Γ(b) / Γ(a + b), of positive numbers; inf at 0, NaN below. See also `betaln`.

    >>> import smelt
    >>> smelt.beta(smelt.array([1.0, 0.5]), smelt.array([2.0, 0.5]))
    array([0.5, 3.14159], dtype=float32)
    """
    check_stream(stream)
    return computed("beta", _beta, a, b)


def _beta(a: array, b: array) -> array:
    """By gamma functions where these are finite; of others the logarithm has as many digits as there are."""
    least, most = (1e-30, 30.0) if a.dtype is not dtypes.float64 else (1e-300, 170.0)
    near = logical_and(logical_and(a > least, b > least), a + b < most)
    p, q = where(near, a, 1.0), where(near, b, 1.0)
    order = p < q
    low, high = where(order, p, q), where(order, q, p)
    small = _of_positive(low) * (_of_positive(high) / _of_positive(low + high))
    return where(near, small, exp(log_beta(where(near, 1.0, a), where(near, 1.0, b))))
