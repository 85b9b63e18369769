"""What the special functions share: series, and logarithms of the gamma function; arrays in float32 or float64."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from smelt.ir import dtypes
from smelt.ir.dtypes import DType
from smelt.ir.errors import DTypeError, at_user_line

from ..lazy.arrays import ArrayLike, array, broadcast_to_shape, convert
from ..lazy.operands import promote_all
from .arithmetic import abs as absolute
from .logic import logical_and, logical_not, where
from .rounding import floor
from .special_coefficients import LGAMMA
from .transcendental import exp, expm1, log, log1p

HALF_LOG_TAU = 0.9189385332046727
#: B₂ₖ / (2k·(2k - 1)), of Stirling's series: log Γ(x) - (x - 1/2)·log x + x - log √2π = Σ cₖ / x²ᵏ⁻¹.
_STIRLING = (1 / 12, -1 / 360, 1 / 1260, -1 / 1680, 1 / 1188, -691 / 360360, 1 / 156, -3617 / 122400)
#: From here on Stirling's series is used.
FAR = 8.0
#: The same where float32 will do.
FAR_SINGLE = 3.5
#: Up to here what is smooth at 0 is computed without |x|.
MIDDLE = 0.5


def computed(name: str, formula: Callable[..., array], *given: ArrayLike) -> array:
    """`formula` of real arrays in their common dtype and shape: of integers in float32, of half precision through it.

    Raises:
        DTypeError: an operand is complex.
    """
    xs = promote_all(name, *given)
    dtype = dtypes.to_float(xs[0].dtype)
    if dtype.is_complex:
        raise DTypeError(at_user_line(f"smelt.{name}: not defined for complex numbers; operand {xs[0].aval}"))
    wide = dtypes.float32 if dtype.size == 2 else dtype
    return convert(formula(*[convert(x, wide) for x in xs]), dtype)


def epsilon(dtype: DType) -> float:
    """The relative error of rounding."""
    return 2.0**-53 if dtype.real is dtypes.float64 else 2.0**-24


def kept(series: Sequence[float], dtype: DType) -> Sequence[float]:
    """The first terms of a series, as many as matter in a dtype."""
    bound = epsilon(dtype) / 4 * max(abs(c) for c in series)
    count = len(series)
    while count > 1 and abs(series[count - 1]) < bound:
        count -= 1
    return series[:count]


def overflowing(x: array) -> array:
    """inf where |x| > 9, with derivatives that are infinite, too, and no differences of infinities."""
    return exp(80 * absolute(x))


def polynomial(series: Sequence[float], t: array) -> array:
    """Σ cₖ·tᵏ, for |t| ≤ 1."""
    *rest, last = kept(series, t.dtype)
    found = t * 0.0 + last
    for c in reversed(rest):
        found = found * t + c
    return found


def chebyshev(series: Sequence[float], t: array) -> array:
    """Σ cₖ·Tₖ(t), for |t| ≤ 1 (Clenshaw)."""
    first, *rest = kept(series, t.dtype)
    double = t + t
    one, two = t * 0.0, t * 0.0
    for c in reversed(rest):
        one, two = double * one - two + c, one
    return t * one - two + first


MORE = 16.0  #: A power of two, by which numbers are multiplied exactly.


def enlarged(series: Sequence[float]) -> list[float]:
    """Coefficients of a factor `MORE` times as large: its cotangent is as much smaller."""
    return [c * MORE for c in series]


def far_of(dtype: DType) -> float:
    """From where on asymptotic series of the gamma function are as precise as a dtype."""
    return FAR if dtype is dtypes.float64 else FAR_SINGLE


def scaled_series(series: Sequence[float], start: float) -> list[float]:
    """Coefficients in (start / x)², which is at most 1."""
    return [c / start ** (2 * k) for k, c in enumerate(series)]


def log_gamma(z: array) -> array:
    """log Γ(z) of z ≥ 0: a polynomial between 1.5 and 2.5, to which others are brought, then Stirling's series.

    Relative precision also around the zeros at 1 and 2.
    """
    start = far_of(z.dtype)
    far = z >= start
    end = z == math.inf  # with an infinite derivative, too: log x
    x = where(logical_and(far, logical_not(end)), z, start)
    near, factor, below = gamma_parts(where(far, 2.0, z), start)
    logarithm = log(where(far, x, factor))  # one for both: they take longest
    stirling = (x - 0.5) * (logarithm - 1) + (HALF_LOG_TAU - 0.5) + stirling_series(x, start)
    near = near + where(below, -logarithm, logarithm)
    return where(end, where(end, z, 1.0) * math.inf, where(far, stirling, near))


def gamma_parts(z: array, start: float) -> tuple[array, array, array]:
    """log Γ(z) of 0 ≤ z < start as a summand, and a factor of Γ(z), or where the last says so of its inverse."""
    steps = floor(z - 1.5)  # down to 1.5 … 2.5, by Γ(z + 1) = z·Γ(z)
    product = z * 0.0 + 1
    for i in range(1, math.ceil(start - 1.5)):
        product = product * where(steps >= i, z - i, 1)
    below = z < 1.5
    base = where(z < 0.5, 0, where(below, 1, steps + 2))
    m = z - base  # exact: so near to the zeros is precise
    factor = where(z < 0.5, z * (1 + z), where(below, z, product))
    return (m + 1) * m * polynomial(LGAMMA, m + m), factor, below


def stirling_series(x: array, start: float = FAR) -> array:
    """What Stirling's formula leaves of log Γ(x), of x ≥ start."""
    inverse = 1 / x
    square = inverse * inverse
    return inverse * polynomial(scaled_series(_STIRLING, start), square * (start * start))


