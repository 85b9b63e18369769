"""Element types of other frameworks that smelt has no dtype for: floats of 8 bits, integers of 2 and 4.

Inside a program their numbers are held in a wider dtype, exactly, and what computes such a number rounds it to one that
the type has. A program takes and returns floats as uint8, their bits (as `smelt.to_fp8` makes of e4m3), and integers as
int8 or uint8.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from smelt.ir import dtypes, mlir
from smelt.ir.aval import Aval
from smelt.ir.dtypes import DType

from ..functions.arithmetic import abs, maximum, minimum
from ..functions.index_functions import take
from ..functions.logic import isfinite, where
from ..functions.rounding import round
from ..functions.views import view
from ..lazy.arrays import array, as_array, convert
from .arithmetic import rounded_to

#: Ops that hand numbers on as they are, or compare them.
EXACT = {"func.call", "chlo.top_k"} | {
    f"stablehlo.{name}"
    for name in (
        "constant", "reshape", "transpose", "broadcast_in_dim", "broadcast", "slice", "reverse", "pad", "concatenate",
        "select", "dynamic_slice", "dynamic_update_slice", "gather", "optimization_barrier", "while", "if", "case",
        "compare", "maximum", "minimum", "clamp", "is_finite", "sort", "real_dynamic_slice", "dynamic_gather",
        "dynamic_pad", "dynamic_reshape", "dynamic_broadcast_in_dim", "iota", "dynamic_iota",
    )
}  # fmt: skip
#: Ops whose results are rounded: float32 is long enough that to round a sum, product or quotient twice is to round it
#: once; what is reduced is rounded at the end.
ROUNDED = {
    f"stablehlo.{name}"
    for name in (
        "convert", "add", "subtract", "multiply", "divide", "remainder", "negate", "abs", "sign", "and", "or", "xor",
        "not", "dot_general", "dot", "reduce", "exponential", "exponential_minus_one", "log", "log_plus_one", "sqrt",
        "rsqrt", "cbrt", "power", "atan2", "tanh", "logistic", "sine", "cosine", "tan", "floor", "ceil",
        "round_nearest_even", "round_nearest_afz", "reduce_window", "scatter", "select_and_scatter", "convolution",
        "map",
    )
}  # fmt: skip
#: Ops on the bits of integers, which run on numbers that have theirs at the upper end of a byte.
SHIFTS = {f"stablehlo.shift_{name}" for name in ("left", "right_arithmetic", "right_logical")}
COUNTS = {"stablehlo.popcnt", "stablehlo.count_leading_zeros"}


@dataclass(frozen=True)
class Narrow:
    """A type, by its name in MLIR.

    Attributes:
        held: the dtype of its numbers inside a program. given: of arguments and results.
    """

    name: str
    held: DType
    given: DType

    def rounded(self, x: array) -> array:
        """Numbers of the type: of integers the last bits."""
        if self.held is dtypes.uint8:
            return x & ((1 << self.bits) - 1)
        return (x << (8 - self.bits)) >> (8 - self.bits)

    def decoded(self, x: array) -> array:
        return self.rounded(x)

    def encoded(self, x: array) -> array:
        return x

    @property
    def bits(self) -> int:
        return int(self.name.lstrip("ui"))

    def codes(self, x: array) -> array:
        """The bits of numbers of the type, as uint8."""
        return convert(x, dtypes.uint8) & ((1 << self.bits) - 1)

    def on_bits(self, name: str, operands: Sequence[array], run: Callable[[list[array]], array]) -> array:
        """One of `SHIFTS` or `COUNTS`: what `run` makes of these operands, as bytes."""
        free = 8 - self.bits
        found = run([operands[0] << free, *(convert(self.codes(x), self.held) for x in operands[1:])])
        return found >> free if name in SHIFTS else self.rounded(minimum(found, self.bits))


@dataclass(frozen=True)
class NarrowFloat(Narrow):
    """A float of 8 bits; NumPy's of `numpy` says what it holds."""

    numpy: str = ""

    @property
    def bits(self) -> int:
        return 8

    def codes(self, x: array) -> array:
        return self.encoded(x)

    @property
    def _kind(self) -> np.dtype[Any]:
        import ml_dtypes

        return np.dtype(getattr(ml_dtypes, self.numpy))

    @property
    def _info(self) -> Any:
        import ml_dtypes

        return ml_dtypes.finfo(self._kind)

    def rounded(self, x: array) -> array:
        """The nearest numbers of the type; derivatives are those of the identity."""
        least = self._least(x)
        found = round(x / least) * least
        if not self._has("-0"):
            found = where(found == 0, 0.0, found)
        beyond = float("inf") if self._has("inf") else float("nan")
        found = where(abs(found) > float(self._info.max), where(x < 0, -beyond, beyond), found)
        return rounded_to(x, found)

    def decoded(self, x: array) -> array:
        return take(as_array(np.arange(256, dtype=np.uint8).view(self._kind).astype(np.float32)), x)

    def encoded(self, x: array) -> array:
        """The bits of numbers of the type: exponent and fraction count its numbers from zero on."""
        least = self._least(x)
        steps = (_exponent(least) - int(self._info.minexp) + int(self._info.nmant)) << int(self._info.nmant)
        code = steps + convert(abs(x) / least, dtypes.int32)
        sign = convert(view(x, dtypes.uint32) >> 31, dtypes.int32) << 7
        code = where(isfinite(x), code, self._code("inf")) | (sign if self._has("-0") else where(x < 0, sign, 0))
        return convert(where(x == x, code, self._code("nan")), dtypes.uint8)

    def _least(self, x: array) -> array:
        """How far the neighbours of numbers lie apart, a power of two."""
        exponent = maximum(_exponent(x), int(self._info.minexp)) - int(self._info.nmant)
        return view(convert(exponent + 127, dtypes.uint32) << 23, dtypes.float32)

    def _code(self, number: str) -> int:
        with np.errstate(all="ignore"):
            return int(np.array(float(number)).astype(self._kind).view(np.uint8))

    def _has(self, number: str) -> bool:
        """Whether the type has an infinity, or a negative zero."""
        with np.errstate(all="ignore"):
            found = np.array(float(number)).astype(self._kind).astype(np.float64)
        return bool(found == float(number) and np.signbit(found) == np.signbit(float(number)))


