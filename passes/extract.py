"""Functions out of functions: some ops of a function as a function of their own, and the function that they leave."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from smelt.ir import mlir
from smelt.ir.aval import Aval
from smelt.ir.builder import (
    Builder,
    Function,
    OpView,
    Value,
    fresh_name,
    function_type,
    functions,
    new_function,
    read_function,
    symbols,
)
from smelt.ir.dialect import context
from smelt.ir.scopes import changed
from smelt.ir.values import CALLEE

from .rewrite import replacing, replay
from .transform.remembered import expansion_of


def name_of(operation: Any) -> str:
    """The name of a ``func.func``."""
    if isinstance(operation, Function):
        return operation.name
    return mlir.ir.StringAttr(operation.attributes["sym_name"]).value


def erase(module: Any, names: Iterable[str]) -> None:
    """Erase functions that nothing refers to any more."""
    found, expansion = functions(module), expansion_of(module)
    for name in names:
        found[name].erase()
        if expansion is not None:
            expansion.forget(name)


def set_type(operation: Any, arguments: Iterable[Value], returns: Iterable[Value]) -> None:
    """Give a ``func.func`` the type of what it takes and returns, which was not known when it was made."""
    if not isinstance(operation, Function):
        kind = function_type([a.aval for a in arguments], [r.aval for r in returns])
        operation.attributes["function_type"] = mlir.ir.TypeAttr.get(kind, context())


def copy_function(module: Any, name: str, suffix: str) -> str:
    """A copy of a function of the module; its name, which ends in `suffix`."""
    taken = symbols(module)
    copy, fresh = taken[name].clone(mlir.ir.InsertionPoint(module.body)), name + suffix
    while fresh in taken:
        fresh += suffix
    copy.attributes["sym_name"] = mlir.ir.StringAttr.get(fresh, context())
    return fresh


def referred(operation: Any) -> set[str]:
    """The functions that ops inside of an operation call or make values of. Cheap: nothing is decoded."""
    found: set[str] = set()

    def visit(inner: Any) -> Any:
        attribute = CALLEE.get(inner.name)
        if attribute is not None and attribute in inner.attributes:
            found.add(mlir.ir.FlatSymbolRefAttr(inner.attributes[attribute]).value)
        return mlir.ir.WalkResult.ADVANCE

    operation.walk(visit)
    return found


def rename_calls(operation: Any, names: dict[str, str]) -> None:
    """Let calls inside of an operation call others."""

    def visit(inner: Any) -> Any:
        if inner.name == "func.call":
            name = mlir.ir.FlatSymbolRefAttr(inner.attributes["callee"]).value
            if name in names:
                inner.attributes["callee"] = mlir.ir.FlatSymbolRefAttr.get(names[name], context())
                changed(operation)
        return mlir.ir.WalkResult.ADVANCE

    operation.walk(visit)


def inputs_of(ops: Iterable[OpView], more: Iterable[Value] = ()) -> list[Value]:
    """The values that `ops` read, or that are among `more`, and that `ops` do not make; in order of reading."""
    listed = list(ops)
    made = {r for op in listed for r in op.results}
    read = [v for op in listed for v in op.operands]
    return [v for v in dict.fromkeys([*read, *more]) if v not in made]


def outputs_of(ops: Sequence[OpView], users: Mapping[Value, Iterable[OpView | None]]) -> list[Value]:
    """The values that `ops` make and that others read or return; `users`: of each value of their function, as
    `smelt.passes.kernels.analysis.users_of` finds them."""
    inside = set(ops)
    return [r for op in ops for r in op.results if any(user not in inside for user in users.get(r, ()))]


def extract(
    module: Any,
    stem: str,
    source: Function,
    arguments: Sequence[Value | Aval],
    returns: Sequence[Value | Aval],
    ops: Sequence[OpView] | None = None,
    *,
    effects: bool = False,
    location: Any = None,
    argument_locations: Sequence[Any] | None = None,
    taken: dict[str, int] | None = None,
) -> Any:
    """A new private function that computes `returns` from `arguments`, in front of `source`; the ``func.func``.

    Args:
        stem: how its name begins.
        arguments: values of `source`, which need not be its arguments; an Aval for one that is not used.
        returns: values of `source`; an Aval for zeros.
        ops: the ops of `source` that it consists of; by default those that it needs.
        effects: whether those with effects belong to it, too.
        location: of the function; by default that of `source`.
        argument_locations: of the arguments, which carry their names.
        taken: names, see `fresh_name`.
    """
    if ops is None:
        ops = _needed(source, arguments, returns, effects)
    avals = [a if isinstance(a, Aval) else a.aval for a in arguments]
    results = [r if isinstance(r, Aval) else r.aval for r in returns]
    operation, made, b = new_function(
        module, fresh_name(module, stem, taken), avals, results, location or source.mlir.location, before=source.mlir,
        argument_locations=argument_locations,
    )  # fmt: skip
    inputs = {old: new for old, new in zip(arguments, made) if isinstance(old, Value)}
    env: dict[Value, Value] = dict(inputs)
    for op in ops:
        replay(b, [op], env)
        if any(r in inputs for r in op.results):  # an argument may be one of several results
            env.update(inputs)
    b.return_([env[r] if isinstance(r, Value) else b.zeros(r) for r in returns])
    return operation


def cut(
    module: Any, stem: str, source: Function, arguments: Sequence[Value | Aval], returns: Sequence[Value | Aval],
    effects: bool = False,
) -> Function:  # fmt: skip
    """`extract` with the ops that are needed, decoded."""
    return read_function(extract(module, stem, source, arguments, returns, effects=effects))


def _needed(
    source: Function, arguments: Sequence[Value | Aval], returns: Sequence[Value | Aval], effects: bool
) -> list[OpView]:
    given = {a for a in arguments if isinstance(a, Value)}
    wanted = {r for r in returns if isinstance(r, Value)}
    ops: list[OpView] = []
    for op in reversed(source.ops):
        if (effects and not op.op.pure) or any(r in wanted and r not in given for r in op.results):
            wanted.update(op.operands)
            ops.append(op)
    return ops[::-1]


def reassemble(
    module: Any,
    function: Function,
    items: Iterable[Any],
    emit: Callable[[Builder, Any, dict[Value, Value]], None],
) -> None:
    """Replace `function` by one that consists of `items` in order.

    An item that is an op is cloned; for others ``emit(builder, item, env)`` emits what stands for it,
    and adds the values that it makes to `env`, which maps old values to new. After an error `function` is as it was.
    """
    with replacing(module, function) as (_, arguments, b):
        env: dict[Value, Value] = dict(zip(function.arguments, arguments))
        for item in items:
            if isinstance(item, OpView):
                replay(b, [item], env)
            else:
                emit(b, item, env)
        b.return_([env[v] for v in function.returns])


def named_location(value: Value, fallback: Any) -> Any:
    """A location that carries a name for `value`: what the user called it, or the op that made it."""
    owner = value.owner
    if owner is None:
        return getattr(value.mlir, "location", None) or fallback
    name = owner.attrs["callee"] if owner.op.kind == "call" else owner.name
    return mlir.ir.Location.name(name, owner.location, context=context())
