"""The rules of scans.

==================  ====================================================================================
over a batch        the same scan; elements of xs and ys have the batch axis in front
forward mode        one scan that computes values and tangents
reverse mode        a scan that stacks residuals, and one that is linear and reads them
transposed          a scan backwards
==================  ====================================================================================

Stacked residuals grow linearly with the length. Not stacked is what is the same in each step (it is computed once,
ahead of the loop), what is an element of ``%xs`` or of the stacked results, and what costs little to compute again
from nothing. A scan marked `checkpoint` keeps only the carry and the elements of ``%xs``; the linear loop computes the
rest again.

The transpose runs backwards; the cotangents of its carries are its carries, those of its constants are summed up in
more carries. Before::

    %r, %ys = scan @body(%k, %c; %t; %ts)           constants %k, %c; linear in %c, %t and %ts

After, with @step_transpose adding to the cotangent of %c::

    %cc, %ct, %cts = scan reverse @step_transpose(%k; 0, %cr; %cys)

What the residuals are needed for runs in the transposed functions again, forwards.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from smelt.ir.aval import Aval
from smelt.ir.builder import Builder, Function, OpView, Value, fresh_name, function_named, new_function
from smelt.ir.control import SCAN, layout

from ...dependence import closed, cone
from ...extract import cut, erase
from ...rewrite import replay
from ...rules import Attrs, Dims, Flags, Maybe, Values, register_rules
from ..partition import (
    drop_separated,
    linear_values,
    merge,
    pick,
    residuals_of,
    separate,
    stem_of,
    varying_values,
)
from ..transpose import make_transpose
from .common import LoopRules, in_front, reached

if TYPE_CHECKING:
    from ..batch import Batching


@register_rules("scan")
class ScanRules(LoopRules):
    """A body over the elements of arrays, with carries from step to step."""

    op = SCAN
    partitions_unused = True  # the carry of a step is read by the next

    # Batching

    def batch(
        self, t: Batching, b: Builder, op: OpView, operands: Values, dims: Dims, mask: Value | None
    ) -> tuple[Values, Dims]:
        n, m, body = op.attrs["constants"], op.attrs["carries"], op.attrs["body"]
        flags = [d is not None for d in dims]
        carry, ys = self.varying_carries(t, op, flags)
        flags[n : n + m] = carry
        settled = t.settle(b, operands[: n + m], dims[: n + m], flags)
        # Axis 0 of xs and ys is the step; the batch axis of a step's element is in front, so theirs comes next.
        xs = [x if d is None else b.move_axis(x, d, 1) for x, d in zip(operands[n + m :], dims[n + m :])]
        masked = mask is not None and t.loops(body)
        extra = [mask] if masked and mask is not None else []
        attrs = {**op.attrs, "body": t.function(body, flags, [*carry, *ys], masked), "constants": n + masked}
        avals = t.batched([r.aval for r in op.results[:m]], carry)
        for r, flag in zip(op.results[m:], ys):
            shape = r.aval.shape
            avals.append(r.aval.with_shape((shape[0], t.size, *shape[1:])) if flag else r.aval)
        results = b.control(SCAN, [*extra, *settled, *xs], attrs, avals)
        return results, [*in_front(carry), *(1 if flag else None for flag in ys)]

    # Derivatives

    def pushed_attrs(self, module: Any, op: OpView, active: Flags, groups: Sequence[range], suffix: str) -> Attrs:
        return {"carries": len(groups[1]) + sum(active[i] for i in groups[1])}

    def dependent(self, module: Any, attrs: Attrs, flags: Flags) -> list[bool]:
        marks = self.dependent_operands(module, attrs, flags)
        n, m = attrs["constants"], attrs["carries"]
        body = function_named(module, attrs["body"])
        linear = linear_values(module, body, marks)
        return [*marks[n : n + m], *(y in linear for y in body.returns[m:])]

    def partition(
        self, module: Any, b: Builder, attrs: Attrs, operands: Values, flags: Flags, avals: Sequence[Aval]
    ) -> list[Value]:
        n, m, length = attrs["constants"], attrs["carries"], attrs["length"]
        original = function_named(module, attrs["body"])
        marks = self.dependent_operands(module, attrs, flags)
        body, stem = separate(module, original, marks), stem_of(original.name)
        outs = self.dependent(module, attrs, flags)
        linear = linear_values(module, body, marks)
        carried, elements = body.arguments[n : n + m], set(body.arguments[n + m :])
        groups = [slice(0, n), slice(n, n + m), slice(n + m, None)]

        roots = pick(body.returns, outs)
        residuals = residuals_of(body, roots, linear, attrs.get("checkpoint", False))
        # What stays the same: it does not depend on xs or on a carry that the body changes.
        changing = [c for c, r in zip(carried, body.returns) if c is not r]
        varying = varying_values(body, [*changing, *elements]) if length else set(body.arguments) | cone(roots)
        outer: dict[Value, Value] = dict(zip(body.arguments, operands))
        invariant = [v for v in residuals if v not in varying]
        stepwise = dict.fromkeys(v for v in residuals if v in varying)
        _hoist(b, body, invariant, outer)
        plain_returns = pick(body.returns, outs, False)
        ys = {y: None for y, out in zip(body.returns[m:], outs[m:]) if not out}
        stacked = [v for v in stepwise if v not in elements and v not in ys]

        carries = sum(not c for c in outs[:m])
        results: Values = ()
        if plain_returns or stacked:
            name = f"{stem}_primal"
            plain = pick(body.arguments, marks, False)
            primal = cut(module, name, body, plain, [*plain_returns, *stacked], effects=True)
            types = [*pick(avals, outs, False), *(v.aval.with_shape((length, *v.aval.shape)) for v in stacked)]
            counts = {"constants": sum(not c for c in marks[:n]), "carries": carries}
            results = b.control(SCAN, pick(operands, marks, False), {**attrs, "body": primal.name, **counts}, types)
        for value, result in zip([*plain_returns, *stacked][carries:], results[carries:]):
            if value in stepwise and value not in elements:
                outer[value] = result

        consts, initial, xs = (pick(body.arguments[g], marks[g]) for g in groups)
        given = [pick(operands[g], marks[g]) for g in groups]
        taken = [*invariant, *consts, *initial, *stepwise, *xs]
        tangent = cut(module, f"{stem}_tangent", body, taken, roots)
        values = [*(outer[v] for v in invariant), *given[0], *given[1], *(outer[v] for v in stepwise), *given[2]]
        counts = {"constants": len(invariant) + len(consts), "carries": len(initial)}
        drop_separated(module, [original], [body])
        pushed: Values = ()
        if roots:
            pushed = b.control(SCAN, values, {**attrs, "body": tangent.name, **counts}, pick(avals, outs))
        return merge(outs, results[: len(plain_returns)], pushed)

    def transpose(
        self, module: Any, b: Builder, op: OpView, cotangents: Maybe, operands: Values, linear: Flags
    ) -> Maybe:
        attrs = op.attrs
        _, constants, state, elements = layout(SCAN, attrs, len(operands))
        n, m = len(constants), len(state)
        body = function_named(module, attrs["body"])
        marks = self.dependent_operands(module, attrs, linear)
        live = [ct is not None for ct in cotangents]
        ys = live[m:]
        carried = closed(live[:m], lambda known: reached(body.arguments, pick(body.returns, known + ys))[n : n + m])
        live = carried + ys
        read = reached(body.arguments, pick(body.returns, live))
        carries = [i for i in state if live[i - n]]
        consts, fixed, xs, kept = (
            [i for i in group if read[i] and marks[i] is flag]
            for group in (constants, elements)
            for flag in (True, False)
        )

        part = cut(
            module, f"{body.name}_part", body, [body.arguments[i] for i in (*fixed, *kept, *consts, *carries, *xs)],
            pick(body.returns, live),
        )  # fmt: skip
        residuals = len(fixed) + len(kept)
        wrt = tuple(range(residuals, len(part.arguments)))
        backward = function_named(module, make_transpose(module, part, {"wrt": wrt}))
        erase(module, [part.name])
        const_avals = [operands[i].aval for i in consts]
        step = _summing(module, body, backward, len(fixed), residuals, len(carries), const_avals)
        erase(module, [backward.name])

        seeds = [cotangents[i - n] for i in carries]
        values = [
            *(operands[i] for i in fixed),
            *(b.zeros(a) for a in const_avals),
            *(b.zeros(operands[i].aval) if ct is None else ct for i, ct in zip(carries, seeds)),
            *(operands[i] for i in kept),
            *(ct for ct in cotangents[m:] if ct is not None),
        ]
        counts = {"constants": len(fixed), "carries": len(consts) + len(carries), "reverse": not attrs["reverse"]}
        results = [*const_avals, *(operands[i].aval for i in (*carries, *xs))]
        found = b.control(SCAN, values, {**attrs, "body": step, **counts}, results)
        pulled = dict(zip((*consts, *carries, *xs), found))
        return [pulled.get(i) if flag else None for i, flag in enumerate(linear)]


def _hoist(b: Builder, body: Function, values: Values, env: dict[Value, Value]) -> None:
    """Compute values of a loop's body ahead of the loop; `env` maps arguments to operands and is extended."""
    needed = cone(values, body.arguments)
    replay(b, [op for op in body.ops if any(r in needed for r in op.results)], env)


def _summing(
    module: Any, body: Function, backward: Function, fixed: int, residuals: int, carries: int, consts: Sequence[Aval]
) -> str:
    """The step of a transposed scan: it adds the cotangents of constants to those of the steps after it.

    `backward` takes its `residuals`, of which the first are `fixed`, then the cotangents of `carries` and of the ys.
    """
    old = backward.arguments
    cts = old[residuals : residuals + carries]
    taken = [*old[:fixed], *cts, *old[fixed:residuals], *old[residuals + carries :]]
    avals = [a.aval for a in taken]
    avals[fixed:fixed] = consts
    step = fresh_name(module, f"{body.name}_transpose")
    returns = [r.aval for r in backward.returns]
    _, made, b = new_function(module, step, avals, returns, body.mlir.location, before=body.mlir)
    sums = made[fixed : fixed + len(consts)]
    env = dict(zip(taken, [*made[:fixed], *made[fixed + len(consts) :]]))
    replay(b, backward.ops, env)
    out = [env[v] for v in backward.returns]
    b.return_([*(s + d for s, d in zip(sums, out)), *out[len(consts) :]])
    return step
