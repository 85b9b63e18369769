"""Kernels without sizes (see `smelt.ir.strided`) on a GPU: extents, strides and offsets come in a table.

The table has the extents of the loops over rows and the number of columns, then for each operand and result where it
begins, its strides in these loops, and that in a row; at last for each index how large it may be, and how far the first
operand moves by one. All count elements. What can be known when the kernel is made
stands in its `GroupLayout`, so that a contiguous array of one loop takes no division.

A kernel without reductions gives each thread elements; one with reductions gives a threadgroup rows, whose columns its
threads share. Values are computed again in each stage that needs them.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Collection, Sequence
from typing import Any

import numpy as np

from smelt.ir import dtypes
from smelt.ir.aval import Aval
from smelt.ir.builder import Function, OpView, function_named
from smelt.ir.dtypes import DType
from smelt.ir.kinds import Reduction
from smelt.ir.scalar import INDEX, Scalar
from smelt.ir.strided import CONTIGUOUS, REPEATED, ROW
from smelt.ir.strided_layout import StridedLayout

from ..buffer import Buffer
from ..executable import Executable
from ..memory import Memory
from ..strided import DeviceBinding, Laid, LaunchSequence, PlannedLaunch, StridedKernels, collapsed
from ..strided_rows import Placed, RowBuilder, Stages
from .describe import cleanup, describe
from .devices import METAL, Gpu
from .executable import GpuExecutable
from .kernel import GpuKernel, GpuModule
from .launches import MainEmitter
from .program import DeviceSegment, Emit, Program
from .schedules.schedule import argument_name, source_lines
from .strided_layouts import GROUPS, MANY, MOST_THREADS, NARROW, SCATTER, GroupLayout, ScatterLayout
from .strided_scatter import bind_scatter, build_scatter

#: How an array lies in a row, beside `CONTIGUOUS`, `REPEATED` and `ROW`: a number of elements apart.
APART = "s"
#: Threads of a row, for rows of up to so many columns; and of as many rows as a simdgroup has lanes.
_THREADS = ((64, 32), (1024, 128), (1 << 62, MOST_THREADS))
_ACROSS = ((64, 128), (512, 256), (1 << 62, 1024))


class Kernels:
    """See `smelt.backends.strided.StridedKernels`. `lacking`: numbers that no kernel computes with, by name."""

    def __init__(self, *lacking: str):
        self._lacking = lacking

    def takes(self, dtype: DType) -> bool:
        return dtype.name not in self._lacking

    def bind(
        self, space: tuple[int, ...], axes: int, operands: Sequence[Laid], results: Sequence[Laid],
        gathered: Sequence[tuple[int, int]] = (),
    ) -> DeviceBinding | None:  # fmt: skip
        kept, arrays = len(space) - axes, [*operands, *results]
        strides = [at.strides if full else (*at.strides[:kept], *[0] * axes) for at, full in arrays]
        found = collapsed(space, axes, strides)
        if found is None or len(arrays) >= METAL.max_buffers:
            return None
        rows, (columns, inner) = found[:-1], found[-1]
        numbers = [*(extent for extent, _ in rows), columns]
        largest = math.prod(space)
        for i, ((at, _), steps) in enumerate(zip(arrays, strides)):
            numbers += [at.offset, *(by[i] for _, by in rows), inner[i]]
            ends = [(extent - 1) * step for extent, step in zip(space, steps)]
            largest = max(largest, at.offset + sum([end for end in ends if end > 0]))
        for most, step in gathered:
            numbers += [most, step]
            largest += most * max(step, 0)
        letters = "".join([_letter(full, i < len(operands), inner[i], columns) for i, (_, full) in enumerate(arrays)])
        full = [i for i, x in enumerate(operands) if x.full]
        across = bool(axes and rows and columns > 1) and not any(x.full for x in results)
        across = across and _lie_side_by_side([(inner[i], rows[-1][1][i]) for i in full])
        sizes = _ACROSS if across else _THREADS
        threads = next(n for most, n in sizes if columns <= most) if axes else _THREADS[-1][1]
        bits = 32 if largest < NARROW else 64
        layout = GroupLayout(letters, len(gathered), len(rows), threads, bits, across)
        return DeviceBinding(str(layout), np.array(numbers, layout.table.dtype.numpy))

    def product(
        self, dtype: DType, result: DType, extents: tuple[int, int, int, int],
        operands: Sequence[tuple[Aval, StridedLayout]],
    ) -> Executable | None:  # fmt: skip
        return None

    def scatter(
        self, mode: str, count: int, window: tuple[int, ...], strides: tuple[int, ...],
        places: Sequence[tuple[int, int]],
    ) -> DeviceBinding | None:  # fmt: skip
        return bind_scatter(mode, count, window, strides, places)

    def sent(self, tables: Sequence[np.ndarray]) -> list[Buffer]:
        return [Buffer.of(x, Aval(x.shape, dtypes.of(x.dtype))) for x in tables]

    def prepare(self, kernels: Sequence[Executable]) -> None:
        for kernel in kernels:
            kernel.prepare()

    def launch(self, kernel: Executable, arguments: Sequence[Buffer], results: Sequence[Buffer]) -> None:
        assert isinstance(kernel, GpuExecutable)
        kernel.launch(arguments, results)

    def joins(self, program: Executable) -> bool:
        return False

    def sequence(
        self, launches: Sequence[PlannedLaunch], nbytes: Sequence[int], given: Collection[int]
    ) -> LaunchSequence:  # fmt: skip
        raise NotImplementedError  # nothing joins


METAL_KERNELS: StridedKernels = Kernels("float64", "complex128")


def _letter(full: bool, is_operand: bool, step: int, columns: int) -> str:
    if not full:
        return ROW
    if step == 1 or columns == 1:
        return CONTIGUOUS
    return REPEATED if not step and is_operand else APART


def _lie_side_by_side(steps: Sequence[tuple[int, int]]) -> bool:
    """Whether neighbouring rows had better be read at once than neighbouring columns.

    Args:
        steps: of each operand, how far its neighbouring columns and its neighbouring rows lie apart.
    """
    return any(row == 1 and column != 1 for column, row in steps) and all(
        row == 0 for column, row in steps if column == 1
    )


class _RowOfThreads(RowBuilder):
    """A row whose columns the threads of a threadgroup share."""

    k: GpuKernel

    def __init__(self, threads: int, shared: Callable[[DType, int], Memory], *args: Any):
        super().__init__(*args)
        self._threads, self._shared = threads, shared

    def _loop(
        self, column: Callable[..., list[Scalar]], starts: Sequence[Scalar], reductions: Sequence[OpView]
    ) -> list[Scalar]:  # fmt: skip
        k, (first, end) = self.k, self.bounds
        own = k.for_(first + k.thread(), end, column, starts, step=self._threads)
        return self._combined(own, [functools.partial(op.rules(Reduction).combine, k) for op in reductions])

    def _store_row(self, x: Scalar, place: Placed) -> None:
        self.k.when(self.k.thread().eq(0), lambda: self.k.write(x, place.memory, place.base))

    def _combined(self, own: list[Scalar], combine: Sequence[Callable[[Scalar, Scalar], Scalar]]) -> list[Scalar]:
        """What the threads have, combined in a fixed order."""
        k = self.k
        distance = 1
        while distance < k.gpu.simd:
            own = [c(x, k.shuffle(x, distance)) for c, x in zip(combine, own)]
            distance *= 2
        parts = self._threads // k.gpu.simd
        if parts == 1 or not own:
            return own
        memories = [self._shared(x.dtype, n) for n, x in enumerate(own)]

        def write() -> None:
            for x, memory in zip(own, memories):
                k.write(x, memory, k.simdgroup())

        k.when(k.lane().eq(0), write)
        k.barrier()
        found = [k.read(memory, k.const(0, INDEX)) for memory in memories]
        for part in range(1, parts):
            found = [c(x, k.read(m, k.const(part, INDEX))) for c, x, m in zip(combine, found, memories)]
        k.barrier()  # they are written again
        return found


class _RowOfLane(RowBuilder):
    """A row of each lane, whose columns the simdgroups of a threadgroup share.

    Args:
        shared: memory of a threadgroup: an element for each thread.
        is_row: whether the lane has a row; else it computes another one's.
    """

    k: GpuKernel

    def __init__(self, threads: int, shared: Callable[[DType, int], Memory], is_row: Scalar, *args: Any):
        super().__init__(*args)
        self._threads, self._shared, self._is_row = threads, shared, is_row

    def _loop(
        self, column: Callable[..., list[Scalar]], starts: Sequence[Scalar], reductions: Sequence[OpView]
    ) -> list[Scalar]:  # fmt: skip
        k, (first, end) = self.k, self.bounds
        parts = self._threads // k.gpu.simd
        own = k.for_(first + k.simdgroup(), end, column, starts, step=parts)
        if not own:
            return own
        memories = [self._shared(x.dtype, n) for n, x in enumerate(own)]
        for x, memory in zip(own, memories):
            k.write(x, memory, k.thread())
        k.barrier()
        found = [k.read(memory, k.lane()) for memory in memories]
        for part in range(1, parts):
            at = k.lane() + part * k.gpu.simd
            found = [op.rules(Reduction).combine(k, x, k.read(m, at)) for op, x, m in zip(reductions, found, memories)]
        k.barrier()  # they are written again
        return found

    def _store_row(self, x: Scalar, place: Placed) -> None:
        writes = self.k.logical_and(self.k.simdgroup().eq(0), self._is_row)
        self.k.when(writes, lambda: self.k.write(x, place.memory, place.base))


class _OneElement(RowBuilder):
    """A row of one column, which a thread has to itself."""

    def _loop(
        self, column: Callable[..., list[Scalar]], starts: Sequence[Scalar], reductions: Sequence[OpView]
    ) -> list[Scalar]:  # fmt: skip
        return column(self.bounds[0], *starts)


class _Builder:
    """The kernel of a strided module's ``@main``.

    Attributes:
        k, avals: the kernel, and the types of operands and results.
    """

    def __init__(self, module: GpuModule, body: Function, layout: GroupLayout):
        self._layout, self._body, self._gpu = layout, body, module.gpu
        self._stages = Stages(body, keeps=False)
        self.avals = [Aval((MANY[layout.bits],), v.dtype) for v in (*body.arguments, *body.returns)]
        names = ["table", *map(argument_name, body.arguments), *(f"out{i}" for i in range(len(body.returns)))]
        types = [layout.table, *self.avals]
        self.k, (self._table, *self._arrays) = module.start("strided", types, names, body.mlir.location, body)
        loops = layout.loops
        heads = ["extent"] * loops + ["columns"]
        *self._extents, self._columns = [self._number(i, name) for i, name in enumerate(heads)]
        parts = ["start", *["stride"] * loops, "step"]
        self._places = [
            [self._number(loops + 1 + len(parts) * i + j, name) for j, name in enumerate(parts)]
            for i in range(len(self._arrays))
        ]
        self._memories: dict[Any, Memory] = {}
        self._zero = self.k.const(0, INDEX)

    def build(self) -> None:
        """Emit what the threads do."""
        k, threads, groups = self.k, self._layout.threads, min(self._gpu.groups, GROUPS)
        rows = functools.reduce(lambda a, b: a * b, self._extents) if self._extents else k.const(1, INDEX)
        if self._layout.across:
            simd = self._gpu.simd
            k.for_(k.group() * simd, rows, functools.partial(self._of_lanes, rows), step=groups * simd)
        elif self._stages.reductions:
            k.for_(k.group(), rows, self._of_group, step=groups)
        else:
            k.for_(k.grid_position(), rows * self._columns, self._of_thread, step=groups * threads)
        k.finish("strided", (groups, 1, 1), (threads, 1, 1), 0, 0, 0, source_lines(self._body.ops))

    def _of_group(self, at: Scalar) -> None:
        """A row."""
        row = self._arguments(self._placed(at), (self._zero, self._columns))
        _RowOfThreads(self._layout.threads, self._shared, *row).emit()

    def _of_lanes(self, rows: Scalar, first: Scalar) -> None:
        """A row of each lane, from one on."""
        k = self.k
        at = first + k.lane()
        is_row = at < rows
        row = self._arguments(self._placed(k.select(is_row, at, rows - 1)), (self._zero, self._columns))
        _RowOfLane(self._layout.threads, self._shared, is_row, *row).emit()

    def _of_thread(self, at: Scalar) -> None:
        """An element."""
        k, columns = self.k, self._columns
        with k.named("row"):
            row = k.op("arith.divui", [at, columns], INDEX) if self._extents else self._zero
        with k.named("column"):
            column = k.op("arith.remui", [at, columns], INDEX) if self._extents else at
        alone = [Placed(place.memory, place.at(column), None) for place in self._placed(row)]
        if self._layout.gathered:
            alone = self._shifted(alone)
        _OneElement(*self._arguments(alone, (self._zero, self._zero))).emit()

    def _arguments(self, places: Sequence[Placed], bounds: tuple[Scalar, Scalar]) -> tuple[Any, ...]:
        """What a row's builder takes."""
        count = len(self._body.arguments)
        return self.k, self._stages, places[:count], places[count:], bounds

    def _number(self, i: int, name: str) -> Scalar:
        """A number of the table."""
        with self.k.named(name):
            return self.k.convert(self.k.read(self._table, self.k.const(i, INDEX)), INDEX)

    def _placed(self, row: Scalar) -> list[Placed]:
        """Where arrays lie in a row."""
        k = self.k
        positions: list[Scalar] = []
        for extent in reversed(self._extents[1:]):
            with k.named("position"):
                row, position = (k.op(f"arith.{name}", [row, extent], INDEX) for name in ("divui", "remui"))
            positions.insert(0, position)
        positions[:0] = [row] if self._extents else []
        found = []
        for memory, letter, (base, *strides) in zip(self._arrays, self._layout.letters, self._places):
            with k.named("first"):
                for position, stride in zip(positions, strides):
                    base = base + position * stride
            steps: dict[str, Scalar | int] = {CONTIGUOUS: 1, APART: strides[-1]}
            found.append(Placed(memory, base, steps.get(letter)))
        return found

    def _shifted(self, found: list[Placed]) -> list[Placed]:
        """The first operand where the indices say."""
        k, layout = self.k, self._layout
        base, first = found[0].base, len(self._body.arguments) - layout.gathered
        for i, index in enumerate(found[first : first + layout.gathered]):
            at = layout.table.size - 2 * (layout.gathered - i)
            most, step = self._number(at, "most"), self._number(at + 1, "step")
            base = base + _clamped(k, k.read(index.memory, index.base), most) * step
        return [found[0]._replace(base=base), *found[1:]]

    def _shared(self, dtype: DType, n: int) -> Memory:
        """Memory of a threadgroup for the n-th value of a type: a part for each simdgroup, or for each thread."""
        if (dtype, n) not in self._memories:
            threads = self._layout.threads
            size = threads if self._layout.across else threads // self._gpu.simd
            self._memories[dtype, n] = self.k.shared(size, dtype)
        return self._memories[dtype, n]


