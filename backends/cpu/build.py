"""From a fusion to its kernels, by schedule."""

from __future__ import annotations

import math

from smelt.ir import mlir
from smelt.ir.builder import Function
from smelt.ir.errors import SmeltError
from smelt.passes.kernels.analysis import kept_axes, split_chunks
from smelt.passes.kernels.check import verify_fusion

from .contract.attention import build_attention
from .contract.build import build_contract
from .kernel import KernelModule
from .maps import build_map
from .merged_rows import Merging
from .panels import build_panels
from .reductions import build_row, build_split
from .scan_scatter import build_scan, build_scatter
from .schedules import ScheduledKernel
from .short_rows import build_short_rows
from .vector_rows import build_vector_rows


def build(module: KernelModule, body: Function, end: int | None = None) -> tuple[str, list[ScheduledKernel]]:
    """The schedule of a fusion, and the steps that run it.

    `end`: of the arena: behind it there may be memory for each thread. None where there may not.
    """
    ir = mlir.ir
    attrs = body.mlir.attributes
    if "smelt.fusion" not in attrs:
        raise SmeltError(f"@{body.name} is called but was not made by the fuse pass; run inline and fuse first")
    verify_fusion(body)
    schedule = ir.StringAttr(attrs["smelt.fusion"]).value
    if schedule == "map":
        return schedule, build_map(module, body.name, body)
    if schedule == "scan":
        return schedule, [build_scan(module, body.name, body)]
    if schedule == "scatter":
        return schedule, build_scatter(module, body.name, body)
    if schedule == "contract":
        return schedule, [build_contract(module, body.name, body)]
    if schedule == "attention":
        return schedule, [build_attention(module, body.name, body)]
    kept, chunks = kept_axes(body), split_chunks(body)
    if kept is None or schedule not in ("row", "split"):
        raise SmeltError(
            f"@{body.name}: the cpu backend has no schedule {schedule!r}: the module was fused for another device; "
            "compile for this one what it was before (--pass-pipeline=cpu)"
        )
    if schedule == "row":
        merging = Merging.of(body, kept)
        if merging is not None and merging.is_reduced:
            return schedule, [merging.build(module, f"{body.name}_merged")]
        panels = None if end is None else build_panels(module, f"{body.name}_panels", body, kept, end)
        if panels is not None:
            return schedule, [panels]
        if merging is not None:
            return schedule, [merging.build(module, f"{body.name}_merged")]
        found = build_vector_rows(module, f"{body.name}_vectors", body, kept)
        found = found or build_short_rows(module, f"{body.name}_short", body, kept)
        found = found or build_vector_rows(module, f"{body.name}_vectors", body, kept, math.inf)
        return schedule, [found or build_row(module, body.name, body, kept)]
    return schedule, build_split(module, body.name, body, kept, chunks)
