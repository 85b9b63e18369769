"""From a module to an executable: pipeline, then backend."""

from __future__ import annotations

import functools
import importlib
import pkgutil
import sys
import time
from collections.abc import Callable, Sequence
from itertools import count
from typing import TYPE_CHECKING, Any

import numpy as np

from smelt.backends.buffer import Buffer
from smelt.backends.device import Device
from smelt.backends.executable import Executable, InterpretedExecutable
from smelt.ir import collector, locks, mlir, profiling, scopes, text
from smelt.ir.builder import function_operation
from smelt.ir.errors import DeviceError, IRError, at_user_line
from smelt.ir.settings import settings

from . import explain
from .pipelines import in_force

if TYPE_CHECKING:  # passes are loaded by the first compile, not by the import of smelt
    from smelt.passes import PassRecord

    from .kept import Recipe

_serial = count()


_loaded: set[str] = set()


def is_loaded(device: Device) -> bool:
    """Whether this process has compiled for a device: the first compile loads what does that."""
    return device.name in _loaded


def load_compiler(device: Device) -> None:
    """Import what compiles for a device: at once, and whole. A process that is forked while another thread imports
    a module cannot import it any more."""
    if device.name not in _loaded:
        locks.whole(functools.partial(_import_compiler, device))


def _import_compiler(device: Device) -> None:
    from smelt.passes.registry import import_room

    import_room()
    ir = importlib.import_module("smelt.ir")
    for module in pkgutil.iter_modules(ir.__path__, f"{ir.__name__}."):
        importlib.import_module(module.name)
    for name in device.modules:
        part = importlib.import_module(name)
        for module in pkgutil.walk_packages(getattr(part, "__path__", ()), f"{name}."):
            importlib.import_module(module.name)
    _loaded.add(device.name)


def compile_module(
    module: Any,
    device: Device,
    pipeline: str | None = None,
    keep_texts: bool = False,
    interpret: bool = False,
    name: str = "",
    prepare: bool = True,
) -> Executable:
    """Run the pipeline on `module` (which is consumed) and compile it for `device`.

    `pipeline` replaces the default one, or states changes of it. `keep_texts` remembers the IR at each stage, for
    `Executable.as_text`. `interpret` runs the result op by op: for programs too small to compile. `name`: of the
    function that it is, for `explain`; empty for a lazy graph. `prepare`: whether it is made ready to run, too. A
    program that has been compiled before, by any process, is taken from disk (see `kept`).
    """
    recipe = None
    if looks_on_disk() and not (keep_texts or interpret):
        start = time.perf_counter()
        recipe = _recipe(module, device, pipeline)
        found = recipe.find() if recipe is not None else None
        if found is not None:
            found.seconds = time.perf_counter() - start
            with mlir.lock:
                subject = explain.subject(module, name)
                explain.note(subject, found, device)
            if profiling.active is not None:
                profiling.active.add(f"load {subject.name}", "compile", start, found.seconds, subject.where)
            return found
    program = compile_anew(module, device, pipeline, keep_texts, interpret, name, prepare=prepare)
    if recipe is not None:
        recipe.keep(program)
    return program


def looks_on_disk() -> bool:
    """Whether programs may come from disk. Settings that show what passes do need the passes to run."""
    return settings.cache and not settings.dump_ir and settings.debug < 3


def _recipe(module: Any, device: Device, pipeline: str | None) -> Recipe | None:
    """What a program is found by, or None where programs of the device have no form that could be kept."""
    if device.portable is None or device.portable.identity() is None:
        return None
    with mlir.lock:
        plain = module.operation.get_asm()
        located = module.operation.get_asm(enable_debug_info=True)
    recipe: Recipe = locks.loaded("smelt.runtime.kept").Recipe(plain, device, lambda: located, pipeline)
    return recipe


