"""Conversion between dtypes, parts of complex numbers, and the end of a derivative."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from .. import dtypes, halves
from ..aval import Aval
from ..dtypes import DType
from ..errors import DTypeError
from ..kinds import Elementwise, silent
from ..op import (
    Avals,
    Batched,
    Cotangents,
    Dims,
    Element,
    Flags,
    HostCall,
    NotDifferentiable,
    Op,
    Operand,
    Tangents,
    Values,
    only,
    require_dtype,
)
from ..scalar import Scalar, ScalarBuilder

if TYPE_CHECKING:
    from ..builder import Builder


class Convert(Elementwise, name="convert"):
    """x in another dtype. Floats to integers truncate and saturate, NaN to 0; integers wrap;
    complex to real drops the imaginary part; bool is x ≠ 0.

    ``%0 = "smelt.convert"(%x) {dtype = bf16} : (tensor<4xf32>) -> tensor<4xbf16>``
    """

    primitive = "AsType"
    x: Operand
    dtype: Element
    accepts = dtypes.ALL
    linearity = "jointly"

    def result_dtype(self, operand: DType, *, dtype: Element) -> DType:
        return dtype

    @silent
    def reference(self, x: np.ndarray, *, dtype: Element) -> np.ndarray:
        return convert_array(x, dtype)

    def host_call(self, operands: Avals, result: Aval, *, dtype: Element) -> HostCall | None:
        given = operands[0].dtype
        drops = given.is_complex and not dtype.is_complex
        if drops or given is dtypes.bool_ or (given.is_inexact and not dtype.is_inexact):
            return None  # `convert_array` does more
        return HostCall(halves.convert if given.size + dtype.size == 6 else np.ndarray.astype, (dtype.numpy,))

    def jvp(self, b: Builder, primals: Values, tangents: Tangents, results: Values, *, dtype: Element) -> Tangents:
        return [b.convert_to(only(tangents), dtype) if dtype.is_inexact else None]

    def transpose(
        self, b: Builder, cotangents: Cotangents, operands: Values, linear: Flags, *, dtype: Element
    ) -> Cotangents:
        return [b.convert_to(only(cotangents), operands[0].dtype)]

    def lower(self, k: ScalarBuilder, x: Scalar, *, dtype: Element) -> Scalar:
        return k.convert(x, dtype)


_LIMITS = {dtype.name: np.iinfo(dtype.numpy) for dtype in dtypes.ALL if dtype.is_integer}


def convert_array(x: np.ndarray, dtype: DType) -> np.ndarray:
    """`smelt.convert` on a NumPy array."""
    if x.dtype.kind == "c" and not dtype.is_complex and dtype is not dtypes.bool_:
        x = x.real
    if dtypes.of(x.dtype).is_float and dtype.is_integer:
        info = _LIMITS[dtype.name]
        if x.dtype.kind == "f" and x.size and float(x.min()) >= info.min and float(x.max()) <= info.max:  # neither of NaN
            return x.astype(dtype.numpy)
        wide = x.astype(np.float64)
        high = float(info.max) + (0 if info.max < 2**53 else 1)
        inside = (wide > info.min - 1.0) & (wide < high + (1 if info.max < 2**53 else 0))
        result = np.where(inside, wide, 0).astype(dtype.numpy)
        result = np.where(wide >= high, np.array(info.max, dtype.numpy), result)
        return np.where(~inside & (wide < 0), np.array(info.min, dtype.numpy), result).astype(dtype.numpy)
    if x.dtype.kind == "b" and dtype is dtypes.bfloat16:  # its cast takes a byte such as 2 for a number
        x = x.view(np.uint8) != 0
    return halves.convert(x, dtype.numpy)


class Bitcast(Elementwise, name="bitcast"):
    """The same bits read as another dtype of the same size.

    ``%0 = "smelt.bitcast"(%x) {dtype = i32} : (tensor<4xf32>) -> tensor<4xi32>``
    """

    primitive = "View"
    x: Operand
    dtype: Element
    accepts = dtypes.REAL
    not_differentiable = NotDifferentiable("the result is a bit pattern")

    def infer(self, x: Aval, *, dtype: Element) -> Aval:
        require_dtype(x, self.accepts)
        if dtype not in self.accepts or dtype.size != x.dtype.size:
            raise DTypeError(f"cannot read {x.dtype.name} as {dtype.name}: sizes differ or kind has no bits")
        return Aval(x.shape, dtype)

    def reference(self, x: np.ndarray, *, dtype: Element) -> np.ndarray:
        return x.view(dtype.numpy)

    def lower(self, k: ScalarBuilder, x: Scalar, *, dtype: Element) -> Scalar:
        return k.bitcast_storage(x, dtype)


class ByteView(Op, name="byte_view"):
    """The bytes of x read as another dtype of one byte. A bool is a byte: all but 0 count as True.

    No kernel computes it: the result is the operand's memory, so that a bool keeps a byte such as 2.

    ``%0 = "smelt.byte_view"(%x) {dtype = i1} : (tensor<4xui8>) -> tensor<4xi1>``
    """

    primitive = "View"
    kind = "view"
    is_view = True
    x: Operand
    dtype: Element
    accepts = (dtypes.bool_, dtypes.uint8, dtypes.int8)
    not_differentiable = NotDifferentiable("the result is a bit pattern")
    flops = 0.0

    def infer(self, x: Aval, *, dtype: Element) -> Aval:
        require_dtype(x, self.accepts)
        if dtype not in self.accepts:
            raise DTypeError(f"cannot read {x.dtype.name} as {dtype.name}: not a dtype of one byte")
        return Aval(x.shape, dtype)

    def reference(self, x: np.ndarray, *, dtype: Element) -> np.ndarray:
        return x.view(dtype.numpy)

    def batch(self, b: Builder, operands: Values, dims: Dims, *, dtype: Element) -> Batched:
        return b.emit(self, operands, {"dtype": dtype}), list(dims)


class Real(Elementwise, name="real"):
    """Real part of a complex number.

    ``%0 = "smelt.real"(%x) : (tensor<4xcomplex<f32>>) -> tensor<4xf32>``
    """

    x: Operand
    accepts = dtypes.COMPLEX
    linearity = "jointly"

    def result_dtype(self, operand: DType) -> DType:
        return operand.real

    def reference(self, x: np.ndarray) -> np.ndarray:
        return np.real(x)

    def transpose(self, b: Builder, cotangents: Cotangents, operands: Values, linear: Flags) -> Cotangents:
        return [b.complex(only(cotangents), b.zeros_like(only(cotangents)))]

    def lower(self, k: ScalarBuilder, x: Scalar) -> Scalar:
        return k.real(x)


class Imag(Elementwise, name="imag"):
    """Imaginary part of a complex number.

    ``%0 = "smelt.imag"(%x) : (tensor<4xcomplex<f32>>) -> tensor<4xf32>``
    """

    x: Operand
    accepts = dtypes.COMPLEX
    linearity = "jointly"

    def result_dtype(self, operand: DType) -> DType:
        return operand.real

    def reference(self, x: np.ndarray) -> np.ndarray:
        return np.imag(x)

    def transpose(self, b: Builder, cotangents: Cotangents, operands: Values, linear: Flags) -> Cotangents:
        ct = only(cotangents)
        return [b.complex(b.zeros_like(ct), -ct)]  # Im(z) = Re(-iz), and Re's transpose embeds

    def lower(self, k: ScalarBuilder, x: Scalar) -> Scalar:
        return k.imag(x)


class Complex(Elementwise, name="complex"):
    """A complex number from real and imaginary part: x + iy.

    ``%0 = "smelt.complex"(%x, %y) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xcomplex<f32>>``
    """

    x: Operand
    y: Operand
    accepts = (dtypes.float32, dtypes.float64)
    linearity = "jointly"

    def result_dtype(self, operand: DType) -> DType:
        return operand.complex

    def reference(self, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        # Not x + 1j * y, which loses signs of zeros and the bits of NaN.
        out = np.empty(x.shape, dtypes.of(x.dtype).complex.numpy)
        out.real, out.imag = x, y
        return out

    def transpose(self, b: Builder, cotangents: Cotangents, operands: Values, linear: Flags) -> Cotangents:
        ct = only(cotangents)
        return [b.real(ct) if linear[0] else None, -b.imag(ct) if linear[1] else None]

    def lower(self, k: ScalarBuilder, x: Scalar, y: Scalar) -> Scalar:
        return k.complex(x, y)


class StopGradient(Elementwise, name="stop_gradient"):
    """The identity, whose derivative is zero.

    ``%0 = "smelt.stop_gradient"(%x) : (tensor<4xf32>) -> tensor<4xf32>``
    """

    x: Operand
    accepts = dtypes.ALL
    not_differentiable = NotDifferentiable("that is its purpose")

    def reference(self, x: np.ndarray) -> np.ndarray:
        return x

    def host_call(self, operands: Avals, result: Aval) -> HostCall | None:
        return HostCall(None)

    def lower(self, k: ScalarBuilder, x: Scalar) -> Scalar:
        return x
