"""A contraction as a batch of matrix products: its loops, and where each of them reads and writes.

Four loops: `rows` (which only lhs depends on), `columns` (which only rhs depends on), `batch` (both) and
`depth` (summed over). An address is an index expression of their variables, so operands may be transposed,
reshaped, broadcast or windows. Axes that some address takes apart are split into several variables first:
addresses are then sums of multiples wherever they can be, and a group is a batch.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from smelt.backends.lowering import Coordinates, Fused, FusionKernel
from smelt.ir.builder import Function, OpView, Value
from smelt.ir.dtypes import DType
from smelt.ir.index import Access, Index, linearize, names_of
from smelt.ir.kinds import Contraction, Movement, fetch_guarded
from smelt.ir.ops.conversion import Convert
from smelt.ir.scalar import Scalar, compute_dtype
from smelt.passes.kernels.analysis import collect_reads, operand_reads
from smelt.passes.kernels.contraction_places import contraction_plan, depth_of, operand_accesses, rules_of, substitute

#: Elements of a vector load or store, at most, and their bytes: what arrays are aligned to.
VECTOR = 4
VECTOR_BYTES = 16

Variables = list[tuple[str, int]]


@dataclass(frozen=True)
class Operand:
    """One side of a contraction.

    Attributes:
        access: which element meets the loops' positions.
        source: where that element lies, if it is an argument's, perhaps of half precision: the argument and the
            offset, which count where the guards hold.
        loads: all arguments that the operand is read from.
    """

    value: Value
    access: Access
    source: tuple[Value, Index] | None
    loads: list[tuple[Value, Coordinates]]

    @property
    def dtype(self) -> DType:
        return self.value.dtype

    def read(self, k: FusionKernel) -> Scalar:
        """The element at the position of the loops; zero where a guard does not hold."""
        return fetch_guarded(k, self.access, lambda place: k.value(self.value, place), self.dtype)

    def along(self, loop: Fused, width: int = 1) -> bool:
        """Whether `width` elements along a loop are neighbours in memory, aligned, and read together or not."""
        if self.source is None or not runs_along(self.source[1], loop, width):
            return False
        inner = next((name for name, extent in reversed(loop.variables) if extent > 1), None)
        used = names_of(guard.index for guard in self.access.guards)
        return width == 1 or inner not in used

    @property
    def largest(self) -> tuple[Value, Coordinates]:
        """What most bytes are read from, of an operand that reads something, and where."""
        return max(self.loads, key=lambda load: load[0].aval.nbytes)

    def words(self, depth: Fused) -> tuple[Variables, Variables]:
        """The variables of the depth in two: of the elements of what most bytes are read from, and those inside of one,
        as numbers are that are packed into words."""
        outer, inside = [v for v in depth.variables if v[1] > 1], list[tuple[str, int]]()
        value, place = self.largest
        used = names_of([linearize(place, value.shape)])
        while outer and outer[-1][0] not in used:
            inside.insert(0, outer.pop())
        return outer, inside

    def lies_along(self, loop: Fused, other: Fused) -> bool | None:
        """Whether neighbours along `loop` lie closer in memory than those along `other`; None if neither does.

        Of an operand that is computed, what it reads most of counts.
        """
        if not self.loads:
            return None
        strides = [self.stride(each) for each in (loop, other)]
        return None if strides[0] == strides[1] else strides[0] < strides[1]

    def stride(self, loop: Fused) -> float:
        """How far neighbours along a loop are apart in what most bytes are read from; infinite where it does not move
        with the loop."""
        value, place = self.largest
        return _stride(linearize(place, value.shape), loop)


@dataclass(frozen=True)
class Product:
    """A contraction of a fusion body.

    Attributes:
        at: which element of the contraction's result the loops' position is.
        outputs: the body's results, and where in them that element is.
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
    at: Coordinates
    outputs: list[tuple[Value, Coordinates]]
    loads: list[tuple[Value, Coordinates]]

    @property
    def rules(self) -> Contraction:
        return rules_of(self.op)

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
        return all(origin(v) == self.result for v, _ in self.outputs)

    def width(self, loop: Fused) -> int:
        """How many neighbours of the outputs along `loop` can be stored as one vector."""
        width = VECTOR
        while width > 1:
            if all(is_vector(v, linearize(at, v.shape), loop, width) for v, at in self.outputs):
                return width
            width //= 2
        return 1


def is_vector(value: Value, offset: Index, loop: Fused, width: int) -> bool:
    """Whether `width` neighbours along a loop are one access: contiguous, aligned, and no more than 16 bytes."""
    fits = value.dtype.kind != "c" and value.dtype.size * width <= VECTOR_BYTES
    return fits and runs_along(offset, loop, width)


