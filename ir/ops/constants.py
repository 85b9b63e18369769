"""Constants: one number, or a small array."""

from __future__ import annotations

import numpy as np

from .. import dtypes
from ..aval import Aval
from ..dtypes import DType
from ..errors import DTypeError
from ..index import Coordinates
from ..kinds import Fetch, Nullary
from ..op import Array, Avals, Element, HostCall, Number
from ..scalar import Scalar, ScalarBuilder
from ..symbolic import Symbol
from .conversion import convert_array


class Constant(Nullary, name="constant"):
    """A scalar constant.

    ``%0 = "smelt.constant"() {value = 5.000000e-01 : f64, dtype = f32} : () -> tensor<f32>``
    """

    kind = "constant"
    value: Number
    dtype: Element

    def infer(self, *, value: Number, dtype: Element) -> Aval:
        if isinstance(value, complex) and not dtype.is_complex:
            raise DTypeError(f"a complex value cannot be a {dtype.name}")
        return Aval((), dtype)

    def reference(self, *, value: Number, dtype: Element) -> np.ndarray:
        return constant_array(value, dtype)

    def host_call(self, operands: Avals, result: Aval, *, value: Number, dtype: Element) -> HostCall | None:
        if type(value) is Symbol:
            return HostCall(constant_array, (value, dtype))
        return HostCall(constant_array(value, dtype).copy)

    def element(
        self, k: ScalarBuilder, index: Coordinates, fetch: Fetch, operands: Avals, result: Aval,
        *, value: Number, dtype: Element,
    ) -> Scalar:  # fmt: skip
        return k.const(constant_array(value, dtype).item(), dtype)


def constant_array(value: Number, dtype: DType) -> np.ndarray:
    """A Python scalar as a 0-d array of `dtype`: integers wrap, floats round once, or become integers as by `convert`."""
    if dtype.is_integer and not isinstance(value, (bool, float)):
        bits = dtype.bits
        value = int(value) & ((1 << bits) - 1)
        if dtype.kind == "i" and value >> (bits - 1):
            value -= 1 << bits
    with np.errstate(all="ignore"):
        if dtype.is_integer and isinstance(value, float):
            return convert_array(np.array(value), dtype)
        return np.array(value).astype(dtype.numpy)


class Literal(Nullary, name="literal"):
    """A small constant array.

    ``%0 = "smelt.literal"() {value = dense<[1, 2]> : tensor<2xi32>} : () -> tensor<2xi32>``
    """

    kind = "literal"
    value: Array

    def infer(self, *, value: Array) -> Aval:
        return Aval(value.shape, dtypes.of(value.dtype))

    def reference(self, *, value: Array) -> np.ndarray:
        return value

    def element(
        self, k: ScalarBuilder, index: Coordinates, fetch: Fetch, operands: Avals, result: Aval, *, value: Array
    ) -> Scalar:
        return k.literal_element(value, result, index)
