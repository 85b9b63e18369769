"""Ctrl-C while machine code runs: a long loop or kernel asks Python now and then whether to go on.

Python runs the handlers of signals between the steps of its own code, which machine code has none of. So the
loop takes the interpreter's lock, lets the handlers run, and ends if one of them raised; the exception
is raised again when the program has returned.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from typing import Any

from smelt.backends.memory import Memory
from smelt.ir import dtypes, mlir
from smelt.ir.aval import Aval
from smelt.ir.builder import Function
from smelt.ir.dialect import context
from smelt.ir.dtypes import DType
from smelt.ir.kinds import Contraction
from smelt.ir.scalar import INDEX, Scalar

from .interrupts import RAISED
from .kernel import CpuKernel, KernelModule

#: What loops call: an i32, 0 to go on. What a program calls at its end.
POLL, SETTLE = "smelt_poll", "smelt_settle"
#: A loop asks after about so many bytes were moved: some milliseconds.
POLL_BYTES = 100e6
#: At most so many iterations lie between.
MOST_ITERATIONS = 1 << 16
#: Kernels that compute so many elements, or more, ask: seconds of work. Others are as they would be without.
LONG_KERNEL = 1 << 35
#: They ask after so many elements: a fraction of a second.
BETWEEN = 1 << 26
#: Where members of a team tell each other to stop.
TOLD = Aval((1,), dtypes.int64)


def period(work: float) -> int:
    """After how many iterations that move `work` bytes each a loop asks; a power of two."""
    wanted = min(MOST_ITERATIONS, max(1, int(POLL_BYTES / max(work, 1.0))))
    return 1 << (wanted.bit_length() - 1)


def poll(module: KernelModule, k: CpuKernel) -> Scalar:
    """Machine code that runs the handlers of signals: whether to stop."""
    return _call(k, _function(module, POLL), dtypes.int32).ne(k.const(0, dtypes.int32))


def settle(module: KernelModule, k: CpuKernel) -> None:
    """Machine code that keeps what a handler raised for `raise_pending`."""
    _call(k, _function(module, SETTLE), dtypes.int32)


def _call(k: CpuKernel, callee: str, dtype: Any, *operands: Scalar) -> Scalar:
    symbol = mlir.ir.FlatSymbolRefAttr.get(callee, context())
    return Scalar(k, k.emit("func.call", operands, [k.type(dtype)], callee=symbol).result, dtype)


def _function(module: KernelModule, name: str) -> str:
    """POLL or SETTLE, made once."""
    if name in module.declared:
        return name
    ir, ctx = mlir.ir, context()
    i32, i64 = (ir.IntegerType.get_signless(n, ctx) for n in (32, 64))
    if not {POLL, SETTLE} & module.declared:
        module.declare("PyGILState_Ensure", [], [i32])
        module.declare("PyGILState_Release", [i32])
        module.declare("PyErr_CheckSignals", [], [i32])
        module.declare("PyErr_Occurred", [], [i64])
        module.declare("PyErr_Fetch", [i64] * 3)
    module.declared.add(name)
    unknown = ir.Location.unknown(ctx)
    k = CpuKernel(module, module.function(name, [], unknown, results=[i32]), unknown, None)
    lock = _call(k, "PyGILState_Ensure", dtypes.int32)
    if name == POLL:
        _call(k, "PyErr_CheckSignals", dtypes.int32)
    raised = _call(k, "PyErr_Occurred", dtypes.int64).ne(k.const(0, dtypes.int64))
    if name == SETTLE:
        places = _places_of_exception(module, k)
        fetch = ir.FlatSymbolRefAttr.get("PyErr_Fetch", ctx)
        k.when(raised, lambda: k.emit("func.call", places, [], callee=fetch))
    k.emit("func.call", [lock], [], callee=ir.FlatSymbolRefAttr.get("PyGILState_Release", ctx))
    k.emit("func.return", [k.convert(raised, dtypes.int32)], [])
    return name


def _places_of_exception(module: KernelModule, k: CpuKernel) -> list[Scalar]:
    """The addresses of the three parts of an exception, as i64. The memory is no part of the module."""
    ir, ctx = mlir.ir, context()
    unknown = ir.Location.unknown(ctx)
    kind = ir.MemRefType.get([3], ir.IntegerType.get_signless(64, ctx), loc=unknown)
    attributes = {
        "sym_name": ir.StringAttr.get(RAISED, ctx),
        "type": ir.TypeAttr.get(kind, ctx),
    }
    ip = ir.InsertionPoint.at_block_begin(module.body)
    ir.Operation.create("memref.global", attributes=attributes, loc=unknown, ip=ip)
    symbol = {"name": ir.FlatSymbolRefAttr.get(RAISED, ctx)}
    memory = ir.Operation.create("memref.get_global", results=[kind], attributes=symbol, loc=unknown, ip=k.ip).result
    first = k.emit("memref.extract_aligned_pointer_as_index", [memory], [k.type(INDEX)]).result
    start = k.convert(Scalar(k, first, INDEX), dtypes.int64)
    return [start + i * ctypes.sizeof(ctypes.c_void_p) for i in range(3)]


class Cell:
    """One number of the thread's own. `memory`: where it lies, if that is known."""

    def __init__(self, k: CpuKernel, dtype: DType, memory: Memory | None = None):
        self._k, self.memory = k, memory or k.scratch(1, dtype)

    def read(self) -> Scalar:
        return self._k.read(self.memory, self._k.const(0, INDEX))

    def write(self, x: Scalar) -> None:
        self._k.write(x, self.memory, self._k.const(0, INDEX))


