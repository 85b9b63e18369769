"""Constants as they are written in Metal Shading Language, exact to the bit."""

from __future__ import annotations

import functools
import math
import re
from typing import Any

import numpy as np

from smelt.ir import mlir

from .expressions import PRIMARY, UNARY, Expression
from .types import EmitError, Type, type_name

_EXPONENT_AND_FRACTION = {
    ("float", 64): (11, 52), ("float", 32): (8, 23), ("float", 16): (5, 10), ("bfloat", 16): (8, 7),
}  # fmt: skip


def integer(value: int, kind: Type) -> Expression:
    """``3u``, ``123ul``, ``uchar(3)``, ``true``; a vector of them as ``uint4(3u)``."""
    value &= (1 << kind.bits) - 1
    scalar = _integer(value, kind.bits)
    if kind.lanes != 1:
        return Expression(f"{type_name(kind)}({value if 1 < kind.bits < 32 else scalar})", atom=True)
    found = Expression(scalar, atom=True)
    if kind.kind != "bool":
        found.literal = value
    return found


@functools.lru_cache(maxsize=1024)
def _integer(value: int, bits: int) -> str:
    if bits == 1:
        return "true" if value else "false"
    if bits < 32:
        return f"{'uchar' if bits == 8 else 'ushort'}({value})"
    return f"{value}{'u' if bits == 32 else 'ul'}"


def bare(e: Expression) -> Expression:
    """A literal without type, where promotion or a shift makes the type irrelevant: ``3``."""
    if e.literal is None or e.literal >= 2**31:
        return e
    return Expression(str(e.literal), atom=True)


def mask(e: Expression, kind: Type) -> Expression:
    """A literal among bitwise operators, in hexadecimal unless it is tiny."""
    if e.literal is None:
        return e
    if e.literal < 10:
        return bare(e) if kind.bits < 32 else e
    return Expression(f"{e.literal:#x}{'u' if kind.bits == 32 else 'ul' if kind.bits == 64 else ''}", atom=True)


def floating(bits: int, kind: Type) -> Expression:
    """The float with these bits: ``0.5f``, ``-INFINITY``, ``NAN``; a vector of them as ``float4(0.5f)``."""
    text, precedence = _floating(bits, kind.kind, kind.bits)
    if kind.lanes != 1:
        text, precedence = f"{type_name(kind)}({text})", PRIMARY
    return Expression(text, precedence, atom=True)


@functools.lru_cache(maxsize=1024)
def _floating(bits: int, kind: str, width: int) -> tuple[str, int]:
    exponent, fraction = _EXPONENT_AND_FRACTION[kind, width]
    scalar = Type(kind, width)
    infinite = ((1 << exponent) - 1) << fraction
    magnitude, negative = bits & ((1 << (width - 1)) - 1), bits >> (width - 1)
    if magnitude > infinite and bits != infinite | 1 << (fraction - 1):
        written = f"ushort({bits:#x})" if width == 16 else f"{bits:#x}{'u' if width == 32 else 'ul'}"
        return f"as_type<{type_name(scalar)}>({written})", PRIMARY
    if width == 64:  # Metal reads a literal as a float, whatever its digits
        return _double(bits, infinite)
    if magnitude > infinite:
        text = "NAN"
    elif magnitude == infinite:
        text = "INFINITY"
    elif kind == "bfloat":
        text = f"{_shortest(np.array(magnitude << 16, np.uint32).view(np.float32)[()])}f"
    elif width == 32:
        text = f"{_shortest(np.array(magnitude, np.uint32).view(np.float32)[()])}f"
    else:
        text = f"{_shortest(np.array(magnitude, np.uint16).view(np.float16)[()])}h"
    sign = "-" if negative else ""
    if kind == "bfloat" or (width == 16 and magnitude >= infinite):
        return f"{type_name(scalar)}({sign}{text})", PRIMARY
    return sign + text, UNARY if negative else PRIMARY


def _double(bits: int, infinite: int) -> tuple[str, int]:
    magnitude, negative = bits & ((1 << 63) - 1), bits >> 63
    value = float(np.array(bits, np.uint64).view(np.float64))
    if magnitude >= infinite:
        text = f"{'-' if negative else ''}{'INFINITY' if magnitude == infinite else 'NAN'}"
    elif value == int(value) and abs(value) < 2**31 and (value or not negative):
        text = str(int(value))
    else:
        return f"as_type<double>({bits:#x}ul)", PRIMARY
    return f"double({text})", PRIMARY


