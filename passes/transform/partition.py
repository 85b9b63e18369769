"""Partition: the ops that are linear in some arguments apart from the others, also inside of functions that they run.

Where only part of a branch, loop or call is linear, it becomes two, one without the linear part. Before, @body being
nonlinear in ``%c`` and linear in ``%t``::

    %r, %dr = scan @body(%c, %t; %xs)

After::

    %r, %kept = scan @body_primal(%c; %xs)
    %dr = scan @body_tangent(%t; %kept)

How is said by the rules of each (`smelt.passes.rules.FunctionRules.partition`); here is what they share.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any, TypeVar

from smelt.ir.builder import Function, OpView, Value, fresh_name, new_function, read_function

from ..dependence import split
from ..extract import erase
from ..rewrite import replay
from ..rules import Flags, function_rules
from . import remembered

T = TypeVar("T")

#: How the name of a function with its tangents ends that is only made to be partitioned.
BOTH = "both"


def pick(items: Sequence[T], flags: Flags, keep: bool = True) -> list[T]:
    """The items whose flag is `keep`."""
    return [item for item, flag in zip(items, flags) if flag is keep]


def merge(flags: Flags, plain: Iterable[T], linear: Iterable[T]) -> list[T]:
    """The items of two lists in one: the next of `linear` where a flag is set."""
    sources = iter(plain), iter(linear)
    return [next(sources[flag]) for flag in flags]


def stem_of(name: str) -> str:
    """The name of the function that a function with its tangents was made of."""
    return re.sub(rf"_{BOTH}(_\d+)?$", "", name)


def linear_values(module: Any, function: Function, flags: Flags) -> set[Value]:
    """The values that depend on the arguments marked in `flags`.

    What runs functions is looked into: of its results, only those count that depend on a marked operand.
    """

    def through(op: OpView, marks: list[bool]) -> Flags:
        if op.op.kind in ("control", "call"):
            return remembered.dependent(module, op, marks)
        return [True] * len(op.results)

    return split(function.ops, pick(function.arguments, flags), through).values


def separate(module: Any, function: Function, flags: Flags) -> Function:
    """`function`; or a new function, if some branches, loops or calls with a checkpoint are only partly linear in the
    arguments marked in `flags`: there these are partitioned."""
    linear = linear_values(module, function, flags)
    used = {v for op in function.ops for v in op.operands} | set(function.returns)
    mixed = {
        op
        for op in function.ops
        if op.op.kind in ("control", "call")
        and any(v in linear for v in op.operands)
        and any(r not in linear and (r in used or function_rules(op.name).partitions_unused) for r in op.results)
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
            results = remembered.partition(module, b, op, operands, marks)
        env.update(zip(op.results, results))
    b.return_([env[v] for v in function.returns])
    return read_function(operation)


def drop_separated(module: Any, originals: Iterable[Function], separated: Iterable[Function]) -> None:
    """Erase the functions that `separate` made."""
    erase(module, [new.name for old, new in zip(originals, separated) if new is not old])


# Residuals


def is_cheap(op: OpView) -> bool:
    """Whether computing an op again costs less than keeping its result from step to step."""
    return op.op.kind in ("elementwise", "movement") or not op.operands


def varying_values(function: Function, arguments: Iterable[Value]) -> set[Value]:
    """The values that cannot be computed without these arguments. What has effects counts as such."""
    return split(function.ops, arguments, effects=True).values


def residuals_of(function: Function, roots: Sequence[Value], linear: set[Value], everything: bool) -> list[Value]:
    """The nonlinear values from which the linear ops that compute `roots` can run.

    Values that are computed from nothing at little cost, and broadcasts (but not their operands), are not
    among them: these are computed again. With `everything`, all are, so only arguments of the function remain.
    """
    varying = varying_values(function, function.arguments)

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
