"""Programs of a GPU: texts that are launched, and functions on the CPU between them.

What a GPU's backend adds is where memory comes from, and what runs a text.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from smelt.ir import dtypes, locks
from smelt.ir.aval import Aval
from smelt.ir.ops.constants import constant_array

from ..buffer import Buffer, scratch
from ..cpu.host import copy
from ..device import Device
from ..executable import Executable, results_of
from .program import HostSegment, Program


class _At:
    """Memory that a host segment works on."""

    __slots__ = ("address",)

    def __init__(self, address: int):
        self.address = address


class HostCall:
    """A function on the CPU, between launches of a GPU whose memory the CPU sees."""

    def __init__(self, segment: HostSegment):
        self.segment = segment

    def run(self, arguments: Sequence[Buffer], results: Sequence[Buffer], arena: Buffer | None) -> None:
        tables: dict[str, Sequence[Any]] = {"argument": arguments, "result": results, "arena": [arena]}

        def at(place: Any) -> _At:
            return _At(tables[place.kind][place.index].address + place.offset)

        self.call([at(p) for p, _ in self.segment.arguments], [at(p) for p, _ in self.segment.results])

    def call(self, inputs: Sequence[Any], outputs: Sequence[Any]) -> None:
        """Run it on memory of the host: anything with an `address`."""
        program = self.segment.program
        address, keep = scratch(program.arena_bytes)
        program.run(inputs, outputs, address)
        for i, source in program.aliases.items():  # a result that is an argument's memory is copied here
            _, aval = self.segment.results[i]
            lies_at = inputs[source].address if isinstance(source, int) else outputs[source[1]].address
            copy(lies_at, outputs[i].address, aval.nbytes)
        del keep


class GpuExecutable(Executable):
    """Runs kernels emitted as text, and what was placed on the CPU between them.

    Attributes:
        host_call: what runs a function on the CPU, with the arguments of `load`'s ``run``.
    """

    host_call: type[HostCall] = HostCall

    def __init__(self, program: Program, device: Device):
        self.program = program
        super().__init__(list(program.arguments), list(program.results))
        self._memory = device.memory
        self._lock = locks.lock()
        self._loaded: list[Any] | None = None
        self._aliases = dict(program.aliases)

    @property
    def is_prepared(self) -> bool:
        return self._loaded is not None

    def prepare(self) -> None:
        with self._lock:
            if self._loaded is None:
                self._loaded = [
                    self.host_call(s) if isinstance(s, HostSegment) else self.load(s.text, s.manifest)
                    for s in self.program.segments
                ]

    @property
    def parts(self) -> list[Any]:
        """What `load` returned for each text, and what stands between them, in order."""
        if self._loaded is None:
            self.prepare()
        assert self._loaded is not None
        return self._loaded

    def load(self, text: str, manifest: Any) -> Any:
        """The text as something with ``run(arguments, results, arena)``, all of them buffers."""
        raise NotImplementedError

    def run(self, inputs: Sequence[Buffer]) -> list[Buffer]:
        memory = self._memory
        arguments = [memory.adopt(b) for b in inputs]
        results = results_of(memory, self.results, arguments, self._aliases)
        nbytes = self.program.arena_bytes
        arena = memory.empty(Aval((nbytes,), dtypes.uint8)) if nbytes else None
        for segment in self.parts:
            segment.run(arguments, results, arena)
        return results

    def launch(self, arguments: Sequence[Buffer], results: Sequence[Buffer]) -> None:
        """Run a kernel without sizes on memory of the device, which may be larger than the types say."""
        for segment in self.parts:
            segment.run(arguments, results, None)

    @property
    def kernels(self) -> list[Any]:
        return self.program.kernels

    @property
    def arena_bytes(self) -> int:
        return self.program.arena_bytes


def fill(buffers: Sequence[Buffer], value: bool | int | float | None) -> None:
    """Write a number into all elements; None leaves them as they are."""
    if value is not None:
        for buffer in buffers:
            buffer.array[...] = constant_array(value, buffer.aval.dtype)