def stirling_remainder(z: array) -> array:
    """log Γ(z) - ((z - 1/2)·log z - z + log √2π), of z > 0."""
    far = z >= FAR
    x = where(far, 2.0, z)
    found, factor, below = gamma_parts(x, FAR)
    found = found + where(below, -log(factor), log(factor))
    near = found - ((x - 0.5) * log(x) - x + HALF_LOG_TAU)
    return where(far, stirling_series(where(far, z, FAR)), near)


def log1p_less(x: array, more: array | None = None) -> array:
    """log(1 + x) - x, precise around 0: with r = x / (2 + x) it is 2·(r³/3 + r⁵/5 + …) - r·x.

    Around -1 it is precise if `more` is, which is 1 + x.
    """
    near = absolute(x) < 0.5
    y = where(near, x, 0.0)
    r = y / (y + 2)
    square = r * r
    most = 1 / 9  # of the square, at -0.5
    series = [most**k / (2 * k + 3) for k in range(20)]
    small = 2 * r * square * polynomial(series, square * (1 / most)) - r * y
    logarithm = log1p(where(near, 1.0, x)) if more is None else log(where(near, 1.0, more))
    return where(near, small, logarithm - x)


def expm1_less(u: array) -> array:
    """u + exp(-u) - 1 of u ≥ 0, precise around 0."""
    near = u < 0.5
    y = where(near, u, 0.0)
    series = [(-0.5) ** k / math.factorial(k + 2) for k in range(16)]
    z = where(near, 1.0, u)
    return where(near, y * y * polynomial(series, y * 2), z + expm1(-z))


def half_line(dtype: DType) -> tuple[list[float], list[float]]:
    """Places and weights of ∫₀^∞ g(s) ds, for a g that falls like exp(-s): s = exp(t - exp(-t)), at steps in t.

    Takahasi and Mori, "Double exponential formulas for numerical integration" (1974).
    """
    step, low, high = (0.12, 30, 35) if dtype is dtypes.float64 else (0.22, 13, 14)
    ts = [step * k for k in range(-low, high + 1)]
    places = [math.exp(t - math.exp(-t)) for t in ts]
    return places, [step * s * (1 + math.exp(-t)) for s, t in zip(places, ts)]


def integral(exponent: Callable[[array], array], scale: array, places: array, weights: array) -> array:
    """∫₀^∞ exp(-exponent(u)) du, where the exponent grows by about 1 over `scale`; nodes are a last axis."""
    u = broadcast_to_shape(scale.reshape((*scale.shape, 1)), (*scale.shape, places.size)) * places
    return scale * (exp(-exponent(u)) * weights).sum(-1)
