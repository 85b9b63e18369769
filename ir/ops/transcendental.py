"""Trigonometric and hyperbolic functions, the error function."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from .. import dtypes, elementary
from ..aval import Aval
from ..error_functions import erf_array, erfc_array, erfinv_array, sigmoid_array
from ..halves import in_float32
from ..kinds import Elementwise, silent, slope_in_float32
from ..op import Avals, HostCall, Operand, Tangents, Values, only
from ..scalar import Scalar, ScalarBuilder

if TYPE_CHECKING:
    from ..builder import Builder, Value

_TWO_OVER_SQRT_PI = 2.0 / math.sqrt(math.pi)


class Sin(Elementwise, name="sin"):
    """Sine: sin x.

    ``%0 = "smelt.sin"(%x) : (tensor<4xf32>) -> tensor<4xf32>``
    """

    x: Operand
    accepts = dtypes.INEXACT
    flops = 40.0
    usual = dtypes.FLOATS
    ufunc = np.sin
    widens = True

    @silent
    def reference(self, x: np.ndarray) -> np.ndarray:
        return in_float32(np.sin, x)

    def jvp(self, b: Builder, primals: Values, tangents: Tangents, results: Values) -> Tangents:
        (x,), t = primals, only(tangents)
        return [t * b.cos(x)]

    def lower(self, k: ScalarBuilder, x: Scalar) -> Scalar:
        return elementary.complex_sin(k, x) if x.dtype.kind == "c" else elementary.sin(k, x)


class Cos(Elementwise, name="cos"):
    """Cosine: cos x.

    ``%0 = "smelt.cos"(%x) : (tensor<4xf32>) -> tensor<4xf32>``
    """

    x: Operand
    accepts = dtypes.INEXACT
    flops = 40.0
    usual = dtypes.FLOATS
    ufunc = np.cos
    widens = True

    @silent
    def reference(self, x: np.ndarray) -> np.ndarray:
        return in_float32(np.cos, x)

    def jvp(self, b: Builder, primals: Values, tangents: Tangents, results: Values) -> Tangents:
        (x,), t = primals, only(tangents)
        return [-(t * b.sin(x))]

    def lower(self, k: ScalarBuilder, x: Scalar) -> Scalar:
        return elementary.complex_cos(k, x) if x.dtype.kind == "c" else elementary.cos(k, x)


class Tan(Elementwise, name="tan"):
    """Tangent: tan x.

    ``%0 = "smelt.tan"(%x) : (tensor<4xf32>) -> tensor<4xf32>``
    """

    x: Operand
    accepts = dtypes.INEXACT
    flops = 44.0
    usual = dtypes.FLOATS
    ufunc = np.tan
    widens = True

    @silent
    def reference(self, x: np.ndarray) -> np.ndarray:
        return in_float32(np.tan, x)

    @slope_in_float32
    def jvp(self, b: Builder, primals: Values, tangents: Tangents, results: Values) -> Tangents:
        t, (y,) = only(tangents), results
        return [t * (y * y + 1)]

    def lower(self, k: ScalarBuilder, x: Scalar) -> Scalar:
        return elementary.complex_tan(k, x) if x.dtype.kind == "c" else elementary.tan(k, x)


def _one_less_square(b: Builder, x: Value) -> Value:
    """1 - x²: its value is precise near 1 and -1, and near 0 its derivative is, which is no difference there."""
    size = b.abs(x)
    near = b.less(size, b.full(x.shape, 0.5, size.dtype))
    return b.select(near, 1 - x * x, (1 - x) * (1 + x))


class Arcsin(Elementwise, name="arcsin"):
    """Inverse sine, in [-π/2, π/2]; NaN where |x| > 1.

    ``%0 = "smelt.arcsin"(%x) : (tensor<4xf32>) -> tensor<4xf32>``
    """

    primitive = "ArcSin"
    x: Operand
    accepts = dtypes.INEXACT
    jumps = True
    flops = 16.0
    ufunc = np.arcsin
    widens = True

    @silent
    def reference(self, x: np.ndarray) -> np.ndarray:
        return in_float32(np.arcsin, x)

    @slope_in_float32
    def jvp(self, b: Builder, primals: Values, tangents: Tangents, results: Values) -> Tangents:
        (x,), t = primals, only(tangents)
        return [t / b.sqrt(_one_less_square(b, x))]

    def lower(self, k: ScalarBuilder, x: Scalar) -> Scalar:
        return elementary.complex_arcsin(k, x) if x.dtype.kind == "c" else elementary.arcsin(k, x)


class Arccos(Elementwise, name="arccos"):
    """Inverse cosine, in [0, π]; NaN where |x| > 1.

    ``%0 = "smelt.arccos"(%x) : (tensor<4xf32>) -> tensor<4xf32>``
    """

    primitive = "ArcCos"
    x: Operand
    accepts = dtypes.INEXACT
    jumps = True
    flops = 16.0
    ufunc = np.arccos
    widens = True

    @silent
    def reference(self, x: np.ndarray) -> np.ndarray:
        return in_float32(np.arccos, x)

    @slope_in_float32
    def jvp(self, b: Builder, primals: Values, tangents: Tangents, results: Values) -> Tangents:
        (x,), t = primals, only(tangents)
        return [-(t / b.sqrt(_one_less_square(b, x)))]

    def lower(self, k: ScalarBuilder, x: Scalar) -> Scalar:
        return elementary.complex_arccos(k, x) if x.dtype.kind == "c" else elementary.arccos(k, x)


class Arctan(Elementwise, name="arctan"):
    """Inverse tangent, in [-π/2, π/2].

    ``%0 = "smelt.arctan"(%x) : (tensor<4xf32>) -> tensor<4xf32>``
    """

    primitive = "ArcTan"
    x: Operand
    accepts = dtypes.INEXACT
    flops = 16.0
    ufunc = np.arctan
    widens = True

    @silent
    def reference(self, x: np.ndarray) -> np.ndarray:
        return in_float32(np.arctan, x)

    @slope_in_float32
    def jvp(self, b: Builder, primals: Values, tangents: Tangents, results: Values) -> Tangents:
        (x,), t = primals, only(tangents)
        return [t / (x * x + 1)]

    def lower(self, k: ScalarBuilder, x: Scalar) -> Scalar:
        return elementary.complex_arctan(k, x) if x.dtype.kind == "c" else elementary.arctan(k, x)


class Sinh(Elementwise, name="sinh"):
    """Hyperbolic sine: (eˣ - e⁻ˣ) / 2.

    ``%0 = "smelt.sinh"(%x) : (tensor<4xf32>) -> tensor<4xf32>``
    """

    x: Operand
    accepts = dtypes.INEXACT
    flops = 22.0
    ufunc = np.sinh
    widens = True

    @silent
    def reference(self, x: np.ndarray) -> np.ndarray:
        return in_float32(np.sinh, x)

    def jvp(self, b: Builder, primals: Values, tangents: Tangents, results: Values) -> Tangents:
        (x,), t = primals, only(tangents)
        return [t * b.cosh(x)]

    def lower(self, k: ScalarBuilder, x: Scalar) -> Scalar:
        return elementary.complex_sinh(k, x) if x.dtype.kind == "c" else elementary.sinh(k, x)


class Cosh(Elementwise, name="cosh"):
    """Hyperbolic cosine: (eˣ + e⁻ˣ) / 2.

    ``%0 = "smelt.cosh"(%x) : (tensor<4xf32>) -> tensor<4xf32>``
    """

    x: Operand
    accepts = dtypes.INEXACT
    flops = 18.0
    ufunc = np.cosh
    widens = True

    @silent
    def reference(self, x: np.ndarray) -> np.ndarray:
        return in_float32(np.cosh, x)

    def jvp(self, b: Builder, primals: Values, tangents: Tangents, results: Values) -> Tangents:
        (x,), t = primals, only(tangents)
        return [t * b.sinh(x)]

    def lower(self, k: ScalarBuilder, x: Scalar) -> Scalar:
        return elementary.complex_cosh(k, x) if x.dtype.kind == "c" else elementary.cosh(k, x)


class Tanh(Elementwise, name="tanh"):
    """Hyperbolic tangent: (eˣ - e⁻ˣ) / (eˣ + e⁻ˣ).

    ``%0 = "smelt.tanh"(%x) : (tensor<4xf32>) -> tensor<4xf32>``
    """

    x: Operand
    accepts = dtypes.INEXACT
    flops = 20.0
    ufunc = np.tanh
    widens = True

    @silent
    def reference(self, x: np.ndarray) -> np.ndarray:
        return in_float32(np.tanh, x)

    @slope_in_float32
    def jvp(self, b: Builder, primals: Values, tangents: Tangents, results: Values) -> Tangents:
        t, (y,) = only(tangents), results
        return [t * (1 - y * y)]

    def lower(self, k: ScalarBuilder, x: Scalar) -> Scalar:
        if x.dtype.kind == "c":
            return elementary.complex_tanh(k, x)
        return elementary.tanh_half(k, x) if k.is_half else elementary.tanh(k, x)


class Arcsinh(Elementwise, name="arcsinh"):
    """Inverse hyperbolic sine: log(x + √(x² + 1)).

    ``%0 = "smelt.arcsinh"(%x) : (tensor<4xf32>) -> tensor<4xf32>``
    """

    primitive = "ArcSinh"
    x: Operand
    accepts = dtypes.INEXACT
    flops = 28.0
    usual = dtypes.FLOATS
    ufunc = np.arcsinh
    widens = True

    @silent
    def reference(self, x: np.ndarray) -> np.ndarray:
        return in_float32(np.arcsinh, x)

    @slope_in_float32
    def jvp(self, b: Builder, primals: Values, tangents: Tangents, results: Values) -> Tangents:
        (x,), t = primals, only(tangents)
        return [t / b.sqrt(x * x + 1)]

    def lower(self, k: ScalarBuilder, x: Scalar) -> Scalar:
        return elementary.complex_arcsinh(k, x) if x.dtype.kind == "c" else elementary.arcsinh(k, x)


class Arccosh(Elementwise, name="arccosh"):
    """Inverse hyperbolic cosine: log(x + √(x² - 1)); NaN below 1.

    ``%0 = "smelt.arccosh"(%x) : (tensor<4xf32>) -> tensor<4xf32>``
    """

    primitive = "ArcCosh"
    x: Operand
    accepts = dtypes.INEXACT
    jumps = True
    flops = 28.0
    usual = dtypes.FLOATS
    ufunc = np.arccosh
    widens = True

    @silent
    def reference(self, x: np.ndarray) -> np.ndarray:
        return in_float32(np.arccosh, x)

    @slope_in_float32
    def jvp(self, b: Builder, primals: Values, tangents: Tangents, results: Values) -> Tangents:
        (x,), t = primals, only(tangents)
        return [t / (b.sqrt(x - 1) * b.sqrt(x + 1))]

    def lower(self, k: ScalarBuilder, x: Scalar) -> Scalar:
        return elementary.complex_arccosh(k, x) if x.dtype.kind == "c" else elementary.arccosh(k, x)


class Arctanh(Elementwise, name="arctanh"):
    """Inverse hyperbolic tangent: log((1 + x)/(1 - x)) / 2; NaN where |x| > 1.

    ``%0 = "smelt.arctanh"(%x) : (tensor<4xf32>) -> tensor<4xf32>``
    """

    primitive = "ArcTanh"
    x: Operand
    accepts = dtypes.INEXACT
    jumps = True
    flops = 24.0
    usual = dtypes.FLOATS
    ufunc = np.arctanh
    widens = True

    @silent
    def reference(self, x: np.ndarray) -> np.ndarray:
        return in_float32(np.arctanh, x)

    @slope_in_float32
    def jvp(self, b: Builder, primals: Values, tangents: Tangents, results: Values) -> Tangents:
        (x,), t = primals, only(tangents)
        return [t / _one_less_square(b, x)]

    def lower(self, k: ScalarBuilder, x: Scalar) -> Scalar:
        return elementary.complex_arctanh(k, x) if x.dtype.kind == "c" else elementary.arctanh(k, x)


class Erf(Elementwise, name="erf"):
    """Error function: 2/√π · ∫₀ˣ exp(-t²) dt.

    ``%0 = "smelt.erf"(%x) : (tensor<4xf32>) -> tensor<4xf32>``
    """

    x: Operand
    accepts = dtypes.FLOATS
    flops = 24.0
    rule_flops = 85.0  # 34 ns an element
    usual = (dtypes.float64,)

    @silent
    def reference(self, x: np.ndarray) -> np.ndarray:
        return in_float32(erf_array, x)

    @slope_in_float32
    def jvp(self, b: Builder, primals: Values, tangents: Tangents, results: Values) -> Tangents:
        (x,), t = primals, only(tangents)
        return [t * b.exp(-(x * x)) * _TWO_OVER_SQRT_PI]

    def lower(self, k: ScalarBuilder, x: Scalar) -> Scalar:
        return elementary.erf_half(k, x) if k.is_half else elementary.erf(k, x)


class Erfc(Elementwise, name="erfc"):
    """Complementary error function: 1 - erf x, precise where it is small.

    ``%0 = "smelt.erfc"(%x) : (tensor<4xf32>) -> tensor<4xf32>``
    """

    x: Operand
    accepts = dtypes.FLOATS
    flops = 50.0
    rule_flops = 330.0
    usual = dtypes.FLOATS

    @silent
    def reference(self, x: np.ndarray) -> np.ndarray:
        return in_float32(erfc_array, x)

    @slope_in_float32
    def jvp(self, b: Builder, primals: Values, tangents: Tangents, results: Values) -> Tangents:
        (x,), t = primals, only(tangents)
        return [t * b.exp(-(x * x)) * -_TWO_OVER_SQRT_PI]

    def lower(self, k: ScalarBuilder, x: Scalar) -> Scalar:
        return elementary.erfc(k, x)


class Erfinv(Elementwise, name="erfinv"):
    """Inverse of the error function; NaN where |x| > 1.

    ``%0 = "smelt.erfinv"(%x) : (tensor<4xf32>) -> tensor<4xf32>``
    """

    primitive = "ErfInv"
    x: Operand
    accepts = dtypes.FLOATS
    jumps = True
    flops = 40.0
    rule_flops = 25.0  # of float32
    usual = dtypes.FLOATS

    @silent
    def reference(self, x: np.ndarray) -> np.ndarray:
        return in_float32(erfinv_array, x)

    @slope_in_float32
    def jvp(self, b: Builder, primals: Values, tangents: Tangents, results: Values) -> Tangents:
        t, (y,) = only(tangents), results
        return [t * b.exp(y * y) * (1 / _TWO_OVER_SQRT_PI)]

    def lower(self, k: ScalarBuilder, x: Scalar) -> Scalar:
        return elementary.erfinv(k, x)


class Sigmoid(Elementwise, name="sigmoid"):
    """Logistic function: 1 / (1 + e⁻ˣ).

    ``%0 = "smelt.sigmoid"(%x) : (tensor<4xf32>) -> tensor<4xf32>``
    """

    x: Operand
    accepts = dtypes.FLOATS
    flops = 16.0
    usual = (dtypes.float32, dtypes.float64)

    @silent
    def reference(self, x: np.ndarray) -> np.ndarray:
        return in_float32(sigmoid_array, x)

    def host_call(self, operands: Avals, result: Aval) -> HostCall | None:
        return HostCall(sigmoid_array) if result.dtype.size > 2 else None

    @slope_in_float32
    def jvp(self, b: Builder, primals: Values, tangents: Tangents, results: Values) -> Tangents:
        t, (y,) = only(tangents), results
        return [t * y * (1 - y)]

    def lower(self, k: ScalarBuilder, x: Scalar) -> Scalar:
        return elementary.sigmoid_half(k, x) if k.is_half else elementary.sigmoid(k, x)
