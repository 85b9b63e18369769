"""A bounded cache that evicts the least recently used entry."""

from __future__ import annotations

import weakref
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Any

from smelt.ir import collector, locks
from smelt.ir.settings import settings


class LruCache:
    """At most ``settings.cache_size`` entries of ``settings.cache_bytes`` in all; the one used last stays in any case.

    Thread-safe; a value is made once even so.

    Args:
        weigh: the bytes that a value keeps, roughly.
    """

    def __init__(self, weigh: Callable[[Any], int]) -> None:
        self._entries: OrderedDict[Hashable, tuple[Any, int]] = OrderedDict()
        self._nbytes = 0
        self._lock = locks.lock()
        #: Held by who makes the value of a key in `get_or_wait`.
        self._making: weakref.WeakValueDictionary[Hashable, Any] = weakref.WeakValueDictionary()
        self._weigh = weigh
        self.hits = 0
        self.misses = 0

    def get(self, key: Hashable) -> Any:
        """The value under `key`, or None."""
        with self._lock:
            entry = self._entries.get(key)
            if entry is None:
                return None
            self._entries.move_to_end(key)
            self.hits += 1
            return entry[0]

    def get_or_make(self, key: Hashable, make: Callable[[], Any]) -> Any:
        """The value under `key`, made by `make` if absent."""
        value = self.get(key)
        if value is None:
            with self._lock:
                entry = self._entries.get(key)
                if entry is not None:
                    return entry[0]
                self.misses += 1
                with collector.kept():
                    value = make()
                self.put(key, value)
        return value

    def get_or_wait(self, key: Hashable, make: Callable[[], Any]) -> Any:
        """`get_or_make` for values that take long to make: only callers of the same value wait. If `make` returns None,
        nothing is kept."""
        value = self.get(key)
        if value is not None:
            return value
        with self._lock:
            making = self._making.get(key)
            if making is None:
                making = self._making[key] = locks.lock()
        with making:
            entry = self._entries.get(key)
            if entry is not None:
                return entry[0]
            with collector.kept():
                value = make()
            if value is not None:
                self.misses += 1
                self.put(key, value)
        return value

    def put(self, key: Hashable, value: Any) -> None:
        """Keep `value` under `key`, as the one used last. To be called again when what it keeps has changed."""
        with self._lock:
            self._drop(self._entries.pop(key, None))
            entry = (value, self._weigh(value))
            self._entries[key] = entry
            self._nbytes += entry[1]
            self._drop_oldest()

    def _drop_oldest(self) -> None:
        while len(self._entries) > 1 and (
            len(self._entries) > settings.cache_size or self._nbytes > settings.cache_bytes
        ):
            self._drop(self._entries.popitem(last=False)[1])

    def _drop(self, entry: tuple[Any, int] | None) -> None:
        if entry is not None:
            self._nbytes -= entry[1]

    @property
    def nbytes(self) -> int:
        """What the values keep, roughly."""
        return self._nbytes

    def clear(self) -> None:
        with self._lock:
            self._entries.clear()
            self._nbytes = 0

    def __len__(self) -> int:
        return len(self._entries)
