"""Indices whose values are there: out of range they are an error when a function is called.

What is not computed yet is not computed for this, nor is what lies on a device alone fetched: such indices are those
of kernels, which take the nearest element, write nothing, or raise with SMELT_CHECK=1.
"""

from __future__ import annotations

import builtins
import math
import warnings
from collections.abc import Callable
from typing import Any, cast

import numpy as np

from smelt.ir import dtypes
from smelt.ir.aval import MAX_NDIM
from smelt.ir.errors import IndexOutOfRangeError, at_user_line, called, public_call, user_line
from smelt.ir.op import Op
from smelt.ir.op import registry as ops
from smelt.ir.settings import settings

from ..lazy.arrays import array, as_array
from ..lazy.graph import Node
from ..lazy.movement import to_shape

__all__: list[str] = []

#: So many ops are looked through.
_MOST_OPS = 8
_CONVERT = ops["convert"]
_MAXIMUM = np.maximum.reduce
_UNSIGNED = {np.dtype(f"{sign}{size}"): np.dtype(f"u{size}") for sign in "iu" for size in (1, 2, 4, 8)}


def outside(index: array, extent: int, least: int) -> int | None:
    """An entry that is there and not within least … extent - 1; None where there is none.

    Looks through what only moves or converts elements that are there: labels ``batch[:, 1:]``, say.
    """
    node, i = index._ref
    above: list[Node] = []
    while node.values is None:
        op, inputs = node.op, node.inputs
        if (op.kind != "movement" and op is not _CONVERT) or len(inputs) != 1 or len(above) == _MOST_OPS:
            return None
        above.append(node)
        ((node, i),) = inputs
    buffer = node.values[i]
    if buffer.home is not None and not buffer.is_on_host:
        return None
    host = buffer.array
    unsigned = _UNSIGNED.get(host.dtype)
    if unsigned is None or not host.size:
        return None
    if int(_MAXIMUM(host.view(unsigned), None)) < extent:  # as unsigned, negative ones are large
        return None
    for node in reversed(above):
        host = cast(np.ndarray, cast(Op, node.op).reference(host, **node.attrs))
    if not host.size or (least <= int(host.min()) and int(host.max()) < extent):
        return None
    return int(host[(host < least) | (host >= extent)].reshape(-1)[0])


def known_elements(x: array) -> np.ndarray | None:
    """The elements of an array that has been evaluated and lies on the host."""
    node, i = x._ref
    if node.values is None:
        return None
    buffer = node.values[i]
    return buffer.array if buffer.home is None or buffer.is_on_host else None


def check_known(index: array, axis: int, x: array) -> None:
    """Raise for an entry that is there and outside of an axis of x, negative ones counted from the end."""
    extent = x.aval.shape[axis]
    found = outside(index, extent, -extent)
    if found is not None:
        refuse(_out_of_range(found, axis, x))


class Refusal:
    """What is done about entries out of range, in all threads. Attributes: of_mlx: each line is warned about, once."""

    of_mlx = False
    warned: set[Any] = set()


def refuse(message: str) -> None:
    """Raise, for an entry that is there and out of range; in programs written for MLX, which reads on, only warn."""
    if not Refusal.of_mlx or settings.check:
        raise IndexOutOfRangeError(at_user_line(message))
    line = user_line()
    if line in Refusal.warned:
        return
    message += "; MLX uses other memory; here the nearest element is read, and nothing written"
    warnings.warn_explicit(at_user_line(message), UserWarning, *((line.file, line.line) if line else ("smelt", 0)))
    Refusal.warned.add(line)  # not where warnings are errors


def out_of_range(i: int, axis: int, x: array) -> IndexOutOfRangeError:
    return IndexOutOfRangeError(at_user_line(_out_of_range(i, axis, x)))


def _out_of_range(i: int, axis: int, x: array, name: str = "") -> str:
    """The message; `name`: of a function that is not on the stack while its arguments are looked at."""
    who = f"smelt.{name}" if name and not public_call() else called()
    return f"{who}: index {i} is out of range for axis {axis} with {x.aval.shape[axis]} elements; {x.aval}"


def check_entries(x: array, entries: tuple[Any, ...]) -> None:
    """`check_known` of each array of integers in an index."""
    axis = 0
    for position, e in enumerate(entries):
        if e is Ellipsis:
            axis = x.aval.ndim - sum([_axes(other) for other in entries[position + 1 :]])
            continue
        if isinstance(e, array) and e.aval.dtype.is_integer and 0 <= axis < x.aval.ndim:
            check_known(e, axis, x)
        axis += _axes(e)


def check_index(x: array, index: Any) -> None:
    """The same of an index as it is written."""
    if isinstance(index, array):
        if x.aval.ndim and index.aval.dtype.is_integer:
            check_known(index, 0, x)
    elif type(index) is tuple and not _WITHOUT_VALUES.issuperset(map(type, index)):
        check_entries(x, index)


_WITHOUT_VALUES = frozenset((int, builtins.slice, type(None), type(Ellipsis)))


def _axes(e: Any) -> int:
    """How many axes an entry of an index takes: a mask as many as it has, others one."""
    if e is None or isinstance(e, (bool, np.bool_)):
        return 0
    if isinstance(e, array):
        return e.aval.ndim if e.aval.dtype is dtypes.bool_ else 1
    if isinstance(e, (list, tuple)):
        depth, first = 0, e
        while isinstance(first, (list, tuple)) and first and depth <= MAX_NDIM:  # a list may hold itself
            depth, first = depth + 1, first[0]
        return depth if isinstance(first, (bool, np.bool_)) else 1
    return e.ndim if isinstance(e, np.ndarray) and e.dtype == np.bool_ else 1


def check_along(
    name: str, default: int | None, place: int, indices: tuple[int, str] = (1, "indices")
) -> Callable[[tuple, dict[str, Any]], None]:
    """The check of the function `name` of an array, of indices, and of an axis as the argument with number `place`.

    Arguments that do not fit are left to the function.

    Args:
        indices: number and name of the argument that they are.
    """
    at, word = indices

    def check(args: tuple, named: dict[str, Any]) -> None:
        index = args[at] if len(args) > at else named.get(word)
        if not isinstance(index, array) or not args or not index.aval.dtype.is_integer:
            return
        x = args[0]
        shape = x.shape if isinstance(x, (array, np.ndarray)) else as_array(x).shape
        axis: Any = args[place] if len(args) > place else named.get("axis", default)
        if axis is None:
            shape, axis = (math.prod(shape),), 0
        if isinstance(axis, int) and -len(shape) <= axis < len(shape):
            extent = shape[axis]
            if (found := outside(index, extent, -extent)) is not None:
                refuse(_out_of_range(found, axis % len(shape), to_shape(as_array(x), shape), name))

    return check
