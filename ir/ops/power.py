"""Powers, cube roots, and the angle of a point."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from .. import dtypes, elementary
from ..halves import in_float32
from ..kinds import Elementwise, silent, slope_in_float32
from ..op import Operand, Tangents, Values, only
from ..scalar import Scalar, ScalarBuilder

if TYPE_CHECKING:
    from ..builder import Builder


class Power(Elementwise, name="power"):
    """x raised to y: xʸ. Negative powers of integers are 0, but of 1 and -1; 0⁰ is 1.

    At x = 0 the derivative with respect to y is taken to be 0.

    ``%0 = "smelt.power"(%x, %y) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>``
    """

    x: Operand
    y: Operand
    symbol = "**"
    jumps = True
    flops = 50.0
    usual = dtypes.FLOATS

    @silent
    def reference(self, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        if x.dtype.kind in "iu":
            return integer_power_array(x, y)
        return in_float32(power_array, x, y)

    def jvp(self, b: Builder, primals: Values, tangents: Tangents, results: Values) -> Tangents:
        (x, y), (tx, ty), (z,) = primals, tangents, results
        dx = dy = None
        zero, one = b.zeros_like(x), b.full(x.shape, 1, x.dtype)
        if tx is not None:
            constant = b.equal(y, zero)
            # In float32 at least: an exponent less one that is rounded to 16 bits may be even where it is odd.
            wide = dtypes.float32 if x.dtype.is_float and x.dtype.size == 2 else x.dtype
            base, factor, exponent = (b.convert_to(v, wide) for v in (x, y, b.select(constant, one, y)))
            slope = b.convert_to(factor * b.power(base, exponent - 1), x.dtype)
            dx = tx * b.select(constant, zero, slope)
        if ty is not None:
            origin = b.equal(x, zero)
            dy = ty * b.select(origin, zero, z * b.log(b.select(origin, one, x)))
        return [b.add_any(dx, dy)]

    def lower(self, k: ScalarBuilder, x: Scalar, y: Scalar) -> Scalar:
        if x.dtype.kind == "c":
            return elementary.complex_power(k, x, y)
        return elementary.power(k, x, y) if x.dtype.kind == "f" else _integer_power(k, x, y)


def _integer_power(k: ScalarBuilder, x: Scalar, y: Scalar) -> Scalar:
    """x^y modulo 2^bits by repeated squaring, one step a bit of y."""
    signed = x.dtype.kind == "i"
    result, square = k.const(1, x.dtype), x
    for bit in range(x.dtype.bits - signed):
        result = k.select((y & (1 << bit)).ne(0), result * square, result)
        square = square * square
    if not signed:
        return result
    odd = (y & 1).ne(0)
    inverse = k.select(x.eq(1), 1, k.select(x.eq(-1), k.select(odd, -1, k.const(1, x.dtype)), 0))
    return k.select(y < 0, inverse, result)


def integer_power_array(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """`smelt.power` on integer arrays."""
    negative = y < 0
    with np.errstate(all="ignore"):
        result = np.power(x, np.where(negative, 0, y).astype(y.dtype))
    inverse = np.where(x == 1, 1, np.where(x == -1, np.where(y & 1, -1, 1), 0)) if x.dtype.kind == "i" else 0
    return np.where(negative, inverse, result).astype(x.dtype)


def power_array(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """`smelt.power` on floating or complex arrays."""
    result = np.power(x, y)
    return np.where(y == 0, np.ones_like(result), result) if x.dtype.kind == "c" else result


class Cbrt(Elementwise, name="cbrt"):
    """Real cube root: ∛x, that of negative numbers too. Its derivative at 0 is infinite.

    ``%0 = "smelt.cbrt"(%x) : (tensor<4xf32>) -> tensor<4xf32>``
    """

    x: Operand
    accepts = dtypes.FLOATS
    flops = 24.0
    ufunc = np.cbrt
    widens = True

    @silent
    def reference(self, x: np.ndarray) -> np.ndarray:
        return in_float32(np.cbrt, x)

    @slope_in_float32
    def jvp(self, b: Builder, primals: Values, tangents: Tangents, results: Values) -> Tangents:
        (y,), third = results, 1 / 3
        return [only(tangents) * third / (y * y)]

    def lower(self, k: ScalarBuilder, x: Scalar) -> Scalar:
        return elementary.cbrt(k, x)


class Arctan2(Elementwise, name="arctan2"):
    """The angle of the point (x, y), in [-π, π]: arg(x + iy). The first operand is y.

    At the origin, where there is none, the derivative is taken to be 0. It is 0 also at infinity, which is its limit.

    ``%0 = "smelt.arctan2"(%y, %x) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>``
    """

    primitive = "ArcTan2"
    y: Operand
    x: Operand
    accepts = dtypes.FLOATS
    jumps = True
    flops = 24.0

    @silent
    def reference(self, y: np.ndarray, x: np.ndarray) -> np.ndarray:
        return in_float32(np.arctan2, y, x)

    def jvp(self, b: Builder, primals: Values, tangents: Tangents, results: Values) -> Tangents:
        (y, x), (ty, tx) = primals, tangents
        # In units of the larger coordinate, so that no square overflows or vanishes.
        scale = b.maximum(b.abs(x), b.abs(y))
        zero, one = b.zeros_like(x), b.full(x.shape, 1, x.dtype)
        infinite = b.equal(scale, b.full(x.shape, math.inf, x.dtype))
        scale = b.select(b.logical_or(infinite, b.equal(scale, zero)), one, scale)
        y, x = (b.select(infinite, zero, v / scale) for v in (y, x))
        square = x * x + y * y
        square = scale * b.select(b.equal(square, zero), one, square)
        dy = None if ty is None else ty * (x / square)
        dx = None if tx is None else -(tx * (y / square))
        return [b.add_any(dy, dx)]

    def lower(self, k: ScalarBuilder, y: Scalar, x: Scalar) -> Scalar:
        return elementary.arctan2(k, y, x)
