"""Sums of very many numbers, by parts: a sum loses digits with each number that is added to it.

NumPy's sums are those of halves for the same reason.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from smelt.backends.accumulate import Accumulator
from smelt.backends.lowering import Fused
from smelt.ir.scalar import INDEX, Scalar

from .kernel import CpuKernel
from .loops import reduce_loops

#: Sums of more elements are sums of parts, of `PARTIAL` or more: functions take longer in loops inside of loops.
MOST_SUMMED, PARTIAL = 1 << 16, 1 << 14


def is_long_sum(accumulators: Sequence[Accumulator], loops: Sequence[Fused], chunks: int) -> bool:
    """Whether one of so many chunks of some loops has more elements than are summed in one go."""
    count = math.prod(loop.extent for loop in loops)
    return count > MOST_SUMMED * chunks and any(map(_is_rounded, accumulators))


def _is_rounded(a: Accumulator) -> bool:
    """Whether each step rounds what has been found so far."""
    return a.result.dtype.is_inexact and not a.is_arg and not a.op.op.idempotent


def by_parts(
    k: CpuKernel, loops: Sequence[Fused], body: Callable[[list[Scalar]], list[Scalar]],
    accumulators: Sequence[Accumulator], bounds: dict[int, tuple[Scalar, Scalar]],
) -> list[Scalar]:  # fmt: skip
    """Loops over many elements; what each step would round is found for parts, and put together.

    Args:
        bounds: narrow loops by their number, as of `reduce_loops`.
    """
    count = math.prod(loop.extent for loop in loops)
    size = max(PARTIAL, 1 << count.bit_length() // 2)  # about as many parts as each has numbers
    at = len(loops) - 1  # the loop of which a few steps are a part
    while at and math.prod(loop.extent for loop in loops[at:]) <= size:
        at -= 1
    outer, parted, inner = loops[:at], loops[at], loops[at + 1 :]
    steps = max(1, size // math.prod(loop.extent for loop in inner))
    below = {n - at - 1: bound for n, bound in bounds.items() if n > at}
    low, high = bounds.get(at) or (k.const(0, INDEX), k.const(parted.extent, INDEX))

    def part(first: Scalar, *totals: Scalar) -> list[Scalar]:
        last = k.op("arith.minui", [first + steps, high], INDEX)
        start = [a.start(k)[0] if _is_rounded(a) else x for a, x in zip(accumulators, totals)]
        k.expect(steps)
        found = k.loop(parted, first, last, lambda _, *state: reduce_loops(k, inner, body, state, below), start)
        return [a.merge(k, [x], [y])[0] if _is_rounded(a) else y for a, x, y in zip(accumulators, totals, found)]

    def whole(state: list[Scalar]) -> list[Scalar]:
        if k.breaks is not None:
            k.expect(max(1, parted.extent // steps // k.breaks.parts))
        return k.loop(None, low, high, part, state, step=steps)

    return reduce_loops(k, outer, whole, [a.start(k)[0] for a in accumulators], bounds)
