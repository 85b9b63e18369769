"""Graphs of products, reductions and ops on elements, for cuDNN."""

from __future__ import annotations

from collections.abc import Sequence

from ...gpu.library import Tensor
from . import codes
from .library import Descriptor, Graph

#: cudnnBackendDescriptorType_t of what describes an operation, and of the operation.
_POINTWISE, _POINTWISE_OPERATION, _MATMUL, _MATMUL_OPERATION, _REDUCTION, _REDUCTION_OPERATION = 0, 13, 18, 19, 21, 22
_RESHAPE_OPERATION = 31
#: cudnnPointwiseMode_t.
ADD, MUL, DIV, SUB, EXP, LOG, GREATER_EQUAL, POSITION, SELECT = 0, 1, 6, 9, 13, 15, 303, 501, 601
#: cudnnReduceTensorOp_t.
TOTAL, LARGEST = 0, 3
#: Elements of which rows and where they begin are multiples.
LINE = 8
#: Axes of positions of queries and of keys.
ROWS, COLUMNS = 2, 3
#: Notes on numerics that an engine may not have: what it computes does not change from run to run.
REFUSED = {codes.ROUNDS_SUMS, codes.CHANGES}


def has_aligned_lines(x: Tensor) -> bool:
    """Whether elements that are neighbours along the last axis can be copied together, `LINE` at a time."""
    *others, (_, last) = zip(x.shape, x.strides)
    return last == 1 and x.offset % LINE == 0 and all(n == 1 or stride % LINE == 0 for n, stride in others)


class Ops:
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

    def hidden_later(self, out: Descriptor, x: Descriptor, shape: Sequence[int]) -> Descriptor:
        """Scores with -infinity for keys behind their query."""
        graph = self.graph
        row, column = (
            self.pointwise(POSITION, graph.between("int32", shape), x, axis=axis) for axis in (ROWS, COLUMNS)
        )
        seen = self.pointwise(GREATER_EQUAL, graph.between("bool", shape), row, column, dtype="bool")
        return self.pointwise(SELECT, out, x, graph.number(float("-inf"), len(shape)), seen)

    def turned(self, out: Descriptor, x: Descriptor) -> Descriptor:
        """The elements of a tensor with other axes."""
        self.graph.operation(_RESHAPE_OPERATION).refer(2200, x).refer(2201, out).finish()
        return out


def transposed(x: Tensor) -> Tensor:
    """An array of matrices with rows for columns."""
    (*shape, n, m), (*strides, down, across) = x.shape, x.strides
    return Tensor(x.buffer, x.dtype, x.offset, (*shape, m, n), (*strides, across, down))
