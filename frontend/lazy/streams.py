"""Streams, under MLX's names. The devices there are run one program at a time, so a stream says no more
than its device: `with smelt.stream(smelt.reference):` evaluates there. What is the default is so for one thread."""

from __future__ import annotations

import itertools
import platform
import threading
from dataclasses import dataclass
from types import TracebackType
from typing import Any

from smelt.ir.errors import ArgumentTypeError, DeviceError, at_user_line, shown
from smelt.ir.host_threads import allowed_threads
from smelt.runtime.device import Device, DeviceType, chosen, default_device, device_named, find_device

from .arguments import integer

__all__ = [
    "Stream",
    "StreamContext",
    "ThreadLocalStream",
    "clear_streams",
    "default_stream",
    "device_count",
    "device_info",
    "is_available",
    "new_stream",
    "new_thread_local_stream",
    "new_thread_unsafe_stream",
    "set_default_stream",
    "stream",
]

_serial = itertools.count(1)


class _Defaults(threading.local):
    """The default streams of this thread by device, and what the contexts that it is in are to restore."""

    def __init__(self) -> None:
        self.streams: dict[str, Stream] = {}
        self.saved: list[tuple[Device | None, dict[str, Stream]]] = []


_defaults = _Defaults()


@dataclass(frozen=True)
class Stream:
    """A queue of work on a device.

    Args:
        device: a `smelt.Device`. index: which of the device's streams.

    Raises:
        ArgumentTypeError: `device` is none, `index` is no int.

    >>> import smelt
    >>> smelt.Stream(smelt.cpu).device
    Device(cpu, 0)
    """

    device: Device
    index: int = 0

    def __post_init__(self) -> None:
        if not isinstance(self.device, Device):
            raise ArgumentTypeError(at_user_line(f"smelt.Stream: needs a smelt.Device, got {shown(self.device)}"))
        integer("Stream", "index", self.index)

    def __repr__(self) -> str:
        return f"Stream({self.device}, {self.index})"


class ThreadLocalStream(threading.local):
    """A stream of a device that is another one in each thread; see `new_thread_local_stream`.

    >>> import smelt
    >>> smelt.new_thread_local_stream(smelt.cpu)
    ThreadLocalStream(Device(cpu, 0))
    """

    def __init__(self, device: Device):
        self._stream = new_stream(device)

    @property
    def device(self) -> Device:
        """The device."""
        return self._stream.device

    @property
    def stream(self) -> Stream:
        """The stream of this thread."""
        return self._stream

    def __repr__(self) -> str:
        return f"ThreadLocalStream({self.device})"


class StreamContext:
    """Evaluates on a stream's device inside a with block; see `stream`. Threads may share one.

    >>> import smelt
    >>> with smelt.StreamContext(smelt.reference):
    ...     smelt.default_device()
    Device(reference, 0)
    """

    def __init__(self, s: Stream | ThreadLocalStream | Device | DeviceType | str):
        s = s.stream if isinstance(s, ThreadLocalStream) else s
        self._stream = s if isinstance(s, Stream) else None
        self._device = device_named(s.device if isinstance(s, Stream) else s)

    def __enter__(self) -> None:
        streams = dict(_defaults.streams)
        if self._stream is not None:
            streams[self._device.name] = self._stream
        _defaults.saved.append((chosen.device, _defaults.streams))
        # Nothing is called from here on, so no interrupt comes between.
        chosen.device, _defaults.streams = self._device, streams

    def __exit__(
        self, exc_type: type | None = None, exc_value: object | None = None, traceback: TracebackType | None = None
    ) -> None:
        chosen.device, _defaults.streams = _defaults.saved.pop()


def check_stream(stream: Any) -> None:
    """Check what was given as a stream: a stream, a device or its name. Arrays run on the default device.

    Raises:
        ArgumentTypeError: it is something else. DeviceError: there is no such device here.
    """
    if stream is None:
        return
    if isinstance(stream, (Stream, ThreadLocalStream)):
        stream = stream.device
    if not isinstance(stream, (Device, DeviceType, str)):
        raise ArgumentTypeError(
            at_user_line(f"smelt: stream must be None, a smelt.Stream or a device, is {shown(stream)}")
        )
    device_named(stream)


