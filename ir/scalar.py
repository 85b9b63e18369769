"""Scalars inside kernels: what the `element`, `lower` and `combine` rules of ops are written with.

A rule gets a `ScalarBuilder`, conventionally called ``k``, and `Scalar`s, which have Python's operators::

    def lower(self, k: ScalarBuilder, x: Scalar) -> Scalar:
        return x / (k.math("absf", x) + 1)

Whoever runs rules implements the builder: a backend emits MLIR (`scalar_emitter.py`), fusion records which
elements are read (`passes/kernels/analysis.py`), tests compute with NumPy.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol, TypeAlias

import numpy as np

from . import dtypes
from .aval import Aval
from .dtypes import DType
from .errors import KernelError
from .index import Coordinates, Index

#: Not an element type of arrays: MLIR's index type, for loop bounds and addresses.
INDEX = DType("index", "index", "i", 8, "int64")

#: A scalar, or a Python number that becomes one of the dtype of the scalar beside it.
ScalarLike: TypeAlias = "Scalar | Number"

#: bool, int, float or complex. (`complex` itself is the name of a method below.)
Number: TypeAlias = bool | int | float | complex


def compute_dtype(dtype: DType) -> DType:
    """The dtype in which kernels hold elements of `dtype`."""
    return dtypes.float32 if dtype.kind == "f" and dtype.size == 2 else dtype


class Scalar:
    """One value inside a kernel.

    Attributes:
        k: the builder that it belongs to.
        mlir: what that builder holds; an SSA value, where it emits MLIR.
        dtype: never half precision, which is computed in float32.
        known: the integer or bool that it is, if the builder knows; most: the largest that it can be, from 0 on.
    """

    __slots__ = ("dtype", "k", "known", "mlir", "most")

    def __init__(self, k: ScalarBuilder, value: Any, dtype: DType):
        self.k, self.mlir, self.dtype = k, value, dtype
        self.known: int | None = None
        self.most: int | None = None

    def beside(self, x: ScalarLike) -> Scalar:
        """`x` as an operand beside this one: a Python number becomes a constant of the same dtype."""
        return x if isinstance(x, Scalar) else self.k.const(x, self.dtype)

    def __add__(self, x: ScalarLike) -> Scalar:
        return self.k.add(self, self.beside(x))

    def __radd__(self, x: ScalarLike) -> Scalar:
        return self.k.add(self.beside(x), self)

    def __sub__(self, x: ScalarLike) -> Scalar:
        return self.k.sub(self, self.beside(x))

    def __rsub__(self, x: ScalarLike) -> Scalar:
        return self.k.sub(self.beside(x), self)

    def __mul__(self, x: ScalarLike) -> Scalar:
        return self.k.mul(self, self.beside(x))

    def __rmul__(self, x: ScalarLike) -> Scalar:
        return self.k.mul(self.beside(x), self)

    def __truediv__(self, x: ScalarLike) -> Scalar:
        return self.k.div(self, self.beside(x))

    def __rtruediv__(self, x: ScalarLike) -> Scalar:
        return self.k.div(self.beside(x), self)

    def __neg__(self) -> Scalar:
        return self.k.neg(self)

    def __and__(self, x: ScalarLike) -> Scalar:
        return self.k.bitwise("andi", self, self.beside(x))

    def __or__(self, x: ScalarLike) -> Scalar:
        return self.k.bitwise("ori", self, self.beside(x))

    def __xor__(self, x: ScalarLike) -> Scalar:
        return self.k.bitwise("xori", self, self.beside(x))

    def __invert__(self) -> Scalar:
        return self ^ (True if self.dtype.kind == "b" else -1)

    def __lshift__(self, x: ScalarLike) -> Scalar:
        return self.k.bitwise("shli", self, self.beside(x))

    def __rshift__(self, x: ScalarLike) -> Scalar:
        return self.k.bitwise("shrsi" if self.dtype.kind == "i" else "shrui", self, self.beside(x))

    def __lt__(self, x: ScalarLike) -> Scalar:
        return self.k.compare("lt", self, self.beside(x))

    def __le__(self, x: ScalarLike) -> Scalar:
        return self.k.compare("le", self, self.beside(x))

    def __gt__(self, x: ScalarLike) -> Scalar:
        return self.k.compare("gt", self, self.beside(x))

    def __ge__(self, x: ScalarLike) -> Scalar:
        return self.k.compare("ge", self, self.beside(x))

    def eq(self, x: ScalarLike) -> Scalar:
        return self.k.compare("eq", self, self.beside(x))

    def ne(self, x: ScalarLike) -> Scalar:
        return self.k.compare("ne", self, self.beside(x))


def beside_each_other(x: ScalarLike, y: ScalarLike) -> tuple[Scalar, Scalar]:
    """Two operands of which one at least is a scalar."""
    if isinstance(x, Scalar):
        return x, x.beside(y)
    if isinstance(y, Scalar):
        return y.beside(x), y
    raise KernelError(f"{x!r} and {y!r} have no dtype: one of the two must be a scalar, as k.const makes one")


class ScalarBuilder(Protocol):
    """What an op's rules may ask of the kernel in which they are lowered."""

    @property
    def source_dtype(self) -> DType | None:
        """The dtype of the first operand of the op being lowered; its scalars may be wider."""

    @property
    def is_half(self) -> bool:
        """Whether the op being lowered works on half precision, so that its result need not be finer."""

    @property
    def checks_indices(self) -> bool:
        """Whether indices known at run time are to be read even where there is one place to go."""

    # Constants and conversions

    def const(self, value: Number, dtype: DType) -> Scalar:
        """A constant of `dtype`; integers wrap, floats round once."""

    def table(self, values: Sequence[float], dtype: DType) -> Callable[[Scalar], Scalar]:
        """A constant table; the result looks up an element by an index."""

    def convert(self, x: Scalar, dtype: DType) -> Scalar:
        """Numeric conversion. Float to integer truncates and saturates, NaN to 0; int to int wraps."""

    def bitcast(self, x: Scalar, dtype: DType) -> Scalar:
        """The bits of `x` as it is held, as another dtype of the same size (not for half precision or bool)."""

    def bitcast_storage(self, x: Scalar, dtype: DType) -> Scalar:
        """The bits of an operand as they lie in memory, half precision and bool included."""

    # Arithmetic

    def add(self, x: Scalar, y: Scalar) -> Scalar:
        """``x + y``."""

    def sub(self, x: Scalar, y: Scalar) -> Scalar:
        """``x - y``."""

    def mul(self, x: Scalar, y: Scalar) -> Scalar:
        """``x * y``."""

    def div(self, x: Scalar, y: Scalar) -> Scalar:
        """Quotient of floats or complex numbers; `int_div` for integers."""

    def neg(self, x: Scalar) -> Scalar:
        """``-x``."""

    def fma(self, x: Scalar, y: ScalarLike, z: ScalarLike) -> Scalar:
        """``x * y + z`` with one rounding."""

    def add_reassociating(self, x: Scalar, y: Scalar) -> Scalar:
        """``x + y`` of a sum whose terms may be added in any order."""

    def mul_reassociating(self, x: Scalar, y: Scalar) -> Scalar:
        """``x * y`` of a product whose factors may be multiplied in any order."""

    def div_coarse(self, x: Scalar, y: Scalar) -> Scalar:
        """``x / y`` within 3e-7 of it where a target has a quicker way, for results of half precision."""

    def bitwise(self, name: str, x: Scalar, y: Scalar) -> Scalar:
        """andi, ori, xori of bools or integers; shli, shrsi, shrui of integers, by less than their bits."""

    def int_div(self, x: Scalar, y: Scalar) -> Scalar:
        """Integer quotient towards zero. The divisor must not be zero."""

    def int_rem(self, x: Scalar, y: Scalar) -> Scalar:
        """Integer remainder with the sign of `x`. The divisor must not be zero."""

    def math(self, name: str, *xs: Scalar) -> Scalar:
        """An op of the math dialect that every target has in hardware: floor, ceil, sqrt, absf, ..."""

    def minimum(self, x: Scalar, y: Scalar) -> Scalar:
        """Smaller of two; NaN if either is NaN; of bools, whether both are true."""

    def maximum(self, x: Scalar, y: Scalar) -> Scalar:
        """Larger of two; NaN if either is NaN; of bools, whether one is true."""

    # Comparison and selection

    def compare(self, predicate: str, x: Scalar, y: Scalar) -> Scalar:
        """eq ne lt le gt ge, as a bool. NaN compares unequal to everything; complex numbers as in NumPy."""

    def select(self, c: Scalar, x: ScalarLike, y: ScalarLike) -> Scalar:
        """`x` where the bool `c` holds, else `y`; one of the two at least is a scalar."""

    def usually(self, quick: Callable[[], tuple[Scalar, Scalar]], general: Callable[[], Scalar]) -> Scalar:
        """``general()``, or what `quick` gives: a result with the same bits, and the bool where it is right.

        A target may compute some elements by `quick`, and all of them again by `general` if one is not right. Ops
        whose rules ask for it say so (`Elementwise.usual`).
        """

    def isnan(self, x: Scalar) -> Scalar:
        """Whether a float, or either part of a complex number, is NaN."""

    def logical_and(self, x: Scalar, y: Scalar) -> Scalar:
        """Both of two bools."""

    def logical_or(self, x: Scalar, y: Scalar) -> Scalar:
        """Either of two bools."""

    # Complex numbers

    def complex(self, real: Scalar, imag: Scalar) -> Scalar:
        """A complex number from two float32, or two float64."""

    def real(self, x: Scalar) -> Scalar:
        """The real part, a float32."""

    def imag(self, x: Scalar) -> Scalar:
        """The imaginary part, a float32."""

    # Structure

    def if_(
        self, condition: Scalar, then: Callable[[], Scalar], otherwise: Callable[[], Scalar], dtype: DType
    ) -> Scalar:
        """A branch with one result: for reads that must not happen, not for speed."""

    def for_(
        self,
        lower: Scalar,
        upper: Scalar,
        body: Callable[..., Sequence[Scalar] | None],
        carries: Sequence[Scalar] = (),
        step: int = 1,
    ) -> list[Scalar]:
        """``for i in range(lower, upper, step)``; ``body(i, *carries)`` returns the new carries."""

    # Indices and elements

    def index(self, index: Index, dtype: DType = INDEX) -> Scalar:
        """An index expression as a number."""

    def dynamic(self, x: Scalar, lo: int, hi: int) -> Index:
        """A run-time integer, brought into lo … hi, as an index."""

    def guarded(
        self, condition: Scalar, then: Callable[[], Scalar], otherwise: Callable[[], Scalar], dtype: DType
    ) -> Scalar:
        """``then()`` where `condition` holds, else ``otherwise()``: `then` may fetch outside its operand elsewhere."""

    def literal_element(self, array: np.ndarray, aval: Aval, index: Coordinates) -> Scalar:
        """The element at `index` of a constant array of type `aval`."""
