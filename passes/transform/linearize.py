"""Linearize: the first half of reverse mode.

``smelt.vjp`` of a function f becomes a function that runs f while keeping residuals, and then
applies the transpose of f's tangent map. Before::

    %d = "smelt.vjp"(%f) {wrt = array<i64: 0>, seeds = array<i64: 0>} : ...

After, with three new functions::

    func.func private @f_primal(%x) { ... return %y, %residual }
    func.func private @f_tangent(%residual, %t) { %0 = "smelt.mul"(%t, %residual) ... return %0 }
    func.func private @f_vjp(%x, %ct) {
      %y, %residual = call @f_primal(%x)
      %tangent = func.constant @f_tangent
      %pull = "smelt.linear_transpose"(%tangent) {wrt = array<i64: 1>}
      %cx = func.call_indirect %pull(%residual, %ct)
      return %y, %cx
    }

The tangent map is what `jvp` would compute, less everything that does not depend on a tangent.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

from smelt.ir.builder import Function, Value, fresh_name, new_function, read_function
from smelt.ir.op import registry as ops

from ..dependence import cone, split
from ..extract import extract, inputs_of, name_of
from ..registry import Pass, register_pass
from ..rewrite import argument_locations
from .expand import expand_transforms
from .jvp import push_tangents


@register_pass("linearize")
@dataclass(frozen=True)
class LinearizePass(Pass):
    """Expand smelt.vjp into a primal function, a tangent function and the latter's transpose."""

    def run(self, module: Any, statistics: Counter) -> None:
        statistics["functions linearized"] += expand_transforms(module, "vjp", make_vjp)


def make_vjp(module: Any, function: Function, attrs: dict[str, Any]) -> str:
    """The function (primals, cotangents) → (results, cotangents of wrt)."""
    wrt, seeds = attrs["wrt"], attrs["seeds"]
    location = function.mlir.location
    avals = [a.aval for a in function.arguments]
    results = [r.aval for r in function.returns]
    # One scratch function holds primal and tangent ops together; dependence on the tangent
    # arguments then tells them apart.
    active = [i for i in wrt if avals[i].dtype.is_inexact]
    scratch, arguments, b = new_function(
        module, fresh_name(module, f"{function.name}_scratch"), avals + [avals[i] for i in active], [], location,
        before=function.mlir,
    )  # fmt: skip
    tangents: list[Value | None] = [None] * len(avals)
    for i, t in zip(active, arguments[len(avals) :]):
        tangents[i] = t
    outs, out_tangents = push_tangents(module, b, function, arguments[: len(avals)], tangents, linearize=True)
    linear_seeds = [i for i in seeds if out_tangents[i] is not None]
    b.return_([*outs, *(t for i in linear_seeds if (t := out_tangents[i]) is not None)])
    both = read_function(scratch)

    linear, primal_ops, tangent_ops = split(both.ops, both.arguments[len(avals) :])
    # A tangent that depends on no tangent argument is zero, as are those that the rules gave as None.
    pairs = [(i, t) for i, t in zip(linear_seeds, both.returns[len(outs) :]) if t in linear]
    linear_seeds, tangent_returns = [i for i, _ in pairs], [t for _, t in pairs]
    # Unused tangent work needs no residuals.
    needed = cone(tangent_returns)
    tangent_ops = [op for op in tangent_ops if any(r in needed for r in op.results)]
    residuals = [v for v in inputs_of(tangent_ops) if v not in linear]

    residual_avals = [r.aval for r in residuals]
    primal = extract(
        module, f"{function.name}_primal", both, both.arguments[: len(avals)],
        [*both.returns[: len(outs)], *residuals], primal_ops, argument_locations=argument_locations(function),
    )  # fmt: skip
    tangent_avals = [r.aval for r in tangent_returns]
    taken = [*residuals, *both.arguments[len(avals) :]]
    tangent_map = extract(module, f"{function.name}_tangent", both, taken, tangent_returns, tangent_ops)
    primal_name, tangent_name = name_of(primal), name_of(tangent_map)
    scratch.erase()

    name = fresh_name(module, f"{function.name}_vjp")
    _, args, b = new_function(
        module, name, avals + [results[i] for i in seeds], results + [avals[i] for i in wrt], location,
        before=function.mlir,
    )  # fmt: skip
    values = b.call(primal_name, args[: len(avals)], results + residual_avals)
    kept_residuals = values[len(results) :]
    cotangents = {}
    if linear_seeds and active:
        positions = tuple(range(len(residuals), len(residuals) + len(active)))
        tangent = b.function(tangent_name, residual_avals + [avals[i] for i in active], tangent_avals)
        pull = b.transform(ops["linear_transpose"], tangent, {"wrt": positions})
        seed_values = dict(zip(seeds, args[len(avals) :]))
        pulled = b.apply(pull, [*kept_residuals, *(seed_values[i] for i in linear_seeds)])
        cotangents = dict(zip(active, pulled))
    b.return_([*values[: len(results)], *(cotangents[i] if i in cotangents else b.zeros(avals[i]) for i in wrt)])
    return name
