"""Trees of arrays: nested lists, tuples, dicts and their subclasses, dataclasses and registered classes.

Leaves are arrays and everything that is not a container; `tree_nodes` says what is one. Lists, tuples and dicts alone
are taken apart by `plain_trees`, all else by optree.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, overload

from smelt.ir.aval import Aval
from smelt.ir.errors import TreeError, at_user_line, shown

from . import guarded
from .core import seen, shadows
from .graph import Handle, Ref
from .plain_trees import NAMESPACE, STATES, WALKS, PlainStructure
from .signatures import T
from .tree_nodes import LEAF, TreeDef, adopt, calls, flatten, plain, too_deep, walk, walk_any
from .tree_nodes import arrays_of as arrays_of
from .tree_nodes import register_class as register_class

if TYPE_CHECKING:
    from .arrays import array
    from .signatures import IsLeaf, Tree


_CONTAINERS = frozenset([list, tuple, dict])


def flatten_like(like: Any, tree: Any) -> list[Any]:
    """The leaves of a tree in the order of another one's, from which it does not differ (see `difference`)."""
    leaves, treedef = flatten(tree)
    if guarded.equal(flatten(like)[1], treedef):
        return leaves
    return _aligned(like, tree)


def _aligned(like: Any, tree: Any) -> list[Any]:
    """What stands in a tree where another one has its leaves."""
    if _entries(like) is None:
        return [tree]
    return [leaf for _, x, y in paired(like, tree) for leaf in _aligned(x, y)]


def paths(tree: Any, root: str) -> list[str]:
    """For each leaf, the expression that leads to it from `root`.

    >>> paths({"w": [1, 2]}, "params")
    ["params['w'][0]", "params['w'][1]"]
    """
    treedef = walk(tree, NAMESPACE)[1]
    if isinstance(treedef, PlainStructure):
        return [root + "".join([f"[{step!r}]" for step in steps]) for steps in treedef.paths()]
    return [a.codify(root) for a in calls().accessors(treedef)]


def is_structure(x: Any) -> bool:
    """Whether it says of a tree what it consists of."""
    return isinstance(x, PlainStructure) or hasattr(x, "flatten_up_to")


def keys_of(treedef: TreeDef) -> list[Any]:
    """The keys of all dicts in a structure, some of them several times."""
    if isinstance(treedef, PlainStructure):
        return treedef.keys()
    return [e.entry for a in calls().accessors(treedef) for e in a if issubclass(e.type, dict)]


def is_tuple_of_leaves(treedef: TreeDef) -> bool:
    if treedef.type is not tuple:
        return False
    if isinstance(treedef, PlainStructure):
        return treedef.are_leaves_below()
    return all(child.is_leaf() for child in treedef.children())


def is_node(x: Any) -> bool:
    """Whether x is a tree of more than a leaf; objects that hold arrays and are no trees are none."""
    if type(x) in _CONTAINERS:
        return True
    if type(x) in plain or isinstance(x, Handle):
        return False
    if type(x) not in plain and calls().tree_is_leaf(x, none_is_leaf=True, namespace=NAMESPACE):
        with contextlib.suppress(TreeError):
            return adopt(x)
    return not calls().tree_is_leaf(x, none_is_leaf=True, namespace=NAMESPACE)


def _entries(tree: Any, space: str = NAMESPACE) -> list[tuple[Any, str, Any]] | None:
    """Of each child of a tree node the entry, as an expression too, and the child; None for a leaf."""
    if not is_node(tree):
        return None
    if type(tree) is list or type(tree) is tuple:
        return [(i, f"[{i}]", child) for i, child in enumerate(tree)]
    accessors, below, _ = calls().tree_flatten_with_accessor(
        tree, is_leaf=lambda x: x is not tree, none_is_leaf=True, namespace=space
    )
    return [(a[0].entry, a.codify(""), child) for a, child in zip(accessors, below)]


def children(tree: Any) -> list[tuple[str, Any]] | None:
    """Expression and value of each child of a tree node; None for a leaf. Dicts in the order of their keys."""
    found = _entries(tree)
    return None if found is None else [(step, child) for _, step, child in found]


def paired(a: Any, b: Any) -> list[tuple[str, Any, Any]]:
    """Expression and both values of the children of two nodes of the same kind and size; in dicts by their keys."""
    below, entries = _entries(a) or [], _entries(b) or []
    if isinstance(a, dict):
        by_entry = {entry: child for entry, _, child in entries}
        if all(entry in by_entry for entry, _, _ in below):
            return [(step, x, by_entry[entry]) for entry, step, x in below]
    return [(step, x, y) for (_, step, x), (_, _, y) in zip(below, entries)]


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
    try:
        return _difference(a, b, root)
    except RecursionError:
        raise too_deep() from None


