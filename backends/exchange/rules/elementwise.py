"""Arithmetic, functions, comparisons, bits, conversions."""

from __future__ import annotations

import math
from collections.abc import Callable

from smelt.ir import dtypes
from smelt.ir.aval import Aval

from ..writer import Tensor, Writer
from .table import Call, rule

#: Ops that are one op there, of the result's type.
_SAME = {
    "sub": "subtract", "div": "divide", "neg": "negate", "sqrt": "sqrt", "rsqrt": "rsqrt", "exp": "exponential",
    "expm1": "exponential_minus_one", "log": "log", "log1p": "log_plus_one", "sin": "sine", "cos": "cosine",
    "tan": "tan", "tanh": "tanh", "sigmoid": "logistic", "arctan2": "atan2", "floor": "floor", "ceil": "ceil",
    "round": "round_nearest_even", "complex": "complex", "real": "real", "imag": "imag",
    "left_shift": "shift_left", "select": "select", "clamp": "clamp", "convert": "convert",
    "bitcast": "bitcast_convert", "byte_view": "convert", "bitwise_and": "and", "bitwise_or": "or",
    "bitwise_xor": "xor", "bitwise_invert": "not", "logical_and": "and", "logical_or": "or", "logical_not": "not",
    "barrier": "optimization_barrier", "power": "power", "cbrt": "cbrt",
}  # fmt: skip
#: Those that CHLO has; its ops are expanded at the end.
_OF_CHLO = {
    "arcsin": "asin", "arccos": "acos", "arctan": "atan", "sinh": "sinh", "cosh": "cosh", "arcsinh": "asinh",
    "arccosh": "acosh", "arctanh": "atanh", "erf": "erf", "erfc": "erfc", "erfinv": "erf_inv",
}  # fmt: skip


def _plain(name: str) -> Callable[[Call], Tensor]:
    return lambda call: call.writer.op(name, call.operands, call.aval)


for _name, _there in _SAME.items():
    rule(_name)(_plain(f"stablehlo.{_there}"))
for _name, _there in _OF_CHLO.items():
    rule(_name)(_plain(f"chlo.{_there}"))


def _for_bools(numbers: str, bools: str) -> Callable[[Call], Tensor]:
    def write(call: Call) -> Tensor:
        is_bool = call.x.dtype is dtypes.bool_
        return call.writer.op(f"stablehlo.{bools if is_bool else numbers}", call.operands, call.aval)

    return write


rule("add")(_for_bools("add", "or"))
rule("mul")(_for_bools("multiply", "and"))


@rule("maximum", "minimum")
def _extremum(call: Call) -> Tensor:
    """Of complex numbers by their real parts, then by the others; StableHLO has no order of these."""
    w, name = call.writer, call.name
    if not call.x.dtype.is_complex:
        return _for_bools(name, "or" if name == "maximum" else "and")(call)
    x, y = call.operands
    a, b = _parts(w, x), _parts(w, y)
    better = "GT" if name == "maximum" else "LT"
    first = w.compare(better, a[0], b[0]) | (w.compare("EQ", a[0], b[0]) & w.compare(better, a[1], b[1]))
    unordered = [w.compare("NE", part, part) for part in (*a, *b)]
    return w.select(unordered[0] | unordered[1], x, w.select(unordered[2] | unordered[3], y, w.select(first, x, y)))


def _parts(w: Writer, x: Tensor) -> list[Tensor]:
    part = Aval(x.shape, x.dtype.real)
    return [w.op("stablehlo.real", [x], part), w.op("stablehlo.imag", [x], part)]


_DIRECTIONS = {
    "equal": "EQ", "not_equal": "NE", "less": "LT", "less_equal": "LE", "greater": "GT", "greater_equal": "GE",
}  # fmt: skip


@rule(*_DIRECTIONS)
def _compare(call: Call) -> Tensor:
    w, (x, y), direction = call.writer, call.operands, _DIRECTIONS[call.name]
    if not x.dtype.is_complex or direction in ("EQ", "NE"):
        return w.compare(direction, x, y)
    a, b = _parts(w, x), _parts(w, y)
    numbers = w.compare("EQ", a[1], a[1]) & w.compare("EQ", b[1], b[1])
    strict = w.compare(direction[0] + "T", a[0], b[0]) & numbers
    return strict | (w.compare("EQ", a[0], b[0]) & w.compare(direction, a[1], b[1]))


