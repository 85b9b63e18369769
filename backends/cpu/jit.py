"""From kernel IR to machine code: upstream lowering to the LLVM dialect, then MLIR's ExecutionEngine."""

from __future__ import annotations

import contextlib
import ctypes
import functools
import os
import platform
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from smelt.ir import mlir
from smelt.ir.dialect import context

from . import processor

TO_LLVM = (
    "convert-complex-to-standard,convert-vector-to-llvm,convert-scf-to-cf,expand-strided-metadata,lower-affine,"
    "convert-math-to-llvm,arith-expand{include-bf16=1},convert-complex-to-llvm,finalize-memref-to-llvm,"
    "convert-arith-to-llvm,convert-index-to-llvm,"
    "convert-func-to-llvm{use-bare-ptr-memref-call-conv=1},convert-cf-to-llvm,reconcile-unrealized-casts"
)
TO_LLVM_REAL = (
    "convert-vector-to-llvm,convert-scf-to-cf,convert-math-to-llvm,"
    "arith-expand{include-bf16=1},finalize-memref-to-llvm,"
    "convert-arith-to-llvm,convert-index-to-llvm,"
    "convert-func-to-llvm{use-bare-ptr-memref-call-conv=1},convert-cf-to-llvm,reconcile-unrealized-casts"
)


#: Attributes of LLVM functions. Kernels are not inlined, so that their code (and the order of its sums) does not depend
#: on what stands around them.
HINTS = '["noinline"]'
#: The same with all of a vector register, also where it is very wide. LLVM describes the processor once more for
#: functions that say so, which takes a twentieth of the compile of a small kernel: those do that need it.
WIDE_HINTS = '[["prefer-vector-width", "512"], "noinline"]'
#: Of what is called from outside: it is compiled as part of the form that takes one table of pointers, and not twice.
ENTRY_HINTS = '["alwaysinline"]'


@functools.cache
def _manager(pipeline: str) -> Any:
    manager = mlir.passmanager.PassManager.parse(f"builtin.module({pipeline})", context())
    manager.enable_verifier(False)
    return manager


def lower(module: Any, has_complex: bool) -> None:
    """Kernel IR to the LLVM dialect, in place."""
    hints = mlir.ir.Attribute.parse(HINTS if processor.is_wide_unasked() else WIDE_HINTS, context())
    entry = mlir.ir.Attribute.parse(ENTRY_HINTS, context())
    for item in module.body.operations:
        operation = item.operation
        if operation.name == "func.func" and operation.regions[0].blocks:
            is_entry = "sym_visibility" not in operation.attributes
            operation.attributes["llvm.passthrough"] = entry if is_entry else hints
    _manager(TO_LLVM if has_complex else TO_LLVM_REAL).run(module.operation)


#: How much LLVM does. Level 3 makes no kernel faster, and takes a fifth longer.
LEVEL = 2
#: Parts of LLVM that are left out, on processors where that was measured. Working out other addresses for loops to step
#: through takes a tenth of its time, and on x86-64, whose instructions add and scale addresses, makes nothing faster.
LEFT_OUT = ("-disable-lsr",)


@functools.cache
def prepare() -> None:
    """Set the options of LLVM."""
    if platform.machine().lower() in ("x86_64", "amd64"):
        mlir.set_llvm_options(*LEFT_OUT)


def compile_module(module: Any, symbols: dict[str, int]) -> Any:
    """An engine with the module's code. `symbols`: addresses of external functions it calls."""
    prepare()
    engine = mlir.execution_engine.ExecutionEngine(module, opt_level=LEVEL, shared_libs=[])
    for name, address in symbols.items():
        engine.raw_register_runtime(name, ctypes.c_void_p(address))
    return engine


def object_of(engine: Any, function: str) -> bytes | None:
    """An engine's code as an object file, or None where there is none. `function`: one of its functions."""
    engine.raw_lookup(function)  # makes the code
    with file() as path:
        engine.dump_to_object_file(path)
        return Path(path).read_bytes() or None


@contextlib.contextmanager
def file() -> Iterator[str]:
    """The path of an empty file, in memory where the system has such."""
    if hasattr(os, "memfd_create"):
        number = os.memfd_create("smelt")
        try:
            yield f"/proc/self/fd/{number}"
        finally:
            os.close(number)
    else:
        import tempfile  # imports much, for nothing on other systems

        with tempfile.TemporaryDirectory(prefix="smelt-") as folder:
            (Path(folder) / "code.o").touch()
            yield str(Path(folder) / "code.o")
