"""Discrete Fourier transforms of the last axis by smelt's own loops, or by pocketfft, which is NumPy's.

All three are linear. Their transposes are of the bilinear pairing, as everywhere: without conjugation, and of real
and complex numbers by the real part.
"""

from __future__ import annotations

import cmath
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np

from .. import dtypes, fourier
from ..dtypes import DType
from ..errors import AttributeValueError
from ..kinds import silent
from ..library import Library
from ..locks import unforked
from ..op import Bool, Cotangents, Flags, Int, Operand, Str, Values, only, require

if TYPE_CHECKING:
    from ..builder import Builder, Value

_Norm: TypeAlias = Literal["backward", "ortho", "forward"]
#: What results are multiplied by, 1, 1/√n or 1/n, and NumPy's names of that: for a transform, and for its inverse.
SCALES: dict[str, tuple[_Norm, _Norm]] = {
    "none": ("backward", "forward"), "ortho": ("ortho", "ortho"), "mean": ("forward", "backward"),
}  # fmt: skip


#: Whether NumPy's transforms write into an array that they are given: from NumPy 2 on.
_TAKES_OUT = np.lib.NumpyVersion(np.__version__) >= "2.0.0"


def scale_factor(scale: str, n: int) -> float:
    """What the sums of a transform of n numbers are multiplied by."""
    return {"none": 1.0, "ortho": 1 / math.sqrt(n), "mean": 1 / n}[scale]


def _complex_of(x: np.ndarray) -> np.dtype[Any]:
    return dtypes.of(x.dtype).complex.numpy


def _check(n: int, scale: str) -> None:
    require(n >= 1, "a Fourier transform needs at least one element along its axis")
    known = ", ".join(SCALES)
    require(scale in SCALES, f"scale is {scale!r}, must be one of {known}", AttributeValueError)


class Fft(Library, name="fft"):
    """The discrete Fourier transform: result[k] = s · Σⱼ x[j] · e^(-2πijk/n), or with e^(+2πijk/n) if `inverse`.

    s is 1 ("none"), 1/√n ("ortho") or 1/n ("mean").

    ``%0 = "smelt.fft"(%x) {inverse = false, scale = "none"} : (tensor<2x6xcomplex<f32>>) -> tensor<2x6xcomplex<f32>>``
    """

    primitive = "FFT"
    x: Operand
    inverse: Bool = False
    scale: Str = "none"
    core = "(n)->(n)"
    accepts = dtypes.COMPLEX
    shared_seconds = fourier.SECONDS
    takes_out = True
    linearity = "jointly"

    def extents(self, dims: dict[str, int], *, inverse: Bool, scale: Str) -> dict[str, int]:
        _check(dims["n"], scale)
        return {}

    def host(self, x: np.ndarray, *, inverse: Bool, scale: Str) -> np.ndarray:
        return self.host_into(None, x, inverse=inverse, scale=scale)

    @silent
    def host_into(self, out: np.ndarray | None, /, x: np.ndarray, *, inverse: Bool, scale: Str) -> np.ndarray:
        found = fourier.fft(x, inverse, scale_factor(scale, x.shape[-1]), out)
        if found is None:
            found = (np.fft.ifft if inverse else np.fft.fft)(x, norm=SCALES[scale][inverse])
        return found.astype(x.dtype, copy=False)

    def host_of_views(self, x: np.ndarray, *, inverse: Bool, scale: Str) -> np.ndarray | None:
        return fourier.fft_of_columns(x, inverse, scale_factor(scale, x.shape[-1]))

    @silent
    def reference(self, x: np.ndarray, *, inverse: Bool, scale: Str) -> np.ndarray:
        found = _fourier(x.astype(np.complex128), 1 if inverse else -1) * scale_factor(scale, x.shape[-1])
        return found.astype(x.dtype)

    def transpose(
        self, b: Builder, cotangents: Cotangents, operands: Values, linear: Flags, *, inverse: Bool, scale: Str
    ) -> Cotangents:
        """Its matrix is symmetric."""
        return [b.fft(only(cotangents), inverse=inverse, scale=scale)]


