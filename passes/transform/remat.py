"""Remat: cheap residuals are computed again in the backward pass instead of being kept for it.

It runs after `linearize` and before `transpose`, where residuals are what a primal function returns to the
transpose of a tangent function. Before::

    func.func private @f_primal(%x) { %0 = "smelt.sin"(%x)  %1 = "smelt.neg"(%x) ... return %0, %1 }
    func.func private @f_tangent(%r, %t) { ... }
    func.func private @f_vjp(%x, %ct) {
      %0:2 = call @f_primal(%x)
      %t = func.constant @f_tangent
      %pull = "smelt.linear_transpose"(%t) {wrt = array<i64: 1>}
      %cx = func.call_indirect %pull(%0#1, %ct)

After::

    func.func private @f_primal_remat(%x) { %0 = "smelt.sin"(%x) return %0 }
    func.func private @f_tangent_remat(%x, %t) { %b = "smelt.barrier"(%x)  %r = "smelt.neg"(%b) ... }
    func.func private @f_vjp(%x, %ct) {
      %0 = call @f_primal_remat(%x)
      %t = func.constant @f_tangent_remat
      %pull = "smelt.linear_transpose"(%t) {wrt = array<i64: 1>}
      %cx = func.call_indirect %pull(%x, %ct)

The policy: residuals are looked at in the order in which they are computed. One is computed again from
the arguments of the primal function and the residuals that are kept if this takes elementwise and
movement ops only, and at most `max-flops` additions for each of its bytes (by the ops' `flops`), not
counting ops that are computed again anyway. The barrier keeps `cse` from merging the two computations.
Functions marked ``smelt.checkpoint`` are `linearize`'s business: they have no residuals but their arguments.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from smelt.ir.builder import Builder, Function, OpView, Value, fresh_name, functions, new_function, read_function
from smelt.ir.kinds import Fusible
from smelt.ir.ops.call import LinearTranspose

from ..extract import extract, inputs_of, name_of
from ..registry import Pass, register_pass
from ..rewrite import has_body, mentions, rebuild, replay, unfused_functions
from ..simplify.inline import drop_unused_values


@register_pass("remat")
@dataclass(frozen=True)
class RematPass(Pass):
    """Compute cheap residuals again where they are needed.

    Attributes:
        max_flops: additions that a byte of memory is worth.
    """

    max_flops: float = 2.0

    def run(self, module: Any, statistics: Counter) -> None:
        if not mentions(module, f"smelt.{LinearTranspose.name}"):
            return
        for operation in unfused_functions(module):
            function = read_function(operation)
            for _ in range(len(function.ops)):  # each change makes another function of it
                plans = (_plan(module, function, op, self.max_flops) for op in function.ops)
                plan = next((p for p in plans if p is not None), None)
                if plan is None:
                    break
                statistics["residuals recomputed"] += len(plan.dropped)
                function = _apply(module, function, plan)


class _Plan(NamedTuple):
    """One application of a pullback, and which of its residuals are computed again."""

    primal_call: OpView
    transform: OpView
    apply: OpView
    primal: Function
    tangent: Function
    dropped: dict[int, Value]  #: argument of the tangent function → the value in the primal function
    ops: list[OpView]  #: of the primal function, to be repeated
    leaves: list[Value]  #: of the primal function, what they start from


def _plan(module: Any, function: Function, apply: OpView, max_flops: float) -> _Plan | None:
    transform = apply.operands[0].owner if apply.op.kind == "apply" else None
    if transform is None or transform.name != "linear_transpose":
        return None
    maker = transform.operands[0].owner
    known = functions(module)
    if maker is None or maker.op.kind != "function" or not _has_body(known, maker.attrs["callee"]):
        return None
    tangent = read_function(known[maker.attrs["callee"]])
    positions = [i for i in range(len(tangent.arguments)) if i not in transform.attrs["wrt"]]
    given = dict(zip(positions, apply.operands[1:]))
    calls = {v.owner for v in given.values() if v.owner is not None and v.owner.op.kind == "call"}
    for call in calls:
        if call is None or not _has_body(known, call.attrs["callee"]):
            continue
        primal = read_function(known[call.attrs["callee"]])
        uses = Counter([v for op in function.ops for v in op.operands] + function.returns)
        residuals = {i: primal.returns[v.index] for i, v in given.items() if v.owner is call and uses[v] == 1}
        kept = {primal.returns[v.index] for v in given.values() if v.owner is call} - set(residuals.values())
        dropped, ops, leaves = _choose(primal, residuals, kept, max_flops)
        if dropped:
            return _Plan(call, transform, apply, primal, tangent, dropped, ops, leaves)
    return None


def _has_body(known: dict[str, Any], name: str) -> bool:
    return name in known and has_body(known[name])


def _choose(
    primal: Function, residuals: dict[int, Value], kept: set[Value], max_flops: float
) -> tuple[dict[int, Value], list[OpView], list[Value]]:
    """Which residuals are computed again, by which ops, from which values."""
    position = {op: i for i, op in enumerate(primal.ops)}
    available = set(primal.arguments) | kept
    again: set[OpView] = set()
    dropped: dict[int, Value] = {}
    order = sorted(residuals.items(), key=lambda item: -1 if item[1].owner is None else position[item[1].owner])
    for i, value in order:
        if value.owner is None:
            dropped[i] = value  # an argument of the primal function, handed through
            continue
        needed = _needed(value, available, again)
        if needed is not None and _flops(needed) <= max_flops * value.aval.nbytes:
            again |= needed
            dropped[i] = value
        else:
            available.add(value)
    if not again:
        return {}, [], []
    ops = sorted(again, key=lambda op: position[op])
    return dropped, ops, inputs_of(ops, dropped.values())


def _needed(value: Value, available: set[Value], again: set[OpView]) -> set[OpView] | None:
    """The ops between what is available and a value; None if one of them is no elementwise or movement op."""
    found: set[OpView] = set()
    pending = [value]
    while pending:
        v = pending.pop()
        op = v.owner
        if v in available or op in again or op in found:
            continue
        if op is None or not op.op.pure:
            return None
        if not isinstance(op.op, Fusible) and (op.operands or op.op.kind in ("call", "function", "control")):
            return None
        found.add(op)
        pending += op.operands
    return found


def _flops(ops: set[OpView]) -> float:
    return sum(op.op.flops * max(r.aval.size for r in op.results) for op in ops)


def _apply(module: Any, function: Function, plan: _Plan) -> Function:
    call, primal, tangent = plan.primal_call, plan.primal, plan.tangent
    gone = {v.index for v in _operands_of(plan).values()}
    left = [i for i in range(len(primal.returns)) if i not in gone]
    primal_name = _shorter(module, primal, left)
    kept = [i for i in range(len(tangent.arguments)) if i not in plan.dropped]
    # A leaf is an argument of the primal function, or a value that it returns still.
    tangent_name = _recomputing(module, plan, kept)
    wrt = plan.transform.attrs["wrt"]
    new_wrt = tuple(len(plan.leaves) + kept.index(i) for i in wrt)
    place = {v: i for i, v in reversed(list(enumerate(primal.returns))) if i in left}
    values: dict[int, Value] = {}
    arguments: list[Value] = []

    def visit(b: Builder, op: OpView, operands: Sequence[Value]) -> Sequence[Any]:
        if op is call:
            arguments.extend(operands)
            found = b.call(primal_name, operands, [primal.returns[i].aval for i in left])
            values.update(zip(left, found))
            return [values.get(i) for i in range(len(primal.returns))]
        if op is plan.apply:
            avals = [*(v.aval for v in plan.leaves), *(tangent.arguments[i].aval for i in kept)]
            f = b.function(tangent_name, avals, [v.aval for v in tangent.returns])
            pull = b.transform(plan.transform.op, f, {"wrt": new_wrt})
            leaves = [arguments[v.index] if v.owner is None else values[place[v]] for v in plan.leaves]
            positions = [i for i in range(len(tangent.arguments)) if i not in wrt]
            residuals = [x for i, x in zip(positions, operands[1:]) if i not in plan.dropped]
            return b.apply(pull, [*leaves, *residuals, *operands[1 + len(positions) :]])
        return b.clone(op, operands)

    operation = rebuild(module, function, visit, partial=True)
    drop_unused_values(operation)
    return read_function(operation)


def _operands_of(plan: _Plan) -> dict[int, Value]:
    """The results of the primal call that are given to the arguments of the tangent function to be dropped."""
    positions = [i for i in range(len(plan.tangent.arguments)) if i not in plan.transform.attrs["wrt"]]
    return {i: v for i, v in zip(positions, plan.apply.operands[1:]) if i in plan.dropped}


def _shorter(module: Any, primal: Function, left: Sequence[int]) -> str:
    """The primal function without some of its results."""
    returns = [primal.returns[i] for i in left]
    return name_of(extract(module, f"{primal.name}_remat", primal, primal.arguments, returns, primal.ops))


def _recomputing(module: Any, plan: _Plan, kept: Sequence[int]) -> str:
    """The tangent function that takes the leaves and computes its residuals from them."""
    tangent = plan.tangent
    name = fresh_name(module, f"{tangent.name}_remat")
    avals = [*(v.aval for v in plan.leaves), *(tangent.arguments[i].aval for i in kept)]
    _, arguments, b = new_function(
        module, name, avals, [v.aval for v in tangent.returns], tangent.mlir.location, before=tangent.mlir
    )
    inner: dict[Value, Value] = {}
    for leaf, argument in zip(plan.leaves, arguments):
        inner[leaf] = b.barrier(argument)
    replay(b, plan.ops, inner)
    env = {tangent.arguments[i]: v for i, v in zip(kept, arguments[len(plan.leaves) :])}
    env.update((tangent.arguments[i], inner[v]) for i, v in plan.dropped.items())
    replay(b, tangent.ops, env)
    b.return_([env[v] for v in tangent.returns])
    return name
