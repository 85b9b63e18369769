"""The device ``apart``: the CPU's kernels over memory that is not the host's, as a GPU's is not.

``pytest --device apart`` runs where there is no GPU, and finds what takes a device's arrays for the host's.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from smelt.backends.buffer import Buffer
from smelt.backends.cpu import CPU
from smelt.backends.device import Device, register
from smelt.backends.executable import Executable
from smelt.ir.aval import Aval


class Block:
    """Bytes that the host sees as copies alone."""

    def __init__(self, array: np.ndarray):
        self.bytes = np.ascontiguousarray(array).tobytes()

    def to_host(self, aval: Aval) -> np.ndarray:
        found = Buffer.empty(aval).array
        found[...] = np.frombuffer(self.bytes, aval.dtype.numpy, aval.size).reshape(aval.shape)
        return found


class Apart:
    """Where the device's arrays lie."""

    def empty(self, aval: Aval) -> Buffer:
        return Buffer.at(aval, Block(np.empty(aval.shape, aval.dtype.numpy)))

    def adopt(self, buffer: Buffer) -> Buffer:
        return buffer if isinstance(buffer.home, Block) else buffer.housed(Block(buffer.array))

    def synchronize(self) -> None:
        """Nothing is launched that is not waited for."""

    def system_bytes(self) -> int | None:
        return 0


MEMORY = Apart()


class ApartExecutable(Executable):
    """A program of the CPU, whose arguments are fetched and whose results are sent."""

    def __init__(self, module: Any, device: Device):
        self._program = CPU.executable(module, CPU)
        super().__init__(self._program.arguments, self._program.results)
        self.texts |= self._program.texts

    def run(self, inputs: Sequence[Buffer]) -> list[Buffer]:
        fetched = [Buffer(b.aval, MEMORY.adopt(b).home.to_host(b.aval)) for b in inputs]
        return [Buffer.at(b.aval, Block(b.array)) for b in self._program.run(fetched)]

    @property
    def kernels(self) -> list[Any]:
        return self._program.kernels


APART = register(
    Device(
        "apart", pipeline=CPU.pipeline, executable=ApartExecutable, memory=MEMORY, target=CPU.target, kind="gpu",
        modules=CPU.modules, stages=CPU.stages, lower=CPU.lower,
    )
)  # fmt: skip
