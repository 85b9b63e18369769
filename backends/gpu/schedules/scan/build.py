"""The `scan` schedule: running sums and the like along one axis.

Where the scanned axis is contiguous, the threads of a team scan a row together (`rows`). Else lines of threads scan
neighbouring columns (`columns`). Few long rows or columns are cut in chunks: their totals, a scan of the totals, and
the chunks with what comes before::

    fused_cumsum_totals   totals[row, chunk] = the chunk combined
    fused_cumsum_before   totals[row, chunk] = the chunks before it combined
    fused_cumsum          each chunk scanned, from totals[row, chunk] on

So an element is read twice and written once. To read it once, threadgroups would have to wait for what those before
them have found (decoupled look-back); Metal does not promise that a threadgroup goes on while another one waits.
"""

from __future__ import annotations

from smelt.ir.builder import Function

from ...kernel import GpuModule
from ..schedule import ScheduledKernel, ScratchPlan
from .columns import build_columns
from .rows import build_rows
from .scanning import Scan
from .short import short_kernel

#: Rows up to this length are scanned by one thread.
SHORT = 16


def build_scan(module: GpuModule, body: Function, scratch: ScratchPlan) -> list[ScheduledKernel]:
    """The kernels of a fusion that ends in a scan."""
    scan: Scan = Scan.of(body)
    if not scan.x.aval.size:
        return []
    if scan.length <= SHORT:
        return [short_kernel(module, scan)]
    return (build_columns if scan.after else build_rows)(module, scan, scratch)
