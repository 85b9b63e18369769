"""docs/derivatives.md says what the registry says."""

from __future__ import annotations

import re

from smelt.ir.control import CONTROL_OPS

from ..ops.cases import plain_ops
from .derivatives import COLUMNS, PAGE, page


def rows() -> list[list[str]]:
    table = PAGE.read_text(encoding="utf-8").split(f"| {COLUMNS[0]} |")[1]
    lines = [line for line in table.splitlines() if line.startswith("| `")]
    return [[cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]] for line in lines]


def test_the_page_is_what_the_registry_says() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(), "to update: python -m tests.architecture.derivatives"


def test_every_op_has_a_row_without_blank_cells() -> None:
    assert {row[0].strip("`") for row in rows()} == {op.name for op in (*plain_ops(), *CONTROL_OPS)}
    for row in rows():
        assert len(row) == len(COLUMNS)
        assert all(cell not in ("", "-", "?", "missing") for cell in row), row
