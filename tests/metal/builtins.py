"""Functions of Metal's library and what they compute, stated with NumPy in float64 or with Python's integers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np

#: Metal's name → NumPy's type.
FLOATS = {"float": np.dtype(np.float32), "half": np.dtype(np.float16), "bfloat": np.dtype(ml_dtypes.bfloat16)}
INTEGERS = {
    "char": np.dtype(np.int8), "uchar": np.dtype(np.uint8), "short": np.dtype(np.int16), "ushort": np.dtype(np.uint16),
    "int": np.dtype(np.int32), "uint": np.dtype(np.uint32), "long": np.dtype(np.int64), "ulong": np.dtype(np.uint64),
}  # fmt: skip


@dataclass(frozen=True)
class Function:
    """A function: its call, of x, y and z, and the same on float64 or on one Python integer each.

    `ulp` bounds the error in units of the result's type; `low` and `high` where the operands lie.
    """

    call: str
    meaning: Callable[..., Any]
    ulp: float = 0
    low: float = -4
    high: float = 4
    vectors: bool = True


def _round(x: np.ndarray) -> np.ndarray:
    return np.copysign(np.floor(np.abs(x) + 0.5), x)


def _order(which: Callable[[list[np.ndarray]], np.ndarray]) -> Callable[..., np.ndarray]:
    return lambda *x: which(list(x))


_MIDDLE = _order(lambda x: np.sort(np.stack(x), axis=0)[1])
_LEAST, _MOST = _order(lambda x: np.minimum.reduce(x)), _order(lambda x: np.maximum.reduce(x))

FLOAT_FUNCTIONS = [
    Function("acos(x)", np.arccos, 2, -1, 1), Function("acosh(x)", np.arccosh, 3, 1, 50),
    Function("asin(x)", np.arcsin, 2, -1, 1), Function("asinh(x)", np.arcsinh, 3), Function("atan(x)", np.arctan, 2),
    Function("atanh(x)", np.arctanh, 3, -0.99, 0.99), Function("ceil(x)", np.ceil), Function("cos(x)", np.cos, 2),
    Function("cosh(x)", np.cosh, 2), Function("cospi(x)", lambda x: np.cos(np.pi * x), 4, -9, 9),
    Function("exp(x)", np.exp, 2), Function("exp2(x)", np.exp2, 2), Function("exp10(x)", lambda x: 10.0**x, 4),
    Function("fabs(x)", np.abs), Function("abs(x)", np.abs), Function("floor(x)", np.floor),
    Function("fract(x)", lambda x: x - np.floor(x), 1), Function("log(x)", np.log, 2, 0.01, 90),
    Function("log2(x)", np.log2, 2, 0.01, 90), Function("log10(x)", np.log10, 2, 0.01, 90),
    Function("rint(x)", np.rint), Function("round(x)", _round),
    Function("rsqrt(x)", lambda x: 1 / np.sqrt(x), 2, 0.1, 90),
    Function("sign(x)", np.sign), Function("sin(x)", np.sin, 2), Function("sinh(x)", np.sinh, 2),
    Function("sinpi(x)", lambda x: np.sin(np.pi * x), 4, -9, 9), Function("sqrt(x)", np.sqrt, 1, 0, 90),
    Function("tan(x)", np.tan, 2, -1.5, 1.5), Function("tanh(x)", np.tanh, 2),
    Function("tanpi(x)", lambda x: np.tan(np.pi * x), 5, -0.45, 0.45), Function("trunc(x)", np.trunc),
    Function("saturate(x)", lambda x: np.clip(x, 0, 1)), Function("degrees(x)", np.degrees, 2),
    Function("radians(x)", np.radians, 2), Function("atan2(x, y)", np.arctan2, 3),
    Function("copysign(x, y)", np.copysign), Function("divide(x, y)", np.divide, 1, 0.5, 9),
    Function("fdim(x, y)", lambda x, y: np.maximum(x - y, 0), 1), Function("fmax(x, y)", np.fmax),
    Function("fmin(x, y)", np.fmin), Function("max(x, y)", np.fmax), Function("min(x, y)", np.fmin),
    Function("fmod(x, y)", np.fmod, 0, 0.5, 9), Function("pow(x, y)", np.power, 3, 0.2, 4),
    Function("powr(x, y)", np.power, 3, 0.2, 4), Function("step(x, y)", lambda x, y: (y >= x) * 1.0),
    Function("fma(x, y, z)", lambda x, y, z: x * y + z, 1),
    Function("mix(x, y, z)", lambda x, y, a: x + (y - x) * a, 8, 0.1, 1),
    Function("clamp(x, T(-1), T(1))", lambda x: np.clip(x, -1, 1)), Function("max3(x, y, z)", _MOST),
    Function("min3(x, y, z)", _LEAST), Function("median3(x, y, z)", _MIDDLE, vectors=False),
    Function("fmax3(x, y, z)", _MOST), Function("fmin3(x, y, z)", _LEAST),
    Function("fmedian3(x, y, z)", _MIDDLE, vectors=False), Function("precise::exp(x)", np.exp, 2),
    Function("fast::sin(x)", np.sin, 2), Function("precise::divide(x, y)", np.divide, 1, 0.5, 9),
    Function("select(x, y, x < y)", np.maximum), Function("metal::precise::sqrt(x)", np.sqrt, 1, 0, 90),
]  # fmt: skip


def _signed(bits: int, signed: bool) -> tuple[int, int]:
    return (-(1 << bits - 1), (1 << bits - 1) - 1) if signed else (0, (1 << bits) - 1)


class Whole:
    """The integers of a Metal type, and its functions on Python's integers, which do not wrap."""

    def __init__(self, dtype: np.dtype[Any]) -> None:
        self.bits, self.signed = 8 * dtype.itemsize, dtype.kind == "i"
        self.low, self.high = _signed(self.bits, self.signed)
        self.mask = (1 << self.bits) - 1

    def wrap(self, x: int) -> int:
        """As the type keeps it."""
        x &= self.mask
        return x - (1 << self.bits) if self.signed and x >> (self.bits - 1) else x

    def saturate(self, x: int) -> int:
        return min(max(x, self.low), self.high)

    def bit_list(self, x: int) -> str:
        return format(x & self.mask, f"0{self.bits}b")

    def functions(self) -> list[Function]:
        """The functions of integers."""
        b, text = self.bits, self.bit_list
        half_bits = b // 2

        def insert(x: int, y: int) -> int:
            hole = ((1 << half_bits) - 1) << 2
            return self.wrap((x & self.mask & ~hole) | ((y << 2) & hole))

        def extract(x: int) -> int:
            part = (x & self.mask) >> 2 & ((1 << half_bits) - 1)
            return part - (1 << half_bits) if self.signed and part >> (half_bits - 1) else part

        return [
            Function("abs(x)", lambda x: self.wrap(abs(x))),
            Function("absdiff(x, y)", lambda x, y: self.wrap(abs(x - y))),
            Function("addsat(x, y)", lambda x, y: self.saturate(x + y)),
            Function("subsat(x, y)", lambda x, y: self.saturate(x - y)),
            Function("hadd(x, y)", lambda x, y: (x + y) >> 1), Function("rhadd(x, y)", lambda x, y: (x + y + 1) >> 1),
            Function("mulhi(x, y)", lambda x, y: self.wrap(x * y >> b)),
            Function("madhi(x, y, z)", lambda x, y, z: self.wrap((x * y >> b) + z)),
            Function("madsat(x, y, z)", lambda x, y, z: self.saturate(x * y + z)),
            Function("max(x, y)", max), Function("min(x, y)", min), Function("max3(x, y, z)", max),
            Function("min3(x, y, z)", min), Function("median3(x, y, z)", lambda *x: sorted(x)[1], vectors=False),
            Function("clamp(x, min(y, z), max(y, z))", lambda x, y, z: min(max(x, min(y, z)), max(y, z))),
            Function("clz(x)", lambda x: b - (x & self.mask).bit_length()),
            Function("ctz(x)", lambda x: b if not x else (x & -x).bit_length() - 1),
            Function("popcount(x)", lambda x: text(x).count("1")),
            Function("reverse_bits(x)", lambda x: self.wrap(int(text(x)[::-1], 2))),
            Function("rotate(x, y)", lambda x, y: self.wrap(int(text(x)[y % b :] + text(x)[: y % b], 2))),
            Function(f"extract_bits(x, 2, {half_bits})", extract),
            Function(f"insert_bits(x, y, 2, {half_bits})", insert),
        ]  # fmt: skip


def ulps(found: np.ndarray, wanted: np.ndarray, dtype: np.dtype[Any]) -> float:
    """The largest distance in units of the last place of `dtype`; numbers below 2**-30 count as such."""
    info = ml_dtypes.finfo(dtype)
    size = np.maximum(np.abs(wanted), max(float(info.smallest_normal), 2.0**-30))
    unit = np.exp2(np.floor(np.log2(size))) * float(info.eps)
    difference = np.abs(found.astype(np.float64) - wanted)
    return float(np.max(np.where(np.isnan(wanted) & np.isnan(found.astype(np.float64)), 0, difference) / unit))


def arity(call: str) -> int:
    """How many operands a call has."""
    return 3 if "z" in call.rpartition("::")[2].replace("clz", "").replace("ctz", "") else 2 if ", y" in call else 1
