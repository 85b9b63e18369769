"""From a fusion to its kernels, by schedule."""

from __future__ import annotations

from typing import Any

from smelt.ir import mlir
from smelt.ir.builder import Function, OpView, read_function
from smelt.ir.errors import SmeltError
from smelt.passes.kernels.analysis import kept_axes
from smelt.passes.kernels.check import verify_fusion

from ..kernel import GpuModule
from .calls import build_call
from .contract.attention import build_attention
from .contract.build import build_contract
from .contract.chain import build_chain
from .contract.chains import build_chains
from .loops import build_loop
from .maps import build_map
from .rows.build import build_row
from .scan.build import build_scan
from .scatter.build import build_scatter
from .schedule import ScheduledKernel, ScratchPlan
from .sort.build import build_sort


def build(
    module: GpuModule, body: Function, scratch: ScratchPlan, found: dict[str, Any] | None = None
) -> list[ScheduledKernel]:
    """The steps that run a fusion. `found`: the functions of its module."""
    attrs = body.mlir.attributes
    if "smelt.fusion" not in attrs:
        raise SmeltError(f"@{body.name} is called but was not made by the fuse pass; run inline and fuse first")
    verify_fusion(body)
    schedule = mlir.ir.StringAttr(attrs["smelt.fusion"]).value
    if schedule == "map":
        return build_map(module, body)
    if schedule == "scan":
        return build_scan(module, body, scratch)
    if schedule == "scatter":
        return build_scatter(module, body, scratch)
    if schedule == "contract":
        return build_contract(module, body, scratch)
    if schedule == "attention":
        return build_attention(module, body, scratch)
    if schedule == "chain":
        return build_chain(module, body)
    if schedule == "chains" and found is not None:
        return build_chains(module, body, scratch, found, lambda callee: build(module, callee, scratch, found))
    if schedule == "loop" and found is not None:
        (loop,) = body.ops
        return build_loop(module, body, loop, read_function(found[loop.attrs["body"]]))
    kept = kept_axes(body)
    assert kept is not None
    if schedule in ("row", "split"):
        return build_row(module, body, kept, scratch)
    raise SmeltError(f"@{body.name}: GPUs have no schedule {schedule!r}")


def build_op(module: GpuModule, op: OpView, scratch: ScratchPlan) -> list[ScheduledKernel]:
    """The steps that run an op that no fusion took."""
    if op.op.kind == "sort":
        return build_sort(module, op, scratch)
    if op.op.kind == "library" and module.library is not None:
        return build_call(module, op, scratch)
    raise SmeltError(f"smelt.{op.name} has no kernel on GPUs; the place pass gives such ops to the CPU")
