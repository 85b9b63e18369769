"""The device ``metal``: a Mac's GPU. Its buffers are Metal's, in memory that NumPy sees without a copy; arrays made
elsewhere are copied once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from smelt.ir.aval import Aval

from ...buffer import Buffer, pools
from ...gpu.executable import GpuExecutable, fill
from ...gpu.manifest import Manifest, Size
from ...gpu.portable import GpuPortable
from .device import AppleDevice
from .memory import Block
from .program import AppleProgram


class AppleMemory:
    """Metal buffers in shared storage."""

    @property
    def device(self) -> AppleDevice:
        """The GPU, whose pool is counted from here on. Raises DeviceError where there is none."""
        found = AppleDevice.default()
        if found.pool not in pools:
            pools.append(found.pool)
        return found

    def empty(self, aval: Aval) -> Buffer:
        block = self.device.allocate(max(aval.nbytes, 1))
        array = block.array[: aval.nbytes].view(aval.dtype.numpy).reshape(aval.shape)
        buffer = Buffer(aval, array)
        buffer.home = block
        return buffer

    def adopt(self, buffer: Buffer) -> Buffer:
        if isinstance(buffer.home, Block):
            return buffer
        copy = self.empty(buffer.aval)
        np.copyto(copy.array, buffer.array)
        return buffer.housed(copy.home)  # elements do not change, so the copy serves later programs too

    def synchronize(self) -> None:
        """Programs have ended when their call returns."""

    def system_bytes(self) -> int | None:
        return self.device.allocated_bytes


MEMORY = AppleMemory()


class AppleSegment:
    """A program of Apple's runtime, over smelt's buffers."""

    def __init__(self, program: AppleProgram):
        self.program = program

    def run(self, arguments: Sequence[Buffer], results: Sequence[Buffer], arena: Buffer | None) -> None:
        home = None if arena is None else arena.home
        self.program.run([b.home for b in arguments], [b.home for b in results], home)


class AppleExecutable(GpuExecutable):
    """Programs of ``metal``."""

    def load(self, text: str, manifest: Manifest) -> AppleSegment:
        return AppleSegment(MEMORY.device.load(text, manifest))


PORTABLE = GpuPortable(AppleExecutable)


def launch(
    text: str, entry: str, inputs: Sequence[Buffer | bytes], results: Sequence[Aval], init_value: Any,
    grid: Size, threads: Size,
) -> list[Buffer]:  # fmt: skip
    """Run one kernel of a user's text on the GPU; see `smelt.backends.metal.simulated.launch`.

    Raises:
        MetalCompileError, MetalRunError.
    """
    blocks: list[Any] = [MEMORY.adopt(c).home if isinstance(c, Buffer) else c for c in inputs]
    found = [MEMORY.empty(aval) for aval in results]
    fill(found, init_value)
    blocks += [buffer.home for buffer in found]
    MEMORY.device.dispatch(text, entry, dict(enumerate(blocks)), grid, threads)
    return found


def details() -> dict[str, str | int]:
    """What is known of the GPU."""
    device = MEMORY.device
    return {"gpu": device.name, "max_threads": device.max_threads}
