"""Reachability between kernels and ops: which of them need, directly or not, what another one computes."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

#: Items of a part. Few enough that the bits of one are a few hundred bytes, and more than most programs have kernels.
PART = 1024


class Reachability:
    """For each item of an acyclic graph those that it leads to, as bits of one integer.

    Items are added each after what follows them. Of each `PART` that are added one after the other it is known which
    leads where. No way leads from a part back to one that was added after it, since nothing connects or merges items
    against that order: so ways between items of one part stay in it, and what a connection costs does not grow with
    the graph.

    >>> reach = Reachability()
    >>> reach.add("c"), reach.add("b", ["c"]), reach.add("a", ["b"]), reach.add("d")
    (None, None, None, None)
    >>> reach.leads("a", "c"), reach.leads("a", "d")
    (True, False)
    >>> reach.connect("c", ["d"])
    >>> reach.leads("a", "d"), reach.leads("d", "a")
    (True, False)
    """

    def __init__(self, part: int = PART) -> None:
        self._items: dict[Any, _Item] = {}
        self._size = part

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
        part, bit = divmod(len(self._items), self._size)
        made = self._items[item] = _Item(part, 1 << bit)
        for x in following:
            next_ = self._item(x)
            if next_.part == part:
                made.found |= next_.found
                next_.before.append(made)

    def connect(self, item: Any, following: Iterable[Any]) -> None:
        """More items that come directly after one; none of them leads to it."""
        start, more = self._item(item), 0
        for x in following:
            next_ = self._item(x)
            if next_.part == start.part:
                more |= next_.found
                next_.before.append(start)
        if more | start.found != start.found:
            _spread([start], more)

    def in_one_part(self, first: Any, second: Any) -> bool:
        """Whether of two items it is known which leads to the other."""
        return self._item(first).part == self._item(second).part

    def leads(self, start: Any, goal: Any) -> bool:
        """Whether `goal` comes after `start`, or is the same item; True, too, where it is in a part that was added
        before that of `start`, and nobody knows."""
        one, other = self._item(start), self._item(goal)
        return bool(one.found & other.bit) if one.part == other.part else one.part > other.part

    def merge(self, first: Any, second: Any) -> None:
        """Make one item of two of a part: both names stand for it. No way from one to the other leads through a
        third."""
        one, other = self._item(first), self._item(second)
        one.found |= other.found
        one.before += other.before
        other.into = one
        _spread(list(one.before), one.found)


class _Item:
    """One item: its part, its bit there, those of all that it leads to, and what stands directly before it."""

    __slots__ = ("before", "bit", "found", "into", "part")

    def __init__(self, part: int, bit: int):
        self.part, self.bit, self.found = part, bit, bit
        self.before: list[_Item] = []
        self.into: _Item | None = None  #: the item that it is part of now


def _spread(pending: list[_Item], more: int) -> None:
    """Mark that items, and all that leads to them, lead to `more`. Marked items are not followed again."""
    while pending:
        item = pending.pop()
        while item.into is not None:
            item = item.into
        found = item.found | more
        if found != item.found:
            item.found = found
            pending += item.before
