"""Which kernels and ops need what others compute."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any


class Reachability:
    """For each item of an acyclic graph those that it leads to, as bits of one integer.

    Items are added each after what follows them.

    >>> reach = Reachability()
    >>> reach.add("c"), reach.add("b", ["c"]), reach.add("a", ["b"]), reach.add("d")
    (None, None, None, None)
    >>> reach.leads("a", "c"), reach.leads("a", "d")
    (True, False)
    >>> reach.connect("c", ["d"])
    >>> reach.leads("a", "d"), reach.leads("d", "a")
    (True, False)
    """

    def __init__(self) -> None:
        self._items: dict[Any, _Item] = {}

    def _item(self, name: Any) -> _Item:
        """What a name stands for now."""
        item = self._items[name]
        if item.into is not None:
            while item.into is not None:
                item = item.into
            self._items[name] = item
        return item

    def add(self, item: Any, following: Iterable[Any] = ()) -> None:
        """A new item, and those that come directly after it."""
        made = self._items[item] = _Item(1 << len(self._items))
        for x in following:
            next_ = self._item(x)
            made.found |= next_.found
            next_.before.append(made)

    def connect(self, item: Any, following: Iterable[Any]) -> None:
        """More items that come directly after one; none of them leads to it."""
        start, more = self._item(item), 0
        for x in following:
            next_ = self._item(x)
            more |= next_.found
            next_.before.append(start)
        _spread([start], more)

    def leads(self, start: Any, goal: Any) -> bool:
        """Whether `goal` comes after `start`, or is the same item."""
        return bool(self._item(start).found & self._item(goal).bit)

    def merge(self, first: Any, second: Any) -> None:
        """Make one item of two: both names stand for it. No way from one to the other leads through a third."""
        one, other = self._item(first), self._item(second)
        one.found |= other.found
        one.before += other.before
        other.into = one
        _spread(list(one.before), one.found)


class _Item:
    """One item: its bit, those of all that it leads to, and what stands directly before it."""

    __slots__ = ("before", "bit", "found", "into")

    def __init__(self, bit: int):
        self.bit = self.found = bit
        self.before: list[_Item] = []
        self.into: _Item | None = None  #: the item that it is part of now


def _spread(pending: list[_Item], more: int) -> None:
    """Let items, and all that leads to them, lead to `more`. What leads there is not looked behind again."""
    while pending:
        item = pending.pop()
        while item.into is not None:
            item = item.into
        found = item.found | more
        if found != item.found:
            item.found = found
            pending += item.before
