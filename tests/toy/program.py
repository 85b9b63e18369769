"""Programs of the toy: those of the CPU, on copies of what lies in the toy's memory."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from smelt.backends.buffer import Buffer, scratch
from smelt.backends.cpu.program import Program, compile_module
from smelt.backends.device import Device
from smelt.backends.executable import Executable, results_of
from smelt.backends.pipelines import SIMPLIFY

from .memory import MEMORY

PIPELINE = f"{SIMPLIFY},fuse{{max-buffers=4}},plan-buffers"


class ToyExecutable(Executable):
    """Runs on the toy."""

    launches = 0  #: of all programs

    def __init__(self, module: Any, device: Device):
        self.program = compile_module(module)
        super().__init__(self.program.arguments, self.program.results)
        self.texts["beads"] = lambda: beads(self.program)

    def run(self, inputs: Sequence[Buffer]) -> list[Buffer]:
        aliases = self.program.aliases
        arguments = [MEMORY.adopt(b) for b in inputs]
        results = results_of(MEMORY, self.results, arguments, aliases)
        inside = [_inside(b) for b in arguments]
        outside = [Buffer.empty(b.aval) for b in results]
        address, keep = scratch(self.program.arena_bytes)
        self.program.run(inside, outside, address)
        del keep
        for i, (source, target) in enumerate(zip(outside, results)):
            if i not in aliases:
                target.home.handle.put(source.array.tobytes())
        ToyExecutable.launches += 1
        return results

    @property
    def kernels(self) -> list[Any]:
        return list(self.program.kernels)


def _inside(buffer: Buffer) -> Buffer:
    """What a core of the toy has of a buffer while it computes."""
    found = Buffer.empty(buffer.aval)
    data = np.frombuffer(buffer.home.handle.take(buffer.aval.nbytes), np.uint8)
    found.array.reshape(-1).view(np.uint8)[:] = data
    return found


class Beads:
    """A program to look at."""

    def __init__(self, program: Program):
        self.program = program

    def as_text(self, stage: str) -> str:
        return beads(self.program)


def beads(program: Program) -> str:
    """How a program looks on the toy."""
    return "".join(f"{kernel.name}: {kernel.schedule}\n" for kernel in program.kernels)


def lower(module: Any, target: str | None = None) -> Beads:
    return Beads(compile_module(module))
