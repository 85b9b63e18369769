"""Attention by a library: where a body is the softmax of scaled scores, perhaps with a bias or a causal mask.

What is computed before its operands is written to memory first, what follows is a kernel behind it. So is a bias, and
a mask as one: libraries give zeros for queries from which numbers near the end of float32 hide all keys alike, where
they see all of them. Left to smelt's own kernels are bodies with a bias that also give what is known of rows, for a
gradient: the logarithm of a sum is lost beside a large bias. So are masks that leave out whole tiles, other than a
causal one.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial

from smelt.backends.attention import Attention
from smelt.ir import dtypes
from smelt.ir.aval import Aval
from smelt.ir.builder import Builder, OpView, Value
from smelt.ir.dtypes import DType
from smelt.ir.index import Atom, Coordinates, Index, linearize
from smelt.ir.ops.compare import Select
from smelt.passes.dependence import cone
from smelt.passes.kernels.analysis import collect_reads
from smelt.passes.kernels.attention_masks import HIDES, constant_of, hides, is_made_of, sees_something
from smelt.passes.rewrite import replay

from ...kernel import GpuModule
from ...library import ScaledAttention
from ..schedule import ScheduledKernel, Scratch, ScratchPlan
from ..written import build_written
from .attention_operands import Axes, Lying, lying_of, moved_or_rounded, number_and, tensor
from .beside import Epilogue, Lay, Step, Way, steps_of
from .library import targets

#: Bytes of memory that a library may use for attention.
WORKSPACE_BYTES = 1 << 26
#: Heads for each of which a bias serves, at least: it is written to memory first.
SHARED = 4


def build_library_attention(
    module: GpuModule, attention: Attention, scratch: ScratchPlan
) -> list[ScheduledKernel] | None:
    """The steps that run a body by the library's attention; None where the library is not asked, or cannot."""
    library, product = module.library, attention.product
    if library is None or product.size < module.gpu.attention_work:
        return None
    (key,) = Index.variable("k0", product.depth.extent).atoms()
    logits = logits_of(attention.scores, attention.softmax.logits, attention.place, key)
    rows = _Rows.of(attention, scratch)
    if logits is None or rows is None or (attention.row_outputs and logits.bias is not None):
        return None
    for target, out in targets(product, product.result):
        found = _step(attention, logits, rows, target, out)
        if found is not None and library.takes(found[0]):
            work, lying, way = found
            extra = library.workspace(work)
            buffers: list[tuple[Value | Scratch, Aval]] = [(x.value, x.aval) for x in lying]
            names = ["queries", "keys", "values", *["bias"] * (len(lying) - 4), "out"]
            if rows.offset is not None:
                buffers.append((rows.memory, rows.aval))
                names.append("logarithms")
            step = Step(replace(work, workspace=extra), buffers, names, extra)
            return steps_of(module, product, way, step, scratch) + rows.rest(module, attention)
    return None


@dataclass(frozen=True)
class _Rows:
    """What is known of rows, for a gradient: the logarithms of sums take the place of the maxima, and 1 that of the
    sums.

    Attributes:
        aval, memory: of the logarithms.
        offset: of their element; None where nobody asks.
    """

    aval: Aval
    memory: Value | Scratch
    offset: Index | None = None

    @classmethod
    def of(cls, attention: Attention, scratch: ScratchPlan) -> _Rows | None:
        """None where they lie in no one way."""
        softmax, body = attention.softmax, attention.product.body
        maximum, total = (op.results[0] for op in (softmax.maximum, softmax.total))
        if not attention.row_outputs:
            return cls(maximum.aval, maximum)
        reads = collect_reads(body.ops, attention.row_outputs, stop={maximum, total}.__contains__)
        places = [(v, place) for v in (maximum, total) for place in reads.get(v, ())]
        if not places or {maximum.dtype, total.dtype} != {dtypes.float32} or maximum.aval.size != total.aval.size:
            return None
        offsets = {linearize(place, v.shape) for v, place in places}
        if len(offsets) != 1:
            return None
        memory = maximum if maximum in body.returns else scratch.take(maximum.aval)
        return cls(maximum.aval, memory, next(iter(offsets)))

    def rest(self, module: GpuModule, attention: Attention) -> list[ScheduledKernel]:
        """The kernels that make what the body gives of each row."""
        softmax, body = attention.softmax, attention.product.body
        maximum, total = (op.results[0] for op in (softmax.maximum, softmax.total))
        values = [v for v, _ in attention.row_outputs if v != self.memory]
        inside = cone(values, {maximum, total}) - {maximum, total}
        ops = [op for op in body.ops if op.results[0] in inside]

        def compute(b: Builder, given: list[Value]) -> list[Value]:
            env = {maximum: given[0], total: b.full(total.shape, 1.0, total.dtype)}
            replay(b, ops, env)
            return [env[v] for v in values]

        name = f"{body.name}_rows"
        return build_written(module, body.mlir, name, [self.memory], values, compute) if values else []


# The logits

@dataclass(frozen=True)
class Bias:
    """What is added to scores.

    Attributes:
        value, place: of the body, and where its element is.
        lay: how what is written to memory is computed from it.
    """

    value: Value
    place: Coordinates
    lay: Lay

    @property
    def aval(self) -> Aval:
        """What is written."""
        return self.value.aval.with_dtype(_bias_dtype(self.value))


@dataclass(frozen=True)
class Logits:
    """``scale * scores + bias``, hidden where the bound is negative."""

    scale: float = 1.0
    bias: Bias | None = None
    bound: Index | None = None


