"""Calls that may compare structures of trees, which is done by a library in C++: no thread is inside of it when the
interpreter ends (`ir/ending.py`)."""

from __future__ import annotations

from collections import OrderedDict
from operator import eq
from typing import Any, TypeVar

from smelt.ir.ending import guarded

__all__: list[str] = []

T = TypeVar("T")

# Structures are compared, and hashed, by what Python says of the keys and attributes in them.
equal = guarded(eq)
move_to_end = guarded(OrderedDict.move_to_end)
drop_oldest = guarded(OrderedDict.popitem)


@guarded
def is_equal(key: Any, other: Any) -> bool:
    """Whether keys with structures in them are equal."""
    return bool(key == other)


@guarded
def find(known: dict[Any, T], key: Any) -> T | None:
    """What stands under a key with structures in it; None: nothing."""
    return known.get(key)


@guarded
def put(known: dict[Any, T], key: Any, value: T) -> None:
    """Put something under such a key."""
    known[key] = value


@guarded
def drop(known: dict[Any, Any], key: Any) -> None:
    """Forget what stands under such a key, if anything does."""
    known.pop(key, None)
