"""Patterns on elementwise ops: constants, identities of arithmetic, conversions."""

from __future__ import annotations

import math

import numpy as np

from smelt.ir import dtypes
from smelt.ir.attributes import LITERAL_DTYPES
from smelt.ir.aval import broadcast_shapes
from smelt.ir.builder import Value
from smelt.ir.dtypes import DType
from smelt.ir.interpreter import apply_reference
from smelt.ir.ops.constants import constant_array

from ..rewrites import Attr, Const, Rules, Term, canonical, ops
from .patterns import (
    PatternBuilder,
    Site,
    array_of,
    pattern,
    python_scalar,
    scalar_of,
)

#: Results with more elements than this are not computed ahead.
MAX_FOLDED = 1024


# Constants


@pattern(kind="elementwise")
def fold_constants(b: PatternBuilder, at: Site) -> Value | None:
    """f(c, d) → f(c, d) computed now, where all operands are filled with one number each."""
    arrays = []
    for x in at.operands:
        number = scalar_of(x)
        if number is None:
            return None
        arrays.append(constant_array(number, x.dtype))
    if not arrays or not at.op.pure:
        return None
    with np.errstate(all="ignore"):
        (result,) = apply_reference(at.op, arrays, at.attrs)
    return b.splat(python_scalar(np.asarray(result)), at.aval)


@pattern(kind="elementwise")
@pattern(kind="reduction")
@pattern(kind="movement")
@pattern(kind="arg_reduction")
def fold_literals(b: PatternBuilder, at: Site) -> Value | None:
    """f(literal, c) → literal, where the result is small."""
    if not any(x.defined_by("literal") for x in at.operands):
        return None
    if at.aval.size > MAX_FOLDED or at.aval.dtype not in LITERAL_DTYPES:
        return None
    if at.op.stays_symbolic or not at.op.pure or len(at.avals) != 1:
        return None
    arrays = []
    for x in at.operands:
        array = array_of(x)
        if array is None:
            return None
        arrays.append(np.broadcast_to(array, x.shape))
    with np.errstate(all="ignore"):
        (result,) = apply_reference(at.op, arrays, at.attrs)
    return b.literal(np.ascontiguousarray(result).reshape(at.shape))


@pattern("literal")
def literal_of_one_number(b: PatternBuilder, at: Site) -> Value | None:
    """literal [c, c, c] → broadcast(c)."""
    array = at.attrs["value"]
    if array.size == 0:
        return b.splat(0, at.aval)
    flat = array.reshape(-1)
    if array.size > 1 and flat[:-1].tobytes() != flat[1:].tobytes():
        return None
    return b.splat(python_scalar(flat[0]), at.aval)


@pattern("iota")
def iota_of_one_element(b: PatternBuilder, at: Site) -> Value | None:
    """iota along an axis of size one → 0."""
    return b.splat(0, at.aval) if at.shape[at.attrs["axis"]] <= 1 else None


@pattern(kind="elementwise")
def constant_on_the_right(b: PatternBuilder, at: Site) -> Value | None:
    """c ∘ x → x ∘ c, where ∘ commutes: other patterns need to look for constants only there."""
    if not at.op.commutative:
        return None
    x, y = at.operands
    if scalar_of(x) is None or scalar_of(y) is not None:
        return None
    return b.emit(at.op, (y, x), at.attrs)[0]


@pattern(kind="elementwise")
def elementwise_before_broadcast(b: PatternBuilder, at: Site) -> Value | None:
    """f(broadcast(x), broadcast(y)) → broadcast(f(x, y)), where f then has fewer elements."""
    sources = []
    for x in at.operands:
        owner = x.owner
        if owner is None or owner.op.name != "broadcast":
            return None
        sources.append(owner.operands[0])
    if not sources:
        return None
    common = broadcast_shapes(*(x.shape for x in sources))
    if math.prod(common) >= at.aval.size:
        return None
    (small,) = b.emit(at.op, [b.broadcast_to(x, common) for x in sources], at.attrs)
    return b.broadcast_to(small, at.shape)


