"""Contractions that are small, shallow or complex: loops over the elements of the result, with the depth inside."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from smelt.backends.contraction import Operand, Product
from smelt.backends.lowering import Fused, fuse_variables
from smelt.ir.index import Atom, linearize, names_of
from smelt.ir.scalar import Scalar, compute_dtype

from ..kernel import KernelModule
from ..loops import Nest, emit_nest, reduce_loops
from ..rows import LINE, line_width
from ..schedules import ScheduledKernel, start_kernel
from .tiles import addresses, runs_along, store_outputs

#: Lines of sums that are shorter than this stay in registers.
SHORT = 4


def build_elements(module: KernelModule, name: str, product: Product) -> ScheduledKernel:
    """Every element of the result by itself, or a line of them, with the sums in L1, where that is contiguous."""
    uses = addresses(product)
    k, outputs, lo, hi = start_kernel(module, name, product.body)
    out = linearize(product.outputs[0][1], product.outputs[0][0].shape)
    free = [v for loop in (product.batch, product.rows, product.columns) for v in loop.variables]
    free.sort(key=lambda v: -out.coefficient(Atom("var", (v[0],), 0, v[1] - 1)))
    loops = fuse_variables(free, uses)
    depth = fuse_variables(product.depth.variables, uses)
    dtype = compute_dtype(product.dtype)
    operands = (product.lhs, product.rhs)
    lanes = bool(loops) and loops[-1].extent >= SHORT and not any(_strides(o, loops[-1:]) for o in operands)
    nest = Nest.plan(loops, lanes, line_width(loops) if lanes else None)
    start = k.const(0, dtype)

    def step(total: Scalar) -> Scalar:
        return product.rules.accumulate(k, total, *(operand.read(k) for operand in operands))

    def element() -> None:
        (total,) = reduce_loops(k, depth, lambda carried: [step(*carried)], [start])
        store_outputs(k, product, outputs, lambda: total)

    def line(first: Any = None, last: Any = None) -> None:
        if not lanes:
            element()
            return
        sums = k.scratch(LINE, dtype)
        lane = loops[-1]

        def each(body: Callable[[Scalar], Any]) -> None:
            k.loop(lane, first, last, lambda at: body(at - first))

        def steps(_: list[Scalar]) -> list[Scalar]:
            each(lambda i: k.write(step(k.read(sums, i)), sums, i))
            return []

        each(lambda i: k.write(start, sums, i))
        reduce_loops(k, depth, steps, [])
        each(lambda i: store_outputs(k, product, outputs, lambda: k.read(sums, i)))

    if product.result.aval.size:
        emit_nest(k, nest, lo, hi, line)
    k.emit("func.return", [], [])
    return ScheduledKernel(name, product.body, nest.split, [*product.body.arguments, *product.body.returns])


def _strides(operand: Operand, loops: Sequence[Fused]) -> bool:
    """Whether some array that an operand is read from is strided along the innermost of some loops."""
    names = set(loops[-1].names)
    for v, at in operand.loads:
        offset = linearize(at, v.shape)
        moves = not names_of(at).isdisjoint(names)
        if moves and not runs_along(offset, loops):
            return True
    return False
