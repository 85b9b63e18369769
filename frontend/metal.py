"""What `mlx.core.metal` has, for programs that ask for a Mac's GPU before they use it.

The functions of memory are those of `smelt` itself: they count the memory of all devices.
"""

from __future__ import annotations

from smelt.ir.errors import DeviceError as _DeviceError
from smelt.ir.errors import at_user_line as _at_user_line
from smelt.ir.listing import listed as _listed
from smelt.ir.paths import path_of as _path_of
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
    "start_capture",
    "stop_capture",
]

__dir__ = _listed(globals())


def is_available() -> bool:
    """Whether there is an Apple GPU here; the simulated one does not count.

    >>> import smelt
    >>> smelt.metal.is_available() is smelt.is_available("metal")
    True
    """
    return _is_available("metal")


def device_info() -> dict[str, str | int]:
    """What is known of the GPU; nothing where there is none. See `smelt.device_info`.

    >>> import smelt
    >>> bool(smelt.metal.device_info()) == smelt.is_available(smelt.gpu)
    True
    """
    return _device_info(_gpu)


def start_capture(path: str) -> None:
    """Record what is launched on Metal from now on, for Xcode; the program must run with ``MTL_CAPTURE_ENABLED=1``.

    Args:
        path: where the record goes; it must end in ``.gputrace``, and not be there yet.

    Raises:
        DeviceError: there is no Apple GPU here, or Metal does not record. ArgumentTypeError: `path` is no path.

    >>> import smelt
    >>> if smelt.metal.is_available():
    ...     smelt.metal.start_capture("step.gputrace")
    """
    found = _path_of("metal.start_capture", "path", path)
    _need_metal("start_capture")
    from smelt.backends.metal.apple import capture  # PyObjC, which other machines do not have

    capture.start(found)


def stop_capture() -> None:
    """End what `start_capture` began.

    Raises:
        DeviceError: there is no Apple GPU here.

    >>> import smelt
    >>> if smelt.metal.is_available():
    ...     smelt.metal.stop_capture()
    """
    _need_metal("stop_capture")
    from smelt.backends.metal.apple import capture  # as in start_capture

    capture.stop()


def _need_metal(name: str) -> None:
    if not is_available():
        what = "there is no Apple GPU here; smelt.explain() and SMELT_DEBUG tell what programs do on other devices"
        raise _DeviceError(_at_user_line(f"smelt.metal.{name}: {what}"))