def _clamped(k: GpuKernel, x: Scalar, most: Scalar) -> Scalar:
    """An index within 0 … `most`."""
    if x.dtype.kind == "i":
        zero = k.const(0, x.dtype)
        x = k.select(x < zero, zero, x)
    wide, limit = k.convert(x, dtypes.uint64), k.convert(most, dtypes.uint64)
    return k.convert(k.select(limit < wide, limit, wide), INDEX)


class StridedProgram(Program):
    """A kernel without sizes by itself. Its arguments are the table and the operands, which may have any sizes.

    Args:
        gpu: for which it is made. emit: makes text of kernel IR. layout: of the operands and results.
    """

    def __init__(self, module: Any, gpu: Gpu, emit: Emit, layout: str):
        body = function_named(module)
        gpu_module = GpuModule(gpu)
        if layout.startswith(SCATTER):
            k, table, arrays = build_scatter(gpu_module, body, ScatterLayout.read(layout))
        else:
            read = GroupLayout.read(layout)
            builder = _Builder(gpu_module, body, read)
            builder.build()
            k, table, arrays = builder.k, read.table, builder.avals
        count = len(body.arguments)
        self.arguments, self.results = [table, *arrays[:count]], arrays[count:]
        self.aliases, self.arena_bytes = {}, 0
        avals = [*self.arguments, *self.results]
        main = MainEmitter(gpu_module, {}, avals, False, 0)
        main.launch_on(k.name, list(zip(main.table, avals)), body.mlir.location)
        main.finish(0)
        describe(self, main.operation, ["table", *map(argument_name, body.arguments)])
        cleanup().run(gpu_module.mlir.operation)
        self.segments = [DeviceSegment(gpu_module.mlir, emit)]
