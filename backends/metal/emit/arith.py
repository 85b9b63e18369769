"""Rules for scalar and elementwise vector ops of `arith` and `math`: op → expression."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from smelt.ir import mlir

from . import literals
from .expressions import (
    UNARY,
    Expression,
    as_type,
    binary,
    call,
    cast,
    conditional,
    prefix,
    signed,
    unsigned,
)
from .ir import EXCHANGES, Op, Value, kind_of
from .types import EmitError, Type, signed_name, type_name

if TYPE_CHECKING:
    from .body import Body

Rule = Callable[["Body", Op], Expression]

_FLOAT_OPERATORS = {"arith.addf": "+", "arith.subf": "-", "arith.mulf": "*", "arith.divf": "/"}
_UNSIGNED_OPERATORS = {
    "arith.addi": "+", "arith.subi": "-", "arith.muli": "*", "arith.divui": "/", "arith.remui": "%",
    "arith.andi": "&", "arith.ori": "|", "arith.xori": "^", "arith.shli": "<<", "arith.shrui": ">>",
}  # fmt: skip
_SIGNED_OPERATORS = {"arith.divsi": "/", "arith.remsi": "%", "arith.shrsi": ">>"}
_SHIFTS = ("<<", ">>")
_BOOL_OPERATORS = {
    "arith.andi": "&&", "arith.muli": "&&", "arith.minui": "&&", "arith.maxsi": "&&",
    "arith.ori": "||", "arith.maxui": "||", "arith.minsi": "||",
    "arith.xori": "!=", "arith.addi": "!=", "arith.subi": "!=",
}  # fmt: skip
_VECTOR_BOOL_OPERATORS = {"&&": "&", "||": "|", "!=": "^"}
_CALLS = {
    "arith.remf": "fmod", "arith.maxnumf": "fmax", "arith.minnumf": "fmin",
    "arith.maxui": "max", "arith.minui": "min",
    "math.floor": "floor", "math.ceil": "ceil", "math.trunc": "trunc", "math.round": "round",
    "math.roundeven": "rint", "math.absf": "fabs", "math.copysign": "copysign", "math.fma": "fma",
    "math.ctlz": "clz", "math.cttz": "ctz", "math.ctpop": "popcount",
}  # fmt: skip
#: Functions of which Metal has a fast and a precise version; which one a plain name means is the host's choice, and
#: the host's default is fast. The precise one is meant, but where an op says that an approximation will do.
_PRECISE = frozenset((
    "sqrt", "rsqrt", "exp", "exp2", "log", "log2", "log10", "sin", "cos", "tan", "asin", "acos", "atan", "atan2",
    "sinh", "cosh", "tanh", "asinh", "acosh", "atanh",
))  # fmt: skip
_CALLS |= {f"math.{name}": f"precise::{name}" for name in _PRECISE} | {"math.powf": "precise::pow"}
_SIGNED_CALLS = {"arith.maxsi": "max", "arith.minsi": "min"}
_HELPERS = {"arith.minimumf": "nan_min", "arith.maximumf": "nan_max", "math.absi": "wrapping_abs"}
_TESTS = {"math.isnan": "isnan", "math.isinf": "isinf", "math.isfinite": "isfinite"}
#: By the number of an integer predicate: operator, and whether operands are read as signed.
_COMPARE_INTEGERS = (
    ("==", False), ("!=", False), ("<", True), ("<=", True), (">", True), (">=", True),
    ("<", False), ("<=", False), (">", False), (">=", False),
)  # fmt: skip
_MIRRORED = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}
_ORDERED = {1: "==", 2: ">", 3: ">=", 4: "<", 5: "<=", 13: "!="}
#: An unordered comparison is what remains of the opposite ordered one.
_UNORDERED = {9: "<=", 10: "<", 11: ">=", 12: ">"}
#: Ops that are negative only where some operand may be: by the numbers of these operands.
_SIGN_FROM = {
    "arith.index_cast": (0,), "arith.extsi": (0,), "arith.divui": (0,), "arith.shrui": (0,), "arith.remsi": (0,),
    "arith.remui": (1,), "arith.select": (1, 2), "arith.minsi": (0, 1), "arith.maxui": (0, 1),
}  # fmt: skip
_SIGN_FROM_BOTH = frozenset(("arith.maxsi", "arith.andi", "arith.minui"))
_INDEX_SIGN_FROM = frozenset((
    "arith.addi", "arith.muli", "arith.divsi", "arith.shli", "arith.floordivsi", "arith.ceildivsi", "arith.ceildivui",
))  # fmt: skip


def may_be_negative(value: Value) -> bool:
    """Whether an integer may be below zero when read as signed.

    Sums and products of indices do not wrap (`smelt.index_bits` is chosen for that), so they are negative
    only where an operand may be; of other integers only what is plain to see is known.
    """
    if value.negative is None:
        value.negative = True  # cuts cycles
        value.negative = _may_be_negative(value)
    return value.negative


def _may_be_negative(value: Value) -> bool:
    op, kind = value.op, kind_of(value)
    if op is None:
        loop = value.block.parent
        counts = loop is not None and loop.name == "scf.for" and value.index == 0
        return loop is None or not counts or may_be_negative(loop.operands[0])
    name, operands = op.name, op.operands
    if name == "arith.constant":
        return any(bits >> (kind.bits - 1) for bits in literals.attribute_bits(op.attribute("value"), kind))
    if name in ("arith.extui", "arith.index_castui"):
        return kind_of(operands[0]).bits >= kind.bits and may_be_negative(operands[0])
    if name in _SIGN_FROM:
        return any(may_be_negative(operands[i]) for i in _SIGN_FROM[name])
    if name in _SIGN_FROM_BOTH:
        return all(may_be_negative(v) for v in operands)
    if name in _INDEX_SIGN_FROM and kind.kind == "index":
        return any(may_be_negative(v) for v in operands)
    return not name.startswith("gpu.") or name in EXCHANGES


def _fit(e: Expression, kind: Type) -> Expression:
    """Integers narrower than 32 bits are promoted by C++: back to their width."""
    return cast(kind, e) if kind.bits < 32 and kind.lanes == 1 else e


def _boolean(b: Body, op: Op) -> Expression:
    """Arithmetic on i1."""
    x, y = (b.use(v) for v in op.operands)
    kind = kind_of(op.results[0])
    operator = _BOOL_OPERATORS.get(op.name)
    if operator is None:
        raise EmitError(f"emit: {op.name} on i1")
    if kind.lanes != 1:
        return binary(_VECTOR_BOOL_OPERATORS[operator], x, y)
    if operator == "!=" and y.text in ("true", "false"):
        return negate(x) if y.text == "true" else x
    if operator == "!=" and x.text == y.text:
        return _truth(False)
    neutral = {"&&": "true", "||": "false"}.get(operator)
    if neutral in (x.text, y.text):
        return y if x.text == neutral else x
    return binary(operator, x, y)


def _truth(value: bool) -> Expression:
    return Expression("true" if value else "false", atom=True)


_NEGATED = {"==": "!=", "!=": "=="}


def negate(x: Expression) -> Expression:
    """``!x``; of an equality the other one, which is also right for NaN."""
    if x.operator in _NEGATED and x.parts is not None:
        return binary(_NEGATED[x.operator], *x.parts)
    return prefix("!", x)


def _unsigned_operator(b: Body, op: Op) -> Expression:
    kind = kind_of(op.results[0])
    if kind.kind == "bool":
        return _boolean(b, op)
    operator = _UNSIGNED_OPERATORS[op.name]
    x, y = (b.use(v) for v in op.operands)
    if y.literal == (1 if operator in "*/" else 0) and operator not in "&%":
        return x
    if x.literal == 0 and operator in "+*":
        return y if operator == "+" else x
    narrow = kind.bits < 32 and kind.lanes == 1
    if operator in _SHIFTS:
        y = literals.bare(y)
    elif operator in "&|^":
        if operator == "^" and y.literal == (1 << kind.bits) - 1:
            return _fit(prefix("~", x), kind)
        x, y = literals.mask(x, kind), literals.mask(y, kind)
    elif operator == "+" and y.literal is not None and y.literal >> (kind.bits - 1):
        operator, y = "-", literals.integer(-y.literal, kind)
    if narrow:
        y = literals.bare(y)
        # The product of two ushort overflows int, to which C++ promotes them.
        if kind.bits == 16 and operator in ("*", "<<"):
            x = call("uint", x)
    return _fit(binary(operator, x, y, wraps=not narrow), kind)


def _signed_operator(b: Body, op: Op) -> Expression:
    kind = kind_of(op.results[0])
    if kind.kind == "bool":
        raise EmitError(f"emit: {op.name} on i1")
    operator = _SIGNED_OPERATORS[op.name]
    x, y = (b.use(v) for v in op.operands)
    if operator in _SHIFTS:
        y = literals.bare(y)
        if not may_be_negative(op.operands[0]):
            return _fit(binary(operator, x, y), kind)
        y = y if kind.lanes == 1 else signed(y, kind)
        return unsigned(binary(operator, signed(x, kind), y), kind)
    if not any(may_be_negative(v) for v in op.operands):
        return _fit(binary(operator, x, y), kind)
    return unsigned(binary(operator, signed(x, kind), signed(y, kind)), kind)


def _rounded_division(b: Body, op: Op) -> Expression:
    kind = kind_of(op.results[0])
    up, zero = op.name != "arith.floordivsi", Expression("0", atom=True)
    x, y = (b.named(v) for v in op.operands)
    if op.name == "arith.ceildivui" or not any(may_be_negative(v) for v in op.operands):
        quotient = binary("/", x, y)
        if up:
            quotient = binary("+", quotient, call("uint", binary("!=", binary("%", x, y), zero)))
        return _fit(quotient, kind)
    a, d = signed(x, kind), signed(y, kind)
    opposite = binary("<" if not up else ">=", binary("^", a, d), zero)
    off = binary("&&", binary("!=", binary("%", a, d), zero), opposite)
    return unsigned(binary("+" if up else "-", binary("/", a, d), call("int", off)), kind)


def _float_operator(b: Body, op: Op) -> Expression:
    operator = _FLOAT_OPERATORS[op.name]
    if operator == "/" and _approximate(op):
        return call("metal::fast::divide", *(b.use(v) for v in op.operands))
    x, y = (b.use(v) for v in op.operands)
    if y.atom and y.precedence == UNARY and operator in "+-":  # a negative literal
        y = Expression(y.text[1:], atom=True)
        operator = "-" if operator == "+" else "+"
    return binary(operator, x, y)


def _approximate(op: Op) -> bool:
    """Whether an approximation will do."""
    return "afn" in str(op.attribute("fastmath"))


def _metal_call(b: Body, op: Op) -> Expression:
    operands = [b.use(v) for v in op.operands]
    if op.results and kind_of(op.results[0]).kind == "bool":
        return _boolean(b, op)
    name = _CALLS[op.name]
    if _approximate(op):
        name = name.replace("precise::", "fast::")
    return call(f"metal::{name}", *operands)


def _signed_call(b: Body, op: Op) -> Expression:
    kind = kind_of(op.results[0])
    if kind.kind == "bool":
        return _boolean(b, op)
    operands = [b.use(v) for v in op.operands]
    function = f"metal::{_SIGNED_CALLS[op.name]}"
    if not any(may_be_negative(v) for v in op.operands):
        return call(function, *operands)
    return unsigned(call(function, *[signed(e, kind) for e in operands]), kind)


def _helper_call(b: Body, op: Op) -> Expression:
    return call(b.helper(_HELPERS[op.name], kind_of(op.results[0])), *[b.use(v) for v in op.operands])


def test_result(e: Expression, kind: Type) -> Expression:
    """A comparison; of vectors, where compilers differ in its type, as a vector of bool."""
    return e if kind.lanes == 1 else cast(Type("bool", 1, kind.lanes), e)


def _test(b: Body, op: Op) -> Expression:
    return test_result(call(f"metal::{_TESTS[op.name]}", b.use(op.operands[0])), kind_of(op.results[0]))


def _number(op: Op) -> int:
    return int(mlir.ir.IntegerAttr(op.attribute("predicate")).value)


def _compare_integers(b: Body, op: Op) -> Expression:
    kind = kind_of(op.operands[0])
    operator, is_signed = _COMPARE_INTEGERS[_number(op)]
    x, y = (b.use(v) for v in op.operands)
    if x.text == y.text and kind.lanes == 1:
        return _truth("=" in operator and operator != "!=")
    if kind.kind == "bool" and operator in _MIRRORED:
        operator = _MIRRORED[operator] if is_signed else operator
        wide = Type("int", 32, kind.lanes)
        x, y, is_signed = cast(wide, x), cast(wide, y), False
    if is_signed and any(may_be_negative(v) for v in op.operands):
        x, y = signed(x, kind), signed(y, kind)
    elif kind.bits < 32 and kind.lanes == 1:
        x, y = literals.bare(x), literals.bare(y)
    return test_result(binary(operator, x, y), kind)


def _is_number(value: Value) -> bool:
    """Whether a float is a constant other than NaN."""
    op, kind = value.op, kind_of(value)
    if op is None or op.name != "arith.constant" or kind.lanes != 1:
        return False
    return "NAN" not in literals.constant(op.attribute("value"), kind).text


def _compare_floats(b: Body, op: Op) -> Expression:
    number = _number(op)
    kind = kind_of(op.operands[0])
    either = "||" if kind.lanes == 1 else "|"

    def test(operator: str, x: Expression, y: Expression) -> Expression:
        return test_result(binary(operator, x, y), kind)

    def is_nan(x: Expression) -> Expression:
        return test_result(call("metal::isnan", x), kind)

    if number in (0, 15):
        return Expression(f"{type_name(kind_of(op.results[0]))}({'true' if number else 'false'})")
    if number in _ORDERED:
        return test(_ORDERED[number], *[b.use(v) for v in op.operands])
    if number in _UNORDERED:
        return prefix("!", test(_UNORDERED[number], *[b.use(v) for v in op.operands]))
    same = op.operands[0] is op.operands[1]
    if number in (7, 14):  # ordered at all, or not
        tests = [is_nan(b.use(v)) for v in op.operands[: 1 if same else 2] if not _is_number(v)]
        if not tests:
            return _truth(number != 14)
        nan = tests[0] if len(tests) == 1 else binary(either, tests[0], tests[1])
        return nan if number == 14 else prefix("!", nan)
    x, y = (b.named(v) for v in op.operands)
    unequal = binary(either, test("<", x, y), test(">", x, y))
    return unequal if number == 6 else prefix("!", unequal)


def _select(b: Body, op: Op) -> Expression:
    test, yes, no = (b.use(v) for v in op.operands)
    kind = kind_of(op.results[0])
    if kind_of(op.operands[0]).lanes != 1:
        return call("metal::select", no, yes, test)
    if (yes.text, no.text) == ("true", "false"):
        return test
    return conditional(test, yes, no) if kind.kind != "bool" else _select_bool(test, yes, no)


def _select_bool(test: Expression, yes: Expression, no: Expression) -> Expression:
    if no.text == "false":
        return binary("&&", test, yes)
    if yes.text == "true":
        return binary("||", test, no)
    return conditional(test, yes, no)


def _constant(b: Body, op: Op) -> Expression:
    return literals.constant(op.attribute("value"), kind_of(op.results[0]))


def _negate_float(b: Body, op: Op) -> Expression:
    return prefix("-", b.use(op.operands[0]))


# Conversions


def _float_to_float(b: Body, op: Op) -> Expression:
    source, target = kind_of(op.operands[0]), kind_of(op.results[0])
    x = b.use(op.operands[0])
    if source.bits == target.bits:  # half and bfloat meet only in float
        x = cast(Type("float", 32, source.lanes), x)
    return cast(target, x)


def _integer_to_float(b: Body, op: Op) -> Expression:
    source, target = kind_of(op.operands[0]), kind_of(op.results[0])
    x = b.use(op.operands[0])
    if op.name == "arith.sitofp":
        if source.kind == "bool":
            if source.lanes != 1:
                x = signed(cast(Type("int", 32, source.lanes), x), Type("int", 32, source.lanes))
                return binary("-", literals.floating(0, target), cast(target, x))
            one = literals.number_bits(-1.0, target)
            return conditional(x, literals.floating(one, target), literals.floating(0, target))
        if may_be_negative(op.operands[0]):
            x = signed(x, source)
    if target.kind == "bfloat":
        x = cast(Type("float", 32, target.lanes), x)
    return cast(target, x)


def _float_to_integer(b: Body, op: Op) -> Expression:
    source, target = kind_of(op.operands[0]), kind_of(op.results[0])
    x = b.use(op.operands[0])
    if source.kind == "bfloat":
        x = cast(Type("float", 32, source.lanes), x)
    if target.kind == "bool":
        return cast(target, call(type_name(Type("int", 32, target.lanes)), x))
    if op.name == "arith.fptoui":
        return cast(target, x)
    return unsigned(call(signed_name(target), x), target)


def _extend_unsigned(b: Body, op: Op) -> Expression:
    source, target = kind_of(op.operands[0]), kind_of(op.results[0])
    x = b.use(op.operands[0])
    if source.bits == target.bits:
        return x
    if source.bits > target.bits:
        return _truncate(b, op)
    found = cast(target, x)
    found.narrow = (x, source)
    return found


def _extend_signed(b: Body, op: Op) -> Expression:
    source, target = kind_of(op.operands[0]), kind_of(op.results[0])
    x = b.use(op.operands[0])
    if source.bits >= target.bits or (source.kind != "bool" and not may_be_negative(op.operands[0])):
        return _extend_unsigned(b, op)
    if source.kind == "bool":
        return _fit(prefix("-", cast(target, x)), target)
    return unsigned(call(signed_name(target), signed(x, source)), target)


def _truncate(b: Body, op: Op) -> Expression:
    source, target = kind_of(op.operands[0]), kind_of(op.results[0])
    x = b.use(op.operands[0])
    if source.bits == target.bits:
        return x
    if target.kind == "bool":
        one = literals.integer(1, source)
        return cast(target, binary("&", x, literals.bare(one) if source.lanes == 1 else one))
    if x.narrow is not None:
        inner, kind = x.narrow
        if kind.bits == target.bits and kind.kind != "bool":
            return inner
    return cast(target, x)


def _bitcast(b: Body, op: Op) -> Expression:
    source, target = kind_of(op.operands[0]), kind_of(op.results[0])
    x = b.use(op.operands[0])
    return x if type_name(source) == type_name(target) else as_type(target, x)


RULES: dict[str, Rule] = {
    **dict.fromkeys(_UNSIGNED_OPERATORS, _unsigned_operator),
    **dict.fromkeys(_SIGNED_OPERATORS, _signed_operator),
    **dict.fromkeys(_FLOAT_OPERATORS, _float_operator),
    **dict.fromkeys(_CALLS, _metal_call),
    **dict.fromkeys(_SIGNED_CALLS, _signed_call),
    **dict.fromkeys(_HELPERS, _helper_call),
    **dict.fromkeys(_TESTS, _test),
    **dict.fromkeys(("arith.floordivsi", "arith.ceildivsi", "arith.ceildivui"), _rounded_division),
    "arith.constant": _constant,
    "arith.negf": _negate_float,
    "arith.cmpi": _compare_integers,
    "arith.cmpf": _compare_floats,
    "arith.select": _select,
    "arith.extf": _float_to_float,
    "arith.truncf": _float_to_float,
    "arith.sitofp": _integer_to_float,
    "arith.uitofp": _integer_to_float,
    "arith.fptosi": _float_to_integer,
    "arith.fptoui": _float_to_integer,
    "arith.extui": _extend_unsigned,
    "arith.index_castui": _extend_unsigned,
    "arith.extsi": _extend_signed,
    "arith.index_cast": _extend_signed,
    "arith.trunci": _truncate,
    "arith.bitcast": _bitcast,
    "vector.bitcast": _bitcast,
}


def attribute(op: Op, name: str) -> Any:
    """An integer attribute's value, or None."""
    found = op.attribute(name)
    return None if found is None else int(mlir.ir.IntegerAttr(found).value)
