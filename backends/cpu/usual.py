"""Loops over elements of which rare ones take a longer way: arguments of sines that are huge, logarithms of zero.

A loop with a branch for each element has no vectors, and one that computes both ways takes as long as the longer one.
So a piece of the line is computed as if no element were rare, and it is noted whether one was; if so, the piece is
computed once more, the general way. Both ways give the same bits where both are right, so that it does not matter how
lines are cut into pieces; arrays of a few elements have the general way alone, which is less to compile. Where a piece
had rare elements, the next ones are not tried::

    right = true
    for i in piece: scratch[i] = quick(x[i]); right &= is_usual(x[i])
    if not right: for i in piece: scratch[i] = general(x[i])
"""

from __future__ import annotations

from collections.abc import Callable

from smelt.ir import dtypes
from smelt.ir.kinds import Elementwise
from smelt.ir.scalar import INDEX, Scalar

from .kernel import CpuKernel

#: How many pieces are computed the general way at once after one with rare elements.
PATIENCE = 8


def is_tried(k: CpuKernel) -> bool:
    """Whether some of a kernel's elements have a quicker way."""
    if k.checks is not None or k.body is None or k.tiny:
        return False
    return any(isinstance(op.op, Elementwise) and op.operands[0].dtype in op.op.usual for op in k.body.ops)


def fill(k: CpuKernel, size: Scalar, element: Callable[[Scalar], None], waits: Scalar) -> Scalar:
    """Run ``element(i)`` for all i < `size`, for all of them once more where one was rare.

    Args:
        waits: how many pieces are still not to be tried, an index.

    Returns:
        That number for the next piece.
    """
    zero = k.const(0, INDEX)

    def quick() -> Scalar:
        def step(at: Scalar, right: Scalar) -> list[Scalar]:
            with k.quick() as conditions:
                element(at)
            for condition in conditions:
                right = k.logical_and(right, condition)
            return [right]

        return k.loop(None, zero, size, step, [k.const(True, dtypes.bool_)])[0]

    tries = waits.eq(zero)
    with k.rolled():  # with what is carried, LLVM would interleave more than there are registers for
        right = k.if_(tries, quick, lambda: k.const(False, dtypes.bool_), dtypes.bool_)
    k.when(~right, lambda: k.loop(None, zero, size, element))
    return k.select(right, zero, k.select(tries, k.const(PATIENCE, INDEX), waits - 1))
