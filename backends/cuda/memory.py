"""The memory of an NVIDIA GPU: arrays lie there alone until the host asks for them."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from smelt.backends import pool
from smelt.backends.pool import size_class
from smelt.ir.aval import Aval

from ..buffer import Buffer, pools
from . import driver


class _Memory(driver.Memory):
    """Goes back to the driver when the pool lets go of it."""

    def __del__(self, is_finalizing: Any = sys.is_finalizing) -> None:
        if not is_finalizing() and hasattr(self, "address"):
            self.free()


class CudaPool(pool.Pool):
    """The GPU's memory by size class. A block may be lent again at once: all launches go to one stream, in order."""

    def size_of(self, nbytes: int) -> int:
        return size_class(nbytes)

    def make(self, size: int) -> _Memory:
        return _Memory(size)

    def why(self, nbytes: int) -> str:
        free, total = driver.memory_info()
        return (
            f"the GPU could not allocate {size_class(nbytes):,} bytes: of its {total:,} bytes {free:,} are free, and "
            f"smelt's arrays have {self.active_bytes:,}"
        )

    def why_limited(self, nbytes: int, active: int) -> str:
        return (
            f"smelt was asked for {nbytes:,} bytes on the GPU; {active:,} are in use and the limit is {self.limit:,}"
        )


class CudaBlock:
    """Bytes on the GPU, which return to the pool when the block is gone.

    Attributes:
        nbytes: how many were asked for.
        address: where they are on the GPU.
        memory: what they are part of, from its start on.
    """

    __slots__ = ("__weakref__", "address", "memory", "nbytes")

    def __init__(self, memory: _Memory, nbytes: int):
        self.memory, self.nbytes = memory, nbytes
        self.address = memory.address

    def to_host(self, aval: Aval) -> np.ndarray:
        found = Buffer.empty(aval)
        self.memory.read(found.address, aval.nbytes)
        return found.array


class CudaMemory:
    """Arrays on the first GPU."""

    def __init__(self) -> None:
        self.pool = CudaPool()

    def block(self, nbytes: int) -> CudaBlock:
        """Uninitialized bytes. Raises OutOfMemoryError; DeviceError where there is no GPU."""
        if self.pool not in pools:
            driver.enter()
            pools.append(self.pool)
        memory = self.pool.take(nbytes)
        block = CudaBlock(memory, nbytes)
        self.pool.lend(block, memory, nbytes)
        return block

    def empty(self, aval: Aval) -> Buffer:
        return Buffer.at(aval, self.block(aval.nbytes))

    def adopt(self, buffer: Buffer) -> Buffer:
        if isinstance(buffer.home, CudaBlock):
            return buffer
        block = self.block(buffer.aval.nbytes)
        block.memory.write(buffer.address, buffer.aval.nbytes)
        return buffer.housed(block)  # elements do not change, so the copy serves later programs too

    def synchronize(self) -> None:
        if self.pool in pools:
            driver.synchronize()

    def system_bytes(self) -> int | None:
        return self.pool.active_bytes + self.pool.cached_bytes


MEMORY = CudaMemory()
