"""Slices of one array that the steps of a loop read, each a bit further: ``x[:, t]`` for t = 0, 1, …, as one array."""

from __future__ import annotations

from typing import Any

from smelt.ir.aval import Aval
from smelt.ir.op import Ints, registry

from ..graph import Node, RecordedNode, Ref

SLICE = registry["slice"]


def is_window(step: RecordedNode) -> bool:
    """Whether it may be the part of an array that a step of a loop reads."""
    return step.op is SLICE


def move(a: RecordedNode, b: RecordedNode) -> Ints | None:
    """By how much the second window begins later than the first, along each axis; None where they are the same."""
    first, second = a.attrs["start"], b.attrs["start"]
    return None if first == second else tuple(j - i for i, j in zip(first, second))


def stacked(first: RecordedNode, moved: Ints, times: int) -> list[RecordedNode] | None:
    """Nodes for so many windows, one along axis 0 after the other, where each lies `moved` behind the one before.

    None where they lie within no array that can be cut into steps of that length.
    """
    start, stop, stride = (first.attrs[name] for name in ("start", "stop", "stride"))
    axes = [axis for axis, by in enumerate(moved) if by]
    if len(axes) != 1 or stride[axes[0]] != 1:
        return None
    (axis,) = axes
    (source, number), (aval,) = first.inputs[0], first.avals
    extent, by, wide = source.avals[number].shape[axis], abs(moved[axis]), aval.shape[axis]
    lowest = start[axis] if moved[axis] > 0 else start[axis] - by * (times - 1)
    begin = min(lowest, extent - by * times)
    if begin < 0 or lowest - begin + wide > by:
        return None
    made = _Chain(first)
    length = by * times
    shape = (*aval.shape[:axis], length, *aval.shape[axis + 1 :])
    made.add("slice", shape, start=_at(start, axis, begin), stop=_at(stop, axis, begin + length), stride=stride)
    shape = (*aval.shape[:axis], times, by, *aval.shape[axis + 1 :])
    made.add("reshape", shape, shape=shape)
    if wide < by:
        low = tuple(lowest - begin if i == axis + 1 else 0 for i in range(len(shape)))
        shape = _at(shape, axis + 1, wide)
        high = tuple(a + n for a, n in zip(low, shape))
        made.add("slice", shape, start=low, stop=high, stride=(1,) * len(shape))
    if axis:
        permutation = (axis, *(i for i in range(len(shape)) if i != axis))
        made.add("transpose", tuple(shape[i] for i in permutation), permutation=permutation)
    if moved[axis] < 0:
        made.add("reverse", (times, *aval.shape), axes=(0,))
    return made.steps


class _Chain:
    """Nodes that each read the one before."""

    def __init__(self, first: RecordedNode):
        self.steps: list[RecordedNode] = []
        self._ref: Ref = first.inputs[0]
        self._dtype, self._where = first.avals[0].dtype, first.where

    def add(self, name: str, shape: Ints, /, **attrs: Any) -> None:
        op, avals = registry[name], (Aval(shape, self._dtype),)
        node = Node(op, attrs, (self._ref,), avals)
        self.steps.append(RecordedNode(node, op, attrs, (self._ref,), avals, self._where))
        self._ref = (node, 0)


def _at(values: Ints, axis: int, value: int) -> Ints:
    return (*values[:axis], value, *values[axis + 1 :])
