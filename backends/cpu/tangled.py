"""Loops that LLVM's vectorizer would not finish: it is told to leave them alone.

The vectorizer follows a converted value to its users, and to theirs, once for each path: `onlyFirstLaneUsed` of its
VPlan remembers nothing. After 32 steps of `x = x + x * 0.1` in a kernel there are 2³² paths. Conversions are where it
begins, and arithmetic is what it follows. It goes no further at a value that is rotated, as those of random bits are:
a rotation is an intrinsic of LLVM.
"""

from __future__ import annotations

from typing import Any

#: Paths that are followed in some ten milliseconds at most. A sine of a sine has 2¹⁷; without vectors it takes ten
#: times as long.
MOST_PATHS = 1 << 18
#: Bodies of fewer operations than steps that would double the paths so often are not looked at.
FEWEST = 16

_CONVERSIONS = frozenset(
    f"arith.{name}"
    for name in ("bitcast", "extf", "extsi", "extui", "fptosi", "fptoui", "sitofp", "truncf", "trunci", "uitofp")
)


def is_tangled(loop: Any) -> bool:
    """Whether the body of an ``scf.for`` has that many paths from conversions to later operations."""
    operations = [operation.operation for operation in loop.regions[0].blocks[0].operations]
    if len(operations) < FEWEST or _CONVERSIONS.isdisjoint([operation.name for operation in operations]):
        return False
    rotated = {found for operation in operations if (found := _rotated(operation)) is not None}
    paths: dict[Any, int] = {}  #: to a value, for those that have any
    for operation in operations:
        name = operation.name
        if not name.startswith("arith.") or operation.results[0] in rotated:
            continue
        found = sum([paths.get(operand, 0) for operand in operation.operands]) + (name in _CONVERSIONS)
        if found:
            if found > MOST_PATHS:
                return True
            paths[operation.result] = found
    return False


def _rotated(operation: Any) -> Any:
    """The number of which bits leave one end and come back at the other; None where an operation does no such thing."""
    if operation.name != "arith.ori":
        return None
    shifted: dict[str, Any] = {}
    for operand in operation.operands:
        shift = getattr(operand.owner, "operation", None)
        if shift is not None and shift.name in ("arith.shli", "arith.shrui"):
            shifted[shift.name] = shift.operands[0]
    left, right = shifted.get("arith.shli"), shifted.get("arith.shrui")
    return left if left is not None and right is not None and left == right else None
