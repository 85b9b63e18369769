"""Which device a thread's arrays are evaluated on. `smelt.backends.device` says what a device is."""

from __future__ import annotations

import threading

from smelt.backends.device import (
    AUTO,
    Device,
    DeviceType,
    best,
    devices,
    import_backends,
    load_entry_points,
    of_kind,
    registered,
    unknown,
)
from smelt.ir.errors import DeviceError, at_user_line
from smelt.ir.settings import settings

import_backends()


def device_named(name: str | Device | DeviceType, asked: str = "") -> Device:
    """The device called `name`; ``"auto"`` is the one of the highest rank: ``metal`` where there is one, else ``cpu``.

    Packages that have a device of that name (entry points of the group ``smelt.devices``) are loaded for it.

    Args:
        asked: who asks for it, for the error.

    Raises:
        DeviceError: there is no such device here.
    """
    found = find_device(name)
    if found is None:
        name = of_kind(name.value) if isinstance(name, DeviceType) else name
        wanted = name.name if isinstance(name, Device) else name
        raise DeviceError(at_user_line(unknown(wanted) + asked))
    return found


def find_device(name: str | Device | DeviceType) -> Device | None:
    """As `device_named`; None where there is no such device here.

    Raises:
        DeviceError: the package that has it does not load.
    """
    if isinstance(name, DeviceType):
        name = of_kind(name.value)
    wanted = name.name if isinstance(name, Device) else name
    if not isinstance(wanted, str):
        return None
    if wanted == AUTO:
        return best()
    if wanted not in registered:
        load_entry_points(wanted)
    return devices.get(wanted)


cpu = device_named("cpu")
reference = device_named("reference")
metal_sim = device_named("metal:sim")
gpu = of_kind("gpu")


def host_of(device: Device) -> Device:
    """What computes in the host's memory in place of a device: itself, if its memory is that; else the CPU."""
    return device if device.is_host else cpu


_ASKED = "; the setting device (SMELT_DEVICE) asks for it"


class _Chosen(threading.local):
    """What this thread has chosen."""

    device: Device | None = None


chosen = _Chosen()


def default_device() -> Device:
    """The device on which this thread evaluates arrays.

    What it has set last, else SMELT_DEVICE, else ``metal`` where there is one, else ``cpu``.

    >>> import smelt
    >>> smelt.default_device() in (smelt.cpu, smelt.gpu, smelt.reference)
    True
    """
    return chosen.device or (best() if settings.device == AUTO else device_named(settings.device, _ASKED))


def set_default_device(device: str | Device) -> None:
    """Evaluate on `device` from now on, in this thread. Other threads go on as before.

    Raises:
        DeviceError: there is no such device here.

    >>> import smelt
    >>> smelt.set_default_device("reference")
    >>> smelt.default_device()
    Device(reference, 0)
    >>> smelt.set_default_device("cpu")
    """
    chosen.device = device_named(device)
