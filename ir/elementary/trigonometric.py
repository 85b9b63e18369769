"""Sine, cosine, tangent and their inverses."""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable, Sequence

from .. import dtypes
from ..scalar import INDEX, Scalar, ScalarBuilder
from . import coefficients as c
from .floats import (
    absolute,
    bits,
    copysign,
    finite_or,
    is_negative,
    layout,
    nearest_integer,
    polynomial,
    two_product,
    two_sum,
)

#: The first 1216 bits of 2/π after the point.
_TWO_OVER_PI = int(
    "a2f9836e4e441529fc2757d1f534ddc0db6295993c439041fe5163abdebbc561b7246e3a424dd2e006492eea09d1921c"
    "fe1deb1cb129a73ee88235f52ebb4484e99c7026b45f7e413991d639835339f49c845f8bbdf9283b1ff897ffde05980f"
    "ef2f118b5a0a6d1f6d367ecf27cb09b74f463f669e5fea2d7527bac7ebe5f17b3d0739f78a5292ea6bfb5fb11f8d5d08"
    "56033046fc7b6bab",
    16,
)
_BITS = 1216
#: 26 zeros and 2/π in words of 32 bits.
_WORDS = tuple((_TWO_OVER_PI << 26 >> (_BITS - 32 * i + 20)) & 0xFFFFFFFF for i in range(7))


def _pick(k: ScalarBuilder, values: Sequence[int], low: Scalar, high: Scalar) -> Scalar:
    """One of four constants by two bits: cheaper than a gather."""
    a, b, c_, d = (k.const(v, dtypes.uint32) for v in values)
    return k.select(high, k.select(low, d, c_), k.select(low, b, a))


def _reduce32(k: ScalarBuilder, x: Scalar) -> tuple[Scalar, Scalar]:
    """Payne and Hanek's reduction of a float32, in integers.

    With |x| = M·2^(e-24), M and e ≥ 0 integers: 96 bits of 2/π from bit e on, times M, modulo
    2^96, are x·2/π modulo 4, with more than 60 bits after the point.
    """
    u32, u64, i32 = dtypes.uint32, dtypes.uint64, dtypes.int32
    magnitude = bits(k, x) & 0x7FFFFFFF
    exponent = (magnitude >> 23) - 127
    m = (magnitude & 0x7FFFFF) | 0x800000
    m = k.select(exponent < 0, m, m + m)
    exponent = k.select(exponent < 0, 0, exponent)
    low, high = (exponent & 32).ne(0), (exponent & 64).ne(0)
    shift = k.bitcast(exponent & 31, u32)
    words = [_pick(k, _WORDS[i : i + 4], low, high) for i in range(4)]
    window = [(a << shift) | ((b >> 1) >> (shift ^ 31)) for a, b in itertools.pairwise(words)]
    m = k.bitcast(m, u32)
    m64 = k.convert(m, u64)
    high1, high2 = (k.convert((k.convert(w, u64) * m64) >> 32, u32) for w in window[1:])
    rest = window[1] * m + high2
    carry = k.convert(rest < high2, u32)
    head = window[0] * m + high1 + carry
    n = (head + 0x20000000) >> 30
    fraction = k.convert(k.bitcast(head - (n << 30), i32), x.dtype)
    below = k.convert(k.bitcast(rest >> 8, i32), x.dtype) * 2.0**-24
    c1, c2 = layout(x).half_pi
    r = k.fma(fraction, c1 * 2.0**-30, k.fma(fraction, c2 * 2.0**-30, below * (c1 * 2.0**-30)))
    negative = x < 0.0
    n = k.bitcast(n, i32)
    return k.select(negative, -r, r), k.select(negative, 0 - n, n)


@functools.cache
def _columns64() -> tuple[tuple[float, ...], ...]:
    """Four columns of floats that sum to (2/π · 2^(32·row)) mod 4, in row 0 to 2/π itself."""
    rows = []
    for row in range(31):
        rest = (_TWO_OVER_PI << (32 * row)) % (4 << _BITS)
        rest -= (4 << _BITS) if rest >= (2 << _BITS) else 0
        words = []
        for last in (_BITS - 50, None, None, None):  # the first word has no bits below 2^-50
            drop = max(abs(rest).bit_length() - 53, 0) if last is None else last
            word = ((rest + ((1 << drop) >> 1)) >> drop) << drop
            words.append(word / (1 << _BITS))
            rest -= word
        rows.append(words)
    return tuple(zip(*rows))


def _modulo4(k: ScalarBuilder, x: Scalar) -> Scalar:
    return k.fma(k.math("roundeven", x * 0.25), -4.0, x)