def logits_of(scores: Value, value: Value, place: Coordinates, key: Atom) -> Logits | None:
    """What logits are made of, which are read at a place; None where that is anything else but scores so.

    Args:
        key: the variable of keys.
    """
    found = Logits()
    while value != scores:
        op = value.owner
        if op is None:
            return None
        hidden, onwards = hides(op, place), moved_or_rounded(op, place)
        if hidden is not None and hidden[0].bounds:
            seen, value, least = hidden
            is_one = seen.is_all and len(seen.bounds) == 1 and sees_something(seen.bounds, key)
            if not is_one or found != Logits() or not (least == float("-inf") or is_made_of(value, scores)):
                return None
            found = replace(found, bound=seen.bounds[0])
        elif onwards is not None:
            value, place = onwards
        elif op.op.formula == "x * y":
            number, value = number_and(op.operands)
            if number is None:
                return None
            found = replace(found, scale=found.scale * number)
        elif (op.op.formula == "x + y" or isinstance(op.op, Select)) and found.bias is None and found.scale == 1:
            bias = _added(op, place, scores) if op.op.formula == "x + y" else _masked(op, place, scores)
            if bias is None:
                return None
            found, value = replace(found, bias=bias[0]), bias[1]
        else:
            return None
    return found


def _added(op: OpView, place: Coordinates, scores: Value) -> tuple[Bias, Value] | None:
    """A sum's bias, and the other operand, which is made of the scores."""
    for mine, other in (op.operands, op.operands[::-1]):
        if scores not in cone([other]):
            return Bias(*_source(other, place), _bounded), mine
    return None


def _masked(op: OpView, place: Coordinates, scores: Value) -> tuple[Bias, Value] | None:
    """A select's mask as a bias, and what stands where it shows something."""
    condition, *both = op.operands
    for at, value in enumerate(both):
        least = constant_of(value)
        if least is not None and least <= HIDES and scores not in cone([condition]):
            return Bias(*_source(condition, place), partial(_of_mask, shows=at == 1)), both[1 - at]
    return None


def _bias_dtype(x: Value) -> DType:
    """Of a bias in memory: masks need the range of float32 alone."""
    return dtypes.bfloat16 if x.dtype in (dtypes.bfloat16, dtypes.bool_) else dtypes.float32


def _bounded(b: Builder, x: Value) -> Value:
    """A bias that hides all of a row's keys alike hides none of them."""
    dtype = _bias_dtype(x)
    return b.maximum(b.convert_to(x, dtype), b.full(x.shape, HIDES, dtype))


def _of_mask(b: Builder, mask: Value, shows: bool) -> Value:
    """A mask of booleans as a bias."""
    shown, hidden = (b.full(mask.shape, x, _bias_dtype(mask)) for x in (0.0, HIDES))
    return b.select(mask, *((shown, hidden) if shows else (hidden, shown)))


def _source(value: Value, place: Coordinates) -> tuple[Value, Coordinates]:
    """The value whose elements these are, perhaps narrower ones elsewhere, and the place of the element."""
    while value.owner is not None:
        onwards = moved_or_rounded(value.owner, place)
        if onwards is None or onwards[0].aval.size > value.aval.size or onwards[0].dtype.size > value.dtype.size:
            break
        value, place = onwards
    return value, place


# The step


def _step(
    attention: Attention, logits: Logits, rows: _Rows, target: Value, out: Index
) -> tuple[ScaledAttention, list[Lying], Way] | None:
    """Attention as a library takes it, where its arrays lie, and what is written for it before; None where it has no
    strides."""
    product = attention.product
    queries, keys, values = (
        lying_of(x.value, x.access.place) for x in (attention.queries, attention.keys, attention.values)
    )
    if values.scale != 1:
        return None
    lying = [queries, keys, values]
    bias = logits.bias
    if bias is not None:
        lying.append(Lying(bias.value, linearize(bias.place, bias.value.shape), bias.aval))
        if SHARED * bias.aval.size * product.columns.extent > product.size:
            return None
    lying.append(Lying(target, out, target.aval))
    offsets = [x.offset for x in lying]
    if rows.offset is not None:
        offsets.append(rows.offset)
    if any(atom.kind != "var" or n < 0 for offset in offsets for atom, n in offset.terms):
        return None
    if len({x.aval.dtype for x in (*lying[:3], lying[-1])}) > 1 or queries.aval.dtype.size != 2:
        return None
    axes = Axes.of(
        product.batch, product.rows, product.depth, attention.features, product.columns, offsets, logits.bound
    )
    if axes is None or not axes.heads.fit(*(offsets[i] for i in (0, *range(3, len(offsets))))):
        return None
    forms = [
        axes.of_queries, axes.of_keys, axes.of_values, *([axes.of_scores] if bias is not None else []), axes.of_results
    ]
    tensors = [tensor(i, x, form, 2 < i < len(lying) - 1) for i, (x, form) in enumerate(zip(lying, forms))]
    if any(x.strides[-1] != 1 for x in tensors):
        return None
    logarithms = None
    if rows.offset is not None:
        logarithms = tensor(len(lying), Lying(target, rows.offset, rows.aval), axes.of_rows)
    work = ScaledAttention(
        tensors[0], tensors[1], tensors[2], tensors[-1], queries.scale * keys.scale * logits.scale,
        logits.bound is not None, None if bias is None else tensors[3], logarithms, WORKSPACE_BYTES,
    )  # fmt: skip
    copied = {x.value: x.aval for x in lying[:3] if x.value.owner is not None}
    laid: dict[Value, Lay] = {}
    if bias is not None:
        if bias.value in copied:
            return None
        copied[bias.value], laid[bias.value] = bias.aval, bias.lay
    return work, lying, Way(Epilogue(product.result), target, out, copied, laid=laid)
