"""What a fused and planned program costs, from its ops and shapes alone: bytes, operations, memory over time.

A *step* is what the program launches: a kernel (a call of a fused function), an op that a library computes, or a loop.
Steps inside of a loop count as often as it runs. Bytes are the least that a step can move: each operand read once and
each result written once. Operations are counted in additions, as the ops' `flops` say.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from smelt.ir import mlir
from smelt.ir.builder import Function, OpView, Value, functions
from smelt.ir.control import SCAN, WHILE, callees
from smelt.ir.errors import IRError
from smelt.ir.kinds import Contraction
from smelt.ir.tables import columns
from smelt.ir.text import line_of

from ..call_graph import callees_first
from ..rewrite import is_planned, schedule_of
from .plan_buffers import arena_bytes, is_view, offsets_of, origin

#: How often a while loop is taken to run.
WHILE_TRIPS = 16


@dataclass(frozen=True)
class StepCost:
    """A step of a program.

    Attributes:
        name: of the fused function, or of the op.
        kind: the schedule of the kernel ("map", "row", "contract", ...), or "library".
        times: how often it runs; of steps in a while loop that is a guess.
        least_bytes: operands and results, each once; of one run.
        operations: in additions; of one run.
        ops: the ops in it that compute.
        lines: of the user's program that it comes from.
        bytes_moved: what its kernel moves between memory and the caches by its device's estimate; None: unknown.
        predicted: seconds that a run takes at the least by the machine's measured rates; None: not measured.
        measured: seconds that a run took by itself; None: not measured.
    """

    name: str
    kind: str
    times: int
    least_bytes: int
    operations: float
    ops: tuple[str, ...]
    lines: tuple[str, ...]
    bytes_moved: int | None = None
    predicted: float | None = None
    measured: float | None = None

    @property
    def intensity(self) -> float:
        """Operations a byte."""
        return self.operations / max(1, self.least_bytes)

    @property
    def moved_or_least(self) -> int:
        """What is known best of the bytes that a run moves."""
        return self.least_bytes if self.bytes_moved is None else self.bytes_moved


@dataclass(frozen=True)
class Lifetime:
    """A temporary value: its bytes, where it lies in the arena, the steps of ``@main`` that write and last read it,
    and what made it."""

    nbytes: int
    offset: int
    first: int
    last: int
    made_by: str
    line: str


@dataclass(frozen=True)
class ProgramCost:
    """What a program costs. ``str()`` of it is a table.

    Attributes:
        steps: in order; those of a function that several loops and branches run, once.
        argument_bytes, result_bytes: what comes in and goes out: no program moves less.
        arena_bytes: memory for temporaries.
        lifetimes: of temporaries of ``@main``.
    """

    steps: tuple[StepCost, ...]
    argument_bytes: int
    result_bytes: int
    arena_bytes: int
    lifetimes: tuple[Lifetime, ...] = field(default=(), repr=False)

    @property
    def least_bytes(self) -> int:
        """Arguments read once and results written once."""
        return self.argument_bytes + self.result_bytes

    @property
    def step_bytes(self) -> int:
        """Operands and results of all steps."""
        return sum(s.least_bytes * s.times for s in self.steps)

    @property
    def moved_bytes(self) -> int:
        """What all steps move: by the device's estimate where there is one, else operands and results."""
        return sum(s.moved_or_least * s.times for s in self.steps)

    @property
    def operations(self) -> float:
        return sum(s.operations * s.times for s in self.steps)

    @property
    def peak_bytes(self) -> int:
        """Memory while it runs: arguments, results and the arena."""
        return self.least_bytes + self.arena_bytes

    def alive_at(self, step: int) -> list[Lifetime]:
        """The temporaries that lie in the arena while a step of ``@main`` runs, the largest first."""
        alive = [x for x in self.lifetimes if x.first <= step <= x.last]
        return sorted(alive, key=lambda x: -x.nbytes)

    @property
    def peak_holders(self) -> list[Lifetime]:
        """The temporaries that are alive when most bytes are."""
        steps = range(max((x.last for x in self.lifetimes), default=-1) + 1)
        return max((self.alive_at(s) for s in steps), key=lambda a: sum(x.nbytes for x in a), default=[])

    def with_moved(self, moved: dict[str, int]) -> ProgramCost:
        """With what a device says that its kernels move, by name. A library moves operands and results, and says so
        where the device says anything of its op: other ops of that name have other shapes."""

        def of(s: StepCost) -> int | None:
            return s.least_bytes if s.kind == "library" and s.name in moved else moved.get(s.name)

        return replace(self, steps=tuple(replace(s, bytes_moved=of(s)) for s in self.steps))

    def __str__(self) -> str:
        timed = any(s.measured is not None for s in self.steps)
        header = ["step", "kind", "times", "bytes", "moved", "operations", "ops/byte"]
        header += ["at least", "measured"] if timed else []
        rows = [[*header, "lines"]]
        for s in self.steps:
            row = [s.name, s.kind, str(s.times), _scaled(s.least_bytes)]
            row += ["" if s.bytes_moved is None else _scaled(s.bytes_moved), _scaled(s.operations)]
            row += [f"{s.intensity:.2f}"]
            row += [_seconds(s.predicted), _seconds(s.measured)] if timed else []
            rows.append([*row, ", ".join(s.lines)])
        lines = [*columns(rows, right=range(2, len(header))), ""]
        lines.append(f"all steps: {_scaled(self.step_bytes)}B, {_scaled(self.operations).strip()} operations")
        lines.append(f"arguments and results: {_scaled(self.least_bytes)}B; no program moves less")
        lines.append(f"memory: {_scaled(self.peak_bytes)}B, of them {_scaled(self.arena_bytes)}B for temporaries")
        for x in self.peak_holders[:5]:
            lines.append(f"  {_scaled(x.nbytes)}B of {x.made_by}{f', at {x.line}' if x.line else ''}")
        return "\n".join(lines) + "\n"


