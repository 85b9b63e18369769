"""Arithmetic, comparisons, conversions, bits: one element at a time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from smelt.ir import dtypes
from smelt.ir.dtypes import DType
from smelt.ir.op import Op
from smelt.ir.op import registry as ops

from ...functions.complex_numbers import imag, real
from ...functions.logic import where
from ...functions.views import view
from ...lazy.arrays import array, broadcast_shapes, convert, emit
from ...lazy.operands import constant
from ..arithmetic import rounded_to
from ..reading import Call, constant_of, elements_of, rule
from ..translating import Refused


def together(xs: Sequence[array]) -> list[array]:
    """Operands of one shape: in a region that is given arrays, constants are scalars still."""
    shape = broadcast_shapes("stablehlo", *(x.shape for x in xs))
    return [x if x.shape == shape else emit(ops["broadcast"], (x,), {"shape": shape}) for x in xs]


def apply(op: str | Op, *xs: array, **attrs: Any) -> array:
    """An op of the dialect of operands that broadcast together."""
    found = ops[op] if isinstance(op, str) else op
    return emit(found, together(xs), attrs) if attrs else emit(found, together(xs))


def full_like(x: array, value: Any, dtype: DType | None = None) -> array:
    return constant(value, dtype or x.dtype, x.shape)


#: Ops that are one op of smelt, whatever the dtype.
_SAME = {
    "add": "add", "subtract": "sub", "multiply": "mul", "negate": "neg", "maximum": "maximum", "minimum": "minimum",
    "sqrt": "sqrt", "rsqrt": "rsqrt", "exponential": "exp", "exponential_minus_one": "expm1", "log": "log",
    "log_plus_one": "log1p", "sine": "sin", "cosine": "cos", "tan": "tan", "tanh": "tanh", "logistic": "sigmoid",
    "floor": "floor", "ceil": "ceil", "round_nearest_even": "round", "complex": "complex",
    "shift_left": "left_shift", "power": "power", "cbrt": "cbrt",
}  # fmt: skip


def _same(op: str) -> Callable[[Call], array]:
    return lambda call: apply(op, *call.operands)


for _name, _op in _SAME.items():
    rule(f"stablehlo.{_name}", elementwise=True)(_same(_op))


@rule("stablehlo.constant", "arith.constant", elementwise=True)
def _constant(call: Call) -> array:
    try:
        held = call.reader.resource(call.attribute("value"))
    except TypeError:  # the bindings have no class for elements of some dtypes
        held = None
    return constant_of(elements_of(call.operation) if held is None else held)


@rule("stablehlo.atan2", elementwise=True)
def _atan2(call: Call) -> array:
    """Of complex numbers -i · log((x + i·y) / √(x² + y²))."""
    y, x = together(call.operands)
    if not x.dtype.is_complex:
        return apply("arctan2", y, x)
    i = full_like(x, 1j)
    size = apply("sqrt", apply("add", apply("mul", x, x), apply("mul", y, y)))
    angle = apply("log", apply("div", apply("add", x, apply("mul", i, y)), size))
    return apply("neg", apply("mul", i, angle))


@rule("stablehlo.abs", elementwise=True)
def _abs(call: Call) -> array:
    return apply("abs", call.x)


@rule("stablehlo.sign", elementwise=True)
def _sign(call: Call) -> array:
    x = call.x
    if x.dtype.is_float:  # zeros keep their sign
        return where(apply("equal", x, full_like(x, 0)), x, apply("sign", x))
    if not x.dtype.is_complex:
        return apply("sign", x)
    size = apply("abs", x)
    zero = apply("equal", size, full_like(size, 0))
    divisor = where(zero, full_like(size, 1), size)
    return where(zero, x, apply("complex", apply("div", real(x), divisor), apply("div", imag(x), divisor)))


@rule("stablehlo.real", "stablehlo.imag", elementwise=True)
def _part(call: Call) -> array:
    x = call.x
    if x.dtype.is_complex:
        return emit(ops[call.name.partition(".")[2]], (x,))
    return x if call.name.endswith("real") else full_like(x, 0)


def quotient(x: array, y: array) -> array:
    """x / y; integers towards zero. By zero XLA gives -1, and all ones of unsigned integers."""
    x, y = together((x, y))
    if x.dtype.is_inexact:
        return apply("div", x, y)
    floored = apply("floor_divide", x, y)
    if x.dtype.kind == "i":
        rest = apply("sub", x, apply("mul", floored, y))
        odd = apply("logical_and", apply("not_equal", rest, full_like(x, 0)), apply("less", floored, full_like(x, 0)))
        floored = apply("add", floored, convert(odd, x.dtype))
    return where(apply("equal", y, full_like(y, 0)), full_like(x, -1 if x.dtype.kind == "i" else _ones(x)), floored)


def _ones(x: array) -> int:
    return (1 << x.dtype.bits) - 1


@rule("stablehlo.divide", elementwise=True)
def _divide(call: Call) -> array:
    return quotient(*call.operands)


@rule("stablehlo.remainder", elementwise=True)
def _remainder(call: Call) -> array:
    """With the sign of the dividend."""
    x, y = together(call.operands)
    if x.dtype.is_float:
        size = apply("remainder", apply("abs", x), apply("abs", y))
        return where(apply("less", x, full_like(x, 0)), apply("neg", size), size)
    rest = apply("remainder", x, y)
    zero = full_like(x, 0)
    if x.dtype.kind == "i":
        differs = apply("not_equal", apply("less", x, zero), apply("less", y, zero))
        wrong = apply("logical_and", differs, apply("not_equal", rest, zero))
        rest = where(wrong, apply("sub", rest, y), rest)
    return where(apply("equal", y, zero), x, rest)


_LOGICAL = {"and": "logical_and", "or": "logical_or", "xor": "logical_xor", "not": "logical_not"}
_BITWISE = {"and": "bitwise_and", "or": "bitwise_or", "xor": "bitwise_xor", "not": "bitwise_invert"}


@rule("stablehlo.and", "stablehlo.or", "stablehlo.xor", "stablehlo.not", elementwise=True)
def _logic(call: Call) -> array:
    name = call.name.partition(".")[2]
    if call.x.dtype is not dtypes.bool_:
        return apply(_BITWISE[name], *call.operands)
    return apply("not_equal", *call.operands) if name == "xor" else apply(_LOGICAL[name], *call.operands)


def unsigned(dtype: DType) -> DType:
    return next(d for d in dtypes.UNSIGNED if d.size == dtype.size)


def signed(dtype: DType) -> DType:
    return next(d for d in dtypes.INTEGERS if d.size == dtype.size and d.kind == "i")


def bits_of(x: array, kind: DType) -> array:
    return x if x.dtype is kind else emit(ops["bitcast"], (x,), {"dtype": kind})


@rule("stablehlo.shift_right_logical", elementwise=True)
def _shift_right_logical(call: Call) -> array:
    return _shifted_right(call, unsigned)


@rule("stablehlo.shift_right_arithmetic", elementwise=True)
def _shift_right_arithmetic(call: Call) -> array:
    """The first bit is the sign, also of unsigned integers."""
    return _shifted_right(call, signed)


def _shifted_right(call: Call, kind_of: Callable[[DType], DType]) -> array:
    x, y = together(call.operands)
    kind = kind_of(x.dtype)
    found = apply("right_shift", bits_of(x, kind), bits_of(y, kind))
    return bits_of(found, x.dtype)


_DIRECTIONS = {
    "EQ": "equal", "NE": "not_equal", "LT": "less", "LE": "less_equal", "GT": "greater", "GE": "greater_equal",
}  # fmt: skip


def total_order(x: array) -> array:
    """Integers that are in the order of IEEE's totalOrder of floats: -NaN, -inf, …, -0, 0, …, inf, NaN."""
    kind = signed(x.dtype)
    bits = bits_of(x, kind)
    mask = full_like(bits, (1 << (kind.bits - 1)) - 1)
    flipped = apply("bitwise_xor", bits, mask)
    return where(apply("less", bits, full_like(bits, 0)), flipped, bits)


