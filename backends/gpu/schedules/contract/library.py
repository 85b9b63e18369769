"""Contractions by a library: the product as one step, and what the library cannot do before and behind it as kernels.

A library takes matrices with one stride along each axis. So loops whose variables lie one behind the other in every
array become one; the outermost of several rows or columns count as a batch in which the other operand is the same. An
operand that is computed, or lies in no such way, is written to memory first where each of its elements is multiplied
often enough.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from smelt.backends.contraction import Operand, Product, only_moves, operand_of, origin
from smelt.backends.lowering import Fused, fuse_variables
from smelt.ir.aval import Aval
from smelt.ir.builder import OpView, Value
from smelt.ir.index import Access, Coordinates, Index, linearize, names_of
from smelt.ir.ops.constants import Constant, constant_array
from smelt.ir.settings import settings
from smelt.passes.kernels.analysis import operand_reads, plain_variable

from ...devices import library_limits
from ...kernel import GpuModule
from ...library import Matrix, MatrixProduct
from ..schedule import ScheduledKernel, ScratchPlan
from .beside import Epilogue, Step, Way, steps_of

#: Elements of 16 bits of which rows are multiples where libraries are quick.
LINE = 8
#: So much sooner it pays to write what is computed: kernels would compute it for each of their tiles.
COMPUTED = 4


def build_library(module: GpuModule, product: Product, scratch: ScratchPlan) -> list[ScheduledKernel] | None:
    """The steps that run a body by the library's product; None where the library is not asked, or cannot."""
    library, (work, reuse) = module.library, library_limits(module.gpu, product.lhs.dtype)
    if library is None or not _is_plain(product) or product.size < work:
        return None
    for way in _ways(product, reuse):
        step = _step(product, way)
        if step is None or not library.takes(step.work):
            continue
        while (wider := _widened(product, way, step, reuse)) is not None:
            found = _step(product, wider)
            if found is None or not library.takes(found.work):
                break
            way, step = wider, found
        return steps_of(module, product, way, step, scratch)
    return None


def _is_plain(product: Product) -> bool:
    """Whether it multiplies matrices, and not windows with a border."""
    guards = product.lhs.access.guards or product.rhs.access.guards
    return not guards and product.rules.multiplies and min(product.rows.extent, product.columns.extent) > 1


def _ways(product: Product, reuse: int) -> Iterator[Way]:
    """Ways to make a product, those with little to do beside it first."""
    epilogues = list(_epilogues(product))[::-1]
    for copied, epilogue in itertools.product(_copies(product, reuse), epilogues):
        for target, out in targets(product, epilogue.head):
            way = Way(epilogue, target, out, {v: v.aval for v in copied})
            if product.depth.extent >= reuse or not way.rest(product):
                yield way


