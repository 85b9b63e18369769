"""CHLO: functions that StableHLO has no ops for, and its ops that broadcast."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from smelt.ir import dtypes
from smelt.ir.op import registry as ops

from ...functions.arithmetic import square
from ...functions.complex_numbers import conj
from ...functions.floats import nextafter
from ...functions.special import digamma, i1e, lgamma, polygamma, zeta
from ...functions.transcendental import (
    arccos,
    arccosh,
    arcsin,
    arcsinh,
    arctan,
    arctanh,
    cosh,
    erf,
    erfc,
    erfinv,
    sinh,
    tan,
)
from ...lazy.arrays import array, convert, emit
from ..reading import RULES, Call, constant_of, elements_of, rule
from .elementwise import apply, compare, full_like, together
from .shapes import placed

_UNARY: dict[str, Callable[[array], array]] = {
    "acos": arccos, "acosh": arccosh, "asin": arcsin, "asinh": arcsinh, "atan": arctan, "atanh": arctanh,
    "cosh": cosh, "sinh": sinh, "tan": tan, "erf": erf, "erfc": erfc, "erf_inv": erfinv, "lgamma": lgamma,
    "digamma": digamma, "bessel_i1e": i1e, "conj": conj, "square": square,
}  # fmt: skip


def _unary(function: Callable[[array], array]) -> Callable[[Call], array]:
    return lambda call: convert(function(call.x), call.aval.dtype)


for _name, _function in _UNARY.items():
    rule(f"chlo.{_name}", elementwise=True)(_unary(_function))


@rule("chlo.polygamma", elementwise=True)
def _polygamma(call: Call) -> array:
    return polygamma(*together(call.operands))


@rule("chlo.zeta", elementwise=True)
def _zeta(call: Call) -> array:
    return zeta(*together(call.operands))


@rule("chlo.next_after", elementwise=True)
def _next_after(call: Call) -> array:
    return nextafter(*together(call.operands))


@rule("chlo.is_inf", "chlo.is_pos_inf", "chlo.is_neg_inf", elementwise=True)
def _is_inf(call: Call) -> array:
    x = call.x
    if call.name == "chlo.is_inf":
        x = apply("abs", x)
    return apply("equal", x, full_like(x, float("-inf" if call.name == "chlo.is_neg_inf" else "inf")))


@rule("chlo.mulhi", elementwise=True)
def _mulhi(call: Call) -> array:
    """The upper half of the bits of a product."""
    x, y = together(call.operands)
    kind = x.dtype
    if kind.size == 8:
        return _mulhi_64(x, y)
    wide = dtypes.int64 if kind.kind == "i" else dtypes.uint64
    product = apply("mul", convert(x, wide), convert(y, wide))
    return convert(apply("right_shift", product, full_like(product, kind.bits)), kind)


def _mulhi_64(x: array, y: array) -> array:
    """By halves of 32 bits; signed ones are corrected."""
    u = dtypes.uint64
    a, b = (v if v.dtype is u else emit(ops["bitcast"], (v,), {"dtype": u}) for v in (x, y))
    low, half = full_like(a, (1 << 32) - 1), full_like(a, 32)
    a0, a1 = apply("bitwise_and", a, low), apply("right_shift", a, half)
    b0, b1 = apply("bitwise_and", b, low), apply("right_shift", b, half)
    mid = apply("add", apply("mul", a1, b0), apply("right_shift", apply("mul", a0, b0), half))
    cross = apply("add", apply("mul", a0, b1), apply("bitwise_and", mid, low))
    high = apply(
        "add", apply("mul", a1, b1), apply("add", apply("right_shift", mid, half), apply("right_shift", cross, half))
    )
    if x.dtype is u:
        return high
    found = emit(ops["bitcast"], (high,), {"dtype": x.dtype})
    zero = full_like(x, 0)
    found = apply("sub", found, apply("select", apply("less", x, zero), y, zero))
    return apply("sub", found, apply("select", apply("less", y, zero), x, zero))


@rule("chlo.constant", elementwise=True)
def _constant(call: Call) -> array:
    return constant_of(elements_of(call.operation))


@rule("chlo.constant_like", elementwise=True)
def _constant_like(call: Call) -> array:
    return full_like(call.x, call.attribute("value").value, call.aval.dtype)


#: Ops that broadcast their operands, and the op that they are then.
_BROADCASTING = {
    "add": "add", "subtract": "subtract", "multiply": "multiply", "divide": "divide", "maximum": "maximum",
    "minimum": "minimum", "power": "power", "remainder": "remainder", "atan2": "atan2", "and": "and", "or": "or",
    "xor": "xor", "shift_left": "shift_left", "shift_right_arithmetic": "shift_right_arithmetic",
    "shift_right_logical": "shift_right_logical", "complex": "complex", "select": "select",
}  # fmt: skip


def spread(call: Call) -> list[array]:
    """Operands broadcast to the result's shape: axes by `broadcast_dimensions`, else the last ones."""
    shape = call.aval.shape
    given = call.ints("broadcast_dimensions") if call.attribute("broadcast_dimensions") is not None else None

    def fit(x: array) -> array:
        axes: Any = tuple(range(len(shape) - x.ndim, len(shape)))
        if given is not None and x.ndim == len(given) < len(shape):
            axes = given
        return placed(x, shape, axes)

    return [fit(x) for x in call.operands]


def _broadcasting(name: str) -> Callable[[Call], Any]:
    def run(call: Call) -> Any:
        call.operands = spread(call)
        return RULES[name](call)

    return run


for _name, _plain in _BROADCASTING.items():
    rule(f"chlo.broadcast_{_name}")(_broadcasting(f"stablehlo.{_plain}"))
for _name in ("next_after", "polygamma", "zeta"):
    rule(f"chlo.broadcast_{_name}")(_broadcasting(f"chlo.{_name}"))


@rule("chlo.broadcast_compare")
def _broadcast_compare(call: Call) -> array:
    return compare(call.word("comparison_direction"), call.word("compare_type"), *spread(call))
