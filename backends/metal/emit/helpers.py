"""Functions that a program needs where Metal has none: emitted above the kernels, only when used."""

from __future__ import annotations

from .types import EmitError, Type, signed_name, type_name


def _extremum(name: str, kind: Type) -> str:
    t, plain = type_name(kind), name.replace("nan_", "f")
    if kind.lanes != 1:
        parts = ", ".join([f"{name}(a.{c}, b.{c})" for c in "xyzw"[: kind.lanes]])
        return f"static inline {t} {name}({t} a, {t} b) {{\n    return {t}({parts});\n}}"
    return (
        f"// Metal's own {plain} skips NaN.\n"
        f"static inline {t} {name}({t} a, {t} b) {{\n"
        f"    return metal::isunordered(a, b) ? {t}(NAN) : metal::{plain}(a, b);\n}}"
    )


def _wrapping_abs(name: str, kind: Type) -> str:
    t, s = type_name(kind), signed_name(kind)
    if kind.lanes != 1:
        parts = ", ".join([f"{name}(a.{c})" for c in "xyzw"[: kind.lanes]])
        return f"static inline {t} {name}({t} a) {{\n    return {t}({parts});\n}}"
    return f"static inline {t} {name}({t} a) {{\n    return {s}(a) < 0 ? {t}(-a) : a;\n}}"


def _wide_mulhi(name: str, kind: Type) -> str:
    return (
        "// The upper half of a product of 128 bits.\n"
        "static inline ulong wide_mulhi(ulong a, ulong b) {\n"
        "    ulong low = (a & 0xfffffffful) * (b & 0xfffffffful);\n"
        "    ulong left = (a >> 32) * (b & 0xfffffffful) + (low >> 32);\n"
        "    ulong right = (a & 0xfffffffful) * (b >> 32) + (left & 0xfffffffful);\n"
        "    return (a >> 32) * (b >> 32) + (left >> 32) + (right >> 32);\n}"
    )


def _simd_extremum(name: str, kind: Type) -> str:
    t, plain = type_name(kind), name.replace("nan_", "")
    return (
        f"// Metal's own {plain} skips NaN.\n"
        f"static inline {t} {name}({t} a) {{\n"
        f"    bool any_nan = simd_any(metal::isnan(a));\n"
        f"    {t} found = {plain}(a);\n"
        f"    return any_nan ? {t}(NAN) : found;\n}}"
    )


_SIMD_64 = {
    "simd_sum_64": "a + b", "simd_product_64": "a * b", "simd_and_64": "a & b", "simd_or_64": "a | b",
    "simd_xor_64": "a ^ b", "simd_min_64": "a < b ? a : b", "simd_max_64": "a > b ? a : b",
    "simd_nan_min_64": "a < b || metal::isnan(a) ? a : b", "simd_nan_max_64": "a > b || metal::isnan(a) ? a : b",
}  # fmt: skip


def _simd_64(name: str, kind: Type) -> str:
    t = signed_name(kind) if kind.kind == "long" else type_name(kind)
    combined = _SIMD_64[name]
    if kind.kind == "float" and name in ("simd_min_64", "simd_max_64"):  # of which numbers win over NaN
        combined = f"metal::f{name[5:8]}(a, b)"
    return (
        f"// Metal's simd functions take at most 32 bits.\n"
        f"static inline {t} {name}({t} a) {{\n"
        f"    for (ushort distance = 16; distance > 0; distance /= 2) {{\n"
        f"        {t} b = as_type<{t}>(simd_shuffle_xor(as_type<uint2>(a), distance));\n"
        f"        a = {combined};\n"
        f"    }}\n"
        f"    return a;\n}}"
    )


_WRITERS = {
    "nan_min": _extremum,
    "nan_max": _extremum,
    "wrapping_abs": _wrapping_abs,
    "wide_mulhi": _wide_mulhi,
    "simd_nan_min": _simd_extremum,
    "simd_nan_max": _simd_extremum,
    **dict.fromkeys(_SIMD_64, _simd_64),
}


class Helpers:
    """The helper functions that a program uses, in the order of their first use."""

    def __init__(self) -> None:
        self._texts: dict[tuple[str, Type], str] = {}

    def use(self, name: str, kind: Type) -> str:
        """Have `name` for values of `kind` in the program; returns what to call."""
        if name not in _WRITERS:
            raise EmitError(f"emit: no helper function {name}")
        if kind.lanes != 1:
            self.use(name, kind.scalar)
        self._texts.setdefault((name, kind), _WRITERS[name](name, kind))
        return name

    @property
    def texts(self) -> list[str]:
        """Their definitions."""
        return list(self._texts.values())
