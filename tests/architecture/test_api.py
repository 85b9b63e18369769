"""docs/api.md: it has every name, and what it says is there is."""

from __future__ import annotations

import re

import pytest

import smelt

from . import api, differences

SECTIONS = {
    module: text
    for part in re.split(r"^## ", api.PAGE.read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]
    for module, text in re.findall(r"^### (\S+)\n(.*?)(?=^### |\Z)", part, flags=re.MULTILINE | re.DOTALL)
}


@pytest.mark.parametrize("inventory", api.NAMES)
def test_the_page_has_every_name(inventory: str) -> None:
    for entry in api.entries(inventory):
        text = SECTIONS[entry.module]
        absent = re.search(rf"^\| `{re.escape(entry.name)}` \| absent", text, flags=re.MULTILINE) is not None
        assert f"`{entry.name}`" in text, f"{entry.path}: run python -m tests.architecture.api"
        assert entry.found is not None or absent, f"{entry.path} is not there; run python -m tests.architecture.api"


def test_what_is_absent_has_a_reason() -> None:
    missing = [e.path for inventory in api.NAMES for e in api.entries(inventory) if e.found is None]
    assert set(missing) <= set(api.ABSENT), "say in tests/architecture/api.py why"


def test_what_differs_is_there() -> None:
    known = {e.path for inventory in api.NAMES for e in api.entries(inventory)}
    assert set(api.DIFFERENT) | set(api.ABSENT) <= known and all(api.DIFFERENT.values())


def test_readme_says_how_many_there_are() -> None:
    readme = api.README.read_text(encoding="utf-8")
    assert api.with_summary(readme) == readme, "run python -m tests.architecture.api"


def test_the_page_has_what_differs() -> None:
    page = differences.PAGE.read_text(encoding="utf-8")
    assert differences.with_table(page) == page, "run python -m tests.architecture.api"
    rows = differences.DIFFERENCES
    assert not [row for row in rows if differences.outcome(row.expression, "smelt") == row.mlx], "these differ no more"


@pytest.mark.parametrize("row", differences.DIFFERENCES, ids=lambda row: row.expression)
def test_what_mlx_gives(row: differences.Difference) -> None:
    if pytest.importorskip("mlx.core") is smelt:
        pytest.skip("that is smelt.compat")
    assert differences.outcome(row.expression, "mlx") == row.mlx
