"""Evaluation: from a lazy graph to buffers."""

from __future__ import annotations

from collections.abc import Sequence
from sys import getrefcount
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from smelt.ir import locks
from smelt.ir.control import COND
from smelt.ir.errors import TraceError, at_user_line
from smelt.ir.kinds import Contraction
from smelt.ir.op_program import plain_rule
from smelt.ir.settings import settings
from smelt.runtime import Buffer, Device, Executable, LruCache, compile_module, default_device

from . import direct, tiers
from .build import build_module
from .graph import (
    APPLY,
    PARAMETER,
    Node,
    RecordedNode,
    Ref,
    callees,
    snapshot,
    state,
    structure_key,
    topological,
)
from .programs import kept_program, program_in_background, program_of

if TYPE_CHECKING:
    from smelt.runtime.background import Pending

#: Graphs are compiled in pieces of at most this many nodes, so that a long chain compiles in
#: bounded time and its repeated pieces share an executable.
MAX_NODES = 1000

#: One node of at most so many elements, and operands as small, runs the shortest way.
SMALL = 4096

executables = LruCache(weigh=lambda program: program.nbytes)

#: One graph is evaluated at a time: threads may share nodes.
_lock = locks.lock()


def evaluate(refs: Sequence[Ref]) -> None:
    """Give every node in `refs` its value. Does nothing for those that have one."""
    with _lock:
        _evaluate(refs)


def _evaluate(refs: Sequence[Ref]) -> None:
    order = topological(refs)
    if not order or (len(order) == 1 and _run_one(order[0])):
        return
    check_values(order)
    held = _held_outside(order)
    roots = {n for n, _ in refs}
    if len(order) <= MAX_NODES:
        _run(order, [n for n in order if n in roots or n in held])
        return
    # The consumers still to come decide which results of a piece must be kept. Nodes are counted by
    # identity, so that nothing here keeps them (and their values) alive once their piece has run.
    last_use: dict[int, int] = {}
    for i, node in enumerate(order):
        for child, _ in node.inputs:
            last_use[id(child)] = i
    for child in roots:
        last_use[id(child)] = len(order)
    keep = set(map(id, held))
    held.clear()
    for start in range(0, len(order), MAX_NODES):
        end = min(start + MAX_NODES, len(order))
        piece = order[start:end]
        _run(piece, [n for n in piece if last_use.get(id(n), -1) >= end or id(n) in keep])
        order[start:end] = [None] * (end - start)  # type: ignore[list-item]


def check_values(order: Sequence[Node]) -> None:
    """Raise TraceError for an array that has no value."""
    for node in order:
        if node.op is PARAMETER:
            raise TraceError(at_user_line(_no_value(node)))


def _run_one(node: Node) -> bool:
    """Evaluate one small node by its NumPy rule, if that is all there is to do: the shortest way."""
    rule, avals = plain_rule(node.op), node.avals
    if rule is None or avals[0].size > SMALL or settings.small_work < SMALL or settings.check:
        return False
    if default_device().interprets:
        return False
    operands = []
    for child, i in node.inputs:
        if child.avals[i].size > SMALL:
            return False
        operands.append(child.values[i].array)  # type: ignore[index]
    with np.errstate(all="ignore"):
        node.values = [Buffer.of(np.asarray(rule(node.op, *operands, **node.attrs)), avals[0])]
    _settle(node)
    return True


def _held_outside(order: Sequence[Node]) -> set[Node]:
    """Nodes that somebody besides the graph refers to: their values are worth keeping.

    An array and the nodes made from it share one reference tuple, so more references than edges
    mean that the array lives. A wrong guess costs a recomputation or a store, never a wrong value.
    """
    # The first tells how often the loops below refer to each: versions of Python differ in that.
    edges: dict[int, list[Any]] = {0: [0, object()]}
    for node in order:
        for ref in node.inputs:
            if ref[0].values is None:
                entry = edges.get(id(ref))
                if entry is None:
                    edges[id(ref)] = [1, ref]
                else:
                    entry[0] += 1
    held: set[Node] = set()
    own = -1
    for count, ref in edges.values():
        more = getrefcount(ref) - count
        if own < 0:
            own = more
        elif more > own:
            held.add(ref[0])
    return held


def _no_value(node: Node) -> str:
    aval = node.avals[0]
    if not state.compiling:
        return (
            f"the value of a traced array ({aval}) was asked for, but it was made while smelt.compile, "
            "smelt.vmap, smelt.scan or the like traced a function that has returned since. Return such arrays from the "
            "function, or name what it updates in smelt.compile(..., outputs=...)"
        )
    return (
        f"the value of a traced array ({aval}) was asked for, but inside smelt.compile, smelt.vmap "
        "and the functions given to smelt.cond, smelt.scan and the like arrays have no values yet. For a Python `if` "
        "on a value use smelt.where or smelt.cond, for a `while` use smelt.while_loop; move printing and .item() "
        "outside, or leave this function uncompiled"
    )


