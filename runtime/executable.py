"""From a module to something that runs: pipeline, backend, launch."""

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

from smelt.ir import locks, mlir, text
from smelt.ir.aval import Aval
from smelt.ir.builder import functions, read_function
from smelt.ir.errors import IRError, PipelineError
from smelt.ir.interpreter import Interpreter
from smelt.ir.settings import settings

from .buffer import Buffer, scratch
from .device import Device

if TYPE_CHECKING:  # passes are loaded by the first compile, not by the import of smelt
    from smelt.passes import PassRecord
    from smelt.passes.stages import Stages

_serial = count()


class Executable:
    """A compiled program.

    Attributes:
        arguments, results: avals.
        seconds: what the compile took.
        records: what the passes did.
    """

    def __init__(self, arguments: list[Aval], results: list[Aval]):
        self.arguments, self.results = arguments, results
        self.seconds = 0.0
        self.records: list[PassRecord] = []
        self.texts: dict[str, Callable[[], str]] = {}  #: what the backend made of it
        self.passed: Stages | None = None  #: what the passes did, if that was to be remembered

    def run(self, inputs: Sequence[Buffer]) -> list[Buffer]:
        """Run on buffers; fresh buffers for the results."""
        raise NotImplementedError

    @property
    def nbytes(self) -> int:
        """Memory that it keeps, roughly: machine code and texts."""
        return 64_000 + 32_000 * len(self.kernels)

    @property
    def kernels(self) -> list[Any]:
        """What is launched, in order (empty where the device has no kernels)."""
        return []

    @property
    def arena_bytes(self) -> int:
        """Memory for temporaries, known before running."""
        return 0

    def as_text(self, stage: str) -> str:
        """The program at one of the stages listed by `stages`, or after the last run of a pass that changed it."""
        if stage in self.texts:
            return self.texts[stage]()
        found = self.passed.text(stage) if self.passed else None
        if found is None:
            raise PipelineError(f"there is no stage {stage!r}; stages: {', '.join(self.stages)}")
        return found

    @property
    def stages(self) -> list[str]:
        """The runs of passes that changed the program, the passes that did not, and what the backend made of it."""
        return [*(self.passed.names if self.passed else ()), *self.texts]


class InterpretedExecutable(Executable):
    """Runs a module op by op with the reference rules; without `reference`, libraries compute what they can."""

    def __init__(self, module: Any, reference: bool = True):
        main = read_function(functions(module)["main"])
        super().__init__([a.aval for a in main.arguments], [r.aval for r in main.returns])
        self._interpreter = Interpreter(module, reference)

    def run(self, inputs):
        arrays = self._interpreter("main", [b.array for b in inputs])
        return [Buffer.of(np.asarray(a), aval) for a, aval in zip(arrays, self.results)]


class CpuExecutable(Executable):
    """Runs kernels compiled by the cpu backend."""

    def __init__(self, module: Any):
        from smelt.backends import cpu

        self.program = cpu.compile_module(module)
        super().__init__(list(self.program.arguments), list(self.program.results))
        self._aliases = dict(self.program.aliases)
        self._fresh = [(i, a) for i, a in enumerate(self.results) if i not in self._aliases]
        self.texts["kernel"] = lambda: self.program.as_text("kernel")
        self.texts["llvm"] = lambda: self.program.as_text("llvm")

    def run(self, inputs):
        program = self.program
        outputs: list[Any] = [None] * len(self.results)
        if self._aliases:
            for i, aval in self._fresh:
                outputs[i] = Buffer.empty(aval)
            for i, source in self._aliases.items():
                shared = inputs[source] if isinstance(source, int) else outputs[source[1]]
                outputs[i] = shared.reshaped(self.results[i])
        else:
            outputs = [Buffer.empty(aval) for aval in self.results]
        if program.is_checked:  # an element that nobody writes shows
            for i, _ in self._fresh:
                outputs[i].poison()
        if program.arena_bytes:
            address, keep = scratch(program.arena_bytes)
            if program.is_checked:
                keep.poison()
            program.run(inputs, outputs, address)
            del keep
        else:
            program.run(inputs, outputs, 0)
        return outputs

    @property
    def kernels(self):
        return list(self.program.kernels)

    @property
    def arena_bytes(self):
        return self.program.arena_bytes


def simplify() -> str:
    """What every device needs: transformations expanded, the graph simplified."""
    from smelt.passes.call_graph import EXPAND

    return f"{EXPAND},canonicalize,cse,dce"


