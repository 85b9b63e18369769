"""Jvp: forward-mode derivatives, ``smelt.jvp`` of a function replaced by a function.

Before::

    %d = "smelt.jvp"(%f) {wrt = array<i64: 0>} : ...     where @f is: %0 = "smelt.sin"(%x)

After, with the new function::

    func.func private @f_jvp(%x, %t) {
      %0 = "smelt.sin"(%x)
      %1 = "smelt.cos"(%x)
      %2 = "smelt.mul"(%t, %1)
      return %0, %2
    }
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from smelt.ir.builder import Body, Builder, Function, Value, fresh_name, new_function

from ..registry import Pass, register_pass
from ..rewrite import argument_locations
from . import remembered
from .expand import expand_transforms


@register_pass("jvp")
@dataclass(frozen=True)
class JvpPass(Pass):
    """Expand smelt.jvp of functions that contain no further transformation."""

    def run(self, module: Any, statistics: Counter) -> None:
        statistics["functions differentiated"] += expand_transforms(module, "jvp", make_jvp)


def push_tangents(
    module: Any,
    b: Builder,
    function: Body,
    primals: Sequence[Value],
    tangents: Sequence[Value | None],
    linearize: bool = False,
) -> tuple[list[Value], list[Value | None]]:
    """Emit `function` on primals together with the propagation of tangents (None: zero).

    With `linearize`, no op depends on both what is computed from primals alone and on tangents in a way
    that keeps the two apart: results never depend on tangents, tangents depend on them linearly.
    """
    env = dict(zip(function.arguments, primals))
    tangent: dict[Value, Value | None] = dict(zip(function.arguments, tangents))
    for op in function.ops:
        operands = [env[v] for v in op.operands]
        incoming = [tangent.get(v) for v in op.operands]
        if op.op.kind in ("control", "call") and any(t is not None for t in incoming):
            with b.at(op.location):
                results, outgoing = remembered.jvp(module, b, op, operands, incoming, linearize)
            env.update(zip(op.results, results))
            tangent.update((v, t) for v, t in zip(op.results, outgoing) if v.aval.dtype.is_inexact)
            continue
        results = b.clone(op, operands)
        env.update(zip(op.results, results))
        if op.op.differentiable and any(t is not None for t in incoming):
            with b.at(op.location):
                outgoing = b.by_rule(op.op.jvp, (operands, incoming, results), op.attrs)
            for value, t in zip(op.results, outgoing):
                if value.aval.dtype.is_inexact:
                    tangent[value] = t
    return [env[v] for v in function.returns], [tangent.get(v) for v in function.returns]


def make_jvp(module: Any, function: Function, attrs: dict[str, Any], linearize: bool = False) -> str:
    """The function (primals, tangents) → (results, tangents of results); `linearize` as in `push_tangents`."""
    wrt = attrs["wrt"]
    name = fresh_name(module, f"{function.name}_jvp")
    avals = [a.aval for a in function.arguments]
    results = [r.aval for r in function.returns]
    locations = argument_locations(function)
    _, arguments, b = new_function(
        module,
        name,
        avals + [avals[i] for i in wrt],
        results + results,
        function.mlir.location,
        before=function.mlir,
        argument_locations=locations + [locations[i] for i in wrt],
    )
    primals = arguments[: len(avals)]
    tangents: list[Value | None] = [None] * len(avals)
    for i, t in zip(wrt, arguments[len(avals) :]):
        tangents[i] = t if avals[i].dtype.is_inexact else None
    outs, out_tangents = push_tangents(module, b, function, primals, tangents, linearize)
    b.return_(outs + [b.zeros_like(y) if t is None else t for y, t in zip(outs, out_tangents)])
    return name
