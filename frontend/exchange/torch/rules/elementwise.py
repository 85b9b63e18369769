"""Arithmetic, comparisons, conversions, special functions: one element at a time."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import smelt
from smelt import array
from smelt.ir.op import registry

from ....lazy.arrays import emit
from ...arithmetic import quotient
from ...translating import Refused
from ..graph import RULES, Node, common, converted, dtype_of, rule

#: Of one array. Integers become floats first where the result is one.
_UNARY: dict[str, Callable[[array], array]] = {
    "abs": smelt.abs, "acos": smelt.arccos, "acosh": smelt.arccosh, "angle": smelt.angle, "asin": smelt.arcsin,
    "asinh": smelt.arcsinh, "atan": smelt.arctan, "atanh": smelt.arctanh, "bitwise_not": smelt.bitwise_invert,
    "ceil": smelt.ceil, "conj": smelt.conj, "_conj": smelt.conj, "conj_physical": smelt.conj,
    "_conj_physical": smelt.conj, "cos": smelt.cos, "cosh": smelt.cosh, "digamma": smelt.digamma, "erf": smelt.erf,
    "erfc": smelt.erfc, "erfinv": smelt.erfinv, "exp": smelt.exp, "exp2": smelt.exp2, "expm1": smelt.expm1,
    "floor": smelt.floor, "i0": smelt.i0, "imag": smelt.imag, "isfinite": smelt.isfinite, "isinf": smelt.isinf,
    "isnan": smelt.isnan, "lgamma": smelt.lgamma, "log": smelt.log, "log10": smelt.log10, "log1p": smelt.log1p,
    "log2": smelt.log2, "logical_not": smelt.logical_not, "logit": smelt.logit, "neg": smelt.negative,
    "real": smelt.real, "reciprocal": smelt.reciprocal, "rsqrt": smelt.rsqrt, "sgn": smelt.sign,
    "sigmoid": smelt.sigmoid, "sign": smelt.sign, "signbit": smelt.signbit, "sin": smelt.sin, "sinc": smelt.sinc,
    "sinh": smelt.sinh, "special_bessel_j0": smelt.j0, "special_bessel_j1": smelt.j1, "special_bessel_y0": smelt.y0,
    "special_bessel_y1": smelt.y1, "special_entr": smelt.entr, "special_erfcx": smelt.erfcx, "special_i0e": smelt.i0e,
    "special_i1": smelt.i1, "special_i1e": smelt.i1e, "special_log_ndtr": smelt.log_ndtr, "special_ndtr": smelt.ndtr,
    "special_modified_bessel_k0": smelt.k0, "special_modified_bessel_k1": smelt.k1, "special_ndtri": smelt.ndtri,
    "sqrt": smelt.sqrt, "square": smelt.square, "tan": smelt.tan, "tanh": smelt.tanh, "trunc": smelt.trunc,
}  # fmt: skip
#: Of two arrays or an array and a number, in one dtype.
_BINARY: dict[str, Callable[[Any, Any], array]] = {
    "__and__": smelt.bitwise_and, "__lshift__": smelt.left_shift, "__or__": smelt.bitwise_or,
    "__rshift__": smelt.right_shift, "__xor__": smelt.bitwise_xor,
    "atan2": smelt.arctan2, "bitwise_and": smelt.bitwise_and, "bitwise_left_shift": smelt.left_shift,
    "bitwise_or": smelt.bitwise_or, "bitwise_right_shift": smelt.right_shift, "bitwise_xor": smelt.bitwise_xor,
    "copysign": smelt.copysign, "eq": smelt.equal, "floor_divide": smelt.floor_divide, "fmax": smelt.fmax,
    "fmin": smelt.fmin, "fmod": smelt.fmod, "gcd": smelt.gcd, "ge": smelt.greater_equal, "gt": smelt.greater,
    "heaviside": smelt.heaviside, "hypot": smelt.hypot, "igamma": smelt.gammainc, "igammac": smelt.gammaincc,
    "lcm": smelt.lcm, "le": smelt.less_equal, "logaddexp": smelt.logaddexp, "logaddexp2": smelt.logaddexp2,
    "logical_and": smelt.logical_and, "logical_or": smelt.logical_or, "logical_xor": smelt.logical_xor,
    "lt": smelt.less, "maximum": smelt.maximum, "minimum": smelt.minimum, "mul": smelt.multiply,
    "ne": smelt.not_equal, "nextafter": smelt.nextafter, "remainder": smelt.remainder,
    "special_xlog1py": smelt.xlog1py, "special_zeta": smelt.zeta, "xlogy": smelt.xlogy,
}  # fmt: skip


def _enter_unary(name: str, function: Callable[[array], array]) -> None:
    def apply(n: Node, x: array, *_: Any) -> array:
        return function(converted(x, n.dtype) if n.dtype.is_inexact and not x.dtype.is_inexact else x)

    RULES[f"aten.{name}"] = apply


def _enter_binary(name: str, function: Callable[[Any, Any], array]) -> None:
    def apply(n: Node, x: Any, y: Any, *_: Any) -> array:
        x, y = common(x, y)
        if n.dtype.is_inexact:
            x, y = (converted(v, n.dtype) if isinstance(v, array) and not v.dtype.is_inexact else v for v in (x, y))
        return function(x, y)

    RULES[f"aten.{name}"] = apply


for _name, _function in _UNARY.items():
    _enter_unary(_name, _function)
for _name, _two in _BINARY.items():
    _enter_binary(_name, _two)
del RULES["aten.logit"]  # PyTorch's has a margin, and is defined by others


@rule("aten.add", "aten.sub", "aten.rsub")
def _add(n: Node, x: Any, y: Any, alpha: Any = 1) -> array:
    x, y = common(x, y)
    if n.op.startswith("aten.rsub"):
        x, y = y, x
    y = y if alpha == 1 else y * alpha
    return smelt.add(x, y) if n.op.startswith("aten.add") else smelt.subtract(x, y)


@rule("aten.div")
def _div(n: Node, x: Any, y: Any, rounding_mode: str | None = None) -> array:
    x, y = common(x, y)
    if rounding_mode is None:
        x, y = (converted(v, n.dtype) if isinstance(v, array) else v for v in (x, y))
        return smelt.divide(x, y)
    if rounding_mode == "floor":
        return smelt.floor_divide(x, y)
    if n.dtype.is_inexact:
        return smelt.trunc(x / y)
    return quotient(x, y if isinstance(y, array) else smelt.full_like(x, y))


@rule("aten.pow")
def _pow(n: Node, x: Any, y: Any) -> array:
    x, y = common(x, y)
    return smelt.power(x, y)


@rule("aten.polar")
def _polar(n: Node, r: array, angle: array) -> array:
    return _complex(r * smelt.cos(angle), r * smelt.sin(angle))


@rule("aten.complex")
def _complex_of(n: Node, real: array, imag: array) -> array:
    return _complex(real, imag)


def _complex(real: array, imag: array) -> array:
    return emit(registry["complex"], tuple(smelt.broadcast_arrays(real, imag)))


@rule("aten.view_as_real", "aten.view_as_real_copy")
def _view_as_real(n: Node, x: array) -> array:
    return smelt.stack([smelt.real(x), smelt.imag(x)], -1)


@rule("aten.view_as_complex", "aten.view_as_complex_copy")
def _view_as_complex(n: Node, x: array) -> array:
    return _complex(x[..., 0], x[..., 1])


@rule("aten.round")
def _round(n: Node, x: array, decimals: int = 0) -> array:
    return smelt.round(x, decimals)


@rule("aten.polygamma")
def _polygamma(n: Node, order: int, x: array) -> array:
    return smelt.polygamma(order, converted(x, n.dtype))


@rule("aten.frexp")
def _frexp(n: Node, x: array) -> Any:
    return list(smelt.frexp(x))


@rule("aten.where")
def _where(n: Node, condition: array, x: Any, y: Any) -> array:
    x, y = common(x, y)
    return smelt.where(condition, x, y)


@rule("aten.clamp", "aten.clamp_min", "aten.clamp_max")
def _clamp(n: Node, x: array, *limits: Any) -> array:
    """NaN stays; where the limits cross, the upper one holds."""
    one = n.op.startswith("aten.clamp_m")
    low, high = (limits[0], None) if one and "clamp_min" in n.op else (None, limits[0]) if one else limits
    if low is not None:
        x = smelt.maximum(*common(x, low))
    return x if high is None else smelt.minimum(*common(x, high))


@rule("aten._to_copy", "aten.to")
def _to_copy(n: Node, x: array, *_: Any) -> array:
    return converted(x, n.dtype)


@rule("prims.convert_element_type")
def _convert(n: Node, x: array, dtype: Any) -> array:
    return converted(x, dtype_of(dtype))


@rule("aten.clone", "aten.alias", "aten.lift_fresh_copy", "aten.lift_fresh", "aten.lift", "aten.contiguous")
def _same(n: Node, x: array, *_: Any) -> array:
    return x


@rule("aten.detach", "aten.detach_copy")
def _detach(n: Node, x: array) -> array:
    return smelt.stop_gradient(x)


@rule("aten.fill")
def _fill(n: Node, x: array, value: Any) -> array:
    return smelt.broadcast_to(value, x.shape) if isinstance(value, array) else smelt.full_like(x, value)


@rule("aten.copy")
def _copy(n: Node, x: array, source: array, non_blocking: bool) -> array:
    return smelt.broadcast_to(converted(source, x.dtype), x.shape)


# Activations


@rule("aten.relu")
def _relu(n: Node, x: array) -> array:
    return smelt.maximum(x, 0)


@rule("aten.gelu")
def _gelu(n: Node, x: array, approximate: str) -> array:
    if approximate == "tanh":
        return 0.5 * x * (1 + smelt.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x * x * x)))
    return 0.5 * x * (1 + smelt.erf(x * math.sqrt(0.5)))


@rule("aten.silu")
def _silu(n: Node, x: array) -> array:
    return x / (1 + smelt.exp(-x)) if x.dtype.is_complex else x * smelt.sigmoid(x)


@rule("aten.elu")
def _elu(n: Node, x: array, alpha: float, scale: float, input_scale: float) -> array:
    return scale * smelt.where(x > 0, x, alpha * smelt.expm1(smelt.minimum(x * input_scale, 0)))


@rule("aten.leaky_relu")
def _leaky_relu(n: Node, x: array, slope: float) -> array:
    return smelt.where(x > 0, x, slope * x)


@rule("aten.hardtanh")
def _hardtanh(n: Node, x: array, low: float, high: float) -> array:
    return smelt.clip(x, low, high)


@rule("aten.softplus")
def _softplus(n: Node, x: array, beta: float, threshold: float) -> array:
    scaled = x * beta
    return smelt.where(scaled > threshold, x, smelt.logaddexp(smelt.minimum(scaled, threshold), 0) / beta)


@rule("aten.isin")
def _isin(n: Node, x: Any, among: Any, assume_unique: bool, invert: bool) -> array:
    x, among = common(x, among)
    return smelt.isin(x, among, invert=invert)


@rule("aten.bucketize", "aten.searchsorted")
def _searchsorted(
    n: Node, first: Any, second: Any, int32: bool, right: bool, side: Any = None, sorter: Any = None
) -> array:
    values, line = common(first, second) if "bucketize" in n.op else common(second, first)
    if side is not None:
        right = side == "right"
    if sorter is not None:
        line = smelt.take_along_axis(line, sorter, -1)
    values = values if isinstance(values, array) else smelt.array(values, line.dtype)
    if line.ndim == 1:
        return smelt.searchsorted(line, values, "right" if right else "left")
    if line.shape[:-1] != values.shape[:-1]:
        raise Refused("of lines in other batches than the values is not translated")
    lines, rows = line.reshape(-1, line.shape[-1]), values.reshape(-1, values.shape[-1])
    found = smelt.vmap(lambda a, v: smelt.searchsorted(a, v, "right" if right else "left"))(lines, rows)
    return found.reshape(values.shape)
