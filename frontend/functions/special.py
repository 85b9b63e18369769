"""Special functions: compositions of ops, so that they fuse, run on every device and have derivatives of every order.

Half precision is computed in float32, integers are converted to it. Errors are measured in ``docs/accuracy.md``.
"""

from __future__ import annotations

import math

from ..lazy.arrays import ArrayLike, StreamOrDevice, array
from ..lazy.core import remembered
from ..lazy.streams import check_stream
from .arithmetic import abs as absolute
from .arithmetic import power, remainder, sqrt
from .logic import isinf, logical_and, logical_or, where
from .rounding import floor, round
from .special_coefficients import (
    DIGAMMA,
    I0_LARGE,
    I0_SMALL,
    I1_LARGE,
    I1_SMALL,
    J0_P,
    J0_Q,
    J0_SMALL,
    J1_P,
    J1_Q,
    J1_SMALL,
    ROOT,
)
from .special_parts import (
    MIDDLE,
    MORE,
    chebyshev,
    computed,
    enlarged,
    epsilon,
    far_of,
    log_gamma,
    overflowing,
    polynomial,
    scaled_series,
)
from .transcendental import cos, exp, log, log1p, sin

__all__ = [
    "digamma", "i0", "i0e", "i1", "i1e", "j0", "j1", "lgamma", "logit", "polygamma", "zeta",
]  # fmt: skip

#: B₂ₖ / (2k), of ψ(x) = log x - 1 / 2x - Σ cₖ / x²ᵏ.
_PSI = (1 / 12, -1 / 120, 1 / 252, -1 / 240, 1 / 132, -691 / 32760, 1 / 12, -3617 / 8160, 43867 / 14364)
#: B₂ₖ / (2k)!, of Euler's and Maclaurin's sum.
_EULER = tuple(
    b / math.factorial(2 * k)
    for k, b in enumerate(
        (1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730, 7 / 6, -3617 / 510, 43867 / 798, -174611 / 330,
         854513 / 138, -236364091 / 2730),
        1,
    )
)  # fmt: skip
#: Up to here the modified Bessel functions are finite, in float32 and float64.
I0_ENDS, I1_ENDS = (91.90076, 713.98690854), (91.90626, 713.98760982)
#: Terms of zeta that are added one by one.
_TERMS = 10


@remembered
def logit(a: ArrayLike, /, *, stream: StreamOrDevice = None) -> array:
    """log(a / (1 - a)), the inverse of `sigmoid`; ±inf at 1 and 0, NaN outside.

    >>> import smelt
    >>> smelt.logit(smelt.array([0.0, 0.25, 0.5]))
    array([-inf, -1.09861, 0], dtype=float32)
    """
    check_stream(stream)
    return computed("logit", _logit, a)


def _logit(x: array) -> array:
    """Around 0.5 by how far x / (1 - x), or its inverse, is above 1; one log1p is for this and for elsewhere."""
    middle = absolute(x - 0.5) < 0.25
    inside, outside = where(middle, x, 0.5), where(middle, 0.25, x)
    below = inside < 0.5
    least = where(below, inside, 1 - inside)  # exact, as 1 - 2 * least is
    found = log1p(where(middle, (1 - 2 * least) / least, -outside))
    return where(middle, where(below, -found, found), log(outside) - found)


@remembered
def lgamma(a: ArrayLike, /, *, stream: StreamOrDevice = None) -> array:
    """The logarithm of |Γ(a)|; inf at 0 and at negative integers.

    A polynomial between 1.5 and 2.5, recurrence and Stirling's series, and reflection (Abramowitz and Stegun, 6.1).

    >>> import smelt
    >>> smelt.lgamma(smelt.array([1.0, 5.0, 0.5]))
    array([0, 3.17805, 0.572365], dtype=float32)
    """
    check_stream(stream)
    return computed("lgamma", _lgamma, a)


def _lgamma(x: array) -> array:
    """Below 0 by |Γ(x)·Γ(1 - x)| = π / |sin πx|, where Γ(1 - x) and its derivatives are finite also next to 0."""
    below = logical_and(x < 0, x > -math.inf)
    found = log_gamma(where(below, 1 - x, where(x == -math.inf, math.inf, x)))
    part = where(below, x - round(x), 0.5)
    mirrored = math.log(math.pi) - log(absolute(sin(math.pi * part))) - where(below, found, 0)
    return where(below, where(part == 0, math.inf, mirrored), found)


