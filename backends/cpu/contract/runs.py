"""Products with matrices that are chosen by indices, as by tokens in mixtures of experts: neighbours that have chosen
the same one are rows of one product, which reads it once for all of them.

::

    for t in tokens: a[t] · w[chosen[t]]
    ⟶
    for t in tokens:
        run = the tokens around t that have chosen as t has, cut into pieces of HEIGHT from its first one on
        if t is the first one of a whole piece: kernel of HEIGHT rows      # a[t + i] · w[chosen[t]]
        if t is in no whole piece:              kernel of one token        # a[t] · w[chosen[t]]

Both kernels are functions for any range of tokens, made by the schedules that suit them; the tall one has a position
for each token that a piece can begin at. A sum may be added up in another order with other rows beside it. Pieces are
where the choices alone say, so bits do not depend on the number of threads.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from smelt.backends.contraction import Product, argument_reads, operand_of
from smelt.backends.lowering import Coordinates, Fused
from smelt.ir import dtypes
from smelt.ir.builder import Value
from smelt.ir.index import Access, Index, names_of
from smelt.ir.scalar import INDEX, Scalar
from smelt.passes.kernels.analysis import collect_reads, is_pointwise, operand_reads
from smelt.passes.kernels.contraction_places import substitute

from ..kernel import CpuKernel, KernelModule
from ..loops import Split
from ..schedules import ScheduledKernel, start_kernel

#: Rows of the tall kernel; and fewer tokens than this are not worth a second kernel.
HEIGHT, FEWEST = 8, 16
#: Rows that each token has at most, and columns that it has at least.
MOST_ROWS, FEWEST_COLUMNS = 2, 32
#: Parts into which columns are cut, at most, so that few tokens are enough for many threads; columns of a part, at
#: least: shorter pieces of the lines of memory are read slower where no two tokens choose the same.
PARTS, LEAST_COLUMNS = 4, 1024
#: The variables of a token's place in its run, and of a part of the columns.
_RUN, _PART = "run", "part"

Build = Callable[[KernelModule, str, Product], ScheduledKernel]


@dataclass(frozen=True)
class Runs:
    """A product whose columns are chosen.

    Attributes:
        product: as it is, one token after the other.
        token: the variable that counts tokens, and how many there are.
        chosen: the numbers, and where, by which a token chooses; columns of tokens differ in nothing else.
    """

    product: Product
    token: tuple[str, int]
    chosen: list[tuple[Value, Coordinates]]

    @staticmethod
    def of(product: Product) -> Runs | None:
        """None where columns are not chosen so, or by few, or depend on the token in another way."""
        tokens = [v for v in product.batch.variables if v[1] > 1]
        operands = product.lhs, product.rhs
        if len(tokens) != 1 or tokens[0][1] < FEWEST or product.rows.extent > MOST_ROWS:
            return None
        if product.columns.extent < FEWEST_COLUMNS or any(operand.access.guards for operand in operands):
            return None
        name = tokens[0][0]
        chosen = [(v, at) for v, at in dict.fromkeys(_choices(product)) if name in names_of(at)]
        if not chosen or any(names_of(at) != {name} for _, at in chosen):
            return None
        values, root = {v for v, _ in chosen}, (product.rhs.value, product.rhs.access.place)
        numbers: list[Index] = []  # that columns are computed with, as from the places where they stand
        reads = collect_reads(product.body.ops, [root], numbers, stop=values.__contains__)
        read = [(v, at) for v in (*product.body.arguments, *values) for at in reads.get(v, ())]
        others = [numbers, *(at for v, at in read if (v, at) not in chosen)]
        return None if any(name in names_of(at) for at in others) else Runs(product, tokens[0], chosen)

    def by_parts(self) -> Runs:
        """The same with columns in parts, each of which is computed for all tokens before the next."""
        columns = self.product.columns.variables
        if len(columns) != 1:
            return self
        name, extent = columns[0]
        parts = PARTS
        while parts > 1 and (extent % parts or extent // parts < LEAST_COLUMNS):
            parts //= 2
        if parts == 1:
            return self
        inside = Index.variable(name, extent // parts)
        by = {name: Index.variable(_PART, parts) * (extent // parts) + inside}
        product = replace(
            self._replaced(by, by),
            batch=Fused([(_PART, parts), *self.product.batch.variables]), columns=Fused([(name, extent // parts)]),
        )  # fmt: skip
        return Runs(product, self.token, self.chosen)

    @property
    def parts(self) -> int:
        return dict(self.product.batch.variables).get(_PART, 1)

    def tall(self) -> Product:
        """A product of runs of `HEIGHT` tokens, wherever these begin."""
        name, extent = self.token
        first = Index.variable(name, extent - HEIGHT + 1)
        product = self._replaced({name: first + Index.variable(_RUN, HEIGHT)}, {name: first})
        batch = [(n, extent - HEIGHT + 1) if n == name else (n, e) for n, e in self.product.batch.variables]
        rows = [(_RUN, HEIGHT), *self.product.rows.variables]
        return replace(product, batch=Fused(batch), rows=Fused(rows))

    def _replaced(self, by: dict[str, Index], of_columns: dict[str, Index]) -> Product:
        """The product with variables replaced, by others in what its columns are read with."""
        p = self.product
        groups = (p.batch, p.rows, p.columns, p.depth)
        same = {name: Index.variable(name, extent) for group in groups for name, extent in group.variables}

        def places(at: Coordinates, by: dict[str, Index]) -> Coordinates:
            return tuple(substitute(index, {**same, **by}) for index in at)

        outputs = [(v, places(at, by)) for v, at in p.outputs]
        return replace(
            p,
            lhs=operand_of(p.body, p.lhs.value, Access(places(p.lhs.access.place, by))),
            rhs=operand_of(p.body, p.rhs.value, Access(places(p.rhs.access.place, of_columns))),
            at=places(p.at, by), outputs=outputs, loads=argument_reads(p.body, outputs),
        )  # fmt: skip


def _choices(product: Product) -> Iterator[tuple[Value, Coordinates]]:
    """What the places are read from at which columns are read."""
    root = product.rhs
    reads = collect_reads(product.body.ops, [(root.value, root.access.place)])
    for op in product.body.ops:
        if not is_pointwise(op):
            continue
        for place in reads.get(op.results[0], ()):
            found = operand_reads(op, place)
            if any(atom.kind == "dynamic" for _, at in found for index in at for atom in index.atoms()):
                yield from ((v, at) for v, at in found if v.dtype.is_integer and _is_static(at))


def _is_static(place: Coordinates) -> bool:
    return not any(atom.kind == "dynamic" for index in place for atom in index.atoms())


def build_runs(module: KernelModule, name: str, runs: Runs, build: Build) -> ScheduledKernel:
    """The kernel of a product whose columns are chosen. `build`: of those that it calls."""
    low = build(module, f"{name}_one", runs.product)
    tall = build(module, f"{name}_run", runs.tall())
    k, outputs, lo, hi = start_kernel(module, name, runs.product.body)
    told = [] if k.breaks is None else [k.breaks.told.memref]
    k.breaks = None  # the kernels that it calls ask
    body, count = runs.product.body, runs.token[1]
    memrefs = [*(k.memory[v].memref for v in body.arguments), *(m.memref for m in outputs)]
    place, zero = k.scratch(1, dtypes.int64), k.const(0, INDEX)  #: of the last token in its run

    def call(kernel: ScheduledKernel, tokens: int, part: Scalar, at: Scalar) -> None:
        """Call a kernel for `tokens` tokens, from `at` on, in one part of the columns."""
        units = kernel.split.extent // (tokens * runs.parts)
        given = [*memrefs, *told] if kernel.function in module.asking else memrefs
        start = (part * tokens + at) * units
        k.call(kernel.function, given, start, start + units)

    def unit(number: Scalar) -> None:
        part = k.op("arith.divui", [number, k.const(count, INDEX)], INDEX)
        at = number - part * count
        k.when(number.eq(lo), lambda: k.write(_before(k, runs, at), place, zero))
        own = k.op("arith.index_cast", [k.read(place, zero)], INDEX)
        before = k.op("arith.remui", [own, k.const(HEIGHT, INDEX)], INDEX)
        whole = _is_whole(k, runs, at - before)
        k.when(whole & before.eq(zero), functools.partial(call, tall, count - HEIGHT + 1, part, at))
        k.when(~whole, functools.partial(call, low, count, part, at))
        following = k.op("arith.minui", [at + 1, k.const(count - 1, INDEX)], INDEX)
        goes_on = (at + 1 < count) & _is_same(k, runs, at, following)
        k.write(k.convert(k.select(goes_on, own + 1, zero), dtypes.int64), place, zero)

    k.loop(None, lo, hi, unit)
    k.emit("func.return", [], [])
    return ScheduledKernel(name, body, Split(count * runs.parts), [*body.arguments, *body.returns])


def _is_same(k: CpuKernel, runs: Runs, one: Scalar, other: Scalar) -> Scalar:
    """Whether two tokens have chosen the same matrix."""
    loop, found = Fused([runs.token]), k.const(True, dtypes.bool_)
    numbers = []
    for at in (one, other):
        with k.at_position(loop, at):
            numbers.append([k.value(v, place) for v, place in runs.chosen])
    for x, y in zip(*numbers):
        found = found & x.eq(y)
    return found


def _before(k: CpuKernel, runs: Runs, at: Scalar) -> Scalar:
    """How many tokens directly before one have chosen as it has."""

    def step(i: Scalar, first: Scalar) -> list[Scalar]:
        """`first`: of the run that token i is in, if i is not the first one of all."""
        return [k.select(_is_same(k, runs, i - 1, i), first, i)]

    (first,) = k.for_(k.const(1, INDEX), at + 1, step, [k.const(0, INDEX)])
    return k.convert(at - first, dtypes.int64)


def _is_whole(k: CpuKernel, runs: Runs, first: Scalar) -> Scalar:
    """Whether `HEIGHT` tokens from one on have chosen the same."""
    last = k.const(runs.token[1] - 1, INDEX)
    found = first + (HEIGHT - 1) <= last
    for i in range(1, HEIGHT):
        found = found & _is_same(k, runs, first, k.op("arith.minui", [first + i, last], INDEX))
    return found
