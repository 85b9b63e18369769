"""Ctrl-C while machine code runs: a long loop asks Python now and then whether to go on.

Python runs the handlers of signals between the steps of its own code, which machine code has none of. So the
loop takes the interpreter's lock, lets the handlers run, and ends if one of them raised; the exception
is raised again when the program has returned.
"""

from __future__ import annotations

import ctypes
from typing import Any

from smelt.ir import dtypes, mlir
from smelt.ir.dialect import context
from smelt.ir.dtypes import DType
from smelt.ir.scalar import INDEX, Scalar

from .interrupts import RAISED
from .kernel import CpuKernel, KernelModule

#: What loops call: an i32, 0 to go on. What a program calls at its end.
POLL, SETTLE = "smelt_poll", "smelt_settle"
#: A loop asks after about so many bytes were moved: some milliseconds.
POLL_BYTES = 100e6
#: At most so many iterations lie between.
MOST_ITERATIONS = 1 << 16


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
    """One number of the thread's own."""

    def __init__(self, k: CpuKernel, dtype: DType):
        self._k, self._memory = k, k.scratch(1, dtype)

    def read(self) -> Scalar:
        return self._k.read(self._memory, self._k.const(0, INDEX))

    def write(self, x: Scalar) -> None:
        self._k.write(x, self._memory, self._k.const(0, INDEX))


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
