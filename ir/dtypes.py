"""Element types: names, sizes, MLIR spelling, NumPy equivalents, promotion.

Promotion follows MLX: a lattice over the dtypes, with Python scalars weak (they take the dtype
of the array they meet, unless their kind is higher).
"""

from __future__ import annotations

import functools
from typing import Any, ClassVar

import numpy as np

from .errors import DTypeError, shown


class DType:
    """An element type. Instances are singletons: compare with ``is`` or ``==``.

    Attributes:
        name: MLX's name, e.g. ``"float32"`` or ``"bool"``.
        mlir: its spelling in a tensor type, e.g. ``"f32"``, ``"ui8"``, ``"complex<f32>"``.
        kind: ``"b"`` bool, ``"u"`` unsigned, ``"i"`` signed, ``"f"`` floating, ``"c"`` complex.
        size: bytes of one element. numpy: the name of NumPy's dtype, or of ml_dtypes'.

    >>> import smelt
    >>> smelt.float16.size, smelt.array([1, 2]).dtype is smelt.int32
    (2, True)
    """

    __slots__ = ("_numpy", "kind", "mlir", "name", "size")

    #: Where printed dtypes say that they are found; programs look names up that MLX prints.
    module: ClassVar[str] = "smelt"

    name: str
    mlir: str
    kind: str
    size: int

    def __init__(self, name: str, mlir: str, kind: str, size: int, numpy: str) -> None:
        self.name, self.mlir, self.kind, self.size = name, mlir, kind, size
        self._numpy: Any = numpy

    @property
    def numpy(self) -> np.dtype[Any]:
        """The NumPy dtype (``ml_dtypes.bfloat16`` for bfloat16)."""
        if isinstance(self._numpy, str):
            if self._numpy == "bfloat16":
                import ml_dtypes

                self._numpy = np.dtype(ml_dtypes.bfloat16)
            else:
                self._numpy = np.dtype(self._numpy)
        return self._numpy

    __numpy_dtype__ = numpy  #: what NumPy (from 2.4 on) takes it for

    @property
    def itemsize(self) -> int:
        """Bytes of one element, under NumPy's name."""
        return self.size

    @property
    def type(self) -> type[Any]:
        """The class of NumPy's scalars of this dtype (ml_dtypes' for bfloat16)."""
        return self.numpy.type

    @property
    def is_float(self) -> bool:
        return self.kind == "f"

    @property
    def is_complex(self) -> bool:
        return self.kind == "c"

    @property
    def real(self) -> DType:
        """Of complex numbers, the dtype of their parts; else the dtype itself."""
        return self if self.kind != "c" else float32 if self.size == 8 else float64

    @property
    def complex(self) -> DType:
        """The dtype of complex numbers with parts of this dtype: complex128 for float64, else complex64."""
        return self if self.kind == "c" else complex128 if self is float64 else complex64

    @property
    def is_inexact(self) -> bool:
        return self.kind in "fc"

    @property
    def is_integer(self) -> bool:
        return self.kind in "iu"

    @property
    def bits(self) -> int:
        """Width of one element; 1 for bool."""
        return 1 if self.kind == "b" else 8 * self.size

    @property
    def exponent_bits(self) -> int:
        """Bits of the exponent of a float, or of the parts of complex numbers."""
        return _EXPONENT_BITS[self.real.name]

    @property
    def digits(self) -> int:
        """Significant bits of a float, or of the parts of complex numbers, with the one that is not stored."""
        return self.real.bits - self.exponent_bits

    def holds(self, value: int) -> bool:
        """Whether a Python integer lies in the range of an integer dtype; true for all others.

        Args:
            value: an int of any size.
        """
        if self.kind == "i":
            return -(1 << self.bits - 1) <= value < 1 << self.bits - 1
        return self.kind != "u" or 0 <= value < 1 << self.bits

    def __repr__(self) -> str:
        name = "bool_" if self.name == "bool" and self.module == "smelt" else self.name
        return f"{self.module}.{name}"

    def __reduce__(self) -> tuple[Any, ...]:
        return (by_name, (self.name,))


bool_ = DType("bool", "i1", "b", 1, "bool")
uint8 = DType("uint8", "ui8", "u", 1, "uint8")
uint16 = DType("uint16", "ui16", "u", 2, "uint16")
uint32 = DType("uint32", "ui32", "u", 4, "uint32")
uint64 = DType("uint64", "ui64", "u", 8, "uint64")
int8 = DType("int8", "i8", "i", 1, "int8")
int16 = DType("int16", "i16", "i", 2, "int16")
int32 = DType("int32", "i32", "i", 4, "int32")
int64 = DType("int64", "i64", "i", 8, "int64")
float16 = DType("float16", "f16", "f", 2, "float16")
bfloat16 = DType("bfloat16", "bf16", "f", 2, "bfloat16")
float32 = DType("float32", "f32", "f", 4, "float32")
float64 = DType("float64", "f64", "f", 8, "float64")
complex64 = DType("complex64", "complex<f32>", "c", 8, "complex64")
complex128 = DType("complex128", "complex<f64>", "c", 16, "complex128")