@rule("abs", "sign")
def _size(call: Call) -> Tensor:
    """StableHLO has neither of unsigned integers; its sign of -0.0 is -0.0, where smelt's and NumPy's is 0."""
    w, x = call.writer, call.x
    if call.name == "sign" and x.dtype.is_float:
        return w.select(w.compare("EQ", x, 0.0), 0.0, w.op("stablehlo.sign", [x], call.aval))
    if x.dtype.kind != "u":
        return w.op(f"stablehlo.{call.name}", [x], call.aval)
    return x if call.name == "abs" else w.binary("stablehlo.minimum", x, 1)


@rule("stop_gradient")
def _same(call: Call) -> Tensor:
    return call.x


@rule("right_shift")
def _right_shift(call: Call) -> Tensor:
    return call.x >> call.operands[1]


@rule("log2", "log10")
def _logarithm(call: Call) -> Tensor:
    w, x = call.writer, call.x
    factor, found = 1 / math.log(2 if call.name == "log2" else 10), w.unary("stablehlo.log", x)
    if not x.dtype.is_complex:
        return found * factor
    kind = x.aval.with_dtype(x.dtype.real)  # a complex product with the factor would be NaN where a part is infinite
    return w.op("stablehlo.complex", [w.op(f"stablehlo.{p}", [found], kind) * factor for p in ("real", "imag")], x.aval)


@rule("trunc")
def _trunc(call: Call) -> Tensor:
    w, x = call.writer, call.x
    return w.select(w.compare("LT", x, 0), w.unary("stablehlo.ceil", x), w.unary("stablehlo.floor", x))


@rule("integer_power")
def _integer_power(call: Call) -> Tensor:
    """By repeated squaring."""
    w, x, n = call.writer, call.x, abs(call.attrs["exponent"])
    total: Tensor | None = None
    power = x
    while n:
        if n & 1:
            total = power if total is None else total * power
        n >>= 1
        if n:
            power = power * power
    if total is None:
        return w.full(x, 1)
    return w.full(x, 1) / total if call.attrs["exponent"] < 0 else total


@rule("floor_divide", "remainder")
def _floored(call: Call) -> Tensor:
    """Towards minus infinity; an integer divided by zero gives 0."""
    w, (x, y) = call.writer, call.operands
    if x.dtype.is_float:
        rest = w.binary("stablehlo.remainder", x, y)
        opposite = w.compare("LT", rest, 0) ^ w.compare("LT", y, 0)
        moved = w.select(w.compare("NE", rest, 0) & opposite, rest + y, rest)
        if call.name == "floor_divide":  # the quotient may have been rounded up to a whole number
            quotient = x / y
            floored = w.unary("stablehlo.floor", quotient)
            part = w.unary("stablehlo.abs", moved / y)
            up = w.compare("EQ", floored, quotient) & w.compare("GT", part, 0.5)
            return w.select(up, floored - 1, floored)
        zero = w.select(w.compare("LT", y, 0), w.full(x, -0.0), w.full(x, 0.0))
        return w.select(w.compare("EQ", moved, 0), zero, moved)
    nothing = w.compare("EQ", y, 0)
    safe = w.select(nothing, 1, y)
    if x.dtype.kind == "u":
        name = "divide" if call.name == "floor_divide" else "remainder"
        return w.select(nothing, 0, w.binary(f"stablehlo.{name}", x, safe))
    minus = w.compare("EQ", safe, -1)  # the least integer divided by -1 overflows
    safe = w.select(minus, 1, safe)
    rest = w.binary("stablehlo.remainder", x, safe)
    odd = w.compare("NE", rest, 0) & w.compare("LT", rest ^ safe, 0)
    if call.name == "remainder":
        return w.select(nothing | minus, 0, w.select(odd, rest + safe, rest))
    quotient = w.binary("stablehlo.divide", x, safe)
    quotient = w.select(odd, quotient - 1, quotient)
    return w.select(nothing, 0, w.select(minus, -x, quotient))