def _copies(product: Product, reuse: int) -> Iterator[tuple[Value, ...]]:
    """The operands that may be computed or laid out anew before: none, one, or both. What is computed is written as it
    comes, before it is moved, where that does."""
    choices: list[list[Value | None]] = []
    for x, extent in ((product.lhs, product.columns.extent), (product.rhs, product.rows.extent)):
        found: list[Value | None] = [None]
        first = origin(x.value)
        is_computed = first.owner is not None
        if x.value.owner is not None and extent >= (reuse // COMPUTED if is_computed else reuse):
            if is_computed and first != x.value and first.aval.size <= x.value.aval.size:
                found.append(first)
            found.append(x.value)
        choices.append(found)
    for pair in sorted(itertools.product(*choices), key=lambda pair: sum(v is not None for v in pair)):
        yield tuple(v for v in pair if v is not None)


def _copied(x: Operand, way: Way) -> tuple[Value, Coordinates] | None:
    """The value on the way to an operand that is written to memory before, and the place of its element."""
    v, at = x.value, x.access.place
    while v not in way.copied:
        if v.owner is None or not only_moves(v.owner):
            return None
        [(v, at)] = operand_reads(v.owner, at)
    return v, at


# Odd extents

def _widened(product: Product, way: Way, step: Step, reuse: int) -> Way | None:
    """A way with zeros behind rows of 16-bit elements that are no multiples of 16 bytes; None where that is not needed,
    or does not pay. Libraries read other rows element by element."""
    plain = step.work
    if product.lhs.dtype.size != 2 or not isinstance(plain, MatrixProduct):
        return None
    (_, lm, lk), (_, rk, rn), (_, m, n) = plain.lhs.strides, plain.rhs.strides, plain.out.strides
    wide = dict(way.wide)
    for loop, strides in ((product.rows, (lm, m)), (product.columns, (rn, n)), (product.depth, (lk, rk))):
        if loop.extent % LINE and 1 in strides:
            names = [name for name, extent in loop.variables if extent > 1]
            if len(names) != 1:
                return None
            wide[names[0]] = -(-loop.extent // LINE) * LINE
    copied: dict[Value, Aval] = {}
    for x, times in ((product.lhs, product.columns.extent), (product.rhs, product.rows.extent)):
        aval = _wider(x.value.aval, x.access.place, wide)
        if aval is None or (aval != x.value.aval and times < reuse):
            return None
        if copied.get(x.value, aval) != aval:  # the other operand is the same array, with zeros elsewhere
            return None
        if aval != x.value.aval or x.value in way.copied:
            copied[x.value] = aval
    result = _wider(product.result.aval, product.at, wide)
    if wide == way.wide or result is None:
        return None
    if result == product.result.aval:
        return replace(way, copied=copied, wide=wide)
    if product.depth.extent < reuse:
        return None
    head = product.result
    return Way(Epilogue(head), head, linearize(product.at, result.shape), copied, wide, result)


def _wider(aval: Aval, place: Coordinates, wide: Mapping[str, int]) -> Aval | None:
    """An array whose axes along some loops are as long as these are; None where they are no axes of it."""
    shape = []
    for i, n in zip(place, aval.shape):
        if names_of([i]).isdisjoint(wide):
            shape.append(n)
            continue
        variable = plain_variable(i)
        if variable is None or variable.hi + 1 != n:
            return None
        shape.append(wide[variable.args[0]])
    return Aval(tuple(shape), aval.dtype)


# What follows

def _epilogues(product: Product) -> Iterator[Epilogue]:
    """The product alone, and with more and more of the ops behind it."""
    readers: dict[Value, list[OpView]] = {}
    for op in product.body.ops:
        for v in op.operands:
            readers.setdefault(v, []).append(op)
    found: Epilogue | None = Epilogue(product.result)
    while found is not None:
        yield found
        ops = readers.get(found.head, [])
        is_last = found.head in product.body.returns or len(ops) != 1
        found = None if is_last else _with(product, found, ops[0])


def _with(product: Product, before: Epilogue, op: OpView) -> Epilogue | None:
    """An epilogue and the op that reads it; None for an op that no library knows."""
    result, others = op.results[0], [v for v in op.operands if v != before.head]
    if len(others) != 1 or before.activation or result.dtype is not product.dtype:
        return None
    (other,) = others
    number = _number(other)
    if op.op.formula == "x * y" and isinstance(number, float) and not before.added:
        return replace(before, head=result, alpha=before.alpha * number)
    if op.op.formula == "max(x, y)" and number == 0:
        return replace(before, head=result, activation="relu")
    if op.op.formula == "x + y":
        operand = operand_of(product.body, other, Access(product.at))
        if operand.source is not None and operand.source[0].dtype is product.dtype:
            return replace(before, head=result, added=(*before.added, operand))
    return None


def _number(v: Value) -> complex | None:
    """The number that all elements are, if it is known."""
    while v.owner is not None and only_moves(v.owner):
        v = v.owner.operands[0]
    if v.owner is None or not isinstance(v.owner.op, Constant):
        return None
    found: complex = constant_array(v.owner.attrs["value"], v.dtype).item()
    return found


# The product

def targets(product: Product, head: Value) -> Iterator[tuple[Value, Index]]:
    """Where the head may be written: the value that it is then, and the offset of its element."""
    returns = product.body.returns
    if head not in returns and len(returns) == 1 and origin(returns[0]) == head:
        (returned, at), *_ = product.outputs
        yield returned, linearize(at, returned.shape)
    yield head, linearize(product.at, head.shape)


def _step(product: Product, way: Way) -> Step | None:
    """The product as a library takes it; None where it has no strides."""
    sources: list[tuple[Value, Aval, Index]] = []
    for x in (product.lhs, product.rhs, *way.epilogue.added):
        copied = _copied(x, way)
        if copied is not None:
            value, place = copied
            sources.append((value, way.copied[value], linearize(place, way.copied[value].shape)))
        elif x.source is None:
            return None
        else:
            sources.append((x.source[0], x.source[0].aval, x.source[1]))
    sources.append((way.target, way.result or way.target.aval, way.out))
    offsets = [offset for _, _, offset in sources]
    if any(atom.kind != "var" or n < 0 for offset in offsets for atom, n in offset.terms):
        return None
    loops = _loops(product, offsets)
    if loops is None:
        return None
    batch, rows, columns, depth = (
        Fused([(name, way.wide.get(name, extent)) for name, extent in loop.variables]) for loop in loops
    )

    def matrix(i: int, *axes: Fused) -> Matrix:
        steps = {atom.args[0]: n for atom, n in offsets[i].terms}
        by, down, across = (steps.get(axis.names[-1], 0) if axis.variables else 0 for axis in axes)
        return Matrix(i, sources[i][1].dtype.name, offsets[i].const, (by, down, across))

    last = len(sources) - 1
    lhs, rhs = matrix(0, batch, rows, depth), matrix(1, batch, depth, columns)
    written = matrix(last, batch, rows, columns)
    addend = bias = None
    for i in range(2, last):
        found = matrix(i, batch, rows, columns)
        if found.strides == ((0, 0, 1) if written.strides[2] == 1 else (0, 1, 0)) and bias is None:
            bias = found
        elif addend is None:
            addend = found
        else:
            return None
    tf32 = settings.tf32 and lhs.dtype == "float32"
    spec = MatrixProduct(
        batch.extent, rows.extent, columns.extent, depth.extent, lhs, rhs, written, addend, bias, way.epilogue.alpha,
        way.epilogue.activation, tf32,
    )  # fmt: skip
    names = ["lhs", "rhs", *["added"] * (len(sources) - 3), "out"]
    return Step(spec, [(value, aval) for value, aval, _ in sources], names)


def _loops(product: Product, offsets: Sequence[Index]) -> list[Fused] | None:
    """Batch, rows, columns and depth, each along one stride; None where that cannot be."""
    every = product.batch, product.rows, product.columns, product.depth
    batch, rows, columns, depth = [fuse_variables(loop.variables, offsets) for loop in every]
    outer = [v for loop in (*batch, *rows[:-1], *columns[:-1]) for v in loop.variables]
    found = [fuse_variables(outer, offsets), rows[-1:], columns[-1:], depth]
    return None if any(len(loops) > 1 for loops in found) else [loops[0] if loops else Fused([]) for loops in found]
