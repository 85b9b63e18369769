"""Memory statistics and limits, under MLX's names."""

from __future__ import annotations

from smelt.ir.settings import settings
from smelt.runtime import pools

from .lazy.arguments import integer

__all__ = [
    "clear_cache",
    "get_active_memory",
    "get_cache_memory",
    "get_memory_limit",
    "get_peak_memory",
    "reset_peak_memory",
    "set_cache_limit",
    "set_memory_limit",
    "set_wired_limit",
]


def get_active_memory() -> int:
    """Bytes in use by arrays above 64 KiB (smaller ones are not counted), on all devices."""
    return sum(pool.active_bytes for pool in pools)


def get_cache_memory() -> int:
    """Bytes kept for reuse."""
    return sum(pool.cached_bytes for pool in pools)


def get_peak_memory() -> int:
    """The largest number of bytes in use since the start or `reset_peak_memory`."""
    return sum(pool.peak_bytes for pool in pools)


def reset_peak_memory() -> None:
    """Forget the peak."""
    for pool in pools:
        pool.peak_bytes = pool.active_bytes


def set_cache_limit(limit: int) -> int:
    """Keep at most `limit` bytes for reuse, on each device; the previous limit.

    >>> import smelt
    >>> previous = smelt.set_cache_limit(1 << 30)
    >>> smelt.set_cache_limit(previous) == 1 << 30
    True
    """
    limit = integer("set_cache_limit", "limit", limit, 0)
    previous, settings.pool_bytes = settings.pool_bytes, limit
    for pool in pools:
        if pool.cached_bytes > limit:
            pool.clear()
    return previous


def get_memory_limit() -> int:
    """Bytes that arrays may use on each device; 0 stands for no limit but the machine's."""
    return pools[0].limit


def set_memory_limit(limit: int) -> int:
    """Let arrays use at most `limit` bytes on each device (0: no limit); the previous limit.

    What would go beyond raises OutOfMemoryError, a MemoryError, and everything stays usable.

    >>> import smelt
    >>> previous = smelt.set_memory_limit(1 << 34)
    >>> smelt.set_memory_limit(previous) == 1 << 34
    True
    """
    limit = integer("set_memory_limit", "limit", limit, 0)
    previous = pools[0].limit
    for pool in pools:
        pool.limit = limit
    return previous


def set_wired_limit(limit: int) -> int:
    """Accepted for MLX's sake and ignored: no memory is kept resident. Returns 0, the limit that there always is.

    Raises:
        AttributeValueError: a negative limit.
    """
    integer("set_wired_limit", "limit", limit, 0)
    return 0


def clear_cache() -> None:
    """Give the memory kept for reuse back to the system."""
    for pool in pools:
        pool.clear()
