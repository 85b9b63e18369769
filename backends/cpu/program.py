"""Programs from modules: a fused and planned module as machine code, with host steps in between."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from typing import Any

from smelt.backends.control import Storage, bytes_type, places_of
from smelt.backends.memory import Memory
from smelt.backends.pipelines import sequence, simplified, with_options
from smelt.ir import dtypes, mlir, profiling
from smelt.ir.aval import Aval
from smelt.ir.builder import Value, functions
from smelt.ir.dialect import context
from smelt.ir.scalar import INDEX, Scalar
from smelt.ir.scopes import place
from smelt.ir.settings import settings
from smelt.passes.kernels.plan_buffers import arena_bytes, origin, scratch_of, workspace

from . import jit, launch_tables, objects, parts, polling, threads
from .checks import Site
from .description import EntryStep, FunctionDescription, HostStep, KernelCost, LoopStep, ProgramDescription, Slot, Step
from .donations import donations
from .kernel import CpuKernel, KernelModule, buffer_type
from .native import Emitter
from .planner import Body, FunctionPlanner, PlannedOp
from .running import MachineCode, Program, Symbols

__all__ = ["PIPELINE", "KernelCost", "Program", "compile_module"]

#: The matrix products that a BLAS computes: from how many additions, and rows and columns, on. Below it takes as long
#: as a kernel, or longer, and a kernel also computes what follows. Measured on one thread of an x86-64 processor with
#: AVX-512: medians of products of 1 … 128 rows with matrices [784, 300] and [1024, 1024], and of squares 16 … 1024.
LIBRARY = "f32:1000000:40+f64:1000000:40+complex64:10000+complex128:10000"
#: The most features of a query and of a value with which attention is one kernel, and the least multiplications of
#: queries and keys: with less it is no faster than several, and takes 50 ms longer to compile.
ATTENTION_FEATURES, ATTENTION_WORK = 256, 1 << 25
#: The rows from which on it is with many keys, too: enough blocks of them for sixteen threads. One kernel takes 0.87 to
#: 0.93 of the time of several with 32 or 64 features, 1.04 with 128, and far less memory.
ATTENTION_ROWS = 1024
#: Elements of values so tiny that a kernel for each op is as fast as one for several.
APART = 1024
#: What one function of machine code runs at most: LLVM takes more than twice the time for one of twice the length.
CALLS = 512
#: Functions with more arguments and results than this take their addresses in one array: of each that is an argument of
#: its own, MLIR makes a descriptor, and LLVM's time grows with the square of their number.
WIDE = 64
#: Of so many channels there are enough vectors for threads; see `contract.channels`.
LEAST_CHANNELS = 32
#: Elements of a matrix from which on its product with a vector is a sum of products. A million by 4 … 1000 to a row
#: take 0.4 … 1.1 of the time of a contraction, all in one row a third.
LEAST_MATRIX = 1 << 14
FUSE = with_options(
    "fuse", contractions=True, library=LIBRARY, apart=APART, attention=ATTENTION_FEATURES,
    attention_work=ATTENTION_WORK, attention_rows=ATTENTION_ROWS,
)  # fmt: skip
#: What makes a module ready for `compile_module`.
PIPELINE = sequence(
    simplified(with_options("sum-taps", channels=LEAST_CHANNELS, vectors=LEAST_MATRIX)),
    "split-sums", "dce", FUSE, "plan-buffers",
)
#: Programs with less work than this, in bytes moved, run on the calling thread.
PARALLEL_WORK = 256 * 1024
#: From which members of a team take their numbers.
COUNTER = Aval((1,), dtypes.int64)
#: Programs with less work than this keep Python's lock while they run.
KEEP_LOCK_WORK = 64 * 1024
BARRIER = "GOMP_barrier"


class _Assembly:
    """A program under construction: its module of kernels, and its description."""

    def __init__(self, found: dict[str, Any], team: threads.Team):
        self.team, self._found = team, found
        self._sites: list[Site] | None = [] if settings.check else None
        self._profiles = profiling.active is not None
        self._module = KernelModule(self._sites)
        self._module.can_ask = team.together
        planner = FunctionPlanner(self._module, found)
        main = planner.body("main")
        planner.merge_alike()
        self._parallel = sum(p.parallel_work for p in main.planned_ops) >= PARALLEL_WORK
        self.has_long = planner.has_long or bool(self._module.asking)
        #: In a table there is no place for reports.
        self._has_tables = self._sites is None and not self._module.asking
        self._entries: list[str] = []
        self._functions: dict[str, FunctionDescription] = {}
        self._arena_bytes = planner.arena_bytes
        given = donations(main)
        arguments, returns = main.function.arguments, main.function.returns
        self._shared = {(arguments[i], origin(returns[j])) for j, i in given}
        self._describe(main)
        work = sum(p.work for p in main.planned_ops)
        keep_lock = not self.has_long and work < KEEP_LOCK_WORK
        self.description = ProgramDescription(
            [v.aval for v in main.function.arguments], [v.aval for v in main.function.returns], main.aliases(),
            planner.kernels, planner.arena_bytes, self._parallel, team.together, keep_lock, self.has_long,
            self._sites is not None, self._sites or [], given, self._functions, bool(self._entries), work,
        )  # fmt: skip
        self._has_complex = planner.has_complex
        self._texts: dict[str, str] = {}
        #: The machine code as an object file, where the machine has one that can be loaded.
        self.object: bytes | None = None

    def program(self) -> Program:
        if not self._entries:
            self._texts = {"kernel": "module {\n}\n", "llvm": "module {\n}\n"}
        found = Program(self.description, self._compile, self.team, self._as_text)
        found.object = self.object
        return found

    def _describe(self, body: Body) -> None:
        """A function that Python drives, and those that it runs."""
        name = body.function.name
        if name in self._functions:
            return
        steps: list[Step] = []
        n, m = len(body.function.arguments), len(body.function.returns)
        copies = [(i, source, body.function.returns[i].aval.nbytes) for i, source in body.aliases().items()]
        wide = n + m > WIDE
        self._functions[name] = FunctionDescription(n, m, copies, steps, wide)
        slots = body.slots()
        together: list[PlannedOp] = []

        def close() -> None:
            found = (
                launch_tables.parts(together, slots, CALLS, wide)
                if self._has_tables
                else launch_tables.written_out(together, CALLS)
            )
            for part, launches in found:
                steps.append(EntryStep(self._emit_entry(body, part, launches)))
            together.clear()

        for planned in body.planned_ops:
            op = planned.op
            if planned.kind == "host":
                close()
                steps.append(HostStep(op.op, op.attrs, place(op.location), *_places_in(slots, op)))
            elif planned.kind == "control" and not self._is_native(planned):
                close()
                steps.append(self._describe_loop(planned, slots))
            elif self._profiles:
                steps += self._profiled(body, planned)
            elif not self._parallel or self.team.together:
                together.append(planned)
            elif planned.kind == "control":  # no barriers: one thread runs it
                steps.append(EntryStep(self._emit_entry(body, [planned]), alone=True))
            else:
                steps += [EntryStep(self._emit_entry(body, [part])) for part in _launches(planned)]
        close()

    def _describe_loop(self, planned: PlannedOp, slots: dict[Value, Slot]) -> LoopStep:
        """A loop or branch that Python drives, whose functions are described as well."""
        op = planned.op
        for inner in planned.bodies:
            self._describe(inner)
        memory = workspace(op, self._found)
        places = memory.arena, memory.carries, memory.flag, memory.elements
        return LoopStep(op.op, op.attrs, *_places_in(slots, op), scratch_of(op), *places)

    def _profiled(self, body: Body, planned: PlannedOp) -> Iterator[EntryStep]:
        """The launches of an op that leave an event each in a profile."""
        op = planned.op
        apart = self._parallel and not self.team.together
        name = op.attrs["callee"] if op.op.kind == "call" else op.name
        line = place(op.location).removeprefix("; at ")
        for part in _launches(planned) if apart and planned.kind == "kernel" else [planned]:
            yield EntryStep(self._emit_entry(body, [part]), apart and planned.kind == "control", name, line)

    def _is_native(self, planned: PlannedOp) -> bool:
        """Whether a loop or branch is machine code, and not driven by Python."""
        return not planned.hosted and (not self._parallel or self.team.together or planned.solo)

    def _emit_entry(
        self, body: Body, planned_ops: Sequence[PlannedOp], launches: list[launch_tables.Launch] | None = None
    ) -> str:  # fmt: skip
        """``@main_i(members, counter, arguments…, results…, arena)``: one member's share of each kernel in turn.

        `launches`: what the ops are, if they go into a table.
        """
        ir, ctx = mlir.ir, context()
        function, location = body.function, body.function.mlir.location
        name = f"main_{len(self._entries)}"
        self._entries.append(name)
        has_control = any(p.kind == "control" for p in planned_ops)
        avals = [v.aval for v in (*function.arguments, *function.returns)]
        # A loop looks at parts of arrays, so there memory is bytes.
        kinds = [bytes_type(a.nbytes) if has_control else buffer_type(a) for a in avals]
        addresses = Aval((len(avals) + 1,), dtypes.int64) if len(avals) > WIDE else None
        tables = kinds if addresses is None else [buffer_type(addresses)]
        size = self._arena_bytes if function.name == "main" else arena_bytes(self._found[function.name])
        types = [ir.IndexType.get(ctx), buffer_type(COUNTER), *tables, bytes_type(size)]
        entry = self._module.function(name, types, location, internal=False)
        k = CpuKernel(self._module, entry, location, None)
        if self._sites is not None:
            k.set_reported(False)
        count, counter, *table, arena = entry.arguments
        if has_control and not self.team.together:
            members, me = k.const(1, INDEX), k.const(0, INDEX)
        else:
            members, me = share_of(k, Scalar(k, count, INDEX), counter, self._parallel, self.team)
        if launches is not None:
            launch_tables.emit_table(k, launches, table, arena, self._table_team(body, k, members, me))
            k.emit("func.return", [], [])
            return name
        if addresses is not None:
            table = self._places(k, body, planned_ops, Memory(table[0], addresses), kinds)
        places = [Storage(memref, 0 if has_control else None) for memref in table]
        n, aliases = len(function.arguments), body.aliases()
        returned = {origin(v): places[n + i] for i, v in enumerate(function.returns) if i not in aliases}
        temporary = Storage(arena, 0)
        barrier = BARRIER if self._parallel and self.team.together else None
        told = Memory(counter, COUNTER) if self.has_long else None
        emitter = Emitter(self._module, k, self._found, members, me, barrier, told, self._shared)
        emitter.emit_ops(planned_ops, places_of(body, places[:n], returned, temporary), temporary, final=True)
        if self.has_long:
            k.when(me.eq(k.const(0, INDEX)), lambda: polling.settle(self._module, k))
        k.emit("func.return", [], [])
        return name

    def _table_team(self, body: Body, k: CpuKernel, members: Scalar, me: Scalar) -> launch_tables.Team | None:
        if not self._parallel:
            return None
        slots, shared = body.slots(), dict[Any, list[Any]]()
        for argument, result in self._shared:
            if argument in slots and result in slots:
                shared.setdefault(slots[result], []).append(slots[argument])
        barrier = mlir.ir.FlatSymbolRefAttr.get(BARRIER, context())
        return launch_tables.Team(members, me, lambda: k.emit("func.call", [], [], callee=barrier), shared)

    @staticmethod
    def _places(
        k: CpuKernel, body: Body, planned_ops: Sequence[PlannedOp], addresses: Memory, kinds: Sequence[Any]
    ) -> list[Any]:
        """The memrefs of those arguments and results of a wide function that some of its ops use; None of others."""
        slots = body.slots()
        used = {slots[v] for planned in planned_ops for v in (*planned.op.operands, *planned.op.results)}
        found: list[Any] = [None] * len(kinds)
        for where, at in sorted(used):
            if where == "table":
                found[at] = k.at_address(k.read(addresses, k.const(at, INDEX)), kinds[at])
        return found

    def _compile(self, symbols: Symbols) -> MachineCode:
        """Machine code of all entries: from an object, which takes less memory than an engine, if that can be."""
        module = self._module
        if self._parallel and self.team.together:
            module.declare(BARRIER, [])
            declare_team(module)
        self._kernel_ir = module.mlir.operation.clone()
        code, self.object = machine_code(module, self._has_complex, self._entries[0], symbols)
        return code

    def _as_text(self, stage: str) -> str:
        if stage not in self._texts:
            with mlir.lock:
                operation = self._kernel_ir if stage == "kernel" else self._module.mlir.operation
                self._texts[stage] = operation.get_asm(large_elements_limit=64) + "\n"
        return self._texts[stage]


def _places_in(slots: dict[Value, Slot], op: Any) -> tuple[list[tuple[Slot, Aval]], list[tuple[Slot, Aval]]]:
    """Where the operands and the results of an op lie, and what they are."""
    operands, results = ([(slots[v], v.aval) for v in values] for values in (op.operands, op.results))
    return operands, results


def _launches(planned: PlannedOp) -> list[PlannedOp]:
    """An op in parts of one kernel each."""
    return [PlannedOp(planned.op, "kernel", [step]) for step in planned.steps]


def machine_code(
    module: KernelModule, has_complex: bool, entry: str, symbols: Symbols
) -> tuple[MachineCode, bytes | None]:
    """The machine code of a module, which is consumed: from an object, which takes less memory than an engine, if
    that can be; and the object, to be kept. `entry`: one of its functions."""
    jit.lower(module.mlir, has_complex)
    if objects.supported() and (made := parts.object_of(module, entry, symbols.all(module.external))) is not None:
        with contextlib.suppress(objects.ObjectError):
            return objects.load(made, symbols.find), made
    engine: MachineCode = jit.compile_module(module.mlir, symbols.all(module.external))
    made = jit.object_of(engine, entry) if objects.supported() else None
    try:
        return (engine, None) if made is None else (objects.load(made, symbols.find), made)
    except objects.ObjectError:
        return engine, None


def declare_team(module: KernelModule) -> None:
    """Declare what `share_of` asks of a team whose members run at the same time."""
    for name in ("omp_get_num_threads", "omp_get_thread_num"):
        module.declare(name, [], [mlir.ir.IntegerType.get_signless(32, context())])


def share_of(k: CpuKernel, count: Scalar, counter: Any, parallel: bool, team: threads.Team) -> tuple[Scalar, Scalar]:
    """How many members run a function of machine code, and which of them this one is.

    Args:
        count, counter: the first two arguments of the function.
    """
    zero = k.const(0, INDEX)
    if not parallel:
        return k.const(1, INDEX), zero
    if not team.together:
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


def compile_module(module: Any, team: threads.Team | None = None) -> Program:
    """A program from a module that has been through the pipeline up to ``fuse,plan-buffers``.

    `team`: the threads that run it, instead of this machine's best.
    """
    with mlir.lock:
        return _Assembly(functions(module), team or threads.team()).program()
