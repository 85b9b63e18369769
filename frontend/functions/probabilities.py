"""Functions of probabilities: the normal distribution, entropies, logarithms of beta functions; compositions of ops."""

from __future__ import annotations

import math
from collections.abc import Callable

from smelt.ir.op import registry as ops

from ..lazy.arguments import integer
from ..lazy.arrays import ArrayLike, StreamOrDevice, array, emit_elementwise
from ..lazy.core import remembered
from ..lazy.movement import iota
from ..lazy.operands import arrays_of, promote_all
from ..lazy.streams import check_stream
from .arithmetic import abs as absolute
from .arithmetic import maximum, sqrt
from .logic import isinf, isnan, logical_and, logical_not, logical_or, where
from .reductions import sum as total
from .shaping import expand_dims
from .special_coefficients import ERFCINV, ERFCX
from .special_parts import (
    FAR,
    MIDDLE,
    chebyshev,
    computed,
    epsilon,
    log_gamma,
    overflowing,
    polynomial,
    stirling_remainder,
)
from .transcendental import erf, erfc, erfinv, exp, log, log1p

__all__ = [
    "betaln", "entr", "erfcinv", "erfcx", "kl_div", "log_ndtr", "multigammaln", "ndtr", "ndtri", "rel_entr", "xlog1py",
    "xlogy",
]  # fmt: skip


# The normal distribution


@remembered
def erfcx(a: ArrayLike, /, *, stream: StreamOrDevice = None) -> array:
    """exp(a²)·erfc(a), which does not vanish for large a.

    >>> import smelt
    >>> smelt.erfcx(smelt.array([0.0, 1.0, 100.0]))
    array([1, 0.427584, 0.00564161], dtype=float32)
    """
    check_stream(stream)
    return computed("erfcx", _erfcx, a)


def _scaled(u: array) -> array:
    """exp(u²)·erfc(u) of u ≥ 0."""
    return chebyshev(ERFCX, (u - 3.75) / (u + 3.75)) / (1 + 2 * u)


def _erfcx(x: array) -> array:
    middle = absolute(x) < MIDDLE
    y = where(middle, x, 0.0)
    return where(middle, exp(y * y) * (1 - erf(y)), _erfcx_outside(where(middle, 1.0, x)))


def _erfcx_outside(x: array) -> array:
    size = absolute(x)
    infinite = size == math.inf
    found = where(infinite, 0.0, _scaled(where(infinite, 1.0, size)))
    # Beyond, it overflows, and so do its derivatives.
    over = x < (-26.62873571375149 if epsilon(x.dtype) < 1e-10 else -9.38241396)
    below = logical_and(x < 0, logical_not(over))
    v = where(below, size, 1.0)
    rough = emit_elementwise(ops["stop_gradient"], _rough(v))
    grown = 2 * exp(rough * rough) * exp((v - rough) * (v + rough)) - found
    return where(over, overflowing(where(over, x, 0.0)), where(below, grown, found))


def _rough(u: array) -> array:
    """u in few bits, whose square is exact."""
    from_sixteenths = u * 16 + 0.5
    return (from_sixteenths - from_sixteenths % 1) * 0.0625


@remembered
def erfcinv(a: ArrayLike, /, *, stream: StreamOrDevice = None) -> array:
    """The inverse of `erfc`, precise also where a is small; ±inf at 0 and 2, NaN outside.

    A series, and a step of Newton's method on the logarithm of `erfc`.

    >>> import smelt
    >>> smelt.erfcinv(smelt.array([1.0, 0.5, 1e-30]))
    array([0, 0.476936, 8.14862], dtype=float32)
    """
    check_stream(stream)
    return computed("erfcinv", _erfcinv, a)


def _erfcinv(y: array) -> array:
    mirrored = y > 1
    z = where(mirrored, 2 - y, y)
    found = where(z >= 0.5, erfinv(1 - where(z >= 0.5, z, 1.0)), _tail(where(logical_and(z > 0, z < 0.5), z, 0.25)))
    found = where(z == 0, math.inf, where(z < 0, math.nan, found))
    found = where(isnan(y), y, found)
    return where(mirrored, -found, found)


#: s from which `ERFCINV`'s t is 1 to where it is -1: of z = 1/2, and of the least number of float64.
_ENDS = (math.sqrt(math.log(2)), 27.3)


def _tail(z: array) -> array:
    """The u with erfc(u) = z, of 0 < z < 0.5."""
    wanted = log(z)
    s = sqrt(-wanted)
    low, high = (1 / (end + 2) for end in reversed(_ENDS))
    u = s * polynomial(ERFCINV, (2 / (high - low)) / (s + 2) - (high + low) / (high - low))
    # A series has less precise derivatives than values; those of what follows have the square of its error.
    scaled = _scaled(u)
    return u + (log(scaled) - u * u - wanted) * scaled * (0.5 * math.sqrt(math.pi))


