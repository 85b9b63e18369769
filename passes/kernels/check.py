"""The verifier of fused functions: whether a kernel can be made of one.

A schedule has one iteration space. What a kernel returns must fill it exactly: an array with fewer
elements would be written past its end, one with more would keep elements that nobody writes. And what a
row's reduction gives is known in that row alone, so it can be read there only::

    %0 = "smelt.reduce_sum"(%x) {axes = array<i64: 1>} : (tensor<4x8xf32>) -> tensor<4xf32>
    return %0, %1 : tensor<4xf32>, tensor<3x8xf32>        // smelt.kept = [array<i64: 0>, array<i64: 0>]

is refused: its rows are four, and the second result has three.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from smelt.ir import mlir
from smelt.ir.builder import Function, OpView, Value, functions, read_function
from smelt.ir.control import SCAN
from smelt.ir.errors import IRError
from smelt.ir.index import Index, variables
from smelt.ir.text import line_of

from ..rewrite import is_fusion
from .analysis import Coordinates, collect_reads, is_pointwise, is_row_reduction, kept_axes, reduced_axes, split_chunks
from .attention import attention_plan
from .attention_chains import chain_plan
from .contraction_places import inverse_place, is_contraction

T = TypeVar("T")


def verify_fusions(module: Any) -> None:
    """Check every function of a module that `fuse` made. Raises IRError: one cannot be a kernel."""
    for operation in functions(module).values():
        if is_fusion(operation):
            verify_fusion(read_function(operation))


def verify_fusion(function: Function) -> None:
    """Check one function that has the attribute ``smelt.fusion``. Raises IRError: it cannot be a kernel."""
    _Check(function).run()


class _Check:
    def __init__(self, function: Function):
        self.function = function
        self.schedule = "?"

    def run(self) -> None:
        function = self.function
        self.schedule = self.attribute(lambda: str(mlir.ir.StringAttr(function.mlir.attributes["smelt.fusion"]).value))
        if self.schedule in ("loop", "loop body"):
            self.loop()
            return
        if not function.returns:
            self.fail("it returns nothing")
        if self.schedule == "chains":
            self.only_calls()
            return
        for op in function.ops:
            if len(op.results) != 1:
                self.fail(f"smelt.{op.name} has {len(op.results)} results", op)
        if self.schedule == "map":
            self.only_pointwise(function.ops)
            self.same_shapes()
        elif self.schedule in ("row", "split"):
            self.rows()
        elif self.schedule in ("scan", "scatter"):
            self.one_op(self.schedule)
        elif self.schedule == "contract":
            self.contraction()
        elif self.schedule in ("attention", "chain"):
            plan = (attention_plan if self.schedule == "attention" else chain_plan)(self.function)
            if isinstance(plan, str):
                self.fail(plan)
        else:
            self.fail(f"there is no schedule {self.schedule!r}")

    def only_calls(self) -> None:
        for op in self.function.ops:
            if op.op.kind != "call":
                self.fail(f"smelt.{op.name} is no call of a fusion", op)

    def fail(self, rule: str, at: OpView | Value | None = None) -> None:
        op = at.owner if isinstance(at, Value) else at
        line = line_of((op or self.function).mlir.location)
        where = f"; at {line}" if line else ""
        raise IRError(f"@{self.function.name} ({self.schedule}) cannot be one kernel: {rule}{where}")

    def attribute(self, read: Callable[[], T]) -> T:
        try:
            return read()
        except (ValueError, TypeError):
            self.fail("smelt.fusion must be a text, smelt.kept arrays of i64, smelt.chunks an integer")
            raise

    def shown(self, i: int) -> str:
        return f"result {i} {self.function.returns[i].aval}"

    def only_pointwise(self, ops: Sequence[OpView]) -> None:
        for op in ops:
            if not is_pointwise(op):
                self.fail(f"smelt.{op.name} does not compute elements one by one", op)

    def same_shapes(self) -> None:
        first, *rest = self.function.returns
        for i, v in enumerate(rest, 1):
            if v.shape != first.shape:
                self.fail(f"the shapes of {self.shown(0)} and {self.shown(i)} differ", v)

    def one_op(self, kind: str) -> None:
        """A scan or a scatter, and what computes its operands."""
        *before, last = self.function.ops or (None,)
        if last is None or last.op.kind != kind or tuple(self.function.returns) != tuple(last.results):
            self.fail(f"it must end in a {kind}, and return its result alone", last)
        else:
            self.only_pointwise(before)

    def loop(self) -> None:
        """A scan and nothing else, whose body is elementwise; `loop_plan` looks at the two together."""
        if self.schedule == "loop body":
            self.only_pointwise(self.function.ops)
        elif [op.op for op in self.function.ops] != [SCAN]:
            self.fail("it must be a scan alone")

    def contraction(self) -> None:
        function = self.function
        found = [op for op in function.ops if is_contraction(op)]
        if len(found) != 1:
            self.fail(f"it has {len(found)} contractions, and not one")
        self.only_pointwise([op for op in function.ops if op is not found[0]])
        self.same_shapes()
        value = found[0].results[0]
        loops = variables(function.returns[0].shape)
        places = collect_reads(function.ops, [(v, loops) for v in function.returns]).get(value, {})
        if value.aval.size and not (
            len(places) == 1 and inverse_place(next(iter(places)), value.shape, loops) is not None
        ):
            self.fail(f"it does not read every element of smelt.{found[0].name}'s {value.aval} once", found[0])

    # Rows

    def rows(self) -> None:
        function = self.function
        kept = self.attribute(lambda: kept_axes(function))
        if kept is None or len(kept) != len(function.returns):
            self.fail("smelt.kept must say for each result which of its axes run over the rows")
            return
        for i, (v, axes) in enumerate(zip(function.returns, kept)):
            real = [a for a in axes if a != -1]
            if len(set(real)) != len(real) or not all(0 <= a < v.ndim for a in real):
                self.fail(f"smelt.kept names axes {list(axes)} of {self.shown(i)}", v)
        first = function.returns[0]
        rows = tuple(first.shape[a] if a >= 0 else 1 for a in kept[0])
        for i, (v, axes) in enumerate(zip(function.returns, kept)):
            if tuple(v.shape[a] if a >= 0 else 1 for a in axes) != rows:
                self.fail(f"the kernel has rows {list(rows)}, {self.shown(i)} has them along axes {list(axes)}", v)
        reductions = [op for op in function.ops if is_row_reduction(op)]
        self.only_pointwise([op for op in function.ops if not is_row_reduction(op)])
        if not reductions:
            self.fail("nothing in it reduces rows")
        for op in reductions:
            if op.results[0].shape != rows:
                x = op.operands[0].aval
                self.fail(f"the kernel has rows {list(rows)}, smelt.{op.name} of {x} gives {op.results[0].aval}", op)
        self.read_in_row(reductions, rows, kept)
        if self.schedule == "split":
            self.split(reductions, rows)

    def read_in_row(self, reductions: Sequence[OpView], rows: Sequence[int], kept: Sequence[Sequence[int]]) -> None:
        """Every result of a reduction is read in its own row, and no other."""
        row = variables(rows, "o")
        made = {op.results[0] for op in reductions}
        roots = []
        for v, axes in zip(self.function.returns, kept):
            if v not in made:
                roots.append((v, _at_row(v.shape, axes, row)))
        for op in reductions:
            x, gone = op.operands[0], reduced_axes(op)
            roots.append((x, _at_row(x.shape, [a for a in range(x.ndim) if a not in gone], row)))
        reads = collect_reads(self.function.ops, roots, stop=made.__contains__)
        for op in reductions:
            for place in reads.get(op.results[0], ()):
                if place != row:
                    self.fail(f"what smelt.{op.name} gives for row {row} is read at {place}", op)

    def split(self, reductions: Sequence[OpView], rows: tuple[int, ...]) -> None:
        """Reductions in chunks: of one space, none needing another, and nothing but rows returned."""
        chunks = self.attribute(lambda: split_chunks(self.function))
        if len({(op.operands[0].shape, tuple(sorted(reduced_axes(op)))) for op in reductions}) != 1:
            self.fail("reductions in chunks must all reduce the same axes of arrays of one shape")
        size = reductions[0].operands[0].aval.size
        if not 1 <= chunks <= size:
            self.fail(f"{size} elements are to be cut into {chunks} chunks")
        depends: set[Value] = set()
        for op in self.function.ops:
            if is_row_reduction(op) and op.operands[0] in depends:
                self.fail(f"smelt.{op.name} needs another reduction of the rows, which is done in chunks", op)
            if is_row_reduction(op) or any(v in depends for v in op.operands):
                depends.update(op.results)
        for i, v in enumerate(self.function.returns):
            if v.aval.size != math.prod(rows):
                self.fail(f"{self.shown(i)} has more than an element for each of the rows {list(rows)}", v)


def _at_row(shape: Sequence[int], axes: Sequence[int], row: Coordinates) -> Coordinates:
    """An index into an array whose `axes` run over the row, and whose other axes over variables of their own."""
    at = dict(zip(axes, row))
    return tuple(at[a] if a in at else Index.variable(f"r{a}", d) for a, d in enumerate(shape))
