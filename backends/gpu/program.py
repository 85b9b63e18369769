"""What a program of a GPU is: segments in order, and what they look like.

A `DeviceSegment` is kernels, their launches, and the loops and branches around these; a `HostSegment` is a function
that the place pass gave to the CPU. All segments see the same table: the program's arguments, its results, and one
arena of temporary memory.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from smelt.backends.cpu.running import Program as CpuProgram
from smelt.ir import mlir
from smelt.ir.aval import Aval
from smelt.ir.errors import AttributeValueError, SmeltError

from .manifest import BufferSlot, KernelInfo, Manifest

#: From kernel IR to text and a manifest.
Emit = Callable[[Any], tuple[str, Manifest]]


class DeviceSegment:
    """Kernels and their launches.

    Args:
        module: the kernel IR. emit: makes text of it, when it is first asked for.
    """

    def __init__(self, module: Any, emit: Emit):
        self.module: Any | None = module
        self._emit = emit
        self._emitted: tuple[str, Manifest] | None = None

    @classmethod
    def of_text(cls, text: str, manifest: Manifest) -> DeviceSegment:
        """What was emitted before; its kernel IR is not known."""
        return cls(None, lambda module: (text, manifest))

    @property
    def emitted(self) -> tuple[str, Manifest]:
        if self._emitted is None:
            with mlir.lock:
                self._emitted = self._emitted or self._emit(self.module)
        return self._emitted

    @property
    def text(self) -> str:
        return self.emitted[0]

    @property
    def manifest(self) -> Manifest:
        return self.emitted[1]


@dataclass(frozen=True)
class HostSegment:
    """A function that runs on the CPU, over the same memory."""

    name: str
    program: CpuProgram
    arguments: Sequence[tuple[BufferSlot, Aval]]
    results: Sequence[tuple[BufferSlot, Aval]]


class Program:
    """Segments, and the arrays that they work on.

    Attributes:
        arguments, results: avals.
        aliases: results that are an argument's memory (its number), or another result's ("result", number).
        segments: what runs, in order.
        arena_bytes: temporary memory.
    """

    arguments: list[Aval]
    results: list[Aval]
    aliases: Mapping[int, int | tuple[str, int]]
    segments: list[DeviceSegment | HostSegment]
    arena_bytes: int

    # What it looks like

    @property
    def kernels(self) -> list[KernelInfo]:
        """One entry a launch, in order."""
        found = []
        for segment in self.segments:
            if isinstance(segment, DeviceSegment):
                by_entry = {kernel.entry: kernel for kernel in segment.manifest.kernels}
                found += [by_entry[launch.entry] for launch in segment.manifest.launches]
        return found

    def as_text(self, stage: str) -> str:
        """The program as text: "gpu" (kernel IR), "msl" or "manifest" (JSON); segments one after the other."""
        if stage not in ("gpu", "msl", "manifest"):
            raise AttributeValueError(f'stage must be "gpu", "msl" or "manifest", is {stage!r}')
        parts = []
        for segment in self.segments:
            if isinstance(segment, HostSegment):
                parts.append(f"// @{segment.name} runs on the CPU\n")
            elif stage == "gpu":
                assert segment.module is not None, "programs of other processes have no such stage"
                with mlir.lock:
                    parts.append(segment.module.operation.get_asm(large_elements_limit=64) + "\n")
            else:
                parts.append(segment.text if stage == "msl" else segment.manifest.to_json())
        return "\n".join(parts)

    def save(self, directory: str, name: str) -> list[str]:
        """Write ``name.metal`` and ``name.json`` (the manifest) for a host program without smelt; their paths.

        Raises:
            SmeltError: part of the program runs on the CPU. OSError: the files cannot be written.
        """
        hosts = [s.name for s in self.segments if isinstance(s, HostSegment)]
        if hosts:
            raise SmeltError(
                f"{name}: {', '.join(f'@{h}' for h in hosts)} runs on the CPU, so Metal text alone is not the program; "
                "Metal has neither float64 nor LAPACK: see docs/metal.md"
            )
        os.makedirs(directory, exist_ok=True)
        paths = []
        for suffix, stage in ((".metal", "msl"), (".json", "manifest")):
            paths.append(os.path.join(directory, name + suffix))
            with open(paths[-1], "w", encoding="utf-8") as file:
                file.write(self.as_text(stage))
        return paths
