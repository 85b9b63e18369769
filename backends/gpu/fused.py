"""From a fused module to kernel IR, its text, and the order of launches."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from smelt.backends.bodies import aliases_of
from smelt.backends.cpu import program as cpu
from smelt.ir import mlir
from smelt.ir.builder import OpView, Value, functions, read_function
from smelt.ir.dialect import context
from smelt.passes import Pipeline
from smelt.passes.call_graph import reached
from smelt.passes.kernels.plan_buffers import arena_bytes, is_view, offsets_of, origin
from smelt.passes.rewrite import is_placed

from .describe import cleanup, describe
from .devices import Gpu
from .kernel import GpuModule
from .launches import FunctionPlanner, MainEmitter
from .library import DeviceLibrary
from .manifest import BufferSlot
from .program import DeviceSegment, Emit, HostSegment, Program
from .schedules.schedule import argument_name


class FusedProgram(Program):
    """A module that has been through the pipeline up to ``fuse,plan-buffers``, as kernels.

    Args:
        gpu: for which schedules are made. emit: makes text of kernel IR.
        library: what will make products and convolutions where the program runs; None: kernels of the text.
    """

    def __init__(self, module: Any, gpu: Gpu, emit: Emit, library: DeviceLibrary | None = None):
        self.gpu, self._emit, self._library = gpu, emit, library
        self._found = functions(module)
        self.main = read_function(self._found["main"])
        self.arguments = [v.aval for v in self.main.arguments]
        self.results = [v.aval for v in self.main.returns]
        self.aliases = aliases_of(self.main.arguments, self.main.returns)
        self._returned = {origin(v): i for i, v in enumerate(self.main.returns) if i not in self.aliases}
        self.arena_bytes = arena_bytes(self._found["main"])
        self._scratch_base = -(-self.arena_bytes // 64) * 64
        self._places = self._place_values()
        self.segments = self._build()

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
        describe(self, main.operation, [argument_name(v) for v in self.main.arguments])
        cleanup().run(module.mlir.operation)
        return DeviceSegment(module.mlir, self._emit)
