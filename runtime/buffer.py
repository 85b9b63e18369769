"""Memory of arrays, and the pool that keeps it.

Fresh pages cost more than most kernels (a 0.5 GB result spends some 130 ms in page faults), so
large blocks return to a pool when nothing refers to them any more.
"""

from __future__ import annotations

import sys
import threading
from typing import Any

import numpy as np

from smelt.ir.aval import Aval
from smelt.ir.errors import OutOfMemoryError, at_user_line
from smelt.ir.settings import settings

#: Blocks below this size come from malloc, which keeps them itself.
SMALL = 64 * 1024
ALIGNMENT = 64


class Pool:
    """Free blocks by size class. Thread-safe."""

    def __init__(self) -> None:
        self._free: dict[int, list[np.ndarray]] = {}
        self._lock = threading.Lock()
        self.cached_bytes = 0
        self.active_bytes = 0
        self.peak_bytes = 0
        self.limit = 0  #: bytes in use that `take` refuses to exceed; 0: none

    def take(self, nbytes: int) -> np.ndarray:
        """A block of at least `nbytes`. Raises OutOfMemoryError when there is none."""
        size = size_class(nbytes)
        with self._lock:
            if self.limit and self.active_bytes + size > self.limit:
                raise OutOfMemoryError(
                    at_user_line(
                        f"smelt was asked for {nbytes:,} bytes; {self.active_bytes:,} are in use and the limit, set by "
                        f"smelt.set_memory_limit, is {self.limit:,}"
                    )
                )
            blocks = self._free.get(size)
            block = blocks.pop() if blocks else None
            if block is not None:
                self.cached_bytes -= size
            self.active_bytes += size
            self.peak_bytes = max(self.peak_bytes, self.active_bytes)
        if block is None:
            try:
                block = np.empty(size + ALIGNMENT, np.uint8)
            except MemoryError:
                self.clear()
                try:
                    block = np.empty(size + ALIGNMENT, np.uint8)
                except MemoryError:
                    with self._lock:
                        self.active_bytes -= size
                    raise OutOfMemoryError(
                        at_user_line(f"smelt could not allocate {nbytes:,} bytes; {self.active_bytes:,} are in use")
                    ) from None
        return block

    def give(self, block: np.ndarray) -> None:
        """Take a block back; the caller must hold the only reference besides its own frame's."""
        size = block.nbytes - ALIGNMENT
        with self._lock:
            self.active_bytes -= size
            if self.cached_bytes + size <= settings.pool_bytes:
                self._free.setdefault(size, []).append(block)
                self.cached_bytes += size

    def lose(self, block: np.ndarray) -> None:
        """A block that somebody else still views will not come back."""
        with self._lock:
            self.active_bytes -= block.nbytes - ALIGNMENT

    def clear(self) -> None:
        """Give all cached blocks back to the system."""
        with self._lock:
            self._free.clear()
            self.cached_bytes = 0


def size_class(nbytes: int) -> int:
    """Sizes are rounded up to an eighth of their power of two, so that near sizes share blocks."""
    if nbytes <= SMALL:
        return SMALL
    step = 1 << max(12, nbytes.bit_length() - 4)
    return -(-nbytes // step) * step


pool = Pool()
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

    __slots__ = ("__weakref__", "_block", "address", "array", "aval", "home")

    def __init__(self, aval: Aval, array: np.ndarray, block: np.ndarray | None = None):
        self.aval = aval
        self.array = array
        self.address: int = array.__array_interface__["data"][0]
        self._block = block
        self.home: Any = None

    @staticmethod
    def empty(aval: Aval) -> Buffer:
        """Uninitialized memory for an array of `aval`."""
        nbytes = aval.nbytes
        if nbytes <= SMALL:
            return Buffer(aval, np.empty(aval.shape, aval.dtype.numpy))
        block = pool.take(nbytes)
        start = -block.__array_interface__["data"][0] % ALIGNMENT
        array = block[start : start + nbytes].view(aval.dtype.numpy).reshape(aval.shape)
        return Buffer(aval, array, block)

    @staticmethod
    def of(array: np.ndarray, aval: Aval) -> Buffer:
        """A buffer over the memory of a NumPy array, which must not change any more."""
        if not array.flags.c_contiguous:
            array = np.ascontiguousarray(array).reshape(array.shape)
        return Buffer(aval, array)

    def reshaped(self, aval: Aval) -> Buffer:
        """The same elements as an array of another shape (itself where the shape is the same)."""
        if aval == self.aval:
            return self
        other = Buffer(aval, self.array.reshape(aval.shape))
        other.home = self.home
        return other

    def __del__(self) -> None:
        block = self._block
        if block is None or sys.is_finalizing():
            return
        self.array = None  # type: ignore[assignment]
        self._block = None
        # Referenced by this frame and by getrefcount's argument; any more are views handed out.
        if sys.getrefcount(block) <= 2:
            pool.give(block)
        else:
            pool.lose(block)


def scratch(nbytes: int) -> Any:
    """An aligned temporary block: (address, keep-alive). Freed when the keep-alive dies."""
    from smelt.ir import dtypes

    buffer = Buffer.empty(Aval((max(nbytes, 1),), dtypes.uint8))
    return buffer.address, buffer
