"""Memory that the CPU and an Apple GPU share, and the pool that keeps it."""

from __future__ import annotations

from typing import Any

import numpy as np

from smelt.backends import pool
from smelt.backends.pool import size_class
from smelt.ir.errors import OutOfMemoryError


class _Memory:
    """One MTLBuffer and where the CPU sees it."""

    __slots__ = ("address", "handle", "size")

    def __init__(self, handle: Any, size: int):
        self.handle, self.size = handle, size
        view = np.frombuffer(handle.contents().as_buffer(size), np.uint8)
        self.address: int = view.__array_interface__["data"][0]


class _Owner:
    """The right to use a `_Memory`. It is the base of every NumPy view of it, so the memory returns to
    the pool when neither the block nor any view is left."""

    __slots__ = ("__array_interface__", "__weakref__", "memory")

    def __init__(self, memory: _Memory, nbytes: int):
        self.memory = memory
        self.__array_interface__ = {
            "version": 3, "shape": (nbytes,), "typestr": "|u1", "data": (memory.address, False),
        }  # fmt: skip


class Block:
    """Bytes that the CPU and the GPU share.

    The memory returns to its pool when the block and all NumPy arrays over it are gone.

    Attributes:
        nbytes: how many were asked for.
        handle: the MTLBuffer, which may be larger.
        array: the bytes, as NumPy's uint8[nbytes]; no copy.
    """

    __slots__ = ("__weakref__", "array", "handle", "nbytes")

    def __init__(self, owner: _Owner, nbytes: int):
        self.nbytes = nbytes
        self.handle: Any = owner.memory.handle
        self.array: np.ndarray = np.asarray(owner)[:nbytes]

    @staticmethod
    def of(array: np.ndarray) -> Block | None:
        """The block that `array` starts in, or None when there is none.

        A row-major array over the first bytes of a block can be handed to the GPU without a copy.
        """
        base: Any = array
        while isinstance(base, np.ndarray):
            base = base.base
        if not isinstance(base, _Owner) or not array.flags.c_contiguous:
            return None
        if array.__array_interface__["data"][0] != base.memory.address:
            return None
        return Block(base, array.nbytes)


class Pool(pool.Pool):
    """Shared memory of one device by size class.

    Args:
        device: an MTLDevice.
        storage: the resource options of its buffers.
        limit: bytes in use that `take` refuses to exceed; 0 stands for no limit.
    """

    def __init__(self, device: Any, storage: int, limit: int):
        super().__init__(limit)
        self._device, self._storage = device, storage

    where = " on the GPU"

    def size_of(self, nbytes: int) -> int:
        return size_class(nbytes)

    def make(self, size: int) -> _Memory:
        handle = self._device.newBufferWithLength_options_(size, self._storage)
        if handle is None:
            raise OutOfMemoryError(f"Metal made no buffer of {size:,} bytes")
        return _Memory(handle, size)

    def why(self, nbytes: int) -> str:
        return (
            f"Metal could not allocate {size_class(nbytes):,} bytes; {self.active_bytes:,} are in use, and one buffer "
            f"may have {self._device.maxBufferLength():,}"
        )

    def block(self, nbytes: int) -> Block:
        """A block of `nbytes` (uninitialized). Raises MemoryError, and stays usable."""
        memory = self.take(nbytes)
        owner = _Owner(memory, nbytes)
        self.lend(owner, memory, nbytes)
        return Block(owner, nbytes)
