"""Which elements an op reads: the symbolic dry run behind fusion and behind loop planning.

`operand_reads` evaluates an op's `element` rule at a symbolic index with a kernel that emits
nothing, and records at which indices it fetches its operands.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from smelt.ir import dtypes, mlir
from smelt.ir.aval import Aval
from smelt.ir.builder import Function, OpView, Value
from smelt.ir.dtypes import DType
from smelt.ir.index import Atom, Coordinates, Index
from smelt.ir.kinds import ArgReduction, Elementwise, Fusible, Movement, Reduction
from smelt.ir.scalar import INDEX, Number, Scalar, ScalarLike, beside_each_other, compute_dtype
from smelt.ir.scalar_emitter import ScalarEmitter


class _Nothing:
    """Stands for an MLIR operation, region or value."""

    def __init__(self) -> None:
        self.result = None
        self.results = [None] * 4


class Recorder(ScalarEmitter):
    """Emits nothing, so its scalars are inert; keeps the index expressions that would become numbers."""

    def __init__(self) -> None:
        self.ip = self.location = self.context = None
        self.numbers: list[Index] = []

    def type(self, dtype: DType) -> None:
        return None

    def emit(self, name: str, operands: Sequence[Any], types: Sequence[Any], regions: int = 0, **attrs: Any) -> Any:
        return _Nothing()

    def op(self, name: str, operands: Sequence[Scalar], dtype: DType, **attrs: Any) -> Scalar:
        return Scalar(self, None, compute_dtype(dtype))

    def attr(self, text: str) -> None:
        return None

    def const(self, value: Number, dtype: DType) -> Scalar:
        return Scalar(self, None, compute_dtype(dtype))

    def convert(self, x: Scalar, dtype: DType) -> Scalar:
        return Scalar(self, None, compute_dtype(dtype))

    def bitcast(self, x: Scalar, dtype: DType) -> Scalar:
        return Scalar(self, None, dtype)

    def bitcast_storage(self, x: Scalar, dtype: DType) -> Scalar:
        return Scalar(self, None, compute_dtype(dtype))

    def compare(self, predicate: str, x: Scalar, y: Scalar) -> Scalar:
        return Scalar(self, None, dtypes.bool_)

    def select(self, c: Scalar, x: ScalarLike, y: ScalarLike) -> Scalar:
        return beside_each_other(x, y)[0]

    def index(self, index: Index, dtype: DType = INDEX) -> Scalar:
        self.numbers.append(index)
        return Scalar(self, None, compute_dtype(dtype))

    def dynamic(self, x: Scalar, lo: int, hi: int) -> Index:
        return Index.dynamic(x, hi - lo + 1) + lo

    def if_(
        self, condition: Scalar, then: Callable[[], Scalar], otherwise: Callable[[], Scalar], dtype: DType
    ) -> Scalar:
        then()
        return otherwise()

    def for_(
        self,
        lower: Scalar,
        upper: Scalar,
        body: Callable[..., Sequence[Scalar] | None],
        carries: Sequence[Scalar] = (),
        step: int = 1,
    ) -> list[Scalar]:
        body(Scalar(self, None, INDEX), *carries)
        return list(carries)

    def literal_element(self, array: np.ndarray, aval: Aval, index: Coordinates) -> Scalar:
        self.numbers.extend(index)
        return Scalar(self, None, compute_dtype(aval.dtype))

    def table(self, values: Sequence[float], dtype: DType) -> Callable[[Scalar], Scalar]:
        return lambda i: Scalar(self, None, compute_dtype(dtype))

    def add_reassociating(self, x: Scalar, y: Scalar) -> Scalar:
        return x

    def mul_reassociating(self, x: Scalar, y: Scalar) -> Scalar:
        return x


def is_pointwise(op: OpView) -> bool:
    """Whether elements of the op's result can be computed one at a time."""
    return isinstance(op.op, Fusible)


def is_moved(op: OpView) -> bool:
    """Whether the op's elements are those of its one operand, in other places."""
    return op.op.kind == "movement" and len(op.operands) == 1


def is_row_reduction(op: OpView) -> bool:
    """Whether the op combines elements along axes, as a loop with accumulators."""
    return isinstance(op.op, (Reduction, ArgReduction))


def reduced_axes(op: OpView) -> tuple[int, ...]:
    """The axes that vanish."""
    return op.attrs["axes"] if "axes" in op.attrs else (op.attrs["axis"],)


def operand_reads(
    op: OpView, index: Coordinates, numbers: list[Index] | None = None
) -> list[tuple[Value, Coordinates]]:
    """Which operands a pointwise op reads, and where, to compute its element at `index`."""
    if isinstance(op.op, Elementwise):
        return [(v, index) for v in op.operands]
    if isinstance(op.op, Movement):
        x = op.operands[0]
        return [(x, op.op.map_index(index, x.aval, op.results[0].aval, **op.attrs))]
    found: list[tuple[Value, Coordinates]] = []
    recorder = Recorder()

    def fetch(i: int, at: Coordinates) -> Scalar:
        found.append((op.operands[i], tuple(at)))
        return Scalar(recorder, None, compute_dtype(op.operands[i].dtype))

    avals = [v.aval for v in op.operands]
    op.rules(Fusible).element(recorder, index, fetch, avals, op.results[0].aval, **op.attrs)
    if numbers is not None:
        numbers.extend(recorder.numbers)
    return found


def collect_reads(
    ops: Sequence[OpView],
    roots: Iterable[tuple[Value, Coordinates]],
    numbers: list[Index] | None = None,
    stop: Callable[[Value], bool] = lambda v: False,
) -> dict[Value, dict[Coordinates, None]]:
    """All values that are read to compute `roots`, and where; none beyond values for which `stop` holds."""
    reads: dict[Value, dict[Coordinates, None]] = {}
    for value, place in roots:
        reads.setdefault(value, {})[place] = None
    for op in reversed(ops):
        value = op.results[0]
        if value not in reads or stop(value) or not is_pointwise(op):
            continue
        for place in reads[value]:
            for operand, at in operand_reads(op, place, numbers):
                reads.setdefault(operand, {})[at] = None
    return reads


def users_of(function: Function) -> dict[Value, list[OpView | None]]:
    """The ops that read each value, in order, an op as often as it does; None, at the end, stands for the caller."""
    users: dict[Value, list[OpView | None]] = {}
    for op in function.ops:
        for v in op.operands:
            users.setdefault(v, []).append(op)
    for v in function.returns:
        users.setdefault(v, []).append(None)
    return users


def plain_variable(index: Index) -> Atom | None:
    """The loop variable's atom if `index` is just that, else None."""
    if index.const == 0 and len(index.terms) == 1:
        atom, coefficient = index.terms[0]
        if coefficient == 1 and atom.kind == "var":
            return atom
    return None


def kept_axes(function: Function) -> list[tuple[int, ...]] | None:
    """For each output of a fusion with reductions, which of its axes run over rows."""
    ir, attrs = mlir.ir, function.mlir.attributes
    if "smelt.kept" not in attrs:
        return None
    return [tuple(ir.DenseI64ArrayAttr(a)) for a in ir.ArrayAttr(attrs["smelt.kept"])]


def split_chunks(function: Function) -> int:
    """In how many chunks a fusion reduces each row."""
    attrs = function.mlir.attributes
    return int(mlir.ir.IntegerAttr(attrs["smelt.chunks"]).value) if "smelt.chunks" in attrs else 1
