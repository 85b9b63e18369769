"""Launches on their way to the GPU."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from smelt.ir.errors import OutOfMemoryError

from .errors import MetalRunError, described, listed

if TYPE_CHECKING:
    from .device import AppleDevice


class Recording:
    """Launches on their way to the GPU: command buffers with one encoder each, one of them open at a time.

    Made by `AppleDevice.record`; who made it closes it, also after an error.
    """

    def __init__(self, device: AppleDevice, queue: Any, entries: Sequence[str], serial: bool):
        self._device, self._metal, self._queue, self._entries = device, device._metal, queue, entries
        metal = self._metal
        self._kind = metal.MTLDispatchTypeSerial if serial else metal.MTLDispatchTypeConcurrent
        self._buffer: Any = None
        self._encoder: Any = None
        self._committed: list[Any] = []
        self._pool = contextlib.ExitStack()

    @property
    def encoder(self) -> Any:
        """What launches are encoded in. Raises MetalRunError."""
        if self._encoder is None:
            # A pool of its own: a loop may take any number of command buffers.
            self._pool.enter_context(autorelease_pool())
            self._buffer = self._queue.commandBuffer()
            if self._buffer is None:
                raise MetalRunError(f"Metal gave no command buffer for {listed(self._entries)}")
            self._encoder = self._buffer.computeCommandEncoderWithDispatchType_(self._kind)
            if self._encoder is None:
                raise MetalRunError(f"Metal gave no compute encoder for {listed(self._entries)}")
        return self._encoder

    def end(self) -> None:
        """End the encoder: Metal aborts the process when one dies without."""
        if self._encoder is not None:
            self._encoder.endEncoding()
            self._encoder = None

    def commit(self) -> None:
        """Let the GPU begin; what is encoded next goes to another command buffer, which runs after this one."""
        self.end()
        if self._buffer is not None:
            self._buffer.commit()
            self._committed.append(self._buffer)
            self._buffer = None
            self._pool.close()

    def wait(self) -> float:
        """Commit, and wait for all that was committed; the seconds that it took on the GPU.

        Raises:
            MetalRunError: the GPU reported an error. MemoryError: it ran out of memory.
        """
        self.commit()
        seconds = 0.0
        while self._committed:
            buffer = self._committed[0]
            buffer.waitUntilCompleted()
            del self._committed[0]
            if buffer.status() != self._metal.MTLCommandBufferStatusCompleted:
                error = buffer.error()
                message = f"{listed(self._entries)} failed on {self._device.name}: {described(error)}"
                if error is not None and error.code() == self._metal.MTLCommandBufferErrorOutOfMemory:
                    raise OutOfMemoryError(message)
                raise MetalRunError(message)
            seconds += float(buffer.GPUEndTime() - buffer.GPUStartTime())
        return seconds

    def close(self) -> None:
        """End the encoder, and wait for what is still on the GPU: its memory goes to others afterwards."""
        self.end()
        self._pool.close()
        while self._committed:
            self._committed.pop(0).waitUntilCompleted()


def autorelease_pool() -> Any:
    """Releases what Metal's methods hand out when the block ends: a thread without a run loop never does."""
    try:
        import objc
    except ImportError:
        return contextlib.nullcontext()
    return objc.autorelease_pool()
