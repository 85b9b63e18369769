"""Subnormal numbers as zeros: how machine code is called where SMELT_FLUSH_SUBNORMALS says so.

Some processors take many times as long for an operation with a subnormal number. All have a mode in which
subnormal operands and results are zeros, which each thread sets for itself, in a register: MXCSR of x86-64, FPCR of
AArch64. So a team does not call the machine code of a program then, but `flushing`, which sets the mode, calls that,
and sets the register to what it was. Programs are the same with and without.

Products by a BLAS are part of that machine code. Steps on the host are not: NumPy, LAPACK and functions of the user
find the mode that the calling thread has. So do handlers of signals, which long loops let run (`polling`), if there is
a module in C; without one they find the mode of the loop.
"""

from __future__ import annotations

import ctypes
import functools
import platform
from typing import Any

from smelt.ir import mlir
from smelt.ir.context import context
from smelt.ir.errors import SettingError, at_user_line

from . import entry

_FUNCTION = """
llvm.func @flushing(%function: !llvm.ptr, %table: !llvm.ptr) {{
{read}
  llvm.call %function(%table) : !llvm.ptr, (!llvm.ptr) -> ()
{restore}
  llvm.return
}}
"""

#: By the machine: code that notes the register and sets the mode, and code that restores the register.
_MODES = {
    "x86_64": (
        """
  %one = llvm.mlir.constant(1 : i32) : i32
  %flushes = llvm.mlir.constant(0x8040 : i32) : i32
  %cell = llvm.alloca %one x i32 : (i32) -> !llvm.ptr
  llvm.call_intrinsic "llvm.x86.sse.stmxcsr"(%cell) : (!llvm.ptr) -> ()
  %before = llvm.load volatile %cell : !llvm.ptr -> i32
  %mode = llvm.or %before, %flushes : i32
  llvm.store volatile %mode, %cell : i32, !llvm.ptr
  llvm.call_intrinsic "llvm.x86.sse.ldmxcsr"(%cell) : (!llvm.ptr) -> ()""",
        """
  llvm.store volatile %before, %cell : i32, !llvm.ptr
  llvm.call_intrinsic "llvm.x86.sse.ldmxcsr"(%cell) : (!llvm.ptr) -> ()""",
    ),
    "aarch64": (
        """
  %flushes = llvm.mlir.constant(0x1000000 : i64) : i64
  %before = llvm.call_intrinsic "llvm.aarch64.get.fpcr"() : () -> i64
  %mode = llvm.or %before, %flushes : i64
  llvm.call_intrinsic "llvm.aarch64.set.fpcr"(%mode) : (i64) -> ()""",
        """
  llvm.call_intrinsic "llvm.aarch64.set.fpcr"(%before) : (i64) -> ()""",
    ),
}
_MODES["amd64"], _MODES["arm64"] = _MODES["x86_64"], _MODES["aarch64"]


@functools.cache
def flushing() -> int:
    """The address of the function that calls machine code in that mode; its own arguments are made by `arguments`.

    Raises:
        SettingError: it is not known how to set the mode of this processor.
    """
    return int(entry.flushing() or compiled()[0])


@functools.cache
def compiled() -> tuple[int, Any]:
    """The same by LLVM, for where there is no module in C; and what holds it."""
    from . import jit  # which loads what programs from the disk do without

    machine = platform.machine()
    if machine.lower() not in _MODES:
        raise SettingError(at_user_line(f"flush_subnormals: it is not known how a processor of {machine} does so"))
    read, restore = _MODES[machine.lower()]
    with mlir.lock:
        module = mlir.ir.Module.parse(_FUNCTION.format(read=read, restore=restore), context())
        engine = jit.compile_module(module, {})
        return engine.raw_lookup("flushing"), engine


def arguments(address: int, table: int) -> Any:
    """What `flushing` is to call, and on which table: numbers, and pointers to them."""
    found = (ctypes.c_uint64 * 4)(address, table)
    found[2] = ctypes.addressof(found)
    found[3] = found[2] + ctypes.sizeof(ctypes.c_uint64)
    return found


def table_of(arguments: Any) -> int:
    """The address that `flushing` is called with."""
    return int(arguments[2]) + 2 * ctypes.sizeof(ctypes.c_uint64)
