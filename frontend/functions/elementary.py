"""Elementary functions that NumPy's users know: compositions of ops, so they fuse and have all derivatives."""

from __future__ import annotations

import math

from smelt.ir import dtypes
from smelt.ir.errors import DTypeError, ShapeError, at_user_line
from smelt.ir.op import registry as ops

from ..lazy.arguments import number
from ..lazy.arrays import (
    ArrayLike,
    StreamOrDevice,
    array,
    as_array,
    convert,
    emit,
    emit_elementwise,
    promote_operands,
    wrap,
)
from ..lazy.core import remembered, remembered_numbers
from ..lazy.movement import filled, joined, one_axis, piece
from ..lazy.operands import as_floating, constant, promote_all
from ..lazy.streams import check_stream
from .arithmetic import abs as absolute
from .arithmetic import maximum, minimum, power, remainder
from .complex_numbers import imag, real
from .floats import signbit
from .logic import isinf, isnan, logical_and, logical_or, where
from .reductions import widened
from .rounding import round, trunc
from .sorting import cumsum, diff
from .special_parts import computed, polynomial
from .transcendental import arctan2, exp, log1p, sin

__all__ = [
    "angle", "bitwise_count", "exp2", "fmax", "fmin", "fmod", "heaviside", "logaddexp2", "modf", "sinc",
    "unwrap",
]  # fmt: skip


@remembered
def exp2(a: ArrayLike, /, *, stream: StreamOrDevice = None) -> array:
    """2 to the power of a. Integers give float32.

    >>> import smelt
    >>> smelt.exp2(smelt.array([3.0, -1.0]))
    array([8, 0.5], dtype=float32)
    """
    check_stream(stream)
    x = as_floating(a)
    if x.dtype.is_complex:
        scale = math.log(2)
        return exp(emit_elementwise(ops["complex"], real(x) * scale, imag(x) * scale))  # a product of infinities is NaN
    wide = widened(x)
    return convert(power(filled(wide.shape, 2, wide.dtype), wide), x.dtype)


@remembered_numbers
def logaddexp2(a: ArrayLike, b: ArrayLike, /, *, stream: StreamOrDevice = None) -> array:
    """log2(2ᵃ + 2ᵇ), without overflow; -inf where both are. Integers give float32.

    Args:
        a, b: arrays that broadcast against each other.

    Returns:
        Their common shape; the floating dtype in which both meet.

    Raises:
        DTypeError: complex numbers.

    >>> import smelt
    >>> smelt.logaddexp2(smelt.array([0.0, 2000.0]), 0.0)
    array([1, 2000], dtype=float32)
    """
    check_stream(stream)
    return computed("logaddexp2", _logaddexp2, a, b)


def _logaddexp2(x: array, y: array) -> array:
    order = x >= y
    high, low = where(order, x, y), where(order, y, x)
    same = logical_and(x == y, isinf(x))  # equal infinities have no difference
    apart = where(same, 0.0, low) - where(same, 0.0, high)
    return high + log1p(exp(apart * math.log(2))) * (1 / math.log(2))


@remembered
def sinc(a: ArrayLike, /, *, stream: StreamOrDevice = None) -> array:
    """sin(πa) / (πa), and 1 at 0, of real and complex numbers. Integers give float32.

    >>> import smelt
    >>> smelt.sinc(smelt.array([0.0, 0.5, 2.0]))
    array([1, 0.63662, 0], dtype=float32)
    """
    check_stream(stream)
    x = as_array(a)
    return _sinc(x) if x.dtype.is_complex else computed("sinc", _sinc, a)


def _sinc(x: array) -> array:
    small = absolute(x) < 0.25
    y = where(small, x, 0.0)
    square = y * y * 16.0
    near = polynomial([(-1) ** k * (math.pi / 4) ** (2 * k) / math.factorial(2 * k + 1) for k in range(11)], square)
    infinite = logical_and(isinf(real(x)), imag(x) == 0) if x.dtype.is_complex else isinf(x)
    z = where(logical_or(small, infinite), 1.5, x)
    turn = z - 2 * round(real(z) * 0.5)  # between -1 and 1, and exact: so whole numbers are zeros
    folded = where(real(turn) > 0.5, 1 - turn, where(real(turn) < -0.5, -1 - turn, turn))
    return where(small, near, where(infinite, 0.0, sin(math.pi * folded) / (math.pi * z)))


