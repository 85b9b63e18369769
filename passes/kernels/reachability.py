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
        self._bit: dict[Any, int] = {}
        self._found: dict[Any, int] = {}

    def add(self, item: Any, following: Iterable[Any] = ()) -> None:
        """A new item, and those that come directly after it."""
        total = self._bit[item] = 1 << len(self._bit)
        for x in following:
            total |= self._found[x]
        self._found[item] = total

    def connect(self, item: Any, following: Iterable[Any]) -> None:
        """More items that come directly after one; none of them leads to it."""
        more = 0
        for x in following:
            more |= self._found[x]
        self._spread(self._bit[item], more & ~self._found[item])

    def leads(self, start: Any, goal: Any) -> bool:
        """Whether `goal` comes after `start`, or is the same item."""
        return bool(self._found[start] & self._bit[goal])

    def merge(self, first: Any, second: Any) -> None:
        """Make one item of two: both names stand for it. No way from one to the other leads through a third."""
        bits = self._bit[first] | self._bit[second]
        self._bit[first] = self._bit[second] = bits
        self._spread(bits, bits | self._found[first] | self._found[second])

    def _spread(self, bits: int, more: int) -> None:
        """Let all that leads to one of `bits` lead to `more`."""
        if more:
            for item, found in self._found.items():
                if found & bits:
                    self._found[item] = found | more
