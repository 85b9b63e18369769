"""Warming up: another thread prepares what the first program of a device waits for, while the host computes."""

from __future__ import annotations

import contextlib
import threading

from smelt.backends.device import Device
from smelt.ir import locks
from smelt.ir.errors import SmeltError

_guard = locks.lock()
_threads: dict[str, threading.Thread] = {}


def begin(device: Device) -> None:
    """Do what `Device.warm` does, once in a process, without waiting. What fails is met again, and raised, by who
    needs it."""
    if device.warm is None:
        return
    with _guard:
        if device.name in _threads:
            return
        # No daemon: a process must not end in the middle of what a driver does.
        thread = _threads[device.name] = threading.Thread(target=_work, args=(device,), name="smelt-warm")
        with contextlib.suppress(RuntimeError):  # no more threads, or the interpreter ends
            thread.start()


def _work(device: Device) -> None:
    assert device.warm is not None
    with contextlib.suppress(SmeltError):
        device.warm()


def settle() -> None:
    """Wait for all that was begun, and forget it: before a device's parts are replaced."""
    with _guard:
        threads = list(_threads.values())
        _threads.clear()
    for thread in threads:
        if thread.is_alive():
            thread.join()
