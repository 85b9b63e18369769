"""Trees that are assigned to: the state of compiled functions, and what a differentiated function does to its
arguments.

Dicts, lists and objects keep their identity and get new arrays, so arrays taken out of them before stay as they were.
"""

from __future__ import annotations

import dataclasses
from collections import deque
from typing import Any

from smelt.ir.errors import TreeError, at_user_line

from . import tree, tree_nodes
from .arrays import array
from .tree_nodes import NAMESPACE, TreeDef, attributes, is_adopted

__all__: list[str] = []


def put(target: Any, source: Any) -> None:
    """Make a tree hold what another one holds. Arrays that stand in nothing that can be assigned to change in place.

    Raises:
        TreeError: `target` cannot hold that.
    """
    _in_place(target, merged(target, source))


def put_whole(target: Any, source: Any) -> None:
    """`put`, of which an interrupt leaves no half: half of a model would be a step ahead of the other."""
    try:
        put(target, source)
    except TreeError:
        raise
    except BaseException:
        put(target, source)
        raise


def merged(target: Any, source: Any) -> Any:
    """What has to stand in the place of `target`, to hold what `source` holds: `target` where that can be changed."""
    if target is source:
        return target
    if isinstance(target, dict) and isinstance(source, dict):
        _merge_dict(target, source)
        if type(target) is dict:  # it has no attributes
            return target
    elif type(target) is not type(source) or isinstance(target, array):
        return source
    elif isinstance(target, (list, deque)):
        while len(target) > len(source):
            target.pop()
        for i, value in enumerate(source):
            if i == len(target):
                target.append(value)
            elif (new := merged(known := target[i], value)) is not known:
                target[i] = new
    elif not is_adopted(target) or isinstance(target, tuple) or _is_frozen(target):
        return _merge_fixed(target, source)
    if is_adopted(target):
        _merge_attributes(target, source)
    return target


def _is_frozen(x: Any) -> bool:
    parameters = getattr(type(x), "__dataclass_params__", None)
    return parameters is None or parameters.frozen


def _merge_dict(target: dict, source: dict) -> None:
    if dict.keys(target) != dict.keys(source):
        for key in [k for k in dict.keys(target) if not dict.__contains__(source, k)]:
            del target[key]
    elif type(target) is dict and _ARRAYS.issuperset(map(type, dict.values(source))):
        dict.update(target, source)
        return
    for key, value in list(dict.items(source)):
        known = dict.get(target, key, _ABSENT)
        if known is not _ABSENT and type(value) is not array:
            value = merged(known, value)
        if value is not known:
            target[key] = value


#: Arrays, most of a state, stand for themselves.
_ARRAYS = frozenset([array])
#: What `_merge_dict` finds where the target has no such key.
_ABSENT = object()


def _merge_fixed(target: Any, source: Any) -> Any:
    """`merged` of tuples, frozen dataclasses, registered classes: another one, where it has to hold something else."""
    old, new = tree.children(target), tree.children(source)
    if old is None or new is None or len(old) != len(new):
        return source
    parts = [merged(x, y) for (_, x), (_, y) in zip(old, new)]
    same = all(part is x for part, (_, x) in zip(parts, old))
    if type(target) is tuple is type(source):
        return target if same else tuple(parts)
    structures = [_one_level(x) for x in (target, source)]
    if structures[0] == structures[1]:
        if same:
            return target
        if not is_adopted(target) and not isinstance(target, tuple):  # the user's own class: who knows what it is
            for (_, x), part in zip(old, parts):
                _in_place(x, part)
            return target
    return tree_nodes.calls().tree_unflatten(structures[1], parts)


def _one_level(x: Any) -> TreeDef:
    calls = tree_nodes.calls()
    found: TreeDef = calls.tree_structure(x, is_leaf=lambda y: y is not x, none_is_leaf=True, namespace=NAMESPACE)
    return found


def _merge_attributes(target: Any, source: Any) -> None:
    """Assign the attributes that are children of either."""
    old, new = (tree_nodes.take_apart(x)[1] for x in (target, source))
    mine, given = attributes(target), attributes(source)
    fields = [f.name for f in dataclasses.fields(target)] if dataclasses.is_dataclass(target) else []
    for name in dict.fromkeys([*fields, *old.held, *old.same, *new.held, *new.same]):
        if name not in given:
            if name in mine:
                object.__delattr__(target, name)
        elif name not in mine or (value := merged(mine[name], given[name])) is not mine[name]:
            object.__setattr__(target, name, given[name] if name not in mine else value)


def _in_place(target: Any, source: Any) -> None:
    """Make a tree hold what another one holds, where it cannot be replaced."""
    if target is source:
        return
    if isinstance(target, array) and isinstance(source, array):
        target._ref = source._ref
        return
    old, new = tree.children(target), tree.children(source)
    if old is None and new is None and not isinstance(target, array) and not isinstance(source, array):
        return
    if old is None or new is None or len(old) != len(new) or type(target) is not type(source):
        raise TreeError(
            at_user_line(
                f"smelt.compile: in outputs, {tree.kind_of(source)} would have to stand where there is "
                f"{tree.kind_of(target)}, inside something that cannot be assigned to; use a dict or a list"
            )
        )
    for (_, x), (_, y) in zip(old, new):
        _in_place(x, y)


#: Classes that are looked through entry by entry and have no attributes.
_BUILTIN = (dict, list, tuple)


class Mirrored:
    """Pairs of dicts, lists and objects: those of a caller, and copies that a function gets in their place."""

    def __init__(self, original: Any, copy: Any):
        self._pairs: list[tuple[Any, Any, Any]] = []  # original, copy, and the entries of the copy at first
        self._visit(original, copy)

    def _visit(self, original: Any, copy: Any) -> None:
        kind = type(original)
        if original is copy or kind is not type(copy) or kind is array:
            return
        below: list[tuple[Any, Any]] = []
        if isinstance(original, dict):
            self._pairs.append((original, copy, dict(copy)))
            below = [(original[k], copy[k]) for k in dict.keys(copy)]
        elif isinstance(original, (list, tuple, deque)):
            if not isinstance(original, tuple):
                self._pairs.append((original, copy, list(copy)))
            below = list(zip(original, copy))
        if kind not in _BUILTIN and is_adopted(original) and hasattr(copy, "__dict__"):
            mine, its = vars(original), vars(copy)
            self._pairs.append((mine, its, dict(its)))
            below += [(mine[k], its[k]) for k in its if k in mine]
        for a, b in below:
            self._visit(a, b)

    def write_back(self) -> None:
        """Make every change of an entry of a copy also in the original."""
        for original, copy, before in self._pairs:
            if isinstance(original, (list, deque)):
                if len(copy) != len(before) or any(a is not b for a, b in zip(copy, before)):
                    known = {id(b): o for b, o in zip(before, original)}
                    entries = [known.get(id(x), x) for x in copy]
                    original.clear()
                    original.extend(entries)
                continue
            for key in before.keys() - copy.keys():
                del original[key]
            for key, x in copy.items():
                if key not in before or before[key] is not x:
                    original[key] = x
