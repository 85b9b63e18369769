"""Arithmetic, comparisons, activations, conversions: one element at a time."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import smelt
from smelt import array
from smelt.ir import dtypes
from smelt.ir.dtypes import DType

from ...arithmetic import quotient
from ...translating import Refused
from ..graph import DTYPES, RULES, Node, rule, type_name

_UNARY: dict[str, Callable[[array], array]] = {
    "Abs": smelt.abs, "Acos": smelt.arccos, "Acosh": smelt.arccosh, "Asin": smelt.arcsin, "Asinh": smelt.arcsinh,
    "Atan": smelt.arctan, "Atanh": smelt.arctanh, "BitwiseNot": smelt.bitwise_invert, "Ceil": smelt.ceil,
    "Cos": smelt.cos, "Cosh": smelt.cosh, "Erf": smelt.erf, "Exp": smelt.exp, "Floor": smelt.floor,
    "IsNaN": smelt.isnan, "Log": smelt.log, "Neg": smelt.negative, "Not": smelt.logical_not, "Round": smelt.round,
    "Sigmoid": smelt.sigmoid, "Sign": smelt.sign, "Sin": smelt.sin, "Sinh": smelt.sinh, "Sqrt": smelt.sqrt,
    "Tan": smelt.tan, "Tanh": smelt.tanh,
}  # fmt: skip
_BINARY: dict[str, Callable[[array, array], array]] = {
    "Add": smelt.add, "Sub": smelt.subtract, "Mul": smelt.multiply, "And": smelt.logical_and, "Or": smelt.logical_or,
    "Xor": smelt.not_equal, "Equal": smelt.equal, "Greater": smelt.greater, "GreaterOrEqual": smelt.greater_equal,
    "Less": smelt.less, "LessOrEqual": smelt.less_equal, "BitwiseAnd": smelt.bitwise_and,
    "BitwiseOr": smelt.bitwise_or, "BitwiseXor": smelt.bitwise_xor,
}  # fmt: skip
_FOLDED: dict[str, Callable[[array, array], array]] = {
    "Max": smelt.maximum, "Min": smelt.minimum, "Sum": smelt.add,
}  # fmt: skip


def _enter(name: str, arity: int | None, function: Callable[..., array]) -> None:
    if arity is None:
        RULES["", name] = lambda n: functools.reduce(function, n.inputs)
    else:
        RULES["", name] = lambda n: function(*n.inputs[:arity])


for _name, _function in _UNARY.items():
    _enter(_name, 1, _function)
for _name, _two in _BINARY.items():
    _enter(_name, 2, _two)
for _name, _two in _FOLDED.items():
    _enter(_name, None, _two)


@rule("Identity")
def _identity(n: Node) -> Any:
    return n[0]


@rule("Mean")
def _mean(n: Node) -> array:
    return functools.reduce(smelt.add, n.inputs) / len(n.inputs)


@rule("Div")
def _div(n: Node) -> array:
    return quotient(n[0], n[1])


@rule("Mod")
def _mod(n: Node) -> array:
    """With the sign of the divisor; with `fmod` that of the dividend."""
    x, y = n[0], n[1]
    if not n.attr("fmod", 0):
        return smelt.remainder(x, y)
    rest = smelt.remainder(smelt.abs(x), smelt.abs(y))
    return smelt.where(x < 0, -rest, rest)


@rule("Pow")
def _pow(n: Node) -> array:
    x, y = n[0], n[1]
    if x.dtype is y.dtype:
        return smelt.power(x, y)
    if y.dtype.is_inexact and not x.dtype.is_inexact:
        return smelt.power(x.astype(y.dtype), y).astype(x.dtype)
    return smelt.power(x, y.astype(x.dtype))


@rule("Reciprocal")
def _reciprocal(n: Node) -> array:
    return 1 / n.x


@rule("BitShift")
def _bit_shift(n: Node) -> array:
    return smelt.left_shift(n[0], n[1]) if n.attr("direction") == "LEFT" else smelt.right_shift(n[0], n[1])


@rule("IsInf")
def _is_inf(n: Node) -> array:
    found = smelt.zeros_like(n.x, smelt.bool_)
    if n.attr("detect_positive", 1):
        found = smelt.logical_or(found, n.x == math.inf)
    return smelt.logical_or(found, n.x == -math.inf) if n.attr("detect_negative", 1) else found


@rule("Where")
def _where(n: Node) -> array:
    return smelt.where(n[0], n[1], n[2])


@rule("Clip")
def _clip(n: Node) -> array:
    x = n.x
    low, high = n.attr("min", n[1]), n.attr("max", n[2])
    x = x if low is None else smelt.maximum(x, low)
    return x if high is None else smelt.minimum(x, high)


def dtype_of(code: int) -> DType:
    """The dtype of a number of ONNX's enumeration."""
    import onnx  # it is there where a model has been read

    name = type_name(onnx, code)
    if name not in DTYPES:
        raise Refused(f"asks for {name}, for which smelt has no dtype")
    return DTYPES[name]


