"""Branches, loops, sequences, what may be missing.

Where a condition is known the branch or the round is run as it is; where it depends on an argument of a function that
is compiled or transformed, it becomes control flow of the program.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import smelt
from smelt import array
from smelt.ir.errors import TraceError

from ...translating import Refused
from ..graph import Node, Value, rule
from .shapes import integers


def _truth(x: array) -> bool | None:
    """The value of a condition; None where only the program that runs will know it."""
    try:
        return bool(x.reshape(()).item())
    except TraceError:
        return None


@rule("If")
def _if(n: Node) -> Any:
    then, other = n.graph("then_branch"), n.graph("else_branch")
    known = _truth(n.x)
    if known is not None:
        return tuple((then if known else other)())
    return tuple(smelt.cond(n.x.reshape(()), lambda: tuple(then()), lambda: tuple(other())))


@rule("Loop")
def _loop(n: Node) -> Any:
    """Rounds one after the other, with the values of each stacked at the end."""
    body, most, goes, carry = n.graph("body"), n[0], n[1], list(n.inputs[2:])
    step = n.attr("body")
    scanned = len(step.outputs) - 1 - len(carry)
    limit = None if most is None else _count(most)
    if (most is not None and limit is None) or (goes is not None and _truth(goes) is None):
        return _compiled_loop(body, most, goes, carry, scanned)
    rows: list[list[array]] = [[] for _ in range(scanned)]
    i, lives = 0, goes is None or bool(_truth(goes))
    while lives and (limit is None or i < limit):
        again, *results = body(integers(i), smelt.array(True), *carry)
        known = _truth(again)
        if known is None:
            if i or scanned:
                raise Refused("ends by a value that depends on an argument while it stacks results: call it uncompiled")
            return _compiled_loop(body, most, goes, carry, scanned)
        carry = results[: len(carry)]
        for row, value in zip(rows, results[len(carry) :]):
            row.append(value)
        lives, i = known, i + 1
    stacked = [smelt.stack(row) if row else _no_rows(step, len(carry) + 1 + k) for k, row in enumerate(rows)]
    return (*carry, *stacked)


def _no_rows(graph: Any, k: int) -> array:
    raise Refused(f"runs no round, so its result {graph.outputs[k]} has no shape")


def _count(x: array) -> int | None:
    try:
        return int(np.array(x).reshape(()))
    except TraceError:
        return None


def _compiled_loop(body: Any, most: array | None, goes: array | None, carry: list[Value], scanned: int) -> Any:
    if scanned:
        raise Refused("runs as often as an argument says and stacks results, whose shape a program must know")
    limit = smelt.array(2**62, smelt.int64) if most is None else most.reshape(())
    start = smelt.array(True) if goes is None else goes.reshape(())

    def lives(state: Any) -> array:
        return smelt.logical_and(state[1], state[0] < limit)

    def step(state: Any) -> Any:
        i, on, *values = state
        again, *results = body(i, on, *values)
        return (i + 1, again.reshape(()), *results)

    return tuple(smelt.while_loop(lives, step, (smelt.array(0, smelt.int64), start, *carry)))[2:]


@rule("Scan")
def _scan(n: Node) -> Any:
    body, count = n.graph("body"), n.attr("num_scan_inputs")
    inputs = n.inputs if n.version >= 9 else n.inputs[1:]
    if n.version < 9:
        raise Refused("of version 8 is not translated; onnx.version_converter makes it one of version 9")
    states, xs = inputs[: len(inputs) - count], inputs[len(inputs) - count :]
    outputs = len(n.attr("body").outputs) - len(states)
    axes, backwards = n.attr("scan_input_axes") or [0] * count, n.attr("scan_input_directions") or [0] * count
    out_axes = n.attr("scan_output_axes") or [0] * outputs
    out_backwards = n.attr("scan_output_directions") or [0] * outputs
    xs = [smelt.moveaxis(x, a, 0) for x, a in zip(xs, axes)]
    xs = [smelt.flip(x, 0) if b else x for x, b in zip(xs, backwards)]

    def step(carry: Any, items: Any) -> Any:
        found = body(*carry, *items)
        return tuple(found[: len(states)]), tuple(found[len(states) :])

    last, ys = smelt.scan(step, tuple(states), tuple(xs))
    ys = [smelt.flip(y, 0) if b else y for y, b in zip(ys, out_backwards)]
    return (*last, *(smelt.moveaxis(y, 0, a) for y, a in zip(ys, out_axes)))


# Sequences are lists.


@rule("SequenceEmpty")
def _sequence_empty(n: Node) -> Value:
    return []


@rule("SequenceConstruct")
def _sequence_construct(n: Node) -> Value:
    return list(n.inputs)


@rule("SequenceLength")
def _sequence_length(n: Node) -> array:
    return integers(len(n[0]))


@rule("SequenceAt")
def _sequence_at(n: Node) -> array:
    return n[0][int(n.known(1).reshape(()))]


@rule("SequenceInsert")
def _sequence_insert(n: Node) -> Value:
    found = list(n[0])
    found.insert(len(found) if n[2] is None else int(n.known(2).reshape(())), n[1])
    return found


@rule("SequenceErase")
def _sequence_erase(n: Node) -> Value:
    found = list(n[0])
    del found[-1 if n[1] is None else int(n.known(1).reshape(()))]
    return found


@rule("SplitToSequence")
def _split_to_sequence(n: Node) -> Value:
    """In pieces of given sizes; of one each, which then lose the axis where `keepdims` is 0."""
    axis = n.attr("axis", 0)
    extent = n.x.shape[axis]
    if n[1] is None:
        found = smelt.split(n.x, extent, axis=axis)
        return found if n.attr("keepdims", 1) else [smelt.squeeze(x, axis) for x in found]
    sizes = n.known(1)
    step = int(sizes.reshape(-1)[0])
    ends = list(range(step, extent, step)) if sizes.ndim == 0 else [int(e) for e in sizes.cumsum()[:-1]]
    return smelt.split(n.x, ends, axis=axis)


@rule("ConcatFromSequence")
def _concat_from_sequence(n: Node) -> array:
    return (smelt.stack if n.attr("new_axis", 0) else smelt.concatenate)(n[0], axis=n.attr("axis"))


@rule("SequenceMap")
def _sequence_map(n: Node) -> Any:
    body = n.graph("body")
    rounds = [body(*(x[i] if isinstance(x, list) else x for x in n.inputs)) for i in range(len(n[0]))]
    return tuple(list(values) for values in zip(*rounds))


@rule("Optional")
def _optional(n: Node) -> Value:
    return (n[0],)


@rule("OptionalHasElement")
def _has_element(n: Node) -> array:
    return smelt.array(n[0] is not None)


@rule("OptionalGetElement")
def _get_element(n: Node) -> Value:
    if n[0] is None:
        raise Refused("is given nothing")
    return (n[0],)
