"""docs/dialect.md says what the registry says."""

from __future__ import annotations

import re

from smelt.ir.op import registry

from .dialect import PAGE, page


def test_the_page_is_what_the_registry_says() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(), "to update: python -m tests.architecture.dialect"


def test_every_op_has_a_block_with_an_example() -> None:
    blocks = re.split(r"^### ", PAGE.read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]
    named = {block.split("`")[1]: block for block in blocks}
    own = {op.name for op in registry.values() if type(op).__module__.startswith("smelt.ir.ops.")}
    assert set(named) == own
    for name, block in named.items():
        assert f'"smelt.{name}"' in block and "```mlir" in block, name
        assert "missing" not in block, name
