"""From a fused module to kernel IR, its text, and the order of launches.

A program is a list of segments. A `DeviceSegment` is kernels, their launches, and the loops and branches
around these; a `HostSegment` is a function that the place pass gave to the CPU. All segments see the
same table: the program's arguments, its results, and one arena of temporary memory.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from smelt.backends.bodies import aliases_of
from smelt.backends.cpu import program as cpu
from smelt.ir import mlir
from smelt.ir.aval import Aval
from smelt.ir.builder import OpView, Value, functions, read_function
from smelt.ir.dialect import context
from smelt.ir.errors import AttributeValueError, SmeltError
from smelt.passes import Pipeline
from smelt.passes.call_graph import reached
from smelt.passes.kernels.plan_buffers import arena_bytes, is_view, offsets_of, origin
from smelt.passes.rewrite import ARENA_BYTES, is_placed

from .devices import GPUS, Gpu
from .kernel import GpuModule
from .launches import FunctionPlanner, MainEmitter
from .library import DeviceLibrary
from .manifest import BufferSlot, KernelInfo, Manifest
from .schedules.schedule import argument_name

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
    """A module that has been through the pipeline up to ``fuse,plan-buffers``, as kernels.

    Attributes:
        arguments, results: avals.
        aliases: results that are an argument's memory (its number), or another result's ("result", number).
        segments: what runs, in order.
        arena_bytes: temporary memory.
    """

    def __init__(self, module: Any, gpu: Gpu, emit: Emit, library: DeviceLibrary | None = None):
        self.gpu, self._emit, self._library = gpu, emit, library
        self._found = functions(module)
        self.main = read_function(self._found["main"])
        self.arguments: list[Aval] = [v.aval for v in self.main.arguments]
        self.results: list[Aval] = [v.aval for v in self.main.returns]
        self.aliases = aliases_of(self.main.arguments, self.main.returns)
        self._returned = {origin(v): i for i, v in enumerate(self.main.returns) if i not in self.aliases}
        self.arena_bytes = arena_bytes(self._found["main"])
        self._scratch_base = -(-self.arena_bytes // 64) * 64
        self._places = self._place_values()
        self.segments = self._build()

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

    # Where values lie

    def _place_values(self) -> dict[Value, BufferSlot]:
        places = {v: BufferSlot("argument", i) for i, v in enumerate(self.main.arguments)}
        for op in self.main.ops:
            for v, offset in zip(op.results, offsets_of(op)):
                if offset == -2:
                    places[v] = places[origin(v)]
                elif offset == -1:
                    places[v] = BufferSlot("result", self._returned[v])
                else:
                    places[v] = BufferSlot("arena", offset=offset)
        return places

    # Segments

    def _build(self) -> list[DeviceSegment | HostSegment]:
        segments: list[DeviceSegment | HostSegment] = []
        work: list[OpView] = []
        for op in self.main.ops:
            if is_view(op):
                continue
            if not self._is_host(op):
                work.append(op)
                continue
            if work:
                segments.append(self._device_segment(work))
                work = []
            segments.append(self._host_segment(op))
        if work or not segments:
            segments.append(self._device_segment(work))
        return segments

    def _is_host(self, op: OpView) -> bool:
        return op.op.kind == "call" and is_placed(self._found[op.attrs["callee"]])

    def _host_segment(self, op: OpView) -> HostSegment:
        name = op.attrs["callee"]
        with mlir.ir.Location.unknown(context()):
            alone = mlir.ir.Module.create()
        for wanted in (name, *reached(read_function(self._found[name]).ops, self._found)):
            copy = self._found[wanted].clone(mlir.ir.InsertionPoint(alone.body))
            gone = ["smelt.device"]
            if wanted == name:
                copy.attributes["sym_name"] = mlir.ir.StringAttr.get("main", context())
                gone.append("sym_visibility")
            for attribute in gone:
                if attribute in copy.attributes:
                    del copy.attributes[attribute]
        Pipeline.parse(cpu.PIPELINE).run(alone)
        return HostSegment(
            name,
            cpu.compile_module(alone),
            [(self._places[v], v.aval) for v in op.operands],
            [(self._places[v], v.aval) for v in op.results],
        )

    def _device_segment(self, ops: Sequence[OpView]) -> DeviceSegment:
        module = GpuModule(self.gpu, self._library)
        parts = FunctionPlanner(module, self._found)
        planned_ops = [parts.plan_op(op) for op in ops]
        has_control = any(planned.kind == "control" for planned in planned_ops)
        avals = [*self.arguments, *self.results]
        main = MainEmitter(module, self._found, avals, has_control, self._scratch_base)
        tables = {"argument": 0, "result": len(self.arguments)}
        places = {
            v: main.arena.shifted(at.offset) if at.kind == "arena" else main.table[tables[at.kind] + at.index]
            for v, at in self._places.items()
        }
        main.emit_ops(planned_ops, places, main.arena)
        self.arena_bytes = max(self.arena_bytes, main.arena_bytes)
        main.finish(self.arena_bytes)
        self._describe(main.operation)
        _cleanup().run(module.mlir.operation)
        return DeviceSegment(module.mlir, self._emit)

    def _describe(self, operation: Any) -> None:
        """What a manifest says of the whole program."""
        ir, ctx = mlir.ir, context()
        i64 = ir.IntegerType.get_signless(64, ctx)
        names = [argument_name(v) or f"arg{i}" for i, v in enumerate(self.main.arguments)]
        outs = [f"result{i}" for i in range(len(self.results))]
        attributes = operation.attributes
        attributes["smelt.results"] = ir.IntegerAttr.get(i64, len(self.results))
        attributes[ARENA_BYTES] = ir.IntegerAttr.get(i64, self.arena_bytes)
        attributes["smelt.arguments"] = _arrays(names, self.arguments)
        attributes["smelt.array_results"] = _arrays(outs, self.results)
        if self.aliases:
            attributes["smelt.aliases"] = _aliases(self.aliases)


@functools.cache
def _cleanup() -> Any:
    """What schedules compute twice is computed once."""
    return mlir.passmanager.PassManager.parse("builtin.module(cse)", context())


def _aliases(aliases: dict[int, int | tuple[str, int]]) -> Any:
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


def compile_module(module: Any, gpu: Gpu | str, emit: Emit, library: DeviceLibrary | None = None) -> Program:
    """A program from a module that has been through the pipeline up to ``fuse,plan-buffers``.

    Args:
        gpu: for which schedules are made, by its name in `GPUS`.
        emit: makes text of kernel IR.
        library: what will make products and convolutions where the program runs; None: kernels of the text.

    Raises:
        SmeltError: the module was not fused, or has no function @main.
    """
    if isinstance(gpu, str):
        gpu = GPUS[gpu]
    with mlir.lock:
        return Program(module, gpu, emit, library)
