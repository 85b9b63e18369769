"""Which way a graph runs: op by op at once, or as a compiled program.

Nobody shall wait for the compiler without getting more back than was waited. So a structure that is met for the first
time runs op by op (`direct`), unless that would take longer than the compile. What it has taken is added up, and when
that comes to what a compile costs, the program is compiled (the rule of who may rent or buy skis: at worst twice the
time of knowing beforehand; Karlin et al., "Competitive snoopy caching", 1988): beside the running program, where
there is a way, else in place. From then on the quicker way is taken, by what both have been measured to take.

What `compile` was asked for is compiled in place where that takes no time worth mentioning, or a few calls make up for
it; else it runs op by op, too, and another process begins when it is called for the second time.

On a device whose memory is its own, "op by op" is on the host as well: a GPU's kernels are compiled for sizes, and take
longer to compile. What reads much that lies there alone, or takes long on the host, runs on the device (`changing`).

All of it is counted in processor time of the thread: on a busy machine a compile would wait as much as what it is to
replace.

Op by op, runs of ops may be kernels that serve all sizes (`strided`): their time is counted besides, for all sizes
together, so sizes that keep changing cost a few compiles and no more.

The setting `tier` fixes one way: ``ops``, ``strided``, ``program``, or ``auto``, which is this.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from smelt.ir.aval import Aval
from smelt.ir.control import COND
from smelt.ir.kinds import Contraction, Movement
from smelt.ir.op import Op
from smelt.ir.ops.custom_call import CustomCall
from smelt.ir.ops.indexing import Gather
from smelt.ir.symbolic import value_of
from smelt.runtime import Buffer, Device, Executable, LruCache, default_device, explain
from smelt.runtime.compile import is_loaded

if TYPE_CHECKING:
    from smelt.runtime.background import Pending

    from .kin import Kin

from ..graph import APPLY, Node, RecordedNode, callees

T = TypeVar("T")

#: What it takes to load the compiler, in seconds.
LOADING = 0.25
#: Where processes are started that compile, loaded with the first of them.
_BACKGROUND = "smelt.runtime.background"
#: What an op takes by NumPy: so much, and so much for each element and unit of work (`Op.rule_cost`), or for each
#: operation of a matrix product by a BLAS.
OP, ELEMENT, PRODUCT = 3e-6, 0.4e-9, 0.03e-9
#: As many operations of a BLAS take as long as reading an element from memory: few rows are multiplied as quickly
#: as the matrix is read.
READ = 12
#: A gradient has so many times the ops of its function.
GRADIENT = 3
#: Steps that a loop of unknown length is taken to have.
ASSUMED_STEPS = 10_000
#: Another process compiles from this part of what a compile takes on.
BESIDE = 0.25
#: That of what `compile` was asked for, in its first call: it is likely to be called often. In the second it is.
SOON = 0.1
#: The part of an op in a compile of what repeats others: passes go over all, kernels that are equal are compiled once.
REPEATED = 0.1
#: It is compiled in place where that takes so many seconds at most, or what so many calls save.
AT_ONCE, CALLS = 0.25, 10
#: Programs are looked for on disk when what was spent comes to so many seconds: the first look of a process takes as
#: long.
LOOK = 0.03
#: The part of what kernels for all sizes take that a program for these sizes alone would save, at most.
GAIN = 0.25
#: The part of what a program was expected to save that it saves at least, however quick libraries were expected to be.
LEAST = 0.25
#: What an op takes in graphs in which groups are looked for, in seconds.
OP_SECONDS = 1e-5
#: What it takes to look for groups in a graph, and in each op of it, in seconds.
LOOKING, LOOKING_OP = 1e-3, 5e-5
#: Bytes that may come to the host from a device, to be computed with there.
MOST_FETCHED = 1 << 24
#: Programs are compared with the other way from so many runs on.
RUNS = 3


class Structure:
    """What is known of the graphs of one structure.

    Attributes:
        taken: seconds that they have taken op by op; `spent`: what of these a program might have saved.
        pending: their program, while another process compiles it.
        can_wait: whether there is such a way.
        looked: whether it was looked for on disk.
        runs: how often their program has been measured.
        ops_seconds, program_seconds: the least that one run took, each way.
        sizes: what `strided` says of kernels for all sizes in place of its ops; "" where it was not asked.
        share: the part of what a run takes that a program might save; `own`: that which libraries do not take, whom a
            program calls, too, as expected; `library`: what these take in a run, in seconds.
        asked: whether `compile` was asked for it.
        kin: what is known of graphs that differ from these in sizes alone.
        counted: what `measures` gave.
    """

    __slots__ = (
        "asked", "can_wait", "counted", "kin", "library", "looked", "ops_seconds", "own", "pending", "program_seconds",
        "runs", "share", "sizes", "spent", "taken",
    )  # fmt: skip

    def __init__(self) -> None:
        self.spent = self.taken = self.library = 0.0
        self.pending: Pending | None = None
        self.can_wait = True
        self.looked = False
        self.ops_seconds = self.program_seconds = float("inf")
        self.runs = 0
        self.sizes, self.share, self.own = "", 1.0, 1.0
        self.asked = False
        self.counted: tuple[int, float] | None = None
        self.kin: Kin | None = None

    def joins(self, kin: Kin) -> None:
        """A size was met that was not known."""
        if self.kin is None:
            self.kin = kin
            kin.met += 1

    @property
    def passes(self) -> bool:
        """Whether it is met for the first time, and not likely to be met again: no program is made for later."""
        return not self.spent and self.kin is not None and self.kin.pass_by

    def measures(self, order: Sequence[Node | RecordedNode]) -> tuple[int, float]:
        """Ops to compile of a graph of this structure, and what they are expected to take one by one: counted once."""
        if self.counted is None:
            self.counts(order, ops_to_compile(order, self.kin), op_by_op_seconds(order))
        assert self.counted is not None
        return self.counted

    def counts(self, order: Sequence[Node | RecordedNode], ops: int, seconds: float) -> None:
        """Note what `measures` gives of a graph."""
        self.counted = ops, seconds
        self.library = library_seconds(order)
        self.own = 1 - self.library / seconds if seconds else 1.0
        self.spent *= self.own

    def adds(self, other: Structure) -> None:
        """Add what is known of graphs of the same structure."""
        if self.counted is None and other.counted is not None:
            self.counted, self.own, self.library = other.counted, other.own, other.library
            self.spent *= self.own
        self.spent += other.spent * (1.0 if other.counted is not None else self.own)
        self.taken += other.taken
        self.ops_seconds = min(self.ops_seconds, other.ops_seconds)
        self.kin = self.kin or other.kin

    def saved(self, seconds: float) -> float:
        """What a program might save of a run of so many seconds: no more than was expected of a run, and less where one
        takes little longer than its libraries."""
        own = seconds * self.own
        return self.share * min(own, max(seconds - self.library, LEAST * own))

    def begins(self, limit: float, expected: float) -> bool:
        """Whether another process is to compile, from the run on that is expected to take so long.

        Args:
            limit: what a compile takes.
        """
        if not self.can_wait or self.passes:
            return False
        if self.asked:
            return self.spent > 0 or expected >= limit * SOON
        return self.spent + expected >= limit * BESIDE

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
                if found is None:
                    return _made(order, make)
                _learn(order, found)
                return found
        ops, seconds = self.measures(order)
        limit, in_place = cost.beside(ops), cost.in_place(ops)
        expected = self.saved(self.ops_seconds if self.spent else seconds)
        if not (self.looked or self.passes) and self.spent + expected >= LOOK:
            self.looked = True
            if (kept := find()) is not None:
                return kept
        if expected < in_place and self.begins(limit, expected):
            self.pending = begin()
            self.can_wait = self.pending is not None
        if self.pending is not None or self.spent + expected < in_place:
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
        pending = self.pending  # a thread that takes the program empties it
        if pending is not None:
            return not pending.ready()
        expected = self.saved(self.ops_seconds if self.spent else seconds)
        begins = self.begins(cost.beside(ops), expected)
        looks = not (self.looked or self.passes) and self.spent + expected >= LOOK
        return not (begins or looks or self.spent + expected >= cost.in_place(ops))

    @property
    def reason(self) -> str:
        """Why there is a program, for `smelt.explain`."""
        taken = f"its ops have taken {self.taken * 1e3:.0f} ms"
        why = taken if self.spent else "its ops would take longer"
        return f"{why}; {self.sizes}" if self.sizes else why

    @property
    def prefers_ops(self) -> bool:
        """Whether the program has been slower than op by op."""
        return self.runs >= RUNS and self.ops_seconds < self.program_seconds

    @property
    def rests_on_program(self) -> bool:
        """Whether the program is taken from now on, without being measured."""
        return self.runs >= RUNS and not self.prefers_ops

    def run_ops(self, run: Callable[[], T]) -> T:
        if self.kin is not None and self.spent:
            self.kin.returned += 1
        start = time.thread_time()
        found = run()
        seconds = time.thread_time() - start
        self.taken += seconds
        self.spent += self.saved(seconds)
        self.ops_seconds = min(self.ops_seconds, seconds)
        return found

    def ran_again(self, runs: int) -> None:
        """So many runs were not measured, because they take no longer than to look at the clock."""
        self.taken += runs * self.ops_seconds
        self.spent += runs * self.saved(self.ops_seconds)

    def runs_by(self, sizes: str, by_kernels: bool) -> None:
        """Note what `strided` says of it, and whether kernels for all sizes compute all that they can."""
        self.sizes, self.share = sizes, GAIN if by_kernels else 1.0

    def run_program(self, run: Callable[[], T]) -> T:
        if self.runs >= RUNS:
            return run()
        start = time.thread_time()
        found = run()
        self.program_seconds = min(self.program_seconds, time.thread_time() - start)
        self.runs += 1
        return found


class CompileCost:
    """What compiles take on this machine: what devices say (see `benchmarks.compile_stages`), corrected by what
    compiles have taken."""

    def __init__(self) -> None:
        self._factors: dict[str, float] = {}

    def seconds(self, ops: int, device: Device | None = None) -> float:
        """The expected time of a compile of so many ops; device: the default one."""
        device = device or default_device()
        once, each = device.compiling
        return self._factors.get(device.name, 1.0) * (once + each * ops)

    def in_place(self, ops: int) -> float:
        """The same in this process, which may have to load the compiler first."""
        return self.seconds(ops) + (0.0 if is_loaded(default_device()) else LOADING)

    def beside(self, ops: int) -> float:
        """The same in another process, which may have to be started first."""
        return self.seconds(ops) + (0.0 if _BACKGROUND in sys.modules else LOADING)

    def learn(self, ops: int, seconds: float) -> None:
        """A compile of so many ops took `seconds`."""
        device = default_device()
        once, each = device.compiling
        ratio = min(max(seconds / (once + each * ops), 0.1), 10.0)
        self._factors[device.name] = 0.7 * self._factors.get(device.name, 1.0) + 0.3 * ratio


def _made(order: Sequence[Node | RecordedNode], make: Callable[[], Executable]) -> Executable:
    """Compile in place, and learn what that takes."""
    program = make()
    if not program.loaded:
        _learn(order, program)
    return program


def _learn(order: Sequence[Node | RecordedNode], program: Executable) -> None:
    """Learn what a compile has taken, here or in another process; one that was found on disk has taken nothing."""
    if program.worked:
        cost.learn(to_compile(order), program.worked)


def may_come_to_host(order: Sequence[Node | RecordedNode]) -> bool:
    """Whether a graph may run op by op on the host, in place of a device whose memory is its own: nothing in it was
    written for the device, and little of what it reads lies there alone."""
    if not is_portable(order):
        return False
    leaves = dict.fromkeys(ref for node in order for ref in node.inputs)
    return are_near(node.values[i] for node, i in leaves if node.values is not None)


def is_portable(order: Sequence[Node | RecordedNode]) -> bool:
    """Whether nothing in a graph was written for a device."""
    ops = {node.op for node in order}
    if any(isinstance(op, CustomCall) for op in ops):
        return False
    if not any(op is APPLY or op.kind == "control" for op in ops):
        return True
    return all(is_portable(f.body) for node in order for f in callees(node))


def are_near(buffers: Iterable[Buffer]) -> bool:
    """Whether the host has arrays, or may fetch them."""
    return sum(b.aval.nbytes for b in buffers if not b.is_on_host) <= MOST_FETCHED


def groups_pay(seconds: float, ops: int, spent: float) -> bool:
    """Whether groups are worth being looked for, in so many ops that take so many seconds op by op.

    Args:
        spent: seconds that they have taken already, in earlier evaluations of the same structure.
    """
    return ops > 1 and seconds >= OP_SECONDS * ops and spent + seconds >= LOOKING + LOOKING_OP * ops


def pays_at_once(order: Sequence[Node | RecordedNode], ops: int) -> bool:
    """Whether what `compile` was asked for is compiled in place: nobody notices, or a few calls make up for it.

    Args:
        ops: how many there are to compile.
    """
    seconds = cost.in_place(ops)
    return seconds <= AT_ONCE or CALLS * (op_by_op_seconds(order) - library_seconds(order)) >= seconds


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


def to_compile(order: Iterable[Node | RecordedNode]) -> int:
    """How many ops that are all different take as long to compile as a graph: of what repeats others, as layers and an
    optimizer's steps do, only a part counts. Ops are the same here if what they read is, two ops up."""
    total = 0.0
    kinds: dict[tuple[Hashable, ...], int] = {}
    known: dict[Node, tuple[int, int]] = {}
    for node in order:
        inner = sum(to_compile(f.body) for f in callees(node))
        if inner:
            total += inner * GRADIENT ** (len(node.attrs["transforms"]) if node.op is APPLY else 0)
            continue
        above = [known.get(n, (-1, -1)) for n, _ in node.inputs]
        own = kinds.setdefault((node.op, node.avals), len(kinds))
        near = kinds.setdefault((own, *[a[0] for a in above]), len(kinds))
        known[node.node if isinstance(node, RecordedNode) else node] = own, near
        before = len(kinds)
        kinds.setdefault((near, "all", *[a[1] for a in above]), before)
        total += 1 if len(kinds) > before else REPEATED
    return round(total)