@remembered_numbers
def heaviside(x1: ArrayLike, x2: ArrayLike, /, *, stream: StreamOrDevice = None) -> array:
    """0 where x1 < 0, 1 where x1 > 0, x2 where x1 is 0; NaN where it is that. Integers give float32.

    Raises:
        DTypeError: complex numbers.

    >>> import smelt
    >>> smelt.heaviside(smelt.array([-2.0, 0.0, 3.0]), 0.5)
    array([0, 0.5, 1], dtype=float32)
    """
    check_stream(stream)

    def step(x: array, middle: array) -> array:
        return where(isnan(x), math.nan, where(x == 0, middle, where(x < 0, 0.0, 1.0)))

    return computed("heaviside", step, x1, x2)


def _ordered(name: str, a: ArrayLike, b: ArrayLike) -> tuple[array, array]:
    x, y = promote_operands(name, a, b)
    if x.dtype.is_complex:
        raise DTypeError(at_user_line(f"smelt.{name}: not defined for complex numbers; a {x.aval}"))
    return x, y


@remembered_numbers
def fmax(a: ArrayLike, b: ArrayLike, /, *, stream: StreamOrDevice = None) -> array:
    """The larger one, and where one is NaN the other one (`maximum` gives NaN).

    Args:
        a, b: arrays that broadcast against each other.

    Returns:
        Their common shape and dtype.

    >>> import smelt
    >>> smelt.fmax(smelt.array([1.0, float("nan")]), smelt.array([2.0, 3.0]))
    array([2, 3], dtype=float32)
    """
    check_stream(stream)
    x, y = promote_all("fmax", a, b)
    found = maximum(x, y)
    return where(isnan(x), y, where(isnan(y), x, found)) if x.dtype.is_inexact else found


@remembered_numbers
def fmin(a: ArrayLike, b: ArrayLike, /, *, stream: StreamOrDevice = None) -> array:
    """The smaller one, and where one is NaN the other one (`minimum` gives NaN).

    Args:
        a, b: arrays that broadcast against each other.

    Returns:
        Their common shape and dtype.

    >>> import smelt
    >>> smelt.fmin(smelt.array([1.0, float("nan")]), smelt.array([2.0, 3.0]))
    array([1, 3], dtype=float32)
    """
    check_stream(stream)
    x, y = promote_all("fmin", a, b)
    found = minimum(x, y)
    return where(isnan(x), y, where(isnan(y), x, found)) if x.dtype.is_inexact else found


@remembered_numbers
def fmod(a: ArrayLike, b: ArrayLike, /, *, stream: StreamOrDevice = None) -> array:
    """What division leaves, with the sign of a, as in C; that of `remainder` has the sign of b.

    Of integers division by 0 leaves what it leaves in `remainder`.

    Raises:
        DTypeError: complex numbers.

    >>> import smelt
    >>> smelt.fmod(smelt.array([5.0, -5.0]), 3.0)
    array([2, -2], dtype=float32)
    """
    check_stream(stream)
    x, y = _ordered("fmod", a, b)
    if x.dtype.is_float:
        below, flipped = signbit(x), signbit(y)
        left = remainder(where(below, -x, x), where(flipped, -y, y))
        return where(below, -left, left)
    left = remainder(x, y)
    if x.dtype.kind != "i":
        return left
    across = logical_and(left != 0, (x < 0) != (y < 0))
    return where(across, left - y, left)


@remembered
def modf(a: ArrayLike, /, *, stream: StreamOrDevice = None) -> tuple[array, array]:
    """The fraction and the whole part of numbers, both with their sign. Integers give float32.

    Raises:
        DTypeError: complex numbers.

    >>> import smelt
    >>> smelt.modf(smelt.array([3.5, -0.25]))
    (array([0.5, -0.25], dtype=float32), array([3, -0], dtype=float32))
    """
    check_stream(stream)
    x = as_floating(a)
    if x.dtype.is_complex:
        raise DTypeError(at_user_line(f"smelt.modf: not defined for complex numbers; a {x.aval}"))
    below, infinite = signbit(x), isinf(x)
    size = where(infinite, 0.0, where(below, -x, x))
    fraction = remainder(size, 1)  # not size - trunc(size): one op, to which both are the same number
    return where(below, -fraction, fraction), trunc(x)  # a fraction of 0 has the sign of x, and its derivative is 1


