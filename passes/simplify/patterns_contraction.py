"""Patterns on contractions: a vector times a matrix whose elements were moved."""

from __future__ import annotations

from smelt.ir.builder import OpView, Value
from smelt.ir.ops.contract import DotGeneral

from .patterns import PatternBuilder, Site, pattern


def _vector_and_matrix(at: Site) -> tuple[int, OpView, tuple[int, ...]] | None:
    """Which operand of a product has other axes than those summed over, where it alone has: its number, the reshape or
    transpose that makes it, and its summed axes."""
    assert isinstance(at.op, DotGeneral)
    summed = at.op.summed(**at.attrs)
    if summed is None:
        return None
    for i in range(2):
        if at.operands[1 - i].ndim == len(summed[1 - i]) and at.operands[i].ndim > len(summed[i]):
            made = at.operands[i].defined_by("transpose") or at.operands[i].defined_by("reshape")
            return (i, made, summed[i]) if made is not None else None
    return None


def _product(b: PatternBuilder, at: Site, matrix: int, x: Value, summed: tuple[int, ...]) -> Value:
    """The product with `x` in place of the matrix."""
    assert isinstance(at.op, DotGeneral)
    operands = list(at.operands)
    operands[matrix] = x
    return b.emit(at.op, operands, at.op.with_summed(matrix, summed, **at.attrs))[0]


@pattern("dot_general")
def vector_times_transpose(b: PatternBuilder, at: Site) -> Value | None:
    """vector · transpose(x) → transpose(vector · x), which moves fewer elements, and reads x as it lies.

    Also behind a reshape that leaves the axes summed over in front: vector · reshape(x) → reshape(vector · x).
    """
    found = _vector_and_matrix(at)
    if found is None:
        return None
    matrix, made, summed = found
    if made.name == "reshape":
        return _before_reshape(b, at, matrix, made.operands[0], summed)
    permutation = made.attrs["permutation"]
    product = _product(b, at, matrix, made.operands[0], tuple(permutation[a] for a in summed))
    order = [p for a, p in enumerate(permutation) if a not in summed]
    ranks = sorted(order)
    return b.transpose(product, permutation=tuple(ranks.index(p) for p in order))


def _before_reshape(b: PatternBuilder, at: Site, matrix: int, x: Value, summed: tuple[int, ...]) -> Value | None:
    """The product with what was reshaped, if that is a transpose and its first axes stay."""
    count = len(summed)
    kept = sorted(summed) == list(range(count)) and x.shape[:count] == at.operands[matrix].shape[:count]
    if not kept or x.defined_by("transpose") is None:
        return None
    return b.reshape_to(_product(b, at, matrix, x, summed), at.shape)
