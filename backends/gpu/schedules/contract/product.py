"""A contraction as a batch of matrix products: its loops, and where each of them reads and writes.

Four loops: `batch`, `rows` (free axes of lhs), `columns` (free axes of rhs) and `depth` (contracted
axes). An address is an index expression of their variables, so operands may be transposed, reshaped
or broadcast. Axes that some address takes apart are split into several variables first: addresses are
then sums of multiples wherever they can be.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from smelt.backends.lowering import Fused, Place
from smelt.ir.builder import Function, OpView, Value
from smelt.ir.dtypes import DType
from smelt.ir.index import Atom, Index, linearize
from smelt.ir.kinds import Movement
from smelt.passes.kernels.analysis import collect_reads, operand_reads
from smelt.passes.kernels.contraction_places import contraction_plan

#: Elements of a vector load or store, at most.
VECTOR = 4

Variables = list[tuple[str, int]]


@dataclass(frozen=True)
class Operand:
    """One side of a contraction.

    Attributes:
        place: which element meets the loops' positions.
        source: where that element lies, if it always lies in one argument: the argument and its offset.
        loads: all arguments that the operand is read from.
    """

    value: Value
    place: Place
    source: tuple[Value, Index] | None
    loads: list[tuple[Value, Place]]

    @property
    def dtype(self) -> DType:
        return self.value.dtype

    def along(self, loop: Fused, width: int = 1) -> bool:
        """Whether `width` elements in a row along a loop are neighbours in memory, and aligned."""
        return self.source is not None and runs_along(self.source[1], loop, width)


@dataclass(frozen=True)
class Product:
    """A contraction of a fusion body.

    Attributes:
        outputs: the body's results, and where in them the element of the loops' position is.
        loads: what the ops behind the contraction read from arguments.
    """

    body: Function
    op: OpView
    batch: Fused
    rows: Fused
    columns: Fused
    depth: Fused
    lhs: Operand
    rhs: Operand
    outputs: list[tuple[Value, Place]]
    loads: list[tuple[Value, Place]]

    @property
    def result(self) -> Value:
        return self.op.results[0]

    @property
    def dtype(self) -> DType:
        return self.result.dtype

    @property
    def size(self) -> int:
        """Multiplications."""
        return self.result.aval.size * self.depth.extent

    @property
    def is_alone(self) -> bool:
        """Whether the outputs are the contraction's result, perhaps with its elements in other places."""

        def origin(v: Value) -> Value:
            while v.owner is not None and only_moves(v.owner):
                v = v.owner.operands[0]
            return v

        return all(origin(v) == self.result for v in self.body.returns)

    def width(self, loop: Fused) -> int:
        """How many neighbours of the outputs along `loop` can be stored as one vector."""
        width = VECTOR
        while width > 1:
            if all(v.dtype.kind != "c" and runs_along(linearize(at, v.shape), loop, width) for v, at in self.outputs):
                return width
            width //= 2
        return 1


def runs_along(index: Index, loop: Fused, width: int = 1) -> bool:
    """Whether an offset moves by one with a loop's counter, and is a multiple of `width` where that is."""
    inner = next(((name, extent) for name, extent in reversed(loop.variables) if extent > 1), None)
    if inner is None or inner[1] % width or index.const % width:
        return False
    moves = False
    for atom, coefficient in index.terms:
        if atom.kind == "var" and atom.args[0] == inner[0]:
            if coefficient != 1:
                return False
            moves = True
        elif coefficient % width or any(
            a.kind == "var" and a.args[0] == inner[0] for i in atom.args if isinstance(i, Index) for a in i.atoms()
        ):
            return False
    return moves