@remembered
def angle(z: ArrayLike, deg: bool = False, *, stream: StreamOrDevice = None) -> array:
    """The angle of complex numbers in the plane, between -π and π; of negative real ones π. Integers give float32.

    Args:
        deg: in degrees.

    >>> import smelt
    >>> smelt.angle(smelt.array([1 + 1j, -2.0]), deg=True)
    array([45, 180], dtype=float32)
    """
    check_stream(stream)
    x = as_floating(z)
    if x.dtype.is_complex:
        found = arctan2(imag(x), real(x))
    else:
        found = where(signbit(x), constant(math.pi, x.dtype, x.shape), constant(0.0, x.dtype, x.shape))
        found = where(isnan(x), x, found)
    return found * (180 / math.pi) if deg else found


@remembered
def unwrap(
    p: ArrayLike,
    discont: float | None = None,
    axis: int = -1,
    *,
    period: float = 2 * math.pi,
    stream: StreamOrDevice = None,
) -> array:
    """Angles without jumps: each differs from the one before by half a period at most. Integers give float32.

    Args:
        discont: smaller jumps stay; half of the period by default, which is the least.
        axis: along which. period: what is added or subtracted, as often as needed.

    Raises:
        ShapeError: a scalar. DTypeError: complex numbers.

    >>> import smelt
    >>> smelt.unwrap(smelt.array([0.0, 3.0, -3.0, 0.0]))
    array([0, 3, 3.28319, 6.28319], dtype=float32)
    """
    check_stream(stream)
    x = as_floating(p)
    if not x.ndim or x.dtype.is_complex:
        kind = DTypeError if x.ndim else ShapeError
        raise kind(at_user_line(f"smelt.unwrap: needs real numbers along an axis; p {x.aval}"))
    place, turn = one_axis("unwrap", axis, x.shape), float(number("unwrap", "period", period))
    least = turn / 2 if discont is None else float(number("unwrap", "discont", discont))
    if x.shape[place] < 2:
        return wrap(x._ref)
    dtype, x = x.dtype, widened(x)
    step = diff(x, axis=place)
    moved = remainder(step + turn / 2, turn) - turn / 2
    moved = where(logical_and(moved == -turn / 2, step > 0), turn / 2, moved)
    correction = where(absolute(step) < least, 0.0, moved - step)
    first = piece(x, place, 0, 1)
    found = joined([first, piece(x, place, 1, x.shape[place]) + cumsum(correction, axis=place)], place)
    return convert(found, dtype)


@remembered
def bitwise_count(a: ArrayLike, /, *, stream: StreamOrDevice = None) -> array:
    """How many bits of |a| are set, uint8.

    Raises:
        DTypeError: no integers.

    >>> import smelt
    >>> smelt.bitwise_count(smelt.array([255, -3, 0]))
    array([8, 2, 0], dtype=uint8)
    """
    check_stream(stream)
    x = as_array(a)
    if x.dtype is dtypes.bool_:
        return convert(x, dtypes.uint8)
    if not x.dtype.is_integer:
        raise DTypeError(at_user_line(f"smelt.bitwise_count: takes integers; a {x.aval}"))
    bits = x.dtype.bits
    unsigned = next(d for d in dtypes.UNSIGNED if d.bits == bits)
    if x.dtype.kind == "i":
        x = emit(ops["bitcast"], (absolute(x),), {"dtype": unsigned})

    def mask(byte: int) -> array:
        return constant(int.from_bytes(bytes([byte]) * (bits // 8), "little"), unsigned, x.shape)

    # Sums of pairs, of fours, of eights; then the bytes are added.
    x = x - ((x >> 1) & mask(0x55))
    x = (x & mask(0x33)) + ((x >> 2) & mask(0x33))
    x = (x + (x >> 4)) & mask(0x0F)
    for shift in (8, 16, 32):
        if shift < bits:
            x = x + (x >> shift)
    return convert(x & constant(0x7F, unsigned, x.shape), dtypes.uint8)
