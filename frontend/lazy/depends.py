"""`smelt.depends`: an order between arrays that do not use each other, for ops that do something besides."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, overload

from smelt.ir.errors import ArgumentTypeError, at_user_line, shown

from .arrays import array, wrap
from .calls import NotedCall
from .core import ALIAS, COMPILED, NO_ATTRS, PARAMETER, topological
from .graph import Node, state

__all__ = ["depends"]


@overload
def depends(inputs: array, dependencies: array | Sequence[array]) -> array: ...
@overload
def depends(inputs: Sequence[array], dependencies: array | Sequence[array]) -> list[array]: ...
def depends(inputs: array | Sequence[array], dependencies: array | Sequence[array]) -> array | list[array]:
    """`inputs`, evaluated only together with `dependencies`.

    It is of use where what `dependencies` compute has an effect, such as a `custom_call` that prints; values do not
    change. Traced functions, as those of `compile` and `grad`, state no order: there it returns its inputs.

    Args:
        inputs, dependencies: arrays, or lists or tuples of them.

    Returns:
        An array, or a list of arrays.

    Raises:
        ArgumentTypeError: other arguments.

    >>> import smelt
    >>> smelt.depends(smelt.array([1, 2]), smelt.zeros(3))
    array([1, 2], dtype=int32)
    """
    single = isinstance(inputs, array)
    arrays = _arrays("inputs", inputs)
    others = _arrays("dependencies", dependencies)
    refs = [x._ref for x in (*arrays, *others)]
    if not arrays:
        return []
    if state.compiling or state.recording or any(node.op is PARAMETER for node in topological(refs)):
        found = [wrap(x._ref) for x in arrays]
    else:
        count = len(arrays)
        avals = tuple(x.aval for x in arrays)
        node = Node(COMPILED, {"call": NotedCall(lambda buffers: buffers[:count])}, tuple(refs), avals)
        # Each has a node of its own, so that none keeps the memory of the others.
        found = [wrap((Node(ALIAS, NO_ATTRS, ((node, i),), (aval,)), 0)) for i, aval in enumerate(avals)]
    return found[0] if single else found


def _arrays(what: str, given: Any) -> list[array]:
    found = [given] if isinstance(given, array) else given
    if not isinstance(found, (list, tuple)) or not all(isinstance(x, array) for x in found):
        message = f"{what} must be an array, or a list or tuple of arrays, is {shown(given)}"
        raise ArgumentTypeError(at_user_line(f"smelt.depends: {message}"))
    return list(found)