def program_cost(module: Any) -> ProgramCost:
    """The cost of a module after ``plan-buffers``.

    Raises:
        IRError: the module has no ``@main``, or it was not planned.
    """
    with mlir.lock:
        found = functions(module)
        if "main" not in found or not is_planned(found["main"]):
            raise IRError("costs are those of a planned program: run fuse and plan-buffers, and keep @main")
        read = {f.name: f for f in callees_first(module)}
        main, times = read["main"], runs(read.values())
        steps = tuple(_steps(main, read, times, {main.name}))
        given, made = (sum(v.aval.nbytes for v in values) for values in (main.arguments, main.returns))
        return ProgramCost(steps, given, made, arena_bytes(found["main"]), tuple(_lifetimes(main)))


def runs(order: Iterable[Function]) -> Counter[str]:
    """How often each function runs in one run of ``@main``, of while loops by a guess; of those that run.

    Args:
        order: the functions of a module, each after those that it calls.
    """
    times = Counter({"main": 1})
    for function in reversed(list(order)):  # who calls it comes before
        for op in function.ops if times[function.name] else ():
            for name in callees(op) if op.op.kind == "control" else ():
                times[name] += times[function.name] * trips(op)
            if op.op.kind == "call":
                times[op.attrs["callee"]] += times[function.name]
    return +times


def _steps(
    function: Function, read: Mapping[str, Function], times: Mapping[str, int], entered: set[str]
) -> Iterator[StepCost]:
    """What a function launches, and what the loops and branches in it do that nobody `entered` before."""
    for op in function.ops:
        if is_view(op):
            continue
        if op.op.kind == "control":
            for name in callees(op):
                if name not in entered:
                    entered.add(name)
                    yield from _steps(read[name], read, times, entered)
            continue
        least, steps = least_bytes((*op.operands, *op.results)), 1
        if op.op.kind == "call":
            body = read[op.attrs["callee"]]
            kind = schedule_of(body.mlir) or "call"
            name, inside = body.name, body.ops
            if kind == "loop":
                (loop,) = body.ops
                inside, steps = read[loop.attrs["body"]].ops, trips(loop)
            elif kind == "chains":
                inside = [o for call in body.ops for o in read[call.attrs["callee"]].ops]
        else:
            name, kind, inside = op.name, "library", [op]
        lines = dict.fromkeys(line for o in (*inside, op) if (line := line_of(o.location)))
        yield StepCost(
            name, kind, times[function.name], least, steps * sum(map(operations, inside)),
            tuple(o.name for o in inside if o.op.flops > 0), tuple(lines),
        )  # fmt: skip


def trips(op: OpView) -> int:
    """How often the body of a control op runs; of a while, a guess."""
    return WHILE_TRIPS if op.op is WHILE else op.attrs["length"] if op.op is SCAN else 1


def least_bytes(values: Iterable[Value]) -> int:
    """Every distinct value moved once."""
    return sum(v.aval.nbytes for v in dict.fromkeys(values))


def operations(op: OpView) -> float:
    """What an op costs, in additions."""
    if isinstance(op.op, Contraction):
        return op.op.work(*(v.aval for v in op.operands), **op.attrs)
    return op.op.flops * max((v.aval.size for v in (*op.operands, *op.results)), default=0)


def _lifetimes(main: Function) -> Iterator[Lifetime]:
    """Temporaries of a planned function."""
    last: dict[Value, int] = {}
    steps = [op for op in main.ops if not is_view(op)]
    for i, op in enumerate(steps):
        for v in op.operands:
            last[origin(v)] = i
    for i, op in enumerate(steps):
        for v, offset in zip(op.results, offsets_of(op)):
            if offset >= 0:
                name = op.attrs["callee"] if op.op.kind == "call" else op.name
                yield Lifetime(v.aval.nbytes, offset, i, max(last.get(v, i), i), name, line_of(op.location))


def _scaled(count: float) -> str:
    """A count with a decimal prefix.

    >>> _scaled(96), _scaled(1536), _scaled(2.5e9)
    ('96 ', '1.54 k', '2.5 G')
    """
    for limit, prefix in ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")):
        if count >= limit:
            return f"{count / limit:.3g} {prefix}"
    return f"{count:.3g} "


def _seconds(value: float | None) -> str:
    """A time in microseconds."""
    return "" if value is None else f"{value * 1e6:.1f} µs"