def _difference(a: Any, b: Any, root: str) -> str | None:
    below_a, below_b = children(a), children(b)
    if below_a is None and below_b is None:
        return None
    if below_a is None or below_b is None or not same_kind(a, b):
        return f"{root} is {kind_of(a)}, but there is {kind_of(b)}"
    if isinstance(a, dict) and a.keys() != b.keys():
        return _other_keys(a, b, root)
    if len(below_a) != len(below_b):
        return _other_size(below_a, below_b, root)
    for step, x, y in paired(a, b):
        if found := _difference(x, y, root + step):
            return found
    return None


def _other_keys(a: Any, b: Any, root: str) -> str:
    return f"{root} has the keys {sorted(a, key=str)}, but there are {sorted(b, key=str)}"


def _other_size(a: Any, b: Any, root: str) -> str:
    return f"{root} has {len(a)} entries, but there are {len(b)}"


def kind_of(x: Any) -> str:
    """The class of x with its article."""
    name = type(x).__name__
    return "None" if x is None else f"{'an' if name[0].lower() in 'aeiou' else 'a'} {name}"


def unflatten(treedef: TreeDef, leaves: Sequence[Any]) -> Any:
    """The tree of a structure with the given leaves."""
    if treedef is LEAF and len(leaves) == 1:
        return leaves[0]
    if isinstance(treedef, PlainStructure):
        return treedef.unflatten(leaves)
    return calls().tree_unflatten(treedef, leaves)


class ArrayTree:
    """A tree, taken apart: its arrays, and what puts others in their place.

    Attributes:
        leaves: of the tree, in order. places: which of them are arrays. arrays: these.
    """

    def __init__(self, value: Any):
        self.leaves, self.treedef = flatten(value)
        if shadows:
            self.leaves = seen(self.leaves)
        self.places = [i for i, x in enumerate(self.leaves) if isinstance(x, Handle)]
        self.arrays: list[array] = [self.leaves[i] for i in self.places]

    @property
    def avals(self) -> list[Aval]:
        return [node.avals[i] for node, i in self.refs]

    @property
    def refs(self) -> list[Ref]:
        return [x._ref for x in self.arrays]

    def rebuild(self, values: Iterable[Any], keep: bool = True) -> Any:
        """The tree with other values in place of the arrays; leaves that are none stay, or become None."""
        leaves = list(self.leaves) if keep else [None] * len(self.leaves)
        for i, x in zip(self.places, values):
            leaves[i] = x
        return unflatten(self.treedef, leaves)


def _check_function(function: Any) -> None:
    if not callable(function):
        raise TreeError(at_user_line(f"smelt: a tree is mapped by a function, got {shown(function)}"))


def _mapped(
    function: Callable, tree: Any, rest: Sequence[Any], is_leaf: Callable | None, path: str | None, space: str = WALKS
) -> Any:
    """A function applied to leaves of trees, of which the others have whatever the first one has; to their paths too if
    there is a `path` to begin with."""
    _check_function(function)
    leaves, treedef = walk(tree, space, is_leaf)
    if isinstance(treedef, PlainStructure):
        others = [walk(other, space, is_leaf) for other in rest]
        if all(structure == treedef for _, structure in others):
            given = [leaves, *(found for found, _ in others)]
            if path is not None:
                given.insert(0, _dotted(path, treedef.paths()))
            return treedef.unflatten([function(*xs) for xs in zip(*given)])
        leaves, treedef = walk_any(tree, space, is_leaf)
    columns = [leaves]
    for i, other in enumerate(rest):
        structure = walk_any(other, space, is_leaf)[1]
        if calls().is_prefix(treedef, structure):
            columns.append(calls().flatten_up_to(treedef, other))
            continue
        column: list[Any] = []
        columns.append(column)
        try:
            misfit = _collect(tree, other, is_leaf, space, "the first tree", column)
        except RecursionError:
            raise too_deep() from None
        if misfit:
            raise TreeError(at_user_line(f"smelt: tree {i + 2} does not fit the first one: {misfit}"))
    if path is not None:
        columns.insert(0, _dotted(path, calls().paths(treedef)))
    return calls().tree_unflatten(treedef, [function(*xs) for xs in zip(*columns)])


def _dotted(path: str, paths: Iterable[Sequence[Any]]) -> list[str]:
    return [".".join([path] * bool(path) + [str(p) for p in steps]) for steps in paths]