def analyse(body: Function) -> Product:
    """The loops and addresses of the one contraction in `body`."""
    plan = contraction_plan(body)
    op = plan.op
    lhs, rhs = op.operands
    contracting = op.attrs["lhs_contracting"]
    extents = dict(enumerate(op.results[0].shape))
    axes: dict[str, Variables] = {f"c{a}": [(f"c{a}", n)] for a, n in extents.items()}
    axes |= {f"k{i}": [(f"k{i}", lhs.shape[a])] for i, a in enumerate(contracting)}

    def places() -> tuple[Place, Place, Place]:
        at = {name: _joined(variables) for name, variables in axes.items()}
        whole = tuple(at[f"c{a}"] for a in extents)
        contracted = tuple(at[f"k{i}"] for i in range(len(contracting)))
        output = tuple(_substitute(i, at) for i in plan.output)
        return output, *op.op.operand_indices(whole, contracted, lhs.aval, rhs.aval, **op.attrs)  # type: ignore[attr-defined]

    output, left, right = places()
    reads = [at for v, place in ((lhs, left), (rhs, right)) for _, at in _argument_reads(body, [(v, place)])]
    cuts = _cuts((i for place in (output, *reads) for i in place), {n: e for [(n, e)] in axes.values()})
    for name, variables in axes.items():
        axes[name] = _split(name, variables[0][1], cuts.get(name, ()))
    output, left, right = places()

    def fused(names: Iterable[str]) -> Fused:
        return Fused([v for name in names for v in axes[name]])

    batches = len(op.attrs["lhs_batch"])
    middle = lhs.ndim - len(contracting)
    outputs = [(v, output) for v in body.returns]
    return Product(
        body, op,
        fused(f"c{a}" for a in range(batches)),
        fused(f"c{a}" for a in range(batches, middle)),
        fused(f"c{a}" for a in range(middle, len(extents))),
        fused(f"k{i}" for i in _depth_order(op)),
        _operand(body, lhs, left), _operand(body, rhs, right),
        outputs, _argument_reads(body, outputs),
    )  # fmt: skip


def _depth_order(op: OpView) -> list[int]:
    """The contracted axes, in the order that suits most operands."""
    lhs, rhs = op.operands
    form = op.op.canonical_form(lhs.aval, rhs.aval, **op.attrs)  # type: ignore[attr-defined]
    contracting = list(op.attrs["lhs_contracting"])
    order = form.lhs_permutation[len(form.lhs_permutation) - len(contracting) :]
    return [contracting.index(a) for a in order]


def _argument_reads(body: Function, roots: Sequence[tuple[Value, Place]]) -> list[tuple[Value, Place]]:
    reads = collect_reads(body.ops, roots)
    return [(v, at) for v in body.arguments for at in reads.get(v, ())]


def _operand(body: Function, value: Value, place: Place) -> Operand:
    v, at = value, place
    while v.owner is not None:
        if not only_moves(v.owner):
            return Operand(value, place, None, _argument_reads(body, [(value, place)]))
        [(v, at)] = operand_reads(v.owner, at)
    return Operand(value, place, (v, linearize(at, v.shape)), [(v, at)])


def only_moves(op: OpView) -> bool:
    """Whether every element of an op's result is an element of its operand."""
    return isinstance(op.op, Movement) and type(op.op).element is Movement.element


# Variables

def _joined(variables: Variables) -> Index:
    """The position along an axis whose variables are these, outermost first."""
    total, stride = Index(0), 1
    for name, extent in reversed(variables):
        total = total + Index.variable(name, extent) * stride
        stride *= extent
    return total


def _split(name: str, extent: int, cuts: Iterable[int]) -> Variables:
    """Variables for an axis whose position is divided by each of `cuts` somewhere."""
    strides = sorted(cuts)
    bounds = [1, *strides, extent]
    extents = [b // a for a, b in itertools.pairwise(bounds)]
    if not strides or math.prod(extents) != extent:
        return [(name, extent)]
    return [(f"{name}_{i}", n) for i, n in enumerate(reversed(extents))]


def _cuts(uses: Iterable[Index], extents: Mapping[str, int]) -> dict[str, set[int]]:
    """For each axis, by what addresses divide its position."""
    cuts: dict[str, set[int]] = {}
    for atom in {a for use in uses for a in use.atoms() if a.kind in ("div", "mod")}:
        inner, n = atom.args
        for term, coefficient in inner.terms:
            step = n // coefficient if coefficient > 0 and n % coefficient == 0 else 0
            while term.kind == "div" and len(term.args[0].terms) == 1:  # (x // a) // n is x // (a * n)
                step *= term.args[1]
                term = term.args[0].terms[0][0]
            name = term.args[0]
            if term.kind == "var" and 1 < step < extents.get(name, 0):
                cuts.setdefault(name, set()).add(step)
    return cuts


def _substitute(index: Index, by: Mapping[str, Index]) -> Index:
    """An index with its variables replaced."""
    total = Index(index.const)
    for atom, coefficient in index.terms:
        total = total + _replaced(atom, by) * coefficient
    return total


def _replaced(atom: Atom, by: Mapping[str, Index]) -> Index:
    if atom.kind == "var":
        return by[atom.args[0]]
    inner, n = atom.args
    inner = _substitute(inner, by)
    return inner // n if atom.kind == "div" else inner % n
