"""Contractions that are small, shallow or complex: loops over the elements of the result, with the depth inside.

So are batches of which one operand has a vector each, and whose elements lie beside each other: a convolution by
channel. What lies across the lines of the result, as its weights do, is turned once.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from smelt.backends.contraction import Operand, Product
from smelt.backends.lowering import Fused, fuse_variables
from smelt.ir.index import Access, Atom, Index, linearize, names_of
from smelt.ir.kinds import holds
from smelt.ir.scalar import INDEX, Scalar, compute_dtype

from ..kernel import CpuKernel, KernelModule, Memory
from ..loops import Nest, emit_nest, inner_loops, reduce_loops
from ..rows import LINE, SCRATCH_BYTES, line_width
from ..schedules import ScheduledKernel, start_kernel
from .tiles import addresses, lanes_of, runs_along, store_outputs

#: Runs a body at each element of a part of a line.
Each = Callable[[Callable[[Scalar], Any]], None]
#: Lines of sums that are shorter than this stay in registers.
SHORT = 4
#: So many steps of the depth are taken at once, with sums in registers, and so many have sums of their own in memory.
UNROLLED, BLOCK_STEPS = 32, 128
#: To turn an operand takes as long as a line; with fewer lines it does not pay.
FEWEST_LINES = 8


def build_elements(module: KernelModule, name: str, product: Product) -> ScheduledKernel:
    """Every element of the result by itself, or a line of them, with the sums in L1, where that is contiguous."""
    k, outputs, lo, hi = start_kernel(module, name, product.body)
    loops = free_loops(product)
    lanes = has_lines(product)
    nest = Nest.plan(loops, lanes, line_width(loops) if lanes else None)
    elements = _Elements(k, product, outputs, loops, lanes)
    if product.result.aval.size:
        for tile in elements.tiles.values():
            tile.fill()
        emit_nest(k, nest, lo, hi, elements.line if lanes else elements.element)
    k.emit("func.return", [], [])
    return ScheduledKernel(name, product.body, nest.split, [*product.body.arguments, *product.body.returns])


class _Elements:
    """Elements of a contraction in a kernel.

    Attributes:
        tiles: by identity of an operand whose neighbours along a line lie far apart, that operand turned.
    """

    def __init__(self, k: CpuKernel, product: Product, outputs: list[Memory], loops: list[Fused], lanes: bool):
        self._k, self._product, self._outputs, self._loops = k, product, outputs, loops
        self._depth = fuse_variables(product.depth.variables, addresses(product))
        self._operands = (product.lhs, product.rhs)
        dtype = compute_dtype(product.dtype)
        self._start = k.const(0, dtype)
        turned = [o for o in self._operands if lanes and is_strided(o, loops[-1:])]
        self.tiles = {id(o): _Turned(k, o, loops[-1], product.depth) for o in turned}

    def _read(self, operand: Operand, inside: bool) -> Scalar:
        if id(operand) in self.tiles:
            return self.tiles[id(operand)].read()
        return (replace(operand, access=Access(operand.access.place)) if inside else operand).read(self._k)

    def _step(self, total: Scalar, inside: bool = False) -> Scalar:
        read = [self._read(operand, inside) for operand in self._operands]
        return self._product.rules.accumulate(self._k, total, *read)

    def element(self) -> None:
        """The element at the current position."""
        k = self._k
        (total,) = reduce_loops(k, self._depth, lambda carried: [self._step(carried[0])], [self._start])
        store_outputs(k, self._product, self._outputs, lambda: total)

    def line(self, first: Any, last: Any) -> None:
        """The elements first … last of a line: each with its sum in a register, or all with sums in L1."""
        k, lane = self._k, self._loops[-1]
        guards = [guard for o in self._operands if id(o) not in self.tiles for guard in o.access.guards]
        sums = k.scratch(LINE, compute_dtype(self._product.dtype))

        def each(body: Callable[[Scalar], Any]) -> None:
            k.loop(lane, first, last, lambda at: body(at - first))

        long = self._product.depth.extent > UNROLLED
        if k.hasty or long or not set(lane.names).isdisjoint(names_of(g.index for g in guards)):
            self._in_memory(each, sums)
            return
        conditions: list[Scalar] = []
        unrolled(k, self._depth, lambda: conditions.extend(x for x in [holds(k, guards)] if x is not None))
        if not conditions:
            each(self._in_register)
            return
        inside = functools.reduce(k.logical_and, conditions)  # of all steps: a line in the middle of an image
        k.when(inside, lambda: each(self._in_register))
        k.when(~inside, lambda: self._in_memory(each, sums))

    def _in_register(self, _: Scalar) -> None:
        totals = [self._start]
        unrolled(self._k, self._depth, lambda: totals.append(self._step(totals[-1], inside=True)))
        store_outputs(self._k, self._product, self._outputs, lambda: totals[-1])

    def _in_memory(self, each: Each, sums: Memory) -> None:
        k = self._k
        each(lambda i: k.write(self._start, sums, i))
        self._add_steps(each, sums)
        each(lambda i: store_outputs(k, self._product, self._outputs, lambda: k.read(sums, i)))

    def _add_steps(self, each: Each, sums: Memory) -> None:
        """Add all steps of the depth to a line of sums; many in parts: sums of sums round less often than one."""
        k, depth = self._k, self._depth

        def steps(into: Memory) -> list[Scalar]:
            each(lambda i: k.write(self._step(k.read(into, i)), into, i))
            return []

        if not self._product.rules.multiplies or not depth or depth[-1].extent <= BLOCK_STEPS:
            reduce_loops(k, depth, lambda _: steps(sums), [])
            return
        dtype, inner, zero = compute_dtype(self._product.dtype), depth[-1], k.const(0, INDEX)
        part, last = k.scratch(LINE, dtype), k.const(inner.extent, INDEX)

        def block(first: Scalar) -> None:
            end = k.op("arith.minui", [first + BLOCK_STEPS, last], INDEX)
            each(lambda i: k.write(k.const(0, dtype), part, i))
            k.loop(inner, first, end, lambda _: steps(part))
            each(lambda i: k.write(k.read(sums, i) + k.read(part, i), sums, i))

        def blocks() -> list[Scalar]:
            k.loop(None, zero, last, block, step=BLOCK_STEPS)
            return []

        reduce_loops(k, depth[:-1], lambda _: blocks(), [])


def unrolled(k: CpuKernel, loops: Sequence[Fused], body: Callable[[], Any]) -> None:
    """Every position of some loops, one by one."""
    if not loops:
        body()
        return
    for i in range(loops[0].extent):
        with k.at_position(loops[0], k.const(i, INDEX)):
            unrolled(k, loops[1:], body)


def has_lines(product: Product) -> bool:
    """Whether elements of the result that lie beside each other are made from such, or from what can be turned."""
    loops = free_loops(product)
    if not loops or loops[-1].extent < SHORT:
        return False
    many = product.result.aval.size >= FEWEST_LINES * loops[-1].extent
    return all(
        not is_strided(operand, loops[-1:]) or (many and _can_turn(operand, loops[-1], product.depth))
        for operand in (product.lhs, product.rhs)
    )


def is_by_channel(product: Product) -> bool:
    """Whether neighbours in the result are members of a batch, each of which multiplies with one vector."""
    loops = free_loops(product)
    if not loops or min(product.rows.extent, product.columns.extent) > 1:
        return False
    batched = set(loops[-1].names) <= set(product.batch.names)
    return batched and loops[-1].extent >= lanes_of(product.dtype) and has_lines(product)


def free_loops(product: Product, but: Sequence[str] = ()) -> list[Fused]:
    """The loops over the result, in the order in which it lies, but those of some variables."""
    out = linearize(product.outputs[0][1], product.outputs[0][0].shape)
    free = [v for loop in (product.batch, product.rows, product.columns) for v in loop.variables if v[0] not in but]
    free.sort(key=lambda v: -out.coefficient(Atom("var", (v[0],), 0, v[1] - 1)))
    return fuse_variables(free, addresses(product))


def _can_turn(operand: Operand, lane: Fused, depth: Fused) -> bool:
    """Whether an operand is the same for all lines, and small."""
    used = names_of([*operand.access.place, *(guard.index for guard in operand.access.guards)])
    nbytes = lane.extent * depth.extent * compute_dtype(operand.dtype).size
    return used <= {*lane.names, *depth.names} and 0 < nbytes <= SCRATCH_BYTES


class _Turned:
    """An operand of all lines with its elements in their order."""

    def __init__(self, k: CpuKernel, operand: Operand, lane: Fused, depth: Fused):
        self.k, self.operand, self.loops = k, operand, [Fused([v]) for v in (*depth.variables, *lane.variables)]
        variables = [(name, extent) for loop in self.loops for name, extent in loop.variables]
        extents = [extent for _, extent in variables]
        self._at = linearize([Index.variable(name, extent) for name, extent in variables], extents)
        self.memory: Memory = k.scratch(math.prod(extents), compute_dtype(operand.dtype))

    def fill(self) -> None:
        """Compute all of it."""
        k = self.k
        inner_loops(k, self.loops, lambda: k.write(self.operand.read(k), self.memory, k.index(self._at)))

    def read(self) -> Scalar:
        """The element where the loops stand."""
        return self.k.read(self.memory, self.k.index(self._at))


def is_strided(operand: Operand, loops: Sequence[Fused]) -> bool:
    """Whether some array that an operand is read from is strided along the innermost of some loops."""
    names = set(loops[-1].names)
    for v, at in operand.loads:
        offset = linearize(at, v.shape)
        moves = not names_of(at).isdisjoint(names)
        if moves and not runs_along(offset, loops):
            return True
    return False