def ops_to_compile(order: Iterable[Node | RecordedNode], kin: Kin | None) -> int:
    """`to_compile`, counted once for all sizes."""
    if kin is None:
        return to_compile(order)
    if kin.ops is None:
        kin.ops = to_compile(order)
    return kin.ops


def fewest(order: Iterable[Node | RecordedNode]) -> int:
    """How many ops there are to compile at least: loops in place of repetitions leave one of each kind. To look for
    repetitions takes as long as to run hundreds of ops."""
    return len({(node.op, node.avals) for node in order})


def op_by_op_seconds(order: Iterable[Node | RecordedNode]) -> float:
    """What a graph takes op by op, roughly: from its ops and shapes alone."""
    return _total(order, _seconds)


def library_seconds(order: Iterable[Node | RecordedNode]) -> float:
    """What of that a BLAS takes, for a program as well."""
    return _total(order, lambda node: _seconds(node) - OP if _is_of_library(node) else 0.0)


def _total(order: Iterable[Node | RecordedNode], seconds: Callable[[Node | RecordedNode], float]) -> float:
    total = 0.0
    for node in order:
        functions = callees(node)
        if not functions:
            total += seconds(node)
            continue
        inner = sum(_total(f.body, seconds) for f in functions)
        if node.op is APPLY:
            for name, attrs in node.attrs["transforms"]:
                inner *= attrs["size"] if name == "batch" else GRADIENT
        elif node.op is not COND:
            inner *= node.attrs.get("length", ASSUMED_STEPS)
        total += inner
    return total


