"""Evaluation: from a lazy graph to buffers."""

from __future__ import annotations

import functools
import os
import threading
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from smelt.backends.buffer import SMALL, pool
from smelt.ir import locks, profiling
from smelt.ir.errors import (
    DonatedError,
    OutOfMemoryError,
    SmeltError,
    TraceError,
    at_user_line,
    file_line,
    public_call,
    user_call,
)
from smelt.ir.op_program import OpProgram, out_of_memory
from smelt.ir.settings import settings
from smelt.runtime import Buffer, Device, default_device
from smelt.runtime.device import host_of

from .calls import run_call
from .core import COMPILED, LEAF, topological
from .execution import direct, tiers
from .execution.bound import BoundProgram, bound_program
from .execution.kin import kin_of
from .execution.known import MAX_NODES, Known, ends, known_of
from .execution.results import as_buffer
from .execution.rolled import Rolled
from .execution.steps import Plan, plan, walking
from .execution.subgraphs import Subgraph, executables, plain_subgraph, rolled_subgraph, subgraph_of
from .execution.work import work
from .graph import (
    ALIAS,
    APPLY,
    PARAMETER,
    Node,
    Ref,
    state,
)
from .no_values import no_value
from .silent import silently

if TYPE_CHECKING:

    from .execution.changing import Met, Timed

#: Seconds that it takes to find a program of a long graph, for each node: op by op most small ones take less.
NODE = 15e-6

#: Kernels for all sizes: the first graph that may have some loads them.
_STRIDED = "smelt.lazy.execution.strided"
#: Plans for sizes that change, on devices whose memory is their own.
_CHANGING = "smelt.lazy.execution.changing"


def evaluate(refs: Sequence[Ref]) -> None:
    """Give every node in `refs` its value. Does nothing for those that have one."""
    refs = refs if type(refs) is list else list(refs)
    found = plan(refs)
    if found is None:
        return
    tight = False
    if pool.limit:
        sizes = [node.avals[i].nbytes for node, i in dict.fromkeys(refs) if node.values is None]
        small = sum([nbytes for nbytes in sizes if nbytes <= SMALL])
        tight = pool.expect(small, sum(sizes) - small)
    known = None
    if found.plain and not found.owner:
        ran, known = _ran_as_planned(found, tight)
        if ran:
            return
    del found  # it holds the nodes and what they are made from
    _evaluate(_Request(refs, known, tight))


def _ran_as_planned(found: Plan, tight: bool) -> tuple[bool, Known | None]:
    """Run a plan as it stands, op by op, where that is the quickest way; and what is known of its structure.

    Args:
        tight: whether the results may be more than the limit of memory allows.
    """
    device = default_device()
    tier = settings.tier if device.tiers else "program"
    if device.interprets or settings.check or profiling.active is not None:
        return False, None  # a plan's calls are not seen one by one
    if tier == "ops" or (found.work < settings.small_work and not tight):
        return _ran(found), None
    if tight or tier != "auto":
        return False, None  # NumPy would not notice that memory runs out
    if len(found) > MAX_NODES:
        return device.is_host and found.seconds < NODE * len(found) and _ran(found), None
    known = known_of(found, device)
    if not (device.is_host or known.stays_on_host(found, device)):
        return False, known
    if known.bound is not None and _ran_by_program(found, known.bound):
        return True, known
    if known.groups and _ran_in_groups(found, known.groups, known.structure):
        return True, known
    as_it_is = known.rests(found) and (  # which finds out about pieces
        known.in_small_pieces or not tiers.groups_pay(found.seconds, found.ops, known.structure.spent)
    )
    if not as_it_is:
        return False, known
    if known.met is None:
        return _ran(found, known.structure), known
    start = time.thread_time()
    ran = _ran(found, known.structure)
    known.met.took(time.thread_time() - start)
    return ran, known


def _ran(found: Plan, structure: tiers.Structure | None = None) -> bool:
    """Run a plan, whose time is counted for a structure; False for a call of a compiled function that failed: whoever
    runs it by itself says where it was called."""
    try:
        if structure is None:
            silently(found.run)
        else:
            structure.run_ops(functools.partial(silently, found.run))
    except SmeltError:
        if any(node.op is COMPILED for node in found.order()):
            return False
        raise
    return True


def _ran_by_program(found: Plan, bound: BoundProgram) -> bool:
    """Run a plan by its program; False where there is none any more, others have some of the nodes in work, or memory
    is short."""
    program = bound.program()
    return program is not None and _ran_bound(found, bound, program.run)


