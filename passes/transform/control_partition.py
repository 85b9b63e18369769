"""Partition: a branch or loop of which part is linear, as two ops, one without the linear part.

Before, @body being nonlinear in ``%c`` and linear in ``%t``::

    %r, %dr = scan @body(%c, %t; %xs)

After::

    %r, %kept = scan @body_primal(%c; %xs)
    %dr = scan @body_tangent(%t; %kept)

The residuals of a scan are stacked, so memory grows linearly with its length. Not stacked is what is the
same in each step (it is computed once, ahead of the loop), what is an element of ``%xs`` or of the stacked
results, and what costs little to compute again from nothing. A scan marked `checkpoint` keeps only the
carry and the elements of ``%xs``; the linear loop computes the rest again. So does the linear part of a call
with a checkpoint. A branch passes its residuals as
more results, zeros in the place of those that another branch makes.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any

from smelt.ir.aval import Aval
from smelt.ir.builder import Builder, Function, Value, fresh_name, new_function, read_function
from smelt.ir.control import COND, SCAN, WHILE, ControlOp, control_op
from smelt.ir.errors import NotDifferentiableError

from ..rewrite import CHECKPOINT, replay
from .control_parts import (
    checkpointed,
    cone,
    cut,
    dependent,
    erase,
    linear_results,
    linear_values,
    lookup,
    loop_arguments,
    pick,
    residuals_of,
)  # fmt: skip

Attrs = dict[str, Any]

#: How the name of a function with its tangents ends that is only made to be partitioned.
BOTH = "both"


def separate(module: Any, function: Function, flags: Sequence[bool]) -> Function:
    """`function`, or a new one where it has branches, loops or calls with a checkpoint only part of which is
    linear in the arguments marked in `flags`: they are partitioned."""
    linear = linear_values(module, function, flags)
    used = {v for op in function.ops for v in op.operands} | set(function.returns)
    mixed = {
        op
        for op in function.ops
        if (isinstance(op.op, ControlOp) or checkpointed(module, op) is not None)
        and any(v in linear for v in op.operands)
        and any(r not in linear and (r in used or op.op is SCAN) for r in op.results)
    }
    if not mixed:
        return function
    operation, arguments, b = new_function(
        module, fresh_name(module, f"{function.name}_separate"), [a.aval for a in function.arguments],
        [r.aval for r in function.returns], function.mlir.location, before=function.mlir,
    )  # fmt: skip
    env = dict(zip(function.arguments, arguments))
    for op in function.ops:
        if op not in mixed:
            replay(b, [op], env)
            continue
        operands = [env[v] for v in op.operands]
        marks = [v in linear for v in op.operands]
        with b.at(op.location):
            if (callee := checkpointed(module, op)) is not None:
                results = _call(module, b, callee, operands, marks)
            else:
                avals = [r.aval for r in op.results]
                results = partition(module, b, control_op(op), op.attrs, operands, marks, avals)
        env.update(zip(op.results, results))
    b.return_([env[v] for v in function.returns])
    return read_function(operation)


def partition(
    module: Any, b: Builder, op: ControlOp, attrs: Attrs, operands: Sequence[Value], flags: Sequence[bool],
    avals: Sequence[Aval],
) -> list[Value]:  # fmt: skip
    """Emit a branch or loop as one op of the operands not marked in `flags` and one that is linear in the
    marked ones: the results of both, in the order of the one."""
    rule = _cond if op is COND else _scan if op is SCAN else _while
    return rule(module, b, attrs, operands, flags, avals)


def stem_of(name: str) -> str:
    """The name of the function that a function with its tangents was made of."""
    return re.sub(rf"_{BOTH}(_\d+)?$", "", name)


def _drop(module: Any, originals: Iterable[Function], separated: Iterable[Function]) -> None:
    """Erase the functions that `separate` made."""
    erase(module, [new.name for old, new in zip(originals, separated) if new is not old])


def _merge(flags: Sequence[bool], plain: Sequence[Value], linear: Sequence[Value]) -> list[Value]:
    sources = iter(plain), iter(linear)
    return [next(sources[flag]) for flag in flags]


def _call(
    module: Any, b: Builder, callee: Function, operands: Sequence[Value], flags: Sequence[bool]
) -> list[Value]:
    """The linear call keeps the operands alone, behind barriers: what it computes again stays apart."""
    body, stem = separate(module, callee, flags), stem_of(callee.name)
    linear = linear_values(module, body, flags)
    outs = [v in linear for v in body.returns]
    plain, pushed = pick(body.returns, outs, False), pick(body.returns, outs)
    primal = cut(module, f"{stem}_primal", body, pick(body.arguments, flags, False), plain, effects=True)
    tangent = cut(module, f"{stem}_tangent", body, body.arguments, pushed)
    for made in (primal, tangent):
        made.mlir.attributes[CHECKPOINT] = callee.mlir.attributes[CHECKPOINT]
    _drop(module, [callee], [body])
    results = b.call(primal.name, pick(operands, flags, False), [v.aval for v in plain])
    again = [v if flag else b.barrier(v) for v, flag in zip(operands, flags)]
    found = b.call(tangent.name, again, [v.aval for v in pushed]) if pushed else ()
    return _merge(outs, results, found)


def _cond(
    module: Any, b: Builder, attrs: Attrs, operands: Sequence[Value], flags: Sequence[bool], avals: Sequence[Aval]
) -> list[Value]:
    index, *arguments = operands
    marks = flags[1:]
    outs = linear_results(module, COND, attrs, flags)
    plain = [i for i, out in enumerate(outs) if not out]
    originals = {name: lookup(module, name) for name in dict.fromkeys(attrs["branches"])}
    branches = {name: separate(module, branch, marks) for name, branch in originals.items()}

    # Where the linear branch finds a residual: ("operand", i), ("result", i) or ("slot", i).
    keys: dict[tuple[str, int], Aval] = {}
    slots: list[Aval] = []
    residuals: dict[str, dict[tuple[str, int], Value]] = {}
    for name, branch in branches.items():
        free = list(range(len(slots)))
        own = residuals[name] = {}
        linear = linear_values(module, branch, marks)
        for value in residuals_of(branch, pick(branch.returns, outs), linear, False):
            if value.owner is None:
                key = ("operand", branch.arguments.index(value))
            elif any(branch.returns[i] is value for i in plain):
                key = ("result", next(i for i in plain if branch.returns[i] is value))
            else:
                # Only one branch runs: slots of one type serve them all.
                fitting = [i for i in free if slots[i] == value.aval]
                if fitting:
                    free.remove(fitting[0])
                else:
                    slots.append(value.aval)
                key = ("slot", fitting[0] if fitting else len(slots) - 1)
            own[key] = value
            keys[key] = value.aval

    primal: dict[str, str] = {}
    tangent: dict[str, str] = {}
    for name, branch in branches.items():
        own = residuals[name]
        kept = [own.get(("slot", i), aval) for i, aval in enumerate(slots)]
        returns = [*pick(branch.returns, outs, False), *kept]
        taken = pick(branch.arguments, marks, False)
        primal[name] = cut(module, f"{stem_of(name)}_primal", branch, taken, returns, effects=True).name
        taken = [*(own.get(key, aval) for key, aval in keys.items()), *pick(branch.arguments, marks)]
        tangent[name] = cut(module, f"{stem_of(name)}_tangent", branch, taken, pick(branch.returns, outs)).name

    _drop(module, originals.values(), branches.values())

    def emit(names: dict[str, str], values: Sequence[Value], results: Sequence[Aval]) -> Sequence[Value]:
        if not results:
            return ()
        renamed = {**attrs, "branches": tuple(names[name] for name in attrs["branches"])}
        return b.control(COND, [index, *values], renamed, results)

    results = emit(primal, pick(arguments, marks, False), [*pick(avals, outs, False), *slots])
    where = {("operand", i): v for i, v in enumerate(arguments)}
    where |= {("result", i): v for i, v in zip(plain, results)}
    where |= {("slot", i): v for i, v in enumerate(results[len(plain) :])}
    pushed = emit(tangent, [*(where[key] for key in keys), *pick(arguments, marks)], pick(avals, outs))
    return _merge(outs, results[: len(plain)], pushed)


def _scan(
    module: Any, b: Builder, attrs: Attrs, operands: Sequence[Value], flags: Sequence[bool], avals: Sequence[Aval]
) -> list[Value]:
    n, m, length = attrs["constants"], attrs["carries"], attrs["length"]
    original = lookup(module, attrs["body"])
    marks = loop_arguments(module, SCAN, attrs, flags)
    body, stem = separate(module, original, marks), stem_of(original.name)
    outs = linear_results(module, SCAN, attrs, flags)
    linear = linear_values(module, body, marks)
    carried, elements = body.arguments[n : n + m], set(body.arguments[n + m :])
    groups = [slice(0, n), slice(n, n + m), slice(n + m, None)]

    roots = pick(body.returns, outs)
    residuals = residuals_of(body, roots, linear, attrs.get("checkpoint", False))
    # What stays the same: it does not depend on xs or on a carry that the body changes.
    changing = [c for c, r in zip(carried, body.returns) if c is not r]
    varying = dependent(body, [*changing, *elements]) if length else set(body.arguments) | cone(roots)
    outer: dict[Value, Value] = dict(zip(body.arguments, operands))
    invariant = [v for v in residuals if v not in varying]
    stepwise = dict.fromkeys(v for v in residuals if v in varying)
    _hoist(b, body, invariant, outer)
    plain_returns = pick(body.returns, outs, False)
    ys = {y: None for y, out in zip(body.returns[m:], outs[m:]) if not out}
    stacked = [v for v in stepwise if v not in elements and v not in ys]

    carries = sum(not c for c in outs[:m])
    results: Sequence[Value] = ()
    if plain_returns or stacked:
        name = f"{stem}_primal"
        taken = pick(body.arguments, marks, False)
        primal = cut(module, name, body, taken, [*plain_returns, *stacked], effects=True)
        types = [*pick(avals, outs, False), *(v.aval.with_shape((length, *v.aval.shape)) for v in stacked)]
        counts = {"constants": sum(not c for c in marks[:n]), "carries": carries}
        results = b.control(SCAN, pick(operands, marks, False), {**attrs, "body": primal.name, **counts}, types)
    for value, result in zip([*plain_returns, *stacked][carries:], results[carries:]):
        if value in stepwise and value not in elements:
            outer[value] = result

    consts, initial, xs = (pick(body.arguments[g], marks[g]) for g in groups)
    given = [pick(operands[g], marks[g]) for g in groups]
    taken = [*invariant, *consts, *initial, *stepwise, *xs]
    tangent = cut(module, f"{stem}_tangent", body, taken, roots)
    values = [*(outer[v] for v in invariant), *given[0], *given[1], *(outer[v] for v in stepwise), *given[2]]
    counts = {"constants": len(invariant) + len(consts), "carries": len(initial)}
    _drop(module, [original], [body])
    pushed = b.control(SCAN, values, {**attrs, "body": tangent.name, **counts}, pick(avals, outs)) if roots else ()
    return _merge(outs, results[: len(plain_returns)], pushed)


def _hoist(b: Builder, body: Function, values: Sequence[Value], env: dict[Value, Value]) -> None:
    """Compute values of a loop's body ahead of the loop; `env` maps arguments to operands and is extended."""
    needed = cone(values, body.arguments)
    replay(b, [op for op in body.ops if any(r in needed for r in op.results)], env)


