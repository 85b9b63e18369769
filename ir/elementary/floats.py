"""What the elementary functions share: the layout of a float, powers of two, polynomials."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from .. import dtypes
from ..dtypes import DType
from ..scalar import Scalar, ScalarBuilder


class Format(NamedTuple):
    """The layout of an IEEE format, and thresholds that follow from it."""

    dtype: DType
    integer: DType  #: of the same size
    mantissa: int  #: stored bits of the significand
    bias: int
    smallest_normal: float
    magic: float  #: 1.5 · 2^mantissa: adding it rounds to an integer, which then stands in the low bits
    magic_bits: int
    sqrt_half_bits: int
    #: Limits between which e^x neither overflows nor vanishes, a little widened.
    exp_low: float
    exp_high: float
    #: ln 2 and π/2 as a head of the format's precision and the rest.
    ln2: tuple[float, float]
    half_pi: tuple[float, float]


_F32 = Format(
    dtypes.float32, dtypes.int32, 23, 127, 2.0**-126, 1.5 * 2**23, 0x4B400000, 0x3F3504F3, -106.0, 91.0,
    (0.6931471824645996, -1.9046542121259336e-09), (1.5707963705062866, -4.371138828673793e-08),
)  # fmt: skip
_F64 = Format(
    dtypes.float64, dtypes.int64, 52, 1023, 2.0**-1022, 1.5 * 2**52, 0x4338000000000000, 0x3FE6A09E667F3BCD,
    -750.0, 715.0,
    (0.6931471805599453, 2.3190468138462996e-17), (1.5707963267948966, 6.123233995736766e-17),
)  # fmt: skip


def layout(x: Scalar) -> Format:
    return _F32 if x.dtype.size == 4 else _F64


def polynomial(k: ScalarBuilder, x: Scalar, coefficients: Mapping[int, Sequence[float]]) -> Scalar:
    """The polynomial whose coefficients for the size of `x` are given, lowest degree first.

    By Horner's rule: vectorized loops are bound by the number of operations, not by their latency.
    """
    *rest, top = coefficients[x.dtype.size]
    total = k.const(top, x.dtype)
    for c in reversed(rest):
        total = k.fma(total, x, c)
    return total


def absolute(k: ScalarBuilder, x: Scalar) -> Scalar:
    return k.math("absf", x)


def copysign(k: ScalarBuilder, x: Scalar, sign: Scalar) -> Scalar:
    return k.math("copysign", x, sign)


def bits(k: ScalarBuilder, x: Scalar) -> Scalar:
    """The bit pattern as a signed integer."""
    return k.bitcast(x, layout(x).integer)


def is_negative(k: ScalarBuilder, x: Scalar) -> Scalar:
    """Whether the sign bit is set, also of -0 and NaN."""
    return bits(k, x) < 0


def is_normal(k: ScalarBuilder, x: Scalar, end: float = math.inf) -> Scalar:
    """Whether x is a positive normal number below `end`: one comparison of its bits."""
    form = layout(x)
    low, high = (int(np.array(v, form.dtype.numpy).view(form.integer.numpy)) for v in (form.smallest_normal, end))
    unsigned = dtypes.uint32 if x.dtype.size == 4 else dtypes.uint64
    return k.bitcast(bits(k, x) - low, unsigned) < high - low


def power_of_two(k: ScalarBuilder, n: Scalar, dtype: DType) -> Scalar:
    """2ⁿ for an integer `n` in the range of normal numbers."""
    form = _F32 if dtype.size == 4 else _F64
    return k.bitcast((n + form.bias) << form.mantissa, dtype)


def scale(k: ScalarBuilder, x: Scalar, n: Scalar) -> Scalar:
    """x · 2ⁿ for any |n| up to twice the bias, rounded once."""
    half = n >> 1
    return x * power_of_two(k, half, x.dtype) * power_of_two(k, n - half, x.dtype)


def nearest_integer(k: ScalarBuilder, shifted: Scalar) -> tuple[Scalar, Scalar]:
    """From ``t + magic``: t rounded to the nearest integer, as a float and as an integer."""
    form = layout(shifted)
    return shifted - form.magic, bits(k, shifted) - form.magic_bits


def finite_or(k: ScalarBuilder, x: Scalar, result: Scalar, otherwise: Scalar | float) -> Scalar:
    """`result` where `x` is finite, else `otherwise`."""
    return k.select(absolute(k, x) < float("inf"), result, otherwise)


def two_sum(a: Scalar, b: Scalar) -> tuple[Scalar, Scalar]:
    """a + b as a rounded sum and its error (Knuth)."""
    s = a + b
    t = s - a
    return s, (a - (s - t)) + (b - t)


def fast_two_sum(a: Scalar, b: Scalar) -> tuple[Scalar, Scalar]:
    """`two_sum` where |a| ≥ |b| or a = 0 (Dekker)."""
    s = a + b
    return s, b - (s - a)


def two_product(k: ScalarBuilder, a: Scalar, b: Scalar) -> tuple[Scalar, Scalar]:
    """a · b as a rounded product and its error."""
    p = a * b
    return p, k.fma(a, b, -p)
