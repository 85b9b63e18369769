"""Forms in which libraries compute contractions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from .op import Ints


class MatmulForm(NamedTuple):
    """A contraction as a batch of matrix products: [B, M, K] · [B, K, N] → [B, M, N].

    The permutations bring the operands' axes into the orders B, M, K and B, K, N. A layout says how
    a contiguous operand lies in memory: "plain" in just that order, "transposed" with its last two
    groups exchanged (a BLAS reads both without a copy), "copy" in neither.
    """

    batch: int
    m: int
    n: int
    k: int
    lhs_permutation: tuple[int, ...]
    rhs_permutation: tuple[int, ...]
    lhs_layout: str
    rhs_layout: str

    @property
    def in_place(self) -> bool:
        """Whether both operands are read where they lie."""
        return "copy" not in (self.lhs_layout, self.rhs_layout)


class WindowForm(NamedTuple):
    """A contraction as a convolution of an image [N, spatial axes, C] with a filter [O, spatial axes, C / groups].

    The result is [N, spatial axes, O]. Along a spatial axis its element i meets at the filter's element k the image's
    element (i * stride + k * dilation - low) / spread, where that is one of them.
    """

    strides: Ints
    low: Ints
    dilation: Ints
    spread: Ints
    groups: int


def matrix_layout(shape: Sequence[int], batch: Ints, rows: Ints, columns: Ints) -> str:
    """How the axes of a contiguous array, in groups, lie in memory as matrices; see `MatmulForm`."""
    for name, order in (("plain", (*batch, *rows, *columns)), ("transposed", (*batch, *columns, *rows))):
        kept = [a for a in order if shape[a] != 1]  # axes of size one lie anywhere
        if kept == sorted(kept):
            return name
    return "copy"
