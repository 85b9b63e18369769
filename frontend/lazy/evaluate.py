"""Evaluation: from a lazy graph to buffers."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

import numpy as np

from smelt.ir import locks
from smelt.ir.control import COND
from smelt.ir.errors import TraceError, at_user_line
from smelt.ir.interpreter import run_op
from smelt.ir.kinds import Contraction
from smelt.ir.settings import settings
from smelt.runtime import Buffer, LruCache, compile_module, default_device

from .build import build_module, check_sizes
from .graph import (
    ALIAS,
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

#: Graphs are compiled in pieces of at most this many nodes, so that a long chain compiles in
#: bounded time and its repeated pieces share an executable.
MAX_NODES = 1000

executables = LruCache(weigh=lambda program: program.nbytes)

#: One graph is evaluated at a time: threads may share nodes.
_lock = locks.lock()


def evaluate(refs: Sequence[Ref]) -> None:
    """Give every node in `refs` its value. Does nothing for those that have one."""
    with _lock:
        _evaluate(refs)


def _evaluate(refs: Sequence[Ref]) -> None:
    order = topological(refs)
    if not order:
        return
    for node in order:
        if node.op is PARAMETER:
            raise TraceError(at_user_line(_no_value(node)))
    held = _held_outside(order)
    roots = dict.fromkeys(n for n, _ in refs)
    if len(order) <= MAX_NODES:
        _run(order, [n for n in order if n in roots or id(n) in held])
        return
    # The consumers still to come decide which results of a piece must be kept. Nodes are counted by
    # identity, so that nothing here keeps them (and their values) alive once their piece has run.
    last_use: dict[int, int] = {}
    for i, node in enumerate(order):
        for child, _ in node.inputs:
            last_use[id(child)] = i
    for child in roots:
        last_use[id(child)] = len(order)
    for start in range(0, len(order), MAX_NODES):
        end = min(start + MAX_NODES, len(order))
        piece = order[start:end]
        _run(piece, [n for n in piece if last_use.get(id(n), -1) >= end or id(n) in held])
        order[start:end] = [None] * len(piece)  # type: ignore[list-item]


def _held_outside(order: Sequence[Node]) -> set[int]:
    """Nodes that somebody besides the graph refers to: their values are worth keeping.

    An array and the nodes made from it share one reference tuple, so more references than edges
    mean that the array lives. A wrong guess costs a recomputation or a store, never a wrong value.
    """
    edges: dict[int, int] = {}
    refs: dict[int, Any] = {0: object()}  # the first tells how often the loop below refers to each
    for node in order:
        for ref in node.inputs:
            edges[id(ref)] = edges.get(id(ref), 0) + 1
            refs[id(ref)] = ref
    held, own = set(), 0
    for key in refs:
        ref = refs[key]
        count = sys.getrefcount(ref)
        if key == 0:
            own = count
        elif count > edges[key] + own:
            held.add(id(ref[0]))
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


def _run(order: Sequence[Node], keep: Sequence[Node]) -> None:
    """Evaluate a piece of the graph; the nodes in `keep` get their values."""
    device = default_device()
    small = not device.interprets and _work(order) < settings.small_work
    if (small or device.interprets) and all(n.op is not APPLY and n.op.kind != "control" for n in order):
        if not small:
            for node in order:
                check_sizes(node)
        _run_directly(order, not small)
        return
    wanted = [(n, i) for n in keep for i in range(len(n.avals))]
    inputs = _inputs(order)
    body = snapshot(order)
    key = (structure_key(inputs, body, wanted), device.name, small, settings.check)

    def make() -> Any:
        return compile_module(build_module(inputs, body, wanted), device, interpret=small)

    program = executables.get_or_make(key, make)
    buffers = iter(program.run([n.values[i] for n, i in inputs]))  # type: ignore[index]
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
        if node.op is APPLY:
            work = 3 * _work(node.attrs["callee"].body)
            for name, attrs in node.attrs["transforms"]:
                work *= attrs["size"] if name == "batch" else 1
            total += work
            continue
        if node.op.kind == "control":
            total += _control_work(node)
            continue
        size = max((a.size for a in node.avals), default=0)
        for child, i in node.inputs:
            size = max(size, child.avals[i].size)
        work = size * max(node.op.flops, 1.0)
        if isinstance(node.op, Contraction):
            work = max(work, node.op.work(*(n.avals[i] for n, i in node.inputs), **node.attrs))
        total += work
    return total


#: Steps that a loop of unknown length is taken to have.
_ASSUMED_STEPS = 10_000
#: What starting an op of the reference rules costs, in element operations.
_START = 1000


def _control_work(node: Node | RecordedNode) -> float:
    """Element operations of a branch or loop. In loops each op counts as worth starting: few elements many
    times are worth a compile."""
    steps = node.attrs.get("length", _ASSUMED_STEPS) if node.op is not COND else 1
    return steps * sum(_work(f.body) + (0 if node.op is COND else _START * len(f.body)) for f in callees(node))


def _run_directly(order: Sequence[Node], reference: bool) -> None:
    """Op by op with the reference rules, for graphs that a compile would cost more than it saves.

    What a library can compute is computed by it, unless `reference`.
    """
    for node in order:
        if node.op is ALIAS:
            source, i = node.inputs[0]
            node.values = [source.values[i]]  # type: ignore[index]
            _settle(node)
            continue
        operands = [n.values[i].array for n, i in node.inputs]  # type: ignore[index]
        results = run_op(node.op, operands, node.attrs, node.where, reference)
        node.values = [Buffer.of(np.asarray(r), aval) for r, aval in zip(results, node.avals)]
        _settle(node)