@remembered
def digamma(a: ArrayLike, /, *, stream: StreamOrDevice = None) -> array:
    """The derivative of log Γ(a); -inf at 0, inf at -0.0, NaN at negative integers.

    A polynomial between 1 and 2, recurrence, an asymptotic series and reflection (Abramowitz and Stegun, 6.3).

    >>> import smelt
    >>> smelt.digamma(smelt.array([1.0, 10.0, -1.5]))
    array([-0.577216, 2.25175, 0.703157], dtype=float32)
    """
    check_stream(stream)
    return computed("digamma", _digamma, a)


def _digamma(x: array) -> array:
    """Below 0 by ψ(x) = ψ(1 - x) - π·cot πx, where ψ(1 - x) and its derivatives are finite also next to 0."""
    below, zero = x < 0, x == 0
    size = where(below, 1 - x, x)
    start = far_of(x.dtype)
    far = size >= start
    z = where(far, size, start)
    inverse = 1 / z
    square = inverse * inverse
    large = log(z) - 0.5 * inverse - square * polynomial(scaled_series(_PSI, start), square * (start * start))
    z = where(logical_or(far, zero), 1.5, size)
    steps = floor(z) - 1
    moved = z * 0.0
    for i in range(1, math.ceil(start) - 1):
        moved = moved + where(steps >= i, 1 / where(steps >= i, z - i, 1), 0)
    little = z < 1
    moved = where(little, -1 / where(little, z, 1), moved)
    y = z - where(little, -1, steps)
    small = ((y - ROOT[0]) - ROOT[1]) * polynomial(DIGAMMA, 2 * y - 3) + moved
    found = where(zero, -1 / where(zero, x, 1), where(far, large, small))
    part = where(below, x - round(x), 0.25)
    mirrored = found - math.pi * _cotangent(part) + where(part == 0, math.nan, 0.0)
    return where(below, mirrored, found)


def _cotangent(turns: array) -> array:
    """cot(π·turns) up to half a turn, which has cotangent 0: what is left to it is exact, and π·0.5 is not.

    Not 1 / tan, whose derivatives at a half are quotients of large numbers.
    """
    return sin(math.pi * (0.5 - absolute(turns))) / sin(math.pi * turns)


@remembered
def zeta(a: ArrayLike, q: ArrayLike = 1, /, *, stream: StreamOrDevice = None) -> array:
    """Hurwitz' zeta function Σₖ (q + k)⁻ᵃ from k = 0 on; of q = 1, Riemann's. inf at a = 1, and where a term is.

    Euler's and Maclaurin's sum. NaN for a < 1, and for q < 0 that is no integer.

    >>> import smelt
    >>> smelt.zeta(smelt.array([2.0, 4.0]))
    array([1.64493, 1.08232], dtype=float32)
    """
    check_stream(stream)
    return computed("zeta", _zeta, a, q)


def _zeta(s: array, q: array) -> array:
    known, end = logical_and(s >= 1, q > 0), logical_and(q == math.inf, s > 1)
    pole = logical_and(logical_and(s >= 1, q <= 0), q == floor(q))
    first = power(where(known, q, 1), -s)  # of s = inf the only term
    alone = logical_and(known, s == math.inf)
    s, q = where(logical_and(known, s < math.inf), s, 2), where(logical_and(known, q < math.inf), q, 1)
    found = power(q, -s)
    for k in range(1, _TERMS):
        found = found + power(q + k, -s)
    w = q + _TERMS
    s = where(s > 400, 400, s)  # from there on the rest is 0, and has no slope
    last = power(w, -s)
    found = found + last * (w / (s - 1) + 0.5)
    factor = last * s / w
    square = 1 / (w * w)
    for k, c in enumerate(_EULER):
        found = found + factor * c
        factor = factor * square * (s + (2 * k + 1)) * (s + (2 * k + 2))
    found = where(alone, first, where(known, found, where(pole, math.inf, math.nan)))
    return where(end, 0, found)


