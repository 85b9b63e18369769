"""A scan of a fusion, and how long ones are cut."""

from __future__ import annotations

from dataclasses import dataclass

from smelt.backends.sequences import ScanPlan
from smelt.ir.ops.scan_sort import Cumulative
from smelt.ir.scalar import Scalar

from ...devices import Gpu
from ...kernel import FUNCTION_FLOPS, GpuKernel

#: Buffers that the kernel of a chunk has beside the arguments of a fusion.
OWN_BUFFERS = 2


class Scan(ScanPlan):
    """A scan of a fusion, as kernels of a GPU."""

    def is_divisible(self, gpu: Gpu) -> bool:
        """Whether a kernel has a buffer left for what comes before a chunk."""
        return len(self.body.arguments) + OWN_BUFFERS <= gpu.max_buffers

    def combine(self, k: GpuKernel, a: Scalar, b: Scalar) -> Scalar:
        """What came before with what comes next; a function of the module where that is long."""
        op = self.op.rules(Cumulative)
        if op.flops < FUNCTION_FLOPS:
            return op.combine(k, a, b)
        name = f"{self.op.name}_{a.dtype.mlir}"
        return k.call(("combine", name), name, [a, b], ["before", "next"], a.dtype, op.combine)

    @property
    def flops(self) -> float:
        own = max(self.op.op.flops, 1.0)
        return own * self.x.aval.size + sum(o.op.flops * o.results[0].aval.size for o in self.body.ops[:-1])


def chunks_of(length: int, wanted: int, least: int, unit: int = 1) -> tuple[int, int]:
    """In how many chunks to cut, and their length: a multiple of `unit`, at least `least` where they are several."""
    count = max(1, min(wanted, length // least))
    size = -(-length // count)
    size = -(-size // unit) * unit
    return -(-length // size), size


@dataclass(frozen=True)
class Pieces:
    """How rows are cut."""

    chunks: int
    size: int
