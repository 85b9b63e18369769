"""The gradient of attention by a library: chains of one softmax that give the cotangents of queries, keys and values.

What makes them must be, of scores s, the cotangents c of weights, and numbers m, r, d of rows::

    w = exp(logits(s) - m) * r
    cotangent of the values: sum over queries of w times the result's cotangent
    cotangents of the queries and keys: sums of scale * w * (c - d) times keys, and queries

where d is the sum over features of the result and its cotangent, as `recompute-attention` leaves it, and logits are
scaled scores, perhaps with a causal mask. A library takes the logarithms m - log(r), which a kernel computes before; so
where logits are so large that log(r) is lost beside m, queries see keys whose logits are equal with too large a weight.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from smelt.backends.chains import ChainEnd, analyse_chain
from smelt.backends.contraction import origin, runs_along
from smelt.backends.lowering import Fused
from smelt.ir import dtypes
from smelt.ir.aval import Aval
from smelt.ir.builder import Builder, Function, OpView, Value
from smelt.ir.index import Coordinates, Index, linearize, names_of
from smelt.passes.dependence import cone
from smelt.passes.extract import inputs_of
from smelt.passes.kernels.analysis import plain_variable, reduced_axes
from smelt.passes.rewrite import replay, schedule_of

from ...kernel import GpuModule
from ...library import AttentionGradient
from ..schedule import ScheduledKernel, Scratch, ScratchPlan, declare_step
from ..written import build_written
from .attention_operands import Axes, Form, Lying, tensor
from .gradient_sides import Factors, Leaves, Side, source
from .library_attention import Logits

#: Bytes of memory that a library may use for a gradient.
WORKSPACE_BYTES = 1 << 31
#: Of the buffers of a step.
NAMES = [
    "queries", "keys", "values", "out", "cotangent", "logarithms", "sums", "queries_cotangent", "keys_cotangent",
    "values_cotangent",
]  # fmt: skip
#: How far products of scales may be apart that are one.
CLOSE = 1e-6

Call = tuple[OpView, Function]


def library_gradient(module: GpuModule, body: Function, calls: Sequence[Call]) -> LibraryGradient | None:
    """What the library makes of a body of calls; None where it is not asked, or cannot.

    Args:
        calls: those of the body, and what they call.
    """
    library = module.library
    found = None if library is None else _gradient(calls)
    if library is None or found is None or found.size < module.gpu.attention_work:
        return None
    work = found.step()
    if work is None or not library.takes(work):
        return None
    return replace(found, work=replace(work, workspace=library.workspace(work)))


@dataclass(frozen=True)
class LibraryGradient:
    """What a body computes, by values of the body, and where the elements lie.

    Attributes:
        operands: queries, keys, values, the result, and its cotangent.
        maxima, reciprocals: numbers of rows.
        results: the cotangents of queries, keys and values.
        axes: of all of them. logits: of the scores; `scale`: what operands are multiplied by.
        op: the product that makes the first result.
        before: the calls that make what is read. late: those that are made of the cotangents.
        work: what the library is asked for.
    """

    operands: tuple[Lying, ...]
    maxima: Lying
    reciprocals: Lying
    results: tuple[_Out, ...]
    axes: Axes
    logits: Logits
    scale: float
    op: OpView
    before: tuple[OpView, ...]
    late: tuple[OpView, ...]
    work: AttentionGradient | None = None

    def build(
        self, module: GpuModule, body: Function, scratch: ScratchPlan, made: Mapping[Value, Scratch],
        built: Callable[[Collection[OpView]], list[ScheduledKernel]],
    ) -> list[ScheduledKernel]:  # fmt: skip
        """The steps.

        Args:
            made: where values lie that calls of the body have made for others. built: makes the steps of some calls.
        """
        work, m, r = self.work, self.maxima, self.reciprocals
        assert work is not None
        before = built(self.before)
        logarithms, sums = scratch.take(m.aval), scratch.take(Aval((self.rows,), dtypes.float32))
        before += build_written(
            module, body.mlir, f"{body.name}_logarithms", [made.get(x.value, x.value) for x in (m, r)], [logarithms],
            lambda b, given: [given[0] - b.log(b.reshape_to(given[1], m.aval.shape))],
        )  # fmt: skip
        buffers: list[Value | Scratch] = [made.get(x.value, x.value) for x in self.operands]
        buffers += [logarithms, sums]
        written = [scratch.take(out.lying.aval) if out.value is None else out.value for out in self.results]
        avals, flops = [x.aval for x in (*buffers, *written)], 10 * self.size
        step = declare_step(module, work.kind, work, avals, NAMES, work.workspace, flops, self.op)
        buffers += written
        if work.workspace:
            buffers.append(scratch.take(Aval((work.workspace,), dtypes.uint8)))
        after = []
        for op in body.ops:  # what follows the products of a chain may read what others have given
            if op in self.late:
                after += built([op])
            for out, place in zip(self.results, written):
                if out.call is op and isinstance(place, Scratch):
                    after += out.rest(module, place, made)
        return [*before, ScheduledKernel(step, buffers), *after]

    @property
    def rows(self) -> int:
        """Queries of all heads."""
        axes = self.axes
        return axes.batch.extent * axes.heads.extent * axes.queries.extent

    @property
    def size(self) -> int:
        """Multiplications of one product."""
        return self.rows * self.axes.keys.extent * self.axes.features.extent

    def step(self) -> AttentionGradient | None:
        """What a library is asked for; None where its arrays have no strides."""
        axes = self.axes
        forms: list[Form] = [axes.of_queries, axes.of_keys, axes.of_values, axes.of_results, axes.of_results]
        lying = [*self.operands, self.maxima, *(x.lying for x in self.results)]
        forms += [axes.of_rows, axes.of_queries, axes.of_keys, axes.of_values]
        every = [x for x, form in zip(lying, forms) if form[1] is axes.heads]
        arrays = [x for x in lying if x is not self.maxima]
        if not axes.heads.fit(*(x.offset for x in every)) or {x.aval.dtype.size for x in arrays} != {2}:
            return None
        if len({x.aval.dtype for x in arrays}) > 1:
            return None
        numbers = [0, 1, 2, 3, 4, 5, 7, 8, 9]
        tensors = [tensor(i, x, form) for i, x, form in zip(numbers, lying, forms)]
        if any(x.strides[-1] != 1 for x in (*tensors[:5], *tensors[6:])):
            return None
        heads, queries = axes.heads.extent, axes.queries.extent
        sums = replace(tensors[5], buffer=6, offset=0, strides=(heads * queries, queries, 1, 1))
        found: dict[str, Any] = dict(zip(NAMES, (*tensors[:6], sums, *tensors[6:])))
        return AttentionGradient(
            **found, scale=self.scale, causal=self.logits.bound is not None, workspace=WORKSPACE_BYTES
        )


def _gradient(calls: Sequence[Call]) -> LibraryGradient | None:
    """What a body of calls computes; None where that is no gradient of attention that a library knows."""
    chains = [(op, analyse_chain(callee)) for op, callee in calls if schedule_of(callee.mlir) == "chain"]
    rows = {v: (op, callee, i) for op, callee in calls for i, v in enumerate(op.results)}
    by_ends = {len(chain.ends): (op, chain) for op, chain in chains}
    if len(chains) != 2 or set(by_ends) != {1, 2}:
        return None
    sides = [Side.of(*by_ends[n]) for n in (1, 2)]
    if any(side is None for side in sides):
        return None
    of_queries, of_keys = (side for side in sides if side is not None)
    ends = _ends(of_queries, of_keys)
    if ends is None:
        return None
    (queries, keys, cotangent, values), (to_queries, to_keys, to_values) = of_queries.operands, ends
    scale = of_queries.logits.scale * queries.scale * keys.scale
    wanted = [(to_queries, keys, scale), (to_keys, queries, scale), (to_values, cotangent, 1.0)]
    if values.scale != 1 or cotangent.scale != 1 or not all(_multiplies(*each) for each in wanted):
        return None
    maxima, reciprocals = to_queries.numbers
    assert to_queries.difference is not None  # see `_ends`
    result = _result(rows, to_queries.difference, cotangent, of_queries)
    if result is None:
        return None
    if maxima.offset != reciprocals.offset or maxima.aval.size != reciprocals.aval.size:
        return None
    outs = [_Out.of(x.end, side) for x, side in zip(ends, (of_queries, of_keys, of_keys))]
    results = tuple(x for x in outs if x is not None)
    if len(results) < len(outs):
        return None
    operands = (queries, keys, values, result, cotangent)
    offsets = [x.offset for x in (*operands, maxima, *(out.lying for out in results))]
    if any(atom.kind != "var" or n < 0 for offset in offsets for atom, n in offset.terms):
        return None
    chain, scores, inner = of_queries.chain, of_queries.scores, of_queries.inner
    axes = Axes.of(
        chain.batch, chain.rows, chain.depth, scores.features, inner.features, offsets, of_queries.logits.bound
    )
    if axes is None or {maxima.aval.dtype, reciprocals.aval.dtype} != {dtypes.float32}:
        return None
    if names_of([maxima.offset]).intersection(chain.depth.names):  # numbers of keys
        return None
    read = [*(x.value for x in (*operands, maxima, reciprocals)), *(v for out in results for v in out.inputs)]
    before, late = _others(calls, {of_queries.call, of_keys.call}, read)
    return LibraryGradient(
        operands, maxima, reciprocals, results, axes, of_queries.logits, scale, chain.ends[0].product.op, before, late
    )


def _others(
    calls: Sequence[Call], chains: Collection[OpView], read: Iterable[Value]
) -> tuple[tuple[OpView, ...], tuple[OpView, ...]]:
    """Of the calls that are no chains, those that make what is read; and those of them that read what chains give."""
    wanted, found = set(read), []
    for op, _ in reversed(calls):
        if op not in chains and wanted.intersection(op.results):
            wanted.update(op.operands)
            found.append(op)
    behind = {v for op in chains for v in op.results}
    late = []
    for op in found[::-1]:
        if behind.intersection(op.operands):
            behind.update(op.results)
            late.append(op)
    return tuple(op for op in found if op not in late), tuple(late)


def _ends(of_queries: Side, of_keys: Side) -> tuple[Factors, Factors, Factors] | None:
    """What gives the cotangents of queries, keys and values; None where both sides do not belong to one gradient."""
    x, y = of_queries.chain, of_keys.chain
    if any(a.variables != b.variables for a, b in ((x.batch, y.batch), (x.rows, y.depth), (x.depth, y.rows))):
        return None
    if of_queries.operands != of_keys.operands or of_queries.logits != of_keys.logits:
        return None
    found = [side.factors(end) for side in (of_queries, of_keys) for end in side.chain.ends]
    known = [factors for factors in found if factors is not None]
    if len(known) < len(found) or len({factors.numbers for factors in known}) != 1:
        return None
    to_queries, *both = known
    to_keys, to_values = sorted(both, key=lambda factors: factors.difference is None)
    differences = {to_queries.difference, to_keys.difference}
    if to_values.difference is not None or len(differences) != 1 or None in differences:
        return None
    return to_queries, to_keys, to_values


def _multiplies(factors: Factors, other: Lying, scale: float) -> bool:
    """Whether weights are multiplied by an array, and by a number."""
    is_scale = math.isclose(factors.scale * factors.other.scale, scale, rel_tol=CLOSE)
    return is_scale and _place(factors.other) == _place(other)


def _place(x: Lying) -> tuple[Value, Index]:
    """Where it lies, whatever it is multiplied by."""
    return x.value, x.offset


def _result(
    rows: Mapping[Value, tuple[OpView, Function, int]], means: tuple[Value, Coordinates], cotangent: Lying, side: Side
) -> Lying | None:
    """The result of attention, of which and of whose cotangent numbers of rows are sums over features; None where they
    are something else."""
    value, place = means
    if value not in rows or len(side.inner.features.variables) != 1:
        return None
    call, callee, i = rows[value]
    others = {v: made for v, made in zip(callee.returns, call.results) if v != callee.returns[i]}
    outer = {**dict(zip(callee.arguments, call.operands)), **others}
    value, place = source(callee.returns[i], place)
    if value.owner is None or value.owner.op.formula != "sum(x)":
        return None
    [x], axes = value.owner.operands, reduced_axes(value.owner)
    if len(axes) != 1 or x.shape[axes[0]] != side.inner.features.extent:
        return None
    (axis,) = axes
    feature = Index.variable(*side.inner.features.variables[0])
    leaves = Leaves(x, (*place[:axis], feature, *place[axis:]), others)
    if leaves.scale != 1 or leaves.bounds or len(leaves.found) != 2 or any(v not in outer for v, _ in leaves.found):
        return None
    both = [Lying(outer[v], linearize(at, v.shape), v.aval) for v, at in leaves.found]
    for given, result in (both, both[::-1]):
        if _place(given) == _place(cotangent):
            return result
    return None


@dataclass(frozen=True)
class _Out:
    """Where the result of an end is written.

    Attributes:
        lying: where it lies, or what is only moved to be a result of the chain.
        value: of the body around, if it is one of these; else the rest is computed behind, of an array of `variables`
            with features as its last ones.
        outer: of the chain's arguments and results, the values of the body around.
        call: of that body, the chain.
    """

    end: ChainEnd
    lying: Lying
    value: Value | None
    variables: tuple[str, ...]
    outer: Mapping[Value, Value]
    call: OpView

    @classmethod
    def of(cls, end: ChainEnd, side: Side) -> _Out | None:
        """Of an end of a chain; None where its result lies along no variables."""
        product, outer = end.product, side.outer
        [(value, place)], head = product.outputs, product.result
        axes = [plain_variable(i) for i in product.at if not i.is_constant]
        named = [(a.args[0], a.hi + 1) for a in axes if a is not None]
        if len(named) != len(axes):
            return None
        rows = sorted(named, key=lambda variable: variable[0] in product.columns.names)
        features = Fused([v for v in rows if v[0] in product.columns.names])
        offset = linearize(place, value.shape)
        if origin(value) == head and runs_along(offset, features):
            return cls(end, Lying(outer[value], offset, value.aval), outer[value], (), outer, side.call)
        aval = head.aval.with_shape([n for _, n in rows])
        at = linearize(tuple(Index.variable(*v) for v in rows), aval.shape)
        return cls(end, Lying(head, at, aval), None, tuple(name for name, _ in rows), outer, side.call)

    def rest(self, module: GpuModule, written: Scratch, made: Mapping[Value, Scratch]) -> list[ScheduledKernel]:
        """The kernels that make the chain's result of what was written."""
        product, inputs = self.end.product, self._inputs
        [(value, _)], head, body = product.outputs, product.result, product.body
        names = [a.args[0] for i in product.at if (a := plain_variable(i)) is not None]

        def compute(b: Builder, given: list[Value]) -> list[Value]:
            turned = b.transpose(given[0], permutation=tuple(self.variables.index(name) for name in names))
            env = {head: b.reshape_to(turned, head.shape), **dict(zip(inputs, given[1:]))}
            replay(b, self._ops, env)
            return [env[value]]

        read = [made.get(v, v) for v in self.inputs]
        return build_written(module, body.mlir, f"{body.name}_rest", [written, *read], [self.outer[value]], compute)

    @property
    def inputs(self) -> list[Value]:
        """What of the body around is read to make the chain's result of what was written."""
        return [] if self.value is not None else [self.outer[v] for v in self._inputs]

    @property
    def _ops(self) -> list[OpView]:
        product = self.end.product
        inside = cone([product.outputs[0][0]], [product.result]) - {product.result}
        return [op for op in product.body.ops if op.results[0] in inside]

    @property
    def _inputs(self) -> list[Value]:
        """Arguments of the chain."""
        product = self.end.product
        return [v for v in inputs_of(self._ops, [product.outputs[0][0]]) if v != product.result]
