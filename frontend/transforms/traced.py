"""What `smelt.compile` traces, and the stages in between: the graph IR, the executable, their texts."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from smelt.backends.device import offering, registered_device, stages
from smelt.ir import locks, text
from smelt.ir.aval import Aval
from smelt.ir.errors import ArgumentTypeError, IRError, PipelineError, SmeltError, at_user_line, shown
from smelt.ir.op_program import OpProgram
from smelt.ir.paths import path_of
from smelt.runtime import Device, Executable, compile_module, default_device
from smelt.runtime.compile import lower_module
from smelt.runtime.pipelines import spelled

from ..lazy.build import build_module
from ..lazy.execution import direct
from ..lazy.graph import GraphFunction, Ref
from .stage_names import explain_stages

if TYPE_CHECKING:  # passes are loaded by the first compile
    from typing_extensions import Self

    from smelt.passes.driver import Pipeline
    from smelt.passes.kernels.cost import ProgramCost
    from smelt.passes.remarks import Remark

__all__: list[str] = []


def compiled_by(pipeline: str | None, device: Device, make: Callable[[], Executable]) -> Executable:
    """The program that `make` gives; what a pipeline of the user's own gets wrong is an error of its own."""
    if pipeline is None:
        return make()
    try:
        return make()
    except PipelineError as error:
        raise PipelineError(at_user_line(f"smelt.compile: {str(error)[:1000]}")) from None
    except (KeyError, AttributeError, AssertionError) as error:  # the backend misses what a pass would have made
        raise PipelineError(
            at_user_line(
                f"smelt.compile: the pipeline {shown(pipeline)} leaves a module that the backend cannot compile; "
                f"the default one is {device.pipeline}"
            )
        ) from error


class OfThisProcess:
    """What refers to arrays and programs of this process: a copy of it is itself, and there is no pickle of it."""

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: Any) -> Self:
        return self

    def __reduce__(self) -> Any:
        what = type(self).__name__.strip("_")
        raise ArgumentTypeError(
            at_user_line(
                f"smelt: a {what} belongs to this process and has no pickle; smelt.export_function writes a function "
                "to a file, which smelt.import_function reads"
            )
        )


class Trace(OfThisProcess):
    """A function traced for given argument types: the graph, before any pass.

    Attributes:
        avals: the types of the array arguments (leaves of the argument tree, in order).
        function: what was recorded.
        pipeline: what `smelt.compile` was told of passes; None: nothing.
    """

    def __init__(self, name: str, function: GraphFunction, out_tree: Any, names: list[str | None], n_state_out: int,
                 static_outputs: dict[int, Any], pipeline: str | None = None):  # fmt: skip
        self.name = name
        self.function = function
        self.out_tree = out_tree
        self.names = names
        self.n_state_out = n_state_out
        self.static_outputs = static_outputs
        self.pipeline = pipeline

    @property
    def captured(self) -> Sequence[Ref]:
        """The arrays from outside that the function reads."""
        return self.function.captured

    @property
    def n_results(self) -> int:
        return len(self.function.outputs)

    def ops(self) -> OpProgram | None:
        """The function op by op; None where it cannot run so."""
        return direct.program_of(self.function, ())

    @property
    def avals(self) -> list[Aval]:
        return self.function.arguments

    def lower(self) -> Lowered:
        """The trace as a module of the smelt dialect (the graph IR)."""
        f = self.function
        return Lowered(self, build_module(f.parameters, f.body, f.outputs, self.names))

    def as_text(self, stage: str = "graph", short: bool = False, lines: bool = False) -> str:
        """See `Lowered.as_text`."""
        return self.lower().as_text(stage, short, lines)


class Lowered(OfThisProcess):
    """The graph IR of a trace. Attributes: module (MLIR)."""

    def __init__(self, trace: Trace, module: Any):
        self.trace, self.module = trace, module

    def as_text(self, stage: str = "graph", short: bool = False, lines: bool = False) -> str:
        """The module as text; later stages compile first. See `Compiled.as_text`."""
        if stage != "graph":
            return self.compile(keep_texts=True).as_text(stage, short, lines)
        if not short:
            return text.to_text(self.module)
        return locks.loaded("smelt.ir.short").to_short_text(self.module, lines)

    def compile(self, pipeline: str | Pipeline | None = None, keep_texts: bool = True) -> Compiled:
        """Run the passes and the backend.

        Args:
            pipeline: passes in place of the device's, or changes of those; None: what `smelt.compile` was given, if
                anything.
            keep_texts: keep the program after each pass, for `Compiled.as_text`.

        Raises:
            PipelineError: there is no such pass, or what the passes leave cannot be compiled.
        """
        module, device = self._copy(), default_device()
        name = self.trace.function.name
        passes = self.trace.pipeline if pipeline is None else spelled(pipeline, "compile")
        program = compiled_by(
            passes, device, lambda: compile_module(module, device, passes, keep_texts=keep_texts, name=name)
        )
        return Compiled(self.trace, program, self.lower_for)

    def to_metal(self, gpu: str = "apple8") -> Any:
        """The program for Metal: ``.as_text("msl")``, ``.as_text("manifest")``, ``.save(directory, name)``.

        Works on any machine. `gpu`: which GPU to choose schedules for: apple7, apple8, apple9, simulator, nvidia.
        """
        return self.lower_for("metal", gpu)

    def lower_for(self, device: Device | str, target: str | None = None) -> Any:
        """The program for a device, to look at (``.as_text(stage)``) and where it can be saved (``.save``).

        Works whether the device is here or not. `target`: the machine to choose schedules for; None: the device's own.

        Raises:
            DeviceError: no such device, or one whose programs exist only where it is. IRError: no such target.
        """
        name = device if isinstance(device, str) else device.name
        return lower_module(self._copy(), registered_device(name), target)

    def _copy(self) -> Any:
        return text.parse(text.to_text(self.module, locations=True, verified=True), own=True)  # which verifies it


