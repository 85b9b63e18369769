"""Rows of which numbers are left, and expensive functions of these: some rows one after the other, then what follows
from all of them, in vectors.

::

    for row in some rows: sum[row] = Σ (x[row] - y)²
    for row in these rows: result[row] = exp(-sum[row])
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence

from smelt.backends.lowering import Coordinates, Fused
from smelt.backends.plan import Plan
from smelt.ir.builder import Value
from smelt.ir.scalar import Scalar
from smelt.passes.kernels.analysis import is_row_reduction

from .hasty import is_small
from .kernel import CpuKernel, Memory
from .rows import RowKernel

#: Rows that are taken together, and the fewest that are worth it.
ROWS, FEWEST = 64, 16
#: Work of what follows from a row, in additions, from which on vectors pay; elements of a row beside which it counts.
EXPENSIVE, LONGEST = 10, 1024


def is_followed(plan: Plan, loops: Sequence[Fused]) -> bool:
    """Whether all that a kernel returns is made of a few numbers of each row, with much work, beside short rows."""
    if not loops or loops[-1].extent < FEWEST or is_small(plan.body):
        return False
    if any(plan.space_of.get(v) for v in plan.body.returns if not (v.owner and is_row_reduction(v.owner))):
        return False
    if max(map(math.prod, plan.spaces), default=0) > LONGEST:
        return False
    rows = math.prod(loop.extent for loop in loops)
    behind: set[Value] = set()
    work = 0.0
    for op in plan.body.ops:
        if is_row_reduction(op):
            behind.add(op.results[0])
        elif not behind.isdisjoint(op.operands):
            behind.add(op.results[0])
            work += op.op.flops if op.results[0].aval.size <= rows else 0
    return work >= EXPENSIVE


class FollowedRowKernel(RowKernel):
    """Builds the loops of some rows, and of what follows from them."""

    def __init__(self, k: CpuKernel, plan: Plan, outputs: list[Memory], lane: Fused | None, width: int):
        super().__init__(k, plan, outputs, None, width)
        assert lane is not None
        self.rows = lane
        self._saved: dict[Value, Memory] = {}

    def emit(self, first: Scalar | None = None, last: Scalar | None = None) -> None:
        """The rows first … last."""
        assert first is not None and last is not None
        k = self.k

        def row(at: Scalar) -> None:
            for stage, space, accumulators, outputs in self.stages():
                self.stage = stage
                self._row_stage(space, accumulators, outputs)
                for a in accumulators:
                    found = k.provided[a.result](tuple(self.plan.kept))
                    if a.result not in self._saved:
                        self._saved[a.result] = k.scratch(ROWS, found.dtype)
                    k.write(found, self._saved[a.result], at - first)

        def follow(at: Scalar) -> None:
            for v, memory in self._saved.items():
                k.provided[v] = functools.partial(self._read, memory, at - first)
            self.emit_kept()

        for body in (row, follow):
            k.expect(ROWS)
            k.loop(self.rows, first, last, body)

    def _read(self, memory: Memory, offset: Scalar, place: Coordinates) -> Scalar:
        return self.k.read(memory, offset)
