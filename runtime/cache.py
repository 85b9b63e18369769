"""A bounded cache that forgets what was used least recently."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Any

from smelt.ir import locks
from smelt.ir.settings import settings


class LruCache:
    """At most ``settings.cache_size`` entries of ``settings.cache_bytes`` in all; the one used last stays in any case.

    Thread-safe; a value is made once even so.

    Args:
        weigh: the bytes that a value keeps, roughly.
    """

    def __init__(self, weigh: Callable[[Any], int]) -> None:
        self._entries: OrderedDict[Hashable, Any] = OrderedDict()
        self._lock = locks.lock()
        self._weigh = weigh
        self.hits = 0
        self.misses = 0

    def get(self, key: Hashable) -> Any:
        """The value under `key`, or None."""
        with self._lock:
            value = self._entries.get(key)
            if value is not None:
                self._entries.move_to_end(key)
                self.hits += 1
            return value

    def get_or_make(self, key: Hashable, make: Callable[[], Any]) -> Any:
        """The value under `key`, made by `make` if absent."""
        value = self.get(key)
        if value is None:
            with self._lock:
                value = self._entries.get(key)
                if value is None:
                    self.misses += 1
                    value = make()
                    self._entries[key] = value
                    self._shrink()
        return value

    def _shrink(self) -> None:
        entries = self._entries
        while len(entries) > max(1, settings.cache_size):
            entries.popitem(last=False)
        excess = self.nbytes - settings.cache_bytes
        while excess > 0 and len(entries) > 1:
            excess -= self._weigh(entries.popitem(last=False)[1])

    @property
    def nbytes(self) -> int:
        """What the values keep, roughly."""
        return sum(map(self._weigh, list(self._entries.values())))

    def clear(self) -> None:
        with self._lock:
            self._entries.clear()

    def __len__(self) -> int:
        return len(self._entries)
