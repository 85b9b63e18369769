"""What all schedules share: the plan of a fusion's loops; and the `map` schedule."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from smelt.backends.lowering import Fused, Place, fuse_variables
from smelt.ir import mlir
from smelt.ir.aval import Aval
from smelt.ir.builder import Function, OpView, Value
from smelt.ir.index import Atom, Index, linearize
from smelt.ir.scalar import INDEX, Scalar, compute_dtype
from smelt.passes.fusion_analysis import is_row_reduction, operand_reads, reduced_axes

from .kernel import CpuKernel, KernelModule, Memory, buffer_type
from .loops import Nest, Split, emit_nest
from .streaming import Read, can_stream, emit_streaming

#: The blocks in which a transpose runs.
BLOCK_ROWS = 64
BLOCK_COLUMNS = 64
#: Length of a line of a block that was copied into L1: no power of two, so that columns do not collide.
BLOCK_PITCH = 80
#: Operands of a transpose kernel that are copied block by block.
STAGED = 2


@dataclass
class Step:
    """One kernel function, and how its parallel dimension is dealt out."""

    function: str
    body: Function | None  #: None: the operands are values of @main
    split: Split
    operands: list[Any]  #: values of the body, or (offset in the scratch, aval)


@dataclass
class Plan:
    """A fusion body with its index variables."""

    body: Function
    kept: list[Index]
    kept_variables: list[tuple[Any, int]]
    places: dict[Value, Place]  #: of outputs and of reductions' operands (by the reduction's result)
    spaces: dict[tuple[int, ...], list[tuple[Any, int]]]  #: inner extents → variables
    space_of: dict[Value, tuple[int, ...]]  #: of outputs and reductions
    stage: dict[Value, int]  #: of reductions: which loop computes them; of outputs: the earliest
    uses: list[Index] = field(default_factory=list)
    loads: list[tuple[Value, Place]] = field(default_factory=list)

    @property
    def reductions(self) -> list[OpView]:
        return [op for op in self.body.ops if is_row_reduction(op)]


def make_plan(body: Function, kept_axes: Sequence[Sequence[int]] | None) -> Plan:
    """Variables for a fusion; `kept_axes`: for each output, which of its axes are the kept ones."""
    first = body.returns[0]
    if kept_axes is None:
        kept_axes = [tuple(range(v.ndim)) for v in body.returns]
    kept_shape = [1 if a < 0 else first.shape[a] for a in kept_axes[0]]
    kept_variables = [(f"o{i}", extent) for i, extent in enumerate(kept_shape)]
    kept = [Index.variable(name, extent) for name, extent in kept_variables]
    plan = Plan(body, kept, kept_variables, {}, {}, {}, {})

    def inner(extents: tuple[int, ...]) -> list[Index]:
        if extents not in plan.spaces:
            tag = "x".join(map(str, extents))
            plan.spaces[extents] = [(f"r{i}_{tag}", extent) for i, extent in enumerate(extents)]
        return [Index.variable(name, extent) for name, extent in plan.spaces[extents]]

    def place(value: Value, shape: Sequence[int], axes: Sequence[int]) -> None:
        """`axes[i]` of `shape` runs over kept position i; the other axes are inner."""
        extents = tuple(d for a, d in enumerate(shape) if a not in axes and d != 1)
        rest = iter(inner(extents))
        at = dict(zip(axes, kept))
        plan.places[value] = tuple(
            at[a] if a in at else next(rest) if d != 1 else Index(0) for a, d in enumerate(shape)
        )
        plan.space_of[value] = extents

    for v, axes in zip(body.returns, kept_axes):
        if v.owner is None or not is_row_reduction(v.owner):
            place(v, v.shape, axes)
    depth: dict[Value, int] = {}
    for op in body.ops:
        level = max((depth.get(v, 0) for v in op.operands), default=0)
        if is_row_reduction(op):
            shape, gone = op.operands[0].shape, reduced_axes(op)
            place(op.results[0], shape, [a for a in range(len(shape)) if a not in gone])
            plan.stage[op.results[0]] = level
            level += 1
        depth[op.results[0]] = level
    for v in body.returns:
        plan.stage.setdefault(v, depth.get(v, 0))
    _collect_uses(plan)
    return plan


def _collect_uses(plan: Plan) -> None:
    """Every address and number that the kernel computes from its loop variables."""
    reads: dict[Value, dict[Place, None]] = {}
    numbers: list[Index] = []
    for v in plan.body.returns:
        if v.owner is None or not is_row_reduction(v.owner):
            reads.setdefault(v, {})[plan.places[v]] = None
            numbers.append(linearize(plan.places[v], v.shape))
        else:
            reads.setdefault(v, {})[tuple(plan.kept)] = None
            numbers.append(linearize(plan.kept, v.shape))
    for op in reversed(plan.body.ops):
        v = op.results[0]
        if v not in reads:
            continue
        if is_row_reduction(op):
            reads.setdefault(op.operands[0], {})[plan.places[v]] = None
        else:
            for at in reads[v]:
                for operand, there in operand_reads(op, at, numbers):
                    reads.setdefault(operand, {})[there] = None
    for v in plan.body.arguments:
        plan.loads += [(v, at) for at in reads.get(v, ())]
        numbers += [linearize(at, v.shape) for at in reads.get(v, ())]
    plan.uses = numbers


def build_map(module: KernelModule, name: str, body: Function) -> Step:
    """Every element of the outputs by itself, the innermost loop contiguous."""
    plan = make_plan(body, None)
    loops = fuse_variables(plan.kept_variables, plan.uses)
    across = crossing_loop(loops, plan.uses)
    if across is not None:
        return _build_blocks(module, name, plan, loops, across)
    nest = Nest.plan(loops, lanes=True)
    k, outputs, lo, hi = start_kernel(module, name, body)

    targets = [(memory, plan.places[v]) for v, memory in zip(body.returns, outputs)]
    streams = nest.lanes and can_stream(nest.loops[-1], targets)
    reads = [Read(k.memory[v], at) for v, at in plan.loads]

    def line(first: Scalar | None = None, last: Scalar | None = None) -> None:
        if first is None or last is None:  # no loop is innermost
            element()
        elif streams:
            emit_streaming(k, nest.loops[-1], first, last, targets, values, reads)
        else:
            k.loop(nest.loops[-1], first, last, lambda at: element())

    def values() -> list[Scalar]:
        return [k.value(v, plan.places[v]) for v in body.returns]

    def element() -> None:
        for x, (memory, place) in zip(values(), targets):
            k.store(x, memory, place)

    if all(v.aval.size for v in body.returns):
        emit_nest(k, nest, lo, hi, line)
    k.emit("func.return", [], [])
    return Step(name, body, nest.split, [*body.arguments, *body.returns])


def crossing_loop(loops: Sequence[Fused], uses: Sequence[Index]) -> int | None:
    """The loop along which some access is contiguous that is strided in the innermost loop."""
    if len(loops) < 2 or loops[-1].extent < 8:
        return None

    for use in uses:
        for i, loop in enumerate(loops[:-1]):
            if loop.extent >= 8 and _crosses(use, loop, loops[-1]):
                return i
    return None


def _crosses(use: Index, rows: Fused, columns: Fused) -> bool:
    """Whether an access is contiguous along `rows` and strided along `columns`."""

    def coefficient(loop: Fused) -> int:
        name, extent = loop.variables[-1]
        return abs(use.coefficient(Atom("var", (name,), 0, extent - 1)))

    return coefficient(rows) == 1 and coefficient(columns) >= 16


def _build_blocks(module: KernelModule, name: str, plan: Plan, loops: Sequence[Fused], across: int) -> Step:
    """A map in blocks of two loops, each of which is contiguous for some access."""
    body = plan.body
    rows, columns = loops[across], loops[-1]
    nest = Nest.plan([*loops[:across], *loops[across + 1 : -1], rows], lanes=True, tile=BLOCK_ROWS)
    k, outputs, lo, hi = start_kernel(module, name, body)
    staged = [
        (v, at, k.scratch(BLOCK_COLUMNS * BLOCK_PITCH, compute_dtype(v.dtype)))
        for v, at in plan.loads
        if _crosses(linearize(at, v.shape), rows, columns)
    ][:STAGED]

    def block(first: Scalar, last: Scalar) -> None:
        end = k.const(columns.extent, INDEX)

        def strip(left: Scalar) -> None:
            right = k.op("arith.minui", [left + BLOCK_COLUMNS, end], INDEX)
            for v, at, memory in staged:

                def copy(i: Scalar, j: Scalar, v: Value = v, at: Place = at, memory: Memory = memory) -> None:
                    k.write(k.load(v, at), memory, (j - left) * BLOCK_PITCH + (i - first))

                def copy_line(j: Scalar, copy: Any = copy) -> None:
                    k.loop(rows, first, last, lambda i: copy(i, j))

                k.loop(columns, left, right, copy_line)
            k.loop(rows, first, last, lambda i: line(i - first, left, right))

        k.loop(None, k.const(0, INDEX), end, strip, step=BLOCK_COLUMNS)

    def line(i: Scalar, left: Scalar, right: Scalar) -> None:
        k.loop(columns, left, right, lambda j: element(i, j - left))

    def element(i: Scalar, j: Scalar) -> None:
        for v, at, memory in staged:
            k.scopes[-1][v, at] = k.read(memory, j * BLOCK_PITCH + i)
        for v, memory in zip(body.returns, outputs):
            k.store(k.value(v, plan.places[v]), memory, plan.places[v])

    if all(v.aval.size for v in body.returns):
        emit_nest(k, nest, lo, hi, block)
    k.emit("func.return", [], [])
    return Step(name, body, nest.split, [*body.arguments, *body.returns])


def start_kernel(
    module: KernelModule, name: str, body: Function, results: Sequence[Aval] | None = None
) -> tuple[CpuKernel, list[Memory], Scalar, Scalar]:
    """A kernel function (arguments, results, lo, hi) and its builder."""
    avals = [v.aval for v in body.arguments]
    results = [v.aval for v in body.returns] if results is None else results
    types = [buffer_type(a) for a in (*avals, *results)]
    index = mlir.ir.IndexType.get(body.mlir.context)
    location = body.mlir.location
    entry = module.function(name, [*types, index, index], location, noalias=range(len(types)))
    k = CpuKernel(module, entry, location, body)
    *memrefs, lo, hi = entry.arguments
    for v, memref in zip(body.arguments, memrefs):
        k.memory[v] = Memory(memref, v.aval)
    outputs = [Memory(m, a) for m, a in zip(memrefs[len(avals) :], results)]
    return k, outputs, Scalar(k, lo, INDEX), Scalar(k, hi, INDEX)
