"""What passes share: rebuilding a function op by op, and reading the call graph."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from smelt.ir import mlir
from smelt.ir.builder import STRUCTURAL, Builder, Function, OpView, Value, functions, new_function, read_function
from smelt.ir.control import callees
from smelt.ir.dialect import context
from smelt.ir.op import registry as ops

#: A rule of a rebuild: the builder, the old op, its operands in the new function → the results.
Visit = Callable[[Builder, OpView, Sequence[Value]], Sequence[Value]]


def rebuild(
    module: Any,
    function: Function,
    visit: Visit,
    make_builder: Callable[[Any, Any], Builder] = Builder,
) -> Any:
    """Replace `function` by one built by visiting its ops in order; the new ``func.func``.

    Operands are already the new values when an op is visited, so a visit that looks at what made
    them sees the function as it is becoming. Attributes and locations of the function are kept.
    """
    old = function.mlir
    location = old.location
    operation, arguments, plain = new_function(
        module,
        function.name,
        [a.aval for a in function.arguments],
        [r.aval for r in function.returns],
        location,
        before=old,
        argument_locations=argument_locations(function),
    )
    for name, attr in old.attributes.items():
        operation.attributes[name] = attr
    if "sym_visibility" not in old.attributes and "sym_visibility" in operation.attributes:
        del operation.attributes["sym_visibility"]
    b = make_builder(plain.ip, location)
    env: dict[Value, Value] = {}
    for before, after in zip(function.arguments, arguments):
        after.builder = b
        env[before] = after
    for op in function.ops:
        operands = [env[v] for v in op.operands]
        with b.at(op.location):
            results = visit(b, op, operands)
        for before, after in zip(op.results, results):
            env[before] = after
    b.return_([env[v] for v in function.returns])
    old.erase()
    return operation


def argument_locations(function: Function) -> list[Any]:
    """The locations of a function's arguments: they carry the user's names."""
    return [getattr(a.mlir, "location", None) or function.mlir.location for a in function.arguments]


def replay(b: Builder, ops: Iterable[OpView], env: dict[Value, Value]) -> None:
    """Clone ops into another function; `env` maps old values to new and is extended."""
    for op in ops:
        results = b.clone(op, [env[v] for v in op.operands])
        for before, after in zip(op.results, results):
            env[before] = after


def is_private(operation: Any) -> bool:
    attrs = operation.attributes
    return "sym_visibility" in attrs and mlir.ir.StringAttr(attrs["sym_visibility"]).value == "private"


def is_fusion(operation: Any) -> bool:
    """Whether a function is the body of a kernel, made by `fuse`."""
    return "smelt.fusion" in operation.attributes


#: Attributes of a function that say how it is transformed; see `custom_rules`. A call of such a function stays
#: a call while a transformation may still meet it.
CHECKPOINT = "smelt.checkpoint"
RULES = ("smelt.custom_vjp", "smelt.custom_forward", "smelt.custom_jvp", "smelt.custom_batch", "smelt.custom_transpose")


def rules_of(operation: Any) -> dict[str, str]:
    """The rules that a function names: attribute → function."""
    attrs = operation.attributes
    return {name: mlir.ir.FlatSymbolRefAttr(attrs[name]).value for name in RULES if name in attrs}


def has_rules(operation: Any) -> bool:
    """Whether calls of a function are kept for the transformations."""
    attrs = operation.attributes
    return CHECKPOINT in attrs or any(name in attrs for name in RULES)


def transforms_left(module: Any) -> bool:
    """Whether any transformation is still to be expanded."""
    return mentions(module, *(f"smelt.{name}" for name, op in ops.items() if op.kind == "transform"))


def callees_first(module: Any) -> list[Function]:
    """All functions with a body, decoded, each after those that it refers to."""
    decoded = {
        name: read_function(f) for name, f in functions(module).items() if len(f.regions[0].blocks)
    }
    order: list[Function] = []
    done: set[str] = set()
    for root in decoded:
        stack = [root]
        while stack:
            name = stack[-1]
            pending = [
                callee
                for op in decoded[name].ops
                for callee in callees(op)
                if callee not in done and callee in decoded and callee not in stack
            ]
            if pending:
                stack.append(pending[0])
                continue
            stack.pop()
            if name not in done:
                done.add(name)
                order.append(decoded[name])
    return order


def ground_functions(module: Any) -> dict[str, Function]:
    """The functions that consist of plain ops only, no calls and no transformations, and of control flow
    over such functions and calls of such functions that have rules of their own, which then are ground too."""
    known = functions(module)
    decoded = callees_first(module)
    order = {f.name: i for i, f in enumerate(decoded)}
    found: dict[str, Function] = {}
    needs: dict[str, set[str]] = {}
    for f in decoded:
        needs[f.name] = set()
        for op in f.ops:
            for name in callees(op) if op.op.kind in ("call", "control") else ():
                if name not in known or order.get(name, -1) >= order[f.name]:
                    break  # it calls itself
                if name in order:
                    needs[f.name].add(name)
                needs[f.name].update(rules_of(known[name]).values())
            else:
                if op.op.kind not in STRUCTURAL or (op.op.kind == "call" and has_rules(known[op.attrs["callee"]])):
                    continue
            break
        else:
            found[f.name] = f
    while left := [name for name in found if not all(n in found for n in needs[name])]:
        for name in left:
            del found[name]
    return found


def mentions(module: Any, *names: str) -> bool:
    """Whether any function contains an op of one of these full names. Cheap: nothing is decoded."""
    for function in functions(module).values():
        for block in function.regions[0].blocks:
            for item in block.operations:
                if item.operation.name in names:
                    return True
    return False


def _calling(module: Any, function: Function) -> Function:
    """A function that calls `function` and does nothing else, so that a transformation meets a call."""
    name = f"{function.name}_call"
    if name not in functions(module):
        results = [r.aval for r in function.returns]
        _, arguments, b = new_function(
            module, name, [a.aval for a in function.arguments], results, function.mlir.location, before=function.mlir,
            argument_locations=argument_locations(function),
        )  # fmt: skip
        b.return_(b.call(function.name, arguments, results))
    return read_function(functions(module)[name])


def expand_transforms(module: Any, name: str, expand: Callable[[Any, Function, dict[str, Any]], str]) -> int:
    """Replace each ``smelt.<name>`` of a ground function by the function that `expand` makes of it.

    Equal transformations of one function are expanded once. Those of functions that still contain
    calls or transformations are left for the next round (see `fixpoint` in pipelines).
    """
    if not mentions(module, f"smelt.{name}"):
        return 0
    count = 0
    made: dict[Any, str] = {}
    ground = ground_functions(module)
    for operation in list(functions(module).values()):
        if not len(operation.regions[0].blocks):
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
