"""Classes that are nodes of trees: those that users register, and those that are known by what they are.

Dataclasses that hold arrays, and subclasses of dict, list and tuple become nodes when they are first met. For
transformations their arrays in attributes belong to the tree too; all other attributes are part of its structure. An
object that holds arrays and is none of these is an error of transformations: what it holds would be taken for
constants without a word.
"""

from __future__ import annotations

import dataclasses
import enum
import functools
import types
import weakref
from collections import OrderedDict, defaultdict, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Set
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from smelt.ir import locks
from smelt.ir.dtypes import DType
from smelt.ir.errors import TreeError, at_user_line, shown

from .core import hooks
from .graph import Handle
from .plain_trees import NAMESPACE, STATES, WALKS, Attribute, PlainStructure
from .plain_trees import flatten as flatten_plain
from .signatures import T
from .static_keys import Same, static_key

if TYPE_CHECKING:
    import optree

__all__: list[str] = []

_SPACES = (NAMESPACE, STATES, WALKS)
#: Types of leaves that hold no arrays, or none that count: those of functions are constants.
plain: set[type] = {
    int, float, bool, str, bytes, complex, type(None), type, types.FunctionType, types.BuiltinFunctionType,
    types.MethodType, types.ModuleType, np.ndarray, type(...), range, slice,
}  # fmt: skip
#: Objects that a search for arrays looks at before it gives up.
_MOST_OBJECTS = 1000
_TREES = (dict, list, tuple)
_lock = locks.lock()
#: Registered by users, and made nodes here.
_registered: weakref.WeakSet[type] = weakref.WeakSet()
_adopted: weakref.WeakSet[type] = weakref.WeakSet()
#: By class, attributes that have held arrays, and that have been the same array as an entry: they stay children, or
#: the same, where something else stands for an array, such as None or an axis.
_attributes: weakref.WeakKeyDictionary[type, tuple[set[str], set[str]]] = weakref.WeakKeyDictionary()


TreeDef: TypeAlias = "PlainStructure | optree.PyTreeSpec"
#: The structure of a leaf.
LEAF = PlainStructure(None, 1)


def calls() -> Any:
    """`tree_calls`, for trees that are not plain."""
    return locks.loaded("smelt.lazy.tree_calls")


def adopt(x: Any, strict: bool = True) -> bool:
    """Make the class of a leaf a node, if it is one that is known by what it is; whether that was so.

    Raises:
        TreeError: strict, and the leaf holds arrays, but is no tree.
    """
    kind = type(x)
    if _is_plain(kind):
        if len(plain) < 1000:
            plain.add(kind)
        return False
    with _lock:
        if kind in _adopted or kind in _registered:  # by another thread, since the caller looked
            return True
        if issubclass(kind, _TREES):
            _register(kind)
            return True
        if any(base in _registered and hasattr(base, "tree_flatten") for base in kind.__mro__):
            register_class(kind)
            return True
        if dataclasses.is_dataclass(kind):
            held = [v for f in dataclasses.fields(kind) for v in flatten(getattr(x, f.name, None))[0]]
            if any(_is_array(v) for v in held):
                _register(kind)
                return True
        elif kind is functools.partial and next(arrays_within(x), None):
            partial: Any = kind
            for space in _SPACES:
                calls().register_pytree_node(
                    partial, _split_partial, _join_partial, path_entry_type=calls().Entry, namespace=space
                )
            _adopted.add(kind)
            return True
    if strict and (found := next(arrays_within(x), None)):
        raise TreeError(
            at_user_line(
                f"smelt: a leaf of a tree is {_article(kind.__name__)} that holds arrays ({found[0]}), which "
                "nobody would see change; register its class with smelt.utils.register_class, make it a dataclass or "
                "a subclass of dict, list or tuple, or pass its arrays"
            )
        )
    return False


def _article(name: str) -> str:
    return f"{'an' if name[:1].lower() in 'aeiou' else 'a'} {name}"


