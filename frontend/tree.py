"""Trees of arrays: nested lists, tuples, dicts, named tuples, dataclasses and registered classes.

Built on optree. Leaves are arrays and everything that is not a container.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, overload

import optree

from smelt.ir.errors import TreeError, at_user_line, shown

from .signatures import T

if TYPE_CHECKING:
    from .arrays import array
    from .signatures import IsLeaf, Tree

NAMESPACE = "smelt"

TreeDef = optree.PyTreeSpec


#: Types of leaves that have been looked at: they are no dataclasses.
_plain: set[type] = {int, float, bool, str, type(None)}


def _walk(walk: Callable, *trees: Any, **options: Any) -> Any:
    """A walk of optree over trees; those that nest too deeply are an error of their own."""
    is_leaf = options.get("is_leaf")
    if is_leaf is not None and not callable(is_leaf):
        raise TreeError(at_user_line(f"smelt: is_leaf must be a function or None, is {shown(is_leaf)}"))
    if is_leaf is not None:
        options["is_leaf"] = lambda x: bool(is_leaf(x))
    try:
        return walk(*trees, **options, none_is_leaf=True, namespace=NAMESPACE)
    except RecursionError:
        raise _too_deep() from None


def _too_deep() -> TreeError:
    return TreeError(at_user_line("smelt: a tree nests too deeply, or contains itself"))


def flatten(tree: Any) -> tuple[list[Any], TreeDef]:
    """The leaves of a tree and its structure. None is a leaf; a dataclass that holds arrays is not."""
    try:
        leaves, treedef = optree.tree_flatten(tree, none_is_leaf=True, namespace=NAMESPACE)
    except RecursionError:
        raise _too_deep() from None
    if not _plain.issuperset(map(type, leaves)):
        for x in leaves:
            if type(x) not in _plain and _adopt(x):
                return flatten(tree)
    return leaves, treedef


def _adopt(x: Any) -> bool:
    """Make the class of an unregistered dataclass with arrays in it a tree node; whether that was so."""
    kind = type(x)
    if not dataclasses.is_dataclass(kind):
        if len(_plain) < 1000:
            _plain.add(kind)
        return False
    from .arrays import array

    held = [v for f in dataclasses.fields(kind) for v in flatten(getattr(x, f.name, None))[0]]
    if not any(isinstance(v, array) for v in held):
        return False
    register_class(kind)
    return True


def paths(tree: Any, root: str) -> list[str]:
    """For each leaf, the expression that leads to it from `root`.

    >>> paths({"w": [1, 2]}, "params")
    ["params['w'][0]", "params['w'][1]"]
    """
    return [a.codify(root) for a in _walk(optree.tree_accessors, tree)]


def children(tree: Any) -> list[tuple[str, Any]] | None:
    """Expression and value of each child of a tree node; None for a leaf. Dicts in the order of their keys."""
    if _walk(optree.tree_is_leaf, tree):
        return None
    found: list[tuple[str, Any]] = []

    def note(accessor: Any, child: Any) -> None:
        found.append((accessor.codify(""), child))

    _walk(functools.partial(optree.tree_map_with_accessor, note), tree, is_leaf=lambda x: x is not tree)
    return found


def same_kind(a: Any, b: Any) -> bool:
    """Whether two tree nodes may stand for each other: lists and tuples may, else they are of one class."""
    if type(a) in (list, tuple) and type(b) in (list, tuple):
        return True
    return type(a) is type(b) or (isinstance(a, dict) and isinstance(b, dict))


def difference(a: Any, b: Any, root: str) -> str | None:
    """Where two trees differ in structure, for an error message; None if they do not.

    >>> difference({"w": 1}, {"w": (2, 3)}, "x")
    "x['w'] is an int, but there is a tuple"
    """
    below_a, below_b = children(a), children(b)
    if below_a is None and below_b is None:
        return None
    if below_a is None or below_b is None or not same_kind(a, b):
        return f"{root} is {kind_of(a)}, but there is {kind_of(b)}"
    if isinstance(a, dict) and a.keys() != b.keys():
        return f"{root} has the keys {sorted(a, key=str)}, but there are {sorted(b, key=str)}"
    if len(below_a) != len(below_b):
        return f"{root} has {len(below_a)} entries, but there are {len(below_b)}"
    for (step, x), (_, y) in zip(below_a, below_b):
        if found := difference(x, y, root + step):
            return found
    return None


def kind_of(x: Any) -> str:
    """The class of x with its article."""
    name = type(x).__name__
    return "None" if x is None else f"{'an' if name[0].lower() in 'aeiou' else 'a'} {name}"


def unflatten(treedef: TreeDef, leaves: Sequence[Any]) -> Any:
    """The tree of a structure with the given leaves."""
    return optree.tree_unflatten(treedef, leaves)


class Mirrored:
    """Pairs of lists and dicts: those of a caller, and copies that a function gets in their place."""

    def __init__(self, original: Any, copy: Any):
        self._pairs: list[tuple[Any, Any, Any]] = []  # original, copy, and the entries of the copy at first
        self._visit(original, copy)

    def _visit(self, original: Any, copy: Any) -> None:
        if isinstance(original, dict):
            self._pairs.append((original, copy, dict(copy)))
            below = [(original[k], copy[k]) for k in copy]
        elif isinstance(original, (list, tuple)):
            if isinstance(original, list):
                self._pairs.append((original, copy, list(copy)))
            below = list(zip(original, copy))
        else:
            return
        for a, b in below:
            self._visit(a, b)

    def write_back(self) -> None:
        """Make every change of an entry of a copy also in the original."""
        for original, copy, before in self._pairs:
            if isinstance(original, list):
                if len(copy) != len(before) or any(a is not b for a, b in zip(copy, before)):
                    known = {id(b): o for b, o in zip(before, original)}
                    original[:] = [known.get(id(x), x) for x in copy]
                continue
            for key in before.keys() - copy.keys():
                del original[key]
            for key, x in copy.items():
                if key not in before or before[key] is not x:
                    original[key] = x


def _check_function(function: Any) -> None:
    if not callable(function):
        raise TreeError(at_user_line(f"smelt: a tree is mapped by a function, got {shown(function)}"))


def _mapped(walk: Callable, function: Callable, tree: Any, rest: Sequence[Any], is_leaf: Callable | None) -> Any:
    """A function applied to leaves of trees, which have the structure of the first one."""
    _check_function(function)
    trees = [_walk(optree.tree_structure, t, is_leaf=is_leaf) for t in (tree, *rest)] if rest else []
    for i, (other, structure) in enumerate(zip(rest, trees[1:])):
        if not trees[0].is_prefix(structure):
            where = difference(tree, other, "the first tree") or "their structures differ"
            raise TreeError(at_user_line(f"smelt: tree {i + 2} does not fit the first one: {where}"))
    return _walk(functools.partial(walk, function), tree, *rest, is_leaf=is_leaf)


@overload
def tree_map(function: Callable[[array], array], tree: Tree, *, is_leaf: IsLeaf = None) -> Tree: ...
@overload
def tree_map(
    function: Callable[[array, array], array], tree: Tree, rest: Tree, /, *, is_leaf: IsLeaf = None
) -> Tree: ...
@overload
def tree_map(
    function: Callable[[array, array, array], array], tree: Tree, rest: Tree, more: Tree, /, *, is_leaf: IsLeaf = None
) -> Tree: ...
@overload
def tree_map(function: Callable[..., Any], tree: Any, *rest: Any, is_leaf: IsLeaf = None) -> Any: ...
def tree_map(function: Callable[..., Any], tree: Any, *rest: Any, is_leaf: IsLeaf = None) -> Any:
    """Apply `function` to corresponding leaves of trees of one structure.

    >>> tree_map(lambda x, y: x + y, {"a": 1, "b": [2]}, {"a": 10, "b": [20]})
    {'a': 11, 'b': [22]}
    """
    return _mapped(optree.tree_map, function, tree, rest, is_leaf)


def tree_map_with_path(
    function: Callable[..., Any], tree: Any, *rest: Any, is_leaf: IsLeaf = None, path: str = ""
) -> Any:
    """`tree_map` where `function` gets the leaf's dotted path first.

    >>> tree_map_with_path(lambda p, x: f"{p}={x}", {"w": [1, 2]})
    {'w': ['w.0=1', 'w.1=2']}
    """

    def call(accessor: tuple, *leaves: Any) -> Any:
        dotted = ".".join([path] * bool(path) + [str(p) for p in accessor])
        return function(dotted, *leaves)

    _check_function(function)
    if not isinstance(path, str):
        raise TreeError(at_user_line(f"smelt.utils.tree_map_with_path: path must be a text, is {shown(path)}"))
    return _mapped(optree.tree_map_with_path, call, tree, rest, is_leaf)


@overload
def tree_flatten(
    tree: Any, prefix: str = "", is_leaf: IsLeaf = None, destination: None = None
) -> list[tuple[str, Any]]: ...
@overload
def tree_flatten(tree: Any, prefix: str = "", is_leaf: IsLeaf = None, *, destination: T) -> T: ...
@overload
def tree_flatten(tree: Any, prefix: str, is_leaf: IsLeaf, destination: T) -> T: ...
def tree_flatten(tree: Any, prefix: str = "", is_leaf: IsLeaf = None, destination: Any = None) -> Any:
    """Pairs of dotted path and leaf, as a list, or put into `destination` (a list or dict).

    >>> tree_flatten({"a": 1, "b": [2, 3]})
    [('a', 1), ('b.0', 2), ('b.1', 3)]
    """
    if not isinstance(prefix, str):
        raise TreeError(at_user_line(f"smelt.utils.tree_flatten: prefix must be a text, is {shown(prefix)}"))
    if destination is not None and not isinstance(destination, (dict, list)):
        raise TreeError(
            at_user_line(f"smelt.utils.tree_flatten: destination must be a list or a dict, is {shown(destination)}")
        )
    pairs: list[tuple[str, Any]] = []
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
    if not isinstance(tree, (dict, list, tuple)):
        raise TreeError(at_user_line(f"smelt.utils.tree_unflatten: needs a list or dict, got {shown(tree)}"))
    pairs = list(tree.items()) if isinstance(tree, dict) else list(tree)
    if not all(isinstance(p, (tuple, list)) and len(p) == 2 and isinstance(p[0], str) for p in pairs):
        raise TreeError(
            at_user_line(f"smelt.utils.tree_unflatten: needs pairs of a dotted path and a leaf, got {shown(tree)}")
        )
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


@overload
def tree_reduce(function: Callable[[T, Any], T], tree: Any, initializer: T, is_leaf: IsLeaf = None) -> T: ...
@overload
def tree_reduce(
    function: Callable[[Any, Any], Any], tree: Any, initializer: Any = None, is_leaf: IsLeaf = None
) -> Any: ...
def tree_reduce(
    function: Callable[[Any, Any], Any], tree: Any, initializer: Any = None, is_leaf: IsLeaf = None
) -> Any:
    """Combine the leaves from left to right.

    >>> tree_reduce(lambda s, x: s + x, {"a": 1, "b": [2, 3]}, 0)
    6
    """
    _check_function(function)
    leaves = _walk(optree.tree_leaves, tree, is_leaf=is_leaf)
    if not leaves and initializer is None:
        raise TreeError(at_user_line("smelt: tree_reduce of a tree without leaves needs an initializer"))
    total, rest = (leaves[0], leaves[1:]) if initializer is None else (initializer, leaves)
    for leaf in rest:
        total = function(total, leaf)
    return total


def register_class(cls: type[T]) -> type[T]:
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