def default_pipeline(device: Device) -> str:
    """The pipeline that programs for `device` go through, as text."""
    if device.name == "reference":
        return simplify()
    if device.name.startswith("metal"):
        from smelt.backends import metal

        return metal.PIPELINE
    from smelt.backends import cpu

    return cpu.PIPELINE


def _executable(module: Any, device: Device) -> Executable:
    if device.name.startswith("metal"):
        from .metal import MetalExecutable

        return MetalExecutable(module, device.name)
    return CpuExecutable(module)


_loaded: set[str] = set()
_METAL_PARTS = ("apple", "emit", "simulator")
_TOOLS = ("check",)  #: what no program needs


def load_compiler(device: Device) -> None:
    """Import what compiles for a device: at once, and whole. A process that is forked while another thread imports
    a module cannot import it any more."""
    if device.name not in _loaded:
        locks.whole(functools.partial(_import_compiler, device.name))


def _import_compiler(name: str) -> None:
    from smelt.passes.registry import import_room

    rooms = ["smelt.ir"]
    if name.startswith("metal"):
        importlib.import_module("smelt.runtime.metal")
        rooms += ["smelt.backends.gpu", "smelt.backends.metal"]
        rooms += [f"smelt.backends.metal.{part}" for part in _METAL_PARTS]
    elif name != "reference":
        rooms += ["smelt.backends.cpu"]
    import_room()
    for room in rooms:
        walk = pkgutil.walk_packages if room.endswith(".gpu") else pkgutil.iter_modules
        for module in walk(importlib.import_module(room).__path__, f"{room}."):
            if module.name.rpartition(".")[2] not in _TOOLS:
                importlib.import_module(module.name)
    _loaded.add(name)


def compile_module(
    module: Any, device: Device, pipeline: str | None = None, keep_texts: bool = False, interpret: bool = False
) -> Executable:
    """Run the pipeline on `module` (which is consumed) and compile it for `device`.

    `pipeline` replaces the default one. `keep_texts` remembers the IR at each stage, for
    `Executable.as_text`. `interpret` runs the result op by op: for programs too small to compile.
    """
    load_compiler(device)
    from smelt.passes import Pipeline
    from smelt.passes.driver import Instrumentation
    from smelt.passes.stages import Stages

    start = time.perf_counter()
    interpret = interpret or device.name == "reference"
    if pipeline is None:
        pipeline = simplify() if interpret else default_pipeline(device)
    with mlir.lock:
        signature = _signature(module)
        stages = Stages(module) if keep_texts else None

        def remember(record: PassRecord, module: Any) -> None:
            if stages is not None:
                stages.record(record, module)
            if settings.debug >= 4:
                print(f"// ----- {record.stage}\n{text.to_text(module)}", file=sys.stderr)

        watch = Instrumentation(
            verify=settings.debug >= 1,
            dump=f"{settings.dump_ir}/{next(_serial):04}" if settings.dump_ir else None,
            on_pass=remember,
        )
        records = Pipeline.parse(pipeline).run(module, watch)
        if "main" not in functions(module):
            raise IRError(f"the module has no function @main; it has {', '.join(functions(module)) or 'none'}")
        if signature is not None and _signature(module) != signature:
            raise IRError(f"the passes {pipeline} made @main a {_signature(module)}, the program is a {signature}")
        if interpret:
            program: Executable = InterpretedExecutable(module, device.name == "reference")
        else:
            program = _executable(module, device)
    program.records = records
    program.seconds = time.perf_counter() - start
    program.passed = stages
    if settings.debug >= 2:
        _log(program, device)
    return program


def _signature(module: Any) -> str | None:
    """The type of @main; None where there is none."""
    main = functions(module).get("main")
    return None if main is None else str(mlir.ir.TypeAttr(main.attributes["function_type"]).value)


def _log(program: Executable, device: Device) -> None:
    print(
        f"smelt: compiled for {device.name} in {program.seconds * 1e3:.1f} ms: "
        f"{len(program.kernels)} kernels, {program.arena_bytes:,} bytes of temporaries",
        file=sys.stderr,
    )
    if settings.debug >= 3:
        for r in program.records:
            done = ", ".join(f"{n} {what}" for what, n in r.statistics.items() if n)
            print(f"  {r.seconds * 1e3:8.2f} ms  {r.stage}  {done}", file=sys.stderr)


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
