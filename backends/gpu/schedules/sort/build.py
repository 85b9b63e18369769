"""The ops `sort` and `argsort`."""

from __future__ import annotations

import math

from smelt.ir.builder import OpView

from ...kernel import GpuModule
from ..parts import power_of_two
from ..schedule import ScheduledKernel, ScratchPlan, source_lines
from .digits import digit_steps, sort_tiles
from .merging import TileShape, merge_steps
from .radix import ITEMS, Digits, RadixTile
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
        digits = Digits.of(what.dtype, what.bits)
        if digits is None or not _pays(module, what, digits):
            return merge_steps(module, what, scratch)
        if layout.length > RadixTile.threads * ITEMS:
            return digit_steps(module, what, digits, scratch)
        return [sort_tiles(module, what, digits, Pair(what.keys_out, what.order_out), layout)]
    block = power_of_two(max(2, layout.length))
    return [block_kernel(module, what, block, Pair(what.keys_out, what.order_out), layout)]


def _pays(module: GpuModule, what: Sorted, digits: Digits) -> bool:
    """Whether sorting by digits takes less time than merging: a digit about as much as two mergers, and the tiles that
    are merged as much as two digits (measured on an H200)."""
    tile = TileShape.of(module.gpu, what.layout.length, what.nbytes).size
    mergers = max(0, what.layout.length - 1).bit_length() - (tile - 1).bit_length()
    return 2 * digits.count <= 4 + max(0, mergers)
