"""Exponentials, logarithms and powers."""

from __future__ import annotations

import math
from collections.abc import Callable

from .. import dtypes
from ..scalar import Scalar, ScalarBuilder
from . import coefficients as c
from .floats import (
    absolute,
    bits,
    copysign,
    fast_two_sum,
    finite_or,
    is_negative,
    is_normal,
    layout,
    nearest_integer,
    polynomial,
    power_of_two,
    scale,
    two_product,
    two_sum,
)

_LOG2_E = 1.4426950408889634
_LOG10_E = 0.4342944819032518
_LOG10_2 = {4: (0.3010300099849701, -1.4320989e-08), 8: (0.3010299956639812, -2.8037281277851704e-18)}
#: 2/ln 2 as head and rest.
_TWO_LOG2_E = {4: (2.885390043258667, 3.8519198e-08), 8: (2.8853900817779268, 4.0710547481862066e-17)}
#: Up to it e^x and e^-x are normal numbers.
_NORMAL_EXP = {4: 87.0, 8: 708.0}
_THIRD = {4: (0.3333333432674408, -9.934108e-09), 8: (0.3333333333333333, 1.850371707708594e-17)}
#: Of 1/∛x the first guess: bits that are dropped, those of the third by which the rest is multiplied, and what the
#: guess of 1 is, in units of its exponent. The series of 1/∛(1 - h), but for its first term.
_GUESS = {4: (16, 16), 8: (40, 30)}
_GUESS_OF_ONE = -0.0677
_ROOT_SERIES = dict.fromkeys((4, 8), (1 / 3, 2 / 9, 14 / 81))


def _exp_reduced(k: ScalarBuilder, x: Scalar) -> tuple[Scalar, Scalar]:
    """e^r - 1 and n where x = n·ln 2 + r, |r| ≤ ln 2 / 2."""
    n, integer = nearest_integer(k, k.fma(x, _LOG2_E, layout(x).magic))
    return _exp_rest(k, x, n), integer


def _exp_rest(k: ScalarBuilder, x: Scalar, n: Scalar, more: Scalar | None = None) -> Scalar:
    """e^r - 1 where x = n·ln 2 + r (Cody and Waite's reduction), or x + more, which is below the precision of x."""
    form = layout(x)
    r = k.fma(n, -form.ln2[0], x)
    r = k.fma(n, -form.ln2[1], r)
    if more is not None:
        r = r + more
    return k.fma(r * r, polynomial(k, r, c.EXP), r)


def exp_scaled(k: ScalarBuilder, x: Scalar, shift: int) -> Scalar:
    """e^x · 2^shift for a small `shift`, without overflow between."""
    form = layout(x)
    x = k.select(x > form.exp_high, form.exp_high, x)
    x = k.select(x < form.exp_low, form.exp_low, x)
    p, n = _exp_reduced(k, x)
    return scale(k, p + 1.0, n + shift if shift else n)


def exp(k: ScalarBuilder, x: Scalar) -> Scalar:
    """e^x = 2ⁿ·e^r with a polynomial for e^r.

    Largest error found: 1.05 ulp in float32, 1.00 ulp in float64.
    """
    return k.usually(
        lambda: (_exp_normal(k, x), absolute(k, x) <= _NORMAL_EXP[x.dtype.size]), lambda: exp_scaled(k, x, 0)
    )  # fmt: skip


def _exp_normal(k: ScalarBuilder, x: Scalar) -> Scalar:
    """e^x where that is a normal number."""
    form = layout(x)
    shifted = k.fma(x, _LOG2_E, form.magic)
    p = _exp_rest(k, x, shifted - form.magic)
    # n stands in the low bits of `shifted`; the others are shifted out
    return k.bitcast(bits(k, p + 1.0) + (bits(k, shifted) << form.mantissa), x.dtype)


