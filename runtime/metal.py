"""Programs on Metal devices: ``metal`` (Apple's GPU) and ``metal:sim`` (the same text on this machine's CPU).

Both have one memory with the CPU. On ``metal:sim`` a buffer is a NumPy array; on ``metal`` its block
belongs to a Metal buffer, which NumPy sees without a copy. Arrays made elsewhere are copied once.
"""

from __future__ import annotations

import ctypes
import functools
import sys
from collections.abc import Sequence
from typing import Any

import numpy as np

from smelt.ir import mlir
from smelt.ir.aval import Aval
from smelt.ir.errors import IRError
from smelt.ir.settings import settings

from .buffer import Buffer, pools, scratch
from .device import metal_sim
from .executable import Executable, load_compiler

#: What a program for Metal can be shown as: kernel IR, Metal text, launches as JSON.
METAL_STAGES = ("gpu", "msl", "manifest")
#: What vectors of a kernel need.
ALIGNMENT = 16


class SimulatedMemory:
    """Memory of ``metal:sim``: NumPy's."""

    def empty(self, aval: Aval) -> Buffer:
        return Buffer.empty(aval)

    def adopt(self, buffer: Buffer) -> Buffer:
        """The buffer, or a copy of it where kernels can read it."""
        if buffer.address % ALIGNMENT == 0 or not buffer.aval.nbytes:
            return buffer
        copy = Buffer.empty(buffer.aval)
        np.copyto(copy.array, buffer.array)
        return copy

    def load(self, text: str, manifest: Any) -> Any:
        return SimulatedProgram(text, manifest)

    def arena(self, nbytes: int) -> Any:
        return scratch(nbytes)[1]


class SimulatedProgram:
    """A text compiled for the host. SMELT_RACE looks for races and accesses out of bounds."""

    def __init__(self, text: str, manifest: Any):
        from smelt.backends.metal.apple.order import element_bytes
        from smelt.backends.metal.simulator import Library, Options

        options = Options(order=settings.race, poison=True, guard=True) if settings.race else Options()
        self._library = Library(text, options) if manifest.steps else None
        self._steps = manifest.steps
        self._kernels = {}
        for kernel in manifest.kernels:
            sizes = [max(1, info.elements * (element_bytes(info.type) or 1)) for info in kernel.buffers]
            self._kernels[kernel.entry] = kernel, [(b.index, size) for b, size in zip(kernel.buffers, sizes)]

    def run(self, arguments: Sequence[Buffer], results: Sequence[Buffer], arena: Buffer | None) -> None:
        from smelt.backends.gpu.steps import walk

        tables: dict[str, Sequence[Any]] = {"argument": arguments, "result": results, "arena": [arena]}

        def address(where: Any) -> int:
            kind, index, offset = where
            return int(tables[kind][index].address) + offset

        def read(where: Any, nbytes: int) -> int:
            return int.from_bytes(ctypes.string_at(address(where), nbytes), sys.byteorder, signed=True)

        for launch, places in walk(self._steps, read):
            kernel, buffers = self._kernels[launch.entry]
            bound = {n: (address(where), size) for (n, size), where in zip(buffers, places)}
            assert self._library is not None
            self._library.launch(kernel.entry, bound, kernel.threadgroups, kernel.threads)


class AppleMemory:
    """Memory of ``metal``: Metal buffers in shared storage."""

    def __init__(self, device: Any):
        self.device = device
        pools.append(device.pool)

    def empty(self, aval: Aval) -> Buffer:
        block = self.device.allocate(max(aval.nbytes, 1))
        array = block.array[: aval.nbytes].view(aval.dtype.numpy).reshape(aval.shape)
        buffer = Buffer(aval, array)
        buffer.home = block
        return buffer

    def adopt(self, buffer: Buffer) -> Buffer:
        if buffer.home is None:  # elements do not change, so the copy serves later programs too
            copy = self.empty(buffer.aval)
            np.copyto(copy.array, buffer.array)
            buffer.home = copy.home
        return buffer

    def load(self, text: str, manifest: Any) -> Any:
        return AppleSegment(self.device.load(text, manifest))

    def arena(self, nbytes: int) -> Buffer:
        from smelt.ir import dtypes

        return self.empty(Aval((nbytes,), dtypes.uint8))