def _is_array(x: Any) -> bool:
    return isinstance(x, Handle)


def _is_plain(kind: Any) -> bool:
    """Whether no instance of a class holds arrays that count."""
    if issubclass(kind, (Handle, DType, np.generic, np.ndarray, enum.Enum, type, types.ModuleType)):
        return True  # smelt's own may have another module: `smelt.compat` names one
    if kind.__module__.partition(".")[0] == __name__.partition(".")[0] and not issubclass(kind, _TREES):
        return True  # arrays, dtypes, compiled functions, optimizers; modules are trees
    held = dataclasses.is_dataclass(kind) or issubclass(kind, (*_TREES, Mapping, Set, deque, functools.partial))
    return not held and not kind.__dictoffset__ and not _slots(kind)


@functools.lru_cache(maxsize=1000)
def _slots(kind: Any) -> tuple[str, ...]:
    """The attributes in slots, under the names that Python gives them."""
    found = []
    for base in kind.__mro__:
        named = vars(base).get("__slots__", ())
        for name in (named,) if isinstance(named, str) else named:
            if name.startswith("__") and not name.endswith("__"):
                name = f"_{base.__name__.lstrip('_')}{name}"
            if isinstance(vars(base).get(name), types.MemberDescriptorType):
                found.append(name)
    return tuple(found)


def attributes(x: Any) -> dict[str, Any]:
    """What an object has in its dict and slots; its properties are not asked."""
    kind: Any = type(x)
    found = dict(object.__getattribute__(x, "__dict__")) if kind.__dictoffset__ else {}
    for name in _slots(kind):
        try:
            found[name] = object.__getattribute__(x, name)
        except AttributeError:  # never assigned
            continue
    return found


def arrays_within(x: Any) -> Iterator[tuple[str, Any]]:
    """The arrays that an object which is no tree holds, in attributes and entries, and where."""
    seen = {id(x)}
    pending: deque[tuple[str, Any]] = deque([("", x)])
    while pending and len(seen) < _MOST_OBJECTS:
        where, found = pending.popleft()
        below = [*_inside(found), *((f".{name}", v) for name, v in attributes(found).items())]
        for step, v in below[:_MOST_OBJECTS]:
            if _is_array(v):
                yield where + step, v
            elif type(v) not in plain and id(v) not in seen and not _is_plain(type(v)):
                seen.add(id(v))
                pending.append((where + step, v))


def _inside(x: Any) -> list[tuple[str, Any]]:
    """What a container holds that may be of any class."""
    try:
        if isinstance(x, Mapping):
            return [(f"[{k!r}]", v) for k, v in x.items()]
        if isinstance(x, (list, tuple, deque, Set)):
            return [(f"[{i}]", v) for i, v in enumerate(x)]
    except Exception:  # it may do anything when it is asked
        return []
    return [(".args", x.args), (".keywords", x.keywords)] if isinstance(x, functools.partial) else []


# Nodes made here


def _split_partial(x: Any) -> Any:
    return (x.args, x.keywords), Same(x.func), (Attribute("args"), Attribute("keywords"))


def _join_partial(function: Any, children: Any) -> Any:
    args, keywords = children
    return functools.partial(function.x, *args, **keywords)


class Structure:
    """What a node is besides its children.

    Attributes:
        kind: its class. keys: of its entries. held: the attributes among its children. others: all other
            attributes. same: attributes that are the same object as an entry.
    """

    __slots__ = ("_key", "factory", "held", "keys", "kind", "order", "others", "same")

    kind: Any

    def __init__(self, x: Any, keys: list, held: list[str], others: dict[str, Any], same: dict[str, int]):
        self.kind, self.keys, self.held, self.others, self.same = type(x), keys, held, others, same
        self.factory = x.default_factory if isinstance(x, defaultdict) else None
        #: The keys of a dict as it has them; dicts that differ in this alone may be one tree.
        self.order = list(dict.keys(x)) if isinstance(x, dict) else keys
        # Texts alone, and integers alone, are equal where they are the same.
        plainly = _TEXTS.issuperset(map(type, keys)) or _INTEGERS.issuperset(map(type, keys))
        self._key = (
            self.kind,
            tuple(keys) if plainly else tuple(map(_key_of_attribute, keys)),
            tuple(held) if held else (),
            tuple(same.items()) if same else (),
            None if self.factory is None else Same(self.factory),
            tuple([(name, _key_of_attribute(v)) for name, v in others.items()]) if others else (),
        )

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Structure) and self._key == other._key

    def __hash__(self) -> int:
        return hash(self._key[:3])


