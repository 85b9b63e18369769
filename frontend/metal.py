"""What `mlx.core.metal` has, for programs that ask for a Mac's GPU before they use it.

The functions of memory are those of `smelt` itself: they count the memory of all devices.
"""

from __future__ import annotations

from smelt.runtime.device import cpu as _cpu
from smelt.runtime.device import gpu as _gpu

from .lazy.streams import device_info as _device_info
from .lazy.streams import is_available as _is_available
from .memory import (
    clear_cache,
    get_active_memory,
    get_cache_memory,
    get_peak_memory,
    reset_peak_memory,
    set_cache_limit,
    set_memory_limit,
    set_wired_limit,
)

__all__ = [
    "clear_cache",
    "device_info",
    "get_active_memory",
    "get_cache_memory",
    "get_peak_memory",
    "is_available",
    "reset_peak_memory",
    "set_cache_limit",
    "set_memory_limit",
    "set_wired_limit",
]


def __dir__() -> list[str]:
    return sorted({*__all__, *(name for name in globals() if name.startswith("__"))})


def is_available() -> bool:
    """Whether there is an Apple GPU here; the simulated one does not count.

    >>> import smelt
    >>> smelt.metal.is_available() is smelt.is_available("metal")
    True
    """
    return _is_available("metal")


def device_info() -> dict[str, str | int]:
    """What is known of the GPU; of the CPU where there is none. See `smelt.device_info`."""
    return _device_info(_gpu if is_available() else _cpu)
