"""Bessel functions of the second kind and exponential integrals, as compositions: they have all derivatives.

Logarithms and Chebyshev series below a few units, and series of asymptotic forms from there on (Clenshaw, "Chebyshev
series for mathematical functions", 1962). Of negative numbers all but Ei are NaN.
"""

from __future__ import annotations

import math

from ..lazy.arrays import ArrayLike, StreamOrDevice, array
from ..lazy.core import remembered
from ..lazy.streams import check_stream
from .arithmetic import abs as absolute
from .arithmetic import sqrt
from .logic import isinf, where
from .special import bessel_i0e, bessel_i1e, bessel_j0, bessel_j1, hankel_parts
from .special_coefficients import (
    E1_LARGE,
    E1_SMALL,
    EI_FAR,
    EI_LARGE,
    EI_MIDDLE,
    EI_ROOT,
    EI_SMALL,
    J0_P,
    J0_Q,
    J1_P,
    J1_Q,
    K0_LARGE,
    K0_SMALL,
    K1_LARGE,
    K1_SMALL,
    Y0_SMALL,
    Y1_SMALL,
)  # fmt: skip
from .special_parts import chebyshev, computed, epsilon, overflowing
from .transcendental import exp, log, log1p

EI_ENDS = 93.2471907545, 716.3554905424  #: beyond which Ei is infinite in float32 and float64

__all__ = ["exp1", "expi", "k0", "k0e", "k1", "k1e", "y0", "y1"]

_TWO_OVER_PI = 2 / math.pi


@remembered
def y0(a: ArrayLike, /, *, stream: StreamOrDevice = None) -> array:
    """Y₀(a), the Bessel function of the second kind of order 0. Around its zeros the error is absolute.

    -inf at 0, NaN below.

    >>> import smelt
    >>> smelt.y0(smelt.array([0.0, 2.0, 10.0]))
    array([-inf, 0.510376, 0.0556712], dtype=float32)
    """
    check_stream(stream)
    return computed("y0", _y0, a)


def _y0(x: array) -> array:
    far = x > 8
    near = _inside(x, x <= 8, 1.0)
    small = _TWO_OVER_PI * log(near) * bessel_j0(near) + chebyshev(Y0_SMALL, near * near * 0.03125 - 1)
    z, y, c, s, p, q = hankel_parts(x, far, J0_P, J0_Q)
    large = where(isinf(x), 0, sqrt((1 / math.pi) / z) * (p * (s - c) + y * q * (c + s)))
    return _of_positive(x, where(far, large, small), -math.inf)


@remembered
def y1(a: ArrayLike, /, *, stream: StreamOrDevice = None) -> array:
    """Y₁(a), the Bessel function of the second kind of order 1. Around its zeros the error is absolute.

    -inf at 0, NaN below.

    >>> import smelt
    >>> smelt.y1(smelt.array([0.0, 1.0, 10.0]))
    array([-inf, -0.781213, 0.249015], dtype=float32)
    """
    check_stream(stream)
    return computed("y1", _y1, a)


def _y1(x: array) -> array:
    far = x > 8
    near = _inside(x, x <= 8, 1.0)
    small = _TWO_OVER_PI * (log(near) * bessel_j1(near) - 1 / near) + near * chebyshev(
        Y1_SMALL, near * near * 0.03125 - 1
    )
    z, y, c, s, p, q = hankel_parts(x, far, J1_P, J1_Q)
    large = where(isinf(x), 0, sqrt((1 / math.pi) / z) * (y * q * (s - c) - p * (s + c)))
    return _of_positive(x, where(far, large, small), -math.inf)


@remembered
def k0(a: ArrayLike, /, *, stream: StreamOrDevice = None) -> array:
    """K₀(a), the modified Bessel function of the second kind of order 0. inf at 0, NaN below.

    >>> import smelt
    >>> smelt.k0(smelt.array([0.0, 2.0, 10.0]))
    array([inf, 0.113894, 1.77801e-05], dtype=float32)
    """
    check_stream(stream)
    return computed("k0", lambda x: _k(x, 0, False), a)


@remembered
def k0e(a: ArrayLike, /, *, stream: StreamOrDevice = None) -> array:
    """exp(a)·K₀(a), which does not vanish for large a.

    >>> import smelt
    >>> smelt.k0e(smelt.array([0.0, 1.0, 100.0]))
    array([inf, 1.14446, 0.125176], dtype=float32)
    """
    check_stream(stream)
    return computed("k0e", lambda x: _k(x, 0, True), a)


@remembered
def k1(a: ArrayLike, /, *, stream: StreamOrDevice = None) -> array:
    """K₁(a), the modified Bessel function of the second kind of order 1. inf at 0, NaN below.

    >>> import smelt
    >>> smelt.k1(smelt.array([0.0, 1.0, 10.0]))
    array([inf, 0.601907, 1.86488e-05], dtype=float32)
    """
    check_stream(stream)
    return computed("k1", lambda x: _k(x, 1, False), a)


