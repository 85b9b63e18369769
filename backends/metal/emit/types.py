"""Types of kernel IR and what they are called in Metal Shading Language.

Signless integers are unsigned in the text: smelt's integers wrap, and overflow of a signed one is
undefined in C++. What reads a value as signed says so with a cast.
"""

from __future__ import annotations

import functools
import re
from typing import Any, NamedTuple

from smelt.ir.errors import SmeltError


class EmitError(SmeltError, RuntimeError):
    """Kernel IR outside the vocabulary that `emit` translates: a bug in a schedule."""


class Type(NamedTuple):
    """A scalar or vector: kind is float, bfloat, int, index, bool, complex or matrix (8 by 8).

    Vectors of more than four lanes, which Metal lacks, are structures that are only loaded, stored and
    filled: 16 bytes of small elements at once.
    """

    kind: str
    bits: int
    lanes: int = 1

    @property
    def scalar(self) -> Type:
        return Type(self.kind, self.bits)

    @property
    def is_integer(self) -> bool:
        return self.kind in ("int", "index")

    @property
    def is_wide(self) -> bool:
        return self.lanes > 4

    def of_width(self, lanes: int) -> Type:
        """The vector of `lanes` such elements."""
        return Type(self.kind, self.bits, lanes)


class Array(NamedTuple):
    """A memref: elements somewhere in memory. Space is device, threadgroup, thread or constant."""

    element: Type
    shape: tuple[int, ...]
    space: str

    @property
    def size(self) -> int:
        total = 1
        for extent in self.shape:
            total *= extent
        return total


_SCALARS = {
    "f64": Type("float", 64),  # where the GPU has it, which none of Apple's does
    "f32": Type("float", 32),
    "f16": Type("float", 16),
    "bf16": Type("bfloat", 16),
    "i1": Type("bool", 1),
    "i8": Type("int", 8),
    "i16": Type("int", 16),
    "i32": Type("int", 32),
    "i64": Type("int", 64),
    "complex<f32>": Type("complex", 64),
    "complex<f64>": Type("complex", 128),  # of arguments of programs alone: it has no name
}
_NAMES = {
    ("float", 64): "double",
    ("float", 32): "float",
    ("float", 16): "half",
    ("bfloat", 16): "bfloat",
    ("bool", 1): "bool",
    ("complex", 64): "float2",
    ("matrix", 32): "simdgroup_float8x8",
    ("matrix", 16): "simdgroup_half8x8",
    ("bfloat matrix", 16): "simdgroup_bfloat8x8",
}
_UNSIGNED = {8: "uchar", 16: "ushort", 32: "uint", 64: "ulong"}
_SIGNED = {8: "char", 16: "short", 32: "int", 64: "long"}
_SPACES = {
    "": "device",
    "#gpu.address_space<global>": "device",
    "#gpu.address_space<workgroup>": "threadgroup",
    "#gpu.address_space<private>": "thread",
}
_VECTOR = re.compile(r"vector<(?:(\d+)x)?(\w+)>")
_MEMREF = re.compile(r"memref<((?:\d+x)*)((?:complex<)?\w+>?)(?:, ([^,]+))?>")
_MATRIX = re.compile(r'!gpu\.mma_matrix<8x8x(f32|f16), "\w+">')


@functools.lru_cache(maxsize=4096)
def parse_type(text: str, index_bits: int) -> Type | Array:
    """The type that MLIR prints as `text`; `index` has `index_bits`. Raises EmitError."""
    found = _SCALARS.get(text)
    if found is not None:
        return found
    if text == "index":
        return Type("index", index_bits)
    if match := _VECTOR.fullmatch(text):
        element = parse_type(match[2], index_bits)
        lanes = int(match[1] or 1)
        if isinstance(element, Type) and (lanes <= 4 or (lanes in (8, 16) and 8 <= element.bits * lanes <= 128)):
            return element.of_width(lanes)
    elif match := _MEMREF.fullmatch(text):
        element = parse_type(match[2], index_bits)
        if isinstance(element, Type) and (match[3] or "") in _SPACES:
            shape = tuple(int(extent) for extent in match[1].split("x")[:-1])
            return Array(element, shape, _SPACES[match[3] or ""])
    elif match := _MATRIX.fullmatch(text):
        return Type("matrix", _SCALARS[match[1]].bits)
    raise EmitError(f"emit: Metal has no type for {text}")


@functools.lru_cache(maxsize=256)
def type_name(kind: Type) -> str:
    """``float4``, ``uint``, ``bool`` ..."""
    base = _UNSIGNED[kind.bits] if kind.is_integer else _NAMES.get((kind.kind, kind.bits))
    if base is None:
        raise EmitError(f"emit: Metal has no type for {kind.kind} numbers of {kind.bits} bits")
    return base if kind.lanes == 1 else f"{base}{'_' if kind.is_wide else ''}{kind.lanes}"


def wide_definition(kind: Type) -> str:
    """The structure that stands for a vector of more than four lanes."""
    size = kind.bits * kind.lanes // 8
    return f"struct alignas({size}) {type_name(kind)} {{\n    {type_name(kind.scalar)} lanes[{kind.lanes}];\n}};\n"


@functools.lru_cache(maxsize=64)
def signed_name(kind: Type) -> str:
    """``int4``, ``char`` ...: the signed integers as wide as `kind`."""
    base = _SIGNED[kind.bits]
    return base if kind.lanes == 1 else f"{base}{kind.lanes}"


def bits_type(kind: Type) -> Type:
    """The integers as wide as `kind`."""
    return Type("int", kind.bits, kind.lanes)


class Types:
    """Types of MLIR values, by the object, since printing one is slow."""

    def __init__(self, index_bits: int, has_float64: bool = False) -> None:
        self.index_bits, self.has_float64 = index_bits, has_float64
        self._known: dict[Any, Type | Array] = {}

    @property
    def wide(self) -> list[Type]:
        """The vectors of more than four lanes among those asked for."""
        return [t for t in self._known.values() if isinstance(t, Type) and t.is_wide]

    def __call__(self, type_: Any) -> Type | Array:
        found = self._known.get(type_)
        if found is None:
            found = parse_type(str(type_), self.index_bits)
            element = found.element if isinstance(found, Array) else found
            if (element.kind, element.bits) == ("float", 64) and not self.has_float64:
                raise EmitError(f"emit: Metal has no type for {type_}")
            self._known[type_] = found
        return found
