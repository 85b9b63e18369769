"""Programs of the device ``cpu``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..buffer import Buffer, scratch
from ..device import Device
from ..executable import Executable
from .program import Program, compile_module


class CpuExecutable(Executable):
    """Runs kernels compiled by the cpu backend."""

    def __init__(self, module: Any, device: Device):
        self.program = compile_module(module)
        super().__init__(list(self.program.arguments), list(self.program.results))
        self._aliases = dict(self.program.aliases)
        self._fresh = [(i, a) for i, a in enumerate(self.results) if i not in self._aliases]
        self.texts["kernel"] = lambda: self.program.as_text("kernel")
        self.texts["llvm"] = lambda: self.program.as_text("llvm")

    def run(self, inputs: Sequence[Buffer]) -> list[Buffer]:
        program = self.program
        outputs: list[Any] = [None] * len(self.results)
        if self._aliases:
            for i, aval in self._fresh:
                outputs[i] = Buffer.empty(aval)
            for i, source in self._aliases.items():
                shared = inputs[source] if isinstance(source, int) else outputs[source[1]]
                outputs[i] = shared.reshaped(self.results[i])
        else:
            outputs = [Buffer.empty(aval) for aval in self.results]
        if program.is_checked:  # an element that nobody writes shows
            for i, _ in self._fresh:
                outputs[i].poison()
        if program.arena_bytes:
            address, keep = scratch(program.arena_bytes)
            if program.is_checked:
                keep.poison()
            program.run(inputs, outputs, address)
            del keep
        else:
            program.run(inputs, outputs, 0)
        return outputs

    @property
    def kernels(self) -> list[Any]:
        return list(self.program.kernels)

    @property
    def arena_bytes(self) -> int:
        return self.program.arena_bytes


def lower(module: Any, target: str | None = None) -> Program:
    """A program to look at. There is one target: this machine."""
    return compile_module(module)
