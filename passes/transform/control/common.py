"""What the rules of branches and loops share.

Forward mode, before (in a function whose ``%x`` has the tangent ``%t``)::

    %r = scan @body(%x; %xs)

After, one loop that computes both; @body_jvp carries the pair::

    %r, %dr = scan @body_jvp(%x, %t; %xs)

In reverse mode, a loop that keeps residuals, and one that is linear in the tangent::

    %r, %kept = scan @body_primal(%x; %xs)
    %dr = scan @body_tangent(%t; %kept)

Whether a carry has a tangent is found by trying: one that the body gives a tangent has one from the start.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from smelt.ir.aval import Aval
from smelt.ir.builder import Builder, Function, OpView, Value, fresh_name, function_named, new_function
from smelt.ir.control import ControlOp, layout

from ...dependence import closed, cone, dependence
from ...extract import erase, name_of, set_type
from ...rules import Attrs, Dims, Flags, FunctionRules, Maybe, Values
from ...simplify.reads import ModuleReads, Needs, argument_index, union
from ...simplify.reads import closed as closed_reads
from ..jvp import push_tangents
from ..partition import BOTH, linear_values
from ..remembered import expansion_of

if TYPE_CHECKING:
    from ..batch import Batching


class ControlRules(FunctionRules):
    """Rules of a branch or loop.

    Attributes:
        op: whose rules they are.
        fuses_tangents: whether the tangents of a linearized op are computed by one that computes the primals, too.
    """

    op: ClassVar[ControlOp]
    fuses_tangents: ClassVar[bool] = False

    def emit_pushed(
        self, module: Any, b: Builder, attrs: Attrs, operands: Sequence[tuple[Value, bool]], wanted: Flags,
        avals: Sequence[Aval], groups: Sequence[range], linearize: bool, fused: Sequence[str],
    ) -> tuple[Values, Maybe]:  # fmt: skip
        """The op over fused functions, in one or (to linearize) in two, and its results sorted out."""
        keys = interleave(range(len(avals)), range(len(avals)), wanted, groups)
        results = [avals[i] for i, _ in keys]
        values = [v for v, _ in operands]
        found: Values
        if linearize:
            found = self.partition(module, b, attrs, values, [t for _, t in operands], results)
            if not self.fuses_tangents:
                erase(module, fused)
        else:
            found = b.control(self.op, values, attrs, results)
        place = dict(zip(keys, found))
        count = range(len(avals))
        return [place[i, False] for i in count], [place.get((i, True)) for i in count]


class LoopRules(ControlRules):
    """What loops have in common: the activity of carries is the least that the body keeps."""

    @abstractmethod
    def pushed_attrs(self, module: Any, op: OpView, active: Flags, groups: Sequence[range], suffix: str) -> Attrs:
        """The attributes that a loop over values and the tangents of the active ones has of its own."""

    def dependent_operands(self, module: Any, attrs: Attrs, flags: Flags) -> list[bool]:
        """`flags` of operands, widened to the carries that the body makes depend on them."""
        body = function_named(module, attrs["body"])
        _, _, carries, _ = layout(self.op, attrs, len(flags))
        before, after = list(flags[: carries.start]), list(flags[carries.stop :])

        def step(known: list[bool]) -> Flags:
            linear = linear_values(module, body, [*before, *known, *after])
            return [body.returns[i] in linear for i in range(len(carries))]

        return [*before, *closed(flags[carries.start : carries.stop], step), *after]

    def varying_carries(self, t: Batching, op: OpView, flags: Flags) -> tuple[list[bool], list[bool]]:
        """Which carries and which stacked results differ between elements of the batch."""
        _, _, carries, _ = layout(op.op, op.attrs, len(flags))
        before, after = list(flags[: carries.start]), list(flags[carries.stop :])

        def step(known: list[bool]) -> Flags:
            return t.depends(op.attrs["body"], [*before, *known, *after])

        carry = closed(flags[carries.start : carries.stop], step)
        return carry, list(step(carry)[len(carries) :])

    def varying(self, t: Batching, op: OpView, flags: Flags) -> list[bool]:
        carry, ys = self.varying_carries(t, op, flags)
        return carry + ys

    def jvp(
        self, module: Any, b: Builder, op: OpView, operands: Values, tangents: Maybe, linearize: bool
    ) -> tuple[Values, Maybe]:
        body = function_named(module, op.attrs["body"])
        _, *inputs = layout(op.op, op.attrs, len(operands))
        carries, m = slice(inputs[1].start, inputs[1].stop), len(inputs[1])
        outputs = [range(m), range(m, len(op.results))]
        active = [t is not None for t in tangents]
        suffix = BOTH if linearize else "jvp"
        while True:
            pushed = Pushed(module, body, active, inputs, linearize and not self.fuses_tangents, suffix)
            grown = [a or o for a, o in zip(active[carries], pushed.active)]
            if grown == active[carries]:
                break
            pushed.discard()
            active[carries] = grown
        wanted = [*active[carries], *pushed.active[m:]]
        if not any(wanted):
            pushed.discard()
            return b.clone(op, operands), [None] * len(op.results)
        fused = pushed.close(wanted, outputs)
        given = [b.zeros_like(x) if a and t is None else t for x, t, a in zip(operands, tangents, active)]
        attrs = {**op.attrs, "body": fused, "constants": len(inputs[0]) + sum(active[i] for i in inputs[0])}
        attrs |= self.pushed_attrs(module, op, active, inputs, suffix)
        pairs = interleave(operands, given, active, inputs)
        avals = [r.aval for r in op.results]
        return self.emit_pushed(module, b, attrs, pairs, wanted, avals, outputs, linearize, [fused])

    def needs(self, reads: ModuleReads, op: OpView) -> Needs:
        body, inside = reads.functions[op.attrs["body"]], reads.reads[op.attrs["body"]]
        _, _, state, _ = layout(op.op, op.attrs, len(op.operands))
        n, m = state.start, len(state)
        test = reads.reads[op.attrs[self.op.test]] if self.op.test else None
        needs = Needs([], has_effects=inside.has_effects or (test is not None and test.has_effects))
        for j in range(m):
            if body.returns[j] is body.arguments[n + j]:
                needs.constant.add(n + j)
                needs.forwarded[j] = n + j
        # Each changing carry reads what its next value reads, and whether there is a next one.
        after = [1 << (n + j) if n + j in needs.constant else 1 << (n + j) | inside.results[j] for j in range(m)]
        after = closed_reads(after, n)
        carries = ((1 << m) - 1) << n

        def whole(mask: int) -> int:
            return mask | union(after, (mask & carries) >> n)

        steps = whole(test.results[0]) if test is not None else 0
        needs.results = [after[j] if n + j in needs.constant else after[j] | steps for j in range(m)]
        for k in range(m, len(op.results)):
            place = argument_index(body.returns[k])
            if place is not None and place >= n + m:
                needs.forwarded[k] = place
                needs.results.append(1 << place)
            elif place is not None and (place < n or place in needs.constant):
                needs.stacked[k] = place
                needs.results.append(1 << place)
            else:
                needs.results.append(whole(inside.results[k]))
        if needs.has_effects:
            needs.effects = whole(inside.effects | (test.effects if test is not None else 0)) | steps
        return needs


class Pushed:
    """A function of the module with its tangents, being built: arguments (primals, tangents of the active).

    `groups` are ranges of arguments; in each, tangents follow the primals. So are they in the results.
    """

    def __init__(
        self, module: Any, function: Function, active: Flags, groups: Sequence[range], linearize: bool, suffix: str
    ):
        self.module, self.function = module, function
        avals = [a.aval for a in function.arguments]
        order = interleave(range(len(avals)), range(len(avals)), active, groups)
        self.operation, made, self.builder = new_function(
            module, fresh_name(module, f"{function.name}_{suffix}"), [avals[i] for i, _ in order], [],
            function.mlir.location, before=function.mlir,
        )  # fmt: skip
        self.arguments = made
        place = dict(zip(order, made))
        primals = [place[i, False] for i in range(len(avals))]
        given = [place.get((i, True)) for i in range(len(avals))]
        self.results, found = push_tangents(module, self.builder, function, primals, given, linearize)
        # A tangent that depends on no tangent argument is zero.
        sources = [t for t in given if t is not None]
        depends = dependence([t for t in found if t is not None], sources)
        self.tangents = [t if t is not None and depends[t] else None for t in found]

    @property
    def active(self) -> list[bool]:
        """Which results have a tangent."""
        return [t is not None for t in self.tangents]

    def close(self, wanted: Flags, groups: Sequence[range]) -> str:
        """Finish the function, with tangents of the `wanted` results: its name."""
        b = self.builder
        filled = [b.zeros_like(r) if t is None and w else t for r, t, w in zip(self.results, self.tangents, wanted)]
        both = {(i, False): r for i, r in enumerate(self.results)} | {(i, True): t for i, t in enumerate(filled)}
        indices = range(len(self.results))
        returns: list[Any] = [both[key] for key in interleave(indices, indices, wanted, groups)]
        b.return_(returns)
        set_type(self.operation, self.arguments, returns)
        return name_of(self.operation)

    def discard(self) -> None:
        """Erase the function. What was made for it may be run by another one."""
        erase(self.module, [name_of(self.operation)])
        if (expansion := expansion_of(self.module)) is not None:
            expansion.has_rest = True


def interleave(primals: Sequence[Any], tangents: Sequence[Any], active: Flags, groups: Sequence[range]) -> list[Any]:
    """Pairs (item, whether tangent): in each group, its primals, then the tangents of the active."""
    order: list[Any] = []
    for group in groups:
        order += [(primals[i], False) for i in group]
        order += [(tangents[i], True) for i in group if active[i]]
    return order


def in_front(flags: Flags) -> Dims:
    """The batch axis in front of the values that have one."""
    return [0 if flag else None for flag in flags]


def choose_rows(b: Builder, rows: Value, x: Value, y: Value) -> Value:
    """x for the elements of the batch in `rows`, y for the others; all have the batch axis in front."""
    condition = b.reshape_to(rows, (*rows.shape, *(1,) * (x.ndim - 1)))
    return b.select(b.broadcast_to(condition, x.shape), x, y)


def reached(arguments: Values, returns: Values) -> list[bool]:
    """Which arguments the returned values are computed from."""
    found = cone(returns)
    return [a in found for a in arguments]
