"""The rules of loops that run as long as a condition holds.

==========================  ============================================================================
over a batch, one condition the same loop over batched carries
a condition each            runs as long as it holds for any element; those that are done keep their carry
forward mode                one loop that computes values and tangents
reverse mode                a loop without the tangents, and the whole one again for them: what it would
                            need of each step is not kept, for the number of steps is not known ahead
transposed                  for the same reason it is an error
==========================  ============================================================================
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from smelt.ir import dtypes
from smelt.ir.aval import Aval
from smelt.ir.builder import Builder, OpView, Value, function_named
from smelt.ir.control import WHILE
from smelt.ir.errors import NotDifferentiableError, at_user_line
from smelt.ir.scopes import place

from ...dependence import cone
from ...extract import cut
from ...rules import Attrs, Dims, Flags, Maybe, Values, register_rules
from ..partition import drop_separated, merge, pick, separate, stem_of
from .common import LoopRules, choose_rows, in_front, interleave

if TYPE_CHECKING:
    from ..batch import Batching


@register_rules("while")
class WhileRules(LoopRules):
    """A body repeated while a condition holds."""

    op = WHILE
    fuses_tangents = True
    not_transposable = "the number of steps is not known in advance"

    # Batching

    def varying_carries(self, t: Batching, op: OpView, flags: Flags) -> tuple[list[bool], list[bool]]:
        carry, _ = super().varying_carries(t, op, flags)
        if t.depends(op.attrs["cond"], [*flags[: op.attrs["constants"]], *carry])[0]:
            carry = [True] * len(carry)
        return carry, []

    def batch(
        self, t: Batching, b: Builder, op: OpView, operands: Values, dims: Dims, mask: Value | None
    ) -> tuple[Values, Dims]:
        n = op.attrs["constants"]
        names = op.attrs["cond"], op.attrs["body"]
        flags = [d is not None for d in dims]
        carry, _ = self.varying_carries(t, op, flags)
        flags = [*flags[:n], *carry]
        settled = t.settle(b, operands, dims, flags)
        each = t.depends(names[0], flags)[0]
        avals = t.batched([r.aval for r in op.results], carry)
        if not each and mask is None:
            attrs = {
                "cond": t.function(names[0], flags, [False], False),
                "body": t.function(names[1], flags, carry, False),
                "constants": n,
            }
            return b.control(WHILE, settled, attrs, avals), in_front(carry)
        # The truth value of the condition becomes a carry in front of the others: the mask enters it once, and
        # the condition is computed once a step.
        inner = [mask] if mask is not None and not each and any(t.loops(name) for name in names) else []
        k = len(inner) + n

        def truth(to: Builder, state: Values, rows: Value | None) -> Value:
            found, places = t.emit(to, t.read(names[0]), state, in_front(flags), rows)
            (value,) = t.settle(to, found, places, [each])
            return value

        def go(to: Builder, values: list[Value]) -> Values:
            return [to.reduce_any(values[k], axes=(0,)) if each else values[k]]

        def step(to: Builder, values: list[Value]) -> Values:
            again, constants, state = values[k], values[len(inner) : k], values[k + 1 :]
            rows = again if each else (values[0] if inner else None)
            found, places = t.emit(to, t.read(names[1]), [*constants, *state], in_front(flags), rows)
            found = t.settle(to, found, places, carry)
            if each:
                found = [choose_rows(to, again, new, old) for new, old in zip(found, state)]
            value = truth(to, [*constants, *found], rows)
            return [to.logical_and(again, value) if each else value, *found]

        start = truth(b, settled, mask)
        if mask is not None:
            start = b.logical_and(start, mask if each else b.reduce_any(mask, axes=(0,)))
        arguments = [*inner, *settled[:n], start, *settled[n:]]
        types = [v.aval for v in arguments]
        key = (*names, tuple(flags), each, bool(inner))
        attrs = {
            "cond": t.build(names[0], f"{names[0]}_batch", ("go", *key), types, [Aval((), dtypes.bool_)], go),
            "body": t.build(names[1], f"{names[1]}_batch", ("step", *key), types, types[k:], step),
            "constants": k,
        }
        results = b.control(WHILE, arguments, attrs, types[k:])
        return results[1:], in_front(carry)

    # Derivatives

    def pushed_attrs(self, module: Any, op: OpView, active: Flags, groups: Sequence[range], suffix: str) -> Attrs:
        test = function_named(module, op.attrs["cond"])
        everything = range(len(test.arguments))
        taken = [
            test.arguments[i].aval if tangent else test.arguments[i]
            for i, tangent in interleave(everything, everything, active, groups)
        ]
        return {"cond": cut(module, f"{test.name}_{suffix}", test, taken, test.returns).name}

    def dependent(self, module: Any, attrs: Attrs, flags: Flags) -> list[bool]:
        return self.dependent_operands(module, attrs, flags)[attrs["constants"] :]

    def partition(
        self, module: Any, b: Builder, attrs: Attrs, operands: Values, flags: Flags, avals: Sequence[Aval]
    ) -> list[Value]:
        n = attrs["constants"]
        marks = self.dependent_operands(module, attrs, flags)
        outs = marks[n:]
        original, tester = function_named(module, attrs["body"]), function_named(module, attrs["cond"])
        body, test = separate(module, original, marks), separate(module, tester, marks)
        if cone(test.returns) & set(pick(test.arguments, marks)):
            message = "smelt.while: the number of steps depends on a value in which it should be linear"
            raise NotDifferentiableError(message)
        results: Values = ()
        if not all(outs):
            stem = stem_of(original.name)
            taken = pick(body.arguments, marks, False)
            step = cut(module, f"{stem}_primal", body, taken, pick(body.returns, outs, False), effects=True)
            taken = pick(test.arguments, marks, False)
            again = cut(module, f"{stem_of(attrs['cond'])}_primal", test, taken, test.returns, effects=True)
            changed = {"body": step.name, "cond": again.name, "constants": sum(not c for c in marks[:n])}
            types = pick(avals, outs, False)
            results = b.control(WHILE, pick(operands, marks, False), {**attrs, **changed}, types)
        drop_separated(module, [original, tester], [body, test])
        pushed = b.control(WHILE, operands, attrs, avals) if any(outs) else ()
        return merge(outs, results, pick(pushed, outs))

    def transpose(
        self, module: Any, b: Builder, op: OpView, cotangents: Maybe, operands: Values, linear: Flags
    ) -> Maybe:
        marks = self.dependent(module, op.attrs, linear)
        carry = ", ".join(str(r.aval) for r, tangent in zip(op.results, marks) if not tangent or all(marks))
        message = (
            f"smelt.while_loop: reverse mode needs memory for every step, and their number is not known ahead; "
            f"carry {carry}; use smelt.scan, or smelt.fori_loop with bounds that are Python integers, or forward "
            f"mode (jvp), or stop_gradient on what the loop is given"
        )
        where = place(op.location)
        raise NotDifferentiableError(message + where if where else at_user_line(message))