class Polling:
    """When a loop asks: made before it, used once in each iteration."""

    def __init__(self, k: CpuKernel, work: float):
        self._counter, self._period = Cell(k, dtypes.int64), period(work)
        self._counter.write(k.const(0, dtypes.int64))

    def due(self, k: CpuKernel) -> Scalar:
        """Whether this is an iteration that asks."""
        now = self._counter.read() + 1
        self._counter.write(now)
        return (now & (self._period - 1)).eq(k.const(0, dtypes.int64))


def elements_of(body: Function) -> float:
    """How many elements the op of a kernel that has most goes over, stored or not."""
    found = 0.0
    for op in body.ops:
        avals = [v.aval for v in (*op.operands, *op.results)]
        found = max(found, *(float(aval.size) for aval in avals))
        if isinstance(op.op, Contraction):
            found = max(found, op.op.work(*avals[: len(op.operands)], **op.attrs))
    return found


class Breaks:
    """Where a long kernel asks: of its nested loops the outermost one whose steps are short runs in blocks, with a
    question after each, and those around it end when somebody was told to stop. Loops inside of it stay as they are.

    Args:
        elements: that the kernel goes over.
        first: whether this is the member of the team that asks.
        told: where it tells the others.
    """

    def __init__(self, module: KernelModule, k: CpuKernel, elements: float, first: Scalar, told: Memory):
        self._module, self._first, self.told = module, first, told
        self._ahead = elements  #: of a step of the loops around what is being emitted
        self._since = Cell(k, dtypes.int64)
        self._since.write(k.const(0, dtypes.int64))
        self.expected = 0  #: steps of the next loop, if its bounds are not known here
        self.parts = 1  #: into how many parts loops are cut whose bounds are not known here

    def loop(
        self, k: CpuKernel, plain: Callable[..., list[Scalar]], lower: Scalar, upper: Scalar,
        body: Callable[..., Sequence[Scalar] | None], carries: Sequence[Scalar], step: int,
    ) -> list[Scalar]:  # fmt: skip
        """A loop as `ScalarEmitter.for_` makes it; `plain` is that."""
        expected, self.expected = self.expected, 0
        first, last = constant_of(lower), constant_of(upper)
        steps = expected if first is None or last is None else len(range(first, last, step))
        if self._ahead <= BETWEEN or steps <= 0:
            return plain(lower, upper, body, carries, step)
        ahead = self._ahead
        self._ahead = ahead / steps
        short = self._ahead <= BETWEEN
        size = max(1, int(BETWEEN / max(self._ahead, 1.0))) if short else 1

        def block(at: Scalar, *state: Scalar) -> list[Scalar]:
            if not short:
                return list(body(at, *state) or ())
            end = k.op("arith.minsi", [at + size * step, upper], INDEX)
            found = plain(at, end, body, state, step)
            self._ask(k, (end - at) * max(1, int(self._ahead / step)))
            return found

        with k.vectors(0):
            index = k.type(INDEX)
        types = [index, *(c.mlir.type for c in carries)]
        operation = k.emit("scf.while", [lower, *carries], types, regions=2)
        for region, end in zip(operation.regions, ("scf.condition", "scf.yield")):
            made = mlir.ir.Block.create_at_start(region, types, [k.location] * len(types))
            i, *inner = made.arguments
            at, state = Scalar(k, i, INDEX), [Scalar(k, x, c.dtype) for x, c in zip(inner, carries)]
            with k.inside(made):
                if end == "scf.condition":
                    with k.vectors(0):
                        again = (at < upper) & ~self._is_told(k)
                    k.emit(end, [again, at, *state], [])
                else:
                    found = block(at, *state)
                    k.emit(end, [at + size * step, *found], [])
        self._ahead = ahead
        return [Scalar(k, x, c.dtype) for x, c in zip(operation.results[1:], carries)]

    def _is_told(self, k: CpuKernel) -> Scalar:
        i64, zero = k.type(dtypes.int64), k.const(0, dtypes.int64)
        add = mlir.ir.IntegerAttr.get(i64, 1)
        # A load would be moved out of the loop of a member that does not write there.
        found = k.emit("memref.atomic_rmw", [zero, self.told.memref, k.const(0, INDEX)], [i64], kind=add).result
        return Scalar(k, found, dtypes.int64).ne(zero)

    def _ask(self, k: CpuKernel, elements: Scalar) -> None:
        def ask() -> None:
            self._since.write(k.const(0, dtypes.int64))
            zero = k.const(0, INDEX)
            answer = k.convert(poll(self._module, k), dtypes.int64)
            k.when(answer.ne(k.const(0, dtypes.int64)), lambda: k.write(answer, self.told, zero))

        with k.vectors(0):
            now = self._since.read() + k.convert(elements, dtypes.int64)
            self._since.write(now)
            k.when((now >= BETWEEN) & self._first, ask)


def constant_of(x: Scalar) -> int | None:
    """The number that a scalar is, where that is known."""
    made = getattr(x.mlir.owner, "operation", None)
    if made is None or made.name != "arith.constant":
        return None
    return int(mlir.ir.IntegerAttr(made.attributes["value"]).value)
