"""Incomplete gamma and beta functions, as integrals over the half-line: compositions of ops with all derivatives.

x^a·e^(-x)·∫ exp(…) ds has a smooth, positive integrand, whose derivatives are integrals of the same kind. So there is
no loop, no choice of a series, and derivatives with respect to all operands are as precise as values.
"""

from __future__ import annotations

import math

import numpy as np

from ..lazy.arrays import ArrayLike, StreamOrDevice, array
from ..lazy.core import remembered
from ..lazy.operands import constant
from ..lazy.streams import check_stream
from .arithmetic import maximum, sqrt
from .joining import stack
from .logic import isnan, logical_and, logical_not, logical_or, where
from .special_parts import computed, expm1_less, half_line, integral, kept, log1p_less, polynomial, stirling_remainder
from .transcendental import exp, expm1, log, log1p

__all__ = ["betainc", "gammainc", "gammaincc"]


@remembered
def gammainc(a: ArrayLike, x: ArrayLike, /, *, stream: StreamOrDevice = None) -> array:
    """The regularized lower incomplete gamma function P(a, x) = ∫₀ˣ tᵃ⁻¹ e⁻ᵗ dt / Γ(a), of a > 0 and x ≥ 0.

    With derivatives with respect to both. NaN outside; P(0, x) is 1 for x > 0.

    >>> import smelt
    >>> smelt.gammainc(smelt.array([1.0, 2.0]), smelt.array([1.0, 3.0]))
    array([0.632121, 0.800852], dtype=float32)
    """
    check_stream(stream)
    return computed("gammainc", lambda a, x: _gamma_parts(a, x)[0], a, x)


@remembered
def gammaincc(a: ArrayLike, x: ArrayLike, /, *, stream: StreamOrDevice = None) -> array:
    """The regularized upper incomplete gamma function Q(a, x) = ∫ₓ^∞ tᵃ⁻¹ e⁻ᵗ dt / Γ(a) = 1 - P(a, x).

    With derivatives with respect to both. NaN unless a > 0 and x ≥ 0.

    >>> import smelt
    >>> smelt.gammaincc(smelt.array([1.0, 2.0]), smelt.array([1.0, 30.0]))
    array([0.367879, 2.90086e-12], dtype=float32)
    """
    check_stream(stream)
    return computed("gammaincc", lambda a, x: _gamma_parts(a, x)[1], a, x)


def _nodes(x: array) -> tuple[array, array]:
    """Places and weights, as constants of the program."""
    places, weights = half_line(x.dtype)
    return (
        stack([constant(v, x.dtype) for v in places]),
        stack([constant(v, x.dtype) for v in weights]),
    )


def _across(v: array) -> array:
    """Beside the nodes of an integral, which are a last axis."""
    return v.reshape((*v.shape, 1))


def _gamma_parts(a: array, x: array) -> tuple[array, array]:
    """P and Q."""
    known = logical_and(a > 0, x >= 0)
    infinite, large = x == math.inf, a == math.inf
    known_a = where(logical_and(known, a < math.inf), a, 1)
    known_x = where(logical_and(known, x < math.inf), x, 1)
    lower = known_x < where(known_a < 1, 0.1 + 0.9 * known_a, known_a + 1)
    # xᵃ·e⁻ˣ / Γ(a + 1), where what is large has been cancelled
    zero = known_x == 0
    moved, ratio = (known_x - known_a) / known_a, where(zero, 1, known_x / known_a)
    front = exp(known_a * log1p_less(moved, ratio) - stirling_remainder(known_a)) / sqrt(2 * math.pi * known_a)
    front = where(zero, 0, front)
    # P(a, x) = front·(1 + x·∫ exp(-(a + 1)·s + x·(1 - e⁻ˢ)) ds), where x is not much larger than a, and elsewhere
    # Q(a, x) = front·a·∫ (1 + u)ᵃ⁻¹·exp(-x·u) du: one integral, of what its place asks for
    b = known_a - 1
    slope = where(lower, known_a + 1 - known_x, known_x - b)
    bent = where(lower, known_x, maximum(0, b))
    steep = logical_and(b < 0, logical_not(lower))
    scale = where(steep, 1 / where(steep, known_x, 1), 2 / (slope + sqrt(slope * slope + 2 * bent)))

    def exponent_of(s: array) -> array:
        return _across(slope) * s + where(
            _across(lower), _across(known_x) * expm1_less(s), _across(-b) * log1p_less(s, 1 + s)
        )

    found = front * integral(exponent_of, scale, *_nodes(a))
    p, q = front + known_x * found, known_a * found
    little = logical_and(lower, known_a < 0.5)
    rest = where(
        little, _rest_of_little(where(little, known_a, 0.25), where(logical_and(little, x > 0), x, 0.25)), 1 - p
    )
    p, q = where(lower, p, 1 - q), where(lower, rest, q)
    # the limits
    p = where(logical_or(infinite, a == 0), 1, where(logical_or(large, x == 0), 0, p))
    wrong = logical_or(logical_or(a < 0, x < 0), logical_or(isnan(a), isnan(x)))
    wrong = logical_or(wrong, logical_or(logical_and(infinite, large), logical_and(a == 0, x == 0)))
    q = where(logical_or(infinite, a == 0), 0, where(logical_or(large, x == 0), 1, q))
    return where(wrong, math.nan, p), where(wrong, math.nan, q)


