"""Contractions inside of kernels: what they read, and where the rest of the kernel reads their result."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from smelt.ir.builder import Function, OpView, Value
from smelt.ir.index import Access, Atom, Index, variables
from smelt.ir.kinds import Contraction

from .analysis import Coordinates, collect_reads, plain_variable


def is_contraction(op: OpView) -> bool:
    """Whether the op sums products over loops of its own."""
    return isinstance(op.op, Contraction)


def rules_of(op: OpView) -> Contraction:
    """The rules of a contraction."""
    return op.rules(Contraction)


def depth_of(op: OpView) -> tuple[int, ...]:
    """The extents of the loops over which a contraction sums."""
    return rules_of(op).depth(*(v.aval for v in op.operands), **op.attrs)


def operand_accesses(op: OpView, place: Coordinates, depth: Coordinates) -> tuple[Access, ...]:
    """Which elements a contraction multiplies for its result at `place`, at one position of its depth."""
    return rules_of(op).operand_indices(place, depth, *(v.aval for v in op.operands), **op.attrs)


def contraction_reads(op: OpView, place: Coordinates) -> list[tuple[Value, Coordinates]]:
    """Which elements of its operands a contraction multiplies for its result at `place`, wherever its guards hold.

    The loops of its depth run over variables k0, k1, ... of their own.
    """
    accesses = operand_accesses(op, place, variables(depth_of(op), "k"))
    return [(v, access.place) for v, access in zip(op.operands, accesses)]


@dataclass(frozen=True)
class ContractionPlan:
    """How a kernel with one contraction runs over elements.

    Attributes:
        op: the contraction.
        at: a variable c0, c1, ... for each axis of its result; constant 0 for axes of one element.
        output: where the element of every output is that is computed from the contraction's result at `at`.
    """

    op: OpView
    at: Coordinates
    output: Coordinates


def contraction_plan(body: Function) -> ContractionPlan:
    """The plan of a function that `fuse` marked ``smelt.fusion = "contract"``."""
    op = next(op for op in body.ops if is_contraction(op))
    value = op.results[0]
    loops = variables(body.returns[0].shape)
    if not value.aval.size:
        return ContractionPlan(op, variables(value.shape, "c"), (Index(0),) * len(loops))
    reads = collect_reads(body.ops, [(v, loops) for v in body.returns])
    (place,) = reads[value]
    output = inverse_place(place, value.shape, loops)
    assert output is not None, f"@{body.name} does not read every element of the contraction once"
    return ContractionPlan(op, variables(value.shape, "c"), output)


def inverse_place(place: Coordinates, shape: Sequence[int], loops: Coordinates) -> Coordinates | None:
    """The loop variables as functions of where an array is read; None where that cannot be said.

    `place` says at which index of an array of `shape` a loop nest reads. If each element is read
    exactly once, through permuted, merged and split axes, the result has an expression in c0, c1, ...
    (the index into the array) for each of `loops`.

    >>> i, j = variables((6, 4))
    >>> inverse_place((j, i // 3, i % 3), (4, 2, 3), (i, j))
    (c2 + 3*c1, c0)
    """
    at = variables(shape, "c")
    digits: dict[Atom, list[tuple[int, int, Index]]] = {}  # of each variable: stride, size, value
    for index, extent, c in zip(place, shape, at):
        if index.const:
            return None
        step = 1
        for atom, coefficient in sorted(index.terms, key=lambda term: term[1]):
            digit = _digit(atom)
            if digit is None or coefficient != step:
                return None
            variable, stride, size = digit
            step *= size
            value = c // coefficient if coefficient > 1 else c
            whole = step == extent or not size  # an axis without elements is at nothing's remainder
            digits.setdefault(variable, []).append((stride, size, value if whole else value % size))
        if step != extent:
            return None
    inverse = []
    for loop in loops:
        total, step = Index(0), 1
        of_loop = plain_variable(loop)
        if of_loop is not None:
            for stride, size, value in sorted(digits.pop(of_loop, []), key=lambda digit: digit[0]):
                if stride != step:
                    return None
                total, step = total + value * stride, step * size
            if step != of_loop.hi + 1:
                return None
        inverse.append(total)
    return None if digits else tuple(inverse)


def _digit(atom: Atom) -> tuple[Atom, int, int] | None:
    """``(variable, stride, size)`` of an atom that is ``variable // stride % size``."""
    modulus = None
    if atom.kind == "mod":
        inner, modulus = atom.args
        if inner.const or len(inner.terms) != 1 or inner.terms[0][1] != 1:
            return None
        atom = inner.terms[0][0]
    stride = 1
    if atom.kind == "div":
        inner, stride = atom.args
        found = plain_variable(inner)
        if found is None:
            return None
        atom = found
    if atom.kind != "var" or (atom.hi + 1) % stride:
        return None
    size = (atom.hi + 1) // stride
    if modulus is None:
        return atom, stride, size
    return (atom, stride, modulus) if size % modulus == 0 else None


def substitute(index: Index, by: Mapping[str, Index]) -> Index:
    """An index with its variables replaced."""
    total = Index(index.const)
    for atom, coefficient in index.terms:
        total = total + _replaced(atom, by) * coefficient
    return total


def _replaced(atom: Atom, by: Mapping[str, Index]) -> Index:
    if atom.kind == "var":
        return by[atom.args[0]]
    inner, n = atom.args
    inner = substitute(inner, by)
    return inner // n if atom.kind == "div" else inner % n
