"""What passes share: rebuilding a function op by op, and reading the attributes of functions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from smelt.ir import mlir
from smelt.ir.attributes import attributes_of
from smelt.ir.builder import Builder, Function, OpView, Value, functions, is_mixed, new_function
from smelt.ir.control import HELPERS
from smelt.ir.errors import IRError, SmeltError, at_user_line, shown
from smelt.ir.op import registry as ops
from smelt.ir.reading import kept_function
from smelt.ir.scopes import keep, place
from smelt.ir.values import full_name

#: A rule of a rebuild: the builder, the old op, its operands in the new function → the results.
Visit = Callable[[Builder, OpView, Sequence[Value]], Sequence[Value]]


def rebuild(
    module: Any,
    function: Function,
    visit: Visit,
    make_builder: Callable[[Any, Any], Builder] = Builder,
    partial: bool = False,
) -> Any:
    """Replace `function` by one built by visiting its ops in order; the new ``func.func``.

    Operands are already the new values when an op is visited, so a visit that looks at what made
    them sees the function as it is becoming. Attributes and locations of the function are kept.
    After an error the module is as it was before.

    Args:
        visit: returns a value of the same shape and dtype for each result of the op.
        partial: a visit may return None for a result; no op that reads it may be cloned.

    Raises:
        IRError: a visit that returns something else, naming the op and its place; a function of another module, or
        one that was rebuilt since it was read.
    """
    if function.mlir.parent != module.operation:
        raise IRError(at_user_line(f"rebuild: @{function.name} is no function of this module"))
    with replacing(module, function) as (operation, arguments, plain):
        b = make_builder(plain.ip, plain.location)
        b.continue_(plain)
        env: dict[Value, Value] = {}
        for before, after in zip(function.arguments, arguments):
            after.builder = b
            env[before] = after
        for op in function.ops:
            operands = [env[v] for v in op.operands]
            try:
                with b.at(op.location):
                    results = visit(b, op, operands)
                check_results(b, op, results, partial)
            except SmeltError as error:
                _name_visited(error, visit, op)
                raise
            for before, after in zip(op.results, results):
                env[before] = after
        b.return_([env[v] for v in function.returns])
    return operation


@contextmanager
def replacing(module: Any, function: Function) -> Iterator[tuple[Any, list[Value], Builder]]:
    """An empty function that takes the place of another one at the end of the block, of the same name, type, attributes
    and location: the ``func.func``, its arguments, a builder at its end. After an error the module is as it was before.
    """
    old = function.mlir
    operation, arguments, b = new_function(
        module, function.name, [a.aval for a in function.arguments], [r.aval for r in function.returns], old.location,
        before=old, argument_locations=argument_locations(function),
    )  # fmt: skip
    try:
        for name, attr in attributes_of(old).items():
            operation.attributes[name] = attr
        if "sym_visibility" not in old.attributes:
            del operation.attributes["sym_visibility"]
        yield operation, arguments, b
    except BaseException:
        operation.erase()
        raise
    old.erase()


def check_results(b: Builder, op: OpView, results: Any, partial: bool = False) -> None:
    """Raise IRError unless `results` can stand for those of `op` in the function that `b` builds."""
    if not isinstance(results, (tuple, list)) or len(results) != len(op.results):
        found = f"{len(results)} values" if isinstance(results, (tuple, list)) else shown(results)
        raise IRError(f"{full_name(op.op)} has {len(op.results)} results, the visit of it returned {found}")
    for i, (new, old) in enumerate(zip(results, op.results)):
        what = f"result {i} of {full_name(op.op)}"
        if new is None and partial:
            continue
        if not isinstance(new, Value):
            raise IRError(f"{what}: the visit must return a value, it returned {shown(new)}")
        if new.aval != old.aval:
            raise IRError(f"{what} is {old.aval}, the visit returned {new.aval}")
        if old.aval is None and new.mlir.type != old.mlir.type:
            raise IRError(f"{what} is {old.mlir.type}, the visit returned {new.mlir.type}")
        if new.scope is not b.scope or not new.standing:
            b.read(f"the visit of {full_name(op.op)}", [new])


def _name_visited(error: SmeltError, visit: Visit, op: OpView) -> None:
    """Add the op to the message of an error in a visit that is not smelt's own."""
    if not str(getattr(visit, "__module__", "")).startswith("smelt.passes."):
        error.args = (f"{error}; visiting {full_name(op.op)}{place(op.location)}",)


def argument_locations(function: Function) -> list[Any]:
    """The locations of a function's arguments: they carry the user's names."""
    return [getattr(a.mlir, "location", None) or function.mlir.location for a in function.arguments]


def replay(b: Builder, ops: Iterable[OpView], env: dict[Value, Value]) -> None:
    """Clone ops into another function; `env` maps old values to new and is extended."""
    for op in ops:
        results = b.clone(op, [env[v] for v in op.operands])
        for before, after in zip(op.results, results):
            env[before] = after