def lies_closer(offset: Index, loop: Fused, other: Fused) -> bool:
    """Whether neighbours along `loop` lie closer in memory than those along `other`."""
    return _stride(offset, loop) < _stride(offset, other)


def _stride(index: Index, loop: Fused) -> float:
    """How far an offset moves with the innermost of a loop's variables on which it depends, on average."""
    steps = _steps(index)
    return next((steps[name] for name, _ in reversed(loop.variables) if name in steps), math.inf)


def _steps(index: Index) -> dict[str, float]:
    """By variable, how far an index moves with it."""
    steps: dict[str, float] = {}
    for atom, coefficient in index.terms:
        if atom.kind == "var":
            found: dict[str, float] = {atom.args[0]: 1.0}
        elif atom.kind == "dynamic":
            continue
        else:
            inner, n = atom.args
            found = {name: step / n if atom.kind == "div" else step for name, step in _steps(inner).items()}
        for name, step in found.items():
            steps[name] = steps.get(name, 0.0) + abs(coefficient) * step
    return steps


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
    axes: dict[str, Variables] = {f"c{i}": [(f"c{i}", n)] for i, n in enumerate(op.results[0].shape)}
    depths = {f"k{i}": [(f"k{i}", n)] for i, n in enumerate(depth_of(op))}

    def places() -> tuple[Coordinates, tuple[Access, ...]]:
        at = {name: _joined(variables) for name, variables in (*axes.items(), *depths.items())}
        output = tuple(substitute(i, at) for i in plan.output)
        return output, operand_accesses(op, tuple(at[n] for n in axes), tuple(at[n] for n in depths))

    while True:  # a cut may show others: of a remainder's quotient
        output, accesses = places()
        uses = [*output, *(i for v, access in zip((lhs, rhs), accesses) for i in _uses(body, v, access))]
        every = [v for variables in (*axes.values(), *depths.values()) for v in variables]
        cuts = _cuts(uses, dict(every))
        if not any(len(_split(name, extent, cuts.get(name, ()))) > 1 for name, extent in every):
            break
        for loops in (axes, depths):
            for axis, variables in loops.items():
                loops[axis] = [w for name, extent in variables for w in _split(name, extent, cuts.get(name, ()))]

    used = [_variables_of(access) for access in accesses]
    free = [v for variables in axes.values() for v in variables]

    def only(*sides: bool) -> Fused:
        """The variables of the result on which just these operands depend."""
        return Fused([v for v in free if tuple(v[0] in names for names in used) == sides])

    outputs = [(v, output) for v in body.returns]
    return Product(
        body, op,
        Fused([v for v in free if all(v[0] in names for names in used) or not any(v[0] in names for names in used)]),
        only(True, False), only(False, True),
        Fused([v for variables in depths.values() for v in variables]),
        operand_of(body, lhs, accesses[0]), operand_of(body, rhs, accesses[1]),
        tuple(_joined(variables) for variables in axes.values()), outputs, argument_reads(body, outputs),
    )  # fmt: skip


def _uses(body: Function, value: Value, access: Access) -> list[Index]:
    """The index expressions that reading an operand takes."""
    numbers: list[Index] = []
    reads = collect_reads(body.ops, [(value, access.place)], numbers)
    places = [place for v in body.arguments for place in reads.get(v, ())]
    return [*(i for place in places for i in place), *numbers, *(guard.index for guard in access.guards)]


def _variables_of(access: Access) -> set[str]:
    """The loop variables on which an access depends."""
    return names_of([*access.place, *(guard.index for guard in access.guards)])


def argument_reads(body: Function, roots: Sequence[tuple[Value, Coordinates]]) -> list[tuple[Value, Coordinates]]:
    """Which arguments elementwise ops read to compute `roots`, and where."""
    reads = collect_reads(body.ops, roots)
    return [(v, at) for v in body.arguments for at in reads.get(v, ())]


def operand_of(body: Function, value: Value, access: Access) -> Operand:
    """An operand of a contraction that is read at `access`."""
    v, at = value, access.place
    while v.owner is not None:
        if not only_moves(v.owner) and not _widens(v.owner):
            break
        [(v, at)] = operand_reads(v.owner, at)
    if v.owner is not None:
        return Operand(value, access, None, argument_reads(body, [(value, access.place)]))
    return Operand(value, access, (v, linearize(at, v.shape)), [(v, at)])


def _widens(op: OpView) -> bool:
    """Whether an op converts half precision to float32, as which kernels hold it anyway."""
    if not isinstance(op.op, Convert):
        return False
    source, target = op.operands[0].dtype, op.results[0].dtype
    return source is not target and compute_dtype(source) is target


def origin(v: Value) -> Value:
    """The value whose elements these are, perhaps in other places."""
    while v.owner is not None and only_moves(v.owner):
        v = v.owner.operands[0]
    return v


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