def times_exp(k: ScalarBuilder, y: Scalar, x: Scalar, more: Scalar, is_normal: Scalar) -> Scalar:
    """y·e^(x + more), of x between the limits of `exp_scaled`, rounded little more than once.

    Args:
        is_normal: where the result is known to be a normal number.
    """
    form = layout(x)
    shifted = k.fma(x, _LOG2_E, form.magic)
    product = k.fma(y, _exp_rest(k, x, shifted - form.magic, more), y)

    def quick() -> Scalar:
        return k.bitcast(bits(k, product) + (bits(k, shifted) << form.mantissa), x.dtype)

    return k.usually(lambda: (quick(), is_normal), lambda: scale(k, product, bits(k, shifted) - form.magic_bits))


def exp_nonpositive(k: ScalarBuilder, x: Scalar) -> Scalar:
    """e^x of x ≤ 0 for a sum in which there is a 1: what would be below the normal numbers is about the least of them.

    1 of a positive number, NaN of any NaN, and elsewhere `exp`'s error and 3e-9 of |x|·e^x in float32, whose ln 2 here
    has one part.
    """
    form = layout(x)
    low, magic = (1 - form.bias + 1) * math.log(2.0), form.magic + form.bias
    x = k.select(x > 0.0, 0.0, x)
    x = k.select(x < low, low, x)
    shifted = k.fma(x, _LOG2_E, magic)
    r = k.fma(shifted - magic, -form.ln2[0], x)
    if x.dtype.size == 8:
        r = k.fma(shifted - magic, -form.ln2[1], r)
    power = k.bitcast(bits(k, shifted) << form.mantissa, x.dtype)  # of a NaN it may be any number
    return k.fma(k.fma(r * r, polynomial(k, r, c.EXP), r), power, power)


def exp_half(k: ScalarBuilder, x: Scalar) -> Scalar:
    """e^x for half precision: (2ⁿ·2^f)², n + f = x / (2·ln 2), with a polynomial of degree 4 (bfloat16: 3) for 2^f.

    2ⁿ is a normal number wherever the square is finite, so one shift makes it; the square overflows and vanishes
    gradually. Exact at 0 and within 2e-5 of the result (bfloat16: 5e-4): too coarse for float32, but the rounding of
    a float16 result is 2.4e-4, of a bfloat16 result 2e-3.
    """
    form = layout(x)
    coefficients = c.EXP2_BFLOAT if k.source_dtype is dtypes.bfloat16 else c.EXP2_HALF
    x = k.select(x > 90.0, 90.0, x)
    x = k.select(x < form.exp_low, form.exp_low, x)
    shifted = k.fma(x, 0.5 * _LOG2_E, form.magic)
    f = k.fma(x, 0.5 * _LOG2_E, form.magic - shifted)
    # n stands in the low bits of `shifted`; the others are shifted out
    power = k.bitcast((bits(k, shifted) << form.mantissa) + (form.bias << form.mantissa), x.dtype)
    root = k.fma(f, polynomial(k, f, coefficients), 1.0) * power
    return root * root


def exp2(k: ScalarBuilder, x: Scalar) -> Scalar:
    """2^x = 2ⁿ·2^f, n the nearest integer, with a polynomial for 2^f.

    Largest error found: 0.82 ulp in float32, 0.87 ulp in float64.
    """
    form = layout(x)
    limit = float(form.bias + 3)
    x = k.select(x > limit, limit, x)
    limit = -float(form.bias + form.mantissa + 3)
    x = k.select(x < limit, limit, x)
    n, integer = nearest_integer(k, x + form.magic)
    f = x - n
    return scale(k, k.fma(f, polynomial(k, f, c.EXP2), 1.0), integer)


def expm1(k: ScalarBuilder, x: Scalar) -> Scalar:
    """e^x - 1 = 2ⁿ·(e^r - 1) + (2ⁿ - 1), computed at half its size against overflow.

    Largest error found: 1.57 ulp in float32, 1.77 ulp in float64.
    """
    form = layout(x)
    high, low = (89.0, -20.0) if x.dtype.size == 4 else (710.0, -40.0)
    clamped = k.select(x > high, high, x)
    clamped = k.select(clamped < low, low, clamped)
    p, n = _exp_reduced(k, clamped)
    s = power_of_two(k, n - 1, x.dtype)
    y = k.fma(s, p, s - 0.5) * 2.0
    return k.select(absolute(k, x) < 2.0 ** -(form.mantissa + 2), x, y)


