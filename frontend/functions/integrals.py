"""Integrals that have names, as compositions: they have all derivatives.

Chebyshev series near 0, and of asymptotic forms from there on (Clenshaw, "Chebyshev series for mathematical functions",
1962); elliptic integrals by the arithmetic-geometric mean (Abramowitz and Stegun, 17.6).
"""

from __future__ import annotations

import math
from collections.abc import Callable

from smelt.ir import dtypes
from smelt.ir.errors import AttributeValueError, at_user_line, shown

from ..lazy.arguments import integer
from ..lazy.arrays import ArrayLike, StreamOrDevice, array
from ..lazy.core import remembered
from ..lazy.streams import check_stream
from .arithmetic import abs as absolute
from .arithmetic import power, sqrt
from .logic import isinf, logical_and, where
from .rounding import round
from .second_kind import positive_exp1
from .special_coefficients import (
    C_SMALL,
    CI_SMALL,
    FRESNEL_F,
    FRESNEL_G,
    S_SMALL,
    SI_SMALL,
    SICI_F,
    SICI_G,
    SPENCE,
)  # fmt: skip
from .special_parts import chebyshev, computed
from .transcendental import cos, exp, log, log1p, sin

__all__ = ["ellipe", "ellipk", "expn", "fresnel", "sici", "spence"]

_EULER = 0.5772156649015329
#: From where on `expn` is a continued fraction, and how much of it float64 and float32 need there.
_EXPN_END, _EXPN_DEPTH = 2.0, {True: 56, False: 14}


def _both(name: str, formulas: tuple[Callable[[array], array], ...], a: ArrayLike) -> tuple[array, ...]:
    return tuple(computed(name, formula, a) for formula in formulas)


@remembered
def sici(a: ArrayLike, /, *, stream: StreamOrDevice = None) -> tuple[array, array]:
    """The sine integral Si(a) = ∫₀ᵃ sin(t)/t dt and the cosine integral Ci(a) = γ + log a + ∫₀ᵃ (cos(t) - 1)/t dt.

    Ci is -inf at 0 and NaN below. Around its zeros the error is absolute.

    >>> import smelt
    >>> smelt.sici(smelt.array([0.0, 1.0, 10.0]))
    (array([0, 0.946083, 1.65835], dtype=float32), array([-inf, 0.337404, -0.0454564], dtype=float32))
    """
    check_stream(stream)
    sine, cosine = _both("sici", (_si, _ci), a)
    return sine, cosine


def _sici_parts(x: array) -> tuple[array, array, array, array, array, array]:
    """Of x ≥ 0 whether it is far, what it is where it is not, there f, g, cos x and sin x."""
    far = x > 8
    near, z = where(far, 1.0, x), where(logical_and(far, x < math.inf), x, 8.0)
    y = 1 / z
    t = 128 * y * y - 1
    return far, near, y * chebyshev(SICI_F, t), y * y * chebyshev(SICI_G, t), cos(z), sin(z)


def _si(x: array) -> array:
    far, near, f, g, c, s = _sici_parts(absolute(x))
    near = where(far, 1.0, x)
    large = where(isinf(x), math.pi / 2, math.pi / 2 - f * c - g * s)
    return where(far, where(x < 0, -large, large), near * chebyshev(SI_SMALL, near * near * 0.03125 - 1))


def _ci(x: array) -> array:
    positive = where(x > 0, x, 1.0)
    far, near, f, g, c, s = _sici_parts(positive)
    large = where(isinf(positive), 0, f * s - g * c)
    square = near * near
    small = log(near) + _EULER + square * chebyshev(CI_SMALL, square * 0.03125 - 1)
    return where(x > 0, where(far, large, small), where(x == 0, -math.inf, math.nan))


@remembered
def fresnel(a: ArrayLike, /, *, stream: StreamOrDevice = None) -> tuple[array, array]:
    """Fresnel's integrals S(a) = ∫₀ᵃ sin(πt²/2) dt and C(a) = ∫₀ᵃ cos(πt²/2) dt.

    >>> import smelt
    >>> smelt.fresnel(smelt.array([0.0, 1.0, -5.0]))
    (array([0, 0.438259, -0.499191], dtype=float32), array([0, 0.779893, -0.563631], dtype=float32))
    """
    check_stream(stream)
    sine, cosine = _both("fresnel", (lambda x: _fresnel(x, True), lambda x: _fresnel(x, False)), a)
    return sine, cosine


def _fresnel(x: array, sine: bool) -> array:
    size = absolute(x)
    far = size > 2
    near, z = where(far, 1.0, x), where(logical_and(far, size < math.inf), size, 2.0)
    square = near * near
    t = square * square * 0.125 - 1
    small = near * square * chebyshev(S_SMALL, t) if sine else near * chebyshev(C_SMALL, t)
    y = 1 / z
    cube = y * y * y
    t = 32 * cube * y - 1
    f, g = y * chebyshev(FRESNEL_F, t), cube * chebyshev(FRESNEL_G, t)
    angle = (math.pi / 2) * _square_of_turns(z)
    c, s = cos(angle), sin(angle)
    large = where(isinf(x), 0.5, 0.5 - (f * c + g * s) if sine else 0.5 + (f * s - g * c))
    return where(far, where(x < 0, -large, large), small)


def _square_of_turns(z: array) -> array:
    """z² less a multiple of 4, of z = 2k + r: 4kr less one, and r². k·r has no more digits than z, and is exact."""
    k = round(z * 0.5)
    r = z - 2 * k
    turns = k * r
    return 4 * (turns - round(turns)) + r * r


