"""Kernels without sizes (see `smelt.ir.strided`): rows and columns, and where arrays lie, are arguments.

The first argument is a table of numbers: extents of up to three loops over rows, the number of columns, and for each
array the strides of these loops and how many elements it has, all in elements. Where operands lie contiguously in a
row, or are the same for all columns, is known when the kernel is made, so its inner loops are vectors.
What it computes in a row is `smelt.backends.strided_rows`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from smelt.backends.control import bytes_type
from smelt.backends.memory import Memory
from smelt.backends.strided import EACH, HEAD, LINE, LOOPS, table_size
from smelt.backends.strided_rows import Placed, RowBuilder, Stages
from smelt.ir import dtypes, mlir
from smelt.ir.aval import Aval
from smelt.ir.builder import function_named
from smelt.ir.dialect import context
from smelt.ir.scalar import INDEX, Scalar, compute_dtype
from smelt.ir.settings import settings
from smelt.ir.strided import CONTIGUOUS

from . import threads
from .checks import Site
from .description import PART, EntryStep, FunctionDescription, KernelCost, ProgramDescription
from .kernel import CpuKernel, KernelModule, buffer_type
from .program import COUNTER, declare_team, machine_code, share_of
from .running import MachineCode, Program, Symbols

#: As many elements as a type of a memref says; the table knows better.
_MANY = 1 << 40
ENTRY = "main_0"


class _StridedKernel(CpuKernel):
    """Evaluates the values of a row, at one column."""

    def __init__(self, module: KernelModule, entry: Any, location: Any):
        super().__init__(module, entry, location, None)
        self.hasty = True  # unrolled, it takes LLVM five times as long, for nothing where memory is the limit
        self.sizes: list[tuple[Any, Scalar]] = []  #: how far arrays reach, in elements, where accesses are checked

    def _emit_checked(
        self, name: str, operands: Sequence[Any], types: Sequence[Any], regions: int, attrs: dict[str, Any]
    ) -> Any:  # fmt: skip
        *value, memref, offset = operands
        size = next((size for known, size in self.sizes if known == memref), None)
        if size is None:
            return super()._emit_checked(name, operands, types, regions, attrs)
        at = offset if isinstance(offset, Scalar) else Scalar(self, offset, INDEX)
        inside = self._less(at, size)
        site = self._site(f"{'stores' if value else 'loads'} element {{}}", "outside of its array")
        plain = super(CpuKernel, self).emit
        if not value:
            return plain(name, [memref, self.required(inside, site, at, at)], types, regions, **attrs)
        self.require(inside, site, at, lambda: plain(name, [*value, memref, at], types, regions, **attrs))
        return None


class _Assembly:
    """A program of one strided kernel."""

    def __init__(self, module: Any, layout: str, team: threads.Team):
        self.team = team
        self._sites: list[Site] | None = [] if settings.check else None
        self._module = KernelModule(self._sites)
        body = function_named(module)
        self._stages, self._layout = Stages(body), layout
        arrays = [v.aval for v in (*body.arguments, *body.returns)]
        table = Aval((table_size(len(arrays)),), dtypes.int64)
        lines = [Aval((1,), compute_dtype(v.dtype)) for v in self._stages.kept]
        arguments = [table, *(v.aval for v in body.arguments), *lines]
        results = [v.aval for v in body.returns]
        many = [Aval((_MANY,), a.dtype) for a in (*arguments[1:], *results)]
        self._types = [buffer_type(a) for a in (table, *many)]
        self._memories = many
        self._location = body.mlir.location
        self._dtypes = [v.dtype for v in (*body.arguments, *body.returns)]
        self._emit_kernel()
        self._emit_entry()
        cost = KernelCost("strided", "strided", 0, 0)
        functions_ = {"main": FunctionDescription(len(arguments), len(results), [], [EntryStep(ENTRY, label=PART)])}
        description = ProgramDescription(
            arguments, results, {}, [cost], 0, True, team.together, False, False, self._sites is not None,
            self._sites or [], [], functions_, True,
        )  # fmt: skip
        self.object: bytes | None = None
        self.program = Program(description, self._compile, team, self._as_text)
        self.program.object = self.object

    def _emit_kernel(self) -> None:
        """``kernel(table, operands…, lines…, results…, line, first row, last row, first column, last column)``."""
        index = mlir.ir.IndexType.get(context())
        entry = self._module.function(
            "strided", [*self._types, *[index] * 5], self._location, noalias=range(len(self._types))
        )
        k = _StridedKernel(self._module, entry, self._location)
        *memrefs, line, first, last, left, right = entry.arguments
        table = Memory(memrefs[0], Aval((table_size(len(self._dtypes)),), dtypes.int64))
        operands, lines = len(self._layout), len(self._stages.kept)
        memories = [Memory(m, a) for m, a in zip(memrefs[1:], self._memories)]
        arrays = memories[:operands] + memories[operands + lines :]

        def number(i: int) -> Scalar:
            return k.convert(k.read(table, k.const(i, INDEX)), INDEX)

        extents = [number(i) for i in range(1, LOOPS)]
        strides = [[number(HEAD + EACH * i + j) for j in range(LOOPS)] for i in range(len(arrays))]
        if self._sites is not None:
            k.sizes = [(m.memref, number(HEAD + EACH * i + LOOPS)) for i, m in enumerate(arrays)]
            width = number(LOOPS)
            k.sizes += [(m.memref, Scalar(k, line, INDEX) + width) for m in memories[operands : operands + lines]]
        bounds = Scalar(k, left, INDEX), Scalar(k, right, INDEX)

        def row(at: Scalar) -> None:
            places, rest = [], at
            for extent in reversed(extents):
                places.append(k.op("arith.remui", [rest, extent], INDEX))
                rest = k.op("arith.divui", [rest, extent], INDEX)
            places.append(rest)
            places.reverse()
            bases = [sum((p * s for p, s in zip(places[1:], each[1:])), places[0] * each[0]) for each in strides]
            letters = self._layout + CONTIGUOUS * (len(arrays) - operands)
            steps = [1 if letter == CONTIGUOUS else None for letter in letters]
            placed = list(map(Placed, arrays, bases, steps))
            kept = [(memory, Scalar(k, line, INDEX)) for memory in memories[operands : operands + lines]]
            RowBuilder(k, self._stages, placed[:operands], placed[operands:], bounds, kept).emit()

        k.loop(None, Scalar(k, first, INDEX), Scalar(k, last, INDEX), row)
        k.emit("func.return", [], [])

    def _emit_entry(self) -> None:
        """``main_0(members, counter, table, operands…, lines…, results…, arena)``: one member's share."""
        index = mlir.ir.IndexType.get(context())
        types = [index, buffer_type(COUNTER), *self._types, bytes_type(0)]
        entry = self._module.function(ENTRY, types, self._location, internal=False)
        k = CpuKernel(self._module, entry, self._location, None)
        if self._sites is not None:
            k.set_reported(False)
        count, counter, table, *arrays, _ = entry.arguments
        members, me = share_of(k, Scalar(k, count, INDEX), counter, True, self.team)
        memory = Memory(table, Aval((table_size(len(self._dtypes)),), dtypes.int64))
        *extents, width = [k.convert(k.read(memory, k.const(i, INDEX)), INDEX) for i in range(HEAD)]
        rows = extents[0] * extents[1] * extents[2]
        zero = k.const(0, INDEX)

        def share(n: Scalar, at: Scalar) -> Scalar:
            return k.op("arith.divui", [n * at, members], INDEX)

        first, last, left, right = share(rows, me), share(rows, me + 1), zero, width
        if not self._stages.reductions:  # few long rows: a part of each
            long = rows < members * 4
            lines = k.op("arith.divui", [width + (LINE - 1), k.const(LINE, INDEX)], INDEX)
            end = k.op("arith.minui", [share(lines, me + 1) * LINE, width], INDEX)
            first, last = k.select(long, zero, first), k.select(long, rows, last)
            left, right = k.select(long, share(lines, me) * LINE, zero), k.select(long, end, width)
        padded = k.op("arith.divui", [width + (LINE - 1), k.const(LINE, INDEX)], INDEX) * LINE
        k.call("strided", [table, *arrays], me * padded, first, last, left, right)
        k.emit("func.return", [], [])

    def _compile(self, symbols: Symbols) -> MachineCode:
        if self.team.together:
            declare_team(self._module)
        self._texts = {"kernel": self._module.mlir.operation.get_asm() + "\n"}
        code, self.object = machine_code(self._module, False, ENTRY, symbols)
        return code

    def _as_text(self, stage: str) -> str:
        if stage not in self._texts:
            with mlir.lock:
                self._texts[stage] = self._module.mlir.operation.get_asm() + "\n"
        return self._texts[stage]


def compile_module(module: Any, layout: str) -> Program:
    """The program of a strided kernel, from its module. It has the arguments table, operands, lines.

    Args:
        layout: as `layout_of` tells.
    """
    with mlir.lock:
        return _Assembly(module, layout, threads.team()).program
