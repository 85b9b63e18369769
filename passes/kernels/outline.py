"""What `fuse` and `place` share: ops that move into a function of their own, and the function they leave."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from smelt.ir import mlir
from smelt.ir.attributes import attributes_of
from smelt.ir.builder import Builder, Function, OpView, Value, new_function
from smelt.ir.dialect import context

from ..rewrite import argument_locations, replay


def reassemble(
    module: Any,
    function: Function,
    items: Iterable[Any],
    emit: Callable[[Builder, Any, dict[Value, Value]], None],
) -> None:
    """Replace `function` by one that consists of `items` in order.

    An item that is an op is cloned; for others ``emit(builder, item, env)`` emits what stands for it,
    and adds the values that it makes to `env`, which maps old values to new.
    """
    operation, arguments, b = new_function(
        module,
        function.name + ".new",
        [a.aval for a in function.arguments],
        [r.aval for r in function.returns],
        function.mlir.location,
        before=function.mlir,
        argument_locations=argument_locations(function),
    )
    env: dict[Value, Value] = dict(zip(function.arguments, arguments))
    for item in items:
        if isinstance(item, OpView):
            replay(b, [item], env)
        else:
            emit(b, item, env)
    b.return_([env[v] for v in function.returns])
    for name, attr in attributes_of(function.mlir).items():
        operation.attributes[name] = attr
    if "sym_visibility" not in function.mlir.attributes:
        del operation.attributes["sym_visibility"]
    function.mlir.erase()


def outlined(
    module: Any,
    function: Function,
    name: str,
    ops: Sequence[OpView],
    inputs: Sequence[Value],
    outputs: Sequence[Value],
    location: Any,
) -> Any:
    """A private function `name` that computes `outputs` by `ops` from `inputs`; the ``func.func``.

    Its arguments are named by their locations: by what the user called them, or by the op that made them.
    """
    operation, arguments, b = new_function(
        module,
        name,
        [v.aval for v in inputs],
        [v.aval for v in outputs],
        location,
        before=function.mlir,
        argument_locations=[named_location(v, location) for v in inputs],
    )
    env = dict(zip(inputs, arguments))
    replay(b, ops, env)
    b.return_([env[v] for v in outputs])
    return operation


def is_placed(operation: Any) -> bool:
    """Whether a function is a program of another device, made by `place`."""
    return "smelt.device" in operation.attributes


def named_location(value: Value, fallback: Any) -> Any:
    """A location that carries a name for `value`."""
    owner = value.owner
    if owner is None:
        return getattr(value.mlir, "location", None) or fallback
    name = owner.attrs["callee"] if owner.op.kind == "call" else owner.name
    return mlir.ir.Location.name(name, owner.location, context=context())
