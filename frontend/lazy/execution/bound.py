"""Programs of plans: a graph that has run by its program runs by it again, without being looked at node by node.

A plan has the structure of its graph as a key. So what a program was found by, which operand of which node each of its
arguments is, and that its results are those of the nodes that are kept, are found out once for all plans of that key.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from smelt.ir import locks
from smelt.ir.op_program import OpProgram
from smelt.ir.settings import settings
from smelt.runtime import Executable

from ..graph import APPLY, Node, RecordedNode, callees
from . import tiers
from .subgraphs import Subgraph, executables


class BoundProgram(NamedTuple):
    """The program of all plans of one key.

    Attributes:
        key: what it is found by.
        places: which operand, counted through all nodes, each of its arguments is.
        of_programs: the settings that it was compiled under.
    """

    key: Any
    places: tuple[int, ...]
    of_programs: Any

    def program(self) -> Executable | None:
        """It, if it is kept still and fits the settings."""
        return executables.get(self.key) if settings.of_programs == self.of_programs else None

    def groups(self) -> OpProgram | None:
        """The same in groups, as long as there is nothing to do about the program; see `strided`."""
        if settings.of_programs != self.of_programs:
            return None
        structure = tiers.structures.get(self.key)
        if structure is None or structure.counted is None or not structure.rests(*structure.counted):
            return None
        if executables.get(self.key) is not None and not structure.prefers_ops:
            return None
        strided = locks.loaded("smelt.lazy.execution.strided")
        found: OpProgram | None = strided.kept_program(self.key)
        if found is not None:
            structure.runs_by(*strided.state_of(found))
        return found


def bound_program(graph: Subgraph, order: Sequence[Node]) -> BoundProgram | None:
    """What binds a program to plans of nodes in that order; None where it depends on more than their structure: on
    values, as loops in place of repetitions do, or on the user's lines."""
    body = graph.body
    if len(body) != len(order) or any(step.node is not node for step, node in zip(body, order)):
        return None
    if any(map(_tells_line, body)):
        return None
    places: dict[Any, int] = {}
    for at, ref in enumerate([ref for step in body for ref in step.inputs]):
        places.setdefault(ref, at)
    return BoundProgram(graph.key, tuple([places[ref] for ref in graph.inputs]), settings.of_programs)


def _tells_line(step: RecordedNode) -> bool:
    """Whether its own line is part of what a program does. That of a function's steps is part of the plan's key."""
    return step.op is not APPLY and not callees(step) and step.op.tells_line