def _reduce64(k: ScalarBuilder, x: Scalar) -> tuple[Scalar, Scalar]:
    """Payne and Hanek's reduction of a float64, in floating point.

    With x = y·2^(32·row), y below 2^84 and an integer unless row = 0: y times the row's constant
    is x·2/π modulo 4. The constant has four words; products and sums are exact or compensated.
    """
    pattern = bits(k, x)
    exponent = ((pattern >> 52) & 0x7FF) - (1023 + 52)
    row = k.select(exponent > 0, exponent, 0) >> 5
    y = k.bitcast(pattern - (row << (52 + 5)), x.dtype)
    index = k.convert(row, INDEX)
    c1, c2, c3, c4 = (k.table(column, x.dtype)(index) for column in _columns64())
    p, p_rest = two_product(k, y, c1)
    q, q_rest = two_product(k, y, c2)
    s, s_rest = two_product(k, y, c3)
    head, a = two_sum(_modulo4(k, p), _modulo4(k, p_rest))
    head, b = two_sum(head, _modulo4(k, q))
    n, quadrant = nearest_integer(k, head + layout(x).magic)
    head, a = two_sum(head - n, a)
    head, b = two_sum(head, b)
    head, c_ = two_sum(head, q_rest)
    head, d = two_sum(head, s)
    turns = head + ((a + b) + (c_ + (d + k.fma(y, c4, s_rest))))
    return turns * layout(x).half_pi[0], quadrant


#: Below it `_reduce_small` is as exact as the other reductions, by the size of the dtype.
_SMALL = {4: 2.0**15, 8: 2.0**20}
#: π/2 in three words, each of which leaves something: so -0 stays what it is.
_HALF_PI = {
    4: (1.570796251296997, 7.549789415861596e-08, 5.390302529957765e-15),
    8: (1.5707963267948966, 6.123233995736765e-17, 1.0828566739219139e-32),
}


def _reduce_small(k: ScalarBuilder, x: Scalar) -> tuple[Scalar, Scalar]:
    """Cody and Waite's reduction, for numbers that are not large.

    x - n·c₁ is exact, for both are multiples of the last place of π/2 and their difference is below 1; what is left is
    rounded once, since n·c₃ only counts where x - n·(c₁ + c₂) is tiny.
    """
    form = layout(x)
    n, integer = nearest_integer(k, k.fma(x, 2.0 / math.pi, form.magic))
    r = x
    for word in _HALF_PI[x.dtype.size]:
        r = k.fma(n, -word, r)
    return r, integer


def _reduce_any(k: ScalarBuilder, x: Scalar) -> tuple[Scalar, Scalar]:
    """Payne and Hanek's reduction, for every number; NaN where it is not finite."""
    r, n = _reduce32(k, x) if x.dtype.size == 4 else _reduce64(k, x)
    return finite_or(k, x, r, float("nan")), n


def _is_small(k: ScalarBuilder, x: Scalar) -> Scalar:
    return absolute(k, x) < _SMALL[x.dtype.size]


def reduce(k: ScalarBuilder, x: Scalar) -> tuple[Scalar, Scalar]:
    """r and n (modulo 4) where x = n·π/2 + r, |r| ≤ π/4, for every x; r is NaN where x is not finite."""
    is_small, (r, n), (far, turns) = _is_small(k, x), _reduce_small(k, x), _reduce_any(k, x)
    return k.select(is_small, r, far), k.select(is_small, n, turns)


def _reduced(k: ScalarBuilder, x: Scalar, function: Callable[[Scalar, Scalar], Scalar]) -> Scalar:
    """``function(r, n)`` with these."""
    return k.usually(
        lambda: (function(*_reduce_small(k, x)), _is_small(k, x)), lambda: function(*reduce(k, x))
    )  # fmt: skip


def _sin_cos_reduced(k: ScalarBuilder, r: Scalar) -> tuple[Scalar, Scalar]:
    """sin r and cos r for |r| ≤ π/4."""
    z = r * r
    sine = k.select(r.eq(0.0), r, k.fma(r * z, polynomial(k, z, c.SIN), r))
    cosine = k.fma(z, k.fma(z, polynomial(k, z, c.COS), -0.5), 1.0)
    return sine, cosine


def _quadrant(k: ScalarBuilder, n: Scalar, sine: Scalar, cosine: Scalar) -> Scalar:
    """sin(r + n·π/2)."""
    y = k.select((n & 1).ne(0), cosine, sine)
    width = 8 * y.dtype.size
    sign = (n & 2) << (width - 2)
    return k.bitcast(bits(k, y) ^ sign, y.dtype)


def sin_cos(k: ScalarBuilder, x: Scalar) -> tuple[Scalar, Scalar]:
    """sin x and cos x from one reduction."""
    r, n = reduce(k, x)
    sine, cosine = _sin_cos_reduced(k, r)
    return _quadrant(k, n, sine, cosine), _quadrant(k, n + 1, sine, cosine)


def sin(k: ScalarBuilder, x: Scalar) -> Scalar:
    """sin x, by reduction to [-π/4, π/4] and polynomials.

    Largest error found: 2.24 ulp in float32, 2.28 ulp in float64.
    """
    return _reduced(k, x, lambda r, n: _quadrant(k, n, *_sin_cos_reduced(k, r)))


def cos(k: ScalarBuilder, x: Scalar) -> Scalar:
    """cos x, by reduction to [-π/4, π/4] and polynomials.

    Largest error found: 2.23 ulp in float32, 2.20 ulp in float64.
    """
    return _reduced(k, x, lambda r, n: _quadrant(k, n + 1, *_sin_cos_reduced(k, r)))