@remembered
def spence(a: ArrayLike, /, *, stream: StreamOrDevice = None) -> array:
    """Spence's function ∫₁ᵃ log(t)/(1 - t) dt, the dilogarithm Li₂(1 - a), as in SciPy. NaN below 0.

    >>> import smelt
    >>> smelt.spence(smelt.array([0.0, 1.0, 5.0]))
    array([1.64493, 0, -2.36994], dtype=float32)
    """
    check_stream(stream)
    return computed("spence", _spence, a)


def _spence(x: array) -> array:
    """From 1/2 to 3/2 a series; above by the inverse of x, below by 1 - x."""
    above, inside = x > 1.5, logical_and(x > 0, x < math.inf)
    z = where(inside, x, 1.0)
    large = where(above, z, 1.0)
    y, apart = where(above, 1 / large, z), where(above, (1 - large) / large, z - 1)
    low = y < 0.5
    w = where(low, -y, apart)
    series = w * chebyshev(SPENCE, 2 * w)
    little = where(low, y, 0.25)
    small = where(low, math.pi**2 / 6 - log(little) * log1p(-little) - series, series + 0.0)
    logarithm = log(large)
    found = where(above, -0.5 * logarithm * logarithm - small, small)
    return where(x == 0, math.pi**2 / 6, where(inside, found, where(x > 0, -math.inf, math.nan)))


@remembered
def expn(n: int, a: ArrayLike, /, *, stream: StreamOrDevice = None) -> array:
    """The exponential integral Eₙ(a) = ∫₁^∞ exp(-a·t)/tⁿ dt of an order n ≥ 0. NaN below 0; `exp1` is that of order 1.

    Raises:
        AttributeValueError: n is negative or above 50. ArgumentTypeError: n is no int.

    >>> import smelt
    >>> smelt.expn(2, smelt.array([0.0, 2.0, 10.0]))
    array([1, 0.0375343, 3.83024e-06], dtype=float32)
    """
    check_stream(stream)
    order = integer("expn", "n", n, 0)
    if order > 50:
        raise AttributeValueError(at_user_line(f"smelt.expn: n must be at most 50, is {shown(n)}"))
    return computed("expn", lambda x: _expn(order, x), a)


def _expn(n: int, x: array) -> array:
    """Up to 2 by recurrence from E₁, beyond by a continued fraction (Abramowitz and Stegun, 5.1.14 and 5.1.22)."""
    known = logical_and(x > 0, x < math.inf)
    z = where(known, x, 1.0)
    falling = exp(-z)
    pole: array | float = math.inf if n < 2 else 1 / (n - 1)
    if n == 0:
        found = falling / z
    else:
        far = z > _EXPN_END
        near, large = where(far, 1.0, z), where(far, z, _EXPN_END)
        small = positive_exp1(near)
        least = exp(-near)
        for k in range(1, n):
            small = (least - near * small) * (1 / k)
        depth = _EXPN_DEPTH[z.dtype is dtypes.float64]
        fraction = large + (n + 2 * depth)
        for i in range(depth, 0, -1):
            fraction = large + (n + 2 * i - 2) - (i * (n + i - 1)) / fraction
        found = where(far, falling / fraction, small)
    zero = x == 0
    at_zero = where(zero, x, 0.0)
    for k in range(1, min(n - 1, 4)):  # terms of derivatives that are finite there
        pole = pole + power(-at_zero, k) * (1 / (math.factorial(k) * (n - 1 - k)))
    return where(zero, pole, where(known, found, where(x == math.inf, 0, math.nan)))


@remembered
def ellipk(m: ArrayLike, /, *, stream: StreamOrDevice = None) -> array:
    """K(m) = ∫₀^{π/2} (1 - m·sin²t)^(-1/2) dt, the complete elliptic integral of the first kind of a parameter m = k².

    inf at 1, NaN above.

    >>> import smelt
    >>> smelt.ellipk(smelt.array([0.0, 0.5, 1.0]))
    array([1.5708, 1.85407, inf], dtype=float32)
    """
    check_stream(stream)
    return computed("ellipk", lambda m: _elliptic(m)[0], m)


@remembered
def ellipe(m: ArrayLike, /, *, stream: StreamOrDevice = None) -> array:
    """E(m) = ∫₀^{π/2} (1 - m·sin²t)^(1/2) dt, the complete elliptic integral of the second kind of a parameter m = k².

    1 at 1, NaN above.

    >>> import smelt
    >>> smelt.ellipe(smelt.array([0.0, 0.5, 1.0]))
    array([1.5708, 1.35064, 1], dtype=float32)
    """
    check_stream(stream)
    return computed("ellipe", lambda m: _elliptic(m)[1], m)


def _elliptic(m: array) -> tuple[array, array]:
    """K = π / 2a of the mean a of 1 and √(1 - m), and E = K·(1 - Σ 2ⁿ⁻¹·cₙ²), cₙ how far both were apart."""
    known = logical_and(m < 1, m > -math.inf)
    x = where(known, m, 0.0)
    a, b = x * 0.0 + 1, sqrt(1 - x)
    rest = 1 - x * 0.5
    share = 1.0
    for _ in range(12 if m.dtype is dtypes.float64 else 8):
        half = (a - b) * 0.5
        rest = rest - share * half * half
        a, b = (a + b) * 0.5, sqrt(a * b)
        share *= 2
    first = (math.pi / 2) / a
    at_one = m == 1
    missing = where(m == -math.inf, math.inf, math.nan)
    return (
        where(known, first, where(at_one, math.inf, where(m == -math.inf, 0.0, math.nan))),
        where(known, first * rest, where(at_one, 1.0, missing)),
    )
