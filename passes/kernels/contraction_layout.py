"""Contractions brought into the form that matrix products read where they lie.

Before (%x is read as neither [B, M, K] nor [B, K, M])::

    %0 = "smelt.dot_general"(%x, %y) {lhs_batch = array<i64: 1>, lhs_contracting = array<i64: 2>, ...}

After::

    %t = "smelt.transpose"(%x) {permutation = array<i64: 1, 0, 2>}
    %0 = "smelt.dot_general"(%t, %y) {lhs_batch = array<i64: 0>, lhs_contracting = array<i64: 2>, ...}

The transpose is an op like others, which fuses with what makes %x.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from smelt.ir.builder import Builder, Function, OpView, Value, read_function
from smelt.ir.kinds import Contraction

from ..rewrite import rebuild


def lay_out_contractions(module: Any, function: Function, contractions: Iterable[OpView]) -> Function:
    """`function`, or a new version of it in which these of its contractions read their operands in place."""
    moved = {op for op in contractions if _needs_copy(op)}
    if not moved:
        return function

    def visit(b: Builder, op: OpView, operands: Sequence[Value]) -> Sequence[Value]:
        if op in moved and isinstance(op.op, Contraction):
            return op.op.in_place(b, operands, **op.attrs)
        return b.clone(op, operands)

    return read_function(rebuild(module, function, visit))


def _needs_copy(op: OpView) -> bool:
    if not isinstance(op.op, Contraction):
        return False
    form = op.op.matmul_form(*(v.aval for v in op.operands), **op.attrs)
    return form is not None and not form.in_place