def compare(direction: str, kind: str, x: array, y: array) -> array:
    if kind == "TOTALORDER" and x.dtype.is_float:
        x, y = total_order(x), total_order(y)
    return apply(_DIRECTIONS[direction], x, y)


@rule("stablehlo.compare", elementwise=True)
def _compare(call: Call) -> array:
    return compare(call.word("comparison_direction"), call.word("compare_type"), *call.operands)


@rule("stablehlo.select", elementwise=True)
def _select(call: Call) -> array:
    return apply("select", *call.operands)


@rule("stablehlo.clamp", elementwise=True)
def _clamp(call: Call) -> array:
    if call.x.dtype is not dtypes.bool_:
        return apply("clamp", *call.operands)
    low, x, high = call.operands
    return apply("minimum", apply("maximum", low, x), high)


@rule("stablehlo.convert", "stablehlo.bitcast_convert", elementwise=True)
def _convert(call: Call) -> array:
    x, aval = call.x, call.aval
    if call.name.endswith(".convert"):
        return converted(x, aval.dtype)
    if x.dtype.size == aval.dtype.size:
        return bits_of(x, aval.dtype)
    if x.dtype.is_complex or aval.dtype.is_complex or dtypes.bool_ in (x.dtype, aval.dtype):
        raise Refused(f"of {x.aval} to {aval} is not translated: view integers and floats")
    many = view(
        x if x.dtype.size < aval.dtype.size else emit(ops["reshape"], (x,), {"shape": (*x.shape, 1)}), aval.dtype
    )
    return emit(ops["reshape"], (many,), {"shape": aval.shape})