@remembered
def polygamma(n: ArrayLike, a: ArrayLike, /, *, stream: StreamOrDevice = None) -> array:
    """The n-th derivative of `digamma`: (-1)ⁿ⁺¹·n!·ζ(n + 1, a), and of a < 0 by reflection.

    Args:
        n: an int that is not negative, or an array of such numbers.
        a: at 0 and the negative integers the result is an infinity, of the sign that it has to their right, as in
            SciPy. If n is no int from 0 to 20, NaN is the result where a is not positive and n not 0.

    >>> import smelt
    >>> smelt.polygamma(1, smelt.array([1.0, 2.0]))
    array([1.64493, 0.644934], dtype=float32)
    """
    check_stream(stream)
    if isinstance(n, int) and 0 <= n <= 20:
        if n == 0:
            return computed("polygamma", _digamma, a)
        return computed("polygamma", lambda x: _polygamma_of_int(n, x), a)
    return computed("polygamma", _polygamma, n, a)


def _polygamma_of_int(n: int, x: array) -> array:
    """ψⁿ(x) = (-1)ⁿ·ψⁿ(1 - x) - π·dⁿcot(πx)/dxⁿ below 0, where the derivative is a polynomial of the cotangent."""
    factor = float(math.factorial(n) * (-1) ** (n + 1))
    below = x <= 0
    positive = where(below, 1 - x, x)
    found = factor * _zeta(where(x == x, n + 1.0, x), positive)
    turns = [0.0, 1.0]  # coefficients of c
    for _ in range(n):
        slope = [k * c for k, c in enumerate(turns)][1:]
        turns = [-(a + b) for a, b in zip([*slope, 0.0, 0.0], [0.0, 0.0, *slope])]
    part = where(below, x - round(x), 0.25)
    pole = part == 0
    cotangent = _cotangent(where(pole, 0.25, part))
    mirrored = (-1) ** n * found - math.pi ** (n + 1) * polynomial(turns, cotangent)
    return where(below, where(pole, math.copysign(math.inf, factor), mirrored), found)


def _polygamma(n: array, x: array) -> array:
    first = n == 0
    order = where(first, 1, n)
    sign = where(remainder(order, 2) == 0, -1, 1)
    found = sign * exp(log_gamma(order + 1)) * _zeta(order + 1, where(first, 1, x))
    whole = logical_and(order == floor(order), order > 0)
    return where(first, _digamma(x), where(whole, found, math.nan))


# Bessel functions: Chebyshev series up to 8, and of asymptotic forms from there on (Clenshaw, "Chebyshev series for
# mathematical functions", 1962).


@remembered
def i0e(a: ArrayLike, /, *, stream: StreamOrDevice = None) -> array:
    """exp(-|a|)·I₀(a), of the modified Bessel function of order 0.

    >>> import smelt
    >>> smelt.i0e(smelt.array([0.0, 1.0, 100.0]))
    array([1, 0.46576, 0.0399444], dtype=float32)
    """
    check_stream(stream)
    return computed("i0e", bessel_i0e, a)


def bessel_i0e(x: array) -> array:
    scaled, divisor = _i0e_parts(x)
    return scaled / divisor


def _i0e_parts(x: array) -> tuple[array, array]:
    """exp(-|x|)·I₀(x) as a quotient of numbers from 1 on, if x is large.

    The cotangent of a factor is that of the result times all others: of small ones it may be infinite where the slope
    is not, and series add twice as much.
    """
    size = absolute(x)
    far = size > 8
    small = chebyshev(I0_SMALL, where(far, 8.0, size) * 0.25 - 1)
    z = where(far, size, 8.0)
    return where(far, chebyshev(enlarged(I0_LARGE), 16 / z - 1), small), where(far, MORE * sqrt(z), 1.0)


@remembered
def i1e(a: ArrayLike, /, *, stream: StreamOrDevice = None) -> array:
    """exp(-|a|)·I₁(a), of the modified Bessel function of order 1.

    >>> import smelt
    >>> smelt.i1e(smelt.array([0.0, 1.0, -100.0]))
    array([0, 0.20791, -0.0397442], dtype=float32)
    """
    check_stream(stream)
    return computed("i1e", bessel_i1e, a)


def bessel_i1e(x: array) -> array:
    scaled, divisor = _i1e_parts(x)
    return scaled / divisor


def _i1e_parts(x: array) -> tuple[array, array]:
    size = absolute(x)
    far = size > 8
    near = where(far, 8.0, x)
    small = near * chebyshev(I1_SMALL, absolute(near) * 0.25 - 1)
    z = where(far, size, 8.0)
    large = chebyshev(enlarged(I1_LARGE), 16 / z - 1)
    return where(far, where(x < 0, -large, large), small), where(far, MORE * sqrt(z), 1.0)


