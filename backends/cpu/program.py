"""Programs: a fused and planned module as machine code, with host steps in between."""

from __future__ import annotations

from collections.abc import Sequence as Buffers
from typing import Any

from smelt.backends.control import Storage, bytes_type, places_of
from smelt.backends.memory import Memory
from smelt.backends.pipelines import SIMPLIFY
from smelt.ir import dtypes, mlir
from smelt.ir.aval import Aval
from smelt.ir.builder import functions
from smelt.ir.dialect import context
from smelt.ir.errors import AttributeValueError
from smelt.ir.scalar import INDEX, Scalar
from smelt.ir.settings import settings
from smelt.passes.kernels.plan_buffers import arena_bytes, origin, workspace

from . import blas, interrupts, jit, threads
from .checks import Checks
from .host import TABLE, AloneStep, HostLoop, HostOp, Sequence
from .kernel import CpuKernel, KernelModule, buffer_type
from .native import Emitter
from .planner import Body, FunctionPlanner, KernelCost, PlannedOp

__all__ = ["PIPELINE", "KernelCost", "Program", "compile_module"]

#: The matrix products that a BLAS computes: from how many additions, and rows and columns, on. Below it takes as long
#: as a kernel, or longer, and a kernel also computes what follows. Measured on one thread of an x86-64 processor with
#: AVX-512: medians of products of 1 … 128 rows with matrices [784, 300] and [1024, 1024], and of squares 16 … 1024.
LIBRARY = "f32:1000000:40+f64:1000000:40+complex64:10000"
#: What makes a module ready for `compile_module`.
PIPELINE = f"{SIMPLIFY},fuse{{contractions=true library={LIBRARY}}},plan-buffers"
#: Programs with less work than this, in bytes moved, run on the calling thread.
PARALLEL_WORK = 256 * 1024
#: From which members of a team take their numbers.
COUNTER = Aval((1,), dtypes.int64)
#: Programs with less work than this keep Python's lock while they run.
KEEP_LOCK_WORK = 64 * 1024
BARRIER = "GOMP_barrier"