ALL = (
    bool_, uint8, uint16, uint32, uint64, int8, int16, int32, int64,
    float16, bfloat16, float32, float64, complex64, complex128,
)  # fmt: skip
UNSIGNED = (uint8, uint16, uint32, uint64)
SIGNED = (int8, int16, int32, int64)
INTEGERS = UNSIGNED + SIGNED
FLOATS = (float16, bfloat16, float32, float64)
COMPLEX = (complex64, complex128)
INEXACT = (*FLOATS, *COMPLEX)
REAL = (*INTEGERS, *FLOATS)
NUMERIC = (*REAL, *COMPLEX)

_EXPONENT_BITS = {"float16": 5, "bfloat16": 8, "float32": 8, "float64": 11}
_BY_NAME = {d.name: d for d in ALL} | {"bool_": bool_}
_BY_MLIR = {d.mlir: d for d in ALL}


def by_name(name: str) -> DType:
    try:
        return _BY_NAME[name]
    except KeyError:
        meant = f"; NumPy's {name} is {known}" if (known := _numpys(name)) in _BY_NAME else ""
        raise DTypeError(f"unknown dtype {shown(name)}{meant}; smelt has {', '.join(d.name for d in ALL)}") from None


def _numpys(name: str) -> str:
    """What NumPy calls a dtype in full; "" where it knows none."""
    try:
        return np.dtype(name).name
    except Exception:  # whatever its parser makes of a text
        return ""


def by_mlir(spelling: str) -> DType:
    try:
        return _BY_MLIR[spelling]
    except KeyError:
        raise DTypeError(
            f"element type {spelling} is not one of smelt's: {', '.join(d.mlir for d in ALL)}"
        ) from None


@functools.lru_cache(maxsize=256)
def of_numpy(dtype: np.dtype[Any]) -> DType:
    """NumPy's dtype as a DType. DTypeError: there is none like it."""
    name = dtype.name
    if name in _BY_NAME:
        return _BY_NAME[name]
    raise DTypeError(f"NumPy dtype {name} has no smelt equivalent; smelt has {', '.join(d.name for d in ALL)}")


def of(x: Any) -> DType:
    """`x` as a DType: accepts a DType, a name, a NumPy dtype or scalar type, bool, int, float, complex."""
    if isinstance(x, DType):
        return x
    python = {bool: bool_, int: int32, float: float32, complex: complex64}
    if isinstance(x, type) and x in python:
        return python[x]
    if isinstance(x, str):
        return by_name(x)
    if x is None:  # NumPy reads it as float64
        raise DTypeError(f"None is not a dtype; smelt has {', '.join(d.name for d in ALL)}")
    try:
        return of_numpy(np.dtype(x))
    except DTypeError:
        raise
    except Exception:  # whatever an object does when NumPy asks it
        sizes = x if type(x) in (tuple, list) else (x,)
        is_shape = all(isinstance(n, (int, np.integer)) for n in sizes)
        hint = ", and the sizes of a shape are one tuple" if is_shape else ""
        raise DTypeError(f"{shown(x)} is not a dtype{hint}; smelt has {', '.join(d.name for d in ALL)}") from None


_KIND_RANK = {"b": 0, "u": 1, "i": 2, "f": 3, "c": 4}


@functools.cache
def promote(a: DType, b: DType) -> DType:
    """The dtype in which `a` and `b` meet (MLX's table, which complex128 goes on as NumPy's does)."""
    if a is b:
        return a
    if _KIND_RANK[a.kind] > _KIND_RANK[b.kind]:
        a, b = b, a
    if b.kind == "c":
        return complex128 if complex128 in (a, b) or a is float64 else b
    if a.kind == "b":
        return b
    if a.kind == b.kind:
        if a.kind == "f" and a.size == b.size:  # float16 with bfloat16
            return float32
        return a if a.size > b.size else b
    if b.kind == "f":
        return b
    # unsigned with signed: the next wider signed type; none is wider than uint64
    if a.size < b.size:
        return b
    return {1: int16, 2: int32, 4: int64, 8: float32}[a.size]


def promote_scalar(dtype: DType, scalar: bool | int | float | complex) -> DType:
    """The dtype in which an array of `dtype` meets a Python scalar, which is weak."""
    if isinstance(scalar, bool):
        return dtype
    if isinstance(scalar, int):
        return int32 if dtype.kind == "b" else dtype
    if isinstance(scalar, float):
        return dtype if dtype.kind in "fc" else float32
    return dtype.complex


def of_scalar(scalar: Any) -> DType:
    """The dtype of a Python scalar that meets no array."""
    if isinstance(scalar, bool):
        return bool_
    if isinstance(scalar, int):
        if -(2**31) <= scalar < 2**31:
            return int32
        return int64 if -(2**63) <= scalar < 2**63 else uint64
    return complex64 if isinstance(scalar, complex) else float32


def to_float(dtype: DType) -> DType:
    """`dtype` itself where inexact, else float32: what exp and friends compute in."""
    return dtype if dtype.kind in "fc" else float32
