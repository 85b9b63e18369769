"""Programs: a fused and planned module as machine code with host steps in between."""

from __future__ import annotations

import ctypes
import math
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from smelt.backends.plan import kept_axes, split_chunks
from smelt.ir import dtypes, mlir
from smelt.ir.aval import Aval
from smelt.ir.builder import Function, OpView, Value, functions, read_function
from smelt.ir.dialect import context
from smelt.ir.interpreter import run_op
from smelt.ir.scalar import INDEX, Kernel, Scalar
from smelt.passes.plan_buffers import is_view, origin

from . import blas, jit, threads, traffic
from .build import build
from .kernel import KernelModule, buffer_type

#: Programs with less work than this, in bytes moved, run on the calling thread.
PARALLEL_WORK = 256 * 1024
#: From which members of a team take their numbers.
COUNTER = Aval((1,), dtypes.int64)
#: Programs with less work than this keep Python's lock while they run.
KEEP_LOCK_WORK = 64 * 1024


@dataclass(frozen=True)
class KernelInfo:
    """What is known of a kernel before it runs. See `traffic` for how bytes are estimated.

    Attributes:
        bytes_moved: between memory and the caches, with the kernel's schedule.
        least_bytes: every operand read once, every result written once.
    """

    name: str
    schedule: str
    bytes_moved: int
    least_bytes: int


