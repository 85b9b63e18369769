"""Kernels without sizes (see `smelt.ir.strided`): rows and columns, and where arrays lie, are arguments.

The first argument is a table of numbers: extents of up to three loops over rows, the number of columns, and for each
array the strides of these loops and how many elements it has, all in elements. Where operands lie contiguously in a
row, or are the same for all columns, is known when the kernel is made, so its inner loops are vectors.

A kernel with reductions runs over the columns of a row in *stages*: what depends on a reduction comes in a later one.
Values that later stages need again are computed again where that is cheap, and kept in a line of memory where not.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from smelt.backends.control import bytes_type
from smelt.backends.memory import Memory
from smelt.backends.strided import EACH, HEAD, LINE, LOOPS, table_size
from smelt.ir import dtypes, mlir
from smelt.ir.aval import Aval
from smelt.ir.builder import Function, OpView, Value, function_named, functions
from smelt.ir.dialect import context
from smelt.ir.kinds import Fusible, Reduction
from smelt.ir.scalar import INDEX, Scalar, compute_dtype
from smelt.ir.settings import settings
from smelt.ir.strided import ATTRIBUTE, CONTIGUOUS, FULL_SHAPE

from . import threads
from .checks import Site
from .description import PART, EntryStep, FunctionDescription, KernelCost, ProgramDescription
from .kernel import CpuKernel, KernelModule, buffer_type
from .program import COUNTER, declare_team, machine_code, share_of
from .running import MachineCode, Program, Symbols

#: As many elements as a type of a memref says; the table knows better.
_MANY = 1 << 40
#: Additions that computing a value again may take; what takes more is kept.
CHEAP = 3.0
ENTRY = "main_0"


def layout_of(module: Any) -> str | None:
    """How the operands of a strided kernel lie in a row; None for other modules."""
    attributes = functions(module)["main"].attributes
    return mlir.ir.StringAttr(attributes[ATTRIBUTE]).value if ATTRIBUTE in attributes else None


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
        self.require(inside, self._site(f"{'stores' if value else 'loads'} element {{}}", "outside of its array"), at)
        plain = super(CpuKernel, self).emit
        if not value:
            first = self.select(inside, at, self.const(0, INDEX))
            return plain(name, [memref, first], types, regions, **attrs)
        self.when(inside, lambda: plain(name, [*value, memref, at], types, regions, **attrs))
        return None


def is_row(v: Value) -> bool:
    """Whether a value has one element for each row."""
    return v.shape != FULL_SHAPE


class _Stages:
    """What the ops of a kernel compute, when, and what is kept from one stage to a later one."""

    def __init__(self, body: Function):
        self.source: dict[Value, Value] = {}  #: of values that are another's, in another shape
        self.stage: dict[Value, int] = dict.fromkeys(body.arguments, 0)
        self.reductions: list[OpView] = []
        self.computed: list[OpView] = []  #: the other ops, in order
        self.order: list[Value] = list(body.arguments)
        cost: dict[Value, float] = dict.fromkeys(body.arguments, 0.0)
        for op in body.ops:
            result, x = op.results[0], op.operands[0] if op.operands else None
            if x is not None and op.op.kind == "movement":
                self.source[result] = self.origin(x)
                continue
            operands = [self.origin(v) for v in op.operands]
            before = max([self.stage[v] for v in operands], default=0)
            self.stage[result] = before + (op.op.kind == "reduction")
            cost[result] = op.op.flops + sum([cost[v] for v in operands])
            if op.op.kind == "reduction":
                self.reductions.append(op)
                cost[result] = 0.0
            else:
                self.computed.append(op)
                self.order.append(result)
        self.body = body
        self.outputs = [(self.origin(v), v.shape == FULL_SHAPE) for v in body.returns]
        self.last = max([*self.stage.values(), 0])
        self.kept: list[Value] = []
        for stage in range(self.last + 1):
            self._look_for_kept(stage, cost)

    def origin(self, v: Value) -> Value:
        return self.source.get(v, v)

    def reduced(self, stage: int) -> list[OpView]:
        """The reductions of a stage."""
        return [op for op in self.reductions if self.stage[op.results[0]] == stage + 1]

    def stored(self, stage: int) -> list[int]:
        """The numbers of full outputs of a stage."""
        return [i for i, (v, full) in enumerate(self.outputs) if full and self.stage[v] == stage]

    def on_rows(self, stage: int) -> list[OpView]:
        """The ops on row values of a stage."""
        return [op for op in self.computed if is_row(op.results[0]) and self.stage[op.results[0]] == stage]

    def _look_for_kept(self, stage: int, cost: dict[Value, float]) -> None:
        roots = [self.origin(op.operands[0]) for op in self.reduced(stage)]
        waiting = roots + [self.outputs[i][0] for i in self.stored(stage)]
        seen: set[Value] = set()
        while waiting:
            v = waiting.pop()
            if v in seen or v.owner is None or is_row(v):
                continue
            seen.add(v)
            if self.stage[v] < stage and cost[v] > CHEAP:
                if v not in self.kept:
                    self.kept.append(v)
                continue
            waiting += [self.origin(u) for u in v.owner.operands]


class _RowBuilder:
    """The loops of one row."""

    def __init__(
        self, k: _StridedKernel, stages: _Stages, layout: str, memories: Sequence[Memory], bases: Sequence[Scalar],
        lines: Sequence[Memory], line: Scalar, bounds: tuple[Scalar, Scalar],
    ):  # fmt: skip
        body = stages.body
        self.k, self.stages, self.bounds = k, stages, bounds
        n = len(body.arguments)
        self.place = dict(zip(body.arguments, zip(memories[:n], bases, layout)))
        self.targets = list(zip(memories[n:], bases[n:]))
        self.lines = {v: (memory, line) for v, memory in zip(stages.kept, lines)}
        self.rows: dict[Value, Scalar] = {}  #: row values
        self.column: Scalar | None = None
        self.now: dict[Value, Scalar] = {}  #: full values at the column
        self.number = 0  #: of the stage

    def emit(self) -> None:
        for v, (memory, base, letter) in self.place.items():
            if letter != CONTIGUOUS:
                self.rows[v] = self.k.read(memory, base)
        for number in range(self.stages.last + 1):
            self.number = number
            for op in self.stages.on_rows(number):
                self._compute(op)
            self._emit_stage(self.stages.reduced(number), self.stages.stored(number))
        for (v, full), (memory, base) in zip(self.stages.outputs, self.targets):
            if not full:
                self.k.write(self.rows[v], memory, base)

    def _emit_stage(self, reductions: Sequence[OpView], stored: Sequence[int]) -> None:
        k, kept = self.k, [v for v in self.lines if self.stages.stage[v] == self.number]
        if not (reductions or stored or kept):
            return
        starts = [
            k.const(op.rules(Reduction).identity(op.operands[0].dtype), op.operands[0].dtype) for op in reductions
        ]

        def column(at: Scalar, *totals: Scalar) -> list[Scalar]:
            self.column, self.now = at, {}
            after = [
                op.rules(Reduction).combine(k, total, self.value(self.stages.origin(op.operands[0])))
                for op, total in zip(reductions, totals)
            ]
            for i in stored:
                memory, base = self.targets[i]
                k.write(self.value(self.stages.outputs[i][0]), memory, base + at)
            for v in kept:
                memory, line = self.lines[v]
                k.write(self.value(v), memory, line + at)
            return after

        found = k.for_(*self.bounds, column, starts)
        self.column, self.now = None, {}
        for op, total in zip(reductions, found):
            self.rows[op.results[0]] = total

    def value(self, v: Value) -> Scalar:
        """A value: of this row, or at this column."""
        found = self.rows.get(v, self.now.get(v))
        if found is None:
            for u in self._needed(v):
                place, line = self.place.get(u), self.lines.get(u)
                assert self.column is not None
                if place is not None:
                    self.now[u] = self.k.read(place[0], place[1] + self.column)
                elif line is not None and self.stages.stage[u] < self.number:
                    self.now[u] = self.k.read(line[0], line[1] + self.column)
                else:
                    assert u.owner is not None
                    self._compute(u.owner)
            found = self.now[v]
        return found

    def _needed(self, v: Value) -> list[Value]:
        """What is to be read or computed at this column for a value, in order: no recursion."""
        waiting, found = [v], set()
        while waiting:
            u = waiting.pop()
            if u in self.rows or u in self.now or u in found:
                continue
            found.add(u)
            if u.owner is not None and not (u in self.lines and self.stages.stage[u] < self.number):
                waiting += [self.stages.origin(w) for w in u.owner.operands]
        return [u for u in self.stages.order if u in found]

    def _compute(self, op: OpView) -> None:
        k, result = self.k, op.results[0]
        known = self.rows if is_row(result) else self.now
        operands = [self.rows[u] if u in self.rows else self.now[u] for u in map(self.stages.origin, op.operands)]
        k.source_dtype = op.operands[0].dtype
        avals = [v.aval for v in op.operands]
        known[result] = op.rules(Fusible).element(k, (), lambda i, _: operands[i], avals, result.aval, **op.attrs)


class _Assembly:
    """A program of one strided kernel."""

    def __init__(self, module: Any, layout: str, team: threads.Team):
        self.team = team
        self._sites: list[Site] | None = [] if settings.check else None
        self._module = KernelModule(self._sites)
        body = function_named(module)
        self._stages, self._layout = _Stages(body), layout
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
            _RowBuilder(
                k, self._stages, self._layout, arrays, bases, memories[operands : operands + lines],
                Scalar(k, line, INDEX), bounds,
            ).emit()  # fmt: skip

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
