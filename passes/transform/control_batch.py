"""Branches and loops over a batch axis.

========================  ==============================================================================
cond, one index           the same cond over batched branches
cond, an index each       every branch runs on the whole batch; `select` takes each element's result
while, one condition      the same loop over batched carries
while, a condition each   runs as long as it holds for any element; those that are done keep their carry
scan                      the same scan; elements of xs and ys have the batch axis in front
========================  ==============================================================================

A result, carry or y gets a batch axis only if it depends on something that has one.

Where not every element of the batch takes part (a branch that only some take, the body of a loop that some
have left) loops inside run for the others only: the mask of `Batching`. So a batched program terminates
if the program does for each element. Other ops compute something for all elements, and what was computed
for those who do not take part is dropped. Its derivative is zero times what the op's rule gives, so an
infinite or NaN derivative there shows in the gradient, as it does with `select`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from smelt.ir import dtypes
from smelt.ir.aval import Aval
from smelt.ir.builder import Builder, OpView, Value
from smelt.ir.control import COND, SCAN, WHILE

if TYPE_CHECKING:
    from .batch import Batching

Dims = Sequence[int | None]


def push(
    t: Batching, b: Builder, op: OpView, operands: Sequence[Value], dims: Dims, mask: Value | None
) -> tuple[Sequence[Value], Dims]:
    """Emit a control op over the batch: its results and where their batch axes stand."""
    if op.op is COND:
        rule = _push_cond if dims[0] is None else _push_choice
    else:
        rule = _push_while if op.op is WHILE else _push_scan
    return rule(t, b, op, operands, dims, mask)


def depends(t: Batching, op: OpView, batched: Sequence[bool]) -> list[bool]:
    """Which results of a control op differ between elements of the batch, given which operands do."""
    if op.op is COND:
        if batched[0]:
            return [True] * len(op.results)
        each = [t.depends(name, batched[1:]) for name in op.attrs["branches"]]
        return [any(flags) for flags in zip(*each)]
    n = op.attrs["constants"]
    if op.op is WHILE:
        return _carries(t, op, batched, n, len(op.results))[0]
    carry, ys = _carries(t, op, batched, n, op.attrs["carries"])
    return carry + ys


def _carries(t: Batching, op: OpView, batched: Sequence[bool], n: int, m: int) -> tuple[list[bool], list[bool]]:
    """The least flags of the m carries that the body maps into themselves, and the flags of the ys."""
    constants, carry, xs = list(batched[:n]), list(batched[n : n + m]), list(batched[n + m :])
    while True:
        found = t.depends(op.attrs["body"], constants + carry + xs)
        after = [a or f for a, f in zip(carry, found)]
        if after == carry:
            break
        carry = after
    if op.op is WHILE and t.depends(op.attrs["cond"], constants + carry)[0]:
        carry = [True] * m
    return carry, list(found[m:])


def _front(flags: Sequence[bool]) -> list[int | None]:
    return [0 if flag else None for flag in flags]


def _push_cond(
    t: Batching, b: Builder, op: OpView, operands: Sequence[Value], dims: Dims, mask: Value | None
) -> tuple[Sequence[Value], Dims]:
    """One index for all: the branches that it chooses from are batched, all in the same results."""
    branches = op.attrs["branches"]
    flags = [d is not None for d in dims[1:]]
    arguments = t.settle(b, operands[1:], dims[1:], flags)
    outs = depends(t, op, [False, *flags])
    masked = mask is not None and any(t.loops(name) for name in branches)
    names = tuple(t.function(name, flags, outs, masked) for name in branches)
    avals = t.batched([r.aval for r in op.results], outs)
    extra = [mask] if masked and mask is not None else []
    return b.control(COND, [operands[0], *extra, *arguments], {"branches": names}, avals), _front(outs)


def _push_choice(
    t: Batching, b: Builder, op: OpView, operands: Sequence[Value], dims: Dims, mask: Value | None
) -> tuple[Sequence[Value], Dims]:
    """An index for each element: all branches run, and each element takes the results of its own."""
    branches = op.attrs["branches"]
    (index,) = t.settle(b, operands[:1], dims[:1], [True])
    chosen = _chosen(b, index, len(branches))
    everywhere = [True] * len(op.results)
    results: list[Value] = []
    # From the last branch, which also stands for an index out of range, to the first.
    for name, own in reversed(list(zip(branches, chosen))):
        inside = None
        if t.loops(name):
            inside = own if mask is None else b.logical_and(own, mask)
        found, places = t.emit(b, t.read(name), operands[1:], dims[1:], inside)
        found = t.settle(b, found, places, everywhere)
        results = [_select(b, own, f, r) for f, r in zip(found, results)] if results else found
    return results, [0] * len(results)


def _chosen(b: Builder, index: Value, count: int) -> list[Value]:
    """For each of `count` branches, which elements of the batch take it."""
    if index.dtype is dtypes.bool_:
        if count == 2:
            return [b.logical_not(index), index]
        index = b.convert_to(index, dtypes.int32)
    reach = 2 ** (8 * index.dtype.size - (index.dtype.kind == "i"))
    first = [b.equal(index, b.full(index.shape, i, index.dtype)) for i in range(min(count - 1, reach))]
    first += [b.full(index.shape, False, dtypes.bool_)] * (count - 1 - len(first))
    last = b.full(index.shape, True, dtypes.bool_)
    for own in first:
        last = b.logical_and(last, b.logical_not(own))
    return [*first, last]


def _select(b: Builder, rows: Value, x: Value, y: Value) -> Value:
    """x for the elements of the batch in `rows`, y for the others; all have the batch axis in front."""
    condition = b.reshape_to(rows, (*rows.shape, *(1,) * (x.ndim - 1)))
    return b.select(b.broadcast_to(condition, x.shape), x, y)


def _push_while(
    t: Batching, b: Builder, op: OpView, operands: Sequence[Value], dims: Dims, mask: Value | None
) -> tuple[Sequence[Value], Dims]:
    n, m = op.attrs["constants"], len(op.results)
    names = op.attrs["cond"], op.attrs["body"]
    flags = [d is not None for d in dims]
    carry, _ = _carries(t, op, flags, n, m)
    flags = [*flags[:n], *carry]
    settled = t.settle(b, operands, dims, flags)
    each = t.depends(names[0], flags)[0]
    avals = t.batched([r.aval for r in op.results], carry)
    if not each and mask is None:
        attrs = {
            "cond": t.function(names[0], flags, [False], False),
            "body": t.function(names[1], flags, carry, False),
            "constants": n,
        }
        return b.control(WHILE, settled, attrs, avals), _front(carry)
    # The truth value of the condition becomes a carry in front of the others: the mask enters it once, and
    # the condition is computed once a step.
    inner = [mask] if mask is not None and not each and any(t.loops(name) for name in names) else []
    k = len(inner) + n

    def truth(to: Builder, state: Sequence[Value], rows: Value | None) -> Value:
        found, places = t.emit(to, t.read(names[0]), state, _front(flags), rows)
        (value,) = t.settle(to, found, places, [each])
        return value

    def go(to: Builder, values: list[Value]) -> Sequence[Value]:
        return [to.reduce_any(values[k], axes=(0,)) if each else values[k]]

    def step(to: Builder, values: list[Value]) -> Sequence[Value]:
        again, constants, state = values[k], values[len(inner) : k], values[k + 1 :]
        rows = again if each else (values[0] if inner else None)
        found, places = t.emit(to, t.read(names[1]), [*constants, *state], _front(flags), rows)
        found = t.settle(to, found, places, carry)
        if each:
            found = [_select(to, again, new, old) for new, old in zip(found, state)]
        value = truth(to, [*constants, *found], rows)
        return [to.logical_and(again, value) if each else value, *found]

    start = truth(b, settled, mask)
    if mask is not None:
        start = b.logical_and(start, mask if each else b.reduce_any(mask, axes=(0,)))
    arguments = [*inner, *settled[:n], start, *settled[n:]]
    types = [v.aval for v in arguments]
    key = (*names, tuple(flags), each, bool(inner))
    attrs = {
        "cond": t.build(names[0], f"{names[0]}_batch", ("go", *key), types, [Aval((), dtypes.bool_)], go),
        "body": t.build(names[1], f"{names[1]}_batch", ("step", *key), types, types[k:], step),
        "constants": k,
    }
    results = b.control(WHILE, arguments, attrs, types[k:])
    return results[1:], _front(carry)


def _push_scan(
    t: Batching, b: Builder, op: OpView, operands: Sequence[Value], dims: Dims, mask: Value | None
) -> tuple[Sequence[Value], Dims]:
    n, m, body = op.attrs["constants"], op.attrs["carries"], op.attrs["body"]
    flags = [d is not None for d in dims]
    carry, ys = _carries(t, op, flags, n, m)
    flags[n : n + m] = carry
    settled = t.settle(b, operands[: n + m], dims[: n + m], flags)
    # Axis 0 of xs and ys is the step; the batch axis of a step's element is in front, so theirs comes next.
    xs = [x if d is None else b.move_axis(x, d, 1) for x, d in zip(operands[n + m :], dims[n + m :])]
    masked = mask is not None and t.loops(body)
    extra = [mask] if masked and mask is not None else []
    attrs = {**op.attrs, "body": t.function(body, flags, [*carry, *ys], masked), "constants": n + masked}
    avals = t.batched([r.aval for r in op.results[:m]], carry)
    for r, flag in zip(op.results[m:], ys):
        shape = r.aval.shape
        avals.append(r.aval.with_shape((shape[0], t.size, *shape[1:])) if flag else r.aval)
    results = b.control(SCAN, [*extra, *settled, *xs], attrs, avals)
    return results, [*_front(carry), *(1 if flag else None for flag in ys)]
