"""Transposes of branches and loops.

A branch becomes a branch over the transposed functions. A scan runs backwards; the cotangents of its
carries are its carries, those of its constants are summed up in more carries. Before::

    %r, %ys = scan @body(%k, %c; %t; %ts)           constants %k, %c; linear in %c, %t and %ts

After, with @step_transpose adding to the cotangent of %c::

    %cc, %ct, %cts = scan reverse @step_transpose(%k; 0, %cr; %cys)

What the residuals are needed for runs in the transposed functions again, forwards.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from smelt.ir.builder import Builder, OpView, Value, fresh_name, new_function
from smelt.ir.control import COND, SCAN, control_op
from smelt.ir.errors import NotDifferentiableError, at_user_line

from ..rewrite import replay
from . import transpose  # which imports this file: the two are one recursion
from .control_parts import cone, cut, erase, lookup, loop_arguments, pick


def pull(
    module: Any, b: Builder, op: OpView, cotangents: Sequence[Value | None], operands: Sequence[Value],
    linear: Sequence[bool],
) -> Sequence[Value | None]:  # fmt: skip
    """Cotangents of the operands marked in `linear`, of which only ``.aval`` may be used (None: zero).

    Raises:
        NotDifferentiableError: for a while loop.
    """
    if op.op is COND:
        return _pull_cond(module, b, op, cotangents, operands, linear)
    if op.op is SCAN:
        return _pull_scan(module, b, op, cotangents, operands, linear)
    marks = loop_arguments(module, control_op(op), op.attrs, linear)[op.attrs["constants"] :]
    carry = ", ".join(str(r.aval) for r, tangent in zip(op.results, marks) if not tangent or all(marks))
    raise NotDifferentiableError(
        _at(
            op,
            f"smelt.while_loop: reverse mode needs memory for every step, and their number is not known ahead; carry "
            f"{carry}; use smelt.scan, or smelt.fori_loop with bounds that are Python integers, or forward mode (jvp), "
            f"or stop_gradient on what the loop is given",
        )
    )


def _at(op: OpView, message: str) -> str:
    """`message` with the user's line that made `op`."""
    found = re.search(r'"(?!-")([^"]+)":(\d+)', str(op.location))
    return f"{message}; at {found[1]}:{found[2]}" if found else at_user_line(message)


def _pull_cond(
    module: Any, b: Builder, op: OpView, cotangents: Sequence[Value | None], operands: Sequence[Value],
    linear: Sequence[bool],
) -> Sequence[Value | None]:  # fmt: skip
    index, *arguments = operands
    live = [ct is not None for ct in cotangents]
    names = dict.fromkeys(op.attrs["branches"])
    branches = {name: lookup(module, name) for name in names}
    reached = [_reached(branch.arguments, pick(branch.returns, live)) for branch in branches.values()]
    needed = [i for i, flags in enumerate(zip(*reached)) if any(flags)]
    wrt = [i for i in needed if linear[1 + i]]
    if not wrt:
        return [None] * len(operands)
    pulled: dict[str, str] = {}
    for name, branch in branches.items():
        taken = [branch.arguments[i] for i in needed]
        part = cut(module, f"{name}_part", branch, taken, pick(branch.returns, live))
        positions = tuple(needed.index(i) for i in wrt)
        pulled[name] = transpose.make_transpose(module, part, {"wrt": positions}, f"{name}_transpose")
        erase(module, [part.name])
    attrs = {**op.attrs, "branches": tuple(pulled[name] for name in op.attrs["branches"])}
    values = [index, *(arguments[i] for i in needed if i not in wrt), *pick(cotangents, live)]
    found = dict(zip(wrt, b.control(COND, values, attrs, [arguments[i].aval for i in wrt])))
    return [None, *(found.get(i) for i in range(len(arguments)))]


def _pull_scan(
    module: Any, b: Builder, op: OpView, cotangents: Sequence[Value | None], operands: Sequence[Value],
    linear: Sequence[bool],
) -> Sequence[Value | None]:  # fmt: skip
    attrs = op.attrs
    n, m = attrs["constants"], attrs["carries"]
    body = lookup(module, attrs["body"])
    marks = loop_arguments(module, SCAN, attrs, linear)
    live = [ct is not None for ct in cotangents]
    while True:
        reached = _reached(body.arguments, pick(body.returns, live))
        grown = [a or r for a, r in zip(live, reached[n : n + m])]
        if grown == live[:m]:
            break
        live[:m] = grown
    carries = [i for i in range(n, n + m) if live[i - n]]
    consts, fixed, xs, kept = (
        [i for i in group if reached[i] and marks[i] is flag]
        for group in (range(n), range(n + m, len(operands)))
        for flag in (True, False)
    )

    part = cut(
        module, f"{body.name}_part", body, [body.arguments[i] for i in (*fixed, *kept, *consts, *carries, *xs)],
        pick(body.returns, live),
    )  # fmt: skip
    residuals = len(fixed) + len(kept)
    wrt = tuple(range(residuals, len(part.arguments)))
    backward = lookup(module, transpose.make_transpose(module, part, {"wrt": wrt}))
    erase(module, [part.name])

    # The step adds the cotangents of constants to those of the steps after it.
    const_avals = [operands[i].aval for i in consts]
    old = backward.arguments
    cts = old[residuals : residuals + len(carries)]
    elements = [*old[len(fixed) : residuals], *old[residuals + len(carries) :]]
    taken = [a.aval for a in (*old[: len(fixed)], *cts, *elements)]
    at = len(fixed)
    avals = [*taken[:at], *const_avals, *taken[at:]]
    returns = [r.aval for r in backward.returns]
    step = fresh_name(module, f"{body.name}_transpose")
    _, made, sb = new_function(
        module, step, avals, returns, body.mlir.location, before=body.mlir
    )
    sums = made[at : at + len(consts)]
    env = dict(zip([*old[:at], *cts, *elements], [*made[:at], *made[at + len(consts) :]]))
    replay(sb, backward.ops, env)
    out = [env[v] for v in backward.returns]
    sb.return_([*(s + d for s, d in zip(sums, out)), *out[len(consts) :]])
    erase(module, [backward.name])

    seeds = [cotangents[i - n] for i in carries]
    values = [
        *(operands[i] for i in fixed),
        *(b.zeros(a) for a in const_avals),
        *(b.zeros(operands[i].aval) if ct is None else ct for i, ct in zip(carries, seeds)),
        *(operands[i] for i in kept),
        *pick(cotangents[m:], live[m:]),
    ]
    counts = {"constants": len(fixed), "carries": len(consts) + len(carries), "reverse": not attrs["reverse"]}
    results = [*const_avals, *(operands[i].aval for i in (*carries, *xs))]
    pulled = dict(zip((*consts, *carries, *xs), b.control(SCAN, values, {**attrs, "body": step, **counts}, results)))
    return [pulled.get(i) if flag else None for i, flag in enumerate(linear)]


def _reached(arguments: Sequence[Value], returns: Sequence[Value]) -> list[bool]:
    """Which arguments the returned values are computed from."""
    found = cone(returns)
    return [a in found for a in arguments]
