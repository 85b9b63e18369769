"""Contractions brought into the form that matrix products read where they lie.

Before (%x is read as neither [B, M, K] nor [B, K, M])::

    %0 = "smelt.dot_general"(%x, %y) {lhs_batch = array<i64: 1>, lhs_contracting = array<i64: 2>, ...}

After::

    %t = "smelt.transpose"(%x) {permutation = array<i64: 1, 0, 2>}
    %0 = "smelt.dot_general"(%t, %y) {lhs_batch = array<i64: 0>, lhs_contracting = array<i64: 2>, ...}

The transpose is an op like others, which fuses with what makes %x. A transpose that a product can read behind
is left out: ``dot_general(%x, transpose(%w))`` contracts another axis of %w.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from smelt.ir.builder import Builder, Function, OpView, Value, read_function
from smelt.ir.index import variables
from smelt.ir.kinds import Contraction

from ..rewrite import rebuild
from .analysis import operand_reads, plain_variable


def lay_out_contractions(module: Any, function: Function, contractions: Iterable[OpView]) -> Function:
    """`function`, or a new version of it in which these of its contractions read their operands in place."""
    moved = {op for op in contractions if _needs_copy(op, op.operands, op.attrs) or _before_transposes(op, op.operands)}
    if not moved:
        return function

    def visit(b: Builder, op: OpView, operands: Sequence[Value]) -> Sequence[Value]:
        if op not in moved or not isinstance(op.op, Contraction):
            return b.clone(op, operands)
        operands, attrs = _before_transposes(op, operands) or (operands, op.attrs)
        if _needs_copy(op, operands, attrs):
            return op.op.in_place(b, operands, **attrs)
        return b.emit(op.op, operands, attrs)

    operation = rebuild(module, function, visit)
    for op in reversed(read_function(operation).ops):
        if op.op.pure and not any(True for v in op.results for _ in v.mlir.uses):  # a transpose that is left out
            op.mlir.erase()
    return read_function(operation)


def _needs_copy(op: OpView, operands: Sequence[Value], attrs: dict[str, Any]) -> bool:
    """Whether an op with these operands is a matrix product that does not read them where they lie."""
    if not isinstance(op.op, Contraction):
        return False
    form = op.op.matmul_form(*(v.aval for v in operands), **attrs)
    return form is not None and not form.in_place


def _before_transposes(op: OpView, operands: Sequence[Value]) -> tuple[list[Value], dict[str, Any]] | None:
    """Operands and attributes that give a contraction's result without some transposes in front of it.

    None where there are none that it could do without.
    """
    found, attrs = list(operands), op.attrs
    for i, v in enumerate(operands):
        permutation = _permutation(v.owner) if v.owner is not None else None
        if permutation is None or v.owner is None or not isinstance(op.op, Contraction):
            continue
        before = op.op.before_transpose(i, permutation, **attrs)
        there = [*found[:i], v.owner.operands[0], *found[i + 1 :]]
        if before is not None and not _needs_copy(op, there, before):
            found, attrs = there, before
    return None if found == list(operands) else (found, attrs)


def _permutation(op: OpView) -> tuple[int, ...] | None:
    """The axes of an op's operand in the order in which its result has them, if it does nothing but permute them."""
    if op.op.kind != "movement" or len(op.operands) != 1 or op.operands[0].ndim != op.results[0].ndim:
        return None
    source, result = op.operands[0], op.results[0]
    at = variables(result.shape)
    [(_, place)] = operand_reads(op, at)
    axes = {plain_variable(i): a for a, i in enumerate(at) if not i.is_constant}
    found: dict[int, int] = {}
    for axis, i in enumerate(place):
        if i.is_constant and source.shape[axis] == 1:
            continue
        to = axes.get(plain_variable(i))
        if to is None or to in found or source.shape[axis] != result.shape[to]:
            return None
        found[to] = axis
    rest = iter([axis for axis in range(source.ndim) if axis not in found.values()])
    permutation = tuple(found[a] if a in found else next(rest) for a in range(result.ndim))
    return permutation if permutation != tuple(range(result.ndim)) else None