def stream(s: Stream | ThreadLocalStream | Device | DeviceType | str) -> StreamContext:
    """A context in which this thread evaluates arrays on the device of `s`; a stream is the default of its device.

    Raises:
        DeviceError: there is no such device here.

    >>> import smelt
    >>> with smelt.stream(smelt.reference):
    ...     smelt.default_device()
    Device(reference, 0)
    """
    return StreamContext(s)


def default_stream(device: Device | DeviceType | str) -> Stream:
    """The stream of a device that this thread's work goes to by default. Each thread has its own.

    >>> import smelt
    >>> with smelt.stream(smelt.new_stream(smelt.cpu)) as _:
    ...     smelt.default_stream(smelt.cpu).index > 0
    True
    >>> smelt.default_stream("cpu")
    Stream(Device(cpu, 0), 0)
    """
    found = device_named(device)
    if found.name not in _defaults.streams:
        first = threading.current_thread() is threading.main_thread()
        _defaults.streams[found.name] = Stream(found) if first else new_stream(found)
    return _defaults.streams[found.name]


def new_stream(device: Device | DeviceType | str) -> Stream:
    """Another stream of a device.

    >>> import smelt
    >>> smelt.new_stream("cpu").device
    Device(cpu, 0)
    """
    return Stream(device_named(device), next(_serial))


def new_thread_local_stream(device: Device | DeviceType | str) -> ThreadLocalStream:
    """A stream of a device that is another one in each thread that uses it.

    Raises:
        DeviceError: there is no such device.

    >>> import smelt
    >>> with smelt.stream(smelt.new_thread_local_stream(smelt.cpu)):
    ...     smelt.default_stream(smelt.cpu).index > 0
    True
    """
    return ThreadLocalStream(device_named(device))


def new_thread_unsafe_stream(device: Device | DeviceType | str) -> Stream:
    """Another stream of a device: those of `new_stream` may be used in any thread, and so may this.

    Raises:
        DeviceError: there is no such device.

    >>> import smelt
    >>> smelt.new_thread_unsafe_stream(smelt.cpu).device
    Device(cpu, 0)
    """
    return new_stream(device)


def set_default_stream(stream: Stream) -> None:
    """Make `stream` the default of its device, in this thread; as in MLX the default device stays what it is.

    Raises:
        ArgumentTypeError: not a stream. DeviceError: a stream of a device that is not here.

    >>> import smelt
    >>> before = smelt.default_stream("cpu")
    >>> smelt.set_default_stream(smelt.new_stream("cpu"))
    >>> smelt.default_stream("cpu") == before
    False
    >>> smelt.set_default_stream(before)
    """
    if not isinstance(stream, Stream):
        raise ArgumentTypeError(at_user_line(f"smelt.set_default_stream: needs a smelt.Stream, got {shown(stream)}"))
    _defaults.streams[device_named(stream.device).name] = stream


def clear_streams() -> None:
    """Forget the streams made by `new_stream`; they hold nothing.

    >>> import smelt
    >>> smelt.clear_streams()
    """


def is_available(device: Device | DeviceType | str) -> bool:
    """Whether there is such a device here.

    >>> import smelt
    >>> smelt.is_available("cpu"), smelt.is_available("metal")
    (True, False)
    """
    try:
        return find_device(device) is not None
    except DeviceError:
        return False


def device_count(device_type: Device | DeviceType | str) -> int:
    """How many devices of a kind there are: one, or none.

    >>> import smelt
    >>> smelt.device_count("cpu")
    1
    """
    return int(is_available(device_type))


def device_info(d: Device | DeviceType | str | None = None) -> dict[str, str | int]:
    """What is known of a device: its name, the machine's architecture, the number of threads, and of its own; nothing
    of `smelt.gpu` where there is no GPU.

    Raises:
        DeviceError: there is no device of that name.

    >>> import smelt
    >>> smelt.device_info("cpu")["device_name"]
    'cpu'
    """
    if isinstance(d, (Device, DeviceType)) and not is_available(d):
        return {}
    device = default_device() if d is None else device_named(d)
    own: dict[str, str | int] = {"device_name": device.name, "architecture": platform.machine()}
    return {**own, "threads": allowed_threads(), **device.details()}
