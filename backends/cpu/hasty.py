"""Small kernels, which take longer to compile than they will ever run: LLVM optimizes them less.

By default, LLVM unrolls loops as far as the processor's buffers reach, and short ones completely. For arrays that fit
into a few vectors that takes half of the compile time, and gains nothing.
"""

from __future__ import annotations

import functools
from typing import Any

from smelt.ir import mlir
from smelt.ir.builder import Function
from smelt.ir.dialect import context

#: Elements that the ops of a small kernel compute and read, all together: a few microseconds.
SMALL = 32 * 1024
#: Elements of each array of a tiny kernel: it runs in less time than it takes to be called, however its elements are
#: computed.
TINY = 64
#: Elements in a vector: shorter loops have none.
LANES = 16


def is_small(body: Function) -> bool:
    """Whether a kernel does so little that it does not matter how fast."""
    return sum(max(v.aval.size for v in (*op.operands, *op.results)) for op in body.ops) <= SMALL


def is_tiny(body: Function) -> bool:
    """Whether a small kernel has so few elements that a quicker way for some of them is only more to compile."""
    return all(v.aval.size <= TINY for op in body.ops for v in (*op.operands, *op.results))


def leave_rolled(loop: Any) -> None:
    """Tell LLVM to make vectors of an ``scf.for``, but no more than one at a time, and none where it ends soon."""
    loop.attributes["loop_annotation"] = _annotation(_ends_soon(loop))


def leave_scalar(loop: Any) -> None:
    """Tell LLVM to make no vectors of an ``scf.for``."""
    loop.attributes["loop_annotation"] = _annotation(True)


def leave_whole(loop: Any) -> None:
    """Tell LLVM to make vectors of a short ``scf.for``, and not to unroll it before."""
    loop.attributes["loop_annotation"] = mlir.plain_attribute(
        "#llvm.loop_annotation<unroll = <disable = true>>", context()
    )


def is_nest(loop: Any) -> bool:
    """Whether there are loops in an ``scf.for``."""
    return any(operation.operation.name == "scf.for" for operation in loop.regions[0].blocks[0].operations)


def _ends_soon(loop: Any) -> bool:
    bounds = []
    for value in list(loop.operands)[:3]:
        made = getattr(value.owner, "operation", None)
        if made is None or made.name != "arith.constant":
            return False
        bounds.append(mlir.ir.IntegerAttr(made.attributes["value"]).value)
    return len(range(*bounds)) < LANES


@functools.cache
def _annotation(ends_soon: bool) -> Any:
    how = "vectorize = <disable = true>" if ends_soon else "interleave = <count = 1 : i32>"
    return mlir.plain_attribute(f"#llvm.loop_annotation<unroll = <disable = true>, {how}>", context())