_TEXTS, _INTEGERS = frozenset([str]), frozenset([int])


def _key_of_attribute(x: Any) -> Any:
    try:
        key = static_key(x)
    except (TreeError, RecursionError):
        key = Same(x)
    # Arrays of an object that is no tree are constants of who sees them: with others it is another one.
    held = None if type(x) in plain else [(where, Same(a._ref[0]), a._ref[1]) for where, a in arrays_within(x)]
    return (key, tuple(held)) if held else key


def _base_of(kind: type) -> Any:
    """The class written in C that makes instances of a subclass of dict, list or tuple."""
    return next(c for c in kind.__mro__ if c in (OrderedDict, defaultdict, dict, list, tuple))


def _entries(x: Any, order: Callable[[Iterable], list]) -> tuple[list, list]:
    """Keys and children of a node made here, without its attributes; the keys of dicts as `order` has them."""
    if isinstance(x, OrderedDict):
        keys = list(OrderedDict.keys(x))
    elif isinstance(x, dict):
        keys = order(dict.keys(x))
    elif isinstance(x, list):
        return list(range(list.__len__(x))), list(list.__iter__(x))
    elif isinstance(x, tuple):
        return list(range(tuple.__len__(x))), list(tuple.__iter__(x))
    else:
        keys = [Attribute(f.name) for f in dataclasses.fields(x) if hasattr(x, f.name)]
        return keys, [object.__getattribute__(x, k) if k in attributes(x) else getattr(x, k) for k in keys]
    return keys, [dict.__getitem__(x, k) for k in keys]


def _sorted(keys: Iterable) -> list:
    """As optree has them: in order; by class where they have none."""
    keys = list(keys)
    try:
        return sorted(keys)
    except TypeError:
        try:
            return sorted(keys, key=lambda k: (f"{type(k).__module__}.{type(k).__qualname__}", k))
        except TypeError:
            return keys


def take_apart(
    x: Any, order: Callable[[Iterable], list] = _sorted, walks: bool = False
) -> tuple[list, Structure, list]:
    """Children, structure and entries of a node made here, as transformations see it or as users walk it."""
    keys, children = _entries(x, order)
    held, others, same = [], {}, {}
    own = attributes(x)
    if own:
        places = {id(child): i for i, child in enumerate(children)}
        fields = set(keys) if not isinstance(x, _TREES) else ()
        entries_only = walks and isinstance(x, _TREES)
        known, twins = _attributes.setdefault(type(x), (set(), set()))
        for name, value in own.items():
            if name in fields:
                continue
            if id(value) in places and (name in twins or _is_array(value)):
                same[name] = places[id(value)]
            elif entries_only:
                others[name] = value
            elif name in known or _is_array(value) or (type(value) not in plain and _holds_arrays(value)):
                held.append(name)
            else:
                others[name] = value
        known.update(held)
        twins.update(same)
    structure = Structure(x, keys, held, others, same)
    return [*children, *(own[n] for n in held)], structure, [*keys, *map(Attribute, held)]


def _holds_arrays(x: Any) -> bool:
    return any(_is_array(leaf) for leaf in flatten(x, strict=False)[0])