# Sums


@canonical.rewrite
def add_zero(x: Term) -> Rules:
    """x + 0 → x for integers and bools; x + (-0) → x for floats (x + 0 turns -0 into 0)."""
    return (x + 0 >> x).when(x.is_discrete), (x + -0.0 >> x).when(x.is_float)


@canonical.rewrite
def add_of_neg(x: Term, y: Term) -> Rules:
    """x + (-y) → x - y, and (-x) + y → y - x."""
    return x + -y >> x - y


@pattern("add", "mul")
def reassociate_integers(b: PatternBuilder, at: Site) -> Value | None:
    """(x ∘ c) ∘ d → x ∘ (c ∘ d) for integers, which wrap."""
    x, d = at.operands
    inner = x.defined_by(at.op.name)
    if inner is None or not x.dtype.is_integer or scalar_of(d) is None:
        return None
    if scalar_of(inner.operands[1]) is None:
        return None
    (folded,) = b.emit(at.op, (inner.operands[1], d), at.attrs)
    return b.emit(at.op, (inner.operands[0], folded), at.attrs)[0]


@canonical.rewrite
def sub_zero(x: Term) -> Rules:
    """x - 0 → x."""
    return (x - 0 >> x).when(x.is_real)


@canonical.rewrite
def zero_sub(x: Term) -> Rules:
    """0 - x → -x for integers; (-0) - x → -x for floats."""
    return (0 - x >> -x).when(x.is_integer), (-0.0 - x >> -x).when(x.is_float)


@canonical.rewrite
def sub_of_neg(x: Term, y: Term) -> Rules:
    """x - (-y) → x + y."""
    return x - -y >> x + y


@canonical.rewrite
def sub_of_itself(x: Term) -> Rules:
    """x - x → 0 for integers (a float may be NaN or infinite)."""
    return (x - x >> 0).when(x.is_integer)


# Products


@canonical.rewrite
def mul_one(x: Term) -> Rules:
    """x · 1 → x."""
    return (x * 1 >> x).when(x.is_real)


@canonical.rewrite
def mul_minus_one(x: Term) -> Rules:
    """x · (-1) → -x."""
    return (x * -1 >> -x).when(x.is_float | x.is_integer)


@canonical.rewrite
def mul_zero(x: Term) -> Rules:
    """x · 0 → 0 for integers and bools (a float may be NaN, infinite or negative)."""
    return (x * 0 >> 0).when(x.is_discrete)


@canonical.rewrite
def mul_of_negs(x: Term, y: Term, c: Const) -> Rules:
    """(-x) · (-y) → x · y, and (-x) · c → x · (-c)."""
    return ((-x) * (-y) >> x * y).when(x.is_real), ((-x) * c >> x * -c).when(x.is_real)


@canonical.rewrite
def div_one(x: Term) -> Rules:
    """x / 1 → x."""
    return (x / 1 >> x).when(x.is_real)


@pattern("div")
def div_by_power_of_two(b: PatternBuilder, at: Site) -> Value | None:
    """x / 2ⁿ → x · 2⁻ⁿ, which rounds the same."""
    x, c = at.operands[0], scalar_of(at.operands[1])
    if c is None or not x.dtype.is_float or not _is_power_of_two(c, x.dtype):
        return None
    return x * (1 / float(c))


def _is_power_of_two(c: float, dtype: DType) -> bool:
    """Whether c is ±2ⁿ, and both it and its reciprocal are normal numbers of the dtype."""
    if not math.isfinite(c) or c == 0:
        return False
    mantissa, exponent = math.frexp(abs(float(c)))
    low = 2 - (1 << dtype.exponent_bits - 1)
    return mantissa == 0.5 and low < exponent - 1 < -low


# Signs