@remembered
def k1e(a: ArrayLike, /, *, stream: StreamOrDevice = None) -> array:
    """exp(a)·K₁(a), which does not vanish for large a.

    >>> import smelt
    >>> smelt.k1e(smelt.array([0.0, 1.0, 100.0]))
    array([inf, 1.63615, 0.1258], dtype=float32)
    """
    check_stream(stream)
    return computed("k1e", lambda x: _k(x, 1, True), a)


def _k(x: array, order: int, scaled: bool) -> array:
    far = x > 2
    near = _inside(x, x <= 2, 1.0)
    logarithm, t = log(near * 0.5), near * near * 0.5 - 1
    if order == 0:
        small = chebyshev(K0_SMALL, t) - logarithm * (exp(near) * bessel_i0e(near))
    else:
        small = chebyshev(K1_SMALL, t) / near + logarithm * (exp(near) * bessel_i1e(near))
    z = where(far, x, 2.0)
    finite = where(isinf(z), 2.0, z)
    large = where(isinf(z), 0, chebyshev(K1_LARGE if order else K0_LARGE, 4 / finite - 1) / sqrt(finite))
    if scaled:
        small = small * exp(near)
    else:
        large = large * exp(-finite)
    return _of_positive(x, where(far, large, small), math.inf)


@remembered
def exp1(a: ArrayLike, /, *, stream: StreamOrDevice = None) -> array:
    """E₁(a) = ∫₁^∞ exp(-a·t)/t dt, an exponential integral. inf at 0, NaN below.

    >>> import smelt
    >>> smelt.exp1(smelt.array([0.0, 1.0, 10.0]))
    array([inf, 0.219384, 4.15697e-06], dtype=float32)
    """
    check_stream(stream)
    return computed("exp1", lambda x: _of_positive(x, positive_exp1(x), math.inf), a)


def positive_exp1(x: array) -> array:
    """E₁ of x > 0."""
    far = x > 1
    near = _inside(x, x <= 1, 0.5)
    small = chebyshev(E1_SMALL, 2 * near - 1) - log(near)
    z = where(far, where(isinf(x), 1.0, x), 1.0)
    return where(far, where(isinf(x), 0, exp(-z) * chebyshev(E1_LARGE, (z - 4) / (z + 2)) / z), small)


@remembered
def expi(a: ArrayLike, /, *, stream: StreamOrDevice = None) -> array:
    """Ei(a), the exponential integral ∫ exp(t)/t dt up to a, as a principal value; -E₁(-a) of a < 0. -inf at 0.

    >>> import smelt
    >>> smelt.expi(smelt.array([-1.0, 0.0, 1.0, 10.0]))
    array([-0.219384, -inf, 1.89512, 2492.23], dtype=float32)
    """
    check_stream(stream)
    return computed("expi", _expi, a)


def _expi(x: array) -> array:
    low, middle, high = x <= 3, x <= 8, x <= 20
    near = _inside(x, low, 1.0)
    high_root, rest = EI_ROOT
    apart = (near - high_root) - rest
    root = high_root + rest
    close = absolute(apart) < 0.2
    logarithm = where(close, log1p(where(close, apart, 0) / root), log(where(close, 1.0, near) / root))
    small = logarithm + apart * chebyshev(EI_SMALL, near * (2 / 3) - 1)
    over = x > EI_ENDS[epsilon(x.dtype) < 1e-10]
    z = where(low, 3.0, where(over, 3.0, x))
    first = chebyshev(EI_MIDDLE, (where(middle, z, 8.0) - 5.5) * 0.4)
    u = 1 / where(middle, 8.0, z)
    second = chebyshev(EI_LARGE, (where(high, u, 0.125) - 0.0875) * (1 / 0.0375))
    third = chebyshev(EI_FAR, where(high, 0.05, u) * 40 - 1)
    half = exp(z * 0.5)
    # A cotangent of the factor in the middle is the slope, which is finite where the result is.
    large = half * (where(middle, first, where(high, second, third)) * (half / z))
    positive = where(low, small, where(over, overflowing(where(over, x, 0.0)), large))
    below = x < 0
    negative = -positive_exp1(where(below, -x, 1.0))
    return where(x == 0, -math.inf, where(below, negative, where(x == x, positive, math.nan)))


def _inside(x: array, inside: array, other: float) -> array:
    """x where that is positive and `inside`, else another number: what is not chosen must have derivatives too."""
    return where(inside, where(x > 0, x, other), other)


def _of_positive(x: array, found: array, pole: float) -> array:
    return where(x > 0, found, where(x == 0, pole, math.nan))
