"""Attention by cuDNN: a `ScaledAttention` as a graph of products, reductions and ops on elements.

cuDNN knows this graph as one, and has an engine that computes it tile by tile, which is compiled for it.
"""

from __future__ import annotations

from collections.abc import Iterator

from smelt.ir.errors import DeviceError

from ...gpu.library import ScaledAttention, Tensor
from . import codes
from .library import Descriptor, Graph, Library, Plan

#: cudnnBackendDescriptorType_t of what describes an operation, and of the operation.
_POINTWISE, _POINTWISE_OPERATION, _MATMUL, _MATMUL_OPERATION, _REDUCTION, _REDUCTION_OPERATION = 0, 13, 18, 19, 21, 22
#: cudnnPointwiseMode_t.
_ADD, _MUL, _DIV, _SUB, _EXP, _LOG, _GREATER_EQUAL, _POSITION, _SELECT = 0, 1, 6, 9, 13, 15, 303, 501, 601
#: cudnnReduceTensorOp_t.
_TOTAL, _LARGEST = 0, 3
#: Elements of which rows and where they begin are multiples.
LINE = 8
#: Axes of positions of queries and of keys.
_ROWS, _COLUMNS = 2, 3
_REFUSED = {codes.ROUNDS_SUMS, codes.CHANGES}


def plans(library: Library, attention: ScaledAttention) -> Iterator[Plan]:
    """The ways in which cuDNN can make attention, those first that it takes for the fastest."""
    arrays = [attention.queries, attention.keys, attention.values, attention.out]
    if attention.bias is not None:
        arrays.append(attention.bias)
    if not all(map(_has_aligned_lines, arrays)):
        return
    try:
        graph = _graph(library, attention)
    except DeviceError:  # what it knows to be impossible without asking its engines
        return
    yield from graph.plans(_REFUSED, attention.workspace, compiles=True)


def _has_aligned_lines(x: Tensor) -> bool:
    """Whether elements that are neighbours along the last axis can be copied together, `LINE` at a time."""
    *others, (_, last) = zip(x.shape, x.strides)
    return last == 1 and x.offset % LINE == 0 and all(n == 1 or stride % LINE == 0 for n, stride in others)


class _Ops:
    """Operations of a graph, each of which gives a tensor that lies nowhere."""

    def __init__(self, graph: Graph):
        self.graph = graph

    def pointwise(
        self, mode: int, out: Descriptor, x: Descriptor, y: Descriptor | None = None,
        condition: Descriptor | None = None, dtype: str = "float32", axis: int | None = None,
    ) -> Descriptor:  # fmt: skip
        """An op on elements that gives `out`. axis: the one along which positions are counted."""
        kind = self.graph.part(_POINTWISE).set(0, codes.POINTWISE_MODE, mode).dtype(1, dtype)
        if axis is not None:
            kind.integers(9, axis)
        operation = self.graph.operation(_POINTWISE_OPERATION).refer(750, kind.finish()).refer(751, x)
        if y is not None:
            operation.refer(752, y)
        if condition is not None:
            operation.refer(758, condition)
        operation.refer(753, out).finish()
        return out

    def reduction(self, which: int, out: Descriptor, x: Descriptor) -> Descriptor:
        """A reduction of the axes along which `out` has one element."""
        kind = self.graph.part(_REDUCTION).set(1600, codes.REDUCTION_OPERATOR, which).dtype(1601, "float32")
        self.graph.operation(_REDUCTION_OPERATION).refer(1612, kind.finish()).refer(1610, x).refer(1611, out).finish()
        return out

    def product(self, out: Descriptor, x: Descriptor, y: Descriptor) -> Descriptor:
        """Products of matrices; those of `y` may serve several heads of `x`."""
        kind = self.graph.part(_MATMUL).dtype(1500, "float32").finish()
        operation = self.graph.operation(_MATMUL_OPERATION).refer(1523, kind)
        operation.refer(1520, x).refer(1521, y).refer(1522, out).finish()
        return out


def _graph(library: Library, attention: ScaledAttention) -> Graph:
    graph = Graph(library)
    ops, axes = _Ops(graph), len(attention.queries.shape)
    queries, values, out = (graph.array(x) for x in (attention.queries, attention.values, attention.out))
    keys = graph.array(_transposed(attention.keys))
    shape = (*attention.queries.shape[:-1], attention.keys.shape[_ROWS])
    rows = (*shape[:-1], 1)
    logits = ops.product(graph.between("float32", shape), queries, keys)
    scale = graph.number(attention.scale, axes)
    logits = ops.pointwise(_MUL, graph.between("float32", shape), logits, scale)
    if attention.bias is not None:
        logits = ops.pointwise(_ADD, graph.between("float32", shape), logits, graph.array(attention.bias))
    if attention.causal:
        row, column = (
            ops.pointwise(_POSITION, graph.between("int32", shape), logits, axis=axis) for axis in (_ROWS, _COLUMNS)
        )
        seen = ops.pointwise(_GREATER_EQUAL, graph.between("bool", shape), row, column, dtype="bool")
        hidden = graph.number(float("-inf"), axes)
        logits = ops.pointwise(_SELECT, graph.between("float32", shape), logits, hidden, seen)
    largest = ops.reduction(_LARGEST, graph.between("float32", rows), logits)
    shifted = ops.pointwise(_SUB, graph.between("float32", shape), logits, largest)
    exponentials = ops.pointwise(_EXP, graph.between("float32", shape), shifted)
    total = ops.reduction(_TOTAL, graph.between("float32", rows), exponentials)
    # nobody reads the logarithm of the sums of exponentials, but without it the graph is not one that cuDNN knows
    logarithm = ops.pointwise(_LOG, graph.between("float32", rows), total)
    ops.pointwise(_ADD, graph.between("float32", rows), largest, logarithm)
    weights = ops.pointwise(_DIV, graph.between(attention.out.dtype, shape), exponentials, total)
    ops.product(out, weights, values)
    return graph


def _transposed(x: Tensor) -> Tensor:
    """An array of matrices with rows for columns."""
    (*shape, n, m), (*strides, down, across) = x.shape, x.strides
    return Tensor(x.buffer, x.dtype, x.offset, (*shape, m, n), (*strides, across, down))
