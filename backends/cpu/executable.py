"""Programs of the device ``cpu``."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any

from smelt.ir import profiling

from ..buffer import Buffer, pool, scratch
from ..device import Device
from ..executable import Executable, results_of, with_aliases
from .description import EntryStep
from .entry import fresh
from .running import Program


class CpuExecutable(Executable):
    """Runs kernels compiled by the cpu backend, here or by another process."""

    def __init__(self, program: Program, device: Device):
        self.program = program
        super().__init__(list(self.program.arguments), list(self.program.results))
        self._aliases = dict(self.program.aliases)
        self._memory = device.memory
        blanks = enumerate(Buffer.blanks(self.results))
        self._blanks = tuple([None if i in self._aliases else blank for i, blank in blanks])
        self._donatable = _donatable(program)
        #: Of programs for which nobody looks at the memory before.
        self._entry = program.entry(self._blanks)
        if program.has_texts:
            self.texts["kernel"] = lambda: self.program.as_text("kernel")
            self.texts["llvm"] = lambda: self.program.as_text("llvm")

    def run(self, inputs: Sequence[Buffer]) -> list[Buffer]:
        entry = self._entry
        if entry is not None and profiling.active is None and not pool.limit:
            if not self.program.arena_bytes:
                return with_aliases(entry(inputs, 0), self.results, inputs, self._aliases)
            address, keep = scratch(self.program.arena_bytes)
            found = entry(inputs, address)
            del keep
            return with_aliases(found, self.results, inputs, self._aliases)
        return self._run(inputs, with_aliases(fresh(self._blanks), self.results, inputs, self._aliases))

    @property
    def is_step(self) -> bool:
        steps = [step for f in self.program.description.functions.values() for step in f.steps]
        return not self.program.is_checked and all(isinstance(step, EntryStep) for step in steps)

    @property
    def donatable(self) -> frozenset[int]:
        return self._donatable

    def run_donated(self, inputs: Sequence[Buffer], donated: Collection[int]) -> list[Buffer]:
        if self.program.is_checked:  # its results are filled with what is no value before it runs
            return self.run(inputs)
        placed: dict[int, int | tuple[str, int]] = {}
        used: set[int] = set()
        for result, argument in self.program.description.donations:
            if argument in donated and argument not in used and result not in placed:
                placed[result] = argument
                used.add(argument)
        if not placed:  # small arrays: new ones are made in C
            return self.run(inputs)
        return self._run(inputs, results_of(self._memory, self.results, inputs, {**placed, **self._aliases}))

    def run_at(self, addresses: Sequence[int], work: int, lines: Callable[[int], Sequence[int]]) -> None:
        self.program.run_strided(addresses, work, lines)

    def _run(self, inputs: Sequence[Buffer], outputs: list[Buffer]) -> list[Buffer]:
        program = self.program
        if program.is_checked:  # an element that nobody writes shows
            for i, buffer in enumerate(outputs):
                if i not in self._aliases:
                    buffer.poison()
        if program.arena_bytes:
            address, keep = scratch(program.arena_bytes)
            if program.is_checked:
                keep.poison()
            program.run(inputs, outputs, address)
            del keep
        else:
            program.run(inputs, outputs, 0)
        return outputs

    def forget_texts(self) -> None:
        self.texts.clear()
        self.program.forget_texts()

    @property
    def kernels(self) -> list[Any]:
        return list(self.program.kernels)

    @property
    def arena_bytes(self) -> int:
        return self.program.arena_bytes


def _donatable(program: Program) -> frozenset[int]:
    """Machine code that nothing ends early cannot fail; what Python drives, or looks for Ctrl-C, can."""
    found = program.description
    steps = [step for function in found.functions.values() for step in function.steps]
    if found.has_long or found.is_checked or not all(isinstance(step, EntryStep) for step in steps):
        return frozenset()
    return frozenset(argument for _, argument in found.donations)
