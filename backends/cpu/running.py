"""Programs as they run: what a description says, with machine code from an object or from MLIR's engine."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from time import perf_counter
from typing import Any, Protocol

from smelt.ir import profiling
from smelt.ir.aval import Aval
from smelt.ir.errors import AttributeValueError
from smelt.ir.settings import settings

from ..buffer import Blank
from . import blas, interrupts, threads
from .checks import Checks
from .description import EntryStep, HostStep, KernelCost, ProgramDescription
from .entry import Run, entry
from .host import TABLE, AloneStep, DrivenFunction, HostLoop, HostOp
from .pace import Pace

#: Kernels without sizes run on the calling thread where there is less work: a fraction of a millisecond.
ALONE = 1 << 20


class MachineCode(Protocol):
    """Where a program's functions are: an object in memory, or MLIR's engine."""

    def raw_lookup(self, name: str) -> int:
        """The address of a function."""
        ...


class Symbols:
    """What machine code calls and reads, by name. The BLAS is loaded for those who use it.

    Attributes:
        has_blas: whether the BLAS was asked for.
    """

    def __init__(self, team: threads.Team, has_long: bool, checks: Checks | None):
        self._near = team.symbols()
        self.has_blas = False
        if has_long:
            self._near |= interrupts.symbols()
        if checks is not None:
            self._near |= checks.symbols()

    def find(self, name: str) -> int:
        """An address; 0 where nothing has that name."""
        if "blas" in name:
            self.has_blas = True
            return blas.symbols().get(name, 0)
        return self._near.get(name, 0)

    def all(self, called: Iterable[str]) -> dict[str, int]:
        """Addresses for a module that calls these functions, and may read and write what has none."""
        return {**self._near, **{name: self.find(name) for name in called if "blas" in name}}


class Program:
    """A compiled module. `run` may be called by several threads at once.

    Args:
        find_code: its machine code, given what that calls.
        as_text: what it was made of, by stage, where that is known.

    Attributes:
        description: all but the machine code.
        arguments, results: avals.
        aliases: results that are an argument's memory (its number), or another result's ("result", number).
        kernels: what is launched, in order; what a loop or branch runs is named once.
        has_long: whether it has loops of unknown or great length, or such kernels, which Ctrl-C ends.
        arena_bytes: temporary memory.
        is_checked: whether its kernels check their accesses (SMELT_CHECK=1).
        object: the machine code as an object file, to be kept; None where there is none.
    """

    object: bytes | None = None

    def __init__(
        self, description: ProgramDescription, find_code: Callable[[Symbols], MachineCode],
        team: threads.Team | None = None, as_text: Callable[[str], str] | None = None,
    ):  # fmt: skip
        self.team = team or threads.team()
        self.description = description
        self.arguments: list[Aval] = description.arguments
        self.results: list[Aval] = description.results
        self.aliases = description.aliases
        self.kernels: list[KernelCost] = description.kernels
        self.arena_bytes = description.arena_bytes
        self.has_long = description.has_long
        self.is_checked = description.is_checked
        self._parallel = description.parallel
        self._pace = Pace(description.work, self.team.elastic)
        self._paces: dict[int, Pace] = {}  #: of kernels without sizes, by how many bits their work has
        self._as_text = as_text
        self._checks = Checks(description.sites) if description.is_checked else None
        symbols = Symbols(self.team, self.has_long, self._checks)
        self._code = code = find_code(symbols) if description.has_code else None  # lives as long as the program
        # In a child process whose parent was in the middle of a product, the lock of the BLAS's memory is never free.
        functions = {
            name: DrivenFunction(f, self.team, description.keep_lock, symbols.has_blas, self.has_long)
            for name, f in description.functions.items()
        }
        for name, function in functions.items():
            for step in description.functions[name].steps:
                if not isinstance(step, EntryStep):
                    loaded = HostOp(step) if isinstance(step, HostStep) else HostLoop(step, functions)
                    function.steps.append(loaded)
                    continue
                assert code is not None, "a function of machine code"
                address = code.raw_lookup(step.symbol)
                function.steps.append(AloneStep(address, function.unforked) if step.alone else address)
        self._main = functions["main"]
        #: Whether a run is one call by this thread, and nothing before or after it.
        self._is_one_call = not (self._parallel or self.has_long or self._checks) and (
            len(self._main.steps) == 1 and isinstance(self._main.steps[0], int)
        )

    def entry(self, blanks: Sequence[Blank | None]) -> Run | None:
        """What runs it and makes its results, if that is one call by this thread; see `entry`."""
        if not self._is_one_call or self._main.unforked:
            return None
        wide = self.description.functions["main"].wide
        return entry(self._main.steps[0], len(self.arguments), self._main.keep_lock, wide, blanks)

    def run(self, inputs: Sequence[Any], outputs: Sequence[Any], arena_address: int) -> None:
        """Run on buffers (``.address``); outputs that are aliases are not touched."""
        frame = self._main.frame()
        values = frame[0]
        i = TABLE
        for buffer in inputs:
            values[i] = buffer.address
            i += 1
        for buffer in outputs:
            values[i] = buffer.address if buffer is not None else 0
            i += 1
        if self._is_one_call and profiling.active is None:  # what `execute` does, in half the time
            values[i], values[0], values[i + 1] = arena_address, 1, 0
            call, _, table = frame[3][0]
            call(table)
            return
        count = threads.available_threads(self.team) if self._parallel else 1
        try:
            if count == 1:
                self._main.execute(frame, arena_address, 1)
            elif settings.num_threads:  # as many as were asked for
                self._main.execute(frame, arena_address, count * self.team.shares)
            else:
                start = perf_counter()
                members = self._pace.members(count)
                self._main.execute(frame, arena_address, members * self.team.shares if members > 1 else 1)
                end = perf_counter()
                self._pace.ran(members, end - start, end)
        finally:  # also after an error of a step on the host: what kernels before it reported belongs to this run
            if self.has_long:
                interrupts.raise_pending()
            if self._checks is not None:
                self._checks.raise_found()

    def run_strided(self, addresses: Sequence[int], work: int, lines: Callable[[int], Sequence[int]]) -> None:
        """Run a kernel without sizes; see `Executable.run_at`."""
        frame = self._main.frame()
        values = frame[0]
        most = members = 1 if work < ALONE else threads.available_threads(self.team)
        start = perf_counter()
        pace = None
        if most > 1:
            pace = self._paces.setdefault(work.bit_length(), Pace(float(work), self.team.elastic))
        if pace is not None and not settings.num_threads:
            members = pace.members(most)
        count = members * self.team.shares if members > 1 else 1
        found = lines(count)
        operands = len(self.arguments) - len(found)
        for i, address in enumerate((*addresses[:operands], *found, *addresses[operands:]), TABLE):
            values[i] = address
        try:
            self._main.execute(frame, 0, count)
            if pace is not None:
                end = perf_counter()
                pace.ran(members, (end - start) * (1 << work.bit_length()) / work, end)  # as of equal work
        finally:
            if self._checks is not None:
                self._checks.raise_found()

    @property
    def has_texts(self) -> bool:
        """Whether it is known what the program was made of."""
        return self._as_text is not None

    def forget_texts(self) -> None:
        """Let go of what the program was made of, which takes more memory than the program."""
        self._as_text = None

    def as_text(self, stage: str) -> str:
        """The program as text: "kernel" (func, scf, arith, memref) or "llvm" (the LLVM dialect).

        Raises:
            AttributeValueError: no such stage, or a program that another process has compiled.
        """
        if stage not in ("kernel", "llvm"):
            raise AttributeValueError(f'stage must be "kernel" or "llvm", is {stage!r}')
        if self._as_text is None:
            raise AttributeValueError("this program was not compiled here: its IR is not known")
        return self._as_text(stage)
