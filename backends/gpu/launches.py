"""``@main`` of a program: launches in order, with loops and branches around them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from smelt.backends.bodies import Body, PlannedOp
from smelt.backends.control import ControlEmitter, Given, Storage, StorageMap, bytes_type
from smelt.ir import dtypes, mlir
from smelt.ir.aval import Aval
from smelt.ir.builder import OpView, read_function
from smelt.ir.control import callees
from smelt.ir.dialect import context
from smelt.ir.scalar import INDEX, Scalar
from smelt.passes.kernels.plan_buffers import arena_bytes, is_view

from . import schedules
from .custom import LANGUAGE, LIBRARY_LANGUAGE, build_custom, build_library_call, read_custom
from .kernel import GpuKernel, GpuModule
from .library import read_step
from .schedules.schedule import ScheduledKernel, Scratch, ScratchPlan, threads_for

#: What vectors of a kernel need, and what the buffers of a program have.
ALIGNMENT = 16


class FunctionPlanner:
    """Builds the kernels of functions, each once."""

    def __init__(self, module: GpuModule, found: dict[str, Any]):
        self.module, self.found = module, found
        self._built: dict[str, tuple[Any, list[ScheduledKernel], int]] = {}
        self._bodies: dict[str, Body[GpuPlannedOp]] = {}

    def body(self, name: str) -> Body[GpuPlannedOp]:
        """The planned ops of a function that a loop or branch runs."""
        if name not in self._bodies:
            function = read_function(self.found[name])
            self._bodies[name] = Body(function, [self.plan_op(op) for op in function.ops if not is_view(op)])
        return self._bodies[name]

    def plan_op(self, op: OpView) -> GpuPlannedOp:
        if op.op.kind == "control":
            bodies = tuple(self.body(name) for name in callees(op))
            for run in bodies:
                run.places += 1
            return GpuPlannedOp(op, "control", [], bodies)
        if op.op.has_kernel(LANGUAGE, **op.attrs):
            return GpuPlannedOp(op, "kernel", build_custom(self.module, op))
        if op.op.has_kernel(LIBRARY_LANGUAGE, **op.attrs):
            return GpuPlannedOp(op, "kernel", build_library_call(self.module, op))
        if op.op.kind != "call":
            scratch = ScratchPlan()
            return GpuPlannedOp(op, "kernel", schedules.build_op(self.module, op, scratch), (), None, scratch.end)
        callee = op.attrs["callee"]
        if callee not in self._built:
            body, scratch = read_function(self.found[callee]), ScratchPlan()
            self._built[callee] = body, schedules.build(self.module, body, scratch, self.found), scratch.end
        body, steps, size = self._built[callee]
        return GpuPlannedOp(op, "kernel", steps, (), body, size)


class GpuPlannedOp(PlannedOp):
    """A planned op with the body of its fusion, and the size of the scratch that its steps share."""

    def __init__(
        self, op: OpView, kind: str, steps: list[ScheduledKernel], bodies: tuple[Body[Any], ...] = (),
        function: Any = None, scratch: int = 0,
    ):  # fmt: skip
        super().__init__(op, kind, steps, bodies)
        self.function, self.scratch = function, scratch


#: The arena while it is being used: larger than any.
MOST_BYTES = 1 << 62


class _Function:
    """A function of launches under construction; its last argument is the program's arena."""

    def __init__(self, module: GpuModule, name: str, types: Sequence[Any]):
        ir, ctx = mlir.ir, context()
        unknown = ir.Location.unknown(ctx)
        self._types = [*types, bytes_type(MOST_BYTES)]  # how much is used is known at the end
        self.operation = ir.Operation.create(
            "func.func",
            attributes={"sym_name": ir.StringAttr.get(name, ctx), "function_type": self._type()},
            regions=1,
            loc=unknown,
            ip=ir.InsertionPoint.at_block_begin(module.mlir.body),
        )
        self.block = ir.Block.create_at_start(self.operation.regions[0], self._types, [unknown] * len(self._types))
        self.k = GpuKernel(module, self.block, unknown, None)
        *self.memrefs, arena = self.block.arguments
        self.arena = Storage(arena, 0)

    def _type(self) -> Any:
        return mlir.ir.TypeAttr.get(mlir.ir.FunctionType.get(self._types, [], context()), context())

    def finish(self, arena_bytes: int) -> None:
        """End the function; the arena gets its size."""
        self.k.emit("func.return", [], [])
        self._types[-1] = bytes_type(arena_bytes)
        self.block.arguments[-1].set_type(self._types[-1])
        self.operation.attributes["function_type"] = self._type()