def _run(order: list[Node], keep: Sequence[Node]) -> None:
    """Evaluate a piece of the graph, which is emptied; the nodes in `keep` get their values."""
    device = default_device()
    if device.interprets:
        if any(n.op is APPLY or n.op.kind == "control" for n in order):
            _run_program(order, keep, device)
        else:
            _give(keep, direct.run(order, keep, reference=True))
        return
    tier = settings.tier if device.tiers else "program"
    small = _work(order) < settings.small_work
    if not ((small or tier != "program") and direct.can_run(order)):
        _run_program(order, keep, device, small)
    elif small or tier == "ops":
        _give(keep, direct.run(order, keep))
    else:
        _run_tiered(order, keep, device)


def _run_tiered(order: list[Node], keep: Sequence[Node], device: Device) -> None:
    """Run a piece op by op, until its program pays."""
    graph = _graph(order, keep, device, False)
    structure = tiers.structures.get_or_make(graph.key, tiers.Structure)
    program = executables.get(graph.key)
    if program is None:
        program = structure.program(
            order, lambda: graph.find(device), lambda: graph.begin(device), lambda: graph.make(device)
        )
        if program is not None:
            executables.put(graph.key, program)
    if program is None or structure.prefers_ops:
        _give(keep, structure.run_ops(lambda: direct.run(order, keep)))
        return
    _give_buffers(keep, structure.run_program(lambda: program.run(graph.values())))


def _run_program(order: Sequence[Node], keep: Sequence[Node], device: Device, small: bool = False) -> None:
    """Run a piece as one program."""
    graph = _graph(order, keep, device, small)
    _give_buffers(keep, graph.program(device, small).run(graph.values()))


class _Graph(NamedTuple):
    """A piece of the graph as a function: what a program is made of and found by."""

    key: Any
    inputs: list[Ref]
    body: list[RecordedNode]
    outputs: list[Ref]

    def values(self) -> list[Buffer]:
        return [n.values[i] for n, i in self.inputs]  # type: ignore[index]

    def program(self, device: Device, small: bool) -> Executable:
        return executables.get_or_make(self.key, lambda: self.make(device, small))

    def make(self, device: Device, small: bool = False) -> Executable:
        """Compile it in place."""
        if small:
            return compile_module(build_module(self.inputs, self.body, self.outputs), device, interpret=True)
        return program_of(self.inputs, self.body, self.outputs, device)

    def find(self, device: Device) -> Executable | None:
        """Take it from disk."""
        return kept_program(self.inputs, self.body, self.outputs, device)

    def begin(self, device: Device) -> Pending | None:
        """Have it compiled by another process, if that can be."""
        return program_in_background(self.inputs, self.body, self.outputs, device)


def _graph(order: Sequence[Node], keep: Sequence[Node], device: Device, small: bool) -> _Graph:
    outputs = [(n, i) for n in keep for i in range(len(n.avals))]
    inputs, body = _inputs(order), snapshot(order)
    return _Graph((structure_key(inputs, body, outputs), device.name, small, settings.check), inputs, body, outputs)


def _give(keep: Sequence[Node], found: dict[Node, Sequence[np.ndarray]]) -> None:
    for node in keep:
        node.values = direct.results_as_buffers(node, found[node])
    for node in keep:
        _settle(node)


def _give_buffers(keep: Sequence[Node], found: Sequence[Buffer]) -> None:
    buffers = iter(found)
    for node in keep:
        node.values = [next(buffers) for _ in node.avals]
    for node in keep:
        _settle(node)


def _settle(node: Node) -> None:
    """An evaluated node forgets its inputs, unless a derivative still wants to look at them."""
    if state.recording:
        state.deferred.append(node)
    else:
        node.detach()


def _inputs(order: Sequence[Node]) -> list[Ref]:
    inside = set(order)
    found: dict[Ref, None] = {}
    for node in order:
        for ref in node.inputs:
            if ref[0] not in inside:
                found.setdefault(ref)
    return list(found)


def _work(order: Sequence[Node | RecordedNode]) -> float:
    """Element operations of a graph: from its ops and shapes alone."""
    total = 0.0
    for node in order:
        op = node.op
        if op is APPLY:
            work = 3 * _work(node.attrs["callee"].body)
            for name, attrs in node.attrs["transforms"]:
                work *= attrs["size"] if name == "batch" else 1
            total += work
            continue
        if op.kind == "control":
            total += _control_work(node)
            continue
        size = 0
        for aval in node.avals:
            if aval.size > size:
                size = aval.size
        for child, i in node.inputs:
            other = child.avals[i].size
            if other > size:
                size = other
        work = size * op.flops if op.flops > 1 else size
        if isinstance(op, Contraction):
            work = max(work, op.work(*(n.avals[i] for n, i in node.inputs), **node.attrs))
        total += work
    return total


#: What starting an op of the reference rules costs, in element operations.
_START = 1000


def _control_work(node: Node | RecordedNode) -> float:
    """Element operations of a branch or loop. In loops each op counts as worth starting: few elements many
    times are worth a compile."""
    steps = node.attrs.get("length", tiers.ASSUMED_STEPS) if node.op is not COND else 1
    return steps * sum(_work(f.body) + (0 if node.op is COND else _START * len(f.body)) for f in callees(node))
