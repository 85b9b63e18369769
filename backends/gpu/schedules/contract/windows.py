"""Windows of an operand, as convolutions have them: what neighbouring ones have in common."""

from __future__ import annotations

import math

from smelt.backends.contraction import Operand
from smelt.backends.lowering import Fused
from smelt.ir.index import Index, names_of


def steps_of_windows(image: Operand, position: str, tap: str) -> tuple[int, int] | None:
    """How far windows of neighbouring positions are apart, and neighbours in a window, in the same unit; None where
    they have no elements in common.

    Args:
        position, tap: variables.
    """
    if image.source is None:
        return None
    found: set[tuple[int, int]] = set()
    for index in (image.source[1], *(guard.index for guard in image.access.guards)):
        steps = [_step(index, name) for name in (position, tap)]
        if None in steps:
            return None
        a, b = (step or 0 for step in steps)
        if a or b:
            found.add((a // math.gcd(a, b), b // math.gcd(a, b)))
    return found.pop() if len(found) == 1 else None


def innermost(loop: Fused) -> tuple[str, int]:
    """The last of a loop's variables that moves: its name and extent."""
    return next((name, extent) for name, extent in reversed(loop.variables) if extent > 1)


def _step(index: Index, name: str) -> int | None:
    """How far an index moves with a variable; None where that is no number."""
    inside = [(atom, n) for atom, n in index.terms if name in names_of([Index(0, [(atom, n)])])]
    if any(atom.kind != "var" for atom, _ in inside):
        return None
    return sum(n for _, n in inside)
