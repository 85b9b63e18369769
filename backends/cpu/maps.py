"""The `map` schedule: every element of the results by itself."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from smelt.backends.lowering import Coordinates, Fused, divide, fuse_variables
from smelt.backends.plan import Plan, always_inside, crosses, crossing_loop, is_static, make_plan, parts_of
from smelt.ir.builder import Function, Value
from smelt.ir.dtypes import DType
from smelt.ir.index import Atom, Index, linearize
from smelt.ir.kinds import Fusible
from smelt.ir.scalar import INDEX, Scalar

from .contract.tiles import has_wide_registers
from .donations import in_place
from .kernel import CpuKernel, KernelModule, Memory
from .lane_maps import build_lane_map
from .loops import Nest, emit_nest
from .schedules import ScheduledKernel, start_kernel
from .short_maps import build_short_map
from .streaming import (
    LINE_BYTES,
    Read,
    can_stream,
    emit_line,
    follows,
    is_aligned,
    is_large,
    piece_length,
    prefetch,
)
from .tiny_maps import build_tiny_map
from .vectors import INTERLEAVED_BYTES

#: A map of no more elements is one kernel, however its elements are computed.
WHOLE = 16 * 1024
#: A map of few elements is one vector if it has so many loops. One loop serves arrays of any size: kernels of many
#: sizes are one function.
LOOPS = 2
#: Rows and columns of the blocks in which a transpose runs, at least, and the bytes of each in an array: what is read
#: of a page, and what is written to one at a time.
BLOCK, ROW_BYTES = 64, 128
#: Blocks of rows that follow each other, at most, of which the same columns are turned before the next ones: what is
#: read stays on the same pages.
TOGETHER = 8
#: How much wider blocks are whose lines begin anywhere in a line of memory; all operands together.
UNALIGNED = 8
#: Bytes of all blocks that are copied at a time, about, at most: they lie on the stack of a thread, half a megabyte on
#: some systems.
STACK_BYTES = 256 << 10
#: Bytes of elements, at most, of which rows and columns that are left are part of a whole square: there are no smaller
#: ones, and one by one they take longer.
REACHING = 2
#: Lanes of a vector, at most.
LANES = 16
#: Lines of columns that are no longer are one line where they follow each other: LLVM makes no vectors of loops that
#: are known to be so short.
NARROW = 16
#: Bytes of a line of the smallest squares that are turned in registers.
SMALLEST = 16
#: Operands of a transpose kernel that are copied block by block.
STAGED = 2


def build_map(module: KernelModule, name: str, body: Function) -> list[ScheduledKernel]:
    """Every element of the outputs by itself, the innermost loop contiguous."""
    if body.returns[0].aval.size <= WHOLE:
        return [_build_part(module, name, body, [make_plan(body, None)])]
    in_lanes = build_lane_map(module, name, body)
    if in_lanes is not None:
        return in_lanes
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
    tiny = build_tiny_map(module, name, plans[0]) if len(plans) == 1 and len(loops) >= LOOPS else None
    if tiny is not None:
        return tiny
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


@dataclass(frozen=True)
class _Staged:
    """An operand that is contiguous along the rows of a block, of which a block is copied into L1.

    Attributes:
        plain: lines of it for columns, where elements are read one by one; those that lie as they do here can be
            turned as they are read, and need none.
        turned: lines for rows, so that a line of the results reads neighbours; complex numbers stay as they are.
        pitch: from line to line of `turned`.
    """

    value: Value
    place: Coordinates
    plain: Memory | None
    turned: Memory | None
    pitch: int

    @classmethod
    def of(
        cls, k: CpuKernel, v: Value, at: Coordinates, rows: Fused, size: tuple[int, int], packed: int = 0
    ) -> _Staged:  # fmt: skip
        """Memory for blocks of a `size`; `packed`: of so many elements to a line."""
        height, width = size
        direct, pitch = _is_read_turned(v, at, rows), packed or _pitch(width, v.dtype)
        plain = None if direct else k.scratch(width * _pitch(height, v.dtype), v.dtype)
        turned = None if v.dtype.is_complex else k.scratch(height * _pitch(width, v.dtype), v.dtype)
        return cls(v, at, plain, turned, pitch)

    def fetch(
        self, k: CpuKernel, loops: tuple[Fused, Fused], block: tuple[Scalar, Scalar, Scalar, Scalar],
        size: tuple[int, int], bounds: tuple[Scalar, Scalar],
    ) -> None:  # fmt: skip
        """Copy a block of the operand into L1, line by line of the operand; prefetch the line of the next block, which
        is that of the next of the rows within some bounds, or of the first of these in the next columns."""
        (rows, columns), (first, last, left, right), (height, width) = loops, block, size
        strip = _next_strip(self.value, self.place, rows, columns, width)
        if strip:
            below = first + height
            ahead = k.select(below < bounds[1], k.const(height, INDEX), bounds[0] - first + strip)

        def prefetch_line(j: Scalar) -> None:
            if strip:
                with k.at_position(columns, j), k.at_position(rows, first):
                    at = k.index(linearize(self.place, self.value.shape))
                    prefetch(k, k.memory[self.value], at, ahead, height, soon=False)

        if self.plain is None:
            _read_turned(k, self, loops, block, prefetch_line)
            return
        memory, pitch = self.plain, _pitch(height, self.plain.aval.dtype)

        def copy_line(j: Scalar) -> None:
            prefetch_line(j)
            k.loop(rows, first, last, lambda i: copy(i, j))

        def copy(i: Scalar, j: Scalar) -> None:
            k.write(_load_early(k, self.value, self.place), memory, (j - left) * pitch + (i - first))

        k.loop(columns, left, right, copy_line)
        if self.turned is not None:
            _turn(k, memory, self.turned, (last - first, right - left), (pitch, self.pitch))

    def read(self, k: CpuKernel, i: Scalar, j: Scalar, size: tuple[int, int]) -> Scalar:
        """The element in row i and column j of the block that was fetched."""
        height, _ = size
        if self.turned is not None:
            return k.read(self.turned, i * self.pitch + j)
        assert self.plain is not None
        return k.read(self.plain, j * _pitch(height, self.plain.aval.dtype) + i)


def _is_read_turned(v: Value, at: Coordinates, rows: Fused) -> bool:
    """Whether squares of an operand are turned as they are read."""
    whole = _squares(v.dtype) * _lanes(v.dtype) * v.dtype.size == LINE_BYTES  # else what is read pushes lines out
    return whole and not v.dtype.is_complex and always_inside(v, at) and follows(linearize(at, v.shape), rows)


def _copies(v: Value, at: Coordinates, rows: Fused) -> int:
    """How many copies there are of a block of an operand: as it lies, as it is needed, or both."""
    return 1 if v.dtype.is_complex or _is_read_turned(v, at, rows) else 2


def _is_packed(v: Value, at: Coordinates, rows: Fused, columns: Fused) -> bool:
    """Whether a line of columns begins where that of the row before ends."""
    index = linearize(at, v.shape)
    steps = [index.step(name) == columns.extent * rows.strides[name] for name, n in rows.variables if n > 1]
    return follows(index, columns) and all(steps)


def _pitch(length: int, dtype: DType) -> int:
    """From line to line of a block in L1: an odd number of lines of memory, so that columns do not collide."""
    return length + LINE_BYTES // dtype.size


def _build_blocks(module: KernelModule, name: str, plan: Plan, loops: Sequence[Fused], across: int) -> ScheduledKernel:
    """A map in blocks of two loops, each of which is contiguous for some access."""
    body = plan.body
    rows, columns = loops[across], loops[-1]
    crossing = [
        (v, at) for v, at in plan.loads
        if v.aval.size and is_static(at) and crosses(linearize(at, v.shape), rows, columns)
    ][:STAGED]  # fmt: skip
    height = max([BLOCK, *(ROW_BYTES // v.dtype.size for v, _ in crossing)])
    room = STACK_BYTES // height // max(1, sum(_copies(v, at, rows) * v.dtype.size for v, at in crossing))
    width = max(BLOCK, min(piece_length([v.dtype for v in body.returns]), room // BLOCK * BLOCK))
    nest = Nest.plan([*loops[:across], *loops[across + 1 : -1], rows], lanes=True, tile=height)
    k, outputs, lo, hi = start_kernel(module, name, body)
    targets = [(memory, plan.places[v]) for v, memory in zip(body.returns, outputs)]
    if can_stream(columns, targets) and not is_aligned(columns, targets):  # whole pieces are what streams
        width *= max(1, min(UNALIGNED // max(1, len(crossing)), room // width))
    packed = columns.extent <= NARROW and all(_is_packed(v, plan.places[v], rows, columns) for v in body.returns)
    packed = packed and all(_is_read_turned(v, at, rows) for v, at in crossing)
    staged = [_Staged.of(k, v, at, rows, (height, width), packed * columns.extent) for v, at in crossing]
    nest = replace(nest, together=1 if packed else TOGETHER)

    def block(first: Scalar, last: Scalar) -> None:
        end = k.const(columns.extent, INDEX)
        if packed:
            _packed_block(k, plan, staged, (rows, columns), (first, last), targets)
            return

        def strip(left: Scalar) -> None:
            right = k.op("arith.minui", [left + width, end], INDEX)

            def part(top: Scalar) -> None:
                bottom = k.op("arith.minui", [top + height, last], INDEX)
                for s in staged:
                    s.fetch(k, (rows, columns), (top, bottom, left, right), (height, width), (first, last))
                k.loop(rows, top, bottom, lambda i: line(i - top, left, right))

            k.loop(None, first, last, part, step=height)

        k.loop(None, k.const(0, INDEX), end, strip, step=width)

    reads = [
        Read(k.memory[v], at, height * _step(linearize(at, v.shape), rows), soon=False)
        for v, at in plan.loads if (v, at) not in crossing
    ]  # fmt: skip

    def line(i: Scalar, left: Scalar, right: Scalar) -> None:
        def values() -> list[Scalar]:
            j = k.loops[columns.names[0]][1] - left
            for s in staged:
                k.scopes[-1][s.value, s.place] = s.read(k, i, j, (height, width))
            return [k.value(v, plan.places[v]) for v in body.returns]

        emit_line(k, columns, left, right, targets, values, reads)

    if all(v.aval.size for v in body.returns):
        emit_nest(k, nest, lo, hi, block)
    k.emit("func.return", [], [])
    return ScheduledKernel(name, body, nest.split, [*body.arguments, *body.returns], in_place=in_place(plan))


def _packed_block(
    k: CpuKernel, plan: Plan, staged: Sequence[_Staged], loops: tuple[Fused, Fused], bounds: tuple[Scalar, Scalar],
    targets: Sequence[tuple[Memory, Coordinates]],
) -> None:  # fmt: skip
    """Rows whose columns follow each other, in memory as in what was staged: one line of all of them."""
    (rows, columns), (first, last), zero = loops, bounds, k.const(0, INDEX)
    width = columns.extent
    for s in staged:  # there are no columns beside these to ask for
        s.fetch(k, loops, (first, last, zero, k.const(width, INDEX)), (0, width), bounds)
    with k.at_position(rows, first), k.at_position(columns, zero):
        starts = [k.index(linearize(place, memory.aval.shape)) for memory, place in targets]

    def element(p: Scalar) -> None:
        row, column = divide(k, p, width)  # where nobody asks for it, LLVM leaves it out
        with k.at_position(rows, first + row), k.at_position(columns, column):
            for s in staged:
                assert s.turned is not None
                k.scopes[-1][s.value, s.place] = k.read(s.turned, p)
            values = [k.value(v, plan.places[v]) for v in plan.body.returns]
            for x, (memory, _), start in zip(values, targets, starts):
                k.write(x, memory, start + p)

    k.loop(None, zero, (last - first) * width, element)


def _lanes(dtype: DType) -> int:
    """The side of the squares in which elements are turned: lines of what is narrow are interleaved."""
    return min(LANES, (INTERLEAVED_BYTES if dtype.size <= 2 else LINE_BYTES) // dtype.size)


def _squares(dtype: DType) -> int:
    """How many squares side by side are turned at once: as many as are a line of memory, where a register is one."""
    return LINE_BYTES // (_lanes(dtype) * dtype.size) if has_wide_registers() else 1


def _largest_power(n: int) -> int:
    """The largest power of two that is not more than a positive number."""
    return 1 << (n.bit_length() - 1)


def _read_turned(
    k: CpuKernel, s: _Staged, loops: tuple[Fused, Fused], block: tuple[Scalar, ...], fetch: Callable[[Scalar], None]
) -> None:  # fmt: skip
    """A block of an operand with its lines for rows, square by square in registers; what is left of it in smaller
    squares, and what these leave one by one. Where elements are narrow, what is left is part of a whole square that
    begins before it; if there are too few columns, it reaches beyond them, into what is written after it."""
    rows, columns = loops
    top, bottom, start, end = block
    source, target = k.memory[s.value], s.turned
    assert target is not None
    dtype = source.aval.dtype
    least = SMALLEST // dtype.size

    def is_part(left_over: int) -> bool:
        return dtype.size <= REACHING and left_over * dtype.size > 1

    def where(i: Scalar, j: Scalar) -> Scalar:
        return (i - top) * s.pitch + (j - start)

    def turn(i: Scalar, j: Scalar, each: Sequence[Scalar], count: int, before: bool = False) -> None:
        lanes, places = len(each), []
        with k.at_position(rows, i):
            for column in each:
                with k.at_position(columns, column):
                    places.append(k.index(linearize(s.place, s.value.shape)))
        with k.vectors(lanes * count):
            lines = k.transposed([k.load_bits(source, at) for at in places])
        squares = zip(*(k.divided(line, lanes) for line in lines))
        with k.vectors(lanes):
            for n, x in enumerate(x for square in squares for x in square):
                row = i + n  # those before the block are written to its first, which follows
                k.store_bits(x, target, where(k.op("arith.maxsi", [row, top], INDEX) if before else row, j))

    def each(i: Scalar, j: Scalar) -> None:
        k.write(k.load(s.value, s.place), target, where(i, j))

    def squares(
        first: Scalar, last: Scalar, left: Scalar, right: Scalar, lanes: int, count: int = 1, ahead: bool = False
    ) -> None:  # fmt: skip
        if lanes < least:
            k.loop(columns, left, right, lambda j: k.loop(rows, first, last, lambda i: each(i, j)))
            return
        below, behind = (
            low + k.op("arith.divui", [high - low, k.const(step, INDEX)], INDEX) * step
            for low, high, step in ((first, last, lanes * count), (left, right, lanes))
        )
        reaches = is_part(columns.extent % lanes)
        if reaches:
            behind = right
        step, left_over = lanes * count, rows.extent % (lanes * count)
        begins_before = left_over < lanes <= rows.extent and is_part(left_over)

        def strip(j: Scalar) -> None:
            if ahead:
                k.loop(None, k.const(0, INDEX), k.const(lanes, INDEX), lambda n: fetch(j + n))
            each = [j + n for n in range(lanes)]
            if reaches:
                j = k.select(j + lanes <= right, j, k.op("arith.maxsi", [right - lanes, left], INDEX))
                each = [k.op("arith.minui", [j + n, right - 1], INDEX) for n in range(lanes)]
            k.loop(None, first, below, lambda i: turn(i, j, each, count), step=step)
            if begins_before:
                k.loop(None, below, last, lambda i: turn(last - lanes, j, each, 1, before=True), step=step)

        k.loop(None, left, behind, strip, step=lanes)
        if (beside := columns.extent % lanes) and not reaches:
            squares(first, last, behind, right, _largest_power(beside))
        if left_over and not begins_before:
            squares(below, last, left, behind, min(lanes, _largest_power(left_over)))

    squares(top, bottom, start, end, _lanes(dtype), _squares(dtype), True)


def _turn(
    k: CpuKernel, source: Memory, target: Memory, size: tuple[Scalar, Scalar], pitches: tuple[int, int]
) -> None:
    """A block with its lines for columns, square by square in registers; the last squares reach beyond it."""
    lanes = _lanes(source.aval.dtype)

    def square(i: Scalar, j: Scalar) -> None:
        read, written = (
            [(a + n) * pitch + b for n in range(lanes)] for (a, b), pitch in zip(((j, i), (i, j)), pitches)
        )
        with k.vectors(lanes):
            for x, at in zip(k.transposed([k.load_bits(source, at) for at in read]), written):
                k.store_bits(x, target, at)

    zero, (rows, columns) = k.const(0, INDEX), size
    k.loop(None, zero, rows, lambda i: k.loop(None, zero, columns, lambda j: square(i, j), step=lanes), step=lanes)


def _next_strip(v: Value, at: Coordinates, rows: Fused, columns: Fused, width: int) -> int:
    """How many elements further the next block reads a large operand; 0 where it is not to be fetched ahead."""
    index = linearize(at, v.shape)
    fetched = is_large(v.aval) and always_inside(v, at) and follows(index, rows)
    return width * _step(index, columns) if fetched else 0


def _step(index: Index, loop: Fused) -> int:
    """How far an address moves with a step of the innermost variable of a loop."""
    name, extent = loop.variables[-1]
    return index.coefficient(Atom("var", (name,), 0, extent - 1))


def _load_early(k: CpuKernel, v: Value, at: Coordinates) -> Scalar:
    """An element before it is known whether it is needed: any other one where the place leaves its array."""
    offset = k.index(linearize(at, v.shape))
    if not always_inside(v, at):
        offset = k.op("arith.maxsi", [offset, k.const(0, INDEX)], INDEX)
        offset = k.op("arith.minsi", [offset, k.const(v.aval.size - 1, INDEX)], INDEX)
    return k.read(k.memory[v], offset)
