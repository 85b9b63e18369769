"""Patterns on contractions: products of one place, a vector times a matrix whose elements were moved."""

from __future__ import annotations

import math

from smelt.ir.builder import OpView, Value
from smelt.ir.ops.contract import DotGeneral

from .patterns import PatternBuilder, Site, pattern


@pattern("dot_general", "wide_dot_general")
def product_of_one_place(b: PatternBuilder, at: Site) -> Value | None:
    """lhs · rhs, summed over one place → the product of elements, which fuses with what makes and what reads these.

    Products of vectors are such, gradients of each example too: kernels compute their elements where they read them.
    """
    op = at.op
    assert isinstance(op, DotGeneral)
    if math.prod(op.depth(*(x.aval for x in at.operands), **at.attrs)) != 1:
        return None
    batch, rows, columns, _ = op.loops(*(x.ndim for x in at.operands), **at.attrs)

    def spread(side: int) -> Value:
        """An operand with the axes of the result, one place long where they are those of the other operand alone."""
        x = at.operands[side]
        x = b.convert_to(x, op.result_dtype(x.dtype))
        kept = [pair[side] for pair in (*batch, *rows, *columns)]
        axes = [a for a in kept if a is not None]
        left = [a for a in range(x.ndim) if a not in axes]
        moved = x if axes == sorted(axes) else b.transpose(x, permutation=(*axes, *left))
        placed = b.reshape_to(moved, [1 if a is None else x.shape[a] for a in kept])
        return b.broadcast_to(placed, at.shape)

    return b.mul(spread(0), spread(1))


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


@pattern("dot_general", "wide_dot_general")
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