class AppleSegment:
    """A program of Apple's runtime, over smelt's buffers."""

    def __init__(self, program: Any):
        self.program = program

    def run(self, arguments: Sequence[Buffer], results: Sequence[Buffer], arena: Buffer | None) -> None:
        home = None if arena is None else arena.home
        self.program.run([b.home for b in arguments], [b.home for b in results], home)


class _At:
    """Memory that a host segment works on."""

    __slots__ = ("address",)

    def __init__(self, address: int):
        self.address = address


class HostStep:
    """A function on the CPU, between launches."""

    def __init__(self, segment: Any):
        self.segment = segment

    def run(self, arguments: Sequence[Buffer], results: Sequence[Buffer], arena: Buffer | None) -> None:
        tables: dict[str, Sequence[Any]] = {"argument": arguments, "result": results, "arena": [arena]}
        program = self.segment.program

        def at(place: Any) -> _At:
            return _At(tables[place.kind][place.index].address + place.offset)

        inputs = [at(place) for place, _ in self.segment.arguments]
        outputs = [at(place) for place, _ in self.segment.results]
        address, keep = scratch(program.arena_bytes)
        program.run(inputs, outputs, address)
        for i, source in program.aliases.items():  # a result that is an argument's memory is copied here
            _, aval = self.segment.results[i]
            lies_at = inputs[source].address if isinstance(source, int) else outputs[source[1]].address
            copy_bytes(lies_at, outputs[i].address, aval.nbytes)
        del keep


def copy_bytes(source: int, target: int, nbytes: int) -> None:
    """Copy memory by address."""
    if source != target and nbytes:
        ctypes.memmove(target, source, nbytes)


@functools.cache
def memory_of(device: str) -> Any:
    """The memory of a Metal device. Raises DeviceError where there is none."""
    if device == "metal:sim":
        return SimulatedMemory()
    from smelt.backends.metal.apple import AppleDevice

    return AppleMemory(AppleDevice.default())


class MetalExecutable(Executable):
    """Runs kernels emitted as Metal Shading Language, and what was placed on the CPU between them."""

    def __init__(self, module: Any, device: str, gpu: str | None = None):
        from smelt.backends import metal
        from smelt.backends.gpu.program import HostSegment

        self.program = metal.compile_module(module, gpu or ("simulator" if device == "metal:sim" else "apple8"))
        super().__init__(list(self.program.arguments), list(self.program.results))
        self._memory = memory_of(device)
        self._segments = [
            HostStep(s) if isinstance(s, HostSegment) else self._memory.load(s.text, s.manifest)
            for s in self.program.segments
        ]
        self._aliases = dict(self.program.aliases)
        self.texts |= {stage: functools.partial(self.program.as_text, stage) for stage in METAL_STAGES}

    def run(self, inputs: Sequence[Buffer]) -> list[Buffer]:
        memory = self._memory
        arguments = [memory.adopt(b) for b in inputs]
        results: list[Any] = [None] * len(self.results)
        for i, aval in enumerate(self.results):
            if i not in self._aliases:
                results[i] = memory.empty(aval)
        for i, source in self._aliases.items():
            shared = arguments[source] if isinstance(source, int) else results[source[1]]
            results[i] = shared.reshaped(self.results[i])
        arena = memory.arena(self.program.arena_bytes) if self.program.arena_bytes else None
        for segment in self._segments:
            segment.run(arguments, results, arena)
        return results

    @property
    def kernels(self) -> list[Any]:
        return self.program.kernels

    @property
    def arena_bytes(self) -> int:
        return self.program.arena_bytes


def cross_compile(module: Any, gpu: str = "apple8") -> Any:
    """A program for Metal from a module (which is consumed), on any machine.

    Args:
        gpu: a name in `smelt.backends.gpu.devices.GPUS`.

    Raises:
        IRError: there is no such GPU, or no function @main.
    """
    load_compiler(metal_sim)
    from smelt.backends import metal
    from smelt.backends.gpu.devices import GPUS
    from smelt.passes import Pipeline

    if gpu not in GPUS:
        raise IRError(f"there is no GPU description {gpu!r}; there are {', '.join(GPUS)}")
    with mlir.lock:
        Pipeline.parse(metal.PIPELINE).run(module)
        return metal.compile_module(module, gpu)