def _exponent(x: array) -> array:
    return convert((view(x, dtypes.uint32) >> 23) & 255, dtypes.int32) - 127


_INTEGERS = [Narrow(f"{u}i{n}", kind, kind) for u, kind in (("", dtypes.int8), ("u", dtypes.uint8)) for n in (2, 4)]
_FLOATS = [
    NarrowFloat(f"f8{name}", dtypes.float32, dtypes.uint8, f"float8_{name.lower()}")
    for name in ("E4M3FN", "E5M2", "E4M3FNUZ", "E5M2FNUZ", "E4M3B11FNUZ", "E3M4", "E4M3")
]
TYPES = {kind.name: kind for kind in (*_INTEGERS, *_FLOATS)}


def narrow_of(kind: Any) -> Narrow | None:
    """That of the elements of an MLIR type; None of all others."""
    return TYPES.get(str(kind.element_type)) if isinstance(kind, mlir.ir.RankedTensorType) else None


def bitcast(x: array, source: Narrow | None, target: Narrow | None, aval: Aval) -> array:
    """The bits of `x` as numbers of another type, of which at least one is narrow, as ``bitcast_convert`` says: several
    numbers that come of one, or make one, lie along the last axis, the lowest bits first."""
    codes, bits = (source.codes(x), source.bits) if source else (view(x[..., None], dtypes.uint8), 8)
    wanted = target.bits if target else 8
    if wanted < bits:
        codes = (codes[..., None] >> as_array(np.arange(0, bits, wanted, dtype=np.uint8))) & ((1 << wanted) - 1)
    elif wanted > bits:
        parts = codes.reshape(*codes.shape[:-1], -1, wanted // bits)
        codes = (parts << as_array(np.arange(0, wanted, bits, dtype=np.uint8))).sum(axis=-1).astype(dtypes.uint8)
    if target:
        return target.decoded(convert(codes.reshape(aval.shape), target.given))
    return view(codes.reshape(*aval.shape, aval.dtype.size), aval.dtype).reshape(aval.shape)


def held(kind: Any, given: bool = False) -> Aval | None:
    """The type of an array of narrow elements inside a program, or as it is given to it; None of all others."""
    found = narrow_of(kind)
    if found is None or not kind.has_static_shape or kind.encoding is not None:
        return None
    return Aval(tuple(kind.shape), found.given if given else found.held)
