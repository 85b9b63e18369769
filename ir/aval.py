"""Abstract values: what is known of an array without its elements."""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np

from .dtypes import DType
from .errors import ShapeError

#: Axes that an array can have: NumPy's limit, for every array can become one of NumPy.
MAX_NDIM = 64 if int(np.__version__.partition(".")[0]) >= 2 else 32
#: Bytes that an address can reach. Other libraries count those of an empty array by its extents other than 0.
MAX_BYTES = 1 << 63


class Aval:
    """Shape and dtype of an array (JAX's word: abstract value).

    Raises:
        ShapeError: more than MAX_NDIM axes, or an empty array whose other extents are those of no array.

    >>> from smelt.ir import dtypes
    >>> Aval((2, 3), dtypes.float32)
    f32[2,3]
    """

    __slots__ = ("_hash", "dtype", "shape", "size")

    shape: tuple[int, ...]
    dtype: DType
    size: int
    _hash: int

    def __init__(self, shape: tuple[int, ...], dtype: DType) -> None:
        self.shape = shape
        self.dtype = dtype
        self.size = math.prod(shape)
        if len(shape) > MAX_NDIM or not self.size:
            check_extents(shape, dtype)

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
        try:
            return self._hash
        except AttributeError:  # seldom asked for
            self._hash = hash((self.shape, self.dtype.name))
            return self._hash

    def __repr__(self) -> str:
        return f"{self.dtype.mlir}[{','.join(map(str, self.shape))}]"

    @property
    def mlir(self) -> str:
        """The MLIR tensor type, as text."""
        return f"tensor<{''.join(f'{d}x' for d in self.shape)}{self.dtype.mlir}>"


def check_extents(shape: tuple[int, ...], dtype: DType) -> None:
    """Raise ShapeError where no array can have this shape, however little memory its elements take."""
    if len(shape) > MAX_NDIM:
        raise ShapeError(f"{len(shape)} axes are more than the {MAX_NDIM} that an array can have")
    if math.prod([d for d in shape if d]) * dtype.size >= MAX_BYTES:
        raise ShapeError(f"shape {shape} of {dtype.name} is too large even for an empty array")


def broadcast_shapes(*shapes: tuple[int, ...]) -> tuple[int, ...]:
    """NumPy's broadcast of shapes, of any number of axes (NumPy's own ends at 32).

    Raises:
        ShapeError: they do not broadcast.

    >>> broadcast_shapes((3, 1), (4,))
    (3, 4)
    """
    ndim = max(map(len, shapes), default=0)
    result = [1] * ndim
    for shape in shapes:
        for axis, d in enumerate(shape, ndim - len(shape)):
            if d == 1 or d == result[axis]:
                continue
            if result[axis] != 1:
                raise ShapeError(f"shapes {' and '.join(map(str, shapes))} cannot be broadcast together")
            result[axis] = d
    return tuple(result)
