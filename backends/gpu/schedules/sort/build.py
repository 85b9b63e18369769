"""The ops `sort` and `argsort`."""

from __future__ import annotations

import math

from smelt.ir.builder import OpView

from ...kernel import GpuModule
from ..schedule import ScheduledKernel, ScratchPlan, source_lines
from .sorting import Layout, Sorted, sort_steps


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
