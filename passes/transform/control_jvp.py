"""Forward mode through branches and loops, and the split into primal and tangent that reverse mode needs.

Before (in a function whose ``%x`` has the tangent ``%t``)::

    %r = scan @body(%x; %xs)

After, in forward mode, one loop that computes both; @body_jvp carries the pair::

    %r, %dr = scan @body_jvp(%x, %t; %xs)

After, in reverse mode, a loop that keeps residuals, and one that is linear in the tangent::

    %r, %kept = scan @body_primal(%x; %xs)
    %dr = scan @body_tangent(%t; %kept)

Whether a carry has a tangent is found by trying: one that the body gives a tangent has one from the start.
"""

from __future__ import annotations

from collections.abc import Sequence
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
)  # fmt: skip
from smelt.ir.control import COND, SCAN, WHILE, ControlOp, control_op
from smelt.ir.dialect import context

from . import jvp  # which imports this file: the two are one recursion
from .control_partition import BOTH, partition
from .control_parts import cut, dependence, erase, lookup

Flags = Sequence[bool]


def push(
    module: Any, b: Builder, op: OpView, operands: Sequence[Value], tangents: Sequence[Value | None], linearize: bool
) -> tuple[Sequence[Value], Sequence[Value | None]]:
    """Emit a branch or loop together with its tangents (None: zero): results, and tangents of results.

    With `linearize`, as two ops: one of the primal operands, which may have residuals as more results,
    and one that is linear in the tangents.
    """
    rule = _push_cond if op.op is COND else _push_loop
    return rule(module, b, op, operands, tangents, linearize)


class Pushed:
    """A function of the module with its tangents, being built: arguments (primals, tangents of the active).

    `groups` are ranges of arguments; in each, tangents follow the primals. So are they in the results.
    """

    def __init__(
        self, module: Any, function: Function, active: Flags, groups: Sequence[range], linearize: bool, suffix: str
    ):
        self.mark = set(functions(module))
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
        self.results, found = jvp.push_tangents(module, self.builder, function, primals, given, linearize)
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
        kind = function_type([a.aval for a in self.arguments], [r.aval for r in returns])
        self.operation.attributes["function_type"] = mlir.ir.TypeAttr.get(kind, context())
        return mlir.ir.StringAttr(self.operation.attributes["sym_name"]).value

    def discard(self) -> None:
        """Erase the function and those that were made for it."""
        erase(self.module, [name for name in functions(self.module) if name not in self.mark])


def interleave(primals: Sequence[Any], tangents: Sequence[Any], active: Flags, groups: Sequence[range]) -> list[Any]:
    """Pairs (item, whether tangent): in each group, its primals, then the tangents of the active."""
    order: list[Any] = []
    for group in groups:
        order += [(primals[i], False) for i in group]
        order += [(tangents[i], True) for i in group if active[i]]
    return order


def _emit(
    module: Any, b: Builder, op: ControlOp, attrs: dict[str, Any], operands: Sequence[tuple[Value, bool]],
    wanted: Flags, avals: Sequence[Aval], groups: Sequence[range], linearize: bool, fused: Sequence[str],
) -> tuple[Sequence[Value], Sequence[Value | None]]:  # fmt: skip
    """The op over fused functions, in one or (to linearize) in two, and its results sorted out."""
    keys = interleave(range(len(avals)), range(len(avals)), wanted, groups)
    results = [avals[i] for i, _ in keys]
    values = [v for v, _ in operands]
    found: Sequence[Value]
    if linearize:
        found = partition(module, b, op, attrs, values, [t for _, t in operands], results)
        if op is not WHILE:  # whose tangents are computed by the fused loop
            erase(module, fused)
    else:
        found = b.control(op, values, attrs, results)
    place = dict(zip(keys, found))
    count = range(len(avals))
    return [place[i, False] for i in count], [place.get((i, True)) for i in count]


def _push_cond(
    module: Any, b: Builder, op: OpView, operands: Sequence[Value], tangents: Sequence[Value | None], linearize: bool
) -> tuple[Sequence[Value], Sequence[Value | None]]:
    index, *primals = operands
    given = tangents[1:]
    active = [t is not None for t in given]
    inputs, outputs = [range(len(primals))], [range(len(op.results))]
    names = list(dict.fromkeys(op.attrs["branches"]))
    suffix = BOTH if linearize else "jvp"
    pushed = {name: Pushed(module, lookup(module, name), active, inputs, linearize, suffix) for name in names}
    wanted = [any(flags) for flags in zip(*(p.active for p in pushed.values()))]
    if not any(wanted):
        for p in reversed(pushed.values()):
            p.discard()
        return b.clone(op, operands), [None] * len(op.results)
    fused = {name: p.close(wanted, outputs) for name, p in pushed.items()}
    attrs = {**op.attrs, "branches": tuple(fused[name] for name in op.attrs["branches"])}
    taken = [(index, False), *interleave(primals, given, active, inputs)]
    avals = [r.aval for r in op.results]
    return _emit(module, b, COND, attrs, taken, wanted, avals, outputs, linearize, list(fused.values()))


def _push_loop(
    module: Any, b: Builder, op: OpView, operands: Sequence[Value], tangents: Sequence[Value | None], linearize: bool
) -> tuple[Sequence[Value], Sequence[Value | None]]:
    """While and scan: the carries' activity is the least that the body keeps."""
    body = lookup(module, op.attrs["body"])
    n = op.attrs["constants"]
    m = op.attrs["carries"] if op.op is SCAN else len(operands) - n
    inputs = [range(n), range(n, n + m), range(n + m, len(operands))]
    outputs = [range(m), range(m, len(op.results))]
    active = [t is not None for t in tangents]
    # The tangents of a while loop are computed by a fused loop in reverse mode, too.
    inner = linearize and op.op is SCAN
    suffix = BOTH if linearize else "jvp"
    while True:
        pushed = Pushed(module, body, active, inputs, inner, suffix)
        grown = [a or o for a, o in zip(active[n : n + m], pushed.active)]
        if grown == active[n : n + m]:
            break
        pushed.discard()
        active[n : n + m] = grown
    wanted = [*active[n : n + m], *pushed.active[m:]]
    if not any(wanted):
        pushed.discard()
        return b.clone(op, operands), [None] * len(op.results)
    fused = pushed.close(wanted, outputs)
    given = [b.zeros_like(x) if a and t is None else t for x, t, a in zip(operands, tangents, active)]
    counts = [sum(active[i] for i in group) for group in inputs]
    attrs = {**op.attrs, "body": fused, "constants": n + counts[0]}
    if op.op is SCAN:
        attrs["carries"] = m + counts[1]
    else:
        test = lookup(module, op.attrs["cond"])
        taken = [
            test.arguments[i].aval if tangent else test.arguments[i]
            for i, tangent in interleave(range(len(operands)), range(len(operands)), active, inputs)
        ]
        attrs["cond"] = cut(module, f"{test.name}_{suffix}", test, taken, test.returns).name
    pairs = interleave(operands, given, active, inputs)
    avals = [r.aval for r in op.results]
    return _emit(module, b, control_op(op), attrs, pairs, wanted, avals, outputs, linearize, [fused])
