"""Transpose: the second half of reverse mode. A linear function replaced by its transpose.

Before::

    %pull = "smelt.linear_transpose"(%f) {wrt = array<i64: 1>}    where @f(%r, %t) is: %0 = "smelt.mul"(%t, %r)

After, with the new function::

    func.func private @f_transpose(%r, %ct) {
      %0 = "smelt.mul"(%ct, %r)
      return %0
    }

Ops that do not depend on the linear arguments are computed forwards; the others are visited in
reverse order, each turning the cotangents of its results into cotangents of its linear operands.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from smelt.ir.builder import Builder, Function, OpView, Value, fresh_name, new_function

from ..dependence import split
from ..registry import Pass, register_pass
from ..rewrite import replay
from . import remembered
from .expand import expand_transforms
from .partition import separate


@register_pass("transpose")
@dataclass(frozen=True)
class TransposePass(Pass):
    """Expand smelt.linear_transpose."""

    def run(self, module: Any, statistics: Counter) -> None:
        statistics["functions transposed"] += expand_transforms(module, "linear_transpose", make_transpose)


def make_transpose(module: Any, function: Function, attrs: dict[str, Any], stem: str | None = None) -> str:
    """The function (residuals, cotangents of results) → cotangents of wrt; its name begins with `stem`."""
    wrt = attrs["wrt"]
    name = fresh_name(module, stem or f"{function.name}_transpose")
    given = function
    function = separate(module, given, [i in wrt for i in range(len(given.arguments))])
    residuals = [a for i, a in enumerate(function.arguments) if i not in wrt]
    unknown = [function.arguments[i] for i in wrt]
    avals = [v.aval for v in (*residuals, *function.returns)]
    _, arguments, b = new_function(
        module, name, avals, [v.aval for v in unknown], function.mlir.location, before=function.mlir
    )
    linear, forward, backward = split(function.ops, unknown)
    env: dict[Value, Value] = dict(zip(residuals, arguments))
    replay(b, forward, env)

    cotangent: dict[Value, Any] = {}
    for value, ct in zip(function.returns, arguments[len(residuals) :]):
        if value in linear:
            cotangent[value] = b.add_any(cotangent.get(value), ct)
    pull_cotangents(module, b, backward, linear, env, cotangent)
    outs = []
    for v in unknown:
        total = cotangent.get(v)
        outs.append(b.zeros(v.aval) if total is None else total)
    b.return_(outs)
    if function is not given:
        function.mlir.erase()
    return name


def pull_cotangents(
    module: Any,
    b: Builder,
    ops: Sequence[OpView],
    linear: Collection[Value],
    env: Mapping[Value, Value],
    cotangents: dict[Value, Any],
) -> None:
    """Visit `ops`, which depend on linear values, in reverse order: cotangents of results become those of operands.

    Args:
        linear: what is linear in the arguments; of such values only cotangents are known.
        env: what the other values are in the function that is built; they themselves where it says nothing.
        cotangents: by value, added to in place; those of visited results go.
    """
    for op in reversed(ops):
        cts = [cotangents.pop(r, None) for r in op.results]
        if all(ct is None for ct in cts):
            continue
        flags = [v in linear for v in op.operands]
        operands = [
            Value(None, v.aval, None, None) if is_linear else env.get(v, v) for v, is_linear in zip(op.operands, flags)
        ]
        with b.at(op.location):
            if op.op.kind in ("control", "call"):
                pulled = remembered.transpose(module, b, op, cts, operands, flags)
            else:
                pulled = b.by_rule(op.op.transpose, (cts, operands, flags), op.attrs)
            for v, is_linear, contribution in zip(op.operands, flags, pulled):
                if is_linear and contribution is not None:
                    cotangents[v] = b.add_any(cotangents.get(v), contribution)
