"""Attention by a library: where a body is the softmax of scaled scores, perhaps with a bias or a causal mask.

What is computed before its operands is written to memory first, what follows is a kernel behind it. So is a bias, and
a mask as one: libraries give zeros for queries from which numbers near the end of float32 hide all keys alike, where
they see all of them. Bodies that also give what is known of rows, for a gradient, are left to smelt's own kernels, and
so are masks that leave out whole tiles, other than a causal one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TypeAlias

from smelt.backends.attention import Attention
from smelt.backends.contraction import only_moves
from smelt.backends.lowering import Fused, fuse_variables
from smelt.ir import dtypes
from smelt.ir.aval import Aval
from smelt.ir.builder import Builder, OpView, Value
from smelt.ir.dtypes import DType
from smelt.ir.index import Coordinates, Index, linearize, names_of
from smelt.ir.ops.arithmetic import Add, Mul
from smelt.ir.ops.compare import Select
from smelt.ir.ops.conversion import Convert
from smelt.passes.dependence import cone
from smelt.passes.kernels.analysis import operand_reads
from smelt.passes.kernels.attention_masks import HIDES, constant_of, hides, is_made_of, sees_something

from ...kernel import GpuModule
from ...library import ScaledAttention, Tensor
from ..schedule import ScheduledKernel, ScratchPlan
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
    if library is None or attention.row_outputs or product.size < module.gpu.attention_work:
        return None
    logits = _logits(attention)
    if logits is None:
        return None
    for target, out in targets(product, product.result):
        found = _step(attention, logits, target, out)
        if found is not None and library.takes(found[0]):
            work, lying, way = found
            extra = library.workspace(work)
            buffers = [(x.value, x.aval) for x in lying]
            names = ["queries", "keys", "values", *["bias"] * (len(lying) - 4), "out"]
            step = Step(replace(work, workspace=extra), buffers, names, extra)
            return steps_of(module, product, way, step, scratch)
    return None


# The logits

@dataclass(frozen=True)
class _Bias:
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
class _Logits:
    """``scale * scores + bias``, hidden where the bound is negative."""

    scale: float = 1.0
    bias: _Bias | None = None
    bound: Index | None = None


def _logits(attention: Attention) -> _Logits | None:
    """What a body makes of its scores; None where that is anything else."""
    scores, value, place, found = attention.scores, attention.softmax.logits, attention.place, _Logits()
    (key,) = Index.variable("k0", attention.product.depth.extent).atoms()
    while value != scores:
        op = value.owner
        if op is None:
            return None
        hidden, onwards = hides(op, place), _moved(op, place)
        if hidden is not None and hidden[0].bounds:
            seen, value, least = hidden
            is_one = seen.is_all and len(seen.bounds) == 1 and sees_something(seen.bounds, key)
            if not is_one or found != _Logits() or not (least == float("-inf") or is_made_of(value, scores)):
                return None
            found = replace(found, bound=seen.bounds[0])
        elif onwards is not None:
            value, place = onwards
        elif isinstance(op.op, Mul):
            number, value = _number_and(op.operands)
            if number is None:
                return None
            found = replace(found, scale=found.scale * number)
        elif isinstance(op.op, (Add, Select)) and found.bias is None and found.scale == 1:
            bias = _added(op, place, scores) if isinstance(op.op, Add) else _masked(op, place, scores)
            if bias is None:
                return None
            found, value = replace(found, bias=bias[0]), bias[1]
        else:
            return None
    return found


def _number_and(operands: Sequence[Value]) -> tuple[float | None, Value]:
    """The number among two factors, and the other one."""
    x, y = operands
    number = constant_of(y)
    return (number, x) if number is not None else (constant_of(x), y)


def _added(op: OpView, place: Coordinates, scores: Value) -> tuple[_Bias, Value] | None:
    """A sum's bias, and the other operand, which is made of the scores."""
    for mine, other in (op.operands, op.operands[::-1]):
        if scores not in cone([other]):
            return _Bias(*_source(other, place), _bounded), mine
    return None


