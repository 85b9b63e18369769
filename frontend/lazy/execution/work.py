"""How much there is to do: element operations, from ops and shapes alone."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from smelt.ir.aval import Aval
from smelt.ir.control import COND
from smelt.ir.kinds import Contraction
from smelt.ir.op import Op
from smelt.ir.symbolic import value_of

from ..graph import APPLY, Node, RecordedNode, callees
from . import tiers

REDUCING = ("reduction", "arg_reduction")
#: What it takes NumPy to begin with another line in a reduction, in element operations.
_LINE = 50


def unit(op: Op, operands: Sequence[Aval]) -> float:
    """What the rule of an op takes for an element, in additions; where sizes are symbols, for the first ones.

    NumPy reduces line by line along the last axis, whether that is summed or not.
    """
    if op.kind not in REDUCING or not operands[0].shape:
        return op.rule_cost
    return op.rule_cost + _LINE / max(value_of(operands[0].shape[-1]), 1)


def work(order: Iterable[Node | RecordedNode]) -> float:
    """Element operations of a graph: from its ops and shapes alone."""
    total = 0.0
    for node in order:
        op = node.op
        if op is APPLY:
            own = 3 * work(node.attrs["callee"].body)
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
        own = size * (unit(op, [n.avals[i] for n, i in node.inputs]) if op.kind in REDUCING else op.rule_cost)
        if isinstance(op, Contraction):
            own = max(own, op.work(*(n.avals[i] for n, i in node.inputs), **node.attrs))
        total += own
    return total


#: What starting an op of the reference rules costs, in element operations.
_START = 1000


def _control(node: Node | RecordedNode) -> float:
    """Element operations of a branch or loop. In loops each op counts as worth starting: few elements many
    times are worth a compile."""
    steps = node.attrs.get("length", tiers.ASSUMED_STEPS) if node.op is not COND else 1
    return steps * sum(work(f.body) + (0 if node.op is COND else _START * len(f.body)) for f in callees(node))
