"""The check is right on every row of the corpus: accepted, or refused on the line that Metal would name."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from .corpus import Row, problems, rows, table

PAGE = Path(__file__).parents[2] / "docs" / "metal.md"


@pytest.mark.parametrize("row", rows(), ids=str)
def test_row(row: Row) -> None:
    pytest.importorskip("clang.cindex")
    assert problems(row) == []


def test_rows_have_names_of_their_own() -> None:
    assert [name for name, times in Counter(str(row) for row in rows()).items() if times > 1] == []


def test_the_page_has_the_table() -> None:
    total = Counter((row.family, row.is_refused) for row in rows())
    assert table(total, total) in PAGE.read_text(encoding="utf-8"), "run python -m tests.metal.corpus"
