"""A scatter: its operands, where updates go, and how they are combined."""

from __future__ import annotations

from collections.abc import Sequence

from smelt.backends import scan_scatter
from smelt.backends.lowering import Coordinates, Fused
from smelt.ir.dtypes import DType
from smelt.ir.index import linearize
from smelt.ir.scalar import Scalar

from ...kernel import GpuKernel
from ..parts import Part
from ..schedule import ScheduledKernel


class Scattering(scan_scatter.Scattering):
    """A scatter of a fusion, as kernels of a GPU."""

    def axes(self, chosen: Sequence[int]) -> Fused:
        """One loop over some axes of updates."""
        return Fused([(f"u{a}", self.updates.shape[a]) for a in chosen if self.updates.shape[a] != 1])

    def target(self, k: GpuKernel, at: Coordinates | None = None) -> tuple[Scalar, Scalar]:
        """Whether the element of updates at the current position stays, and its offset in the result."""
        with k.named("inside"):
            inside, target = self.target_place(k, at)
        with k.named("target"):
            return inside, k.index(linearize(target, self.x.shape))

    def finish(self, part: Part, schedule: str, groups: int, threads: int, held: int = 0) -> ScheduledKernel:
        """Close a kernel that applies updates; `held` bytes are read from scratch."""
        old = 0 if self.mode == "set" else self.updates.aval.nbytes
        flops = self.op.op.flops * self.updates.aval.size
        return part.finish(schedule, groups, threads, old + held, self.updates.aval.nbytes, flops)


def dropped(k: GpuKernel, dtype: DType) -> Scalar:
    """The target of what is dropped: it sorts behind all others."""
    return k.const(2**dtype.bits - 1, dtype)