def _put_together(structure: Any, children: Any) -> Any:
    kind, keys = structure.kind, structure.keys
    children = list(children)
    if issubclass(kind, _TREES):
        base = _base_of(kind)
        if base is tuple:
            x = tuple.__new__(kind, children[: len(keys)])
        else:
            x = base.__new__(kind)
            if base is list:
                list.extend(x, children[: len(keys)])
            else:
                entries = dict(zip(keys, children))
                for key in structure.order:
                    base.__setitem__(x, key, entries[key])
            if base is defaultdict:
                x.default_factory = structure.factory
    else:
        x = object.__new__(kind)
        for key, child in zip(keys, children):
            object.__setattr__(x, key, child)
    for name, value in structure.others.items():
        object.__setattr__(x, name, value)
    for name, value in zip(structure.held, children[len(keys) :]):
        object.__setattr__(x, name, value)
    for name, i in structure.same.items():
        object.__setattr__(x, name, children[i])
    return x


def _register(kind: Any) -> None:
    in_order = functools.partial(take_apart, order=list)
    walked = functools.partial(take_apart, order=list, walks=True)
    ways: list[tuple[str, Any]] = [(NAMESPACE, take_apart), (STATES, in_order), (WALKS, walked)]
    for space, apart in ways:
        calls().register_pytree_node(kind, apart, _put_together, path_entry_type=calls().Entry, namespace=space)
    _adopted.add(kind)


def walk(tree: Any, space: str = WALKS, is_leaf: Any = None) -> tuple[list[Any], TreeDef]:
    """The leaves of a tree and its structure; one that nests too deeply is an error of its own. Whoever asked for the
    walk sees its leaves, so objects that hold arrays and are no trees are leaves like others."""
    if is_leaf is None:
        plainly = flatten_plain(tree, space != NAMESPACE, plain, _is_leaf_class)
        if plainly is not None:
            return plainly
    return walk_any(tree, space, is_leaf)


def walk_any(tree: Any, space: str, is_leaf: Any = None) -> tuple[list[Any], optree.PyTreeSpec]:
    """The same by optree, whatever the tree is."""
    stop = None
    if is_leaf is not None:
        if not callable(is_leaf):
            raise TreeError(at_user_line(f"smelt: is_leaf must be a function or None, is {shown(is_leaf)}"))

        def stop(x: Any) -> bool:
            return bool(is_leaf(x))

    try:
        while True:
            leaves, treedef = calls().tree_flatten(tree, stop, none_is_leaf=True, namespace=space)
            if not _any_adopted(leaves, False, is_leaf):
                return leaves, treedef
    except RecursionError:
        raise too_deep() from None


def too_deep() -> TreeError:
    return TreeError(at_user_line("smelt: a tree nests too deeply, or contains itself"))


def _any_adopted(leaves: list[Any], strict: bool, is_leaf: Callable | None = None) -> bool:
    """Whether a leaf turned out to be a node."""
    if plain.issuperset(map(type, leaves)):
        return False
    return any(type(x) not in plain and not (is_leaf and is_leaf(x)) and adopt(x, strict) for x in leaves)


@functools.lru_cache(maxsize=256)
def _structure_of_arrays(is_list: bool, length: int) -> TreeDef:
    """That of a list or tuple of arrays alone."""
    return PlainStructure((list if is_list else tuple, length), length)


def _is_leaf_class(kind: type) -> bool:
    """Whether instances of a class that was not met before are leaves that hold no arrays; noted then."""
    with _lock:  # another thread may register it meanwhile
        if kind in _registered or kind in _adopted or not _is_plain(kind):
            return False
        if len(plain) < 1000:
            plain.add(kind)
    return True


