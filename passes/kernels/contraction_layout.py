"""Contractions brought into the form that matrix products read where they lie.

Before (%x is read as neither [B, M, K] nor [B, K, M])::

    %0 = "smelt.dot_general"(%x, %y) {lhs_batch = array<i64: 1>, lhs_contracting = array<i64: 2>, ...}

After::

    %t = "smelt.transpose"(%x) {permutation = array<i64: 1, 0, 2>}
    %0 = "smelt.dot_general"(%t, %y) {lhs_batch = array<i64: 0>, lhs_contracting = array<i64: 2>, ...}

The transpose is an op like others, which fuses with what makes %x.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from smelt.ir.builder import Builder, Function, OpView, Value, read_function

from ..rewrite import rebuild


def _form(op: OpView) -> Any:
    lhs, rhs = (v.aval for v in op.operands)
    return op.op.canonical_form(lhs, rhs, **op.attrs)  # type: ignore[attr-defined]


def lay_out_contractions(module: Any, function: Function) -> Function:
    """`function`, or a new version of it in which contractions read their operands in place."""
    moved = [op for op in function.ops if op.op.kind == "contraction" and _needs_copy(op)]
    if not moved:
        return function
    chosen = set(moved)

    def visit(b: Builder, op: OpView, operands: Sequence[Value]) -> Sequence[Value]:
        return _move_operands(b, op, operands) if op in chosen else b.clone(op, operands)

    return read_function(rebuild(module, function, visit))


def _needs_copy(op: OpView) -> bool:
    form = _form(op)
    return "copy" in (form.lhs_layout, form.rhs_layout)


def _move_operands(b: Builder, op: OpView, operands: Sequence[Value]) -> Sequence[Value]:
    form, (lhs, rhs), attrs = _form(op), operands, op.attrs
    nb, nk = len(attrs["lhs_batch"]), len(attrs["lhs_contracting"])
    free = lhs.ndim - nb - nk
    left, right = form.lhs_permutation, form.rhs_permutation
    new = {
        "lhs_batch": left[:nb], "lhs_contracting": left[nb + free :],
        "rhs_batch": right[:nb], "rhs_contracting": right[nb : nb + nk],
    }  # fmt: skip
    if form.lhs_layout == "copy":
        lhs = b.transpose(lhs, permutation=left)
        new["lhs_batch"] = tuple(range(nb))
        new["lhs_contracting"] = tuple(range(nb + free, lhs.ndim))
    if form.rhs_layout == "copy":
        rhs = b.transpose(rhs, permutation=right)
        new["rhs_batch"] = tuple(range(nb))
        new["rhs_contracting"] = tuple(range(nb, nb + nk))
    return b.emit(op.op, [lhs, rhs], new)
