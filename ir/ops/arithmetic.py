"""Sums, products, quotients, signs, extrema, and powers that need no logarithm."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from .. import dtypes, elementary, halves
from ..aval import Aval
from ..dtypes import DType
from ..errors import AttributeValueError
from ..host_loops import loops
from ..host_memory import contiguous, empty
from ..kinds import Elementwise, silent, slope_in_float32
from ..op import Avals, Cotangents, Flags, HostCall, Int, NotDifferentiable, Operand, Tangents, Values, only
from ..scalar import Scalar, ScalarBuilder

if TYPE_CHECKING:
    from ..builder import Builder, Value


class Add(Elementwise, name="add"):
    """Sum: x + y. For bool, logical or.

    ``%0 = "smelt.add"(%x, %y) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>``
    """

    x: Operand
    y: Operand
    formula = "x + y"
    symbol = "+"
    accepts = dtypes.ALL
    commutative = True
    linearity = "jointly"
    ufunc = np.add

    @silent
    def reference(self, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        return np.add(x, y)

    def transpose(self, b: Builder, cotangents: Cotangents, operands: Values, linear: Flags) -> Cotangents:
        ct = only(cotangents)
        return [ct if is_linear else None for is_linear in linear]

    def lower(self, k: ScalarBuilder, x: Scalar, y: Scalar) -> Scalar:
        return x | y if x.dtype.kind == "b" else x + y


class Sub(Elementwise, name="sub"):
    """Difference: x - y.

    ``%0 = "smelt.sub"(%x, %y) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>``
    """

    primitive = "Subtract"
    x: Operand
    y: Operand
    formula = "x - y"
    symbol = "-"
    linearity = "jointly"
    ufunc = np.subtract

    @silent
    def reference(self, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        return np.subtract(x, y)

    def transpose(self, b: Builder, cotangents: Cotangents, operands: Values, linear: Flags) -> Cotangents:
        ct = only(cotangents)
        return [ct if linear[0] else None, -ct if linear[1] else None]

    def lower(self, k: ScalarBuilder, x: Scalar, y: Scalar) -> Scalar:
        return x - y


class Mul(Elementwise, name="mul"):
    """Product: x · y. For bool, logical and.

    ``%0 = "smelt.mul"(%x, %y) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>``
    """

    primitive = "Multiply"
    x: Operand
    y: Operand
    formula = "x * y"
    symbol = "*"
    accepts = dtypes.ALL
    commutative = True
    odd_operands = (0, 1)
    linearity = "each"
    ufunc = np.multiply

    @silent
    def reference(self, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        return np.multiply(x, y)

    def transpose(self, b: Builder, cotangents: Cotangents, operands: Values, linear: Flags) -> Cotangents:
        ct, (x, y) = only(cotangents), operands
        return [ct * y, None] if linear[0] else [None, ct * x]

    def lower(self, k: ScalarBuilder, x: Scalar, y: Scalar) -> Scalar:
        return x & y if x.dtype.kind == "b" else x * y


class Div(Elementwise, name="div"):
    """Quotient of floating or complex numbers: x / y.

    ``%0 = "smelt.div"(%x, %y) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>``
    """

    primitive = "Divide"
    x: Operand
    y: Operand
    formula = "x / y"
    symbol = "/"
    accepts = dtypes.INEXACT
    odd_operands = (0, 1)
    linearity = "each"
    linear_operands = (0,)
    flops = 4.0
    ufunc = np.divide

    @silent
    def reference(self, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        return np.divide(x, y)

    def jvp(self, b: Builder, primals: Values, tangents: Tangents, results: Values) -> Tangents:
        (_, y), (tx, ty), (z,) = primals, tangents, results
        dx = None if tx is None else tx / y
        dy = None if ty is None else -(ty * (z / y))
        return [b.add_any(dx, dy)]

    def transpose(self, b: Builder, cotangents: Cotangents, operands: Values, linear: Flags) -> Cotangents:
        return [only(cotangents) / operands[1], None]

    def lower(self, k: ScalarBuilder, x: Scalar, y: Scalar) -> Scalar:
        return x / y


def _floored_quotient(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """⌊x / y⌋ of floats: where x / y is a whole number, it may have been rounded up to that."""
    quotient = np.divide(x, y)
    found = np.floor(quotient)
    doubtful = (found == quotient) & np.isfinite(found) & np.isfinite(y)
    if doubtful.any():
        found = np.asarray(found)
        found[doubtful] = np.floor_divide(x[doubtful], y[doubtful], dtype=np.float64)
    return found


class FloorDivide(Elementwise, name="floor_divide"):
    """Quotient rounded towards minus infinity: ⌊x / y⌋. An integer divided by zero gives 0.

    Of floats it is the exact quotient that is rounded, so that x = y·⌊x / y⌋ + (x mod y); beside an infinite y, or where
    the quotient overflows, it is the floor of x / y.

    ``%0 = "smelt.floor_divide"(%x, %y) : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi32>``
    """

    x: Operand
    y: Operand
    symbol = "//"
    accepts = dtypes.REAL
    jumps = True
    not_differentiable = NotDifferentiable("piecewise constant: the derivative is zero almost everywhere")
    flops = 8.0

    @silent
    def reference(self, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        if np.issubdtype(x.dtype, np.integer):
            return np.where(y == 0, 0, np.floor_divide(x, y)).astype(x.dtype)
        return halves.in_float32(_floored_quotient, x, y)

    def lower(self, k: ScalarBuilder, x: Scalar, y: Scalar) -> Scalar:
        if x.dtype.kind == "f":
            floored = k.math("floor", x / y)
            rest = k.fma(-floored, y, x)  # of the other sign than y: the quotient was rounded up to a whole number
            return k.select(k.select(y < 0, rest > 0, rest < 0), floored - 1, floored)
        zero = y.eq(0)
        safe = k.select(zero, 1, y)
        if x.dtype.kind == "u":
            return k.select(zero, 0, k.int_div(x, safe))
        minus = y.eq(-1)  # INT_MIN / -1 traps: negate instead, which wraps
        safe = k.select(minus, 1, safe)
        q = k.int_div(x, safe)
        r = k.int_rem(x, safe)
        floored = k.select(k.logical_and(r.ne(0), (r ^ safe) < 0), q - 1, q)
        return k.select(zero, 0, k.select(minus, 0 - x, floored))


class Remainder(Elementwise, name="remainder"):
    """Remainder with the sign of the divisor: x - y·⌊x / y⌋. An integer modulo zero gives 0.

    ``%0 = "smelt.remainder"(%x, %y) : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi32>``
    """

    x: Operand
    y: Operand
    symbol = "%"
    accepts = dtypes.REAL
    jumps = True
    flops = 8.0
    usual = dtypes.FLOATS

    @silent
    def reference(self, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        if np.issubdtype(x.dtype, np.integer):
            return np.where(y == 0, 0, np.remainder(x, y)).astype(x.dtype)
        return np.remainder(x, y).astype(x.dtype)

    def jvp(self, b: Builder, primals: Values, tangents: Tangents, results: Values) -> Tangents:
        (x, y), (tx, ty), (r,) = primals, tangents, results
        if ty is None:
            return [tx]
        # Not ⌊x / y⌋, where the quotient may have been rounded up to a whole number, or from below 0 to 0.
        infinite = b.equal(b.abs(y), b.full(y.shape, math.inf, y.dtype))
        part, least = r / y, b.full(y.shape, -1, y.dtype)
        whole = b.select(infinite, b.select(b.equal(r, y), least, part), b.round(x / y - part))
        return [b.add_any(tx, -(ty * b.stop_gradient(whole)))]

    def lower(self, k: ScalarBuilder, x: Scalar, y: Scalar) -> Scalar:
        if x.dtype.kind == "f":
            return elementary.floor_mod(k, x, y)
        zero = y.eq(0)
        safe = k.select(zero, 1, y)
        if x.dtype.kind == "i":
            safe = k.select(y.eq(-1), 1, safe)
        r = k.int_rem(x, safe)
        if x.dtype.kind == "i":
            r = k.select(k.logical_and(r.ne(0), (r ^ safe) < 0), r + safe, r)
        return k.select(zero, 0, r)


class Neg(Elementwise, name="neg"):
    """Negation: -x. Unsigned integers wrap.

    ``%0 = "smelt.neg"(%x) : (tensor<4xf32>) -> tensor<4xf32>``
    """

    primitive = "Negative"
    x: Operand
    formula = "-x"
    symbol = "-"
    linearity = "jointly"
    ufunc = np.negative

    @silent
    def reference(self, x: np.ndarray) -> np.ndarray:
        return np.negative(x)

    def transpose(self, b: Builder, cotangents: Cotangents, operands: Values, linear: Flags) -> Cotangents:
        return [-only(cotangents)]

    def lower(self, k: ScalarBuilder, x: Scalar) -> Scalar:
        return -x


class Abs(Elementwise, name="abs"):
    """Absolute value: |x|. Of a complex number, its modulus, in the dtype of its parts.

    The derivative at 0 is 0.

    ``%0 = "smelt.abs"(%x) : (tensor<4xf32>) -> tensor<4xf32>``
    """

    x: Operand

    def result_dtype(self, operand: DType) -> DType:
        return operand.real
    ufunc = np.abs

    @silent
    def reference(self, x: np.ndarray) -> np.ndarray:
        return np.abs(x)

    def jvp(self, b: Builder, primals: Values, tangents: Tangents, results: Values) -> Tangents:
        (x,), t, (y,) = primals, only(tangents), results
        if x.dtype.is_complex:  # d|z| = Re(conj(z) dz) / |z|
            zero = b.equal(y, b.zeros_like(y))
            numerator = b.real(t) * b.real(x) + b.imag(t) * b.imag(x)
            return [b.select(zero, b.zeros_like(y), numerator / b.select(zero, b.full(y.shape, 1, y.dtype), y))]
        return [t * b.sign(x)]

    def lower(self, k: ScalarBuilder, x: Scalar) -> Scalar:
        if x.dtype.kind == "f":
            return k.math("absf", x)
        if x.dtype.kind == "c":
            return elementary.complex_abs(k, x)
        return x if x.dtype.kind == "u" else k.select(x < 0, -x, x)


def _signs(x: np.ndarray) -> np.ndarray:
    """``np.sign``, which has a branch for each float."""
    if loops.signs is None or x.dtype.char not in "fd" or x.size < _LEAST_SIGNS:
        return np.sign(x)
    if not x.flags.c_contiguous and x.flags.f_contiguous:
        return _signs(x.T).T
    found = empty(x.shape, x.dtype)
    loops.signs(contiguous(x), found)
    return found


#: Elements from which on signs are worth a loop of their own.
_LEAST_SIGNS = 2048


class Sign(Elementwise, name="sign"):
    """Sign: -1, 0 (of -0, too) or 1; NaN for NaN. Of a complex number, z / |z|.

    ``%0 = "smelt.sign"(%x) : (tensor<4xf32>) -> tensor<4xf32>``
    """

    x: Operand
    accepts = dtypes.REAL
    jumps = True
    not_differentiable = NotDifferentiable("piecewise constant: the derivative is zero almost everywhere")
    ufunc = np.sign
    widens = True

    @silent
    def reference(self, x: np.ndarray) -> np.ndarray:
        return np.sign(x) + x.dtype.type(0)  # that of bfloat16 leaves -0 as it is

    def host_call(self, operands: Avals, result: Aval) -> HostCall | None:
        size, wide = result.size, result.dtype.is_float and result.dtype.size > 2
        is_worth = wide and not (type(size) is int and size < _LEAST_SIGNS)
        return HostCall(_signs) if is_worth else super().host_call(operands, result)

    def lower(self, k: ScalarBuilder, x: Scalar) -> Scalar:
        if x.dtype.kind == "u":
            return k.select(x.eq(0), 0, k.const(1, x.dtype))
        signed = k.select(x > 0, 1, k.select(x < 0, -1, k.const(0, x.dtype)))
        return signed if x.dtype.kind == "i" else k.select(k.isnan(x), x, signed)


class Maximum(Elementwise, name="maximum"):
    """Larger of two; NaN if either is NaN. Where they are equal the derivative is that of the second, as in MLX.

    ``%0 = "smelt.maximum"(%x, %y) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>``
    """

    x: Operand
    y: Operand
    formula = "max(x, y)"
    accepts = dtypes.ALL
    ufunc = np.maximum

    @silent
    def reference(self, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        return np.maximum(x, y)

    def jvp(self, b: Builder, primals: Values, tangents: Tangents, results: Values) -> Tangents:
        return [_extremum_tangent(b, primals, tangents, "greater")]

    def lower(self, k: ScalarBuilder, x: Scalar, y: Scalar) -> Scalar:
        return k.maximum(x, y)


class Minimum(Elementwise, name="minimum"):
    """Smaller of two; NaN if either is NaN. Where they are equal the derivative is that of the second, as in MLX.

    ``%0 = "smelt.minimum"(%x, %y) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>``
    """

    x: Operand
    y: Operand
    accepts = dtypes.ALL
    ufunc = np.minimum

    @silent
    def reference(self, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        return np.minimum(x, y)

    def jvp(self, b: Builder, primals: Values, tangents: Tangents, results: Values) -> Tangents:
        return [_extremum_tangent(b, primals, tangents, "less")]

    def lower(self, k: ScalarBuilder, x: Scalar, y: Scalar) -> Scalar:
        return k.minimum(x, y)


def _extremum_tangent(b: Builder, primals: Values, tangents: Tangents, wins: str) -> Value | None:
    """The tangent of the first where that wins, else that of the second."""
    (x, y), (tx, ty) = primals, tangents
    first = getattr(b, wins)(x, y)
    zero = b.zeros_like(x)
    return b.select(first, zero if tx is None else tx, zero if ty is None else ty)


class Clamp(Elementwise, name="clamp"):
    """x limited to [low, high]: min(max(x, low), high). The derivative at a limit is that of the limit, as in MLX.

    ``%0 = "smelt.clamp"(%low, %x, %high) : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>``
    """

    low: Operand
    x: Operand
    high: Operand
    accepts = dtypes.NUMERIC

    @silent
    def reference(self, low: np.ndarray, x: np.ndarray, high: np.ndarray) -> np.ndarray:
        return np.minimum(np.maximum(x, low), high)

    def jvp(self, b: Builder, primals: Values, tangents: Tangents, results: Values) -> Tangents:
        low, x, high = primals
        zero = b.zeros_like(x)
        below, above = b.less_equal(x, low), b.greater_equal(b.maximum(x, low), high)
        inside = b.logical_not(b.logical_or(below, above))
        chosen = (b.logical_and(below, b.logical_not(above)), inside, above)
        total = None
        for where, t in zip(chosen, tangents):
            if t is not None:
                total = b.add_any(total, b.select(where, t, zero))
        return [total]

    def lower(self, k: ScalarBuilder, low: Scalar, x: Scalar, high: Scalar) -> Scalar:
        return k.minimum(k.maximum(x, low), high)


class Sqrt(Elementwise, name="sqrt"):
    """Square root: √x; NaN below zero.

    ``%0 = "smelt.sqrt"(%x) : (tensor<4xf32>) -> tensor<4xf32>``
    """

    x: Operand
    accepts = dtypes.INEXACT
    flops = 4.0
    ufunc = np.sqrt

    @silent
    def reference(self, x: np.ndarray) -> np.ndarray:
        return np.sqrt(x)

    @slope_in_float32
    def jvp(self, b: Builder, primals: Values, tangents: Tangents, results: Values) -> Tangents:
        return [only(tangents) * 0.5 / results[0]]

    def lower(self, k: ScalarBuilder, x: Scalar) -> Scalar:
        return elementary.complex_sqrt(k, x) if x.dtype.kind == "c" else k.math("sqrt", x)


class Rsqrt(Elementwise, name="rsqrt"):
    """Reciprocal square root: 1 / √x.

    ``%0 = "smelt.rsqrt"(%x) : (tensor<4xf32>) -> tensor<4xf32>``
    """

    x: Operand
    accepts = dtypes.INEXACT
    flops = 8.0

    @silent
    def reference(self, x: np.ndarray) -> np.ndarray:
        return np.divide(np.ones_like(x), np.sqrt(x))

    def host_call(self, operands: Avals, result: Aval) -> HostCall | None:
        return HostCall(_rsqrt, (np.ones((), result.dtype.numpy),))

    @slope_in_float32
    def jvp(self, b: Builder, primals: Values, tangents: Tangents, results: Values) -> Tangents:
        return [only(tangents) * (results[0] / primals[0]) * -0.5]

    def lower(self, k: ScalarBuilder, x: Scalar) -> Scalar:
        root = elementary.complex_sqrt(k, x) if x.dtype.kind == "c" else k.math("sqrt", x)
        return 1 / root


def _rsqrt(x: np.ndarray, one: np.ndarray) -> np.ndarray:
    return np.divide(one, np.sqrt(x))


class IntegerPower(Elementwise, name="integer_power"):
    """x raised to a constant integer: xⁿ, by repeated squaring. x⁰ is 1, also for NaN.

    Integers take only n ≥ 0.

    ``%0 = "smelt.integer_power"(%x) {exponent = 3 : i64} : (tensor<4xf32>) -> tensor<4xf32>``
    """

    primitive = "Power"
    x: Operand
    exponent: Int
    flops = 3.0

    def infer(self, x: Aval, *, exponent: Int) -> Aval:
        if x.dtype.is_integer and exponent < 0:
            raise AttributeValueError(f"the exponent {exponent} of an integer must not be negative")
        return super().infer(x)

    @silent
    def reference(self, x: np.ndarray, *, exponent: Int) -> np.ndarray:
        if x.dtype.kind in "iuc":  # NumPy would want an integer of this dtype, and has other zeros of complex numbers
            result, square, n = None, x, abs(exponent)
            while n:
                if n & 1:
                    result = square if result is None else np.multiply(result, square)
                square, n = np.multiply(square, square), n >> 1
            result = np.ones_like(x) if result is None else result.copy()
            return np.divide(1, result, dtype=x.dtype) if exponent < 0 else result
        wide = np.float32 if x.dtype.itemsize == 2 else x.dtype
        return np.power(x.astype(wide), exponent).astype(x.dtype)

    def jvp(self, b: Builder, primals: Values, tangents: Tangents, results: Values, *, exponent: Int) -> Tangents:
        if exponent == 0:
            return [None]
        return [only(tangents) * (b.integer_power(primals[0], exponent=exponent - 1) * exponent)]

    def lower(self, k: ScalarBuilder, x: Scalar, *, exponent: Int) -> Scalar:
        result, square, n = None, x, abs(exponent)
        while n:
            if n & 1:
                result = square if result is None else result * square
            n >>= 1
            square = square * square if n else square
        result = k.const(1, x.dtype) if result is None else result
        return 1 / result if exponent < 0 else result
