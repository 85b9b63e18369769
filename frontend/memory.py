"""Memory statistics and limits, under MLX's names."""

from __future__ import annotations

from typing import Any

from smelt.backends.buffer import memories, outside_bytes
from smelt.ir.errors import AttributeValueError, at_user_line
from smelt.ir.settings import settings
from smelt.runtime import pools

from .lazy import tree
from .lazy.arguments import integer
from .lazy.arrays import array

__all__ = [
    "clear_cache",
    "get_active_memory",
    "get_array_buffer_size",
    "get_cache_memory",
    "get_memory_limit",
    "get_peak_memory",
    "reset_peak_memory",
    "set_cache_limit",
    "set_memory_limit",
    "set_wired_limit",
]


def get_active_memory() -> int:
    """Bytes in use by arrays, on all devices. Files that arrays are mapped from are not counted.

    >>> import smelt
    >>> before = smelt.get_active_memory()
    >>> x = smelt.zeros(10)
    >>> smelt.eval(x)
    >>> smelt.get_active_memory() - before
    40
    """
    found = sum(pool.active_bytes for pool in pools) + outside_bytes()
    for pool in pools[:1]:
        pool.peak_bytes = max(pool.peak_bytes, found - sum(other.active_bytes for other in pools[1:]))
    return found


def get_array_buffer_size(*args: Any) -> int:
    """Bytes of the memory that arrays lie in; what several share is counted once, and whole.

    Args:
        args: arrays, or trees of them, that have been evaluated; other leaves are passed over.

    Raises:
        AttributeValueError: an array that has not been evaluated.

    >>> import smelt
    >>> x = smelt.zeros(10)
    >>> smelt.eval(x)
    >>> smelt.get_array_buffer_size(x, {"again": x, "n": 3})
    40
    """
    buffers = []
    for x in tree.flatten(args)[0]:
        if isinstance(x, array):
            node, i = x._ref
            if node.values is None:
                message = f"{x.aval} has not been evaluated; smelt.eval does it"
                raise AttributeValueError(at_user_line(f"smelt.get_array_buffer_size: {message}"))
            buffers.append(node.values[i])
    on_host = [b for b in buffers if b.home is None and b.is_on_host]
    blocks = {id(b.home): b.aval.nbytes for b in buffers if b.home is not None}
    return sum(nbytes for _, nbytes in memories(on_host)) + sum(blocks.values())


def get_cache_memory() -> int:
    """Bytes kept for reuse.

    >>> import smelt
    >>> smelt.clear_cache()
    >>> smelt.get_cache_memory()
    0
    """
    return sum(pool.cached_bytes for pool in pools)


def get_peak_memory() -> int:
    """The largest number of bytes in use since the start or `reset_peak_memory`.

    Arrays of up to 64 KiB are counted as they are when one of these functions is called.

    >>> import smelt
    >>> smelt.get_peak_memory() >= smelt.get_active_memory()
    True
    """
    get_active_memory()
    return sum(pool.peak_bytes for pool in pools)


def reset_peak_memory() -> None:
    """Forget the peak.

    >>> import smelt
    >>> smelt.reset_peak_memory()
    """
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
    settings.gpu_pool_bytes = limit
    for pool in pools:
        if pool.cached_bytes > limit:
            pool.clear()
    return previous


def get_memory_limit() -> int:
    """Bytes that arrays may use on each device; 0 stands for no limit but the machine's.

    >>> import smelt
    >>> previous = smelt.set_memory_limit(1 << 30)
    >>> smelt.get_memory_limit() == 1 << 30
    True
    >>> _ = smelt.set_memory_limit(previous)
    """
    return pools[0].limit


def set_memory_limit(limit: int) -> int:
    """Let arrays use at most `limit` bytes on each device (0: no limit); the previous limit.

    Small arrays count as well. What would go beyond raises OutOfMemoryError, a MemoryError, and everything stays
    usable.

    >>> import smelt
    >>> previous = smelt.set_memory_limit(1 << 34)
    >>> smelt.set_memory_limit(previous) == 1 << 34
    True
    """
    limit = integer("set_memory_limit", "limit", limit, 0)
    previous = pools[0].limit
    for pool in pools:
        pool.limit = limit
    # While there is a limit, what is made is added to what was counted; counting goes through all objects.
    if bool(limit) != bool(previous):
        pools[0].outside = outside_bytes() if limit else 0
    return previous


def set_wired_limit(limit: int) -> int:
    """Accepted for MLX's sake and ignored: no memory is kept resident. Returns 0, the limit that there always is.

    Raises:
        AttributeValueError: a negative limit.

    >>> import smelt
    >>> smelt.set_wired_limit(1 << 20)
    0
    """
    integer("set_wired_limit", "limit", limit, 0)
    return 0


def clear_cache() -> None:
    """Give the memory kept for reuse back to the system.

    >>> import smelt
    >>> smelt.clear_cache()
    """
    for pool in pools:
        pool.clear()
