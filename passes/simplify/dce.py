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

from smelt.ir import mlir
from smelt.ir.builder import Function, OpView, functions, kept_function, renew
from smelt.ir.control import HELPERS, LOOPS
from smelt.ir.op import registry as ops

from ..registry import Pass, register_pass
from .inline import drop_unused
from .narrow import narrow
from .reads import functions_with_effects


@register_pass("dce")
@dataclass(frozen=True)
class DcePass(Pass):
    """Erase unused pure ops and unused private functions, and narrow what functions run to what is read."""

    def run(self, module: Any, statistics: Counter) -> None:
        drop_unused(module, statistics)
        with_effects = functions_with_effects(module)
        for operation in functions(module).values():
            kept = kept_function(operation)
            if kept is not None and _is_all(kept, operation):
                statistics["ops erased"] += _erase_unused(kept, with_effects)
                continue
            for block in operation.regions[0].blocks:
                for item in reversed(list(block.operations)):
                    op = item.operation
                    if any(True for r in op.results for _ in r.uses) or not _removable(op, with_effects):
                        continue
                    op.erase()
                    statistics["ops erased"] += 1
        drop_unused(module, statistics)
        narrow(module, statistics)
        drop_unused(module, statistics)


def _is_all(function: Function, operation: Any) -> bool:
    """Whether each operation of a function is one of its ops, and none stands there for others."""
    return len(operation.regions[0].blocks[0].operations) == len(function.ops) + 1


def _erase_unused(function: Function, with_effects: set[str]) -> int:
    """Erase the unused ops of a function that consists of ops alone; how many were erased."""
    read, left = set(function.returns), list[OpView]()
    for op in reversed(function.ops):
        if any(v in read for v in op.results) or not _removable(op.mlir, with_effects):
            read.update(op.operands)
            left.append(op)
        else:
            op.erase()
    erased = len(function.ops) - len(left)
    if erased:
        function.ops = left[::-1]
        renew(function, ())
    return erased


def _removable(op: Any, with_effects: set[str]) -> bool:
    name = op.name
    if name.startswith("smelt."):
        return ops[name.removeprefix("smelt.")].pure
    if with_effects and name in ("func.call", "func.call_indirect", *LOOPS):
        return name != "func.call_indirect" and not any(callee in with_effects for callee in _called(op))
    return name in ("func.call", "func.constant", "func.call_indirect", *LOOPS, *HELPERS)


def _called(op: Any) -> list[str]:
    if op.name == "func.call":
        return [mlir.ir.FlatSymbolRefAttr(op.attributes["callee"]).value]
    calls = [item.operation for region in op.regions for block in region.blocks for item in block.operations]
    return [name for call in calls if call.name == "func.call" for name in _called(call)]