def _ran_in_groups(found: Plan, bound: BoundProgram, structure: tiers.Structure) -> bool:
    """The same with kernels for all sizes; False also where there is something to do about a program."""
    groups = bound.groups()
    if groups is None:
        return False

    def run(values: list[Buffer]) -> list[Buffer]:
        results = structure.run_ops(lambda: groups.run([b.array for b in values]))
        return [as_buffer(np.asarray(x), aval) for x, aval in zip(results, groups.results)]

    return _ran_bound(found, bound, run)


def _ran_bound(found: Plan, bound: BoundProgram, run: Callable[[list[Buffer]], list[Buffer]]) -> bool:
    mine, outer = _Evaluation(), _own.owned
    try:
        if not found.claim(mine.owned):
            return False
        _own.owned = mine.owned
        found.give(run(found.values(bound.places)), mine.owned)
    except OutOfMemoryError:  # the other way says what did not fit
        return False
    finally:
        mine.end()
        _own.owned = outer
    return True


class _Request(NamedTuple):
    """What is to be evaluated.

    Attributes:
        known: what is known of its structure; None: nothing, or it is a piece of a larger graph.
        tight: whether the results may be more than the limit of memory allows. A program finds out.
    """

    refs: list[Ref]
    known: Known | None
    tight: bool


class _Evaluation:
    """Nodes that a thread has in work. Other threads that want their values wait for it.

    Attributes:
        owned: what its nodes have as `owner`: a list of it, which is empty when it is over.
        busy: a lock that its thread has until then.
        thread, process: whose it is.
    """

    __slots__ = ("busy", "owned", "process", "thread")

    def __init__(self) -> None:
        self.thread, self.process = threading.get_ident(), os.getpid()
        self.busy = locks.brief_lock()
        self.owned: list[_Evaluation] = [self]
        self.busy.acquire()

    def claim(self, order: Sequence[Node]) -> list[_Evaluation] | None:
        """Take the nodes that nobody has in work. Where another thread has some that is to be waited for, nothing is
        taken, and that is the result. Call it under `walking`: nobody else takes nodes meanwhile."""
        for owned in {id(node.owner): node.owner for node in order if node.owner}.values():
            other = next(iter(owned), None)
            if other is not None and other.process == self.process and not self._is_waited_for_by(other):
                _waiting[self.thread] = owned
                return owned
        for node in order:
            # In a child process what other threads of its parent have in work is nobody's.
            if not node.owner or any(other.process != self.process for other in node.owner):
                node.owner = self.owned
        return None

    def _is_waited_for_by(self, other: _Evaluation | None) -> bool:
        """Whether it is the same thread's, or that thread waits for this one: what runs inside of an evaluation, a
        function of the user's, may need other values. Then both compute the same."""
        while other is not None and other.thread != self.thread:
            other = next(iter(_waiting.get(other.thread, ())), None)
        return other is not None

    def wait(self, owned: list[_Evaluation]) -> None:
        """Wait for what `claim` gave, until it is empty."""
        try:
            for other in owned.copy():
                while owned and not other.busy.acquire(timeout=0.1):
                    pass
                if other.busy._is_owned():
                    other.busy.release()
        finally:
            _waiting.pop(self.thread, None)

    def end(self) -> None:
        self.owned.clear()  # the first call: Ctrl-C cannot come before it
        self.busy.release()


#: What each thread waits for that does; changed under `walking`, but for its end.
_waiting: dict[int, list[_Evaluation]] = {}


class _Own(threading.local):
    """What nodes that the thread has in work have as `owner`."""

    owned: list[_Evaluation] | None = None


_own = _Own()


def _evaluate(request: _Request) -> None:
    outer = _own.owned
    while True:
        mine, other = _Evaluation(), None
        try:
            with walking:
                found = plan(request.refs)
                if found is None:
                    return
                order = found.order()
                held = set(found.kept())
                other = mine.claim(order)
                if request.known is not None and not (found.plain and found.key() == request.known.key):
                    request = request._replace(known=None)  # somebody has evaluated a part of it meanwhile
            del found
            # Plans in C give values without the lock: a node that was not marked yet has forgotten its inputs.
            if other is None and not any(node.op is LEAF for node in order):
                _own.owned = mine.owned
                _evaluate_nodes(request, order, held)
                return
            order.clear()
            held.clear()
        finally:
            mine.end()
            _own.owned = outer
        if other is not None:
            mine.wait(other)


