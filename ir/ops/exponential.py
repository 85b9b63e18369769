"""Exponentials and logarithms."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from .. import dtypes, elementary
from ..aval import Aval
from ..halves import in_float32
from ..kinds import Elementwise, silent, slope_in_float32
from ..op import Avals, HostCall, Operand, Tangents, Values, only
from ..scalar import Scalar, ScalarBuilder

if TYPE_CHECKING:
    from ..builder import Builder


def _exp(x: np.ndarray) -> np.ndarray:
    """eˣ; NumPy's own of real numbers as complex ones is not real where it overflows."""
    found = np.asarray(np.exp(x))
    if x.dtype.kind == "c":
        found.imag = np.where(x.imag == 0, x.imag, found.imag)
    return found


def _log1p(x: np.ndarray) -> np.ndarray:
    """log(1 + x); NumPy's own of complex numbers loses those that are small beside 1, and is infinite for the largest."""
    found = np.log1p(x)
    if x.dtype.kind == "c":
        a, b = x.real, x.imag
        found = np.where(np.maximum(np.abs(a), np.abs(b)) > 1e30, np.log(x), found)
        close = (np.abs(a) < 0.25) & (np.abs(b) < 0.25)
        found = np.asarray(found)
        found.real = np.where(close, np.log1p(np.where(close, a * (a + 2) + b * b, 0)) / 2, found.real)
    return found


class Exp(Elementwise, name="exp"):
    """Exponential: eˣ.

    ``%0 = "smelt.exp"(%x) : (tensor<4xf32>) -> tensor<4xf32>``
    """

    x: Operand
    formula = "exp(x)"
    accepts = dtypes.INEXACT
    flops = 12.0
    usual = (dtypes.float32, dtypes.float64)
    ufunc = np.exp
    widens = True

    @silent
    def reference(self, x: np.ndarray) -> np.ndarray:
        return in_float32(_exp, x)

    def host_call(self, operands: Avals, result: Aval) -> HostCall | None:
        return None if result.dtype.is_complex else super().host_call(operands, result)

    def jvp(self, b: Builder, primals: Values, tangents: Tangents, results: Values) -> Tangents:
        t, (y,) = only(tangents), results
        return [t * y]

    def lower(self, k: ScalarBuilder, x: Scalar) -> Scalar:
        if x.dtype.kind == "c":
            return elementary.complex_exp(k, x)
        return elementary.exp_half(k, x) if k.is_half else elementary.exp(k, x)


class Expm1(Elementwise, name="expm1"):
    """Exponential less one: eˣ - 1, accurate around 0.

    ``%0 = "smelt.expm1"(%x) : (tensor<4xf32>) -> tensor<4xf32>``
    """

    x: Operand
    accepts = dtypes.INEXACT
    flops = 14.0
    ufunc = np.expm1
    widens = True

    @silent
    def reference(self, x: np.ndarray) -> np.ndarray:
        found = in_float32(np.expm1, x)
        if x.dtype.kind == "c":  # NumPy's has NaN where a part is not finite
            finite = np.isfinite(x) & np.isfinite(found)
            return np.where(finite, found, in_float32(_exp, x) - np.ones((), x.dtype))
        return found

    def host_call(self, operands: Avals, result: Aval) -> HostCall | None:
        return None if result.dtype.is_complex else super().host_call(operands, result)

    @slope_in_float32
    def jvp(self, b: Builder, primals: Values, tangents: Tangents, results: Values) -> Tangents:
        (x,), t = primals, only(tangents)
        return [t * b.exp(x)]  # of the result nothing is left beside -1

    def lower(self, k: ScalarBuilder, x: Scalar) -> Scalar:
        return elementary.complex_expm1(k, x) if x.dtype.kind == "c" else elementary.expm1(k, x)


class Log(Elementwise, name="log"):
    """Natural logarithm: log x; -∞ at 0, NaN below.

    ``%0 = "smelt.log"(%x) : (tensor<4xf32>) -> tensor<4xf32>``
    """

    x: Operand
    accepts = dtypes.INEXACT
    flops = 16.0
    usual = dtypes.FLOATS
    ufunc = np.log
    widens = True

    @silent
    def reference(self, x: np.ndarray) -> np.ndarray:
        return in_float32(np.log, x)

    def jvp(self, b: Builder, primals: Values, tangents: Tangents, results: Values) -> Tangents:
        (x,), t = primals, only(tangents)
        return [t / x]

    def lower(self, k: ScalarBuilder, x: Scalar) -> Scalar:
        return elementary.complex_log(k, x) if x.dtype.kind == "c" else elementary.log(k, x)


class Log2(Elementwise, name="log2"):
    """Logarithm to base 2: log₂ x.

    ``%0 = "smelt.log2"(%x) : (tensor<4xf32>) -> tensor<4xf32>``
    """

    x: Operand
    accepts = dtypes.INEXACT
    flops = 16.0
    usual = dtypes.FLOATS
    ufunc = np.log2
    widens = True

    @silent
    def reference(self, x: np.ndarray) -> np.ndarray:
        return in_float32(np.log2, x)

    @slope_in_float32
    def jvp(self, b: Builder, primals: Values, tangents: Tangents, results: Values) -> Tangents:
        (x,), t = primals, only(tangents)
        return [t / (x * math.log(2))]

    def lower(self, k: ScalarBuilder, x: Scalar) -> Scalar:
        return elementary.complex_log2(k, x) if x.dtype.kind == "c" else elementary.log2(k, x)


class Log10(Elementwise, name="log10"):
    """Logarithm to base 10: log₁₀ x.

    ``%0 = "smelt.log10"(%x) : (tensor<4xf32>) -> tensor<4xf32>``
    """

    x: Operand
    accepts = dtypes.INEXACT
    flops = 16.0
    usual = dtypes.FLOATS
    ufunc = np.log10
    widens = True

    @silent
    def reference(self, x: np.ndarray) -> np.ndarray:
        return in_float32(np.log10, x)

    @slope_in_float32
    def jvp(self, b: Builder, primals: Values, tangents: Tangents, results: Values) -> Tangents:
        (x,), t = primals, only(tangents)
        return [t / (x * math.log(10))]

    def lower(self, k: ScalarBuilder, x: Scalar) -> Scalar:
        return elementary.complex_log10(k, x) if x.dtype.kind == "c" else elementary.log10(k, x)


class Log1p(Elementwise, name="log1p"):
    """Logarithm of one more: log(1 + x), accurate around 0.

    ``%0 = "smelt.log1p"(%x) : (tensor<4xf32>) -> tensor<4xf32>``
    """

    x: Operand
    accepts = dtypes.INEXACT
    jumps = True
    flops = 18.0
    usual = dtypes.FLOATS
    ufunc = np.log1p
    widens = True

    @silent
    def reference(self, x: np.ndarray) -> np.ndarray:
        return in_float32(_log1p, x)

    def host_call(self, operands: Avals, result: Aval) -> HostCall | None:
        return None if operands[0].dtype.is_complex else super().host_call(operands, result)

    @slope_in_float32
    def jvp(self, b: Builder, primals: Values, tangents: Tangents, results: Values) -> Tangents:
        (x,), t = primals, only(tangents)
        return [t / (x + 1)]

    def lower(self, k: ScalarBuilder, x: Scalar) -> Scalar:
        return elementary.complex_log1p(k, x) if x.dtype.kind == "c" else elementary.log1p(k, x)
