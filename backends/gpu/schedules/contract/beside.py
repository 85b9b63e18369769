"""A library's step in a contraction's place: copies of operands before it, and kernels for what follows."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType

from smelt.backends.contraction import Operand, Product
from smelt.ir import dtypes
from smelt.ir.aval import Aval
from smelt.ir.builder import Builder, Value
from smelt.ir.index import Index
from smelt.passes.extract import inputs_of
from smelt.passes.rewrite import replay

from ...kernel import GpuModule
from ...library import LibraryStep
from ..schedule import ScheduledKernel, Scratch, ScratchPlan, declare_step
from ..written import build_written

#: Puts elements into another order.
Lay = Callable[[Builder, Value], Value]


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
class Way:
    """A way to make a product.

    Attributes:
        target, out: the value whose memory the library writes, and where in it the element of the loops' position is.
        copied: operands that are written to memory before, which may have zeros behind their elements.
        laid: how elements of these are put into another order then.
        wide: the extents of loops that run over those.
        result: what the target's memory is if it has elements behind, too.
    """

    epilogue: Epilogue
    target: Value
    out: Index
    copied: Mapping[Value, Aval] = field(default_factory=dict)
    wide: Mapping[str, int] = field(default_factory=dict)
    result: Aval | None = None
    laid: Mapping[Value, Lay] = field(default_factory=dict)

    def rest(self, product: Product) -> list[Value]:
        """The results made of the product that are left to compute."""
        return [v for v, _ in product.outputs if v != self.target or self.result is not None]


@dataclass(frozen=True)
class Step:
    """What a library does.

    Attributes:
        work: the step of the manifest.
        buffers: the values of the body that lie in its buffers, or scratch, as which arrays.
        names: of the buffers.
        workspace: bytes of memory in one buffer more.
    """

    work: LibraryStep
    buffers: Sequence[tuple[Value | Scratch, Aval]]
    names: Sequence[str]
    workspace: int = 0


def steps_of(module: GpuModule, product: Product, way: Way, step: Step, scratch: ScratchPlan) -> list[ScheduledKernel]:
    """Copies of operands, what the library does, and what follows."""
    head, rest = way.epilogue.head, way.rest(product)
    copies = {v: scratch.take(aval) for v, aval in way.copied.items()}
    found = [kernel for v in copies for kernel in _mapped(module, product, [v], {}, copies, way.laid)]
    places: dict[Value | Scratch, Value | Scratch] = {}
    places.update(copies.items())
    if way.result is not None:
        places[head] = scratch.take(way.result)
    elif rest and head not in product.body.returns:
        places[head] = scratch.take(head.aval)
    buffers: list[Value | Scratch] = [places.get(v, v) for v, _ in step.buffers]
    if step.workspace:
        buffers.append(scratch.take(Aval((step.workspace,), dtypes.uint8)))
    found.append(ScheduledKernel(_declare(module, product, step), buffers))
    return found + (_mapped(module, product, rest, {head: places.get(head, head)}, {}) if rest else [])


def _mapped(
    module: GpuModule, product: Product, values: Sequence[Value], known: Mapping[Value, Value | Scratch],
    written: Mapping[Value, Scratch], laid: Mapping[Value, Lay] = MappingProxyType({}),
) -> list[ScheduledKernel]:  # fmt: skip
    """The kernels that compute some of the body's values.

    Args:
        known: what need not be computed, and where it is.
        written: where they go, if not where they are in the body.
        laid: in which order.
    """
    body = product.body
    wanted, ops = set(values), []
    for op in reversed(body.ops):
        if op.results[0] in wanted and op.results[0] not in known:
            wanted.update(op.operands)
            ops.append(op)
    ops.reverse()
    inputs = inputs_of(ops, values)

    def compute(b: Builder, arguments: list[Value]) -> list[Value]:
        env = {v: _first(b, argument, v.shape) for v, argument in zip(inputs, arguments)}
        replay(b, ops, env)
        found = [laid[v](b, env[v]) if v in laid else env[v] for v in values]
        return [_with_zeros(b, x, place.aval.shape) for x, place in zip(found, write)]

    read, write = [known.get(v, v) for v in inputs], [written.get(v, v) for v in values]
    return build_written(
        module, body.mlir, f"{body.name}_{'rest' if known else 'operand'}", read, write, compute, inputs
    )


def _first(b: Builder, v: Value, shape: Sequence[int]) -> Value:
    """The first elements along each axis."""
    return v if v.shape == shape else b.slice(v, start=(0,) * v.ndim, stop=tuple(shape), stride=(1,) * v.ndim)


def _with_zeros(b: Builder, v: Value, shape: Sequence[int]) -> Value:
    """An array with zeros behind its elements."""
    if v.shape == shape:
        return v
    none, high = (0,) * v.ndim, tuple(n - m for n, m in zip(shape, v.shape))
    return b.pad(v, b.full((), 0, v.dtype), low=none, high=high, interior=none)


def _declare(module: GpuModule, product: Product, step: Step) -> str:
    """A ``gpu.func`` without a body that stands for the step; its name."""
    avals, work = [aval for _, aval in step.buffers], step.work
    return declare_step(module, work.kind, work, avals, step.names, step.workspace, 2 * product.size, product.op)