@remembered
def ndtr(a: ArrayLike, /, *, stream: StreamOrDevice = None) -> array:
    """The probability that a standard normal number is at most a.

    >>> import smelt
    >>> smelt.ndtr(smelt.array([0.0, 1.0, -10.0]))
    array([0.5, 0.841345, 7.61985e-24], dtype=float32)
    """
    check_stream(stream)
    return computed("ndtr", _ndtr, a)


def _ndtr(x: array) -> array:
    return 0.5 * erfc(x * -math.sqrt(0.5))


@remembered
def log_ndtr(a: ArrayLike, /, *, stream: StreamOrDevice = None) -> array:
    """The logarithm of `ndtr`, also where that vanishes.

    >>> import smelt
    >>> smelt.log_ndtr(smelt.array([0.0, -100.0]))
    array([-0.693147, -5005.52], dtype=float32)
    """
    check_stream(stream)
    return computed("log_ndtr", _log_ndtr, a)


def _log_ndtr(x: array) -> array:
    low = logical_and(x < -1, x > -math.inf)
    z = where(low, x, -1.0)
    tail = log(0.5 * _scaled(z * -math.sqrt(0.5))) - 0.5 * z * z
    found = log1p(-0.5 * erfc(where(low, 0.0, x) * math.sqrt(0.5)))
    return where(low, tail, where(x == -math.inf, -math.inf, found))


@remembered
def ndtri(a: ArrayLike, /, *, stream: StreamOrDevice = None) -> array:
    """The inverse of `ndtr`: the quantiles of the standard normal distribution; ∓inf at 0 and 1, NaN outside.

    >>> import smelt
    >>> smelt.ndtri(smelt.array([0.5, 0.975, 1e-20]))
    array([0, 1.95996, -9.26234], dtype=float32)
    """
    check_stream(stream)
    return computed("ndtri", lambda p: 0.0 - math.sqrt(2) * _erfcinv(2 * p), a)


# Entropies


def _product(x: array, y: array, logarithm: array) -> array:
    return where(logical_and(x == 0, logical_not(isnan(y))), x, x * logarithm)


@remembered
def xlogy(x: ArrayLike, y: ArrayLike, /, *, stream: StreamOrDevice = None) -> array:
    """x·log(y), and 0 where x is 0, whatever number y is.

    >>> import smelt
    >>> smelt.xlogy(smelt.array([0.0, 2.0]), smelt.array([0.0, 3.0]))
    array([0, 2.19722], dtype=float32)
    """
    check_stream(stream)
    return _of_products("xlogy", _xlogy, x, y)


def _of_products(name: str, formula: Callable[[array, array], array], x: ArrayLike, y: ArrayLike) -> array:
    """`computed`, and the formula of complex numbers."""
    given = arrays_of(x, y)
    if any(v.dtype.is_complex for v in given):
        return formula(*promote_all(name, x, y))
    return computed(name, formula, x, y)


def _xlogy(x: array, y: array) -> array:
    if x.dtype.is_complex:
        return x * log(where(logical_and(x == 0, logical_or(y == 0, isinf(y))), 1.0, y))
    # Where log(y) is finite the product is right by itself, and so is its derivative log(y) where x is 0.
    none = logical_and(x == 0, logical_or(y <= 0, y == math.inf))
    return x * log(where(none, 1.0, y))


@remembered
def xlog1py(x: ArrayLike, y: ArrayLike, /, *, stream: StreamOrDevice = None) -> array:
    """x·log(1 + y), precise where y is small, and 0 where x is 0, whatever number y is.

    >>> import smelt
    >>> smelt.xlog1py(smelt.array([0.0, 2.0]), smelt.array([-1.0, 1e-10]))
    array([0, 2e-10], dtype=float32)
    """
    check_stream(stream)
    return _of_products("xlog1py", _xlog1py, x, y)


def _xlog1py(x: array, y: array) -> array:
    if x.dtype.is_complex:
        return x * log1p(where(logical_and(x == 0, logical_or(y == -1, isinf(y))), 0.0, y))
    none = logical_and(x == 0, logical_or(y <= -1, y == math.inf))
    return x * log1p(where(none, 0.0, y))


@remembered
def entr(a: ArrayLike, /, *, stream: StreamOrDevice = None) -> array:
    """-a·log(a), the part of a probability in the entropy; 0 at 0, -inf below.

    >>> import smelt
    >>> smelt.entr(smelt.array([0.0, 0.5, -1.0]))
    array([0, 0.346574, -inf], dtype=float32)
    """
    check_stream(stream)
    return computed("entr", _entr, a)


def _entr(x: array) -> array:
    inside = x > 0
    z = where(inside, x, 1.0)
    return where(inside, -z * log(z), where(x == 0, 0.0, where(x < 0, -math.inf, x)))