@canonical.rewrite
def neg_of_neg(x: Term) -> Rules:
    """-(-x) → x."""
    return -(-x) >> x  # noqa: B002


@pattern("neg")
def neg_of_scaled(b: PatternBuilder, at: Site) -> Value | None:
    """-(x · c) → x · (-c), and -(x / c) → x / (-c)."""
    x = at.operands[0]
    owner = x.owner
    if owner is None or 1 not in owner.op.odd_operands or x.dtype.is_complex:
        return None
    if scalar_of(owner.operands[1]) is None:
        return None
    return b.emit(owner.op, (owner.operands[0], -owner.operands[1]), owner.attrs)[0]


@canonical.rewrite
def abs_of_sign_change(x: Term) -> Rules:
    """|-x| → |x|, and ||x|| → |x|."""
    return (abs(-x) >> abs(x)).when(~x.is_integer), (abs(abs(x)) >> abs(x)).when(~x.is_integer)


# Extrema and selection


@canonical.rewrite
def same_operands(x: Term) -> Rules:
    """max(x, x) → x, and likewise for min, and, or."""
    binary = (ops.maximum, ops.minimum, ops.logical_and, ops.logical_or, ops.bitwise_and, ops.bitwise_or)
    return [op(x, x) >> x for op in binary]


@pattern("minimum")
def upper_limit_of_index(b: PatternBuilder, at: Site) -> Value | None:
    """min(index, n) → index, where the index lies within 0 … n."""
    x, c = at.operands[0], scalar_of(at.operands[1])
    last = None if c is None else _last_position(x)
    return x if last is not None and last <= int(c) <= np.iinfo(x.dtype.numpy).max else None


@pattern("maximum")
def lower_limit_of_index(b: PatternBuilder, at: Site) -> Value | None:
    """max(index, 0) → index, where the index lies within 0 … n."""
    x, c = at.operands[0], scalar_of(at.operands[1])
    return x if c == 0 and _last_position(x) is not None else None


def _last_position(x: Value) -> int | None:
    """The largest of the positions that `x` holds, or None where it holds anything else: they are `gives_positions`."""
    owner = x.owner
    if owner is None or not owner.op.gives_positions or not x.dtype.is_integer:
        return None
    last = (owner.operands[0].shape if owner.operands else x.shape)[owner.attrs["axis"]] - 1
    return last if last <= np.iinfo(x.dtype.numpy).max else None


@canonical.rewrite
def select_constant(x: Term, y: Term) -> Rules:
    """select(true, x, y) → x; select(false, x, y) → y."""
    return ops.select(True, x, y) >> x, ops.select(False, x, y) >> y


@canonical.rewrite
def select_equal(c: Term, x: Term) -> Rules:
    """select(c, x, x) → x, also where both are filled with the same number."""
    return ops.select(c, x, x) >> x


@canonical.rewrite
def select_of_not(c: Term, x: Term, y: Term) -> Rules:
    """select(!c, x, y) → select(c, y, x)."""
    return ops.select(ops.logical_not(c), x, y) >> ops.select(c, y, x)


@canonical.rewrite
def select_of_bools(c: Term) -> Rules:
    """select(c, true, false) → c."""
    return ops.select(c, True, False) >> c


@pattern("logical_not")
def not_of_not(b: PatternBuilder, at: Site) -> Value | None:
    """!!c → c."""
    inner = at.operands[0].defined_by("logical_not")
    return inner.operands[0] if inner is not None and inner.operands[0].aval == at.aval else None


@pattern("logical_not")
def not_of_comparison(b: PatternBuilder, at: Site) -> Value | None:
    """!(x = y) → x ≠ y; !(x ≠ y) → x = y."""
    owner = at.operands[0].owner
    return getattr(b, owner.op.complement)(*owner.operands) if owner is not None and owner.op.complement else None