def _is_product(node: Node | RecordedNode) -> bool:
    return isinstance(node.op, Contraction) and node.inputs[0][0].avals[node.inputs[0][1]].dtype.is_inexact


def _is_of_library(node: Node | RecordedNode) -> bool:
    """Whether a BLAS multiplies in place of kernels, too: what is no product of matrices, or of half precision, kernels
    compute quicker than ops do."""
    if not _is_product(node):
        return False
    operands = [n.avals[i] for n, i in node.inputs]
    form = node.op.matmul_form(*operands, **node.attrs)  # type: ignore[attr-defined]
    return form is not None and all(aval.dtype.itemsize >= 4 for aval in operands)


def operations(op: Contraction, attrs: Mapping[str, Any], operands: Sequence[Aval]) -> Any:
    """Operations of a BLAS for a product: no fewer than take as long as reading the operands."""
    return max(op.work(*operands, **attrs), reading(operands), key=value_of)


def reading(operands: Sequence[Aval]) -> Any:
    """How many operations of a BLAS take as long as reading the operands."""
    return READ * sum([aval.size for aval in operands])


def gone_over(op: Op, operands: Sequence[Aval], results: Sequence[Aval]) -> Sequence[Aval]:
    """The arrays over which an op goes by its rule: none where NumPy gives a view, not what is looked up in."""
    if isinstance(op, Movement):
        return ()
    return results if op.kind == Gather.kind else (*operands, *results)


def _seconds(node: Node | RecordedNode) -> float:
    op = node.op
    avals = [n.avals[i] for n, i in node.inputs]
    if isinstance(op, Contraction):
        if _is_product(node):
            return OP + operations(op, node.attrs, avals) * PRODUCT
        return OP + op.work(*avals, **node.attrs) * ELEMENT
    size = max([a.size for a in gone_over(op, avals, node.avals)], default=0)
    return OP + ELEMENT * size * op.rule_cost
