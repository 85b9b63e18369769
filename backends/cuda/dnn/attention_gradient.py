"""The gradient of attention by cuDNN: an `AttentionGradient` as a graph that it knows as one.

The sums over keys that are cotangents of queries are made of what its engine leaves in the workspace, the cotangents
of all scores, and not added up in the order in which thread blocks finish: the same numbers in each run, as quickly.
That memory grows with queries times keys, so batches and heads may be done in several parts, which share it.

The graph is that of NVIDIA's cudnn-frontend (docs/operations/Attention.md), as of cuDNN 9.19.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import fields, replace
from typing import Any

from smelt.ir.errors import DeviceError

from ...gpu.library import AttentionGradient, Tensor
from .. import driver
from ..products import ALIGNMENT, place
from .graphs import COLUMNS, EXP, MUL, REFUSED, ROWS, SUB, TOTAL, Ops, has_aligned_lines, transposed
from .library import Descriptor, Graph, Library, Plan

#: Bytes of workspace that parts share, if there can be several.
PART_BYTES = 5 << 28
#: The GPUs on which sums were seen to be the same in each run, and the first version of which these engines do any
#: number of keys (`cudnn-frontend` pads what is no multiple of 128 before).
ARCHITECTURE, VERSION = "sm_90", 91501


def plans(library: Library, gradient: AttentionGradient) -> Iterator[Plan]:
    """The ways in which cuDNN can make a gradient, those of the fewest parts first."""
    arrays = [x for x in _tensors(gradient).values() if x.dtype != "float32"]
    if driver.architecture() != ARCHITECTURE or library.version < VERSION or not all(map(has_aligned_lines, arrays)):
        return
    for part, count in _parts(gradient):
        is_last = math.prod(count) == math.prod(gradient.keys.shape[:2])
        limit = gradient.workspace if is_last else min(PART_BYTES, gradient.workspace)
        further = _further(gradient, count)
        if _least(part) > limit or any(n % ALIGNMENT for found in further for n in found.values()):
            continue
        try:
            graph = _graph(library, part)
        except DeviceError:  # what it knows to be impossible without asking its engines
            return
        for plan in graph.plans(REFUSED, limit, compiles=True):
            plan.parts = [{n: found[x.buffer] for n, x in graph.arrays.items()} for found in further]
            yield plan


def _tensors(gradient: AttentionGradient) -> dict[str, Tensor]:
    found = {x.name: getattr(gradient, x.name) for x in fields(gradient)}
    return {name: x for name, x in found.items() if isinstance(x, Tensor)}


def _parts(gradient: AttentionGradient) -> Iterator[tuple[AttentionGradient, tuple[int, int]]]:
    """The first of equal parts of batches and heads of keys, and how many there are."""
    batch, heads = gradient.keys.shape[:2]
    counts = [(n, 1) for n in range(1, batch + 1) if batch % n == 0]
    counts += [(batch, n) for n in range(2, heads + 1) if heads % n == 0]
    for count in counts:
        first: dict[str, Any] = {
            name: replace(x, shape=(*(n // k for n, k in zip(x.shape, count)), *x.shape[2:]))
            for name, x in _tensors(gradient).items()
        }
        yield replace(gradient, **first), count


def _least(part: AttentionGradient) -> int:
    """Bytes of the cotangents of scores."""
    return 2 * math.prod(part.queries.shape[:3]) * part.keys.shape[ROWS]


def _further(gradient: AttentionGradient, count: tuple[int, int]) -> list[dict[int, int]]:
    """How many bytes further the arrays of each part lie, by their buffers."""
    arrays = _tensors(gradient).values()
    each = {x.buffer: [x.shape[axis] // count[axis] * x.strides[axis] for axis in (0, 1)] for x in arrays}
    return [
        {n: place(replace(x, offset=i * each[n][0] + j * each[n][1]))[1] for x in arrays for n in (x.buffer,)}
        for i in range(count[0]) for j in range(count[1])
    ]  # fmt: skip


class _Gradient:
    """A graph under construction."""

    def __init__(self, library: Library, gradient: AttentionGradient):
        self.graph, self.gradient = Graph(library), gradient
        self.ops = Ops(self.graph)
        self.dtype, self.batch = gradient.queries.dtype, gradient.queries.shape[:2]
        self.shape = (*gradient.queries.shape[:-1], gradient.keys.shape[ROWS])

    def on_scores(self, mode: int, x: Descriptor, y: Descriptor | None = None) -> Descriptor:
        """An op on elements for each score."""
        return self.ops.pointwise(mode, self.graph.between("float32", self.shape), x, y)

    def across(self, x: Descriptor) -> Descriptor:
        """Scores with keys as rows."""
        *others, queries, keys = self.shape
        strides = (others[1] * queries * keys, queries * keys, 1, keys)
        return self.ops.turned(self.graph.between(self.dtype, (*others, keys, queries), strides), x)

    def of_keys(self, out: Tensor, scores: Descriptor, y: Descriptor) -> None:
        """A product with one number for each key, which heads that share a key add up."""
        graph, ops, target = self.graph, self.ops, self.graph.array(out)
        if out.shape[1] == self.batch[1]:
            ops.product(target, self.across(scores), y)
        else:
            heads = graph.between(self.dtype, (*self.batch, *out.shape[2:]))
            ops.reduction(TOTAL, target, ops.product(heads, self.across(scores), y))


def _graph(library: Library, gradient: AttentionGradient) -> Graph:
    made = _Gradient(library, gradient)
    graph, ops, rows = made.graph, made.ops, (*made.shape[:-1], 1)
    queries, out, cotangent = (graph.array(x) for x in (gradient.queries, gradient.out, gradient.cotangent))
    keys, values = (graph.array(transposed(x)) for x in (gradient.keys, gradient.values))
    both = ops.pointwise(MUL, graph.between("float32", gradient.out.shape), cotangent, out)
    total = ops.reduction(TOTAL, graph.between("float32", rows), both)
    total = ops.pointwise(MUL, graph.array(gradient.sums), total, graph.number(1.0, COLUMNS + 1))
    scale = graph.number(gradient.scale, COLUMNS + 1)
    scores = made.on_scores(MUL, ops.product(graph.between("float32", made.shape), queries, keys), scale)
    shifted = made.on_scores(SUB, scores, graph.array(gradient.logarithms))
    if gradient.causal:
        shifted = ops.hidden_later(graph.between("float32", made.shape), shifted, made.shape)
    weights = made.on_scores(EXP, shifted)
    made.of_keys(gradient.values_cotangent, weights, cotangent)
    inner = ops.product(graph.between("float32", made.shape), cotangent, values)
    of_scores = made.on_scores(MUL, made.on_scores(MUL, made.on_scores(SUB, inner, total), weights), scale)
    made.of_keys(gradient.keys_cotangent, of_scores, queries)
    as_rows = graph.between(made.dtype, gradient.keys.shape, gradient.keys.strides)
    ops.product(graph.array(gradient.queries_cotangent), of_scores, ops.turned(as_rows, keys))
    return graph
