"""The ops `sort` and `argsort`."""

from __future__ import annotations

import math

from smelt.ir.builder import OpView

from ...kernel import GpuModule
from ..parts import power_of_two
from ..schedule import ScheduledKernel, ScratchPlan, source_lines
from .merging import merge_steps
from .sorting import SHARED_BLOCK, Layout, Pair, Sorted, block_kernel


def build_sort(module: GpuModule, op: OpView, scratch: ScratchPlan) -> list[ScheduledKernel]:
    """The kernels of a sort or argsort along an axis: stable, ascending, NaN last.

    The operands of the steps are the op's own operand and result, and scratch.
    """
    x, result = op.operands[0], op.results[0]
    axis = op.attrs["axis"]
    length, inner = x.shape[axis], math.prod(x.shape[axis + 1 :])
    keys_out, order_out = (None, result) if op.name == "argsort" else (result, None)
    layout = Layout(math.prod(x.shape[:axis]) * inner, length, max(1, inner))
    what = Sorted(op.name, op.location, source_lines([op]), x, layout, keys_out, order_out)
    return sort_steps(module, what, scratch)


def sort_steps(module: GpuModule, what: Sorted, scratch: ScratchPlan) -> list[ScheduledKernel]:
    """The kernels that sort rows, in order."""
    layout = what.layout
    if not layout.size:
        return []
    if layout.length > SHARED_BLOCK:
        return merge_steps(module, what, scratch)
    block = power_of_two(max(2, layout.length))
    return [block_kernel(module, what, block, Pair(what.keys_out, what.order_out), layout)]
