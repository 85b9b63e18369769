"""The floating-point remainder."""

from __future__ import annotations

from ..scalar import INDEX, Scalar, ScalarBuilder
from .floats import absolute, bits, copysign, is_normal, layout, scale

#: The logarithm of how many bits of a quotient one division finds, by the size of the dtype.
_LOG_WIDTH = {4: 4, 8: 5}


def _remainder_step(k: ScalarBuilder, a: Scalar, b: Scalar) -> Scalar:
    """a mod b for 0 ≤ a < 2^mantissa · b, exactly: a quotient one too large is mended."""
    r = k.fma(-k.math("trunc", a / b), b, a)
    return k.select(r < 0.0, r + b, r)


def floor_mod(k: ScalarBuilder, x: Scalar, y: Scalar) -> Scalar:
    """x - y·⌊x/y⌋ as NumPy's remainder has it: the exact remainder, then the divisor's sign.

    One division while the quotient is below 2^16 (2^32 in double precision); beyond, remainders
    by y times powers of two come first, that many bits at a time. All steps are exact.

    Exact.
    """
    a, b = absolute(k, x), absolute(k, y)

    def quick() -> tuple[Scalar, Scalar]:
        is_short = a / b < 2.0 ** (1 << _LOG_WIDTH[x.dtype.size]) / 2
        return _signed(k, _remainder_step(k, a, b), x, y), k.logical_and(is_normal(k, b), is_short)

    return k.usually(quick, lambda: _floor_mod_general(k, x, y))


def _signed(k: ScalarBuilder, r: Scalar, x: Scalar, y: Scalar) -> Scalar:
    """With the sign of `y`, from r = |x| mod |y|."""
    signed = copysign(k, r, x)
    mended = k.select((x < 0.0) ^ (y < 0.0), signed + y, signed)
    return k.select(r.eq(0.0), copysign(k, r, y), mended)


def _floor_mod_general(k: ScalarBuilder, x: Scalar, y: Scalar) -> Scalar:
    form, log_width = layout(x), _LOG_WIDTH[x.dtype.size]
    a, b = absolute(k, x), absolute(k, y)
    tiny = b < form.smallest_normal
    lift = k.select(tiny, form.mantissa + 1, k.const(0, form.integer))
    normal = k.select(tiny, b * 2.0 ** (form.mantissa + 1), b)
    gap = (bits(k, a) >> form.mantissa) - (bits(k, normal) >> form.mantissa) + lift
    valid = k.logical_and(k.logical_and(a < float("inf"), b < float("inf")), b > 0.0)
    steps = k.select(k.logical_and(valid, gap > 0), gap, 0) >> log_width

    def reduce(i: Scalar, r: Scalar) -> list[Scalar]:
        left = steps - k.convert(i, form.integer)
        return [_remainder_step(k, r, scale(k, normal, (left << log_width) - lift))]

    zero = k.const(0, INDEX)
    (r,) = k.for_(zero, k.convert(steps, INDEX), reduce, [a])
    r = k.select(b.eq(float("inf")), r, _remainder_step(k, r, b))
    r = k.select(k.logical_and(a < float("inf"), b > 0.0), r, float("nan"))
    return k.select(k.isnan(y), y, _signed(k, r, x, y))