def converted(x: array, dtype: DType) -> array:
    """x in another dtype, as StableHLO says: numbers to truth by comparison with 0."""
    return convert(x, dtype)


@rule("stablehlo.is_finite", elementwise=True)
def _is_finite(call: Call) -> array:
    size = apply("abs", call.x)
    return apply("less", size, full_like(size, float("inf")))


@rule("stablehlo.round_nearest_afz", elementwise=True)
def _round_afz(call: Call) -> array:
    x = call.x
    size = apply("abs", x)
    down = apply("floor", size)
    up = apply("greater_equal", apply("sub", size, down), full_like(size, 0.5))
    rounded = where(up, apply("add", down, full_like(down, 1)), down)
    minus = apply("less", x, full_like(x, 0))
    return where(apply("equal", size, full_like(size, 0)), x, where(minus, apply("neg", rounded), rounded))


@rule("stablehlo.popcnt", elementwise=True)
def _popcnt(call: Call) -> array:
    return population(call.x)


def population(x: array) -> array:
    """The number of bits set, by sums of halves of words."""
    kind = unsigned(x.dtype)
    v, bits = bits_of(x, kind), kind.bits
    width = 1
    while width < bits:
        mask = sum(((1 << width) - 1) << at for at in range(0, bits, 2 * width))
        low = apply("bitwise_and", v, full_like(v, mask))
        high = apply("bitwise_and", apply("right_shift", v, full_like(v, width)), full_like(v, mask))
        v, width = apply("add", low, high), 2 * width
    return bits_of(v, x.dtype)


@rule("stablehlo.count_leading_zeros", elementwise=True)
def _clz(call: Call) -> array:
    """All bits below the first one set, and the others counted."""
    x = call.x
    kind = unsigned(x.dtype)
    v, width = bits_of(x, kind), 1
    while width < kind.bits:
        v, width = apply("bitwise_or", v, apply("right_shift", v, full_like(v, width))), 2 * width
    return bits_of(population(apply("bitwise_invert", v)), x.dtype)


@rule("stablehlo.reduce_precision", elementwise=True)
def _reduce_precision(call: Call) -> array:
    """Rounded, ties to even, to a shorter fraction; what a shorter exponent has no number for is inf or 0."""
    x, exponent, mantissa = call.x, call.int("exponent_bits"), call.int("mantissa_bits")
    own, bias = {2: (10, 15), 4: (23, 127), 8: (52, 1023)}[x.dtype.size]
    if x.dtype is dtypes.bfloat16:
        own, bias = 7, 127
    kind = unsigned(x.dtype)
    bits = bits_of(x, kind)
    drop = own - mantissa
    if drop > 0:
        last = apply("bitwise_and", apply("right_shift", bits, full_like(bits, drop)), full_like(bits, 1))
        bits = apply("add", bits, apply("add", last, full_like(bits, (1 << (drop - 1)) - 1)))
        bits = apply("bitwise_and", bits, full_like(bits, ((1 << kind.bits) - 1) ^ ((1 << drop) - 1)))
    shorter = (1 << (exponent - 1)) - 1
    if shorter < bias:
        sign = apply("bitwise_and", bits, full_like(bits, 1 << (kind.bits - 1)))
        size = apply("bitwise_and", bits, full_like(bits, (1 << (kind.bits - 1)) - 1))
        top, bottom = (bias + shorter + 1) << own, (bias - shorter + 1) << own
        infinite = full_like(bits, ((1 << (kind.bits - 1 - own)) - 1) << own)
        size = where(apply("greater_equal", size, full_like(size, top)), infinite, size)
        size = where(apply("less", size, full_like(size, bottom)), full_like(size, 0), size)
        bits = apply("bitwise_or", sign, size)
    rounded = bits_of(bits, x.dtype)
    return rounded_to(x, where(apply("equal", x, x), rounded, x))
