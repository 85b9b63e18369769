"""Memory that the CPU and an Apple GPU share, and the pool that keeps it."""

from __future__ import annotations

import sys
import threading
from typing import Any

import numpy as np

from smelt.ir.errors import OutOfMemoryError
from smelt.ir.settings import settings

#: Blocks are no smaller: Metal makes no buffers of no bytes, and a pool needs few sizes.
SMALLEST = 256


def size_class(nbytes: int) -> int:
    """Bytes of the block that holds `nbytes`: rounded up to an eighth of the power of two below."""
    step = max(SMALLEST, 1 << max(0, nbytes.bit_length() - 4))
    return max(SMALLEST, -(-nbytes // step) * step)


class _Memory:
    """One MTLBuffer and where the CPU sees it."""

    __slots__ = ("address", "handle", "size")

    def __init__(self, handle: Any, size: int):
        self.handle, self.size = handle, size
        view = np.frombuffer(handle.contents().as_buffer(size), np.uint8)
        self.address: int = view.__array_interface__["data"][0]


class _Lease:
    """The right to use a `_Memory`. It is the base of every NumPy view of it, so the memory returns to
    the pool when neither the block nor any view is left."""

    __slots__ = ("__array_interface__", "memory", "pool")

    def __init__(self, pool: Pool, memory: _Memory, nbytes: int):
        self.pool, self.memory = pool, memory
        self.__array_interface__ = {
            "version": 3, "shape": (nbytes,), "typestr": "|u1", "data": (memory.address, False),
        }  # fmt: skip

    def __del__(self) -> None:
        if not sys.is_finalizing():
            self.pool.give(self.memory)


class Block:
    """Bytes that the CPU and the GPU share.

    The memory returns to its pool when the block and all NumPy arrays over it are gone.

    Attributes:
        nbytes: how many were asked for.
        handle: the MTLBuffer, which may be larger.
        array: the bytes, as NumPy's uint8[nbytes]; no copy.
    """

    __slots__ = ("__weakref__", "array", "handle", "nbytes")

    def __init__(self, lease: _Lease, nbytes: int):
        self.nbytes = nbytes
        self.handle: Any = lease.memory.handle
        self.array: np.ndarray = np.asarray(lease)[:nbytes]

    @staticmethod
    def of(array: np.ndarray) -> Block | None:
        """The block that `array` starts in, or None when there is none.

        A row-major array over the first bytes of a block can be handed to the GPU without a copy.
        """
        base: Any = array
        while isinstance(base, np.ndarray):
            base = base.base
        if not isinstance(base, _Lease) or not array.flags.c_contiguous:
            return None
        if array.__array_interface__["data"][0] != base.memory.address:
            return None
        return Block(base, array.nbytes)


class Pool:
    """Shared memory of one device by size class. Thread-safe.

    Args:
        device: an MTLDevice.
        storage: the resource options of its buffers.
        limit: bytes in use that `take` refuses to exceed; 0 stands for no limit.

    Attributes:
        active_bytes: in use by blocks.
        cached_bytes: kept for reuse.
        peak_bytes: the most that were in use at once.
    """

    def __init__(self, device: Any, storage: int, limit: int):
        self._device, self._storage = device, storage
        self._free: dict[int, list[_Memory]] = {}
        # Collecting garbage may give memory back while this thread is inside `take`.
        self._lock = threading.RLock()
        self.limit = limit
        self.active_bytes = 0
        self.cached_bytes = 0
        self.peak_bytes = 0

    def take(self, nbytes: int) -> Block:
        """A block of `nbytes` (uninitialized). Raises MemoryError, and stays usable."""
        size = size_class(nbytes)
        with self._lock:
            if self.limit and self.active_bytes + size > self.limit:
                raise OutOfMemoryError(
                    f"smelt was asked for {nbytes:,} bytes on the GPU; {self.active_bytes:,} are in use and the limit "
                    f"is {self.limit:,}"
                )
            blocks = self._free.get(size)
            memory = blocks.pop() if blocks else None
            if memory is not None:
                self.cached_bytes -= size
            else:
                if self.limit and self.active_bytes + self.cached_bytes + size > self.limit:
                    self.clear()
                memory = self._make(size)
            self.active_bytes += size
            self.peak_bytes = max(self.peak_bytes, self.active_bytes)
        return Block(_Lease(self, memory, nbytes), nbytes)

    def _make(self, size: int) -> _Memory:
        handle = self._device.newBufferWithLength_options_(size, self._storage)
        if handle is None:
            self.clear()
            handle = self._device.newBufferWithLength_options_(size, self._storage)
        if handle is None:
            raise OutOfMemoryError(
                f"Metal could not allocate {size:,} bytes; {self.active_bytes:,} are in use, and one buffer may have "
                f"{self._device.maxBufferLength():,}"
            )
        return _Memory(handle, size)

    def give(self, memory: _Memory) -> None:
        """Take memory back that nothing refers to any more."""
        with self._lock:
            self.active_bytes -= memory.size
            if self.cached_bytes + memory.size <= settings.pool_bytes:
                self._free.setdefault(memory.size, []).append(memory)
                self.cached_bytes += memory.size

    def clear(self) -> None:
        """Give all memory kept for reuse back to the system."""
        with self._lock:
            self._free.clear()
            self.cached_bytes = 0
