"""Expanding transformations: what `batch`, `jvp`, `linearize` and `transpose` have in common."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any

from smelt.ir import mlir
from smelt.ir.builder import (
    CALL,
    Builder,
    Function,
    fresh_name,
    function_named,
    functions,
    new_function,
    read_function,
    symbols,
)
from smelt.ir.dialect import context

from ..call_graph import ground_functions
from ..extract import erase, referred
from ..rewrite import argument_locations, contains, has_rules, mentions, rules_of
from .remembered import expanding


def _calling(module: Any, function: Function) -> Function:
    """A function that calls `function` and does nothing else, so that a transformation meets a call."""
    name = f"{function.name}_call"
    if name in symbols(module):
        made = function_named(module, name)
        if _only_calls(made, function):
            return made
        name = fresh_name(module, name)  # that of another function, of the user
    results = [r.aval for r in function.returns]
    operation, arguments, b = new_function(
        module, name, [a.aval for a in function.arguments], results, function.mlir.location, before=function.mlir,
        argument_locations=argument_locations(function),
    )  # fmt: skip
    b.return_(b.call(function.name, arguments, results))
    return read_function(operation)


def _only_calls(made: Function, function: Function) -> bool:
    """Whether a function is what `_calling` makes of another one."""
    if len(made.ops) != 1 or made.ops[0].op is not CALL or has_rules(made.mlir):
        return False
    (call,) = made.ops
    whole = call.operands == tuple(made.arguments) and call.results == tuple(made.returns)
    return whole and call.attrs["callee"] == function.name


def _drop_unused(module: Any, used: Collection[str]) -> None:
    """Erase the functions that nothing refers to which the `used` ones are made of."""
    found = functions(module)
    pending, reached = [name for name in used if name in found], set(used)
    while pending:
        operation = found[pending.pop()]
        for other in referred(operation) | set(rules_of(operation).values()):
            if other not in reached and other in found:
                reached.add(other)
                pending.append(other)
    erase(module, [name for name in found if name not in reached])


def expand_transforms(module: Any, name: str, expand: Callable[[Any, Function, dict[str, Any]], str]) -> int:
    """Replace each ``smelt.<name>`` of a ground function by the function that `expand` makes of it.

    Equal transformations of one function are expanded once. Those of functions that still contain
    calls or transformations are left for the next round (see `fixpoint` in pipelines).

    Raises:
        IRError: where a function runs or transforms itself, which would never end.
    """
    if not mentions(module, f"smelt.{name}"):
        return 0
    before = set(functions(module))
    with expanding(module) as expansion:
        count = _expand_all(module, name, expand)
    if expansion.has_rest:
        _drop_unused(module, before)
    return count


def _expand_all(module: Any, name: str, expand: Callable[[Any, Function, dict[str, Any]], str]) -> int:
    count = 0
    made: dict[Any, str] = {}
    ground = ground_functions(module)
    for operation in list(functions(module).values()):
        if not contains(operation, f"smelt.{name}"):
            continue
        for op in read_function(operation).ops:
            if op.name != name or op.op.kind != "transform":
                continue
            maker = op.operands[0].owner
            if maker is None or maker.op.kind != "function" or maker.attrs["callee"] not in ground:
                continue
            function = ground[maker.attrs["callee"]]
            if has_rules(function.mlir):
                function = _calling(module, function)
            key = (function.name, tuple(sorted(op.attrs.items())))
            if key not in made:
                made[key] = expand(module, function, op.attrs)
                count += 1
            b = Builder(mlir.ir.InsertionPoint(op.mlir), op.location)
            kind = mlir.ir.FunctionType(op.results[0].mlir.type)
            symbol = mlir.ir.FlatSymbolRefAttr.get(made[key], context())
            replacement = mlir.ir.Operation.create(
                "func.constant", results=[kind], attributes={"value": symbol}, loc=op.location, ip=b.ip
            )
            op.results[0].mlir.replace_all_uses_with(replacement.result)
            op.mlir.erase()
    return count
