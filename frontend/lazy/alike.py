"""Arguments that are made like those of an earlier call: compared with these in one walk, without a flat list of
leaves and a structure made of them.

A `Pattern` says what an argument is made of: None of a leaf, else the class, the keys of a dict, and the patterns of
what is in it. Dicts count by the order of their keys, as functions see it. What stands in a place of a leaf is compared
with what stood there: the aval of an array, the value of anything else.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any

from smelt.ir.aval import Aval
from smelt.ir.errors import InternalError
from smelt.runtime import Buffer

from . import core
from .graph import Handle

__all__: list[str] = []

#: None of a leaf; else a class, the keys of a dict or None, and a pattern of each child.
Pattern = tuple[type, tuple[str, ...] | None, tuple[Any, ...]] | None

#: Types of leaves of which equality is enough; those that are no arrays are one of these, or a float.
_SIMPLE = frozenset((int, bool, str, type(None)))
#: Levels that a pattern has at most.
_DEEPEST = 50


class UnlikeError(InternalError):
    """An argument that has no pattern: something else than arrays and simple values in dicts, lists and tuples."""


def pattern_of(x: Any, expected: list[Any], depth: int = 0) -> Pattern:
    """What an argument is made of.

    Args:
        expected: gets what is to stand in the places of leaves.

    Raises:
        UnlikeError: it has no pattern.
    """
    kind = type(x)
    if issubclass(kind, Handle):
        expected.append(x.aval)
        return None
    if kind is float or kind in _SIMPLE:
        expected.append(x)
        return None
    if depth == _DEEPEST or kind not in (dict, list, tuple):
        raise UnlikeError
    keys = None
    if kind is dict:
        keys = tuple(x)
        if not all(type(key) is str for key in keys):
            raise UnlikeError
        x = x.values()
    return kind, keys, tuple([pattern_of(child, expected, depth + 1) for child in x])


def buffers_like(patterns: tuple[Pattern, ...], values: tuple[Any, ...], expected: list[Any]) -> list[Buffer] | None:
    """The buffers of the arrays among the leaves of values that are as patterns say, and evaluated; None for others.

    Args:
        expected: what is to stand in the places of leaves. Of equal avals it gets those that were met last.
    """
    found: list[Buffer] = []
    return found if _all_match(patterns, values, expected, found, [0]) else None


def _all_match(
    patterns: Sequence[Pattern], values: Sequence[Any], expected: list[Any], found: list[Buffer], at: list[int]
) -> bool:
    return len(patterns) == len(values) and all(
        _matches(p, x, expected, found, at) for p, x in zip(patterns, values)
    )


def _matches(pattern: Pattern, x: Any, expected: list[Any], found: list[Buffer], at: list[int]) -> bool:
    """Whether x is as a pattern says, whose first leaf has the place `at`."""
    if pattern is not None:
        kind: Any
        kind, keys, children = pattern
        if type(x) is not kind or (keys is not None and tuple(x) != keys):
            return False
        return _all_match(children, x if keys is None else list(x.values()), expected, found, at)
    place = at[0]
    at[0] += 1
    wanted = expected[place]
    if isinstance(x, Handle):
        node, i = x._ref
        aval = node.avals[i]
        if aval is not wanted:
            if not isinstance(wanted, Aval) or aval != wanted:
                return False
            expected[place] = aval  # nearly always the same object from now on
        if node.values is None:
            return False
        found.append(node.values[i])
        return True
    if type(x) is float and type(wanted) is float:
        return struct.pack("d", x) == struct.pack("d", wanted)
    return type(x) is type(wanted) and type(x) in _SIMPLE and bool(x == wanted)


if core.native is not None:
    buffers_like = core.native.buffers_like