class LaunchEmitter(ControlEmitter):
    """Emits planned ops into a function.

    Args:
        function: it. main: what emits ``@main``; None for that itself.
    """

    def __init__(self, module: GpuModule, found: dict[str, Any], function: _Function, main: MainEmitter | None = None):
        super().__init__(function.k, found)
        self.module, self.arena, self._main = module, function.arena, main

    @property
    def main(self) -> MainEmitter:
        assert self._main is not None
        return self._main

    # Shared functions

    def run(
        self, body: Body[Any], arguments: Sequence[Storage], targets: Sequence[Storage | None], arena: Storage
    ) -> StorageMap:  # fmt: skip
        if not body.is_shared:
            return super().run(body, arguments, targets, arena)
        given = Given.of(body, arguments, targets)
        symbol = self.main.function(body, given, arena.alignment)
        memrefs = [self.raw(place, size) for place, size in zip(given.places, given.sizes)]
        memrefs += [self.raw(arena, arena_bytes(self.found[body.function.name])), self.arena.memref]
        self.k.emit("func.call", memrefs, [], callee=mlir.ir.FlatSymbolRefAttr.get(symbol, context()))
        found: StorageMap = dict(zip(body.function.arguments, arguments))
        return found | {v: t for v, t in zip(body.function.returns, targets) if t is not None}

    def run_here(self, body: Body[Any], given: Given, memrefs: Sequence[Any], arena: Storage) -> None:
        """Run a shared function, whose code this is."""
        super().run(body, *given.split(body, memrefs), arena)

    # Launches

    def launch(self, planned: GpuPlannedOp, places: StorageMap, arena: Storage) -> None:
        op = planned.op
        outer = {v: v for v in (*op.operands, *op.results)}
        if planned.function is not None:
            outer = dict(zip(planned.function.arguments, op.operands))
            outer |= dict(zip(planned.function.returns, op.results))
        for step in planned.steps:
            if self.is_done(planned, step, places):
                continue
            found = [
                (self._temporary(x.offset, x.aval.nbytes), x.aval)
                if isinstance(x, Scratch)
                else (places[outer[x]], outer[x].aval)
                for x in step.operands
            ]
            self.launch_on(step.kernel, found, op.location, planned.scratch)

    def _temporary(self, offset: int, nbytes: int) -> Storage:
        """Memory in the arena, after what was planned."""
        start = self.main.scratch + offset
        self.main.arena_bytes = max(self.main.arena_bytes, start + nbytes)
        return self.arena.shifted(start)

    def launch_on(
        self, kernel: str, operands: Sequence[tuple[Storage, Aval]], location: Any, scratch: int = 0
    ) -> None:  # fmt: skip
        """Launch a kernel, by its name, on arrays. What vectors cannot reach where it lies, an element of an array in a
        loop, is copied."""
        after = []
        memrefs = []
        for i, (place, aval) in enumerate(operands):
            modes = vector_accesses(self.main.kernel(kernel), i) if place.alignment % ALIGNMENT else {}
            if any(place.alignment % nbytes for nbytes in modes.values()):
                beside = self._temporary(scratch, aval.nbytes)
                scratch += -(-aval.nbytes // 64) * 64
                self.copy(place, beside, aval.nbytes)
                if "vector.store" in modes:
                    after.append((beside, place, aval.nbytes))
                place = beside
            memrefs.append(self.typed(place, aval))
        self._launch(kernel, memrefs, location)
        for source, target, nbytes in after:
            self.copy(source, target, nbytes)

    def _launch(self, kernel: str, memrefs: Sequence[Any], location: Any) -> None:
        ir, k = mlir.ir, self.k
        attrs = self.main.kernel(kernel).attributes
        size = [*ir.DenseI32ArrayAttr(attrs["known_grid_size"]), *ir.DenseI32ArrayAttr(attrs["known_block_size"])]
        saved, k.location = k.location, location
        k.emit(
            "gpu.launch_func",
            [*(k.const(n, INDEX) for n in size), *memrefs],
            [],
            kernel=ir.Attribute.parse(f"@kernels::@{kernel}", context()),
            operandSegmentSizes=ir.DenseI32ArrayAttr.get([0, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0, len(memrefs), 0], context()),
        )
        k.location = saved

    def copy(self, source: Storage, target: Storage, nbytes: int) -> None:
        if not nbytes:
            return
        unit = math.gcd(nbytes, source.alignment, target.alignment)
        dtype = dtypes.uint32 if unit % 4 == 0 else dtypes.uint16 if unit % 2 == 0 else dtypes.uint8
        aval = Aval((nbytes // dtype.size,), dtype)
        kernel = copy_kernel(self.module, aval)
        self._launch(kernel, [self.typed(source, aval), self.typed(target, aval)], self.k.location)


class MainEmitter(LaunchEmitter):
    """Emits ``@main(arguments…, results…, arena)``, and functions that it calls.

    Args:
        avals: of the arguments and results.
        has_control: whether there are loops or branches: they look at parts of arrays, so memory is bytes.
        scratch: where the scratch of steps begins in the arena.

    Attributes:
        operation: the function.
        table: the places of arguments and results.
        arena: of the program.
        arena_bytes: how much of it is used.
    """

    def __init__(
        self, module: GpuModule, found: dict[str, Any], avals: Sequence[Aval], has_control: bool, scratch: int
    ):  # fmt: skip
        types = [bytes_type(a.nbytes) if has_control else GpuKernel.buffer_type(a) for a in avals]
        function = _Function(module, "main", types)
        super().__init__(module, found, function)
        self.operation, self.scratch, self.arena_bytes = function.operation, scratch, 0
        self.table = [Storage(memref, 0 if has_control else None, ALIGNMENT) for memref in function.memrefs]
        self._functions, self._bodies = [function], dict[Any, str]()
        self._kernels: dict[str, Any] = {}

    @property
    def main(self) -> MainEmitter:
        return self

    def function(self, body: Body[Any], given: Given, alignment: int) -> str:
        """The function of a body on arrays that lie as those given, and an arena; its name."""
        key = body.function.name, given.table, given.alignments, alignment
        if key not in self._bodies:
            name = self._bodies[key] = f"body_{len(self._bodies)}"
            types = [bytes_type(n) for n in (*given.sizes, arena_bytes(self.found[body.function.name]))]
            function = _Function(self.module, name, types)
            self._functions.append(function)
            *memrefs, arena = function.memrefs
            emitter = LaunchEmitter(self.module, self.found, function, self)
            emitter.run_here(body, given, memrefs, Storage(arena, 0, alignment))
        return self._bodies[key]

    def finish(self, arena_bytes: int) -> None:
        """End the functions; the arena gets its size."""
        for function in self._functions:
            function.finish(arena_bytes)

    def kernel(self, name: str) -> Any:
        """The ``gpu.func`` of that name."""
        if name not in self._kernels:
            operations = [view.operation for view in self.module.body.operations]
            self._kernels = {mlir.ir.StringAttr(o.attributes["sym_name"]).value: o for o in operations}
        return self._kernels[name]


def vector_accesses(function: Any, argument: int) -> dict[str, int]:
    """Vector accesses of a kernel to a buffer: "vector.load", "vector.store", and the bytes of the largest.

    What a user's kernel does is not known, nor what a library does: it may have vectors.
    """
    custom, step = read_custom(function), read_step(function)
    if custom is not None or step is not None:
        reads = custom[0][argument].access == "read" if custom else step and argument not in step.written
        return dict.fromkeys(["vector.load"] if reads else ["vector.load", "vector.store"], ALIGNMENT)
    found: dict[str, int] = {}
    for use in function.regions[0].blocks[0].arguments[argument].uses:
        op = use.owner.operation
        if op.name in ("vector.load", "vector.store"):
            kind = mlir.ir.VectorType(op.results[0].type if op.name == "vector.load" else op.operands[0].type)
            element = kind.element_type
            nbytes = kind.shape[0] * (element.width // 8)
            found[op.name] = max(found.get(op.name, 0), nbytes)
    return found


def copy_kernel(module: GpuModule, aval: Aval) -> str:
    """A kernel that copies an array; its name."""
    key = "copy", aval
    if key not in module.functions:
        unknown = mlir.ir.Location.unknown(context())
        k, (source, target) = module.start(f"copy_{aval.nbytes}_bytes", [aval, aval], ["source", "target"], unknown)
        threads, groups = threads_for(k, aval.size)
        k.reach(aval.size)

        def element(i: Scalar) -> None:
            k.write(k.read(source, i), target, i)

        k.grid_stride(None, aval.size, threads, groups, element)
        k.finish("copy", (groups, 1, 1), (threads, 1, 1), aval.nbytes, aval.nbytes, 0, [])
        module.functions[key] = k.name
    return module.functions[key]
