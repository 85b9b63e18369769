"""Dce: ops whose results nobody uses, and private functions nobody calls, are erased.

Before::

    %0 = "smelt.exp"(%x)
    %1 = "smelt.sin"(%x)
    return %1

After::

    %1 = "smelt.sin"(%x)
    return %1
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

from smelt.ir.builder import functions
from smelt.ir.control import HELPERS, LOOPS
from smelt.ir.op import registry as ops

from .inline import drop_unused
from .registry import Pass, register_pass


@register_pass("dce")
@dataclass(frozen=True)
class DcePass(Pass):
    """Erase unused pure ops and unused private functions."""

    def run(self, module: Any, statistics: Counter) -> None:
        for operation in functions(module).values():
            for block in operation.regions[0].blocks:
                for item in reversed(list(block.operations)):
                    op = item.operation
                    if _removable(op.name) and not any(True for r in op.results for _ in r.uses):
                        op.erase()
                        statistics["ops erased"] += 1
        drop_unused(module, statistics)


def _removable(name: str) -> bool:
    if name.startswith("smelt."):
        return ops[name.removeprefix("smelt.")].pure
    return name in ("func.call", "func.constant", "func.call_indirect", *LOOPS, *HELPERS)
