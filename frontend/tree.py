"""Trees of arrays: nested lists, tuples, dicts, named tuples, dataclasses and registered classes.

Built on optree. Leaves are arrays and everything that is not a container.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

import optree

from smelt.ir.errors import TreeError, at_user_line

NAMESPACE = "smelt"

TreeDef = optree.PyTreeSpec


def flatten(tree: Any) -> tuple[list[Any], TreeDef]:
    """The leaves of a tree and its structure. None is a leaf."""
    return optree.tree_flatten(tree, none_is_leaf=True, namespace=NAMESPACE)


def unflatten(treedef: TreeDef, leaves: Sequence[Any]) -> Any:
    """The tree of a structure with the given leaves."""
    return optree.tree_unflatten(treedef, leaves)


def tree_map(function: Callable, tree: Any, *rest: Any, is_leaf: Callable | None = None) -> Any:
    """Apply `function` to corresponding leaves of trees of one structure.

    >>> tree_map(lambda x, y: x + y, {"a": 1, "b": [2]}, {"a": 10, "b": [20]})
    {'a': 11, 'b': [22]}
    """
    return optree.tree_map(function, tree, *rest, is_leaf=is_leaf, none_is_leaf=True, namespace=NAMESPACE)


def tree_map_with_path(
    function: Callable, tree: Any, *rest: Any, is_leaf: Callable | None = None, path: str = ""
) -> Any:
    """`tree_map` where `function` gets the leaf's dotted path first.

    >>> tree_map_with_path(lambda p, x: f"{p}={x}", {"w": [1, 2]})
    {'w': ['w.0=1', 'w.1=2']}
    """

    def call(accessor: tuple, *leaves: Any) -> Any:
        dotted = ".".join([path] * bool(path) + [str(p) for p in accessor])
        return function(dotted, *leaves)

    return optree.tree_map_with_path(
        call, tree, *rest, is_leaf=is_leaf, none_is_leaf=True, namespace=NAMESPACE
    )


def tree_flatten(
    tree: Any, prefix: str = "", is_leaf: Callable | None = None, destination: Any = None
) -> Any:
    """Pairs of dotted path and leaf, as a list, or put into `destination` (a list or dict).

    >>> tree_flatten({"a": 1, "b": [2, 3]})
    [('a', 1), ('b.0', 2), ('b.1', 3)]
    """
    pairs = []
    tree_map_with_path(lambda p, x: pairs.append((p, x)), tree, is_leaf=is_leaf, path=prefix.strip("."))
    if destination is None:
        return pairs
    if isinstance(destination, dict):
        destination.update(pairs)
    else:
        destination.extend(pairs)
    return destination


def tree_unflatten(tree: Any) -> Any:
    """The tree of dotted paths and leaves: the inverse of `tree_flatten`. Digits make lists.

    >>> tree_unflatten([("a", 1), ("b.0", 2), ("b.1", 3)])
    {'a': 1, 'b': [2, 3]}
    """
    pairs = list(tree.items()) if isinstance(tree, dict) else list(tree)
    if len(pairs) == 1 and pairs[0][0] == "":
        return pairs[0][1]
    groups: dict[str, list] = {}
    for path, leaf in pairs:
        head, _, rest = path.partition(".")
        groups.setdefault(head, []).append((rest, leaf))
    if all(key.isdigit() for key in groups):
        size = max(map(int, groups)) + 1 if groups else 0
        return [tree_unflatten(groups[str(i)]) if str(i) in groups else {} for i in range(size)]
    return {key: tree_unflatten(group) for key, group in groups.items()}


def tree_reduce(function: Callable, tree: Any, initializer: Any = None, is_leaf: Callable | None = None) -> Any:
    """Combine the leaves from left to right.

    >>> tree_reduce(lambda s, x: s + x, {"a": 1, "b": [2, 3]}, 0)
    6
    """
    leaves = optree.tree_leaves(tree, is_leaf=is_leaf, none_is_leaf=True, namespace=NAMESPACE)
    total, rest = (leaves[0], leaves[1:]) if initializer is None else (initializer, leaves)
    for leaf in rest:
        total = function(total, leaf)
    return total


def register_class(cls: type) -> type:
    """Make a dataclass, or a class with ``tree_flatten`` and ``tree_unflatten``, a tree node.

    ``tree_flatten(self)`` returns (children, static data), ``tree_unflatten(cls, static, children)``
    builds an instance. Usable as a decorator. Raises TreeError for any other class.
    """
    made: Any = cls
    if hasattr(cls, "tree_flatten") and hasattr(cls, "tree_unflatten"):

        def flatten_instance(x: Any) -> Any:
            return x.tree_flatten()

        optree.register_pytree_node(made, flatten_instance, made.tree_unflatten, namespace=NAMESPACE)
    elif dataclasses.is_dataclass(cls):
        names = [f.name for f in dataclasses.fields(cls)]

        def split(x: Any) -> tuple:
            return [getattr(x, n) for n in names], None, names

        def join(_: Any, children: Any) -> Any:
            instance = object.__new__(cls)
            for n, child in zip(names, children):
                object.__setattr__(instance, n, child)
            return instance

        optree.register_pytree_node(made, split, join, namespace=NAMESPACE)
    else:
        raise TreeError(
            at_user_line(f"{cls.__name__} is neither a dataclass nor has tree_flatten and tree_unflatten")
        )
    return cls
