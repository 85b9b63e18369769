"""Small kernels, which take longer to compile than they will ever run: LLVM does less for them.

Left alone, LLVM unrolls loops as far as the processor's buffers reach, and whole ones that are short. For arrays that
fit into a few vectors that is half of the time of a compile, for nothing.
"""

from __future__ import annotations

import functools
from typing import Any

from smelt.ir import mlir
from smelt.ir.builder import Function
from smelt.ir.dialect import context

#: Elements that the ops of a small kernel compute and read, all together: a few microseconds.
SMALL = 32 * 1024


def is_small(body: Function) -> bool:
    """Whether a kernel does so little that it does not matter how fast."""
    return sum(max(v.aval.size for v in (*op.operands, *op.results)) for op in body.ops) <= SMALL


def leave_rolled(loop: Any) -> None:
    """Tell LLVM to make vectors of an ``scf.for``, but no more than one at a time."""
    loop.attributes["loop_annotation"] = _annotation()


@functools.cache
def _annotation() -> Any:
    spelling = "#llvm.loop_annotation<unroll = <disable = true>, interleave = <count = 1 : i32>>"
    return mlir.ir.Attribute.parse(spelling, context())