class Compiled(OfThisProcess):
    """An executable with its texts. Attributes: executable, kernels, seconds (of compilation)."""

    def __init__(self, trace: Trace, executable: Executable, lower_for: Callable[[Device], Any]):
        self.trace, self.executable = trace, executable
        self._lower_for = functools.cache(lower_for)

    @property
    def kernels(self) -> list[Any]:
        return self.executable.kernels

    @property
    def seconds(self) -> float:
        return self.executable.seconds

    @property
    def stages(self) -> list[str]:
        return self.executable.stages

    def cost(self, measure: bool = False) -> ProgramCost:
        """What the program costs: bytes, operations, memory, by kernel; printed, it is a table.

        `measure`: run each kernel by itself as well, on numbers made up, beside what this machine could do at best.

        Raises:
            IRError: the pipeline did not plan the program.

        >>> import smelt
        >>> program = smelt.compile(lambda x: x * smelt.exp(x)).trace(smelt.ones((4, 8))).lower().compile()
        >>> cost = program.cost()
        >>> [(step.name, step.least_bytes) for step in cost.steps], cost.peak_bytes
        ([('fused_exp_mul', 256)], 256)
        """
        return locks.loaded("smelt.runtime.measure").cost_of(self.executable, default_device() if measure else None)

    def remarks(self) -> list[Remark]:
        """What the passes say about the program, in order: of `fuse` each kernel (``passed``), and for each two
        kernels that touch why they are two (``missed``), with the user's line.

        Raises:
            IRError: nothing was kept of the compile.

        >>> import smelt
        >>> def f(x):
        ...     y = smelt.exp(x)
        ...     return smelt.sum(y * y), smelt.sort(y)
        >>> program = smelt.compile(f).trace(smelt.ones((4, 8))).lower().compile()
        >>> [r.rule for r in program.remarks() if r.kind == "passed"]
        ['kernel']
        """
        if self.executable.passed is None:
            raise IRError("the program has no remarks: compile it by `.trace(...).lower().compile()`")
        return list(self.executable.remarks)

    def view(self, path: str | os.PathLike[str] | None = None, title: str = "", measure: bool = False) -> str:
        """A page (HTML, no network) that shows how the program came about: stages beside the user's lines, kernels and
        what they cost, graphs, memory over time, passes, code. See `docs/reading-programs.md`.

        Args:
            path: a file to write the page to; None: it is returned only.
            title: of the page; by default the name of the function.
            measure: as in `cost`.

        Returns:
            The page.

        Raises:
            IRError: nothing was kept of the compile, or `measure` of a program that was not planned: without, the
                page of such a one has neither kernels nor memory.
            ArgumentTypeError: `path` is none. OSError: the file cannot be written.

        >>> import smelt
        >>> program = smelt.compile(lambda x: x * smelt.exp(x)).trace(smelt.ones((4, 8))).lower().compile()
        >>> program.view().startswith("<!doctype html>")
        True
        """
        target = None if path is None else path_of("Compiled.view", "path", path)
        texts = {}
        for stage in dict.fromkeys([*self.executable.texts, *stages()]):
            try:
                texts[stage] = self.as_text(stage)
            except SmeltError as error:  # a device that cannot run it says why
                texts[stage] = f"// {error}\n"
        title = title or self.trace.function.name
        page = locks.loaded("smelt.runtime.view.page").page
        passed = self.executable.passed
        unplanned = passed is not None and passed.text("plan-buffers") is None and not measure
        found = page(self.executable, None if unplanned else self.cost(measure), texts, title, self.remarks())
        if target is not None:
            with open(target, "w", encoding="utf-8") as file:
                file.write(found)
        return found

    def as_text(self, stage: str = "fuse", short: bool = False, lines: bool = False) -> str:
        """The program at a stage: ``graph``, the name of a pass, ``kernel`` or ``llvm``.

        `short`: in the short form, which is to be read (`smelt.ir.short`); it is there from ``graph`` to
        ``plan-buffers``. `lines`: with the user's line after each of its lines.

        A pass that runs more than once is a stage each time: ``linearize#1``, ``linearize#2``, …; ``linearize`` is
        its last run that changed the program. `stages` names those that changed it.

        Of every program there are the stages of other devices too: ``msl`` (Metal text), ``manifest`` (its launches,
        JSON) and ``gpu`` (the kernel IR before it).
        """
        if short:
            return self.executable.as_short_text(stage, lines, stages())
        if stage not in self.executable.stages and (device := offering(stage)) is not None:
            return self._lower_for(device).as_text(stage)
        return self.executable.as_text(stage, stages())


explain_stages(Trace, Lowered, Compiled)
