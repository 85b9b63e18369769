"""What a program of a GPU is: segments in order, and what they look like.

A `DeviceSegment` is kernels, their launches, and the loops and branches around these; a `HostSegment` is a function
that the place pass gave to the CPU. All segments see the same table: the program's arguments, its results, and one
arena of temporary memory.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from smelt.backends.cpu import program as cpu
from smelt.ir import mlir
from smelt.ir.aval import Aval
from smelt.ir.dialect import context
from smelt.ir.errors import AttributeValueError, SmeltError
from smelt.passes.rewrite import ARENA_BYTES

from .manifest import BufferSlot, KernelInfo, Manifest

#: From kernel IR to text and a manifest.
Emit = Callable[[Any], tuple[str, Manifest]]


@dataclass(frozen=True)
class DeviceSegment:
    """Kernels and their launches.

    Attributes:
        module: the kernel IR.
        emit: makes text of it.
    """

    module: Any
    emit: Emit

    @property
    def emitted(self) -> tuple[str, Manifest]:
        # Not functools.cached_property, which has a lock of its own before Python 3.12: two orders of two locks.
        with mlir.lock:
            if "_emitted" not in self.__dict__:
                self.__dict__["_emitted"] = self.emit(self.module)
            return self.__dict__["_emitted"]

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
    program: cpu.Program
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

    def _describe(self, operation: Any, names: Sequence[str]) -> None:
        """What a manifest says of the whole program. `names`: of the arguments, where these are known."""
        ir, ctx = mlir.ir, context()
        i64 = ir.IntegerType.get_signless(64, ctx)
        outs = [f"result{i}" for i in range(len(self.results))]
        attributes = operation.attributes
        attributes["smelt.results"] = ir.IntegerAttr.get(i64, len(self.results))
        attributes[ARENA_BYTES] = ir.IntegerAttr.get(i64, self.arena_bytes)
        called = [name or f"arg{i}" for i, name in enumerate(names)]
        attributes["smelt.arguments"] = _arrays(called, self.arguments)
        attributes["smelt.array_results"] = _arrays(outs, self.results)
        if self.aliases:
            attributes["smelt.aliases"] = _aliases(self.aliases)


@functools.cache
def cleanup() -> Any:
    """A pass manager: what schedules compute twice is computed once."""
    return mlir.passmanager.PassManager.parse("builtin.module(cse)", context())


def _aliases(aliases: Mapping[int, int | tuple[str, int]]) -> Any:
    ir, ctx = mlir.ir, context()
    i64 = ir.IntegerType.get_signless(64, ctx)
    found = []
    for result, source in aliases.items():
        kind, index = ("argument", source) if isinstance(source, int) else source
        numbers = [ir.IntegerAttr.get(i64, n) for n in (result, index)]
        found.append(ir.ArrayAttr.get([numbers[0], ir.StringAttr.get(kind, ctx), numbers[1]], ctx))
    return ir.ArrayAttr.get(found, ctx)


def _arrays(names: Sequence[str], avals: Sequence[Aval]) -> Any:
    ir, ctx = mlir.ir, context()
    return ir.ArrayAttr.get(
        [
            ir.ArrayAttr.get(
                [
                    ir.StringAttr.get(name, ctx),
                    ir.StringAttr.get(aval.dtype.name, ctx),
                    ir.DenseI64ArrayAttr.get(list(aval.shape), ctx),
                ],
                ctx,
            )
            for name, aval in zip(names, avals)
        ],
        ctx,
    )
