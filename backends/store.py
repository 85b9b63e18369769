"""Machine code from one process to the next: kept nowhere, until the runtime says where."""

from __future__ import annotations

from typing import Protocol


class Store(Protocol):
    """Contents by key. Neither raises: where nothing can be kept there is nothing."""

    def get(self, key: str) -> bytes | None: ...

    def put(self, key: str, content: bytes) -> bool: ...


_place: list[Store] = []


def keep_in(place: Store) -> None:
    """Have machine code kept there."""
    _place[:] = [place]


def kept(key: str) -> bytes | None:
    """What is kept under `key`."""
    return _place[0].get(key) if _place else None


def keep(key: str, content: bytes) -> None:
    """Keep `content`, which depends on nothing but what `key` was made of."""
    if _place:
        _place[0].put(key, content)
