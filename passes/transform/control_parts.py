"""Parts of functions: what depends on what, and functions cut out of other functions.

Derivatives of branches and loops take the functions that those run apart by dependence: on a tangent,
on what changes from step to step, on nothing. The new functions consist of the ops needed for some of
the values of an old one.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from smelt.ir.aval import Aval
from smelt.ir.builder import Function, OpView, Value, fresh_name, functions, new_function, read_function
from smelt.ir.control import COND, SCAN, ControlOp

from ..rewrite import CHECKPOINT, replay


def lookup(module: Any, name: str) -> Function:
    """A function of the module, decoded."""
    return read_function(functions(module)[name])


def erase(module: Any, names: Iterable[str]) -> None:
    """Erase functions that nothing refers to any more."""
    found = functions(module)
    for name in names:
        found[name].erase()


def pick(items: Sequence[Any], flags: Sequence[bool], keep: bool = True) -> list[Any]:
    """The items whose flag is `keep`."""
    return [item for item, flag in zip(items, flags) if flag is keep]


# Dependence


def cone(returns: Iterable[Value], stop: Iterable[Value] = ()) -> set[Value]:
    """All values that `returns` are computed from, themselves included, looking no further than `stop`."""
    ends = set(stop)
    seen: set[Value] = set()
    pending = list(returns)
    while pending:
        value = pending.pop()
        if value in seen:
            continue
        seen.add(value)
        if value.owner is not None and value not in ends:
            pending += value.owner.operands
    return seen


def dependence(values: Iterable[Value], sources: Iterable[Value]) -> dict[Value, bool]:
    """Whether each of `values`, and of those that they are computed from, depends on any of `sources`."""
    known = dict.fromkeys(sources, True)
    pending = list(values)
    while pending:
        value = pending[-1]
        operands = value.owner.operands if value.owner is not None else ()
        unknown = [] if value in known else [v for v in operands if v not in known]
        if unknown:
            pending += unknown
            continue
        pending.pop()
        if value not in known:
            known[value] = any(known[v] for v in operands)
    return known


def linear_values(module: Any, function: Function, flags: Sequence[bool]) -> set[Value]:
    """The values that depend on the arguments marked in `flags`.

    A branch, a loop and a call with a checkpoint are looked into: of their results, only those count that
    depend on a marked operand.
    """
    linear = set(pick(function.arguments, flags))
    for op in function.ops:
        marks = [v in linear for v in op.operands]
        if not any(marks):
            continue
        if isinstance(op.op, ControlOp):
            linear.update(pick(op.results, linear_results(module, op.op, op.attrs, marks)))
        elif (callee := checkpointed(module, op)) is not None:
            inner = linear_values(module, callee, marks)
            linear.update(r for r, v in zip(op.results, callee.returns) if v in inner)
        else:
            linear.update(op.results)
    return linear


def checkpointed(module: Any, op: OpView) -> Function | None:
    """The function that a call with a checkpoint runs; None for other ops."""
    if op.op.kind != "call":
        return None
    callee = functions(module)[op.attrs["callee"]]
    return read_function(callee) if CHECKPOINT in callee.attributes and len(callee.regions[0].blocks) else None


def linear_results(module: Any, op: ControlOp, attrs: dict[str, Any], flags: Sequence[bool]) -> list[bool]:
    """Which results of a branch or loop depend on the operands marked in `flags`."""
    if op is COND:
        found: list[bool] = []
        for name in dict.fromkeys(attrs["branches"]):
            branch = lookup(module, name)
            linear = linear_values(module, branch, flags[1:])
            outs = [v in linear for v in branch.returns]
            found = [a or b for a, b in zip(found, outs)] if found else outs
        return found
    marks = loop_arguments(module, op, attrs, flags)
    n = attrs["constants"]
    if op is not SCAN:
        return marks[n:]
    m = attrs["carries"]
    body = lookup(module, attrs["body"])
    linear = linear_values(module, body, marks)
    return [*marks[n : n + m], *(y in linear for y in body.returns[m:])]


def loop_arguments(module: Any, op: ControlOp, attrs: dict[str, Any], flags: Sequence[bool]) -> list[bool]:
    """`flags` of a loop's operands, widened to the carries that its body makes depend on them."""
    body = lookup(module, attrs["body"])
    marks = list(flags)
    n = attrs["constants"]
    count = attrs["carries"] if op is SCAN else len(flags) - n
    while True:
        linear = linear_values(module, body, marks)
        grown = [marks[n + i] or body.returns[i] in linear for i in range(count)]
        if grown == marks[n : n + count]:
            return marks
        marks[n : n + count] = grown


def is_cheap(op: OpView) -> bool:
    """Whether computing an op again costs less than keeping its result from step to step."""
    return op.op.kind in ("elementwise", "movement") or not op.operands


def dependent(function: Function, arguments: Iterable[Value]) -> set[Value]:
    """The values that cannot be computed without these arguments. What has effects counts as such."""
    found = set(arguments)
    for op in function.ops:
        if not op.op.pure or any(v in found for v in op.operands):
            found.update(op.results)
    return found


def residuals_of(function: Function, roots: Sequence[Value], linear: set[Value], everything: bool) -> list[Value]:
    """The nonlinear values from which the linear ops behind `roots` can run.

    Not among them is what is computed from nothing at little cost, nor a broadcast (what it stretches
    is): that is computed again. With `everything`, all is, so only arguments of the function remain.
    """
    varying = dependent(function, function.arguments)

    def again(value: Value) -> bool:
        op = value.owner
        if op is None or not op.op.pure:
            return False
        return everything or op.name == "broadcast" or (value not in varying and is_cheap(op))

    found: dict[Value, None] = {}
    seen: set[Value] = set()
    pending = list(reversed(roots))
    while pending:
        value = pending.pop()
        if value in seen:
            continue
        seen.add(value)
        if value in linear or again(value):
            if value.owner is not None:
                pending += reversed(value.owner.operands)
        else:
            found[value] = None
    return list(found)


# Functions out of functions


def cut(
    module: Any, stem: str, source: Function, arguments: Sequence[Value | Aval], returns: Sequence[Value | Aval],
    effects: bool = False,
) -> Function:  # fmt: skip
    """A new private function: the ops of `source` that compute `returns` from `arguments`.

    Args:
        arguments: values of `source`, which need not be its arguments; an Aval for one that is not used.
        returns: values of `source`; an Aval for zeros.
        effects: whether ops with effects belong to it, too.
    """
    given = {a for a in arguments if isinstance(a, Value)}
    wanted = {r for r in returns if isinstance(r, Value)}
    ops: list[OpView] = []
    for op in reversed(source.ops):
        if (effects and not op.op.pure) or any(r in wanted and r not in given for r in op.results):
            wanted.update(op.operands)
            ops.append(op)
    avals = [a if isinstance(a, Aval) else a.aval for a in arguments]
    results = [r if isinstance(r, Aval) else r.aval for r in returns]
    operation, made, b = new_function(
        module, fresh_name(module, stem), avals, results, source.mlir.location, before=source.mlir
    )
    inputs = {old: new for old, new in zip(arguments, made) if isinstance(old, Value)}
    env: dict[Value, Value] = dict(inputs)
    for op in reversed(ops):
        replay(b, [op], env)
        env.update(inputs)
    b.return_([env[r] if isinstance(r, Value) else b.zeros(r) for r in returns])
    return read_function(operation)
