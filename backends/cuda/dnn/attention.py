"""Attention by cuDNN: a `ScaledAttention` as a graph of products, reductions and ops on elements.

cuDNN knows this graph as one, and has an engine that computes it tile by tile, which is compiled for it.
"""

from __future__ import annotations

from collections.abc import Iterator

from smelt.ir.errors import DeviceError

from ...gpu.library import ScaledAttention
from .graphs import ADD, DIV, EXP, LARGEST, LOG, MUL, REFUSED, ROWS, SUB, TOTAL, Ops, has_aligned_lines, transposed
from .library import Graph, Library, Plan


def plans(library: Library, attention: ScaledAttention) -> Iterator[Plan]:
    """The ways in which cuDNN can make attention, those first that it takes for the fastest."""
    arrays = [attention.queries, attention.keys, attention.values, attention.out]
    if attention.bias is not None:
        arrays.append(attention.bias)
    if not all(map(has_aligned_lines, arrays)):
        return
    try:
        graph = _graph(library, attention)
    except DeviceError:  # what it knows to be impossible without asking its engines
        return
    yield from graph.plans(REFUSED, attention.workspace, compiles=True)


def _graph(library: Library, attention: ScaledAttention) -> Graph:
    graph = Graph(library)
    ops, axes = Ops(graph), len(attention.queries.shape)
    queries, values, out = (graph.array(x) for x in (attention.queries, attention.values, attention.out))
    keys = graph.array(transposed(attention.keys))
    shape = (*attention.queries.shape[:-1], attention.keys.shape[ROWS])
    rows = (*shape[:-1], 1)
    logits = ops.product(graph.between("float32", shape), queries, keys)
    scale = graph.number(attention.scale, axes)
    logits = ops.pointwise(MUL, graph.between("float32", shape), logits, scale)
    if attention.bias is not None:
        logits = ops.pointwise(ADD, graph.between("float32", shape), logits, graph.array(attention.bias))
    if attention.causal:
        logits = ops.hidden_later(graph.between("float32", shape), logits, shape)
    largest = ops.reduction(LARGEST, graph.between("float32", rows), logits)
    shifted = ops.pointwise(SUB, graph.between("float32", shape), logits, largest)
    exponentials = ops.pointwise(EXP, graph.between("float32", shape), shifted)
    total = ops.reduction(TOTAL, graph.between("float32", rows), exponentials)
    # where nobody reads the logarithms of the sums of exponentials, the graph is none that cuDNN knows without them
    logarithms = attention.logarithms
    written = graph.between("float32", rows) if logarithms is None else graph.array(logarithms)
    ops.pointwise(ADD, written, largest, ops.pointwise(LOG, graph.between("float32", rows), total))
    weights = ops.pointwise(DIV, graph.between(attention.out.dtype, shape), exponentials, total)
    ops.product(out, weights, values)
    return graph
