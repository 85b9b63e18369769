"""Memory that a device has for itself, as most GPUs do: the host's arrays get there and back by copies."""

from __future__ import annotations

from typing import Any

import numpy as np

from smelt.ir.aval import Aval

from .buffer import Buffer, pools
from .pool import Pool, size_class


class SeparateBlock:
    """Bytes of a `SeparateMemory`, which takes them back when nothing refers to the block.

    Attributes:
        memory: whose bytes they are.
        handle: what the device calls them, as `SeparateMemory.make` returned it.
        nbytes: how many were asked for.
    """

    __slots__ = ("__weakref__", "handle", "memory", "nbytes")

    def __init__(self, memory: SeparateMemory, handle: Any, nbytes: int):
        self.memory, self.handle, self.nbytes = memory, handle, nbytes

    def to_host(self, aval: Aval) -> np.ndarray:
        found = Buffer.empty(aval)
        if aval.nbytes:
            self.memory.read(self.handle, found.array)
        return found.array


class SeparateMemory(Pool):
    """Memory of its own. A device states `make`, where it comes from, and the two copies, `write` and `read`.

    What programs return stays on the device until somebody asks for its elements, and the host's arrays are copied
    once, when a program first reads them.
    """

    # What devices differ in, beside `make`

    def begin(self) -> None:
        """Get the device ready, before the first block. Raises DeviceError where it is not here."""

    def block_of(self, handle: Any, nbytes: int) -> SeparateBlock:
        """What stands for bytes at the start of memory that `make` returned."""
        return SeparateBlock(self, handle, nbytes)

    def write(self, handle: Any, array: np.ndarray) -> None:
        """Copy a C-contiguous array of the host to the start of memory that `make` returned."""
        raise NotImplementedError

    def read(self, handle: Any, array: np.ndarray) -> None:
        """Fill a C-contiguous array of the host from there, when what was launched before has ended."""
        raise NotImplementedError

    def synchronize(self) -> None:
        """Wait for what has been launched; nothing to do where programs have ended when their call returns."""

    def system_bytes(self) -> int | None:
        """What the system has given, used or not."""
        return self.active_bytes + self.cached_bytes

    # What they share

    def size_of(self, nbytes: int) -> int:
        return size_class(nbytes)

    def block(self, nbytes: int) -> SeparateBlock:
        """Uninitialized bytes. Raises OutOfMemoryError, and stays usable."""
        if self not in pools:
            self.begin()
            pools.append(self)
        handle = self.take(nbytes)
        block = self.block_of(handle, nbytes)
        self.lend(block, handle, nbytes)
        return block

    def empty(self, aval: Aval) -> Buffer:
        return Buffer.at(aval, self.block(aval.nbytes))

    def adopt(self, buffer: Buffer) -> Buffer:
        home = buffer.home
        if isinstance(home, SeparateBlock) and home.memory is self:
            return buffer
        block = self.block(buffer.aval.nbytes)
        if buffer.aval.nbytes:
            self.write(block.handle, np.asarray(buffer.array))  # of an element NumPy makes a scalar
        return buffer.housed(block)