def _evaluate_nodes(request: _Request, order: list[Node], held: set[Node]) -> None:
    check_values(order, request.refs)
    roots = {n for n, _ in request.refs}
    has_calls = any(node.op is COMPILED for node in order)
    keep = [n for n in order if n in roots or n in held]
    loops = None if has_calls or len(order) <= MAX_NODES else rolled_subgraph(order, keep)
    if not has_calls and (loops is None or len(loops.body) <= MAX_NODES):
        held.clear()
        roots.clear()
        _run(request, order, keep, loops)
        return
    keep.clear()
    loops = None
    # The consumers still to come decide which results of a piece must be kept. Nodes are counted by
    # identity, so that nothing here keeps them (and their values) alive once their piece has run.
    last_use: dict[int, int] = {}
    for i, node in enumerate(order):
        for child, _ in node.inputs:
            last_use[id(child)] = i
    for child in roots:
        last_use[id(child)] = len(order)
    kept = set(map(id, held))
    held.clear()
    piecewise = request._replace(known=None)
    start = 0
    for end in ends(order):
        piece = order[start:end]
        if done := [node for node in piece if node.values is not None]:  # what ran before needed them, and others
            _settle(done)
            piece = [node for node in piece if node.values is None]
            done.clear()
        if len(piece) == 1 and piece[0].op is COMPILED:
            _call(piece[0])
        elif all(n.op is ALIAS for n in piece):
            for node in piece:
                node.values = [child.values[i] for child, i in node.inputs]  # type: ignore[index]
            _settle(piece)
        else:
            _run(piecewise, piece, [n for n in piece if last_use.get(id(n), -1) >= end or id(n) in kept])
        order[start:end] = [None] * (end - start)  # type: ignore[list-item]
        piece.clear()
        start = end


def _call(node: Node) -> None:
    """Run a compiled function that was called with arguments that had no values yet."""
    try:
        run_call(node)
    except SmeltError as error:
        if node.where is not None and error.args:
            line = file_line(*node.where)
            if line not in str(error):
                error.args = (f"{error}; called at {line}",)
        raise
    _settle([node])


def check_values(order: Sequence[Node], asked: Sequence[Ref]) -> None:
    """Raise TraceError for an array that has no value, DonatedError for one that has none any more. `asked` are those
    whose values are wanted."""
    for node in order:
        if node.op is PARAMETER:
            check_not_donated(node, order)
            traced = (n.avals[i] for n, i in asked if node in topological([(n, i)]))
            raise TraceError(at_user_line(no_value(next(traced, node.avals[0]), user_call(), public_call())))


def check_not_donated(node: Node, readers: Sequence[Node] = ()) -> None:
    """Raise DonatedError for an array whose memory was given away; `readers`: what may use it, for the message."""
    said = node.attrs.get("donated")
    if said is None:
        return
    where = [n.where for n in readers if n.where and any(child is node for child, _ in n.inputs)]
    used = f"; used at {file_line(*where[0])}" if where else ""
    raise DonatedError(at_user_line(f"{said}{used}"))


def _run(request: _Request, order: list[Node], keep: Sequence[Node], loops: Rolled | None = None) -> None:
    """Evaluate a piece of the graph, which is emptied; the nodes in `keep` get their values.

    Args:
        loops: what `rolled_subgraph` gives, where that is known.
    """
    device = default_device()
    if device.interprets:
        if any(n.op is APPLY or n.op.kind == "control" for n in order):
            _run_program(order, keep, device)
        else:
            _give(keep, direct.run(order, keep, reference=True))
        return
    tier = settings.tier if device.tiers else "program"
    if request.tight and tier != "ops":
        _run_here(request, order, keep, device, "program", False, loops)
        return
    met: Met | None = None
    if tier in ("auto", "strided") and not device.is_host:
        met = locks.loaded(_CHANGING).met(order)
        if (
            met.is_on_device
            or not tiers.may_come_to_host(order)
            or met.moves(device, tiers.count(order), work(order), tiers.op_by_op_seconds(order))
        ):
            if not _ran_on_device(order, keep, device, met):
                met.may_have_program = True
                _run_program(order, keep, device)
            return
    start = 0.0 if met is None else time.thread_time()
    _run_here(request, order, keep, device, tier, work(order) < settings.small_work, loops)
    if met is not None:
        met.took(time.thread_time() - start)


def _run_here(
    request: _Request, order: list[Node], keep: Sequence[Node], device: Device, tier: str, small: bool,
    loops: Rolled | None,
) -> None:  # fmt: skip
    """Run a piece op by op on the host, until its program pays."""
    if not ((small or tier != "program") and direct.can_run(order)):
        _run_program(order, keep, device, small)
    elif small or tier == "ops":
        _give(keep, direct.run(order, keep))
    else:
        _run_tiered(order, keep, device, request.known, loops)


