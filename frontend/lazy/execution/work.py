"""How much there is to do: element operations, from ops and shapes alone."""

from __future__ import annotations

from collections.abc import Iterable

from smelt.ir.control import COND
from smelt.ir.kinds import Contraction

from ..graph import APPLY, GraphFunction, Node, RecordedNode, callees
from . import tiers


def work(order: Iterable[Node | RecordedNode]) -> float:
    """Element operations of a graph: from its ops and shapes alone."""
    total = 0.0
    for node in order:
        op = node.op
        if op is APPLY:
            own = 3 * _of_function(node.attrs["callee"])
            for name, attrs in node.attrs["transforms"]:
                own *= attrs["size"] if name == "batch" else 1
            total += own
            continue
        if op.kind == "control":
            total += _control(node)
            continue
        size = 0
        for aval in node.avals:
            if aval.size > size:
                size = aval.size
        for child, i in node.inputs:
            other = child.avals[i].size
            if other > size:
                size = other
        own = size * op.rule_cost
        if isinstance(op, Contraction):
            own = max(own, op.work(*(n.avals[i] for n, i in node.inputs), **node.attrs))
        total += own
    return total


def _of_function(function: GraphFunction) -> float:
    """Of a call; noted in the function, for those of a recipe are called again and again."""
    if function.work is None:
        function.work = work(function.body)
    return function.work


#: What starting an op of the reference rules costs, in element operations.
_START = 1000


def _control(node: Node | RecordedNode) -> float:
    """Element operations of a branch or loop. In loops each op counts as worth starting: few elements many
    times are worth a compile."""
    steps = node.attrs.get("length", tiers.ASSUMED_STEPS) if node.op is not COND else 1
    return steps * sum(_of_function(f) + (0 if node.op is COND else _START * len(f.body)) for f in callees(node))
