"""The variants of a test that `thinned` leaves meet every value of every parameter."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from ..conftest import Diagonals


class Variant:
    """What an item of pytest says of its parameters."""

    def __init__(self, marks: list[pytest.Mark], params: dict[str, Any]):
        self.marks, self.params, self.callspec = marks, params, self

    def iter_markers(self, name: str) -> list[pytest.Mark]:
        return self.marks


@pytest.mark.parametrize("n", [2, 3])
def test_diagonals_of_a_grid(n: int) -> None:
    dtypes, sizes, kinds = ["f", "i", "c"], [(1, 2), (3, 4), (5, 6), (7, 8)], [None, "sim", "cpu"]
    marks = [pytest.mark.parametrize("dtype", dtypes).mark, pytest.mark.parametrize("rows, columns", sizes).mark]
    diagonal, kept = Diagonals(), []
    for dtype, size, kind in itertools.product(dtypes, sizes, kinds):  # the last one is a fixture's
        variant: Any = Variant(marks, {"dtype": dtype, "rows": size[0], "columns": size[1], "kind": kind})
        if diagonal("test", variant) % n == 0:
            kept.append((dtype, size, kind))
    assert len(kept) == 36 / n
    pairs = {(0, 1): 12, (0, 2): 9, (1, 2): 12}  # with each other, too: the third side has n values
    assert {p: len({tuple(v[i] for i in p) for v in kept}) for p in pairs} == pairs


def test_a_list_is_thinned_evenly() -> None:
    mark, diagonal = pytest.mark.parametrize("i", range(10)).mark, Diagonals()
    variants: list[Any] = [Variant([mark], {"i": i}) for i in range(10)]
    assert [diagonal("test", v) for v in variants] == list(range(10))
