"""The error function and its inverse."""

from __future__ import annotations

from ..scalar import Scalar, ScalarBuilder
from . import coefficients as c
from .exponential import exp, log, times_exp
from .floats import absolute, copysign, polynomial


def erf(k: ScalarBuilder, x: Scalar) -> Scalar:
    """erf x = x + x·P(x²) below 1; above, 1 - q⁸ with a polynomial q in |x|, or in double precision
    1 - e^(-x²)·Q((|x| - 2)/(|x| + 2)).

    Largest error found: 2.06 ulp in float32, 2.00 ulp in float64.
    """
    a = absolute(k, x)
    z = x * x
    if x.dtype.size == 4:
        small = k.fma(x, polynomial(k, z, c.ERF32), x)
        q = polynomial(k, k.select(a > 4.0, 4.0, a), c.ERFC_ROOT)
        q = q * q
        q = q * q
        tail = k.fma(-q, q, 1.0)
    else:
        small = k.fma(x, polynomial(k, z, c.ERF), x)
        limited = k.select(a > 6.0, 6.0, a)
        q = polynomial(k, (limited - 2.0) / (limited + 2.0), c.ERFC)
        tail = k.fma(-exp(k, -(limited * limited)), q, 1.0)
    return k.select(a < 1.0, small, copysign(k, tail, x))


#: From here on erfc is 0, and up to here a normal number.
_ERFC_ENDS = {4: (11.0, 9.1), 8: (28.0, 26.5)}


def erfc(k: ScalarBuilder, x: Scalar) -> Scalar:
    """erfc x = 1 - erf x below 1/2; above, e^(-x²)·Q((|x| - 2)/(|x| + 2))/(|x| + 2); of negative x, 2 less that.

    Largest error found: 3.14 ulp in float32, 3.00 ulp in float64.
    """
    a, (zero, normal) = absolute(k, x), _ERFC_ENDS[x.dtype.size]
    z = x * x
    middle = 1.0 - k.fma(x, polynomial(k, z, c.ERF32 if x.dtype.size == 4 else c.ERF), x)
    u = k.select(a > zero, zero, a)
    more = u + 2.0
    inverse = 1.0 / more
    # What u + 2, its inverse and the square are less than they should be is a factor next to 1.
    missing = k.fma(-inverse, u - (more - 2.0), k.fma(-inverse, more, 1.0))
    square = u * u
    scaled = polynomial(k, (u - 2.0) * inverse, c.ERFCX) * inverse
    y = times_exp(k, scaled, -square, missing - k.fma(u, u, -square), a < normal)
    return k.select(a < 0.5, middle, k.select(x < 0.0, 2.0 - y, y))


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