def compile_anew(
    module: Any,
    device: Device,
    pipeline: str | None = None,
    keep_texts: bool = False,
    interpret: bool = False,
    name: str = "",
    subject: explain.Subject | None = None,
    prepare: bool = True,
) -> Executable:
    """`compile_module` without a look at the disk. `subject`: of `explain`, where it is known already; `prepare`:
    whether it is made ready to run, too."""
    load_compiler(device)
    from smelt.backends.pipelines import SIMPLIFY
    from smelt.passes import Pipeline, remarks
    from smelt.passes.driver import Instrumentation
    from smelt.passes.stages import Stages

    start, worked = time.perf_counter(), time.thread_time()
    if interpret and pipeline is None:
        pipeline = SIMPLIFY
    pipeline = in_force(device, pipeline) or device.pipeline
    with mlir.lock, collector.paused(), scopes.keeping():
        _require_main(module)
        signature = _signature(module)
        subject = subject or explain.subject(module, name)
        stages = Stages(module) if keep_texts else None

        def remember(record: PassRecord, module: Any) -> None:
            if profiling.active is not None:
                profiling.active.add(record.stage, "pass", time.perf_counter() - record.seconds, record.seconds)
            if stages is not None:
                stages.record(record, module)
            if settings.debug >= 4:
                print(f"// ----- {record.stage}\n{text.to_text(module)}", file=sys.stderr)

        watch = Instrumentation(
            verify=settings.debug >= 1,
            dump=f"{settings.dump_ir}/{next(_serial):04}" if settings.dump_ir else None,
            on_pass=remember,
        )
        with remarks.collected(keep_texts) as made:
            records = Pipeline.parse(pipeline).run(module, watch)
        _require_main(module)
        if _signature(module) != signature:
            raise IRError(f"the passes {pipeline} made @main a {_signature(module)}, the program is a {signature}")
        program = (InterpretedExecutable if interpret else device.executable)(module, device)
    if prepare:
        program.prepare()
    if not keep_texts:
        program.forget_texts()
    program.records, program.remarks = records, made
    program.seconds, program.worked = time.perf_counter() - start, time.thread_time() - worked
    program.passed = stages
    if profiling.active is not None:
        profiling.active.add(f"compile {subject.name}", "compile", start, program.seconds, subject.where)
    explain.note(subject, program, device)
    if settings.debug >= 3:
        _log(program)
    return program


def _signature(module: Any) -> str:
    """The type of @main."""
    return str(mlir.ir.TypeAttr(function_operation(module).attributes["function_type"]).value)


def _require_main(module: Any) -> None:
    """Raise IRError where there is nothing to run."""
    if not function_operation(module).regions[0].blocks:
        raise IRError("@main has no body")


def _log(program: Executable) -> None:
    print(f"  {program.arena_bytes:,} bytes of temporaries", file=sys.stderr)
    for r in program.records:
        done = ", ".join(f"{n} {what}" for what, n in r.statistics.items() if n)
        print(f"  {r.seconds * 1e3:8.2f} ms  {r.stage}  {done}", file=sys.stderr)


def lower_module(module: Any, device: Device, target: str | None = None) -> Any:
    """A program from `module` (which is consumed) to look at and to save, whether its device is here or not.

    Args:
        target: what kernels are made for, by its name; None: the device's own.

    Raises:
        DeviceError: programs of that device exist only there. IRError: no such target, or no function @main.
    """
    if device.lower is None:
        raise DeviceError(at_user_line(f"smelt: programs of {device.name} cannot be made without running them there"))
    load_compiler(device)
    from smelt.passes import Pipeline

    with mlir.lock, collector.paused():
        _require_main(module)
        Pipeline.parse(in_force(device, None) or device.pipeline).run(module)
        return device.lower(module, target)


def compile_text(source: str, device: Device, name: str = "<text>") -> Callable[[Sequence[np.ndarray]], list]:
    """Compile a module given as text; the result maps NumPy arrays to NumPy arrays.

    The function ``@main`` is the program. Its arguments are checked against its signature.
    """
    module = text.parse(source, name)
    program = compile_module(module, device)

    def run(arrays: Sequence[np.ndarray]) -> list[np.ndarray]:
        if len(arrays) != len(program.arguments):
            want = ", ".join(map(str, program.arguments))
            raise IRError(f"@main takes {len(program.arguments)} arguments ({want}), got {len(arrays)}")
        for i, (array, aval) in enumerate(zip(arrays, program.arguments)):
            if tuple(array.shape) != aval.shape or array.dtype != aval.dtype.numpy:
                raise IRError(f"argument {i} of @main must be {aval}, is {array.dtype}{list(array.shape)}")
        buffers = [Buffer.of(np.asarray(a, order="C"), v) for a, v in zip(arrays, program.arguments)]
        return [b.array for b in program.run(buffers)]

    return run
