"""Positions of extrema by blocks: which block has the extremum first, then where it is in there.

An index for every element is wider than most elements, and to look for the extremum where it was not takes as long as
to find it. So a row is gone over for its extremum alone, and a block where that changed is noted; one block is looked
at again::

    for block in row:
        most = max(best, x[block, :])
        if most != best: best, at = most, block
    at * BLOCK + the first i with x[at, i] == best

Before this block nothing was as good, and NaN, which wins, changes no more. A line of rows does the same with the steps
that it takes at a time.
"""

from __future__ import annotations

from collections.abc import Sequence

from smelt.backends.accumulate import Accumulator
from smelt.backends.lowering import Fused
from smelt.ir import dtypes
from smelt.ir.scalar import INDEX, Scalar

from .kernel import CpuKernel

#: Bytes of a block of a row, and the fewest blocks: to put the lanes of vectors together takes as long as some steps.
BLOCK_BYTES, FEWEST = 2048, 2
#: Steps at a time of a line, at least, and how many steps there have to be: a block is read once more, lane by lane.
FEWEST_AT_ONCE, FEWEST_STEPS = 4, 64
#: Elements of up to so many bytes have indices of 16 bits in a block.
NARROW = 2
NOWHERE = 0xFFFFFFFF


def are_extrema(accumulators: Sequence[Accumulator]) -> bool:
    """Whether all are positions of extrema of numbers that are compared as they are."""
    return bool(accumulators) and all(a.is_arg and not a.op.operands[0].dtype.is_complex for a in accumulators)


def are_narrow_extrema(accumulators: Sequence[Accumulator]) -> bool:
    """Whether all are of elements narrower than their indices: of others, a line is no quicker by several steps."""
    return are_extrema(accumulators) and all(a.op.operands[0].dtype.size <= NARROW for a in accumulators)


def block_length(accumulators: Sequence[Accumulator], loops: Sequence[Fused]) -> int:
    """Elements of a block of a row; 0 where a row is better gone over twice."""
    if len(loops) != 1 or not are_extrema(accumulators):
        return 0
    length = BLOCK_BYTES // min(a.op.operands[0].dtype.size for a in accumulators)
    return length if loops[0].extent >= FEWEST * length else 0


def find_in_row(
    k: CpuKernel, loop: Fused, accumulators: Sequence[Accumulator], length: int, low: Scalar, high: Scalar
) -> list[list[Scalar]]:
    """The extrema of low … high of a row, and where they are; those of element 0 count, too."""
    best = [a.start(k)[0] for a in accumulators]
    count = len(accumulators)

    def block(start: Scalar, last: Scalar, state: Sequence[Scalar]) -> list[Scalar]:
        def step(_: Scalar, *found: Scalar) -> list[Scalar]:
            return [a.extreme(k, x) for a, x in zip(accumulators, found)]

        most = k.loop(loop, start, last, step, state[:count])
        return [*most, *(k.select(changed(k, old, new), start, at)
                         for old, new, at in zip(state[:count], most, state[count:]))]  # fmt: skip

    size = k.const(length, INDEX)
    rest = low + k.op("arith.divui", [high - low, size], INDEX) * length
    state = [*best, *([k.const(0, INDEX)] * count)]
    state = k.loop(None, low, rest, lambda at, *own: block(at, at + length, own), state, step=length)
    state = block(rest, high, state)
    return [
        [most, _first(k, loop, a, most, start, k.op("arith.minui", [start + length, high], INDEX))]
        for a, most, start in zip(accumulators, state[:count], state[count:])
    ]


def _first(k: CpuKernel, loop: Fused, a: Accumulator, best: Scalar, start: Scalar, last: Scalar) -> Scalar:
    """The first place from `start` on where the extremum is."""
    dtype = dtypes.uint16 if a.op.operands[0].dtype.size <= NARROW else dtypes.uint32
    nowhere = k.const((1 << 8 * dtype.size) - 1, dtype)

    def step(at: Scalar, found: Scalar) -> list[Scalar]:
        with k.at_position(loop, start + at):
            hit = a.is_at(k, best)
        return [k.op("arith.minui", [found, k.select(hit, k.convert(at, dtype), nowhere)], dtype)]

    (found,) = k.loop(None, k.const(0, INDEX), last - start, step, [nowhere])
    return k.convert(start, dtypes.uint32) + k.convert(found, dtypes.uint32)


def changed(k: CpuKernel, old: Scalar, new: Scalar) -> Scalar:
    """Whether an extremum is another one after some more elements."""
    differs = new.ne(old)
    return k.logical_and(differs, ~k.isnan(old)) if old.dtype.is_inexact else differs


def take_steps(
    k: CpuKernel, a: Accumulator, state: Sequence[Scalar], steps: Fused, positions: Sequence[Scalar]
) -> list[Scalar]:
    """The extremum after the elements at some positions, and the first of those where it changed last."""
    best, at = state
    most = best
    for position in positions:
        with k.at_position(steps, position):
            most = a.extreme(k, most)
    return [most, k.select(changed(k, best, most), k.convert(positions[0], dtypes.uint32), at)]


def find_in_steps(
    k: CpuKernel, a: Accumulator, state: Sequence[Scalar], steps: Fused, count: int, high: Scalar
) -> list[Scalar]:
    """The extremum and its place, among `count` positions from the one on that `take_steps` has found."""
    best, start = state
    first, found = k.convert(start, INDEX), k.const(NOWHERE, dtypes.uint32)
    for i in range(count):
        position = k.op("arith.minui", [first + i, high - 1], INDEX) if i else first
        with k.at_position(steps, position):
            found = a.first_at(k, best, found)
    return [best, found]
