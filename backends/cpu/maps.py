"""The `map` schedule: every element of the results by itself."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from smelt.backends.lowering import Coordinates, Fused, fuse_variables
from smelt.backends.plan import Plan, always_inside, crosses, crossing_loop, is_static, make_plan, parts_of
from smelt.ir.builder import Function, Value
from smelt.ir.index import Atom, linearize
from smelt.ir.kinds import Fusible
from smelt.ir.scalar import INDEX, Scalar, compute_dtype

from .donations import in_place
from .kernel import CpuKernel, KernelModule, Memory, as_bytes
from .loops import Nest, emit_nest
from .schedules import ScheduledKernel, start_kernel
from .short_maps import build_short_map
from .streaming import LINE_BYTES, Read, emit_line, follows, is_large, prefetch

#: A map of no more elements is one kernel, however its elements are computed.
WHOLE = 16 * 1024
#: The blocks in which a transpose runs.
BLOCK_ROWS = 64
BLOCK_COLUMNS = 64
#: Length of a line of a block that was copied into L1: no power of two, so that columns do not collide.
BLOCK_PITCH = 80
#: Lanes of a vector, at most.
LANES = 16
#: Operands of a transpose kernel that are copied block by block.
STAGED = 2


def build_map(module: KernelModule, name: str, body: Function) -> list[ScheduledKernel]:
    """Every element of the outputs by itself, the innermost loop contiguous."""
    if body.returns[0].aval.size <= WHOLE:
        return [_build_part(module, name, body, [make_plan(body, None)])]
    plans = [make_plan(body, None, part) for part in parts_of(body)]
    if len(plans) == 1:
        return [_build_part(module, name, body, plans)]
    if _share(plans):
        return [replace(_build_part(module, name, body, plans), in_place=())]
    return [
        replace(_build_part(module, f"{name}_part{i}", body, [plan]), in_place=()) for i, plan in enumerate(plans)
    ]


def _share(plans: Sequence[Plan]) -> bool:
    """Whether parts run in one loop, since elements at the same place of each are computed from one thing."""
    first, *others = plans
    if not any(isinstance(op.op, Fusible) and op.rules(Fusible).parts_share for op in first.body.ops):
        return False
    return all(plan.kept_variables == first.kept_variables for plan in others) and _crossing(plans) is None


def _loops(plans: Sequence[Plan]) -> list[Fused]:
    return fuse_variables(plans[0].kept_variables, [use for plan in plans for use in plan.uses])


def _crossing(plans: Sequence[Plan]) -> int | None:
    return crossing_loop(_loops(plans), [use for plan in plans for use in plan.uses])


def _build_part(module: KernelModule, name: str, body: Function, plans: Sequence[Plan]) -> ScheduledKernel:
    """A map over the ranges of a plan; of several, whose loops are the same, side by side."""
    loops, across = _loops(plans), _crossing(plans)
    if across is not None:
        return _build_blocks(module, name, plans[0], loops, across)
    short = build_short_map(module, f"{name}_short", plans[0], loops) if len(plans) == 1 else None
    if short is not None:
        return short
    nest = Nest.plan(loops, lanes=True)
    k, outputs, lo, hi = start_kernel(module, name, body)

    places = [(v, plan.places[v]) for plan in plans for v in body.returns]
    targets = [(memory, at) for memory, (_, at) in zip(outputs * len(plans), places)]
    reads = [Read(k.memory[v], at) for v, at in dict.fromkeys(load for plan in plans for load in plan.loads)]

    def line(first: Scalar | None = None, last: Scalar | None = None) -> None:
        if first is None or last is None:  # no loop is innermost
            for x, (memory, place) in zip(values(), targets):
                k.store(x, memory, place)
        else:
            emit_line(k, nest.loops[-1], first, last, targets, values, reads)

    def values() -> list[Scalar]:
        return [k.value(v, at) for v, at in places]

    if all(v.aval.size for v in body.returns):
        emit_nest(k, nest, lo, hi, line)
    k.emit("func.return", [], [])
    operands = [*body.arguments, *body.returns]
    return ScheduledKernel(name, body, nest.split, operands, in_place=in_place(plans[0]))


def _build_blocks(module: KernelModule, name: str, plan: Plan, loops: Sequence[Fused], across: int) -> ScheduledKernel:
    """A map in blocks of two loops, each of which is contiguous for some access."""
    body = plan.body
    rows, columns = loops[across], loops[-1]
    nest = Nest.plan([*loops[:across], *loops[across + 1 : -1], rows], lanes=True, tile=BLOCK_ROWS)
    k, outputs, lo, hi = start_kernel(module, name, body)
    staged = [
        (v, at, k.scratch(BLOCK_COLUMNS * BLOCK_PITCH, compute_dtype(v.dtype)))
        for v, at in plan.loads
        if v.aval.size and is_static(at) and crosses(linearize(at, v.shape), rows, columns)
    ][:STAGED]

    #: their blocks turned, so that a line of the results reads neighbours; complex numbers stay as they are
    turned = {
        (v, at): k.scratch(BLOCK_ROWS * BLOCK_PITCH, memory.aval.dtype)
        for v, at, memory in staged if not memory.aval.dtype.is_complex
    }  # fmt: skip

    def stage(v: Value, at: Coordinates, memory: Memory, block: tuple[Scalar, ...]) -> None:
        """Copy a block of an operand into L1, line by line of the operand; fetch the line of the next block."""
        first, last, left, right = block
        ahead = _next_strip(v, at, rows, columns)

        def copy_line(j: Scalar) -> None:
            if ahead:
                with k.at_position(rows, first):
                    prefetch(k, k.memory[v], k.index(linearize(at, v.shape)), ahead, BLOCK_ROWS)
            k.loop(rows, first, last, lambda i: copy(i, j))

        def copy(i: Scalar, j: Scalar) -> None:
            k.write(_load_early(k, v, at), memory, (j - left) * BLOCK_PITCH + (i - first))

        k.loop(columns, left, right, copy_line)
        if (v, at) in turned:
            _turn(k, memory, turned[v, at], last - first, right - left)

    def block(first: Scalar, last: Scalar) -> None:
        end = k.const(columns.extent, INDEX)

        def strip(left: Scalar) -> None:
            right = k.op("arith.minui", [left + BLOCK_COLUMNS, end], INDEX)
            for v, at, memory in staged:
                stage(v, at, memory, (first, last, left, right))
            k.loop(rows, first, last, lambda i: line(i - first, left, right))

        k.loop(None, k.const(0, INDEX), end, strip, step=BLOCK_COLUMNS)

    targets = [(memory, plan.places[v]) for v, memory in zip(body.returns, outputs)]
    lines = {(v, at) for v, at, _ in staged}
    reads = [Read(k.memory[v], at, BLOCK_COLUMNS) for v, at in plan.loads if (v, at) not in lines]

    def line(i: Scalar, left: Scalar, right: Scalar) -> None:
        def values() -> list[Scalar]:
            j = k.loops[columns.names[0]][1] - left
            for v, at, memory in staged:
                if (v, at) in turned:
                    k.scopes[-1][v, at] = k.read(turned[v, at], i * BLOCK_PITCH + j)
                else:
                    k.scopes[-1][v, at] = k.read(memory, j * BLOCK_PITCH + i)
            return [k.value(v, plan.places[v]) for v in body.returns]

        emit_line(k, columns, left, right, targets, values, reads)

    if all(v.aval.size for v in body.returns):
        emit_nest(k, nest, lo, hi, block)
    k.emit("func.return", [], [])
    return ScheduledKernel(name, body, nest.split, [*body.arguments, *body.returns])


def _turn(k: CpuKernel, source: Memory, target: Memory, rows: Scalar, columns: Scalar) -> None:
    """A block with its lines for columns, square by square in registers; the last squares reach beyond it."""
    source, target = as_bytes(source), as_bytes(target)
    lanes = min(LANES, LINE_BYTES // source.aval.dtype.size)

    def square(i: Scalar, j: Scalar) -> None:
        read, written = ([(a + n) * BLOCK_PITCH + b for n in range(lanes)] for a, b in ((j, i), (i, j)))
        with k.vectors(lanes):
            for x, at in zip(k.transposed([k.load_vector(source, at) for at in read]), written):
                k.store_vector(x, target, at)

    zero = k.const(0, INDEX)
    k.loop(None, zero, rows, lambda i: k.loop(None, zero, columns, lambda j: square(i, j), step=lanes), step=lanes)


def _next_strip(v: Value, at: Coordinates, rows: Fused, columns: Fused) -> int:
    """How many elements further the next block reads a large operand; 0 where it is not to be fetched ahead."""
    index = linearize(at, v.shape)
    name, extent = columns.variables[-1]
    fetched = is_large(v.aval) and always_inside(v, at) and follows(index, rows)
    return BLOCK_COLUMNS * index.coefficient(Atom("var", (name,), 0, extent - 1)) if fetched else 0


def _load_early(k: CpuKernel, v: Value, at: Coordinates) -> Scalar:
    """An element before it is known whether it is needed: any other one where the place leaves its array."""
    offset = k.index(linearize(at, v.shape))
    if not always_inside(v, at):
        offset = k.op("arith.maxsi", [offset, k.const(0, INDEX)], INDEX)
        offset = k.op("arith.minsi", [offset, k.const(v.aval.size - 1, INDEX)], INDEX)
    return k.read(k.memory[v], offset)