def _collect(like: Any, tree: Any, is_leaf: Callable | None, space: str, root: str, found: list[Any]) -> str | None:
    """Add to `found` what stands in a tree where another one has its leaves; what it lacks, for an error message. The
    tree may have more entries."""
    below = None if is_leaf is not None and is_leaf(like) else _entries(like, space)
    if below is None:
        found.append(tree)
        return None
    entries = _entries(tree, space)
    if entries is None or not same_kind(like, tree):
        return f"{root} is {kind_of(like)}, but there is {kind_of(tree)}"
    by_entry = {entry: child for entry, _, child in entries}
    for entry, step, child in below:
        if entry not in by_entry:
            return (_other_keys if isinstance(like, dict) else _other_size)(like, tree, root)
        if misfit := _collect(child, by_entry[entry], is_leaf, space, root + step, found):
            return misfit
    return None


def mapped(fn: Callable[..., Any], tree: Any, *rest: Any) -> Any:
    """`tree_map` of trees as transformations see them."""
    return _mapped(fn, tree, rest, None, None, STATES)


@overload
def tree_map(fn: Callable[[array], array], tree: Tree, *, is_leaf: IsLeaf = None) -> Tree: ...
@overload
def tree_map(
    fn: Callable[[array, array], array], tree: Tree, rest: Tree, /, *, is_leaf: IsLeaf = None
) -> Tree: ...
@overload
def tree_map(
    fn: Callable[[array, array, array], array], tree: Tree, rest: Tree, more: Tree, /, *, is_leaf: IsLeaf = None
) -> Tree: ...
@overload
def tree_map(fn: Callable[..., Any], tree: Any, *rest: Any, is_leaf: IsLeaf = None) -> Any: ...
def tree_map(fn: Callable[..., Any], tree: Any, *rest: Any, is_leaf: IsLeaf = None) -> Any:
    """Apply `fn` to the leaves of a tree, and to what other trees have in their places.

    Args:
        rest: trees with the entries of `tree`, and perhaps more. is_leaf: whether something is a leaf of `tree`.

    Raises:
        TreeError: another tree lacks an entry. The message names it.

    >>> tree_map(lambda x, y: x + y, {"a": 1, "b": [2]}, {"a": 10, "b": [20], "c": 30})
    {'a': 11, 'b': [22]}
    """
    return _mapped(fn, tree, rest, is_leaf, None)


def tree_map_with_path(
    fn: Callable[..., Any], tree: Any, *rest: Any, is_leaf: IsLeaf = None, path: str | None = None
) -> Any:
    """`tree_map` where `fn` gets the leaf's dotted path first.

    Args:
        fn: called with the path and the leaves. tree, rest, is_leaf: as of `tree_map`. path: before each path.

    Raises:
        TreeError: `path` is no text, or the trees differ.

    >>> tree_map_with_path(lambda p, x: f"{p}={x}", {"w": [1, 2]})
    {'w': ['w.0=1', 'w.1=2']}
    """

    path = "" if path is None else path
    if not isinstance(path, str):
        raise TreeError(at_user_line(f"smelt.utils.tree_map_with_path: path must be a text, is {shown(path)}"))
    return _mapped(fn, tree, rest, is_leaf, path)


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

    Args:
        tree: nested dicts, lists and tuples. prefix: before each path. is_leaf: whether something is a leaf.

    Raises:
        TreeError: `prefix` is no text, or `destination` no list or dict.

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
    """The tree of dotted paths and leaves: the inverse of `tree_flatten`. Numbers make lists.

    Raises:
        TreeError: no pairs of paths and leaves.

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
    if all(key.isdecimal() and key == str(int(key)) for key in groups):  # "01" and "1" are two keys
        size = max(map(int, groups)) + 1 if groups else 0
        return [tree_unflatten(groups[str(i)]) if str(i) in groups else {} for i in range(size)]
    return {key: tree_unflatten(group) for key, group in groups.items()}


@overload
def tree_reduce(fn: Callable[[T, Any], T], tree: Any, initializer: T, is_leaf: IsLeaf = None) -> T: ...
@overload
def tree_reduce(
    fn: Callable[[Any, Any], Any], tree: Any, initializer: Any = None, is_leaf: IsLeaf = None
) -> Any: ...
def tree_reduce(
    fn: Callable[[Any, Any], Any], tree: Any, initializer: Any = None, is_leaf: IsLeaf = None
) -> Any:
    """Combine the leaves from left to right.

    Args:
        fn: of two arguments: what the leaves before were combined to, and a leaf.
        initializer: stands before the first leaf. is_leaf: as of `tree_map`.

    Raises:
        TreeError: a tree without leaves, and no initializer.

    >>> tree_reduce(lambda s, x: s + x, {"a": 1, "b": [2, 3]}, 0)
    6
    """
    _check_function(fn)
    leaves = walk(tree, is_leaf=is_leaf)[0]
    if not leaves and initializer is None:
        raise TreeError(at_user_line("smelt: tree_reduce of a tree without leaves needs an initializer"))
    total, rest = (leaves[0], leaves[1:]) if initializer is None else (initializer, leaves)
    for leaf in rest:
        total = fn(total, leaf)
    return total
