"""Containers of arrays of every kind, for the tests of trees and of state."""

from __future__ import annotations

import collections
import dataclasses
import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import pytest

import smelt
from smelt.lazy import tree as trees
from smelt.lazy.tree_nodes import STATES, flatten

Array = smelt.array


class Module(dict):
    """As the modules of MLX: arrays and containers are entries, everything else is an attribute."""

    def __init__(self) -> None:
        self._training = True

    def __getattr__(self, key: str) -> Any:
        if (value := self.get(key)) is not None:
            return value
        return super().__getattribute__(key)

    def __setattr__(self, key: str, value: Any) -> None:
        if isinstance(value, (Array, dict, list, tuple)):
            self[key] = value
        else:
            super().__setattr__(key, value)
            self.pop(key, None)

    def __delattr__(self, key: str) -> None:
        if key in self:
            del self[key]
        else:
            super().__delattr__(key)

    @property
    def state(self) -> Module:
        return self


class Linear(Module):
    def __init__(self, a: Any, b: Any) -> None:
        super().__init__()
        self.weight, self.bias, self.scale, self.name = a, b, 2.0, "linear"

    def __call__(self, x: Array) -> Array:
        return (x * self.weight + self.bias) * self.scale


class Outer(Module):
    def __init__(self, a: Any, b: Any) -> None:
        super().__init__()
        self.layers = [Linear(a, b), (Linear(a, b),)]


class Entries(dict):
    """Nothing besides."""


class Cached(dict):
    """Arrays in attributes too, of which one is an entry."""


class Slotted(dict):
    __slots__ = ("extra",)


class Ordered(collections.OrderedDict):
    pass


class Default(collections.defaultdict):
    pass


class Listed(list):
    pass


class Tupled(tuple):
    pass


class Pair(NamedTuple):
    a: Any
    b: Any


class PairOfMine(collections.namedtuple("PairOfMine", "a b")):
    __slots__ = ()

    def total(self) -> Any:
        return self.a + self.b


@dataclasses.dataclass
class Data:
    a: Any
    b: Any
    note: str = "data"


@dataclasses.dataclass
class DataWithMore:
    a: Any

    def __post_init__(self) -> None:
        self.more = None


@dataclasses.dataclass(frozen=True)
class Frozen:
    a: Any
    b: Any


@dataclasses.dataclass
class SlottedData:
    __slots__ = ("a", "b")
    a: Any
    b: Any


class DerivedData(Data):
    pass


@smelt.utils.register_class
class Registered:
    def __init__(self, a: Any, b: Any) -> None:
        self.a, self.b = a, b

    def tree_flatten(self) -> Any:
        return (self.a, self.b), "static"

    @classmethod
    def tree_unflatten(cls, static: Any, children: Any) -> Any:
        assert static == "static"
        return cls(*children)


class DerivedRegistered(Registered):
    pass


def cached(a: Any, b: Any) -> Cached:
    made = Cached(a=a)
    made.same, made.b, made.number, made.text = a, [b], 3, "text"  # type: ignore[attr-defined]
    return made


def slotted(a: Any, b: Any) -> Slotted:
    made = Slotted(a=a)
    made.extra = b
    return made


def with_more(a: Any, b: Any) -> DataWithMore:
    made = DataWithMore(a)
    made.more = {"b": b}  # type: ignore[assignment]
    return made


def listed(a: Any, b: Any) -> Listed:
    made = Listed([a, b * 2])
    made.b = b  # type: ignore[attr-defined]
    return made


def tupled(a: Any, b: Any) -> Tupled:
    made = Tupled((a, b * 2))
    made.b = b  # type: ignore[attr-defined]
    return made


def default(a: Any, b: Any) -> Default:
    made = Default(list)
    made.update(a=a, b=[b])
    return made


def add(a: Any, b: Any, x: Any = None) -> Any:
    return a + b


#: How each container is made of two arrays, and what holds them.
CONTAINERS: dict[str, Callable[[Any, Any], Any]] = {
    "dict": lambda a, b: {"a": a, "b": b},
    "list": lambda a, b: [a, b],
    "tuple": lambda a, b: (a, b),
    "OrderedDict": lambda a, b: collections.OrderedDict(b=a, a=b),
    "defaultdict": lambda a, b: collections.defaultdict(int, a=a, b=b),
    "deque": lambda a, b: collections.deque([a, b]),
    "namedtuple": Pair,
    "subclass of a namedtuple": PairOfMine,
    "subclass of dict": lambda a, b: Entries(a=a, b=b),
    "subclass of OrderedDict": lambda a, b: Ordered(b=a, a=b),
    "subclass of defaultdict": default,
    "subclass of list": lambda a, b: Listed([a, b]),
    "subclass of tuple": lambda a, b: Tupled((a, b)),
    "Counter": lambda a, b: collections.Counter(a=a, b=b),
    "module": Linear,
    "modules in a module": Outer,
    "dict with attributes": cached,
    "dict with slots": slotted,
    "list with attributes": listed,
    "tuple with attributes": tupled,
    "dataclass": Data,
    "dataclass with attributes": with_more,
    "frozen dataclass": Frozen,
    "dataclass with slots": SlottedData,
    "subclass of a dataclass": DerivedData,
    "registered class": Registered,
    "subclass of a registered class": DerivedRegistered,
    "partial": lambda a, b: functools.partial(add, a, b=b),
    "nested": lambda a, b: {"x": [Entries(a=Tupled((a,)))], "y": Data(Linear(a, b), Listed([b]))},
}
names = pytest.mark.parametrize("name", CONTAINERS)


def make(name: str, a: Any = (1.0, 2.0), b: Any = (3.0, 5.0)) -> Any:
    return CONTAINERS[name](smelt.array(a), smelt.array(b))


def arrays(tree: Any) -> list[Array]:
    """All that transformations see: also those in attributes."""
    return [x for x in flatten(tree, space=STATES)[0] if isinstance(x, Array)]


def values(tree: Any) -> list:
    return [x.tolist() for x in arrays(tree)]


def plus(tree: Any, n: float) -> Any:
    return trees.mapped(lambda x: x + n if isinstance(x, Array) else x, tree)


def same_classes(a: Any, b: Any) -> bool:
    if type(a) is not type(b):
        return False
    below = list(zip(a.values(), b.values())) if isinstance(a, dict) else []
    below += list(zip(a, b)) if isinstance(a, (list, tuple)) else []
    return all(same_classes(x, y) for x, y in below)


def same(found: Any, want: Any) -> None:
    assert same_classes(found, want)
    assert values(found) == values(want)
    for name in ("number", "text", "note", "name", "scale", "_training"):
        assert getattr(found, name, None) == getattr(want, name, None)


def total(tree: Any) -> Array:
    return functools.reduce(lambda s, x: s + (x * x).sum(), arrays(tree), smelt.array(0.0))
