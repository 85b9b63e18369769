"""The memory of an NVIDIA GPU: arrays lie there alone until the host asks for them."""

from __future__ import annotations

import contextlib
import sys
from heapq import heappop, heappush
from typing import Any

import numpy as np

from smelt.backends import dlpack
from smelt.backends.pool import size_class
from smelt.backends.separate import SeparateBlock, SeparateMemory
from smelt.ir.aval import Aval
from smelt.ir.errors import DeviceError
from smelt.ir.settings import settings

from ..buffer import Buffer, pools
from . import driver, transfers


class _Memory(transfers.Memory):
    """Goes back to the driver when the pool lets go of it."""

    def __del__(self, is_finalizing: Any = sys.is_finalizing) -> None:
        if not is_finalizing() and hasattr(self, "address") and not driver.is_forked():
            self.free()


def dlpack_device() -> tuple[int, int]:
    """The GPU that this process uses, in DLPack's words."""
    return dlpack.CUDA, driver.ordinal()


class CudaBlock(SeparateBlock):
    """Bytes on the GPU, smelt's or another library's.

    Attributes:
        address: where they are on the GPU.
    """

    __slots__ = ("address",)

    def __init__(self, handle: driver.Memory, nbytes: int):
        super().__init__(MEMORY, handle, nbytes)
        self.address = handle.address

    @property
    def dlpack_device(self) -> tuple[int, int]:
        """Where it is, in DLPack's words."""
        return dlpack_device()

    def capsule(self, aval: Aval, stream: int | None, versioned: bool, copy: bool) -> Any:
        """The bytes as a DLPack capsule of `aval`, which `stream` may read after what was launched before: a handle,
        None and 1 for the stream that launches go to, 2 for that of the thread, -1 where nothing is waited for."""
        block: SeparateBlock = self
        if copy:
            block = MEMORY.block(self.nbytes)
            block.handle.copy_from(self.handle)
        other = stream if stream not in (None, 1, -1) else None
        if other is not None:
            driver.order(None, other)

        def done() -> None:
            if other is not None:
                with contextlib.suppress(DeviceError):  # the stream may be gone, and with it what it had to do
                    driver.order(other, None)

        place = block.handle.address, self.dlpack_device
        return dlpack.capsule_of(aval, *place, block, done, versioned=versioned, copied=copy)


class _Part(transfers.Memory):
    """Bytes of a block, which lives as long."""

    def __init__(self, block: CudaBlock, offset: int, nbytes: int) -> None:
        self.address, self.nbytes, self._block = block.address + offset, nbytes, block

    def free(self) -> None:
        """Nothing: the block goes back to the pool by itself."""


def part_of(block: CudaBlock, offset: int, nbytes: int) -> CudaBlock:
    """A part of a block: `nbytes` bytes from `offset` on."""
    return CudaBlock(_Part(block, offset, nbytes), nbytes)


class _Foreign(transfers.Memory):
    """Another library's bytes."""

    def __init__(self, address: int, nbytes: int, owner: Any) -> None:
        self.address, self.nbytes, self._owner = address, nbytes, owner

    def free(self) -> None:
        self._owner = None


def memory_at(address: int, nbytes: int) -> driver.Memory:
    """Bytes of memory that somebody else holds."""
    return _Foreign(address, nbytes, None)


def taken(tensor: dlpack.Tensor, copy: bool) -> Buffer:
    """A buffer on another library's memory, from the element at its address to the last, or on a copy of that.

    Raises:
        DeviceError: it is on another GPU.
    """
    if tensor.device != dlpack_device():
        raise DeviceError(f"smelt uses GPU {driver.ordinal()}; the array is on number {tensor.device[1]}")
    driver.enter()
    last = sum((n - 1) * stride for n, stride in zip(tensor.aval.shape, tensor.strides))
    size = 0 if 0 in tensor.aval.shape else last + 1
    aval = Aval((size,), tensor.aval.dtype)
    block: SeparateBlock = CudaBlock(_Foreign(tensor.address, aval.nbytes, tensor.owner), aval.nbytes)
    if copy and size:
        source, block = block, MEMORY.block(aval.nbytes)
        block.handle.copy_from(source.handle)
        driver.wait()  # then the owner may have its memory again
    return Buffer.at(aval, block)


class CudaMemory(SeparateMemory):
    """The memory of the GPU that this process uses. A block may be lent again at once: all launches go to one stream,
    in order.
    """

    where = " on the GPU"

    @property
    def dlpack_device(self) -> tuple[int, int]:
        """Where arrays are, in DLPack's words."""
        return dlpack_device()

    def begin(self) -> None:
        driver.enter()

    def block_of(self, handle: driver.Memory, nbytes: int) -> CudaBlock:
        return CudaBlock(handle, nbytes)

    def write(self, handle: driver.Memory, array: np.ndarray) -> None:
        handle.write(array.ctypes.data, array.nbytes)

    def read(self, handle: driver.Memory, array: np.ndarray) -> None:
        handle.read(array.ctypes.data, array.nbytes)

    def synchronize(self) -> None:
        if self in pools:
            driver.synchronize()

    def make(self, size: int) -> _Memory:
        return _Memory(size)

    @property
    def most_cached(self) -> int:
        """The driver waits for all launches before it takes memory back."""
        return settings.gpu_pool_bytes

    # Steps that replace their state find the new one at the same two places in turn: so launches may be a graph.

    def put(self, blocks: list[tuple[int, _Memory]], memory: _Memory) -> None:
        heappush(blocks, (memory.address, memory))

    def next_of(self, blocks: list[tuple[int, _Memory]]) -> _Memory:
        """The one at the lowest address."""
        return heappop(blocks)[1]

    def why(self, nbytes: int) -> str:
        free, total = driver.memory_info()
        return (
            f"the GPU could not allocate {size_class(nbytes):,} bytes: of its {total:,} bytes {free:,} are free, and "
            f"smelt's arrays have {self.active_bytes:,}"
        )


MEMORY = CudaMemory()
