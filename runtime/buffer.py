"""Memory of arrays. Large blocks come from a pool, to which they return when nothing refers to them any more."""

from __future__ import annotations

from typing import Any

import numpy as np

from smelt.backends.pool import Pool
from smelt.ir.aval import Aval

#: Blocks below this size come from malloc, which keeps them itself.
SMALL = 64 * 1024
ALIGNMENT = 64
#: The bytes of memory that a checked program (SMELT_CHECK=1) has not written: NaN as a float of any width.
POISON = 0xFF


def size_class(nbytes: int) -> int:
    """Sizes are rounded up to an eighth of their power of two, so that near sizes share blocks."""
    if nbytes <= SMALL:
        return SMALL
    step = 1 << max(12, nbytes.bit_length() - 4)
    return -(-nbytes // step) * step


class _Memory(np.ndarray):
    """Memory of the pool. Being of a class of its own it is never the base of a view of a view of it: NumPy passes
    over bases of the same class only."""

    __slots__ = ("start",)

    start: int  #: where the aligned part begins


class CpuPool(Pool):
    """The CPU's memory, as NumPy has it."""

    def size_of(self, nbytes: int) -> int:
        return size_class(nbytes)

    def make(self, size: int) -> _Memory:
        memory = _Memory((size + ALIGNMENT,), np.uint8)
        memory.start = -memory.__array_interface__["data"][0] % ALIGNMENT
        return memory

    def empty(self, aval: Aval) -> np.ndarray:
        """Uninitialized memory as an array of `aval`. Its base is the owner of the block."""
        nbytes = aval.nbytes
        memory = self.take(nbytes)
        owner = memory.view(np.ndarray)
        self.lend(owner, memory, nbytes)
        return np.ndarray(aval.shape, aval.dtype.numpy, owner, memory.start)


pool = CpuPool()
#: All pools in use: that of the CPU's memory first, those of devices as they are used.
pools: list[Any] = [pool]


class Buffer:
    """The elements of one array: a C-contiguous NumPy view of a block of memory.

    Attributes:
        array: the elements, shaped and typed.
        address: where they are.
        aval: shape and dtype.
        home: the block of a device's memory in which the elements are (too), or None.
    """

    __slots__ = ("__weakref__", "address", "array", "aval", "home")

    def __init__(self, aval: Aval, array: np.ndarray):
        self.aval = aval
        self.array = array
        self.address: int = array.__array_interface__["data"][0]
        self.home: Any = None

    @staticmethod
    def empty(aval: Aval) -> Buffer:
        """Uninitialized memory for an array of `aval`."""
        if aval.nbytes <= SMALL:
            return Buffer(aval, np.empty(aval.shape, aval.dtype.numpy))
        return Buffer(aval, pool.empty(aval))

    @staticmethod
    def of(array: np.ndarray, aval: Aval) -> Buffer:
        """A buffer over the memory of a NumPy array, which must not change any more."""
        if not array.flags.c_contiguous:
            array = np.ascontiguousarray(array).reshape(array.shape)
        return Buffer(aval, array)

    def poison(self) -> None:
        """Fill fresh memory with bytes that are no likely value: NaN where they are floats."""
        self.array.reshape(-1).view(np.uint8).fill(POISON)

    def reshaped(self, aval: Aval) -> Buffer:
        """The same memory as an array of another shape, or dtype of that size (itself where both are the same)."""
        if aval == self.aval:
            return self
        other = Buffer(aval, self.array.view(aval.dtype.numpy).reshape(aval.shape))
        other.home = self.home
        return other


def scratch(nbytes: int) -> Any:
    """An aligned temporary block: (address, keep-alive). Freed when the keep-alive dies."""
    from smelt.ir import dtypes

    buffer = Buffer.empty(Aval((max(nbytes, 1),), dtypes.uint8))
    return buffer.address, buffer
