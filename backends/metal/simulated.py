"""The device ``metal:sim``: Metal's kernels on this machine's CPU, thread by thread, in NumPy's memory."""

from __future__ import annotations

import ctypes
import functools
import re
import sys
from collections.abc import Sequence
from typing import Any

import numpy as np

from smelt.ir.aval import Aval
from smelt.ir.settings import settings

from ..buffer import Buffer, HostMemory
from ..gpu.executable import GpuExecutable, fill
from ..gpu.manifest import Manifest, Size
from ..gpu.portable import GpuPortable
from ..gpu.steps import walk
from .apple.order import element_bytes
from .simulator import Library, Options

#: What vectors of a kernel need.
ALIGNMENT = 16


class SimulatedMemory(HostMemory):
    """NumPy's memory, where vectors of 16 bytes can start."""

    def adopt(self, buffer: Buffer) -> Buffer:
        if buffer.address % ALIGNMENT == 0 or not buffer.aval.nbytes:
            return buffer
        copy = Buffer.empty(buffer.aval)
        np.copyto(copy.array, buffer.array)
        return copy


MEMORY = SimulatedMemory()


class SimulatedProgram:
    """A text compiled for the host. SMELT_RACE looks for races and accesses out of bounds."""

    def __init__(self, text: str, manifest: Manifest):
        options = Options(order=settings.race, poison=True, guard=True) if settings.race else Options()
        is_used = manifest.steps and any(kernel.own is None for kernel in manifest.kernels)
        library = Library(text, options) if is_used else None
        self._manifest, self._lines = manifest, _user_lines(text)
        self._kernels = {}
        for kernel in manifest.kernels:
            sizes = [max(1, info.elements * (element_bytes(info.type) or 1)) for info in kernel.buffers]
            buffers = [(b.index, size) for b, size in zip(kernel.buffers, sizes)]
            own = kernel.own
            code = library if own is None else Library(own.text, options)
            constants = [] if own is None else [(c.index, np.frombuffer(c.bytes, np.uint8)) for c in own.constants]
            self._kernels[kernel.entry] = kernel, code, buffers, constants

    def run(self, arguments: Sequence[Buffer], results: Sequence[Buffer], arena: Buffer | None) -> None:
        tables: dict[str, Sequence[Any]] = {"argument": arguments, "result": results, "arena": [arena]}

        def address(where: Any) -> int:
            kind, index, offset = where
            return int(tables[kind][index].address) + offset

        def room(where: Any) -> int:
            """Bytes from a place on: a kernel for all sizes does not say how many it may touch."""
            kind, index, offset = where
            return max(1, tables[kind][index].aval.nbytes - offset)

        def read(where: Any, nbytes: int) -> int:
            return int.from_bytes(ctypes.string_at(address(where), nbytes), sys.byteorder, signed=True)

        for launch, places in walk(self._manifest, read):
            kernel, library, buffers, constants = self._kernels[launch.entry]
            bound = {n: (address(where), min(size, room(where))) for (n, size), where in zip(buffers, places)}
            bound |= {n: (data.__array_interface__["data"][0], data.nbytes) for n, data in constants}
            assert library is not None
            own = kernel.own
            entry, grid = (kernel.entry, None) if own is None else (own.function, own.grid)
            line = self._lines.get(kernel.entry, "")
            library.launch(entry, bound, kernel.threadgroups, kernel.threads, grid=grid, line=line)


#: Above a kernel stands which ops it came from (`smelt.backends.gpu.schedules.schedule.source_lines`).
_SOURCE = re.compile(r"//   smelt\.[\w., ]* at (.+:\d+)$")
_KERNEL = re.compile(r"kernel void (\w+)\(")


def _user_lines(text: str) -> dict[str, str]:
    """Of each kernel of a text the user's line that it computes; of several the last."""
    found: dict[str, str] = {}
    line = ""
    for words in text.split("\n"):
        if source := _SOURCE.match(words):
            line = source[1]
        elif kernel := _KERNEL.match(words):
            found[kernel[1]], line = line, ""
    return found


class SimulatedExecutable(GpuExecutable):
    """Programs of ``metal:sim``."""

    def load(self, text: str, manifest: Manifest) -> SimulatedProgram:
        return SimulatedProgram(text, manifest)


PORTABLE = GpuPortable(SimulatedExecutable)


@functools.lru_cache(maxsize=64)
def _library(text: str) -> Library:
    return Library(text)


def launch(
    text: str, entry: str, inputs: Sequence[Buffer | bytes], results: Sequence[Aval], init_value: Any,
    grid: Size, threads: Size,
) -> list[Buffer]:  # fmt: skip
    """Run one kernel of a user's text; what it writes.

    Args:
        inputs: its first buffers, in the order of their indices; bytes are constants.
        results: the avals of its other buffers.
        init_value: a number that these hold before, or None.
        grid: threads along x, y, z.
        threads: of a threadgroup.

    Raises:
        SimulatorError: the text does not compile, or went wrong.
    """
    library = _library(text)
    found = [Buffer.empty(aval) for aval in results]
    fill(found, init_value)
    if 0 in grid:
        return found
    arrays = [c.array if isinstance(c, Buffer) else np.frombuffer(c, np.uint8) for c in inputs]
    arrays += [buffer.array for buffer in found]
    buffers = {i: (a.__array_interface__["data"][0], a.nbytes) for i, a in enumerate(arrays)}
    x, y, z = (-(-n // t) for n, t in zip(grid, threads))
    library.launch(entry, buffers, (x, y, z), threads, grid=grid)
    return found