@canonical.rewrite
def logical_with_constant(x: Term) -> Rules:
    """c and true → c; c and false → false; c or false → c; c or true → true."""
    return (
        ops.logical_and(x, True) >> x, ops.logical_and(x, False) >> False,
        ops.logical_or(x, False) >> x, ops.logical_or(x, True) >> True,
    )  # fmt: skip


# Powers


@canonical.rewrite
def integer_power_small(x: Term) -> Rules:
    """x⁰ → 1; x¹ → x; x² → x · x; x⁻¹ → 1 / x."""
    power = ops.integer_power
    return (
        power(x, exponent=0) >> 1, power(x, exponent=1) >> x, power(x, exponent=2) >> x * x,
        (power(x, exponent=-1) >> 1 / x).when(x.is_float),
    )  # fmt: skip


@pattern("power")
def power_of_constant_exponent(b: PatternBuilder, at: Site) -> Value | None:
    """xⁿ for n = -1, 0, 1, 2, 3 → integer_power; any n ≥ 0 for integers.

    x^0.5 stays: unlike √x it is +0 at -0 and infinite at -∞.
    """
    x, n = at.operands[0], scalar_of(at.operands[1])
    if n is None or isinstance(n, complex) or x.dtype.is_complex or n != n or n in (math.inf, -math.inf):
        return None
    if n != int(n) or (n < 0 if x.dtype.is_integer else n not in (-1, 0, 1, 2, 3)):
        return None
    return b.integer_power(x, exponent=int(n))


# Conversions


@canonical.rewrite
def convert_to_same(x: Term) -> Rules:
    """convert(x) to the dtype of x → x."""
    return ops.convert(x) >> x


@pattern("convert")
def convert_of_widening(b: PatternBuilder, at: Site) -> Value | None:
    """convert(convert(x)) → convert(x), where the inner conversion loses nothing."""
    inner = at.operands[0].defined_by("convert")
    if inner is None:
        return None
    x, middle, target = inner.operands[0], at.operands[0].dtype, at.attrs["dtype"]
    if not is_lossless(x.dtype, middle):
        return None
    # An integer out of range wraps, a float saturates: a detour through floats shows there.
    if x.dtype.is_integer and not middle.is_integer and target.is_integer:
        if not is_lossless(x.dtype, target):
            return None
    return b.convert_to(x, target)


def is_lossless(a: DType, b: DType) -> bool:
    """Whether each value of dtype a has the same value in dtype b."""
    if a is b or a is dtypes.bool_:
        return True
    if b is dtypes.bool_ or (a.is_inexact and not b.is_inexact) or (a.is_complex and not b.is_complex):
        return False
    if a.is_integer and b.is_integer:
        if a.kind == b.kind:
            return a.size <= b.size
        return a.kind == "u" and a.size < b.size
    if a.is_integer:
        return a.bits - (a.kind == "i") <= b.digits
    return a.digits <= b.digits and a.exponent_bits <= b.exponent_bits


@canonical.rewrite
def bitcast_of_bitcast(x: Term, target: Attr) -> Rules:
    """bitcast(bitcast(x)) → bitcast(x); bitcast to the dtype of x → x."""
    return ops.bitcast(x) >> x, ops.bitcast(ops.bitcast(x), dtype=target) >> ops.bitcast(x, dtype=target)


@canonical.rewrite
def part_of_complex(x: Term, y: Term) -> Rules:
    """real(complex(x, y)) → x; imag(complex(x, y)) → y."""
    return ops.real(ops.complex(x, y)) >> x, ops.imag(ops.complex(x, y)) >> y


@canonical.rewrite
def complex_of_parts(z: Term) -> Rules:
    """complex(real(z), imag(z)) → z."""
    return ops.complex(ops.real(z), ops.imag(z)) >> z


@pattern("stop_gradient")
def stop_gradient_at_the_end(b: PatternBuilder, at: Site) -> Value | None:
    """stop_gradient(x) → x, once no derivative can be taken any more."""
    return None if b.keep_gradients else at.operands[0]