def erase_whole(operation: Any) -> None:
    """Erase an unused op, with the operations that stand there only for it: of a branch or loop those that make its
    bounds, of an op of mixed types its function value."""
    makers = [v.owner.operation for v in operation.operands if hasattr(v.owner, "operation")]
    operation.erase()
    while makers:
        maker = makers[-1]
        makers = [m for m in makers if m != maker]
        if (maker.name in HELPERS or is_mixed(maker)) and not any(True for r in maker.results for _ in r.uses):
            makers += [v.owner.operation for v in maker.operands if hasattr(v.owner, "operation")]
            maker.erase()


def is_private(operation: Any) -> bool:
    attrs = operation.attributes
    return "sym_visibility" in attrs and mlir.ir.StringAttr(attrs["sym_visibility"]).value == "private"


def has_body(operation: Any) -> bool:
    """Whether a ``func.func`` is more than a declaration."""
    found: bool = operation.has_body if isinstance(operation, Function) else len(operation.regions[0].blocks) > 0
    return found


def is_fusion(operation: Any) -> bool:
    """Whether a function is the body of a kernel, made by `fuse`."""
    return "smelt.fusion" in operation.attributes


def schedule_of(operation: Any) -> str:
    """That of a fusion; nothing of other functions."""
    return str(mlir.ir.StringAttr(operation.attributes["smelt.fusion"]).value) if is_fusion(operation) else ""


def is_placed(operation: Any) -> bool:
    """Whether a function is a program of another device, made by `place`."""
    return "smelt.device" in operation.attributes


#: The attribute of a function planned by `plan-buffers` that holds the size of its arena.
ARENA_BYTES = "smelt.arena_bytes"


def is_planned(operation: Any) -> bool:
    """Whether the memory of a function is laid out: nothing in it may change any more."""
    return ARENA_BYTES in operation.attributes


def unfused_functions(module: Any) -> list[Any]:
    """The functions of a module that have a body and are no kernel."""
    return [f for f in functions(module).values() if has_body(f) and not is_fusion(f)]


def unplaced_functions(module: Any) -> list[Any]:
    """Those of them that are no program of another device, either: whose ops passes before `fuse`, and `fuse` itself,
    may rewrite."""
    return [f for f in unfused_functions(module) if not is_placed(f)]


#: Attributes of a function that say how it is transformed; see `custom_rules`. A call of such a function stays
#: a call while a transformation may still meet it.
CHECKPOINT = "smelt.checkpoint"
RULES = (
    "smelt.custom_vjp", "smelt.custom_forward", "smelt.custom_jvp", "smelt.custom_primal", "smelt.custom_batch",
    "smelt.custom_transpose",
)  # fmt: skip


def rules_of(operation: Any) -> dict[str, str]:
    """The rules that a function names: attribute → function. Raises IRError for one that is no name."""
    attrs = operation.attributes
    if isinstance(operation, Function):
        return {name: attrs[name] for name in RULES if name in attrs}
    found = {}
    for name in RULES:
        if name in attrs:
            try:
                found[name] = mlir.ir.FlatSymbolRefAttr(attrs[name]).value
            except (ValueError, TypeError):
                owner = mlir.ir.StringAttr(attrs["sym_name"]).value
                what = attributes_of(operation)[name]
                raise IRError(f"{name} of @{owner} must name a function, like @f_rule; it is {what}") from None
    return found


def has_rules(operation: Any) -> bool:
    """Whether calls of a function are kept for the transformations."""
    attrs = operation.attributes
    return CHECKPOINT in attrs or any(name in attrs for name in RULES)


def transforms_left(module: Any) -> bool:
    """Whether any transformation is still to be expanded."""
    return mentions(module, *(f"smelt.{name}" for name, op in ops.items() if op.kind == "transform"))


def mentions(module: Any, *names: str) -> bool:
    """Whether any function contains an op of one of these full names. Cheap: nothing is decoded."""
    keep(module)
    for item in module.body.operations:
        operation = item.operation
        if operation.name == "func.func" and contains(operation, *names):
            return True
    return False


def names_of_formula(formula: str) -> list[str]:
    """The full names of the ops that compute this (see `Op.formula`)."""
    return [f"smelt.{op.name}" for op in ops.values() if op.formula == formula]


def contains(function: Any, *names: str) -> bool:
    """Whether a function contains an op of one of these full names."""
    kept = kept_function(function)
    if kept is None:
        return not _names_in(function).isdisjoint(names)
    found = kept.derived.get(_names_in)
    if found is None:
        found = kept.derived[_names_in] = _names_in(function)
    return not found.isdisjoint(names)


def _names_in(function: Any) -> frozenset[str]:
    """The full names of the ops of a function, but not of what is inside of these."""
    return frozenset([item.operation.name for block in function.regions[0].blocks for item in block.operations])
