"""Rewrite: a set of declarative rewrites, applied until none matches.

Before, with a set that has ``log(exp(x)) → x``::

    %0 = "smelt.exp"(%x) : (tensor<4xf32>) -> tensor<4xf32>
    %1 = "smelt.log"(%0) : (tensor<4xf32>) -> tensor<4xf32>
    return %1

After::

    return %x

Ops are visited from the first to the last, and what a rewrite emits is tried in turn. Each rewrite is counted under
its name.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from smelt.ir.aval import Aval
from smelt.ir.builder import Value
from smelt.ir.errors import IRError
from smelt.ir.op import Op
from smelt.ir.scopes import place

from ..registry import Pass, register_pass
from ..simplify.patterns import Pattern, PatternBuilder
from ..simplify.reads import functions_with_effects
from .sets import find

#: Rewrites of what rewrites emit, one inside the other, at most.
MAX_DEPTH = 64


@register_pass("rewrite")
@dataclass(frozen=True)
class RewritePass(Pass):
    """Apply a set of declarative rewrites, and drop what becomes dead.

    Attributes:
        set: the name of the set.
        only: rewrites to apply; none: all.
        without: rewrites to leave out.
    """

    set: str = "canonicalize"
    only: tuple[str, ...] = ()
    without: tuple[str, ...] = ()

    @property
    def foreign(self) -> bool:
        return find(self.set).foreign

    def run(self, module: Any, statistics: Counter) -> None:
        """Raises IRError where rewrites undo each other, PipelineError where there is no such set or rewrite."""
        table = find(self.set).table(self.only, self.without)
        apply_table(module, table, statistics)


def apply_table(module: Any, table: dict[Op, tuple[Pattern, ...]], statistics: Counter, once: bool = False) -> None:
    """Apply patterns to each function of a module that is no kernel. `once`: not to what they emit."""
    builder = _Builder(table, statistics, functions_with_effects(module))
    builder.once = once
    builder.sweep_all(module)


class _Builder(PatternBuilder):
    """Tries the patterns of a table, and notices those that undo each other."""

    def __init__(self, table: dict[Op, tuple[Pattern, ...]], statistics: Counter, with_effects: set[str]):
        super().__init__(statistics, with_effects, lambda op: table.get(op, ()))
        self.once = False
        self.visited: list[tuple[Any, ...]] = []  # the ops being rewritten, each emitted for the one before

    def _rewritten(
        self, table: Sequence[Pattern], op: Op, operands: Sequence[Value], attrs: dict[str, Any], avals: Sequence[Aval]
    ) -> Value | None:
        if not table or (self.once and self.visited):
            return None
        here = (op, *map(id, operands), repr(attrs))
        if here in self.visited or len(self.visited) >= MAX_DEPTH:
            names = ", ".join(dict.fromkeys(p.__name__.replace("_", "-") for p in table))
            why = "undo each other" if here in self.visited else f"go on after {MAX_DEPTH} rewrites of what they emit"
            message = f"rewrites of smelt.{op.name} {why}: {names}; leave one out, or give it a condition by .when()"
            raise IRError(message + place(self.location))
        self.visited.append(here)
        try:
            return super()._rewritten(table, op, operands, attrs, avals)
        finally:
            self.visited.pop()
