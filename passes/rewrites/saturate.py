"""Saturate: the cheapest of all the expressions that rules derive from a function.

Before::

    %0 = "smelt.dot_general"(%a, %b) ...  : (tensor<256x256xf32>, tensor<256x256xf32>) -> tensor<256x256xf32>
    %1 = "smelt.dot_general"(%0, %v) ...  : (tensor<256x256xf32>, tensor<256xf32>) -> tensor<256xf32>

After::

    %0 = "smelt.dot_general"(%b, %v) ...  : (tensor<256x256xf32>, tensor<256xf32>) -> tensor<256xf32>
    %1 = "smelt.dot_general"(%a, %0) ...  : (tensor<256x256xf32>, tensor<256xf32>) -> tensor<256xf32>

Canonicalize applies each rewrite that it finds, and never goes back. Here rules add to an e-graph (`egraph`), so a
rule that costs something may lead to one that saves more. The costs are those of kernels (`passes.kernels.cost`):
operations, and for contractions, which are kernels of their own, also bytes. The pass is part of no default pipeline:
its rules hold for real numbers, and change the rounding.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

from smelt.ir import mlir
from smelt.ir.builder import STRUCTURAL, Builder, Function, OpView, Value, read_function
from smelt.ir.text import line_of

from .. import remarks
from ..registry import Pass, register_pass
from ..rewrite import unfused_functions
from . import algebra  # noqa: F401  (the set of that name)
from .egraph import EGraph, Node
from .matching import Ready, ready
from .sets import find


@register_pass("saturate")
@dataclass(frozen=True)
class SaturatePass(Pass):
    """Find the cheapest of all expressions that rules make of a function.

    Attributes:
        set: the rules.
        rounds: how often all rules are tried, at most.
        max_nodes: of the e-graph.
        max_ops: functions of more ops are left as they are.
    """

    set: str = "algebra"
    rounds: int = 6
    max_nodes: int = 2000
    max_ops: int = 300

    @property
    def foreign(self) -> bool:
        return find(self.set).foreign

    def run(self, module: Any, statistics: Counter) -> None:
        """Raises PipelineError where there is no such set."""
        rules = [order for rewrite in find(self.set) for rule in rewrite.rules for order in ready(rule)]
        for operation in unfused_functions(module):
            function = read_function(operation)
            if len(function.ops) <= self.max_ops:
                self._function(function, rules, statistics)
            else:
                count = len(function.ops)
                said = f"@{function.name} has {count} ops, more than max-ops={self.max_ops}: it stays as it is"
                self._say("missed", "max-ops", said, function)

    def _function(self, function: Function, rules: Sequence[Ready], statistics: Counter) -> None:
        graph = EGraph()
        classes, leaves = _entered(graph, function)
        before = {of: next(iter(graph.nodes[graph.find(of)])) for of in classes.values()}
        roots = [classes[v] for v in function.returns if v in classes]
        old = sum(graph.cost(before[of], of) for of in _reached(roots, before, graph))
        ends = any(not graph.apply(rules, self.max_nodes) for _ in range(self.rounds))
        if not ends or graph.size >= self.max_nodes:
            limit = f"rounds={self.rounds}" if graph.size < self.max_nodes else f"max-nodes={self.max_nodes}"
            said = f"the rules would make more of @{function.name}: {limit} ends that"
            self._say("analysis", "limits", said, function)
        best = {of: node for of, (_, node) in graph.best().items()}
        new = sum(graph.cost(best[of], of) for of in _reached([graph.find(r) for r in roots], best, graph))
        if new < old * (1 - 1e-9):
            _emitted(graph, function, classes, leaves, best)
            statistics["functions improved"] += 1
            statistics["operations saved"] += int(old - new)
            self._say("passed", "cheaper", f"@{function.name} takes {new:.4g} operations, {old:.4g} before", function)

    def _say(self, kind: str, rule: str, said: str, function: Function) -> None:
        lines = (line_of(op.location) for op in function.ops)
        remarks.add(remarks.Remark(self.name, kind, rule, said, next(filter(None, lines), ""), function.name))


def _is_expression(op: OpView) -> bool:
    """Whether an op stands in the e-graph by itself; others are leaves."""
    kind = op.op.kind
    return (
        len(op.results) == 1 and op.op.pure and not op.op.mixed and kind not in (*STRUCTURAL, "control", "opaque")
        and op.results[0].aval is not None and not any(hasattr(v, "tobytes") for v in op.attrs.values())
    )  # fmt: skip


def _entered(graph: EGraph, function: Function) -> tuple[dict[Value, int], dict[str, Value]]:
    """The class of each value of a function, and the values that are leaves."""
    classes: dict[Value, int] = {}
    leaves: dict[str, Value] = {}

    def leaf(value: Value) -> None:
        if value.aval is not None:
            name = f"leaf {len(leaves)}"
            leaves[name] = value
            classes[value] = graph.add(None, {}, (), value.aval, name)

    for value in function.arguments:
        leaf(value)
    for op in function.ops:
        if _is_expression(op) and all(v in classes for v in op.operands):
            result = op.results[0]
            classes[result] = graph.add(op.op, op.attrs, [classes[v] for v in op.operands], result.aval)
        else:
            for value in op.results:
                leaf(value)
    return classes, leaves


def _reached(roots: Collection[int], chosen: dict[int, Node], graph: EGraph) -> set[int]:
    """The classes that expressions of some classes are made of, each once."""
    seen: set[int] = set()
    pending = list(roots)
    while pending:
        of = graph.find(pending.pop())
        if of not in seen:
            seen.add(of)
            pending += chosen[of].operands
    return seen


def _emitted(
    graph: EGraph, function: Function, classes: dict[Value, int], leaves: dict[str, Value], best: dict[int, Node]
) -> None:
    """Return the chosen expressions in place of those that the function returns now."""
    block = function.mlir.regions[0].blocks[0]
    end = list(block.operations)[-1].operation
    b = Builder(mlir.ir.InsertionPoint(end), end.location)
    made: dict[int, Value] = {}
    for i, value in enumerate(function.returns):
        if value not in classes:
            continue
        if value.owner is not None:
            b.location = value.owner.location
        pending = [graph.find(classes[value])]
        while pending:
            of = pending[-1]
            node = best[of]
            missing = [c for c in map(graph.find, node.operands) if c not in made]
            if of not in made and missing:
                pending += missing
                continue
            pending.pop()
            if of not in made:
                operands = [made[graph.find(c)] for c in node.operands]
                made[of] = leaves[node.key] if node.op is None else b.emit(node.op, operands, graph.attrs[node.key])[0]
        end.operands[i] = made[graph.find(classes[value])].mlir
    function.scope.changed()