def cbrt(k: ScalarBuilder, x: Scalar) -> Scalar:
    """∛x = x·r², r = 1/∛x from a third of its bits by the series of 1/∛(1 - h), h = 1 - x·r³, and a step of Newton.

    Largest error found: 0.89 ulp in float32, 0.73 ulp in float64.
    """
    form, size = layout(x), absolute(k, x)
    tiny, lift = size < form.smallest_normal, form.mantissa // 3 * 3 + 3
    a = k.select(tiny, size * 2.0**lift, size)
    dropped, precision = _GUESS[x.dtype.size]
    one = round((4 / 3 * form.bias + _GUESS_OF_ONE) * 2**form.mantissa)
    third = ((bits(k, a) >> dropped) * round(2**precision / 3)) >> precision
    r = k.bitcast(one - (third << dropped), x.dtype)
    for _ in range(x.dtype.size // 4):
        h = k.fma(-(a * r), r * r, 1.0)
        r = k.fma(r, h * polynomial(k, h, _ROOT_SERIES), r)
    square = r * r
    y = a * square
    y = k.fma(k.fma(-(y * y), y, a) * square, 1 / 3, y)
    y = y * k.select(tiny, 2.0 ** -(lift // 3), k.const(1, x.dtype))
    return finite_or(k, x, copysign(k, y, x), x)


def _split(k: ScalarBuilder, x: Scalar) -> tuple[Scalar, Scalar]:
    """n and m where x = 2ⁿ·m, √½ ≤ m < √2, for finite x > 0."""
    form = layout(x)
    lift = form.mantissa + 2
    tiny = x < form.smallest_normal
    n, m = _split_normal(k, k.select(tiny, x * 2.0**lift, x))
    return n - k.select(tiny, lift, k.const(0, form.integer)), m


def _split_normal(k: ScalarBuilder, x: Scalar) -> tuple[Scalar, Scalar]:
    """The same for normal x."""
    form = layout(x)
    pattern = bits(k, x)
    n = (pattern - form.sqrt_half_bits) >> form.mantissa
    return n, k.bitcast(pattern - (n << form.mantissa), x.dtype)


def _log1p_reduced(k: ScalarBuilder, f: Scalar) -> Scalar:
    """log(1 + f) for √½ - 1 ≤ f ≤ √2 - 1.

    In double precision by 2·atanh(s), s = f/(2 + f), where 2s = f - s·f.
    """
    if f.dtype.size == 4:
        return k.fma(f * f, k.fma(f, polynomial(k, f, c.LOG), -0.5), f)
    s = f / (f + 2.0)
    z = s * s
    return f - s * (f - (z + z) * polynomial(k, z, c.ATANH))


def _log_limits(k: ScalarBuilder, x: Scalar, zero: float, y: Scalar) -> Scalar:
    """`y`, a logarithm that vanishes nowhere but in -∞ at x = `zero`; with ∞ and NaN."""
    y = k.select(x < float("inf"), y, x)
    y = k.select(x < zero, float("nan"), y)
    return k.select(x.eq(zero), float("-inf"), y)


def _logarithm(k: ScalarBuilder, x: Scalar, of_parts: Callable[[Scalar, Scalar], Scalar]) -> Scalar:
    """``of_parts(n, m)`` of positive numbers x = 2ⁿ·m, with the limits of a logarithm; n as a float."""

    def of(parts: tuple[Scalar, Scalar]) -> Scalar:
        n, m = parts
        return of_parts(k.convert(n, x.dtype), m)

    return k.usually(
        lambda: (of(_split_normal(k, x)), is_normal(k, x)), lambda: _log_limits(k, x, 0.0, of(_split(k, x)))
    )  # fmt: skip


def log(k: ScalarBuilder, x: Scalar) -> Scalar:
    """log x = n·ln 2 + log m.

    Largest error found: 0.88 ulp in float32, 1.18 ulp in float64.
    """
    head, rest = layout(x).ln2
    return _logarithm(k, x, lambda n, m: k.fma(n, head, k.fma(n, rest, _log1p_reduced(k, m - 1.0))))


def log2(k: ScalarBuilder, x: Scalar) -> Scalar:
    """log₂ x = n + log₂ m; exact at powers of two.

    Largest error found: 1.64 ulp in float32, 1.47 ulp in float64.
    """
    return _logarithm(k, x, lambda n, m: k.fma(_log1p_reduced(k, m - 1.0), _LOG2_E, n))


def log10(k: ScalarBuilder, x: Scalar) -> Scalar:
    """log₁₀ x = n·log₁₀ 2 + log₁₀ m.

    Largest error found: 1.84 ulp in float32, 1.62 ulp in float64.
    """
    head, rest = _LOG10_2[x.dtype.size]
    return _logarithm(k, x, lambda n, m: k.fma(n, head, k.fma(n, rest, _log1p_reduced(k, m - 1.0) * _LOG10_E)))


def log1p(k: ScalarBuilder, x: Scalar) -> Scalar:
    """log(1 + x): with 2ⁿ·m ≈ 1 + x, f = 2⁻ⁿ·x + (2⁻ⁿ - 1) loses nothing where x is small.

    Largest error found: 1.42 ulp in float32, 1.70 ulp in float64.
    """
    form, large = layout(x), 2.0**60
    u = x + 1.0

    def of(n: Scalar, f: Callable[[Scalar], Scalar]) -> Scalar:
        reduced = _log1p_reduced(k, f(power_of_two(k, 0 - n, x.dtype)))
        n = k.convert(n, x.dtype)
        y = k.fma(n, form.ln2[0], k.fma(n, form.ln2[1], reduced))
        return k.select(absolute(k, x) < 2.0 ** -(form.mantissa + 2), x, y)

    def shifted(s: Scalar) -> Scalar:
        return k.fma(x, s, s - 1.0)

    def general() -> Scalar:
        n, m = _split(k, u)
        return _log_limits(k, x, -1.0, of(n, lambda s: k.select(x > large, m - 1.0, shifted(s))))

    return k.usually(lambda: (of(_split_normal(k, u)[0], shifted), is_normal(k, u, large)), general)


def sigmoid(k: ScalarBuilder, x: Scalar) -> Scalar:
    """1 / (1 + e⁻ˣ), by e^-|x|, which does not overflow.

    Largest error found: 2.30 ulp in float32, 2.02 ulp in float64.
    """
    e = exp(k, -absolute(k, x))
    return k.select(x < 0.0, e, 1.0) / (e + 1.0)


def sigmoid_half(k: ScalarBuilder, x: Scalar) -> Scalar:
    """1 / (1 + e⁻ˣ) for half precision, with the error of `exp_half`."""
    e = exp_half(k, -absolute(k, x))
    return k.div_coarse(k.select(x < 0.0, e, 1.0), e + 1.0)


def _log2_exact(k: ScalarBuilder, n: Scalar, m: Scalar) -> tuple[Scalar, Scalar]:
    """log₂ (2ⁿ·m) as a head and a rest, about 12 bits beyond the precision.

    log m = 2·atanh(s), s = (m - 1)/(m + 1): s, s² and the cubic term in two words.
    """
    size = m.dtype.size
    numerator = m - 1.0
    denominator, d_rest = fast_two_sum(k.select(m > 1.0, m, 1.0), k.select(m > 1.0, 1.0, m))
    s = numerator / denominator
    s_rest = k.fma(-s, d_rest, k.fma(-s, denominator, numerator)) / denominator
    z, z_rest = two_product(k, s, s)
    z_rest = k.fma(s + s, s_rest, z_rest)
    u, u_rest = fast_two_sum(k.const(_THIRD[size][0], m.dtype), z * polynomial(k, z, c.POW))
    u_rest = u_rest + _THIRD[size][1]
    v, v_rest = two_product(k, z, s)
    v_rest = k.fma(z, s_rest, k.fma(z_rest, s, v_rest))
    t, t_rest = two_product(k, v, u)
    t_rest = k.fma(v, u_rest, k.fma(v_rest, u, t_rest))
    a, a_rest = fast_two_sum(s, t)
    a_rest = a_rest + (s_rest + t_rest)
    head, rest = _TWO_LOG2_E[size]
    b, b_rest = two_product(k, a, k.const(head, m.dtype))
    b_rest = k.fma(a, rest, k.fma(a_rest, head, b_rest))
    y, y_rest = two_sum(k.convert(n, m.dtype), b)
    return fast_two_sum(y, y_rest + b_rest)


def power(k: ScalarBuilder, x: Scalar, y: Scalar) -> Scalar:
    """x^y = 2^(y·log₂|x|) with the logarithm in two words, and C's rules for the special cases.

    Largest error found: 0.89 ulp in float32, 1.00 ulp in float64.
    """

    def quick() -> tuple[Scalar, Scalar]:
        p, rest = _exponent(k, _split_normal(k, x), y)
        is_usual = k.logical_and(is_normal(k, x), absolute(k, p) <= layout(x).bias - 2.0)
        return _exp2_normal(k, p, rest), is_usual

    return k.usually(quick, lambda: _power_general(k, x, y))


def _exponent(k: ScalarBuilder, parts: tuple[Scalar, Scalar], y: Scalar) -> tuple[Scalar, Scalar]:
    """y·log₂ (2ⁿ·m) in two words."""
    head, rest = _log2_exact(k, *parts)
    p, p_rest = two_product(k, y, head)
    return p, k.fma(y, rest, p_rest)


def _exp2_normal(k: ScalarBuilder, p: Scalar, rest: Scalar) -> Scalar:
    """2^(p + rest) where that is a normal number."""
    form = layout(p)
    shifted = p + form.magic
    f = (p - (shifted - form.magic)) + rest
    power = k.fma(f, polynomial(k, f, c.EXP2), 1.0)
    return k.bitcast(bits(k, power) + (bits(k, shifted) << form.mantissa), p.dtype)


def _power_general(k: ScalarBuilder, x: Scalar, y: Scalar) -> Scalar:
    """x^y for all numbers."""
    form = layout(x)
    a = absolute(k, x)
    limit = 2.0 ** (form.mantissa + 12)
    w = k.select(y > limit, limit, k.select(y < -limit, -limit, y))
    p, p_rest = _exponent(k, _split(k, a), w)
    high, low = float(form.bias + 3), -float(form.bias + form.mantissa + 3)
    inside = k.logical_and(p < high, p > low)
    p_rest = k.select(inside, p_rest, 0.0)
    p = k.select(p > high, high, k.select(p < low, low, p))
    n, integer = nearest_integer(k, p + form.magic)
    f = (p - n) + p_rest
    result = scale(k, k.fma(f, polynomial(k, f, c.EXP2), 1.0), integer)

    half = y * 0.5
    whole = k.math("floor", y).eq(y)
    odd = k.logical_and(whole, k.math("floor", half).ne(half))
    zero, infinite = a.eq(0.0), a.eq(float("inf"))
    limit_value = k.select((y > 0.0) ^ zero, float("inf"), k.const(0.0, x.dtype))
    result = k.select(k.logical_or(zero, infinite), limit_value, result)
    result = k.select(k.logical_and(odd, is_negative(k, x)), copysign(k, result, x), result)
    fractional = k.logical_and(k.logical_and(x < 0.0, ~whole), ~infinite)
    result = k.select(fractional, float("nan"), result)
    result = k.select(k.logical_or(k.isnan(x), k.isnan(y)), float("nan"), result)
    return k.select(k.logical_or(x.eq(1.0), y.eq(0.0)), 1.0, result)