def tan(k: ScalarBuilder, x: Scalar) -> Scalar:
    """tan x = sin r / cos r, or -cos r / sin r in odd quadrants.

    Largest error found: 3.70 ulp in float32, 3.47 ulp in float64.
    """

    def reduced(r: Scalar, n: Scalar) -> Scalar:
        sine, cosine = _sin_cos_reduced(k, r)
        odd = (n & 1).ne(0)
        return k.select(odd, -cosine, sine) / k.select(odd, sine, cosine)

    return _reduced(k, x, reduced)


def _arcsin_reduced(k: ScalarBuilder, s: Scalar, z: Scalar) -> Scalar:
    """arcsin s for |s| ≤ 1/2, z = s²."""
    return k.fma(s * z, polynomial(k, z, c.ASIN), s)


def arcsin(k: ScalarBuilder, x: Scalar) -> Scalar:
    """arcsin x; above 1/2 by π/2 - 2·arcsin √((1 - |x|)/2).

    Largest error found: 2.28 ulp in float32, 2.09 ulp in float64.
    """
    form = layout(x)
    a = absolute(k, x)
    large = a > 0.5
    z = k.select(large, k.fma(a, -0.5, 0.5), a * a)
    y = _arcsin_reduced(k, k.select(large, k.math("sqrt", z), a), z)
    folded = form.half_pi[0] - k.fma(y, 2.0, -form.half_pi[1])
    return copysign(k, k.select(large, folded, y), x)


def arccos(k: ScalarBuilder, x: Scalar) -> Scalar:
    """arccos x: π/2 - arcsin x near 0, else 2·arcsin √((1 - |x|)/2), from π where x < 0.

    Largest error found: 1.06 ulp in float32, 1.06 ulp in float64.
    """
    form = layout(x)
    a = absolute(k, x)
    large = a > 0.5
    z = k.select(large, k.fma(a, -0.5, 0.5), a * a)
    y = _arcsin_reduced(k, k.select(large, k.math("sqrt", z), x), z)
    twice = y + y
    folded = k.select(x < 0.0, 2 * form.half_pi[0] - (twice - 2 * form.half_pi[1]), twice)
    return k.select(large, folded, form.half_pi[0] - (y - form.half_pi[1]))


_TAN_PI_8 = 0.41421356


def arctan(k: ScalarBuilder, x: Scalar) -> Scalar:
    """arctan x, by arctan a = π/4 + arctan((a - 1)/(a + 1)) or π/2 - arctan(1/a).

    Largest error found: 2.03 ulp in float32, 2.05 ulp in float64.
    """
    form = layout(x)
    a = absolute(k, x)
    middle, large = a > _TAN_PI_8, a > 1.0 / _TAN_PI_8
    numerator = k.select(large, -1.0, k.select(middle, a - 1.0, a))
    denominator = k.select(large, a, k.select(middle, a + 1.0, 1.0))
    half_pi, rest = form.half_pi
    head = k.select(large, half_pi, k.select(middle, half_pi / 2, k.const(0.0, x.dtype)))
    rest_ = k.select(large, rest, k.select(middle, rest / 2, k.const(0.0, x.dtype)))
    t = numerator / denominator
    z = t * t
    return copysign(k, head + (k.fma(t * z, polynomial(k, z, c.ATAN), t) + rest_), x)


def arctan2(k: ScalarBuilder, y: Scalar, x: Scalar) -> Scalar:
    """The angle of the point (x, y) in [-π, π], with C's rules for zeros and infinities.

    Largest error found: 1.97 ulp in float32, 2.02 ulp in float64.
    """
    form = layout(x)
    half_pi, rest = form.half_pi
    ax, ay = absolute(k, x), absolute(k, y)
    steep = ay > ax
    small, large = k.select(steep, ax, ay), k.select(steep, ay, ax)
    factor = k.select(large > 2.0 ** (form.bias - 3), 2.0**-8, k.const(1.0, x.dtype))
    small, large = small * factor, large * factor
    middle = k.logical_and(small * (1.0 / _TAN_PI_8) >= large, large > 0.0)
    tied = small.eq(large)
    numerator = k.select(tied, 0.0, k.select(middle, small - large, small))
    t = numerator / k.select(tied, 1.0, k.select(middle, small + large, large))
    z = t * t
    angle = k.fma(t * z, polynomial(k, z, c.ATAN), t)
    # the result is ±(head ± angle) with head a multiple of π/4
    left = is_negative(k, x)
    eighths = k.select(middle, half_pi / 2, k.const(0.0, x.dtype))
    eighths_rest = k.select(middle, rest / 2, k.const(0.0, x.dtype))
    head = k.select(steep, half_pi - eighths, eighths)
    head_rest = k.select(steep, rest - eighths_rest, eighths_rest)
    angle = k.select(steep, -angle, angle)
    head = k.select(left, 2 * half_pi - head, head)
    head_rest = k.select(left, 2 * rest - head_rest, head_rest)
    angle = k.select(left, -angle, angle)
    result = copysign(k, head + (angle + head_rest), y)
    return k.select(k.logical_or(k.isnan(x), k.isnan(y)), float("nan"), result)