@remembered
def rel_entr(x: ArrayLike, y: ArrayLike, /, *, stream: StreamOrDevice = None) -> array:
    """x·log(x / y) of positive numbers, 0 where x is 0 and y is not negative, inf elsewhere.

    >>> import smelt
    >>> smelt.rel_entr(smelt.array([0.0, 0.5, 0.5]), smelt.array([0.0, 0.25, 0.0]))
    array([0, 0.346574, inf], dtype=float32)
    """
    check_stream(stream)
    return computed("rel_entr", _rel_entr, x, y)


def _rel_entr(x: array, y: array) -> array:
    inside = logical_and(x > 0, y > 0)
    a, b = where(inside, x, 1.0), where(inside, y, 1.0)
    ratio = a / b
    # the quotient may overflow or vanish where the logarithms are fine
    usual = logical_and(ratio > 1e-30, ratio < 1e30)
    c, d = where(usual, a, 1.0), where(usual, b, 1.0)
    # nearly equal ones have a quotient of few digits beside 1
    near = logical_and(c > 0.5 * d, c < 2.0 * d)
    logarithm = where(near, log1p(where(near, (c - d) / d, 0.0)), log(c / d))
    found = a * where(usual, logarithm, log(a) - log(b))
    elsewhere = where(logical_and(x == 0, y >= 0), 0.0, math.inf)
    return where(logical_or(isnan(x), isnan(y)), math.nan, where(inside, found, elsewhere))


@remembered
def kl_div(x: ArrayLike, y: ArrayLike, /, *, stream: StreamOrDevice = None) -> array:
    """x·log(x / y) - x + y, whose sum is the divergence of Kullback and Leibler; see `rel_entr`.

    The loss of neural networks is `smelt.nn.losses.kl_div_loss`.

    >>> import smelt
    >>> smelt.kl_div(smelt.array([0.5, 0.0]), smelt.array([0.25, 1.0]))
    array([0.0965736, 1], dtype=float32)
    """
    check_stream(stream)
    return computed("kl_div", lambda x, y: _rel_entr(x, y) - x + y, x, y)


# Logarithms of gamma functions


@remembered
def betaln(a: ArrayLike, b: ArrayLike, /, *, stream: StreamOrDevice = None) -> array:
    """The logarithm of the beta function Γ(a)·Γ(b) / Γ(a + b), of positive numbers; inf at 0, NaN below.

    >>> import smelt
    >>> smelt.betaln(smelt.array([1.0, 0.5]), smelt.array([1.0, 1e6]))
    array([0, -6.33539], dtype=float32)
    """
    check_stream(stream)
    return computed("betaln", log_beta, a, b)


def log_beta(a: array, b: array) -> array:
    known = logical_and(logical_and(a > 0, b > 0), logical_and(a < math.inf, b < math.inf))
    p, q = where(known, a, 1.0), where(known, b, 1.0)
    order = p <= q
    low, high = where(order, p, q), where(order, q, p)
    far = high >= FAR
    large, little = where(far, high, FAR), where(far, 1.0, high)
    # log Γ(b) - log Γ(a + b), where what is large has been cancelled
    both = low + large
    tail = stirling_remainder(large) - stirling_remainder(both)
    cancelled = tail - (large - 0.5) * log1p(low / large) - low * (log(both) - 1)
    near = where(far, 1.0, low)
    found = log_gamma(low) + where(far, cancelled, log_gamma(little) - log_gamma(near + little))
    limit = where(logical_or(a == 0, b == 0), math.inf, where(maximum(a, b) == math.inf, -math.inf, math.nan))
    limit = where(logical_or(a < 0, b < 0), math.nan, limit)
    return where(known, found, where(logical_or(isnan(a), isnan(b)), math.nan, limit))


@remembered
def multigammaln(a: ArrayLike, d: int, /, *, stream: StreamOrDevice = None) -> array:
    """The logarithm of the multivariate gamma function of dimension d: d(d - 1)/4·log π + Σ log Γ(a - i / 2), i < d.

    NaN unless a > (d - 1) / 2.

    Raises:
        AttributeValueError: a dimension below 1.

    >>> import smelt
    >>> smelt.multigammaln(smelt.array([3.0]), 2)
    array([1.55019], dtype=float32)
    """
    check_stream(stream)
    count = integer("multigammaln", "d", d, 1)

    def formula(x: array) -> array:
        known = x > (count - 1) / 2
        z = where(known, x, float(count))
        terms = log_gamma(expand_dims(z, -1) - iota((count,), 0, z.dtype) / 2)
        return where(known, total(terms, -1) + count * (count - 1) / 4 * math.log(math.pi), math.nan)

    return computed("multigammaln", formula, a)
