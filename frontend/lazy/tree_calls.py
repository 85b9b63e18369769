"""The calls of optree, which no thread is inside of when the interpreter ends (`ir/ending.py`).

Loaded by the first tree that is not one of `plain_trees`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from smelt.ir import locks
from smelt.ir.ending import guarded

from .plain_trees import NAMESPACE, STATES, WALKS, Attribute, PlainStructure

if TYPE_CHECKING:
    import optree
else:  # a package in C++, which an interrupted import may leave unusable
    optree = locks.loaded("optree")

__all__: list[str] = []

_insertion_orders = [optree.dict_insertion_ordered(True, namespace=space) for space in (STATES, WALKS)]
for _order in _insertion_orders:
    _order.__enter__()  # for good: optree keeps it by namespace

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


def structure_of(tree: Any, in_order: bool) -> optree.PyTreeSpec:
    """The structure of a tree of plain containers, for optree."""
    return tree_structure(tree, none_is_leaf=True, namespace=STATES if in_order else NAMESPACE)


PlainStructure.structure_of = staticmethod(structure_of)


class Entry(optree.PyTreeEntry):
    """A step to a child that is an attribute or stands under a key."""

    def __call__(self, x: Any) -> Any:
        return getattr(x, self.entry) if isinstance(self.entry, Attribute) else x[self.entry]

    def codify(self, node: str = "") -> str:
        return f"{node}.{self.entry}" if isinstance(self.entry, Attribute) else f"{node}[{self.entry!r}]"
