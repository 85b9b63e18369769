"""The calls of optree, which no thread is inside of when the interpreter ends (`ir/ending.py`)."""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING, Any, TypeVar

from smelt.ir import locks
from smelt.ir.ending import guarded

if TYPE_CHECKING:
    import optree
else:  # a package in C++, which an interrupted import may leave unusable
    optree = locks.loaded("optree")

__all__: list[str] = []

T = TypeVar("T")

tree_flatten = guarded(optree.tree_flatten)
tree_flatten_with_accessor = guarded(optree.tree_flatten_with_accessor)
tree_is_leaf = guarded(optree.tree_is_leaf)
tree_structure = guarded(optree.tree_structure)
tree_unflatten = guarded(optree.tree_unflatten)
register_pytree_node = guarded(optree.register_pytree_node)
unregister_pytree_node = guarded(optree.unregister_pytree_node)
accessors = guarded(optree.PyTreeSpec.accessors)
flatten_up_to = guarded(optree.PyTreeSpec.flatten_up_to)
is_prefix = guarded(optree.PyTreeSpec.is_prefix)
paths = guarded(optree.PyTreeSpec.paths)

# Structures are compared, and hashed, by what Python says of the keys and attributes in them.
equal = guarded(optree.PyTreeSpec.__eq__)
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
