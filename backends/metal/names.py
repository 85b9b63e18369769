"""Names in the emitted text: what is taken by languages that read it, and fresh ones."""

from __future__ import annotations

import re
import string

_KEYWORDS = """
    alignas alignof and and_eq asm auto bitand bitor bool break case catch char char16_t char32_t class compl
    const const_cast constexpr continue decltype default delete do double dynamic_cast else enum explicit export
    extern false float for friend goto if inline int long mutable namespace new noexcept not not_eq nullptr
    operator or or_eq private protected public register reinterpret_cast restrict return short signed sizeof
    static static_assert static_cast struct switch template this thread_local throw true try typedef typeid
    typename union unsigned using virtual void volatile wchar_t while xor xor_eq final override
    concept requires co_await co_return co_yield char8_t consteval constinit import module main std
    kernel vertex fragment device constant thread threadgroup threadgroup_imageblock ray_data object_data mesh
    metal texture sampler buffer stage_in visible intersection patch half bfloat uchar ushort uint ulong
    size_t ptrdiff_t intptr_t uintptr_t atomic vec array packed simdgroup_matrix simdgroup_float8x8
    simdgroup_half8x8 simdgroup_bfloat8x8 mem_flags memory_order memory_order_relaxed thread_scope
    local global generic pipe image2d_t event_t complex imaginary __kernel
    dim3 blockDim blockIdx threadIdx gridDim warpSize
    INFINITY NAN HUGE_VAL HUGE_VALF HUGE_VALH HUGE_VALBF MAXFLOAT MAXHALF MAXBFLOAT FP_ILOGB0 FP_ILOGBNAN
    FP_NAN FP_INFINITE FP_ZERO FP_SUBNORMAL FP_NORMAL CHAR_BIT METAL_ASM METAL_CONST METAL_FUNC METAL_INTERNAL
    METAL_PURE assert errno NULL EOF linux unix typeof
    as_type threadgroup_barrier simdgroup_barrier simd_sum simd_product simd_max simd_min simd_and simd_or
    simd_xor simd_any simd_all simd_shuffle simd_shuffle_xor simd_shuffle_up simd_shuffle_down simd_broadcast
    simd_ballot simdgroup_load simdgroup_store simdgroup_multiply simdgroup_multiply_accumulate
    make_filled_simdgroup_matrix
    """
_FUNCTIONS = """
    abs absdiff acos acosh addsat all any asin asinh atan atan2 atanh ceil clamp clz copysign cos cosh cospi
    cross ctz cube degrees determinant discard_fragment distance distance_squared divide dot erf erfc exp exp10
    exp2 extract_bits fabs faceforward fdim floor fma fmax fmax3 fmedian3 fmin fmin3 fmod fract frexp gamma
    hadd hypot ilogb insert_bits isfinite isinf isnan isnormal isordered isunordered ldexp length
    length_squared lgamma log log10 log1p log2 mad mad24 madhi madsat max max3 median3 min min3 mix modf mul24
    mulhi nextafter norm normalize pack_float_to_half popcount pow powr precise fast printf radians reflect
    refract remainder reverse_bits rhadd rint rotate round rsqrt saturate select sign signbit sin sincos sinh
    sinpi smoothstep sqrt step subsat swap tan tanh tanpi tgamma transpose trunc
    """
_TYPED = ("bool", "char", "uchar", "short", "ushort", "int", "uint", "long", "ulong", "float", "half", "bfloat")
_VECTORS = [f"{prefix}{base}{n}" for base in (*_TYPED, "double") for prefix in ("", "packed_") for n in (2, 3, 4)]
_ATOMICS = [f"atomic_{base}" for base in ("bool", "int", "uint", "long", "ulong", "float")]
_FIXED = [f"{base}{bits}_t" for base in ("int", "uint") for bits in (8, 16, 32, 64)]
#: Macros for limits of types and for constants of mathematics.
_LIMITS = [
    f"{base}_{limit}"
    for base in ("CHAR", "SCHAR", "UCHAR", "SHRT", "USHRT", "INT", "UINT", "LONG", "ULONG", "FLT", "HALF", "BFLT")
    for limit in (
        "MAX", "MIN", "EPSILON", "DIG", "DECIMAL_DIG", "MANT_DIG", "RADIX", "MAX_EXP", "MIN_EXP", "MAX_10_EXP",
        "MIN_10_EXP",
    )
]  # fmt: skip
_MATH_CONSTANTS = [
    f"M_{name}{suffix}"
    for name in (
        "E", "LOG2E", "LOG10E", "LN2", "LN10", "PI", "PI_2", "PI_4", "1_PI", "2_PI", "2_SQRTPI", "SQRT2", "SQRT1_2",
    )
    for suffix in ("", "_F", "_H", "_BF")
]  # fmt: skip
#: Functions that `emit.helpers` may add to a program.
HELPERS = (
    "nan_min", "nan_max", "wrapping_abs", "wide_mulhi", "simd_nan_min", "simd_nan_max", "simd_sum_64",
    "simd_min_64", "simd_max_64", "simd_or_64", "simd_and_64", "simd_xor_64", "simd_product_64",
)  # fmt: skip

#: Names that nothing in a program may have.
RESERVED = frozenset(
    (*_KEYWORDS.split(), *_VECTORS, *_ATOMICS, *_FIXED, *_LIMITS, *_MATH_CONSTANTS, *HELPERS)
)
#: Names that nothing at program scope may have; a local one hides the function, which is called as `metal::`.
GLOBAL_RESERVED = RESERVED | frozenset(_FUNCTIONS.split())

_NOT_WORD = re.compile(r"[^0-9A-Za-z]+")


def identifier(text: str, default: str = "value") -> str:
    """`text` as an identifier: ``layer 1/exp`` is ``layer_1_exp``."""
    word = _NOT_WORD.sub("_", text).strip("_")
    if not word:
        return default
    return f"{default}_{word}" if word[0] in string.digits else word


class Names:
    """Names that are taken, scope by scope; a name may come again once its scope is closed."""

    def __init__(self, reserved: frozenset[str], outer: Names | None = None) -> None:
        self._reserved = reserved
        self._scopes: list[dict[str, int]] = [dict.fromkeys(outer._scopes[-1], 0) if outer else {}]

    def take(self, wanted: str) -> str:
        """`wanted`, or with the first number that is free: ``exp``, ``exp_1``."""
        taken = self._scopes[-1]
        name, number = wanted, taken.get(wanted, 0)
        while name in taken or name in self._reserved:
            number += 1
            name = f"{wanted}_{number}"
        taken[wanted] = number
        taken.setdefault(name, 0)
        return name

    def take_first(self, wanted: str) -> str:
        """The first word of `wanted` that is free: ``i j k`` for counters of nested loops."""
        taken = self._scopes[-1]
        words = wanted.split()
        return self.take(next((w for w in words if w not in taken), words[-1]))

    def open(self) -> None:
        """Enter a scope."""
        self._scopes.append(dict(self._scopes[-1]))

    def close(self) -> None:
        """Leave it: its names are free."""
        self._scopes.pop()