def _shortest(value: Any) -> str:
    """The fewest digits that read back as the same number; independent of NumPy's version."""
    if value == 0 or 1e-4 <= float(value) < 1e9:
        return np.format_float_positional(value, unique=True, trim="0")
    return np.format_float_scientific(value, unique=True, trim="-")


def number_bits(value: float, kind: Type) -> int:
    """The bits of a number that `kind` holds exactly."""
    if kind.kind == "bfloat":
        return int(np.array(value, np.float32).view(np.uint32)) >> 16
    if kind.bits == 64:
        return int(np.array(value, np.float64).view(np.uint64))
    if kind.bits == 32:
        return int(np.array(value, np.float32).view(np.uint32))
    return int(np.array(value, np.float16).view(np.uint16))


def attribute_bits(attribute: Any, kind: Type) -> list[int]:
    """The bits of a constant's elements (one, or as many as there are), each as an unsigned integer."""
    ir = mlir.ir
    if isinstance(attribute, ir.BoolAttr):
        return [int(attribute.value)]
    if isinstance(attribute, ir.IntegerAttr):
        return [attribute.value & ((1 << kind.bits) - 1)]
    if isinstance(attribute, ir.FloatAttr):
        value = attribute.value
        # The bindings hand out a double, which loses what a NaN carries.
        return [_text_bits(str(attribute).split(" ")[0], kind) if math.isnan(value) else number_bits(value, kind)]
    if isinstance(attribute, ir.DenseElementsAttr) and (kind.is_integer or kind.kind in ("bool", "float")):
        array = np.array(attribute).reshape(-1)
        width = {1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64}[array.dtype.itemsize]
        limit = (1 << kind.bits) - 1
        return [int(bits) & limit for bits in array.view(width)]
    return dense_bits(str(attribute), kind)


def dense_bits(text: str, kind: Type) -> list[int]:
    """The bits of ``dense<[1.0, 2.0]> : tensor<2xbf16>``; of complex ones real part and imaginary part."""
    match = re.match(r"dense<(.*)> : ", text, re.DOTALL)
    if not match:
        raise EmitError(f"emit: a constant that is not dense: {text[:80]}")
    part = Type("float", 32) if kind.kind == "complex" else kind.scalar
    if match[1].startswith('"0x'):
        raw = bytes.fromhex(match[1].strip('"')[2:])
        step = part.bits // 8
        return [int.from_bytes(raw[i : i + step], "little") for i in range(0, len(raw), step)]
    return [_text_bits(word, part) for word in re.findall(r"[-+.\w]+", match[1])]


def _text_bits(word: str, kind: Type) -> int:
    if word.startswith("0x"):
        return int(word, 16)
    if kind.kind == "bool":
        return int(word == "true")
    return int(word) & ((1 << kind.bits) - 1) if kind.is_integer else number_bits(float(word), kind)


def element(bits: int, kind: Type) -> Expression:
    """The constant with these bits, integer or float."""
    return integer(bits, kind) if kind.is_integer or kind.kind == "bool" else floating(bits, kind)


def constant(attribute: Any, kind: Type) -> Expression:
    """An ``arith.constant``: a scalar, a splat or a vector of numbers."""
    bits = attribute_bits(attribute, kind)
    if kind.is_wide:
        if any(bits):
            raise EmitError(f"emit: a constant {type_name(kind)} other than zero")
        return Expression(f"{type_name(kind)}{{}}")
    if len(set(bits)) == 1:
        return element(bits[0], kind)
    parts = ", ".join([element(b, kind.scalar).text for b in bits])
    return Expression(f"{type_name(kind)}({parts})")


def complex_constant(attribute: Any) -> Expression:
    """A ``complex.constant``."""
    part = Type("float", 32)
    real, imag = (floating(attribute_bits(mlir.ir.FloatAttr(a), part)[0], part) for a in attribute)
    found = Expression(f"float2({real.text}, {imag.text})", atom=True)
    found.parts = real, imag
    return found