class Program:
    """A compiled module. `run` may be called by several threads at once."""

    def __init__(self, main: Function, found: dict[str, Any], team: threads.Team | None = None):
        self.team = team or threads.team()
        self.arguments: list[Aval] = [v.aval for v in main.arguments]
        self.results: list[Aval] = [v.aval for v in main.returns]
        self.aliases: dict[int, int | tuple[str, int]] = {}
        self.kernels: list[KernelInfo] = []
        self.arena_bytes = int(mlir.ir.IntegerAttr(main.mlir.attributes["smelt.arena_bytes"]).value)
        self._text: dict[str, str] = {}
        self._local = threading.local()
        self._steps: list[Any] = []  #: entry points (addresses) and host steps, in order
        self._engine: Any = None
        self._build(main, found)

    # Building

    def _build(self, main: Function, found: dict[str, Any]) -> None:
        self._place_results(main)
        slots = self._slots(main)
        segments: list[list[Any]] = [[]]
        work = 0.0
        module = KernelModule()
        has_complex = False
        built: dict[str, Any] = {}
        for op in main.ops:
            if is_view(op):
                continue
            has_complex |= any(v.dtype.kind == "c" for v in (*op.operands, *op.results))
            least = traffic.least_bytes((*op.operands, *op.results))
            if op.op.kind == "call":
                callee = op.attrs["callee"]
                if callee not in built:
                    body = read_function(found[callee])
                    schedule, steps = build(module, body)
                    moved = traffic.moved_bytes(body, schedule, kept_axes(body), split_chunks(body))
                    built[callee] = body, schedule, steps, moved
                body, schedule, steps, moved = built[callee]
                has_complex |= any(r.dtype.kind == "c" for inner in body.ops for r in inner.results)
                self.kernels.append(KernelInfo(body.name, schedule, moved, least))
                segments[-1] += [(op, step) for step in steps]
                work += moved + sum(i.op.flops * i.results[0].aval.size for i in body.ops) / 4
            elif blas.can_build(op):
                segments[-1].append((op, blas.build(module, f"{op.name}_{len(self.kernels)}", op, main)))
                sizes = [float(v.aval.size) for v in (*op.operands, *op.results)]
                work += least + math.sqrt(math.prod(sizes))  # a product of matrices does about m·n·k steps
                self.kernels.append(KernelInfo(op.name, "contract", least, least))
            else:
                segments += [[HostStep(op, slots)], []]
                self.kernels.append(KernelInfo(op.name, "host", least, least))
        self._parallel = work >= PARALLEL_WORK
        self._keep_lock = work < KEEP_LOCK_WORK
        if self._parallel and not self.team.together:  # no barriers: each kernel is a launch
            segments = [[item] for segment in segments for item in segment]
        names: list[Any] = []
        for i, segment in enumerate(segments):
            if segment and isinstance(segment[0], HostStep):
                names.append(segment[0])
            elif segment:
                name = f"main_{i}"
                self._emit_main(module, name, main, segment, slots)
                names.append(name)
        self._finish(module, names, has_complex)

    def _place_results(self, main: Function) -> None:
        seen: dict[Value, int] = {}
        arguments = {v: i for i, v in enumerate(main.arguments)}
        self._returned: dict[Value, int] = seen
        for i, v in enumerate(main.returns):
            source = origin(v)
            if source in arguments:
                self.aliases[i] = arguments[source]
            elif source in seen:
                self.aliases[i] = ("result", seen[source])
            else:
                seen[source] = i

    def _slots(self, main: Function) -> dict[Value, tuple[str, int]]:
        """Where each value lies: ("table", entry) or ("arena", offset)."""
        n = len(main.arguments)
        slots: dict[Value, tuple[str, int]] = {v: ("table", i) for i, v in enumerate(main.arguments)}
        for op in main.ops:
            offsets = list(mlir.ir.DenseI64ArrayAttr(op.mlir.attributes["smelt.offset"]))
            for v, offset in zip(op.results, offsets):
                if offset == -2:
                    slots[v] = slots[origin(v)]
                elif offset == -1:
                    slots[v] = ("table", n + self._returned[v])
                else:
                    slots[v] = ("arena", offset)
        return slots

    def _emit_main(self, module: KernelModule, name: str, main: Function, segment: list, slots: dict) -> None:
        """``@main_i(members, counter, arguments…, results…, arena)``: one member's share of each kernel in turn."""
        ir, ctx = mlir.ir, context()
        index = ir.IndexType.get(ctx)
        avals = [*self.arguments, *self.results]
        i8 = ir.IntegerType.get_signless(8, ctx)
        unknown = ir.Location.unknown(ctx)
        arena_type = ir.MemRefType.get([max(1, self.arena_bytes)], i8, loc=unknown)
        types = [index, buffer_type(COUNTER), *(buffer_type(a) for a in avals), arena_type]
        entry = module.function(name, types, main.mlir.location, internal=False)
        k = Kernel(ir.InsertionPoint(entry), main.mlir.location)
        count, counter, *table, arena = entry.arguments
        members, me = self._share_of(k, Scalar(k, count, INDEX), counter)

        def view(offset: int, aval: Aval) -> Any:
            return k.emit("memref.view", [arena, k.const(offset, INDEX)], [buffer_type(aval)]).result

        def memref(v: Value) -> Any:
            kind, at = slots[v]
            if kind == "arena":
                return view(at, v.aval)
            have = table[at]
            if have.type != buffer_type(v.aval):  # a reshape between shapes of size 0 and the like
                raise AssertionError("a view changes its size")
            return have

        for n, (op, step) in enumerate(segment):
            outer = {v: v for v in (*op.operands, *op.results)}
            if step.body is not None:
                outer = dict(zip(step.body.arguments, op.operands)) | dict(zip(step.body.returns, op.results))
            scratch = 0
            if "smelt.scratch" in op.mlir.attributes:
                scratch = ir.DenseI64ArrayAttr(op.mlir.attributes["smelt.scratch"])[0]
            memrefs = [memref(outer[x]) if isinstance(x, Value) else view(scratch + x[0], x[1]) for x in step.operands]
            lo, hi = share(k, me, members, step.split.extent, step.split.grain)
            symbol = ir.FlatSymbolRefAttr.get(step.function, ctx)
            k.emit("func.call", [*memrefs, lo, hi], [], callee=symbol)
            if self._parallel and n + 1 < len(segment):
                k.emit("func.call", [], [], callee=ir.FlatSymbolRefAttr.get("GOMP_barrier", ctx))
        k.emit("func.return", [], [])

    def _share_of(self, k: Kernel, count: Scalar, counter: Any) -> tuple[Scalar, Scalar]:
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

    def _finish(self, module: KernelModule, names: list[Any], has_complex: bool) -> None:
        if not any(isinstance(n, str) for n in names):
            self._steps = names
            self._text = {"kernel": "module {\n}\n", "llvm": "module {\n}\n"}
            return
        ir, ctx = mlir.ir, context()
        if self._parallel and self.team.together:
            module.declare("GOMP_barrier", [])
            for name in ("omp_get_num_threads", "omp_get_thread_num"):
                module.declare(name, [], [ir.IntegerType.get_signless(32, ctx)])
        self._kernel_ir = module.mlir.operation.clone()
        jit.lower(module.mlir, has_complex)
        self._llvm_ir = module.mlir
        self._engine = jit.compile_module(module.mlir, {**self.team.symbols(), **blas.symbols()})
        for name in names:
            if isinstance(name, str):
                address = self._engine.raw_lookup(name)
                self._steps.append(address)
            else:
                self._steps.append(name)

    # Running

    def _frame(self) -> Any:
        """This thread's argument table: values, pointers to them, and calls ready to be made."""
        n = 4 + len(self.arguments) + len(self.results)
        values = (ctypes.c_uint64 * n)()
        base = ctypes.addressof(values)
        pointers = (ctypes.c_void_p * n)(*[base + 8 * i for i in range(n)])
        values[1] = base + 8 * (n - 1)  # the counter
        kind = ctypes.PYFUNCTYPE if self._keep_lock else ctypes.CFUNCTYPE
        calls = [kind(None, ctypes.c_void_p)(s) if isinstance(s, int) else s for s in self._steps]
        self._local.frame = frame = (values, pointers, ctypes.addressof(pointers), calls)
        return frame

    def run(self, inputs: Sequence[Any], outputs: Sequence[Any], arena_address: int) -> None:
        """Run on buffers (``.address``, ``.array``); outputs that are aliases are not touched."""
        try:
            values, _, table, calls = self._local.frame
        except AttributeError:
            values, _, table, calls = self._frame()
        i = 2
        for buffer in inputs:
            values[i] = buffer.address
            i += 1
        for buffer in outputs:
            values[i] = buffer.address if buffer is not None else 0
            i += 1
        values[i] = arena_address
        team = self.team
        count = threads.available_threads() if self._parallel else 1
        if count > 1:
            count *= team.shares
        values[0] = count
        for step, call in zip(self._steps, calls):
            if step.__class__ is not int:
                step.run(inputs, outputs, arena_address)
                continue
            values[i + 1] = 0
            if count > 1:
                team.launch(call, step, table, count)
            else:
                call(table)

    def as_text(self, stage: str) -> str:
        """The program as text: "kernel" (func, scf, arith, memref) or "llvm" (the LLVM dialect)."""
        if stage not in ("kernel", "llvm"):
            raise ValueError(f'stage must be "kernel" or "llvm", is {stage!r}')
        if stage not in self._text:
            with mlir.lock:
                operation = self._kernel_ir if stage == "kernel" else self._llvm_ir.operation
                self._text[stage] = operation.get_asm(large_elements_limit=64) + "\n"
        return self._text[stage]


