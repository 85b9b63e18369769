"""What is the same for all elements of a word, taken out of the expression of an operand: gain · core + offset.

Packed weights are scale · code + bias, with a scale and a bias for many codes. A product adds up codes times elements
of the other side, and multiplies by the scale once; the bias is multiplied by a sum of the other side's elements::

    Σ x · (scale · code + bias) = scale · Σ x · code + bias · Σ x

Where a scale is infinite, or x · code overflows, the two sides differ; such sums are made again as they are written.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from smelt.backends.contraction import Operand, Product, only_moves
from smelt.ir.builder import OpView, Value
from smelt.ir.dtypes import DType
from smelt.ir.index import Coordinates, Index, names_of
from smelt.ir.kinds import Elementwise
from smelt.ir.scalar import INDEX, Scalar, compute_dtype
from smelt.passes.kernels.analysis import collect_reads, operand_reads

from ..kernel import CpuKernel, Memory
from .depth_lanes import Variable
from .shifts import unshifted
from .tables import Table, tables_of


@dataclass(frozen=True)
class Step:
    """An op that is linear in one of its operands; the others are the same for all elements of a word."""

    op: OpView
    varying: int
    place: Coordinates

    @property
    def adds(self) -> bool:
        """Whether the others are added, and not factors."""
        return self.op.op.linearity == "jointly"

    def apply(self, k: CpuKernel, x: Scalar, others: Scalar | None = None) -> Scalar:
        """The op's result with `x` for the operand that varies, and perhaps one number for all others."""
        operands = self.op.operands
        xs = [
            x if i == self.varying else k.value(v, self.place) if others is None else others
            for i, v in enumerate(operands)
        ]
        result = self.op.results[0].dtype
        return k.elementary(self.op.rules(Elementwise), xs, [v.dtype for v in operands], result, self.op.attrs)


@dataclass(frozen=True)
class Factors:
    """An operand's element as gain · core + offset; of these only the core varies inside of a word.

    Attributes:
        steps: from the core to the operand.
        tables: by which the core can be looked up, maybe.
    """

    value: Value
    place: Coordinates
    steps: tuple[Step, ...]
    dtype: DType
    tables: tuple[Table, ...]

    @staticmethod
    def of(product: Product, operand: Operand, inside: Sequence[Variable]) -> Factors | None:
        """The factors of an operand; None where there are none.

        Args:
            inside: variables of the elements of a word.
        """
        dtype = compute_dtype(product.dtype)
        if dtype.kind != "f" or not product.rules.multiplies or not inside:
            return None
        v, at, steps, names = operand.value, operand.access.place, list[Step](), [name for name, _ in inside]
        while (op := v.owner) is not None:
            if only_moves(op):
                [(v, at)] = operand_reads(op, at)
                continue
            varying = [i for i, u in enumerate(op.operands) if _varies(product, u, at, names)]
            if len(varying) != 1 or not _is_linear(op, varying[0], dtype):
                break
            steps.insert(0, Step(op, varying[0], at))
            v = op.operands[varying[0]]
        if all(len(step.op.operands) == 1 for step in steps):
            return None
        return Factors(v, at, tuple(steps), dtype, tuple(tables_of(product.body, v, at)))

    @property
    def has_offset(self) -> bool:
        """Whether there is something beside the core."""
        return any(step.adds and len(step.op.operands) > 1 for step in self.steps)

    @property
    def shared(self) -> list[tuple[Value, Coordinates]]:
        """What all elements of a word have in common, where it is read."""
        return [(u, step.place) for step in self.steps for i, u in enumerate(step.op.operands) if i != step.varying]

    def core(self, k: CpuKernel) -> tuple[Scalar, int]:
        """The core where the loops stand, and by which power of two it is too large."""
        for table in self.tables:
            found = table.look_up(k, self.dtype)
            if found is not None:
                return found, 0
        return unshifted(k, k.value(self.value, self.place))

    def gain(self, k: CpuKernel) -> Scalar:
        """What the core is multiplied by."""
        one, nothing = k.const(1, self.dtype), k.const(-0.0, self.dtype)
        found = one
        for step in self.steps:
            factor = step.apply(k, one, nothing if step.adds else None)
            found = factor if found is one else found if factor is one else found * factor
        return found

    def offset(self, k: CpuKernel) -> Scalar:
        """What is added."""
        found: Scalar | None = None
        for step in self.steps:
            if found is None and step.adds and len(step.op.operands) > 1:
                found = k.const(-0.0, self.dtype)  # x + -0 is x
            if found is not None:
                found = step.apply(k, found)
        assert found is not None
        return found


def _is_linear(op: OpView, i: int, dtype: DType) -> bool:
    """Whether an op is linear in its operand `i`, and computes in a dtype, without rounding to a narrower one."""
    rules, result = op.op, op.results[0].dtype
    if not isinstance(rules, Elementwise) or rules.linearity is None:
        return False
    if not all(d.is_float and compute_dtype(d) is dtype for d in (result, *(v.dtype for v in op.operands))):
        return False
    given = op.operands[i].dtype
    if result is not given and result.size <= given.size:
        return False
    linear = range(len(op.operands)) if rules.linear_operands is None else rules.linear_operands
    return i in linear and (rules.linearity == "each" or len(linear) == len(op.operands))


def _varies(product: Product, v: Value, at: Coordinates, names: Sequence[str]) -> bool:
    """Whether the element of a value at a place depends on some variables."""
    numbers: list[Index] = []
    reads = collect_reads(product.body.ops, [(v, at)], numbers)
    places = [index for u in product.body.arguments for place in reads.get(u, ()) for index in place]
    return not names_of([*places, *numbers]).isdisjoint(names)


def is_not_finite(k: CpuKernel, memory: Memory, count: Scalar, lanes: int) -> Scalar:
    """Whether any of the first `count` elements, a multiple of `lanes`, is NaN or infinite."""
    dtype = memory.aval.dtype
    with k.vectors(lanes):
        zero = k.const(0, dtype)

        def vector(i: Scalar, found: Scalar) -> list[Scalar]:
            return [k.fma(k.load_vector(memory, i), zero, found)]

        (total,) = k.for_(k.const(0, INDEX), count, vector, [zero], lanes)
    return k.add_lanes(total).ne(k.const(0, dtype))
