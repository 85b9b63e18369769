"""Trees of lists, tuples and dicts alone, taken apart by Python: most programs have no others, and optree takes longer
to import than a small program to run.

A tree is of this kind by its containers and by the classes of its leaves, so equal trees always are or never are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, ClassVar

from smelt.ir.errors import InternalError

__all__: list[str] = []


class Attribute(str):
    """The name of an attribute among the entries of a node."""


class _Keys(tuple):
    """The keys of a dict, in the order of its children; `order` is that which it has itself, None: the same."""

    order: Sequence[Any] | None = None


class _Refused(Exception):
    """There is something else in a tree."""


NAMESPACE = "smelt"
#: In the state of functions dicts have their own order; in other trees of transformations, that of their keys, so that
#: equal dicts are one tree.
STATES = "smelt.states"
#: Trees that users walk: dicts in their own order, and as in MLX the entries alone of dicts, lists and tuples.
WALKS = "smelt.walks"

#: Nodes on the way to a leaf, at most: what goes along a structure calls itself, and Python's stack has an end.
DEEPEST = 100

#: Of a leaf None; of a list or tuple, its class and below: how many leaves, or each child; of a dict also its keys.
Shape = Any


class PlainStructure:
    """What `optree.PyTreeSpec` is to other trees.

    Attributes:
        shape: what it consists of. in_order: whether dicts are in their own order, not in that of their keys.
        num_leaves: of the tree.
        structure_of: gives the structure of such a tree for optree; None as long as nothing has asked that.
    """

    __slots__ = ("in_order", "num_leaves", "shape")
    structure_of: ClassVar[Callable[[Any, bool], Any] | None] = None

    def __init__(self, shape: Shape, num_leaves: int, in_order: bool = False):
        self.shape, self.num_leaves, self.in_order = shape, num_leaves, in_order

    def __eq__(self, other: object) -> bool:
        if isinstance(other, PlainStructure):
            return bool(self.shape == other.shape)
        structure_of = PlainStructure.structure_of
        if structure_of is None or not hasattr(other, "num_leaves"):
            return False
        return bool(structure_of(self.unflatten([0] * self.num_leaves), self.in_order) == other)

    def __hash__(self) -> int:
        return hash(self.shape)

    def __repr__(self) -> str:
        return f"PlainStructure({self.shape})"

    def unflatten(self, leaves: Sequence[Any]) -> Any:
        if len(leaves) != self.num_leaves:
            raise InternalError(f"a tree of {self.num_leaves} leaves is made of {len(leaves)}")
        return _built(self.shape, leaves, 0)[0]

    def is_leaf(self) -> bool:
        return self.shape is None

    @property
    def type(self) -> type | None:
        """The class of the root; None of a leaf."""
        return None if self.shape is None else self.shape[0]

    def are_leaves_below(self) -> bool:
        """Whether all children of the root are leaves."""
        return type(self.shape[1]) is int

    def paths(self) -> list[tuple[Any, ...]]:
        """For each leaf the entries that lead to it."""
        return list(_paths(self.shape))

    def keys(self) -> list[Any]:
        """Those of all dicts."""
        return list(_all_keys(self.shape))


def _paths(shape: Shape, root: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    if shape is None:
        yield root
        return
    below = shape[1]
    children = [None] * below if type(below) is int else below
    for entry, child in zip(shape[2] if shape[0] is dict else range(len(children)), children):
        yield from _paths(child, (*root, entry))


def _all_keys(shape: Shape) -> Iterator[Any]:
    if shape is None:
        return
    if shape[0] is dict:
        yield from shape[2]
    if type(shape[1]) is tuple:
        for child in shape[1]:
            yield from _all_keys(child)


def _built(shape: Shape, leaves: Sequence[Any], first: int) -> tuple[Any, int]:
    """A tree of the leaves from `first` on, and where those behind it begin."""
    if shape is None:
        return leaves[first], first + 1
    kind, below = shape[0], shape[1]
    children: Sequence[Any]
    if type(below) is int:
        children, end = leaves[first : first + below], first + below
    else:
        found, end = [], first
        for part in below:
            if part is None:
                found.append(leaves[end])
                end += 1
            else:
                child, end = _built(part, leaves, end)
                found.append(child)
        children = found
    if kind is list:
        return list(children), end
    if kind is tuple:
        return tuple(children), end
    keys = shape[2]
    made = dict(zip(keys, children))
    return (made if keys.order is None else {key: made[key] for key in keys.order}), end


def flatten(
    tree: Any, in_order: bool, known: set[type], is_plain: Callable[[type], bool]
) -> tuple[list[Any], PlainStructure] | None:
    """The leaves of a tree and its structure; None where the tree is of another kind.

    Args:
        in_order: as of a `PlainStructure`. known: classes of leaves. is_plain: says whether another class is one, too.
    """
    leaves: list[Any] = []
    try:
        shape = _shape_of(tree, type(tree), leaves, in_order, known, is_plain, DEEPEST)
    except (RecursionError, _Refused):
        return None
    return leaves, PlainStructure(shape, len(leaves), in_order)


def _shape_of(
    x: Any, kind: type, leaves: list[Any], in_order: bool, known: set[type], is_plain: Callable[[type], bool], room: int
) -> Shape:
    """What a tree consists of; its leaves are added to `leaves`.

    Args:
        room: how many nodes may lie on the way to a leaf.
    """
    if not room and kind in _CONTAINERS:
        raise _Refused
    keys = None
    children: Sequence[Any]
    if kind is tuple:
        children = x
    elif kind is list:
        children = [*x]  # another thread may add to it meanwhile
    elif kind is dict:
        x = x.copy()
        keys = _keys(x, in_order)
        children = [*x.values()] if keys.order is None else [x[key] for key in keys]
    elif kind in known or is_plain(kind):
        leaves.append(x)
        return None
    else:
        raise _Refused
    kinds = [*map(type, children)]
    below: Any
    if known.issuperset(kinds) or all(k in known or (k not in _CONTAINERS and is_plain(k)) for k in kinds):
        leaves.extend(children)
        below = len(kinds)
    else:
        found: list[Shape] = []
        for child, k in zip(children, kinds):
            if k in known:
                leaves.append(child)
                found.append(None)
            else:
                found.append(_shape_of(child, k, leaves, in_order, known, is_plain, room - 1))
        below = tuple(found)
    return (kind, below) if keys is None else (kind, below, keys)


_CONTAINERS = frozenset([list, tuple, dict])
_TEXTS, _INTEGERS = frozenset([str]), frozenset([int])


def _keys(x: dict[Any, Any], in_order: bool) -> _Keys:
    own = _Keys(x)
    if not (_TEXTS.issuperset(map(type, own)) or _INTEGERS.issuperset(map(type, own))):
        raise _Refused  # 1 and True are equal, and other classes may do anything
    if in_order or (names := sorted(own)) == [*own]:
        return own
    keys = _Keys(names)
    keys.order = own
    return keys
