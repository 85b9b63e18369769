"""Incomplete gamma and beta functions, as integrals over the half-line: compositions of ops with all derivatives.

x^a·e^(-x)·∫ exp(…) ds has a smooth, positive integrand, whose derivatives are integrals of the same kind. So there is
no loop, no choice of a series, and derivatives with respect to all operands are as precise as values.
"""

from __future__ import annotations

import math

from ..lazy.arrays import ArrayLike, StreamOrDevice, array
from ..lazy.core import remembered
from ..lazy.operands import constant
from ..lazy.streams import check_stream
from .arithmetic import maximum, sqrt
from .joining import stack
from .logic import isnan, logical_and, logical_or, where
from .special_parts import computed, expm1_less, half_line, integral, log1p_less, stirling_remainder
from .transcendental import exp

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

    With derivatives with respect to both. NaN unless a > 0 and x ≥ 0. Where a is small and x is smaller than 0.1 it is
    a difference of 1, and the error is absolute.

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
    nodes = _nodes(a)
    # xᵃ·e⁻ˣ / Γ(a + 1), where what is large has been cancelled
    zero = known_x == 0
    moved, ratio = (known_x - known_a) / known_a, where(zero, 1, known_x / known_a)
    front = exp(known_a * log1p_less(moved, ratio) - stirling_remainder(known_a)) / sqrt(2 * math.pi * known_a)
    front = where(zero, 0, front)
    # P(a, x) = front·(1 + x·∫ exp(-(a + 1)·s + x·(1 - e⁻ˢ)) ds), where x is not much larger than a
    z, b = where(lower, known_x, 0.5), where(lower, known_a, 1) + 1
    slope = b - z
    scale = 2 / (slope + sqrt(slope * slope + 2 * z))
    below = integral(lambda s: _across(slope) * s + _across(z) * expm1_less(s), scale, *nodes)
    p = front * (1 + z * below)
    # Q(a, x) = front·a·∫ (1 + u)ᵃ⁻¹·exp(-x·u) du
    z, b = where(lower, 2, known_x), where(lower, 1, known_a) - 1
    slope = z - b
    scale = where(b < 0, 1 / z, 2 / (slope + sqrt(slope * slope + 2 * maximum(b, 0))))
    above = integral(lambda u: _across(slope) * u - _across(b) * log1p_less(u), scale, *nodes)
    q = front * known_a * above
    p, q = where(lower, p, 1 - q), where(lower, 1 - p, q)
    # the limits
    p = where(logical_or(infinite, a == 0), 1, where(logical_or(large, x == 0), 0, p))
    wrong = logical_or(logical_or(a < 0, x < 0), logical_or(isnan(a), isnan(x)))
    wrong = logical_or(wrong, logical_or(logical_and(infinite, large), logical_and(a == 0, x == 0)))
    q = where(logical_or(infinite, a == 0), 0, where(logical_or(large, x == 0), 1, q))
    return where(wrong, math.nan, p), where(wrong, math.nan, q)


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
    scale = 2 / (slope + sqrt(slope * slope + 2 * maximum(c, 0) * (q + q * q)))
    scale = where(c < 0, 1 / (a + 1), scale)

    def exponent_of(s: array) -> array:
        bent = expm1_less(s)
        wide = _across(q)
        return _across(slope) * s + _across(c) * (wide * bent - log1p_less(wide * (s - bent)))

    value = front / a * (1 + total * q * integral(exponent_of, scale, *_nodes(a)))
    value = where(swapped, 1 - value, value)
    value = where(inside, value, where(x <= 0, 0, 1))
    return where(known, value, math.nan)
