"""A bounded cache that forgets what was used least recently."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Any

from smelt.ir import locks
from smelt.ir.settings import settings


class LruCache:
    """At most ``settings.cache_size`` entries. Thread-safe; a value is made once even so."""

    def __init__(self) -> None:
        self._entries: OrderedDict[Hashable, Any] = OrderedDict()
        self._lock = locks.lock()
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
                    while len(self._entries) > max(1, settings.cache_size):
                        self._entries.popitem(last=False)
        return value

    def clear(self) -> None:
        with self._lock:
            self._entries.clear()

    def __len__(self) -> int:
        return len(self._entries)
