"""Contractions by a library: the product as one step, and what the library cannot do before and behind it as kernels.

A library takes matrices with one stride along each axis. So loops whose variables lie one behind the other in every
array become one; the outermost of several rows or columns count as a batch in which the other operand is the same. An
operand that is computed, or lies in no such way, is written to memory first where each of its elements is multiplied
often enough.
"""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from smelt.backends.contraction import Operand, Product, only_moves, operand_of
from smelt.backends.lowering import Fused, fuse_variables
from smelt.ir import mlir
from smelt.ir.builder import OpView, Value, read_function
from smelt.ir.dialect import context
from smelt.ir.index import Access, Index, linearize
from smelt.ir.ops.arithmetic import Add, Maximum, Mul
from smelt.ir.ops.constants import Constant, constant_array
from smelt.ir.settings import settings
from smelt.passes.extract import extract, inputs_of, named_location

from ...kernel import GpuModule
from ...library import mark_product
from ...manifest import Matrix, MatrixProduct
from ..maps import build_map
from ..schedule import ScheduledKernel, Scratch, ScratchPlan, source_lines


@dataclass(frozen=True)
class Epilogue:
    """A product and the first of the ops that follow it.

    Attributes:
        head: what they give.
        alpha: what the sums are multiplied by.
        added: arrays that are added then.
        activation: of a `MatrixProduct`.
    """

    head: Value
    alpha: float = 1.0
    added: tuple[Operand, ...] = ()
    activation: str = ""


@dataclass(frozen=True)
class _Step:
    """A product for a library, and the values of the body that lie in its buffers."""

    product: MatrixProduct
    buffers: Sequence[Value]


def build_library(module: GpuModule, product: Product, scratch: ScratchPlan) -> list[ScheduledKernel] | None:
    """The steps that run a body by the library's product; None where the library is not asked, or cannot."""
    library, gpu, body = module.library, module.gpu, product.body
    if library is None or not _is_plain(product) or product.size < gpu.library_work:
        return None
    reuse = gpu.half_library_reuse if product.dtype.size == 2 else gpu.library_reuse
    epilogues = list(_epilogues(product))[::-1]
    for copied, epilogue in itertools.product(_copies(product, reuse), epilogues):
        head = epilogue.head
        for target, out in _targets(product, head):
            step = _step(product, epilogue, copied, target, out)
            rest = [v for v in body.returns if v != target]
            if step is None or (rest and product.depth.extent < reuse) or not library.takes(step.product):
                continue
            places: dict[Value, Value | Scratch] = {v: scratch.take(v.aval) for v in copied}
            if rest and head not in body.returns:
                places[head] = scratch.take(head.aval)
            first = [kernel for v in copied for kernel in _mapped(module, product, [v], {}, places)]
            kernel = ScheduledKernel(_declare(module, product, step), [places.get(v, v) for v in step.buffers])
            after = _mapped(module, product, rest, {head}, places) if rest else []
            return [*first, kernel, *after]
    return None


def _is_plain(product: Product) -> bool:
    """Whether it multiplies matrices, and not windows with a border."""
    guards = product.lhs.access.guards or product.rhs.access.guards
    return not guards and product.rules.multiplies and min(product.rows.extent, product.columns.extent) > 1


def _copies(product: Product, reuse: int) -> Iterator[tuple[Value, ...]]:
    """The operands that may be computed or laid out anew before: none, one, or both."""
    sides = (product.lhs, product.columns.extent), (product.rhs, product.rows.extent)
    found = [x.value for x, extent in sides if x.value.owner is not None and extent >= reuse]
    for n in range(len(found) + 1):
        yield from itertools.combinations(found, n)


