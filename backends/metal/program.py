"""From a fused module to kernel IR, its text, and the order of launches.

A program is a list of segments. A `DeviceSegment` is kernels and their launches; a `HostSegment` is a
function that the place pass gave to the CPU. All segments see the same table: the program's arguments,
its results, and one arena of temporary memory.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from smelt.backends import cpu
from smelt.ir import mlir
from smelt.ir.aval import Aval
from smelt.ir.builder import Function, OpView, Value, functions, read_function
from smelt.ir.control import callees
from smelt.ir.dialect import context
from smelt.ir.errors import SmeltError
from smelt.passes import Pipeline
from smelt.passes.plan_buffers import is_view, origin

from . import schedules
from .devices import GPUS, Gpu
from .emit import emit
from .kernel import MetalKernel, MetalModule
from .manifest import KernelInfo, Manifest, Place
from .schedules.schedule import Scratch, ScratchPlan, Step, argument_name


@dataclass(frozen=True)
class DeviceSegment:
    """Kernels and their launches.

    Attributes:
        module: the kernel IR.
    """

    module: Any
    is_host = False

    @functools.cached_property
    def emitted(self) -> tuple[str, Manifest]:
        with mlir.lock:
            return emit(self.module)

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
    arguments: Sequence[tuple[Place, Aval]]
    results: Sequence[tuple[Place, Aval]]
    is_host = True


class Program:
    """A module that has been through the pipeline up to ``fuse,plan-buffers``, as kernels.

    Attributes:
        arguments, results: avals.
        aliases: results that are an argument's memory (its number), or another result's ("result", number).
        segments: what runs, in order.
        arena_bytes: temporary memory.
    """

    def __init__(self, module: Any, gpu: Gpu):
        self.gpu = gpu
        self._found = functions(module)
        self.main = read_function(self._found["main"])
        self.arguments: list[Aval] = [v.aval for v in self.main.arguments]
        self.results: list[Aval] = [v.aval for v in self.main.returns]
        self.aliases: dict[int, int | tuple[str, int]] = {}
        planned = int(mlir.ir.IntegerAttr(self.main.mlir.attributes["smelt.arena_bytes"]).value)
        self._scratch_base = -(-planned // 64) * 64
        self.arena_bytes = planned
        self._place_results()
        self._places = self._place_values()
        self.segments = self._build()

    # What it looks like

    @property
    def kernels(self) -> list[KernelInfo]:
        """One entry a launch, in order."""
        found = []
        for segment in self.segments:
            if isinstance(segment, DeviceSegment):
                found += [segment.manifest.kernel(launch.entry) for launch in segment.manifest.launches]
        return found

    def as_text(self, stage: str) -> str:
        """The program as text: "gpu" (kernel IR), "msl" or "manifest" (JSON); segments one after the other."""
        if stage not in ("gpu", "msl", "manifest"):
            raise ValueError(f'stage must be "gpu", "msl" or "manifest", is {stage!r}')
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
                "Metal has no float64: see docs/metal.md"
            )
        os.makedirs(directory, exist_ok=True)
        paths = []
        for suffix, stage in ((".metal", "msl"), (".json", "manifest")):
            paths.append(os.path.join(directory, name + suffix))
            with open(paths[-1], "w", encoding="utf-8") as file:
                file.write(self.as_text(stage))
        return paths

    # Where values lie

    def _place_results(self) -> None:
        arguments = {v: i for i, v in enumerate(self.main.arguments)}
        self._returned: dict[Value, int] = {}
        for i, v in enumerate(self.main.returns):
            source = origin(v)
            if source in arguments:
                self.aliases[i] = arguments[source]
            elif source in self._returned:
                self.aliases[i] = ("result", self._returned[source])
            else:
                self._returned[source] = i

    def _place_values(self) -> dict[Value, Place]:
        places = {v: Place("argument", i) for i, v in enumerate(self.main.arguments)}
        for op in self.main.ops:
            offsets = list(mlir.ir.DenseI64ArrayAttr(op.mlir.attributes["smelt.offset"]))
            for v, offset in zip(op.results, offsets):
                if offset == -2:
                    places[v] = places[origin(v)]
                elif offset == -1:
                    places[v] = Place("result", self._returned[v])
                else:
                    places[v] = Place("arena", offset=offset)
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
                segments.append(self._device_segment(work, len(segments)))
                work = []
            segments.append(self._host_segment(op))
        if work or not segments:
            segments.append(self._device_segment(work, len(segments)))
        return segments

    def _is_host(self, op: OpView) -> bool:
        return op.op.kind == "call" and "smelt.device" in self._found[op.attrs["callee"]].attributes

    def _host_segment(self, op: OpView) -> HostSegment:
        name = op.attrs["callee"]
        with mlir.ir.Location.unknown(context()):
            alone = mlir.ir.Module.create()
        for wanted in _with_callees(name, self._found):
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

    def _device_segment(self, ops: Sequence[OpView], number: int) -> DeviceSegment:
        module = MetalModule(self.gpu)
        built: dict[str, tuple[Function, list[Step], int]] = {}
        launches: list[tuple[OpView, Function | None, Step]] = []
        for op in ops:
            if op.op.kind == "call":
                callee = op.attrs["callee"]
                if callee not in built:
                    body, scratch = read_function(self._found[callee]), ScratchPlan()
                    built[callee] = body, schedules.build(module, body, scratch), scratch.end
                found, steps, size = built[callee]
                launches += [(op, found, step) for step in steps]
            else:
                scratch = ScratchPlan()
                launches += [(op, None, step) for step in schedules.build_op(module, op, scratch)]
                size = scratch.end
            if size:
                self.arena_bytes = max(self.arena_bytes, self._scratch_base + size)
        self._emit_main(module, launches)
        _cleanup().run(module.mlir.operation)
        return DeviceSegment(module.mlir)

    def _emit_main(self, module: MetalModule, launches: Sequence[tuple[OpView, Function | None, Step]]) -> None:
        """``@main(arguments…, results…, arena)``: the launches in order."""
        ir, ctx = mlir.ir, context()
        unknown = ir.Location.unknown(ctx)
        avals = [*self.arguments, *self.results]
        i8, i64 = ir.IntegerType.get_signless(8, ctx), ir.IntegerType.get_signless(64, ctx)
        arena_type = ir.MemRefType.get([max(1, self.arena_bytes)], i8, loc=unknown)
        types = [*(MetalKernel.buffer_type(a) for a in avals), arena_type]
        names = [argument_name(v) or f"arg{i}" for i, v in enumerate(self.main.arguments)]
        outs = [f"result{i}" for i in range(len(self.results))]
        operation = ir.Operation.create(
            "func.func",
            attributes={
                "sym_name": ir.StringAttr.get("main", ctx),
                "function_type": ir.TypeAttr.get(ir.FunctionType.get(types, [], ctx), ctx),
                "smelt.results": ir.IntegerAttr.get(i64, len(self.results)),
                "smelt.arena_bytes": ir.IntegerAttr.get(i64, self.arena_bytes),
                "smelt.arguments": _arrays(names, self.arguments),
                "smelt.array_results": _arrays(outs, self.results),
            },
            regions=1,
            loc=unknown,
            ip=ir.InsertionPoint.at_block_begin(module.mlir.body),
        )
        if self.aliases:
            operation.attributes["smelt.aliases"] = _aliases(self.aliases)
        block = ir.Block.create_at_start(operation.regions[0], types, [unknown] * len(types))
        *table, arena = block.arguments
        at = ir.InsertionPoint(block)
        constants: dict[int, Any] = {}

        def constant(value: int) -> Any:
            if value not in constants:
                attr = ir.IntegerAttr.get(ir.IndexType.get(ctx), value)
                constants[value] = ir.Operation.create(
                    "arith.constant", results=[ir.IndexType.get(ctx)], attributes={"value": attr}, loc=unknown, ip=at
                ).result
            return constants[value]

        def view(offset: int, aval: Aval) -> Any:
            return ir.Operation.create(
                "memref.view", results=[MetalKernel.buffer_type(aval)], operands=[arena, constant(offset)],
                loc=unknown, ip=at,
            ).result  # fmt: skip

        def memref(v: Value) -> Any:
            place = self._places[v]
            if place.kind == "arena":
                return view(place.offset, v.aval)
            return table[place.index + (len(self.arguments) if place.kind == "result" else 0)]

        kernels = {ir.StringAttr(o.attributes["sym_name"]).value: o for o in module.body.operations
                   if o.operation.name == "gpu.func"}  # fmt: skip
        for op, body, step in launches:
            outer = {v: v for v in (*op.operands, *op.results)}
            if body is not None:
                outer = dict(zip(body.arguments, op.operands)) | dict(zip(body.returns, op.results))
            memrefs = [
                view(self._scratch_base + x.offset, x.aval) if isinstance(x, Scratch) else memref(outer[x])
                for x in step.operands
            ]
            attrs = kernels[step.kernel].attributes
            size = [*ir.DenseI32ArrayAttr(attrs["known_grid_size"]), *ir.DenseI32ArrayAttr(attrs["known_block_size"])]
            kernel = ir.Attribute.parse(f"@kernels::@{step.kernel}", ctx)
            segments = ir.DenseI32ArrayAttr.get([0, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0, len(memrefs), 0], ctx)
            ir.Operation.create(
                "gpu.launch_func",
                operands=[*(constant(n) for n in size), *memrefs],
                attributes={"kernel": kernel, "operandSegmentSizes": segments},
                loc=op.location,
                ip=at,
            )
        ir.Operation.create("func.return", loc=unknown, ip=at)


def _with_callees(name: str, found: dict[str, Any]) -> list[str]:
    """A function and all that it runs."""
    wanted = {name: None}
    pending = [name]
    while pending:
        for op in read_function(found[pending.pop()]).ops:
            new = [callee for callee in callees(op) if callee not in wanted]
            wanted |= dict.fromkeys(new)
            pending += new
    return list(wanted)


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


def compile_module(module: Any, gpu: Gpu | str = "apple8") -> Program:
    """A program from a module that has been through the pipeline up to ``fuse,plan-buffers``.

    Raises:
        SmeltError: the module was not fused.
    """
    if isinstance(gpu, str):
        gpu = GPUS[gpu]
    with mlir.lock:
        if "main" not in functions(module):
            raise SmeltError("the module has no function @main")
        return Program(module, gpu)
