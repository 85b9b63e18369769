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
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from smelt.ir.aval import Aval
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


@dataclass(frozen=True)
class Linearized:
    """A function as two: what it computes with what the tangent map needs of it, and that map.

    Attributes:
        primal: name of the function (primals) → (results, residuals).
        tangent: name of the linear function (residuals, tangents of `active`) → tangents of `seeds`.
        residuals: avals of the residuals.
        active: the arguments with tangents.
        seeds: the results whose tangent depends on one.
        tangents: avals of those results' tangents.
    """

    primal: str
    tangent: str
    residuals: list[Aval]
    active: list[int]
    seeds: list[int]
    tangents: list[Aval]


def linearized(module: Any, function: Function, wrt: Sequence[int], seeds: Sequence[int]) -> Linearized:
    """Write the two functions beside `function`."""
    avals = [a.aval for a in function.arguments]
    # One scratch function holds primal and tangent ops together; dependence on the tangent
    # arguments then tells them apart.
    active = [i for i in wrt if avals[i].dtype.is_inexact]
    scratch, arguments, b = new_function(
        module, fresh_name(module, f"{function.name}_scratch"), avals + [avals[i] for i in active], [],
        function.mlir.location, before=function.mlir,
    )  # fmt: skip
    tangents: list[Value | None] = [None] * len(avals)
    for i, argument in zip(active, arguments[len(avals) :]):
        tangents[i] = argument
    outs, out_tangents = push_tangents(module, b, function, arguments[: len(avals)], tangents, linearize=True)
    linear_seeds = [i for i in seeds if out_tangents[i] is not None]
    b.return_([*outs, *(t for i in linear_seeds if (t := out_tangents[i]) is not None)])
    both = read_function(scratch)
    primals, results = both.arguments[: len(avals)], both.returns[: len(outs)]

    linear, primal_ops, tangent_ops = split(both.ops, both.arguments[len(avals) :])
    # A tangent that depends on no tangent argument is zero, as are those that the rules gave as None.
    pairs = [(i, t) for i, t in zip(linear_seeds, both.returns[len(outs) :]) if t in linear]
    linear_seeds, tangent_returns = [i for i, _ in pairs], [t for _, t in pairs]
    # Unused tangent work needs no residuals.
    needed = cone(tangent_returns)
    tangent_ops = [op for op in tangent_ops if any(r in needed for r in op.results)]
    residuals = [v for v in inputs_of(tangent_ops) if v not in linear]

    primal = extract(
        module, f"{function.name}_primal", both, primals, [*results, *residuals], primal_ops,
        argument_locations=argument_locations(function),
    )  # fmt: skip
    taken = [*residuals, *both.arguments[len(avals) :]]
    tangent = extract(module, f"{function.name}_tangent", both, taken, tangent_returns, tangent_ops)
    scratch.erase()
    return Linearized(
        name_of(primal), name_of(tangent), [r.aval for r in residuals], active, linear_seeds,
        [t.aval for t in tangent_returns],
    )  # fmt: skip


def make_vjp(module: Any, function: Function, attrs: dict[str, Any]) -> str:
    """The function (primals, cotangents) → (results, cotangents of wrt)."""
    wrt, seeds = attrs["wrt"], attrs["seeds"]
    avals, results = [a.aval for a in function.arguments], [r.aval for r in function.returns]
    halves = linearized(module, function, wrt, seeds)
    name = fresh_name(module, f"{function.name}_vjp")
    _, args, b = new_function(
        module, name, avals + [results[i] for i in seeds], results + [avals[i] for i in wrt], function.mlir.location,
        before=function.mlir,
    )  # fmt: skip
    primals, cotangents = args[: len(avals)], dict(zip(seeds, args[len(avals) :]))
    values = b.call(halves.primal, primals, results + halves.residuals)
    outs, residuals = values[: len(results)], values[len(results) :]
    pulled: dict[int, Value] = {}
    if halves.seeds and halves.active:
        taken = halves.residuals + [avals[i] for i in halves.active]
        tangent = b.function(halves.tangent, taken, halves.tangents)
        pull = b.transform(ops["linear_transpose"], tangent, {"wrt": tuple(range(len(residuals), len(taken)))})
        pulled = dict(zip(halves.active, b.apply(pull, [*residuals, *(cotangents[i] for i in halves.seeds)])))
    b.return_([*outs, *(pulled[i] if i in pulled else b.zeros(avals[i]) for i in wrt)])
    return name
