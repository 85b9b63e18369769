"""Abstract values: what is known of an array without its elements."""

from __future__ import annotations

import math
from collections.abc import Iterable

from .dtypes import DType


class Aval:
    """Shape and dtype of an array (JAX's word: abstract value).

    >>> from smelt.ir import dtypes
    >>> Aval((2, 3), dtypes.float32)
    f32[2,3]
    """

    __slots__ = ("_hash", "dtype", "shape", "size")

    shape: tuple[int, ...]
    dtype: DType
    size: int

    def __init__(self, shape: tuple[int, ...], dtype: DType) -> None:
        self.shape = shape
        self.dtype = dtype
        self.size = math.prod(shape)
        self._hash = hash((shape, dtype.name))

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def nbytes(self) -> int:
        return self.size * self.dtype.size

    def with_shape(self, shape: Iterable[int]) -> Aval:
        return Aval(tuple(shape), self.dtype)

    def with_dtype(self, dtype: DType) -> Aval:
        return Aval(self.shape, dtype)

    def __eq__(self, other: object) -> bool:
        return self is other or (
            isinstance(other, Aval) and self.dtype is other.dtype and self.shape == other.shape
        )

    def __hash__(self) -> int:
        return self._hash

    def __repr__(self) -> str:
        return f"{self.dtype.mlir}[{','.join(map(str, self.shape))}]"

    @property
    def mlir(self) -> str:
        """The MLIR tensor type, as text."""
        return f"tensor<{''.join(f'{d}x' for d in self.shape)}{self.dtype.mlir}>"