def _mapped(
    module: GpuModule, product: Product, values: Sequence[Value], known: Collection[Value],
    places: Mapping[Value, Value | Scratch],
) -> list[ScheduledKernel]:  # fmt: skip
    """The kernels that compute some of the body's values from its arguments, and from others that are known."""
    body = product.body
    wanted, ops = set(values), []
    for op in reversed(body.ops):
        if op.results[0] in wanted and op.results[0] not in known:
            wanted.update(op.operands)
            ops.append(op)
    ops.reverse()
    inputs, location = inputs_of(ops), body.mlir.location
    operation = extract(
        body.mlir.parent.opview, f"{body.name}_{'rest' if known else 'operand'}", body, inputs, values, ops,
        location=location, argument_locations=[named_location(v, location) for v in inputs],
    )  # fmt: skip
    operation.attributes["smelt.fusion"] = mlir.ir.StringAttr.get("map", context())
    function = read_function(operation)
    outer = zip((*function.arguments, *function.returns), (*inputs, *values))
    found: dict[Any, Value | Scratch] = {inner: places.get(v, v) for inner, v in outer}
    return [replace(step, operands=[found[x] for x in step.operands]) for step in build_map(module, function)]


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
    if isinstance(op.op, Mul) and isinstance(number, float) and not before.added:
        return replace(before, head=result, alpha=before.alpha * number)
    if isinstance(op.op, Maximum) and number == 0:
        return replace(before, head=result, activation="relu")
    if isinstance(op.op, Add):
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

def _targets(product: Product, head: Value) -> Iterator[tuple[Value, Index]]:
    """Where the head may be written: the value that it is then, and the offset of its element."""
    returns = product.body.returns
    if head not in returns and len(returns) == 1 and _origin(returns[0]) == head:
        (returned, at), *_ = product.outputs
        yield returned, linearize(at, returned.shape)
    yield head, linearize(product.at, head.shape)


def _origin(v: Value) -> Value:
    """The value whose elements these are, perhaps in other places."""
    while v.owner is not None and only_moves(v.owner):
        v = v.owner.operands[0]
    return v


def _step(
    product: Product, epilogue: Epilogue, copied: Collection[Value], target: Value, out: Index
) -> _Step | None:  # fmt: skip
    """The product as a library takes it; None where it has no strides."""
    sources = []
    for x in (product.lhs, product.rhs, *epilogue.added):
        source = (x.value, linearize(x.access.place, x.value.shape)) if x.value in copied else x.source
        if source is None:
            return None
        sources.append(source)
    values, offsets = [v for v, _ in sources] + [target], [offset for _, offset in sources] + [out]
    if any(atom.kind != "var" or n < 0 for offset in offsets for atom, n in offset.terms):
        return None
    loops = _loops(product, offsets)
    if loops is None:
        return None
    batch, rows, columns, depth = loops

    def matrix(i: int, *axes: Fused) -> Matrix:
        steps = {atom.args[0]: n for atom, n in offsets[i].terms}
        by, down, across = (steps.get(axis.names[-1], 0) if axis.variables else 0 for axis in axes)
        return Matrix(i, values[i].dtype.name, offsets[i].const, (by, down, across))

    last = len(values) - 1
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
        batch.extent, rows.extent, columns.extent, depth.extent, lhs, rhs, written, addend, bias, epilogue.alpha,
        epilogue.activation, tf32,
    )  # fmt: skip
    return _Step(spec, values)


def _loops(product: Product, offsets: Sequence[Index]) -> list[Fused] | None:
    """Batch, rows, columns and depth, each along one stride; None where that cannot be."""
    every = product.batch, product.rows, product.columns, product.depth
    batch, rows, columns, depth = [fuse_variables(loop.variables, offsets) for loop in every]
    outer = [v for loop in (*batch, *rows[:-1], *columns[:-1]) for v in loop.variables]
    found = [fuse_variables(outer, offsets), rows[-1:], columns[-1:], depth]
    return None if any(len(loops) > 1 for loops in found) else [loops[0] if loops else Fused([]) for loops in found]


def _declare(module: GpuModule, product: Product, step: _Step) -> str:
    """A ``gpu.func`` without a body that stands for the product; its name."""
    avals = [v.aval for v in step.buffers]
    key = "product", step.product, *avals
    if key not in module.functions:
        names = ["lhs", "rhs", *["added"] * (len(avals) - 3), "out"]
        k, _ = module.start("product", avals, names, product.op.location)
        nbytes = [aval.nbytes for aval in avals]
        flops = 2 * product.size
        k.finish("library", (1, 1, 1), (1, 1, 1), sum(nbytes[:-1]), nbytes[-1], flops, source_lines([product.op]))
        mark_product(k.function, step.product)
        module.functions[key] = k.name
    return module.functions[key]