def flatten(tree: Any, strict: bool = True, space: str = NAMESPACE) -> tuple[list[Any], TreeDef]:
    """The leaves of a tree and its structure, with dicts in the order of their keys, or in their own (`STATES`). None
    is a leaf.

    Raises:
        TreeError: strict, and a leaf that is no array holds arrays.
    """
    kind, array = type(tree), hooks.array
    if kind is array:
        return [tree], LEAF
    if (kind is tuple or kind is list) and {array} == set(map(type, tree)):
        found = list(tree)  # another thread may add to it meanwhile
        return found, _structure_of_arrays(kind is list, len(found))
    plainly = flatten_plain(tree, space == STATES, plain, _is_leaf_class)
    if plainly is not None:
        return plainly
    try:
        leaves, treedef = calls().tree_flatten(tree, none_is_leaf=True, namespace=space)
        if not plain.issuperset(map(type, leaves)) and _any_adopted(leaves, strict):
            return flatten(tree, strict, space)
    except RecursionError:
        raise too_deep() from None
    return leaves, treedef


def arrays_of(tree: Any) -> list[Any]:
    """The arrays among the leaves of a tree, in no certain order: what `flatten` has of them, without a structure.

    Raises what `flatten` raises.
    """
    found: list[Any] = []
    try:
        _add_arrays(tree, found)
    except RecursionError:
        return [*filter(_is_array, flatten(tree)[0])]
    return found


def _add_arrays(tree: Any, found: list[Any]) -> None:
    kind = type(tree)
    if kind is hooks.array:
        found.append(tree)
    elif kind is list or kind is tuple:
        for child in tree:
            _add_arrays(child, found)
    elif kind is dict:
        for child in tree.values():
            _add_arrays(child, found)
    elif kind not in plain:
        if issubclass(kind, dict) and kind in _adopted:
            for child in dict.values(tree):
                _add_arrays(child, found)
            for value in attributes(tree).values():
                if _is_array(value) or (type(value) not in plain and _holds_arrays(value)):
                    _add_arrays(value, found)
        else:
            found += filter(_is_array, flatten(tree)[0])


def is_adopted(x: Any) -> bool:
    """Whether x is a node of a class that was made one here."""
    return type(x) in _adopted


def is_plain_dict(x: Any) -> bool:
    """Whether x is a node made here that is a dict, keys in its own order, whose attributes are no children of it."""
    kind = type(x)
    if not issubclass(kind, dict) or issubclass(kind, (OrderedDict, defaultdict)) or not is_adopted(x) or _slots(kind):
        return False
    structure = take_apart(x)[1]
    return not structure.held and not structure.same


def register_class(cls: type[T]) -> type[T]:
    """Make a dataclass, or a class with ``tree_flatten`` and ``tree_unflatten``, a tree node.

    ``tree_flatten(self)`` returns (children, static data), ``tree_unflatten(cls, static, children)``
    builds an instance. Usable as a decorator; subclasses are nodes too. Dataclasses that hold arrays, and subclasses
    of dict, list and tuple, are nodes without it.

    Raises:
        TreeError: any other class.

    >>> @register_class
    ... class Pair:
    ...     def __init__(self, a, b):
    ...         self.a, self.b = a, b
    ...     def tree_flatten(self):
    ...         return (self.a, self.b), None
    ...     @classmethod
    ...     def tree_unflatten(cls, static, children):
    ...         return cls(*children)
    >>> from smelt.utils import tree_map
    >>> tree_map(lambda x: x + 1, Pair(1, 2)).b
    3
    """
    made: Any = cls
    custom = hasattr(cls, "tree_flatten") and hasattr(cls, "tree_unflatten")
    if not isinstance(cls, type) or not (custom or dataclasses.is_dataclass(cls) or issubclass(cls, _TREES)):
        name = getattr(cls, "__name__", type(cls).__name__)
        raise TreeError(at_user_line(f"{name} is neither a dataclass nor has tree_flatten and tree_unflatten"))
    with _lock:
        if cls in _adopted or cls in _registered:
            for space in _SPACES:
                calls().unregister_pytree_node(made, namespace=space)
            _adopted.discard(cls)
        if custom:

            def flatten_instance(x: Any) -> Any:
                return x.tree_flatten()

            for space in _SPACES:
                calls().register_pytree_node(made, flatten_instance, made.tree_unflatten, namespace=space)
        else:
            _register(made)
        _registered.add(cls)
        plain.discard(cls)
    return cls
