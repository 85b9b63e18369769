"""What kernels without sizes compute in a row, on any target: see `smelt.ir.strided`.

A kernel with reductions runs over the columns of a row in *stages*: what depends on a reduction comes in a later one.
Values that later stages need again are computed again where that is cheap, and kept in a line of memory where not.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from smelt.ir import mlir
from smelt.ir.builder import Function, OpView, Value, functions
from smelt.ir.kinds import Fusible, Reduction
from smelt.ir.scalar import Scalar
from smelt.ir.strided import ATTRIBUTE, FULL_SHAPE

from .memory import Memory, MemoryKernel

#: Additions that computing a value again may take; what takes more is kept, where the target keeps values.
CHEAP = 3.0


def layout_of(module: Any) -> str | None:
    """How the operands of a strided kernel lie in a row; None for other modules."""
    attributes = functions(module)["main"].attributes
    return mlir.ir.StringAttr(attributes[ATTRIBUTE]).value if ATTRIBUTE in attributes else None


def is_row(v: Value) -> bool:
    """Whether a value has one element for each row."""
    return v.shape != FULL_SHAPE


class Stages:
    """What the ops of a kernel compute, when, and what is kept from one stage to a later one.

    Args:
        keeps: whether something may be.
    """

    def __init__(self, body: Function, keeps: bool = True):
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
        for stage in range(self.last + 1 if keeps else 0):
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


class Placed(NamedTuple):
    """Where an array of a kernel lies in a row.

    Attributes:
        base: its first element there.
        step: how far its elements at neighbouring columns lie apart: a number, or None where there is one for all.
    """

    memory: Memory
    base: Scalar
    step: Scalar | int | None

    def at(self, column: Scalar) -> Scalar:
        """The element at a column."""
        if self.step is None:
            return self.base
        return self.base + (column if self.step == 1 else column * self.step)


class RowBuilder:
    """The loops of one row.

    Args:
        operands, results: where they lie.
        lines: memory for what is kept from a stage to a later one, and where in it.
        bounds: the first column, and the one behind the last.
    """

    def __init__(
        self, k: MemoryKernel, stages: Stages, operands: Sequence[Placed], results: Sequence[Placed],
        bounds: tuple[Scalar, Scalar], lines: Sequence[tuple[Memory, Scalar]] = (),
    ):  # fmt: skip
        self.k, self.stages, self.bounds = k, stages, bounds
        self.place = dict(zip(stages.body.arguments, operands))
        self.targets = results
        self.lines = dict(zip(stages.kept, lines))
        self.rows: dict[Value, Scalar] = {}  #: row values
        self.column: Scalar | None = None
        self.now: dict[Value, Scalar] = {}  #: full values at the column
        self.number = 0  #: of the stage

    def emit(self) -> None:
        for v, place in self.place.items():
            if place.step is None:
                self.rows[v] = self.k.read(place.memory, place.base)
        for number in range(self.stages.last + 1):
            self.number = number
            for op in self.stages.on_rows(number):
                self._compute(op)
            self._emit_stage(self.stages.reduced(number), self.stages.stored(number))
        for (v, full), place in zip(self.stages.outputs, self.targets):
            if not full:
                self._store_row(self.rows[v], place)

    def _store_row(self, x: Scalar, place: Placed) -> None:
        self.k.write(x, place.memory, place.base)

    def _loop(
        self, column: Callable[..., list[Scalar]], starts: Sequence[Scalar], reductions: Sequence[OpView]
    ) -> list[Scalar]:  # fmt: skip
        """Run ``column(at, *totals)`` for all columns; what it makes of `starts`."""
        return self.k.for_(*self.bounds, column, starts)

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
                place = self.targets[i]
                k.write(self.value(self.stages.outputs[i][0]), place.memory, place.at(at))
            for v in kept:
                memory, line = self.lines[v]
                k.write(self.value(v), memory, line + at)
            return after

        found = self._loop(column, starts, reductions)
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
                    self.now[u] = self.k.read(place.memory, place.at(self.column))
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
        k.source_dtype = k.digits(op)
        avals = [v.aval for v in op.operands]
        known[result] = op.rules(Fusible).element(k, (), lambda i, _: operands[i], avals, result.aval, **op.attrs)
