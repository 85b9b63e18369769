"""What runs: a compiled program, of any device."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from smelt.ir.aval import Aval
from smelt.ir.builder import function_named
from smelt.ir.errors import IRError, PipelineError, did_you_mean, shown
from smelt.ir.interpreter import Interpreter

from .buffer import Buffer, Memory
from .device import Device

if TYPE_CHECKING:  # passes are loaded by the first compile, not by the import of smelt
    from smelt.passes import PassRecord
    from smelt.passes.remarks import Remark
    from smelt.passes.stages import Stages


class Executable:
    """A compiled program.

    Attributes:
        arguments, results: avals.
        seconds: what the compile took.
        worked: the processor time that it took of its thread, however busy the machine; 0 where it is not known.
        loaded: whether another process has compiled it.
        records: what the passes did.
        remarks: what they say about it, if that was to be remembered.
    """

    def __init__(self, arguments: list[Aval], results: list[Aval]):
        self.arguments, self.results = arguments, results
        self.seconds = self.worked = 0.0
        self.loaded = False
        self.records: list[PassRecord] = []
        self.remarks: list[Remark] = []
        self.texts: dict[str, Callable[[], str]] = {}  #: what the backend made of it
        self.passed: Stages | None = None  #: what the passes did, if that was to be remembered

    def prepare(self) -> None:
        """Do what is left to do before the first run, and needs no compiler of MLIR: several threads may at once."""

    def run(self, inputs: Sequence[Buffer]) -> list[Buffer]:
        """Run on buffers; fresh buffers for the results."""
        raise NotImplementedError

    @property
    def is_step(self) -> bool:
        """Whether a run on little may be one step of a larger one, in the host's memory: it has no effects, so nothing
        comes of it if two threads run it."""
        return False

    @property
    def donatable(self) -> frozenset[int]:
        """Numbers of inputs whose memory may become that of results; none where `run_donated` can fail when it has
        written there."""
        return frozenset()

    def run_donated(self, inputs: Sequence[Buffer], donated: Collection[int]) -> list[Buffer]:
        """`run`, where the memory of the inputs numbered `donated` may become that of results: nobody else has it.

        After an error in the run they may have been written over.
        """
        return self.run(inputs)

    def run_at(self, addresses: Sequence[int], work: int, lines: Callable[[int], Sequence[int]]) -> None:
        """Run a kernel without sizes (see `smelt.backends.strided`) on arrays at these addresses.

        Args:
            addresses: of the table, the operands and the results.
            work: elements that are computed: where there are few, the calling thread does it alone.
            lines: gives the addresses of memory for lines, for so many threads.
        """
        raise NotImplementedError

    def forget_texts(self) -> None:
        """Let go of what only `as_text` needs."""

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

    def as_text(self, stage: str, others: Sequence[str] = ()) -> str:
        """The program at one of the stages listed by `stages`, or after the last run of a pass that changed it.

        Raises:
            PipelineError: there is no such stage; it names all, also the `others`, of which the caller has texts.
        """
        if stage in self.texts:
            return self.texts[stage]()
        found = self.passed.text(stage) if self.passed else None
        if found is None:
            known = list(dict.fromkeys((*self.stages, *others)))
            raise PipelineError(
                f"there is no stage {shown(stage)}{did_you_mean(stage, known)}; stages: {', '.join(known)}"
            )
        return found

    def as_short_text(self, stage: str, lines: bool = False, others: Sequence[str] = ()) -> str:
        """The program at a stage of the passes in the short form, with the user's `lines` if they are asked for.

        Raises:
            PipelineError: there is no such stage. IRError: it is one of the backend, whose language is not smelt's.
        """
        found = self.passed.short(stage, lines) if self.passed else None
        if found is None:
            if stage not in others:
                self.as_text(stage, others)
            raise IRError(f"stage {stage!r} has no short form: it is not of the smelt dialect")
        return found

    @property
    def stages(self) -> list[str]:
        """The runs of passes that changed the program, the passes that did not, and what the backend made of it."""
        return [*(self.passed.names if self.passed else ()), *self.texts]


class Portable(Protocol):
    """How programs of a device go from process to process.

    Attributes:
        needs_device: whether a compile asks the device itself: then a process that compiles beside this one uses it,
            too, and ends soon.
    """

    @property
    def needs_device(self) -> bool: ...

    def has_room(self) -> bool:
        """Whether another process may use the device, as far as a compile needs it."""
        ...

    def identity(self) -> str | None:
        """All that the machine code of its programs depends on, besides smelt, the bindings and the module: the
        processor, the settings. None where its programs cannot be bytes on this machine. Loads no compiler."""
        ...

    def dump(self, executable: Executable) -> tuple[bytes, bool] | None:
        """A program as bytes, and whether its errors name lines of the user; None where it has no such form."""
        ...

    def load(self, content: bytes, device: Device) -> Executable:
        """The program of bytes that `dump` gave in a process of the same identity. Loads no compiler.

        Raises:
            SmeltError: it needs what is not here.
        """
        ...


class InterpretedExecutable(Executable):
    """Runs a module op by op with the reference rules, in the host's memory. On a device that compiles, libraries
    compute what they can."""

    def __init__(self, module: Any, device: Device):
        main = function_named(module)
        super().__init__([a.aval for a in main.arguments], [r.aval for r in main.returns])
        self._interpreter = Interpreter(module, device.interprets)

    def run(self, inputs: Sequence[Buffer]) -> list[Buffer]:
        arrays = self._interpreter("main", [b.array for b in inputs])
        return [Buffer.of(np.asarray(a), aval) for a, aval in zip(arrays, self.results)]


def results_of(
    memory: Memory, avals: Sequence[Aval], arguments: Sequence[Buffer], aliases: Mapping[int, int | tuple[str, int]]
) -> list[Buffer]:
    """Buffers for the results of a program: fresh ones, and those that are an argument's memory or another result's.

    Args:
        aliases: by a result's number that of the argument, or ("result", number).
    """
    found: list[Any] = [None if i in aliases else memory.empty(aval) for i, aval in enumerate(avals)]
    return with_aliases(found, avals, arguments, aliases)


def with_aliases(
    found: list[Any], avals: Sequence[Aval], arguments: Sequence[Buffer], aliases: Mapping[int, int | tuple[str, int]]
) -> list[Buffer]:
    """Add the buffers of results that are an argument's memory, or another result's, to those of the others."""
    for i, source in aliases.items():
        shared = arguments[source] if isinstance(source, int) else found[source[1]]
        found[i] = shared.reshaped(avals[i])
    return found