class Rfft(Library, name="rfft"):
    """The first n/2 + 1 elements of the Fourier transform of n real numbers; the others are their conjugates.

    ``%0 = "smelt.rfft"(%x) {scale = "none"} : (tensor<2x6xf32>) -> tensor<2x4xcomplex<f32>>``
    """

    primitive = "FFT"
    x: Operand
    scale: Str = "none"
    core = "(n)->(k)"
    accepts = (dtypes.float32, dtypes.float64)
    shared_seconds = fourier.SECONDS
    takes_out = True
    linearity = "jointly"

    def extents(self, dims: dict[str, int], *, scale: Str) -> dict[str, int]:
        _check(dims["n"], scale)
        return {"k": dims["n"] // 2 + 1}

    def result_dtypes(self, operand: DType, *, scale: Str) -> Sequence[DType]:
        return [operand.complex]

    def host(self, x: np.ndarray, *, scale: Str) -> np.ndarray:
        return self.host_into(None, x, scale=scale)

    @silent
    def host_into(self, out: np.ndarray | None, /, x: np.ndarray, *, scale: Str) -> np.ndarray:
        found = fourier.rfft(x, scale_factor(scale, x.shape[-1]), out)
        if found is None:
            found = np.fft.rfft(x, norm=SCALES[scale][0])
        return found.astype(_complex_of(x), copy=False)

    @silent
    def reference(self, x: np.ndarray, *, scale: Str) -> np.ndarray:
        n = x.shape[-1]
        found = _fourier(x.astype(np.complex128), -1) * scale_factor(scale, n)
        return found[..., : n // 2 + 1].astype(_complex_of(x))

    def transpose(
        self, b: Builder, cotangents: Cotangents, operands: Values, linear: Flags, *, scale: Str
    ) -> Cotangents:
        """x̄[j] = s · Re Σₖ ȳ[k] · e^(-2πijk/n), where the inverse takes most ȳ twice."""
        ct, (x,) = only(cotangents), operands
        n = x.shape[-1]
        real, imag = b.real(ct), b.imag(ct)
        weights = _weights(b, real, n, 0.5)
        return [b.irfft(b.complex(real * weights, -imag * weights), n=n, scale=scale)]


class Irfft(Library, name="irfft"):
    """n real numbers from the first n/2 + 1 elements x of what stands for a transform with symmetry.

    result[j] = s · Σₖ x[k] · e^(+2πijk/n), where x[n - k] is the conjugate of x[k]; the imaginary part of x[0], and
    of x[n/2] where n is even, count as 0.

    ``%0 = "smelt.irfft"(%x) {n = 6 : i64, scale = "mean"} : (tensor<2x4xcomplex<f32>>) -> tensor<2x6xf32>``
    """

    primitive = "FFT"
    x: Operand
    n: Int
    scale: Str = "none"
    core = "(k)->(n)"
    accepts = dtypes.COMPLEX
    shared_seconds = fourier.SECONDS
    takes_out = True
    linearity = "jointly"

    def extents(self, dims: dict[str, int], *, n: Int, scale: Str) -> dict[str, int]:
        _check(n, scale)
        require(dims["k"] == n // 2 + 1, f"{n} real numbers have {n // 2 + 1} coefficients, x has {dims['k']}")
        return {"n": n}

    def result_dtypes(self, operand: DType, *, n: Int, scale: Str) -> Sequence[DType]:
        return [operand.real]

    def host(self, x: np.ndarray, *, n: Int, scale: Str) -> np.ndarray:
        return self.host_into(None, x, n=n, scale=scale)

    @silent
    def host_into(self, out: np.ndarray | None, /, x: np.ndarray, *, n: Int, scale: Str) -> np.ndarray:
        found = fourier.irfft(x, n, scale_factor(scale, n), out)
        if found is None:
            fits = _TAKES_OUT and out is not None and out.dtype == x.real.dtype
            into: dict[str, Any] = {"out": out} if fits else {}
            found = np.fft.irfft(x, n, norm=SCALES[scale][1], **into)
        return found.astype(x.real.dtype, copy=False)

    @silent
    def reference(self, x: np.ndarray, *, n: Int, scale: Str) -> np.ndarray:
        whole = np.zeros((*x.shape[:-1], n), np.complex128)
        whole[..., : n // 2 + 1] = x
        whole[..., n - (n - 1) // 2 :] = x[..., (n - 1) // 2 : 0 : -1].conj()
        for k in {0, n // 2 if n % 2 == 0 else 0}:
            whole[..., k] = whole[..., k].real
        return (_fourier(whole, 1).real * scale_factor(scale, n)).astype(x.real.dtype)

    def transpose(
        self, b: Builder, cotangents: Cotangents, operands: Values, linear: Flags, *, n: Int, scale: Str
    ) -> Cotangents:
        """x̄[k] = w · Σⱼ ȳ[j] · e^(+2πijk/n), with w = 2 where x[n - k] is another element than x[k]."""
        found = b.rfft(only(cotangents), scale=scale)
        real, imag = b.real(found), b.imag(found)
        weights = _weights(b, real, n, 2.0)
        return [b.complex(real * weights, -imag * weights)]


def _weights(b: Builder, x: Value, n: int, inner: float) -> Value:
    """1 for the coefficients that are their own partners, 0 and n/2, `inner` for the others; in the shape of x."""
    return b.select(inside(b, x, n), b.full(x.shape, inner, x.dtype), b.full(x.shape, 1.0, x.dtype))


def inside(b: Builder, x: Value, n: int) -> Value:
    """Where in the shape of x, the coefficients of n real numbers, one is not its own partner."""
    k = b.iota(shape=x.shape, axis=x.ndim - 1, dtype=dtypes.int32)
    return b.logical_and(b.greater(k, b.full(x.shape, 0, k.dtype)), b.less(k, b.full(x.shape, (n + 1) // 2, k.dtype)))


#: Coefficients that are summed at a time, of a transform of a large prime.
_ROWS = 256


@unforked
def _fourier(x: np.ndarray, sign: int) -> np.ndarray:
    """Σⱼ x[j] · e^(±2πijk/n) along the last axis: by the definition for primes, else by Cooley and Tukey's recursion."""
    n = x.shape[-1]
    p = next((p for p in range(2, math.isqrt(n) + 1) if n % p == 0), n)
    turn = cmath.pi * 2j * sign / n
    if p == n:
        found = np.empty(x.shape, np.complex128)
        for start in range(0, n, _ROWS):
            k = np.arange(start, min(start + _ROWS, n))
            found[..., k] = x @ np.exp(turn * (np.arange(n)[:, None] * k % n))
        return found
    parts = [_fourier(x[..., j::p], sign) for j in range(p)]
    k = np.arange(n)
    return sum(np.tile(part, p) * np.exp(turn * (j * k % n)) for j, part in enumerate(parts))  # type: ignore[return-value]