def _while(
    module: Any, b: Builder, attrs: Attrs, operands: Sequence[Value], flags: Sequence[bool], avals: Sequence[Aval]
) -> list[Value]:
    """The linear loop is the whole loop again: what it would need of each step is not kept."""
    n = attrs["constants"]
    marks = loop_arguments(module, WHILE, attrs, flags)
    outs = marks[n:]
    original, tester = lookup(module, attrs["body"]), lookup(module, attrs["cond"])
    body, test = separate(module, original, marks), separate(module, tester, marks)
    stem = stem_of(original.name)
    if cone(test.returns) & set(pick(test.arguments, marks)):
        raise NotDifferentiableError("smelt.while: the number of steps depends on a value in which it should be linear")
    results: Sequence[Value] = ()
    if not all(outs):
        taken = pick(body.arguments, marks, False)
        step = cut(module, f"{stem}_primal", body, taken, pick(body.returns, outs, False), effects=True)
        taken = pick(test.arguments, marks, False)
        again = cut(module, f"{stem_of(attrs['cond'])}_primal", test, taken, test.returns, effects=True)
        changed = {"body": step.name, "cond": again.name, "constants": sum(not c for c in marks[:n])}
        results = b.control(WHILE, pick(operands, marks, False), {**attrs, **changed}, pick(avals, outs, False))
    _drop(module, [original, tester], [body, test])
    pushed = b.control(WHILE, operands, attrs, avals) if any(outs) else ()
    return _merge(outs, results, pick(pushed, outs))
