"""Constants: one number, or a small array."""

from __future__ import annotations

import numpy as np

from .. import dtypes
from ..aval import Aval
from ..errors import DTypeError
from ..kinds import Fusible
from ..op import Array, Element, Number


class Constant(Fusible, name="constant"):
    """A scalar constant.

    ``%0 = "smelt.constant"() {value = 5.000000e-01 : f64, dtype = f32} : () -> tensor<f32>``
    """

    kind = "constant"
    value: Number
    dtype: Element
    flops = 0.0
    linearity = "jointly"

    def infer(self, *, value, dtype):
        if isinstance(value, complex) and not dtype.is_complex:
            raise DTypeError(f"a complex value cannot be a {dtype.name}")
        return Aval((), dtype)

    def reference(self, *, value, dtype):
        return constant_array(value, dtype)

    def jvp(self, b, primals, tangents, results, **_):
        return [None]

    def transpose(self, b, cotangents, operands, linear, **_):
        return []

    def batch(self, b, operands, dims, **attrs):
        return b.emit(self, operands, attrs), [None]

    def element(self, k, index, fetch, operands, result, *, value, dtype):
        return k.const(constant_array(value, dtype).item(), dtype)


def constant_array(value, dtype: dtypes.DType) -> np.ndarray:
    """A Python scalar as a 0-d array of `dtype`; integers wrap, floats round once."""
    if dtype.is_integer and not isinstance(value, (bool, float)):
        bits = dtype.bits
        value = int(value) & ((1 << bits) - 1)
        if dtype.kind == "i" and value >> (bits - 1):
            value -= 1 << bits
    with np.errstate(all="ignore"):
        return np.array(value).astype(dtype.numpy)


class Literal(Fusible, name="literal"):
    """A small constant array.

    ``%0 = "smelt.literal"() {value = dense<[1, 2]> : tensor<2xi32>} : () -> tensor<2xi32>``
    """

    kind = "literal"
    value: Array
    flops = 0.0
    linearity = "jointly"

    def infer(self, *, value):
        return Aval(value.shape, dtypes.of(value.dtype))

    def reference(self, *, value):
        return value

    def jvp(self, b, primals, tangents, results, **_):
        return [None]

    def transpose(self, b, cotangents, operands, linear, **_):
        return []

    def batch(self, b, operands, dims, **attrs):
        return b.emit(self, operands, attrs), [None]

    def element(self, k, index, fetch, operands, result, *, value):
        return k.literal_element(value, result, index)
