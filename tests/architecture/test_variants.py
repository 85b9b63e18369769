"""What is left of the tests where only some run: of variants, every value of every parameter; of parts, all tests."""

from __future__ import annotations

import argparse
import itertools
from typing import Any

import pytest

from ..conftest import Diagonals, Part, part_of


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


def test_parts_are_all_tests_each_once() -> None:
    """With all of their variants, and those of another file likewise."""
    tests = ["first::a", "first::b", "first::b", "second::a", "first::c", "second::b", "third::a"]
    found = [[test for test in tests if test in part] for part in (Part(1, 2), Part(2, 2), Part(1, 1))]
    assert found == [
        ["first::a", "second::a", "first::c", "third::a"], ["first::b", "first::b", "second::b"], tests,
    ]  # fmt: skip


def test_a_part_is_named_by_two_numbers() -> None:
    assert [part_of(text) for text in ("1/1", "2/3", "10/12")] == [(1, 1), (2, 3), (10, 12)]
    for wrong in ("0/2", "3/2", "2", "a/b", "1/2/3"):
        with pytest.raises(argparse.ArgumentTypeError, match="is not like 1/2"):
            part_of(wrong)