def _masked(op: OpView, place: Coordinates, scores: Value) -> tuple[_Bias, Value] | None:
    """A select's mask as a bias, and what stands where it shows something."""
    condition, *both = op.operands
    for at, value in enumerate(both):
        least = constant_of(value)
        if least is not None and least <= HIDES and scores not in cone([condition]):
            return _Bias(*_source(condition, place), partial(_of_mask, shows=at == 1)), both[1 - at]
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
        onwards = _moved(value.owner, place)
        if onwards is None or onwards[0].aval.size > value.aval.size or onwards[0].dtype.size > value.dtype.size:
            break
        value, place = onwards
    return value, place


def _moved(op: OpView, place: Coordinates) -> tuple[Value, Coordinates] | None:
    """What an op moves, or rounds or widens, and from where."""
    if len(op.operands) != 1:
        return None
    rounds = isinstance(op.op, Convert) and op.operands[0].dtype.is_float and op.results[0].dtype.is_float
    return operand_reads(op, place)[0] if rounds or only_moves(op) else None


# The operands

@dataclass(frozen=True)
class _Lying:
    """Where an operand lies.

    Attributes:
        value, offset: in memory, or to be written there, and the offset of its element.
        aval: what lies there.
        scale: what it is to be multiplied by.
    """

    value: Value
    offset: Index
    aval: Aval
    scale: float = 1.0


def _lying(value: Value, place: Coordinates) -> _Lying:
    """Where an operand of the scores lies, or what of it must be written to memory first."""
    scale, last = 1.0, (value, place)
    while (op := value.owner) is not None:
        if isinstance(op.op, Mul):
            number, other = _number_and(op.operands)
            if number is None:
                break
            [place] = [at for v, at in operand_reads(op, place) if v == other]
            scale, value, last = scale * number, other, (other, place)
        elif only_moves(op):
            [(value, place)] = operand_reads(op, place)
        else:
            break
    if value.owner is not None and value.aval.size > last[0].aval.size:  # of which only a part is used
        value, place = last
    return _Lying(value, linearize(place, value.shape), value.aval, scale)


def _step(
    attention: Attention, logits: _Logits, target: Value, out: Index
) -> tuple[ScaledAttention, list[_Lying], Way] | None:
    """Attention as a library takes it, where its arrays lie, and what is written for it before; None where it has no
    strides."""
    product = attention.product
    queries, keys, values = (
        _lying(x.value, x.access.place) for x in (attention.queries, attention.keys, attention.values)
    )
    if values.scale != 1:
        return None
    lying = [queries, keys, values]
    bias = logits.bias
    if bias is not None:
        lying.append(_Lying(bias.value, linearize(bias.place, bias.value.shape), bias.aval))
        if SHARED * bias.aval.size * product.columns.extent > product.size:
            return None
    lying.append(_Lying(target, out, target.aval))
    offsets = [x.offset for x in lying]
    if any(atom.kind != "var" or n < 0 for offset in offsets for atom, n in offset.terms):
        return None
    if len({x.aval.dtype for x in (*lying[:3], lying[-1])}) > 1 or queries.aval.dtype.size != 2:
        return None
    axes = _Axes.of(attention, offsets, logits.bound)
    if axes is None or not axes.heads.fit(*(offsets[i] for i in (0, *range(3, len(offsets))))):
        return None
    forms = axes.forms(has_bias=bias is not None)
    tensors = [_tensor(i, x, form, 2 < i < len(lying) - 1) for i, (x, form) in enumerate(zip(lying, forms))]
    if any(x.strides[-1] != 1 for x in tensors):
        return None
    work = ScaledAttention(
        tensors[0], tensors[1], tensors[2], tensors[-1], queries.scale * keys.scale * logits.scale,
        logits.bound is not None, None if bias is None else tensors[3], WORKSPACE_BYTES,
    )  # fmt: skip
    copied = {x.value: x.aval for x in lying[:3] if x.value.owner is not None}
    laid: dict[Value, Lay] = {}
    if bias is not None:
        if bias.value in copied:
            return None
        copied[bias.value], laid[bias.value] = bias.aval, bias.lay
    return work, lying, Way(Epilogue(product.result), target, out, copied, laid=laid)


