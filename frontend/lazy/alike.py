"""Arguments that are made like those of an earlier call: compared with these in one walk, without a flat list of
leaves and a structure made of them.

A `Pattern` says what an argument is made of: None of a leaf, else the class, the keys of a dict, the patterns of what
is in it, and the attributes of an object that is a dict, such as a module. Dicts count by the order of their keys, as
functions see it. What stands in a place of a leaf is compared with what stood there: the aval of an array, the value
of anything else. Attributes are compared by identity, and are such as do not change.

The state that a function replaces is walked in the same way: `put_like` puts arrays into the places of leaves.
"""

from __future__ import annotations

import struct
import types
from collections.abc import Sequence
from typing import Any

from smelt.ir.aval import Aval
from smelt.ir.dtypes import DType
from smelt.ir.errors import InternalError
from smelt.runtime import Buffer

from . import core
from .core import evaluated
from .graph import Handle
from .tree_nodes import attributes, is_plain_dict

__all__: list[str] = []

#: None of a leaf; else a class, the keys of a dict or None, a pattern of each child, and the attributes or None.
Pattern = tuple[type, tuple[str, ...] | None, tuple[Any, ...], dict[str, Any] | None] | None

#: Types of leaves of which equality is enough; those that are no arrays are one of these, or a float.
_SIMPLE = frozenset((int, bool, str, type(None)))
#: Types of attributes that stay what they are; of tuples and frozensets what they hold is one of these, too.
_FIXED = _SIMPLE | {float, complex, bytes, DType, type, types.FunctionType, types.BuiltinFunctionType}
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
    keys = own = None
    if kind in (list, tuple):
        below = list(x)
    elif kind is dict or is_plain_dict(x):
        keys, below = tuple(dict.keys(x)), list(dict.values(x))
        if kind is not dict:
            own = attributes(x)
        if not all(type(key) is str for key in keys) or not all(map(_is_fixed, (own or {}).values())):
            raise UnlikeError
    else:
        raise UnlikeError
    if depth == _DEEPEST:
        raise UnlikeError
    return kind, keys, tuple([pattern_of(child, expected, depth + 1) for child in below]), own


def _is_fixed(x: Any) -> bool:
    """Whether an attribute is always the same value where it is the same object."""
    return type(x) in _FIXED or (type(x) in (tuple, frozenset) and all(map(_is_fixed, x)))


def leaves_like(patterns: Sequence[Pattern], values: Sequence[Any]) -> list[Any]:
    """The leaves of values that are as patterns say, in the order of these."""
    found: list[Any] = []
    for pattern, x in zip(patterns, values):
        if pattern is None:
            found.append(x)
        else:
            found += leaves_like(pattern[2], x if pattern[1] is None else list(dict.values(x)))
    return found


def buffers_like(
    patterns: tuple[Pattern, ...], values: tuple[Any, ...], expected: list[Any], distinct: bool = False
) -> list[Buffer] | None:
    """The buffers of the arrays among the leaves of values that are as patterns say, and evaluated; None for others.

    Args:
        expected: what is to stand in the places of leaves. Of equal avals it gets those that were met last.
        distinct: None as well where one array stands in two places.
    """
    walk = _Walk(expected, set() if distinct else None)
    return walk.found if walk.all_match(patterns, values) else None


class _Walk:
    """A comparison of values with patterns.

    Attributes:
        found: the buffers. at: the place of the next leaf. seen: the arrays met, where each is to be another one.
    """

    def __init__(self, expected: list[Any], seen: set[int] | None):
        self.expected, self.seen = expected, seen
        self.found: list[Buffer] = []
        self.at = 0

    def all_match(self, patterns: Sequence[Pattern], values: Sequence[Any]) -> bool:
        return len(patterns) == len(values) and all(map(self.matches, patterns, values))

    def matches(self, pattern: Pattern, x: Any) -> bool:
        """Whether x is as a pattern says, whose first leaf is the next one."""
        if pattern is None:
            self.at += 1
            return self._is_as_expected(x, self.at - 1)
        kind: Any
        kind, keys, children, own = pattern
        if type(x) is not kind:
            return False
        if own is not None:
            now = attributes(x)
            if len(now) != len(own) or any(name not in now or now[name] is not value for name, value in own.items()):
                return False
        if keys is None:
            return self.all_match(children, x)
        return tuple(dict.keys(x)) == keys and self.all_match(children, list(dict.values(x)))

    def _is_as_expected(self, x: Any, place: int) -> bool:
        wanted = self.expected[place]
        if not isinstance(x, Handle):
            if type(x) is float and type(wanted) is float:
                return struct.pack("d", x) == struct.pack("d", wanted)
            return type(x) is type(wanted) and type(x) in _SIMPLE and bool(x == wanted)
        if self.seen is not None:
            if id(x) in self.seen:
                return False
            self.seen.add(id(x))
        node, i = x._ref
        aval = node.avals[i]
        if aval is not wanted:
            if not isinstance(wanted, Aval) or aval != wanted:
                return False
            self.expected[place] = aval  # nearly always the same object from now on
        if node.values is None:
            return False
        self.found.append(node.values[i])
        return True


def put_like(patterns: tuple[Pattern, ...], values: tuple[Any, ...], new: list[Buffer | None]) -> None:
    """Put arrays with new values into values that are as patterns say: others, or those there, if nobody else has them.

    Args:
        new: by the places of leaves; None where a leaf stays. Leaves stand in dicts and lists.
    """
    arrays = iter(evaluated([buffer for buffer in new if buffer is not None]))
    _put(patterns, list(values), [None if buffer is None else next(arrays) for buffer in new], 0)


def _put(patterns: Sequence[Pattern], values: list[Any], new: list[Any], at: int) -> int:
    for i, (pattern, x) in enumerate(zip(patterns, values)):
        if pattern is None:
            if new[at] is not None:
                values[i] = new[at]
            at += 1
            continue
        keys, children = pattern[1], pattern[2]
        if keys is None:
            at = _put(children, x if type(x) is list else list(x), new, at)
            continue
        entries = [dict.__getitem__(x, key) for key in keys]
        at = _put(children, entries, new, at)
        for key, p, entry in zip(keys, children, entries):
            if p is None:
                dict.__setitem__(x, key, entry)
    return at


if core.native is not None:
    buffers_like, put_like = core.native.buffers_like, core.native.put_like
