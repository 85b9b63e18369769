"""The table of rules, and what a rule gets."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from smelt.ir.aval import Aval

from ..writer import Tensor, Writer

#: From an op to its results: ``rule(call)``.
Rule = Callable[["Call"], "Tensor | Sequence[Tensor]"]
RULES: dict[str, Rule] = {}


class Call:
    """An op of the dialect whose operands are written: `writer`, `operands`, `attrs`, the types of its results."""

    def __init__(
        self, writer: Writer, name: str, operands: Sequence[Tensor], attrs: dict[str, Any], avals: Sequence[Aval]
    ):
        self.writer, self.name, self.operands, self.attrs = writer, name, list(operands), attrs
        self.avals = list(avals)

    @property
    def x(self) -> Tensor:
        """The first operand."""
        return self.operands[0]

    @property
    def aval(self) -> Aval:
        return self.avals[0]


def rule(*names: str) -> Callable[[Rule], Rule]:
    """Enter a rule for ops of these names, without the dialect's."""

    def enter(function: Rule) -> Rule:
        RULES.update((name, function) for name in names)
        return function

    return enter
