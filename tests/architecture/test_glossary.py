"""The words of the glossary in docs/architecture.md are those of the code."""

from __future__ import annotations

import ast
import re

import pytest

from .sources import ROOT

TEXT = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
CLASSES = re.findall(r"`(\S+\.py) (\w+)`", TEXT[TEXT.index("## Glossary") :])


@pytest.mark.parametrize("file, name", CLASSES, ids=[name for _, name in CLASSES])
def test_a_class_of_the_glossary_stands_where_it_says(file: str, name: str) -> None:
    tree = ast.parse((ROOT / file).read_text(encoding="utf-8"))
    defined = {n.name for n in tree.body if isinstance(n, ast.ClassDef)}
    defined |= {t.id for n in tree.body if isinstance(n, ast.Assign) for t in n.targets if isinstance(t, ast.Name)}
    assert name in defined


@pytest.mark.parametrize("word", ["Place", "Piece", "Parts", "Kernel", "KernelInfo"])
def test_words_of_several_meanings_name_at_most_one_class(word: str) -> None:
    rooms = ("ir", "passes", "backends", "runtime", "frontend", "tools")
    files = [path for room in rooms for path in (ROOT / room).rglob("*.py")]
    found = [str(p.relative_to(ROOT)) for p in files if re.search(rf"^class {word}\b", p.read_text("utf-8"), re.M)]
    assert len(found) <= 1, found
