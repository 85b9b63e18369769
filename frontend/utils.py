"""Trees of arrays, under the names of MLX's ``utils``.

Trees are nested dicts, lists, tuples and deques, their subclasses, named tuples, dataclasses that hold arrays, partial
functions that hold arrays, and registered classes. All else is a leaf. The functions here walk the entries of dicts,
lists and tuples alone; transformations take what these have in attributes for part of the tree, too. A leaf that is no
array must not hold arrays: nobody would see them change.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import zip_longest
from typing import TYPE_CHECKING, Any

from smelt.ir.errors import TreeError, at_user_line, shown
from smelt.ir.listing import listed

from .lacking import lacking
from .lazy.tree import (
    kind_of,
    register_class,
    tree_flatten,
    tree_map,
    tree_map_with_path,
    tree_reduce,
    tree_unflatten,
)
from .lazy.tree_nodes import too_deep

__all__ = [
    "register_class",
    "tree_flatten",
    "tree_map",
    "tree_map_with_path",
    "tree_merge",
    "tree_reduce",
    "tree_unflatten",
]

__dir__ = listed(globals())
if not TYPE_CHECKING:
    __getattr__ = lacking(globals())


def tree_merge(tree_a: Any, tree_b: Any, merge_fn: Callable[[Any, Any], Any] | None = None) -> Any:
    """The entries of two trees of dicts, lists and tuples in one. None and empty containers stand for nothing.

    Args:
        tree_a, tree_b: nested dicts, lists and tuples; None for none.
        merge_fn: makes one of two leaves in the same place.

    Raises:
        TreeError: two leaves in the same place and no `merge_fn`, empty containers of two kinds, a `merge_fn` that is
            no function, a tree that contains itself.

    >>> tree_merge({"a": [1, None]}, {"a": [None, 2], "b": 3})
    {'a': [1, 2], 'b': 3}
    >>> tree_merge({"a": 1}, {"a": 2}, lambda x, y: x + y)
    {'a': 3}
    """
    if merge_fn is not None and not callable(merge_fn):
        message = f"merge_fn must be a function or None, is {shown(merge_fn)}"
        raise TreeError(at_user_line(f"smelt.utils.tree_merge: {message}"))
    try:
        return _merged(tree_a, tree_b, merge_fn, "")
    except RecursionError:
        raise too_deep() from None


def _merged(a: Any, b: Any, merge: Callable[[Any, Any], Any] | None, path: str) -> Any:
    if _is_nothing(a) and _is_nothing(b) and a is not None and b is not None and type(a) is not type(b):
        message = f"at {_place(path)} there are {kind_of(a)} and {kind_of(b)}"
        raise TreeError(at_user_line(f"smelt.utils.tree_merge: {message}"))
    if _is_nothing(b) and not (_is_nothing(a) and b is not None):
        return a
    if _is_nothing(a):
        return b
    if isinstance(a, dict) and isinstance(b, dict):
        keys = dict.fromkeys([*a, *b])
        return {k: _merged(a.get(k), b.get(k), merge, f"{path}.{k}") for k in keys}
    if isinstance(a, (list, tuple)) and isinstance(b, (list, tuple)):
        entries = [_merged(x, y, merge, f"{path}.{i}") for i, (x, y) in enumerate(zip_longest(a, b))]
        kind: Any = type(a)
        return kind(*entries) if hasattr(kind, "_fields") else kind(entries)
    if merge is None:
        raise TreeError(
            at_user_line(
                f"smelt.utils.tree_merge: both trees have something at {_place(path)} ({kind_of(a)}, {kind_of(b)}); "
                "give merge_fn"
            )
        )
    return merge(a, b)


def _place(path: str) -> str:
    return path[1:] or "the top"


def _is_nothing(x: Any) -> bool:
    return x is None or (isinstance(x, (dict, list, tuple)) and not x)
