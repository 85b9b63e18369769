"""Where the elements of an array lie in memory, as MLIR's ``strided<[…], offset: …>`` has it, and of its views."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from .aval import Aval
from .index import strides_of, variables
from .kinds import Movement
from .op import Op
from .ops.movement import Reshape, reshape_groups


class StridedLayout(NamedTuple):
    """Where an array lies in its memory, in elements.

    Attributes:
        offset: of its first element.
        strides: how far neighbours along each axis are apart.

    >>> StridedLayout.contiguous((2, 3))
    StridedLayout(offset=0, strides=(3, 1))
    """

    offset: int
    strides: tuple[int, ...]

    @classmethod
    def contiguous(cls, shape: Sequence[int]) -> StridedLayout:
        """That of an array that has memory to itself."""
        return cls(0, strides_of(shape))

    def is_whole(self, shape: Sequence[int]) -> bool:
        """Whether an array of that shape lies so in the order of its elements, from the start of its memory on."""
        wanted = strides_of(shape)
        return self.offset == 0 and all(d == 1 or a == b for d, a, b in zip(shape, self.strides, wanted))

    def part(self, start: Sequence[int], step: Sequence[int]) -> StridedLayout:
        """The layout of every `step`-th element from `start` on, along each axis.

        >>> StridedLayout.contiguous((4, 6)).part((1, 0), (1, 2))
        StridedLayout(offset=6, strides=(6, 2))
        """
        offset = self.offset + sum(a * s for a, s in zip(start, self.strides))
        return StridedLayout(offset, tuple(n * s for n, s in zip(step, self.strides)))

    def reshaped(self, old: tuple[int, ...], new: tuple[int, ...]) -> StridedLayout | None:
        """That of the same elements in another shape; None where no strides serve.

        >>> StridedLayout.contiguous((2, 6)).reshaped((2, 6), (2, 3, 2))
        StridedLayout(offset=0, strides=(6, 2, 1))
        >>> StridedLayout(0, (1, 2)).reshaped((2, 6), (12,)) is None
        True
        """
        strides = [0] * len(new)
        for had, wanted in reshape_groups(old, new):
            axes = [a for a in had if old[a] != 1]
            for outer, inner in itertools.pairwise(axes):
                if self.strides[outer] != old[inner] * self.strides[inner]:
                    return None
            step = self.strides[axes[-1]] if axes else 1
            for a in reversed(wanted):
                strides[a] = step
                step *= new[a]
        return StridedLayout(self.offset, tuple(strides))


def viewed(op: Op, attrs: Mapping[str, Any], at: StridedLayout, operand: Aval, result: Aval) -> StridedLayout | None:
    """Where the result of an op lies, if it is a view of its operand, which lies there; None where it is not."""
    if not isinstance(op, Movement) or not result.size:
        return None
    if isinstance(op, Reshape):
        return at.reshaped(operand.shape, result.shape)
    index = op.map_index(variables(result.shape), operand, result, **attrs)
    offset = at.offset + sum(i.const * step for i, step in zip(index, at.strides))
    strides = []
    for axis in range(result.ndim):
        steps = [i.step(f"i{axis}") for i in index]
        if None in steps:
            return None
        strides.append(sum(n * step for n, step in zip(steps, at.strides) if n))
    return StridedLayout(offset, tuple(strides))