class HostStep:
    """An op that runs on the host: by a library, or by its `reference` rule."""

    def __init__(self, op: OpView, slots: dict[Value, tuple[str, int]]):
        self.op, self.attrs = op.op, op.attrs
        self.operands = [(slots[v], v.aval) for v in op.operands]
        self.results = [(slots[v], v.aval) for v in op.results]

    def run(self, inputs: Sequence[Any], outputs: Sequence[Any], arena: int) -> None:
        n = len(inputs)

        def address(slot: tuple[str, int]) -> int:
            kind, at = slot
            if kind == "arena":
                return arena + at
            return inputs[at].address if at < n else outputs[at - n].address

        operands = [array_at(address(slot), aval) for slot, aval in self.operands]
        for x in operands:
            x.flags.writeable = False
        found = run_op(self.op, operands, self.attrs)
        for (slot, aval), value in zip(self.results, found):
            np.copyto(array_at(address(slot), aval), value, casting="unsafe")


def array_at(address: int, aval: Aval) -> np.ndarray:
    """The array of `aval` at an address, which must stay valid."""
    if not aval.nbytes:
        return np.empty(aval.shape, aval.dtype.numpy)
    raw = (ctypes.c_char * aval.nbytes).from_address(address)
    return np.frombuffer(memoryview(raw), aval.dtype.numpy).reshape(aval.shape)


def share(k: Kernel, me: Scalar, count: Scalar, extent: int, grain: int) -> tuple[Scalar, Scalar]:
    """This thread's part of a range: lo and hi, multiples of `grain` but for the end."""
    units = -(-extent // grain)
    end = k.const(extent, INDEX)

    def bound(i: Scalar) -> Scalar:
        at = k.op("arith.divui", [i * units, count], INDEX)
        if grain > 1:
            at = k.op("arith.minui", [at * grain, end], INDEX)
        return at

    return bound(me), bound(me + 1)


def compile_module(module: Any, team: threads.Team | None = None) -> Program:
    """A program from a module that has been through the pipeline up to ``fuse,plan-buffers``.

    `team`: the threads that run it, instead of this machine's best.
    """
    with mlir.lock:
        found = functions(module)
        return Program(read_function(found["main"]), found, team)
