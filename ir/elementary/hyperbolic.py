"""Hyperbolic functions and their inverses."""

from __future__ import annotations

from ..scalar import Scalar, ScalarBuilder
from . import coefficients as c
from .exponential import exp_scaled, expm1, log1p
from .floats import absolute, copysign, polynomial

_LN2 = 0.6931471805599453


def sinh(k: ScalarBuilder, x: Scalar) -> Scalar:
    """sinh x = E - 1/(4E), E = e^|x| / 2; a polynomial below 1.

    Largest error found: 1.58 ulp in float32, 1.48 ulp in float64.
    """
    a = absolute(k, x)
    e = exp_scaled(k, a, -1)
    z = x * x
    small = k.fma(x * z, polynomial(k, z, c.SINH), x)
    return k.select(a < 1.0, small, copysign(k, e - 0.25 / e, x))


def cosh(k: ScalarBuilder, x: Scalar) -> Scalar:
    """cosh x = E + 1/(4E), E = e^|x| / 2.

    Largest error found: 1.47 ulp in float32, 1.29 ulp in float64.
    """
    e = exp_scaled(k, absolute(k, x), -1)
    return e + 0.25 / e


def tanh(k: ScalarBuilder, x: Scalar) -> Scalar:
    """tanh x = m / (m + 2), m = e^(2|x|) - 1.

    Largest error found: 2.42 ulp in float32, 2.34 ulp in float64.
    """
    a = absolute(k, x)
    limit = 10.0 if x.dtype.size == 4 else 20.0
    m = expm1(k, k.select(a > limit, limit, a) * 2.0)
    return copysign(k, m / (m + 2.0), x)


def tanh_half(k: ScalarBuilder, x: Scalar) -> Scalar:
    """tanh x for half precision: x·P(x²)/Q(x²) up to 5, within 3e-6 of it and never above 1; then 1.

    Too coarse for float32, but the rounding of a float16 result is 2.4e-4, of a bfloat16 result 2e-3. From 4.6 on both
    round to 1: what a kernel makes of 1 - |tanh x|, times a large x, is nothing there, as it is of rounded numbers.
    """
    square = x * x
    found = k.div_coarse(x * polynomial(k, square, c.TANH_HALF), polynomial(k, square, c.TANH_HALF_BELOW))
    return k.select(x > 5.0, 1.0, k.select(x < -5.0, -1.0, found))


def arcsinh(k: ScalarBuilder, x: Scalar) -> Scalar:
    """arcsinh x = log1p(a + a²/(1 + √(1 + a²))), a = |x|; log a + log 2 for huge a.

    Largest error found: 1.76 ulp in float32, 2.03 ulp in float64.
    """
    a = absolute(k, x)
    huge = a > 2.0**30 if x.dtype.size == 4 else a > 2.0**60
    square = a * a
    u = a + square / (k.math("sqrt", square + 1.0) + 1.0)
    y = log1p(k, k.select(huge, a, u))
    return copysign(k, k.select(huge, y + _LN2, y), x)


def arccosh(k: ScalarBuilder, x: Scalar) -> Scalar:
    """arccosh x = log1p(t + √(t·(t + 2))), t = x - 1; log x + log 2 for huge x.

    Largest error found: 2.22 ulp in float32, 2.38 ulp in float64.
    """
    huge = x > 2.0**30 if x.dtype.size == 4 else x > 2.0**60
    t = x - 1.0
    y = log1p(k, k.select(huge, x, t + k.math("sqrt", t * (t + 2.0))))
    return k.select(x < 1.0, float("nan"), k.select(huge, y + _LN2, y))


def arctanh(k: ScalarBuilder, x: Scalar) -> Scalar:
    """arctanh x = log1p(2a/(1 - a)) / 2, a = |x|.

    Largest error found: 2.03 ulp in float32, 2.20 ulp in float64.
    """
    a = absolute(k, x)
    return copysign(k, log1p(k, (a + a) / (1.0 - a)) * 0.5, x)
