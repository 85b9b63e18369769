"""Which way a graph runs: op by op at once, or as a compiled program.

Nobody shall wait for the compiler without getting more back than was waited. So a structure that is met for the first
time runs op by op (`direct`), unless that would take longer than the compile. What it has taken is added up, and when
that comes to what a compile costs, the program is compiled (the rule of who may rent or buy skis: at worst twice the
time of knowing beforehand; Karlin et al., "Competitive snoopy caching", 1988): beside the running program, where
there is a way, else in place. From then on the quicker way is taken, by what both have been measured to take.

Op by op, runs of ops may be kernels that serve all sizes (`strided`): their time is counted besides, for all sizes
together, so sizes that keep changing cost a few compiles and no more.

The setting `tier` fixes one way: ``ops``, ``strided``, ``program``, or ``auto``, which is this.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, TypeVar

from smelt.ir.control import COND
from smelt.ir.kinds import Contraction
from smelt.runtime import Executable, LruCache, explain

if TYPE_CHECKING:
    from smelt.runtime.background import Pending

from .graph import APPLY, Node, RecordedNode, callees

T = TypeVar("T")

#: What a compile takes, in seconds: so much, and so much for each op.
COMPILE, COMPILE_OP = 0.02, 0.003
#: What an op takes by NumPy: so much, and so much for each element and unit of work (`Op.rule_flops`), or for each
#: multiplication of a matrix product by a BLAS.
OP, ELEMENT, PRODUCT = 3e-6, 0.4e-9, 0.03e-9
#: A gradient has so many times the ops of its function.
GRADIENT = 3
#: Steps that a loop of unknown length is taken to have.
ASSUMED_STEPS = 10_000
#: Another process compiles from this part of what a compile takes on.
BESIDE = 0.25
#: Programs are looked for on disk when what was spent comes to so many seconds: the first look of a process takes as
#: long.
LOOK = 0.03
#: The part of what kernels for all sizes take that a program for these sizes alone would save, at most.
GAIN = 0.25
#: Programs are compared with the other way from so many runs on.
RUNS = 3


class Structure:
    """What is known of the graphs of one structure.

    Attributes:
        spent: seconds that they have taken op by op.
        pending: their program, while another process compiles it.
        can_wait: whether there is such a way.
        looked: whether it was looked for on disk.
        runs: how often their program has been measured.
        ops_seconds, program_seconds: the least that one run took, each way.
        sizes: what `strided` says of kernels for all sizes in place of its ops; "" where it was not asked.
        share: the part of what a run takes that a program might save.
    """

    __slots__ = (
        "can_wait", "looked", "ops_seconds", "pending", "program_seconds", "runs", "share", "sizes", "spent"
    )  # fmt: skip

    def __init__(self) -> None:
        self.spent = 0.0
        self.pending: Pending | None = None
        self.can_wait = True
        self.looked = False
        self.ops_seconds = self.program_seconds = float("inf")
        self.runs = 0
        self.sizes, self.share = "", 1.0

    def program(
        self,
        order: Sequence[Node | RecordedNode],
        find: Callable[[], Executable | None],
        begin: Callable[[], Pending | None],
        make: Callable[[], Executable],
    ) -> Executable | None:
        """The program, if it is on disk, or the next run is one too many without.

        Args:
            find: looks for it on disk; asked once, when that is worth it.
            begin: has it compiled beside the running program, if it can be.
            make: compiles it in place.
        """
        if self.pending is not None:
            if not self.pending.ready():
                return None
            with explain.because(self.reason):
                found, self.pending = self.pending.program(), None
                return _made(order, make) if found is None else found
        limit = cost.seconds(count(order))
        expected = self.share * (self.ops_seconds if self.spent else op_by_op_seconds(order))
        if not self.looked and self.spent + expected >= LOOK:
            self.looked = True
            if (kept := find()) is not None:
                return kept
        if self.can_wait and expected < limit and self.spent + expected >= limit * BESIDE:
            self.pending = begin()
            self.can_wait = self.pending is not None
        if self.pending is not None or self.spent + expected < limit:
            return None
        with explain.because(self.reason):
            return _made(order, make)

    def rests(self, ops: int, seconds: float) -> bool:
        """Whether it runs op by op, and `program` has nothing to do about it yet.

        Args:
            ops, seconds: ops of the graph, and what they are expected to take.
        """
        if self.runs:
            return self.prefers_ops
        if self.pending is not None:
            return not self.pending.ready()
        expected = self.share * (self.ops_seconds if self.spent else seconds)
        limit = cost.seconds(ops)
        begins = self.can_wait and self.spent + expected >= limit * BESIDE
        looks = not self.looked and self.spent + expected >= LOOK
        return not (begins or looks or self.spent + expected >= limit)

    @property
    def reason(self) -> str:
        """Why there is a program, for `smelt.explain`."""
        taken = f"its ops have taken {self.spent / self.share * 1e3:.0f} ms"
        why = taken if self.spent else "its ops would take longer"
        return f"{why}; {self.sizes}" if self.sizes else why

    @property
    def prefers_ops(self) -> bool:
        """Whether the program has been slower than op by op."""
        return self.runs >= RUNS and self.ops_seconds < self.program_seconds

    def run_ops(self, run: Callable[[], T]) -> T:
        start = time.perf_counter()
        found = run()
        seconds = time.perf_counter() - start
        self.spent += seconds * self.share
        self.ops_seconds = min(self.ops_seconds, seconds)
        return found

    def runs_by(self, sizes: str, by_kernels: bool) -> None:
        """Note what `strided` says of it, and whether kernels for all sizes compute all that they can."""
        self.sizes, self.share = sizes, GAIN if by_kernels else 1.0

    def run_program(self, run: Callable[[], T]) -> T:
        if self.runs >= RUNS:
            return run()
        start = time.perf_counter()
        found = run()
        self.program_seconds = min(self.program_seconds, time.perf_counter() - start)
        self.runs += 1
        return found


class CompileCost:
    """What compiles take on this machine: the figures above, corrected by what compiles have taken."""

    def __init__(self) -> None:
        self.factor = 1.0

    def seconds(self, ops: int) -> float:
        """The expected time of a compile of so many ops."""
        return self.factor * (COMPILE + COMPILE_OP * ops)

    def learn(self, ops: int, seconds: float) -> None:
        """A compile of so many ops took `seconds`."""
        ratio = seconds / (COMPILE + COMPILE_OP * ops)
        self.factor = 0.7 * self.factor + 0.3 * min(max(ratio, 0.1), 10.0)


def _made(order: Sequence[Node | RecordedNode], make: Callable[[], Executable]) -> Executable:
    """Compile in place, and learn what that takes."""
    program = make()
    if not program.loaded:
        cost.learn(count(order), program.seconds)
    return program


#: What is known, by structure.
structures = LruCache(weigh=lambda structure: 2_000)
cost = CompileCost()


def count(order: Iterable[Node | RecordedNode]) -> int:
    """Ops of a graph, its functions included."""
    total = 0
    for node in order:
        inner = sum(count(f.body) for f in callees(node))
        transforms = len(node.attrs["transforms"]) if node.op is APPLY else 0
        total += inner * GRADIENT**transforms if inner else 1
    return total


def op_by_op_seconds(order: Iterable[Node | RecordedNode]) -> float:
    """What a graph takes op by op, roughly: from its ops and shapes alone."""
    total = 0.0
    for node in order:
        functions = callees(node)
        if functions:
            inner = sum(op_by_op_seconds(f.body) for f in functions)
            if node.op is APPLY:
                for name, attrs in node.attrs["transforms"]:
                    inner *= attrs["size"] if name == "batch" else GRADIENT
            elif node.op is not COND:
                inner *= node.attrs.get("length", ASSUMED_STEPS)
            total += inner
            continue
        op = node.op
        avals = [n.avals[i] for n, i in node.inputs]
        if isinstance(op, Contraction):
            total += OP + op.work(*avals, **node.attrs) * (PRODUCT if avals[0].dtype.is_inexact else ELEMENT)
        else:
            size = max([a.size for a in (*avals, *node.avals)], default=0)
            total += OP + ELEMENT * size * max(op.rule_flops, 1.0)
    return total