@remembered
def i0(a: ArrayLike, /, *, stream: StreamOrDevice = None) -> array:
    """I₀(a), the modified Bessel function of order 0.

    >>> import smelt
    >>> smelt.i0(smelt.array([0.0, 1.0, 10.0]))
    array([1, 1.26607, 2815.72], dtype=float32)
    """
    check_stream(stream)
    return computed("i0", lambda x: _smooth(x, 0, _grown(x, _i0e_parts(x), I0_ENDS, 1)), a)


@remembered
def i1(a: ArrayLike, /, *, stream: StreamOrDevice = None) -> array:
    """I₁(a), the modified Bessel function of order 1.

    >>> import smelt
    >>> smelt.i1(smelt.array([0.0, 1.0, -10.0]))
    array([0, 0.565159, -2670.99], dtype=float32)
    """
    check_stream(stream)
    return computed("i1", lambda x: _smooth(x, 1, _grown(x, _i1e_parts(x), I1_ENDS, where(x < 0, -1, 1))), a)


def _smooth(x: array, order: int, outside: array) -> array:
    """Iₙ(x), around 0 by its power series: derivatives of what it is elsewhere have the rounding of its factors."""
    middle = absolute(x) < MIDDLE
    y = where(middle, x, 0.0) * 0.5
    square = y * y
    series = [1 / (16**k * math.factorial(k) * math.factorial(k + order)) for k in range(9)]
    near = polynomial(series, square * 16)
    return where(middle, near * y if order else near, outside)


def _grown(x: array, parts: tuple[array, array], ends: tuple[float, float], sign: array | int) -> array:
    """exp(|x|) times a quotient, which overflows beyond `ends` (float32, float64), as its derivatives do."""
    over = absolute(x) > ends[epsilon(x.dtype) < 1e-10]
    half = exp(absolute(where(over, 0, x)) * 0.5)
    scaled, divisor = parts
    return where(over, sign * overflowing(where(over, x, 0)), half * (scaled * (half / divisor)))


@remembered
def j0(a: ArrayLike, /, *, stream: StreamOrDevice = None) -> array:
    """J₀(a), the Bessel function of the first kind of order 0. Around its zeros the error is absolute.

    >>> import smelt
    >>> smelt.j0(smelt.array([0.0, 1.0, 10.0]))
    array([1, 0.765198, -0.245936], dtype=float32)
    """
    check_stream(stream)
    return computed("j0", bessel_j0, a)


def bessel_j0(x: array) -> array:
    size = absolute(x)
    far = size > 8
    near = where(far, 0, x)
    small = chebyshev(J0_SMALL, near * near * 0.03125 - 1)
    z, y, c, s, p, q = hankel_parts(size, far, J0_P, J0_Q)
    large = sqrt((1 / math.pi) / z) * (p * (c + s) - y * q * (s - c))
    return where(far, where(isinf(x), 0, large), small)


@remembered
def j1(a: ArrayLike, /, *, stream: StreamOrDevice = None) -> array:
    """J₁(a), the Bessel function of the first kind of order 1. Around its zeros the error is absolute.

    >>> import smelt
    >>> smelt.j1(smelt.array([0.0, 1.0, -10.0]))
    array([0, 0.440051, -0.0434727], dtype=float32)
    """
    check_stream(stream)
    return computed("j1", bessel_j1, a)


def bessel_j1(x: array) -> array:
    size = absolute(x)
    far = size > 8
    near = where(far, 0, x)
    small = near * chebyshev(J1_SMALL, near * near * 0.03125 - 1)
    z, y, c, s, p, q = hankel_parts(size, far, J1_P, J1_Q)
    large = sqrt((1 / math.pi) / z) * (p * (s - c) + y * q * (s + c))
    large = where(isinf(x), 0, large)
    return where(far, where(x < 0, -large, large), small)


def hankel_parts(size: array, far: array, p: tuple[float, ...], q: tuple[float, ...]) -> tuple[array, ...]:
    """x and 8 / x where they are far, cos x and sin x (whose sums are those of x - π/4, without its rounding), P, Q."""
    z = where(logical_and(far, size < math.inf), size, 8.0)
    y = 8 / z
    t = 2 * y * y - 1
    return z, y, cos(z), sin(z), chebyshev(p, t), chebyshev(q, t)