#: log Γ(1 + a) = -log(1 + a) + a·(1 - γ) + Σ a^(k + 2)·c[k], of |a| below 1: (-1)ᵏ·(ζ(k) - 1) / k from k = 2 on.
_LOG_GAMMA = (
    0.3224670334241132,
    -0.0673523010531981,
    0.020580808427784546,
    -0.007385551028673986,
    0.0028905103307415234,
    -0.001192753911703261,
    0.0005096695247430425,
    -0.00022315475845357939,
    9.945751278180853e-05,
    -4.492623673813314e-05,
    2.050721277567069e-05,
    -9.439488275268397e-06,
    4.374866789907488e-06,
    -2.039215753801366e-06,
    9.55141213040742e-07,
    -4.492469198764566e-07,
    2.1207184805554665e-07,
    -1.0043224823968099e-07,
    4.7698101693639804e-08,
    -2.2711094608943164e-08,
    1.0838659214896955e-08,
    -5.183475041970047e-09,
    2.4836745438024785e-09,
    -1.1921401405860912e-09,
    5.731367241678862e-10,
    -2.7595228851242334e-10,
    1.330476437424449e-10,
    -6.4229645638381e-11,
)
_TERMS = 16


def _rest_of_little(a: array, x: array) -> array:
    """Q(a, x) of a < 0.5 and x < 0.6, where 1 - P(a, x) would have the error of 1: both terms are small with a.

    P(a, x) = xᵃ/Γ(1 + a)·(1 + a·Σ (-x)ᵏ/((a + k)·k!)).
    """
    coefficients = kept(_LOG_GAMMA, x.dtype)
    power = a * log(x) + log1p(a) - a * (1 - float(np.euler_gamma)) - a * a * polynomial(coefficients, a)
    term, total = -x, -x / (a + 1)
    for k in range(2, _TERMS):
        term = term * x * (-1 / k)
        total = total + term / (a + k)
    return -expm1(power) - exp(power) * a * total


@remembered
def betainc(a: ArrayLike, b: ArrayLike, x: ArrayLike, /, *, stream: StreamOrDevice = None) -> array:
    """The regularized incomplete beta function Iₓ(a, b) = ∫₀ˣ tᵃ⁻¹ (1 - t)ᵇ⁻¹ dt / B(a, b), of a, b > 0 and 0 ≤ x ≤ 1.

    With derivatives with respect to all three. NaN outside.

    >>> import smelt
    >>> smelt.betainc(smelt.array([1.0, 2.0]), smelt.array([1.0, 3.0]), smelt.array([0.25, 0.5]))
    array([0.25, 0.6875], dtype=float32)
    """
    check_stream(stream)
    return computed("betainc", _betainc, a, b, x)


def _betainc(a: array, b: array, x: array) -> array:
    known = logical_and(logical_and(a > 0, b > 0), logical_and(x >= 0, x <= 1))
    known = logical_and(known, logical_and(a < math.inf, b < math.inf))
    inside = logical_and(known, logical_and(x > 0, x < 1))
    a, b, z = where(known, a, 1), where(known, b, 1), where(inside, x, 0.5)
    # Iₓ(a, b) = 1 - I₁₋ₓ(b, a): below the mean
    swapped = where(b < 1, z > 5 * (a + 1) * (1 - z), z > (a + 1) / (a + b + 2))
    a, b = where(swapped, b, a), where(swapped, a, b)
    rest = where(swapped, z, 1 - z)
    z = where(swapped, 1 - z, z)
    # xᵃ·(1 - x)ᵇ / B(a, b), where what is large has been cancelled
    total = a + b
    away = (z * b - rest * a) / total  # x less the mean a / (a + b)
    exponent = a * log1p_less(away * total / a, z * total / a) + b * log1p_less(-away * total / b, rest * total / b)
    remainders = stirling_remainder(total) - stirling_remainder(a) - stirling_remainder(b)
    front = exp(exponent + remainders) * sqrt(b / (2 * math.pi * total) * a)
    # Iₓ(a, b) = front / a·(1 + (a + b)·q·∫ exp(-(a + 1)·s)·((1 - x·e⁻ˢ) / (1 - x))ᵇ⁻¹ ds), with q = x / (1 - x)
    q, c = z / rest, b - 1
    slope = a + 1 - c * q
    scale = 2 / (slope + sqrt(slope * slope + 2 * maximum(0, c) * (q + q * q)))
    scale = where(c < 0, 1 / (a + 1), scale)

    def exponent_of(s: array) -> array:
        bent = expm1_less(s)
        wide = _across(q)
        return _across(slope) * s + _across(c) * (wide * bent - log1p_less(wide * (s - bent)))

    value = front / a * (1 + total * q * integral(exponent_of, scale, *_nodes(a)))
    value = where(swapped, 1 - value, value)
    value = where(inside, value, where(x <= 0, 0, 1))
    return where(known, value, math.nan)
