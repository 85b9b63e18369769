"""The error function and its inverse."""

from __future__ import annotations

from ..scalar import Scalar, ScalarBuilder
from . import coefficients as c
from .exponential import exp, log
from .floats import absolute, copysign, polynomial


def erf(k: ScalarBuilder, x: Scalar) -> Scalar:
    """erf x = x + x·P(x²) below 1; above, 1 - q⁻⁸ with a polynomial q in |x| (the form of Hastings'
    approximation), or in double precision 1 - e^(-x²)·Q((|x| - 2)/(|x| + 2)).

    Largest error found: 2.48 ulp in float32, 2.00 ulp in float64.
    """
    a = absolute(k, x)
    z = x * x
    if x.dtype.size == 4:
        small = k.fma(x, polynomial(k, z, c.ERF32), x)
        q = polynomial(k, a, c.ERFC_ROOT)
        q = q * q
        q = q * q
        tail = 1.0 - 1.0 / (q * q)
    else:
        small = k.fma(x, polynomial(k, z, c.ERF), x)
        limited = k.select(a > 6.0, 6.0, a)
        q = polynomial(k, (limited - 2.0) / (limited + 2.0), c.ERFC)
        tail = k.fma(-exp(k, -(limited * limited)), q, 1.0)
    return k.select(a < 1.0, small, copysign(k, tail, x))


def erf_half(k: ScalarBuilder, x: Scalar) -> Scalar:
    """erf x for half precision: x·P(x²) up to 2.9, within 5e-5 and never above 1; then 1, as `tanh_half` is.

    Too coarse for float32, but the rounding of a float16 result is 2.4e-4, of a bfloat16 result 2e-3.
    """
    found = x * polynomial(k, x * x, c.ERF_HALF)
    return k.select(x > 2.9, 1.0, k.select(x < -2.9, -1.0, found))


def erfinv(k: ScalarBuilder, x: Scalar) -> Scalar:
    """The inverse of erf: x·P(w), w = -log(1 - x²), and polynomials in √w where w > 5 (after Giles).

    Largest error found: 2.74 ulp in float32, 2.33 ulp in float64.
    """
    w = -log(k, k.fma(-x, x, 1.0))
    s = k.math("sqrt", w)
    centre = polynomial(k, w - 2.5, c.ERFINV)
    if x.dtype.size == 4:
        tail = polynomial(k, s - 3.0, c.ERFINV_TAIL)
    else:
        far = polynomial(k, s - 5.0, c.ERFINV_FAR)
        tail = k.select(s < 3.7, polynomial(k, s - 3.0, c.ERFINV_MIDDLE), far)
    y = x * k.select(w < 5.0, centre, tail)
    return k.select(absolute(k, x).eq(1.0), copysign(k, k.const(float("inf"), x.dtype), x), y)