@dataclass(frozen=True)
class _Heads:
    """Heads of keys, and of queries that share one of them, as one axis."""

    keys: Fused
    shared: Fused

    @property
    def extent(self) -> int:
        return self.keys.extent * self.shared.extent

    def stride(self, offset: Index) -> int:
        return _stride(offset, self.keys if self.shared.extent == 1 else self.shared)

    def fit(self, *offsets: Index) -> bool:
        """Whether all of them lie with one stride."""
        if 1 in (self.keys.extent, self.shared.extent):
            return True
        times = self.shared.extent
        return all(_stride(x, self.keys) == times * _stride(x, self.shared) for x in offsets)


def _stride(offset: Index, loop: Fused) -> int:
    """How far neighbours along a loop lie from each other."""
    steps = {atom.args[0]: n for atom, n in offset.terms}
    return steps.get(loop.variables[-1][0], 0) if loop.variables else 0


_Form: TypeAlias = tuple[Fused, _Heads, Fused, Fused]


@dataclass(frozen=True)
class _Axes:
    """The axes of attention, each along one stride."""

    batch: Fused
    heads: _Heads
    queries: Fused
    keys: Fused
    features: Fused  #: of queries and keys
    columns: Fused  #: features of values

    @classmethod
    def of(cls, attention: Attention, offsets: Sequence[Index], bound: Index | None) -> _Axes | None:
        """None where that cannot be."""
        product, one = attention.product, Fused([])
        batch = fuse_variables(product.batch.variables, offsets)
        every = product.rows.variables
        if bound is not None:  # of one position, and the rest are heads
            position = [v for v in every if v[0] in names_of([bound])]
            if len(position) != 1 or every[-1] != position[0] or bound != _causal(*position[0], product.depth.extent):
                return None
            rows, groups = [Fused(position)], fuse_variables(every[:-1], offsets)
        else:
            rows = fuse_variables(every, offsets)
            rows, groups = rows[-1:], rows[:-1]
        features = fuse_variables(attention.features.variables, offsets)
        columns = fuse_variables(product.columns.variables, offsets)
        if len(batch) > 2 or len(groups) > 1 or len(rows) != 1 or len(features) != 1 or len(columns) != 1:
            return None
        missing = [one] * (2 - len(batch))
        outer, of_keys = [*batch, *missing] if groups else [*missing, *batch]
        heads = _Heads(of_keys, groups[0] if groups else one)
        return cls(outer, heads, rows[0], product.depth, features[0], columns[0])

    def forms(self, has_bias: bool) -> list[_Form]:
        """The axes of queries, keys, values, the bias and the result."""
        batch, heads, own = self.batch, self.heads, _Heads(self.heads.keys, Fused([]))
        bias: list[_Form] = [(batch, heads, self.queries, self.keys)] if has_bias else []
        return [
            (batch, heads, self.queries, self.features), (batch, own, self.keys, self.features),
            (batch, own, self.keys, self.columns), *bias, (batch, heads, self.queries, self.columns),
        ]  # fmt: skip


def _causal(name: str, extent: int, keys: int) -> Index:
    """What is not negative where the query at a position sees the keys up to it."""
    return Index.variable(name, extent) - Index.variable("k0", keys)


def _tensor(buffer: int, x: _Lying, form: _Form, is_bias: bool) -> Tensor:
    """An array of four axes; of a bias, those along which all elements are one have one."""
    batch, heads, rows, columns = form
    shape = [batch.extent, heads.extent, rows.extent, columns.extent]
    strides = [_stride(x.offset, batch), heads.stride(x.offset), _stride(x.offset, rows), _stride(x.offset, columns)]
    if is_bias:
        shape = [n if stride else 1 for n, stride in zip(shape, strides)]
    reach = 1 + sum((n - 1) * stride for n, stride in zip(shape, strides))
    strides = [stride if n > 1 else reach for n, stride in zip(shape, strides)]
    return Tensor(buffer, x.aval.dtype.name, x.offset.const, tuple(shape), tuple(strides))