class Program:
    """A compiled module. `run` may be called by several threads at once.

    Attributes:
        arguments, results: avals.
        aliases: results that are an argument's memory (its number), or another result's ("result", number).
        kernels: what is launched, in order; what a loop or branch runs is named once.
        has_long: whether it has loops of unknown or great length, which Ctrl-C ends.
        arena_bytes: temporary memory.
        is_checked: whether its kernels check their accesses (SMELT_CHECK=1).
    """

    def __init__(self, found: dict[str, Any], team: threads.Team | None = None):
        self.team = team or threads.team()
        self._found = found
        self._checks = Checks() if settings.check else None
        self.is_checked = settings.check
        self._module = KernelModule(self._checks)
        parts = FunctionPlanner(self._module, found)
        main = parts.body("main")
        self.arguments: list[Aval] = [v.aval for v in main.function.arguments]
        self.results: list[Aval] = [v.aval for v in main.function.returns]
        self.aliases = main.aliases()
        self.kernels: list[KernelCost] = parts.kernels
        self.arena_bytes = arena_bytes(found["main"])
        self._text: dict[str, str] = {}
        self._engine: Any = None
        self._parallel = sum(p.parallel_work for p in main.planned_ops) >= PARALLEL_WORK
        self.has_long = parts.has_long
        self._keep_lock = not self.has_long and sum(p.work for p in main.planned_ops) < KEEP_LOCK_WORK
        self._entries = 0
        self._sequences: dict[str, tuple[Sequence, list[Any]]] = {}
        self._main = self._sequence(main)
        self._finish(parts.has_complex)

    # Building

    def _sequence(self, body: Body) -> Sequence:
        """A function that Python drives. Its steps are named, and found when machine code exists."""
        name = body.function.name
        if name in self._sequences:
            return self._sequences[name][0]
        sequence = Sequence(body, self.team)
        steps: list[Any] = []
        sequence.keep_lock = self._keep_lock
        self._sequences[name] = sequence, steps
        together: list[PlannedOp] = []

        def close() -> None:
            if together:
                steps.append(self._emit_entry(body, together))
                together.clear()

        for planned in body.planned_ops:
            if planned.kind == "host":
                close()
                steps.append(HostOp(planned.op, sequence.slots))
            elif planned.kind == "control" and not self._is_native(planned):
                close()
                inner = {b.function.name: self._sequence(b) for b in planned.bodies}
                steps.append(HostLoop(planned.op, sequence.slots, workspace(planned.op, self._found), inner))
            elif not self._parallel or self.team.together:
                together.append(planned)
            elif planned.kind == "control":  # no barriers: one thread runs it
                steps.append((self._emit_entry(body, [planned]),))
            else:  # each kernel is a launch
                for step in planned.steps:
                    steps.append(self._emit_entry(body, [PlannedOp(planned.op, "kernel", [step])]))
        close()
        return sequence

    def _is_native(self, planned: PlannedOp) -> bool:
        """Whether a loop or branch is machine code, and not driven by Python."""
        return not planned.hosted and (not self._parallel or self.team.together or planned.solo)

    def _emit_entry(self, body: Body, planned_ops: Buffers[PlannedOp]) -> str:
        """``@main_i(members, counter, arguments…, results…, arena)``: one member's share of each kernel in turn."""
        ir, ctx = mlir.ir, context()
        function, location = body.function, body.function.mlir.location
        name = f"main_{self._entries}"
        self._entries += 1
        has_control = any(p.kind == "control" for p in planned_ops)
        avals = [v.aval for v in (*function.arguments, *function.returns)]
        # A loop looks at parts of arrays, so there memory is bytes.
        tables = [bytes_type(a.nbytes) if has_control else buffer_type(a) for a in avals]
        size = arena_bytes(self._found[function.name])
        types = [ir.IndexType.get(ctx), buffer_type(COUNTER), *tables, bytes_type(size)]
        entry = self._module.function(name, types, location, internal=False)
        k = CpuKernel(self._module, entry, location, None)
        if self._checks is not None:
            k.set_reported(False)
        count, counter, *table, arena = entry.arguments
        if has_control and not self.team.together:
            members, me = k.const(1, INDEX), k.const(0, INDEX)
        else:
            members, me = self._share_of(k, Scalar(k, count, INDEX), counter)
        places = [Storage(memref, 0 if has_control else None) for memref in table]
        n, aliases = len(function.arguments), body.aliases()
        returned = {origin(v): places[n + i] for i, v in enumerate(function.returns) if i not in aliases}
        temporary = Storage(arena, 0)
        barrier = BARRIER if self._parallel and self.team.together else None
        told = Memory(counter, COUNTER) if self.has_long else None
        emitter = Emitter(self._module, k, self._found, members, me, barrier, told)
        emitter.emit_ops(planned_ops, places_of(body, places[:n], returned, temporary), temporary, final=True)
        if self.has_long:
            k.when(me.eq(k.const(0, INDEX)), lambda: interrupts.settle(self._module, k))
        k.emit("func.return", [], [])
        return name

    def _share_of(self, k: CpuKernel, count: Scalar, counter: Any) -> tuple[Scalar, Scalar]:
        """How many members run, and which of them this one is."""
        zero = k.const(0, INDEX)
        if not self._parallel:
            return count, zero
        if not self.team.together:
            i64 = k.type(dtypes.int64)
            kind = mlir.ir.IntegerAttr.get(i64, 1)  # addi
            one = k.const(1, dtypes.int64)
            mine = k.emit("memref.atomic_rmw", [one, counter, zero], [i64], kind=kind).result
            return count, Scalar(k, k.emit("arith.index_cast", [mine], [k.type(INDEX)]).result, INDEX)

        def ask(function: str) -> Scalar:
            symbol = mlir.ir.FlatSymbolRefAttr.get(function, context())
            found = k.emit("func.call", [], [k.type(dtypes.int32)], callee=symbol).result
            return Scalar(k, k.emit("arith.index_cast", [found], [k.type(INDEX)]).result, INDEX)

        # A team may be smaller than was asked for; a lone member may run inside of another's team.
        alone = count.eq(k.const(1, INDEX))
        members = k.select(alone, count, ask("omp_get_num_threads"))
        return members, k.select(alone, zero, ask("omp_get_thread_num"))

    def _finish(self, has_complex: bool) -> None:
        """Machine code of all entries; their addresses are the steps of sequences."""
        if self._entries:
            module = self._module
            ir, ctx = mlir.ir, context()
            if self._parallel and self.team.together:
                module.declare(BARRIER, [])
                for name in ("omp_get_num_threads", "omp_get_thread_num"):
                    module.declare(name, [], [ir.IntegerType.get_signless(32, ctx)])
            self._kernel_ir = module.mlir.operation.clone()
            jit.lower(module.mlir, has_complex)
            self._llvm_ir = module.mlir
            symbols = {**self.team.symbols(), **blas.symbols()}
            if self.has_long:
                symbols |= interrupts.symbols()
            if self._checks is not None:
                symbols |= self._checks.symbols()
            self._engine = jit.compile_module(module.mlir, symbols)
        else:
            self._text = {"kernel": "module {\n}\n", "llvm": "module {\n}\n"}
        for sequence, steps in self._sequences.values():
            for step in steps:
                if isinstance(step, str):
                    step = self._engine.raw_lookup(step)
                elif isinstance(step, tuple):
                    step = AloneStep(self._engine.raw_lookup(step[0]))
                sequence.steps.append(step)

    # Running

    def run(self, inputs: Buffers[Any], outputs: Buffers[Any], arena_address: int) -> None:
        """Run on buffers (``.address``); outputs that are aliases are not touched."""
        frame = self._main.frame()
        values = frame[0]
        i = TABLE
        for buffer in inputs:
            values[i] = buffer.address
            i += 1
        for buffer in outputs:
            values[i] = buffer.address if buffer is not None else 0
            i += 1
        count = threads.available_threads(self.team) if self._parallel else 1
        if count > 1:
            count *= self.team.shares
        try:
            self._main.execute(frame, arena_address, count)
        finally:  # also after an error of a step on the host: what kernels before it reported belongs to this run
            if self.has_long:
                interrupts.raise_pending()
            if self._checks is not None:
                self._checks.raise_found()

    def as_text(self, stage: str) -> str:
        """The program as text: "kernel" (func, scf, arith, memref) or "llvm" (the LLVM dialect)."""
        if stage not in ("kernel", "llvm"):
            raise AttributeValueError(f'stage must be "kernel" or "llvm", is {stage!r}')
        if stage not in self._text:
            with mlir.lock:
                operation = self._kernel_ir if stage == "kernel" else self._llvm_ir.operation
                self._text[stage] = operation.get_asm(large_elements_limit=64) + "\n"
        return self._text[stage]


def compile_module(module: Any, team: threads.Team | None = None) -> Program:
    """A program from a module that has been through the pipeline up to ``fuse,plan-buffers``.

    `team`: the threads that run it, instead of this machine's best.
    """
    with mlir.lock:
        return Program(functions(module), team)
