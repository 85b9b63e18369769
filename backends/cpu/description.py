"""What a program consists of besides its machine code: plain data, which other processes can read.

A description says what arguments and results a program has, where its values lie, and what it does step by step:
functions of machine code by name, ops on the host by theirs, loops and branches that Python drives. Together with an
object file it is the whole program. `to_json` and `of_json` give and take what `json` writes.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any, NamedTuple

from smelt.ir.aval import Aval
from smelt.ir.control import COND, SCAN, WHILE
from smelt.ir.errors import InternalError, SmeltError
from smelt.ir.op import Op, get
from smelt.ir.plain import attrs_of, aval_of, plain_attrs, plain_aval

from .checks import Site

#: Of the form below.
VERSION = 4

#: Where a value lies: ("table", entry: arguments, then results) or ("arena", offset).
Slot = tuple[str, int]
#: Results that are an argument's memory (its number), or another result's ("result", its number).
Aliases = dict[int, int | tuple[str, int]]


class DescriptionError(InternalError, ValueError):
    """A program that cannot be described, or a text that describes none."""


class KernelCost(NamedTuple):
    """What is known of a kernel before it runs. See `traffic` for how bytes are estimated.

    Attributes:
        bytes_moved: between memory and the caches, with the kernel's schedule.
        least_bytes: every operand read once, every result written once.
    """

    name: str
    schedule: str
    bytes_moved: int
    least_bytes: int


#: As the label of a step: it is part of what has an event already.
PART = "part"


class EntryStep(NamedTuple):
    """A function of machine code.

    Attributes:
        alone: whether one thread runs it, whatever the team.
        label, line: what a profile calls it, and the user's line; empty where no profile was taken when it was made.
    """

    symbol: str
    alone: bool = False
    label: str = ""
    line: str = ""


class HostStep(NamedTuple):
    """An op that runs on the host.

    Attributes:
        line: where the user wrote it, for the end of a message.
        operands, results: where they lie, and what they are.
    """

    op: Op
    attrs: dict[str, Any]
    line: str
    operands: list[tuple[Slot, Aval]]
    results: list[tuple[Slot, Aval]]


class LoopStep(NamedTuple):
    """A loop or branch around functions with steps on the host.

    Attributes:
        scratch: where its own memory lies in the arena.
        arena, carries, flag, elements: what is where in that; see `plan_buffers.Workspace`.
    """

    op: Op
    attrs: dict[str, Any]
    operands: list[tuple[Slot, Aval]]
    results: list[tuple[Slot, Aval]]
    scratch: int
    arena: int
    carries: tuple[int | None, ...]
    flag: int
    elements: tuple[int | None, ...]


Step = EntryStep | HostStep | LoopStep


class FunctionDescription(NamedTuple):
    """A function that Python drives.

    Attributes:
        arguments, results: how many there are.
        copies: results that are another value's memory, for those who want them elsewhere: number, source, bytes.
        wide: whether its machine code takes the addresses of arguments, results and arena in one array.
    """

    arguments: int
    results: int
    copies: list[tuple[int, int | tuple[str, int], int]]
    steps: list[Step]
    wide: bool = False


class ProgramDescription(NamedTuple):
    """A program, but for its machine code.

    Attributes:
        arguments, results: avals.
        aliases: results that lie where something else does.
        kernels: what is launched, in order; what a loop or branch runs is named once.
        arena_bytes: temporary memory.
        parallel: whether a team of threads runs it. together: whether its members run at the same time.
        keep_lock: whether it is so short that Python's lock is kept.
        has_long: whether it has loops of unknown or great length, or such kernels, which Ctrl-C ends.
        is_checked: whether its kernels check their accesses; sites: where.
        donations: results and arguments, by number, that may share memory; see `donations`.
        functions: by name; ``main`` is the program.
        has_code: whether there is machine code at all.
        work: what a run does, in bytes moved; 0 where that is not known.
    """

    arguments: list[Aval]
    results: list[Aval]
    aliases: Aliases
    kernels: list[KernelCost]
    arena_bytes: int
    parallel: bool
    together: bool
    keep_lock: bool
    has_long: bool
    is_checked: bool
    sites: list[Site]
    donations: list[tuple[int, int]]
    functions: dict[str, FunctionDescription]
    has_code: bool
    work: float = 0.0

    @property
    def names_lines(self) -> bool:
        """Whether its errors name lines of the user."""
        steps = [step for function in self.functions.values() for step in function.steps]
        return any(site.line for site in self.sites) or any(isinstance(s, HostStep) and s.line for s in steps)

    def to_json(self) -> dict[str, Any]:
        """Raises PlainError: an attribute of an op is of no kind that has such a form."""
        return {
            "version": VERSION,
            "arguments": [plain_aval(a) for a in self.arguments],
            "results": [plain_aval(a) for a in self.results],
            "aliases": [[i, source] for i, source in self.aliases.items()],
            "kernels": [[k.name, k.schedule, k.bytes_moved, k.least_bytes] for k in self.kernels],
            "arena_bytes": self.arena_bytes,
            "parallel": self.parallel,
            "together": self.together,
            "keep_lock": self.keep_lock,
            "has_long": self.has_long,
            "is_checked": self.is_checked,
            "sites": [list(site) for site in self.sites],
            "donations": [list(pair) for pair in self.donations],
            "functions": {name: _function(f) for name, f in self.functions.items()},
            "has_code": self.has_code,
            "work": self.work,
        }

    @staticmethod
    def of_json(found: Any) -> ProgramDescription:
        """Raises DescriptionError: this describes no program."""
        try:
            if found["version"] != VERSION:
                raise DescriptionError(f"a description of version {found['version']}")
            return ProgramDescription(
                [aval_of(a) for a in found["arguments"]],
                [aval_of(a) for a in found["results"]],
                {int(i): _source_of(source) for i, source in found["aliases"]},
                [KernelCost(str(n), str(s), int(moved), int(least)) for n, s, moved, least in found["kernels"]],
                int(found["arena_bytes"]),
                bool(found["parallel"]),
                bool(found["together"]),
                bool(found["keep_lock"]),
                bool(found["has_long"]),
                bool(found["is_checked"]),
                [Site(*site) for site in found["sites"]],
                [(int(result), int(argument)) for result, argument in found["donations"]],
                {name: _function_of(f) for name, f in found["functions"].items()},
                bool(found["has_code"]),
                float(found["work"]),
            )
        except DescriptionError:
            raise
        except (SmeltError, KeyError, TypeError, ValueError, AttributeError, struct.error) as error:
            raise DescriptionError(f"this describes no program: {type(error).__name__}: {error}") from None


_CONTROL = {op.name: op for op in (COND, WHILE, SCAN)}


def _source_of(found: Any) -> int | tuple[str, int]:
    return int(found) if isinstance(found, int) else (str(found[0]), int(found[1]))


def _values(values: Sequence[tuple[Slot, Aval]]) -> list[Any]:
    return [[*slot, plain_aval(aval)] for slot, aval in values]


def _values_of(found: Any) -> list[tuple[Slot, Aval]]:
    return [((_kind_of(kind), int(at)), aval_of(aval)) for kind, at, aval in found]


def _kind_of(kind: Any) -> str:
    if kind not in ("table", "arena"):
        raise DescriptionError(f"a value lies in {kind!r}")
    return kind


def _function(f: FunctionDescription) -> dict[str, Any]:
    return {
        "arguments": f.arguments,
        "results": f.results,
        "copies": [list(copy) for copy in f.copies],
        "steps": [_step(step) for step in f.steps],
        "wide": f.wide,
    }


def _function_of(found: Any) -> FunctionDescription:
    copies = [(int(i), _source_of(source), int(nbytes)) for i, source, nbytes in found["copies"]]
    return FunctionDescription(
        int(found["arguments"]), int(found["results"]), copies, [_step_of(step) for step in found["steps"]],
        bool(found["wide"]),
    )  # fmt: skip


def _step(step: Step) -> dict[str, Any]:
    if isinstance(step, EntryStep):
        return {"entry": step.symbol, "alone": step.alone, "label": step.label, "line": step.line}
    values = {"operands": _values(step.operands), "results": _values(step.results), "attrs": plain_attrs(step.attrs)}
    if isinstance(step, HostStep):
        return {"host": step.op.name, "line": step.line, **values}
    memory = {"arena": step.arena, "carries": step.carries, "flag": step.flag, "elements": step.elements}
    return {"loop": step.op.name, "scratch": step.scratch, **memory, **values}


def _step_of(found: Any) -> Step:
    if "entry" in found:
        return EntryStep(str(found["entry"]), bool(found["alone"]), str(found["label"]), str(found["line"]))
    operands, results = _values_of(found["operands"]), _values_of(found["results"])
    attrs = attrs_of(found["attrs"])
    if "host" in found:
        return HostStep(get(found["host"]), attrs, str(found["line"]), operands, results)
    carries, elements = (tuple(None if x is None else int(x) for x in found[k]) for k in ("carries", "elements"))
    return LoopStep(
        _CONTROL[found["loop"]], attrs, operands, results, int(found["scratch"]), int(found["arena"]), carries,
        int(found["flag"]), elements,
    )  # fmt: skip