def converted(x: array, dtype: DType) -> array:
    """To bool by comparison with 0; floats to integers towards 0."""
    return x != 0 if dtype is dtypes.bool_ and x.dtype is not dtype else x.astype(dtype)


@rule("Cast")
def _cast(n: Node) -> array:
    return converted(n.x, dtype_of(n.attr("to")))


@rule("CastLike")
def _cast_like(n: Node) -> array:
    return converted(n[0], n[1].dtype)


@rule("BitCast")
def _bit_cast(n: Node) -> array:
    return smelt.view(n.x, dtype_of(n.attr("to")))


# Activations


@rule("Relu")
def _relu(n: Node) -> array:
    return smelt.maximum(n.x, 0)


@rule("LeakyRelu")
def _leaky_relu(n: Node) -> array:
    return smelt.where(n.x < 0, n.attr("alpha", 0.01) * n.x, n.x)


@rule("PRelu")
def _prelu(n: Node) -> array:
    return smelt.where(n.x < 0, n[1] * n.x, n.x)


@rule("Elu")
def _elu(n: Node) -> array:
    return smelt.where(n.x < 0, n.attr("alpha", 1.0) * smelt.expm1(smelt.minimum(n.x, 0)), n.x)


@rule("Celu")
def _celu(n: Node) -> array:
    alpha = n.attr("alpha", 1.0)
    return smelt.maximum(n.x, 0) + smelt.minimum(alpha * smelt.expm1(smelt.minimum(n.x, 0) / alpha), 0)


@rule("Selu")
def _selu(n: Node) -> array:
    alpha, gamma = n.attr("alpha", 1.67326319217681884765625), n.attr("gamma", 1.05070102214813232421875)
    return gamma * smelt.where(n.x > 0, n.x, alpha * smelt.expm1(smelt.minimum(n.x, 0)))


@rule("HardSigmoid")
def _hard_sigmoid(n: Node) -> array:
    return smelt.clip(n.attr("alpha", 0.2) * n.x + n.attr("beta", 0.5), 0, 1)


@rule("HardSwish")
def _hard_swish(n: Node) -> array:
    return n.x * smelt.clip(n.x / 6 + 0.5, 0, 1)


@rule("Gelu")
def _gelu(n: Node) -> array:
    x = n.x
    if n.attr("approximate", "none") == "tanh":
        return 0.5 * x * (1 + smelt.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x * x * x)))
    return 0.5 * x * (1 + smelt.erf(x * math.sqrt(0.5)))


@rule("Mish")
def _mish(n: Node) -> array:
    return n.x * smelt.tanh(smelt.logaddexp(n.x, 0))


@rule("Softplus")
def _softplus(n: Node) -> array:
    return smelt.logaddexp(n.x, 0)


@rule("Softsign")
def _softsign(n: Node) -> array:
    return n.x / (1 + smelt.abs(n.x))


@rule("Swish")
def _swish(n: Node) -> array:
    return n.x * smelt.sigmoid(n.attr("alpha", 1.0) * n.x)


@rule("ThresholdedRelu")
def _thresholded_relu(n: Node) -> array:
    return smelt.where(n.x > n.attr("alpha", 1.0), n.x, 0)


@rule("Shrink")
def _shrink(n: Node) -> array:
    x, bias, limit = n.x, n.attr("bias", 0.0), n.attr("lambd", 0.5)
    zero = smelt.zeros_like(x)
    return smelt.where(x < -limit, x + bias, smelt.where(x > limit, x - bias, zero)).astype(x.dtype)


@rule("Binarizer", domain="ai.onnx.ml")
def _binarizer(n: Node) -> array:
    return (n.x > n.attr("threshold", 0.0)).astype(n.x.dtype)