def _run_tiered(
    order: list[Node], keep: Sequence[Node], device: Device, known: Known | None, loops: Rolled | None
) -> None:
    """Run a piece op by op, until its program pays."""
    graph = subgraph_of(order, keep, device, False, loops)
    structure = tiers.structures.get_or_make(graph.key, tiers.Structure)
    if known is not None:
        known.share(structure)
    if structure.kin is None:
        structure.joins(graph.kin or kin_of(graph.structure))
    known_program = executables.get(graph.key)
    without_sizes = None
    if known_program is None or structure.prefers_ops:
        without_sizes = _without_sizes(graph, len(order), host_of(device), structure)
    if without_sizes is not None:
        way: tuple[str, bool] = locks.loaded(_STRIDED).state_of(without_sizes)
        structure.runs_by(*way)
    begins = settings.tier != "strided"
    program = executables.get_or_wait(
        graph.key,
        lambda: (
            structure.program(
                graph.body, lambda: graph.find(device), lambda: graph.begin(device), lambda: graph.make(device)
            )
            if begins
            else None
        ),
    )
    if program is None or structure.prefers_ops:
        if without_sizes is None:
            _give(keep, structure.run_ops(lambda: direct.run(order, keep)))
        else:
            if known is not None and known.groups is None:
                bound = bound_program(graph, order) if device.is_host and known.is_shared else None
                known.groups = bound or False
            order.clear()
            values = [b.array for b in graph.values()]
            found = structure.run_ops(lambda: without_sizes.run(values))
            _give_buffers(keep, [as_buffer(np.asarray(x), n.avals[i]) for x, (n, i) in zip(found, graph.outputs)])
        return
    found = structure.run_program(lambda: graph.run(program))
    if known is not None and known.bound is None and structure.rests_on_program:
        known.bound = bound_program(graph, order)
    _give_buffers(keep, found)


def _ran_on_device(order: list[Node], keep: Sequence[Node], device: Device, met: Met) -> bool:
    """Run a piece on a device whose memory is its own by a plan, until its program pays; see `changing`."""
    if device.strided is None or not direct.can_run(order):
        return False
    plain = plain_subgraph(order, keep, device)

    def has_program() -> bool:
        if not met.may_have_program:
            return False
        graph = subgraph_of(order, keep, device, False)
        met.may_have_program = executables.get(graph.key) is not None or graph.find(device) is not None
        return met.may_have_program

    plan: Timed = locks.loaded(_CHANGING).plan_of(plain.key, plain.function, device, has_program)
    if not (
        plan.pays(lambda: tiers.to_compile(plain.body))
        or plan.waits(lambda: subgraph_of(order, keep, device, False).begin(device, beside_device=True))
    ):
        if (program := plan.successor) is not None:
            executables.get_or_make(subgraph_of(order, keep, device, False).key, lambda: program)
        return False
    values = plain.values()
    order.clear()
    try:
        found = plan.run(values)
    except OutOfMemoryError:  # a program needs less
        found = plain.run(plain.program(device, False))
    _give_buffers(keep, found)
    return True


def _without_sizes(graph: Subgraph, ops: int, device: Device, structure: tiers.Structure) -> OpProgram | None:
    """The program of a graph of so many ops with kernels for all sizes, where that pays."""
    if settings.tier != "strided" and not tiers.groups_pay(structure.measures(graph.body)[1], ops, structure.spent):
        return None
    found: OpProgram | None = locks.loaded(_STRIDED).program_of_function(graph.key, graph.function(), device)
    return found


def _run_program(order: Sequence[Node], keep: Sequence[Node], device: Device, small: bool = False) -> None:
    """Run a piece as one program."""
    graph = subgraph_of(order, keep, device, small)
    _give_buffers(keep, graph.run(graph.program(device, small)))


def _give(keep: Sequence[Node], found: dict[Node, Sequence[np.ndarray]]) -> None:
    for node in keep:
        try:
            node.values = direct.results_as_buffers(node, found[node])
        except MemoryError as error:
            raise out_of_memory(node.op, error, node.where) from None
    _settle(keep)


def _give_buffers(keep: Sequence[Node], found: Sequence[Buffer]) -> None:
    buffers = iter(found)
    for node in keep:
        node.values = [next(buffers) for _ in node.avals]
    _settle(keep)


def _settle(nodes: Sequence[Node]) -> None:
    """Evaluated nodes forget their inputs, unless a derivative still wants to look at them."""
    if state.recording:
        state.deferred.extend(nodes)
        return
    mine = _own.owned
    for node in nodes:
        owner = node.owner
        if owner is mine or not owner:  # else another evaluation still looks at it
            node.detach()
