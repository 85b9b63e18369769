"""Streams, under MLX's names. The devices there are run one program at a time, so a stream says no more
than its device: `with smelt.stream(smelt.reference):` evaluates there."""

from __future__ import annotations

import itertools
import os
import platform
from dataclasses import dataclass
from types import TracebackType

from smelt.ir.errors import ArgumentTypeError, at_user_line, shown
from smelt.ir.settings import settings
from smelt.runtime.device import Device, default_device, device_named, devices, set_default_device

from .arguments import integer

__all__ = [
    "Stream",
    "StreamContext",
    "clear_streams",
    "default_stream",
    "device_count",
    "device_info",
    "is_available",
    "new_stream",
    "set_default_stream",
    "stream",
]

_serial = itertools.count(1)


@dataclass(frozen=True)
class Stream:
    """A queue of work on a device."""

    device: Device
    index: int = 0

    def __post_init__(self) -> None:
        if not isinstance(self.device, Device):
            raise ArgumentTypeError(at_user_line(f"smelt.Stream: needs a smelt.Device, got {shown(self.device)}"))
        integer("Stream", "index", self.index)


class StreamContext:
    """Evaluates on a stream's device inside a with block; see `stream`."""

    def __init__(self, s: Stream | Device | str):
        self._device = s.device if isinstance(s, Stream) else device_named(s)
        self._saved: list[str] = []

    def __enter__(self) -> None:
        self._saved.append(settings.device)
        set_default_device(self._device)

    def __exit__(
        self, exc_type: type | None = None, exc_value: object | None = None, traceback: TracebackType | None = None
    ) -> None:
        settings.device = self._saved.pop()


def stream(s: Stream | Device | str) -> StreamContext:
    """A context in which arrays are evaluated on the device of `s`.

    >>> import smelt
    >>> with smelt.stream(smelt.reference):
    ...     smelt.default_device()
    Device(reference)
    """
    return StreamContext(s)


def default_stream(device: Device | str) -> Stream:
    """The stream of a device that work goes to by default."""
    return Stream(device_named(device))


def new_stream(device: Device | str) -> Stream:
    """Another stream of a device."""
    return Stream(device_named(device), next(_serial))


def set_default_stream(stream: Stream) -> None:
    """Evaluate on the device of `stream` from now on."""
    if not isinstance(stream, Stream):
        raise ArgumentTypeError(at_user_line(f"smelt.set_default_stream: needs a smelt.Stream, got {shown(stream)}"))
    set_default_device(stream.device)


def clear_streams() -> None:
    """Forget the streams made by `new_stream`; they hold nothing."""


def is_available(device: Device | str) -> bool:
    """Whether there is such a device here.

    >>> import smelt
    >>> smelt.is_available("cpu"), smelt.is_available("metal")
    (True, False)
    """
    name = device.name if isinstance(device, Device) else device
    return isinstance(name, str) and name in devices


def device_count(device_type: Device | str) -> int:
    """How many devices of a kind there are: one, or none."""
    return int(is_available(device_type))


def device_info(d: Device | str | None = None) -> dict[str, str | int]:
    """What is known of a device: its name, the machine's architecture, the number of threads."""
    device = default_device() if d is None else device_named(d)
    threads = settings.num_threads or os.cpu_count() or 1
    return {"device_name": device.name, "architecture": platform.machine(), "threads": threads}
