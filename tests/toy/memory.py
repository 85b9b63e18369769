"""Memory that nobody but its device gets at: bytes in objects that neither NumPy nor ctypes can look into."""

from __future__ import annotations

import numpy as np

from smelt.backends.separate import SeparateMemory


class Cells:
    """Bytes of the device."""

    def __init__(self, size: int):
        self._bytes = bytearray(b"\xff" * size)

    def take(self, nbytes: int) -> bytes:
        return bytes(self._bytes[:nbytes])

    def put(self, data: bytes) -> None:
        self._bytes[: len(data)] = data


class ToyMemory(SeparateMemory):
    """Counts the copies from the host and to it, and how often somebody waited."""

    def __init__(self) -> None:
        super().__init__()
        self.written = self.read_back = self.waited = 0

    def make(self, size: int) -> Cells:
        return Cells(size)

    def write(self, handle: Cells, array: np.ndarray) -> None:
        self.written += 1
        handle.put(array.tobytes())

    def read(self, handle: Cells, array: np.ndarray) -> None:
        self.read_back += 1
        array.reshape(-1).view(np.uint8)[:] = np.frombuffer(handle.take(array.nbytes), np.uint8)

    def synchronize(self) -> None:
        self.waited += 1

    @property
    def copies(self) -> tuple[int, int]:
        """How often arrays went to the device, and back."""
        return self.written, self.read_back


MEMORY = ToyMemory()
