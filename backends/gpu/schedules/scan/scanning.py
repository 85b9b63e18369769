"""A scan of a fusion, and how long ones are cut."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from smelt.backends.memory import Memory
from smelt.backends.scan_scatter import ScanPlan
from smelt.ir.aval import Aval
from smelt.ir.ops.scan_sort import Cumulative
from smelt.ir.scalar import Scalar, compute_dtype

from ...devices import Gpu
from ...kernel import FUNCTION_FLOPS, GpuKernel, GpuModule
from ..parts import Part, start_part
from ..schedule import ScheduledKernel, ScratchPlan

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


#: A kernel that scans rows or their pieces: where the result goes, what comes before pieces, and how they are cut.
ScanKernel = Callable[[Part, "Memory | None", "Memory | None", "Pieces | None"], ScheduledKernel]


def scan_kernels(
    module: GpuModule, scan: Scan, scratch: ScratchPlan, pieces: Pieces, kernel: ScanKernel,
    before: Callable[[Part, Scan, int], ScheduledKernel],
) -> list[ScheduledKernel]:  # fmt: skip
    """One kernel for whole rows; for pieces their totals (`kernel` without a result), what is `before` each, and each
    from there on."""
    out = scan.body.returns[0]
    roots = [(scan.x, scan.place)]
    if pieces.chunks == 1:
        part = start_part(module, scan.body, "", roots, [("out", out)])
        return [kernel(part, part.extra[0], None, None)]
    totals = scratch.take(Aval((scan.rows * pieces.chunks,), compute_dtype(scan.x.dtype)))
    part = start_part(module, scan.body, "_totals", roots, [("totals", totals)])
    steps = [kernel(part, None, part.extra[0], pieces)]
    part = start_part(module, scan.body, "_before", [], [("totals", totals)])
    steps.append(before(part, scan, pieces.chunks))
    part = start_part(module, scan.body, "", roots, [("totals", totals), ("out", out)])
    steps.append(kernel(part, part.extra[1], part.extra[0], pieces))
    return steps
